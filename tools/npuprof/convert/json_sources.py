# SPDX-License-Identifier: MIT
"""Says in a JSON trace where spans and instants are recorded: an argument "source", file and line, of each
whose name and category come from one place of the code. The library writes these places once, in the
metadata. Why not with each event: they would take up to a third of the file."""

import json
import re

from ..base.messages import Refused
from ..base.metadata import sources
from ..base.strict_json import json_text
from ..read import load
from ..read.own_layout import HEAD, LABEL, STRING

EVENT = re.compile(rb'\{"ph":"[Xi]","name":(' + STRING + rb'(?:,"cat":' + STRING + rb')?+)')
ARGS, DERIVED = b',"args":{', b',"derived":true,'


def write_with_sources(path, file):
    """Writes to a binary file. Returns the trace."""
    trace = load(path, progress=True)
    source = trace._file
    if trace.format != "json" or trace.tool or source is None:
        raise Refused(f"{path}: --source is for traces of npuprof: images and JSON")
    source.seek(0)
    if source.readline() != HEAD + b"\n":
        raise Refused(f"{path}: --source needs the lines that npuprof wrote; another tool wrote these")
    file.write(HEAD + b"\n")
    said = {}                          # label -> argument, or None
    places = {key: next(iter(of)) for key, of in sources(trace.metadata).items() if len(of) == 1}
    for line in source:
        event = EVENT.match(line) if DERIVED not in line else None
        if event and event[1] not in said:
            name, cat = LABEL.fullmatch(event[1]).groups()
            place = places.get((json.loads(name), json.loads(cat) if cat else ""))
            said[event[1]] = place and b'"source":' + json_text(place).encode()
        file.write(with_argument(line, said[event[1]]) if event and said[event[1]] else line)
    return trace


def with_argument(line, argument):
    """The line of an event with one more argument, unless it has one of that name. No name looks like ARGS:
    quotes inside a text are escaped."""
    before, args, behind = line.partition(ARGS)
    if not args:
        end = line.rindex(b"}")
        return line[:end] + ARGS + argument + b"}" + line[end:]
    if b'"source":' in behind and "source" in json.loads(line.rstrip(b",\n"))["args"]:
        return line
    return before + args + argument + b"," * (not behind.startswith(b"}")) + behind
