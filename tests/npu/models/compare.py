# SPDX-License-Identifier: MIT
"""Compares a trace with what a model's device truly did: compare.py TRACE TRUTH KEY=VALUE...

The truth has a line for each span: lane, name, number of the submission or -1, begin and end in ns of the
host's clock, for a sampled one when its counter showed 0; by tabs. Submission -2: an instant; -3: the last
value of a counter track. Its first line is the host time of the trace's instant "origin". The trace is read
by Python's json, which refuses NaN and Infinity here; double keys are refused.

  stamps=device   begin and end of a span are off by its stated error and one tick, at most (the default)
  stamps=sampled  the same of the times when the counter truly showed the span's ticks; and these lie within
                  1 us of the truth, the calls that sampled it
  stamps=host     a span lies around the true one: from its submission until it was seen
  tick_ns=N       length of a tick of the stamps; ns_per_tick=N: that of the counter, truly;
                  bits=N its width
  entries=N       records the device wrote; each span stands for per_span of them: spans * per_span + lost
                  (+ ends without a begin, begins without an end, kinds that nobody knows) = N
  per_span=N      default 1
  lost=N          records that must be lost; default 0. lost=any: entries= decides
  arrows=all      each span of a submission has an arrow from its block (default)
  arrows=right    those that are there are right
  arrows=none     arrows are not looked at: after a loss, entries without a job number may have the wrong one
  unfinished=N    spans that say so, which the truth has not; default 0; any
  unmatched=N     ends without a begin; default 0; any
  counts=A:R,...  argument A of each sampled span is R times its true ticks, to 500 ns
  ignore=NAME     device spans of this name are not looked at

compare.py TRACE strict only reads the trace, and looks that no device span ends before it begins.

Prints what is wrong, or one line of figures; exit code 1 when something is wrong."""
import bisect
import collections
import gc
import json
import re
import sys

SHOWN = 12
OPTIONS = {"stamps": "device", "tick_ns": "1", "ns_per_tick": "1", "bits": "64", "entries": "",
           "per_span": "1", "lost": "0", "arrows": "all", "unfinished": "0", "unmatched": "0", "ignore": "",
           "violations": "0", "counts": ""}
INSTANT, TOTAL = -2, -3


def ns(value):
    """A time in us, as it stands in the file, in ns."""
    whole, _, part = str(value).partition(".")
    return int(whole) * 1000 + int(part.ljust(3, "0")[:3] or 0) * (-1 if whole.startswith("-") else 1)


def no_constant(text):
    raise ValueError(f"{text} is no JSON")


def no_doubles(pairs):
    found = dict(pairs)
    if len(found) != len(pairs):
        raise ValueError(f"a key twice: {[key for key, _ in pairs]}")
    return found


class Span:
    """A device span of the trace."""

    def __init__(self, event, origin, lanes):
        self.args = event.get("args", {})
        self.name, self.tid, self.raw = event["name"], event["tid"], ns(event["ts"])
        self.begin = self.raw + origin
        self.end = self.begin + ns(event.get("dur", 0))
        self.lane = lanes.get(self.tid, self.args.get("pe_index", 0))
        self.error = self.args.get("error_ns", 0)


class Trace:
    """What a trace says about one device."""

    def __init__(self, path, origin_host, has_arrows=True):
        with open(path, encoding="utf-8") as file:
            whole = json.load(file, parse_float=str, parse_constant=no_constant, object_pairs_hook=no_doubles)
        events = whole["traceEvents"]
        origin = next(ns(e["ts"]) for e in events if e["name"] == "origin")
        shift = origin_host - origin
        self.sync = collections.Counter()
        for device in whole["metadata"]["npuprof"]["devices"]:
            self.sync.update({key: value for key, value in device["clock_sync"].items()
                              if type(value) is int})
            self.sync.update(device["clock_sync"].get("records", {}))
        spans = [e for e in events if e["ph"] == "X"]
        # A device of its own for each lane: NAME-LANE
        self.lanes = {e["tid"]: int(match.group(1)) for e in events if e["name"] == "thread_name"
                      and (match := re.match(r"[\w ]+-(\d+)\b", e["args"]["name"]))}
        self.device = [Span(e, shift, self.lanes) for e in spans
                       if "pe_index" in (e.get("args") or {})]
        self.instants = [Span(e, shift, self.lanes) for e in events
                         if e["ph"] == "i" and "pe_index" in (e.get("args") or {})]
        self.totals = {e["name"]: e["args"]["value"] for e in events if e["ph"] == "C"}
        self.blocks = sorted((ns(e["ts"]), ns(e["ts"]) + ns(e["dur"]), e["tid"], int(e["args"]["serial"]))
                             for e in spans if "serial" in (e.get("args") or {})
                             and "pe_index" not in e["args"])
        self.submitted = {block[3]: block[0] for block in self.blocks}
        self.arrows = self.read_arrows(events) if has_arrows else {}

    def read_arrows(self, events):
        """(tid, ts) of the span an arrow leads to -> the serial of the block that it comes from."""
        starts, ends = {}, {}
        for e in events:
            if e["ph"] in "sf" and e["cat"] != "flow":
                (starts if e["ph"] == "s" else ends)[e["id"]] = e
        found = collections.defaultdict(list)
        begins = [block[0] for block in self.blocks]
        for key, end in ends.items():
            start = starts.get(key)
            at = ns(start["ts"])
            number = bisect.bisect_right(begins, at) - 1
            while number >= 0 and (self.blocks[number][1] < at or self.blocks[number][2] != start["tid"]):
                number -= 1
            found[end["tid"], ns(end["ts"])].append(self.blocks[number][3] if number >= 0 else None)
        return found


class Comparison:
    """Which span is which job, and what is wrong."""

    def __init__(self, trace, truth, options):
        self.trace, self.options = trace, options
        self.truth = [line for line in truth if line[2] > INSTANT]
        self.instants = [line for line in truth if line[2] == INSTANT]
        self.totals = {line[1]: line[3] for line in truth if line[2] == TOTAL}
        self.problems, self.worst, self.stated, self.left_out = [], 0, 0, 0

    def wrong(self, text):
        self.problems.append(text)

    def run(self):
        ignored = self.options["ignore"].split(",")
        spans = [s for s in self.trace.device if s.name not in ignored]
        unfinished = [s for s in spans if s.args.get("unfinished")]
        spans = [s for s in spans if not s.args.get("unfinished")]
        unmatched = self.trace.sync["unmatched_ends"]
        for name, count in (("unfinished", len(unfinished)), ("unmatched", unmatched)):
            if self.options[name] not in ("any", str(count)):
                self.wrong(f"{name}: {count}, not {self.options[name]}")
        host, begun = self.options["stamps"] == "host", set()
        pairs = list(self.pair_by_job(spans) if host else self.pair_by_time(spans))
        for span, job in pairs:
            if span.args.get("stamp") != self.options["stamps"]:
                self.wrong(f"{span.name} of {job[2]}: stamp is {span.args.get('stamp')}")
            (self.check_around if host else self.check_near)(span, job)
            if not host or job[2] not in begun:  # the first record of a job has its arrow
                self.check_arrow(span, job)
            begun.add(job[2])
        self.check_counts(spans, pairs)
        if self.options["lost"] == "0":
            self.check_instants()
        for track, value in self.totals.items():
            if self.trace.totals.get(track) != value:
                self.wrong(f"{track} is {self.trace.totals.get(track)} at last, not {value}")

    def pair_by_time(self, spans):
        """Each span with the job that its arrow comes from, or else the job of its lane and name that begins
        nearest to it."""
        jobs = collections.defaultdict(list)
        for job in self.truth:
            jobs[job[0], job[1]].append(job)
        begins = {}
        for key, group in jobs.items():
            group.sort(key=lambda job: job[3])
            begins[key] = [job[3] for job in group]
        by_arrow = {(job[0], job[1], job[2]): i for group in jobs.values() for i, job in enumerate(group)
                    if job[2] >= 0}
        groups = collections.defaultdict(list)
        for span in spans:
            groups[span.lane, span.name].append(span)
        in_order = {}
        for key, group in groups.items():        # nothing is missing: the n-th is the n-th
            if len(group) == len(jobs.get(key, ())):
                group.sort(key=lambda span: int(span.args.get("start_ticks", span.begin)))
                in_order.update((id(span), i) for i, span in enumerate(group))
        taken = set()
        for span in spans:
            group = jobs.get((span.lane, span.name))
            if not group:
                self.wrong(f"{span.name} on lane {span.lane} is no job's")
                continue
            froms = self.trace.arrows.get((span.tid, span.raw), [])
            keys = [(span.lane, span.name, f) for f in froms]
            near = next((by_arrow[key] for key in keys if key in by_arrow
                         and (span.lane, span.name, by_arrow[key]) not in taken), in_order.get(id(span)))
            if near is None:
                at = bisect.bisect_left(begins[span.lane, span.name], span.begin)
                near = min((i for i in (at - 1, at) if 0 <= i < len(group)),
                           key=lambda i: abs(group[i][3] - span.begin))
            if (span.lane, span.name, near) in taken:
                self.wrong(f"{span.name} on lane {span.lane} at {span.begin} twice")
                continue
            taken.add((span.lane, span.name, near))
            yield span, group[near]

    def pair_by_job(self, spans):
        """Each span with the job whose block its arrow comes from."""
        blocks = [block[:2] for block in self.trace.blocks]
        jobs = collections.defaultdict(list)
        for job in self.truth:
            jobs[job[2]].append(job)
        for span in sorted(spans, key=lambda span: span.end):
            froms = self.trace.arrows.get((span.tid, span.raw), [])
            if not froms:                # a further record of a job: it begins in the same block
                number = bisect.bisect_right(blocks, (span.raw, 1 << 62)) - 1
                if number >= 0 and self.trace.blocks[number][1] >= span.raw:
                    froms = [self.trace.blocks[number][3]]
            froms = [f for f in froms if jobs.get(f)]
            if not froms:
                self.wrong(f"{span.name} at {span.begin} is no job's, or has no arrow")
                continue
            yield span, jobs[froms[0]].pop(0)

    def check_near(self, span, job):
        allowed = span.error + float(self.options["tick_ns"]) + 2
        begin, end = job[3:5]
        if self.options["stamps"] == "sampled":
            begin, end = self.sampled_at(span, job)
        off = round(max(abs(span.begin - begin), abs(span.end - end)))
        self.worst, self.stated = max(self.worst, off), max(self.stated, span.error)
        if off > allowed:
            self.wrong(f"{span.name} of submission {job[2]} on lane {span.lane}: {span.begin} to {span.end}, "
                       f"truth {job[3]} to {job[4]}: {off} ns off, stated {span.error}")

    def sampled_at(self, span, job):
        """When the counter truly showed what was sampled. A device that was reset in between says only how
        many ticks passed: then the times must lie in the block, and their distance must be those."""
        rate = float(self.options["ns_per_tick"])
        period = rate * 2 ** int(self.options["bits"])
        if "start_ticks" in span.args:
            begin, end = (job[5] + int(span.args[key]) * rate for key in ("start_ticks", "end_ticks"))
            laps = round((span.begin - begin) / period) * period
            begin, end = begin + laps, end + laps
        else:
            begin, end = span.begin, span.end
            if abs(int(span.args["ticks"]) * rate - (end - begin)) > 2 * span.error + 2 * rate + 2:
                self.wrong(f"{span.name} of submission {job[2]}: {span.args['ticks']} ticks in "
                           f"{end - begin} ns")
        if not job[3] - 1000 <= begin <= job[3] + 1000 or not job[4] - 1000 <= end <= job[4] + 1000:
            self.wrong(f"{span.name} of submission {job[2]}: {begin:.0f} to {end:.0f} is not {job[3:5]}")
        for count in filter(None, self.options["counts"].split(",")):
            name, _, ratio = count.partition(":")
            off = int(span.args.get(name, 0)) - (job[4] - job[3]) / rate * float(ratio)
            if abs(off) > 500 / rate * float(ratio):
                self.wrong(f"{span.name} of submission {job[2]}: {name} is {span.args.get(name)}, "
                           f"{off:.0f} off")
        return begin, end

    def check_instants(self):
        """The n-th of a lane and name is the n-th. Without a stamp it is drawn when it was seen."""
        groups = collections.defaultdict(lambda: ([], []))
        for span in self.trace.instants:
            groups[span.lane, span.name][0].append(span)
        for lane, name, _, at, *_ in self.instants:
            groups[lane, name][1].append(at)
        for (lane, name), (spans, truth) in groups.items():
            spans.sort(key=lambda span: int(span.args.get("start_ticks", span.begin)))
            if len(spans) != len(truth):
                self.wrong(f"instant {name} on lane {lane}: {len(spans)} of {len(truth)}")
            for span, at in zip(spans, sorted(truth)):
                off = span.begin - at
                if off + 1 < 0 if span.args["stamp"] == "host" else (
                        abs(off) > span.error + float(self.options["tick_ns"]) + 2):
                    self.wrong(f"instant {name} on lane {lane}: {span.begin}, truth {at}")

    def check_around(self, span, job):
        self.worst = max(self.worst, job[3] - span.begin, span.end - job[4])
        if not span.begin <= job[3] <= job[4] <= span.end + 1:
            self.wrong(f"{span.name} of submission {job[2]}: {span.begin} to {span.end} is not around "
                       f"{job[3]} to {job[4]}")

    def check_arrow(self, span, job):
        froms = self.trace.arrows.get((span.tid, span.raw), [])
        if job[2] < 0:
            return
        if self.options["arrows"] == "all" and not froms and span.raw < self.trace.submitted.get(job[2], 0):
            self.left_out += 1           # the clock's error puts it before its submission
        elif self.options["arrows"] == "all" and job[2] not in froms:
            self.wrong(f"{span.name} of submission {job[2]} at {span.begin}: arrows from {froms}")
        elif froms and job[2] not in froms:
            self.wrong(f"{span.name} of submission {job[2]} has arrows of {froms}")

    def check_counts(self, spans, pairs):
        options, sync = self.options, self.trace.sync
        lost = int(sync["ring_lost"])
        drawn = len(spans) * int(options["per_span"])
        drawn += sum(sync[key] for key in ("unmatched_ends", "unfinished", "unknown_records"))
        if options["lost"] != "any":
            if lost != int(options["lost"]):
                self.wrong(f"{lost} records lost, not {options['lost']}")
            if lost == 0 and len(pairs) != len(self.truth):
                self.wrong(f"{len(pairs)} spans of {len(self.truth)}")
        if options["entries"] and drawn + lost != int(options["entries"]):
            self.wrong(f"{len(spans)} spans ({drawn} records) + {lost} lost are not {options['entries']} "
                       f"records")
        if self.left_out > int(sync["arrows_left_out"]):
            self.wrong(f"{self.left_out} arrows are missing, {sync['arrows_left_out']} were left out")
        if int(sync["causality_violations"]) != int(options["violations"]):
            self.wrong(f"{sync['causality_violations']} causality violations")


def main():
    gc.disable()                    # Why: the look for cycles took a third of the time, and there are none
    path, truth_path, *words = sys.argv[1:]
    if truth_path == "strict":
        spans = Trace(path, 0).device
        sys.exit(1 if any(span.end < span.begin for span in spans) else 0)
    options = dict(OPTIONS, **dict(word.split("=", 1) for word in words))
    unknown = set(options) - set(OPTIONS)
    if unknown:
        sys.exit(f"no such option: {', '.join(unknown)}")
    with open(truth_path, encoding="utf-8") as file:
        origin = int(file.readline())
        truth = []
        for line in file:
            lane, name, submission, begin, end, zero = line.rstrip("\n").split("\t")
            truth.append((int(lane), name, int(submission), int(begin), int(end), float(zero)))
    comparison = Comparison(Trace(path, origin, options["arrows"] != "none"), truth, options)
    comparison.run()
    for problem in comparison.problems[:SHOWN]:
        print(f"  {problem}")
    if comparison.problems:
        print(f"  {len(comparison.problems)} problems, {len(comparison.trace.device)} device spans, "
              f"{len(truth)} in truth")
        sys.exit(1)
    print(f"note {path.rpartition('/')[2]}: {len(comparison.trace.device)} device spans, largest true error "
          f"{comparison.worst} ns, largest stated {comparison.stated} ns, "
          f"lost {comparison.trace.sync['ring_lost']}")


if __name__ == "__main__":
    main()
