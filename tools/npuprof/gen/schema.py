# SPDX-License-Identifier: MIT
"""The keys of each table of a description: key -> (type, default)."""

REQUIRED = object()           # as a default: the key must be given

ROOT = {"device": (dict, REQUIRED), "register": (list, []), "record": (list, []), "roles": (dict, {}),
        "operators": (dict, {})}
DEVICE = {"name": (str, REQUIRED), "title": (str, ""), "source": (str, ""), "usage": (str, ""),
          "svd": (str, None), "peripheral": (str, None), "bar_bytes": (int, None), "endian": (str, None),
          "pe_count": (int, 1)}
REGISTER = {"name": (str, REQUIRED), "offset": (int, REQUIRED), "width": (int, REQUIRED),
            "access": (str, REQUIRED), "description": (str, ""), "field": (list, [])}
REGISTER_FIELD = {"name": (str, REQUIRED), "bits": (str, REQUIRED), "description": (str, ""),
                  "values": (dict, {})}
RECORD = {"name": (str, REQUIRED), "bytes": (int, REQUIRED), "description": (str, ""), "field": (list, [])}
RECORD_FIELD = {"name": (str, REQUIRED), "offset": (int, REQUIRED), "width": (int, REQUIRED),
                "bits": (str, None), "description": (str, ""), "values": (dict, {})}
ROLES = {"counter": (dict, None), "ring": (dict, None), "pmu": (list, [])}
COUNTER = {"lo": (str, REQUIRED), "hi": (str, None), "bits": (int, None), "order": (str, None),
           "counts_down": (bool, False), "hz": (int, 0), "lag_ns": (int, 0)}
PMU = {"name": (str, REQUIRED), "lo": (str, REQUIRED), "hi": (str, None), "bits": (int, None),
       "order": (str, None), "counts_down": (bool, False), "busy": (bool, False)}
# Keys of [roles.ring] that name a field of the record.
RING_FIELDS = ("sequence", "job", "start", "end", "pe", "op", "status", "execution", "instruction")
RING = {"record": (str, REQUIRED), "offset": (int, None), "memory": (bool, False), "count": (int, REQUIRED),
        "producer": (str, REQUIRED), "producer_bits": (int, None), "producer_is_slot": (bool, False),
        "category": (str, None), "execution_op": (str, None), **{name: (str, None) for name in RING_FIELDS}}
OPERATOR = {"code": (int, REQUIRED), "name": (str, REQUIRED)}

# What `order` of a counter is in C.
ORDERS = {"hi-lo-hi": "NPUPROF_NPU_HI_LO_HI", "lo-latches-hi": "NPUPROF_NPU_LO_LATCHES_HI",
          "single": "NPUPROF_NPU_SINGLE"}
