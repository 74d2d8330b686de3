# SPDX-License-Identifier: MIT
"""Reads Chrome JSON: npuprof's own layout by pattern; any other layout strictly, event by event."""

import json
import re

from ..base.messages import Refused
from ..base.numbers import BOUNDED
from ..base.strict_json import NotJson, decode, read_events, read_trace, refuse_halves
from .events import BadEvent
from .own_layout import BLOCK, HEAD
from .own_lines import LineReader
from .trace import Trace


# A part of a word, a number or an escape, and nothing behind it; or a comma stands before the end.
CUT = re.compile(r'[-+.\\\w"]*\s*|\]\s*')


def read_json(path, file, bar):
    trace = Trace(path)
    trace.format = "json"
    trace._file = file
    reader = LineReader(trace)
    top = None
    try:
        if file.readline() == HEAD + b"\n":
            reader.own = True
            top = read_own_lines(path, file, reader, bar)
    except (ValueError, RecursionError, NotJson):
        top = None
    if top is None:
        trace = Trace(path)
        trace.format = "json"
        trace._file = file
        reader = LineReader(trace)
        top = read_any_json(path, file, reader)
    reader.finish(top)
    if not reader.own and not len(trace) and not trace.counters and not trace.instants:
        left = trace.left_out_text()
        raise Refused(f"{path}:1: not a trace: no event in traceEvents can be read{left and f' ({left})'}")
    return trace


def read_own_lines(path, file, reader, bar):
    """Reads events in the layout of npuprof's own writer. Returns the other members; None: it is another
    layout."""
    offset, rest = file.tell(), b""
    while True:
        data = file.read(BLOCK)
        block = rest + data
        end = block.find(b"\n]")
        cut = end + 1 or block.rfind(b"\n", 0, -1) + 1
        # The last event has no comma behind it. It gets one here, so that it is a line like the others.
        if end >= 0:
            if not reader.block(offset, block[:end] + b",\n"):
                return None
            tail = block[cut + 1:] + file.read()
            return json.loads(b"{" + tail[tail.startswith(b","):])
        if not data or len(block) > 1 << 26 or (cut and not reader.block(offset, block[:cut])):
            return None
        offset += cut
        rest = block[cut:]
        if bar:
            bar.at(offset)


def read_array(text, reader):
    """Reads events without an object around them. Why the end may miss: Chrome's format says so, and programs
    that crash use it."""
    refuse_halves(text)
    begun, rest = 0, len(text)

    def event(position, event):
        nonlocal begun
        reader.event(event, position)
        begun = position
    try:
        rest = read_events(text, text.index("["), event, BOUNDED)
    except NotJson as error:
        # Of a part of a value nothing follows it: else the text is damaged, and not cut off.
        ends = CUT.fullmatch(text, error.position) or str(error).startswith("Unterminated")
        if isinstance(error, BadEvent) or not begun or not ends:
            raise
        if text[decode(text, begun, BOUNDED)[1]:].strip(" \t\r\n,]"):
            reader.trace.left_out["cut off event"] += 1
    if text[rest:].strip(" \t\r\n"):
        raise NotJson(rest, "data behind the end")


def read_any_json(path, file, reader):
    """Reads any layout strictly, one event at a time. Returns the other members."""
    file.seek(0)
    data = file.read()
    mark = 3 if data.startswith(b"\xef\xbb\xbf") else 0      # a byte order mark
    try:
        text = data[mark:].decode() if mark else data.decode()
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, mark + error.start) + 1
        raise Refused(f"{path}:{line}: byte {mark + error.start}: not strict JSON: invalid UTF-8") from None
    del data
    reader.own = '"npuprof"' in text
    try:
        if text.lstrip().startswith("["):
            read_array(text, reader)
            top = {"traceEvents": []}
        else:
            top = read_trace(text, lambda position, event: reader.event(event, position), BOUNDED)
    except NotJson as error:
        line = text.count("\n", 0, error.position) + 1
        byte = error.position if text.isascii() else len(text[:error.position].encode())
        if error.position >= len(text.rstrip()) or str(error).startswith("Unterminated"):
            what = "the file ends too early, was it cut off?"
        else:
            what = error if isinstance(error, BadEvent) else f"not strict JSON: {error}"
        raise Refused(f"{path}:{line}: byte {mark + byte}: {what}") from None
    if top is None or top.get("traceEvents") != []:
        raise Refused(f"{path}:1: not a trace: no top-level object with an array traceEvents")
    return top
