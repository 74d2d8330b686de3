# SPDX-License-Identifier: MIT
"""What the user reads on a terminal: refusals, progress, and texts of traces without control characters."""

import contextlib
import difflib
import os
import re
import sys
import time

# Characters that a terminal acts on: control characters except newline and tab, bidi marks, line separators.
HARMFUL = {*range(0x20), *range(0x7F, 0xA0), 0x61C, 0x200E, 0x200F, *range(0x2028, 0x202F),
           *range(0x2066, 0x206A)} - {ord("\t"), ord("\n")}
HARMLESS = dict.fromkeys(HARMFUL, "?")


FEW = 9                     # so many words a sentence lists
# Where a colour begins and ends in a text of npuprof: characters that no text may have. On a terminal they
# become its commands, elsewhere nothing.
RED, YELLOW, GREEN, BOLD, PLAIN = map(chr, range(0xFDD0, 0xFDD5))
COLOURS = {ord(mark): f"\033[{code}m" for mark, code in
           ((RED, 31), (YELLOW, 33), (GREEN, 32), (BOLD, 1), (PLAIN, 0))}
MARKS_OF = {"fault": RED, "FAULT": RED, "warning": YELLOW, "ok": GREEN}
WORD = re.compile(r"(?<= )(?:FAULT|fault|warning)(?=: )|(?<=: )ok(?=,|$)")


class Refused(Exception):
    """An input or output cannot be used. Its text is one line: `file:line: what, where, what to do`."""


def meant(word, known):
    """The end of a sentence about an unknown word."""
    near = difflib.get_close_matches(str(word).lower(), known := [str(k) for k in known], 2, 0.6)
    if near and not near[0].isdigit():
        return f": did you mean {' or '.join(near)}?"
    return f": one of {', '.join(known)}" if len(known) <= FEW else ""


def in_colour():
    return getattr(sys.stdout, "colour", False)


def coloured(line):
    """The line, for stdout, with its first word that says how good or bad this is in a colour."""
    return WORD.sub(lambda m: MARKS_OF[m[0]] + m[0] + PLAIN, line, count=1) if in_colour() else line


def bold(line):
    return BOLD + line + PLAIN if in_colour() else line


def tell(line):
    print(coloured(line))


def tell_left_out(path, trace):
    """Says on stderr what of a trace has no place in other forms."""
    if trace.left_out:
        print(f"{path}: events without a place in other forms are left out: {trace.left_out_text()}",
              file=sys.stderr)


def takes_colour(stream):
    """Whether to use colours there: on a terminal, unless NO_COLOR is set (see no-color.org)."""
    return stream.isatty() and not os.environ.get("NO_COLOR") and os.environ.get("TERM") != "dumb"


class Harmless:
    """A text stream that replaces harmful characters by "?". Why: names in a trace come from strangers.

    `stream` is the stream beneath; what npuprof itself sends as a terminal command goes there."""

    def __init__(self, stream):
        self.stream = getattr(stream, "stream", stream)
        self.colour = takes_colour(self.stream)
        self.table = HARMLESS | COLOURS if self.colour else HARMLESS

    def write(self, text):
        with self.writing():
            return self.stream.write(text.translate(self.table))

    def writelines(self, lines):
        with self.writing():
            self.stream.writelines(line.translate(self.table) for line in lines)

    def flush(self):
        with self.writing():
            self.stream.flush()

    @contextlib.contextmanager
    def writing(self):
        """An error of the system is a sentence, as with every other output."""
        try:
            yield
        except BrokenPipeError:
            raise
        except OSError as error:
            name = "standard error" if self.stream.name == "<stderr>" else "standard output"
            raise Refused(f"{name}: cannot be written: {error.strerror or error}") from None

    def __getattr__(self, name):
        return getattr(self.stream, name)


def show_progress(text):
    """Overwrites the current line of the terminal."""
    print(f"\r\033[K{text}", end="", file=getattr(sys.stderr, "stream", sys.stderr), flush=True)


def time_left(seconds):
    """The estimate behind a percentage; none below a second."""
    minutes, rest = divmod(round(seconds), 60)
    return "" if not minutes and not rest else f", {minutes} min {rest} s left" if minutes else \
        f", {rest} s left"


class Progress:
    """Shows a percentage and the time left on stderr: only on a terminal, and only after two seconds."""

    def __init__(self, what, total):
        self.what, self.total = what, max(total, 1)
        self.shown, self.begun = False, time.monotonic()
        self.next = self.begun + 2 if sys.stderr.isatty() else float("inf")

    def at(self, done):
        now = time.monotonic()
        if now >= self.next:
            self.next, self.shown = now + 0.2, True
            left = (now - self.begun) * (self.total - done) / done if 0 < done <= self.total else 0
            show_progress(f"{self.what}: {min(100, 100 * done // self.total)} %" + time_left(left))

    def done(self):
        if self.shown:
            show_progress("")
