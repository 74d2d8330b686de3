# SPDX-License-Identifier: MIT
"""The tables as aligned text: a function for each that C prints, too, and table_lines() for the others."""

from fractions import Fraction

from ..base.contract import INFERENCE, OPERATOR
from ..base.messages import HARMLESS
from ..tables.arithmetic import mean, percent
from ..tables.devices import gaps_table, pes_table, trust_table
from ..tables.executions import Device, npu_executions, npu_operators
from ..tables.labelled import external_operators, inferences, labelled, summary
from ..tables.memory import megabytes, memory_pools
from ..tables.spans import categories_table, names_table, open_table, threads_table
from ..tables.submissions import path_table
from ..tables.table import decimal, decimals_of, unit_of
from ..tables.tracks import track_intervals

NAMES = ("names", "open", "summary", "inferences", "executions", "operators", "external", "path", "pes",
         "threads", "gaps", "categories", "memory", "trust")
TITLES = {"inferences": "Inferences (ns)",
          "executions": "NPU executions (ns; Run: operators inside; 0 if none is recorded)",
          "operators": "NPU operators", "external": "External operators: on the host (ns)"}
# How many lines a table of C has without rows.
EMPTY = {"summary": 4, "inferences": 1, "executions": 1, "operators": 1, "external": 1, "memory": 1}
SHOWN = 20         # rows of each table in the overview


def cell(text, limit=48):
    """A name as the C tables show it: at most `limit` bytes, and ? for what is no plain text."""
    data = text.encode("utf-8", "replace")
    if len(data) > limit:
        while limit and data[limit] & 0xC0 == 0x80:
            limit -= 1
        data = data[:limit]
    return data.decode("utf-8", "replace").translate(HARMLESS).replace("\t", "?").replace("\n", "?")


def padded(text, width):
    """The text with spaces up to a width in bytes, as printf does."""
    return text + " " * (width - len(text.encode()))


def shown(value, column=""):
    """A cell of a Table. None is "-"; a Fraction in a column without a unit is a share of 1."""
    if isinstance(value, Fraction):
        return decimal(value, decimals_of(column)) if unit_of(column) else percent(value)
    return "-" if value is None else cell(value) if isinstance(value, str) else str(value)


def left_out(count, limit, table):
    """A line that says how to see the rows beyond the limit, if there are any."""
    if limit is not None and count > limit:
        yield f"({count - limit} more of {count} rows; all of them: --table {table})"


def table_lines(table, limit=None):
    """The lines of a Table: its title, head, rows and notes. Words stand left, numbers right."""
    yield table.title
    if table.rows:
        shares = [not unit_of(c) and any(isinstance(row[n], Fraction) for row in table.rows)
                  for n, c in enumerate(table.columns)]
        head = [c + " (%)" if share else c for c, share in zip(table.columns, shares)]
        cells = [list(map(shown, row, table.columns)) for row in table.rows[:limit]]
        left = [isinstance(v, str) and not v.replace(".", "").isdigit() for v in table.rows[0]]
        widths = [max(len(c) for c in column) for column in zip(head, *cells)]
        for line in (head, *cells):
            yield "  ".join(c.ljust(w) if l else c.rjust(w) for c, w, l in zip(line, widths, left)).rstrip()
        yield from left_out(len(table.rows), limit, table.name)
    elif not table.notes:
        yield "(none)"
    yield from table.notes


def summary_lines(trace):
    s = summary(trace)
    yield from ("=" * 48, "  Inference Results Summary", "=" * 48,
                f"Inference counts                : {s['count']}")
    if s["count"]:
        for label, key in (("Min", "min"), ("Max", "max"), ("Mean", "mean"), ("Median", 500)):
            yield f"{label} latency (ns)".ljust(32) + f": {s[key]}"
        for p in (900, 950, 970, 990, 999):
            yield f"{p // 10}.{p % 10} percentile Latency (ns)".ljust(32) + f": {s[p]}"
        yield "Total latency (ns)".ljust(32) + f": {s['total']}"


def inferences_lines(trace, limit=None):
    yield f"{'trace_id':<32}  {'span_id':<16}  {'thread.id':>9}  {'dur':>12}"
    for trace_id, span_id, thread, dur in inferences(trace, limit):
        yield f"{trace_id}  {span_id}  {'' if thread is None else thread:>9}  {dur:12}"
    yield from left_out(len(labelled(trace, INFERENCE)), limit, "inferences")


def executions_lines(trace, device=None, limit=None):
    yield (f"{'trace_id':<32}  {'span_id':<16}  {'pe_index':>8}  {'execution_index':>15}  {'NPU Total':>12}  "
           f"{'NPU Run':>12}  {'NPU IoWait':>12}  {'NPU Sum':>12}")
    device = device or Device(trace)
    for trace_id, span_id, pe, number, *figures in npu_executions(trace, device, limit):
        columns = "  ".join(f"{'-' if ns is None else ns:>12}" for ns in figures)
        yield f"{trace_id}  {span_id}  {pe:8}  {'' if number is None else number:>15}  {columns}"
    if limit is not None:
        yield from left_out(sum(1 for _ in device.executions()), limit, "executions")


def operators_lines(trace, device=None, limit=None):
    yield f"{'name':<40}  {'average_elapsed (ns)':>21}  {'count':>8}  {'total (ns)':>14}  {'share (%)':>9}"
    rows = npu_operators(trace, device)
    everything = sum(row[3] for row in rows)
    for name, _, count, total, _ in rows[:limit]:
        whole, millionths = divmod(mean(total * 1000000, count), 1000000)
        share = (total * 20000 // everything + 1) // 2 if everything else 0
        yield (f"{padded(cell(name), 40)}  {whole:14}.{millionths:06}  {count:8}  {total:14}  "
               f"{share // 100:6}.{share % 100:02}")
    yield from left_out(len(rows), limit, "operators")


def external_lines(trace, limit=None):
    yield (f"{'trace_id':<32}  {'span_id':<16}  {'thread.id':>9}  {'name':<24}  {'operator_index':>14}  "
           f"{'dur':>12}")
    for trace_id, span_id, thread, name, index, dur in external_operators(trace, limit):
        yield (f"{trace_id}  {span_id}  {'' if thread is None else thread:>9}  {padded(cell(name), 24)}  "
               f"{index:14}  {dur:12}")
    yield from left_out(len(labelled(trace, OPERATOR)), limit, "external")


def memory_lines(trace, limit=None):
    pools = memory_pools(trace)
    if not pools:
        yield "no memory records"
    for device, pool in pools.items():
        def peak(key):
            value, index, tag = pool[key]
            return f"{megabytes(value)} at #{index} {cell(tag, 80)}"
        unused = max(pool["held"] - pool["used"][0], 0)
        yield f"Memory of {cell(device, 80)} (MB of 2^20 bytes): {pool['records']} records"
        yield f"peak used       : {peak('used')}"
        yield f"peak allocated  : {peak('allocated')}"
        share = percent(Fraction(unused, pool["held"] or 1))
        yield f"fragmentation   : {megabytes(unused)} ({share} %) allocated but not used at the peak"
        yield f"allocated drops : {pool['drops']}"
        yield f"{'#Trace':<6}\t{'#Tag':<80}\t{'used':<15}\t{'alloc':<15}"
        for index, (tag, used, allocated) in enumerate(pool["rows"][:limit]):
            tag = padded(cell(tag, 80), 80)
            yield f"{index:<6}\t{tag}\t{megabytes(used):<15}\t{megabytes(allocated):<15}"
        yield from left_out(len(pool["rows"]), limit, "memory")


def tables(trace, wanted=NAMES, limit=None):
    """Yields the lines of each table; at most `limit` rows of each."""
    device = Device(trace) if {"executions", "operators", "pes"} & set(wanted) else None
    tracks = track_intervals(trace) if {"threads", "pes", "gaps"} & set(wanted) else None
    lines = {"summary": lambda: summary_lines(trace), "inferences": lambda: inferences_lines(trace, limit),
             "executions": lambda: executions_lines(trace, device, limit),
             "operators": lambda: operators_lines(trace, device, limit),
             "external": lambda: external_lines(trace, limit), "memory": lambda: memory_lines(trace, limit)}
    make = {"names": lambda: names_table(trace), "open": lambda: open_table(trace),
            "categories": lambda: categories_table(trace), "threads": lambda: threads_table(trace, tracks),
            "pes": lambda: pes_table(trace, tracks, device), "gaps": lambda: gaps_table(trace, tracks),
            "path": lambda: path_table(trace), "trust": lambda: trust_table(trace)}
    for name in wanted:
        yield lines[name]() if name in lines else table_lines(make[name](), limit)


def overview(trace):
    """Yields the lines of each table that has rows, at most SHOWN of them; last, the names of the empty
    tables."""
    empty = []
    for name, lines in zip(NAMES, tables(trace, limit=SHOWN)):
        lines = list(lines)
        if lines[-1] == "(none)" or len(lines) == EMPTY.get(name):
            empty.append(name)
        else:
            yield [TITLES[name], *lines] if name in TITLES else lines
    if empty:
        yield ["Nothing to show in: " + ", ".join(empty)]
