# the order of events in a JSON file means nothing: a shuffled trace gives the same bytes everywhere; and the
# forms of one trace say the same
# SPDX-License-Identifier: MIT
import json
import random
import re
import shutil
import sys
import unittest

import helpers
import pftrace
import planted
from helpers import ROOT, load, run, scratch
from npuprof.convert.forms import ENDINGS

TOOL = [sys.executable, ROOT / "tools" / "npuprof.py"]
GOLDEN = ("trace.json", "kinds.json", "firmware.json", "firmware_npu.json")
COMMANDS = (["report"], ["report", "--verdict"], ["report", "--json", "out.json"],
            ["report", "--html", "out.html"], ["report", "--csv-dir", "tables"], ["check"],
            ["export", "--sqlite", "out.db"], ["diff", "other.json"],
            *(["convert", "-o", f"out.{form}"]
              for form in (ending[1:] for ending in ENDINGS if ending not in (".json", ".npuprof"))))
# Events of other tools, in the order of their times.
FOREIGN = [
    {"ph": "B", "name": "outer", "ts": 1, "args": {"a": [1, {"b": None}], "c": {}}}, {"ph": "B", "ts": 2},
    {"ph": "E", "ts": 3}, {"ph": "E", "ts": 9, "args": {"result": 7}},
    {"ph": "B", "name": "whole", "ts": 10}, {"ph": "B", "name": "half", "ts": 10},     # of one tick: by name
    {"ph": "E", "name": "half", "ts": 11}, {"ph": "E", "name": "whole", "ts": 12},
    {"ph": "X", "name": "x", "ts": 4, "dur": 2},
    {"ph": "b", "cat": "n", "id": 1, "name": "request", "ts": 2}, {"ph": "n", "cat": "n", "id": 1, "ts": 3},
    {"ph": "b", "cat": "n", "id": 1, "name": "part", "ts": 4, "args": {"n": 1}},
    {"ph": "e", "cat": "n", "id": 1, "name": "part", "ts": 5, "args": {"m": 2}},
    {"ph": "b", "cat": "n", "id": 1, "name": "next", "ts": 5},
    {"ph": "e", "cat": "n", "id": 1, "name": "next", "ts": 7},
    {"ph": "e", "cat": "n", "id": 1, "name": "request", "ts": 8},
    {"ph": "S", "id": "0x2", "name": "old", "ts": 1},
    {"ph": "T", "id": "0x2", "name": "step", "ts": 2}, {"ph": "F", "id": "0x2", "name": "old", "ts": 6},
    {"ph": "R", "name": "mark", "ts": 7}, {"ph": "s", "id": 5, "name": "flow", "ts": 1},
    {"ph": "t", "id": 5, "name": "flow", "ts": 4, "tid": 2}, {"ph": "f", "id": 5, "name": "flow", "ts": 6},
    {"ph": "X", "name": "second", "ts": 4, "dur": 2, "tid": 2}, {"ph": "v", "name": "sample", "ts": 3}]


def outputs(document, words):
    """What a command says and writes of a trace, which always has the same name. document: of JSON, or its
    text."""
    folder = scratch() / "run"
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir()
    text = document if isinstance(document, str) else json.dumps(document)
    (folder / "trace.json").write_text(text, encoding="utf-8")
    (folder / "other.json").write_text(text, encoding="utf-8")
    done = run([*TOOL, words[0], "trace.json", *words[1:]], cwd=folder)
    files = {str(path.relative_to(folder)): path.read_bytes() for path in sorted(folder.rglob("*"))
             if path.is_file() and path.name not in ("trace.json", "other.json")}
    # A finding of check names the place in the file.
    said = sorted(re.sub(r" event \d+ \(byte \d+\):", "", done.stdout).splitlines())
    return done.returncode, said, done.stderr, files


def shuffle(events, seed, event_of=dict):
    """In place. Counters of one tick stay in their order: the last of them holds. event_of: what gives the
    event of an element."""
    def tick(element):
        event = event_of(element)
        return event.get("ts") if event.get("ph") == "C" else None
    counters = {}
    for element in events:
        counters.setdefault(tick(element), []).append(element)
    random.Random(seed).shuffle(events)
    for n, element in enumerate(events):
        if tick(element) is not None:
            events[n] = counters[tick(element)].pop(0)


def shuffled(document, seed):
    events = list(document["traceEvents"])
    shuffle(events, seed)
    return document | {"traceEvents": events}


def shuffled_lines(text, seed):
    """A trace in npuprof's own layout, one event a line, which it keeps: other readers take it."""
    head, rest = text.split("\n", 1)
    body, tail = rest.split("\n]", 1)
    lines = body.split(",\n")
    shuffle(lines, seed, json.loads)
    return f"{head}\n" + ",\n".join(lines) + f"\n]{tail}"


class Order(unittest.TestCase):
    def same(self, document, seeds, commands=COMMANDS):
        for words in commands:
            first = outputs(document, words)
            self.assertNotIn("Traceback", first[2])
            for seed in seeds:
                with self.subTest(words=words, seed=seed):
                    other = outputs(shuffled(document, seed), words)
                    self.assertEqual(other[:3], first[:3])
                    for name, content in first[3].items():
                        self.assertTrue(other[3][name] == content, name)

    def test_a_few(self):
        document = load(helpers.TESTS / "golden" / "kinds.json")
        self.same(document, (1,), (["report"], ["convert", "-o", "out.csv"]))

    def same_in_all_layouts(self, text, seeds=(1,)):
        """The tables and the verdict of a trace in npuprof's own layout, and of its events in others."""
        words = ["report", "--json", "out.json"]
        first = outputs(text, words)
        for seed in seeds:
            for other in (shuffled_lines(text, seed), shuffled(json.loads(text), seed)):
                with self.subTest(seed=seed, layout=type(other)):
                    self.assertEqual(outputs(other, words), first)

    def test_layouts(self):
        """Arrows, counters, memory, and lanes of instructions."""
        path = scratch() / "planted.json"
        planted.case("P11").write(path)
        self.same_in_all_layouts(path.read_text(encoding="utf-8"), (1, 2))

    @helpers.thorough
    def test_planted(self):
        path = scratch() / "planted.json"
        for name in planted.CASES:
            with self.subTest(name=name):
                planted.case(name).write(path)
                self.same_in_all_layouts(path.read_text(encoding="utf-8"))

    @helpers.thorough
    def test_golden(self):
        for name in GOLDEN:
            with self.subTest(name=name):
                self.same(load(helpers.TESTS / "golden" / name), (1, 2))

    def foreign(self):
        about = [{"ph": "M", "name": "thread_name", "args": {"name": "main"}}]
        return {"traceEvents": [{"pid": 1, "tid": 1} | event for event in about + FOREIGN]}

    def test_foreign(self):
        """Of another tool: nothing of it is lost unsaid."""
        self.same(self.foreign(), (1, 2, 3), (["convert", "-o", "out.pftrace"],))
        code, _, said, files = outputs(self.foreign(), ["convert", "-o", "out.pftrace"])
        self.assertEqual(code, 0)
        self.assertIn("left out: 1 of ph v\n", said)
        found = pftrace.read(files["out.pftrace"])
        self.assertEqual(found.errors, [])
        spans = {s.name: (s.start - found.snapshots[0][6], s.dur, s.args) for s in found.slices}
        self.assertEqual(spans, {
            "outer": (1000, 8000, {"a": [1, {"b": "null"}], "c": "{}", "result": 7}), "": (2000, 1000, {}),
            "x": (4000, 2000, {}), "request": (2000, 6000, {}), "part": (4000, 1000, {"n": 1, "m": 2}),
            "whole": (10000, 2000, {}), "half": (10000, 1000, {}), "next": (5000, 2000, {}),
            "old": (1000, 5000, {}), "second": (4000, 2000, {})})
        self.assertEqual(sorted(i.name for i in found.instants), ["", "mark", "step"])
        arrows = [(found.slices[a].name, found.slices[b].name) for a, b in found.arrows]
        self.assertEqual(sorted(arrows), [("outer", "second"), ("second", "x")])


class Forms(unittest.TestCase):
    """One trace as image, JSON, database and CSV."""

    @classmethod
    def setUpClass(cls):
        helpers.tool("npuprof-convert")
        run([helpers.build("streams.c", "streams"), "a.json", "a.csv", "trace.npuprof"], code=0,
            env=helpers.environment(), cwd=scratch())
        for form in ("json", "csv"):
            helpers.npuprof_py("convert", "trace.npuprof", "-o", f"trace.{form}")

    def tables(self, form, *options):
        path = scratch() / "tables.json"
        helpers.npuprof_py("report", f"trace.{form}", "--json", path, *options, said="")
        return path.read_text(encoding="utf-8").replace(f"trace.{form}", "trace")

    def test_image_and_json(self):
        self.assertEqual(self.tables("npuprof"), self.tables("json"))

    def verdict(self, form, *options, code=0):
        done = helpers.npuprof_py("report", f"trace.{form}", *options, code=code)
        return done.stdout.replace(f"trace.{form}", "trace"), done.stderr

    def test_one_verdict(self):
        """The image, the JSON and a database have one; a CSV says in one sentence that it has none."""
        helpers.npuprof_py("export", "trace.json", "--sqlite", "trace.db")
        first = self.verdict("npuprof", "--verdict")
        self.assertEqual(self.verdict("json", "--verdict"), first)
        self.assertEqual(self.verdict("db", "--verdict"), first)
        self.assertEqual(self.tables("db"), self.tables("json"))
        self.assertNotIn("No verdict", first[0])
        for options in (["--verdict"], []):
            said = " ".join(self.verdict("csv", *options)[0].split())
            self.assertIn("No verdict: a CSV has no arrows, marks, losses or errors of clocks; give the "
                          ".json or .npuprof of the same recording.", said)
            self.assertNotRegex(said, r" 1 [A-Z]|Not looked at|Record to know more|faster|missing")
        document = json.loads(self.verdict("csv", "--verdict", "json")[0])
        self.assertEqual((document["findings"], document["questions"]), ([], []))
        self.assertIn("there is no verdict", self.verdict("csv", "--fail-on", "any", code=2)[1])

    def test_csv_names_no_devices(self):
        """PEs that share the numbers of executions are one device: nothing is missing in it."""
        program = helpers.build("many_spans.c", "many_spans", "-DNPUPROF_ARENA_BYTES=4000000u")
        run([program, "network", 4000, "pes.csv", "pes.json"], code=0, env=helpers.environment(),
            cwd=scratch())
        said = [helpers.npuprof_py("report", f"pes.{form}", "--verdict", "json").stdout
                for form in ("csv", "json")]
        heads = [json.loads(text)["headline"] for text in said]
        for key in ("inferences", "executions", "devices", "pes", "p50_ns", "parallelism_ratio"):
            self.assertEqual(heads[0][key], heads[1][key], key)
        self.assertEqual([(head["lost"], head["violated"]) for head in heads], [(None, None), (0, 0)])
        self.assertEqual((heads[0]["devices"], heads[0]["pes"]), (1, 2))

    def test_csv(self):
        """It has neither arrows nor metadata; what it knows is the same. Of devices it has no name."""
        options = [word for name in ("summary", "inferences", "executions", "operators")
                   for word in ("--table", name)]
        tables = [json.loads(self.tables(form, *options))["tables"] for form in ("csv", "json")]
        self.assertEqual(*tables)
        self.assertGreater(len(tables[0]["executions"]["rows"]), 0)
