# test: time=60 - analyses over time, of memory and against the roof: by brute force and in fractions
# SPDX-License-Identifier: MIT
import itertools
import json
import random
import statistics
import tomllib
import unittest
import unittest.mock
from fractions import Fraction
from math import comb
from types import SimpleNamespace

import helpers
import npuprof
import planted
import small_traces
from npuprof.analysis import figures, holders, roofline, steady, tail
from npuprof.analysis.facts import Facts
from npuprof.analysis import polls
from npuprof.analysis.window import Selection, choose
from npuprof.base.messages import Refused


def planted_facts(name):
    case = planted.case(name)
    trace = npuprof.load(case.write(helpers.scratch() / "run.json"))
    return case, Facts(trace, description=roofline.description_of("x", tomllib.loads(case.toml)))


def job(at, n, error_ns):
    """The events of a submission and its execution, in us."""
    flow = {"name": "submit", "cat": "submit", "id": n + 1, "pid": 1}
    return [{"ph": "X", "name": "Submit", "pid": 1, "tid": 1, "ts": at, "dur": 10},
            {**flow, "ph": "s", "tid": 1, "ts": at}, {**flow, "ph": "f", "bp": "e", "tid": 2, "ts": at + 20},
            {"ph": "X", "name": "Execution", "pid": 1, "tid": 2, "ts": at + 20, "dur": 1000,
             "args": {"stamp": "device", "pe_index": 0, "error_ns": error_ns, "execution_index": n}}]


class Numbers(unittest.TestCase):
    def test_noise_of_a_median(self):
        """The ranks by the binomial distribution, in fractions."""
        for n in (*range(1, 60), 200, 999):
            k = figures.median_rank(n)

            def outside(k):
                return 2 * sum(Fraction(comb(n, i), 2**n) for i in range(k + 1))
            if k or n > 5:
                self.assertLessEqual(outside(k), Fraction(1, 20))
            self.assertGreater(outside(k + 1), Fraction(1, 20))
        self.assertEqual(figures.median_noise([5] * 9), 0)
        self.assertEqual(figures.median_noise(list(range(9))), 3)      # ranks 1 and 7

    def test_fisher(self):
        for a, n, b, m in ((3, 4, 1, 8), (5, 5, 0, 10), (0, 3, 2, 9), (2, 6, 5, 20)):
            both = a + b
            exact = sum(Fraction(comb(n, k) * comb(m, both - k), comb(n + m, both))
                        for k in range(a, min(n, both) + 1) if both - k <= m)
            self.assertAlmostEqual(tail.fisher(a, n, b, m), float(exact), places=9)

    def test_rank_and_trend(self):
        """Against all orders of the values; the normal distribution is near."""
        values = [1, 3, 4, 6, 7, 9, 10]
        for two in ({6, 7, 9, 10}, {1, 9, 3}, {4, 6, 7}):
            one = [v for v in values if v not in two]
            middle = Fraction(len(one) * (len(values) + 1), 2)
            own = abs(sum(values.index(v) + 1 for v in one) - middle)
            sums = [abs(sum(ranks) - middle) for ranks in itertools.combinations(range(1, 8), len(one))]
            exact = sum(s >= own for s in sums) / len(sums)
            self.assertAlmostEqual(steady.rank_p(one, sorted(two)), exact, delta=0.12)
        for order in ([1, 2, 3, 4, 5, 6], [2, 1, 4, 3, 6, 5], [3, 1, 2, 6, 5, 4]):
            def s(o):
                return abs(sum((b > a) - (b < a) for i, a in enumerate(o) for b in o[i + 1:]))
            exact = sum(s(o) >= s(order) for o in itertools.permutations(order)) / 720
            self.assertAlmostEqual(steady.kendall_p(order), exact, delta=0.05)

    def test_split(self):
        for seed in range(20):
            chance = random.Random(seed)
            values = [chance.randrange(50) + 40 * (k > 14) for k in range(30)]

            def cost(k):
                return sum(abs(v - sorted(part)[len(part) // 2]) for part in (values[:k], values[k:])
                           for v in part)
            best = min(range(8, 23), key=lambda k: (cost(k), k))
            self.assertEqual(steady.split_of(values), (best, cost(best)))


class OverTime(unittest.TestCase):
    def test_warm_up(self):
        """The definition, tried from every start."""
        for seed in range(60):
            chance = random.Random(seed)
            first = chance.choice((0, 0, 3, 7, 12, 25))
            own = [chance.randrange(950, 1050) + 2000 * (k < first) for k in range(chance.randrange(10, 50))]
            found = steady.warm_up_of(own)
            if len(own) < 20:
                self.assertIsNone(found)
                continue
            half = own[len(own) // 2:]
            middle = int(Fraction(statistics.median(half)) + Fraction(1, 2))
            spread = statistics.median([abs(v - middle) for v in half])
            allowed = max(middle * 0.05, 3 * 1.4826 * int(Fraction(spread) + Fraction(1, 2)))
            steady_from = [k for k in range(len(own) - 3) if all(
                abs(statistics.median(own[j:j + 5]) - middle) <= allowed for j in range(k, len(own) - 4))]
            if first <= len(own) // 2 - 3:
                self.assertEqual(found, first, seed)
                self.assertLessEqual(abs(found - min(steady_from)), 2)

    def test_warm_up_and_trend(self):
        """What grows over the run is no warm-up, and does not hide one. Nor are the first ones that are
        faster."""
        for seed in range(30):
            chance = random.Random(seed)
            n, jitter = chance.randrange(40, 400), chance.choice((0, 0.01, 0.05))
            first = chance.choice((0, 4, n // 5))

            def series(growth, early, n=n, jitter=jitter, chance=chance, first=first):
                return [round((350 + 800 * growth(k / (n - 1)) + early * (k < first)) * 1000
                              * chance.uniform(1 - jitter, 1 + jitter)) for k in range(n)]

            def line(x):
                return x
            self.assertEqual(steady.warm_up_of(series(line, 0)), 0, seed)
            found = steady.warm_up_of(series(line, 2500))
            self.assertEqual(found, first, seed)
            # A line is no model of it, but it is no warm-up either.
            self.assertFalse(steady.warm_up_of(series(lambda x: x * x, 0)), seed)
            self.assertFalse(steady.warm_up_of(series(lambda x: x ** 0.5, 0)), seed)
            self.assertFalse(steady.warm_up_of(series(lambda x: 0, -250)), seed)

    def test_period(self):
        for seed in range(20):
            chance = random.Random(seed)
            period = chance.randrange(10_000, 10_000_000)
            times = [n * period + chance.randrange(period // 50) for n in range(60) if chance.randrange(3)]
            found = steady.fitted(times, min(b - a for a, b in zip(times, times[1:])))
            self.assertAlmostEqual(found / period, 1, delta=0.001)
            self.assertGreater(steady.concentration(times, period), 0.95)
            self.assertLess(steady.concentration([chance.randrange(10**9) for _ in range(400)], period), 0.3)

    def test_polls(self):
        chance = random.Random(1)
        self.assertEqual(polls.period([700_000 * chance.randrange(1, 9) + 77 for _ in range(30)]), 700_000)
        self.assertEqual(polls.period([10**6 * chance.randrange(1, 9) + 77 for _ in range(30)]), 10**6)
        self.assertIsNone(polls.period([chance.randrange(10**9) for _ in range(30)]))
        self.assertIsNone(polls.period([5, 6, 7]))

    def test_phases_add_up(self):
        """Of every inference its duration; of the table the difference of the means."""
        for seed in range(20):
            small = small_traces.Small(seed)
            facts = Facts(npuprof.load(small.write(helpers.scratch() / "phases.json")))
            own = tail.Tail(facts)
            own.jobs_of = {}
            for k, inference in enumerate(facts.jobs.inference):
                own.jobs_of.setdefault(inference, []).append(k)
            for i in facts.window.inferences:
                self.assertEqual(sum(ns for *_, ns in own.path(i)), facts.trace.dur[i])
        case, facts = planted_facts("P16")
        [table] = tail.analyse(facts)
        durations = sorted(job.end - job.begin for job in case.run.jobs)
        slow, middle = durations[-6:], durations[240:360]
        delta = statistics.mean(slow) - statistics.mean(middle)
        self.assertAlmostEqual(sum(row[4] for row in table.rows), delta, delta=len(table.rows))
        self.assertAlmostEqual(float(sum(row[5] for row in table.rows)), 100, delta=0.1)

    def test_what_the_slow_ones_have_in_common(self):
        """10 of 200 take longer; each has the plant before it."""
        for plant, words in (("load", "10 of the 10 slow ones are where load is above its 95th percentile,"),
                             ("pause", "10 of the 10 slow ones are the first after a pause, 0 of"),
                             ("error", "10 of the 10 slow ones are where the clock's error is above"),
                             ("memory", "10 of the 10 slow ones are where npu0 memory grows, 0 of"),
                             ("nothing", None)):
            events = [{"ph": "M", "name": "thread_name", "pid": 1, "tid": tid, "args": {"name": name}}
                      for tid, name in ((1, "main"), (2, "npu0 PE 0"))]
            for n in range(200):
                at, slow = 1000 + 10_000 * n, n % 20 == 7
                if plant == "load":
                    events.append({"ph": "C", "name": "load", "pid": 1, "ts": at - 5,
                                   "args": {"value": 90 + n / 50 if slow else n % 7}})
                for what, gap in (("paused", 90), ("resumed", 20)) if plant == "pause" and slow else ():
                    events.append({"ph": "i", "s": "p", "name": f"npuprof {what}", "pid": 1, "tid": 1,
                                   "ts": at - gap})
                if plant == "memory":
                    events.append({"ph": "C", "name": "npu0 memory", "pid": 1, "tid": 1, "ts": at + 500,
                                   "args": {"used": n % 7, "allocated": 1000 + (n + 13) // 20}})
                dur = 4000 if slow else 2000 + abs(n - 90)
                events.append({"ph": "X", "name": "Inference", "cat": "c", "pid": 1, "tid": 1, "ts": at,
                               "dur": dur, "args": {"kind": "inference"}})
                if plant == "error":
                    events += job(at + 100, n, 900 + n if slow else 100 + n % 9)
            path = helpers.scratch() / "tail.json"
            about = {"npuprof": {"version": "0.1.0", "start_unix_ns": 1}}
            path.write_text(json.dumps({"traceEvents": events, "metadata": about}))
            own = tail.Tail(Facts(npuprof.load(path)))
            self.assertEqual(len(own.slow), 10)
            found = [text for text in own.cofactors if words and words in text]
            self.assertEqual((len(own.cofactors), len(found)), (bool(words), bool(words)), own.cofactors)

    def test_common_factor(self):
        """Three operators slower by one factor are told with any noise, and not by three, nor one alone."""
        for noise in (0.005, 0.02, 0.05):
            for factors, told in (((1.6,) * 3, True), ((1.6, 1.3, 1.45), False), ((1.6, 1, 1), False)):
                chance, trace, series = random.Random(noise), SimpleNamespace(start=[], dur=[]), {}
                for number, factor in enumerate(factors):
                    series[str(number), None] = list(range(120 * number, 120 * number + 120))
                    trace.start += range(0, 120_000, 1000)
                    trace.dur += [round(300_000 * chance.gauss(1, noise) * (factor if n >= 50 else 1))
                                  for n in range(120)]
                facts = SimpleNamespace(jobs=SimpleNamespace(devices=["npu"]), trace=trace)
                with (unittest.mock.patch.object(steady, "sampled", lambda *_, own=series: own),
                      unittest.mock.patch.object(steady, "exact_step", lambda *_: 0)):
                    self.assertEqual(steady.Drift(facts).common is not None, told, (noise, factors))

    def test_drift(self):
        case, facts = planted_facts("P18")
        self.assertEqual({row[0] for row in facts.drift.rows if row[3] == "step"},
                         {"op1", "op2", "op3", "Load", "Store"})
        for row in facts.drift.rows:
            own = sorted((a, b - a) for job in case.run.jobs for instr, a, b in job.spans
                         if instr.name == row[0])
            lengths = [ns for _, ns in own]
            self.assertEqual((row[5], row[6]), (lengths[0], lengths[-1]))
            self.assertEqual(row[7], Fraction(100 * (row[6] - row[5]), row[5]))


class Roof(unittest.TestCase):
    def test_against_the_model(self):
        case, facts = planted_facts("P15")
        for name in ("conv1", "MatMul"):
            own = [(instr.args, b - a) for job in case.run.jobs for instr, a, b in job.spans
                   if instr.name == name]
            ns = sum(ns for _, ns in own)
            ops, moved = (sum(args[key] for args, _ in own) for key in ("ops", "bytes"))
            limit = facts.roof[name]
            self.assertEqual(limit[:4], (len(own), ns, ops, moved))
            self.assertEqual(limit.compute_pct, Fraction(100 * ops, 1000 * ns))
            self.assertEqual(limit.memory_pct, Fraction(100 * moved, 20 * ns))
            self.assertEqual(limit.ideal_ns + limit.headroom_ns, ns)
        self.assertEqual((facts.roof["conv1"].bound, facts.roof["MatMul"].bound), ("overhead", "compute"))
        self.assertEqual(facts.roof["conv1"].waste_pct, 75)

    def test_work_of_shapes(self):
        self.assertEqual(roofline.work_of({"ne.type": "InnerProduct", "ne.input_shapes": "8x256",
                                           "ne.input_dtypes": "s8", "ne.weight_shape": "256x64",
                                           "ne.output_shapes": "8x64", "ne.output_dtypes": "fp32"}),
                         (2 * 8 * 256 * 64, 8 * 256 + 256 * 64 + 4 * 8 * 64))
        self.assertEqual(roofline.work_of({"ne.type": "Convolution", "ne.input_shapes": "1x3x8x8",
                                           "ne.output_shapes": "1x16x6x6", "ne.input_dtypes": "fp16",
                                           "ne.output_dtypes": "fp16", "ne.weight_shape": "16x3x3x3"}),
                         (2 * 16 * 6 * 6 * 3 * 3 * 3, 2 * (3 * 64 + 16 * 36 + 16 * 27)))
        self.assertEqual(roofline.work_of({"ne.type": "Softmax"}), (None, None))
        self.assertEqual(roofline.work_of({"ne.input_shapes": "1xbad"}), (None, None))

    def test_above_the_roof_is_refused(self):
        case = planted.case("P15")
        trace = npuprof.load(case.write(helpers.scratch() / "run.json"))
        low = roofline.description_of("x", {"peaks": {"ops_per_s": 1000}})
        facts = Facts(trace, description=low)
        self.assertEqual(dict(facts.roof), {})
        self.assertEqual(len(facts.roof.refused), 2)

    def test_descriptions(self):
        for text in ("[peaks]\nops_per_s = -1", "[peaks]\nops_per_s = true", "peaks = 3", "[peaks",
                     "[operators]\nA = { lanes = 0 }"):
            path = helpers.scratch() / "bad.toml"
            path.write_text(text)
            with self.assertRaises(Refused, msg=text):
                roofline.read_description(path)
        with self.assertRaises(Refused):
            roofline.read_description(helpers.scratch() / "nowhere.toml")


class Memory(unittest.TestCase):
    def test_of_a_part(self):
        """Peaks are of the chosen time; what was held when it began counts."""
        events = [{"ph": "X", "name": "Inference", "cat": "c", "pid": 1, "tid": 1, "ts": 1000 * n, "dur": 900,
                   "args": {"kind": "inference"}} for n in range(10)]
        for ts, used in ((500, 300), (2500, 950), (4500, 100), (7500, 400)):
            events.append({"ph": "C", "name": "npu memory", "pid": 1, "ts": ts,
                           "args": {"used": used, "allocated": 1000}})
        path = helpers.scratch() / "part.json"
        path.write_text(json.dumps({"traceEvents": events}))
        trace = npuprof.load(path)
        for between, peak, records in ((None, 950, 4), ("3000000:4000000", 950, 1),
                                       ("5000000:7000000", 100, 1), ("5000000:8000000", 400, 2)):
            facts = Facts(trace, choose(trace, Selection(between=between)))
            [row] = holders.analyse(facts).__next__().rows
            self.assertEqual((row[2], row[1]), (peak, records), between)

    def test_holders_and_leaks(self):
        for seed in range(20):
            small = small_traces.Small(seed)
            chance, live, used, limit = random.Random(seed), {}, 0, 1000
            end = max(span[3] for span in small.spans)
            for ns in range(0, end, 37):
                tag = chance.choice("abc")
                change = chance.randrange(1, 200) if chance.randrange(2) else -live.get(tag, 0)
                if change:
                    live[tag], used = live.get(tag, 0) + change, used + change
                    limit = max(limit, used)
                    small.memory.append(("pool", ns, tag, change, used, limit))
            facts = Facts(npuprof.load(small.write(helpers.scratch() / "memory.json")))
            at = max(range(len(small.memory)), key=lambda n: (small.memory[n][4], -n))
            held = {}
            for _, _, tag, change, *_ in small.memory[:at + 1]:
                held[tag] = held.get(tag, 0) + change
            peak = small.memory[at][4]
            pools, found, leaks = holders.analyse(facts)
            self.assertEqual({row[1]: row[2] for row in found.rows}, {t: n for t, n in held.items() if n})
            self.assertEqual((pools.rows[0][2], sum(row[2] for row in found.rows)), (peak, peak))
            ends = sorted(span[3] for span in small.spans if span[1] == "Inference")
            for tag in "abc":
                lives = [sum(m[3] for m in small.memory if m[2] == tag and m[1] <= t) for t in ends]
                if any(b < a for a, b in zip(lives, lives[1:])) or len(ends) < 8:
                    self.assertNotIn(tag, [row[1] for row in leaks.rows])
