# SPDX-License-Identifier: MIT
"""Reads what the Linux kernel's tracer wrote: the text of tracefs (`trace`), of `trace-cmd report`, or of
`perf script`, each in all of its forms; or a trace.dat, through trace-cmd.

    for item in KernelText(path).items(): ...       an Event or a Hole, in the order of the file

The form of a file is decided once, at its first event. A line of another form is left out, with a sentence in
`malformed`. Memory does not grow with the file.
"""

import io
import re
import shutil
import subprocess
from collections import namedtuple

from ..base.files import open_plain
from ..base.messages import Refused

# ns: in the tracer's own clock, nanoseconds or ticks of x86-tsc, unless it is converted. tgid: None if the
# text does not say it.
# flags: the column of irqs-off, need-resched, hard or soft interrupt, preempt-depth; "" without the column.
Event = namedtuple("Event", "ns cpu tid tgid comm flags system name text")
# Events of that CPU were lost between two times. count: None if the text does not say it.
Hole = namedtuple("Hole", "cpu since until count")

# Before it trace-cmd prints the name of a buffer of its own.
COMM = r"\s*+(?:[\w.-]++: ++)?(?P<comm>\S.{0,15}?)"
FLAGS = r"(?P<flags>[^\s\d]\S{2,7})"
WHAT = r"(?:(?P<system>[\w-]+):(?! ))?(?P<name>\w++):(?: ++(?P<text>.*+))?"
FORMS = {
    # bash-1234    (   1234) [001] d..2.  27086.310710: sched_switch: prev_comm=...
    "ftrace": COMM + r"-(?P<tid>\d++)\s++(?:\(\s*+(?P<tgid>\d++|-++)\)\s++)?\[(?P<cpu>\d++)\]"
              r"(?:\s++" + FLAGS + r")?\s++(?P<whole>\d++)(?:\.(?P<part>\d{6,9}))?: ++" + WHAT,
    # bash-1234     1d..2. 13268us!: sched_switch: prev_comm=...             times count from the first event
    "latency": COMM + r"-(?P<tid>\d+)\s+(?:\(\s*(?P<tgid>\d+|-+)\)\s+)?(?P<cpu>\d+)" + FLAGS +
               r"\s+(?P<whole>\d+)us(?P<part>)[^\s:]?\s*: +" + WHAT,
    # bash-1234     1d..2. 27086.310710: sched_switch: prev_comm=...           of trace-cmd report -l
    "report -l": COMM + r"-(?P<tid>\d+)(?P<tgid>)\s+(?P<cpu>\d+)" + FLAGS +
                 r"\s+(?P<whole>\d+)(?:\.(?P<part>\d{6,9}))?: +" + WHAT,
    # bash 1234/1234 [001] 27086.310710123: sched:sched_switch: prev_comm=...     also with one number
    "perf": COMM + r"\s+(?:(?P<tgid>-?\d+)/)?(?P<tid>-?\d+)\s+\[(?P<cpu>\d+)\](?P<flags>)\s+"
            r"(?P<whole>\d+)\.(?P<part>\d{6,9}): +(?:" + WHAT + r"|PERF_RECORD_LOST lost (?P<lost>\d+))",
}
GROUPS = "comm", "tid", "tgid", "cpu", "flags", "whole", "part", "system", "name", "text"
FORMS = {name: re.compile(pattern) for name, pattern in FORMS.items()}
LOST = re.compile(r"\s*CPU:?\s*(\d+) \[(?:LOST (\d+) EVENTS|(\d+) EVENTS DROPPED|LOST EVENTS"
                  r"|EVENTS DROPPED)\]")
BUFFERED = re.compile(r"# entries-in-buffer/entries-written: (\d+)/(\d+)")
# What stands between events: stacks, and the head of trace-cmd.
BESIDE = re.compile(r"\s*(?:=> .*|<(?:user )?stack trace>|cpus=\d+|version = \d+|[\da-f]{6,16} .*)"
                    r"|PERF_RECORD.*|")
MARKS = ("tracing_mark_write", "print")            # what programs wrote, and no event of the kernel
FIELD = re.compile(r"(\w+)=(.*?)(?=,?\s+\w+=|$)")
SAID = 10                                          # malformed lines that get a sentence each


class KernelText:
    """A text of the kernel's tracer.

    ticks: its trace_clock was x86-tsc. convert: what turns stamps into ns, None: nothing.

    After items(): how many events there are and of which CPUs, how coarse their times are (quantum_ns), how
    many were lost in which holes (tells_lost: False, if nobody knows), how many were overwritten before the
    first one, how many are earlier than the one before them (backwards), and which lines were left out."""

    def __init__(self, path, ticks=False):
        self.path, self.ticks, self.convert = path, ticks, None
        self.form, self.quantum_ns = None, 1
        self.reset()

    def reset(self):
        """Forgets what items() counted."""
        self.count, self.cpus, self.malformed, self.left_out = 0, set(), [], 0
        self.holes, self.lost, self.uncounted, self.overwritten = 0, 0, 0, 0
        self.tells_lost = True           # the text would say that events were lost
        self.first_ns = self.last_ns = None
        self.backwards = 0

    def lines(self):
        """Yields the lines of the text, also of a trace.dat or a packed file."""
        file = open_plain(self.path)
        head = file.read(10)
        file.seek(0)
        if not head.startswith(b"\x17\x08\x44tracing"):
            with io.TextIOWrapper(file, "utf-8", "replace") as lines:
                yield from map(str.rstrip, lines)
            return
        file.close()
        tool = shutil.which("trace-cmd")
        if not tool:
            raise Refused(f"{self.path}: a trace.dat needs trace-cmd, which is not installed; "
                          "or give the text of `trace-cmd report -t`")
        with subprocess.Popen([tool, "report", "-t", "-N", "-i", self.path], stdin=subprocess.DEVNULL,
                              stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True,
                              errors="replace") as process:
            yield from map(str.rstrip, process.stdout)
        if process.returncode:
            raise Refused(f"{self.path}: trace-cmd report ends with {process.returncode}: "
                          "is it a whole trace.dat?")

    def items(self):
        """Yields Events and Holes. A Hole comes right before the next event of its CPU."""
        self.reset()
        match, last, waiting, convert, told = None, {}, {}, self.convert, False
        seen, backwards, before = 0, 0, None
        for number, line in enumerate(self.lines(), 1):
            found = match(line) if match else None
            if not found:
                if self.beside(line, waiting):
                    continue
                if not match:
                    self.form, match = self.decided(number, line)
                    found = match(line)
            if not found:
                self.leave_out(number, line)
                continue
            comm, tid, tgid, cpu, flags, whole, fraction, system, name, text = found.group(*GROUPS)
            cpu = int(cpu)
            # The fast path: nanoseconds, as perf and trace-cmd -t print them.
            ns = int(whole + fraction) if fraction and len(fraction) == 9 and not self.ticks else \
                self.time(number, whole, fraction)
            if convert:
                ns = convert(ns)
            if name is None:
                waiting.setdefault(cpu, []).append(int(found["lost"]))
                told = True
                continue
            if waiting and cpu in waiting:
                yield self.hole(cpu, last.get(cpu), ns, waiting.pop(cpu))
            elif self.overwritten and cpu not in last and before is not None:
                yield self.hole(cpu, None, ns, [])
            last[cpu] = ns
            if before is None:
                self.first_ns = before = ns
            if ns < before:
                backwards += 1
            before = ns
            seen += name not in MARKS
            yield Event(ns, cpu, int(tid), int(tgid) if tgid and tgid.isdigit() else None, comm.rstrip(),
                        flags or "", system or "", name, text or "")
        self.cpus, self.count, self.backwards, self.last_ns = set(last), seen, backwards, before
        # Why: perf leaves them out without --show-lost-events.
        self.tells_lost = told or self.form != "perf"
        for cpu, counts in waiting.items():
            yield self.hole(cpu, last.get(cpu), self.last_ns, counts)

    def beside(self, line, waiting):
        """True: the line is no event: a head, a stack, or it says that events were lost."""
        if not line or line[0] == "#":
            if (found := BUFFERED.match(line)) and int(found[2]) > int(found[1]):
                self.overwritten += int(found[2]) - int(found[1])
            return True
        if found := LOST.match(line):
            count = found[2] or found[3]
            waiting.setdefault(int(found[1]), []).append(int(count) if count else None)
            return True
        return BESIDE.fullmatch(line) is not None

    def decided(self, number, line):
        """(name, pattern) of the file's form, which its first event tells."""
        for name, form in FORMS.items():
            if form.fullmatch(line):
                self.quantum_ns = 1000 if name == "latency" else 1
                return name, form.fullmatch
        raise Refused(f"{self.path}:{number}: no line of ftrace: {line[:60]!r}; give the text of tracefs, of "
                      "`trace-cmd report` or of `perf script --ns`, or a trace.dat")

    def leave_out(self, number, line):
        self.left_out += 1
        if self.left_out <= SAID:
            self.malformed.append(f"{self.path}:{number}: no event as the lines before it, left out: "
                                  f"{line[:60]!r}")

    def time(self, number, whole, fraction):
        """The stamp of a line, in ns or in ticks."""
        if self.form == "latency":
            return int(whole) * 1000
        if fraction is None:
            return int(whole)
        if self.ticks:
            raise Refused(f"{self.path}:{number}: a time in seconds, but --ftrace-clock says x86-tsc; "
                          "say mono or boot, as trace_clock was")
        if len(fraction) == 6:
            self.quantum_ns = 1000
            return int(whole + fraction) * 1000
        return int(whole + fraction.ljust(9, "0"))

    def hole(self, cpu, since, until, counts):
        """Counts a hole. Why the first event of any CPU: nothing of this one is known before."""
        self.holes += 1
        self.uncounted += None in counts
        known = [count for count in counts if count is not None]
        self.lost += sum(known)
        if since is None:
            since = until if self.first_ns is None else min(self.first_ns, until)
        return Hole(cpu, since, until, None if None in counts else sum(known))


def fields(text):
    """The fields that an event printed as name=value."""
    return {key: value.strip() for key, value in FIELD.findall(text)}


def whole_number(value):
    """The number that a value begins with, decimal or hexadecimal; None: it begins with none."""
    found = re.match(r"-?(?:0x[\da-fA-F]+|\d+)", value or "")
    return int(found[0], 0 if "x" in found[0] else 10) if found else None
