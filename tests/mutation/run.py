#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Breaks the library in one place after the other, and says which breaks no test sees.

usage: run.py [--sample N] [--seed N] [--most N] [--list] ROOM...
       for example run.py --sample 40 record/ public/hot.h

First run `make coverage`: its counts say which tests run a line. A mutant is the joined header with one
change in one line: another comparison, arithmetic or logic; a constant that is one more or less; a statement
that is missing; a condition turned round. Some tests that run the line are built with it and run, first those
of whose work the line is the largest part; then some that see files and the order of two threads (LAST).

  killed       a test failed, or took longer than its limit
  SURVIVED     all of them passed
not counted: what does not compile, and survivors whose machine code at -O2 is that of the library itself.
Weaker memory orders are not among the changes: no test on x86 sees them. tests/schedule/model.c weakens each.

The last lines are a table: room, mutants, killed. Ctrl-c prints it, too. Exit code 1: nothing to mutate.
"""
import argparse
import pathlib
import random
import re
import shutil
import signal
import subprocess
import sys
import time

TESTS = pathlib.Path(__file__).resolve().parent.parent
sys.path.insert(0, str(TESTS))
import coverage                                                          # noqa: E402
import run as runner                                                     # noqa: E402
from helpers import ROOT, digest                                         # noqa: E402

BUILD = ROOT / "build" / "mutation"
# For what the nearest tests let pass: they see limits, files, other processes, and the order of two threads.
LAST = {"": ("write/test_golden", "write/test_json", "unit/limits"),
        "control/": ("process/test_environment", "process/test_capture"),
        "process/": ("process/test_environment", "process/test_hooked"),
        "arena/": ("schedule/schedule",), "record/": ("write/test_results", "schedule/schedule"),
        "read/": ("write/test_results", "write/test_model")}
SWAPS = {" < ": [" <= ", " > "], " <= ": [" < "], " > ": [" >= ", " < "], " >= ": [" > "],
         " == ": [" != "], " != ": [" == "], " + ": [" - "], " - ": [" + "], " * ": [" + "], " / ": [" * "],
         " % ": [" / "], " && ": [" || "], " || ": [" && "], " & ": [" | "], " | ": [" & "], " ^ ": [" & "],
         " << ": [" >> "], " >> ": [" << "], " += ": [" -= "], " -= ": [" += "], " |= ": [" &= "],
         " &= ": [" |= "], "++": ["--"], "--": ["++"]}
OPERATOR = re.compile("|".join(re.escape(word) for word in sorted(SWAPS, key=len, reverse=True)))
NUMBER = re.compile(r"(?<![\w.])(\d+)(?=[uUlL]*\b)(?![\w.]*[.xX])")
NEGATION = re.compile(r"(?<![\w!)])!(?=[\w(])")
CONDITION = re.compile(r"\b(if|while) \((.*)\)( \{| return\b.*;| continue;| break;)?$")
STATEMENT = re.compile(r"^(\s+)((?:\*?[\w.>\[\]-]+ [-+|&^]?= [^;]*|\w+\([^;]*\)|[\w.>-]+(?:\+\+|--)));$")
STRING = re.compile(r'"(?:[^"\\]|\\.)*"|\'(?:[^\'\\]|\\.)*\'|/\*.*?(?:\*/|$)|//.*')


def mutants_of(text):
    """(what, the changed line) for each change of a line."""
    code = STRING.sub(lambda match: "\0" * len(match[0]), text)
    if code.lstrip().startswith(("#", "*")):
        return
    for match in OPERATOR.finditer(code):
        for other in SWAPS[match[0]]:
            yield f"{match[0].strip()} to {other.strip()}", text[:match.start()] + other + text[match.end():]
    for match in NUMBER.finditer(code):
        for other in {int(match[1]) + 1, abs(int(match[1]) - 1)}:
            yield f"{match[1]} to {other}", text[:match.start(1)] + str(other) + text[match.end(1):]
    for match in NEGATION.finditer(code):
        yield "! away", text[:match.start()] + text[match.end():]
    match = CONDITION.search(code)
    if match:
        begin, end = match.span(2)
        yield "condition turned", f"{text[:begin]}!({text[begin:end]}){text[end:]}"
    match = STATEMENT.match(code)
    if match and not re.match(r"\s*(return|const|static|struct)\b", code):
        yield "statement away", f"{match[1]};"


def options():
    """What run.py is asked for: the quick cases."""
    return argparse.Namespace(quick=True, rest=False, sanitize="", soak=False, valgrind=False, coverage=False,
                              optimised=coverage.OPTIMISED)


class Library:
    """The joined headers, the lines of src/ they came from, and which tests run each."""

    def __init__(self):
        self.counts = coverage.Counts()
        self.tests = {test.name: test for test in runner.find_tests()}
        self.runs, self.baseline, self.codes = {}, {}, {}
        for name, test in self.tests.items():
            if not test.is_c or not test.part(options()):
                continue
            for counts in (coverage.BUILD / name).parent.glob(f"{test.path.stem}.coverage-*.gcda"):
                self.add(name, coverage.read_gcov(counts))
        self.headers = {path: pathlib.Path(path).read_text(encoding="utf-8").splitlines()
                        for path in self.counts.places}
        self.where = {(str(place[0].relative_to(ROOT)), place[1]): (path, number)
                      for path, places in self.counts.places.items()
                      for number, place in enumerate(places) if place}

    def add(self, name, files):
        one = coverage.Counts()
        one.add(files)
        self.counts.add(files)
        whole = sum(one.lines.values())
        for place, ran in one.lines.items():
            if ran:
                tests = self.runs.setdefault(place, {})
                tests[name] = max(tests.get(name, 0), ran / whole)

    def tests_of(self, place):
        """The tests that run a line, first those of whose work it is the largest part."""
        tests = self.runs.get(place, {})
        return sorted(tests, key=lambda name: (-tests[name], name))

    def mutants(self, room):
        """(place, what, changed line) of all lines of a room, or of a part, that are compiled."""
        for place in sorted(self.counts.lines):
            if place[0].startswith(f"src/{room}") and place in self.where:
                path, number = self.where[place]
                for what, line in mutants_of(self.headers[path][number - 1]):
                    yield place, what, line

    def write(self, place, line):
        """The headers with that line; None: as they are."""
        for path, lines in self.headers.items():
            lines = list(lines)
            if place and self.where[place][0] == path:
                lines[self.where[place][1] - 1] = line
            text, target = "\n".join(lines) + "\n", BUILD / pathlib.Path(path).name
            if not target.exists() or target.read_text(encoding="utf-8") != text:
                target.write_text(text, encoding="utf-8")

    def seconds(self, name):
        """How long a test takes with the library as it is; 1000 s when it fails."""
        if name not in self.baseline:
            self.write(None, None)
            started = time.monotonic()
            outcome = run_one(self.tests[name], 150)
            self.baseline[name] = 1000.0 if outcome.bad() else time.monotonic() - started
        return self.baseline[name]


def run_one(test, seconds):
    test.seconds = seconds
    digest.cache_clear()                # the headers are not what they were a moment ago
    return runner.run_test(test, options())


def is_killed(library, room, place, line, most):
    """(True, the test), (False, how many tests) or (None, "does not compile")."""
    last = [name for key, names in LAST.items() if room.startswith(key) for name in names]
    names = library.tests_of(place)[:most]
    names += [name for name in last if name not in names]
    for name in names:
        seconds = library.seconds(name)
        if seconds >= 1000:
            continue
        library.write(place, line)
        outcome = run_one(library.tests[name], 8 + 1.25 * seconds)      # run.py gives it four times that
        if any("does not compile" in why for _, _, why in outcome.bad()):
            return None, "does not compile"
        if outcome.bad():
            return True, name
    return False, len(names)


def machine_code(test):
    """What the compiler makes of a test with the headers of BUILD."""
    own = [flag for flag in test.cc if not flag.startswith("-O")]
    own += ["-DNPUPROF_IMPLEMENTATION"] if test.is_linked else []
    command = ["cc", "-std=c11", "-O2", "-w", "-iquote", str(BUILD), f"-I{ROOT}", f"-I{TESTS}", *own,
               "-S", "-o", "-", str(test.path)]
    return subprocess.run(command, capture_output=True, check=False).stdout


def is_equivalent(library, place, line):
    """Is the machine code that of the library itself, in tests that run the line?"""
    def same(name):
        if name not in library.codes:
            library.write(None, None)
            library.codes[name] = machine_code(library.tests[name])
        library.write(place, line)
        return machine_code(library.tests[name]) == library.codes[name]
    return all(same(name) for name in (library.tests_of(place) or ["unit/arena"])[:2])


def run_room(library, room, wanted):
    """Tries the mutants of a room, and yields for each that counts whether it was killed."""
    mutants = list(library.mutants(room))
    random.Random(wanted.seed).shuffle(mutants)
    for place, what, line in mutants:
        dead, by = is_killed(library, room, place, line, wanted.most)
        if dead is None or (not dead and by and is_equivalent(library, place, line)):
            continue
        print(f"{'killed  ' if dead else 'SURVIVED'} {place[0]}:{place[1]}: {what}: "
              f"{by if dead else f'{by} tests: ' + line.strip()}", flush=True)
        yield dead


def run_rooms(library, wanted):
    """Room after room, one mutant each, so that all have some when the run is stopped; then the table."""
    runs = {room: run_room(library, room, wanted) for room in wanted.rooms}
    results = {room: [] for room in wanted.rooms}
    try:
        for _ in range(wanted.sample):
            for room, run in runs.items():
                results[room] += [dead for dead in [next(run, None)] if dead is not None]
    except KeyboardInterrupt:
        pass
    print(f"{'room':<20} {'mutants':>8} {'killed':>7}")
    for room, dead in results.items():
        print(f"{room:<20} {len(dead):8} {coverage.percent(sum(dead), len(dead)):>7}")


def main():
    parser = argparse.ArgumentParser(description="breaks the library, and says which breaks no test sees; "
                                                 "see the head of this file")
    parser.add_argument("rooms", nargs="+", metavar="ROOM", help="the beginning of a path below src/")
    parser.add_argument("--sample", type=int, default=40, metavar="N", help="mutants of each room")
    parser.add_argument("--seed", type=int, default=1, metavar="N", help="which ones")
    parser.add_argument("--most", type=int, default=4, metavar="N",
                        help="C tests of each mutant, of those that run the line (default 4)")
    parser.add_argument("--list", action="store_true", help="print all mutants only")
    arguments = parser.parse_args()
    BUILD.mkdir(parents=True, exist_ok=True)
    runner.BUILD = BUILD / "tests"
    library = Library()
    if not library.counts.lines:
        print("run `make coverage` first")
        return 1
    if arguments.list:
        for room in arguments.rooms:
            for place, what, line in library.mutants(room):
                print(f"{place[0]}:{place[1]}: {what}: {line.strip()}")
        return 0
    compiler = "clang" if shutil.which("clang") else "cc"       # it compiles twice as fast at -O0
    runner.os.environ["CC"] = f"{compiler} -iquote {BUILD}"
    signal.signal(signal.SIGINT, signal.default_int_handler)    # a shell ignores it in the background
    run_rooms(library, arguments)
    sys.stdout.flush()
    runner.os._exit(0)          # Ctrl-c: the clocks of the time limits would be waited for


if __name__ == "__main__":
    sys.exit(main())
