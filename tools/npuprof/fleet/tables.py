# SPDX-License-Identifier: MIT
"""The tables of a Fleet. All shares and means are exact."""

from collections import Counter
from fractions import Fraction
from math import inf

from ..tables.arithmetic import mean, percentile
from ..tables.table import Table, pct
from .findings import findings_table

LEAST = 4          # ranks below which none is called a straggler
OVER_PCT = 2       # and how much slower than the median one must be


def median(values):
    return percentile(sorted(values), 500) if values else None


def per_inference(rank, ns):
    """ns of a whole rank as a mean of its inferences, None if there are none."""
    return None if ns is None or not rank["inferences"] else mean(ns, rank["inferences"])


def device_ns(rank):
    return per_inference(rank, rank["busy_ns"])


def host_ns(rank):
    """What of an inference's mean latency the device was not busy. None if inferences overlap so much that
    the device is busy longer."""
    busy = device_ns(rank)
    return None if busy is None or rank["mean_ns"] < busy else rank["mean_ns"] - busy


def rate(rank):
    return Fraction(rank["inferences"] * 10**9, rank["window_ns"]) if rank["window_ns"] else None


def over(value, middle):
    """By how many percent the value is above the median."""
    return None if value is None or not middle else pct(value - middle, middle)


def unnamed(fleet):
    """Sentences on ranks whose host is not known."""
    count = sum(not rank["host"] for rank in fleet.ranks)
    return [f"{count} of {len(fleet.ranks)} ranks name no host: on how many they ran is not known, and their "
            "clocks are not compared"] * bool(count)


def fleet_table(fleet):
    ranks, latencies = fleet.ranks, fleet.latencies
    busy = [(rank["busy_ns"], rank["window_ns"]) for rank in ranks if rank["busy_ns"] is not None]
    lost = [rank["lost"] for rank in ranks if rank["lost"] is not None]
    hosts = {rank["host"] for rank in ranks}
    row = (len(ranks), len(fleet.left_out), None if "" in hosts else len(hosts),
           sum(rank["spans"] for rank in ranks), sum(rank["inferences"] for rank in ranks),
           *(latencies.percentile(place) for place in (500, 900, 990)),
           max((rank["max_ns"] for rank in ranks if rank["max_ns"] is not None), default=None),
           sum(filter(None, map(rate, ranks)), Fraction(0)),
           pct(sum(b for b, _ in busy), sum(w for _, w in busy)), sum(lost) if lost else None,
           max((rank["max_error_ns"] for rank in ranks if rank["max_error_ns"] is not None), default=None))
    return Table("fleet", "All ranks together (percentiles of all inferences are exact to 1/128)",
                 ("ranks", "left_out", "hosts", "spans", "inferences", "p50_ns", "p90_ns", "p99_ns", "max_ns",
                  "rate_per_s", "busy_pct", "lost", "max_error_ns"), [row], unnamed(fleet))


def ranks_table(fleet):
    middle = median([rank["p50_ns"] for rank in fleet.ranks if rank["p50_ns"] is not None])
    rows = [(rank["rank"], rank["host"], rank["pid"], rank["inferences"], rank["p50_ns"],
             over(rank["p50_ns"], middle), rank["p90_ns"], rank["p99_ns"], rank["max_ns"], rate(rank),
             device_ns(rank), host_ns(rank), pct(rank["busy_ns"] or 0, rank["window_ns"])
             if rank["busy_ns"] is not None else None, rank["spans"], rank["lost"], rank["violations"],
             rank["max_error_ns"], rank["file"]) for rank in fleet.ranks]
    rows.sort(key=lambda row: -1 if row[4] is None else row[4], reverse=True)
    return Table("ranks", "Ranks, the slowest first (over: p50 against the median rank; device and host: "
                          "mean of an inference)",
                 ("rank", "host", "pid", "inferences", "p50_ns", "over_pct", "p90_ns", "p99_ns", "max_ns",
                  "rate_per_s", "device_ns", "host_ns", "busy_pct", "spans", "lost", "violations",
                  "max_error_ns", "file"), rows, [])


def hosts_table(fleet):
    by_host = {}
    for rank in fleet.ranks:
        by_host.setdefault(rank["host"], []).append(rank)
    rows = []
    for host, ranks in by_host.items():
        middles = [rank["p50_ns"] for rank in ranks if rank["p50_ns"] is not None]
        busy = [(rank["busy_ns"], rank["window_ns"]) for rank in ranks if rank["busy_ns"] is not None]
        rows.append((host or "(not known)", len(ranks), sum(rank["inferences"] for rank in ranks),
                     median(middles), max(middles, default=None),
                     pct(sum(b for b, _ in busy), sum(w for _, w in busy)),
                     sum(rank["lost"] or 0 for rank in ranks)))
    rows.sort(key=lambda row: (-(row[3] or 0), row[0]))
    return Table("hosts", "Hosts (p50: the median of their ranks)",
                 ("host", "ranks", "inferences", "p50_ns", "slowest_p50_ns", "busy_pct", "lost"), rows, [])


FIGURES = {"latency p50": lambda rank: rank["p50_ns"], "device": device_ns, "host": host_ns}


def stragglers_table(fleet):
    """A rank is one if a figure is above the fleet's median by more than OVER_PCT and by more than three
    times the usual distance from it (1.4826 x the median distance)."""
    rows, typical = [], None
    for figure, of in FIGURES.items():
        known = [(value, n) for n, rank in enumerate(fleet.ranks) if (value := of(rank)) is not None]
        if len(known) < LEAST:
            continue
        middle = median([value for value, _ in known])
        usual = median([abs(value - middle) for value, _ in known])
        for value, n in known:
            if 100 * (value - middle) > OVER_PCT * middle and 10_000 * (value - middle) > 3 * 14_826 * usual:
                rank = fleet.ranks[n]
                why = None, None
                if figure == "device":
                    typical = typical or typical_operators(fleet)
                    why = slow_operator(fleet, rank, typical)
                rows.append((rank["rank"], rank["host"], figure, value, middle, over(value, middle), *why,
                             rank["file"]))
    # Why infinite: above a median of 0 there is no percentage.
    rows.sort(key=lambda row: -inf if row[5] is None else -row[5])
    return Table("stragglers", f"Stragglers: more than {OVER_PCT} % above the median rank, and far outside "
                               "the usual spread (operator: what takes most of the excess)",
                 ("rank", "host", "figure", "value_ns", "median_ns", "over_pct", "operator", "excess_ns",
                  "file"), rows,
                 [] if len(fleet.ranks) >= LEAST else [f"fewer than {LEAST} ranks: none is called one"])


def typical_operators(fleet):
    """By operator: the median over the ranks of its mean ns per inference; 0 in a rank without it."""
    values = {}
    for rank in fleet.ranks:
        for key, total in zip(*rank["operators"]):
            if rank["inferences"]:
                values.setdefault(key, []).append(mean(total, rank["inferences"]))
    count = sum(1 for rank in fleet.ranks if rank["inferences"])
    return {key: median(found + [0] * (count - len(found))) for key, found in values.items()}


def slow_operator(fleet, rank, typical):
    """(name, ns per inference above the typical rank) of the operator with most of it."""
    excess = [(mean(total, rank["inferences"]) - typical[key], -key)
              for key, total in zip(*rank["operators"])]
    ns, key = max(excess, default=(0, 0))
    return (list(fleet.names)[-key], ns) if ns > 0 else (None, None)


def skew_table(fleet):
    """How far apart the ranks begin and end the same inference, and who is last most often."""
    steps = [step for step in fleet.steps if step.placed > 1]
    rows = []
    for moment in ("start", "end"):
        found = [getattr(step, moment) for step in steps]
        if not found:
            continue
        spreads = sorted(last - first for first, last, _ in found)
        who, times = max(Counter(n for *_, n in found).items(), key=lambda item: (item[1], -item[0]))
        rows.append((moment, len(spreads), *(percentile(spreads, p) for p in (500, 990)), spreads[-1],
                     fleet.ranks[who]["rank"], pct(times, len(spreads)), fleet.ranks[who]["file"]))
    return Table("skew", "From the first rank to the last at the same inference (the n-th of each rank; "
                         "hosts by their Unix clocks, ranks of one host by its clock since boot)",
                 ("moment", "inferences", "p50_ns", "p99_ns", "max_ns", "last_rank", "last_pct", "file"),
                 rows, unnamed(fleet))


def steps_table(fleet):
    rows = []
    for n, step in enumerate(fleet.steps):
        known = [step.start, step.end] if step.placed > 1 or step.count == 1 == step.placed else []
        spreads, last = [b - a for a, b, _ in known], [fleet.ranks[who]["rank"] for *_, who in known]
        rows.append((n, step.count, *(spreads or (None, None)), mean(step.total, step.count),
                     *(last or (None, None))))
    return Table("steps", "The same inference on all ranks: from the first to the last",
                 ("step", "ranks", "start_spread_ns", "end_spread_ns", "mean_ns", "last_to_start",
                  "last_to_end"), rows, unnamed(fleet))


def operators_table(fleet):
    everything = sum(entry[2] for entry in fleet.operators)
    rows = []
    for name, (ranks, count, total, worst, who) in zip(fleet.names, fleet.operators):
        average, slowest = Fraction(total, count or 1), Fraction(*worst)
        rows.append((name, ranks, count, total, pct(total, everything), average, slowest,
                     over(slowest, average), fleet.ranks[who]["rank"]))
    rows.sort(key=lambda row: (-row[3], row[0]))
    return Table("operators", "Operators over all ranks (slowest: the rank with the largest mean)",
                 ("name", "ranks", "count", "total_ns", "share_pct", "mean_ns", "slowest_ns", "over_pct",
                  "slowest_rank"), rows, [])


def left_out_table(fleet):
    return Table("left_out", "Left out: these traces cannot be used", ("file", "why"), fleet.left_out, [])


TABLES = {"findings": findings_table, "fleet": fleet_table, "left_out": left_out_table,
          "stragglers": stragglers_table, "skew": skew_table, "ranks": ranks_table,
          "hosts": hosts_table, "operators": operators_table, "steps": steps_table}
