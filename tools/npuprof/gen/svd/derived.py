# SPDX-License-Identifier: MIT
"""Follows derivedFrom."""

import re

from . import limits
from .tree import BIT_RANGE, DIM, MEMBERS, Node, boxes, members_of, own_name, shown


def dim_of(node):
    """(count, increment, labels) of <dim>; None without one. Checks that the name fits."""
    name = own_name(node)
    if node.child("dim") is None:
        if "%s" in name:
            node.need("name").refuse(f"the name {shown(name)} has a %s, but there is no <dim>, add it")
        return None
    if name.count("%s") != 1 or ("[%s]" in name and not name.endswith("[%s]")):
        node.child("dim").refuse("an array or list has one %s in its name, or ends it with [%s]; "
                                 f"{shown(name)} does not")
    count = node.number("dim")
    increment = node.need("dimIncrement").own_number()
    if not 1 <= count <= limits.SPANS_MAX:
        node.child("dim").refuse(f"dim {count} is not 1 to {limits.SPANS_MAX}, correct it")
    index = node.child("dimIndex")
    if index is None:
        return count, increment, None
    if match := re.fullmatch(r"([0-9]{1,9})\s*-\s*([0-9]{1,9})", index.text):
        first, last = int(match[1]), int(match[2])
        labels = map(str, range(first, min(last, first + limits.SPANS_MAX) + 1))
    elif match := re.fullmatch(r"([A-Za-z])\s*-\s*([A-Za-z])", index.text):
        labels = map(chr, range(ord(match[1]), ord(match[2]) + 1))
    else:
        labels = re.split(r"\s*,\s*", index.text)
    labels = list(labels)
    if any(not re.fullmatch(r"\w{1,64}", label) for label in labels) or len(set(labels)) < len(labels):
        index.refuse(f"dimIndex {shown(index.text)} is no list A,B,C of different words and no range 0-3 or "
                     "A-D, write one")
    if len(labels) != count:
        index.refuse(f"dimIndex {shown(index.text)} has {len(labels)} entries for dim {count}, correct one")
    return count, increment, labels


def merged(base, own):
    """The node `own`, completed with what only `base` says."""
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
    kept = [child for child in base.children if child.tag not in hidden and child.tag != container
            and child.tag not in members]
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


class Derivation:
    """Completes elements that have derivedFrom, each once, when it is asked for."""

    def __init__(self, root):
        self.root, self.done, self.under_way, self.names, self.enumerations = root, {}, [], {}, None
        self.labels = limits.ITEMS_MAX

    def full(self, node):
        """The node, completed with what it is derived from."""
        path = node.attributes.get("derivedFrom")
        if path is None:
            return node
        if id(node) not in self.done:
            if any(node is other for other in self.under_way):
                node.refuse(f"derivedFrom {shown(path)} leads back to itself, break the circle")
            if len(self.under_way) >= limits.DEPTH_MAX:
                node.refuse(f"derivedFrom {shown(path)} ends a chain of more than {limits.DEPTH_MAX}, "
                            "shorten it")
            self.under_way.append(node)
            base = self.full(self.find(node, path))
            self.under_way.pop()
            self.done[id(node)] = merged(base, node)
        return self.done[id(node)]

    def members(self, node):
        """Name -> element, for all inside `node`. An array or list is there by its template (A[%s]), by its
        bare name, and by the name of each element."""
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
            # Why the node, too: while it lives, no other node has its id.
            self.names[id(node)] = (names, node)
        return self.names[id(node)][0]

    def find(self, node, path):
        """The element that `path` names at `node`: beside it, or a path from any level around it."""
        steps = path.split(".")
        if len(path) > 16 * limits.NAME_MAX or len(steps) > limits.DEPTH_MAX:
            node.refuse(f"derivedFrom {shown(path)} is no path of names, shorten it")
        scope = node.parent
        while scope is not None:
            if scope.tag in MEMBERS:
                found = scope
                for step in steps:
                    found = self.members(found).get(step) if found is not None else None
                tag = found.tag if found is not None else ""
                if node.tag == "enumeratedValues" and tag in ("field", "register"):
                    found = self.only_enumeration(found)
                if found is not None and found.tag == node.tag and found is not node:
                    return found
            scope = scope.parent
        if node.tag == "enumeratedValues" and len(steps) == 1 and (found := self.enumeration(node, path)):
            return found
        node.refuse(f"derivedFrom {shown(path)} names no <{node.tag}>, write its name, or its path with dots")

    def only_enumeration(self, node):
        """The only enumeratedValues of a field, or of a register with one field; else None."""
        inside = [self.full(node)]
        while inside and inside[0].tag != "enumeratedValues":
            inside = members_of(self.full(inside[0])) if len(inside) == 1 else []
        return inside[0] if len(inside) == 1 else None

    def enumeration(self, node, name):
        """The enumeratedValues of that name in the nearest element around `node`."""
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
            node.refuse(f"derivedFrom {shown(name)} may mean line {found[0].at} or line {found[1].at}, "
                        "write the path with dots")
        return found[0]
