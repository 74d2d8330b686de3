# PROF_RESULT: arguments of open spans, over chunk changes, in every policy, killed, from C and C++; in JSON
# and .pftrace
# SPDX-License-Identifier: MIT
import signal
import unittest

import helpers
import pftrace
from helpers import events, run, scratch

OLDEST, NEWEST, STREAM = 0, 1, 2
ROUNDS = 4000


def expected(n):
    args = {"n": n, "twice": -1}
    return args if n % 3 else {"n": n, "twice": 2 * n, "text": chr(ord("a") + n % 26) * (n % 40)}


class Results(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.program = helpers.build("results.c", "results")

    def recorded(self, policy, *arena, program=None, how=0):
        """The spans of a run, and what was lost; from an image, which must make the same .pftrace."""
        image = arena[0] if arena else scratch() / f"results{policy}.npuprof"
        run([program or self.program, policy, image, *arena], code=how, said="", env=helpers.environment())
        out = scratch() / "results.json"
        for path in (out, scratch() / "results.pftrace"):
            run([helpers.tool("npuprof-convert"), image, "-o", path], code=0, said="")
        trace = helpers.load(out)
        spans = events(trace, "X")
        found = pftrace.read((scratch() / "results.pftrace").read_bytes())
        self.assertEqual([e.get("args", {}) for e in sorted(spans, key=lambda e: (e["ts"], -e["dur"]))],
                         [s.args for s in sorted(found.slices, key=lambda s: (s.start, -s.dur))])
        return spans, trace["metadata"]["npuprof"]["lost"]

    def check_inner(self, spans, overwritten=False):
        """overwritten: the oldest span may have had its first arguments in a chunk that is gone."""
        inner = [e for e in spans if e["name"] == "inner"]
        if overwritten and "n" not in inner[0].get("args", {}):
            del inner[0]
        self.assertEqual([e["args"] for e in inner], [expected(e["args"]["n"]) for e in inner])
        self.assertTrue(all("args" not in e for e in spans if e["name"] == "plain"))
        return len(inner)

    def check_all(self, spans):
        self.assertEqual(self.check_inner(spans), ROUNDS)
        (outer,) = [e for e in spans if e["name"] == "outer"]
        (by_hand,) = [e for e in spans if e["name"] == "by hand"]
        self.assertEqual(outer["args"], {"rounds": ROUNDS})
        self.assertEqual(by_hand["args"], {"hundreds": 39, "fifties": 39, "end": True})

    def test_stream(self):
        spans, lost = self.recorded(STREAM)
        self.check_all(spans)
        self.assertFalse(any(lost.values()), lost)

    def test_between_plain_spans(self):
        """Where most spans are plain, too, each has its results."""
        out = scratch() / "between.json"
        run([helpers.build("results_between.c", "results_between"), out], code=0, said="")
        spans = [e["args"] for e in events(helpers.load(out), "X") if e["name"] == "with"]
        self.assertEqual(spans, [{"n": n, "twice": 2 * n, "text": 'a "quote"' if n % 2 else "plain"}
                                 for n in range(5)])

    def test_cpp(self):
        program = scratch() / "results_cpp"
        helpers.need(helpers.CXX[0])
        run([*helpers.CXX, "-std=c++11", "-O0", "-x", "c++", *helpers.WARNINGS, f"-I{helpers.ROOT}",
             helpers.PROGRAMS / "results.c", "-o", program, "-pthread"], code=0)
        self.check_all(self.recorded(STREAM, program=program)[0])

    def test_keep_oldest(self):
        """The arena is full early: each argument that does not fit is counted."""
        spans, lost = self.recorded(OLDEST)
        inner = [e.get("args", {}) for e in spans if e["name"] == "inner"]
        (by_hand,) = [e["args"] for e in spans if e["name"] == "by hand"]
        self.assertTrue(500 < len(inner) < ROUNDS)
        with_text = [a for a in inner if "text" in a]
        self.assertEqual(with_text, [expected(a["n"]) for a in with_text])
        offered = 2 * len(inner) + 2 * len(range(0, ROUNDS, 3)) + ROUNDS // 50 + 2
        kept = sum(2 * ("n" in a) + 2 * ("text" in a) for a in inner)
        kept += by_hand["hundreds"] + 1 + by_hand["fifties"] + 1 + len(set(by_hand) - {"hundreds", "fifties"})
        self.assertEqual(lost["arguments"], offered - kept)

    def test_keep_newest(self):
        """The results of a span that is open all the time are there, or counted."""
        self.assertGreater(self.check_inner(self.recorded(NEWEST)[0], overwritten=True), 100)
        program = helpers.build("results.c", "results_one", "-DTEST_ONE_SPAN")
        spans, lost = self.recorded(NEWEST, program=program)
        oldest = ROUNDS - sum(e["name"] == "inner" for e in spans)
        (by_hand,) = [e for e in spans if e["name"] == "by hand"]
        self.assertEqual(by_hand["args"], {"hundreds": 39, "fifties": 39, "end": True})
        self.assertGreater(oldest, 1000)
        self.assertAlmostEqual(lost["arguments"], oldest / 50, delta=1)

    def test_killed(self):
        arena = scratch() / "results.arena"
        arena.unlink(missing_ok=True)
        spans, _ = self.recorded(NEWEST, arena, how=-signal.SIGKILL)
        self.assertGreater(self.check_inner(spans, overwritten=True), 100)
        (by_hand,) = [e for e in spans if e["name"] == "by hand"]
        self.assertEqual(by_hand["args"], {"unfinished": True, "hundreds": 39, "fifties": 39, "end": True})
