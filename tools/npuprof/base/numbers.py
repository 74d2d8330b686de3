# SPDX-License-Identifier: MIT
"""Numbers from a file. Those beyond the range of a double are refused: they would overflow, or take minutes
to read."""

import json
import re
import sys
from decimal import Decimal

from .contract import NULL
from .strict_json import refuse_constant, strict_decoder

DOUBLE_MAX = int(sys.float_info.max)
DIGITS_MAX = len(str(DOUBLE_MAX))    # a whole part with more digits is beyond a double


def whole(text):
    if len(text) > DIGITS_MAX + 1 or abs(int(text)) > DOUBLE_MAX:
        raise ValueError(f"a number of {len(text)} digits is out of all bounds")
    return int(text)


def decimal(text):
    value = Decimal(text)
    if value.adjusted() >= DIGITS_MAX or abs(value) > DOUBLE_MAX:
        raise ValueError(f"{text[:20]} is out of all bounds")
    return value if value.adjusted() > -2 * DIGITS_MAX else Decimal(0)


# JSON decoders with that limit: a strict one with decimals as written, and one for single values with floats.
BOUNDED = strict_decoder(decimal, whole)
PLAIN = json.JSONDecoder(parse_float=lambda text: float(decimal(text)), parse_int=whole,
                         parse_constant=refuse_constant)


def plain(value):
    """The value with every Decimal in it turned into a float."""
    if isinstance(value, dict):
        return {key: plain(inner) for key, inner in value.items()}
    if isinstance(value, list):
        return [plain(inner) for inner in value]
    return float(value) if isinstance(value, Decimal) else value


def leading_integer(text):
    """The integer that a JSON text begins with, with the closing braces behind it; NULL: there is none."""
    match = re.match(rb"(-?\d+)\}*$", text)
    return int64(match[1]) if match else NULL


def int64(text):
    """The integer, or NULL if 64 bits cannot hold it."""
    value = int(text)
    return value if -2**63 < value < 2**63 else NULL
