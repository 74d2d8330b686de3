# SPDX-License-Identifier: MIT
"""The keys of each table of a description: key -> (type, default)."""

REQUIRED = object()           # as a default: the key must be given
# Types that TOML has no word for; see Table.typed().
WORDS, NAMES, PAIR, TABLES, RATE = "words", "names", "pair", "tables", "rate"

ROOT = {"device": (dict, REQUIRED), "register": (list, []), "record": (list, []), "roles": (dict, {}),
        "operators": (dict, {}), "peaks": (dict, {})}
DEVICE = {"name": (str, REQUIRED), "title": (str, ""), "source": (str, ""), "usage": (str, ""),
          "svd": (str, None), "peripheral": (str, None), "bar_bytes": (int, None), "endian": (str, None),
          "pe_count": (int, 1), "queue_slots": (int, None)}
REGISTER = {"name": (str, REQUIRED), "offset": (int, REQUIRED), "width": (int, REQUIRED),
            "access": (str, REQUIRED), "description": (str, ""), "field": (list, [])}
REGISTER_FIELD = {"name": (str, REQUIRED), "bits": (str, REQUIRED), "description": (str, ""),
                  "values": (dict, {})}
RECORD = {"name": (str, REQUIRED), "bytes": (int, REQUIRED), "description": (str, ""), "field": (list, [])}
RECORD_FIELD = {"name": (str, REQUIRED), "offset": (int, REQUIRED), "width": (int, REQUIRED),
                "bits": (str, None), "alternate": (bool, False), "description": (str, ""),
                "values": (dict, {})}
ROLES = {"counter": (dict, None), "ring": (TABLES, None), "progress": (dict, None), "pmu": (list, [])}
COUNTER = {"source": (str, "register"), "lo": (str, None), "hi": (str, None), "bits": (int, None),
           "order": (str, None), "counts_down": (bool, False), "hz": (int, 0), "lag_ns": (int, 0),
           "requires": (dict, {})}
PMU = {"name": (str, REQUIRED), "lo": (str, None), "hi": (str, None), "bits": (int, None),
       "order": (str, None), "counts_down": (bool, False), "busy": (bool, False), "idle": (bool, False),
       "scale": (int, 1), "unit": (str, None), "restarts": (bool, False), "requires": (dict, {})}
# Where the device says how far it has come: keys of [roles.ring] and [roles.progress].
INDEX = {"producer": (str, None), "producer_at": (int, None), "producer_width": (int, None),
         "producer_bits": (int, None), "producer_is": (str, None), "producer_is_slot": (bool, False),
         "laps_at": (int, None), "laps_first": (int, None), "producer_wrap_bit": (int, None)}
PROGRESS = {**INDEX, "memory": (bool, False), "count": (int, None),
            "entry_bytes": (int, None), "requires": (dict, {})}
# Keys of [roles.ring] that name a field of the record, or two: the low part and the high part of a value.
RING_FIELDS = ("sequence", "valid", "phase", "kind", "job", "start", "end", "duration", "stamp",
               "clock_high", "value", "pe", "op", "status", "execution", "instruction")
RING = {"record": (str, REQUIRED), "name": (str, None), "feed": (bool, False), "memory": (bool, False),
        "offset": (int, None), "first": (int, 0), "count": (int, None), "instances": (int, None),
        "stride": (int, None), "pe_base": (int, 0), **INDEX,
        "ready": (str, None), "valid_is": (int, None), "phase_first": (int, None),
        "sequence_first": (int, None),
        **{name: (WORDS, None) for name in RING_FIELDS},
        "stamps": (str, None), "stamp_scale": (PAIR, None), "stamp_clock": (str, "counter"),
        "stamp_unit_ns": (int, None), "duration_unit_ns": (int, None), "duration_scale": (PAIR, None),
        "job_scope": (str, None), "max_age_ms": (int, None),
        "kinds": (dict, None), "key": (NAMES, None), "empty": (dict, {}),
        "clock_when": (dict, {}), "args": (NAMES, []), "pe_names": (dict, {}), "category": (str, None),
        "execution_op": (str, None), "requires": (dict, {})}
OPERATOR = {"code": (int, REQUIRED), "name": (str, REQUIRED), "lanes": (int, None)}
# Of one PE; `report --device` reads them, and queue_slots and lanes.
PEAKS = {"ops_per_s": (RATE, None), "bytes_per_s": (RATE, None), "peaks_measured": (bool, False)}

# What words of a description are in C.
ORDERS = {"hi-lo-hi": "NPUPROF_NPU_HI_LO_HI", "lo-latches-hi": "NPUPROF_NPU_LO_LATCHES_HI",
          "single": "NPUPROF_NPU_SINGLE"}
SOURCES = ("register", "function", "anchors")
UNITS = {"count": "NPUPROF_NPU_INDEX_COUNT", "slot": "NPUPROF_NPU_INDEX_SLOT",
         "bytes": "NPUPROF_NPU_INDEX_BYTES", "byte_offset": "NPUPROF_NPU_INDEX_BYTE_OFFSET"}
READY = {"producer": "NPUPROF_NPU_READY_PRODUCER", "valid": "NPUPROF_NPU_READY_VALID",
         "phase": "NPUPROF_NPU_READY_PHASE", "sequence": "NPUPROF_NPU_READY_SEQUENCE"}
SCOPES = {"": "NPUPROF_NPU_SCOPE_DEFAULT", "ring": "NPUPROF_NPU_SCOPE_RING", "lane": "NPUPROF_NPU_SCOPE_LANE",
          "device": "NPUPROF_NPU_SCOPE_DEVICE"}
KINDS = {"span": "NPUPROF_NPU_KIND_SPAN", "begin": "NPUPROF_NPU_KIND_BEGIN", "end": "NPUPROF_NPU_KIND_END",
         "instant": "NPUPROF_NPU_KIND_INSTANT", "counter": "NPUPROF_NPU_KIND_COUNTER",
         "skip": "NPUPROF_NPU_KIND_SKIP"}
