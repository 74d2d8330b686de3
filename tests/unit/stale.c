/* test: cc=-O2 - behind what was recorded stands a 0, whoever writes it, and whatever the arena held before
   SPDX-License-Identifier: MIT */
#include "trace.h"
#define NPUPROF_IMPLEMENTATION
#include "npuprof.h"
#include "recorded.h"

enum { BYTES = 4 << 20, ROUNDS = 400, WRITERS = 19 };
typedef enum before { OTHER_BYTES, SPANS, ARGUMENTS, STRINGS, BEFORES } before;
static const char *const before_names[] = { "other bytes", "spans", "arguments", "strings" };

/* Memory as an arena may find it: full of what could be records. */
static void *used_memory(before what)
{
    const uint64_t now = (uint64_t)1 << 40, string = (uint64_t)200 << 32 | (uint64_t)1 << 4 | NPUPROF_ARG_STR;
    const npuprof_unit_ units[BEFORES] = {
        { UINT64_C(0xA5A5A5A5A5A5A5A5), UINT64_C(0xA5A5A5A5A5A5A5A5) },
        { now << NPUPROF_ID_BITS_ | 1, now + 1 },
        { (uint64_t)NPUPROF_ARG_UINT << NPUPROF_ID_BITS_ | NPUPROF_CONTROL_ARG_, 7 },
        { string << NPUPROF_ID_BITS_ | NPUPROF_CONTROL_ARG_, UINT64_C(0x4141414141414141) },
    };
    npuprof_unit_ *const memory = (npuprof_unit_ *)malloc(BYTES);
    for (size_t i = 0; memory && i < BYTES / sizeof *memory; i++) memory[i] = units[what];
    return memory;
}

static void device_records(int n)
{
    static npuprof_device_texts_ texts;
    static const npuprof_link_ link = { .position = 3, .ticks = 1, .slot = 1, .root_position = 3 };
    const npuprof_device_event_ event = { .category = "d", .name = "kernel", .start = (uint64_t)n + 1,
                                          .end = (uint64_t)n + 2, .link = n % 2 ? &link : NULL };
    npuprof_device_span_(&event, PROF_NO_ARGS);
    npuprof_device_record_(&texts, n % 3 == 0, &event, n % 5 ? PROF_ARGS(PROF_INT("n", n)) : PROF_NO_ARGS);
}

/* By its number, one that records so; returns how many spans and events. */
static unsigned record(int writer, int n)
{
    static const char text[] = "0123456789abcdefghijklmnopqrstuvwxyz0123456789abcdefghijklmnopqrstuvwxyz";
    const char *const some = text + (sizeof text - 1) - (size_t)n % (sizeof text - 1);
    const npuprof_device device = { "npu", NULL, NULL, false };
    char name[24];
    snprintf(name, sizeof name, "name %d", n % 50);
    switch (writer) {
    case 0: { PROF_SCOPE("plain"); } return 1;
    case 1: { PROF_SCOPE_ARGS("c", "one", PROF_ARGS(PROF_INT("n", n))); } return 1;
    case 2: { PROF_SCOPE_ARGS("c", "two", PROF_ARGS(PROF_INT("n", n), PROF_REAL("x", 0.5))); } return 1;
    case 3: { PROF_SCOPE_ARGS("c", "text", PROF_ARGS(PROF_INT("n", n), PROF_STR("s", some))); } return 1;
    case 4: PROF_INSTANT("c", "instant", PROF_NO_ARGS); return 1;
    case 5: PROF_INSTANT("c", "with text", PROF_ARGS(PROF_STR("s", some), PROF_UINT("n", n))); return 1;
    case 6: PROF_COUNTER("count", n); PROF_COUNTER("real", n * 0.5); return 2;
    case 7: PROF_FLOW_OUT(n); PROF_FLOW_IN(n); return 2;
    case 8: npuprof_span("track", "c", name, n, n + 1, PROF_ARGS(PROF_STR("s", some))); return 1;
    case 9: npuprof_async_begin("c", name, 1); npuprof_async_end(1); return 2;
    case 10: PROF_ALLOC(&device, 100, "a"); PROF_FREE(&device, 100, "a"); return 2;
    case 11: { PROF_SCOPE("result"); PROF_RESULT(PROF_INT("n", n), PROF_STR("s", some)); } return 1;
    case 12: PROF_BEGIN("c", name); PROF_END(); return 1;
    case 13: { PROF_PHASES("first"); PROF_NEXT("second"); PROF_NEXT("third"); } return 3;
    case 14: { PROF_OPERATOR(n, name); } return 1;
    case 15: WITH_BASE_PROFILER(NULL, name, "c", PROF_ARGS(PROF_STR("s", some)), (void)0); return 1;
    case 16: npuprof_instant("c", name, PROF_ARGS(PROF_STR("s", some))); return 1;
    case 17: npuprof_counter_int(name, n); npuprof_counter_real(name, 1.5); return 2;
    default: device_records(n); return 2;
    }
}

static bool ends_here(const npuprof_slot_ *slot) { return NPUPROF_LOAD_(&slot->cursor->w0) == 0; }

/* Who records: the thread, a handler that interrupted a record, or the two by turns. */
typedef enum by { THREAD, HANDLER, BOTH } by;
typedef struct plan { before what; by who; } plan;

/* Does each chunk with records still have the head that it got? */
static bool heads_are_whole(void)
{
    bool whole = true;
    for (uint32_t i = 0; i < npuprof_arena_.header->chunk_next; i++) {
        const npuprof_chunk_ *const chunk = npuprof_chunk_at_(i);
        const bool has_records = chunk->state == NPUPROF_CHUNK_OPEN || chunk->state == NPUPROF_CHUNK_RETIRED;
        whole = whole && (!has_records || (chunk->base && chunk->owner));
    }
    return whole;
}

/* Is anything of what the memory held before in the records of the slot's chunk, as behind a text? Six such
   bytes, because stamps may have three: for a tenth of a second in two hours each start ends in two, and the
   end behind it often begins with one. */
static bool holds_other_bytes(npuprof_slot_ *slot)
{
    const uint8_t *p = (const uint8_t *)npuprof_chunk_units_(npuprof_slot_current_chunk_(slot));
    unsigned run = 0;
    for (; p < (const uint8_t *)slot->cursor && run < 6; p++) run = *p == 0xA5 ? run + 1 : 0;
    return run == 6;
}

/* Each writer fills some chunks, with a span open around. */
static void write_all(const void *user)
{
    const by who = ((const plan *)user)->who;
    const before what = ((const plan *)user)->what;
    uint64_t executed = 1;
    begin_in(used_memory(what), BYTES, NPUPROF_KEEP_OLDEST);
    PROF_BEGIN("c", "outer");
    npuprof_slot_ *const slot = npuprof_slot_mine_();
    for (int writer = 0; writer < WRITERS; writer++) {
        bool ends = true;
        for (int n = 0; n < ROUNDS; n++) {
            slot->busy = who == HANDLER || (who == BOTH && n % 2);
            executed += record(writer, n);
            npuprof_slot_ *const written = slot->busy ? slot->nested : slot;
            ends = ends && ends_here(written);
            if (what == OTHER_BYTES && n % 50 == 49) ends = ends && !holds_other_bytes(written);
            slot->busy = 0;
        }
        if (!ends) check_failed_(__FILE__, __LINE__, "writer %d, over %s", writer, before_names[what]);
    }
    const npuprof_stats s = stats_now();
    CHECK_UINT(s.recorded, executed);
    CHECK_UINT(s.lost, 0);
    CHECK(heads_are_whole());
}

static void all_writers(by who)
{
    for (int what = 0; what < BEFORES; what++) {
        const plan p = { (before)what, who };
        check_in_child(write_all, &p);
    }
}

static void by_threads(void) { all_writers(THREAD); }
static void by_handlers(void) { all_writers(HANDLER); }
static void by_both(void) { all_writers(BOTH); }

/* Arguments whose keys find no place in the table are written in part, and given up. */
static void given_up(void)
{
    char key[600];
    begin_in(used_memory(ARGUMENTS), 65536, NPUPROF_KEEP_NEWEST);
    PROF_BEGIN("c", "outer");
    for (int n = 0; n < 200; n++) {
        memset(key, 'k', sizeof key);
        snprintf(key + 500, sizeof key - 500, "%d", n);
        const npuprof_arg list[2] = { npuprof_int_("known", n), npuprof_int_(key, n) };
        npuprof_instant("c", "instant", npuprof_args_(list, 2));
        CHECK_STOP(ends_here(npuprof_slot_mine_()));
        npuprof_result_(&(npuprof_keys_){ 0 }, npuprof_args_(list, 2));
        CHECK_STOP(ends_here(npuprof_slot_mine_()));
    }
    CHECK(stats_now().lost_by_cause[NPUPROF_LOST_ARGUMENTS] > 20);
}

CHECK_MAIN(CASE(by_threads), CASE(by_handlers), CASE(by_both), CASE(given_up))
