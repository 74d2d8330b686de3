# SPDX-License-Identifier: MIT
"""What a running program records: its mapped arena, looked at once a second.

The program must record into a mapped arena: start it with NPUPROF_ARENA_PATH=run.npuprof. Say that file, or
the number of the process. The file is only read, and the program does not notice. A look reads what was
recorded since the one before, so a large arena costs no more than a small one.

  spans/s      of that name, that ended since the last look; of a device span: that was handed over
  mean, max    how long they took
  busy         the part of the time in which any execution ran on the device
  in flight    submissions that were not done, on average: the sum of the times from submission to end, by the
               time between two looks
  not read     records that newer ones overwrote between two looks, at most: choose a shorter --interval
  lost         spans and events that the program itself could not record, of the whole run, by cause

On a terminal it redraws one screen, otherwise it prints one block for each look. --json prints one JSON
object a line: counts, total_ns and busy_ns are of the interval_ns before, "lost" is of the whole run.

Exit code 0: --once, or interrupted; 1: the program has ended; 2: the file cannot be looked at.
"""

import argparse
import json
import os
import subprocess
import sys

from .base import built
from .base.messages import Refused
from .read.image import symbol_options
from .read.running import arena_path

ROWS = 12


def add_arguments(parser):
    parser.add_argument("arena", metavar="ARENA",
                        help="the file of NPUPROF_ARENA_PATH, or the number of the process")
    parser.add_argument("--interval", type=seconds, default=1.0, metavar="SECONDS",
                        help="time between two looks, 0.01 to 3600 (default 1)")
    parser.add_argument("--once", action="store_true", help="print one block after one interval, and end")
    parser.add_argument("--json", action="store_true", help="one JSON object a line")


def seconds(text):
    try:
        value = float(text)
    except ValueError:
        value = 0
    if not 0.01 <= value <= 3600:
        raise argparse.ArgumentTypeError("not 0.01 to 3600 seconds")
    return value


def run(arguments):
    arguments.arena = arena_path(arguments.arena)
    tool = built.program("npuprof-top")
    if not tool:
        raise Refused(f"{arguments.arena}: top needs npuprof-top: {built.remedy()}")
    command = [tool, *symbol_options, "--", arguments.arena, str(arguments.interval), *["1"] * arguments.once]
    process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                               stderr=subprocess.PIPE, text=True, errors="replace")
    try:
        show(process.stdout, arguments)
        said = process.stderr.read()
    except KeyboardInterrupt:
        return 0
    finally:
        process.kill()
        code = process.wait()
    if said:
        print(said.removeprefix("npuprof-top: ").rstrip(), file=sys.stderr)
    return code if code in (0, 1) else 2


def show(looks, arguments):
    """Prints what each line of npuprof-top says."""
    redraw = sys.stdout.isatty() and not arguments.json and not arguments.once
    for n, line in enumerate(looks):
        if arguments.json:
            print(line, end="", flush=True)
            continue
        block = "\n".join(lines(json.loads(line), os.path.basename(arguments.arena)))
        if redraw:        # at the upper left corner; what was there is cleared
            getattr(sys.stdout, "stream", sys.stdout).write("\x1b[H\x1b[J")
        print(block if redraw else f"{block}\n", flush=True)


def lines(look, name):
    """Yields the lines of one look."""
    interval = look["interval_ns"]
    yield (f"{name}: {shown(look['program'])} (pid {look['pid']}), {look['threads']} threads, arena "
           f"{look['arena_bytes'] >> 20} MiB")
    lost = {cause: count for cause, count in look["lost"].items() if count}
    words = ", ".join(f"{count} {cause}" for cause, count in lost.items()) or "nothing"
    unread = f"; not read: at most {look['unseen']}" if look["unseen"] else ""
    yield (f"{per_second(look['spans'], interval)} spans/s, {per_second(look['events'], interval)} events/s, "
           f"{look['open']} spans open; lost in the whole run: {words}{unread}")
    for device in look["devices"]:
        flight = "not known" if device["executions"] and not device["linked"] else \
            f"{device['in_flight_ns'] / interval:.2f}"
        yield (f"{shown(device['name'])}: busy {min(100, 100 * device['busy_ns'] / interval):.1f} %, "
               f"{per_second(device['executions'], interval)} executions/s, in flight {flight}")
    names = sorted(look["names"], key=lambda own: (-own["total_ns"], own["name"]))
    if names:
        yield f"{'spans/s':>12} {'mean':>10} {'max':>10} {'of 1 s':>9}  name"
    for own in names[:ROWS]:
        yield (f"{per_second(own['count'], interval):>12} {time_text(own['total_ns'] / own['count']):>10} "
               f"{time_text(own['max_ns']):>10} {100 * own['total_ns'] / interval:>7.1f} %  "
               f"{shown(own['name'])}")
    if len(names) > ROWS:
        yield f"({len(names) - ROWS} more names: --json)"
    slow = ", ".join(f"{shown(own['name'])} {time_text(own['dur_ns'])}" for own in look["slowest"])
    if slow:
        yield f"slowest: {slow}"


def shown(name):
    """A name on one line, not longer than a column."""
    text = " ".join(name.split())
    return text if len(text) <= 60 else text[:59] + "\u2026"


def per_second(count, interval):
    rate = count * 1e9 / interval
    return f"{rate:.0f}" if rate >= 100 or not rate else f"{rate:.1f}"


def time_text(ns):
    for unit, size in (("s", 1e9), ("ms", 1e6), ("us", 1e3)):
        if ns >= size:
            return f"{ns / size:.3g} {unit}" if ns < 1000 * size else f"{ns / size:.0f} {unit}"
    return f"{ns:.0f} ns"
