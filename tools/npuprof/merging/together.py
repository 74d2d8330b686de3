# SPDX-License-Identifier: MIT
"""Traces, and a text of the kernel's tracer, that become one trace."""

import os

from ..base.messages import Progress, Refused
from ..kernel.merged import Kernel
from .arrows import Arrows
from .part import Part
from .place import align, native_tids, number, place_tasks
from .writer import Writer

LIMIT_NS = 2**51                 # below, three decimals of a microsecond are exact in a double


class Together:
    """Inputs that have their places on one timeline, from `base` on. output: how they are called together in
    refusals. ftrace, clock, devices: the text of the kernel, its trace_clock or None, its maps; no text:
    None. kernel: a Kernel, or None."""

    def __init__(self, output, traces, ftrace=None, clock=None, devices=(), labels=(), offsets=None,
                 host_error=None):
        self.output = output
        self.parts = parts = [Part(path) for path in traces]
        for part in parts[1:]:
            if part.version[0] != parts[0].version[0]:
                raise Refused(f"{part.path}: written by npuprof {part.about['version']}, "
                              f"{parts[0].path} by {parts[0].about['version']}: record both with "
                              "one major version")
        align(parts, offsets or {}, host_error)
        number(parts, labels)
        place_tasks(parts)
        self.kernel = None
        if ftrace:
            self.kernel = Kernel(ftrace, clock, devices, parts, lambda part: native_tids(part)[0])
        self.base = self.common_start()
        self.arrows = Arrows(parts, self.base)

    def common_start(self):
        """The ns of the Unix clock at which the common timeline begins."""
        kernel, starts = self.kernel, [part.start for part in self.parts]
        if kernel and kernel.begin() is not None:
            starts.append(kernel.begin())
        if not starts:
            raise Refused(f"{kernel.path}: no line of it tells of a job of a device, so it gives nothing "
                          "without a trace: record the events that tools/README.md names")
        far = max(starts) - min(starts)
        if far >= LIMIT_NS // 2:
            days = far / 86400e9
            raise Refused(f"{self.output}: the traces lie {days:.1f} days apart, "
                          "too far for exact ns on one timeline; is a host's clock wrong?")
        return min(starts)

    def write(self, file):
        """Writes the trace as JSON."""
        size = sum(os.fstat(part.file.fileno()).st_size for part in self.parts)
        bar = Progress(f"writing {self.output}", size)
        Writer(file, self, bar).write()
        bar.done()

    def sentences(self):
        """Yields what the user should know of the arrows and of the kernel's text, after write()."""
        yield from self.arrows.sentences()
        for sentence in self.kernel.sentences() if self.kernel else ():
            yield f"{self.kernel.path}: {sentence}"
