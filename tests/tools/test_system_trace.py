# test: time=60 - system-trace: what it sets up, says and leaves behind; on a made tracefs, and a real one
# SPDX-License-Identifier: MIT
import contextlib
import errno
import io
import os
import pathlib
import re
import shutil
import signal
import subprocess
import sys
import time
import unittest
from unittest import mock

import helpers
from helpers import scratch
from npuprof import cli
from npuprof.base.messages import Refused
from npuprof.kernel import tracefs
from real import runs

BASIC = ("sched/sched_switch", "sched/sched_waking", "sched/sched_wakeup_new", "irq/irq_handler_entry",
         "irq/irq_handler_exit", "irq/softirq_raise", "irq/softirq_entry", "irq/softirq_exit",
         "timer/hrtimer_expire_entry", "timer/hrtimer_expire_exit")
TEXT = ("# tracer: nop\n          app-7     [000] d..2.     1.000000: sched_waking: comm=a pid=8 prio=9 "
        "target_cpu=000\n")
EXIT = "import sys; sys.exit(int(sys.argv[1]))"
PROGRAM = """
#include "npuprof.h"
#include <time.h>
int main(void)
{
    struct timespec pause = { 0, 3000000 };
    for (int i = 0; i < 50; i++) { PROF_SCOPE("wait"); nanosleep(&pause, NULL); }
    return 5;
}
"""


class Made:
    """A folder that stands for tracefs. events: those of its kernel; last: {file: text} of the instance that
    was removed last."""

    def __init__(self, events, clocks="[local] global mono boot", stats="overrun: 0\ndropped events: 0\n"):
        self.events, self.clocks, self.stats = events, clocks, stats
        self.root, self.last, self.removed = scratch() / "tracing", None, []
        shutil.rmtree(self.root, ignore_errors=True)
        (self.root / "instances").mkdir(parents=True)

    def __getattr__(self, name):
        """It stands for the module os, whose mkdir and rmdir do here what tracefs does."""
        return getattr(os, name)

    def put(self, path, text=""):
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)

    def mkdir(self, folder):
        os.mkdir(folder)
        for name, text in (("tracing_on", "1"), ("trace_clock", self.clocks), ("buffer_size_kb", "7"),
                           ("options/record-tgid", "0"), ("options/overwrite", "0"),
                           ("trace_marker", ""), ("trace", TEXT), ("per_cpu/cpu0/stats", self.stats),
                           *((f"events/{event}/enable", "0") for event in self.events)):
            self.put(pathlib.Path(folder) / name, text)

    def rmdir(self, folder):
        path = pathlib.Path(folder)
        self.last = {str(file.relative_to(path)): file.read_text() for file in path.rglob("*")
                     if file.is_file()}
        self.removed.append(path.name)
        shutil.rmtree(folder)

    def run(self, *words):
        """(exit code, what it said on stderr) of the command with those words."""
        said = io.StringIO()
        with mock.patch("npuprof.system_trace.tracefs", lambda: str(self.root)), \
                mock.patch.object(tracefs, "os", self), contextlib.redirect_stderr(said):
            code = cli.main(["system-trace", *map(str, words)])
        return code, said.getvalue()

    def enabled(self):
        return {name.removeprefix("events/").removesuffix("/enable") for name, text in self.last.items()
                if name.startswith("events/") and text == "1"}


class SetUp(unittest.TestCase):
    def setUp(self):
        self.out = scratch() / "s.txt"
        self.out.unlink(missing_ok=True)

    def test_what_is_recorded(self):
        more = {"gpu_scheduler/drm_sched_job_run", "rpm/rpm_resume", "vpu/job"}
        made = Made((*BASIC, *more, "net/netif_rx"))
        code, said = made.run("-o", self.out, "--buffer-kb", "64", "0.01")
        self.assertEqual((code, said), (0, ""))
        self.assertEqual(self.out.read_text(), TEXT)
        self.assertEqual(made.enabled(), {*BASIC, *more})
        now = {name: made.last[name] for name in ("tracing_on", "trace_clock", "buffer_size_kb")}
        # Why not whole texts: a made file keeps what was longer before.
        self.assertEqual([text[:4] for text in now.values()], ["0", "mono", "64"])
        self.assertEqual(made.last["options/record-tgid"], "1")
        self.assertEqual(made.last["options/overwrite"], "1")
        self.assertRegex(made.last["trace_marker"], r"^npuprof_clock mono=\d+ boot=\d+")
        self.assertEqual(made.last["trace_marker"].count("npuprof_clock"), tracefs.MARKERS)
        self.assertEqual(os.listdir(made.root / "instances"), [])

    def test_what_is_missing(self):
        """It is named, with what it would tell; what was asked for, too."""
        made = Made(("sched/sched_switch", "gpu_scheduler/drm_run_job"), clocks="[local] boot")
        code, said = made.run("-o", self.out, "--event", "my:own", "0.01")
        self.assertEqual(code, 0)
        self.assertIn(", sched/sched_wakeup_new: it does not tell why threads wait", said)
        self.assertIn("it does not tell which interrupt ended a wait", said)
        self.assertNotIn("no event of a device's jobs", said)
        self.assertIn("--event my/own: this kernel has none", said)
        self.assertTrue(made.last["trace_clock"].startswith("boot"))
        said = Made(BASIC).run("-o", self.out, "0.01")[1]
        self.assertIn("no event of a device's jobs: load the driver first", said)

    def test_more_events(self):
        (scratch() / "d.toml").write_text('[[device]]\nname = "N"\nkey = ["n"]\n'
                                          'submit = { event = "toy:begin", match = "{n}" }\n'
                                          'end = { event = "toy:end", match = "{n}" }\n')
        made = Made((*BASIC, "toy/begin", "toy/end", "power", "net/x"))
        made.run("-o", self.out, "--ftrace-devices", scratch() / "d.toml", "--event", "power", "0.01")
        self.assertLessEqual({"toy/begin", "toy/end", "power"}, made.enabled())

    def test_lost(self):
        said = Made(BASIC, stats="overrun: 12\ndropped events: 3\nbytes: 9\n").run("-o", self.out, "0.01")[1]
        self.assertIn("15 events did not fit, the oldest: --buffer-kb 32768", said)

    def test_exit_codes(self):
        made = Made(BASIC)
        for code in (0, 3, 2):
            self.assertEqual(made.run("-o", self.out, "--", sys.executable, "-c", EXIT, code)[0], code)
        kill = "import os; os.kill(os.getpid(), 9)"
        self.assertEqual(made.run("-o", self.out, "--", sys.executable, "-c", kill)[0], 137)
        self.assertEqual(self.out.read_text(), TEXT)

    def test_refusals(self):
        """Each leaves neither an instance nor a file."""
        for words, said in ((["--", "no such program"], "no such program: no such command"),
                            (["0"], "more than 0"), (["--buffer-kb", "1", "1"], "from 64 to"),
                            (["--event", "../x", "1"], "neither SYSTEM/EVENT nor a SYSTEM"),
                            (["--ftrace-devices", "none.toml", "1"], "cannot be read"),
                            (["--", "/dev/null"], "/dev/null: no such command")):
            made = Made(BASIC)
            self.assertEqual(made.run("-o", self.out, *words)[0], 2, words)
            self.assertIn(said, made.run("-o", self.out, *words)[1])
            self.assertEqual(os.listdir(made.root / "instances"), [])
            self.assertFalse(self.out.exists())
        self.assertIn("unknown extension", Made(BASIC).run("-o", scratch() / "s.dat", "1")[1])

    def test_killed_runs(self):
        """Instances of runs that are no more are removed; of others they stay."""
        made = Made(BASIC)
        dead = subprocess.Popen([sys.executable, "-c", ""])
        dead.wait()
        same = tracefs.same_pids()
        for name in (f"npuprof-{dead.pid}{same}", f"npuprof-{dead.pid}-7", f"npuprof-{os.getppid()}{same}",
                     f"npuprof-x{same}", "somebody"):
            (made.root / "instances" / name).mkdir()
        made.run("-o", self.out, "0.01")
        self.assertEqual(made.removed, [f"npuprof-{dead.pid}{same}", f"npuprof-{os.getpid()}{same}"])
        self.assertEqual(len(os.listdir(made.root / "instances")), 4)

    def test_rights(self):
        """It says which right is missing."""
        for number, user, said in ((errno.EACCES, 1000, "use sudo, or let root give it to a group"),
                                   (errno.EPERM, 0, "lockdown"),
                                   (errno.EROFS, 0, "in a container run this on"),
                                   (errno.ENOSPC, 0, "cannot be used: No space left")):
            def refuses(*_, number=number):
                raise OSError(number, os.strerror(number))
            made = Made(BASIC)
            made.mkdir = refuses
            with mock.patch.object(os, "geteuid", lambda user=user: user):
                self.assertIn(said, made.run("-o", self.out, "1")[1])
        (scratch() / "mounts").write_text("proc /proc proc rw 0 0\n")
        with mock.patch.object(tracefs, "MOUNTS", str(scratch() / "mounts")), \
                self.assertRaisesRegex(Refused, "tracefs is not mounted: as root, mount"):
            tracefs.tracefs()
        (scratch() / "mounts").write_text("none /a/b tracefs rw 0 0\n")
        with mock.patch.object(tracefs, "MOUNTS", str(scratch() / "mounts")):
            self.assertEqual(tracefs.tracefs(), "/a/b")


def read(path):
    with contextlib.suppress(OSError):
        return path.read_text()
    return ""


@unittest.skipIf(runs.no_tracer(), "the kernel's tracer needs root, and tracefs mounted")
class OfThisMachine(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.root = pathlib.Path(tracefs.tracefs())
        (scratch() / "p.c").write_text(PROGRAM)
        cls.program = helpers.build(scratch() / "p.c", "p")
        cls.tool = [sys.executable, str(helpers.ROOT / "tools/npuprof.py"), "system-trace"]

    def setUp(self):
        self.before = self.state()
        self.out = scratch() / "r.txt"
        self.out.unlink(missing_ok=True)

    def tearDown(self):
        self.assertEqual(self.state(), self.before)

    def state(self):
        """What must stay as it was."""
        return [(self.root / name).read_text() for name in
                ("tracing_on", "trace_clock", "set_event", "buffer_size_kb")]

    def start(self, *words):
        """A run that has begun to record."""
        process = subprocess.Popen([*self.tool, "-o", self.out, *words], stderr=subprocess.PIPE, text=True)
        self.addCleanup(process.kill)
        self.folder = self.root / "instances" / f"npuprof-{process.pid}{tracefs.same_pids()}"
        until = time.monotonic() + 20
        while time.monotonic() < until:
            # Why not its trace: while others work, that has no end.
            stats = "".join(map(read, self.folder.glob("per_cpu/cpu*/stats")))
            if re.search(r"entries: [1-9]", stats):
                time.sleep(0.2)
                return process
            time.sleep(0.02)
        raise AssertionError("it does not record")

    def test_a_program(self):
        """Its sleeps are there, between the markers; with its marks, on one timeline."""
        done = subprocess.run([*self.tool, "-o", self.out, "--", self.program], env=helpers.environment())
        self.assertEqual(done.returncode, 5)
        text = self.out.read_text()
        self.assertEqual(text.count("npuprof_clock"), 2 * tracefs.MARKERS)
        out = scratch() / "both.json"
        done = subprocess.run([*self.tool, "-o", out, "--", self.program], env=helpers.environment())
        self.assertEqual(done.returncode, 5)
        waits = [event for event in helpers.load(out)["traceEvents"] if event["name"] == "wait"]
        self.assertEqual(len(waits), 50)
        slept = [event for event in waits if event.get("args", {}).get("asleep_ns", 0) > 2500000]
        self.assertGreater(len(slept), 25)

    def test_signals(self):
        """They end the recording, and what there is is written."""
        for number in (signal.SIGINT, signal.SIGTERM):
            process = self.start("60")
            process.send_signal(number)
            self.assertEqual(process.wait(20), 0)
            self.assertEqual(self.out.read_text().count("npuprof_clock"), 2 * tracefs.MARKERS)
            self.assertFalse(self.folder.exists())

    def test_signal_with_a_command(self):
        """The command gets it, and its exit code is passed on."""
        process = self.start("--", "sleep", "60")
        process.send_signal(signal.SIGTERM)
        self.assertEqual(process.wait(20), 128 + signal.SIGTERM)
        self.assertIn("npuprof_clock", self.out.read_text())
        self.assertFalse(self.folder.exists())

    def test_killed(self):
        """The next run removes what a killed one left behind."""
        process = self.start("60")
        process.kill()
        process.wait(20)
        self.assertTrue(self.folder.exists())
        subprocess.run([*self.tool, "-o", self.out, "0.01"], check=True, stderr=subprocess.DEVNULL)
        self.assertFalse(self.folder.exists())


if __name__ == "__main__":
    unittest.main()
