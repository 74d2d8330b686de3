# npuprof.py gen from TOML: rings, indices, kinds, stamps, progress and event counters; refusals and values
# SPDX-License-Identifier: MIT

import contextlib
import io

from npuprof.gen.command import generate
from npuprof.base.messages import Refused
from gen_texts import InDirectory, NPUPROF, prints

HEAD = """\
[device]
name = "dev"
bar_bytes = 0x1000
pe_count = 4
[[register]]
name = "TICKS"
offset = 0x0
width = 32
access = "ro"
[[register]]
name = "TAIL"
offset = 0x8
width = 64
access = "ro"
field = [ { name = "LOW", bits = "15:0" }, { name = "NEXT", bits = "47:16" } ]
[[register]]
name = "CTRL"
offset = 0x10
width = 32
access = "rw"
field = [ { name = "EN", bits = "0", values = { ON = 1 } }, { name = "MODE", bits = "7:4" } ]
[[register]]
name = "STATUS"
offset = 0x14
width = 32
access = "rc"
[[register]]
name = "BYTE"
offset = 0x18
width = 8
access = "ro"
[[record]]
name = "R"
bytes = 32
field = [
    { name = "VALID", offset = 0, width = 32, bits = "31" },
    { name="TYPE", offset=0, width=32, bits="30:28", values={ START=0, END=1, MARK=2, SUM=3 } },
    { name = "ID", offset = 0, width = 32, bits = "27:12" },
    { name = "HIGH", offset = 0, width = 32, bits = "11:0" },
    { name = "AGAIN", offset = 0, width = 32, bits = "12:8", alternate = true },
    { name = "LOW", offset = 4, width = 32 },
    { name = "A", offset = 8, width = 64 },
    { name = "B", offset = 16, width = 64 },
    { name = "C", offset = 24, width = 32 },
    { name = "D", offset = 28, width = 16 },
    { name = "E", offset = 30, width = 8, bits = "5:0" },
]
[roles.counter]
lo = "TICKS"
hz = 1000000000
"""
# Small parts of descriptions, each behind HEAD. With #! the line that a refusal must name.
FED = '[roles.ring]\nrecord = "R"\nfeed = true\n'
POLLED = '[roles.ring]\nrecord = "R"\nmemory = true\ncount = 16\nstart = "A"\nend = "B"\n'
PAIRS = FED + ('kind = "TYPE"\nstamp = "A"\nkey = ["ID"]\n[roles.ring.kinds]\nSTART = "begin"\n'
               'END = "end"\n')
PROGRESS = '[roles.progress]\nmemory = true\nproducer_at = 0\n'
PMU = '[[roles.pmu]]\nname = "n"\n'
ANCHORS = ("[roles.counter]\nlo = \"TICKS\"\n", "[roles.counter]\nsource = \"anchors\"\n")

# (what the message says, the description behind HEAD)
REFUSED = [
    # feed
    ("[roles.ring]: feed takes no count and no memory", FED + 'start = "A"\ncount = 4 #!'),
    ("[roles.ring]: feed takes no ready rule: no producer, valid, phase",
     FED + 'start = "A"\nproducer_at = 4 #!'),
    ("[roles.ring]: feed takes no ready rule: no producer, valid, phase",
     FED + 'start = "A"\nproducer = "TAIL" #!'),
    ("[roles.ring]: feed takes no ready rule: no producer, valid, phase",
     FED + 'start = "A"\nvalid = "VALID" #!'),
    ("[roles.ring]: feed takes no ready rule: no producer, valid, phase",
     FED + 'start = "A"\nphase = "VALID" #!'),
    ("[roles.ring]: feed takes no count and no memory", FED + 'start = "A"\nmemory = true #!'),
    ("[roles.ring] has no 'count', add the number of entries, or feed = true",
     '[roles.ring] #!\nrecord = "R"\nmemory = true\nstart = "A"\nproducer_at = 512'),
    # ready rules
    ("[roles.ring] needs either producer (a register) or producer_at", POLLED.replace("]\n", "] #!\n", 1)),
    ("producer_at in [roles.ring] does not go with producer, take one out",
     POLLED + 'producer = "TAIL"\nproducer_at = 512 #!'),
    ('[roles.ring]: valid and ready = "valid" belong together: give both, or none',
     POLLED + 'ready = "valid" #!'),
    ('[roles.ring]: phase and ready = "phase" belong together: give both, or none',
     POLLED + 'ready = "phase" #!'),
    ('[roles.ring]: sequence is missing, which ready = "sequence" needs', POLLED + 'ready = "sequence" #!'),
    ("ready = 'bit' in [roles.ring], use one of producer, valid", POLLED + 'ready = "bit" #!'),
    ('[roles.ring]: phase and ready = "phase" belong together: give both, or none',
     POLLED + 'valid = "VALID"\nphase = "VALID" #!'),
    ("[roles.ring]: producer is there, and another ready rule, too: give one",
     POLLED + 'valid = "VALID"\nproducer_at = 512 #!'),
    ('[roles.ring]: valid and ready = "valid" belong together: give both, or none',
     POLLED + 'ready = "sequence"\nsequence = "ID"\nvalid = "VALID" #!'),
    ("[roles.ring] needs either producer (a register) or producer_at (bytes into the memory)",
     POLLED.replace("]\n", "] #!\n", 1) + 'valid = "VALID"\nlaps_at = 4'),
    ("[roles.ring]: valid has more than 32 bits",
     POLLED.replace('start = "A"\n', "") + 'valid = "A" #!'),
    ("valid_is = 2 in [roles.ring] does not fit the 1-bit field VALID",
     POLLED + 'valid = "VALID"\nvalid_is = 2 #!'),
    ("valid_is in [roles.ring] goes with valid", POLLED + 'producer_at = 512\nvalid_is = 1 #!'),
    ("[roles.ring]: phase has more than 1 bit", POLLED + 'phase = "TYPE" #!'),
    ("phase_first = 2 in [roles.ring] does not fit", POLLED + 'phase = "VALID"\nphase_first = 2 #!'),
    ("[roles.ring]: sequence has no numbers for more than two laps: it needs more bits",
     POLLED + 'ready = "sequence"\nsequence = "TYPE" #!'),
    ("sequence_first = 8 in [roles.ring] does not fit",
     POLLED + 'producer_at = 512\nsequence = "TYPE"\nsequence_first = 8 #!'),
    # a phase bit of an entry without a size, or of no entry
    ("[[record]] has no 'bytes'",
     '[[record]] #!\nname = "S"\nfield = [{ name = "P", offset = 0, width = 8 }]\n'
     '[roles.ring]\nrecord = "S"\nmemory = true\ncount = 4\nphase = "P"\nstamp = "none"'),
    ("[roles.ring] has no 'record'", '[roles.ring] #!\nmemory = true\ncount = 4\nphase = "P"'),
    # the index
    ("[roles.ring]: producer lies among the entries",
     POLLED + "producer_at = 32 #!"),
    ("[roles.ring]: producer.laps_offset lies among the entries",
     POLLED + 'producer_at = 512\nproducer_is = "slot"\nlaps_at = 508 #!'),
    ("[roles.ring]: producer is not aligned to its width", POLLED + "producer_at = 514 #!"),
    ("producer_width = 8 in [roles.ring], use one of 16, 32, 64",
     POLLED + "producer_at = 512\nproducer_width = 8 #!"),
    ("producer_width in [roles.ring] goes with producer_at",
     POLLED + 'producer = "TAIL"\nproducer_width = 64 #!'),
    ("producer_is = 'slots' in [roles.ring], use one of count, slot, bytes, byte_offset",
     POLLED + 'producer_at = 512\nproducer_is = "slots" #!'),
    ("producer_is_slot in [roles.ring] does not go with producer_is, take one out",
     POLLED + 'producer_at = 512\nproducer_is = "slot"\nproducer_is_slot = true #!'),
    ("producer in [roles.ring] names register 'HEAD', which does not exist", POLLED + 'producer = "HEAD" #!'),
    ("names in register TAIL field 'HIGH', which does not exist", POLLED + 'producer = "TAIL.HIGH" #!'),
    ("producer_bits = 17 in [roles.ring], use 1 to 16",
     POLLED + 'producer = "TAIL.LOW"\nproducer_bits = 17 #!'),
    ("names register STATUS with access rc", POLLED + 'producer = "STATUS" #!'),
    ("[roles.ring]: producer has laps, but its unit is neither a slot nor a byte offset",
     POLLED + "producer_at = 512\nlaps_at = 516 #!"),
    ("[roles.ring]: producer has a wrap bit, but its unit is neither a slot nor a byte",
     POLLED + "producer_at = 512\nproducer_wrap_bit = 16 #!"),
    ("laps_at in [roles.ring] overlaps the index",
     POLLED + 'producer_at = 512\nproducer_is = "slot"\nlaps_at = 512 #!'),
    ("[roles.ring]: producer has laps that are not aligned to its width",
     POLLED + 'producer_at = 512\nproducer_is = "slot"\nlaps_at = 522 #!'),
    ("laps_first in [roles.ring] goes with laps_at, add that, or take laps_first out",
     POLLED + 'producer_at = 512\nproducer_is = "slot"\nlaps_first = 1 #!'),
    ("[roles.ring]: count does not divide 2^bits of the producer index: its slots would",
     POLLED.replace("count = 16", "count = 3 #!") + "producer_at = 512"),
    ("[roles.ring]: producer.bits are too few for count",
     POLLED + 'producer_at = 512\nproducer_bits = 8 #!\nproducer_is = "byte_offset"'),
    # the place of a ring
    ("[roles.ring]: first is not aligned to the widest field", POLLED + "producer_at = 0\nfirst = 4 #!"),
    ("[roles.ring]: offset leads to 0x1100, outside the BAR: its bar_bytes is 0x1000",
     POLLED.replace("memory = true", "offset = 0x100 #!") + "first = 0xe00\nproducer_at = 0"),
    # instances
    ("stride in [roles.ring] goes with instances", POLLED + 'producer = "TAIL.LOW"\nstride = 16 #!'),
    ("instances in [roles.ring] goes with stride",
     POLLED + 'producer = "TAIL.LOW"\ninstances = 2 #!'),
    ("stride in [roles.ring] goes with a ring or an index in the BAR",
     POLLED + "producer_at = 512\ninstances = 2\nstride = 64 #!"),
    ("stride = 64 in [roles.ring] is less than the 576 bytes of a ring",
     POLLED.replace("memory = true", "offset = 0x100")
     + "first = 64\nproducer_at = 0\ninstances = 2\nstride = 64 #!"),
    ("[roles.ring]: producer leads to 0x1010, outside the BAR: its bar_bytes is 0x1000",
     POLLED + 'producer = "TAIL.LOW" #!\ninstances = 2\nstride = 0x1000'),
    ("[roles.ring]: instances reaches beyond pe_count",
     POLLED + 'producer_at = 512\ninstances = 5 #!'),
    ("[roles.ring]: pe_base reaches beyond pe_count", FED + 'start = "A"\npe_base = 4 #!'),
    ("instances = 0 in [roles.ring]", FED + 'start = "A"\ninstances = 0 #!'),
    ("more than 128 rings", "".join(
        f'[[roles.ring]]\nrecord = "R"\nname = "r{i}"\nfeed = true\nstart = "A"\n'
        f"instances = 4 #!\n" for i in range(33))),
    ("[[roles.ring]]: offset or memory overlaps another ring's",
     POLLED.replace("[roles.ring]", "[[roles.ring]]").replace("memory = true", "offset = 0x300")
     + 'producer = "TAIL.LOW"\n' + POLLED.replace("[roles.ring]", "[[roles.ring]]")
     .replace("memory = true", "offset = 0x400 #!") + 'name = "S"\nproducer = "TAIL.NEXT"'),
    ("the C name DEV_RING_R comes out twice",
     2 * ('[[roles.ring]] #!\nrecord = "R"\nfeed = true\nstart = "A"\n')),
    ("ring in [roles] is not an array of tables, write [[roles.ring]]", '[roles]\nring = [1] #!'),
    # stamps
    ("start in [roles.ring] has 3 parts", FED + 'start = ["LOW", "HIGH", "C"] #!'),
    ("start in [roles.ring] has 0 parts", FED + "start = [] #!"),
    ("start in [roles.ring] is not a name or [low part, high part]", FED + 'start = ["LOW", 1] #!'),
    ("[roles.ring]: start has more than 64 bits", FED + 'start = ["A", "B"] #!'),
    ("[roles.ring]: start has two parts that overlap", FED + 'start = ["ID", "AGAIN"] #!'),
    ("[roles.ring]: start has two parts that overlap", FED + 'start = ["LOW", "LOW"] #!'),
    ("[roles.ring]: start has fewer than 8 bits", FED + 'start = "E" #!'),
    ("[roles.ring]: duration is there, with start and end: give two of them",
     FED + 'start = "A"\nend = "B"\nduration = "C" #!'),
    ('[roles.ring]: start and end are missing; a queue without stamps says stamp = "none"',
     FED.replace("]", "] #!") + 'duration = "C"'),
    ("start and end in [roles.ring] are the same field LOW+HIGH",
     FED + 'start = ["LOW", "HIGH"]\nend = ["LOW", "HIGH"] #!'),
    ("stamps = 'up' in [roles.ring]", FED + 'start = "A"\nstamps = "up" #!'),
    ("stamp_scale in [roles.ring] is [2, 0], write two numbers, each 1 to 4294967296",
     FED + 'start = "A"\nstamp_scale = [2, 0] #!'),
    ("stamp_scale in [roles.ring] is [4294967297, 1]", FED + 'start = "A"\nstamp_scale = [4294967297, 1] #!'),
    ("stamp_scale in [roles.ring] is [2]", FED + 'start = "A"\nstamp_scale = [2] #!'),
    ("stamp_scale in [roles.ring] is not a list of two whole numbers",
     FED + 'start = "A"\nstamp_scale = ["2", 1] #!'),
    ("stamp_scale in [roles.ring] is [-2, 1], write two numbers, each 1 to 4294967296",
     FED + 'start = "A"\nstamp_scale = [-2, 1] #!'),
    ("stamp_clock = 'tsc' in [roles.ring], use one of counter, host",
     FED + 'start = "A"\nstamp_clock = "tsc" #!'),
    ('stamp_unit_ns in [roles.ring] goes with stamp_clock = "host"',
     FED + 'start = "A"\nstamp_unit_ns = 1000 #!'),
    ("job_scope", FED + 'start = "A"\njob = "A"\njob_scope = "core" #!'),
    ("stamp_unit_ns = 0", FED + 'start = "A"\nstamp_clock = "host"\nstamp_unit_ns = 0 #!'),
    ('[roles.ring]: stamp_clock is "host", which takes no scale and no offset',
     FED + 'start = "A"\nstamp_clock = "host" #!\nstamp_scale = [2, 1]'),
    ("duration_unit_ns in [roles.ring] goes with duration, add that, or take",
     FED + 'end = "A"\nduration_unit_ns = 10 #!'),
    ('[roles.ring]: duration must be set where stamp = "none" goes with duration: no',
     FED + 'stamp = "none"\nduration = "C" #!'),
    ("duration_scale in [roles.ring]", FED + 'end = "A"\nduration = "C"\nduration_scale = [0, 1] #!'),
    ('[roles.ring]: stamp is "none", but there are stamps', FED + 'stamp = "none" #!\nstart = "A"'),
    ('stamps in [roles.ring] goes with stamp = "none"', FED + 'stamp = "none"\nstamps = "ascending" #!'),
    ("stamp in [roles.ring] goes with kinds", FED + 'start = "A"\nstamp = "B" #!'),
    # kinds
    ("[roles.ring]: kinds and kind belong together: give both, or none",
     FED + 'stamp = "A"\nkind = "TYPE" #!'),
    ("goes with no kind, add kind", FED + 'start = "A"\n[roles.ring.kinds] #!\nSTART = "begin"'),
    ("START = 'open' in [roles.ring.kinds], use one of span, begin, end",
     PAIRS.replace('"begin"', '"open" #!')),
    ("'BEGIN' in [roles.ring.kinds] is no value of field TYPE, write a number or one of START, END",
     PAIRS.replace("START =", "BEGIN =").replace('"begin"', '"begin" #!')),
    ("8 in [roles.ring.kinds] does not fit the 3-bit field TYPE", PAIRS + '8 = "skip" #!'),
    ("[roles.ring]: kinds has a value twice", PAIRS.replace("kinds]", "kinds] #!") + '1 = "skip"'),
    ("[roles.ring]: kinds has a begin, but no end",
     PAIRS.replace("kinds]", "kinds] #!").replace('END = "end"\n', "")),
    ("[roles.ring]: kinds has an end, but no begin",
     PAIRS.replace("kinds]", "kinds] #!").replace('START = "begin"\n', "")),
    ("begin records without an id, add key",
     PAIRS.replace('key = ["ID"]\n', "").replace("kinds]", "kinds] #!")),
    ("key in [roles.ring] goes with no begin record", FED + 'start = "A"\nkey = ["ID"] #!'),
    ("key in [roles.ring] has 3, use at most 2",
     PAIRS.replace('key = ["ID"]', 'key = ["ID", "C", "D"] #!')),
    ("key in [roles.ring] is not a list of names", PAIRS.replace('key = ["ID"]', 'key = "ID" #!')),
    ("[roles.ring]: value is missing, which a counter needs",
     PAIRS.replace("[roles.ring]", "[roles.ring] #!") + 'SUM = "counter"'),
    ("[roles.ring]: stamp is missing; its kinds need it",
     PAIRS.replace("[roles.ring]", "[roles.ring] #!").replace('stamp = "A"\n', "")),
    ("start in [roles.ring] goes with no entry that is a span",
     PAIRS.replace('stamp = "A"\n', 'stamp = "A"\nstart = "B" #!\n')),
    # conditions
    ("names in record R field 'NO', which does not exist", FED + 'start = "A"\nempty = { NO = 0 } #!'),
    ("2 in [roles.ring.empty] does not fit the 1-bit field VALID",
     FED + 'start = "A"\nempty = { VALID = 2 } #!'),
    ("empty in [roles.ring] has 3, use at most 2",
     FED + 'start = "A"\nempty = { VALID = 0, TYPE = 0, ID = 0 } #!'),
    ("[roles.ring]: clock_high and clock_when belong together: give both, or none",
     PAIRS.replace("[roles.ring.kinds]", 'clock_high = "HIGH" #!\n[roles.ring.kinds]')),
    ("[roles.ring]: clock_high and clock_when belong together: give both, or none",
     PAIRS.replace("[roles.ring.kinds]", "clock_when = { TYPE = 2 } #!\n[roles.ring.kinds]")),
    ("[roles.ring]: clock_when needs stamp, whose high part it tells",
     FED + 'start = "A"\nclock_when = { TYPE = 2 } #!\nclock_high = "HIGH"'),
    ("[roles.ring]: clock_high and stamp have more than 64 bits", PAIRS.replace(
        "[roles.ring.kinds]", 'clock_when = { TYPE = 2 }\nclock_high = "HIGH" #!\n[roles.ring.kinds]')),
    # meaning
    ("args in [roles.ring] has 13, use at most 12", FED + 'start = "A"\nargs = [' + '"C", ' * 13 + "] #!"),
    ("args in [roles.ring] names field C twice", FED + 'start = "A"\nargs = ["C", "C"] #!'),
    ("pe_names in [roles.ring] goes with pe, add that, or take pe_names out",
     FED + 'start = "A"\npe_names = { 1 = "a" } #!'),
    ("[roles.ring]: pe_names has more names than pe_count allows",
     FED + 'start = "A"\npe = "C"\npe_names = { 1 = "a", 2 = "b", 3 = "c", 4 = "d", 5 = "e" } #!'),
    ("[roles.ring]: pe_names has a value twice",
     FED + 'start = "A"\npe = "C"\npe_names = { 1 = "a", 0x1 = "b" } #!'),
    ("operator B has the code 70000 of A", '[operators]\nA = { code = 70000, name = "" }\n'
     'B = { code = 70000, name = "" } #!'),
    ("op code 65536 of A does not fit the 16-bit field ID",
     FED + 'start = "A"\nop = "ID"\n[operators]\nA = { code = 65536, name = "" } #!'),
    # records
    ("field A is alternate, but no field before it has one of its bits",
     '[[record]]\nname = "S"\nbytes = 4\nfield = [\n'
     '{ name = "A", offset = 0, width = 32, alternate = true }, #!\n]'),
    ("field B overlaps field A of record S, move one, or say alternate = true",
     '[[record]]\nname = "S"\nbytes = 4\nfield = [ { name = "A", offset = 0, width = 32 },\n'
     '{ name = "B", offset = 2, width = 8 }, #!\n]'),
    ("field LENGTH ends outside record S of 4 bytes",
     '[[record]]\nname = "S"\nbytes = 4\nfield = [ { name = "LENGTH", offset = 4, width = 16 } ] #!'),
    # progress
    ("desc.progress and a ring are both there: give one",
     FED + 'start = "A"\n' + PROGRESS.replace("]", "] #!")),
    ("[roles.progress] needs memory = true with producer_at",
     PROGRESS.replace("memory = true\n", "").replace("]", "] #!")),
    ("[roles.progress]: its index has slots, but progress.count is 0",
     PROGRESS.replace("= 0", "= 0 #!") + 'producer_is = "slot"'),
    ("[roles.progress] needs count with an index that begins again", PROGRESS + "count = 4 #!"),
    ("[roles.progress]: its index counts bytes, but progress.entry_bytes is 0",
     PROGRESS.replace("= 0", "= 0 #!") + 'producer_is = "bytes"'),
    ("[roles.progress] needs entry_bytes with an index in bytes", PROGRESS + "entry_bytes = 4 #!"),
    ("entry_bytes = 0", PROGRESS + 'producer_is = "bytes"\nentry_bytes = 0 #!'),
    ("unknown key 'feed' in [roles.progress]", PROGRESS + "feed = true #!"),
    # conditions of the device
    ("names register STATUS with access rc", PROGRESS + 'requires = { "STATUS" = 1 } #!'),
    ("names in register CTRL field 'ON', which does not exist", PROGRESS + 'requires = { "CTRL.ON" = 1 } #!'),
    ("'OFF' in [roles.progress.requires] is no value of field EN",
     PROGRESS + 'requires = { "CTRL.EN" = "OFF" } #!'),
    ("16 in [roles.progress.requires] does not fit", PROGRESS + 'requires = { "CTRL.MODE" = 16 } #!'),
    ("CTRL.EN is required to be 1 and 0", PMU + 'lo = "TICKS"\nrequires = { "CTRL.EN" = 1 }\n' + PROGRESS
     + 'requires = { "CTRL.EN" = 0 } #!'),
    ("BYTE in [roles.progress.requires]: access of a requirement is not 32 or 64",
     PROGRESS + "requires = { BYTE = 1 } #!"),
    # event counters
    ("[[roles.pmu]]: an event counter is both is_busy and is_idle",
     PMU + 'lo = "TICKS"\nbusy = true\nidle = true #!'),
    ("[[roles.pmu]]: more than one event counter is is_busy or is_idle",
     PMU + 'lo = "TICKS"\nbusy = true\n' + PMU.replace('"n"', '"m"')
     + 'lo = "TICKS"\nidle = true #!'),
    ("[[roles.pmu]]: more than one event counter is is_busy or is_idle", PMU + 'lo = "TICKS"\nidle = true\n'
     + PMU.replace('"n"', '"m"') + 'lo = "TICKS"\nidle = true #!'),
    ("a second event counter is named 'n'",
     PMU + 'lo = "TICKS"\n' + PMU.replace('"n"', '"n" #!') + 'lo = "TICKS"'),
    ("scale = 0", PMU + 'lo = "TICKS"\nscale = 0 #!'),
    ("hi in [[roles.pmu]] goes with lo, add that, or take hi out", PMU + 'hi = "TICKS" #!'),
    ("restarts and counts down", PMU + 'lo = "TICKS"\ncounts_down = true\nrestarts = true #!'),
    ("bits = 65 in [[roles.pmu]]", PMU + "bits = 65 #!"),
]
# The same with another clock: (message, [roles.counter] and what is behind it).
CLOCKS = [
    ("source = 'tsc' in [roles.counter], use one of register, function, anchors", 'source = "tsc" #!'),
    ("[roles.counter] has two clocks: source = 'anchors' and lo", 'source = "anchors"\nlo = "TICKS" #!'),
    ("[roles.counter] has two clocks: source = 'function' and hi", 'source = "function"\nhi = "TICKS" #!'),
    ("bits = 0 in [roles.counter]", 'source = "anchors"\nbits = 0 #!'),
    ("TOML syntax: Cannot declare [roles.counter] twice", 'lo = "TICKS"\n[roles.counter] #!\nlo = "TICKS"'),
]
ACCEPTED = [
    FED + 'stamp = "none"', FED + 'stamp = "none"\nkind = "instant"\nop = "ID"',
    FED + 'stamp = "none"\nduration = "C"\nduration_unit_ns = 1000',
    FED + 'start = "A"\nduration = "C"', FED + 'end = "A"\nduration = ["LOW", "HIGH"]',
    FED + 'kind = "TYPE"\nstamp = "A"\nkey = []\n[roles.ring.kinds]\n0 = "begin"\n0x1 = "end"',
    FED + 'kind = "TYPE"\nstamp = "A"\nstart = "A"\nend = "B"\n[roles.ring.kinds]\nSTART = "span"\n'
    'MARK = "instant"',
    FED + 'start = "A"\npe = "C"\npe_names = { 0x10001 = "a", "7" = "b" }',
    FED + 'start = "A"\nempty = { TYPE = "MARK", ID = 0 }', FED + 'start = "A"\nsequence = "ID"',
    POLLED + 'sequence = "ID"\nready = "sequence"', POLLED + 'sequence = "ID"',
    POLLED + 'valid = "VALID"\nsequence = "ID"\nsequence_first = 1',
    POLLED + 'phase = "VALID"\nphase_first = 0',
    POLLED.replace("count = 16", "count = 15") + 'phase = "VALID"',
    POLLED + 'producer = "TAIL"', POLLED + 'producer = "TAIL.NEXT"\nproducer_is = "bytes"',
    POLLED.replace("count = 16", "count = 100")
    + 'producer_at = 0\nfirst = 32\nproducer_is = "slot"\nlaps_at = 4',
    POLLED.replace("count = 16", "count = 3") + "producer_at = 96\nproducer_width = 64",
    '[operators]\nA = { code = 0xffffffffffffffff, name = "all" }\n' + FED + 'start = "A"\nop = "B"',
    POLLED.replace("count = 16", "count = 130944") + 'producer_at = 4190208\nproducer_is = "bytes"',
    PMU + "bits = 32\nrestarts = true", PROGRESS + "producer_width = 64",
    '[roles.progress]\nproducer = "TAIL.LOW"\nproducer_is = "slot"\ncount = 65536',
    PROGRESS + 'producer_is = "byte_offset"\nentry_bytes = 12\ncount = 7',
]


class Refusals(InDirectory):
    def refuses(self, message, text):
        line = text[:text.index("#!")].count("\n") + 1
        with self.subTest(message=message, text=text[-120:]):
            with self.assertRaises(Refused) as refused:
                generate(text, "d.toml")
            self.assertIn(message, str(refused.exception))
            self.assertRegex(str(refused.exception), rf"^d\.toml:{line}: [^\n]*$")

    def test_each_is_one_line_with_the_right_number(self):
        for message, text in REFUSED:
            # Why the last mark: some parts bear one, and a text may hold the part twice.
            head, mark, tail = (HEAD + text).rpartition("#!")
            self.refuses(message, head.replace(" #!", "") + mark + tail)

    def test_clocks(self):
        for message, text in CLOCKS:
            self.refuses(message, HEAD[:HEAD.index('lo = "TICKS"')] + text)

    def test_a_ring_needs_a_clock_only_for_ticks(self):
        bare = HEAD[:HEAD.index("[roles.counter]")]
        self.refuses("goes with no counter", bare + FED.replace("]", "] #!") + 'start = "A"')
        for text in (FED + 'stamp = "none"', FED + 'start = "A"\nstamp_clock = "host"', PROGRESS):
            generate(bare + text, "d.toml")

    def test_a_device_without_registers_has_no_bar(self):
        text = ('[device]\nname = "d"\n[[record]]\nname = "R"\nbytes = 4\n'
                'field = [{ name = "J", offset = 0, width = 32 }]\n')
        self.assertNotIn("BAR_BYTES", generate(text + FED + 'stamp = "none"\njob = "J"', "d.toml"))
        with self.assertRaises(Refused) as refused:
            generate(text + '[roles.ring]\nrecord = "R"\noffset = 0\ncount = 2\nstamp = "none"\n'
                     "producer_at = 8\n", "d.toml")
        self.assertIn("offset leads to 0xc, outside the BAR: its bar_bytes is 0", str(refused.exception))

    def test_the_far_side_is_accepted(self):
        for text in ACCEPTED:
            with self.subTest(text=text):
                generate(HEAD + text, "d.toml")


class Warnings(InDirectory):
    def test_narrow_stamps(self):
        text = HEAD + FED + 'start = ["LOW", "HIGH"]\nend = "ID"\n'
        line = text.count("\n")
        errors = io.StringIO()
        with contextlib.redirect_stderr(errors):
            generate(text, "d.toml")
        self.assertRegex(errors.getvalue(), rf"^d\.toml:{line}: warning: the 16-bit end in \[roles\.ring\] "
                         r"comes round every 0\.0655 ms[^\n]*max_age_ms[^\n]*\n$")
        with self.assertRaises(Refused):
            generate(text, "d.toml", strict=True)
        for quiet in (text + "max_age_ms = 5", text + 'job = "C"', text + "stamp_scale = [1000, 1]",
                      text.replace("hz = 1000000000\n", "")):
            with contextlib.redirect_stderr(errors := io.StringIO()):
                generate(quiet, "d.toml", strict=True)
            self.assertEqual(errors.getvalue(), "")


# What a description must give: expression of the C description -> value.
VALUES = [
    (POLLED + 'first = 40\nproducer_at = 8\nproducer_width = 64\nproducer_is = "slot"\nlaps_at = 16\n'
     'laps_first = 1\nstamp_scale = [2, 1]\nstamps = "ascending"\njob = ["LOW", "C"]\n'
     'args = ["D", "E", "A", "B", "C", "ID"]\nexecution_op = "A"\nop = "B"\n[operators]\n'
     'B = { code = 0x1234567890, name = "b" }\nA = { code = 0x80000000, name = "a" }\n',
     {"d.ring.first": 40, "d.ring.count": 16, "d.ring.entry_bytes": 32, "d.ring.feed": 0,
      "d.ring.producer.in_memory": 1, "d.ring.producer.offset": 8, "d.ring.producer.width_bytes": 8,
      "d.ring.producer.bits": 64, "d.ring.producer.unit == NPUPROF_NPU_INDEX_SLOT": 1,
      "d.ring.producer.has_laps": 1, "d.ring.producer.laps_offset": 16, "d.ring.producer.laps_first": 1,
      "d.ring.scale_num": 2, "d.ring.scale_den": 1, "d.ring.ascending": 1, "d.ring.job.offset": 4,
      "d.ring.job.width_bytes": 4, "d.ring.job.bits": 32, "d.ring.job.hi_offset": 24,
      "d.ring.job.hi_width_bytes": 4, "d.ring.job.hi_bits": 32, "d.ring.args[1].field.offset": 30,
      "d.ring.args[1].field.bits": 6, 'strcmp(d.ring.args[0].name, "d")': 0, "d.ring.more_arg_count": 2,
      "d.ring.more_args[1].field.lsb": 12, 'strcmp(d.ring.more_args[0].name, "c")': 0,
      "d.ring.op_count": 2, "d.ring.ops[0].code": 0x80000000, "d.ring.ops[1].code": 0x1234567890,
      "d.ring.execution_op": 0x80000001, "DEV_OP_B": 0x1234567890,
      "d.ring.ready == NPUPROF_NPU_READY_PRODUCER": 1}),
    (PAIRS.replace("[roles.ring.kinds]", 'empty = { TYPE = 0, ID = 5 }\nclock_when = { TYPE = "MARK" }\n'
                   'clock_high = ["HIGH"]\nvalue = "C"\npe = "D"\npe_names = { 0x101 = "b", 7 = "a" }\n'
                   "pe_base = 1\n[roles.ring.kinds]").replace('stamp = "A"', 'stamp = ["LOW", "HIGH"]')
     + 'MARK = "instant"\nSUM = "counter"\n7 = "skip"\n',
     {"d.ring.feed": 1, "d.ring.count": 0, "d.ring.kind.lsb": 28, "d.ring.kind.bits": 3,
      "d.ring.kind_count": 5,
      "d.ring.kinds[1].value": 1, "d.ring.kinds[1].is == NPUPROF_NPU_KIND_END": 1,
      "d.ring.kinds[4].value": 7, "d.ring.kinds[4].is == NPUPROF_NPU_KIND_SKIP": 1,
      "d.ring.key[0].lsb": 12, "d.ring.key[1].width_bytes": 0, "d.ring.empty[0].value": 0,
      "d.ring.empty[0].field.bits": 3, "d.ring.empty[1].value": 5, "d.ring.clock_when[0].value": 2,
      "d.ring.clock_when[1].field.width_bytes": 0, "d.ring.clock_high.bits": 12, "d.ring.value.offset": 24,
      "d.ring.stamp.bits": 32, "d.ring.stamp.hi_bits": 12, "d.ring.stamp.hi_lsb": 0, "d.ring.lane_count": 2,
      "d.ring.lanes[0].value": 0x101, 'strcmp(d.ring.lanes[1].name, "a")': 0, "d.ring.pe_base": 1}),
    (POLLED.replace("memory = true", "offset = 0x200") + 'valid = "VALID"\nvalid_is = 0\ninstances = 2\n'
     'stride = 0x400\nstamp_clock = "host"\nstamp_unit_ns = 1000\njob_scope = "lane"\n',
     {"d.ring_count": 2, "d.rings == rings": 1, "rings[1].offset": 0x600, "rings[1].pe_base": 1,
      "rings[1].ready == NPUPROF_NPU_READY_VALID": 1, "rings[1].valid_value": 0, "rings[1].valid.lsb": 31,
      "rings[0].stamp_clock == NPUPROF_NPU_STAMP_HOST": 1, "rings[0].stamp_unit_ns": 1000, "DEV_RINGS": 2,
      "rings[0].job_scope == NPUPROF_NPU_SCOPE_LANE": 1,
      "DEV_RING_R": 0, "DEV_RING_R_OFFSET": 0x200, "DEV_RING_R_STRIDE": 0x400, "d.ring.count": 0}),
    ('[[roles.ring]]\nrecord = "R"\nname = "one"\nfeed = true\nstamp = "none"\nkind = "instant"\n'
     + POLLED.replace("[roles.ring]", "[[roles.ring]]") + 'phase = "VALID"\n'
     + POLLED.replace("[roles.ring]", "[[roles.ring]]") + 'name = "three"\n'
     'sequence = "ID"\nsequence_first = 9\n',
     {"d.ring_count": 3, "rings[0].feed": 1, "rings[0].stamp_clock == NPUPROF_NPU_STAMP_NONE": 1,
      "rings[0].all_are == NPUPROF_NPU_KIND_INSTANT": 1, "rings[1].feed": 0,
      "rings[1].ready == NPUPROF_NPU_READY_PHASE": 1, "rings[1].phase_first": 1, "rings[1].phase.bits": 1,
      "rings[2].ready == NPUPROF_NPU_READY_SEQUENCE": 1, "rings[2].sequence_first": 9, "DEV_RING_ONE": 0,
      "DEV_RING_R": 1, "DEV_RING_THREE": 2}),
    ('[roles.progress]\nproducer = "TAIL.NEXT"\nproducer_is = "byte_offset"\nentry_bytes = 64\ncount = 32\n'
     'requires = { "CTRL.EN" = "ON", "CTRL.MODE" = 3, TICKS = 1 }\n',
     {"d.progress.is_there": 1, "d.progress.index.offset": 8, "d.progress.index.width_bytes": 8,
      "d.progress.index.lsb": 16, "d.progress.index.bits": 32, "d.progress.count": 32,
      "d.progress.entry_bytes": 64, "d.progress.index.unit == NPUPROF_NPU_INDEX_BYTE_OFFSET": 1,
      "d.progress.index.in_memory": 0, "d.requirement_count": 3, "d.requirements[0].offset": 0x10,
      "d.requirements[0].mask": 1, "d.requirements[0].value": 1, "d.requirements[1].mask": 0xf0,
      "d.requirements[1].value": 0x30, 'strcmp(d.requirements[1].text, "CTRL.MODE")': 0,
      "d.requirements[2].mask": 0xffffffff, "d.requirements[2].access": 32, "d.ring.count": 0}),
    (PMU + 'lo = "TICKS"\nidle = true\nscale = 8\nunit = "bytes"\n' + PMU.replace('"n"', '"m"')
     + "bits = 32\nrestarts = true\n",
     {"d.pmu == pmu": 1, "d.pmu_count": 2, "pmu[0].is_idle": 1, "pmu[0].is_busy": 0, "pmu[0].scale": 8,
      'strcmp(pmu[0].unit, "bytes")': 0, "pmu[1].restarts": 1, "pmu[1].counter.bits": 32, "pmu[1].scale": 0,
      "pmu[1].unit == NULL": 1, "pmu[1].read == 0": 1, "DEV_PMU": 2, "d.anchors_only": 0}),
]


class Values(InDirectory):
    def test_values(self):
        source, calls, expected = "", "", []
        for number, (text, values) in enumerate(VALUES):
            header = generate(HEAD.replace('"dev"', f'"dev{number}"') + text, "d.toml")
            (self.directory / f"d{number}.h").write_text(header)
            arguments = ", ".join(name for name in ("rings", "pmu") if f"*{name}" in header)
            source += (f'#include "d{number}.h"\nstatic void values_{number}(void)\n{{\n'
                       "    static npuprof_npu_ring rings[4];\n    static npuprof_npu_pmu pmu[4];\n"
                       f"    npuprof_npu_desc d = dev{number}_npu_desc({arguments});\n"
                       "    (void)rings;\n    (void)pmu;\n")
            values = {expression.replace("DEV_", f"DEV{number}_"): value for expression,
                      value in values.items()}
            source += prints(values) + "}\n"
            expected += [(number, *pair) for pair in values.items()]
            calls += f"    values_{number}();\n"
        output = self.printed("#include <stdio.h>\n#include <string.h>\n" + NPUPROF
                              + f"{source}int main(void)\n{{\n{calls}    return 0;\n}}\n", "-std=c99")
        got = [(number, expression, int(line))
               for (number, expression, _), line in zip(expected, output, strict=True)]
        self.assertEqual(got, expected)
