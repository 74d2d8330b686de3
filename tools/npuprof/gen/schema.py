# SPDX-License-Identifier: MIT
"""The keys of each table of a description: key -> (type, default). A type is one of Python's, a range of
whole numbers, the words that a key may hold, or one of those below. Limits and words that C decides are read
from there."""

from . import c_words
from .model import UINT32_MAX

REQUIRED = object()           # as a default: the key must be given
# Types that TOML has no word for; see Table.typed().
WORDS, NAMES, PAIR, TABLES, RATE = "words", "names", "pair", "tables", "rate"


def number(first, last):
    """A whole number."""
    return range(first, last + 1)


# What words of a description are in C.
ORDERS = {"hi-lo-hi": "NPUPROF_NPU_HI_LO_HI", "lo-latches-hi": "NPUPROF_NPU_LO_LATCHES_HI",
          "single": "NPUPROF_NPU_SINGLE"}
SOURCES = ("register", "function", "anchors")
UNITS, READY, SCOPES, KINDS = map(c_words.words, ("INDEX", "READY", "SCOPE", "KIND"))
RINGS_MAX = c_words.limit("RINGS")
# The most fields, conditions or tables of a key.
MOST = {"pmu": c_words.limit("PMU_"), "key": c_words.limit("KEYS"),
        "empty": c_words.limit("CONDITIONS"), "clock_when": c_words.limit("CONDITIONS"),
        "args": c_words.limit("ARGS") + c_words.limit("MORE_ARGS")}
UINT32, COUNT, NS = number(0, UINT32_MAX), number(1, UINT32_MAX), number(1, 10**9)
HZ = number(0, 10**15)        # NPUPROF_MAX_HZ_

ROOT = {"device": (dict, REQUIRED), "register": (list, []), "record": (list, []), "roles": (dict, {}),
        "operators": (dict, {}), "peaks": (dict, {})}
DEVICE = {"name": (str, REQUIRED), "title": (str, ""), "source": (str, ""), "usage": (str, ""),
          "svd": (str, None), "peripheral": (str, None), "bar_bytes": (int, None),
          "endian": (("little", "big"), None), "pe_count": (COUNT, 1), "queue_slots": (int, None)}
REGISTER = {"name": (str, REQUIRED), "offset": (int, REQUIRED), "width": (int, REQUIRED),
            "access": (("ro", "rw", "wo", "rc"), REQUIRED), "description": (str, ""), "field": (list, [])}
REGISTER_FIELD = {"name": (str, REQUIRED), "bits": (str, REQUIRED), "description": (str, ""),
                  "values": (dict, {})}
RECORD = {"name": (str, REQUIRED), "bytes": (number(1, 65536), REQUIRED), "description": (str, ""),
          "field": (list, [])}
RECORD_FIELD = {"name": (str, REQUIRED), "offset": (int, REQUIRED), "width": (int, REQUIRED),
                "bits": (str, None), "alternate": (bool, False), "description": (str, ""),
                "values": (dict, {})}
ROLES = {"counter": (dict, None), "ring": (TABLES, None), "progress": (dict, None), "pmu": (list, [])}
COUNTER = {"source": (SOURCES, "register"), "lo": (str, None), "hi": (str, None), "bits": (int, None),
           "order": (ORDERS, None), "counts_down": (bool, False), "hz": (HZ, 0), "lag_ns": (UINT32, 0),
           "requires": (dict, {})}
PMU = {"name": (str, REQUIRED), "lo": (str, None), "hi": (str, None), "bits": (int, None),
       "order": (ORDERS, None), "counts_down": (bool, False), "busy": (bool, False), "idle": (bool, False),
       "scale": (COUNT, 1), "unit": (str, None), "restarts": (bool, False), "requires": (dict, {})}
# Where the device says how far it has come: keys of [roles.ring] and [roles.progress].
INDEX = {"producer": (str, None), "producer_at": (int, None), "producer_width": ((16, 32, 64), None),
         "producer_bits": (int, None), "producer_is": (UNITS, None), "producer_is_slot": (bool, False),
         "laps_at": (int, None), "laps_first": (UINT32, None), "producer_wrap_bit": (number(0, 63), None)}
PROGRESS = {**INDEX, "memory": (bool, False), "count": (COUNT, None), "entry_bytes": (COUNT, None),
            "requires": (dict, {})}
# Keys of [roles.ring] that name a field of the record, or two: the low part and the high part of a value.
RING_FIELDS = c_words.ring_fields()
RING = {"record": (str, REQUIRED), "name": (str, None), "feed": (bool, False), "memory": (bool, False),
        "offset": (int, None), "first": (int, 0), "count": (COUNT, None),
        "instances": (number(1, RINGS_MAX), None), "stride": (int, None), "pe_base": (UINT32, 0), **INDEX,
        "ready": (READY, None), "valid_is": (UINT32, None), "phase_first": (int, None),
        "sequence_first": (int, None),
        **{name: (WORDS, None) for name in RING_FIELDS},
        "stamps": (("ascending",), None), "stamp_scale": (PAIR, None),
        "stamp_clock": (("counter", "host"), "counter"),
        "stamp_unit_ns": (NS, None), "duration_unit_ns": (NS, None), "duration_scale": (PAIR, None),
        "job_scope": (tuple(SCOPES)[1:], None), "max_age_ms": (COUNT, None),
        "kinds": (dict, None), "key": (NAMES, None), "empty": (dict, {}),
        "clock_when": (dict, {}), "args": (NAMES, []), "pe_names": (dict, {}), "category": (str, None),
        "execution_op": (str, None), "requires": (dict, {})}
OPERATOR = {"code": (int, REQUIRED), "name": (str, REQUIRED), "lanes": (int, None), "engine": (str, None)}
# Of one PE; `report --device` reads them, and queue_slots, lanes and engine.
PEAKS = {"ops_per_s": (RATE, None), "bytes_per_s": (RATE, None), "peaks_measured": (bool, False)}

# A key that says nothing without another one. Why not left to C: nobody would read that number there.
NEEDS = {"stride": "instances", "laps_first": "laps_at", "producer_width": "producer_at",
         "valid_is": "valid", "phase_first": "phase", "sequence_first": "sequence", "pe_names": "pe",
         "duration_unit_ns": "duration", "duration_scale": "duration"}
NEEDS_REGISTER = {"hi": "lo", "order": "lo", "counts_down": "lo"}
# Two keys that say the same, or of which one is not looked at.
EITHER = (("producer_is_slot", "producer_is"), ("producer_at", "producer"),
          ("duration_unit_ns", "duration_scale"), ("offset", "feed"), ("first", "feed"), ("stride", "feed"))
