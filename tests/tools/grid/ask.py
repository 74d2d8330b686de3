# SPDX-License-Identifier: MIT
"""Asks the tool what a change would bring, and the driver what it brings.

    asked(case, path)       Answers: the predictions of one case, and how its findings were
"""

from collections import namedtuple
from fractions import Fraction

import npuprof
from npuprof.analysis import confidence, replay
from npuprof.analysis.facts import Facts
from npuprof.analysis.verdict import judge
from npuprof.report.first_screen import SHOWN, FirstScreen

from .driver import OPERATORS, Run
from .paper import Paper
from .shapes import is_clean

MARGIN = 0.5               # percent points by which an interval may miss and is said to hold
CLEAN_PCT = 3              # what nothing but the device brings in a clean run
NEAR_PCT = 1               # owners that bring as much as the best but for this are as good
HALF, GONE = Fraction(1, 2), " gone"
# measure: "p50" or "window"; low, high: what the tool says, None where it refuses; truth: of the re-run. In
# percent, positive if faster. word: what a finding that promises it may be called.
Prediction = namedtuple("Prediction", "case question measure low high truth word", defaults=("likely",))
# first: one of FIRST; false: findings of a clean run that are none, None if it is not clean.
Answers = namedtuple("Answers", "case predictions first false")
# What the first answer is: right; true, but another owner brings more; an open question, and the best one
# hangs on it or on another one of the screen; about something that no owner is, such as PEs; not true, or not
# enough; none; only that the trace is not whole.
FIRST = "right", "less", "asked", "other", "wrong", "none", "not whole"


def questions(shape):
    """{question: the change as the tool takes it}. An owner takes half the time; a span is gone."""
    found = {"device": ("device", None, HALF)}
    if shape["records"] == "instructions" and shape["wait"] != "sampled":
        found |= {f"operator:{name}": ("operator", name, HALF) for name in OPERATORS}
        found["load"] = "load", None, HALF
    works = {"completion thread": ["complete"], "callback": ["postprocess"], "works only": ["step"]}
    names = ["prepare", "finish", *["pack"] * (shape["lock"] != "none"), *works.get(shape["wait"], ())]
    return found | {f"host:{name}": ("host", name, HALF) for name in names} | {
        f"host:prepare{GONE}": ("host", "prepare", Fraction(0))}


def gain(before, after):
    return 100 * (before - after) / before


def facts_of(run, path):
    path.write_text(Paper(run).text())
    return Facts(npuprof.load(path))


def predictions(case, facts, before, question, change):
    """Of the median inference and of the window."""
    after, found = Run(case, {question.removesuffix(GONE): float(change[2])}), replay.of(facts)
    effect = found.effect(change)
    for measure, of, said, truth in (
            ("p50", "latency", effect and effect.inference, gain(before.median, after.median)),
            ("window", "throughput", effect and effect.window, gain(before.window, after.window))):
        low, high = map(float, said) if said else (None, None)
        yield Prediction(case, question, measure, low, high, truth,
                         effect and confidence.of_gain(found, effect, of))


def asked(case, path):
    run = Run(case)
    facts = facts_of(run, path)
    found = [one for question, change in questions(case.shape).items()
             for one in predictions(case, facts, run, question, change)]
    verdict = judge(facts)
    told = [finding for finding in verdict.findings if finding.rule.kind == "gain"]
    truth = {one.question: one.truth for one in found
             if one.measure == "p50" and not one.question.endswith(GONE)}
    return Answers(case, found, first_of(case, verdict, truth), false_of(case, told, truth))


def owner(finding):
    """The question that a finding answers; None: another one."""
    what, name, _ = finding.change or ("no change", None, None)
    if what == "operator" and name not in OPERATORS:
        return "device"
    return f"{what}:{name}" if name else what


def first_of(case, verdict, truth):
    """Which of FIRST the first answer is. An owner, an operator or a span of the host, is right if halving no
    other one brings more."""
    answers = FirstScreen(verdict).answers
    owners = {name: pct for name, pct in truth.items() if name != "device"}
    best = max(owners.values())
    if not answers or not (answers[0].brings or answers[0].sure == "unknown"):
        broken = answers and answers[0].finding.rule.kind == "trust"
        return "not whole" if broken else "none" if best >= CLEAN_PCT else "right"
    if answers[0].sure == "unknown":
        asked = [truth[name] for answer in answers[:SHOWN] if answer.sure == "unknown"
                 for name in truth if is_about(verdict, answer.finding, name)]
        return "asked" if max(asked, default=-100) >= best - NEAR_PCT else "wrong"
    name, least = owner(answers[0].finding), verdict.threshold_pct - 1
    if name not in owners:
        return "other"
    return "right" if owners[name] >= best - NEAR_PCT else "less" if owners[name] >= least else "wrong"


def is_about(verdict, finding, name):
    """True: what this owner brings hangs on that open question. finding: None of a faster device."""
    what, _, span = name.partition(":")
    if finding is None:
        return what != "host" or span in verdict.facts.jobs.unmarked_names
    return owner(finding) == name


def false_of(case, told, truth):
    around = [pct for name, pct in truth.items() if name == "load" or name.startswith("host:")]
    if not is_clean(case) or max(around) >= CLEAN_PCT:
        return None
    return [finding.rule.name for finding in told if owner(finding) not in truth
            or not owner(finding).startswith(("operator", "device"))]


def miss(one):
    """By how many points the truth is outside of what was said."""
    return max(one.low - one.truth, one.truth - one.high, 0)


def is_missed(one):
    return one.low is not None and miss(one) > MARGIN
