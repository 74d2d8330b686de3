# SPDX-License-Identifier: MIT
"""The tables of an export: their columns with SQL types, and what SQLite has beside them.

Times are whole ns on the trace's own time line; meta.base_unix_ns is the Unix time of its 0. What a trace
does not say is NULL. A text that comes often is a number of the table strings. instants.args is JSON, and
args.json is a value that is no number of 64 bits and no text: true, null, a list, an object. counters.int is
a value that is a whole number, which counters.value may round. In spans.unfinished, 2 is a span that an
exception ended. meta.metadata is metadata.npuprof as JSON: with it, `report` and the others read a database
as the trace it was made of (read/database.py)."""

VERSION = 1        # of the schema: grows only if a name goes or changes its meaning

TABLES = {
    "meta": "key TEXT PRIMARY KEY, value TEXT",
    "strings": "id INTEGER PRIMARY KEY, text TEXT NOT NULL",
    "devices": "id INTEGER PRIMARY KEY, name TEXT, pe_count INT, rate_hz REAL, drift_ppm REAL, "
               "max_error_ns INT, anchors INT, causality_violations INT, unplaced_spans INT, ring_lost INT, "
               "peak_ops_per_s REAL, peak_bytes_per_s REAL",
    "anchors": "device INT, host_ns INT, error_ns INT, ticks INT",
    "tracks": "id INTEGER PRIMARY KEY, pid INT, tid INT, name TEXT, kind TEXT, base INT, device INT, "
              "pe_index INT, thread INT, native_id INT, sort INT",
    "spans": "id INTEGER PRIMARY KEY, track INT, parent INT, name INT, cat INT, kind TEXT, start_ns INT, "
             "dur_ns INT, error_ns INT, warm_up INT, unfinished INT, violated INT, trace_id TEXT, "
             "span_id TEXT, pe_index INT, execution_index INT, instruction_index INT, operator_index INT, "
             "job INT, dram_base INT, stamp TEXT",
    "args": "span INT, key INT, int INT, real REAL, text TEXT, json TEXT, PRIMARY KEY(span,key)",
    "flows": "id INTEGER PRIMARY KEY, name TEXT, from_track INT, from_ns INT, from_span INT, to_track INT, "
             "to_ns INT, to_span INT",
    "counters": "name INT, key INT, pid INT, ts_ns INT, value REAL, int INT",
    "memory": "ts_ns INT, device TEXT, used_bytes INT, allocated_bytes INT, change_bytes INT, tag TEXT, "
              "warm_up INT",
    "instants": "ts_ns INT, track INT, name TEXT, cat TEXT, args TEXT",
    "sites": "name INT, cat INT, file TEXT, line INT",
    "losses": "cause TEXT PRIMARY KEY, count INT"}

WITHOUT_ROWID = {"args", "meta", "losses"}

# What SQLite has beside the tables, made when all rows are in.
BESIDE = (
    "CREATE INDEX spans_track ON spans(track, start_ns)",
    "CREATE INDEX spans_name ON spans(name)",
    "CREATE INDEX spans_parent ON spans(parent)",
    """CREATE VIEW span AS
  SELECT s.*, n.text name_text, c.text cat_text, s.start_ns + s.dur_ns end_ns, t.kind track_kind,
    t.name track_name, t.device device,
    (SELECT group_concat(x.file || ':' || x.line, ', ') FROM sites x
     WHERE x.name = s.name AND x.cat = s.cat AND t.kind = 'thread') source
  FROM spans s JOIN strings n ON n.id = s.name JOIN strings c ON c.id = s.cat
    JOIN tracks t ON t.id = s.track""",
    """CREATE VIEW submissions AS
  SELECT f.from_span submit_span, f.to_span execution, f.from_ns submit_ns, e.start_ns,
    e.start_ns + e.dur_ns end_ns, t.device device, e.pe_index, e.error_ns, f.from_track thread_track
  FROM flows f JOIN spans e ON e.id = f.to_span JOIN tracks t ON t.id = e.track
  WHERE f.name = 'submit' AND t.kind = 'device' AND NOT e.warm_up AND NOT e.unfinished""")


def columns(table):
    """[(name, SQL type)] of a table."""
    return [tuple(column.split()[:2]) for column in TABLES[table].split(", ") if "KEY(" not in column]
