# test: thorough - a live reader between the two words of an open span that moves to the next chunk just then:
# it stays unfinished
# SPDX-License-Identifier: MIT
import unittest

import helpers
from helpers import ROOT, scratch

PLACES = {"peek": ("    p->end = npuprof_unit_load_w1_(u);\n", "&u->w1"),
          "decode": ("    ev->value = at ? npuprof_unit_load_w1_(at) : NPUPROF_END_OPEN_;\n",
                     "at ? &at->w1 : NULL")}


class Moved(unittest.TestCase):
    def test_stays_unfinished(self):
        header = (ROOT / "npuprof.h").read_text(encoding="utf-8")
        for where, (line, word) in PLACES.items():
            with self.subTest(where=where):
                self.assertEqual(header.count(line), 1)
                copy = scratch() / f"moved_{where}.h"
                copy.write_text(header.replace(line, f"    between_words({word});\n{line}"), encoding="utf-8")
                program = helpers.build("moved.c", f"moved_{where}", f'-DMOVED_HEADER="{copy}"')
                done = helpers.run([program, f"{where}.json"], env=helpers.environment())
                self.assertEqual((done.returncode, done.stderr), (0, ""))
                outer = [e for e in helpers.events(helpers.load(scratch() / f"{where}.json"), "X")
                         if e["name"] == "outer"]
                self.assertEqual([e.get("args", {}) for e in outer], [{}, {"unfinished": True}])
                self.assertGreater(outer[1]["dur"], 0)


if __name__ == "__main__":
    unittest.main()
