#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Joins the parts in src/ to the two headers that users copy.

usage: join.py [--check]

The root names the parts in order: its line `#include "part.h"` becomes the text of that part, under a
banner. A part begins with `#pragma once` and includes the parts it uses. These lines are left out: what a
part uses must have been joined before it, else that is an error. Only parts of its own room need not be in
the root; they come right before it. npuprof_npu.h also uses what was joined to
npuprof.h. Each `static` function without NPUPROF_HOT_ gets the mark NPUPROF_OWN_ (src/public/compiler.h): a
compiler that puts calls into all functions of a program leaves it alone. Without --check the headers are
written; with it nothing is written, and exit code 1 says that one is stale.
"""
import pathlib
import re
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
INCLUDE = re.compile(r'#include "(.+)"$')
FUNCTION = re.compile(r"^(?!NPUPROF_HOT_)((?:template <[^>]*> |NPUPROF_\w+(?:\(\(.*?\)\))?\s+)*)"
                      r"(?=static [^(=;{\[]*\([\w)])", re.MULTILINE)


def lines_of(path):
    return path.read_text(encoding="utf-8").splitlines()


def part(path, joined):
    """The lines of a part, under a banner, each with its place. Adds it to `joined`."""
    joined.add(path)
    before = []
    name = path.relative_to(ROOT / "src").with_suffix("").as_posix()
    out = [(f"/* ==== src/{name}.h ".ljust(100 - len(name), "=") + f" >>{name} ==== */", (path, 1))]
    for number, line in enumerate(lines_of(path), 1):
        include = INCLUDE.match(line)
        used = (path.parent / include[1]).resolve() if include else None
        if used and used not in joined and used.parent == path.parent and used.exists():
            before += part(used, joined)
        if used and used not in joined:
            sys.exit(f"{path}:{number}: {include[1]} has not been joined yet: move it up in the root")
        if not include and not line.startswith("#pragma once"):
            out.append((line, (path, number)))
    return before + out


def joined_lines(root, joined):
    """The lines of a header, each with its place: the part and the line in it. Adds the parts to `joined`."""
    out = []
    for number, line in enumerate(lines_of(root), 1):
        include = INCLUDE.match(line)
        if not include:
            out.append((line, (root, number)))
            continue
        path = (root.parent / include[1]).resolve()
        if path in joined:
            sys.exit(f"{root}:{number}: {include[1]} a second time")
        out += part(path, joined)
    return out


def join(root, joined):
    text = "\n".join(line for line, _ in joined_lines(root, joined)) + "\n"
    return FUNCTION.sub(r"\1NPUPROF_OWN_ ", text)


def main():
    joined, stale = set(), []
    for name in ("npuprof.h", "npuprof_npu.h"):
        text, target = join(ROOT / "src" / name, joined), ROOT / name
        if target.exists() and target.read_text(encoding="utf-8") == text:
            continue
        if "--check" in sys.argv:
            stale.append(name)
        else:
            target.write_text(text, encoding="utf-8")
    if stale:
        sys.exit(f"{', '.join(stale)}: not what src/ gives; edit src/, then run: make headers")


if __name__ == "__main__":
    main()
