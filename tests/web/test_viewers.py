# test: thorough time=700 - traces as real viewers show them: speedscope's own page and the report page, read
# back; and what breaks a rule is seen
# SPDX-License-Identifier: MIT
import collections
import functools
import json
import re
import sys
import unittest

import helpers
from helpers import ROOT, events, run, scratch
from write.test_json import NAMES

SHOTS = ROOT / "build" / "screenshots"

# The rules that viewers have, each with a trace that breaks it and nothing else: (rule, what stands in the
# trace once, what replaces it, who sees it). `npuprof.py check` (CHECK) must see it; PAGE: speedscope's page,
# too: it warns, refuses the file, or shows other tracks, spans or lengths. What only the check sees is what
# only the importers of Perfetto and Chrome stumble over.
CHECK, PAGE = "check", "page"
BOTH = CHECK + PAGE
MUTANTS = [
    ("three decimals", '"ts":40.000,"dur":60.000', '"ts":39.9996,"dur":60.000', BOTH),
    ("three decimals are exact below 2^51 ns", '"s":"t","ts":100.000', '"s":"t","ts":2251799813686.123',
     CHECK),
    ("at most 19 fractional digits", '"value":7', '"value":7.00000000000000000000', CHECK),
    ("no NaN", '"value":7', '"value":NaN', BOTH),
    ("no Infinity", '"value":7', '"value":-Infinity', BOTH),
    ("integers within int64", "9223372036854775807", "9223372036854775808", CHECK),
    ("pid above 0", '"name":"device","cat":"npu","pid":7', '"name":"device","cat":"npu","pid":0', BOTH),
    ("tid below 2^32", '"name":"device","cat":"npu","pid":7,"tid":2',
     '"name":"device","cat":"npu","pid":7,"tid":4294967296', BOTH),
    ("every event has a tid", '"name":"device","cat":"npu","pid":7,"tid":2',
     '"name":"device","cat":"npu","pid":7', BOTH),
    ("slices of a track do not cross", '"ts":40.000,"dur":60.000', '"ts":40.000,"dur":60.125', BOTH),
    ("no negative dur", '"ts":22.500,"dur":10.000', '"ts":22.500,"dur":-0.125', BOTH),
    ("no negative ts", '"ts":22.500,"dur":10.000', '"ts":-22.500,"dur":10.000', CHECK),
    ("an E has a B", '{"ph":"i","name":"mark","cat":"c","pid":7,"tid":1,"s":"t"',
     '{"ph":"E","name":"mark","pid":7,"tid":1', BOTH),
    ("a B is closed", '{"ph":"i","name":"mark","cat":"c","pid":7,"tid":1,"s":"t"',
     '{"ph":"B","name":"mark","pid":7,"tid":1', BOTH),
    ("of two equal slices the parent stands first", '"name":"after","pid"', '"name":"(child)","pid"', PAGE),
    ("flows: one begin for an id", '{"ph":"f","name":"flow","pid":7,"tid":1,"bp":"e"',
     '{"ph":"s","name":"flow","pid":7,"tid":1', CHECK),
    ("flows: same id", '"bp":"e","cat":"flow","id":1', '"bp":"e","cat":"flow","id":2', CHECK),
    ("flows: same cat", '"bp":"e","cat":"flow"', '"bp":"e","cat":"flaw"', CHECK),
    ("flows: same name", '{"ph":"f","name":"flow"', '{"ph":"f","name":"flaw"', CHECK),
    ("flows: a string id is hex", '"bp":"e","cat":"flow","id":1', '"bp":"e","cat":"flow","id":"one"', CHECK),
    ("flows: an end has bp e", '"bp":"e",', "", CHECK),
    ("flows: the begin lies in a slice", '"cat":"flow","id":1,"ts":15.000',
     '"cat":"flow","id":1,"ts":101.500,"tid":2', CHECK),
    ("flows: the end lies in a slice", '"ts":101.500', '"ts":102.500', CHECK),
    ("no missing comma", '"name":"mark",', '"name":"mark"', BOTH),
    ("no raw control character", '"name":"mark"', '"name":"ma\x01rk"', BOTH),
    ("UTF-8", '"name":"mark"', '"name":"ma\udcffrk"', CHECK),
    # another name: it takes the escape
    ("no surrogate escapes", '"name":"touching"', '"name":"\\ud83d\\ude00"', BOTH),
    ("the array is closed", '\n],\n"displayTimeUnit"', '\n,\n"displayTimeUnit"', BOTH),
    ("counters are numbers", '"value":7', '"value":"7"', CHECK),
    ("the process has a name", '"name":"process_name"', '"name":"process_labels"', BOTH),
    ("threads have names", '{"ph":"M","name":"thread_name","pid":7,"tid":2,"args":{"name":"PE 0"}},\n', "",
     BOTH),
    ("displayTimeUnit is ms or ns", '"displayTimeUnit":"ns"', '"displayTimeUnit":"us"', CHECK),
]


def nested(text, levels):
    """The trace with that many spans, one in the other."""
    more = (f',\n{{"ph":"X","name":"n","pid":7,"tid":2,"ts":{1000 + i}.000,"dur":{4000 - 2 * i}.000}}'
            for i in range(levels))
    return text.replace("\n],\n", "".join(more) + "\n],\n", 1)


def mutated(text, old, new):
    """The trace with the mutation. The table of sites repeats names, so it is left as it is."""
    text, sites, table = text.partition('"sites":[')
    return mutated_events(text, old, new) + sites + table


def mutated_events(text, old, new):
    assert text.count(old) == 1, f"{text.count(old)} times in the trace: {old}"
    # the lines of "after" and "same" change places
    if new == '"name":"(child)","pid"':
        parent, child = (next(line for line in text.splitlines() if f'"name":"{name}"' in line)
                         for name in ("after", "same"))
        return text.replace(parent, "@").replace(child, parent).replace("@", child)
    if new.endswith(',"tid":2') and '"ts":101.500' in new:      # the begin of the arrow, on another track
        new = new[:-len(',"tid":2')]
        line = next(line for line in text.splitlines() if old in line)
        return text.replace(line, line.replace('"tid":1', '"tid":2').replace(old, new))
    return text.replace(old, new)


def judged(trace):
    """The exit code of the check."""
    return run([sys.executable, helpers.NPUPROF_PY, "check", trace]).returncode


def frame(text):
    """speedscope puts the arguments behind a span's name."""
    return text.partition(" {")[0]


def shown(answer):
    """What speedscope's page shows, for comparisons: whole nanoseconds."""
    scale = {"microseconds": 1000, "nanoseconds": 1}
    return answer.get("error"), tuple(
        (track["name"],
         tuple((frame(name), round(start * scale[track["unit"]]), round(length * scale[track["unit"]]))
                              for name, start, length in track["spans"]))
                              for track in answer.get("tracks", ())), tuple(answer["messages"])


def page_of(trace):
    page = trace.with_suffix(".html")
    helpers.npuprof_py("report", trace, "--html", page)
    return page


def in_speedscopes_form(trace):
    path = trace.with_suffix(".speedscope.json")
    helpers.npuprof_py("convert", trace, "-o", path, printed="", said="")
    return path


def names_of(trace):
    """tid -> name, of tracks that hold spans, in the order of their tids."""
    with_spans = {e["tid"] for e in events(trace, "X")}
    return {e["tid"]: e["args"]["name"] for e in sorted(events(trace, "M", "thread_name"),
                                                        key=lambda e: e["tid"]) if e["tid"] in with_spans}


def on_page(name):
    """The name of a track on the page, which shows an engine as one track."""
    return re.sub(r"( instructions)?( #\d+)?$", "", name)


class Viewers(unittest.TestCase):
    """One visit of a browser with every trace; the cases judge what was seen."""

    @classmethod
    @functools.cache
    def visit(cls):
        chromium, web = helpers.chromium(), helpers.web()
        helpers.make("build/examples/digits/digits", "build/examples/digits/npusim")
        digits, hostile, small = (scratch() / f"{name}.json" for name in ("digits", "hostile", "small"))
        run([ROOT / "build/examples/digits/digits", "--output", digits], code=0, env=helpers.environment())
        (scratch() / "names").write_bytes(b"".join(name + b"\0" for name in NAMES))
        run([helpers.build("hostile.c", "hostile"), "names", hostile], code=0, env=helpers.environment())
        run([helpers.build("viewers.c", "viewers"), small], code=0, env=helpers.environment())
        cls.text = re.sub(r'"pid":\d+', '"pid":7', small.read_text(encoding="utf-8"))
        small.write_text(cls.text, encoding="utf-8")
        mutants = []
        for number, (_, old, new, _) in enumerate(MUTANTS):
            path = scratch() / f"mutant-{number}.json"
            path.write_bytes(mutated(cls.text, old, new).encode("utf-8", "surrogateescape"))
            mutants.append(path)
        SHOTS.mkdir(parents=True, exist_ok=True)
        whole = [digits, hostile, small, in_speedscopes_form(digits), in_speedscopes_form(hostile),
                 page_of(digits), page_of(hostile)]
        jobs = [{"file": str(path), "shot": str(SHOTS / f"viewers-{path.name}.png"), "track": "npusim PE 2",
                 "walk": 20} for path in whole]
        # curves follow the tracks of the demo's page; the walk ends before them
        jobs[-2]["walk"] = len(set(map(on_page, names_of(helpers.load(digits)).values())))
        jobs += [{"file": str(path), "shot": None} for mutant, path in zip(MUTANTS, mutants)
                 if PAGE in mutant[3]]
        (scratch() / "jobs.json").write_text(json.dumps(jobs))
        done = run(["node", ROOT / "tests" / "web" / "viewers.mjs", web, chromium, scratch() / "jobs.json"],
                   code=0, timeout=600)
        answers = json.loads(done.stdout)
        cls.traces = {path.stem: helpers.load(path) for path in (digits, hostile, small)}
        cls.seen = {path.name: answer for path, answer in zip(whole, answers)}
        rest = iter(answers[len(whole):])
        cls.mutants = [(mutant, path, next(rest) if PAGE in mutant[3] else None)
                       for mutant, path in zip(MUTANTS, mutants)]
        return cls

    def setUp(self):
        self.visit()

    def spans_of(self, trace, tid):
        """(name, start, duration) in whole ns, in the order of their begin."""
        found = [(e["name"], round(1000 * e["ts"]), round(1000 * e["dur"])) for e in events(trace, "X")
                 if e["tid"] == tid]
        return [span for span in found if span[2]]      # speedscope leaves out what has no length

    def test_speedscope_opens_the_json(self):
        """The JSON as written: its tracks, how many spans each has. (Lengths: see the head of
        tools/npuprof/convert/speedscope.py.)"""
        for name in ("digits", "hostile"):
            answer, trace = self.seen[f"{name}.json"], self.traces[name]
            self.assertIsNone(answer.get("error"))
            (process,) = {(e["pid"], e["args"]["name"]) for e in events(trace, "M", "process_name")}
            wanted = [(f"{process[1]} (pid {process[0]}), {thread} (tid {tid})"
                       if thread else f"{process[1]} (pid {process[0]}, tid {tid})",
                       len(self.spans_of(trace, tid))) for tid, thread in names_of(trace).items()]
            found = [(track["name"], sum(bool(length) for _, _, length in track["spans"]))
                     for track in answer["tracks"]]
            self.assertEqual(sorted(found), sorted(wanted))
        self.assertEqual(len(self.seen["digits.json"]["tracks"]), len(names_of(self.traces["digits"])))

    def test_speedscope_shows_every_span(self):
        """In speedscope's own form, every track, name, start and duration to the nanosecond, and not a word
        on the console."""
        for name in ("digits", "hostile"):
            answer, trace = self.seen[f"{name}.speedscope.json"], self.traces[name]
            self.assertEqual((answer.get("error"), answer["messages"], answer["left_open"]), (None, [], 0))
            names = names_of(trace)
            self.assertEqual([track["name"] for track in answer["tracks"]],
                             [text or f"tid {tid}" for tid, text in names.items()])
            for tid, track in zip(names, answer["tracks"]):
                self.assertEqual(track["unit"], "nanoseconds")
                first = min(round(1000 * e["ts"]) for e in events(trace, "X") if e["tid"] == tid)
                wanted = collections.Counter((span, start - first, length)
                                             for span, start, length in self.spans_of(trace, tid))
                self.assertEqual(collections.Counter(tuple(span) for span in track["spans"] if span[2]),
                                 wanted, track["name"])

    def test_a_known_span(self):
        """The first execution of the first engine: as long as its ticks say, that stand in the JSON's
        arguments."""
        first = min(events(self.traces["digits"], "X", "Execution"),
                    key=lambda e: (e["args"]["pe_index"], e["ts"]))
        track = next(t for t in self.seen["digits.speedscope.json"]["tracks"]
                     if t["name"] == f"npusim PE {first['args']['pe_index']}")
        self.assertEqual(track["spans"][0][0], "Execution")
        self.assertEqual(track["spans"][0][2], round(1000 * first["dur"]))
        ticks = first["args"]["end_ticks"] - first["args"]["start_ticks"]
        # npusim's counter runs at 25 MHz and drifts by less than 1 %.
        self.assertAlmostEqual(track["spans"][0][2], ticks * 40, delta=ticks * 0.4)

    def test_small_trace_is_shown_exactly(self):
        answer = self.seen["small.json"]
        error, tracks, messages = shown(answer)
        self.assertEqual((error, messages), (None, ()))
        self.assertEqual(tracks, (("viewers (pid 7), main \"é\" (tid 1)", (
            ("parent", 0, 100_000), ("child", 0, 40_000), ("submit", 10_000, 10_000),
            ("touching", 40_000, 60_000), ("after", 100_000, 2500), ("same", 100_000, 2500))),
            ("viewers (pid 7), PE 0 (tid 2)", (("device", 0, 10_000),))))
        self.assertEqual(judged(scratch() / "small.json"), 0)

    def test_each_broken_rule_is_seen(self):
        good = shown(self.seen["small.json"])
        self.assertGreater(len([m for m in MUTANTS if PAGE in m[3]]), 14)
        for (rule, _, _, by), path, answer in self.mutants:
            with self.subTest(rule=rule):
                if CHECK in by:
                    self.assertNotEqual(judged(path), 0, "check")
                if PAGE in by:
                    self.assertNotEqual(shown(answer), good, "speedscope")

    def test_depth(self):
        for levels, code in ((512, 0), (513, 1)):
            path = scratch() / f"depth-{levels}.json"
            path.write_text(nested(self.text, levels), encoding="utf-8")
            self.assertEqual(judged(path), code)

    def test_a_large_file_is_named(self):
        """Chrome's viewer is slow above a million events: the check says so and passes."""
        path = scratch() / "large.json"
        line = '{"ph":"i","name":"i","pid":7,"tid":1,"s":"t","ts":1.000},\n'
        path.write_text(self.text.replace('{"traceEvents":[\n', '{"traceEvents":[\n' + 1_000_001 * line),
                        encoding="utf-8")
        done = helpers.npuprof_py("check", path)
        self.assertIn("Chrome's viewer is slow above 1000000", done.stdout)

    def test_report_page(self):
        """The page's timeline, walked by keyboard: a line for each track with its number of spans, and spans
        with their lengths."""
        page, trace = self.seen["digits.html"], self.traces["digits"]
        self.assertEqual((page.get("error"), page["messages"]), (None, []))
        wanted = collections.Counter()
        for tid, name in names_of(trace).items():
            wanted[on_page(name)] += sum(e["tid"] == tid for e in events(trace, "X"))
        said = {m[1]: int(m[2].replace(",", ""))
                for m in (re.match(r"(.*): ([\d,]+) spans, ", text) for text in page["tracks"])}
        self.assertEqual(said, wanted)
        # the walk ends there; a busy machine may leave an engine without work
        last = list(said)[-1]
        self.assertRegex(last, r"^npusim PE \d$")
        first = min((e for e in events(trace, "X", "Execution") if e["args"]["pe_index"] == int(last[-1])),
                    key=lambda e: e["ts"])
        self.assertTrue(page["details"][0].startswith(f"Execution {first['dur']:.1f} µs, from "),
                        page["details"][0])
        self.assertIn(f"job: {first['args']['job']} ", page["details"][0])

    def test_report_page_of_hostile_names(self):
        page, trace = self.seen["hostile.html"], self.traces["hostile"]
        self.assertEqual((page.get("error"), page["messages"]), (None, []))
        self.assertEqual(len(page["tracks"]), 20)
        told = "\n".join(page["tracks"])
        for name in ("main", "plain", "quote\"quote", "back\\slash", "/slash/", "tab"):
            self.assertIn(f"{name}", told)
        self.assertEqual(len(names_of(trace)), len(self.seen["hostile.json"]["tracks"]))

    def test_screenshots(self):
        for name in ("digits.json", "digits.speedscope.json", "hostile.json", "digits.html"):
            shot = (SHOTS / f"viewers-{name}.png").read_bytes()
            self.assertEqual(shot[:4], b"\x89PNG")
            self.assertGreater(len(shot), 4000, name)
