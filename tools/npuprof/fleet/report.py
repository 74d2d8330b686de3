# SPDX-License-Identifier: MIT
"""report of a fleet: finds its traces, makes its tables, and prints or writes them."""

import os
import sys

from ..base.messages import Progress, Refused
from ..convert.forms import READ, form_of
from ..report.data_files import write_csv_dir, write_json
from ..report.text import SHOWN, table_lines
from . import findings
from .fleet import Fleet
from .spread import spread
from .tables import TABLES

ONE = ("html", "csv", "what_if", "record", "inference", "between", "name", "nth", "pe", "thread", "wait",
       "device", "vela", "annotate")    # options for one trace


def is_fleet(paths):
    return len(paths) > 1 or os.path.isdir(paths[0])


def traces_of(paths):
    """The files named, and those in the folders named, by name. Refused: none, or a path to nothing."""
    found = []
    for path in paths:
        if not os.path.exists(path):
            raise Refused(f"{path}: cannot be read: No such file or directory")
        if not os.path.isdir(path):
            found.append(path)
            continue
        inside = [os.path.join(folder, name) for folder, _, names in os.walk(path) for name in names
                  if (form := form_of(name)) and form.read]
        if not inside:
            raise Refused(f"{path}: holds no trace: no {', '.join(READ)}")
        found += sorted(inside)
    return list(dict.fromkeys(found))


def fleet_of(paths, jobs, dask=None):
    """The Fleet of these traces."""
    fleet, bar = Fleet(), Progress(f"reading {len(paths)} traces", len(paths))
    for n, rank in enumerate(spread(paths, jobs, dask), 1):
        fleet.add(rank)
        bar.at(n)
    bar.done()
    return fleet


def run_fleet(arguments, gates):
    """Prints the tables of a fleet, or writes them as CSV and JSON. Returns the exit code."""
    for option in ONE:
        if getattr(arguments, option) is not None:
            raise Refused(f"{arguments.trace[0]}: --{option.replace('_', '-')} is for one trace, "
                          "and here are several")
    if arguments.verdict == "json":
        raise Refused(f"{arguments.trace[0]}: --verdict json is for one trace, and here are several; --json "
                      "FILE --table findings writes theirs")
    every = not arguments.table or "all" in arguments.table
    wanted = list(TABLES) if every else arguments.table
    for name in wanted:
        if name not in TABLES:
            raise Refused(f"--table {name}: of several traces there are: {', '.join(TABLES)}")
    paths = traces_of(arguments.trace)
    fleet = fleet_of(paths, arguments.jobs or os.cpu_count() or 1, arguments.dask)
    for file, why in fleet.left_out:
        print(f"left out: {why}", file=sys.stderr)
    if not fleet.ranks:
        raise Refused("none of these traces can be used")
    if arguments.csv_dir:
        write_csv_dir((TABLES[name](fleet) for name in wanted), arguments.csv_dir)
    if arguments.json:
        write_json({"npuprof_report": 1, "fleet": {"traces": len(paths), "left_out": len(fleet.left_out)}},
                   (TABLES[name](fleet) for name in wanted), arguments.json)
    if arguments.verdict or not (arguments.table or arguments.csv_dir or arguments.json):
        sys.stdout.writelines(line + "\n" for line in findings.lines(fleet, TABLES["stragglers"](fleet)))
    if not (arguments.verdict or arguments.csv_dir or arguments.json):
        show(fleet, wanted, SHOWN if every else None)
    sentence = findings.failed(fleet, gates)
    if sentence:
        print(sentence)
    return 1 if sentence else 0


def show(fleet, wanted, limit):
    """Prints the tables; of an overview those that are for people, below the verdict."""
    first = not limit
    for name in wanted:
        table = TABLES[name](fleet)
        # Why: one line for each of 4096 steps is for programs, and the findings stand above as text.
        if limit and (name in ("steps", "findings") or name == "left_out" and not table.rows):
            continue
        if not first:
            print()
        first = False
        sys.stdout.writelines(line + "\n" for line in table_lines(table, limit))
