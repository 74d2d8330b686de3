# test: - npuprof.py report --vela: the layers of Vela's CSV beside the device spans of their names
# SPDX-License-Identifier: MIT
import csv
import json
import unittest

import helpers
from helpers import run, scratch

HEAD = ("TFLite_operator,NNG Operator,SRAM Usage,Peak%,Op Cycles,Network%,NPU,SRAM AC,DRAM AC,OnFlash AC,"
        "OffFlash AC,MAC Count,Network%,Util%,Name").split(",")
LONG = "net/" + "block_with_a_long_name/" * 4 + "Conv2D"


def line(operator, cycles, name):
    return [operator, "Npu", 1, 1.0, cycles, 1.0, cycles, 0, 0.0, 0, 0, 9, 1.0, 1.0, name]


LAYERS = [line("CONV_2D", "2000.0", "a/Relu;a/Conv2D"), line("ADD", "500", "add"),
          line("CONV_2D", 1500, LONG), line("ADD", 100, "add"), line("MAX_POOL_2D", "12.5", "pool")]


def write_csv(*rows):
    path = scratch() / "net_per-layer.csv"
    with open(path, "w", newline="") as file:
        csv.writer(file).writerows(rows)
    return path


def write_trace(*spans):
    """spans: (name, ticks, placed by the host, in warm-up)."""
    events, at = [], 1000
    for name, ticks, by_host, warm_up in spans:
        args = {"stamp": "sampled", "pe_index": 0, "error_ns": 1, "stream": 0}
        args |= {"ticks": ticks} if by_host else {"start_ticks": at, "end_ticks": at + ticks}
        if warm_up:
            args["warm_up"] = True
        events.append({"ph": "X", "name": name, "cat": "NPU", "pid": 1, "tid": 9, "ts": at / 1000,
                       "dur": ticks / 1000, "args": args})
        at += ticks + 50
    path = scratch() / "vela.json"
    path.write_text(json.dumps({"traceEvents": events, "displayTimeUnit": "ns",
                                "metadata": {"npuprof": {"version": "0.1.0", "start_unix_ns": 0}}}))
    return path


class Vela(unittest.TestCase):
    def rows(self, trace, layers):
        out = scratch() / "vela_out.json"
        helpers.npuprof_py("report", trace, "--vela", layers, "--json", out, said="")
        return json.loads(out.read_text())["tables"]["vela"]

    def test_layers(self):
        """By the whole name, by a part of it, by a name that was cut; two lines of one name are one layer;
        warm-up does not count; what is no layer is a run of all."""
        trace = write_trace(("a/Conv2D", 2500, False, False), ("a/Relu;a/Conv2D", 1500, True, False),
                            ("add", 900, False, False), ("add", 9000, False, True),
                            (LONG[:63], 1400, False, False), ("network", 6000, True, False),
                            ("network", 5000, False, False))
        table = self.rows(trace, write_csv(HEAD, *LAYERS))
        rows = {row[0]: row[1:] for row in table["rows"]}
        self.assertEqual([row[0] for row in table["rows"]],
                         ["a/Relu;a/Conv2D", "add", LONG, "pool", "network"])
        self.assertEqual(rows["a/Relu;a/Conv2D"], ["CONV_2D", 2000, 48.63, 2, 2000, 1, 0])
        self.assertEqual(rows["add"], ["ADD", 600, 14.59, 1, 900, 1.5, 300])
        self.assertEqual(rows[LONG][3:6], [1, 1400, 0.933])
        self.assertEqual(rows["pool"][1:], [12.5, 0.3, 0, None, None, None])
        self.assertEqual(rows["network"][:1] + rows["network"][3:5], ["(all layers)", 2, 5500])
        self.assertEqual(rows["network"][1], 4112.5)

    def test_text(self):
        trace = write_trace(("add", 900, False, False))
        done = helpers.npuprof_py("report", trace, "--vela", write_csv(HEAD, *LAYERS), said="")
        self.assertIn("estimated_ticks", done.stdout)
        self.assertIn("1 of 4 layers have device spans of their name", done.stdout)

    def test_subgraphs(self):
        """The head comes again before each subgraph; no run is then compared with all of them."""
        trace = write_trace(("run", 900, False, False))
        table = self.rows(trace, write_csv(HEAD, *LAYERS[:2], HEAD, *LAYERS[2:]))
        self.assertEqual(table["rows"][-1][:3], ["run", "(all layers)", None])
        self.assertEqual(len(table["rows"]), 5)

    def test_ambiguous(self):
        """A part that two layers have means neither."""
        trace = write_trace(("shared", 900, False, False))
        table = self.rows(trace, write_csv(HEAD, line("A", 1, "x;shared"), line("B", 2, "y;shared")))
        self.assertEqual([row[4] for row in table["rows"]], [0, 0, 1])

    def test_refused(self):
        trace = write_trace(("add", 900, False, False))
        cut = [row[:-1] for row in (HEAD, *LAYERS)]
        bad = [line("ADD", "many", "x")]
        for rows, sentence in (([], "1: no layer in it"), (cut, "1: no column 'Name'"),
                               ([HEAD], "1: no layer in it"),
                               ([HEAD, *LAYERS[:1], *bad], "3: Op Cycles is 'many'"),
                               ([HEAD, line("ADD", "-5", "x")], "2: Op Cycles is '-5'"),
                               ([HEAD, line("ADD", "nan", "x")], "2: Op Cycles is 'nan'"),
                               ([HEAD, line("ADD", "9" * 30, "x")], "2: Op Cycles is"),
                               ([HEAD, LAYERS[0][:4]], "2: 4 cells, the head has 15")):
            path = write_csv(*rows)
            self.assertIn(f"{path}:{sentence}", helpers.refused("report", trace, "--vela", path))
        path.write_bytes(b'"a,b\n\xff\x00')
        self.assertIn("no CSV", helpers.refused("report", trace, "--vela", path))
        self.assertIn("cannot be read", helpers.refused("report", trace, "--vela", scratch() / "none.csv"))
