#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""What npuprof takes in a program on this machine, knob by knob, and how long it compiles.

usage: sizes.py [--short] [--json FILE]    CC in the environment names the compiler, gcc by default

--short: -O2 of that compiler alone, and no time.

A row is examples/01_hello.c, linked: text (code, constants, unwind tables, dynamic linking) as `size` counts
it, and the static memory beside the arena. The last row is `.text` alone of a program that records and writes
an image into a sink, linked with --gc-sections. A limit is what may not be passed; a goal is what the project
wants. Exit code 1: a limit is passed.
"""
import json
import os
import pathlib
import re
import resource
import shutil
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
BUILD = ROOT / "build" / "sizes"
HELLO = ROOT / "examples" / "01_hello.c"
ARENA = 16 * 1024 * 1024
KNOBS = {"no knob": [], "NPUPROF_NO_REPORTS": ["-DNPUPROF_NO_REPORTS"],
         "NPUPROF_NO_JSON": ["-DNPUPROF_NO_JSON"], "both": ["-DNPUPROF_NO_REPORTS", "-DNPUPROF_NO_JSON"],
         "NPUPROF_RECORD_ONLY": ["-DNPUPROF_RECORD_ONLY"]}
TEXT = "NPUPROF_RECORD_ONLY, .text of what is used"
# what, limit, goal; of gcc -O2
LIMITS = {"no knob": (190700, 120000), "NPUPROF_RECORD_ONLY": (72150, None), TEXT: (19600, 16384)}
BSS_LIMIT = 64 * 1024
SECONDS = (4.0, 2.5)        # the implementing file, gcc -O2, in CPU seconds: limit, goal
# Why: sites name their file, and where the project lies is no part of its size.
NO_FOLDER = f"-ffile-prefix-map={ROOT}/="
SECTIONS = ["-ffunction-sections", "-fdata-sections", "-Wl,--gc-sections"]
SINK = """#define NPUPROF_IMPLEMENTATION
#include "npuprof.h"
static int put(void *user, const void *bytes, size_t count) { (void)user; (void)bytes; return !count; }
int main(void)
{
    const npuprof_sink sink = { put, NULL };
    npuprof_start(1);
    { PROF_SCOPE("span"); }
    return npuprof_write_image(sink) != NPUPROF_OK;
}
"""


def run(*command):
    return subprocess.run([str(word) for word in command], check=True, stdout=subprocess.PIPE,
                          universal_newlines=True).stdout


def linked(compiler, optimise, source, *flags):
    program = BUILD / "program"
    run(compiler, optimise, f"-I{ROOT}", NO_FOLDER, *flags, source, "-o", program, "-pthread")
    return program


def sizes(compiler, optimise, flags):
    """Text, and static memory beside the arena."""
    found = run("size", linked(compiler, optimise, HELLO, *flags)).splitlines()[1].split()
    return int(found[0]), int(found[2]) - ARENA


def section_text(compiler):
    """The section .text of a program that needs little, without that of an empty one."""
    empty, small = BUILD / "empty.c", BUILD / "sink.c"
    empty.write_text("int main(void) { return 0; }\n")
    small.write_text(SINK)
    found = [run("size", "-A", linked(compiler, "-O2", source, *SECTIONS, "-DNPUPROF_RECORD_ONLY"))
             for source in (small, empty)]
    big, none = (int(re.search(r"^\.text\s+(\d+)", text, re.M)[1]) for text in found)
    return big - none


def cpu_seconds(*command):
    """The lesser of two runs."""
    times = []
    for _ in range(2):
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        run(*command)
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        times.append(after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime)
    return min(times)


def compile_seconds(compiler):
    """Of the implementing file; and of a file of the yardstick, 400 small functions."""
    source, steady, out = BUILD / "one.c", BUILD / "steady.c", BUILD / "one.o"
    source.write_text('#define NPUPROF_IMPLEMENTATION\n#include "npuprof.h"\n')
    steady.write_text("".join(f"unsigned f{n}(unsigned *p, unsigned n) {{ unsigned s = {n}; "
                              "for (unsigned i = 0; i < n; i++) "
                              "{ if (p[i] & 1) s += p[i] * s; else s ^= p[i] >> 3; } return s; }\n"
                              for n in range(400)))
    return (cpu_seconds(compiler, "-O2", f"-I{ROOT}", "-c", source, "-o", out),
            cpu_seconds(compiler, "-O2", "-c", steady, "-o", out))


def verdict(value, limit, goal):
    if limit and value > limit:
        return f"over the limit of {limit}"
    if goal and value > goal:
        return f"limit {limit}; the goal of {goal} is missed by {value - goal:.10g}"
    return f"limit {limit}" if limit else ""


def main():
    compiler = os.environ.get("CC", "gcc")
    BUILD.mkdir(parents=True, exist_ok=True)
    builds = [(compiler, "-O2"), (compiler, "-Os")]
    if shutil.which("clang") and compiler != "clang":
        builds.append(("clang", "-O2"))
    if "--short" in sys.argv:
        builds = builds[:1]
    heads = "".join(f"{' '.join(b):>11}" for b in builds)
    print(f"    this machine, bytes of text:{heads}   beside the arena")
    report, bad = {}, []
    for what, flags in KNOBS.items():
        found = [sizes(*build, flags) for build in builds]
        text, bss = found[0][0], max(b for _, b in found)
        said = verdict(text, *LIMITS.get(what, (None, None)))
        print(f"    {what:24}" + "".join(f"{t:11}" for t, _ in found) + f"{bss:15}   {said}".rstrip())
        report[what] = {"text": text, "bss": bss}
        bad += [what] if said.startswith("over") or bss > BSS_LIMIT else []
    text = section_text(compiler)
    seconds, steady = (0, 1) if "--short" in sys.argv else compile_seconds(compiler)
    report.update({TEXT: {"text": text}, "compile": {"seconds": seconds, "ratio": seconds / steady}})
    for what, value, limits in ((TEXT, text, LIMITS[TEXT]),
                                ("seconds to compile, gcc -O2", round(seconds, 2), SECONDS)):
        if value:
            print(f"    {what:46} {value}; {verdict(value, *limits)}")
        # Why not the time: another program on the machine makes it longer.
        bad += [what] if what == TEXT and value > limits[0] else []
    if seconds:
        print(f"    that is {seconds / steady:.1f} times a file of 400 small functions")
    if "--json" in sys.argv:
        pathlib.Path(sys.argv[sys.argv.index("--json") + 1]).write_text(json.dumps(report))
    if bad:
        sys.exit(f"over its limit: {', '.join(bad)}")


if __name__ == "__main__":
    main()
