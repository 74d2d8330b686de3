# SPDX-License-Identifier: MIT
"""The arena of a running program, by the number of the process (Linux)."""

import os
import re
import stat

from ..base.messages import Refused

MAGIC = b"NPUPROF\n"
# A shared mapping of a file that can be written, from its first byte on.
MAPPED = re.compile(r"[0-9a-f]+-[0-9a-f]+ rw.s 0+ \S+ \d+ +(/.*)")


def arena_path(text):
    """The path of the arena that a process has mapped from a file. text: its number; what is a file, or no
    number, is returned as it is. Refuses a process that has none, or more than one."""
    if not re.fullmatch(r"[1-9]\d{0,9}", text) or os.path.lexists(text):
        return text
    try:
        with open(f"/proc/{text}/maps", encoding="utf-8", errors="surrogateescape") as file:
            found = [match[1] for match in map(MAPPED.fullmatch, map(str.rstrip, file)) if match]
    except PermissionError:
        raise Refused(f"{text}: the kernel does not let you look at this process: run this as its user, or "
                      "as root") from None
    except OSError:
        raise Refused(f"{text}: neither a file nor a process that runs here") from None
    arenas = list(dict.fromkeys(path for path in found if is_arena(path)))
    if len(arenas) > 1:
        raise Refused(f"{text}: has {len(arenas)} arenas, take one of their files: {', '.join(arenas)}")
    if not arenas:
        raise Refused(f"{text}: has no arena in a file, or it was removed: start it with "
                      f"NPUPROF_ARENA_PATH=FILE; what needs no start is `attach {text}`")
    return arenas[0]


def is_arena(path):
    """Why only regular files, and no links: to open a device may change something."""
    try:
        if not stat.S_ISREG(os.lstat(path).st_mode):
            return False
        handle = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK | getattr(os, "O_NOFOLLOW", 0))
    except OSError:
        return False
    with open(handle, "rb") as file:
        return file.read(len(MAGIC)) == MAGIC
