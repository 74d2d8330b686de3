/* test: soak=1200 cc=-O2 san=no - killed after every single instruction; a signal at every single instruction
   SPDX-License-Identifier: MIT

   A child that is to die is stepped with ptrace. After each instruction that changed the mapped arena, what
   is there is read as if the child had been killed at that moment. */
#define NPUPROF_IMPLEMENTATION
#include "life.h"
#include <sched.h>
#include <setjmp.h>
#include <sys/mman.h>
#include <sys/ptrace.h>
#include <ucontext.h>

typedef struct side {
    volatile uint64_t begun, ended;        /* numbered spans */
    volatile uint64_t outer_begun, outer_ending, outer_ended, counters;
    volatile uint64_t records_begun, records_done;     /* spans and events */
    volatile int ready;
} side;
static side *shared;

typedef struct plan { int policy; size_t arena_bytes; int spans; } plan;

static void child_of(const plan *p, life_path arena)
{
    npuprof_desc desc = { 0 };
    desc.arena_path = arena.pattern;
    desc.arena_bytes = p->arena_bytes;
    desc.when_full = p->policy;
    ptrace(PTRACE_TRACEME, 0, NULL, NULL);
    raise(SIGSTOP);
    if (npuprof_init(&desc) != NPUPROF_OK) _exit(77);
    npuprof_start(1);
    shared->ready = 1;
    shared->records_begun++;
    PROF_BEGIN("outer", "first outer");
    shared->records_done++;
    shared->outer_begun = 1;
    for (int n = 0; n < p->spans; n++) {
        shared->records_begun++;
        PROF_SCOPE_ARGS("c", "numbered", PROF_ARGS(PROF_INT("n", n)));
        shared->begun = (uint64_t)n + 1;
        shared->records_done++;
        shared->records_begun++;
        PROF_COUNTER("count", n);
        shared->counters = (uint64_t)n + 1;
        shared->records_done++;
        shared->records_begun++;
        __atomic_signal_fence(__ATOMIC_SEQ_CST);
        { PROF_SCOPE("plain"); }
        shared->records_done++;
        __atomic_signal_fence(__ATOMIC_SEQ_CST);
        shared->ended = (uint64_t)n;       /* the one before has ended for certain */
    }
    shared->outer_ending = 1;
    __atomic_signal_fence(__ATOMIC_SEQ_CST);
    PROF_END();
    shared->outer_ended = 1;
    _exit(0);
}

typedef struct found {
    uint64_t count, unfinished, outer, outer_open, bare;
    int64_t first, last;
    uint64_t gaps, counters;
} found;
static void look(life_counts *c, const char *line)
{
    found *f = (found *)c->user;
    const bool open = life_has(line, "\"unfinished\":true");
    if (life_has(line, "\"cat\":\"outer\"")) f->outer++, f->outer_open += open;
    if (line[7] == 'C') f->counters++;
    if (!life_has(line, "\"name\":\"numbered\"")) return;
    if (!life_has(line, "\"n\":")) {
        f->bare++;                         /* its arguments are not there yet, or were overwritten */
        return;
    }
    const int64_t n = life_number(line, "n");
    if (f->count++ == 0) f->first = n;
    else if (n != f->last + 1) f->gaps++;
    f->last = n;
    f->unfinished += open;
}

static uint64_t states;
/* As if the child were dead now. */
static bool check_state(const plan *p, const uint8_t *mapped, uint8_t *copy, uint64_t step)
{
    npuprof_damage damage;
    npuprof_stats s;
    found f;
    const int before = check_failures_;
    const side now = *shared;
    states++;
    memset(&f, 0, sizeof f);
    f.last = -1;
    memcpy(copy, mapped, p->arena_bytes);
    CHECK_INT(npuprof_load_memory(copy, p->arena_bytes, &damage), NPUPROF_OK);
    if (check_failures_ == before) {
        life_check_whole(&damage);
        npuprof_get_stats(&s);
        const life_counts c = life_count(look, &f);
        CHECK_UINT(c.slices + c.counters, s.recorded);
        /* Whenever it dies, what it had done is there or counted as lost, once. */
        CHECK(s.recorded + s.lost >= now.records_done && s.recorded + s.lost <= now.records_begun);
        CHECK_UINT(f.gaps, 0);
        CHECK(f.unfinished <= 1 && f.bare <= 1);
        CHECK(f.outer >= now.outer_begun && f.outer <= 1);
        if (now.outer_ended) CHECK_UINT(f.outer_open, 0);
        else if (!now.outer_ending) CHECK_UINT(f.outer_open, f.outer);
        const bool complete = p->policy == NPUPROF_KEEP_OLDEST && s.lost == 0;
        if (complete) {
            CHECK_UINT(f.first, 0);
            CHECK(f.count >= now.ended && f.count + f.bare >= now.begun && f.count + f.bare <= now.begun + 1);
            CHECK(f.counters >= now.counters);
        } else if (p->policy == NPUPROF_KEEP_NEWEST && now.begun > 1) {
            /* The newest are there; the chunk that is taken over just now is the oldest. */
            CHECK(f.last + (int64_t)f.bare >= (int64_t)now.begun - 1 || (f.count == 0 && f.bare));
        }
        npuprof_unload();
    }
    if (check_failures_ != before) {
        printf("  (%s, %zu bytes, after step %" PRIu64 ": begun %" PRIu64 ", ended %" PRIu64
               ", outer %" PRIu64 "; found %" PRIu64
               " from %" PRId64 " to %" PRId64 ", %" PRIu64 " without arguments, %" PRIu64 " outer)\n",
               life_policy_names[p->policy], p->arena_bytes, step, now.begun, now.ended, now.outer_begun,
               f.count, f.first,
               f.last, f.bare, f.outer);
        FILE *file = fopen(check_path("state.npuprof"), "wb");
        if (file) fwrite(mapped, 1, p->arena_bytes, file), fclose(file);
        return false;
    }
    return true;
}

static pid_t start_stepping(const plan *p)
{
    int status;
    cpu_set_t one;
    fflush(stdout);
    CPU_ZERO(&one);
    CPU_SET((unsigned)sched_getcpu(), &one);
    sched_setaffinity(0, sizeof one, &one);          /* both on one core: a step is much cheaper */
    pid_t child = fork();
    if (child == 0) child_of(p, life_own_path("npuprof")), _exit(78);
    if (child < 0 || waitpid(child, &status, 0) != child || !WIFSTOPPED(status))
        CHECK_SKIP("ptrace is not allowed here");
    return child;
}

static void killed_everywhere(int policy, size_t arena_bytes, int spans)
{
    const plan p = { policy, arena_bytes, spans };
    char file[64];
    int status;
    shared = (side *)mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (access("/dev/shm", W_OK) == 0) setenv("NPUPROF_TEST_TMP", "/dev/shm", 1);
    uint8_t *before = (uint8_t *)calloc(1, arena_bytes), *copy = (uint8_t *)malloc(arena_bytes),
        *mapped = NULL;
    CHECK_STOP(shared != MAP_FAILED && before && copy);
    pid_t child = start_stepping(&p);
    snprintf(file, sizeof file, "%d.npuprof", (int)child);
    const char *path = check_path(file);
    side last = *shared;
    uint64_t steps = 0;
    for (;; steps++) {
        if (ptrace(PTRACE_SINGLESTEP, child, NULL, NULL) != 0) break;
        if (waitpid(child, &status, 0) != child || !WIFSTOPPED(status)) break;
        if (!mapped) {
            /* Init: there is no image yet, or it says nothing. */
            if (steps % 64 == 0 || shared->ready) {
                npuprof_damage damage;
                const npuprof_result r = npuprof_load(path, &damage);
                CHECK(r == NPUPROF_OK || r == NPUPROF_ERR_FORMAT || r == NPUPROF_ERR_NOT_FOUND);
                if (r == NPUPROF_OK) CHECK_UINT(life_count(NULL, NULL).slices, 0);
                npuprof_unload();
            }
            if (!shared->ready) continue;
            FILE *opened = fopen(path, "rb");
            CHECK_STOP(opened != NULL);
            mapped = (uint8_t *)mmap(NULL, arena_bytes, PROT_READ, MAP_SHARED, fileno(opened), 0);
            CHECK_STOP(mapped != MAP_FAILED);
            fclose(opened);
        }
        if (memcmp(&last, shared, sizeof last) == 0 && memcmp(before, mapped, arena_bytes) == 0) continue;
        memcpy(before, mapped, arena_bytes);
        last = *shared;
        if (!check_state(&p, mapped, copy, steps)) break;
    }
    if (!check_failures_) {
        CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 0);
        CHECK(states > (spans < 60 ? 250 : 1000));
        unlink(path);
    }
    kill(child, SIGKILL);
    printf("note %s, %zu bytes: dead after each of %" PRIu64 " instructions, %" PRIu64 " different images\n",
           life_policy_names[policy], arena_bytes, steps, states);
}

static void killed_in_chunk_changes(void)
{
    killed_everywhere(NPUPROF_KEEP_OLDEST, 16384, (int)life_scaled(60, 150));
}

static void killed_when_full(void) { killed_everywhere(NPUPROF_KEEP_OLDEST, 4096, 60); }

static void killed_overwriting(void)
{
    killed_everywhere(NPUPROF_KEEP_NEWEST, 8192, (int)life_scaled(120, 1000));
}

static void killed_overwriting_tiny(void)
{
    killed_everywhere(NPUPROF_KEEP_NEWEST, 4096, (int)life_scaled(60, 500));
}

/* ---- a signal at every instruction ---- */

static volatile uint64_t handled;
static void handler(int number)
{
    (void)number;
    PROF_SCOPE_ARGS("handler", "handler",
                    PROF_ARGS(PROF_UINT("n", handled), PROF_UINT("key", handled * 3 + 1)));
    PROF_INSTANT("c", "i", PROF_NO_ARGS);
    handled++;
}

/* The process steps itself: with the trap flag it traps after each instruction. When enough are over, the
   trap's handler raises SIGUSR1, which comes when it returns, so exactly there.
   Why not ptrace, as above: two changes of process for each instruction take three times as long. */
#if defined(__x86_64__) || defined(__i386__)
#define MARK() __asm__ volatile("int3" ::: "memory")
static struct { int distance, left, step, farthest; bool stepping; uint64_t steps; } trap;

static void trapped(int number, siginfo_t *info, void *context)
{
    greg_t *const flags = &((ucontext_t *)context)->uc_mcontext.gregs[REG_EFL];
    const greg_t trap_flag = 0x100;
    const bool at_mark = info->si_code != TRAP_TRACE, late = at_mark && trap.stepping;
    (void)number;
    if (at_mark && !late) trap.left = trap.distance;
    else trap.left--, trap.steps++;
    trap.stepping = trap.left > 0 && !late;
    *flags = trap.stepping ? *flags | trap_flag : *flags & ~trap_flag;
    if (trap.stepping) return;
    if (trap.distance > trap.farthest) trap.farthest = trap.distance;
    trap.distance = late ? 0 : trap.distance + trap.step;
    raise(SIGUSR1);
}

static void step_by(int step)
{
    struct sigaction action = { 0 };
    action.sa_sigaction = trapped;
    action.sa_flags = SA_SIGINFO;
    sigaddset(&action.sa_mask, SIGUSR1);
    sigaction(SIGTRAP, &action, NULL);
    trap.step = step;
}
#else /* !defined(__x86_64__) && !defined(__i386__) */
#define MARK() ((void)0)
static struct { int farthest, step; uint64_t steps; } trap;

static void step_by(int step) { CHECK_SKIP("the trap flag is x86's"), trap.step = step; }
#endif /* defined(__x86_64__) || defined(__i386__) */

static __attribute__((noinline)) uint64_t one_round(int what, uint64_t n)
{
    char name[32];
    switch (what) {
    case 0: { PROF_SCOPE("plain"); } return 1;
    case 1: {
        PROF_SCOPE_ARGS("c", "args",
                        PROF_ARGS(PROF_UINT("n", n), PROF_UINT("key", n * 3 + 1),
                                  PROF_STR("s", "a string beyond eight bytes")));
    }
        return 1;
    case 2: PROF_BEGIN("by hand", n % 2 ? "odd" : "even"); PROF_COUNTER("n", n); PROF_END(); return 2;
    case 3:                                /* a chunk change, and open spans to move */
        {
            PROF_SCOPE("outer");
            PROF_SCOPE("second");
            for (int i = 0; i < 16; i++) { PROF_COUNTER("n", i); }
        }
        return 18;
    default:                               /* a new name */
        snprintf(name, sizeof name, "name %d", (int)n);
        PROF_BEGIN("c", name);
        PROF_END();
        return 1;
    }
}

static life_memory memory;
static void looked_at(life_counts *c, const char *line)
{
    if (life_has(line, "\"key\":") && life_number(line, "key") != life_number(line, "n") * 3 + 1)
        ++*(uint64_t *)c->user;
    if (life_has(line, "unfinished")) ++*(uint64_t *)c->user;
}

/* Round n is interrupted after n * stride instructions; where that is behind its end, it begins anew at its
   first one. */
static void interrupted_everywhere(int policy, size_t arena_bytes, int what, int rounds, int stride)
{
    uint64_t executed = 0, bad = 0;
    if (life_is_soak()) rounds *= stride, stride = 1;
    step_by(stride);
    life_begin(policy, arena_bytes, &memory);
    signal(SIGUSR1, handler);
    for (int i = 0; i < rounds; i++) {
        MARK();
        executed += one_round(what, (uint64_t)i);
    }
    signal(SIGUSR1, SIG_IGN);
    npuprof_stop();
    if (policy == NPUPROF_STREAM) CHECK_INT(npuprof_flush(), NPUPROF_OK);
    const npuprof_stats s = life_account(executed + 2 * handled, true);
    if (policy == NPUPROF_STREAM) {
        life_check_streamed(&memory, s.recorded, s.lost, true);
        CHECK_INT(npuprof_load_memory(memory.bytes, memory.count, NULL), NPUPROF_OK);
    }
    life_count(looked_at, &bad);
    CHECK_UINT(bad, 0);
    CHECK(handled >= (uint64_t)rounds / 3);
    CHECK(trap.farthest > 50);
    printf("note %s: a signal after every %d. instruction, up to the %d., %" PRIu64 " steps\n",
           life_policy_names[policy], stride, trap.farthest, trap.steps);
}

static void interrupted_plain(void) { interrupted_everywhere(NPUPROF_KEEP_OLDEST, 1 << 20, 0, 200, 1); }
static void interrupted_arguments(void) { interrupted_everywhere(NPUPROF_KEEP_OLDEST, 1 << 20, 1, 250, 3); }
static void interrupted_by_hand(void) { interrupted_everywhere(NPUPROF_KEEP_OLDEST, 1 << 20, 2, 250, 3); }
static void interrupted_changes(void) { interrupted_everywhere(NPUPROF_KEEP_OLDEST, 256 << 10, 3, 100, 17); }
static void interrupted_full(void) { interrupted_everywhere(NPUPROF_KEEP_OLDEST, 8192, 3, 90, 19); }
static void interrupted_overwriting(void) { interrupted_everywhere(NPUPROF_KEEP_NEWEST, 16384, 3, 100, 23); }
static void interrupted_streaming(void) { interrupted_everywhere(NPUPROF_STREAM, 16384, 3, 100, 29); }
static void interrupted_names(void) { interrupted_everywhere(NPUPROF_KEEP_OLDEST, 1 << 20, 4, 200, 7); }

/* ---- a handler that leaves by a jump, at every instruction of a change to a new chunk ---- */

static sigjmp_buf out;
static volatile uint64_t begun, done;
static void leave(int number)
{
    (void)number;
    begun++;
    { PROF_SCOPE("handler"); }
    done++;
    handled++;
    siglongjmp(out, 1);
}

static __attribute__((noinline)) void nest(int depth)
{
    begun++;
    PROF_SCOPE("nested");
    done++;
    if (depth) nest(depth - 1);
}

static size_t units_left(void)
{
    const npuprof_slot_ *const slot = npuprof_slot_mine_();
    npuprof_chunk_ *const chunk = npuprof_slot_current_chunk_(slot);
    return (size_t)(npuprof_chunk_units_(chunk) + npuprof_arena_.units - slot->cursor);
}

static void *beside(void *unused)
{
    for (int i = 0; i < 1000; i++) nest(0);
    return unused;
}

/* Whatever was half done, the thread, and who has its slot afterwards, lose nothing and overwrite nothing. */
static void left_in_changes(void)
{
    step_by(life_is_soak() ? 1 : 3);
    life_begin(NPUPROF_KEEP_OLDEST, 32 << 20, &memory);
    nest(3);
    if (!sigsetjmp(out, 1)) leave(0);
    signal(SIGUSR1, leave);
    do {
        begun++;
        PROF_SCOPE("around");
        done++;
        while (units_left() > 1) nest(0);
        if (!sigsetjmp(out, 1)) {
            MARK();
            nest(1);
            MARK();                        /* only here is it late */
        }
    } while (trap.distance);
    signal(SIGUSR1, SIG_IGN);
    on_threads(1, beside, NULL, 0);
    const npuprof_stats s = stats_now();
    CHECK(trap.farthest > 300);
    CHECK(s.recorded + s.lost >= done && s.recorded + s.lost <= begun);
    CHECK_UINT(s.lost, s.lost_by_cause[NPUPROF_LOST_CONTEXT]);
    CHECK_UINT(life_count(NULL, NULL).slices, s.recorded);
    printf("note keep-oldest: left after every %d. instruction, up to the %d.\n", trap.step, trap.farthest);
}

CHECK_MAIN(CASE_THOROUGH(left_in_changes),
           CASE_THOROUGH(killed_in_chunk_changes), CASE_THOROUGH(killed_when_full),
           CASE_THOROUGH(killed_overwriting), CASE_THOROUGH(killed_overwriting_tiny), CASE(interrupted_plain),
           CASE_THOROUGH(interrupted_arguments), CASE_THOROUGH(interrupted_by_hand),
           CASE_THOROUGH(interrupted_changes), CASE_THOROUGH(interrupted_full),
           CASE_THOROUGH(interrupted_overwriting), CASE_THOROUGH(interrupted_streaming),
           CASE_THOROUGH(interrupted_names))
