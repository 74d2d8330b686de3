# SPDX-License-Identifier: MIT
"""Spans that may be suspended: those opened in the body of a coroutine or a generator.

While one is suspended, its thread does other things, so it is on no thread. It is recorded when it ends, on a
track "task N" that belongs to its task as long as the task has a span open; N is the lowest that is free.
There the spans of a task nest. Each states its number, `scope.id`, and that of the span that opened it,
`scope.parent`, also over threads and tasks: a task has a copy of the context of what made it.

What a generator calls is not inside the generator's scope: between two steps its caller goes on, in the same
context. A function of @contextmanager is no such generator: its scope is around the `with` block."""

import contextlib
import contextvars
import heapq
import itertools
import threading

from .library import Arguments, arguments_of, encoded, library, name_of

GENERATOR, COROUTINE, ITERABLE, ASYNC_GENERATOR = 0x20, 0x80, 0x100, 0x200      # of co_flags
SUSPENDS = GENERATOR | COROUTINE | ITERABLE | ASYNC_GENERATOR
KINDS = {2: "record", 3: "warm_up", 4: "inference", 5: "operator"}              # as in the JSON
CONTEXTLIB = contextlib.__file__
current = contextvars.ContextVar("npuprof.scope", default=None)
newest = {}                       # frame of a task or generator -> its innermost open State
free, lanes, lock = [], itertools.count(1), threading.Lock()
innermost = None                  # innermost(): the innermost span of this thread; span.py sets it


class State:
    """What leave() needs of an open span that may be suspended."""

    __slots__ = ("number", "parent", "outer", "owner", "lane", "reset", "start_ns", "is_open")


def suspending(frame):
    """The frame that can suspend what is opened in this frame; None: none can."""
    while frame is not None:
        code, back = frame.f_code, frame.f_back
        flags = code.co_flags & SUSPENDS
        if code.co_filename == CONTEXTLIB:
            frame = back
        elif not flags:
            return None
        elif flags & (COROUTINE | ITERABLE) or back is None or back.f_code.co_filename != CONTEXTLIB:
            return frame
        else:
            frame = back
    return None


def task_of(frame):
    """The outermost of the coroutines that wait for each other: it stands for the task."""
    while (back := frame.f_back) is not None and back.f_code.co_flags & SUSPENDS:
        frame = back
    return frame


def opener(outer):
    """The span that is the parent of one opened now: of those open here the last; None: there is none."""
    here = [span for span in (innermost(), current.get(), outer) if span is not None]
    return max(here, key=lambda span: span.number, default=None)


def enter(span, frame):
    """The State of a span opened in that frame; None: nothing can suspend it."""
    frame = suspending(frame)
    if frame is None or library.level() < span.level:
        return None
    state = State()
    in_task = frame.f_code.co_flags & (COROUTINE | ITERABLE)
    state.owner = task_of(frame) if in_task else frame
    state.number, state.outer, state.is_open = span.number, newest.get(state.owner), True
    above = opener(state.outer)
    if above is not None and not isinstance(above, State):
        above.is_asked = True
    state.parent = above and above.number
    with lock:
        state.lane = state.outer.lane if state.outer else heapq.heappop(free) if free else next(lanes)
        newest[state.owner] = state
    state.reset = current.set(state) if in_task else None
    state.start_ns = library.now_ns()
    return state


def leave(span):
    """Records it. A span that is closed by another thread or task than its own is recorded, too."""
    end_ns, state = library.now_ns(), span.state
    values = {**(span.values or {}), **(span.late or {}), "scope.id": state.number}
    if state.parent is not None:
        values["scope.parent"] = state.parent
    if span.kind in KINDS:
        values = {"kind": KINDS[span.kind], **values}
    library.span(name_of(f"task {state.lane}"), encoded(span.category), encoded(span.name), state.start_ns,
                 end_ns, Arguments(*arguments_of(values)))
    state.is_open = False
    if state.reset is not None:
        with contextlib.suppress(ValueError):         # the context is another one: the loop was closed
            current.reset(state.reset)
    with lock:
        last = newest.get(state.owner)
        while last is not None and not last.is_open:
            last = last.outer
        if last is not None:
            newest[state.owner] = last
        elif newest.pop(state.owner, None) is not None:
            heapq.heappush(free, state.lane)


def owner(frame):
    """Who opens or closes a span in that frame: its task, its generator, or its thread."""
    frame = suspending(frame)
    if frame is None:
        return threading.get_ident()
    return task_of(frame) if frame.f_code.co_flags & (COROUTINE | ITERABLE) else frame


def keep_other(others, span, frame):
    """Of a span that is entered while it is open: the one that stands for it. others: owner -> its own."""
    others.setdefault(owner(frame), []).append(span)


def take_other(others, frame):
    """The one that the same owner entered last; None: there is none."""
    mine = owner(frame)
    own = others.get(mine, [None])
    if len(own) == 1:
        others.pop(mine, None)
    return own.pop()


def parent(span):
    """The number that a span of a thread states as its parent; None: nesting says it, or there is none."""
    above, here = current.get(), innermost()
    return None if above is None or here is not None and here.number > above.number else above.number
