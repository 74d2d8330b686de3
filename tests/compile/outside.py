# For tests of what a program outside the tree gets: make install, and projects that use it
# SPDX-License-Identifier: MIT
import shutil
import unittest

import helpers
from helpers import ROOT, run, scratch

PROGRAM = """#define NPUPROF_IMPLEMENTATION
#include <npuprof.h>
#include <npuprof_npu.h>
int main(void)
{
    npuprof_start(1);
    { PROF_SCOPE("outside"); }
    npuprof_stop();
    return (int)npuprof_dump("outside.json");
}
"""


def make(*arguments):
    done = run([helpers.need("make"), "-s", "-C", ROOT, *arguments])
    assert done.returncode == 0, done.stderr
    return done


def tree(folder):
    return sorted(str(p.relative_to(folder)) for p in folder.rglob("*") if p.is_file())


class Outside(unittest.TestCase):
    def folder(self, name):
        path = scratch() / name
        shutil.rmtree(path, ignore_errors=True)
        path.mkdir()
        return path

    def project(self, name, **files):
        """A directory with the program as main.c and main.cpp, and other files."""
        path = self.folder(name)
        for file in ("main.c", "main.cpp"):
            (path / file).write_text(PROGRAM)
        for file, text in files.items():
            (path / file.replace("__", ".")).write_text(text)
        return path

    def check_program(self, program):
        done = run([program], env=helpers.environment(), cwd=scratch())
        self.assertEqual((done.returncode, done.stdout, done.stderr), (0, "", ""))
        (span,) = helpers.events(helpers.load(scratch() / "outside.json"), "X")
        self.assertEqual(span["name"], "outside")
        (scratch() / "outside.json").unlink()

    def commands(self, *commands, **options):
        """Runs them; each must succeed."""
        for command in commands:
            done = run(command, **options)
            self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
