# test: time=400 - the compile matrix (the wide one is in `make baremetal`): every compiler, standard and
# configuration without a warning
# SPDX-License-Identifier: MIT
import concurrent.futures
import itertools
import json
import os
import shutil
import unittest

import helpers
from helpers import PROGRAMS, ROOT, run, scratch

NUMBERS = itertools.count()
MATRIX = {"gcc": ("c99", "c11", "c17"), "clang": ("c99", "c11", "c17"), "g++": ("c++11", "c++17"),
          "clang++": ("c++11", "c++17")}
FREE = ["-DNPUPROF_FREESTANDING", "-DNPUPROF_NOW()=1u", "-DNPUPROF_NOW_HZ=1000"]


def arguments(compiler, standard, *flags, source="every_macro.c"):
    language = "c++" if "++" in standard else "c"
    path = source if not isinstance(source, str) else PROGRAMS / source
    return [compiler, f"-std={standard}", *helpers.WARNINGS, f"-I{ROOT}", f"-I{PROGRAMS.parent}", "-x",
            language, *flags, "-c", path, "-o",
            # Why not /dev/null: tcc removes what is there before it writes
            scratch() / f"{next(NUMBERS)}.o"]


class Matrix(unittest.TestCase):
    def check_all(self, commands):
        """All must compile without a word. Two at a time."""
        with concurrent.futures.ThreadPoolExecutor(max(1, (os.cpu_count() or 1))) as pool:
            for command, done in zip(commands, pool.map(run, commands)):
                with self.subTest(" ".join(str(c) for c in command if c not in helpers.WARNINGS)):
                    self.assertEqual((done.returncode, done.stderr[:2000]), (0, ""))

    def cells(self, compiler, *variants):
        helpers.need(compiler)
        return [arguments(compiler, standard, *flags) for standard in MATRIX[compiler] for flags in variants]

    @helpers.thorough
    def test_in_short(self):
        """With and without an OS and the devices, by each compiler that is there; the whole matrix is for
        `make check`."""
        hosted = ["-DNPUPROF_IMPLEMENTATION", "-fsyntax-only"]
        free = ["-DNPUPROF_FREESTANDING", "-DTEST_WITH_NOW", "-ffreestanding", *hosted]
        device = [*FREE, "-ffreestanding", *hosted]
        self.check_all([arguments(compiler, MATRIX[compiler][0], *flags, source=source) for compiler in MATRIX
                        if shutil.which(compiler)
                        for flags, source in ((hosted, "every_macro.c"), (free, "every_macro.c"),
                                              (device, "npu_free.c"))])

    @helpers.thorough
    def test_freestanding(self):
        """Without an OS, on and off, as C and C++."""
        free = ["-DNPUPROF_FREESTANDING", "-DTEST_WITH_NOW", "-ffreestanding", "-O1"]
        commands = [arguments(compiler, standard, *free, *flags) for compiler in MATRIX
                    if shutil.which(compiler)
                    for standard in (MATRIX[compiler][0], MATRIX[compiler][-1])
                    for flags in (["-DNPUPROF_IMPLEMENTATION"], ["-DNPUPROF_OFF"], ["-DNPUPROF_STATIC"],
                                  ["-DNPUPROF_IMPLEMENTATION", "-DNPUPROF_NO_JSON", "-DNPUPROF_CONTEXTS=5"])]
        self.check_all(commands)

    @helpers.thorough
    def test_device_without_an_os(self):
        """npuprof_npu.h on firmware: on, off, private; as C and C++."""
        commands = [arguments(compiler, standard, *FREE, "-ffreestanding", "-O1", *flags,
                              source="npu_free.c") for compiler in MATRIX
                    if shutil.which(compiler) for standard in (MATRIX[compiler][0], MATRIX[compiler][-1])
                    for flags in ([], ["-DNPUPROF_IMPLEMENTATION"], ["-DNPUPROF_OFF"], ["-DNPUPROF_STATIC"],
                                  ["-DNPUPROF_IMPLEMENTATION", "-DNPUPROF_NO_JSON"])]
        self.check_all(commands)

    @helpers.thorough
    def test_after_headers_with_common_macros(self):
        path = scratch() / "common.c"
        path.write_text("#define min(a, b) ((a) < (b) ? (a) : (b))\n"
                        "#define max(a, b) ((a) > (b) ? (a) : (b))\n#define small char\n#define near\n"
                        "#include \"npuprof.h\"\nvoid f(int n);\nvoid f(int n)\n{\n    PROF_SCOPE(\"x\");\n "
                        "   PROF_COUNTER(\"n\", n);\n}\n")
        self.check_all([arguments(c, s, "-fsyntax-only", "-DNPUPROF_IMPLEMENTATION", source=path)
                        for c, s in (("gcc", "c11"), ("g++", "c++17")) if shutil.which(c)])

    # Names that locals and parameters of the headers have, or might get.
    COMMON = ("now last mask word c h context before after i n at count cell site token level name out "
              "first base start end used left right "
              "low high value bits next chunk slot state me owner begin hz memory bytes desc npu").split()

    @helpers.thorough
    def test_names_in_the_users_expressions(self):
        """NPUPROF_NOW(), NPUPROF_NOW_HZ and NPUPROF_CONTEXT() may call functions of any name."""
        path = scratch() / "names_of_users.c"
        functions = "".join(f"uint32_t {name}(void);\n" for name in self.COMMON)
        value = " + ".join(f"{name}()" for name in self.COMMON)
        path.write_text(f'#include <stdint.h>\n#ifdef __cplusplus\nextern "C" '
                        f'{{\n#endif\n{functions}#ifdef __cplusplus\n}}\n#endif\n'
                        f"#define NPUPROF_NOW() ({value})\n#define NPUPROF_NOW_HZ ({value})\n"
                        f"#define NPUPROF_CONTEXT() ({value})\n"
                        f'#define NPUPROF_MASK() ({value})\n'
                        f'#define NPUPROF_UNMASK(before_) ((void)(before_), (void)({value}))\n'
                        '#include "npuprof.h"\n#include "npuprof_npu.h"\n')
        self.assertGreaterEqual(len(self.COMMON), 40)
        self.check_all([arguments(compiler, standard, "-fsyntax-only", "-D_DEFAULT_SOURCE",
                                  "-DNPUPROF_IMPLEMENTATION", *free, source=path)
                        for compiler, standard in (("gcc", "c11"), ("clang++", "c++17"))
                        if shutil.which(compiler)
                        for free in ([], ["-DNPUPROF_FREESTANDING", "-DNPUPROF_CONTEXTS=5"])])

    def test_quiet_for_strict_users(self):
        """Warnings that users may have on, in a file that uses the macros: no C cast and no null that is 0 in
        C++, no comparison of reals, no cast to the same type, no else that dangles."""
        commands = []
        for compiler, standard, flags in (("g++", "c++11",
                                           ["-Wold-style-cast", "-Wzero-as-null-pointer-constant",
                                            "-Wuseless-cast"]),
                                           ("clang++", "c++17",
                                            ["-Wold-style-cast", "-Wzero-as-null-pointer-constant"]),
                                          ("gcc", "c11", []), ("clang", "c11", [])):
            if shutil.which(compiler):
                path = scratch() / "strict_user.c"
                path.write_text((PROGRAMS / "strict_user.c").read_text())
                commands += [arguments(compiler, standard, "-Wfloat-equal", "-Wdouble-promotion",
                                       "-Wdangling-else", *flags,
                                       *off, source=path)
                             for off in ([], ["-DNPUPROF_OFF"], [*FREE, "-ffreestanding"])]
        self.check_all(commands)

    @helpers.thorough
    def test_quiet_in_strict_programs(self):
        """The implementing file in programs that compile with tastes of theirs, such as zstd's flags: the
        headers silence what is inside them, and nothing behind them."""
        flags = ["-Wcast-qual", "-Wcast-align", "-Wstrict-aliasing=1", "-Wswitch-enum", "-Wpointer-arith",
                 "-Wvla", "-Wformat=2", "-Winit-self", "-Wfloat-equal", "-Wwrite-strings",
                 "-Wredundant-decls", "-Wmissing-declarations", "-Wpadded"]
        of_c = ["-Wdeclaration-after-statement", "-Wstrict-prototypes", "-Wmissing-prototypes",
                "-Wc++-compat", "-Wbad-function-cast", "-Wold-style-definition", "-Wnested-externs"]
        of_cxx = ["-Wold-style-cast", "-Wuseless-cast", "-Wzero-as-null-pointer-constant"]
        path = scratch() / "strict_program.c"
        path.write_text('#define NPUPROF_IMPLEMENTATION\n#include "npuprof.h"\n'
                        '#include "npuprof_npu.h"\n'
                        "#ifdef TASTE\nint taste(double a);\n"
                        "int taste(double a) { return a == 3; }\n#endif\n")
        strict = [(compiler, standard, [*flags, *more])
                  for compiler, standard, more in (("gcc", "c11", of_c), ("clang", "c11", ["-Weverything"]),
                                                   ("g++", "c++17", of_cxx),
                                                   ("clang++", "c++17", ["-Weverything"]))
                  if shutil.which(compiler)]
        self.check_all([arguments(compiler, standard, "-O1", "-fsyntax-only", *more, *knob,
                                  "-Wno-reserved-macro-identifier", "-Wno-unknown-warning-option",
                                  "-Wno-c++98-compat", source=path)
                        for compiler, standard, more in strict for knob in ([], ["-DNPUPROF_RECORD_ONLY"])])
        for compiler, standard, more in strict:
            done = run(arguments(compiler, standard, "-fsyntax-only", *more, "-DTASTE", source=path))
            self.assertIn("float-equal", done.stderr)

    def test_tcc(self):
        """One thread, no atomics: it compiles, runs and writes. The environment turns it on, too, though tcc
        has no constructors."""
        helpers.need("tcc")
        run(["tcc", f"-I{ROOT}", ROOT / "examples" / "01_hello.c", "-o", scratch() / "tcc"], code=0, said="")
        self.assertEqual(run([scratch() / "tcc"], env=helpers.environment()).returncode, 0)
        self.assertIn('"step"', (scratch() / "hello.json").read_text())
        path = scratch() / "tcc_environment.c"
        path.write_text('#define NPUPROF_IMPLEMENTATION\n#include "npuprof.h"\nint main(void)\n{\n'
                        '    for (int i = 0; i < 3; i++) { PROF_SCOPE_ARGS("c", "turn", '
                        'PROF_ARGS(PROF_INT("i", i), PROF_STR("s", "text"), PROF_REAL("r", 0.5))); }\n'
                        '    return 0;\n}\n')
        run(["tcc", f"-I{ROOT}", path, "-o", scratch() / "tcc_environment"], code=0, said="")
        for output in ({}, {"NPUPROF_OUTPUT_PATH": "tcc_environment.json"}):
            run([scratch() / "tcc_environment"], code=0, said="", env=helpers.environment(**output))
            self.assertEqual((scratch() / "tcc_environment.json").exists(), bool(output))
        spans = [e for e in json.loads((scratch() / "tcc_environment.json").read_text())["traceEvents"]
                 if e["ph"] == "X"]
        self.assertEqual([e["args"] for e in spans], [{"i": i, "s": "text", "r": 0.5} for i in range(3)])
        path = scratch() / "tcc_npu.c"
        path.write_text('#define NPUPROF_IMPLEMENTATION\n#include "npuprof.h"\n#include "npuprof_npu.h"\n'
                        'int main(void) { return 0; }\n')
        run(["tcc", f"-I{ROOT}", path, "-o", scratch() / "tcc_npu"], code=0, said="")

    def msvc(self, text, language, *flags):
        """clang as MSVC, without its own name and with stubs of the system's headers: the branches for
        cl.exe."""
        helpers.need("clang-19")
        folder = scratch() / "msvc"
        (folder / "sys").mkdir(parents=True, exist_ok=True)
        names = ("stdio.h string.h direct.h errno.h fcntl.h io.h stdlib.h sys/stat.h time.h windows.h "
                 "intrin.h initializer_list")
        for name in names.split():
            (folder / name).write_text('#include "windows_stub.h"\n')
        path = folder / "program.c"
        path.write_text(text)
        return run(["clang-19", "-x", language, "-std=c++17" if language == "c++" else "-std=c11",
                    "--target=x86_64-pc-windows-msvc", "-U__clang__",
                    "-fms-compatibility-version=19.38", "-ffreestanding", "-Wno-builtin-macro-redefined",
                    "-Wall", "-Werror", "-Wno-unused-function",
                    "-Wno-empty-translation-unit", f"-I{ROOT}", f"-isystem{folder}",
                    f"-isystem{helpers.TESTS / 'compile' / 'msvc'}", "-fsyntax-only", *flags, path])

    MSVC = ('#include "npuprof.h"\nint f(int n);\nint f(int n)\n{\n    npuprof_device d = { "d", NULL, '
            'NULL, false };\n    PROF_BEGIN("c", "x");\n'
            '    PROF_COUNTER("n", n);\n    PROF_COUNTER("real", n * 0.5);\n'
            '    PROF_INSTANT("c", "i", PROF_NO_ARGS);\n    PROF_BLOCK("c", "b") { n++; }\n'
            '    PROF_END();\n    for (int i = 0; i < n; i++) {\n'
            '        WITH_BASE_PROFILER(&d, "w", "c", PROF_ARGS(PROF_INT("i", i)), if (n == 7) break; if (n '
            '== 8) return 5; if (n == 9) continue; n++);\n'
            '        WITH_BASE_PROFILER(NULL, "w", "c", PROF_NO_ARGS, WITH_BASE_PROFILER(&d, "w", "c", '
            'PROF_NO_ARGS, n += 2));\n    }\n    return n;\n}\n')

    @helpers.thorough
    def test_msvc(self):
        """C and C++, with an OS and without, on and off, the implementation and its users."""
        for language in ("c", "c++"):
            for flags in ([], ["-DNPUPROF_IMPLEMENTATION"], ["-DNPUPROF_STATIC"], ["-DNPUPROF_OFF"],
                          FREE, [*FREE, "-DNPUPROF_IMPLEMENTATION"]):
                with self.subTest(language=language, flags=flags):
                    done = self.msvc(self.MSVC, language, *flags)
                    self.assertEqual((done.returncode, done.stderr[:1000]), (0, ""))
            done = self.msvc('#define NPUPROF_IMPLEMENTATION\n#include "npuprof.h"\n#ifdef __clang__\n'
                             '#error this is clang\n#endif\n', language)
            self.assertEqual((done.returncode, done.stderr[:1000]), (0, ""))

    def test_msvc_refuses_what_would_be_lost(self):
        """A declaration that nothing would end does not compile in C; it does in C++."""
        for use in ('PROF_SCOPE("a")', "PROF_FUNCTION()", 'PROF_RECORD("a")', 'PROF_PHASES("a")'):
            text = f'#include "npuprof.h"\nvoid f(void);\nvoid f(void) {{ {use}; }}\n'
            with self.subTest(use):
                done = self.msvc(text, "c")
                self.assertNotEqual(done.returncode, 0)
                self.assertIn("no_cleanup_attribute_use_PROF_BLOCK", done.stderr)
                self.assertEqual(self.msvc(text, "c++").returncode, 0)

    BLOCK = ('''#include "npuprof.h"
int f(int x);
int f(int x)
{
    for (int i = 0; i < 3; i++) {
        PROF_BLOCK("c", "block") {
            PROF_BLOCK("c", "inner") { if (x == i) break; x += 7; }
            if (i == 1) continue;
            x++;
        }
        PROF_BLOCK("c", "one statement") x++;
        PROF_COUNTER("x", x);
    }
    return x;
}
#ifdef MAIN
int main(void)
{
    npuprof_stats s;
    npuprof_sink none = { NULL, NULL };
    npuprof_start(1);
    if (f(1) != 1 + 8 + 1 + 7 + 1 + 8 + 1) return 1;
    npuprof_get_stats(&s);
    if (s.recorded != ON * 12) return 2;
    (void)none;
#ifdef NPUPROF_FREESTANDING
    const npuprof_cell_ *const end = npuprof_fw_cells_end_(npuprof_fw_arena_);
    for (const npuprof_cell_ *c = npuprof_fw_cells_(npuprof_fw_arena_); c < end; c++)
        if (c->high.half[1] & NPUPROF_CELL_OPEN_) return 3;
#endif
    return 0;
}
#endif
''')

    @helpers.thorough
    def test_block_without_a_cleanup_attribute(self):
        """PROF_BLOCK ends its span, also by break and continue, in compilers with a cleanup attribute,
        without one, and in C++."""
        path = scratch() / "block.c"
        path.write_text(self.BLOCK)
        free = [*FREE, "-DNPUPROF_IMPLEMENTATION"]
        ways = {"no cleanup": ["gcc", "-std=c11", "-U__GNUC__", "-Wno-unused-value", *free],
                "gcc": ["gcc", "-std=c11", *free],
                "hosted": ["gcc", "-std=gnu11", "-DNPUPROF_IMPLEMENTATION"],
                "clang": ["clang", "-std=c99", *free], "g++": ["g++", "-x", "c++", "-std=c++11", *free],
                "clang++": ["clang++", "-x", "c++", "-std=c++17", *free],
                "tcc": ["tcc", "-DNPUPROF_IMPLEMENTATION"], "off": ["gcc", "-std=c11", "-DNPUPROF_OFF"]}
        for name, words in ways.items():
            if shutil.which(words[0]):
                with self.subTest(name):
                    done = run([*words, "-O1", "-Wall", "-DMAIN", f"-DON={0 if name == 'off' else 1}",
                                f"-I{ROOT}", path, "-o", scratch() / "block",
                                *(["-pthread"] if name == "hosted" else [])])
                    self.assertEqual((done.returncode, done.stderr[:1000]), (0, ""))
                    self.assertEqual(run([scratch() / "block"], env=helpers.environment()).returncode, 0)

    def every_configuration(self, compiler):
        """Every standard through the front end; the newest through the optimiser, too, whose warnings are
        gcc's."""
        commands = self.cells(compiler, ["-fsyntax-only", "-DNPUPROF_IMPLEMENTATION"],
                              ["-fsyntax-only", "-DNPUPROF_STATIC"],
                              ["-fsyntax-only"], ["-fsyntax-only", "-DNPUPROF_OFF"])
        newest = MATRIX[compiler][-1]
        for flags in (["-DNPUPROF_OFF", "-DNPUPROF_IMPLEMENTATION"],
                      ["-DTEST_TWICE", "-DNPUPROF_IMPLEMENTATION"], ["-DTEST_WITH_NOW"],
                      ["-DTEST_WITH_NOW", "-DNPUPROF_IMPLEMENTATION"],
                      ["-DNPUPROF_IMPLEMENTATION", "-DNPUPROF_NO_JSON"],
                      ["-DNPUPROF_IMPLEMENTATION", "-DNPUPROF_NO_REPORTS"],
                      ["-DNPUPROF_IMPLEMENTATION", "-DNPUPROF_NO_JSON", "-DNPUPROF_NO_REPORTS"],
                      ["-DNPUPROF_IMPLEMENTATION", "-DNPUPROF_RECORD_ONLY"],
                      ["-DNPUPROF_OFF", "-DTEST_TWICE"]):
            commands.append(arguments(compiler, newest, "-fsyntax-only", *flags))
        for flags in (["-O0", "-DNPUPROF_STATIC"], ["-O2"], ["-Os"], ["-O2", "-DNPUPROF_OFF"],
                      ["-O0", "-DNPUPROF_OFF"]):
            commands.append(arguments(compiler, newest, *flags))
        if compiler in ("gcc", "g++"):
            commands.append(arguments(compiler, newest, "-O2", "-DNPUPROF_IMPLEMENTATION"))
        if "++" in compiler:
            for flags in (["-DNPUPROF_IMPLEMENTATION", "-fno-exceptions", "-fno-rtti"],
                          ["-DTEST_INSIDE_EXTERN_C"],
                          ["-DTEST_INSIDE_EXTERN_C", "-DNPUPROF_OFF"],
                          ["-DTEST_INSIDE_EXTERN_C", "-DNPUPROF_IMPLEMENTATION"]):
                commands.append(arguments(compiler, newest, "-fsyntax-only", *flags))
        self.check_all(commands)

    @helpers.thorough
    def test_gcc(self):
        self.every_configuration("gcc")

    @helpers.thorough
    def test_clang(self):
        self.every_configuration("clang")

    @helpers.thorough
    def test_gxx(self):
        self.every_configuration("g++")

    @helpers.thorough
    def test_clangxx(self):
        self.every_configuration("clang++")

    @helpers.thorough
    def test_newer_standards(self):
        """As new as the compiler knows."""
        commands = []
        for compiler, standards in {"gcc": ("c2x",), "clang": ("c2x",), "g++": ("c++20", "c++23"),
                                    "clang++": ("c++20",)}.items():
            if shutil.which(compiler):
                commands += [arguments(compiler, s, "-fsyntax-only", *f) for s in standards
                             for f in ([], ["-DNPUPROF_OFF"], ["-DNPUPROF_IMPLEMENTATION"])]
        self.check_all(commands)

    def test_tests_of_the_other_files(self):
        """The programs of the other tests, off: the same sources must compile when npuprof is out."""
        sources = ["instrumented.c", "hostile.c", "golden.c", "pipe.c", "off_sample.c"]
        self.check_all([[*helpers.CC, "-std=gnu11", *helpers.WARNINGS, "-DNPUPROF_OFF", f"-I{ROOT}",
                         f"-I{PROGRAMS.parent}", "-fsyntax-only",
                         PROGRAMS / s] for s in sources])

    @helpers.thorough
    def test_every_header_alone(self):
        """Each header in a file with nothing else, in every configuration."""
        commands = []
        for header in helpers.HEADERS:
            if not header.exists():
                continue
            for name, text in (("first", f'#include "{header.name}"\n'),
                               ("both", f'#include "npuprof.h"\n#include "{header.name}"\n')):
                if name == "first" and header.name != "npuprof.h":
                    continue
                source = scratch() / f"{name}-{header.stem}.c"
                source.write_text(text + "int some_function(void);\nint some_function(void) { return 0; }\n")
                for compiler, standard in (("gcc", "c99"), ("clang++", "c++11")):
                    if shutil.which(compiler):
                        commands += [arguments(compiler, standard, "-fsyntax-only", *flags, source=source)
                                     for flags in ([], ["-DNPUPROF_OFF"], ["-DNPUPROF_IMPLEMENTATION"],
                                                   ["-DNPUPROF_STATIC"], ["-DNPUPROF_USDT"],
                                                   ["-DNPUPROF_IMPLEMENTATION", "-DNPUPROF_AUTO"])]
        self.check_all(commands)
