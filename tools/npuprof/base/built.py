# SPDX-License-Identifier: MIT
"""The C parts of the tools: where they are, and what to do where they are not.

`make tools` puts them into build/ of a clone, an installation into the folder built/ of the package, beside
npuprof_npu.h and a file VERSION. Without them everything but images works, and reading takes longer."""

import functools
import pathlib
import re
import shutil
import sys

PACKAGE = pathlib.Path(__file__).resolve().parents[1]
CLONE = PACKAGE.parents[1]
INSTALLED = PACKAGE / "built"
BUILD = INSTALLED if INSTALLED.is_dir() else CLONE / "build"
SLOW_BYTES = 1 << 22            # a smaller trace is read fast enough without C


def program(name):
    """The path of a program; None: there is none."""
    path = BUILD / name
    return str(path) if path.exists() else shutil.which(name)


def remedy():
    """What to do for a C part that is missing."""
    if BUILD == INSTALLED:
        return "npuprof was installed without a C compiler: install one, then npuprof again"
    return "run `make tools` first"


@functools.cache
def npu_header():
    """The text of npuprof_npu.h, of which the tools take words and limits."""
    return ((BUILD if BUILD == INSTALLED else CLONE) / "npuprof_npu.h").read_text(encoding="utf-8")


@functools.cache
def version():
    """The version of this npuprof."""
    if BUILD == INSTALLED:
        return (BUILD / "VERSION").read_text(encoding="ascii").strip()
    return re.search(r'NPUPROF_VERSION_STRING "(.*)"', (CLONE / "npuprof.h").read_text(encoding="utf-8"))[1]


@functools.cache
def say_slow():
    """Says, once, that the loops run in Python."""
    print(f"note: without its C part npuprof takes about four times as long: {remedy()}", file=sys.stderr)
