# SPDX-License-Identifier: MIT
"""Traces that other tools wrote, in the same columns: one module for each tool.

A module has NAME; `is_of(places)`, whether a Chrome JSON is its tool's; and `place(places)`, which says by
the tool's own conventions what its spans are: lanes of devices, jobs, submissions, inferences. A tool with a
file of its own has `is_file(head)` and `read(data, reader)` instead, which gives Chrome events to the reader.

What has no place in a Trace is counted in trace.left_out, by what it is. trace.tool is the name of the tool.
trace.notes are sentences for the doctor: what the tool's times are worth, and what its trace cannot say.
"""

import struct

from ...base.messages import Refused
from ...base.strict_json import NotJson
from . import etdump, iree, kineto, onnx, xprof
from .places import Places

TOOLS = kineto, onnx, xprof
FILES = iree, etdump
OTHER = "another tool"
PLAIN = {"deviceProperties", "distributedInfo", "metadata", "otherData", "clientInfo", "traceEvents"}


def place(reader, top):
    """Called when a foreign trace is read. top: the members of the file beside its events."""
    places = Places(reader, top)
    for key in top.keys() - PLAIN:
        value = top[key].get("events") if type(top[key]) is dict else top[key]
        items = sum(type(item) is dict for item in value) if type(value) is list else 0
        if items or type(value) is str and value.count("\n"):
            what = "item" if items else "line"
            reader.trace.left_out[f"{str(key)[:40]} {what}"] += items or len(value.splitlines())
    tool = reader.tool or next((tool for tool in TOOLS if tool.is_of(places)), None)
    reader.trace.tool = tool.NAME if tool else OTHER
    if tool in TOOLS:
        tool.place(places)
    places.finish()


def file_of(head):
    """The tool whose own file begins like this; None: it is no such file."""
    return next((tool for tool in FILES if tool.is_file(head)), None)


def read_file(tool, path, file, reader):
    """Fills the reader's Trace from a tool's own file."""
    reader.tool, reader.trace.format = tool, "json"
    with file:
        data = file.read()
    try:
        tool.read(data, reader)
        reader.finish({})
    except (ArithmeticError, LookupError, NotJson, ValueError, struct.error) as error:
        raise Refused(f"{path}: not a whole file of {tool.NAME}: {error}") from None
