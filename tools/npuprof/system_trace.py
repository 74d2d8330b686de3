# SPDX-License-Identifier: MIT
"""Records what the Linux kernel sees: jobs of devices, and why threads wait. No program needs a mark.

    system-trace -o system.txt 5                   for five seconds
    system-trace -o system.txt                     until Ctrl-C
    system-trace -o system.txt -- ./program        while the program runs
    system-trace -o both.json -- ./program         and the spans of the program on the same timeline

A .txt is the kernel's text: `report --ftrace system.txt`, `view --ftrace system.txt`. A .json or .pftrace is
what `merge` makes of it, with the trace of the program if it uses npuprof: NPUPROF_OUTPUT_PATH is set for it.

It needs root, or the right to write to tracefs, and says so. It uses an instance of the tracer of its own,
with the clock mono, and removes it at the end: nobody else's tracing changes. Events that this kernel does
not have are named, and what they would tell.

Exit code: that of the command, 128 and the signal if one ended it; 0 without a command; 2: it cannot record.
Ctrl-C and SIGTERM end the recording, and what there is is written. The command gets them, too.
"""

import contextlib
import glob
import re
import sys
import tempfile

from . import merge
from .base.files import check_output, whole_file
from .base.messages import Refused
from .base.running import Ended, run_command, seconds_of
from .kernel.patterns import Patterns
from .kernel.tracefs import DEVICES, JOBS, NEEDED, Instance, refused, tracefs

ENDINGS = ".txt", ".json", ".pftrace"
BUFFER_KB, LEAST_KB, MOST_KB = 8192, 64, 1 << 22


def add_arguments(parser):
    parser.add_argument("-o", "--output", default="system.txt", metavar="FILE",
                        help="the kernel's text, .txt, or a merged trace, .json or .pftrace; also with .gz "
                             "(default: system.txt)")
    parser.add_argument("--event", action="append", default=[], metavar="SYSTEM/EVENT",
                        help="record this, too; or a whole SYSTEM")
    parser.add_argument("--ftrace-devices", action="append", default=[], metavar="FILE.toml",
                        help="record the events that it names, too; see merge")
    parser.add_argument("--buffer-kb", type=int, default=BUFFER_KB, metavar="KB",
                        help=f"memory of the kernel for each CPU (default {BUFFER_KB}); when it is full, the "
                             "oldest events go")
    parser.add_argument("what", nargs="*", metavar="SECONDS | -- COMMAND",
                        help="how long, or a command with its arguments; nothing: until Ctrl-C")


def events_of(arguments):
    """The events to record, each once."""
    for event in arguments.event:
        if not re.fullmatch(r"[\w-]+(/[\w-]+)?", event):
            raise Refused(f"--event {event}: neither SYSTEM/EVENT nor a SYSTEM")
    own = [event for events in NEEDED.values() for event in events]
    return list(dict.fromkeys([*own, *JOBS, *DEVICES, *Patterns(arguments.ftrace_devices).events(),
                               *arguments.event]))


def say_missing(missing, asked):
    """Says which events this kernel does not have, and what that means."""
    for what, events in NEEDED.items():
        if set(events) & set(missing):
            told = {"threads": "why threads wait", "interrupts": "which interrupt ended a wait"}[what]
            names = ", ".join(event for event in events if event in missing)
            print(f"system-trace: this kernel has no {names}: it does not tell {told}", file=sys.stderr)
    if set(JOBS) <= set(missing):
        print("system-trace: this kernel has no event of a device's jobs: load the driver first; if it has "
              "events of its own, say them by --event and --ftrace-devices", file=sys.stderr)
    for event in asked:
        if event in missing:
            print(f"system-trace: --event {event}: this kernel has none", file=sys.stderr)


def record(arguments, file, environment):
    """Records into an open file and returns the exit code."""
    seconds = seconds_of(arguments.what)
    events = events_of(arguments)
    with Ended() as ended, Instance(tracefs()) as instance:
        say_missing(instance.set_up(events, arguments.buffer_kb), arguments.event)
        try:
            instance.start()
            if arguments.what and seconds is None:
                code = run_command(arguments.what, environment, ended)
            else:
                code = 0
                ended.event.wait(seconds)
            instance.stop()
            lost = instance.lost()
            instance.copy(file)
        except OSError as error:
            raise refused(instance.folder, error) from None
    if lost:
        print(f"system-trace: {lost} events did not fit, the oldest: --buffer-kb "
              f"{4 * arguments.buffer_kb} would keep more", file=sys.stderr)
    return code


def merged(arguments, text, folder):
    """Writes the merged trace of the text, and of what the command recorded in the folder."""
    traces = sorted(glob.glob(f"{glob.escape(folder)}/*.npuprof"))
    if arguments.what and seconds_of(arguments.what) is None and not traces:
        print("system-trace: the command wrote no trace of npuprof: only what the kernel saw is shown",
              file=sys.stderr)
    arguments.traces, arguments.ftrace, arguments.ftrace_clock = traces, text, None
    arguments.label, arguments.offset, arguments.host_error = [], [], None
    with contextlib.redirect_stdout(sys.stderr):         # Why: stdout is the command's
        merge.run(arguments)


def run(arguments):
    output, arguments.event = arguments.output, [event.replace(":", "/") for event in arguments.event]
    check_output(output, ENDINGS)
    if not LEAST_KB <= arguments.buffer_kb <= MOST_KB:
        raise Refused(f"--buffer-kb {arguments.buffer_kb}: from {LEAST_KB} to {MOST_KB}")
    if output.lower().removesuffix(".gz").endswith(".txt"):
        with whole_file(output) as file:
            return record(arguments, file, {})
    with tempfile.TemporaryDirectory(prefix="npuprof-") as folder:
        text = f"{folder}/kernel.txt"
        with whole_file(text) as file:
            code = record(arguments, file, {"NPUPROF_OUTPUT_PATH": f"{folder}/%p.npuprof"})
        merged(arguments, text, folder)
    return code
