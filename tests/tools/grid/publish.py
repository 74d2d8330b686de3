# SPDX-License-Identifier: MIT
"""What is published of the grid: the table of tools/README.md, and how many of the first predictions miss.

    python3 tests/tools/grid --write        makes both; tests/tools/test_grid.py keeps them
"""

import pathlib
import re

from . import score
from .ask import asked, is_missed
from .shapes import cases, class_of

HERE = pathlib.Path(__file__).resolve()
README, MISSED = HERE.parents[3] / "tools" / "README.md", HERE.with_name("missed.txt")
SEED, PREDICTIONS, FIRST = "1", 5000, 300
BEGIN, END = "<!-- python3 tests/tools/grid --write -->\n", "<!-- end -->"


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


def write(found):
    text = README.read_text()
    begin, end = text.index(BEGIN) + len(BEGIN), text.index(END)
    README.write_text(text[:begin] + score.published(found) + "\n\n" + text[end:])
    MISSED.write_text("".join(f"{name}: {count}\n" for name, count in missed(found, FIRST).items()))


def known_missed():
    """missed() of the first predictions, as published."""
    return {name: int(count) for name, count in
            (line.rsplit(": ", 1) for line in MISSED.read_text().splitlines())}


def known_held():
    """{class: the share that holds, in percent}, as published."""
    text = README.read_text()
    rows = re.findall(r"^\| (.+?) \| \d+ \| ([\d.]+) % \|", text[text.index(BEGIN):text.index(END)], re.M)
    return {name: float(held) for name, held in rows}
