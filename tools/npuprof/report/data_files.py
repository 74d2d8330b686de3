# SPDX-License-Identifier: MIT
"""Writes Tables as CSV (a file for each) and as members of a JSON document."""

import json
import os
from fractions import Fraction

from ..base.cells import cell, guarded
from ..base.files import make_folder, whole_file
from ..tables.table import decimal, decimals_of, unit_of

PIECE = 4096       # rows written at a time


def csv_cell(value, digits):
    """RFC 4180. Not known is empty; an empty text has quotes."""
    if isinstance(value, Fraction):
        return decimal(value, digits)
    if isinstance(value, str):
        return cell(guarded(value)) or '""'
    return "" if value is None else str(value)


def json_cell(value, digits):
    if isinstance(value, Fraction):
        return decimal(value, digits)
    return str(value) if type(value) is int else json.dumps(value, ensure_ascii=False)


def encoded(text):
    return text.encode("utf-8", "replace")


def lines_of(table, cell, separator, begin="", end="\n"):
    """Yields the rows as text, in pieces."""
    digits = [decimals_of(column) for column in table.columns]
    for first in range(0, len(table.rows), PIECE):
        yield "".join(begin + separator.join(map(cell, row, digits)) + end
                      for row in table.rows[first:first + PIECE])


def write_csv(table, path):
    """Writes one table: UTF-8, LF, a head with the names of the columns."""
    with whole_file(path) as file:
        file.write(encoded(",".join(table.columns) + "\n"))
        for piece in lines_of(table, csv_cell, ","):
            file.write(encoded(piece))


def write_csv_dir(tables, folder):
    """Writes DIR/NAME.csv for each table."""
    make_folder(folder)
    for table in tables:
        write_csv(table, os.path.join(folder, f"{table.name}.csv"))


def write_json(head, tables, path):
    """Writes one document: the members of `head`, and "tables" by name. A row is a line."""
    with whole_file(path) as file:
        file.write(encoded("{" + "".join(f"{json.dumps(key)}:{json.dumps(value, ensure_ascii=False)},\n"
                                         for key, value in head.items()) + '"tables":{'))
        for n, table in enumerate(tables):
            columns = [{"name": column, "unit": unit_of(column)} for column in table.columns]
            file.write(encoded(f"{',' if n else ''}\n{json.dumps(table.name)}:"
                               f"{{\"columns\":{json.dumps(columns)},\n\"rows\":["))
            before = "\n"
            for piece in lines_of(table, json_cell, ",", ",\n[", "]"):
                file.write(encoded(before + piece[2:]))
                before = ",\n"
            file.write(encoded(f"],\n\"notes\":{json.dumps(table.notes, ensure_ascii=False)}}}"))
        file.write(b"\n}}\n")
