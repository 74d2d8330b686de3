# SPDX-License-Identifier: MIT
"""What the Python tests share: building small C programs, running them, reading traces."""

import atexit
import collections
import fcntl
import functools
import gc
import hashlib
import json
import os
import pathlib
import re
import shlex
import shutil
import signal
import subprocess
import sys
import tempfile
import traceback
import unittest

TESTS = pathlib.Path(__file__).resolve().parent
ROOT = TESTS.parent
NPUPROF_PY = ROOT / "tools" / "npuprof.py"
# Why: tests import the tools, and what the folders of tests share.
sys.path += [str(ROOT / "tools"), str(TESTS / "tools"), str(TESTS / "web")]
PROGRAMS = TESTS / "programs"
SHARED = ROOT / "build" / "tests" / "programs"      # what several tests run
HEADERS = [ROOT / "npuprof.h", ROOT / "npuprof_npu.h"]
WARNINGS = "-Wall -Wextra -Wpedantic -Wshadow -Wconversion -Wundef -Werror".split()
CC = shlex.split(os.environ.get("CC", "cc"))
CXX = shlex.split(os.environ.get("CXX", "c++"))


QUICK = os.environ.get("NPUPROF_TEST_PART") == "quick"      # is this `make test`?


def thorough(case):
    """Marks a case, or a class of them, as one for `make check` only."""
    case.thorough = True
    return case


# Why: a program whose user or whose limits forbid it to write cannot write its counts either, and says so.
uncounted = unittest.skipIf("--coverage" in os.environ.get("CC", ""), "gcov could not write its counts")


@functools.cache
def scratch():
    """A directory of this test file, removed at the end."""
    path = pathlib.Path(os.environ.get("NPUPROF_TEST_TMP") or tempfile.mkdtemp(prefix="npuprof-"))
    path.mkdir(parents=True, exist_ok=True)
    if "NPUPROF_TEST_TMP" not in os.environ:
        atexit.register(shutil.rmtree, path, ignore_errors=True)
    return path


def need(tool):
    """The path of a tool, or the test is skipped with its name."""
    path = shutil.which(tool)
    if not path:
        raise unittest.SkipTest(f"{tool} is not installed")
    return path


def python_reads(env):
    """What an environment has that Python itself reads at its start."""
    return {k: v for k, v in env.items() if k.startswith(("PYTHON", "LC_", "LANG"))}


def is_tool(command, options):
    """Is this npuprof.py, with nothing about it for which it must be a Python of its own?"""
    return (command[:2] == [sys.executable, str(NPUPROF_PY)] and set(options) <= {"cwd", "timeout", "env"}
            and python_reads(options.get("env") or os.environ) == python_reads(os.environ))


@functools.cache
def tool_here(command):
    """The modules of a command, imported before the children that run it."""
    from npuprof import cli
    if command in cli.COMMANDS:
        cli.module_of(command)
    gc.freeze()                 # Why: a look through them in each child would copy all their pages


@functools.cache
def tool_code():
    """npuprof.py, compiled."""
    return compile(NPUPROF_PY.read_text(encoding="utf-8"), NPUPROF_PY, "exec")


def become_tool(words, env):
    """In the child, in place of exec: npuprof.py runs here. Does not return."""
    code = 1
    try:
        os.closerange(3, 1 << 12)               # also the pipe on which subprocess waits for exec
        signal.signal(signal.SIGPIPE, signal.SIG_IGN)
        os.environ.clear()
        os.environ.update(env)
        sys.argv = words
        sys.stdin, sys.stdout = (open(fd, mode, encoding="utf-8") for fd, mode in ((0, "r"), (1, "w")))
        sys.stderr = open(2, "w", encoding="utf-8", errors="backslashreplace", buffering=1)
        exec(tool_code(), {"__name__": "__main__", "__file__": words[0]})
        code = 0
    except SystemExit as ended:
        code = ended.code if isinstance(ended.code, int) else 1 if ended.code else 0
    except BaseException:
        traceback.print_exc()
    finally:
        try:
            sys.stdout.flush()
        finally:
            os._exit(code)


def run(command, code=None, printed=None, said=None, **options):
    """A finished process with its text. Raises if it did not end with `code`, print `printed` or say `said`
    on stderr; None: anything will do."""
    command = [str(word) for word in command]
    if is_tool(command, options):
        # Why: to start Python and import the tools takes longer than what they do in most cases.
        tool_code()
        tool_here(*command[2:3] or [""])
        env = dict(options.get("env") or os.environ)
        sys.stdout.flush()
        sys.stderr.flush()
        options["preexec_fn"] = lambda: become_tool(command[1:], env)
    options.setdefault("cwd", scratch())
    options.setdefault("timeout", 300)
    done = subprocess.run(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                          text=True, errors="replace", **options)
    if (code not in (None, done.returncode) or printed not in (None, done.stdout)
            or said not in (None, done.stderr)):
        raise AssertionError(f"{' '.join(command)[:300]}: exit code {done.returncode}, not {code}: "
                             f"{done.stdout[-1000:]}{done.stderr[-2000:]}")
    return done


def npuprof_py(*words, code=0, python=sys.executable, **options):
    """Runs a command of npuprof.py, as run() does; it must succeed unless another exit code is expected."""
    return run([python, NPUPROF_PY, *words], code=code, **options)


def refused(*words, **options):
    """The one line on stderr by which npuprof.py refuses something: it ends with 2, and prints nothing."""
    said = npuprof_py(*words, code=2, printed="", **options).stderr
    if said.find("\n") != len(said) - 1:
        raise AssertionError(f"{words}: not one line: {said}")
    return said


def measured(limit, measure):
    """The first of up to three results of measure() that is below the limit, else the last one. Why again:
    beside other work the same takes twice the CPU time, and more."""
    for _ in range(3):
        value = measure()
        if value < limit:
            break
    return value


def environment(**changes):
    """The environment without anything of npuprof, with the changes."""
    env = {k: v for k, v in os.environ.items() if not k.startswith(("NPUPROF_", "TRACEPARENT"))}
    env.update(changes)
    return env


@functools.cache
def digest(path):
    return hashlib.sha256(pathlib.Path(path).read_bytes()).hexdigest()


def fresh(command, program, record):
    """Has this command made the program from these files?"""
    try:
        kept = json.loads(record.read_text())
        return kept["command"] == command and program.exists() and all(digest(path) == d
                                                                       for path, d in kept["files"].items())
    except (OSError, ValueError, KeyError):
        return False


def compiled(command, program, call):
    """Runs a compiler by call(command), unless the program is there and made of the same files: (exit code,
    text, seconds of CPU).

    Why: many tests use the same few programs, and each holds the whole library, a second of compiling."""
    command = [str(word) for word in command]
    program.parent.mkdir(parents=True, exist_ok=True)
    record, needs = program.with_name(program.name + ".from"), program.with_name(program.name + ".d")
    with open(program.with_name(program.name + ".lock"), "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if fresh(command, program, record):
            return 0, "", 0.0
        record.unlink(missing_ok=True)
        code, said, cpu = call([*command, "-MMD", "-MF", str(needs), "-o", str(program)])
        if code == 0 and needs.exists():
            files = set(needs.read_text().replace("\\\n", " ").partition(":")[2].split())
            files |= {word for word in command if word.endswith((".c", ".cpp", ".o"))}
            files.add(os.path.realpath(shutil.which(command[0]) or command[0]))
            record.write_text(json.dumps({"command": command,
                                          "files": {path: digest(path) for path in sorted(files)}}))
        return code, said, cpu


def with_headers(path, seen):
    """The text of a C program, and of what it includes of tests/ and examples/."""
    seen.add(path)
    text = path.read_text(encoding="utf-8", errors="replace")
    for name in re.findall(r'^#include "(.+?)"', text, re.M) if path.suffix in (".c", ".h") else ():
        found = [p for p in ((f / name).resolve() for f in (path.parent, TESTS, ROOT)) if p.is_file()]
        own = found and not any(found[0].is_relative_to(other) for other in (*HEADERS, ROOT / "tools"))
        if own and found[0] not in seen:
            text += with_headers(found[0], seen)
    return text


def is_linked(text, flags=()):
    """Is a program of this text linked with the library, which is compiled once? Else it holds its own."""
    return "npuprof.h\"" in text and not re.search(r"(define |-D)NPUPROF_(IMPLEMENTATION|STATIC|OFF)\b",
                                                   f"{text}{flags}")


def library(command, text, call):
    """Compiles the library that a program is linked with, once for all that are compiled by this command:
    (exit code, what was said, seconds of CPU, the object). text: the program's."""
    clock = ["-D_GNU_SOURCE", "-include", TESTS / "own_clock.h"] if "own_clock.h" in text else []
    loads = ["-DTEST_LOADS"] if "convert/api.h" in text else []
    command = [str(word) for word in [*command, *clock, *loads, "-c", PROGRAMS / "library.c"]]
    program = SHARED.parent / "library" / f"{hashlib.sha256(repr(command).encode()).hexdigest()[:12]}.o"
    return *compiled(command, program, call), str(program)


def build(source, name, *flags, compiler=None):
    """Compiles and links one file of tests/programs (or any path), C or C++; the program's path. One that
    uses npuprof.h, and does not hold the library, is linked with it, which is C."""
    path = source if isinstance(source, pathlib.Path) else PROGRAMS / source
    text, is_cpp = with_headers(path, set()), path.suffix == ".cpp"
    warnings, of_c, compiler = [] if QUICK else WARNINGS, compiler or CC, compiler or (CXX if is_cpp else CC)
    common, flags, objects = ["-O0", f"-I{ROOT}", f"-I{TESTS}", "-pthread"], [str(flag) for flag in flags], []

    def call(words):
        done = run(words)
        return done.returncode, done.stderr, 0.0

    if is_linked(text, flags):
        own = [flag for flag in flags if re.match("-(O|f|g|m|DNPUPROF_)", flag)]
        code, said, _, *objects = library([*of_c, "-std=c11", *common, *own], text, call)
        if code:
            raise AssertionError(f"the library for {path.name} does not compile:\n{said}")
    command = [*compiler, f"-std={'c++11' if is_cpp else 'gnu11'}", *common, *warnings, *flags, str(path),
               *objects]
    shared = SHARED / hashlib.sha256("\0".join(command).encode()).hexdigest()[:12] / path.stem
    code, said, _ = compiled(command, shared, call)
    if code:
        raise AssertionError(f"{path.name} does not compile:\n{said}")
    return pathlib.Path(shutil.copy2(shared, scratch() / name))


def compile_text(text, program, *flags, compiler=None):
    """Compiles a source that a test holds as a text into this file; its path."""
    source = program.with_name(f"{program.name}.{'cpp' if compiler == CXX else 'c'}")
    source.write_text(text)
    done = run([*(compiler or CC), source, *flags, f"-I{ROOT}", "-pthread", "-o", program])
    if done.returncode:
        raise AssertionError(f"{source.name} does not compile:\n{done.stderr}")
    return program


def edited_header(name, line, edited):
    """A copy of npuprof.h in which one line, which is there once, is another text."""
    header, copy = (ROOT / "npuprof.h").read_text(encoding="utf-8"), scratch() / name
    if header.count(line) != 1:
        raise AssertionError(f"npuprof.h has {header.count(line)} times: {line}")
    copy.write_text(header.replace(line, edited), encoding="utf-8")
    return copy


def chromium():
    """The path of a Chromium, or the test is skipped."""
    path = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
    return path or need("chromium")


@functools.cache
def web():
    """build/web with the npm packages of tests/web/package.json, or the test is skipped."""
    npm, target = need("npm"), ROOT / "build" / "web"
    need("node")
    target.mkdir(parents=True, exist_ok=True)
    with open(ROOT / "build" / ".lock", "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        wanted, present = (TESTS / "web" / "package.json").read_text(), target / "installed"
        if not present.exists() or present.read_text() != wanted:
            (target / "package.json").write_text(wanted)
            done = run([npm, "install", "--no-audit", "--no-fund", "--no-package-lock", "--ignore-scripts"],
                       cwd=target, timeout=600)
            if done.returncode:
                names = ", ".join(json.loads(wanted)["dependencies"])
                said = next((line for line in done.stderr.splitlines() if "ERR" in line or "error" in line),
                            done.stderr.strip()[-200:])
                raise unittest.SkipTest(f"npm cannot install {names}: {said}")
            present.write_text(wanted)
    return target


@functools.cache
def make(*targets):
    """Brings targets of the Makefile up to date; one test at a time does it."""
    (ROOT / "build").mkdir(exist_ok=True)
    compiler = shlex.join(CC).partition(" --coverage")[0]       # what stays in build/ writes no counts
    with open(ROOT / "build" / ".lock", "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        done = run([need("make"), "-s", "-C", ROOT, *targets], env={**os.environ, "CC": compiler},
                   timeout=600)
    if done.returncode:
        raise AssertionError(f"make {' '.join(targets)} fails:\n{done.stderr}")


@functools.cache
def tool(name):
    """The path of one of the tools that `make tools` builds, up to date; without make what is there, or the
    test is skipped."""
    path = ROOT / "build" / name
    if shutil.which("make"):
        make(f"build/{name}")
    elif not path.exists():
        raise unittest.SkipTest(f"build/{name} is not built: make tools")
    return path


def strict_json(text):
    """Parses JSON as the strictest reader does: no NaN, no key twice, no surrogates."""
    def no_constant(word):
        raise ValueError(f"{word} is not JSON")

    def no_key_twice(pairs):
        keys = [key for key, _ in pairs]
        if len(set(keys)) != len(keys):
            raise ValueError(f"a key twice in {keys}")
        return dict(pairs)

    if isinstance(text, bytes):
        text = text.decode("utf-8")      # strict
    value = json.loads(text, parse_constant=no_constant, object_pairs_hook=no_key_twice)
    json.dumps(value, ensure_ascii=False).encode("utf-8")    # refuses lone surrogates
    return value


def load(path):
    return strict_json(pathlib.Path(path).read_bytes())


def events(trace, phase=None, name=None):
    return [e for e in trace["traceEvents"] if (phase is None or e["ph"] == phase)
            and (name is None or e.get("name") == name)]


def normalised(path):
    """A trace's text with what differs from run to run replaced: host, pid, native thread ids, executable,
    absolute times, ids of spans; and the folders and lines of call sites, which change with the program."""
    text = pathlib.Path(path).read_text(encoding="utf-8")
    text = re.sub(r'"(pid|native_id)":\s*\d+', r'"\1":0', text)
    text = re.sub(r'"(host|executable|program)":\s*"[^"]*"', r'"\1":""', text)
    text = re.sub(r'"(trace_id|span_id)":"[0-9a-f]+"', r'"\1":""', text)
    text = re.sub(r'"(drift_ns|\w*(?:unix|monotonic|boottime)_ns)":\s*"?\d+"?', r'"\1":0', text)
    return re.sub(r'"file":"[^"]*?([^"/\\\\]*)","line":\d+', r'"file":"\1","line":0', text)


def set_user_id(program, folder):
    """Yields a copy of a program in a folder twice, and whether it is set-user-id for somebody else."""
    if os.geteuid() != 0:
        raise unittest.SkipTest("only root can make a program set-user-id for somebody else")
    if os.statvfs(folder).f_flag & os.ST_NOSUID:
        raise unittest.SkipTest("the file system is mounted nosuid")
    copy = folder / "program"
    shutil.copy(program, copy)
    os.chown(copy, 65534, 65534)
    os.chmod(folder, 0o777)
    for is_set in (True, False):
        copy.chmod(0o4755 if is_set else 0o755)
        yield copy, is_set


class Folder(unittest.TestCase):
    """A case with an empty folder of its own, in which a program of tests/programs runs."""
    SOURCE = None

    @classmethod
    def setUpClass(cls):
        if cls.SOURCE:
            cls.program = build(cls.SOURCE, cls.SOURCE.partition(".")[0])

    def setUp(self):
        self.folder = scratch() / self.id().rsplit(".", 1)[-1]
        self.addCleanup(shutil.rmtree, self.folder, ignore_errors=True)
        self.empty()

    def empty(self):
        shutil.rmtree(self.folder, ignore_errors=True)
        self.folder.mkdir()

    def files(self):
        return sorted(str(p.relative_to(self.folder)) for p in self.folder.rglob("*") if not p.is_dir())

    def start(self, *arguments, program=None, options=None, **env):
        """The finished program; what has the name of a variable is in its environment."""
        return run([program or self.program, *arguments], cwd=self.folder, env=environment(**env),
                   **(options or {}))

    def quiet(self, *arguments, code=0, **more):
        """The same; it ends with this code and says nothing on stderr."""
        done = self.start(*arguments, **more)
        self.assertEqual((done.returncode, done.stderr), (code, ""), (arguments, more))
        return done

    def one_line(self, done, *words):
        """It ended well, with one line on stderr that holds the words."""
        self.assertEqual((done.returncode, len(done.stderr.splitlines())), (0, 1), done.stderr)
        for word in words:
            self.assertIn(word, done.stderr)
        return done.stderr

    def names(self, path):
        return sorted(e["name"] for e in events(load(self.folder / path), "X"))

    def read(self, name):
        """A trace in the folder, JSON or image; a whole one."""
        if not name.endswith(".npuprof"):
            return load(self.folder / name)
        done = run([tool("npuprof-convert"), self.folder / name])
        self.assertEqual((done.returncode, done.stderr), (0, ""), name)
        return strict_json(done.stdout)

    def counts(self, name):
        return dict(collections.Counter(e["name"] for e in events(self.read(name), "X")))


class Mount:
    """A small tmpfs, for a full disk; skips the test where it cannot be mounted."""

    def __init__(self, kib):
        self.kib = kib

    def __enter__(self):
        self.path = pathlib.Path(tempfile.mkdtemp(prefix="npuprof-full-"))
        done = subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={self.kib}k", "npuprof-test",
                               str(self.path)],
                              stderr=subprocess.PIPE, text=True) if shutil.which("mount") else None
        if done is None or done.returncode:
            self.path.rmdir()
            raise unittest.SkipTest("cannot mount a small tmpfs: "
                                    + (done.stderr.strip() if done else "mount is not installed"))
        return self.path

    def __exit__(self, *_):
        subprocess.run(["umount", str(self.path)], check=False)
        try:
            self.path.rmdir()
        except OSError:
            pass
