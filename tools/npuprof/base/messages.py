# SPDX-License-Identifier: MIT
"""What the user reads on a terminal: the refusal, progress, and texts of traces made harmless."""

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
