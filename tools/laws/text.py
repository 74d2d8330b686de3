# SPDX-License-Identifier: MIT
"""Every text: UTF-8, no tabs, no white space at the end, nothing left open, a licence line."""

import re

CODE = (".c", ".h", ".cpp", ".py", ".js", ".mjs")
SAYS_IT_ITSELF = ("tools/laws/text.py", "test_style.py")      # these name what they look for


def text(tree):
    for name, content in tree.texts.items():
        if content is None:
            yield name, 1, "not UTF-8"
            continue
        for number, line in enumerate(content.split("\n"), 1):
            if line[-1:] in (" ", "\t", "\r"):
                yield name, number, "white space at the end"
            if "\t" in line and name.endswith(CODE):
                yield name, number, "a tab"
            if re.search(r"\b(?:TODO|FIXME|XXX|HACK)\b", line) and not name.endswith(SAYS_IT_ITSELF):
                yield name, number, "an open end"
        if content and not content.endswith("\n"):
            yield name, content.count("\n") + 1, "no newline at the end"
        licensed = re.search("SPDX-License-Identifier: ", content[:1500]) or "enerated" in content[:500]
        data = "/data/" in name
        if name.endswith(CODE) and content and not data and not licensed:
            yield name, 1, "no licence line"
