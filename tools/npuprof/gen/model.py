# SPDX-License-Identifier: MIT
"""What a device description says, whatever it was written in: registers, fields, records, operators.

`table` is the place in the input: it has refuse(sentence, *key) and line(*key).
"""

import dataclasses
import re
from dataclasses import dataclass

WORD_WIDTHS = (8, 16, 32, 64)
UINT32_MAX = 2**32 - 1
UINT64_MAX = 2**64 - 1


@dataclass(eq=False)
class Dim:
    """One level of an array: of a register, of a cluster around it, of a field."""
    count: int
    stride: int            # bytes; bits for a field
    labels: list           # what may stand in the brackets of a path; None for 0, 1, 2 ...
    path: tuple            # of what is repeated
    table: object
    c_name: str = None     # given when the header is written

    def position(self, label):
        """Which element a label means; None for none."""
        if self.labels is not None:
            return self.labels.index(label) if label in self.labels else None
        return int(label) if re.fullmatch("[0-9]{1,9}", label) and int(label) < self.count else None

    def __str__(self):
        first, last = (self.labels[0], self.labels[-1]) if self.labels else (0, self.count - 1)
        return f"{'.'.join(self.path)}[{first} to {last}]"


@dataclass(eq=False)
class Field:
    name: str
    offset: int            # bytes into the record; 0 in a register
    width: int             # bits of the word
    lsb: int
    bits: int
    description: str
    values: dict           # enumerated values: name -> number
    table: object
    access: str = ""       # where it is not the register's
    dims: tuple = ()       # at most one

    @property
    def mask(self):
        return (2**self.bits - 1) << self.lsb

    @property
    def whole_mask(self):
        """The mask of all elements."""
        mask = 0
        for index in range(self.dims[0].count if self.dims else 1):
            mask |= self.mask << (index * self.dims[0].stride if index else 0)
        return mask


@dataclass(eq=False)
class Register:
    name: str              # with dots where it lies in clusters
    offset: int
    width: int             # bits
    access: str
    description: str
    fields: list
    table: object
    dims: tuple = ()       # arrays it lies in, the outermost first
    reset: int = None
    clears: bool = False       # reading changes it
    alternate: bool = False    # describes an address that is described elsewhere, too
    element_of: object = None  # the array this is one element of, and
    index: tuple = ()          # which element
    c_name: str = None     # given when the header is written

    @property
    def end(self):
        return self.offset + self.width // 8

    @property
    def whole_end(self):
        """The end of the last element."""
        return self.end + sum((dim.count - 1) * dim.stride for dim in self.dims)

    def element(self, index):
        offset = self.offset + sum(i * dim.stride for i, dim in zip(index, self.dims))
        return dataclasses.replace(self, offset=offset, dims=(), element_of=self, index=index)

    def c_offset(self, prefix):
        """C for its offset."""
        if self.element_of is None:
            return f"{prefix}_{self.c_name}_OFFSET"
        steps = [f"{i}u * {prefix}_{dim.c_name}_STRIDE"
                 for i, dim in zip(self.index, self.element_of.dims) if i]
        return " + ".join([f"{prefix}_{self.element_of.c_name}_OFFSET", *steps])


@dataclass(eq=False)
class Record:
    name: str
    bytes: int
    description: str
    fields: list
    table: object


@dataclass(eq=False)
class Operator:
    name: str              # of the enumerator
    code: int
    span_name: str
    table: object


@dataclass(eq=False)
class Peripheral:
    name: str
    base: int              # address of its first byte
    bytes: int
    description: str
    registers: list
    table: object
    dims: tuple = ()
    c_name: str = None


def overlaps(registers):
    """Yields pairs that share an address and may not, each in the order of `registers`, with every second
    register once. Alternates may, and one that is only read with one that is only written."""
    spans = []
    for order, register in enumerate(registers):
        if register.alternate:
            continue
        dims, length = list(register.dims), register.width // 8
        # Why: an array without gaps is one span, and may be long.
        while dims and dims[-1].stride == length:
            length *= dims.pop().count
        starts = [register.offset]
        for dim in dims:
            starts = [start + i * dim.stride for start in starts for i in range(dim.count)]
        spans += [(start, start + length, order) for start in starts]
    spans.sort()
    told = set()
    for hidden in ("wo", "ro"):
        reach, widest = -1, None       # the end of the span that goes farthest so far, and whose it is
        for start, end, order in spans:
            if registers[order].access == hidden:
                continue
            if start < reach:
                first, second = sorted((widest, order))
                if second not in told:
                    told.add(second)
                    yield registers[first], registers[second]
            # Why: one that is let pass hides no other pair
            if order not in told and (end > reach or widest in told):
                reach, widest = end, order
