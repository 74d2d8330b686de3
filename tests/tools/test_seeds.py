# test: time=180 - programs written for older profilers (Furiosa's, RAF's) run with one import changed, in
# Python and in C++; their environment names count
# SPDX-License-Identifier: MIT
import csv
import json
import pathlib
import sys
import textwrap
import unittest

import helpers
from helpers import ROOT, environment, events, load, run, scratch

TOOLS = ROOT / "tools"
# Furiosa's documents, with a session of our own in the place of its runtime.
FURIOSA = """
from npuprof.seeds.furiosa import RecordFormat, profile
import npuprof

class session:
    def run(self, n):
        with npuprof.inference():
            with npuprof.operator(0, "Quantize"):
                return n * 2

sess = session()
"""


def python(code, said="", interpreter=sys.executable, **env):
    path = f"import sys\nsys.path.insert(0, {str(TOOLS)!r})\n"
    return run([interpreter, "-c", path + textwrap.dedent(code)], code=0, said=said,
               env=environment(**env), cwd=scratch())


def with_pandas():
    """A Python that has pandas."""
    for interpreter in (sys.executable, "/usr/bin/python3"):
        probe = "import sys, pandas; sys.exit(sys.version_info < (3, 11))"
        if pathlib.Path(interpreter).exists() and not run([interpreter, "-c", probe]).returncode:
            return interpreter
    raise unittest.SkipTest("pandas is not installed (package python3-pandas)")


class Furiosa(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        helpers.tool("libnpuprof.so")

    def test_a_file(self):
        python(FURIOSA + """
with open("mnist_trace.json", "w") as output:
    with profile(file=output) as profiler:
        with profiler.record("warm up") as record:
            for _ in range(0, 10):
                sess.run(1)
        with profiler.record("trace") as record:
            for _ in range(0, 10):
                sess.run(1)
""")
        trace = load(scratch() / "mnist_trace.json")
        self.assertEqual(len(events(trace, "X", "Inference")), 20)
        self.assertEqual({e["name"] for e in events(trace, "X") if e["args"].get("kind") == "record"},
                         {"warm up", "trace"})

    def test_tables(self):
        out = python(FURIOSA + """
with profile(format=RecordFormat.PandasDataFrame) as profiler:
    with profiler.record("trace") as record:
        for _ in range(0, 2):
            sess.run(1)
profiler.print_summary()
profiler.print_inferences()
profiler.print_npu_executions()
profiler.print_npu_operators()
profiler.print_external_operators()
trace = profiler.load()
inferences = [i for i in range(len(trace)) if trace.text(i) == "Inference"]
operators = [i for i in range(len(trace)) if trace.text(i) == "Quantize"]
ids = [trace.trace_id(i) for i in inferences]
assert len(set(ids)) == 2 and ids == [trace.trace_id(i) for i in operators], ids
assert ids == [one for one, _ in trace.ids_of(inferences)], ids
assert trace.trace_id(0) not in ids and trace.text(0) == "trace"
print(*ids)
""").stdout
        self.assertIn("Inference Results Summary", out)
        self.assertRegex(out, r"Inference counts +: 2")
        for one in out.split()[-2:]:                       # the tables have these ids, too
            self.assertGreaterEqual(out.count(one), 3)

    def test_data_frame_and_pauses(self):
        interpreter = with_pandas()
        python(FURIOSA + """
from npuprof.seeds.furiosa import Resource
with profile(format=RecordFormat.PandasDataFrame) as profiler:
    profiler.pause()
    for _ in range(0, 10):
        with profiler.record("warm up") as record:
            sess.run(1)
    profiler.resume()
    with profiler.record("trace") as record:
        sess.run(1)
df = profiler.get_pandas_dataframe()
assert len(df[df["name"] == "trace"]) == 1
assert len(df[df["name"] == "warm up"]) == 0
assert list(df[df["name"] == "trace"][["trace_id", "name", "thread.id", "dur"]]["dur"]) > [0]
assert len(profiler.get_cpu_pandas_dataframe()) == len(df) and not len(profiler.get_npu_pandas_dataframe())
assert len(profiler.get_pandas_dataframe_with_filter("name", "Quantize")) == 1
profiler.export_chrome_trace("chrome.json")
with profile(Resource.NPU, RecordFormat.PandasDataFrame) as profiler:
    sess.run(1)
assert len(profiler.get_pandas_dataframe()) == 0
from npuprof import profile
with profile(file="own.json", format="PandasDataFrame") as p:
    sess.run(1)
assert len(p.get_pandas_dataframe()) == 2
""", interpreter=interpreter)

    def test_mistakes(self):
        out = python(FURIOSA + """
from npuprof import Refused
for call in (lambda: profile(format="Arrow"), lambda: profile(resource="GPU")):
    try:
        call()
    except Refused as refused:
        print(refused)
""").stdout
        self.assertEqual(out, "format 'Arrow': it is RecordFormat.ChromeTrace or "
                              "RecordFormat.PandasDataFrame\n"
                              "resource 'GPU': it is Resource.ALL, CPU or NPU\n")


class Raf(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        helpers.tool("libnpuprof.so")

    def test_latency(self):
        python("""
            import json
            import npuprof
            from npuprof.seeds import raf
            def run():
                with npuprof.scope("raf_op_tvm_cast_76", "Default Stream",
                                   args_string="T<768xf32>,|T<768xf16>"):
                    pass
                with npuprof.scope("detail", "VMInstruction", level=2):
                    pass
            raf.utils.profiler.clear()
            raf.utils.profiler.start()
            run()
            raf.utils.profiler.stop()
            run()
            result = raf.utils.profiler.get()
            assert result == raf.utils.profiler.get()
            with open("profile.json", "w") as filep:
                json.dump(result, filep, indent=4)
            assert raf.utils.profiler.get_duration(result, "raf_op_tvm_cast_76", "Default Stream") >= 0
            try:
                raf.utils.profiler.get_duration(result, "other")
            except ValueError:
                pass
            raf.utils.profiler.dump("own.json")
            raf.utils.profiler.clear()
            assert raf.utils.profiler.get()["traceEvents"] == []
            raf.utils.profiler.start(prof_level=2)
            run()
            npuprof.stop()
            assert len(npuprof.get()["traceEvents"]) == 4
            npuprof.clear()
            """)
        result = json.loads((scratch() / "profile.json").read_text())
        self.assertEqual(result["displayTimeUnit"], "ms")
        self.assertEqual([(e["name"], e["cat"], e["ph"], e["args"]) for e in result["traceEvents"]],
                         [("raf_op_tvm_cast_76", "Default Stream", phase,
                           {"args_string": "T<768xf32>,|T<768xf16>"}) for phase in "BE"])
        self.assertTrue(all(isinstance(e["ts"], int) and e["ts"] > 10**15 for e in result["traceEvents"]))
        self.assertEqual(len(events(load(scratch() / "own.json"), "X")), 1)

    def test_memory(self):
        out = python("""
            import npuprof
            from npuprof.seeds import raf
            raf.utils.memory_profiler.reset()
            raf.utils.memory_profiler.start()
            for used, allocated, tag in ((1, 4, "embed"), (3, 4, "loss"), (2, 6, "grad"), (1, 5, "end")):
                npuprof.memory(used << 20, allocated << 20, tag, "cuda")
            raf.utils.memory_profiler.stop()
            result = raf.utils.memory_profiler.get_max_memory_info(raf.Device("cuda"))
            print(result["max_used"].value, result["max_allocated"].value, int(result["max_trace_idx"].value),
                  int(result["num_gc"].value))
            assert raf.utils.memory_profiler.get_memory_trace(raf.Device("other")) == ""
            print(raf.utils.memory_profiler.get_memory_trace(raf.Device("cuda")))
            """).stdout.splitlines()
        self.assertEqual(out[0], "3.0 6.0 1 1")
        self.assertEqual([line.split() for line in out[2:6]],
                         [["#Trace", "#Tag", "used", "alloc"], ["0", "embed", "1", "4"],
                          ["1", "loss", "3", "4"], ["2", "grad", "2", "6"]])

    def test_operators(self):
        python("""
            from npuprof.seeds.raf import Device, _ffi
            calls = []
            op, device = _ffi.op_profiler, Device("cpu")
            def expr():
                calls.append(1)
            expr.workspace_size = 40566096
            op.ResetCache(device)
            res = op.Profile(expr, device, 2, 3, 4)
            assert len(calls) == 2 + 3 * 4 and len(res["latency"]) == 4 and res["latency"][0].value > 0
            assert res["workspace_size"].value == 40566096.0
            op.Profile(expr, device, 2, 3, 4)
            assert len(calls) == 14 and op.GetCacheSize(device) == 1 and op.GetCacheSize(Device("x")) == 0
            op.ResetCache(device)
            assert op.GetCacheSize(device) == 0
            """)

    def test_environment(self):
        code = "import npuprof.seeds, npuprof\nwith npuprof.scope('a'): pass\n"
        furiosa, nux, own = "FURIOSA_PROFILER_OUTPUT_PATH", "NUX_PROFILER_PATH", "NPUPROF_OUTPUT_PATH"
        for names, expected in (({furiosa: "f.json", nux: "n.json"}, "f.json"), ({nux: "n.json"}, "n.json"),
                                ({own: "own.json", nux: "no.json"}, "own.json")):
            python(code, **names)
            self.assertEqual(len(events(load(scratch() / expected), "X", "a")), 1)
        self.assertFalse((scratch() / "no.json").exists())
        python(code, ENGINE_PROFILING="0")
        self.assertFalse((scratch() / "engine_profiling").exists())
        python(code, ENGINE_PROFILING="1")
        (written,) = (scratch() / "engine_profiling" / "profiling_trace").glob("*.json")
        self.assertEqual(len(events(load(written), "X", "a")), 1)
        (written,) = (scratch() / "engine_profiling" / "profiling_csv").glob("*.csv")
        self.assertIn("a", [row[6] for row in csv.reader(written.open(newline=""))])


class RafInCpp(unittest.TestCase):
    def built(self, name, *flags):
        return helpers.build("seed_raf.cpp", name, *helpers.WARNINGS, "-Wno-conversion",
                             "-Wno-sign-conversion", f"-I{ROOT / 'examples/seeds'}", *flags)

    def recorded(self, program, printed, **env):
        path = scratch() / "raf.json"
        path.unlink(missing_ok=True)
        run([program], code=0, said="", printed=printed, env=environment(**env))
        return load(path)

    @helpers.thorough
    def test_call_shapes(self):
        path = str(scratch() / "raf.json")
        for standard in ("c++11", "c++17"):
            program = self.built(f"raf-{standard}", f"-std={standard}")
            for names in ({"NPUPROF_OUTPUT_PATH": path}, {"NUX_PROFILER_PATH": path}):
                trace = self.recorded(program, "6\n", **names)
                found = [(e["name"], e["cat"], e.get("args", {}).get("args_string"))
                         for e in sorted(events(trace, "X"), key=lambda e: (e["ts"], -e["dur"]))]
                self.assertEqual(found, [
                    ("raf.op.dense", "MemoryRequest", "Count: 3"),
                    ("of TVM", "Default Stream", "T<768xf32>,;T<768xf16>"), ("inner", "Default Stream", None),
                    ("raf.op.dense", "Default Stream", "on a device"),
                    ("loop", "left", None), ("loop", "left", None), ("returns", "left", None)])
                self.assertEqual([e["args"] for e in events(trace, "C", "host")],
                                 [{"used": 1 << 20, "allocated": 2 << 20}])
        trace = self.recorded(program, "6\n", NPUPROF_OUTPUT_PATH=path, NPUPROF_LEVEL="2")
        self.assertEqual(len(events(trace, "X", "loop at level 2")), 1)

    def test_off(self):
        run([self.built("raf-off", "-std=c++11", "-DNPUPROF_OFF")], code=0, printed="6\n", said="",
            env=environment(NPUPROF_OUTPUT_PATH=str(scratch() / "no.json")))
        self.assertFalse((scratch() / "no.json").exists())


if __name__ == "__main__":
    unittest.main()
