#pragma once   /* SPDX-License-Identifier: MIT */
#include "../../npuprof.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

/* What both APIs use: names that stay, counts of what npuprof cannot hold, and the calls of npuprof.h with
   names that come at run time.

   Owns: the table of names, which only grows: a name is put before the first of its row by compare and swap
   (release), and never changes. So no lock is held when a process forks. The counts, added to relaxed. One
   word for each thread.
   Why the functions behind the macros: PROF_COUNTER and PROF_INSTANT take literals alone. */

/* ---- What cannot be held: enumerator, and the key in the trace's metadata */

#define COLLECT_LOSSES(X)                                                                          \
    X(COLLECT_ITT_CLOCK, "itt.clock")            /* calls with times of a clock of the program's */ \
    X(COLLECT_ITT_GROUP, "itt.group")            /* groups of tasks, tracks */                      \
    X(COLLECT_ITT_MARK, "itt.mark")              /* events and marks, the older API */              \
    X(COLLECT_ITT_MEMORY, "itt.memory")          /* notes on the heap */                            \
    X(COLLECT_ITT_METADATA, "itt.metadata")      /* of what is not the innermost task here */       \
    X(COLLECT_ITT_MODEL, "itt.model")            /* annotations for another tool */                 \
    X(COLLECT_ITT_OTHER, "itt.other")            /* calls that this library does not know */        \
    X(COLLECT_ITT_PARENT, "itt.parent")          /* of overlapped tasks and regions */              \
    X(COLLECT_ITT_RELATION, "itt.relation")      /* between two ids */                              \
    X(COLLECT_ITT_STUB, "itt.stub")              /* libraries whose part of ITT is not as known */  \
    X(COLLECT_ITT_STITCH, "itt.stitch")          /* stacks that belong together */                  \
    X(COLLECT_ITT_SYNC, "itt.sync")              /* notes on locks */                               \
    X(COLLECT_NVTX_OBJECT, "nvtx.object")        /* names of objects of CUDA, OpenCL, the system */ \
    X(COLLECT_NVTX_ORDER, "nvtx.order")          /* ranges that do not nest, of several domains */  \
    X(COLLECT_NVTX_PAYLOAD, "nvtx.payload")      /* of start/end ranges, or of unknown type */      \
    X(COLLECT_NVTX_THREAD, "nvtx.thread")        /* names of other threads */                       \
    X(COLLECT_NAMES, "names")                    /* names beyond the table's limit */

#define COLLECT_ENUM(name, key) name,
enum collect_loss { COLLECT_LOSSES(COLLECT_ENUM) COLLECT_LOSS_COUNT };
#undef COLLECT_ENUM

/* Why a line of the cache each: threads that count different things do not wait for one another. */
static struct { uint64_t count; char rest[56]; } collect_lost[COLLECT_LOSS_COUNT];

/* Writes a count into the trace's metadata; as a counter if that has no place left, as with 20,000 names. */
static void collect_say(enum collect_loss kind, uint64_t count)
{
#define COLLECT_SITE(loss, key) \
    { .kind = NPUPROF_KIND_COUNTER_UINT, .name = "npuprof.collect.not_held." key },
    static npuprof_site_ sites[] = { COLLECT_LOSSES(COLLECT_SITE) };
#undef COLLECT_SITE
    char text[24];
    snprintf(text, sizeof text, "%llu", (unsigned long long)count);
    if (npuprof_metadata(sites[kind].name, text) != NPUPROF_OK && NPUPROF_OPEN_(1))
        npuprof_event_now_(&sites[kind], count);
}

/* Counts one. Why said at powers of two, and all at exit: a killed program's mapped arena then tells half of
   the count or more, and the table of texts has a few of them. */
static void *collect_lose(enum collect_loss kind)
{
    const uint64_t count = __atomic_add_fetch(&collect_lost[kind].count, 1, __ATOMIC_RELAXED);
    if ((count & (count - 1)) == 0) collect_say(kind, count);
    return NULL;
}

static void collect_say_all(void)
{
    for (int kind = 0; kind < COLLECT_LOSS_COUNT; kind++) {
        const uint64_t count = __atomic_load_n(&collect_lost[kind].count, __ATOMIC_RELAXED);
        if (count) collect_say((enum collect_loss)kind, count);
    }
}

static void collect_forked(void)
{
    memset(collect_lost, 0, sizeof collect_lost);
}

/* Why here: npuprof.h has registered its own function for exit, which writes the trace, in an earlier
   constructor; what is registered later is called first. */
__attribute__((constructor)) static void collect_begins(void)
{
    (void)pthread_atfork(NULL, NULL, collect_forked);
    (void)atexit(collect_say_all);
}

/* ---- Names */

/* What the pointers of both APIs lead to that this library has made. Two types of ITT begin the union: their
   fields are read and tested by the program. */
typedef struct itt_domain {
    volatile int flags;                  /* 0: the program does not call */
    const char *name;
    void *wide;
    int extra1;
    void *extra2;
    struct itt_domain *next;
} itt_domain;
typedef struct itt_handle {
    const char *text;
    void *wide;
    int extra1;
    void *extra2;                        /* left to collectors: the collect_name of this text */
    struct itt_handle *next;
} itt_handle;

enum { COLLECT_DOMAIN = NPUPROF_KIND_COUNT, COLLECT_TEXT_USE, COLLECT_CATEGORY };

typedef struct collect_name {
    union { itt_domain domain; itt_handle handle; } face;
    const struct collect_name *self;     /* its own address: what ITT made before has another word there */
    struct collect_name *next;           /* in its row of the table */
    uint32_t use, number;                /* a kind of record or one above; a number of the API's, atomic */
    const char *domain;                  /* the category, or NULL. Of a name here, or as long-lived */
    npuprof_site_ site;
    npuprof_keys_ keys;
    uint64_t value;                      /* of a counter that is counted up and down */
    char text[];
} collect_name;

enum { COLLECT_ROWS = 1 << 12, COLLECT_NAMES_MAX = 1 << 16 };
static collect_name *collect_rows[COLLECT_ROWS];
static uint32_t collect_names;

/* The innermost ITT task's id, folded to the upper half, 0: none; the domains of the innermost eight NVTX
   ranges, four bits each. */
static __thread uint64_t collect_here __attribute__((tls_model("initial-exec")));

static bool collect_same(const char *a, const char *b)
{
    return a == b || (a && b && strcmp(a, b) == 0);
}

static collect_name *collect_find(collect_name *from, uint32_t use, const char *domain, const char *text)
{
    for (; from; from = from->next)
        if (from->use == use && collect_same(from->domain, domain) && strcmp(from->text, text) == 0)
            return from;
    return NULL;
}

static collect_name *collect_new(uint32_t use, const char *domain, const char *text, const char *api)
{
    const size_t bytes = strlen(text) + 1, of_domain = domain ? strlen(domain) + 1 : 0;
    if (__atomic_add_fetch(&collect_names, 1, __ATOMIC_RELAXED) > COLLECT_NAMES_MAX) return NULL;
    collect_name *const n = (collect_name *)calloc(1, sizeof *n + bytes + of_domain);
    if (!n) return NULL;
    memcpy(n->text, text, bytes);
    if (domain) n->domain = (const char *)memcpy(n->text + bytes, domain, of_domain);
    n->self = n;
    n->use = use;
    if (use == COLLECT_DOMAIN) {
        n->face.domain.name = n->text;
        n->face.domain.flags = 1;
    } else if (use == COLLECT_TEXT_USE) {
        n->face.handle.text = n->text;
        n->face.handle.extra2 = n;
    }
    n->site.kind = use;
    n->site.name = n->text;
    n->site.category = n->domain;
    n->site.file = n->keys.file = api;
    n->keys.kind = use < NPUPROF_KIND_COUNT ? use : NPUPROF_KIND_SPAN;
    return n;
}

static collect_name **collect_row(uint32_t use, const char *domain, const char *text)
{
    uint32_t hash = use * 2654435761u;
    for (const char *s = text; *s; s++) hash = (hash ^ (unsigned char)*s) * 16777619u;
    for (const char *s = domain; s && *s; s++) hash = (hash ^ (unsigned char)*s) * 16777619u;
    return &collect_rows[(hash ^ hash >> 16) % COLLECT_ROWS];
}

/* The name of this use, domain and text, if there is one. */
static collect_name *collect_look(uint32_t use, const char *domain, const char *text)
{
    collect_name **const row = collect_row(use, domain, text);
    return collect_find(__atomic_load_n(row, __ATOMIC_ACQUIRE), use, domain, text);
}

/* The same; makes it. api: "ITT" or "NVTX", what the outputs show as its source. NULL: there is no memory, or
   there are too many, which is counted. */
static collect_name *collect_intern(uint32_t use, const char *domain, const char *text, const char *api)
{
    collect_name **const row = collect_row(use, domain, text), *made = NULL;
    collect_name *first = __atomic_load_n(row, __ATOMIC_ACQUIRE);
    for (;;) {
        collect_name *const found = collect_find(first, use, domain, text);
        if (found) {
            free(made);
            return found;
        }
        if (!made) made = collect_new(use, domain, text, api);
        if (!made) return (collect_name *)collect_lose(COLLECT_NAMES);
        made->next = first;
        if (__atomic_compare_exchange_n(row, &first, made, false, __ATOMIC_RELEASE, __ATOMIC_ACQUIRE))
            return made;
    }
}

/* ---- Records with a name that comes at run time */

static void collect_event(collect_name *n, uint64_t value)
{
    if (n && NPUPROF_OPEN_(1)) npuprof_event_now_(&n->site, value);
}

static void collect_instant(const char *domain, const char *text, npuprof_args args, const char *api)
{
    collect_name *const n = collect_intern(NPUPROF_KIND_INSTANT, domain, text, api);
    if (n && NPUPROF_OPEN_(1)) npuprof_event_args_now_(&n->site, &n->keys, 0, args);
}

static void collect_result(collect_name *n, npuprof_args args)
{
    if (NPUPROF_OPEN_(1)) npuprof_result_(&n->keys, args);
}

static void collect_async(const char *domain, const char *text, uint64_t id, const char *api)
{
    collect_event(collect_intern(NPUPROF_KIND_ASYNC_BEGIN, domain, text, api), id);
}

/* n: of the text, or NULL: not known. keys: of the place, if so. */
static void collect_begin(collect_name *n, npuprof_keys_ *keys, const char *domain, const char *text)
{
    npuprof_begin_by_hand_(n ? &n->keys : keys, domain, text);
}

/* A number that differs for other a and b, for npuprof_async_begin(). */
static uint64_t collect_mix(uint64_t a, uint64_t b)
{
    a ^= b + 0x9E3779B97F4A7C15u + (a << 6) + (a >> 2);
    a = (a ^ a >> 30) * 0xBF58476D1CE4E5B9u;
    a = (a ^ a >> 27) * 0x94D049BB133111EBu;
    return a ^ a >> 31;
}
