#!/usr/bin/env python3
# What a span in Python costs, in calls of an empty function: a figure for each round, of this process alone.
# usage: python_span.py [ROUNDS]
# SPDX-License-Identifier: MIT
import pathlib
import sys
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "tools"))
import npuprof  # noqa: E402

COUNT = 20000


def empty():
    pass


def loop():
    for _ in range(COUNT):
        pass


def calls():
    for _ in range(COUNT):
        empty()


def spans():
    for _ in range(COUNT):
        with npuprof.scope("span"):
            pass


def timed(function):
    begin = time.thread_time_ns()
    function()
    return time.thread_time_ns() - begin


def main(rounds="11"):
    with npuprof.profile():
        spans()
        for _ in range(int(rounds)):
            npuprof.clear()
            base, called, spanned = timed(loop), timed(calls), timed(spans)
            print(f"{(spanned - base) / (called - base):.1f}")


if __name__ == "__main__":
    main(*sys.argv[1:])
