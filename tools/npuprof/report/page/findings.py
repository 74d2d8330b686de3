# SPDX-License-Identifier: MIT
"""What the page shows of the verdict, in the words of the first screen (report/screen.py): the findings, and
which drawn spans prove each."""

from ...analysis.verdict import as_json, judge
from .. import screen

SHOWN = 100        # spans of a finding that are marked


def verdict(facts):
    """The Verdict; None if there are neither executions nor inferences."""
    return judge(facts) if len(facts.jobs) or len(facts.window.inferences) else None


def rows_of(found):
    """The rows of all findings."""
    return {row for finding in found.every() for row in finding.rows[:SHOWN]}


def shown_verdict(found, place, zero):
    """The verdict for the page. place: {row: (group, place in it)} of the drawn spans; zero: the first ns
    of the trace."""
    if found is None:
        return None

    def card(finding, **more):
        return {"rule": finding.rule.name, "title": screen.title(finding), "sentence": finding.sentence,
                "places": [place[row] for row in finding.rows[:SHOWN] if row in place], **more}
    findings, window = [], found.facts.window
    for entry in screen.numbered(found):
        findings.append(card(entry.finding, number=entry.number, advice=screen.advice(entry),
                             worth=screen.worth(entry.finding, entry.above)))
        findings += [card(result, number=None, advice="", worth=screen.worth(result))
                     for result in entry.results]
    return {"headline": as_json(found)["headline"], "looked_at": screen.looked_at(found),
            "figures": screen.figures(found),
            "nothing": "" if findings or screen.is_open(found) else screen.nothing(found),
            "questions": [" ".join(text.split()) for text in screen.open_questions(found)],
            "together": screen.together(found), "findings": findings,
            "not_looked_at": screen.not_looked_at(found), "length": window.length_ns,
            "from": window.start_ns - zero, "to": window.end_ns - zero}
