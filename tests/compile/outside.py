# For tests of what a program outside the tree gets: make install, and projects that use it
# SPDX-License-Identifier: MIT
import os
import re
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


LINK = re.compile(r"\]\(([^)#:\s]+)(?:#[^)\s]*)?\)")


def dead_links(root):
    """(page, target) of each link between files that leads nowhere, and links of the file system that do."""
    return [(str(page), target) for page in root.rglob("*.md")
            for target in LINK.findall(page.read_text(encoding="utf-8"))
            if not (page.parent / target).exists()] + [
        (str(path), os.readlink(path)) for path in root.rglob("*") if path.is_symlink() and not path.exists()]


def check_command(test, command, python, path=None, command_path=None):
    """The installed command and module, from outside the tree: an image, gen's words, a recording. The paths
    are PYTHONPATH, where Python does not look by itself."""
    folder, plain = test.folder("outside"), helpers.environment()
    plain.pop("PYTHONPATH", None)

    def done(words, path):
        return run(words, code=0, said="", cwd=folder, env=plain | ({"PYTHONPATH": path} if path else {}))
    run([helpers.build("images.c", "images"), "all", folder / "t.npuprof"], code=0, env=plain)
    version = re.search(r'NPUPROF_VERSION_STRING "(.*)"', helpers.HEADERS[0].read_text())[1]
    test.assertEqual(done([*command, "--version"], command_path).stdout, f"npuprof {version}\n")
    for words in (("check", "t.npuprof"), ("report", "t.npuprof", "--html", "t.html"),
                  ("gen", ROOT / "examples/digits/npusim.toml", "-o", "regs.h")):
        done([*command, *words], command_path)
    text = "import npuprof\nwith npuprof.profile('p.json'):\n  with npuprof.scope('outside'): pass\n"
    done([*python, "-c", text], path)
    test.assertIn('"outside"', (folder / "p.json").read_text())


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
