# test: - images of firmware: what is cut, damaged, of another build or of a clock that cannot be right is
# never silent, and quick
# SPDX-License-Identifier: MIT
import json
import random
import resource

import helpers
from firmware import target
from helpers import run

NAMES = {"conv1", "kernel", "queue", "odd of run time", "even of run time"}


class Image(target.Target):
    def program(self, name="program", *flags, build_id="none"):
        """Builds the program of the tests."""
        script = self.folder / "id.ld"
        script.write_text("SECTIONS { .note.gnu.build-id : { build_id = .; KEEP(*(.note.gnu.build-id)) } } "
                          "INSERT BEFORE .rodata;\n")
        flags = [*flags, f"-Wl,--build-id={build_id}",
                 *(["-DBUILD", f"-Wl,-T,{script}"] if build_id != "none" else [])]
        return target.build("firmware_image.c", *flags, name=name)

    def recorded(self, program, mode="plain", count=20):
        """What it wrote, and its memory."""
        self.quiet(mode, count, program=program)
        return (self.folder / "out.img").read_bytes(), (self.folder / "ram.bin").read_bytes()

    def convert(self, image, elf=None):
        """Exit code, trace or None, and what was said."""
        (self.folder / "now.img").write_bytes(image)
        words = ["--elf", elf] if elf else []
        done = run([helpers.tool("npuprof-convert"), self.folder / "now.img", *words])
        self.assertIn(done.returncode, (0, 1, 2), done.stderr)
        return done.returncode, json.loads(done.stdout) if done.returncode < 2 else None, done.stderr

    def events(self, trace):
        return [(e["ph"], e["name"], e["ts"], e.get("dur"), json.dumps(e.get("args")))
                for e in trace["traceEvents"] if e["ph"] in "XiC" and e.get("cat") != "npuprof"]

    def damaged(self, image, elf, whole):
        """It is noticed, and what is left is true: as good as the whole, but for spans whose end or argument
        is gone."""
        code, trace, said = self.convert(image, elf)
        self.assertNotEqual(code, 0)
        if code == 2:
            return 0
        self.assertGreater(trace["metadata"]["npuprof"]["damaged_places"], 0)
        self.assertIn("damaged", said)
        self.assertLessEqual({e[1] for e in self.events(trace)}, NAMES)
        times = {(e[1], e[2]) for e in whole}
        self.assertLessEqual({(e[1], e[2]) for e in self.events(trace)}, times)
        return len(self.events(trace))

    @helpers.thorough
    def test_cut_or_damaged(self):
        program = self.program()
        image, memory = self.recorded(program)
        code, trace, said = self.convert(image, program)
        self.assertEqual((code, said), (0, ""))
        whole = self.events(trace)
        self.assertEqual(len(whole), 80)
        self.assertEqual(self.events(self.convert(memory, program)[1]), whole)
        # The origin of a trace whose first event is gone is the same: the target's first stamp.
        for count in [*range(0, len(image), 555), len(image) - 1, len(image) - 80]:
            self.damaged(image[:count], program, whole)
        chance = random.Random(12)
        for _ in range(15):
            at = chance.randrange(len(image))
            self.assertGreaterEqual(self.damaged(image[:at] + image[at + 1:], program, whole), 60)
        for _ in range(30):
            flipped = bytearray(image)
            for _ in range(20):
                flipped[chance.randrange(len(flipped))] ^= 1 << chance.randrange(8)
            self.damaged(bytes(flipped), program, whole)
        # Noise in between, as of a serial line, is no damage to what is there.
        code, trace, _ = self.convert(b"boot\r\n" + image[:80] + b"noise" + image[80:], program)
        self.assertEqual((code, self.events(trace)), (0, whole))

    @helpers.thorough
    def test_memory(self):
        """A dump of memory has no CRC. What cannot be is seen: a file that is too short, references to no
        call site, chains that break."""
        program = self.program()
        _, memory = self.recorded(program)
        whole = self.events(self.convert(memory, program)[1])
        used = int.from_bytes(memory[32:36], "little")
        for count in (80, 80 + 16 * used - 1, 1000):
            self.damaged(memory[:count], program, whole)
        code, trace, _ = self.convert(memory[:80 + 16 * used], program)
        self.assertEqual((code, self.events(trace)), (0, whole))
        # Every call site's reference that becomes another one: the record is left out, and its neighbours are
        # whole.
        sites = 0
        for cell in range(used):
            broken = bytearray(memory)
            at = 80 + 16 * cell
            if memory[at:at + 4] == bytes(4) or memory[at + 1:at + 4] != memory[81:84] or memory[at] & 2:
                continue                                     # a field, or a record without a call site
            sites += 1
            broken[at + 1] ^= 0x80
            code, trace, said = self.convert(bytes(broken), program)
            self.assertEqual(code, 1)
            self.assertIn(f"no call site of this program at byte {at}\n", said)
            self.assertLess(len(self.events(trace)), len(whole))
            self.assertLessEqual(set(self.events(trace)), set(whole))
        self.assertGreater(sites, 10)

    @helpers.thorough
    def test_without_program(self):
        """No ELF file was given: one sentence says what to do, and that no clock went back."""
        program = self.program()
        image, memory = self.recorded(program)
        code, _, said = self.convert(image)
        self.assertEqual(code, 0)
        self.assertRegex(said, r"^[^\n]*: warning: \d+ names are addresses: give the program that recorded, "
                               r"--elf FIRMWARE\.elf\n$")
        code, _, said = self.convert(bytes(5000) + memory)
        self.assertEqual(code, 2)
        self.assertRegex(said, r"a dump of memory, whose names are in the program: give --elf FIRMWARE\.elf; "
                               r"its image begins at byte 5000\n$")

    def test_other_build(self):
        """A name that changed, and a program that moved: refused in words. With a build id, so is a dump of
        memory."""
        same_id = [self.program("program"), self.program("renamed", '-DNAME="conv2"'),
                   self.program("moved", "-DSHIFTED")]
        own_id = [self.program("one", build_id="0x1234567801"), self.program("two", build_id="0x1234567902")]
        for programs in (same_id, own_id):
            for wrote, elf in ((wrote, elf) for wrote in programs for elf in programs):
                image, memory = self.recorded(wrote)
                for bytes_, certain in ((image, True), (memory, programs is own_id)):
                    code, _, said = self.convert(bytes_, elf)
                    if elf == wrote:
                        self.assertEqual((code, said), (0, ""))
                    elif certain:
                        self.assertEqual(code, 2, (wrote, elf, said))
                        self.assertIn("the ELF file is of another build than this image", said)
        _, memory = self.recorded(self.program("moved", "-DSHIFTED"))
        self.assertNotEqual(self.convert(memory, self.program())[0], 0)

    @helpers.thorough
    def test_clock(self):
        """A clock that does not run, and one that goes back: said by convert and by check. A good one is not
        suspected."""
        for flags, mode, words in (([], "dead", "the clock does not run"),
                                   ([], "back", "the clock went back"),
                                   (["-DCLOCK=uint16_t"], "back", "the clock went back"),
                                   (["-DCLOCK=uint16_t"], "plain", None), ([], "plain", None)):
            program = self.program("clock", *flags)
            image, _ = self.recorded(program, mode)
            code, trace, said = self.convert(image, program)
            (self.folder / "clock.json").write_text(json.dumps(trace))
            checked = helpers.npuprof_py("check", self.folder / "clock.json")
            self.assertEqual(code, 0)
            if words:
                self.assertIn(words, said)
                self.assertIn(words, checked.stdout)
            else:
                self.assertNotIn("warning", said + checked.stdout)
            self.assertLess(max(e.get("dur", 0) for e in trace["traceEvents"]), 1e6)

    @helpers.thorough
    def test_times_that_fall(self):
        """80,000 cells, each earlier than the one before: sorted, in a second or so."""
        program = self.program()
        image, _ = self.recorded(program, "falling", 80000)
        before = resource.getrusage(resource.RUSAGE_CHILDREN).ru_utime
        code, trace, said = self.convert(image, program)
        self.assertLess(resource.getrusage(resource.RUSAGE_CHILDREN).ru_utime - before, 6)
        events = self.events(trace)
        self.assertEqual((code, len(events)), (0, 80000))
        self.assertIn("the clock went back", said)
        self.assertEqual([e[2] for e in events], sorted(e[2] for e in events))

    def test_wide_machine(self):
        """Names and arena far apart, and a rate above 2^32: the target's JSON and the host's are right."""
        program = self.program("wide", "-DHZ=5000000000u", "-pie", "-fPIE")
        self.recorded(program)
        own = json.loads((self.folder / "own.json").read_text())
        spans = [e for e in own["traceEvents"] if e["name"] == "conv1"]
        self.assertEqual((len(spans), spans[0]["dur"], own["metadata"]["npuprof"]["clock"]["hz"]),
                         (20, 0.007, 5000000000))
        program = self.program("wide", "-DHZ=5000000000u")
        image, _ = self.recorded(program)
        _, trace, _ = self.convert(image, program)
        self.assertEqual([e["dur"] for e in trace["traceEvents"] if e["name"] == "conv1"], [0.007] * 20)

    def test_context_numbers(self):
        """Any number of a context stays inside what there is for each."""
        program = self.program("contexts", "-fsanitize=address,undefined", "-fno-sanitize-recover=all")
        image, _ = self.recorded(program, "contexts")
        self.assertEqual(len(self.events(self.convert(image)[1])), 20)

    def test_lost_notes(self):
        """What is lost of names and metadata is no event: recorded + lost = executed."""
        program = self.program()
        image, _ = self.recorded(program, "notes", 60)
        about = self.convert(image, program)[1]["metadata"]["npuprof"]
        own = json.loads((self.folder / "own.json").read_text())["metadata"]["npuprof"]
        self.assertEqual(about["recorded"] + about["lost"]["arena_full"], 60)
        self.assertGreater(about["lost"]["notes"], 0)
        self.assertEqual(own["lost"],
                         {"arena_full": about["lost"]["arena_full"], "notes": about["lost"]["notes"]})
