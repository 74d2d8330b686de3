# SPDX-License-Identifier: MIT
"""Runs tests/programs/real_driver.c as it is and with a change, in turn, and asks the tool what the change
would bring.

    tried(program, case, rounds, folder)    Tried: predictions, and how much equal runs differ
"""

import subprocess
import sys
from collections import namedtuple
from statistics import median
from types import SimpleNamespace

from grid.ask import HALF, MARGIN, Prediction, gain
from helpers import ROOT
from npuprof.analysis import replay
from npuprof.analysis.facts import Facts
from npuprof.base.messages import Refused
from npuprof.kernel.tracefs import Instance, tracefs
from npuprof.merging.beside import loaded

BLOCKING = "no-span", "marked", "ioctl", "block", "sampled"
# style: options of the program
STYLES = dict.fromkeys((*BLOCKING, "works-then-waits", "spin", "poll", "lock", "hidden-lock", "feeder",
                        "barrier", "open-loop"), ())
STYLES |= dict.fromkeys(("lock", "hidden-lock"), ("prepare_us=2500",))      # longer than what is outside
# question: (the change as the tool takes it, the same for the program)
QUESTIONS = {"device": (("device", None, HALF), "device=50"),
             "prepare": (("host", "prepare", HALF), "prepare=50")}
# {loaded: options of the program}
MACHINE = {False: ("urgent=1",), True: ("busy=2",)}
# cpu: with desc.cpu_ns; kernel: beside what the kernel's tracer wrote
Case = namedtuple("Case", "style cpu loaded kernel", defaults=(False, False, False))
Run = namedtuple("Run", "path p50 window")
# noise: {measure: by how many percent equal runs differ}
Tried = namedtuple("Tried", "case predictions noise")


def no_tracer():
    """Why the kernel's tracer cannot be used, or None."""
    try:
        with Instance(tracefs()):
            return None
    except Refused as refused:
        return str(refused)


def cases(loaded, kernel=False):
    if kernel:
        return [Case(style, False, loaded, True) for style in BLOCKING]
    return [Case(style, cpu, loaded) for style in STYLES for cpu in (False, True)[:1 + (style in BLOCKING)]]


def name(case):
    return case.style + ", cpu_ns" * case.cpu + ", --ftrace" * case.kernel


def run(program, case, path, *more):
    words = [program, path, case.style, *STYLES[case.style], f"cpu_ns={case.cpu:d}",
             *MACHINE[case.loaded], *more]
    if case.kernel:
        tool = ROOT / "tools/npuprof.py"
        words = [sys.executable, tool, "system-trace", "-o", path.with_suffix(".txt"), "--", *words]
    done = subprocess.run(list(map(str, words)), stdout=subprocess.PIPE, check=True, text=True, timeout=300)
    window, *latencies = map(int, done.stdout.split())
    return Run(path, median(latencies), window)


def facts_of(case, path):
    """The Facts of a run."""
    text = str(path.with_suffix(".txt")) if case.kernel else None
    return Facts(loaded(str(path), SimpleNamespace(ftrace=text, ftrace_clock=None, ftrace_devices=[])))


def asked(case, before, question, after):
    """Predictions of one pair, of the median inference and of the window."""
    found = replay.of(facts_of(case, before.path))
    if found.why:
        raise AssertionError(f"{case}: no replay: {found.why}")
    effect = found.effect(QUESTIONS[question][0])
    for measure, said in (("p50", effect.inference), ("window", effect.window)):
        truth = gain(getattr(before, measure), getattr(after, measure))
        yield Prediction(case, question, measure, *map(float, said), truth)


def tried(program, case, rounds, folder, *more):
    """more: options of the program in all runs."""
    pairs = []
    for number in range(rounds):
        for question, (_, option) in QUESTIONS.items():
            path = folder / f"{case.style}-{number}-{question}.json"
            before = run(program, case, path, *more)
            pairs.append((before, question, run(program, case, folder / "changed.json", *more, option)))
    found = [one for before, question, after in pairs for one in asked(case, before, question, after)]
    same = [[before for before, *_ in pairs],
            *([after for _, asked_for, after in pairs if asked_for == question] for question in QUESTIONS)]
    return Tried(case, found, {measure: noise([[getattr(one, measure) for one in runs] for runs in same])
                               for measure in ("p50", "window")})


def noise(series):
    """Of series of equal runs: by how many percent 19 of 20 differ from the one before, MARGIN at least."""
    apart = sorted(abs(gain(a, b)) for runs in series for a, b in zip(runs, runs[1:]))
    return max(MARGIN, apart[(19 * len(apart) - 1) // 20])
