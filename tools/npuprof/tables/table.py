# SPDX-License-Identifier: MIT
"""A table with named columns."""

from collections import namedtuple

Table = namedtuple("Table", "name title columns rows notes")
