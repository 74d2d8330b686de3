#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Builds and runs the benchmarks, prints one table: each figure with its limit and a verdict, "ok" or "over";
under a figure that is over, why. Exit code 0: all was measured, also if something is over; 1: a figure is
unstable, or nothing was measured; another: a benchmark failed.

usage: run.py [--long] [--json FILE] [NAME...]

--long  10^8 spans for the rows of whole processes, 10^7 without
NAME    only the parts whose names hold it: hot, shared, sustained, fresh, threads, startup, device, process,
convert, instructions, and
        the other C files of this folder

What is measured runs under SCHED_FIFO where the system allows it, else on a machine with other work the
medians may be several times too high; the first line says which. Every ratio is of one process in which the
floor (two reads of the counter and one 16-byte store) and the
library alternate; the value is the median, the spread the middle half. A row whose middle half is wider than
a fifth of its median is unstable; its part is run up to three times. All is built so that no branch lies
across a 32-byte boundary, where the assembler can do that. Why: on Intel's Skylake to Cascade Lake such a
branch costs more than the whole of a span but its clock reads, and where it lies is chance; the table's first
line names the flag. A file NAME.c of this folder that is not named here is built, run without arguments, and
its ROW lines (see bench.h) are shown.
"""
import argparse
import json
import os
import pathlib
import platform
import resource
import shutil
import statistics
import subprocess
import sys
import tempfile

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parent.parent
BUILD = ROOT / "build" / "benches"
CC = os.environ.get("CC", "cc").split()
KEEP_NEWEST, STREAM = "1", "2"
UNSTABLE = 0.2
FIFO = 50
# Why a figure is over its limit: what it consists of, as counted.
WHY = {
    "span, 1 int64 argument: instructions":
        "one stores the 0 behind the record: for it no chunk is zeroed, and the span takes less time",
    "PROF_NEXT: instructions":
        "29 in the function: 3 generation, 3 slot busy, 4 which span is open, 3 clock, 2 chunk full, 2 too "
        "late, 12 stamps, name, token and the thread's slot; 5 at the call. A token kept beside the busy "
        "flag would save 3 to 4 and cost a plain span 1",
    "json: file / write":
        "280 instructions a span of 77 bytes, 17 ns on an AMD EPYC guest: 54 the pass that finds the clock's "
        "rate and the ends, 68 the digits of stamp and duration; write(2) alone is 29 ns of 47",
    "image: load / read of raw units":
        "55 instructions a span: 51 decode it, 4 sum its block. Of 7 ns these take 2.6 and 0.5; most of "
        "the rest is the kernel's, which zeroes new memory and copies the file. Why the file is not mapped: "
        "if it is cut off meanwhile, its reader dies",
    "start-up to first span":
        "12 to 13 pages touched first are most of it, 1.7 us each on an AMD EPYC guest; besides, 12,000 "
        "instructions of set-up",
}
NO_SPLIT_BRANCHES = "-Wa,-mbranches-within-32B-boundaries"


def placement():
    """The flag for the assembler, as a list, empty if it does not know it."""
    test = subprocess.run([*CC, NO_SPLIT_BRANCHES, "-x", "c", "-c", "-", "-o", str(BUILD / "empty.o")],
                          input=b"int x;\n", stderr=subprocess.DEVNULL)
    return [NO_SPLIT_BRANCHES] if test.returncode == 0 else []


def build(source, output, *flags):
    command = [*CC, "-std=gnu11", "-O2", *placement(), f"-I{ROOT}", f"-I{HERE}", f"-I{ROOT / 'tests'}",
               *map(str, source), "-o", str(output), *flags, "-pthread", "-lm"]
    subprocess.run(command, check=True)
    return str(output)


def has_fifo():
    """May processes run under SCHED_FIFO here?"""
    try:
        before = os.sched_getscheduler(0), os.sched_getparam(0)
        os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(FIFO))
        os.sched_setscheduler(0, *before)
    except (AttributeError, OSError):
        return False
    return True


def become_fifo():
    if has_fifo():
        os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(FIFO))


def output_of(*command):
    """What it prints. Exit code 1 says that a figure is unstable, which its rows say, too."""
    done = subprocess.run(list(map(str, command)), stdout=subprocess.PIPE, text=True, timeout=900, cwd=BUILD,
                          preexec_fn=become_fifo if os.name == "posix" else None)
    if done.returncode not in (0, 1):
        raise subprocess.CalledProcessError(done.returncode, done.args)
    return done.stdout


def rows_of(text):
    rows = []
    for line in text.splitlines():
        if line.startswith("ROW\t"):
            name, value, unit, limit, low, high, ns = line.split("\t")[1:]
            rows.append(dict(name=name, value=float(value), unit=unit, limit=float(limit) or None,
                             low=float(low), high=float(high),
                             ns=float(ns) or None))
    return rows


def row_of(name, values, unit, limit=None, ns=None):
    values = sorted(values)
    return dict(name=name, value=statistics.median(values), unit=unit, limit=limit,
                low=values[len(values) // 4],
                high=values[len(values) * 3 // 4], ns=ns)


def is_unstable(row):
    return row["unit"].startswith("x ") and row["high"] - row["low"] > UNSTABLE * row["value"]


def startup():
    program = build([HERE / "startup.c"], BUILD / "startup")
    values = [sum(map(float, output_of(program).split())) for _ in range(101)]
    return [row_of("start-up to first span", values, "us", 50)]


def fresh(spans):
    """A fresh arena over a populated one: each process fills one, the two kinds alternately."""
    rows = []
    for name, kind in ("default arena", 0), ("64 MiB", 2):
        runs = [[rows_of(output_of(spans, "fresh", kind + populated)) for populated in (0, 1)]
                for _ in range(5)]
        for measure, limit in (0, 1.10 if kind == 0 else None), (1, None):
            ratios = [one[measure]["value"] / other[measure]["value"] for one, other in runs]
            rows.append(row_of(f"fresh {name} / populated, {('median', 'mean')[measure]} of a span", ratios,
                               "x", limit))
        rows += runs[-1][0] + runs[-1][1]
    return rows


def process(spans, count):
    """CPU time of whole processes that stream to a file, over recording alone, alternately."""
    rows = []
    places = [("a disk file", pathlib.Path(tempfile.mkdtemp(dir=BUILD)), 1.25)]
    if os.access("/dev/shm", os.W_OK):
        places.append(("/dev/shm", pathlib.Path(tempfile.mkdtemp(dir="/dev/shm")), 1.35))
    for name, folder, limit in places:
        try:
            ratios, ns = [], []
            for _ in range(3 if count > 10**7 else 5):
                alone = float(output_of(spans, "process", KEEP_NEWEST, count, folder / "alone.npuprof"))
                streamed = float(output_of(spans, "process", STREAM, count, folder / "s.npuprof"))
                (folder / "s.npuprof").unlink()
                ratios.append(streamed / alone)
                ns.append(streamed)
            rows.append(row_of(f"process CPU, 10^{len(str(count)) - 1} spans streamed to {name}", ratios,
                               "x recording", limit, statistics.median(ns)))
        finally:
            shutil.rmtree(folder)
    return rows


def convert(spans):
    """npuprof-convert: an image to JSON, CSV and .pftrace, user and system time of the process, in ns a span;
    of .pftrace the bytes of a span, too."""
    tool = ROOT / "build" / "npuprof-convert"
    if not tool.exists():
        return []
    count, values = 10**6, {"json": [], "csv": [], "pftrace": []}
    with tempfile.TemporaryDirectory(dir="/dev/shm" if os.access("/dev/shm", os.W_OK) else BUILD) as folder:
        image = pathlib.Path(folder) / "i.npuprof"
        output_of(spans, "image", count, image, "args")
        with_integer = image.stat().st_size / count
        output_of(spans, "image", count, image)
        plain = image.stat().st_size / count
        for kind in 7 * tuple(values):
            before = resource.getrusage(resource.RUSAGE_CHILDREN)
            output_of(tool, image, "-o", pathlib.Path(folder) / f"o.{kind}")
            after = resource.getrusage(resource.RUSAGE_CHILDREN)
            values[kind].append((after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime) * 1e9
                                / count)
        size = (pathlib.Path(folder) / "o.pftrace").stat().st_size / count
    rows = [row_of(f"npuprof-convert to {kind.upper()}", values[kind], "ns a span")
            for kind in ("json", "csv")]
    ratios = [ours / json for ours, json in zip(values["pftrace"], values["json"])]
    return rows + [row_of("npuprof-convert to .pftrace", ratios, "x JSON", 0.6,
                          statistics.median(values["pftrace"])),
                   row_of("a span in .pftrace", [size], "bytes", 30),
                   row_of("a span in .npuprof", [plain], "bytes", 6),
                   row_of("a span with one integer in .npuprof", [with_integer], "bytes", 14)]


def instructions():
    sys.path.insert(0, str(ROOT / "tests"))
    from compile import test_instructions  # noqa: E402: in tests
    return [dict(name=name, value=value, unit=unit, limit=limit, low=value, high=value, ns=None)
            for name, value, unit, limit in
            test_instructions.figures(CC)]


def writers():
    """The writers and the reader against the yardsticks of writers.c."""
    program, path = build([HERE / "writers.c"], BUILD / "writers"), BUILD / "writers.json"
    output_of(program, "--json", path)
    return [dict(name=row["name"], value=row["ratio"], unit="x yardstick" if row["ns"] else "",
                 limit=row["limit"], low=row["ratio"] * (1 - row["spread"] / 2),
                 high=row["ratio"] * (1 + row["spread"] / 2),
                 ns=row["ns"] or None) for row in json.loads(path.read_text())["rows"]]


def cpu_name():
    try:
        for line in pathlib.Path("/proc/cpuinfo").read_text().splitlines():
            if line.startswith("model name"):
                return line.split(":", 1)[1].strip()
    except OSError:
        pass
    return platform.processor() or platform.machine()


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--long", action="store_true")
    parser.add_argument("--json", metavar="FILE")
    parser.add_argument("names", nargs="*")
    options = parser.parse_args()
    BUILD.mkdir(parents=True, exist_ok=True)
    spans = build([HERE / "spans.c"], BUILD / "spans")
    count = 10**8 if options.long else 10**7
    parts = {"hot": lambda: rows_of(output_of(spans, "hot")),
             "sustained keep-oldest": lambda: rows_of(output_of(spans, "sustained", 0, 10**7)),
             "sustained keep-newest": lambda: rows_of(output_of(spans, "sustained", KEEP_NEWEST, 10**7)),
             "sustained stream": lambda: rows_of(output_of(spans, "sustained", STREAM, 10**7)),
             "fresh": lambda: fresh(spans),
             "threads": lambda: rows_of(output_of(spans, "threads")), "shared": None,
             "names": lambda: rows_of(output_of(spans, "names")),
             "device": lambda: rows_of(output_of(spans, "device")),
             "startup": startup, "process": lambda: process(spans, count),
             "convert": lambda: convert(spans),
             "instructions": instructions, "writers": writers}
    for source in sorted(HERE.glob("*.c")):
        if source.stem not in ("spans", "writers", "startup"):
            parts[source.stem] = lambda source=source: rows_of(output_of(
                build([source], BUILD / source.stem)))

    def shared():
        build([HERE / "spans.c"], BUILD / "libspans.so", "-fPIC", "-shared", "-Dmain=bench_main")
        (BUILD / "caller.c").write_text("int bench_main(int argc, char **argv);\n"
                                        "int main(int argc, char **argv)\n"
                                        "{ return bench_main(argc, argv); }\n")
        caller = build([BUILD / "caller.c"], BUILD / "caller", str(BUILD / "libspans.so"),
                       f"-Wl,-rpath,{BUILD}")
        return rows_of(output_of(caller, "hot", "span, in a -fPIC shared library"))
    parts["shared"] = shared

    compiler = subprocess.run([*CC, "--version"], stdout=subprocess.PIPE, text=True,
                              check=True).stdout.splitlines()[0]
    machine = (f"{cpu_name()}, {os.cpu_count()} CPUs, {platform.system()} {platform.release()}, {compiler} "
               f"{' '.join(['-O2', *placement()])}; {'SCHED_FIFO' if has_fifo() else 'no SCHED_FIFO'}")
    print(machine)
    print(f"{'':52} {'median':>9} {'middle half':>17} {'unit':<12} {'limit':>6} {'ns':>7}")
    table = []
    for name, run in parts.items():
        if options.names and not any(wanted in name for wanted in options.names):
            continue
        for _ in range(3):
            rows = run()
            if not any(is_unstable(row) for row in rows):
                break
        for row in rows:
            row["verdict"] = ("unstable" if is_unstable(row) else "" if row["limit"] is None else "ok"
                              if row["value"] <= row["limit"] else "over")
            limit = "" if row["limit"] is None else f"{row['limit']:g}"
            ns = "" if row["ns"] is None else f"{row['ns']:.2f}"
            print(f"{row['name']:52} {row['value']:9.3f} {row['low']:8.3f} {row['high']:8.3f} "
                  f"{row['unit']:<12} {limit:>6} {ns:>7}  "
                  f"{row['verdict']}", flush=True)
            if row["verdict"] == "over" and row["name"] in WHY:
                print(f"    why: {WHY[row['name']]}")
        table += rows
    if options.json:
        pathlib.Path(options.json).write_text(json.dumps(dict(machine=machine, rows=table), indent=1) + "\n")
    unstable = [row["name"] for row in table if row["verdict"] == "unstable"]
    if unstable:
        print(f"UNSTABLE, run again on a quiet machine: {', '.join(unstable)}")
    return 1 if unstable or not table else 0


if __name__ == "__main__":
    sys.exit(main())
