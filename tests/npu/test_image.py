# test: thorough - what devices add to an image
# SPDX-License-Identifier: MIT
"""What devices add to an image: the converter writes the same JSON from it as the library, and all readers
take it."""

import json
import pathlib
import unittest

import helpers
from helpers import run, scratch

PROGRAM = r"""
#define main example_main
#include "examples/08_framed_log.c"
#undef main
static bool is_on(void *on) { return *(const bool *)on; }
static uint64_t ticks;
static uint64_t read_ticks(void *unused) { (void)unused; return ticks; }
int main(void)
{
    static npuprof_npu gated;
    static bool on = true;
    npuprof_npu_desc desc = { 0 };
    if (example_main() != 0) return 1;
    desc.name = "gated";
    desc.read_ticks = read_ticks;
    desc.is_on = is_on;
    desc.user = &on;
    if (npuprof_npu_open(&gated, &desc) != NPUPROF_OK) return 2;
    for (int i = 0; i < 3; i++) {
        on = i != 1;
        WITH_NPU_PROFILER(&gated, 0, "sampled", "NPU", PROF_NO_ARGS, ticks += 1000);
    }
    npuprof_npu_close(&gated);
    for (int i = 0; i < 2; i++)
        if (npuprof_dump(i ? "both.json" : "both.npuprof") != NPUPROF_OK) return 3;
    return 0;
}
"""


class Image(unittest.TestCase):
    def test_converted(self):
        folder = scratch()
        source = pathlib.Path(folder / "devices.c")
        source.write_text(PROGRAM)
        program = helpers.build(source, "devices")
        self.assertEqual(run([program], cwd=folder).returncode, 0)
        done = run([helpers.tool("npuprof-convert"), folder / "both.npuprof"], code=0, said="")
        text = (folder / "both.json").read_text()
        self.assertEqual(done.stdout, text)
        hand, gated = (d["clock_sync"] for d in json.loads(text)["metadata"]["npuprof"]["devices"])
        self.assertEqual((hand["clock"], hand["records"]), ("causal", {"lost_by_driver": 1, "open_jobs": 1}))
        self.assertEqual((gated["idle_at_open"], gated["spans"]), (True, 2))
        events = json.loads(text)["traceEvents"]
        spans = [e["args"] for e in events if e["name"] == "sampled" and "stamp" in e.get("args", {})]
        self.assertEqual([(a["stamp"], a["ticks"]) for a in spans], [("sampled", 1000)] * 2)
        why = [e["args"]["why"] for e in events if e["name"] == "no device span"]
        self.assertEqual([text.partition(":")[0] for text in why], ["NPUPROF_ERR_NPU_OFF"])
        for command in ("check", "report"):
            helpers.npuprof_py(command, folder / "both.json", code=int(command == "check"))
