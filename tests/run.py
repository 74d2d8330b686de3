#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Finds, builds and runs every test of npuprof.

usage: run.py [--sanitize LIST | --soak | --valgrind] [--list] [--jobs N] [--verbose] [NAME...]

What is a test
  C        every tests/**/*.c, one stand-alone program with a main(); but not those under tests/programs, which Python tests
           build, nor those under tests/bench, tests/qemu and tests/baremetal, which have runners of their own
  Python   every tests/**/test_*.py, with unittest cases. They run with the repository's root as the current directory and
           tests/ in sys.path

The protocol
  A test prints one line a check, and exits non-zero when one failed; all other lines are shown only for a failed test:
    ok NAME
    FAIL NAME: why
    skip NAME: reason
    note TEXT                      a figure worth a look; shown by --soak and --verbose
  run.py prints these lines for the unittest cases itself. tests/check.h does it for C.

Options of one test: a first line   /* test: OPTION... - what it shows */   or   # test: OPTION... - what it shows
  alone          runs when no other test does (timing)
  time=SECONDS   time limit, default 150
  cc=FLAG        one more flag for the compiler, may be repeated; {root} is the repository, {build} is build/tests
  lib=FLAG       one more flag at the end of the command line, such as lib=-lm
  san=LIST       the sanitizers it can be built with, such as san=address,undefined; san=no for none. Default: all
  soak=SECONDS   has a large version: --soak runs it, one such test at a time, with NPUPROF_TEST_SOAK=1 and this time limit
  valgrind       --valgrind runs it (C only), with NPUPROF_TEST_SLOW=1 and ten times the time

Environment
  CC, CXX   the compilers, default cc and c++
  RUN       a wrapper in front of the C tests, such as "valgrind -q" or "qemu-aarch64 -L /usr/aarch64-linux-gnu"
  TEST_AGAIN  set (CI): a file that failed runs once more when all others are done, alone; not after a report of
              a sanitizer or valgrind, or a hang. What failed the first time is printed, as `note`
  A test finds the compilers' flags of a sanitizer run in NPUPROF_TEST_CFLAGS and an empty directory in NPUPROF_TEST_TMP.

The last line is `N passed, N failed`, with `, N skipped` if there are any. Exit code 1 when a test failed or nothing ran.
"""
import argparse
import concurrent.futures
import os
import pathlib
import re
import shlex
import shutil
import signal
import subprocess
import sys
import threading
import time

ROOT = pathlib.Path(__file__).resolve().parent.parent
TESTS = ROOT / "tests"
BUILD = ROOT / "build" / "tests"
WARNINGS = "-Wall -Wextra -Wpedantic -Wshadow -Wconversion -Wundef -Werror".split()
DEFAULT_SECONDS = 150
NOT_TESTS = ("baremetal", "bench", "programs", "qemu")
# No look for leaks: the library has no heap, and the tests' JSON reader frees nothing.
SANITIZER_ENVIRONMENT = {
    "ASAN_OPTIONS": "detect_leaks=0:detect_stack_use_after_return=1:strict_string_checks=1:handle_segv=1",
    "UBSAN_OPTIONS": "print_stacktrace=1:halt_on_error=1",
    "TSAN_OPTIONS": "halt_on_error=1:second_deadlock_stack=1",
}
# What never runs again in the hope that it passes: a report of a sanitizer or valgrind, a hang, what does not compile.
NEVER_EXCUSED = re.compile(r"(Address|Thread|Leak|UndefinedBehavior)Sanitizer|runtime error:|^==\d+==|took longer than|does not compile", re.M)
VALGRIND = ["valgrind", "-q", "--error-exitcode=99", "--vgdb=no", "--fair-sched=yes"]


class Test:
    """One file with tests in it."""

    def __init__(self, path):
        self.path = path
        self.name = path.relative_to(TESTS).with_suffix("").as_posix()
        self.is_c = path.suffix == ".c"
        self.alone = False
        self.seconds = DEFAULT_SECONDS
        self.cc, self.libs = [], []
        self.sanitizers = None
        self.has_threads = re.search(r"\b(pthread_create|sigaction|signal)\(", path.read_text(encoding="utf-8", errors="replace")) is not None
        self.soak_seconds = None
        self.valgrind = False
        with path.open(encoding="utf-8", errors="replace") as file:
            first = file.readline()
            if first.startswith("#!"):
                first = file.readline()
        match = re.match(r"(?:/\*|#|//) test:\s*(.*?)\s+-\s", first)
        for option in shlex.split(match.group(1)) if match else []:
            key, _, value = option.partition("=")
            value = value.replace("{root}", str(ROOT)).replace("{build}", str(BUILD))
            if option == "alone":
                self.alone = True
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
            elif option == "valgrind":
                self.valgrind = True
            else:
                raise SystemExit(f"{path}: unknown test option {option!r}; see the head of tests/run.py")


def find_tests():
    tests = []
    for path in sorted(TESTS.rglob("*")):
        folder = path.relative_to(TESTS).parts[0]
        if folder in NOT_TESTS or "__pycache__" in path.parts or not path.is_file():
            continue
        if path.suffix == ".c" or re.fullmatch(r"test_.*\.py", path.name):
            tests.append(Test(path))
    return tests


def end_group(process):
    """Ends a test and what it started (its own session)."""
    try:
        os.killpg(process.pid, signal.SIGKILL)
    except ProcessLookupError:
        pass


def run_limited(command, seconds, env):
    """Runs a command; (exit code or None when it took too long, its output)."""
    process = subprocess.Popen(command, cwd=ROOT, env=env, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                               stderr=subprocess.STDOUT, start_new_session=True)
    try:
        output, _ = process.communicate(timeout=seconds)
        code = process.returncode
    except subprocess.TimeoutExpired:
        end_group(process)
        output, _ = process.communicate()
        code = None
    return code, output.decode("utf-8", "replace")


def run_test(test, sanitize, soak, valgrind):
    """Runs one file: (list of (status, name, why), output, seconds)."""
    started = time.monotonic()
    flags = []
    seconds = test.soak_seconds if soak else test.seconds * (10 if valgrind else 5 if sanitize else 1)
    if sanitize:
        flags = [f"-fsanitize={sanitize}", "-fno-sanitize-recover=all", "-fno-omit-frame-pointer"]
        if test.sanitizers is not None and not set(sanitize.split(",")) <= set(test.sanitizers):
            return [("skip", test.name, f"not for -fsanitize={sanitize}")], "", 0.0
    folder = BUILD / "tmp" / test.name.replace("/", "_")
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    env = {k: v for k, v in os.environ.items() if not k.startswith(("NPUPROF_", "TRACEPARENT"))}
    env.update(SANITIZER_ENVIRONMENT)
    env.update(NPUPROF_TEST_TMP=str(folder), NPUPROF_TEST_CFLAGS=" ".join(flags), PYTHONPATH=str(TESTS),
               PYTHONDONTWRITEBYTECODE="1", LC_ALL="C.UTF-8")
    if soak:
        env["NPUPROF_TEST_SOAK"] = "1"
    if valgrind:
        env["NPUPROF_TEST_SLOW"] = "1"
    if test.is_c:
        program = BUILD / (test.name + ("." + sanitize.replace(",", "-") if sanitize else ""))
        program.parent.mkdir(parents=True, exist_ok=True)
        # Why less optimised for a sanitizer: compiling then takes three times as long as running.
        optimise = (["-O1" if "-O2" in test.cc else "-O0", "-g"] if sanitize else ["-O1"] + ["-g"] * valgrind)
        own = [flag for flag in test.cc if not (sanitize and flag.startswith("-O"))]
        command = shlex.split(os.environ.get("CC", "cc")) + ["-std=c11"] + optimise + WARNINGS
        command += [f"-I{ROOT}", f"-I{TESTS}", "-pthread"] + flags + own + [str(test.path), "-o", str(program)] + test.libs
        code, output = run_limited(command, 120, env)
        if code != 0:
            return [("FAIL", test.name, "does not compile")], shlex.join(command) + "\n" + output, time.monotonic() - started
        command = VALGRIND if valgrind else shlex.split(os.environ.get("RUN", ""))
        command = command + [str(program)]
    else:
        command = [sys.executable, str(pathlib.Path(__file__).resolve()), "--unittest", str(test.path)]
    code, output = run_limited(command, seconds, env)
    results = []
    for line in output.splitlines():
        match = re.match(r"(ok|FAIL|skip) ([^:]*)(?:: (.*))?$", line)
        if match:
            results.append((match.group(1), f"{test.name}: {match.group(2)}", match.group(3) or ""))
    failed = any(status == "FAIL" for status, _, _ in results)
    if code is None:
        results.append(("FAIL", test.name, f"took longer than {seconds:g} s"))
    elif code != 0 and not failed:
        results.append(("FAIL", test.name, f"exit code {code}"))
    elif code == 0 and failed:
        results.append(("FAIL", test.name, "exit code 0 although a check failed"))
    elif not results:
        results.append(("FAIL", test.name, "no check ran"))
    shutil.rmtree(folder, ignore_errors=True)
    return results, output, time.monotonic() - started


def run_unittest(path):
    """Runs one Python file's cases and prints the protocol's lines."""
    import importlib.util
    import unittest

    class Result(unittest.TestResult):
        def startTest(self, test):
            super().startTest(test)
            self.bad_before = len(self.failures) + len(self.errors)

        def line(self, status, test, why=""):
            name = test.id() if "(" in test.id() else test.id().split(".", 1)[-1]
            name = name.replace(":", ";")
            why = " ".join(why.split())
            print(f"{status} {name}" + (f": {why}" if why else ""), flush=True)

        def addSuccess(self, test):
            # Why: a case whose subTest failed is not a success, and unittest says nothing of it here.
            if len(self.failures) + len(self.errors) == self.bad_before:
                self.line("ok", test)

        def addSkip(self, test, reason):
            super().addSkip(test, reason)
            self.line("skip", test, reason)

        def bad(self, test, err):
            print(self._exc_info_to_string(err, test))
            self.line("FAIL", test, str(err[1]).strip().splitlines()[0][:300] if str(err[1]).strip() else err[0].__name__)

        def addFailure(self, test, err):
            super().addFailure(test, err)
            self.bad(test, err)

        def addError(self, test, err):
            super().addError(test, err)
            self.bad(test, err)

        def addSubTest(self, test, subtest, err):
            super().addSubTest(test, subtest, err)
            if err is not None:
                self.bad(subtest, err)

        def addExpectedFailure(self, test, err):
            self.line("ok", test)

        def addUnexpectedSuccess(self, test):
            super().addUnexpectedSuccess(test)
            self.line("FAIL", test, "passes although it is marked as an expected failure")

    spec = importlib.util.spec_from_file_location(path.stem, path)
    module = importlib.util.module_from_spec(spec)
    sys.modules[path.stem] = module
    spec.loader.exec_module(module)
    result = Result()
    unittest.defaultTestLoader.loadTestsFromModule(module).run(result)
    return 0 if result.wasSuccessful() else 1


def main():
    parser = argparse.ArgumentParser(description="builds and runs the tests of npuprof; see the head of this file")
    parser.add_argument("names", nargs="*", help="parts of the names of test files; all without")
    parser.add_argument("--sanitize", default="", metavar="LIST", help="build the C tests with -fsanitize=LIST; with thread only those that have threads or signals; no Python tests")
    parser.add_argument("--soak", action="store_true", help="only the tests that have a large version, and that")
    parser.add_argument("--valgrind", action="store_true", help="a selection of the C tests under memcheck")
    parser.add_argument("--list", action="store_true", help="names only")
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1)
    parser.add_argument("--verbose", action="store_true", help="also print the passed checks and the times")
    parser.add_argument("--unittest", metavar="FILE", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.unittest:
        return run_unittest(pathlib.Path(options.unittest))

    tests = [t for t in find_tests() if not options.names or any(n in t.name for n in options.names)]
    if options.sanitize:
        tests = [t for t in tests if t.is_c]
    if "thread" in options.sanitize.split(","):
        tests = [t for t in tests if t.has_threads]
    if options.soak:
        tests = [t for t in tests if t.soak_seconds]
    if options.valgrind:
        if not shutil.which(VALGRIND[0]):
            raise SystemExit("valgrind is not installed")
        tests = [t for t in tests if t.is_c and t.valgrind]
    if options.list:
        for test in tests:
            print(test.name)
        return 0 if tests else 1

    BUILD.mkdir(parents=True, exist_ok=True)
    passed = failed = skipped = 0
    lock = threading.Lock()
    times = []

    again = [] if os.environ.get("TEST_AGAIN") and len(tests) > 1 else None

    def run_and_print(test):
        nonlocal passed, failed, skipped
        results, output, seconds = run_test(test, options.sanitize, options.soak, options.valgrind)
        with lock:
            bad = [r for r in results if r[0] == "FAIL"]
            if bad and again is not None and not NEVER_EXCUSED.search(output + " ".join(why for _, _, why in bad)):
                again.append(test)
                for _, name, why in bad:
                    print(f"note {name} failed, and runs again alone: {why}", flush=True)
                for line in output.splitlines()[-40:]:
                    print("    " + line)
                return
            if options.verbose or options.soak:
                print(f"{test.name}: {seconds:.1f} s")
                for line in output.splitlines():
                    if line.startswith("note "):
                        print(f"  {line[5:]}")
            for status, name, why in results:
                if status != "ok" or options.verbose:
                    print(f"{status} {name}" + (f": {why}" if why else ""))
            if bad:
                lines = output.splitlines()
                for line in lines[-200:]:
                    if not re.match(r"(ok|skip|FAIL) ", line):
                        print("    " + line)
            times.append((seconds, test.name))
            passed += sum(r[0] == "ok" for r in results)
            failed += len(bad)
            skipped += sum(r[0] == "skip" for r in results)
            sys.stdout.flush()

    # The slowest files first, so that no long one is left over at the end.
    together = sorted((t for t in tests if not t.alone), key=lambda t: (-t.seconds, t.is_c, t.name))
    with concurrent.futures.ThreadPoolExecutor(1 if options.soak else max(1, options.jobs)) as pool:
        for future in [pool.submit(run_and_print, t) for t in together]:
            future.result()
    for test in tests:
        if test.alone:
            run_and_print(test)

    # Why: on a machine that is shared, what measures time or races a clock may fail once. What is broken fails alone, too.
    failed_once, again = again or [], None
    for test in failed_once:
        run_and_print(test)

    print("slowest: " + ", ".join(f"{name} {seconds:.0f} s" for seconds, name in sorted(times, reverse=True)[:12]))
    print(f"{passed} passed, {failed} failed" + (f", {skipped} skipped" if skipped else ""))
    return 1 if failed or not passed else 0


if __name__ == "__main__":
    sys.exit(main())
