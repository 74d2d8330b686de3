# SPDX-License-Identifier: MIT
"""Writes the self times of a trace by call path as folded text, which flamegraph.pl, inferno, speedscope and
others draw: a line for each path, its names with semicolons between, a space and ns."""

from ..base.messages import HARMLESS
from ..tables.call_paths import CallPaths

ONE_LINE = HARMLESS | {ord(c): " " for c in "\r\n\t"}


def write_folded(trace, file):
    """Writes to a binary file. Paths without time of their own are left out."""
    paths = CallPaths(trace)
    lines = {}
    for text, ns in zip(paths.texts(), paths.own):
        text = text.translate(ONE_LINE)
        lines[text] = lines.get(text, 0) + ns
    for text, ns in sorted(lines.items()):
        if ns > 0:
            file.write(f"{text} {ns}\n".encode("utf-8", "replace"))
