# test: time=180 - npuprof.py report: the published tables, the same from C, JSON, CSV and image, and tables
# of hand-made traces
# SPDX-License-Identifier: MIT
import json
import resource
import re
import unittest
from fractions import Fraction
from unittest import mock
from types import SimpleNamespace

import helpers
import npuprof
from npuprof import loops
from npuprof.base import contract
from npuprof.read.image import converter
from npuprof.analysis.catalogue import TABLES as ANALYSES
from npuprof.report.text import NAMES, table_lines, tables
from npuprof.tables.arithmetic import both, percent, percentile, union
from npuprof.tables.devices import gaps_table, pes_table, trust_table
from npuprof.tables.executions import Device, npu_executions
from npuprof.tables.labelled import external_operators, inferences
from npuprof.tables.memory import megabytes, memory_pools
from npuprof.tables.spans import names_table, open_table, threads_table
from npuprof.tables.submissions import path_rows
from npuprof.tables.tracks import track_intervals

SIX = ("summary", "inferences", "executions", "operators", "external", "memory")
CAPTURES = {"1": ("published.c", "1"), "2": ("published.c", "2"), "edges": ("published.c", "edges"),
            "kinds": ("golden_kinds.c",), "neural": ("neural.c",),
            "streams": ("streams.c",), "host": ("many_spans.c", "host", 2000),
            "device": ("many_spans.c", "device", 2000)}
PRINTED, TRACE = {}, {}       # by capture: what C printed; paths of its dumps


def setUpModule():
    helpers.tool("npuprof-convert")
    for name, (source, *arguments) in CAPTURES.items():
        program = helpers.scratch() / source.removesuffix(".c")
        if not program.exists():
            helpers.build(source, program.name)
        TRACE[name] = [helpers.scratch() / f"{name}.{kind}" for kind in ("json", "csv", "npuprof")]
        helpers.run([program, *arguments, *TRACE[name]], code=0, env=helpers.environment())
        done = helpers.run([converter(), TRACE[name][2], "--report"], code=0)
        PRINTED[name] = done.stdout


def report(*arguments, **options):
    return helpers.npuprof_py("report", *arguments, **options)


def column(lines, n):
    return [line.split()[n] for line in lines]


def blocks(text):
    return [block.split("\n") for block in text.rstrip("\n").split("\n\n")]


class Published(unittest.TestCase):
    """Every number of the documents' tables, from a capture of them."""

    def tables(self, release):
        trace = npuprof.load(TRACE[release][0])
        return trace, Device(trace)

    def check_summary(self, trace, expected, labels):
        lines = next(tables(trace, ["summary"]))
        got = {line.partition(" : ")[0].strip().lower(): int(line.partition(" : ")[2]) for line in lines
               if " : " in line}
        self.assertEqual([got[label] for label in labels], expected)

    LABELS = ("inference counts", "min latency (ns)", "max latency (ns)", "mean latency (ns)",
              "median latency (ns)",
              "90.0 percentile latency (ns)", "95.0 percentile latency (ns)", "97.0 percentile latency (ns)",
              "99.0 percentile latency (ns)", "99.9 percentile latency (ns)")

    def test_summaries(self):
        # The first release cut its decimals; these are rounded half up: 386095.5, 624384.29, 649163.543.
        self.check_summary(self.tables("1")[0], [4, 258540, 650018, 386096, 317912, 564572, 607295, 624384,
                                                 641473, 649164], self.LABELS)
        self.check_summary(self.tables("2")[0], [4, 1584494, 3027309, 2136984, 1968066, 2752525, 2889917,
                                                 2944874, 2999831, 3024561],
                           self.LABELS)

    def test_inferences(self):
        self.assertEqual([row[3] for row in inferences(self.tables("1")[0])],
                         [650018, 365199, 258540, 270625])
        self.assertEqual([row[3] for row in inferences(self.tables("2")[0])],
                         [3027309, 2111363, 1824769, 1584494])

    def test_records(self):
        for release, ns in (("1", 778887), ("2", 11204385)):
            trace = npuprof.load(TRACE[release][0])
            self.assertEqual([trace.dur[i] for i in range(len(trace)) if trace.text(i) == "trace"], [ns])

    def test_executions(self):
        for release, expected in (("1", [(10902, 8559, 2343), (10901, 8557, 2344), (10997, 8557, 2440),
                                         (10900, 8555, 2345)]),
                                  ("2",
                                   [(119145, 108134, 11011), (119363, 108134, 11229), (119157, 108134, 11023),
                                         (119219, 108134, 11085)])):
            rows = npu_executions(*self.tables(release))
            self.assertEqual([row[4:7] for row in rows], expected)
            self.assertTrue(all(total == run + wait for *_, total, run, wait, _ in rows))
            self.assertTrue(all(run == added for *_, run, _, added in rows))

    def test_operators(self):
        for release, expected, total in (
                ("1", {"LowLevelConv2d": ("1226.187500", 16), "LowLevelDepthwiseConv2d": ("757.333333", 12),
                       "LowLevelPad": ("361.416667", 12),
                       "LowLevelMask": ("116.500000", 8), "LowLevelExpand": ("3.000000", 8),
                       "LowLevelReshape": ("3.000000", 68),
                       "LowLevelSlice": ("3.000000", 8)}, 34228),
                ("2", {"LowLevelConv2d": ("5327.800000", 60), "LowLevelDepthwiseConv2d": ("1412.285714", 56),
                       "LowLevelPad": ("575.785714", 56),
                       "LowLevelTranspose": ("250.000000", 4), "LowLevelReshape": ("2.000000", 240),
                       "LowLevelSlice": ("2.000000", 12),
                       "LowLevelExpand": ("2.000000", 16)}, 432536)):
            trace, device = self.tables(release)
            lines = [line.split() for line in next(tables(trace, ["operators"]))][1:]
            self.assertEqual({line[0]: (line[1], int(line[2])) for line in lines}, expected)
            self.assertEqual(sum(int(line[3]) for line in lines), total)
            self.assertEqual(sum(row[5] for row in npu_executions(trace, device)), total)
            means = [float(line[1]) for line in lines]
            self.assertEqual(means, sorted(means, reverse=True))
            self.assertAlmostEqual(sum(float(line[4]) for line in lines), 100, delta=0.05)

    def test_external_operators(self):
        published = {"1": [42929, 72999, 31812, 4895, 14085, 32360, 15655, 6128, 4400, 28714, 12675, 12227,
                           6631, 11694, 17573, 16021],
                     "2": [136285, 133350, 44775, 14682, 45465, 152748, 67140, 32388, 71736, 311310, 51930,
                           12362, 56736, 265447, 35869, 14688]}
        for release, expected in published.items():
            rows = external_operators(self.tables(release)[0])
            self.assertEqual([row[5] for row in rows], expected)
            self.assertEqual([row[3:5] for row in rows[:4]],
                             [("Quantize", 0), ("Lower", 1), ("Unlower", 2), ("Dequantize", 3)])


class SameAsC(unittest.TestCase):
    """Textually, ids included."""
    maxDiff = None

    def same(self, name, path, tables=SIX, change=lambda lines: lines):
        with self.subTest(trace=path.name):
            done = report(path, *(word for table in tables for word in ("--table", table)))
            self.assertEqual(done.stderr, "")
            self.assertEqual(done.returncode, 0)
            wanted = [change(block) if table == "executions" else block
                      for table, block in zip(SIX, blocks(PRINTED[name])) if table in tables]
            self.assertEqual(blocks(done.stdout), wanted)

    @helpers.thorough
    def test_json(self):
        for name in TRACE:
            self.same(name, TRACE[name][0])

    def test_image(self):
        for name in TRACE:
            self.same(name, TRACE[name][2])

    @helpers.thorough
    def test_csv(self):
        """It has no kinds: inferences go by name there, and the record is not known as warm-up by its own.
        Nor does it say what the device counted: the figures of an execution that is one operator are not
        known."""
        for name in TRACE:
            trace = npuprof.load(TRACE[name][0])
            whole = {trace.span_id(e.row) for e in Device(trace).executions()
                     if trace.text(e.row) != "Execution"
                     and (not e.run or trace.flags[e.row] & contract.COUNTED)}

            def hidden(lines):
                return [line[:77] + "  ".join([line[77:91].rstrip()] + [f"{'-':>12}"] * 3)
                        if line.split()[1] in whole else line for line in lines]
            tables = {"edges": ("external",),
                      "neural": ("executions", "operators", "external")}.get(name, SIX[:-1])
            self.same(name, TRACE[name][1], tables, hidden)

    def test_without_the_c_library(self):
        for name in TRACE:
            wanted = [list(lines) for lines in tables(npuprof.load(TRACE[name][0]))]
            with mock.patch.object(loops.native, "library", lambda: None):
                self.assertEqual([list(lines) for lines in tables(npuprof.load(TRACE[name][0]))], wanted)

    def test_golden(self):
        """The files in the repository, which hold no ids."""
        golden = helpers.TESTS / "golden"
        printed = [line for name in SIX if name != "inferences"
                   for lines in tables(npuprof.load(golden / "kinds.json"), [name]) for line in lines]

        def plain(lines):
            return [re.sub(r"\b(id\d+|[0-9a-f]{32}|[0-9a-f]{16})\b *", "", line) for line in lines]
        self.assertEqual(plain(printed), plain((golden / "kinds.txt").read_text().splitlines()))


class Edges(unittest.TestCase):
    def setUp(self):
        self.trace = npuprof.load(TRACE["edges"][0])

    def test_overlap_and_empty_execution(self):
        rows = [row[2:] for row in npu_executions(self.trace)]
        self.assertIn((1, 0, 160, 150, 10, 200), rows)
        self.assertIn((1, 1, 500, 0, 500, 0), rows)

    def test_memory(self):
        pool, = memory_pools(self.trace).values()
        self.assertEqual((pool["records"], pool["drops"], pool["held"]), (6, 1, 8 << 20))
        self.assertEqual((pool["used"], pool["allocated"]), ((5 << 20, 4, "tensor"), (8 << 20, 1, "loss")))
        self.assertEqual([record[0] for record in pool["rows"]],
                         ["conv", "loss", "conv", "tensor", "tensor", "tensor"])

    def test_path(self):
        rows = [row[1:] for row in path_rows(self.trace) if not self.trace.warm_up[row[0]]]
        self.assertEqual(len(rows), 3)
        for row in rows:                     # the device's clock is known to some ns
            for value, truth in zip(row, (5, 1010, 0, 5)):
                self.assertAlmostEqual(value, truth, delta=10)

    def test_warm_up(self):
        names = {self.trace.text(i) for i in range(len(self.trace)) if self.trace.warm_up[i]}
        self.assertEqual(names, {"getting ready", "Inference", "warm"})


class HandMade(unittest.TestCase):
    """Gaps, utilisation, self time and the way of a submission, by figures that can be checked in the
    head."""

    def setUp(self):
        events = [{"ph": "M", "name": "thread_name", "pid": 7, "tid": 1, "args": {"name": "main"}},
                  {"ph": "M", "name": "thread_name", "pid": 7, "tid": 2, "args": {"name": "npu PE 0"}},
                  {"ph": "M", "name": "thread_name", "pid": 7, "tid": 3, "args": {"name": "npu PE 1"}}]

        def span(tid, name, start, end, **args):
            events.append({"ph": "X", "name": name, "cat": "c", "pid": 7, "tid": tid, "ts": start,
                           "dur": end - start, "args": args})
        self.span = span
        span(1, "outer", 0, 100)
        span(1, "inner", 10, 40)
        span(1, "inner", 40, 60)
        span(1, "late", 150, 170)
        span(2, "job", 20, 50, stamp="device", pe_index=0)
        span(2, "job", 80, 130, stamp="device", pe_index=0)
        span(3, "job", 45, 60, stamp="device", pe_index=1)
        span(3, "job", 160, 165, stamp="device", pe_index=1)
        for number, (submit, tid, start) in enumerate(((12, 2, 20), (70, 2, 80)), 1):
            events.append({"ph": "s", "name": "submit", "cat": "submit", "id": number, "pid": 7, "tid": 1,
                           "ts": submit})
            events.append({"ph": "f", "name": "submit", "cat": "submit", "id": number, "pid": 7, "tid": tid,
                           "ts": start, "bp": "e"})
        self.events = events
        self.load()

    def load(self):
        about = {"version": "0.1.0", "start_unix_ns": 1, "threads": 1, "pid": 7, "devices": []}
        path = helpers.scratch() / "hand.json"
        path.write_text(json.dumps({"traceEvents": self.events, "metadata": {"npuprof": about}}))
        self.trace = npuprof.load(path)
        self.tracks = track_intervals(self.trace)

    def test_self_time(self):
        rows = {row[0]: row[1:4] for row in names_table(self.trace).rows}
        self.assertEqual(rows["outer"], (1, 100000, 50000))
        self.assertEqual(rows["inner"], (2, 50000, 50000))

    def test_utilisation(self):
        rows = {row[0]: row[1:4] for row in pes_table(self.trace, self.tracks).rows}
        self.assertEqual(rows, {"npu PE 0": (2, 80000, 80000), "npu PE 1": (2, 20000, 20000),
                                "(any)": (4, 95000, 100000)})

    def executions(self):
        """On PE 0: 200-300 with a Load 200-220 and two engines 220-260 and 240-270. On PE 1: one counted for
        a quarter, one that nobody counted."""
        def step(start, end, name, n):
            self.span(2, name, start, end, stamp="device", pe_index=0, execution_index=5, instruction_index=n)
        self.span(2, "Execution", 200, 300, stamp="device", pe_index=0, execution_index=5)
        step(200, 220, "Load", 0)
        step(220, 260, "conv", 1)
        step(240, 270, "pool", 2)
        self.span(3, "kernel", 200, 240, stamp="sampled", pe_index=1, start_ticks=str(2**63),
                  end_ticks=str(2**63 + 80), busy_ticks=20)
        if self.unknown:
            self.span(3, "kernel", 250, 290, stamp="sampled", pe_index=1, start_ticks=100, end_ticks=180)
        self.load()
        return Device(self.trace)

    unknown = True

    def test_run_of_a_sampled_execution(self):
        """What the device counted; neither 0 nor all of it where nobody did."""
        device = self.executions()
        rows = [row[4:] for row in npu_executions(self.trace, device)]
        for row in (100000, 50000, 50000, 70000), (40000, 10000, 30000, 10000), (40000, None, None, None):
            self.assertIn(row, rows)
        self.assertRegex(list(next(tables(self.trace, ["executions"])))[-1], r" 40000 +- +- +-$")

    def test_occupancy_and_compute(self):
        """Busy is not working: PE 0 computes 50 of 180 us. Where a run is not known, neither is that."""
        device = self.executions()
        rows = {row[0]: row[2:3] + row[5:6] for row in pes_table(self.trace, self.tracks, device).rows}
        self.assertEqual(rows, {"npu PE 0": (180000, 50000), "npu PE 1": (100000, None),
                                "(any)": (270000 - 15000 + 20000 - 5000 - 35000 - 40000, None)})

    def test_compute_of_what_the_device_counted(self):
        self.unknown = False
        device = self.executions()
        rows = {row[0]: row[5] for row in pes_table(self.trace, self.tracks, device).rows}
        self.assertEqual(rows, {"npu PE 0": 50000, "npu PE 1": 10000, "(any)": None})

    def test_self_time_of_the_device(self):
        """An execution without what runs in it, which overlaps: 100 - 70."""
        self.executions()
        rows = {row[0]: row[1:4] for row in names_table(self.trace).rows}
        self.assertEqual((rows["Execution"], rows["conv"]), ((1, 100000, 30000), (1, 40000, 40000)))

    def test_open_when_it_ended(self):
        """The newest thread first, of each the innermost span first."""
        for tid, name, start in ((1, "main loop", 200), (1, "handler", 250), (4, "copy", 260),
                                 (1, "victim", 270)):
            self.span(tid, name, start, 300, unfinished=True)
        self.span(1, "jumped", 280, 290, unfinished="unwound")
        self.load()
        table = open_table(self.trace)
        self.assertEqual([row[1] for row in table.rows], ["victim", "handler", "main loop", "copy"])
        self.assertEqual(table.rows[0], ("main", "victim", "c", 270000, 30000))
        self.assertEqual(list(table_lines(open_table(npuprof.load(TRACE["1"][0]))))[1:], ["(none)"])

    def test_gaps(self):
        """Device busy 20-60, 80-130, 160-165; host 0-100, 150-170: idle while the host works 60-80 and
        150-160."""
        table = gaps_table(self.trace, self.tracks)
        self.assertEqual(table.rows, [(60000, 20000, "main", "outer"), (150000, 10000, "main", "late")])
        self.assertIn("device window 145000, device busy 95000, idle 50000, idle while the host works 30000 "
                      "in 2 gaps", table.notes[0])

    def test_path(self):
        """12 -> 20-50, and 70 -> 80-130. No span waits, so nobody knows when the host noticed."""
        self.assertEqual([row[1:] for row in path_rows(self.trace)],
                         [(8000, 30000, None, None), (10000, 50000, None, None)])

    def test_threads(self):
        self.assertEqual([row[:4] for row in threads_table(self.trace, self.tracks).rows],
                         [("main", 1, 4, 120000)])

    def test_intervals(self):
        def minus(a, b):
            return list(loops.minus(union(a), union(b)))
        self.assertEqual(minus([(0, 10), (20, 30)], [(29, 40), (8, 22), (2, 4)]), [(0, 2), (4, 8), (22, 29)])
        self.assertEqual(minus([(0, 10)], []), [(0, 10)])
        self.assertEqual(minus([], [(0, 10)]), [])
        self.assertEqual(list(both(union([(0, 10), (12, 20)]), union([(5, 15), (18, 19)]))),
                         [(5, 10), (12, 15), (18, 19)])
        self.assertEqual(list(union([(5, 6), (1, 3), (2, 5), (9, 9)])), [(1, 6), (9, 9)])

    def test_percentiles(self):
        self.assertEqual(percentile([1, 2], 500), 2)          # 1.5, half up
        self.assertEqual(percentile([5], 999), 5)
        self.assertEqual([percent(Fraction(n, 100000)) for n in (-54700, -5, -4, 12345)],
                         ["-54.70", "0.00", "0.00", "12.35"])
        self.assertEqual([megabytes(n << 19) for n in (-3, 3)], ["-1.500000", "1.500000"])
        self.assertEqual(percentile([0, 10, 20, 30], 900), 27)


@helpers.thorough
class Many(unittest.TestCase):
    def trace(self, name, count, processes):
        """A trace of that many threads or processes: each has an inference, an arrow, a device span, an
        instant and a counter."""
        lines = []
        for i in range(count):
            pid, tid = (i + 1, 1) if processes else (1, i + 1)
            where = f'"pid":{pid},"tid":{tid}'
            there = f'"pid":{pid},"tid":{tid + count}'
            lines += [f'{{"ph":"X","name":"Inference",{where},"ts":{i}.000,"dur":5.000,'
                      f'"args":{{"kind":"inference"}}}}',
                      f'{{"ph":"s","name":"submit",{where},"cat":"flow","id":{i},"ts":{i}.500}}',
                      f'{{"ph":"f","name":"submit",{there},"bp":"e","cat":"flow","id":{i},"ts":{i}.600}}',
                      f'{{"ph":"X","name":"dev",{there},"ts":{i}.600,"dur":1.000,"args":{{"stamp":"ring"}}}}',
                      f'{{"ph":"i","name":"note",{where},"ts":{i}.700,"s":"t"}}',
                      f'{{"ph":"C","name":"q",{where},"ts":{i}.700,"args":{{"v":1}}}}']
        about = {"version": "0.1.0", "start_unix_ns": 0, "pid": 1, "threads": count,
                 "processes": [{"pid": i + 1, "threads": 1, "program": "p"}
                               for i in range(count if processes else 0)]}
        path = helpers.scratch() / name
        path.write_text('{"traceEvents":[\n' + ",\n".join(lines)
                        + '\n],\n"displayTimeUnit":"ns",\n"metadata":{"npuprof":' + json.dumps(about)
                        + "}}\n")
        return path

    def test_time_grows_with_threads_and_processes_not_with_their_square(self):
        helpers.tool("npuprof-convert")
        def took(count, processes, *words):
            path = self.trace("many.json", count, processes)
            before = resource.getrusage(resource.RUSAGE_CHILDREN)
            helpers.npuprof_py(*(path if word is None else word for word in words))
            return resource.getrusage(resource.RUSAGE_CHILDREN).ru_utime - before.ru_utime
        for processes in (False, True):
            for words in (["report", None], ["report", None, "--html", "many.html"],
                          ["convert", None, "-o", "many.otlp.json"],
                          ["convert", None, "-o", "many.speedscope.json"], ["diff", None, None]):
                # 4 times as long; by the square 16 times. Why at least 0.3 s: what is short is noise.
                self.assertLess(helpers.measured(8, lambda: took(8000, processes, *words) /
                                                 max(took(2000, processes, *words), 0.3)), 8, words)


class Command(unittest.TestCase):
    def test_long_tables(self):
        """Ten rows of six tables, twenty of all, and how to see more; what is asked for is whole. The first
        screen comes first, then spans by name."""
        path = helpers.scratch() / "long.json"
        path.write_text(json.dumps([{"ph": "X", "name": f"n{n}", "pid": 1, "tid": 1, "ts": n, "dur": 1}
                                    for n in range(33)]))
        lines = report(path).stdout.splitlines()
        self.assertEqual(lines[0], "long.json: 33.0 us; losses not known")
        del lines[:lines.index("") + 1]
        self.assertEqual(lines[0], "Tables of the whole trace")
        del lines[:2]
        self.assertEqual(lines[0], "Spans by name (ns; self is without children, share is of self)")
        self.assertEqual(lines[12], "(23 more of 33 rows; all of them: --table names)")
        self.assertIn("More tables: --table NAME, or --table all: call_paths, open, ", "\n".join(lines))
        self.assertEqual(len(report(path, "--table", "names").stdout.splitlines()), 35)
        lines = report(path, "--table", "all").stdout.splitlines()
        self.assertEqual(lines[24], "(13 more of 33 rows; all of them: --table names)")
        found = report(TRACE["host"][0], "--table", "all").stdout
        self.assertRegex(found, r"\(\d+ more of \d+ rows; all of them: --table inferences\)")
        self.assertRegex(found, r"(?m)^Inferences \(ns\)\ntrace_id ")

    def test_few_tables(self):
        """At most six without being asked; the others are named, and none twice."""
        found = report(TRACE["host"][0]).stdout
        named = re.split(r",\s+", found[found.index("--table all: ") + 13:].strip())
        every = list(dict.fromkeys([*NAMES, *ANALYSES]))
        self.assertEqual(len(every) - len(named), 6)
        self.assertLessEqual(set(named), set(every))
        self.assertNotIn("Inferences (ns)", found)

    @helpers.thorough
    def test_every_table_has_its_title(self):
        done = report(TRACE["edges"][0], "--table", "all")
        for words in ("Spans by name", "Spans by category", "Threads", "Device tracks", "Host gaps",
                      "From submit to completion", "Memory of host",
                      "Clock error of the devices, and what was lost"):
            self.assertRegex(done.stdout, rf"(?m)^{words}")

    def test_trust(self):
        trace = SimpleNamespace(metadata={"lost": {"arena_full": 7, "names_full": 0}, "devices": [
            {"name": "npu0", "clock_sync": {"rate_hz": 25000000.5, "max_error_ns": 90,
                                            "causality_violations": 2, "ring_lost": 1}}, 3, {}]})
        table = trust_table(trace)
        self.assertEqual(table.rows, [("npu0", "25000000.5", "-", "90", "-", "2", "-", "1")])
        self.assertEqual(table.notes, ["lost: 7 arena_full", "device 'npu0': 2 causality_violations",
                                       "device 'npu0': 1 ring_lost"])
        self.assertEqual(trust_table(SimpleNamespace(metadata={"lost": {"arena_full": 0}})).notes, ["lost 0"])
        for metadata in ({}, {"lost": 1, "devices": "x"},
                         {"lost": {"a": "b"}, "devices": [{"name": 1, "clock_sync": {"anchors": []}}]}):
            list(table_lines(trust_table(SimpleNamespace(metadata=metadata))))

    @helpers.thorough
    def test_exit_codes(self):
        broken = helpers.scratch() / "broken.json"
        broken.write_bytes(TRACE["1"][0].read_bytes()[:5000])
        for path in (broken, helpers.scratch() / "missing.json"):
            self.assertRegex(helpers.refused("report", path), rf"^{re.escape(str(path))}:[^\n]*\n$")
        report("--help")
        report(code=2)
        report(TRACE["1"][0], "--table", "nonsense", code=2)
