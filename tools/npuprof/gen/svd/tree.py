# SPDX-License-Identifier: MIT
"""The XML as a tree whose nodes know their lines."""

import re
import xml.parsers.expat

from ...base.messages import Refused
from ..model import UINT64_MAX
from . import limits

DIM = ("dim", "dimIncrement", "dimIndex")
BIT_RANGE = ("bitRange", "lsb", "msb", "bitOffset", "bitWidth")
PROPERTIES = ("size", "access", "resetValue")
# Of elements with names: the element around their members, and the tags of these.
MEMBERS = {"device": ("peripherals", ("peripheral",)), "peripheral": ("registers", ("register", "cluster")),
           "cluster": (None, ("register", "cluster")), "register": ("fields", ("field",)),
           "field": (None, ("enumeratedValues",))}
# Every element of the schema. Others are refused, so that none is overlooked for its spelling. Only a <cpu>
# may have others: the schema adds some with each version.
KNOWN = {*DIM, *BIT_RANGE, *PROPERTIES, *"""
    peripheral register cluster field enumeratedValues enumeratedValue addressBlock interrupt
    sauRegionsConfig region device vendor vendorID name series version description licenseText cpu
    headerSystemFilename headerDefinitionsPrefix addressUnitBits width resetMask protection peripherals
    registers fields vendorExtensions revision endian mpuPresent fpuPresent fpuDP dspPresent icachePresent
    dcachePresent itcmPresent dtcmPresent vtorPresent nvicPrioBits vendorSystickConfig deviceNumInterrupts
    sauNumRegions base limit displayName alternatePeripheral groupName prependToName appendToName
    headerStructName disableCondition baseAddress offset usage value alternateCluster alternateGroup
    alternateRegister addressOffset dataType modifiedWriteValues writeConstraint readAction writeAsRead
    useEnumeratedValues range minimum maximum isDefault headerEnumName dimName dimArrayIndex""".split()}

# Hexadecimal, binary or decimal, and a factor of 2^10, 2^20, 2^30 or 2^40.
NUMBER = re.compile(r"\+?(?:0[xX]([0-9a-fA-F]{1,24})|(?:#|0[bB])([01]{1,80})|([0-9]{1,24}))([kKmMgGtT]?)")


def shown(text):
    """A text of the file as a message shows it: on one line, at most 60 characters."""
    return repr(text if len(text) <= 60 else text[:57] + "...")


class Document:
    """One file: its name, and its flaws that were not refused (an ordered set). strict: all are refused."""

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
        """Warns of a flaw that a header can live with. Why not refused: vendors' files have such flaws, and
        their users cannot correct them."""
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
        """The text of the first child of that tag, or the default."""
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
            name.refuse(f"the name {shown(name.text)} is empty or longer than {limits.NAME_MAX}, "
                        "write a short one")
        return name.text

    def number(self, tag, default=None):
        child = self.child(tag)
        return default if child is None else child.own_number()

    def own_number(self):
        match = NUMBER.fullmatch(self.text)
        if not match:
            self.refuse(f"{self.tag} {shown(self.text)} is no number, write decimal, "
                        "0x hexadecimal or # binary")
        digits, base = next((digits, base) for digits, base in zip(match.groups(), (16, 2, 10)) if digits)
        value = int(digits, base) << (10 * " kmgt".index(match[4].lower() or " "))
        if value > UINT64_MAX:
            self.refuse(f"{self.tag} {shown(self.text)} is above 2^64-1, write a smaller number")
        return value

    def choice(self, known, otherwise):
        """The meaning of the text. Unknown: a warning, and `otherwise`."""
        if self.text in known:
            return known[self.text]
        for word, meaning in known.items():
            if word.lower() == self.text.lower():
                self.slip(f"{self.tag} {shown(self.text)} is written {word}")
                return meaning
        self.slip(f"{self.tag} {shown(self.text)} is unknown, it is left out; known are {', '.join(known)}")
        return otherwise


class Builder:
    """Builds the tree from the events of the XML parser, within the limits."""

    def __init__(self, document):
        self.document = document
        self.top = self.node = Node(document, 1, "", {}, None)
        self.depth = self.count = 0
        self.skip = 0                 # elements open inside one that is not read
        self.parser = xml.parsers.expat.ParserCreate()
        self.parser.buffer_text = True
        self.parser.StartElementHandler, self.parser.EndElementHandler = self.start, self.end
        self.parser.CharacterDataHandler, self.parser.StartDoctypeDeclHandler = self.text, self.doctype

    def refuse(self, sentence):
        raise Refused(f"{self.document.file}:{self.parser.CurrentLineNumber}: {sentence}")

    def start(self, tag, attributes):
        self.depth += 1
        self.count += 1
        if self.depth > limits.DEPTH_MAX:
            self.refuse(f"elements nested more than {limits.DEPTH_MAX} deep, write it simpler")
        if self.count > limits.ELEMENTS_MAX:
            self.refuse(f"more than {limits.ELEMENTS_MAX} elements, split the file")
        for name, value in attributes.items():
            if len(name) + len(value) > limits.ATTRIBUTE_MAX:
                self.refuse(f"attribute {shown(name)} has {len(value)} characters, "
                            f"shorten it to {limits.ATTRIBUTE_MAX}")
        if self.skip:
            self.skip += 1
        elif tag == "vendorExtensions" or (self.node.tag == "cpu" and tag not in KNOWN):
            self.skip = 1
        elif tag not in KNOWN:
            self.refuse(f"<{shown(tag)[1:-1]}> is no element of CMSIS-SVD, "
                        "correct it or put it into <vendorExtensions>")
        else:
            node = Node(self.document, self.parser.CurrentLineNumber, tag, attributes, self.node)
            self.node.children.append(node)
            self.node = node

    def end(self, _):
        self.depth -= 1
        if self.skip:
            self.skip -= 1
        else:
            self.node.text = self.node.text.strip()
            self.node = self.node.parent

    def text(self, characters):
        if not self.skip:
            self.node.text += characters
            if len(self.node.text) > limits.TEXT_MAX:
                self.refuse(f"<{self.node.tag}> has more than {limits.TEXT_MAX} characters, shorten it")

    def doctype(self, *_):
        self.refuse("a document type is not allowed here (it can define entities), take <!DOCTYPE> out")


def parse(data, document):
    """The root of the tree. Raises Refused."""
    file = document.file
    if len(data) > limits.FILE_BYTES_MAX:
        raise Refused(f"{file}:1: {len(data)} bytes, "
                      f"more than {limits.FILE_BYTES_MAX} are no device description")
    builder = Builder(document)
    try:
        builder.parser.Parse(data, True)
    except xml.parsers.expat.ExpatError as error:
        sentence = xml.parsers.expat.ErrorString(error.code)
        raise Refused(f"{file}:{error.lineno}: XML syntax: {sentence}, "
                      "correct it there or just before") from None
    except (LookupError, ValueError) as error:
        raise Refused(f"{file}:1: the encoding cannot be used ({error}), save the file as UTF-8") from None
    root = builder.top.children[0] if builder.top.children else builder.top
    if root.tag != "device":
        root.refuse(f"the root is <{root.tag}>, not <device>: this is no CMSIS-SVD file")
    return root


def own_name(node):
    return node.get("name", "")


def members_of(node):
    """The elements with names directly inside a node."""
    container, tags = MEMBERS.get(node.tag, (None, ()))
    around = [node] if container is None else boxes(node, container)
    return [child for box in around for child in box.children if child.tag in tags]


def boxes(node, container):
    """The elements of that tag around a node's members. There should be one; several count as one."""
    found = [child for child in node.children if child.tag == container]
    for other in found[1:]:
        other.slip(f"a second <{container}>, first on line {found[0].at}, both are read")
    return found
