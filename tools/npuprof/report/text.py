# SPDX-License-Identifier: MIT
"""The tables as aligned text. Those that C prints, too, have the columns of C."""

from fractions import Fraction

from ..base.messages import HARMLESS
from ..tables.arithmetic import percent
from ..tables.devices import trust_table
from ..tables.memory import megabytes
from ..tables.table import decimal, decimals_of, unit_of
from .data import Maker

NAMES = ("names", "call_paths", "open", "summary", "inferences", "executions", "operators", "external",
         "path", "pes", "threads", "gaps", "categories", "memory", "trust")
TITLES = {"inferences": "Inferences (ns)",
          "executions": "NPU executions (ns; Run: operators inside; 0 if none is recorded)",
          "operators": "NPU operators", "external": "External operators: on the host (ns)"}
# The columns of C: its head, and "<" or ">", its width and the decimals of a Fraction, as printf has them.
IDS = (("trace_id", "<32"), ("span_id", "<16"))
FIXED = {
    "inferences": (*IDS, ("thread.id", ">9"), ("dur", ">12")),
    "executions": (*IDS, ("pe_index", ">8"), ("execution_index", ">15"), ("NPU Total", ">12"),
                   ("NPU Run", ">12"), ("NPU IoWait", ">12"), ("NPU Sum", ">12")),
    "operators": (("name", "<40"), ("average_elapsed (ns)", ">21.6"), ("count", ">8"), ("total (ns)", ">14"),
                  ("share (%)", ">9.2")),
    "external": (*IDS, ("thread.id", ">9"), ("name", "<24"), ("operator_index", ">14"), ("dur", ">12")),
    "memory": (("#Trace", "<6"), ("#Tag", "<80"), ("used", "<15"), ("alloc", "<15"))}
# The only row of "summary" as lines, in the order of C.
SUMMARY = (("min_ns", "Min latency (ns)"), ("max_ns", "Max latency (ns)"), ("mean_ns", "Mean latency (ns)"),
           ("p50_ns", "Median latency (ns)"), ("p90_ns", "90.0 percentile Latency (ns)"),
           ("p95_ns", "95.0 percentile Latency (ns)"), ("p97_ns", "97.0 percentile Latency (ns)"),
           ("p99_ns", "99.0 percentile Latency (ns)"), ("p999_ns", "99.9 percentile Latency (ns)"),
           ("total_ns", "Total latency (ns)"))
SHOWN = 20         # rows of each table in the overview
LONG = {"path": 120, "sequence": 160}      # bytes of a cell; of others 48


def cell(text, limit=48):
    """A name as the C tables show it: at most `limit` bytes, and ? for what is no plain text."""
    data = text.encode("utf-8", "replace")
    if len(data) > limit:
        while limit and data[limit] & 0xC0 == 0x80:
            limit -= 1
        data = data[:limit]
    return data.decode("utf-8", "replace").translate(HARMLESS).replace("\t", "?").replace("\n", "?")


def shown(value, column=""):
    """A cell of a Table. None is "-"; a Fraction in a column without a unit is a share of 1."""
    if isinstance(value, Fraction):
        return decimal(value, decimals_of(column)) if unit_of(column) else percent(value)
    if isinstance(value, str):
        return cell(value, LONG.get(column, 48))
    return "-" if value is None else str(value)


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


def aligned(value, form):
    """A cell with spaces up to a width in bytes, as printf does. form: as in FIXED."""
    width, _, digits = form[1:].partition(".")
    text = decimal(value, int(digits)) if isinstance(value, Fraction) else str(value)
    space = " " * (int(width) - len(text.encode()))
    return text + space if form[0] == "<" else space + text


def fixed_lines(name, rows, separator="  "):
    """The head and the rows of a table of C."""
    heads, forms = zip(*FIXED[name])
    for row in (heads, *rows):
        yield separator.join(map(aligned, row, forms))


def fixed_rows(table, limit):
    """The rows as C shows them: an index that is not there is empty, and a time that nobody measured "-"."""
    absent = ["-" if unit_of(column) else "" for column in table.columns]
    for row in table.rows[:limit]:
        yield [none if value is None else cell(value) if isinstance(value, str) else value
               for value, none in zip(row, absent)]


def summary_lines(table):
    [row] = table.rows
    found = dict(zip(table.columns, row))
    yield from ("=" * 48, "  Inference Results Summary", "=" * 48,
                f"Inference counts                : {found['count']}")
    for column, label in SUMMARY if found["count"] else ():
        yield f"{label:<32}: {found[column]}"


def memory_lines(pools, limit=None):
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
        rows = ((n, cell(tag, 80), megabytes(used), megabytes(allocated))
                for n, (tag, used, allocated) in enumerate(pool["rows"][:limit]))
        yield from fixed_lines("memory", rows, "\t")
        yield from left_out(len(pool["rows"]), limit, "memory")


def lines_of(maker, name, limit=None):
    """The lines of a table of NAMES; at most `limit` rows of it."""
    if name == "memory":
        return memory_lines(maker.memory_pools, limit)
    # Why: numbers of the metadata are printed as they stand there.
    table = trust_table(maker.trace) if name == "trust" else maker.own(name)
    if name == "summary":
        return summary_lines(table)
    if name in FIXED:
        return [*fixed_lines(name, fixed_rows(table, limit)), *left_out(len(table.rows), limit, name)]
    return table_lines(table, limit)


def tables(trace, wanted=NAMES, limit=None):
    """Yields the lines of each table; at most `limit` rows of each."""
    maker = Maker(trace)
    return (lines_of(maker, name, limit) for name in wanted)


def overview(trace, wanted=NAMES, rows=SHOWN):
    """Yields the lines of each of these tables that is not empty, at most so many rows of it."""
    for name, lines in zip(wanted, tables(trace, wanted, rows)):
        lines = list(lines)
        # Without rows there is only a head.
        if lines[-1] != "(none)" and len(lines) > (4 if name == "summary" else 1):
            yield [TITLES[name], *lines] if name in TITLES else lines
