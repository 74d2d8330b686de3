# SPDX-License-Identifier: MIT
"""The verdict: what to change, what it brings, and how sure that is.

    verdict = judge(facts)
    verdict.findings         in order; `below` of each: findings that follow from it
    verdict.questions        what could be a finding, and hangs on what the trace does not say
    verdict.missing          [(rule, what the trace lacks)] of the rules that could not run
    verdict.none             why there is no verdict, or ""
    verdict.faster           the Effect of a device twice as fast; None: it cannot be said
    verdict.threshold_pct    what a change must promise

Gains are percent of the median inference that a change saves; of findings about throughput, percent of the
window. They come from replay (replay.py). Where it cannot say, the gain is at most the certain share of the
time, and the confidence one step lower. A finding must promise facts.threshold_pct. Whatever owns a part of
the critical path that would bring as much is one: rules give words, and what nothing else is about is found
by what it would bring.
Order: the low end of the gain, then the high one times confidence (sure 1, likely 0.7, unsure 0.3), then
number.
"""

from fractions import Fraction

from ..base.losses import has_holes
from ..tables.table import decimal, decimals_of
from . import confidence
from .outliers import FEW, is_pattern
from .part import Part
from .rules import OWNERS, RULES
from .rules.finding import Missing

WEIGHT = {"sure": Fraction(1), "likely": Fraction(7, 10), "unsure": Fraction(3, 10)}
INSIDE = "operator", "load"          # changes that a faster device contains
NO_VERDICT = {"csv": "a CSV has no arrows, marks, losses or errors of clocks; give the .json or .npuprof of "
                     "the same recording"}
LOWER = {"sure": "likely", "likely": "unsure", "unsure": "unsure"}


class Verdict:
    """See judge()."""

    def __init__(self, facts):
        self.facts, self.findings, self.questions, self.missing, self.none = facts, [], [], [], ""
        self.faster = facts.effect(("device", None, Fraction(1, 2))) if facts.jobs.queues else None
        self.threshold_pct = facts.threshold_pct

    @property
    def faster_gain(self):
        """(what the gain is of, the gain) of a device twice as fast; None: it cannot be said."""
        effect = self.faster
        if effect is None:
            return None
        return ("latency", effect.inference) if effect.inference else ("throughput", effect.window)

    @property
    def is_open(self):
        """True: nobody knows whether a faster device would bring anything."""
        known = self.faster_gain
        return bool(known and self.faster.assumed and known[1][0] < self.threshold_pct <= known[1][1])

    def every(self):
        """All findings, with those below others."""
        for finding in self.findings:
            yield finding
            yield from self.below(finding)

    def below(self, finding):
        """All findings below this one."""
        for follower in finding.followers:
            yield follower
            yield from self.below(follower)


def judge(facts):
    """The Verdict over Facts."""
    if facts.trace.format in NO_VERDICT:
        return without_verdict(facts)
    verdict, found = Verdict(facts), []
    for rule in RULES:
        try:
            for finding in rule.judge(facts):
                finding.rule, finding.followers = rule, []
                keep = not is_told(finding, found) and kept(verdict, finding)
                keep = keep if not keep or is_pattern(facts, finding) else False
                if keep and is_question(verdict, finding, found):
                    verdict.questions.append(finding)
                elif keep or keep is None:
                    found.append(finding)
        except Missing as missing:
            verdict.missing.append((rule, str(missing)))
    # Why: no interval of a median holds for so few, nor a gain where the jobs' lengths are not known, or
    # which lanes are one engine.
    jobs = facts.jobs
    for finding in found if 0 < len(facts.durations) < FEW or jobs.are_drawn_loosely or jobs.shared else ():
        if finding.rule.kind == "gain":
            finding.confidence = "unsure"
    # Why: another tool merged the clocks of host and device, and nobody knows how far they are off.
    for finding in found if facts.trace.tool and facts.jobs.queues else ():
        finding.certain_ns = None
        if finding.rule.kind != "trust":
            finding.confidence = LOWER[finding.confidence]
    lost_share = facts.lost_pct
    if lost_share > 10:
        found = [finding for finding in found if finding.rule.number == "V0"]
        verdict.missing = [(rule, "a whole trace") for rule in RULES if rule.number != "V0"]
    elif lost_share > 1 or has_holes(facts.trace.metadata):
        for finding in found:
            if finding.rule.kind != "trust":
                finding.confidence = LOWER[finding.confidence]
    if verdict.is_open:
        verdict.questions = [one for one in verdict.questions if not is_of_device(facts, one.change)]
    arrange(verdict, found)
    return verdict


def without_verdict(facts):
    """The Verdict of a form that cannot have the one that the recording has: no rule could run."""
    verdict = Verdict(facts)
    verdict.none = NO_VERDICT[facts.trace.format]
    verdict.missing = [(rule, verdict.none) for rule in RULES]
    return verdict


def is_of_device(facts, change):
    """True: what it brings hangs on the same as what a faster device brings."""
    what, name, _ = change or ("", None, None)
    return what in INSIDE or (what == "host" and name in facts.jobs.unmarked_names)


def is_told(finding, found):
    """True: another rule has found the same, and says more about it."""
    return finding.rule.name in OWNERS and any(
        other.rule.name != finding.rule.name and other.change and other.change[:2] == finding.change[:2]
        for other in found)


def is_question(verdict, finding, found):
    """True: whether it brings anything hangs on what the trace does not say, and no finding is above it."""
    # Why: that one is slower than its equals is a fact, whatever it costs.
    if finding.change and isinstance(finding.change[1], Part):
        return False
    above = any(other.rule.name in finding.below for other in found)
    return finding.assumed and finding.gain[0] < verdict.threshold_pct and not above


def kept(verdict, finding):
    """Sets the gain of a finding. False: it promises too little; None: only below another one."""
    facts = verdict.facts
    replayed = facts.gain(finding.change, finding.of) if finding.change else None
    if replayed:
        finding.of, finding.gain, effect = replayed
        finding.replayed, finding.jobs, finding.assumed = True, effect.jobs, effect.assumed
        most = confidence.of_gain(facts.replay, effect, finding.of)
        finding.confidence = min(finding.confidence, most, key=WEIGHT.get)
    elif finding.share is None and finding.change is None and finding.rule.kind == "gain":
        return True              # it promises nothing: a consequence, or what cannot be foreseen
    elif finding.share is not None and finding.rule.kind == "gain":
        finding.gain = Fraction(0), Fraction(finding.share)
        if finding.change:
            finding.confidence = LOWER[finding.confidence]
    if finding.gain:
        now = facts.durations_p50 if finding.of == "latency" else facts.window.length_ns
        finding.ns = now and (now, now * (100 - finding.gain[1]) / 100)
    if finding.rule.kind != "gain" or finding.gain[1] >= verdict.threshold_pct:
        return True
    if finding.hidden_by and finding.jobs and finding.jobs[1] >= 5:
        finding.below, finding.hidden = finding.hidden_by, True
        return None
    return False


def worth(finding):
    """What findings are put in order by."""
    low, high = finding.gain or (0, finding.share or 0)
    return max(low, 0), WEIGHT[finding.confidence] * high


def arrange(verdict, found):
    """Orders the findings, and puts those that follow from another one below it."""
    numbers = [rule.name for rule in RULES]
    found.sort(key=lambda f: (numbers.index(f.rule.name), f.subject))
    found.sort(key=worth, reverse=True)
    found.sort(key=lambda f: f.rule.kind != "trust")
    by_name = {}
    for finding in found:
        by_name.setdefault(finding.rule.name, finding)
    for finding in found:
        above = next((by_name[name] for name in finding.below if name in by_name), None)
        if above is not None:
            above.followers.append(finding)
        elif finding.below is not finding.hidden_by or not finding.hidden_by:
            verdict.findings.append(finding)


def as_json(verdict):
    """The JSON form: a dict. Numbers stay whole where they are; a Fraction gets its decimals."""
    facts, trace = verdict.facts, verdict.facts.trace

    def number(key, value):
        if isinstance(value, Fraction):
            return float(decimal(value, decimals_of(key)))
        return value

    def of(finding):
        gain = [number("gain_pct", g) for g in finding.gain] if finding.gain else None
        latency = finding.of == "latency"
        return {"rule": finding.rule.name, "number": finding.rule.number, "subject": finding.subject,
                "sentence": finding.sentence, "advice": finding.advice,
                "evidence": {key: number(key, value) for key, value in finding.evidence.items()},
                "certain_ns": None if finding.certain_ns is None else round(finding.certain_ns),
                "gain": {"inference_pct": gain if latency else None,
                         "window_pct": None if latency else gain, "replayed": finding.replayed,
                         "jobs_pct": finding.jobs and [number("_pct", g) for g in finding.jobs]},
                "confidence": finding.confidence, "hidden": finding.hidden,
                "rows": [trace.span_id(i) for i in finding.rows],
                "spans": [{"row": i, "name": trace.text(i), "start_ns": trace.start[i],
                           "dur_ns": trace.dur[i]} for i in finding.rows],
                "followers": [of(follower) for follower in finding.followers]}
    window = facts.window
    faster = verdict.faster and (verdict.faster.inference or verdict.faster.window)
    return {"npuprof_report": 1, "trace": {"path": trace.path, "spans": len(trace)},
            "window": {"start_ns": window.start_ns, "end_ns": window.end_ns, "paused_ns": window.paused_ns,
                       "length_ns": window.length_ns, "chosen": window.text},
            "headline": {key: number(key, value) for key, value in facts.headline.items()},
            "threshold_pct": number("_pct", verdict.threshold_pct),
            "findings": [of(finding) for finding in verdict.findings],
            "questions": [of(finding) for finding in verdict.questions],
            "device_twice_as_fast_pct": faster and [number("_pct", gain) for gain in faster],
            "not_evaluated": [{"rule": rule.name, "missing": [text]} for rule, text in verdict.missing]}

