# SPDX-License-Identifier: MIT
"""Samples what the kernel counts of devices: energy, power, clocks, memory, how busy and whether awake.

    counters -o counters.json 5                   for five seconds
    counters -o counters.json                     until Ctrl-C
    counters -o counters.json -- ./program        while the program runs, with what fdinfo says of it
    merge run.npuprof counters.json -o both.json  on one timeline with the spans; then `report both.json`

Read are: runtime PM, hwmon and devfreq of accelerators and GPUs, the files of ivpu, energy of powercap, and
fdinfo of the program and all that it starts (engines, cycles, memory). A device that is asleep is not read:
it has no samples then. --list says what there is here, and what needs another right.

Each counter is a track with its unit; energy is the sum since the first sample. A value is that of some
moment while it was read; how old the device's own value is, the kernel does not say. The table `energy` of
`report` has the energy of each inference, with its error.

Exit code: that of the command; 0 without one; 2: nothing to sample, or the output cannot be used.
"""

import os
import socket
import sys
import threading
import time

from ..base.contract import MAJOR
from ..base.files import check_output, whole_file
from ..base.messages import Refused
from ..base.running import Ended, run_command, seconds_of
from ..base.strict_json import json_text
from ..read.own_layout import HEAD
from .sources import Clients, Sysfs

PERIOD_MS, LEAST_MS, MOST_MS = 10.0, 1, 60000
FAMILY_NS = 10**8              # how often it is looked for new processes and files
CLOCK = getattr(time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC)


def add_arguments(parser):
    parser.add_argument("-o", "--output", default="counters.json", metavar="FILE.json",
                        help="also with .gz (default: counters.json)")
    parser.add_argument("--period", type=float, default=PERIOD_MS, metavar="MS",
                        help=f"ms between two samples (default {PERIOD_MS:g})")
    parser.add_argument("--pid", type=int, action="append", default=[],
                        help="what fdinfo says of this process, too")
    parser.add_argument("--hwmon", action="append", default=[], metavar="NAME",
                        help="of a hwmon device that is no accelerator's, too, such as coretemp")
    parser.add_argument("--list", action="store_true", help="say what can be sampled here, and end")
    parser.add_argument("what", nargs="*", metavar="SECONDS | -- COMMAND",
                        help="how long, or a command with its arguments; nothing: until Ctrl-C")


class Sampler:
    """Takes samples into lines of a trace. now: the clock, ns. started: its time of ts 0."""

    def __init__(self, sources, clients, pids, now=lambda: time.clock_gettime_ns(CLOCK)):
        self.sources, self.clients, self.pids, self.now = sources, clients, pids, now
        self.started, self.lines, self.looked, self.family = now(), [], None, []
        self.count, self.longest_ns, self.late, self.drawn = 0, 0, 0, set()

    def put(self, source, before, value):
        """Takes a value that was read since `before`."""
        after = self.now()
        self.longest_ns = max(self.longest_ns, after - before)
        drawn = source.sample((before + after) // 2, value)
        if drawn is not None:
            at = (before + after) // 2 - self.started
            name, args = json_text(f"{source.of}: {source.name}"), json_text({source.unit: round(drawn, 6)})
            self.lines.append(f'{{"ph":"C","name":{name},"pid":{os.getpid()},"tid":1,'
                              f'"ts":{at // 1000}.{at % 1000:03},"args":{args}}}'.encode())
            self.drawn.add((source.of, source.name))
            self.count += 1

    def tick(self):
        """One sample of each source that is due."""
        for source in self.sources:
            before = self.now()
            if (source.due is None or before >= source.due) and (source.awake is None or source.awake()):
                value = source.read()
                if value is not None:
                    self.put(source, before, value)
                    source.due = before + source.every
        before = self.now()
        if self.pids and (self.looked is None or before - self.looked >= FAMILY_NS):
            self.looked, self.family = before, [one for pid in self.pids for one in self.clients.family(pid)]
        for source, value in self.clients.values(self.family):
            self.put(source, before, value)
            before = self.now()

    def run(self, event, period_ns):
        """Samples until the event."""
        due = self.now()
        while True:
            self.tick()
            due += period_ns
            left = due - self.now()
            if left < 0:
                self.late += 1
                due -= left
            if event.wait(max(0, left) / 1e9):
                self.tick()
                return

    def about(self, period_ms):
        """The metadata of the trace."""
        unix = time.time_ns() - (time.clock_gettime_ns(CLOCK) - self.started)
        mono = time.monotonic_ns() - (time.clock_gettime_ns(CLOCK) - self.started)
        return {"version": f"{MAJOR}.0.0", "host": socket.gethostname(), "program": "counters",
                "pid": os.getpid(), "start_unix_ns": unix, "start_monotonic_ns": mono,
                "start_boottime_ns": self.started,
                "clock": {"source": "kernel", "hz": 1000000000, "error_ns": self.longest_ns},
                "recorded": self.count, "lost": {}, "threads": 1, "devices": [],
                "user": {"period_ms": f"{period_ms:g}", "late_samples": str(self.late)}}


def write(sampler, output, period_ms):
    names = [b'{"ph":"M","name":"process_name","pid":%d,"tid":1,"args":{"name":"counters"}}' % os.getpid()]
    with whole_file(output) as file:
        file.write(HEAD + b"\n" + b",\n".join(names + sampler.lines))
        file.write(b'\n],\n"displayTimeUnit":"ns",\n"metadata":{"npuprof":'
                   + json_text(sampler.about(period_ms)).encode() + b"}}\n")


def listed(sysfs, sources):
    for source in sources:
        value = source.read() if source.awake is None or source.awake() else None
        now = "asleep, or no answer" if value is None else "counts" if source.grows else \
            f"{value * source.factor:g}"
        print(f"{source.of}: {source.name}, {source.unit}: {now}")
    for path in sysfs.refused:
        print(f"{path}: only root may read it: use sudo")
    if not sources and not sysfs.refused:
        print("no accelerator, GPU, devfreq or powercap device with counters; of programs, fdinfo is read")


def run(arguments):
    check_output(arguments.output, (".json",))
    if not LEAST_MS <= arguments.period <= MOST_MS:
        raise Refused(f"--period {arguments.period:g}: from {LEAST_MS} to {MOST_MS} ms")
    sysfs, clients, seconds = Sysfs(), Clients(), seconds_of(arguments.what)
    sources = sysfs.sources(arguments.hwmon)
    if arguments.list:
        listed(sysfs, sources)
        return 0
    has_command = bool(arguments.what) and seconds is None
    if not sources and not has_command and not arguments.pid:
        raise Refused("counters: there is nothing to sample here: no accelerator, GPU, devfreq or powercap "
                      "device with counters that may be read; --list says more")
    sampler, code = Sampler(sources, clients, arguments.pid), 0
    with Ended() as ended:
        def sample():
            sampler.run(ended.event, round(1e6 * arguments.period))
        thread = threading.Thread(target=sample, daemon=True)
        thread.start()
        try:
            if has_command:
                code = run_command(arguments.what, {}, ended, lambda pid: sampler.pids.append(pid))
            else:
                ended.event.wait(seconds)
        finally:
            ended.event.set()
            thread.join()
    write(sampler, arguments.output, arguments.period)
    print(f"counters: {arguments.output}: {sampler.count} samples of {len(sampler.drawn)} counters"
          + (f"; {sampler.late} rounds took longer than the period" if sampler.late else ""), file=sys.stderr)
    for path in sysfs.refused:
        print(f"counters: {path}: only root may read it: use sudo", file=sys.stderr)
    return code
