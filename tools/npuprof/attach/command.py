# SPDX-License-Identifier: MIT
"""Records a program that is already running, and was started without a thought of it (Linux).

    attach 1234                              until Ctrl-C, into attach-1234.npuprof
    attach 1234 --seconds 10 -o t.json       ten seconds, and Chrome JSON

The program needs marks, and nothing else: no npuprof_start(), no variable. It may be attached to as often
as wanted; each trace holds its own time. The program is not stopped, and no code is put into it: this stores
some words of data, and the program's own thread begins and ends the recording at a mark. If this is killed,
the program ends the recording a few seconds later. Each copy of npuprof in the process, such as a plugin's,
gives a trace of its own: t-PLUGIN.json.

The records lie in the program's own arena (16 MiB, if it says nothing else), and are copied at the end. If
it gets full, it keeps what is in it, and counts what is lost. If the program ends meanwhile, the trace has
what was there a second before.

You need the right to debug the program: the same user, and what kernel.yama.ptrace_scope asks for.

Exit code 0; 1: the program ended meanwhile, and what was there is written; 2: nothing was recorded.
"""

import os
import signal
import sys
import tempfile
import time

from ..base.built import remedy
from ..base.files import check_output, whole_file
from ..base.messages import Refused
from ..convert.forms import ENDINGS
from ..convert.image import convert_image
from ..read.image import converter
from ..top import seconds
from .arena import losses, read_header
from .process import Gone, Process
from .words import PATIENCE, find

TICK, BEAT, KEEP = 0.01, 0.5, 1.0       # seconds between two looks, two signs of life, two copies
INTERRUPTS = {signal.SIGINT, signal.SIGTERM}


def add_arguments(parser):
    parser.add_argument("pid", metavar="PID", type=int, help="the number of a process")
    parser.add_argument("-o", "--output", metavar="FILE",
                        help="default attach-PID.npuprof; " + " ".join(ENDINGS))
    parser.add_argument("--seconds", type=seconds, metavar="N",
                        help="how long, 0.01 to 3600; without it, until Ctrl-C")
    parser.add_argument("--level", type=int, choices=range(1, 10), default=1, metavar="1..9",
                        help="marks up to this level (default 1)")


def run(arguments):
    output = arguments.output or f"attach-{arguments.pid}.npuprof"
    check_output(output, ENDINGS)
    if not output.endswith(".npuprof") and not converter():
        raise Refused(f"{output}: needs npuprof-convert: {remedy()}; or write a .npuprof")
    process = Process(arguments.pid)
    copies = find(process)
    before = signal.signal(signal.SIGTERM, signal.default_int_handler)
    ended = False
    try:
        record(process, copies, arguments)
    except Gone:
        ended = True
        say(process, "has ended; what was there a second before is written")
    finally:
        signal.signal(signal.SIGTERM, before)
    copies = [copy for copy in copies if copy.image]
    if not copies:
        raise Refused(f"{process.pid}: nothing was recorded: no mark has run")
    return max(int(ended), *(write(copy.image, name(output, copy, copies)) for copy in copies))


def say(process, text):
    print(f"{process.pid}: {process.name()} {text}", file=sys.stderr)


def record(process, copies, arguments):
    """Begins, waits and ends. The images of the copies are then what they recorded."""
    refused = None
    try:
        for copy in copies:
            try:
                copy.begin(arguments.level)
            except Refused as why:
                refused = why
        if not any(copy.asked for copy in copies):
            raise refused
        if refused:
            print(refused, file=sys.stderr)
        wait(process, copies, arguments.seconds)
    except KeyboardInterrupt:
        pass
    finally:
        # Why: what is half ended keeps the program recording until it notices.
        signal.pthread_sigmask(signal.SIG_BLOCK, INTERRUPTS)
        try:
            for copy in copies:
                copy.finish()
        finally:
            signal.signal(signal.SIGINT, signal.SIG_IGN)
            signal.pthread_sigmask(signal.SIG_UNBLOCK, INTERRUPTS)


def wait(process, copies, duration):
    """Until the time is over, or interrupted."""
    duration = duration or float("inf")
    began = now = time.monotonic()
    first, said, beat, keep = None, False, now, now + KEEP
    while now < (began + PATIENCE if first is None else first) + duration:
        running = [copy for copy in copies if copy.has_begun()]
        if running and first is None:
            first = now
            say(process, f"is recorded{'' if duration < 1e9 else '; Ctrl-C ends it'}")
        if not running and not said and now > began + PATIENCE:
            said = True
            say(process, f"does not record yet: "
                         f"{'it is stopped' if process.is_stopped() else 'no mark has run since'}")
        if now > beat:
            beat = now + BEAT
            for copy in copies:
                copy.beat()
        if now > keep:
            for copy in running:
                copy.keep()
            keep = max(now + KEEP, now + 20 * (time.monotonic() - now))
        time.sleep(TICK)
        now = time.monotonic()


def name(output, copy, copies):
    """The path for a copy: the output; for all but the first, beside it, with the name of the object."""
    if copy is copies[0]:
        return output
    folder, base = os.path.split(output)
    stem, dot, rest = base.partition(".")
    same = [other for other in copies if os.path.basename(other.path) == os.path.basename(copy.path)]
    which = f"-{same.index(copy) + 1}" if copy is not same[0] else ""
    return os.path.join(folder, f"{stem}-{os.path.basename(copy.path).partition('.')[0]}{which}{dot}{rest}")


def write(image, path):
    """Writes an image, or another form of it. Returns the exit code."""
    lost = sum(losses(image))
    if path.endswith(".npuprof"):
        with whole_file(path) as file:
            put(image, file)
        code = 0
    else:
        with tempfile.NamedTemporaryFile(prefix="npuprof-", suffix=".npuprof") as file:
            put(image, file)
            code = convert_image(file.name, path)
    print(f"{path}: written{f'; {lost} records were lost' if lost else ''}", file=sys.stderr)
    return code


def put(image, file):
    """Writes an image to a file. What of the arena was never used is a hole."""
    file.write(image)
    file.flush()
    if os.path.isfile(file.name):
        file.truncate(read_header(image).arena_bytes)
