# test: - what an RTOS tells the recorder of firmware: names by number, switches, interrupts, ticks, sleep
# SPDX-License-Identifier: MIT
import re

import helpers
from firmware import target
from helpers import ROOT, run


class Rtos(target.Target):
    SOURCE = "firmware_rtos.c"

    def recorded(self, mode):
        """The trace's events by phase, its tracks, and what the program printed."""
        printed = self.quiet(mode).stdout
        self.events = self.converted()["traceEvents"]
        self.tracks = {e["tid"]: e["args"]["name"] for e in self.events if e["name"] == "thread_name"}
        return printed

    def spans(self, track=None):
        """Name, start and duration in us."""
        return [(e["name"], round(e["ts"]), round(e["dur"])) for e in self.events
                if e["ph"] == "X" and track in (None, self.tracks[e["tid"]])]

    def test_names(self):
        self.recorded("names")
        self.assertEqual(self.spans("CPU"), [("worker", 20, 10), ("number 3", 30, 10), ("worker", 40, 10),
                                             ("number 65534", 50, 10)])
        self.assertEqual(self.spans("interrupts"), [("start", 0, 10), ("number 40", 65, 3), ("dma", 66, 1)])
        self.assertEqual(self.spans("worker"), [("work", 68, 3)])
        counters = [(e["name"], e["args"]) for e in self.events if e["ph"] == "C"]
        self.assertEqual(counters, [("stack free worker", {"value": 7})])

    def test_sleeps(self):
        now = self.recorded("sleeps")
        hour = 3_600_000_000
        self.assertEqual(self.spans(), [
            ("start", 0, 10), ("before", 10, 1000), ("over", 1010, 5_000_200), ("slept", 1110, 5_000_000),
            ("between", 5_001_210, 50), ("slept", 5_001_260, hour), ("within a tick", 5_001_260 + hour, 0),
            ("after", 5_001_270 + hour, 20)])
        self.assertEqual(int(now), (5_001_290 + hour) * 1000)

    def test_tick(self):
        """With a tick the time is right; without one it is not, as documented."""
        self.recorded("tick")
        self.assertEqual(self.spans()[-1], ("after", 3_600_000_010, 20))
        self.recorded("idle")
        self.assertLess(self.spans()[-1][1], 1 << 24)

    def test_names_in_one_file_only(self):
        """One file lacks NPUPROF_NAMES_SECTION, the one that records or the one that implements: it does not
        link."""
        (self.folder / "records.c").write_text('#include "npuprof.h"\nint main(void) { PROF_SCOPE("a"); '
                                               'PROF_COUNTER("b", 1); return 0; }\n')
        (self.folder / "implements.c").write_text('#define NPUPROF_IMPLEMENTATION\n#include "npuprof.h"\n')
        common = ["-std=gnu11", "-O1", f"-I{ROOT}", "-DNPUPROF_NO_JSON", "-DNPUPROF_FREESTANDING",
                  "-DNPUPROF_NOW()=0u", "-DNPUPROF_NOW_HZ=1000000"]
        section = ['-DNPUPROF_NAMES_SECTION="npuprof_names"']
        for which in ("records", "implements", "both"):
            for name in ("records", "implements"):
                run([*helpers.CC, *common, *(section if which in (name, "both") else []), "-c",
                     self.folder / f"{name}.c", "-o", self.folder / f"{name}.o"], code=0)
            done = run([*helpers.CC, self.folder / "records.o", self.folder / "implements.o", "-o",
                        self.folder / "linked"])
            with self.subTest(which=which):
                self.assertEqual(done.returncode == 0, which == "both", done.stderr)
                if which != "both":
                    lacking = "npuprof_begin_" + "with_names_section_" * (which == "records")
                    self.assertRegex(done.stderr, rf"undefined reference to .{lacking}\b")

    def test_names_in_flash(self):
        """The linker script has no line for the section of names: their bytes are said."""
        program = target.build(self.SOURCE, "-DNPUPROF_NO_JSON", '-DNPUPROF_NAMES_SECTION="npuprof_names"',
                               name="loaded")
        self.start("names", program=program)
        done = run([helpers.tool("npuprof-convert"), self.folder / "out.img", "--elf", program], code=0)
        sections = run(["readelf", "-SW", program]).stdout
        size = int(re.search(r" npuprof_names +PROGBITS +\w+ \w+ (\w+)", sections)[1], 16)
        self.assertIn(f"the section npuprof_names takes {size} bytes of flash", done.stderr)
