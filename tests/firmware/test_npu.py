# test: - npuprof_npu.h without an OS, on this machine: what the host makes of the image is true, and what it
# was on the microcontrollers
# SPDX-License-Identifier: MIT
import importlib.util
import json
import re

import helpers
from firmware import target
from helpers import ROOT, run, scratch

SPEC = importlib.util.spec_from_file_location("baremetal", ROOT / "tests" / "baremetal" / "run.py")
baremetal = importlib.util.module_from_spec(SPEC)
SPEC.loader.exec_module(baremetal)


class Device(target.Target):
    def image(self, *flags):
        """The program's image as JSON, and the JSON it wrote itself, or None."""
        program, own = target.build(ROOT / "tests" / "baremetal" / "npu.c", *flags), self.folder / "npu.json"
        self.quiet(program=program)
        text = target.convert(self.folder / "npu.img", program)
        return text, own.read_text() if own.exists() else None

    def test_truth(self):
        text, own = self.image()
        baremetal.check_npu(text)
        self.assertEqual(text, (baremetal.GOLDEN / "firmware_npu.json").read_text())
        self.assertEqual(own, (baremetal.GOLDEN / "firmware_npu_target.json").read_text())

    def test_targets_own_json(self):
        """What the machines write themselves breaks no rule of the viewers."""
        files = [baremetal.GOLDEN / "firmware_target.json", baremetal.GOLDEN / "firmware_npu_target.json"]
        done = helpers.npuprof_py("check", *files)
        self.assertIn("21 left out", done.stdout)

    ETHOSU = r"""
#include <stdio.h>
#include <stdint.h>
static uint32_t registers[4096], ticks;
#include "examples/devices/ethosu_regs_offsets.h"
static uint32_t now(void) { registers[LO / 4] = 1000 + (ticks += 8); return ticks; }
#define NPUPROF_NOW() now()
#define NPUPROF_NOW_HZ 1000000u
#define NPUPROF_FREESTANDING
#define NPUPROF_IMPLEMENTATION
#include "npuprof.h"
#include "npuprof_npu.h"
#include "examples/devices/ethosu_regs.h"
static int put(void *file, const void *bytes, size_t count)
{
    return fwrite(bytes, 1, count, (FILE *)file) == count ? 0 : 5;
}
int main(void)
{
    static npuprof_npu npu;
    npuprof_npu_desc desc = ethosu_npu_desc();
    const npuprof_sink sink = { put, stdout };
    desc.bar = registers;
    desc.bar_bytes = sizeof registers;
    npuprof_start(1);
    if (npuprof_npu_open(&npu, &desc) != NPUPROF_OK) return 1;
    WITH_NPU_PROFILER(&npu, 0, "kernel", "NPU", PROF_NO_ARGS, ticks += 500);
    npuprof_npu_close(&npu);
    return npuprof_write_json(sink) != NPUPROF_OK;
}
"""

    def test_generated_description(self):
        """A description with event counters opens on firmware, and the trace says that they are not sampled
        there."""
        source, program = scratch() / "ethosu.c", scratch() / "ethosu"
        offset = re.search(r"define ETHOSU_PMCCNTR_LO_OFFSET (\S+)",
                           (ROOT / "examples/devices/ethosu_regs.h").read_text())[1]
        source.write_text(self.ETHOSU.replace('#include "examples/devices/ethosu_regs_offsets.h"',
                                              f"enum {{ LO = {offset} }};"))
        run([*helpers.CC, "-std=c11", "-O1", *helpers.WARNINGS, f"-I{ROOT}", source, "-o", program], code=0,
            said="")
        done = run([program], code=0)
        told = [e for e in json.loads(done.stdout)["traceEvents"] if e["name"] == "ethosu" and e["ph"] == "M"]
        self.assertEqual([e["args"] for e in told], [{"value": "desc.pmu is not sampled on firmware"}])

    def test_without_json(self):
        """Records without the device's name: the host has it from elsewhere."""
        text, own = self.image("-DNPUPROF_NO_JSON")
        baremetal.check_npu(text)
        self.assertIsNone(own)
