# SPDX-License-Identifier: MIT
"""The verdict: what to change, what it brings at most, and how sure that is.

    verdict = judge(facts)
    verdict.findings         in order; `below` of each: findings that follow from it
    verdict.questions        what could be a finding, and hangs on what the trace does not say
    verdict.missing          [(rule, what the trace lacks)] of the rules that could not run
    verdict.faster           the Effect of a device twice as fast; None: it cannot be said
    verdict.threshold_pct    what a change must promise

Gains are percent of the median inference that a change saves, at most; of findings about throughput, percent
of the window. They come from replay (replay.py). Where it cannot say, the gain is at most the certain share
of the time, and the confidence one step lower. A finding must promise 2 %, or three times the noise of the
median, at most 10 %. Why at most: the spread of a small run does not make what is certain in it unsure.
Order: gain times confidence (sure 1, likely 0.7, unsure 0.3), then number.
"""

from fractions import Fraction

from ..tables.table import decimal, decimals_of
from . import replay
from .facts import Facts
from .rules import RULES
from .rules.finding import Missing
from .window import Window

WEIGHT = {"sure": Fraction(1), "likely": Fraction(7, 10), "unsure": Fraction(3, 10)}
REPLAYED = 20000     # inferences; of more, a gain is that of the middle ones
LOWER = {"sure": "likely", "likely": "unsure", "unsure": "unsure"}


class Verdict:
    """See judge()."""

    def __init__(self, facts):
        self.facts, self.findings, self.questions, self.missing = facts, [], [], []
        self.faster = facts.effect(("device", None, Fraction(1, 2)))
        noise = facts.noise_pct
        self.threshold_pct = max(Fraction(2), min(3 * noise, Fraction(10)))

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
    facts.effect = replay.of(part_of(facts)).effect
    verdict, found = Verdict(facts), []
    for rule in RULES:
        try:
            for finding in rule.judge(facts):
                finding.rule, finding.followers = rule, []
                keep = kept(verdict, finding)
                if keep and is_question(verdict, finding, found):
                    verdict.questions.append(finding)
                elif keep or keep is None:
                    found.append(finding)
        except Missing as missing:
            verdict.missing.append((rule, str(missing)))
    lost_share = facts.lost_pct
    if lost_share > 10:
        found = [finding for finding in found if finding.rule.number == "V0"]
        verdict.missing = [(rule, "a whole trace") for rule in RULES if rule.number != "V0"]
    elif lost_share > 1:
        for finding in found:
            if finding.rule.kind != "trust":
                finding.confidence = LOWER[finding.confidence]
    arrange(verdict, found)
    return verdict


def is_question(verdict, finding, found):
    """True: whether it brings anything hangs on what the trace does not say, and no finding is above it."""
    above = any(other.rule.name in finding.below for other in found)
    return finding.assumed and finding.gain[0] < verdict.threshold_pct and not above


def part_of(facts):
    """Facts of a window that replay can take: the middle REPLAYED inferences, if there are more."""
    if facts.part is None:
        rows, trace = facts.window.inferences, facts.trace
        if len(rows) <= REPLAYED:
            facts.part = facts
        else:
            first = (len(rows) - REPLAYED) // 2
            own = rows[first:first + REPLAYED]
            pairs = [(trace.start[own[0]], max(trace.start[i] + trace.dur[i] for i in own))]
            window = Window(trace, pairs, f"the middle {REPLAYED} inferences", facts.window.selection)
            facts.part = Facts(trace, window, facts.wait, facts.description)
    return facts.part


def kept(verdict, finding):
    """Sets the gain of a finding. False: it promises too little; None: only below another one."""
    facts = verdict.facts
    effect = facts.effect(finding.change) if finding.change else None
    gain = effect and (effect.inference if finding.of == "latency" and effect.inference else effect.window)
    if gain and gain[1] < verdict.threshold_pct <= effect.window[1]:
        # Why: where inferences differ, the median may be one that the change does not touch.
        gain, finding.of = effect.window, "throughput"
    if gain:
        finding.gain, finding.replayed, finding.jobs = gain, True, effect.jobs
        finding.assumed = effect.assumed
        if effect.assumed and finding.confidence == "sure":
            finding.confidence = "likely"
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


def weight(finding):
    worth = finding.gain[1] if finding.gain else finding.share or 0
    return WEIGHT[finding.confidence] * worth


def arrange(verdict, found):
    """Orders the findings, and puts those that follow from another one below it."""
    numbers = [rule.name for rule in RULES]
    found.sort(key=lambda f: (f.rule.kind != "trust", -weight(f), numbers.index(f.rule.name), f.subject))
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

