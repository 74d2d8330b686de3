# test: time=120 - replay of executions whose durations change over the run, against the changed simulator
# SPDX-License-Identifier: MIT
import unittest
from array import array
from fractions import Fraction
from unittest import mock

import helpers
import npuprof
from npuprof import loops
from npuprof.analysis import programs, replay, whatif
from npuprof.analysis.facts import Facts
from npuprof.analysis.verdict import judge
from planted.model import Instr, Model, chance, latencies, median, simulate, window
from planted.write import write

HALF = Fraction(1, 2)
STEPS = 200


def facts_of(model):
    return Facts(npuprof.load(write(helpers.scratch() / "programs.json", simulate(model), 0)))


def jittered(name, i, ns, share):
    return round(ns * chance("programs", name, i).uniform(1 - share, 1 + share))


def decode(share=0, **factors):
    """Decoding: attention takes longer with each token, the rest always the same. share: of the jitter."""
    def program(i):
        def work(name, ns):
            return round(jittered(name, i, ns, share) * factors.get(name, 1))
        return [Instr("Load", "dma", work("load", 4000), (), None, 0),
                Instr("attn", "matrix", work("attn", 50_000 + 800_000 * i // (STEPS - 1)), (0,), None, 0),
                Instr("mlp", "matrix", work("mlp", 300_000), (1,), None, 1),
                Instr("Store", "dma", work("store", 3000), (2,), None, 2)]
    return Model(n=STEPS, program=program)


def buffered(share=0, **factors):
    """Six operators whose weights are loaded into two banks while the one before computes. First the Loads
    wait for the banks, later the operators for the Loads."""
    def program(i):
        out, users = [], []
        for k in range(6):
            ns = jittered(f"load{k}", i, 10_000 + 200 * i, share) * factors.get("load", 1)
            out.append(Instr("Load", "dma", round(ns), (users[k - 2],) if k > 1 else (), None, k))
            ns = jittered(f"op{k}", i, 30_000, share) * factors.get(f"op{k}", 1)
            users.append(len(out))
            out.append(Instr(f"op{k}", "matrix", round(ns), (len(out) - 1, *users[-2:-1]), None, k))
        return out
    return Model(n=STEPS, program=program)


class Changing(unittest.TestCase):
    def check(self, model, share, change, **factors):
        run, after = simulate(model(share)), simulate(model(share, **factors))
        effect = replay.of(facts_of(model(share))).effect(change)
        for told, measure in ((effect.inference, lambda run: median(latencies(run))),
                              (effect.window, window)):
            truth = 100 * (1 - measure(after) / measure(run))
            for end in told:
                self.assertAlmostEqual(float(end), truth, delta=0.5, msg=(share, change))
        return effect

    def test_attention_grows(self):
        for share in (0, 0.02, 0.2):
            for name, gain in (("attn", 29.0), ("mlp", 19.4)):
                effect = self.check(decode, share, ("operator", name, HALF), **{name: HALF})
                if not share:
                    self.assertAlmostEqual(float(effect.inference[0]), gain, delta=0.5)
            self.check(decode, share, ("load", None, 2), load=2, store=2)

    def test_no_warm_up(self):
        """The first tokens are faster because there is less to attend to."""
        for share in (0, 0.05):
            verdict = judge(facts_of(decode(share)))
            self.assertNotIn("warm_up_inside", [finding.rule.name for finding in verdict.every()])

    def test_buffers(self):
        """What holds up an instruction changes over the run, and with jitter from one execution to the
        next."""
        for share in (0, 0.02, 0.1):
            self.check(buffered, share, ("load", None, HALF), load=HALF)
            self.check(buffered, share, ("operator", "op3", 2), op3=2)

    def test_one_shape(self):
        for model in (decode, buffered):
            found = replay.of(facts_of(model(0.1)))
            self.assertEqual((len(found.programs.all), found.programs.as_recorded()), (1, 0))
            self.assertEqual(set(found.programs.of), {0})
            self.assertEqual(found.unexplained(), 0)


def seldom(i):
    """One of 50 computes b before it has computed a."""
    if i % 50 == 20:
        return [Instr("b", "matrix", 300_000, (), None, 1), Instr("a", "matrix", 100_000 + i, (0,), None, 0)]
    return [Instr("a", "matrix", 100_000 + i, (), None, 0), Instr("b", "matrix", 300_000, (0,), None, 1)]


class Disobeying(unittest.TestCase):
    model = Model(n=1000, program=seldom)

    def table(self, facts):
        return whatif.whatif_table(facts, [(("operator", "b", HALF),)])

    def test_own_program(self):
        """Those that do not obey have a program of their own: all gain what they would."""
        # Why 8: none of so few samples is among those.
        with mock.patch.object(programs, "SAMPLES", 8):
            facts = facts_of(self.model)
            found = replay.of(facts)
        self.assertEqual([len(program.dur) for program in found.programs.all], [980, 20])
        whole, faster = (sum(job.f - job.d for job in simulate(self.model).jobs), 150_000 * 1000)
        self.assertEqual(found.effect(("operator", "b", HALF)).jobs[0], Fraction(100 * faster, whole))
        self.assertFalse([note for note in self.table(facts).notes if "as recorded" in note])

    def test_as_recorded(self):
        with mock.patch.object(programs, "SAMPLES", 8), mock.patch.object(programs, "ROUNDS", 1):
            facts = facts_of(self.model)
            found = replay.of(facts)
        self.assertEqual(len(found.programs.all), 1)
        self.assertIn("replayed as recorded: 2.0 %", self.table(facts).notes)
        whole, faster = (sum(job.f - job.d for job in simulate(self.model).jobs), 150_000 * 980)
        self.assertEqual(found.effect(("operator", "b", HALF)).jobs[0], Fraction(100 * faster, whole))

    def test_order_of_transfers(self):
        """Transfers that swap their places are two programs, in each of which one waits for the other."""
        def program(i):
            return [Instr("Load", "dma", 20_000, (), None, int(i % 3 == 0)),
                    Instr("Load", "dma", 30_000, (), None, int(i % 3 != 0)),
                    Instr("a", "matrix", 40_000, (0, 1), None, 0),
                    Instr("b", "matrix", 10_000, (2,), None, 1)]
        found = replay.of(facts_of(Model(n=90, program=program)))
        self.assertEqual(sorted(len(one.dur) for one in found.programs.all), [30, 60])
        self.assertEqual(found.effect(("load", None, HALF)).jobs[0], 25)


class InC(unittest.TestCase):
    """The loops in C give what they give in Python."""

    def figures(self, model):
        facts = facts_of(model)
        found = replay.of(facts)
        tables = [whatif.path_table(facts), whatif.whatif_table(facts, whatif.usual(facts))]
        return ([table.rows for table in tables], [table.notes for table in tables], found.unexplained(),
                [list(program.obeys) for program in found.programs.all])

    def test_same(self):
        self.assertTrue(loops.native.library())
        for model in (decode(0.1), buffered(0.1), Model(n=300, program=seldom)):
            wanted = self.figures(model)
            with mock.patch.object(loops.native, "library", lambda: None):
                self.assertEqual(self.figures(model), wanted)

    def test_long(self):
        """An execution of an hour, and factors with many digits."""
        hour = 3600 * 10**9
        start = array("q", [5, 5, 5 + hour // 2])
        own = loops.Executions(start, array("q", [hour, hour // 2, hour // 2]), [1, 2], [0])
        kinds = [programs.Instruction(name, n, False) for n, name in enumerate("ab")]
        program = programs.Program(kinds, own, 2)
        for k in (Fraction("0.123456789123"), Fraction(1, 3), Fraction(100)):
            told = program.totals({0: k})[0]
            self.assertAlmostEqual(told / (hour // 2 * (1 + k)), 1, delta=1e-7)
            with mock.patch.object(loops.native, "library", lambda: None):
                self.assertEqual(program.totals({0: k})[0], told)
