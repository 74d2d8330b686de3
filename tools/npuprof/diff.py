# SPDX-License-Identifier: MIT
"""Compares two traces: which spans and operators got slower or faster, and how certain that is.

It compares spans by name, host and device apart, without warm-up and unfinished spans; and NPU Run and NPU
IoWait of the executions. For each it prints:
  the medians (or --of p90, p99)
  the change in percent with its 95 % interval: bootstrap of both sides, 2000 times, with a fixed seed
  p, the probability of ranks this far apart if nothing had changed: Mann-Whitney U, two-sided, normal
  approximation with corrections for ties and continuity, and Holm's correction for the number of names
  slower or faster if p < 0.05; nothing is said about fewer than 4 spans on a side

Then it says where the difference of the mean inference comes from: operators, transfers, host spans, start
latency, notice, other jobs in the queue, each with a count effect (more or fewer of them), a clock effect
(the whole device by one factor) and a time effect. The rows add up to the difference exactly. Last it names
what else differs: versions, devices, warm-up, losses.

It assumes that the spans of a name are independent. Spans of one run share its clock rates, caches and
neighbours, so a small p says that these two runs differ. To say it of two programs, record each more than
once and see whether the answer stays. Both traces should be of the same work.

Exit code 0; 1: with --fail-above, some span is slower by more than that, with p < 0.05; 2: a file cannot be
used.
"""

import math
import random
import re
from array import array
from collections import namedtuple

from .analysis import compare as attribution
from .analysis.facts import Facts
from .base.contract import UNFINISHED
from .base.files import check_output
from .base.messages import Refused
from .read import load
from .report.data_files import write_json
from .report.text import cell, table_lines
from .tables.arithmetic import percentile
from .tables.executions import Device

Change = namedtuple("Change", "where name before after counts percent low high p verdict")
LEAST, ALPHA, RESAMPLES, SEED = 4, 0.05, 2000, 20210901
SHOWN = 20         # rows of the difference
STATISTICS = {"p50": 500, "p90": 900, "p99": 990}


def samples(trace):
    """(where, name) -> durations, ascending. where: "host", "device" or "npu"."""
    found = {}
    warm_up, flags = trace.warm_up, trace.flags
    skip = any(warm_up) or any(flags)
    places = ["device" if track.kind == "device" else "host" for track in trace.tracks]
    for i, (name, track, dur) in enumerate(zip(trace.name, trace.track, trace.dur)):
        if skip and (warm_up[i] or flags[i] & UNFINISHED):
            continue
        key = places[track], name
        if key in found:
            found[key].append(dur)
        else:
            found[key] = array("q", [dur])
    found = {(where, trace.names[name]): sorted(column) for (where, name), column in found.items()}
    executions = [e for e in Device(trace).executions() if e.run is not None]
    if executions:
        found["npu", "NPU Run"] = sorted(e.run for e in executions)
        found["npu", "NPU IoWait"] = sorted(e.wait for e in executions)
    return found


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
            sure = p < ALPHA and row.before != row.after
            verdict = "same" if not sure else "slower" if row.after > row.before else "faster"
            rows[n] = row._replace(p=p, verdict=verdict)
    return sorted(rows, key=lambda row: (-abs(row.after * row.counts[1] - row.before * row.counts[1]),
                                         row.where, row.name))


def holm(chances):
    """The same p with Holm's correction for their number; None stays None."""
    tested = sorted((p, n) for n, p in enumerate(chances) if p is not None)
    out, least = list(chances), 0.0
    for k, (p, n) in enumerate(tested):
        least = out[n] = max(least, min(1.0, p * (len(tested) - k)))
    return out


def tested(a, b):
    """rank_test(), or None with too few on a side."""
    return rank_test(a, b) if min(len(a), len(b)) >= LEAST else None


def lines(rows, label):
    head = ("span", "where", "n before", "n after", f"{label} before", f"{label} after", "change (%)",
            "95 % from", "to", "p", "")
    cells = [(cell(r.name), r.where, str(r.counts[0]), str(r.counts[1]), str(r.before), str(r.after),
              f"{r.percent:+.2f}",
              "" if r.low is None else f"{r.low:+.2f}", "" if r.high is None else f"{r.high:+.2f}",
              "" if r.p is None else f"{r.p:.2g}", r.verdict)
             for r in rows]
    widths = [max(map(len, column)) for column in zip(head, *cells)]
    for line in (head, *cells):
        yield "  ".join(c.ljust(w) if n in (0, 1, 10) else c.rjust(w)
                        for n, (c, w) in enumerate(zip(line, widths))).rstrip()


def add_arguments(parser):
    parser.add_argument("before", metavar="A", help="a .json, .csv or .npuprof file")
    parser.add_argument("after", metavar="B")
    parser.add_argument("--of", choices=tuple(STATISTICS), default="p50",
                        help="what is compared (default: p50, the median)")
    parser.add_argument("--json", metavar="FILE", help="write where the difference comes from as JSON, too")
    parser.add_argument("--fail-above", metavar="PERCENT",
                        help="exit code 1 if a span is slower by more than that, such as 5%%")


def explain(a, b, path):
    """Prints where the difference comes from, and writes it to `path`, if that is not None."""
    found = attribution.table(a, b, tested, holm)
    conditions = attribution.conditions(a, b)
    print()
    if found is None:
        print("no inferences or executions on both sides: nothing to attribute the difference to")
    else:
        for line in table_lines(found, SHOWN):
            print(line)
    for line in conditions:
        print(f"differs: {cell(line, 160)}")
    if path:
        write_json({"npuprof_diff": 1, "traces": [a.trace.path, b.trace.path], "differs": conditions},
                   [found] if found else [], path)


def run(arguments):
    limit = None
    if arguments.fail_above is not None:
        if not re.fullmatch(r"\d+(\.\d+)?%?", arguments.fail_above):
            raise Refused(f"--fail-above {arguments.fail_above}: not a percentage such as 5%")
        limit = float(arguments.fail_above.rstrip("%"))
    if arguments.json:
        check_output(arguments.json, (".json",), arguments.before, arguments.after)
    sides, facts = [], []
    for path in (arguments.before, arguments.after):
        facts.append(Facts(load(path, progress=True)))
        found = samples(facts[-1].trace)
        if not found:
            raise Refused(f"{path}: no spans to compare outside warm-up")
        sides.append(found)
    a, b = sides
    rows = compare(a, b, STATISTICS[arguments.of])
    if not rows:
        raise Refused(f"{arguments.after}: no span has a name that {arguments.before} has, too")
    for line in lines(rows, arguments.of):
        print(line)
    counts = {word: sum(row.verdict == word for row in rows)
              for word in ("slower", "faster", "same", "too few")}
    print(f"\n{counts['slower']} slower, {counts['faster']} faster, "
          f"{counts['same']} without a difference that can be told, "
          f"{counts['too few']} with fewer than {LEAST} spans on a side (p < {ALPHA}, "
          "Mann-Whitney with Holm's correction)")
    for path, only in ((arguments.before, a.keys() - b.keys()), (arguments.after, b.keys() - a.keys())):
        if only:
            print(f"only in {path}: {', '.join(sorted(cell(name) for _, name in only))}")
    explain(*facts, arguments.json)
    worst = [row for row in rows if limit is not None and row.verdict == "slower" and row.percent > limit]
    for row in worst:
        print(f"{arguments.after}: {cell(row.name)} ({row.where}) is slower by {row.percent:.2f} %, "
              f"the limit is {limit:g} %")
    return 1 if worst else 0
