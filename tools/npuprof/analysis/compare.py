# SPDX-License-Identifier: MIT
"""Where the difference between two runs comes from.

The mean inference of each run is the sum of the owners on its critical path (paths.py): operators and
transfers, host spans, start latency, notice, the jobs of others in the queue. So is the difference, exactly.
The change of an owner is

    count effect   it comes more or less often: (n_b - n_a) * mean_a, n for each inference
    clock effect   n_b * mean_a * (f - 1), only on the device: all of its operators and transfers changed by
                   one factor f, within 1 %, as they do when a clock changes
    time effect    the rest: it takes longer or shorter

An owner that only one run has on its path is a count effect. p is the probability of such ranks of the
inferences if nothing had changed: Mann-Whitney, with Holm's correction for the number of owners. Start
latency and notice lie between a stamp of the host and one of the device: no change within the errors of both
clocks is sure.

Without arrows from submissions the owners are the innermost host spans of the inference; without inferences,
what is compared is the mean execution.
"""

from collections import namedtuple
from fractions import Fraction

from ..tables.arithmetic import mean, percentile
from ..tables.table import Table, pct
from . import replay
from .leaves import Leaves
from .paths import by_owner

COLUMNS = ("kind", "owner", "before_count", "after_count", "before_ns", "after_ns", "delta_ns",
           "count_effect_ns", "clock_effect_ns", "time_effect_ns", "share_pct", "p_ratio", "verdict")
TITLE = "Where the difference of the mean {} comes from (ns each; the rows add up to it)"
MOST = 5000            # inferences of a run whose paths are looked at
ALIKE, LEAST = Fraction(1, 100), Fraction(1, 200)     # of the common factor: its spread, its change
DEVICE = "operator", "transfer"
# what: "inference" or "execution". owners: of each a dict {(kind, name): (count, ns)}. times: their lengths.
# error: of the device's stamps, ns.
Side = namedtuple("Side", "what owners times error")


def side_of(facts, with_paths):
    """The Side of a run, or None if there is nothing to compare."""
    found, trace, inferences = replay.of(facts), facts.trace, facts.window.inferences
    errors = sorted(max(0, error) for error in facts.jobs.error)
    error = errors[len(errors) // 2] if errors else 0
    if with_paths and found.points.inferences:
        count = len(found.points.inferences)
        chosen = range(0, count, -(-count // MOST))
        owners = [by_owner(found.paths.of_inference(number)) for number in chosen]
        return Side("inference", owners, [trace.dur[found.points.inferences[n]] for n in chosen], error)
    if inferences:
        leaves, chosen = Leaves(trace), inferences[::-(-len(inferences) // MOST)]
        return Side("inference", [by_owner(host_pieces(trace, leaves, i)) for i in chosen],
                    [trace.dur[i] for i in chosen], error)
    if with_paths:
        chosen = range(0, found.points.count, -(-found.points.count // MOST))
        return Side("execution", [by_owner(found.paths.job(k)) for k in chosen],
                    [found.points.dur[k] for k in chosen], error)
    return None


def host_pieces(trace, leaves, i):
    """Yields (kind, name, start, end) of the innermost spans of an inference."""
    base = trace.tracks[trace.track[i]].base
    for start, end, row in leaves.pieces(base, trace.start[i], trace.start[i] + trace.dur[i]):
        name = "no span" if row < 0 or leaves.is_container(row) else trace.text(row)
        yield "host", name, start, end


def sides(a, b):
    """The Sides of two traces' Facts: of the same form, or (None, None)."""
    with_paths = replay.of(a).why is None and replay.of(b).why is None
    pair = side_of(a, with_paths), side_of(b, with_paths)
    return pair if None not in pair and pair[0].what == pair[1].what else (None, None)


def sums(side):
    """{owner: (count, ns)} over all inferences, and how many there are."""
    total = {}
    for own in side.owners:
        for key, (count, ns) in own.items():
            n, before = total.get(key, (0, 0))
            total[key] = n + count, before + ns
    return total, len(side.owners)


def common_factor(a, b):
    """The factor by which all operators and transfers changed; None: there is none."""
    ratios = []
    for key, (count, ns) in a.items():
        if key[0] in DEVICE and key in b and ns > 0 and b[key][1] > 0:
            ratios.append(Fraction(b[key][1] * count, b[key][0] * ns))
    if len({key for key in a if key[0] in DEVICE} & b.keys()) < 2 or not ratios:
        return None
    ratios.sort()
    factor = ratios[len(ratios) // 2]
    if ratios[-1] - ratios[0] > 2 * ALIKE * factor or abs(factor - 1) < LEAST:
        return None
    return factor


def effects(key, before, after, factor):
    """(count, clock and time effect) of one owner. before, after: (n, ns) of the mean inference; None: it
    does not occur."""
    if before is None or not before[0]:
        return (after[1] if after else Fraction(0)), Fraction(0), Fraction(0)
    if after is None or not after[0]:
        return -before[1], Fraction(0), Fraction(0)
    each = before[1] / before[0]
    count = (after[0] - before[0]) * each
    clock = after[0] * each * (factor - 1) if factor and key[0] in DEVICE else Fraction(0)
    return count, clock, after[1] - before[1] - count - clock


def attribute(a, b, test, holm):
    """The rows of COLUMNS for two Sides, the largest difference first, and the common factor.

    test: two sorted lists -> p; holm: [p] -> [p]."""
    (before, n), (after, m) = sums(a), sums(b)
    factor, rows = common_factor(before, after), []
    whole = Fraction(sum(b.times), m) - Fraction(sum(a.times), n)
    keys = sorted(before.keys() | after.keys())
    chances = holm([test(*(sorted(own.get(key, (0, 0))[1] for own in side.owners) for side in (a, b)))
                    for key in keys])
    for key, p in zip(keys, chances):
        old, new = (key in sum_of and tuple(Fraction(part, count) for part in sum_of[key]) or None
                    for sum_of, count in ((before, n), (after, m)))
        parts = effects(key, old, new, factor)
        verdict = "too few" if p is None else "not told from noise" if p >= 0.05 else "sure"
        if key[0] in ("dispatch", "notice") and abs(sum(parts)) <= a.error + b.error:
            verdict = "within the clock's error"
        rows.append((*key, before.get(key, (0, 0))[0], after.get(key, (0, 0))[0],
                     old[1] if old else Fraction(0), new[1] if new else Fraction(0), sum(parts), *parts,
                     pct(sum(parts), whole), None if p is None else Fraction(p).limit_denominator(10**6),
                     verdict))
    rows.sort(key=lambda row: (-abs(row[6]), row[:2]))
    return rows, factor, whole


def table(a, b, test, holm):
    """The Table of two Facts, or None."""
    one, two = sides(a, b)
    if one is None:
        return None
    rows, factor, whole = attribute(one, two, test, holm)
    before, after = (mean(sum(side.times), len(side.times)) for side in (one, two))
    notes = [f"mean {one.what}: {before} -> {after} ns, median "
             + " -> ".join(str(percentile(sorted(side.times), 500)) for side in (one, two)) + " ns"]
    assert sum((row[6] for row in rows), Fraction(0)) == whole
    if factor:
        notes.append(f"all operators take {float(factor):.3f} times as long: the device's clock")
    for effect, column in (("count", 7), ("clock", 8), ("time", 9)):
        ns = sum((row[column] for row in rows), Fraction(0))
        if ns:
            notes.append(f"{effect} effects: {float(ns):+.0f} ns")
    moved = [row[1] for row in rows if (not row[2]) != (not row[3]) and row[0] in DEVICE]
    if moved:
        notes.append(f"on the path in one run only: {', '.join(moved[:8])}; in the other something hides it, "
                     "or it is not there")
    if any(len(side.owners) == MOST for side in (one, two)):
        notes.append(f"of every run at most {MOST} inferences were looked at, evenly spread")
    return Table("difference", TITLE.format(one.what), COLUMNS, rows, notes)


def conditions(a, b):
    """Sentences on what differs between the runs beside their times."""
    def told(facts):
        about, trace = facts.trace.metadata, facts.trace
        yield from ((key, about.get(key)) for key in ("version", "host", "program"))
        yield from sorted((f"user.{key}", value) for key, value in about.get("user", {}).items())
        for device in about.get("devices") or ():
            sync = device.get("clock_sync", {})
            yield f"{device.get('name')}: PEs", device.get("pe_count")
            yield f"{device.get('name')}: nominal hz", sync.get("nominal_hz")
        yield "inferences", len(facts.window.inferences)
        yield "spans in warm-up", sum(trace.warm_up)
        yield "lost", facts.lost_records
    one, two = dict(told(a)), dict(told(b))
    return [f"{key}: {one.get(key, 'none')} -> {two.get(key, 'none')}" for key in {**one, **two}
            if one.get(key) != two.get(key)]

