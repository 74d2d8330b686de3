# SPDX-License-Identifier: MIT
"""Programs without marks, for tests: built with -finstrument-functions, their calls counted by gcov, their
debug information moved to a file of its own, and the names of functions in what the tools write."""

import collections
import json
import pathlib
import shutil
import sys
import unittest

import helpers

TOOL = helpers.ROOT / "tools" / "npuprof.py"
# Why -O0: what gcc inlines, gcov counts at another place.
FLAGS = ["-O0", "-g", "-w", "-finstrument-functions", "--coverage", "-fprofile-update=atomic", "-pthread",
         "-Wl,--build-id"]


def must(command, **options):
    """Runs a command that has to succeed; what it printed."""
    done = helpers.run(command, **options)
    assert done.returncode == 0, f"{command}: {done.stderr[-2000:]}"
    return done.stdout


def recorder(folder):
    """The object file that records."""
    target = folder / "recorder.o"
    must([*helpers.CC, "-std=c11", "-O1", "-D_GNU_SOURCE", "-fPIC", f"-I{helpers.ROOT}", "-c",
          helpers.PROGRAMS / "auto_recorder.c", "-o", target])
    return target


def record(program, folder, *arguments, **variables):
    """Runs a program. gcov counts this run alone."""
    for old in folder.rglob("*.gcda"):
        old.unlink()
    must([program, *arguments], cwd=folder, env=helpers.environment(**variables))


def need_gcov():
    """Skips the test without gcc and its gcov."""
    helpers.need("gcov")
    if "Free Software Foundation" not in must([*helpers.CC, "--version"]):
        raise unittest.SkipTest("gcov reads what gcc counts; the compiler is another one: CC=gcc")


def counted(folder):
    """Calls of each function by gcov."""
    calls = collections.Counter()
    for data in sorted(folder.rglob("*.gcda")):
        for file in json.loads(must(["gcov", "--json-format", "--stdout", data], cwd=folder))["files"]:
            for function in file["functions"]:
                calls[function["demangled_name"]] += function["execution_count"]
    return +calls


def names(path, *options):
    """Calls of each function in a trace, as npuprof.py convert names them, and what it says."""
    target = pathlib.Path(path).with_suffix(".names.json")
    done = helpers.run([sys.executable, TOOL, "convert", path, "-o", target, *options])
    assert done.returncode == 0, done.stderr
    calls = collections.Counter(event["name"] for event in helpers.load(target)["traceEvents"]
                                if event.get("cat") == "auto" and event["ph"] == "X")
    return calls, done.stderr


def lost(path):
    """How many calls a trace says it lost. Notes are none: objects that the full table does not hold."""
    causes = helpers.load(path)["metadata"]["npuprof"]["lost"]
    return sum(count for cause, count in causes.items() if cause != "notes")


def split(module, debug):
    """Moves the debug information of a module to a file of its own."""
    debug.parent.mkdir(parents=True, exist_ok=True)
    must([helpers.need("objcopy"), "--only-keep-debug", module, debug])
    must([helpers.need("strip"), module])


def build_id(module):
    text = must([helpers.need("readelf"), "-n", module])
    return text.partition("Build ID: ")[2].split()[0]


def copied(folder, name):
    """An empty folder in the scratch folder of the test."""
    target = folder / name
    shutil.rmtree(target, ignore_errors=True)
    target.mkdir()
    return target
