# test: time=200 - fork, exec, spawn, daemons, ends of all kinds; plugins; several files, libraries and C++ in
# one process
# SPDX-License-Identifier: MIT
import collections
import contextlib
import signal
import subprocess
import time
import unittest

import helpers
from helpers import PROGRAMS, environment, events, load, run

HEADER = "#include \"npuprof.h\"\n"
IMPLEMENTATION = "#define NPUPROF_IMPLEMENTATION\n" + HEADER


class Living(helpers.Folder):
    SOURCE = "living.c"
    WHOLE = {"before": 10, "open": 1, "after": 10}

    @contextlib.contextmanager
    def going(self, **env):
        """The program records, a hundred spans at least, and is killed at the end; its pid."""
        with subprocess.Popen([self.program, "forever"], cwd=self.folder, env=environment(**env),
                              stdout=subprocess.PIPE) as process:
            try:
                self.assertEqual(process.stdout.readline(), b"going\n")
                yield process.pid
            finally:
                process.kill()


class Processes(Living):
    def by_pid(self):
        return {self.read(name)["metadata"]["npuprof"]["pid"]: name for name in self.files()}

    MODES = (dict(NPUPROF_OUTPUT_PATH="t.json"), dict(NPUPROF_ARENA_PATH="t.npuprof"),
             dict(NPUPROF_OUTPUT_PATH="t.npuprof", NPUPROF_WHEN_FULL="stream"))

    def each_mode(self):
        """Why no subTest: it would see a failure in the loop as the end of this generator."""
        for mode in self.MODES:
            self.empty()
            yield mode, next(iter(mode.values()))

    def test_fork(self):
        """Parent, child and grandchild go on, each with a file of its own."""
        for mode, plain in self.each_mode():
            self.quiet("fork", **mode)
            self.assertEqual(len(self.files()), 3, self.files())
            self.assertIn(plain, self.files())
            self.assertEqual(self.counts(plain), {**self.WHOLE, "beside the child": 7})
            others = [self.counts(name) for name in self.files() if name != plain]
            self.assertIn({"of the child": 20, "of the child, later": 5}, others)
            self.assertIn({"of the grandchild": 30}, others)
            for pid, name in self.by_pid().items():
                self.assertIn(name, (plain, plain.replace("t.", f"t-{pid}.")))

    def test_scopes_of_the_parent_end_in_the_child(self):
        """They end nothing of the child's: its span by hand is as long as it was, and not cut."""
        for mode, _ in self.each_mode():
            self.quiet("scopes", **mode)
            self.assertEqual(len(self.files()), 3, self.files())
            counts = [self.counts(name) for name in self.files()]
            for own in ({"scope": 1, "phase": 1, "block": 1, "next": 1},
                        {"by hand": 1, "scope": 1, "phase": 1, "block": 1, "next": 2},
                        {"by hand": 1, "next": 1}):
                self.assertIn(own, counts)
            for name in self.files():
                for span in events(self.read(name), "X", "by hand"):
                    self.assertGreater(span["dur"], 15000, span)
                    self.assertNotIn("unfinished", span.get("args", {}))

    def test_fork_with_pid_in_the_path(self):
        self.quiet("fork", NPUPROF_ARENA_PATH="t.%p.npuprof")
        self.assertEqual(sorted(self.by_pid().values()), self.files())
        for pid, name in self.by_pid().items():
            self.assertEqual(name, f"t.{pid}.npuprof")

    def test_fork_with_instance_in_the_path(self):
        self.quiet("fork", NPUPROF_ARENA_PATH="t.%i.npuprof")
        self.assertEqual(len(self.files()), 3, self.files())
        self.assertEqual(len(self.by_pid()), 3)

    @helpers.thorough
    def test_children_that_only_exec_leave_nothing(self):
        """fork + exec, vfork + exec, posix_spawn of a program without npuprof: one file, the parent's."""
        program = helpers.need("true")
        for how in ("forkexec", "vfork", "spawn"):
            for mode, plain in self.each_mode():
                self.quiet(how, program, **mode)
                self.assertEqual(self.files(), [plain], how)
                self.assertEqual(self.counts(plain), self.WHOLE, how)

    def test_exec_of_an_instrumented_program(self):
        """Started by an instrumented parent, an instrumented child does not overwrite the parent's file with
        %p in the path."""
        for how in ("forkexec", "vfork", "spawn"):
            for mode, plain in self.each_mode():
                mode = {key: value.replace("t.", "t.%p.") for key, value in mode.items()}
                self.quiet(how, self.program, "quick", **mode)
                self.assertEqual(len(self.files()), 2, (how, self.files()))
                for name in self.files():
                    self.assertEqual(self.counts(name), self.WHOLE)

    def test_exec_of_itself(self):
        """What was recorded before exec is in the mapped file, which the next program moves aside."""
        self.quiet("exec", self.program, "quick", NPUPROF_ARENA_PATH="t.npuprof")
        self.assertEqual(len(self.files()), 2, self.files())
        self.assertEqual(self.counts("t.npuprof"), self.WHOLE)
        (other,) = [name for name in self.files() if name != "t.npuprof"]
        self.assertEqual(other, "t.1.npuprof")
        trace = self.read(other)
        self.assertEqual(self.counts(other), {"before": 10, "open": 1})
        (open_one,) = events(trace, "X", "open")
        self.assertIs(open_one["args"]["unfinished"], True)

    def test_daemon(self):
        """Two forks before the first record: the daemon's trace is written, and nobody else's. It has ended
        when its stdout is closed, for which run() waits."""
        for mode, plain in self.each_mode():
            self.quiet("daemon", **mode)
            found = [self.counts(name) for name in self.files()]
            self.assertIn({"daemon": 10}, found, self.files())

    def test_ends(self):
        """However it ends, the mapped file holds it all; what was open is marked."""
        for how, code in (("quick", 0), ("_exit", 0), ("kill", -signal.SIGKILL), ("abort", -signal.SIGABRT),
                          ("segv", -signal.SIGSEGV)):
            with self.subTest(how=how):
                self.empty()
                self.quiet(how, code=code, NPUPROF_ARENA_PATH="t.npuprof")
                self.assertEqual(self.files(), ["t.npuprof"])
                self.assertEqual(self.counts("t.npuprof"), self.WHOLE)
                (span,) = events(self.read("t.npuprof"), "X", "open")
                self.assertEqual(span.get("args", {}).get("unfinished", False), how != "quick")

    def test_exit_from_a_thread(self):
        for mode, plain in self.each_mode():
            self.quiet("thread", **mode)
            self.assertEqual(self.files(), [plain])
            self.assertEqual(self.counts(plain), {"before": 10, "open": 1, "of the thread": 3})

    def test_times_of_a_short_life(self):
        """A program that ends in a millisecond, or is killed: its spans lie where they were on the clock, and
        take no longer than it."""
        for how, code in (("quick", 0), ("kill", -signal.SIGKILL)):
            with self.subTest(how=how):
                self.empty()
                before = time.time_ns()
                self.quiet(how, code=code, NPUPROF_ARENA_PATH="t.npuprof")
                after = time.time_ns()
                trace = self.read("t.npuprof")
                start = trace["metadata"]["npuprof"]["start_unix_ns"]
                self.assertTrue(before <= start <= after, (before, start, after))
                spans = events(trace, "X")
                for span in spans:
                    self.assertTrue(0 <= span["ts"] * 1000 <= after - start, span)
                    self.assertTrue(0 <= span["dur"] * 1000 <= after - before, span)
                names = [span["name"] for span in sorted(spans, key=lambda s: s["ts"])]
                self.assertEqual(names, ["before"] * 10 + ["open"] + ["after"] * 10)
                # Ten empty spans one after the other take microseconds, not milliseconds and not nothing; but
                # for some of them, if the machine did something else meanwhile.
                ten = [s for s in spans if s["name"] == "after"]
                self.assertGreater(ten[-1]["ts"] + ten[-1]["dur"] - ten[0]["ts"], 0)
                self.assertLess(sum(sorted(s["dur"] for s in ten)[:5]), 5000, ten)

    def test_killed_from_outside(self):
        for _ in range(5):
            with self.going(NPUPROF_ARENA_PATH="k.%p.npuprof") as pid:
                pass
            counts = self.counts(f"k.{pid}.npuprof")
            self.assertGreaterEqual(counts["again"], 100)
            self.assertEqual(counts["before"], 10)

    def test_killed_while_streaming_and_read_by_the_converter(self):
        with self.going(NPUPROF_OUTPUT_PATH="s.%p.npuprof", NPUPROF_WHEN_FULL="stream",
                        NPUPROF_ARENA_PATH="m.%p.npuprof") as pid:
            pass
        self.assertGreaterEqual(self.counts(f"m.{pid}.npuprof")["again"], 100)


class Plugins(helpers.Folder):
    """An instrumented plugin that is unloaded: its names stay readable, and another one at its address has
    its own."""

    def build(self, name, source, *flags):
        return helpers.compile_text(source, self.folder / name, "-std=gnu11", *helpers.WARNINGS, *flags,
                                    "-ldl")

    PLUGIN = r"""
#include "npuprof.h"
void work(int n);
void work(int n)
{
    PROF_SCOPE_CAT("CATEGORY", "@ scope");
    { PROF_SCOPE_ARGS("CATEGORY", "@ args", PROF_ARGS(PROF_INT("@ key", n), PROF_STR("@ text", "@ value"))); }
    WITH_BASE_PROFILER(NULL, "@ block", "CATEGORY", PROF_NO_ARGS, (void)n);
    PROF_COUNTER("@ counter", n);
    PROF_INSTANT("CATEGORY", "@ instant", PROF_NO_ARGS);
    PROF_THREAD_NAME("@ thread");
}
"""
    HOST = r"""
#include <dlfcn.h>
#include <stdlib.h>
HOW
int main(int argc, char **argv)
{
    const char *output = argv[1];
    npuprof_start(1);
    for (int round = 0; round < 3; round++)
        for (int i = 2; i < argc; i++) {
            void *plugin = dlopen(argv[i], RTLD_NOW | RTLD_LOCAL);
            if (!plugin) { fprintf(stderr, "%s\n", dlerror()); return 3; }
            void (*work)(int);
            *(void **)&work = dlsym(plugin, "work");
            for (int n = 0; n < 5; n++) work(n);
            if (dlclose(plugin)) return 4;
        }
    return (int)npuprof_dump(output);
}
"""

    def check(self, trace, names, rounds=15):
        for name in names:
            category = f"cat {name}"
            for kind in ("scope", "args", "block"):
                spans = events(trace, "X", f"{name} {kind}")
                self.assertEqual(len(spans), rounds, (name, kind))
                self.assertEqual({s["cat"] for s in spans}, {category})
            self.assertEqual({tuple(sorted(s["args"].items())) for s in events(trace, "X", f"{name} args")},
                             {((f"{name} key", n), (f"{name} text", f"{name} value")) for n in range(5)})
            self.assertEqual(len(events(trace, "C", f"{name} counter")), rounds)
            self.assertEqual(len(events(trace, "i", f"{name} instant")), rounds)

    def plugins(self, *flags, extra=""):
        # Names of one length: the two are laid out alike, and the second comes to lie where the first was.
        made = []
        for name in ("alpha", "omega"):
            plugin = self.PLUGIN.replace("@", name).replace("CATEGORY", f"cat {name}")
            made.append(self.build(f"{name}.so", extra + plugin, "-shared", "-fPIC", *flags))
        return made

    @helpers.thorough
    def test_plugin_that_uses_the_hosts_arena(self):
        """Both the JSON and the image, written when the plugins are gone."""
        plugins = self.plugins()
        host = self.build("host", self.HOST.replace("HOW", IMPLEMENTATION), "-rdynamic")
        for name in ("t.json", "t.npuprof"):
            self.quiet(name, *plugins, program=host)
            trace = self.read(name)
            self.check(trace, ("alpha", "omega"))
            self.assertEqual(trace["metadata"]["npuprof"]["lost"]["names_full"], 0)

    @helpers.thorough
    def test_plugin_with_an_arena_of_its_own(self):
        """NPUPROF_STATIC in a plugin: its trace is written when it is unloaded, or at exit, and nothing
        crashes."""
        plugins = self.plugins(extra="#define NPUPROF_STATIC\n#define NPUPROF_ARENA_BYTES 65536\n")
        host = self.build("host", self.HOST.replace("HOW", IMPLEMENTATION))
        self.quiet("h.json", *plugins, program=host, NPUPROF_OUTPUT_PATH="p.%i.json")
        names = collections.Counter()
        for name in self.files():
            if name.startswith("p."):
                names.update(e["name"] for e in events(load(self.folder / name), "X"))
        self.assertEqual(names["alpha scope"], 15, self.files())
        self.assertEqual(names["omega block"], 15)

    @helpers.thorough
    def test_implementation_in_a_library(self):
        """One shared library has the implementation, the program and a plugin use it: one arena."""
        library = self.build("libprof.so", IMPLEMENTATION, "-shared", "-fPIC")
        plugins = self.plugins("-Wl,--no-as-needed", str(library), f"-Wl,-rpath,{self.folder}")
        source = self.HOST.replace("HOW", HEADER)
        source = source.replace("npuprof_start(1);", "npuprof_start(1); PROF_SCOPE(\"host\");")
        host = self.build("host", source, "-Wl,--no-as-needed", str(library), f"-Wl,-rpath,{self.folder}")
        self.quiet("t.json", *plugins, program=host)
        trace = load(self.folder / "t.json")
        self.check(trace, ("alpha", "omega"))
        self.assertEqual(len(events(trace, "X", "host")), 1)

    @helpers.thorough
    def test_library_closed_by_dlclose(self):
        """The library with the implementation itself is unloaded while threads that recorded through it live
        on, and end later."""
        whole = self.PLUGIN.replace("@", "whole").replace("CATEGORY", "c")
        self.build("whole.so", IMPLEMENTATION + whole, "-shared", "-fPIC")
        host = self.build("host", r"""
#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>
#include <unistd.h>
static void (*work)(int);
static pthread_barrier_t worked, closed;
static void *thread(void *user)
{
    work(1);
    pthread_barrier_wait(&worked);
    pthread_barrier_wait(&closed);
    return user;
}
int main(int argc, char **argv)
{
    pthread_t t[4];
    if (argc < 2) return 2;
    for (int round = 0; round < 3; round++) {
        void *plugin = dlopen(argv[1], RTLD_NOW | RTLD_LOCAL);
        if (!plugin) { fprintf(stderr, "%s\n", dlerror()); return 3; }
        *(void **)&work = dlsym(plugin, "work");
        pthread_barrier_init(&worked, NULL, 5);
        pthread_barrier_init(&closed, NULL, 5);
        for (int i = 0; i < 4; i++) pthread_create(&t[i], NULL, thread, NULL);
        pthread_barrier_wait(&worked);
        dlclose(plugin);
        pthread_barrier_wait(&closed);
        for (int i = 0; i < 4; i++) pthread_join(t[i], NULL);
        if (!fork()) return 0;
    }
    return 0;
}
""")
        self.quiet(self.folder / "whole.so", program=host, NPUPROF_OUTPUT_PATH="t.%i.json")
        whole = [name for name in self.files() if name.startswith("t.")]
        self.assertGreaterEqual(len(whole), 1, self.files())
        spans = sum(len(events(load(self.folder / name), "X", "whole scope")) for name in whole)
        self.assertEqual(spans, 12)


class Cxx(helpers.Folder):
    """Static constructors and destructors that record, thread_local ones too."""
    STATICS = r"""
#include <thread>
#include <cstdlib>
HEADER
struct recorder {
    const char *name;
    explicit recorder(const char *n) : name(n)
    {
        PROF_SCOPE("constructor");
        WITH_BASE_PROFILER(nullptr, name, "static", PROF_NO_ARGS, (void)0);
    }
    ~recorder()
    {
        PROF_SCOPE("destructor");
        WITH_BASE_PROFILER(nullptr, name, "static", PROF_NO_ARGS, (void)0);
    }
};
static recorder first("first static");
__attribute__((constructor(101))) static void early() { PROF_SCOPE("early constructor"); }
__attribute__((destructor(101))) static void late() { PROF_SCOPE("late destructor"); }
static void at_exit() { PROF_SCOPE("atexit"); }
recorder &local();
recorder &local() { static recorder r("local static"); return r; }
int main()
{
    std::atexit(at_exit);
    PROF_FUNCTION();
    local();
    std::thread t([] { thread_local recorder r("thread local"); (void)r; PROF_SCOPE("in the thread"); });
    t.join();
    return 0;
}
"""

    def build(self, name, text, *more):
        helpers.need(helpers.CXX[0])
        return helpers.compile_text(text, self.folder / name, "-std=c++11", *more, compiler=helpers.CXX)

    def check(self, counts):
        # A destructor that runs after the trace was written is not in it; all others are.
        self.assertEqual(counts["constructor"], 3)
        self.assertEqual(counts["int main()"], 1)     # the compiler names functions of C++
        self.assertEqual(counts["in the thread"], 1)
        self.assertEqual(counts["thread local"], 2)
        self.assertEqual(counts.get("atexit"), 1)
        self.assertGreaterEqual(counts["first static"], 1)

    @helpers.thorough
    def test_statics(self):
        program = self.build("p", self.STATICS.replace("HEADER", IMPLEMENTATION))
        for path in ("t.json", "t.npuprof"):
            key = "NPUPROF_ARENA_PATH" if path.endswith(".npuprof") else "NPUPROF_OUTPUT_PATH"
            self.quiet(program=program, **{key: path})
            self.check(self.counts(path))
            self.assertEqual(self.counts(path)["early constructor"], 1)
        # The mapped file has also what ran after the writing.
        counts = self.counts("t.npuprof")
        self.assertEqual(counts["destructor"], 3, counts)
        self.assertEqual(counts["late destructor"], 1, counts)

    @helpers.thorough
    def test_statics_of_another_file(self):
        """The implementation is in another file, whose constructors may run later."""
        other = self.build("other.o", IMPLEMENTATION, "-c")
        using = self.build("p.o", self.STATICS.replace("HEADER", HEADER), "-c")
        for objects in ((using, other), (other, using)):
            program = self.folder / "p"
            run([*helpers.CXX, "-pthread", *objects, "-o", program], code=0)
            self.quiet(program=program, NPUPROF_OUTPUT_PATH="t.json")
            self.check(self.counts("t.json"))


class SeveralFiles(helpers.Folder):
    @helpers.thorough
    def test_one_arena_for_all_files(self):
        files = [helpers.compile_text(
            f'{HEADER}void f{index}(void);\n'
            f'void f{index}(void) {{ PROF_SCOPE("same name"); PROF_SCOPE("file {index}"); }}\n',
            self.folder / f"f{index}.o", "-std=c11", *helpers.WARNINGS, "-c") for index in range(4)]
        program = helpers.compile_text(
            IMPLEMENTATION + 'void f0(void); void f1(void); void f2(void); void f3(void);\n'
            'int main(void) { PROF_SCOPE("main"); for (int i = 0; i < 10; i++) { f0(); f1(); f2(); f3(); } '
            'return 0; }\n', self.folder / "p", "-std=c11", *helpers.WARNINGS, *files)
        self.start(program=program, NPUPROF_OUTPUT_PATH="t.json")
        self.assertEqual(self.counts("t.json"),
                         {"main": 1, "same name": 40, "file 0": 10, "file 1": 10, "file 2": 10, "file 3": 10})

    @helpers.thorough
    def test_private_arenas(self):
        """Two private arenas and one path: two files, neither overwrites the other."""
        program = helpers.build("private_one.c", "private", str(PROGRAMS / "private_two.c"))
        for variable, path in (("NPUPROF_OUTPUT_PATH", "t.json"), ("NPUPROF_ARENA_PATH", "t.npuprof")):
            self.empty()
            self.quiet(program=program, **{variable: path})
            self.assertEqual(len(self.files()), 2, self.files())
            self.assertIn(path, self.files())
            self.assertEqual(sorted(tuple(self.counts(name)) for name in self.files()), [("one",), ("two",)])
