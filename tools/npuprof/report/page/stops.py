# SPDX-License-Identifier: MIT
"""The slider of an answer: what less or more of its change brings, by the replay that gave its own gain."""

from fractions import Fraction

from ...analysis import replay
from ...analysis.part import has_job
from ..words import bar_of, brings, given, in_unit

MOST = 8                # answers that have a slider
HALF = Fraction(1, 2)
FACTORS = Fraction(3, 4), HALF, Fraction(1, 4), Fraction(1, 10)
DEPTHS, PES = (2, 3, 4, 8), (None, 1, 2, 4)
LATE = 75, 50, 25       # percentiles to which starts and notices are cut; the last stop is as the fastest


def change_of(answer):
    """The change that an answer is about; None: it has no gain from replay."""
    if answer.bar is None:
        return None
    if answer.finding is None:
        return "device", None, HALF         # the question what a faster device brings
    return answer.finding.change if answer.finding.replayed else None


def stops(facts, answer):
    """From as it is now on: {"given" the condition in words, "brings", and a "bar"}; the change of the answer
    itself is one of them. [] where replay cannot say."""
    change = change_of(answer)
    if change is None:
        return []
    now, latency = answer.bar.now, answer.bar.of == "median inference"
    found = [stop("as it is now", "latency" if latency else "throughput", now, (0, 0))]
    for other in around(facts, change):
        effect = facts.effect(other)
        gain = effect and (effect.inference if latency else effect.window)
        if gain:
            found.append(stop(condition(other), "latency" if latency else "throughput", now, gain)
                         | {"own": other == change})
    return found


def stop(text, of, now, gain):
    return {"given": text, "brings": brings(gain, of), "bar": shown_bar(bar_of(of, now, gain))}


def shown_bar(bar):
    return {"now_ns": round(bar.now), "low_ns": round(bar.low), "high_ns": round(bar.high),
            "now": bar.now_text, "then": bar.then_text}


def around(facts, change):
    """Changes of the same thing, the smallest first."""
    what, name, own = change
    if what == "depth":
        numbers = sorted({*DEPTHS, own})
    elif what == "pes":
        numbers = PES
    elif what in ("dispatch", "notice"):
        numbers = [*latest(facts, what, name), own]
    else:
        numbers = sorted({*FACTORS, own}, reverse=True)
    return [(what, name, number) for number in numbers]


def latest(facts, what, name):
    """ns, falling: percentiles of what a start or a notice takes, of those jobs."""
    points = facts.replay.points
    all_of_them = enumerate(points.latency) if what == "dispatch" else (
        (points.point[p].ref, ns) for p, ns in points.notice.items() if p not in points.early)
    known = sorted(ns for k, ns in all_of_them if has_job(name, points.jobs, k))
    return sorted({known[(len(known) - 1) * part // 100] for part in LATE}, reverse=True) if known else []


def condition(change):
    """Under which condition replay says so."""
    what, _, number = change
    if what == "depth":
        return f"{number} in flight"
    if what == "pes" and number:
        return f"{number} more PE{'' if number == 1 else 's'}, and jobs go to the one that is free first"
    if what in ("dispatch", "notice") and number is not None:
        return f"each {'started' if what == 'dispatch' else 'noticed'} within {in_unit(number, number)}"
    return given(change)
