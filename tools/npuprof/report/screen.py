# SPDX-License-Identifier: MIT
"""The verdict as text: one screen of 100 columns."""

import os
import textwrap
from collections import namedtuple
from fractions import Fraction

from ..analysis.replay import of as replay_of
from ..analysis.rules.finding import idle_text, ns_text, pct_text
from ..analysis.verdict import part_of
from ..base.losses import ring_causes

WIDTH = 100
FINDINGS = 5
# above: the number of the entry that hides what this one brings, or None. results: findings that are
# consequences of it.
Entry = namedtuple("Entry", "number finding above results")


def lines(verdict):
    """Yields the lines of the screen."""
    yield from wrapped(looked_at(verdict), "", "  ")
    yield from diagnosed(verdict.facts.diagnosis)
    yield from wrapped(figures(verdict), "", "  ")
    entries = numbered(verdict)
    for entry in entries[:FINDINGS]:
        yield from of_finding(entry)
    if len(entries) > FINDINGS:
        yield f"({len(entries) - FINDINGS} more: --verdict json)"
    yield from open_questions(verdict)
    if not entries and not is_open(verdict):
        yield from wrapped(nothing(verdict), "", "  ")
    yield from wrapped(together(verdict), "", "  ")
    if verdict.missing:
        yield from wrapped("Not looked at: " + "; ".join(not_looked_at(verdict)), "", "  ")


def diagnosed(findings):
    """What is wrong with the trace itself."""
    for finding in findings[:FINDINGS]:
        yield from wrapped(finding.sentence, "  FAULT: " if finding.is_fault else "  warning: ", "    ")
    if len(findings) > FINDINGS:
        yield f"  ({len(findings) - FINDINGS} more: npuprof.py check)"


def not_looked_at(verdict):
    """Texts: rules that could not run, and what they need."""
    texts = {}
    for rule, text in verdict.missing:
        texts.setdefault(text, []).append(rule.name)
    return [f"{', '.join(names)} (needs {text})" for text, names in texts.items()]


def numbered(verdict):
    """[Entry]: the findings in order. Those that bring nothing as long as another one is there come last."""
    entries, hidden = [], []
    for number, finding in enumerate(verdict.findings, 1):
        own = [one for one in verdict.below(finding) if not one.hidden]
        entries.append(Entry(number, finding, None, own))
        hidden += [(one, number) for one in verdict.below(finding) if one.hidden]
    for finding, above in hidden:
        entries.append(Entry(len(entries) + 1, finding, above, []))
    return entries


def wrapped(text, first, rest):
    return textwrap.wrap(text, WIDTH, initial_indent=first, subsequent_indent=rest) if text else []


def count(number, what):
    return f"{number} {what}{'' if number == 1 else 's'}"


def looked_at(verdict):
    """The first line: what was looked at."""
    facts, head = verdict.facts, verdict.facts.headline
    parts = [f"{count(head['inferences'], 'inference')} in {ns_text(facts.window.length_ns)} "
             f"({facts.window.text})" if head["inferences"] else
             f"{ns_text(facts.window.length_ns)} ({facts.window.text})"]
    if head["devices"]:
        devices = f" of {head['devices']} devices" if head["devices"] > 1 else ""
        parts.append(count(head["pes"], "PE") + f" (processing element{'s' * (head['pes'] != 1)}){devices}")
    what = "spans and entries of rings" if ring_causes(facts.losses) else "spans"
    # Why no "nothing lost" beside a finding: it may be about what is missing and was not counted.
    if head["lost"]:
        parts.append(f"{head['lost']} {what} lost")
    elif not facts.diagnosis:
        parts.append("nothing lost" if "lost" in facts.trace.metadata else "losses not known")
    if head["max_error_ns"] is not None:
        parts.append(f"device times within +-{ns_text(head['max_error_ns'])}")
    if facts.window.paused_ns:
        parts.append(f"{ns_text(facts.window.paused_ns)} paused")
    return f"{os.path.basename(facts.trace.path)}: " + ", ".join(parts)


def figures(verdict):
    """The second line: latency, rate, how busy the device was."""
    head, parts = verdict.facts.headline, []
    if head["p50_ns"] is not None:
        most = (f"max {ns_text(head['max_ns'])}" if head["p99_ns"] is None else
                f"p99 {ns_text(head['p99_ns'])}")
        speed = "" if head["rate_per_s"] is None else f", {rate(head['rate_per_s'])} inferences/s"
        parts.append(f"latency p50 {ns_text(head['p50_ns'])}, {most}{speed}")
    if head["busy_pct"] is not None:
        busy = f"busy {pct_text(head['busy_pct'])} % of the time"
        if head["parallelism_ratio"] is not None and head["pes"] > 1:
            parts.append(f"at least one PE is {busy}, {float(head['parallelism_ratio']):.2f} of "
                         f"{head['pes']} at a time while any is")
        else:
            parts.append(f"the device is {busy}")
    if head["open_ratio"] is not None:
        parts.append(f"{float(head['open_ratio']):.2f} requests in flight on average, "
                     f"{float(head['device_depth_ratio']):.2f} of them on the device")
    if head["largest_idle"] and head["largest_idle_pct"] >= 1:
        label, _, span = head["largest_idle"].partition(" ")
        parts.append(f"most idle time of the device ({pct_text(head['largest_idle_pct'])} %): "
                     f"{idle_text(label, span)}")
    return "; ".join(parts)


def rate(value):
    return f"{float(value):.0f}" if value >= 100 else f"{float(value):.3g}"


def worth(finding, above=None):
    """What a finding brings, in words, and how good its evidence is. above: see Entry."""
    parts = []
    if finding.gain:
        what, of = {"latency": ("latency", "median "), "throughput": ("window", "")}[finding.of]
        low, high = map(saved, finding.gain)
        # Why not both ends where one is no gain: at most is what is known.
        both = finding.replayed and low != high and (finding.assumed or finding.gain[0] >= 0.05)
        change = f"{low} to {high}" if both else high if high == "0" else f"at most {high}"
        text = f"{what} {change} %"
        if not finding.replayed:
            text += ", its share of the time"
        elif finding.ns and high != "0":
            text += f" ({of}{ns_text(finding.ns[0])} to {ns_text(finding.ns[1])})"
        parts.append(f"{text} until {above} is solved" if above else text)
        if finding.jobs and finding.jobs[1] > finding.gain[1] + 1:
            parts.append(f"device time {saved(finding.jobs[1])} %")
    return ", ".join(parts) + f"{'; ' * bool(parts)}evidence: {finding.confidence}"


def saved(gain):
    """A gain as a change: -81; 0 if it rounds to nothing."""
    return "0" if abs(gain) < 0.05 else f"-{pct_text(gain)}" if gain > 0 else f"+{pct_text(-gain)}"


def of_finding(entry):
    finding = entry.finding
    yield from wrapped(f"{title(finding)}: {worth(finding, entry.above)}", f"{entry.number} ", "  ")
    yield from wrapped(finding.sentence, "  ", "  ")
    yield from wrapped(advice(entry), "  -> ", "     ")
    for result in entry.results:
        text = f"{title(result)}: {result.sentence}; {worth(result)}"
        yield from wrapped(text, "  consequence: ", "     ")


def advice(entry):
    return f"after {entry.above}: {entry.finding.advice}" if entry.above else entry.finding.advice


def title(finding):
    return f"{finding.rule.name} {finding.subject}".rstrip()


def nothing(verdict):
    """The sentence of a verdict without findings."""
    facts = verdict.facts
    head = facts.headline
    if head["p50_ns"] is None and not head["executions"]:
        return "No finding: the window has neither inferences nor executions."
    what = f"the median inference ({ns_text(head['p50_ns'])} +- {pct_text(facts.noise_pct)} %)" \
        if head["p50_ns"] is not None else "the window"
    why = replay_of(part_of(facts)).why
    text = f"No finding, but no gain can be told: {why}." if why and head["executions"] else \
        f"No finding: no change promises more than {pct_text(verdict.threshold_pct)} % of {what}."
    name, (_, ns) = max(facts.engines.operators.items(), key=lambda item: item[1][1], default=("", (0, 0)))
    share = facts.share_of_inferences(ns)
    if name and share is not None:
        text += f" {name} takes {pct_text(share)} % of it"
        limit = facts.roof.get(name)
        if limit and limit.bound in ("compute", "memory"):
            peak = limit.compute_pct if limit.bound == "compute" else limit.memory_pct
            text += f", bound by {limit.bound} at {pct_text(peak)} % of the peak"
        text += "."
    return text


def between(gain):
    """A gain as a change: one number, or both ends where they differ."""
    low, high = map(saved, gain)
    return high if gain[1] - gain[0] < Fraction(1, 2) else f"{low} to {high}"


def is_open(verdict):
    """True: nobody knows whether a faster device would bring anything."""
    effect = verdict.faster
    gain = effect and effect.assumed and (effect.inference or effect.window)
    return bool(gain) and gain[0] < verdict.threshold_pct <= gain[1]


def open_questions(verdict):
    """What is not known, and what to record so that it is."""
    effect = verdict.faster
    if is_open(verdict):
        what = "latency" if effect.inference else "the window"
        yield from wrapped(f"Not known: what a faster device brings. One twice as fast changes {what} by "
                           f"{between(effect.inference or effect.window)} %.", "? ", "  ")
    for finding in verdict.questions[:2]:
        yield from wrapped(f"Not known: {title(finding)}, {worth(finding)}", "? ", "  ")
    if is_open(verdict) or verdict.questions:
        yield from wrapped(why_open(verdict.facts.jobs), "  ", "  ")
        yield from wrapped('make the span that waits a PROF_WAIT, or give it kind = "wait", or name it '
                           'with --wait NAME', "  -> ", "     ")


def why_open(jobs):
    """In words, what nothing says."""
    names = [name or "no span" for name in jobs.unmarked_names]
    if not names:
        return "Nothing shows which span waits for which job: a thread does this and that when one ends."
    return (f"A thread is in {' or in '.join(names)} until its job ends; nothing says whether it works or "
            "waits.")


def together(verdict):
    """What the first findings bring together, and what a faster device would."""
    facts, texts = verdict.facts, []
    replay = replay_of(part_of(facts))
    shown = [(n, f) for n, f, _, _ in numbered(verdict)[:FINDINGS]
             if not f.hidden and f.change and f.replayed and f.of == "latency"]
    if len(shown) > 1:
        effect = replay.effect(*(f.change for _, f in shown))
        if effect and effect.inference:
            numbers = " and ".join(str(n) for n, _ in shown)
            texts.append(f"{numbers} together: latency at most {saved(effect.inference[1])} %.")
    effect = verdict.faster
    if is_open(verdict):
        pass
    elif effect and effect.inference:
        texts.append(f"A device twice as fast would change latency by {between(effect.inference)} %.")
    elif replay.why and facts.jobs.queues and shown:
        texts.append(f"No replay: {replay.why}.")
    return " ".join(texts)
