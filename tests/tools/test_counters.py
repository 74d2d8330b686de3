# test: time=60 - npuprof.py counters: what /sys and /proc have, units, wraps, sleep; energy of inferences
# SPDX-License-Identifier: MIT
import contextlib
import io
import json
import os
import unittest
from fractions import Fraction
from types import SimpleNamespace

import helpers
import npuprof
from helpers import scratch
from npuprof.analysis.energy import row_of
from npuprof.analysis.facts import Facts
from npuprof.counters import command
from npuprof.counters.sources import Clients, Source, Sysfs

GB = 1_000_000_000
FDINFO = """pos: 0
drm-driver: amdxdna_accel_driver
drm-client-id: 7
drm-engine-npu: {busy} ns
drm-engine-capacity-npu: 2
drm-cycles-npu: {cycles}
drm-resident-memory: 3 MiB
drm-total-memory: 4 MiB
"""


def put(path, text):
    path = scratch() / "root" / path
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(f"{text}\n")


def link(path, target):
    path = scratch() / "root" / path
    path.parent.mkdir(parents=True, exist_ok=True)
    with contextlib.suppress(FileExistsError):
        path.symlink_to(target)


def machine():
    """An ivpu with hwmon and devfreq, and an energy of powercap."""
    device = "sys/devices/npu"
    for name, text in (("power/runtime_status", "active"), ("power/runtime_active_time", "1000"),
                       ("npu_busy_time_us", "500"), ("npu_memory_utilization", "4096"),
                       ("npu_current_frequency_mhz", "1400"), ("hwmon/hwmon3/power1_input", "2500000"),
                       ("hwmon/hwmon3/energy1_input", "10"), ("hwmon/hwmon3/temp1_input", "45500"),
                       ("hwmon/hwmon3/temp1_label", "die"), ("hwmon/hwmon3/power1_cap", "1")):
        put(f"{device}/{name}", text)
    link("sys/class/accel/accel0/device", scratch() / "root" / device)
    link(f"{device}/driver", scratch() / "root/sys/bus/intel_vpu")
    put("sys/bus/intel_vpu/x", "")
    put("sys/class/devfreq/npu/cur_freq", "800000000")
    link("sys/class/devfreq/npu/device", scratch() / "root" / device)
    for name, text in (("energy_uj", "262143000000"), ("max_energy_range_uj", "262143328850"),
                       ("name", "package-0")):
        put(f"sys/class/powercap/intel-rapl:0/{name}", text)
    put("sys/class/hwmon/hwmon0/name", "coretemp")
    put("sys/class/hwmon/hwmon0/temp1_input", "30000")
    return Sysfs(scratch() / "root")


class Clock:
    """ns since boot; each look takes 1000."""

    def __init__(self):
        self.ns = 5 * GB

    def __call__(self):
        self.ns += 1000
        return self.ns


def drawn(sampler):
    """{track: [(ts in us, unit, value)]}"""
    found = {}
    for line in sampler.lines:
        event = json.loads(line)
        (unit, value), = event["args"].items()
        found.setdefault(event["name"], []).append((event["ts"], unit, value))
    return found


class Found(unittest.TestCase):
    def test_devices(self):
        """Each file once, with its unit; other hwmon devices only by name."""
        names = {(s.of, s.name, s.unit) for s in machine().sources()}
        npu = "accel0 (intel_vpu)"
        self.assertEqual(names, {
            (npu, "awake", "%"), (npu, "busy", "%"), (npu, "memory", "bytes"), (npu, "frequency", "MHz"),
            (npu, "power1", "mW"), (npu, "energy1", "uJ"), (npu, "die", "degC"), ("npu", "frequency", "MHz"),
            ("powercap", "package-0 (intel-rapl:0)", "uJ")})
        more = {s.of for s in machine().sources(["coretemp"])} - {of for of, *_ in names}
        self.assertEqual(more, {"coretemp"})

    def test_values(self):
        """Units, shares of time, an energy that wraps, a value that is asked for once a second at most."""
        clock = Clock()
        sampler = command.Sampler(machine().sources(), Clients(scratch() / "root"), [], clock)
        sampler.tick()
        for name, text in (("devices/npu/power/runtime_active_time", "1300"),
                           ("devices/npu/npu_busy_time_us", "300500"),
                           ("class/powercap/intel-rapl:0/energy_uj", "71149"),
                           ("devices/npu/hwmon/hwmon3/energy1_input", "35")):
            put(f"sys/{name}", text)
        clock.ns += GB // 2
        sampler.tick()
        found = drawn(sampler)
        npu = "accel0 (intel_vpu): "
        self.assertNotIn(f"{npu}busy", found)
        self.assertEqual([v for _, _, v in found["powercap: package-0 (intel-rapl:0)"]], [0, 400_000])
        self.assertEqual([v for _, _, v in found[f"{npu}energy1"]], [0, 25])
        self.assertEqual(found[f"{npu}die"][0][1:], ("degC", 45.5))
        self.assertEqual(found[f"{npu}power1"][0][1:], ("mW", 2500))
        self.assertEqual(found["npu: frequency"][0][1:], ("MHz", 800))
        self.assertAlmostEqual(found[f"{npu}awake"][0][2], 60, delta=0.1)
        clock.ns += GB // 2
        sampler.tick()
        self.assertAlmostEqual(drawn(sampler)[f"{npu}busy"][0][2], 30, delta=0.1)

    def test_asleep(self):
        """A device that sleeps is not read; whether it is awake is."""
        sysfs = machine()
        put("sys/devices/npu/power/runtime_status", "suspended")
        asked = []
        for source in (sources := sysfs.sources()):
            def read(source=source, read=source.read):
                asked.append((source.of, source.name))
                return read()
            source.read = read
        command.Sampler(sources, Clients(scratch() / "root"), [], Clock()).tick()
        self.assertEqual({name for of, name in asked if of != "powercap"}, {"awake"})
        link("sys/class/hwmon/hwmon0/device", scratch() / "root/sys/devices/npu")
        core, = [source for source in sysfs.sources(["coretemp"]) if source.of == "coretemp"]
        self.assertFalse(core.awake())
        (scratch() / "root/sys/class/hwmon/hwmon0/device").unlink()

    def test_old_value(self):
        """Less than before, without a wrap, is an old value: nothing is drawn, and nothing counts twice."""
        source = Source("a", "b", "uJ", None, 1, True)
        drawn = [source.sample(ns, v) for ns, v in ((1, 10), (2, 30), (3, 20), (4, 35))]
        self.assertEqual(drawn, [0, 20, None, 25])

    def test_clients(self):
        """What fdinfo says of a process and its child: each client once."""
        for pid, busy in ((70, 100), (71, 0)):
            for fd in (3, 4, 5):
                link(f"proc/{pid}/fd/{fd}", "/dev/accel/accel0" if fd < 5 else "/dev/null")
                put(f"proc/{pid}/fdinfo/{fd}", FDINFO.format(busy=busy, cycles=9))
        put("proc/70/task/70/children", "71")
        put("proc/71/task/71/children", "")
        clients, clock = Clients(scratch() / "root"), Clock()
        self.assertEqual(clients.family(70), [70, 71])
        sampler = command.Sampler([], clients, [70], clock)
        sampler.tick()
        for fd in (3, 4):
            put(f"proc/70/fdinfo/{fd}", FDINFO.format(busy=100 + GB, cycles=9 + 500))
        clock.ns += GB
        sampler.tick()
        found = drawn(sampler)
        of = "amdxdna_accel_driver of 70: "
        self.assertAlmostEqual(found[f"{of}npu busy"][0][2], 50, delta=0.1)
        self.assertEqual([v for _, _, v in found[f"{of}npu cycles"]], [0, 500])
        self.assertEqual([v for _, _, v in found[f"{of}resident memory"]], [3 << 20] * 2)
        self.assertEqual({name.rpartition(":")[0] for name in found},
                         {"amdxdna_accel_driver of 70", "amdxdna_accel_driver of 71"})


class Energy(unittest.TestCase):
    def test_by_hand(self):
        """100 uJ a us; samples at 0, 10, ... us; a window from 15 to 35 with two inferences."""
        series = SimpleNamespace(name="npu: energy1", key="uJ", ts=list(range(0, 60_000, 10_000)),
                                 values=[1000 * n for n in range(6)])
        window = SimpleNamespace(start_ns=15_000, end_ns=35_000, length_ns=20_000, inferences=[1, 2])
        self.assertEqual(row_of(series, window), ("npu: energy1", 2, 2000, 1000, 1000, 500, Fraction(10**5)))
        window.end_ns = 60_000
        self.assertIsNone(row_of(series, window))

    def test_merged(self):
        """Beside a trace of one host: the table, and the truth inside its error."""
        host, at = os.uname().nodename, 1_000_000
        spans = [{"ph": "X", "name": "Inference", "pid": 5, "tid": 1, "ts": n * 100.0, "dur": 80.0,
                  "args": {"kind": "inference"}} for n in range(20)]
        about = {"version": "1.0.0", "host": host, "program": "p", "pid": 5, "start_unix_ns": 10**18,
                 "start_boottime_ns": at, "start_monotonic_ns": at, "threads": 1, "lost": {}, "devices": [],
                 "clock": {"source": "kernel", "hz": GB, "error_ns": 0}, "recorded": 20}
        run = {"traceEvents": spans, "metadata": {"npuprof": about}}
        (scratch() / "run.json").write_text(json.dumps(run))
        clock, source = Clock(), Source("npu", "energy1", "uJ", None, 1, True)
        clock.ns = at - 50_000
        sampler = command.Sampler([source], Clients(scratch() / "root"), [], clock)
        source.read = lambda: clock.ns // 100                       # 10 uJ a us
        for _ in range(300):
            sampler.tick()
            clock.ns += 10_000
        with contextlib.redirect_stderr(io.StringIO()):
            command.write(sampler, str(scratch() / "counters.json"), 0.01)
        text = json.loads((scratch() / "counters.json").read_text())
        text["metadata"]["npuprof"] |= {"start_unix_ns": 10**18 - 49_000, "start_boottime_ns": at - 49_000}
        (scratch() / "counters.json").write_text(json.dumps(text))
        helpers.npuprof_py("merge", "run.json", "counters.json", "-o", "both.json")
        helpers.npuprof_py("report", "both.json", "--table", "energy", "--json", "out.json")
        table = helpers.load(scratch() / "out.json")["tables"]["energy"]
        cells, = table["rows"]
        row = {column["name"]: cell for column, cell in zip(table["columns"], cells)}
        window = Facts(npuprof.load(scratch() / "both.json")).window
        self.assertAlmostEqual(window.length_ns, 1_980_000)
        self.assertLessEqual(abs(row["energy_uj"] - 19_800), row["error_uj"])
        self.assertLess(row["error_uj"], 300)
        self.assertAlmostEqual(row["per_inference_uj"], row["energy_uj"] / 20, delta=1)


class Command(unittest.TestCase):
    def test_program(self):
        """Exit code and output are the program's; a trace is written, which check reads."""
        done = helpers.npuprof_py("counters", "-o", "c.json", "--period", "5", "--", "sh", "-c",
                                  "echo out; exit 3", code=3)
        self.assertEqual(done.stdout, "out\n")
        self.assertIn("samples of", done.stderr)
        about = helpers.load(scratch() / "c.json")["metadata"]["npuprof"]
        self.assertEqual((about["program"], about["user"]["period_ms"]), ("counters", "5"))

    def test_refusals(self):
        for words, said in ((["--period", "0", "1"], "--period 0: from 1 to 60000 ms"),
                            (["1e9"], "a day at most"),
                            (["--", "no such program"], "no such program: no such command")):
            self.assertRegex(helpers.refused("counters", "-o", "c.json", *words), said)
        helpers.npuprof_py("counters", "--list", said="")


if __name__ == "__main__":
    unittest.main()
