# test: thorough - a thread that stops while it takes a chunk out of the queue of retired ones, and is
# overtaken by whole rounds: the queue stays whole
# SPDX-License-Identifier: MIT
import unittest

import helpers
from helpers import ROOT, scratch

LINE = "            return npuprof_chunk_at_((entry & mask) - 1);\n"


class Queue(unittest.TestCase):
    def test_overtaken(self):
        header = (ROOT / "npuprof.h").read_text(encoding="utf-8")
        self.assertEqual(header.count(LINE), 1)
        copy = scratch() / "queue.h"
        copy.write_text(header.replace(LINE, "            taken_out();\n" + LINE), encoding="utf-8")
        program = helpers.build("queue.c", "queue", f'-DQUEUE_HEADER="{copy}"')
        done = helpers.run([program], env=helpers.environment(), timeout=60)
        self.assertEqual((done.returncode, done.stdout, done.stderr), (0, "0\n", ""))


if __name__ == "__main__":
    unittest.main()
