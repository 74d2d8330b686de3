# SPDX-License-Identifier: MIT
"""Reads and writes whole files, and checks the name of an output. Files packed with gzip are read like
others; an output whose name ends in .gz is packed."""

import contextlib
import gzip
import os
import pathlib
import shutil
import tempfile
import zlib

from .messages import Refused

# `make tools` puts the C part of the tools here.
BUILD = pathlib.Path(__file__).resolve().parents[3] / "build"


def open_plain(path):
    """Opens a file to read bytes; one packed with gzip as a temporary file without a name, unpacked."""
    place = 0
    try:
        file = open(path, "rb")
        if file.read(2) != b"\x1f\x8b":
            file.seek(0)
            return file
        file.seek(0)
        plain = tempfile.TemporaryFile(prefix="npuprof-")
        with file, gzip.GzipFile(fileobj=file) as packed:
            while True:
                place = file.tell()
                block = packed.read(1 << 20)
                if not block:
                    break
                plain.write(block)
    except (EOFError, zlib.error, gzip.BadGzipFile) as error:
        raise Refused(f"{path}: byte {place}: damaged gzip data: {error}; "
                      "pack it again, or unpack what is there with zcat") from None
    except OSError as error:
        raise Refused(f"{path}: cannot be read: {error.strerror}") from None
    plain.seek(0)
    return plain


@contextlib.contextmanager
def plain_path(path):
    """The path of a file for other programs; of one packed with gzip that of an unpacked copy, until the
    block ends."""
    with open_plain(path) as file:
        if os.path.samestat(os.fstat(file.fileno()), os.stat(path)):
            yield path
            return
        with tempfile.NamedTemporaryFile(prefix="npuprof-") as copy:
            shutil.copyfileobj(file, copy, 1 << 20)
            copy.flush()
            yield copy.name


def read_bytes(path):
    try:
        with open_plain(path) as file:
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
    if not special and not path.lower().removesuffix(".gz").endswith(endings):
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
    is written in place. A name that ends in .gz: what is written is packed; equal content, equal bytes."""
    target = os.path.realpath(path)
    in_place = os.path.exists(target) and not os.path.isfile(target)
    written = target if in_place else f"{target}.{os.getpid()}.tmp"
    try:
        with open(written, "wb") as file:
            if path.lower().endswith(".gz"):
                # Why 6: 9 takes four times as long for 2 % less.
                with gzip.GzipFile("", "wb", 6, file, mtime=0) as packed:
                    yield packed
            else:
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
