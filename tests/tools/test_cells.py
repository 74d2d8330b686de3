# texts that a spreadsheet or a viewer would take for something else: formulas in a CSV, DEL in JSON
# SPDX-License-Identifier: MIT
import csv
import json
import unittest

import helpers
from helpers import events, load, run, scratch
import npuprof

FORMULAS = ["=1+1", "+1", "-2", "@x", "\tt", "\rr", "'=1", "''-1", "'", "''", "'plain", "-", "a=1",
            '="x","y"', "=\x7f"]
PROGRAM = '''#include "npuprof.h"
int main(void)
{
    static const char *const names[] = { NAMES };
    const npuprof_device pool = { "=pool", 0, 0, false };
    npuprof_start(1);
    npuprof_metadata("k\\x7f", "v\\x7f");
    for (unsigned i = 0; i < sizeof names / sizeof *names; i++) {
        WITH_BASE_PROFILER(NULL, names[i], names[i], PROF_NO_ARGS,
                           { PROF_MEMORY(&pool, 1, 2, names[i]); });
    }
    return npuprof_dump("t.json") || npuprof_dump("c.csv");
}
'''


class Cells(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        quoted = ", ".join('"' + "".join(f"\\{ord(c):03o}" for c in name) + '"' for name in FORMULAS)
        source = scratch() / "cells.c"
        source.write_text(PROGRAM.replace("NAMES", quoted))
        done = run([helpers.build(source, "cells")], env=helpers.environment())
        if done.returncode:
            raise AssertionError(done.stderr)

    def tool(self, *words):
        done = helpers.npuprof_py(*words)
        return done

    def test_no_cell_is_a_formula_and_all_come_back(self):
        """By both writers of the CSV; the tables of a report."""
        self.tool("convert", "t.json", "-o", "p.csv")
        for name in ("c.csv", "p.csv"):
            with self.subTest(name=name), open(scratch() / name, encoding="utf-8", newline="") as file:
                rows = list(csv.reader(file))
                for row in rows[1:]:
                    for text in (row[5], row[6], row[13]):
                        self.assertNotRegex(text, r"^[=+\-@\t\r]")
                    for number in (*row[3:5], *row[7:13]):
                        self.assertRegex(number, r"^(-?\d+)?$")
                trace = npuprof.load(scratch() / name)
                self.assertEqual([(row["name"], row["cat"]) for row in trace.rows()],
                                 [(name, name) for name in FORMULAS])
                self.assertEqual(trace.memory_peaks[0][1].split()[0], "=pool")
        self.tool("report", "t.json", "--csv-dir", "tables")
        for path in (scratch() / "tables").glob("*.csv"):
            with self.subTest(path=path.name), open(path, encoding="utf-8", newline="") as file:
                for row in csv.reader(file):
                    for text in row:
                        self.assertRegex(text, r"^([^=+\-@\t\r]|-?[\d.]+$|$)")

    def test_no_raw_delete(self):
        """Perfetto refuses a file with one in the metadata; `check` says so."""
        self.tool("merge", "t.json", "--label", "a\x7fb", "-o", "m.json")
        for name in ("t.json", "m.json"):
            self.assertNotIn(b"\x7f", (scratch() / name).read_bytes())
            self.tool("check", name)
        self.assertEqual([e["name"] for e in events(load(scratch() / "t.json"), "X")], FORMULAS)
        about = load(scratch() / "m.json")["metadata"]["npuprof"]
        self.assertEqual((about["processes"][0]["user"], about["processes"][0]["label"]),
                         ({"k\x7f": "v\x7f"}, "a\x7fb"))
        raw = json.dumps(load(scratch() / "t.json"), ensure_ascii=False)
        (scratch() / "raw.json").write_text(raw.replace("\\u007f", "\x7f"), encoding="utf-8")
        done = helpers.npuprof_py("check", scratch() / "raw.json", code=1)
        self.assertIn("control: a raw DEL (0x7f)", done.stdout)
