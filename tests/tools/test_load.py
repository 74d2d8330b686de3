# npuprof.load(): the same rows from JSON and CSV, other tools' traces, broken files
# SPDX-License-Identifier: MIT
import io
import json
import random
import re
import sys
import unittest
import unittest.mock

import helpers
import npuprof
from npuprof import loops
from npuprof.base import contract
from npuprof.report.text import tables
from npuprof.base.messages import Progress, Refused


def setUpModule():
    helpers.tool("libnpuprof-columns.so")        # before the first look for it, which counts for good
    global JSON, CSV
    helpers.tool("npuprof-convert")
    program = helpers.build("golden.c", "golden")
    JSON, CSV = helpers.scratch() / "golden.json", helpers.scratch() / "golden.csv"
    for path in (JSON, CSV):
        helpers.run([program, path], code=0, env=helpers.environment())


class SameRows(unittest.TestCase):
    def test_json_and_csv(self):
        a, b = npuprof.load(JSON), npuprof.load(CSV)
        self.assertEqual(len(a), len(b))

        def comparable(trace):
            return sorted((r["start"], r["dur"], r["name"], r["cat"], r["thread.id"], r["operator_index"])
                          for r in (trace.row(i) for i in range(len(trace))))
        first = min(r[0] for r in comparable(b)) - min(r[0] for r in comparable(a))
        self.assertEqual(first % 1, 0)
        shifted = [(s + first, *rest) for s, *rest in comparable(a)]
        self.assertEqual(shifted, comparable(b))

    def test_parents_are_those_of_the_csv(self):
        def pairs(trace):
            return sorted((trace.text(i), trace.dur[i], trace.text(p) if (p := trace.parents[i]) >= 0 else "")
                          for i in range(len(trace)))
        self.assertEqual(pairs(npuprof.load(JSON)), pairs(npuprof.load(CSV)))

    def test_arguments_counters_instants_flows(self):
        trace = npuprof.load(JSON)
        kernel = next(i for i in range(len(trace)) if trace.text(i) == "kernel")
        self.assertEqual(trace.args(kernel), {"n": -5, "s": 'a"b', "x": 0.5})
        self.assertEqual([(c.name, c.values) for c in trace.counters], [("queue", [0, 1])])
        self.assertEqual([i.name for i in trace.instants], ["now", "now"])
        self.assertEqual(len(trace.flows), 1)
        self.assertEqual(trace.metadata["user"], {"model": "golden"})

    def test_by_pattern_as_by_parser(self):
        """The fast reader of the own writer's lines and the strict one give the same."""
        slow = helpers.scratch() / "slow.json"
        slow.write_text(json.dumps(helpers.load(JSON), indent=1))
        a, b = npuprof.load(JSON), npuprof.load(slow)
        self.assertEqual([a.row(i) | {"args": a.args(i)} for i in range(len(a))],
                         [b.row(i) | {"args": b.args(i)} for i in range(len(b))])


class Broken(unittest.TestCase):
    def refused(self, data, words):
        path = helpers.scratch() / "broken"
        path.write_bytes(data)
        with self.assertRaises(Refused) as caught:
            npuprof.load(path)
        text = str(caught.exception)
        self.assertRegex(text, words)
        self.assertNotIn("\n", text)
        self.assertTrue(text.startswith(f"{path}:"), text)

    def test_refused_in_one_line(self):
        whole, table = JSON.read_bytes(), CSV.read_bytes()
        self.refused(b"", "empty")
        self.refused(b"hello, world\n", "neither")
        self.refused(whole[:len(whole) // 2], "cut off|strict JSON")
        self.refused(whole[:-10], "cut off")
        self.refused(b'{"a": 1}', "traceEvents")
        self.refused(b'{"traceEvents": [1, 2]}', "no event")
        self.refused(whole.replace(b'"start_unix_ns"', b'"start"'), "start_unix_ns")
        self.refused(re.sub(rb'"version":"[^"]*"', b'"version":"9.0.0"', whole),
                     "npuprof 9.0.0, this tool reads up to")
        self.refused(table.replace(b",dur,", b",", 1), "column dur")
        self.refused(table[:-5], "within a line")
        self.refused(table.replace(b"Inference", b"Infer\"ence", 1), ":3: not CSV|:3: .*cells")
        self.refused(table.replace(b"one", b"on\xffe", 1), "UTF-8")
        with self.assertRaises(Refused):
            npuprof.load(helpers.scratch() / "missing.json")


class Version(unittest.TestCase):
    def test_is_that_of_the_header(self):
        text = (helpers.ROOT / "npuprof.h").read_text(encoding="utf-8")
        self.assertEqual(re.search(r'NPUPROF_VERSION_STRING "(\d+)\.', text)[1], str(contract.MAJOR))

    def test_newer_minor_is_read(self):
        path = helpers.scratch() / "minor.json"
        path.write_bytes(re.sub(rb'"version":"[^"]*"', f'"version":"{contract.MAJOR}.99.0"'.encode(),
                                JSON.read_bytes()))
        self.assertEqual(len(npuprof.load(path)), len(npuprof.load(JSON)))


class ProgressLine(unittest.TestCase):
    def said(self, terminal, seconds):
        class Stream(io.StringIO):
            def isatty(self):
                return terminal
        with unittest.mock.patch.object(sys, "stderr", Stream()) as stream, \
                unittest.mock.patch("npuprof.base.messages.time.monotonic") as clock:
            clock.return_value = 100.0
            bar = Progress("reading t.json", 200)
            for done, at in enumerate(seconds):
                clock.return_value = 100.0 + at
                bar.at(done)
            bar.done()
            return stream.getvalue()

    def test_only_what_takes_long_and_only_to_a_terminal(self):
        self.assertEqual(self.said(True, [0.1, 0.5, 0.9]), "")
        self.assertEqual(self.said(False, [0.1, 5, 50]), "")
        text = self.said(True, [0.1] * 50 + [2.1, 2.15, 2.4])
        self.assertEqual(text.count("reading t.json: "), 2)
        self.assertIn("reading t.json: 25 %", text)
        self.assertTrue(text.endswith("\r\033[K"))


class OtherTools(unittest.TestCase):
    def test_their_stamp_is_no_device(self):
        path = helpers.scratch() / "stamp.json"
        path.write_text('[{"ph":"X","name":"a","pid":1,"tid":1,"ts":1,"dur":2,"args":{"stamp":"x"}}]')
        self.assertEqual([track.kind for track in npuprof.load(path).tracks], ["thread"])

    def test_begin_and_end(self):
        """Two operators of another profiler: whole microseconds since the epoch, threads by name."""
        events = [{"name": f"raf_op_tvm_cast_{n}", "cat": "Default Stream", "ph": phase, "ts": ts,
                   "pid": 2364, "tid": "Default Stream",
                   "args": {"args_string": "T<768xf32>"}}
                  for n, phase, ts in ((76, "B", 1648086040982992), (76, "E", 1648086040983008),
                                       (77, "B", 1648086040983026), (77, "E", 1648086040983039))]
        path = helpers.scratch() / "other.json"
        path.write_text(json.dumps({"traceEvents": events, "displayTimeUnit": "ms"}, indent=4))
        trace = npuprof.load(path)
        self.assertEqual(list(trace.dur), [16000, 13000])
        self.assertEqual(trace.start[1] - trace.start[0] - trace.dur[0], 18000)
        self.assertEqual(trace.row(1)["start"], 1648086040983026000)


PIECES = [b'"', b"{", b"}", b"[", b"]", b",", b"\n", b"\\", b"-", b".", b"9" * 30, b"null", b"\xff", b"1e400",
          b'"args":{', b'"ts":', b"0.000"]


def mutated(chance, whole):
    """The bytes with one to five changes."""
    data = bytearray(whole)
    for _ in range(chance.choice((1, 1, 2, 5))):
        at = chance.randrange(len(data))
        what = chance.randrange(5)
        if what == 0:
            data[at] = chance.choice((chance.randrange(256), chance.randrange(32, 127)))
        elif what == 1:
            del data[at:at + chance.randrange(1, 40)]
        elif what == 2:
            data[at:at] = chance.choice(PIECES)
        elif what == 3:
            lines = data.split(b"\n")
            chance.shuffle(lines)
            data = bytearray(b"\n".join(lines))
        else:
            other = chance.randrange(len(data))
            data[at:at + 20] = data[other:other + 20]
    return data


def all_of(path):
    """Everything that is read from a file, and its tables; or the line that refuses it."""
    try:
        trace = npuprof.load(path)
        lines = [list(lines) for lines in tables(trace)]
        columns = (trace.start, trace.dur, trace.track, trace.kind, trace.flags, trace.index, trace.parents,
                   trace.roots, trace.warm_up, trace.counters, trace.memory, trace.memory_peaks,
                   trace.instants, list(trace.flows))
        return lines, columns, repr(trace.tracks), list(trace.rows()), [trace.args(i)
                                                                        for i in range(len(trace))]
    except Refused as error:
        return str(error)


class Ids(unittest.TestCase):
    @helpers.thorough
    def test_one_trace_id_an_inference(self):
        """A record around each inference: what is grouped by trace_id is an inference with all it caused, in
        the JSON and in the CSV."""
        program, paths = helpers.build("ids.c", "ids"), [helpers.scratch() / name
                                                         for name in ("ids.json", "ids.csv")]
        self.assertEqual(helpers.run([program, *paths], env=helpers.environment()).returncode, 0)
        for path in paths:
            groups = {}
            for row in npuprof.load(path).rows():
                groups.setdefault(row["trace_id"], []).append(row["name"])
            self.assertEqual(sorted(sorted(names) for names in groups.values()),
                             sorted([["serve"]] + 3 * [["conv1", "conv1", "pre", "resnet50", "trace"]]), path)


class MemoryPeaks(unittest.TestCase):
    def test_are_no_spans(self):
        """In C, by pattern and cell by cell (columns in another order)."""
        paths = [helpers.scratch() / name for name in ("pools.json", "pools.csv")]
        helpers.run([helpers.build("published.c", "published"), "edges", *paths], code=0,
                    env=helpers.environment())
        json, rows = npuprof.load(paths[0]), paths[1].read_text(encoding="utf-8").splitlines()
        name = f"host used_bytes={5 << 20} allocated_bytes={8 << 20} tag=tensor"
        ns = next(json.base_ns + record.ts for record in json.memory if record.used == 5 << 20)
        self.assertEqual(rows[-1], f',,,{ns},{ns},"memory","{name}",,,,,,,0,')
        moved = helpers.scratch() / "moved.csv"
        moved.write_text("\n".join(row.rpartition(",")[2] + "," + row.rpartition(",")[0] for row in rows)
                         + "\n", encoding="utf-8")
        for path in (paths[1], moved):
            for library in (loops.native.library, lambda: None):
                with self.subTest(path=path.name, library=library), \
                        unittest.mock.patch.object(loops.native, "library", library):
                    trace = npuprof.load(path)
                    self.assertEqual((len(trace), trace.memory_peaks), (len(json), [(ns, name)]))
                    self.assertEqual([row["name"] for row in trace.rows()].count(name), 0)


class Hostile(unittest.TestCase):
    def both_ways(self, path, what):
        """The same in C and in Python; what that is."""
        found = all_of(path)
        with unittest.mock.patch.object(loops.native, "library", lambda: None):
            again = all_of(path)
        # Of broken arguments C knows at once, Python when they are asked for: other words.
        self.assertEqual(isinstance(again, str), isinstance(found, str), (what, again, found))
        self.assertTrue(isinstance(found, str) or again == found, what)
        return found

    def setUp(self):
        self.assertTrue(loops.native.library())
        program = helpers.build("published.c", "published")
        self.whole = []
        for name in ("edges.json", "edges.csv"):
            helpers.run([program, "edges", helpers.scratch() / name], env=helpers.environment())
            self.whole.append((helpers.scratch() / name).read_bytes())

    @helpers.thorough
    def test_any_change_is_read_or_refused(self):
        """Damaged files, in C and in Python: a trace whose tables can be made, or one line; never anything
        else."""
        chance = random.Random(11)
        path = helpers.scratch() / "hostile"
        refused = read = 0
        for n in range(500):
            path.write_bytes(mutated(chance, self.whole[n % 2]))
            found = self.both_ways(path, f"mutation {n} of the seed")
            if isinstance(found, str):
                self.assertTrue(found.startswith(f"{path}:"), found)
                self.assertNotIn("\n", found)
                refused += 1
            else:
                read += 1
        self.assertGreater(read, 20)
        self.assertGreater(refused, 100)

    def test_cells_and_ids_of_almost_the_right_form(self):
        """Found by other seeds: a lone minus as an index; an id of too many digits, and of capitals, which
        are arguments as any others."""
        path = helpers.scratch() / "almost"
        lines = self.whole[1].split(b"\n")
        path.write_bytes(b"\n".join([*lines[:-3], re.sub(rb",\d*,(\d+,[^,]*)$", rb",-,\1", lines[-3]), b""]))
        self.assertIn("not as it should be: '-'", self.both_ways(path, "minus"))
        for change in (rb'\1\2\2"', rb'\1FFFFFFFFFFFFFFFF"'):
            path.write_bytes(re.sub(rb'("stamp".*"span_id":")([0-9a-f]{16})"', change, self.whole[0]))
            self.assertNotIsInstance(self.both_ways(path, change), str)

    @helpers.thorough
    def test_whole_traces(self):
        program = helpers.build("many_spans.c", "many_spans", "-DNPUPROF_ARENA_BYTES=4000000u")
        helpers.run([program, "device", "3000", "m.json", "m.csv"], code=0, env=helpers.environment())
        for path in ("edges.json", "edges.csv", "golden.json", "golden.csv", "m.json", "m.csv"):
            self.assertNotIsInstance(self.both_ways(helpers.scratch() / path, path), str)

    def test_random_spans(self):
        """What no writer would write: lanes, equal stamps, spans that cross, warm-up in warm-up."""
        chance = random.Random(3)
        for n in range(30):
            lines = ['{"traceEvents":[',
                     '{"ph":"M","name":"thread_name","pid":1,"tid":1,"args":{"name":"main"}},']
            for i in range(chance.choice((1, 40, 400))):
                start, dur = chance.randrange(60), chance.choice((0, 0, 1, 5, chance.randrange(60)))
                args = chance.choice(("", "", ',"args":{"kind":"warm_up"}',
                                      ',"args":{"kind":"inference","x":"\\"}"}', ',"args":{"stamp":"device"}',
                                      f',"args":{{"stamp":"device","execution_index":{chance.randrange(3)}}}',
                                      f',"args":{{"stamp":"device","execution_index":{chance.randrange(3)},'
                                      f'"instruction_index":{i}}}',
                                      f',"args":{{"kind":"operator","operator_index":-{i},'
                                      '"unfinished":true}',
                                      ',"args":{"warm_up":true,"pe_index":1.5}'))
                tid = chance.choice((5, 6)) if "stamp" in args else chance.choice((1, 2, 9))
                lines.append(f'{{"ph":"X","name":"n{chance.randrange(5)}","cat":"c","pid":1,"tid":{tid},'
                             f'"ts":{start}.000,"dur":{dur}.000{args}}},')
                if "stamp" in args and chance.random() < 0.5:
                    lines += [f'{{"ph":"s","name":"submit","pid":1,"tid":1,"cat":"submit","id":{i},'
                              f'"ts":{chance.randrange(60)}.000}},',
                              f'{{"ph":"f","name":"submit","pid":1,"tid":{tid},"bp":"e","cat":"submit",'
                              f'"id":{i},"ts":{start}.000}},']
            lines[-1] = lines[-1][:-1]
            lines += ['],"metadata":{"npuprof":{"version":"0.1.0","start_unix_ns":5,"pid":1,"threads":2}}}']
            path = helpers.scratch() / "random.json"
            path.write_text("\n".join(lines) + "\n", encoding="utf-8")
            self.assertNotIsInstance(self.both_ways(path, f"trace {n} of the seed"), str)


PANDAS = """
import sys
sys.path.insert(0, sys.argv[1])
import pandas
import npuprof
for path in sys.argv[2:]:
    trace = npuprof.load(path)
    frame = trace.to_pandas()
    assert list(frame.columns) == "trace_id,parent_span_id,span_id,start,end,cat,name,thread.id,dram_base," \\
        "pe_index,execution_index,instruction_index,operator_index,dur".split(","), frame.columns
    assert len(frame) == len(trace)
    for i, row in enumerate(frame.itertuples(index=False)):
        given = list(trace.row(i).values())
        assert [None if v is pandas.NA else v for v in row] == given, (row, given)
    assert str(frame["pe_index"].dtype) == str(frame["thread.id"].dtype) == "Int64"
    assert str(frame["dur"].dtype) == "int64"
    assert (frame["end"] - frame["start"] == frame["dur"]).all()
    if path.endswith(".csv"):
        read = pandas.read_csv(path, dtype=frame.dtypes.to_dict(), keep_default_na=False, na_values={
            "thread.id": "", "pe_index": "", "dram_base": "", "execution_index": "",
            "instruction_index": "", "operator_index": ""})
        pandas.testing.assert_frame_equal(read.drop(columns="source"), frame)
    print(len(frame[frame["name"] == "Inference"]))
"""


@helpers.thorough
class Pandas(unittest.TestCase):
    def test_data_frame(self):
        for python in (sys.executable, "/usr/bin/python3"):
            probe = helpers.run([python, "-c", "import sys, pandas; sys.exit(sys.version_info < (3, 11))"])
            if probe.returncode == 0:
                break
        else:
            self.skipTest("pandas is not installed (package python3-pandas)")
        done = helpers.run([python, "-c", PANDAS, helpers.ROOT / "tools", JSON, CSV])
        self.assertEqual((done.returncode, done.stdout), (0, "2\n2\n"), done.stderr)

    def test_without_pandas(self):
        done = helpers.run([sys.executable, "-c",
                            "import sys; sys.modules['pandas'] = None; sys.path.insert(0, sys.argv[1]); "
                            "import npuprof\n"
                            "try:\n    npuprof.load(sys.argv[2]).to_pandas()\nexcept Exception as error:\n"
                            "    print(error)", helpers.ROOT / "tools", JSON])
        self.assertEqual(done.stdout, "to_pandas() needs pandas, which is not installed; rows() gives the "
                                      "same as dicts\n")

    def test_in_a_notebook(self):
        """A cell that ends with the trace shows its first rows, escaped."""
        text = npuprof.load(JSON)._repr_html_()
        self.assertIn("<th>trace_id</th>", text)
        self.assertEqual(text.count("<tr>"), 1 + len(npuprof.load(JSON)))
        self.assertNotIn("<npuprof", text)
