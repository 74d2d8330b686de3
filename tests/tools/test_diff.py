# npuprof.py diff: finds what got slower and nothing else, and what its figures promise
# SPDX-License-Identifier: MIT
import itertools
import random
import re
import unittest

import helpers
from npuprof.analysis.evidence import interval, least, mean_p, percentile_p, rank_p
from npuprof.diff import came_and_went, compare, compare_runs


def capture(name, seed, count, slower=0):
    path = helpers.scratch() / name
    helpers.run([PROGRAM, seed, count, slower, path], code=0, env=helpers.environment())
    return path


def setUpModule():
    global PROGRAM, BASE, AGAIN, SLOWER
    PROGRAM = helpers.build("jitter.c", "jitter")
    BASE, AGAIN, SLOWER = capture("base.json", 1, 50), capture("again.json", 2,
                                                               50), capture("slower.json", 3, 50, 12)


def diff(*arguments, **options):
    return helpers.npuprof_py("diff", *arguments, **options)


def verdicts(text):
    return {line.split()[0]: line.split()[-1] for line in text.splitlines() if line.startswith("op")}


class Verdicts(unittest.TestCase):
    def test_slower(self):
        done = diff(BASE, SLOWER, "--fail-above", "5%", code=1, said="")
        found = verdicts(done.stdout)
        self.assertEqual([name for name, verdict in found.items() if verdict != "same"], ["op3"])
        self.assertEqual(found["op3"], "slower")
        self.assertRegex(done.stdout, r"(?m)^1 slower, 0 faster, 9 without")
        self.assertRegex(done.stdout,
                         r"slower\.json: op3 \(host\) is slower by 1\d\.\d\d %, the limit is 5 %")

    def test_limits(self):
        diff(BASE, SLOWER)
        diff(BASE, SLOWER, "--fail-above", "20")
        done = diff(SLOWER, BASE, "--fail-above", "5%")
        self.assertEqual(verdicts(done.stdout)["op3"], "faster")

    def test_nothing_found_where_nothing_is(self):
        for pair in ((BASE, AGAIN), (BASE, BASE)):
            done = diff(*pair, "--fail-above", "0.1%")
            self.assertEqual(set(verdicts(done.stdout).values()), {"same"})

    def test_same_answer_twice(self):
        self.assertEqual(diff(BASE, SLOWER, "--of", "p90").stdout, diff(BASE, SLOWER, "--of", "p90").stdout)

    def test_too_few(self):
        few = capture("few.json", 4, 3), capture("few_slower.json", 5, 3, 50)
        self.assertEqual(set(verdicts(diff(*few).stdout).values()), {"few"})
        done = diff(*few, "--fail-above", "5%", code=2,
                    said="--fail-above 5%: no span comes 5 times on both sides, so nothing can be told "
                         "of p50: record more of them, or give several runs a side\n")
        self.assertEqual(set(verdicts(done.stdout).values()), {"few"})

    def test_not_known(self):
        """A gate says of which spans it cannot see whether they are beyond the limit."""
        done = diff(BASE, AGAIN, "--fail-above", "0.1%")
        self.assertRegex(done.stdout, r"(?m)^not known: whether p50 is slower by more than 0\.1 %: "
                                      r"\w+ \(host\) up to \+\d+\.\d\d %, .* and \d+ more; more spans, ")
        self.assertNotIn("not known", diff(BASE, AGAIN, "--fail-above", "1000%").stdout)
        self.assertNotIn("not known", diff(BASE, AGAIN).stdout)
        few = diff(BASE, AGAIN, "--of", "p99", "--fail-above", "5%", code=2, said=None)
        self.assertEqual(set(verdicts(few.stdout).values()), {"few"})
        self.assertIn("with fewer than 299 spans on a side", few.stdout)

    def test_refusals(self):
        empty = capture("empty.json", 1, 0)
        for arguments, words in (((BASE, empty), "no spans"),
                                 ((BASE, helpers.scratch() / "missing.json"), "cannot be read"),
                                 ((BASE, BASE, "--fail-above", "much"), "percentage")):
            self.assertRegex(helpers.refused("diff", *arguments), rf"^[^\n]*{re.escape(words)}[^\n]*\n$")


class Runs(unittest.TestCase):
    """Several runs a side."""

    @classmethod
    def setUpClass(cls):
        cls.before = [BASE, AGAIN, capture("third.json", 6, 50)]
        cls.after = [SLOWER, capture("slower2.json", 7, 50, 12), capture("slower3.json", 8, 50, 12)]

    def test_slower(self):
        done = diff(*self.before, "--to", *self.after, "--fail-above", "5%", code=1, said="")
        found = verdicts(done.stdout)
        self.assertEqual([name for name, verdict in found.items() if verdict != "same"], ["op3"])
        self.assertEqual(found["op3"], "slower")
        self.assertIn("chance alone does that for up to 1 of 10 spans", done.stdout)
        self.assertNotIn("too few", done.stdout)

    def test_figures(self):
        """Medians over the runs, and the largest run without the smallest, from the runs themselves."""
        samples = [[{("host", "a"): values} for values in side]
                   for side in (([10], [12], [11]), ([14, 14], [20], [13]))]      # medians 11, 14
        [row] = compare_runs(*samples)
        self.assertEqual(row[:5], ("host", "a", 11, 14, (3, 4)))
        self.assertEqual((row.low, row.high, row.verdict), (2, 7, "same"))        # 3 apart, a spread of 7
        samples[1][1] = {("host", "a"): [15]}
        self.assertEqual(compare_runs(*samples)[0].verdict, "slower")
        self.assertEqual(compare_runs(*samples[::-1])[0].verdict, "faster")

    def test_came_and_went(self):
        """Operators that one side has in all its runs and the other in none, and those in between."""
        before = [{("device", "conv"): [5], ("device", "old"): [4, 5], ("host", "at times"): [2]},
                  {("device", "conv"): [6], ("device", "old"): [6]}]
        after = [{("device", "conv"): [5], ("device", "new"): [90], ("device", "late"): [7]},
                 {("device", "conv"): [7], ("device", "new"): [30, 61]}]
        self.assertEqual(came_and_went(before, after).rows,
                         [("new", "device", "came", 0, 2, 0, 3, 0, 91),
                          ("old", "device", "went", 2, 0, 3, 0, 8, 0),
                          ("late", "device", "in some runs", 0, 1, 0, 1, 0, 4),
                          ("at times", "host", "in some runs", 1, 0, 1, 0, 1, 0)])
        self.assertEqual(came_and_went(before[:1], before[:1]).rows, [])

    def test_runs_among_the_others(self):
        """Medians 5 apart, spreads of 3, and one run of each side lies among those of the other."""
        before, after = ([{("host", "a"): [ns]} for ns in side] for side in ((10, 10, 13), (12, 15, 15)))
        self.assertEqual(compare_runs(before, after)[0].verdict, "same")

    def test_same_code(self):
        done = diff(BASE, AGAIN, "--to", AGAIN, BASE, "--fail-above", "0.1%")
        self.assertEqual(set(verdicts(done.stdout).values()), {"same"})

    def test_sides(self):
        self.assertIn("TRACE... --to TRACE...", helpers.refused("diff", BASE, AGAIN, SLOWER))
        self.assertIn("TRACE... --to TRACE...", helpers.refused("diff", BASE))


def drawn(seed, count, rare, scale=1.0):
    """That many durations of 500 us with 2 % of noise, sorted; some of them take three to six times as long.
    rare: how probable these are."""
    chance = random.Random(f"{seed} {rare}")
    return sorted(round(500_000 * scale * chance.gauss(1, 0.02)
                        * (3 * (1 + chance.random()) if chance.random() < rare else 1)) for _ in range(count))


def verdict_of(before, after, per_mille):
    [row] = compare({("host", "a"): before}, {("host", "a"): after}, per_mille)
    return row.verdict


class Quantities(unittest.TestCase):
    """What is told of a quantity rests on the evidence for it, not on other parts of the distribution."""

    def test_tail(self):
        """3 % of long ones instead of 0.5 %: the p99 is another, the median the same."""
        found = [[verdict_of(drawn(seed, 2000, 0.005), drawn(-seed, 2000, 0.03), per_mille)
                  for seed in range(1, 11)] for per_mille in (990, 500)]
        self.assertGreaterEqual(found[0].count("slower"), 9, found[0])
        self.assertGreaterEqual(found[1].count("same"), 9, found[1])

    def test_median_beside_a_tail(self):
        """1 % faster with the same tail: of the median it is told, of p99 and mean it cannot be."""
        sides = [(drawn(seed, 400, 0.015), drawn(-seed, 400, 0.015, 0.99)) for seed in range(1, 31)]
        self.assertEqual({verdict_of(*pair, 500) for pair in sides}, {"faster"})
        self.assertLessEqual(sum(verdict_of(*pair, 990) != "same" for pair in sides), 2)
        self.assertLessEqual(sum(mean_p(*pair) < 0.05 for pair in sides), 3)

    def test_medians_are_equal(self):
        """Ranks far apart, and medians that may be one: nothing is told of the median."""
        before = [n if n < 1048 else n + 400 for n in range(1000, 1100)]
        after = [n if n > 1052 else n - 400 for n in range(1000, 1100)]
        self.assertLess(rank_p(before, after), 1e-6)
        self.assertEqual(verdict_of(before, after, 500), "same")

    def test_small_change(self):
        """5 % of one span."""
        found = [verdict_of(drawn(seed, 30, 0.01), drawn(-seed, 30, 0.01, 1.05), 500)
                 for seed in range(1, 31)]
        self.assertGreaterEqual(found.count("slower"), 29)

    def test_too_few(self):
        for per_mille, count in ((500, 5), (900, 29), (990, 299)):
            self.assertEqual(least(per_mille), count)
            found = [verdict_of(drawn(1, n, 0), drawn(2, n, 0, 2), per_mille) for n in (count - 1, count)]
            self.assertEqual(found, ["too few", "slower"])
        self.assertIsNone(mean_p([1, 2, 3], [4, 5, 6, 7]))

    def test_interval_and_p_agree(self):
        """p is below 0.05 where the interval does not hold 0, with ties, too."""
        for seed in range(200):
            chance = random.Random(seed)
            per_mille, tick = chance.choice((500, 900, 990)), chance.choice((1, 20_000))
            many = chance.randrange(300, 500)
            scales = (seed, 1), (-seed, chance.choice((1, 1.01)))
            sides = [[value // tick * tick for value in drawn(own, many, 0.03, scale)]
                     for own, scale in scales]
            low, high = interval(*sides, per_mille)
            self.assertEqual(percentile_p(*sides, per_mille) < 0.05, not low <= 0 <= high, seed)

    def test_means(self):
        """Against a table of t; a few long values tell less; of equal values no more than their ranks."""
        self.assertAlmostEqual(mean_p([1, 2, 3, 4, 5], [4, 5, 6, 7, 8]), 0.0171, delta=0.001)
        self.assertEqual(mean_p([7] * 5, [7] * 9), 1.0)
        self.assertAlmostEqual(mean_p([7] * 4, [8] * 4), 2 / 70)
        self.assertGreater(mean_p([100] * 400, [100] * 396 + [400] * 4), 0.05)

    @helpers.thorough
    def test_false_alarms(self):
        """Of equal systems, also of unequal numbers of spans."""
        for rare in (0, 0.005, 0.015, 0.1):
            for n, m in ((5, 5), (30, 30), (30, 300), (400, 100), (400, 400)):
                pairs = [(drawn(seed, n, rare), drawn(-seed, m, rare)) for seed in range(1, 201)]
                self.assertLessEqual(sum(mean_p(*pair) < 0.05 for pair in pairs), 20, (rare, n, m))
                for per_mille in (500, 900, 990):
                    wrong = sum(verdict_of(*pair, per_mille) in ("slower", "faster") for pair in pairs)
                    self.assertLessEqual(wrong, 16, (rare, n, m, per_mille))


class Figures(unittest.TestCase):
    """What p and the interval promise, against counting."""

    def test_ranks(self):
        self.assertAlmostEqual(rank_p([1, 2, 3, 4, 5], [6, 7, 8, 9, 10]), 0.0122, places=4)
        self.assertEqual(rank_p([7] * 5, [7] * 9), 1.0)
        a, b = [1, 2, 2, 3, 9], [2, 3, 4, 4, 9, 10]
        self.assertAlmostEqual(rank_p(a, b), rank_p(b, a))

    def test_ranks_against_all_arrangements(self):
        for a, b in (([1, 4, 5, 8, 9, 12], [6, 7, 10, 11, 14, 15]), ([1, 1, 2, 3, 5, 5], [2, 4, 5, 5, 7, 8])):
            everything = sorted(a + b)

            def distance(chosen):
                rest = list(everything)
                for value in chosen:
                    rest.remove(value)
                return abs(sum((x > y) + 0.5 * (x == y) for x in chosen for y in rest) - len(a) * len(b) / 2)
            arrangements = [[everything[i] for i in places]
                            for places in itertools.combinations(range(len(everything)), len(a))]
            exact = sum(distance(c) >= distance(a) - 1e-9 for c in arrangements) / len(arrangements)
            self.assertAlmostEqual(rank_p(a, b), exact, delta=0.015)

    @helpers.thorough
    def test_false_alarms(self):
        chance = random.Random(5)
        alarms = sum(rank_p(sorted(chance.gauss(100, 9) for _ in range(30)),
                               sorted(chance.gauss(100, 9) for _ in range(25))) < 0.05
                     for _ in range(1000))
        self.assertTrue(30 <= alarms <= 70, alarms)

    @helpers.thorough
    def test_interval_holds_the_truth(self):
        """10 %, also where few values are long, and of few values."""
        for per_mille, count in ((500, 5), (500, 60), (900, 29), (900, 60), (990, 299)):
            for rare in (0, 0.01, 0.1):
                holds = 0
                for seed in range(2, 102):
                    low, high = interval(drawn(seed, count, rare), drawn(-seed, count, rare, 1.1), per_mille)
                    holds += low <= 10 <= high
                self.assertGreaterEqual(holds, 90, (per_mille, count, rare))

    @helpers.thorough
    def test_many_names_raise_no_alarm(self):
        """Holm's correction: of 150 names that did not change, hardly ever one is called."""
        chance = random.Random(8)
        sides = [{("host", f"n{n}"): sorted(round(chance.gauss(1000, 50)) for _ in range(20))
                  for n in range(150)} for _ in range(2)]
        self.assertEqual({row.verdict for row in compare(*sides)}, {"same"})
