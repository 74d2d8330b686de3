# SPDX-License-Identifier: MIT
"""The first screen as text: 100 columns."""

import textwrap

from .first_screen import FirstScreen

WIDTH = 100
BAR = 40           # columns
FAULTS = 5


def lines(verdict):
    """Yields the lines of the first screen."""
    return of_screen(FirstScreen(verdict))


def of_screen(screen):
    yield from wrapped(screen.trace, "", "  ")
    yield from diagnosed(screen.diagnosis)
    if screen.first:
        yield from in_full(screen.first)
    yield from wrapped(screen.nothing, "", "  ")
    for answer in screen.next:
        yield from headline(answer)
    if screen.more:
        yield f"({screen.more} more: --verdict)"
    yield from wrapped(screen.faster, "", "  ")
    yield from wrapped(screen.operators, "", "  ")
    for what, texts in ("Not looked at", screen.not_looked_at), ("Record to know more", screen.record):
        yield from wrapped(f"{what}: {'; '.join(texts)}" if texts else "", "", "  ")


def whole_verdict(verdict):
    """Yields the first screen, then the other answers in full."""
    screen = FirstScreen(verdict)
    yield from of_screen(screen)
    for answer in screen.answers[1:]:
        yield ""
        yield from in_full(answer)
    if screen.figures:
        yield ""
        yield from wrapped(screen.figures, "", "  ")
    for word, text in screen.means.items():
        yield from wrapped(f"{word.capitalize()}: {text}.", "", "  ")


def diagnosed(findings):
    """What is wrong with the trace itself."""
    for finding in findings[:FAULTS]:
        yield from wrapped(finding.sentence, "  FAULT: " if finding.is_fault else "  warning: ", "    ")
    if len(findings) > FAULTS:
        yield f"  ({len(findings) - FAULTS} more: npuprof check)"


def wrapped(text, first, rest):
    return textwrap.wrap(text, WIDTH, initial_indent=first, subsequent_indent=rest) if text else []


def headline(answer):
    """What to do, what it brings and how sure that is."""
    sure = f": {answer.brings}, {answer.sure}" if answer.brings else f" ({answer.sure})"
    return wrapped(answer.do + sure, f"{answer.number or '?'} ", "  ")


def in_full(answer):
    """The headline of an answer, its bar, evidence, advice and consequences."""
    yield from headline(answer)
    if answer.bar:
        yield from bars(answer)
    yield from wrapped(answer.why, "  ", "  ")
    yield from wrapped(answer.advice, "  -> ", "     ")
    for result in answer.results:
        yield from wrapped(f"{result.why}; {', '.join(filter(None, (result.brings, result.sure)))}",
                           "  so, too: ", "     ")


def bars(answer):
    """Before and after on one scale; the part of which nobody knows whether it goes is hatched."""
    bar = answer.bar
    most = max(bar.now, bar.high)

    def columns(ns):
        return round(BAR * ns / most) if most else 0
    sure = columns(bar.low)
    then = "#" * sure + "/" * (columns(bar.high) - sure)
    yield f"  now   {'#' * columns(bar.now):<{BAR}}  {bar.now_text}"
    yield from wrapped(f"  then  {then:<{BAR}}  {bar.then_text}  ({answer.given})", "", " " * (BAR + 10))
