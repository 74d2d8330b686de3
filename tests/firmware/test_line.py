# test: - what a stream says at its end, and of records whose cells are not in the order of time
# SPDX-License-Identifier: MIT
import json

import helpers
from firmware import line

SITE = 0x8000100


class Line(helpers.Folder):
    def convert(self, target, code, *words):
        """The trace of what a target sent, and what the converter says."""
        (self.folder / "line.bin").write_bytes(bytes(target.bytes))
        done = helpers.run([helpers.tool("npuprof-convert"), *words, "line.bin", "-o", "line.json"],
                           cwd=self.folder, code=code)
        return json.loads((self.folder / "line.json").read_text()), done.stderr

    def spans(self, trace):
        return [e for e in trace["traceEvents"] if e["ph"] == "X"]

    def test_cut_record(self):
        """A stream that ends inside a record is damaged: the record is there, without what did not come. One
        that goes on is not."""
        for cells in (1, 2):
            target = line.Target()
            for _ in range(16 - cells):
                target.span(SITE, 5)
            target.event(SITE, 7)
            target.part()
            with self.subTest(cells=cells):
                trace, said = self.convert(target, 1)
                self.assertIn("a record that is cut off", said)
                self.assertEqual(len(self.spans(trace)), 16 - cells + 1)
                trace, said = self.convert(target, 0, "--seconds", "0", "--follow")
                self.assertEqual(len(self.spans(trace)), 16 - cells + 1)

    def test_order(self):
        """Interrupts that nest on one track leave records out of order, and are no clock that went back; what
        they cannot have left so is one."""
        for starts, is_back in (([10, 20, 60, 50, 30, 40, 70], False), ([10, 60, 20, 30, 40, 35, 70], False),
                                ([10, 20, 90, 30, 40, 50, 60, 70, 80, 100], False),
                                ([10, 20, 30, 40, 21, 22, 23, 50], True), ([10, 20, 30, 40, 5, 6, 7], True)):
            target = line.Target()
            for start in starts:
                target.cell(SITE, 1000 + start, 1001 + start, 0, 0)
            target.part()
            with self.subTest(starts=starts):
                trace, _ = self.convert(target, 0)
                about = trace["metadata"]["npuprof"]["unused_environment"]
                self.assertEqual("NPUPROF_NOW" in about, is_back)
