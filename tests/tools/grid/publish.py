# SPDX-License-Identifier: MIT
"""What is published of the grid: the table of tools/README.md, how many of the first predictions miss, and
what "sure" and "likely" are worth.

    python3 tests/tools/grid --write        makes both; tests/tools/test_grid.py keeps them
"""

import json
import pathlib
import re

from . import score
from .ask import asked, is_missed
from .shapes import cases, class_of

HERE = pathlib.Path(__file__).resolve()
TOOLS, MISSED = HERE.parents[3] / "tools", HERE.with_name("missed.txt")
README, HELD = TOOLS / "README.md", TOOLS / "npuprof" / "report" / "held.json"
SEED, PREDICTIONS, FIRST = "1", 5000, 300
BEGIN, END = "<!-- python3 tests/tools/grid --write -->\n", "<!-- end -->"
REAL = "<!-- python3 tests/tools/real --write -->\n"
KERNEL = "<!-- python3 tests/tools/real --ftrace --write -->\n"


def answers(seed, predictions, path):
    """Answers of the first cases, until there are so many predictions. path: of a file for traces."""
    found, count, series = [], 0, cases(seed)
    while count < predictions:
        found.append(asked(next(series), path))
        count += len(found[-1].predictions)
    return found


def missed(found, limit=None):
    """{class: how many of the first `limit` predictions, or of all, do not hold}"""
    counts = {}
    for one in [one for answer in found for one in answer.predictions][:limit]:
        name = ", ".join(class_of(one.case.shape))
        counts[name] = counts.get(name, 0) + is_missed(one)
    return dict(sorted(counts.items()))


def place(begin):
    """(text of the README, where what comes behind `begin` begins and ends in it)"""
    text = README.read_text()
    first = text.index(begin) + len(begin)
    return text, first, text.index(END, first)


def put(begin, table):
    text, first, last = place(begin)
    README.write_text(text[:first] + table + "\n\n" + text[last:])


def write(found):
    put(BEGIN, score.published(found))
    words = score.by_word(one for answer in found for one in answer.predictions)
    HELD.write_text(json.dumps({name: [one.held, one.answered] for name, one in words.items()}) + "\n")
    MISSED.write_text("".join(f"{name}: {count}\n" for name, count in missed(found, FIRST).items()))


def known_missed():
    """missed() of the first predictions, as published."""
    return {name: int(count) for name, count in
            (line.rsplit(": ", 1) for line in MISSED.read_text().splitlines())}


def known_held():
    """{class: the share that holds, in percent}, as published."""
    text, first, last = place(BEGIN)
    rows = re.findall(r"^\| (.+?) \| \d+ \| ([\d.]+) % \|", text[first:last], re.M)
    return {name: float(held) for name, held in rows}
