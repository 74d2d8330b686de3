# SPDX-License-Identifier: MIT
"""Rules about the device: its PEs, transfers and operators."""

from fractions import Fraction
from heapq import nlargest

from ...base.contract import NULL
from ...tables.table import pct
from ..depth import mean_of
from .finding import Finding, Missing, idle_text, ns_text, pct_text

MOST = 5             # operators that are looked at although the path does not go through them
ALONE = 90           # percent of the path: an owner of more is all there is
# Findings that hide what a faster device would bring.
HOST = ("host_off_cpu", "host_bound", "late_notice", "untraced")


def inside(facts):
    """The sums over all executions with spans inside: executions, execute, T, C, T and C, compute."""
    total = [sum(column) for column in zip(*facts.engines.queues)]
    if not total or not total[0]:
        raise Missing("spans of instructions inside the executions")
    return total


def pe_idle(facts):
    """Fewer PEs work at once than requests are open."""
    if not facts.depth:
        raise Missing('submissions: an arrow "submit" from a host span to its execution')
    for n, (device, name, bases) in enumerate(facts.pes.groups):
        depth = facts.depth_of(device)
        # Why alone: of other lanes the requests are, too.
        if not depth or not facts.lanes.alone(device):
            continue
        open_requests, real, count = mean_of(depth["host"]), mean_of(depth["device"]), facts.pes.count[n]
        _, parallel, _, _ = facts.pes.figures(n)
        if open_requests < Fraction(3, 2) or count < 2 or parallel is None:
            continue
        could = min(count, open_requests)
        if parallel >= Fraction(7, 10) * could:
            continue
        # Why no gain where the host is late: what it would do with more PEs is not in the trace.
        late = real < Fraction(3, 2)
        why = (f", {float(real):.2f} on the device: the host is late{idle_pes(facts, device)}"
               if late else f"; jobs went to {len(bases)} of {count} PEs")
        yield Finding(name, f"{float(parallel):.2f} of {count} PEs work at a time while any does; "
                            f"{float(open_requests):.2f} requests are in flight{why}",
                      "submit earlier and from a thread that does not wait; --table idle says what each PE "
                      "waits for" if late else
                      "submit to the PE that is least busy, and keep as many jobs in flight as there are PEs",
                      {"parallelism_ratio": parallel, "pes": count, "open_ratio": open_requests,
                       "device_depth_ratio": real},
                      None, None if late else 100 * (1 - parallel / could), "likely" if late else "sure",
                      None if late else ("pes", None, None), longest_in_flight(facts, device),
                      below=("host_off_cpu", "host_bound", "late_notice") if late else (), of="throughput")


def idle_pes(facts, device):
    """What its PEs wait for most, in words, or nothing."""
    sums = {}
    for (of, queue, label, span), entry in facts.idle.entries.items():
        if of == device and queue >= 0 and label != "edge":
            sums[label, span] = sums.get((label, span), 0) + entry.total
    most = max(sums, key=lambda key: (sums[key], key), default=None)
    return f"; mostly {idle_text(*most)}" if most else ""


def longest_in_flight(facts, device):
    """The submit spans, else the executions, of the three jobs that were in flight longest."""
    jobs = facts.jobs
    own = [k for k, s in enumerate(jobs.s)
           if s != NULL and jobs.inside[k] and jobs.queues[jobs.queue[k]].device == device]

    def ns(k):
        return (jobs.n[k] if jobs.n[k] != NULL else max(jobs.S[k], jobs.end[k])) - jobs.s[k]
    return [jobs.submit[k] if jobs.submit[k] >= 0 else jobs.row[k]
            for k in nlargest(3, own, key=lambda k: (ns(k), -k))]


def imbalance(facts):
    """One PE is busier than the others, and the run waits for it."""
    if not facts.jobs.queues:
        raise Missing("executions")
    for n, (device, name, bases) in enumerate(facts.pes.groups):
        busy, count = list(map(facts.pes.busy.get, bases)), facts.pes.count[n]
        _, _, uneven, unavoidable = facts.pes.figures(n)
        if count < 2 or uneven is None or uneven - unavoidable < 15:
            continue
        most, total = max(own.length() for own in busy), sum(own.length() for own in busy)
        # Why 80 %: a PE that is idle for longer does not hold up the others.
        if 10 * most < 8 * facts.window.length_ns:
            continue
        bound = Fraction(100 * (most * count - total), most * count)
        yield Finding(name, f"the busiest PE works {ns_text(most)}, the mean of {count} PEs is "
                            f"{ns_text(Fraction(total, count))}",
                      f"give jobs to the PE that is least busy: at most {pct_text(bound)} % of the window",
                      {"imbalance_pct": uneven, "unavoidable_pct": unavoidable, "busiest_ns": most},
                      most - Fraction(total, count), bound, "sure",
                      ("pes", None, None) if facts.lanes.alone(device) else None, of="throughput",
                      below=("pe_idle",))


def dma_bound(facts):
    """Transfers that no compute hides are on the path."""
    total = inside(facts)
    exposed = sorted(((own[1], name) for name, own in facts.engines.exposed.items()), reverse=True)
    ns, count = total[2] - total[4], total[0]
    if not exposed or not ns:
        return
    share = facts.share_of_inferences(ns)
    worst, name = exposed[0]
    end = name == "(end)"
    yield Finding(name, f"transfers run alone for {ns_text(Fraction(ns, count))} of each execution "
                        f"({pct_text(pct(ns, total[1]))} %), {ns_text(Fraction(worst, count))} of it "
                        f"{'at the end (Store)' if end else 'before this operator'}",
                  "store earlier, or store less" if end else
                  "load its data earlier (one more buffer), keep it on the device, or shrink it",
                  {"exposed_ns": ns, "exposed_pct": pct(ns, total[1]), "worst_ns": worst}, ns,
                  share, "sure", ("load", None, Fraction(1, 2)),
                  [row for row in facts.engines.exposed[name][3:] if row >= 0], hidden_by=HOST)


def hot_operator(facts):
    """The operator that binds, if nothing says that it is as fast as the device can be."""
    operators, found = facts.engines.operators, []
    executing = sum(map(facts.trace.dur.__getitem__, facts.jobs.row))
    if not operators or not executing:       # a counter that stood
        raise Missing("executions of a device that are not sampled")
    for name in candidates(facts, operators):
        (count, ns), limit, change = operators[name], facts.roof.get(name), ("operator", name, Fraction(1, 2))
        # Why not alone: who looks for what to change knows that the device computes.
        alone = len(operators) < 2 or facts.owners.get(("operator", name), 0) > ALONE
        if not alone and (limit is None or limit.bound == "unknown"):
            effect, half = facts.effect(change), pct(ns, executing) / 2
            found.append((effect.jobs[1] if effect else half, name, count, ns, change, effect, half))
    for n, (worth, name, count, ns, change, effect, half) in enumerate(sorted(found, reverse=True)):
        if worth >= 5 or facts.promises(change):
            less = f", not {pct_text(half)} %: engines overlap" if worth < half - 1 else ""
            yield Finding(name, f"{pct_text(2 * half)} % of the executions' time; twice as fast, they get "
                                f"{pct_text(worth)} % shorter{less}",
                          "make it faster; with ops and [peaks] (--device, see --help) its limit is known",
                          {"operator_ns": ns, "spans": count, "share_pct": 2 * half}, ns,
                          facts.share_of_inferences(ns) / 2, "likely" if effect else "unsure", change,
                          facts.engines.longest(name), hidden_by=HOST if n == 0 else ())


def candidates(facts, operators):
    """Operators that may be worth a change: those on the path, and those that take most."""
    by_time = sorted(operators, key=lambda name: (-operators[name][1], name))
    on_path = [name for (kind, name), share in facts.owners.items()
               if kind == "operator" and name in operators and share >= 2 * facts.threshold_pct]
    return list(dict.fromkeys(on_path + by_time[:MOST]))


def overhead_bound(facts):
    """An operator far below what the device can do."""
    inside(facts)
    if not facts.roof:
        raise Missing("ops or bytes of operators, and the device's peaks: --device TOML")
    for name, limit in sorted(facts.roof.items(), key=lambda item: -item[1].headroom_ns):
        share = facts.share_of_inferences(limit.headroom_ns)
        if limit.bound != "overhead" or share is None or share < 5:
            continue
        ratio = Fraction(limit.ideal_ns, limit.total_ns)
        if limit.waste_pct:
            why = (f"{pct_text(limit.waste_pct)} % of its work is padding"
                   + (f" to {limit.lanes} lanes" if limit.lanes else ""))
            advice = f"give {name} a shape that fills the lanes, or fuse it with its neighbour"
        else:
            why = "neither compute nor memory explains its time"
            advice = f"look into {name}: tiling, synchronisation, or a fallback path"
        peak = max(limit.compute_pct or 0, limit.memory_pct or 0)
        yield Finding(name, f"{name} runs at {pct_text(peak)} % of the peak: {why}", advice,
                      {"peak_pct": peak, "waste_pct": limit.waste_pct, "total_ns": limit.total_ns,
                       "ideal_ns": limit.ideal_ns}, limit.headroom_ns, share,
                      "sure" if limit.measured else "likely", ("operator", name, ratio),
                      facts.engines.longest(name), hidden_by=HOST)


def stall_inside(facts):
    """No engine works although the job runs."""
    total = inside(facts)
    neither = total[1] - total[2] - total[3] + total[4]
    if not neither or 10 * neither < total[1]:
        return
    yield Finding("", f"for {ns_text(Fraction(neither, total[0]))} of each execution, "
                      f"{pct_text(pct(neither, total[1]))} % of its time, neither a transfer nor an operator "
                      "runs",
                  "engines wait for each other or for the firmware: look at the gaps between operators",
                  {"neither_ns": neither, "neither_pct": pct(neither, total[1])}, neither,
                  facts.share_of_inferences(neither), "likely")
