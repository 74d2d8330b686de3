# SPDX-License-Identifier: MIT
"""Opens a trace file; an image becomes JSON, by npuprof-convert."""

import os
import shutil
import subprocess
import sys
import tempfile

from ..base.files import BUILD
from ..base.messages import Refused


def is_json(head):
    """Whether a file that begins so is JSON. Why not by its first line: a file on one line holds every word."""
    return head.lstrip(b" \t\r\n\xef\xbb\xbf")[:1] in (b"{", b"[")


def converter():
    """The path of npuprof-convert."""
    built = BUILD / "npuprof-convert"
    return str(built) if built.exists() else shutil.which("npuprof-convert")


def opened(path):
    """(a trace file at its start, what the converter said of damage or "", its first bytes); images as JSON."""
    try:
        file = open(path, "rb")
        head = file.read(4096)
        file.seek(0)
    except OSError as error:
        raise Refused(f"{path}: cannot be read: {error.strerror}") from None
    if not head:
        raise Refused(f"{path}:1: byte 0: the file is empty")
    if is_json(head) or b"span_id" in head.partition(b"\n")[0] or not (b"\0" in head or head.startswith(b"NPUPROF")):
        return file, "", head
    file.close()
    tool = converter()
    if not tool:
        raise Refused(f"{path}: an image needs npuprof-convert: run `make tools` first")
    with tempfile.TemporaryDirectory(prefix="npuprof-") as folder:
        out = os.path.join(folder, "trace.json")
        done = subprocess.run([tool, path, "-o", out], stdin=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True, errors="replace")
        said = " ".join(done.stderr.split()).removeprefix("npuprof-convert: ")
        if done.returncode not in (0, 1) or not os.path.exists(out):
            raise Refused(said or f"{path}: npuprof-convert ended with {done.returncode}")
        # Why open: the file lives on without a name, for its arguments.
        file = open(out, "rb")
    if done.returncode:
        print(f"warning: {said}", file=sys.stderr)
    head = file.read(4096)
    file.seek(0)
    return file, said if done.returncode else "", head
