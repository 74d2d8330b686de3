# test: time=120 - the verdict on odd traces: of no length, of long programs, with clocks that stand still
# SPDX-License-Identifier: MIT
import sys
import time
import unittest

import helpers

TOOL = helpers.ROOT / "tools" / "npuprof.py"
sys.path[:0] = [str(helpers.ROOT / "tools"), str(helpers.TESTS / "tools")]
import npuprof  # noqa: E402
import small_traces  # noqa: E402
from npuprof.analysis import verdict  # noqa: E402
from npuprof.analysis.facts import Facts  # noqa: E402


def odd(spans=(), jobs=(), **more):
    """The path of a trace of these spans and jobs, as small_traces.Small has them."""
    small = small_traces.Small(0)
    small.spans, small.jobs, small.flows = list(spans), list(jobs), []
    for key, value in more.items():
        setattr(small, key, value)
    return small.write(helpers.scratch() / "odd.json")


def report(path, *arguments):
    return helpers.run([sys.executable, TOOL, "report", path, *arguments])


def facts_of(path):
    return Facts(npuprof.load(path))


class Odd(unittest.TestCase):
    def test_no_length(self):
        """Inferences and jobs that take no time have no rate, and no finding divides by them."""
        spans = [(1, "Inference", 5, 5, {"kind": "inference"}), (1, "Submit", 5, 5, {})]
        path = odd(spans * 20, [(0, 5, 5, 0, 5, 1, [("conv", 5, 5, 0)])] * 20)
        run = report(path, "--verdict")
        self.assertEqual((run.returncode, run.stderr), (0, ""))
        self.assertNotIn("/s", run.stdout.split("\n")[1])

    def test_long_program(self):
        """A job of 4000 operators: the time grows with their number, not with its square."""
        steps = [("abc"[n % 3], 100 + 200 * n, 250 + 200 * n, n) for n in range(4000)]
        end = steps[-1][2] + 10
        path = odd([(1, "Submit", 0, 50, {}), (1, "Wait", 60, end + 20, {})], [(0, 90, end, 0, 0, 1, steps)])
        since = time.process_time()
        found = verdict.judge(facts_of(path))
        self.assertLess(time.process_time() - since, 4)
        self.assertEqual(len(found.facts.engines.operators), 3)


if __name__ == "__main__":
    unittest.main()
