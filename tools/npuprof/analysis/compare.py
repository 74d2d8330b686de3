# SPDX-License-Identifier: MIT
"""Where the difference between two runs comes from.

The mean inference of each run is the sum of the owners on its critical path (paths.py): operators and
transfers, host spans, start latency, notice, the jobs of others in the queue. So is the difference, exactly.
The change of an owner is

    count effect   it comes more or less often: (n_b - n_a) * mean_a, n for each inference
    clock effect   n_b * mean_a * (f - 1), only on the device: all of its operators and transfers changed by
                   one factor f, within 1 %, as they do when a clock changes
    time effect    the rest: it takes longer or shorter

An owner that only one run has on its path is a count effect. p is the probability of means this far apart if
the mean had not changed (evidence.py), with Holm's correction for the number of owners. Start
latency and notice lie between a stamp of the host and one of the device: no change within the errors of both
clocks is sure.

Without arrows from submissions the owners are the innermost host spans of the inference; without inferences,
what is compared is the mean execution.
"""

from array import array
from collections import namedtuple
from fractions import Fraction

from ..base.losses import are_known
from ..tables.arithmetic import mean, percentile
from ..tables.table import Table, pct
from . import replay
from .evidence import mean_p
from .figures import holm
from .leaves import Leaves
from .paths import by_owner

COLUMNS = ("kind", "owner", "before_count", "after_count", "before_ns", "after_ns", "delta_ns",
           "count_effect_ns", "clock_effect_ns", "time_effect_ns", "share_pct", "p_ratio", "verdict")
TITLE = "Where the difference of the mean {} comes from (ns each; the rows add up to it)"
MOST = 5000            # inferences of a run whose paths are looked at
ALIKE, LEAST = Fraction(1, 100), Fraction(1, 200)     # of the common factor: its spread, its change
DEVICE = "operator", "transfer"
# what: "inference" or "execution". owners: {(kind, name): (count, ns in each of them)}. times: their lengths.
# error: of the device's stamps, ns.
Side = namedtuple("Side", "what owners times error")


def sides_of(facts):
    """The Sides of a run: from the paths of its replay, and from its host spans; None where it has none."""
    return side_of(facts, replay.of(facts).why is None), side_of(facts, False)


def side_of(facts, with_paths):
    found, trace, inferences = replay.of(facts), facts.trace, facts.window.inferences
    errors = sorted(max(0, error) for error in facts.jobs.error)
    error = errors[len(errors) // 2] if errors else 0
    if with_paths and found.points.inferences:
        count = len(found.points.inferences)
        chosen = range(0, count, -(-count // MOST))
        owners = columns(by_owner(found.paths.of_inference(number)) for number in chosen)
        return Side("inference", owners, [trace.dur[found.points.inferences[n]] for n in chosen], error)
    if inferences:
        leaves, chosen = Leaves(trace), inferences[::-(-len(inferences) // MOST)]
        return Side("inference", columns(by_owner(host_pieces(trace, leaves, i)) for i in chosen),
                    [trace.dur[i] for i in chosen], error)
    if with_paths:
        chosen = range(0, found.points.count, -(-found.points.count // MOST))
        return Side("execution", columns(by_owner(found.paths.job(k)) for k in chosen),
                    [found.points.dur[k] for k in chosen], error)
    return None


def columns(every):
    """{owner: (count, ns in each)} of what by_owner() gives of each. Why columns: of many runs they lie in
    memory together."""
    found, n = {}, 0
    for n, own in enumerate(every, 1):
        for key, (count, ns) in own.items():
            entry = found.setdefault(key, [0, array("q")])
            entry[0] += count
            entry[1].extend([0] * (n - 1 - len(entry[1])))
            entry[1].append(ns)
    for _, column in found.values():
        column.extend([0] * (n - len(column)))
    return found


def host_pieces(trace, leaves, i):
    """Yields (kind, name, start, end) of the innermost spans of an inference."""
    base = trace.tracks[trace.track[i]].base
    for start, end, row in leaves.pieces(base, trace.start[i], trace.start[i] + trace.dur[i]):
        name = "no span" if row < 0 or leaves.is_container(row) else trace.text(row)
        yield "host", name, start, end


def alike(before, after):
    """The Sides of all runs of both sides: lists of the same form, or (None, None). before, after: what
    sides_of() gives of each run."""
    with_paths = all(run.paths for run in (*before, *after))
    one, two = ([run.paths if with_paths else run.host for run in runs] for runs in (before, after))
    same = None not in (*one, *two) and len({side.what for side in (*one, *two)}) == 1
    return (one, two) if same else (None, None)


def sums(runs):
    """{owner: (count, ns)} over all inferences of these Sides, and how many there are."""
    total = {}
    for side in runs:
        for key, (count, column) in side.owners.items():
            n, before = total.get(key, (0, 0))
            total[key] = n + count, before + sum(column)
    return total, sum(len(side.times) for side in runs)


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


def apart(before, after):
    """True: the values of all runs of one side lie beyond those of the other, and their medians differ by
    more than those of either side among themselves."""
    before, after = sorted(before), sorted(after)
    spread = max(before[-1] - before[0], after[-1] - after[0])
    separate = before[-1] < after[0] or after[-1] < before[0]
    return separate and abs(percentile(after, 500) - percentile(before, 500)) > spread


def verdicts(a, b, keys):
    """(p or None, verdict) of each owner: by its mean in the inferences of two runs; of more runs, by theirs.
    """
    if len(a) == len(b) == 1:
        chances = holm([mean_p(*(ns_of(side, key) for side in (*a, *b))) for key in keys])
        for p in chances:
            yield p, "too few" if p is None else "not told from noise" if p >= 0.05 else "sure"
        return
    for key in keys:
        means = [[round(sum(ns_of(side, key)) / len(side.times)) for side in runs] for runs in (a, b)]
        yield None, "sure" if apart(*means) else "not told from other runs"


def ns_of(side, key):
    return side.owners[key][1] if key in side.owners else array("q", bytes(8 * len(side.times)))


def attribute(a, b):
    """The rows of COLUMNS for the Sides of the runs before and after, the largest difference first, the
    common factor, and the difference."""
    (before, n), (after, m) = sums(a), sums(b)
    factor, rows = common_factor(before, after), []
    whole = Fraction(sum(map(sum, (side.times for side in b))), m)
    whole -= Fraction(sum(map(sum, (side.times for side in a))), n)
    keys, error = sorted(before.keys() | after.keys()), max(s.error for s in a) + max(s.error for s in b)
    for key, (p, verdict) in zip(keys, verdicts(a, b, keys)):
        old, new = (key in sum_of and tuple(Fraction(part, count) for part in sum_of[key]) or None
                    for sum_of, count in ((before, n), (after, m)))
        parts = effects(key, old, new, factor)
        if key[0] in ("dispatch", "notice") and abs(sum(parts)) <= error:
            verdict = "within the clock's error"
        rows.append((*key, before.get(key, (0, 0))[0], after.get(key, (0, 0))[0],
                     old[1] if old else Fraction(0), new[1] if new else Fraction(0), sum(parts), *parts,
                     pct(sum(parts), whole), None if p is None else Fraction(p).limit_denominator(10**6),
                     verdict))
    rows.sort(key=lambda row: (-abs(row[6]), row[:2]))
    return rows, factor, whole


def table(before, after):
    """The Table of the runs before and after, or None. They have `paths` and `host`; see sides_of()."""
    one, two = alike(before, after)
    if one is None:
        return None
    rows, factor, whole = attribute(one, two)
    times = [sorted(ns for side in runs for ns in side.times) for runs in (one, two)]
    before, after = (mean(sum(own), len(own)) for own in times)
    what = one[0].what
    notes = [f"mean {what}: {before} -> {after} ns, median "
             + " -> ".join(str(percentile(own, 500)) for own in times) + " ns"]
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
    if any(len(side.times) == MOST for side in (*one, *two)):
        notes.append(f"of every run at most {MOST} inferences were looked at, evenly spread")
    return Table("difference", TITLE.format(what), COLUMNS, rows, notes)


def about(facts):
    """{what: value} of what two runs should share."""
    def told():
        about, trace = facts.trace.metadata, facts.trace
        yield from ((key, about.get(key)) for key in ("version", "host", "program"))
        yield from sorted((f"user.{key}", value) for key, value in about.get("user", {}).items())
        for device in about.get("devices") or ():
            sync = device.get("clock_sync", {})
            yield f"{device.get('name')}: PEs", device.get("pe_count")
            yield f"{device.get('name')}: nominal hz", sync.get("nominal_hz")
        yield "inferences", len(facts.window.inferences)
        yield "spans in warm-up", sum(trace.warm_up)
        yield "lost", facts.lost_records if are_known(about) else "not known"
    return dict(told())


def conditions(before, after):
    """Sentences on what differs between the runs beside their times. before, after: about() of each run."""
    def value(runs, key):
        return " or ".join(dict.fromkeys(str(run.get(key, "none")) for run in runs))
    keys = {key: None for run in (*before, *after) for key in run}
    return [f"{key}: {value(before, key)} -> {value(after, key)}" for key in keys
            if value(before, key) != value(after, key)]
