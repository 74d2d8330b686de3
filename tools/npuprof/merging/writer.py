# SPDX-License-Identifier: MIT
"""Writes the merged trace."""

import json
import os
import re

from ..base.contract import MAJOR
from ..base.losses import MISSING, counted
from ..base.messages import Refused
from ..base.strict_json import json_text
from ..read.own_layout import HEAD, STRING
from .part import LINE
from .place import TID

SORT = re.compile(rb'"sort_index":(\d+)')
STAMP = re.compile(rb'"ts":(\d+)\.(\d\d\d)')
NATIVE_OF = re.compile(rb',"native_id":\d+(?:,"native_threads":\d+)?')
NAMED = re.compile(rb'("args":\{"name":"(?:[^"\\]|\\.)*)"')
FLOW = re.compile(rb'"name":(' + STRING + rb').*?"id":(\d+)')


def merged_metadata(parts, base):
    if not parts:
        return {"version": f"{MAJOR}.0.0", "host": "", "program": "kernel", "pid": 1, "start_unix_ns": 0,
                "start_boottime_ns": base, "clock": {"source": "kernel", "hz": 1000000000}, "lost": {},
                "devices": []}
    first, lost = parts[0].about, {}
    missing = {key: sum(counted(part.about).get(key, 0) for part in parts) for key in MISSING}
    for part in parts:
        for cause, count in part.about.get("lost", {}).items():
            lost[cause] = lost.get(cause, 0) + count
    processes = [part.about | {"pid": part.pid, "original_pid": part.old_pid,
                               "file": os.path.basename(part.path),
                               "label": part.label, "shift_ns": part.start - base,
                               "tid_shift": part.tid_shift,
                               "aligned_by": part.how, "error_ns": part.error, "error_assumed": part.assumed}
                 for part in parts]
    devices = [device | {"pid": part.pid} for part in parts for device in part.about.get("devices", [])]
    return {"version": first["version"], "host": ", ".join(dict.fromkeys(part.host for part in parts)),
            "program": "merged", "pid": parts[0].pid, "start_unix_ns": base, "start_boottime_ns": 0,
            "start_monotonic_ns": 0, "clock": first.get("clock", {}), "lost": lost, **counted(missing),
            "max_error_ns": max(part.error for part in parts), "devices": devices, "processes": processes}


class Writer:
    """Writes the merged trace. Every event keeps its line; pid, times and flow ids change."""

    def __init__(self, file, together, bar):
        self.file, self.parts, self.base, self.bar = file, together.parts, together.base, bar
        self.kernel, self.arrows = together.kernel, together.arrows
        self.flows, self.next_flow = {}, 0     # (part, name, id) -> new id, of arrows without an end
        self.separator, self.done = b"", 0

    def write(self):
        self.file.write(HEAD + b"\n")
        for n, part in enumerate(self.parts):
            lines = [] if part.tid_shift else self.names(n, part)
            for k, line in enumerate(part.lines()):
                lines += self.event(n, part, k, line)
                if len(lines) >= 4096:
                    self.put(lines)
                    lines = []
            self.put(lines)
        self.put(list(self.arrows.lines(self.next_flow)))
        self.next_flow += len(self.arrows.drawn)
        about = merged_metadata(self.parts, self.base)
        if self.kernel:
            self.put(list(self.kernel.lines(self.base, {part.pid for part in self.parts}, self.next_flow)))
            self.kernel.add_to(about)
        self.file.write(b'\n],\n"displayTimeUnit":"ns",\n"metadata":{"npuprof":' + json_text(about).encode()
                        + b"}}\n")

    def put(self, lines):
        if lines:
            self.file.write(self.separator + b",\n".join(lines))
            self.separator = b",\n"
            self.done += sum(map(len, lines))
            self.bar.at(self.done)

    def names(self, n, part):
        """The events that name a process and give its place in the order."""
        same = [other.label for other in self.parts if other.pid == part.pid]
        label = json_text(", ".join(dict.fromkeys(same))).encode()
        return [b'{"ph":"M","name":"process_%s","pid":%d,"tid":1,"args":{%s}}' % (name, part.pid, value)
                for name, value in ((b"name", b'"name":' + label),
                                    (b"sort_index", b'"sort_index":%d' % (n + 1)))]

    def event(self, n, part, k, line):
        """Event k of part n: a list of its new line, empty for the old name of the process."""
        match = LINE.fullmatch(line)
        if not match:
            raise Refused(f"{part.path}: event {k} of traceEvents has no ph or pid: "
                          f"{line[:60].decode(errors='replace')}")
        head, phase, _, rest = match.groups()
        if self.kernel and phase == b"X":
            rest = self.kernel.with_waits(part, rest)
        elif self.kernel and phase in b"sf":
            self.kernel.arrow(part, phase, rest)
        pid, tid = part.moved.get(int(TID.search(rest)[1]), (part.pid, 0)) if part.moved else (part.pid, 0)
        if tid:
            rest = TID.sub(b'"tid":%d' % tid, rest, 1)
            if phase == b"M":
                program = json.dumps(part.about.get("program") or "kernel")[1:-1].encode()
                rest = SORT.sub(b'"sort_index":%d' % tid, rest, 1)
                rest = NAMED.sub(lambda name: name[1] + b' in %s"' % program, NATIVE_OF.sub(b"", rest), 1)
        if part.tid_shift:
            rest = TID.sub(lambda tid: b'"tid":%d' % (int(tid[1]) + part.tid_shift), rest, 1)
        if phase == b"M":
            if b'"name":"process_' in head:
                return []
            if part.tid_shift:
                rest = SORT.sub(lambda tid: b'"sort_index":%d' % (int(tid[1]) + part.tid_shift), rest, 1)
            return [head + b"%d" % pid + rest]

        def moved(match):
            ns = int(match[1] + match[2]) + part.start - self.base
            return b'"ts":%d.%03d' % (ns // 1000, ns % 1000)
        rest, stamps = STAMP.subn(moved, rest, 1)
        if not stamps:
            raise Refused(f"{part.path}: event {k} of traceEvents has no time in µs with three decimals: "
                          f"{line[:60].decode(errors='replace')}")
        if phase in b"stf":
            name, flow = FLOW.search(line).groups()
            rest = rest.replace(b'"id":' + flow, b'"id":%d' % self.flow((n, name, flow), phase), 1)
        return [head + b"%d" % pid + rest]

    def flow(self, key, phase):
        """The new id of an arrow."""
        number = self.flows.get(key)
        if number is None:
            self.next_flow += 1
            number = self.flows[key] = self.next_flow
        elif phase == b"f":
            del self.flows[key]
        return number
