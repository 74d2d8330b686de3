# npuprof.py gen from CMSIS-SVD: every part of the format, vendors' files, and files that want to do harm
# SPDX-License-Identifier: MIT
"""The small files here use one part of the format each. The vendors' files are those of tests/tools/data/svd
and, if there, ../shared/svd (NPUPROF_SVD_FOLDER names another folder)."""

import contextlib
import io
import lzma
import os
import pathlib
import random
import re
import shutil
import subprocess
import sys
import tempfile
import time
import unittest
import unittest.mock
import xml.etree.ElementTree

import helpers
from helpers import ROOT

sys.path.insert(0, str(ROOT / "tools"))
from npuprof import cli  # noqa: E402
from npuprof.gen import svd as svd_files  # noqa: E402
from npuprof.gen.c_text import c_name  # noqa: E402
from npuprof.gen.header import generate_svd  # noqa: E402
from npuprof.gen.svd import limits  # noqa: E402
from npuprof.base.messages import Refused  # noqa: E402

DATA = ROOT / "tests" / "tools" / "data" / "svd"
SHARED = pathlib.Path(os.environ.get("NPUPROF_SVD_FOLDER") or ROOT.parent / "shared" / "svd")
VENDORS = ("ARM_Sample", "CMSDK_CM3", "e310x", "esp32c3", "rp2040")
WARNINGS = ["-Wall", "-Wextra", "-Wpedantic", "-Wshadow", "-Wconversion", "-Wundef", "-Werror"]
COMPILERS = (("gcc", "c", "c99"), ("clang", "c", "c99"), ("g++", "c++", "c++11"), ("clang++", "c++", "c++11"))

# Register offsets and the like, from the vendors' manuals: RP2040 Datasheet, ESP32-C3 Technical Reference
# Manual, SiFive
# FE310-G002 Manual, Arm Cortex-M System Design Kit Technical Reference Manual (DDI 0479).
FACTS = {
    "rp2040": {
        "RP2040_TIMER_BASE": 0x40054000, "RP2040_TIMER_TIMEHR_OFFSET": 0x08,
        "RP2040_TIMER_TIMELR_OFFSET": 0x0c,
        "RP2040_TIMER_TIMERAWH_OFFSET": 0x24, "RP2040_TIMER_TIMERAWL_OFFSET": 0x28,
        "RP2040_TIMER_PAUSE_OFFSET": 0x30,
        "RP2040_SIO_BASE": 0xd0000000, "RP2040_SIO_CPUID_OFFSET": 0, "RP2040_SIO_FIFO_ST_OFFSET": 0x50,
        "RP2040_SIO_SPINLOCK31_OFFSET": 0x17c, "RP2040_SIO_FIFO_ST_VLD_MASK": 1,
        "RP2040_SIO_FIFO_ST_ROE_POS": 3,
        "RP2040_UART1_BASE": 0x40038000, "RP2040_UART1_UARTFR_OFFSET": 0x18,
        "RP2040_UART0_UARTFR_OFFSET": 0x18,
        "RP2040_PIO1_BASE": 0x50300000, "RP2040_PIO1_SM3_PINCTRL_OFFSET": 0x124,
        "RP2040_PLL_USB_PRIM_POSTDIV1_MASK": 7 << 16,
        "RP2040_RESETS_RESET_RESET": 0x1ffffff, "RP2040_CLOCKS_CLK_REF_CTRL_SRC_XOSC_CLKSRC": 2,
    },
    "esp32c3": {
        "ESP32_C3_SYSTIMER_BASE": 0x60023000, "ESP32_C3_SYSTIMER_UNIT0_OP_OFFSET": 0x4,
        "ESP32_C3_SYSTIMER_UNIT0_VALUE_HI_OFFSET": 0x40, "ESP32_C3_SYSTIMER_UNIT0_VALUE_LO_OFFSET": 0x44,
        "ESP32_C3_SYSTIMER_UNIT0_VALUE_HI_TIMER_UNIT0_VALUE_HI_MASK": 0xfffff,
        "ESP32_C3_TIMG1_BASE": 0x60020000, "ESP32_C3_TIMG1_T0LO_OFFSET": 0x4,
        "ESP32_C3_UART1_BASE": 0x60010000,
        "ESP32_C3_UART1_STATUS_OFFSET": 0x1c, "ESP32_C3_RSA_M_MEM_COUNT": 384, "ESP32_C3_RSA_M_MEM_STRIDE": 1,
    },
    "e310x": {
        "FE310_PRCI_BASE": 0x10008000, "FE310_PRCI_HFROSCCFG_OFFSET": 0, "FE310_PRCI_HFXOSCCFG_OFFSET": 4,
        "FE310_PRCI_PLLCFG_OFFSET": 8, "FE310_PRCI_PLLOUTDIV_OFFSET": 0xc,
        "FE310_PRCI_HFROSCCFG_READY_POS": 31,
        "FE310_CLINT_BASE": 0x02000000, "FE310_CLINT_MTIME_OFFSET": 0xbff8,
        "FE310_CLINT_MTIMEH_OFFSET": 0xbffc,
        "FE310_PLIC_PRIORITY_COUNT": 52, "FE310_PLIC_THRESHOLD_OFFSET": 0x200000,
        "FE310_QSPI1_BASE": 0x10024000,
        "FE310_PWM2_CMP3_OFFSET": 0x2c,
    },
    "CMSDK_CM3": {
        "CMSDK_CM3_TIMER0_BASE": 0x40000000, "CMSDK_CM3_TIMER1_BASE": 0x40001000,
        "CMSDK_CM3_TIMER1_VALUE_OFFSET": 4,
        "CMSDK_CM3_TIMER1_INTCLEAR_OFFSET": 0xc, "CMSDK_CM3_TIMER1_INTSTATUS_OFFSET": 0xc,
        "CMSDK_CM3_UART3_BAUDDIV_OFFSET": 0x10,
    },
    "ARM_Sample": {
        "ARMCM3XXX_TIMER2_BASE": 0x40010200, "ARMCM3XXX_TIMER2_RELOAD_OFFSET": 0x50,
        "ARMCM3XXX_TIMER2_RELOAD_COUNT": 4,
        "ARMCM3XXX_TIMER0_PRESCALE_RD_OFFSET": 0x28, "ARMCM3XXX_TIMER0_PRESCALE_WR_OFFSET": 0x28,
    },
}


def vendor(name):
    """The bytes of a vendor's file, or None. The two without a licence to copy are in ../shared/svd only."""
    if (DATA / f"{name}.svd.xz").exists():
        return lzma.decompress((DATA / f"{name}.svd.xz").read_bytes())
    return (SHARED / f"{name}.svd").read_bytes() if (SHARED / f"{name}.svd").exists() else None


def vendors():
    """(name, bytes) of all that are there."""
    return [(name, data) for name in VENDORS if (data := vendor(name)) is not None]


HERE = "\n<!--#!-->"     # the next element's line is the one that a refusal must name


def device(peripherals, properties="<size>32</size>"):
    """A file with these peripherals."""
    return f"<device>\n<name>dev</name>\n{properties}\n<peripherals>{peripherals}</peripherals>\n</device>"


def one_peripheral(registers="", more="", name="P", base=0x100, attributes=""):
    inside = f"<registers>{registers}</registers>" if registers else ""
    return (f"<peripheral{attributes}><name>{name}</name><baseAddress>{base}</baseAddress>{more}{inside}"
            "</peripheral>")


def peripheral(registers, more="", name="P"):
    """A file with one peripheral."""
    return device(one_peripheral(registers, more, name))


def register(name, offset, more="", attributes=""):
    return (f"<register{attributes}><name>{name}</name><addressOffset>{offset}</addressOffset>{more}"
            "</register>\n")


def cluster(name, offset, registers="", more="", attributes=""):
    return (f"<cluster{attributes}><name>{name}</name>{more}<addressOffset>{offset}</addressOffset>"
            f"{registers}</cluster>")


def field(name, bits, more=""):
    """A field; `bits` is a bitRange, or XML."""
    bits = bits if "<" in bits or not bits else f"<bitRange>{bits}</bitRange>"
    return f"<field><name>{name}</name>{bits}{more}</field>\n"


def with_fields(*fields):
    """A file with one register R with these fields."""
    return peripheral(register("R", 0, f"<fields>{''.join(fields)}</fields>"))


def one_field(bits, more=""):
    """A file with one register R and one field F."""
    return with_fields(field("F", bits, more))


def dim(count, step, index=None):
    index = "" if index is None else f"<dimIndex>{index}</dimIndex>"
    return f"<dim>{count}</dim><dimIncrement>{step}</dimIncrement>{index}"


def states(*pairs, more="", name=""):
    """<enumeratedValues> of (name, value)."""
    inside = "".join(f"<enumeratedValue><name>{n}</name><value>{v}</value></enumeratedValue>"
                     for n, v in pairs)
    return f"<enumeratedValues>{f'<name>{name}</name>' if name else ''}{more}{inside}</enumeratedValues>"


def derived(path):
    return f" derivedFrom='{path}'"


def generate(text, peripherals=(), strict=False):
    data = text if isinstance(text, bytes) else text.encode()
    return generate_svd(svd_files.Device(data, "d.svd", strict), peripherals)


def values(header):
    """Name -> number of each macro."""
    return {name: int(value.rstrip("ul"), 0) for name, value in re.findall(r"#define (\w+) (\w+)$", header,
                                                                           re.M)}


def strip(prefix, found):
    return {name[len(prefix):]: value for name, value in found.items() if name.startswith(prefix)}


def compiled(compiler, language, standard, folder, file):
    """(exit code, messages)"""
    done = subprocess.run([compiler, "-x", language, f"-std={standard}", *WARNINGS, "-fsyntax-only", file],
                          cwd=folder,
                          capture_output=True, text=True)
    return done.returncode, done.stderr[:2000]


class Format(unittest.TestCase):
    """One part of the format each. Names in the expectation go without DEV_P_."""

    def expect(self, text, expected, **options):
        found = strip("DEV_P_", values(generate(text, **options)))
        self.assertEqual({name: found.get(name) for name in expected}, expected)
        return found

    def test_bit_ranges(self):
        for bits in ("<bitRange>[14:9]</bitRange>", "<lsb>9</lsb><msb>0xE</msb>",
                     "<msb>14</msb><lsb>#1001</lsb>",
                     "<bitOffset>9</bitOffset><bitWidth>6</bitWidth>"):
            self.expect(one_field(bits), {"R_F_POS": 9, "R_F_MASK": 0x7e00})
        self.expect(one_field("<bitOffset>31</bitOffset>"), {"R_F_POS": 31, "R_F_MASK": 1 << 31})
        self.expect(one_field("[31:0]"), {"R_F_POS": 0, "R_F_MASK": 0xffffffff})

    def test_numbers(self):
        for text, value in (("0x10", 16), ("0X1c", 28), ("20", 20), ("010", 8 + 2), ("#10100", 20), ("+4", 4),
                            ("1k", 1024),
                            ("0x1M", 1 << 20), ("  8 \n", 8), ("1<!-- c -->2", 12)):
            self.expect(peripheral(register("R", text, "<size>8</size>")), {"R_OFFSET": value})

    def test_enumerated_values(self):
        numbers = states(("a", "0"), ("b", "0x1"), ("c", "#10"), ("d", "0b11"), ("e", "#1xx"),
                         ("f", "0b010X"), ("g", "+15"),
                         ("e_care", 5))
        rest = ("<enumeratedValue><name>rest</name><isDefault>true</isDefault></enumeratedValue>"
                "</enumeratedValues>")
        found = self.expect(one_field("[3:0]", numbers.replace("</enumeratedValues>", rest)), {
            "R_F_A": 0, "R_F_B": 1, "R_F_C": 2, "R_F_D": 3, "R_F_E": 4, "R_F_E_CARE": 12, "R_F_F": 4,
            "R_F_F_CARE": 14,
            "R_F_G": 15, "R_F_E_CARE_2": 5})
        self.assertNotIn("R_F_REST", found)
        self.assertNotIn("R_F_A_CARE", found)

    def test_values_for_reading_and_writing(self):
        sets = (states(("idle", 0), ("same", 2), more="<usage>read</usage>")
                + states(("clear", 1), ("same", 3), more="<usage>write</usage>"))
        self.expect(one_field("[1:0]", sets),
                    {"R_F_IDLE": 0, "R_F_CLEAR": 1, "R_F_SAME": 2, "R_F_SAME_WRITE": 3})

    def test_register_lists(self):
        for index, labels in ((None, "0 1 2"), ("A,B, Z", "A B Z"), ("3-5", "3 4 5"), ("C-E", "C D E")):
            self.expect(peripheral(register("G%s_X", 4, dim(3, "0x8", index))),
                        {f"G{label}_X_OFFSET": 4 + 8 * i for i, label in enumerate(labels.split())})

    def test_register_array(self):
        for index in (None, "0,1,2"):
            header = generate(peripheral(register("G[%s]", 4, dim(3, 8, index))))
            self.assertEqual(strip("DEV_P_G_", values(header)), {"OFFSET": 4, "COUNT": 3, "STRIDE": 8})

    def test_clusters(self):
        inside = register("A", 0) + cluster("IN", "0x10", register("C", 4))
        for name, more, expected in (
                ("CH", "", {"CH_A_OFFSET": 0x100, "CH_IN_C_OFFSET": 0x114}),
                ("CH%s", dim(2, "0x40"),
                 {"CH0_A_OFFSET": 0x100, "CH1_A_OFFSET": 0x140, "CH1_IN_C_OFFSET": 0x154}),
                ("CH[%s]", dim(2, "0x40"),
                 {"CH_A_OFFSET": 0x100, "CH_COUNT": 2, "CH_STRIDE": 0x40, "CH_IN_C_OFFSET": 0x114})):
            self.expect(peripheral(cluster(name, "0x100", inside, more)), expected)

    def test_field_lists_and_arrays(self):
        bits = "<bitOffset>1</bitOffset><bitWidth>2</bitWidth>"
        self.expect(with_fields(field("F%s", bits, dim(4, 3))),
                    {"R_F0_POS": 1, "R_F3_POS": 10, "R_F3_MASK": 3 << 10})
        self.expect(with_fields(field("F[%s]", bits, dim(4, 3))),
                    {"R_F_POS": 1, "R_F_MASK": 6, "R_F_COUNT": 4, "R_F_STRIDE": 3})

    def test_peripheral_lists_and_arrays(self):
        found = values(generate(peripheral(register("R", 4), dim(2, "0x1000"), "U%s")))
        self.assertEqual((found["DEV_U0_BASE"], found["DEV_U1_BASE"], found["DEV_U1_R_OFFSET"]),
                         (0x100, 0x1100, 4))
        found = values(generate(peripheral(register("R", 4), dim(2, "0x1000"), "U[%s]")))
        self.assertEqual((found["DEV_U_BASE"], found["DEV_U_COUNT"], found["DEV_U_STRIDE"]),
                         (0x100, 2, 0x1000))

    def test_inherited_properties(self):
        registers = (register("A", 0) + register("B", 2, "<resetValue>0x5678</resetValue>")
                     + cluster("C", 8, register("D", 0) + register("E", 8, "<access>read-writeOnce</access>"),
                               "<size>64</size><access>write-only</access>"))
        header = generate(device(one_peripheral(registers, "<access>read-only</access>"),
                                 "<size>16</size><resetValue>0xABCDEF</resetValue>"))
        for line in ("P.A: ro, 16 bits, reset 0xcdef.", "P.B: ro, 16 bits, reset 0x5678.",
                     "P.C.D: wo, 64 bits, reset 0xabcdef.",
                     "P.C.E: rw, 64 bits"):
            self.assertIn(f"/* {line}", header)
        self.assertIn("#define DEV_P_C_D_RESET 0xabcdefull\n", header)
        header = generate(device(one_peripheral(register("A", 0)), "<width>16</width>"))
        self.assertIn("/* P.A: rw, 16 bits. */", header)

    def test_access_from_fields(self):
        def comment(first, second):
            header = generate(with_fields(field("F", "[0:0]", first), field("G", "[1:1]", second)))
            return re.search(r"/\* P\.R: (.*)\. \*/", header)[1]
        ro, wo = "<access>read-only</access>", "<access>write-only</access>"
        self.assertEqual([comment(ro, ro), comment(wo, wo), comment(ro, wo), comment("", ro)],
                         ["ro, 32 bits", "wo, 32 bits", "rw, 32 bits", "rw, 32 bits"])
        self.assertEqual(comment(ro + "<readAction>clear</readAction>", ro),
                         "ro, 32 bits, reading changes it")

    def test_derived_peripheral(self):
        more = ("<description>first</description><size>16</size>"
                "<addressBlock><offset>0</offset><size>0x80</size><usage>registers</usage></addressBlock>")
        text = device(one_peripheral(register("Y", 12) + register("NEW", 16), name="B", base=0x200,
                                     attributes=derived("A"))
                      + one_peripheral(register("X", 0) + register("Y", 4), more, "A")
                      + one_peripheral(name="C", base=0x300, attributes=derived("B")))
        header = generate(text)
        found, expected = strip("DEV_", values(header)), {
            "B_BASE": 0x200, "B_BYTES": 0x80, "B_X_OFFSET": 0, "B_Y_OFFSET": 12, "C_NEW_OFFSET": 16,
            "C_Y_OFFSET": 12,
            "A_Y_OFFSET": 4}
        self.assertEqual({name: found.get(name) for name in expected}, expected)
        self.assertIn("B.X: rw, 16 bits", header)
        self.assertIn("==== C ==== first", header)
        alone = strip("DEV_C_", values(generate(text, ["C"])))
        self.assertEqual(set(alone), {"BASE", "BYTES", "X_OFFSET", "Y_OFFSET", "NEW_OFFSET"})

    def test_derived_registers_clusters_and_fields(self):
        header = generate(peripheral(
            register("A", 0, "<description>what it does</description><fields>"
                     + field("F", "[7:4]", "<access>read-only</access>")
                     + field("G", "<lsb>0</lsb><msb>1</msb>") + "</fields>")
            + cluster("CL[%s]", "0x10", register("IN", 4), dim(2, 8))
            + register("B", 4, "", derived("A"))
            + register("C", 8, f"<fields>{field('F', '<bitOffset>9</bitOffset>')}</fields>", derived("P.A"))
            + register("D", 12, "<fields><field "
                                "derivedFrom='A.F'><name>H</name><lsb>20</lsb><msb>21</msb></field>"
                       "<field derivedFrom='P.A.F'><name>I</name></field></fields>")
            + cluster("CM", "0x30", attributes=derived("CL"))
            + cluster("CN%s", "0x40", attributes=derived("P.CL[%s]"))
            + register("E%s", "0x80", dim(2, 4)) + register("Z", "0x90", "", derived("E1"))
            + register("Y", "0x94", "<size>8</size>", derived("CL[0].IN"))))
        found = strip("DEV_P_", values(header))
        expected = {"B_F_MASK": 0xf0, "B_G_MASK": 3, "C_F_POS": 9, "C_F_MASK": 0x200, "C_G_MASK": 3,
                    "D_H_MASK": 3 << 20,
                    "D_I_MASK": 0xf0, "CL_COUNT": 2, "CM_IN_OFFSET": 0x34, "CN0_IN_OFFSET": 0x44,
                    "CN1_IN_OFFSET": 0x4c,
                    "Z_OFFSET": 0x90, "Y_OFFSET": 0x94}
        self.assertEqual({name: found.get(name) for name in expected}, expected)
        self.assertNotIn("CM_COUNT", found)
        self.assertIn("P.B: rw, 32 bits. what it does", header)
        self.assertIn("P.D: ro, 32 bits", header)

    def test_derived_values(self):
        paths = ("on_off", "A.F.on_off", "P.A.F.on_off", "A.F", "A")
        fields = "".join(field(f"D{i}", f"[{i}:{i}]", f"<enumeratedValues{derived(path)}/>")
                         for i, path in enumerate(paths))
        on_off = field('F', '[0:0]', states(('on', 1), name='on_off'))
        text = peripheral(register("A", 0, f"<fields>{on_off}</fields>")
                          + register("B", 4, f"<fields>{fields}</fields>"))
        self.expect(text, {f"B_D{i}_ON": 1 for i in range(len(paths))})

    def test_alternates(self):
        for one, other in (("", "<alternateRegister>A</alternateRegister>"),
                           ("", "<alternateGroup>G</alternateGroup>"),
                           ("<access>read-only</access>", "<access>write-only</access>")):
            self.expect(peripheral(register("A", 0, one) + register("B", 0, other)), {"A_OFFSET": 0})
        self.expect(peripheral(register("A", 0) + register("A", 0, "<alternateGroup>G</alternateGroup>")),
                    {"A_OFFSET": 0, "A_G_OFFSET": 0})
        self.expect(peripheral(register("A", 0) + cluster("C", 0, register("B", 0),
                                                          "<alternateCluster>D</alternateCluster>")),
                    {"C_B_OFFSET": 0})

    def test_names(self):
        names = ["int", "INT", "a-b", "a_b", "A  B", "9", "é", "__x__", "a__b", "POS", "while", "COUNT"]
        registers = "".join(register(name, 4 * i) for i, name in enumerate(names))
        found = strip("DEV_P_", values(generate(peripheral(registers))))
        self.assertEqual(set(found), {"BASE", "BYTES"} | {f"{name}_OFFSET" for name in (
            "INT", "INT_2", "A_B", "A_B_2", "A_B_3", "9", "X", "X_2", "A_B_4", "POS", "WHILE", "COUNT")})
        same = generate(peripheral("".join(register("é" * (i % 200 + 1) + "è" * (i // 200), 4 * i)
                                           for i in range(4000))))
        self.assertIn("#define DEV_P_X_4000_OFFSET 0x3e7cu\n", same)
        # across levels: a cluster's register and one outside, a field's value and another register's offset
        awkward = states(("POS", 0), ("pos", 1), ("OFFSET", 2), ("Mask", 3))
        self.expect(peripheral(register("A_B", 0) + cluster("A", 4, register("B", 0))
                               + register("R", 8, f"<fields>{field('F', '[3:0]', awkward)}</fields>")
                               + register("R_F", 12)),
                    {"A_B_OFFSET": 0, "A_B_2_OFFSET": 4, "R_F_POS": 0, "R_F_POS_2": 0, "R_F_POS_3": 1,
                     "R_F_OFFSET": 2,
                     "R_F_2_OFFSET": 12, "R_F_MASK_2": 3})

    def test_texts_cannot_leave_their_comment(self):
        evil = "<description>a */ int x; /* b\n#error\n \\ ??/</description>"
        text = peripheral(register("R", 0, f"{evil}<fields>{field('F */ y', '[0:0]', evil)}</fields>"), evil)
        header = generate(text.replace("<name>dev", "<name>dev*/"))
        bare = re.sub(r"/\*.*?\*/", "", header, flags=re.S)
        self.assertNotRegex(bare, r"int|#error \\|\*/")
        self.assertFalse([line for line in header.splitlines() if line.endswith("\\") and "||" not in line])

    def test_ignored_and_selected(self):
        text = device("<peripheral><name>BAD</name></peripheral>" + one_peripheral(register("R", 0)))
        text = text.replace("</device>", "<vendorExtensions><x "
                                         "y='1'><name>z</name></x></vendorExtensions></device>")
        text = text.replace("<peripherals>",
                            "<cpu><name>CM99</name><newPresent>1</newPresent></cpu><peripherals>")
        self.expect(text, {"R_OFFSET": 0}, peripherals=["P"])
        with self.assertRaisesRegex(Refused, r"^d\.svd:4: <peripheral> has no <baseAddress>"):
            generate(text)
        with self.assertRaisesRegex(Refused, "no peripheral 'Q', use one of BAD, P"):
            generate(text, ["Q"])
        self.assertIn("#ifndef DEV_P_GENERATED_H", generate(text, ["P"]))

    def test_what_is_odd_in_files_that_cannot_be_copied(self):
        """A register's own enumeratedValues, a field's resetValue, no address block, a third register at
        alternates' address."""
        inside = field("F", "[2:0]", "<resetValue>0x1</resetValue>" + states(("P1", 1), name="E"))
        text = peripheral(register("A[%s]", 0,
                                   dim(4, 4) + "<enumeratedValues derivedFrom='T'></enumeratedValues>")
                          + register("T", 16, f"<fields>{inside}</fields>")
                          + register("CR_SR", 20) + register("CR", 20, "<access>write-only</access>")
                          + register("SR", 20,
                                     "<access>read-only</access><alternateRegister>CR</alternateRegister>")
                          + register("RD", 24, "<access>read-only</access>")
                          + register("WR", 24, "<access>write-only</access>"))
        self.expect(text, {"BYTES": 28, "A_COUNT": 4, "T_F_P1": 1, "CR_OFFSET": 20, "WR_OFFSET": 24})

    def test_slips_of_vendors(self):
        slips = {
            "overlaps field 'G' on line": field("G", "[3:2]") + field("F", "[3:2]"),
            "field 'F' with bits 36:26 lies outside the 32-bit register, it is left out":
                field("F", "[36:26]"),
            "value '4' does not fit the 2-bit field, it is left out": field("F", "[1:0]", states(("A", 4))),
        }
        for message, fields in slips.items():
            text = peripheral("\n\n" + register("R", 0, f"<fields>{fields}</fields>")).encode()
            svd = svd_files.Device(text, "d.svd")
            generate_svd(svd)
            self.assertEqual(len(svd.warnings), 1)
            self.assertRegex(list(svd.warnings)[0], r"^d\.svd:[67]: warning: .*" + re.escape(message))
            with self.assertRaisesRegex(Refused, re.escape(message)):
                generate(text, strict=True)
        text = peripheral(register("R", 0, "<size>8</size><resetValue>0x100</resetValue>"))
        self.assertNotIn("R_RESET", generate(text))
        with self.assertRaisesRegex(Refused, "resetValue 0x100 does not fit 8 bits"):
            generate(text, strict=True)


R0 = register("R", 0)
BIT0 = "<bitOffset>0</bitOffset>"
# (what the message says, a file); the message must name the line with the mark #!, or line 1.
REFUSED = [
    # XML itself
    ("XML syntax", "<device>\n<name>d</name>\n<!--#!--><a b=c/>"), ("XML syntax", "<device><name>d</nam>"),
    ("XML syntax: no element found", ""), ("XML syntax", "<device>\n</device>\n<!--#!--><device/>"),
    ("XML syntax", "\x00\x01"),
    ("a document type is not allowed", '<?xml version="1.0"?>\n<!--#!--><!DOCTYPE d [<!ENTITY a "b">]>\n'
                                       '<device>&a;</device>'),
    ("a document type is not allowed", '<!DOCTYPE d SYSTEM "file:///etc/passwd"><device/>'),
    ("XML syntax: undefined entity", f"<device>\n<name>{HERE}&x;</name></device>"),
    ("the root is <cpu>, not <device>", f"{HERE}<cpu/>"),
    ("the encoding cannot be used", '<?xml version="1.0" encoding="no-such"?><device/>'),
    ("<bitWith> is no element of CMSIS-SVD", one_field(f"{HERE}<bitWith>1</bitWith>")),
    ("elements nested more than 64 deep", f"{HERE}" + "<device>" * 1000),
    ("attribute 'derivedFrom' has", peripheral(HERE + register("R", 0, "", derived("x" * 5000)))),
    ("has more than 65536 characters",
     peripheral(register("R", 0, f"<description>{HERE}{'x' * 70000}</description>"))),
    # what must be there, and be there once
    ("<device> has no <name>", "<device></device>"),
    ("the device has no <peripheral>", "<device><name>d</name></device>"),
    ("<peripheral> has no <name>", device(HERE + "<peripheral><baseAddress>0</baseAddress></peripheral>")),
    ("<register> has no <addressOffset>", peripheral(HERE + "<register><name>R</name></register>")),
    ("<cluster> has no <addressOffset>", peripheral(HERE + "<cluster><name>R</name></cluster>")),
    ("the name '' is empty", peripheral(HERE + register("", 0))),
    ("longer than 256", peripheral(HERE + register("x" * 300, 0))),
    # numbers
    *((f"addressOffset {text!r} is no number", peripheral(HERE + register("R", text)))
      for text in ("", "x", "-4", "0x", "1.5", "0xg", "12a", "4 4", "#12", "٣", "1e3")),
    ("is above 2^64-1", peripheral(HERE + register("R", "0x10000000000000000"))),
    ("is above 2^64-1", peripheral(HERE + register("R", "18446744073709551616"))),
    ("is no number", peripheral(HERE + register("R", "9" * 5000))),
    ("ends above 2^64", peripheral(HERE + register("R", "0xfffffffffffffffc"))),
    ("ends above 2^64", device(HERE + one_peripheral(register("R", 4), base="0xfffffffffffffff8"))),
    ("the register's size is nowhere", peripheral(HERE + R0).replace("<size>32</size>", "")),
    # bits
    ("<field> has no <msb>", with_fields(HERE, field("F", "<lsb>0</lsb>"))),
    # dim
    ("has a %s, but there is no <dim>", peripheral(HERE + register("R%s", 0))),
    *((f"{name!r} does not", peripheral(register(name, 0, HERE + dim(2, 4))))
      for name in ("R", "R%s%s", "R[%s]x")),
    ("<register> has no <dimIncrement>", peripheral(HERE + register("R%s", 0, "<dim>2</dim>"))),
    *((f"dim {count} is not 1 to", peripheral(register("R%s", 0, HERE + dim(count, 4))))
      for count in (0, 99999999)),
    *((f"dimIndex {text!r} {why}",
       peripheral(register("R%s", 0, dim(2, 4, text).replace("<dimIndex>", HERE + "<dimIndex>"))))
      for text, why in (("A,B,C", "has 3 entries for dim 2"), ("1-3", "has 3 entries"),
                        ("3-2", "has 0 entries"),
                        ("A,A", "is no list"), ("A,", "is no list"), ("", "is no list"),
                        ("a b", "is no list"),
                        ("1-999999999", "has 1000001 entries"))),
    ("addresses",
     peripheral(register("R[%s]", 0, dim(1000000, 8)) + HERE + register("S[%s]", 0, dim(1000000, 8)))),
    # derivedFrom
    *((f"derivedFrom {path!r} names no <register>",
       peripheral(HERE + register("R", 0, "", derived(path)) + register("S", 4)))
      for path in ("X", "P", "R", "P.S.F", "", "..")),
    ("leads back to itself",
     peripheral(HERE + register("R", 0, "", derived("S")) + register("S", 4, "", derived("R")))),
    ("may mean line 7 or line 12", peripheral("".join(
        register(name, 4 * i, f"<fields>\n{field('F', BIT0, 2 * chr(10) + states(name='E'))}</fields>")
        for i, name in enumerate("AB"))
        + register("C", 8,
                   "<fields>" + field("F", BIT0, HERE + "<enumeratedValues" + derived("E") + "/>")
                   + "</fields>"))),
    ("clusters nested more than 64 deep",
     peripheral(cluster("A", 0, HERE + cluster("B", 0, attributes=derived("A"))))),
    ("would clash with npuprof", peripheral(R0).replace("<name>dev", "<name>npuprof")),
]

# The same for what is a warning, and refused with --strict.
SLIPS = [
    ("a second <addressOffset>", peripheral(register("R", 0, HERE + "<addressOffset>4</addressOffset>"))),
    ("a second <name>", peripheral(register("R", 0, HERE + "<name>4</name>"))),
    ("a second <registers>",
     peripheral(R0).replace("</registers>", f"</registers>{HERE}<registers>{register('S', 4)}</registers>")),
    ("size 24 is no word, it is read as 32", peripheral(register("R", 0, HERE + "<size>24</size>"))),
    ("size 1 is no word, it is read as 8", peripheral(register("R", 0, HERE + "<size>1</size>"))),
    ("size 128, it is left out", peripheral(HERE + register("R", 0, "<size>128</size>"))),
    ("size 0, it is left out", peripheral(HERE + register("R", 0, "<size>0</size>"))),
    ("access 'read-writeonce' is written read-writeOnce",
     peripheral(register("R", 0, HERE + "<access>read-writeonce</access>"))),
    ("access 'rw' is unknown", peripheral(register("R", 0, HERE + "<access>rw</access>"))),
    ("duplicate register name 'R', first on line 4", peripheral(R0 + HERE + register("R", 4))),
    ("duplicate register name 'R1'", peripheral(register("R%s", 0, dim(2, 4)) + HERE + register("R1", 16))),
    ("duplicate field name 'F'", with_fields(field("F", BIT0), HERE, field("F", "<bitOffset>1</bitOffset>"))),
    ("duplicate value name 'A'", one_field(BIT0, states(("A", 0), ("B", 1), ("A", 1)).replace(
        "</enumeratedValue><enumeratedValue><name>A", f"</enumeratedValue>{HERE}<enumeratedValue><name>A"))),
    ("duplicate peripheral name 'P'",
     device(one_peripheral(R0) + HERE + one_peripheral(attributes=derived("P")))),
    ("register 'S' overlaps register 'R' on line 4", peripheral(R0 + HERE + register("S", 0))),
    ("register 'S' overlaps register 'R' on line 4",
     peripheral(R0 + HERE + register("S", 2, "<size>16</size>"))),
    ("register 'S' overlaps register 'R'",
     peripheral(register("R", 0, "<access>read-only</access>") + HERE + register("S", 0))),
    ("register 'S' overlaps register 'R'",
     peripheral(register("R", 0, "<access>write-only</access>") + HERE + register("S", 0))),
    ("register 'C.B' overlaps register 'R'",
     peripheral(register("R", 8) + cluster("C", 4, HERE + register("B", 4)))),
    ("register 'R' overlaps itself", peripheral(HERE + register("R[%s]", 0, dim(2, 0)))),
    ("register 'S' overlaps register 'R'",
     peripheral(register("R[%s]", 0, dim(4, 8)) + HERE + register("S", 24))),
    ("register 'S' overlaps register 'R'",
     peripheral(register("R[%s]", 0, dim(4, 4)) + HERE + register("S", 12))),
    ("register 'R' is misaligned (addressOffset 0x2 is no", peripheral(HERE + register("R", 2))),
    ("register 'R' is misaligned (dimIncrement 0x6 is no",
     peripheral(HERE + register("R[%s]", 0, dim(2, 6)))),
    ("register 'R1' is misaligned (addressOffset 0x6 is no",
     peripheral(HERE + register("R%s", 0, dim(2, 6)))),
    ("with bits 32:32 lies outside the 32-bit register", with_fields(HERE, field("F", "[32:32]"))),
    ("lies outside the 32-bit register",
     with_fields(HERE, field("F", "<bitOffset>0xffffffffff</bitOffset>"))),
    ("ends at bit 3 below its start at bit 4", with_fields(HERE, field("F", "<lsb>4</lsb><msb>3</msb>"))),
    ("ends at bit 3 below", with_fields(HERE, field("F", "<bitOffset>4</bitOffset><bitWidth>0</bitWidth>"))),
    ("bitRange '4:3' is not [msb:lsb]", one_field(HERE + "<bitRange>4:3</bitRange>")),
    ("bitRange '[a:0]' is not [msb:lsb]", one_field(HERE + "<bitRange>[a:0]</bitRange>")),
    ("has no bit ranges", with_fields(HERE, field("F", ""))),
    ("has 2 bit ranges", with_fields(HERE, field("F", "<lsb>0</lsb><msb>0</msb><bitRange>[0:0]</bitRange>"))),
    ("field 'G' overlaps field 'F' on line", with_fields(field("F", "[5:2]"), HERE, field("G", "[9:5]"))),
    ("the elements of field 'F' overlap", with_fields(HERE, field("F[%s]", "[1:0]", dim(2, 1)))),
    ("neither <value> nor <isDefault>",
     one_field(BIT0, "<enumeratedValues>" + HERE + "<enumeratedValue><name>a</name>"
                                                  "</enumeratedValue></enumeratedValues>")),
    ("value '1x' is no number", one_field(BIT0, states(("a", "1x")).replace("<value>", HERE + "<value>"))),
    ("second <enumeratedValues> for read",
     one_field(BIT0, states() + HERE + states(more="<usage>read</usage>"))),
    ("usage 'none' is unknown", one_field(BIT0, states(more=HERE + "<usage>none</usage>"))),
]


class Harm(unittest.TestCase):
    def test_each_refusal_is_one_line_with_the_right_number(self):
        for message, text in REFUSED:
            line = text[:text.index("#!")].count("\n") + 1 if "#!" in text else 1
            with self.subTest(message=message, text=text[:300]):
                with self.assertRaises(Refused) as refused:
                    generate(text)
                self.assertIn(message, str(refused.exception))
                self.assertRegex(str(refused.exception), rf"^d\.svd:{line}: [^\n]*$")
                self.assertLess(len(str(refused.exception)), 400)

    def test_what_vendors_files_have_is_a_warning(self):
        """Each slip: a header, one warning at its line; the same words with --strict."""
        for message, text in SLIPS:
            line = text[:text.index("#!")].count("\n") + 1
            with self.subTest(message=message, text=text[:300]):
                svd = svd_files.Device(text.encode(), "d.svd")
                header = generate_svd(svd)
                self.assertIn("_BYTES", header)
                (warning,) = svd.warnings
                self.assertIn(message, warning)
                self.assertRegex(warning, rf"^d\.svd:{line}: warning: [^\n]*$")
                with self.assertRaisesRegex(Refused, rf"^d\.svd:{line}: .*{re.escape(message)}"):
                    generate(text, strict=True)

    def test_a_wide_register_hides_no_overlap(self):
        """One that lies over all others comes last: each pair beneath it is told, too."""
        svd = svd_files.Device(peripheral(register("Y", 4) + register("Z", 4)
                                          + register("W[%s]", 0, dim(20, 4))).encode(), "d.svd")
        generate_svd(svd)
        told = "\n".join(svd.warnings)
        self.assertIn("register 'Z' overlaps register 'Y'", told)
        self.assertIn("register 'W", told)

    def test_names_are_made_unique(self):
        twice = field("RESERVED", "[0:0]") + field("RESERVED", "[1:1]",
                                                   states(("A", 0), ("A", 1))) + field("RESERVED_2", "[2:2]")
        found = strip("DEV_P_",
                      values(generate(peripheral(register("R", 0,
                                                          f"<fields>{twice}</fields>") + register("R", 4)
                                                           + cluster("C", 8, R0) + cluster("C", 12, R0)))))
        wanted = {"R_OFFSET": 0, "R_2_OFFSET": 4, "C_R_OFFSET": 8, "C_2_R_OFFSET": 12, "R_RESERVED_MASK": 1,
                  "R_RESERVED_2_MASK": 2,
                  "R_RESERVED_2_A": 0, "R_RESERVED_2_A_2": 1, "R_RESERVED_2_2_MASK": 4}
        self.assertEqual({name: found.get(name) for name in wanted}, wanted)

    def test_what_grows(self):
        """Files that are small and ask for much: refused, and soon. The limits are lowered to keep the test
        short."""
        for limit, value in (("ITEMS_MAX", 20000), ("ELEMENTS_MAX", 50000)):
            patch = unittest.mock.patch.object(limits, limit, value)
            patch.start()
            self.addCleanup(patch.stop)

        def doubled(levels):
            """Each level derives twice from the one before: 2^levels registers."""
            text = cluster("L0", 0, R0)
            for i in range(1, levels):
                inner = "".join(cluster(n, o, attributes=derived(f"P.L{i - 1}"))
                                for n, o in (("a", 0), ("b", 4 << i)))
                text += cluster(f"L{i}", 4 << (2 * i), inner)
            return peripheral(text)
        laughs = '<!DOCTYPE l [<!ENTITY a "' + "ha" * 100 + '">' + "".join(
            f'<!ENTITY a{i + 1} "' + 10 * f"&a{i or ''};" + '">'
            for i in range(20)) + "]><device>&a19;</device>"
        nested = R0
        for _ in range(20):
            nested = cluster("c%s", 0, nested, dim(1000, 4))
        files = {"entities": laughs, "derived": doubled(30), "lists": peripheral(nested),
                 "attribute": f"<device a='{'x' * 10_000_000}'/>",
                 "elements": "<device>" + "<vendorExtensions/>" * 60000 + "</device>",
                 "same bits": with_fields(*(field(f"F{i}", "[0:0]", "<access>read-only</access>")
                                            for i in range(9000)), *(
                     field(f"G{i}", "[0:0]", "<access>write-only</access>") for i in range(9000)),
                     field("H", "[1:0]")),
                 "labels": peripheral("".join(register(f"R{i}_%s", 0, dim(1000000, 4), derived("R0_7"))
                                              for i in range(1000))),
                 "arrays": peripheral("".join(register(f"R{i}[%s]", i << 20,
                                                       dim(1000000, 2) + "<size>8</size>")
                                              for i in range(999)) + register("R", 1)),
                 "chain": peripheral("".join(register(f"R{i}", 4 * i, "", derived(f"R{i + 1}"))
                                             for i in range(2000)))}
        for name, text in files.items():
            with self.subTest(name):
                start = time.process_time()
                with self.assertRaisesRegex(Refused, r"^d\.svd:\d+: [^\n]*$"):
                    generate(text)
                self.assertLess(time.process_time() - start, 10)
        with self.assertRaisesRegex(Refused, r"^d\.svd:1: \d+ bytes"):
            svd_files.Device(b"x" * (limits.FILE_BYTES_MAX + 1), "d.svd")

    def test_truncated(self):
        data = vendor("CMSDK_CM3")
        for end in range(0, len(data) - 12, len(data) // 150):
            with self.assertRaisesRegex(Refused, r"^d\.svd:\d+: XML syntax: [^\n]*$"):
                generate(data[:end])

    @helpers.thorough
    def test_mutated(self):
        """Seeded damage to the vendors' files: a header, or one line of refusal; never anything else."""
        chance = random.Random(4)
        outcomes = {"refused": 0, "written": 0}
        for name, data in vendors():
            text = data.decode()
            pieces = [match.span() for match in re.finditer(r"<[^>]*>|[^<>\s][^<>]*", text)]
            texts = [(a, b) for a, b in pieces if text[a] != "<"]
            for _ in range(200 if len(data) < 200000 else 4):
                mutated = text
                for _ in range(chance.choice((1, 1, 1, 5))):
                    if chance.random() < 0.5:      # milder: some text elsewhere
                        (a, b), (c, d) = chance.choice(texts), chance.choice(texts)
                        mutated = mutated[:a] + text[c:d] + mutated[b:]
                        continue
                    (a, b), (c, d) = chance.choice(pieces), chance.choice(pieces)
                    new = chance.choice(("", text[c:d], 2 * text[a:b], "0", "-1", "0xffffffffffffffff",
                                         "[%s]", "<dim>4</dim>",
                                         "&amp;", "&", "<", text[c:min(d, c + 3)], "\x7f",
                                         "99999999999999999999",
                                         f"<register{derived(text[c:d].strip('<>/&'))}>"))
                    mutated = mutated[:a] + new + mutated[b:]
                with self.subTest(name=name):
                    try:
                        generate(mutated)
                        outcomes["written"] += 1
                    except Refused as refused:
                        self.assertRegex(str(refused), r"^d\.svd:\d+: [^\n]*$")
                        outcomes["refused"] += 1
        self.assertGreater(min(outcomes.values()), 30, outcomes)


class Vendors(unittest.TestCase):
    """Every peripheral of the vendors' files."""

    @helpers.thorough
    def test_every_peripheral_compiles(self):
        compilers = [c for c in COMPILERS if shutil.which(c[0])]
        for missing in [c[0] for c in COMPILERS if not shutil.which(c[0])]:
            print(f"skip headers from SVD with {missing}: not installed")
        self.assertTrue(compilers)
        for name, data in vendors():
            svd = svd_files.Device(data, f"{name}.svd")
            whole = generate_svd(svd)
            with tempfile.TemporaryDirectory() as folder:
                source, macros = [], {}
                for node in svd_files.members_of(svd.root):
                    one = svd_files.own_name(node)
                    header = generate_svd(svd, [one])
                    pathlib.Path(folder, f"{one}.h").write_text(header)
                    source.append(f'#include "{one}.h"\n')
                    found = values(header)
                    self.assertFalse(macros.keys() & found.keys())
                    self.assertGreater(len(found), 2)
                    macros |= found
                self.assertEqual(macros, values(whole), "alone and together a peripheral is the same")
                # Why a division: it is an error in a constant where the value is another.
                source.append("enum all_right {\n" + ",\n".join(
                    f"    right_{i} = 1 / ({macro} == {value}u{'ll' if value >> 32 else ''})"
                    for i, (macro, value) in enumerate(macros.items())) + "\n};\n")
                pathlib.Path(folder, "all.c").write_text("".join(source))
                pathlib.Path(folder, "whole.h").write_text(whole)
                for compiler, language, standard in compilers:
                    for file in ("all.c", "whole.h"):
                        with self.subTest(name=name, compiler=compiler, file=file):
                            self.assertEqual(compiled(compiler, language, standard, folder, file), (0, ""))

    def test_facts(self):
        for name, facts in FACTS.items():
            if (data := vendor(name)) is None:
                print(f"skip values of {name}: its licence forbids a copy here, and {SHARED.name} is not "
                      f"there")
                continue
            found = values(generate(data))
            with self.subTest(name):
                self.assertEqual({fact: found.get(fact) for fact in facts}, facts)

    def test_every_number_against_another_reader(self):
        """All offsets and masks of all peripherals that are not derived, read by other means."""
        def number(element, tag):
            return int(element.findtext(tag), 0)
        checked = 0
        for name, data in vendors():
            root = xml.etree.ElementTree.fromstring(data)
            found, prefix = values(generate(data)), c_name(root.findtext("name"))
            for peripheral in root.iter("peripheral"):
                path = c_name(prefix, peripheral.findtext("name"))
                self.assertEqual(found[f"{path}_BASE"], number(peripheral, "baseAddress"))
                for register in peripheral.iter("register"):
                    raw = register.findtext("name")
                    steps = [0]
                    if "%s" in raw and "[" not in raw:
                        index = register.findtext("dimIndex")
                        first = int(re.match(r"\d+", index or "0")[0])
                        steps = [i for i in range(number(register, "dim"))]
                        labels = [str(first + i) for i in steps]
                    for i in steps:
                        label = raw.replace("%s", labels[i]) if len(steps) > 1 else raw.replace("[%s]", "")
                        macro = c_name(path, label)
                        shift = i * number(register, "dimIncrement") if i else 0
                        self.assertEqual(found[f"{macro}_OFFSET"], number(register, "addressOffset") + shift,
                                         macro)
                        for field in register.iter("field"):
                            bits = field.findtext("bitRange")
                            if bits is not None:
                                msb, lsb = map(int, bits.strip("[]").split(":"))
                            elif field.find("lsb") is not None:
                                lsb, msb = number(field, "lsb"), number(field, "msb")
                            else:
                                lsb = number(field, "bitOffset")
                                msb = lsb + number(field, "bitWidth") - 1
                            one = f"{macro}_{c_name(field.findtext('name'))}"
                            if "%s" in one or "%s" in field.findtext("name") or (name, msb) == ("e310x", 36):
                                continue
                            self.assertEqual((found[f"{one}_POS"], found[f"{one}_MASK"]),
                                             (lsb, 2**(msb + 1) - 2**lsb), one)
                            checked += 1
        self.assertGreater(checked, 8000)


class Command(unittest.TestCase):
    ROLES = '[device]\nname = "npu"\n{}\n[roles.counter]\nlo = "{}"\nhi = "{}"\n'
    SVD = peripheral(register("LO", 0, "<access>read-only</access>") + register("HI", 4)
                     + register("WO", 8, "<access>write-only</access>")
                     + cluster("CH[%s]", "0x20", register("T[%s]", 0, dim(2, 4)), dim(3, "0x10")))

    def setUp(self):
        directory = tempfile.TemporaryDirectory()
        self.addCleanup(directory.cleanup)
        self.folder = pathlib.Path(directory.name)
        self.svd, self.toml, self.header = (self.folder / name for name in ("d.svd", "d.toml", "d.h"))
        self.svd.write_text(self.SVD)

    def gen(self, *arguments):
        output = io.StringIO()
        with contextlib.redirect_stdout(output), contextlib.redirect_stderr(output):
            code = cli.main(["gen", *map(str, arguments), "-o", str(self.header)])
        return code, output.getvalue()

    def roles(self, *texts):
        self.toml.write_text(self.ROLES.format(*texts))

    def test_svd_alone(self):
        self.assertEqual(self.gen(self.svd), (0, ""))
        first = self.header.read_bytes()
        self.assertEqual(self.gen(self.svd, "--check"), (0, ""))
        self.svd.write_text(self.SVD + "<!-- -->")
        self.assertEqual(self.gen(self.svd, "--check")[0], 1)
        self.svd.write_text(self.SVD)
        environment = dict(os.environ, PYTHONHASHSEED="7", LC_ALL="C", TZ="Asia/Tokyo")
        subprocess.run([sys.executable, ROOT / "tools" / "npuprof.py", "gen", "d.svd", "-o", "e.h"],
                       cwd=self.folder,
                       env=environment, check=True)
        self.assertEqual((self.folder / "e.h").read_bytes(), first)
        self.svd.write_text(self.SVD.replace("<name>LO", "<nam>LO"))
        code, output = self.gen(self.svd)
        self.assertEqual((code, output.count("\n")), (2, 1))
        self.assertTrue(output.startswith(f"{self.svd}:4: "), output)
        self.assertEqual(self.header.read_bytes(), first)

    def test_strict(self):
        self.svd = self.folder / "D.XML"
        self.svd.write_text(one_field("[40:31]"))
        code, output = self.gen(self.svd)
        self.assertEqual((code, output.count("\n")), (0, 1))
        self.assertTrue(output.startswith(f"{self.svd}:4: warning: field 'F' with bits 40:31 lies outside"),
                        output)
        self.assertNotIn("_R_F_", self.header.read_text())
        code, output = self.gen(self.svd, "--strict")
        self.assertEqual((code, output.count("\n")), (2, 1))
        self.assertTrue(output.startswith(f"{self.svd}:4: field 'F' with bits 40:31 lies outside"), output)

    def test_roles(self):
        for device, arguments in (('svd = "d.svd"', [self.toml]),
                                  ('svd = "d.svd"\nperipheral = "P"', [self.toml]),
                                  ("", [self.svd, "--roles", self.toml]),
                                  ("", [self.svd, "--roles", self.toml, "--peripheral", "P"])):
            self.roles(device, "LO", "HI")
            self.assertEqual(self.gen(*arguments), (0, ""))
            header = self.header.read_text()
            self.assertIn("desc.counter.lo_offset = NPU_LO_OFFSET;", header)
            self.assertRegex(header, r"from d\.toml, sha256 \w{16} and d\.svd, sha256 \w{16}\.")
            self.assertEqual({k: v for k, v in values(header).items() if "CH" in k},
                             {"NPU_CH_COUNT": 3, "NPU_CH_STRIDE": 16, "NPU_CH_T_OFFSET": 32,
                              "NPU_CH_T_COUNT": 2,
                              "NPU_CH_T_STRIDE": 4})
        self.roles('svd = "d.svd"', "CH[2].T[0]", "CH[2].T[1]")
        self.assertEqual(self.gen(self.toml), (0, ""))
        self.assertIn("hi_offset = NPU_CH_T_OFFSET + 2u * NPU_CH_STRIDE + 1u * NPU_CH_T_STRIDE;",
                      self.header.read_text())
        self.assertIn("NPU_BAR_BYTES 0x48u", self.header.read_text())

    def test_several_peripherals(self):
        more = one_peripheral("", dim(2, "0x100"), "Q[%s]", "0x1000", derived("P"))
        self.svd.write_text(self.SVD.replace("</peripherals>", f"{more}</peripherals>"))
        self.roles('svd = "d.svd"', "P.LO", "Q[1].CH[2].T[1]")
        self.assertEqual(self.gen(self.toml), (0, ""))
        header, found = self.header.read_text(), values(self.header.read_text())
        self.assertIn("hi_offset = NPU_Q_CH_T_OFFSET + 1u * NPU_Q_STRIDE + 2u * NPU_Q_CH_STRIDE + 1u * "
                      "NPU_Q_CH_T_STRIDE;",
                      header)
        self.assertEqual((found["NPU_P_LO_OFFSET"], found["NPU_Q_CH_T_OFFSET"], found["NPU_BAR_BYTES"]),
                         (0, 0xf20, 0xf00 + 0x148))
        (self.folder / "use.c").write_text(f'#include "{ROOT}/npuprof.h"\n#include "{ROOT}/npuprof_npu.h"\n'
                                           f'#include "d.h"\n'
                                           "size_t hi(void);\nsize_t hi(void) { return "
                                           "npu_npu_desc().counter.hi_offset; }\n")
        for compiler, language, standard in COMPILERS:
            if shutil.which(compiler):
                self.assertEqual(compiled(compiler, language, standard, self.folder, "use.c"), (0, ""))

    def test_big_endian(self):
        self.svd.write_text(self.SVD.replace("<peripherals>", "<cpu><endian>big</endian></cpu><peripherals>"))
        for more, big in (("", True), ('endian = "little"', False)):
            self.roles(f'svd = "d.svd"\n{more}', "LO", "HI")
            self.assertEqual(self.gen(self.toml), (0, ""))
            self.assertEqual("big_endian = true" in self.header.read_text(), big)

    def test_refused(self):
        for device, lo, hi, message in (
                ('svd = "e.svd"', "LO", "HI", "d.toml:3: svd = 'e.svd' in [device]"),
                ('svd = "d.svd"\nperipheral = "Q"', "LO", "HI", "no peripheral 'Q'"),
                ('peripheral = "P"\nbar_bytes = 8', "LO", "HI",
                 "d.toml:3: a peripheral is named, but no SVD file"),
                ('svd = "d.svd"', "P.LO", "HI",
                 "d.toml:5: lo in [roles.counter] names register 'P.LO', which does not exist, use one of "
                 "LO, HI, WO"),
                ('svd = "d.svd"', "WO", "HI",
                 "d.toml:5: lo in [roles.counter] names register WO with access wo"),
                ('svd = "d.svd"', "LO", "CH.T",
                 "d.toml:6: hi in [roles.counter] names 'CH.T', but register CH.T lies in CH[0 to 2], "
                 "CH.T[0 to 1]"),
                ('svd = "d.svd"', "LO", "CH[3].T[0]", "write one [index] for each"),
                ('svd = "d.svd"', "LO[0]", "HI", "lies in no array"),
                ('svd = "d.svd"', "CH[1].T[0]", "CH[1].T[0]", "are the same register"),
                ('svd = "d.svd"\nbar_bytes = 64', "LO", "HI",
                 "d.svd:7: register CH.T at 0x20 lies outside the BAR")):
            self.roles(device, lo, hi)
            code, output = self.gen(self.toml)
            self.assertEqual((code, output.count("\n")), (2, 1), output)
            self.assertIn(message, output)
        self.roles('svd = "d.svd"', "LO", "HI")
        self.toml.write_text(self.toml.read_text()
                             + '[[register]]\nname = "MORE"\noffset = 4\nwidth = 32\naccess = "ro"\n')
        self.assertIn("d.toml:9: register MORE overlaps register HI", self.gen(self.toml)[1])
        self.svd.write_text(self.SVD.replace("<addressOffset>4<", "<addressOffset>6<"))
        self.roles('svd = "d.svd"', "LO", "HI")
        self.assertIn("d.toml:6: hi in [roles.counter] names register HI at 0x6, which is misaligned",
                      self.gen(self.toml)[1])
        self.assertIn("--roles goes with", self.gen(self.toml, "--roles", self.toml)[1])
        self.assertIn("cannot be read", self.gen(self.folder / "no.svd")[1])


if __name__ == "__main__":
    unittest.main()
