# SPDX-License-Identifier: MIT
"""Law 2: join.py is short, and the two headers are what it makes of src/."""

import re
import subprocess
import sys

from .tree import ROOTS

JOIN_LINES = 100


def short(tree):
    lines = (tree.texts.get("tools/join.py") or "").count("\n")
    if lines >= JOIN_LINES:
        yield "tools/join.py", lines, f"join.py has {lines} lines, fewer than {JOIN_LINES} wanted"


def tags(tree):
    """The list of tags in the doc block has each room that is joined, and no other."""
    for root in (root for root in ROOTS if root in tree.texts):
        text = tree.texts[root]
        listed = set(re.findall(r">>(\w+)/", text.partition("TAGS")[2].partition("====")[0]))
        rooms = {file.split("/")[1] for _, file in tree.includes(root) if file in tree.parts}
        if listed != rooms:
            yield root, 1, f"TAGS and the parts differ in {', '.join(sorted(listed ^ rooms))}"


def joined(root):
    """Joins again, without writing."""
    done = subprocess.run([sys.executable, root / "tools" / "join.py", "--check"],
                          capture_output=True, text=True, check=False)
    if done.returncode:
        yield "src/npuprof.h", 1, done.stderr.strip()
