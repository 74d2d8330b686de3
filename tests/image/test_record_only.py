# NPUPROF_RECORD_ONLY: its image has the spans that a whole build writes, and the rest is refused in words
# SPDX-License-Identifier: MIT
import unittest

import helpers
from helpers import events, run, strict_json

PROGRAM = helpers.ROOT / "tests" / "programs" / "record_only.c"


class RecordOnly(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        helpers.tool("npuprof-convert")
        cls.folder = helpers.scratch() / "record_only"
        cls.folder.mkdir(exist_ok=True)

    def trace(self, name, *flags):
        """What npuprof-convert makes of the program's image."""
        program = helpers.build("record_only.c", name, *flags)
        image = self.folder / f"{name}.npuprof"
        run([program, image], code=0, said="", env=helpers.environment())
        done = run([helpers.tool("npuprof-convert"), image], code=0, said="")
        return program, strict_json(done.stdout)

    def test_same_spans(self):
        large, whole = self.trace("record_whole")
        program, small = self.trace("record_only", "-DNPUPROF_RECORD_ONLY")
        for phase in ("X", "i", "C"):
            mine, wanted = ([{k: v for k, v in e.items() if k != "pid"} for e in events(t, phase)]
                            for t in (small, whole))
            self.assertEqual(mine, wanted)
        self.assertEqual(len(events(small, "X")), 3 * 100 + 2)
        self.assertLess(program.stat().st_size, large.stat().st_size / 1.5)

    def test_no_environment(self):
        program = helpers.build("record_only.c", "record_only", "-DNPUPROF_RECORD_ONLY")
        never = self.folder / "never.json"
        done = run([program, self.folder / "env.npuprof"],
                   env=helpers.environment(NPUPROF_OUTPUT_PATH=str(never), NPUPROF_LEVEL="x"))
        self.assertEqual((done.returncode, done.stderr, never.exists()), (0, "", False))
