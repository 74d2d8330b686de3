# test: thorough - the arguments of the macros: PROF_ARG makes what the value's type asks for, and a
# mistake is refused with a sentence
# SPDX-License-Identifier: MIT
import json
import shutil
import unittest

import helpers
from helpers import PROGRAMS, ROOT, run, scratch

COMPILERS = (("gcc", "c99"), ("gcc", "c17"), ("clang", "c11"), ("g++", "c++11"), ("clang++", "c++17"))
# Of programs/arguments.c: name, category, arguments.
WRITTEN = [
    ("integers", None, {"letter": 97, "sc": -1, "s": -2, "i": -3, "l": -4, "ll": -5, "enum": 7}),
    ("unsigned", "c", {"uc": 1, "us": 2, "u": 3, "ul": 4, "ull": "18446744073709551615"}),
    ("others", "c", {"yes": True, "f": 0.5, "d": 0.25, "text": "text", "buffer": "buffer",
                     "literal": "literal", "none": None}),
    ("nothing", "c", None),
]
LIST = "put.the.arguments.into.PROF_ARGS"          # clang's and gcc's C have the sentence as a name
REFUSED = {                                        # statement: what the compiler says
    'PROF_INSTANT("c", "a", PROF_INT("i", 1));': LIST,
    'PROF_SCOPE_ARGS("c", "a", PROF_INT("i", 1), PROF_INT("j", 1));': LIST,
    'PROF_SCOPE_LEVEL(2, "c", "a", PROF_ARG("i", 1));': LIST,
    'PROF_INSTANT("c", "a", PROF_NO_ARGS, PROF_NO_ARGS);': LIST,
    'WITH_BASE_PROFILER(NULL, "a", "c", PROF_INT("i", 1), x++);': LIST,
    'PROF_INSTANT("c", "a", PROF_ARGS(PROF_ARG("p", p)));': "PROF_ARG_takes_integers|npuprof_arg_of_",
    'PROF_INSTANT(text, "a");': "",
    'PROF_SCOPE_ARGS("c", text);': "",
}
ACCEPTED = (
    'PROF_SCOPE_CAT(("in parentheses"), "a"); PROF_INSTANT(("c"), "i");',
    'PROF_SCOPE_ARGS(NULL, "a", PROF_NO_ARGS); PROF_SCOPE_CAT(NULL, "b"); PROF_BLOCK(NULL, "c") { x++; } '
    'PROF_INSTANT(NULL, "d");',
    'PROF_SCOPE_ARGS("c", "a"); PROF_SCOPE_LEVEL(2, "c", "b"); if (x) PROF_INSTANT("c", "i"); else x++;',
)


def command(compiler, standard, source, *flags):
    language = "c++" if "++" in compiler else "c"
    return [compiler, f"-std={standard}", "-D_GNU_SOURCE", *helpers.WARNINGS, f"-I{ROOT}", "-x", language,
            source, *flags]


def installed():
    return [pair for pair in COMPILERS if shutil.which(pair[0])]


class Arguments(unittest.TestCase):
    def check_by_type(self, compilers):
        for compiler, standard in compilers:
            with self.subTest(compiler=compiler, standard=standard):
                program = scratch() / f"{compiler}_{standard}"
                trace = program.with_suffix(".json")
                run(command(compiler, standard, PROGRAMS / "arguments.c", "-pthread", "-o", program), code=0,
                    said="")
                self.assertEqual(run([program, trace]).returncode, 0)
                events = [e for e in json.loads(trace.read_text())["traceEvents"] if e["ph"] == "i"]
                self.assertEqual([(e["name"], e.get("cat"), e.get("args")) for e in events], WRITTEN)

    def test_by_type(self):
        """PROF_ARG, in C."""
        self.check_by_type(installed()[:1])

    def test_by_type_everywhere(self):
        """PROF_ARG, in C and C++."""
        self.check_by_type(installed()[1:])

    def test_refused_and_accepted(self):
        """The same on and off, each refusal with its sentence."""
        for number, statement in enumerate([*REFUSED, *ACCEPTED]):
            source = scratch() / f"{number}.c"
            source.write_text('#include "npuprof.h"\nvoid f(int x, int *p, const char *text);\n'
                              f'void f(int x, int *p, const char *text) '
                              f'{{ (void)x; (void)p; (void)text; {statement} }}\n')
            for compiler, standard in installed():
                for off in ("-DON", "-DNPUPROF_OFF"):
                    with self.subTest(statement, compiler=compiler, off=off):
                        done = run(command(compiler, standard, source, "-fsyntax-only", off))
                        if statement in REFUSED:
                            self.assertNotEqual(done.returncode, 0)
                            self.assertRegex(done.stderr, REFUSED[statement] or "error")
                        else:
                            self.assertEqual((done.returncode, done.stderr), (0, ""))

    def test_local_array_as_category(self):
        """Its address would outlive it."""
        source = scratch() / "local.c"
        source.write_text('#include "npuprof.h"\nvoid f(void);\n'
                          'void f(void) { char text[8] = "x"; PROF_SCOPE_CAT(text, "a"); (void)text; }\n')
        for compiler, standard in installed():
            with self.subTest(compiler=compiler):
                self.assertNotEqual(run(command(compiler, standard, source, "-fsyntax-only")).returncode, 0)
