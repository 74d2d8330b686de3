# SPDX-License-Identifier: MIT
"""Puts traces of several processes, ranks or hosts on one timeline.

Takes traces of npuprof, JSON or images. It refuses traces of other tools, a CSV, and traces of two versions.

How traces are aligned:
  one boot of one host    by the clock since boot. Traces are of one boot if their clocks agree about when it
                          was. The error is that of the clock anchors, and how far a user clock ran from
                          the clock of the OS.
  other hosts or boots    by the Unix clock. The error is also that of the hosts' clocks: what a program said
                          with npuprof_metadata("clock_error_ns", "250000"), else --host-error for all hosts,
                          else 10 ms, and the output says that this is assumed.
  by hand                 --offset FILE=NS moves a file. A trace without an absolute base (of a board without
                          a clock) begins at that Unix ns; without --offset it is refused.

Two traces of one process (host, boot, pid and program) keep its pid; the threads of the later one get higher
numbers. Other processes with the same pid get a new one. Flow arrows get new ids. Ends of arrows without a
partner in their own image are joined with those of others that have the same id, if the error of the clocks
leaves one choice; what is joined, and why others are not, is said. The name of a process is its --label, else
the metadata "rank", program, host and pid. What a kernel module recorded in a task of one of the processes
(examples/kernel) comes into that process, as the track "NAME in MODULE".

metadata.npuprof.processes of the output holds the metadata of each trace, with its file, label, shift_ns,
tid_shift, how it was aligned (aligned_by), and error_ns against the first file.

With --ftrace, what the kernel's tracer wrote is beside the spans: the jobs of each device as lanes, with the
error of each begin and end, arrows from the spans that submitted them, and in each span of a thread how long
it ran, was ready, and slept until what. A .pftrace also has the kernel's events themselves. No trace is
needed with it. system-trace records it, or both.

An output that ends in .pftrace is Perfetto's own format; files packed with gzip (.gz) are read and written.

Exit code 0; 2: an input or the output cannot be used.
"""

import gc
import os
import re
import tempfile

from .base.files import check_output, refuse_nameless, whole_file
from .base.messages import Refused
from .convert.forms import form_of
from .convert.kernel_packets import write_kernel
from .merging.beside import add_kernel_arguments, kernel_arguments
from .merging.together import Together
from .read import load


def add_arguments(parser):
    parser.add_argument("traces", metavar="TRACE", nargs="*",
                        help=".json or .npuprof files; times are those of the first one's clock. None are "
                             "needed with --ftrace")
    parser.add_argument("-o", "--output", required=True, metavar="OUT",
                        help="the merged trace: .json or .pftrace, also with .gz")
    parser.add_argument("--label", action="append", default=[], metavar="TEXT",
                        help="the process name of the first, second, ... trace")
    parser.add_argument("--offset", action="append", default=[], metavar="FILE=NS",
                        help="move FILE by NS, which may be negative; "
                             "if it has no absolute base: the Unix ns of its start")
    parser.add_argument("--host-error", type=int, metavar="NS",
                        help="how far each host's clock may be from the true time")
    add_kernel_arguments(parser)


def offsets_of(arguments):
    """{file: ns} of --offset."""
    offsets = {}
    for text in arguments.offset:
        path, _, ns = text.rpartition("=")
        if path not in arguments.traces or not re.fullmatch(r"-?\d{1,19}", ns):
            raise Refused(f"--offset {text}: not FILE=NS with one of the files given and whole ns")
        offsets[path] = int(ns)
    return offsets


def say(together):
    """Prints how each input was placed."""
    parts = together.parts
    for part in parts:
        against = "the reference" if part is parts[0] else f"error at most {part.error} ns"
        if part.assumed:
            against += " (assumed: an error of a host's clock, or of a user clock's rate, is not known)"
        print(f"{part.path}: {part.label}: pid {part.pid}, by {part.how}, "
              f"{(part.start - together.base) / 1e6:.6f} ms after the start; {against}")
    for sentence in together.sentences():
        print(sentence)


def run(arguments):
    check_output(arguments.output, (".json", ".pftrace"), *arguments.traces, arguments.ftrace)
    if len(arguments.label) > len(arguments.traces):
        raise Refused(f"--label: {len(arguments.label)} labels for {len(arguments.traces)} traces")
    if not arguments.traces and not arguments.ftrace:
        raise Refused("merge: no trace is given")
    for path in arguments.traces:
        refuse_nameless(path)
        if arguments.traces.count(path) > 1:
            raise Refused(f"{path}: is given twice, and all in it would be there twice")
    form = form_of(arguments.output)
    packets = form is not None and form.ending == ".pftrace"
    offsets = offsets_of(arguments)
    if arguments.host_error is not None and arguments.host_error < 0:
        raise Refused("--host-error: not below 0")
    # Why: the search for garbage among many jobs of the kernel takes 5 % of the time.
    gc.disable()
    together = Together(arguments.output, arguments.traces, labels=arguments.label, offsets=offsets,
                        host_error=arguments.host_error, **kernel_arguments(arguments))
    if packets:
        with tempfile.NamedTemporaryFile(prefix="npuprof-", suffix=".json") as merged:
            together.write(merged)
            merged.flush()
            with whole_file(arguments.output) as file:
                form.write(load(merged.name), file)
                if together.kernel:
                    write_kernel(together.kernel.text, file)
    else:
        with whole_file(arguments.output) as file:
            together.write(file)
    say(together)
    return 0
