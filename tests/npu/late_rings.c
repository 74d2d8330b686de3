/* a reader that is laps late, by every way to say that an entry is there: what was drawn and what was lost is
   what the device wrote, or the trace says that more may be lost
   SPDX-License-Identifier: MIT */
#include "fixture.h"

/* job 8 | end 8 | sequence 8 | phase 4 | valid 4; the index in front of the entries. */
enum { ENTRY = 32, FIRST = 64, MOST = 256, BURSTS = 6 };
enum { SEQUENCE, PHASE, PHASE_AND_SEQUENCE, COUNTED, COUNT_AND_SEQUENCE, BYTES, BYTES_AND_SEQUENCE, SLOT,
       WRAP, SLOT_AND_SEQUENCE, LAPS, VALID_AND_SEQUENCE,
       FROM_ZERO = 16 };                 /* beside a rule: numbers begin at 0, else at 1 */
typedef struct world {
    int rule;
    unsigned count, sequence_bits, index_bits, before;   /* entries written before open */
    unsigned bursts[BURSTS];             /* entries written between two drains */
    bool is_unknown;                     /* nobody can know how much is lost */
    uint64_t lost;                       /* at the least, if it is unknown */
} world;

static union { uint64_t align; unsigned char bytes[FIRST + MOST * ENTRY]; } host;
static uint64_t made;

static int rule_of(const world *w) { return w->rule & ~FROM_ZERO; }
static bool is_from_zero(const world *w) { return (w->rule & FROM_ZERO) != 0; }

static bool is_in_bytes(const world *w) { return rule_of(w) == BYTES || rule_of(w) == BYTES_AND_SEQUENCE; }

static bool has_sequence(const world *w)
{
    return rule_of(w) == SEQUENCE || rule_of(w) == PHASE_AND_SEQUENCE || rule_of(w) == COUNT_AND_SEQUENCE ||
           rule_of(w) == BYTES_AND_SEQUENCE || rule_of(w) == SLOT_AND_SEQUENCE ||
           rule_of(w) == VALID_AND_SEQUENCE;
}

static void write_entry(const world *w)
{
    unsigned char *const at = host.bytes + FIRST + made % w->count * ENTRY;
    const uint64_t lap = made / w->count;
    put(at, 8, made + 1);
    put(at + 8, 8, sim_truth());
    put(at + 16, 8, (made + !is_from_zero(w)) & sim_mask(w->sequence_bits));
    put(at + 24, 4, ~lap & 1);
    put(at + 28, 4, 1);
    put(host.bytes + FIRST + (made + w->count - 3) % w->count * ENTRY + 28, 4, 0);   /* all but three */
    made++;
    uint64_t index = rule_of(w) < SLOT ? made : made % w->count;
    if (is_in_bytes(w)) index *= ENTRY;
    index &= sim_mask(w->index_bits);
    if (rule_of(w) == WRAP) index |= (made / w->count & 1) << 31;
    put(host.bytes, 4, index);
    put(host.bytes + 4, 4, lap);
    sim_advance(2000);
}

static npuprof_npu_desc describe(const world *w)
{
    npuprof_npu_desc d = sim_desc();
    d.ring = (npuprof_npu_ring){ .memory = host.bytes, .memory_bytes = sizeof host.bytes, .first = FIRST,
                                 .entry_bytes = ENTRY, .count = w->count, .job = AT(0, 8, 0, 0),
                                 .start = AT(8, 8, 0, 0), .end = AT(8, 8, 0, 0) };
    if (has_sequence(w)) {
        d.ring.sequence = (npuprof_npu_field)AT(16, 8, 0, 0);
        d.ring.sequence.bits = (uint8_t)w->sequence_bits;
        d.ring.sequence_first = !is_from_zero(w);
    }
    if (rule_of(w) == SEQUENCE) {
        d.ring.ready = NPUPROF_NPU_READY_SEQUENCE;
    } else if (rule_of(w) == VALID_AND_SEQUENCE) {
        d.ring.ready = NPUPROF_NPU_READY_VALID;
        d.ring.valid = (npuprof_npu_field)AT(28, 4, 0, 0);
        d.ring.valid_value = 1;
    } else if (rule_of(w) == PHASE || rule_of(w) == PHASE_AND_SEQUENCE) {
        d.ring.ready = NPUPROF_NPU_READY_PHASE;
        d.ring.phase = (npuprof_npu_field)AT(24, 4, 0, 1);
        d.ring.phase_first = 1;
    } else {
        d.ring.producer.in_memory = true;
        d.ring.producer.bits = (uint8_t)w->index_bits;
        if (is_in_bytes(w)) d.ring.producer.unit = NPUPROF_NPU_INDEX_BYTES;
        if (rule_of(w) == LAPS) d.ring.producer.has_laps = true, d.ring.producer.laps_offset = 4;
        if (rule_of(w) >= SLOT) d.ring.producer.unit = NPUPROF_NPU_INDEX_SLOT;
        if (rule_of(w) == WRAP) d.ring.producer.has_wrap = true, d.ring.producer.wrap_bit = 31;
    }
    return d;
}

/* Each entry is drawn at most once, and was written since open. Returns how many. */
static uint64_t check_jobs(json_node *t, uint64_t from)
{
    static bool seen[4096];
    uint64_t drawn = 0;
    memset(seen, 0, sizeof seen);
    for (json_node *e = json_get(t, "traceEvents")->first; e; e = e->next) {
        json_node *const job = json_get(e, "args.job");
        if (!job || !json_get(e, "args.error_ns")) continue;
        const int64_t number = json_int(job);
        CHECK_STOP(number > (int64_t)from && number <= (int64_t)made && !seen[number]);
        seen[number] = true;
        drawn++;
    }
    return drawn;
}

static void late_by(const void *user)
{
    const world *const w = (const world *)user;
    memset(host.bytes, 0, sizeof host.bytes);
    while (made < w->before) write_entry(w);
    const npuprof_npu_desc d = describe(w);
    open_npu(&d);
    for (unsigned i = 0; i < BURSTS; i++) {
        for (unsigned k = w->bursts[i]; k; k--) write_entry(w);
        CHECK_INT(npuprof_npu_drain(&npu), NPUPROF_OK);
    }
    json_node *const t = closed();
    const uint64_t executed = made - w->before, drawn = check_jobs(t, w->before);
    CHECK_UINT(lost(), w->lost);
    CHECK(w->is_unknown ? drawn + lost() <= executed : drawn + lost() == executed);
    CHECK_INT(records(t, "loss_unknown") > 0, w->is_unknown);
    if (check_failures_) printf("  by rule %d, %u entries, first %u\n", rule_of(w), w->count, w->bursts[0]);
}

static void follow(const world *worlds, size_t count)
{
    for (size_t i = 0; i < count; i++) check_in_child(late_by, &worlds[i]);
}
#define FOLLOW(...) \
    do { static const world w[] = { __VA_ARGS__ }; follow(w, sizeof w / sizeof *w); } while (0)

/* Numbers that come round: exact where they do not, else the trace says so. */
static void narrow_sequences(void)
{
    FOLLOW({ SEQUENCE, 64, 8, 32, 0, { 50, 140, 3 }, true, 76 },
           { SEQUENCE, 8, 5, 32, 0, { 5, 17, 1 }, true, 9 },
           { SEQUENCE, 8, 5, 32, 0, { 5, 33, 1 }, true, 0 },
           { FROM_ZERO | SEQUENCE, 7, 4, 32, 0, { 0, 9, 1 }, true, 2 },
           { SEQUENCE, 7, 4, 32, 40, { 5, 10, 1 }, true, 3 },
           { SEQUENCE, 8, 64, 32, 0, { 5, 33, 1 }, false, 25 },
           { SEQUENCE, 8, 5, 32, 0, { 5, 7, 7, 1 }, false, 0 });
}

static void too_narrow(void)
{
    static const world narrow = { SEQUENCE, 128, 8, 32, 0, { 0 }, false, 0 };
    npuprof_npu_desc d = describe(&narrow);
    npuprof_start(1);
    refused(&d, NPUPROF_ERR_NPU_RANGE, "ring.sequence has no numbers for more than two laps");
    d.ring.sequence.bits = 9;
    CHECK_INT(npuprof_npu_open(&npu, &d), NPUPROF_OK);
    npuprof_npu_close(&npu);
}

/* A slot, and numbers in the entries: whole laps are seen, too. */
static void numbered_slots(void)
{
    FOLLOW({ SLOT_AND_SEQUENCE, 64, 64, 32, 0, { 43, 64 }, false, 0 },
           { SLOT_AND_SEQUENCE, 64, 64, 32, 0, { 43, 128, 1 }, false, 64 },
           { SLOT_AND_SEQUENCE, 128, 8, 32, 0, { 50, 140, 20 }, true, 12 },
           { SLOT_AND_SEQUENCE, 128, 8, 32, 0, { 50, 128, 20 }, true, 0 },
           { FROM_ZERO | SLOT_AND_SEQUENCE, 7, 4, 32, 0, { 3, 5, 10, 1 }, true, 3 },
           { FROM_ZERO | SLOT_AND_SEQUENCE, 7, 64, 32, 0, { 0, 10, 1 }, false, 3 },
           { SLOT_AND_SEQUENCE, 3, 64, 32, 1, { 3, 3, 3, 6, 4, 3 }, false, 4 });
}

/* An index that comes round; one of more bits does, too, in a thousand laps. */
static void narrow_indices(void)
{
    FOLLOW({ COUNT_AND_SEQUENCE, 128, 64, 8, 0, { 50, 300, 20 }, true, 172 },
           { COUNTED, 128, 64, 8, 0, { 50, 400, 20 }, true, 17 },
           { COUNT_AND_SEQUENCE, 128, 64, 32, 0, { 50, 300, 20 }, false, 172 },
           { WRAP, 8, 64, 31, 0, { 3, 26, 2 }, true, 3 },
           { WRAP, 8, 64, 31, 0, { 3, 7, 7, 2 }, false, 0 });
}

static void narrow_bytes(void)
{
    FOLLOW({ BYTES, 32, 64, 12, 0, { 50, 128, 20 }, true, 116 },
           { BYTES, 32, 64, 12, 0, { 50, 130, 20 }, true, 118 },
           { BYTES, 32, 64, 16, 0, { 50, 130, 20 }, true, 118 },
           { BYTES, 32, 64, 12, 0, { 31, 31, 31, 31, 31, 31 }, false, 0 },
           { BYTES_AND_SEQUENCE, 32, 64, 12, 0, { 50, 260, 20 }, true, 118 });
    static const world odd = { BYTES, 24, 64, 12, 0, { 0 }, false, 0 };
    npuprof_npu_desc d = describe(&odd);
    npuprof_start(1);
    refused(&d, NPUPROF_ERR_NPU_RANGE, "ring.count times entry_bytes does not divide");
}

/* Of slot and laps alike: one lap before open looks as if nothing was written. */
static void hidden_laps(void)
{
    FOLLOW({ LAPS, 8, 64, 32, 8, { 3, 7, 1 }, false, 0 }, { LAPS, 8, 64, 32, 8, { 7, 1, 9 }, false, 2 },
           { LAPS, 8, 64, 32, 0, { 8, 9, 1 }, false, 3 }, { LAPS, 8, 64, 32, 0, { 11, 1 }, false, 4 },
           { LAPS, 8, 64, 32, 8, { 11, 1 }, true, 4 }, { LAPS, 8, 64, 32, 16, { 11, 1 }, false, 4 });
}

/* Somebody clears entries before they are read. */
static void cleared(void)
{
    FOLLOW({ VALID_AND_SEQUENCE, 8, 64, 32, 0, { 3, 18, 1 }, false, 16 },
           { VALID_AND_SEQUENCE, 8, 4, 32, 0, { 3, 18, 1 }, true, 0 });
}

/* Of a ring that was empty at open, and of one that is an odd or an even number of laps late. */
static void late_phases(void)
{
    FOLLOW({ PHASE, 8, 64, 32, 0, { 10 }, true, 10 }, { PHASE, 8, 64, 32, 0, { 10, 7, 2, 3 }, true, 10 },
           { PHASE, 8, 64, 32, 0, { 3, 26, 2 }, true, 10 }, { PHASE, 8, 64, 32, 0, { 3, 23, 1 }, true, 0 },
           { PHASE, 8, 64, 32, 0, { 3, 7, 7, 2 }, false, 0 });
}

static void numbered_phases(void)
{
    FOLLOW({ PHASE_AND_SEQUENCE, 8, 64, 32, 0, { 10 }, false, 10 },
           { PHASE_AND_SEQUENCE, 8, 64, 32, 0, { 3, 16 }, false, 16 },
           { PHASE_AND_SEQUENCE, 5, 64, 32, 10, { 11 }, false, 6 },
           { PHASE_AND_SEQUENCE, 5, 64, 32, 10, { 3, 11, 4 }, false, 6 },
           { PHASE_AND_SEQUENCE, 8, 5, 32, 0, { 3, 33, 2 }, true, 0 });
}

CHECK_MAIN(CASE(narrow_sequences), CASE(too_narrow), CASE(numbered_slots), CASE(narrow_indices),
           CASE(narrow_bytes), CASE(hidden_laps), CASE(cleared), CASE(late_phases), CASE(numbered_phases))
