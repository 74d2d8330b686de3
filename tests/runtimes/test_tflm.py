# test: - examples/runtimes/tflm on declarations of TensorFlow Lite Micro: each operator once, nested as it
# ran, on a host and as firmware
# SPDX-License-Identifier: MIT
import collections
import unittest

import helpers
from helpers import ROOT, environment, events, load, run, scratch
from runtimes import hosts

INCLUDE = [f"-I{hosts.SOURCES / 'declared'}", f"-I{ROOT / 'examples' / 'runtimes' / 'tflm'}"]
RUNS = 100
FIRMWARE = """
#define NPUPROF_IMPLEMENTATION
#define NPUPROF_FREESTANDING
#define NPUPROF_NOW() 0
#define NPUPROF_NOW_HZ 1000000
#include "npuprof.h"
#include "npuprof_tflm.h"
NpuprofMicroProfiler profiler;
int main() { profiler.EndEvent(profiler.BeginEvent("CONV_2D")); return 0; }
"""


class Tflm(unittest.TestCase):
    def test_each_operator_once(self):
        program, path = hosts.built("tflm_host.cpp", "c++14", "tflm"), scratch() / "tflm.json"
        run([program, RUNS, path], code=0, printed="", said="", env=environment())
        spans = events(load(path), "X")
        counts = collections.Counter((e.get("cat"), e["name"]) for e in spans)
        operators = ["CONV_2D", "DEPTHWISE_CONV_2D", "WHILE", "SOFTMAX"]
        self.assertEqual(counts, {**{("tflm", name): 2 * RUNS for name in operators},
                                  (None, "kernel"): 8 * RUNS, ("Runtime", "invoke"): RUNS,
                                  ("tflm", "left by an error"): 1, ("tflm", "never ended"): 1,
                                  (None, "at the top again"): 1})
        self.assertEqual({k: v for k, v in load(path)["metadata"]["npuprof"]["lost"].items() if v}, {})
        self.assertEqual(self.depths(spans), {
            "invoke": {0}, **{name: {1, 3} for name in operators}, "kernel": {2, 4},
            "left by an error": {0}, "never ended": {1}, "at the top again": {0}})

    def depths(self, spans):
        """name -> in how many spans it is."""
        found, around = collections.defaultdict(set), []
        for event in sorted(spans, key=lambda e: (e["ts"], -e["dur"])):
            while around and event["ts"] + event["dur"] > around[-1] + 1e-6:
                around.pop()
            found[event["name"]].add(len(around))
            around.append(event["ts"] + event["dur"])
        return found

    def test_firmware_has_it(self):
        """It needs no heap, no exceptions and no C++ library."""
        helpers.compile_text(FIRMWARE, scratch() / "firmware", "-std=c++14", "-fno-exceptions", "-fno-rtti",
                             "-O1", "-nodefaultlibs", "-lc", *helpers.WARNINGS, *INCLUDE,
                             compiler=helpers.CXX)


if __name__ == "__main__":
    unittest.main()
