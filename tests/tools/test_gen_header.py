# npuprof.py gen from TOML: the values that come out, headers that compile everywhere; the shipped headers
# SPDX-License-Identifier: MIT

import concurrent.futures
import os
import re
import shutil
import unittest
import unittest.mock

import helpers
from helpers import ROOT
from npuprof.gen import schema
from npuprof.gen.command import generate
from npuprof.gen.manual import MANUAL
from gen_texts import BARE, BIG_ENDIAN_MEMORY, DEVICE, GOOD, InDirectory, NPUPROF, prints, replaced

# npuprof_npu.h as far as a generated header needs it.
TWO_WORDS = """
[device]
name = "words"
bar_bytes = 8
[[register]]
name = "HI"
offset = 0
width = 32
access = "ro"
[[register]]
name = "LO"
offset = 4
width = 32
access = "ro"
[roles.counter]
lo = "LO"
hi = "HI"
"""
EVENTS = TWO_WORDS.replace('"words"', '"events"') + """
[[roles.pmu]]
name = "busy \\"é\\""
lo = "LO"
bits = 30
busy = true
[[roles.pmu]]
name = "stalls"
lo = "LO"
hi = "HI"
order = "lo-latches-hi"
counts_down = true
"""
COMPILERS = [(name, language, std)
             for names, language, stds in ((("gcc", "clang"), "c", ("c99", "c11", "c17")),
                                           (("g++", "clang++"), "c++", ("c++11", "c++14", "c++17")))
             for name in names for std in stds]


class Output(InDirectory):
    def test_same_input_same_bytes(self):
        header, other = self.directory / "a.h", self.directory / "b.h"
        self.assertEqual(self.gen(DEVICE, "-o", header), (0, ""))
        environment = dict(os.environ, PYTHONHASHSEED="7", LC_ALL="C", TZ="Asia/Tokyo")
        helpers.npuprof_py("gen", os.path.relpath(DEVICE, self.directory), "-o", "b.h", cwd=self.directory,
                           env=environment)
        self.assertEqual(header.read_bytes(), other.read_bytes())
        self.assertNotIn(str(ROOT), header.read_text())
        self.assertRegex(header.read_text(), r"from device\.toml, sha256 [0-9a-f]{16}\.\n")

    def test_help_lists_every_key(self):
        text = MANUAL[MANUAL.index("The keys."):]
        for table in ("DEVICE", "REGISTER", "REGISTER_FIELD", "RECORD", "RECORD_FIELD", "COUNTER", "RING",
                      "PROGRESS", "PMU", "OPERATOR"):
            for key in getattr(schema, table):
                self.assertRegex(text, rf"\b{key}\b", table)
        for words in (schema.ORDERS, schema.SOURCES, schema.UNITS, schema.READY, schema.KINDS):
            for word in words:
                self.assertIn(f'"{word}"', text)
        self.assertIn(MANUAL, helpers.npuprof_py("gen", "--help").stdout)

    def test_the_example_of_the_help_is_a_description(self):
        lines = MANUAL[MANUAL.index("    [device]"):MANUAL.index("The generated mynpu")].splitlines()
        header = generate("\n".join(line[4:] for line in lines) + "\n", "d.toml")
        self.assertIn("desc.ring.feed = true;", header)

    def test_event_counters_without_a_clock(self):
        """Nobody can read a counter then: jobs are completed by hand."""
        counter = '[roles.counter]\nlo = "LO"\nhi = "HI"\n'
        self.assertIn(counter, EVENTS)
        line = "desc.anchors_only = true;"
        self.assertIn(line, generate(EVENTS.replace(counter, ""), "d.toml"))
        self.assertNotIn(line, generate(EVENTS, "d.toml"))

    def test_nothing_is_left_empty(self):
        good, big, bare = (generate(text, "d.toml") for text in (GOOD, BIG_ENDIAN_MEMORY, BARE))
        for header in good, big, bare:
            self.assertNotRegex(header, r"(?m):\s*(\*/)?$")
            self.assertEqual(header.count("SPDX-License-Identifier: MIT"), 1)
        self.assertNotRegex(big + bare, "Source of|COUNTER_HZ|lag_ns")
        self.assertTrue(bare.startswith("/* bare: "))
        self.assertNotIn("TEXT_MASK", good)
        self.assertIn("#define BIGNPU_BAR_BYTES 0x100000000ull\n", big)
        no_operators = replaced(GOOD[GOOD.index("[operators]"):], "", 'execution_op = "EXECUTION"', "")
        self.assertNotIn("ops", generate(no_operators, "d.toml"))

    def test_check(self):
        source, header = self.directory / "d.toml", self.directory / "d.h"
        source.write_text(GOOD)
        self.assertEqual(self.gen(source, "-o", header, "--check")[0], 1)
        self.assertFalse(header.exists())
        self.gen(source, "-o", header)
        self.assertEqual(self.gen(source, "-o", header, "--check"), (0, ""))
        fresh = header.read_bytes()
        for stale in (fresh + b"\n", fresh.replace(b"0x14u", b"0x18u"), b""):
            header.write_bytes(stale)
            code, output = self.gen(source, "-o", header, "--check")
            self.assertEqual((code, header.read_bytes()), (1, stale))
            self.assertIn("stale or edited", output)
        header.write_bytes(fresh)
        source.write_text(GOOD + "# a comment\n")
        self.assertEqual(self.gen(source, "-o", header, "--check")[0], 1)

    def test_write(self):
        header, link = self.directory / "d.h", self.directory / "link.h"
        header.write_text("old")
        link.symlink_to(header)
        os.link(header, self.directory / "old.h")
        self.assertEqual(self.gen(DEVICE, "-o", link)[0], 0)
        self.assertFalse(link.is_symlink())             # a link gives way, it is not followed
        self.assertIn("TESTNPU", link.read_text())
        self.assertEqual(header.read_text(), "old")
        self.assertEqual((self.directory / "old.h").read_text(), "old")  # replaced, not written over
        self.assertEqual(sorted(os.listdir(self.directory)), ["d.h", "link.h", "old.h"])
        with unittest.mock.patch("os.replace", side_effect=OSError(28, "No space left on device")):
            for target in ("old.h", "new.h"):
                self.assertEqual(self.gen(DEVICE, "-o", self.directory / target)[0], 2)
        self.assertEqual((self.directory / "old.h").read_text(), "old")
        self.assertEqual(sorted(os.listdir(self.directory)), ["d.h", "link.h", "old.h"])

    def test_what_is_no_file_is_written_in_place(self):
        # Why a pipe of our own: a broken tool, run as root, would replace a device such as /dev/full.
        pipe = self.directory / "pipe"
        os.mkfifo(pipe)
        reader = os.open(pipe, os.O_RDONLY | os.O_NONBLOCK)
        self.addCleanup(os.close, reader)
        self.assertEqual(self.gen(DEVICE, "-o", pipe), (0, ""))
        self.assertTrue(pipe.is_fifo())
        self.assertEqual(os.read(reader, 65536).decode(), generate(GOOD, "device.toml"))


class Compiled(InDirectory):
    def setUp(self):
        super().setUp()
        for name, text in (("device", GOOD), ("big", BIG_ENDIAN_MEMORY), ("words", TWO_WORDS), ("bare", BARE),
                           ("events", EVENTS)):
            (self.directory / f"{name}.h").write_text(generate(text, f"{name}.toml"))

    @helpers.thorough
    def test_clean_everywhere(self):
        generated = ('#include "device.h"\n#include "big.h"\n#include "words.h"\n#include "bare.h"\n'
                     '#include "events.h"\n')
        users = "".join(f"void use_{name}(npuprof_npu_desc *d);\n"
                        f"void use_{name}(npuprof_npu_desc *d) {{ *d = {name}_npu_desc(); }}\n"
                        for name in ("testnpu", "bignpu", "words", "bare", "events"))
        sources = {"alone": generated + "int x;\n", "before": NPUPROF + generated + users,
                   "late": generated + NPUPROF + generated * 2 + users}
        jobs = []
        for name, source in sources.items():
            (self.directory / f"{name}.c").write_text(source)
            jobs += [(name, *compiler) for compiler in COMPILERS if shutil.which(compiler[0])]
        for missing in sorted({name for name, language, std in COMPILERS if not shutil.which(name)}):
            print(f"skip generated headers with {missing}: not installed")

        def job(arguments):
            name, compiler, language, std = arguments
            return helpers.run([compiler, "-x", language, "-I", self.directory, *helpers.WARNINGS,
                                f"-std={std}", "-fsyntax-only", f"{name}.c"], cwd=self.directory)
        with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
            for arguments, result in zip(jobs, pool.map(job, jobs)):
                with self.subTest(arguments):
                    self.assertEqual((result.returncode, result.stderr), (0, ""))

    def test_values(self):
        expressions = {
            # device.toml
            "TESTNPU_BAR_BYTES": 65536, "TESTNPU_PE_COUNT": 4, "TESTNPU_COUNTER_HZ": 25003000,
            "TESTNPU_TICKS_LO_OFFSET": 0x10,
            "TESTNPU_DOORBELL8_OFFSET": 0x28, "TESTNPU_STATUS_BUSY_POS": 3, "TESTNPU_STATUS_BUSY_MASK": 8,
            "TESTNPU_STATUS_STATE_POS": 60, "TESTNPU_STATUS_STATE_MASK": 0xf << 60,
            "TESTNPU_STATUS_STATE_HALT": 15,
            "(~TESTNPU_STATUS_BUSY_MASK) >> 63": 1,
            "TESTNPU_STATUS_STATE_HALT << TESTNPU_STATUS_STATE_POS": 0xf << 60,
            "TESTNPU_COMPLETION_BYTES": 48, "TESTNPU_COMPLETION_PE_OFFSET": 0,
            "TESTNPU_COMPLETION_PE_WIDTH": 4,
            "TESTNPU_COMPLETION_PE_POS": 16, "TESTNPU_COMPLETION_PE_MASK": 0xf0000,
            "TESTNPU_COMPLETION_STATUS_FAULT": 128,
            "TESTNPU_COMPLETION_TEXT_WIDTH": 20, "TESTNPU_OP_LOAD": 3, "TESTNPU_OP_COUNT": 4,
            'strcmp(t.name, "testnpu")': 0, "t.bar == NULL": 1, "t.bar_bytes": 0, "t.resource == NULL": 1,
            "t.pe_count": 4,
            "t.counter.lo_offset": 0x10, "t.counter.hi_offset": 0x14, "t.counter.bits": 48,
            "t.counter.access": 32,
            "t.counter.order == NPUPROF_NPU_LO_LATCHES_HI": 1, "t.counter.counts_down": 1,
            "t.counter.big_endian": 0,
            "t.counter.hz": 25003000, "t.counter.lag_ns": 350, "t.ring.memory == NULL": 1,
            "t.ring.offset": 0x1000, "t.ring.entry_bytes": 48,
            "t.ring.count": 256, "t.ring.producer.offset": 0x18, "t.ring.producer.bits": 20,
            "t.ring.producer.unit": 1,
            "t.ring.big_endian": 0, "t.ring.op_count": 3, "t.ring.execution_op": 1,
            r'strcmp(t.ring.ops[2].name, "Load \"\303\251\" \\n ?" "?/ %d")': 0,
            "t.ring.ops[2].code": 3,
            r'strcmp(t.ring.category, "NPU \\n?" "?/\" %s")': 0,
            # the other way round
            "BIGNPU_BAR_BYTES >> 32": 1, "BIGNPU_TICKS_OFFSET": 0xfffffff8, "b.counter.bits": 64,
            "b.counter.access": 64,
            "b.counter.order == NPUPROF_NPU_SINGLE": 1, "b.counter.hz": 0, "b.counter.big_endian": 1,
            "b.counter.counts_down": 0, "b.counter.lag_ns": 0,
            "b.ring.big_endian": 1, "b.ring.offset": 0, "b.ring.count": 4, "b.ring.producer.bits": 32,
            "b.ring.producer.unit": 0,
            "b.ring.op_count": 1, "b.ring.category == NULL": 1, "b.ring.execution_op": 0, "b.pe_count": 1,
            "w.counter.lo_offset": 4, "w.counter.hi_offset": 0, "w.counter.bits": 64, "w.counter.access": 32,
            "w.counter.order == NPUPROF_NPU_HI_LO_HI": 1, "w.ring.ops == NULL": 1,
            "w.pmu == NULL": 1, "w.pmu_count": 0, "e.pmu_count": 2,
            r'strcmp(e.pmu[0].name, "busy \"\303\251\"")': 0,
            "e.pmu[0].is_busy": 1, "e.pmu[0].counter.lo_offset": 4, "e.pmu[0].counter.hi_offset": 0,
            "e.pmu[0].counter.bits": 30,
            "e.pmu[0].counter.order == NPUPROF_NPU_SINGLE": 1, "e.pmu[0].counter.counts_down": 0,
            "e.pmu[0].counter.access": 32,
            'strcmp(e.pmu[1].name, "stalls")': 0, "e.pmu[1].is_busy": 0, "e.pmu[1].counter.bits": 64,
            "e.pmu[1].counter.order == NPUPROF_NPU_LO_LATCHES_HI": 1, "e.pmu[1].counter.counts_down": 1,
            "e.pmu[1].counter.hi_offset": 0, "e.pmu[1].counter.big_endian": 0, "e.pmu[1].counter.hz": 0,
            "n.ring.count": 0, "n.counter.bits": 0, "n.pe_count": 1,
        }
        fields = {"t.ring.sequence": (6, 2, 0, 16), "t.ring.job": (0, 4, 0, 16),
                  "t.ring.start": (8, 8, 0, 64),
                  "t.ring.end": (16, 8, 0, 64), "t.ring.pe": (0, 4, 16, 4), "t.ring.op": (4, 1, 0, 8),
                  "t.ring.status": (5, 1, 0, 8), "t.ring.execution": (0, 0, 0, 0),
                  "t.ring.instruction": (0, 0, 0, 0),
                  "b.ring.start": (0, 4, 0, 24), "b.ring.job": (0, 0, 0, 0)}
        for field, values in fields.items():
            members = ("offset", "width_bytes", "lsb", "bits")
            expressions |= {f"{field}.{member}": value for member, value in zip(members, values)}
        output = self.printed(
            '#include <stdio.h>\n#include <string.h>\n' + NPUPROF
            + '#include "device.h"\n#include "big.h"\n#include "words.h"\n#include "bare.h"\n'
            '#include "events.h"\n'
            "int main(void)\n{\n"
            "    npuprof_npu_desc t = testnpu_npu_desc(), b = bignpu_npu_desc(), w = words_npu_desc();\n"
            "    npuprof_npu_desc n = bare_npu_desc(), e = events_npu_desc();\n" + prints(expressions)
            + "    return 0;\n}\n", "-std=c99")
        self.assertEqual(dict(zip(expressions, map(int, output), strict=True)), expressions)

    def test_edited_header_does_not_compile(self):
        header = (self.directory / "device.h").read_text()
        for name, value in (("TICKS_HI_OFFSET", "0xfffdu"), ("BAR_BYTES", "0x20u"),
                            ("COMPLETION_END_OFFSET", "0x29u"),
                            ("RING_COUNT", "2000u")):
            with self.subTest(name=name):
                edited, count = re.subn(rf"(#define TESTNPU_{name}) \w+", rf"\1 {value}", header)
                self.assertEqual(count, 1)
                (self.directory / "edited.c").write_text(edited)
                result = helpers.run([*helpers.CC, "-fsyntax-only", "edited.c"], cwd=self.directory)
                self.assertIn("generate this header again", result.stderr)


# What the shipped headers must say: the devices' own documents, and what was measured on them.
SHIPPED = {
    "hda": {"HDA_GCTL_OFFSET": 0x08, "HDA_GCTL_CRST_MASK": 1, "HDA_WALCLK_OFFSET": 0x30,
            "HDA_WALCLK_ALIAS_OFFSET": 0x2030,
            "d.counter.lo_offset": 0x30, "d.counter.bits": 32, "d.counter.order == NPUPROF_NPU_SINGLE": 1,
            "d.counter.hz": 24000000},
    "rtl8139": {"RTL8139_TCTR_OFFSET": 0x48, "RTL8139_BAR_BYTES": 256, "d.counter.lo_offset": 0x48,
                "d.counter.bits": 32,
                "d.counter.hz": 33333333},
    "hpet": {"HPET_PERIOD_OFFSET": 4, "HPET_CONF_ENABLE_MASK": 1, "d.counter.lo_offset": 0xf0,
             "d.counter.hi_offset": 0xf4,
             "d.counter.bits": 64, "d.counter.order == NPUPROF_NPU_HI_LO_HI": 1, "d.counter.hz": 0},
    "igb": {"IGB_TIMINCA_OFFSET": 0xb608, "IGB_TIMINCA_INCPERIOD_POS": 24, "IGB_TSYNCTXCTL_OFFSET": 0xb614,
            "IGB_TSAUXC_OFFSET": 0xb640,
            "IGB_TSYNCTXCTL_EN_MASK": 0x10, "IGB_TXSTMPL_OFFSET": 0xb618, "IGB_TXSTMPH_OFFSET": 0xb61c,
            "d.counter.lo_offset": 0xb600,
            "d.counter.hi_offset": 0xb604, "d.counter.bits": 64,
            "d.counter.order == NPUPROF_NPU_LO_LATCHES_HI": 1},
    "ethosu": {"ETHOSU_PMCR_OFFSET": 0x180, "ETHOSU_PMCNTENSET_OFFSET": 0x184,
               "ETHOSU_PMCNTENCLR_OFFSET": 0x188,
               "ETHOSU_PMCNTENCLR_CYCLE_CNT_MASK": 1 << 31, "ETHOSU_PMCNTENSET_EVENT_CNT_COUNT": 4,
               "ETHOSU_PMCCNTR_CFG_OFFSET": 0x1a8,
               "ETHOSU_PMEVCNTR_OFFSET + 3 * ETHOSU_PMEVCNTR_STRIDE": 0x30c, "ETHOSU_PMEVTYPER_OFFSET": 0x380,
               "ETHOSU_PMEVTYPER_EV_TYPE_MASK": 0x3ff, "ETHOSU_PMEVTYPER_EV_TYPE_MAC_ACTIVE": 48,
               "ETHOSU_PMEVTYPER_EV_TYPE_ECC_SB1": 433,
               "ETHOSU_PMEVTYPER_EV_TYPE_AXI1_RD_TRANS_ACCEPTED": 384,
               "ETHOSU_PMEVTYPER_EV_TYPE_NPU_IDLE": 32,
               "d.counter.lo_offset": 0x1a0, "d.counter.hi_offset": 0x1a4, "d.counter.bits": 48,
               "d.counter.access": 32,
               "d.counter.order == NPUPROF_NPU_HI_LO_HI": 1, "d.pmu_count": 4,
               'strcmp(d.pmu[3].name, "event_3")': 0,
               "d.pmu[0].counter.lo_offset": 0x300, "d.pmu[3].counter.lo_offset": 0x30c,
               "d.pmu[3].counter.bits": 32,
               "d.pmu[3].counter.access": 32, "d.pmu[3].is_busy": 0, "d.requirement_count": 2,
               "d.requirements[0].offset": 0x180, "d.requirements[0].value": 1,
               "d.requirements[1].mask": 1 << 31,
               'strcmp(d.requirements[1].text, "PMCNTENSET.CYCLE_CNT")': 0},
    "ethosu85": {"d.counter.lo_offset": 0x11a0, "d.counter.hi_offset": 0x11a4, "d.counter.bits": 48,
                 "d.pmu_count": 8, "d.pmu[7].counter.lo_offset": 0x131c, "d.requirements[0].offset": 0x1180,
                 "d.requirements[1].offset": 0x1184, "d.requirements[1].value": 1 << 31},
    "vip": {"d.counter.lo_offset": 0x78, "d.counter.bits": 32, "d.pmu[0].is_idle": 1,
            "d.pmu[0].counter.lo_offset": 0x7c, "d.pmu[1].scale": 8},
    "npusim": {"NPUSIM_TICKS_LO_OFFSET": 0x100, "d.ring.count": 4096, "d.counter.lag_ns": 400},
}
# A counter in memory behind each description: the high word has all bits, so those that are not valid must
# not come out.
COUNTS = """
    {
        static uint32_t words[0x100000 / 4];
        static npuprof_npu npu;
        npuprof_npu_desc d = %(device)s_npu_desc();
        uint64_t ticks = 0;
        words[d.counter.lo_offset / 4] = 0x89abcdefu;
        if (d.counter.hi_offset) words[d.counter.hi_offset / 4] = 0xf1234567u;
        for (unsigned i = 0; i < d.requirement_count; i++)      /* what must be switched on */
            words[d.requirements[i].offset / 4] |= (uint32_t)d.requirements[i].value;
        d.bar = words;
        d.bar_bytes = sizeof words;
        if (npuprof_npu_open(&npu, &d) != NPUPROF_OK) return 1;
        if (npuprof_npu_read(&npu, &ticks) != NPUPROF_OK) return 1;
        npuprof_npu_close(&npu);
        printf("%%llu\\n", (unsigned long long)ticks);
%(prints)s    }
"""


class Committed(InDirectory):
    def headers(self):
        return {source.stem: source.with_name(f"{source.stem}_regs.h")
                for source in sorted(ROOT.glob("examples/*/*.toml"))}

    def test_headers_of_the_examples_are_fresh(self):
        for name, header in self.headers().items():
            with self.subTest(name):
                self.assertEqual(self.gen(header.with_name(f"{name}.toml"), "-o", header, "--check"), (0, ""))

    @helpers.thorough
    def test_clean_everywhere(self):
        includes = "".join(f'#include "{header}"\n' for header in self.headers().values())
        files = {"alone": includes,
                 "all": NPUPROF + includes}
        for name, header in self.headers().items():
            # the storage that the function asks for: `void`, or pointers to rings and event counters
            types = re.search(r"_npu_desc\((.*)\)\n{", header.read_text())[1]
            names = ", ".join(part.rpartition("*")[2] for part in types.split(", ") if part != "void")
            files["all"] += (f"npuprof_npu_desc use_{name}({types});\n"
                             f"npuprof_npu_desc use_{name}({types}) {{ return {name}_npu_desc({names}); }}\n")
        for name, text in files.items():
            (self.directory / f"{name}.c").write_text(text)
        for compiler, language, std in COMPILERS:
            if not shutil.which(compiler):
                continue
            for name in files:
                with self.subTest(compiler=compiler, std=std, name=name):
                    helpers.run([compiler, "-x", language, f"-std={std}", *helpers.WARNINGS, "-fsyntax-only",
                                 f"{name}.c"], code=0, said="", cwd=self.directory)

    @helpers.thorough
    def test_values(self):
        self.assertLessEqual(set(SHIPPED), set(self.headers()))
        expected, blocks = [], ""
        for device, facts in SHIPPED.items():
            bits = facts.get("d.counter.bits", 64)
            expected += [0xf123456789abcdef % 2**bits, *facts.values()]
            blocks += COUNTS % {"device": device, "prints": prints(facts)}
        output = self.printed(
            "#include <stdio.h>\n#include <string.h>\n#define NPUPROF_IMPLEMENTATION\n" + NPUPROF
            + "".join(f'#include "{header}"\n' for header in self.headers().values())
            + "int main(void)\n{\n" + blocks + "    return 0;\n}\n", "-std=gnu11")
        self.assertEqual(list(map(int, output)), expected)
