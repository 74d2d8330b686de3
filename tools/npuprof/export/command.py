# SPDX-License-Identifier: MIT
"""Exports a whole trace: as a SQLite database, as Parquet files, or in the Common Trace Format.

    export TRACE --sqlite FILE.db       a SQLite database; equal traces give equal bytes
    export TRACE --parquet DIR          DIR/spans.parquet and so on, if pyarrow or DuckDB is installed
    export TRACE --ctf DIR              a CTF 1.8 trace in a new folder, for babeltrace2 and Trace Compass

Tables: meta, strings, devices, anchors, tracks, spans, args, flows, counters, memory, instants, losses. Times
are whole ns (*_ns), sizes bytes (*_bytes). What the trace does not say is NULL. spans.name, spans.cat,
args.key, counters.name and counters.key are numbers of the table strings; spans.track and spans.parent are
ids. In SQLite the view span has the names as text; the view submissions has one row for each submission
outside warm-up that an arrow joins to its execution.

Ten ready queries are in tools/queries:

    sqlite3 -box FILE.db < tools/queries/operators.sql

Memory: about 200 MB for a million spans, 400 MB for three million: the rows go to the file piece by piece.

Exit code 0; 1: the image is damaged, and what could be read was written; 2: the input or output cannot be
used.
"""

import os

from ..base.files import check_new_folder, check_output, make_folder, whole_file
from ..base.messages import Refused, tell_left_out
from ..merging.beside import add_kernel_arguments, loaded, only_trace
from .ctf import write_ctf
from .parquet import write_parquet, writer
from .rows import leave_out_large
from .sqlite import write_sqlite


def add_arguments(parser):
    parser.add_argument("trace", metavar="TRACE", nargs="?",
                        help="a .json, .csv or .npuprof file; none is needed with --ftrace")
    parser.add_argument("-o", "--sqlite", metavar="FILE",
                        help="write a SQLite database: .db, .sqlite or .sqlite3")
    parser.add_argument("--parquet", metavar="DIR", help="write Parquet files into this folder")
    parser.add_argument("--layers", metavar="FILE",
                        help="which command of a device is of which layer: see tools/README.md")
    parser.add_argument("--ctf", metavar="DIR", help="write a trace in the Common Trace Format: a new folder")
    add_kernel_arguments(parser)


def run(arguments):
    path, database, folder = arguments.trace, arguments.sqlite, arguments.parquet
    only_trace([] if path is None else [path], arguments)
    if not (database or folder or arguments.ctf):
        raise Refused("export: say where to: --sqlite FILE, --parquet DIR or --ctf DIR")
    if database:
        check_output(database, (".db", ".sqlite", ".sqlite3"), path, arguments.ftrace)
        if database.endswith(".gz"):
            raise Refused(f"{database}: a database is not packed: leave .gz away")
        if os.path.exists(database) and not os.path.isfile(database):
            raise Refused(f"{database}: is no regular file, and a database needs one")
    if folder:
        writer()
        make_folder(folder)
    if arguments.ctf:
        check_new_folder(arguments.ctf)
    trace = loaded(path, arguments)
    if arguments.ctf:
        write_ctf(trace, arguments.ctf)
    if database or folder:
        leave_out_large(trace)
    tell_left_out(path, trace)
    if database:
        with whole_file(database) as file:
            write_sqlite(trace, file.name, database)
    if folder:
        write_parquet(trace, folder)
    return 1 if trace.damage else 0
