# SPDX-License-Identifier: MIT
"""Numbers of a file, none of which is beyond a double or takes forever to read."""

import json
import re
import sys
from decimal import Decimal

from .contract import NULL
from .strict_json import refuse_constant, strict_decoder

DOUBLE_MAX = int(sys.float_info.max)
DIGITS_MAX = len(str(DOUBLE_MAX))    # of a number's whole part; more are beyond a double


def whole(text):
    if len(text) > DIGITS_MAX + 1 or abs(int(text)) > DOUBLE_MAX:
        raise ValueError(f"a number of {len(text)} digits is out of all bounds")
    return int(text)


def decimal(text):
    value = Decimal(text)
    if value.adjusted() >= DIGITS_MAX or abs(value) > DOUBLE_MAX:
        raise ValueError(f"{text[:20]} is out of all bounds")
    return value if value.adjusted() > -2 * DIGITS_MAX else Decimal(0)


# JSON whose numbers all fit a double: of the strict reader, and of single values as floats.
BOUNDED = strict_decoder(decimal, whole)
PLAIN = json.JSONDecoder(parse_float=lambda text: float(decimal(text)), parse_int=whole, parse_constant=refuse_constant)


def plain(value):
    """Decimals of the strict reader as floats, all the way down."""
    if isinstance(value, dict):
        return {key: plain(inner) for key, inner in value.items()}
    if isinstance(value, list):
        return [plain(inner) for inner in value]
    return float(value) if isinstance(value, Decimal) else value


def leading_integer(text):
    match = re.match(rb"(-?\d+)\}*$", text)
    return int64(match[1]) if match else NULL


def int64(text):
    value = int(text)
    return value if -2**63 < value < 2**63 else NULL
