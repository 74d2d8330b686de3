# SPDX-License-Identifier: MIT
"""What an SVD file describes."""

from .fields import Unique
from .reader import Reader
from .tree import Document, members_of, own_name, parse, shown


class Device:
    """An SVD file: name, big_endian, and peripherals(names). `warnings`: the flaws that were not refused."""

    def __init__(self, data, file, strict=False):
        self.file, self.data = file, data
        document = Document(file, strict)
        self.root = parse(data, document)
        self.name = self.root.name()
        cpu = self.root.child("cpu")
        self.big_endian = cpu is not None and cpu.get("endian") == "big"
        self.reader = Reader(self.root)
        self.warnings = document.warnings

    def peripherals(self, names=()):
        """The peripherals of these names; all, without names. Others are read only if these derive from
        them."""
        known = self.reader.derivation.members(self.root)
        if not known:
            self.root.refuse("the device has no <peripheral>, add one")
        wanted = members_of(self.root)
        if names:
            for name in names:
                if name not in known:
                    others = [own_name(node) for node in wanted]
                    self.root.refuse(f"there is no peripheral {shown(name)}, "
                                     f"use one of {', '.join(others[:20])}"
                                     + (", ..." if len(others) > 20 else ""))
            wanted = [node for node in wanted if any(known[name] is node for name in names)]
        # Why addressUnitBits is ignored: addresses are in bytes in every file seen, even if it says 32
        # (ESP32-C3).
        inherited = self.reader.properties(self.root, {})
        found, seen = [], Unique("peripheral")
        for node in wanted:
            for peripheral in self.reader.peripheral(node, inherited):
                peripheral.name += seen.ending(node, peripheral.name)
                for dim in peripheral.dims:
                    dim.path = (peripheral.name,)
                found.append(peripheral)
        return found
