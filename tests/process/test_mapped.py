# the arena in a mapped file: what stands in its way, and what becomes of older files
# SPDX-License-Identifier: MIT
import os
import pathlib
import shutil
import subprocess
import unittest

import helpers
from helpers import environment, load
from process.test_process import Living


class Mapped(Living):
    def start(self, path="t.npuprof", **more):
        return super().start("quick", NPUPROF_ARENA_PATH=str(path), **more)

    def whole(self, name):
        self.assertEqual(self.counts(name), self.WHOLE)

    def refused(self, path, *words, **options):
        """The program runs on, and one line on stderr names the variable and what is wrong."""
        line = self.one_line(self.start(path, **options), "NPUPROF_ARENA_PATH")
        for word in words:
            self.assertIn(word, line.lower())

    def test_older_files_are_moved_aside(self):
        for n in range(4):
            self.assertEqual(self.start().stderr, "")
            self.assertEqual(self.files(),
                             sorted(["t.npuprof", *(f"t.{i}.npuprof" for i in range(1, n + 1))]))
        for name in self.files():
            self.whole(name)

    def test_a_foreign_file_is_not_lost(self):
        (self.folder / "t.npuprof").write_text("somebody's letter")
        self.assertEqual(self.start().stderr, "")
        self.assertEqual((self.folder / "t.1.npuprof").read_text(), "somebody's letter")
        self.whole("t.npuprof")

    def test_a_file_in_use_is_not_touched(self):
        """The first process goes on into its own file; the second takes the name, or none. Nobody's data are
        lost."""
        with self.going(NPUPROF_ARENA_PATH="t.npuprof"):
            done = self.start()
            self.assertEqual(done.returncode, 0)
        counts = [self.counts(name) for name in self.files()]
        self.assertTrue(any(c.get("again", 0) >= 100 for c in counts), counts)
        if not done.stderr:
            self.assertIn(self.WHOLE, counts)

    def test_many_at_once(self):
        started = [subprocess.Popen([self.program, "quick"], cwd=self.folder,
                                    env=environment(NPUPROF_ARENA_PATH="t.npuprof"), stderr=subprocess.PIPE)
                   for _ in range(8)]
        said = b"".join(p.communicate()[1] for p in started)
        whole = 0
        for name in self.files():
            whole += self.counts(name) == self.WHOLE
        self.assertEqual(whole + said.count(b"NPUPROF_ARENA_PATH"), 8, (self.files(), said))

    def test_a_directory_in_the_way(self):
        (self.folder / "t.npuprof").mkdir()
        (self.folder / "t.npuprof" / "inside").write_text("x")
        done = self.start()
        self.assertEqual(done.returncode, 0)
        self.assertEqual([p.read_text() for p in self.folder.rglob("inside")], ["x"])

    def test_not_permitted(self):
        if os.geteuid() == 0:
            done = subprocess.run([shutil.which("setpriv") or "false", "--reuid", "65534", "--clear-groups",
                                   str(self.program), "quick"],
                                  env=environment(NPUPROF_ARENA_PATH="/proc/t.npuprof"),
                                  stderr=subprocess.PIPE, text=True)
            if done.returncode == 1 and not done.stderr.count("NPUPROF"):
                self.skipTest("setpriv is not installed")
            self.assertIn("NPUPROF_ARENA_PATH", done.stderr)
        else:
            self.refused("/t.npuprof", "permission")

    def test_a_link_in_the_way_is_not_followed(self):
        target = self.folder / "precious"
        target.write_text("precious")
        for link in (target, self.folder / "nowhere"):
            with self.subTest(link=link.name):
                (self.folder / "t.npuprof").unlink(missing_ok=True)
                (self.folder / "t.npuprof").symlink_to(link)
                done = self.start()
                self.assertEqual(done.returncode, 0)
                self.assertEqual(target.read_text(), "precious")
                self.assertFalse((self.folder / "nowhere").exists())
                if not done.stderr:
                    self.assertFalse((self.folder / "t.npuprof").is_symlink())
                    self.whole("t.npuprof")

    def test_no_space_is_an_error_at_once(self):
        """A small file system: no SIGBUS later, no half file, one line."""
        with helpers.Mount(512) as small:
            self.refused(small / "t.npuprof")
            self.assertEqual(os.listdir(small), [])

    def test_the_older_file_stays_when_there_is_no_space(self):
        with helpers.Mount(512) as small:
            (small / "t.npuprof").write_text("older")
            self.start(small / "t.npuprof")
            self.assertEqual({p.name: p.read_text() for p in small.iterdir()}, {"t.npuprof": "older"})

    def test_it_goes_on_in_memory(self):
        """A path that cannot be had: the trace is recorded all the same, and says so."""
        self.refused("no/such/t.npuprof", "no such file", NPUPROF_OUTPUT_PATH="t.json")
        self.assertEqual(self.files(), ["t.json"])
        self.whole("t.json")
        self.assertIn("NPUPROF_ARENA_PATH",
                      str(load(self.folder / "t.json")["metadata"]["npuprof"]["unused_environment"]))

    def test_with_an_output_too(self):
        self.assertEqual(self.start(NPUPROF_OUTPUT_PATH="t.json").stderr, "")
        self.assertEqual(self.files(), ["t.json", "t.npuprof"])
        self.whole("t.json")
        self.whole("t.npuprof")

    def test_permissions_follow_umask(self):
        for mask, mode in ((0o077, 0o600), (0o022, 0o644)):
            with self.subTest(mask=oct(mask)):
                self.start(f"t{mask}.npuprof", options={"preexec_fn": lambda: os.umask(mask)})
                self.assertEqual((self.folder / f"t{mask}.npuprof").stat().st_mode & 0o777, mode)

    def test_patterns(self):
        self.start("a-%p-%h-%%-%i.npuprof")
        (name,) = self.files()
        pid = self.read(name)["metadata"]["npuprof"]["pid"]
        self.assertTrue(name.startswith(f"a-{pid}-") and "-%-" in name, name)

    def test_long_path(self):
        self.one_line(self.start("d/" * 5000 + "t.npuprof"))

    @helpers.uncounted
    def test_set_user_id(self):
        """Ignored in a set-user-id program."""
        out = pathlib.Path("/tmp") / f"npuprof-suid-{os.getpid()}.npuprof"
        self.addCleanup(lambda: out.unlink(missing_ok=True))
        for program, is_set in helpers.set_user_id(self.program, self.folder):
            self.quiet(out, program=program)
            self.assertEqual(out.exists(), not is_set)

    def test_policies(self):
        """NPUPROF_WHEN_FULL with a mapped arena; a stream without a file for it is refused in words."""
        for policy in ("keep-oldest", "keep-newest"):
            self.assertEqual(self.start(f"{policy}.npuprof", NPUPROF_WHEN_FULL=policy).stderr, "")
            self.whole(f"{policy}.npuprof")
            self.assertEqual(self.read(f"{policy}.npuprof")["metadata"]["npuprof"]["when_full"], policy)
        done = self.start("s.npuprof", NPUPROF_WHEN_FULL="stream", NPUPROF_OUTPUT_PATH="s.json")
        self.assertEqual(done.returncode, 0)
        self.assertIn("NPUPROF_WHEN_FULL", done.stderr)
        self.whole("s.json")
        self.assertEqual(load(self.folder / "s.json")["metadata"]["npuprof"]["when_full"], "keep-oldest")
