/* test: cc=-O2 san=no time=300 soak=1200 - the arena under chosen and random interleavings, at every atomic
   access
   SPDX-License-Identifier: MIT

   usage: schedule                                       the short run
          schedule SCENARIO POLICY CHUNKS random RUNS SEED   that many seeds
          schedule SCENARIO POLICY CHUNKS preempt N MOST     all that stop a fiber N times or fewer; at most
          so many
          schedule SCENARIO POLICY CHUNKS seed SEED          one of them again
          schedule SCENARIO POLICY CHUNKS at FIRST[,STEP:FIBER...]
   SCENARIO: see scenarios.h, or `all`; POLICY: keep-oldest, keep-newest, stream, or `all`; CHUNKS: of
   the arena; 0: 6, 7 and 13 NPUPROF_TEST_SOAK=1: a million random runs, and all schedules that stop a
   fiber once. */
#include "check.h"
#include "fibers.h"
#include "pages.h"
#define NPUPROF_IMPLEMENTATION
#define NPUPROF_ARENA_BYTES 4096
#include "npuprof.h"
#include "../../tools/convert/load.h"
#include "scenarios.h"
#include "before_run.h"

static const char *const policies[] = { "keep-oldest", "keep-newest", "stream" };
static const uint32_t arenas[] = { 6, 7, 13 };

/* What is done just now, for whoever sees the process die; and what was done. Shared between the
   processes. */
typedef struct progress {
    const scenario *scenario;
    int policy;
    uint32_t chunks, listed;
    int first;
    uint64_t seed, runs, schedules, steps, failures;
    bool random, told;                 /* told: a failure of this scenario, policy and arena */
    preemption list[PREEMPTIONS];
} progress;
static progress *now;

/* ---- One run */

static bool run(const scenario *sc, int begin)
{
    int count = 0;
    before_run(sc);
    for (; count < FIBERS && sc->run[count]; count++) fiber_set_up(count, sc->run[count]);
    const bool good = fiber_run(count, begin % count);
    now->runs++;
    now->steps += the.steps;
    fiber_load_locals(&the.fiber[FIBERS]);
    if (good) check_end(sc);
    return !the.wrong;
}

static void tell_schedule(const progress *p)
{
    if (p->random) {
        printf("seed %llu", (unsigned long long)p->seed);
        return;
    }
    printf("at %d", p->first);
    for (uint32_t i = 0; i < p->listed; i++) printf(",%u:%d", p->list[i].step, p->list[i].to);
}

static void tell_failure(const char *why)
{
    printf("FAIL %s, %s, %u chunks: %s; again: build/tests/schedule/schedule %s %s %u ", now->scenario->name,
           policies[now->policy], now->chunks, why, now->scenario->name, policies[now->policy], now->chunks);
    tell_schedule(now);
    printf("\n");
    fflush(stdout);
}

static void run_and_tell(int begin)
{
    now->first = begin;
    now->listed = the.listed;
    now->random = the.random;
    memcpy(now->list, the.list, sizeof now->list);
    if (run(now->scenario, begin)) return;
    now->failures++;
    if (!now->told) tell_failure(the.wrong);
    now->told = true;
}

/* ---- Schedules */

static void run_seed(uint64_t seed)
{
    static const uint32_t rates[] = { 32768, 8192, 2048, 512, 128 };
    now->seed = seed;
    the.random = true;
    the.listed = 0;
    the.rng = (seed + 1) * UINT64_C(0x9E3779B97F4A7C15);
    the.switch_rate = rates[seed % 5];
    the.handler_rate = 100;
    for (int i = 0; i < 4; i++) (void)fiber_random();
    run_and_tell((int)(fiber_random() % FIBERS));
}

typedef struct moments { uint32_t count; uint8_t *who, *alive; } moments;
static moments keep_moments(void)
{
    moments m = { the.steps < STEPS ? (uint32_t)the.steps : STEPS, NULL, NULL };
    m.who = (uint8_t *)malloc(2 * (size_t)m.count + 1);
    if (!m.who) abort();
    m.alive = m.who + m.count;
    memcpy(m.who, the.who, m.count);
    memcpy(m.alive, the.alive, m.count);
    return m;
}

/* What is listed, and then each way to stop a fiber once, up to `depth` times, every `stride` steps.
   *left: schedules to go. */
static void run_preempted(int begin, int depth, uint32_t stride, uint64_t *left)
{
    if (!*left) return;
    --*left;
    const uint32_t from = the.listed ? the.list[the.listed - 1].step + 1 : (uint32_t)(begin * 7) % stride;
    run_and_tell(begin);
    now->schedules++;
    if (!depth || the.wrong) return;
    moments m = keep_moments();
    for (uint32_t step = from; step < m.count && *left; step += stride)
        for (uint8_t to = 0; to < FIBERS; to++) {
            if ((to == m.who[step] && !the.handlers) || !(m.alive[step] >> to & 1)) continue;
            the.list[the.listed++] = (preemption){ step, to };
            run_preempted(begin, depth - 1, stride, left);
            the.listed--;
        }
    free(m.who);
}

static void run_all_preempted(int depth, uint32_t stride, uint64_t most)
{
    int count = 0;
    while (count < FIBERS && now->scenario->run[count]) count++;
    the.random = false;
    the.listed = 0;
    for (int begin = 0; begin < count; begin++) run_preempted(begin, depth, stride, &most);
}

/* ---- Many */

typedef struct plan {
    uint64_t runs, seed;               /* random ones, for each scenario, policy and arena */
    uint32_t stride;                   /* of the systematic ones; 0: none */
    int part, parts;                   /* of the combinations */
} plan;

static void begin_combination(const scenario *sc, int when_full, uint32_t chunks)
{
    now->scenario = sc;
    now->policy = when_full;
    now->chunks = chunks;
    now->told = false;
    set_up(when_full, chunks, sc->flags & GROWS);
}

static void run_combination(const scenario *sc, int when_full, uint32_t chunks, const plan *p)
{
    const bool is_slow = sc->flags & SLOW;
    begin_combination(sc, when_full, chunks);
    for (uint64_t i = 0; i < p->runs; i += is_slow ? 1000 : 1) run_seed(p->seed + i);
    if (p->stride && !(sc->flags & (SLOW | UNFAIR))) run_all_preempted(1, p->stride, UINT64_MAX);
}

static void run_plan(const plan *p)
{
    int n = 0;
    for (int s = 0; s < SCENARIOS; s++)
        for (int when_full = 0; when_full < 3; when_full++)
            for (size_t a = 0; a < sizeof arenas / sizeof *arenas; a++)
                if (n++ % p->parts == p->part) run_combination(&scenarios[s], when_full, arenas[a], p);
}

/* The plan on several processes. True: nothing failed. */
static bool run_parts(plan p)
{
    progress *const all = (progress *)mmap(NULL, sizeof *all * (size_t)p.parts, PROT_READ | PROT_WRITE,
                                           MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    uint64_t runs = 0, schedules = 0, steps = 0, failures = 0;
    if (all == MAP_FAILED) abort();
    fflush(stdout);
    pid_t pid[64];
    for (p.part = 0; p.part < p.parts; p.part++) {
        now = &all[p.part];
        pid[p.part] = fork();
        if (pid[p.part]) continue;
        run_plan(&p);
        _exit(now->failures != 0);
    }
    for (int i = 0; i < p.parts; i++) {
        int status = 0;
        now = &all[i];
        if (waitpid(pid[i], &status, 0) == pid[i] && WIFSIGNALED(status)) {
            tell_failure(strsignal(WTERMSIG(status)));
            now->failures++;
        }
        runs += now->runs;
        schedules += now->schedules;
        steps += now->steps;
        failures += now->failures;
    }
    printf("note %llu random runs and %llu schedules with one preemption or none, %llu accesses, %llu "
           "failed\n",
           (unsigned long long)(runs - schedules), (unsigned long long)schedules, (unsigned long long)steps,
           (unsigned long long)failures);
    munmap(all, sizeof *all * (size_t)p.parts);
    return failures == 0;
}

static const scenario *find_scenario(const char *name)
{
    for (int i = 0; i < SCENARIOS; i++)
        if (strcmp(scenarios[i].name, name) == 0) return &scenarios[i];
    fprintf(stderr, "no scenario %s; there are:", name);
    for (int i = 0; i < SCENARIOS; i++) fprintf(stderr, " %s", scenarios[i].name);
    fprintf(stderr, "\n");
    exit(2);
}

static void run_given(const char *mode, const char *a, const char *b)
{
    if (strcmp(mode, "random") == 0) {
        const uint64_t seed = b ? strtoull(b, NULL, 10) : 0, end = seed + strtoull(a, NULL, 10);
        for (uint64_t i = seed; i < end; i++) run_seed(i);
    } else if (strcmp(mode, "seed") == 0) {
        run_seed(strtoull(a, NULL, 10));
    } else if (strcmp(mode, "preempt") == 0) {
        run_all_preempted(atoi(a), 1, b ? strtoull(b, NULL, 10) : UINT64_MAX);
    } else if (strcmp(mode, "at") == 0) {
        char *at;
        const int begin = (int)strtol(a, &at, 10);
        while (*at == ',' && the.listed < PREEMPTIONS) {
            const uint32_t step = (uint32_t)strtoul(at + 1, &at, 10);
            the.list[the.listed++] = (preemption){ step, (uint8_t)strtoul(*at ? at + 1 : at, &at, 10) };
        }
        run_and_tell(begin);
        now->schedules++;
    } else {
        fprintf(stderr, "no such mode: %s\n", mode);
        exit(2);
    }
}

static int run_arguments(char **argv)
{
    for (int s = 0; s < SCENARIOS; s++)
        for (int when_full = 0; when_full < 3; when_full++)
            for (size_t a = 0; a < sizeof arenas / sizeof *arenas; a++) {
                const uint32_t chunks = (uint32_t)atoi(argv[3]);
                if (strcmp(argv[1], "all") != 0 && &scenarios[s] != find_scenario(argv[1])) continue;
                if (strcmp(argv[2], "all") != 0 && strcmp(argv[2], policies[when_full]) != 0) continue;
                if (chunks && a) continue;
                begin_combination(&scenarios[s], when_full, chunks ? chunks : arenas[a]);
                run_given(argv[4], argv[5], argv[6]);
            }
    printf("%llu runs, %llu of them given schedules, %llu accesses, %llu failed\n",
           (unsigned long long)now->runs,
           (unsigned long long)now->schedules, (unsigned long long)now->steps,
           (unsigned long long)now->failures);
    return now->failures != 0;
}

int main(int argc, char **argv)
{
    static progress mine;
    now = &mine;
    if (npuprof_init(NULL) != NPUPROF_OK) return 2;
    fiber_save_locals(&the.fiber[FIBERS]);
    keep(&first);
    if (argc >= 6) return run_arguments(argv);
    const bool soak = getenv("NPUPROF_TEST_SOAK") != NULL;
    const long processors = sysconf(_SC_NPROCESSORS_ONLN);
    const int parts = soak && processors > 1 ? processors < 64 ? (int)processors : 64 : 1;
    const bool quick = check_is_quick();
    const plan p = { soak ? 1000000 / ((SCENARIOS - 1) * 9) + 1 : quick ? 10 : 40, soak ? 0 : 1,
                     soak ? 1 : quick ? 389 : 97, 0, parts };
    const bool good = run_parts(p);
    if (good) printf("ok every interleaving holds\n");
    return good ? 0 : 1;
}
