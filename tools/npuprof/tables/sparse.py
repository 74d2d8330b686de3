# SPDX-License-Identifier: MIT
"""Operators, and whether their weights can be sparse: the arithmetic of the Neural Engine sheet."""

import re

from ..base.contract import UNFINISHED
from .executions import Device

KEYS = ("ne.type", "ne.post_op", "name", "ne.input_names", "ne.input_shapes", "ne.input_dtypes",
        "ne.output_names", "ne.output_shapes", "ne.output_dtypes", "ne.weight_shape")
RATIOS = ("4", "4", "4", "1")     # how much faster sparse kernels are: for 90 %, 80 %, 70 % zeros, and else


def operators(trace):
    """The operators in the order of their first spans: dicts of KEYS, ratio (or None), sparse, count,
    total_ns.

    A trace without ne.type gives its device operators by name."""
    found = {}
    warm_up, flags = trace.warm_up, trace.flags
    for i in range(len(trace)) if trace.mentions("ne.type") else ():
        if warm_up[i] or flags[i] & UNFINISHED:
            continue
        args = trace.args(i)
        if not isinstance(args.get("ne.type"), str):
            continue
        texts = tuple(trace.text(i) if key == "name" else text_of(args, key) for key in KEYS)
        entry = found.get(texts)
        if entry is None:
            entry = found[texts] = dict(zip(KEYS, texts), count=0, total_ns=0, ratio=ratio_of(args))
            entry["sparse"] = can_be_sparse(entry, args.get("ne.sparse_support"))
        entry["count"] += 1
        entry["total_ns"] += trace.dur[i]
    if not found:
        for name, (count, total) in Device(trace).operators.items():
            found[name] = dict.fromkeys(KEYS, "") | {"ne.type": name, "name": name, "ratio": None,
                                                     "sparse": False, "count": count, "total_ns": total}
    return list(found.values())


def text_of(args, key):
    return args[key] if isinstance(args.get(key), str) else ""


def ratio_of(args):
    """The share of zeros, or None."""
    ratio = args.get("ne.sparse_ratio")
    return float(ratio) if type(ratio) in (int, float) and 0 <= ratio <= 1 else None


def can_be_sparse(operator, support):
    """True if the operator says so (ne.sparse_support), else by its type and the shape of its weight."""
    shape = re.fullmatch("([0-9]+)x([0-9]+)", operator["ne.weight_shape"])
    if support is not None:
        return support is True and operator["ne.weight_shape"] != ""
    return (operator["ne.type"].lower() in ("innerproduct", "matmul")
            and shape is not None and int(shape[1]) % 4 == 0
            and (operator["ratio"] is None or operator["ratio"] < 0.5))


def milliseconds(total_ns, count):
    """The mean with six decimals, rounded half up."""
    ns = (2 * total_ns + count) // (2 * count)
    return f"{ns // 1000000}.{ns % 1000000:06}"
