# test: time=420 - report --html: the page's figures are those of the tables, and it works in a browser
# SPDX-License-Identifier: MIT
import functools
import json
import re
import unittest
from collections import Counter

import helpers
from helpers import ROOT, scratch
import npuprof
from npuprof.report import page
from npuprof.report.page.figures import figures
from npuprof.report.page.timeline import COLUMNS, EACH, SPANS
from npuprof.tables import sparse
from npuprof.tables.executions import npu_executions, npu_operators
from npuprof.tables.labelled import summary
from sample import HOSTILE, sample

EMPTY = '{"traceEvents":[],"metadata":{"npuprof":{"version":"0.1.0","start_unix_ns":5}}}'
FOREIGN = """[{"ph":"X","name":"<b>a</b>","pid":1,"tid":1,"ts":1,"dur":2.5},\
{"ph":"X","name":"over","pid":1,"tid":1,"ts":2,"dur":9,"args":{"x":"</p>"}},
{"ph":"B","name":"","pid":2,"tid":1,"ts":3},{"ph":"C","name":"c","pid":1,"ts":3,"args":{"a":1,"b":2.5}},\
{"ph":"i","name":"i","pid":1,"tid":1,"ts":4}]"""


def write(name, text):
    path = scratch() / name
    path.write_text(text, encoding="utf-8")
    return path


def page_of(path):
    """The page of a trace, by the command."""
    out = path.with_suffix(".html")
    helpers.npuprof_py("report", path, "--html", out, printed="")
    return out


def data_in(page):
    """The JSON in a page, as strict as the strictest reader."""
    return helpers.strict_json(re.search(r'<script type="application/json" id="data">(.*?)</script>',
                                         page.read_text(encoding="utf-8"), re.S)[1])


def many(count):
    """A long trace of short spans, three deep."""
    lines = "".join(f'{{"ph":"X","name":"outer","pid":1,"tid":1,"ts":{n}0.000,"dur":9.000}},\n'
                    f'{{"ph":"X","name":"inner {n % 50}","pid":1,"tid":1,"ts":{n}1.000,'
                    f'"dur":{1 + n % 7}.{n % 1000:03}}},\n'
                    f'{{"ph":"X","name":"leaf","pid":1,"tid":1,"ts":{n}1.000,"dur":0.250}},\n'
                    for n in range(1, count // 3 + 1))
    return ('{"traceEvents":[\n' + lines[:-2]
            + '\n],"metadata":{"npuprof":{"version":"0.1.0","start_unix_ns":5,"pid":1,"threads":1}}}\n')


def tall():
    """Many threads, and counters with values that are hard to draw."""
    events = [{"ph": "X", "name": f"span {n}", "pid": 1, "tid": tid, "ts": 10 * n + tid, "dur": 5,
               "args": {"why": "because " * 20}}
              for tid in range(1, 31) for n in range(60)]
    values = {"huge": (0, -1e300, 1.7e308), "tiny": (5e-324, 1e-300, 0), "wide": (-1.7e308, 1.7e308),
              "below": (-5e9, -3), "nothing": (0, 0),
              "words": (2**64, 10**300), "parts": (0.00012, 0.00045), "large": (123456789012,)}
    events += [{"ph": "C", "name": name, "pid": 1, "ts": 9 * n, "args": {"value": v}}
               for name, column in values.items() for n, v in enumerate(column)]
    events += [{"ph": "C", "name": "pool", "pid": 1, "tag": "a tag that is as long as forty characters",
                "ts": ts, "args": {"used": used, "allocated": 2**64 - 1}}
               for ts, used in ((0, 5), (200, 2**63), (500, 7))]
    events += [{"ph": "C", "name": "no pool", "pid": 1, "ts": 5, "args": {"used": 1.5, "allocated": "x"}}]
    return json.dumps(events).replace('"dur": 5,', '"dur": 5e0,', 1)


class Figures(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.trace = npuprof.load(write("figures.json", sample()))
        cls.data = figures(cls.trace)

    def test_are_those_of_the_tables(self):
        totals, latency = summary(self.trace), self.data["latency"][0]
        self.assertEqual({key: latency[key] for key in ("count", "min", "max", "mean", "total")},
                         {key: totals[key] for key in ("count", "min", "max", "mean", "total")})
        self.assertEqual([latency[key] for key in ("p50", "p90", "p95", "p97", "p99", "p999")],
                         [totals[p] for p in (500, 900, 950, 970, 990, 999)])
        self.assertEqual(sum(latency["bins"]), totals["count"])
        rows = {row[0]: row for row in npu_operators(self.trace)}
        table = self.data["tables"][0]
        self.assertEqual((table["title"], {row[0]: (row[1], row[2]) for row in table["rows"]}),
                         ("NPU operators", {name: (row[2], row[3]) for name, row in rows.items()}))
        executions = npu_executions(self.trace)
        self.assertEqual(self.data["executions"],
                         {"count": len(executions), "total": sum(row[4] for row in executions),
                                                   "run": sum(row[5] for row in executions), "unknown": 0})
        self.assertEqual([p["phase"] for p in self.data["path"]], ["queue", "execute", "late",
                                                                 "wait"])
        self.assertEqual(len(self.data["gaps"]), 10)

    def test_every_span_is_drawn_in_its_place(self):
        timeline, zero = self.data["timeline"], min(self.trace.start)
        drawn = []
        for group in timeline["groups"]:
            at = 0
            for n in range(0, len(group["spans"]), 6):
                row, step, ns, label, flags, text = group["spans"][n:n + 6]
                at += step
                self.assertLess(row, group["rows"])
                drawn.append((self.data["names"][label][0], at + zero, ns))
        trace = self.trace
        self.assertEqual(sorted(drawn),
                         sorted((trace.text(i), trace.start[i], trace.dur[i]) for i in range(len(trace))))
        self.assertEqual([group["name"] for group in timeline["groups"]],
                         ["main", "worker 0", "worker 1", "loader", "npu0 PE 0", "npu0 PE 1", "npu1 PE 0",
                          "irq"])
        self.assertEqual(len(timeline["links"]), 4 * 24)
        [[start, stop, paused]] = timeline["folds"]
        self.assertTrue(paused and 170e6 < stop - start < 190e6)
        self.assertTrue(180e6 <= self.data["length"] - self.data["recorded"] < 180.1e6)

    @helpers.thorough
    def test_what_if_is_the_neural_engine_sheet(self):
        what_if = self.data["sparse"]
        ops = sparse.operators(self.trace)
        dense = sum(float(sparse.milliseconds(op["total_ns"], op["count"])) for op in ops)
        self.assertEqual({g["name"] for g in what_if["groups"]}, {"256x256", "256x1024", "1024x256"})
        self.assertAlmostEqual(sum(g["ms"] for g in what_if["groups"]) + what_if["rest"], dense)
        # The published example: 3.127 of 4.512 ms can be sparse.
        program = helpers.build("neural.c", "neural")
        self.assertEqual(helpers.run([program, "neural.json"]).returncode, 0)
        neural = figures(npuprof.load(scratch() / "neural.json"))["sparse"]
        self.assertAlmostEqual(sum(g["ms"] for g in neural["groups"]), 3.127)
        self.assertAlmostEqual(sum(g["ms"] for g in neural["groups"]) + neural["rest"], 4.512)

    @helpers.thorough
    def test_many_spans(self):
        """The longest are drawn one by one, those of each name, too, the others as density; the page stays
        small, and no time is lost."""
        trace = npuprof.load(write("many.json", many(120_000)))
        data = figures(trace)
        timeline = data["timeline"]
        self.assertEqual(data["spans"], 120_000)
        # the longest 40,000 are of one length; there are 52 names
        self.assertEqual((timeline["drawn"], timeline["groups"][0]["name"]), (52 * EACH, "thread 1"))
        self.assertEqual(dict(data["counts"]), Counter(trace.text(i) for i in range(len(trace))))
        [group] = timeline["groups"]
        self.assertEqual(group["rows"], 3)
        self.assertEqual({len(text) for text, _ in group["density"].values()}, {COLUMNS})
        # Leaves cover 2.5 % of their row: one level of 32 in every column but the first, before the first
        # span.
        self.assertEqual([group["density"][row][1] for row in range(3)], ["outer", "inner 47", "leaf"])
        self.assertRegex(group["density"][2][0], "^[01]+$")
        self.assertGreater(group["density"][2][0].count("1"), COLUMNS - 5)
        # A trace with lengths of all kinds: the longest one by one, the others as density, nothing twice.
        trace = npuprof.load(write("layers.json", sample(150)))
        everything = figures(trace)
        timeline = everything["timeline"]
        self.assertGreater(len(trace), SPANS)
        names = {trace.text(i) for i in range(len(trace))}
        self.assertTrue(SPANS - 50 < timeline["drawn"] <= SPANS + EACH * len(names))
        drawn = [(everything["names"][label][0], ns) for group in timeline["groups"]
                 for label, ns in zip(group["spans"][3::6], group["spans"][2::6])]
        least = sorted(trace.dur)[-SPANS - 1]
        self.assertEqual(sorted(ns for _, ns in drawn if ns > least),
                         sorted(ns for ns in trace.dur if ns > least))
        for name in names:
            longest = sorted((trace.dur[i] for i in range(len(trace)) if trace.text(i) == name), reverse=True)
            self.assertEqual(sorted((ns for text, ns in drawn if text == name), reverse=True)[:EACH],
                             longest[:EACH])
        self.assertLess(len(json.dumps(data)), 1_500_000)

    def test_same_bytes(self):
        """A page depends on the trace and on nothing else."""
        self.assertEqual(page.page(self.trace), page.page(npuprof.load(scratch() / "figures.json")))


class Text(unittest.TestCase):
    def test_one_file_and_nothing_of_the_network(self):
        page = page_of(write("text.json", sample()))
        text = page.read_text(encoding="utf-8")
        self.assertIn("default-src 'none'", text)
        self.assertEqual(re.findall(r"{{\w+}}", text), [])
        fetches = r"(?:src|href|url\(|@import|fetch|XMLHttpRequest|import\()"
        outside = re.findall(fetches + r"""\W{0,3}(?:https?:)?//[^"']*""", text)
        self.assertEqual(outside, [])
        self.assertNotIn(HOSTILE, text)
        self.assertIn(HOSTILE, json.dumps(data_in(page)["names"]).replace('\\"', '"'))

    def test_refusals(self):
        good = write("good.json", sample(1, 3))
        for arguments, word in ((["missing.json", "--html", "x.html"], "No such file"),
                                ([good, "--html", "/nowhere/x.html"], "cannot be written"),
                                ([write("cut.json", sample(1, 3)[:900]), "--html", "x.html"], "cut off")):
            self.assertIn(word, helpers.refused("report", *arguments))
        self.assertFalse((scratch() / "x.html").exists())


class Browser(unittest.TestCase):
    """One visit of a browser; the cases judge what it found."""

    @classmethod
    @functools.cache
    def visit(cls):
        chromium = helpers.chromium()
        web = helpers.web()
        program = helpers.build("golden.c", "golden")
        helpers.run([program, "golden.json"])
        traces = [write("page.json", sample())]
        if not helpers.QUICK:
            crash = (helpers.TESTS / "golden" / "kinds.json").read_text(encoding="utf-8")
            traces += [write("empty.json", EMPTY), write("foreign.json", FOREIGN),
                       write("many.json", many(120_000)),
                       scratch() / "golden.json", write("crash.json", crash), write("tall.json", tall())]
        pages = [page_of(path) for path in traces]
        shots = ROOT / "build" / "screenshots"
        shots.mkdir(parents=True, exist_ok=True)
        done = helpers.run(["node", ROOT / "tests" / "web" / "page.mjs", web, chromium, shots / "report",
                            *pages])
        if done.returncode:
            raise AssertionError(done.stderr[-2000:])
        return json.loads(done.stdout)

    def setUp(self):
        self.found = self.visit()

    def test_loads_quietly(self):
        found = self.found
        self.assertEqual(found["messages"], [])
        self.assertEqual([url for url in found["requests"] if not url.startswith("file:///")], [])
        self.assertEqual(len(found["requests"]), 1 + len(found["others"]))
        self.assertEqual((found["title"], found["images"], found["scripts"]),
                         ("encoder - npuprof report", 0, 2))
        self.assertEqual(found["sections"],
                         ["What to change", "Timeline", "What the end had to wait for", "Latency",
                          "Operators", "Call paths", "Device", "Memory", "Counters",
                          "What if several things change", "What if weights were sparse", "About this trace"])
        self.assertIn(HOSTILE, found["body"])

    def test_states_losses_and_the_clock_error(self):
        # The head speaks of the verdict's window, the last section of the whole recording.
        self.assertIn("\u00b1 640 ns", self.found["facts"])
        self.assertIn("1.219 \u00b5s", self.found["body"])
        self.assertIn("17", self.found["facts"])
        warnings = " ".join(self.found["warnings"])
        for words in ("17 arena full", "outside the call that submitted them", "NPUPROF_LEVEL"):
            self.assertIn(words, warnings)
        self.assertIn("180 ms of it paused", self.found["body"])

    def test_names_for_all_and_contrast(self):
        self.assertEqual((self.found["nameless"], self.found["twice"]), ([], []))
        for theme, worst in self.found["contrast"].items():
            self.assertGreaterEqual(worst["ratio"], 4.5, (theme, worst))

    def test_timeline_by_keyboard_and_pointer(self):
        found, keys = self.found, self.found["keys"]
        self.assertTrue(found["ink"])
        self.assertIn("worker 0: 72 spans", keys["ArrowDown"][0][0])
        self.assertRegex(keys["n"][0][0], r"^warm up +1\.\d+ ms, from 2\.000 ms")
        self.assertRegex(keys["n"][1][0], r"^Inference ")
        self.assertEqual(keys["p"][0], keys["n"][0])
        pictures = [keys["p"][0][1], keys["+"][0][1], keys["+"][1][1], keys["ArrowRight"][0][1],
                    keys["Enter"][0][1]]
        self.assertEqual(len(set(pictures)), 5)
        self.assertEqual(keys["0"][0][1], keys["p"][0][1])
        self.assertEqual(keys["Escape"][0][0], "No span selected.")
        self.assertNotEqual(found["dragged"], found["ink"])
        self.assertEqual(found["whole_again"], found["ink"])
        self.assertTrue(any("from" in tip for tip in found["tips"]), found["tips"])
        self.assertEqual(found["only"][0], "true")
        self.assertNotIn(found["only"][1], (found["ink"], 0))

    @helpers.thorough
    def test_distribution_and_tables(self):
        before, after, options = self.found["distribution"]
        self.assertNotEqual(before, after)
        self.assertIn("Inference (22)", options)
        table = self.found["table"]
        self.assertEqual(table["first"][:2], ["InnerProduct 256x1024", "InnerProduct 1024x256"])
        self.assertEqual(table["sorted"], ["ascending", sorted(table["first"])])
        self.assertEqual(table["tab"], ["Host operators", ["Quantize", "Dequantize"]])

    def test_sparse_weights(self):
        what_if = self.found["sparse"]
        trace = npuprof.load(scratch() / "page.json")
        ops = [(float(sparse.milliseconds(op["total_ns"], op["count"])),
                op["ne.weight_shape"] if op["sparse"] else None)
               for op in sparse.operators(trace)]
        before = sum(ms for ms, _ in ops)
        for said, first_ratio in ((what_if["first"], 4), (what_if["moved"][0], 3.5), (what_if["reset"], 4)):
            shapes = list(dict.fromkeys(shape for _, shape in ops if shape))
            after = sum(ms / ((first_ratio if shape == shapes[0] else 4) if shape else 1)
                        for ms, shape in ops)
            self.assertTrue(said.startswith(f"{1000 * before:.1f} \u00b5s \u2192 {1000 * after:.1f} "
                                            f"\u00b5s, {before / after:.2f} times as fast"), said)
        self.assertEqual((what_if["sliders"], what_if["moved"][1]), (3, "3.5 times as fast"))

    def test_show_a_gap(self):
        before, after, focus = self.found["gap"]
        self.assertNotEqual(before, after)
        self.assertEqual(focus, "lanes")

    @helpers.thorough
    def test_dark_and_narrow(self):
        self.assertEqual(self.found["dark"],
                         {"button": "Colours: dark", "page": "rgb(16, 19, 23)", "changed": True})
        self.assertLessEqual(self.found["overflow"], 0)
        for name in ("light", "dark", "narrow"):
            shot = (ROOT / "build" / "screenshots" / f"report-{name}.png").read_bytes()
            self.assertEqual(shot[:4], b"\x89PNG")
            self.assertGreater(len(shot), 20_000)

    @helpers.thorough
    def test_other_traces(self):
        empty, foreign, many, golden, crash, _ = self.found["others"]
        for page in self.found["others"]:
            self.assertEqual((page["messages"], page["images"], page["overflow"] > 0), ([], 0, False),
                             page["title"])
        self.assertIn("No spans were recorded", empty["body"])
        self.assertEqual(foreign["sections"][1:4], ["Timeline", "Latency", "Operators"])
        self.assertEqual(golden["sections"][1:4], ["Timeline", "What the end had to wait for", "Latency"])
        for page in (foreign, crash):
            self.assertIn("Open when it ended", page["sections"][:2])
        self.assertIn("but 2 spans had not ended", crash["body"])
        self.assertIn("never ended", crash["body"])
        self.assertNotIn("the trace is complete", crash["body"])
        self.assertIn("<b>a</b>", foreign["body"])
        self.assertTrue(foreign["ink"] and golden["ink"] and many["ink"])

    @helpers.thorough
    def test_what_is_selected_is_in_sight(self):
        for page in self.found["others"]:
            for sight in page.get("sight", []):
                self.assertTrue(all(sight[key] >= -1 for key in ("up", "down", "below")),
                                (page["title"], sight))
        for sight, words in zip(self.found["others"][-1]["sight"],
                                ("thread 30: 60 spans", "span 44 ", "thread 1: 60 spans"), strict=True):
            self.assertTrue(sight["told"].startswith(words), sight["told"])

    @helpers.thorough
    def test_counters_of_any_size(self):
        """Labels with prefixes, inside the card; test_other_traces looks at the console."""
        texts, _ = self.found["others"][-1]["axis"]
        self.assertEqual([self.found["narrow_axis"][1],
                          *(page[key][1] for page in self.found["others"]
                            for key in ("axis", "narrow_axis"))], [[]] * 13)
        for text in ("1.70e308", "-1.00e300", "1.00e-300", "-5 G", "450 \u00b5", "123.5 G"):
            self.assertIn(text, texts)

    @helpers.thorough
    def test_many_spans_do_not_freeze_it(self):
        many = self.found["others"][2]
        self.assertIn("120,000 spans", many["body"])
        self.assertLess(many["nodes"], 3000)
        self.assertLess(many["step_ms"], 400)
        self.assertLess(many["load_ms"], 15_000)
