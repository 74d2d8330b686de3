# SPDX-License-Identifier: MIT
"""Reads CMSIS-SVD (schema 1.3): XML in, peripherals with registers and fields out, every refusal with file and line.

The file is read as data from a stranger: no document type, no entities, and limits on all that can grow.
"""

import itertools
import re
import xml.parsers.expat

from npuprof_common import Refused
from npuprof_model import UINT64_MAX, WORD_WIDTHS, Dim, Field, Peripheral, Register, overlaps

FILE_BYTES_MAX = 64 << 20
ELEMENTS_MAX = 1000000     # in the file
ITEMS_MAX = 250000        # registers, fields and values, once derivedFrom and lists are followed
SPANS_MAX = 1000000        # addresses, once arrays are followed
DEPTH_MAX = 64
ATTRIBUTE_MAX = 4096
TEXT_MAX = 1 << 16
NAME_MAX = 256
DESCRIPTION_MAX = 90

ACCESS = {"read-only": "ro", "write-only": "wo", "read-write": "rw", "writeOnce": "wo", "read-writeOnce": "rw"}
USAGE = {"read": ("read",), "write": ("write",), "read-write": ("read", "write")}
DIM = ("dim", "dimIncrement", "dimIndex")
BIT_RANGE = ("bitRange", "lsb", "msb", "bitOffset", "bitWidth")
PROPERTIES = ("size", "access", "resetValue")
# Where the members of an element with a name lie.
MEMBERS = {"device": ("peripherals", ("peripheral",)), "peripheral": ("registers", ("register", "cluster")),
           "cluster": (None, ("register", "cluster")), "register": ("fields", ("field",)),
           "field": (None, ("enumeratedValues",))}
# Every element of the schema, so that a misspelt one is not overlooked. A <cpu> may have others, too: it grows with each version.
KNOWN = {*DIM, *BIT_RANGE, *PROPERTIES, *"""
    peripheral register cluster field enumeratedValues enumeratedValue addressBlock interrupt sauRegionsConfig region
    device vendor vendorID name series version description licenseText cpu headerSystemFilename headerDefinitionsPrefix
    addressUnitBits width resetMask protection peripherals registers fields vendorExtensions
    revision endian mpuPresent fpuPresent fpuDP dspPresent icachePresent dcachePresent itcmPresent dtcmPresent vtorPresent
    nvicPrioBits vendorSystickConfig deviceNumInterrupts sauNumRegions base limit
    displayName alternatePeripheral groupName prependToName appendToName headerStructName disableCondition baseAddress
    offset usage value alternateCluster alternateGroup alternateRegister addressOffset dataType modifiedWriteValues
    writeConstraint readAction writeAsRead useEnumeratedValues range minimum maximum isDefault headerEnumName
    dimName dimArrayIndex""".split()}


def shown(text):
    """A text of the file for a message: on one line and not too long."""
    return repr(text if len(text) <= 60 else text[:57] + "...")


# ---- XML: a tree that knows its lines ----

class Document:
    """One file: its name, and the flaws that were let pass (an ordered set). strict: none is."""

    def __init__(self, file, strict=False):
        self.file, self.strict, self.warnings = file, strict, {}


class Node:
    __slots__ = ("document", "at", "tag", "attributes", "text", "children", "parent")

    def __init__(self, document, at, tag, attributes, parent):
        self.document, self.at, self.tag, self.attributes, self.parent = document, at, tag, attributes, parent
        self.text, self.children = "", []

    def refuse(self, sentence, *_):
        raise Refused(f"{self.document.file}:{self.at}: {sentence}")

    def slip(self, sentence):
        """A flaw that the header can live with. Why not refused: vendors' files have them, and users cannot correct those."""
        if self.document.strict:
            self.refuse(sentence)
        self.document.warnings.setdefault(f"{self.document.file}:{self.at}: warning: {sentence}")

    def line(self, *_):
        return self.at

    def child(self, tag):
        """The first child of that tag, or None."""
        found = [child for child in self.children if child.tag == tag]
        for other in found[1:]:
            other.slip(f"a second <{tag}>, first on line {found[0].at}, it is left out")
        return found[0] if found else None

    def get(self, tag, default=None):
        """The text of a child."""
        child = self.child(tag)
        return default if child is None else child.text

    def need(self, tag):
        child = self.child(tag)
        if child is None:
            self.refuse(f"<{self.tag}> has no <{tag}>, add it")
        return child

    def name(self):
        name = self.need("name")
        if not name.text or len(name.text) > NAME_MAX:
            name.refuse(f"the name {shown(name.text)} is empty or longer than {NAME_MAX}, write a short one")
        return name.text

    def number(self, tag, default=None):
        child = self.child(tag)
        return default if child is None else child.own_number()

    def own_number(self):
        match = re.fullmatch(r"\+?(?:0[xX]([0-9a-fA-F]{1,24})|(?:#|0[bB])([01]{1,80})|([0-9]{1,24}))([kKmMgGtT]?)", self.text)
        if not match:
            self.refuse(f"{self.tag} {shown(self.text)} is no number, write decimal, 0x hexadecimal or # binary")
        digits, base = next((digits, base) for digits, base in zip(match.groups(), (16, 2, 10)) if digits)
        value = int(digits, base) << (10 * " kmgt".index(match[4].lower() or " "))
        if value > UINT64_MAX:
            self.refuse(f"{self.tag} {shown(self.text)} is above 2^64-1, write a smaller number")
        return value

    def choice(self, known, otherwise):
        """What the text means."""
        if self.text in known:
            return known[self.text]
        for word, meaning in known.items():
            if word.lower() == self.text.lower():
                self.slip(f"{self.tag} {shown(self.text)} is written {word}")
                return meaning
        self.slip(f"{self.tag} {shown(self.text)} is unknown, it is left out; known are {', '.join(known)}")
        return otherwise


def parse(data, document):
    """The root of the tree. Raises Refused."""
    file = document.file
    if len(data) > FILE_BYTES_MAX:
        raise Refused(f"{file}:1: {len(data)} bytes, more than {FILE_BYTES_MAX} are no device description")
    parser = xml.parsers.expat.ParserCreate()
    parser.buffer_text = True
    top = Node(document, 1, "", {}, None)
    state = {"node": top, "depth": 0, "count": 0, "skip": 0}

    def refuse(sentence):
        raise Refused(f"{file}:{parser.CurrentLineNumber}: {sentence}")

    def start(tag, attributes):
        state["depth"] += 1
        state["count"] += 1
        if state["depth"] > DEPTH_MAX:
            refuse(f"elements nested more than {DEPTH_MAX} deep, write it simpler")
        if state["count"] > ELEMENTS_MAX:
            refuse(f"more than {ELEMENTS_MAX} elements, split the file")
        for name, value in attributes.items():
            if len(name) + len(value) > ATTRIBUTE_MAX:
                refuse(f"attribute {shown(name)} has {len(value)} characters, shorten it to {ATTRIBUTE_MAX}")
        if state["skip"]:
            state["skip"] += 1
        elif tag == "vendorExtensions" or (state["node"].tag == "cpu" and tag not in KNOWN):
            state["skip"] = 1
        elif tag not in KNOWN:
            refuse(f"<{shown(tag)[1:-1]}> is no element of CMSIS-SVD, correct it or put it into <vendorExtensions>")
        else:
            node = Node(document, parser.CurrentLineNumber, tag, attributes, state["node"])
            state["node"].children.append(node)
            state["node"] = node

    def end(_):
        state["depth"] -= 1
        if state["skip"]:
            state["skip"] -= 1
        else:
            state["node"].text = state["node"].text.strip()
            state["node"] = state["node"].parent

    def text(characters):
        if not state["skip"]:
            state["node"].text += characters
            if len(state["node"].text) > TEXT_MAX:
                refuse(f"<{state['node'].tag}> has more than {TEXT_MAX} characters, shorten it")

    def doctype(*_):
        refuse("a document type is not allowed here (it can define entities), take <!DOCTYPE> out")

    parser.StartElementHandler, parser.EndElementHandler, parser.CharacterDataHandler = start, end, text
    parser.StartDoctypeDeclHandler = doctype
    try:
        parser.Parse(data, True)
    except xml.parsers.expat.ExpatError as error:
        sentence = xml.parsers.expat.ErrorString(error.code)
        raise Refused(f"{file}:{error.lineno}: XML syntax: {sentence}, correct it there or just before") from None
    except (LookupError, ValueError) as error:
        raise Refused(f"{file}:1: the encoding cannot be used ({error}), save the file as UTF-8") from None
    root = top.children[0] if top.children else top
    if root.tag != "device":
        root.refuse(f"the root is <{root.tag}>, not <device>: this is no CMSIS-SVD file")
    return root


# ---- derivedFrom ----

def own_name(node):
    return node.get("name", "")


def dim_of(node):
    """(count, increment, labels) of <dim>, or None. The name is checked, too."""
    name = own_name(node)
    if node.child("dim") is None:
        if "%s" in name:
            node.need("name").refuse(f"the name {shown(name)} has a %s, but there is no <dim>, add it")
        return None
    if name.count("%s") != 1 or ("[%s]" in name and not name.endswith("[%s]")):
        node.child("dim").refuse(f"an array or list has one %s in its name, or ends it with [%s]; {shown(name)} does not")
    count = node.number("dim")
    increment = node.need("dimIncrement").own_number()
    if not 1 <= count <= SPANS_MAX:
        node.child("dim").refuse(f"dim {count} is not 1 to {SPANS_MAX}, correct it")
    index = node.child("dimIndex")
    if index is None:
        return count, increment, None
    if match := re.fullmatch(r"([0-9]{1,9})\s*-\s*([0-9]{1,9})", index.text):
        first, last = int(match[1]), int(match[2])
        labels = map(str, range(first, min(last, first + SPANS_MAX) + 1))
    elif match := re.fullmatch(r"([A-Za-z])\s*-\s*([A-Za-z])", index.text):
        labels = map(chr, range(ord(match[1]), ord(match[2]) + 1))
    else:
        labels = re.split(r"\s*,\s*", index.text)
    labels = list(labels)
    if any(not re.fullmatch(r"\w{1,64}", label) for label in labels) or len(set(labels)) < len(labels):
        index.refuse(f"dimIndex {shown(index.text)} is no list A,B,C of different words and no range 0-3 or A-D, write one")
    if len(labels) != count:
        index.refuse(f"dimIndex {shown(index.text)} has {len(labels)} entries for dim {count}, correct one")
    return count, increment, labels


def merged(base, own):
    """`own`, with all that it does not say itself from `base`."""
    result = Node(own.document, own.at, own.tag, own.attributes, own.parent)
    result.text = own.text
    tags = {child.tag for child in own.children}
    hidden = set(tags)
    if tags & set(BIT_RANGE):
        hidden |= set(BIT_RANGE)
    if "dim" in tags or "%s" not in own_name(own):
        hidden |= set(DIM)
    container, members = MEMBERS.get(own.tag, (None, ()))
    members = members if own.tag in ("peripheral", "cluster", "register") else ()
    kept = [child for child in base.children if child.tag not in hidden and child.tag != container and child.tag not in members]
    said = [child for child in own.children if child.tag != container and child.tag not in members]
    result.children = kept + said
    if members:
        old, new = members_of(base), members_of(own)
        by_name = {own_name(child): child for child in new}
        old_names = {own_name(child) for child in old}
        both = [by_name.get(own_name(child), child) for child in old]
        both += [child for child in new if own_name(child) not in old_names]
        if container is None:
            result.children += both
        elif both:
            place = (boxes(own, container) or boxes(base, container))[0]
            box = Node(own.document, place.at, container, {}, result)
            box.children = both
            result.children.append(box)
    return result


def members_of(node):
    """The elements with names directly inside one."""
    container, tags = MEMBERS.get(node.tag, (None, ()))
    around = [node] if container is None else boxes(node, container)
    return [child for box in around for child in box.children if child.tag in tags]


def boxes(node, container):
    """The elements of that tag that hold a node's members: one, or several, which count as one."""
    found = [child for child in node.children if child.tag == container]
    for other in found[1:]:
        other.slip(f"a second <{container}>, first on line {found[0].at}, both are read")
    return found


class Derivation:
    """Follows derivedFrom. An element is completed when it is asked for, once."""

    def __init__(self, root):
        self.root, self.done, self.under_way, self.names, self.enumerations = root, {}, [], {}, None
        self.labels = ITEMS_MAX

    def full(self, node):
        """The node with what it derives from."""
        path = node.attributes.get("derivedFrom")
        if path is None:
            return node
        if id(node) not in self.done:
            if any(node is other for other in self.under_way):
                node.refuse(f"derivedFrom {shown(path)} leads back to itself, break the circle")
            if len(self.under_way) >= DEPTH_MAX:
                node.refuse(f"derivedFrom {shown(path)} ends a chain of more than {DEPTH_MAX}, shorten it")
            self.under_way.append(node)
            base = self.full(self.find(node, path))
            self.under_way.pop()
            self.done[id(node)] = merged(base, node)
        return self.done[id(node)]

    def members(self, node):
        """Name -> element, of all inside `node`. Arrays and lists go by their template, their bare name and each element."""
        node = self.full(node)
        if id(node) not in self.names:
            names = {}
            for member in members_of(node):
                names.setdefault(own_name(member), member)
            for member in members_of(node):
                if member.child("dim") is not None and (dim := dim_of(member)):
                    name = own_name(member)
                    names.setdefault(name.replace("[%s]", "").replace("%s", ""), member)
                    self.labels -= dim[0]
                    for label in dim[2] or map(str, range(dim[0])) if self.labels >= 0 else ():
                        names.setdefault(name.replace("%s", label), member)
            self.names[id(node)] = (names, node)    # Why the node, too: its id is its own only as long as it lives.
        return self.names[id(node)][0]

    def find(self, node, path):
        """What `path` means at `node`: a neighbour, or a path from any level around it."""
        steps = path.split(".")
        if len(path) > 16 * NAME_MAX or len(steps) > DEPTH_MAX:
            node.refuse(f"derivedFrom {shown(path)} is no path of names, shorten it")
        scope = node.parent
        while scope is not None:
            if scope.tag in MEMBERS:
                found = scope
                for step in steps:
                    found = self.members(found).get(step) if found is not None else None
                if node.tag == "enumeratedValues" and found is not None and found.tag in ("field", "register"):
                    found = self.only_enumeration(found)
                if found is not None and found.tag == node.tag and found is not node:
                    return found
            scope = scope.parent
        if node.tag == "enumeratedValues" and len(steps) == 1 and (found := self.enumeration(node, path)):
            return found
        node.refuse(f"derivedFrom {shown(path)} names no <{node.tag}>, write its name, or its path with dots")

    def only_enumeration(self, node):
        """The enumeratedValues of a field, or of a register's only field, named by the path to it."""
        inside = [self.full(node)]
        while inside and inside[0].tag != "enumeratedValues":
            inside = members_of(self.full(inside[0])) if len(inside) == 1 else []
        return inside[0] if len(inside) == 1 else None

    def enumeration(self, node, name):
        """The enumeratedValues of that name in the nearest element around."""
        if self.enumerations is None:
            self.enumerations, waiting = {}, [self.root]
            while waiting:
                other = waiting.pop()
                if other.tag == "enumeratedValues":
                    self.enumerations.setdefault(own_name(other), []).append(other)
                waiting.extend(reversed(other.children))
        around = {}
        for other in self.enumerations.get(name, ()):
            scope = other
            while scope is not None and other is not node:
                around.setdefault(id(scope), []).append(other)
                scope = scope.parent
        scope = node.parent
        while scope is not None and id(scope) not in around:
            scope = scope.parent
        found = around[id(scope)] if scope is not None else [None]
        if len(found) > 1:
            node.refuse(f"derivedFrom {shown(name)} may mean line {found[0].at} or line {found[1].at}, write the path with dots")
        return found[0]


# ---- The device ----

def description(node):
    """The beginning of the description, on one line."""
    text = " ".join(node.get("description", "").replace("\\n", " ").split())
    if len(text) > DESCRIPTION_MAX:
        text = text[:DESCRIPTION_MAX].rpartition(" ")[0] + " ..."
    return text


class Unique:
    """The names of one kind in one place. A name that comes again gets a number."""

    def __init__(self, what):
        self.what, self.first, self.repeats = what, {}, {}

    def ending(self, node, name):
        """What to add to `name` so that it is new: nothing, or _2, _3, ..."""
        ending = ""
        while name + ending in self.first:
            self.repeats[name] = self.repeats.get(name, 1) + 1
            ending = f"_{self.repeats[name]}"
        if ending:
            node.slip(f"duplicate {self.what} name {shown(name)}, first on line {self.first[name].at}, "
                      f"this one is {shown(name + ending)}")
        self.first[name + ending] = node
        return ending


class Reader:
    """Reads one device. `items` and `spans` are what is left of the limits.

    What is not checked: registers outside the address blocks, peripherals that share addresses. Vendors' files are full of
    both, and both are right more often than not."""

    def __init__(self, root):
        self.root, self.derivation, self.items, self.spans = root, Derivation(root), ITEMS_MAX, SPANS_MAX

    def spend(self, node, items=1, spans=0):
        self.items -= items
        self.spans -= spans
        if self.items < 0 or self.spans < 0:
            node.refuse(f"with derivedFrom, lists and arrays this device has more than {ITEMS_MAX} parts "
                        f"or {SPANS_MAX} addresses, read one peripheral or split the file")

    def properties(self, node, inherited):
        """size, access and resetValue, which go down from the device to its registers: name -> node."""
        return inherited | {tag: child for tag in PROPERTIES if (child := node.child(tag)) is not None}

    def copies(self, node):
        """Yields (name, shift, dim or None) for each thing that a node with or without <dim> stands for."""
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

    # -- fields and their values

    def bit_range(self, node):
        """(lsb, bits) in any of the three notations; None, and a warning, where they make none."""
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
                node.child("bitRange").slip(f"bitRange {shown(node.get('bitRange'))} is not [msb:lsb], {field} is left out")
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
        """(number, bits that count) of an enumeratedValue; None for a default without one."""
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
            child.slip(f"value {shown(child.text)} is no number (decimal, 0x hexadecimal, # binary with x for any), it is left out")
            return None
        if number >> bits:
            child.slip(f"value {shown(child.text)} does not fit the {bits}-bit field, it is left out")
            return None
        return number, care

    def values(self, field, bits):
        """The enumerated values: name -> number. For one with x bits there is NAME\\0CARE, too: the bits that count."""
        result, usages = {}, {}
        for enumeration in field.children:
            if enumeration.tag != "enumeratedValues":
                continue
            enumeration = self.derivation.full(enumeration)
            usage, both = enumeration.child("usage"), USAGE["read-write"]
            uses = usage.choice(USAGE, both) if usage is not None else both
            if again := [use for use in uses if use in usages]:
                enumeration.slip(f"second <enumeratedValues> for {again[0]}, first on line {usages[again[0]].at}, it is left out")
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
                result[name + "\0CARE"] = value[1]     # Why a NUL: no name in XML has one.

    def fields(self, register, width, access):
        """The fields of a register's node."""
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
                    node.slip(f"field {shown(name)} with bits {end - 1}:{first} lies outside the {width}-bit register, it is left out")
                    continue
                if dim and dim.stride < bits and dim.count > 1:
                    node.slip(f"the elements of field {shown(name)} overlap, it is left out; dimIncrement {bits} or more would do")
                    continue
                name += seen.ending(node, name)
                if dim:
                    dim.path = (name,)
                field = Field(name, 0, width, first, bits, description(node), self.values(node, bits), node, own,
                              (dim,) if dim else ())
                for other in distinct:
                    if other.whole_mask & field.whole_mask and {other.access, field.access} != {"ro", "wo"}:
                        node.slip(f"field {shown(name)} overlaps field {shown(other.name)} on line {other.table.at}: both stay")
                        break
                else:
                    distinct.append(field)
                found.append(field)
        return found

    # -- registers, clusters, peripherals

    def width(self, node, properties):
        """The bits of a register's word; None, and a warning, where there is no such word."""
        size = properties.get("size", self.root.child("width"))
        if size is None:
            node.refuse("the register's size is nowhere, add <size> here or above")
        bits = size.own_number()
        width = next((width for width in WORD_WIDTHS if 0 < bits <= width), None)
        if width is None:
            node.slip(f"register {shown(own_name(node))} has size {bits}, it is left out; 8, 16, 32 and 64 can be read")
        elif width != bits:
            size.slip(f"size {bits} is no word, it is read as {width}")
        return width

    def register(self, node, inherited, base, path, dims, alternate, seen):
        """Yields the registers that a register's node stands for."""
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
                                (*dims, dim) if dim else dims, None if reset is None else reset & (2**width - 1),
                                clears or any(f.table.child("readAction") is not None for f in fields), alternate)
            self.check_place(register, dim)
            yield register

    def check_place(self, register, dim):
        """A register's alignment and end, and how many addresses it has."""
        node, step = register.table, register.width // 8
        for number, what in ((register.offset, "addressOffset"), *((d.stride, "dimIncrement") for d in register.dims)):
            if number % step:
                node.slip(f"register {shown(register.name)} is misaligned ({what} {number:#x} is no multiple of {step})")
                break
        if register.whole_end > UINT64_MAX:
            node.refuse(f"register {shown(register.name)} ends above 2^64, correct its offset")
        spans = 1
        for d in register.dims:
            spans *= d.count
        self.spend(node, 0, spans // (dim.count if dim and dim.stride == step else 1))

    def registers(self, node, inherited, base=0, path=(), dims=(), alternate=False, depth=0):
        """All registers inside a peripheral's or cluster's node, those of nested clusters too."""
        if depth > DEPTH_MAX:
            node.refuse(f"clusters nested more than {DEPTH_MAX} deep (does one derive from what it lies in?), write it simpler")
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
                found += self.registers(member, properties, offset + shift, own_path, (*dims, dim) if dim else dims,
                                        alternate or member.child("alternateCluster") is not None, depth + 1)
        return found

    def pair_alternates(self, registers):
        """Marks what an <alternateRegister> names as an alternate, too."""
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
        """Yields the peripherals that a peripheral's node stands for."""
        node = self.derivation.full(node)
        base = node.need("baseAddress").own_number()
        blocks = [(block.need("offset").own_number(), block.need("size").own_number(), block)
                  for block in node.children if block.tag == "addressBlock"]
        for name, shift, dim in self.copies(node):
            registers = self.registers(node, self.properties(node, inherited))
            self.pair_alternates(registers)
            for first, second in overlaps(registers):
                where = "itself" if first is second else f"register {shown(first.name)} on line {first.table.at}"
                second.table.slip(f"register {shown(second.name)} overlaps {where}: both stay (<alternateRegister> says that it is meant)")
                second.alternate = True      # Why: what is let pass here is not to be refused where roles are given.
            size = max([offset + size for offset, size, _ in blocks] + [register.whole_end for register in registers] + [0])
            if base + shift + size + ((dim.count - 1) * dim.stride if dim else 0) > UINT64_MAX:
                node.refuse(f"peripheral {shown(name)} ends above 2^64, correct baseAddress or the offsets")
            if dim:
                dim.path = (name,)
            yield Peripheral(name, base + shift, size, description(node), registers, node, (dim,) if dim else ())


class Device:
    """What a file describes: name, big_endian, and peripherals(names). `warnings` are the slips that were let pass."""

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
        """The peripherals of these names, all without. Others are not looked at (but where they are derived from)."""
        known = self.reader.derivation.members(self.root)
        if not known:
            self.root.refuse("the device has no <peripheral>, add one")
        wanted = members_of(self.root)
        if names:
            for name in names:
                if name not in known:
                    others = [own_name(node) for node in wanted]
                    self.root.refuse(f"there is no peripheral {shown(name)}, use one of {', '.join(others[:20])}"
                                     + (", ..." if len(others) > 20 else ""))
            wanted = [node for node in wanted if any(known[name] is node for name in names)]
        # addressUnitBits is not looked at. Why: addresses are in bytes in every file seen, whatever it says (ESP32-C3: 32).
        inherited = self.reader.properties(self.root, {})
        found, seen = [], Unique("peripheral")
        for node in wanted:
            for peripheral in self.reader.peripheral(node, inherited):
                peripheral.name += seen.ending(node, peripheral.name)
                for dim in peripheral.dims:
                    dim.path = (peripheral.name,)
                found.append(peripheral)
        return found
