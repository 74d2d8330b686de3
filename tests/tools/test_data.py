# test: time=100 - npuprof.py report --csv-dir and --json: the same figures as the text, read by other parsers
# SPDX-License-Identifier: MIT
import csv
import json
import re
import unittest
from decimal import ROUND_HALF_UP, Decimal
from fractions import Fraction

import helpers
from helpers import scratch
import npuprof
from npuprof.report.data import COLUMNS, NAMES
from sample import HOSTILE, sample

UNIT = re.compile(r"_(ns|pct|bytes|hz|ppm|per_s|ratio|ticks|ops|uj|mw)$")
# Columns that hold a text, a count or a number of something: they have no unit.
BARE = {"name", "category", "thread", "thread_id", "count", "spans", "track", "phase", "trace_id", "span_id",
        "pe_index", "execution_index", "operator_index", "device", "record", "records", "tag", "peak_tag",
        "allocated_tag", "drops", "anchors", "causality_violations", "unplaced_spans", "ring_lost", "cause",
        "queue", "class", "span", "confidence", "previous", "next", "view", "max", "depth", "part", "pe",
        "executions", "pes", "used", "pes_busy", "operator", "pieces", "kind", "bound", "inferences", "first",
        "k", "instruction", "pool", "growth_steps", "allocations", "samples", "owner", "change", "note",
        "counter", "path", "where", "shape", "operators", "sequence", "lane"}


def report(*arguments, **options):
    return helpers.npuprof_py("report", *arguments, **options)


def setUpModule():
    (scratch() / "sample.json").write_text(sample(), encoding="utf-8")
    (scratch() / "empty.json").write_text(
        '{"traceEvents":[],"metadata":{"npuprof":{"version":"0.1.0","start_unix_ns":5}}}')
    for name in ("sample", "empty"):
        report(f"{name}.json", "--csv-dir", f"{name}/csv", "--json", f"{name}/report.json", printed="",
               said="")


def sheet(name, table):
    """(head, rows) of a CSV, by Python's module."""
    with open(scratch() / name / "csv" / f"{table}.csv", encoding="utf-8", newline="") as file:
        head, *rows = csv.reader(file, strict=True)
    return tuple(head), rows


class Data(unittest.TestCase):
    maxDiff = None

    def setUp(self):
        self.text = (scratch() / "sample" / "report.json").read_text(encoding="utf-8")
        self.json = json.loads(self.text, parse_float=Decimal)
        self.trace = npuprof.load(scratch() / "sample.json")

    def test_columns_are_stable_and_say_their_unit(self):
        for name in ("sample", "empty"):
            found = {path.stem: sheet(name, path.stem)[0] for path in (scratch() / name / "csv").iterdir()}
            self.assertEqual({table: found[table] for table in NAMES}, COLUMNS)
        for table, columns in found.items():
            for column in columns:
                self.assertTrue(bool(UNIT.search(column)) != (column in BARE), (table, column))

    def test_json_is_strict_and_says_what_the_csv_says(self):
        helpers.strict_json(self.text)
        self.assertEqual(self.json["npuprof_report"], 1)
        about = self.json["trace"]
        self.assertEqual((about["spans"], about["host"]), (len(self.trace), "bench-03"))
        for table, content in self.json["tables"].items():
            head, rows = sheet("sample", table)
            self.assertEqual(tuple(column["name"] for column in content["columns"]), head)
            for column in content["columns"]:
                self.assertEqual(column["unit"], (UNIT.search(column["name"]) or ["", ""])[1])
            self.assertEqual([["" if v is None else str(v) for v in row] for row in content["rows"]], rows)

    def test_hostile_names_come_back(self):
        self.assertIn(HOSTILE, [row[0] for row in sheet("sample", "names")[1]])
        raw = (scratch() / "sample" / "csv" / "names.csv").read_bytes()
        self.assertNotIn(b"\r", raw)
        self.assertTrue(raw.endswith(b"\n"))

    def test_figures(self):
        """Some columns of each table a second time, from the spans."""
        trace, n = self.trace, range(len(self.trace))
        by_name = {}
        for i in n:
            by_name.setdefault(trace.text(i), []).append(trace.dur[i])
        names = {row[0]: row for row in sheet("sample", "names")[1]}
        own = sum(int(row[3]) for row in names.values())
        for name, durations in by_name.items():
            row, exact = names[name], sum(durations) / Fraction(len(durations))
            self.assertEqual((int(row[1]), int(row[2])), (len(durations), sum(durations)))
            self.assertEqual(int(row[5]), int(exact + Fraction(1, 2)))
            self.assertEqual(Decimal(row[4]), (Decimal(100) * int(row[3]) / own).quantize(
                Decimal("0.01"), ROUND_HALF_UP))
        operators = sheet("sample", "operators")[1]
        everything = sum(int(row[3]) for row in operators)
        for row in operators:
            self.assertEqual(Decimal(row[4]), (Decimal(100) * int(row[3]) / everything).quantize(
                Decimal("0.01"), ROUND_HALF_UP))
        device = [i for i in n if trace.kind[i] == 5]
        window = max(trace.start[i] + trace.dur[i] for i in device) - min(trace.start[i] for i in device)
        for row in sheet("sample", "pes")[1]:
            self.assertAlmostEqual(float(row[4]), 100 * int(row[2]) / window, delta=0.0051)
        for row in sheet("sample", "executions")[1]:
            self.assertEqual(int(row[4]), int(row[5]) + int(row[6]))
        records = sorted((e["ts"], e["name"], *e["args"].values()) for e in json.loads(
            (scratch() / "sample.json").read_text())["traceEvents"] if e["ph"] == "C" and "used" in e["args"])
        self.assertEqual([[int(v) for v in row[3:]] for row in sheet("sample", "memory")[1]],
                         [list(record[2:]) for record in records])
        [pool] = sheet("sample", "pools")[1]
        self.assertEqual((int(pool[1]), int(pool[2])), (len(records), max(record[2] for record in records)))
        self.assertEqual(dict(sheet("sample", "losses")[1]), {"arena_full": "17", "names_full": "0"})
        self.assertEqual([row[:3] for row in sheet("sample", "trust")[1]],
                         [["npu0", "25003174.800", "126.900"], ["npu1", "24999871.200", "-5.150"]])

    def test_unknown_is_not_zero(self):
        self.assertEqual(sheet("empty", "summary")[1], [["0", *[""] * 10]])
        tables = json.loads((scratch() / "empty" / "report.json").read_text())["tables"]
        self.assertEqual(tables["summary"]["rows"], [[0, *[None] * 10]])
        self.assertEqual({row[7] for row in sheet("sample", "trust")[1]}, {""})   # no ring_lost there

    def test_only_some(self):
        report("sample.json", "--csv-dir", "some", "--table", "pools", "--table", "names", said="")
        self.assertEqual({path.name for path in (scratch() / "some").iterdir()}, {"pools.csv", "names.csv"})

    def test_refusals(self):
        for arguments, says in ((("--table", "losses"), "--table losses: is for --csv-dir and --json"),
                                (("--json", "x.txt"), "unknown extension"),
                                (("--csv-dir", "sample.json"), "cannot be made"),
                                (("--json", "none/x.json"), "cannot be written")):
            self.assertIn(says, helpers.refused("report", "sample.json", *arguments))
