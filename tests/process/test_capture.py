# test: time=240 - capture control: schedules, triggers, signals and the control file decide what is recorded
# SPDX-License-Identifier: MIT
"""What is in which file, counted from outside; tests/programs/capture.c says what the program does."""
import json
import os
import re
import signal

import helpers
from helpers import events, load
SCHEDULE = "wait=10,warmup=5,active=8"


class Case(helpers.Folder):
    SOURCE = "capture.c"

    def files(self):
        """What the program has written."""
        return [name for name in super().files() if name not in ("ctl", "real", "program")]

    def remove_files(self):
        for path in self.files():
            (self.folder / path).unlink()

    def capture(self, *arguments, **env):
        """Runs the program; returns its figures and the lines of stderr."""
        names = {k if k.startswith("TEST") else f"NPUPROF_{k}": v for k, v in env.items()}
        names.setdefault("NPUPROF_OUTPUT_PATH", "t.json")
        done = self.start(*arguments, **names)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.out = done.stdout
        figures = {k: int(v) for k, v in re.findall(r"(\w+)=(\d+)", done.stdout)}
        return figures, done.stderr.splitlines()

    def spans(self, path, name="step"):
        return events(load(self.folder / path), "X", name)

    def steps(self, path):
        """The numbers of the inferences in a file."""
        return sorted(e["args"]["i"] for e in self.spans(path))

    def kinds(self, path, name):
        return [e["args"]["kind"] for e in sorted(self.spans(path, name), key=lambda e: e["ts"])]


class Schedule(Case):
    def test_each_window_is_exact(self):
        figures, said = self.capture("run", 100, 0, SCHEDULE=SCHEDULE + ",repeat=3")
        self.assertEqual((said, self.files()), ([], ["t.0.json", "t.1.json", "t.2.json"]))
        self.assertEqual((figures["captures"], figures["recording"], figures["recorded"]), (3, 0, 0))
        for n in range(3):
            first = 23 * n + 10
            self.assertEqual(self.steps(f"t.{n}.json"), list(range(first, first + 13)))

    def test_warm_up_is_marked(self):
        self.capture("run", 30, 0, SCHEDULE=SCHEDULE + ",repeat=1")
        kinds = self.kinds("t.0.json", "inference")
        self.assertEqual(kinds, ["warm_up"] * 5 + ["inference"] * 8)

    def test_for_ever_and_at_exit(self):
        """The last window is not complete; it is written, too. Nothing is written outside of one."""
        self.capture("run", 10, 0, SCHEDULE="active=4")
        self.assertEqual([self.steps(f) for f in self.files()], [[0, 1, 2, 3], [4, 5, 6, 7], [8, 9]])
        self.remove_files()
        self.capture("run", 12, 0, SCHEDULE="wait=4,active=4")
        self.assertEqual([self.steps(f) for f in self.files()], [[4, 5, 6, 7]])

    def test_records(self):
        self.capture("records", 20, SCHEDULE="by=record,wait=2,warmup=1,active=3,repeat=1")
        self.assertEqual(self.steps("t.0.json"), list(range(4, 12)))
        self.assertEqual(self.kinds("t.0.json", "record"), ["warm_up", "record", "record", "record"])
        self.assertEqual(self.kinds("t.0.json", "inference"), ["inference"] * 8)

    def test_seconds(self):
        self.capture("run", 60, 2000, SCHEDULE="wait=30ms,warmup=0.02s,active=40000us,repeat=1")
        (name,) = self.files()
        spans = sorted((e["ts"], e["dur"]) for e in self.spans(name, "inference"))
        steps = self.steps(name)
        self.assertEqual(steps, list(range(steps[0], steps[-1] + 1)))
        self.assertTrue(1 <= steps[0] <= 15, steps)            # 30 ms at 2 ms or more each
        # Each is let in between the end of the one before and its own start. The warm-up is over when one is
        # let in 20 ms after the first; the last one is let in within 40 ms of that.
        active = next(n for n in range(1, len(spans)) if sum(spans[n - 1]) - spans[0][0] >= 20000)
        self.assertLess(sum(spans[-2]) - spans[active][0], 40000)

    def test_delay_and_duration(self):
        self.capture("run", 60, 2000, DELAY="0.02", DURATION="30ms")
        self.assertEqual(self.files(), ["t.json"])
        steps = self.steps("t.json")
        self.assertEqual(steps, list(range(steps[0], steps[-1] + 1)))
        self.assertTrue(1 <= steps[0] <= 10 and steps[-1] < 59, steps)

    def test_other_patterns(self):
        for path, wanted in (("a%i.json", "a0.json a1.json"), ("b.csv", "b.0.csv b.1.csv"), ("c", "c.0 c.1"),
                             ("d.npuprof", "d.0.npuprof d.1.npuprof")):
            self.capture("run", 8, 0, OUTPUT_PATH=path, SCHEDULE="active=4,repeat=2")
            self.assertEqual([f for f in self.files() if f[0] == path[0]], wanted.split())
        self.capture("run", 8, 0, OUTPUT_PATH="e/", SCHEDULE="active=4,repeat=2")
        self.assertEqual(len([f for f in self.files() if f.startswith("e/profiling_trace/")]), 2)

    def test_files_are_never_overwritten(self):
        (self.folder / "t.0.json").write_text("mine")
        (self.folder / "t.1.json").symlink_to("elsewhere")
        self.capture("run", 8, 0, SCHEDULE="active=4,repeat=2")
        self.assertEqual(self.files(), ["t.0.json", "t.1.json", "t.2.json", "t.3.json"])
        self.assertEqual((self.folder / "t.0.json").read_text(), "mine")
        self.assertTrue((self.folder / "t.1.json").is_symlink())

    @helpers.thorough
    def test_thousand_files(self):
        _, said = self.capture("run", 1200, 0, SCHEDULE="active=1", ARENA_BYTES="64K")
        self.assertEqual(len(self.files()), 1001)
        self.assertEqual([line for line in said if "1000 files" in line], said)

    def test_failures_are_counted_and_named_once(self):
        figures, said = self.capture("run", 20, 0, OUTPUT_PATH="none/t.json", SCHEDULE="active=4,repeat=3")
        self.assertEqual((figures["failed"], figures["captures"], figures["recorded"]), (3, 0, 24))
        self.assertEqual(len([line for line in said if "capture=" in line]), 1, said)

    @helpers.thorough
    def test_nothing_is_lost_uncounted(self):
        """Eight threads record while the windows open and close. An argument is evaluated only for what is
        recorded, so the program knows how many spans it made."""
        figures, said = self.capture("threads", 8, 40, 0, ARENA_BYTES="64M", SCHEDULE="wait=2,active=2")
        found = inferences = lost = 0
        for name in self.files():
            text = (self.folder / name).read_text()
            inferences += text.count('"kind":"inference"')
            found += text.count('"ph":"X","name":"step"')
            lost += sum(json.loads(re.search('"lost":({[^}]*})', text)[1]).values())
        self.assertEqual(said, [])
        self.assertGreater(len(self.files()), 8)
        self.assertGreater(figures["made"], 10000)
        self.assertEqual(found + lost, figures["made"] + inferences)


class Trigger(Case):
    def test_slow_inference(self):
        figures, said = self.capture("run", 40, 1000, 20, TRIGGER="inference>800ms,last=8ms")
        self.assertEqual((said, self.files()[0]), ([], "t.0.json"))
        steps = self.steps("t.0.json")
        self.assertEqual(steps, list(range(steps[0], 21)))     # up to the slow one
        self.assertTrue(10 <= steps[0] <= 20, steps)           # no more than 8 ms before it
        self.assertGreaterEqual(figures["slow"], 1)
        self.assertEqual(len(self.steps("t.json")), 40)        # at exit, as ever

    def test_all_of_the_arena(self):
        self.capture("run", 30, 100, 20, TRIGGER="inference>800ms")
        self.assertEqual(self.steps("t.0.json"), list(range(21)))

    @helpers.thorough
    def test_rate_and_number(self):
        figures, _ = self.capture("run", 30, 5000, TRIGGER="inference>1us,every=50ms")
        self.assertEqual(figures["slow"], 30)
        spans = sorted((e["ts"], e["dur"]) for e in self.spans("t.json", "inference"))
        most = 2 + (sum(spans[-1]) - spans[0][0]) // 50000
        self.assertTrue(2 <= figures["captures"] <= most, (figures, most))
        self.remove_files()
        figures, _ = self.capture("run", 30, 0, TRIGGER="inference>1ns,every=0s,max=3")
        self.assertEqual(self.files(), ["t.0.json", "t.1.json", "t.2.json", "t.json"])

    def test_keeps_the_newest(self):
        for changes, policy in (({}, "keep-newest"), ({"WHEN_FULL": "keep-oldest"}, "keep-oldest")):
            self.capture("run", 3000, 0, ARENA_BYTES="64K", TRIGGER="inference>10s", **changes)
            self.assertEqual(self.steps("t.json")[-1] == 2999, policy == "keep-newest")

    @helpers.thorough
    def test_under_load(self):
        """Eight threads; each file holds of each thread a sequence without holes, and what is in no file is
        counted."""
        figures, said = self.capture("busy", 8, 300, ARENA_BYTES="1M",
                                     TRIGGER="inference>1us,every=30ms,max=8")
        self.assertEqual(said, [])
        self.assertTrue(2 <= figures["captures"] <= 8, figures)
        names = self.files()
        self.assertEqual(names, sorted(f"t.{n}.json" for n in range(figures["captures"])) + ["t.json"])
        seen = set()
        for name in names:
            trace = load(self.folder / name)
            threads = {}
            for e in events(trace, "X"):
                if e["name"] == "step" and "n" in e.get("args", {}):
                    threads.setdefault(e["tid"], []).append(e["args"]["n"])
            seen |= set(threads)
            lost = trace["metadata"]["npuprof"]["lost"]
            holes = sum(max(n) - min(n) + 1 - len(n) for n in threads.values())
            self.assertLessEqual(holes, lost["reading"] + lost["arguments"], name)
        self.assertGreater(len(seen), 1)
        self.assertGreater(figures["recorded"] + figures["lost"], figures["made"])
        inferences = figures["recorded"] + figures["lost"] - figures["made"]
        self.assertLessEqual(abs(inferences * 100 - figures["made"]), 100 * 8 + figures["made"] // 1000)


class Signals(Case):
    def test_dump(self):
        figures, said = self.capture("own", "none", SIGNAL="USR2:dump")
        self.assertEqual((said, figures["captures"], figures["own"]), ([], 6, 0))
        # The file is written at the begin of the next inference, before that is recorded.
        self.assertEqual([self.steps(f"t.{n}.json") for n in range(6)], [list(range(n)) for n in range(6)])

    def test_own_handlers_stay(self):
        figures, said = self.capture("own", "none", SIGNAL="USR2:dump", TEST_OWN_HANDLER="before")
        self.assertEqual((figures["captures"], figures["own"], len(said)), (0, 6, 1))
        self.assertIn("NPUPROF_SIGNAL=USR2:dump", said[0])
        figures, said = self.capture("own", "after", SIGNAL="USR2:dump")
        self.assertEqual((figures["captures"], figures["own"], said), (0, 6, []))

    def test_ignored_signals_stay_ignored(self):
        before = signal.signal(signal.SIGUSR2, signal.SIG_IGN)
        try:
            done = self.start("own", "none", NPUPROF_OUTPUT_PATH="t.json", NPUPROF_SIGNAL="USR2")
        finally:
            signal.signal(signal.SIGUSR2, before)
        self.assertIn("captures=0", done.stdout)
        self.one_line(done)

    def test_idle_program(self):
        """A signal moves the gate at once; its file waits for npuprof_poll()."""
        self.capture("idle", SIGNAL="USR1:toggle,USR2:dump")
        self.assertIn("recording=1", self.out)
        self.assertEqual(self.files(), ["t.0.json", "t.json"])
        self.assertEqual([e["name"] for e in events(load(self.folder / "t.0.json"), "X")
                          if e["name"] != "npuprof pause"], ["plain"])

    @helpers.thorough
    def test_thousand_signals_under_load(self):
        figures, said = self.capture("threads", 8, 1000, 1000, ARENA_BYTES="256K", OUTPUT_PATH="t.npuprof",
                                     WHEN_FULL="keep-newest", SIGNAL="USR1:toggle,USR2:dump")
        self.assertEqual((said, figures["failed"]), ([], 0))
        self.assertGreater(figures["captures"], 10)
        self.assertEqual(figures["recorded"] + figures["lost"], figures["made"])
        self.assertEqual(sorted(self.files()), sorted([f"t.{n}.npuprof" for n in range(figures["captures"])]
                                                      + ["t.npuprof"]))
        self.assertTrue(all((self.folder / f).stat().st_size > 1000 for f in self.files()))


class ControlFile(Case):
    def run_with(self, *texts, **env):
        return self.capture("file", "ctl", *texts, CONTROL="ctl", **env)

    @helpers.thorough
    def test_commands(self):
        figures, said = self.run_with("stop\n", "start\n", "dump\n", "stop\ndump\n", "toggle\n")
        self.assertEqual((said, figures["captures"], figures["recording"]), ([], 2, 1))
        steps = self.steps("t.json")
        self.assertFalse([i for i in steps if 1025 <= i < 2000], steps)      # stopped within 100 ms
        self.assertTrue(set(range(3000, 4000)) & set(steps))
        self.assertFalse([i for i in steps if 4025 <= i < 5000], steps)

    def test_stop_at_the_start(self):
        (self.folder / "ctl").write_text("stop\ndump\n")
        figures, said = self.capture("run", 5, 0, CONTROL="ctl")
        self.assertEqual((said, figures["recorded"], figures["captures"]), ([], 0, 0))

    def test_hostile(self):
        """Nothing of it is obeyed; what is wrong is named once."""
        for text in ("stop" * 1000 + "\n", "\0\1\377stop\n", "rm -rf /\n", "STOP\n"):
            (self.folder / "ctl").write_bytes(text.encode("latin-1"))
            figures, said = self.capture("run", 3, 0, CONTROL="ctl")
            self.assertEqual((figures["recorded"], len(said)), (6, 1), (text[:20], said))
            self.assertTrue(said[0].isprintable())
        (self.folder / "ctl").write_text("stop")                             # no end of the line
        self.assertEqual(self.capture("run", 3, 0, CONTROL="ctl")[0]["recorded"], 6)

    @helpers.thorough
    def test_hostile_files(self):
        path, real = self.folder / "ctl", self.folder / "real"
        real.write_text("stop\n")

        def link():
            path.symlink_to(real)

        def written_by_others():
            path.write_text("stop\n")
            path.chmod(0o666)

        def of_another():
            path.write_text("stop\n")
            os.chown(path, 65534, 65534)

        makers = [link, path.mkdir, lambda: os.mkfifo(path), written_by_others]
        if os.geteuid() == 0:
            makers.append(of_another)
        for make in makers:
            make()
            figures, said = self.capture("run", 3, 0, CONTROL="ctl")
            self.assertEqual((figures["recorded"], len(said)), (6, 1), said)
            path.rmdir() if path.is_dir() and not path.is_symlink() else path.unlink()


class Elsewhere(Case):
    def test_fork(self):
        """The child begins the schedule anew, and has files of its own."""
        self.capture("fork", SCHEDULE="wait=2,active=4,repeat=1")
        names = self.files()
        self.assertEqual(len(names), 2, names)
        (child,) = [n for n in names if n != "t.0.json"]
        self.assertRegex(child, r"^t-\d+\.0\.json$")
        self.assertEqual((self.steps("t.0.json"), self.steps(child)), ([2, 3, 4, 5], [102, 103, 104, 105]))

    def test_commands_hold_in_the_child(self):
        for text, recorded, env in (("stop", 0, {}), ("start", 10, {"SIGNAL": "USR1:toggle"})):
            (self.folder / "ctl").write_text(text + "\n")
            self.capture("fork", CONTROL="ctl", **env)
            (child,) = [n for n in self.files() if n != "t.json"]
            self.assertEqual((len(self.steps("t.json")), len(self.steps(child))), (2 * recorded, recorded))
            self.remove_files()

    @helpers.thorough
    def test_bad_values(self):
        for name, values in {
                "SCHEDULE": ("wait=3", "active=0", "active=1,active=2", "active=-1", "active=1,repeat=2s",
                             "active=1,by=step", "active=1.5", "active=99999999999999999999", "active=1x"),
                "DELAY": ("soon", "-1", "1.", "1.5.5", "5parsecs", "999999999999h"), "DURATION": ("1,5", "s"),
                "TRIGGER": ("inference>", "inference>20", "step>20ms", "inference>1ms,last=3",
                            "inference>1ms,max=2s", "inference>1ms,rate=1"),
                "SIGNAL": ("KILL", "SEGV", "USR1:", "USR1:jump", "USR1,USR1", "RTMIN+99", ","),
                "CONTROL": ("%q",)}.items():
            for value in values:
                with self.subTest(name=name, value=value):
                    figures, said = self.capture("run", 3, 0, **{name: value})
                    self.assertEqual((len(said), figures["recorded"]), (1, 6), said)
                    self.assertIn(value, said[0])
                    unused = load(self.folder / "t.json")["metadata"]["npuprof"]
                    self.assertIn(value, str(unused))

    def test_off_words(self):
        for name in "SCHEDULE DELAY DURATION TRIGGER SIGNAL CONTROL".split():
            for value in ("", "0", "off", "false"):
                figures, said = self.capture("run", 3, 0, **{name: value})
                self.assertEqual((said, figures["recorded"]), ([], 6))

    def test_all_in_one_variable(self):
        """NPUPROF_CAPTURE: each part does what its variable does and counts before that; a wrong part is
        named and the others hold."""
        def run(text, *said_of, **more):
            self.remove_files()
            _, said = self.capture("run", 12, 0, CAPTURE=text, **more)
            self.assertEqual(len(said), len(said_of), said)
            for line, words in zip(said, said_of):
                self.assertTrue(line.startswith("npuprof: NPUPROF_CAPTURE=") and words in line, line)
            return [self.steps(f) for f in self.files() if f != "t.json"]
        self.assertEqual(run("schedule:wait=2,active=4,repeat=2"), [[2, 3, 4, 5], [8, 9, 10, 11]])
        self.assertEqual(run("; schedule:active=4,repeat=1;;", SCHEDULE="active=1,repeat=2"), [[0, 1, 2, 3]])
        self.assertEqual(run("signal:USR2:dump; schedule:wait=2,active=4,repeat=1"), [[2, 3, 4, 5]])
        self.assertEqual(run("schedule:active=4,repeat=1;delay:1h", "1h: there is a schedule"),
                         [[0, 1, 2, 3]])
        for wrong in ("trigger", "trigger=span:x", "Schedule:active=1", ":", "control:x", "x:" + "y" * 2000):
            with self.subTest(wrong=wrong[:20]):
                self.assertEqual(run(f"{wrong};schedule:active=4,repeat=1", "give trigger:, schedule:"),
                                 [[0, 1, 2, 3]])
        for wrong in ("trigger:", "trigger:span", "signal:FOO", "delay:x", "control_path:" + "y" * 1024):
            with self.subTest(wrong=wrong[:20]):
                run(wrong, "")
        _, said = self.capture("plain", 10, CAPTURE="trigger:inference>1ns")
        self.assertEqual((len(said), "never looked at" in said[0]), (1, True))
        self.assertEqual(self.capture("plain", 10, CAPTURE="duration:1h;signal:USR2")[1], [])

    def test_schedule_excludes_delay(self):
        _, said = self.capture("run", 8, 0, SCHEDULE="active=4,repeat=1", DELAY="1h")
        self.assertEqual(len(said), 1)
        self.assertEqual(self.steps("t.0.json"), [0, 1, 2, 3])

    def test_plain_spans_alone(self):
        """Nothing looks at the condition: that is said. A duration ends at a full chunk, and npuprof_poll()
        looks."""
        _, said = self.capture("plain", 10, DELAY="1h")
        self.assertEqual(len(said), 1)
        self.assertIn("never looked at", said[0])
        _, said = self.capture("plain", 20000, 800000, DURATION="500ms")
        self.assertEqual(said, [])
        self.assertTrue(20000 <= len(self.spans("t.json", "plain")) < 30000)
        self.assertEqual(self.capture("plain", 10, 0, 1, DELAY="1h")[1], [])

    @helpers.uncounted
    def test_set_user_id(self):
        """All of it is ignored in a set-user-id program."""
        env = dict(NPUPROF_SCHEDULE="active=2", NPUPROF_SIGNAL="USR1", NPUPROF_TRIGGER="inference>1ns",
                   NPUPROF_CONTROL="ctl", NPUPROF_OUTPUT_PATH="t.json")
        for program, is_set in helpers.set_user_id(self.program, self.folder):
            self.quiet("run", 10, 0, program=program, **env)
            self.assertEqual([f for f in self.files() if f.startswith("t.")] != [], not is_set)


class Description(Case):
    def desc(self, field, text, **env):
        return self.capture("desc", field, text, OUTPUT_PATH="", **env)

    def test_each_field(self):
        self.desc("schedule", "wait=2,active=4,repeat=2")
        self.assertEqual([self.steps(f) for f in self.files()], [[2, 3, 4, 5], [8, 9, 10, 11]])
        self.assertEqual(re.findall(r"told=7,(\d)", self.out), ["1", "0", "1", "0"])
        for field, text, files in (("trigger", "inference>800ms", 2), ("signal", "USR2", 2),
                                   ("delay", "1ms", 1), ("duration", "1ms", 1), ("control_path", "none", 1)):
            self.remove_files()
            self.desc(field, text)
            self.assertIn("init=NPUPROF_OK", self.out)
            self.assertEqual(len(self.files()), files, (field, self.files()))

    def test_told_of_pause_and_resume(self):
        self.desc("control_path", "none")
        self.assertEqual(re.findall(r"told=7,(\d)", self.out), ["1", "0", "1"])

    def test_refused(self):
        for field, text in (("schedule", "x"), ("delay", "x"), ("duration", "0"), ("trigger", "x"),
                            ("signal", "KILL")):
            self.desc(field, text)
            self.assertIn(f"init=NPUPROF_ERR_ARGUMENT: npuprof_init: capture.{field}: give ", self.out)
        self.desc("signal", "USR2", TEST_OWN_HANDLER="later")
        self.assertIn("init=NPUPROF_ERR_ARGUMENT: npuprof_init: capture.signal: the program has", self.out)
        self.assertIn("own=1 ", self.out)

    def test_environment_wins(self):
        self.desc("schedule", "wait=2,active=4,repeat=2", SCHEDULE="active=1,repeat=1")
        self.assertEqual([self.steps(f) for f in self.files()], [[0]])
