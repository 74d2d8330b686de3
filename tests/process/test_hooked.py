# test: thorough - a thread that stops at one line of the library, where a call is put into a copy of the
# header, while another goes on
# SPDX-License-Identifier: MIT
import unittest

import helpers
from helpers import scratch

PEEK = "    p->end = npuprof_unit_load_w1_(u);\n"
DECODE = "    ev->value = at ? npuprof_unit_load_w1_(at) : NPUPROF_END_OPEN_;\n"
STORE = "    NPUPROF_STORE_(&keys->word[k], word);\n"
TAKE = "            return npuprof_chunk_at_((entry & mask) - 1);\n"


class Hooked(unittest.TestCase):
    def play(self, program, line, edited, *arguments):
        """What a program of tests/programs prints, with this line of the header changed."""
        header = helpers.edited_header(f"{program}.h", line, edited)
        built = helpers.build(f"{program}.c", program, f'-DHOOKED_HEADER="{header}"')
        done = helpers.run([built, *arguments], code=0, said="", env=helpers.environment())
        return done.stdout

    def spans(self, path):
        return helpers.events(helpers.load(scratch() / path), "X")

    def test_moved_stays_unfinished(self):
        """A live reader between the two words of an open span that moves to the next chunk just then."""
        for where, line, word in (("peek", PEEK, "&u->w1"), ("decode", DECODE, "at ? &at->w1 : NULL")):
            with self.subTest(where=where):
                self.play("moved", line, f"    between_words({word});\n{line}", "moved.json")
                outer = [e for e in self.spans("moved.json") if e["name"] == "outer"]
                self.assertEqual([e.get("args", {}) for e in outer], [{}, {"unfinished": True}])
                self.assertGreater(outer[1]["dur"], 0)

    def test_each_keeps_its_own_key(self):
        """Two threads at one call site with different keys, one of them between storing a key and its word:
        no value under the other's key."""
        self.play("two_keys", STORE, f"{STORE}    between_stores();\n", "keys.json")
        found = [e["args"] for e in self.spans("keys.json")]
        self.assertEqual(sorted(found, key=str), [{"one": 1}] * 4 + [{"two": 2}] * 4)

    def test_overtaken_queue_stays_whole(self):
        """A thread that stops while it takes a chunk out of the queue of retired ones, and is overtaken by
        whole rounds."""
        self.assertEqual(self.play("queue", TAKE, "            taken_out();\n" + TAKE), "0\n")
