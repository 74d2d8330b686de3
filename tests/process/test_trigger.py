# test: time=300 - triggers on a name: a file around any span, instant or category
# SPDX-License-Identifier: MIT
import re
import signal
import subprocess
import time

import helpers
from helpers import events, load

FORMS = {"scope": "span:decode>800ms", "args": "span:decode>800ms", "record": "span:decode>800ms",
         "block": "span:decode>800ms", "text": "span:decode>800ms", "category": "category:codec>800ms",
         "instant": "instant:decode"}


class Case(helpers.Folder):
    SOURCE = "watch.c"

    def watch(self, *arguments, **env):
        """Runs the program; its figures, and the lines of stderr."""
        names = {"NPUPROF_OUTPUT_PATH": "t.json"} | {f"NPUPROF_{key}": text for key, text in env.items()}
        done = self.start(*arguments, **names)
        self.assertEqual(done.returncode, 0, done.stderr)
        return {k: int(v) for k, v in re.findall(r"(\w+)=(\d+)", done.stdout)}, done.stderr.splitlines()

    def others(self, path):
        """The numbers of the spans around those that are watched."""
        return sorted(e["args"]["i"] for e in events(load(self.folder / path), "X", "other"))

    def traces(self):
        return [name for name in self.files() if name.endswith(".json")]


class Trigger(Case):
    def test_every_form(self):
        """The one slow span of thirty, however it is recorded; nothing else makes a file or is lost."""
        for form, trigger in FORMS.items():
            with self.subTest(form=form):
                figures, said = self.watch(form, TRIGGER=trigger)
                self.assertEqual((said, figures["slow"], figures["failed"]), ([], 1, 0))
                self.assertEqual(self.files(), ["t.0.json", "t.json"])
                self.assertEqual(self.others("t.0.json"), list(range(21)))
                self.assertEqual(self.others("t.json"), list(range(30)))
                self.empty()

    def test_before_and_after(self):
        """before cuts off what began earlier than that; after waits for what comes."""
        self.watch("scope", TRIGGER="span:decode>800ms,before=500ms")
        spans = events(load(self.folder / "t.0.json"), "X", "decode")
        self.assertGreater(max(e["dur"] for e in spans), 800_000)
        others = self.others("t.0.json")
        self.assertEqual(others, list(range(others[0], 21)))
        self.assertGreater(others[0], 10)
        self.empty()
        self.watch("scope", TRIGGER="span:decode>800ms,after=1us")
        others = self.others("t.0.json")
        self.assertEqual((21 in others, 29 in others), (True, False))
        self.empty()
        self.watch("scope", TRIGGER="span:decode>800ms,before=500ms,after=1h")     # it ends before that
        self.assertEqual(self.files(), ["t.0.json", "t.json"])
        others = self.others("t.0.json")
        self.assertEqual(others, list(range(others[0], 30)))
        self.assertGreater(others[0], 10)

    def test_without_a_limit(self):
        figures, _ = self.watch("scope", TRIGGER="span:decode,every=0s,max=4")
        self.assertEqual((figures["slow"], self.files()[:-1]), (30, [f"t.{n}.json" for n in range(4)]))

    def test_others_pay_nothing(self):
        """What is not watched makes no file and no look; that is said once, at exit."""
        for trigger in ("span:decod>1ns", "instant:decode", "category:code", "span:other2"):
            self.nothing_comes("scope", trigger)

    def test_neither_span_nor_instant(self):
        for trigger in ("span:decode", "instant:decode", "category:codec"):
            self.nothing_comes("neither", trigger)

    def nothing_comes(self, form, trigger):
        figures, said = self.watch(form, TRIGGER=trigger)
        self.assertEqual((figures["slow"], self.files(), len(said)), (0, ["t.json"], 1), trigger)
        self.assertRegex(said[0], "never looked at: .*what a trigger names came")

    def test_given_by_the_program(self):
        """By npuprof_init(), with the same text."""
        figures, said = self.watch("late")
        self.assertEqual((figures["slow"], figures["captures"], said), (1, 1, []))

    def test_threads(self):
        """All at once: as many files as asked for, each whole; every span is there or counted."""
        figures, said = self.watch("threads", 8, 300, TRIGGER="span:decode,every=0s,max=5", ARENA_BYTES="4M")
        self.assertEqual((said, figures["slow"], figures["captures"], figures["failed"]), ([], 2400, 5, 0))
        self.assertEqual(self.files(), [*(f"t.{n}.json" for n in range(5)), "t.json"])
        about = load(self.folder / "t.json")["metadata"]["npuprof"]
        lost = sum(about["lost"].values())
        self.assertEqual(figures["recorded"] + lost, 8 * (300 + 20))

    def test_killed(self):
        """What was written is whole."""
        env = helpers.environment(NPUPROF_OUTPUT_PATH="t.json",
                                  NPUPROF_TRIGGER="span:decode,every=1ms,before=1ms")
        for _ in range(3):
            program = subprocess.Popen([self.program, "for-ever"], cwd=self.folder, env=env)
            until = time.monotonic() + 60
            while len(self.traces()) < 3 and time.monotonic() < until:     # beside one that is being written
                time.sleep(0.01)
            program.kill()
            self.assertEqual(program.wait(), -signal.SIGKILL)
            names = self.traces()
            whole = [name for name in names if (self.folder / name).stat().st_size]
            self.assertGreaterEqual(len(whole), max(2, len(names) - 1))    # one may be taken only
            for name in whole:
                load(self.folder / name)
            self.empty()

    def test_fork(self):
        """The child watches, too, with a table of its own."""
        self.watch("fork", TRIGGER="span:decode>800ms")
        found = [len(self.others(name)) for name in self.files() if ".0." in name]
        self.assertEqual(found, [21], self.files())


class Grammar(Case):
    def test_bad_triggers(self):
        for value in ("span:", "span", "span:decode>5mss", "span:decode>5", "spam:decode>5ms",
                      "span:decode>5ms,x=3", "inference", "instant:mark>5ms", "span:a,before=1",
                      "span:a,max=3s", "span:a,after=1s,after=2s", "span:" + 64 * "n"):
            _, said = self.watch("scope", TRIGGER=value)
            self.assertEqual((len(said), self.files()), (1, ["t.json"]), value)
            self.assertIn("give inference>20ms", said[0])

    def test_names_with_signs(self):
        """A sign that no number follows belongs to the name."""
        figures, said = self.watch("scope", TRIGGER="span:f<g>")
        self.assertIn("never looked at", said[0])

    @helpers.uncounted
    def test_set_user_id(self):
        env = {"NPUPROF_TRIGGER": "span:decode", "NPUPROF_OUTPUT_PATH": "t.json"}
        for program, is_set in helpers.set_user_id(self.program, self.folder):
            self.quiet("scope", program=program, **env)
            self.assertEqual([f for f in self.files() if f.startswith("t.")] != [], not is_set)
