# SPDX-License-Identifier: MIT
"""What the subcommands of npuprof.py share: the refusal, and files read and written whole."""

import os


class Refused(Exception):
    """The input or output cannot be used. The text is one line: `file:line: what, where, what to do`."""


def read_bytes(path):
    try:
        with open(path, "rb") as file:
            return file.read()
    except OSError as error:
        raise Refused(f"{path}: cannot be read: {error.strerror}") from None


def write_whole(path, data):
    """Writes a temporary file and renames it, so that a failure leaves the old file and no half one.
    What is not a regular file (/dev/stdout, a fifo) is written in place."""
    target = os.path.realpath(path)
    in_place = os.path.exists(target) and not os.path.isfile(target)
    written = target if in_place else f"{target}.{os.getpid()}.tmp"
    try:
        with open(written, "wb") as file:
            file.write(data)
        if not in_place:
            os.replace(written, target)
    except OSError as error:
        if not in_place and os.path.exists(written):
            os.unlink(written)
        raise Refused(f"{path}: cannot be written: {error.strerror}") from None
