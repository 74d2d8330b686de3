# SPDX-License-Identifier: MIT
"""Law 2: join.py is short, and the two headers are what it makes of src/."""

import subprocess
import sys

JOIN_LINES = 100


def short(tree):
    lines = (tree.texts.get("tools/join.py") or "").count("\n")
    if lines >= JOIN_LINES:
        yield "tools/join.py", lines, f"join.py has {lines} lines, fewer than {JOIN_LINES} wanted"


def joined(root):
    """Joins again, without writing."""
    done = subprocess.run([sys.executable, root / "tools" / "join.py", "--check"],
                          capture_output=True, text=True, check=False)
    if done.returncode:
        yield "src/npuprof.h", 1, done.stderr.strip()
