#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Builds and runs the benchmarks, prints one table. Exit code 1 when a figure is unstable.

usage: run.py [--long] [--json FILE] [NAME...]

--long  10^8 spans for the rows of whole processes, 10^7 without
NAME    only the parts whose names hold it: hot, shared, sustained, fresh, threads, startup, device, process,
convert, instructions, and
        the other C files of this folder

Every ratio is of one process in which the floor (two reads of the counter and one 16-byte store) and the
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


def output_of(*command):
    """What it prints. Exit code 1 says that a figure is unstable, which its rows say, too."""
    done = subprocess.run(list(map(str, command)), stdout=subprocess.PIPE, text=True, timeout=900, cwd=BUILD)
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


def startup(spans):
    values = [float(output_of(spans, "startup")) for _ in range(31)]
    return [row_of("start-up to first span", values, "us", 50)]


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
        output_of(spans, "image", count, image)
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
                   row_of("a span in .pftrace", [size], "bytes", 30)]


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
             "fresh": lambda: rows_of(output_of(spans, "fresh", 0)),
             "fresh populate": lambda: rows_of(output_of(spans, "fresh", 1)),
             "threads": lambda: rows_of(output_of(spans, "threads")), "shared": None,
             "device": lambda: rows_of(output_of(spans, "device")),
             "startup": lambda: startup(spans), "process": lambda: process(spans, count),
             "convert": lambda: convert(spans),
             "instructions": instructions, "writers": writers}
    for source in sorted(HERE.glob("*.c")):
        if source.stem not in ("spans", "writers"):
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
               f"{' '.join(['-O2', *placement()])}")
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
                              if row["value"] <= row["limit"] else "above")
            limit = "" if row["limit"] is None else f"{row['limit']:g}"
            ns = "" if row["ns"] is None else f"{row['ns']:.2f}"
            print(f"{row['name']:52} {row['value']:9.3f} {row['low']:8.3f} {row['high']:8.3f} "
                  f"{row['unit']:<12} {limit:>6} {ns:>7}  "
                  f"{row['verdict']}", flush=True)
        table += rows
    if options.json:
        pathlib.Path(options.json).write_text(json.dumps(dict(machine=machine, rows=table), indent=1) + "\n")
    unstable = [row["name"] for row in table if row["verdict"] == "unstable"]
    if unstable:
        print(f"UNSTABLE, run again on a quiet machine: {', '.join(unstable)}")
    return 1 if unstable or not table else 0


if __name__ == "__main__":
    sys.exit(main())
