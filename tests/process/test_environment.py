# test: time=240 - the environment variables, output paths, and files that cannot be written
# SPDX-License-Identifier: MIT
import glob
import os
import pathlib
import re
import shutil
import signal
import socket
import stat
import threading
import unittest

import helpers
from helpers import environment, events, load, run

NAMES = ["main", "step", "step", "step", "kernel", "kernel", "kernel"]


class Case(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.program = helpers.build("instrumented.c", "instrumented")

    def setUp(self):
        self.folder = helpers.scratch() / self.id().split(".")[-1]
        shutil.rmtree(self.folder, ignore_errors=True)
        self.folder.mkdir()

    def start(self, *arguments, **env):
        return run([self.program, *arguments], cwd=self.folder, env=environment(**env))

    def files(self):
        return sorted(str(p.relative_to(self.folder)) for p in self.folder.rglob("*") if not p.is_dir())

    def names(self, path):
        return sorted(e["name"] for e in events(load(self.folder / path), "X"))


class Output(Case):
    def test_without(self):
        done = self.start()
        self.assertEqual((done.returncode, done.stdout, done.stderr), (0, "", ""))
        self.assertEqual(self.files(), [])

    def test_with(self):
        done = self.start(NPUPROF_OUTPUT_PATH="t.json")
        self.assertEqual((done.returncode, done.stdout, done.stderr), (0, "", ""))
        self.assertEqual(self.files(), ["t.json"])
        self.assertEqual(self.names("t.json"), sorted(NAMES))

    def test_exit_code_stays(self):
        self.assertEqual(self.start("fail", NPUPROF_OUTPUT_PATH="t.json").returncode, 4)
        self.assertEqual(self.files(), ["t.json"])

    def test_abort_leaves_no_half_file(self):
        self.assertEqual(self.start("abort", NPUPROF_OUTPUT_PATH="t.json").returncode, -signal.SIGABRT)
        self.assertEqual([f for f in self.files() if "core" not in f], [])

    def test_off_words(self):
        for word in ("", "0", "off", "false"):
            with self.subTest(word=word):
                done = self.start(NPUPROF_OUTPUT_PATH=word)
                self.assertEqual((done.returncode, done.stderr, self.files()), (0, "", []))

    def test_off_words_of_the_others(self):
        for name in ("NPUPROF_LEVEL", "NPUPROF_CATEGORIES", "NPUPROF_WHEN_FULL", "NPUPROF_ARENA_PATH"):
            for word in ("", "0", "off", "false"):
                with self.subTest(name=name, word=word):
                    done = self.start(NPUPROF_OUTPUT_PATH="t.json", **{name: word})
                    self.assertEqual((done.returncode, done.stderr), (0, ""))
                    self.assertEqual(self.names("t.json"), sorted(NAMES))
                    self.assertEqual(self.files(), ["t.json"])

    def test_others_alone_turn_nothing_on(self):
        self.start(NPUPROF_LEVEL="2", NPUPROF_CATEGORIES="npu")
        self.assertEqual(self.files(), [])

    def test_pid_host_percent(self):
        done = self.start(NPUPROF_OUTPUT_PATH="a-%p-%h-%%-b.json")
        self.assertEqual(done.returncode, 0)
        (name,) = self.files()
        pid = load(self.folder / name)["metadata"]["npuprof"]["pid"]
        self.assertEqual(name, f"a-{pid}-{socket.gethostname()}-%-b.json")

    def test_unknown_percent(self):
        """Not in silence: a file, or a line that names it."""
        for path in ("a-%q.json", "a-%.json", "a%"):
            with self.subTest(path=path):
                done = self.start(NPUPROF_OUTPUT_PATH=path)
                self.assertEqual(done.returncode, 0)
                self.assertTrue(self.files() or path in done.stderr, done.stderr)
                self.assertLessEqual(len(done.stderr.splitlines()), 1)

    def test_time(self):
        self.start(NPUPROF_OUTPUT_PATH="t_%t.json")
        (name,) = self.files()
        self.assertRegex(name, r"^t_20\d\d-\d\d-\d\d_\d\d-\d\d-\d\d\.json$")

    def test_instances_never_overwrite(self):
        for _ in range(3):
            self.start(NPUPROF_OUTPUT_PATH="i%i.json")
        self.assertEqual(len(self.files()), 3)
        for name in self.files():
            self.assertRegex(name, r"^i\d+\.json$")
            self.assertEqual(self.names(name), sorted(NAMES))

    def test_instances_at_once(self):
        threads = [threading.Thread(target=self.start, kwargs={"NPUPROF_OUTPUT_PATH": "i%i.json"})
                   for _ in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        self.assertEqual(len(self.files()), 8)
        for name in self.files():
            self.assertEqual(self.names(name), sorted(NAMES))

    def test_directory(self):
        for _ in range(2):
            done = self.start(NPUPROF_OUTPUT_PATH="out/")
            self.assertEqual((done.returncode, done.stderr), (0, ""))
        files = self.files()
        self.assertEqual(len(files), 4, files)
        jsons = [f for f in files
                 if re.fullmatch(r"out/profiling_trace/profiling_20\d\d-\d\d-\d\d_\d\d-\d\d-\d\d_\d+\.json",
                                 f)]
        csvs = [f for f in files
                if re.fullmatch(r"out/profiling_csv/profiling_20\d\d-\d\d-\d\d_\d\d-\d\d-\d\d_\d+\.csv", f)]
        self.assertEqual((len(jsons), len(csvs)), (2, 2), files)
        for name in jsons:
            self.assertEqual(self.names(name), sorted(NAMES))
        header = ("trace_id,parent_span_id,span_id,start,end,cat,name,thread.id,dram_base,pe_index,"
                  "execution_index,instruction_index,operator_index,dur")
        for name in csvs:
            lines = (self.folder / name).read_text().splitlines()
            self.assertEqual(lines[0], header)
            self.assertEqual(len(lines), 1 + len(NAMES))

    def test_csv(self):
        self.start(NPUPROF_OUTPUT_PATH="t.csv")
        import csv
        with open(self.folder / "t.csv", newline="") as file:
            rows = list(csv.DictReader(file))
        self.assertEqual(sorted(row["name"] for row in rows), sorted(NAMES))
        (main,) = [row for row in rows if row["name"] == "main"]
        for row in rows:
            self.assertRegex(row["span_id"], "^[0-9a-f]{16}$")
            self.assertRegex(row["trace_id"], "^[0-9a-f]{32}$")
            self.assertEqual(int(row["end"]) - int(row["start"]), int(row["dur"]))
            self.assertGreater(int(row["start"]), 1.6e18)
            if row["name"] == "step":
                self.assertEqual(row["parent_span_id"], main["span_id"])
        self.assertEqual(main["parent_span_id"], "")
        self.assertEqual(len({row["span_id"] for row in rows}), len(rows))

    def test_unknown_extension(self):
        """Refused at the start, in words; a name without one, or with a number there, is JSON."""
        for name in ("t.trace", "t.pftrace", "t.json.gz", "d.x/t.perfetto-trace"):
            done = self.start(NPUPROF_OUTPUT_PATH=name)
            self.assertEqual((done.returncode, self.files()), (0, []))
            (line,) = done.stderr.splitlines()
            self.assertRegex(line, f"NPUPROF_OUTPUT_PATH={name}.*extension.*\\.json")
        for name in ("t", "t.%p", ".hidden", "t-%h"):
            done = self.start(NPUPROF_OUTPUT_PATH=name)
            self.assertEqual((done.returncode, done.stderr), (0, ""))
            (there,) = self.files()
            self.assertEqual(self.names(there), sorted(NAMES))
            (self.folder / there).unlink()

    def test_fork(self):
        """The child has a file of its own, and the parent's is whole."""
        done = self.start("fork", NPUPROF_OUTPUT_PATH="t.json")
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        self.assertEqual(len(self.files()), 2, self.files())
        (child,) = [f for f in self.files() if f != "t.json"]
        self.assertEqual(self.names("t.json"), sorted(NAMES))
        self.assertEqual(self.names(child), ["of the child"])
        pid = load(self.folder / child)["metadata"]["npuprof"]["pid"]
        self.assertEqual(child, f"t-{pid}.json")

    def test_fork_with_pid_in_the_path(self):
        self.start("fork", NPUPROF_OUTPUT_PATH="t.%p.json")
        self.assertEqual(len(self.files()), 2)
        for name in self.files():
            self.assertEqual(name, f"t.{load(self.folder / name)['metadata']['npuprof']['pid']}.json")

    @helpers.thorough
    def test_private_arenas(self):
        """Two files with arenas of their own write two files."""
        program = helpers.build("private_one.c", "private", str(helpers.PROGRAMS / "private_two.c"))
        done = run([program], cwd=self.folder, env=environment(NPUPROF_OUTPUT_PATH="t.json"))
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        self.assertEqual(len(self.files()), 2, self.files())
        self.assertIn("t.json", self.files())
        self.assertEqual(sorted(self.names(f)[0] for f in self.files()), ["one", "two"])

    def test_traceparent(self):
        """A wider trace: its id, and the caller's span as parent of the outermost spans."""
        import csv
        trace, parent = "4bf92f3577b34da6a3ce929d0e0e4736", "00f067aa0ba902b7"
        for value, joined in ((f"00-{trace}-{parent}-01", True), ("nonsense", False),
                              (f"00-{'0' * 32}-{parent}-01", False), ("", False)):
            with self.subTest(value=value):
                done = self.start(NPUPROF_OUTPUT_PATH="t.csv", TRACEPARENT=value)
                self.assertEqual(done.returncode, 0)
                with open(self.folder / "t.csv", newline="") as file:
                    rows = list(csv.DictReader(file))
                (main,) = [row for row in rows if row["name"] == "main"]
                self.assertEqual(main["parent_span_id"], parent if joined else "")
                self.assertEqual({row["trace_id"] == trace for row in rows}, {joined})

    def test_long_path(self):
        done = self.start(NPUPROF_OUTPUT_PATH="d/" * 5000 + "t.json")
        self.assertEqual(done.returncode, 0)
        self.assertEqual(len(done.stderr.splitlines()), 1, done.stderr)
        self.assertEqual(self.files(), [])

    def test_set_user_id(self):
        """Ignored in a set-user-id program."""
        if os.geteuid() != 0:
            self.skipTest("only root can make a program set-user-id for somebody else")
        if os.statvfs(self.folder).f_flag & os.ST_NOSUID:
            self.skipTest("the file system is mounted nosuid")
        program = self.folder / "program"
        shutil.copy(self.program, program)
        os.chown(program, 65534, 65534)
        program.chmod(0o4755)
        os.chmod(self.folder, 0o777)
        out = pathlib.Path("/tmp") / f"npuprof-suid-{os.getpid()}.json"
        done = run([program], cwd=self.folder, env=environment(NPUPROF_OUTPUT_PATH=str(out)))
        self.addCleanup(lambda: out.unlink(missing_ok=True))
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        self.assertFalse(out.exists())
        program.chmod(0o755)
        run([program], cwd=self.folder, env=environment(NPUPROF_OUTPUT_PATH=str(out)))
        self.assertTrue(out.exists())     # the test can fail


class Values(Case):
    def level_names(self, level):
        done = self.start(NPUPROF_OUTPUT_PATH="t.json", NPUPROF_LEVEL=level)
        names = self.names("t.json")
        return done, names.count("level 2"), names.count("level 9")

    def test_level(self):
        for level, two, nine in (("1", 0, 0), ("2", 3, 0), ("8", 3, 0), ("9", 3, 3)):
            with self.subTest(level=level):
                done, *counts = self.level_names(level)
                self.assertEqual((done.stderr, counts), ("", [two, nine]))

    def test_level_is_clamped(self):
        for level, two, nine in (("1000", 3, 3), ("99999999999999999999", 3, 3), ("-3", 0, 0)):
            with self.subTest(level=level):
                done, *counts = self.level_names(level)
                self.assertEqual((done.returncode, counts), (0, [two, nine]))

    def check_named(self, name, value):
        done = self.start(NPUPROF_OUTPUT_PATH="t.json", **{name: value})
        self.assertEqual(done.returncode, 0)
        lines = done.stderr.splitlines()
        self.assertEqual(len(lines), 1, done.stderr)
        self.assertIn(name, lines[0])
        self.assertIn(value[:20], lines[0])
        own = load(self.folder / "t.json")["metadata"]["npuprof"]
        self.assertIn(name, str(own.get("unused_environment", "")), own)
        self.assertIn(value[:20], str(own.get("unused_environment", "")), own)

    def test_bad_values_are_named_once(self):
        for name, value in (("NPUPROF_LEVEL", "high"), ("NPUPROF_LEVEL", "2x"),
                            ("NPUPROF_WHEN_FULL", "explode"),
                            ("NPUPROF_CATEGORIES", "a,-b")):
            with self.subTest(name=name, value=value):
                self.check_named(name, value)

    def test_all_is_recorded_in_spite_of_a_bad_value(self):
        self.start(NPUPROF_OUTPUT_PATH="t.json", NPUPROF_LEVEL="high", NPUPROF_CATEGORIES="-a,b")
        self.assertEqual(self.names("t.json"), sorted(NAMES))

    def test_unknown_variables(self):
        """Named once; with an unset value they are none."""
        done = self.start(NPUPROF_OUTPUT_PATH="t.json", NPUPROF_OUTPUT="u.json", NPUPROF_LEVELS="2",
                          NPUPROF_TRACE="0", NPUPROFILER="1")
        self.assertEqual(done.returncode, 0)
        lines = sorted(done.stderr.splitlines())
        self.assertEqual(len(lines), 2, lines)
        for line, name in zip(lines, ("NPUPROF_LEVELS=2", "NPUPROF_OUTPUT=u.json")):
            self.assertIn(name, line)
        unused = load(self.folder / "t.json")["metadata"]["npuprof"]["unused_environment"]
        self.assertEqual(sorted(unused), ["NPUPROF_LEVELS", "NPUPROF_OUTPUT"])

    @helpers.thorough
    def test_arena_bytes(self):
        """The arena of an unmodified program: 8000 spans need 128 kB."""
        program = helpers.build("closed.c", "small", "-DNPUPROF_ARENA_BYTES=65536")
        for value, fits in (("", False), ("64K", False), ("1M", True), ("64m", True), ("1000000", True)):
            for mode in (dict(NPUPROF_OUTPUT_PATH="t.json"),
                         dict(NPUPROF_OUTPUT_PATH="t.json", NPUPROF_ARENA_PATH="a.npuprof")):
                with self.subTest(value=value, **mode):
                    done = run([program], cwd=self.folder, env=environment(NPUPROF_ARENA_BYTES=value, **mode))
                    self.assertEqual((done.returncode, done.stderr), (0, ""))
                    own = load(self.folder / "t.json")["metadata"]["npuprof"]
                    self.assertEqual(own["recorded"] + own["lost"]["arena_full"], 8000)
                    self.assertEqual(own["lost"]["arena_full"] == 0, fits)
        self.assertEqual((self.folder / "a.npuprof").stat().st_size, 1000000)
        for value in ("64X", "64MB", "1", "-1M", "99999999999999999999", "17179869184G", "8388608G"):
            with self.subTest(value=value):
                self.check_named("NPUPROF_ARENA_BYTES", value)

    def test_bad_value_without_output_is_silent_or_one_line(self):
        done = self.start(NPUPROF_LEVEL="high")
        self.assertEqual(done.returncode, 0)
        self.assertLessEqual(len(done.stderr.splitlines()), 1)

    def test_categories(self):
        for spec, wanted in (("npu", ["kernel"] * 3), ("runtime", ["step"] * 3),
                             ("npu,runtime", ["kernel"] * 3 + ["step"] * 3),
                             ("-npu", ["main"] + ["step"] * 3), ("-npu,-runtime", ["main"]),
                             ("-npux", sorted(NAMES))):
            with self.subTest(spec=spec):
                done = self.start(NPUPROF_OUTPUT_PATH="t.json", NPUPROF_CATEGORIES=spec)
                self.assertEqual(done.returncode, 0)
                self.assertEqual(self.names("t.json"), wanted)

    def test_category_that_never_occurred(self):
        done = self.start(NPUPROF_OUTPUT_PATH="t.json", NPUPROF_CATEGORIES="npu,nosuchcategory")
        self.assertEqual(self.names("t.json"), ["kernel"] * 3)
        self.assertEqual(len(done.stderr.splitlines()), 1, done.stderr)
        self.assertIn("nosuchcategory", done.stderr)
        own = load(self.folder / "t.json")["metadata"]["npuprof"]
        self.assertIn("nosuchcategory", str(own["unused_environment"]))

    def test_hostile_values(self):
        for value in (b"\xff\"\\\n", b"%s%n%d", b"a" * 9000, b",,,", b"-", b"-,-"):
            with self.subTest(value=value[:10]):
                env = {k.encode(): v.encode() for k, v in environment(NPUPROF_OUTPUT_PATH="t.json").items()}
                env[b"NPUPROF_CATEGORIES"] = value
                done = run([self.program], cwd=self.folder, env=env)
                self.assertEqual(done.returncode, 0)
                load(self.folder / "t.json")


class Trouble(Case):
    """A file that cannot be written: one line that says what and where, the exit code stays, no half file."""

    def check_refused(self, path, cwd=None):
        done = run([self.program], cwd=cwd or self.folder, env=environment(NPUPROF_OUTPUT_PATH=str(path)))
        self.assertEqual(done.returncode, 0)
        self.assertEqual(len(done.stderr.splitlines()), 1, done.stderr)
        self.assertIn(str(path), done.stderr)
        return done.stderr

    def test_no_directory(self):
        self.check_refused("no/such/directory/t.json")
        self.assertEqual(self.files(), [])

    def test_a_directory(self):
        (self.folder / "d.json").mkdir()
        self.check_refused("d.json")
        self.assertEqual(self.files(), [])

    def test_a_file_as_directory(self):
        (self.folder / "f").write_text("x")
        self.check_refused("f/t.json")
        self.assertEqual(self.files(), ["f"])

    def test_not_permitted(self):
        """A directory that is not ours; root does it as nobody."""
        options = {"user": 65534, "group": 65534, "extra_groups": []} if os.geteuid() == 0 else {}
        self.folder.chmod(0o555)
        self.addCleanup(lambda: self.folder.chmod(0o755))
        try:
            done = run([self.program], cwd=self.folder, env=environment(NPUPROF_OUTPUT_PATH="t.json"),
                       **options)
        except PermissionError:
            self.skipTest("nobody may not run a program here")
        self.assertEqual(done.returncode, 0)
        self.assertEqual(len(done.stderr.splitlines()), 1, done.stderr)
        self.assertIn("t.json", done.stderr)
        self.assertIn("permission", done.stderr)
        self.assertEqual(self.files(), [])

    def device(self, name, minor):
        """A device to write to. Root gets a copy: a bug must not replace the machine's own."""
        if os.geteuid() != 0:
            return f"/dev/{name}"
        path = self.folder / name
        try:
            os.mknod(path, stat.S_IFCHR | 0o666, os.makedev(1, minor))
            open(path, "w").close()
        except OSError as error:
            self.skipTest(f"no copy of /dev/{name} can be made: {error}")
        return str(path)

    def test_dev_full(self):
        path = self.device("full", 7)
        self.assertIn("space", self.check_refused(path))
        self.assertTrue(stat.S_ISCHR(os.stat(path).st_mode))

    def test_dev_null(self):
        path = self.device("null", 3)
        done = self.start(NPUPROF_OUTPUT_PATH=path)
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        self.assertTrue(stat.S_ISCHR(os.stat(path).st_mode))

    def test_fifo(self):
        fifo = self.folder / "fifo"
        os.mkfifo(fifo)
        got = []
        reader = threading.Thread(target=lambda: got.append(fifo.read_bytes()))
        reader.start()
        done = self.start(NPUPROF_OUTPUT_PATH="fifo")
        reader.join(10)
        self.assertEqual(done.returncode, 0)
        self.assertEqual(len(events(helpers.strict_json(got[0]), "X")), len(NAMES))
        self.assertTrue(stat.S_ISFIFO(os.stat(fifo).st_mode))

    def test_closed_pipe(self):
        """A reader that goes away: no SIGPIPE kills the program."""
        fifo = self.folder / "fifo"
        os.mkfifo(fifo)
        end = os.open(fifo, os.O_RDONLY | os.O_NONBLOCK)
        program = helpers.build("pipe.c", "pipe")
        reader = threading.Timer(0.3, lambda: os.close(end))
        reader.start()
        done = run([program, "fifo"], cwd=self.folder, env=environment(), timeout=20)
        reader.join()
        self.assertEqual(done.returncode, 0, done.stderr)

    def test_full_disk(self):
        with helpers.Mount(16) as disk:
            (disk / "filler").write_bytes(b"x" * 14 * 1024)
            message = self.check_refused("t.json", cwd=disk)
            self.assertIn("space", message)
            self.assertEqual(sorted(os.listdir(disk)), ["filler"])
            old = disk / "old.json"
            (disk / "filler").unlink()
            old.write_bytes(b"y" * 14 * 1024)
            self.check_refused("old.json", cwd=disk)
            self.assertEqual(old.read_bytes(), b"y" * 14 * 1024)    # the old file is untouched
            self.assertEqual(os.listdir(disk), ["old.json"])

    @helpers.thorough
    def test_stream_to_a_full_disk(self):
        """What is in the file, and what the message says is not, are all."""
        program = helpers.build("closed.c", "closed")
        for filled in (0, 40, 60):
            with helpers.Mount(64) as disk:
                (disk / "filler").write_bytes(b"x" * filled * 1024)
                done = run([program], cwd=disk,
                           env=environment(NPUPROF_OUTPUT_PATH="s.npuprof", NPUPROF_WHEN_FULL="stream"))
                self.assertEqual(done.returncode, 0)
                (line,) = done.stderr.splitlines()
                lost = int(re.search(r"(\d+) spans and events are lost", line)[1])
                read = run([helpers.tool("npuprof-convert"), disk / "s.npuprof"])
                there = len(events(helpers.strict_json(read.stdout), "X")) if read.stdout else 0
                self.assertEqual((there + lost, there > 0), (8000, filled < 60), line)

    def limited(self, **env):
        """The program with a limit on a file's size; the signal that comes with it would end it."""
        import resource
        import subprocess
        done = subprocess.run([self.program], cwd=self.folder, env=environment(**env), stderr=subprocess.PIPE,
                              text=True,
                              preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (1000, 1000)))
        self.assertEqual(done.returncode, 0)
        return done.stderr.splitlines()

    def test_file_size_limit(self):
        """A short write, without root: the limit on a file's size."""
        for name in ("t.json", "t.csv", "t.npuprof"):
            self.assertEqual(len(self.limited(NPUPROF_OUTPUT_PATH=name)), 1)
        self.assertEqual(self.files(), [])

    def test_file_size_limit_of_a_mapped_arena(self):
        (line,) = self.limited(NPUPROF_ARENA_PATH="a.npuprof")
        self.assertIn("NPUPROF_ARENA_PATH", line)
        self.assertEqual(self.files(), [])

    def test_file_size_limit_of_a_stream(self):
        (line,) = self.limited(NPUPROF_OUTPUT_PATH="s.npuprof", NPUPROF_WHEN_FULL="stream")
        self.assertIn("are lost", line)

    def test_closed_stderr(self):
        """What is to be said to a pipe that nobody reads ends nothing."""
        import subprocess
        read, write = os.pipe()
        os.close(read)
        done = subprocess.run([self.program], cwd=self.folder,
                              env=environment(NPUPROF_OUTPUT_PATH="t.json", NPUPROF_LEVEL="high"),
                              stderr=write)
        os.close(write)
        self.assertEqual(done.returncode, 0)
        self.assertEqual(self.names("t.json"), sorted(NAMES))

    def test_closed_descriptors(self):
        """No file of ours is ever descriptor 0, 1 or 2: not the arena, the stream, an output, a device's."""
        import subprocess
        program = helpers.build("closed.c", "closed")
        for closed in ((0,), (1,), (2,), (0, 1, 2)):
            for mode, plain in ((dict(NPUPROF_OUTPUT_PATH="t.json"), "t.json"),
                                (dict(NPUPROF_ARENA_PATH="a.npuprof"), "a.npuprof"),
                                (dict(NPUPROF_OUTPUT_PATH="s.npuprof", NPUPROF_WHEN_FULL="stream"),
                                 "s.npuprof")):
                with self.subTest(closed=closed, **mode):
                    for name in self.files():
                        (self.folder / name).unlink()
                    done = subprocess.run([program, "dump.json", *map(str, closed)], cwd=self.folder,
                                          env=environment(**mode),
                                          preexec_fn=lambda: [os.close(n) for n in closed])
                    self.assertEqual(done.returncode, 0)
                    self.assertEqual(self.files(), sorted(["dump.json", plain]))
                    for name in self.files():
                        self.assertNotIn(b"XXXX", (self.folder / name).read_bytes())
                    if plain != "s.npuprof":
                        self.assertEqual(len(events(load(self.folder / "dump.json"), "X")), 8000)

    def test_existing_file_is_replaced_whole(self):
        path = self.folder / "t.json"
        path.write_text("old " * 100000)
        before = path.stat().st_ino
        reader = open(path)
        self.start(NPUPROF_OUTPUT_PATH="t.json")
        self.assertEqual(self.names("t.json"), sorted(NAMES))
        self.assertNotEqual(path.stat().st_ino, before)
        self.assertEqual(reader.read(), "old " * 100000)     # who reads the old file goes on reading it
        reader.close()
        self.assertEqual(self.files(), ["t.json"])

    def test_symlink_at_the_temporary_name(self):
        """A link that waits at a temporary name is not followed. The name is found by tracing; the common
        ones are tried blind."""
        victim = self.folder / "victim"
        victim.write_text("precious")
        for name in ("t.json.tmp", ".t.json.tmp", "t.json~", "t.json.part", "t.json.npuprof-tmp",
                     "t.json.new"):
            os.symlink(victim, self.folder / name)
        strace = shutil.which("strace")
        if strace:
            done = run([strace, "-f", "-e", "trace=openat,open,creat", self.program], cwd=self.folder,
                       env=environment(NPUPROF_OUTPUT_PATH="t.json"))
            for line in done.stderr.splitlines():
                if "O_CREAT" in line and "t.json" in line:
                    self.assertRegex(line, "O_EXCL|O_NOFOLLOW")
        self.start(NPUPROF_OUTPUT_PATH="t.json")
        self.assertEqual(victim.read_text(), "precious")
        self.assertEqual(self.names("t.json"), sorted(NAMES))

    def test_permissions_follow_umask(self):
        import subprocess
        subprocess.run([self.program], cwd=self.folder, env=environment(NPUPROF_OUTPUT_PATH="t.json"),
                       preexec_fn=lambda: os.umask(0o027),
                       check=True)
        self.assertEqual(stat.S_IMODE((self.folder / "t.json").stat().st_mode), 0o640)

    def test_existing_file_keeps_its_mode(self):
        for mode in (0o600, 0o664, 0o444):
            for name in ("t.json", "t.csv", "t.npuprof"):
                (self.folder / name).write_text("old")
                (self.folder / name).chmod(mode)
                self.start(NPUPROF_OUTPUT_PATH=name)
                self.assertEqual(stat.S_IMODE((self.folder / name).stat().st_mode), mode)
                self.assertGreater((self.folder / name).stat().st_size, 100)
                (self.folder / name).unlink()

    def test_killed_dump(self):
        """What it leaves is removed by the next dump of the same path, and of none other."""
        import subprocess
        import time
        program = helpers.build("closed.c", "closed")
        for _ in range(20):
            process = subprocess.Popen([program, "t.json"], cwd=self.folder,
                                       env=environment(NPUPROF_OUTPUT_PATH="u.json"))
            until = time.monotonic() + 5
            while (not glob.glob(str(self.folder / ".*.tmp")) and process.poll() is None
                   and time.monotonic() < until):
                pass
            process.kill()
            process.wait()
            left = glob.glob(str(self.folder / ".*.tmp"))
            if left:
                break
        self.assertEqual(len(left), 1)
        self.start(NPUPROF_OUTPUT_PATH="other.json")
        self.assertEqual(glob.glob(str(self.folder / ".*.tmp")), left)
        self.start(NPUPROF_OUTPUT_PATH="t.json")
        self.assertEqual(glob.glob(str(self.folder / ".*.tmp")), [])
        self.assertEqual(self.names("t.json"), sorted(NAMES))

    def test_dumps_to_one_path_at_once(self):
        """Nobody takes a file in use for one left over: all succeed, and the file is whole."""
        import subprocess
        program = helpers.build("closed.c", "closed")
        many = [subprocess.Popen([program, "t.json"], cwd=self.folder,
                                 env=environment(NPUPROF_OUTPUT_PATH="t.json")) for _ in range(4)]
        self.assertEqual([process.wait(60) for process in many], [0] * 4)
        self.assertEqual(self.files(), ["t.json"])
        self.assertEqual(len(self.names("t.json")), 8000)

    def test_nothing_left_behind(self):
        for _ in range(3):
            self.start(NPUPROF_OUTPUT_PATH="t.json")
        self.assertEqual(self.files(), ["t.json"])
        self.assertEqual(glob.glob(str(self.folder / ".*")), [])


if __name__ == "__main__":
    unittest.main()
