# SPDX-License-Identifier: MIT
"""Compares two traces, or several runs a side: what got slower or faster, and how certain that is.

It compares spans by name, host and device apart, without warm-up and unfinished spans; and NPU Run and NPU
IoWait of the executions. For each it prints:
  the medians (or --of p90, p99)
  the change in percent with its 95 % interval, from the binomial distribution of how many spans are below
  p, the probability of samples this far apart if that percentile had not changed; of a median that of their
  ranks (Mann and Whitney's U), which sees smaller changes; with Holm's correction for the number of names
  slower or faster if p < 0.05 and the interval is on one side of 0; nothing is said about fewer spans on a
  side than give an interval: 5 for p50, 29 for p90, 299 for p99

Then come spans and operators that only some runs have: those that came, and those that went. What only some
runs of a side have is told as that: it may be chance.

Then it says where the difference of the mean inference comes from: operators, transfers, host spans, start
latency, notice, other jobs in the queue, each with a count effect (more or fewer of them), a clock effect
(the whole device by one factor) and a time effect. The rows add up to the difference exactly. Each is sure if
means so far apart are no chance; a mean may rise while the median falls. Last it names what else differs:
versions, devices, warm-up, losses.

It assumes that the spans of a name are independent. Spans of one run share its clock rates, caches and
neighbours, so a small p says that these two runs differ. To say it of two programs, record each more than
once: diff A1 A2 A3 --to B1 B2 B3 prints medians over the runs, and of each side the spread: its largest run
without its smallest. A difference is told if all runs of one side lie beyond those of the other, and the
medians are further apart than either spread. All traces should be of the same work.

Exit code 0; 1: with --fail-above, some span is told to be slower by more than that; 2: a file cannot be used,
or with --fail-above no span comes often enough to tell.
"""

import gc
import math
import re
from array import array
from collections import namedtuple

from . import loops
from .analysis import compare as attribution
from .analysis import evidence
from .analysis.evidence import percent_of
from .analysis.facts import Facts
from .analysis.figures import holm
from .base.contract import UNFINISHED
from .base.files import check_output
from .base.messages import Refused
from .read import load
from .report.data_files import write_json
from .report.text import cell, table_lines
from .tables.arithmetic import mean, percentile
from .tables.executions import Device
from .tables.table import Table

Change = namedtuple("Change", "where name before after counts percent low high p verdict")
ALPHA = 0.05
SHOWN, NAMED = 20, 5    # rows of the difference; names in a sentence
STATISTICS = {"p50": 500, "p90": 900, "p99": 990}


def samples(trace):
    """(where, name) -> durations, ascending. where: "host", "device" or "npu"."""
    devices, names = bytearray(track.kind == "device" for track in trace.tracks), len(trace.names)
    keys = loops.placed(trace.track, trace.name, devices, names, trace.warm_up, trace.flags, UNFINISHED)
    # Why not the last: its key is that of spans left out.
    columns = loops.grouped(keys, 2 * names + 1, trace.dur)[:-1]
    found = {(("host", "device")[key // names], trace.names[key % names]): column
             for key, column in enumerate(columns) if len(column)}
    executions = [(e.run, e.wait) for e in Device(trace).executions() if e.run is not None]
    if executions:
        for name, own in zip(("NPU Run", "NPU IoWait"), zip(*executions)):
            found["npu", name] = array("q", sorted(own))
    return found


class Run:
    """What is compared of one trace. samples: see samples(). paths, host, about: see analysis/compare.py."""

    def __init__(self, path):
        facts = Facts(load(path, progress=True))
        self.path, self.samples = facts.trace.path, samples(facts.trace)
        if not self.samples:
            raise Refused(f"{path}: no spans to compare outside warm-up")
        self.paths, self.host = attribution.sides_of(facts)
        self.about = attribution.about(facts)


def runs_of(paths):
    """Yields the Run of each path. Why the collection: a trace is large, and holds itself in circles."""
    for path in paths:
        run = Run(path)
        gc.collect()
        yield run


def compare(a, b, per_mille=500):
    """The Changes between two traces' samples(), the largest change of total time first."""
    rows, least = [], evidence.least(per_mille)
    for key in sorted(a.keys() & b.keys()):
        before, after = percentile(a[key], per_mille), percentile(b[key], per_mille)
        low = high = p = None
        if min(len(a[key]), len(b[key])) >= least:
            low, high = evidence.interval(a[key], b[key], per_mille)
            # Why ranks of a median: the binomial test sees half as much of a small change of few spans. Its
            # interval must agree, as ranks differ with equal medians, too.
            p = (evidence.rank_p(a[key], b[key]) if per_mille == 500 else
                 evidence.percentile_p(a[key], b[key], per_mille))
        rows.append(Change(*key, before, after, (len(a[key]), len(b[key])), percent_of(before, after), low,
                           high, p, "too few"))
    for n, (row, p) in enumerate(zip(rows, holm([row.p for row in rows]))):
        if p is not None:
            is_told = p < ALPHA and not row.low <= 0 <= row.high
            rows[n] = row._replace(p=p, verdict=direction(row) if is_told else "same")
    return by_weight(rows)


def compare_runs(before, after, per_mille=500):
    """The Changes between the samples() of several runs a side: medians over the runs, and for the interval
    and p the spread of each side. What is not in every run is left out."""
    rows = []
    for key in sorted(set.intersection(*(set(own) for own in (*before, *after)))):
        values = [[percentile(own[key], per_mille) for own in side] for side in (before, after)]
        one, two = (percentile(sorted(own), 500) for own in values)
        counts = tuple(sum(len(own[key]) for own in side) for side in (before, after))
        row = Change(*key, one, two, counts, percent_of(one, two), *(max(own) - min(own) for own in values),
                     None, "same")
        rows.append(row._replace(verdict=direction(row)) if attribution.apart(*values) else row)
    return by_weight(rows)


CAME = ("name", "where", "change", "runs_before", "runs_after", "count_before", "count_after", "before_ns",
        "after_ns")


def came_and_went(before, after):
    """The Table of what is not in every run, by its samples(), the most time first. before_ns and after_ns
    are of the mean run of a side. "came": no run before has it and all have it now; "went": the reverse."""
    rows, keys = [], [set(own) for own in (*before, *after)]
    for key in sorted(set.union(*keys) - set.intersection(*keys)):
        sides = [[own[key] for own in side if key in own] for side in (before, after)]
        found, counts = [len(own) for own in sides], [sum(map(len, own)) for own in sides]
        ns = [mean(sum(map(sum, own)), len(side)) for own, side in zip(sides, (before, after))]
        change = {(0, len(after)): "came", (len(before), 0): "went"}.get(tuple(found), "in some runs")
        rows.append((key[1], key[0], change, *found, *counts, *ns))
    rows.sort(key=lambda row: (-max(row[7:]), row[:2]))
    return Table("came_and_went", "Not in every run", CAME, rows, [])


def direction(row):
    return "same" if row.before == row.after else "slower" if row.after > row.before else "faster"


def by_weight(rows):
    """The largest change of total time first."""
    return sorted(rows, key=lambda row: (-abs(row.after * row.counts[1] - row.before * row.counts[1]),
                                         row.where, row.name))


def lines(rows, label, many=False):
    """The table. many: several runs a side, which have a spread in place of an interval and p."""
    head = ("span", "where", "n before", "n after", f"{label} before", f"{label} after", "change (%)",
            *(("spread before", "after") if many else ("95 % from", "to", "p")), "")
    cells = [(cell(r.name), r.where, str(r.counts[0]), str(r.counts[1]), str(r.before), str(r.after),
              f"{r.percent:+.2f}", *((str(r.low), str(r.high)) if many else statistics(r)), r.verdict)
             for r in rows]
    widths = [max(map(len, column)) for column in zip(head, *cells)]
    for line in (head, *cells):
        yield "  ".join(c.ljust(w) if n in (0, 1, len(head) - 1) else c.rjust(w)
                        for n, (c, w) in enumerate(zip(line, widths))).rstrip()


def statistics(row):
    """The cells of an interval and of p."""
    return ("" if row.low is None else f"{row.low:+.2f}", "" if row.high is None else f"{row.high:+.2f}",
            "" if row.p is None else f"{row.p:.2g}")


def add_arguments(parser):
    parser.add_argument("traces", metavar="TRACE", nargs="+",
                        help="A and B, .json, .csv or .npuprof files; with --to all runs before the change")
    parser.add_argument("--to", metavar="TRACE", nargs="+", help="all runs after the change")
    parser.add_argument("--of", choices=tuple(STATISTICS), default="p50",
                        help="what is compared (default: p50, the median)")
    parser.add_argument("--json", metavar="FILE", help="write where the difference comes from as JSON, too")
    parser.add_argument("--fail-above", metavar="PERCENT",
                        help="exit code 1 if a span is slower by more than that, such as 5%%")


def explain(before, after, path):
    """Prints what came and went and where the difference comes from, and writes both to `path`, if there is
    one."""
    changed = came_and_went(*([run.samples for run in runs] for runs in (before, after)))
    if changed.rows:
        print(*("", *table_lines(changed, SHOWN)), sep="\n")
    found = attribution.table(before, after)
    conditions = attribution.conditions(*([run.about for run in runs] for runs in (before, after)))
    print()
    if found is None:
        print("no inferences or executions on both sides: nothing to attribute the difference to")
    else:
        for line in table_lines(found, SHOWN):
            print(line)
    for line in conditions:
        print(f"differs: {cell(line, 160)}")
    if path:
        about = {"npuprof_diff": 1, "traces": [run.path for run in (*before, *after)],
                 "before": len(before), "differs": conditions}
        write_json(about, [changed, *([found] if found else ())], path)


def sides(arguments):
    """The paths of the runs before, and after."""
    if arguments.to:
        if len(arguments.traces) + len(arguments.to) == 3:
            raise Refused("diff: one run against two tells nothing: give two or more runs a side")
        return arguments.traces, arguments.to
    if len(arguments.traces) != 2:
        raise Refused("usage: npuprof diff TRACE TRACE, or of several runs a side TRACE... --to TRACE...")
    return arguments.traces[:1], arguments.traces[1:]


def limit_of(text):
    if text is None:
        return None
    if not re.fullmatch(r"\d+(\.\d+)?%?", text):
        raise Refused(f"--fail-above {text}: not a percentage such as 5%")
    return float(text.rstrip("%"))


def told_by(before, after):
    """In words, how differences are told."""
    if len(before) == len(after) == 1:
        return f"p < {ALPHA} with Holm's correction, and an interval on one side of 0"
    one_in = math.comb(len(before) + len(after), len(before)) // 2
    return ("told where all runs of one side lie beyond those of the other, and further than runs of one "
            f"side from each other; chance alone does that for up to 1 of {one_in} spans")


def run(arguments):
    limit, paths = limit_of(arguments.fail_above), sides(arguments)
    if arguments.json:
        check_output(arguments.json, (".json",), *paths[0], *paths[1])
    before, after = (list(runs_of(side)) for side in paths)
    many, last = len(before) + len(after) > 2, paths[1][-1]
    samples_of = [[run.samples for run in runs] for runs in (before, after)]
    rows = (compare_runs(*samples_of, STATISTICS[arguments.of]) if many else
            compare(samples_of[0][0], samples_of[1][0], STATISTICS[arguments.of]))
    if not rows:
        raise Refused(f"{last}: no span has a name that {paths[0][0]} has, too")
    for line in lines(rows, arguments.of, many):
        print(line)
    least = 1 if many else evidence.least(STATISTICS[arguments.of])
    print_counts(rows, least, told_by(before, after))
    explain(before, after, arguments.json)
    worst = [row for row in rows if limit is not None and row.verdict == "slower" and row.percent > limit]
    whose = f"{len(after)} runs after the change" if len(after) > 1 else last
    for row in worst:
        print(f"{whose}: {cell(row.name)} ({row.where}) is slower by {row.percent:.2f} %, "
              f"the limit is {limit:g} %")
    if limit is not None and all(row.verdict == "too few" for row in rows):
        raise Refused(f"--fail-above {limit:g}%: no span comes {least} times on both sides, so nothing can "
                      f"be told of {arguments.of}: record more of them, or give several runs a side")
    if limit is not None and not many:
        print_not_known(rows, worst, limit, arguments.of)
    return 1 if worst else 0


def print_not_known(rows, worst, limit, label):
    """Says of which spans it is not known whether they are slower by more than the limit."""
    unsure = sorted((row for row in rows if row not in worst and row.high is not None and row.high > limit),
                    key=lambda row: -row.high)
    if unsure:
        named = ", ".join(f"{cell(row.name)} ({row.where}) up to {row.high:+.2f} %" for row in unsure[:NAMED])
        more = f" and {len(unsure) - NAMED} more" * (len(unsure) > NAMED)
        print(f"not known: whether {label} is slower by more than {limit:g} %: {named}{more}; more spans, or "
              "several runs a side, tell it")


def print_counts(rows, least, told):
    """How many are slower. least: spans that are needed on a side. told: how that is known, in words."""
    counts = {word: sum(row.verdict == word for row in rows)
              for word in ("slower", "faster", "same", "too few")}
    few = f", {counts['too few']} with fewer than {least} spans on a side" * (least > 1)
    print(f"\n{counts['slower']} slower, {counts['faster']} faster, "
          f"{counts['same']} without a difference that can be told{few} ({told})")
