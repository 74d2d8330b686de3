/* test: cc=-O1 - scopes that a jump leaves behind beside live ones: nothing live ends
   SPDX-License-Identifier: MIT */
#include "trace.h"
#include <pthread.h>
#include <setjmp.h>
#include <sys/mman.h>
#include <ucontext.h>
#include "check.h"
#include "npuprof.h"
#include "recorded.h"

static jmp_buf away;

/* Two scopes in one frame: when the inner one begins, the outer one goes on. */
static __attribute__((noinline)) void two(int jumps)
{
    PROF_SCOPE("outer");
    PROF_SCOPE("inner");
    if (jumps) longjmp(away, 1);
}

static __attribute__((noinline)) void two_with_arguments(int jumps)
{
    PROF_SCOPE_ARGS("t", "outer", PROF_ARGS(PROF_INT("jumps", jumps)));
    PROF_SCOPE_ARGS("t", "inner", PROF_ARGS(PROF_INT("jumps", jumps)));
    if (jumps) longjmp(away, 1);
}

static size_t whole(json_node *t, const char *name)
{
    size_t n = 0;
    for (size_t i = 0; i < trace_count(t, "X", name); i++)
        n += !json_get(trace_event(t, "X", name, i), "args.unfinished");
    return n;
}

static void run_two(void (*call)(int))
{
    volatile size_t ended = 0;
    npuprof_start(1);
    for (volatile uint32_t i = 0; i < 2000; i++) {
        const int jumps = i * 2654435761u >> 30 != 0;
        if (!setjmp(away)) call(jumps);
        ended += !jumps;
    }
    CHECK_UINT(stats_now().lost, 0);
    json_node *t = written();
    CHECK_UINT(whole(t, "outer"), ended);
    CHECK_UINT(whole(t, "inner"), ended);
}

static void one_frame(void) { run_two(two); }
static void one_frame_with_arguments(void) { run_two(two_with_arguments); }

/* Two scopes by turns that jumps leave, within one that goes on, all in one frame. */
static __attribute__((noinline)) void leave_within(void)
{
    volatile int i = 0;
    PROF_SCOPE("around");
    (void)setjmp(away);
    while (i < 2000) {
        if (i++ % 2) {
            PROF_SCOPE("one");
            longjmp(away, 1);
        } else {
            PROF_SCOPE("other");
            longjmp(away, 1);
        }
    }
}

/* Below so many that the depth of each is noted. */
static __attribute__((noinline)) int leave_below(int depth)
{
    PROF_SCOPE("below");
    if (depth) return leave_below(depth - 1) + 1;
    for (int i = 0; i < 1000; i++) { PROF_SCOPE("ended"); }
    leave_within();
    return 0;
}

static void within(void)
{
    npuprof_start(1);
    (void)leave_below(40);
    CHECK_UINT(stats_now().lost, 0);
    json_node *t = written();
    CHECK_UINT(whole(t, "around"), 1);
    CHECK_UINT(whole(t, "below"), 41);
}

/* Coroutines of the first thread whose stacks the system puts below its thread-local variables; of a thread
   whose own stack is small and lies above theirs. */
enum { STACK = 128 << 10, SMALL = 16 << 10, DEPTH = 220 };
static ucontext_t outside, lower, upper;

static __attribute__((noinline)) int nest(int depth)
{
    PROF_SCOPE("live");
    if (depth > 1) return nest(depth - 1) + 1;
    swapcontext(&lower, &outside);
    return 1;
}

static void nests(void) { CHECK_INT(nest(DEPTH), DEPTH); }

static void begins(void)
{
    for (int i = 0; i < 10; i++) { PROF_SCOPE("short"); }
}

static void make(ucontext_t *u, char *stack, size_t bytes, void (*run)(void))
{
    getcontext(u);
    u->uc_stack.ss_sp = stack;
    u->uc_stack.ss_size = bytes;
    u->uc_link = &outside;
    makecontext(u, run, 0);
}

static void *stacks_of(void *memory)
{
    const size_t bytes = STACK + SMALL;
    make(&lower, memory, STACK, nests);
    make(&upper, (char *)memory + STACK, bytes - STACK, begins);
    swapcontext(&outside, &lower);
    swapcontext(&outside, &upper);
    swapcontext(&outside, &lower);
    CHECK_UINT(stats_now().lost, 0);
    return NULL;
}

static void check_stacks(void)
{
    json_node *t = written();
    CHECK_UINT(whole(t, "live"), DEPTH);
    CHECK_UINT(whole(t, "short"), 10);
}

static void mapped(void)
{
    npuprof_start(1);
    void *memory = NULL;
    for (int i = 0; i < 3 && memory != MAP_FAILED; i++) {
        memory = mmap(NULL, STACK + SMALL, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        CHECK_STOP(memory != MAP_FAILED);
        stacks_of(memory);
        json_node *t = written();
        CHECK_UINT(whole(t, "live"), (size_t)DEPTH * (size_t)(i + 1));
    }
}

static void below_a_small_stack(void)
{
    static char block[STACK + 2 * SMALL] __attribute__((aligned(4096)));
    pthread_attr_t attributes;
    pthread_t thread;
    npuprof_start(1);
    CHECK_STOP(pthread_attr_init(&attributes) == 0);
    CHECK_STOP(pthread_attr_setstack(&attributes, block + STACK + SMALL, SMALL) == 0);
    /* Why in brackets: the thread sanitizer, to which files that call it are given, needs more of a stack. */
    CHECK_STOP((pthread_create)(&thread, &attributes, stacks_of, block) == 0);
    CHECK_STOP(pthread_join(thread, NULL) == 0);
    check_stacks();
}

/* A deep recursion without any jump. Each begins in one of several functions of the library, whose frames
   differ: a name that came last at its macro, another one, a constant for the first time. */
enum { BASE = 200, FEW = 80, DEEP = 10, MORE = 40 };

static const char *names[2] = { "odd", "even" };

static __attribute__((noinline)) int in_turn(int more)
{
    WITH_BASE_PROFILER(NULL, names[more >> 1 & 1], "t", PROF_NO_ARGS, { if (more > 1) in_turn(more - 1); });
    return 1;
}

static __attribute__((noinline)) int records(int more)
{
    PROF_RECORD(names[more >> 1 & 1]);
    if (more > 1) records(more - 1);
    return 1;
}

static __attribute__((noinline)) int constants(int more)
{
    WITH_BASE_PROFILER(NULL, "constant", "t", PROF_NO_ARGS, { if (more > 1) constants(more - 1); });
    return 1;
}

/* Also of several call sites in turn, and with a device that is waited for in turn. */
static int waits_not(void *user) { return user != NULL; }
static npuprof_device device = { "device", waits_not, NULL, false };

static __attribute__((noinline)) int waits(int more)
{
    device.wait_around = more & 2;
    WITH_BASE_PROFILER(&device, names[more >> 2 & 1], "t", PROF_NO_ARGS, { if (more > 1) waits(more - 1); });
    return 1;
}

static __attribute__((noinline)) int mixed(int more);

static __attribute__((noinline)) int mixed_record(int more)
{
    PROF_RECORD(names[more >> 2 & 1]);
    if (more > 1) mixed(more - 1);
    return 1;
}

static __attribute__((noinline)) int mixed(int more)
{
    if (more & 1) return mixed_record(more);
    PROF_SCOPE("even");
    if (more > 1) mixed(more - 1);
    return 1;
}

static __attribute__((noinline)) int above(int base, int (*call)(int))
{
    PROF_SCOPE("base");
    return base > 1 ? above(base - 1, call) + 1 : call(MORE);
}

static void ways(void)
{
    npuprof_start(1);
    CHECK(above(BASE, in_turn) > 0 && above(BASE, records) > 0 && above(BASE, constants) > 0);
    CHECK(above(BASE, waits) > 0 && above(BASE, mixed) > 0);
    CHECK_UINT(stats_now().lost, 0);
    json_node *t = written();
    CHECK_UINT(whole(t, "base"), 5 * BASE);
    CHECK_UINT(whole(t, "even") + whole(t, "odd"), 4 * MORE);
    CHECK_UINT(whole(t, "constant"), MORE);
}

/* Several scopes of one name in one frame, which only the place of their calls tells apart: of a macro on one
   line, as of a recursive function that is inlined. Who ends by itself is whole, whoever else was left. */
static volatile uint32_t left_open;
#define IN_SCOPE(code) { PROF_SCOPE("alike"); left_open++; code; left_open--; }
#define AROUND_IT(code) { PROF_SCOPE("alike"); left_open++; code; left_open--; }
#define AND_ONE_MORE { PROF_SCOPE("alike"); left_open++; MAY_LEAVE(3) {} left_open--; }
#define MAY_LEAVE(n) if (depth == (n) && jumping) longjmp(away, 1); if (depth > (n))

static __attribute__((noinline)) void alike(volatile int depth, volatile bool jumping)
{
    AROUND_IT(MAY_LEAVE(1) IN_SCOPE(MAY_LEAVE(2) AND_ONE_MORE))
}

static void one_line(void)
{
    enum { ROUNDS = 240 };         /* in one chunk: what was cut in another stays so */
    volatile uint32_t begun = 0;
    npuprof_start(1);
    for (volatile uint32_t i = 0; i < ROUNDS; i++) {
        const int depth = 1 + (int)(i * 2654435761u >> 28) % 3;
        begun += (uint32_t)depth;
        if (!setjmp(away)) alike(depth, (i * 40503u >> 3) % 4 != 0);
    }
    CHECK_UINT(stats_now().lost, 0);
    json_node *t = written();
    CHECK_UINT(trace_count(t, "X", "alike"), begun);
    CHECK_UINT(whole(t, "alike"), begun - left_open);
}

/* Coroutines that go on by turns, and one whose stack is in a frame of the thread's: no scope is left. */
enum { TURNS = 3 };
static void by_turns(void)
{
    for (int i = 0; i < TURNS; i++) {
        PROF_SCOPE("turn");
        swapcontext(&lower, &outside);
        PROF_SCOPE("inner turn");
        swapcontext(&lower, &outside);
    }
}

static void by_turns_of_another(void)
{
    for (int i = 0; i < TURNS; i++) {
        PROF_SCOPE("turn");
        swapcontext(&upper, &outside);
        PROF_SCOPE("inner turn");
        swapcontext(&upper, &outside);
    }
}

static void turns(void)
{
    static char memory[2 * STACK] __attribute__((aligned(4096)));
    npuprof_start(1);
    make(&lower, memory, STACK, by_turns);
    make(&upper, memory + STACK, STACK, by_turns_of_another);
    {
        PROF_SCOPE("all");
        for (int i = 0; i <= 2 * TURNS; i++) {
            swapcontext(&outside, &lower);
            swapcontext(&outside, &upper);
        }
    }
    CHECK_UINT(stats_now().lost, 0);
    json_node *t = written();
    CHECK_UINT(whole(t, "all"), 1);
    CHECK_UINT(whole(t, "turn"), 2 * TURNS);
    CHECK_UINT(whole(t, "inner turn"), 2 * TURNS);
    for (size_t i = 0; i < 2 * TURNS; i++)
        CHECK(trace_inside(trace_event(t, "X", "inner turn", i), trace_event(t, "X", "turn", i)));
}

/* Arguments whose keys find no place in a full table leave space behind them. No begin there may do without a
   note of its depth: the notes of before say that it is far down. */
#define LONG ", which is longer than any name before it: so it finds no place where they find none, either"
static const char *const text = "a text that takes some units in a record, which nothing needs in the end";

static __attribute__((noinline)) int far_down(int more)
{
    volatile char frame[4096];
    frame[0] = (char)more;
    PROF_SCOPE("before");
    return more > 1 ? far_down(more - 1) + frame[0] : 1;
}

static __attribute__((noinline)) int inside(int more)
{
    PROF_SCOPE("inside");
    if (more > 1) inside(more - 1);
    return 1;
}

static __attribute__((noinline)) int with_event(int more)
{
    if (more) npuprof_instant("t", "event", PROF_ARGS(PROF_STR("key of an event" LONG, text)));
    PROF_SCOPE("live");
    return inside(DEEP) + more - 1;
}

static __attribute__((noinline)) int with_result(int more)
{
    PROF_SCOPE("has no result");
    if (more) PROF_RESULT(PROF_STR("key of a result" LONG, text));
    PROF_SCOPE("live");
    return inside(DEEP) + more - 1;
}

static void keys_without_place(void)
{
    static uint64_t arena[256 * 1024 / 8];
    npuprof_desc desc = { .arena = arena, .arena_bytes = sizeof arena };
    CHECK_INT(npuprof_init(&desc), NPUPROF_OK);
    npuprof_start(1);
    npuprof_instant("t", "event", PROF_NO_ARGS);
    (void)above(FEW, far_down);
    (void)with_event(0);
    (void)with_result(0);
    for (int i = 0; !stats_now().lost_by_cause[NPUPROF_LOST_NAMES]; i++) {
        char name[20];
        snprintf(name, sizeof name, "%d", i);
        npuprof_counter_int(name, 1);
    }
    CHECK_INT(above(FEW, with_event), MORE + FEW - 1);
    (void)above(FEW, far_down);
    CHECK_INT(above(FEW, with_result), MORE + FEW - 1);
    CHECK_UINT(stats_now().lost, 1);
    CHECK_UINT(stats_now().lost_by_cause[NPUPROF_LOST_ARGUMENTS], 2);
    json_node *t = written();
    CHECK_UINT(whole(t, "live"), 4);
    CHECK_UINT(whole(t, "inside"), 4 * DEEP);
}

CHECK_MAIN(CASE(one_frame), CASE(one_frame_with_arguments), CASE(within), CASE(mapped),
           CASE(below_a_small_stack), CASE(ways), CASE(one_line), CASE(turns), CASE(keys_without_place))
