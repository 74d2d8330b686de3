# NPUPROF_AUTO: every call of functions without marks, against counts of their own; threads, signals, longjmp,
# start and stop inside; the list of loaded objects, also of a killed process
# SPDX-License-Identifier: MIT
import collections
import csv
import re
import unittest

import helpers
from helpers import ROOT, environment, load, need, run, scratch

HOOKS = ("-finstrument-functions",)
FRAME = {"act", "with_threads", "with_signals", "with_library"}   # these do not count their calls
COMPILERS = {"gcc": ("-std=c11",), "clang": ("-std=c11",), "g++": ("-x", "c++", "-std=c++11"),
             "clang++": ("-x", "c++", "-std=c++11")}
RECORDED = ("gcc",) if helpers.QUICK else ("gcc", "clang")


def build_id(path):
    return re.search(r"Build ID: ([0-9a-f]+)", run(["readelf", "-n", path]).stdout)[1]


def symbols(path):
    """address in the file: name"""
    return {int(line.split()[0], 16): line.split()[2] for line in run(["nm", path]).stdout.splitlines()
            if len(line.split()) == 3 and line.split()[1] in "tT"}


class Trace:
    """What the program printed, and what its trace has."""
    def __init__(self, said, path):
        self.trace, self.path = load(path), path
        self.meta = self.trace["metadata"]["npuprof"]
        self.truth, self.names = {}, {}
        for line in said.splitlines():
            name, address, count = line.split()
            self.truth[name], self.names[address] = int(count), name
        self.spans = [e for e in self.trace["traceEvents"] if e.get("cat") == "auto" and e["ph"] in "XB"]
        for program in self.meta.get("modules", ())[:1]:
            self.symbols, self.bias = symbols(program["path"]), int(program["bias"], 16)

    def name(self, span):
        """Of an image the converter has put names in place of addresses already."""
        if not span["name"].startswith("0x"):
            return span["name"]
        address = int(span["name"], 16)
        assert span["name"] == hex(address), span
        return self.names.get(span["name"]) or self.symbols[address - self.bias]

    def counts(self):
        return collections.Counter(self.name(e) for e in self.spans)

    def around(self, name):
        """The names of the spans that are around those of that name, from the CSV."""
        with open(self.path.with_suffix(".csv"), encoding="utf-8", newline="") as file:
            rows = list(csv.DictReader(file))
        names = {row["span_id"]: row["name"] for row in rows}
        return {self.name({"name": names[row["parent_span_id"]]}) if row["parent_span_id"] else ""
                for row in rows if self.name(row) == name}

    def lost(self):
        return {cause: n for cause, n in self.meta["lost"].items() if n}


class Auto(unittest.TestCase):
    def setUp(self):
        need("nm")
        need("readelf")

    def program(self, compiler):
        """Why -O1: functions are inlined, and are recorded all the same; by gcc as if they were called."""
        return helpers.build("automatic.c", f"automatic-{compiler}", "-O1", *HOOKS, "-ldl",
                             compiler=[need(compiler)])

    def record(self, what, *arguments, compiler="gcc", **changes):
        folder = scratch() / f"{compiler}-{what}"
        folder.mkdir(exist_ok=True)
        done = run([self.program(compiler), what, *arguments], code=0, said="", cwd=folder,
                   env=environment(**changes))
        return Trace(done.stdout, folder / "t.json")

    def exact(self, trace):
        counts = trace.counts()
        self.assertEqual({name: n for name, n in counts.items() if name not in FRAME},
                         {name: n for name, n in trace.truth.items() if n})
        self.assertEqual(trace.lost(), {})
        cut = collections.Counter(trace.name(e) for e in trace.spans if e.get("args", {}).get("unfinished"))
        self.assertEqual(cut, {"jumps": trace.truth["jumps"]} if trace.truth["jumps"] else {})
        return counts

    @helpers.thorough
    def test_every_call(self):
        """Recursion, four threads, a handler of a signal that comes all the time, stop and start."""
        for compiler in RECORDED:
            with self.subTest(compiler):
                trace = self.record("calls", compiler=compiler)
                counts = self.exact(trace)
                self.assertGreaterEqual(counts["handler"], 20)
                self.assertEqual(counts["worker"], 4)
                self.assertEqual(trace.around("recursive"), {"act", "recursive"})
                self.assertEqual(trace.around("worker"), {""})
                self.assertEqual(trace.around("middle"), {"recursive", "worker", "with_signals", ""})
                self.assertLessEqual(trace.around("leaf"), {"middle", "handler"})

    def test_stop_and_start_inside(self):
        """Of nine calls in each other, those at 7 to 4 begin while recording is off, or stop it."""
        for compiler in RECORDED:
            with self.subTest(compiler):
                trace = self.record("gated", compiler=compiler)
                self.assertEqual(trace.counts()["gated"], 3 + 2)
                self.assertEqual(trace.lost(), {})
                # In whole ns. Of two that begin in one tick of the clock the longer one is outside.
                gated = sorted((round(e["ts"] * 1000), -round((e["ts"] + e["dur"]) * 1000))
                               for e in trace.spans if trace.name(e) == "gated")
                ends = [-end for _, end in gated]
                self.assertEqual(ends, sorted(ends, reverse=True), "each ends inside of the one before")

    def test_deeper_than_the_stack(self):
        trace = self.record("deep")
        counts = trace.counts()
        self.assertEqual(set(trace.lost()), {"too_deep"})
        self.assertEqual(sum(counts.values()) + trace.lost()["too_deep"],
                         sum(trace.truth.values()) + 1, "recorded + lost = executed")
        self.assertEqual(counts["middle"], 1, "what comes behind is recorded")
        self.assertEqual(trace.around("middle"), {"act"})

    def test_longjmp(self):
        trace = self.record("jumps")
        self.exact(trace)
        self.assertEqual(trace.around("catches"), {"act"})

    def test_longjmp_from_beyond_the_stack(self):
        trace = self.record("deep_jumps")
        counts = trace.counts()
        self.assertEqual(set(trace.lost()), {"too_deep"})
        self.assertEqual(sum(counts.values()) + trace.lost()["too_deep"], sum(trace.truth.values()) + 1)
        self.assertEqual(counts["catches"], 10)
        self.assertEqual(trace.around("catches"), {"act"})

    def test_categories(self):
        trace = self.record("jumps", NPUPROF_CATEGORIES="-auto")
        self.assertEqual((trace.spans, trace.lost()), ([], {}))

    def test_a_killed_process(self):
        program, folder = self.program("gcc"), scratch()
        done = run([program, "jumps"], code=-9, cwd=folder,
                   env=environment(NPUPROF_ARENA_PATH="killed.npuprof", KILLED="1"))
        run([helpers.tool("npuprof-convert"), "killed.npuprof", "-o", "killed.json"], code=0, cwd=folder)
        trace = Trace(done.stdout, folder / "killed.json")
        self.exact(trace)
        module = trace.meta["modules"][0]
        self.assertEqual((module["path"], module["build_id"]), (str(program), build_id(program)))
        for address, name in trace.names.items():
            self.assertTrue(int(module["start"], 16) <= int(address, 16) < int(module["end"], 16), name)
            self.assertEqual(trace.symbols[int(address, 16) - int(module["bias"], 16)], name)

    def test_a_library_that_is_loaded_later(self):
        source = scratch() / "plugged.c"
        source.write_text("int plugged(int n);\nstatic int inside(int n) { return n + 1; }\n"
                          "int plugged(int n) { return inside(n); }\n", encoding="utf-8")
        library = scratch() / "plugged.so"
        run([need("gcc"), "-shared", "-fPIC", "-O0", *HOOKS, "-Wl,--build-id", source, "-o", library], code=0)
        trace = self.record("library", library)
        modules = [m for m in trace.meta["modules"] if m["path"] == str(library)]
        self.assertEqual([m["build_id"] for m in modules], [build_id(library)])
        base, names = int(modules[0]["bias"], 16), symbols(library)
        inside = [names.get(int(e["name"], 16) - base) for e in trace.spans]
        self.assertEqual((inside.count("plugged"), inside.count("inside")), (5, 5))


RESOLVED = r"""
#define NPUPROF_IMPLEMENTATION
#define NPUPROF_AUTO
#include "npuprof.h"
static int one(int n) { return n + 1; }
static int two(int n) { return n + 2; }
static int chooses(int n) { return n > 3; }
typedef int add(int);
static add *resolver(void) { return chooses(2) ? two : one; }
int increment(int n) __attribute__((ifunc("resolver")));
int main(void)
{
    int sum = 0;
    for (int i = 0; i < 5; i++) sum += increment(i);
    return sum != 15;
}
"""


class BeforeMain(unittest.TestCase):
    @helpers.thorough
    def test_functions_that_the_loader_calls(self):
        """A resolver of an ifunc runs before threads have memory, in a static program."""
        source = scratch() / "resolved.c"
        source.write_text(RESOLVED)
        ways = {"-fno-PIE": ("-static", "-no-pie"), "-fPIE": ("-static-pie", "-pie")}
        for code, link in [(code, link) for code, links in ways.items() for link in links]:
            with self.subTest(link):
                program, object_ = scratch() / "resolved", scratch() / f"resolved{code}.o"
                if not object_.exists():
                    run([need("gcc"), "-O0", *HOOKS, f"-I{ROOT}", code, "-c", source, "-o", object_], code=0)
                run([need("gcc"), link, object_, "-pthread", "-o", program], code=0)
                run([program], code=0, said="", env=environment(NPUPROF_OUTPUT_PATH="resolved.json"))
                own = load(scratch() / "resolved.json")["metadata"]["npuprof"]
                self.assertEqual((own["recorded"], sum(own["lost"].values())), (6, 0))


class Library(unittest.TestCase):
    """What the library itself does under -finstrument-functions."""
    def compile(self, compiler, text, *flags):
        source, target = scratch() / "library.c", scratch() / "library.o"
        source.write_text(text, encoding="utf-8")
        run([need(compiler), *COMPILERS[compiler], *HOOKS, *flags, "-D_GNU_SOURCE", f"-I{ROOT}", "-c", source,
             "-o", target], code=0)
        return [line.split()[-1] for line in run([need("nm"), target]).stdout.splitlines()]

    def silent(self, *compilers):
        for compiler in compilers:
            names = self.compile(compiler, '#define NPUPROF_IMPLEMENTATION\n#include "npuprof.h"\n'
                                           '#include "npuprof_npu.h"\n', "-O0")
            self.assertEqual([n for n in names if "cyg_profile" in n], [], compiler)

    @helpers.thorough
    def test_no_function_of_it_calls_a_hook(self):
        self.silent("gcc")

    @helpers.thorough
    def test_nor_with_other_compilers(self):
        self.silent("clang", "g++", "clang++")

    @helpers.thorough
    def test_nor_does_an_inline_function_of_the_c_library(self):
        """clang records memcpy and others of them with _FORTIFY_SOURCE, which the hooks themselves use."""
        self.compile("clang", '#define NPUPROF_IMPLEMENTATION\n#define NPUPROF_AUTO\n'
                              '#include "npuprof.h"\n', "-O1", "-D_FORTIFY_SOURCE=2")
        calls = run([need("readelf"), "-rW", scratch() / "library.o"]).stdout
        self.assertIn("__errno_location", calls)
        self.assertNotIn("__cyg_profile", calls)

    def test_off_leaves_nothing(self):
        text = ('#define NPUPROF_OFF\n#define NPUPROF_IMPLEMENTATION\n#define NPUPROF_AUTO\n'
                '#include "npuprof.h"\nPROF_NO_AUTO int f(void);\n'
                'int f(void) { PROF_SCOPE("a"); PROF_BEGIN("b", "c"); PROF_END(); '
                'return npuprof_start(1); }\n')
        for compiler in ("gcc", "clang"):
            self.assertEqual(self.compile(compiler, text, "-O0"), ["f"], compiler)
