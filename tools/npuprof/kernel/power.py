# SPDX-License-Identifier: MIT
"""Clock rates, runtime power management and temperatures of devices, and what they did to jobs.

A resume delays a job if the thread that submits it, or the one that gives it to the hardware, calls it in
between: then its device is that of the job, and its suspended times are worth a word. A clock rate belongs to
jobs if its device has the name of their ring or of that device, or is the only one with a rate."""

import re
from bisect import bisect_right
from collections import namedtuple

from .jobs import FOREVER, apart

FREQUENCY = re.compile(r"dev_name=(\S+)\s+freq=(\d+)\s+prev_freq=(\d+)")
CALL = re.compile(r"(\S+) flags-[\da-f]*[02468ace]\b")   # an odd one, RPM_ASYNC, only asks for it
RETURNED = re.compile(r".*?:(\S+) ret=(-?\d+)")
TEMPERATURE = re.compile(r"thermal_zone=(.*) id=\d+ temp_prev=-?\d+ temp=(-?\d+)")
COOLING = re.compile(r"type=(.*) target=(\d+)")
SLOWED_PCT = 5             # of the time in jobs; less is not worth a word
# A call of rpm_resume() or rpm_suspend(), in the order of their ends. what: "resume", "suspend", or "active":
# a resume that had nothing to do
Call = namedtuple("Call", "what device tid start end")


class Power:
    """What the events tell. rates: device -> [(ns, Hz before, Hz)]; calls: [Call]; zones, coolers: name ->
    [(ns, value)]; holes: [(since, until)] in which events were lost, ascending and apart."""

    def __init__(self):
        self.rates, self.calls, self.zones, self.coolers, self.holes = {}, [], {}, {}, []
        self.open = {}                         # (tid, device) -> (what, ns) of a call that did not return yet
        self.handlers = {
            "devfreq_frequency": self.frequency, "rpm_resume": self.call, "rpm_suspend": self.call,
            "rpm_return_int": self.returned, "thermal_temperature": self.temperature,
            "cdev_update": self.cooling}

    def frequency(self, event):
        found = FREQUENCY.match(event.text)
        if found:
            self.rates.setdefault(found[1], []).append((event.ns, int(found[3]), int(found[2])))

    def call(self, event):
        found = CALL.match(event.text)
        if found:
            self.open[event.tid, found[1]] = event.name.removeprefix("rpm_"), event.ns

    def returned(self, event):
        found = RETURNED.fullmatch(event.text)
        what, since = self.open.pop((event.tid, found[1]), (None, 0)) if found else (None, 0)
        was_active = what == "resume" and found[2] == "1"
        if was_active or what and found[2] == "0":
            self.calls.append(Call("active" if was_active else what, found[1], event.tid, since, event.ns))

    def temperature(self, event):
        self.put(self.zones, TEMPERATURE.match(event.text), event.ns)

    def cooling(self, event):
        self.put(self.coolers, COOLING.match(event.text), event.ns)

    @staticmethod
    def put(series, found, ns):
        if found:
            series.setdefault(found[1], []).append((ns, int(found[2])))

    # ---- After the last event

    def steps(self, device):
        """[(ns, Hz or None)] of a device in the order of time; at 0 what held before the first change. None:
        a change may be among lost events. Behind them the next change tells what held before it."""
        changes = self.rates[device]
        found, n = [(0, changes[0][1])], 0
        for since, until in [*self.holes, (FOREVER, FOREVER)]:
            while n < len(changes) and changes[n][0] <= since:
                found.append((changes[n][0], changes[n][2]))
                n += 1
            while n < len(changes) and changes[n][0] <= until:
                n += 1
            if since < FOREVER:
                found += [(since, None), (until, changes[n][1] if n < len(changes) else None)]
        return found

    def unknown(self, device, last):
        """[(start, end)] in which nobody knows the rate of a device. last: ns of the last event."""
        steps = [step for step in self.steps(device) if step[0] < last]
        return apart([(since, until) for (since, rate), (until, _) in zip(steps, [*steps[1:], (last, 0)])
                      if rate is None and since < until])

    def counters(self):
        """Yields (name, unit, [(ns, value)] in the order of time); at 0 what held before the first change."""
        for device in sorted(self.rates):
            yield (f"{device} frequency", "Hz",
                   [(ns, rate) for ns, rate in self.steps(device) if rate is not None])
        for zone, own in sorted(self.zones.items()):
            yield f"{zone} temperature", "mdegC", own
        for cooler, own in sorted(self.coolers.items()):
            yield f"{cooler} cooling", "state", own

    def suspended(self, device, first, last):
        """[(start, end)] in which a device was suspended, within two times."""
        found, since = [], first
        for call in sorted(self.calls, key=lambda call: call.end):
            if call.device != device:
                continue
            if call.what == "suspend":
                since = call.end
            else:
                if since is not None and call.what == "resume":
                    found.append((max(first, since), call.start))
                since = None
        # Why only behind a call: without one it may have been awake all the time.
        found += [(since, last)] if since not in (None, first) else []
        # Why not behind a hole: what ended it may be among the lost events.
        found = [(start, min([end, *(max(start, since) for since, until in self.holes if until > start)]))
                 for start, end in found]
        return [(start, end) for start, end in found if end > start]

    def delays(self, spans):
        """{Job: (device, ns)} of those that a resume delayed. spans: Spans of jobs."""
        resumes, found = {}, {}                # tid -> its calls, in the order of their ends
        for call in self.calls:
            if call.what == "resume":
                resumes.setdefault(call.tid, []).append(call)
        for span in spans if resumes else ():
            job = span.job
            if span.start_why == "start by order":
                continue                       # it waited for the job before
            latest = span.start if job.high is None else max(span.start, job.high)
            own = []
            for tid in {job.tid, job.runner}:
                calls, until = resumes.get(tid, ()), latest
                # Why: what the submitter does behind the submission holds no job back.
                if tid != job.runner and not job.own:
                    until = min(until, job.submit)
                n = bisect_right(calls, job.arm, key=lambda call: call.end)
                # Why the next, too: a call that begins earlier may end behind those that it makes.
                while n < len(calls) and min(call.start for call in calls[n:n + 2]) < until:
                    own.append((max(calls[n].start, job.arm), min(calls[n].end, until), calls[n].device))
                    n += 1
            own = [one for one in own if one[0] < one[1]]
            if own:
                # Why the longest: one resume calls that of its parent.
                device = max(own, key=lambda one: one[1] - one[0])[2]
                found[job] = device, sum(b - a for a, b in apart([one[:2] for one in own]))
        return found

    def slowed(self, busy, names):
        """Yields (device, highest rate, ns below it, ns in jobs in which the rate is known). busy: [(start,
        end)] of jobs; names: words that the jobs' devices are called by."""
        related = {device for device in self.rates if any(device in name or name in device for name in names)}
        for device in sorted(related or (self.rates if len(self.rates) == 1 else ())):
            steps = self.steps(device)
            highest, below, known = max(rate for _, rate in steps if rate is not None), 0, 0
            for (since, rate), (until, _) in zip(steps, [*steps[1:], (FOREVER, 0)]):
                ns = 0 if rate is None else within(busy, since, until)
                known, below = known + ns, below + (ns if ns and rate < highest else 0)
            yield device, highest, below, known

    def notes(self, spans, busy, names, last):
        """Yields sentences on what it did to jobs. busy, names: see slowed(); last: ns of the last event."""
        busy = apart(busy)
        delays = self.delays(spans)
        for device in sorted({device for device, _ in delays.values()}):
            own = [ns for name, ns in delays.values() if name == device]
            yield (f"{len(own)} jobs began late by the resume of {device}, {in_ms(sum(own))} ms together, "
                   f"{in_ms(max(own))} ms at most: it was suspended between jobs, "
                   f"{in_ms(sum(b - a for a, b in self.suspended(device, busy[0][0], last)))} ms in all; "
                   "a longer autosuspend_delay_ms in its power folder, or `on` in control, keeps it awake")
        devices = {device for device, _ in delays.values()}
        total = sum(end - start for start, end in busy)
        for device, highest, below, known in self.slowed(busy, {*names, *devices}):
            if 100 * below >= SLOWED_PCT * known > 0:
                hot = ", ".join(f"{cooler} cooled with state {max(value for _, value in own)}"
                                for cooler, own in sorted(self.coolers.items()) if any(v for _, v in own))
                yield (f"{device} was throttled or saved power: in {100 * below // known} % of the time in "
                       f"jobs it ran below {highest} Hz"
                       + f", of {in_ms(known)} of {in_ms(total)} ms: lost events may tell of more"
                       * (known < total) + (f"; {hot}" if hot else ""))


def within(intervals, since, until):
    """ns of intervals, ascending and apart, in [since, until)."""
    n, ns = max(0, bisect_right(intervals, (since, FOREVER)) - 1), 0
    while n < len(intervals) and intervals[n][0] < until:
        ns += max(0, min(intervals[n][1], until) - max(intervals[n][0], since))
        n += 1
    return ns


def in_ms(ns):
    return f"{ns / 1e6:.3g}"
