# SPDX-License-Identifier: MIT
"""The first screen: what to do first, what it brings and how sure that is. Text, JSON and page show this
one object, so a sentence is made once."""

import os
import re
from collections import namedtuple

from ..analysis import reactions
from ..analysis.effects import (BATCH, BESIDE, CALL, CLOCK, DOOR, FENCE, JOB, KILL, LATE, ORDER, POLL, POOL,
                                PREEMPT, REQUEST, START, TICK, TURNS)
from ..analysis.rules.finding import idle_text, ns_text
from ..base.losses import ring_causes
from ..tables.table import pct
from .words import bar_of, brings, decapital, do, given, in_unit, means, topic, whole

SHOWN = 3          # answers on the first screen
TOPICS = 6         # named as not looked at
LONGEST = 3        # operators by their time
MARK = 'make {} a PROF_WAIT, or give it kind = "wait", or name it with --wait NAME; or set desc.cpu_ns'
WIDE = 2           # points: of a narrower gain nobody asks why it is an interval
FAR = 4            # times what the first finding brings: what may bring more is asked first

# number: among the findings; None: a question or a consequence. brings: a gain in words, or "". sure: "sure",
# "likely", "unsure"; "unknown" of a question. given: under which condition. bar: a Bar, or None. finding: of
# the verdict, or None. after: the number of the finding that hides what this one brings, or None. results:
# answers that are consequences of it.
Answer = namedtuple("Answer", "number do brings sure given bar why advice finding after results")


class FirstScreen:
    """trace       one line about the trace
    figures     one line: latency, rate, how busy the device was, why not
    answers     every finding and open question as an Answer, the first one first: what brings something,
                what may bring something, what is said without a gain. What may bring FAR times as much as
                all that surely does comes before it
    first       the first of them, or None; next: the others on the screen; more: how many are not on it
    nothing     a sentence in place of the answers, or ""
    faster      what a device twice as fast brings, or "" if that is a question or not known
    operators   which operators take most time, or "" if there are not two
    means       what the words of its answers say: {"sure": ...}
    not_looked_at, record    texts: what no rule could look at; what to record so that they can"""

    def __init__(self, verdict):
        self.diagnosis = verdict.facts.diagnosis
        self.trace, self.figures = trace_line(verdict.facts), figures(verdict.facts)
        self.answers = answers_of(verdict)
        self.first, self.next = next(iter(self.answers), None), self.answers[1:SHOWN]
        self.more = max(0, len(self.answers) - SHOWN)
        self.nothing = "" if self.answers else nothing(verdict)
        self.faster, self.operators = faster(verdict), operators(verdict.facts)
        self.not_looked_at = topics(verdict)
        self.means = {word: text for word, text in means().items()
                      if any(answer.sure == word for answer in self.answers)}
        told = self.first.advice if self.first else ""
        self.record = records(verdict, [answer.advice for answer in self.answers
                                        if answer.sure == "unknown" and answer.advice != told])


def trace_line(facts):
    """What was looked at: inferences, how long one takes, how busy the device is, what is wrong with it."""
    head, like = facts.headline, facts.durations_p50 or facts.window.length_ns
    parts = [f"{count(head['inferences'], 'inference')} in {in_unit(facts.window.length_ns, like)}"
             if head["inferences"] else in_unit(facts.window.length_ns, like)]
    values = sum(len(series.ts) for series in facts.trace.counters)
    if values and not len(facts.trace):
        parts[0] = f"no spans; {count(values, 'value')} of counters: `npuprof view` draws them"
    if any(choice is not None for choice in facts.window.selection):
        parts[0] += f" ({facts.window.text})"
    if head["p50_ns"] is not None:
        most = ("max_ns", "longest") if head["p99_ns"] is None else ("p99_ns", "99 % within")
        parts[0] += f", median {in_unit(head['p50_ns'], like)}, {most[1]} {in_unit(head[most[0]], like)}"
    if facts.jobs.are_drawn_loosely:
        parts.append("how busy the device was is not known")
    elif head["busy_pct"] is not None:
        # Why: what may be one device or several is not busy so long for certain.
        who = "its lanes together" if facts.jobs.shared else "device"
        parts.append(f"{who} busy {whole(head['busy_pct'])} %")
    if head["max_error_ns"] is not None:
        parts.append(f"clock +-{ns_text(head['max_error_ns'])}")
    if facts.window.paused_ns:
        parts.append(f"{in_unit(facts.window.paused_ns, like)} paused")
    parts.append(lost(facts))
    return f"{os.path.basename(facts.trace.path)}: " + "; ".join(filter(None, parts))


def lost(facts):
    """What was lost, in words."""
    count, arguments = facts.headline["lost"], facts.losses.get("arguments")
    what = "spans and entries of rings" if ring_causes(facts.losses) else "spans"
    said = [f"{count} {what} lost"] * bool(count) + [f"{arguments} arguments lost"] * bool(arguments)
    if said:
        return "; ".join(said)
    # Why nothing beside a diagnosis: it may be about what is missing and was not counted.
    if facts.diagnosis:
        return ""
    return "losses not known" if count is None else "nothing lost"


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
        on_device = head["device_depth_ratio"]
        parts.append(f"{float(head['open_ratio']):.2f} requests in flight on average"
                     + ("" if on_device is None else f", {float(on_device):.2f} of them on the device"))
    if head["largest_idle"] and head["largest_idle_pct"] >= 1:
        label, _, span = head["largest_idle"].partition(" ")
        devices = "devices" if head["devices"] > 1 else "device"
        parts.append(f"most idle time of the {devices} ({whole(head['largest_idle_pct'])} %): "
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
    is_wide = finding.gain and finding.gain[1] - finding.gain[0] >= WIDE
    assumed = finding.assumed if is_wide else frozenset()
    if finding.replayed and reactions.is_unsteady(facts.replay):
        assumed |= {CLOCK}
    why = ". ".join(filter(None, (finding.sentence, why_open(facts, assumed)[0])))
    return Answer(number, do(finding), text, sure, condition if finding.gain else "", bar, why, advice,
                  finding, after, list(results))


def answers_of(verdict):
    """All answers in order."""
    found = list(findings_of(verdict))
    brings_nothing = [answer.finding.rule.kind == "state" and not answer.brings for answer in found]
    first = brings_nothing.index(True) if True in brings_nothing else len(found)
    answers, questions = found[:first], list(questions_of(verdict))
    # Why: 3 % for certain is little beside 45 % that a mark would show.
    most = max((answer.finding.gain[1] for answer in answers if answer.finding.gain), default=None)
    if most is not None and verdict.is_open and verdict.faster_gain[1][1] >= FAR * most:
        trust = sum(answer.finding.rule.kind == "trust" for answer in answers)
        answers.insert(trust, questions.pop(0))
    return [*answers, *questions, *found[first:]]


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


def questions_of(verdict):
    """What could bring something, and hangs on what the trace does not say."""
    facts = verdict.facts
    if verdict.is_open:
        of, gain = verdict.faster_gain
        now = facts.durations_p50 if of == "latency" else facts.window.length_ns
        yield Answer(None, "Not known yet: what a faster device brings", brings(gain, of), "unknown",
                     "device twice as fast", bar_of(of, now, gain), *why_open(facts, verdict.faster.assumed),
                     None, None, [])
    for finding in verdict.questions:
        answer, (why, advice) = answer_of(verdict, finding), why_open(facts, finding.assumed)
        text = f"Not known yet: what it brings to {decapital(answer.do)}"
        yield answer._replace(do=text, why=why, advice=advice)


ONE_LANE = "give jobs that run in turns one lane, or draw an arrow `dep` to a job from the one it waits for"
# What is not known, but for JOB: (in words, what to record so that something says it).
OPEN = {
    REQUEST: ("A thread may wait for requests between two jobs; nothing says when they come.",
              "draw an arrow from who sends a request to who serves it: PROF_FLOW_OUT, PROF_FLOW_IN"),
    TICK: ("A thread seems to wait for a clock, such as frames or a timer; nothing says which tick it takes "
           "if it is ready sooner.",
           "draw an arrow from what ticks to who waits for it: PROF_FLOW_OUT, PROF_FLOW_IN"),
    LATE: ("A thread comes when jobs of others have ended; nothing says whether it could have come "
           "sooner.",
           "start the recording when all threads are at work"),
    CALL: ("A sampled kernel lasts from its call to its return; nothing says how much of it the device "
           "works.",
           "let the device stamp its jobs: a ring, or npuprof_npu_begin() and _complete()"),
    START: ("A job waits while another lane of its device works; nothing says whether it waits for "
            "that one.", ONE_LANE),
    TURNS: ("Lanes of one device never work at the same time; nothing says whether they are one engine that "
            "takes turns.", ONE_LANE),
    PREEMPT: ("Jobs of one lane run inside of jobs of another lane of their device; nothing says whether "
              "they stop those for so long.",
              "end the span of a job that is stopped, and begin another one where it goes on"),
    KILL: ("The wait for a job ended before the job; nothing says whether a timeout ended both.",
           "leave jobs that did not end by themselves unfinished, or wait for their end"),
    BESIDE: ("Another thread works nearly as long as everything would take then; nothing says whether it "
             "brings the input or takes the results.",
             "draw arrows between threads that hand work over: PROF_FLOW_OUT, PROF_FLOW_IN"),
    BATCH: ("An inference takes longer behind a long one; nothing says whether it is a batch of all requests "
            "that have come.", "let an inference take one request at a time, and record again"),
    POOL: ("Threads begin and end together; nothing says whether a faster one takes more of their work.",
           "let each thread do as many inferences as the others, and record again"),
    CLOCK: ("The same work of the device takes longer in parts of the run, or after idle times; nothing says "
            "which clock rate it would have then.",
            "fix the clock rate of the device, or record when it is warm"),
    POLL: ("Threads look now and then whether their job is done: an end may come just before or just behind "
           "a look.", "look more often, or wait for an interrupt"),
    DOOR: ("A job starts behind or inside of the span that submits it; nothing says where in that span the "
           "device hears of it.", "give that span the argument doorbell_ns"),
    FENCE: ("Jobs start soon behind the end of a job of another device; nothing says whether they wait for "
            "it.", "draw an arrow `dep` to a job from the one it waits for"),
    ORDER: ("Several jobs may be what a thread waits for; nothing says which of them a wait is for.",
            "draw an arrow from each job to its wait"),
}

# The same, where marked waits come behind many jobs, and are too few.
FEW = ("{} for {}: nothing says which of them it is for.",
       "draw an arrow from each job to its wait, or record three such waits or more")


def why_open(facts, assumed):
    """(in words, what nothing says; what to record so that something does)"""
    whys, records, names = [], [], facts.jobs.unmarked_names
    if facts.jobs.few and assumed & {JOB, ORDER}:
        assumed = assumed - ({ORDER} if names else {JOB, ORDER})
        whys.append(FEW[0].format(count(len({facts.jobs.wait[k] for k in facts.jobs.few} - {-1}), "wait"),
                                  count(len(facts.jobs.few), "job")))
        records.append(FEW[1])
    if JOB in assumed:
        whys.append(waits_open(facts))
        records.append(MARK.format(" and ".join(names) if names and all(names) else "the span that waits"))
    for what, (why, record) in OPEN.items():
        if what in assumed:
            whys.append(why)
            records.append(record)
    return " ".join(whys), "; ".join(records)


def waits_open(facts):
    """In words, where threads may wait."""
    names = [name or "no span" for name in facts.jobs.unmarked_names]
    texts = [f"A thread is in {' or in '.join(names)} until its job ends; nothing says whether it works or "
             "waits."] if names else []
    if facts.replay.handing:
        where = ", ".join(sorted(facts.replay.handing))
        texts.append(f"It seems that threads wait for each other in {where}.")
    return " ".join(texts) or \
        "Nothing shows what threads wait for: one does this and that when a job or another one ends."


def faster(verdict):
    """What a device twice as fast would bring."""
    known, replay = verdict.faster_gain, verdict.facts.replay
    if verdict.none or verdict.is_open:
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
    if verdict.none:
        return f"No verdict: {verdict.none}."
    head = facts.headline
    if head["p50_ns"] is None and not head["executions"]:
        return "No finding: the window has no inferences (PROF_INFERENCE) and no executions of a device."
    why = facts.replay.why
    what = "the median inference" if head["p50_ns"] is not None else "the window"
    more = verdict.faster and facts.gain(("pes", None, 1))
    who = "nothing but a faster device" if verdict.faster else "no change"
    if more and more[1][1] >= verdict.threshold_pct:
        who += ", or more PEs (processing elements) of it,"
    text = f"No finding, but no gain can be told: {why}." if why and head["executions"] else \
        f"No finding: {who} promises more than {whole(verdict.threshold_pct)} % of {what}."
    name, (_, ns) = max(facts.engines.operators.items(), key=lambda item: item[1][1], default=("", (0, 0)))
    share = facts.owners.get(("operator", name)) or facts.share_of_inferences(ns)
    if name and share is not None and share <= 100 and not facts.jobs.are_drawn_loosely:
        text += f" The time is in {name}: {whole(share)} % of it"
        limit = facts.roof.get(name)
        if limit and limit.bound in ("compute", "memory"):
            peak = limit.compute_pct if limit.bound == "compute" else limit.memory_pct
            text += f", bound by {limit.bound} at {whole(peak)} % of the peak"
        text += "."
    return text


def operators(facts):
    """Which operators take most time in the window."""
    if facts.jobs.are_drawn_loosely:
        return ""
    total = {name: ns for name, (_, ns) in facts.engines.operators.items() if ns}
    most = sorted(total, key=lambda name: (-total[name], name))[:LONGEST]
    shares = ", ".join(f"{name} {whole(pct(total[name], sum(total.values())))} %" for name in most)
    return f"Most time of {len(total)} operators: {shares}." if len(total) > 1 else ""


def topics(verdict):
    """What no rule could look at."""
    if verdict.none:
        return []
    found = [topic(rule) for rule, _ in verdict.missing]
    return found if len(found) <= TOPICS else [*found[:TOPICS], f"{len(found) - TOPICS} more"]


def records(verdict, asked):
    """What to record so that more can be said. asked: for the questions."""
    asked = [part for text in asked for part in re.split("; (?!or )", text)]
    texts = list(dict.fromkeys(text for _, text in verdict.missing if text != verdict.none))
    counts = [text for text in texts if text.endswith(" inferences")]
    if len(counts) > 1:
        most = max(counts, key=lambda text: int(text.split()[0]))
        texts = [text for text in texts if text == most or text not in counts]
    if any("PROF_WAIT" in text for text in asked):
        texts = [text for text in texts if not text.startswith("wait spans")]
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
            "faster": screen.faster, "operators": screen.operators, "not_looked_at": screen.not_looked_at,
            "record": screen.record, "means": screen.means}
