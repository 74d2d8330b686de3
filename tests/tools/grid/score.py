# SPDX-License-Identifier: MIT
"""How often intervals hold, how wide they are, by class and by value of each dimension."""

from collections import namedtuple
from statistics import median

from .ask import FIRST, is_missed, miss
from .shapes import DIMENSIONS, class_of, plain, rung

WIDE = 10                  # points: a wider interval says that it is not known
EXACT = 0.05               # points: no more can be seen in what is printed
PENALTY = 40               # of the interval score: 2 / (1 - 0.95)
HEAD = "| {} | asked | held | exactly | width p50 | p90 | score | wide | refused |\n" + "|---" * 9 + "|"
# asked: predictions; held, exact: how many of the answered hold with the margin and without; wide: how many
# are wider than WIDE; score: mean of width + PENALTY * miss.
Score = namedtuple("Score", "asked answered held exact width p90 score wide")


def score_of(predictions):
    answered = [one for one in predictions if one.low is not None]
    widths = sorted(one.high - one.low for one in answered) or [0]
    return Score(len(predictions), len(answered), sum(not is_missed(one) for one in answered),
                 sum(miss(one) <= EXACT for one in answered), median(widths), widths[len(widths) * 9 // 10],
                 sum(widths + [PENALTY * miss(one) for one in answered]) / len(widths),
                 sum(width > WIDE for width in widths))


def grouped(predictions, key):
    """{key: Score}, in the order of the keys."""
    found = {}
    for one in predictions:
        found.setdefault(key(one), []).append(one)
    return {name: score_of(found[name]) for name in sorted(found)}


def by_class(predictions):
    return grouped(predictions, lambda one: ", ".join(class_of(one.case.shape)))


def pct(part, whole):
    return f"{100 * part / whole:.1f} %" if whole else "-"


def row(name, s):
    cells = (name, s.asked, pct(s.held, s.answered), pct(s.exact, s.answered), f"{s.width:.1f}",
             f"{s.p90:.1f}", f"{s.score:.0f}", pct(s.wide, s.answered), pct(s.asked - s.answered, s.asked))
    return f"| {' | '.join(map(str, cells))} |"


def table(title, scores):
    return "\n".join([HEAD.format(title), *(row(name, score) for name, score in scores.items())])


def findings(answers):
    """Sentences about first findings and clean runs."""
    for name in ("marked", "not marked", "sampled"):
        first = [answer.first for answer in answers if rung(answer.case.shape) == name]
        counts = ", ".join(f"{first.count(kind)} {kind}" for kind in FIRST)
        yield f"First answer, {name}, of {len(first)}: {counts}."
    clean = [answer.false for answer in answers if answer.false is not None]
    yield f"Clean runs with false findings: {sum(map(bool, clean))} of {len(clean)}."


def word(one):
    """How sure such a gain is said to be, as a finding or as a question."""
    return one.word if one.word == "sure" or one.high - one.low <= WIDE else "unknown"


def by_word(predictions):
    """{word: Score} of what was answered."""
    return grouped([one for one in predictions if one.low is not None], word)


def published(answers):
    """What tools/README.md has of a run of the grid."""
    predictions = [one for answer in answers for one in answer.predictions]
    scores = by_class(predictions) | {"all": score_of(predictions)}
    words = [f"{name.capitalize()}: {score.held:,} of {score.answered:,} held."
             for name, score in by_word(predictions).items()]
    return "\n".join([table("wait, arrivals, sharing", scores), "", *words, "", *findings(answers)])


def details(answers):
    """Tables by question, measure and value of each dimension."""
    predictions = [one for answer in answers for one in answer.predictions]
    yield table("question", grouped(predictions, lambda one: f"{one.question} {one.measure}"))
    for name in DIMENSIONS:
        yield table(name, grouped(predictions, lambda one: f"{name} {one.case.shape[name]}"))
    narrow = [one for one in predictions if one.low is not None and one.high - one.low <= WIDE]
    yield "Answers of at most 10 points:\n" + table("wait, question", grouped(
        narrow, lambda one: f"{rung(one.case.shape)}, {one.question} {one.measure}"))


def said(one):
    """A prediction as a line."""
    base = plain()
    other = ", ".join(f"{name}={value}" for name, value in one.case.shape.items() if value != base[name])
    return (f"case {one.case.number}: {one.question} {one.measure}: {one.low:.1f} to {one.high:.1f}, truth "
            f"{one.truth:.1f}; {other or 'all plain'}")
