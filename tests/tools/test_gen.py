# npuprof.py gen from TOML: each refusal with its line, and lines of tables and keys
# SPDX-License-Identifier: MIT

import os
import unittest


from npuprof.gen.command import generate
from npuprof.gen.toml_table import line_numbers
from npuprof.base.messages import Refused
from gen_texts import DEVICE, GOOD, InDirectory, replaced

CONV = 'CONV = { code = 1, name = "Conv" }'
# (what the message says, what to replace in device.toml, by what). The message must name the line with the
# mark #!.
REFUSED = [
    # TOML itself
    ("TOML syntax", 'source = "no data sheet"', "source = no data sheet #!"),
    ("TOML syntax", 'source = "no data sheet"', 'name = "again" #!'),
    ("TOML syntax: Cannot declare [roles.ring] twice (at line", "[operators]",
     "[roles.ring] #!\n[operators]"),
    ("TOML syntax: Cannot declare [device] twice (at line", "[operators]", "[device] #!\n[operators]"),
    ("TOML syntax", GOOD, "a = 1\nb = [ #!"),
    ("TOML syntax", CONV, "LOAD = { code = 1, #!\n}"),
    ("nested too deeply", "# A device that", "#!\nx = " + 5000 * "["),
    ("a number too long", "# A device that", "#!\nx = " + 5000 * "9" + "#"),
    # keys and types
    ("unknown key 'speed'", "pe_count = 4", "pe_count = 4\nspeed = 3 #!"),
    ("unknown key 'rolls'", "[roles.counter]", "[rolls.counter] #!"),
    ("unknown key 'dma'", "[operators]", '[roles.dma] #!\nlo = "TICKS_LO"\n[operators]'),
    ("unknown key 'Offset'", "offset = 0x10\n", "Offset = 0x10 #!\n"),
    ("ops_per_s in [peaks] is not a number", "[operators]", '[peaks]\nops_per_s = "9" #!\n[operators]'),
    ("bytes_per_s = -1 in [peaks] is not above 0", "[operators]",
     "[peaks]\nbytes_per_s = -1 #!\n[operators]"),
    ("unknown key 'colour'", 'name = "Conv" }', 'name = "Conv", colour = 1 } #!'),
    ("unknown key 'job_id'", 'job = "JOB"', 'job_id = "JOB" #!'),
    ("[device] has no 'name'", '[device]\nname = "testnpu"', "[device] #!"),
    ("[device] has no 'bar_bytes'", "[device]", "[device] #!", "bar_bytes = 65536", ""),
    ("the file has no 'device'", GOOD, "#!"),
    ("[[register]] has no 'offset'", '[[register]]\nname = "TICKS_LO"\noffset = 0x10',
     '[[register]] #!\nname = "TICKS_LO"'),
    ("[[register.field]] has no 'bits'", '[[register.field]]\n  name = "BUSY"\n  bits = "3"',
     '[[register.field]] #!\n  name = "BUSY"'),
    ("[[record.field]] has no 'width'", '[[record.field]]\n  name = "PE"\n  offset = 0\n  width = 32',
     '[[record.field]] #!\n  name = "PE"\n  offset = 0'),
    ("[roles.counter] has no 'lo'", '[roles.counter]\nlo = "TICKS_LO"', "[roles.counter] #!"),
    ("[operators.CONV] has no 'code'", CONV, 'CONV = { name = "Conv" } #!'),
    ("bar_bytes in [device] is not a whole number", "bar_bytes = 65536", "bar_bytes = 65536.0 #!"),
    ("offset in [[register]] is not a whole number", "offset = 0x10\n", 'offset = "0x10" #!\n'),
    ("width in [[register]] is not a whole number", "offset = 0x10\nwidth = 32",
     "offset = 0x10\nwidth = true #!"),
    ("counts_down in [roles.counter] is not true or false", "counts_down = true", "counts_down = 1 #!"),
    ("bits in [[register.field]] is not a string", 'bits = "3"', "bits = 3 #!"),
    ("values in [[register.field]] is not a table", "values = { IDLE = 0, RUN = 1, HALT = 15 }",
     "values = [0, 1] #!"),
    ("CONV in [operators] is not a table", CONV, "CONV = 1 #!"),
    ("field in [[record]] is not an array of tables", "bytes = 48", "bytes = 48\nfield = [1] #!",
     GOOD[GOOD.index("  [[record.field]]"):GOOD.index("[roles.counter]")], ""),
    ("register in the file is not an array of tables", "[device]", "register = 1 #!\n[device]",
     GOOD[GOOD.index("[[register]]"):GOOD.index("[[record]]")], ""),
    ("outside 0 to 2^64-1", "offset = 0x10\n", "offset = -16 #!\n"),
    ("hz = 18446744073709551616 in [roles.counter], use 0 to 1000000000000000", "hz = 25003000",
     "hz = 18446744073709551616 #!"),
    ("lag_ns in [roles.counter] is not a whole number", "lag_ns = 350", "lag_ns = 0.35 #!"),
    ("lag_ns = -1 in [roles.counter], use 0 to 4294967295", "lag_ns = 350", "lag_ns = -1 #!"),
    # names
    ("duplicate register name 'TICKS_HI', first on line", 'name = "RING_HEAD"', 'name = "TICKS_HI" #!'),
    ("duplicate register name 'ticks_hi', first on line", 'name = "RING_HEAD"', 'name = "ticks_hi" #!'),
    ("duplicate field name 'BUSY'", 'name = "STATE"', 'name = "BUSY" #!'),
    ("duplicate field name 'JOB'", 'name = "PE"', 'name = "JOB" #!'),
    ("duplicate record name 'COMPLETION'", "[roles.counter]",
     '[[record]]\nname = "COMPLETION" #!\nbytes = 4\n[roles.counter]'),
    ("duplicate operator name 'load'", CONV, 'load = { code = 9, name = "" } #!'),
    ("duplicate value name 'idle'", "IDLE = 0, RUN = 1, HALT = 15 }", "IDLE = 0, idle = 1 } #!"),
    ("the C name TESTNPU_STATUS_STATE_POS comes out twice, first for line 37, rename",
     "values = { IDLE = 0, RUN = 1, HALT = 15 }", "[register.field.values]\nIDLE = 0\nPOS = 1 #!"),
    ("the C name TESTNPU_STATUS_STATE_X_Y comes out twice, first for line 42, rename", 'bits = "63:60"',
     'bits = "63:60"',
     "values = { IDLE = 0, RUN = 1, HALT = 15 }", "values = {}\n[register.field.values]\nX_Y = 0\n"
     '[[register.field]]\nname = "STATE_X"\nbits = "9:8"\n[register.field.values]\nZ = 0\nY = 0 #!',
     "values = {}\n", ""),
    ("the C name TESTNPU_RING_OFFSET comes out twice", '[[register]]\nname = "Doorbell8"',
     '[[register]] #!\nname = "RING"'),
    ("the C name TESTNPU_OP_COUNT comes out twice, first for line 2, rename", CONV,
     'COUNT = { code = 1, name = "" } #!'),
    ("'9LIVES' is no C name", 'name = "Doorbell8"', 'name = "9LIVES" #!'),
    ("'A B' is no C name", 'name = "Doorbell8"', 'name = "A B" #!'),
    ("'' is no C name", 'name = "Doorbell8"', 'name = "" #!'),
    ("'_X' is no C name", 'name = "Doorbell8"', 'name = "_X" #!'),
    ("'A__B' is no C name", 'name = "Doorbell8"', 'name = "A__B" #!'),
    ("'É' is no C name", 'name = "Doorbell8"', 'name = "É" #!'),
    ("'test-npu' is no C name", 'name = "testnpu"', 'name = "test-npu" #!'),
    ("'A B' is no C name", CONV, '"A B" = { code = 1, name = "" } #!'),
    ("would clash with npuprof", 'name = "testnpu"', 'name = "npuprof" #!'),
    # registers
    ("overlaps register TICKS_LO on line 9", "offset = 0x14\n", "offset = 0x10 #!\n"),
    ("register Doorbell8 overlaps register STATUS", "offset = 0x28\n", "offset = 0x27 #!\n"),
    ("register TICKS_HI at 0x16 is misaligned", "offset = 0x14\n", "offset = 0x16 #!\n"),
    ("register STATUS at 0x24 is misaligned", "offset = 0x20\n", "offset = 0x24 #!\n"),
    ("register Doorbell8 at 0x10000 lies outside the BAR", "offset = 0x28\n", "offset = 0x10000 #!\n"),
    ("width 24, use 8, 16, 32 or 64", "offset = 0x28\nwidth = 8", "offset = 0x28\nwidth = 24 #!"),
    ("access = 'w' in [[register]], use one of ro, rw, wo, rc", 'access = "wo"', 'access = "w" #!'),
    ("field STATE overlaps field BUSY of register STATUS", 'bits = "63:60"', 'bits = "4:0" #!'),
    ("bits '64:60' of field STATE in [[register.field]] is outside the 64-bit word",
     'bits = "63:60"', 'bits = "64:60" #!'),
    ("bits '60:63' of field STATE in [[register.field]] is reversed, write \"msb:lsb\": \"63:60\"",
     'bits = "63:60"', 'bits = "60:63" #!'),
    ("bits '' of field STATE in", 'bits = "63:60"', 'bits = "" #!'),
    ("bits '63..60' of", 'bits = "63:60"', 'bits = "63..60" #!'),
    ("bits '٣' of", 'bits = "63:60"', 'bits = "٣" #!'),
    ("value HALT = 16 does not fit the 4-bit field", "HALT = 15 }", "HALT = 16 } #!"),
    ("HALT in [register.field.values] is not a whole number", "HALT = 15 }", 'HALT = "15" } #!'),
    # records
    ("field SEQUENCE at 0x7 is misaligned", "offset = 6", "offset = 7 #!"),
    ("field END at 0x14 is misaligned", "offset = 16\n", "offset = 20 #!\n"),
    ("field END at 0x404 is misaligned and ends outside record COMPLETION", "offset = 16\n",
     "offset = 1028 #!\n"),
    ("field TEXT ends outside record COMPLETION", "offset = 24\n", "offset = 29 #!\n"),
    ("field PE overlaps field JOB of record COMPLETION",
     'name = "PE"\n  offset = 0\n  width = 32\n  bits = "19:16"',
     'name = "PE"\n  offset = 0 #!\n  width = 32\n  bits = "19:15"'),
    ("field TEXT overlaps field END", "offset = 24\n", "offset = 23 #!\n"),
    ("bits '32:16' of field PE in [[record.field]] is outside the 32-bit word",
     'bits = "19:16"', 'bits = "32:16" #!'),
    ("is a block of 160 bits and has no bit range", "width = 160", 'width = 160\n  bits = "3" #!'),
    ("field TEXT has width 12", "width = 160", "width = 12 #!"),
    ("field TEXT has width 0", "width = 160", "width = 0 #!"),
    ("bytes = 0 in [[record]], use 1 to 65536", "bytes = 48", "bytes = 0 #!"),
    # roles
    ("lo in [roles.counter] names register 'TICKS', which does not exist, use one of TICKS_LO, TICKS_HI, "
     "RING_HEAD",
     'lo = "TICKS_LO"', 'lo = "TICKS" #!'),
    ("which does not exist, and there is none, add it", GOOD,
     '[device]\nname = "n"\nbar_bytes = 1\n[roles.counter]\nlo = "A" #!'),
    ("names the 64-bit register STATUS", 'lo = "TICKS_LO"', 'lo = "STATUS" #!', '"rc"', '"ro"'),
    ("hi in [roles.counter] names register 'TICKS', which does not exist", 'hi = "TICKS_HI"',
     'hi = "TICKS" #!'),
    ("[roles.counter]: a counter's hi_offset equals lo_offset; give the register of the",
     'hi = "TICKS_HI"', 'hi = "TICKS_LO" #!'),
    ("names register STATUS with access rc", 'lo = "TICKS_LO"', 'lo = "STATUS" #!'),
    ("names register Doorbell8 with access wo", 'lo = "TICKS_LO"', 'lo = "Doorbell8" #!'),
    ("names the 8-bit register Doorbell8", 'lo = "TICKS_LO"', 'lo = "Doorbell8" #!', 'access = "wo"',
     'access = "ro"'),
    ("bits = 65 in [roles.counter], but the registers hold 64", "bits = 48", "bits = 65 #!"),
    ("bits = 0 in [roles.counter]", "bits = 48", "bits = 0 #!"),
    ("hz = 1000000000000001 in [roles.counter], use 0 to 1000000000000000", "hz = 25003000",
     "hz = 1000000000000001 #!"),
    ("lag_ns = 4294967296 in [roles.counter], use 0 to 4294967295", "lag_ns = 350",
     "lag_ns = 4294967296 #!"),
    ("does not go with a hi register", 'order = "lo-latches-hi"', 'order = "single" #!'),
    ("does not go with no hi register", 'order = "lo-latches-hi"', 'order = "lo-latches-hi" #!',
     'hi = "TICKS_HI"\nbits = 48\n', ""),
    ("record in [roles.ring] names record 'COMMAND', which does not exist", 'record = "COMPLETION"',
     'record = "COMMAND" #!'),
    ("names in record COMPLETION field 'PC', which does not exist", 'job = "JOB"', 'job = "PC" #!'),
    ("names field TEXT of 160 bits", 'job = "JOB"', 'job = "TEXT" #!'),
    ("producer in [roles.ring] names register 'HEAD', which does not exist", 'producer = "RING_HEAD"',
     'producer = "HEAD" #!'),
    ("one aligned 32-bit load cannot read", 'producer = "RING_HEAD"', 'producer = "Doorbell8" #!', '"wo"',
     '"ro"',
     "offset = 0x28", "offset = 0x29"),
    ("one aligned 32-bit load cannot read", 'producer = "RING_HEAD"', 'producer = "Doorbell8" #!', '"wo"',
     '"ro"',
     "pe_count = 4", 'endian = "big"'),
    ("one aligned 32-bit load cannot read", 'producer = "RING_HEAD"', 'producer = "Doorbell8" #!', '"wo"',
     '"ro"',
     "offset = 0x28", "offset = 0xfffc", "bar_bytes = 65536", "bar_bytes = 65533"),
    ("[roles.ring]: count does not divide 2^bits of the producer index: its slots would",
     "count = 256", "count = 3 #!", "is_slot = true",
     "is_slot = false"),
    ('[roles.ring]: start and end are missing; a queue without stamps says stamp = "none"',
     "[roles.ring]", "[roles.ring] #!",
     'start = "START"\nend = "END"\n', ""),
    ("start and end in [roles.ring] are the same field START", 'end = "END"', 'end = "START" #!'),
    ("[roles.ring] goes with no counter, add [roles.counter]",
     GOOD[GOOD.index("[roles.counter]"):GOOD.index("[roles.ring]")], "",
     "[roles.ring]", "[roles.ring] #!"),
    ("producer_bits = 33", "producer_bits = 20", "producer_bits = 33 #!"),
    ("[roles.ring]: producer.bits are too few for count",
     "count = 256", "count = 257", "producer_bits = 20", "producer_bits = 8 #!"),
    ("count = 0 in [roles.ring]", "count = 256", "count = 0 #!"),
    ("outside the BAR", "offset = 0x1000", "offset = 0xe000 #!"),
    ("the ring overlaps register TICKS_LO", "offset = 0x1000", "offset = 0x0 #!"),
    ("[roles.ring]: offset is not aligned to the widest field", "offset = 0x1000", "offset = 0x1004 #!"),
    ("[roles.ring]: record is no multiple of the widest field",
     'record = "COMPLETION"', 'record = "COMPLETION" #!', "bytes = 48",
     "bytes = 44"),
    ("needs either offset", "[roles.ring]", "[roles.ring] #!", "offset = 0x1000\n", ""),
    ("needs either offset", "offset = 0x1000", "offset = 0x1000\nmemory = true #!"),
    ("execution_op in [roles.ring] names operator 'RUN', which does not exist", 'execution_op = "EXECUTION"',
     'execution_op = "RUN" #!'),
    ("pmu in [roles] is not an array of tables", "[roles.ring]", "[roles.pmu] #!\n[roles.ring]"),
    ("[[roles.pmu]] has no 'name'", "[roles.ring]", '[[roles.pmu]] #!\nlo = "TICKS_LO"\n[roles.ring]'),
    ("unknown key 'hz' in [[roles.pmu]]", "[roles.ring]",
     '[[roles.pmu]]\nname = "a"\nlo = "TICKS_LO"\nhz = 1 #!\n[roles.ring]'),
    ("lo in [[roles.pmu]] names register 'A'", "[roles.ring]",
     '[[roles.pmu]]\nname = "a"\nlo = "A" #!\n[roles.ring]'),
    ("a second event counter is named 'a'", "[roles.ring]",
     '[[roles.pmu]]\nname = "a"\nlo = "TICKS_LO"\n[[roles.pmu]]\nname = "a" #!\n'
     'lo = "TICKS_LO"\n[roles.ring]'),
    ("[[roles.pmu]]: more than one event counter is is_busy or is_idle", "[roles.ring]",
     '[[roles.pmu]]\nname = "a"\nlo = "TICKS_LO"\nbusy = true\n[[roles.pmu]]\n'
     'name = "b"\nlo = "TICKS_LO"\nbusy = true #!\n[roles.ring]'),
    ("pmu in [roles] has 9, use at most 8", "[roles.ring]", "".join(
        f'[[roles.pmu]]{" #!" if i == 0 else ""}\nname = "{i}"\nlo = "TICKS_LO"\n'
        for i in range(9)) + "[roles.ring]"),
    # operators
    ("operator CONV has the code 3 of LOAD", CONV, 'CONV = { code = 3, name = "" } #!'),
    ("op code 256 of CONV does not fit the 8-bit field OP", CONV, 'CONV = { code = 256, name = "" } #!'),
    # the rest of [device], and text that C must not see
    ("endian = 'middle' in [device], use one of little, big",
     "pe_count = 4", 'pe_count = 4\nendian = "middle" #!'),
    ("pe_count = 0", "pe_count = 4", "pe_count = 0 #!"),
    ("pe_count = 4294967296", "pe_count = 4", "pe_count = 4294967296 #!"),
    ("holds a C comment mark", '"Low word of the tick counter."', '"*/ int x;" #!'),
    ("holds a C comment mark", 'source = "no data sheet"', 'source = "/*" #!'),
    ("holds a control or invisible character", 'source = "no data sheet"', 'source = "a\\nb" #!'),
    ("holds a control or invisible character", 'name = "Conv" }', 'name = "Co\\u0000nv" } #!'),
    ("holds a control or invisible character", 'source = "no data sheet"', 'source = "a\\u202eb" #!'),
    ("a backslash (or its trigraph) at the end", 'source = "no data sheet"', "source = 'data\\' #!"),
    ("a backslash (or its trigraph) at the end", 'source = "no data sheet"', "source = 'data??/' #!"),
]
# Replacements in device.toml that leave it right: the far side of the limits above.
ACCEPTED = [
    ("bits = 48", "bits = 1"), ("bits = 48", "bits = 64"), ("hz = 25003000", "hz = 1000000000000000"),
    ("lag_ns = 350", "lag_ns = 0"), ("lag_ns = 350", "lag_ns = 4294967295"),
    ("pe_count = 4", "pe_count = 4294967295"), (CONV, 'CONV = { code = 255, name = "" }'),
    ("offset = 0x28", "offset = 0xffff"),
    ('job = "JOB"\n', "", 'op = "OP"\n', "", CONV, 'CONV = { code = 1023, name = "" }'),
    ("count = 256", "count = 1", "producer_bits = 20", "producer_bits = 1"),
    ("producer_bits = 20", "producer_bits = 8"),
    ("producer_bits = 20", "producer_bits = 32"), ("offset = 0x1000", "offset = 0xd000"),
    ("offset = 0x1000", "offset = 0x30"),
    ("offset = 0x28", "offset = 0xfff"), ("offset = 0x28", "offset = 0x4000"),
    ("offset = 0x18\n", "offset = 0x0c\n"),
    ('producer = "RING_HEAD"\nproducer_bits = 20', 'producer = "Doorbell8"', '"wo"', '"rw"'),
    ('[[record.field]]\n  name = "OP"', '[[record.field]]\n  name = "TOP_BYTE"\n  offset = 3\n  width = 8\n'
     '  [[record.field]]\n  name = "OP"'),
    ("producer_is_slot = true\n", ""), ("count = 256", "count = 255"), ('start = "START"\n', ""),
    ('\nend = "END"', ""),
    ('producer = "RING_HEAD"', 'producer = "Doorbell8"', '"wo"', '"ro"', "offset = 0x28", "offset = 0xfffc",
     "producer_bits = 20", "producer_bits = 8"),
    ("offset = 0x1000\n", "memory = true\n", "bytes = 48", "bytes = 65536"),
]


class Refusals(InDirectory):
    def test_each_is_one_line_with_the_right_number(self):
        for message, *replacements in REFUSED:
            text = replaced(*replacements)
            line = text[:text.index("#!")].count("\n") + 1
            with self.subTest(message=message, new=replacements[1][:60]):
                with self.assertRaises(Refused) as refused:
                    generate(text, "device.toml")
                self.assertIn(message, str(refused.exception))
                self.assertRegex(str(refused.exception), rf"^device\.toml:{line}: [^\n]*$")

    def test_the_far_side_is_accepted(self):
        for replacements in ACCEPTED:
            with self.subTest(replacements=replacements):
                generate(replaced(*replacements), "device.toml")

    def test_command(self):
        path, header = self.directory / "bad.toml", self.directory / "out.h"
        path.write_text(GOOD.replace("bytes = 48", "bytes = 47"))
        code, output = self.gen(path, "-o", header)
        self.assertEqual((code, output.count("\n"), header.exists()), (2, 1, False), output)
        for content, line in ((b'x = "\xff"', 1), (b"\n\n# \xc3", 3)):
            path.write_bytes(content)
            code, output = self.gen(path, "-o", header)
            self.assertEqual(code, 2)
            self.assertTrue(output.startswith(f"{path}:{line}: "), output)
        self.assertEqual(self.gen(self.directory / "missing.toml", "-o", header)[0], 2)
        self.assertEqual(self.gen(DEVICE, "-o", self.directory / "no" / "out.h")[0], 2)
        self.assertEqual(sorted(os.listdir(self.directory)), ["bad.toml"])
        # a byte order mark, as Windows editors write it
        path.write_bytes(b"\xef\xbb\xbf" + GOOD.encode())
        self.assertEqual(self.gen(path, "-o", header), (0, ""))

    def test_hostile_file_name(self):
        with self.assertRaises(Refused):
            generate(GOOD, "a*/b\n.toml".replace("/", "/ /*"))
        with self.assertRaises(Refused):
            generate(GOOD, "a\nb.toml")


class Lines(unittest.TestCase):
    def test_scanner(self):
        lines = line_numbers(
            '# [no]\n'                                  # 1
            'a = """\n[[no]]\n""" # x = 1\n'            # 2
            "b = '''\n'''\n"                            # 5
            'c = [\n  { d = 1 }, # ]\n  "]",\n]\n'      # 7
            '"d e" . f = "a#b"\n'                       # 11
            '[[t]]\n'                                   # 12
            '[t.u]\n# c = 1\nx = 1\n'                   # 13
            '[[t]]\n'                                   # 16
            '  [[ t . v ]]\n  y.z = "[" # c\n'          # 17
            "  [[t.v]]\n")                              # 19
        self.assertEqual(lines, {
            (): 1, ("a",): 2, ("b",): 5, ("c",): 7, ("c", 0): 8,
            ("d e", "f"): 11, ("t", 0): 12, ("t", 0, "u"): 13,
            ("t", 0, "u", "x"): 15, ("t", 1): 16, ("t", 1, "v", 0): 17, ("t", 1, "v", 0, "y", "z"): 18,
            ("t", 1, "v", 1): 19})

    def test_strings_with_quotes(self):
        for text in ('a = """x""""', 'a = """x"""""',
                     "a = '''x''''", r'a = "\\"', r'a = "\""', r"a = '\'", 'a = ""', "a = ''"):
            with self.subTest(text=text):
                self.assertEqual(line_numbers(text + "\nb = 1\n"), {(): 1, ("a",): 1, ("b",): 2})
