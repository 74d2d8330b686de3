# SPDX-License-Identifier: MIT
"""Law 2: join.py is dumb, and the two headers are what it makes of src/."""



JOIN_LINES = 100


def joined(tree):
    join = tree.texts.get("tools/join.py")
    if join is None:
        return
    lines = join.count("\n")
    if lines >= JOIN_LINES:
        yield "tools/join.py", lines, f"{lines} lines, fewer than {JOIN_LINES} wanted"
