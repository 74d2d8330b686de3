# SPDX-License-Identifier: MIT
"""Registers, clusters and peripherals."""

from ..model import UINT64_MAX, WORD_WIDTHS, Peripheral, Register, overlaps
from . import limits
from .fields import ACCESS, FieldReader, Unique, description
from .tree import members_of, own_name, shown


class Reader(FieldReader):
    """Reads the peripherals of one device.

    It does not check whether registers lie outside the address blocks, or peripherals share addresses. Why:
    vendors' files are full of both, mostly for good reasons."""

    def width(self, node, properties):
        """The width of a register in bits. None, with a warning, if no word has it."""
        size = properties.get("size", self.root.child("width"))
        if size is None:
            node.refuse("the register's size is nowhere, add <size> here or above")
        bits = size.own_number()
        width = next((width for width in WORD_WIDTHS if 0 < bits <= width), None)
        if width is None:
            node.slip(f"register {shown(own_name(node))} has size {bits}, it is left out; 8, 16, "
                      "32 and 64 can be read")
        elif width != bits:
            size.slip(f"size {bits} is no word, it is read as {width}")
        return width

    def register(self, node, inherited, base, path, dims, alternate, seen):
        """Yields the registers that a <register> stands for: one, or with <dim> several."""
        properties = self.properties(node, inherited)
        width = self.width(node, properties)
        if width is None:
            return
        access = properties["access"].choice(ACCESS, None) if "access" in properties else None
        reset = properties["resetValue"].own_number() if "resetValue" in properties else None
        if node.child("resetValue") is not None and reset >> width:
            node.child("resetValue").slip(f"resetValue {reset:#x} does not fit {width} bits, it is left out")
            reset = None
        clears = node.child("readAction") is not None
        offset = base + node.need("addressOffset").own_number()
        group = node.get("alternateGroup")
        alternate = alternate or group is not None or node.child("alternateRegister") is not None
        for name, shift, dim in self.copies(node):
            fields = self.fields(node, width, access or "")
            kinds = {field.access or "rw" for field in fields}
            own = access or (kinds.pop() if len(kinds) == 1 else "rw")
            for field in fields:
                field.access = "" if field.access == own else field.access
            full = ".".join((*path, name if not group else f"{name}_{group}"))
            full += seen.ending(node, full)
            if dim:
                dim.path = tuple(full.split("."))
            register = Register(full, offset + shift, width, own, description(node), fields, node,
                                (*dims, dim) if dim else dims,
                                None if reset is None else reset & (2**width - 1),
                                clears or any(f.table.child("readAction") is not None for f in fields),
                                alternate)
            self.check_place(register, dim)
            yield register

    def check_place(self, register, dim):
        """Checks a register's alignment and end, and counts its addresses against the limit."""
        node, step = register.table, register.width // 8
        for number, what in ((register.offset, "addressOffset"),
                             *((d.stride, "dimIncrement") for d in register.dims)):
            if number % step:
                node.slip(f"register {shown(register.name)} is misaligned ({what} {number:#x} is no "
                          f"multiple of {step})")
                break
        if register.whole_end > UINT64_MAX:
            node.refuse(f"register {shown(register.name)} ends above 2^64, correct its offset")
        spans = 1
        for d in register.dims:
            spans *= d.count
        self.spend(node, 0, spans // (dim.count if dim and dim.stride == step else 1))

    def registers(self, node, inherited, base=0, path=(), dims=(), alternate=False, depth=0):
        """All registers inside a peripheral or cluster, with those of nested clusters."""
        if depth > limits.DEPTH_MAX:
            node.refuse(f"clusters nested more than {limits.DEPTH_MAX} deep (does one derive from what it "
                        "lies in?), write it simpler")
        found, seen = [], Unique("register")
        for member in members_of(node):
            member = self.derivation.full(member)
            if member.tag == "register":
                found += self.register(member, inherited, base, path, dims, alternate, seen)
                continue
            properties = self.properties(member, inherited)
            offset = base + member.need("addressOffset").own_number()
            for name, shift, dim in self.copies(member):
                own_path = (*path, name + seen.ending(member, ".".join((*path, name))))
                if dim:
                    dim.path = own_path
                found += self.registers(member, properties, offset + shift, own_path,
                                        (*dims, dim) if dim else dims,
                                        alternate or member.child("alternateCluster") is not None, depth + 1)
        return found

    def pair_alternates(self, registers):
        """Marks both registers as alternates if one names the other in <alternateRegister>."""
        by_name = {}
        for register in registers:
            by_name.setdefault(own_name(register.table), []).append(register)
            by_name.setdefault(register.name, []).append(register)
        for register in registers:
            alternate = register.table.child("alternateRegister")
            if alternate is not None:
                if alternate.text not in by_name:
                    alternate.slip(f"alternateRegister {shown(alternate.text)} names no register here")
                for other in by_name.get(alternate.text, ()):
                    other.alternate = True

    def peripheral(self, node, inherited):
        """Yields the peripherals that a <peripheral> stands for: one, or with <dim> several."""
        node = self.derivation.full(node)
        base = node.need("baseAddress").own_number()
        blocks = [(block.need("offset").own_number(), block.need("size").own_number(), block)
                  for block in node.children if block.tag == "addressBlock"]
        for name, shift, dim in self.copies(node):
            registers = self.registers(node, self.properties(node, inherited))
            self.pair_alternates(registers)
            for first, second in overlaps(registers):
                where = f"register {shown(first.name)} on line {first.table.at}"
                where = "itself" if first is second else where
                second.table.slip(f"register {shown(second.name)} overlaps {where}: both stay "
                                  "(<alternateRegister> says that it is meant)")
                # Why: what is only a warning here must not be refused when roles are given.
                second.alternate = True
            size = max([offset + size for offset, size, _ in blocks]
                       + [register.whole_end for register in registers] + [0])
            if base + shift + size + ((dim.count - 1) * dim.stride if dim else 0) > UINT64_MAX:
                node.refuse(f"peripheral {shown(name)} ends above 2^64, correct baseAddress or the offsets")
            if dim:
                dim.path = (name,)
            yield Peripheral(name, base + shift, size, description(node), registers, node,
                             (dim,) if dim else ())
