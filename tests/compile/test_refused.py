# test: time=200 - what must be refused by compiler or linker is, in words; what the library's symbols are
# SPDX-License-Identifier: MIT
import concurrent.futures
import functools
import itertools
import os
import platform
import shutil
import unittest

import helpers
from compile.test_compile import FREE, arguments
from docs import pages
from helpers import ROOT, run, scratch

REFUSED = {
    "an unbraced if": 'void f(int x); void f(int x) { if (x) PROF_SCOPE("a"); }',
    "an unbraced else": 'void f(int x); void f(int x) { if (x) { } else PROF_SCOPE("a"); }',
    "an unbraced for": 'void f(int x); void f(int x) { for (; x; x--) PROF_RECORD("a"); }',
    "a run-time name of a block": 'void f(const char *n); void f(const char *n) { PROF_BLOCK("c", n) { } }',
    "an unbraced if with arguments": 'void f(int x); void f(int x) { if (x) PROF_SCOPE_ARGS("c", "a", '
                                     'PROF_NO_ARGS); }',
    "a run-time name of a scope": 'void f(const char *n); void f(const char *n) { PROF_SCOPE(n); }',
    "a run-time category": 'void f(const char *n); void f(const char *n) { PROF_SCOPE_CAT(n, "a"); }',
    "a run-time name of a counter": 'void f(const char *n); void f(const char *n) { PROF_COUNTER(n, 1); }',
    "a run-time name of an instant": 'void f(const char *n); void f(const char *n) { PROF_INSTANT("c", n, '
                                     'PROF_NO_ARGS); }',
    "a run-time phase": 'void f(const char *n); void f(const char *n) { PROF_PHASES("a"); PROF_NEXT(n); }',
    "a run-time key": 'void f(const char *n); void f(const char *n) { PROF_SCOPE_ARGS("c", "a", '
                      'PROF_ARGS(PROF_INT(n, 1))); }',
    "a struct as value": 'struct s { int a; }; void f(struct s v); void f(struct s v) { PROF_COUNTER("a", '
                         'v); }',
    "a number as name": 'void f(void); void f(void) { PROF_RECORD(5.5); }',
    "a number as text": 'void f(void); void f(void) { PROF_SCOPE_ARGS("c", "a", PROF_ARGS(PROF_STR("s", '
                        '5.5))); }',
    "a result without PROF_INT": 'void f(int x); void f(int x) { PROF_RESULT("status", x); }',
    "arguments without PROF_ARG": 'void f(int x); void f(int x) { PROF_SCOPE_ARGS("c", "a", PROF_ARGS("x", '
                                  'x)); }',
    "PROF_NEXT without PROF_PHASES": 'void f(void); void f(void) { PROF_NEXT("a"); }',
    "an undeclared variable": 'void f(void); void f(void) { PROF_COUNTER("a", not_declared); }',
    "no level": 'struct s { int a; }; void f(struct s v); void f(struct s v) { PROF_SCOPE_LEVEL(v, "c", '
                '"a", PROF_NO_ARGS); }',
    "a device of another type": 'void f(int *d); void f(int *d) { WITH_BASE_PROFILER(d, "a", "c", '
                                'PROF_NO_ARGS, (void)0); }',
    "a case that begins with a scope in C": 'void f(int x); void f(int x) { switch (x) { case 1: '
                                            'PROF_SCOPE("a"); break; } }',
}
# What a language forbids or not: a jump over the end of a scope. gcc's C takes it without a word, clang's C
# and C++ refuse it; on and off.
JUMPS = {
    "goto": 'void f(int x); void f(int x) { if (x) goto out; PROF_SCOPE("a"); work(); PROF_SCOPE_ARGS("c", '
            '"b", PROF_ARGS(PROF_INT("x", x))); work(); out: work(); }',
    "case": 'void f(int x); void f(int x) { switch (x) { case 1: work(); PROF_RECORD("a"); work(); break; '
            'case 2: work(); } }',
    "phases": 'void f(int x); void f(int x) { if (x) goto out; PROF_PHASES("a"); work(); PROF_NEXT("b"); '
              'out: work(); }',
    "backwards": 'void f(int x); void f(int x) { again: work(); { PROF_SCOPE("a"); if (x--) goto again; } }',
}
ACCEPTED = {
    "a braced if": 'void f(int x); void f(int x) { if (x) { PROF_SCOPE("a"); } }',
    "a list without arguments": 'void f(void); void f(void) { PROF_SCOPE_ARGS("c", "a", PROF_ARGS()); }',
    "a literal in parts": 'void f(void); void f(void) { PROF_SCOPE("a" "b"); }',
    "an unbraced if of a block": 'void f(int x); void f(int x) { if (x) PROF_BLOCK("c", "a") { x++; } else '
                                 'PROF_BLOCK("c", "b") { x--; } }',
    "an unbraced for of a block": 'void f(int x); void f(int x) { for (; x; x--) PROF_BLOCK("c", "a") { if '
                                  '(x == 3) continue; if (x == 5) break; } }',
    "a case that begins with a block": 'void f(int x); void f(int x) { switch (x) { case 1: PROF_BLOCK("c", '
                                       '"a") { x++; } break; default: break; } }',
    "an unbraced if of code": 'void f(int x); void f(int x) { if (x) WITH_BASE_PROFILER(NULL, "a", "c", '
                              'PROF_NO_ARGS, x++); else x--; }',
    "an unbraced if of a statement": 'void f(int x); void f(int x) { if (x) PROF_COUNTER("a", x); else '
                                     'PROF_INSTANT("c", "b", PROF_NO_ARGS); }',
}


RUN_TIME_NAMES = ("PROF_SCOPE(n);", 'PROF_SCOPE_CAT("c", n);', 'PROF_BLOCK("c", n) { x++; }',
                  'PROF_SCOPE_ARGS("c", n, PROF_ARGS(PROF_INT("a", x)));', 'PROF_INSTANT("c", n);',
                  "PROF_COUNTER(n, x);", 'PROF_PHASES("a"); PROF_NEXT(n);')
FRONT_ENDS = ("gcc -std=c99", "gcc -std=c11", "gcc -std=c2x", "clang -std=c99", "clang -std=c11",
              "clang -std=c2x", "g++ -xc++ -std=c++11", "g++ -xc++ -std=c++20", "clang++ -xc++ -std=c++11",
              "clang++ -xc++ -std=c++20")


class Refused(unittest.TestCase):
    """ON and OFF take and refuse the same."""

    @helpers.thorough
    def test_refused_and_accepted(self):
        if not shutil.which("gcc") and not shutil.which("clang++"):
            self.skipTest("neither gcc nor clang++ is installed")
        rows = []
        for name, code in list(REFUSED.items()) + list(ACCEPTED.items()):
            path = scratch() / (name.replace(" ", "_") + ".c")
            path.write_text(f'#include "npuprof.h"\n{code}\n')
            # both languages, both front ends
            for compiler, standard in (("gcc", "c11"), ("clang++", "c++11")):
                if not shutil.which(compiler) or ("in C" in name and "++" in compiler):
                    continue
                for flags in ([], ["-DNPUPROF_OFF"]):
                    rows.append((name, compiler, flags,
                                 arguments(compiler, standard, "-fsyntax-only", *flags, source=path)))
        with concurrent.futures.ThreadPoolExecutor(max(1, (os.cpu_count() or 1))) as pool:
            for (name, compiler, flags, _), done in zip(rows, pool.map(lambda row: run(row[3]), rows)):
                with self.subTest(name, compiler=compiler, flags=flags):
                    if name in REFUSED:
                        self.assertNotEqual(done.returncode, 0)
                    else:
                        self.assertEqual((done.returncode, done.stderr), (0, ""))

    @helpers.thorough
    def test_jumps(self):
        """gcc takes a jump past a scope without a warning at every level; clang and C++ refuse it, OFF as
        ON."""
        commands, wanted = [], []
        for name, code in JUMPS.items():
            path = scratch() / f"jump_{name}.c"
            path.write_text(f'#include "npuprof.h"\nvoid work(void);\n{code}\n')
            for compiler, standard in (("gcc", "c11"), ("clang", "c11"), ("g++", "c++11"),
                                       ("clang++", "c++11")):
                for flags in itertools.product(["-O0", "-O1", "-O2", "-O3", "-Os"]
                                               if compiler == "gcc" else ["-O0"], ["-DON", "-DNPUPROF_OFF"]):
                    if shutil.which(compiler):
                        commands.append(arguments(compiler, standard, *flags, source=path))
                        wanted.append(compiler == "gcc" or name == "backwards")
        self.assertTrue(commands)
        with concurrent.futures.ThreadPoolExecutor(max(1, (os.cpu_count() or 1))) as pool:
            for command, want, done in zip(commands, wanted, pool.map(run, commands)):
                with self.subTest(" ".join(str(c) for c in command if c not in helpers.WARNINGS)):
                    self.assertEqual((done.returncode == 0, done.stderr[:500] if want else ""), (want, ""))

    @helpers.thorough
    def test_words_for_a_run_time_name(self):
        """Ours, in every language and front end; they say what to use."""
        for compiler, use in itertools.product(FRONT_ENDS, RUN_TIME_NAMES):
            with self.subTest(compiler=compiler, use=use):
                path = scratch() / "name.c"
                path.write_text('#include "npuprof.h"\nvoid f(const char *n, int x);\n'
                                f"void f(const char *n, int x) {{ (void)n; {use} }}\n")
                words = [helpers.need(compiler.split()[0]), *compiler.split()[1:], f"-I{ROOT}"]
                done = run([*words, "-fsyntax-only", path])
                self.assertNotEqual(done.returncode, 0)
                self.assertRegex(done.stderr, "must.be.a.*literal.*use.WITH_BASE_PROFILER.or.PROF_BEGIN")
                right = use.replace("n)", '"n")').replace("n,", '"n",')
                path.write_text(path.read_text().replace(use, right))
                self.assertEqual(run([*words, "-fsyntax-only", "-Wall", "-Wextra", "-Werror",
                                      "-Wno-unused-parameter", path]).stderr, "")

    def test_npu_header_first(self):
        """One sentence, and nothing else."""
        path = scratch() / "npu_first.c"
        alone = '#include "npuprof_npu.h"\nint main(void) { return 0; }\n'
        for text, flags in ((alone, []), (alone, ["-DNPUPROF_IMPLEMENTATION"]),
                            ('#include "npuprof.h"\n#define NPUPROF_IMPLEMENTATION\n' + alone, [])):
            path.write_text(text)
            done = run([*helpers.CC, *flags, f"-I{ROOT}", "-Wall", "-fsyntax-only", path])
            self.assertEqual((done.returncode != 0, done.stderr.count("error:")), (True, 1),
                             done.stderr[:1000])
            self.assertNotIn("warning:", done.stderr)

    def test_c89(self):
        """One sentence, and nothing else."""
        for flags in (["-std=c89"], ["-std=gnu89"], ["-std=c89", "-DNPUPROF_IMPLEMENTATION"]):
            path = scratch() / "c89.c"
            path.write_text('#include "npuprof.h"\n')
            done = run([*helpers.CC, *flags, f"-I{ROOT}", "-fsyntax-only", path])
            self.assertEqual((done.returncode != 0, done.stderr.count("error:")), (True, 1),
                             done.stderr[:1000])
            self.assertIn("this is C89; compile with -std=c99 or later", done.stderr)

    def sentence(self, text, *flags, source='#include "npuprof.h"\n', standard="c11", syntax=True):
        path = scratch() / "sentence.c"
        path.write_text(source)
        done = run([*helpers.CC, f"-std={standard}", f"-I{ROOT}", *(["-fsyntax-only"] if syntax else []),
                    *flags, path])
        self.assertNotEqual(done.returncode, 0, f"{flags} was taken")
        self.assertIn(text, done.stderr)

    def test_knobs_out_of_range(self):
        self.sentence("NPUPROF_ARENA_BYTES must be at least", "-DNPUPROF_ARENA_BYTES=100")
        self.sentence("NPUPROF_SCRATCH_BYTES must be at least", "-DNPUPROF_SCRATCH_BYTES=100")
        self.sentence("NPUPROF_NOW_BITS must be", "-DNPUPROF_NOW_BITS=7")
        self.sentence("NPUPROF_NOW_BITS must be", "-DNPUPROF_NOW_BITS=65")
        self.sentence("NPUPROF_NOW_HZ", "-DNPUPROF_NOW()=1u")
        self.sentence("NPUPROF_WHEN_FULL must be", "-DNPUPROF_WHEN_FULL=3", *FREE)
        self.sentence("on a host set npuprof_desc", "-DNPUPROF_WHEN_FULL=1")
        self.sentence("must be at most 1 MiB", "-DNPUPROF_WHEN_FULL=1", "-DNPUPROF_ARENA_BYTES=2000000",
                      *FREE)
        self.sentence("NPUPROF_CORES must be", "-DNPUPROF_CORES=0", *FREE)
        for count in (8, 100, 2097152):
            self.sentence("NPUPROF_AUTO_FUNCTIONS must be", f"-DNPUPROF_AUTO_FUNCTIONS={count}")
        self.sentence("NPUPROF_AUTO is for systems with an OS", "-DNPUPROF_AUTO", *FREE)
        for call in ("npuprof_npu_drain(&npu)", "npuprof_npu_job(&npu)", "npuprof_npu_set_job(&npu, 1)",
                     "npuprof_npu_host_ns(&npu, 1, 0, 0)"):
            self.sentence("not with NPUPROF_FREESTANDING: ", *FREE,
                          source=f'#include "npuprof.h"\n#include "npuprof_npu.h"\nvoid f(void);\n'
                                 f'npuprof_npu npu;\nvoid f(void) {{ (void){call}; }}\n')
        if helpers.CC[0] in ("gcc", "cc") and platform.machine() == "x86_64":
            use = ('#include "npuprof.h"\nvoid f(double *d);\n'
                   'void f(double *d) { PROF_INSTANT("c", "n", PROF_ARGS(PROF_REAL("x", *d))); }\n')
            for flags, source in ((["-c", "-O1", "-o", os.devnull], use),
                                  (["-c", "-O0", "-o", os.devnull], use)):
                self.sentence("PROF_REAL needs floating point, which this target does not have", *FREE,
                              "-mno-sse", "-ffreestanding", *flags, source=source, syntax=False)
        self.sentence("another header has PROF_SCOPE", source='#define PROF_SCOPE(x)\n#include "npuprof.h"\n')
        self.sentence("strict -std hides",
                      source='#include <stdio.h>\n#define NPUPROF_IMPLEMENTATION\n#include "npuprof.h"\n')

    @helpers.thorough
    def test_all_knobs_at_their_ends(self):
        path = scratch() / "ends.c"
        path.write_text('#define NPUPROF_IMPLEMENTATION\n#include "npuprof.h"\n')
        for flags in (["-DNPUPROF_ARENA_BYTES=2048"],
                      ["-DNPUPROF_NOW()=1u", "-DNPUPROF_NOW_HZ=1", "-DNPUPROF_NOW_BITS=8"],
                      ["-DNPUPROF_NOW()=1ull", "-DNPUPROF_NOW_HZ=4000000000", "-DNPUPROF_NOW_BITS=64"]):
            with self.subTest(flags=flags):
                done = run([*helpers.CC, "-std=c11", *helpers.WARNINGS, f"-I{ROOT}", "-fsyntax-only", *flags,
                            path])
                self.assertEqual((done.returncode, done.stderr[:1000]), (0, ""))

    def test_deprecated_knobs(self):
        """Each that the reference calls so says it while compiling, and stops no strict build."""
        path = scratch() / "deprecated.c"
        path.write_text('#include "npuprof.h"\n')
        for name in sorted(pages.deprecated_knobs()):
            for standard, words in (("gnu11", "warning"), ("c11", "message")):
                done = run([*helpers.CC, f"-std={standard}", f"-I{ROOT}", "-fsyntax-only", f"-D{name}=1024",
                            *(["-Wpedantic", "-Werror"] if standard == "c11" else []), path])
                self.assertEqual(done.returncode, 0, done.stderr)
                self.assertRegex(done.stderr, rf"{words}.*\bnpuprof\.h: {name} is deprecated; leave it out")


class Link(unittest.TestCase):
    """Files that disagree do not link, and the missing symbol tells why; files that agree do."""

    NOW = ["-DNPUPROF_NOW()=1u", "-DNPUPROF_NOW_HZ=1000"]

    def setUp(self):
        self.folder = scratch() / "link"
        self.folder.mkdir(exist_ok=True)

    @staticmethod
    @functools.cache
    def object(name, text, *flags):
        folder = scratch() / "link"
        (folder / f"{name}.c").write_text(text)
        run([*helpers.CC, "-std=gnu11", "-O0", f"-I{ROOT}", "-c", *flags, f"{name}.c", "-o", f"{name}.o"],
            code=0, cwd=folder)
        return f"{name}.o"

    def use(self, name, *flags, main=False):
        return self.object(name, '#include "npuprof.h"\n'
                           + (f'int main(void) {{ PROF_SCOPE("{name}"); return 0; }}\n' if main else
                                                             f'void {name}(void);\nvoid {name}(void) '
                                                             f'{{ PROF_SCOPE("{name}"); }}\n'), *flags)

    def implementation(self, name, *flags):
        return self.object(name, '#define NPUPROF_IMPLEMENTATION\n#include "npuprof.h"\n', *flags)

    def link(self, *objects):
        return run([*helpers.CC, *objects, "-o", "program", "-pthread"], cwd=self.folder)

    @helpers.thorough
    def test_disagree_on_the_clock(self):
        done = self.link(self.use("main_now", *self.NOW, main=True), self.implementation("plain"))
        self.assertNotEqual(done.returncode, 0)
        self.assertIn("NPUPROF_NOW", done.stderr)
        done = self.link(self.use("main_plain", main=True), self.implementation("now", *self.NOW))
        self.assertNotEqual(done.returncode, 0)
        self.assertIn("without_NPUPROF_NOW", done.stderr)

    @helpers.thorough
    def test_agree(self):
        done = self.link(self.use("one", main=True), self.use("two"), self.use("off", "-DNPUPROF_OFF"),
                         self.use("own", "-DNPUPROF_STATIC"),
                         self.use("own2", "-DNPUPROF_STATIC"), self.implementation("plain"))
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual(run([self.folder / "program"], env=helpers.environment()).returncode, 0)
        done = self.link(self.use("main_now", *self.NOW, main=True), self.implementation("now", *self.NOW))
        self.assertEqual(done.returncode, 0, done.stderr)

    @helpers.thorough
    def test_static_is_private(self):
        done = run(["nm", "-g", "--defined-only", self.folder / self.use("own", "-DNPUPROF_STATIC")])
        self.assertEqual([line.split()[-1] for line in done.stdout.splitlines()], ["own"])

    @helpers.thorough
    def test_remedies(self):
        """What the linker calls missing says what to do; gcc and clang, C and C++."""
        list_file = self.folder / "exports.map"
        list_file.write_text("{ global: mine*; local: *; };\n")
        uses = '#include "npuprof.h"\nint main(void) { PROF_SCOPE("a"); return 0; }\n'
        device = ('#include "npuprof.h"\n#include "npuprof_npu.h"\nstatic npuprof_npu npu;\n'
                  'int main(void) { (void)npuprof_npu_open(&npu, 0); npuprof_npu_close(&npu); return 0; }\n')
        of_both = '#define NPUPROF_IMPLEMENTATION\n#include "npuprof.h"\n#include "npuprof_npu.h"\n'
        exports = "-fPIC", "-shared", f"-Wl,--version-script={list_file}"
        one, npu = "define_NPUPROF_IMPLEMENTATION_in_one_file", "include_npuprof_npu_h_in_the_file_with"
        for words in (["gcc"], ["clang"], ["g++", "-xc++"], ["clang++", "-xc++"]):
            def made(output, *arguments):
                return run([helpers.need(words[0]), "-D_GNU_SOURCE", f"-I{ROOT}", "-pthread", *words[1:],
                            *arguments, "-o", self.folder / output])
            for name, text in (("uses", uses), ("device", device), ("both", of_both),
                               ("plain", of_both.replace('#include "npuprof_npu.h"\n', ""))):
                (self.folder / f"{name}.c").write_text(text)
                self.assertEqual(made(f"{name}.o", "-c", "-fPIC", self.folder / f"{name}.c").stderr, "")
            uses_o, device_o, both, plain = ([words[0], self.folder / f"{n}.o"]
                                             for n in ("uses", "device", "both", "plain"))
            lib = self.folder / "list.so"
            self.assertEqual(run([*both, *exports, "-pthread", "-o", lib]).stderr, "")
            for name, command, text in (("nobody", uses_o, one), ("hidden", [*uses_o, lib], one),
                                        ("hidden", [*uses_o, lib], "and_export_npuprof_names"),
                                        ("no npu", [*device_o, plain[-1]], npu),
                                        ("npu hidden", [*device_o, lib], "and_export_npuprof_names")):
                with self.subTest(compiler=words[0], mistake=name):
                    done = run([*command, "-pthread", "-o", self.folder / "program"])
                    self.assertNotEqual(done.returncode, 0)
                    self.assertIn(text, done.stderr)
            for of in (uses_o, device_o):
                self.assertEqual(run([*of, both[-1], "-pthread", "-o", self.folder / "program"]).stderr, "")

    @helpers.thorough
    def test_exports_are_ours(self):
        """The implementing file adds no name to the linker's space but npuprof_*."""
        done = run(["nm", "-g", "--defined-only", self.folder / self.implementation("plain")])
        names = [line.split()[-1] for line in done.stdout.splitlines()]
        self.assertTrue(names)
        self.assertEqual([n for n in names if not n.startswith("npuprof_")], [])

    def test_no_heap(self):
        """No allocation, printing to stdout, thread, process or network, seen from the symbols it needs."""
        done = run(["nm", "-u", self.folder / self.implementation("plain")])
        needed = {line.split()[-1].split("@")[0] for line in done.stdout.splitlines()}
        self.assertEqual(needed & {"malloc", "calloc", "realloc", "free", "printf", "puts", "abort", "exit",
                                   "pthread_create", "strdup", "socket", "connect", "getaddrinfo", "fork",
                                   "system", "popen", "setitimer", "timer_create"}, set())
