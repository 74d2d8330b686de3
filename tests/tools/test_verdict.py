# test: time=180 - the verdict as JSON, as a screen and as a gate, and of a part of a trace
# SPDX-License-Identifier: MIT
import json
import tomllib
import unittest

import helpers
import npuprof
import planted
from npuprof.analysis.facts import Facts
from npuprof.analysis.roofline import description_of
from npuprof.analysis.rules import RULES
from npuprof.analysis.verdict import as_json, judge
from npuprof.report import screen

def judged(name):
    """The Verdict on a planted case."""
    case = planted.case(name)
    trace = npuprof.load(case.write(helpers.scratch() / "verdict.json"))
    return judge(Facts(trace, description=description_of("toml", tomllib.loads(case.toml))))


class Forms(unittest.TestCase):
    def report(self, name, *arguments, **options):
        case = planted.case(name)
        path = case.write(helpers.scratch() / f"{name}.json")
        toml = helpers.scratch() / f"{name}.toml"
        toml.write_text(case.toml)
        return helpers.npuprof_py("report", path, "--device", toml, *arguments, **options)

    def test_json(self):
        done = self.report("P25", "--verdict", "json", said="")
        helpers.strict_json(done.stdout)
        found = json.loads(done.stdout)
        self.assertEqual(found["npuprof_report"], 1)
        self.assertEqual([f["rule"] for f in found["findings"]], ["dma_bound", "host_bound"])
        for finding in found["findings"]:
            self.assertEqual(set(finding), {"rule", "number", "subject", "sentence", "advice", "evidence",
                                            "certain_ns", "gain", "confidence", "hidden", "rows", "spans",
                                            "followers"})
            low, high = finding["gain"]["inference_pct"]
            self.assertLessEqual(low, high)
            self.assertTrue(finding["rows"])
        self.assertEqual({entry["rule"] for entry in found["not_evaluated"]}, {"leak", "memory_tight"})
        again = self.report("P25", "--verdict", "json")
        self.assertEqual(done.stdout, again.stdout)

    def test_screen(self):
        """One screen: 100 columns, 24 lines; no finding is an answer."""
        for name in planted.CASES:
            lines = list(screen.lines(judged(name)))
            self.assertLessEqual(len(lines), 24, name)
            self.assertLessEqual(max(map(len, lines)), 100, name)
        done = self.report("P1", "--verdict")
        self.assertIn("No finding: no change promises more than 2.0 % of the median", done.stdout)
        words = " ".join(done.stdout.split())
        self.assertRegex(words, r"MatMul takes \d+ % of it, bound by compute at 98 %")

    def test_gate(self):
        for name, gate, code, words in (
                ("P2", "host_bound", 1, "--fail-on host_bound: the device is idle"),
                ("P2", "V2", 1, "--fail-on V2"), ("P2", "any", 1, "--fail-on any: host_bound tokenize"),
                ("P2", "sure", 1, "--fail-on sure"), ("P5", "sure", 0, None), ("P5", "likely", 1, "off_cpu"),
                ("P1", "any", 0, None), ("P1", "idle_pct>20", 0, None),
                ("P2", "idle_pct>20", 1, "idle_pct is"),
                ("P2", "p50_ns>1000000,V7", 1, "p50_ns is 10070"), ("P2", "V7,rate_per_s<10", 0, None)):
            done = self.report(name, "--verdict", "--fail-on", gate, code=code, said="")
            if words:
                self.assertIn(words, done.stdout.splitlines()[-1])

    def test_gate_that_sees_nothing(self):
        done = self.report("P1", "--verdict", "--fail-on", "leak", code=2)
        self.assertIn("could not run", done.stderr)
        self.report("P1", "--verdict", "--fail-on", "leak?")
        for gate in ("nonsense", "idle_pct", "V99"):
            done = self.report("P1", "--fail-on", gate, code=2, printed="")
            self.assertEqual(done.stderr.count("\n"), 1)
        for gate in ("nothing_known>3", "idle_pctt>20?", "largest_idle>1?"):
            self.report("P1", "--verdict", "--fail-on", gate, code=2)

    def test_gate_beside_json(self):
        done = self.report("P2", "--verdict", "json", "--fail-on", "any", code=1)
        self.assertEqual(json.loads(done.stdout)["findings"][0]["rule"], "host_bound")
        self.assertEqual(done.stderr, "--fail-on any: host_bound tokenize\n")

    def test_part(self):
        """Of a part of the trace, the verdict is about that part."""
        done = self.report("P18", "--inference", "1-90", "--verdict", "json")
        self.assertEqual([f["rule"] for f in json.loads(done.stdout)["findings"]], [])
        done = self.report("P18", "--verdict", "json", "--inference", "50-150")
        self.assertEqual([f["rule"] for f in json.loads(done.stdout)["findings"]], ["throttled"])
        done = self.report("P20", "--verdict", "json", "--inference", "15-100")
        self.assertEqual(json.loads(done.stdout)["findings"], [])

    def test_rules_are_documented(self):
        self.assertEqual([rule.number for rule in RULES], [f"V{n}" for n in range(23)])
        for rule in RULES:
            self.assertTrue(rule.judge.__doc__, rule.name)
        self.assertEqual(len({rule.name for rule in RULES}), 23)

    def test_empty(self):
        path = helpers.scratch() / "nothing.json"
        path.write_text('{"traceEvents":[{"ph":"X","name":"a","pid":1,"tid":1,"ts":1,"dur":1}]}')
        done = helpers.npuprof_py("report", path, "--verdict", said="")
        self.assertIn("No finding", done.stdout)
        self.assertEqual(as_json(judge(Facts(npuprof.load(path))))["findings"], [])
