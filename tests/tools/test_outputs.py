# files that the Python tools write: links in their way, one pid twice, modes, interrupted, no regular files;
# inputs that unpack without end, numbers and memory beyond what there is; names that control a terminal
# SPDX-License-Identifier: MIT
import ast
import gzip
import json
import os
import pathlib
import re
import resource
import shutil
import stat
import subprocess
import sys
import threading
import unittest
import unittest.mock

import helpers
from helpers import ROOT, run, scratch
from npuprof.base import files
from npuprof.base.messages import Refused

COMMANDS = {  # name of the output: the command that writes it
    "t.csv": ["convert", "t.json", "-o", "t.csv"], "t.pftrace": ["convert", "t.json", "-o", "t.pftrace"],
    "i.json": ["convert", "t.npuprof", "-o", "i.json"],
    "i.csv.gz": ["convert", "t.npuprof", "-o", "i.csv.gz"],
    "m.json": ["merge", "t.json", "-o", "m.json"], "t.db": ["export", "t.json", "--sqlite", "t.db"],
    "p.html": ["report", "t.json", "--html", "p.html"],
    "all.json": ["report", "t.json", "--json", "all.json"],
    "a.json": ["report", "t.json", "--annotate", "a.json"],
    "tables/names.csv": ["report", "t.json", "--csv-dir", "tables"],
    "d.h": ["gen", str(ROOT / "examples" / "digits" / "npusim.toml"), "-o", "d.h"]}


def setUpModule():
    helpers.tool("npuprof-convert")
    program = helpers.build("images.c", "images")
    for name in ("t.json", "t.npuprof"):
        run([program, "all", scratch() / name], code=0, env=helpers.environment())
    (scratch() / "tables").mkdir()


def call(*words, **options):
    return helpers.npuprof_py(*words, **options)


class Written(unittest.TestCase):
    def left(self):
        """Temporary files that were not removed."""
        return [path.name for path in scratch().rglob("*") if path.name.endswith(".tmp")
                or path.name.startswith((".npuprof", "npuprof-"))]

    def test_link_at_the_name_is_not_followed_and_modes_stay(self):
        victim = scratch() / "victim"
        for name, words in list(COMMANDS.items())[:1 if helpers.QUICK else None]:
            with self.subTest(name):
                path = scratch() / name
                victim.write_text("precious")
                path.unlink(missing_ok=True)
                path.symlink_to(victim)
                call(*words)
                self.assertEqual(victim.read_text(), "precious")
                self.assertFalse(path.is_symlink())
                path.chmod(0o640)
                before = path.stat().st_ino
                call(*words)
                self.assertEqual(stat.S_IMODE(path.stat().st_mode), 0o640)
                self.assertNotEqual(path.stat().st_ino, before)
                self.assertEqual(self.left(), [])

    def test_two_of_one_pid(self):
        """As two containers with one folder: each output is whole, and has a name of its own until then."""
        target, names = scratch() / "both.txt", []
        with files.whole_file(str(target)) as one, files.whole_file(str(target)) as other:
            names = [one.name, other.name]
            one.write(b"one")
            other.write(b"other")
        self.assertEqual(target.read_bytes(), b"one")
        self.assertEqual(len(set(names)), 2)
        self.assertNotIn(str(os.getpid()), names[0])
        target.chmod(0o600)
        with self.assertRaises(KeyError), files.whole_file(str(target)) as file:
            self.assertEqual(stat.S_IMODE(os.fstat(file.fileno()).st_mode), 0o600)
            raise KeyError
        self.assertEqual((target.read_bytes(), self.left()), (b"one", []))

    def test_interrupted_at_each_line(self):
        """Ctrl-C before each line of base/files.py in turn: nothing private stays, all is whole."""
        def file(folder):
            with files.whole_file(str(folder / "a.txt")) as out:
                out.write(b"whole")

        def new_folder(folder):
            with files.new_folder(str(folder / "new")) as create, create("a.txt") as out:
                out.write(b"whole")
        for write in (file, new_folder):
            folder, line = scratch() / f"interrupted {write.__name__}", 1
            folder.mkdir()
            while self.interrupted(write, folder, line):
                self.assertEqual([path for path in folder.iterdir() if path.name not in ("a.txt", "new")], [],
                                 (write, line))
                for path in folder.rglob("a.txt"):
                    self.assertEqual(path.read_bytes(), b"whole", (write, line))
                shutil.rmtree(folder / "new", ignore_errors=True)
                line += 1
            self.assertGreater(line, 8, write)

    @staticmethod
    def interrupted(write, folder, line):
        """Writes, with Ctrl-C before that line of base/files.py. False: it has not so many."""
        left, before = [line], sys.gettrace()

        def traced(frame, event, _):
            if frame.f_code.co_filename != files.__file__:
                return None
            left[0] -= event == "line"
            if event == "line" and left[0] == 0:
                sys.settrace(None)
                raise KeyboardInterrupt
            return traced
        sys.settrace(traced)
        try:
            write(folder)
        except KeyboardInterrupt:
            pass
        finally:
            sys.settrace(before)
        return left[0] <= 0

    def test_a_name_that_is_taken_is_not_used(self):
        target, victim = scratch() / "taken.txt", scratch() / "victim"
        victim.write_text("precious")
        (scratch() / f".npuprof-{'0' * 16}.tmp").symlink_to(victim)
        self.addCleanup((scratch() / f".npuprof-{'0' * 16}.tmp").unlink)
        with unittest.mock.patch("secrets.token_hex", return_value="0" * 16), self.assertRaises(Refused), \
                files.whole_file(str(target)) as file:
            file.write(b"x")
        self.assertEqual((victim.read_text(), target.exists()), ("precious", False))

    def test_what_is_no_regular_file(self):
        got = []
        os.mkfifo(scratch() / "f.csv")
        reader = threading.Thread(target=lambda: got.append((scratch() / "f.csv").read_bytes()), daemon=True)
        reader.start()
        call("convert", "t.json", "-o", "f.csv")
        reader.join(20)
        self.assertIn(b"span_id", got[-1])
        self.assertTrue((scratch() / "f.csv").is_fifo())
        self.assertIn("space", helpers.refused("convert", "t.npuprof", "-o", "/dev/full"))

    def test_interrupted(self):
        """Nothing is left of what was not complete."""
        with self.assertRaises(KeyboardInterrupt), files.whole_folder(str(scratch())) as private:
            (pathlib.Path(private) / "new.json").write_text("{}")
            raise KeyboardInterrupt
        self.assertFalse((scratch() / "new.json").exists())
        self.assertEqual(self.left(), [])

    @helpers.thorough
    def test_one_way_for_all(self):
        """No other file of the tools opens one to write, renames one, or makes one with a name."""
        for path in (ROOT / "tools" / "npuprof").rglob("*.py"):
            for node in ast.walk(ast.parse(path.read_text())):
                said = ast.unparse(node) if isinstance(node, ast.Call) else ""
                writes = re.match(r"open\(.*['\"][rb+]*[wax][b+]*['\"]|os\.(open|rename|replace)\(|"
                                  r".*\.write_(text|bytes)\(", said)
                if path.name == "files.py" or not writes:
                    continue
                # The CSVs for DuckDB lie in a private folder; devnull is no file, nor is what /proc and the
                # kernel's tracer have.
                known = ("self.csv(table)", "devnull", "os.open(path, os.O_RDONLY", "os.open(f'/proc/{pid}'",
                         "dir_fd=self.folder",
                         "os.open(self.folder / name, os.O_WRONLY | os.O_CLOEXEC)",
                         "os.open(self.folder / 'trace_marker', os.O_WRONLY | os.O_CLOEXEC)")
                self.assertTrue(any(one in said for one in known), (path, said))


class Inputs(unittest.TestCase):
    @helpers.thorough
    def test_unpacked_without_end(self):
        with gzip.open(scratch() / "bomb.json.gz", "wb", 9) as packed:
            for _ in range(260):
                packed.write(bytes(1 << 20))
        for words in (["check", "bomb.json.gz"], ["report", "bomb.json.gz"]):
            self.assertIn("NPUPROF_UNPACK_MAX", helpers.refused(*words))
        done = call("check", "bomb.json.gz", code=2, env=helpers.environment(NPUPROF_UNPACK_MAX="1G"))
        self.assertNotIn("NPUPROF_UNPACK_MAX", done.stderr)
        done = call("check", "bomb.json.gz", code=None, env=helpers.environment(NPUPROF_UNPACK_MAX="much"))
        self.assertIn("NPUPROF_UNPACK_MAX=much: not a number", done.stderr)

    @helpers.thorough
    def test_too_large_a_number(self):
        trace = json.loads((scratch() / "t.json").read_text())
        for key in ("pid", "tid"):
            for number in (10**30, -10**30, 2**63):
                trace["traceEvents"][-1][key] = number
                (scratch() / "big.json").write_text(json.dumps(trace))
                for words in (["export", "big.json", "--sqlite", "big.db"], ["report", "big.json"],
                              ["convert", "big.json", "-o", "big.pftrace"], ["check", "big.json"]):
                    done = call(*words, code=None)
                    self.assertNotIn("Traceback", done.stderr, words)
                    self.assertLessEqual(done.stderr.count("\n"), 2)

    @helpers.thorough
    def test_too_little_memory(self):
        line = '{"ph":"X","name":"%s","pid":1,"tid":1,"ts":%d,"dur":1},\n'
        with open(scratch() / "long.json", "w", encoding="ascii") as file:
            file.write('{"traceEvents":[\n')
            file.writelines(line % ("x" * 4000, n) for n in range(20000))
            file.write('{"ph":"M","name":"process_name","pid":1,"args":{"name":"p"}}]}')
        limit = 100 << 20
        self.assertIn("memory", helpers.refused("check", "long.json",
                                                preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_AS,
                                                                                      (limit, limit))))

    def test_an_image_whose_name_is_an_option(self):
        for name in ("-o", "--report", "--"):
            (scratch() / name).write_bytes((scratch() / "t.npuprof").read_bytes())
            for words in ([helpers.tool("npuprof-convert"), "--report", "--", name],
                          [sys.executable, helpers.NPUPROF_PY, "report", "--", name],
                          [sys.executable, helpers.NPUPROF_PY, "convert", "-o", "o.json", "--", name]):
                run(words, code=0, said="")
            (scratch() / name).unlink()


HARMFUL = "a\x1b[31m\rb\u009b2J\u202ec\x7f"


class Terminal(unittest.TestCase):
    """Nothing that a terminal obeys comes from a path or a name, on whatever stream."""

    def harmless(self, done):
        for text in (done.stdout, done.stderr):
            self.assertNotRegex(text, "[\x00-\x08\x0b-\x1f\x7f-\x9f\u200e\u200f\u2028-\u202e]")

    @helpers.thorough
    def test_paths(self):
        name = HARMFUL + ".npuprof"
        (scratch() / name).write_bytes((scratch() / "t.npuprof").read_bytes()[:-100])
        for words in ([helpers.tool("npuprof-convert"), name, "-o", "o.json"],
                      [helpers.tool("npuprof-convert"), HARMFUL], [helpers.tool("npuprof-top"), HARMFUL, "1"],
                      [helpers.tool("npuprof-convert"), "--" + HARMFUL],
                      [helpers.tool("npuprof-convert"), "--follow", HARMFUL],
                      [sys.executable, helpers.NPUPROF_PY, "convert", name, "-o", "o.json"],
                      [sys.executable, helpers.NPUPROF_PY, "report", HARMFUL]):
            done = run(words)
            self.assertNotEqual(done.stderr, "", words)
            self.harmless(done)
        program = helpers.build("images.c", "images")
        for more in ({"NPUPROF_OUTPUT_PATH": f"no/{HARMFUL}.json"}, {"NPUPROF_ARENA_BYTES": HARMFUL},
                     {"NPUPROF_OUTPUT_PATH": "o.json", "NPUPROF_CATEGORIES": HARMFUL}):
            self.harmless(run([program, "all", "o.npuprof"], env=helpers.environment(**more)))

    def test_names_in_top(self):
        source = scratch() / "odd_names.c"
        source.write_text('#include "npuprof.h"\n#include <unistd.h>\n'
                          "int main(int argc, char **argv) { npuprof_start(1); if (argc < 2) return 1;\n"
                          "for (;;) { WITH_BASE_PROFILER(NULL, argv[1], \"cat\", PROF_NO_ARGS,\n"
                          "{ usleep(1000); }); } }\n")
        program, path = helpers.build(source, "odd_names"), scratch() / "odd.npuprof"
        env = helpers.environment(NPUPROF_ARENA_PATH=str(path))
        with subprocess.Popen([program, HARMFUL], env=env) as odd:
            try:
                while not path.exists() or not path.stat().st_size:
                    pass
                top = [sys.executable, helpers.NPUPROF_PY, "top", path, "--once", "--interval", "0.3"]
                for words in ([helpers.tool("npuprof-top"), path, "0.3", "1"], top, [*top, "--json"]):
                    done = run(words, code=0)
                    self.harmless(done)
                    if done.stdout.startswith("{"):
                        self.assertEqual(json.loads(done.stdout)["names"][0]["name"], HARMFUL)
            finally:
                odd.kill()
