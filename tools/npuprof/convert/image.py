# SPDX-License-Identifier: MIT
"""Turns an image into another form, by the C program npuprof-convert."""

import contextlib
import os
import shutil
import subprocess
import sys
import tempfile

from ..base.built import remedy
from ..base.files import in_place, open_behind, open_plain, plain_path, whole_file, whole_folder
from ..base.messages import Refused, show_progress
from ..read.foreign import file_of
from ..read.image import converter, refuse_other, symbol_options


def is_image(path):
    """True if the file is an image of npuprof, or binary and nobody's: then the converter says what is
    wrong."""
    try:
        with open_plain(path) as file:
            head = file.read(4096)
    except OSError as error:
        raise Refused(f"{path}: cannot be read: {error.strerror}") from None
    refuse_other(path, head)
    return head.startswith(b"NPUPROF") or b"\0" in head and not file_of(head)


def convert_image(path, output, behind=None):
    """Converts, and shows on a terminal how much is written. behind(file): writes what comes behind it.
    Returns the exit code of npuprof-convert."""
    tool = converter()
    if not tool:
        raise Refused(f"{path}: an image needs npuprof-convert: {remedy()}")
    folder, name = os.path.split(output)
    packed = name.lower().endswith(".gz")
    with plain_path(path) as plain:
        if in_place(output) and not packed:
            return run_converter(tool, plain, path, output, output, behind)
        with tempfile.TemporaryDirectory(prefix="npuprof-") if packed else whole_folder(folder) as private:
            made = os.path.join(private, name.removesuffix(name[-3:]) if packed else name)
            code = run_converter(tool, plain, path, made, output, behind)
            if packed and code != 2:
                with open(made, "rb") as written, whole_file(output) as file:
                    shutil.copyfileobj(written, file, 1 << 20)
    return code


def run_converter(tool, plain, path, made, output, behind):
    """plain: the image, unpacked; path: what the user calls it; made: the file, or the output itself."""
    process = subprocess.Popen([tool, "-o", made, *symbol_options, "--", plain], stdin=subprocess.DEVNULL,
                               stderr=subprocess.PIPE, text=True, errors="replace")
    try:
        if sys.stderr.isatty() and made != output:
            watch(process, path, os.path.dirname(made))
        said = process.communicate()[1]
    except BaseException:
        process.kill()
        process.wait()
        raise
    for ours, theirs in ((plain, path), (made, output), (os.path.dirname(made), os.path.dirname(output))):
        said = said.replace(ours, theirs) if made != output or ours == plain else said
    sys.stderr.write(said)
    if process.returncode not in (0, 1):
        return 2
    if behind:
        with open_behind(made) as file:
            behind(file)
    return process.returncode


def watch(process, path, folder):
    """Shows how much is written into the private folder until the process ends."""
    pause = 2
    while True:
        try:
            process.wait(pause)
            break
        except subprocess.TimeoutExpired:
            pause = 0.2
            with contextlib.suppress(OSError), os.scandir(folder) as files:
                size = sum(one.stat().st_size for one in files)
                show_progress(f"converting {path}: {size >> 20} MB written")
    if pause < 1:
        show_progress("")
