/* test: alone time=200 - begin and end as calls on several threads and in handlers: begun = drawn + lost
   SPDX-License-Identifier: MIT */
#include "trace.h"
#define NPUPROF_IMPLEMENTATION
#define NPUPROF_ARENA_BYTES (512 * 1024 * 1024)
#include "npuprof.h"
#include "npuprof_npu.h"
#include "at_once.h"

static npuprof_npu npu;

static uint64_t ticks_now(void *unused)
{
    (void)unused;
    return real_ns();
}

static void open_device(void)
{
    npuprof_npu_desc desc = { 0 };
    desc.read_ticks = ticks_now;
    npuprof_start(1);
    CHECK_STOP(npuprof_npu_open(&npu, &desc) == NPUPROF_OK);
}

/* Handles on their way from who begins to who ends. */
enum { THREADS = 8, SLOTS = 61 };
static struct { uint32_t handle[SLOTS]; } mail[THREADS];
static uint64_t begun, ended, refused;

/* Ends what it finds in other threads' boxes, in the order of their places, which is no order. */
static void end_some(unsigned me, unsigned round)
{
    for (unsigned other = 1; other < THREADS; other++) {
        uint32_t *place = &mail[(me + other) % THREADS].handle[(round * 7 + other) % SLOTS];
        const uint32_t handle = __atomic_exchange_n(place, 0, __ATOMIC_ACQ_REL);
        if (!handle) continue;
        const npuprof_result result = npuprof_npu_end(&npu, handle);
        __atomic_fetch_add(result == NPUPROF_OK ? &ended : &refused, 1, __ATOMIC_RELAXED);
        if (round % 1000 == 0) CHECK_INT(npuprof_npu_end(&npu, handle), NPUPROF_ERR_ARGUMENT);
    }
}

static unsigned pairs;
static void *begin_and_end(void *number)
{
    const unsigned me = (unsigned)(uintptr_t)number;
    for (unsigned i = 0; i < pairs / THREADS; i++) {
        uint32_t *place = &mail[me].handle[i % SLOTS];
        if (__atomic_load_n(place, __ATOMIC_RELAXED)) {          /* nobody took it: end it here */
            const uint32_t old = __atomic_exchange_n(place, 0, __ATOMIC_ACQ_REL);
            if (old) {
                CHECK_INT(npuprof_npu_end(&npu, old), NPUPROF_OK);
                __atomic_fetch_add(&ended, 1, __ATOMIC_RELAXED);
            }
        }
        const uint32_t handle = npuprof_npu_begin(&npu, me, "call", "NPU", PROF_NO_ARGS);
        __atomic_fetch_add(&begun, 1, __ATOMIC_RELAXED);
        if (handle) __atomic_store_n(place, handle, __ATOMIC_RELEASE);
        end_some(me, i);
    }
    return NULL;
}

static uint64_t counted(const char *format)
{
    static char line[4096];
    const char *path = check_path(format);
    uint64_t count = 0;
    CHECK_INT(npuprof_dump(path), NPUPROF_OK);
    FILE *file = fopen(path, "r");
    CHECK_STOP(file);
    while (fgets(line, sizeof line, file)) count += strstr(line, "\"stamp\":\"sampled\"") != NULL;
    fclose(file);
    return count;
}

/* Ended on other threads, out of order: what was begun is drawn, or counted. More are open than fit. */
static void of_pairs(unsigned count)
{
    npuprof_stats stats;
    pairs = count;
    open_device();
    at_once(THREADS, begin_and_end);
    for (int i = 0; i < THREADS * SLOTS; i++) {
        const uint32_t handle = mail[i / SLOTS].handle[i % SLOTS];
        if (!handle) continue;
        CHECK_INT(npuprof_npu_end(&npu, handle), NPUPROF_OK);
        ended++;
    }
    npuprof_npu_close(&npu);
    npuprof_stop();
    npuprof_get_stats(&stats);
    const uint64_t lost = stats.lost_by_cause[NPUPROF_LOST_CALLS];
    CHECK_UINT(begun, pairs);
    CHECK_UINT(refused, 0);
    CHECK_UINT(ended + lost, begun);
    CHECK_UINT(stats.lost, lost);
    CHECK_UINT(counted("t.json") + lost, begun);
}

static void ten_thousand_pairs(void) { of_pairs(10000); }
/* A tenth of them where each takes ten times as long. */
static void a_million_pairs(void) { of_pairs(CHECK_SANITIZED ? 100000 : 1000000); }

/* Two threads on one sampled device, each ends its own at once: none is missing. */
static void *two(void *unused)
{
    (void)unused;
    for (int i = 0; i < 5000; i++)
        CHECK_INT(npuprof_npu_end(&npu, npuprof_npu_begin(&npu, 0, "two", "NPU", PROF_NO_ARGS)), NPUPROF_OK);
    return NULL;
}

static void none_missing(void)
{
    npuprof_stats stats;
    open_device();
    at_once(2, two);
    npuprof_npu_close(&npu);
    npuprof_stop();
    npuprof_get_stats(&stats);
    CHECK_UINT(stats.lost, 0);
    CHECK_UINT(counted("t.json"), 10000);
}

static uint32_t from_handler, to_handler;
static uint64_t handled, in_handler, busy_ends;

/* Ends what the program began, and begins what it will end. */
static void on_signal(int number)
{
    (void)number;
    const uint32_t mine = __atomic_exchange_n(&to_handler, 0, __ATOMIC_ACQ_REL);
    if (mine) busy_ends += npuprof_npu_end(&npu, mine) == NPUPROF_ERR_NPU_BUSY;
    if (!__atomic_load_n(&from_handler, __ATOMIC_ACQUIRE)) {
        const uint32_t handle = npuprof_npu_begin(&npu, 1, "in handler", "NPU", PROF_NO_ARGS);
        in_handler += handle != 0;
        __atomic_store_n(&from_handler, handle, __ATOMIC_RELEASE);
    }
    handled++;
}

static void in_handlers(void)
{
    npuprof_stats stats;
    uint64_t outside = 0;
    open_device();
    interrupt_every(500, on_signal);
    for (const uint64_t end = real_ns() + 10000000000u; handled < 200 && real_ns() < end;) {
        const uint32_t handle = npuprof_npu_begin(&npu, 0, "outside", "NPU", PROF_NO_ARGS);
        outside += handle != 0;
        __atomic_store_n(&to_handler, handle, __ATOMIC_RELEASE);
        const uint32_t other = __atomic_exchange_n(&from_handler, 0, __ATOMIC_ACQ_REL);
        (void)npuprof_npu_end(&npu, other);
        const uint32_t left = __atomic_exchange_n(&to_handler, 0, __ATOMIC_ACQ_REL);
        (void)npuprof_npu_end(&npu, left);
    }
    interrupt_every(0, NULL);
    (void)npuprof_npu_end(&npu, to_handler);
    (void)npuprof_npu_end(&npu, from_handler);
    npuprof_npu_close(&npu);
    npuprof_stop();
    npuprof_get_stats(&stats);
    const uint64_t busy = stats.lost_by_cause[NPUPROF_LOST_BUSY];
    CHECK(handled > 20 && in_handler > 0);
    CHECK_UINT(counted("t.json") + busy, outside + in_handler);
    CHECK_UINT(stats.lost, busy);
    CHECK_UINT(npu.lock_, 0);
}

CHECK_MAIN(CASE(ten_thousand_pairs), CASE_THOROUGH(a_million_pairs), CASE(none_missing),
           CASE_THOROUGH(in_handlers))
