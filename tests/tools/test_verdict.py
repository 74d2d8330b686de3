# test: time=180 - the verdict as JSON, as a screen and as a gate, and of a part of a trace
# SPDX-License-Identifier: MIT
import json
import tomllib
import unittest
from fractions import Fraction

import helpers
import npuprof
import planted
from npuprof.analysis.facts import Facts
from npuprof.analysis.roofline import description_of
from npuprof.analysis.rules import RULES
from npuprof.analysis.verdict import as_json, judge
from npuprof.report import screen, words

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

    @helpers.thorough
    def test_screen(self):
        """One screen: 100 columns, 24 lines, no names of rules; no finding is an answer."""
        for name in planted.CASES:
            lines = list(screen.lines(judged(name)))
            self.assertLessEqual(len(lines), 24, name)
            self.assertLessEqual(max(map(len, lines)), 100, name)
            self.assertEqual([rule.name for rule in RULES if rule.name.replace("_", "") != rule.name
                              and rule.name in " ".join(lines)], [], name)
        done = self.report("P1", "--verdict")
        text = " ".join(done.stdout.split())
        self.assertIn("No finding: nothing but a faster device, or more PEs (processing elements) of it, "
                      "promises more than 2 % of the median inference.", text)
        self.assertRegex(text, r"The time is in MatMul: \d+ % of it, bound by compute at 98 % of the peak\.")

    def test_first_screen(self):
        """A finding with its bar, a second one in a line, what was not looked at; as text and as JSON."""
        done = self.report("P25")
        self.assertEqual(done.stdout.split("\n\n")[0], """\
P25.json: 200 inferences in 296 ms, median 1.48 ms, longest 1.48 ms; device busy 86 %; clock +-1 us;
  nothing lost
1 Load earlier what op7 needs: 15 % less latency, 17 % less device time, sure
  now   ########################################  1.48 ms
  then  ##################################        1.26 ms  (transfers twice as fast)
  transfers run alone for 312 us of each execution (25 %), 300 us of it before this operator
  -> load its data earlier (one more buffer), keep it on the device, or shrink it
2 Keep the device at work while the host is in tokenize: 14 % less latency, sure
A device twice as fast: 43 % less latency.
Most time of 8 operators: op1 13 %, op2 13 %, op3 13 %.
Not looked at: memory that grows; full memory
Record to know more: memory records with a change: PROF_ALLOC and PROF_FREE""")
        first = json.loads(self.report("P25", "--verdict", "json").stdout)["first_screen"]
        self.assertEqual([first["first"]["do"], *(one["do"] for one in first["next"])],
                         ["Load earlier what op7 needs",
                          "Keep the device at work while the host is in tokenize"])
        bar = first["first"]["bar"]
        self.assertEqual((bar["of"], bar["now"], bar["then"]), ("median inference", "1.48 ms", "1.26 ms"))
        self.assertLessEqual(bar["low_ns"], bar["high_ns"])
        self.assertEqual(first["not_looked_at"], ["memory that grows", "full memory"])

    def test_hatched(self):
        """The part of a bar that may be there or not is hatched, as long as the interval."""
        [then] = [line for line in screen.lines(judged("P14")) if line.startswith("  then")]
        self.assertRegex(then, r"^  then  #{22}/{9} +0\.565 to 0\.790 ms  \(twice as fast\)$")

    def test_most_is_missing(self):
        """A trace that is not whole promises nothing."""
        text = " ".join(" ".join(screen.lines(judged("P23"))).split())
        self.assertIn("1 Record again: this trace is not whole (sure)", text)
        self.assertIn("No gains are told: too much is missing.", text)
        self.assertNotIn("less latency", text)

    def test_holes(self):
        """Where something may be missing anywhere, and nobody knows how much, no gain is sure."""
        case = planted.case("P25")
        for key, sure in (("ends_with_flush", True), ("damaged_places", False),
                          ("changed_while_read", False)):
            path = case.write(helpers.scratch() / "holes.json")
            trace = helpers.load(path)
            trace["metadata"]["npuprof"][key] = 1
            path.write_text(json.dumps(trace))
            verdict = judge(Facts(npuprof.load(path)))
            found = {finding.confidence for finding in verdict.findings if finding.rule.kind != "trust"}
            self.assertEqual("sure" in found, sure, (key, found))

    def test_words_of_gains(self):
        """Whole percents: 0 only below 0.5; a change that may cost says so."""
        for gain, text in (((0, "0.4"), "0 % less latency"), ((0, "0.5"), "0 to 1 % less latency"),
                           (("45.4", "45.8"), "45 to 46 % less latency"), ((46, "46.2"), "46 % less latency"),
                           ((-5, 49), "5 % more to 49 % less latency"), ((-5, -2), "2 to 5 % more latency")):
            self.assertEqual(words.brings(tuple(map(Fraction, gain))), text)
        for ns, like, text in ((2_079_856, 643_595, "2080 us"), (596, 643_595, "0.596 us"),
                               (12_340_000, 2_000_000, "12.3 ms"), (15, 20, "15 ns")):
            self.assertEqual(words.in_unit(ns, like), text)

    def test_gate(self):
        for name, gate, code, said in (
                ("P2", "host_bound", 1, "--fail-on host_bound: the device is idle"),
                ("P2", "V2", 1, "--fail-on V2"), ("P2", "any", 1, "--fail-on any: host_bound tokenize"),
                ("P2", "sure", 1, "--fail-on sure"), ("P5", "sure", 0, None), ("P5", "likely", 1, "off_cpu"),
                ("P1", "any", 0, None), ("P1", "idle_pct>20", 0, None),
                ("P2", "idle_pct>20", 1, "idle_pct is"),
                ("P2", "p50_ns>1000000,V7", 1, "p50_ns is 10070"), ("P2", "V7,rate_per_s<10", 0, None)):
            done = self.report(name, "--verdict", "--fail-on", gate, code=code, said="")
            if said:
                self.assertIn(said, done.stdout.splitlines()[-1])

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
        self.assertEqual([rule.number for rule in RULES], [f"V{n}" for n in range(len(RULES))])
        for rule in RULES:
            self.assertTrue(rule.judge.__doc__, rule.name)
        self.assertEqual(len({rule.name for rule in RULES}), len(RULES))
        self.assertEqual(list(words.WORDS), [rule.name for rule in RULES])

    def test_empty(self):
        path = helpers.scratch() / "nothing.json"
        path.write_text('{"traceEvents":[{"ph":"X","name":"a","pid":1,"tid":1,"ts":1,"dur":1}]}')
        done = helpers.npuprof_py("report", path, "--verdict", said="")
        self.assertIn("No finding", done.stdout)
        self.assertEqual(as_json(judge(Facts(npuprof.load(path))))["findings"], [])
