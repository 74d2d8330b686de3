# SPDX-License-Identifier: MIT
"""Descriptions in TOML for the tests of the generator, and a folder to work in."""

import contextlib
import io
import pathlib
import tempfile
import unittest

import helpers
from helpers import ROOT
from npuprof import cli

DEVICE = ROOT / "tests" / "tools" / "data" / "device.toml"
GOOD = DEVICE.read_text()
# Small devices that go other ways than device.toml.
BIG_ENDIAN_MEMORY = """
[device]
name = "BigNpu"
bar_bytes = 0x100000000
endian = "big"
[[register]]
name = "TICKS"
offset = 0xfffffff8
width = 64
access = "ro"
[[register]]
name = "HEAD"
offset = 0
width = 32
access = "rw"
[[record]]
name = "DONE"
bytes = 8
  [[record.field]]
  name = "HIGH_BYTE"
  offset = 0
  width = 8
  [[record.field]]
  name = "START"
  offset = 0
  width = 32
  bits = "23:0"
  [[record.field]]
  name = "END"
  offset = 4
  width = 32
[roles.counter]
lo = "TICKS"
[roles.ring]
record = "DONE"
memory = true
count = 4
producer = "HEAD"
start = "START"
end = "END"
[operators]
ONLY = { code = 0, name = "Only" }
"""
BARE = '[device]\nname = "bare"\nbar_bytes = 4\n'


def replaced(*replacements):
    """device.toml with some text (old, new, old, new, ...) replaced."""
    text = GOOD
    for old, new in zip(replacements[::2], replacements[1::2]):
        assert text.count(old) == 1, f"{text.count(old)} times in device.toml: {old}"
        text = text.replace(old, new)
    return text


# What a file that describes a device includes.
NPUPROF = f'#include "{ROOT}/npuprof.h"\n#include "{ROOT}/npuprof_npu.h"\n'


def prints(expressions):
    """C that prints these numbers, one a line."""
    return "".join(f'    printf("%llu\\n", (unsigned long long)({one}));\n' for one in expressions)


class InDirectory(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        helpers.tool("npuprof-judge")

    def setUp(self):
        directory = tempfile.TemporaryDirectory()
        self.addCleanup(directory.cleanup)
        self.directory = pathlib.Path(directory.name)

    def gen(self, *arguments):
        """Returns the exit code and the output of one run."""
        output = io.StringIO()
        with contextlib.redirect_stdout(output), contextlib.redirect_stderr(output):
            code = cli.main(["gen", *map(str, arguments)])
        return code, output.getvalue()

    def printed(self, source, *flags):
        """The lines that a C program prints, which is compiled here without a warning."""
        program = helpers.compile_text(source, self.directory / "program", *helpers.WARNINGS, *flags)
        return helpers.run([program], code=0, said="", cwd=self.directory).stdout.splitlines()
