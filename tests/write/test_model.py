# random spans under a clock of the test's own: every number, name, argument, parent and id of the JSON and
# the CSV by another way
# SPDX-License-Identifier: MIT
import csv
import decimal
import json
import unittest

import helpers
from helpers import scratch

FIRST = 1 << 41          # the clock when the trace began


class Clock:
    """Ticks as ns since the trace began: the multiplier has as many bits as fit into 63, and ns are cut off
    towards the beginning."""

    def __init__(self, hz):
        self.shift = 0
        while self.shift < 62 and (2 << self.shift) * 10**9 // hz < 1 << 63:
            self.shift += 1
        self.multiplier = (10**9 << self.shift) // hz

    def ns(self, ticks):
        ns = abs(ticks - FIRST) * self.multiplier >> self.shift
        return ns if ticks >= FIRST else -ns


class Span:
    def __init__(self, line):
        thread, start, end, self.kind, name, category, args = line.split(" ", 6)
        self.thread, self.start, self.end = int(thread), int(start), int(end)
        self.name, self.category = (bytes.fromhex(text.strip("-")).decode() for text in (name, category))
        self.args = json.loads(args)
        self.unfinished = self.end == 2**64 - 1


def nest(spans):
    """Parent and root of each span of a thread, by the ticks alone."""
    stack = []
    for span in spans:
        while stack and stack[-1].end <= span.start and not stack[-1].start == stack[-1].end == span.start:
            stack.pop()
        span.parent = stack[-1] if stack else None
        span.root = span if span.kind == "record" or not stack else stack[-1].root
        stack.append(span)


def members(pairs):
    found = dict(pairs)
    assert len(found) == len(pairs), f"a key comes twice: {pairs}"
    return found


class Model(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.program = helpers.build("model.c", "model")

    def compare(self, seed, threads, count, step, hz):
        helpers.run([self.program, seed, threads, count, step], code=0, said="",
                    env=helpers.environment(MODEL_HZ=str(hz)))
        clock, by_thread = Clock(hz), {}
        for line in (scratch() / "truth.txt").read_text().splitlines():
            span = Span(line)
            by_thread.setdefault(span.thread, []).append(span)
        last = max(max(s.start if s.unfinished else s.end for s in spans) for spans in by_thread.values())
        # A span that begins with the last stamp of all is a microsecond long: viewers show none without
        # length.
        if any(s.unfinished and s.start == last for spans in by_thread.values() for s in spans):
            last += next(n for n in range(1, 10**4) if clock.ns(FIRST + n) >= 1000)
        for spans in by_thread.values():
            for span in spans:
                span.end = last if span.unfinished else max(span.end, span.start)
                span.start_ns, span.end_ns = clock.ns(span.start), clock.ns(span.end)
            nest(spans)
        # What lies before the trace's beginning moves that: no time is negative.
        early = min(0, min(span.start_ns for spans in by_thread.values() for span in spans))
        for spans in by_thread.values():
            for span in spans:
                span.start_ns, span.end_ns = span.start_ns - early, span.end_ns - early
        for way in "live", "loaded":
            with self.subTest(seed=seed, threads=threads, step=step, hz=hz, way=way):
                ids = self.compare_json(way, by_thread, step)
                self.compare_csv(way, by_thread, ids)

    def compare_json(self, way, by_thread, step):
        text = (scratch() / f"{way}.json").read_text()
        trace = json.loads(text, parse_float=decimal.Decimal, object_pairs_hook=members)
        self.base = trace["metadata"]["npuprof"]["start_unix_ns"]
        tids, spans = {}, {}
        for event in trace["traceEvents"]:
            if event["name"] == "thread_name":
                tids[event["tid"]] = event["args"]["name"].removesuffix(" (overlap)")
            if event["ph"] == "X":
                spans.setdefault(int(tids[event["tid"]][1:]), []).append(event)
        self.names = {tid: int(name[1:]) for tid, name in tids.items()}
        self.assertEqual(sorted(spans), sorted(by_thread))
        ids = {}
        for thread, wanted in by_thread.items():
            self.assertEqual(len(spans[thread]), len(wanted))
            for event, span in zip(spans[thread], wanted):
                found = event.get("args", {})
                if span.kind != "span":
                    ids[span] = found.pop("trace_id"), found.pop("span_id"), found.pop("parent_span_id", None)
                    self.assertEqual(found.pop("kind"), span.kind)
                self.assertEqual((event["name"], event.get("cat", ""), event["ts"], event["dur"],
                                  found.pop("unfinished", False), found),
                                 (span.name, span.category, decimal.Decimal(span.start_ns) / 1000,
                                  decimal.Decimal(span.end_ns - span.start_ns) / 1000, span.unfinished,
                                  span.args))
                self.assertEqual((event["ts"].as_tuple().exponent, event["dur"].as_tuple().exponent),
                                 (-3, -3))
            if step == "up":       # nothing overlaps, so all is on the thread's own track
                self.assertEqual(len({event["tid"] for event in spans[thread]}), 1)
        return ids

    def compare_csv(self, way, by_thread, json_ids):
        rows, traces, span_ids = {}, {}, set()
        with open(scratch() / f"{way}.csv", newline="", encoding="utf-8") as file:
            for row in csv.DictReader(file):
                rows.setdefault(self.names[int(row["thread.id"])], []).append(row)
        for thread, wanted in by_thread.items():
            self.assertEqual(len(rows[thread]), len(wanted))
            for row, span in zip(rows[thread], wanted):
                span.id = row["span_id"]
                span_ids.add(span.id)
                self.assertEqual((row["name"], row["cat"], int(row["start"]), int(row["end"]),
                                  int(row["dur"])),
                                 (span.name, span.category, self.base + span.start_ns,
                                  self.base + span.end_ns, span.end_ns - span.start_ns))
                self.assertEqual((row["pe_index"], row["operator_index"], row["dram_base"],
                                  row["execution_index"], row["instruction_index"]),
                                 (str(span.args.get("pe_index", "")),
                                  str(span.args.get("operator_index", "")),
                                  str(span.args.get("dram_base", "")), "", ""))
                self.assertEqual(row["parent_span_id"], span.parent.id if span.parent else "")
                self.assertEqual(row["trace_id"], traces.setdefault(span.root, row["trace_id"]))
                if span in json_ids:
                    self.assertEqual(json_ids[span][:2], (row["trace_id"], row["span_id"]))
        self.assertEqual(len(span_ids), sum(map(len, by_thread.values())))
        self.assertEqual(len(set(traces.values())), len(traces))

    @helpers.thorough
    def test_forward(self):
        for seed in range(3):
            self.compare(seed, 3, 2500, "up", 10**9)

    def test_other_rates(self):
        for hz in 1_000_003, 24_000_000, 2_999_999_999:
            self.compare(hz % 97, 2, 1500, "up", hz)

    @helpers.thorough
    def test_steps_back(self):
        for seed in range(3):
            self.compare(seed, 3, 2000, "back", 10**9)
