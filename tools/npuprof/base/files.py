# SPDX-License-Identifier: MIT
"""What the subcommands of npuprof.py share: the refusal, progress, and files read and written whole."""

import contextlib
import os
import sys
import time


# What a terminal obeys or turns the text around by: control characters but the line's end and the tabulator, bidi marks, line separators.
HARMFUL = {*range(0x20), *range(0x7F, 0xA0), 0x61C, 0x200E, 0x200F, *range(0x2028, 0x202F), *range(0x2066, 0x206A)} - {0x09, 0x0A}
HARMLESS = dict.fromkeys(HARMFUL, "?")


class Harmless:
    """A text stream on which texts of traces and descriptions can do no harm. `stream` takes what is meant as a command."""

    def __init__(self, stream):
        self.stream = getattr(stream, "stream", stream)

    def write(self, text):
        return self.stream.write(text.translate(HARMLESS))

    def writelines(self, lines):
        self.stream.writelines(line.translate(HARMLESS) for line in lines)

    def __getattr__(self, name):
        return getattr(self.stream, name)


def show_progress(text):
    """Writes over the current line of the terminal."""
    print(f"\r\033[K{text}", end="", file=getattr(sys.stderr, "stream", sys.stderr), flush=True)


class Refused(Exception):
    """The input or output cannot be used. The text is one line: `file:line: what, where, what to do`."""


class Progress:
    """Says on stderr how far something is, once it takes longer than a second, and only to a terminal."""

    def __init__(self, what, total):
        self.what, self.total = what, max(total, 1)
        self.shown = False
        self.next = time.monotonic() + 1 if sys.stderr.isatty() else float("inf")

    def at(self, done):
        now = time.monotonic()
        if now >= self.next:
            self.next, self.shown = now + 0.2, True
            show_progress(f"{self.what}: {min(100, 100 * done // self.total)} %")

    def done(self):
        if self.shown:
            show_progress("")


def read_bytes(path):
    try:
        with open(path, "rb") as file:
            return file.read()
    except OSError as error:
        raise Refused(f"{path}: cannot be read: {error.strerror}") from None


LOST_SPANS = ("unplaced_spans", "ring_lost")    # of a clock_sync


def doubts(about):
    """Sentences on what a trace's metadata (of npuprof) says was lost, has no place or contradicts itself. Takes any JSON."""
    found = []
    lost = about.get("lost")
    lost = {key: count for key, count in lost.items() if isinstance(count, int) and count > 0} if isinstance(lost, dict) else {}
    if lost:
        found.append("lost: " + ", ".join(f"{count} {key}" for key, count in lost.items()))
    for key, what in (("damaged_places", "damaged places: what was there is missing"), ("left_out", "left out: the target cannot write them")):
        if isinstance(about.get(key), int) and about[key] > 0:
            found.append(f"{about[key]} {what}")
    clock = about.get("unused_environment", {})
    if isinstance(clock, dict) and isinstance(clock.get("NPUPROF_NOW"), str):
        found.append(f"clock: {clock['NPUPROF_NOW'][:120]}")
    devices = about.get("devices")
    for device in devices if isinstance(devices, list) else ():
        sync = device.get("clock_sync") if isinstance(device, dict) else None
        for key in ("causality_violations", *LOST_SPANS) if isinstance(sync, dict) else ():
            if isinstance(sync.get(key), int) and sync[key] > 0:
                found.append(f"device {str(device.get('name'))[:60]!a}: {sync[key]} {key}")
    return found


def check_output(path, endings, *inputs):
    """Refuses to write over one of the inputs (None: none), or a form that the name does not say. To be called before all work."""
    for other in inputs:
        try:
            if other is not None and os.path.samefile(path, other):
                raise Refused(f"{path}: is the input {other}, write to another file")
        except OSError:
            pass
    special = os.path.exists(path) and not os.path.isfile(path) or path.startswith("/dev/")
    if not special and not path.lower().endswith(endings):
        raise Refused(f"{path}: unknown extension, write {' or '.join(endings)}")


@contextlib.contextmanager
def whole_file(path):
    """A file to write bytes to: a temporary one that gets its name when the block ends well, so that a failure leaves the old
    file and no half one. What is not a regular file (/dev/stdout, a fifo) is written in place."""
    target = os.path.realpath(path)
    in_place = os.path.exists(target) and not os.path.isfile(target)
    written = target if in_place else f"{target}.{os.getpid()}.tmp"
    try:
        with open(written, "wb") as file:
            yield file
        if not in_place:
            os.replace(written, target)
    except BaseException as error:
        if not in_place and os.path.exists(written):
            os.unlink(written)
        if isinstance(error, OSError) and not isinstance(error, BrokenPipeError):
            raise Refused(f"{path}: cannot be written: {error.strerror}") from None
        raise


def write_whole(path, data):
    """Writes the file in one go, or not at all."""
    with whole_file(path) as file:
        file.write(data)
