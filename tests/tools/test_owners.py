# test: time=60 - findings are what owns the critical path: none that the replay's own table contradicts
# SPDX-License-Identifier: MIT
import json
import random
import unittest
from fractions import Fraction
from itertools import islice

import helpers
import npuprof
import planted
from grid.ask import asked, facts_of
from grid.driver import Run
from grid.shapes import cases
from npuprof.analysis import confidence, handovers, replay, whatif
from npuprof.analysis.facts import Facts
from npuprof.analysis.rules import RULES
from npuprof.analysis.verdict import judge
from npuprof.report import screen
from npuprof.report.first_screen import FirstScreen
from test_grid import case

HALF = Fraction(1, 2)


def driver(**shape):
    """(the case, its Facts) of the simulator."""
    one = case(**shape)
    return one, facts_of(Run(one), helpers.scratch() / "owners.json")


def brings(one, question):
    return 100 - 100 * Run(one, {question: 0.5}).median / Run(one).median


class Owners(unittest.TestCase):
    def of_table(self, facts):
        """Each row of the table that promises enough is a finding, a question, or no advice by itself."""
        verdict = judge(facts)
        told = {finding.change[:2] for finding in [*verdict.every(), *verdict.questions] if finding.change}
        for changes in whatif.usual(facts.part) if facts.replay.why is None else ():
            what, name, factor = changes[0]
            effect = facts.effect(*changes)
            alone = facts.owners.get((what, name), 0) > 90 or (
                what == "operator" and len(facts.engines.operators) < 2)
            if what not in ("device", "pes", "depth") and factor != 0 and not alone and effect and \
                    effect.inference and effect.inference[0] >= facts.threshold_pct:
                self.assertIn((what, name), told, float(effect.inference[0]))

    @helpers.thorough
    def test_table(self):
        for name in planted.CASES:
            with self.subTest(case=name):
                self.of_table(Facts(npuprof.load(planted.case(name).write(helpers.scratch() / "t.json"))))
        for shape in ({}, {"submitters": 4}, {"submitters": 2, "lock": "visible"}, {"wait": "sampled"},
                      {"records": "instructions"}, {"submitters": 4, "pes": 4, "barrier": True}):
            with self.subTest(shape=shape):
                self.of_table(driver(**shape)[1])

    def test_one_feeder(self):
        """One thread packs for four PEs, so that none waits for long: it is what to change."""
        one, facts = driver(pes=4, depth=8, noise=0.01)
        one = one._replace(numbers=one.numbers | {"prepare": 4})
        facts = facts_of(Run(one), helpers.scratch() / "owners.json")
        first = FirstScreen(judge(facts)).first.finding
        self.assertEqual(first.subject, "prepare")
        low, high = facts.effect(("host", "prepare", HALF)).inference
        self.assertTrue(low - 0.5 <= brings(one, "host:prepare") <= high + 0.5)

    def test_whole_executions(self):
        """Kernels without instructions are operators: the one that takes most is what to change."""
        lines, draw, now = [], random.Random(2), 1000.0
        for n in range(80):
            begin = now
            for k, (name, us) in enumerate((("attention", 600), ("mlp", 300), ("norm", 40))):
                span(lines, 1, "submit", now, now + 5)
                start, end = now + 8, now + 8 + us * draw.uniform(0.97, 1.03)
                span(lines, 3, name, start, end, stamp="device", pe_index=0, execution_index=3 * n + k,
                     error_ns=200)
                for phase, tid, at in (("s", 1, now), ("f", 3, start)):
                    lines.append({"ph": phase, "name": "submit", "cat": "submit", "id": 3 * n + k, "pid": 1,
                                  "tid": tid, "ts": round(at, 3), "bp": "e"})
                span(lines, 1, "wait", now + 5, end + 10, kind="wait")
                now = end + 10
            span(lines, 1, "Inference", begin, now, kind="inference")
            now += 1
        verdict = judge(written(lines))
        self.assertEqual([one.subject for one in verdict.findings if one.rule.name == "hot_operator"],
                         ["attention", "mlp"])
        self.assertAlmostEqual(float(verdict.findings[0].gain[0]), 100 * 300 / 992, delta=1)

    def test_host_only(self):
        """An interpreter's operators are spans of the host, and there is no device at all."""
        lines, now = [], 1000.0
        for _ in range(40):
            begin = now
            for name, us in (("CONV_2D", 840), ("SOFTMAX", 30), ("FULLY_CONNECTED", 130)):
                span(lines, 1, name, now, now + us, operator_index=1)
                now += us
            span(lines, 1, "Inference", begin, now, kind="inference")
        verdict = judge(written(lines))
        self.assertEqual([one.subject for one in verdict.findings], ["CONV_2D", "FULLY_CONNECTED"])
        self.assertAlmostEqual(float(verdict.findings[0].gain[0]), 42, delta=0.1)
        self.assertNotIn("device", " ".join(screen.lines(verdict)).partition("Not looked at")[0])


def span(lines, tid, name, start, end, **args):
    lines.append({"ph": "X", "name": name, "cat": "c", "pid": 1, "tid": tid, "ts": round(start, 3),
                  "dur": round(end - start, 3), "args": args})


def written(lines):
    names = [{"ph": "M", "name": "thread_name", "pid": 1, "tid": tid, "args": {"name": name}}
             for tid, name in ((1, "worker"), (3, "npu PE 0"))]
    about = {"version": "0.1.0", "start_unix_ns": 10**18, "pid": 1, "lost": {},
             "devices": [{"name": "npu", "pe_count": 1}] if any(e["tid"] == 3 for e in lines) else []}
    path = helpers.scratch() / "written.json"
    path.write_text(json.dumps({"traceEvents": names + lines, "metadata": {"npuprof": about}}))
    return Facts(npuprof.load(path))


class Handovers(unittest.TestCase):
    SHAPES = ({"lock": "visible"}, {"lock": "hidden"}, {"barrier": True},
              {"lock": "visible", "barrier": True})

    def test_narrow(self):
        """Threads that wait for each other: the gain holds, and is known to 12 points; a lock inside a span
        is found, too."""
        for shape in self.SHAPES:
            one, facts = driver(submitters=4, pes=4, noise=0.05, **shape)
            for question in ("device", "host:prepare"):
                what, _, name = question.partition(":")
                low, high = facts.effect((what, name or None, HALF)).inference
                self.assertTrue(low <= brings(one, question) <= high and high - low < 12,
                                (shape, question, float(low), float(high), brings(one, question)))
            spans = {"visible": {"lock"}, "hidden": {"pack"}}.get(shape.get("lock"), set())
            self.assertEqual(facts.replay.handing, spans | ({"barrier"} if "barrier" in shape else set()))

    def test_none(self):
        """Threads that share nothing hand nothing over, and one thread never does."""
        for shape in ({"submitters": 4, "pes": 4}, {"submitters": 2, "pes": 2, "host_load": 1.5}, {}):
            _, facts = driver(noise=0.05, n=400, **shape)
            self.assertEqual(facts.replay.handing, set(), shape)

    def test_by_hand(self):
        """By chance is not at once: a span that ends whenever something else does, and one that is waited
        for by all."""
        self.assertIsNone(handovers.latest([(5, 1), (10, 1)], 10, 20, 2))
        self.assertIsNone(handovers.latest([(20, 1)], 10, 20, 2))
        self.assertIsNone(handovers.latest([(15, 2)], 10, 20, 2))
        self.assertEqual(handovers.latest([(12, 1), (15, 1), (17, 2), (20, 1)], 10, 20, 2), (15, 1))
        draw, often = random.Random(5), [(ns, 1) for ns in range(0, 10**8, 30_000)]
        spans = [(2, at, at + draw.randrange(200_000, 300_000)) for at in range(0, 9 * 10**7, 10**6)]
        ends = [(end - 5_000, 1) for _, _, end in spans]
        for moments, chance in ((often, True), (ends, False)):
            seen = handovers.how_many(moments, spans)
            self.assertEqual(seen, len(spans))
            self.assertEqual(handovers.by_chance(moments, spans, seen, 9 * 10**7), chance)

    def test_said_by_name(self):
        """A span called lock in threads that submit, and nothing shows what it waits for: not known."""
        for name, known in (("pack", True), ("take lock", False)):
            one, facts = driver(submitters=2, pes=2, noise=0.05)
            text = (helpers.scratch() / "owners.json").read_text().replace('"prepare"', f'"{name}"')
            (helpers.scratch() / "owners.json").write_text(text)
            effect = Facts(npuprof.load(helpers.scratch() / "owners.json")).effect(("device", None, HALF))
            self.assertEqual(effect.assumed, frozenset() if known else {replay.JOB}, name)
            self.assertTrue(effect.inference[0] <= brings(one, "device") + 0.5 and
                            effect.inference[1] >= brings(one, "device") - 0.5, name)


class Orders(unittest.TestCase):
    def test_first_come(self):
        """Two submitters share a queue: with a faster device their requests come in another order, and the
        bound of the trace's own order would be below the truth."""
        one = next(islice(cases("1"), 5, None))
        self.assertEqual([one.shape[key] for key in ("submitters", "pes", "arrivals")], [2, 1, "think time"])
        facts = facts_of(Run(one), helpers.scratch() / "owners.json")
        low, high = facts.effect(("device", None, HALF)).inference
        self.assertTrue(facts.replay.served_in_order)
        self.assertTrue(low <= brings(one, "device") <= high, (low, brings(one, "device"), high))

    def test_clock_error(self):
        """What a start takes is known but for the clock's error; without one it is known."""
        for error, most in ((200, 0), (0.1, 2)):
            facts = driver(error_us=error)[1]
            low, high = facts.effect(("dispatch", None, 0)).inference
            self.assertTrue(-0.1 <= low <= most and high > 0.5, (error, float(low), float(high)))
        self.assertLess(high - low, 0.1)

    def test_sampled(self):
        """What a sampled kernel's call takes is at most the device's."""
        one, facts = driver(wait="sampled", dispatch_us=400)
        effect = facts.effect(("device", None, HALF))
        self.assertEqual(effect.inference[0], 0)
        self.assertLess(brings(one, "device"), effect.inference[1])
        self.assertIn(replay.CALL, effect.assumed)
        self.assertIn("let the device stamp its jobs", " ".join(" ".join(screen.lines(judge(facts))).split()))

    def test_beside(self):
        """Of a span on a thread that submits nothing nobody knows who waits for it: from 0 to all of it."""
        one, facts = driver(wait="callback")
        effect = facts.effect(("host", "postprocess", HALF))
        self.assertEqual((effect.inference[0], effect.assumed), (0, {replay.JOB}))
        self.assertTrue(0.5 < brings(one, "host:postprocess") <= effect.inference[1])

    def test_sure(self):
        """Sure is a median that takes nothing for granted, of one thread with a marked wait for each job; a
        window, a start or few inferences never are."""
        half = "device", None, HALF
        for values, change, of, sure in (
                ({}, half, "latency", True), ({}, half, "throughput", False),
                ({}, ("dispatch", None, 0), "latency", False), ({"n": 29}, half, "latency", False),
                ({"submitters": 2}, half, "latency", False), ({"wait": "ioctl"}, half, "latency", False),
                ({"wait": "batch"}, half, "latency", False), ({"wait": "sampled"}, half, "latency", False)):
            facts = driver(**values)[1]
            found = confidence.of_gain(facts.replay, facts.effect(change), of)
            self.assertEqual(found == "sure", sure, (values, change, of))


class Answers(unittest.TestCase):
    def test_first(self):
        """The first answer of shapes that can be known is the owner that brings most."""
        for shape in ({"records": "instructions"}, {"records": "instructions", "submitters": 2},
                      {"submitters": 4, "pes": 4, "barrier": True, "records": "instructions"}):
            answers = asked(case(noise=0.01, **shape), helpers.scratch() / "a.json")
            self.assertEqual(answers.first, "right", shape)

    def test_states_come_last(self):
        """What promises nothing is said behind what may bring something."""
        kinds = [rule.kind for rule in RULES]
        self.assertEqual(set(kinds), {"trust", "gain", "state"})
        _, facts = driver(wait="ioctl", arrivals="poisson 50 %", n=120)
        answers = FirstScreen(judge(facts)).answers
        kinds = ["question" if one.sure == "unknown" else one.finding.rule.kind for one in answers]
        self.assertEqual(kinds, sorted(kinds, key="state".__eq__))
        self.assertEqual(set(kinds), {"gain", "question", "state"})

    def test_far_more(self):
        """What may bring far more than the first finding is asked before it, and only then."""
        for prepare in (0.02, 0.8):
            one = case(wait="ioctl", noise=0.01)
            one = one._replace(numbers=one.numbers | {"prepare": prepare, "finish": 0.1})
            answers = FirstScreen(judge(facts_of(Run(one), helpers.scratch() / "far.json"))).answers
            self.assertEqual(answers[0].sure == "unknown", prepare == 0.02, [answer.do for answer in answers])
            self.assertIn("unknown", [answer.sure for answer in answers])


if __name__ == "__main__":
    unittest.main()
