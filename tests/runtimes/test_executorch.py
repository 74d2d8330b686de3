# test: - examples/runtimes/executorch on declarations of ExecuTorch: each event nested as it ran, the inner
# tracer told everything, and each device span a delegate event within its error
# SPDX-License-Identifier: MIT
import collections
import json
import unittest

import helpers
from helpers import environment, events, load, run, scratch
from runtimes import hosts

RUNS = 200
TICK = 40       # ns


class Executorch(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        program = hosts.built("executorch_host.cpp", "c++17", "executorch")
        json_path, dump, truth = (scratch() / name for name in ("et.json", "et.txt", "et.truth"))
        run([program, RUNS, json_path, dump, truth], code=0, printed="", said="", env=environment())
        cls.trace, cls.dump = load(json_path), dump.read_text().splitlines()
        cls.truth = [line.split(None, 4) for line in truth.read_text().splitlines()]

    def test_inner_tracer_is_told_everything(self):
        """In order, with its own ids, and with the handle that the runtime told the outer one."""
        told = [line for line in self.dump if not line.startswith(("log conv", "lost", "zero"))]
        self.assertEqual(told[:2], ["pool planned", "bytes 5 64"])
        wanted = []
        for number in range(RUNS):
            n = 100 + 4 * number
            wanted += ["block Execute", f"start {n} {0 if number else -1} 0 Method::execute",
                       f"start {n + 1} 0 42 native_call_add.out", f"end {n + 1}",
                       f"start {n + 2} 0 0 DELEGATE_CALL", f"delegate {n + 3} - 17",
                       *{1: ["host part"], 2: ["strange clock"]}.get(number, []),
                       f"delegate-end {n + 3} m", f"end {n + 2}", f"end {n}"]
        told = [line[4:].partition(" -1")[0] if line.startswith("log") else line for line in told[2:]]
        self.assertEqual(told, wanted)

    def test_device_spans_come_in_executorchs_ticks(self):
        zero = int(self.dump[-1].split()[1])
        self.assertEqual(self.dump[-2], "lost 0")
        given = [line for line in self.dump if line.startswith("log conv")]
        ran = [own for own in self.truth if own[4] == "conv on the NPU"]
        self.assertEqual((len(given), len(ran)), (RUNS, RUNS))
        for line, (number, _, start, end, _) in zip(given, ran):
            name, rest = line[4:].split(" -1 ")
            begin, finish, metadata = rest.split(None, 2)
            metadata = helpers.strict_json(metadata)
            self.assertEqual((name, metadata["job"]), ("conv on the NPU", int(number)))
            for ticks, real in ((begin, start), (finish, end)):
                self.assertLessEqual(abs(int(ticks) * TICK + zero - int(real)), metadata["error_ns"])
        errors = sorted(helpers.strict_json(line[line.index("{"):])["error_ns"] for line in given)
        print(f"note error_ns: median {errors[len(errors) // 2]}")
        self.assertLess(errors[len(errors) // 2], 50000)

    def test_own_timeline(self):
        spans = events(self.trace, "X")
        counts = collections.Counter((e.get("cat"), e["name"]) for e in spans
                                     if "stamp" not in e.get("args", {}))
        self.assertEqual(counts, {
            ("executorch", "Method::execute"): RUNS, ("executorch", "native_call_add.out"): RUNS,
            ("executorch", "DELEGATE_CALL"): RUNS, ("delegate", "delegate 17"): RUNS,
            ("NPU", "conv on the NPU"): RUNS, ("NPU", "before the tracer"): 1, ("delegate", "host part"): 1,
            ("delegate", "strange clock"): 1, ("executorch", "without an inner one"): 1})
        (handle,) = {e["args"]["debug_handle"] for e in spans if e["name"] == "native_call_add.out"}
        self.assertEqual(handle, 42)

    def test_delegates_own_stamps(self):
        calls = [e for e in events(self.trace, "X") if e["name"] == "delegate 17"]
        (known,) = events(self.trace, "X", "host part")
        (strange,) = events(self.trace, "X", "strange clock")
        inside = lambda e, call, slack: (call["ts"] - slack <= e["ts"] and
                                         e["ts"] + e["dur"] <= call["ts"] + call["dur"] + slack)
        self.assertTrue(inside(known, calls[1], known["args"]["error_ns"] / 1000 + 1))
        self.assertLess(known["args"]["error_ns"], 1000000)
        self.assertNotIn("clock", known["args"])
        self.assertTrue(inside(strange, calls[2], 1))
        self.assertEqual([strange["args"][key] for key in ("clock", "start_ticks", "end_ticks")],
                         ["unknown", 5, 1000000])
        self.assertAlmostEqual(strange["args"]["error_ns"] / 1000, strange["dur"], delta=0.1)


if __name__ == "__main__":
    unittest.main()
