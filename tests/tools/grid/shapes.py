# SPDX-License-Identifier: MIT
"""The drivers of the grid: shapes (a value of each dimension) and numbers (how long things take).

    Case        shape {dimension: value}, numbers {name: number}, seed of its draws
    cases(seed) an endless series of them: the first some hundred hold every pair of two values
"""

import random
from collections import namedtuple
from itertools import combinations, count

# The first value of each is the plain one.
DIMENSIONS = {
    "wait": ("marked", "span", "no span", "ioctl", "in the block", "sampled", "spin", "poll 0.1 ms",
             "poll 1 ms", "works then waits", "works only", "completion thread", "batch", "callback"),
    "work": (0.3, 0.7, 0.95, 1.05, 1.5),           # of works: its length, of the device's
    "size": ("own", "follows"),                    # of works: whether it is longer where the job is
    "submitters": (1, 2, 4),
    "pes": (1, 2, 4),
    "lock": ("none", "visible", "hidden"),
    "barrier": (False, True),
    "dma": ("private", "shared"),
    "buffers": (1, 2, 3),
    "depth": (1, 2, 8),
    "arrivals": ("closed", "think time", "poisson 50 %", "poisson 90 %", "poisson 98 %", "periodic",
                 "hidden"),
    "records": ("job", "instructions"),
    "time": ("even", "drift", "steps", "warm-up", "one outlier", "one of 8", "slow PE", "holes"),
    "noise": (0.005, 0.0, 0.02, 0.2),
    "error_us": (0.1, 5, 200),
    "host_load": (0.0, 0.7, 1.5),
    "n": (120, 20, 400),
}
# (low, high) on a logarithmic scale: us, or shares of the device's time.
NUMBERS = {"device_us": (100, 8000), "prepare": (0.02, 1), "finish": (0.01, 0.5), "pack": (0.03, 0.5),
           "load": (0.1, 0.8), "complete": (0.02, 0.4), "dispatch_us": (2, 30), "notice_us": (3, 60),
           "submit_us": (2, 20), "first": (0.4, 3), "second": (0.4, 3), "third": (0.4, 3)}
CLEAN = {"wait": "marked", "submitters": 1, "pes": 1, "lock": "none", "barrier": False, "buffers": 2,
         "depth": 1, "arrivals": "closed", "time": "even", "host_load": 0.0, "noise": 0.005}
CLEAN_NUMBERS = {"device_us": (3000, 8000), "prepare": (0.002, 0.006), "finish": (0.002, 0.006),
                 "load": (0.02, 0.05), "dispatch_us": (2, 8), "notice_us": (3, 10)}
STRATA = 64                # of each number in so many cases there is one in each stratum
CANDIDATES = 24
Case = namedtuple("Case", "number shape numbers seed")


def plain():
    return {dimension: values[0] for dimension, values in DIMENSIONS.items()}


def covering(draw):
    """Shapes: each the one of some random ones that holds the most pairs of values not seen so far."""
    names, seen = list(DIMENSIONS), set()

    def pairs(shape):
        return {(a, shape[a], b, shape[b]) for a, b in combinations(names, 2)}
    while True:
        found = [{name: draw.choice(values) for name, values in DIMENSIONS.items()}
                 for _ in range(CANDIDATES)]
        best = max(found, key=lambda shape: len(pairs(shape) - seen))
        if len(pairs(best) - seen) == 0:
            seen.clear()
        seen |= pairs(best)
        yield best


def latin(draw, names):
    """{name: a number in [0, 1)}: a Latin hypercube of STRATA points, and then another one."""
    while True:
        strata = {name: draw.sample(range(STRATA), STRATA) for name in names}
        for n in range(STRATA):
            yield {name: (strata[name][n] + draw.random()) / STRATA for name in names}


def cases(seed):
    """Each tenth is clean: nothing around the device costs anything worth a word."""
    draw = random.Random(f"shapes {seed}")
    shapes, points = covering(draw), latin(draw, NUMBERS)
    for number in count():
        shape, point, bounds = next(shapes), next(points), dict(NUMBERS)
        if number % 10 == 9:
            shape, bounds = shape | CLEAN, bounds | CLEAN_NUMBERS
        numbers = {name: low * (high / low) ** point[name] for name, (low, high) in bounds.items()}
        yield Case(number, shape, numbers, f"{seed} {number}")


def is_clean(case):
    return case.number % 10 == 9


def rung(shape):
    """What the trace says of the wait, in the words of the published table."""
    if shape["wait"] == "sampled":
        return "sampled"
    return "marked" if shape["wait"] in ("marked", "batch", "completion thread") else "not marked"


def class_of(shape):
    """(rung, arrivals, shared?) of a case."""
    arrivals = shape["arrivals"]
    arrivals = "closed" if arrivals in ("closed", "think time") else \
        "hidden" if arrivals == "hidden" else "open"
    shared = shape["submitters"] > 1 and (shape["pes"] < shape["submitters"] or shape["barrier"]
                                          or shape["lock"] != "none" or shape["dma"] == "shared")
    return rung(shape), arrivals, "shared" if shared else "alone"
