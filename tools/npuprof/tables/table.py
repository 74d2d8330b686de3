# SPDX-License-Identifier: MIT
"""Table: the one form of every result. Text, JSON, CSV, SQLite and the page are made from it.

name      a word, unique in a report: "idle"
title     what it shows, for a reader
columns   names; the end is the unit: "total_ns", "share_pct", "peak_bytes", "rate_per_s". A text and a
          count have none. The columns do not vary with the input.
rows      tuples in the order of the columns, in a list or Rows. A cell is
            int        a whole number
            Fraction   any other number, exact: percent in a column "_pct" (50, not 1/2)
            str        a text
            None       not known; never 0
notes     sentences below the table

Tables older than this rule have columns without units, and there a Fraction is a share of 1.
"""

from collections import namedtuple
from collections.abc import Sequence
from fractions import Fraction
from html import escape

from ..base.messages import Refused

# Units of columns, and how many decimals a Fraction has there.
UNITS = {"ns": 3, "pct": 2, "bytes": 0, "per_s": 3, "ppm": 3, "hz": 3, "ratio": 3, "ticks": 3, "ops": 0,
         "uj": 0, "mw": 3}


SHOWN = 20                     # rows of a table in a notebook


class Table(namedtuple("Table", "name title columns rows notes")):
    """See above. repr() and a notebook show it; to_dicts() and to_pandas() give its rows."""

    __slots__ = ()

    def __repr__(self):
        return f"<npuprof table {self.name}: {len(self.rows)} rows of {', '.join(self.columns)}>"

    def to_dicts(self):
        """The rows as dicts. A Fraction becomes a float."""
        return [{column: float(value) if isinstance(value, Fraction) else value
                 for column, value in zip(self.columns, row)} for row in self.rows]

    def to_pandas(self):
        """The rows as a pandas data frame."""
        try:
            import pandas
        except ImportError:
            raise Refused("to_pandas() needs pandas, which is not installed; to_dicts() gives the same as "
                          "dicts") from None
        return pandas.DataFrame(self.to_dicts(), columns=list(self.columns))

    def _repr_html_(self):
        def cell(value, column):
            text = decimal(value, decimals_of(column)) if isinstance(value, Fraction) else value
            return f"<td>{escape('-' if value is None else str(text))}</td>"
        head = "".join(f"<th>{escape(column)}</th>" for column in self.columns)
        body = ("".join(map(cell, row, self.columns)) for row in self.rows[:SHOWN])
        more = [f"{len(self.rows) - SHOWN} more rows"] if len(self.rows) > SHOWN else []
        notes = "".join(f"<p>{escape(note)}</p>" for note in (*more, *self.notes))
        return (f"<table><caption>{escape(self.title)}</caption><tr>{head}</tr>"
                f"{''.join(f'<tr>{row}</tr>' for row in body)}</table>{notes}")


class Rows(Sequence):
    """Rows that are made when they are asked for: made(keys) gives those of some keys. Why: a report shows
    few of them, and a row may need an id that takes time."""

    def __init__(self, keys, made):
        self.keys, self.made = keys, made

    def __len__(self):
        return len(self.keys)

    def __getitem__(self, n):
        return list(self.made(self.keys[n])) if isinstance(n, slice) else self[n:n + 1 or None][0]

    def __iter__(self):
        return iter(self.made(self.keys))


def unit_of(column):
    """The unit of a column, "" for none."""
    return next((unit for unit in UNITS if column.endswith("_" + unit)), "")


def decimals_of(column):
    """How many decimals a Fraction of this column is written with."""
    return UNITS.get(unit_of(column), 3)


def decimal(number, digits):
    """A number as text with so many decimals, rounded half up (away from zero)."""
    number = Fraction(number)
    scaled = (2 * abs(number.numerator) * 10**digits + number.denominator) // (2 * number.denominator)
    whole, part = divmod(scaled, 10**digits)
    sign = "-" if number < 0 and scaled else ""
    return f"{sign}{whole}.{part:0{digits}}" if digits else f"{sign}{whole}"


def pct(part, whole):
    """part of whole in percent, exact; None: of nothing."""
    return Fraction(100 * part, whole) if whole else None
