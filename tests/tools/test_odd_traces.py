# test: time=120 - the verdict on odd traces: of no length, of long programs, with clocks that stand still
# SPDX-License-Identifier: MIT
import json
import time
import unittest
from random import Random

import fleet_traces
import helpers
import npuprof
import small_traces
from npuprof.analysis import idle, replay, roofline, verdict, whatif
from npuprof.analysis.facts import Facts
from npuprof.report import screen


def odd(spans=(), jobs=(), **more):
    """The path of a trace of these spans and jobs, as small_traces.Small has them."""
    small = small_traces.Small(0)
    small.spans, small.jobs, small.flows = list(spans), list(jobs), []
    for key, value in more.items():
        setattr(small, key, value)
    return small.write(helpers.scratch() / "odd.json")


def report(path, *arguments, **options):
    return helpers.npuprof_py("report", path, *arguments, **options)


def facts_of(path):
    return Facts(npuprof.load(path))


class Odd(unittest.TestCase):
    def test_no_length(self):
        """Inferences and jobs that take no time have no rate, and no finding divides by them."""
        spans = [(1, "Inference", 5, 5, {"kind": "inference"}), (1, "Submit", 5, 5, {})]
        path = odd(spans * 20, [(0, 5, 5, 0, 5, 1, [("conv", 5, 5, 0)])] * 20)
        run = report(path, "--verdict", said="")
        self.assertNotIn("/s", run.stdout.split("\n")[1])
        self.assertIn("load=0", report(path, "--what-if", "load=0", said="").stdout)

    def test_counter_that_stood(self):
        """Jobs and operators without length between spans that have one."""
        spans = [span for k in range(20) for span in (
            (1, "Inference", 100 * k, 100 * k + 90, {"kind": "inference"}),
            (1, "Submit", 100 * k + 10, 100 * k + 30, {}), (1, "Wait", 100 * k + 40, 100 * k + 80, {}))]
        jobs = [(0, 100 * k + 35, 100 * k + 35, 0, 100 * k + 15, 1,
                 [("conv", 100 * k + 35, 100 * k + 35, 0), ("pad", 100 * k + 35, 100 * k + 35, 1)])
                for k in range(20)]
        for options in ((), ("--verdict",), ("--table", "all")):
            report(odd(spans, jobs), *options, said="")

    def test_operators_of_the_window(self):
        """The first screen names those of the time that is looked at."""
        jobs = [(0, 100 * k, 100 * k + 60, 0, 100 * k - 5, 1,
                 [("conv", 100 * k, 100 * k + (40 if k < 10 else 10), 0),
                  ("pad", 100 * k + 40, 100 * k + 60, 1)]) for k in range(1, 20)]
        path = odd([(1, "Submit", 100 * k - 8, 100 * k - 1, {}) for k in range(1, 20)], jobs)
        half = npuprof.load(path).start[0] + 1000
        for options, most in (((), "conv 55 %, pad 45 %"),
                              (("--between", f"{half}:{half + 2000}"), "pad 67 %, conv")):
            self.assertIn(f"Most time of 2 operators: {most}", report(path, *options).stdout)

    def test_any_lengths(self):
        """Golden traces whose spans last anything, none included, or lie elsewhere, or lack: all is said."""
        for seed in range(24):
            random = Random(seed)
            name = random.choice(("trace", "kinds", "firmware_npu"))
            trace = json.loads((helpers.TESTS / "golden" / f"{name}.json").read_text())
            share, lengths = random.choice((0.1, 0.5, 1)), random.choice(((0.0,), (0.0, 0.001, 1.0, 1e6)))
            for event in trace["traceEvents"]:
                if event["ph"] == "X" and random.random() < share:
                    event["dur"] = random.choice(lengths)
                    event["ts"] = max(0, event["ts"] + random.choice((0, 0, 0, -100, 1e4)))
            trace["traceEvents"] = [event for event in trace["traceEvents"]
                                    if event["ph"] != "X" or random.random() > 0.1 * (seed % 3)]
            (path := helpers.scratch() / "any.json").write_text(json.dumps(trace))
            with self.subTest(seed=seed):
                facts = facts_of(path)
                self.assertTrue(list(screen.whole_verdict(verdict.judge(facts))))
                changes = [] if replay.of(facts).why else whatif.usual(facts)
                self.assertTrue(whatif.whatif_table(facts, changes).notes)

    def test_no_steady_clock(self):
        """Of a device whose clock is no steady one nothing is sure where it does not tell the length of its
        jobs to a tenth; else all is as ever."""
        path = helpers.scratch() / "unsteady.json"
        for error, kind, known in (100, "stands", True), (20000, "steady", True), (20000, "stands", False):
            text = fleet_traces.trace(0, 100)[0].replace('"error_ns":100', f'"error_ns":{error}')
            path.write_text(text.replace('"clock_sync":{', f'"clock_sync":{{"class":"{kind}",', 1))
            self.assertIn(f'"error_ns":{error}', text)
            facts = facts_of(path)
            self.assertEqual("clock of npu is no steady one" in (facts.replay.why or ""), not known)
            found = [one for one in verdict.judge(facts).every() if one.rule.kind == "gain"]
            self.assertTrue(found)
            self.assertEqual({one.confidence for one in found} == {"unsure"}, not known)
            said = report(path).stdout
            for words in "how busy the device was is not known", "No replay: the clock":
                self.assertEqual(words in " ".join(said.split()), not known, said)
            for words in "device busy", "Most time of":
                self.assertEqual(words in said, known, said)
            done = report(path, "--fail-on", "busy_pct>99", code=0 if known else 2)
            self.assertEqual("busy_pct>99: the trace does not tell it" in done.stderr, not known, done.stderr)

    def test_long_program(self):
        """A job of 4000 operators: the time grows with their number, not with its square."""
        steps = [("abc"[n % 3], 100 + 200 * n, 250 + 200 * n, n) for n in range(4000)]
        end = steps[-1][2] + 10
        path = odd([(1, "Submit", 0, 50, {}), (1, "Wait", 60, end + 20, {})], [(0, 90, end, 0, 0, 1, steps)])

        def seconds():
            since = time.process_time()
            found = verdict.judge(facts_of(path))
            self.assertEqual(len(found.facts.engines.operators), 3)
            return time.process_time() - since
        self.assertLess(helpers.measured(4, seconds), 4)

    def test_drift_from_nothing(self):
        """An operator that took no time at first has no factor, and accuses no clock."""
        spans, jobs = [], []
        for n in range(60):
            at = 6000 * n
            spans += [(1, "Inference", at, at + 5000, {"kind": "inference"}), (1, "Submit", at, at + 20, {})]
            jobs.append((0, at + 50, at + 900, 0, at, 1, [("conv", at + 90, at + 90 + 100 * (n > 29), 0)]))
        found = facts_of(odd(spans, jobs))
        self.assertIsNone(found.drift.common)
        self.assertEqual([row[5:] for row in found.drift.rows], [(0, 100, None)])
        self.assertNotIn("throttled", [f.rule.name for f in verdict.judge(found).every()])

    def test_processes_pause_alone(self):
        """Pauses of two processes of a merged trace do not end each other."""
        path = odd([(1, "Inference", 0, 1000, {"kind": "inference"})],
                   instants=[("npuprof paused", 100), ("npuprof resumed", 500)])
        other = [f'{{"ph":"i","name":"npuprof {what}","s":"p","pid":10,"tid":1,"ts":{ts}}}'
                 for what, ts in (("paused", "0.200"), ("resumed", "0.300"))]
        text = path.read_text()
        path.write_text(text.replace("\n],", ",\n" + ",\n".join(other) + "\n],"))
        self.assertEqual(facts_of(path).window.paused_ns, 400)

    def test_churn_of_a_part(self):
        """Churn counts what is allocated inside the chosen inferences."""
        spans = [(1, "Inference", 1000 * n, 1000 * n + 900, {"kind": "inference"}) for n in range(10)]
        memory = [("pool", 1000 * n + 50, "x", 100, 100 * (n + 1), 5000) for n in range(10)]
        path, out = odd(spans, memory=memory), helpers.scratch() / "churn.json"
        for part, peak in ([], 1000), (["--inference", "2-3"], 300):
            report(path, *part, "--table", "memory_pools", "--json", out)
            rows = json.loads(out.read_text())["tables"]["memory_pools"]["rows"]
            self.assertEqual(rows[0][-1], round(100 * 100 / peak, 2))

    def test_gap_with_a_pause(self):
        """The class of a gap counts none of its pauses."""
        spans = [(1, "Inference", 0, 9000, {"kind": "inference"}), (1, "Submit", 10, 20, {}),
                 (1, "work", 2000, 8000, {}), (1, "Submit", 8100, 8110, {})]
        jobs = [(0, 50, 1000, 0, 10, 1, []), (0, 8200, 8900, 0, 8100, 1, [])]
        path = odd(spans, jobs, instants=[("npuprof paused", 2500), ("npuprof resumed", 7900)])
        [gap] = [table for table in idle.analyse(facts_of(path)) if table.name == "idle_gaps"][0].rows
        self.assertEqual(gap[2:4] + gap[6:9], (1000, 1800, "work_or_wait", "Inference", 1000))

    def test_shapes_of_one_name(self):
        """The work of an operator is that of each of its spans, whatever their shapes."""
        sizes = (10, 100, 30)
        steps = [("fc", 200 + 900 * n, 900 + 900 * n, n) for n in range(len(sizes))]
        path = odd([(1, "Inference", 0, 9000, {"kind": "inference"}), (1, "Submit", 10, 20, {})],
                   [(0, 50, 8000, 0, 10, 1, steps)])
        text = path.read_text()
        for n, size in enumerate(sizes):
            index = f'"instruction_index":{n}'
            text = text.replace(index, f'{index},"ne.type":"InnerProduct",'
                                f'"ne.input_shapes":"1x{size}","ne.weight_shape":"{size}x10"')
        path.write_text(text)
        toml = roofline.description_of("toml", {"peaks": {"ops_per_s": 10**10, "bytes_per_s": 10**10}})
        facts = Facts(npuprof.load(path), description=toml)
        self.assertEqual(facts.roof["fc"].ops, 2 * 10 * sum(sizes))

    def test_straggler_above_nothing(self):
        """One rank computes and the others do nothing: the table has no percentage, and no crash."""
        folder = helpers.scratch() / "ranks"
        folder.mkdir()
        for rank in range(6):
            path = odd([(1, "Inference", 0, 5000, {"kind": "inference"}), (1, "Submit", 0, 20, {})],
                       [(0, 50, 50 + 300 * (rank > 4), 0, 0, 1, [])])
            path.rename(folder / f"{rank}.json")
        report(folder, "--jobs", "1", "--table", "stragglers", "--csv-dir", folder / "out", said="")
        self.assertIn('5.json,"",device,300,0,,', (folder / "out" / "stragglers.csv").read_text())


class Gates(unittest.TestCase):
    def test_every_form(self):
        """A gate counts whatever else is asked for, and one without a rule is refused."""
        path = odd([(1, "Inference", 0, 900, {"kind": "inference"}), (1, "Submit", 5, 50, {})],
                   [(0, 90, 500, 0, 5, 1, [])])
        for form in (["--what-if", "device=0.5"], ["--verdict"], ["--table", "idle"]):
            report(path, *form, "--fail-on", "p50_ns>1", code=1)
        report(path, "--fail-on", "", code=2)

    def test_outputs(self):
        """No output is left away in silence, and none takes the place of a trace."""
        path, page = odd([(1, "f", 0, 900, {})]), helpers.scratch() / "odd.html"
        report(path, "--verdict", "--html", page, code=2,
               said="--html: not together with --verdict, run it twice\n")
        sheet = helpers.scratch() / "tables" / "names.csv"
        sheet.parent.mkdir(exist_ok=True)
        helpers.npuprof_py("convert", path, "-o", sheet)
        before = sheet.read_bytes()
        report(sheet, "--csv-dir", sheet.parent, code=2)
        self.assertEqual(sheet.read_bytes(), before)
