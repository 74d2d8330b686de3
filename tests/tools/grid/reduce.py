# SPDX-License-Identifier: MIT
"""The smallest case that still misses: plain values wherever they do not help."""

from . import ask
from .driver import Run
from .shapes import plain


def again(one, shape, path):
    """The same prediction for another shape, or None if it holds or cannot be asked there."""
    case = one.case._replace(shape=shape)
    change = ask.questions(shape).get(one.question)
    if change is None:
        return None
    run = Run(case)
    found = ask.predictions(case, ask.facts_of(run, path), run, one.question, change)
    return next((new for new in found if new.measure == one.measure and ask.is_missed(new)
                 and 2 * ask.miss(new) > ask.miss(one)), None)


def smallest(one, path):
    """Why half of the miss: a smaller one may have another cause."""
    for name, value in plain().items():
        if one.case.shape[name] != value:
            one = again(one, one.case.shape | {name: value}, path) or one
    return one
