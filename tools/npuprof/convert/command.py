# SPDX-License-Identifier: MIT
"""Turns a trace into another form, which the extension of the output names.

    convert t.npuprof -o t.json              Chrome JSON; also t.csv, and t.npuprof (packs a mapped arena)
    convert t.npuprof -o t.otlp.json         OTLP/JSON, one document
    convert t.npuprof -o t.otlp.jsonl        OTLP/JSON, one document in each line for every 10,000 spans
    convert 1234      -o t.json              what process 1234 has in its arena, if that is in a file
    convert t.json    -o t.otlp.json         the same from JSON or CSV
    convert t.json    -o t.csv
    convert t.json    -o named.json          the same trace with the names of functions, for viewers
    convert t.json    -o t.speedscope.json   for speedscope, from any form, in whole nanoseconds
    convert t.json    -o t.folded            self times by call path, for flamegraph.pl, inferno, speedscope
    convert t.npuprof -o t.pftrace           Perfetto's own format, from any form: a third of the bytes of
                                             JSON, and a trace of the system can be appended
    convert t.npuprof -o t.pftrace --idle    the same with a track "NAME idle" for each device: when it was
                                             idle, and why, as in the table idle
    convert t.npuprof -o t.json --source     each span and instant says its file and line, for viewers

build/npuprof-convert (`make tools`) reads an image, in constant memory. Other files are read whole. OTLP has
no counters. A JSON does not state the ids of plain spans: what is made of it has others than what is made of
the image.

Exit code 0; 1: the image is damaged, and what could be read was written; 2: the input or output cannot be
used.

Every tool reads files packed with gzip, and packs an output whose name ends in .gz: t.json.gz, t.pftrace.gz.
"""

import os
import subprocess
import sys
import tempfile
from functools import partial

from ..base.files import check_output, plain_path, whole_file
from ..base.messages import Refused, tell_left_out
from ..read import load
from ..read.image import converter, is_addressed
from ..read.running import arena_path
from .forms import ENDINGS, FORMS, form_of
from .idle_packets import write_idle
from .image import convert_image, is_image
from .json_sources import write_with_sources

WITH_ARGUMENTS = (".pftrace", ".otlp.json", ".otlp.jsonl")     # forms that the tools write with all arguments


def add_arguments(parser):
    parser.add_argument("trace", metavar="TRACE",
                        help="a .json, .csv or .npuprof file, or the number of a process with a mapped arena")
    parser.add_argument("--layers", metavar="FILE",
                        help="which command of a device is of which layer; for .pftrace and OTLP")
    parser.add_argument("--idle", action="store_true",
                        help="in a .pftrace a track beside each device, with when it was idle and why")
    parser.add_argument("--source", action="store_true",
                        help="in a .json an argument of each span: file and line of its call site")
    parser.add_argument("-o", "--output", required=True, metavar="FILE", help=" ".join(ENDINGS))


def load_with_ids(path, layers):
    """The trace of an image, with all ids. Why its CSV: the JSON has only the ids of labelled spans and
    executions."""
    trace = load(path, progress=True, layers=layers)
    with tempfile.TemporaryDirectory(prefix="npuprof-") as folder:
        rows = os.path.join(folder, "ids.csv")
        with plain_path(path) as plain:
            subprocess.run([converter(), "-o", rows, "--", plain], stdin=subprocess.DEVNULL,
                           stderr=subprocess.DEVNULL)
        same = load(rows, progress=True)
    if same.dur != trace.dur:
        raise Refused(f"{path}: changed while it was read")
    trace.ids = same.ids
    return trace


def run(arguments):
    path, output = arena_path(arguments.trace), arguments.output
    form = form_of(output)
    check_output(output, ENDINGS, path)
    image = is_image(path)
    if arguments.idle and not (form and form.ending == ".pftrace"):
        raise Refused(f"{output}: --idle adds a track to a .pftrace, and no other form has a place for it")
    if arguments.source and not (form and form.ending == ".json"):
        raise Refused(f"{output}: --source is for .json; .pftrace and .csv have file and line anyway")
    if arguments.layers:
        if not (form and form.ending in WITH_ARGUMENTS):
            raise Refused(f"{output}: layers have no place there: write {' or '.join(WITH_ARGUMENTS)}")
    elif arguments.source:
        with whole_file(output) as file:
            return 1 if write_with_sources(path, file).damage else 0
    elif (not form or form.of_image) and (image or form and form.ending == ".json" and is_addressed(path)):
        behind = (lambda file: write_idle(load(path, progress=True), file)) if arguments.idle else None
        return convert_image(path, output, behind)
    if not (form and form.write):
        *written, last = sorted(one.ending for one in FORMS if one.write)
        if os.path.isfile(path) and not os.path.getsize(path):
            raise Refused(f"{path}: the file is empty")
        raise Refused(f"{path}: only an image (.npuprof) becomes "
                      f"{os.path.splitext(output.removesuffix('.gz'))[1] or 'what has no extension'}; "
                      f"this file becomes {', '.join(written)} or {last}")
    read = load_with_ids if image and form.ids else partial(load, progress=True)
    trace = read(path, layers=arguments.layers)
    with whole_file(output) as file:
        left_out = form.write(trace, file)
        if arguments.idle:
            write_idle(trace, file)
        if left_out:
            print(f"{output}: {left_out} instants lie in no span and are left out", file=sys.stderr)
    tell_left_out(path, trace)
    return 1 if trace.damage else 0
