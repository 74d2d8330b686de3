# SPDX-License-Identifier: MIT
"""Reads what the Linux kernel's tracer wrote: the text of tracefs (`trace`) or of `trace-cmd report -t`, or a
trace.dat, through trace-cmd.

    for event in Ftrace(path).events(): ...       Event(ns, cpu, tid, tgid, comm, name, text)

ns is in the tracer's own clock (trace_clock): nanoseconds, or ticks of x86-tsc.
"""

import re
import shutil
import subprocess
from collections import namedtuple

from ..base.files import open_plain
from ..base.messages import Refused

Event = namedtuple("Event", "ns cpu tid tgid comm name text")
# bash-1234    (   1234) [001] d..2.  27086.310710: sched_switch: prev_comm=...
LINE = re.compile(r"\s*(.+)-(\d+)\s+(?:\(\s*(\d+|-+)\)\s+)?\[(\d+)\](?:\s+[^\s:.]?[^\s:]{3,5})?"
                  r"\s+(\d+)(?:\.(\d{6,9}))?: +(?:\w+:)?(\w+): *(.*)")
LOST = re.compile(r"\s*CPU:?\s*(\d+) \[(?:LOST (\d+) EVENTS|EVENTS DROPPED)\]")
SKIPPED = ("tracing_mark_write", "print")          # what programs wrote, and no event of the kernel
FIELD = re.compile(r"(\w+)=(.*?)(?=,?\s+\w+=|$)")


class Ftrace:
    """A trace of the kernel. ticks: its trace_clock was x86-tsc. After events(): how many there are, of which
    CPUs, how many were lost, and how coarse their times are."""

    def __init__(self, path, ticks=False):
        self.path, self.count, self.cpus, self.lost, self.quantum_ns = path, 0, set(), 0, 1
        self.ticks = ticks

    def lines(self):
        file = open_plain(self.path)
        head = file.read(10)
        file.seek(0)
        if not head.startswith(b"\x17\x08\x44tracing"):
            with file:
                yield from (line.decode("utf-8", "replace").rstrip("\n") for line in file)
            return
        file.close()
        tool = shutil.which("trace-cmd")
        if not tool:
            raise Refused(f"{self.path}: a trace.dat needs trace-cmd, which is not installed; "
                          "or give the text of `trace-cmd report -t`")
        with subprocess.Popen([tool, "report", "-t", "-N", "-i", self.path], stdin=subprocess.DEVNULL,
                              stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True,
                              errors="replace") as process:
            yield from (line.rstrip("\n") for line in process.stdout)
        if process.returncode:
            raise Refused(f"{self.path}: trace-cmd report ends with {process.returncode}: "
                          "is it a whole trace.dat?")

    def events(self):
        """Yields the events in the order of the file."""
        for number, line in enumerate(self.lines(), 1):
            if not line or line.startswith(("#", "cpus=", "version =")):
                continue
            lost = LOST.match(line)
            if lost:
                self.lost += int(lost[2] or 1)
                continue
            found = LINE.fullmatch(line)
            if not found:
                raise Refused(f"{self.path}:{number}: no line of ftrace: {line[:60]!r}; "
                              "give the text of tracefs or of `trace-cmd report -t`, or a trace.dat")
            comm, tid, tgid, cpu, whole, fraction, name, text = found.groups()
            if name in SKIPPED:
                continue
            self.count += 1
            self.cpus.add(int(cpu))
            if self.ticks and fraction is not None:
                raise Refused(f"{self.path}:{number}: a time in seconds, but --ftrace-clock says x86-tsc; "
                              "say mono or boot, as trace_clock was")
            if fraction is not None and len(fraction) < 9:
                self.quantum_ns = max(self.quantum_ns, 10 ** (9 - len(fraction)))
            ns = int(whole) if fraction is None else int(whole) * 10**9 + int(fraction.ljust(9, "0"))
            yield Event(ns, int(cpu), int(tid), int(tgid) if tgid and tgid.isdigit() else None,
                        comm.strip(), name, text.strip())


def fields(text):
    """The fields that an event printed as name=value."""
    return {key: value.strip() for key, value in FIELD.findall(text)}


def whole_number(value):
    """The number that a value begins with, decimal or hexadecimal; None: it begins with none."""
    found = re.match(r"-?(?:0x[\da-fA-F]+|\d+)", value or "")
    return int(found[0], 0 if "x" in found[0] else 10) if found else None
