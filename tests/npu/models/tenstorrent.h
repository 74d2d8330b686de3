/* tenstorrent.h - Tenstorrent Wormhole, Blackhole: profiler markers fed after each launch; the packet stream,
   decoded by hand.
   SPDX-License-Identifier: MIT

   From tenstorrent/tt-metal (kernel_profiler.hpp, profiler_common.h, spsc_packet.h) and
   tt-isa-documentation 3930471 (DebugTimestamper.md). The counter of a tile, through its window: 0x121F0 low
   (a read latches the high word), 0x121F4 the live high word, 0x121F8 the latched one. Five processors write;
   four are used here. */

enum { TT_RISCS = 4, TT_WINDOW = 0x13000, TT_WORDS = 512 };
static unsigned char *tt_window;

static void tt_describe_counter(npuprof_npu_desc *d)
{
    d->bar = tt_window = play_memory(TT_WINDOW);
    d->bar_bytes = TT_WINDOW;
    d->counter.lo_offset = 0x121F0;
    d->counter.hi_offset = 0x121F4;
    d->counter.order = NPUPROF_NPU_HI_LO_HI;
}

static void tt_show(uint64_t ticks)
{
    play_put(tt_window, 0x121F8, 4, play_get(tt_window, 0x121F4, 4));
    play_put(tt_window, 0x121F0, 4, ticks & UINT32_MAX);
    play_put(tt_window, 0x121F4, 4, ticks >> 32);
}

/* ---- Markers: 2 words, w0 31 valid, 30:28 type (0 start, 1 end, 2 total, 4 event), 27:12 id, 11:0 bits
   43:32 of the stamp; w1 bits 31:0. Words 0 to 3 of a buffer say whose it is; each launch begins behind
   them. */

enum { TT_FIRMWARE = 0x3A51, TT_KERNEL = 0xBEEF };
static struct {
    unsigned char *l1;                   /* of one launch */
    unsigned words;
    unsigned char copy[1 << 20];         /* what the launches since the last look left in DRAM */
    size_t bytes;
} tt[TT_RISCS];
static npuprof_npu_ring tt_rings[TT_RISCS];
static bool tt_feeds_stale_words;
static const npuprof_npu_op tt_ops[] = { { TT_FIRMWARE, "firmware" } };
static const npuprof_npu_kind tt_kinds[] = { { 0, NPUPROF_NPU_KIND_BEGIN }, { 1, NPUPROF_NPU_KIND_END },
                                             { 2, NPUPROF_NPU_KIND_SKIP }, { 4, NPUPROF_NPU_KIND_INSTANT } };

static const char *tt_name(void *user,
                           uint64_t code) { (void)user; return code == TT_KERNEL ? "kernel" : NULL; }

static void tt_describe_entry(npuprof_npu_ring *r)
{
    *r = (npuprof_npu_ring){
        .feed = true, .entry_bytes = 8, .stamp = play_two(play_field(4, 4, 31, 0), play_field(0, 4, 11, 0)),
        .kind = play_field(0, 4, 30, 28), .kinds = tt_kinds, .kind_count = 4,
        .key = { play_field(0, 4, 27, 12) },
        .op = play_field(0, 4, 27, 12), .ops = tt_ops, .op_count = 1, .op_name = tt_name,
        .execution_op = TT_FIRMWARE + 1,
        .empty = { { play_field(0, 4, 30, 28), 0 }, { play_field(0, 4, 27, 12), 0 } } };
}

static void tt_describe(npuprof_npu_desc *d)
{
    tt_describe_counter(d);
    for (unsigned i = 0; i < TT_RISCS; i++) {
        tt_describe_entry(&tt_rings[i]);
        tt_rings[i].pe_base = i;
        tt[i].l1 = play_memory(4 * TT_WORDS);
    }
    d->rings = tt_rings;
    d->ring_count = TT_RISCS;
}

static void tt_mark_words(unsigned risc, uint32_t w0, uint32_t w1)
{
    play_put(tt[risc].l1, 4u * tt[risc].words, 4, w0);
    play_put(tt[risc].l1, 4u * tt[risc].words + 4, 4, w1);
    tt[risc].words += 2;
}

static void tt_mark(unsigned risc, uint32_t type, uint32_t id, uint64_t ns)
{
    const uint64_t ticks = play_ticks(ns);
    tt_mark_words(risc, 0x80000000u | type << 28 | id << 12 | (uint32_t)(ticks >> 32 & 0xFFF),
                  (uint32_t)(ticks & UINT32_MAX));
    play.entries += type < 2;
}

/* A launch: firmware, a kernel in it, an event, a sum, both kinds of padding. */
static void tt_ended(const play_job *job)
{
    const unsigned risc = job->lane;
    const uint64_t piece = (job->end - job->begin) / 4;
    for (unsigned i = 0; i < 4; i++) play_put(tt[risc].l1, 4 * i, 4, 0x1000u * i + risc);
    tt[risc].words = 4;
    tt_mark(risc, 0, TT_FIRMWARE, job->begin);
    tt_mark(risc, 0, TT_KERNEL, job->begin + piece);
    tt_mark(risc, 4, 0x77, job->begin + 2 * piece);
    play_instant(risc, "op 119", job->begin + 2 * piece);
    tt_mark(risc, 1, TT_KERNEL, job->begin + 3 * piece);
    tt_mark_words(risc, 0x80000000u, 0x80000000u);
    tt_mark_words(risc, 0xA0000000u | 0x88u << 12, 1234);
    tt_mark(risc, 1, TT_FIRMWARE, job->end);
    tt_mark_words(risc, 0x80000000u, 0);
    const unsigned words = tt_feeds_stale_words ? TT_WORDS : tt[risc].words;
    if (tt[risc].bytes + 4 * (words - 4) <= sizeof tt[risc].copy) {
        play_copy(tt[risc].copy + tt[risc].bytes, tt[risc].l1, 16, 4 * (words - 4));
        tt[risc].bytes += 4 * (words - 4);
    }
    play_truth(risc, "firmware", job->serial, job->begin, job->end);
    play_truth(risc, "kernel", -1, job->begin + piece, job->begin + 3 * piece);
}

static void tt_serve(void)
{
    static unsigned char bytes[sizeof tt[0].copy];
    for (unsigned i = 0; i < TT_RISCS; i++) {
        const size_t n = tt[i].bytes;
        if (!n) continue;
        memcpy(bytes, tt[i].copy, n);    /* the device goes on while it is fed */
        tt[i].bytes = 0;
        play_note(npuprof_npu_feed(&play_npus[0], i, bytes, n));
    }
}

static const play_model tt_model = {
    .name = "tenstorrent", .lanes = TT_RISCS, .hz = 1350000000, .start = 0xFFF00000, .ppm = -33,
    .describe = tt_describe, .ended = tt_ended, .show = tt_show, .serve = tt_serve, .own_truth = true,
    .entries_per_job = UINT32_MAX, .compare = "per_span=2"
};

/* ---- The packet stream: w0 31:27 type, 26:0 id or payload. Head and tail of a processor are running counts
   of words in its control vector: heads at word 0, tails at word 24. */

enum { SPSC_WORDS = 4002, SPSC_START = 0, SPSC_END = 1, SPSC_ATOMIC = 2, SPSC_S = 3, SPSC_L = 4,
    SPSC_PROG = 8,
       SPSC_TIMER = 9 };
static unsigned char *spsc_control;
static struct {
    unsigned char *ring;
    uint32_t head, tail;                 /* the device's; what the driver has read */
    uint32_t high;                       /* bits 58:32 of the last TIMER, + 1 */
    uint64_t cursor;                     /* end of the last span */
    /* the driver's */
    uint64_t seen_high, seen_cursor, begun, seen_begin;
    uint32_t seen_program;
} spsc[TT_RISCS];

static void spsc_describe(npuprof_npu_desc *d)
{
    tt_describe_counter(d);
    d->ring.feed = true;                 /* jobs are matched with what the decoder completes */
    d->ring.entry_bytes = 4;
    d->ring.stamp_clock = NPUPROF_NPU_STAMP_NONE;
    spsc_control = play_memory(256);
    for (unsigned i = 0; i < TT_RISCS; i++) {
        spsc[i].ring = play_memory(4 * SPSC_WORDS);
        spsc[i].head = spsc[i].tail = 0xFFFFFF00u - 0xFFFFFF00u % SPSC_WORDS;    /* near its wrap */
        play_put(spsc_control, 4 * i, 4, spsc[i].head);
    }
}

static void spsc_word(unsigned risc, uint32_t word)
{
    static uint64_t place[TT_RISCS];     /* the device keeps its own: the count does not divide 2^32 */
    play_put(spsc[risc].ring, 4 * (size_t)(place[risc]++ % SPSC_WORDS), 4, word);
    spsc[risc].head++;
}

static void spsc_timer(unsigned risc, uint64_t ticks)
{
    const uint32_t high = (uint32_t)(ticks >> 32) & 0x7FFFFFF;
    if (spsc[risc].high == high + 1) return;
    spsc[risc].high = high + 1;
    spsc_word(risc, (uint32_t)SPSC_TIMER << 27 | high);
}

static void spsc_began(const play_job *job)
{
    const unsigned risc = job->lane;
    const uint64_t begin = play_ticks(job->begin);
    spsc_word(risc, (uint32_t)SPSC_PROG << 27 | (uint32_t)(job->id & 0x7FFFFFF));
    if (job->serial % 4) return;
    spsc_timer(risc, begin);
    spsc_word(risc, (uint32_t)SPSC_START << 27 | TT_KERNEL);
    spsc_word(risc, (uint32_t)begin);
    play_put(spsc_control, 4 * risc, 4, spsc[risc].head);
}

static void spsc_ended(const play_job *job)
{
    const unsigned risc = job->lane;
    const uint64_t begin = play_ticks(job->begin), end = play_ticks(job->end), lasted = end - begin;
    const uint64_t delta = end - spsc[risc].cursor;
    if (job->serial % 4 == 0) {
        spsc_timer(risc, end);
        spsc_word(risc, (uint32_t)SPSC_END << 27 | TT_KERNEL);
        spsc_word(risc, (uint32_t)end);
    } else if (job->serial % 4 == 3 && delta < 65536 && lasted < 65536) {
        spsc_word(risc, (uint32_t)SPSC_S << 27 | TT_KERNEL);
        spsc_word(risc, (uint32_t)(delta << 16 | lasted));
    } else if (job->serial % 4 == 1) {
        spsc_timer(risc, end);
        spsc_word(risc, (uint32_t)SPSC_ATOMIC << 27 | TT_KERNEL);
        spsc_word(risc, (uint32_t)end);
        spsc_word(risc, (uint32_t)lasted);
    } else {
        spsc_word(risc, (uint32_t)SPSC_L << 27 | TT_KERNEL);
        spsc_word(risc, (uint32_t)end);
        spsc_word(risc, (uint32_t)(end >> 32));
        spsc_word(risc, (uint32_t)lasted);
        spsc_word(risc, (uint32_t)(lasted >> 32));
    }
    spsc[risc].cursor = end;
    play_put(spsc_control, 4 * risc, 4, spsc[risc].head);
}

/* ---- What a driver's author writes: this decoder, and npuprof_npu_complete() */

static uint64_t spsc_place[TT_RISCS];
static uint32_t spsc_take(unsigned risc)
{
    const uint32_t word = (uint32_t)play_get(spsc[risc].ring,
                                             4 * (size_t)(spsc_place[risc]++ % SPSC_WORDS), 4);
    spsc[risc].tail++;
    return word;
}

static void spsc_complete(unsigned risc, uint64_t start, uint64_t end)
{
    spsc[risc].seen_cursor = end;
    npuprof_npu_complete(&play_npus[0], spsc[risc].seen_program, risc, "kernel", "NPU",
                         npuprof_npu_extend_stamp(&play_npus[0], start, 59, 0),
                         npuprof_npu_extend_stamp(&play_npus[0], end, 59, 0), PROF_NO_ARGS, true);
}

static void spsc_packet(unsigned risc)
{
    const uint32_t w0 = spsc_take(risc);
    uint64_t end, lasted;
    switch (w0 >> 27) {
    case SPSC_PROG: spsc[risc].seen_program = w0 & 0x7FFFFFF; break;
    case SPSC_TIMER: spsc[risc].seen_high = (uint64_t)(w0 & 0x7FFFFFF) << 32; break;
    case SPSC_START: spsc[risc].seen_begin = spsc[risc].seen_high | spsc_take(risc); break;
    case SPSC_END: spsc_complete(risc, spsc[risc].seen_begin, spsc[risc].seen_high | spsc_take(risc)); break;
    case SPSC_ATOMIC:
        end = spsc[risc].seen_high | spsc_take(risc);
        spsc_complete(risc, end - spsc_take(risc), end);
        break;
    case SPSC_S:
        lasted = spsc_take(risc);
        end = spsc[risc].seen_cursor + (lasted >> 16);
        spsc_complete(risc, end - (lasted & 0xFFFF), end);
        break;
    case SPSC_L:
        end = spsc_take(risc);
        end |= (uint64_t)spsc_take(risc) << 32;
        lasted = spsc_take(risc);
        lasted |= (uint64_t)spsc_take(risc) << 32;
        spsc_complete(risc, end - lasted, end);
        break;
    default: break;
    }
}

static void spsc_serve(void)
{
    for (unsigned risc = 0; risc < TT_RISCS; risc++) {
        const uint32_t head = (uint32_t)play_get(spsc_control, 4 * risc, 4);
        if (head - spsc[risc].tail > SPSC_WORDS) {       /* nonsense: the core stops before it overruns */
            spsc_place[risc] += head - spsc[risc].tail;
            spsc[risc].tail = head;
            npuprof_npu_lost(&play_npus[0], 1);
        }
        while ((int32_t)(head - spsc[risc].tail) > 0) spsc_packet(risc);
        play_put(spsc_control, 4 * (24 + risc), 4, spsc[risc].tail);
    }
}

static const char *spsc_name(const play_job *job) { (void)job; return "kernel"; }

static const play_model spsc_model = {
    .name = "tt-packets", .lanes = TT_RISCS, .hz = 1350000000, .start = 0xFF000000, .ppm = 15,
    .describe = spsc_describe, .name_of = spsc_name, .began = spsc_began, .ended = spsc_ended,
    .show = tt_show, .serve = spsc_serve
};
