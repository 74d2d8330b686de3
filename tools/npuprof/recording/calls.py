# SPDX-License-Identifier: MIT
"""Decorators: what a call of a function records, for each kind of function.

    def                one span a call
    async def          one span a call, from its first step to its end
    def with yield     one span a step: from a next() to its yield, and the last one to the return
    async def with yield   the same for each anext()"""

import functools
import inspect


def recorded(function, span):
    """The function with a span around each call, or each step of a generator. span(): a new one."""
    wrap = (_async_generator if inspect.isasyncgenfunction(function)
            else _coroutine if inspect.iscoroutinefunction(function)
            else _generator if inspect.isgeneratorfunction(function) else _function)
    return functools.wraps(function)(wrap(function, span))


def _function(function, span):
    def recorded(*args, **kwargs):
        with span():
            return function(*args, **kwargs)
    return recorded


def _coroutine(function, span):
    async def recorded(*args, **kwargs):
        with span():
            return await function(*args, **kwargs)
    return recorded


def _generator(function, span):
    def step(method, *given):          # no generator: its span is one of the thread
        with span():
            return method(*given)

    def recorded(*args, **kwargs):
        generator = function(*args, **kwargs)
        method, given = generator.send, None
        try:
            while True:
                try:
                    value = step(method, given)
                except StopIteration as stop:
                    return stop.value
                try:
                    method, given = generator.send, (yield value)
                except GeneratorExit:
                    raise
                except BaseException as error:
                    method, given = generator.throw, error
        finally:
            generator.close()
    return recorded


def _async_generator(function, span):
    async def step(method, given):
        with span():
            return await method(given)

    async def recorded(*args, **kwargs):
        generator = function(*args, **kwargs)
        method, given = generator.asend, None
        try:
            while True:
                try:
                    value = await step(method, given)
                except StopAsyncIteration:
                    return
                try:
                    method, given = generator.asend, (yield value)
                except GeneratorExit:
                    raise
                except BaseException as error:
                    method, given = generator.athrow, error
        finally:
            await generator.aclose()
    return recorded
