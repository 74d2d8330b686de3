#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""The laws of the house that a script can hold (src/README.md), on every hand-written file of the repository.

usage: house.py [--quick] [PATH...]

    law 1    a part of src/ includes what it uses, downwards only, and compiles alone
    law 2    the two headers are what tools/join.py makes of src/
    law 3    sizes of parts, functions, lines and blocks; hosted and firmware code beside each other
    law 4    private names say their room and mean one thing; nothing reserved
    places   system calls, compilers' names and register accesses stand in few parts
    text     UTF-8, no tabs, no white space at the end, licence lines

One line for each finding, `file:line: law: what`; exit code 1 when there is one. With paths: only what is
found there.
--quick compiles each part once (C11) instead of in all its ways.
"""

import argparse
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
from laws import alone, joined, layers, names, places, sizes, text, tree  # noqa: E402

LAWS = [
    ("law 1", layers.includes), ("law 1", layers.circles), ("law 1", layers.upward),
    ("law 2", joined.short), ("law 2", joined.tags),
    ("law 3", sizes.parts), ("law 3", sizes.functions), ("law 3", sizes.parameters),
    ("law 3", sizes.columns), ("law 3", sizes.blank_lines), ("law 3", sizes.conditions),
    ("law 3", sizes.sides), ("law 3", sizes.python_circles),
    ("law 4", names.rooms), ("law 4", names.once), ("law 4", names.of_c),
    ("places", places.places), ("text", text.text),
]

def findings(house, laws=LAWS, root=None, wanted=lambda name: True, quick=False):
    """(file, line, law, what, check) of all that is found; root: where src/ lies to be compiled."""
    found = [(*finding, law, check.__name__) for law, check in laws for finding in check(house)]
    if root:
        found += [(*finding, "law 1", "alone") for finding in alone.alone(house, root, wanted, quick)]
        found += [(*finding, "law 2", "joined") for finding in joined.joined(root)]
    return sorted((name, line, law, what, check) for name, line, what, law, check in found if wanted(name))


def main():
    parser = argparse.ArgumentParser(description="the laws of the house; see the head of this file")
    parser.add_argument("paths", nargs="*", type=pathlib.Path, help="files and folders; all without")
    parser.add_argument("--quick", action="store_true", help="compile each part once")
    options = parser.parse_args()
    below = [path.resolve().relative_to(tree.ROOT).as_posix() for path in options.paths]

    def wanted(name):
        return not below or any(path == "." or name == path or name.startswith(path + "/") for path in below)

    found = findings(tree.load(), root=tree.ROOT, wanted=wanted, quick=options.quick)
    for name, line, law, what, _ in found:
        print(f"{name}:{line}: {law}: {what}")
    for compiler in alone.missing():
        print(f"skip law 1 for Windows: {compiler} is not installed")
    if not found:
        print("the house is in order")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
