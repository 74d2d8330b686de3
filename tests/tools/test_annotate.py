# report --annotate: the verdict as tracks of the trace, beside everything that was there
# SPDX-License-Identifier: MIT
import collections
import json
import unittest
from decimal import Decimal

import helpers
from helpers import scratch
import npuprof
import planted
from npuprof.analysis.facts import Facts



def ns(value):
    return int(value * 1000)


class Annotated(unittest.TestCase):
    def annotated(self, case, source=None):
        """(events that were there, tracks that were added by name: their spans, the path of the trace)"""
        path = source or planted.case(case).write(scratch() / f"{case}.json")
        out = scratch() / f"{case}-annotated.json"
        helpers.npuprof_py("report", path, "--annotate", out, printed="", said="")
        before = json.loads(path.read_text(), parse_float=Decimal)
        before = before if isinstance(before, list) else before["traceEvents"]
        after = json.loads(out.read_text(), parse_float=Decimal)["traceEvents"]
        self.assertEqual(after[:len(before)], before)
        added, names, tracks = after[len(before):], {}, collections.defaultdict(list)
        self.assertEqual(len({e["pid"] for e in added}), 1)
        self.assertNotIn(added[0]["pid"], {e.get("pid") for e in before})
        for e in added:
            if e["ph"] == "M" and e["name"] == "thread_name":
                names[e["tid"]] = e["args"]["name"]
            elif e["ph"] == "X":
                tracks[names[e["tid"]]].append((e["name"], ns(e["ts"]), ns(e["dur"]), e["args"]))
        for spans in tracks.values():
            for (_, start, dur, _), (_, after_it, _, _) in zip(spans, spans[1:]):
                self.assertLessEqual(start + dur, after_it)
        helpers.npuprof_py("check", out)
        return tracks, path

    def test_findings_idle_and_path(self):
        """P2: the host is late by `tokenize`."""
        tracks, path = self.annotated("P2")
        finding = tracks["1 Keep the device at work while the host is in tokenize"]
        trace = npuprof.load(path)
        own = {(trace.start[i], trace.dur[i]) for i in range(len(trace)) if trace.text(i) == "tokenize"}
        self.assertTrue({(start, dur) for _, start, dur, _ in finding} <= own)
        self.assertIn("tokenize", finding[0][3]["advice"])
        # The idle times by class and span are those of the table.
        facts, sums = Facts(trace), collections.Counter()
        [idle] = [spans for name, spans in tracks.items() if name.startswith("idle: ")]
        for name, _, dur, _ in idle:
            sums[name] += dur
        table = {f"{key[2]} {key[3]}".rstrip(): entry.total for key, entry in facts.idle.entries.items()
                 if key[1] == -1}
        self.assertEqual(dict(sums), table)
        path_ns = sum(dur for _, _, dur, _ in tracks["critical path"])
        self.assertAlmostEqual(path_ns, facts.window.length_ns, delta=facts.window.length_ns // 50)

    def test_another_layout_and_what_is_refused(self):
        plain = scratch() / "plain.json"
        source = planted.case("P2").write(scratch() / "P2.json")
        plain.write_text(json.dumps(json.loads(source.read_text())))
        tracks, _ = self.annotated("P2", plain)
        self.assertIn("critical path", tracks)
        events = json.loads(plain.read_text())["traceEvents"]
        helpers.npuprof_py("report", plain, "--annotate", plain, code=2)
        plain.write_text(json.dumps(events))
        self.annotated("P2", plain)
        plain.write_text(json.dumps(events)[:-1])
        self.assertIn("cut ", helpers.refused("report", plain, "--annotate", scratch() / "cut.json"))

