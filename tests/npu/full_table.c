/* test: thorough - a clock anchor for which the table has no place, read while another thread writes the next
   one over it. The device counts by the trace's own clock: each anchor is as exact as it says
   SPDX-License-Identifier: MIT */
#include "at_once.h"
#define NPUPROF_IMPLEMENTATION
#define NPUPROF_ARENA_BYTES 262144u
#define NPUPROF_NOW() real_ns()
#define NPUPROF_NOW_HZ 1000000000
#include "npuprof.h"
#include "npuprof_npu.h"

/* What the anchors leave of the distance between the device's clock and npuprof_now_ns(): from, to. */
typedef struct seen { int64_t from, to; uint64_t anchors, torn; } seen;

static int finish;
static npuprof_npu npu;

static uint64_t exact_ticks(void *unused)
{
    (void)unused;
    return real_ns();
}

static void *take_anchors(void *unused)
{
    (void)unused;
    while (!__atomic_load_n(&finish, __ATOMIC_RELAXED))
        CHECK_INT(npuprof_npu_sync(&npu), NPUPROF_ERR_TABLE_FULL);
    return NULL;
}

static void fill_table(void)
{
    static char word[1000];
    npuprof_stats stats = { 0 };
    memset(word, 'a', sizeof word - 1);
    for (unsigned i = 0; !stats.lost_by_cause[NPUPROF_LOST_NAMES]; i++) {
        snprintf(word + 900, 90, "%u", i);
        PROF_BEGIN("c", word + (i < 16000 ? 0 : 890));
        PROF_END();
        if (i % 1024 == 0) npuprof_get_stats(&stats);
    }
    for (int i = 0; i < 100 && npuprof_npu_sync(&npu) != NPUPROF_ERR_TABLE_FULL; i++) {}
}

static bool look(void *user, const npuprof_read_anchor *a)
{
    seen *const s = (seen *)user;
    const int64_t from = a->before_ns - (int64_t)a->ticks, to = a->after_ns - (int64_t)a->ticks;
    s->anchors++;
    if (from > s->to || to < s->from) {
        s->torn++;
        return true;
    }
    if (from > s->from) s->from = from;
    if (to < s->to) s->to = to;
    return true;
}

/* Who reads sees an anchor or the next one, not half of each. */
static void one_of_them(void)
{
    const npuprof_npu_desc desc = { .read_ticks = exact_ticks, .brackets = 1 };
    pthread_t thread;
    seen s = { INT64_MIN, INT64_MAX, 0, 0 };
    uint64_t place = 0;
    npuprof_start(1);
    CHECK_STOP(npuprof_npu_open(&npu, &desc) == NPUPROF_OK);
    fill_table();
    pthread_create(&thread, NULL, take_anchors, NULL);
    for (const uint64_t end = real_ns() + 3000000000u; real_ns() < end;)
        CHECK_INT(npuprof_read_anchors(1, &place, look, &s), NPUPROF_OK);
    __atomic_store_n(&finish, 1, __ATOMIC_RELAXED);
    pthread_join(thread, NULL);
    printf("note %" PRIu64 " anchors, the clocks apart within %" PRId64 " ns\n", s.anchors, s.to - s.from);
    CHECK(s.anchors > 10);
    CHECK_UINT(s.torn, 0);
    npuprof_npu_close(&npu);
}

CHECK_MAIN(CASE(one_of_them))
