# test: time=300 - the doctor in `check` and at the top of `report`: each mistake that a trace can tell of is
# a sentence of what, where and what to do, from JSON, image and database alike, never beside "nothing lost"
# SPDX-License-Identifier: MIT
import functools
import json
import re
import unittest

import helpers
from helpers import run, scratch
from npuprof.base.doctor import Evidence, findings, narrow

# mistake of tests/programs/mistakes.c: (exit code of check, what the sentence says)
MISTAKES = {
    "": (0, None),
    "stands": (1, "'npu0': 50 submissions have no device span: NPUPROF_ERR_NPU_STOPPED"),
    "stands later": (1, "device 'npu0': its counter makes"),
    "never opened": (1, "a device that was never opened: 50 submissions have no device span"),
    "dead": (1, "'npu0' could not be opened: NPUPROF_ERR_NPU_DEAD"),
    "dead at first": (0, None),
    "hz 100": (1, "makes 25000000 ticks a second, -99.0 % beside counter.hz"),
    "hz 3%": (1, "mend counter.hz"),
    "bits 16": (1, "after 16 bits, which looks like resets: set counter.bits = 16"),
    "bits 20": (1, "after 20 bits"),
    "holes": (1, "'npu0': 4 of the executions 0 to 48 are not in the trace"),
    "open": (0, "1 spans were still open at the end, 'left open'"),
    "early": (1, "nothing was recorded: call npuprof_start()"),
    "level": (1, "nothing was recorded"),
    "end": (1, "1 PROF_END had no PROF_BEGIN"),
    "ends": (1, "2 PROF_END had no PROF_BEGIN"),
    "paused": (0, "recording was paused at the end"),
    "idle device": (0, "'npu1': was opened, and has no span"),
}
QUICK = ("", "stands", "holes", "ends")


def setUpModule():
    helpers.tool("npuprof-convert")


@functools.cache
def trace(mistake, form="json"):
    path = scratch() / f"{mistake.replace(' ', '_').replace('%', '')}.{form}"
    run([helpers.build("mistakes.c", "mistakes"), mistake, path], code=0, env=helpers.environment())
    return path


def call(*words, **options):
    return helpers.npuprof_py(*words, **options)


class Mistakes(unittest.TestCase):
    def each(self):
        return [(mistake, *MISTAKES[mistake]) for mistake in (QUICK if helpers.QUICK else MISTAKES)]

    def test_check(self):
        for mistake, code, said in self.each():
            done = call("check", trace(mistake), code=code, said="")
            if said:
                self.assertIn(said, done.stdout)
            self.assertEqual(": ok, " in done.stdout, said is None, done.stdout)

    def test_report(self):
        for mistake, _, said in self.each()[:6]:
            done = call("report", "--verdict", "text", trace(mistake))
            words = " ".join(done.stdout.split())
            if said:
                self.assertIn(said, words)
            self.assertEqual("nothing lost" in words, said is None, words[:300])

    @helpers.thorough
    def test_image_and_database(self):
        for mistake, code, said in self.each()[::2]:
            trace(mistake, "npuprof")
            json_said = call("check", trace(mistake), code=code).stdout.replace(".json", "")
            said_of_image = call("check", trace(mistake, "npuprof"), code=code).stdout
            self.assertEqual(said_of_image.replace(".npuprof", ""), json_said)
            database = scratch() / f"{len(mistake)}.db"
            call("export", trace(mistake), "--sqlite", database)
            done = call("check", database, code=code, said="").stdout.replace(str(database), "TRACE")
            wanted = json_said.replace(str(trace(mistake)).removesuffix(".json"), "TRACE")
            wanted = re.sub(r"\d+ events$", "N", wanted, flags=re.M)
            self.assertEqual(re.sub(r"\d+ spans$", "N", done, flags=re.M), wanted)

    def test_a_csv_is_never_ok(self):
        table = scratch() / "holes.csv"
        call("convert", trace("holes"), "-o", table)
        done = call("check", table, code=1)
        self.assertIn("4 of the executions 0 to 48", done.stdout)
        self.assertIn("a CSV does not say what was lost", done.stdout)

    def test_categories_that_never_occurred(self):
        path = scratch() / "categories.json"
        done = run([helpers.build("mistakes.c", "mistakes"), "", scratch() / "x.json"],
                   env=helpers.environment(NPUPROF_CATEGORIES="NPU,zzz", NPUPROF_OUTPUT_PATH=str(path)))
        self.assertIn("zzz", done.stderr)
        done = call("check", path)
        self.assertIn("NPUPROF_CATEGORIES was refused: zzz: this category never occurred", done.stdout)
        self.assertNotIn(": ok, ", done.stdout)


VALUES = r"""
#include "npuprof.h"
int main(void)
{
    npuprof_start(1);
    const int64_t now = npuprof_now_ns();
    npuprof_span("mine", NULL, "right", now, now + 9, PROF_NO_ARGS);
    npuprof_span("mine", NULL, "zero", 0, 9, PROF_NO_ARGS);
    npuprof_span("mine", NULL, "back", now, now - 9, PROF_NO_ARGS);
    PROF_MEMORY(NULL, 1, INT64_MAX, "fits");
    PROF_MEMORY(NULL, 1, UINT64_MAX, "large");
    npuprof_stop();
    return npuprof_dump("values.json") || npuprof_dump("values.npuprof");
}
"""


class Values(unittest.TestCase):
    def test_what_cannot_be_right(self):
        """Each is said with a number, by each command; a trace with such values is not ok."""
        (scratch() / "values.c").write_text(VALUES)
        program = helpers.build(scratch() / "values.c", "values")
        run([program], code=0, env=helpers.environment(), cwd=scratch())
        call("export", "values.json", "--sqlite", "values.db", cwd=scratch())
        for name in ("values.json", "values.npuprof", "values.db"):
            for command in ("check", "report"):
                said = " ".join(call(command, name, cwd=scratch()).stdout.split())
                self.assertIn("1 spans, 'zero', have stamps too far from the trace", said)
                self.assertIn("1 spans, 'back', end before they start", said)
                self.assertIn("1 value that 64 bits cannot hold" if name == "values.db" else
                              "1 memory records of 2^63 bytes or more are rounded", said)


def sync(**more):
    return {"spans": 5, "anchors": 2, "rate_hz": 1e6, **more}


class Metadata(unittest.TestCase):
    """What no small program shows."""

    def said(self, about, evidence=None):
        return [one for one in findings(about, evidence or Evidence())]

    def test_of_devices(self):
        for more, fault, said in (
                ({"anchors": 1}, False, "compared with the host's only once"),
                ({"unplaced_spans": 5}, True, "none of its 5 spans has a place"),
                ({"spans": 0, "ring_lost": 7, "records": {"lost_stamps": 7}}, True, "became a span"),
                ({"spans": 0}, False, "has no span"), ({"resets": 2}, False, "went back 2 times"),
                ({"drift_ppm": 20000.0, "rate_uncertainty_ppm": 15000.0}, None, "counter.hz"),
                ({"drift_ppm": -900.0}, None, "counter.hz"),
                ({"drift_ppm": -766000.0}, True, "counter.hz"),
                ({"drift_ppm": -766000.0, "class": "stands"}, None, "counter.hz"),
                ({"drift_ppm": 766000.0, "class": "stands"}, True, "counter.hz")):
            found = self.said({"lost": {}, "recorded": 5,
                               "devices": [{"name": "d", "clock_sync": sync(**more)}]})
            kinds = [one.is_fault for one in found if said in one.sentence]
            self.assertEqual(kinds, [] if fault is None else [fault], (more, found))

    def test_damaged(self):
        """What is missing may be damaged: nothing is said of what was recorded, or ran."""
        for recorded in (0, 5):
            about = {"lost": {}, "recorded": recorded, "damaged_places": 2,
                     "devices": [{"name": "d", "clock_sync": sync(spans=0)}]}
            evidence = Evidence()
            evidence.executions = {"d": {1, 2, 4}}
            found = self.said(about, evidence)
            words = " ".join(one.sentence for one in found)
            self.assertIn("2 damaged places: what was there is missing, and how much is not known", words)
            self.assertEqual("no event could be read: the file is damaged" in words, recorded == 0)
            self.assertNotRegex(words, "nothing was recorded|has no span|executions")

    def test_counters_that_are_not_finite(self):
        found = self.said({"recorded": 5, "lost": {}, "counter_values_not_finite": 2})
        self.assertEqual([one.is_fault for one in found if "2 values of counters" in one.sentence], [False])

    def test_open_spans_of_what_is_missing(self):
        """Where an end may be missing, nobody knows that the span was open."""
        evidence = Evidence()
        evidence.open["work"] = 2
        for about, certain in (({}, True), ({"lost": {"arena_full": 3}}, True),
                               ({"damaged_places": 1}, False), ({"lost": {"sink": 3}}, False),
                               ({"lost": {"reading": 1}}, False)):
            words = " ".join(one.sentence for one in self.said({"recorded": 5, "lost": {}} | about, evidence))
            self.assertEqual("2 spans were still open at the end, 'work'" in words, certain, about)
            self.assertEqual("2 spans, 'work', have no end: they were open, or" in words, not certain, about)

    def test_image_without_its_end(self):
        """Alone, and beside a whole one in a merged trace."""
        image, cut = trace("idle device", "npuprof"), scratch() / "cut.npuprof"
        cut.write_bytes(image.read_bytes()[:-2000])
        done = call("check", cut, code=1)
        self.assertIn("no event could be read: the file is damaged", done.stdout)
        self.assertNotRegex(done.stdout, "nothing was recorded|has no span")
        call("merge", cut, image, "-o", scratch() / "merged.json", code=None)
        self.assertIn("1 damaged places", call("check", scratch() / "merged.json", code=None).stdout)

    def test_all_lost(self):
        found = self.said({"recorded": 0, "lost": {"no_context": 9}})
        self.assertIn("all 9 spans and events were lost", found[0].sentence)

    def test_processes_of_a_merged_trace(self):
        one = {"unused_environment": {"npuprof_npu_open x": "why", "NPUPROF_LEVEL": "9: too large"}}
        found = self.said({"recorded": 3, "processes": [one, {"unused_environment": {}}]})
        self.assertEqual([finding.is_fault for finding in found], [True, False])

    def test_any_json(self):
        for about in (None, [], {"devices": [{"name": "d", "clock_sync": {"anchor_list": [[1], 2]}}]},
                      {"processes": 5, "unused_environment": 3, "lost": [], "devices": {}},
                      {"devices": [{"name": 1, "clock_sync": {"anchor_list": [[0, 0, 0], [0, 0, 0]],
                                                              "spans": "x", "drift_ppm": "y"}}]}):
            self.said(about)

    def test_narrow(self):
        """A counter that really is reset, or that is wide, is not called narrow."""
        def anchors(value, times):
            return [[ns, 30, value(ns)] for ns in times]
        times = [0, 10000, 7000000, 7010000, 30000000, 30020000, 81000000, 140000000, 140030000]
        for bits in (24, 28):
            self.assertEqual(narrow(anchors(lambda ns: (12345 + 3 * ns) % (1 << bits), times)), bits)
        self.assertEqual(narrow(anchors(lambda ns: 2 ** 40 + 3 * ns, times)), 0)
        for at in (20000000, 50000000):
            self.assertEqual(narrow(anchors(lambda ns: 3 * (ns if ns < at else ns - at), times)), 0)
