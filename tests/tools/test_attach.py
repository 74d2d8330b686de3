# test: time=200 soak=600 - npuprof.py attach: real processes that armed nothing, of every build; exact, as
# often as wanted; refused in words
# SPDX-License-Identifier: MIT
import collections
import contextlib
import functools
import os
import pwd
import shutil
import signal
import subprocess
import sys
import time
import unittest
import unittest.mock

import helpers
from helpers import CC, NPUPROF_PY, ROOT, run, scratch
from npuprof.attach import process as process_module, words
from npuprof.attach.arena import cut, header, losses
from npuprof.attach.process import Gone, Process
from npuprof.base.messages import Refused

SOAK = "NPUPROF_TEST_SOAK" in os.environ
PLUGIN = r"""
#define NPUPROF_IMPLEMENTATION
#define NPUPROF_ARENA_BYTES 262144
#include "npuprof.h"
__attribute__((visibility("default"))) void work(int n);
void work(int n) { PROF_INSTANT("c", "in plugin", PROF_ARGS(PROF_INT("n", n))); }
"""


def setUpModule():
    if not os.path.isdir("/proc/self/task"):
        raise unittest.SkipTest("attach needs Linux")
    helpers.tool("npuprof-convert")


@functools.cache
def program():
    return helpers.build("attached.c", "attached")


@contextlib.contextmanager
def running(*command, **options):
    """A process that is ready, and killed at the end."""
    child = subprocess.Popen([str(word) for word in command], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                             env=helpers.environment(), **options)
    try:
        if child.stdout.readline() != b"ready\n":
            raise AssertionError(f"{command} does not run")
        yield child
    finally:
        child.kill()
        child.communicate()


def load(path):
    """A trace, of an image or of JSON."""
    if path.suffix != ".json":
        run([helpers.tool("npuprof-convert"), "-o", path.with_suffix(".json"), path], code=0, said="")
    return helpers.load(path.with_suffix(".json"))


def attach(child, *words, code=0, output="attached.npuprof", seconds=0.1):
    """Attaches to a process. Returns (what attach said, the trace or None)."""
    path = scratch() / output
    path.unlink(missing_ok=True)
    pid = child if isinstance(child, int) else child.pid
    done = helpers.npuprof_py("attach", pid, "-o", path, "--seconds", seconds, *words, code=code)
    return done.stderr, load(path) if path.exists() else None


def started(child, *words, output="attached.npuprof"):
    """The same without an end, in a process of its own."""
    return subprocess.Popen([sys.executable, NPUPROF_PY, "attach", str(child.pid), "-o", scratch() / output,
                             *words], stderr=subprocess.PIPE, text=True)


def marks(trace, name="mark"):
    """thread: the numbers of its marks, in the order of time."""
    numbers = collections.defaultdict(list)
    for event in sorted(helpers.events(trace, "i", name), key=lambda event: float(event["ts"])):
        numbers[event["args"].get("t", 0)].append(event["args"]["n"])
    return numbers


def recorded(trace):
    return [event for phase in "Xi" for event in helpers.events(trace, phase)]


def gaps(numbers):
    return [n for n, following in zip(numbers, numbers[1:]) if following != n + 1]


def converted(image, name):
    path = scratch() / name
    path.write_bytes(image)
    return load(path)


class Recorded(unittest.TestCase):
    def test_as_often_as_wanted(self):
        """Each trace has all marks of its time, and none of another's."""
        with running(program(), 8) as child:
            copy, = words.find(Process(child.pid))
            last = collections.defaultdict(lambda: -1)
            for turn in range(250 if SOAK else 20):
                copy.began = False
                copy.begin(1)
                while not copy.has_begun():
                    time.sleep(0.001)
                time.sleep(0.02)
                copy.finish()
                self.assertEqual(sum(losses(copy.image)), 0)
                numbers = marks(converted(copy.image, "often.npuprof"))
                self.assertEqual(set(numbers), set(range(8)), turn)
                for thread, own in numbers.items():
                    self.assertEqual(gaps(own), [])
                    self.assertGreater(own[0], last[thread])
                    last[thread] = own[-1]

    @helpers.thorough
    def test_full_arena(self):
        """What does not fit is counted; the next trace has space again."""
        path = helpers.build("attached.c", "attached_small", "-DNPUPROF_ARENA_BYTES=1048576")
        with running(path, 2, "busy") as child:
            for _ in range(2):
                said, trace = attach(child, seconds=0.3)
                lost = trace["metadata"]["npuprof"]["lost"]
                self.assertGreater(lost["arena_full"], 1000)
                self.assertEqual(sum(lost.values()), lost["arena_full"])
                self.assertIn(f"; {lost['arena_full']} records were lost", said)
                numbers = marks(trace)           # one thread may have filled it alone
                self.assertFalse([gap for own in numbers.values() for gap in gaps(own)])
                self.assertGreater(sum(map(len, numbers.values())), 10000)

    def test_what_comes_late(self):
        """The mark that ends the recording is not in the trace. On a busy machine there may be none."""
        self.assertTrue(any(self.cut_marks() for _ in range(20)))

    def cut_marks(self):
        raw = []                               # returns how many marks come late
        with running(program(), 4) as child, \
                unittest.mock.patch.object(words, "cut", lambda image, end: raw.append((bytes(image), end))):
            copy, = words.find(Process(child.pid))
            copy.begin(1)
            while not copy.has_begun():
                time.sleep(0.001)
            time.sleep(0.05)
            copy.finish()
        (whole, until), = raw
        image = bytearray(whole)
        cut(image, until)
        before, after = converted(whole, "whole.npuprof"), converted(image, "cut.npuprof")
        for thread, own in marks(before).items():
            self.assertEqual(marks(after)[thread], own[:len(marks(after)[thread])])
        fewer = len(recorded(before)) - len(recorded(after))
        self.assertTrue(0 <= fewer <= 4, fewer)
        return fewer

    def test_rare_moments(self):
        """The program answers between a look at the gate and the store; a thread is in a record."""
        with running(program(), 1, "slow") as child:
            process = Process(child.pid)
            copy, = words.find(process)
            copy.begin(1)
            while not copy.has_begun():
                time.sleep(0.001)
            copy.began, copy.answers = False, copy.answers - 1
            copy.store_high(copy.gate, words.OPEN)
            self.assertTrue(copy.has_begun())
            self.assertEqual(copy.level(), 1)
            child.send_signal(signal.SIGSTOP)
            time.sleep(0.1)
            busy = copy.base() + header(copy).slot_first * 16 + copy.word(words.OWNED_AT) + 4
            for value, least, most in (0, 0, 0.9), (1, 1, 100):
                process.write(busy, value.to_bytes(4, sys.byteorder))
                began = time.monotonic()
                copy.wait_for_records()
                self.assertTrue(least <= time.monotonic() - began < most)

    def test_level_and_forms(self):
        with running(program(), 1) as child:
            said, trace = attach(child, output="attached.json")
            self.assertGreater(len(helpers.events(trace, "X", "around")), 10)
            self.assertRegex(said, r"^\d+: attached is recorded\n.*attached.json: written\n$")
            self.assertFalse((scratch() / "attached.json.npuprof").exists())

    @helpers.thorough
    def test_ten_at_once(self):
        with contextlib.ExitStack() as stack:
            children = [stack.enter_context(running(program(), 2)) for _ in range(10)]
            tools = [started(child, "--seconds", "0.2", output=f"ten-{n}.npuprof")
                     for n, child in enumerate(children)]
            for n, tool in enumerate(tools):
                self.assertIn("written", tool.communicate()[1])
                self.assertEqual(tool.returncode, 0)
                for own in marks(load(scratch() / f"ten-{n}.npuprof")).values():
                    self.assertEqual(gaps(own), [])


class Builds(unittest.TestCase):
    def check(self, name, *flags, strip=False, compiler=None):
        path = helpers.build("attached.c", name, *flags, compiler=compiler)
        if strip:
            run([helpers.need("strip"), "--strip-all", path], code=0)
        with running(path, 2) as child:
            _, trace = attach(child)
            self.assertEqual([gaps(own) for own in marks(trace).values()], [[], []])

    def test_static(self):
        self.check("attached_static", "-static", "-DWITHOUT_PLUGINS")

    @helpers.thorough
    def test_linked(self):
        for name, *flags in (("pie", "-fPIE", "-pie"), ("no_pie", "-fno-pie", "-no-pie"),
                             ("static_pie", "-static-pie", "-fPIE", "-DWITHOUT_PLUGINS"),
                             ("private", "-DNPUPROF_STATIC")):
            with self.subTest(name):
                self.check(f"attached_{name}", *flags)

    def test_stripped(self):
        self.check("attached_stripped", strip=True)

    def test_lto(self):
        self.check("attached_lto", "-O2", "-flto", "-ffunction-sections", "-fdata-sections",
                   "-Wl,--gc-sections", strip=True)

    @helpers.thorough
    def test_clang_lto(self):
        helpers.need("ld.lld")
        self.check("attached_clang", "-O2", "-flto", "-fuse-ld=lld", "-Wl,--gc-sections", strip=True,
                   compiler=[helpers.need("clang")])

    @helpers.thorough
    def test_32_bits(self):
        self.check("attached_32", "-static", "-DWITHOUT_PLUGINS",
                   compiler=[helpers.need("i686-linux-gnu-gcc")])

    def test_plugin(self):
        """A library with a copy of its own gives a trace of its own."""
        library = scratch() / "libplugged.so"
        helpers.compile_text(PLUGIN, library, "-shared", "-fPIC")
        with running(program(), 2, library) as child:
            said, trace = attach(child)
            self.assertIn("attached-libplugged.npuprof: written", said)
            self.assertFalse(marks(trace, "in plugin"))
            self.assertEqual([gaps(own) for own in marks(trace).values()], [[], []])
            self.assertTrue(marks(load(scratch() / "attached-libplugged.npuprof"), "in plugin"))

    @helpers.thorough
    def test_copies_that_follow(self):
        """With names of the program exported there is one trace of both."""
        library = scratch() / "libplugged.so"
        helpers.compile_text(PLUGIN, library, "-shared", "-fPIC")
        path = helpers.build("attached.c", "attached_exports", "-rdynamic")
        with running(path, 2, library) as child:
            said, trace = attach(child)
            self.assertEqual(said.count("written"), 1)
            self.assertTrue(marks(trace, "in plugin"))
            self.assertTrue(marks(trace))


class Refusals(unittest.TestCase):
    def refused(self, child, sentence):
        said, trace = attach(child, code=2)
        self.assertRegex(said, sentence)
        self.assertIsNone(trace)

    def test_no_process(self):
        child = subprocess.Popen(["true"])
        child.wait()
        self.refused(child, "there is no such process")
        self.refused(os.getpid(), "there is no npuprof in")

    @helpers.thorough
    def test_nothing_in_it(self):
        for flag in "-DNPUPROF_OFF", "-DNPUPROF_NO_ATTACH", "-DNPUPROF_RECORD_ONLY":
            with self.subTest(flag):
                path = helpers.build("attached.c", f"attached{flag}", flag)
                self.assertNotIn(b"npuprof-attach", path.read_bytes())
                with running(path, 1) as child:
                    self.refused(child, r"there is no npuprof in attached.*NPUPROF_OFF, NPUPROF_NO_ATTACH")

    def test_other_layout(self):
        path = scratch() / "attached_later"
        data = program().read_bytes()
        self.assertEqual(data.count(b"npuprof-attach-1"), 1)
        path.write_bytes(data.replace(b"npuprof-attach-1", b"npuprof-attach-2"))
        path.chmod(0o755)
        with running(path, 1) as child:
            self.refused(child, "attached_later has an npuprof of another version")

    def test_own_recording(self):
        with running(program(), 1, "own") as child:
            self.refused(child, r"attached records by itself: npuprof_start\(\), npuprof_init\(\) or")
            copy, = words.find(Process(child.pid))
            self.assertEqual((copy.word(words.TOOL), copy.word(words.ANSWERS), copy.level()), (0, 0, 1))
        with running(program(), 1, "stream") as child:
            self.refused(child, "hands its records to a sink of its own")

    def test_no_mark(self):
        """Nothing is recorded, and said after a second; a mark that comes later begins it."""
        with running(program(), 1, "wait") as child:
            self.refused(child, "does not record yet: no mark has run since\n.*nothing was recorded: no mark")
            tool = started(child, "--seconds", "0.3")
            self.assertIn("no mark has run since", tool.stderr.readline())
            child.stdin.write(b"\n")
            child.stdin.flush()
            said = tool.communicate()[1]
            self.assertIn("is recorded", said)
            self.assertIn("written", said)
        with running(program(), 1) as child:
            child.send_signal(signal.SIGSTOP)
            self.refused(child, "does not record yet: it is stopped")

    def test_two_tools(self):
        with running(program(), 1) as child:
            tool = started(child, output="first.npuprof")
            self.assertIn("is recorded; Ctrl-C ends it", tool.stderr.readline())
            before = words.find(Process(child.pid))[0]
            self.refused(child, "is recorded by another npuprof.py attach")
            self.assertEqual(before.word(words.STATE), 1)
            tool.send_signal(signal.SIGTERM)
            self.assertIn("written", tool.communicate()[1])
            self.assertEqual(tool.returncode, 0)
            self.assertEqual(gaps(marks(load(scratch() / "first.npuprof"))[0]), [])
            attach(child)

    def test_wrong_words(self):
        for wrong in "x", "1.5", "":
            self.assertIn("not a whole number", helpers.npuprof_py("attach", wrong, code=2).stderr)
        for wrong in "0", "99999999999":
            self.assertIn("there is no such process", helpers.refused("attach", wrong))
        for wrong in "0", "x", "nan", "-1":
            said = helpers.npuprof_py("attach", 1, "--seconds", wrong, code=2).stderr
            self.assertIn("not 0.01 to 3600", said)
        self.assertIn("unknown extension", helpers.refused("attach", os.getpid(), "-o", "a.txt"))


class Rights(unittest.TestCase):
    """As another user, in another container, and without the right to be looked into."""

    def setUp(self):
        if os.geteuid():
            raise unittest.SkipTest("needs root, to become another user")
        self.user = pwd.getpwnam("nobody")

    def as_nobody(self, *command):
        return [helpers.need("setpriv"), f"--reuid={self.user.pw_uid}", f"--regid={self.user.pw_gid}",
                "--clear-groups", "--inh-caps=-all", "--bounding-set=-all", *command]

    def said(self, child, *command):
        return run([*command, sys.executable, NPUPROF_PY, "attach", child.pid, "--seconds", "0.1", "-o",
                    "/dev/null"], code=2).stderr

    def shown(self):
        """The program where every user may run it."""
        folder = scratch() / "shown"
        folder.mkdir(exist_ok=True)
        for path in (scratch(), folder):
            path.chmod(0o755)
        path = shutil.copy(program(), folder / "attached")
        if run(self.as_nobody("test", "-x", path)).returncode:
            raise unittest.SkipTest("another user does not reach the folder of this test")
        return path

    def test_other_user(self):
        with running(program(), 1) as child:
            self.assertIn("it belongs to user 0: run this as that user, or as root",
                          self.said(child, *self.as_nobody()))

    def test_not_dumpable(self):
        with running(*self.as_nobody(self.shown(), 1, "undumpable")) as child:
            self.assertIn("it may not be dumped", self.said(child, *self.as_nobody()))
            self.assertTrue(attach(child)[1])      # root may
        with running(*self.as_nobody(self.shown(), 1)) as child:
            run([*self.as_nobody(), sys.executable, NPUPROF_PY, "attach", child.pid, "--seconds", "0.1", "-o",
                 "/dev/null"], code=0)

    def test_container(self):
        unshare = [helpers.need("unshare"), "--user", "--map-root-user"]
        if run([*unshare, "true"]).returncode:
            raise unittest.SkipTest("no user namespace can be made here")
        with running(program(), 1) as child:
            self.assertIn("it is in another container, or a security module forbids it",
                          self.said(child, *unshare))

    def test_capabilities(self):
        with running(helpers.need("setpriv"), f"--reuid={self.user.pw_uid}", "--clear-groups",
                     "--inh-caps=+net_raw", "--ambient-caps=+net_raw", self.shown(), 1) as child:
            self.assertIn("it has capabilities that you have not", self.said(child, *self.as_nobody()))

    def test_yama(self):
        with running(*self.as_nobody(self.shown(), 1)) as child:
            process = Process(child.pid)
            for scope, may, sentence in ((1, 0, "only those that started it may"), (2, 0, "only root may"),
                                         (3, 1, "nobody may until the machine starts again")):
                said = f"CapEff:\t{may << 19:016x}\n"
                with unittest.mock.patch.object(process_module, "number_in", lambda *_, scope=scope: scope), \
                        unittest.mock.patch.object(process_module, "own_status", lambda said=said: said), \
                        unittest.mock.patch.object(os, "geteuid", lambda: self.user.pw_uid):
                    self.assertIn(f"{sentence} ", process.why_not())
                    self.assertIn(f"kernel.yama.ptrace_scope is {scope}", process.why_not())

    def test_only_data_is_written(self):
        with running(program(), 1) as child:
            process = Process(child.pid)
            code = next(start for start, _, may, *_ in process.maps if "x" in may)
            with self.assertRaisesRegex(Refused, "which is no data"):
                process.write(code, b"\0")


class Ends(unittest.TestCase):
    @helpers.thorough
    def test_program_ends(self):
        with running(program(), 2) as child:
            tool = started(child)
            self.assertIn("is recorded", tool.stderr.readline())
            time.sleep(2.5)
            child.kill()
            self.assertIn("has ended; what was there a second before is written", tool.communicate()[1])
            self.assertEqual(tool.returncode, 1)
        for own in marks(load(scratch() / "attached.npuprof")).values():
            self.assertEqual(gaps(own), [])
            self.assertGreater(len(own), 1000)

    def test_number_is_used_again(self):
        """What was opened stays that of the one process, also when it becomes another program."""
        becomes = "echo ready; read line; exec sleep 100"
        with running("sh", "-c", becomes) as child, running(program(), 1) as other:
            processes = [Process(child.pid), Process(other.pid)]
            places = [next(start for start, _, may, *_ in one.maps if "w" in may) for one in processes]
            processes[0].read(places[0], 1)
            child.stdin.write(b"\n")
            child.stdin.flush()
            other.kill()
            time.sleep(0.2)
            for process, place in zip(processes, places):
                self.assertRaises(Gone, process.read, place, 1)
                self.assertRaises(Gone, process.write, place, b"x")

    @helpers.thorough
    def test_tool_is_killed(self):
        """The recording ends by itself, and the next tool begins anew."""
        with running(program(), 2) as child:
            tool = started(child)
            self.assertIn("is recorded", tool.stderr.readline())
            tool.kill()
            tool.communicate()
            copy, = words.find(Process(child.pid))
            self.assertEqual(copy.word(words.STATE), 1)
            for _ in range(200):
                if not copy.word(words.STATE):
                    break
                time.sleep(0.1)
            self.assertEqual(copy.word(words.STATE), 0)
            self.assertLess(copy.level(), 0)
            _, trace = attach(child)
            self.assertEqual([gaps(own) for own in marks(trace).values()], [[], []])

    def test_tool_is_killed_just_now(self):
        with running(program(), 2) as child:
            tool = started(child)
            self.assertIn("is recorded", tool.stderr.readline())
            tool.kill()
            tool.communicate()
            _, trace = attach(child)
            numbers = marks(trace)
            self.assertEqual([gaps(own) for own in numbers.values()], [[], []])
            self.assertLess(max(map(len, numbers.values())), 5000)      # of the second tool's time alone


@helpers.thorough
class Page(unittest.TestCase):
    """What tools/README.md says of a program that is already running, or already dead, beside attach."""

    def test_core_file(self):
        gcore = helpers.need("gcore")
        path = shutil.copy(program(), scratch() / "stripped")
        run([helpers.need("strip"), "--strip-all", path], code=0)
        with running(path, 2, "own") as child:
            time.sleep(0.2)
            run([gcore, "-o", scratch() / "core", child.pid], code=0)
        trace = scratch() / "core.json"
        core = scratch() / f"core.{child.pid}"
        run([helpers.tool("npuprof-convert"), core, "--elf", path, "-o", trace], code=0)
        self.assertEqual([gaps(own) for own in marks(helpers.load(trace)).values()], [[], []])

    def test_gdb(self):
        gdb, trace = [helpers.need("gdb"), "-q", "-batch", "-p"], scratch() / "gdb.json"
        with running(helpers.build("attached.c", "attached_g", "-g"), 2) as child:
            for call in "npuprof_start(1)", f'npuprof_dump("{trace}")':
                run([*gdb, child.pid, "-ex", f"call (int){call}"], code=0)
                time.sleep(0.2)
        numbers = marks(helpers.load(trace))
        self.assertEqual([gaps(own) for own in numbers.values()], [[], []])
        self.assertGreater(min(map(len, numbers.values())), 100)
