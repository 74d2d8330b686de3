# SPDX-License-Identifier: MIT
"""The XML as a tree that knows its lines."""

import re
import xml.parsers.expat

from ...base.messages import Refused
from ..model import UINT64_MAX
from . import limits

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
        if not name.text or len(name.text) > limits.NAME_MAX:
            name.refuse(f"the name {shown(name.text)} is empty or longer than {limits.NAME_MAX}, write a short one")
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
    if len(data) > limits.FILE_BYTES_MAX:
        raise Refused(f"{file}:1: {len(data)} bytes, more than {limits.FILE_BYTES_MAX} are no device description")
    parser = xml.parsers.expat.ParserCreate()
    parser.buffer_text = True
    top = Node(document, 1, "", {}, None)
    state = {"node": top, "depth": 0, "count": 0, "skip": 0}

    def refuse(sentence):
        raise Refused(f"{file}:{parser.CurrentLineNumber}: {sentence}")

    def start(tag, attributes):
        state["depth"] += 1
        state["count"] += 1
        if state["depth"] > limits.DEPTH_MAX:
            refuse(f"elements nested more than {limits.DEPTH_MAX} deep, write it simpler")
        if state["count"] > limits.ELEMENTS_MAX:
            refuse(f"more than {limits.ELEMENTS_MAX} elements, split the file")
        for name, value in attributes.items():
            if len(name) + len(value) > limits.ATTRIBUTE_MAX:
                refuse(f"attribute {shown(name)} has {len(value)} characters, shorten it to {limits.ATTRIBUTE_MAX}")
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
            if len(state["node"].text) > limits.TEXT_MAX:
                refuse(f"<{state['node'].tag}> has more than {limits.TEXT_MAX} characters, shorten it")

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


def own_name(node):
    return node.get("name", "")


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
