# npuprof-convert: formats, exit codes, and the sentence with the offset of the damage
# SPDX-License-Identifier: MIT
import csv
import os
import re
import struct
import subprocess
import unittest

import helpers
from helpers import events, load, run, strict_json
from npuprof.base.metadata import sources

KINDS = ("all", "device", "wrapped", "open", "stream", "arena", "arena-open", "arena-wrapped", "arena-device",
         "arena-tiny", "empty")


class Convert(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        helpers.tool("npuprof-convert")
        cls.folder = helpers.scratch() / "convert"
        cls.folder.mkdir(exist_ok=True)
        program = helpers.build("images.c", "images")
        for kind in KINDS:
            done = run([program, kind, cls.folder / f"{kind}.npuprof"], env=helpers.environment())
            if done.returncode:
                raise AssertionError(f"{kind}: {done.stderr}")

    def image(self, kind):
        return (self.folder / f"{kind}.npuprof").read_bytes()

    def convert(self, data, *arguments):
        path = self.folder / "in.npuprof"
        path.write_bytes(data)
        return run([helpers.tool("npuprof-convert"), path, *arguments])

    def test_whole(self):
        for kind in KINDS:
            with self.subTest(kind=kind):
                done = self.convert(self.image(kind))
                self.assertEqual((done.returncode, done.stderr), (0, ""))
                names = {e["name"] for e in events(strict_json(done.stdout), "X")}
                if "device" in kind:
                    self.assertLessEqual({"layer", "conv"}, names)
                elif kind == "empty":
                    self.assertEqual(names, set())
                elif kind not in ("arena-tiny",):
                    self.assertLessEqual({"Inference", "Quantize", "kernel 0", "two", "in", "job", "copy",
                                          "open, too"}, names)
                self.check_marks(kind, strict_json(done.stdout))

    def check_marks(self, kind, trace):
        for name in ("open at the end", "open, too"):
            for span in events(trace, "X", name):
                self.assertEqual(span.get("args", {}).get("unfinished", False), "open" in kind, kind)

    def test_formats_agree(self):
        for kind in ("all", "arena-wrapped", "stream"):
            with self.subTest(kind=kind):
                for extension in ("json", "csv", "npuprof"):
                    out = self.folder / f"out.{extension}"
                    out.unlink(missing_ok=True)
                    self.assertEqual(self.convert(self.image(kind), "-o", out).returncode, 0)
                trace = load(self.folder / "out.json")
                with open(self.folder / "out.csv", newline="") as file:
                    rows = list(csv.DictReader(file))
                self.assertEqual(sorted(r["name"] for r in rows if r["span_id"]),
                                 sorted(e["name"] for e in events(trace, "X")))
                again = run([helpers.tool("npuprof-convert"), self.folder / "out.npuprof"], code=0, said="")

                def without_ids(t):
                    return [{k: v for k, v in e.items() if k != "id"} for e in t["traceEvents"]]
                self.assertEqual(without_ids(strict_json(again.stdout)), without_ids(trace))

    @helpers.thorough
    def test_file_that_shrinks_meanwhile(self):
        """The converter goes on; it is stopped in the middle by a pipe that is full."""
        program, path = helpers.build("closed.c", "closed"), self.folder / "shrinks.npuprof"
        for env in (dict(NPUPROF_OUTPUT_PATH=str(path)), dict(NPUPROF_ARENA_PATH=str(path))):
            path.unlink(missing_ok=True)
            run([program], env=helpers.environment(**env))
            process = subprocess.Popen([helpers.tool("npuprof-convert"), path], stdout=subprocess.PIPE,
                                       stderr=subprocess.PIPE, bufsize=0)
            begin = process.stdout.read(1)
            os.truncate(path, 4096)
            rest, said = process.communicate(timeout=300)
            self.assertEqual((process.returncode, said), (0, b""))
            self.assertEqual(len(events(strict_json((begin + rest).decode()), "X")), 8000)

    def test_twice_is_the_same(self):
        for kind in KINDS:
            self.assertEqual(self.convert(self.image(kind)).stdout, self.convert(self.image(kind)).stdout)

    def test_report(self):
        done = self.convert(self.image("device"), "--report")
        self.assertEqual(done.returncode, 0)
        self.assertIn("NPU Total", done.stdout)

    def test_sources(self):
        """--source: what is recorded at one place says which; all else is as before."""
        found = 0
        for kind in ("all", "device"):
            image = self.folder / f"{kind}.npuprof"
            plain, said, again = (self.folder / f"{name}.json" for name in ("plain", "said", "again"))
            helpers.npuprof_py("convert", image, "-o", plain)
            helpers.npuprof_py("convert", image, "--source", "-o", said, said="")
            helpers.npuprof_py("convert", said, "--source", "-o", again, said="")
            self.assertEqual(said.read_bytes(), again.read_bytes())
            before, after = load(plain), strict_json(said.read_text())
            places = sources(before["metadata"]["npuprof"])
            for old, new in zip(before["traceEvents"], after["traceEvents"], strict=True):
                of = places.get((old["name"], old.get("cat", "")), ())
                is_one = old["ph"] in "Xi" and "derived" not in old and len(of) == 1
                args = new.get("args", {})
                if is_one and "source" not in old.get("args", {}):
                    self.assertEqual(args.pop("source"), next(iter(of)))
                    found += 1
                if not args and "args" not in old:
                    new.pop("args", None)
                self.assertEqual(new, old)
            self.assertEqual(before["metadata"], after["metadata"])
        self.assertGreater(found, 0)
        self.assertIn("--source is for .json", helpers.refused("convert", image, "--source", "-o", "t.csv"))

    def test_damaged(self):
        """Exit code 1, a sentence with the first place's offset and the number of places; the rest is in the
        output."""
        data = self.image("arena-wrapped")
        cut = data[:len(data) // 2]
        done = self.convert(cut)
        self.assertEqual(done.returncode, 1, done.stderr)
        self.assertRegex(done.stderr, r"^npuprof-convert: .*in\.npuprof: .* at byte \d+")
        self.assertEqual(len(done.stderr.splitlines()), 1)
        strict_json(done.stdout)
        self.assertLessEqual(int(re.search(r"at byte (\d+)", done.stderr).group(1)), len(cut))

    def test_not_an_image(self):
        """Exit code 2, a sentence, no output."""
        header = bytearray(self.image("all"))
        version = bytearray(header)
        struct.pack_into("=I", version, 12, 77)
        for data, words in ((b"", "byte 0"), (b"NPUPROF", "byte"), (b"x" * 5000, "byte 0"),
                            (header[:100], "byte"), (b'{"traceEvents":[' * 100, "byte 0"),
                            (version, "byte 12")):
            with self.subTest(data=bytes(data[:20])):
                out = self.folder / "none.json"
                out.write_text("older")
                done = self.convert(bytes(data), "-o", out)
                self.assertEqual((done.returncode, done.stdout), (2, ""))
                self.assertEqual(len(done.stderr.splitlines()), 1, done.stderr)
                self.assertIn(words, done.stderr)
                self.assertEqual(out.read_text(), "older")

    def test_files(self):
        for arguments, word in ((["/no/such.npuprof"], "no such file"), ([self.folder], ""), ([], "usage"),
                                (["-x"], "usage"),
                                ([self.folder / "all.npuprof", "-o", "/no/such/dir.json"], "no such file")):
            done = run([helpers.tool("npuprof-convert"), *arguments], code=2)
            self.assertIn(word, done.stderr.lower())
        with open("/dev/full", "w") as full:
            import subprocess
            done = subprocess.run([helpers.tool("npuprof-convert"), self.folder / "all.npuprof"], stdout=full,
                                  stderr=subprocess.PIPE, text=True)
        self.assertEqual(done.returncode, 2)
        self.assertIn("no space", done.stderr)

    def test_the_input_stays_as_it_is(self):
        path = self.folder / "all.npuprof"
        before = path.read_bytes()
        path.chmod(0o444)
        for extension in ("json", "csv", "npuprof"):
            self.assertEqual(run([helpers.tool("npuprof-convert"), path, "-o",
                                  self.folder / f"x.{extension}"]).returncode, 0)
        self.assertEqual(path.read_bytes(), before)
        path.chmod(0o644)
