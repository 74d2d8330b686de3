# test: time=240 - the environment variables and output paths
# SPDX-License-Identifier: MIT
import fcntl
import os
import pathlib
import re
import signal
import socket
import subprocess
import threading
import time
import unittest

import helpers
import npuprof
from helpers import environment, load, run

NAMES = ["main", "step", "step", "step", "kernel", "kernel", "kernel"]


class Case(helpers.Folder):
    SOURCE = "instrumented.c"


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
                self.quiet(NPUPROF_OUTPUT_PATH=word)
                self.assertEqual(self.files(), [])

    def test_off_words_of_the_others(self):
        for name in ("NPUPROF_LEVEL", "NPUPROF_CATEGORIES", "NPUPROF_WHEN_FULL", "NPUPROF_ARENA_PATH"):
            for word in ("", "0", "off", "false"):
                with self.subTest(name=name, word=word):
                    self.quiet(NPUPROF_OUTPUT_PATH="t.json", **{name: word})
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
            self.quiet(NPUPROF_OUTPUT_PATH="out/")
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
                  "execution_index,instruction_index,operator_index,dur,source")
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
            line = self.one_line(self.start(NPUPROF_OUTPUT_PATH=name))
            self.assertEqual(self.files(), [])
            self.assertRegex(line, f"NPUPROF_OUTPUT_PATH={name}.*extension.*\\.json")
        for name in ("t", "t.%p", ".hidden", "t-%h"):
            self.quiet(NPUPROF_OUTPUT_PATH=name)
            (there,) = self.files()
            self.assertEqual(self.names(there), sorted(NAMES))
            (self.folder / there).unlink()

    def test_executed_with_the_same_path(self):
        """Who ends last has the name; what a program wrote that it executed stays beside it. An earlier run's
        file is replaced."""
        for ending in ("json", "csv", "npuprof"):
            path = f"t.{ending}"
            for _ in range(3):
                self.quiet(NPUPROF_OUTPUT_PATH=path)
            self.assertEqual(self.files(), [path])
            self.quiet("execute", NPUPROF_OUTPUT_PATH=path)
            self.assertEqual(self.files(), [f"t.1.{ending}", path])
            steps = []
            for name in self.files():
                trace = npuprof.load(self.folder / name)
                steps.append([trace.text(i) for i in range(len(trace))].count("step"))
                (self.folder / name).unlink()
            self.assertEqual(steps, [3, 6])

    def waiting(self, count):
        """So many programs that have recorded, and end when their standard input does."""
        found = [subprocess.Popen([self.program, "wait"], env=environment(NPUPROF_OUTPUT_PATH="t.json"),
                                  stdin=subprocess.PIPE, stdout=subprocess.PIPE, cwd=self.folder)
                 for _ in range(count)]
        self.assertEqual([process.stdout.read(1) for process in found], [b"."] * count)
        return found

    def check_ended(self, programs):
        for process in programs:
            process.communicate(timeout=60)
        self.assertEqual([process.returncode for process in programs], [0] * len(programs))
        self.assertEqual(len(self.files()), len(programs))
        for name in self.files():
            self.assertEqual(self.names(name), sorted(NAMES))

    def test_ended_at_the_same_moment(self):
        """Each trace is kept, and its file's time is that of its end, not of the system's last tick."""
        is_exact = False
        for _ in range(6):
            programs = self.waiting(5)
            for process in programs:
                process.stdin.close()
                process.stdin = None
            self.check_ended(programs)
            states = [(self.folder / name).stat() for name in self.files()]
            is_exact |= any(state.st_mtime_ns > state.st_ctime_ns for state in states)
            self.empty()
        self.assertTrue(is_exact)

    def test_locked_folder(self):
        """A file gets its name when the folder's lock is free, or has not been so for a while."""
        for stays in (False, True):
            folder = os.open(self.folder, os.O_RDONLY)
            fcntl.flock(folder, fcntl.LOCK_EX)
            programs, begin = self.waiting(1), time.monotonic()
            programs[0].stdin.close()
            programs[0].stdin = None
            time.sleep(0.05)
            early = "t.json" in self.files() and time.monotonic() < begin + 0.1
            if not stays:
                os.close(folder)
            self.check_ended(programs)
            self.assertFalse(early)
            if stays:
                os.close(folder)
            self.empty()

    def test_fork_with_pid_in_the_path(self):
        self.start("fork", NPUPROF_OUTPUT_PATH="t.%p.json")
        self.assertEqual(len(self.files()), 2)
        for name in self.files():
            self.assertEqual(name, f"t.{load(self.folder / name)['metadata']['npuprof']['pid']}.json")

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
        self.one_line(self.start(NPUPROF_OUTPUT_PATH="d/" * 5000 + "t.json"))
        self.assertEqual(self.files(), [])

    @helpers.uncounted
    def test_set_user_id(self):
        """Ignored in a set-user-id program."""
        out = pathlib.Path("/tmp") / f"npuprof-suid-{os.getpid()}.json"
        self.addCleanup(lambda: out.unlink(missing_ok=True))
        for program, is_set in helpers.set_user_id(self.program, self.folder):
            self.quiet(program=program, NPUPROF_OUTPUT_PATH=str(out))
            self.assertEqual(out.exists(), not is_set)


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
        """One line names the variable and its value, and the trace does."""
        self.one_line(self.start(NPUPROF_OUTPUT_PATH="t.json", **{name: value}), name, value[:20])
        unused = str(load(self.folder / "t.json")["metadata"]["npuprof"].get("unused_environment", ""))
        self.assertIn(name, unused)
        self.assertIn(value[:20], unused)

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
                    self.quiet(program=program, NPUPROF_ARENA_BYTES=value, **mode)
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
        self.one_line(done, "nosuchcategory")
        own = load(self.folder / "t.json")["metadata"]["npuprof"]
        self.assertIn("nosuchcategory", str(own["unused_environment"]))

    def test_hostile_values(self):
        for value in (b"\xff\"\\\n", b"%s%n%d", b"a" * 9000, b",,,", b"-", b"-,-"):
            with self.subTest(value=value[:10]):
                env = {k.encode(): v.encode() for k, v in environment(NPUPROF_OUTPUT_PATH="t.json").items()}
                env[b"NPUPROF_CATEGORIES"] = value
                run([self.program], code=0, cwd=self.folder, env=env)
                load(self.folder / "t.json")
