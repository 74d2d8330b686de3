# SPDX-License-Identifier: MIT
"""What a text of the kernel's tracer adds to merged traces: the jobs of devices as lanes, arrows from the
spans that submitted them, and in each span of a thread how long it ran, was ready, and slept until what.

A thread that submitted a job and has no marks gets a track of its own: its submissions and its sleeps. In one
with marks, a sleep that the end of a job ended is a span `asleep`. An arrow `ended` leads there from the job.
"""

import bisect
import json
import os
import re

from ..base.contract import ENDED, KERNEL
from .clock import clock_of
from .contexts import SLEEPS
from .jobs import FOREVER, apart, in_us
from .lines import KernelText
from .patterns import Patterns
from .sleeps import Sleeps
from .waits import chain, sentence
from .witness import Witness

CAT = KERNEL.encode()
SHARED = ("{} may be one engine in turns, or several at a time: while one of them works, nobody knows "
          "whether another one is idle, or when its job starts; lines of the driver tell it, if it has any: "
          "`start` in a file of --ftrace-devices")
UNNAMED = ("no line names the devices of {}: their lanes may be of one device or of several; Linux 6.17 and "
           "later name it: record gpu_scheduler, too")
MOST = 4096                      # intervals that the metadata hold
NAMED = 4                        # rings in a sentence
SPAN = re.compile(rb',"tid":(\d+),"ts":(\d+\.\d{3}),"dur":(\d+\.\d{3})')


class Kernel:
    """A text beside the parts of a merge; parts may be empty. natives: a function from a part to its threads,
    native number -> number."""

    def __init__(self, path, said, devices, parts, natives):
        self.path, first = path, parts[0] if parts else None
        self.text = KernelText(path, said == "x86-tsc")
        self.clock = clock_of(self.text, said, first)
        self.text.convert = self.clock.convert
        self.shift, self.anchor_error = (first.start - first.boot, first.anchor_error) if first else (0, 0)
        self.native, self.place = {}, {}       # part -> {number: native}; native -> (part, number)
        for part in parts:
            if part.lead is first.lead and not part.is_kernel:
                threads = natives(part)
                self.native[part] = {number: native for native, number in threads.items()}
                self.place |= {native: (part, number) for native, number in threads.items()}
        self.witness = Witness(self.text, Patterns(devices), self.place).read()
        self.jobs = [span for spans in self.witness.spans.values() for span in spans]
        self.jobs_of = {}                      # tid -> its jobs
        for span in self.jobs:
            self.jobs_of.setdefault(span.job.tid, []).append(span.job)
        self.covered = {tid: [] for tid in self.jobs_of}         # tid -> [(start, end)] of its spans
        self.sleeps = Sleeps(self.witness.waits, self.native, self.clock.error(self.text))
        # What the devices of jobs are called by, in parts.
        self.names = {word for span in self.jobs for word in span.job.lane.ring.split() if len(word) > 2}
        self.names |= {device["name"] for part in parts for device in part.about.get("devices", ())}
        self.notes, self.delays = [], {}
        self.drawn = set()                     # (tid, start) of sleeps that have their span
        self.slept = {}                        # Job -> (pid, tid, ns) in the sleep that it ended
        self.arrows = 0

    def begin(self):
        """The first moment that it adds, on the common timeline; None: it adds nothing."""
        first = min((min(span.job.arm, span.start) for span in self.jobs), default=None)
        return None if first is None else first + self.shift

    def with_waits(self, part, rest):
        """The end of a span's line, from its tid on, with what is known of its time."""
        span = SPAN.search(rest)
        if not span:
            return rest
        number, start, dur = (int(text.replace(b".", b"")) for text in span.groups())
        start += part.start - self.shift
        native = self.native.get(part, {}).get(number)
        if native is None:
            self.sleeps.device(part, number, start, start + dur, rest)
            return rest
        self.sleeps.host(native, start, start + dur, rest)
        more = self.known(native, start, dur)
        if not more:
            return rest
        # Why at the end: the kind of a span is the first of its arguments.
        if b',"args":{' not in rest:
            return rest[:-1] + b',"args":{' + more + b"}}"
        return rest[:-2] + b"," * (rest[-3:-2] != b"{") + more + b"}}"

    def arrow(self, part, phase, rest):
        """Takes an end of an arrow of a part."""
        self.sleeps.arrow(part, phase, rest, part.start - self.shift)

    def known(self, native, start, dur):
        """The members of args that it adds to a span of a thread, as bytes; empty for none."""
        if native in self.covered:
            self.covered[native].append((start, start + dur))
        parts = self.witness.waits.parts(native, start, start + dur)
        if parts is None or parts.running == dur or dur <= 0:
            return b""
        found = {"running_ns": parts.running, "ready_ns": parts.ready, "asleep_ns": parts.asleep}
        if parts.unknown:
            found["unknown_ns"] = parts.unknown
        if parts.longest:
            off = parts.longest
            found["why"] = sentence(off)
            done = next((hop.done for hop in off.hops if hop.job), None)
            if done is not None:
                until = min(off.back, start + dur)
                found["device_ns"] = max(0, min(done, until) - max(off.out, start))
                found["notice_ns"] = max(0, until - max(done, start))
        return json.dumps(found, separators=(",", ":"))[1:-1].encode()

    def lines(self, base, taken, flow):
        """Yields the lines of its tracks. base: of the common timeline; taken: pids in use; flow: the last
        number of an arrow."""
        self.base, self.flow, self.taken = base, flow, set(taken)
        self.threads = {}                      # pid -> (process, {tid: tid}) of threads without marks
        for sleep in self.sleeps.found():
            part, number, start, end = sleep.job
            yield from self.asleep(sleep)
            yield from self.ended(part.pid, number + part.tid_shift, max(start, end - 1), self.within(sleep))
        for tid in sorted(self.jobs_of):
            yield from self.thread(tid)
        self.covered = {tid: apart(own) for tid, own in self.covered.items()}
        pid, power = self.new_pid(1), self.witness.power
        self.delays = power.delays(self.jobs)
        if self.witness.spans or power.rates or power.zones or power.coolers:
            yield from named(pid, f"devices ({os.path.basename(self.path)})", 1000)
        track = 0
        for ring, lane, spans in sorted((lane.ring, lane.name, spans)
                                        for lane, spans in self.witness.spans.items()):
            for row, own in enumerate(rows(spans)):
                track += 1
                yield track_name(pid, track, f"{ring} {lane}" + (f" #{row + 1}" if row else ""))
                for span in own:
                    yield from self.job(pid, track, span)
        yield from self.power(pid, track)

    def power(self, pid, track):
        """Counters of rates and temperatures, and when the devices of delayed jobs were suspended."""
        power, last, base = self.witness.power, self.text.last_ns, self.base - self.shift
        for name, unit, own in power.counters():
            before = [value for ns, value in own if ns <= base]
            for ns, value in [(base, value) for value in before[-1:]] + own[len(before):]:
                yield (b'{"ph":"C","name":%s,"pid":%d,"tid":1,"ts":%d.%03d,"args":{"%s":%d}}' % (
                    json.dumps(name).encode(), pid, *divmod(ns - base, 1000), unit.encode(), value))
        for device in sorted({device for device, _ in self.delays.values()}):
            track += 1
            yield track_name(pid, track, f"{device} runtime power")
            for start, end in power.suspended(device, base, last):
                yield self.span(pid, track, "suspended", start, end, {})
        for device in sorted(power.rates):
            unknown = power.unknown(device, last)
            track += bool(unknown)
            if unknown:
                yield track_name(pid, track, f"{device} frequency")
            for start, end in unknown:
                yield self.span(pid, track, "not known: events were lost", max(start, base), end, {})
        busy = [(span.start, span.end) for span in self.jobs] + self.sleeps.busy()
        self.notes = list(power.notes(self.jobs, busy, self.names, last)) if busy else []

    def asleep(self, sleep):
        """The span of a sleep of a thread with marks, once."""
        if (sleep.tid, sleep.start) not in self.drawn:
            self.drawn.add((sleep.tid, sleep.start))
            yield self.span(*self.within(sleep)[:2], "asleep", sleep.start, sleep.end,
                            {"kind": "wait", "why": sentence(sleep.off)})

    def within(self, sleep):
        """(pid, tid, the last ns) of a sleep of a thread with marks."""
        part, number = self.place[sleep.tid]
        return part.pid, number + part.tid_shift, sleep.end - 1

    def thread(self, tid):
        """The track of a thread that has no marks; of one with marks, its sleeps for jobs of the text."""
        if tid in self.place:
            for job, sleep in self.sleeps.of_jobs(tid, set(self.jobs_of[tid])):
                self.slept[job] = self.within(sleep)
                yield from self.asleep(sleep)
            return
        jobs = sorted(self.jobs_of[tid], key=lambda job: job.arm)
        names, first = self.witness.names, jobs[0].arm
        name = one({names.name(tid, job.arm) for job in jobs}) or ""
        tgid = one({names.tgid(tid, job.arm) for job in jobs})
        process = (tgid, names.life(tgid, first)) if tgid else tid
        pid = next((pid for pid, (own, _) in self.threads.items() if own == process), None)
        if pid is None:
            pid = self.new_pid(tgid or tid)
            title = names.name(tgid, first) if tgid else name
            which = f"pid {tgid}" if tgid else f"tid {tid}"
            yield from named(pid, f"{title} ({which}, by the kernel)".strip(), 900)
            self.threads[pid] = process, {}
        self.threads[pid][1][tid] = tid
        yield track_name(pid, tid, name or str(tid), tid)
        lives = {names.life(tid, job.arm) for job in jobs}
        for job in jobs:
            end = max(job.submit, job.arm + 1)
            self.covered[tid].append((job.arm, end))
            yield self.span(pid, tid, "submit", job.arm, end, {"job": job.label})
        for off in self.witness.waits.of_thread.get(tid, ()):
            if off.kind == SLEEPS and off.out >= first and names.life(tid, off.out) in lives:
                job = chain(off.hops)[1]
                waits = job is not None and job.tid == tid
                if waits:
                    self.slept[job] = pid, tid, off.back - 1
                yield self.span(pid, tid, "asleep", off.out, off.back,
                                ({"kind": "wait"} if waits else {}) | {"why": sentence(off)})

    def job(self, pid, track, span):
        """A job on the device, the arrow that leads to it, and the one to the sleep that it ended."""
        job, names = span.job, self.witness.names
        known = None not in (span.start_error, span.end_error)
        args = {"stamp": "kernel", "job": job.label,
                "queue_ns": max(0, (job.submit if job.low is None else job.low) - job.submit),
                "thread": names.titled(job.tid, job.arm), "process": names.tgid(job.tid, job.arm),
                "client": job.client,
                "stream": job.lane.number, "start": span.start_why, "end": span.end_why,
                "end_by": job.irq_who if span.end_why.startswith("end by") else None,
                "resume_ns": self.delays.get(job, ("", None))[1],
                "start_error_ns": span.start_error, "end_error_ns": span.end_error,
                "error_ns": max(span.start_error, span.end_error) if known else None}
        args = {key: value for key, value in args.items() if value is not None}
        yield self.span(pid, track, "Execution", span.start, span.end, args)
        if job in self.slept:
            yield from self.ended(pid, track, max(span.start, span.end - 1), self.slept[job])
        at = next((at for at in (job.submit, job.arm) if inside(self.covered[job.tid], at)), None)
        if at is None:
            return
        if job.tid in self.place:
            part, number = self.place[job.tid]
            source = part.pid, number + part.tid_shift
        else:
            source = next(pid for pid, (_, own) in self.threads.items() if job.tid in own), job.tid
        self.arrows += 1
        yield from self.arrow_of(b"submit", (*source, min(at, span.start)), (pid, track, span.start))

    def ended(self, pid, track, last, sleep):
        """The arrow from the last ns of a job to the sleep (pid, tid, ns) that it ended."""
        if sleep[2] >= last:
            yield from self.arrow_of(ENDED.encode(), (pid, track, last), sleep)

    def new_pid(self, wish):
        pid = wish
        while pid in self.taken or pid < 1:
            pid = max(self.taken) + 1
        self.taken.add(pid)
        return pid

    def span(self, pid, tid, name, start, end, args):
        """The line of a span; times in the kernel's clock."""
        start += self.shift - self.base
        dur = end + self.shift - self.base - start
        text = json.dumps(args, separators=(",", ":"))
        return (b'{"ph":"X","name":"%s","cat":"%s","pid":%d,"tid":%d,"ts":%d.%03d,"dur":%d.%03d,"args":%s}'
                % (name.encode(), CAT, pid, tid, *divmod(start, 1000), *divmod(dur, 1000), text.encode()))

    def arrow_of(self, name, *ends):
        """The lines of an arrow between two (pid, tid, ns)."""
        self.flow += 1
        for phase, bind, (pid, tid, ns) in zip((b"s", b"f"), (b"", b',"bp":"e"'), ends):
            yield (b'{"ph":"%s","name":"%s","pid":%d,"tid":%d%s,"cat":"%s","id":%d,"ts":%d.%03d}' % (
                phase, name, pid, tid, bind, name, self.flow, *divmod(ns + self.shift - self.base, 1000)))

    # ---- What it says of itself

    def errors(self, spans):
        """The largest error that is known of some Spans."""
        return max((error for span in spans for error in (span.start_error, span.end_error)
                    if error is not None), default=0)

    def add_to(self, about):
        """Adds to the metadata of the merged trace."""
        text, counts = self.text, self.witness.counts
        about["ftrace"] = {"file": os.path.basename(self.path), "form": text.form, "events": text.count,
                           "cpus": len(text.cpus), "clock": self.clock.how, "error_ns": self.error(),
                           "jobs": len(self.jobs), "no_begin_seen": counts["no begin seen"],
                           "no_end_seen": counts["no end seen"],
                           "never_ran": counts["never ran"], "left_out": text.left_out,
                           "overwritten": text.overwritten, "holes": text.holes,
                           # Why not in `lost`: these are lines of the kernel and no spans.
                           "lost": text.lost + text.uncounted if text.tells_lost else None,
                           "not_seen_ns": self.placed(self.witness.holes),
                           "rings": sorted({lane.ring for lane in self.witness.spans}),
                           "may_share": list(self.witness.shared.values()),
                           "unended_ns": [[ring, *pair] for ring, own in sorted(self.witness.unended.items())
                                          for pair in self.placed(own)],
                           "notes": [*self.doubts(), *self.notes]}
        rings = {}
        for lane, spans in self.witness.spans.items():
            rings.setdefault(lane.ring, []).extend(spans)
        sync = {"rate_hz": None, "drift_ppm": None, "anchors": 0, "wraps": 0, "resets": 0,
                "causality_violations": 0}
        about["devices"] += [{"name": ring, "clock_sync": sync | {"max_error_ns": self.errors(spans)}}
                             for ring, spans in sorted(rings.items())]

    def placed(self, intervals):
        """Intervals of the kernel's clock on the common timeline. Of very many, some are joined."""
        while len(intervals) > MOST:
            intervals = [(pair[0][0], pair[-1][1])
                         for pair in (intervals[n:n + 2] for n in range(0, len(intervals), 2))]
        return [[since + self.shift - self.base, until + self.shift - self.base]
                for since, until in intervals]

    def doubts(self):
        """Yields what the text does not tell."""
        text, unended = self.text, self.witness.counts["no end seen"]
        never = self.witness.counts["never ran"]
        if not text.tells_lost:
            yield ("text of perf script: nobody knows whether events were lost; "
                   "write it with `perf script --ns --show-lost-events`")
        elif text.lost or text.uncounted:
            yield (f"{'at least ' * bool(text.uncounted)}{text.lost + text.uncounted} kernel events lost, "
                   f"in {text.holes} hole{'s' * (text.holes > 1)}: jobs and waits may be missing there, and "
                   "idle times in them are not certain")
        if text.overwritten:
            yield (f"{text.overwritten} kernel events were overwritten before the first line: what was "
                   "before is not in the text")
        if unended:
            yield (f"{unended} job{'s' * (unended > 1)} without an end: not drawn, and not in the depth; "
                   "idle times are not certain where it may have run")

        if never:
            yield (f"{never} job{'s' * (never > 1)} ended and never ran, by the lines of the scheduler: not "
                   "drawn; that is so when a program is killed, or a device is reset")
        for hardware, rings in self.witness.shared.items():
            yield SHARED.format(listed(rings)) if hardware else UNNAMED.format(listed(rings))

    def error(self):
        """ns that its stamps may be off the common timeline; None: not known."""
        own = self.clock.error(self.text)
        return None if own is None else own + self.text.quantum_ns + self.anchor_error

    def sentences(self):
        """Yields what the user should know of it."""
        text, counts = self.text, self.witness.counts
        lost = f"{text.lost} lost" if text.tells_lost else "whether events were lost is not known"
        if text.uncounted:
            lost += f", and in {text.uncounted} places nobody knows how many"
        if text.overwritten:
            lost += f", {text.overwritten} overwritten before the first"
        error = "the error is not known" if self.error() is None else f"error at most {self.error()} ns"
        yield f"{text.count} events of {len(text.cpus)} CPUs, by {self.clock.how}; {error}; {lost}"
        if self.jobs or counts:
            unknown = sum(None in (span.start_error, span.end_error) for span in self.jobs)
            yield (f"{len(self.jobs)} jobs in {len(self.witness.spans)} lanes, {self.arrows} arrows; "
                   f"error of the others at most {in_us(self.errors(self.jobs))} us, of {unknown} not known; "
                   f"{counts['no begin seen']} without a begin and {counts['no end seen']} without an end "
                   "are not drawn")
        yield from text.malformed
        if text.left_out > len(text.malformed):
            yield f"{text.left_out - len(text.malformed)} more lines left out"
        yield from self.witness.notes
        yield from self.doubts()
        yield from self.notes


def listed(names):
    """Some names in words."""
    return ", ".join(names[:NAMED]) + f" and {len(names) - NAMED} more" * (len(names) > NAMED)


def one(values):
    """The only one of a set, else None."""
    return next(iter(values)) if len(values) == 1 else None


def inside(intervals, ns):
    """True: one of the intervals, ascending and apart, holds that moment."""
    n = bisect.bisect_right(intervals, (ns, FOREVER)) - 1
    return n >= 0 and ns < intervals[n][1]


def rows(spans):
    """The Spans in rows, so that those of a row do not overlap."""
    found, ends = [], []
    for span in sorted(spans, key=lambda span: (span.start, span.end)):
        row = next((n for n, end in enumerate(ends) if end <= span.start), len(ends))
        if row == len(ends):
            ends.append(0)
            found.append([])
        ends[row] = span.end
        found[row].append(span)
    return found


def named(pid, name, sort):
    """The lines that name a process and give its place in the order."""
    for key, value in (("name", json.dumps(name)), ("sort_index", str(sort))):
        yield (b'{"ph":"M","name":"process_%s","pid":%d,"tid":1,"args":{"%s":%s}}'
               % (key.encode(), pid, key.encode(), value.encode()))


def track_name(pid, tid, name, native=None):
    more = b"" if native is None else b',"native_id":%d' % native
    return (b'{"ph":"M","name":"thread_name","pid":%d,"tid":%d,"args":{"name":%s%s}}'
            % (pid, tid, json.dumps(name).encode(), more))
