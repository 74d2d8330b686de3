# test: - examples/runtimes/kineto on declarations of Kineto: each device span of the session once, within its
# error, and linked with the operator that submitted it
# SPDX-License-Identifier: MIT
import unittest

import helpers
from helpers import environment, run, scratch
from runtimes import hosts

RUNS = 300
MEMCPY, KERNEL = 1, 3                      # of the declared enumeration


class Kineto(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        program = hosts.built("kineto_host.cpp", "c++17", "kineto", "declared/kineto")
        truth = scratch() / "kineto.truth"
        done = run([program, RUNS, truth], code=0, said="", env=environment())
        cls.session, *cls.activities, last = map(helpers.strict_json, done.stdout.splitlines())
        cls.truth = {}
        for line in truth.read_text().splitlines():
            job, _, start, end, name = line.split(None, 4)
            cls.truth[int(job)] = (int(start) + last["ahead"], int(end) + last["ahead"], name)

    @helpers.thorough
    def test_each_span_of_the_session_once(self):
        wanted = sorted((job, own[2]) for job, own in self.truth.items()
                        if own[2] not in ("before the session", "after the end"))
        self.assertEqual(len(wanted), 2 * RUNS + 4)
        self.assertEqual(sorted((a["args"]["job"], a["name"]) for a in self.activities), wanted)
        self.assertEqual(self.session, {"device": [0, "drifting", "NPU 0"], "resources": 2, "errors": 0,
                                        "lost": 0, "seen": len(wanted), "status": 1})

    def test_within_their_error(self):
        for a in self.activities:
            start, end, _ = self.truth[a["args"]["job"]]
            # 2000: how far apart this test's own two reads of the clocks may be
            error = a["args"]["error_ns"] + 2000
            self.assertLessEqual(max(abs(a["start"] - start), abs(a["end"] - end)), error)
        errors = sorted(a["args"]["error_ns"] for a in self.activities)
        print(f"note error_ns: median {errors[len(errors) // 2]}")
        self.assertLess(errors[len(errors) // 2], 50000)

    def test_linked_with_the_innermost_operator(self):
        """Ids of 64 bits, of which Kineto keeps 32."""
        found = set()
        for a in self.activities:
            # The system's number of a row's thread is not known once the row had two.
            if a["name"] in ("of no operator", "first of a row", "second of a row"):
                self.assertEqual((a["id"], a["flow"], a["linked"]), (0, [0, 0, 0], -1))
                continue
            found.add(a["id"])
            if a["name"] != "Load":
                self.assertEqual(a["id"], 2 * int(a["name"].split()[1]) + 1)
            self.assertEqual((a["flow"], a["linked"]), ([a["id"], 2, 0], a["id"]))
        self.assertEqual(found, {2 * i + 1 for i in range(2 * RUNS)})

    def test_what_kineto_calls_them(self):
        for a in self.activities:
            self.assertEqual((a["type"], a["device"], a["span"]),
                             (MEMCPY if a["name"] in ("Load", "of no operator") else KERNEL, 0, "npuprof"))
            self.assertEqual(a["resource"], a["args"]["job"] % 2)


if __name__ == "__main__":
    unittest.main()
