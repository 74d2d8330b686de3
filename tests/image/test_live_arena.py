# the arena file of a process that is writing into it at full speed: what is read is true, the rest is counted
# SPDX-License-Identifier: MIT
import functools
import json
import mmap
import signal
import struct
import subprocess
import time
import unittest

import helpers
from helpers import environment, run


@functools.cache
def build():
    return helpers.build("live_arena.c", "live_arena", "-D_GNU_SOURCE", "-pthread")


class Living:
    """The program of live_arena.c, for a while."""

    def __init__(self, folder, size, threads):
        self.path, self.threads = folder / "arena.npuprof", threads
        counts = folder / "counts"
        counts.write_bytes(bytes(64 * threads))
        self.process = subprocess.Popen([build(), self.path, str(size), str(threads), counts],
                                        env=environment())
        with counts.open("r+b") as file:
            self.counts = mmap.mmap(file.fileno(), 64 * threads)
        while self.process.poll() is None and not self.sum(8):
            time.sleep(0.01)

    def sum(self, offset):
        return sum(struct.unpack_from("<Q", self.counts, 64 * t + offset)[0] for t in range(self.threads))

    def __enter__(self):
        return self

    def __exit__(self, *error):
        self.process.send_signal(signal.SIGKILL)
        self.process.wait()
        self.path.unlink()


class Reading(unittest.TestCase):
    def check(self, events):
        """Every event's name and arguments are of one record."""
        for e in events:
            if e["ph"] not in "Xi" or e["name"] in ("long", "npuprof paused"):
                continue
            if e["ph"] == "X" and "v" not in e.get("args", ()):
                # it moved on, and the chunk with its arguments was taken: that is counted
                continue
            v, name = e["args"]["v"], e["args"]["name"]
            self.assertEqual((e["args"]["w"], e["name"][-1], e["cat"], v // 64 % 8),
                             (v ^ 0x5A5A5A5A, str(name), f"c{name}", name), e)

    def reads(self, size, threads, times):
        """The number of spans seen in all reads."""
        seen = 0
        with Living(helpers.scratch(), size, threads) as living:
            for _ in range(times):
                out = helpers.scratch() / "out.json"
                least = living.sum(8)
                done = run([helpers.tool("npuprof-convert"), living.path, "-o", out])
                most = living.sum(0)
                self.assertIsNone(living.process.poll(), "the program ended")
                self.assertEqual(done.returncode, 0, done.stderr)
                trace = json.loads(out.read_bytes())
                self.check(trace["traceEvents"])
                seen += sum(e["ph"] == "X" and e["name"] != "long" for e in trace["traceEvents"])
                npuprof = trace["metadata"]["npuprof"]
                self.assertNotIn("damaged_places", npuprof)
                self.assertEqual("a process is writing into it" in done.stderr,
                                 npuprof["changed_while_read"] > 0)
                lost = sum(n for cause, n in npuprof["lost"].items() if cause not in ("arguments", "notes"))
                self.assertGreaterEqual(npuprof["recorded"] + lost, least, npuprof)
                self.assertLessEqual(npuprof["recorded"] + lost, most, npuprof)
        return seen

    def test_a_few_times(self):
        # Why again: on a busy machine the arena may be taken anew during each of the reads.
        self.assertTrue(any(self.reads(512 * 1024, 1, 5) for _ in range(10)))

    @helpers.thorough
    def test_one_thread(self):
        self.assertTrue(any(self.reads(512 * 1024, 1, 40) for _ in range(3)))

    @helpers.thorough
    def test_three_threads(self):
        self.reads(1024 * 1024, 3, 20)

    @helpers.thorough
    def test_a_small_arena(self):
        """It is taken anew in less time than a read takes: little is left, and that is true."""
        self.reads(16 * 1024, 2, 40)

    def test_a_file_of_nobody_is_read_as_before(self):
        with Living(helpers.scratch(), 256 * 1024, 1) as living:
            living.process.send_signal(signal.SIGKILL)
            living.process.wait()
            out = helpers.scratch() / "dead.json"
            self.assertEqual(run([helpers.tool("npuprof-convert"), living.path, "-o", out]).returncode, 0)
            trace = json.loads(out.read_bytes())
            self.check(trace["traceEvents"])
            self.assertNotIn("changed_while_read", trace["metadata"]["npuprof"])
