# SPDX-License-Identifier: MIT
"""Scope: what scope() and its siblings return. The class in C and the one here do the same."""

import itertools
import sys
import threading

from . import calls, native, tasks
from .library import arguments_of, encoded, library, name_of, plain

BOUNDARIES = (2, 4)               # records and inferences: capture control counts them while it waits
numbers = itertools.count(1)


class Own(threading.local):
    """Of a thread: its innermost open span."""

    top = None

    def innermost(self):
        return self.top


own = Own()


class InPython:
    """A span: a context manager, and a decorator. scope() makes it."""

    __slots__ = ("level", "kind", "category", "name", "values", "late", "state", "token", "below", "number",
                 "is_asked", "others", "open")

    def __init__(self, level, kind, category, name, values):
        self.level, self.kind, self.category, self.name, self.values = level, kind, category, name, values
        self.late = self.state = None
        self.token, self.others, self.open = 0, {}, 0      # open: how often it is entered now

    def __enter__(self):
        self.open += 1
        if library.begin is not None or library.ready():
            if self.open > 1:
                return self.enter_other(sys._getframe(1))
            if library.level() >= self.level or self.kind in BOUNDARIES:
                self.begin(sys._getframe(1))
        return self

    def enter_other(self, frame):
        """Entered while it is open: by another thread or task, or deeper in its own. That is another span."""
        other = self._again()
        tasks.keep_other(self.others, other, frame)
        if library.level() >= self.level or self.kind in BOUNDARIES:
            other.begin(frame)
        return other

    def begin(self, frame):
        self.number, self.is_asked = next(numbers), False
        if not hasattr(library.named, "done"):
            library.name_thread()
        self.state = tasks.enter(self, frame) if frame.f_code.co_flags & tasks.SUSPENDS \
            or frame.f_code.co_filename == tasks.CONTEXTLIB else None
        if self.state is not None:
            return
        values = self.values
        if tasks.newest and (above := tasks.parent(self)) is not None:
            values = {**(values or {}), "scope.parent": above}
        arguments = arguments_of(values) if values else (None, 0)
        self.token = library.begin(self.level, self.kind, name_of(self.category), name_of(self.name),
                                   *arguments)
        if self.token:
            self.below, own.top = own.top, self

    def __exit__(self, *_):
        self.open -= self.open > 0
        if self.others and (other := tasks.take_other(self.others, sys._getframe(1))) is not None:
            other.__exit__()
        elif self.state is not None:
            tasks.leave(self)
            self.state = self.late = None
        elif self.token:
            self.end()

    def end(self):
        values = {**(self.late or {}), **({"scope.id": self.number} if self.is_asked else {})}
        if values:
            library.add_args(*arguments_of(values))
        library.end(self.token)
        self.token, self.late, at = 0, None, own.top
        while at is not None and at is not self:
            at = at.below
        if at is not None:
            own.top = self.below

    def set(self, /, **args):
        """Arguments that become known while the span is open."""
        if self.token or self.state is not None:
            self.late = {**(self.late or {}), **args}

    def _again(self):
        return InPython(self.level, self.kind, self.category, self.name, self.values)

    def __call__(self, function):
        return calls.recorded(function, self._again)

    def __aenter__(self):
        return enter_async(self)

    def __aexit__(self, *_):
        return exit_async(self)


async def enter_async(span):
    return span.__enter__()


async def exit_async(span):
    span.__exit__(None, None, None)


if native.module:
    Scope, new_span, tasks.innermost = native.module.Scope, native.module.span, native.module.innermost
    native.module.setup(library.ready, library.name_thread, plain, encoded, tasks.enter, tasks.leave,
                        tasks.parent, calls.recorded, enter_async, exit_async, tasks.keep_other,
                        tasks.take_other)
else:
    Scope = new_span = InPython
    tasks.innermost = own.innermost
