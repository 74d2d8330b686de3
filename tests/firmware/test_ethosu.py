# test: - examples/ethosu: 200 inferences on a stub of the driver, power cycled each time; on a host, as
# firmware on this machine, and compiled for Cortex-M
# SPDX-License-Identifier: MIT
import json
import shutil
import sys
import unittest

import helpers
from helpers import PROGRAMS, ROOT, run, scratch

SOURCE = PROGRAMS / "ethosu_walk.c"
INCLUDE = [f"-I{ROOT}", f"-I{PROGRAMS}", f"-I{PROGRAMS / 'ethosu'}", f"-I{ROOT / 'examples' / 'ethosu'}"]
FREE = ["-DNPUPROF_FREESTANDING"]


class EthosU(unittest.TestCase):
    def build(self, name, *flags):
        program = scratch() / name
        run([*helpers.CC, "-std=gnu11", "-O0", *helpers.WARNINGS, *INCLUDE, *flags, SOURCE, "-o", program,
             "-pthread"], code=0, said="")
        return program

    def walk(self, program, trace):
        """The truth: (begin, interrupt, end) in ns of each inference."""
        run([program, trace, scratch() / "truth.txt"], code=0, said="", env=helpers.environment())
        lines = (scratch() / "truth.txt").read_text().splitlines()
        return [tuple(map(int, line.split()[1:])) for line in lines]

    def check(self, trace, truth):
        events = trace["traceEvents"]
        self.assertEqual([e for e in events if e["name"] == "no device span"], [])
        spans = sorted((e for e in events if "stamp" in e.get("args", {})), key=lambda e: e["ts"])
        hosts, wakes = (sorted((e for e in events if e["ph"] == "X" and e["name"] == name),
                               key=lambda e: e["ts"]) for name in ("Inference", "interrupt to wake-up"))
        self.assertEqual((len(spans), len(hosts), len(truth)), (200, 200, 200))
        self.assertEqual(len(wakes), 180)
        self.assertEqual(len([e for e in events if e["ph"] == "s"]), 200)
        self.assertEqual(len([e for e in events if e["name"] == "submit" and e["ph"] == "X"]), 200)
        # Of the trace, give or take a look at the clock.
        zero = min(begin - round(host["ts"] * 1000) for host, (begin, _, _) in zip(hosts, truth))
        for i, (span, host, (begin, irq, end)) in enumerate(zip(spans, hosts, truth)):
            args, start = span["args"], round(span["ts"] * 1000) + zero
            stop = start + round(span["dur"] * 1000)
            self.assertEqual(span["name"], "inference" if i % 3 == 0 else f"net {'abc'[i % 3]}")
            run_ns = 3000 + i * 104729 % 1000000
            # The run, and the looks at the clock on both sides of it.
            self.assertLessEqual(abs(args["ticks"] - run_ns * 2 // 5), 400 if i % 10 != 9 else 2600, i)
            self.assertLessEqual(abs(args["ticks"] * 5 / 2 - (stop - start)), 2 * args["error_ns"] + 5, i)
            self.assertGreater(args["error_ns"], 0)
            self.assertLess(args["error_ns"], 200)
            self.assertLessEqual(begin - args["error_ns"] - 100, start)
            if i % 10 != 9:
                self.assertLessEqual(abs(stop - irq), 300 + args["error_ns"], i)
            self.assertLessEqual(stop, end + args["error_ns"])
            # The counters begin at 0 with each inference and hold what the NPU did in it.
            busy = args["busy_ticks"]
            self.assertLessEqual(abs(busy - run_ns * 2 // 5), 1, i)
            self.assertEqual([args["mac_active"], args["read_beats"], args["write_beats"]],
                             [busy // 3, busy // 4, busy // 5])
        for wake, (begin, irq, end) in zip(wakes, (t for i, t in enumerate(truth) if i % 10 != 9)):
            start = round(wake["ts"] * 1000) + zero
            self.assertTrue(irq <= start <= irq + 1500, (irq, start))
            self.assertTrue(end - 1500 <= start + round(wake["dur"] * 1000) <= end)
        for device in trace["metadata"]["npuprof"]["devices"]:
            self.assertEqual(device["clock_sync"]["causality_violations"], 0)
            self.assertEqual(device["clock_sync"]["spans"], 200)

    @helpers.thorough
    def test_host(self):
        self.on_host("u55")

    @helpers.thorough
    def test_objects(self):
        """Frameworks pass an object of theirs as user_arg: nobody reads it."""
        trace = scratch() / "objects.json"
        self.walk(self.build("objects", "-DOBJECTS"), trace)
        events = json.loads(trace.read_text())["traceEvents"]
        self.assertEqual({e["name"] for e in events if "stamp" in e.get("args", {})}, {"inference"})

    @helpers.thorough
    def test_host_u85(self):
        self.on_host("u85", "-DETHOSU85")

    def on_host(self, name, *flags):
        trace = scratch() / f"{name}.json"
        truth = self.walk(self.build(name, *flags), trace)
        self.check(json.loads(trace.read_text()), truth)
        self.check_reports(trace)

    def check_reports(self, trace):
        """Each inference has its way from submit to its end, NPU Run from busy_ticks, a place beside Vela's
        estimate."""
        tables, layers = scratch() / "tables.json", scratch() / "net_per-layer.csv"
        tool = [sys.executable, ROOT / "tools" / "npuprof.py", "report", trace, "--json", tables]
        run([*tool, "--table", "path", "--table", "executions"], code=0, said="")
        made = json.loads(tables.read_text())["tables"]
        self.assertEqual([row[:2] for row in made["path"]["rows"][:2]], [["queue", 200], ["execute", 200]])
        columns = [column["name"] for column in made["executions"]["columns"]]
        runs = [dict(zip(columns, row)) for row in made["executions"]["rows"]]
        self.assertEqual(len(runs), 200)
        for i, row in enumerate(runs):
            busy = (3000 + i * 104729 % 1000000) * 2 // 5 * 5 // 2
            self.assertLessEqual(abs(row["run_ns"] - busy), 100)
        layers.write_text("TFLite_operator,NNG Operator,Op Cycles,Name\nCONV_2D,Conv2DBias,150000.0,a\n"
                          "ADD,Add,50000,b\n")
        self.assertEqual(run([*tool, "--vela", layers]).returncode, 0)
        rows = json.loads(tables.read_text())["tables"]["vela"]["rows"]
        self.assertEqual([(row[0], row[2], row[4]) for row in rows],
                         [("a", 150000, 0), ("b", 50000, 0), ("inference", 200000, 67), ("net b", 200000, 67),
                          ("net c", 200000, 66)])

    def test_firmware(self):
        program = self.build("free", *FREE, "-no-pie")
        truth = self.walk(program, scratch() / "ethosu.img")
        done = run([helpers.tool("npuprof-convert"), scratch() / "ethosu.img", "--elf", program], code=0,
                   said="")
        self.check(json.loads(done.stdout), truth)

    @helpers.thorough
    def test_cortex_m(self):
        if not shutil.which("arm-none-eabi-gcc"):
            self.skipTest("arm-none-eabi-gcc is not installed (Debian package gcc-arm-none-eabi)")
        for cpu in ("cortex-m0plus", "cortex-m3", "cortex-m55"):
            for flags in ((), ("-DETHOSU85",)):
                run(["arm-none-eabi-gcc", "-mthumb", f"-mcpu={cpu}", "-std=c99", "-Os", "-ffreestanding",
                     *helpers.WARNINGS, *INCLUDE, *FREE, *flags, "-DTEST_COMPILE_ONLY", "-c", SOURCE, "-o",
                     scratch() / "m.o"], code=0, said="")

    @helpers.thorough
    def test_off(self):
        """NPUPROF_OFF leaves the driver's callbacks, and they do nothing but switch the PMU."""
        self.build("off", "-DNPUPROF_OFF", "-DTEST_COMPILE_ONLY", "-Wno-unused-function")
