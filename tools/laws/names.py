# SPDX-License-Identifier: MIT
"""Law 4: the name says the room, and means one thing. Nothing reserved, nothing that could be a user's."""

import re

from . import code

ENDS_IN_T = re.compile(r"\btypedef\b[^;{]*\b(\w+_t)\s*;|\b(?:struct|enum|union)\s+(\w+_t)\b|\}\s*(\w+_t)\s*;"
                       r"|\b(npuprof\w*_t)\b")
# What others call so: ThreadX its internals, FreeRTOS its types.
NAMES_OF_AN_RTOS = ("_tx_",)
INTERFACES_OF_OTHERS = ("tests/baremetal/rtos/", "examples/shims/", "tests/programs/shim_",
                        "tests/programs/runtimes/")
RESERVED = re.compile(r"\b(?:struct|enum|union)\s+(_\w+)|(?<![\w.>])(_[a-z]\w*)\s*(?:\(|=[^=]|;|\[)")
FEATURES = ("_GNU_SOURCE", "_DEFAULT_SOURCE", "_POSIX_C_SOURCE")
# Of the tests: the compiler's own names are macros there.
REPLACES_BUILT_INS = ("fibers.h", "interleaved.c")
# The C library of Windows has these, with the underscore.
WINDOWS_CALLS = """_chsize_s _close _dup _environ _exit _fstat64 _get_osfhandle _lseeki64 _mkdir _open _read
    _setmode _stat64 _stricmp _write""".split()


def is_private(name):
    return re.fullmatch(r"npuprof_\w*_", name) is not None


def declared_for_users(tree):
    """What public parts name and rooms define: their names are what the macros call."""
    found = set()
    for part in tree.parts:
        if tree.room(part) and tree.room(part).kind == "both":
            defined = {f.name for f in code.read(tree.texts[part]).functions}
            found |= set(re.findall(r"\bnpuprof_\w*_\b", code.code_only(tree.texts[part]))) - defined
    return found


def rooms(tree):
    """A private function, type or variable of a room is npuprof_<one of the room's words>_... But not what is
    extern: other copies of the library have it, too."""
    declared = declared_for_users(tree)
    for part in tree.parts:
        room = tree.room(part)
        if room is None or not room.prefixes:
            continue
        source, begins = code.read(tree.texts[part]), tuple(f"npuprof_{word}_" for word in room.prefixes)
        found = {f.name: f.line for f in source.functions} | source.types | source.variables
        for name, line in sorted(found.items(), key=lambda item: item[1]):
            known = name in declared or name in source.declared
            if is_private(name) and not known and not name.startswith(begins):
                yield part, line, f"{name} does not say its room: npuprof_<{'|'.join(room.prefixes)}>_..."


# Of such parts a build has one, and each has the same functions.
EACH_HAS = ("src/os/", *(f"src/firmware/{policy}.h" for policy in ("oldest", "ring", "newest", "stream")))


def once(tree):
    """A private function or type has one meaning. In os/ a function is there once for each system, in the
    policies of firmware once for each; what public/ declares, and what a part <name>_side.h defines, is there
    once for hosted code and once for firmware. A part only.h stands in place of others, with their names."""
    places, declared = {}, declared_for_users(tree)
    for part in tree.parts:
        source = code.read(tree.texts[part])
        for name, line in [(f.name, f.line) for f in source.functions] + list(source.types.items()):
            if is_private(name) and not part.endswith("/only.h"):
                places.setdefault(name, {}).setdefault(part, line)
    for name, found in places.items():
        kinds = [tree.room(part).kind for part in found if tree.room(part)]
        sides = name in declared or all(part.endswith("_side.h") for part in found)
        for_each_side = sides and len(kinds) == len(set(kinds))
        if len(found) > 1 and not for_each_side and not all(part.startswith(EACH_HAS) for part in found):
            part, first = list(found)[-1], list(found)[0]
            yield part, found[part], f"{name} is also in {first}"


def of_c(tree):
    """Nothing reserved, no _t, no macro of another's, nothing private in the examples."""
    for name, text in tree.hand_written(".c", ".h"):
        only = code.code_only(text)
        for m in re.finditer(r"#\s*define\s+(\w+)", only):
            word = m.group(1)
            exempt = name.endswith(REPLACES_BUILT_INS) or name.startswith(INTERFACES_OF_OTHERS)
            if word.startswith("_") and word not in FEATURES and not exempt:
                yield name, code.line_of(text, m.start()), f"{word} is a reserved name"
            ours = re.match(r"PROF_|WITH_|NPUPROF_|npuprof_", word)
            if name.startswith("src/") and not ours and word not in FEATURES:
                yield name, code.line_of(text, m.start()), f"{word} is no name of ours"
        for m in RESERVED.finditer(only):
            word = m.group(1) or m.group(2)
            if not word.startswith(("__", *NAMES_OF_AN_RTOS)) and word not in WINDOWS_CALLS:
                yield name, code.line_of(text, m.start()), f"{word} is a reserved name"
        for m in ENDS_IN_T.finditer(only) if not name.startswith(INTERFACES_OF_OTHERS) else ():
            yield name, code.line_of(text, m.start()), f"{m.group(0)} ends in _t"
        if name.startswith("examples/"):
            for m in re.finditer(r"\b(?:npuprof\w*_|NPUPROF_\w*_|PROF_\w*_)\b", only):
                yield name, code.line_of(text, m.start()), f"{m.group(0)} is private to the headers"
