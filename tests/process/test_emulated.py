# Where compilers emulate thread-local variables, threads are told apart by a key: no memory of the heap, and
# slots come back
# SPDX-License-Identifier: MIT
import unittest

import helpers
from helpers import ROOT, environment, load, need, run, scratch

PROGRAM = r"""
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#define NPUPROF_IMPLEMENTATION
#include "npuprof.h"
/* An allocator with a mark: every allocation inside of a record would come back here. */
extern void *__libc_malloc(size_t bytes);
static int inside, deepest;
void *malloc(size_t bytes)
{
    if (++inside > deepest) deepest = inside;
    void *p = NULL;
    { PROF_SCOPE("malloc"); p = __libc_malloc(bytes); }
    inside--;
    return p;
}
static void *(*volatile allocate)(size_t bytes) = malloc;
static void handler(int number) { (void)number; PROF_INSTANT("c", "handler", PROF_NO_ARGS); }
static void *thread(void *user)
{
    if (user) raise(SIGUSR2);          /* its first record */
    free(allocate(1));
    PROF_SCOPE("thread");
    PROF_BEGIN("c", "by hand");
    PROF_END();
    return NULL;
}
int main(void)
{
    npuprof_stats s;
    npuprof_start(1);
    signal(SIGUSR2, handler);
    free(allocate(1));
    for (int i = 0; i < 2500; i++) {
        pthread_t one;
        if (pthread_create(&one, NULL, thread, i % 2 ? &s : NULL)) return 1;
        pthread_join(one, NULL);
    }
    npuprof_get_stats(&s);
    printf("%d %d %d\n", s.threads <= 8, deepest, (int)s.lost);
    return (int)npuprof_dump("t.json");
}
"""

WINDOWS = r"""
#define NPUPROF_IMPLEMENTATION
#include "npuprof.h"
#include <thread>
int main()
{
    npuprof_stats s;
    npuprof_start(1);
    for (int i = 0; i < 2500; i++)
        std::thread([] { PROF_SCOPE("thread"); PROF_BEGIN("c", "by hand"); PROF_END(); }).join();
    npuprof_get_stats(&s);
    printf("%d %d %d", (int)s.threads, (int)s.recorded, (int)s.lost);
    return 0;
}
"""


class Emulated(unittest.TestCase):
    def test_threads_of_a_life(self):
        program = helpers.compile_text(PROGRAM, scratch() / "emulated", "-femulated-tls",
                                       "-DNPUPROF_THREAD_KEY=1", "-O0", *helpers.WARNINGS,
                                       compiler=[need("clang")])
        self.assertNotIn("__emutls", run(["nm", program]).stdout)
        done = run([program], cwd=scratch(), env=environment())
        self.assertEqual((done.returncode, done.stderr, done.stdout), (0, "", "1 1 0\n"))
        names = [e["name"] for e in load(scratch() / "t.json")["traceEvents"] if e["ph"] in "Xi"]
        self.assertEqual([names.count(n) for n in ("thread", "by hand", "handler")], [2500, 2500, 1250])

    @helpers.thorough
    def test_windows(self):
        """std::thread of mingw's gcc with the posix thread model, under wine."""
        compiler, wine = need("x86_64-w64-mingw32-g++-posix"), need("wine")
        source, program = scratch() / "threads.cpp", scratch() / "threads.exe"
        source.write_text(WINDOWS)
        run([compiler, "-std=c++11", "-O1", f"-I{ROOT}", "-static", source, "-o", program], code=0)
        done = run([wine, program], cwd=scratch(), env=environment(WINEDEBUG="-all"))
        self.assertEqual(done.stdout.split(), ["1", "5000", "0"], done.stderr)
