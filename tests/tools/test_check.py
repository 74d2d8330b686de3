# SPDX-License-Identifier: MIT
"""npuprof.py check: one good trace, and for each rule traces that break it and nothing else."""

import contextlib
import io
import json
import pathlib
import re
import subprocess
import sys
import tempfile
import unittest
from decimal import Decimal

import helpers
from npuprof import check, cli
from npuprof.base import strict_json

ROOT = pathlib.Path(__file__).resolve().parents[2]
# The mutants below replace parts of this text.
GOOD = """{"displayTimeUnit": "ns",
"metadata": {"npuprof": {"version": "1.0.0", "host": "box", "pid": 42, "start_unix_ns": 1700000000000000000,
  "clock": {"source": "tsc", "hz": 2400000000.125}, "lost": {"arena_full": 0, "names": 0},
  "devices": [{"name": "npu0", "clock_sync": {"rate_hz": 25003000.25, "drift_ppm": -0.5, "max_error_ns": 900,
    "anchors": 5, "wraps": 1, "resets": 0, "causality_violations": 0}}]}},
"traceEvents": [
{"ph":"M","name":"process_name","pid":1,"args":{"name":"host"}},
{"ph":"M","name":"thread_name","pid":1,"tid":1,"args":{"name":"main \\"é\\" \\\\ud83d"}},
{"ph":"M","name":"thread_name","pid":1,"tid":2,"args":{"name":"PE 0"}},
{"ph":"M","name":"thread_sort_index","pid":1,"tid":2,"args":{"sort_index":-2}},
{"ph":"X","name":"parent","cat":"host","pid":1,"tid":1,"ts":0.000,"dur":100.000,\
"args":{"n":9223372036854775807}},
{"ph":"X","name":"child","pid":1,"tid":1,"ts":0.000,"dur":40.001,\
"args":{"deep":[{"n":-9223372036854775808}]}},
{"ph":"X","name":"touching","pid":1,"tid":1,"ts":40.001,"dur":59.999},
{"ph":"X","name":"empty","pid":1,"tid":1,"ts":50,"dur":0},
{"ph":"X","name":"after","pid":1,"tid":1,"ts":100.000,"dur":1.5},
{"ph":"X","name":"device","pid":1,"tid":2,"ts":20.000,"dur":10.000},
{"ph":"s","name":"job","cat":"npu","id":"0x1F","pid":1,"tid":1,"ts":10.000},
{"ph":"t","name":"job","cat":"npu","id":"1f","pid":1,"tid":1,"ts":15.000},
{"ph":"f","bp":"e","name":"job","cat":"npu","id":31,"pid":1,"tid":2,"ts":20.000},
{"ph":"B","name":"begin","pid":1,"tid":2,"ts":40.000},
{"ph":"B","name":"inner","pid":1,"tid":2,"ts":41.000},
{"ph":"E","pid":1,"tid":2,"ts":42.000},
{"ph":"E","name":"begin","pid":1,"tid":2,"ts":43.000},
{"ph":"i","name":"mark","pid":1,"tid":2,"ts":44.000,"s":"t"},
{"ph":"C","name":"bytes","pid":1,"tid":1,"ts":44.000,"args":{"used":7,"share":0.25}}
]}
"""

# rule: [(what to replace, by what)]. `what` is there exactly once.
MUTANTS = {
    "control": [('"host": "box"', '"host": "b\x7fx"')],
    "event": [('{"ph":"i","name":"mark","pid":1,"tid":2,"ts":44.000,"s":"t"}', "17")],
    "ph": [('"ph":"i"', '"ph":"?"'), ('"ph":"i"', '"ph":"XX"'), ('"ph":"i",', ""), ('"ph":"i"', '"ph":[]')],
    "name": [('"name":"touching"', '"name":5'), ('"name":"touching"', '"name":1.5'),
             ('"name":"touching",', ""),
             ('"args":{"name":"PE 0"}', '"args":{"name":"PE '
                                        '0"}},{"ph":"M","name":"thread_name","pid":1,"tid":2'),
             ('"args":{"name":"PE 0"}', '"args":{"name":""}')],
    "cat": [('{"ph":"t"', '{"ph":"s","name":"job","cat":["npu"],"id":7,"pid":1,"tid":1,"ts":10.000},\n'
                          '{"ph":"t"'),
            ('"cat":"host"', '"cat":null')],
    "args": [("9223372036854775807", 400 * "9"), ("9223372036854775807", "9223372036854775808"),
             ("-9223372036854775808", "-9223372036854775809"),
             ('{"deep":[{"n":-9223372036854775808}]}', "[]")],
    "number": [('"used":7', '"used":0.12345678901234567890'),
               ('"drift_ppm": -0.5', '"drift_ppm": -0.50000000000000000000')],
    "pid": [('"name":"mark","pid":1', '"name":"mark","pid":%s' % pid)
            for pid in ("0", "-1", "4294967296", "1.0", '"1"', "true", "null")]
           + [('"name":"mark","pid":1', '"name":"mark"'),
              ('{"ph":"M","name":"process_name"',
               '{"ph":"M","name":"process_labels"},\n{"ph":"M","name":"process_name"')],
    "tid": [('"name":"mark","pid":1,"tid":2', '"name":"mark","pid":1,"tid":%s' % tid)
            for tid in ("0", "-1", "4294967296", "2.0", '"2"', "true", "null")]
           + [('"name":"mark","pid":1,"tid":2', '"name":"mark","pid":1'),
              ('"name":"mark","pid":1,"tid":2', '"name":"process_mark","pid":1'),
              ('"name":"thread_sort_index","pid":1,"tid":2', '"name":"thread_sort_index","pid":1'),
              ('"name":"process_name","pid":1', '"name":"process_labels","pid":1,"tid":0},\n'
               '{"ph":"M","name":"process_name","pid":1')],
    "ts": [('"ts":44.000,"s"', '"ts":%s,"s"' % ts)
           for ts in ("-0.001", "-1", "44.0001", "44.0000", "1e-4", "2251799813685.248", "2251799813686",
                      "1e999999999",
                      '"44"', "null", "true")] + [('"ts":44.000,"s"', '"s"'), ('"ts":100.000,', "")],
    "dur": [('"dur":59.999', '"dur":%s' % dur)
            for dur in ("-0.001", "59.9990", "2251799813685.248", '"59"', "false")] + [(',"dur":59.999', "")],
    "overlap": [('"dur":40.001', '"dur":40.002'), ('"dur":59.999', '"dur":60.000'),
                ('"dur":100.000', '"dur":100.001'),
                ('"ts":20.000,"dur":10.000', '"ts":20.000,"dur":20.001')],
    "begin-end": [('{"ph":"E","name":"begin","pid":1,"tid":2,"ts":43.000},\n', ""),
                  ('"ph":"E","name":"begin"', '"ph":"E","name":"other"'),
                  ('{"ph":"B","name":"inner","pid":1,"tid":2,"ts":41.000},\n', ""),
                  ('"ph":"E","pid":1,"tid":2,"ts":42.000', '"ph":"E","pid":1,"tid":2,"ts":41.000')],
    "flow-id": [('"id":31,', "")] + [('"id":31', '"id":%s' % flow_id) for flow_id in
                ('"job"', '"+1f"', '""', '"10000000000000000f"', "-1", "31.0", "true",
                 "18446744073709551616")],
    "flow-repeat": [('{"ph":"t"', '{"ph":"s"')],
    "flow-match": [('"ph":"f","bp":"e","name":"job"', '"ph":"f","bp":"e","name":"jab"'),
                   ('"bp":"e","name":"job","cat":"npu"', '"bp":"e","name":"job"'), ('"id":31', '"id":30'),
                   ('"ph":"t","name":"job","cat":"npu","id":"1f","pid":1,"tid":1,"ts":15.000',
                    '"ph":"t","name":"job","cat":"npu","id":"1f","pid":1,"tid":1,"ts":9.999')],
    "flow-bp": [('"bp":"e",', ""), ('"bp":"e"', '"bp":"s"')],
    "flow-slice": [('"tid":2,"ts":20.000}', '"tid":2,"ts":19.999}'),
                   ('"tid":2,"ts":20.000}', '"tid":2,"ts":30.000}'),
                   ('"tid":1,"ts":10.000}', '"tid":3,"ts":10.000}'),
                   ('"tid":1,"ts":15.000}', '"tid":1,"ts":101.500}')],
    "counter": [('"used":7', '"used":"7"'), ('"used":7', '"used":true'), ('"used":7', '"used":1e999'),
                ('"used":7', '"used":null'), (',"args":{"used":7,"share":0.25}', ""),
                ('{"used":7,"share":0.25}', "{}")],
    "thread-name": [('{"ph":"M","name":"thread_name","pid":1,"tid":2,"args":{"name":"PE 0"}},\n', "")],
    "process-name": [('"name":"process_name"', '"name":"process_labels"')],
    "time-unit": [('"displayTimeUnit": "ns"', '"displayTimeUnit": "us"'),
                  ('"displayTimeUnit": "ns"', '"displayTimeUnit": []')],
    "metadata": [('"version": "1.0.0", ', ""), ('"host": "box", ', ""), ('"pid": 42, ', ""),
                 ('"pid": 42', '"pid": "42"'),
                 (', "start_unix_ns": 1700000000000000000', ""), ('1700000000000000000', '1.7e18'),
                 ('"source": "tsc", ', ""), (', "hz": 2400000000.125', ""),
                 ('"hz": 2400000000.125', '"hz": 0'),
                 ('"hz": 2400000000.125', '"hz": null'), ('"drift_ppm": -0.5', '"drift_ppm": "0"'),
                 ('"rate_hz": 25003000.25', '"rate_hz": -1'),
                 ('{"arena_full": 0, "names": 0}', "3"), ('"names": 0', '"names": -1'),
                 ('"names": 0', '"names": "3"'),
                 ('"rate_hz": 25003000.25, ', ""), ('"drift_ppm": -0.5, ', ""),
                 ('"max_error_ns": 900', '"max_error_ns": -1'),
                 ('"anchors": 5', '"anchors": 5.5'), ('{"source": "tsc", "hz": 2400000000.125}', "1"),
                 ('"devices": [', '"devices": 5, "others": ['), ('"wraps": 1, ', ""), ('"resets": 0, ', ""),
                 (', "causality_violations": 0', ""), ('"clock_sync": {', '"clock": {'),
                 ('"devices": [', '"devices": [1, '),
                 ('"metadata": {"npuprof": {', '"metadata": {"npuprof": 1, "other": {'),
                 ('"metadata": {"npuprof": {', '"metadata": 1, "other": {"npuprof": {')],
}

# Still good after the replacement.
HARMLESS = [
    ("", ""),
    ('"displayTimeUnit": "ns",', ""),
    ('"metadata": {"npuprof": {', '"other": {"npuprof": {'),  # not a trace of npuprof: any metadata will do
    ('"ts":44.000,"s"', '"ts":2251799813685.247,"s"'),
    ('"ts":44.000,"s"', '"ts":1.5e1,"s"'),
    ('"dur":59.999', '"dur":59'),
    ('"tid":2,"ts":20.000}', '"tid":2,"ts":29.999}'),
    ('"share":0.25', '"share":0.1234567890123456789'),
    ('"displayTimeUnit": "ns",', '"samples": [1],'),
    ('"rate_hz": 25003000.25', '"rate_hz": 0'),
    ('"name":"mark","pid":1,"tid":2', '"name":"mark","pid":1,"tid":4294967295'),
    ('"tid":1,"ts":15.000}', '"tid":1,"ts":60.000}'),
    ('"tid":1,"ts":15.000}', '"tid":1,"ts":101.500},\n{"ph":"X","name":"empty '
                             'root","pid":1,"tid":1,"ts":101.500,"dur":0}'),
    ('"name":"mark"', '"name":"0.123456789012345678901234567890 \\u00e9 \U0001f600"'),
]

# Not strict JSON, or no trace: (what to replace, by what, what the message says). Exit code 2.
REFUSED = [
    ('"share":0.25', '"share":NaN', "NaN"),
    ('"share":0.25', '"share":-Infinity', "-Infinity"),
    ('"share":0.25', '"used":0.25', 'duplicate key "used"'),
    ('"displayTimeUnit": "ns"', '"displayTimeUnit": "ns", "displayTimeUnit": "ns"',
     'duplicate key "displayTimeUnit"'),
    ('"name":"mark"', '"name":"ma\x01rk"', "control character"),
    ('"name":"mark"', '"name":"ma\nrk"', "control character"),
    ('"name":"mark"', '"name":"\\ud83d\\ude00"', "surrogate escape"),
    ('"name":"mark"', '"name":"\\\\\\uDC00"', "surrogate escape"),
    ('"name":"mark"', '"name":"\udc80"', "UTF-8"),
    ('"name":"mark"', "'name':\"mark\"", "strict JSON"),
    ('"used":7', '"used":07', "strict JSON"),
    ('"used":7', '"used":.7', "strict JSON"),
    ('"used":7', '"used":7,', "strict JSON"),
    ('"used":7', '"used":' + 5000 * "7", "strict JSON"),
    ('"used":7', '"used":1e99999999999999999999', "a number out of all bounds"),
    ('"used":7', '"used":' + 100000 * "[", "nested too deeply"),
    ("\n]}\n", "\n]} x\n", "data behind the end"),
    ("\n]}\n", "\n", "expected"),
    ("\n]}\n", "\n,]}\n", "strict JSON"),
    ('},\n{"ph":"i"', '}\n{"ph":"i"', "expected"),
    ('"displayTimeUnit": "ns"', '"displayTimeUnit" "ns"', "expected"),
    ('"displayTimeUnit": "ns"', '1: "ns"', "expected a key"),
    ('{"displayTimeUnit": "ns"', '\ufeff{"displayTimeUnit": "ns"', "strict JSON"),
    ('"traceEvents"', '"events"', "not a trace"),
    (GOOD, '{"traceEvents": {}}', "not a trace"),
    (GOOD, '{"traceEvents": null}', "not a trace"),
    (GOOD, "[]", "not a trace"),
    (GOOD, "{}", "not a trace"),
    (GOOD, "", "strict JSON"),
]


def replaced(old, new):
    assert old == "" or GOOD.count(old) == 1, f"{GOOD.count(old)} times in the good trace: {old}"
    return GOOD.replace(old, new) if old else GOOD


class Check(unittest.TestCase):
    def setUp(self):
        self.directory = tempfile.TemporaryDirectory()
        self.addCleanup(self.directory.cleanup)

    def check(self, text):
        """Returns the exit code and the lines of one run, the file's name cut off."""
        path = pathlib.Path(self.directory.name, "t.json")
        path.write_bytes(text.encode("utf-8", "surrogateescape"))
        output = io.StringIO()
        with contextlib.redirect_stdout(output), contextlib.redirect_stderr(output):
            code = cli.main(["check", str(path)])
        lines = output.getvalue().splitlines()
        self.assertTrue(all(line.startswith(f"{path}:") for line in lines), lines)
        return code, [line.removeprefix(f"{path}:").lstrip() for line in lines]

    def assert_only(self, rule, text):
        code, lines = self.check(text)
        rules = {re.sub(r"event \d+ \(byte \d+\): ", "", line).partition(":")[0] for line in lines[:-1]}
        self.assertEqual((code, rules), (1, {rule}), lines)
        self.assertRegex(lines[-1], rf"^{len(lines) - 1} errors?$")

    def test_first_of_an_array(self):
        """What is no event is a finding wherever it stands, and a refusal only where nothing else stands."""
        event = '{"ph":"X","name":"a","ts":1,"dur":2,"pid":1,"tid":1}'
        for text in (f"[1, {event}]", f"[{event}, 1]"):
            code, lines = self.check(text)
            self.assertEqual((code, sum("1 is not an object" in line for line in lines)), (1, 1), lines)
        self.assertEqual(self.check("[1]"), (2, ["1: not a trace: its array holds no event"]))
        code, lines = self.check('["traceEvents":[' + event + '],"metadata":{"npuprof":{}}}')
        self.assertEqual((code, "not strict JSON" in lines[-1]), (2, True), lines)

    def test_good(self):
        for old, new in HARMLESS:
            with self.subTest(new=new):
                code, lines = self.check(replaced(old, new))
                self.assertEqual(code, 0, lines)
                self.assertRegex(lines[0], r"^ok, \d+ events$")

    def test_no_event(self):
        """Names alone are nothing that was recorded."""
        name = '{"ph":"M","name":"process_name","pid":1,"args":{"name":"p"}}'
        for text in ('{"traceEvents": [ ] }', f'{{"traceEvents": [{name}]}}'):
            code, lines = self.check(text)
            self.assertEqual((code, lines[0]),
                             (1, "fault: nothing was recorded: it has no event beside names"), lines)

    def test_other_tools(self):
        """What the format allows is no error of another tool; what viewers misread is one."""
        def text(*events):
            return '{"traceEvents": [%s]}' % ",".join(events)
        good = ('{"ph":"M","name":"process_name","pid":7,"tid":0,"args":{"name":"python"}}',
                '{"ph":"X","name":"kernel","pid":0,"tid":7,"ts":1700000000000000.1234,"dur":0.00025}',
                '{"ph":"X","name":"span","pid":"Spans","tid":"PyTorch Profiler","ts":1,"dur":2}',
                '{"ph":"s","name":"a","id":"job","pid":"Spans","tid":"PyTorch Profiler","ts":1}',
                '{"ph":"f","name":"a","id":"job","pid":0,"tid":7,"ts":1700000000000000.1234}',
                '{"ph":"C","name":"c","pid":0,"ts":1,"args":{"n":1}}', "{}")
        code, lines = self.check(text(*good))
        self.assertEqual(code, 0, lines)
        self.assertRegex(lines[-1], r"^\d warnings?, 7 events$")
        for bad, rule in (('{"ph":"X","name":"a","pid":-1,"tid":0,"ts":1,"dur":1}', "pid"),
                          ('{"ph":"X","name":"a","pid":1,"ts":1,"dur":1}', "tid"),
                          ('{"ph":"X","name":"a","pid":1,"tid":1,"ts":-1,"dur":1}', "ts"),
                          ('{"ph":"f","name":"a","id":"other","pid":0,"tid":7,"ts":1}', "flow-match")):
            code, lines = self.check(text(*good, bad))
            self.assertEqual(code, 1, lines)
            self.assertIn(f"byte {text(*good, bad).index(bad)}): {rule}: ", lines[0])

    def test_each_mutant_breaks_its_rule(self):
        for rule, mutants in MUTANTS.items():
            for old, new in mutants:
                with self.subTest(rule=rule, new=new):
                    self.assert_only(rule, replaced(old, new))

    def test_every_rule_has_a_mutant(self):
        source = pathlib.Path(check.__file__).read_text()
        rules = set(re.findall(r'\badd\("([a-z-]+)"', source)) | {"pid", "tid", "ts", "dur"}
        self.assertEqual(rules, set(MUTANTS) | {"depth"})

    def test_refused(self):
        for old, new, message in REFUSED:
            with self.subTest(new=new[:60]):
                code, lines = self.check(replaced(old, new))
                self.assertEqual((code, len(lines)), (2, 1), lines)
                self.assertIn(message, lines[0])

    def test_place_of_a_refusal(self):
        text = replaced('"name":"mark"', '"name":"ma\x01rk"')
        line, byte = re.match(r"(\d+): byte (\d+): ", self.check(text)[1][0]).groups()
        self.assertEqual(int(byte), text.encode().index(b"\x01"))
        self.assertEqual(int(line), text[:text.index("\x01")].count("\n") + 1)

    def test_place_of_a_finding(self):
        text = replaced('"name":"mark"', '"name":1')
        event, byte = re.match(r"event (\d+) \(byte (\d+)\)", self.check(text)[1][0]).groups()
        self.assertEqual(int(event), text[:text.index('{"ph":"i"')].count('{"ph"'))
        self.assertEqual(text.encode()[int(byte):].partition(b",")[0], b'{"ph":"i"')

    def test_depth(self):
        def nested(levels):
            slices = (f',\n{{"ph":"X","name":"n","pid":1,"tid":2,"ts":{1000 + i},"dur":{2000 - 2 * i}}}'
                      for i in range(levels))
            return replaced("\n]}\n", "".join(slices) + "\n]}\n")
        self.assertEqual(self.check(nested(512))[0], 0)
        self.assert_only("depth", nested(513))

    def test_child_that_starts_with_its_parent(self):
        # The longer one is the parent wherever it stands; of two equal ones the first.
        parent, child = re.findall(r'(\{.*"name":"(?:parent|child)".*\}),\n', GOOD)
        swapped = GOOD.replace(parent, "@").replace(child, parent).replace("@", child)
        self.assertEqual(self.check(swapped)[0], 0)
        self.assertEqual(self.check(GOOD.replace(child, child + ",\n" + child))[0], 0)

    def test_flow_ends_at_the_ts_of_its_start(self):
        # File order decides: the s must come first.
        arrow = re.search(r'\{"ph":"s".*\},\n', GOOD)[0]
        end = '{"ph":"f","bp":"e","name":"job","cat":"npu","id":31,"pid":1,"tid":1,"ts":10.000},\n'
        self.assertEqual(self.check(GOOD.replace(arrow, arrow + end))[0], 0)
        self.assert_only("flow-match", GOOD.replace(arrow, end + arrow))

    def test_empty_begin_end_pair_without_complete_events(self):
        name = '{"ph":"M","name":"%s","pid":1,"tid":1,"args":{"name":"n"}},\n'
        pair = '{"ph":"B","name":"a","pid":1,"tid":1,"ts":1},\n{"ph":"E","name":"a","pid":1,"tid":1,"ts":1}'
        trace = '{"traceEvents": [' + name % "process_name" + name % "thread_name" + pair + "]}"
        self.assertEqual(self.check(trace)[0], 0)

    def test_many_findings_are_capped(self):
        lines = self.check('{"traceEvents": [' + ",".join(["1"] * 25) + "]}")[1]
        self.assertEqual(lines[-2:], ["event: 15 more", "25 errors"])
        self.assertEqual(len(lines), 12)
        lines = self.check('{"traceEvents": [' + ",".join(["1"] * 10) + "]}")[1]
        self.assertEqual(len(lines), 11)

    def test_shown(self):
        for value, text in (("é\n", r'"\u00e9\n"'), (Decimal("1.50"), "1.50"), ([Decimal(1)], '["1"]'),
                            (58 * "n", f'"{58 * "n"}"'), (59 * "n", f'"{56 * "n"}...')):
            self.assertEqual(strict_json.shown(value), text)

    def test_large_is_a_warning(self):
        limit, check.EVENTS_SLOW = check.EVENTS_SLOW, 18
        self.addCleanup(setattr, check, "EVENTS_SLOW", limit)
        code, lines = self.check(GOOD)
        self.assertEqual(code, 0)
        self.assertIn("warning: 19 events", lines[0])
        self.assertEqual(limit, 1000000)

    def test_losses_are_a_warning(self):
        for old, new, sentence in (('"names": 0', '"names": 3', "warning: lost: 3 names"),
                                   ('"causality_violations": 0', '"causality_violations": 2',
                                    "warning: device 'npu0': 2 causality_violations"),
                                   ('"causality_violations": 0',
                                    '"causality_violations": 0, "unplaced_spans": 4',
                                    "warning: device 'npu0': 4 unplaced_spans")):
            code, lines = self.check(replaced(old, new))
            self.assertEqual((code, lines[0]), (0, sentence))
            self.assertEqual(lines[1], "1 warning, 19 events")

    def test_text_from_the_trace_cannot_break_a_line(self):
        lines = self.check(replaced('"cat":"host"', '"cat":["\\u001b[31m\\n\u2028"]'))[1]
        self.assertTrue(all(line.isprintable() and line.isascii() for line in lines), lines)


    def pairs(self, *marks):
        """What is said of the pairs in a file of such events: (phase, ts, name)."""
        events = [{"ph": phase, "ts": ts, "pid": 1, "tid": 1, "dur": 1, "name": name}
                  for phase, ts, name in (*marks, ("X", 20, "x"))]
        return [line.partition("): ")[2] for line in self.check(json.dumps(events))[1]
                if re.search("begin-end|overlap", line)]

    def test_pairs_as_they_are_read(self):
        """By name, and in one tick as they stand in the file."""
        self.assertEqual(self.pairs(("B", 1, "a"), ("B", 1, "b"), ("E", 3, "a"), ("E", 9, "b")), [])
        self.assertEqual(self.pairs(("B", 1, "a"), ("B", 2, "b"), ("E", 5, "a"), ("E", 9, "b")),
                         ["overlap: 2000 to 9000 ns runs past event 0, which ends at 5000"])
        self.assertEqual(self.pairs(("B", 1, "a"), ("E", 5, "a"), ("B", 5, "a"), ("E", 9, "a")), [])
        self.assertEqual(self.pairs(("B", 5, "a"), ("E", 5, "a")),
                         ["begin-end: E closes event 0 of the same ts: in a file with X events, viewers put "
                          "ends first"])


class Command(unittest.TestCase):
    def run_tool(self, *arguments, **options):
        return helpers.npuprof_py(*arguments, code=None, **options)

    @helpers.thorough
    def test_exit_codes(self):
        with tempfile.TemporaryDirectory() as directory:
            good, bad, missing = (pathlib.Path(directory, name)
                                  for name in ("good.json", "bad.json", "missing.json"))
            good.write_text(GOOD)
            bad.write_text(replaced('"name":"mark"', '"name":1'))
            for code, arguments in ((0, ["check", good]), (1, ["check", bad, good]),
                                    (2, ["check", missing, bad]),
                                    (2, ["check", directory]), (2, ["check"]), (2, []), (2, ["chekc", good]),
                                    (0, ["--help"]), (0, ["check", "--help"]), (0, ["gen", "--help"])):
                with self.subTest(arguments=arguments):
                    result = self.run_tool(*arguments)
                    self.assertEqual(result.returncode, code, result.stderr)
                    self.assertNotIn("Traceback", result.stderr)

    def test_image(self):
        with tempfile.TemporaryDirectory() as directory:
            path = pathlib.Path(directory, "t.npuprof")
            path.write_bytes(b"NPUPROF\0" + bytes(range(128, 256)))
            done = self.run_tool("check", path)
            self.assertEqual((done.returncode, done.stderr),
                             (2, f"{path}: shorter than a header at byte 136\n"))

    def test_reader_goes_away(self):
        with tempfile.TemporaryDirectory() as directory:
            path = pathlib.Path(directory, "t.json")
            path.write_text(GOOD)
            tool = subprocess.Popen([sys.executable, helpers.NPUPROF_PY, "check"] + [path] * 3,
                                    stdout=subprocess.PIPE, stderr=subprocess.PIPE)
            tool.stdout.close()
            errors = tool.stderr.read()
            tool.stderr.close()
            self.assertEqual((tool.wait(20), errors), (141, b""))
