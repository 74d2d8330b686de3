# SPDX-License-Identifier: MIT
"""Times npuprof.py report and convert on traces of many spans: seconds of CPU and memory, each with its
limit.

usage: tools.py [COUNT]         default 10000000; needs about 700 bytes of disk and 200 of memory for each
span

A report, the verdict and all tables, may take 90 s of CPU and 2 GB for ten million spans; the report of a
thousand traces of ten thousand spans 240 s of CPU, which are 120 s of two processors, and 80 MB in each
process; a conversion 64 MB beside the image, however many spans there are, and 144 bytes for each that a
device or a program stamped. Exit code 0; 1: something is above its limit, or a report of the image differs
from that of its JSON.
"""
import os
import pathlib
import subprocess
import sys
import tempfile
import time

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
sys.path.insert(0, str(ROOT / "tests" / "tools"))
import fleet_traces  # noqa: E402: in tests
TOOL = ROOT / "tools" / "npuprof.py"
CONVERT = ROOT / "build" / "npuprof-convert"


def private_mb(pid):
    """Memory of a process that no file backs. Why: pages of its files count as resident while there is
    room."""
    try:
        text = pathlib.Path(f"/proc/{pid}/status").read_text()
        return int(text.partition("RssAnon:")[2].split()[0]) / 1024
    except (OSError, IndexError):
        return 0


def timed(output, *command, private=False):
    """(seconds of CPU, seconds, peak MB) of a command. private: only memory that no file backs."""
    started, most = time.monotonic(), 0
    with open(output, "wb") as file:
        process = subprocess.Popen([str(c) for c in command], stdout=file)
        while private:
            pid, status, usage = os.wait4(process.pid, os.WNOHANG)
            if pid:
                break
            most = max(most, private_mb(process.pid))
            time.sleep(0.01)
        else:
            _, status, usage = os.wait4(process.pid, 0)
            most = usage.ru_maxrss / 1024
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode:
        raise SystemExit(f"{' '.join(map(str, command))}: exit code {process.returncode}")
    return usage.ru_utime + usage.ru_stime, time.monotonic() - started, most


def fleet(folder, traces, above):
    """A report of many ranks with 10^4 spans each."""
    folder = folder / "fleet"
    folder.mkdir()
    for r in range(traces):
        if r < 4:
            (folder / f"{r}.json").write_text(fleet_traces.trace(r, 1000)[0])
        else:
            os.link(folder / f"{r % 4}.json", folder / f"{r}.json")
    row(f"report of {traces} traces, 2 processes", os.devnull,
        [sys.executable, TOOL, "report", folder, "--jobs", "2"], 240 * traces / 1000, 80,
        traces * (folder / "0.json").stat().st_size, above)


def row(label, output, command, seconds, megabytes, size, above, private=False):
    """Runs a command and prints its line."""
    cpu, wall, peak = timed(output, *command, private=private)
    is_above = cpu > seconds or peak > megabytes
    print(f"{label:36}{cpu:9.1f} {seconds:8.0f} {wall:8.1f} {peak:8.0f} {megabytes:8.0f} {size / 1e6:9.0f}  "
          f"{'above' if is_above else 'ok'}", flush=True)
    if is_above:
        above.append(label)


def main():
    count = int(sys.argv[1]) if len(sys.argv) > 1 else 10_000_000
    arena = max(64 << 20, count * 96)
    report_s, report_mb = max(10, 90 * count / 1e7), max(160, 2000 * count / 1e7)
    above = []
    with tempfile.TemporaryDirectory(prefix="npuprof-bench-") as folder:
        folder = pathlib.Path(folder)
        program = folder / "many_spans"
        subprocess.run([os.environ.get("CC", "cc"), "-O2", f"-DNPUPROF_ARENA_BYTES={arena}u",
                        "-mcmodel=medium" if arena > 1 << 30 else "-O2",
                        f"-I{ROOT}", f"-I{ROOT}/tests", ROOT / "tests/programs/many_spans.c", "-o", program,
                        "-pthread"], check=True)
        print(f"{count} spans{'':26}  CPU s    limit   wall s  peak MB    limit   file MB")
        for kind in ("host", "device"):
            paths = {ending: folder / f"t.{ending}" for ending in ("json", "csv", "npuprof")}
            image = paths["npuprof"]
            timed(os.devnull, program, kind, count, *paths.values())
            steps = [(f"report {kind} .{ending}", path, [sys.executable, TOOL, "report", path])
                     for ending, path in paths.items()]
            steps += [(f"convert {kind} .npuprof to .{ending}", None,
                       [CONVERT, paths["npuprof"], "-o", folder / f"u.{ending}"])
                      for ending in ("json", "csv", "pftrace")]
            outputs = {}
            for label, path, command in steps:
                outputs[label] = folder / f"{len(outputs)}.txt"
                size = (path or image).stat().st_size
                # A writer sorts placed spans in pages: 48 bytes each, twice, and a list that grows doubles.
                sorts = 144e-6 * count if kind == "device" else 0
                limits = (report_s, report_mb) if path else (float("inf"), size / 1e6 + 64 + sorts)
                row(label, outputs[label], command, *limits, size, above, private=not path)
                # Why from the third line: the first two name the file.
                if path == image and (outputs[label].read_bytes().split(b"\n")[2:] !=
                                      outputs[f"report {kind} .json"].read_bytes().split(b"\n")[2:]):
                    above.append(f"{label} is not that of the .json")
                for old in folder.glob("u.*"):
                    old.unlink()
            for path in [*paths.values(), *outputs.values()]:
                path.unlink()
        fleet(folder, max(20, count // 10_000), above)
    for label in above:
        print(f"above its limit: {label}")
    return 1 if above else 0


if __name__ == "__main__":
    sys.exit(main())
