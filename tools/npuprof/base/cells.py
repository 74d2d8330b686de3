# SPDX-License-Identifier: MIT
"""Texts in the cells of a CSV, which a spreadsheet must not take for formulas.

A text that begins like one gets a quote before it, as does one that has such quotes already; so a reader
takes away exactly what was put. Numbers are no texts: they stay as they are. src/write/text.h does the same.
"""

import re

FORMULA = re.compile(r"'*[=+\-@\t\r]")
GUARDED = re.compile(r"''*[=+\-@\t\r]")


def guarded(text):
    return "'" + text if FORMULA.match(text) else text


def unguarded(text):
    return text[1:] if GUARDED.match(text) else text


def quoted(text):
    """A cell that always has quotes around it."""
    return '"' + guarded(text).replace('"', '""') + '"'


def cell(text):
    """A cell that has quotes where it needs them. Why not the module csv: its rules for line breaks differ
    between versions of Python."""
    return '"' + text.replace('"', '""') + '"' if re.search('[,"\r\n]', text) else text
