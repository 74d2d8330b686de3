# test: time=120 - a database of export is the trace that it was made of; a changed one is refused
# SPDX-License-Identifier: MIT
import json
import lzma
import sqlite3
import unittest

import helpers
import npuprof
import planted
from helpers import TESTS, scratch

GOLDEN = sorted((TESTS / "golden").glob("*.json"))
IMAGES = sorted((TESTS / "image" / "corpus").glob("*.npuprof.xz"))
COLUMNS = ("start", "dur", "track", "kind", "flags", "index", "metadata", "roles", "base_ns", "damage",
           "format", "memory", "instants", "counters", "left_out")


def exported(path):
    """The database of a trace."""
    helpers.npuprof_py("export", path, "--sqlite", scratch() / "out.db", printed="")
    return scratch() / "out.db"


def parts(trace):
    """All that a Trace holds, by name."""
    found = {key: getattr(trace, key) for key in COLUMNS}
    found["tracks"] = [[getattr(track, key) for key in track.__slots__] for track in trace.tracks]
    found["names"] = [(trace.text(i), trace.names[trace.cat[i]]) for i in range(len(trace))]
    found["flows"] = [(trace.names[flow.name] if type(flow.name) is int else flow.name, *flow[1:])
                      for flow in trace.flows]
    found["args"] = [trace.args(i) for i in range(len(trace))]
    found["rows"] = [trace.row(i) for i in range(0, len(trace), len(trace) // 50 + 1)]
    found["nesting"] = list(trace.parents), list(trace.warm_up)
    return found


class Whole(unittest.TestCase):
    def same(self, path):
        wanted, found = parts(npuprof.load(path)), parts(npuprof.load(exported(path)))
        for key in wanted:
            self.assertEqual(found[key], wanted[key], (path.name, key))

    def test_golden(self):
        for path in GOLDEN:
            self.same(path)

    def test_planted(self):
        for name in list(planted.CASES)[::10 if helpers.QUICK else 1]:
            planted.case(name).write(scratch() / "planted.json")
            self.same(scratch() / "planted.json")

    def test_images(self):
        """Of each target, damaged ones, too."""
        helpers.tool("npuprof-convert")
        for path in IMAGES[::20 if helpers.QUICK else 1]:
            (scratch() / "image.npuprof").write_bytes(lzma.open(path).read())
            self.same(scratch() / "image.npuprof")

    def test_values(self):
        """An argument keeps its type."""
        args = {"yes": True, "no": False, "nothing": None, "one": 1, "real": 1.0, "text": "1",
                "list": [1, {"a": 2}], "large": 2**70, "job": "mine", "stamp": 3, "unfinished": "unwound"}
        event = {"ph": "X", "name": "a", "pid": 1, "tid": "worker", "ts": 0.001, "dur": 2, "args": args}
        kinds = [{**event, "ts": n, "args": {**args, "kind": kind}}
                 for n, kind in enumerate(("record", "wait"), 5)]
        path = scratch() / "values.json"
        path.write_text(json.dumps({"traceEvents": [event, *kinds, {"ph": "P"}]}))
        self.same(path)
        self.assertIs(npuprof.load(exported(path)).args(0)["yes"], True)


class Large(unittest.TestCase):
    """Numbers are exact, or left out and counted."""

    def trace(self, *values):
        events = [{"ph": "C", "name": name, "pid": 1, "ts": n, "args": args} for n, value in enumerate(values)
                  for name, args in (("k", {"value": value}), ("pool", {"used": value, "allocated": value}))]
        path = scratch() / "large.json"
        path.write_text(json.dumps({"traceEvents": events, "metadata": {"npuprof": {
            "version": "1.0.0", "start_unix_ns": 5, "lost": {}, "recorded": 2 * len(values)}}}))
        return path

    def read(self, *values):
        trace = npuprof.load(exported(self.trace(*values)))
        return (next(series.values for series in trace.counters if series.name == "k"),
                [record.used for record in trace.memory], trace.left_out_text())

    def test_exact(self):
        values = [0, -5, 2**53 + 1, 2**63 - 1, -2**63]
        self.assertEqual(self.read(*values), (values, values, ""))
        database = sqlite3.connect(scratch() / "out.db")
        types = database.execute("SELECT typeof(value), typeof(int) FROM counters LIMIT 1").fetchone()
        self.assertEqual(types, ("real", "integer"))

    def test_left_out(self):
        """Of a counter only what would be rounded, and that is said."""
        found = self.read(1, 2**64 - 1, 2**64, 0.5)
        self.assertEqual(found[0], [1, 2.0**64, 0.5])
        self.assertEqual(found[1:], ([1], "5 values that 64 bits cannot hold"))
        for command in ("check", "report"):
            self.assertIn("5 values that 64 bits cannot hold",
                          helpers.npuprof_py(command, scratch() / "out.db").stdout)


class Refused(unittest.TestCase):
    def test_changed(self):
        planted.case("P11").write(scratch() / "planted.json")
        whole = exported(scratch() / "planted.json").read_bytes()
        for change in ("UPDATE spans SET track = 99 WHERE id = 3", "UPDATE spans SET name = -1 WHERE id = 3",
                       "UPDATE spans SET kind = 'x' WHERE id = 3",
                       "UPDATE spans SET dur_ns = -1 WHERE id = 3",
                       "UPDATE spans SET start_ns = 'now' WHERE id = 3", "UPDATE spans SET parent = 10000000",
                       "UPDATE spans SET unfinished = 7", "UPDATE flows SET to_track = 99",
                       "UPDATE meta SET value = '{' WHERE key = 'metadata'",
                       "DELETE FROM tracks WHERE id = 0",
                       "UPDATE tracks SET base = 99 WHERE id = 0", "DROP TABLE flows",
                       "DELETE FROM strings WHERE id = 5", "DELETE FROM meta",
                       "INSERT INTO memory VALUES(1, 'd', NULL, 5, 0, 't', 0)",
                       "INSERT INTO memory VALUES(1, 'd', 5, 'x', 0, 't', 0)",
                       "UPDATE spans SET start_ns = 4611686018427387904 WHERE id = 3"):
            path = scratch() / "changed.db"
            path.write_bytes(whole)
            database = sqlite3.connect(path, isolation_level=None)
            database.execute(change)
            database.close()
            for command in ("report", "check"):
                said = helpers.refused(command, path)
                self.assertRegex(said, "export it again|no database|146 years", change)
        path.write_bytes(whole[:3 * len(whole) // 4])
        helpers.refused("report", path)

    def test_other_commands(self):
        """Those that need the file's own text say what they take."""
        planted.case("P11").write(scratch() / "planted.json")
        path = exported(scratch() / "planted.json")
        for words in (("report", path, "--annotate", "a.json"),
                      ("merge", path, "-o", "m.json"), ("convert", path, "-o", "c.json")):
            self.assertRegex(helpers.refused(*words), "database")


if __name__ == "__main__":
    unittest.main()
