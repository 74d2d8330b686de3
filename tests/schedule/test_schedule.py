# test: thorough time=120 - the scheduler sees what was wrong once, and a schedule that failed fails again
# SPDX-License-Identifier: MIT
"""The scheduler of schedule.c on npuprof.h as it was at 224f52c, in which a live reading lost whole threads
(F1), two threads were in the sink (F2), a reader starved (F4), a dump that met new names was damaged (F5) and
the gate stayed shut (F6)."""
import os
import pathlib
import re
import shlex
import subprocess
import unittest

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
TMP = pathlib.Path(os.environ.get("NPUPROF_TEST_TMP", "/tmp"))
BEFORE = "224f52c"


def build(folder, name):
    """The scheduler with the old header, in that folder."""
    program = TMP / name
    command = shlex.split(os.environ.get("CC", "cc")) + ["-std=c11", "-O2", "-w", "-DSCHEDULE_OLD",
                                                         f"-I{folder}", "-pthread"]
    subprocess.run(command + [str(ROOT / "tests/schedule/schedule.c"), "-o", str(program)], check=True)
    return program


class Before(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        show = ["git", "-C", str(ROOT), "show", f"{BEFORE}:npuprof.h"]
        header = subprocess.run(show, capture_output=True, check=False)
        if header.returncode:
            raise unittest.SkipTest(f"no history here: git show {BEFORE}:npuprof.h")
        (TMP / "npuprof.h").write_bytes(header.stdout)
        cls.program = build(TMP, "before")

    def fails(self, arguments, why):
        run = subprocess.run([self.program] + arguments.split(), capture_output=True, text=True, timeout=60,
                             check=False)
        self.assertEqual(run.returncode, 1, run.stdout)
        self.assertRegex(run.stdout, why)
        return re.search(r"; again: \S+ (.*)", run.stdout).group(1)

    def test_a_live_reading_loses_threads(self):
        again = self.fails("stats keep-oldest 7 random 1000 0", r"recorded \d+ \+ lost \d+, executed")
        self.assertIn(" seed ", again)
        self.fails(again, r"recorded \d+ \+ lost \d+, executed")

    def test_one_preemption_is_enough_for_it(self):
        again = self.fails("json+restarts keep-oldest 6 preempt 1 20000",
                           r"recorded \d+ \+ lost \d+, executed")
        self.assertIn(" at ", again)
        self.fails(again, r"recorded \d+ \+ lost \d+, executed")

    def test_two_threads_in_the_sink(self):
        self.fails("slow stream 7 random 40 0", "two threads are in the sink|the stream is damaged")

    def test_a_reader_starves(self):
        self.fails("starved keep-newest 7 random 100 0", "a reader starves")

    def test_a_dump_that_meets_new_names_is_damaged(self):
        self.fails("image+names keep-oldest 7 random 200 0", "the live image is damaged")

    def test_the_gate_stays_shut(self):
        self.fails("stop keep-oldest 7 random 500 0", "recording is off, but the gate says otherwise")

    def test_a_pause_without_end(self):
        self.fails("pause keep-oldest 7 preempt 2 20000", "a pause has no end|the gate says otherwise")
