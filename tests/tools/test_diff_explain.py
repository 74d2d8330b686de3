# test: time=120 - npuprof.py diff: where the difference comes from, against simulated runs
# SPDX-License-Identifier: MIT
import json
import unittest
from fractions import Fraction

import helpers
from npuprof.analysis import compare
from npuprof.diff import Run
from planted.cases import BASE, QUICK, TOKENIZE
from planted.model import Instr, chance, simulate
from planted.programs import capped, ops
from planted.write import Form, write

KINDS = ("kind owner before_count after_count before_ns after_ns delta count clock time share p "
         "verdict").split()


def trace_of(model, name, error=0, **form):
    return write(helpers.scratch() / name, simulate(model), error, Form(**form))


def explained(before, after, error=0, **form):
    """({(kind, owner): row as a dict}, the Table, the difference of the means straight from the files)"""
    paths = trace_of(before, "before.json", error), trace_of(after, "after.json", error, **form)
    table = compare.table(*([Run(path)] for path in paths))
    means = []
    for path in paths:
        durations = [Fraction(str(e["dur"])) * 1000 for e in json.loads(path.read_text())["traceEvents"]
                     if e["ph"] == "X" and e["name"] == "Inference"]
        means.append(sum(durations) / len(durations))
    rows = {row[:2]: dict(zip(KINDS, row)) for row in table.rows}
    return rows, table, means[1] - means[0]


def noisy(seed, **more):
    """BASE, and all its times drawn."""
    def times(what, low, high):
        return lambda i: chance(seed, what, i).randrange(low, high)

    def program(i):
        draw = chance(seed, "program", i)
        return [Instr("Load", "dma", draw.randrange(500, 900), (), None, 0),
                Instr("a", "matrix", draw.randrange(9000, 20_000), (0,), None, 0),
                Instr("b", "matrix", draw.randrange(9000, 20_000), (1,), None, 1)]
    return BASE.but(n=40, program=program, before=(("prepare", times("prepare", 10, 5000)), ("", 40)),
                    notice=times("notice", 200, 9000), dispatch=times("dispatch", 20, 900),
                    submit=times("submit", 20, 30_000), **more)


class Effects(unittest.TestCase):
    def test_rows_add_up(self):
        """To the last ns, whatever differs, also with a clock that is off."""
        for seed in range(8):
            before, after = noisy(seed, threads=1 + seed % 3), noisy(seed + 100, threads=1 + seed // 3)
            rows, _, truth = explained(before, after, 500, shift=300)
            self.assertEqual(sum(row["delta"] for row in rows.values()), truth)
            for row in rows.values():
                self.assertEqual(row["count"] + row["clock"] + row["time"], row["delta"])
                self.assertEqual(row["after_ns"] - row["before_ns"], row["delta"])

    def test_host(self):
        rows, _, truth = explained(QUICK, QUICK.but(before=TOKENIZE, notice=5000))
        self.assertEqual(truth, 203_000)
        self.assertEqual({key: row["delta"] for key, row in rows.items() if row["delta"]},
                         {("host", "tokenize"): 200_000, ("notice", "notice"): 3000})
        self.assertEqual(rows["host", "tokenize"]["count"], 200_000)
        self.assertEqual(rows["notice", "notice"]["time"], 3000)
        self.assertEqual(rows["host", "tokenize"]["verdict"], "sure")
        self.assertEqual(rows["host", "prepare"]["verdict"], "not told from noise")

    def test_means(self):
        """1 % faster, with a few long ones: faster by the ranks, and the mean is higher by chance."""
        def times(base, long):
            return lambda i: base + chance(base, "prepare", i).randrange(200) + 40_000 * (i % 50 in long)
        few, many = (BASE.but(n=200, before=(("prepare", times(*how)), ("", 40)))
                     for how in ((10_000, (7,)), (9700, (7, 9))))
        rows, _, _ = explained(few, many)
        row = rows["host", "prepare"]
        self.assertGreater(row["delta"], 0)
        self.assertEqual(row["verdict"], "not told from noise")
        self.assertGreater(row["p"], 0.05)

    def test_count_and_time(self):
        """One operator comes three times instead of twice, another one takes longer."""
        def program(count, ns):
            out = [Instr("a", "matrix", 100_000, (), None, 0, ops(100_000))]
            out += [Instr("b", "matrix", ns, (k,), None, k + 1, ops(ns)) for k in range(count)]
            return lambda i: out
        rows, _, truth = explained(BASE.but(program=program(2, 70_000)), BASE.but(program=program(3, 80_000)))
        self.assertEqual(truth, 240_000 - 140_000)
        row = rows["operator", "b"]
        self.assertEqual((row["count"], row["clock"], row["time"]), (70_000, 0, 3 * 10_000))
        self.assertEqual(rows["operator", "a"]["delta"], 0)

    def test_clock(self):
        """All of the device 8 % slower is its clock; one operator alone is not."""
        plain = BASE.but(program=capped(lambda i, name: 1))
        rows, table, truth = explained(plain, BASE.but(program=capped(lambda i, name: 1.08)))
        device = [row for key, row in rows.items() if key[0] in ("operator", "transfer")]
        self.assertEqual(sum(row["clock"] for row in device), truth)
        self.assertEqual({row["time"] for row in device}, {0})
        self.assertTrue(any("1.080 times as long" in note for note in table.notes))
        one = capped(lambda i, name: 1.08 if name == "op2" else 1)
        rows, table, truth = explained(plain, BASE.but(program=one))
        self.assertEqual((rows["operator", "op2"]["clock"], rows["operator", "op2"]["time"]), (0, truth))

    def test_hidden_operator(self):
        """A Load that grows beyond what it hid behind takes the path from that operator."""
        def program(ns):
            steps = [Instr("Load", "dma", 1000, (), None, 0), Instr("a", "matrix", 50_000, (0,), None, 0),
                     Instr("Load", "dma", ns, (), None, 1), Instr("b", "matrix", 50_000, (1, 2), None, 1)]
            return lambda i: steps
        rows, table, truth = explained(BASE.but(program=program(20_000)), BASE.but(program=program(90_000)))
        self.assertEqual(truth, 40_000)
        self.assertEqual(rows["operator", "a"]["delta"], -50_000)
        self.assertEqual(rows["transfer", "Load"]["delta"], 90_000)
        self.assertTrue(any("in one run only: a;" in note for note in table.notes))

    def test_within_the_error(self):
        """The same run, its stamps moved within their error: nothing is sure."""
        rows, _, truth = explained(QUICK, QUICK, 1000, shift=900)
        self.assertEqual(truth, 0)
        self.assertEqual(rows["notice", "notice"]["delta"], -900)
        self.assertNotIn("sure", {row["verdict"] for row in rows.values()})

    def test_without_arrows(self):
        sampled = {"sampled": True}
        rows, _, truth = explained(QUICK.but(options=sampled), QUICK.but(before=TOKENIZE, options=sampled))
        self.assertEqual(truth, 200_000)
        self.assertEqual({key: row["delta"] for key, row in rows.items() if row["delta"]},
                         {("host", "tokenize"): 200_000})


class Command(unittest.TestCase):
    def test_text_and_json(self):
        one = trace_of(QUICK, "one.json")
        two = trace_of(QUICK.but(n=150, before=TOKENIZE), "two.json")
        out = helpers.scratch() / "difference.json"
        done = helpers.npuprof_py("diff", one, two, "--json", out, said="")
        self.assertRegex(done.stdout, r"(?m)^host +tokenize +0 +150 +0\.000 +200000\.000 +200000\.000 ")
        self.assertIn("differs: inferences: 200 -> 150", done.stdout)
        document = json.loads(out.read_text())
        table = document["tables"]["difference"]
        self.assertEqual([column["name"] for column in table["columns"]], list(compare.COLUMNS))
        self.assertEqual(sum(row[6] for row in table["rows"]), 200_000)
        self.assertEqual(document["differs"], ["inferences: 200 -> 150"])

    def test_refusal(self):
        one = trace_of(QUICK, "one.json")
        self.assertRegex(helpers.refused("diff", one, one, "--json", one), r"^[^\n]*is the input [^\n]*\n$")
