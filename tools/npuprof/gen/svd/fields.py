# SPDX-License-Identifier: MIT
"""Fields and their enumerated values."""

import itertools
import re

from ..model import Dim, Field
from . import limits
from .derived import Derivation, dim_of
from .tree import PROPERTIES, members_of, own_name, shown

ACCESS = {"read-only": "ro", "write-only": "wo", "read-write": "rw", "writeOnce": "wo",
          "read-writeOnce": "rw"}
USAGE = {"read": ("read",), "write": ("write",), "read-write": ("read", "write")}


def description(node):
    """The description on one line, cut at a word."""
    text = " ".join(node.get("description", "").replace("\\n", " ").split())
    if len(text) > limits.DESCRIPTION_MAX:
        text = text[:limits.DESCRIPTION_MAX].rpartition(" ")[0] + " ..."
    return text


class Unique:
    """The names of one kind in one place. A name that comes again gets a number."""

    def __init__(self, what):
        self.what, self.first, self.repeats = what, {}, {}

    def ending(self, node, name):
        """What makes `name` unique when appended: nothing, or _2, _3, ..."""
        ending = ""
        while name + ending in self.first:
            self.repeats[name] = self.repeats.get(name, 1) + 1
            ending = f"_{self.repeats[name]}"
        if ending:
            node.slip(f"duplicate {self.what} name {shown(name)}, first on line {self.first[name].at}, "
                      f"this one is {shown(name + ending)}")
        self.first[name + ending] = node
        return ending


class FieldReader:
    """Reads fields. `items` and `spans` are what is left of the limits for the whole file."""

    def __init__(self, root):
        self.root, self.derivation = root, Derivation(root)
        self.items, self.spans = limits.ITEMS_MAX, limits.SPANS_MAX

    def spend(self, node, items=1, spans=0):
        self.items -= items
        self.spans -= spans
        if self.items < 0 or self.spans < 0:
            node.refuse(f"with derivedFrom, lists and arrays this device has more than {limits.ITEMS_MAX} "
                        f"parts or {limits.SPANS_MAX} addresses, read one peripheral or split the file")

    def properties(self, node, inherited):
        """size, access and resetValue as name -> node. A register inherits them from what is around it."""
        return inherited | {tag: child for tag in PROPERTIES if (child := node.child(tag)) is not None}

    def copies(self, node):
        """Yields (name, offset, dim or None) for each element that a node stands for: one, or with <dim>
        several."""
        name = node.name()
        dim = dim_of(node)
        if dim is None:
            self.spend(node)
            yield name, 0, None
            return
        count, increment, labels = dim
        if name.endswith("[%s]"):
            self.spend(node, len(labels or [0]))
            yield name[:-4], 0, Dim(count, increment, labels, (), node)
        else:
            self.spend(node, count)
            for i, label in zip(range(count), labels or map(str, itertools.count())):
                yield name.replace("%s", label), i * increment, None

    def bit_range(self, node):
        """(lsb, bits), in any of the three notations. None, with a warning, if they make no range."""
        field = f"field {shown(own_name(node))}"
        used = [notation for notation in (("bitRange",), ("lsb", "msb"), ("bitOffset", "bitWidth"))
                if any(node.child(tag) is not None for tag in notation)]
        if len(used) != 1:
            node.slip(f"{field} has {len(used) or 'no'} bit ranges, it is left out; "
                      "one of bitRange, lsb and msb, or bitOffset and bitWidth makes one")
            return None
        if used[0] == ("bitRange",):
            match = re.fullmatch(r"\[\s*([0-9]{1,3})\s*:\s*([0-9]{1,3})\s*\]", node.get("bitRange"))
            if not match:
                node.child("bitRange").slip(f"bitRange {shown(node.get('bitRange'))} is not [msb:lsb], "
                                            f"{field} is left out")
                return None
            msb, lsb = int(match[1]), int(match[2])
        elif used[0] == ("lsb", "msb"):
            lsb, msb = node.need("lsb").own_number(), node.need("msb").own_number()
        else:
            lsb = node.need("bitOffset").own_number()
            msb = lsb + node.number("bitWidth", 1) - 1
        if msb < lsb:
            node.slip(f"{field} ends at bit {msb} below its start at bit {lsb}, it is left out")
            return None
        return lsb, msb - lsb + 1

    def value(self, node, bits):
        """(number, mask of the bits that count) of an enumeratedValue; None for a default without a value."""
        child = node.child("value")
        if child is None:
            if node.get("isDefault", "").lower() not in ("true", "1"):
                node.slip("<enumeratedValue> has neither <value> nor <isDefault>true, it is left out")
            return None
        care = 2**bits - 1
        if match := re.fullmatch(r"\+?(?:#|0[bB])([01xX]{1,80})", child.text):
            digits = match[1].lower()
            number = int(digits.replace("x", "0"), 2)
            care &= ~int(digits.replace("1", "0").replace("x", "1"), 2)
        elif re.fullmatch(r"\+?(0[xX][0-9a-fA-F]+|[0-9]+)", child.text):
            number = child.own_number()
        else:
            child.slip(f"value {shown(child.text)} is no number (decimal, 0x hexadecimal, "
                       "# binary with x for any), it is left out")
            return None
        if number >> bits:
            child.slip(f"value {shown(child.text)} does not fit the {bits}-bit field, it is left out")
            return None
        return number, care

    def values(self, field, bits):
        """The enumerated values: name -> number. If a value has x bits, NAME\\0CARE is the mask of the
        others."""
        result, usages = {}, {}
        for enumeration in field.children:
            if enumeration.tag != "enumeratedValues":
                continue
            enumeration = self.derivation.full(enumeration)
            usage, both = enumeration.child("usage"), USAGE["read-write"]
            uses = usage.choice(USAGE, both) if usage is not None else both
            if again := [use for use in uses if use in usages]:
                enumeration.slip(f"second <enumeratedValues> for {again[0]}, first on line "
                                 f"{usages[again[0]].at}, it is left out")
                continue
            usages |= dict.fromkeys(uses, enumeration)
            self.values_of(enumeration, bits, uses[0], result)
        return result

    def values_of(self, enumeration, bits, use, result):
        """Adds the values of one enumeratedValues."""
        seen, numbers = Unique("value"), {}
        for node in enumeration.children:
            if node.tag != "enumeratedValue":
                continue
            self.spend(node)
            value = self.value(node, bits)
            name = node.name() if node.child("name") is not None else f"V{value[0]}" if value else "default"
            if value is not None and numbers.get(name) == value:
                node.slip(f"value {shown(name)} is there twice, first on line {seen.first[name].at}")
                continue
            name += seen.ending(node, name)
            if value is None:
                continue
            numbers[name] = value
            while result.get(name, value[0]) != value[0]:
                name += "_" + use
            result[name] = value[0]
            if value[1] != 2**bits - 1:
                result[name + "\0CARE"] = value[1]     # Why \0: no name in XML holds one.

    def fields(self, register, width, access):
        """The fields of a register."""
        found, seen, distinct = [], Unique("field"), []
        for node in members_of(register):
            node = self.derivation.full(node)
            place = self.bit_range(node)
            if place is None:
                continue
            lsb, bits = place
            own = node.child("access")
            own = own.choice(ACCESS, access) if own is not None else access
            for name, shift, dim in self.copies(node):
                first = lsb + shift
                end = first + (dim.stride * (dim.count - 1) if dim else 0) + bits
                if end > width:
                    node.slip(f"field {shown(name)} with bits {end - 1}:{first} lies outside the "
                              f"{width}-bit register, it is left out")
                    continue
                if dim and dim.stride < bits and dim.count > 1:
                    node.slip(f"the elements of field {shown(name)} overlap, it is left out; "
                              f"dimIncrement {bits} or more would do")
                    continue
                name += seen.ending(node, name)
                if dim:
                    dim.path = (name,)
                field = Field(name, 0, width, first, bits, description(node), self.values(node, bits), node,
                              own, (dim,) if dim else ())
                for other in distinct:
                    if other.whole_mask & field.whole_mask and {other.access, field.access} != {"ro", "wo"}:
                        node.slip(f"field {shown(name)} overlaps field {shown(other.name)} on line "
                                  f"{other.table.at}: both stay")
                        break
                else:
                    distinct.append(field)
                found.append(field)
        return found
