# SPDX-License-Identifier: MIT
"""Which layer of the network each command of a device's command stream belongs to, as a table says:

    0 conv1                 commands 0 to 3 are of layer conv1
    4 conv2                 command 4 and those after it are of conv2
    [decoder]               from here on: in executions of this name
    0 attention

A command is a device span with instruction_index. The text comes from a file, or from the trace's metadata
under the key `layers`."""

import bisect
import re

from ..base.contract import DEVICE, NULL
from ..base.files import read_bytes
from ..base.messages import Refused
from ..base.strict_json import shown

LINE = re.compile(r"(?P<index>[0-9]{1,18})\s+(?P<layer>\S.*)|\[(?P<program>.+)\]")


class Layers:
    """The tables of a text. tables: name of an execution, "" for any other -> (first commands, layers)"""

    def __init__(self, text, where):
        self.tables, program = {}, ""
        for number, line in enumerate(text.splitlines(), 1):
            line = line.strip()
            found = LINE.fullmatch(line)
            if not line or line.startswith("#"):
                continue
            if not found:
                raise Refused(f"{where}:{number}: {shown(line)}: a line is the number of a layer's first "
                              "command and the layer's name, or [the name of an execution]")
            if found["program"]:
                program = found["program"]
                continue
            firsts, names = self.tables.setdefault(program, ([], []))
            if firsts and firsts[-1] >= int(found["index"]):
                raise Refused(f"{where}:{number}: command {found['index']} comes after command {firsts[-1]}: "
                              "put the lines in the order of the commands")
            firsts.append(int(found["index"]))
            names.append(found["layer"])

    def of(self, trace, row):
        """The layer of a span; None: it is no command, or of none."""
        column = trace.index.get("instruction_index")
        if column is None or column[row] == NULL or trace.kind[row] != DEVICE:
            return None
        parent = trace.parents[row] if self.tables.keys() - {""} else -1
        named = self.tables.get(trace.text(parent)) if parent >= 0 else None
        firsts, names = named or self.tables.get("", ((), ()))
        n = bisect.bisect_right(firsts, column[row]) - 1
        return names[n] if n >= 0 else None


def layers_of(trace, path=None):
    """The Layers of a file, else of the trace's own metadata; None: nothing says them."""
    if path:
        return Layers(read_bytes(path).decode("utf-8", "replace"), path)
    text = (trace.metadata.get("user") or {}).get("layers")
    return Layers(text, f"{trace.path}: metadata layers") if text else None
