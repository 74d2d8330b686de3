# npuprof.py gen from CMSIS-SVD: files with flaws, and files that want to do harm
# SPDX-License-Identifier: MIT

import random
import re
import time
import unittest
import unittest.mock

import helpers
from npuprof.gen import svd as svd_files
from npuprof.gen.header import generate_svd
from npuprof.gen.svd import limits
from npuprof.base.messages import Refused
from svd_texts import (BIT0, HERE, R0, cluster, derived, device, dim, field, generate, one_field,
                       one_peripheral, peripheral, register, states, strip, values, vendor, vendors,
                       with_fields)

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
    @helpers.thorough
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
