# SPDX-License-Identifier: MIT
"""Asks the tool what a change would bring, and the driver what it brings.

    asked(case, path)       Answers: the predictions of one case, and how its findings were
"""

from collections import namedtuple
from fractions import Fraction

import npuprof
from npuprof.analysis import replay
from npuprof.analysis.facts import Facts
from npuprof.analysis.verdict import judge

from .driver import OPERATORS, Run
from .paper import Paper
from .shapes import is_clean

MARGIN = 0.5               # percent points by which an interval may miss and is said to hold
CLEAN_PCT = 3              # what nothing but the device brings in a clean run
NEAR_PCT = 1               # owners that bring as much as the best but for this are as good
HALF = Fraction(1, 2)
# measure: "p50" or "window"; low, high: what the tool says, None where it refuses; truth: of the re-run. In
# percent, positive if faster.
Prediction = namedtuple("Prediction", "case question measure low high truth")
# first: "right", "wrong" or "none"; false: findings of a clean run that are none, None if it is not clean.
Answers = namedtuple("Answers", "case predictions first false")


def questions(shape):
    """{question: the change as the tool takes it}"""
    found = {"device": ("device", None, HALF)}
    if shape["records"] == "instructions" and shape["wait"] != "sampled":
        found |= {f"operator:{name}": ("operator", name, HALF) for name in OPERATORS}
        found["load"] = "load", None, HALF
    works = {"completion thread": ["complete"], "callback": ["postprocess"], "works only": ["step"]}
    names = ["prepare", "finish", *["pack"] * (shape["lock"] != "none"), *works.get(shape["wait"], ())]
    return found | {f"host:{name}": ("host", name, HALF) for name in names}


def gain(before, after):
    return 100 * (before - after) / before


def facts_of(run, path):
    path.write_text(Paper(run).text())
    return Facts(npuprof.load(path))


def predictions(case, facts, before, question, change):
    """Of the median inference and of the window."""
    after, effect = Run(case, {question: 0.5}), replay.of(facts).effect(change)
    for measure, said, truth in (
            ("p50", effect and effect.inference, gain(before.median, after.median)),
            ("window", effect and effect.window, gain(before.window, after.window))):
        low, high = map(float, said) if said else (None, None)
        yield Prediction(case, question, measure, low, high, truth)


def asked(case, path):
    run = Run(case)
    facts = facts_of(run, path)
    found = [one for question, change in questions(case.shape).items()
             for one in predictions(case, facts, run, question, change)]
    told = [finding for finding in judge(facts).findings if finding.rule.kind == "gain"]
    truth = {one.question: one.truth for one in found if one.measure == "p50"}
    return Answers(case, found, first_of(told, truth), false_of(case, told, truth))


def owner(finding):
    """The question that a finding answers; None: another one."""
    if finding.change and finding.change[0] == "load":
        return "load"
    if finding.subject in OPERATORS:
        return f"operator:{finding.subject}"
    return "device" if finding.subject in ("Execution", "kernel") else f"host:{finding.subject}"


def first_of(told, truth):
    """Whether the first finding is of the owner whose halving brings most. A device is an owner only where
    nothing is known of what it does."""
    owners = {name: pct for name, pct in truth.items()
              if name != "device" or not any(one.startswith("operator") for one in truth)}
    best = max(owners.values())
    if not told:
        return "none" if best >= CLEAN_PCT else "right"
    return "right" if owners.get(owner(told[0]), -100) >= best - NEAR_PCT else "wrong"


def false_of(case, told, truth):
    around = [pct for name, pct in truth.items() if name == "load" or name.startswith("host:")]
    if not is_clean(case) or max(around) >= CLEAN_PCT:
        return None
    return [finding.rule.name for finding in told if owner(finding) not in truth
            or owner(finding) == "load" or owner(finding).startswith("host:")]


def miss(one):
    """By how many points the truth is outside of what was said."""
    return max(one.low - one.truth, one.truth - one.high, 0)


def is_missed(one):
    return one.low is not None and miss(one) > MARGIN
