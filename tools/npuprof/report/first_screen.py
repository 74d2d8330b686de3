# SPDX-License-Identifier: MIT
"""The first screen: what to do first, what it brings and how sure that is. Text, JSON and page show this
one object, so a sentence is made once."""

import os
from collections import namedtuple

from ..analysis.replay import JOB, POLL, REQUEST
from ..analysis.replay import of as replay_of
from ..analysis.rules.finding import idle_text
from ..analysis.verdict import part_of
from ..base.losses import ring_causes
from .words import bar_of, brings, decapital, do, given, in_unit, topic, whole

SHOWN = 3          # answers on the first screen
TOPICS = 6         # named as not looked at
MARK = 'make the span that waits a PROF_WAIT, or give it kind = "wait", or name it with --wait NAME'

# number: among the findings; None: a question or a consequence. brings: a gain in words, or "". sure: "sure",
# "likely", "unsure"; "unknown" of a question. given: under which condition. bar: a Bar, or None. finding: of
# the verdict, or None. after: the number of the finding that hides what this one brings, or None. results:
# answers that are consequences of it.
Answer = namedtuple("Answer", "number do brings sure given bar why advice finding after results")


class FirstScreen:
    """trace       one line about the trace
    figures     one line: latency, rate, how busy the device was, why not
    answers     every finding and open question as an Answer, the first one first
    first       the first of them, or None; next: the others on the screen; more: how many are not on it
    nothing     a sentence in place of the answers, or ""
    faster      what a device twice as fast brings, or "" if that is a question or not known
    not_looked_at, record    texts: what no rule could look at; what to record so that they can"""

    def __init__(self, verdict):
        self.diagnosis = verdict.facts.diagnosis
        self.trace, self.figures = trace_line(verdict.facts), figures(verdict.facts)
        self.answers = [*findings_of(verdict), *questions_of(verdict)]
        self.first, self.next = next(iter(self.answers), None), self.answers[1:SHOWN]
        self.more = max(0, len(self.answers) - SHOWN)
        self.nothing = "" if self.answers else nothing(verdict)
        self.faster = faster(verdict)
        self.not_looked_at = topics(verdict)
        told = self.first.advice if self.first else ""
        self.record = records(verdict, [answer.advice for answer in self.answers
                                        if answer.sure == "unknown" and answer.advice != told])


def trace_line(facts):
    """What was looked at: inferences, how long one takes, how busy the device is, what is wrong with it."""
    head, like = facts.headline, facts.durations_p50 or facts.window.length_ns
    parts = [f"{count(head['inferences'], 'inference')} in {in_unit(facts.window.length_ns, like)}"
             if head["inferences"] else in_unit(facts.window.length_ns, like)]
    if any(choice is not None for choice in facts.window.selection):
        parts[0] += f" ({facts.window.text})"
    if head["p50_ns"] is not None:
        most = ("max_ns", "longest") if head["p99_ns"] is None else ("p99_ns", "99 % within")
        parts[0] += f", median {in_unit(head['p50_ns'], like)}, {most[1]} {in_unit(head[most[0]], like)}"
    if head["busy_pct"] is not None:
        parts.append(f"device busy {whole(head['busy_pct'])} %")
    if head["max_error_ns"] is not None:
        parts.append(f"clock +-{in_unit(head['max_error_ns'], like)}")
    if facts.window.paused_ns:
        parts.append(f"{in_unit(facts.window.paused_ns, like)} paused")
    parts.append(lost(facts))
    return f"{os.path.basename(facts.trace.path)}: " + "; ".join(filter(None, parts))


def lost(facts):
    """What was lost, in words."""
    if facts.headline["lost"]:
        what = "spans and entries of rings" if ring_causes(facts.losses) else "spans"
        return f"{facts.headline['lost']} {what} lost"
    # Why nothing beside a diagnosis: it may be about what is missing and was not counted.
    if facts.diagnosis:
        return ""
    return "nothing lost" if "lost" in facts.trace.metadata else "losses not known"


def count(number, what):
    return f"{number} {what}{'' if number == 1 else 's'}"


def figures(facts):
    """How fast it runs, how much of the device works, and why it does not."""
    head, parts = facts.headline, []
    if head["rate_per_s"] is not None:
        speed = head["rate_per_s"]
        parts.append(f"{float(speed):{'.0f' if speed >= 100 else '.3g'}} inferences/s")
    if head["parallelism_ratio"] is not None and head["pes"] > 1:
        parts.append(f"{float(head['parallelism_ratio']):.2f} of {head['pes']} PEs (processing elements) "
                     "work at a time while any does")
    if head["open_ratio"] is not None:
        parts.append(f"{float(head['open_ratio']):.2f} requests in flight on average, "
                     f"{float(head['device_depth_ratio']):.2f} of them on the device")
    if head["largest_idle"] and head["largest_idle_pct"] >= 1:
        label, _, span = head["largest_idle"].partition(" ")
        parts.append(f"most idle time of the device ({whole(head['largest_idle_pct'])} %): "
                     f"{idle_text(label, span)}")
    return "; ".join(parts)


def answer_of(verdict, finding, number=None, after=None, results=()):
    facts, bar = verdict.facts, None
    text = brings(finding.gain, finding.of) if finding.gain else ""
    now = finding.ns and finding.ns[0]
    if finding.gain and now:
        bar = bar_of(finding.of, now, finding.gain)
    if after and text:
        text += f" until {after} is done"
    if finding.jobs and finding.jobs[1] > finding.gain[1] + 1:
        text += f", {brings(finding.jobs, 'device')}"
    condition = given(finding.change) if finding.replayed else "its share of the time, not replayed"
    advice = f"after {after}: {finding.advice}" if after else finding.advice
    sure = "unknown" if finding in verdict.questions else finding.confidence
    why = " ".join(filter(None, (finding.sentence, why_open(facts.jobs, finding.assumed)[0])))
    return Answer(number, do(finding), text, sure, condition if finding.gain else "", bar, why, advice,
                  finding, after, list(results))


def findings_of(verdict):
    """The findings in order. Those that bring nothing as long as another one is there come last."""
    answers, hidden = [], []
    for number, finding in enumerate(verdict.findings, 1):
        below = list(verdict.below(finding))
        results = [answer_of(verdict, one) for one in below if not one.hidden]
        answers.append(answer_of(verdict, finding, number, None, results))
        hidden += [(one, number) for one in below if one.hidden]
    for finding, above in hidden:
        answers.append(answer_of(verdict, finding, len(answers) + 1, above))
    return answers


def faster_gain(verdict):
    """(what the gain is of, the gain) of a device twice as fast; None: it cannot be said."""
    effect = verdict.faster
    if effect is None:
        return None
    return ("latency", effect.inference) if effect.inference else ("throughput", effect.window)


def is_open(verdict):
    """True: nobody knows whether a faster device would bring anything."""
    known = faster_gain(verdict)
    return bool(known and verdict.faster.assumed and known[1][0] < verdict.threshold_pct <= known[1][1])


def questions_of(verdict):
    """What could bring something, and hangs on what the trace does not say."""
    facts, jobs = verdict.facts, verdict.facts.jobs
    if is_open(verdict):
        of, gain = faster_gain(verdict)
        now = facts.durations_p50 if of == "latency" else facts.window.length_ns
        yield Answer(None, "Not known yet: what a faster device brings", brings(gain, of), "unknown",
                     "device twice as fast", bar_of(of, now, gain), *why_open(jobs, verdict.faster.assumed),
                     None, None, [])
    for finding in verdict.questions:
        answer, (why, advice) = answer_of(verdict, finding), why_open(jobs, finding.assumed)
        text = f"Not known yet: what it brings to {decapital(answer.do)}"
        yield answer._replace(do=text, why=why, advice=advice)


def why_open(jobs, assumed):
    """(in words, what nothing says; what to record so that something does)"""
    whys, records = [], []
    if JOB in assumed:
        whys.append(waits_open(jobs))
        records.append(MARK)
    if REQUEST in assumed:
        whys.append("A thread may wait for requests between two jobs; nothing says when they come.")
        records.append("draw an arrow from who sends a request to who serves it: PROF_FLOW_OUT, PROF_FLOW_IN")
    if POLL in assumed:
        whys.append("Threads look now and then whether their job is done: an end may come just before or "
                    "just behind a look.")
        records.append("look more often, or wait for an interrupt")
    return " ".join(whys), "; ".join(records)


def waits_open(jobs):
    """In words, where threads may wait."""
    names = [name or "no span" for name in jobs.unmarked_names]
    if not names:
        return "Nothing shows what threads wait for: one does this and that when a job or another one ends."
    return (f"A thread is in {' or in '.join(names)} until its job ends; nothing says whether it works or "
            "waits.")


def faster(verdict):
    """What a device twice as fast would bring."""
    known, replay = faster_gain(verdict), replay_of(part_of(verdict.facts))
    if is_open(verdict):
        return ""
    if any(need == "a whole trace" for _, need in verdict.missing):
        return "No gains are told: too much is missing."
    if known:
        return f"A device twice as fast: {brings(known[1], known[0])}."
    told = replay.why and verdict.facts.jobs.queues and verdict.findings
    return f"No replay: {replay.why}." if told else ""


def nothing(verdict):
    """The sentence of a verdict without findings."""
    facts = verdict.facts
    head = facts.headline
    if head["p50_ns"] is None and not head["executions"]:
        return "No finding: the window has neither inferences nor executions."
    why = replay_of(part_of(facts)).why
    what = "the median inference" if head["p50_ns"] is not None else "the window"
    text = f"No finding, but no gain can be told: {why}." if why and head["executions"] else \
        f"No finding: no change promises more than {whole(verdict.threshold_pct)} % of {what}."
    name, (_, ns) = max(facts.engines.operators.items(), key=lambda item: item[1][1], default=("", (0, 0)))
    share = facts.share_of_inferences(ns)
    if name and share is not None:
        text += f" The time is in {name}: {whole(share)} % of it"
        limit = facts.roof.get(name)
        if limit and limit.bound in ("compute", "memory"):
            peak = limit.compute_pct if limit.bound == "compute" else limit.memory_pct
            text += f", bound by {limit.bound} at {whole(peak)} % of the peak"
        text += "."
    return text


def topics(verdict):
    """What no rule could look at."""
    found = [topic(rule) for rule, _ in verdict.missing]
    return found if len(found) <= TOPICS else [*found[:TOPICS], f"{len(found) - TOPICS} more"]


def records(verdict, asked):
    """What to record so that more can be said. asked: for the questions."""
    texts = list(dict.fromkeys(text for _, text in verdict.missing))
    counts = [text for text in texts if text.endswith(" inferences")]
    if len(counts) > 1:
        most = max(counts, key=lambda text: int(text.split()[0]))
        texts = [text for text in texts if text == most or text not in counts]
    # Why: who records memory with its changes records memory.
    texts = [text for text in texts if not any(other.startswith(f"{text} ") for other in texts)]
    return [*dict.fromkeys(asked), *texts]


def of_answer(answer):
    """An Answer as a member of the JSON form."""
    bar = answer.bar and {"of": answer.bar.of, "now_ns": round(answer.bar.now),
                          "low_ns": round(answer.bar.low), "high_ns": round(answer.bar.high),
                          "now": answer.bar.now_text, "then": answer.bar.then_text}
    return {"number": answer.number, "do": answer.do, "brings": answer.brings, "sure": answer.sure,
            "given": answer.given, "bar": bar, "why": answer.why, "advice": answer.advice}


def as_json(verdict):
    """The first screen as a member of the JSON form."""
    screen = FirstScreen(verdict)
    return {"trace": screen.trace, "first": screen.first and of_answer(screen.first),
            "next": list(map(of_answer, screen.next)), "more": screen.more, "nothing": screen.nothing,
            "faster": screen.faster, "not_looked_at": screen.not_looked_at, "record": screen.record}
