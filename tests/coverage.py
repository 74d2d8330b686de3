# SPDX-License-Identifier: MIT
"""Lines and branches of src/ that the tests ran, by room: `run.py --coverage`.

The tests are built with gcc's --coverage. What is compiled are the joined headers, so gcov counts their
lines; tools/join.py says which line of src/ each one is. A line counts as run if it ran in any of the
programs, and a branch likewise. What no program compiles (another system, another compiler) is not counted.
"""
import concurrent.futures
import json
import os
import pathlib
import shutil
import subprocess
import sys

from helpers import ROOT, TESTS

sys.path.insert(0, str(ROOT / "tools"))
import join                                                              # noqa: E402

BUILD = ROOT / "build" / "tests"
UNCOVERED = ROOT / "build" / "uncovered.txt"
FLAGS = ["--coverage", "-fprofile-abs-path", "-Wl,--wrap=_exit", "-include", str(TESTS / "coverage.h")]
# Python tests whose programs reach what the C tests do not: the environment, files, printed tables.
PROGRAM_TESTS = ("process/test_environment", "process/test_capture", "process/test_files",
                 "process/test_mapped", "process/test_process", "process/test_between", "write/test_json",
                 "write/test_model", "write/test_results", "write/test_source", "image/test_convert")
# The fast ways of arguments and names are there only when the compiler optimises.
OPTIMISED = ("unit/events", "unit/edges", "unit/fast", "firmware/fast")
# The scheduler changes stacks under the counters, and random clocks take long and run nothing more.
LEFT_OUT = ("schedule/schedule", "npu/random_clocks")


def chosen(tests):
    """Of the quick tests those that are worth their time here."""
    return [t for t in tests if t.name not in LEFT_OUT and (t.is_c or t.name in PROGRAM_TESTS)]


def flags(has_threads):
    """Why two ways to count: what threads need takes half of a test's time."""
    return [*FLAGS, f"-fprofile-update={'atomic' if has_threads else 'single'}"]


def lacking(compiler):
    """What is missing here, or None. Only gcc says its specs."""
    if not shutil.which("gcov"):
        return "gcov is not installed"
    specs = subprocess.run([*compiler, "-dumpspecs"], capture_output=True, check=False)
    return None if specs.returncode == 0 else f"{compiler[0]} is not gcc"


def clear():
    """Counts of an earlier run must not be added to."""
    for path in BUILD.rglob("*.gcda"):
        path.unlink()


def read_gcov(path):
    """The files of a program, as gcov says them; nothing if it cannot."""
    done = subprocess.run(["gcov", "--json-format", "--stdout", "--branch-probabilities", str(path)],
                          cwd=path.parent, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, check=False)
    return [file for line in done.stdout.splitlines() if line.startswith(b"{")
            for file in json.loads(line)["files"]]


def places():
    """Of each joined header: the (part, line) that each of its lines came from."""
    joined = set()
    return {str(ROOT / name): [None, *(place for _, place in join.joined_lines(ROOT / "src" / name, joined))]
            for name in ("npuprof.h", "npuprof_npu.h")}


class Counts:
    """Of each line of a part: how often it ran; and of its branches, how often each was taken."""

    def __init__(self):
        self.places = places()
        self.lines, self.branches = {}, {}

    def place(self, file, line):
        if file in self.places:
            part, number = self.places[file][line]
            return str(part.relative_to(ROOT)), number
        if file.startswith(str(ROOT / "tools" / "convert")):
            return os.path.relpath(file, ROOT), line
        return None

    def add(self, files):
        for file in files:
            for line in file["lines"]:
                place = self.place(os.path.normpath(file["file"]), line["line_number"])
                if not place:
                    continue
                self.lines[place] = self.lines.get(place, 0) + line["count"]
                taken = [branch["count"] for branch in line["branches"] if not branch["throw"]]
                # Why the number of them: another knob gives the line other branches.
                key = (*place, len(taken))
                before = self.branches.get(key, [0] * len(taken))
                self.branches[key] = [a + b for a, b in zip(before, taken)]

    def taken(self):
        """Of each place: its branches, in the form in which most were taken; of two such, the shorter."""
        best = {}
        for (*place, _), taken in sorted(self.branches.items(), key=lambda item: item[0]):
            place = tuple(place)
            if sum(map(bool, taken)) > sum(map(bool, best.get(place, []))) or place not in best:
                best[place] = taken
        return best


def room_of(part):
    folder = pathlib.PurePath(part).parent.as_posix()
    return folder.removeprefix("src/") + "/"


def table(counts):
    """Of each room: lines, those that ran, branches, those that were taken."""
    rooms, branches = {}, counts.taken()
    for place, ran in counts.lines.items():
        taken = branches.get(place, [])
        row = rooms.setdefault(room_of(place[0]), [0, 0, 0, 0])
        for i, more in enumerate((1, ran > 0, len(taken), sum(map(bool, taken)))):
            row[i] += more
    return dict(sorted(rooms.items()))


def percent(part, whole):
    return f"{100 * part / whole:5.1f} %" if whole else "      -"


def write_uncovered(counts, path):
    """A line for each line of src/ that no test ran, and for each with a branch that none took."""
    texts, out, branches = {}, [], counts.taken()
    for (part, line), ran in sorted(counts.lines.items()):
        if part not in texts:
            texts[part] = (ROOT / part).read_text(encoding="utf-8").splitlines()
        taken = branches.get((part, line), [])
        what = "line" if not ran else f"{taken.count(0)}/{len(taken)}" if 0 in taken else None
        if what:
            out.append(f"{part}:{line}: {what:>5} | {texts[part][line - 1]}\n")
    path.write_text("".join(out), encoding="utf-8")


def report(jobs):
    """Reads all counts of BUILD and prints the table. Exit code 0, or 1 when there is nothing to read."""
    counts = Counts()
    with concurrent.futures.ThreadPoolExecutor(max(1, jobs)) as pool:
        for files in pool.map(read_gcov, sorted(BUILD.rglob("*.gcda"))):
            counts.add(files)
    if not counts.lines:
        print("no coverage was written: is this gcc, and is gcov of the same version installed?")
        return 1
    rooms = table(counts)
    print(f"{'room':<20} {'lines':>6} {'run':>8} {'branches':>9} {'taken':>8}")
    for name, row in [*rooms.items(), ("all", [sum(column) for column in zip(*rooms.values())])]:
        print(f"{name:<20} {row[0]:6} {percent(row[1], row[0]):>8} {row[2]:9} {percent(row[3], row[2]):>8}")
    write_uncovered(counts, UNCOVERED)
    print(f"what did not run: {UNCOVERED.relative_to(ROOT)}")
    return 0
