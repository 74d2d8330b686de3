# test: thorough - sixteen shared libraries, each with an implementation of its own, in one process: linked,
# loaded by dlopen() while threads run, loaded by Python; with glibc and with musl
# SPDX-License-Identifier: MIT
import shutil
import sys
import unittest

import helpers
from helpers import load, need, run

COUNT, SPANS, THREADS = 16, 5, 3
PLUGIN = r"""
#define NPUPROF_IMPLEMENTATION
#define NPUPROF_ARENA_BYTES 65536
#include "npuprof.h"
#define SHOWN __attribute__((visibility("default"), no_instrument_function))
SHOWN int work(int n);
SHOWN int finish(const char *path);
int work(int n)
{
    npuprof_start(1);
    for (int i = 0; i < n; i++) { PROF_SCOPE("here"); }
    PROF_BEGIN("c", "by hand");
    PROF_END();
    return npuprof_is_recording();
}
int finish(const char *path) { return (int)npuprof_dump(path); }
"""
HOST = r"""
#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
enum { COUNT = 16, SPANS = 5 };
static int (*work[COUNT])(int), (*finish[COUNT])(const char *);
#ifdef LINKED
#define EACH(X) X(0) X(1) X(2) X(3) X(4) X(5) X(6) X(7) X(8) X(9) X(10) X(11) X(12) X(13) X(14) X(15)
#define DECLARE(n) int work##n(int); int finish##n(const char *);
EACH(DECLARE)
#define TAKE(n) work[n] = work##n; finish[n] = finish##n;
static void find(char **path) { (void)path; EACH(TAKE) }
#else
static void find(char **path)
{
    for (int i = 0; i < COUNT; i++) {
        void *const plugin = dlopen(path[i], RTLD_NOW | RTLD_LOCAL);
        if (!plugin) { fprintf(stderr, "plugin %d: %s\n", i + 1, dlerror()); exit(3); }
        *(void **)&work[i] = dlsym(plugin, "work");
        *(void **)&finish[i] = dlsym(plugin, "finish");
    }
}
#endif
static pthread_barrier_t gate;
static void *thread(void *old)
{
    if (old) pthread_barrier_wait(&gate);      /* it began before the plugins were there */
    for (int i = 0; i < COUNT; i++) work[i](SPANS);
    return NULL;
}
int main(int argc, char **argv)
{
    pthread_t a, b;
    (void)argc;
    pthread_barrier_init(&gate, NULL, 2);
    if (pthread_create(&a, NULL, thread, &gate)) return 1;
    find(argv + 1);
    pthread_barrier_wait(&gate);
    if (pthread_create(&b, NULL, thread, NULL)) return 1;
    thread(NULL);
    pthread_join(a, NULL);
    pthread_join(b, NULL);
    for (int i = 0; i < COUNT; i++) {
        char path[40];
        snprintf(path, sizeof path, "%d.json", i);
        if (finish[i](path)) return 4;
    }
    return 0;
}
"""
FROM_PYTHON = r"""
import ctypes, sys, threading
plugins = [ctypes.CDLL(path) for path in sys.argv[1:]]
def work():
    for plugin in plugins: plugin.work(5)
threads = [threading.Thread(target=work) for _ in range(2)]
for thread in threads: thread.start()
work()
for thread in threads: thread.join()
sys.exit(max(plugin.finish(f"{i}.json".encode()) for i, plugin in enumerate(plugins)))
"""


class ManyPlugins(helpers.Folder):
    def make(self, name, text, *words):
        return helpers.compile_text(text, self.folder / name, "-std=gnu11", "-O1", "-ldl", compiler=words)

    def plugins(self, *compiler):
        """Copies of one library: the loader tells them apart by their inodes."""
        whole = self.make("plugin.so", PLUGIN, *compiler, "-fPIC", "-shared")
        return [shutil.copy2(whole, self.folder / f"{i}.so") for i in range(COUNT)]

    def check(self, *command, owners=COUNT):
        self.quiet(*command[1:], program=command[0])
        for i in range(owners):
            own = load(self.folder / f"{i}.json")["metadata"]["npuprof"]
            self.assertEqual((own["recorded"], sum(own["lost"].values())), (THREADS * (SPANS + 1), 0))

    def test_loaded_with_glibc(self):
        host = self.make("host", HOST, *helpers.CC)
        self.check(host, *self.plugins(*helpers.CC))

    def test_loaded_with_auto(self):
        """Functions recorded without a mark, private or visible."""
        host = self.make("host", HOST, *helpers.CC)
        auto = ("-DNPUPROF_AUTO", "-finstrument-functions")
        for static in ((), ("-DNPUPROF_STATIC",)):
            with self.subTest(static=static):
                self.check(host, *self.plugins(*helpers.CC, *auto, *static))

    def test_one_path(self):
        """All of them have one path for a stream, for a mapped arena: each gets a file of its own."""
        host = self.make("host", HOST, *helpers.CC)
        plugins = self.plugins(*helpers.CC)
        for name, path in (("NPUPROF_OUTPUT_PATH", "t.npuprof"), ("NPUPROF_ARENA_PATH", "t.npuprof"),
                           ("NPUPROF_ARENA_PATH", "t-%p.npuprof")):
            with self.subTest(name=name, path=path):
                self.start(*plugins, program=host, **{name: path}, NPUPROF_WHEN_FULL="stream")
                files = sorted(self.folder.glob("t*.npuprof"))
                self.assertEqual(len(files), COUNT)
                for file in files:
                    run([helpers.tool("npuprof-convert"), file, "-o", self.folder / "one.json"], code=0)
                    own = load(self.folder / "one.json")["metadata"]["npuprof"]
                    self.assertEqual((own["recorded"], sum(own["lost"].values())),
                                     (THREADS * (SPANS + 1), 0))
                    file.unlink()

    def test_loaded_by_python(self):
        self.check(sys.executable, "-c", FROM_PYTHON, *self.plugins(*helpers.CC))

    def test_loaded_with_musl(self):
        compiler = need("musl-gcc")
        host = self.make("host", HOST, compiler)
        self.check(host, *self.plugins(compiler))

    def test_linked(self):
        """Each has functions of names of its own, made of one object."""
        objcopy = need("objcopy")
        for compiler in (helpers.CC, [need("musl-gcc")]):
            with self.subTest(compiler=compiler):
                whole = self.make("plugin.o", PLUGIN, *compiler, "-fPIC", "-c", "-DNPUPROF_STATIC")
                for i in range(COUNT):
                    names = [f"--redefine-sym={name}={name}{i}" for name in ("work", "finish")]
                    run([objcopy, *names, whole, self.folder / "one.o"])
                    run([*compiler, "-shared", self.folder / "one.o", "-o", self.folder / f"lib{i}.so"])
                libraries = [f"-l{i}" for i in range(COUNT)]
                host = self.make("host", HOST, *compiler, "-DLINKED", "-Wl,--no-as-needed",
                                 f"-L{self.folder}", f"-Wl,-rpath,{self.folder}", *libraries)
                self.check(host)

    def test_one_pointer(self):
        """What a copy takes of the memory that the loader has for thread-local variables."""
        program = self.make("plugin.so", PLUGIN, *helpers.CC, "-fPIC", "-shared", "-DNPUPROF_AUTO")
        lines = [line.split() for line in run(["readelf", "-lW", program]).stdout.splitlines()]
        sizes = [int(words[5], 16) for words in lines if words and words[0] == "TLS"]
        self.assertEqual(len(sizes), 1)
        self.assertLessEqual(sizes[0], 12)
