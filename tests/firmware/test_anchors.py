# test: time=120 - the clock of a firmware against its host's, by anchors through shared memory: no stamp is
# outside the bound that the trace states, and the bound is not much wider than it must be
# SPDX-License-Identifier: MIT
import itertools
import json

import helpers
from firmware.target import Target, build

BOOT_NS = 5 * 10**12
HOURS = 4 * 3600
LAW = 2e-6                       # of a second, and by so much more in each


class Anchors(Target):
    SOURCE = None

    @classmethod
    def setUpClass(cls):
        cls.programs = {policy: build("firmware_anchors.c", f"-DNPUPROF_WHEN_FULL=NPUPROF_{policy}",
                                      "-Wl,--no-as-needed", "-lm", name=f"anchors_{policy}")
                        for policy in ("KEEP_OLDEST", "KEEP_NEWEST", "STREAM")}

    def stated(self, policy, *arguments):
        """Checks each span against the truth. Returns the bound that the trace states, and half the widest
        exchange, in ns."""
        helpers.run([self.programs[policy], *arguments], cwd=self.folder, code=0)
        trace = self.converted("out.img" if policy == "STREAM" else "ram.bin", self.programs[policy])
        about = trace["metadata"]["npuprof"]
        bound = about["clock"]["error_ns"] + about["clock"]["drift_ns"]
        truth = {int(n): (int(begin), int(end)) for n, begin, end in
                 map(str.split, (self.folder / "out.truth").read_text().splitlines())}
        spans = [e for e in trace["traceEvents"] if e.get("name") == "work"]
        self.assertEqual(len(spans), len(truth))
        for span in spans:
            begin = round(span["ts"] * 1000) + about["start_boottime_ns"]
            for found, true in zip((begin, begin + round(span["dur"] * 1000)), truth[span["args"]["n"]]):
                self.assertLessEqual(abs(found - true), bound, (policy, arguments, span))
        halves = [int(line) for line in (self.folder / "out.halves").read_text().splitlines()]
        self.assertEqual(len(halves), int(arguments[2]))
        return bound, max(halves)

    def test_constant_rate(self):
        """A rate that is said to be constant: the bound is at most three times the widest exchange."""
        for policy, ppm, seconds, anchors in itertools.product(self.programs, (-200, 80, 200), (60, HOURS),
                                                               (2, 3, 21)):
            with self.subTest(policy=policy, ppm=ppm, seconds=seconds, anchors=anchors):
                bound, half = self.stated(policy, ppm, seconds, anchors, 0, 0, anchors)
                self.assertLessEqual(bound, 3 * half)

    def test_by_the_law(self):
        """Nothing is said of the rate, which wanders as it may: what it may do between two anchors counts."""
        for policy, ppm, anchors in itertools.product(self.programs, (-200, 200), (2, 5, 21)):
            with self.subTest(policy=policy, ppm=ppm, anchors=anchors):
                bound, half = self.stated(policy, ppm, 60, anchors, "-", 50, anchors)
                kept = anchors if policy != "KEEP_NEWEST" else min(anchors, 8)
                apart, past = 60 / (kept - 1), 60 * 10 / 300
                moves = max(2 * LAW * apart * apart / 4, 2 * LAW * (apart + past) * past) * 1e9
                self.assertLessEqual(bound, 3 * (half + moves))

    def test_said_limit(self):
        """A rate that stays within 5 ppm of one rate for hours."""
        for policy, anchors in itertools.product(self.programs, (2, 21)):
            with self.subTest(policy=policy, anchors=anchors):
                self.stated(policy, 150, HOURS, anchors, 5000, 5, anchors)

    def test_contradicted(self):
        """Anchors that contradict what is said of the rate are evidence, which the trace states."""
        helpers.run([self.programs["KEEP_OLDEST"], 0, 2000, 21, 0, 50, 1], cwd=self.folder, code=0)
        convert = [helpers.tool("npuprof-convert"), "ram.bin", "--elf", self.programs["KEEP_OLDEST"]]
        done = helpers.run(convert, cwd=self.folder, code=0)
        trace = json.loads(done.stdout)
        self.assertIn("anchors contradict a rate that is steady",
                      trace["metadata"]["npuprof"]["unused_environment"]["NPUPROF_NOW"])

    def test_merge(self):
        """merge says the bound; of one anchor, that it knows none."""
        for anchors, said in ((1, "of a user clock's rate, is not known"), (5, "error at most ")):
            helpers.run([self.programs["KEEP_NEWEST"], 80, 8, anchors, 0, 0, 1], cwd=self.folder, code=0)
            trace = self.converted("ram.bin", self.programs["KEEP_NEWEST"])
            for name in ("a", "b"):
                (self.folder / f"{name}.json").write_text(json.dumps(trace))
            done = helpers.npuprof_py("merge", "a.json", "b.json", "-o", "ab.json", cwd=self.folder)
            self.assertIn(said, done.stdout)
