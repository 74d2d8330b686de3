# SPDX-License-Identifier: MIT
"""Turns a trace into another form, by the output's extension.

    convert t.npuprof -o t.json        Chrome JSON; also t.csv and t.npuprof (a mapped arena, packed)
    convert t.npuprof -o t.otlp.json   OTLP/JSON, one document; t.otlp.jsonl: one a line for every 10,000 spans
    convert t.json    -o t.otlp.json   the same from JSON or CSV; also t.csv
    convert t.json    -o t.speedscope.json   for speedscope, from any of them, in whole nanoseconds

An image is read by build/npuprof-convert (`make tools`) in constant memory; the rest is read whole. OTLP has no counters.

Exit code 0; 1: the image is damaged, and what could be read was written; 2: the input or the output cannot be used.
"""

import glob
import os
import subprocess
import sys
import tempfile

from npuprof_common import Progress, Refused, check_output, show_progress, whole_file
from npuprof_load import COLUMNS, converter, load
from npuprof_otlp import write_otlp
from npuprof_report import memory_pools
from npuprof_speedscope import write_speedscope

ENDINGS = (".json", ".csv", ".npuprof", ".otlp.json", ".otlp.jsonl", ".speedscope.json")


def add_arguments(parser):
    parser.add_argument("trace", metavar="TRACE", help="a .json, .csv or .npuprof file")
    parser.add_argument("-o", "--output", required=True, metavar="FILE", help=" ".join(ENDINGS))


def is_image(path):
    try:
        with open(path, "rb") as file:
            head = file.read(4096)
    except OSError as error:
        raise Refused(f"{path}: cannot be read: {error.strerror}") from None
    return head.startswith(b"NPUPROF") or b"\0" in head


def convert_image(path, output):
    """By npuprof-convert; its exit code. Says on a terminal how much is written."""
    tool = converter()
    if not tool:
        raise Refused(f"{path}: an image needs npuprof-convert: run `make tools` first")
    process = subprocess.Popen([tool, path, "-o", output], stdin=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True,
                               errors="replace")
    pause, shown = 1, False
    try:
        while sys.stderr.isatty():
            try:
                process.wait(pause)
                break
            except subprocess.TimeoutExpired:
                pause, shown = 0.2, True
                # The converter writes under such a name, and renames.
                parts = glob.glob(os.path.join(glob.escape(os.path.dirname(output)), f"npuprof-{process.pid}-*.tmp"))
                size = sum(os.path.getsize(part) for part in parts if os.path.exists(part))
                show_progress(f"converting {path}: {size >> 20} MB written")
        said = process.communicate()[1]
    except BaseException:
        process.kill()
        process.wait()
        for part in glob.glob(os.path.join(glob.escape(os.path.dirname(output)), f"npuprof-{process.pid}-*.tmp")):
            os.unlink(part)
        raise
    if shown:
        show_progress("")
    sys.stderr.write(said)
    return process.returncode if process.returncode in (0, 1) else 2


def load_with_ids(path):
    """A trace of an image with the ids of its CSV. Why: the JSON has only those of labelled spans and executions."""
    trace = load(path, progress=True)
    with tempfile.TemporaryDirectory(prefix="npuprof-") as folder:
        rows = os.path.join(folder, "ids.csv")
        subprocess.run([converter(), path, "-o", rows], stdin=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        same = load(rows, progress=True)
    if same.dur != trace.dur:
        raise Refused(f"{path}: changed while it was read")
    trace.ids = same.ids
    return trace


def write_csv(trace, file):
    """The contract's columns, in the form of the C writer."""
    bar = Progress(f"writing {len(trace)} spans", len(trace))
    file.write((",".join(COLUMNS) + "\n").encode())
    for n, row in enumerate(trace.rows()):
        for key in ("cat", "name"):
            row[key] = '"%s"' % row[key].replace('"', '""') if row[key] or key == "name" else ""
        file.write((",".join("" if row[c] is None else str(row[c]) for c in COLUMNS) + "\n").encode("utf-8", "replace"))
        if not n & 4095:
            bar.at(n)
    peaks = trace.memory_peaks or [(trace.base_ns + p["used_ns"], f"{pool} used_bytes={p['used'][0]} allocated_bytes={p['held']} tag={p['used'][2]}")
                                   for pool, p in memory_pools(trace).items()]
    for ns, name in peaks:
        file.write(',,,{0},{0},"memory","{1}",,,,,,,0\n'.format(ns, name.replace('"', '""')).encode("utf-8", "replace"))
    bar.done()


def run(arguments):
    path, output = arguments.trace, arguments.output
    otlp, speedscope = output.endswith((".otlp.json", ".otlp.jsonl")), output.endswith(".speedscope.json")
    extension = os.path.splitext(output)[1]
    check_output(output, ENDINGS, path)
    image = is_image(path)
    if image and not (otlp or speedscope):
        return convert_image(path, output)
    if not (otlp or speedscope) and extension != ".csv":
        raise Refused(f"{path}: only an image (.npuprof) becomes {extension}; this file becomes .csv, .otlp.json, .otlp.jsonl or .speedscope.json")
    trace = load_with_ids(path) if image and otlp else load(path, progress=True)
    with whole_file(output) as file:
        if otlp:
            left_out = write_otlp(trace, file, output.endswith("l"), progress=True)
            if left_out:
                print(f"{output}: {left_out} instants lie in no span and are left out", file=sys.stderr)
        elif speedscope:
            write_speedscope(trace, file)
        else:
            write_csv(trace, file)
    return 1 if trace.damage else 0
