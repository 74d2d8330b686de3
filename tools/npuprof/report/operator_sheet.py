# SPDX-License-Identifier: MIT
"""The Neural Engine table: operators, their latency, and what sparse weights would bring, with live formulas.

A span with the argument ne.type is an operator. Its name is that of the span. All other keys may be left out:
  ne.type, ne.post_op                                    operator type; what is fused into it
  ne.input_names, ne.input_shapes, ne.input_dtypes       lists, ";" between tensors, "x" inside a shape
  ne.output_names, ne.output_shapes, ne.output_dtypes
  ne.weight_shape                                        "256x256"; left out if there is no weight
  ne.sparse_ratio                                        share of zeros in the weight, 0 to 1
  ne.sparse_support                                      whether a sparse kernel exists
  ne.attributes, ne.reshape_ns, ne.forward_ns            "k:v;k:v"; time to prepare shapes, time of the kernel
Without ne.sparse_support an operator can be sparse if it is an InnerProduct or Matmul whose weight has two
dimensions, the first a multiple of 4, and is less than half zeros.

The latency of an operator is the mean of its spans outside warm-up, in ms with six decimals. A trace without
ne.type gives its device operators by name.

The sheet has sparse ratio settings, then operators, then totals. Edit the ratios and column N, and it
recalculates. Save it as a spreadsheet: a CSV keeps no formulas. An aim without a ratio changes nothing.
"""

import re

from ..base.cells import cell, guarded
from ..base.messages import Refused
from ..tables.sparse import KEYS, RATIOS, milliseconds, operators

SETTINGS = ("weight shape", "90% 4x1 perf ratio", "80% 4x1 perf ratio", "70% 4x1 perf ratio", "others")
COLUMNS = ("operator type", "post op", "operator name", "input tensor name", "input shape", "input dtype",
           "output tensor name", "output shape", "output dtype", "weight shape", "weight sparse ratio",
           "sparse support", "operator latency (ms)", "aim to weight sparse ratio",
           "sparse kernel pref ratio", "aim to sparse latency(ms)")


def percentage(ratio):
    """A share as percent with two decimals, rounded half up."""
    hundredths = int(ratio * 10000 + 0.5)
    return f"{hundredths // 100}.{hundredths % 100:02}%"


def sheet(ops, aim="90%", ratios=None):
    """The rows of the sheet. ratios: by weight shape, the four settings that differ from RATIOS."""
    shapes = list(dict.fromkeys(op["ne.weight_shape"] for op in ops if op["sparse"]))
    settings = [[shape, *(ratios or {}).get(shape, RATIOS)] for shape in shapes]
    rows = [list(SETTINGS), *settings, list(COLUMNS)]
    first = len(rows) + 1
    for r, op in enumerate(ops, first):
        row = [guarded(op[key]) for key in KEYS]
        row.append("" if op["ratio"] is None else percentage(op["ratio"]))
        row += ["true" if op["sparse"] else "", milliseconds(op["total_ns"], op["count"])]
        if op["sparse"]:
            s = shapes.index(op["ne.weight_shape"]) + 2
            # Why both: a spreadsheet reads 90% as the number 0.9 or as text, depending on its settings.
            choice = f"E{s}"
            for column, percent in (("D", 70), ("C", 80), ("B", 90)):
                choice = f'IF(OR(N{r}={percent / 100},N{r}="{percent}%"),{column}{s},{choice})'
            row += [aim, f"={choice}", f"=IF(O{r}>0,M{r}/O{r},M{r})"]
        else:
            row += ["", "", f"=M{r}"]
        rows.append(row)
    return rows + totals(ops, first)


def totals(ops, first):
    """The rows below the operators, which begin in row `first`."""
    last = first + len(ops) - 1
    t = last + 1

    def total(label, value, aimed, aimed_value, *more):
        return [""] * 11 + [label, value, "", aimed, aimed_value, *more]
    counts = sorted({op["count"] for op in ops})
    spans = str(counts[0]) if len(counts) == 1 else f"{counts[0]} to {counts[-1]}"
    return [
        total("total latency(ms)", f"=SUM(M{first}:M{last})", "total aim to sparse latency(ms)",
              f"=SUM(P{first}:P{last})", "sparse improve", f"=IF(P{t}>0,M{t}/P{t},1)"),
        total("sparse support latency(ms)", f'=SUMIF(O{first}:O{last},">0",M{first}:M{last})',
              "aim to sparse support latency(ms)", f'=SUMIF(O{first}:O{last},">0",P{first}:P{last})'),
        total("sparse support latency ratio", f"=M{t + 1}/(M{t}+0.000001)",
              "aim to sparse support latency ratio", f"=IF(P{t}>0,P{t + 1}/P{t},0)"),
        [f"operator latency: mean of {spans} spans for each operator, warm-up left out"]]


def text(trace, aim="90%", ratios=None):
    """The sheet as CSV."""
    ops = operators(trace)
    if not ops:
        raise Refused(f"{trace.path}: no operators: no span outside warm-up has the argument ne.type, "
                      "and there are no device operators")
    shapes = {op["ne.weight_shape"] for op in ops if op["sparse"]}
    for shape in ratios or {}:
        if shape not in shapes:
            raise Refused(f"{trace.path}: no operator that can be sparse has a weight of {shape}; "
                          f"there are: {', '.join(sorted(shapes)) or 'none'}")
    return "".join(",".join(map(cell, row)) + "\n" for row in sheet(ops, aim, ratios))


def parse_ratio(argument):
    """Reads `256x256=4,2.5,2`; a fourth number is for all other aims. Returns (shape, ratios)."""
    match = re.fullmatch(r"([^=]+)=([\d.]+),([\d.]+),([\d.]+)(?:,([\d.]+))?", argument)
    try:
        if not match or any(float(n) <= 0 for n in match.groups()[1:] if n):
            raise ValueError
    except ValueError:
        raise Refused(f"--ratio {argument}: not SHAPE=R90,R80,R70 or SHAPE=R90,R80,R70,OTHERS "
                      "with numbers above 0") from None
    return match[1], (*match.groups()[1:4], match[5] or "1")
