# npuprof.py gen from CMSIS-SVD: every part of the format
# SPDX-License-Identifier: MIT

import re
import unittest


from npuprof.gen import svd as svd_files
from npuprof.gen.header import generate_svd
from npuprof.base.messages import Refused
from svd_texts import (cluster, derived, device, dim, field, generate, one_field, one_peripheral,
                       peripheral, register, states, strip, values, with_fields)


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
