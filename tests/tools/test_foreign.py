# test: time=200 - other tools' traces: Chrome JSON of any kind, Kineto, ONNX Runtime, XProf, IREE, ExecuTorch
# SPDX-License-Identifier: MIT
import itertools
import json
import pathlib
import random
import unittest
import unittest.mock
from collections import Counter

import foreign_traces as made
import helpers
import npuprof
from npuprof import loops
from npuprof.analysis import verdict
from npuprof.analysis.facts import Facts
from npuprof.base.contract import DEVICE, INFERENCE, OPERATOR, UNFINISHED
from npuprof.base.messages import Refused
from npuprof.report.command import json_of
from npuprof.tables.executions import npu_operators
from npuprof.tables.spans import Spans

FILES = {"kineto.json": made.kineto, "onnx.json": made.onnx, "xprof.json.gz": made.xprof,
         "iree.ireeprof": made.iree, "et.etdp": made.etdump}


def loaded(events, **members):
    return npuprof.load(made.write(helpers.scratch() / "t.json", events, **members))


def spans(trace):
    return sorted((trace.text(i), trace.start[i], trace.dur[i]) for i in range(len(trace)))


def kinds(trace, kind):
    return [trace.text(i) for i in range(len(trace)) if trace.kind[i] == kind]


def e(phase, ts, name="a", pid=1, tid=1, **more):
    return {"ph": phase, "ts": ts, "name": name, "pid": pid, "tid": tid, **more}


class Chrome(unittest.TestCase):
    def test_asynchronous(self):
        """Nestable spans of an id nest; older ones go by their name, too; ids of a process are its own."""
        trace = loaded([e("b", 1, "outer", id=7), e("b", 2, "inner", id="0x7"), e("n", 3, "mark", id=7),
                        e("e", 4, "inner", id=7), e("e", 9, "outer", id=7),
                        e("S", 1, "one", id=7), e("S", 2, "two", id=7), e("T", 3, "one", id=7),
                        e("F", 5, "one", id=7), e("F", 8, "two", id=7),
                        e("b", 1, "x", id2={"local": "1"}), e("e", 3, "x", id2={"local": "1"}),
                        e("b", 2, "x", 2, id2={"local": "1"}), e("e", 9, "x", 2, id2={"local": "1"}),
                        e("b", 1, "g", id2={"global": "1"}), e("e", 6, "g", 2, id2={"global": "1"}),
                        e("b", 1, "s", id=7, scope="A"), e("b", 2, "s", id=7, scope="B"),
                        e("e", 3, "s", id=7, scope="A"), e("e", 9, "s", id=7, scope="B")])
        self.assertEqual(spans(trace), sorted([
            ("outer", 1000, 8000), ("inner", 2000, 2000), ("one", 1000, 4000), ("two", 2000, 6000),
            ("x", 1000, 2000), ("x", 2000, 7000), ("g", 1000, 5000), ("s", 1000, 2000), ("s", 2000, 7000)]))
        self.assertEqual(sorted(i.name for i in trace.instants), ["mark", "one"])
        self.assertFalse(trace.left_out)

    def test_asynchronous_of_one_tick(self):
        """One may begin where another one of its id ends, have no length, or lie inside."""
        for begin, end in "be", "SF", "ND":
            trace = loaded([e(begin, 1, id=1), e(end, 5, id=1), e(begin, 5, id=1), e(end, 9, id=1),
                            e(begin, 12, id=1), e(end, 12, id=1)])
            self.assertEqual(spans(trace), [("a", 1000, 4000), ("a", 5000, 4000), ("a", 12000, 0)])
            self.assertFalse(trace.left_out)
        trace = loaded([e("b", 1, "z", id=1), e("b", 1, "a", id=1), e("e", 3, "a", id=1),
                        e("b", 3, "b", id=1), e("e", 3, "b", id=1), e("e", 9, "z", id=1)])
        self.assertEqual(spans(trace), [("a", 1000, 2000), ("b", 3000, 0), ("z", 1000, 8000)])
        self.assertEqual([t.name for t in trace.tracks if t.kind == "other"], ["z"])

    def test_asynchronous_steps_that_overlap(self):
        """An end is that of its name, and of no other one; without a name it is that of what began last."""
        trace = loaded([e("b", 1, "one", id=1), e("b", 2, "two", id=1), e("e", 5, "one", id=1),
                        e("e", 6, "three", id=1), e("e", 8, "two", id=1),
                        e("b", 10, "x", id=1), e("b", 11, "y", id=1), e("e", 12, None, id=1)])
        self.assertEqual(spans(trace), [("one", 1000, 4000), ("two", 2000, 6000), ("x", 10000, 2000),
                                        ("y", 11000, 1000)])
        self.assertEqual(dict(trace.left_out), {"unmatched e event": 1})

    def test_begin_and_end_of_one_tick(self):
        """Names say what belongs together. Of one name, and of none, the order in the file does."""
        for outer, inner in "ab", "ba", "aa":
            for end in ((inner, outer), (None, None), ("?", "?")):
                trace = loaded([e("B", 1, outer, args={"n": 1}), e("B", 1, inner, args={"n": 2}),
                                e("E", 3, end[0]), e("E", 9, end[1])])
                self.assertEqual(sorted((trace.text(i), trace.args(i)["n"], trace.dur[i]) for i in range(2)),
                                 sorted([(outer, 1, 8000), (inner, 2, 2000)]), end)
        trace = loaded([e("B", 1), e("E", 5), e("B", 5), e("B", 7), e("E", 7), e("E", 9), e("B", 9, "b"),
                        e("B", 9, "c"), e("E", 10, "b"), e("E", 12, "c")])
        self.assertEqual(spans(trace), [("a", 1000, 4000), ("a", 5000, 4000), ("a", 7000, 0),
                                        ("b", 9000, 1000), ("c", 9000, 3000)])
        trace = loaded([e("B", 1), e("E", 2, "late"), e("B", 2, "late"), e("E", 9)])
        self.assertEqual(spans(trace), [("a", 1000, 8000), ("late", 2000, 0)])

    def test_end_of_another_name(self):
        """It ends what has no end of its own."""
        trace = loaded([e("B", 1, "f"), e("B", 2, "g"), e("E", 4, "g()"), e("E", 9, "f"), e("E", 9, "h")])
        self.assertEqual(spans(trace), [("f", 1000, 8000), ("g", 2000, 2000)])
        self.assertEqual(dict(trace.left_out), {"unmatched E event": 1})

    def test_self_time_of_spans_that_overlap(self):
        """Each moment of a thread is that of one span, the latest begun: together they are what is busy."""
        trace = loaded([e("X", 0, "alpha", dur=14), e("X", 1, "beta", dur=12), e("X", 7, "epsilon")])
        self.assertEqual(list(trace.own_ns), [1000, 6000, 7000])
        chance = random.Random(3)
        for _ in range(30):
            trace = loaded([e("X", chance.randrange(30), chance.choice("abc"), dur=chance.randrange(20),
                              tid=chance.choice((1, 2))) for _ in range(chance.randrange(1, 20))])
            own = [0] * len(trace)
            rows = range(len(trace))
            for track, ns in itertools.product((0, 1), range(0, 50000, 1000)):
                on = [i for i in rows if trace.track[i] == track and 0 <= ns - trace.start[i] < trace.dur[i]]
                if on:
                    own[max(on, key=lambda i: (trace.start[i], i))] += 1000
            self.assertEqual(list(trace.own_ns), own)
            self.assertEqual(sum(Spans(trace, trace.name, trace.names).self_ns), sum(own))
            del trace.own_ns
            with unittest.mock.patch.object(loops.native, "library", lambda: None):
                self.assertEqual(list(trace.own_ns), own)

    def test_objects(self):
        """An object lives from N to D; its snapshots are instants with what they hold."""
        trace = loaded([e("N", 1, "Layer", id="0xf"),
                        e("O", 2, "Layer", id="0xf", args={"snapshot": {"w": [1]}}),
                        e("N", 3, "Layer", id="0xe"), e("D", 5, "Layer", id="0xf"),
                        e("D", 6, "Tile", id="0xf"), e("i", 9)])
        self.assertEqual(spans(trace), [("Layer", 1000, 4000), ("Layer", 3000, 6000)])
        self.assertEqual(trace.instants[0].args, {"snapshot": {"w": [1]}})
        self.assertEqual(dict(trace.left_out), {"unmatched D event": 1})

    def test_missing_ends(self):
        """B, and X without a length, last to the end of the trace and say so."""
        trace = loaded([e("B", 1, "begun"), e("X", 2, "endless"), e("E", 3, tid=2), e("i", 10),
                        e("B", 4, "whole", tid=3, args={"a": {"b": [1]}}), e("E", 6, tid=3, args={"c": 2})])
        self.assertEqual(spans(trace),
                         [("begun", 1000, 9000), ("endless", 2000, 8000), ("whole", 4000, 2000)])
        self.assertEqual(len(trace.rows_with(UNFINISHED)), 2)
        self.assertEqual([trace.args(i) for i in range(3) if trace.text(i) == "whole"],
                         [{"a": {"b": [1]}, "c": 2}])
        self.assertEqual(dict(trace.left_out), {"unmatched E event": 1})

    def test_end_of_the_trace(self):
        """It is where the last span ends: what was begun before is around it. It may lie before 0."""
        trace = loaded([e("B", 1, "begun"), e("X", 2, "inside", dur=30), e("b", 3, "async", id=1)])
        self.assertEqual(spans(trace),
                         [("async", 3000, 29000), ("begun", 1000, 31000), ("inside", 2000, 30000)])
        self.assertEqual([trace.text(p) for i, p in enumerate(trace.parents) if trace.text(i) == "inside"],
                         ["begun"])
        self.assertEqual(spans(loaded([e("B", -50), e("i", -10)])), [("a", -50000, 40000)])

    def test_arrows(self):
        """One begin may have several ends, before it in time, too; category and id tell arrows apart."""
        trace = loaded([e("X", 0, dur=50, tid=t) for t in (1, 2, 3)]
                       + [e("s", 10, id=1, cat="l"), e("f", 8, id=1, cat="l", tid=2),
                          e("f", 20, id=1, cat="l", tid=3), e("s", 5, id=1, cat="m"),
                          e("t", 6, id=1, cat="m", tid=2), e("f", 7, id=1, cat="m", tid=3),
                          e("f", 9, id=2), e("s", 9, id=3),
                          e("X", 30, "v2", dur=1, bind_id="0x4", flow_out=True),
                          e("X", 40, "v2", dur=1, bind_id="0x4", flow_in=True, tid=2)])
        self.assertEqual(sorted((f.from_ns, f.to_ns) for f in trace.flows),
                         [(5000, 6000), (6000, 7000), (10000, 8000), (10000, 20000), (30000, 40000)])
        self.assertEqual(dict(trace.left_out), {"unmatched arrow end": 1, "unmatched arrow begin": 1})

    def test_counters(self):
        trace = loaded([e("C", 1, "c", id=1, args={"v": 1}), e("C", 2, "c", id=2, args={"v": 2.5}),
                        e("C", 3, "c", args={"text": "no"})])
        self.assertEqual([(c.name, c.values) for c in trace.counters], [("c [1]", [1]), ("c [2]", [2.5])])
        self.assertEqual(dict(trace.left_out), {"counter event without a number": 1})

    def test_counters_of_one_tick(self):
        """The last in the file is what holds from there on."""
        events = [e("C", ts, "c", args={"v": v}) for ts, v in ((1, 9), (1, 2), (1, 5), (0, 7))]
        for order in events, events[:3], events[3:] + events[:3]:
            self.assertEqual(loaded([e("X", 0, dur=1), *order]).counters[0].values[-3:], [9, 2, 5])

    def test_cut_off(self):
        """An array may end anywhere: all whole events are read, and a part of one is counted."""
        events = [e("X", n, f"n{n}", dur=1, args={"deep": {"list": [n, {"x": "}"}]}}) for n in range(6)]
        text = json.dumps(events)
        ends = [len(json.dumps(events[:n])) - 1 for n in range(len(events) + 1)]
        path = helpers.scratch() / "cut.json"
        for length in range(ends[2], len(text) + 1):
            path.write_text(text[:length])
            trace = npuprof.load(path)
            whole = sum(end <= length for end in ends[1:])
            self.assertEqual(len(trace), whole, text[:length][-30:])
            rest = text[ends[whole]:length].strip(", ]")
            self.assertEqual(dict(trace.left_out), {"cut off event": 1} if rest else {}, text[:length][-30:])
        path.write_text(text[:ends[3]] + "#" + text[ends[3]:])
        self.assertIn("not strict JSON", helpers.refused("report", path))

    def test_nothing_in_silence(self):
        """Whatever the events are, each has a place, belongs to another one that has, or is counted."""
        chance = random.Random(5)
        for _ in range(60):
            events = [e(chance.choice("XBEbenSTFNODstfCiIRPMvcq"), chance.randrange(50), chance.choice("ab"),
                        tid=chance.choice((1, "x")), cat=chance.choice("kl"), id=chance.randrange(3))
                      for _ in range(chance.randrange(1, 80))]
            for event in events:
                event |= {"dur": chance.randrange(9)} if event["ph"] == "X" else {}
                event |= {"args": {"v": 1}} if event["ph"] == "C" and chance.randrange(4) else {}
            events += [3, {"ph": "i", "name": "no time"}, e("i", 1)]
            trace, ph = loaded(events), Counter(event.get("ph") for event in events[:-3])
            left = trace.left_out
            self.assertEqual(len(trace), sum(ph[p] for p in "XBbSN"))
            self.assertEqual(len(trace.instants), sum(ph[p] for p in "nTOiIRP") + 1)
            self.assertEqual(sum(len(c.ts) for c in trace.counters) + left["counter event without a number"],
                             ph["C"])
            ends = len(trace.flows) + left["unmatched arrow end"]
            self.assertTrue(ph["f"] <= ends <= ph["f"] + ph["t"])
            for pair in "BE", "be", "SF", "ND":
                unfinished = sum(trace.flags[i] & UNFINISHED for i in range(len(trace)))
                self.assertLessEqual(ph[pair[1]] - left[f"unmatched {pair[1]} event"], ph[pair[0]])
                self.assertGreaterEqual(unfinished, ph[pair[0]] - ph[pair[1]])
            self.assertEqual((left["v"], left["c"], left["q"]), (ph["v"], ph["c"], ph["q"]))
            self.assertEqual((left["value that is no event"], left["i event without ts"]), (1, 1))


    def test_numbers(self):
        """Times as texts keep their ns, spans that lie inside others stay there, and counters all their
        values."""
        text = '{"ph":"X","pid":1,"tid":1,"name":"%s","ts":%s,"dur":%s},'
        path = made.write(helpers.scratch() / "t.json", [])
        path.write_text("[" + text % ("t", '"1700000000000000.123"', '"0.001"') + "]")
        self.assertEqual(spans(npuprof.load(path)), [("t", 1_700_000_000_000_000_123, 1)])
        path.write_text("[" + text % ("out", "0.0004", "10.0004") + text % ("in", "5", "5.0008") + "]")
        trace = npuprof.load(path)
        self.assertEqual([trace.text(i) for i in range(2) if trace.parents[i] >= 0], ["in"])
        trace = loaded([e("C", 1, args={"a": "1.5", "b": 2, "c": "x", "d": {}, "e": None, "f": True}),
                        e("X", 5, dur=-2)])
        self.assertEqual([(c.key, c.values) for c in trace.counters], [("a", [1.5]), ("b", [2])])
        self.assertEqual(dict(trace.left_out), {"counter value that is no number": 4, "negative duration": 1})
        self.assertIn("4 counter values that are no number", trace.left_out_text())
        for command, to in ("convert", "-o t.csv"), ("export", "--sqlite t.db"):
            said = helpers.npuprof_py(command, helpers.scratch() / "t.json", *to.split()).stderr
            self.assertIn("are left out: 4 counter values that are no number, 1 negative duration", said)

    def test_ids(self):
        """A pid or tid of decimal digits is that number, whoever writes it; "0x10" is none, as for
        Perfetto."""
        trace = loaded([e("B", 1, pid="7", tid="3"), e("E", 4, pid=7, tid=3),
                        e("X", 5, dur=1, pid=7.0, tid="03"),
                        e("X", 6, dur=1, pid="0x10"), e("X", 6, dur=1, pid=16),
                        e("X", 7, dur=1, pid="-1", tid="-2"), e("X", 8, dur=1, pid=-1, tid=-2),
                        e("X", 9, dur=1, tid="\u0663"), e("X", 9, dur=1, tid="7 "),
                        {"ph": "M", "name": "thread_name", "pid": 7, "tid": "3", "args": {"name": "main"}}])
        self.assertFalse(trace.left_out)
        self.assertEqual([(t.pid, t.tid) for t in trace.tracks],
                         [(-1, -2), (1, "7 "), (1, "\u0663"), (7, 3), (16, 1), ("0x10", 1)])
        self.assertEqual([trace.tracks[3].name, list(trace.track).count(3)], ["main", 2])

    def test_ids_that_are_no_numbers(self):
        """A CSV has no place for them, and can be read again."""
        trace = loaded([e("X", n, dur=1, tid=tid) for n, tid in enumerate(("w", -4, 2**64, 5, "6"))])
        self.assertEqual({str(t.tid): t.thread_id for t in trace.tracks},
                         {"w": None, "-4": None, str(2**64): None, "5": 5, "6": 6})
        path = pathlib.Path(trace.path)
        helpers.npuprof_py("convert", path, "-o", path.with_suffix(".csv"), code=0)
        self.assertEqual(spans(npuprof.load(path.with_suffix(".csv"))), spans(trace))

    def test_too_large_for_a_database(self):
        """The trace is named, and not the file that was begun."""
        path = made.write(helpers.scratch() / "t.json", [e("X", 1, dur=1, pid=2**65)])
        said = helpers.refused("export", path, "--sqlite", path.with_suffix(".db"))
        self.assertIn(f"{path}: a number of the trace does not fit 64 bits", said)

    def test_only_pairs(self):
        """Spans that are all asynchronous; and what has none is refused with what was there."""
        self.assertEqual(spans(loaded([e("b", 1, id=1), e("e", 4, id=1)])), [("a", 1000, 3000)])
        self.assertEqual(spans(loaded([e("N", 1, id=1), e("D", 4, id=1)])), [("a", 1000, 3000)])
        with self.assertRaisesRegex(Refused, r"can be read \(2 unmatched E events\)"):
            loaded([e("E", 1), e("E", 2)])

    def test_texts(self):
        """Pairs of surrogate escapes are characters. Half of one has no bytes in any output."""
        path = helpers.scratch() / "t.json"
        for form in '{"traceEvents":[%s]}', "[%s]", "[%s,]":
            event = json.dumps(e("X", 1, "\U0001f600\\ud800", dur=1))
            path.write_text(form % event)
            self.assertEqual(spans(npuprof.load(path)), [("\U0001f600\\ud800", 1000, 1000)])
            self.assertIn("surrogate", helpers.refused("check", path))
            for half in "\\ud83d", "\\ude00\\ud83d":
                path.write_text(form % event.replace("\\\\ud800", half))
                self.assertIn(f"surrogate escape {half[:6]}", helpers.refused("report", path))
        path.write_text("[%s]\n[%s]" % (event, event))
        self.assertIn("data behind the end", helpers.refused("report", path))

    def test_other_files(self):
        for data, sentence in ((b"\x28\xb5\x2f\xfd\0", "zstd -d"), ("[]".encode("utf-16"), "UTF-16, and"),
                               ("[]".encode("utf-16-be"), "UTF-16, and"),
                               ("[]".encode("utf-32"), "UTF-32, and"), (b"\n\0", "Perfetto's own format")):
            path = helpers.scratch() / "t.pftrace"
            path.write_bytes(data)
            for command in ("report",), ("check",), ("convert", "-o", "t.csv"):
                self.assertIn(sentence, helpers.refused(*command, path))

class Tools(unittest.TestCase):
    def load(self, name, **options):
        return npuprof.load(FILES[name](helpers.scratch() / name, **options))

    def test_kineto(self):
        trace = self.load("kineto.json")
        self.assertEqual((trace.tool, trace.base_ns), ("PyTorch Kineto", 10**18))
        self.assertEqual({row[0]: row[2:4] for row in npu_operators(trace)},
                         {"sgemm": (3, 300_000), "Memcpy HtoD": (3, 120_000), "relu": (3, 90_000)})
        self.assertEqual(kinds(trace, INFERENCE), ["ProfilerStep"] * 3)
        self.assertEqual([trace.args(i)["step"] for i in range(len(trace)) if trace.kind[i] == INFERENCE],
                         [0, 1, 2])
        self.assertEqual({f.name for f in trace.flows}, {"submit"})
        self.assertEqual(len(trace.flows), 9)
        jobs = Facts(trace).jobs
        self.assertEqual({trace.text(i) for i in jobs.wait if i >= 0 and trace.args(i).get("kind") == "wait"},
                         {"cudaDeviceSynchronize"})
        self.assertEqual((jobs.devices, [q.stream for q in jobs.queues]), (["GPU 0 (pid 0)"], [7, 20]))
        self.assertEqual({trace.text(i) for i in jobs.submit}, {"cudaLaunchKernel"})
        beside = {track.name for track in trace.tracks if track.kind == "other"}
        self.assertEqual(beside, {"GPU 0 stream 7 annotations", "PyTorch Profiler"})

    def test_calls_of_one_number(self):
        """Of two processes: it is not known whose job it is. One inside the other is one call."""
        def calls(*begins, pid=77):
            launches = [made.x("launch", pid + n * (pid > 99), 77, at, length, "cuda_runtime", correlation=5)
                        for n, (at, length) in enumerate(begins)]
            trace = loaded([made.x("k", 0, 7, 10, 5, "kernel", correlation=5), *launches], schemaVersion=1)
            return [(f.from_ns, f.to_ns) for f in trace.flows], trace.notes[0]
        arrows, note = calls((1, 2), (100, 2), pid=100)
        self.assertEqual(arrows, [])
        self.assertIn("1 jobs have no launch", note)
        self.assertEqual(calls((1, 2), (8, 1))[0], [])
        for both in ((1, 6), (2, 3)), ((2, 3), (1, 6)):
            self.assertEqual(calls(*both)[0], [(1000, 10000)])

    def test_jobs_of_one_tick(self):
        """Two of a stream begin in the same tick: each has one submission, by its arrow or its number."""
        def submissions(key, arrows, cat="kernel", **members):
            jobs = [made.x(f"k{n}", 0, 7, 100, 5 * n, cat, **{key: n}) for n in (1, 2)]
            launches = [made.x("launch", 77, 77, 10 * n, 5, cat and "cuda_runtime", **{key: n})
                        for n in (1, 2)]
            flows = [e(phase, ts, "ac2g", *at, id=n, cat="f") for n in arrows
                     for phase, ts, at in (("s", 10 * n, (77, 77)), ("f", 100, (0, 7)))]
            about = [made.about("process_name", 0, 0, "/device:GPU:0"),
                     made.about("thread_name", 0, 7, "Stream #7")]
            trace = loaded(jobs + launches + flows + (members == {"metadata": 1}) * about, **members)
            self.assertEqual(kinds(trace, DEVICE), ["k2", "k1"])
            self.assertEqual({f.name for f in trace.flows}, {"submit"})
            return sorted(f.from_ns for f in trace.flows)
        for arrows in (), (1,), (2,), (1, 2), (2, 1):
            self.assertEqual(submissions("correlation", arrows, schemaVersion=1), [10_000, 20_000], arrows)
            self.assertEqual(submissions("correlation_id", arrows, "", metadata=1), [10_000, 20_000], arrows)

    def test_onnx(self):
        trace = self.load("onnx.json", provider="QNNExecutionProvider", kernels=True)
        self.assertEqual(trace.tool, "ONNX Runtime")
        self.assertEqual(Counter(kinds(trace, OPERATOR)), {"Conv": 4, "Softmax": 4})
        self.assertEqual(kinds(trace, INFERENCE), ["model_run"] * 4)
        self.assertEqual(kinds(trace, DEVICE), [])
        self.assertRegex("\n".join(trace.notes), "4 nodes of QNN.*on the host.*\n4 kernels .* made up")
        [node] = {trace.args(i)["node"] for i in range(len(trace)) if trace.text(i) == "Conv"}
        self.assertEqual(node, "conv1")

    def test_xprof(self):
        trace = self.load("xprof.json.gz")
        self.assertEqual({row[0]: row[2:4] for row in npu_operators(trace)},
                         {"fusion.1": (3, 60_000), "dot.2": (3, 75_000)})
        jobs = Facts(trace).jobs
        self.assertEqual((len(jobs), jobs.missing, list(jobs.s)), (3, 0, [1000, 101_000, 201_000]))
        self.assertEqual(trace.counters[0].values, [5, 6.5, 7])
        self.assertIn("3 of Framework Name Scope, 3 of Steps", trace.notes[0])

    def test_xprof_of_streams(self):
        """Modules and operators of a GPU are derived from its streams: the work counts once."""
        lines = (1, "Stream #13(Compute)"), (2, "XLA Modules"), (3, "XLA Ops")
        trace = loaded([made.about("process_name", 1, 0, "/device:GPU:0"),
                        *(made.about("thread_name", 1, tid, name) for tid, name in lines),
                        made.x("kernel", 1, 1, 10, 5), made.x("kernel", 1, 1, 40, 5),
                        made.x("fusion", 1, 3, 10, 5), made.x("fusion", 1, 3, 40, 5),
                        made.x("jit_step", 1, 2, 10, 35)], metadata={"highres-ticks": True})
        self.assertEqual(kinds(trace, DEVICE), ["kernel", "kernel"])
        self.assertEqual([row[0] for row in npu_operators(trace)], ["kernel"])
        self.assertIn("1 of XLA Modules, 2 of XLA Ops", trace.notes[0])

    def test_iree(self):
        trace = self.load("iree.ireeprof")
        rows = [(trace.text(i), trace.start[i], trace.dur[i]) for i in range(3)]
        self.assertEqual(rows, [("execute", 2000, 900), ("conv", 2050, 300), ("gemm", 2450, 300)])
        self.assertEqual([trace.parents[i] for i in range(8)], [-1, 0, 0, -1, 3, 3, -1, 6])
        self.assertEqual([(f.from_ns, f.to_ns) for f in trace.flows], [(1500, 2000), (4500, 5000)])
        self.assertEqual(dict(trace.left_out), {"dropped IREE record": 1})
        trace = self.load("iree.ireeprof", ended=False, clocks=1, extra=(b"counter-samples",))
        self.assertEqual(len(trace), 2)
        self.assertIn("no end", trace.notes[0])
        self.assertEqual(trace.left_out["event of a clock that nobody compared"], 6)
        self.assertEqual(trace.left_out["counter-samples chunk"], 1)

    def test_executorch(self):
        for sized in (True, False):
            trace = self.load("et.etdp", sized=sized)
            self.assertEqual(kinds(trace, INFERENCE), ["Method::execute"] * 2)
            self.assertEqual(kinds(trace, OPERATOR), ["native_call_add.out"] * 2)
            self.assertEqual(dict(trace.left_out), {"allocation": 2})
            self.assertEqual([trace.tracks[number].name for number in trace.track].count("delegate"), 2)
            self.assertRegex("\n".join(trace.notes), "ticks .*\n2 events of delegates")

    def test_clocks(self):
        """No finding over merged clocks is sure, and arrows that go back are told with how far."""
        trace = self.load("kineto.json", steps=30)
        found = verdict.judge(Facts(trace))
        self.assertTrue(found.findings or found.questions)
        for finding in found.every():
            self.assertNotEqual(finding.confidence, "sure")
            self.assertIsNone(finding.certain_ns)
        self.assertRegex(trace.notes[-1], "^the error of the clocks is not known")
        trace = self.load("kineto.json", clock=-50)
        self.assertIn("GPU 0: 3 of 9 arrows go back in time, by up to 10000 ns", trace.notes[-2])
        trace = self.load("kineto.json", clock=-40)
        self.assertIn("GPU 0: 3 of 9 jobs begin in the very tick", trace.notes[-1])

    def test_outputs(self):
        """Each command takes each file, and a database of it is the same trace."""
        for name, make in FILES.items():
            folder = helpers.scratch()
            path, out = make(folder / name), folder / "t.db"
            first = helpers.npuprof_py("report", path, "--verdict", "json").stdout
            helpers.npuprof_py("export", path, "--sqlite", out)
            again = helpers.npuprof_py("report", out, "--verdict", "json").stdout
            self.assertEqual(first.replace(name, "t.db"), again)
            said = helpers.npuprof_py("check", path, code=None).stdout
            for note in npuprof.load(path).notes:
                self.assertIn(f"warning: {note}", said)
            helpers.npuprof_py("diff", path, path)
            helpers.npuprof_py("convert", path, "-o", folder / "t.pftrace", code=0)
            if name.endswith("json"):
                helpers.npuprof_py("report", path, "--annotate", folder / "more.json")
                self.assertGreater(len(npuprof.load(folder / "more.json")), len(npuprof.load(path)))
            if not name.endswith(("json", "gz")):
                self.assertIn("convert it to .pftrace", helpers.refused("view", path))

    def test_without_compiler(self):
        for name, make in FILES.items():
            path = make(helpers.scratch() / name)
            self.assertTrue(loops.native.library())
            found = [json_of(verdict.judge(Facts(npuprof.load(path))))]
            with unittest.mock.patch.object(loops.native, "library", lambda: None):
                found.append(json_of(verdict.judge(Facts(npuprof.load(path)))))
            self.assertEqual(*map(repr, found))

    def test_damaged(self):
        """A changed or cut file is read or refused in a sentence."""
        chance, counts = random.Random(3), Counter()
        for name in ("iree.ireeprof", "et.etdp"):
            path = FILES[name](helpers.scratch() / name)
            whole = path.read_bytes()
            for n in range(400):
                data = bytearray(whole[:chance.randrange(16, len(whole))] if n % 4 == 0 else whole)
                for _ in range(chance.choice((0, 1, 1, 4))):
                    byte = chance.choice((0, 1, 127, 255, chance.randrange(256)))
                    data[chance.randrange(12, len(data))] = byte
                path.write_bytes(data)
                try:
                    npuprof.load(path)
                    counts["read"] += 1
                except Refused as refused:
                    self.assertNotIn("\n", str(refused))
                    counts["refused"] += 1
        self.assertGreater(min(counts.values()), 50)


if __name__ == "__main__":
    unittest.main()
