# SPDX-License-Identifier: MIT
"""Rules about equals: a PE, a thread or a time that is slower than the others like it; and outliers."""

from fractions import Fraction

from ...tables.table import pct
from ..equals import factor
from ..outliers import FEW, outliers
from ..part import Part
from .finding import Finding, Missing, ns_text, pct_text


def unequal(facts, what):
    return [one for one in facts.equals.unequal if one.what == what]


def times_text(one):
    """1.68 to 1.72 times, or 1.70 times."""
    ends = dict.fromkeys(f"{1 + float(Fraction(ns, one.usual)):.2f}" for ns in (one.low, one.high))
    return f"{' to '.join(ends)} times as long as"


def others_text(one, what):
    return f"the other {what}" if one.others == 1 else f"the other {one.others} {what}s"


def evidence_of(one):
    return {"own_p50_ns": one.own, "others_p50_ns": one.usual, "shift_ns": one.shift,
            "shift_low_ns": one.low, "shift_high_ns": one.high, "spans": one.count, "others": one.others}


def slow_pe(facts):
    """The jobs of one PE take longer than the same jobs on the others."""
    if not facts.equals.compared and any(len(group.bases) > 1 for group in facts.lanes.groups):
        raise Missing("8 executions of each PE")
    for one in unequal(facts, "execute"):
        what = "; its operators do, too" if one.inside else \
            "; its operators do not: between them it waits, perhaps for what the PEs share" \
            if one.inside is False else "" if one.certain else "; whether its jobs are as large, nothing says"
        yield Finding(one.label, f"{one.label} takes {times_text(one)} {others_text(one, 'PE')} for jobs of "
                                 f"one kind: {ns_text(one.own)} against {ns_text(one.usual)} (median){what}",
                      f"compare what {one.label} has of its own: clock, memory, cores beside it; or give it "
                      "less work", evidence_of(one), one.low * one.count, share(facts, one),
                      "sure" if one.certain and one.inside is not False else "likely",
                      ("device", Part(lanes=(one.base,)), factor(one)), one.rows)


def slow_start(facts):
    """One PE starts its jobs later than the others do."""
    yield from later(facts, "dispatch", "{} starts a job {} later than {}",
                     "look at the way of a job to {}: its queue, its doorbell, what wakes it")


def slow_end(facts):
    """The ends of the jobs of one PE are noticed later than those of the others."""
    yield from later(facts, "notice", "an end on {} is noticed {} later than on {}",
                     "look at the way of an end from {}: its interrupt, and who waits for it")


def later(facts, what, sentence, advice):
    """Members that need more of `what`, in these words."""
    for one in unequal(facts, what):
        by = f"{ns_text(one.low)} to {ns_text(one.high)}"
        yield Finding(one.label, f"{sentence.format(one.label, by, others_text(one, 'PE'))}: "
                                 f"{ns_text(one.own)} against {ns_text(one.usual)} (median)",
                      advice.format(one.label), evidence_of(one), one.low * one.count, share(facts, one),
                      "sure", (what, Part(lanes=(one.base,)), one.usual), one.rows)


def slow_thread(facts):
    """One thread needs longer for a host span than the others do."""
    for one in unequal(facts, "host"):
        yield Finding(one.name, f"{one.name} takes {times_text(one)} on {others_text(one, 'thread')} when "
                                f"{one.label} runs it: {ns_text(one.own)} against {ns_text(one.usual)} "
                                "(median)",
                      f"see on which core {one.label} runs and where its memory is, and whether it gets more "
                      "work", evidence_of(one) | {"thread": one.label}, one.low * one.count,
                      share(facts, one), "likely",
                      ("host", Part(one.name, threads=(one.base,)), factor(one)), one.rows)


def share(facts, one):
    return facts.share_of_inferences(one.low * one.count)


def slow_times(facts):
    """The device changes between two speeds again and again."""
    for own in facts.levels:
        name = facts.jobs.devices[own.device]
        longer, drop = pct_text(100 * (own.factor - 1)), pct_text(100 - 100 / own.factor)
        if own.clock:
            why = f"all operators by the same factor, as if the clock dropped by {drop} %"
            advice = f"look at the clock of {name} over time: its governor, temperature and power limits"
        else:
            why = "not all operators by the same factor" if own.clock is False else \
                "nothing says whether all that it does is slower"
            advice = f"look for what comes back every {ns_text(own.period_ns)}: the clock of {name}, its " \
                     "memory, or larger data"
        slow = sum(min(b, facts.window.end_ns) - a for a, b in own.times)
        yield Finding(name, f"{own.slow} of each {own.period} executions take {longer} % longer: {why} "
                            f"(every {ns_text(own.period_ns)}, {len(own.times)} times)", advice,
                      {"longer_pct": 100 * (own.factor - 1), "slow": own.slow, "period": own.period,
                       "period_ns": own.period_ns, "episodes": len(own.times)}, None,
                      pct(slow, facts.window.length_ns) * (1 - Fraction(1 / own.factor)),
                      "sure" if own.clock else "likely",
                      ("device", Part(times=own.times), Fraction(1 / own.factor).limit_denominator(10**6)))


def outlier(facts):
    """Few inferences that take so long that they would pass for a pattern."""
    count = len(facts.window.inferences)
    if count < FEW:
        raise Missing(f"{FEW} inferences")
    found = outliers(facts)
    if not found:
        return
    k, longest, p50 = len(found.rows), facts.durations[-1], facts.durations_p50
    who = f"one inference of {count} took {ns_text(longest)}" if k == 1 else \
        f"{k} inferences of {count} took {ns_text(found.least)} or more"
    where = found.phase.replace("_", " ") + (f" ({found.span})" if found.span else "")
    share = pct(found.lost, facts.window.length_ns)
    yield Finding(where, f"{who}, where the median is {ns_text(p50)}; {ns_text(found.ns)} of that in "
                         f"{where}. It is no pattern, and {pct_text(share)} % of the window",
                  f"look at {'this one' if k == 1 else 'these'} alone: a page fault, a first use, another "
                  "program",
                  {"outliers": k, "inferences": count, "longest_ns": longest, "p50_ns": p50,
                   "lost_ns": found.lost, "lost_pct": share}, None, None, "sure", rows=found.rows[:3])
