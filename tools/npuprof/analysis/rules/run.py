# SPDX-License-Identifier: MIT
"""Rules about the run over time: its tail, stalls, throttling, warm-up; and memory."""

from ...tables.arithmetic import percentile
from ...tables.table import pct
from ..steady import by_thread, stands_out, warm_ups
from .finding import Finding, Missing, bytes_text, ns_text, pct_text


def inferences(facts, least):
    count = len(facts.window.inferences)
    if count < least:
        raise Missing(f"{least} inferences")
    return count


def tail_phase(facts):
    """The slowest inferences lose their time in one phase."""
    count, tail, ordered = inferences(facts, 100), facts.tail, facts.durations
    p50, edge = percentile(ordered, 500), min((facts.trace.dur[i] for i in tail.slow), default=0)
    if 2 * edge < 3 * p50 or tail.delta <= 0 or facts.regular_or_marked:
        return
    # Why: of two kinds of inferences the longer ones are no tail.
    if 4 * edge < 5 * percentile(ordered, 900):
        return
    sums = {}
    for key in tail.phases:
        sums[key] = tail.mean(1, key) - tail.mean(0, key)
    (phase, span), delta = max(sums.items(), key=lambda item: item[1])
    if 10 * delta < 6 * tail.delta:
        return
    where = f"{phase} ({span})" if span else phase
    extra = f"; {tail.cofactors[0]}" if tail.cofactors else ""
    yield Finding(where, f"the slowest {tail.kind} take {ns_text(edge)} against {ns_text(p50)}; they lose "
                         f"{ns_text(delta)} in {where}, {pct_text(pct(delta, tail.delta))} % of it{extra}",
                  {"notice": "look at what wakes the waiting thread, and at the core it runs on",
                   "host": f"look into {span or 'the host'} of the slow ones: locks, page faults, the "
                           "scheduler",
                   "execute": "compare the operators of a slow and of a usual execution",
                   "dispatch": "ask the firmware what it does before these starts"}.get(
                       phase, "spread the load: these jobs stood behind others"),
                  {"edge_ns": edge, "p50_ns": p50, "delta_ns": delta, "share_pct": pct(delta, tail.delta)},
                  delta, None, "sure" if count >= 500 else "likely", rows=tail.slow[:-4:-1])


def periodic_stall(facts):
    """Slow inferences come at regular times."""
    inferences(facts, 160)
    for period, r, k, _ in facts.stalls:
        ordered = facts.durations
        p50, over = percentile(ordered, 500), ordered[-k:]
        mean = sum(over) // len(over)
        yield Finding("", f"every {ns_text(period)} an inference takes {ns_text(mean)} instead of "
                          f"{ns_text(p50)} ({k} times)",
                      f"look for what runs every {ns_text(period)}: a timer, garbage collection, a limit on "
                      "real-time threads, your own polling",
                      {"period_ns": period, "slow": k, "mean_ns": mean, "p50_ns": p50}, None,
                      pct(sum(over) - k * p50, facts.window.length_ns), "sure" if r >= 0.95 else "likely")


def throttled(facts):
    """All operators get slower together."""
    if not facts.drift.tested:
        raise Missing("16 executions with spans inside them")
    # Why not with levels: a clock that falls again and again has no one step.
    if not facts.drift.common or facts.marked_warm_up or facts.levels:
        return
    kind, at, change = facts.drift.common
    if change < 3:
        return
    when = f"from {ns_text(at - facts.window.start_ns)} into the window on" if at is not None else "over time"
    yield Finding("", f"{when} all operators take {pct_text(change)} % longer",
                  "the device's clock fell: look at temperature, power and governor; repeat it cooler",
                  {"change_pct": change, "at_ns": at, "operators": len(facts.drift.rows)}, None, change / 2,
                  "likely")


def warm_up_inside(facts):
    """The first inferences are slower, and nobody marked them."""
    inferences(facts, 20)
    durations = {name: [facts.trace.dur[i] for i in own] for name, own in by_thread(facts)}
    for thread, count, k, mean, without, change in warm_ups(facts):
        if k and change is not None and abs(change) >= 5:
            yield Finding(thread, f"the first {k} of {count} inferences of {thread} are warm-up: the mean is "
                                  f"{ns_text(mean)} with and {ns_text(without)} without them",
                          f"put the first {k} into PROF_WARM_UP, or do more warm-up before",
                          {"first": k, "inferences": count, "mean_ns": mean, "mean_without_ns": without},
                          None, None, "sure" if stands_out(durations[thread], k) else "likely")


def leak(facts):
    """Memory that only grows."""
    if not facts.memory.tagged:
        raise Missing("memory records with a change: PROF_ALLOC and PROF_FREE")
    inferences(facts, 8)
    for pool, tag, first, last, samples, each in facts.memory.leaks:
        yield Finding(tag, f"{tag} in {pool} grows by {bytes_text(each)} with each inference, from "
                           f"{bytes_text(first)} to {bytes_text(last)}",
                      f"free {tag}, or bound its cache", {"first_bytes": first, "last_bytes": last,
                                                          "per_inference_bytes": each},
                      None, None, "likely")


def memory_tight(facts):
    """A pool is nearly full."""
    if not facts.memory.known:
        raise Missing("memory records")
    for pool, peak, capacity in facts.memory.tight:
        tags = ", ".join([row[1] for row in facts.memory.holders if row[0] == pool][:3])
        yield Finding(pool, f"{pool} is {pct_text(pct(peak, capacity))} % full at its peak",
                      f"free or shrink its largest holders{': ' + tags if tags else ''}",
                      {"peak_bytes": peak, "capacity_bytes": capacity}, None, None, "sure")
    for pool, unused, held in facts.memory.loose:
        yield Finding(pool, f"{pool} holds {bytes_text(unused)} that are not in use, "
                            f"{pct_text(pct(unused, held))} % at its peak",
                      "let the pool give memory back, or allocate in other sizes",
                      {"unused_bytes": unused, "allocated_bytes": held}, None, None, "likely")
