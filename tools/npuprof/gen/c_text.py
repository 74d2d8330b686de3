# SPDX-License-Identifier: MIT
"""C in texts: numbers, strings, comments and names."""

import re


def number(value, width=32):
    """A C literal for use with words of `width` bits. Why: ~mask and value << pos need the type of a wide
    word."""
    return f"{value}u" if value < 2**32 and width <= 32 else f"{value}ull"


def hexadecimal(value, width=32):
    return f"{value:#x}u" if value < 2**32 and width <= 32 else f"{value:#x}ull"


def c_string(text):
    """A C string literal. Bytes above ASCII become octal escapes, and no trigraph is left."""
    text = text.replace("\\", "\\\\").replace('"', '\\"').replace("?", "\\?")
    return '"' + "".join(chr(byte) if byte < 128 else f"\\{byte:o}" for byte in text.encode()) + '"'


def comment(*parts):
    """A comment on one line. Texts of SVD files come as they are."""
    text = "".join(c if c.isprintable() else "?" for c in " ".join(part for part in parts if part))
    while "*/" in text or "/*" in text:
        text = text.replace("*/", "* /").replace("/*", "/ *")
    return f"/* {text} */"


def c_name(*parts):
    """The capitals, digits and single underscores of an identifier behind a prefix, from any texts."""
    return "_".join(re.sub(r"[^A-Z0-9]+", "_", part.upper()).strip("_") or "X" for part in parts)


def clashes(name):
    """Would a device of that name have the names of npuprof's own?"""
    return re.match(r"npuprof(_|$)", name.lower())


def unfit_for_comment(text):
    """What keeps a text out of a C comment, and what to do; None if nothing does."""
    if not text.isprintable():
        return "a control or invisible character, use plain text on one line"
    if "*/" in text or "/*" in text:
        return "a C comment mark, take it out"
    if text.endswith(("\\", "??/")):
        return "a backslash (or its trigraph) at the end, take it out"
    return None
