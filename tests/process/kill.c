/* test: soak=300 cc=-O2 - killed at random moments: what had ended before is in the mapped file, whole; what
   was open is marked unfinished
   SPDX-License-Identifier: MIT */
#include "life.h"
#include <sys/mman.h>
#include <sys/stat.h>

enum { THREADS_MAX = 4, OUTER = 2 };

/* Written by the child beside each span, read by the parent when the child is dead. */
typedef struct side { uint64_t begun, ended, outer; char apart[40]; } side;
static side *sides;
static volatile int *ready;

typedef enum ending { KILLED, KILLED_EARLY, SEGV, ABORTED, UNDERSCORE_EXIT, EXITED, ENDINGS } ending;
static const char *const ending_names[] = { "SIGKILL", "SIGKILL from the start on", "SIGSEGV", "abort",
                                            "_exit", "exit" };
typedef struct plan {
    int policy, threads;
    ending how;
    size_t arena_bytes;
    unsigned pause, die_after_us;
} plan;
typedef struct worker { const plan *p; unsigned number; } worker;

static void *record(void *user)
{
    const worker *w = (const worker *)user;
    side *s = &sides[w->number];
    char name[32];
    snprintf(name, sizeof name, "worker %u", w->number);
    PROF_THREAD_NAME(name);
    PROF_BEGIN("outer", name);
    __atomic_store_n(&s->outer, 1, __ATOMIC_RELEASE);
    PROF_SCOPE_ARGS("outer", "second outer", PROF_ARGS(PROF_UINT("t", w->number)));
    __atomic_store_n(&s->outer, OUTER, __ATOMIC_RELEASE);
    __atomic_store_n(ready, 1, __ATOMIC_RELEASE);
    /* Why a limit: 64 bytes each, and on a busy machine the kill may come when the arena has long been
       full. */
    const uint64_t limit = w->p->policy == NPUPROF_KEEP_OLDEST ? w->p->arena_bytes / 128 / THREADS_MAX
        : UINT64_MAX;
    for (uint64_t n = 0; n < limit; n++) {
        {
            PROF_SCOPE_ARGS("c", "numbered", PROF_ARGS(PROF_UINT("t", w->number), PROF_UINT("n", n)));
            __atomic_store_n(&s->begun, n + 1, __ATOMIC_RELEASE);
            { PROF_SCOPE("plain"); }
            for (unsigned i = 0; i < w->p->pause; i++) __asm__ volatile("" ::: "memory");
        }
        __atomic_store_n(&s->ended, n + 1, __ATOMIC_RELEASE);
    }
    for (;;) pause();
    return NULL;
}

static void run_child(const plan *p, life_path arena, life_path stream)
{
    pthread_t thread;
    worker w[THREADS_MAX];
    npuprof_desc desc = { 0 };
    desc.arena_path = arena.pattern;
    desc.arena_bytes = p->arena_bytes;
    desc.when_full = p->policy;
    if (p->policy == NPUPROF_STREAM) desc.output_path = stream.pattern;
    if (npuprof_init(&desc) != NPUPROF_OK) _exit(77);
    npuprof_start(1);
    for (unsigned i = 0; i < (unsigned)p->threads; i++) {
        w[i].p = p;
        w[i].number = i;
        if (pthread_create(&thread, NULL, record, &w[i])) _exit(78);
    }
    while (!__atomic_load_n(ready, __ATOMIC_ACQUIRE)) usleep(10);
    if (p->how <= KILLED_EARLY) for (;;) pause();
    usleep(p->die_after_us);
    if (p->how == SEGV && !CHECK_SANITIZED) *(volatile int *)(uintptr_t)p->die_after_us = 1;
    if (p->how == SEGV) signal(SIGSEGV, SIG_DFL), kill(getpid(), SIGSEGV), pause();
    if (p->how == ABORTED) signal(SIGABRT, SIG_DFL), abort();
    if (p->how == UNDERSCORE_EXIT) _exit(0);
    exit(0);
}

/* What a file holds. */
typedef struct found {
    npuprof_stats stats;
    uint8_t *closed[THREADS_MAX];
    uint64_t room, unfinished[THREADS_MAX], last_unfinished[THREADS_MAX], outer[THREADS_MAX], plain, twice,
        bad, bare, bare_open;
    int outer_open[THREADS_MAX];
    bool outer_unmarked;
} found;
static void look(life_counts *c, const char *line)
{
    found *f = (found *)c->user;
    const bool open = life_has(line, "\"unfinished\":true");
    if (life_has(line, "\"cat\":\"outer\"")) {
        f->outer[0]++;                     /* of all threads together */
        f->outer_unmarked |= !open;
    }
    f->plain += life_has(line, "\"name\":\"plain\"");
    if (!life_has(line, "\"name\":\"numbered\"")) return;
    const uint64_t t = (uint64_t)life_number(line, "t"), n = (uint64_t)life_number(line, "n");
    if (!life_has(line, "\"t\":")) f->bare += !open, f->bare_open += open;     /* see kill_once */
    else if (t >= THREADS_MAX || n >= f->room) f->bad++;
    else if (open) {
        f->unfinished[t]++;
        f->last_unfinished[t] = n;
    } else f->twice += f->closed[t][n]++ != 0;
}

static bool read_image(const char *path, found *f, bool whole)
{
    npuprof_damage damage;
    const npuprof_result r = npuprof_load(path, &damage);
    if (r != NPUPROF_OK) {
        check_failed_(__FILE__, __LINE__, "%s: %s, at %" PRIu64 " %s", path, npuprof_result_string(r),
                      damage.offset,
                      damage.what);
        return false;
    }
    if (whole) life_check_whole(&damage);
    life_count(look, f);
    npuprof_get_stats(&f->stats);
    npuprof_unload();
    return true;
}

static uint64_t spans_checked, spans_missing;
static void kill_once(const plan *p)
{
    char file[64];
    life_path arena, stream;
    int status;
    memset(sides, 0, 4096);
    fflush(stdout);
    pid_t child = fork();
    if (child == 0) {
        arena = life_own_path("arena.npuprof");
        stream = life_own_path("stream.npuprof");
        run_child(p, arena, stream);
    }
    if (p->how <= KILLED_EARLY) {
        while (p->how == KILLED && !__atomic_load_n(ready, __ATOMIC_ACQUIRE)) usleep(20);
        usleep(p->die_after_us);
        kill(child, SIGKILL);
    }
    CHECK_STOP(waitpid(child, &status, 0) == child);
    if (WIFEXITED(status)) CHECK(p->how >= UNDERSCORE_EXIT && WEXITSTATUS(status) == 0);
    snprintf(file, sizeof file, "%d.arena.npuprof", (int)child);
    arena.path = check_path(file);
    snprintf(file, sizeof file, "%d.stream.npuprof", (int)child);
    stream.path = check_path(file);

    found f = { 0 };
    for (int t = 0; t < p->threads; t++) f.room = sides[t].begun + 2 > f.room ? sides[t].begun + 2 : f.room;
    for (int t = 0; t < p->threads; t++) f.closed[t] = (uint8_t *)calloc(f.room, 1);
    uint64_t expected = 0, outer = 0;
    for (int t = 0; t < p->threads; t++) expected += sides[t].ended, outer += sides[t].outer;
    /* Killed before init was done there may be no file, or one without a header; then nothing had been
       recorded. */
    const bool must_be = expected > 0 || outer > 0;
    if (must_be || access(arena.path, R_OK) == 0) {
        npuprof_damage damage;
        if (must_be || npuprof_load(arena.path, &damage) == NPUPROF_OK) read_image(arena.path, &f, true);
    }
    /* Killed between the creation of the stream and its first chunk it leaves an empty file: all is in the
       arena still, and is looked for there. */
    struct stat size = { 0 };
    if (p->policy == NPUPROF_STREAM && stat(stream.path, &size) == 0 && size.st_size > 0) {
        found in_stream = f;
        in_stream.twice = in_stream.bare = in_stream.bare_open = 0;
        if (read_image(stream.path, &in_stream, false)) {
            f.twice = 0;                   /* the last chunk may be in both */
            f.bad += in_stream.bad;
            f.bare += in_stream.bare;
            f.bare_open += in_stream.bare_open;
        }
    }
    CHECK_UINT(f.twice, 0);
    CHECK_UINT(f.bad, 0);
    /* What was done is there or counted, once: of two spans a round one may just be in the making, and the
       next round's, too. */
    const uint64_t least = outer + 2 * expected,
        most = OUTER * (uint64_t)p->threads + 2 * (expected + 2 * (uint64_t)p->threads);
    if (p->policy != NPUPROF_STREAM && must_be
        && (f.stats.recorded + f.stats.lost < least || f.stats.recorded + f.stats.lost > most))
        check_failed_(__FILE__, __LINE__, "recorded %" PRIu64 " + lost %" PRIu64 ", done %" PRIu64
                                          " to %" PRIu64, f.stats.recorded, f.stats.lost, least, most);
    /* A span that was open at a chunk change goes on in the new chunk, its arguments stay in the old one: it
       may be there without them when that was overwritten, or lies in the other file. And one may be killed
       before its arguments come. */
    uint64_t bare = f.bare, bare_open = f.bare_open;
    uint64_t stale = 0;
    CHECK(bare_open <= (uint64_t)p->threads);
    CHECK(bare <= (p->policy == NPUPROF_KEEP_OLDEST ? 0 : 2 * (uint64_t)p->threads));
    for (int t = 0; t < p->threads; t++) {
        const side *s = &sides[t];
        uint64_t first = 0, missing = 0;
        if (p->policy == NPUPROF_KEEP_NEWEST) while (first < s->ended && !f.closed[t][first]) first++;
        for (uint64_t n = first; n < s->ended; n++) {
            missing += !f.closed[t][n];
            /* Killed while it took the oldest chunk over, a thread leaves that one as it was, before a
               gap. */
            if (p->policy == NPUPROF_KEEP_NEWEST && !f.closed[t][n] && n > first && f.closed[t][n - 1] &&
                stale < (uint64_t)p->threads) {
                stale++;
                missing = 0;
                while (n + 1 < s->ended && !f.closed[t][n + 1]) n++;
                first = n + 1;
            }
        }
        if (p->policy == NPUPROF_STREAM && missing) {
            const uint64_t excused = missing < bare ? missing : bare;
            missing -= excused;
            bare -= excused;
        }
        spans_checked += s->ended - first;
        spans_missing += missing;
        if (missing)
            check_failed_(__FILE__, __LINE__, "%" PRIu64 " of %" PRIu64
                                              " ended spans of thread %d are missing", missing,
                          s->ended - first, t);
        /* The one that was open: there, and marked, or just closed. */
        if (f.unfinished[t] > 1 + stale)
            check_failed_(__FILE__, __LINE__, "%" PRIu64 " unfinished spans of thread %d", f.unfinished[t],
                          t);
        if (f.unfinished[t] && f.last_unfinished[t] < s->ended)
            check_failed_(__FILE__, __LINE__, "span %" PRIu64 " of thread %d had ended", f.last_unfinished[t],
                          t);
        if (s->begun == s->ended || f.unfinished[t] || f.closed[t][s->ended]) continue;
        if (bare_open) bare_open--;
        else if (bare) bare--;
        else check_failed_(__FILE__, __LINE__, "span %" PRIu64 " of thread %d had begun and is not there",
                           s->ended, t);
    }
    if (p->policy != NPUPROF_STREAM) {
        if (f.outer[0] < outer || f.outer[0] > (uint64_t)p->threads * OUTER)
            check_failed_(__FILE__, __LINE__, "%" PRIu64 " outer spans, %" PRIu64 " had begun", f.outer[0],
                          outer);
        CHECK(!f.outer_unmarked);
    }
    if (p->policy == NPUPROF_KEEP_OLDEST && f.plain < expected)
        check_failed_(__FILE__, __LINE__, "%" PRIu64 " plain spans of %" PRIu64, f.plain, expected);
    if (check_failures_)
        printf("  (%s, %s, %d threads, %zu bytes, after %u us, pause %u)\n", ending_names[p->how],
               life_policy_names[p->policy],
               p->threads, p->arena_bytes, p->die_after_us, p->pause);
    else unlink(arena.path), unlink(stream.path);
    for (int t = 0; t < p->threads; t++) free(f.closed[t]);
}

static uint32_t random_state;
static uint32_t random_below(uint32_t limit)
{
    return random_state = random_state * 1664525u + 1013904223u, (random_state >> 8) % limit;
}

static void kill_many(int policy, uint64_t runs, ending first, ending last)
{
    sides = (side *)mmap(NULL, 8192, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    CHECK_STOP(sides != MAP_FAILED);
    ready = (volatile int *)(void *)((char *)sides + 4000);
    if (access("/dev/shm", W_OK) == 0) setenv("NPUPROF_TEST_TMP", "/dev/shm", 1);
    random_state = (uint32_t)time(NULL);
    const uint32_t seed = random_state;
    for (uint64_t i = 0; i < runs && !check_failures_; i++) {
        plan p;
        p.policy = policy;
        p.threads = 1 + (int)random_below(THREADS_MAX);
        p.how = (ending)((int)first + (int)random_below((uint32_t)(last - first) + 1));
        if (p.how == KILLED_EARLY && random_below(2)) p.how = KILLED;
        p.arena_bytes = policy == NPUPROF_KEEP_OLDEST ? (size_t)32 << 20
            : (size_t)1 << (16 + random_below(5));
        p.pause = random_below(4) ? 1000 : policy == NPUPROF_KEEP_OLDEST ? 100 : 0;
        p.die_after_us = random_below(p.how == KILLED_EARLY ? 3000 : 10000);
        kill_once(&p);
    }
    if (check_failures_) printf("  (seed %u)\n", (unsigned)seed);
    printf("note %s: %" PRIu64 " runs, %" PRIu64 " ended spans looked for, %" PRIu64 " missing\n",
           life_policy_names[policy],
           runs, spans_checked, spans_missing);
}

static void killed(void) { kill_many(NPUPROF_KEEP_OLDEST, life_scaled(30, 200), KILLED, KILLED_EARLY); }

static void killed_overwriting(void)
{
    kill_many(NPUPROF_KEEP_NEWEST, life_scaled(20, 100), KILLED, KILLED_EARLY);
}

static void killed_streaming(void) { kill_many(NPUPROF_STREAM, life_scaled(20, 100), KILLED, KILLED); }
static void died_otherwise(void) { kill_many(NPUPROF_KEEP_OLDEST, life_scaled(16, 60), SEGV, EXITED); }

CHECK_MAIN(CASE(killed), CASE(killed_overwriting), CASE_THOROUGH(killed_streaming), CASE(died_otherwise))
