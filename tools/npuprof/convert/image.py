# SPDX-License-Identifier: MIT
"""Turns an image into another form, by the C program npuprof-convert."""

import glob
import os
import shutil
import subprocess
import sys
import tempfile

from ..base.files import open_plain, plain_path, whole_file
from ..base.messages import Refused, show_progress
from ..read.image import converter, symbol_options


def is_image(path):
    """True if the file is an image of npuprof, or binary: then the converter says what is wrong."""
    try:
        with open_plain(path) as file:
            head = file.read(4096)
    except OSError as error:
        raise Refused(f"{path}: cannot be read: {error.strerror}") from None
    return head.startswith(b"NPUPROF") or b"\0" in head


def convert_image(path, output):
    """Converts, and shows on a terminal how much is written. Returns the exit code of npuprof-convert."""
    tool = converter()
    if not tool:
        raise Refused(f"{path}: an image needs npuprof-convert: run `make tools` first")
    with plain_path(path) as plain:
        if not output.lower().endswith(".gz"):
            return run_converter(tool, plain, path, output)
        with tempfile.TemporaryDirectory(prefix="npuprof-") as folder:
            unpacked = os.path.join(folder, os.path.basename(output)[:-3])
            code = run_converter(tool, plain, path, unpacked)
            if code != 2:
                with open(unpacked, "rb") as written, whole_file(output) as file:
                    shutil.copyfileobj(written, file, 1 << 20)
    return code


def run_converter(tool, plain, path, output):
    """plain: the image, unpacked; path: what the user calls it."""
    process = subprocess.Popen([tool, plain, "-o", output, *symbol_options], stdin=subprocess.DEVNULL,
                               stderr=subprocess.PIPE, text=True, errors="replace")
    # The converter writes files of such names, and renames them at the end.
    unfinished = os.path.join(glob.escape(os.path.dirname(output)), f"npuprof-{process.pid}-*.tmp")
    try:
        if sys.stderr.isatty():
            watch(process, path, unfinished)
        said = process.communicate()[1]
    except BaseException:
        process.kill()
        process.wait()
        for part in glob.glob(unfinished):
            os.unlink(part)
        raise
    sys.stderr.write(said.replace(plain, path))
    return process.returncode if process.returncode in (0, 1) else 2


def watch(process, path, unfinished):
    """Shows how much is written until the process ends."""
    pause = 1
    while True:
        try:
            process.wait(pause)
            break
        except subprocess.TimeoutExpired:
            pause = 0.2
            size = sum(os.path.getsize(part) for part in glob.glob(unfinished) if os.path.exists(part))
            show_progress(f"converting {path}: {size >> 20} MB written")
    if pause < 1:
        show_progress("")
