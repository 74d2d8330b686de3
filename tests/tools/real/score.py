# SPDX-License-Identifier: MIT
"""How often what is said of a real driver holds: a table, a style in a line."""

from statistics import median

from .runs import name

HEAD = "| style | measured | said | width | held, idle | noise | held, loaded | noise |\n" + "|---" * 8 + "|"


def is_held(one, noise):
    return one.low - noise[one.measure] <= one.truth <= one.high + noise[one.measure]


def missed(found):
    """The predictions of a Tried that do not hold."""
    return [one for one in found.predictions if not is_held(one, found.noise)]


def held(found):
    """Two cells: how many predictions hold, and the noise of both measures."""
    return (f"{len(found.predictions) - len(missed(found))} of {len(found.predictions)}",
            f"{found.noise['p50']:.1f}, {found.noise['window']:.1f}")


def said(found):
    """[(low, high)] that a faster device brings the median inference."""
    return [(one.low, one.high) for one in found.predictions
            if (one.question, one.measure) == ("device", "p50")]


def width(found):
    return median(high - low for low, high in said(found))


def row(idle, loaded):
    """A line of the table. idle, loaded: Tried of one style; None: not tried."""
    found = idle or loaded
    truth = median(one.truth for one in found.predictions if (one.question, one.measure) == ("device", "p50"))
    low, high = map(median, zip(*said(found)))
    cells = (name(found.case), f"{truth:.1f}", f"{low:.1f} to {high:.1f}", f"{width(found):.1f}",
             *(held(idle) if idle else ("", "")), *(held(loaded) if loaded else ("", "")))
    return f"| {' | '.join(cells)} |"


def table(idle, loaded):
    """Both: [Tried]."""
    of = {}
    for place, found in enumerate((idle, loaded)):
        for one in found:
            of.setdefault(name(one.case), [None, None])[place] = one
    rows = [row(*pair) for pair in of.values()]
    asked = sum(len(found.predictions) for found in (*idle, *loaded))
    wrong = sum(len(missed(found)) for found in (*idle, *loaded))
    return "\n".join([HEAD, *rows, "", f"All: {asked - wrong} of {asked} held."])


def details(found):
    """A line for each prediction of a Tried that does not hold."""
    for one in missed(found):
        yield (f"{name(found.case)}{', loaded' * found.case.loaded}: {one.question} {one.measure}: "
               f"{one.low:.1f} to {one.high:.1f}, measured {one.truth:.1f}, noise "
               f"{found.noise[one.measure]:.1f}")
