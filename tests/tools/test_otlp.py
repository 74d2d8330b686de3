# test: time=300 - convert: an image as JSON and CSV, any trace as OTLP/JSON that OpenTelemetry's schema takes
# SPDX-License-Identifier: MIT
import json
import os
import re
import shutil
import subprocess
import sys
import unittest

import helpers
from helpers import ROOT, environment, scratch

PARENT = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"

# A submission on the host, its execution and a step of it on the device, an instant in and one outside the
# submission.
SUBMIT = """{"traceEvents":[
{"ph":"M","name":"thread_name","pid":7,"tid":1,"args":{"name":"main"}},
{"ph":"M","name":"thread_name","pid":7,"tid":2,"args":{"name":"npu0 PE 0"}},
{"ph":"X","name":"Submit","cat":"NPU","pid":7,"tid":1,"ts":10.000,"dur":5.000,\
"args":{"queue":0,"share":0.5,"name":"\\u00e9 x","deep":[1]}},
{"ph":"i","name":"doorbell","cat":"hw","pid":7,"tid":1,"s":"t","ts":12.000,"args":{"n":1}},
{"ph":"i","name":"alone","pid":7,"tid":1,"s":"t","ts":99.000},
{"ph":"X","name":"Execution","cat":"NPU","pid":7,"tid":2,"ts":20.000,"dur":30.000,\
"args":{"stamp":"device","pe_index":0,"execution_index":3}},
{"ph":"s","name":"submit","pid":7,"tid":1,"cat":"submit","id":1,"ts":10.000},
{"ph":"f","name":"submit","pid":7,"tid":2,"bp":"e","cat":"submit","id":1,"ts":20.000},
{"ph":"X","name":"Conv","cat":"NPU","pid":7,"tid":2,"ts":20.000,"dur":9.000,\
"args":{"stamp":"device","pe_index":0,"execution_index":3,"instruction_index":0}}
],"displayTimeUnit":"ns","metadata":{"npuprof":{"version":"0.1.0","host":"box","program":"prog","pid":7,\
"start_unix_ns":1700000000000000000,
"threads":1,"clock":{"source":"tsc","hz":1e9,"error_ns":51},"lost":{"arena_full":2},"user":{"model":"m"},
"devices":[{"name":"npu0","clock_sync":{"rate_hz":25003000.25,"max_error_ns":900,"anchors":5}}]}}}
"""


def convert(source, target, *arguments, **options):
    return helpers.npuprof_py("convert", source, "-o", target, *arguments, **options)


def attributes(owner):
    return {a["key"]: next(iter(a["value"].values())) for a in owner["attributes"]}


def spans_of(document):
    return [s for r in document["resourceSpans"] for scope in r["scopeSpans"] for s in scope["spans"]]


class Case(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        helpers.tool("npuprof-convert")
        cls.golden = helpers.build("golden.c", "golden")

    def otlp(self, source, name="t.otlp.json"):
        convert(source, scratch() / name)
        return helpers.load(scratch() / name)

    def image(self, name, **env):
        path = scratch() / name
        helpers.run([self.golden, path], code=0, env=environment(**env))
        return path


class Schema(Case):
    def check(self, path):
        web = helpers.web()
        done = helpers.run(["node", ROOT / "tests" / "web" / "otlp.mjs", web, path], code=0)
        return json.loads(done.stdout)["spans"]

    def test_a_real_trace(self):
        path = self.image("schema.npuprof", TRACEPARENT=PARENT)
        self.otlp(path, "schema.otlp.json")
        count = len((scratch() / "schema.otlp.json").read_text().split('"traceId"')) - 1
        self.assertGreater(self.check(scratch() / "schema.otlp.json"), 10)
        self.assertGreater(count, 10)
        convert(path, scratch() / "schema.otlp.jsonl")
        self.check(scratch() / "schema.otlp.jsonl")

    @helpers.thorough
    def test_hostile_names(self):
        program = helpers.build("hostile.c", "hostile")
        (scratch() / "names").write_bytes(b"</script>\0\"\\\x01\x7f\0\xff\xc3(\0\xf0\x9f\x98\x80 "
                                          b"\xe2\x80\xa8\0")
        helpers.run([program, "names", "hostile.npuprof"], code=0)
        for name in ("hostile.otlp.json", "hostile.otlp.jsonl"):
            convert("hostile.npuprof", name)
            self.assertGreater(self.check(scratch() / name), 20)

    def test_other_peoples_json(self):
        (scratch() / "submit.json").write_text(SUBMIT)
        (scratch() / "foreign.json").write_text('[{"ph":"X","name":"\\ud83d","pid":"a","tid":"b",'
                                                '"ts":1,"dur":2,"args":{"x":1e400,"n":null}}]')
        self.otlp("submit.json", "submit.otlp.json")
        self.assertEqual(self.check(scratch() / "submit.otlp.json"), 3)
        helpers.refused("convert", "foreign.json", "-o", "foreign.otlp.json")


class Content(Case):
    def test_ids_times_and_parents_are_those_of_the_csv(self):
        path = self.image("ids.npuprof", TRACEPARENT=PARENT)
        spans = spans_of(self.otlp(path))
        convert(path, scratch() / "ids.csv")
        import csv
        rows = list(csv.DictReader((scratch() / "ids.csv").open(newline="")))
        self.assertEqual([(s["traceId"], s.get("parentSpanId", ""), s["spanId"], s["startTimeUnixNano"],
                           s["endTimeUnixNano"], s["name"])
                          for s in spans],
                         [(r["trace_id"], r["parent_span_id"], r["span_id"], r["start"], r["end"], r["name"])
                          for r in rows])
        # TRACEPARENT: one trace, its caller's span above the roots and marked as remote.
        self.assertEqual({s["traceId"] for s in spans}, {PARENT[3:35]})
        roots = [s for s in spans if s["parentSpanId"] == PARENT[36:52]]
        self.assertIn("trace", [s["name"] for s in roots])
        self.assertEqual({s["flags"] for s in roots}, {0x301})
        self.assertEqual({s["flags"] for s in spans if s not in roots}, {0x101})

    def test_submit_and_device(self):
        (scratch() / "content.json").write_text(SUBMIT)
        convert("content.json", "content.otlp.json",
                said="content.otlp.json: 1 instants lie in no span and are left out\n")
        document = helpers.load(scratch() / "content.otlp.json")
        resource = attributes(document["resourceSpans"][0]["resource"])
        self.assertEqual((resource["service.name"], resource["host.name"], resource["process.pid"],
                          resource["model"]),
                         ("prog", "box", "7", "m"))
        self.assertEqual((resource["npuprof.lost"], resource["npuprof.device.npu0.max_error_ns"]),
                         ("2", "900"))
        submit, execution, conv = spans_of(document)
        self.assertEqual((submit["kind"], execution["kind"], conv["kind"]), (4, 5, 1))
        self.assertEqual((execution["parentSpanId"], conv["parentSpanId"]),
                         (submit["spanId"], execution["spanId"]))
        self.assertEqual([(a["spanId"], attributes(a)) for a in submit["links"]],
                         [(execution["spanId"], {"npuprof.arrow": "submit", "npuprof.direction": "out"})])
        self.assertEqual([(a["spanId"], a["traceId"]) for a in execution["links"]],
                         [(submit["spanId"], submit["traceId"])])
        self.assertEqual(submit["startTimeUnixNano"], "1700000000000010000")
        self.assertEqual([(e["name"], e["timeUnixNano"], attributes(e)) for e in submit["events"]],
                         [("doorbell", "1700000000000012000", {"npuprof.category": "hw", "n": "1"})])
        args = attributes(submit)
        self.assertEqual((args["queue"], args["share"], args["deep"], args["thread.id"], args["thread.name"]),
                         ("0", 0.5, "[1]", "1", "main"))
        self.assertEqual((attributes(execution)["npuprof.track"], attributes(execution)["pe_index"]),
                         ("npu0 PE 0", "0"))

    @helpers.thorough
    def test_lines(self):
        """.jsonl: a whole document for every 10,000 spans; .json: one."""
        head, _, tail = SUBMIT.partition('{"ph":"X"')
        many = "".join('{"ph":"X","name":"a","pid":7,"tid":1,"ts":%d.000,"dur":1.000},\n' % (1000 + n)
                       for n in range(25_000))
        (scratch() / "many.json").write_text(head + many + '{"ph":"X"' + tail)
        one = self.otlp("many.json", "many.otlp.json")
        self.assertEqual(len(spans_of(one)), 25_003)
        convert("many.json", "many.otlp.jsonl")
        lines = [json.loads(line) for line in (scratch() / "many.otlp.jsonl").read_text().splitlines()]
        self.assertEqual([len(spans_of(line)) for line in lines], [10_000, 10_000, 5_003])
        self.assertEqual([s for line in lines for s in spans_of(line)], spans_of(one))

    def test_empty(self):
        (scratch() / "empty.json").write_text('{"traceEvents":[],"metadata":{"npuprof":{"version":"0.1.0",'
                                              '"start_unix_ns":5}}}')
        self.assertEqual(self.otlp("empty.json", "empty.otlp.json"), {"resourceSpans": []})

    def test_ids_that_a_json_states(self):
        """What is made of it agrees with the image's CSV on those of labelled spans and executions, and on no
        others, as the texts say."""
        path = self.image("told.npuprof")
        for source, target in ((path, "told.json"), (path, "told.csv"), ("told.json", "new.csv")):
            convert(source, scratch() / target)
        own, new = ([line.split(",")[2] for line in (scratch() / name).read_text().splitlines()[1:]]
                    for name in ("told.csv", "new.csv"))
        given = [event["args"] for event in helpers.load(scratch() / "told.json")["traceEvents"]
                 if "span_id" in event.get("args", {})]
        stated = {args["span_id"] for args in given}
        self.assertTrue(stated)
        self.assertEqual([mine == theirs for mine, theirs in zip(own, new)],
                         [mine in stated or not mine for mine in own])

    @helpers.thorough
    def test_json_to_csv(self):
        """The CSV from the JSON: the same rows as the converter's, but for ids that only the image has. From
        the CSV: the column `source` is empty, as the reader leaves it out."""
        pools = scratch() / "pools.npuprof"
        self.assertEqual(helpers.run([helpers.build("published.c", "published"), "edges", pools],
                                     env=environment()).returncode, 0)
        for path in (self.image("rows.npuprof"), pools):
            for name in ("rows.json", "rows.csv"):
                convert(path, scratch() / name)
            theirs = [line.split(",", 3)[3] for line in (scratch() / "rows.csv").read_text().splitlines()]
            self.assertEqual(theirs[-1].count('"memory"'), int(path == pools))
            for name in ("rows.json", "rows.csv"):
                convert(name, "rows2.csv")
                if name == "rows.csv":
                    theirs[1:] = [re.sub(r',("[^"]*")?$', ",", line) for line in theirs[1:]]
                self.assertEqual([line.split(",", 3)[3]
                                  for line in (scratch() / "rows2.csv").read_text().splitlines()], theirs)


class Errors(Case):
    def refused(self, source, target, *words):
        said = helpers.refused("convert", source, "-o", target)
        for word in words:
            self.assertIn(word, said)
        if os.path.dirname(target) == "":
            self.assertFalse((scratch() / target).exists() and target.startswith("no"))

    @helpers.thorough
    def test_one_line_and_2(self):
        (scratch() / "good.json").write_text(SUBMIT)
        (scratch() / "cut.json").write_text(SUBMIT[:700])
        (scratch() / "zero").write_text("")
        (scratch() / "noise.npuprof").write_bytes(bytes(range(256)) * 40)
        self.refused("missing.json", "no.csv", "missing.json", "No such file")
        self.refused("cut.json", "no.otlp.json", "cut.json:", "cut off")
        self.refused("zero", "no.otlp.json", "zero:1: byte 0: the file is empty")
        self.refused("noise.npuprof", "no.json", "noise.npuprof")
        self.refused("noise.npuprof", "no.otlp.json", "noise.npuprof")
        self.refused("good.json", "no.txt", "unknown extension")
        self.refused("good.json", "no.json", "only an image")
        self.refused("good.json", "no.npuprof", "only an image")
        self.refused("good.json", "/nowhere/no.otlp.json", "/nowhere/no.otlp.json: cannot be written")
        shutil.copy(scratch() / "good.json", scratch() / "self.otlp.json")
        self.refused("self.otlp.json", "self.otlp.json", "is the input")
        self.assertEqual((scratch() / "self.otlp.json").read_text(), SUBMIT)
        self.assertEqual([p.name for p in scratch().iterdir() if p.name.endswith(".tmp")
                          or p.name.startswith("no.")], [])

    def test_damaged_image(self):
        path = self.image("whole.npuprof")
        data = path.read_bytes()
        (scratch() / "half.npuprof").write_bytes(data[:len(data) * 2 // 3])
        for name in ("half.json", "half.otlp.json"):
            done = convert("half.npuprof", name, code=1)
            self.assertIn("damaged", done.stderr)
            helpers.load(scratch() / name)

    def test_full_disk(self):
        path = self.image("disk.npuprof")
        with helpers.Mount(4) as disk:
            self.assertIn("No space left", helpers.refused("convert", path, "-o", disk / "t.otlp.json"))
            self.assertEqual(list(disk.iterdir()), [])

    def test_pipes(self):
        """To a pipe it writes in place."""
        (scratch() / "pipe.json").write_text(SUBMIT)
        os.mkfifo(scratch() / "fifo.otlp.json")
        writer = subprocess.Popen([sys.executable, str(helpers.NPUPROF_PY), "convert", "pipe.json", "-o",
                                   "fifo.otlp.json"], cwd=scratch(), stderr=subprocess.PIPE)
        text = (scratch() / "fifo.otlp.json").read_text()
        self.assertEqual((writer.wait(), len(spans_of(json.loads(text)))), (0, 3), writer.stderr.read())
        writer.stderr.close()

    def test_quiet_without_a_terminal(self):
        (scratch() / "quiet.json").write_text(SUBMIT.replace("99.000", "11.000"))
        done = convert("quiet.json", "quiet.otlp.json")
        self.assertEqual((done.returncode, done.stdout, done.stderr), (0, "", ""))
