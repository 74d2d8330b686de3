# SPDX-License-Identifier: MIT
"""Turns an image into another form, by npuprof-convert."""

import glob
import os
import subprocess
import sys

from ..base.messages import Refused, show_progress
from ..read.image import converter


def is_image(path):
    try:
        with open(path, "rb") as file:
            head = file.read(4096)
    except OSError as error:
        raise Refused(f"{path}: cannot be read: {error.strerror}") from None
    return head.startswith(b"NPUPROF") or b"\0" in head


def convert_image(path, output):
    """By npuprof-convert; its exit code. Says on a terminal how much is written."""
    tool = converter()
    if not tool:
        raise Refused(f"{path}: an image needs npuprof-convert: run `make tools` first")
    process = subprocess.Popen([tool, path, "-o", output], stdin=subprocess.DEVNULL, stderr=subprocess.PIPE,
                               text=True,
                               errors="replace")
    pause, shown = 1, False
    try:
        while sys.stderr.isatty():
            try:
                process.wait(pause)
                break
            except subprocess.TimeoutExpired:
                pause, shown = 0.2, True
                # The converter writes under such a name, and renames.
                parts = glob.glob(os.path.join(glob.escape(os.path.dirname(output)),
                                               f"npuprof-{process.pid}-*.tmp"))
                size = sum(os.path.getsize(part) for part in parts if os.path.exists(part))
                show_progress(f"converting {path}: {size >> 20} MB written")
        said = process.communicate()[1]
    except BaseException:
        process.kill()
        process.wait()
        for part in glob.glob(os.path.join(glob.escape(os.path.dirname(output)),
                                           f"npuprof-{process.pid}-*.tmp")):
            os.unlink(part)
        raise
    if shown:
        show_progress("")
    sys.stderr.write(said)
    return process.returncode if process.returncode in (0, 1) else 2
