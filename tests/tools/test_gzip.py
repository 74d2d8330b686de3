# files packed with gzip: every tool reads them and writes them; the library names the tool
# SPDX-License-Identifier: MIT
import gzip
import unittest

import helpers
import pftrace
from helpers import run, scratch
from npuprof.convert.forms import ENDINGS



class Gzip(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        helpers.tool("npuprof-convert")
        program = helpers.build("images.c", "images")
        run([program, "all", scratch() / "t.npuprof"], code=0, env=helpers.environment())
        cls.call("convert", "t.npuprof", "-o", "t.json")
        for name in ("t.json", "t.npuprof"):
            (scratch() / f"{name}.gz").write_bytes(gzip.compress((scratch() / name).read_bytes()))

    @staticmethod
    def call(*words, **options):
        return helpers.npuprof_py(*words, **options)

    def test_in(self):
        for words in (["report", "--table", "names"], ["check"]):
            plain, packed = (self.call(words[0], name, *words[1:]) for name in ("t.json", "t.json.gz"))
            self.assertEqual(plain.returncode, 0, plain.stderr)
            self.assertEqual(packed.stdout.replace(".json.gz", ".json"), plain.stdout)
        for source in ("t.json.gz", "t.npuprof.gz"):
            self.call("convert", source, "-o", "again.csv")
            self.call("convert", source.removesuffix(".gz"), "-o", "plain.csv")
            self.assertEqual((scratch() / "again.csv").read_bytes(), (scratch() / "plain.csv").read_bytes())

    @helpers.thorough
    def test_out(self):
        for source in ("t.json", "t.npuprof", "t.npuprof.gz"):
            for form in (ending[1:] for ending in ENDINGS if ending not in (".json", ".npuprof")):
                for name in (f"out.{form}", f"out.{form}.gz"):
                    self.call("convert", source, "-o", name)
                packed = (scratch() / f"out.{form}.gz").read_bytes()
                plain = (scratch() / f"out.{form}").read_bytes()
                self.assertEqual(gzip.decompress(packed), plain, (source, form))
                self.call("convert", source, "-o", f"out.{form}.gz")
                self.assertEqual((scratch() / f"out.{form}.gz").read_bytes(), packed)

    @helpers.thorough
    def test_merge(self):
        for out in ("both.json.gz", "both.pftrace", "both.pftrace.gz"):
            self.call("merge", "t.json.gz", "t.npuprof", "-o", out, "--label", "a", "--label", "b")
        merged = pftrace.read((scratch() / "both.pftrace").read_bytes())
        alone = pftrace.read(gzip.decompress((scratch() / "both.pftrace.gz").read_bytes()))
        self.assertEqual(merged.errors, [])
        self.assertEqual(len(merged.slices), len(alone.slices))
        spans = helpers.strict_json(gzip.decompress((scratch() / "both.json.gz").read_bytes()))
        self.assertEqual(len(merged.slices), len(helpers.events(spans, "X")))
        self.assertEqual(len(merged.arrows), len(helpers.events(spans, "f")))

    def test_damaged(self):
        whole = (scratch() / "t.json.gz").read_bytes()
        for data in (whole[:-20], whole[:100], whole[:50] + b"\xff" * 20 + whole[70:], whole[:10]):
            (scratch() / "bad.json.gz").write_bytes(data)
            done = self.call("report", "bad.json.gz", code=2)
            self.assertIn("bad.json.gz: ", done.stderr)
            self.assertEqual(done.stderr.count("\n"), 1, done.stderr)

    def test_the_library_names_the_tool(self):
        source = scratch() / "dumps.c"
        source.write_text('#include "npuprof.h"\n'
                          'int main(int argc, char **argv) {\n'
                          'npuprof_start(1); const npuprof_result r = npuprof_dump(argv[argc - 1]);\n'
                          'puts(npuprof_result_string(r)); return r != NPUPROF_OK; }\n')
        program = helpers.build(source, "dumps")
        for name in ("dump.json.gz", "dump.pftrace"):
            done = run([program, name], code=1, env=helpers.environment())
            self.assertIn("npuprof.py convert", done.stdout)
            self.assertFalse((scratch() / name).exists())
        self.assertEqual(run([program, "ok.npuprof"], env=helpers.environment(), cwd=scratch()).returncode, 0)
