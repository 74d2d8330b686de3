# test: time=200 - npuprof.py run: a command as it is, with its output, exit code and signals; the trace; what
# is said of it. Debian's programs, unchanged
# SPDX-License-Identifier: MIT
import collections
import os
import random
import re
import signal
import subprocess
import sys
import unittest

import helpers
from helpers import environment, events, load, run

NOTHING = "npuprof: nothing recorded: the program uses neither ITT nor NVTX nor npuprof.h. "
OMP = """#include <stdio.h>
int main(void)
{
    double sum = 0;
    for (int round = 0; round < 5; round++) {
#pragma omp parallel for reduction(+:sum)
        for (int i = 0; i < 1000; i++) sum += i;
    }
    printf("%g\\n", sum);
    return 3;
}
"""
# Marks of its own; with ITT, the program of collect_itt.c between them.
MARKED = """#define NPUPROF_IMPLEMENTATION
#include "npuprof.h"
#ifdef WITH_ITT
#define main itt_main
#include "programs/collect_itt.c"
#undef main
#endif
int main(int argc, char **argv)
{
    PROF_SCOPE("own");
    PROF_COUNTER("count", argc);
#ifdef WITH_ITT
    return itt_main(argc, argv);
#else
    return argv == NULL;
#endif
}
"""
# What Debian has no program for, and why.
MISSING = {"NVTX": "nothing in Debian 12 is built with it",
           "PyTorch": "Debian's libtorch1.13 is built without ITT",
           "OpenVINO": "is not in Debian 12"}


class Case(helpers.Folder):
    def setUp(self):
        super().setUp()
        helpers.tool("libnpuprof-collect.so")
        helpers.tool("npuprof-convert")

    def recorded(self, *words, code=0, options=(), **env):
        return helpers.npuprof_py("run", *options, "--", *words, code=code, cwd=self.folder,
                                  env=environment(**env))


class Command(Case):
    def test_is_as_without(self):
        """Streams and exit code; nothing is written where nothing records."""
        script = "echo out; echo err >&2; pwd; echo $#; exit 7"
        done = self.recorded("sh", "-c", script, "sh", "-o", "--", code=7)
        self.assertEqual(done.stdout, f"out\n{self.folder}\n2\n")
        first, second = done.stderr.splitlines()
        self.assertEqual((first, second[:len(NOTHING)]), ("err", NOTHING))
        self.assertEqual(self.files(), [])

    def test_standard_input(self):
        command = [sys.executable, helpers.NPUPROF_PY, "run", "--", "cat"]
        done = subprocess.run(command, input=b"a\0b\n", capture_output=True, cwd=self.folder, timeout=60)
        self.assertEqual((done.returncode, done.stdout), (0, b"a\0b\n"))

    def test_a_signal_that_ends_it(self):
        for number in (signal.SIGTERM, signal.SIGKILL, signal.SIGPIPE):
            done = self.recorded("sh", "-c", f"kill -{number.value} $$", code=-number)
            self.assertIn(f"npuprof: nothing is written: signal {number.value} ended", done.stderr)

    def test_who_starts_it_ignores_the_ends_of_children(self):
        command = [sys.executable, helpers.NPUPROF_PY, "run", "--", "sh", "-c", "exit 4"]
        done = run(command, cwd=self.folder, env=environment(), timeout=60,
                   preexec_fn=lambda: signal.signal(signal.SIGCHLD, signal.SIG_IGN))
        self.assertEqual((done.returncode, done.stderr[:len(NOTHING)]), (4, NOTHING))

    def test_signals_are_passed_on(self):
        """Each once, in the order in which they came; the exit code is that of the handler."""
        script = ("import os, signal, time\n"
                  "for n in (signal.SIGUSR1, signal.SIGHUP, signal.SIGINT, signal.SIGTERM):\n"
                  "    signal.signal(n, lambda n, _: os.write(1, b'%d\\n' % n) and n == 15 and os._exit(9))\n"
                  "print(signal.pthread_sigmask(signal.SIG_BLOCK, ()), flush=True)\n"
                  "for n in range(30): time.sleep(1)      # if a signal does not arrive")
        command = [sys.executable, helpers.NPUPROF_PY, "run", "--", sys.executable, "-c", script]
        process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                                   cwd=self.folder, env=environment())
        self.assertEqual(process.stdout.readline(), "set()\n")      # none is blocked
        for number in (signal.SIGUSR1, signal.SIGHUP, signal.SIGINT, signal.SIGTERM):
            process.send_signal(number)
            self.assertEqual(process.stdout.readline(), f"{number.value}\n")
        process.communicate(timeout=60)
        self.assertEqual(process.returncode, 9)

    def test_what_cannot_be_started(self):
        (self.folder / "folder.json").mkdir()
        self.assertEqual(self.recorded("./none", code=127).stderr,
                         "./none: cannot be started: No such file or directory\n")
        self.assertEqual(self.recorded(".", code=126).stderr, ".: cannot be started: Permission denied\n")
        for words, text in (((), "run: no command is given"),
                            (("-o", "t.csv", "true"), "t.csv: unknown extension"),
                            (("-o", "t.json.gz", "true"), "t.json.gz: unknown extension"),
                            (("-o", "/dev/null", "true"), "/dev/null: unknown extension"),
                            (("-o", "folder.json", "true"), "folder.json: not a file"),
                            (("-o", "none/t.json", "true"), "none/t.json: not a file")):
            self.assertIn(text, helpers.refused("run", *words, cwd=self.folder))

    @helpers.thorough
    def test_a_program_with_marks_of_its_own(self):
        program = helpers.compile_text(MARKED, self.folder / "marked", "-O1")
        done = self.recorded(program, options=["-o", "own.npuprof"])
        self.assertEqual(done.stderr, "npuprof: own.npuprof: 0 spans by ITT, 0 spans by NVTX, "
                                      "1 spans and 1 events by npuprof.h\n")
        self.assertEqual(self.names_of("own.npuprof"), {"own": 1})

    @helpers.thorough
    def test_marks_and_itt(self):
        """One trace where the program exports npuprof.h's functions, else a file for each."""
        flags = ["-O1", "-DWITH_ITT", f"-I{helpers.TESTS}", "-ldl"]
        program = helpers.compile_text(MARKED, helpers.scratch() / "exports", *flags, "-rdynamic")
        done = self.recorded(program, "threads", "10", options=["-o", "one.json"])
        self.assertEqual(done.stderr, "npuprof: one.json: 80 spans by ITT, 0 spans by NVTX, "
                                      "1 spans and 1 events by npuprof.h\n")
        program = helpers.compile_text(MARKED, helpers.scratch() / "hides", *flags)
        said = sorted(self.recorded(program, "threads", "10", options=["-o", "two.json"]).stderr.splitlines())
        self.assertRegex(said[0], r"two-\d+-\d+\.json: 80 spans by ITT, 0 spans by NVTX$")
        self.assertRegex(said[1], r"two-\d+\.json: 0 spans .* by NVTX, 1 spans and 1 events by npuprof\.h$")

    def names_of(self, name):
        return dict(collections.Counter(e["name"] for e in events(self.read(name), "X")))

    def test_processes_have_a_file_each(self):
        """Also where the folder's name has a percent sign, and older files of that form lie there."""
        folder = self.folder / "50%p"
        folder.mkdir()
        (folder / "t-1.json").write_text("old")
        itt = helpers.build("collect_itt.c", "collect_itt", "-ldl")
        nvtx = helpers.build("collect_nvtx.c", "collect_nvtx", "-ldl")
        done = self.recorded("sh", "-c", f"cd /; {itt} threads 10; {nvtx} threads 20",
                             options=["-o", "50%p/t.json"])
        lines = done.stderr.splitlines()
        self.assertRegex(lines[0], r"^npuprof: 50%p/t-\d+\.json: 80 spans by ITT, 0 spans by NVTX$")
        self.assertRegex(lines[1], r"^npuprof: 50%p/t-\d+\.json: 0 spans by ITT, "
                                   r"640 spans and 160 events by NVTX$")
        self.assertEqual(len(lines), 2)
        self.assertEqual((len(list(folder.iterdir())), (folder / "t-1.json").read_text()), (3, "old"))

    def test_what_is_lost_or_not_held_is_said(self):
        itt = helpers.build("collect_itt.c", "collect_itt", "-ldl")
        done = self.recorded(itt, "everything", options=["-o", "t.json"])
        line = ("npuprof: t.json: not held: 1 itt.clock, 3 itt.metadata, 2 itt.other, 1 itt.parent, "
                "3 itt.relation, 1 itt.stitch, 5 itt.sync")
        self.assertEqual(done.stderr.splitlines()[1], line)
        nvtx = helpers.build("collect_nvtx.c", "collect_nvtx", "-ldl")
        done = self.recorded(nvtx, "everything", options=["-o", "t.json"])
        self.assertIn("t.json: lost: 2 ends; not held: ", done.stderr)
        self.assertEqual(self.files(), ["t.json"])


class Debian(Case):
    """Programs of Debian, and programs with a library of Debian: the same files, output and exit code."""

    def check(self, words, mask="(?!)", **env):
        """Runs it without and with; the names in the trace, with their counts. mask: what differs from run to
        run."""
        helpers.need(words[0])
        found = []
        for command in (words, [sys.executable, helpers.NPUPROF_PY, "run", "-o", "t.json", "--", *words]):
            inputs = set(self.folder.iterdir()) if not found else inputs
            done = run(command, cwd=self.folder, env=environment(**env))
            said = [line for line in done.stderr.splitlines() if not line.startswith("npuprof: ")]
            texts = {name: (self.folder / name).read_text("latin-1") for name in self.files()
                     if name != "t.json"}
            texts.update({"standard output": done.stdout, "standard error": "\n".join(said)})
            found.append((done.returncode, {name: re.sub(mask, "", text) for name, text in texts.items()}))
            for name in self.files():
                if name != "t.json" and self.folder / name not in inputs:
                    (self.folder / name).unlink()
        self.assertEqual(found[0], found[1])
        counts = collections.Counter(e["name"] for e in events(load(self.folder / "t.json"), "X"))
        summary = next(line for line in done.stderr.splitlines() if line.startswith("npuprof: "))
        self.assertIn(f" {sum(counts.values())} spans by ITT", summary)
        print(f"note {os.path.basename(words[0])}: {sum(counts.values())} spans")
        return counts

    def test_mathicgb(self):
        """A Groebner basis, with parallel loops of oneTBB."""
        names = "abcdef"
        sums = ["+".join("".join(names[(i + j) % 6] for j in range(k)) for i in range(6))
                for k in range(1, 6)]
        lines = ["101 6 1 1 1 1 1 1 1", "6", *sums, f"{names}-1"]
        (self.folder / "cyclic.ideal").write_text("\n ".join(lines) + "\n")
        counts = self.check(["mgb", "gb", "cyclic", "-reducer", "26", "-threadCount", "1", "-outputResult"],
                            r"(?i).*time.*")
        self.assertGreater(counts["tbb_parallel_for"], 100)

    def test_flexbar(self):
        """Reads of a genome are trimmed, in a pipeline of oneTBB."""
        draw = random.Random(1)
        genome = "".join(draw.choice("ACGT") for _ in range(20000))
        (self.folder / "r.fq").write_text("".join(
            f"@r{i}\n{genome[i * 20:i * 20 + 80]}\n+\n{'I' * 80}\n" for i in range(900)))
        counts = self.check(["flexbar", "-r", "r.fq", "-n", "2", "-t", "out", "--adapter-seq", "ACGTACGTAA"],
                            r"(?im)^.*(time:|reads/s).*\n")
        self.assertEqual(set(counts), {"tbb_custom"})

    def test_openmp_of_llvm(self):
        """Parallel regions, as ITT frames. The library aborts if a collector gives it no object."""
        clang = helpers.need("clang")
        (self.folder / "omp.c").write_text(OMP)
        done = run([clang, "-fopenmp", "omp.c", "-o", "omp"], cwd=self.folder)
        if done.returncode:
            raise unittest.SkipTest("libomp of LLVM is not installed")
        counts = self.check([str(self.folder / "omp")], OMP_NUM_THREADS="2")
        self.assertEqual(sum(count for name, count in counts.items() if "$omp$parallel" in name), 5)

    def test_twopaco(self):
        """It uses oneTBB's queues and memory alone, which tell of no task."""
        helpers.need("twopaco")
        draw = random.Random(2)
        genome = "".join(draw.choice("ACGT") for _ in range(5000))
        (self.folder / "g.fa").write_text(f">a\n{genome}\n")
        done = self.recorded("twopaco", "-f", "20", "-k", "11", "-t", "2", "-o", "out.bin", "g.fa")
        self.assertIn("trace.json: 0 spans by ITT, 0 spans by NVTX\n", done.stderr)
        self.assertRegex(done.stderr, r"not held: .*itt\.sync")
        for what, why in MISSING.items():
            print(f"note {what} is not tried with Debian's software: {why}")
