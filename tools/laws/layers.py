# SPDX-License-Identifier: MIT
"""Law 1, by reading: a part includes what it uses, downwards only. `alone` lets the compiler say it."""

import functools
import re

from . import code
from .tree import ROOTS


PROTOTYPE = re.compile(r"^static [^;{}=]*?\b(npuprof_\w+_)\([^;{}]*\);", re.M)
NAME = re.compile(r"\b(?:npuprof_|NPUPROF_|PROF_|WITH_)\w*_\b")      # private

# public/ declares it for the macros; whatever finds that the library is not set up calls it.
SETS_UP = "npuprof_opens_"


def includes(tree):
    """An include names a part of the same or a lower room, built for the same."""
    for part in tree.parts:
        room = tree.room(part)
        if room is None:
            yield part, 1, "is in no room of the map (the table in src/README.md)"
        if not re.search(r"^#pragma once\b", tree.texts[part], re.M):
            yield part, 1, "has no #pragma once"
        for line, file in tree.includes(part):
            other = tree.room(file) if file in tree.parts else None
            if file in ROOTS and not part.startswith("src/"):
                continue
            if other is None:
                yield part, line, f"includes {file}, which is no part"
            elif room and other.rank > room.rank:
                yield part, line, f"includes {file}, upwards: {other.path} is above {room.path}"
            elif room and not same_side(other, room):
                yield part, line, f"includes {file}, which is {other.kind} code, this is for {room.kind}"


def circles(tree):
    """No part includes itself, by whatever way."""
    for part in tree.parts:
        for line, file in tree.includes(part):
            if part in tree.closure(file):
                yield part, line, f"includes {file}, which includes this part: a circle"


def definitions(tree):
    """Name of each function, type, variable and macro to the parts that define it."""
    found = {}
    for part in tree.parts:
        text = tree.texts[part]
        source = code.read(text)
        macros = re.findall(r"^[ \t]*#[ \t]*define[ \t]+(\w+)", code.code_only(text), re.M)
        names = {f.name for f in source.functions} | set(source.types) | set(source.variables)
        for name in names | set(macros):
            found.setdefault(name, []).append(part)
    return found


def same_side(one, other):
    return {one.kind, other.kind} != {"hosted", "firmware"}


@functools.cache
def private_names(text):
    return set(NAME.findall(code.code_only(text)))


def upward(tree):
    """A part uses what stands in it, or in what it includes; of its own room also what it has a prototype of.
    What public parts declare and others define, as a user's file sees it, may be used by all; and these parts
    themselves are not asked."""
    defined = definitions(tree)
    for part in tree.parts:
        room = tree.room(part)
        if room is None or room.kind == "both":
            continue
        closure = tree.closure(part)
        seen = {name for name in PROTOTYPE.findall(code.code_only(tree.texts[part]))
                if any(tree.room(d) is room for d in defined.get(name, ()))}
        for name in closure:
            if tree.room(name) and tree.room(name).kind == "both":
                seen |= private_names(tree.texts[name])
        for m in NAME.finditer(code.code_only(tree.texts[part])):
            name = m.group(0)
            where = [d for d in defined.get(name, ()) if tree.room(d) and same_side(tree.room(d), room)]
            if name in seen or name == SETS_UP or not where or closure & set(where):
                continue
            seen.add(name)
            rank = min(tree.room(d).rank for d in where)
            how = "above it" if rank > room.rank else "which it does not include"
            yield part, code.line_of(tree.texts[part], m.start()), f"uses {name} of {where[0]}, {how}"
