# test: thorough - a program and a shared library with an implementation each: one leads, or there are two
# files that say whose they are
# SPDX-License-Identifier: MIT
import collections
import csv
import itertools
import shutil
import sys
import unittest

import helpers
from helpers import ROOT, load, run

PLUGIN = r"""
#define NPUPROF_IMPLEMENTATION
#define NPUPROF_ARENA_BYTES 262144
#include "npuprof.h"
#define SHOWN __attribute__((visibility("default")))
SHOWN void begin(void);
SHOWN void work(int n);
SHOWN int finish(const char *path);
void begin(void) { npuprof_start(1); }
void work(int n)
{
    for (int i = 0; i < n; i++) { PROF_SCOPE("of the plugin"); }
    npuprof_async_begin("c", "async of the plugin", 7);
    npuprof_async_end(7);
    npuprof_span("track", "c", "finished of the plugin", npuprof_now_ns() - 10, npuprof_now_ns(),
                 PROF_NO_ARGS);
    PROF_BEGIN("c", "by hand of the plugin");
    PROF_END();
}
int finish(const char *path) { return (int)npuprof_dump(path); }
"""
# How: linked, dlopened, dlclosed; then "api" or "environment". Every round executes 40 spans here, ROUND in
# the plugin.
HOST = r"""
#define NPUPROF_IMPLEMENTATION
#define NPUPROF_ARENA_BYTES 262144
#include "npuprof.h"
#include <dlfcn.h>
#include <string.h>
#pragma weak begin
#pragma weak work
#pragma weak finish
void begin(void);
void work(int n);
int finish(const char *path);
static void *find(void *plugin, const char *name)
{
    void *f = dlsym(plugin, name);
    if (!f) fprintf(stderr, "%s\n", dlerror());
    return f;
}
int main(int argc, char **argv)
{
    if (argc < 4) return 2;
    const bool linked = !strcmp(argv[1], "linked"), closed = !strcmp(argv[1], "dlclosed");
    const bool api = !strcmp(argv[2], "api");
    if (api) npuprof_start(1);
    void *plugin = NULL;
    for (int round = 0; round < 3; round++) {
        char path[40];
        void (*start)(void) = begin;
        void (*run)(int) = work;
        int (*end)(const char *) = finish;
        if (!linked) {
            plugin = dlopen(argv[3], RTLD_NOW | RTLD_LOCAL);
            if (!plugin) { fprintf(stderr, "%s\n", dlerror()); return 3; }
            *(void **)&start = find(plugin, "begin");
            *(void **)&run = find(plugin, "work");
            *(void **)&end = find(plugin, "finish");
        }
        for (int i = 0; i < 20; i++) { PROF_SCOPE("of the host"); }
        if (api) start();
        run(20);
        snprintf(path, sizeof path, "plugin%d.json", round);
        if (api && end(path)) return 4;
        if (closed && dlclose(plugin)) return 5;
        for (int i = 0; i < 20; i++) { PROF_SCOPE("of the host"); }
    }
    return api ? (int)npuprof_dump("host.json") : 0;
}
"""
# what host and plugin execute, and see of the plugin: an async span is two events
OURS, THEIRS, SHOWN = 3 * 40, 3 * 24, 3 * 23


class Plugins(helpers.Folder):
    @classmethod
    def setUpClass(cls):
        cls.parts = helpers.scratch() / "plugins"
        shutil.rmtree(cls.parts, ignore_errors=True)
        cls.parts.mkdir()
        cls.object("host.o", HOST)
        for name, flags in (("default", ()), ("hidden", ("-fvisibility=hidden",))):
            cls.object(f"{name}.o", PLUGIN, "-fPIC", *flags)
            cls.link(f"{name}.so", "-shared", f"{name}.o")
        for dynamic in ("", "-rdynamic"):
            cls.link(f"host{dynamic}", "host.o", *[f for f in [dynamic] if f], "-ldl")
            for name in ("default", "hidden"):
                cls.link(f"host{dynamic}-{name}", "host.o", *[f for f in [dynamic] if f],
                         "-Wl,--no-as-needed", "-L.", f"-l:{name}.so",
                         f"-Wl,-rpath,{cls.parts}", "-ldl")

    @classmethod
    def object(cls, name, source, *flags, compiler=None):
        helpers.compile_text(source, cls.parts / name, "-std=gnu11", "-O1", *helpers.WARNINGS, *flags, "-c",
                             compiler=compiler)

    @classmethod
    def link(cls, name, *arguments):
        run([*helpers.CC, "-pthread", *arguments, "-o", cls.parts / name], code=0, cwd=cls.parts)

    def play(self, host, plugin, when, how, output="t.json"):
        """The files of a host with a plugin."""
        self.empty()
        env = {"NPUPROF_OUTPUT_PATH": output} if how == "environment" else {}
        self.quiet(when, how, self.parts / plugin, program=self.parts / host, **env)
        return self.files()

    def owners(self, files, how):
        """Whose the files are: {program: [spans and events recorded and lost, of the host, of the
        plugin]}."""
        found = collections.defaultdict(lambda: [0, 0, 0])
        for name in files:
            trace = load(self.folder / name)
            events = [e for e in trace["traceEvents"] if e["ph"] in "Xbe"]
            own = trace["metadata"]["npuprof"]
            names = [e["name"] for e in events]
            counts = [own["recorded"] + sum(own["lost"].values()), names.count("of the host"),
                      sum("of the plugin" in n for n in names)]
            there = found[own["program"]]
            # Through the API the leader's arena is dumped again and again; the last has all.
            merge = (lambda a, b: a + b) if how == "environment" else max
            found[own["program"]] = [merge(a, b) for a, b in zip(there, counts)]
        return found

    def test_all_combinations(self):
        for dynamic, plugin, when, how in itertools.product(("", "-rdynamic"), ("default", "hidden"),
                                                            ("linked", "dlopened", "dlclosed"),
                                                            ("api", "environment")):
            with self.subTest(dynamic=dynamic, plugin=plugin, when=when, how=how):
                host = f"host{dynamic}-{plugin}" if when == "linked" else f"host{dynamic}"
                files = self.play(host, f"{plugin}.so", when, how)
                owners = self.owners(files, how)
                one_leads = plugin == "default" and (dynamic or when == "linked")
                if one_leads:
                    self.assertEqual(owners, {host: [OURS + THEIRS, OURS, SHOWN]})
                    if how == "environment":
                        self.assertEqual(files, ["t.json"])
                    continue
                # A plugin's own arena begins anew each time it is loaded; the API dumps it once a round.
                rounds = 3 if when == "dlclosed" and how == "api" else 1
                self.assertEqual(owners, {host: [OURS, OURS, 0],
                                          f"{host} ({plugin}.so)": [THEIRS // rounds, 0, SHOWN // rounds]})

    def test_nobody_overwrites(self):
        """JSON, CSV and image of two arenas at one path; a path of a process before is overwritten."""
        for output, count in (("t.json", 4), ("t.csv", 4), ("t.npuprof", 4)):
            with self.subTest(output=output):
                files = self.play("host", "default.so", "dlclosed", "environment", output)
                self.assertEqual(len(files), count, files)
                if output == "t.csv":
                    rows = [row for name in files
                            for row in csv.DictReader(open(self.folder / name, newline=""))]
                    names = collections.Counter(row["name"] for row in rows)
                    self.assertEqual(names, {"of the host": OURS, "of the plugin": 60,
                                             "async of the plugin": 3, "finished of the plugin": 3,
                                             "by hand of the plugin": 3})
                for _ in range(3):
                    done = self.start("dlopened", "environment", self.parts / "default.so",
                                      program=self.parts / "host", NPUPROF_OUTPUT_PATH=f"again{output}")
                    self.assertEqual(done.returncode, 0)
                again = [name for name in self.files() if name.startswith("again")]
                self.assertEqual((again.count(f"again{output}"), len(again)), (1, 1 + 3))

    def test_the_program_has_the_path(self):
        """Whoever ends first: the path asked for is the program's, and merged they are one process."""
        for when in ("dlopened", "dlclosed"):
            for output in ("t.json", "t.npuprof"):
                with self.subTest(when=when, output=output):
                    files = self.play("host", "default.so", when, "environment", output)
                    traces = [self.folder / name for name in files]
                    if output == "t.npuprof":
                        self.assertIn(b"host\0", (self.folder / output).read_bytes()[:4096])
                        continue
                    programs = {p.name: load(p)["metadata"]["npuprof"]["program"] for p in traces}
                    self.assertEqual(programs.pop(output), "host")
                    self.assertEqual(set(programs.values()), {"host (default.so)"})
                    merged = self.folder / "merged.json"
                    tool = [sys.executable, ROOT / "tools" / "npuprof.py"]
                    run([*tool, "merge", *traces, "-o", merged], code=0)
                    self.assertEqual(len({e["pid"] for e in load(merged)["traceEvents"]}), 1)

    def test_signal_after_dlclose(self):
        """It does again what it did before."""
        source = self.parts / "signal.c"
        source.write_text("#include <dlfcn.h>\n#include <signal.h>\n#include <stdio.h>\n"
                          "static void *now(void)\n{\n    struct sigaction a;\n"
                          "    sigaction(SIGUSR1, 0, &a);\n"
                          "    return (void *)a.sa_handler;\n}\n"
                          "int main(int n, char **v)\n{\n    void *p = dlopen(v[n - 1], RTLD_NOW);\n"
                          "    const int taken = now() != (void *)SIG_DFL;\n    dlclose(p);\n"
                          "    printf(\"%d %d\\n\", taken, now() == (void *)SIG_DFL);\n    return 0;\n}\n")
        self.link("signal", source, "-ldl")
        done = self.start(self.parts / "default.so", program=self.parts / "signal",
                          NPUPROF_SIGNAL="USR1:dump", NPUPROF_OUTPUT_PATH="t.json")
        self.assertEqual((done.stdout, done.returncode), ("1 1\n", 0))

    def test_other_version(self):
        """A program with another version, or clock: what is not recorded is said in its trace, and on stderr
        if a trace was asked for. No empty file takes the path that was asked for."""
        gate = "npuprof_gate_of_a_build_without_NPUPROF_NOW_or_FREESTANDING_"
        text = (ROOT / "npuprof.h").read_text()
        others = {"later": text.replace("_and_export_npuprof_names_", "_of_a_later_version_"),
                  "before": text.replace("_and_export_npuprof_names_", "_of_one_before_")
                  .replace("npuprof_lost_", "npuprof_lost_before_"), "clock": text}
        self.assertIn(gate, text)
        for name, header in others.items():
            (self.parts / name).mkdir(exist_ok=True)
            (self.parts / name / "npuprof.h").write_text(header)
            clock = ["-include", "time.h", "-DNPUPROF_NOW()=((uint64_t)clock())", "-DNPUPROF_NOW_HZ=1000000"]
            self.object(f"{name}.o", HOST, f"-I{self.parts / name}", *(clock if name == "clock" else ()))
            self.link(f"host-{name}", f"{name}.o", "-rdynamic", "-ldl")
            for how in ("api", "environment"):
                with self.subTest(program=name, how=how):
                    self.empty()
                    env = {"NPUPROF_OUTPUT_PATH": "t.json"} if how == "environment" else {}
                    done = self.start("dlopened", how, self.parts / "default.so",
                                      program=self.parts / f"host-{name}", **env)
                    trace = load(self.folder / ("t.json" if how == "environment" else "host.json"))
                    said = trace["metadata"]["npuprof"]["user"]["npuprof of another version"]
                    self.assertIn("the spans of default.so are not recorded", said)
                    self.assertEqual((done.returncode, done.stderr),
                                     (0, f"npuprof: {said}\n" if how == "environment" else ""))
                    names = [e["name"] for e in trace["traceEvents"] if e["ph"] == "X"]
                    self.assertEqual(names.count("of the host"), OURS)
                    self.assertEqual(len(list(self.folder.glob("t*"))), how == "environment")

    def test_functions_bound_when_linked(self):
        """-Bsymbolic-functions takes a plugin's functions and the host's gate: what it executes is counted in
        the host's trace, all of it."""
        self.link("bound.so", "-shared", "-Wl,-Bsymbolic-functions", "default.o")
        owners = self.owners(self.play("host-rdynamic", "bound.so", "dlopened", "environment"),
                             "environment")
        self.assertEqual(owners, {"host-rdynamic": [OURS + THEIRS, OURS, 0]})
        self.link("private.so", "-shared", "-Wl,-Bsymbolic", "default.o")
        owners = self.owners(self.play("host-rdynamic", "private.so", "dlopened", "environment"),
                             "environment")
        self.assertEqual(owners,
                         {"host-rdynamic": [OURS, OURS, 0], "host-rdynamic (private.so)": [THEIRS, 0, SHOWN]})

    def test_clang(self):
        """It takes a copy of a function for the function where both are in one file."""
        self.object("clang.o", PLUGIN, "-fPIC", "-O1", compiler=[helpers.need("clang")])
        self.link("clang.so", "-shared", "clang.o")
        for how in ("api", "environment"):
            owners = self.owners(self.play("host-rdynamic", "clang.so", "dlclosed", how), how)
            self.assertEqual(owners, {"host-rdynamic": [OURS + THEIRS, OURS, SHOWN]})
