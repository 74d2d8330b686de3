# images of every processor and byte order, kept for ever: two readers find in them what is in them
# SPDX-License-Identifier: MIT
"""The corpus is that of make_corpus.py. One reader is npuprof-convert, the other is written by the
specification alone (second_reader.py), and knows nothing of the first."""
import json
import lzma
import re
import struct
import unittest
import zlib

import helpers
from helpers import run, scratch
from image import second_facts, second_host, second_reader

CORPUS = helpers.TESTS / "image" / "corpus"
IMAGES = sorted(CORPUS.glob("*.npuprof.xz"))
FORMAT_AT = 12
HOSTS = ["aarch64", "armhf", "i386", "powerpc", "s390x", "x86_64"]
BARE = [f"bare-{name}-ring" for name in ("aarch64", "avr", "cortex-m0", "cortex-m3", "powerpc", "riscv32",
                                         "riscv64", "s390x")]


def opened(path):
    """(name, bytes of the image, bytes of its ELF file or None, its truth)."""
    name = path.name.removesuffix(".npuprof.xz")
    elf = CORPUS / f"{name}.elf.xz"
    own = CORPUS / "truth" / f"{name}.json"
    parts = name.split("-")
    common = next(CORPUS / "truth" / f"{'-'.join(parts[n:])}.json" for n in range(1, len(parts))
                  if own.exists() or (CORPUS / "truth" / f"{'-'.join(parts[n:])}.json").exists())
    truth = json.loads((own if own.exists() else common).read_text(encoding="utf-8"))
    names = lzma.decompress(elf.read_bytes()) if elf.exists() else None
    return name, lzma.decompress(path.read_bytes()), names, truth


def with_format(image, order, layout, form):
    """The image, as if its format were another one; PARTS has two headers, each with a checksum."""
    image, at = bytearray(image), 0
    while at >= 0:
        struct.pack_into(order + "I", image, at + FORMAT_AT, form)
        if layout == second_reader.PARTS:
            struct.pack_into(order + "I", image, at + 76, zlib.crc32(image[at:at + 76]))
        at = image.find(b"NPUPROF\n", at + 1)
    return bytes(image)


def converted(image, elf=None, name="t"):
    """npuprof-convert's process."""
    (scratch() / f"{name}.npuprof").write_bytes(image)
    more = []
    if elf:
        (scratch() / f"{name}.elf").write_bytes(elf)
        more = ["--elf", f"{name}.elf"]
    return run([helpers.tool("npuprof-convert"), f"{name}.npuprof", *more])


class Corpus(unittest.TestCase):
    maxDiff = 2000

    def test_second_reader(self):
        for path in IMAGES:
            name, image, elf, truth = opened(path)
            with self.subTest(image=name):
                trace = second_reader.read(image, elf)
                self.assertEqual(second_facts.of_trace(trace).document(), truth)
                self.assertEqual((dict(trace.unknown), trace.damaged), ({}, 0))

    def test_converter(self):
        for path in IMAGES:
            name, image, elf, truth = opened(path)
            with self.subTest(image=name):
                done = converted(image, elf)
                self.assertEqual((done.returncode, done.stderr), (0, ""))
                self.assertEqual(second_facts.of_json(json.loads(done.stdout)).document(), truth)

    def test_complete(self):
        """Both byte orders, 16, 32 and 64 bits, every layout, every family of processors; small."""
        found = {second_reader.start_of(opened(path)[1]) for path in IMAGES}
        self.assertEqual({layout for _, layout in found} - {1, 3, 4, 5}, set())
        for order in "<>":
            self.assertLessEqual({(order, 1), (order, 3), (order, 4), (order, 5)}, found)
        for machine in HOSTS + BARE:
            self.assertTrue(list(CORPUS.glob(f"{machine}-*.npuprof.xz")), machine)
        sizes = [path.stat().st_size for path in CORPUS.rglob("*") if path.is_file()]
        self.assertLess(max(path.stat().st_size for path in IMAGES), 20_000)
        self.assertLess(sum(sizes), 300_000)

    def test_every_version(self):
        """Every version that CHANGELOG.md or a tag names has images of its own, by the name of its sources:
        make_corpus.py release-VERSION=FOLDER. What wrote format 1 before is there as draft-1 and draft-2."""
        changes = (helpers.ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
        versions = re.findall(r"^## (\d+\.\d+\.\d+)", changes, re.M)
        tags = run(["git", "tag"], cwd=helpers.ROOT).stdout.split()
        versions += [tag.removeprefix("v") for tag in tags if re.fullmatch(r"v?\d+\.\d+\.\d+", tag)]
        self.assertTrue(versions)
        for version in versions:
            for kind in ("device", "open", "stream", "wrapped", "arena-open", "arena-wrapped",
                         "arena-device"):
                self.assertIn(CORPUS / f"release-{version}-{kind}.npuprof.xz", IMAGES)
        self.assertEqual(len(list(CORPUS.glob("draft-[12]-arena-*.npuprof.xz"))), 6)

    def test_unknown_kinds(self):
        """Kinds to come are skipped and counted by both: of a call site, of a table entry, of a unit."""
        _, image, _, truth = opened(CORPUS / "x86_64-arena-open.npuprof.xz")
        header = second_host.read_header(image, "<")
        first, end = (header["table_offset"] + header[name] for name in ("table_first", "table_used"))
        places = {second_host.SITE: (12, 200), second_host.METADATA: (3, 99)}
        for kind, (place, number) in places.items():
            at = next(self.entries(image, first, end, kind))
            changed = bytearray(image)
            changed[at + place] = number
            self.check_skipped(bytes(changed), truth)
        chunks = range(header["chunks_offset"] + 32, len(image), 16)
        word = {n: struct.unpack_from("<Q", image, n)[0] for n in chunks}
        args = {n for n in word if word[n] & 0xFFFFF == second_host.ARG and word[n] >> 52 <= 8}
        at = next(n for n in sorted(args) if n + 16 in args and n - 16 not in args)
        for control in (0xF9, 0xFE):                           # the lowest free control id, and a high one
            changed = bytearray(image)
            changed[at] = control
            self.check_skipped(bytes(changed), truth)

    @staticmethod
    def entries(image, at, end, kind):
        while at < end:
            word = struct.unpack_from("<I", image, at)[0]
            if word >> 24 == kind:
                yield at
            at += 16 * max(1, word & 0xFFFFFF)

    def check_skipped(self, image, truth):
        trace = second_reader.read(image)
        found = second_facts.of_trace(trace).document()
        self.assertNotEqual(found, truth)
        self.assertEqual(sum(trace.unknown.values()) > 0, True)
        done = converted(image)
        self.assertEqual(done.returncode, 1, done.stderr)
        document = json.loads(done.stdout)
        self.assertEqual(second_facts.of_json(document).document(), found)
        self.assertGreater(document["metadata"]["npuprof"]["damaged_places"], 0)

    def test_newer_format(self):
        """An image of a format to come is refused, with a sentence, by both."""
        seen = set()
        for path in IMAGES:
            name, image, elf, _ = opened(path)
            order, layout = second_reader.start_of(image)
            if (order, layout) in seen or not image.startswith(b"NPUPROF\n"):
                continue
            seen.add((order, layout))
            with self.subTest(image=name):
                newer = with_format(image, order, layout, 2)
                with self.assertRaisesRegex(second_reader.Unreadable, "format 2"):
                    second_reader.read(newer, elf)
                done = converted(newer, elf)
                self.assertEqual((done.returncode, done.stdout), (2, ""))
                self.assertRegex(done.stderr, "image format")
