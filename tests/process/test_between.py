# test: thorough - two threads, one of which stops at each atomic access while the other goes on:
# readings, dumps, the sink, clear, gate and categories; arm64's loads
# SPDX-License-Identifier: MIT
import functools
import re
import unittest

import helpers
from helpers import ROOT, scratch

MARK = "/* ==== src/public/types.h ="


@functools.cache
def program():
    copy = helpers.edited_header("between_npuprof.h", MARK, '#include "programs/between.h"\n' + MARK)
    return helpers.build("between.c", "between", f'-DBETWEEN_HEADER="{copy}"', "-DNPUPROF_TSAN_=1")


class Between(unittest.TestCase):
    def play(self, *cases):
        for case in cases:
            with self.subTest(case):
                helpers.run([program(), case], code=0, said="", env=helpers.environment())

    def test_quick(self):
        self.play("a_reading_misses_nothing", "one_at_a_time_in_the_sink", "a_jump_leaves_nobody_waiting",
                  "a_trace_has_what_it_says", "what_was_cleared_stays_so", "the_gate_is_what_was_said",
                  "categories_are_one_setting", "an_anchor_is_read_whole", "a_device_anchor_is_read_whole",
                  "a_name_comes_with_its_category")

    def test_thorough(self):
        self.play("a_reader_waits_for_few", "a_handler_waits_for_nobody",
                  "what_is_written_meanwhile_is_whole", "a_dump_has_all_slots")


# Loads that acquire, at least. Without one of them nothing but luck orders what is read after it on arm64 and
# POWER.
ACQUIRING = {
    # the generation is no newer than the categories that are looked at
    "npuprof_record_resolve_site_": 3,
    "npuprof_image_next_entry_": 1,               # an entry of the table is whole when its type is there
    "npuprof_image_entry_": 1,
    "npuprof_record_entry_of_": 1,
    # five words between two looks at which of the two anchors is the newer one
    "npuprof_arena_copy_last_anchor_": 7,
}


class Arm64(unittest.TestCase):
    def test_loads_acquire(self):
        compiler = helpers.need("aarch64-linux-gnu-gcc")
        source, out = scratch() / "arm64.c", scratch() / "arm64.s"
        source.write_text("#define NPUPROF_IMPLEMENTATION\n#include \"npuprof.h\"\n", encoding="utf-8")
        helpers.run([compiler, "-std=gnu11", "-O2", "-fno-inline", f"-I{ROOT}", "-S", source, "-o", out],
                    code=0, said="")
        text = out.read_text(encoding="utf-8")
        for name, count in ACQUIRING.items():
            with self.subTest(name):
                body = text.partition(f"\n{name}:\n")[2].partition(f"\t.size\t{name}")[0]
                self.assertGreaterEqual(len(re.findall(r"\tlda(?:p?r)\t", body)), count)
