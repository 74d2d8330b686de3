# test: - submissions and raw records of a kernel module's devices: the host decodes, matches and counts them
# SPDX-License-Identifier: MIT
import helpers
from firmware import target
from helpers import PROGRAMS, ROOT, run, scratch

PROGRAM = PROGRAMS / "kernel_jobs.c"
KERNEL = ["-ffreestanding", "-fno-common", "-Wframe-larger-than=1280"]

MODES = ("plain", "stamp", "power", "hand", "calls")


class Jobs(target.Target):
    emulator = None

    def trace(self, program, *words):
        """Host spans and device spans by the number of the job, what was lost, and what ran."""
        if self.emulator:
            self.quiet(program, *words, program=self.emulator)
        else:
            self.quiet(*words, program=program)
        trace = self.converted("ram.bin", program)
        events = trace["traceEvents"]
        spans = [e for e in events if e["ph"] == "X"]
        hosts = {int(e["name"].split()[1]): e for e in spans if "stamp" not in e.get("args", {})}
        device = {e["args"]["number"]: e for e in spans if "stamp" in e.get("args", {})}
        at = {(e["tid"], e["ts"]): number for number, e in hosts.items()}
        begins = {e["id"]: at[e["tid"], e["ts"]] for e in events if e["ph"] == "s"}
        ends = {(e["tid"], e["ts"]): begins[e["id"]] for e in events if e["ph"] == "f"}
        for span in device.values():
            span["owner"] = ends.get((span["tid"], span["ts"]))
        ran = {number: rest for number, *rest in
               (map(int, line.split()) for line in (self.folder / "truth.txt").read_text().splitlines())}
        return hosts, device, trace["metadata"]["npuprof"], ran

    def check(self, mode, jobs, seed, program):
        hosts, device, about, ran = self.trace(program, mode, jobs, seed)
        lost = about["lost"].pop("device_ring")
        self.assertFalse(any(about["lost"].values()), about["lost"])
        self.assertEqual((len(hosts), len(device) + lost, len(ran)), (jobs, jobs, jobs))
        # Of a stamp of 32 bits at 1.6 GHz, and a job that was open for longer, nobody knows the period; of a
        # counter that may stand, and two runs of it, nobody knows which.
        records = about["devices"][0]["clock_sync"].get("records", {}) if lost else {}
        self.assertEqual(sum(records.values()), lost)
        self.assertLessEqual(set(records), {"lost_period"} | ({"lost_epoch"} if mode == "power" else set()))
        self.assertLess(lost, jobs // 15 if mode in ("stamp", "power") else 1)
        first = min(ran.items())
        zero = hosts[first[0]]["ts"] * 1000 - first[1][1]
        for number, span in device.items():
            ring, start, end = ran[number]
            self.assertEqual(span["owner"], number)
            self.assertEqual(span["args"]["stream"], ring)
            self.assertEqual(span["name"], f"job {number}" if mode in ("hand", "calls") else "convolution")
            begin, over = span["ts"] * 1000 - zero, (span["ts"] + span["dur"]) * 1000 - zero
            error = span["args"].get("error_ns", 0) + (80 if mode == "calls" else 2)
            wanted = start if mode in ("plain", "calls") else end - 700
            self.assertLessEqual(abs(begin - wanted), error, (number, span))
            self.assertLessEqual(abs(over - end), error, (number, span))

    def test_each_way(self):
        program = target.build(PROGRAM)
        for mode in MODES:
            with self.subTest(mode):
                self.check(mode, 1000, 1, program)

    @helpers.thorough
    def test_ten_thousand(self):
        program = target.build(PROGRAM, "-O2")
        for mode in MODES:
            with self.subTest(mode):
                self.check(mode, 12000, 7, program)

    @helpers.thorough
    def test_32_bits(self):
        self.emulator = helpers.need("qemu-i386")          # a kernel may run programs of 64 bits only
        self.check("stamp", 1000, 3, target.build(PROGRAM, "-m32"))

    @helpers.thorough
    def test_kernel_flags(self):
        run([*helpers.CC, "-std=gnu11", "-O2", "-c", *KERNEL, f"-I{ROOT}", PROGRAM, "-o", scratch() / "k.o"],
            code=0, said="")

    def test_full_arena(self):
        """What does not fit is counted: each span of a host or device is there or lost."""
        for kib in (40, 90, 200):
            hosts, device, about, ran = self.trace(target.build(PROGRAM), "plain", 1000, 5, kib * 1024)
            for number, span in device.items():
                self.assertIn(span["owner"], (None, number))
            lost = about["lost"]
            self.assertGreater(lost["arena_full"], 0)
            lost_spans = lost["arena_full"] + lost["device_ring"]
            self.assertEqual(len(hosts) + len(device) + lost_spans, 2 * len(ran))
