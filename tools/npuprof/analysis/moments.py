# SPDX-License-Identifier: MIT
"""The kinds of moments that a replay is made of (graph.py), in the order of those within one ns."""

from collections import namedtuple

# kind: one of those below. time: ns. ref: a job, an inference by number, an arrow, or the row of a span
Point = namedtuple("Point", "kind time ref")
NOTICED, ARRIVAL, REQUEST, BEGIN, LEAVES, SUBMIT, RETURN, WAIT, END = range(9)
OF_JOB = NOTICED, SUBMIT, RETURN, WAIT
