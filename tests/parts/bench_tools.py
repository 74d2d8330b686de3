# SPDX-License-Identifier: MIT
"""Times npuprof.py report, and the converter where it is built, on traces of many spans: seconds and memory.

usage: bench_tools.py [COUNT]     default 10000000; needs about 400 bytes of disk and 100 of memory for each span
"""
import os
import pathlib
import subprocess
import sys
import tempfile
import time

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
TOOL = ROOT / "tools" / "npuprof.py"
CONVERT = ROOT / "build" / "npuprof-convert"


def timed(*command):
    """(seconds of CPU, seconds, peak MB) of a command."""
    started = time.monotonic()
    process = subprocess.Popen([str(c) for c in command], stdout=subprocess.DEVNULL)
    _, status, usage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode:
        raise SystemExit(f"{' '.join(map(str, command))}: exit code {process.returncode}")
    return usage.ru_utime + usage.ru_stime, time.monotonic() - started, usage.ru_maxrss / 1024


def main():
    count = int(sys.argv[1]) if len(sys.argv) > 1 else 10_000_000
    arena = max(64 << 20, count * 96)
    with tempfile.TemporaryDirectory(prefix="npuprof-bench-") as folder:
        program = pathlib.Path(folder) / "many_spans"
        subprocess.run([os.environ.get("CC", "cc"), "-O2", f"-DNPUPROF_ARENA_BYTES={arena}u", "-mcmodel=medium" if arena > 1 << 30 else "-O2",
                        f"-I{ROOT}", f"-I{ROOT}/tests", ROOT / "tests/parts/many_spans.c", "-o", program, "-pthread"], check=True)
        print(f"{count} spans{'':26}  CPU s   wall s  peak MB      file MB")
        for kind in ("host", "device"):
            json, table, image = (pathlib.Path(folder) / f"t.{ending}" for ending in ("json", "csv", "npuprof"))
            timed(program, kind, count, json, table, image)
            steps = [(f"report {kind} .json", json, [sys.executable, TOOL, "report", json]),
                     (f"report {kind} .csv", table, [sys.executable, TOOL, "report", table])]
            if CONVERT.exists():
                steps += [(f"convert {kind} to .json", json, [CONVERT, image, "-o", pathlib.Path(folder) / "u.json"]),
                          (f"convert {kind} to .csv", table, [CONVERT, image, "-o", pathlib.Path(folder) / "u.csv"])]
            for label, size_of, command in steps:
                cpu, wall, peak = timed(*command)
                print(f"{label:36}{cpu:8.1f} {wall:8.1f} {peak:8.0f} {size_of.stat().st_size / 1e6:12.0f}", flush=True)
            for path in (json, table, image):
                path.unlink()


if __name__ == "__main__":
    main()
