# test: thorough - images written by other machines: 32 bit, and the other byte order; the same trace
# SPDX-License-Identifier: MIT
import shutil
import struct
import unittest

import helpers
from helpers import ROOT, environment, run, strict_json

KINDS = ("all", "device", "wrapped", "open", "stream", "arena", "arena-open", "arena-wrapped", "arena-device")
# Name: compilers in order of preference, the emulator, the byte order.
MACHINES = {
    "i386": ((["i686-linux-gnu-gcc"], ["gcc", "-m32", "-isystem", "/usr/include/x86_64-linux-gnu"]),
             "qemu-i386", "<"),
    "s390x": ((["s390x-linux-gnu-gcc"],), "qemu-s390x", ">"),
    "powerpc": ((["powerpc-linux-gnu-gcc"],), "qemu-ppc", ">"),      # 32 bit
}


def normalised(text):
    """Without what differs from run to run: host, pid, start, and the widths that a 32-bit build may
    choose."""
    trace = strict_json(text)
    own = trace["metadata"]["npuprof"]
    for key in ("host", "program", "pid", "start_unix_ns", "start_monotonic_ns", "start_boottime_ns"):
        own.pop(key, None)
    for event in trace["traceEvents"]:
        for key in ("pid", "id"):
            event.pop(key, None)
        if event["name"] == "process_name":
            event.pop("args")
        # drawn by lot, or the system's
        for key in ("trace_id", "span_id", "parent_span_id", "native_id"):
            event.get("args", {}).pop(key, None)
    return trace


class Foreign(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        helpers.tool("npuprof-convert")
        cls.folder = helpers.scratch() / "foreign"
        cls.folder.mkdir(exist_ok=True)
        cls.native = helpers.build("images.c", "images")
        cls.ours = {kind: cls.converted(cls.written([cls.native], kind, "native"))[1] for kind in KINDS}

    @classmethod
    def written(cls, command, kind, machine):
        path = cls.folder / f"{machine}-{kind}.npuprof"
        path.unlink(missing_ok=True)
        done = run([*command, kind, path], env=environment())
        if done.returncode:
            raise AssertionError(f"{machine} {kind}: exit code {done.returncode}: {done.stderr}")
        return path

    @classmethod
    def converted(cls, path):
        done = run([helpers.tool("npuprof-convert"), path])
        return done, normalised(done.stdout) if done.returncode < 2 else None

    def check(self, machine):
        compilers, emulator, order = MACHINES[machine]
        program, said = self.folder / machine, ""
        for compiler in compilers:
            if not shutil.which(compiler[0]):
                said = said or f"{compiler[0]} is not installed"
                continue
            done = run([*compiler, "-std=gnu11", "-O1", "-static", f"-I{ROOT}", "-I", helpers.TESTS,
                        "-pthread", helpers.PROGRAMS / "images.c", "-o", program,
                        *(["-latomic"] if machine == "powerpc" else [])])
            if done.returncode == 0:
                break
            said = (f"{' '.join(compiler)} cannot build: "
                    f"{done.stderr.strip().splitlines()[-1] if done.stderr.strip() else ''}")
            self.assertRegex(done.stderr, r"cannot find|No such file|skipping incompatible", said)
        else:
            self.skipTest(said)
        command = [helpers.need(emulator), program]
        for kind in KINDS:
            with self.subTest(kind=kind):
                path = self.written(command, kind, machine)
                self.assertEqual(struct.unpack_from(order + "I", path.read_bytes(), 8)[0], 0x01020304,
                                 "the image's byte order")
                done, trace = self.converted(path)
                self.assertEqual((done.returncode, done.stderr), (0, ""))
                ours = self.ours[kind]
                if kind in ("all", "device", "open", "stream", "arena", "arena-open", "arena-device"):
                    self.assertEqual(trace["traceEvents"], ours["traceEvents"])
                    self.assertEqual(trace["metadata"]["npuprof"]["lost"],
                                     ours["metadata"]["npuprof"]["lost"])
                else:                      # how much a small arena holds may differ
                    self.assertGreater(len(trace["traceEvents"]), len(ours["traceEvents"]) // 2)
                # And an image of that image, in our own order.
                out = self.folder / "own.npuprof"
                out.unlink(missing_ok=True)
                self.assertEqual(run([helpers.tool("npuprof-convert"), path, "-o", out]).returncode, 0)
                done, again = self.converted(out)
                self.assertEqual(done.returncode, 0, done.stderr)
                self.assertEqual(again["traceEvents"], trace["traceEvents"])

    def test_i386(self):
        self.check("i386")

    def test_s390x(self):
        self.check("s390x")

    def test_powerpc(self):
        self.check("powerpc")
