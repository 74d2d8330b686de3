# SPDX-License-Identifier: MIT
"""--fail-on: a verdict as a gate.

    any, sure, likely      any finding; any that is sure; any that is sure or likely
    RULE                   a rule by name or number: host_bound, V2
    FIGURE>N, FIGURE<N     a figure of the headline: idle_pct>20, p99_ns>2000000, rate_per_s<500

A rule that could not run, and a figure that is not known, are refused, and so are, of a fleet, traces that
cannot be used: a gate that sees nothing must not pass. A "?" behind them allows it: tail?
"""

import re
from fractions import Fraction

from ..analysis.rules import RULES
from ..base.messages import Refused, meant

FIGURE = re.compile(r"([a-z0-9_]+)([<>])(-?\d+(?:\.\d+)?)")
CONFIDENCES = {"any": ("sure", "likely", "unsure"), "sure": ("sure",), "likely": ("sure", "likely")}


def parse(texts):
    """Checks --fail-on before anything is read. Returns the conditions, with commas split."""
    wanted = [part for text in texts or () for part in text.split(",")]
    for part in wanted:
        if not part:
            raise Refused("--fail-on: it names no rule; leave the option away if nothing shall fail")
        plain = part.removesuffix("?")
        if plain not in CONFIDENCES and rule_of(plain) is None and not FIGURE.fullmatch(plain):
            names = [rule.name for rule in RULES]
            there_are = f"; there are any, sure, likely, FIGURE>N, FIGURE<N, and: {', '.join(names)}"
            raise Refused(f"--fail-on {part}: no such rule{meant(plain, names) or there_are}")
    return wanted


def rule_of(text):
    return next((rule for rule in RULES if text in (rule.name, rule.number)), None)


def figure_of(headline, name, part):
    """The figure of that name; None: it is not known."""
    if name == "largest_idle" or name not in headline:
        names = ", ".join(key for key in headline if key != "largest_idle")
        raise Refused(f"--fail-on {part}: no such figure; there are: {names}")
    return headline[name]


def failed(verdict, wanted):
    """The first sentence about a condition that holds, or None. Raises Refused if one cannot be told."""
    blind = []
    for part in wanted:
        plain, allowed = part.removesuffix("?"), part.endswith("?")
        figure = FIGURE.fullmatch(plain)
        if plain in CONFIDENCES:
            found = [f for f in verdict.every() if f.confidence in CONFIDENCES[plain]]
            if found:
                return f"--fail-on {part}: {found[0].rule.name} {found[0].subject}".rstrip()
            if verdict.none:
                blind.append((part, allowed, f"there is no verdict: {verdict.none}"))
        elif figure:
            value = figure_of(verdict.facts.headline, figure[1], part)
            if value is None:
                blind.append((part, allowed, "the trace does not tell it"))
            elif (value > Fraction(figure[3])) if figure[2] == ">" else (value < Fraction(figure[3])):
                return f"--fail-on {part}: {figure[1]} is {float(value):.10g}"
        else:
            rule = rule_of(plain)
            found = [f for f in verdict.every() if f.rule is rule]
            if found:
                return f"--fail-on {part}: {found[0].sentence}"
            missing = [text for own, text in verdict.missing if own is rule]
            if missing:
                blind.append((part, allowed, f"the rule could not run: it needs {missing[0]}"))
    for part, allowed, why in blind:
        if not allowed:
            raise Refused(f"--fail-on {part}: {why}; write {part}? to allow it")
    return None
