# test: time=200 - instructions and bytes that recording costs: exact numbers, which noise cannot touch
# SPDX-License-Identifier: MIT
"""Exact counts for gcc 12 -O2 on x86-64. A change of the hot path changes them: then state both numbers in
the commit, and write the new ones here. A round is what a longer call of a loop takes more than a shorter
one, less a round of the bare loop.
Without valgrind, gcc 12 or x86-64 the tests skip; `make bench` shows the same figures with any compiler."""
import os
import pathlib
import platform
import re
import shlex
import shutil
import subprocess
import tempfile
import unittest

import helpers

ROOT = pathlib.Path(__file__).resolve().parents[2]

# name: (statement, instructions, limit). The bare loop is taken off.
COUNTS = {
    "span": ('PROF_SCOPE("span"); WORK();', 49, 50),
    "span, 1 int64 argument": ('PROF_SCOPE_ARGS("c", "one", PROF_ARGS(PROF_INT("n", n))); WORK();', 61, None),
    "span, 4 arguments": ('PROF_SCOPE_ARGS("c", "four", PROF_ARGS(PROF_INT("a", n), PROF_INT("b", n), '
                          'PROF_REAL("r", 1), PROF_BOOL("d", true))); '
                          'WORK();', 177, None),
    "span, run-time name": ("WITH_BASE_PROFILER(NULL, name, NULL, PROF_NO_ARGS, WORK());", 79, 80),
    "span, constant name": ('WITH_BASE_PROFILER(NULL, "constant", "c", PROF_NO_ARGS, WORK());', 58, None),
    "PROF_NEXT": ('PROF_NEXT("next"); WORK();', 34, None),
    "instant": ('PROF_INSTANT("c", "moment", PROF_NO_ARGS);', 29, None),
    "counter": ('PROF_COUNTER("value", n);', 29, None),
    "inference": ('PROF_INFERENCE("inference"); WORK();', 61, None),
    # In a second run, with ARMED.
    "inference, armed": ('PROF_INFERENCE("inference"); WORK();', 266, None),
    "flow": ("PROF_FLOW_OUT(7);", 29, None),
    "span, PROF_RESULT": ('PROF_SCOPE("with"); PROF_RESULT(PROF_INT("n", n));', 203, None),
    "PROF_ALLOC": ('PROF_ALLOC(NULL, 64, "tag");', 295, None),
    "async begin": ('npuprof_async_begin("c", "job", 7);', 175, None),
    "npuprof_span": ('npuprof_span("track", "c", "copy", 1, 2, PROF_NO_ARGS);', 259, None),
    "function of NPUPROF_AUTO": ("HOOK(enter); WORK(); HOOK(exit);", 85, 90),
    "span, run-time name, table grown":
        ("WITH_BASE_PROFILER(NULL, later, NULL, PROF_NO_ARGS, WORK());", 150, 160),
    "span, full arena": ('PROF_SCOPE("span"); WORK();', 143, None),
    "disabled": ('PROF_SCOPE("span"); WORK();', 2, 3),
    "disabled function": ("HOOK(enter); WORK(); HOOK(exit);", 35, 35),
    "disabled inference": ('PROF_INFERENCE("inference"); WORK();', 2, 3),
}
# What 1.0 asks for where it is not reached; `make bench` says why.
GOALS = {"PROF_NEXT": 30, "span, 1 int64 argument": 60}
SITE_BYTES = 44
SITE_BYTES_LIMIT = 96
AUTO_BYTES = 27                    # of a function, by -finstrument-functions

# Why a comparison of its own: the C library chooses its strcmp by the CPU. This one is four instructions.
HEAD = r"""
#include <string.h>
static __attribute__((noinline, noclone)) int one_byte(const char *a, const char *b) { return *a - *b; }
#define strcmp one_byte
#define NPUPROF_IMPLEMENTATION
#define NPUPROF_AUTO
#include "npuprof.h"
/* As -finstrument-functions calls it, in one function for all loops. */
#define HOOK(which) __cyg_profile_func_##which((void *)(intptr_t)&main, __builtin_return_address(0))
int main(void);
#define WORK() __asm__ volatile("" ::: "memory")
#define NOINLINE __attribute__((noinline, noclone))
static volatile int64_t n = 1;
static char name[16] = "a name", later[16] = "a later name";
/* The table's first part is full of names then. */
static void grow(void)
{
    static char text[1001];
    for (int i = 0; i < 1000; i++) text[i] = 'x';
    for (int i = 1; i < 600; i++) {
        text[0] = (char)('A' + i % 2);       /* all that strcmp looks at */
        text[i] = 'y';
        PROF_BEGIN(NULL, text);
        PROF_END();
    }
}
/* From now on the arena is full. */
static void fill(void)
{
    for (int i = 0; i < NPUPROF_ARENA_BYTES / 16; i++) { PROF_SCOPE("span"); }
}
"""
LOOP = ("NOINLINE void loop_%d(int rounds);\n"
        "NOINLINE void loop_%d(int rounds) { %s for (int i = 0; i < rounds; i++) { %s WORK(); } WORK(); }\n")
SHORT, LONG, TIMES = 10, 30, 6
ARMED = {"NPUPROF_TRIGGER": "inference>1h"}       # never comes true


def built(compiler, folder):
    """One program with all loops. It calls each by functions of their own, so that callgrind tells the calls
    apart; new chunks of the arena come in between, so the smallest of several calls is taken."""
    statements = [("bare", "", ""),
                  *((name, statement, 'PROF_PHASES("first");' if name == "PROF_NEXT" else "")
                                      for name, (statement, _, _) in COUNTS.items())]
    text, calls = HEAD, ""
    for k, (name, statement, before) in enumerate(statements):
        text += LOOP % (k, k, before, statement)
        calls += "npuprof_stop();\n" if name.startswith("disabled") else ""
        calls += "grow();\n" if name.endswith("table grown") else ""
        calls += "fill();\n" if name.endswith("full arena") else ""
        calls += f"loop_{k}(3);\n"
        for time in range(TIMES):
            for rounds in (SHORT, LONG):
                text += (f"NOINLINE void call_{k}_{rounds}_{time}(void);\n"
                         f"NOINLINE void call_{k}_{rounds}_{time}(void) {{ loop_{k}({rounds}); WORK(); }}\n")
                calls += f"call_{k}_{rounds}_{time}();\n"
    path = pathlib.Path(folder) / "counts"
    path.with_suffix(".c").write_text(f"{text}int main(void) "
                                      f"{{ npuprof_start(1); (void)n; (void)name;\n{calls}return 0; }}\n",
                                      encoding="utf-8")
    subprocess.run([*compiler, "-std=gnu11", "-O2", f"-I{ROOT}", str(path.with_suffix(".c")), "-o", str(path),
                    "-pthread"], check=True)
    return path


def counts(path):
    """name: instructions a round."""
    return {**rounds_of(path, {}), "inference, armed": rounds_of(path, ARMED)["inference, armed"]}


def rounds_of(path, variables):
    """name: instructions a round, of this program with these variables."""
    out = path.with_suffix(".out")
    done = subprocess.run(["valgrind", "--tool=callgrind", "--compress-strings=no", "--compress-pos=no",
                           f"--callgrind-out-file={out}", str(path)], env={**os.environ, **variables},
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    if done.returncode:
        raise RuntimeError(done.stdout)
    cost, caller, lines = {}, "", iter(out.read_text(encoding="utf-8").splitlines())
    for line in lines:
        if line.startswith("fn="):
            caller = line[3:]
        elif line.startswith("calls=") and (match := re.fullmatch(r"call_(\d+)_(\d+)_\d+", caller)):
            key = int(match[1]), int(match[2])
            cost[key] = min(cost.get(key, 1 << 62), int(next(lines).split()[1]))
    bare, *each = ((cost[k, LONG] - cost[k, SHORT]) / (LONG - SHORT) for k in range(1 + len(COUNTS)))
    return {name: one - bare for name, one in zip(COUNTS, each)}


def site_bytes(compiler, folder):
    """Bytes that PROF_SCOPE adds to a function that calls another."""
    path = pathlib.Path(folder) / "site.c"
    path.write_text('#include "npuprof.h"\nvoid body(void);\nvoid with(void);\nvoid without(void);\n'
                    'void with(void) { PROF_SCOPE("span"); body(); body(); }\n'
                    'void without(void) { body(); body(); }\n', encoding="utf-8")
    subprocess.run([*compiler, "-std=gnu11", "-O2", "-fno-asynchronous-unwind-tables", f"-I{ROOT}", "-c",
                    str(path), "-o",
                    str(path.with_suffix(".o"))], check=True)
    sizes = {}
    for line in subprocess.run(["nm", "-S", str(path.with_suffix(".o"))], stdout=subprocess.PIPE, text=True,
                               check=True).stdout.splitlines():
        fields = line.split()
        if len(fields) == 4:
            sizes[fields[3]] = int(fields[1], 16)
    return sizes["with"] - sizes["without"]


def auto_bytes(compiler, folder):
    """Bytes that -finstrument-functions adds to a function that calls another."""
    path, sizes = pathlib.Path(folder) / "auto.c", []
    path.write_text("void body(void);\nvoid function(void);\nvoid function(void) { body(); body(); }\n",
                    encoding="utf-8")
    for flags in ([], ["-finstrument-functions"]):
        subprocess.run([*compiler, "-std=gnu11", "-O2", "-fno-asynchronous-unwind-tables", *flags, "-c",
                        str(path), "-o", str(path.with_suffix(".o"))], check=True)
        done = subprocess.run(["nm", "-S", str(path.with_suffix(".o"))], stdout=subprocess.PIPE, text=True,
                              check=True)
        sizes += [int(line.split()[1], 16) for line in done.stdout.splitlines() if line.endswith(" function")]
    return sizes[1] - sizes[0]


def figures(compiler):
    """(name, value, unit, limit) for make bench; nothing without valgrind."""
    if not shutil.which("valgrind") or not shutil.which("nm"):
        return []
    with tempfile.TemporaryDirectory() as folder:
        each = counts(built(compiler, folder))
        rows = [(f"{name}: instructions", each[name], "", GOALS.get(name, limit))
                for name, (_, _, limit) in COUNTS.items()]
        return rows + [("a call site of PROF_SCOPE", float(site_bytes(compiler, folder)), "bytes",
                        SITE_BYTES_LIMIT),
                       ("a function of NPUPROF_AUTO", float(auto_bytes(compiler, folder)), "bytes",
                        SITE_BYTES_LIMIT)]


class Instructions(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.compiler = shlex.split(os.environ.get("CC", "cc"))
        if os.environ.get("NPUPROF_TEST_CFLAGS"):
            raise unittest.SkipTest("the counts are those of a build without sanitizers")
        if platform.machine() != "x86_64":
            raise unittest.SkipTest(f"the counts are for x86-64, this is {platform.machine()}")
        version = subprocess.run([*cls.compiler, "--version"], stdout=subprocess.PIPE, text=True,
                                 check=True).stdout.splitlines()[0]
        dump = subprocess.run([*cls.compiler, "-dM", "-E", "-x", "c", os.devnull], stdout=subprocess.PIPE,
                              text=True, check=True).stdout
        if "__clang__" in dump or "__GNUC__ 12\n" not in dump:
            raise unittest.SkipTest(f"the counts are for gcc 12, this is {version}")
        folder = tempfile.TemporaryDirectory()
        cls.addClassCleanup(folder.cleanup)
        cls.program = built(cls.compiler, folder.name)

    def test_instructions(self):
        if not shutil.which("valgrind"):
            self.skipTest("valgrind is not installed")
        wrong, each = [], counts(self.program)
        for name, (_, wanted, limit) in COUNTS.items():
            if each[name] != wanted:
                wrong.append(f"{name}: {each[name]:g} instructions, {wanted} are checked in")
            if limit and each[name] > limit:
                wrong.append(f"{name}: {each[name]:g} instructions, the limit is {limit}")
        self.assertEqual(wrong, [])

    @helpers.thorough
    def test_bytes_of_a_call_site(self):
        if not shutil.which("nm"):
            self.skipTest("nm is not installed")
        with tempfile.TemporaryDirectory() as folder:
            got, auto = site_bytes(self.compiler, folder), auto_bytes(self.compiler, folder)
        self.assertLessEqual(got, SITE_BYTES_LIMIT)
        self.assertEqual(got, SITE_BYTES, f"a call site of PROF_SCOPE is {got} bytes, {SITE_BYTES} are "
                                          f"checked in")
        self.assertEqual(auto, AUTO_BYTES, f"a function is {auto} bytes longer, {AUTO_BYTES} are checked in")

    def test_clock_in_order(self):
        """The clock of bounds: no load around it may pass it, so a fence stands on both sides."""
        if not shutil.which("objdump"):
            self.skipTest("objdump is not installed")
        text = subprocess.run(["objdump", "-d", "--no-show-raw-insn",
                               "--disassemble=npuprof_clock_in_order_", str(self.program)],
                              stdout=subprocess.PIPE, text=True, check=True).stdout
        order = re.findall(r"lfence|rdtsc|call", text)        # it may call what reads the clock
        self.assertEqual((order[0], order[-1], len(order)), ("lfence", "lfence", 3), text)
