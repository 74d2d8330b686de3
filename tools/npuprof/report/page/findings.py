# SPDX-License-Identifier: MIT
"""What the page shows of the verdict, in the words of the first screen (report/first_screen.py): the answers,
and which drawn spans prove each."""

from ...analysis.verdict import as_json, judge
from ..first_screen import FirstScreen, of_answer
from .stops import MOST, stops

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
    screen, window = FirstScreen(found), found.facts.window

    def card(answer):
        rows = answer.finding.rows[:SHOWN] if answer.finding else ()
        return {**of_answer(answer), "places": [place[row] for row in rows if row in place],
                "results": list(map(card, answer.results))}
    answers = list(map(card, screen.answers))
    for one, answer in zip(answers[:MOST], screen.answers):
        one["stops"] = stops(found.facts, answer)
    return {"headline": as_json(found)["headline"], "trace": screen.trace, "figures": screen.figures,
            "answers": answers, "shown": len(screen.next) + 1,
            "nothing": screen.nothing, "faster": screen.faster, "operators": screen.operators,
            "not_looked_at": screen.not_looked_at, "record": screen.record, "means": screen.means,
            "length": window.length_ns, "from": window.start_ns - zero, "to": window.end_ns - zero}
