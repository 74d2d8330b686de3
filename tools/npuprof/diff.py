# SPDX-License-Identifier: MIT
"""Compares two traces, or several runs a side: what got slower or faster, and how certain that is.

It compares spans by name, host and device apart, without warm-up and unfinished spans; and NPU Run and NPU
IoWait of the executions. For each it prints:
  the medians (or --of p90, p99)
  the change in percent with its 95 % interval: bootstrap of both sides, 2000 times, with a fixed seed
  p, the probability of ranks this far apart if nothing had changed: Mann-Whitney U, two-sided, normal
  approximation with corrections for ties and continuity, and Holm's correction for the number of names
  slower or faster if p < 0.05; nothing is said about fewer than 4 spans on a side

Then come spans and operators that only some runs have: those that came, and those that went. What only some
runs of a side have is told as that: it may be chance.

Then it says where the difference of the mean inference comes from: operators, transfers, host spans, start
latency, notice, other jobs in the queue, each with a count effect (more or fewer of them), a clock effect
(the whole device by one factor) and a time effect. The rows add up to the difference exactly. Last it names
what else differs: versions, devices, warm-up, losses.

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
import random
import re
from array import array
from collections import namedtuple

from . import loops
from .analysis import compare as attribution
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
LEAST, ALPHA, RESAMPLES, SEED = 4, 0.05, 2000, 20210901
SHOWN = 20         # rows of the difference
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


def rank_test(a, b):
    """The two-sided p of Mann and Whitney's U, for two sorted sequences."""
    n, m = len(a), len(b)
    i = j = 0
    ranks_of_a, ties = 0, 0
    while i < n or j < m:
        value = a[i] if j == m or (i < n and a[i] <= b[j]) else b[j]
        i0, j0 = i, j
        while i < n and a[i] == value:
            i += 1
        while j < m and b[j] == value:
            j += 1
        same = i - i0 + j - j0
        ranks_of_a += (i - i0) * (2 * (i0 + j0) + same + 1)      # twice the mean rank
        ties += same ** 3 - same
    distance = abs(ranks_of_a / 2 - n * (n + 1) / 2 - n * m / 2)
    variance = n * m / 12 * (n + m + 1 - ties / ((n + m) * (n + m - 1)))
    if variance <= 0:
        return 1.0
    return math.erfc(max(0.0, distance - 0.5) / math.sqrt(2 * variance))


def interval(a, b, per_mille, chance):
    """The 95 % bootstrap interval of the change of a percentile, in percent. chance: a random.Random."""
    def draw(ordered):
        # A percentile of a resample is the value at a random place. Why beta: so are order statistics
        # distributed.
        n = len(ordered)
        k = max(1.0, (n - 1) * per_mille / 1000 + 1)
        return ordered[min(n - 1, int(chance.betavariate(k, n + 1 - k) * n))]
    changes = sorted(percent_of(draw(a), draw(b)) for _ in range(RESAMPLES))
    return changes[RESAMPLES * 25 // 1000], changes[RESAMPLES * 975 // 1000 - 1]


def percent_of(before, after):
    if before == after:
        return 0.0
    return 100 * (after - before) / before if before else math.inf


def compare(a, b, per_mille=500):
    """The Changes between two traces' samples(), the largest change of total time first."""
    rows = []
    for key in sorted(a.keys() & b.keys()):
        before, after = percentile(a[key], per_mille), percentile(b[key], per_mille)
        enough = min(len(a[key]), len(b[key])) >= LEAST
        # Why a seed for each name: other names must not change its interval.
        chance = random.Random(f"{SEED} {key}")
        low, high = interval(a[key], b[key], per_mille, chance) if enough else (None, None)
        rows.append(Change(*key, before, after, (len(a[key]), len(b[key])), percent_of(before, after), low,
                           high, rank_test(a[key], b[key]) if enough else None, "too few"))
    for n, (row, p) in enumerate(zip(rows, holm([row.p for row in rows]))):
        if p is not None:
            rows[n] = row._replace(p=p, verdict=direction(row) if p < ALPHA else "same")
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


def tested(a, b):
    """rank_test(), or None with too few on a side."""
    return rank_test(a, b) if min(len(a), len(b)) >= LEAST else None


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
    found = attribution.table(before, after, tested)
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
        return f"p < {ALPHA}, Mann-Whitney with Holm's correction"
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
    print_counts(rows, len(before) + len(after) > 2, told_by(before, after))
    explain(before, after, arguments.json)
    worst = [row for row in rows if limit is not None and row.verdict == "slower" and row.percent > limit]
    whose = f"{len(after)} runs after the change" if len(after) > 1 else last
    for row in worst:
        print(f"{whose}: {cell(row.name)} ({row.where}) is slower by {row.percent:.2f} %, "
              f"the limit is {limit:g} %")
    if limit is not None and all(row.verdict == "too few" for row in rows):
        raise Refused(f"--fail-above {limit:g}%: no span comes {LEAST} times on both sides, so nothing can "
                      "be told: record more of them, or give several runs a side")
    return 1 if worst else 0


def print_counts(rows, many, told):
    """How many are slower. told: how that is known, in words."""
    counts = {word: sum(row.verdict == word for row in rows)
              for word in ("slower", "faster", "same", "too few")}
    few = "" if many else f", {counts['too few']} with fewer than {LEAST} spans on a side"
    print(f"\n{counts['slower']} slower, {counts['faster']} faster, "
          f"{counts['same']} without a difference that can be told{few} ({told})")
