# SPDX-License-Identifier: MIT
"""The words of src/record/attach.h in another process: finds each copy of npuprof there, begins and ends its
recording, and copies its arena. src/record/attach.h says what is stored in which order, and why that is
harmless."""

import contextlib
import os
import secrets
import struct
import sys
import time

from ..base.messages import Refused
from .arena import cut, header
from .process import Gone

MAGIC, LAYOUT = b"npuprof-attach-", b"1"
UNTIL, VERSION, BYTES, OWNED_AT, OWN, ASKED, LEVEL, TOOL, BEAT, ANSWERS, STATE, SELF = 16, *range(24, 68, 4)
START, STOP, STREAM = 1, 2, 2
OPEN, CLOSED, NO_SITE = b"\x7f", b"\x80", b"\xff"      # in the highest byte of a word
PATIENCE = 1.2                  # seconds that a mark may take to come


def find(process):
    """All copies that lead: that have an arena of their own. Raises Refused if there is none.
    Why only objects with code: another file may be a device, and a look at it can change something."""
    copies, others = [], set()
    code = {inode for _, _, may, inode, path in process.maps if "x" in may and path and path[0] != "["}
    for start, end, may, inode, path in process.maps:
        if may != "rw-p" or inode not in code:
            continue
        data, at = process.read(start, end - start), -1
        while (at := data.find(MAGIC, at + 1)) >= 0:
            there = data[at:at + SELF + 8].ljust(SELF + 8)
            version, size = struct.unpack_from("=2I", there, VERSION)
            size = (size - SELF) // 4
            if there[15:16] != LAYOUT or version > 0xFFFFFF:
                others.add(os.path.basename(path))
            elif size in (4, 8) and int.from_bytes(there[SELF:SELF + size], sys.byteorder) == start + at:
                copies.append(Copy(process, start + at, size, path))
    copies = [copy for copy in copies if copy.base()]
    if not copies and others:
        raise Refused(f"{process.pid}: {', '.join(sorted(others))} has an npuprof of another version or byte "
                      "order: take the npuprof.py that came with it")
    if not copies:
        raise Refused(f"{process.pid}: there is no npuprof in {process.name()}: it has no marks, or was "
                      "built with NPUPROF_OFF, NPUPROF_NO_ATTACH or NPUPROF_RECORD_ONLY, or before there was "
                      "attach")
    return copies


class Copy:
    """One implementation of npuprof in a process."""

    def __init__(self, process, address, size, path):
        self.process, self.address, self.size, self.path = process, address, size, path
        self.gate, self.fast, self.base_at = (self.pointer(address + SELF + n * size) for n in (1, 2, 3))
        self.me, self.answers, self.image = secrets.randbits(31) | 1, 0, None
        self.asked = self.began = False

    def pointer(self, at):
        return int.from_bytes(self.process.read(at, self.size), sys.byteorder)

    def word(self, offset):
        return struct.unpack("=I", self.process.read(self.address + offset, 4))[0]

    def store(self, offset, value):
        self.process.write(self.address + offset, struct.pack("=I", value))

    def level(self):
        """What the gate is."""
        return struct.unpack("=i", self.process.read(self.gate, 4))[0]

    def store_high(self, address, byte):
        """Stores the highest byte of a word of four, and no other."""
        self.process.write(address + (3 if sys.byteorder == "little" else 0), byte)

    def base(self):
        return self.pointer(self.base_at)

    def beat(self):
        self.store(BEAT, self.word(BEAT) + 1 & 0xFFFFFFFF)

    # ---- Beginning

    def refuse(self, why):
        raise Refused(f"{self.process.pid}: {os.path.basename(self.path)} {why}")

    def begin(self, level):
        """Asks for a recording. Raises Refused if that cannot be."""
        self.check_own()
        if header(self).when_full == STREAM:
            self.refuse("hands its records to a sink of its own: look there")
        before = self.word(TOOL), self.word(BEAT)
        if before[0]:
            time.sleep(PATIENCE)        # one that was killed stays there, but has no heart beat
            if (self.word(TOOL), self.word(BEAT)) != before:
                self.refuse("is recorded by another npuprof.py attach: end that one first")
        self.store(TOOL, self.me)
        time.sleep(0.01)
        if self.word(TOOL) != self.me:
            self.refuse("is recorded by another npuprof.py attach, which began just now")
        self.asked = True
        self.store(LEVEL, level)
        self.beat()
        self.answers = self.word(ANSWERS)
        self.store(ASKED, START)
        self.has_begun()

    def check_own(self):
        if self.word(OWN):
            self.refuse("records by itself: npuprof_start(), npuprof_init() or a variable said so; its own "
                        "trace has what you look for")

    def has_begun(self):
        """Has the program answered? Until then, lets the next mark come to the library. Call it again and
        again: the program may set its gate, too."""
        if self.asked and not self.began:
            self.began = self.word(ANSWERS) != self.answers
            if not self.began and self.level() < 0:
                self.store_high(self.gate, OPEN)
            elif self.began and self.level() >> 24 == OPEN[0]:      # stored between its look and its answer
                self.store_high(self.gate, b"\0")
            if self.began and not self.word(STATE):
                self.check_own()
        return self.began

    # ---- The end

    def end(self):
        """Ends the recording. Returns False if no mark has come to do it: then the gate is closed."""
        self.answers = self.word(ANSWERS)
        self.store(ASKED, STOP)
        deadline = time.monotonic() + PATIENCE
        while time.monotonic() < deadline:
            self.store_high(self.fast, NO_SITE)
            if self.word(ANSWERS) != self.answers:
                return True
            time.sleep(0.001)
        if not self.word(OWN):
            self.store_high(self.gate, CLOSED)
        return False

    def finish(self):
        """Ends what was begun, and keeps a copy of what was recorded."""
        if not self.asked:
            return
        if not self.has_begun() and not self.word(STATE):
            self.store(ASKED, 0)
            if self.level() >> 24 == OPEN[0]:
                self.store_high(self.gate, CLOSED)
        if self.word(STATE):
            self.end()
        if self.began:
            self.wait_for_records()
            image = self.copy()
            if not self.word(STATE):
                cut(image, struct.unpack("=Q", self.process.read(self.address + UNTIL, 8))[0])
            self.image = image
        self.store(TOOL, 0)

    def wait_for_records(self):
        """Waits until no thread is in the middle of a record, but for a second at most."""
        owned_at, base = self.word(OWNED_AT), self.base()
        deadline, busy = time.monotonic() + PATIENCE, True
        while busy and time.monotonic() < deadline:
            busy, at, left = False, header(self).slot_first, 1 << 20
            while at and left and not busy:
                slot = self.process.read(base + at * 16, owned_at + 8)
                owned, now = struct.unpack_from("=2I", slot, owned_at)
                busy, left = bool(owned and now), left - 1
                at = struct.unpack_from("=I", slot, 8)[0]

    def copy(self):
        """The arena as bytes, but for what was never used. Why records first: they may use the newest
        names."""
        first = header(self)
        used = first.chunks_offset + first.chunk_next * first.chunk_bytes
        image = bytearray(used)
        image[first.chunks_offset:] = self.process.read(self.base() + first.chunks_offset,
                                                        used - first.chunks_offset)
        image[:first.chunks_offset] = self.process.read(self.base(), first.chunks_offset)
        struct.pack_into("=I", image, 376, first.chunk_next)
        return image

    def keep(self):
        """Keeps a copy of what was recorded so far, for when the program ends meanwhile."""
        with contextlib.suppress(Gone):
            self.image = self.copy()
