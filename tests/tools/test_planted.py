# test: time=120 - the planted traces are what they say: times, losses, forms; their truth by other means
# SPDX-License-Identifier: MIT
import unittest
from fractions import Fraction

import helpers
import npuprof
import planted
from npuprof.base.contract import DEVICE, INFERENCE


def written(name, error_ns=1000, **form):
    case = planted.case(name, error_ns)
    return case, npuprof.load(case.write(helpers.scratch() / "planted.json", **form))


class Truth(unittest.TestCase):
    @helpers.thorough
    def test_all_can_be_read(self):
        self.assertEqual(list(planted.CASES), [f"P{n}" for n in range(1, 31)])
        for name in planted.CASES:
            for error in (1000, 100_000):
                case, trace = written(name, error)
                self.assertLessEqual(abs(case.shift), case.error_ns)
                kept = sum(kind == INFERENCE for kind in trace.kind)
                self.assertTrue(0 < kept <= case.model.n)
                rows = trace.executions[0]
                self.assertEqual(len(rows), kept - len(case.model.options.get("lost_jobs", ())), name)

    def test_stamps(self):
        """Host times are exact; those of the device are off by the shift, and by no more than the error."""
        for error, tick in ((1000, 1), (100_000, 40)):
            case, trace = written("P2", error, tick_ns=tick)
            truth = sorted((job.d, job.f) for job in case.run.jobs)
            for i, (d, f) in zip(trace.executions[0], truth):
                start, end = trace.start[i], trace.start[i] + trace.dur[i]
                self.assertEqual((start, end), (d // tick * tick + case.shift, f // tick * tick + case.shift))
                self.assertLessEqual(abs(start - d), error)
            begins = sorted(trace.start[i] for i in range(len(trace)) if trace.kind[i] == INFERENCE)
            self.assertEqual(begins, [job.begin for job in case.run.jobs])

    def test_idle_is_all_of_it(self):
        """The classes add up to the gaps, which the file shows without any model."""
        for name in ("P1", "P2", "P6", "P8", "P10", "P27", "P28"):
            case, trace = written(name)
            gaps = {}
            for i in trace.executions[0]:
                pe, start = trace.index["pe_index"][i], trace.start[i]
                last, total = gaps.get(pe, (start, 0))
                gaps[pe] = start + trace.dur[i], total + start - last
            self.assertEqual(sum(case.idle().values()), sum(total for _, total in gaps.values()), name)

    def test_gains_in_the_head(self):
        case = planted.case("P2")
        # prepare, tokenize, submit to start, job, notice, finish
        whole = 2000 + 200_000 + 2000 + 800_000 + 2000 + 1000
        self.assertAlmostEqual(case.gain("V2")[0], float(Fraction(100 * 200_000, whole)), places=9)
        case = planted.case("P10")
        self.assertAlmostEqual(case.gain("V8")[1], 75, delta=0.5)
        case = planted.case("P25")
        both, sum_of_two = case.gain(("V2", "V10"))[0], case.gain("V2")[0] + case.gain("V10")[0]
        self.assertAlmostEqual(both, sum_of_two, delta=0.1)

    def test_forms(self):
        """Other lines, numbers and times: the same spans."""
        def spans(trace, move=0):
            return sorted((trace.text(i), trace.start[i] - move, trace.dur[i], trace.kind[i] == DEVICE)
                          for i in range(len(trace)))
        _, plain = written("P12")
        wanted = spans(plain)
        for form in ({"reorder": True}, {"pid": 99999}, {"move": 2**40}):
            _, trace = written("P12", **form)
            self.assertEqual(spans(trace, form.get("move", 0)), wanted, form)
            self.assertEqual(len(trace.flows), len(plain.flows))
        clean = planted.case("P1").run
        _, trace = written("P12", others=(clean,))
        self.assertEqual(len(trace.executions[0]), 400)
        self.assertEqual([d["name"] for d in trace.metadata["devices"]], ["npu0", "npu1"])

    def test_counts_of_odd_records(self):
        """The library writes them as one object in a clock_sync, only where there are such."""
        path = planted.case("P11").write(helpers.scratch() / "odd.json")
        text = path.read_text()
        path.write_text(text.replace('"wraps":', '"records":{"unknown_records":3},"wraps":'))
        sync = npuprof.load(path).metadata["devices"][0]["clock_sync"]
        self.assertEqual(sync["records"], {"unknown_records": 3})
        helpers.npuprof_py("report", path, said="")

    def test_checks(self):
        """`check` finds nothing wrong with them."""
        for name in ("P1", "P6", "P10", "P21"):
            case = planted.case(name)
            path = case.write(helpers.scratch() / "checked.json")
            helpers.npuprof_py("check", path, said="")
