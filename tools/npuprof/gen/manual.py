# SPDX-License-Identifier: MIT
"""The manual of descriptions: what gen --help prints below the options."""

from .c_words import described

MANUAL = """\
A description says what npuprof has to know of a device. Three things are in it, and none knows the others:
how records reach the host (transport), what is where in a record (format), what a time stamp counts (clock).
Write down only what your device has; each key that you leave out means "it has none", or its default.

examples/devices/README.md leads from a device's documents to its spans, step by step, with a list of traps.

Which tables do I need?
  the host can read a tick counter            [[register]] and [roles.counter]
  the device writes a record for each job     [[record]] and [roles.ring]
  it only says how many jobs are done         [roles.progress]
  none of these: it raises an interrupt       none: call npuprof_npu_complete_host() when a job is over
  it has event counters                       [[roles.pmu]]
  its log has lengths, magic words or a       none: call npuprof_npu_complete() for each record that your
  byte stream                                 decoder finds; only [roles.counter] is worth describing
A complete one, for a driver that hands over the records it reads anyway:
    [device]
    name = "mynpu"
    [[record]]
    name = "DONE"
    bytes = 16
    field = [ { name = "JOB", offset = 0, width = 32 }, { name = "START", offset = 4, width = 32 },
              { name = "END", offset = 8, width = 32 } ]
    [roles.counter]
    source = "anchors"
    [roles.ring]
    record = "DONE"
    feed = true
    job = "JOB"
    start = "START"
    end = "END"
The generated mynpu_npu_desc() returns what is fixed; the comment above it says what the driver sets. If there
are several queues, or event counters by function, it takes arrays of the caller for them.

The keys. * must be given; the default is in parentheses; any other key is refused.

[device]
  name*               of the device, in C names and tracks
  bar_bytes           size of the register window; * if there are registers or a ring in it, unless svd tells
  endian              "little" (default) or "big": registers, index and records
  pe_count            lanes of the device: processing elements, queues, engines (1). With gaps in the numbers
                      still how many there are: PEs 0, 1 and 9 are 3, and their tracks keep their numbers
  title, source, usage   texts at the top of the header
  svd, peripheral     a CMSIS-SVD file with the registers, and one peripheral of it
[[register]]
  name*, offset*, width* (bits: 8, 16, 32, 64), description
  access*             "ro", "rw", "wo", or "rc" if a read clears it. A role that reads refuses "wo" and "rc"
  field               [[register.field]]: name*, bits* ("7:0" or "3"), values = { READY = 1 }, description
[[record]]            one entry of a queue
  name*, bytes* (of the whole entry), description
  field               [[record.field]], or field = [ { name = "A", offset = 0, width = 32 }, ... ]:
                      name*, offset* (bytes), width* (bits of the load: 8, 16, 32, 64),
                      bits (part of that word: "31" or "27:16"), values, description,
                      alternate = true (another reading of bits that a field before it has)

[roles.counter]       the clock that stamps count
  source              "register" (default); "function": the driver sets desc.read_ticks, for a counter behind
                      an ioctl; "anchors": nobody can read it, the driver tells pairs of device and host time
                      by npuprof_npu_anchor(), or npuprof takes bounds from submissions and completions
  lo*, hi             registers, with source "register"; or fields of them: "REG.FIELD"
  order               "hi-lo-hi" (two halves, default), "lo-latches-hi" (a read of lo freezes hi; only if
                      nobody else reads it), "single" (one load)
  bits                how many are valid: of the registers all, else 64; counts_down
  hz                  nominal rate; 0 = unknown, it is measured in either case. 1000000 for stamps in us
  lag_ns              how old a value may be when it is read
  requires            here, in a ring, progress or pmu: { "PMCR.CNT_EN" = 1 }, fields of registers without
                      which the counter stands; the error then names the field

[roles.ring]          a queue of records; [[roles.ring]] for each of several
  record*, name       the entry; of several rings, the name in constants (that of the record)
  How entries come, by one of two ways:
  feed = true         the driver hands them to npuprof_npu_feed(). For every queue that somebody else consumes
                      or clears, and for what comes by a file or an ioctl. None of the keys up to `sequence`
  offset, or memory   where npuprof polls them: in the BAR, or memory = true and the driver sets .memory
  first               bytes in front of entry 0: a header (0)
  count*              entries
  ready               who says that an entry is there; it follows from the keys that are given:
READY
  valid_is            the value of the field `valid` (1)
  phase_first         that of the bit `phase` in the first lap (1)
  producer            the index: register "REG" or "REG.FIELD"; or in the ring's memory:
  producer_at         bytes from its start, with producer_width (32; 16 or 64)
  producer_bits       how many bits of the index are valid (all)
  producer_is         "count" of entries since reset (default), "slot" that is next, "bytes" since reset,
                      "byte_offset" of the next; producer_is_slot = true is the old way to say "slot"
  laps_at             beside a slot or byte_offset: bytes to a word that counts laps, as wide as the index;
  laps_first          its value in the first lap (0). The device may write slot or laps first
  producer_wrap_bit   beside a slot: a bit of the index's word that is the other one in each lap
  sequence            low bits of the entry's number: proves that it is the expected one, shows losses;
  sequence_first      that of the first entry (0)
  instances, stride   that many such rings; bytes in the BAR from one to the next, of ring and index
  pe_base             the first lane of the ring (0); each instance has the next
  What is where. A value is a field "A", or two: ["LOW", "HIGH"], 64 bits in all at most
  start, end          of an entry that is a span: both or one of them
  duration            beside one of them, or with stamp = "none": it ends when it is seen
  duration_unit_ns    its unit, 1000 for us; or duration_scale = [stamp units, duration units]. Without both
                      it counts as a stamp does
  kind                field that tells what an entry is, with [roles.ring.kinds]: START = "begin" and so on
                      (names of its values, or numbers in quotes); or one of these words for all entries:
                      "span" (default), "begin", "end", "instant", "counter", "skip" (an entry that
                      shows nothing, and its stamp is not read)
  stamp               time of a begin, end, instant or counter. "none": there is none; a span then lasts from
                      submission to drain or feed, on the host's clock, and is marked so
  key                 the fields, at most 2, by which an end finds its begin; [] if they nest in each lane
  value               what a counter shows, on a track that its op names
  empty               { TYPE = 0, ID = 0 }: padding, no entry and not lost. "skip" is an entry by its kind
  clock_when          { TYPE = 2 }: such an entry brings the part above narrow stamps, in field clock_high
  job                 number of the submission, as given to npuprof_npu_job() or npuprof_npu_set_job(). If
                      it is unique in its queue only: ["TASK", "QUEUE"], the low field first
  job_scope           where that number is unique: "ring", "lane", "device"; of several rings it is
                      "ring". The stream of the submission says which: the ring's place, or the value of pe
  op                  what was executed, see [operators]. It names the span; without op the block does
  pe                  lane; pe_names = { "0x10001" = "core 1,1" } for values that are no small numbers: the
                      names take the first lanes, in order; other numbers below pe_count keep their own
  status, execution, instruction, args = ["A", "B"] (at most 12)    arguments of the span. With begin and end:
                      the end's, or the begin's if the end's is 0; status is always the end's, not shown if 0
  category            of the spans ("NPU")
  execution_op        the operator that stands for the whole job
  What a stamp counts
  stamp_clock         "counter": ticks of [roles.counter] (default); "host": npuprof_now_ns(), with
                      stamp_unit_ns (1)
  stamp_scale         [ticks, units]: a stamp of `units` is `ticks` of the counter ([1, 1])
  stamps              "ascending": they do not go back in a lane. A narrow one is then not older than the one
                      before. Nor is any older than its submission, or younger than its drain or feed; where
                      two periods fit, the record is lost by that cause
  max_age_ms          a record can be seen so long after its work began, at the latest: for narrow stamps of
                      work that this process did not submit

[roles.progress]      instead of a ring: an index of finished jobs, "all before it are done"
  producer, producer_at, producer_width, producer_bits, producer_is, laps_at, laps_first    as above
  memory              true with producer_at: the driver sets desc.progress.index.memory
  count               jobs in a lap, for "slot" and "byte_offset"
  entry_bytes         bytes of a job, for "bytes" and "byte_offset"
[[roles.pmu]]         an event counter, at most 8
  name*               the track, and the argument of sampled spans
  lo, hi, order, bits, counts_down    as above; without lo the driver sets pmu[i].read, a function
  busy, idle          true: it counts the ticks in which the device works, or does not: NPU Run of
                      sampled spans
  scale, unit         a count stands for 8 (1), "bytes"
  restarts            true: it starts at 0 with each job, and shows the job's own value at its end
[operators]           NAME = { code = 0x51ab, name = "Conv2d" }: what the op field holds, up to 64 bits
Of these the header has nothing; report --device reads them, from the same file:
  [peaks]             ops_per_s, bytes_per_s of one PE; peaks_measured = true: by a benchmark
  lanes               of an operator: NAME = { code = 4, name = "Conv2d", lanes = 16 }
  engine              of an operator: "dma" if it moves data, as Load and Store do
  queue_slots         of [device]: how many jobs a queue takes

Exit code 0; 1: with --check, the header is not what would be written; 2: the description cannot be used.
""".replace("READY\n", described("READY", 22) + "\n")
