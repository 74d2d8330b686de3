# test: time=40 - a trace and the kernel's text in one step: report, check, export, view
# SPDX-License-Identifier: MIT
import json
import sqlite3
import unittest
from unittest import mock

import helpers
from helpers import scratch
from npuprof import cli
from test_kernel_drivers import text
from test_kernel_waits import SENTENCE, WAIT, marked

SPANS = ("submit", 998, 1015), ("wait", 1016, 4200), ("work", 4200, 4900)
BESIDE = "t.json", "--ftrace", "w.txt"


class Beside(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        (scratch() / "w.txt").write_text(text(*WAIT))
        marked(SPANS)
        helpers.npuprof_py("merge", *BESIDE, "-o", "both.json")
        helpers.npuprof_py("merge", "--ftrace", "w.txt", "-o", "alone.json")

    def same(self, words, merged):
        """A command says of both what it says of the merged trace."""
        for command in (("report", "--table", "all"), ("report", "--verdict", "json"), ("check",)):
            one = helpers.npuprof_py(*command, *words)
            other = helpers.npuprof_py(*command, merged)
            name = words[0] if words[0].endswith("json") else "w.txt"
            self.assertEqual(one.stdout.replace(name, merged), other.stdout)
            self.assertIn("w.txt: 20 events of 2 CPUs, by mono; error at most", one.stderr)
            self.assertEqual(other.stderr, "")

    def test_as_merged(self):
        self.same(BESIDE, "both.json")

    def test_alone(self):
        """No program has a mark."""
        self.same(BESIDE[1:], "alone.json")

    def test_database(self):
        helpers.npuprof_py("export", *BESIDE, "--sqlite", "one.db")
        helpers.npuprof_py("export", "both.json", "--sqlite", "two.db")
        dumps = ["\n".join(sqlite3.connect(scratch() / name).iterdump()) for name in ("one.db", "two.db")]
        self.assertIn("Execution", dumps[0])
        self.assertEqual(*dumps)

    def test_page_and_copy(self):
        helpers.npuprof_py("report", *BESIDE, "--html", "p.html", "--annotate", "a.json")
        self.assertIn(SENTENCE, (scratch() / "p.html").read_text())
        names = {event["name"] for event in helpers.load(scratch() / "a.json")["traceEvents"]}
        self.assertLessEqual({"Execution", "work"}, names)
        self.assertIn("ok", helpers.npuprof_py("check", "a.json").stdout)

    def test_view(self):
        """What is served is the merged trace."""
        def serve(file, name, _):
            file.seek(0)
            self.served = name, json.load(file)
        with mock.patch("npuprof.view.serve", serve):
            self.assertEqual(cli.main(["view", str(scratch() / "t.json"), "--ftrace",
                                       str(scratch() / "w.txt")]), 0)
        self.assertEqual(self.served, ("t.json", helpers.load(scratch() / "both.json")))

    def test_damaged_image(self):
        """Damage of the image stays damage: the exit code of check says it."""
        helpers.tool("npuprof-convert")
        source = scratch() / "one.c"
        source.write_text('#include "npuprof.h"\n'
                          'int main(void) { npuprof_start(1); { PROF_SCOPE("a"); }\n'
                          'return (int)npuprof_dump("one.npuprof"); }\n')
        program = helpers.build(source, "one")
        self.assertEqual(helpers.run([program], env=helpers.environment(), cwd=scratch()).returncode, 0)
        image = (scratch() / "one.npuprof").read_bytes()
        (scratch() / "cut.npuprof").write_bytes(image[:-16])
        (scratch() / "switches.txt").write_text(text(WAIT[3]))
        done = helpers.npuprof_py("check", "cut.npuprof", "--ftrace", "switches.txt", code=1)
        self.assertIn("1 fault", done.stdout)
        helpers.npuprof_py("export", "cut.npuprof", "--ftrace", "switches.txt", "--sqlite", "c.db", code=1)

    def test_refusals(self):
        for words, said in ((["report"], "report TRACE, or --ftrace FILE: no trace is given"),
                            (["check"], "check TRACE, or --ftrace FILE: no trace is given"),
                            (["export", "--sqlite", "x.db"],
                             "export TRACE, or --ftrace FILE: no trace is given"),
                            (["view"], "view TRACE, or --ftrace FILE: no trace is given"),
                            (["report", "t.json", *BESIDE], "--ftrace: with one trace at a time"),
                            (["check", "t.json", "--ftrace-clock", "mono"], "give it with --ftrace"),
                            (["report", "t.json", "t.json", "--ftrace-clock", "boot"], "with --ftrace"),
                            (["report", "t.json", "--ftrace-devices", "x.toml"], "give it with --ftrace"),
                            (["report", *BESIDE, "--json", "w.txt"], "is the input w.txt"),
                            (["report", "--ftrace", "t.json"], "t.json:1: no line of ftrace")):
            self.assertIn(said, helpers.npuprof_py(*words, code=2).stderr)


if __name__ == "__main__":
    unittest.main()
