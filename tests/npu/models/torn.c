/* test: alone thorough - an index that a device writes in two stores, 1 us apart, while others read it:
   nothing is drawn twice, nothing is missing that is not counted
   SPDX-License-Identifier: MIT */
#include "check.h"
#define NPUPROF_IMPLEMENTATION
#define NPUPROF_ARENA_BYTES (32 * 1024 * 1024)
#include "npuprof.h"
#include "npuprof_npu.h"
#include <pthread.h>
#include <time.h>

enum { SLOT_FIRST, LAPS_FIRST, LOW_FIRST, HIGH_FIRST, WAYS };
enum { COUNT = 64, ENTRY = 16, FIRST = 16, WRITTEN = CHECK_SANITIZED ? 3000 : 20000 };

static union { uint64_t align; unsigned char bytes[FIRST + COUNT * ENTRY]; } memory;
static unsigned way;
static int is_over;
static uint64_t stalls;
    /* times when the machine stopped the device between its two stores */
static npuprof_npu npu;

static uint64_t now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

static uint64_t read_ticks(void *user) { (void)user; return now(); }
static void wait_us(unsigned us) { for (const uint64_t end = now() + 1000 * us; now() < end;) {} }

static void store32(size_t at, uint32_t v)
{
    __atomic_store_n((uint32_t *)(void *)(memory.bytes + at), v, __ATOMIC_RELEASE);
}

static void store64(size_t at, uint64_t v)
{
    __atomic_store_n((uint64_t *)(void *)(memory.bytes + at), v, __ATOMIC_RELEASE);
}

/* The index before and after, in two stores. */
static void announce(uint64_t written)
{
    const uint64_t slot = written % COUNT, laps = (written - 1) / COUNT;
    const uint64_t shown = UINT32_MAX - 1000u + written;         /* its high half changes soon */
    const uint32_t first = (uint32_t)(way == SLOT_FIRST ? slot : way == LAPS_FIRST ? laps
                                      : way == LOW_FIRST ? shown : shown >> 32);
    const uint32_t second = (uint32_t)(way == SLOT_FIRST ? laps : way == LAPS_FIRST ? slot
                                       : way == LOW_FIRST ? shown >> 32 : shown);
    const bool low = way == SLOT_FIRST || way == LOW_FIRST;
    store32(low ? 0 : 4, first);
    const uint64_t from = now();
    wait_us(1);
    store32(low ? 4 : 0, second);
    if (now() - from > 20000) stalls++;
}

static void *device(void *unused)
{
    (void)unused;
    for (uint64_t i = 0; i < WRITTEN; i++) {
        const size_t at = FIRST + i % COUNT * ENTRY;
        store64(at, now() - 10);
        store64(at + 8, i + 1);
        announce(i + 1);
        wait_us(4);
    }
    __atomic_store_n(&is_over, 1, __ATOMIC_RELEASE);
    return NULL;
}

static void two_stores(void)
{
    npuprof_npu_desc d;
    pthread_t thread;
    uint64_t bad = 0, drains = 0;
    npuprof_result last_bad = NPUPROF_OK;
    const bool is_count = way >= LOW_FIRST;
    memset(&d, 0, sizeof d);
    d.read_ticks = read_ticks;
    d.counter.hz = 1000000000;
    d.ring.memory = memory.bytes;
    d.ring.memory_bytes = sizeof memory.bytes;
    d.ring.first = FIRST;
    d.ring.entry_bytes = ENTRY;
    d.ring.count = COUNT;
    d.ring.start.width_bytes = 8;
    d.ring.job.offset = 8;
    d.ring.job.width_bytes = 8;
    d.ring.producer.in_memory = true;
    d.ring.producer.width_bytes = is_count ? 8 : 4;
    d.ring.producer.unit = is_count ? NPUPROF_NPU_INDEX_COUNT : NPUPROF_NPU_INDEX_SLOT;
    d.ring.producer.has_laps = !is_count;
    d.ring.producer.laps_offset = 4;
    if (is_count) store64(0, UINT32_MAX - 1000u);
    npuprof_start(1);
    const npuprof_result opened = npuprof_npu_open(&npu, &d);
    if (opened != NPUPROF_OK) check_failed_(__FILE__, __LINE__, "%s", npuprof_result_string(opened));
    CHECK_STOP(opened == NPUPROF_OK);
    CHECK_INT(npuprof_npu_drain(&npu), NPUPROF_OK);
    pthread_create(&thread, NULL, device, NULL);
    for (bool last = false; !last; drains++) {
        last = __atomic_load_n(&is_over, __ATOMIC_ACQUIRE);
        const npuprof_result result = npuprof_npu_drain(&npu);
        if (result == NPUPROF_OK) continue;
        bad++;
        last_bad = result;
    }
    pthread_join(thread, NULL);
    npuprof_npu_close(&npu);
    npuprof_stats stats;
    npuprof_get_stats(&stats);
    if (stalls) CHECK_SKIP("the thread that plays the device was stopped inside a store; run it alone");
    if (bad) check_failed_(__FILE__, __LINE__, "%" PRIu64 " of %" PRIu64 " drains gave %s", bad, drains,
                           npuprof_result_string(last_bad));
    CHECK_UINT(stats.recorded + stats.lost_by_cause[NPUPROF_LOST_RING], WRITTEN);
    printf("note %" PRIu64 " lost of %d in %" PRIu64 " drains\n", stats.lost_by_cause[NPUPROF_LOST_RING],
           WRITTEN,
           drains);
}

static void slot_then_laps(void) { way = SLOT_FIRST; two_stores(); }
static void laps_then_slot(void) { way = LAPS_FIRST; two_stores(); }
static void low_then_high(void) { way = LOW_FIRST; two_stores(); }
static void high_then_low(void) { way = HIGH_FIRST; two_stores(); }

CHECK_MAIN(CASE(slot_then_laps), CASE(laps_then_slot), CASE(low_then_high),
           CASE(high_then_low))
