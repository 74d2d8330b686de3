# test: time=150 soak=900 - many spans: what a report and a diff cost in CPU and memory
# SPDX-License-Identifier: MIT
import os
import random
import subprocess
import sys
import unittest
import unittest.mock

import helpers
import npuprof
from npuprof import diff, loops
from npuprof.analysis import catalogue
from npuprof.analysis.facts import Facts
from npuprof.analysis.verdict import as_json, judge
from npuprof.read.trace import ASKED

SOAK = os.environ.get("NPUPROF_TEST_SOAK") == "1"
SPANS = 1_000_000 if SOAK else 100_000
# Seconds of CPU: twice what they are on two busy processors; and MB.
REPORT, WHAT_IF, DIFF, MB = (30, 20, 50, 300) if SOAK else (5, 4, 7, 110)


def recorded(kind):
    """A trace of that many spans."""
    program = helpers.build("many_spans.c", f"many_spans_{SPANS}",
                            f"-DNPUPROF_ARENA_BYTES={max(64 << 20, 96 * SPANS)}u")
    path = helpers.scratch() / f"{kind}.json"
    if not path.exists():
        helpers.run([program, kind, SPANS, path], code=0, env=helpers.environment())
    return path


def cost(*words):
    """(seconds of CPU, MB at most) of a command."""
    with open(helpers.scratch() / "said", "wb") as said:
        process = subprocess.Popen([sys.executable, helpers.NPUPROF_PY, *words], stdout=said)
        _, status, usage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    assert process.returncode == 0, words
    return usage.ru_utime + usage.ru_stime, usage.ru_maxrss / 1024


def answers(path):
    """All tables and the verdict of a trace, and what the loops give beside."""
    trace = npuprof.load(path)
    facts = Facts(trace)
    samples = {key: list(column) for key, column in diff.samples(trace).items()}
    return (as_json(judge(facts)), list(catalogue.tables(facts)), samples, trace._mentioned,
            trace.values_of("execution_index"), list(trace.host_rows))


class Twins(unittest.TestCase):
    """The loops in C and in Python give the same."""

    @helpers.thorough
    def test_same(self):
        helpers.tool("libnpuprof-columns.so")
        self.assertTrue(loops.native.library())
        program = helpers.build("many_spans.c", "many_spans", "-DNPUPROF_ARENA_BYTES=4000000u")
        for kind in ("device", "network", "host"):
            path = helpers.scratch() / f"few_{kind}.json"
            helpers.run([program, kind, 2000, path], code=0, env=helpers.environment())
            head, rest = path.read_text().split("\n", 1)
            lines, tail = rest.split("\n]", 1)
            shuffled = random.Random(1).sample(lines.split(",\n"), lines.count(",\n") + 1)
            found = []
            for text in (lines, ",\n".join(shuffled)):
                path.write_text(f"{head}\n{text}\n]{tail}")
                found.append(answers(path))
                with unittest.mock.patch.object(loops.native, "library", lambda: None):
                    found.append(answers(path))
            for other in found[1:]:
                for one, two in zip(found[0], other):
                    self.assertEqual(one, two, kind)


    def test_asked(self):
        """Both note each argument that an analysis may ask for, and no other one can be asked for."""
        helpers.tool("libnpuprof-columns.so")
        program = helpers.build("many_spans.c", "many_spans", "-DNPUPROF_ARENA_BYTES=4000000u")
        path = helpers.scratch() / "asked.json"
        helpers.run([program, "device", 2000, path], code=0, env=helpers.environment())
        text = path.read_text()
        for key, value in ASKED:
            told = f'"{key}":"{value}"' if value else f'"{key}":7'
            first = text.index('"args":{', text.index('"ph":"X"')) + len('"args":{')
            for own, there in ((text, False), (f"{text[:first]}{told},{text[first:]}", True)):
                path.write_text(own)
                for library in (loops.native.library, lambda: None):
                    with unittest.mock.patch.object(loops.native, "library", library):
                        trace = npuprof.load(path)
                    self.assertEqual(trace.mentions(key, value), there or told in text, (key, library))
        with self.assertRaises(KeyError):
            trace.mentions("nobody asks for this")


class Cost(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        helpers.tool("libnpuprof-columns.so")

    def check(self, limit, *words):
        seconds, megabytes = helpers.measured((limit, MB), lambda: cost(*words))
        print(f"note {' '.join(map(str, words))}: {seconds:.1f} s of CPU, {megabytes:.0f} MB")
        self.assertLess(seconds, limit, words)
        self.assertLess(megabytes, MB, words)

    @helpers.thorough
    def test_jobs_of_many_instructions(self):
        path = recorded("network")
        self.check(REPORT, "report", path)
        self.check(WHAT_IF, "report", path, "--what-if", "load=0.5")
        self.check(DIFF, "diff", path, path)

    @helpers.thorough
    def test_many_jobs(self):
        path = recorded("device")
        self.check(REPORT, "report", path)
        self.check(DIFF, "diff", path, path)


if __name__ == "__main__":
    unittest.main()
