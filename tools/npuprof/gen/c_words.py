# SPDX-License-Identifier: MIT
"""What of a description C decides: words, limits and the fields of a ring. They are read from npuprof_npu.h,
so that they stand at one place."""

import re
import textwrap

from ..base.built import npu_header as header


def enumerators(family):
    """The words of an enumeration, in C's order: word -> (enumerator, what C says of it)."""
    found = re.findall(rf"^    (NPUPROF_NPU_{family}_(\w*[A-Z]))(?: = 0)?,(?: +/\*(.*?)\*/)?$", header(),
                       re.M | re.S)
    return {word.lower(): (name, " ".join(text.split())) for name, word, text in found}


def words(family):
    """word -> enumerator."""
    return {word: name for word, (name, _) in enumerators(family).items()}


def described(family, indent):
    """Lines of a manual: each word, and what C says of it."""
    width = 2 + max(map(len, enumerators(family)), default=0)
    return "\n".join(
        textwrap.fill(text, 110, initial_indent=" " * indent + f'"{word}"'.ljust(width + 1),
                      subsequent_indent=" " * (indent + width + 1))
        for word, (_, text) in enumerators(family).items())


def limit(name):
    """How many of something C takes."""
    return int(re.search(rf"\bNPUPROF_NPU_{name} = (\d+)", header())[1])


def ring_fields():
    """The members of npuprof_npu_ring that say where a value lies in an entry."""
    listed = re.search(r"#define NPUPROF_NPU_PLAIN_VALUES_\(X\)(.*?[^\\])\n", header(), re.S)[1]
    return tuple(re.findall(r"X\(\w+, (\w+)\)", listed))
