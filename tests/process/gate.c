/* Capture control's gate: what was commanded before npuprof_init() holds behind it, and the program is told
   of what changes while it is told.
   SPDX-License-Identifier: MIT */
#define _GNU_SOURCE
#include <pthread.h>
#include <signal.h>
#include <stdint.h>
#include <string.h>
#include <unistd.h>

#include "trace.h"
#define NPUPROF_IMPLEMENTATION
#include "npuprof.h"

static npuprof_desc desc;
static npuprof_capture capture;

static npuprof_result init(void)
{
    desc.capture = &capture;
    return npuprof_init(&desc);
}

static void command(const char *text)
{
    FILE *const f = fopen(check_path("ctl"), "w");
    if (!f || fputs(text, f) < 0 || fclose(f)) check_failures_++;
}

/* ---- A command before npuprof_init() */

static void stay_stopped(const void *user)
{
    static uint64_t memory[65536 / 8], before[65536 / 8];
    (void)user;
    command("stop\n");
    capture.control_path = check_path("ctl");
    CHECK_INT(init(), NPUPROF_OK);
    CHECK_INT(npuprof_start(1), NPUPROF_OK);
    npuprof_control_.started = false;          /* so that npuprof_init() moves the arena behind the command */
    capture.control_path = NULL;
    capture.trigger = "inference>1h";
    desc.arena = memory;
    desc.arena_bytes = 2048;
    CHECK_INT(init(), NPUPROF_OK);
    CHECK(!npuprof_is_recording());
    memcpy(before, memory, sizeof memory);
    usleep(150000);
    command("start\n");
    CHECK_INT(npuprof_poll(), NPUPROF_OK);
    CHECK(npuprof_is_recording());
    CHECK(memcmp(before, memory, sizeof memory) == 0);     /* the gap lay in the arena before */
}

static void a_stop_outlives_init(void) { CHECK(check_in_child(stay_stopped, NULL)); }

/* ---- The function that is told */

static int told_open, told_closed, is_telling;

static void tell(void *user, bool open)
{
    (void)user;
    if (open) {
        __atomic_store_n(&is_telling, 1, __ATOMIC_RELEASE);
        usleep(200000);                     /* long enough for the other thread to stop meanwhile */
    }
    __atomic_add_fetch(open ? &told_open : &told_closed, 1, __ATOMIC_RELAXED);
}

static void *stop_soon(void *user)
{
    while (!__atomic_load_n(&is_telling, __ATOMIC_ACQUIRE)) usleep(100);
    CHECK_INT(npuprof_stop(), NPUPROF_OK);
    return user;
}

static void stop_while_told(const void *user)
{
    pthread_t thread;
    (void)user;
    capture.trigger = "inference>1h";
    capture.gate = tell;
    CHECK_INT(init(), NPUPROF_OK);
    pthread_create(&thread, NULL, stop_soon, NULL);
    CHECK_INT(npuprof_start(1), NPUPROF_OK);
    pthread_join(thread, NULL);
    CHECK_INT(told_open, 1);
    CHECK_INT(told_closed, 1);
}

static void tell_at_once(void *user, bool open) { (void)user, ++*(open ? &told_open : &told_closed); }

static void infer(void) { PROF_INFERENCE("inference"); }

/* The handler may not call the program: the next inference tells. */
static void stop_by_signal(const void *user)
{
    (void)user;
    capture.signal = "USR1:toggle";
    capture.gate = tell_at_once;
    CHECK_INT(init(), NPUPROF_OK);
    CHECK_INT(npuprof_start(1), NPUPROF_OK);
    told_open = told_closed = 0;
    for (int i = 1; i <= 4; i++) {
        infer();
        CHECK_INT(raise(SIGUSR1), 0);
        infer();
        CHECK_INT(told_open + told_closed, i);
    }
    CHECK_INT(told_open, told_closed);
}

static void told_of_a_signal(void) { CHECK(check_in_child(stop_by_signal, NULL)); }

static void told_of_a_change_meanwhile(void) { CHECK(check_in_child(stop_while_told, NULL)); }

CHECK_MAIN(CASE(a_stop_outlives_init), CASE(told_of_a_change_meanwhile), CASE(told_of_a_signal))
