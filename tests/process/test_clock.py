# programs whose time somebody fakes: the rate is right or in doubt, and the trace says which
# SPDX-License-Identifier: MIT
import subprocess
import sys
import unittest

import helpers

PROGRAM = """
#include <time.h>
#define NPUPROF_IMPLEMENTATION
#include "npuprof.h"
int main(void)
{
    npuprof_start(1);
    for (int i = 0; i < 3; i++) {
        PROF_SCOPE("ten ms");
        struct timespec t = { 0, 10000000 };
        nanosleep(&t, NULL);
    }
    return npuprof_dump("t.json");
}
"""
# FAKE: what the clocks of clock_gettime() become; `own` of them only, or all.
SHIM = """
#define _GNU_SOURCE
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>
int clock_gettime(clockid_t clock, struct timespec *t)
{
    static long long first;
    const char *fake = getenv("FAKE");
    const int result = (int)syscall(SYS_clock_gettime, clock, t);
    if (!strchr(fake, '*') && clock != CLOCK_MONOTONIC) return result;
    long long ns = t->tv_sec * 1000000000LL + t->tv_nsec;
    struct timespec real;
    syscall(SYS_clock_gettime, CLOCK_MONOTONIC_RAW, &real);
    const long long now = real.tv_sec * 1000000000LL + real.tv_nsec;
    if (!first) first = now;
    const long long gone = now - first, from = ns - gone;
    if (fake[0] == 'f') ns = from;                                       /* frozen */
    if (fake[0] == 'c') ns = from + gone / 200000;                       /* creeps */
    if (fake[0] == 's') ns = from + gone / 2;                            /* slow */
    if (fake[0] == 'l') ns = from + gone + (gone > 15000000 ? 50000000 : 0);     /* leaps */
    t->tv_sec = ns / 1000000000;
    t->tv_nsec = ns % 1000000000;
    return result;
}
"""


@unittest.skipUnless(sys.platform == "linux" and sys.maxsize > 2**32, "the shim is for 64-bit Linux")
class Faked(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = helpers.scratch()
        helpers.compile_text(PROGRAM, cls.folder / "program")
        helpers.compile_text(SHIM, cls.folder / "shim.so", "-shared", "-fPIC")

    def trace(self, fake=None):
        """(the clock's member of the metadata, durations in ms, what check prints)"""
        more = {"FAKE": fake, "LD_PRELOAD": str(self.folder / "shim.so")} if fake else {}
        done = subprocess.run(["./program"], cwd=self.folder, env=helpers.environment(**more))
        self.assertEqual(done.returncode, 0)
        trace = helpers.strict_json((self.folder / "t.json").read_bytes())
        spans = [event["dur"] / 1000 for event in trace["traceEvents"] if event["ph"] == "X"]
        check = helpers.npuprof_py("check", "t.json", code=None, cwd=self.folder)
        return trace["metadata"]["npuprof"]["clock"], spans, check.stdout

    def test_true_clocks_are_in_no_doubt(self):
        clock, spans, check = self.trace()
        self.assertNotIn("doubt", clock)
        self.assertNotIn("clock", check)
        self.assertLess(clock["error_ns"], 1_000_000)
        self.assertGreater(min(spans), 10)

    @helpers.thorough
    def test_fakes_are_said_and_the_rate_is_the_machines(self):
        hz = float(self.trace()[0]["hz"])
        for fake in ("frozen", "creeps", "slow", "leaps", "frozen *", "slow *", "leaps *"):
            with self.subTest(fake):
                clock, spans, check = self.trace(fake)
                self.assertIn("CLOCK_BOOTTIME", clock["doubt"])
                self.assertIn("clock: CLOCK_MONOTONIC went on by", check)
                self.assertGreater(clock["error_ns"], 10_000_000)
                if fake == "slow":       # could be a system that slept: the error says it
                    self.assertGreater(clock["error_ns"], 3 * (10 - min(spans)) * 1e6)
                    continue
                self.assertAlmostEqual(float(clock["hz"]) / hz, 1, delta=0.01)
                self.assertGreater(min(spans), 9.9)
