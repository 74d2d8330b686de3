/* npuprof_read() while its program records on: from the callback, and on other threads
   SPDX-License-Identifier: MIT */
#define NPUPROF_IMPLEMENTATION
#include "npuprof.h"
#include "recorded.h"

enum { ARENA = 8192, IDS = 1 << 20 };      /* words of an arena: 64 KiB */

static npuprof_cursor cursor;
static uint64_t memory[ARENA], ids[IDS];
static uint64_t lost, delivered;

static void burst(uint32_t n)
{
    for (uint32_t i = 0; i < n; i++) { PROF_SCOPE("burst"); }
}

static bool keep(void *user, const npuprof_read_span *span)
{
    (void)user;
    CHECK_STOP(delivered < IDS);
    ids[delivered++] = span->id;
    return true;
}

static npuprof_read_result read_by(bool (*fn)(void *user, const npuprof_read_span *span))
{
    npuprof_read_result r = { .struct_size = sizeof r };
    const uint64_t before = delivered;
    CHECK_INT(npuprof_read(&cursor, NPUPROF_READ_ALL, fn, NULL, &r), NPUPROF_OK);
    CHECK_UINT(r.spans, delivered - before);
    lost += r.lost;
    return r;
}

static int by_id(const void *a, const void *b)
{
    const uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
    return x < y ? -1 : x > y;
}

/* All that was executed was delivered, once, or is counted as lost. */
static void each_once(uint64_t open)
{
    const npuprof_stats s = stats_now();
    CHECK_UINT(delivered + lost + open, s.recorded + s.lost);
    qsort(ids, delivered, sizeof *ids, by_id);
    for (uint64_t i = 1; i < delivered; i++) CHECK(ids[i] != ids[i - 1]);
}

/* ---- Callbacks that begin and end spans, and lap the cursor by bursts */

static uint32_t dice_state, depth;
static bool records_on;

static uint32_t dice(uint32_t sides)
{
    dice_state = dice_state * 1664525u + 1013904223u;
    return (uint32_t)((uint64_t)dice_state * sides >> 32);
}

static void record_something(void)
{
    if (depth < 20 && dice(3) == 0) {
        PROF_BEGIN("c", "long");
        depth++;
    } else if (depth && dice(2)) {
        PROF_END();
        depth--;
    }
    if (dice(2)) burst(dice(dice(8) ? 140 : 3000));
}

static bool keep_and_record(void *user, const npuprof_read_span *span)
{
    (void)keep(user, span);
    if (records_on && dice(60) == 0) record_something();
    return !records_on || dice(1000) != 0;
}


static void drawn(int when_full)
{
    begin_in(memory, sizeof memory, when_full);
    for (int i = 0; i < 200; i++) {
        record_something();
        records_on = dice(2) != 0;
        (void)read_by(keep_and_record);
    }
    records_on = false;
    each_once(read_by(keep).open);
}

static void drawn_oldest(void) { drawn(NPUPROF_KEEP_OLDEST); }
static void drawn_newest(void) { drawn(NPUPROF_KEEP_NEWEST); }
static void drawn_stream(void) { drawn(NPUPROF_STREAM); }

/* ---- A read ends beside who records */

/* Spans that an arena of 64 KiB holds, and that a chunk of it holds, at most. */
enum { FULL = ARENA / 2, CHUNK = 64, TOO_MANY = 20 * FULL };

static bool keep_and_record_one(void *user, const npuprof_read_span *span)
{
    burst(1);
    return keep(user, span) && delivered % TOO_MANY != 0;
}

static void one_for_each(void)
{
    begin_in(memory, sizeof memory, NPUPROF_KEEP_NEWEST);
    burst(1000);
    CHECK(read_by(keep_and_record_one).spans <= 1000 + CHUNK);
    CHECK_UINT(read_by(keep_and_record_one).lost, 0);
    (void)read_by(keep);
    each_once(0);
}

/* What was to be read is overwritten before: what did that comes with the next read. */
static bool keep_and_lap(void *user, const npuprof_read_span *span)
{
    if (delivered == 0) burst(2 * FULL);
    return keep(user, span) && delivered % TOO_MANY != 0;
}

static void overwritten_meanwhile(void)
{
    begin_in(memory, sizeof memory, NPUPROF_KEEP_NEWEST);
    burst(1000);
    const npuprof_read_result r = read_by(keep_and_lap);
    CHECK(r.spans >= 1 && r.spans <= 1000);
    CHECK(r.lost > FULL);
    CHECK(read_by(keep).spans > FULL / 2);
    each_once(0);
}

static void *a_burst(void *user)
{
    (void)user;
    burst(10);
    return NULL;
}

static bool keep_and_start_one(void *user, const npuprof_read_span *span)
{
    if (delivered == 0) on_a_thread(a_burst, NULL);
    return keep(user, span);
}

static void thread_meanwhile(void)
{
    begin_in(memory, sizeof memory, NPUPROF_KEEP_OLDEST);
    burst(300);
    CHECK_UINT(read_by(keep_and_start_one).spans, 300);
    CHECK_UINT(read_by(keep).spans, 10);
    each_once(0);
}

static int stop;
static void *record_on(void *user)
{
    (void)user;
    while (!NPUPROF_LOAD_SEQ_(&stop)) {
        PROF_SCOPE("outer");
        burst(20);
    }
    return NULL;
}

static bool keep_some(void *user, const npuprof_read_span *span)
{
    return keep(user, span) && delivered % TOO_MANY != 0;
}

static void threads_meanwhile(void)
{
    pthread_t threads[2];
    begin_in(memory, sizeof memory, NPUPROF_KEEP_NEWEST);
    for (int i = 0; i < 2; i++) CHECK_STOP(!pthread_create(&threads[i], NULL, record_on, NULL));
    for (int i = 0; i < 20; i++) {
        CHECK(read_by(keep_some).spans <= 2 * (FULL + CHUNK));
        usleep(1000);
    }
    NPUPROF_STORE_SEQ_(&stop, 1);
    for (int i = 0; i < 2; i++) pthread_join(threads[i], NULL);
    (void)read_by(keep);
    CHECK_UINT(read_by(keep).spans, 0);
    each_once(0);
}

/* ---- What a read costs */

static bool take_one(void *user, const npuprof_read_span *span)
{
    (void)user, (void)span;
    return false;
}

static bool pass(void *user, const npuprof_read_span *span)
{
    (void)user, (void)span;
    return true;
}

/* Of a read of so many spans, of which the read before took one; then some more began. `open_at`: how many
   are before one that stays open. */
static uint64_t cost_ns(uint32_t spans, uint32_t open_at)
{
    struct timespec before, behind;
    CHECK_INT(npuprof_clear(), NPUPROF_OK);
    npuprof_read_end(&cursor);
    for (uint32_t i = 0; i < spans; i++) {
        if (i == open_at) PROF_BEGIN("c", "open");
        PROF_SCOPE("s");
    }
    CHECK_INT(npuprof_read(&cursor, NPUPROF_READ_ALL, take_one, NULL, NULL), NPUPROF_OK);
    burst(2000);
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &before);
    CHECK_INT(npuprof_read(&cursor, NPUPROF_READ_ALL, pass, NULL, NULL), NPUPROF_OK);
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &behind);
    if (open_at < spans) PROF_END();
    return (uint64_t)(behind.tv_sec - before.tv_sec) * 1000000000 + (uint64_t)behind.tv_nsec
        - (uint64_t)before.tv_nsec;
}

/* A span that is open costs nothing for each of the spans behind it. */
static void cost_in_an_open_span(void)
{
    enum { SPANS = 300000 };
    npuprof_start(1);
    const uint64_t alone = cost_ns(SPANS, SPANS);
    const uint64_t inside = cost_ns(SPANS, 0), half_inside = cost_ns(SPANS, SPANS / 2);
    printf("note %d spans: %" PRIu64 " us, in an open one %" PRIu64 " us, half of them %" PRIu64 " us\n",
           SPANS, alone / 1000, inside / 1000, half_inside / 1000);
    CHECK(inside < 3 * alone && half_inside < 3 * alone);
}

CHECK_MAIN(CASE(drawn_oldest), CASE(drawn_newest), CASE(drawn_stream), CASE(one_for_each),
           CASE(overwritten_meanwhile), CASE(thread_meanwhile), CASE(threads_meanwhile),
           CASE(cost_in_an_open_span))
