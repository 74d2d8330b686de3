/* who says that an entry is there: indices of all units, lap counts, valid bits, phases, sequence numbers;
   progress without records
   SPDX-License-Identifier: MIT */
#include "fixture.h"

static union { uint64_t align; unsigned char bytes[4096]; } host;

/* ready word 4 | op 4 | end 8 */
enum { ENTRY = 16, COUNT = 5, FIRST = 64 };
static const npuprof_npu_index none, slot_at_8 = { .in_memory = true, .offset = 8,
                                                   .unit = NPUPROF_NPU_INDEX_SLOT },
    slot_and_laps = { .in_memory = true, .unit = NPUPROF_NPU_INDEX_SLOT, .has_laps = true, .laps_offset = 4 };

static npuprof_npu_desc ringed(npuprof_npu_index producer)
{
    npuprof_npu_desc desc = sim_desc();
    memset(host.bytes, 0, sizeof host.bytes);
    desc.ring = (npuprof_npu_ring){ .memory = host.bytes, .memory_bytes = sizeof host.bytes, .first = FIRST,
                                    .entry_bytes = ENTRY, .count = COUNT, .producer = producer,
                                    .op = AT(4, 4, 0, 0), .end = AT(8, 8, 0, 0) };
    return desc;
}

static void write_entry(uint64_t number, uint32_t word)
{
    unsigned char *const at = host.bytes + FIRST + number % COUNT * ENTRY;
    put(at + 4, 4, number);
    put(at + 8, 8, sim_truth());
    put(at, 4, word);
}

/* Opens; drains after 0, 1, 2, ... entries, and after more than a lap. */
static void follow(npuprof_npu_desc *desc, void (*announce)(uint64_t), bool tells_laps)
{
    uint64_t written = 3, total = 0;
    for (uint64_t i = 0; i < written; i++) write_entry(i, 0);
    announce(written);
    open_npu(desc);
    const uint64_t before = recorded(), lost_before = lost();
    static const unsigned steps[] = { 0, 1, 2, 0, 4, 3, 4, 1, 4, 4, 1, 13, 2 };
    for (unsigned i = 0; i < sizeof steps / sizeof *steps; i++) {
        unsigned n = steps[i];
        if (n > COUNT && !tells_laps) n = 1;
        sim_advance(1000000);
        for (unsigned k = 0; k < n; k++) write_entry(written++, 0);
        total += n;
        announce(written);
        CHECK_INT(npuprof_npu_drain(&npu), NPUPROF_OK);
    }
    CHECK_UINT(recorded() - before + lost() - lost_before, total);
    CHECK_UINT(lost() - lost_before, tells_laps ? 13 - COUNT + 1 : 0);
    npuprof_npu_close(&npu);
}

static void announce_slot(uint64_t n) { put(host.bytes + 8, 4, n % COUNT); }
static void announce_bytes(uint64_t n) { put(host.bytes + 8, 4, 0xFFFFFF00u / ENTRY * ENTRY + n * ENTRY); }
static void announce_offset(uint64_t n) { put(host.bytes + 8, 4, n % COUNT * ENTRY); }
static void announce_wide(uint64_t n) { put(host.bytes + 8, 8, (COUNT * (UINT64_C(1) << 40) + n) * ENTRY); }
static void announce_field(uint64_t n) { put(host.bytes + 8, 4, 0x80000000u | n % COUNT << 3 | 5); }
static void announce_short(uint64_t n) { put(host.bytes + 8, 2, n % COUNT); }

static void announce_hws(uint64_t n)
{
    put(host.bytes, 4, n % COUNT);
    put(host.bytes + 4, 4, (n + COUNT - 1) / COUNT);             /* +1 when entry 0 is written */
}

static void announce_fence(uint64_t n)
{
    put(host.bytes, 4, n % COUNT);
    put(host.bytes + 4, 4, n ? (n - 1) / COUNT : 0);             /* how often it came back to entry 0 */
}

static void units(void)
{
    npuprof_npu_desc desc = ringed(slot_at_8);
    follow(&desc, announce_slot, false);
    desc.ring.producer.lsb = 3, desc.ring.producer.bits = 12;
    follow(&desc, announce_field, false);
    desc.ring.producer.lsb = 0, desc.ring.producer.bits = 0, desc.ring.producer.width_bytes = 2;
    follow(&desc, announce_short, false);
    desc.ring.producer.width_bytes = 0;
    desc.ring.producer.unit = NPUPROF_NPU_INDEX_BYTE_OFFSET;
    follow(&desc, announce_offset, false);
    desc.ring.producer.unit = NPUPROF_NPU_INDEX_BYTES, desc.ring.producer.width_bytes = 8;
    desc.ring.producer.memory = host.bytes, desc.ring.producer.memory_bytes = 16;
    follow(&desc, announce_wide, true);
}

/* The numbers of entries: beside a slot in bytes, a running index that came round before open, a phase. */
static void numbered_entries(void)
{
    enum { SLOT, BYTES, PHASE, WAYS };
    for (int way = 0; way < WAYS; way++) {
        npuprof_npu_desc desc = ringed(none);
        uint64_t n = 0, total = 0;
        const uint64_t opened = way == BYTES ? 5003 : 28, before = recorded(), lost_before = lost();
        desc.ring.count = way == BYTES ? 4 : COUNT;
        desc.ring.sequence = (npuprof_npu_field)AT(0, 4, 0, 31);
        if (way == PHASE) {
            desc.ring.ready = NPUPROF_NPU_READY_PHASE;
            desc.ring.phase = (npuprof_npu_field)AT(0, 4, 31, 1);
            desc.ring.phase_first = 1;
        } else {
            desc.ring.producer = slot_at_8;
            desc.ring.producer.width_bytes = 2;
            desc.ring.producer.unit = way == BYTES ? NPUPROF_NPU_INDEX_BYTES : NPUPROF_NPU_INDEX_BYTE_OFFSET;
        }
        static const unsigned steps[] = { 28, 3, 4, 13, 2, 6, 12, 1 };
        npuprof_start(1);
        for (unsigned i = 0; i < sizeof steps / sizeof *steps; i++) {
            const uint64_t end = i ? n + steps[i] : opened;
            for (; n < end; n++) {
                unsigned char *const at = host.bytes + FIRST + n % desc.ring.count * ENTRY;
                put(at + 4, 4, n);
                put(at + 8, 8, sim_truth());
                put(at, 4, n | (way == PHASE && !(n / COUNT & 1) ? 0x80000000u : 0));
            }
            if (way != PHASE) put(host.bytes + 8, 2, n % (way == BYTES ? 4096 : COUNT) * ENTRY);
            if (i) CHECK_INT(npuprof_npu_drain(&npu), NPUPROF_OK);
            else CHECK_STOP(npuprof_npu_open(&npu, &desc) == NPUPROF_OK);
            if (i) total += steps[i];
            sim_advance(1000000);
        }
        CHECK_UINT(recorded() - before + lost() - lost_before, total);
        CHECK(recorded() - before >= 3 + 4 + 2 + 1);
        npuprof_npu_close(&npu);
    }
}

/* The next lap's first entry is being written, and not announced: it alone is lost. */
static void unannounced(void)
{
    npuprof_npu_desc desc = ringed(slot_and_laps);
    desc.ring.sequence = (npuprof_npu_field)AT(0, 4, 0, 0);
    desc.ring.sequence_first = 1;
    open_npu(&desc);
    sim_advance(1000000);
    for (uint32_t i = 0; i <= COUNT; i++) write_entry(i, i + 1);
    announce_fence(COUNT);
    for (int i = 0; i < 2; i++) CHECK_INT(npuprof_npu_drain(&npu), NPUPROF_OK);
    announce_fence(COUNT + 1);
    CHECK_INT(npuprof_npu_drain(&npu), NPUPROF_OK);
    npuprof_npu_close(&npu);
    CHECK_UINT(recorded(), COUNT);
    CHECK_UINT(lost(), 1);
}

/* An index of as many values as the ring has entries: nothing that is more than half of them went back. */
static void short_period(void)
{
    static const unsigned steps[] = { 7, 6, 3, 5, 7 };
    npuprof_npu_desc desc = ringed(slot_at_8);
    uint64_t n = 0;
    desc.ring.count = 8;
    desc.ring.producer.unit = NPUPROF_NPU_INDEX_COUNT;
    desc.ring.producer.bits = 3;
    open_npu(&desc);
    for (unsigned i = 0; i < sizeof steps / sizeof *steps; i++) {
        sim_advance(1000000);
        for (const uint64_t end = n + steps[i]; n < end; n++)
            put(host.bytes + FIRST + n % 8 * ENTRY + 8, 8, sim_truth());
        put(host.bytes + 8, 4, n & 7);
        CHECK_INT(npuprof_npu_drain(&npu), NPUPROF_OK);
        CHECK_UINT(recorded(), n);
    }
    npuprof_npu_close(&npu);
}

static bool has_power;
static bool is_on(void *user) { (void)user; return has_power; }

/* Off at open: what lies in the ring is older all the same. One in host memory is read without power. */
static void off_at_open(void)
{
    npuprof_npu_desc desc = ringed(none);
    desc.is_on = is_on;
    desc.ring.ready = NPUPROF_NPU_READY_SEQUENCE;
    desc.ring.sequence = (npuprof_npu_field)AT(0, 4, 0, 0);
    desc.ring.sequence_first = 1;
    desc.ring.stamp_clock = NPUPROF_NPU_STAMP_NONE;
    memset(&desc.ring.end, 0, sizeof desc.ring.end);
    npuprof_start(1);
    for (int in_bar = 0; in_bar < 2; in_bar++) {
        const uint64_t before = recorded();
        memset(host.bytes, 0, sizeof host.bytes);
        for (uint32_t i = 0; i < 3; i++) write_entry(i, i + 1);
        if (in_bar) desc.ring.memory = NULL, desc.ring.offset = SIM_RING, desc.ring.first = 0;
        if (in_bar) memcpy(sim_bar.bytes + SIM_RING, host.bytes + FIRST, COUNT * ENTRY);
        has_power = false;
        CHECK_STOP(npuprof_npu_open(&npu, &desc) == NPUPROF_OK);
        has_power = true;
        CHECK_INT(npuprof_npu_drain(&npu), NPUPROF_OK);
        CHECK_UINT(recorded() - before, 0);
        write_entry(3, 4);
        if (in_bar) memcpy(sim_bar.bytes + SIM_RING, host.bytes + FIRST, COUNT * ENTRY);
        CHECK_INT(npuprof_npu_drain(&npu), NPUPROF_OK);
        CHECK_UINT(recorded() - before, 1);
        npuprof_npu_close(&npu);
    }
}

/* A running index that wraps at its width while its ring does not divide that. */
static void bytes_that_wrap(void)
{
    npuprof_npu_desc desc = ringed(slot_at_8);
    desc.ring.producer.unit = NPUPROF_NPU_INDEX_BYTES;
    const uint64_t base = 0xFFFFFF00u / ENTRY;
    uint64_t n = 0;
    announce_bytes(n);
    open_npu(&desc);
    for (unsigned i = 0; i < 40; i++) {
        sim_advance(100000);
        write_entry(base + n++, 0);
        announce_bytes(n);
        put(host.bytes + 8, 4, (base + n) * ENTRY + 5);          /* a record is being written */
        CHECK_INT(npuprof_npu_drain(&npu), NPUPROF_OK);
    }
    npuprof_npu_close(&npu);
    CHECK_UINT(recorded(), 40);
    CHECK_UINT(lost(), 0);
    json_node *t = written();
    for (unsigned i = 0; i < 40; i++) {                          /* each one once, in its own place */
        char name[24];
        snprintf(name, sizeof name, "op 0x%llx", (unsigned long long)(base + i));
        CHECK_UINT(trace_count(t, "X", name), 1);
    }
}

/* Intel's two ways to count laps. The headers are bytes of its documentation. */
static void laps(void)
{
    static const unsigned char hws[] = { 2, 0, 0, 0, 2, 0, 0, 0 }, fence[] = { 2, 0, 0, 0, 1, 0, 0, 0 };
    npuprof_npu_desc desc = ringed(slot_and_laps);
    follow(&desc, announce_fence, true);
    desc.ring.producer.laps_first = 1;
    follow(&desc, announce_hws, true);
    for (int i = 0; i < 2; i++) {
        memset(host.bytes, 0, sizeof host.bytes);
        desc.ring.count = 4;
        desc.ring.producer.laps_first = i ? 0 : 1;
        CHECK_STOP(npuprof_npu_open(&npu, &desc) == NPUPROF_OK);
        memcpy(host.bytes, i ? fence : hws, 8);
        const uint64_t before = recorded() + lost();
        CHECK_INT(npuprof_npu_drain(&npu), NPUPROF_OK);
        CHECK_UINT(recorded() + lost() - before, 6);
        npuprof_npu_close(&npu);
    }
}

/* Exactly one lap after open, and then nothing: slot and laps are as if nothing was written. */
static void one_lap(void)
{
    npuprof_npu_desc desc = ringed(slot_and_laps);
    open_npu(&desc);
    sim_advance(1000000);
    CHECK_INT(npuprof_npu_drain(&npu), NPUPROF_OK);
    CHECK_UINT(recorded(), 0);
    for (unsigned i = 0; i < COUNT; i++) write_entry(i, 0);
    announce_fence(COUNT);
    CHECK_INT(npuprof_npu_drain(&npu), NPUPROF_OK);
    CHECK_UINT(recorded() + lost(), COUNT);
    CHECK_INT(npuprof_npu_drain(&npu), NPUPROF_OK);
    CHECK_UINT(recorded() + lost(), COUNT);
    npuprof_npu_close(&npu);
}

/* Halves of an index of 64 bits that are written one after the other: until the second comes, the last good
   value is kept. */
static void torn(void)
{
    npuprof_npu_desc desc = ringed(slot_at_8);
    desc.ring.count = 4;
    desc.ring.producer.unit = NPUPROF_NPU_INDEX_COUNT;
    desc.ring.producer.width_bytes = 8;
    put(host.bytes + 8, 8, 0xFFFFFFFEu);
    open_npu(&desc);
    sim_advance(1000000);
    for (unsigned i = 0; i < 4; i++) {   /* entries of a ring of 4 */
        put(host.bytes + FIRST + i * ENTRY + 4, 4, i);
        put(host.bytes + FIRST + i * ENTRY + 8, 8, sim_truth());
    }
    put(host.bytes + 8, 4, 1);           /* the high half is still old */
    CHECK_INT(npuprof_npu_drain(&npu), NPUPROF_OK);
    CHECK_UINT(recorded(), 0);
    put(host.bytes + 12, 4, 1);
    CHECK_INT(npuprof_npu_drain(&npu), NPUPROF_OK);
    CHECK_UINT(recorded(), 3);
    put(host.bytes + 8, 8, 2);           /* the device was reset: believed the second time */
    CHECK_INT(npuprof_npu_drain(&npu), NPUPROF_OK);
    CHECK_UINT(recorded(), 3);
    CHECK_INT(npuprof_npu_drain(&npu), NPUPROF_ERR_NPU_RING);
    CHECK_UINT(recorded(), 5);
    npuprof_npu_close(&npu);
    CHECK_UINT(lost(), 0);
}

static void bad_indices(void)
{
    npuprof_npu_desc desc = ringed(slot_at_8);
    open_npu(&desc);
    sim_advance(1000000);
    put(host.bytes + 8, 4, COUNT);
    CHECK_INT(npuprof_npu_drain(&npu), NPUPROF_ERR_NPU_RING);    /* once */
    CHECK_INT(npuprof_npu_drain(&npu), NPUPROF_OK);
    put(host.bytes + 8, 4, 0xFFFFFFFFu);
    CHECK_INT(npuprof_npu_drain(&npu), NPUPROF_ERR_NPU_DEAD);
    write_entry(0, 0);
    announce_slot(1);
    CHECK_INT(npuprof_npu_drain(&npu), NPUPROF_OK);
    CHECK_UINT(recorded(), 1);
    npuprof_npu_close(&npu);
}

/* A bit that somebody else clears; who does not is noticed, and nothing is read twice. */
static void valid_bits(void)
{
    npuprof_npu_desc desc = ringed(none);
    desc.ring.ready = NPUPROF_NPU_READY_VALID;
    desc.ring.valid = (npuprof_npu_field)AT(0, 4, 31, 1);
    desc.ring.valid_value = 1;
    open_npu(&desc);
    for (unsigned i = 0; i < 3 * COUNT; i++) {
        sim_advance(100000);
        write_entry(i, 0x80000000u);
        CHECK_INT(npuprof_npu_drain(&npu), NPUPROF_OK);
        put(host.bytes + FIRST + i % COUNT * ENTRY, 4, 0);       /* the driver, behind this reader */
    }
    CHECK_UINT(recorded(), 3 * COUNT);
    for (unsigned i = 0; i < COUNT; i++) write_entry(i, 0x80000000u);
    CHECK_INT(npuprof_npu_drain(&npu), NPUPROF_OK);
    CHECK_INT(npuprof_npu_drain(&npu), NPUPROF_ERR_NPU_RING);    /* nobody clears */
    CHECK_INT(npuprof_npu_drain(&npu), NPUPROF_OK);
    CHECK_UINT(recorded(), 4 * COUNT);
    sim_advance(100000);
    write_entry(3 * COUNT + 100 * COUNT, 0x80000000u);
    CHECK_INT(npuprof_npu_drain(&npu), NPUPROF_OK);              /* the first that changes */
    CHECK_UINT(recorded(), 4 * COUNT + 1);
    npuprof_npu_close(&npu);
    CHECK_UINT(lost(), 0);
}

/* A bit that turns each lap. Who is a whole lap late loses all that lies between. */
static void phases(void)
{
    npuprof_npu_desc desc = ringed(none);
    desc.ring.ready = NPUPROF_NPU_READY_PHASE;
    desc.ring.phase = (npuprof_npu_field)AT(0, 4, 7, 1);
    desc.ring.phase_first = 1;
    uint64_t n = 0;
    open_npu(&desc);
    for (; n < 3 * COUNT + 2; n++) {
        sim_advance(100000);
        write_entry(n, n / COUNT & 1 ? 0 : 0x80);
        if (n % 3) CHECK_INT(npuprof_npu_drain(&npu), NPUPROF_OK);
    }
    CHECK_UINT(recorded(), n);
    for (unsigned i = 0; i < COUNT + 2; i++, n++) write_entry(n, n / COUNT & 1 ? 0 : 0x80);
    CHECK_INT(npuprof_npu_drain(&npu), NPUPROF_OK);
    write_entry(n, n / COUNT & 1 ? 0 : 0x80), n++;
    CHECK_INT(npuprof_npu_drain(&npu), NPUPROF_OK);
    npuprof_npu_close(&npu);
    CHECK_UINT(recorded() + lost(), n);
    CHECK_UINT(lost(), COUNT + 2);
}

/* The number of the entry in it, and no index at all. */
static void sequences(void)
{
    npuprof_npu_desc desc = ringed(none);
    desc.ring.ready = NPUPROF_NPU_READY_SEQUENCE;
    desc.ring.sequence = (npuprof_npu_field)AT(0, 4, 0, 16);
    desc.ring.sequence_first = 1;
    npuprof_start(1);
    uint64_t n = 0;
    for (; n < 7; n++) write_entry(n, (uint32_t)n + 1);
    CHECK_STOP(npuprof_npu_open(&npu, &desc) == NPUPROF_OK);
    CHECK_INT(npuprof_npu_drain(&npu), NPUPROF_OK);
    CHECK_UINT(recorded(), 0);           /* what lay there is older */
    for (; n < 20; n++) {
        sim_advance(100000);
        write_entry(n, (uint32_t)n + 1);
        if (n % 3) CHECK_INT(npuprof_npu_drain(&npu), NPUPROF_OK);
    }
    CHECK_UINT(recorded(), 13);
    for (unsigned i = 0; i < 2 * COUNT + 1; i++, n++) write_entry(n, (uint32_t)n + 1);
    CHECK_INT(npuprof_npu_drain(&npu), NPUPROF_OK);
    npuprof_npu_close(&npu);
    CHECK_UINT(recorded() + lost(), n - 7);
    CHECK_UINT(lost(), COUNT + 1);
}

/* No records: an index says how many jobs are over. */
static void progress(void)
{
    SIM_DESC(desc);
    desc.progress = (npuprof_npu_progress){
        .is_there = true, .count = 8,
        .index = { .memory = host.bytes, .memory_bytes = 4, .unit = NPUPROF_NPU_INDEX_SLOT } };
    put(host.bytes, 4, 6);
    open_npu(&desc);
    CHECK_INT(npuprof_npu_drain(&npu), NPUPROF_OK);
    sim_advance(1000000);
    for (unsigned i = 0; i < 4; i++) WITH_NPU_PROFILER(&npu, i, "infer", "NPU", PROF_NO_ARGS,
                                                       sim_advance(1000));
    put(host.bytes, 4, 8);               /* shows count, where it could show 0 */
    CHECK_INT(npuprof_npu_drain(&npu), NPUPROF_OK);
    sim_advance(1000000);
    put(host.bytes, 4, 2);
    CHECK_INT(npuprof_npu_drain(&npu), NPUPROF_OK);
    json_node *t = closed(), *e;
    CHECK_UINT(trace_count(t, "f", "submit"), 4);
    unsigned late = 0, stamps = 0;
    for (size_t i = 0; (e = trace_event(t, "X", "infer", i)) != NULL; i++) {
        if (!json_get(e, "args.stamp")) continue;
        CHECK_STR(json_text(json_get(e, "args.stamp")), "host");
        stamps++;
        late += trace_dur(e) > 1000000;
    }
    CHECK_UINT(stamps, 4);
    CHECK_UINT(late, 2);
}

/* What cannot be is refused with a sentence that names the key. */
static void refusals(void)
{
    const npuprof_result why = NPUPROF_ERR_NPU_RANGE;
    static const npuprof_npu_kind begin_only[] = { { 1, NPUPROF_NPU_KIND_BEGIN } },
        twice[] = { { 1, NPUPROF_NPU_KIND_SPAN }, { 1, NPUPROF_NPU_KIND_SKIP } };
    static const npuprof_npu_op unsorted[] = { { 5, "a" }, { 4, "b" } }, same[] = { { 5, "a" }, { 5, "b" } };
    const npuprof_npu_desc good = ringed(slot_at_8);
    CHECK_INT(npuprof_npu_open(&npu, &good), NPUPROF_OK);
    npuprof_npu_close(&npu);
    REFUSED(why, "ring.feed ", desc.ring.feed = true);
    REFUSED(why, "ring.valid ", desc.ring.ready = NPUPROF_NPU_READY_VALID);
    REFUSED(why, "ring.phase ", desc.ring.phase = (npuprof_npu_field)AT(0, 4, 0, 1));
    REFUSED(why, "ring.sequence ", desc.ring.ready = NPUPROF_NPU_READY_SEQUENCE;
            memset(&desc.ring.producer, 0, sizeof desc.ring.producer));
    REFUSED(why, "ring.producer ", desc.ring.producer.offset = FIRST + ENTRY);
    REFUSED(why, "ring.producer ", desc.ring.producer.offset = sizeof host.bytes);
    REFUSED(why, "ring.producer has a wrap bit, but", desc.ring.producer.unit = NPUPROF_NPU_INDEX_COUNT;
            desc.ring.producer.has_wrap = true);
    REFUSED(why, "ring.producer has its wrap bit", desc.ring.producer.unit = NPUPROF_NPU_INDEX_SLOT;
            desc.ring.producer.has_wrap = true; desc.ring.producer.wrap_bit = 31);
    REFUSED(why, "ring.producer ", desc.ring.producer.unit = NPUPROF_NPU_INDEX_COUNT;
            desc.ring.producer.has_laps = true);
    REFUSED(why, "ring.memory_bytes ", desc.ring.first = sizeof host.bytes - ENTRY);
    REFUSED(why, "ring.start ", desc.ring.end.width_bytes = 0);
    REFUSED(why, "ring.end ", desc.ring.end.bits = 7);
    REFUSED(why, "ring.end ", desc.ring.end.hi_offset = 4; desc.ring.end.hi_width_bytes = 4);
    REFUSED(why, "ring.job ", desc.ring.job = (npuprof_npu_field){ .offset = 0, .width_bytes = 4, .bits = 20,
                         .hi_offset = 0, .hi_width_bytes = 4, .hi_lsb = 19 });
    REFUSED(why, "ring.duration ", desc.ring.start = desc.ring.duration = (npuprof_npu_field)AT(0, 4, 0, 0));
    REFUSED(why, "ring.stamp_clock ", desc.ring.stamp_clock = NPUPROF_NPU_STAMP_NONE);
    REFUSED(why, "ring.duration_in_ns ", desc.ring.stamp_clock = NPUPROF_NPU_STAMP_NONE;
            desc.ring.duration = desc.ring.end; desc.ring.end.width_bytes = 0);
    REFUSED(why, "ring.duration is missing", desc.ring.duration_in_ns = true);
    REFUSED(why, "ring.duration_num ", desc.ring.duration = (npuprof_npu_field)AT(0, 4, 0, 0);
            desc.ring.duration_num = UINT64_C(1) << 33);
    REFUSED(why, "ring.stamp_clock ", desc.ring.stamp_clock = NPUPROF_NPU_STAMP_HOST;
            desc.ring.stamp_offset = 1);
    REFUSED(why, "ring.scale_num ", desc.ring.scale_den = UINT64_C(1) << 33);
    REFUSED(why, "ring.kinds ", desc.ring.kind = (npuprof_npu_field)AT(0, 4, 0, 1));
    REFUSED(why, "ring.kinds ", desc.ring.kind = (npuprof_npu_field)AT(0, 4, 0, 1);
            desc.ring.kinds = begin_only; desc.ring.kind_count = 1);
    REFUSED(why, "ring.kinds ", desc.ring.kind = (npuprof_npu_field)AT(0, 4, 0, 1); desc.ring.kinds = twice;
            desc.ring.kind_count = 2);
    REFUSED(why, "ring.value ", desc.ring.all_are = NPUPROF_NPU_KIND_COUNTER);
    REFUSED(why, "ring.clock_high ", desc.ring.clock_high = (npuprof_npu_field)AT(0, 4, 0, 1));
    REFUSED(why, "ring.ops ", desc.ring.ops = unsorted; desc.ring.op_count = 2);
    REFUSED(why, "ring.ops has a code twice", desc.ring.ops = same; desc.ring.op_count = 2);
    REFUSED(why, "ring.pe_base ", desc.ring.pe_base = 1);
    REFUSED(why, "ring.args[2] ", desc.ring.args[2].field = (npuprof_npu_field)AT(0, 4, 0, 0));
    npuprof_npu_ring rings[12];
    for (int i = 0; i < 12; i++) {
        rings[i] = good.ring;
        rings[i].first = FIRST + 256u * (unsigned)i;
    }
    npuprof_npu_desc desc = good;
    memset(&desc.ring, 0, sizeof desc.ring);
    desc.rings = rings;
    desc.ring_count = 12;
    CHECK_INT(npuprof_npu_open(&npu, &desc), NPUPROF_OK);
    npuprof_npu_close(&npu);
    rings[11].first = rings[10].first + ENTRY;
    refused(&desc, why, "desc.rings[11].offset ");
    rings[11] = rings[3];
    rings[3].entry_bytes = 0;
    refused(&desc, why, "desc.rings[3].entry_bytes ");
}

CHECK_MAIN(CASE(units), CASE(bytes_that_wrap), CASE(laps), CASE(one_lap), CASE(torn), CASE(bad_indices),
           CASE(numbered_entries), CASE(unannounced), CASE(short_period), CASE(off_at_open), CASE(valid_bits),
           CASE(phases), CASE(sequences), CASE(progress), CASE(refusals))
