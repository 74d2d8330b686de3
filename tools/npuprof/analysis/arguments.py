# SPDX-License-Identifier: MIT
"""Arguments of many spans at once: only those that an analysis needs, in one pass over the file."""

import re
from array import array

from ..base.contract import NULL
from ..base.numbers import int64


def whole_arguments(trace, rows, keys):
    """By key, an array with the whole number that each row has under it; NULL: none. rows: ascending."""
    found = {key: array("q", [NULL]) * len(rows) for key in keys}
    rows = array("I", map(trace.place, rows))
    order = sorted(range(len(rows)), key=rows.__getitem__) if trace._places else range(len(rows))
    for n, value in enumerate(map(trace._args.get, rows)) if trace._args else ():
        for key in keys if value else ():
            if type(value.get(key)) is int:
                found[key][n] = int64(value[key])
    if trace._blocks and len(rows):
        patterns = [(found[key], re.compile(b'"' + key.encode() + rb'":(-?\d+)[,}]')) for key in keys]
        for place, line in lines_of(trace, array("I", map(rows.__getitem__, order))):
            for column, pattern in patterns:
                match = pattern.search(line)
                if match:
                    column[order[place]] = int64(match[1])
    return found


def lines_of(trace, rows):
    """Yields (place in rows, line of the file behind {"ph":"X") of the rows that were read by pattern.
    rows: as they were in the file, ascending."""
    place, count = 0, len(rows)
    for first, offset, length in trace._blocks:
        while place < count and rows[place] < first:
            place += 1
        if place == count:
            return
        # Why this test: most blocks of a trace have none of the rows.
        if rows[place] >= first + length // 40:
            continue
        trace._file.seek(offset)
        spans = (b"\n" + trace._file.read(length)).split(b'\n{"ph":"X"')
        end = first + len(spans) - 1
        while place < count and rows[place] < end:
            yield place, spans[rows[place] - first + 1].partition(b"\n")[0]
            place += 1


def chosen(trace, rows, keys):
    """As whole_arguments(), for any order of the rows."""
    order = sorted(range(len(rows)), key=rows.__getitem__)
    sorted_rows = array("i", map(rows.__getitem__, order))
    found = whole_arguments(trace, sorted_rows, keys)
    out = {}
    for key, column in found.items():
        out[key] = array("q", [NULL]) * len(rows)
        for place, value in zip(order, column):
            out[key][place] = value
    return out


def lines_that(trace, pattern):
    """Yields (row, line of the file behind {"ph":"X") of the rows that were read by pattern and whose line
    the pattern finds. Why the block first: most traces have no such line at all."""
    row_at = None
    for first, offset, length in trace._blocks:
        trace._file.seek(offset)
        block = trace._file.read(length)
        if not pattern.search(block):
            continue
        if row_at is None and trace._places is not None:
            row_at = array("i", bytes(4 * len(trace)))
            for row, place in enumerate(trace._places):
                row_at[place] = row
        spans = (b"\n" + block).split(b'\n{"ph":"X"')
        for place, span in enumerate(spans[1:], first):
            line = span.partition(b"\n")[0]
            if pattern.search(line):
                yield place if row_at is None else row_at[place], line
