# test: - names in a stream: a host that comes late gets them with the next header, and a rename is dated
# SPDX-License-Identifier: MIT
import json

import helpers
from firmware import line
from firmware.target import Target

EVENTS = 3000


class Names(Target):
    SOURCE = "firmware_names.c"

    def check(self, trace):
        counters = [(e["name"], list(e["args"].values())[0]) for e in trace["traceEvents"] if e["ph"] == "C"]
        for name, i in counters:
            number = 5 + i % 20
            renamed = number == 7 and i >= EVENTS // 2
            self.assertEqual(name, "another" if renamed else f"name {number}", i)
        self.assertIn({"name": "the task"}, [e["args"] for e in trace["traceEvents"]
                                             if e["name"] == "thread_name"])
        self.assertEqual(trace["metadata"]["npuprof"]["user"]["board"], "no. 5")
        return len(counters)

    def test_whole(self):
        self.quiet(EVENTS)
        self.assertEqual(self.check(self.converted()), EVENTS)

    def test_late(self):
        """What was sent before the second header is lost, with the names: they come again."""
        self.quiet(EVENTS)
        data = (self.folder / "out.img").read_bytes()
        second = line.headers_in(data)[1][0]
        (self.folder / "late.img").write_bytes(data[second:])
        done = helpers.run([helpers.tool("npuprof-convert"), "late.img", "--elf", self.program],
                           cwd=self.folder, code=1)
        self.assertGreater(self.check(json.loads(done.stdout)), EVENTS // 2)
