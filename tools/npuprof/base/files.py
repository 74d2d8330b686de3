# SPDX-License-Identifier: MIT
"""Reads and writes whole files, and checks the name of an output. Files packed with gzip are read like
others; an output whose name ends in .gz is packed."""

import contextlib
import errno
import gzip
import os
import re
import secrets
import shutil
import stat
import tempfile
import zlib

from .messages import Refused

UNPACKED_BYTES, UNPACKED_TIMES = 1 << 28, 64     # a packed file may become the larger of the two
UNPACK_MAX = "NPUPROF_UNPACK_MAX"               # an environment variable with another limit


def unpacked_limit(file):
    """How many bytes a packed file may become. Why: gzip makes a thousandth of a file of zeros."""
    said = os.environ.get(UNPACK_MAX)
    if not said:
        return max(UNPACKED_BYTES, UNPACKED_TIMES * os.fstat(file.fileno()).st_size)
    number = re.fullmatch(r"([0-9]{1,18})([KMGT]?)", said)
    if not number:
        raise Refused(f"{UNPACK_MAX}={said}: not a number of bytes, as 500M or 16G")
    return int(number[1]) << 10 * " KMGT".index(number[2] or " ")


piped = {}             # the path of a pipe -> a temporary file with all that came: a pipe can be read once


def refuse_nameless(path):
    """No other sentence could show such a name."""
    if not path:
        raise Refused("the name of a file is empty: is it a variable of the shell that is not set?")


def open_input(path):
    """Opens an input to read bytes, from its start. "-" is standard input; a pipe is read to its end."""
    refuse_nameless(path)
    if path in piped:
        return again(piped[path])
    file = open(0, "rb", closefd=False) if path == "-" else open(path, "rb")
    mode = os.fstat(file.fileno()).st_mode
    if stat.S_ISREG(mode):
        return again(file) if path == "-" else file
    if stat.S_ISCHR(mode) or stat.S_ISBLK(mode):
        what = "a terminal" if file.isatty() else "a device"
        raise Refused(f"{path}: is {what}, and no trace comes from there: name a file or a pipe")
    with file:
        piped[path] = tempfile.TemporaryFile(prefix="npuprof-")
        shutil.copyfileobj(file, piped[path], 1 << 20)
        piped[path].flush()
    return again(piped[path])


def again(file):
    """The same file with a position of its own."""
    with contextlib.suppress(OSError):
        return open(f"/proc/self/fd/{file.fileno()}", "rb")
    copy = tempfile.TemporaryFile(prefix="npuprof-")
    file.seek(0)
    shutil.copyfileobj(file, copy, 1 << 20)
    copy.seek(0)
    return copy


def open_plain(path):
    """Opens a file to read bytes; one packed with gzip as a temporary file without a name, unpacked."""
    place = 0
    try:
        file = open_input(path)
        if file.read(2) != b"\x1f\x8b":
            file.seek(0)
            return file
        file.seek(0)
        plain, limit = tempfile.TemporaryFile(prefix="npuprof-"), unpacked_limit(file)
        with file, gzip.GzipFile(fileobj=file) as packed:
            while True:
                place = file.tell()
                block = packed.read(1 << 20)
                if not block:
                    break
                plain.write(block)
                if plain.tell() > limit:
                    raise Refused(f"{path}: unpacked it is larger than {limit} bytes, more than traces are: "
                                  f"if you trust it, unpack it yourself, or set {UNPACK_MAX}, as in 16G")
    except (EOFError, zlib.error, gzip.BadGzipFile) as error:
        raise Refused(f"{path}: byte {place}: damaged gzip data: {error}; "
                      "pack it again, or unpack what is there with zcat") from None
    except OSError as error:
        raise Refused(f"{path}: cannot be read: {error.strerror}") from None
    plain.seek(0)
    return plain


@contextlib.contextmanager
def plain_path(path):
    """The path of a file for other programs; of a pipe, and of what gzip packed, that of a plain copy, until
    the block ends."""
    with open_plain(path) as file:
        if path != "-" and path not in piped and os.path.samestat(os.fstat(file.fileno()), os.stat(path)):
            yield path
            return
        with tempfile.NamedTemporaryFile(prefix="npuprof-") as copy:
            shutil.copyfileobj(file, copy, 1 << 20)
            copy.flush()
            yield copy.name


def read_bytes(path, most=-1):
    """The bytes of a file, or the first ones."""
    try:
        with open_plain(path) as file:
            return file.read(most)
    except OSError as error:
        raise Refused(f"{path}: cannot be read: {error.strerror}") from None


def check_output(path, endings, *inputs):
    """Refuses an output that is one of the inputs (None is skipped) or has another extension.

    Call it before the work begins."""
    refuse_nameless(path)
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


# ---- Outputs. All files that a command writes go through whole_file() or whole_folder(): what is written has
# a private name in the folder of the output, and gets its own when it is complete.


def in_place(path):
    """Is this written where it is, as a device or a fifo, also behind a link? Else it is replaced."""
    return path.startswith(("/dev/std", "/dev/fd/")) or os.path.exists(path) and not os.path.isfile(path)


def open_behind(path):
    """Opens a file to write behind its end: one in a private folder, or what is written in place."""
    return open(path, "ab")


def mode_of(path):
    """The permissions of the file that an output replaces; None: there is none."""
    return stat.S_IMODE(os.stat(path).st_mode) & 0o777 if os.path.isfile(path) else None


def private_name(path):
    """A name beside `path` that cannot be foreseen, and that nothing has."""
    name = os.path.join(os.path.dirname(path), f".npuprof-{secrets.token_hex(8)}.tmp")
    with refusing(path):
        if os.path.lexists(name):
            raise FileExistsError(errno.EEXIST, os.strerror(errno.EEXIST))
    return name


def create(path, name):
    """A new file for the output `path`, with that private name beside it. What lies there is neither followed
    nor written to."""
    mode, flags = mode_of(path), getattr(os, "O_NOFOLLOW", 0)
    first = 0o666 if mode is None else 0o600
    file = open(name, "xb", opener=lambda name, own: os.open(name, own | flags, first))
    if mode is not None:
        os.chmod(name, mode)
    return file


@contextlib.contextmanager
def refusing(path):
    """An error of the system is a sentence about this output."""
    try:
        yield
    except BrokenPipeError:
        raise
    except OSError as error:
        raise Refused(f"{path}: cannot be written: {error.strerror or error}") from None


def renamed(written, path):
    """Gives a whole file the name of an output, and the mode of the file that it replaces."""
    mode = mode_of(path)
    if mode is not None:
        os.chmod(written, mode)
    os.replace(written, path)


@contextlib.contextmanager
def whole_folder(folder):
    """A private folder inside `folder` for files that other programs write by their names. At the end of the
    block each file in it moves to `folder`; after an exception none does."""
    with refusing(folder), tempfile.TemporaryDirectory(prefix=".npuprof-", dir=folder or ".") as private:
        yield private
        for name in sorted(os.listdir(private)):
            renamed(os.path.join(private, name), os.path.join(folder, name))


def check_new_folder(folder):
    """Refuses a folder that new_folder() would not write. Call it before the work begins."""
    folder = folder.rstrip(os.sep)         # Why: a link with a slash behind it is the folder that it names
    with refusing(folder):
        if os.path.lexists(folder) and (os.path.islink(folder) or not os.path.isdir(folder)
                                        or os.listdir(folder)):
            raise Refused(f"{folder}: is there already, and this makes a new folder: name another one")


@contextlib.contextmanager
def new_folder(folder):
    """A function that opens new files by name, to write bytes to. They lie in a private folder until the
    block ends; then that gets its name, with all of them. After an exception it goes. What lies at the name
    meanwhile is neither followed nor replaced, but for an empty folder."""
    folder = folder.rstrip(os.sep)
    private = private_name(folder)
    try:
        with refusing(folder):
            os.mkdir(private)
            yield lambda name: open(os.path.join(private, name), "xb")
            os.rename(private, folder)
    except BaseException:
        shutil.rmtree(private, ignore_errors=True)
        raise


@contextlib.contextmanager
def whole_file(path):
    """A file to write bytes to. It is a temporary file until the block ends without an exception; then it is
    renamed to `path`, with the mode of the file that it replaces. A link there gives way, it is not followed.
    A failure leaves the old file as it was. What is no regular file (/dev/stdout, a fifo)
    is written in place. A name that ends in .gz: what is written is packed; equal content, equal bytes."""
    own = None if in_place(path) else private_name(path)
    try:
        with refusing(path), create(path, own) if own else open(path, "wb") as file:
            if path.lower().endswith(".gz"):
                # Why 6: 9 takes four times as long for 2 % less.
                with gzip.GzipFile("", "wb", 6, file, mtime=0) as packed:
                    yield packed
            else:
                yield file
            file.close()                # tells of late errors
            if own:
                os.replace(own, path)
    except BaseException:               # Why around all of it: Ctrl-C may come right behind the creation
        if own:
            with contextlib.suppress(OSError):
                os.unlink(own)
        raise


def write_whole(path, data):
    """Writes the file completely, or not at all."""
    with whole_file(path) as file:
        file.write(data)
