# SPDX-License-Identifier: MIT
"""The verdict over a fleet: what the verdicts of its ranks say together.

A finding of a fleet is one rule about one subject. What it brings is the median over the ranks that have it.
Order: the share of the ranks times that gain times the confidence (sure 1, likely 0.7, unsure 0.3); a finding
that promises no gain counts as 2 %. Its confidence is the one that most of these ranks give, the lower of two
equal ones."""

from ..analysis.rules import RULES
from ..analysis.rules.finding import ns_text, pct_text
from ..analysis.verdict import WEIGHT
from ..base.messages import Refused
from ..report.gate import CONFIDENCES, FIGURE, rule_of
from ..report.screen import wrapped
from ..tables.table import Table, pct

KINDS = 10_000     # rules with their subjects that are told apart
STATE = 2          # percent, as if, of a finding without a gain
SHOWN = 5
NUMBERS = {rule.name: n for n, rule in enumerate(RULES)}
COLUMNS = ("rule", "subject", "ranks", "ranks_pct", "gain_of", "median_gain_pct", "max_gain_pct",
           "confidence", "worst_rank", "advice", "file")


class Finding:
    """One rule about one subject: the gains of the ranks that have it, and the words of the worst. subjects:
    as the ranks call it; gains: by what they are of."""

    __slots__ = ("by_of", "confidences", "worst", "rank", "words", "in_ranks", "subjects")

    def __init__(self):
        self.by_of, self.confidences, self.in_ranks, self.subjects = {}, dict.fromkeys(WEIGHT, 0), {}, {}
        self.worst = self.rank = self.words = None

    def add(self, number, subject, of, gain, confidence, words):
        self.in_ranks[number] = self.subjects[subject] = None
        self.confidences[confidence] += 1
        if gain is not None:
            self.by_of.setdefault(of, []).append(gain)
        if self.words is None or (gain or 0) > (self.worst or 0):
            self.worst, self.rank, self.words = gain, number, words

    @property
    def of(self):
        """What most of its gains are of; None: it has none."""
        return max(self.by_of, key=lambda of: (len(self.by_of[of]), of), default=None)

    @property
    def gains(self):
        return self.by_of.get(self.of, [])

    @property
    def ranks(self):
        return len(self.in_ranks)

    @property
    def subject(self):
        first, more = next(iter(self.subjects)), len(self.subjects) - 1
        return f"{first} and {more} more" if more else first

    @property
    def confidence(self):
        return max(WEIGHT, key=lambda name: (self.confidences[name], -WEIGHT[name]))

    @property
    def median(self):
        return median_of(self.gains)


class Findings:
    """by_key: {(rule, subject): Finding}; missing: {rule: [ranks, what they lack]}. Subjects that each rank
    calls by a number of its own are one."""

    def __init__(self):
        self.by_key, self.missing, self.ranks = {}, {}, 0

    def add(self, number, found, missing):
        self.ranks += 1
        for rule, subject, common, of, gain, confidence, words in found:
            key = rule, common
            if key not in self.by_key and len(self.by_key) >= KINDS:
                key, subject = (rule, "(others)"), "(others)"
            self.by_key.setdefault(key, Finding()).add(number, subject, of, gain, confidence, words)
        for rule, text in missing:
            self.missing.setdefault(rule, [0, text])[0] += 1

    def ordered(self):
        """[(key, Finding)], the one with the most to gain first; trust in the traces before that."""
        trust = {rule.name for rule in RULES if rule.kind == "trust"}

        def place(item):
            (rule, subject), found = item
            worth = found.ranks * (STATE if found.median is None else found.median) * WEIGHT[found.confidence]
            return rule not in trust, -worth, NUMBERS[rule], subject
        return sorted(self.by_key.items(), key=place)


def median_of(values):
    """The median of Fractions, exact; None of nothing."""
    ordered, half = sorted(values), len(values) // 2
    if not ordered:
        return None
    return ordered[half] if len(ordered) % 2 else (ordered[half - 1] + ordered[half]) / 2


def findings_table(fleet):
    rows = [(rule, found.subject, found.ranks, pct(found.ranks, fleet.findings.ranks), found.of,
             found.median, max(found.gains, default=None), found.confidence,
             fleet.ranks[found.rank]["rank"], found.words[1], fleet.ranks[found.rank]["file"])
            for (rule, _), found in fleet.findings.ordered()]
    return Table("findings", "What to change: the verdicts of all ranks together (gain: the median of the "
                             "ranks that have it)", COLUMNS, rows, notes(fleet))


def notes(fleet):
    found = sorted(fleet.findings.missing.items(), key=lambda item: NUMBERS[item[0]])
    return [f"not looked at in {ranks} of {fleet.findings.ranks} ranks: {rule} (needs {text})"
            for rule, (ranks, text) in found]


def straggler_lines(stragglers):
    """Yields a text for each rank that is slower than the others, its cause rather than its latency."""
    of_rank = {}
    for rank, host, figure, value, middle, over, operator, _, file in stragglers.rows:
        known = of_rank.get(file)
        if known is None or known[2] == "latency p50":
            of_rank[file] = rank, host, figure, value, middle, over, operator
    for rank, host, figure, value, middle, over, operator in list(of_rank.values())[:SHOWN]:
        share = "" if over is None else f", {pct_text(over)} % more"
        where = f"; most of that in {operator}" if operator else ""
        yield from wrapped(f"rank {rank}{f' ({host})' if host else ''} is slower than the others: {figure} "
                           f"{ns_text(value)} against {ns_text(middle)} in the median rank{share}{where}",
                           "! ", "  ")
    if len(of_rank) > SHOWN:
        yield f"({len(of_rank) - SHOWN} more: --table stragglers)"


def lines(fleet, stragglers):
    """Yields the verdict as text, at most 100 columns wide. stragglers: the table."""
    ordered, ranks = fleet.findings.ordered(), fleet.findings.ranks
    if not ordered:
        yield from wrapped(f"No finding: no change promises a gain above the noise in any of the {ranks} "
                           "ranks.", "", "  ")
    for n, ((rule, _), found) in enumerate(ordered[:SHOWN], 1):
        worst = fleet.ranks[found.rank]["rank"]
        worth = ""
        if found.median is not None:
            what = "latency" if found.of == "latency" else "window"
            worth = f"{what} at most -{pct_text(found.median)} % "
        what = f"{rule} {found.subject}".rstrip()
        text = (f"{what}: {worth}in {found.ranks} of {ranks} ranks, most in rank {worst}; evidence: "
                f"{found.confidence}")
        yield from wrapped(text, f"{n} ", "  ")
        yield from wrapped(f"rank {worst}: {found.words[0]}", "  ", "  ")
        yield from wrapped(found.words[1], "  -> ", "     ")
    if len(ordered) > SHOWN:
        yield f"({len(ordered) - SHOWN} more: --table findings)"
    yield from straggler_lines(stragglers)


def failed(fleet, wanted):
    """The first sentence about a condition of --fail-on that holds, or None; see report/gate.py."""
    for part in wanted:
        plain = part.removesuffix("?")
        if FIGURE.fullmatch(plain):
            raise Refused(f"--fail-on {part}: a figure is of one trace, and here are several")
        rule = rule_of(plain)
        for (name, _), found in fleet.findings.ordered():
            if found.confidence in CONFIDENCES.get(plain, ()) or (rule and rule.name == name):
                return f"--fail-on {part}: {name} {found.subject}".rstrip() + f" in {found.ranks} ranks"
        if rule and not part.endswith("?"):
            ranks, text = fleet.findings.missing.get(rule.name, (0, ""))
            if ranks == fleet.findings.ranks:
                raise Refused(f"--fail-on {part}: the rule could not run: it needs {text}; write {part}? to "
                              "allow it")
    blind = next((part for part in wanted if not part.endswith("?")), None)
    if blind and fleet.left_out:
        raise Refused(f"--fail-on {blind}: {len(fleet.left_out)} of {len(fleet.left_out) + len(fleet.ranks)} "
                      f"traces cannot be used; write {blind}? to allow it")
    return None
