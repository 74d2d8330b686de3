# every kind of event on fixed clocks: JSON, CSV and reports, byte for byte
# SPDX-License-Identifier: MIT
import os
import re
import unittest

import helpers
from helpers import ROOT, run, scratch

GOLDEN = helpers.TESTS / "golden"

# kind -> what the golden JSON holds of it. A new kind needs a line here, and one in
# tests/programs/golden_kinds.c.
KINDS = {
    "SPAN": '"ph":"X","name":"by hand","cat":"c"', "RECORD": '"kind":"record"', "WARM_UP": '"kind":"warm_up"',
    "INFERENCE": '"kind":"inference"',
    "OPERATOR": '"kind":"operator"', "INSTANT": '"ph":"i","name":"now"', "COUNTER_INT": '"args":{"value":-1}',
    "COUNTER_UINT": '"args":{"value":1.8446744073709552e+19}', "COUNTER_REAL": '"args":{"value":0.5}',
    "MEMORY": '"args":{"used":1000,"allocated":4096}', "FLOW_OUT": '"ph":"s","name":"flow"',
    "FLOW_IN": '"ph":"f","name":"flow"',
    "ASYNC_BEGIN": '"name":"never ends","cat":"q"', "ASYNC_END": '"name":"job","cat":"q"',
    "FINISHED": '"name":"copy","cat":"d"',
    "DEVICE": '"stamp":"device"',
}
OTHERS = ['"stamp":"sampled"', '"busy_ticks":50', '"unfinished":"unwound"', '"unfinished":true',
          '"npuprof paused"', '"npuprof resumed"',
          '"name":"submit"', '"int":-9223372036854775808', '"uint":"18446744073709551615"', '"real":-0.125',
          '"ne.forward_ns":200', '"status":-5,"bool":false', '"str":"é \\"\\\\\\u000a"']


class Golden(unittest.TestCase):
    """After a wanted change: TEST_GOLDEN=write in the environment."""

    @classmethod
    def setUpClass(cls):
        program = helpers.build("golden_kinds.c", "golden_kinds")
        done = run([program, "kinds.json", "kinds.csv"], code=0, env=helpers.environment())
        cls.base = int(re.search(r'"start_unix_ns":"?(\d+)', (scratch() / "kinds.json").read_text())[1])
        rows = (scratch() / "kinds.csv").read_text(encoding="utf-8")
        cls.texts = {"kinds.json": helpers.normalised(scratch() / "kinds.json"),
                     "kinds.csv": cls.relative(rows), "kinds.txt": cls.relative(done.stdout)}
        if os.environ.get("TEST_GOLDEN") == "write":
            for name, text in cls.texts.items():
                (GOLDEN / name).write_text(text, encoding="utf-8")

    @classmethod
    def relative(cls, text):
        """Ids by the order in which they occur, times relative to the trace's start: what depends on pid and
        time is gone."""
        ids = {}
        text = re.sub(r'"[^",]*/(\w+\.c):\d+"$', r'"\1:0"', text, flags=re.M)
        text = re.sub(r"\b(?=[0-9a-f]*[a-f0-9])([0-9a-f]{32}|[0-9a-f]{16})\b",
                      lambda m: f"id{ids.setdefault(m[0], len(ids))}", text)
        return re.sub(r"\b\d{19}\b", lambda m: str(int(m[0]) - cls.base), text)

    def test_bytes(self):
        for name, text in self.texts.items():
            with self.subTest(file=name):
                self.assertEqual(text, (GOLDEN / name).read_text(encoding="utf-8"))

    def test_every_kind(self):
        header = (ROOT / "npuprof.h").read_text(encoding="utf-8")
        block = re.search(r"#define NPUPROF_KINDS\(X\)(.*?)\n#define", header, re.S)[1]
        self.assertEqual(set(re.findall(r"NPUPROF_KIND_(\w+)", block)) - {"NONE"}, set(KINDS))
        for what in [*KINDS.values(), *OTHERS]:
            self.assertIn(what, self.texts["kinds.json"])
        self.assertNotIn("above the level", self.texts["kinds.json"])

    def test_same_again(self):
        """Another run differs in nothing but what was taken out."""
        run([scratch() / "golden_kinds", "again.json", "again.csv"], code=0, env=helpers.environment())
        own = lambda text: re.sub(r'"program":"\w*"', "", text)  # noqa: E731
        self.assertEqual(own(helpers.normalised(scratch() / "again.json")), own(self.texts["kinds.json"]))

    def test_check(self):
        helpers.npuprof_py("check", "kinds.json")
