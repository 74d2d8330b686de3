# examples/devices: each description against bytes whose meaning is known; the page that explains them
# SPDX-License-Identifier: MIT

import re
import unittest

import helpers
from helpers import ROOT
from npuprof.gen.device import read_device
from npuprof.gen.command import generate
from npuprof.gen.manual import MANUAL

DEVICES = ROOT / "examples" / "devices"
PAGE = DEVICES / "README.md"
# What the sources of a device say of these bytes, in the order of memory, in hex:
# (device, ring, bytes, role or index of args -> value).
ENTRIES = [
    ("gaudi", 0, "A5 07 00 C0", {"job": 0x7a5}),
    ("gaudi_polled", 0, "A5 07 00 C0", {"job": 0x7a5, "valid": 1}),
    ("gaudi_polled", 0, "A5 07 00 40", {"valid": 0}),
    ("gaudi", 1, "00 00 00 00 04 00 23 81 78 56 34 12" + 52 * " 00", {"op": 0x123, 0: 0x12345678}),
    ("gaudi_polled", 1, "00 00 00 00 04 00 23 81" + 56 * " 00", {"op": 0x123, "valid": 1, "sequence": 4}),
    ("qaic", 0, "34 12 00 00", {"job": 0x1234, "status": 0}),
    ("qaic", 0, "34 12 FF 01", {"status": 0x1ff}),
    ("intel_hws", 0, "9A 78 56 34 12 00 00 00 01 00 00 00 00 00 00 00 03" + 15 * " 00",
     {"stamp": 0x123456789a, "kind": "begin", "key": 3, "pe": 3, "op": 1, 0: 0}),
    ("intel_fence", 0, "07" + 7 * " 00" + " 40" + 7 * " 00" + " 01" + 15 * " 00" + " E8 03" + 14 * " 00"
     + " 80 07" + 6 * " 00", {"job": 7, 0: 0x40, "op": 1, "start": 1000, "end": 1920}),
    ("ethosn", 0, "89 67 45 23 02 08 00 00", {"stamp": 0x23456789, "clock_high": 1, "clock_when": True}),
    ("ethosn", 0, "00 68 45 23 94 04 00 00",
     {"stamp": 0x23456800, "kind": "begin", "key": 5, "op": 9, "clock_when": False}),
    ("ethosn", 0, "00 69 45 23 15 00 00 00", {"stamp": 0x23456900, "kind": "end", "key": 5}),
    ("ethosn", 0, "50 69 45 23 8B FF FF FF", {"kind": "skip", "key": 2, 0: 0x1ffffff}),
    ("tenstorrent", 0, "BC FA EE 9B 78 56 34 12",
     {"stamp": 0xabc12345678, "kind": "end", "key": 0xbeef, "op": 0xbeef, "empty": False}),
    ("tenstorrent", 0, "00 00 00 80 00 00 00 00", {"empty": True}),
    ("tenstorrent", 0, "00 00 00 80 00 00 00 80", {"empty": True}),
]
# (device, memory of the ring or register words by name, index, laps)
INDICES = [
    ("intel_hws", "02 00 00 00 02 00 00 00 04 00 00 00 00 00 00 00" + 16 * " 00", 2, 2),
    ("intel_fence", "02 00 00 00 01 00 00 00 01 00 00 00 00 00 00 00 04" + 23 * " 00", 2, 1),
    ("coral", "07 00 00 00 00 00 00 00", 7, None),
    ("xdna", "FF FF FF FF 01 00 00 00", 0x1ffffffff, None),
    ("hailo", 20 * "00 " + "00 04 03 00" + 8 * " 00", 0x400, None),
]

# The page's device in memory, before and behind its code. Each look at the host's clock moves it by 10 ns and
# the device by a tick.
CLOCK = r"""
#include <stdint.h>
static uint64_t bar[0x1000 / 8], host = 1000000;
static inline uint64_t look(void) { bar[0x40 / 8] = (host += 10) / 10; return host; }
#define NPUPROF_NOW() look()
#define NPUPROF_NOW_HZ 1000000000
"""
MAIN = r"""
#include <string.h>
static unsigned char queue[16 + 256 * 16];

static void completes(uint32_t job, unsigned slot)
{
    unsigned char *entry = queue + 16 + 16 * slot;
    const uint32_t start = (uint32_t)(host / 10), end = start + 20000, next = slot + 1;
    host += 250000;
    memcpy(entry, &job, 4);
    entry[4] = job % 2;
    entry[5] = 1;
    memcpy(entry + 8, &start, 4);
    memcpy(entry + 12, &end, 4);
    memcpy(queue, &next, 4);
}

int main(void)
{
    bar[0x50 / 8] = 1;
    npuprof_start(1);
    if (!profile_open(bar, queue, sizeof queue)) return 1;
    for (uint32_t job = 1; job <= 5; job++) {
        profile_submit(job);
        completes(job, job - 1);
        profile_interrupt();
    }
    const npuprof_result result = npuprof_dump("t.json");
    npuprof_npu_close(&npu);
    return result != NPUPROF_OK;
}
"""

# Opens a device in memory that stands still, with what it requires switched on.
OPENED = r"""
    {
        static npuprof_npu npu;
        static npuprof_npu_ring rings[16];
        static npuprof_npu_pmu pmu[8];
        npuprof_npu_desc d = %(name)s_npu_desc(%(arguments)s);
        (void)rings, (void)pmu;
        for (int i = 0; i < 8; i++) pmu[i].read = read_counter;
        if (%(has_bar)d) d.bar = words, d.bar_bytes = %(bar_bytes)s;
        for (unsigned i = 0; i < d.requirement_count; i++)
            words[d.requirements[i].offset / 4] |= (uint32_t)d.requirements[i].value;
        for (unsigned i = 0; i < (d.ring_count ? d.ring_count : 1); i++) {
            npuprof_npu_ring *r = d.ring_count ? &rings[i] : &d.ring;
            if (r->count && !r->offset) r->memory = memory[i], r->memory_bytes = sizeof memory[i];
        }
        if (d.progress.is_there && !d.bar)
            d.progress.index.memory = memory, d.progress.index.memory_bytes = 64;
        puts(npuprof_result_string(npuprof_npu_open(&npu, &d)));
        npuprof_npu_close(&npu);
    }
"""


def description(name):
    file = DEVICES / f"{name}.toml"
    return read_device(str(file), file.read_text(), strict=True)


def bits(data, offset, width, lsb, count):
    """Bits of a little-endian word. Why not by the headers: this is the second opinion."""
    return int.from_bytes(data[offset:offset + width // 8], "little") >> lsb & (1 << count) - 1


def joined(data, value):
    """A value of one or two parts, the low one first."""
    number = shift = 0
    for part in value.parts:
        number |= bits(data, part.offset, part.width, part.lsb, part.bits) << shift
        shift += part.bits
    return number


def decoded(ring, data, role):
    """What a ring's description says of an entry."""
    if role == "kind":
        return dict(ring.kinds)[joined(data, ring.fields["kind"])]
    if role in ("empty", "clock_when"):
        return all(joined(data, c.field) == c.value for c in getattr(ring, role))
    return joined(data, ring.key[0] if role == "key" else ring.args[role] if isinstance(role, int)
                  else ring.fields[role])


def built(case, name):
    """Compiles NAME.c of the test's folder."""
    helpers.run([*helpers.CC, "-std=gnu11", "-Wall", "-Wextra", "-Werror", f"-I{ROOT}", f"{name}.c", "-o",
                 name, "-pthread"], code=0, said="")


class Descriptions(unittest.TestCase):
    def test_entries(self):
        for name, number, text, values in ENTRIES:
            ring, data = description(name).rings[number], bytes.fromhex(text)
            self.assertEqual(len(data), ring.record.bytes, name)
            for role, value in values.items():
                with self.subTest(name, role=role):
                    self.assertEqual(decoded(ring, data, role), value)

    def test_indices(self):
        for name, text, value, laps in INDICES:
            device, data = description(name), bytes.fromhex(text)
            index = device.rings[0].index if device.rings else device.progress.index
            with self.subTest(name):
                self.assertEqual(bits(data, index.at, index.width, index.lsb, index.bits), value)
                if laps is not None:
                    self.assertEqual(bits(data, index.laps_at, index.width, 0, 32), laps)
                if device.rings:
                    self.assertEqual(device.rings[0].first, len(data))

    @helpers.thorough
    def test_each_can_be_opened(self):
        source, blocks, names = "", "", sorted(file.stem for file in DEVICES.glob("*.toml"))
        for name in names:
            header = (DEVICES / f"{name}_regs.h").read_text()
            bar = re.search(r"_BAR_BYTES (\w+)", header)
            source += f'#include "{DEVICES}/{name}_regs.h"\n'
            blocks += OPENED % {"name": name, "arguments": ", ".join(
                word for word in ("rings", "pmu") if f"*{word})" in header),
                                "has_bar": bar is not None, "bar_bytes": bar[1] if bar else 0}
        (helpers.scratch() / "opened.c").write_text(
            "#include <stdio.h>\n#define NPUPROF_IMPLEMENTATION\n"
            f'#include "{ROOT}/npuprof.h"\n#include "{ROOT}/npuprof_npu.h"\n{source}'
            f"static uint32_t words[0x1030000 / 4];\n"
            f"static uint64_t memory[16][0x20000 / 8];\n"
            "static bool read_counter(void *user, unsigned i, uint64_t *value)\n"
            "{\n    (void)user;\n    *value = i;\n    return true;\n}\n"
            f"int main(void)\n{{\n    npuprof_start(1);\n{blocks}    return 0;\n}}\n")
        built(self, "opened")
        done = helpers.run([helpers.scratch() / "opened"], env=helpers.environment())
        self.assertEqual(dict(zip(names, done.stdout.splitlines())), dict.fromkeys(names, "NPUPROF_OK: ok"))

    def test_every_file_says_where_its_facts_are_from(self):
        for file in DEVICES.glob("*.toml"):
            with self.subTest(file.name):
                self.assertTrue(description(file.stem).source)
                self.assertIn("SPDX-License-Identifier: MIT", file.read_text())


class Page(unittest.TestCase):
    def test_every_device_is_in_the_table(self):
        linked = set(re.findall(r"\(([a-z0-9_/.]+\.toml)\)", PAGE.read_text()))
        self.assertEqual(linked, {file.name for file in DEVICES.glob("*.toml")} | {"../digits/npusim.toml"})
        for link in linked:
            self.assertTrue((DEVICES / link).is_file(), link)

    def test_the_example_is_a_description(self):
        toml = re.search(r"```toml\n(.*?)```", PAGE.read_text(), re.DOTALL)[1]
        header = generate(toml, "acme.toml")
        for line in ("desc.ring.first = 16u;", "desc.ring.producer.has_laps = true;", "acme_npu_desc(void)"):
            self.assertIn(line, header)

    @helpers.thorough
    def test_the_example_runs(self):
        toml, code = (re.search(rf"```{language}\n(.*?)```", PAGE.read_text(), re.DOTALL)[1]
                      for language in ("toml", "c"))
        folder = helpers.scratch()
        (folder / "acme_regs.h").write_text(generate(toml, "acme.toml"))
        (folder / "acme.c").write_text(CLOCK + code + MAIN)
        built(self, "acme")
        helpers.run([folder / "acme"], code=0, printed="", said="", cwd=folder, env=helpers.environment())
        trace = helpers.load(folder / "t.json")
        spans = [e for e in helpers.events(trace, "X") if e["name"] == "Conv2d"]
        self.assertEqual([e["args"]["job"] for e in sorted(spans, key=lambda e: e["ts"])], [1, 2, 3, 4, 5])
        for span in spans:
            self.assertAlmostEqual(span["dur"], 200, delta=1)
        self.assertEqual(len({e["tid"] for e in spans}), 2)
        self.assertEqual(len(helpers.events(trace, "f")), 5)

    def test_every_function_it_names_is_there(self):
        api = (ROOT / "npuprof_npu.h").read_text()
        declared = set(re.findall(r"_FN_\((?:\w+, )?[\w *]+,\s*(npuprof_npu_\w+),", api))
        for file in (PAGE, *DEVICES.glob("*.toml")):
            for name in re.findall(r"\b(npuprof_npu_\w+)\(", file.read_text()):
                self.assertIn(name, declared, file)

    def test_every_key_it_names_is_in_the_help(self):
        for key in re.findall(r"`([a-z_]+)(?: = [^`]*)?`", PAGE.read_text()):
            if "npuprof" not in key:
                self.assertRegex(MANUAL, rf"\b{key}\b")
