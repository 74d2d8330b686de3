# SPDX-License-Identifier: MIT
"""A second reader of images, written from the specification alone: src/format/layouts.h leads through it.

read(bytes, elf=None) gives a second_host.Trace. It raises Unreadable, with a sentence, for what is no image
or has a newer format."""
import struct

from image import second_firmware, second_host

MAGIC = b"NPUPROF\n"
ENDIAN = 0x01020304
FORMAT = 1
ARENA, COMPACT, PARTS, CODED = 1, 3, 4, 5


class Unreadable(Exception):
    pass


def start_of(data):
    """(byte order, layout) of an image."""
    for order in "<>":
        at = 16 if data[:4] == struct.pack(order + "I", second_firmware.STREAM_MARK) else 0
        if data[at:at + 8] == MAGIC and struct.unpack_from(order + "I", data, at + 8)[0] == ENDIAN:
            form, layout = struct.unpack_from(order + "II", data, at + 12)
            if form > FORMAT:
                raise Unreadable(f"this image has format {form}, and this reader knows {FORMAT}")
            return order, layout
    raise Unreadable("no image: it does not begin with its magic")


def read(data, elf=None):
    order, layout = start_of(data)
    if layout == ARENA:
        return second_host.read_arena(data, order)
    if layout == CODED:
        return second_host.read_coded(data, order)
    if layout in (COMPACT, PARTS):
        return second_firmware.read(data, order, layout, elf)
    raise Unreadable(f"layout {layout} is not known")
