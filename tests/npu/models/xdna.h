/* xdna.h - AMD XDNA: the firmware's log in its ring, decoded by hand.
   SPDX-License-Identifier: MIT

   From amd/xdna-driver 856409ca (amdxdna_dpt.h, amdxdna_dpt.c, aie2_pci.c:1113-1165). 4 MiB, of which the
   last 4096 bytes are the footer: at 64 the tail, bytes written, u32, running; its place is tail mod (size -
   4096). A record: 0xCA, u8 length in 8-byte words, u16 seq (never 0), u32; payload: u64 stamp, u32 {10:8
   level, 23:16 app, 31:24 argc}, u32 {15:0 line, 31:16 module}, text; u32, u16 seq, u8 length, 0xBA. Stamps
   are ns since a base (AIE4 NS_OFFSET); the driver pushes anchors. The texts "B3 42" and "E3 42" (context 3,
   job 42) are ASSUMED. */

enum { XDNA_SIZE = 4 << 20, XDNA_FOOTER = 4096, XDNA_RING = XDNA_SIZE - XDNA_FOOTER, XDNA_RECORD = 40,
       XDNA_CONTEXTS = 4 };
static unsigned char *xdna_memory;
static struct {
    uint64_t tail, reader;               /* bytes; the reader's is the driver's */
    uint16_t seq, seen_seq;
    uint64_t begun[XDNA_CONTEXTS], resyncs, taken, anchored_at;
} xdna;

static void xdna_describe(npuprof_npu_desc *d)
{
    xdna_memory = play_memory(XDNA_SIZE);
    xdna.tail = xdna.reader = 0xFFFFC000u;       /* wraps soon */
    play_put(xdna_memory, XDNA_RING + 64, 4, xdna.tail & UINT32_MAX);
    d->anchors_only = true;
    d->counter.bits = 64;
}

static int xdna_torn;                    /* 1: the tail's low half is stored 1 us before its high half; 2: the
                                            other way round */
static struct { size_t at; uint64_t value, when; } xdna_pending;

CHECK_UNUSED_ static void xdna_show(uint64_t ticks)
{
    (void)ticks;
    if (xdna_pending.at && play.host >= xdna_pending.when) {
        play_put(xdna_memory, xdna_pending.at, 2, xdna_pending.value);
        xdna_pending.at = 0;
    }
}

static void xdna_announce(void)
{
    const size_t at = XDNA_RING + 64;
    xdna_pending.when = 0;
    xdna_show(0);
    if (!xdna_torn) {
        play_put(xdna_memory, at, 4, xdna.tail & UINT32_MAX);
        return;
    }
    const bool low = xdna_torn == 1;
    play_put(xdna_memory, at + (low ? 0 : 2), 2, xdna.tail >> (low ? 0 : 16) & 0xFFFF);
    xdna_pending.at = at + (low ? 2 : 0);
    xdna_pending.value = xdna.tail >> (low ? 16 : 0) & 0xFFFF;
    xdna_pending.when = play.host + 1000;
}

static void xdna_byte(uint8_t byte) { play_put(xdna_memory, xdna.tail++ % XDNA_RING, 1, byte); }

static void xdna_bytes(uint64_t value, unsigned bytes)
{
    for (unsigned i = 0; i < bytes; i++) xdna_byte((uint8_t)(value >> 8 * i));
}

static void xdna_log(uint64_t stamp, const char *text)
{
    char padded[16] = "";
    const size_t length = strlen(text) < 15 ? strlen(text) : 15;
    const unsigned bytes = length > 7 ? 16 : 8;
    memcpy(padded, text, length);
    if (!++xdna.seq) xdna.seq = 1;
    xdna_byte(0xCA);
    xdna_byte((uint8_t)(2 + bytes / 8));
    xdna_bytes(xdna.seq, 2);
    xdna_bytes(0, 4);
    xdna_bytes(stamp, 8);
    xdna_bytes(2u << 8 | 5u << 16, 4);
    xdna_bytes(100u | 9u << 16, 4);
    for (unsigned i = 0; i < bytes; i++) xdna_byte((uint8_t)padded[i]);
    xdna_bytes(0, 4);
    xdna_bytes(xdna.seq, 2);
    xdna_byte((uint8_t)(2 + bytes / 8));
    xdna_byte(0xBA);
    xdna_announce();
}

static void xdna_tell(const play_job *job, char what, uint64_t ns)
{
    char text[32];
    snprintf(text, sizeof text, "%c%u %" PRIu64, what, (unsigned)job->lane, job->id);
    xdna_log(play_ticks(ns), text);
    play.entries++;
}

static void xdna_began(const play_job *job) { xdna_tell(job, 'B', job->begin); }
static void xdna_ended(const play_job *job) { xdna_tell(job, 'E', job->end); }

static void xdna_anchor(void)
{
    play_anchor(&play_npus[0], 0, 2000);
    xdna.anchored_at = play.host;
}

/* ---- What a driver's author writes */

static uint64_t xdna_read(uint64_t at, unsigned bytes)
{
    uint64_t value = 0;
    for (unsigned i = 0; i < bytes; i++) value |= play_get(xdna_memory, (at + i) % XDNA_RING, 1) << 8 * i;
    return value;
}

static void xdna_record(uint64_t at, unsigned bytes)
{
    char text[17] = "";
    unsigned lane;
    uint64_t job;
    for (unsigned i = 0; i < bytes - 32; i++) text[i] = (char)xdna_read(at + 24 + i, 1);
    if (sscanf(text + 1, "%u %" SCNu64, &lane, &job) != 2 || lane >= XDNA_CONTEXTS) return;
    const uint64_t stamp = npuprof_npu_extend_stamp(&play_npus[0], xdna_read(at + 8, 8), 64, 0);
    if (text[0] == 'B') {
        if (xdna.begun[lane]) npuprof_npu_lost(&play_npus[0], 1);    /* its end did not come */
        xdna.begun[lane] = stamp;
    } else if (xdna.begun[lane]) {
        npuprof_npu_complete(&play_npus[0], job, lane, "job", "NPU", xdna.begun[lane], stamp, PROF_NO_ARGS,
                             true);
        xdna.begun[lane] = 0;
    } else {
        npuprof_npu_lost(&play_npus[0], 1);      /* its begin did not come */
    }
}

/* Is there a record? Its length in bytes, 0: no. */
static unsigned xdna_frame(uint64_t at, uint64_t tail, uint16_t *seq)
{
    const unsigned words = (unsigned)xdna_read(at + 1, 1), bytes = 16 + 8 * words;
    *seq = (uint16_t)xdna_read(at + 2, 2);
    if (xdna_read(at, 1) != 0xCA || words < 3 || words > 4 || at + bytes > tail) return 0;
    const bool same = xdna_read(at + bytes - 4, 2) == *seq && xdna_read(at + bytes - 2, 1) == words;
    return same && xdna_read(at + bytes - 1, 1) == 0xBA ? bytes : 0;
}

/* A tail that stays for 2 us is no half-written one; the last one known if it never does. */
static uint32_t xdna_tail(void)
{
    uint32_t tail = (uint32_t)play_get(xdna_memory, XDNA_RING + 64, 4);
    for (int i = 0; i < 8; i++) {
        const uint32_t before = tail;
        play_until(play.host + 2000);
        tail = (uint32_t)play_get(xdna_memory, XDNA_RING + 64, 4);
        if (tail == before) return tail;
    }
    return (uint32_t)xdna.reader;
}

static void xdna_serve(void)
{
    const uint32_t low = xdna_tail();
    const uint64_t tail = xdna.reader + (uint32_t)(low - (uint32_t)xdna.reader);
    if (play.host - xdna.anchored_at > 20000000) xdna_anchor();
    if (tail - xdna.reader > XDNA_RING) xdna.reader = tail - XDNA_RING;
    while (xdna.reader < tail) {
        uint16_t seq;
        const unsigned bytes = xdna_frame(xdna.reader, tail, &seq);
        if (!bytes) {                    /* not where a record begins, or cut: records are 4-byte aligned */
            xdna.resyncs++;
            xdna.reader += 4;
            continue;
        }
        const unsigned gap = (unsigned)(seq - xdna.seen_seq - 1 + 65535) % 65535;
        if (gap) npuprof_npu_lost(&play_npus[0], gap);
        xdna.seen_seq = seq;
        xdna.taken++;
        xdna_record(xdna.reader, bytes);
        xdna.reader += bytes;
    }
}

static const char *xdna_name(const play_job *job) { (void)job; return "job"; }

static const play_model xdna_model = {
    .name = "xdna", .lanes = XDNA_CONTEXTS, .hz = 1000000000, .start = 4000000, .ppm = 8,
    .describe = xdna_describe, .opened = xdna_anchor, .name_of = xdna_name, .began = xdna_began,
    .ended = xdna_ended, .serve = xdna_serve, .entries_per_job = UINT32_MAX, .compare = "per_span=2"
};
