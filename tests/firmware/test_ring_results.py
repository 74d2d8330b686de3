# test: thorough - PROF_RESULT in a ring and in a stream: each span has its own, wherever the ring was cut
# SPDX-License-Identifier: MIT
import json

import helpers
from firmware import target


class Results(target.Target):
    def check_all(self, counts, least=None, *flags):
        """Spans of so many, with the long one ended or not; least: so many at least are there, else all."""
        self.program = target.build("firmware_results.c", *flags)
        for count in counts:
            for ends in (0, 1):
                with self.subTest(count=count, ends=ends):
                    self.quiet(count, ends)
                    self.check(self.converted(), count, ends, least or count)
                    if not flags:
                        own = json.loads((self.folder / "out.json").read_text())
                        self.check(own, count, ends, least)

    def check(self, trace, count, ends, least):
        spans = [e for e in trace["traceEvents"] if e["ph"] == "X"]
        short = {round(e["ts"]) // 10: e for e in spans if e["name"] == "short"}
        self.assertEqual(sorted(short), list(range(count - len(short) + 1, count + 1)))
        self.assertGreaterEqual(len(short), min(count, least))
        for i, e in short.items():
            self.assertEqual(e["args"], {"n": i, "text": "more than one cell has"})
        long, = [e for e in spans if e["name"] == "long"]
        wanted = {"last": count, "third": count // 3 * 3} if count > 2 else {"last": count}
        self.assertEqual(long["args"], wanted if ends else {**wanted, "unfinished": True})

    def test_ring(self):
        """As the host and the target itself show it."""
        self.check_all([1, *range(6, 17), 60000], 3)      # the laps are counted modulo 2^13

    def test_stream(self):
        self.check_all((1, 2, 3, 50, 2000), None, "-DSTREAM")

    def test_numbers_begin_again(self):
        """After 2^32 cells, which are no multiple of the ring's 59."""
        self.program = target.build("firmware_results.c", "-DSTREAM", "-DNEXT=0xFFFFFF00u")
        self.quiet(2000, 1)
        done = helpers.run([helpers.tool("npuprof-convert"), self.folder / "out.img", "--elf", self.program])
        self.check(json.loads(done.stdout), 2000, 1, 2000)
