# SPDX-License-Identifier: MIT
"""What the user reads on a terminal: refusals, progress, and texts of traces without control characters."""

import sys
import time

# Characters that a terminal acts on: control characters except newline and tab, bidi marks, line separators.
HARMFUL = {*range(0x20), *range(0x7F, 0xA0), 0x61C, 0x200E, 0x200F, *range(0x2028, 0x202F),
           *range(0x2066, 0x206A)} - {ord("\t"), ord("\n")}
HARMLESS = dict.fromkeys(HARMFUL, "?")


class Harmless:
    """A text stream that replaces harmful characters by "?". Why: names in a trace come from strangers.

    `stream` is the stream beneath; what npuprof.py itself sends as a terminal command goes there."""

    def __init__(self, stream):
        self.stream = getattr(stream, "stream", stream)

    def write(self, text):
        return self.stream.write(text.translate(HARMLESS))

    def writelines(self, lines):
        self.stream.writelines(line.translate(HARMLESS) for line in lines)

    def __getattr__(self, name):
        return getattr(self.stream, name)


def show_progress(text):
    """Overwrites the current line of the terminal."""
    print(f"\r\033[K{text}", end="", file=getattr(sys.stderr, "stream", sys.stderr), flush=True)


class Refused(Exception):
    """An input or output cannot be used. Its text is one line: `file:line: what, where, what to do`."""


class Progress:
    """Shows a percentage on stderr: only on a terminal, and only for what takes longer than a second."""

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
