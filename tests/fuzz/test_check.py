# test: soak=200 - the JSON check on mutated traces: always a verdict, never a crash, and what it lets pass is
# strict JSON
# SPDX-License-Identifier: MIT
import contextlib
import io
import os
import pathlib
import random
import sys
import time
import unittest

import helpers
from helpers import ROOT, environment, run, strict_json

sys.path.insert(0, str(ROOT / "tools"))
from npuprof import check  # noqa: E402
from npuprof.base.messages import Refused  # noqa: E402

SOAK = "NPUPROF_TEST_SOAK" in os.environ
PIECES = [b"{", b"}", b"[", b"]", b",", b":", b'"', b"\\", b"\\u", b"\\ud83d", b"\\u0000", b"null", b"true",
          b"false", b"NaN", b"Infinity", b"-", b"-0",
          b"0", b"1e999", b"1e-999", b"1E5", b"0x10", b"00", b"9223372036854775808", b"-9223372036854775809",
          b"18446744073709551616", b"0.0000000000000000001",
          b"1" * 400, b"." * 3, b"\0", b"\x7f", b"\xff", b"\xc0\x80", b"\xed\xa0\x80", b"\xf4\x90\x80\x80",
          b"\xef\xbb\xbf", b" ", b"\n", b"\t", b"\r",
          b'"ph":"X"', b'"ph":"B"', b'"ph":"E"', b'"ph":"s"', b'"ph":"f"', b'"ph":7', b'"ts":-1', b'"ts":"5"',
          b'"ts":1e300', b'"dur":-1', b'"pid":4294967296',
          b'"tid":1.5', b'"id":"0xZ"', b'"id":{}', b'"args":[]', b'"args":null', b'"name":null', b'"name":[]',
          b'"cat":5', b'{"ph":"M"}', b"{}", b"[]",
          b'"metadata":{}', b'"metadata":[]', b'"npuprof":7', b'"lost":-1', b'"clock_sync":[]',
          b'"traceEvents":[]', b'"traceEvents":{}', b"[" * 3000, b'{"a":' * 3000]


def mutate(rng, data, others):
    """A few changes at random places: bits, bytes, pieces of JSON, lines moved or doubled, parts of another
    trace."""
    data = bytearray(data)
    for _ in range(rng.choice((1, 1, 1, 2, 3, 8))):
        at = rng.randrange(len(data) + 1)
        kind = rng.randrange(9)
        if kind == 0 and at < len(data):
            data[at] ^= 1 << rng.randrange(8)
        elif kind == 1 and at < len(data):
            data[at] = rng.randrange(256)
        elif kind == 2:
            del data[at:at + rng.choice((1, 2, 5, 30, 400))]
        elif kind == 3:
            data[at:at] = rng.choice(PIECES)
        elif kind == 4:
            piece = rng.choice(PIECES)
            data[at:at + len(piece)] = piece
        elif kind == 5:
            end = at + rng.randrange(200)
            data[at:at] = data[at:end]
        elif kind == 6:
            lines = bytes(data).split(b"\n")
            a, b = rng.randrange(len(lines)), rng.randrange(len(lines))
            lines[a], lines[b] = lines[b], lines[a]
            data = bytearray(b"\n".join(lines))
        elif kind == 7:
            other = rng.choice(others)
            start = rng.randrange(len(other))
            data[at:at + rng.randrange(80)] = other[start:start + rng.randrange(200)]
        else:
            del data[at:]
        if not data:
            data = bytearray(b"{")
    return bytes(data)


class Check(unittest.TestCase):
    def setUp(self):
        self.path = helpers.scratch() / "mutated.json"
        self.seeds = [(helpers.TESTS / "golden" / "trace.json").read_bytes().replace(b'"pid":0', b'"pid":7')]
        for part, arguments in (("golden.c", ()), ("images.c", ("device",))):
            program = helpers.build(part, part[:-2])
            out = helpers.scratch() / "seed.json"
            run([program, *arguments, out], code=0, env=environment())
            self.seeds.append(out.read_bytes())

    def verdict(self, data):
        """0: good, 1: findings, 2: refused. Anything else is a failure of the test."""
        self.path.write_bytes(data)
        out = io.StringIO()
        try:
            with contextlib.redirect_stdout(out):
                errors = check.check_file(str(self.path))
        except Refused as refused:
            self.assertTrue(str(refused).strip())
            return 2
        self.assertIn(str(self.path), out.getvalue())
        return 1 if errors else 0

    def test_seeds_are_good(self):
        for seed in self.seeds:
            self.assertEqual(self.verdict(seed), 0)

    @helpers.thorough
    def test_mutated(self):
        seconds = 30 if SOAK else 8
        until, number = time.monotonic() + seconds, int(time.time()) if SOAK else 1
        first, counts = number, [0, 0, 0]
        while time.monotonic() < until and number - first < (1 << 30 if SOAK else 4000):
            rng = random.Random(number)
            data = mutate(rng, rng.choice(self.seeds), self.seeds)
            started = time.monotonic()
            try:
                verdict = self.verdict(data)
                if verdict < 2:
                    strict_json(data)
            except Exception as error:
                kept = pathlib.Path(os.environ.get("NPUPROF_TEST_KEEP",
                                                   str(helpers.scratch()))) / f"check-{number}.json"
                kept.write_bytes(data)
                raise AssertionError(f"mutation {number}: {type(error).__name__}: {error}") from error
            self.assertLess(time.monotonic() - started, 20, f"mutation {number} took too long")
            counts[verdict] += 1
            number += 1
        print(f"note JSON check: {number - first} mutated traces from seed {first}: {counts[0]} good, "
              f"{counts[1]} with findings, {counts[2]} refused")
        self.assertGreater(min(counts), 0)

    @helpers.thorough
    def test_command_line(self):
        """The same through the command: exit codes 0 to 2 only, nothing of Python's on stderr."""
        for number in range(12):
            rng = random.Random(1000 + number)
            self.path.write_bytes(mutate(rng, rng.choice(self.seeds), self.seeds))
            done = helpers.npuprof_py("check", self.path, code=None)
            self.assertIn(done.returncode, (0, 1, 2))
            self.assertNotIn("Traceback", done.stderr)
