# the decoder of stored images, on random code: what it makes of it is what the same units are as they are
# SPDX-License-Identifier: MIT
"""Each image is there twice: as layout CODED, with blocks of random code whose sums are right, and as layout
STREAM, with the units that the second reader makes of that code. The loader must find the same in both: the
same events, and as many damaged places. It checks fewer of the records that it has decoded itself."""
import json
import lzma
import random
import struct
import unittest

import helpers
from helpers import run, scratch
from image import second_host
from image.second_host import BLOCK_MARK, HEADER_PIECE, OPEN, RETIRED

CORPUS = helpers.TESTS / "image" / "corpus"
LAYOUT_AT, CODED, STREAM = 16, 5, 2
SITES = 13                       # a few more than the images have


def number(value, count):
    return value.to_bytes(8, "little")[:count]


def plain(rng, site_bytes=None):
    """A plain unit, with a call site that is there, or seldom one that is not."""
    gap, length = rng.choice((1, 1, 2, 3, 4, 4, 5, 6, 7)), rng.choice((0, 1, 1, 2, 2, 3, 4, 5, 6, 7))
    sites = rng.choice((0, 0, 1, 1, 2, 3)) if site_bytes is None else site_bytes
    site = rng.randrange(1, 4)
    if rng.random() < 0.005:
        site = rng.choice((0, rng.randrange(SITES), rng.getrandbits(20)))
    gaps = {7: 6}.get(gap, gap - 3 if gap > 3 else gap)
    ticks = rng.getrandbits(8 * gaps) if rng.random() < 0.1 else rng.randrange(200)
    return (bytes([gap | length << 3 | sites << 6]) + number(site, sites) + number(ticks, gaps)
            + (number(rng.getrandbits(48) >> rng.randrange(48), length) if length != 7 else b""))


def other(rng, kind, first=None):
    """A unit of another kind."""
    if kind == 31:
        return bytes([kind << 3]) + rng.randbytes(16)
    a, b = rng.randrange(7), rng.randrange(9)
    has_site = kind >= 28 and rng.random() < (0.9 if kind == 30 else 0.5)
    site = number(rng.randrange(1, 4) if rng.random() < 0.99 else SITES, 3) if has_site else b""
    first = rng.getrandbits(44) >> rng.randrange(45) if first is None else first
    return (bytes([kind << 3, a | b << 3 | has_site << 7]) + site + number(first & (1 << 8 * a) - 1, a)
            + number(rng.getrandbits(8 * b) if b else 0, b))


def payload(rng, kinds, moved, room):
    """Random code of at most `room` units: those of so many moved spans, then plain ones, and some of these
    kinds."""
    out = b"" if moved else plain(rng, 1) if rng.random() < 0.9 else other(rng, 4, 3)
    for _ in range(moved):
        pair = [other(rng, 30, 0), other(rng, 3)]
        out += b"".join(pair if rng.random() < 0.9 else reversed(pair))
    share = rng.choice((0.01, 0.2))
    for _ in range(rng.randrange(1, room - 2 * moved)):
        is_other = kinds and rng.random() < share
        out += other(rng, rng.choice(kinds), rng.randrange(1, 4)) if is_other else plain(rng)
    return out


def coded_block(order, state, base, first, owner, moved, code, first_unit=0):
    head = [BLOCK_MARK, len(code), first_unit, 0, base, first, owner, state, moved]
    block = struct.pack(order + "IHHQQQIHH", *head) + code + bytes(-len(code) % 8)
    head[3] = second_host.block_sum(block, order)
    return struct.pack(order + "IHHQQQIHH", *head) + block[40:]


def stream_block(order, chunk_bytes, state, base, first, owner, moved, body):
    head = struct.pack(order + "QQIIIHH", base, first, owner, 0, BLOCK_MARK, state, moved)
    return (head + body).ljust(chunk_bytes, b"\0")


def converted(image, name):
    (scratch() / f"{name}.npuprof").write_bytes(image)
    done = run([helpers.tool("npuprof-convert"), f"{name}.npuprof"])
    document = json.loads(done.stdout)
    return document["traceEvents"], document["metadata"]["npuprof"].get("damaged_places", 0), done.stderr


class Coded(unittest.TestCase):
    def images(self, rng, name):
        """The same trace as CODED and as STREAM."""
        data = lzma.decompress((CORPUS / f"{name}.npuprof.xz").read_bytes())
        order = "<" if data[8] == 4 else ">"
        trace = second_host.Trace(order)
        header = trace.header = second_host.read_header(data, order)
        size, start = header["chunk_bytes"], bytearray(data[:header["header_bytes"]])
        outs = {CODED: b"", STREAM: b""}
        # beside plain units; 4 and 5 are arguments
        kinds = rng.choice(((), (0, 0, 1, 28, 29), (4, 5), (0, 4, 5, 28), (31,), range(32)))
        for state, base, first, owner, moved, first_unit, code in second_host.blocks(trace, data, order):
            if state in (OPEN, RETIRED):
                moved = rng.choice((0, 0, 2, 4))
                code = payload(rng, kinds, moved // 2, (size - 32) // 16)
                moved += rng.choice((0, 0, 0, -1, 1) if moved else (0,))
                units = second_host.Code(code, base).units()
                body = b"".join(struct.pack(order + "QQ", *unit) for unit in units)
            else:
                code = bytearray(code)
                if state == HEADER_PIECE and base <= LAYOUT_AT < base + len(code):
                    struct.pack_into(order + "I", code, LAYOUT_AT - base, STREAM)
                body = bytes(code)
            outs[CODED] += coded_block(order, state, base, first, owner, moved, bytes(code), first_unit)
            outs[STREAM] += stream_block(order, size, state, base, first, owner, moved, body)
        for layout in outs:
            struct.pack_into(order + "I", start, LAYOUT_AT, layout)
            outs[layout] = bytes(start) + outs[layout]
        return outs[CODED], outs[STREAM]

    def check(self, seeds):
        damaged = 0
        for seed in seeds:
            rng = random.Random(seed)
            coded, stream = self.images(rng, rng.choice(("x86_64-open", "x86_64-wrapped", "powerpc-wrapped")))
            with self.subTest(seed=seed):
                found, truth = converted(coded, "coded"), converted(stream, "stream")
                self.assertEqual(found[:2], truth[:2])
                self.assertEqual(bool(found[2]), bool(truth[2]))
                damaged += found[1] > 0
        self.assertGreater(damaged, len(seeds) // 10)
        self.assertLess(damaged, len(seeds) * 9 // 10)

    def test_random_code(self):
        self.check(range(40))

    @helpers.thorough
    def test_more_random_code(self):
        self.check(range(40, 600))
