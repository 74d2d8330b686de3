/* queues of records that are hard to describe: an index with a wrap bit (gcip, virtio), a phase and a slot
   whose reader is laps late (NVMe); recorded and lost are what the device wrote, each record the right one
   SPDX-License-Identifier: MIT */
#include "fixture.h"
#include "random.h"

static uint64_t below(uint64_t n) { return random_bits() % n; }

static union { uint64_t align; unsigned char bytes[64 * 1024]; } host;

/* ---- Rings whose reader is late: number 4 | ready word 4 | end 8 */

enum { ENTRY = 16, FIRST = 64 };
typedef struct ring_model {
    unsigned count;
    void (*describe)(npuprof_npu_ring *r);
    void (*announce)(uint64_t written);
    unsigned phase_bit, first;               /* bit of the ready word, and its value in the first lap */
    double laps;                             /* that a look may come late */
    bool is_doubtful;                        /* then the trace says that more may be lost */
} ring_model;

static unsigned ring_count;

static void announce_gcip(uint64_t n)        /* bits 9:0 the slot, bit 10 the wrap bit; no power of two */
{
    sim_store(SIM_PRODUCER, 4, 0xAB000000u | n / ring_count % 2 << 10 | n % ring_count);
}

static void describe_gcip(npuprof_npu_ring *r)
{
    r->producer = (npuprof_npu_index){ .offset = SIM_PRODUCER, .unit = NPUPROF_NPU_INDEX_SLOT, .bits = 10,
                                       .has_wrap = true, .wrap_bit = 10 };
}

static void announce_virtio(uint64_t n)      /* off_wrap: 14:0 the slot, bit 15 is 1 in the first lap */
{
    put(host.bytes + 2, 2, n % ring_count | (n / ring_count % 2 ? 0 : 0x8000u));
}

static void describe_virtio(npuprof_npu_ring *r)
{
    r->producer = (npuprof_npu_index){ .in_memory = true, .offset = 2, .width_bytes = 2, .bits = 15,
                                       .unit = NPUPROF_NPU_INDEX_SLOT, .has_wrap = true, .wrap_bit = 15 };
}

static void describe_nvme(npuprof_npu_ring *r)
{
    r->ready = NPUPROF_NPU_READY_PHASE;
    r->phase = (npuprof_npu_field)AT(4, 4, 16, 1);
    r->phase_first = 1;
}

static void announce_slot(uint64_t n) { put(host.bytes + 4, 4, n % ring_count * ENTRY); }

static void describe_slot(npuprof_npu_ring *r)
{
    r->producer = (npuprof_npu_index){ .in_memory = true, .offset = 4,
                                       .unit = NPUPROF_NPU_INDEX_BYTE_OFFSET };
}

static const ring_model rings[] = {
    { 200, describe_gcip, announce_gcip, 0, 0, 1.99, false },
    { 200, describe_gcip, announce_gcip, 0, 0, 2.49, true },
    { 300, describe_virtio, announce_virtio, 0, 0, 2.49, true },
    { 64, describe_nvme, NULL, 16, 1, 2.98, true },
    { 61, describe_slot, announce_slot, 0, 0, 1.49, true }
};

/* The spans of the trace: those numbers that were not lost, in their order. */
static void check_numbers(uint64_t total)
{
    json_node *t = written();
    int64_t last = -1;
    uint64_t spans = 0;
    for (json_node *e = json_get(t, "traceEvents")->first; e; e = e->next) {
        json_node *number = json_get(e, "args.number");
        if (!number) continue;
        CHECK(json_int(number) > last);
        last = json_int(number);
        spans++;
    }
    CHECK(last < (int64_t)total);
    CHECK_UINT(spans + lost(), total);
}

static void late_reader(const ring_model *m, uint64_t total)
{
    SIM_DESC(desc);
    uint64_t wrote = 0;
    ring_count = m->count;
    memset(&host, 0, sizeof host);
    desc.ring = (npuprof_npu_ring){ .memory = host.bytes, .memory_bytes = sizeof host.bytes, .first = FIRST,
                                    .entry_bytes = ENTRY, .count = m->count, .end = AT(8, 8, 0, 0),
                                    .args = { { AT(0, 4, 0, 0), "number" } } };
    m->describe(&desc.ring);
    if (m->announce) m->announce(0);
    open_npu(&desc);
    while (wrote < total) {
        const uint64_t late = (uint64_t)(m->count * m->laps) - below(m->count / 2);
        const uint64_t end = wrote + (below(3) ? below(m->count / 2) : late);
        for (; wrote < end && wrote < total; wrote++) {
            unsigned char *const at = host.bytes + FIRST + wrote % m->count * ENTRY;
            sim_advance(1000);
            put(at, 4, wrote);
            put(at + 8, 8, sim_truth());
            put(at + 4, 4, ((wrote / m->count + m->first) & 1) << m->phase_bit);
        }
        if (m->announce) m->announce(wrote);
        CHECK_INT(npuprof_npu_drain(&npu), NPUPROF_OK);
    }
    npuprof_npu_close(&npu);
    check_numbers(total);
    CHECK(records(written(), "loss_unknown") > 0 || !m->is_doubtful);
    CHECK(lost() > 0);
}

typedef struct late_run { const ring_model *model; uint64_t total; } late_run;

static void run_late(const void *user)
{
    const late_run *const run = (const late_run *)user;
    late_reader(run->model, run->total);
}

static void late_readers_of(unsigned laps)
{
    for (unsigned i = 0; i < sizeof rings / sizeof *rings; i++) {
        const late_run run = { &rings[i], (uint64_t)laps * rings[i].count };
        CHECK(check_in_child(run_late, &run));
    }
}

static void late_readers(void) { late_readers_of(40); }
static void late_readers_long(void) { late_readers_of(150); }

/* ---- Units of `duration`: how long 4, end 8 or start 8, true begin 4, job 2 */

enum { BYTES = 24 };
typedef struct unit_model {
    uint64_t unit_num, unit_den;             /* ns of a unit of the duration */
    bool in_ns;                              /* as the description says it */
    uint64_t num, den;
    int clock;
    bool tells_start;
} unit_model;

static const unit_model units[] = {
    { 1000, 1, true, 1000, 1, NPUPROF_NPU_STAMP_COUNTER, false },        /* us beside ticks */
    { 1000, 1, true, 1000, 1, NPUPROF_NPU_STAMP_COUNTER, true },
    { 640, 1, false, 16, 1, NPUPROF_NPU_STAMP_COUNTER, false },          /* 16 ticks of 25 MHz */
    { 625, 12, true, 625, 12, NPUPROF_NPU_STAMP_HOST, false },           /* 19.2 MHz beside ns */
    { 625, 12, false, 625, 12, NPUPROF_NPU_STAMP_HOST, true },
    { 1000, 1, true, 1000, 1, NPUPROF_NPU_STAMP_NONE, false }            /* us, and no stamp */
};

static void describe_units(npuprof_npu_desc *desc, const unit_model *m)
{
    desc->ring = (npuprof_npu_ring){
        .feed = true, .entry_bytes = BYTES, .duration = AT(0, 4, 0, 0), .duration_in_ns = m->in_ns,
        .duration_num = m->num, .duration_den = m->den, .stamp_clock = m->clock, .job = AT(20, 2, 0, 0),
        .args = { { AT(16, 4, 0, 0), "begin" } } };
    if (m->clock == NPUPROF_NPU_STAMP_NONE) return;
    *(m->tells_start ? &desc->ring.start : &desc->ring.end) = (npuprof_npu_field)AT(8, 8, 0, 0);
}

/* One job: submitted, idle, run, seen. factor: the device writes another unit than the description says. */
static void run_job(const unit_model *m, unsigned number, uint64_t factor, uint64_t origin)
{
    unsigned char entry[BYTES] = { 0 };
    WITH_NPU_PROFILER(&npu, 0, "job", "NPU", PROF_NO_ARGS, npuprof_npu_set_job(&npu, number & 0xFFFF));
    sim_advance(below(20000));
    const uint64_t begin = sim.host, ticks = sim_truth(), length = 10000 + below(3000000);
    const int64_t begin_ns = npuprof_now_ns() - (int64_t)sim.step;
    sim_advance(length);
    const uint64_t end_ticks = sim_truth();
    const int64_t end_ns = npuprof_now_ns();
    const bool host_clock = m->clock == NPUPROF_NPU_STAMP_HOST;
    put(entry, 4, length * m->unit_den / m->unit_num * factor);
    put(entry + 8, 8, host_clock ? (uint64_t)(m->tells_start ? begin_ns : end_ns)
                                 : m->tells_start ? ticks : end_ticks);
    put(entry + 16, 4, begin - origin);
    put(entry + 20, 2, number);
    sim_advance(below(3000));
    CHECK_INT(npuprof_npu_feed(&npu, 0, entry, BYTES), NPUPROF_OK);
}

typedef struct unit_run { const unit_model *model; unsigned jobs; } unit_run;

static void duration_unit(const void *user)
{
    const unit_run *const run = (const unit_run *)user;
    const unit_model *const m = run->model;
    sim.hz = 25001500;                       /* 60 ppm from what is said */
    SIM_DESC(desc);
    desc.counter.hz = 25000000;
    describe_units(&desc, m);
    open_npu(&desc);
    const uint64_t origin = sim.host;
    PROF_INSTANT("test", "origin");
    for (unsigned i = 0; i < run->jobs; i++) run_job(m, i, 1, origin);
    for (unsigned i = 0; i < 20; i++) run_job(m, run->jobs + i, 1000, origin);   /* ns, described as us */
    json_node *t = closed();
    const int64_t zero = trace_start(trace_event(t, "i", "origin", 0));
    uint64_t spans = 0, outside = 0;
    for (json_node *e = json_get(t, "traceEvents")->first; e; e = e->next) {
        json_node *const begin = json_get(e, "args.begin");
        if (!begin) continue;
        json_node *const more = json_get(e, "args.duration_error_ns");
        const int64_t error = json_int(json_get(e, "args.error_ns")) + (more ? json_int(more) : 0) + 100;
        const int64_t off = ((trace_start(e) - zero) & 0xFFFFFFFF) - json_int(begin);
        CHECK(!more == (m->clock == NPUPROF_NPU_STAMP_NONE));
        outside += off > error || off < -error;
        spans++;
    }
    CHECK_UINT(spans, run->jobs);
    CHECK_UINT(outside, 0);
    CHECK_INT(records(t, "lost_contradiction") + records(t, "lost_stamps"), 20);
}

static void duration_units_of(unsigned jobs)
{
    for (unsigned i = 0; i < sizeof units / sizeof *units; i++) {
        const unit_run run = { &units[i], jobs };
        CHECK(check_in_child(duration_unit, &run));
    }
}

static void duration_units(void) { duration_units_of(200); }
static void duration_units_long(void) { duration_units_of(10000); }

/* ---- More rings and arguments: 100 queues of one device, each entry with 12 values */

static void many_rings(void)
{
    enum { RINGS = 100, ARGS = 12, WIDE = 4 * ARGS + 8 };
    static npuprof_npu_ring many[RINGS];
    static const char *const names[ARGS] = { "a", "b", "c", "d", "e", "f", "g", "h", "i", "j", "k", "l" };
    npuprof_npu_arg more[NPUPROF_NPU_MORE_ARGS];
    SIM_DESC(desc);
    memset(more, 0, sizeof more);
    for (unsigned r = 0; r < RINGS; r++) {
        npuprof_npu_ring *const ring = &many[r];
        *ring = (npuprof_npu_ring){ .feed = true, .entry_bytes = WIDE, .end = AT(4 * ARGS, 8, 0, 0),
                                    .pe_base = r, .more_args = more,
                                    .more_arg_count = NPUPROF_NPU_MORE_ARGS };
        for (unsigned i = 0; i < ARGS; i++) {
            npuprof_npu_arg *const arg = i < 4 ? &ring->args[i] : &more[i - 4];
            arg->field = (npuprof_npu_field)AT((uint16_t)(4 * i), 4, 0, 0);
            arg->name = names[i];
        }
    }
    desc.rings = many;
    desc.ring_count = RINGS;
    desc.pe_count = RINGS;
    open_npu(&desc);
    for (unsigned r = 0; r < RINGS; r++) {
        unsigned char entry[WIDE];
        sim_advance(1000);
        for (unsigned i = 0; i < ARGS; i++) put(entry + 4 * i, 4, r * 1000 + i);
        put(entry + 4 * ARGS, 8, sim_truth());
        CHECK_INT(npuprof_npu_feed(&npu, r, entry, WIDE), NPUPROF_OK);
    }
    json_node *t = closed();
    uint64_t spans = 0, wrong = 0;
    for (json_node *e = json_get(t, "traceEvents")->first; e; e = e->next) {
        json_node *const pe = json_get(e, "args.pe_index"), *const args = json_get(e, "args");
        if (!pe || !json_get(e, "args.l")) continue;
        spans++;
        for (unsigned i = 0; i < ARGS; i++)
            wrong += json_int(json_get(args, names[i])) != json_int(pe) * 1000 + (int64_t)i;
    }
    CHECK_UINT(spans, RINGS);
    CHECK_UINT(wrong, 0);
    many[99].entry_bytes = 0;
    CHECK_INT(npuprof_npu_open(&npu, &desc), NPUPROF_ERR_NPU_RANGE);
    CHECK(strstr(npuprof_result_string(NPUPROF_ERR_NPU_RANGE), "desc.rings[99].entry_bytes") != NULL);
}

/* ---- A counter whose halves are fields: bits 27:4 of one register, 21:8 of another, other bits around */

static uint64_t latched;

static void publish_fields(void)
{
    const uint64_t now = sim_truth() + (UINT64_C(1) << 24) - 500;    /* the low part wraps at once */
    sim_store(SIM_LO, 4, 0xA000000Au | (now & 0xFFFFFF) << 4);
    sim_store(SIM_HI, 4, 0x55C00000u | (now >> 24 & 0x3FFF) << 8 | (latched++ & 0xFF));
}

static void fields_of_registers(void)
{
    const npuprof_npu_pmu same = { .name = "cycles", .counter = { .lo_offset = SIM_LO, .lo_lsb = 4,
        .bits = 24, .order = NPUPROF_NPU_SINGLE } };
    sim.tick = publish_fields;
    SIM_DESC(desc);
    desc.counter.lo_lsb = 4, desc.counter.lo_bits = 24;
    desc.counter.hi_lsb = 8, desc.counter.bits = 38;
    desc.pmu = &same;
    desc.pmu_count = 1;
    open_npu(&desc);
    uint64_t wrong = 0;
    for (int i = 0; i < 2000; i++) {
        uint64_t ticks;
        sim_advance(1000000);
        const uint64_t before = sim_truth();
        CHECK_INT(npuprof_npu_read(&npu, &ticks), NPUPROF_OK);
        ticks -= (UINT64_C(1) << 24) - 500;
        wrong += ticks < before || ticks > sim_truth();
    }
    CHECK_UINT(wrong, 0);
    npuprof_npu_close(&npu);
    desc.counter.hi_lsb = 20;
    CHECK(npuprof_npu_open(&npu, &desc) != NPUPROF_OK);
    CHECK(strstr(npuprof_result_string(NPUPROF_ERR_NPU_COUNTER), "hi_lsb") != NULL);
}

CHECK_MAIN(CASE(late_readers), CASE_THOROUGH(late_readers_long), CASE(duration_units),
           CASE_THOROUGH(duration_units_long), CASE(many_rings), CASE(fields_of_registers))
