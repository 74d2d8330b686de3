# test: time=60 - what moves data, what is a device and which lanes are equals follows from what the trace
# says
# SPDX-License-Identifier: MIT
import json
import unittest

import helpers
import planted
from helpers import scratch

RENAMED = {"Load": "DmaIn", "Store": "DmaOut"}


def report(text, *options):
    """Tables and verdict of a trace."""
    path, out = scratch() / "trace.json", scratch() / "out.json"
    path.write_text(text, encoding="utf-8")
    helpers.npuprof_py("report", path, "--json", out, *options, said="")
    found = json.loads(out.read_text(encoding="utf-8"))
    del found["trace"]
    return found


def both(text, *options):
    """That, and what faster loads bring, as text."""
    return json.dumps([report(text, *options), report(text, "--what-if", "load:MatMul=0.5", *options)])


class Transfers(unittest.TestCase):
    """Transfers of other names than Load and Store."""

    @classmethod
    def setUpClass(cls):
        case = planted.case("P16")
        case.write(scratch() / "case.json")
        cls.text, cls.toml = (scratch() / "case.json").read_text(encoding="utf-8"), case.toml
        cls.expected = both(cls.text)

    def renamed(self, text):
        for name, other in RENAMED.items():
            text = text.replace(f'"{name}"', f'"{other}"')
        return text

    def same(self, text, *options):
        found = both(text, *options)
        for name, other in RENAMED.items():
            found = found.replace(other, name)
        self.assertEqual(found, self.expected)

    def test_the_trace_says_it(self):
        document = json.loads(self.renamed(self.text))
        document["metadata"]["npuprof"]["user"] = {f"npuprof.role.{name}": "dma" for name in RENAMED.values()}
        self.same(json.dumps(document))

    def test_the_description_says_it(self):
        (scratch() / "device.toml").write_text(self.renamed(self.toml), encoding="utf-8")
        self.expected = both(self.text, "--device", scratch() / "device.toml")
        self.same(self.renamed(self.text), "--device", scratch() / "device.toml")

    def test_nobody_says_it(self):
        """Then they are operators."""
        operators = report(self.renamed(self.text))["tables"]["operators"]["rows"]
        self.assertLessEqual(set(RENAMED.values()), {row[0] for row in operators})


class Lanes(unittest.TestCase):
    """Lanes of one device that bear names: an operator's lane, and threads and a matrix engine inside it."""

    NAMES = "op", "HVX 0", "HVX 1", "matrix"

    def document(self, names=NAMES, roles=None, device="npu0"):
        """HVX 0 works 9 times as long as matrix. Only the first lane's jobs are submitted."""
        events = [{"ph": "M", "name": "thread_name", "pid": 1, "tid": 1, "ts": 0, "args": {"name": "main"}}]
        events += [{"ph": "M", "name": "thread_name", "pid": 1, "tid": 2 + n, "ts": 0,
                    "args": {"name": f"npu0 {name}"}} for n, name in enumerate(names)]
        for k in range(40):
            begin = 1000 * k
            events += [{"ph": "X", "name": "submit", "cat": "c", "pid": 1, "tid": 1, "ts": begin, "dur": 5},
                       {"ph": "s", "name": "submit", "cat": "submit", "pid": 1, "tid": 1, "ts": begin,
                        "id": k + 1},
                       {"ph": "f", "name": "submit", "cat": "submit", "pid": 1, "tid": 2, "ts": begin + 10,
                        "id": k + 1, "bp": "e"}]
            for n, (since, us) in enumerate(((10, 970), (20, 900), (20, 900), (30, 100))[:len(names)]):
                events.append({"ph": "X", "name": "conv" if n else "Execution", "cat": "c", "pid": 1,
                               "tid": 2 + n, "ts": begin + since, "dur": us,
                               "args": {"stamp": "device", "pe_index": n, "execution_index": k}})
        about = {"version": "0.1.0", "start_unix_ns": 10**18, "pid": 1, "threads": 1,
                 "devices": [{"name": device, "pe_count": len(names)}],
                 "user": {f"npuprof.role.{name}": role for name, role in (roles or {}).items()}}
        return json.dumps({"traceEvents": events, "metadata": {"npuprof": about}})

    def rows(self, *arguments, **more):
        return report(self.document(*arguments, **more))

    def test_one_device(self):
        """By the metadata, whatever lanes are called."""
        for device in ("npu0", "other"):
            found = self.rows(device=device)
            self.assertEqual({row[0] for row in found["tables"]["pe_busy"]["rows"]}, {device})

    def test_only_equals_are_compared(self):
        """HVX with HVX; the lane around them is none of them, and matrix is alone."""
        rows = {row[0]: row for row in self.rows()["tables"]["pe_balance"]["rows"]}
        self.assertEqual({name: row[1:3] for name, row in rows.items()},
                         {"npu0 HVX": [2, 2], "npu0 matrix": [1, 1]})
        self.assertEqual(rows["npu0 HVX"][6], 0)

    def test_said_roles(self):
        """What is said goes before names: these are equals, and stages have none."""
        engines = dict.fromkeys(self.NAMES[1:], "engine")
        rows = self.rows(roles=engines)["tables"]["pe_balance"]["rows"]
        self.assertEqual([row[:3] for row in rows], [["npu0 engine", 3, 3]])
        self.assertGreater(rows[0][6], 30)
        self.assertEqual(self.rows(roles=dict.fromkeys(self.NAMES, "stage"))["tables"]["pe_balance"]["rows"],
                         [])

    def test_chance_is_no_container(self):
        """A lane that is busy all the time encloses what others do, and is none of it."""
        document = json.loads(self.document(("PE 0", "PE 1")))
        for event in document["traceEvents"]:
            if event["ph"] == "X" and event["tid"] == 2:
                event["dur"] = 1000
            elif event["ph"] == "X" and event["tid"] == 3:
                event.update(ts=event["ts"] + 37 * (event["ts"] // 1000) % 900, dur=1)
        rows = report(json.dumps(document))["tables"]["pe_balance"]["rows"]
        self.assertEqual([row[:3] for row in rows], [["npu0", 2, 2]])


if __name__ == "__main__":
    unittest.main()
