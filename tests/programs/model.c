/* model.c - records spans at random under a clock of its own, and says in a file what it recorded;
   test_model.py compares the outputs.
   SPDX-License-Identifier: MIT

   usage: MODEL_HZ=HZ model SEED THREADS SPANS STEP   writes truth.txt, live.json, live.csv, loaded.json,
   loaded.csv. STEP: "up", or "back" for a clock that may step back between two spans. */
#include <pthread.h>
#include <stdint.h>
#include <stdlib.h>

static __thread uint64_t model_ticks = UINT64_C(1) << 41;
#define NPUPROF_NOW() model_ticks
/* Why the environment: the library is set up before main. */
#define NPUPROF_NOW_HZ strtoull(getenv("MODEL_HZ"), NULL, 10)
#define NPUPROF_IMPLEMENTATION
#include "npuprof.h"
#include "../../tools/convert/load.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

enum { THREADS = 8, NAMES = 700, KEYS = 150, MOST = 40000, DEPTH = 40 };
typedef struct span { uint64_t start, end; const char *kind, *name, *category; char args[200]; } span;
typedef struct worker {
    unsigned number;
    uint64_t random;
    int64_t budget;
    uint32_t count;
    span *spans;
} worker;
static char names[NAMES][200], keys[KEYS][16] = { "pe_index", "u", "dram_base", "\xFE" };
static bool may_step_back;
static pthread_barrier_t reached, written;

static uint64_t draw(worker *w)
{
    w->random ^= w->random << 13;
    w->random ^= w->random >> 7;
    w->random ^= w->random << 17;
    return w->random >> 11;
}

/* How far the clock goes: often little, sometimes to where a number gets another digit or a field another
   bit. */
static uint64_t distance(worker *w)
{
    static const uint64_t edges[] = { 1, 9, 10, 999, 1000, 9999, 10000, 99999999, 100000000, 100000001,
                                      999999999, 1000000000, 9999999999, UINT64_C(4294967295),
                                      UINT64_C(4294967296), UINT64_C(99999999999), (UINT64_C(1) << 40) + 3,
                                      (UINT64_C(1) << 44) - 1, (UINT64_C(1) << 44) + 1 };
    const uint64_t r = draw(w);
    if (r % 8 == 0) return 0;
    if (r % 97 == 1) return edges[draw(w) % (sizeof edges / sizeof *edges)] + draw(w) % 3 - 1;
    /* To just before, at or behind a round number of the trace's own time. */
    if (r % 13 == 2) {
        static const uint64_t rounds[] = { 1000, 100000, 100000000, 1000000000, UINT64_C(10000000000) };
        const uint64_t round = rounds[draw(w) % 5], now = model_ticks - (UINT64_C(1) << 41),
            rest = round - now % round;
        return rest + draw(w) % 3 - (rest > 1);
    }
    return draw(w) % (r % 3 ? 2000 : 30000000);
}

static void go(worker *w) { model_ticks += distance(w); }

static span *begin(worker *w, const char *kind, const char *category, const char *name)
{
    static const char none[] = "";
    span *s = &w->spans[w->count++];
    w->budget--;
    s->start = model_ticks;
    s->end = UINT64_MAX;
    s->kind = kind;
    s->name = name;
    s->category = category ? category : none;
    s->args[0] = 0;
    return s;
}

static void end(worker *w, span *s)
{
    go(w);
    s->end = model_ticks;
}

/* A key as it is written. */
static const char *shown(const char *key) { return key[0] & 0x80 ? "\xEF\xBF\xBD" : key; }

static void block(worker *w, int depth);
static void one(worker *w, int depth)
{
    span *s;
    const uint64_t r = draw(w);
    const char *name = names[r / 64 % NAMES], *category = r / 65536 % 3 ? names[r / 131072 % 40] : NULL;
    if (may_step_back && depth == 0 && r % 5 == 0) model_ticks -= draw(w) % 3000;
    else go(w);
    switch (r % 16) {
    case 0: { PROF_SCOPE("plain"); s = begin(w, "span", NULL, "plain"); block(w, depth); end(w, s); break; }
    case 1: {
        PROF_SCOPE_CAT("a \"quoted\" one", "with, category");
        s = begin(w, "span", "a \"quoted\" one", "with, category");
        block(w, depth);
        end(w, s);
        break;
    }
    case 2: {
        const int64_t v = (int64_t)(draw(w) << 11) >> draw(w) % 64;
        PROF_SCOPE_ARGS("c", "one", PROF_ARGS(PROF_INT("i", v)));
        s = begin(w, "span", "c", "one");
        snprintf(s->args, sizeof s->args, "\"i\":%" PRId64, v);
        block(w, depth);
        end(w, s);
        break;
    }
    case 3: {
        /* Why keys that differ: some are columns of the CSV, some come twice, once by bad bytes, and many
           take others' places. */
        const uint64_t v = draw(w) << 11 >> draw(w) % 64, n = draw(w) % 1000;
        const char *const key = keys[draw(w) % (n % 2 ? KEYS : 4)], *const first = n % 8 ? "u" : "\xFF";
        const char *const quote = v >> 63 ? "\"" : "";
        PROF_SCOPE_ARGS("c", "three", PROF_ARGS(npuprof_uint_(first, v), npuprof_int_(key, (int64_t)n),
                                                PROF_BOOL("b", v & 1)));
        s = begin(w, "span", "c", "three");
        snprintf(s->args, sizeof s->args, "\"%s\":%s%" PRIu64 "%s,\"%s\":%" PRIu64 ",\"b\":%s",
                 shown(first), quote, v, quote, shown(key), n, v & 1 ? "true" : "false");
        block(w, depth);
        end(w, s);
        break;
    }
    case 4: {
        const char *text = draw(w) % 2 ? "short" : "a text of more than eight bytes";
        PROF_SCOPE_ARGS("c", "text", PROF_ARGS(PROF_STR("t", text), PROF_REAL("r", 0.5)));
        s = begin(w, "span", "c", "text");
        snprintf(s->args, sizeof s->args, "\"t\":\"%s\",\"r\":0.5", text);
        block(w, depth);
        end(w, s);
        break;
    }
    case 5: { PROF_RECORD(name); s = begin(w, "record", "Runtime", name); block(w, depth); end(w, s); break; }
    case 6: WITH_BASE_PROFILER(NULL, name, category, PROF_NO_ARGS,
                               s = begin(w, "span", category, name); block(w, depth); end(w, s)); break;
    case 7: { PROF_INSTANT("c", "moment", PROF_NO_ARGS); PROF_COUNTER("count", w->count); break; }
    case 8: {
        PROF_PHASES("first");
        s = begin(w, "span", NULL, "first");
        end(w, s);
        PROF_NEXT("second");
        s = begin(w, "span", NULL, "second");
        block(w, depth);
        end(w, s);
        break;
    }
    case 9: {
        const int op = (int)(draw(w) % 100);
        PROF_OPERATOR(op, name);
        s = begin(w, "operator", "Runtime", name);
        snprintf(s->args, sizeof s->args, "\"operator_index\":%d", op);
        end(w, s);
        break;
    }
    default: {
        PROF_BEGIN(category, name);
        s = begin(w, "span", category, name);
        block(w, depth);
        end(w, s);
        PROF_END();
        break;
    }
    }
}

static void block(worker *w, int depth)
{
    /* Many without children one after the other, too. */
    const uint64_t count = depth == 0 ? UINT64_MAX : depth >= DEPTH ? 0 : draw(w) % 32 ? draw(w) % 3
        : draw(w) % 300;
    for (uint64_t i = 0; i < count && w->budget > 0; i++) one(w, depth + 1);
}

static void *work(void *user)
{
    worker *w = (worker *)user;
    char name[20];
    snprintf(name, sizeof name, "w%u", w->number);
    PROF_THREAD_NAME(name);
    /* The second thread's clock begins before the trace does. */
    model_ticks = w->number == 1 ? (UINT64_C(1) << 41) - 2000000000 : (UINT64_C(1) << 41) + w->number * 77;
    while (w->budget > 0) one(w, 0);
    if (w->number % 2) {                   /* some are still open when the files are written */
        static const char left_open[] = "left open";
        for (int i = 0; i < 3; i++) {
            go(w);
            PROF_BEGIN(NULL, left_open);
            begin(w, "span", NULL, left_open);
        }
    }
    pthread_barrier_wait(&reached);
    pthread_barrier_wait(&written);
    return NULL;
}

static void put_hex(FILE *f, const char *text)
{
    if (!*text) fputc('-', f);
    for (; *text; text++) fprintf(f, "%02x", (unsigned)(unsigned char)*text);
}

int main(int argc, char **argv)
{
    static worker workers[THREADS];
    pthread_t thread[THREADS];
    if (argc != 5) return 2;
    const unsigned threads = (unsigned)atoi(argv[2]);
    worker seed = { 0, UINT64_C(0x9E3779B97F4A7C15) * (uint64_t)(atoi(argv[1]) + 1), 0, 0, NULL };
    may_step_back = strcmp(argv[4], "back") == 0;
    for (int i = 0; i < NAMES; i++) {
        static const char *const pieces[] = { "x", "name", "\"", "\\", ",", "\xC3\xA9", "\n", "\t", "\x01",
                                              " of ", "{}", "=1" };
        int used = snprintf(names[i], sizeof names[i], "n%d", i);
        /* Most are short; those of 100 and more bytes do not fit what a writer keeps of a name. */
        for (uint64_t n = i % 7 ? draw(&seed) % 6 : draw(&seed) % 80; n && used < 180; n--)
            used += snprintf(names[i] + used, sizeof names[i] - (size_t)used, "%s",
                             pieces[draw(&seed) % (sizeof pieces / sizeof *pieces)]);
    }
    for (int i = 4; i < KEYS; i++) snprintf(keys[i], sizeof keys[i], "key %d", i);
    npuprof_start(1);
    pthread_barrier_init(&reached, NULL, threads + 1);
    pthread_barrier_init(&written, NULL, threads + 1);
    for (unsigned i = 0; i < threads; i++) {
        workers[i] = (worker){ i, draw(&seed) | 1, atoi(argv[3]), 0, (span *)calloc(MOST, sizeof(span)) };
        if (!workers[i].spans || pthread_create(&thread[i], NULL, work, &workers[i])) return 2;
    }
    pthread_barrier_wait(&reached);
    if (npuprof_dump("live.json") || npuprof_dump("live.csv") || npuprof_dump("model.npuprof")) return 1;
    if (npuprof_load("model.npuprof", NULL) || npuprof_dump("loaded.json") || npuprof_dump("loaded.csv"))
        return 1;
    pthread_barrier_wait(&written);
    FILE *f = fopen("truth.txt", "w");
    if (!f) return 1;
    for (unsigned i = 0; i < threads; i++) {
        pthread_join(thread[i], NULL);
        for (uint32_t n = 0; n < workers[i].count; n++) {
            const span *s = &workers[i].spans[n];
            fprintf(f, "%u %" PRIu64 " %" PRIu64 " %s ", i, s->start, s->end, s->kind);
            put_hex(f, s->name);
            fputc(' ', f);
            put_hex(f, s->category);
            fprintf(f, " {%s}\n", s->args);
        }
    }
    return fclose(f) ? 1 : 0;
}
