# SPDX-License-Identifier: MIT
"""Pieces of C: numbers, strings, comments and names."""

import re


def number(value, width=32):
    """A C literal for words of `width` bits. Why its type: ~mask and value << pos need that of a wide
    word."""
    return f"{value}u" if value < 2**32 and width <= 32 else f"{value}ull"


def hexadecimal(value, width=32):
    return f"{value:#x}u" if value < 2**32 and width <= 32 else f"{value:#x}ull"


def c_string(text):
    """A C string literal. Bytes above ASCII become octal escapes, and no trigraph is left."""
    text = text.replace("\\", "\\\\").replace('"', '\\"').replace("?", "\\?")
    return '"' + "".join(chr(byte) if byte < 128 else f"\\{byte:o}" for byte in text.encode()) + '"'


def comment(*parts):
    """A comment on one line, from any texts. What would end it is changed."""
    text = "".join(c if c.isprintable() else "?" for c in " ".join(part for part in parts if part))
    while "*/" in text or "/*" in text:
        text = text.replace("*/", "* /").replace("/*", "/ *")
    return f"/* {text} */"


def c_name(*parts):
    """An identifier to go behind a prefix, from any texts: capitals, digits and single underscores."""
    return "_".join(re.sub(r"[^A-Z0-9]+", "_", part.upper()).strip("_") or "X" for part in parts)


def clashes(name):
    """True if the names of such a device would be npuprof's own."""
    return re.match(r"npuprof(_|$)", name.lower())


def unfit_for_comment(text):
    """What must not stand in a C comment, and what to do about it; None if the text is fine."""
    if not text.isprintable():
        return "a control or invisible character, use plain text on one line"
    if "*/" in text or "/*" in text:
        return "a C comment mark, take it out"
    if text.endswith(("\\", "??/")):
        return "a backslash (or its trigraph) at the end, take it out"
    return None
