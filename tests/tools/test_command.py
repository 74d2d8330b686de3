# test: time=200 - the command npuprof: mistakes in one clear sentence, pipes, streams that fail, colours and
# progress of a terminal, Ctrl-C; completion in the real shells
# SPDX-License-Identifier: MIT
import io
import os
import pty
import re
import shlex
import signal
import subprocess
import sys
import time
import unittest
from unittest import mock

import helpers
import npuprof
from helpers import NPUPROF_PY, npuprof_py, run, scratch
from npuprof.base import messages

# Words of a command line, and what the one line on stderr must say. Each ends with 2.
MISTAKES = [line.split(" | ") for line in """
--jobs | npuprof: --jobs: unknown option
--verison | npuprof: --verison: unknown option: did you mean --version\\?
NOTHING | npuprof: no command is given; see npuprof --help
reprot t.json | 'reprot': unknown command: did you mean report or export\\?
report | usage: npuprof report TRACE
report no.json | no.json: cannot be read: No such file or directory
report empty | empty: holds no trace
report t.json --tabel names | --tabel: unknown option: did you mean --table
report t.json --table nams | --table: 'nams': unknown word: did you mean names\\?
report t.json --table | --table: expected one argument
report t.json --html x.json | x.json: unknown extension, write .html
report t.json --json t.json | t.json: is the input t.json, write to another file
report t.json --html no/x.html | no/x.html: cannot be written: No such file
report t.json --inference x | --inference x: not N or N-M with 1 <= N <= M
report t.json --inference 99 | --inference 99: not N or N-M
report t.json --record nosuch | t.json: --record nosuch: there is no such span
report t.json --name ( | --name \\(: no regular expression: missing \\)
report t.json --nth x | --nth: 'x': not a whole number
report t.json --nth 2 | --nth N: only with --name
report t.json --pe 77 | t.json: --pe 77: there is no such PE; there are:
report t.json --thread nosuch | --thread nosuch: there is no such thread; there are: main
report t.json --between 5 | --between 5: not A:B
report t.json --what-if foo | --what-if foo: 'foo' is no change; see report --help
report t.json --what-if operator:No=0.5 | no span 'No' on the device
report t.json --fail-on host_bond | --fail-on host_bond: no such rule: did you mean host_bound
report t.json --verdict xml | --verdict: 'xml': unknown word: one of text, json
report t.json --verdict --table names | --table: not together with --verdict, run it twice
report t.json --ratio 3 | --ratio is for --csv
report t.json --jobs 0 | --jobs: not a number from 1 to 4096
report t.json --jobs 2 | --jobs: is for several traces
report t.json --vela no.csv | no.csv: cannot be read
report t.json --device no.toml | no.toml: cannot be read
report t.json --ftrace-clock mono | give it with --ftrace
report t.json --csv-dir t.json | t.json: cannot be made: File exists
check cut.json | cut.json:2: byte 17: not strict JSON
check none.json | none.json:1: not a trace
check text.json | text.json:1: byte 0: not strict JSON
check - | -: is a device, and no trace comes from there: name a file or a pipe
convert t.json | -o/--output: not given
convert t.json -o x.xyz | x.xyz: unknown extension
convert t.json -o x.npuprof | t.json: only an image \\(.npuprof\\) becomes .npuprof
convert t.json x.csv -o y.csv | 'x.csv': one word too many
convert random.npuprof -o y.json | random.npuprof: not an npuprof image
convert 999999999 -o x.json | 999999999: neither a file nor a process that runs here
export t.json | export: say where to: --sqlite FILE
export t.json --sqlite x.txt | x.txt: unknown extension
merge t.json | -o/--output: not given
merge -o m.json | merge: no trace is given
diff t.json | usage: npuprof diff TRACE TRACE
diff t.json t.json --fail-above x | --fail-above x: not a percentage such as 5%
view no.json | no.json: cannot be read
top no.npuprof | no.npuprof: no such file; start the program with NPUPROF_ARENA_PATH=FILE
top t.json --interval 0 | --interval: not 0.01 to 3600 seconds
run | run: no command is given: npuprof run -- ./program
run -o x.txt -- true | x.txt: unknown extension, write .json or .npuprof
attach x | PID: 'x': not a whole number
attach 999999999 | 999999999: there is no such process
attach 1 --level 10 | --level: 10: unknown word: one of 1, 2
system-trace 0 | 0 seconds: more than 0
counters -o x.txt 1 | x.txt: unknown extension, write .json
completion tcsh | SHELL: 'tcsh': unknown word: one of bash, zsh, fish
gen t.json -o x.h | t.json:1: TOML syntax
clock t.json -o t.csv | t.csv: unknown extension, write .json
clock none.json | none.json:1: not a trace""".split("\n")[1:]]
# The same in calls: a Python expression, and what Refused says.
CALLS = [line.split(" | ") for line in """
npuprof.load('no.json') | no.json: cannot be read
npuprof.load('cut.json') | cut.json:2: byte 17
npuprof.load('text.json') | text.json:1: byte 0: neither a Chrome trace
npuprof.load('t.json').args('x') | list indices|must be|cannot be interpreted|not supported
npuprof.profile(arena_bytes=5).__enter__() | arena
npuprof.profile(when_full='never').__enter__() | NPUPROF_ERR_ARGUMENT""".split("\n")[1:]]


def setUpModule():
    helpers.tool("npuprof-convert")
    program = helpers.build("images.c", "images")
    run([program, "all", scratch() / "t.json"], code=0, env=helpers.environment())
    run([program, "all", scratch() / "t.npuprof"], code=0, env=helpers.environment())
    for name, text in (("cut.json", '{"traceEvents":[\n'), ("none.json", "[]"), ("text.json", "hello")):
        (scratch() / name).write_text(text)
    (scratch() / "random.npuprof").write_bytes(b"\x80" + os.urandom(99_999))
    (scratch() / "empty").mkdir(exist_ok=True)


IMPORTED = """
import contextlib, io, sys
sys.path.insert(0, sys.argv[1])
from npuprof import cli
with contextlib.redirect_stdout(io.StringIO()), contextlib.suppress(SystemExit):
    cli.main(["check", "--help"])
print(*sys.modules)
"""


class Mistakes(unittest.TestCase):
    @helpers.thorough
    def test_command_line(self):
        self.assertGreater(len(MISTAKES), 40)
        before = sorted(scratch().iterdir())
        for words, said in MISTAKES:
            with self.subTest(words):
                line = helpers.refused(*words.replace("NOTHING", "").split())
                self.assertRegex(line, said)
                self.assertLess(len(line), 250)
        self.assertEqual(sorted(scratch().iterdir()), before, "a mistake left a file")


def shell(line, **options):
    """A line of bash, where `npuprof` is the command."""
    text = f"npuprof() {{ {shlex.quote(sys.executable)} {shlex.quote(str(NPUPROF_PY))} \"$@\"; }}; {line}"
    return subprocess.run(["bash", "-c", text], cwd=scratch(), capture_output=True, text=True,
                          env=helpers.environment(), timeout=100, **options)


class Streams(unittest.TestCase):
    @helpers.thorough
    def test_pipes(self):
        """Standard input, process substitution, packed, an image, a database: as a file."""
        wanted = npuprof_py("report", "t.json", "--table", "names").stdout
        for line in ("report - --table names < t.json", "report <(cat t.json) --table names",
                     "cat t.npuprof | npuprof report - --table names",
                     "gzip -c t.json | npuprof report - --table names",
                     "report /dev/stdin --table names < t.json",
                     "export <(cat t.json) --sqlite t.db && cat t.db | npuprof report - --table names"):
            with self.subTest(line):
                done = shell(line if line.startswith(("cat", "gzip")) else f"npuprof {line}")
                self.assertEqual((done.stdout, done.stderr, done.returncode), (wanted, "", 0))
        done = shell("npuprof diff <(cat t.json) <(cat t.json) | tail -n 1")
        self.assertEqual((done.stderr, done.returncode), ("", 0))

    @helpers.thorough
    def test_streams_that_fail(self):
        """No traceback, and the exit code of the promise."""
        full = r"\A(?!.*Traceback)standard output: cannot be written: No space left on device\n\Z"
        for line, code, said in (("report t.json > /dev/full", 2, full), ("--version > /dev/full", 2, full),
                                 ("report --help > /dev/full", 2, full),
                                 ("completion bash > /dev/full", 2, full),
                                 ("check no.json > /dev/full 2>&1", 2, r"\A\Z"),
                                 ("report t.json --tabel > /dev/full 2>&1", 2, r"\A\Z"),
                                 ("check t.json >&- 2>&- <&-", 0, r"\A\Z"),
                                 ("report t.json | true; exit ${PIPESTATUS[0]}", 141, r"\A\Z"),
                                 ("completion bash | true; exit ${PIPESTATUS[0]}", (0, 141), r"\A\Z")):
            with self.subTest(line):
                done = shell(f"npuprof {line}")
                self.assertRegex(done.stderr, said)
                self.assertIn(done.returncode, code if isinstance(code, tuple) else (code,))

    @helpers.thorough
    def test_interrupted(self):
        """Ctrl-C while a large output is written: no file, no traceback, 130."""
        event = '{"ph":"X","name":"n","pid":1,"tid":1,"ts":%d,"dur":1},\n'
        names = "".join(event % n for n in range(50_000))
        (scratch() / "large.json").write_text('{"traceEvents":[\n' + names.rstrip(",\n") + "]}")
        before = sorted(scratch().iterdir())
        for name, words in (("l.db", ("export", "large.json", "--sqlite", "l.db")),
                            ("l.csv", ("convert", "large.json", "-o", "l.csv"))):
            process = subprocess.Popen([sys.executable, NPUPROF_PY, *words], cwd=scratch(),
                                       stderr=subprocess.PIPE, env=helpers.environment())
            while process.poll() is None and not list(scratch().glob(".npuprof*")):
                time.sleep(0.005)
            process.send_signal(signal.SIGINT)
            said = process.communicate(timeout=100)[1]
            if process.returncode == 0:                   # it was faster
                (scratch() / name).unlink()
            else:
                self.assertEqual((process.returncode, said), (130, b""))
            self.assertEqual(sorted(scratch().iterdir()), before)


class Terminal(unittest.TestCase):
    def on_terminal(self, *words, **variables):
        """What a terminal gets."""
        ours, theirs = pty.openpty()
        env = {k: v for k, v in helpers.environment(TERM="xterm").items() if k != "NO_COLOR"} | variables
        process = subprocess.Popen([sys.executable, NPUPROF_PY, *words], cwd=scratch(), stdin=theirs,
                                   stdout=theirs, stderr=theirs, env=env)
        os.close(theirs)
        text = b""
        while True:
            try:
                text += os.read(ours, 4096) or b""
            except OSError:                     # the other side is closed
                break
        os.close(ours)
        process.wait()
        return text.decode()

    def test_colours(self):
        self.assertIn("\033[32mok\033[0m", self.on_terminal("check", "t.json"))
        for variables in ({"NO_COLOR": "1"}, {"TERM": "dumb"}):
            self.assertNotIn("\033", self.on_terminal("check", "t.json", **variables))
        self.assertIn("ok", npuprof_py("check", "t.json").stdout)
        self.assertNotIn("\033", npuprof_py("report", "t.json").stdout)
        self.assertIn("is a terminal", self.on_terminal("check", "-"))

    def test_progress(self):
        """After two seconds, with the time left; never elsewhere than on a terminal."""
        for terminal, wanted in ((True, "work: 50 %, 3 s left"), (False, "")):
            stream, clock = io.StringIO(), [100.0]
            stream.isatty = lambda terminal=terminal: terminal
            with mock.patch("sys.stderr", stream), mock.patch("time.monotonic", lambda: clock[0]):
                bar = messages.Progress("work", 100)
                clock[0] += 1.9
                bar.at(40)
                self.assertEqual(stream.getvalue(), "")
                clock[0] += 1.1
                bar.at(50)
                self.assertEqual(re.sub(r"\r\033\[K", "", stream.getvalue()), wanted)
        self.assertEqual(messages.time_left(125), ", 2 min 5 s left")
        self.assertEqual(messages.time_left(0.2), "")


class Completion(unittest.TestCase):
    """The words that the shells themselves say."""
    WANTED = {"npuprof rep": {"report"}, "npuprof comp": {"completion"}, "npuprof report --tab": {"--table"},
              "npuprof report --table over": {"overlap"}, "npuprof report t.j": {"t.json"},
              "npuprof completion fi": {"fish"}, "npuprof check --sym": set()}

    def script(self, name):
        path = scratch() / f"completion.{name}"
        path.write_text(npuprof_py("completion", name).stdout)
        return path

    def test_bash(self):
        path = self.script("bash")
        for line, wanted in self.WANTED.items():
            words = shlex.join(line.split())
            done = run(["bash", "--norc", "-c", f"source {path}; COMP_WORDS=({words}); COMP_CWORD="
                        f"$((${{#COMP_WORDS[@]}} - 1)); _npuprof; printf '%s\\n' \"${{COMPREPLY[@]}}\""])
            self.assertEqual((set(done.stdout.split()), done.stderr), (wanted, ""), line)

    def test_fish(self):
        helpers.need("fish")
        path = self.script("fish")
        for line, wanted in self.WANTED.items():
            done = run(["fish", "--no-config", "-c", f"source {path}; complete -C {shlex.quote(line)}"])
            said = {word.split("\t")[0] for word in done.stdout.splitlines()}
            self.assertEqual((said, done.stderr), (wanted, ""), line)

    @helpers.thorough
    def test_zsh(self):
        """As a user sees it: an interactive shell on a terminal of its own."""
        helpers.need("zsh")
        path = self.script("zsh")
        for line, wanted in self.WANTED.items():
            last = re.escape(" ".join(sorted(wanted)) or line.split()[-1])
            for seconds in (1, 5, 25):                           # a busy machine completes later
                text = self.typed(path, line, seconds)
                if re.search(rf"{last}\\? ?>'", text):
                    break
            self.assertRegex(text, rf"{last}\\? ?>'", line)

    def typed(self, path, line, seconds):
        """What the terminal shows when the tab behind a line has had so many seconds."""
        pid, terminal = pty.fork()
        if pid == 0:
            os.chdir(scratch())
            os.environ |= {"TERM": "dumb", "PS1": "", "HOME": str(scratch())}
            os.execvp("zsh", ["zsh", "-f", "-i"])
        setup = f"autoload -U compinit; compinit -u -D; unsetopt zle_bracketed_paste; source {path}\n"
        os.write(terminal, (setup + "PS1=; echo re''ady\n").encode())
        self.read_until(terminal, "ready")
        os.write(terminal, f"{line}\t".encode())
        time.sleep(seconds)
        os.write(terminal, b"\x01: '<\x05>'\n")          # to the begin and the end of the line
        text = self.read_until(terminal, ">'")
        os.close(terminal)
        os.waitpid(pid, 0)
        return text

    def read_until(self, terminal, word):
        text, end = "", time.monotonic() + 60
        while word not in text and time.monotonic() < end:
            text += os.read(terminal, 4096).decode(errors="replace")
        return text


class Imports(unittest.TestCase):
    def test_check(self):
        """`check` does not wait for the modules of larger commands."""
        done = run([sys.executable, "-c", IMPORTED, NPUPROF_PY.parent], code=0)
        self.assertIn("npuprof.check", done.stdout.split())
        for other in "report.command", "gen.command", "diff", "export.command":
            self.assertNotIn(f"npuprof.{other}", done.stdout.split())


class Calls(unittest.TestCase):
    def test_refused(self):
        before = os.getcwd()
        os.chdir(scratch())
        self.addCleanup(os.chdir, before)
        for call, said in CALLS:
            with self.subTest(call), self.assertRaisesRegex((npuprof.Refused, TypeError, ValueError), said):
                eval(call)
