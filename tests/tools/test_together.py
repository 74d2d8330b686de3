# test: time=200 - tables of spans that belong together, each against a small computation of its own: call
# paths and folded text, shapes, communication, sequences, counters over time
# SPDX-License-Identifier: MIT
import json
import random
import re
import unittest
from collections import Counter
from fractions import Fraction

import helpers
from helpers import scratch
import npuprof
from npuprof.analysis import communication, over_time, sequences, shapes
from npuprof.analysis.facts import Facts
from npuprof.tables.call_paths import call_paths_table, parents_first
from small_traces import Small

SEEDS = range(40)


def loaded(name, events, **about):
    path = scratch() / f"{name}.json"
    path.write_text(json.dumps({"traceEvents": events, "metadata": {"npuprof": {
        "version": "0.1.0", "start_unix_ns": 5, "pid": 1, **about}}}))
    return npuprof.load(path)


def x(name, tid, start, end, cat="c", **args):
    return {"ph": "X", "name": name, "cat": cat, "pid": 1, "tid": tid, "ts": start / 1000,
            "dur": (end - start) / 1000, "args": args}


def lane(tid, name):
    return {"ph": "M", "name": "thread_name", "pid": 1, "tid": tid, "args": {"name": name}}


def own_times(event):
    """Its times as npuprof's own writer has them."""
    ts, dur = (round(event[key] * 1000) for key in ("ts", "dur"))
    return f'"ts":{ts // 1000}.{ts % 1000:03},"dur":{dur // 1000}.{dur % 1000:03},'


def small(seed, **more):
    return npuprof.load(Small(seed, **more).write(scratch() / f"small{seed}.json"))


class CallPaths(unittest.TestCase):
    def walk(self, trace):
        """{path: [count, total, self]}: of host threads, by a stack."""
        found, stacks = {}, {}
        ends = trace.start, trace.dur
        for i in sorted(range(len(trace)), key=lambda i: (trace.start[i], -trace.dur[i], i)):
            if trace.tracks[trace.track[i]].kind != "thread":
                continue
            start, end = ends[0][i], ends[0][i] + ends[1][i]
            stack = stacks.setdefault(trace.track[i], [])
            while stack and not (end <= stack[-1][1] and start < stack[-1][1]):
                stack.pop()
            path = (stack[-1][0] if stack else "host") + ";" + trace.text(i)
            entry = found.setdefault(path, [0, 0, 0])
            entry[0] += 1
            entry[1] += end - start
            entry[2] += end - start
            if stack:
                found[stack[-1][0]][2] -= end - start
            stack.append((path, end))
        return found

    def test_random(self):
        for seed in SEEDS:
            trace = small(seed)
            table = call_paths_table(trace)
            host = {row[0]: list(row[2:5]) for row in table.rows if row[0].startswith("host")}
            self.assertEqual(host, self.walk(trace))
            self.assertEqual(sum(row[2] for row in table.rows), len(trace))
            self.assertEqual([row[4] for row in table.rows], sorted((row[4] for row in table.rows))[::-1])

    def test_device(self):
        """Below their execution, whose own time is without their union; the two PEs are together."""
        trace = loaded("device", [
            lane(1, "main"), lane(10, "dev PE 0"), lane(11, "dev PE 0 instructions"), x("Submit", 1, 0, 9),
            *(x(name, tid, a, b, stamp="device", pe_index=0, execution_index=1, **more)
              for name, tid, a, b, more in (
              ("Execution", 10, 10, 100, {}), ("conv", 11, 20, 60, {"instruction_index": 0}),
               ("pad", 11, 40, 80, {"instruction_index": 1})))], devices=[{"name": "dev", "pe_count": 1}])
        rows = {row[0]: row[2:5] for row in call_paths_table(trace).rows}
        self.assertEqual(rows, {"host;Submit": (1, 9, 9), "dev;Execution": (1, 90, 30),
                                "dev;Execution;conv": (1, 40, 40), "dev;Execution;pad": (1, 40, 40)})

    def test_parents_first(self):
        draw = random.Random(1)
        for _ in range(200):
            count = draw.randrange(1, 12)
            parents = [draw.randrange(-1, count) for _ in range(count)]
            order = list(parents_first(parents))
            self.assertEqual(sorted(order), list(range(count)))
            for i, parent in enumerate(parents):
                chain = [i]
                while parents[chain[-1]] >= 0 and parents[chain[-1]] not in chain:
                    chain.append(parents[chain[-1]])
                if parents[chain[-1]] < 0 and parent >= 0:          # in no circle
                    self.assertLess(order.index(parent), order.index(i))

    def test_deep(self):
        trace = loaded("deep", [x(f"f{n % 7}", 1, n, 2000 - n) for n in range(600)])
        table = call_paths_table(trace)
        self.assertEqual((max(row[1] for row in table.rows), sum(row[4] for row in table.rows)), (200, 2000))
        self.assertTrue(any(row[0].endswith("(deeper)") and row[2] == 401 for row in table.rows))

    def test_folded(self):
        """What flamegraph.pl reads: it takes the last number of a line, and splits the rest at semicolons."""
        trace = loaded("odd", [x("a;b", 1, 0, 100), x("new\nline 7", 1, 10, 30), x("empty", 1, 40, 40)])
        helpers.npuprof_py("convert", scratch() / "odd.json", "-o", scratch() / "odd.folded")
        text = (scratch() / "odd.folded").read_text()
        self.assertEqual(text, "host;a,b 80\nhost;a,b;new line 7 20\n")
        for seed in SEEDS:
            trace = small(seed)
            helpers.npuprof_py("convert", trace.path, "-o", scratch() / "small.folded")
            lines = [re.fullmatch(r"(.+) (\d+)", line) for line in
                     (scratch() / "small.folded").read_text().splitlines()]
            wanted = {row[0]: row[4] for row in call_paths_table(trace).rows if row[4] > 0}
            self.assertEqual({line[1]: int(line[2]) for line in lines}, wanted)
            if seed == 2:
                break


class Shapes(unittest.TestCase):
    def test_texts(self):
        for value, text in (([1, 3, 8, 8], "1x3x8x8"), ([[1, 3], [], [4]], "1x3;4"), ("1x3", "1x3"),
                            (7, "7"), ([{"float": [1, 2]}, {"int64": [3]}], "float 1x2;int64 3"), (None, ""),
                            (True, "")):
            self.assertEqual(shapes.text_of(value), text)
        self.assertEqual(shapes.shape_of({"Input Dims": [[2, 3]], "ne.weight_shape": "3x4", "n": 1}),
                         "2x3 | 3x4")

    def test_both_readers(self):
        """Lines of npuprof's own layout are read by pattern, others as JSON: the same."""
        draw = random.Random(3)
        for _ in range(10):
            events, wanted, at = [], {}, 0
            for _ in range(60):
                name, shape = draw.choice(("conv", "fc")), draw.choice(("1x3x8x8", "4;5", 'a"b', 16, None))
                ns = draw.randrange(1, 50)
                args = {"n": 1} if shape is None else {"n": 2, "ne.input_shapes": shape, "note": '"shape":9'}
                events.append(x(name, 1, at, at + ns, **args))
                if shape is not None:
                    wanted.setdefault((name, "host", str(shape)), []).append(ns)
                at += ns + 1
            plain = loaded("shapes", events)
            own = scratch() / "own.json"
            lines = [json.dumps(e, separators=(",", ":")) for e in events]
            lines = [re.sub(r'"ts":[^,]*,"dur":[^,]*,', own_times(e), line) for e, line in zip(events, lines)]
            own.write_text('{"traceEvents":[\n' + ",\n".join(lines) + '\n],\n"metadata":{"npuprof":'
                           '{"version":"0.1.0","start_unix_ns":5,"pid":1}}}\n')
            for trace in (plain, npuprof.load(own)):
                [table] = shapes.analyse(Facts(trace))
                found = {row[:3]: (row[3], row[4], row[9]) for row in table.rows}
                self.assertEqual(found, {key: (len(ns), sum(ns), max(ns)) for key, ns in wanted.items()})
                self.assertEqual(sum(row[5] for row in table.rows), 100)
            self.assertTrue(trace._blocks)


class Communication(unittest.TestCase):
    def test_random(self):
        """Against every single ns."""
        for seed in SEEDS:
            draw, events, ns = random.Random(seed), [], {}
            names = ("ncclDevKernel_AllReduce_Sum", "conv", "my exchange", "Memcpy HtoD", "Load")
            for tid in (10, 12, 14):
                events.append(lane(tid, f"dev PE {tid}"))
                at = 0
                while at < 300:
                    name, at = draw.choice(names), at + draw.randrange(20)
                    end = at + draw.randrange(1, 40)
                    events.append(x(name, tid, at, end, stamp="device", pe_index=tid,
                                    execution_index=len(events)))
                    for t in range(at, end):
                        ns.setdefault(t, set()).add(name)
                    at = end
            trace = loaded("comm", events, devices=[{"name": "dev", "pe_count": 3}],
                           user={"npuprof.role.my exchange": "comm"})
            facts = Facts(trace)
            one, each = communication.analyse(facts)
            talk, work = {names[0], names[2]}, {"conv"}
            [row] = one.rows
            both = sum(bool(n & talk and n & work) for n in ns.values())
            talks, works = (sum(bool(n & of) for n in ns.values()) for of in (talk, work))
            self.assertEqual(row[:4], ("dev", talks, works, both))
            self.assertEqual((row[4], row[5]), (Fraction(100 * both, talks), talks - both))
            for _, name, count, total, hidden, exposed, _ in each.rows:
                self.assertEqual(total, sum(name in n for n in ns.values()))
                self.assertEqual(exposed, sum(name in n and not n & work for n in ns.values()))
                self.assertEqual((count, hidden), (sum(e["name"] == name for e in events), total - exposed))

    def test_names(self):
        trace = loaded("names", [x(name, 1, 0, 1) for name in (
            "all_reduce", "AllGather", "reduce-scatter.3", "send", "recv-done", "BroadcastTo", "resend",
            "conv")])
        found = [name for name, talks in zip(trace.names, communication.communicates(trace)) if talks]
        self.assertEqual(sorted(found), ["AllGather", "all_reduce", "recv-done", "reduce-scatter.3", "send"])


class Sequences(unittest.TestCase):
    def brute(self, lanes):
        """Rows as sequences.py says them, every sequence and every place tried each time."""
        stream, used, found = [], set(), []
        for own in lanes:
            stream += [*own, (None, 0)]
        while True:
            best = None
            for length in range(2, sequences.LONGEST + 1):
                for first in range(len(stream) - length + 1):
                    names = [name for name, _ in stream[first:first + length]]
                    if None in names or used & set(range(first, first + length)):
                        continue
                    places, last = [], 0
                    for n in range(len(stream) - length + 1):
                        if n >= last and [s[0] for s in stream[n:n + length]] == names \
                                and not used & set(range(n, n + length)):
                            places.append(n)
                            last = n + length
                    time = sum(ns for n in places for _, ns in stream[n:n + length])
                    key = (-time, length, places[0])
                    if len(places) > 1 and time and (best is None or key < best[0]):
                        best = key, names, places
            if best is None:
                return found
            (time, length, _), names, places = best
            found.append((" > ".join(names), length, len(places), -time))
            used |= {k for n in places for k in range(n, n + length)}

    def test_random(self):
        for seed in SEEDS:
            draw, events, lanes = random.Random(seed), [], []
            for tid in (1, 2):
                at, own = 0, []
                for n in range(draw.randrange(4, 14)):
                    name, ns = draw.choice("abc"), draw.randrange(1, 9)
                    events.append(x(name, tid, at, at + ns, kind="operator", operator_index=n))
                    own.append((name, ns))
                    at += ns + 1
                lanes.append(own)
            [table] = sequences.analyse(Facts(loaded("sequences", events)))
            self.assertEqual([row[:4] for row in table.rows], self.brute(lanes))
            for row in table.rows:
                self.assertEqual(row[5], row[2] * (row[1] - 1))            # 1 ns between operators

    def test_planted(self):
        """A network of five operators, thirty times; what comes between them is in no sequence."""
        network, events, at = ("conv", "pad", "conv", "pool", "fc"), [], 0
        for n in range(30):
            for name in (*network, f"other {n}"):
                events.append(x(name, 1, at, at + 10, kind="operator", operator_index=0))
                at += 10
        [table] = sequences.analyse(Facts(loaded("network", events)))
        self.assertEqual([row[:4] for row in table.rows], [(" > ".join(network), 5, 30, 1500)])


class OverTime(unittest.TestCase):
    def test_queue_length(self):
        """Each ns of each slice, by the submissions that are open in it."""
        for seed in SEEDS:
            facts = Facts(small(seed))
            jobs = [(s, end) for s, end in zip(facts.jobs.s, facts.jobs.end) if s >= 0]
            length = next(over_time.analyse(facts))
            rows = [row for row in length.rows if row[0] == "(all)"]
            self.assertEqual(len(rows), over_time.SLICES)
            self.assertEqual((rows[0][1], rows[-1][1] + rows[-1][2]),
                             (facts.window.start_ns, facts.window.end_ns))
            for _, start, ns, mean, most in rows:
                depths = [sum(a <= t < b for a, b in jobs) for t in range(start, start + ns)]
                self.assertEqual((mean, most), (Fraction(sum(depths), ns), max(depths)))

    def test_bandwidth(self):
        for seed in SEEDS:
            draw, events, at, whole = random.Random(seed), [lane(10, "dev PE 0")], 0, []
            for n in range(draw.randrange(1, 30)):
                at += draw.randrange(30)
                end, count = at + draw.randrange(0, 90), draw.randrange(0, 5000)
                events.append(x("Load", 10, at, end, stamp="device", pe_index=0, execution_index=n,
                                bytes=count))
                whole.append((at, end, count if end > at else 0))
                at = end
            facts = Facts(loaded("bandwidth", events, devices=[{"name": "dev", "pe_count": 1}]))
            rows = list(over_time.analyse(facts))[1].rows
            self.assertEqual(sum(row[3] for row in rows), sum(count for *_, count in whole))
            for _, start, ns, moved, rate in rows:
                self.assertEqual(rate, Fraction(moved * 10**9, ns))
                parts = ((count, max(0, min(b, start + ns) - max(a, start)), b - a) for a, b, count in whole)
                self.assertEqual(moved, sum(Fraction(count * part, dur) for count, part, dur in parts if dur))

    def test_viewers_get_them(self):
        path = scratch() / "annotated.json"
        trace = small(1)
        helpers.npuprof_py("report", trace.path, "--annotate", path)
        values = [e["args"]["value"] for e in json.loads(path.read_text())["traceEvents"]
                  if e["ph"] == "C" and e["name"] == "in flight"]
        self.assertEqual((len(values), values[-1]), (2 * len(Facts(trace).jobs.s) or len(values), 0))


class Outputs(unittest.TestCase):
    def test_all_outputs(self):
        """Text, CSV and JSON have each of these tables."""
        trace, names = small(4), ("call_paths", "shapes", "communication", "collectives", "sequences",
                                  "queue_length", "bandwidth")
        asked = [word for name in names for word in ("--table", name)]
        text = helpers.npuprof_py("report", trace.path, *asked).stdout
        for title in ("Spans by call path", "Operators by name and shape", "Communication of the devices",
                      "Collective operations", "Operators that follow", "Submissions in flight over time",
                      "Bytes that devices moved"):
            self.assertIn(title, text)
        helpers.npuprof_py("report", trace.path, *asked, "--json", scratch() / "o.json", "--csv-dir",
                           scratch() / "o")
        self.assertEqual(set(json.loads((scratch() / "o.json").read_text())["tables"]), set(names))
        self.assertEqual({path.stem for path in (scratch() / "o").iterdir()}, set(names))

    def test_flame_graph_of_the_page(self):
        """Its frames are the table's paths; a frame is as wide as its own time and the frames inside."""
        for seed in SEEDS[:8]:
            trace = small(seed)
            from npuprof.report.page.flame import flame
            frames, paths = flame(trace), []
            for name, above, *_ in frames:
                paths.append(f"{paths[above]};{name}" if above >= 0 else name)
            table = {row[0]: row[2:5] for row in call_paths_table(trace).rows}
            inside = Counter()
            for n, (_, above, width, total, own, count) in reversed(list(enumerate(frames))):
                if count:
                    self.assertEqual((count, total, own), table[paths[n]])
                inside[above] += width
                self.assertEqual(width, inside[n] + max(0, own))


if __name__ == "__main__":
    unittest.main()
