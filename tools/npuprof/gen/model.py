# SPDX-License-Identifier: MIT
"""What a description says of a device, from TOML or SVD: registers, fields, records, operators.

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
    labels: list           # the names of the elements, for [index] in a path; None for 0, 1, 2 ...
    path: tuple            # names, from the outermost cluster to what is repeated
    table: object
    c_name: str = None     # set when the header is written

    def position(self, label):
        """The number of the element that a label names; None: there is none."""
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
    access: str = ""       # if it differs from the register's
    dims: tuple = ()       # a Dim if the field is an array
    big_endian: bool = False   # of the record
    alternate: bool = False    # another reading of bits that a field before it has

    def mask_in(self, record_bytes):
        """The field's bits in its record, if that is read as one integer in the device's byte order."""
        low_byte = record_bytes - self.offset - self.width // 8 if self.big_endian else self.offset
        return self.mask << 8 * low_byte

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
    name: str              # with its clusters: A.B.NAME
    offset: int
    width: int             # bits
    access: str
    description: str
    fields: list
    table: object
    dims: tuple = ()       # the arrays around it, the outermost first
    reset: int = None
    clears: bool = False       # reading changes it
    alternate: bool = False    # another register has the same address
    element_of: object = None  # the register whose element this is
    index: tuple = ()          # which element that is
    c_name: str = None     # set when the header is written

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
        """Its offset as C."""
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
class Value:
    """A value of an entry: one field of its record, or two, the low part first."""
    parts: list

    @property
    def bits(self):
        return sum(part.bits for part in self.parts)

    @property
    def name(self):
        return "+".join(part.name for part in self.parts)

    @property
    def width(self):
        """Bits of the widest load."""
        return max(part.width for part in self.parts)

    @property
    def values(self):
        """The names of its values, if it has one part."""
        return self.parts[0].values if len(self.parts) == 1 else {}


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
    """Yields pairs of registers that overlap, each second register once.

    Alternates may overlap, and so may a register that is only read with one that is only written."""
    spans = []
    for order, register in enumerate(registers):
        if register.alternate:
            continue
        dims, length = list(register.dims), register.width // 8
        # Why: an array without gaps is one span, however long.
        while dims and dims[-1].stride == length:
            length *= dims.pop().count
        starts = [register.offset]
        for dim in dims:
            starts = [start + i * dim.stride for start in starts for i in range(dim.count)]
        spans += [(start, start + length, order) for start in starts]
    spans.sort()
    told = set()
    for hidden in ("wo", "ro"):
        reach, widest = -1, None       # the largest end so far, and its register
        for start, end, order in spans:
            if registers[order].access == hidden:
                continue
            if start < reach:
                first, second = sorted((widest, order))
                if second not in told:
                    told.add(second)
                    yield registers[first], registers[second]
            # Why the second test: a pair that was told must not hide another one.
            if order not in told and (end > reach or widest in told):
                reach, widest = end, order
