/* test: - a device that writes between any two loads of a drain: what is drawn is whole, each record once,
   and what is missing is counted
   SPDX-License-Identifier: MIT

   The header loads from memory by the compiler's __atomic_load_n(), which a macro replaces here: at a load
   from the ring or its index the device does what is due. So every moment of a drain is visited, on any
   machine. */
#include "check.h"
#include <string.h>

enum { COUNT = 4, ENTRY = 32, FIRST = 16, WRITTEN = 20000 };
static union { uint64_t align; unsigned char bytes[FIRST + COUNT * ENTRY]; } memory;
static uint64_t now = 1000000;
static void device_may_act(const volatile void *at);
#define __atomic_load_n(at, order) (device_may_act(at), __atomic_load_n(at, order))
static uint64_t look(void)
{
    now += 20;
    device_may_act(memory.bytes);        /* a reader that only waits does not stop it */
    return now;
}

#define NPUPROF_NOW() look()
#define NPUPROF_NOW_HZ 1000000000
#define NPUPROF_IMPLEMENTATION
#include "npuprof.h"
#include "npuprof_npu.h"

static npuprof_npu npu;

/* ---- The device: a list of steps, each some stores at once */

enum { COUNTS, LOW_FIRST, HIGH_FIRST, SLOT_FIRST, LAPS_FIRST, PHASES, SEQUENCES, VALIDS, RULES };
static const char *const rules[] = { "a count", "a count, low half first", "a count, high half first",
    "a slot, then laps", "laps, then a slot", "a phase bit", "a sequence",
    "a valid word" };
static int rule;
static unsigned delay;                   /* loads until the next step */
static unsigned step;                    /* of the current entry */
static uint64_t written;                 /* announced */
static uint64_t cleared;                 /* entries that the driver has cleared: none that was not drawn */
static bool acts;
static unsigned char drawn[WRITTEN + 1];
static unsigned torn;
static uint64_t newest;                  /* of those that were drawn */
static uint64_t seed = 88172645463325252u;

static unsigned any(unsigned below)
{
    seed ^= seed << 13;
    seed ^= seed >> 7;
    seed ^= seed << 17;
    return (unsigned)(seed >> 33) % below;
}

static void put(size_t at, unsigned bytes, uint64_t value)
{
    if (bytes == 4) *(volatile uint32_t *)(void *)(memory.bytes + at) = (uint32_t)value;
    else *(volatile uint64_t *)(void *)(memory.bytes + at) = value;
}

/* Entry number `written`: its number at 4, its complement at the other end, the word that says it is
   there. */
static void write_entry(void)
{
    const size_t at = FIRST + written % COUNT * ENTRY;
    const uint32_t number = (uint32_t)written + 1;
    put(at + 4, 4, number);
    put(at + 8, 8, now - 10);
    put(at + 24, 4, ~number);
    if (rule != VALIDS) put(at, 4, rule == PHASES ? !(written / COUNT & 1) : number);
}

/* Clears some of the entries that were drawn, in their order; the device writes a cleared one. */
static bool driver_lets_write(void)
{
    for (unsigned i = any((unsigned)(newest - cleared) + 1); i; i--, cleared++)
        memset(memory.bytes + FIRST + cleared % COUNT * ENTRY, 0, ENTRY);
    return written - cleared < COUNT;
}

/* Announces it by its index, in one store or in two. True: that was the last one. */
static bool announce(unsigned part)
{
    const uint64_t shown = UINT32_MAX - 2047u + written + 1;
    const uint64_t slot = (written + 1) % COUNT, laps = written / COUNT;
    switch (rule) {
    case COUNTS: put(0, 4, shown); return true;
    case LOW_FIRST: put(part ? 4 : 0, 4, part ? shown >> 32 : shown); return part;
    case HIGH_FIRST: put(part ? 0 : 4, 4, part ? shown : shown >> 32); return part;
    case SLOT_FIRST: put(part ? 4 : 0, 4, part ? laps : slot); return part;
    case LAPS_FIRST: put(part ? 0 : 4, 4, part ? slot : laps); return part;
    default: return true;
    }
}

/* Why it waits: a slot before its laps looks like that of the lap before to a reader who is a lap behind. */
static void device_goes_on(void)
{
    const bool waits = rule == SLOT_FIRST || rule == LAPS_FIRST;
    if (written == WRITTEN || (waits && step == 0 && written - newest >= COUNT - 1)) return;
    if (rule == VALIDS && !driver_lets_write()) return;
    if (step == 0) write_entry();
    if (rule == VALIDS && step) put(FIRST + written % COUNT * ENTRY, 4, 1);
    const bool over = rule == VALIDS ? step : rule >= PHASES || (step && announce(step - 1));
    step = over ? 0 : step + 1;
    written += over;
}

/* Some steps at once, and then none for some loads. */
static void device_may_act(const volatile void *at)
{
    const uintptr_t from = (uintptr_t)memory.bytes, place = (uintptr_t)at;
    if (!acts || place < from || place >= from + sizeof memory || delay--) return;
    for (unsigned i = rule == PHASES ? 1 + any(2) : any(3); i <= 2; i++) device_goes_on();
    delay = any(8) ? any(30) : any(300);
}

/* ---- The reader */

/* Called for each record that is drawn: its op has the number and the complement. */
static const char *name_of(void *user, uint64_t op)
{
    const uint32_t number = (uint32_t)op;
    (void)user;
    torn += (uint32_t)(op >> 32) != (uint32_t)~number || !number || number > WRITTEN;
    if (number && number <= WRITTEN) drawn[number]++;
    if (number > newest) newest = number;
    return "entry";
}

static uint64_t read_ticks(void *user) { (void)user; return now; }

static npuprof_npu_desc describe(void)
{
    npuprof_npu_desc d = { .read_ticks = read_ticks, .counter = { .hz = 1000000000 } };
    npuprof_npu_ring *const r = &d.ring;
    *r = (npuprof_npu_ring){
        .memory = memory.bytes, .memory_bytes = sizeof memory, .first = FIRST, .entry_bytes = ENTRY,
        .count = COUNT, .end = { .offset = 8, .width_bytes = 8 },
        .op = { .offset = 4, .width_bytes = 4, .hi_offset = 24, .hi_width_bytes = 4 }, .op_name = name_of,
        .producer = { .in_memory = rule < PHASES,
                      .width_bytes = rule == LOW_FIRST || rule == HIGH_FIRST ? 8 : 4 } };
    if (rule == SLOT_FIRST || rule == LAPS_FIRST) {
        r->producer.unit = NPUPROF_NPU_INDEX_SLOT;
        r->producer.has_laps = true;
        r->producer.laps_offset = 4;
    }
    if (rule == PHASES) {
        r->ready = NPUPROF_NPU_READY_PHASE;
        r->phase.width_bytes = 4;
        r->phase.bits = 1;
        r->phase_first = 1;
    }
    if (rule == SEQUENCES) {
        r->ready = NPUPROF_NPU_READY_SEQUENCE;
        r->sequence.width_bytes = 4;
        r->sequence.bits = 16;
        r->sequence_first = 1;
    }
    if (rule == VALIDS) {
        r->ready = NPUPROF_NPU_READY_VALID;
        r->valid.width_bytes = 4;
        r->valid_value = 1;
    }
    return d;
}

/* Of a whole lap that the driver has not cleared yet, the library says that nobody clears it. */
static void drain(void)
{
    const npuprof_result r = npuprof_npu_drain(&npu);
    if (rule != VALIDS || r != NPUPROF_ERR_NPU_RING) CHECK_INT(r, NPUPROF_OK);
}

static void rule_of(const void *user)
{
    npuprof_stats stats;
    uint64_t seen = 0, twice = 0;
    rule = *(const int *)user;
    if (rule <= HIGH_FIRST) put(0, rule == COUNTS ? 4 : 8, UINT32_MAX - 2047u);
    const npuprof_npu_desc d = describe();
    npuprof_start(1);
    const npuprof_result opened = npuprof_npu_open(&npu, &d);
    if (opened != NPUPROF_OK) check_failed_(__FILE__, __LINE__, "%s", npuprof_result_string(opened));
    CHECK_STOP(opened == NPUPROF_OK);
    while (written != WRITTEN) {
        acts = true;
        drain();
        acts = false;
        if (any(4)) continue;            /* nobody reads for a while */
        for (unsigned i = any(rule == PHASES ? 2 * COUNT : 6 * COUNT); i; i--) device_goes_on();
    }
    drain();
    npuprof_npu_close(&npu);
    npuprof_get_stats(&stats);
    const uint64_t lost = stats.lost_by_cause[NPUPROF_LOST_RING];
    for (unsigned i = 1; i <= WRITTEN; i++) {
        seen += drawn[i] != 0;
        twice += drawn[i] > 1;
    }
    CHECK_UINT(torn, 0);
    CHECK_UINT(twice, 0);
    /* Two laps later the phases are the same. */
    if (rule == PHASES) CHECK(seen + lost <= WRITTEN && seen > WRITTEN / 4);
    else CHECK_UINT(seen + lost, WRITTEN);
    if (rule == VALIDS) CHECK_UINT(lost, 0);         /* the device waits for the driver */
    printf("note %s: %" PRIu64 " drawn, %" PRIu64 " lost\n", rules[rule], seen, lost);
    if (check_failures_) printf("  by %s\n", rules[rule]);
}

static void between_any_two_loads(void)
{
    for (int i = 0; i < RULES; i++) check_in_child(rule_of, &i);
}

CHECK_MAIN(CASE(between_any_two_loads))
