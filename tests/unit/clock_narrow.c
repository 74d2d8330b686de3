/* a user's clock of 24 bits is extended over its wraps
   SPDX-License-Identifier: MIT */
#include "trace.h"
#include <pthread.h>
static uint32_t fake_ticks = 0xFFFF00;
/* comes between what is before a reading and what is behind it, once */
static void (*while_it_reads)(void);
static uint32_t read_ticks(void)
{
    void (*const run)(void) = __atomic_exchange_n(&while_it_reads, NULL, __ATOMIC_RELAXED);
    if (run) run();
    return __atomic_load_n(&fake_ticks, __ATOMIC_RELAXED) & 0xFFFFFFu;
}
#define NPUPROF_NOW() read_ticks()
#define NPUPROF_NOW_HZ 1000000
#define NPUPROF_NOW_BITS 24
#define NPUPROF_IMPLEMENTATION
#include "npuprof.h"
#include "recorded.h"

/* One tick is one microsecond. */
static void wraps(void)
{
    npuprof_start(1);
    {
        PROF_SCOPE("over many wraps");
        for (int i = 0; i < 10; i++) { PROF_SCOPE("step"); fake_ticks += 0xDFFFFF; }
    }
    {
        PROF_SCOPE("one wrap");
        fake_ticks = (fake_ticks & ~0xFFFFFFu) + 0xFFFFF0;
        { PROF_SCOPE("inside"); fake_ticks += 0x20; }
    }
    json_node *t = written(), *e = trace_event(t, "X", "over many wraps", 0);
    CHECK_INT(trace_dur(e), INT64_C(10) * 0xDFFFFF * 1000);
    for (size_t i = 0; i < 10; i++) {
        CHECK_INT(trace_dur(trace_event(t, "X", "step", i)), INT64_C(0xDFFFFF) * 1000);
        CHECK_INT(trace_start(trace_event(t, "X", "step", i)) - trace_start(e),
                  INT64_C(0xDFFFFF) * 1000 * (int64_t)i);
    }
    CHECK_INT(trace_dur(trace_event(t, "X", "inside", 0)), 0x20 * 1000);
    trace_check_nesting(t);
}

static void instants(void)
{
    npuprof_start(1);
    for (int i = 0; i < 100; i++) { PROF_INSTANT("c", "i", PROF_NO_ARGS); fake_ticks += 0x800001; }
    json_node *t = written();
    for (size_t i = 1; i < 100; i++)
        CHECK_INT(trace_start(trace_event(t, "i", "i", i)) - trace_start(trace_event(t, "i", "i", i - 1)),
                  INT64_C(0x800001) * 1000);
}

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static void *moves_the_clock(void *unused)
{
    (void)unused;
    for (int i = 0; i < 2000; i++) {
        pthread_mutex_lock(&lock);
        { PROF_SCOPE("s"); __atomic_fetch_add(&fake_ticks, 0x10000, __ATOMIC_RELAXED); }
        pthread_mutex_unlock(&lock);
    }
    return NULL;
}

/* The extension is of the process, not of one thread: two threads take turns, each sleeps over wraps. */
static void threads(void)
{
    pthread_t a, b;
    npuprof_start(1);
    CHECK_STOP(!pthread_create(&a, NULL, moves_the_clock, NULL));
    CHECK_STOP(!pthread_create(&b, NULL, moves_the_clock, NULL));
    pthread_join(a, NULL);
    pthread_join(b, NULL);
    json_node *t = written();
    int64_t first = INT64_MAX, last = 0;
    CHECK_UINT(trace_count(t, "X", "s"), 4000);
    for (json_node *e = json_get(t, "traceEvents")->first; e; e = e->next) {
        const char *ph = json_text(json_get(e, "ph"));
        if (!ph || *ph != 'X') continue;
        if (trace_start(e) < first) first = trace_start(e);
        if (trace_end(e) > last) last = trace_end(e);
        if (trace_dur(e) != INT64_C(0x10000) * 1000) {
            CHECK_INT(trace_dur(e), INT64_C(0x10000) * 1000);
            break;
        }
    }
    CHECK_INT(last - first, INT64_C(4000) * 0x10000 * 1000);
}

static int64_t start_of(json_node *t, const char *name) { return trace_start(trace_event(t, "i", name, 0)); }

/* A CPU reads the clock before it knows what another thread has stored: the reading is a little older than
   that. */
static void older_than_stored(void)
{
    npuprof_start(1);
    PROF_INSTANT("c", "first", PROF_NO_ARGS);
    fake_ticks -= 5;
    PROF_INSTANT("c", "read before", PROF_NO_ARGS);
    fake_ticks += 100;
    PROF_INSTANT("c", "last", PROF_NO_ARGS);
    json_node *t = written();
    CHECK_INT(start_of(t, "read before") - start_of(t, "first"), 0);
    CHECK_INT(start_of(t, "last") - start_of(t, "first"), 95 * 1000);
}

/* A thread stops between reading the old value and storing the new one, while others see some periods
   pass. */
static void some_periods_pass(void)
{
    for (int i = 0; i < 6; i++) {
        fake_ticks += 0x800000;
        PROF_INSTANT("c", "meanwhile", PROF_NO_ARGS);
    }
}

static void stopped_for_periods(void)
{
    npuprof_start(1);
    PROF_INSTANT("c", "first", PROF_NO_ARGS);
    while_it_reads = some_periods_pass;
    PROF_INSTANT("c", "stopped", PROF_NO_ARGS);
    PROF_INSTANT("c", "last", PROF_NO_ARGS);
    json_node *t = written();
    CHECK_INT(start_of(t, "stopped") - start_of(t, "first"), INT64_C(6) * 0x800000 * 1000);
    CHECK_INT(start_of(t, "last") - start_of(t, "stopped"), 0);
}

CHECK_MAIN(CASE(wraps), CASE(instants), CASE(threads), CASE(older_than_stored), CASE(stopped_for_periods))
