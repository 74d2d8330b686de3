# test: time=60 - losses by cause, each counted once, with what to do; gains of a trace without inferences
# SPDX-License-Identifier: MIT
import json
import re
import unittest

import helpers
import npuprof
from npuprof.analysis.facts import Facts
from npuprof.analysis.whatif import WHATIF, usual, whatif_table
from npuprof.base.losses import PARTS, UNCOUNTED, doubts, lost_by_cause
from small_traces import Small


def device(**sync):
    return {"name": "dev", "pe_count": 2, "clock_sync": {
        "rate_hz": 1e6, "drift_ppm": 0, "max_error_ns": 1, "anchors": 2, "wraps": 0, "resets": 0,
        "causality_violations": 0, **sync}}


RECORDS = {"lost_stamps": 21, "lost_epoch": 2, "unmatched_ends": 11}


class Losses(unittest.TestCase):
    def test_each_loss_once(self):
        """A loss of a ring is in three counts: lost.device_ring, ring_lost and records."""
        by_cause = {"lost_stamps": 21, "lost_epoch": 2}
        odd = device(ring_lost=23, records=RECORDS)
        for lost in ({"device_ring": 23}, {}):
            self.assertEqual(lost_by_cause({"lost": lost, "devices": [odd]}), by_cause)
        about = {"lost": {"device_ring": 30, "sink": 4, "odd": "x"},
                 "devices": [odd, device(ring_lost=7, unplaced_spans=5), 3, {}]}
        self.assertEqual(lost_by_cause(about), by_cause | {"device_ring": 7, "sink": 4, "unplaced_spans": 5})
        self.assertEqual(lost_by_cause({}), {})
        self.assertEqual(lost_by_cause({"lost": 1, "devices": "x"}), {})

    def test_parts_are_no_records(self):
        """Causes for which no span is missing are the header's; lost arguments are told as such."""
        text = (helpers.ROOT / "src" / "public" / "types.h").read_text()
        self.assertEqual(PARTS, tuple(re.findall(r'X\(NPUPROF_LOST_\w+, "(\w+)", 0\)', text)))
        trace = helpers.load(helpers.TESTS / "golden" / "trace.json")
        for lost, said in (({"arguments": 3, "notes": 2}, "; 3 arguments lost"),
                           ({"arguments": 3, "arena_full": 5}, "; 5 spans lost; 3 arguments lost")):
            trace["metadata"]["npuprof"]["lost"] = lost
            (path := helpers.scratch() / "lost.json").write_text(json.dumps(trace))
            done = helpers.npuprof_py("report", path, "--table", "names", "--between", "0:1000000")
            self.assertIn("names: of the whole trace", done.stderr)
            first = " ".join(helpers.npuprof_py("report", path).stdout.split("\n1 ")[0].split())
            self.assertIn(said, first)

    def test_not_known(self):
        """Where nobody counted, neither a figure nor a gate says 0."""
        ours = {"version": "1.0.0", "start_unix_ns": 5, "pid": 1, "lost": {}}
        event = {"ph": "X", "name": "Inference", "pid": 1, "tid": 1, "ts": 1, "dur": 2}
        path = helpers.scratch() / "other.json"
        for about, known in (({}, False), ({"npuprof": ours}, True)):
            path.write_text(json.dumps({"traceEvents": [event], "metadata": about}))
            head = json.loads(helpers.npuprof_py("report", path, "--verdict", "json").stdout)["headline"]
            self.assertEqual((head["lost"], head["violated"]), (0, 0) if known else (None, None))
            for gate in "lost>0", "violated>0":
                done = helpers.npuprof_py("report", path, "--fail-on", gate, code=2 * (not known), said=None)
                self.assertEqual(f"{gate}: the trace does not tell it" in done.stderr, not known, done.stderr)
            self.assertEqual("losses not known" in done.stdout, not known)
        for key in UNCOUNTED:
            path.write_text(json.dumps({"traceEvents": [event], "metadata": {"npuprof": ours | {key: 1}}}))
            done = helpers.npuprof_py("report", path, "--fail-on", "lost>0", code=2, said=None)
            self.assertIn("lost>0: the trace does not tell it", done.stderr, key)

    def test_advice(self):
        """Only what was overwritten asks for more drains."""
        for cause, advice in (("lost_overwritten", "drain the ring more often"),
                              ("lost_stamps", "npuprof_npu_set_stamp_offset()"), ("lost_epoch", "power off"),
                              ("lost_no_anchor", "before the first drain"), ("unknown_records", "kinds")):
            said, = doubts({"devices": [device(records={cause: 3})]})
            self.assertTrue(said.startswith(f"device 'dev': 3 {cause}: "), said)
            self.assertIn(advice, said)
            self.assertEqual("drain the ring more often" in said, cause == "lost_overwritten")

    def test_clock_that_is_not_steady(self):
        for of_class, words in (("steady", "in 3.5 ms the bounds rest on the order"),
                                ("stands", "its bounds rest on the order")):
            sync = {"contradictions": 36, "opened_ns": 3500000, "class": of_class}
            said, = doubts({"devices": [device(**sync)]})
            self.assertTrue(said.startswith("device 'dev': its clock's rate changed 36 times by more than "
                                            "max_rate_ppm allows: " + words), said)

    def test_check_and_report(self):
        path = Small(1).write(helpers.scratch() / "lost.json", device(ring_lost=23, records=RECORDS))
        text = path.read_text().replace('"lost": {}', '"lost": {"device_ring": 23}')
        self.assertNotEqual(text, path.read_text())
        path.write_text(text)
        check, report = (helpers.npuprof_py(words[0], path, *words[1:], code=None)
                         for words in (["check"], ["report", "--verdict"]))
        self.assertIn("21 lost_stamps: stamps fit no time: look at stamp, ", check.stdout)
        kept = len(npuprof.load(path))
        words = " ".join(report.stdout.split())
        self.assertIn(f"23 of {23 + kept} spans and entries of rings are missing", words)
        self.assertIn("21 of them: lost_stamps (stamps fit no time) -> record again: look at stamp", words)
        self.assertNotIn("drain the ring more often", words)


class Gains(unittest.TestCase):
    def test_at_most_the_whole(self):
        """Without inferences and waits, the window ends with the last job, whatever PE it ran on."""
        for seed in range(12):
            small = Small(seed)
            small.spans = [span for span in small.spans if span[1] not in ("Inference", "Wait")]
            trace = npuprof.load(small.write(helpers.scratch() / "jobs.json"))
            facts = Facts(trace)
            self.assertFalse(facts.window.inferences)
            found = whatif_table(facts, usual(facts))
            self.assertTrue(found.rows)
            for row in found.rows:
                for column in ("window_low_pct", "window_high_pct", "jobs_high_pct"):
                    self.assertLessEqual(row[WHATIF.index(column)], 100, (seed, row))

    def test_more_pes(self):
        """Two jobs, one after the other on one of two PEs: with free PEs, both run at once."""
        small = Small(1)
        small.spans = [(1, "Submit", 0, 10, {}), (1, "Submit", 20, 30, {})]
        small.jobs = [(0, 100, 1100, 0, 0, 1, []), (0, 1100, 2100, 0, 20, 1, [])]
        small.flows = []
        facts = Facts(npuprof.load(small.write(helpers.scratch() / "pes.json")))
        row, = whatif_table(facts, [(("pes", None, 1),)]).rows
        # From the first submission, at 0, to the end: 2100 ns before. The second takes 1000 ns from 20 on,
        # and between 0 and 100 ns to begin.
        low, high = row[WHATIF.index("window_low_pct")], row[WHATIF.index("window_high_pct")]
        self.assertTrue(100 * (2100 - 1120) / 2100 <= high <= 100 * (2100 - 1020) / 2100, (low, high))
        # Nothing shows what waits for the jobs, so nobody knows that it brings anything.
        self.assertEqual(low, 0)


class Head(unittest.TestCase):
    def test_says_what_0_means(self):
        """A device that records only whole executions has NPU Run 0: the head line says why."""
        small = Small(1)
        small.jobs = [(*job[:6], []) for job in small.jobs]
        path = small.write(helpers.scratch() / "whole.json")
        done = helpers.npuprof_py("report", path, "--table", "all")
        self.assertIn("Run: operators inside; 0 if none is recorded", done.stdout)
        self.assertIn("compute: an operator runs inside, 0 if none is recorded", done.stdout)
