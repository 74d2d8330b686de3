# test: time=200 - npuprof.py export: a database that says what the file says, the ten queries against the
# report's own tables, and Parquet
# SPDX-License-Identifier: MIT
import json
import os
import shutil
import sqlite3
import unittest
from collections import Counter, defaultdict

import helpers
from helpers import ROOT, scratch
import npuprof
from npuprof.export.tables import TABLES, columns
from npuprof.tables.executions import npu_operators
from npuprof.tables.labelled import labelled
from npuprof.tables.memory import memory_pools
from npuprof.tables.spans import names_table
from npuprof.tables.submissions import path_rows
from sample import sample
from test_duckdb import installed

QUERIES = ROOT / "tools" / "queries"


def export(*arguments, **options):
    return helpers.npuprof_py("export", *arguments, **options)


def written(trace, name):
    """The path of the database of a trace."""
    path = scratch() / name
    export(trace, "--sqlite", path, printed="", said="")
    return path


def setUpModule():
    helpers.tool("npuprof-convert")
    (scratch() / "sample.json").write_text(sample(), encoding="utf-8")
    program = helpers.build("streams.c", "streams")
    helpers.run([program, "streams.json", "streams.csv", "streams.npuprof"], code=0,
                env=helpers.environment())
    for form in ("json", "csv"):
        helpers.npuprof_py("convert", "streams.npuprof", "-o", f"streams.{form}")


class WhatTheFileSays(unittest.TestCase):
    """The database against the events of the JSON, read by Python's own parser."""

    @classmethod
    def setUpClass(cls):
        cls.path = written("sample.json", "sample.db")
        cls.db = sqlite3.connect(cls.path)
        cls.file = helpers.strict_json((scratch() / "sample.json").read_text())
        cls.events = cls.file["traceEvents"]

    def rows(self, query):
        return self.db.execute(query).fetchall()

    def test_whole(self):
        self.assertEqual(self.rows("PRAGMA integrity_check"), [("ok",)])
        found = {name for name, in self.rows("SELECT name FROM sqlite_master WHERE type = 'table'")}
        self.assertEqual(found, set(TABLES))
        for table in TABLES:
            self.assertEqual([row[1:3] for row in self.rows(f"PRAGMA table_info({table})")], columns(table))
        self.assertEqual(self.rows("SELECT text FROM strings WHERE id = 0"), [("",)])
        for table, column, other in (("spans", "track", "tracks"), ("spans", "parent", "spans"),
                                     ("spans", "name", "strings"), ("spans", "cat", "strings"),
                                     ("args", "span", "spans"), ("args", "key", "strings"),
                                     ("counters", "name", "strings"), ("counters", "key", "strings"),
                                     ("flows", "from_span", "spans"), ("flows", "to_span", "spans"),
                                     ("anchors", "device", "devices"), ("tracks", "device", "devices")):
            query = f"SELECT COUNT(*) FROM {table} WHERE {column} NOT IN (SELECT id FROM {other})"
            self.assertEqual(self.rows(query), [(0,)], (table, column))

    def test_spans_and_args(self):
        """Every argument is a column or a row of args, with its type."""
        wanted = sorted((e for e in self.events if e["ph"] == "X"),
                        key=lambda e: (e["tid"], e["ts"], -e["dur"], e["name"]))
        spans = self.db.execute("SELECT s.*, t.tid FROM span s JOIN tracks t ON t.id = s.track "
                                "ORDER BY t.tid, s.start_ns, -s.dur_ns, s.name_text")
        names = [d[0] for d in spans.description]
        args = defaultdict(dict)
        for span, key, whole, real, text in self.rows(
                "SELECT span, k.text, int, real, a.text FROM args a JOIN strings k ON k.id = a.key"):
            args[span][key] = next((v for v in (whole, real, text) if v is not None), None)
        spans = [dict(zip(names, row)) for row in spans]
        self.assertEqual(len(spans), len(wanted))
        for span, event in zip(spans, wanted):
            self.assertEqual((span["name_text"], span["cat_text"], span["tid"], span["start_ns"],
                              span["dur_ns"]),
                             (event["name"], event["cat"], event["tid"], round(event["ts"] * 1000),
                              round(event["dur"] * 1000)))
            given = dict(event.get("args", {}))
            self.assertEqual(span["stamp"], given.get("stamp"))
            self.assertEqual(span["kind"],
                             "device" if given.pop("stamp", None) else given.pop("kind", "span"))
            self.assertEqual(span["violated"], int(given.pop("causality", None) == "violated"))
            given.pop("warm_up", None)
            for key in ("error_ns", "pe_index", "execution_index", "instruction_index", "operator_index"):
                self.assertEqual(span[key], given.pop(key, None), key)
            self.assertEqual(args[span["id"]], given)

    def test_warm_up_and_parents(self):
        """By containment in the warm-up records, in the file's own times."""
        warm = [(e["tid"], e["ts"], e["ts"] + e["dur"]) for e in self.events
                if e["ph"] == "X" and e.get("args", {}).get("kind") == "warm_up"]
        for tid, start, dur, flag in self.rows("SELECT tid, start_ns, dur_ns, warm_up FROM spans s "
                                               "JOIN tracks t ON t.id = s.track WHERE t.kind = 'thread'"):
            inside = any(t == tid and a * 1000 - 1 <= start and start + dur <= b * 1000 + 1
                         for t, a, b in warm)
            self.assertEqual(flag, inside)
        outside = self.rows("SELECT COUNT(*) FROM spans c JOIN spans p ON p.id = c.parent JOIN tracks t "
                            "ON t.id = c.track WHERE t.kind = 'thread' AND (c.start_ns < p.start_ns "
                            "OR c.start_ns + c.dur_ns > p.start_ns + p.dur_ns)")
        self.assertEqual(outside, [(0,)])

    def test_the_other_tables(self):
        starts = {e["id"]: e for e in self.events if e["ph"] == "s"}
        flows = self.rows("SELECT flows.name, from_ns, to_ns, f.tid, t.tid FROM flows JOIN tracks f "
                          "ON f.id = from_track JOIN tracks t ON t.id = to_track")
        self.assertEqual(sorted(flows), sorted(
            (e["name"], round(starts[e["id"]]["ts"] * 1000), round(e["ts"] * 1000), starts[e["id"]]["tid"],
             e["tid"]) for e in self.events if e["ph"] == "f"))
        counters = Counter((n, k, ts, v) for n, k, ts, v in self.rows(
            "SELECT n.text, k.text, ts_ns, value FROM counters c JOIN strings n ON n.id = c.name "
            "JOIN strings k ON k.id = c.key"))
        self.assertEqual(counters, Counter((e["name"], key, round(e["ts"] * 1000), value) for e in self.events
                                           if e["ph"] == "C" for key, value in e["args"].items()))
        self.assertEqual(self.rows("SELECT COUNT(*), SUM(used_bytes), SUM(allocated_bytes) FROM memory"), [
            tuple(map(sum, zip(*((1, e["args"]["used"], e["args"]["allocated"]) for e in self.events
                                 if e["ph"] == "C" and "used" in e["args"]))))])
        found = self.rows("SELECT name, args FROM instants ORDER BY ts_ns")
        self.assertEqual([(name, json.loads(args or "{}")) for name, args in found],
                         [(e["name"], e.get("args", {})) for e in self.events if e["ph"] == "i"])
        about = self.file["metadata"]["npuprof"]
        self.assertEqual(dict(self.rows("SELECT * FROM losses")), about["lost"])
        meta = dict(self.rows("SELECT * FROM meta"))
        self.assertEqual((meta["schema"], meta["base_unix_ns"], meta["user.firmware"]),
                         ("1", str(about["start_unix_ns"]), about["user"]["firmware"]))
        self.assertEqual(self.rows("SELECT name, rate_hz, max_error_ns, ring_lost FROM devices"),
                         [(d["name"], d["clock_sync"]["rate_hz"], d["clock_sync"]["max_error_ns"], None)
                          for d in about["devices"]])

    def test_equal_bytes(self):
        shutil.copy(scratch() / "sample.json", scratch() / "other name.json")
        again = written("other name.json", "again.sqlite3")
        self.assertEqual(again.read_bytes(), self.path.read_bytes())
        self.assertEqual(written("other name.json", "again.sqlite3").read_bytes(), self.path.read_bytes())

    @helpers.thorough
    def test_anchors_and_forms(self):
        """JSON and image say the same; a CSV knows ids, and neither arguments nor arrows."""
        whole, image, rows = (sqlite3.connect(written(f"streams.{form}", f"{form}.db"))
                              for form in ("json", "npuprof", "csv"))
        about = helpers.strict_json((scratch() / "streams.json").read_text())["metadata"]["npuprof"]
        anchors = [(n, *anchor[:3]) for n, d in enumerate(about["devices"])
                   for anchor in d["clock_sync"]["anchor_list"]]
        self.assertEqual(whole.execute("SELECT * FROM anchors").fetchall(), anchors)
        for table in ("spans", "args", "flows", "counters", "strings", "tracks"):
            query = f"SELECT * FROM {table}"
            self.assertEqual(whole.execute(query).fetchall(), image.execute(query).fetchall())
        query = "SELECT name_text, dur_ns FROM span ORDER BY 1, 2"
        self.assertEqual(rows.execute(query).fetchall(), whole.execute(query).fetchall())
        self.assertEqual(rows.execute("SELECT COUNT(*) FROM args").fetchone(), (0,))
        ids = "SELECT trace_id, span_id FROM spans WHERE kind = 'inference' ORDER BY span_id"
        self.assertEqual(rows.execute(ids).fetchall(), whole.execute(ids).fetchall())


class Arrows(unittest.TestCase):
    def test_lead_to_the_execution(self):
        """Not to its first instruction, which begins at the same time on the same track."""
        device = {"stamp": "device", "pe_index": 0, "execution_index": 0}
        events = [{"ph": "X", "name": name, "pid": 7, "tid": tid, "ts": ts, "dur": dur, "args": args}
                  for name, tid, ts, dur, args in (
                      ("outer", 1, 0, 50, {}), ("Submit", 1, 2, 3, {}),
                      ("Load", 2, 9, 4, device | {"instruction_index": 0}), ("Execution", 2, 9, 20, device))]
        events += [{"ph": ph, "name": "submit", "cat": "submit", "id": 1, "pid": 7, "tid": tid, "ts": ts,
                    "bp": "e"} for ph, tid, ts in (("s", 1, 2), ("f", 2, 9))]
        about = {"version": "0.1.0", "start_unix_ns": 1, "threads": 1, "pid": 7}
        (scratch() / "arrow.json").write_text(json.dumps({"traceEvents": events,
                                                          "metadata": {"npuprof": about}}))
        database = sqlite3.connect(written("arrow.json", "arrow.db"))
        self.assertEqual(database.execute(
            "SELECT a.name_text, b.name_text FROM flows JOIN span a ON a.id = from_span JOIN span b "
            "ON b.id = to_span").fetchall(), [("Submit", "Execution")])


class Queries(unittest.TestCase):
    """Each against the report's own figure."""

    def answers(self, trace):
        database = sqlite3.connect(written(trace, "queries.db"))
        return {query.stem: database.execute(query.read_text()).fetchall() for query in QUERIES.glob("*.sql")}

    def check(self, name):
        trace = npuprof.load(scratch() / name)
        answer = self.answers(name)
        self.assertEqual(len(answer), 10)
        self.assertEqual({row[0]: row[1:3] for row in answer["operators"]},
                         {name: (count, total) for name, _, count, total, _ in npu_operators(trace)})
        path = [row for row in path_rows(trace) if not trace.warm_up[row[0]]]
        queue, execute = [row[1] for row in path], [row[2] for row in path]
        self.assertEqual(answer["submissions"], [(
            len(path), sum(queue), sum(queue) / len(path), max(queue), sum(execute), sum(execute) / len(path),
            max(execute))])
        jobs = sorted((trace.start[i] - q, trace.start[i], trace.start[i] + e,
                       trace.tracks[trace.track[i]].base) for i, q, e, *_ in path)
        by_pe = defaultdict(list)
        for submit, start, end, track in sorted(jobs, key=lambda job: job[1]):
            by_pe[track].append((submit, start, end))
        gaps = [[(b[1] - a[2], b[0] > a[2]) for a, b in zip(of, of[1:])] for of in by_pe.values()]
        self.assertEqual(sorted(row[2:] for row in answer["gaps"]), sorted(
            (len(g), sum(ns for ns, _ in g), max(ns for ns, _ in g)) for g in gaps if g))
        classes = defaultdict(lambda: [0, 0])
        for ns, empty in (gap for of in gaps for gap in of):
            entry = classes["queue empty" if empty else "queued"]
            entry[0], entry[1] = entry[0] + 1, entry[1] + ns
        self.assertEqual([(c, [n, ns]) for c, n, ns in answer["queue_empty"]], sorted(classes.items()))
        depths = Counter()
        moments = sorted({t for submit, _, end, _ in jobs for t in (submit, end)})
        for a, b in zip(moments, moments[1:]):
            depths[sum(submit <= a < end for submit, _, end, _ in jobs)] += b - a
        self.assertEqual({depth: ns for depth, ns, _ in answer["queue_depth"]}, +depths)
        inferences = sorted((-trace.dur[i], i) for i in labelled(trace, npuprof.base.contract.INFERENCE))[:10]
        self.assertEqual([(row[0], row[2]) for row in answer["slowest_inferences"]],
                         [(i, -ns) for ns, i in inferences])
        for i, _, _, child, ns in answer["slowest_inferences"]:
            inside = [(trace.dur[c], trace.text(c)) for c in range(len(trace)) if trace.parents[c] == i]
            self.assertEqual(ns, max(inside)[0])
            self.assertIn((ns, child), inside)
        elsewhere = {trace.text(i) for i in range(len(trace))
                     if trace.tracks[trace.track[i]].kind != "thread"}
        table = {row[0]: row[1:4] for row in names_table(trace).rows if row[0] not in elsewhere}
        found = {row[0]: row[1:] for row in answer["self_time"] if row[0] not in elsewhere}
        self.assertEqual(found, table)
        pools = memory_pools(trace)
        self.assertEqual([(row[0], row[1], row[4]) for row in answer["memory_peaks"]],
                         [(name, pools[name]["used"][0], pools[name]["used"][2]) for name in sorted(pools)])
        self.trust(trace.metadata, answer)
        return answer

    def trust(self, about, answer):
        syncs = [d["clock_sync"] for d in about["devices"]]
        self.assertEqual(answer["losses"][0][0], sum(about["lost"].values()))
        self.assertEqual(answer["losses"][0][2:], (sum(s["causality_violations"] for s in syncs),
                                                   max(s["max_error_ns"] for s in syncs)))
        wanted = []
        for n, sync in enumerate(syncs):
            anchors = sync.get("anchor_list", [])
            wanted += [(n, anchors[0][0], None, None)] if anchors else []
            wanted += [(n, b[0], (b[2] - a[2]) * 1e9 / (b[0] - a[0]), (a[1] + b[1]) * 1e6 / (b[0] - a[0]))
                       for a, b in zip(anchors, anchors[1:])]
        self.assertEqual(answer["device_rate"], wanted)

    def test_sample(self):
        answer = self.check("sample.json")
        self.assertGreater(len(answer["self_time"]), 8)

    @helpers.thorough
    def test_streams(self):
        self.check("streams.json")

    def test_of_an_empty_trace(self):
        (scratch() / "empty.json").write_text(
            '{"traceEvents":[],"metadata":{"npuprof":{"version":"0.1.0","start_unix_ns":5}}}')
        answer = self.answers("empty.json")
        self.assertEqual(answer.pop("losses"), [(None,) * 4])
        self.assertEqual(answer.pop("submissions")[0][:2], (0, None))
        self.assertEqual(set(map(len, answer.values())), {0})


class Refusals(unittest.TestCase):
    def refused(self, *arguments, says, **options):
        self.assertRegex(helpers.refused("export", *arguments, **options), says)

    def test_outputs(self):
        self.refused("sample.json", says="say where to")
        self.refused("sample.json", "--sqlite", "x.txt", says="unknown extension")
        self.refused("sample.json", "--sqlite", "/dev/null", says="no regular file")
        self.refused("sample.json", "-o", "x.txt", says="unknown extension")
        self.refused("sample.json", "--sqlite", "none/x.db", says="cannot be written")
        self.refused("sample.json", "--parquet", "sample.json", says="cannot be made|neither")

    def test_a_broken_trace_leaves_the_old_database(self):
        (scratch() / "cut.json").write_bytes((scratch() / "sample.json").read_bytes()[:5000])
        kept = written("sample.json", "kept.db").read_bytes()
        self.refused("cut.json", "--sqlite", "kept.db", says=r"cut\.json:\d+: byte")
        self.assertEqual((scratch() / "kept.db").read_bytes(), kept)

    def test_strange_values(self):
        """Numbers beyond 64 bits, lists, a key twice as column and argument."""
        event = {"ph": "X", "name": "x", "cat": "a\0b", "pid": 1, "tid": 1, "ts": 1, "dur": 2,
                 "args": {"big": 2**70, "list": [1, "é"], "nothing": None, "real": 1.5, "yes": True,
                          "pe_index": "many", "kind": "mine", "": ""}}
        (scratch() / "strange.json").write_text(json.dumps({"traceEvents": [event]}))
        database = sqlite3.connect(written("strange.json", "strange.db"))
        self.assertEqual(database.execute("PRAGMA integrity_check").fetchall(), [("ok",)])
        self.assertEqual(database.execute("SELECT name_text, cat_text FROM span").fetchall(), [("x", "a\0b")])
        rows = database.execute("SELECT s.text, int, real, a.text FROM args a JOIN strings s ON s.id = key")
        self.assertEqual({row[0]: row[1:] for row in rows}, {
            "big": (None, None, str(2**70)), "list": (None, None, '[1, "é"]'), "nothing": (None, None, None),
            "real": (None, 1.5, None), "yes": (1, None, None), "pe_index": (None, None, "many"),
            "kind": (None, None, "mine"), "": (None, None, "")})

    def test_what_no_column_holds(self):
        """Arguments of spans of each kind whose keys are columns, but not their values: back as they were."""
        odd = [{"stamp": "device", key: value} for key, value in
               [("job", "train 7"), ("job", 3), ("job", 2**64), ("error_ns", "3"), ("unfinished", 3),
                ("unfinished", False), ("causality", "fine"), ("warm_up", 1), ("trace_id", 5),
                ("kind", "device")]]
        odd += [{"kind": "inference", key: value} for key, value in
                [("unfinished", 0), ("warm_up", False), ("span_id", 7), ("job", "j"), ("stamp", "s")]]
        lines = [json.dumps({"ph": "X", "name": f"n{i}", "pid": 1, "tid": 1, "ts": i, "dur": 0.5,
                             "args": args}) for i, args in enumerate(odd)]
        about = {"npuprof": {"version": "1.0.0", "start_unix_ns": 0, "pid": 1}}
        (scratch() / "odd.json").write_text(
            f'{{"traceEvents": [{",".join(lines)}], "metadata": {json.dumps(about)}}}')
        both = [npuprof.load(str(path)) for path in (scratch() / "odd.json", written("odd.json", "odd.db"))]
        for i, args in enumerate(odd):
            for trace in both:
                self.assertEqual(trace.args(i), args)


# The program duckdb, by the package of npm: -bail -c SQL.
DUCKDB = """#!/usr/bin/env node
const { DuckDBInstance } = require('%s/node_modules/@duckdb/node-api');
(async () => {
    const connection = await (await DuckDBInstance.create(':memory:')).connect();
    const done = await connection.runAndReadAll(process.argv[4]);
    const plain = (key, value) => typeof value === 'bigint' ? Number(value) : value;
    console.log(JSON.stringify(done.getRows(), plain));
})().catch(error => { console.error(error.message); process.exit(1); });
"""


class Parquet(unittest.TestCase):
    def test_without_a_writer(self):
        words, bare = ("sample.json", "--parquet", "nowhere"), helpers.environment(PATH="/nonexistent")
        if export(*words, code=None, env=bare).returncode == 0:
            self.skipTest("pyarrow or duckdb is installed")
        self.assertIn("--parquet needs pyarrow or DuckDB", helpers.refused("export", *words, env=bare))
        self.assertFalse((scratch() / "nowhere").exists())

    @helpers.thorough
    def test_the_same_rows(self):
        """DuckDB reads from the Parquet files what SQLite reads from the database."""
        folder = scratch() / "bin"
        folder.mkdir()
        program = folder / "duckdb"
        program.write_text(DUCKDB % installed())
        program.chmod(0o755)
        env = helpers.environment(PATH=f"{folder}:{os.environ['PATH']}")
        export("sample.json", "--parquet", "parquet", said="", env=env)
        self.assertEqual(sorted(path.name for path in (scratch() / "parquet").iterdir()),
                         sorted(f"{table}.parquet" for table in TABLES))
        database = sqlite3.connect(written("sample.json", "parquet.db"))
        for table in TABLES:
            names = ", ".join(f'"{name}"' for name, _ in columns(table))
            done = helpers.run([program, "-bail", "-c", f"SELECT {names} FROM 'parquet/{table}.parquet'"],
                               code=0)
            rows = [tuple(row) for row in json.loads(done.stdout)]
            wanted = database.execute(f"SELECT {names} FROM {table}").fetchall()
            self.assertEqual(Counter(rows), Counter(wanted), table)
