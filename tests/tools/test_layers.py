# the layer of each command of a command stream, by metadata or --layers: in exports and in Perfetto's format
# SPDX-License-Identifier: MIT
import json
import sqlite3
import unittest

import helpers
import npuprof
from helpers import scratch

TABLE = "# by the compiler\n0 conv1\n2 conv2;relu\n[decoder]\n1 attention\n"
# Of the commands 0 to 3: in an execution named net, and in one named decoder.
WANTED = {"net": ["conv1", "conv1", "conv2;relu", "conv2;relu"],
          "decoder": [None, "attention", "attention", "attention"]}


def trace(name, table=None):
    """A trace of both executions, each with a command that has a layer of its own."""
    events, at = [], 0
    for number, program in enumerate(WANTED):
        args = {"stamp": "device", "pe_index": 0, "execution_index": number}
        events.append((program, at, 60, args))
        events += [(f"{program} {n}", at + 10 * n, 8, args | {"instruction_index": n}) for n in range(4)]
        events.append((f"{program} own", at + 50, 8, args | {"instruction_index": 9, "layer": "mine"}))
        at += 100
    about = {"version": "1.0.0", "start_unix_ns": 1, "threads": 1, "pid": 7}
    if table:
        about["user"] = {"layers": table}
    events = [{"ph": "X", "name": text, "cat": "NPU", "pid": 7, "tid": 2, "ts": ts, "dur": dur, "args": args}
              for text, ts, dur, args in events]
    events.append({"ph": "M", "name": "thread_name", "pid": 7, "tid": 2, "args": {"name": "npu0 PE 0"}})
    events.append({"ph": "X", "name": "host", "pid": 7, "tid": 1, "ts": 0, "dur": 5,
                   "args": {"instruction_index": 0}})
    (scratch() / name).write_text(json.dumps({"traceEvents": events, "metadata": {"npuprof": about}}))
    return scratch() / name


class Layer(unittest.TestCase):
    def check(self, layer_of):
        for program, layers in WANTED.items():
            self.assertEqual([layer_of.get(f"{program} {n}") for n in range(4)], layers)
            self.assertEqual(layer_of[f"{program} own"], "mine")
        for name in ("net", "decoder", "host"):
            self.assertNotIn(name, layer_of)

    def exported(self, *words):
        helpers.npuprof_py("export", *words, "--sqlite", "layers.db", said="")
        rows = sqlite3.connect(scratch() / "layers.db").execute(
            "SELECT name_text, a.text FROM span s JOIN args a ON a.span = s.id JOIN strings k "
            "ON k.id = a.key WHERE k.text = 'layer'")
        return dict(rows.fetchall())

    def test_metadata(self):
        self.check(self.exported(trace("told.json", TABLE)))

    def test_file(self):
        """The file counts, whatever the trace says."""
        (scratch() / "net.layers").write_text(TABLE)
        self.check(self.exported(trace("told.json", "0 wrong"), "--layers", "net.layers"))
        read = npuprof.load(trace("plain.json"), layers=scratch() / "net.layers")
        self.check({read.text(i): read.args(i)["layer"] for i in range(len(read)) if "layer" in read.args(i)})
        self.assertEqual(self.exported("plain.json"), {"net own": "mine", "decoder own": "mine"})

    def test_perfetto(self):
        (scratch() / "net.layers").write_text(TABLE)
        trace("plain.json")
        helpers.npuprof_py("convert", "plain.json", "-o", "plain.pftrace", "--layers", "net.layers")
        self.assertIn(b"attention", (scratch() / "plain.pftrace").read_bytes())
        said = helpers.refused("convert", "plain.json", "-o", "plain.csv", "--layers", "net.layers")
        self.assertIn("write .pftrace or", said)

    def test_refused(self):
        trace("plain.json")
        for text, says in (("conv1\n", "bad:1: .conv1.: a line is"), ("[]", "bad:1: "),
                           ("0 a\n0 b\n", "bad:2: command 0 comes after command 0"),
                           ("5 a\n\n4 b\n", "bad:3: command 4 comes after command 5")):
            (scratch() / "bad").write_text(text)
            said = helpers.refused("export", "plain.json", "--layers", "bad", "--sqlite", "layers.db")
            self.assertRegex(said, says)
        said = helpers.refused("export", trace("told.json", "x"), "--sqlite", "layers.db")
        self.assertIn("told.json: metadata layers:1: ", said)
        said = helpers.refused("export", "plain.json", "--layers", "none", "--sqlite", "layers.db")
        self.assertIn("cannot be read", said)


if __name__ == "__main__":
    unittest.main()
