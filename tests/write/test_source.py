# file and line of each call site, in every output; left out with NPUPROF_NO_SOURCE; images without them
# SPDX-License-Identifier: MIT
import csv
import os
import sqlite3
import unittest

import helpers
import pftrace
from helpers import ROOT, run, scratch

TOOL = ROOT / "tools" / "npuprof.py"
FILE = helpers.PROGRAMS / "source.c"


def here():
    """name -> its lines, by what the program's text says."""
    found = {}
    for number, line in enumerate(FILE.read_text(encoding="utf-8").splitlines(), 1):
        if line.endswith("/* here */"):
            words = line.split('"')[1::2]
            names = [w for w in words if w not in ("c", "n", "with")]
            names += ["function"] if "FUNCTION" in line else ["made", "nade"] if not names else []
            for name in names:
                found.setdefault(name, []).append(number)
    return found


class Source(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.program, cls.lines = helpers.build("source.c", "source"), here()
        names = [f"source.{ending}" for ending in ("json", "csv", "npuprof")]
        assert run([cls.program, *names], env=helpers.environment()).returncode == 0

    def converted(self, name, source="source.npuprof"):
        run([helpers.tool("npuprof-convert"), source, "-o", name], code=0, said="")
        return scratch() / name

    def same(self, found):
        """found: (name, place) of spans."""
        wanted = {name: {f"{FILE}:{line}" for line in lines} for name, lines in self.lines.items()}
        wanted.pop("now", None)
        places = {}
        for name, place in found:
            places.setdefault(name, set()).add(place)
        self.assertEqual(places, wanted)

    def test_json(self):
        for name in ("source.json", self.converted("again.json")):
            sites = helpers.load(scratch() / name)["metadata"]["npuprof"]["sites"]
            self.same([(s["name"], f"{s['file']}:{s['line']}") for s in sites if s["name"] != "now"])
            self.assertEqual([s["line"] for s in sites if s["name"] == "now"], self.lines["now"])

    def test_csv(self):
        for name in ("source.csv", self.converted("again.csv")):
            with open(scratch() / name, encoding="utf-8") as file:
                rows = list(csv.DictReader(file))
            self.same([(row["name"], row["source"]) for row in rows if row["name"] != "finished"])
            self.assertEqual([row["source"] for row in rows if row["name"] == "finished"], [""])

    def test_pftrace(self):
        found = pftrace.read(self.converted("source.pftrace").read_bytes())
        self.assertEqual(found.errors, [])
        self.same([(s.name, s.source) for s in found.slices if s.name != "finished"])
        self.assertEqual([s.args for s in found.slices if s.name == "args"], [{"n": 1}])

    def test_pftrace_of_json(self):
        """A name that is recorded in several places has none: the JSON has the places of a name."""
        helpers.npuprof_py("convert", "source.json", "-o", "of_json.pftrace", said="")
        found = pftrace.read((scratch() / "of_json.pftrace").read_bytes())
        for s in found.slices:
            lines = self.lines.get(s.name, ())
            self.assertIn(s.source, [f"{FILE}:{line}" for line in lines] + [""] * (len(lines) != 1))
        self.assertGreater(sum(bool(s.source) for s in found.slices), 10)

    def test_sqlite(self):
        path = scratch() / "source.db"
        path.unlink(missing_ok=True)
        helpers.npuprof_py("export", "source.json", "--sqlite", path, said="")
        with sqlite3.connect(path) as base:
            spans = base.execute("SELECT name_text, source FROM span WHERE source IS NOT NULL").fetchall()
        self.same([(name, place) for name, places in spans for place in places.split(", ")])

    def test_merged(self):
        """Each process keeps its own."""
        self.converted("again.json")
        helpers.npuprof_py("merge", "source.json", "again.json", "-o", "both.json")
        parts = helpers.load(scratch() / "both.json")["metadata"]["npuprof"]["processes"]
        for part in parts:
            self.same([(s["name"], f"{s['file']}:{s['line']}") for s in part["sites"] if s["name"] != "now"])

    def test_left_out(self):
        program = helpers.build("source.c", "no_source", "-DNPUPROF_NO_SOURCE")
        self.assertNotIn(os.fsencode(FILE), program.read_bytes())
        run([program, "none.json", "none.csv", "none.npuprof"], code=0, env=helpers.environment())
        self.assertNotIn("sites", helpers.load(scratch() / "none.json")["metadata"]["npuprof"])
        rows = (scratch() / "none.csv").read_text(encoding="utf-8").splitlines()[1:]
        self.assertTrue(all(row.endswith(",") for row in rows))
        found = pftrace.read(self.converted("none.pftrace", "none.npuprof").read_bytes())
        self.assertEqual({s.source for s in found.slices}, {""})

    @helpers.uncounted
    def test_cpp(self):
        """PROF_FUNCTION: class and parameters."""
        helpers.need(helpers.CXX[0])
        path = scratch() / "method.cpp"
        path.write_text('#include "npuprof.h"\n'
                        "namespace driver { struct Queue { template <class T> int submit(T n) {\n"
                        "    PROF_FUNCTION(); return n > 0; } }; }\n"
                        "int main(int, char **argv) { npuprof_start(1); driver::Queue q;\n"
                        "    if (!q.submit(7)) return 1;\n"
                        "    return npuprof_dump(argv[1]) != NPUPROF_OK; }\n")
        program = helpers.build(path, "method", *helpers.WARNINGS)
        self.assertEqual(run([program, "m.json"], env=helpers.environment()).returncode, 0)
        (span,) = helpers.events(helpers.load(scratch() / "m.json"), "X")
        self.assertRegex(span["name"], r"driver::Queue::submit\(T\) \[(with )?T = int")
