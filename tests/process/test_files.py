# files that cannot be written: full disks, closed descriptors, limits, permissions, links
# SPDX-License-Identifier: MIT
import errno
import glob
import os
import re
import resource
import select
import shutil
import signal
import stat
import subprocess
import threading
import unittest

import helpers
from helpers import environment, events, load, run
from process.test_environment import Case, NAMES

FAULTS = r"""
#include <errno.h>
#include <stdlib.h>
#include <sys/stat.h>
static int no(const char *error) { errno = atoi(getenv(error)); return -1; }
int flock(int fd, int op) { (void)fd; (void)op; return no("FLOCK"); }
int fstat(int fd, struct stat *st)
{
    return getenv("FSTAT") ? no("FSTAT") : fstatat(fd, "", st, 0x1000);
}
"""


FLUSHED = r"""
#define NPUPROF_IMPLEMENTATION
#include "npuprof.h"
#include <unistd.h>
int main(int argc, char **argv)
{
    (void)argv;
    npuprof_start(1);
    { PROF_SCOPE("sent"); }
    if (npuprof_flush() != NPUPROF_OK) return 1;
    { PROF_SCOPE("later"); }
    if (argc > 1) _exit(0);
    return 0;
}
"""


class Trouble(Case):
    """A file that cannot be written: one line that says what and where, the exit code stays, no half file."""

    def check_refused(self, path, cwd=None):
        done = run([self.program], cwd=cwd or self.folder, env=environment(NPUPROF_OUTPUT_PATH=str(path)))
        return self.one_line(done, str(path))

    def test_no_directory(self):
        self.check_refused("no/such/directory/t.json")
        self.assertEqual(self.files(), [])

    def test_a_directory(self):
        (self.folder / "d.json").mkdir()
        self.assertIn("a directory", self.check_refused("d.json"))
        self.assertEqual(self.files(), [])

    def test_a_file_as_directory(self):
        (self.folder / "f").write_text("x")
        self.check_refused("f/t.json")
        self.assertEqual(self.files(), ["f"])

    @helpers.uncounted
    def test_not_permitted(self):
        """A directory that is not ours; root does it as nobody."""
        options = {"user": 65534, "group": 65534, "extra_groups": []} if os.geteuid() == 0 else {}
        self.folder.chmod(0o555)
        self.addCleanup(lambda: self.folder.chmod(0o755))
        try:
            done = self.start(options=options, NPUPROF_OUTPUT_PATH="t.json")
        except PermissionError:
            self.skipTest("nobody may not run a program here")
        self.one_line(done, "t.json", "permission")
        self.assertEqual(self.files(), [])

    def device(self, name, minor):
        """A device to write to. Root gets a copy: a bug must not replace the machine's own."""
        if os.geteuid() != 0:
            return f"/dev/{name}"
        path = self.folder / name
        try:
            os.mknod(path, stat.S_IFCHR | 0o666, os.makedev(1, minor))
            open(path, "w").close()
        except OSError as error:
            self.skipTest(f"no copy of /dev/{name} can be made: {error}")
        return str(path)

    def test_dev_full(self):
        path = self.device("full", 7)
        self.assertIn("space", self.check_refused(path))
        self.assertTrue(stat.S_ISCHR(os.stat(path).st_mode))

    def test_dev_null(self):
        path = self.device("null", 3)
        self.quiet(NPUPROF_OUTPUT_PATH=path)
        self.assertTrue(stat.S_ISCHR(os.stat(path).st_mode))

    def test_fifo(self):
        fifo = self.folder / "fifo"
        os.mkfifo(fifo)
        got = []
        reader = threading.Thread(target=lambda: got.append(fifo.read_bytes()))
        reader.start()
        done = self.start(NPUPROF_OUTPUT_PATH="fifo")
        reader.join(10)
        self.assertEqual(done.returncode, 0)
        self.assertEqual(len(events(helpers.strict_json(got[0]), "X")), len(NAMES))
        self.assertTrue(stat.S_ISFIFO(os.stat(fifo).st_mode))

    def test_fifo_that_nobody_reads(self):
        os.mkfifo(self.folder / "fifo")
        self.assertIn("a pipe that nobody reads", self.check_refused("fifo"))
        self.assertTrue(stat.S_ISFIFO(os.stat(self.folder / "fifo").st_mode))

    def test_locks_and_states_that_cannot_be_had(self):
        """flock() or fstat() fails, as on some network disks and in sandboxes: no temporary file stays."""
        shim = helpers.compile_text(FAULTS, self.folder / "faults.so", "-shared", "-fPIC")
        for flock, fstat in ((errno.EWOULDBLOCK, None), (errno.ENOLCK, errno.EIO), (errno.ENOLCK, None)):
            more = {"FSTAT": str(fstat)} if fstat else {}
            done = self.start(LD_PRELOAD=str(shim), FLOCK=str(flock), NPUPROF_OUTPUT_PATH="t.json", **more)
            self.assertEqual(done.returncode, 0)
            self.assertEqual([name for name in os.listdir(self.folder) if name.endswith(".tmp")], [])
            self.assertEqual((self.folder / "t.json").exists(), not done.stderr, done.stderr)

    def test_closed_pipe(self):
        """A reader that goes away: no SIGPIPE kills the program."""
        fifo = self.folder / "fifo"
        os.mkfifo(fifo)
        end = os.open(fifo, os.O_RDONLY | os.O_NONBLOCK)
        program = helpers.build("pipe.c", "pipe")
        reader = threading.Thread(target=lambda: (select.select([end], [], [], 20), os.close(end)))
        reader.start()
        done = self.start("fifo", program=program, options={"timeout": 20})
        reader.join()
        self.assertEqual(done.returncode, 0, done.stderr)

    def test_full_disk(self):
        with helpers.Mount(16) as disk:
            (disk / "filler").write_bytes(b"x" * 14 * 1024)
            message = self.check_refused("t.json", cwd=disk)
            self.assertIn("space", message)
            self.assertEqual(sorted(os.listdir(disk)), ["filler"])
            old = disk / "old.json"
            (disk / "filler").unlink()
            old.write_bytes(b"y" * 14 * 1024)
            self.check_refused("old.json", cwd=disk)
            self.assertEqual(old.read_bytes(), b"y" * 14 * 1024)    # the old file is untouched
            self.assertEqual(os.listdir(disk), ["old.json"])

    @helpers.thorough
    def test_stream_to_a_full_disk(self):
        """What is in the file, and what the message says is not, are all."""
        program = helpers.build("closed.c", "closed")
        for filled in (47, 48, 56, 64):
            with helpers.Mount(64) as disk:
                (disk / "filler").write_bytes(b"x" * filled * 1024)
                done = run([program], code=0, cwd=disk, env=environment(NPUPROF_OUTPUT_PATH="s.npuprof",
                                                                        NPUPROF_WHEN_FULL="stream"))
                (line,) = done.stderr.splitlines()
                lost = int(re.search(r"(\d+) spans and events are lost", line)[1])
                read = run([helpers.tool("npuprof-convert"), disk / "s.npuprof"])
                trace = helpers.strict_json(read.stdout) if read.stdout else None
                there = len(events(trace, "X")) if trace else 0
                self.assertEqual((there + lost, there > 0), (8000, filled < 64), line)
                about = trace["metadata"]["npuprof"] if trace else {"damaged_places": 1}
                # Without space for its end, the file says that this is missing.
                self.assertTrue(about.get("damaged_places") or about["lost"]["sink"] == lost, about)

    @helpers.thorough
    def test_stream_that_ends_with_a_flush(self):
        """Its file is whole, and nobody knows what was recorded since: no command says that it is ok."""
        (self.folder / "flushed.c").write_text(FLUSHED)
        program = helpers.build(self.folder / "flushed.c", "flushed")
        for words, spans in ((["dies"], 1), ([], 2)):
            run([program, *words], code=0, cwd=self.folder,
                env=environment(NPUPROF_OUTPUT_PATH="s.npuprof", NPUPROF_WHEN_FULL="stream"))
            for name in ("again.npuprof", "s.json"):
                run([helpers.tool("npuprof-convert"), "s.npuprof", "-o", name], code=0, cwd=self.folder)
            helpers.npuprof_py("merge", "s.json", "-o", "two.json", cwd=self.folder)
            self.assertEqual(len(events(load(self.folder / "s.json"), "X")), spans)
            for name in ("s.npuprof", "again.npuprof", "s.json", "two.json"):
                said = helpers.npuprof_py("check", name, cwd=self.folder, code=None).stdout
                self.assertEqual("streams end with npuprof_flush()" in said, spans == 1, said)
                self.assertEqual(": ok" in said, spans == 2, said)

    def limited(self, **env):
        """The program with a limit on a file's size; the signal that comes with it would end it."""
        limit = lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (1000, 1000))
        done = self.start(options={"preexec_fn": limit}, **env)
        self.assertEqual(done.returncode, 0)
        return done.stderr.splitlines()

    @helpers.uncounted
    def test_file_size_limit(self):
        """A short write, without root: the limit on a file's size."""
        for name in ("t.json", "t.csv", "t.npuprof"):
            self.assertEqual(len(self.limited(NPUPROF_OUTPUT_PATH=name)), 1)
        self.assertEqual(self.files(), [])

    @helpers.uncounted
    def test_file_size_limit_of_a_mapped_arena(self):
        (line,) = self.limited(NPUPROF_ARENA_PATH="a.npuprof")
        self.assertIn("NPUPROF_ARENA_PATH", line)
        self.assertEqual(self.files(), [])

    @helpers.uncounted
    def test_file_size_limit_of_a_stream(self):
        (line,) = self.limited(NPUPROF_OUTPUT_PATH="s.npuprof", NPUPROF_WHEN_FULL="stream")
        self.assertIn("are lost", line)

    def test_closed_stderr(self):
        """What is to be said to a pipe that nobody reads ends nothing."""
        read, write = os.pipe()
        os.close(read)
        done = subprocess.run([self.program], cwd=self.folder,
                              env=environment(NPUPROF_OUTPUT_PATH="t.json", NPUPROF_LEVEL="high"),
                              stderr=write)
        os.close(write)
        self.assertEqual(done.returncode, 0)
        self.assertEqual(self.names("t.json"), sorted(NAMES))

    @helpers.thorough
    def test_closed_descriptors(self):
        """No file of ours is ever descriptor 0, 1 or 2: not the arena, the stream, an output, a device's."""
        program = helpers.build("closed.c", "closed")
        for closed in ((0,), (1,), (2,), (0, 1, 2)):
            for mode, plain in ((dict(NPUPROF_OUTPUT_PATH="t.json"), "t.json"),
                                (dict(NPUPROF_ARENA_PATH="a.npuprof"), "a.npuprof"),
                                (dict(NPUPROF_OUTPUT_PATH="s.npuprof", NPUPROF_WHEN_FULL="stream"),
                                 "s.npuprof")):
                with self.subTest(closed=closed, **mode):
                    for name in self.files():
                        (self.folder / name).unlink()
                    done = subprocess.run([program, "dump.json", *map(str, closed)], cwd=self.folder,
                                          env=environment(**mode),
                                          preexec_fn=lambda: [os.close(n) for n in closed])
                    self.assertEqual(done.returncode, 0)
                    self.assertEqual(self.files(), sorted(["dump.json", plain]))
                    for name in self.files():
                        self.assertNotIn(b"XXXX", (self.folder / name).read_bytes())
                    if plain != "s.npuprof":
                        self.assertEqual(len(events(load(self.folder / "dump.json"), "X")), 8000)

    def test_existing_file_is_replaced_whole(self):
        path = self.folder / "t.json"
        path.write_text("old " * 100000)
        before = path.stat().st_ino
        reader = open(path)
        self.start(NPUPROF_OUTPUT_PATH="t.json")
        self.assertEqual(self.names("t.json"), sorted(NAMES))
        self.assertNotEqual(path.stat().st_ino, before)
        self.assertEqual(reader.read(), "old " * 100000)     # who reads the old file goes on reading it
        reader.close()
        self.assertEqual(self.files(), ["t.json"])

    def test_symlink_at_the_temporary_name(self):
        """A link that waits at a temporary name is not followed. The name is found by tracing; the common
        ones are tried blind."""
        victim = self.folder / "victim"
        victim.write_text("precious")
        for name in ("t.json.tmp", ".t.json.tmp", "t.json~", "t.json.part", "t.json.npuprof-tmp",
                     "t.json.new"):
            os.symlink(victim, self.folder / name)
        strace = shutil.which("strace")
        if strace:
            done = run([strace, "-f", "-e", "trace=openat,open,creat", self.program], cwd=self.folder,
                       env=environment(NPUPROF_OUTPUT_PATH="t.json"))
            for line in done.stderr.splitlines():
                if "O_CREAT" in line and "t.json" in line:
                    self.assertRegex(line, "O_EXCL|O_NOFOLLOW")
        self.start(NPUPROF_OUTPUT_PATH="t.json")
        self.assertEqual(victim.read_text(), "precious")
        self.assertEqual(self.names("t.json"), sorted(NAMES))

    def test_a_link_in_the_way_is_not_followed(self):
        """The link gives way to the trace; what it leads to stays. Or it is refused."""
        victim = self.folder / "victim"
        for name, more in (("t.json", {}), ("t.csv", {}), ("t.npuprof", {}),
                           ("s.npuprof", {"NPUPROF_WHEN_FULL": "stream"})):
            victim.write_text("precious")
            os.symlink(victim, self.folder / name)
            done = self.start(NPUPROF_OUTPUT_PATH=name, **more)
            self.assertEqual(done.returncode, 0)
            self.assertEqual(victim.read_text(), "precious", name)
            self.assertEqual((self.folder / name).is_symlink(), bool(done.stderr), name)

    def test_permissions_follow_umask(self):
        self.start(options={"preexec_fn": lambda: os.umask(0o027)}, NPUPROF_OUTPUT_PATH="t.json")
        self.assertEqual(stat.S_IMODE((self.folder / "t.json").stat().st_mode), 0o640)

    def test_existing_file_keeps_its_mode(self):
        for mode in (0o600, 0o664, 0o444):
            for name in ("t.json", "t.csv", "t.npuprof"):
                (self.folder / name).write_text("old")
                (self.folder / name).chmod(mode)
                self.start(NPUPROF_OUTPUT_PATH=name)
                self.assertEqual(stat.S_IMODE((self.folder / name).stat().st_mode), mode)
                self.assertGreater((self.folder / name).stat().st_size, 100)
                (self.folder / name).unlink()

    def test_growing_files_keep_the_mode(self):
        """A stream and a mapped arena have the mode of the file that they move aside."""
        for env in ({"NPUPROF_OUTPUT_PATH": "t.npuprof", "NPUPROF_WHEN_FULL": "stream"},
                    {"NPUPROF_ARENA_PATH": "t.npuprof"}):
            for mode in (0o600, 0o664):
                (self.folder / "t.npuprof").write_text("old")
                (self.folder / "t.npuprof").chmod(mode)
                self.start(**env)
                for name in ("t.npuprof", "t.1.npuprof"):
                    self.assertEqual(stat.S_IMODE((self.folder / name).stat().st_mode), mode, env)
                    (self.folder / name).unlink()

    def test_killed_dump(self):
        """What it leaves is removed by the next dump of the same path, and of none other."""
        program = helpers.build("instrumented.c", "killed", "-Wl,--wrap=write",
                                helpers.PROGRAMS / "killed_write.c")
        done = self.start(program=program, NPUPROF_OUTPUT_PATH="t.json")
        self.assertEqual(done.returncode, -signal.SIGKILL)
        left = glob.glob(str(self.folder / ".*.tmp"))
        self.assertEqual(len(left), 1)
        self.assertEqual(glob.glob(str(self.folder / "*")), [])
        self.start(NPUPROF_OUTPUT_PATH="other.json")
        self.assertEqual(glob.glob(str(self.folder / ".*.tmp")), left)
        self.start(NPUPROF_OUTPUT_PATH="t.json")
        self.assertEqual(glob.glob(str(self.folder / ".*.tmp")), [])
        self.assertEqual(self.names("t.json"), sorted(NAMES))

    def test_dumps_to_one_path_at_once(self):
        """Nobody takes a file in use for one left over: all succeed, and the file is whole."""
        program = helpers.build("closed.c", "closed")
        many = [subprocess.Popen([program, "t.json"], cwd=self.folder,
                                 env=environment(NPUPROF_OUTPUT_PATH="t.json")) for _ in range(4)]
        self.assertEqual([process.wait(60) for process in many], [0] * 4)
        self.assertEqual(self.files(), ["t.json"])
        self.assertEqual(len(self.names("t.json")), 8000)

    def test_nothing_left_behind(self):
        for _ in range(3):
            self.start(NPUPROF_OUTPUT_PATH="t.json")
        self.assertEqual(self.files(), ["t.json"])
        self.assertEqual(glob.glob(str(self.folder / ".*")), [])
