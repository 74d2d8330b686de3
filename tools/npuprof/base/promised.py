# SPDX-License-Identifier: MIT
"""The members that metadata.npuprof promises: {name: (what it is, a test of it)}."""

from decimal import Decimal

TEXT = ("a string", lambda value: type(value) is str)
COUNT = ("a whole number from 0", lambda value: type(value) is int and value >= 0)
POSITIVE = ("a number above 0", lambda value: type(value) in (int, Decimal) and value > 0)
NOT_NEGATIVE = ("a number from 0", lambda value: type(value) in (int, Decimal) and value >= 0)
NPUPROF = {"version": TEXT, "host": TEXT, "pid": COUNT, "start_unix_ns": COUNT}
CLOCK = {"source": TEXT, "hz": POSITIVE}
DEVICE = {"name": TEXT}
RATE = ("a number from 0 or null", lambda value: value is None
        or (type(value) in (int, Decimal) and value >= 0))
DRIFT = ("a number or null", lambda value: value is None or type(value) in (int, Decimal))
CLOCK_SYNC = {"rate_hz": RATE, "drift_ppm": DRIFT, "max_error_ns": NOT_NEGATIVE, "anchors": COUNT,
              "wraps": COUNT, "resets": COUNT, "causality_violations": COUNT}
