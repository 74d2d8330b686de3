#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Finds, builds and runs every test of npuprof.

usage: run.py [--quick | --rest | --sanitize LIST | --valgrind] [--soak] [--coverage]
              [--list] [--jobs N] [--seconds N] [--verbose] [NAME...]

    run.py              the quick cases of all files: what `make test` runs
    run.py --rest       all others: what `make check` adds
    run.py --rest --soak                    the same, but the large version of each file that has one
    run.py --coverage   the quick C tests, and which lines of src/ they ran: see coverage.py
    run.py NAME...      the files whose name holds NAME, all their cases

What is a test
  C        every tests/**/*.c, one stand-alone program with a main(); but not those under tests/programs,
           which Python tests build, nor those under tests/bench, tests/qemu and tests/baremetal, which have
           runners of their own
  Python   every tests/**/test_*.py, with unittest cases. They run with the repository's root as the current
           directory and tests/ in sys.path

The protocol
  A test prints one line a check, and exits non-zero when one failed. All other lines are shown only for a
  failed test.
    ok NAME                        or ok NAME: WHAT; --verbose shows it, such as the seconds of CPU
    FAIL NAME: why
    skip NAME: reason
    note TEXT                      a figure worth a look; shown by --soak and --verbose
  tests/cases.py prints these lines for unittest cases, tests/check.h for C.

Quick or not
  A case is quick unless it is declared with CASE_THOROUGH() in C, or @helpers.thorough in Python (also for a
  whole class), or its file has the option `thorough`. One of Python should be thorough if it takes more than
  a second of CPU. Quick C tests are compiled with -O0 and without warnings, which takes a fifth of the time.
  A file with an -O of its own therefore runs again, whole, in --rest; the others run there as they are, and
  the compiler only looks for what it warns of.
  NPUPROF_TEST_PART is `quick` or `rest` in the environment of a test, and not there when all its cases run.

The library in a C test
  A test that defines NPUPROF_IMPLEMENTATION holds all of it, and may use private names and knobs. One that
  does not is linked with a library that is compiled once for all of them, by the same flags; with
  own_clock.h, it asks the test for the time. For --coverage alone each test holds it, so that its counts are
  those of the test.

Options of one test: a first line   /* test: OPTION... - what it shows */   or   # test: OPTION... - the same
  thorough       no case of this file is quick
  alone          runs when no other test does (timing)
  time=SECONDS   what it takes at most, default 150; four times that, for a machine that is busy, is a hang
  cc=FLAG        one more flag for the compiler, may be repeated; {root} is the repository,
                 {build} is build/tests
  large          the arena has 192 MiB
  lib=FLAG       one more flag at the end of the command line, such as lib=-lm
  san=LIST       the sanitizers it can be built with, such as san=address,undefined; san=no for none
  soak=SECONDS   has a large version: --soak runs it, with NPUPROF_TEST_SOAK=1 and this time limit
  valgrind       --valgrind runs it (C only), with NPUPROF_TEST_SLOW=1 and ten times the time

Environment
  CC, CXX     the compilers, default cc and c++
  RUN         a wrapper in front of the C tests, such as "qemu-aarch64 -L /usr/aarch64-linux-gnu"
  A test finds the flags of a sanitizer run in NPUPROF_TEST_CFLAGS, an empty directory in NPUPROF_TEST_TMP.

The last line is `N passed, N failed`, with `, N skipped` if there are any. Exit code 1 when a test failed or
nothing ran.
"""
import argparse
import concurrent.futures
import os
import re
import shlex
import shutil
import signal
import subprocess
import sys
import threading
import time

import coverage
import helpers
from helpers import ROOT, TESTS, WARNINGS, compiled, library

BUILD = ROOT / "build" / "tests"
DEFAULT_SECONDS = 150
NOT_TESTS = ("baremetal", "bench", "programs", "qemu")
# No look for leaks: the library has no heap, and the tests' JSON reader frees nothing.
SANITIZER_ENVIRONMENT = {
    # Why no stack for signals: clang's runtime takes the end of a thread that has one for an error.
    "ASAN_OPTIONS": "detect_leaks=0:detect_stack_use_after_return=1:strict_string_checks=1:handle_segv=1:"
                    "use_sigaltstack=0",
    "UBSAN_OPTIONS": "print_stacktrace=1:halt_on_error=1",
    "TSAN_OPTIONS": "halt_on_error=1:second_deadlock_stack=1",
}
VALGRIND = ["valgrind", "-q", "--error-exitcode=99", "--vgdb=no", "--fair-sched=yes"]


class Test:
    """One file with tests in it."""

    def __init__(self, path):
        self.path = path
        self.name = path.relative_to(TESTS).with_suffix("").as_posix()
        self.is_c = path.suffix == ".c"
        self.thorough = self.alone = self.valgrind = False
        self.seconds = DEFAULT_SECONDS
        self.cc, self.libs = [], []
        self.sanitizers = self.soak_seconds = None
        text = path.read_text(encoding="utf-8", errors="replace")
        self.whole = whole = helpers.with_headers(path, set())
        self.is_linked = self.is_c and helpers.is_linked(whole)
        self.has_threads = re.search(r"\b(pthread_create|sigaction|signal)\(", text) is not None
        self.has_thorough = re.search(r"\bCASE_THOROUGH\(" if self.is_c else r"^ *@(helpers\.)?thorough\b",
                                      text, re.M) is not None
        first = (text.splitlines()[1:] if text.startswith("#!") else text.splitlines())[0]
        match = re.match(r"(?:/\*|#|//) test:\s*(.*?)\s+-\s", first)
        for option in shlex.split(match.group(1)) if match else []:
            self.set(option)

    def set(self, option):
        key, _, value = option.partition("=")
        value = value.replace("{root}", str(ROOT)).replace("{build}", str(BUILD))
        if option in ("thorough", "alone", "valgrind"):
            setattr(self, option, True)
        elif option == "large":
            self.cc.append(f"-DNPUPROF_ARENA_BYTES={192 << 20}")
        elif key == "time":
            self.seconds = float(value)
        elif key == "cc":
            self.cc.append(value)
        elif key == "lib":
            self.libs.append(value)
        elif key == "san":
            self.sanitizers = [] if value == "no" else value.split(",")
        elif key == "soak":
            self.soak_seconds = float(value)
        else:
            raise SystemExit(f"{self.path}: unknown test option {option!r}; see the head of tests/run.py")

    def optimised(self):
        return any(flag.startswith("-O") for flag in self.cc)

    def can_be_sanitized(self, options):
        return self.is_c and (self.sanitizers is None
                              or set(options.sanitize.split(",")) <= set(self.sanitizers))

    def options(self, options, is_late=False):
        """The options that are for this test, of a run for two purposes. is_late: no large version."""
        if options.rest and options.soak:
            is_large = self.soak_seconds is not None and not is_late
            return argparse.Namespace(**{**vars(options), "soak": is_large, "rest": not is_large})
        return options

    def part(self, options):
        """Which cases run: quick, rest or all; None when there are none."""
        options = self.options(options)
        if options.quick or options.coverage:
            return None if self.thorough else "quick"
        if options.rest:
            return "all" if self.thorough or self.optimised() else "rest" if self.has_thorough else None
        return "all"


def find_tests():
    tests = []
    for path in sorted(TESTS.rglob("*")):
        if path.relative_to(TESTS).parts[0] in NOT_TESTS or not path.is_file():
            continue
        if path.suffix == ".c" or re.fullmatch(r"test_.*\.py", path.name):
            tests.append(Test(path))
    return tests


def chosen(tests, options):
    tests = [t for t in tests if not options.names or any(n in t.name for n in options.names)]
    if options.sanitize:
        tests = [t for t in tests if t.can_be_sanitized(options)
                 and ("thread" not in options.sanitize.split(",") or t.has_threads)]
    elif options.soak and not options.rest:
        tests = [t for t in tests if t.soak_seconds]
    elif options.valgrind:
        if not shutil.which(VALGRIND[0]):
            raise SystemExit("valgrind is not installed")
        tests = [t for t in tests if t.is_c and t.valgrind]
    elif options.coverage:
        tests = coverage.chosen(tests)
    return [t for t in tests if t.part(options)]


def end_group(process):
    """Ends a test and what it started (its own session)."""
    try:
        os.killpg(process.pid, signal.SIGKILL)
    except ProcessLookupError:
        pass


def run_limited(command, seconds, env):
    """Runs a command: (exit code or None when it took too long, its output, seconds of CPU)."""
    process = subprocess.Popen(command, cwd=ROOT, env=env, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                               stderr=subprocess.STDOUT, start_new_session=True)
    late = threading.Event()
    timer = threading.Timer(seconds, lambda: (late.set(), end_group(process)))
    timer.start()
    output = process.stdout.read()
    _, status, used = os.wait4(process.pid, 0)
    timer.cancel()
    process.returncode = os.waitstatus_to_exitcode(status)      # so that Popen does not wait for it again
    process.stdout.close()
    code = None if late.is_set() else process.returncode
    return code, output.decode("utf-8", "replace"), used.ru_utime + used.ru_stime


class Outcome:
    """What one file's run gave: lines of (status, name, why), its output, seconds, seconds of CPU."""

    def __init__(self, name):
        self.name, self.started = name, time.monotonic()
        self.lines, self.output, self.cpu = [], "", 0.0

    def say(self, status, why, name=None):
        self.lines.append((status, self.name + (f": {name}" if name else ""), why))

    def bad(self):
        return [line for line in self.lines if line[0] == "FAIL"]

    def count(self, status):
        return sum(line[0] == status for line in self.lines)

    def read(self, code, seconds):
        """Reads the protocol's lines. code: None when it took longer than so many seconds."""
        for line in self.output.splitlines():
            match = re.match(r"(ok|FAIL|skip) ([^:]*)(?:: (.*))?$", line)
            if match:
                self.say(match.group(1), match.group(3) or "", match.group(2))
        failed = bool(self.bad())
        if code is None:
            self.say("FAIL", f"took longer than {seconds:g} s")
        elif code != 0 and not failed:
            self.say("FAIL", f"exit code {code}")
        elif code == 0 and failed:
            self.say("FAIL", "exit code 0 although a check failed")
        elif not self.lines:
            self.say("FAIL", "no check ran")


def build_c(test, options, flags, env):
    """Compiles a C test: (the command that runs it or None, what the compiler said, seconds of CPU).
    Why -O0 unless the test says more: to compile takes longer than to run. With sanitizers, too: -O1 doubles
    that, and saves less, but for threads. coverage.OPTIMISED has ways that only an optimiser takes."""
    quick = options.quick or options.coverage
    levels = [flag for flag in test.cc if flag.startswith("-O")]
    if options.sanitize:
        levels = ["-O1"] if "-O2" in levels and "thread" in options.sanitize \
            or test.name in options.optimised else []
    elif quick:
        levels = ["-O1"] if test.name in options.optimised else []
    kind = options.sanitize.replace(",", "-") or ("coverage" if options.coverage else
                                                  "debug" if options.valgrind else "-".join(levels))
    program = BUILD / (test.name + (f".{kind}" if kind else ""))
    command = [*shlex.split(os.environ.get("CC", "cc")), "-std=c11", *(levels or ["-O0"]),
               *(["-g"] if options.sanitize or options.valgrind else []),
               f"-I{ROOT}", f"-I{TESTS}", "-pthread", *flags,
               *(flag for flag in test.cc if not flag.startswith("-O"))]
    limited = lambda command: run_limited(command, 600, env)
    objects, cpu = [], 0.0
    if test.is_linked and not options.coverage:
        code, said, cpu, *objects = library(command, test.whole, limited)
        if code != 0:
            return None, said, cpu
    elif test.is_linked:
        command.append("-DNPUPROF_IMPLEMENTATION")
    command.append(str(test.path))
    code, said, more = compiled([*command, *objects, *test.libs], program, limited)
    cpu += more
    if code == 0 and not (quick or options.sanitize or options.valgrind):
        code, said, more = limited([*command, *WARNINGS, "-fsyntax-only"])
        cpu += more
    if code != 0:
        return None, shlex.join(command) + "\n" + said, cpu
    wrapper = VALGRIND if options.valgrind else shlex.split(os.environ.get("RUN", ""))
    return wrapper + [str(program)], said, cpu


def environment(test, options, flags, folder):
    """The environment of a test."""
    env = {k: v for k, v in os.environ.items() if not k.startswith(("NPUPROF_", "TRACEPARENT", "PYTHON"))}
    env.update(SANITIZER_ENVIRONMENT)
    env.update(NPUPROF_TEST_TMP=str(folder), NPUPROF_TEST_CFLAGS=" ".join(flags), PYTHONPATH=str(TESTS),
               PYTHONPYCACHEPREFIX=str(BUILD / "pycache"), LC_ALL="C.UTF-8")
    if test.part(options) != "all":
        env["NPUPROF_TEST_PART"] = test.part(options)
    if options.soak:
        env["NPUPROF_TEST_SOAK"] = "1"
    if options.valgrind:
        env["NPUPROF_TEST_SLOW"] = "1"
    if options.coverage:
        env["CC"] = shlex.join([*shlex.split(env.get("CC", "cc")), *flags])
    return env


def run_test(test, options, is_late=False):
    """Runs one file. is_late: no large version is begun any more."""
    outcome, options = Outcome(test.name), test.options(options, is_late)
    if is_late and test.soak_seconds and not options.soak:
        outcome.say("skip", "the time for its large version is over", "large")
        if not test.part(options):
            return outcome
    flags = []
    if options.sanitize:
        flags = [f"-fsanitize={options.sanitize}", "-fno-sanitize-recover=all", "-fno-omit-frame-pointer"]
    if options.coverage:
        flags += coverage.flags(test.has_threads or not test.is_c)
    seconds = test.soak_seconds if options.soak else test.seconds
    seconds *= 4 * (10 if options.valgrind else 5 if options.sanitize or options.coverage else 1)
    # Why the process: another part of .ci/run may run the same test beside this one.
    folder = BUILD / "tmp" / str(os.getpid()) / test.name.replace("/", "_")
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    env = environment(test, options, flags, folder)
    if test.is_c:
        command, outcome.output, outcome.cpu = build_c(test, options, flags, env)
    else:
        command = [sys.executable, str(TESTS / "cases.py"), str(test.path)]
    if command:
        code, outcome.output, cpu = run_limited(command, seconds, env)
        outcome.cpu += cpu
        outcome.read(code, seconds)
    else:
        outcome.say("FAIL", "does not compile")
    shutil.rmtree(folder, ignore_errors=True)
    return outcome


class Printer:
    """Prints outcomes, keeps the sums and, on a terminal, a line of progress."""

    def __init__(self, options, tests):
        self.options, self.files, self.done = options, len(tests), 0
        self.started, self.now, self.outcomes = time.monotonic(), [], []
        self.lock = threading.Lock()
        self.passed = self.failed = self.skipped = 0

    def progress(self):
        if sys.stdout.isatty():
            text = f"{self.done}/{self.files} files, {self.passed} passed, {self.failed} failed, " \
                   f"{self.skipped} skipped, {time.monotonic() - self.started:.0f} s: {', '.join(self.now)}"
            print("\r\x1b[K" + text[:shutil.get_terminal_size().columns - 1], end="", flush=True)

    def clear(self):
        if sys.stdout.isatty():
            print("\r\x1b[K", end="")

    def start(self, test):
        with self.lock:
            self.now.append(test.name)
            self.progress()

    def show(self, outcome):
        verbose = self.options.verbose
        self.clear()
        if verbose or self.options.soak:
            print(f"{outcome.name}: {outcome.seconds:.1f} s, {outcome.cpu:.1f} s of CPU")
            for line in outcome.output.splitlines():
                if line.startswith("note "):
                    print(f"  {line[5:]}")
        for status, name, why in outcome.lines:
            if status != "ok" or verbose:
                print(f"{status} {name}" + (f": {why}" if why else ""))
        if outcome.bad():
            for line in outcome.output.splitlines()[-200:]:
                if not re.match(r"(ok|skip|FAIL) ", line):
                    print("    " + line)
        self.outcomes.append(outcome)
        self.passed += outcome.count("ok")
        self.failed += outcome.count("FAIL")
        self.skipped += outcome.count("skip")

    def end(self, outcome):
        with self.lock:
            outcome.seconds = time.monotonic() - outcome.started
            self.now.remove(outcome.name)
            self.done += 1
            self.show(outcome)
            self.progress()
            sys.stdout.flush()

    def sums(self):
        self.clear()
        dearest = sorted(self.outcomes, key=lambda o: -o.cpu)[:20]
        print("seconds of CPU: " + ", ".join(f"{o.name} {o.cpu:.0f}" for o in dearest))
        print(f"{time.monotonic() - self.started:.0f} s, {sum(o.cpu for o in self.outcomes):.0f} s of CPU")
        print(f"{self.passed} passed, {self.failed} failed"
              + (f", {self.skipped} skipped" if self.skipped else ""))
        return 1 if self.failed or not self.passed else 0


def run_all(tests, options):
    printer = Printer(options, tests)

    def run(test):
        printer.start(test)
        is_late = time.monotonic() - printer.started > options.seconds
        printer.end(run_test(test, options, is_late))

    def order(test):
        """The slowest first, so that no long one is left over. Last the large ones, which may be left out:
        the shortest first, so that few of them are."""
        is_large = options.soak and test.soak_seconds is not None
        return is_large, test.soak_seconds if is_large else -test.seconds, test.is_c, test.name

    together = sorted((t for t in tests if not t.alone), key=order)
    with concurrent.futures.ThreadPoolExecutor(max(1, options.jobs)) as pool:
        for future in [pool.submit(run, t) for t in together]:
            future.result()
    for test in tests:
        if test.alone:
            run(test)
    shutil.rmtree(BUILD / "tmp" / str(os.getpid()), ignore_errors=True)
    return printer.sums()


def main():
    parser = argparse.ArgumentParser(description="builds and runs the tests of npuprof; see the head of "
                                                 "this file")
    add = parser.add_argument
    add("names", nargs="*", metavar="NAME", help="parts of the names of test files; all without")
    which = parser.add_mutually_exclusive_group()
    which.add_argument("--quick", action="store_true",
                       help="the quick cases only; so without a NAME and another option")
    which.add_argument("--rest", action="store_true", help="only what --quick leaves out")
    which.add_argument("--sanitize", default="", metavar="LIST",
                       help="the C tests with -fsanitize=LIST; with thread only those that have threads or "
                            "signals")
    which.add_argument("--valgrind", action="store_true", help="a selection of the C tests under memcheck")
    add("--soak", action="store_true",
        help="only the tests that have a large version, and that; with --rest instead of their small one")
    add("--seconds", type=float, default=float("inf"), metavar="N",
        help="with --rest --soak: after N seconds no large version begins")
    add("--coverage", action="store_true",
        help="the quick C tests, with gcc --coverage; lines and branches by room")
    add("--list", action="store_true", help="names only")
    # Why one more than CPUs: a test waits a fifth of its time.
    add("--jobs", type=int, default=(os.cpu_count() or 1) + 1)
    add("--verbose", action="store_true", help="also print the passed checks and the times")
    options = parser.parse_args()
    if not (options.names or options.rest or options.sanitize or options.soak or options.valgrind
            or options.coverage or options.list):
        options.quick = True
    if (options.quick or options.valgrind) and (options.coverage or options.soak) \
            or options.coverage and (options.rest or options.soak or options.sanitize) \
            or options.soak and options.sanitize:
        parser.error("--coverage goes alone, --soak alone or with --rest")
    options.optimised = coverage.OPTIMISED if options.coverage or options.sanitize else ()
    found = find_tests()
    for name in options.names:
        if not any(name in test.name for test in found):
            parser.error(f"no test file's name holds {name!r}; --list shows them")
    tests = chosen(found, options)
    if options.list:
        print("\n".join(test.name for test in tests))
        return 0 if tests else 1
    BUILD.mkdir(parents=True, exist_ok=True)
    # Why: a shell starts what is in the background with SIGINT ignored, and some tests send it.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    if not options.coverage:
        return run_all(tests, options)
    lacking = coverage.lacking(shlex.split(os.environ.get("CC", "cc")))
    if lacking:
        print(f"skip coverage: {lacking}")
        return 0
    coverage.clear()
    return run_all(tests, options) or coverage.report(options.jobs)


if __name__ == "__main__":
    sys.exit(main())
