# SPDX-License-Identifier: MIT
"""The files the laws look at, and the map of src/: its rooms in order, what each is for, how its names begin.

The map is the first table of src/README.md, lowest room first; a row may be a room, a folder or one file:

    | room | built for | names begin with | what it does |
    |---|---|---|---|
    | public/ | both | | what a user's file compiles |
    | arena/ | hosted | arena chunk slot | ... |
"""

import functools
import pathlib
import posixpath
import re
import subprocess
from typing import NamedTuple

from . import code

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
ROOTS = {"src/npuprof.h": "npuprof.h", "src/npuprof_npu.h": "npuprof_npu.h"}    # and what is joined from each
PART = re.compile(r"(?:src|tools/convert)/.+\.h$")
JOINED_FROM = {header: root for root, header in ROOTS.items()}
KINDS = ("both", "hosted", "firmware")
NOT_OURS = {".git", "build", "__pycache__", "node_modules"}
ENDINGS = ".c .cpp .h .py .js .mjs .css .html .md .toml .json .yml .sh".split() + [""]


class Room(NamedTuple):
    path: str         # "arena/", below src/
    rank: int         # an include goes to the same or a lower one
    kind: str         # both, hosted or firmware
    prefixes: tuple   # npuprof_<prefix>_ begins its private names; () for any


class Tree:
    """Names and texts of the repository's files; None for the text of what is no UTF-8."""

    def __init__(self, texts):
        self.texts = texts
        self.parts = [name for name in texts if PART.match(name) and name not in ROOTS]

    @functools.cached_property
    def rooms(self):
        rows = []
        for line in (self.texts.get("src/README.md") or "").split("\n"):
            cells = [cell.strip().replace("`", "") for cell in line.split("|")[1:-1]]
            if len(cells) >= 3 and cells[1] in KINDS:
                rows.append(Room(cells[0], len(rows), cells[1], tuple(cells[2].split())))
        return rows

    @functools.cache
    def room(self, part):
        """The row of the map that a part stands in, None if in none."""
        path = part.removeprefix("src/")
        found = [room for room in self.rooms if f"{path}/".startswith(room.path.rstrip("/") + "/")]
        return max(found, key=lambda room: len(room.path), default=None)

    @functools.cache
    def includes(self, part):
        """(line, file) for each #include "..." of a part; the root for a header that is joined from it."""
        text, folder = self.texts[part], posixpath.dirname(part)
        found = [(code.line_of(text, m.start(1)), posixpath.normpath(posixpath.join(folder, m.group(1))))
                 for m in code.INCLUDE.finditer(text)]
        return [(line, JOINED_FROM.get(file, file)) for line, file in found]

    def closure(self, part):
        """The part and all that it includes, directly or not."""
        seen, left = set(), [part]
        while left:
            name = left.pop()
            if name not in seen and self.texts.get(name) is not None:
                seen.add(name)
                left += [file for _, file in self.includes(name)]
        return seen

    def hand_written(self, *endings):
        """(name, text) of the files with these endings that people write and read."""
        for name, text in self.texts.items():
            if text is not None and name.endswith(endings) and name not in ROOTS.values() \
                    and not {"data", "golden"} & set(name.split("/")) and "enerated" not in text[:500]:
                yield name, text


def files(root=ROOT):
    """The files of the repository: what git lists, or what lies there if it is not a clone."""
    done = subprocess.run(["git", "-C", root, "ls-files", "-z", "--cached", "--others", "--exclude-standard"],
                          capture_output=True, text=True, check=False)
    if done.returncode == 0:
        names = done.stdout.split("\0")[:-1]
    else:
        names = [path.relative_to(root).as_posix() for path in root.rglob("*")]
    names = [name for name in sorted(set(names)) if not NOT_OURS & set(name.split("/"))]
    return [name for name in names if pathlib.Path(name).suffix in ENDINGS]


def load(root=ROOT):
    texts = {}
    for name in files(root):
        path = root / name
        if not path.is_file() or path.stat().st_size > 4 << 20:
            continue
        data = path.read_bytes()
        if b"\0" not in data:
            try:
                texts[name] = data.decode("utf-8")
            except UnicodeDecodeError:
                texts[name] = None
    return Tree(texts)
