# npuprof.py top: what a running program records, counted exactly, without a copy of all it has recorded
# SPDX-License-Identifier: MIT
import collections
import functools
import json
import re
import subprocess
import sys
import time
import unittest

import helpers
from helpers import run, scratch

# A row of the steps, each of which sleeps for 20 ms: their median and their longest
SLOW = r"(?m)^ +\d[\d.]* +(\d[.\d]*) ms +(\d[.\d]*) ms +\d+\.\d %  slow name$"


@functools.cache
def built():
    helpers.tool("npuprof-top")
    return helpers.build("top_steps.c", "top_steps", "-D_GNU_SOURCE", "-pthread")


class Program:
    """top_steps, which records what step() tells it."""

    def __init__(self, path, size=4 << 20, policy="keep-oldest"):
        self.process = subprocess.Popen([built(), path, str(size), policy], stdin=subprocess.PIPE,
                                        stdout=subprocess.PIPE, text=True, env=helpers.environment())

    def step(self, count):
        self.process.stdin.write(f"{count}\n")
        self.process.stdin.flush()
        return self.process.stdout.readline()

    def end(self):
        self.process.communicate()

    def __enter__(self):
        self.step(0)
        return self

    def __exit__(self, *error):
        if self.process.poll() is None:
            self.end()


def top(path, *arguments):
    return subprocess.Popen([sys.executable, helpers.NPUPROF_PY, "top", path, *arguments],
                            stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


class ByNumber(unittest.TestCase):
    def test_process(self):
        """The number of a process stands for its arena, for top and convert."""
        with Program(scratch() / "number.npuprof") as program:
            program.step(500)
            pid = str(program.process.pid)
            done = helpers.npuprof_py("top", pid, "--once", "--interval", "0.05", "--json")
            self.assertIn("names", json.loads(done.stdout.splitlines()[-1]))
            helpers.npuprof_py("convert", pid, "-o", "number.json", said="")
            names = [event.get("name") for event in helpers.load(scratch() / "number.json")["traceEvents"]]
            self.assertEqual(names.count("fast"), 500)

    def test_refusals(self):
        """No process, one without an arena in a file; and a file that is called like a number is a file."""
        self.assertIn("neither a file nor a process", helpers.refused("top", "4194305"))
        with subprocess.Popen(["sleep", "60"]) as other:
            said = helpers.refused("convert", other.pid, "-o", "x.json")
            self.assertIn("start it with NPUPROF_ARENA_PATH=FILE; what needs no start is "
                          f"`attach {other.pid}`", said)
            other.kill()
        (scratch() / "1").write_text("no trace")
        self.assertNotIn("process", helpers.refused("convert", "1", "-o", "x.json"))


def looks_until(process, count, name="fast"):
    """The looks until so many spans of a name were seen."""
    looks, seen = [], 0
    while seen < count:
        line = process.stdout.readline()
        if not line:
            break
        looks.append(json.loads(line))
        seen += sum(own["count"] for own in looks[-1]["names"] if own["name"] == name)
    return looks


class Top(unittest.TestCase):
    def counted(self, size, policy, steps, before):
        """Counts, device times and other sums over all looks while a program takes these steps."""
        path = scratch() / f"{policy}.npuprof"
        with Program(path, size, policy) as program:
            program.step(before)                     # recorded before the first look: not counted
            process = top(path, "--interval", "0.1", "--json")
            looks = looks_until(process, 0, "")
            looks.append(json.loads(process.stdout.readline()))
            for count in steps:
                program.step(count)
            looks += looks_until(process, sum(steps))
            looks += [json.loads(process.stdout.readline()) for _ in range(2)]
            program.end()
            process.stdout.read()
            self.assertEqual(process.wait(), 1)
            self.assertIn("the program has ended", process.stderr.read())
            process.stdout.close(), process.stderr.close()
        return looks

    def test_counts(self):
        """Every span once, though threads take turns, chunks fill up and a span stays open."""
        steps = [1000, 20001, 7, 40000, 333]
        looks = self.counted(16 << 20, "keep-oldest", steps, 30000)
        counts, longest = collections.Counter(), collections.Counter()
        for look in looks:
            for own in look["names"]:
                counts[own["name"]] += own["count"]
                longest[own["name"]] = max(longest[own["name"]], own["max_ns"])
        self.assertEqual(counts["fast"], sum(steps))
        self.assertEqual((counts["slow\nname"], counts["whole run"]), (len(steps), 0))
        self.assertGreaterEqual(longest["slow\nname"], 20_000_000)
        (jobs, linked, busy, flight) = (sum(look["devices"][0][key] for look in looks) for key in
                                        ("executions", "linked", "busy_ns", "in_flight_ns"))
        self.assertEqual((jobs, linked), (len(steps), len(steps)))
        self.assertGreaterEqual(busy, 10_000_000 * len(steps))
        self.assertLess(busy, sum(look["interval_ns"] for look in looks))
        self.assertGreaterEqual(flight, 0.9 * busy)      # from a stamp inside the block
        self.assertEqual({look["open"] for look in looks} & {1}, {1})
        self.assertEqual(sum(look["unseen"] for look in looks), 0)
        slowest = max((own["dur_ns"], own["name"]) for look in looks for own in look["slowest"])
        self.assertIn(slowest[1], ("slow\nname", "Execution"))

    def test_overwritten_between_two_looks(self):
        """What was overwritten is counted, and nothing twice."""
        steps = [40001, 40001]
        path = scratch() / "newest.npuprof"
        with Program(path, 1 << 16, "keep-newest") as program:
            process = top(path, "--interval", "0.1", "--json")
            process.stdout.readline()
            for count in steps:
                program.step(count)
            looks = [json.loads(process.stdout.readline()) for _ in range(4)]
            program.end()
            process.communicate()
        seen = sum(own["count"] for look in looks for own in look["names"] if own["name"] == "fast")
        unseen = sum(look["unseen"] for look in looks)
        self.assertLess(seen, sum(steps))
        self.assertGreaterEqual(seen + unseen + looks[-1]["lost"]["overwritten"], sum(steps))
        self.assertGreater(looks[-1]["lost"]["overwritten"], 0)

    def test_text(self):
        path = scratch() / "text.npuprof"
        with Program(path) as program:
            process = top(path, "--interval", "0.5", "--once")
            time.sleep(0.2)
            while process.poll() is None:
                program.step(100)
            text, said = process.communicate()
        self.assertEqual((process.returncode, said), (0, ""))
        self.assertRegex(text, r"(?m)^text.npuprof: top_steps \(pid \d+\), 1 threads, arena 4 MiB$")
        self.assertRegex(text, r"(?m)^npu0: busy \d+\.\d %, [\d.]+ executions/s, in flight \d\.\d\d$")
        self.assertRegex(text, SLOW)
        for ms in re.search(SLOW, text).groups():
            self.assertGreaterEqual(float(ms), 20)
        self.assertIn("lost in the whole run: nothing", text)

    def test_what_cannot_be_looked_at(self):
        """One sentence for each."""
        ended, plain = scratch() / "ended.npuprof", scratch() / "plain.npuprof"
        with Program(ended):
            pass
        plain.write_text("no image\n")
        stream = scratch() / "stream.npuprof"
        with Program(stream, policy="stream") as program:
            program.step(40000)                      # its file is there from the first full chunk on
            for path, words in ((scratch() / "none.npuprof", "no such file; start the program with"),
                                (ended, "no program records into it; npuprof report"),
                                (plain, "is no arena of npuprof"), (stream, "it is no mapped arena")):
                self.assertIn(words, helpers.refused("top", path, "--once", "--interval", "0.05"))
            program.end()
        helpers.npuprof_py("top", ended, "--interval", "0", code=2)

    @helpers.thorough
    def test_a_large_arena(self):
        """A look reads what is new: of 128 MiB of spans that were there before, next to nothing."""
        path = scratch() / "large.npuprof"
        with Program(path, 256 << 20) as program:
            program.step(8_000_000)
            done = run(["/bin/sh", "-c", f"{helpers.tool('npuprof-top')} {path} 0.05 5 && times"], code=0)
            user, system = done.stdout.splitlines()[-1].split()
        print(f"note five looks at a full arena of 256 MiB: {user} user, {system} system")
        self.assertEqual([text.partition("m")[0] for text in (user, system)], ["0", "0"])
        self.assertLess(sum(float(text.partition("m")[2].rstrip("s")) for text in (user, system)), 1.5)
