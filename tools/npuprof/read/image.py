# SPDX-License-Identifier: MIT
"""Opens a trace file. npuprof-convert turns an image into JSON, and gives automatic spans the names of their
functions."""

import mmap
import os
import subprocess
import sys
import tempfile

from ..base import built
from ..base.files import open_plain, plain_path
from ..base.messages import Refused
from .database import MAGIC
from .own_layout import HEAD

PACKED = {b"\x28\xb5\x2f\xfd": "zstd -d", b"\xfd7zXZ": "xz -d", b"PK\3\4": "unzip", b"BZh": "bunzip2"}
NAMES = "npuprof-convert: names of functions: "      # how its lines about them begin
symbol_options = []      # what the user says about where names of functions are, for npuprof-convert
told = set()             # what was said about names; once is enough for all traces


def is_json(head):
    """True if a file that begins with `head` is JSON."""
    return head.lstrip(b" \t\r\n\xef\xbb\xbf")[:1] in (b"{", b"[")


def refuse_other(path, head):
    """Says what a file is that no program here reads, and what to do."""
    packed = next((how for mark, how in PACKED.items() if head.startswith(mark)), None)
    if packed:
        raise Refused(f"{path}:1: byte 0: packed, and only gzip is read: unpack it with {packed}")
    if head.startswith((b"\xff\xfe", b"\xfe\xff", b"\0\0\xfe\xff", b"{\0", b"[\0", b"\0{",
                        b"\0[")):
        bits = 32 if b"\0\0" in head[:4] else 16
        raise Refused(f"{path}:1: byte 0: UTF-{bits}, and a trace is UTF-8: "
                      f"iconv -f UTF-{bits} -t UTF-8 makes it that")
    if head.startswith(b"\n") and path.lower().endswith((".pftrace", ".perfetto-trace")):
        raise Refused(f"{path}:1: byte 0: Perfetto's own format is only written: give what it was made of")


def converter():
    """The path of npuprof-convert; None: there is none."""
    return built.program("npuprof-convert")


def has_addresses(file, head):
    """True if it is JSON of npuprof whose automatic spans have addresses for names: then it has modules."""
    if not head.startswith(HEAD + b"\n"):
        return False
    with mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as data:
        end = data.rfind(b'\n],\n"displayTimeUnit"')
        return end >= 0 and data.find(b'"modules":[', end) >= 0


def is_addressed(path):
    """has_addresses() of a file by its path."""
    with open_plain(path) as file:
        return has_addresses(file, file.read(len(HEAD) + 1))


def add_symbol_arguments(parser):
    """The options of each command that shows names of functions."""
    names = parser.add_argument_group("names of functions of automatic spans (NPUPROF_AUTO)")
    names.add_argument("--symbols", action="append", metavar="FILE",
                       help="an ELF file with names, if its build id is that of a module that ran")
    names.add_argument("--debug-dir", action="append", metavar="DIR",
                       help="where modules and their debug files are: by path, by name, or as "
                            ".build-id/ab/cdef.debug; /usr/lib/debug is searched, too")


def take_symbol_arguments(arguments):
    symbol_options[:] = [word for option, values in (("--symbols", getattr(arguments, "symbols", None)),
                                                     ("--debug-dir", getattr(arguments, "debug_dir", None)))
                         for value in values or () for word in (option, value)]


def tell(lines):
    """Says, once, why functions have no name. Returns the other lines."""
    for line in lines:
        if line.startswith(NAMES) and line not in told:
            told.add(line)
            print(f"warning: {line.removeprefix('npuprof-convert: ')}", file=sys.stderr)
    return [line for line in lines if not line.startswith(NAMES)]


def opened(path):
    """Opens a trace; an image as JSON, and functions with their names. Returns (the file at its start, what
    the converter said about damage or "", the first bytes)."""
    try:
        file = open_plain(path)
        head = file.read(4096)
        file.seek(0)
    except OSError as error:
        raise Refused(f"{path}: cannot be read: {error.strerror}") from None
    if not head:
        raise Refused(f"{path}:1: byte 0: the file is empty")
    if head.startswith(MAGIC):
        raise Refused(f"{path}: this command takes no database: give the trace that it was made of")
    refuse_other(path, head)
    text = is_json(head) or b"span_id" in head.partition(b"\n")[0]
    tool, named = converter(), text and has_addresses(file, head)
    if named and not tool:
        tell([f"{NAMES}{path}: they need npuprof-convert: {built.remedy()}"])
    if not (named and tool) and (text or not (b"\0" in head or head.startswith(b"NPUPROF"))):
        return file, "", head
    file.close()
    if not tool:
        raise Refused(f"{path}: an image needs npuprof-convert: {built.remedy()}")
    with tempfile.TemporaryDirectory(prefix="npuprof-") as folder, plain_path(path) as plain:
        out = os.path.join(folder, "trace.json")
        done = subprocess.run([tool, "-o", out, *symbol_options, "--", plain], stdin=subprocess.DEVNULL,
                              stderr=subprocess.PIPE, text=True, errors="replace")
        lines = " ".join(tell(done.stderr.splitlines()))
        said = " ".join(lines.split()).removeprefix("npuprof-convert: ").replace(plain, path)
        if done.returncode not in (0, 1) or not os.path.exists(out):
            raise Refused(said or f"{path}: npuprof-convert ended with {done.returncode}")
        # The file stays open, for its arguments, after its folder is removed.
        file = open(out, "rb")
    if done.returncode:
        print(f"warning: {said}", file=sys.stderr)
    head = file.read(4096)
    file.seek(0)
    return file, said if done.returncode else "", head
