# SPDX-License-Identifier: MIT
"""ExecuTorch's ETDump: a FlatBuffer of runs, with the identifier ED00 and mostly with a size before it.

`Method::execute` is an inference, `native_call_NAME` a host operator whose index is that of its instruction.
Events of a delegate stand on a track of their own: their times are those of its backend, in its own unit.
"""

from decimal import Decimal
from struct import unpack_from

from ...base.contract import INFERENCE
from ..track_names import AsyncId

NAME = "ExecuTorch"
MARK = b"ED00"
TICKS = ("times are ticks of the target's clock, taken as ns: ETDump does not say how long a tick is; if "
         "they are cycles, only shares and counts are right")
DELEGATE = ("{} events of delegates have the times of their backends, which may be of another clock and in "
            "another unit: compare them only with each other")


def is_file(head):
    return MARK in (head[4:8], head[8:12])


class Table:
    """A table of a FlatBuffer. Fields go by number; one that is not there has its default."""

    def __init__(self, data, at):
        self.data, self.at = data, at
        self.fields = at - unpack_from("<i", data, at)[0]
        if not 0 <= self.fields <= len(data) - 4 or at < 4:
            raise ValueError("a table outside of the file")

    def place(self, n):
        """Where a field is; 0: nowhere."""
        size = unpack_from("<H", self.data, self.fields)[0]
        offset = unpack_from("<H", self.data, self.fields + 4 + 2 * n)[0] if 6 + 2 * n <= size else 0
        return offset and self.at + offset

    def number(self, n, form, default):
        place = self.place(n)
        return unpack_from(form, self.data, place)[0] if place else default

    def target(self, n):
        """What the offset in a field points to; 0: nothing."""
        place = self.place(n)
        return place and place + unpack_from("<I", self.data, place)[0]

    def table(self, n):
        return Table(self.data, at) if (at := self.target(n)) else None

    def text(self, n):
        if not (at := self.target(n)):
            return None
        size = unpack_from("<I", self.data, at)[0]
        if at + 4 + size > len(self.data):
            raise ValueError("a text outside of the file")
        return self.data[at + 4:at + 4 + size].decode("utf-8", "replace")

    def tables(self, n):
        at = self.target(n)
        size = unpack_from("<I", self.data, at)[0] if at else 0
        if size > len(self.data) // 4:
            raise ValueError("a vector outside of the file")
        for k in range(size):
            place = at + 4 + 4 * k
            yield Table(self.data, place + unpack_from("<I", self.data, place)[0])


def read(data, reader):
    data = data[4:] if data[8:12] == MARK else data
    dump, trace, delegates = Table(data, unpack_from("<I", data)[0]), reader.trace, 0
    for run, block in enumerate(dump.tables(1)):
        for event in block.tables(3):
            for n, what in (1, "allocation"), (2, "debug event"):
                if event.place(n):
                    trace.left_out[what] += 1
            profile = event.table(0)
            if profile:
                delegates += read_profile(profile, run, block.text(0), reader)
    trace.notes.append(TICKS)
    if delegates:
        trace.notes.append(DELEGATE.format(delegates))


def read_profile(profile, run, block, reader):
    """Gives one event to the reader. Returns whether a delegate made it."""
    name, instruction = profile.text(0) or "", profile.number(2, "<i", -1)
    number, text = profile.number(3, "<i", -1), profile.text(4)
    start, end = profile.number(6, "<Q", 0), profile.number(7, "<Q", 0)
    is_delegate = number != -1 or text is not None
    args = {"run": run, "block": block, "instruction_id": instruction, "delegate_id": text or number}
    args = {key: value for key, value in args.items() if value not in (None, -1)}
    if name.startswith("native_call_") and instruction >= 0:
        args["operator_index"] = instruction
    if end < start:
        reader.trace.left_out["event that ends before its start"] += 1
        return False
    chain = profile.number(1, "<i", 0)
    reader.track_names[1, chain + 1] = {"thread_name": f"chain {chain}"}
    reader.event({"ph": "X", "name": name or str(text or number), "pid": 1, "ts": Decimal(start) / 1000,
                  "dur": Decimal(end - start) / 1000, "args": args, "tid": chain + 1,
                  "cat": "delegate" if is_delegate else "executorch"}, 0)
    if is_delegate:
        reader.trace.track[-1] = reader.tracks[1, AsyncId("delegate")]
    elif name == "Method::execute":
        reader.trace.kind[-1] = INFERENCE
    return is_delegate
