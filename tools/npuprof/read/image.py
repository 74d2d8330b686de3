# SPDX-License-Identifier: MIT
"""Opens a trace file. npuprof-convert turns an image into JSON."""

import os
import shutil
import subprocess
import sys
import tempfile

from ..base.files import BUILD, open_plain, plain_path
from ..base.messages import Refused


def is_json(head):
    """True if a file that begins with `head` is JSON."""
    return head.lstrip(b" \t\r\n\xef\xbb\xbf")[:1] in (b"{", b"[")


def converter():
    """The path of npuprof-convert; None: there is none."""
    built = BUILD / "npuprof-convert"
    return str(built) if built.exists() else shutil.which("npuprof-convert")


def opened(path):
    """Opens a trace; an image as JSON. Returns (the file at its start, what the converter said about damage
    or "", the first bytes)."""
    try:
        file = open_plain(path)
        head = file.read(4096)
        file.seek(0)
    except OSError as error:
        raise Refused(f"{path}: cannot be read: {error.strerror}") from None
    if not head:
        raise Refused(f"{path}:1: byte 0: the file is empty")
    text = is_json(head) or b"span_id" in head.partition(b"\n")[0]
    if text or not (b"\0" in head or head.startswith(b"NPUPROF")):
        return file, "", head
    file.close()
    tool = converter()
    if not tool:
        raise Refused(f"{path}: an image needs npuprof-convert: run `make tools` first")
    with tempfile.TemporaryDirectory(prefix="npuprof-") as folder, plain_path(path) as plain:
        out = os.path.join(folder, "trace.json")
        done = subprocess.run([tool, plain, "-o", out], stdin=subprocess.DEVNULL, stderr=subprocess.PIPE,
                              text=True, errors="replace")
        said = " ".join(done.stderr.split()).removeprefix("npuprof-convert: ").replace(plain, path)
        if done.returncode not in (0, 1) or not os.path.exists(out):
            raise Refused(said or f"{path}: npuprof-convert ended with {done.returncode}")
        # The file stays open, for its arguments, after its folder is removed.
        file = open(out, "rb")
    if done.returncode:
        print(f"warning: {said}", file=sys.stderr)
    head = file.read(4096)
    file.seek(0)
    return file, said if done.returncode else "", head
