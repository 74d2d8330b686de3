# NPUPROF_OFF leaves nothing: no symbol, no string, the same instructions as with the macros deleted
# SPDX-License-Identifier: MIT
import re
import shutil
import unittest

import helpers
from helpers import PROGRAMS, ROOT, need, run, scratch

COMPILERS = {"gcc": "c", "clang": "c", "g++": "c++", "clang++": "c++"}
STANDARD = {"c": "-std=c11", "c++": "-std=c++17"}


def compile_object(compiler, *flags, source="off_sample.c", what="x"):
    """The object is always called sample.o, so that its name makes no difference."""
    folder = scratch() / f"{compiler}-{what}"
    folder.mkdir(exist_ok=True)
    language = COMPILERS.get(compiler, "c")
    warnings = [] if "-DTEST_PLAIN" in flags else helpers.WARNINGS
    done = run([compiler, "-x", language, STANDARD[language], *warnings, f"-I{ROOT}", f"-I{PROGRAMS}", *flags,
                "-c",
                PROGRAMS / source, "-o", folder / "sample.o"])
    if done.returncode:
        raise AssertionError(f"{compiler} {' '.join(flags)}:\n{done.stderr[:3000]}")
    return folder / "sample.o"


def disassembly(path):
    """The instructions and relocations of all sections, without the file's name and comments."""
    done = run(["objdump", "-dr", "--no-show-raw-insn", path], code=0)
    text = done.stdout.split("\n", 3)[3]
    return re.sub(r"[ \t]+", " ", text)


def sections(path):
    """Sizes of the sections that are loaded."""
    done = run(["objdump", "-h", "-w", path])
    found = {}
    for line in done.stdout.splitlines():
        fields = line.split()
        if len(fields) > 6 and fields[0].isdigit() and "ALLOC" in line:
            found[fields[1]] = int(fields[2], 16)
    return {name: size for name, size in found.items() if size}


def symbols(path):
    return [line.split()[-1] for line in run(["nm", path]).stdout.splitlines()]


class Off(unittest.TestCase):
    def setUp(self):
        need("objdump")
        need("nm")

    def compare(self, compiler, *flags):
        off = compile_object(compiler, "-DNPUPROF_OFF", *flags, what="off")
        plain = compile_object(compiler, "-DTEST_PLAIN", *flags, what="plain")
        self.assertEqual(disassembly(off), disassembly(plain), f"{compiler} {flags}")
        self.assertEqual(sections(off), sections(plain), f"{compiler} {flags}")
        self.assertEqual(symbols(off), symbols(plain))
        self.check_nothing_left(off)

    def check_nothing_left(self, path):
        data = path.read_bytes()
        for word in (b"zebra", b"npuprof", b"NPUPROF", b"evaluated_never\0"):
            self.assertNotIn(word, data)
        self.assertFalse([s for s in symbols(path) if re.search("npuprof|evaluated_never\\b", s, re.I)])

    def same_instructions(self, compiler):
        need(compiler)
        for level in ("-O1", "-O2", "-Os"):
            with self.subTest(level=level):
                self.compare(compiler, level)
                self.compare(compiler, level, "-DTEST_WITH_API")

    @helpers.thorough
    def test_gcc(self):
        self.same_instructions("gcc")

    @helpers.thorough
    def test_clang(self):
        self.same_instructions("clang")

    @helpers.thorough
    def test_gxx(self):
        self.same_instructions("g++")

    @helpers.thorough
    def test_clangxx(self):
        self.same_instructions("clang++")

    def test_not_optimised(self):
        """At -O0: no symbol, no string, no call more."""
        for compiler in ("gcc", "clang"):
            if not shutil.which(compiler):
                continue
            with self.subTest(compiler=compiler):
                off = compile_object(compiler, "-DNPUPROF_OFF", "-O0", what="off0")
                plain = compile_object(compiler, "-DTEST_PLAIN", "-O0", what="plain0")
                self.check_nothing_left(off)
                calls = [len(re.findall(r"\bcall|\bbl\b|\bjalr\b", disassembly(p))) for p in (off, plain)]
                self.assertEqual(*calls)
                self.assertEqual(symbols(off), symbols(plain))

    def test_functions_not_optimised(self):
        """The same for the functions of the API, whose stubs must be inlined even at -O0."""
        for compiler in ("gcc", "clang"):
            if not shutil.which(compiler):
                continue
            with self.subTest(compiler=compiler):
                off = compile_object(compiler, "-DNPUPROF_OFF", "-DTEST_WITH_API", "-O0", what="off0api")
                self.assertFalse([s for s in symbols(off) if "npuprof" in s])

    def test_implementation_is_empty(self):
        """NPUPROF_IMPLEMENTATION together with NPUPROF_OFF gives an empty object."""
        off = compile_object("cc" if shutil.which("cc") else "gcc", "-DNPUPROF_OFF",
                             "-DNPUPROF_IMPLEMENTATION", "-O2", what="impl")
        self.check_nothing_left(off)

    def test_the_sample_has_everything(self):
        """Every macro and function of both headers stands in the sample."""
        sample = (PROGRAMS / "off_sample.c").read_text()
        used = set(re.findall(r"\b(?:PROF|WITH|npuprof)_\w+", sample[sample.index("int convolve(const"):]))
        for header in helpers.HEADERS:
            text = header.read_text()
            public = text[:text.index("end of header */")]
            names = set(re.findall(r"^#define ((?:PROF|WITH)_\w+[a-zA-Z])\b", public, re.M))
            names |= {n for n in re.findall(r"^NPUPROF_\w*FN_\((?:[^;]*?), (npuprof_\w+), \(", public, re.M)
                      if not n.endswith("_")}
            self.assertGreater(len(names), 10)
            self.assertEqual(sorted(names - used), [], header.name)

    def test_tcc(self):
        """tcc, which does not optimise: no string and no symbol."""
        need("tcc")
        path = scratch() / "tcc-off.o"
        run(["tcc", "-DNPUPROF_OFF", f"-I{ROOT}", "-c", PROGRAMS / "off_sample.c", "-o", path], code=0,
            said="")
        self.assertNotIn(b"zebra", path.read_bytes())
        self.assertFalse([s for s in symbols(path) if re.search("npuprof", s, re.I)])

    def test_can_fail(self):
        """The same sample, on, has symbols and strings."""
        compiler = "gcc" if shutil.which("gcc") else helpers.CC[0]
        on = compile_object(compiler, "-O2", what="on")
        self.assertIn(b"zebra convolve", on.read_bytes())
        self.assertTrue([s for s in symbols(on) if "npuprof" in s])
        self.assertNotEqual(disassembly(on),
                            disassembly(compile_object(compiler, "-DTEST_PLAIN", "-O2", what="plain")))

    def test_stubs(self):
        """Functions that are off return OK and fill what they give."""
        source = scratch() / "stubs.c"
        source.write_text('#define NPUPROF_OFF\n#include "npuprof.h"\n#include <string.h>\n'
                          'int main(void) { npuprof_stats s; memset(&s, 255, sizeof s);\n'
                          'npuprof_get_stats(&s); npuprof_sink none = { NULL, NULL };\n'
                          'return !(s.recorded == 0 && s.lost == 0 && s.bytes_total == 0 && '
                          'npuprof_init(NULL) == NPUPROF_OK &&\n'
                          'npuprof_dump("off.json") == NPUPROF_OK && npuprof_write_json(none) == NPUPROF_OK '
                          '&& npuprof_now_ns() == 0 &&\n'
                          'npuprof_set_categories("a,-b") == NPUPROF_OK && npuprof_print_summary(stdout) == '
                          'NPUPROF_OK && npuprof_result_string(NPUPROF_OK)); }\n')
        program = helpers.build(source, "stubs")
        done = run([program], env=helpers.environment(NPUPROF_OUTPUT_PATH="off.json"))
        self.assertEqual((done.returncode, done.stdout, done.stderr), (0, "", ""))
        self.assertFalse((scratch() / "off.json").exists())
