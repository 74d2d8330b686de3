# test: thorough - two threads at one call site with different keys, one of them between storing a key and its
# word: no value under the other's key
# SPDX-License-Identifier: MIT
import unittest

import helpers
from helpers import ROOT, scratch

LINE = "    NPUPROF_STORE_(&keys->word[k], word);\n"


class Keys(unittest.TestCase):
    def test_each_keeps_its_own(self):
        header = (ROOT / "npuprof.h").read_text(encoding="utf-8")
        self.assertEqual(header.count(LINE), 1)
        copy = scratch() / "keys.h"
        copy.write_text(header.replace(LINE, f"{LINE}    between_stores();\n"),
                        encoding="utf-8")
        program = helpers.build("two_keys.c", "two_keys", f'-DKEYS_HEADER="{copy}"')
        done = helpers.run([program, "keys.json"], env=helpers.environment())
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        found = [e["args"] for e in helpers.events(helpers.load(scratch() / "keys.json"), "X")]
        self.assertEqual(sorted(found, key=str), [{"one": 1}] * 4 + [{"two": 2}] * 4)


if __name__ == "__main__":
    unittest.main()
