# npuprof.py gen from TOML: refusals, values, headers that compile everywhere; the shipped headers
# SPDX-License-Identifier: MIT
"""npuprof.py gen: each refusal with its line, the values that come out, and headers that compile
everywhere."""

import concurrent.futures
import contextlib
import io
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import unittest
import unittest.mock

ROOT = pathlib.Path(__file__).resolve().parents[2]
TOOL = ROOT / "tools" / "npuprof.py"
sys.path.insert(0, str(TOOL.parent))
from npuprof import cli  # noqa: E402
from npuprof.gen import command, schema  # noqa: E402
from npuprof.gen.header import generate  # noqa: E402
from npuprof.gen.toml_table import line_numbers  # noqa: E402
from npuprof.base.messages import Refused  # noqa: E402

DEVICE = ROOT / "tests" / "tools" / "data" / "device.toml"
GOOD = DEVICE.read_text()
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
    ("outside 0 to 2^64-1", "hz = 25003000", "hz = 18446744073709551616 #!"),
    ("lag_ns in [roles.counter] is not a whole number", "lag_ns = 350", "lag_ns = 0.35 #!"),
    ("outside 0 to 2^64-1", "lag_ns = 350", "lag_ns = -1 #!"),
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
    ("access 'w'", 'access = "wo"', 'access = "w" #!'),
    ("field STATE overlaps field BUSY of register STATUS", 'bits = "63:60"', 'bits = "4:0" #!'),
    ("bits '64:60' in [[register.field]] is outside the 64-bit word", 'bits = "63:60"', 'bits = "64:60" #!'),
    ("bits '60:63' in [[register.field]] is no bit range", 'bits = "63:60"', 'bits = "60:63" #!'),
    ("bits '' in", 'bits = "63:60"', 'bits = "" #!'),
    ("bits '63..60' in", 'bits = "63:60"', 'bits = "63..60" #!'),
    ("bits '٣' in", 'bits = "63:60"', 'bits = "٣" #!'),
    ("value HALT = 16 does not fit the 4-bit field", "HALT = 15 }", "HALT = 16 } #!"),
    ("HALT in [register.field.values] is not a whole number", "HALT = 15 }", 'HALT = "15" } #!'),
    # records
    ("field SEQUENCE at 0x7 is misaligned", "offset = 6", "offset = 7 #!"),
    ("field END at 0x14 is misaligned", "offset = 16\n", "offset = 20 #!\n"),
    ("field TEXT ends outside record COMPLETION", "offset = 24\n", "offset = 29 #!\n"),
    ("field PE overlaps field JOB of record COMPLETION",
     'name = "PE"\n  offset = 0\n  width = 32\n  bits = "19:16"',
     'name = "PE"\n  offset = 0 #!\n  width = 32\n  bits = "19:15"'),
    ("field TEXT overlaps field END", "offset = 24\n", "offset = 23 #!\n"),
    ("bits '32:16' in [[record.field]] is outside the 32-bit word", 'bits = "19:16"', 'bits = "32:16" #!'),
    ("is a block of 160 bits and has no bit range", "width = 160", 'width = 160\n  bits = "3" #!'),
    ("field TEXT has width 12", "width = 160", "width = 12 #!"),
    ("field TEXT has width 0", "width = 160", "width = 0 #!"),
    ("has 0 bytes", "bytes = 48", "bytes = 0 #!"),
    # roles
    ("lo in [roles.counter] names register 'TICKS', which does not exist, use one of TICKS_LO, TICKS_HI, "
     "RING_HEAD",
     'lo = "TICKS_LO"', 'lo = "TICKS" #!'),
    ("which does not exist, and there is none, add it", GOOD,
     '[device]\nname = "n"\nbar_bytes = 1\n[roles.counter]\nlo = "A" #!'),
    ("names the 64-bit register STATUS", 'lo = "TICKS_LO"', 'lo = "STATUS" #!', '"rc"', '"ro"'),
    ("hi in [roles.counter] names register 'TICKS', which does not exist", 'hi = "TICKS_HI"',
     'hi = "TICKS" #!'),
    ("are the same register", 'hi = "TICKS_HI"', 'hi = "TICKS_LO" #!'),
    ("names register STATUS with access rc", 'lo = "TICKS_LO"', 'lo = "STATUS" #!'),
    ("names register Doorbell8 with access wo", 'lo = "TICKS_LO"', 'lo = "Doorbell8" #!'),
    ("names the 8-bit register Doorbell8", 'lo = "TICKS_LO"', 'lo = "Doorbell8" #!', 'access = "wo"',
     'access = "ro"'),
    ("bits = 65 in [roles.counter], but the registers hold 64", "bits = 48", "bits = 65 #!"),
    ("bits = 0 in [roles.counter]", "bits = 48", "bits = 0 #!"),
    ("hz = 1000000000000001 in [roles.counter], use at most 1000000000000000", "hz = 25003000",
     "hz = 1000000000000001 #!"),
    ("lag_ns = 4294967296 in [roles.counter], use at most 4294967295", "lag_ns = 350",
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
    ("one aligned 32-bit load cannot read", 'producer = "RING_HEAD"', 'producer = "STATUS" #!', '"rc"',
     '"ro"'),
    ("one aligned 32-bit load cannot read", 'producer = "RING_HEAD"', 'producer = "Doorbell8" #!', '"wo"',
     '"ro"',
     "offset = 0x28", "offset = 0x29"),
    ("one aligned 32-bit load cannot read", 'producer = "RING_HEAD"', 'producer = "Doorbell8" #!', '"wo"',
     '"ro"',
     "pe_count = 4", 'endian = "big"'),
    ("one aligned 32-bit load cannot read", 'producer = "RING_HEAD"', 'producer = "Doorbell8" #!', '"wo"',
     '"ro"',
     "offset = 0x28", "offset = 0xfffc", "bar_bytes = 65536", "bar_bytes = 65533"),
    ("count = 3 in [roles.ring] loses its place", "count = 256", "count = 3 #!", "is_slot = true",
     "is_slot = false"),
    ("[roles.ring] has neither start nor end", "[roles.ring]", "[roles.ring] #!",
     'start = "START"\nend = "END"\n', ""),
    ("start and end in [roles.ring] are the same field START", 'end = "END"', 'end = "START" #!'),
    ("[roles.ring] goes with no counter, add [roles.counter]",
     GOOD[GOOD.index("[roles.counter]"):GOOD.index("[roles.ring]")], "",
     "[roles.ring]", "[roles.ring] #!"),
    ("producer_bits = 33", "producer_bits = 20", "producer_bits = 33 #!"),
    ("count = 257 in [roles.ring]", "count = 256", "count = 257 #!", "producer_bits = 20",
     "producer_bits = 8"),
    ("count = 0 in [roles.ring]", "count = 256", "count = 0 #!"),
    ("outside the BAR", "offset = 0x1000", "offset = 0xe000 #!"),
    ("the ring overlaps register TICKS_LO", "offset = 0x1000", "offset = 0x0 #!"),
    ("misaligns the entries", "offset = 0x1000", "offset = 0x1004 #!"),
    ("misaligns the next entry", 'record = "COMPLETION"', 'record = "COMPLETION" #!', "bytes = 48",
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
    ("event counter 'b' is busy, and so is 'a'", "[roles.ring]",
     '[[roles.pmu]]\nname = "a"\nlo = "TICKS_LO"\nbusy = true\n[[roles.pmu]]\n'
     'name = "b"\nlo = "TICKS_LO"\nbusy = true #!\n[roles.ring]'),
    ("more than 8 event counters", "[roles.ring]", "".join(
        f'[[roles.pmu]]{" #!" if i == 8 else ""}\nname = "{i}"\nlo = "TICKS_LO"\n'
        for i in range(9)) + "[roles.ring]"),
    # operators
    ("operator CONV has the code 3 of LOAD", CONV, 'CONV = { code = 3, name = "" } #!'),
    ("op code 1024 of CONV is above 1023", CONV, 'CONV = { code = 1024, name = "" } #!'),
    ("op code 256 of CONV does not fit the 8-bit field OP", CONV, 'CONV = { code = 256, name = "" } #!'),
    # the rest of [device], and text that C must not see
    ("endian 'middle'", "pe_count = 4", 'pe_count = 4\nendian = "middle" #!'),
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

# npuprof_npu.h as far as a generated header needs it.
STUB = """
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#define NPUPROF_NPU_H
enum { NPUPROF_NPU_HI_LO_HI, NPUPROF_NPU_LO_LATCHES_HI, NPUPROF_NPU_SINGLE };
typedef struct npuprof_npu_field {
    uint16_t offset;
    uint8_t width_bytes;
    uint8_t lsb, bits;
} npuprof_npu_field;
typedef struct npuprof_npu_ring {
    const volatile void *memory;
    size_t memory_bytes;
    size_t offset;
    unsigned entry_bytes, count;
    size_t producer_offset;
    unsigned producer_bits;
    bool producer_is_slot;
    bool big_endian;
    npuprof_npu_field sequence;
    npuprof_npu_field job, start, end, pe, op, status, execution, instruction;
    const char *const *op_names; unsigned op_count;
    const char *category;
    unsigned execution_op;
} npuprof_npu_ring;
typedef struct npuprof_npu_counter {
    size_t lo_offset, hi_offset;
    unsigned bits;
    unsigned access;
    int order;
    bool counts_down, big_endian;
    uint64_t hz;
    uint32_t lag_ns;
} npuprof_npu_counter;
typedef struct npuprof_npu_pmu {
    const char *name;
    npuprof_npu_counter counter;
    bool is_busy;
} npuprof_npu_pmu;
typedef struct npuprof_npu_desc {
    const char *name;
    volatile const void *bar; size_t bar_bytes;
    const char *resource;
    int vfio_device_fd; unsigned vfio_region; bool vfio;
    uint64_t (*read_ticks)(void *user); void *user;
    npuprof_npu_counter counter;
    npuprof_npu_ring ring;
    const npuprof_npu_pmu *pmu;
    unsigned pmu_count;
    unsigned pe_count;
    int (*wait)(void *user); bool wait_around;
} npuprof_npu_desc;
"""

# Small devices that go other ways than device.toml.
BIG_ENDIAN_MEMORY = """
[device]
name = "BigNpu"
bar_bytes = 0x100000000
endian = "big"
[[register]]
name = "TICKS"
offset = 0xfffffff8
width = 64
access = "ro"
[[register]]
name = "HEAD"
offset = 0
width = 32
access = "rw"
[[record]]
name = "DONE"
bytes = 8
  [[record.field]]
  name = "HIGH_BYTE"
  offset = 0
  width = 8
  [[record.field]]
  name = "START"
  offset = 0
  width = 32
  bits = "23:0"
  [[record.field]]
  name = "END"
  offset = 4
  width = 32
[roles.counter]
lo = "TICKS"
[roles.ring]
record = "DONE"
memory = true
count = 4
producer = "HEAD"
start = "START"
end = "END"
[operators]
ONLY = { code = 0, name = "Only" }
"""
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
BARE = '[device]\nname = "bare"\nbar_bytes = 4\n'

WARNINGS = ["-Wall", "-Wextra", "-Wpedantic", "-Wshadow", "-Wconversion", "-Wundef", "-Werror"]
COMPILERS = [(name, language, std)
             for names, language, stds in ((("gcc", "clang"), "c", ("c99", "c11", "c17")),
                                           (("g++", "clang++"), "c++", ("c++11", "c++14", "c++17")))
             for name in names for std in stds]


def replaced(*replacements):
    """device.toml with some text (old, new, old, new, ...) replaced."""
    text = GOOD
    for old, new in zip(replacements[::2], replacements[1::2]):
        assert text.count(old) == 1, f"{text.count(old)} times in device.toml: {old}"
        text = text.replace(old, new)
    return text


class InDirectory(unittest.TestCase):
    def setUp(self):
        directory = tempfile.TemporaryDirectory()
        self.addCleanup(directory.cleanup)
        self.directory = pathlib.Path(directory.name)

    def gen(self, *arguments):
        """Returns the exit code and the output of one run."""
        output = io.StringIO()
        with contextlib.redirect_stdout(output), contextlib.redirect_stderr(output):
            code = cli.main(["gen", *map(str, arguments)])
        return code, output.getvalue()


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
            (): 1, ("a",): 2, ("b",): 5, ("c",): 7, ("d e", "f"): 11, ("t", 0): 12, ("t", 0, "u"): 13,
            ("t", 0, "u", "x"): 15, ("t", 1): 16, ("t", 1, "v", 0): 17, ("t", 1, "v", 0, "y", "z"): 18,
            ("t", 1, "v", 1): 19})

    def test_strings_with_quotes(self):
        for text in ('a = """x""""', 'a = """x"""""',
                     "a = '''x''''", r'a = "\\"', r'a = "\""', r"a = '\'", 'a = ""', "a = ''"):
            with self.subTest(text=text):
                self.assertEqual(line_numbers(text + "\nb = 1\n"), {(): 1, ("a",): 1, ("b",): 2})


class Output(InDirectory):
    def test_same_input_same_bytes(self):
        header, other = self.directory / "a.h", self.directory / "b.h"
        self.assertEqual(self.gen(DEVICE, "-o", header), (0, ""))
        environment = dict(os.environ, PYTHONHASHSEED="7", LC_ALL="C", TZ="Asia/Tokyo")
        subprocess.run([sys.executable, TOOL, "gen", os.path.relpath(DEVICE, self.directory), "-o", "b.h"],
                       cwd=self.directory, env=environment, check=True)
        self.assertEqual(header.read_bytes(), other.read_bytes())
        self.assertNotIn(str(ROOT), header.read_text())
        self.assertRegex(header.read_text(), r"from device\.toml, sha256 [0-9a-f]{16}\.\n")

    def test_help_lists_every_key(self):
        text = command.__doc__[command.__doc__.index("Keys of the TOML"):]
        for table in ("DEVICE", "REGISTER", "REGISTER_FIELD", "RECORD", "RECORD_FIELD", "COUNTER", "RING",
                      "PMU", "OPERATOR"):
            for key in getattr(schema, table):
                self.assertRegex(text, rf"\b{key}\b", table)
        for order in schema.ORDERS:
            self.assertIn(f'"{order}"', text)

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
        self.assertNotIn("op_names", generate(no_operators, "d.toml"))

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
        self.assertTrue(link.is_symlink())
        self.assertIn("TESTNPU", header.read_text())
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
        (self.directory / "stub.h").write_text(STUB)

    def compile(self, compiler, language, *arguments):
        return subprocess.run([compiler, "-x", language, "-I", self.directory, *WARNINGS, *arguments],
                              capture_output=True, text=True, cwd=self.directory)

    def test_clean_everywhere(self):
        generated = ('#include "device.h"\n#include "big.h"\n#include "words.h"\n#include "bare.h"\n'
                     '#include "events.h"\n')
        users = "".join(f"void use_{name}(npuprof_npu_desc *d);\n"
                        f"void use_{name}(npuprof_npu_desc *d) {{ *d = {name}_npu_desc(); }}\n"
                        for name in ("testnpu", "bignpu", "words", "bare", "events"))
        sources = {"alone": generated + "int x;\n",
                   "stub": '#include "stub.h"\n' + generated + users,
                   "late": generated + '#include "stub.h"\n' + generated * 2 + users}
        real = ROOT / "npuprof_npu.h"
        if real.exists():
            sources["real"] = f'#include "{ROOT}/npuprof.h"\n#include "{real}"\n' + generated + users
        jobs = []
        for name, source in sources.items():
            (self.directory / f"{name}.c").write_text(source)
            jobs += [(name, *compiler) for compiler in COMPILERS if shutil.which(compiler[0])]
        for missing in sorted({name for name, language, std in COMPILERS if not shutil.which(name)}):
            print(f"skip generated headers with {missing}: not installed")

        def job(name, compiler, language, std):
            return self.compile(compiler, language, f"-std={std}", "-fsyntax-only", f"{name}.c")
        with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
            for arguments, result in zip(jobs, pool.map(lambda arguments: job(*arguments), jobs)):
                with self.subTest(arguments):
                    self.assertEqual(result.stderr, "")
                    self.assertEqual(result.returncode, 0)

    def c_compiler(self):
        for compiler in (os.environ.get("CC", "cc"), "gcc", "clang"):
            if shutil.which(compiler):
                return compiler
        self.skipTest("no C compiler")

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
            "t.ring.count": 256, "t.ring.producer_offset": 0x18, "t.ring.producer_bits": 20,
            "t.ring.producer_is_slot": 1,
            "t.ring.big_endian": 0, "t.ring.op_count": 4, "t.ring.execution_op": 1,
            r'strcmp(t.ring.op_names[3], "Load \"\303\251\" \\n ?" "?/ %d")': 0,
            'strcmp(t.ring.op_names[2], "op 2")': 0,
            r'strcmp(t.ring.category, "NPU \\n?" "?/\" %s")': 0,
            # the other way round
            "BIGNPU_BAR_BYTES >> 32": 1, "BIGNPU_TICKS_OFFSET": 0xfffffff8, "b.counter.bits": 64,
            "b.counter.access": 64,
            "b.counter.order == NPUPROF_NPU_SINGLE": 1, "b.counter.hz": 0, "b.counter.big_endian": 1,
            "b.counter.counts_down": 0, "b.counter.lag_ns": 0,
            "b.ring.big_endian": 1, "b.ring.offset": 0, "b.ring.count": 4, "b.ring.producer_bits": 32,
            "b.ring.producer_is_slot": 0,
            "b.ring.op_count": 1, "b.ring.category == NULL": 1, "b.ring.execution_op": 0, "b.pe_count": 1,
            "w.counter.lo_offset": 4, "w.counter.hi_offset": 0, "w.counter.bits": 64, "w.counter.access": 32,
            "w.counter.order == NPUPROF_NPU_HI_LO_HI": 1, "w.ring.op_names == NULL": 1,
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
        prints = "".join(f"    printf(\"%llu\\n\", (unsigned long long)({expression}));\n"
                         for expression in expressions)
        (self.directory / "values.c").write_text(
            '#include <stdio.h>\n#include <string.h>\n#include "stub.h"\n'
            '#include "device.h"\n#include "big.h"\n#include "words.h"\n#include "bare.h"\n'
            '#include "events.h"\n'
            "int main(void)\n{\n"
            "    npuprof_npu_desc t = testnpu_npu_desc(), b = bignpu_npu_desc(), w = words_npu_desc();\n"
            "    npuprof_npu_desc n = bare_npu_desc(), e = events_npu_desc();\n" + prints
            + "    return 0;\n}\n")
        built = self.compile(self.c_compiler(), "c", "-std=c99", "values.c", "-o", "values")
        self.assertEqual(built.returncode, 0, built.stderr)
        output = subprocess.run([self.directory / "values"], capture_output=True, text=True,
                                check=True).stdout
        self.assertEqual(dict(zip(expressions, map(int, output.split()), strict=True)), expressions)

    def test_edited_header_does_not_compile(self):
        header = (self.directory / "device.h").read_text()
        compiler = self.c_compiler()
        for name, value in (("TICKS_HI_OFFSET", "0xfffdu"), ("BAR_BYTES", "0x20u"),
                            ("COMPLETION_END_OFFSET", "0x29u"),
                            ("RING_COUNT", "2000u")):
            with self.subTest(name=name):
                edited, count = re.subn(rf"(#define TESTNPU_{name}) \w+", rf"\1 {value}", header)
                self.assertEqual(count, 1)
                (self.directory / "edited.c").write_text(edited)
                result = self.compile(compiler, "c", "-fsyntax-only", "edited.c")
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
               "d.pmu[3].counter.access": 32, "d.pmu[3].is_busy": 0},
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

    def test_clean_everywhere(self):
        includes = "".join(f'#include "{header}"\n' for header in self.headers().values())
        files = {"alone": includes,
                 "all": f'#include "{ROOT}/npuprof.h"\n#include "{ROOT}/npuprof_npu.h"\n' + includes}
        files["all"] += "".join(f"npuprof_npu_desc use_{name}(void);\n"
                                f"npuprof_npu_desc use_{name}(void) {{ return {name}_npu_desc(); }}\n"
                                for name in self.headers())
        for name, text in files.items():
            (self.directory / f"{name}.c").write_text(text)
        for compiler, language, std in COMPILERS:
            if not shutil.which(compiler):
                continue
            for name in files:
                with self.subTest(compiler=compiler, std=std, name=name):
                    built = subprocess.run([compiler, "-x", language, f"-std={std}", *WARNINGS,
                                            "-fsyntax-only", f"{name}.c"],
                                           capture_output=True, text=True, cwd=self.directory)
                    self.assertEqual((built.returncode, built.stderr), (0, ""))

    def test_values(self):
        self.assertEqual(set(SHIPPED), set(self.headers()))
        expected, blocks = [], ""
        for device, facts in SHIPPED.items():
            bits = facts.get("d.counter.bits", 64)
            expected += [0xf123456789abcdef % 2**bits, *facts.values()]
            blocks += COUNTS % {"device": device, "prints": "".join(
                f'        printf("%llu\\n", (unsigned long long)({expression}));\n' for expression in facts)}
        (self.directory / "facts.c").write_text(
            f'#include <stdio.h>\n#include <string.h>\n#define NPUPROF_IMPLEMENTATION\n'
            f'#include "{ROOT}/npuprof.h"\n#include "{ROOT}/npuprof_npu.h"\n'
            + "".join(f'#include "{header}"\n' for header in self.headers().values())
            + "int main(void)\n{\n" + blocks + "    return 0;\n}\n")
        compiler = next((c for c in (os.environ.get("CC", "cc"), "gcc", "clang") if shutil.which(c)), None)
        if compiler is None:
            self.skipTest("no C compiler")
        built = subprocess.run([compiler, "-std=gnu11", *WARNINGS, "facts.c", "-o", "facts", "-pthread"],
                               capture_output=True, text=True,
                               cwd=self.directory)
        self.assertEqual(built.returncode, 0, built.stderr)
        output = subprocess.run([self.directory / "facts"], capture_output=True, text=True, check=True).stdout
        self.assertEqual(list(map(int, output.split())), expected)


if __name__ == "__main__":
    unittest.main()
