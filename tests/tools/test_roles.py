# roles: what moves data, what is a device and which lanes are equals follows from what the trace says
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
