# SPDX-License-Identifier: MIT
"""How close each operator comes to what the device can do.

Work and bytes are the arguments `ops` and `bytes` of a span, else they follow from its ne.* arguments: shapes
times the size of the type, a lower bound of the bytes. Peaks come from the table [peaks] of the device's
description, a TOML file: ops_per_s and bytes_per_s of one PE; operators there may state their `lanes`. The
trace may state the same under metadata devices[].peaks.

    compute_pct   time that the work needs at the peak, of the operator's time
    memory_pct    the same for the bytes
    bound         memory or compute from 65 %, else overhead: neither explains the time
    ideal_ns      the longer one of both times; headroom_ns: what is above it
    waste_pct     work that is padding: 1 - ops / executed_ops

An operator of more than 105 % has a wrong peak or wrong work, and is refused with that sentence.
"""

import re
import tomllib
from collections import namedtuple
from fractions import Fraction

from ..base.contract import NULL
from ..base.messages import Refused
from ..tables.table import Table, pct
from .arguments import whole_arguments

COLUMNS = ("operator", "count", "total_ns", "work_ops", "moved_bytes", "compute_pct", "memory_pct", "bound",
           "ideal_ns", "headroom_ns", "waste_pct")
TABLES = ("roofline",)
Limit = namedtuple("Limit", "count total_ns ops bytes compute_pct memory_pct bound ideal_ns headroom_ns "
                            "waste_pct lanes measured")
# What a description says: ops and bytes a second, whether they were measured, lanes by operator, slots of a
# queue, operators that transfer.
Description = namedtuple("Description", "name ops_per_s bytes_per_s measured lanes queue_slots transfers",
                         defaults=((),))
NOTHING = Description(None, None, None, False, {}, None)
DTYPE_BITS = {"fp64": 64, "fp32": 32, "float": 32, "fp16": 16, "bf16": 16, "fp8": 8, "int64": 64, "int32": 32,
              "int16": 16, "int8": 8, "u8": 8, "s8": 8, "uint8": 8, "s32": 32, "int4": 4, "bool": 8}
SAMPLES = 2000       # spans of one operator whose ne.* arguments are read


def read_description(path):
    """The Description in a TOML file. Raises Refused."""
    try:
        with open(path, "rb") as file:
            return description_of(path, tomllib.load(file))
    except OSError as error:
        raise Refused(f"{path}: cannot be read: {error.strerror}") from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise Refused(f"{path}: not TOML: {error}") from None


def description_of(path, tables):
    """Checks and takes what the analyses use of a description."""
    def table(name):
        found = tables.get(name, {})
        if not isinstance(found, dict):
            raise Refused(f"{path}: [{name}] is no table")
        return found

    def positive(where, found, key):
        value = found.get(key)
        if value is not None and not (type(value) in (int, float) and 0 < value < 1e30):
            raise Refused(f"{path}: {where} {key} = {value!r:.40}: not a number above 0")
        return None if value is None else Fraction(value)
    peaks, lanes, transfers = table("peaks"), {}, []
    for key, entry in table("operators").items():
        if isinstance(entry, dict) and entry.get("lanes") is not None:
            lanes[str(entry.get("name", key))] = int(positive(f"operator {key}", entry, "lanes"))
        if isinstance(entry, dict) and entry.get("engine") == "dma":
            transfers.append(str(entry.get("name", key)))
    slots = positive("[device]", table("device"), "queue_slots")
    return Description(table("device").get("name"), positive("[peaks]", peaks, "ops_per_s"),
                       positive("[peaks]", peaks, "bytes_per_s"), peaks.get("peaks_measured") is True, lanes,
                       None if slots is None else int(slots), transfers)


def peaks_of(trace):
    """The Description that the trace itself states, of its first device that does."""
    for device in trace.metadata.get("devices") or ():
        if isinstance(device.get("peaks"), dict):
            return description_of(trace.path, {"device": {"name": device.get("name")},
                                               "peaks": device["peaks"]})
    return NOTHING


def size_of(shapes, dtypes):
    """(elements of the first tensor, bytes of all) of texts such as "1x3x8x8;16" and "fp32;s8"; None."""
    total, first, kinds = 0, None, [text.strip().lower() for text in dtypes.split(";")]
    for n, shape in enumerate(shapes.split(";") if shapes else ()):
        if not re.fullmatch(r"\d{1,9}(x\d{1,9})*", shape.strip()):
            return None
        elements = 1
        for side in shape.strip().split("x"):
            elements *= int(side)
        first = elements if first is None else first
        total += elements * DTYPE_BITS.get(kinds[min(n, len(kinds) - 1)], 8) // 8
    return first, total


def work_of(args):
    """(ops, bytes) of an operator from its ne.* arguments, None for what does not follow."""
    def text(key):
        return args[key] if isinstance(args.get(key), str) else ""
    inputs, outputs, weight = (size_of(text(f"ne.{key}_shape{'s' if key != 'weight' else ''}"),
                                       text(f"ne.{key}_dtypes") or text("ne.input_dtypes"))
                               for key in ("input", "output", "weight"))
    moved = sum(part[1] for part in (inputs, outputs, weight) if part) or None
    sides = [int(n) for n in text("ne.weight_shape").split("x") if n.isdigit()]
    kind, ops = text("ne.type").lower(), None
    if kind in ("innerproduct", "matmul") and inputs and inputs[0] and len(sides) == 2:
        ops = 2 * inputs[0] * sides[1]
    elif kind in ("convolution", "conv", "conv2d") and outputs and outputs[0] and len(sides) == 4:
        group = re.search(r"group:(\d+)", text("ne.attributes"))
        # The weight is output channels x input channels of a group x height x width.
        ops = 2 * outputs[0] * sides[1] * sides[2] * sides[3] if not group or int(group[1]) > 0 else None
    return ops, moved


class Roof(dict):
    """{operator: Limit}; `refused`: sentences about operators above 105 %."""

    def __init__(self, facts):
        super().__init__()
        self.refused, self.peaks = [], facts.description or peaks_of(facts.trace)
        if self.peaks.ops_per_s is None and self.peaks.bytes_per_s is None:
            return
        for name, (_, total) in facts.engines.operators.items():
            self._operator(facts.trace, name, facts.engines.rows(name), total)

    def _operator(self, trace, name, rows, total):
        step = max(1, len(rows) // SAMPLES)
        asked = sorted(rows[::step])
        time = sum(trace.dur[i] for i in asked)
        found = whole_arguments(trace, asked, ("ops", "bytes", "executed_ops"))
        ops, moved, executed = (self._sum(found[key]) for key in ("ops", "bytes", "executed_ops"))
        if ops is None and moved is None and trace.mentions("ne.type"):
            # Why of each: spans of one name may have different shapes.
            ops, moved = (None if None in column else sum(column)
                          for column in zip(*(work_of(trace.args(i)) for i in asked)))
        if not time or (ops is None and moved is None):
            return
        compute = self._share(ops, self.peaks.ops_per_s, time)
        memory = self._share(moved, self.peaks.bytes_per_s, time)
        most = max(compute or 0, memory or 0)
        if most > 105:
            self.refused.append(f"{name}: {float(most):.0f} % of the peak: its work or the peak is wrong")
            return
        bound = "overhead"
        if most >= 65:
            bound = "memory" if memory is not None and memory >= (compute or 0) else "compute"
        elif compute is None or (memory is None and self.peaks.bytes_per_s):
            bound = "unknown"
        # Why not above its time: a peak may be off by 5 %.
        ideal = min(total, round(total * most / 100))
        waste = pct(executed - ops, executed) if ops is not None and executed and executed >= ops else None
        self[name] = Limit(len(rows), total, ops and ops * step, moved and moved * step, compute, memory,
                           bound, ideal, total - ideal, waste, self.peaks.lanes.get(name),
                           self.peaks.measured)

    @staticmethod
    def _sum(values):
        return None if not values or NULL in values else sum(values)

    @staticmethod
    def _share(amount, per_s, ns):
        return None if amount is None or per_s is None else 100 * amount * 10**9 / (per_s * ns)


def analyse(facts):
    rows = [(name, limit.count, limit.total_ns, limit.ops, limit.bytes, limit.compute_pct, limit.memory_pct,
             limit.bound, limit.ideal_ns, limit.headroom_ns, limit.waste_pct)
            for name, limit in sorted(facts.roof.items(), key=lambda item: -item[1].headroom_ns)]
    notes = list(facts.roof.refused)
    if not rows:
        notes.append("needs work (arguments ops and bytes, or ne.*) and peaks ([peaks] in --device TOML)")
    yield Table("roofline", "Operators against the peaks of a PE", COLUMNS, rows, notes)
