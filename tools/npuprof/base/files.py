# SPDX-License-Identifier: MIT
"""Reads and writes whole files, and checks the name of an output."""

import contextlib
import os
import pathlib

from .messages import Refused

# `make tools` puts the C part of the tools here.
BUILD = pathlib.Path(__file__).resolve().parents[3] / "build"


def read_bytes(path):
    try:
        with open(path, "rb") as file:
            return file.read()
    except OSError as error:
        raise Refused(f"{path}: cannot be read: {error.strerror}") from None


def check_output(path, endings, *inputs):
    """Refuses an output that is one of the inputs (None is skipped) or has another extension.

    Call it before the work begins."""
    for other in inputs:
        try:
            if other is not None and os.path.samefile(path, other):
                raise Refused(f"{path}: is the input {other}, write to another file")
        except OSError:
            pass
    special = os.path.exists(path) and not os.path.isfile(path) or path.startswith("/dev/")
    if not special and not path.lower().endswith(endings):
        raise Refused(f"{path}: unknown extension, write {' or '.join(endings)}")


def make_folder(folder):
    """Makes a folder for outputs, with those around it."""
    try:
        os.makedirs(folder, exist_ok=True)
    except OSError as error:
        raise Refused(f"{folder}: cannot be made: {error.strerror}") from None


@contextlib.contextmanager
def whole_file(path):
    """A file to write bytes to. It is a temporary file until the block ends without an exception; then it is
    renamed to `path`. A failure leaves the old file as it was. What is no regular file (/dev/stdout, a fifo)
    is written in place."""
    target = os.path.realpath(path)
    in_place = os.path.exists(target) and not os.path.isfile(target)
    written = target if in_place else f"{target}.{os.getpid()}.tmp"
    try:
        with open(written, "wb") as file:
            yield file
        if not in_place:
            os.replace(written, target)
    except BaseException as error:
        if not in_place and os.path.exists(written):
            os.unlink(written)
        if isinstance(error, OSError) and not isinstance(error, BrokenPipeError):
            raise Refused(f"{path}: cannot be written: {error.strerror}") from None
        raise


def write_whole(path, data):
    """Writes the file completely, or not at all."""
    with whole_file(path) as file:
        file.write(data)
