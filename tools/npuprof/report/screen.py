# SPDX-License-Identifier: MIT
"""The verdict as text: one screen of 100 columns."""

import os
import textwrap
from fractions import Fraction

from ..analysis.replay import of as replay_of
from ..analysis.rules.finding import ns_text, pct_text
from ..analysis.verdict import part_of

WIDTH = 100
FINDINGS = 5


def lines(verdict):
    """Yields the lines of the screen."""
    yield from wrapped(looked_at(verdict), "", "  ")
    yield from wrapped(figures(verdict), "", "  ")
    for number, finding in enumerate(verdict.findings[:FINDINGS], 1):
        yield from of_finding(finding, number)
    if len(verdict.findings) > FINDINGS:
        yield f"({len(verdict.findings) - FINDINGS} more: --verdict json)"
    if not verdict.findings:
        yield from wrapped(nothing(verdict), "", "  ")
    yield from wrapped(together(verdict), "", "  ")
    if verdict.missing:
        texts = {}
        for rule, text in verdict.missing:
            texts.setdefault(text, []).append(rule.name)
        yield from wrapped("Not looked at: " + "; ".join(f"{', '.join(names)} (needs {text})"
                                                         for text, names in texts.items()), "", "  ")


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
        parts.append(count(head["pes"], "PE") + devices)
    parts.append(f"{head['lost']} spans lost" if head["lost"] else "nothing lost"
                 if "lost" in facts.trace.metadata else "losses not known")
    if head["max_error_ns"] is not None:
        parts.append(f"clock +-{ns_text(head['max_error_ns'])}")
    if facts.window.paused_ns:
        parts.append(f"{ns_text(facts.window.paused_ns)} paused")
    return f"{os.path.basename(facts.trace.path)}: " + ", ".join(parts)


def figures(verdict):
    """The second line: latency, rate, how busy the device was."""
    head, parts = verdict.facts.headline, []
    if head["p50_ns"] is not None:
        most = (f"max {ns_text(head['max_ns'])}" if head["p99_ns"] is None else
                f"p99 {ns_text(head['p99_ns'])}")
        parts.append(f"p50 {ns_text(head['p50_ns'])}, {most}"
                     + ("" if head["rate_per_s"] is None else f", {rate(head['rate_per_s'])}/s"))
    if head["busy_pct"] is not None:
        text = f"a PE is busy {pct_text(head['busy_pct'])} % of the time"
        if head["parallelism_ratio"] is not None and head["pes"] > 1:
            text += f", {float(head['parallelism_ratio']):.2f} at once"
        parts.append(text)
    if head["open_ratio"] is not None:
        parts.append(f"in flight: {float(head['open_ratio']):.2f} for the host, "
                     f"{float(head['device_depth_ratio']):.2f} for the device")
    if head["largest_idle"] and head["largest_idle_pct"] >= 1:
        parts.append(f"largest idle: {head['largest_idle']} {pct_text(head['largest_idle_pct'])} %")
    return "; ".join(parts)


def rate(value):
    return f"{float(value):.0f}" if value >= 100 else f"{float(value):.3g}"


def worth(finding):
    """What a finding brings, in words."""
    text = ""
    if finding.gain:
        what = {"latency": "latency", "throughput": "window"}[finding.of]
        low, high = map(saved, finding.gain)
        text = f"{what} {low} to {high} %" if finding.replayed and low != high else f"{what} at most {high} %"
        if finding.jobs and finding.jobs[1] > finding.gain[1] + 1:
            text += f", device {saved(finding.jobs[1])} %"
    return f"{text} ({finding.confidence})" if text else f"({finding.confidence})"


def saved(gain):
    """A gain as a change: -81; 0 if it rounds to nothing."""
    return "0" if abs(gain) < 0.05 else f"-{pct_text(gain)}" if gain > 0 else f"+{pct_text(-gain)}"


def of_finding(finding, number):
    yield from wrapped(f"{title(finding)}: {worth(finding)}", f"{number} ", "  ")
    yield from wrapped(finding.sentence, "  ", "  ")
    yield from wrapped(finding.advice, "  -> ", "     ")
    for follower in finding.followers:
        text = f"{title(follower)}: {worth(follower)} {follower.sentence}"
        yield from wrapped(text, "  follows: ", "     ")


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
    text = f"No finding: no change promises more than {pct_text(verdict.threshold_pct)} % of {what}."
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


def together(verdict):
    """What the first findings bring together, and what a faster device would."""
    facts, texts = verdict.facts, []
    replay = replay_of(part_of(facts))
    shown = [(n, f) for n, f in enumerate(verdict.findings[:FINDINGS], 1)
             if f.change and f.replayed and f.of == "latency"]
    if len(shown) > 1:
        effect = replay.effect(*(f.change for _, f in shown))
        if effect and effect.inference:
            numbers = " and ".join(str(n) for n, _ in shown)
            texts.append(f"{numbers} together: latency at most {saved(effect.inference[1])} %.")
    effect = replay.effect(("device", None, Fraction(1, 2)))
    if effect and effect.inference:
        texts.append(f"A device twice as fast: latency {saved(effect.inference[1])} %.")
    elif replay.why and facts.jobs.queues:
        texts.append(f"No replay: {replay.why}.")
    return " ".join(texts)
