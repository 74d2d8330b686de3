/* test: san=no - the recorder for microcontrollers, its tasks switched where interrupts are unmasked: a
   narrow clock, a full arena, a clear
   SPDX-License-Identifier: MIT

   A task is a context of its own. It goes on until its n-th point: an unmask, or, where nothing is masked, a
   read of the clock. Then others run, then it goes on. Built with SWITCH_ATOMIC, nothing is masked: what
   cores with exclusive access do. */
#include "trace.h"
#include <ucontext.h>

static uint32_t ticks, masked;
static int points;                 /* until the task is left; 0: it is not */
static int which;                  /* of the tasks runs */
static ucontext_t here, tasks[2];
static void point(void)
{
    if (!masked && points && --points == 0) swapcontext(&tasks[which], &here);
}

static uint16_t read_clock(void)
{
    const uint16_t now = (uint16_t)ticks;
    point();
    return now;
}

#ifndef SWITCH_ATOMIC
static uint32_t mask(void) { return masked++; }

static void unmask(uint32_t before)
{
    masked = before;
    point();
}
#define NPUPROF_MASK() mask()
#define NPUPROF_UNMASK(before) unmask(before)
#endif
#define NPUPROF_NOW() read_clock()
#define NPUPROF_NOW_HZ 1000000000u
#define NPUPROF_FREESTANDING
#define NPUPROF_ARENA_BYTES 0
#define NPUPROF_IMPLEMENTATION
#include "npuprof.h"
#include "own_json.h"

static uint64_t arena[1024 / 8];
static void begin(void)
{
    npuprof_desc desc;
    memset(&desc, 0, sizeof desc);
    desc.arena = arena;
    desc.arena_bytes = sizeof arena;
    npuprof_stop();
    npuprof_fw_arena_ = &npuprof_fw_no_arena_;
    ticks = 100;
    CHECK_INT(npuprof_init(&desc), NPUPROF_OK);
    npuprof_start(1);
}

static char stacks[2][65536];
static bool left;
static void (*work)(void);
static void run(void)
{
    work();
    left = false;
}

/* Runs something as a task, up to its n-th point. True: it was left there. */
static bool run_to(int number, void (*what)(void), int n)
{
    ucontext_t *const task = &tasks[number];
    left = true;
    which = number;
    points = n;
    work = what;
    getcontext(task);
    task->uc_stack.ss_sp = stacks[number];
    task->uc_stack.ss_size = sizeof stacks[number];
    task->uc_link = &here;
    makecontext(task, run, 0);
    swapcontext(&here, task);
    points = 0;
    return left;
}

static void go_on(int number)
{
    which = number;
    swapcontext(&here, &tasks[number]);
}

static void one_span(void)
{
    PROF_SCOPE("one");
    ticks += 3;
}

static void one_instant(void) { PROF_INSTANT("c", "one", PROF_ARGS(PROF_INT("a", 1), PROF_INT("b", 2))); }

static void other_span(void)
{
    PROF_SCOPE("other");
    ticks += 3;
}

/* A task is left for more than a period of the clock: time goes on as it was. */
static void clock_stays(void)
{
    void (*const works[])(void) = { one_span, one_instant };
    for (int w = 0; w < 2; w++)
        for (int n = 1; n < 12; n++) {
            begin();
            if (!run_to(0, works[w], n)) break;
            for (int i = 0; i < 20; i++) {
                ticks += 0x4000;
                other_span();
            }
            go_on(0);
            ticks += 5;
            other_span();
            CHECK_INT(npuprof_now_ns(), ticks - 100);
            json_node *t = written();
            CHECK_INT(trace_start(trace_event(t, "X", "other", 20)), ticks - 3 - 100);
        }
}

/* Two tasks are left where the arena has no room for them; what others find then belongs to nobody else. */
static void full_stays_full(void)
{
    npuprof_stats stats;
    for (int n = 1; n < 8; n++)
        for (int m = 1; m < 8; m++) {
            begin();
            npuprof_get_stats(&stats);
            const uint64_t cells = (stats.bytes_total - sizeof(npuprof_compact_header_)) / 16;
            uint64_t executed = cells - 2;
            for (uint64_t i = 0; i < executed; i++) one_span();
            const bool first = run_to(0, one_instant, n), second = run_to(1, other_span, m);
            if (first) go_on(0);
            { PROF_SCOPE("third"); }
            if (second) go_on(1);
            { PROF_SCOPE("fourth"); }
            executed += 4;
            npuprof_get_stats(&stats);
            CHECK_INT(stats.recorded + stats.lost, executed);
            json_node *t = written();
            CHECK_INT(json_int(json_get(t, "metadata.npuprof.recorded"))
                      + json_int(json_get(t, "metadata.npuprof.lost.arena_full")), (int64_t)executed);
        }
}

/* A task is left in the middle of a record, the others clear: its record and theirs are there, or it is
   forgotten. */
static void clear_spares_it(void)
{
    void (*const works[])(void) = { one_span, one_instant };
    npuprof_stats stats;
    for (int w = 0; w < 2; w++)
        for (int n = 1; n < 12; n++) {
            begin();
            { PROF_SCOPE("before"); }
            if (!run_to(0, works[w], n)) break;
            npuprof_clear();
            for (int i = 0; i < 3; i++) other_span();
            go_on(0);
            { PROF_SCOPE("after"); }
            json_node *t = written();
            CHECK(trace_event(t, "X", "before", 0) == NULL);
            CHECK(trace_event(t, "X", "other", 2) != NULL);
            CHECK(trace_event(t, "X", "after", 0) != NULL);
            const json_node *kept = trace_event(t, w ? "i" : "X", "one", 0);
            npuprof_get_stats(&stats);
            CHECK_INT(stats.recorded, kept ? 5 : 4);
            CHECK_INT(stats.lost, 0);
            /* Nothing is left behind: all cells come back. */
            npuprof_clear();
            npuprof_get_stats(&stats);
            CHECK_INT(stats.bytes_used, 0);
        }
}

CHECK_MAIN(CASE(clock_stays), CASE(full_stays_full), CASE(clear_spares_it))
