/* The moment that divides two windows of a schedule, when a thread is in the middle of a record. Its clock
   stands still while it is read, so that this moment is always hit.
   SPDX-License-Identifier: MIT */
#define _GNU_SOURCE
#include <pthread.h>
#include <stdint.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

static uint64_t now(void);
#define NPUPROF_NOW() now()
#define NPUPROF_NOW_HZ 1000000000
#include "trace.h"
#define NPUPROF_IMPLEMENTATION
#include "npuprof.h"

static __thread int reads_slowly;
static int is_reading;

static uint64_t now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    if (reads_slowly) {
        reads_slowly = 0;
        __atomic_store_n(&is_reading, 1, __ATOMIC_RELEASE);
        usleep(100000);
    }
    return (uint64_t)t.tv_sec * 1000000000 + (uint64_t)t.tv_nsec;
}

static void *record(void *unused)
{
    { PROF_SCOPE("first"); }
    reads_slowly = 1;
    { PROF_SCOPE("late"); }
    return unused;
}

static void middle_of_a_record(void)
{
    pthread_t thread;
    npuprof_capture capture = { 0 };
    npuprof_desc desc = { 0 };
    capture.schedule = "active=1,repeat=1";
    desc.capture = &capture;
    desc.output_path = check_path("t.json");
    CHECK_INT(npuprof_init(&desc), NPUPROF_OK);
    CHECK_INT(npuprof_start(1), NPUPROF_OK);
    pthread_create(&thread, NULL, record, NULL);
    while (!__atomic_load_n(&is_reading, __ATOMIC_ACQUIRE)) usleep(1000);
    const int64_t begin = npuprof_now_ns();
    { PROF_INFERENCE("inference"); }
    const int64_t took = npuprof_now_ns() - begin;
    CHECK(!npuprof_is_recording());
    pthread_join(thread, NULL);
    if (took > 900000000) CHECK_SKIP("the thread did not run for a second: no longer is waited");
    json_node *const t = trace_load(check_path("t.0.json"));
    CHECK(trace_event(t, "X", "first", 0) != NULL);
    CHECK(trace_event(t, "X", "inference", 0) != NULL);
    CHECK(trace_event(t, "X", "late", 0) != NULL);
}

CHECK_MAIN(CASE(middle_of_a_record))
