/* life.h - what the tests of process life share: set-up of each policy, sinks, counting a written trace
   without keeping it.
   SPDX-License-Identifier: MIT

   Include it instead of npuprof.h. A test may hold the implementation. */
#ifndef LIFE_H
#define LIFE_H

#include "trace.h"
#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <sys/stat.h>
#include <time.h>
#include "npuprof.h"
#include "recorded.h"
#ifdef NPUPROF_IMPLEMENTATION
#include "../../tools/convert/load.h"
#else
#define NPUPROF_LOADS_ELSEWHERE
#include "../../tools/convert/api.h"
#endif

/* ---- sizes ---- */

CHECK_UNUSED_ static bool life_is_soak(void) { return getenv("NPUPROF_TEST_SOAK") != NULL; }

/* Under a sanitizer or valgrind. */
CHECK_UNUSED_ static bool life_is_slow(void)
{
    return CHECK_SANITIZED || getenv("NPUPROF_TEST_SLOW") != NULL;
}

/* How many of something: `soak` in the large version, a quarter of `test` in `make test`, a tenth under
   sanitizers and valgrind. */
CHECK_UNUSED_ static uint64_t life_scaled(uint64_t test, uint64_t soak)
{
    const uint64_t n = life_is_soak() ? soak : test;
    return life_is_slow() ? (n + 9) / 10 : check_is_quick() ? (n + 3) / 4 : n;
}

/* ---- set-up ---- */

static const char *const life_policy_names[] = { "keep-oldest", "keep-newest", "stream" };

/* A sink that keeps what it gets. Every call must come alone. */
typedef struct life_memory {
    uint8_t *bytes;
    size_t count, room, calls;
    int inside;
    int (*before)(struct life_memory *m, size_t count);   /* may refuse: an errno value */
} life_memory;

CHECK_UNUSED_ static int life_keep(void *user, const void *bytes, size_t count)
{
    life_memory *m = (life_memory *)user;
    int error = 0;
    CHECK(__atomic_add_fetch(&m->inside, 1, __ATOMIC_SEQ_CST) == 1);
    m->calls++;
    if (m->before) error = m->before(m, count);
    if (!error) {
        if (m->count + count > m->room) {
            m->room = (m->count + count) * 2 + 65536;
            m->bytes = (uint8_t *)realloc(m->bytes, m->room);
            if (!m->bytes) abort();
        }
        memcpy(m->bytes + m->count, bytes, count);
        m->count += count;
    }
    __atomic_sub_fetch(&m->inside, 1, __ATOMIC_SEQ_CST);
    return error;
}

CHECK_UNUSED_ static npuprof_sink life_sink(life_memory *m)
{
    npuprof_sink sink = { life_keep, m };
    return sink;
}

/* An arena of the heap; recording is on afterwards. sink: for NPUPROF_STREAM. */
CHECK_UNUSED_ static void life_begin(int policy, size_t arena_bytes, life_memory *sink)
{
    npuprof_desc desc = { 0 };
    desc.arena = malloc(arena_bytes);
    desc.arena_bytes = arena_bytes;
    desc.when_full = policy;
    if (policy == NPUPROF_STREAM) desc.sink = life_sink(sink);
    CHECK_STOP(desc.arena != NULL);
    memset(desc.arena, 0xA5, arena_bytes);     /* an arena need not be empty */
    CHECK_INT(npuprof_init(&desc), NPUPROF_OK);
    if (check_failures_) check_end_(NULL);
    npuprof_start(1);
}

/* ---- a written trace, counted line by line as it comes ---- */

typedef struct life_counts {
    uint64_t slices, instants, counters, others;
    char tail[8192];             /* the last line: the metadata */
    size_t tail_count;
    void (*each)(struct life_counts *c, const char *line);   /* for every event, or NULL */
    void *user;
    bool whole_tail;
} life_counts;

CHECK_UNUSED_ static void life_count_line_(life_counts *c)
{
    const char *phase = strstr(c->tail, "{\"ph\":\"");
    c->tail[c->tail_count] = 0;
    if (phase != c->tail) return;
    if (c->tail[7] == 'X') c->slices++;
    else if (c->tail[7] == 'i') c->instants++;
    else if (c->tail[7] == 'C') c->counters++;
    else c->others++;
    if (c->each) c->each(c, c->tail);
}

CHECK_UNUSED_ static int life_count_bytes(void *user, const void *bytes, size_t count)
{
    life_counts *c = (life_counts *)user;
    const char *at = (const char *)bytes, *const end = at + count;
    while (at < end) {
        const char *stop = (const char *)memchr(at, '\n', (size_t)(end - at));
        size_t n = (size_t)((stop ? stop : end) - at), fits = sizeof c->tail - 1 - c->tail_count;
        if (c->whole_tail) c->tail_count = 0, c->whole_tail = false, fits = sizeof c->tail - 1;
        memcpy(c->tail + c->tail_count, at, n < fits ? n : fits);
        c->tail_count += n < fits ? n : fits;
        if (stop) {
            c->tail[c->tail_count] = 0;
            life_count_line_(c);
            c->whole_tail = true;
            n++;
        }
        at += n;
    }
    return 0;
}

/* Writes the JSON of what is open and counts it; never keeps it. */
CHECK_UNUSED_ static life_counts life_count(void (*each)(life_counts *c, const char *line), void *user)
{
    life_counts c;
    npuprof_sink sink = { life_count_bytes, &c };
    memset(&c, 0, sizeof c);
    c.each = each;
    c.user = user;
    CHECK_INT(npuprof_write_json(sink), NPUPROF_OK);
    c.tail[c.tail_count] = 0;
    return c;
}

/* The number behind `"key":` in a line of JSON; -1 if there is none. */
CHECK_UNUSED_ static int64_t life_number(const char *line, const char *key)
{
    char quoted[64];
    snprintf(quoted, sizeof quoted, "\"%s\":", key);
    const char *found = strstr(line, quoted);
    return found ? strtoll(found + strlen(quoted), NULL, 10) : -1;
}

CHECK_UNUSED_ static bool life_has(const char *line, const char *text) { return strstr(line, text) != NULL; }

/* The sum of lost in the metadata line. */
CHECK_UNUSED_ static uint64_t life_lost_in(const char *tail)
{
    const char *at = strstr(tail, "\"lost\":{");
    uint64_t sum = 0;
    if (!at) {
        check_failed_(__FILE__, __LINE__, "no lost in the metadata: %.80s", tail);
        return 0;
    }
    for (at += 8; *at == '"'; at += *at == ',') {
        const bool part = !strncmp(at, "\"arguments\"", 11) || !strncmp(at, "\"notes\"", 7);
        char *end;
        at = strchr(at + 1, '"') + 2;
        const uint64_t n = strtoull(at, &end, 10);
        if (!part) sum += n;
        at = end;
    }
    return sum;
}

/* recorded + lost == executed, by the stats and by the written file; its events are the recorded ones.
   events: does every record of this trace become one slice, instant or counter? */
CHECK_UNUSED_ static npuprof_stats life_account(uint64_t executed, bool events)
{
    const npuprof_stats s = stats_now();
    CHECK_UINT(s.recorded + s.lost, executed);
    const life_counts c = life_count(NULL, NULL);
    const int64_t streamed = life_number(c.tail, "streamed"), in_file = life_number(c.tail, "recorded");
    CHECK_INT(in_file + (streamed > 0 ? streamed : 0), s.recorded);
    CHECK_UINT(life_lost_in(c.tail), s.lost);
    if (events) CHECK_INT(c.slices + c.instants + c.counters, in_file);
    return s;
}

/* Nothing of an image is damaged. */
CHECK_UNUSED_ static void life_check_whole(const npuprof_damage *damage)
{
    if (damage->places)
        check_failed_(__FILE__, __LINE__, "%" PRIu64 " damaged places, the first at %" PRIu64 ": %s",
                      damage->places, damage->offset, damage->what);
}

/* What was loaded, so: as many events as `recorded` says, and the same losses; it is unloaded then. */
CHECK_UNUSED_ static void life_check_loaded_(npuprof_result loaded, const npuprof_damage *damage,
                                             uint64_t recorded, uint64_t lost, bool events)
{
    CHECK_INT(loaded, NPUPROF_OK);
    if (check_failures_) check_end_(NULL);
    life_check_whole(damage);
    const npuprof_stats s = stats_now();
    CHECK_UINT(s.recorded, recorded);
    CHECK_UINT(s.lost, lost);
    if (events) {
        const life_counts c = life_count(NULL, NULL);
        CHECK_UINT(c.slices + c.instants + c.counters, recorded);
    }
    npuprof_unload();
}

/* The same of a file. */
CHECK_UNUSED_ static void life_check_file(const char *path, uint64_t recorded, uint64_t lost)
{
    npuprof_damage damage;
    const npuprof_result loaded = npuprof_load(path, &damage);
    life_check_loaded_(loaded, &damage, recorded, lost, recorded < 5000000);
}

/* The same of what the sink got. */
CHECK_UNUSED_ static void life_check_streamed(life_memory *m, uint64_t recorded, uint64_t lost, bool events)
{
    npuprof_damage damage;
    const npuprof_result loaded = npuprof_load_memory(m->bytes, m->count, &damage);
    life_check_loaded_(loaded, &damage, recorded, lost, events);
}

/* ---- the process ---- */

/* A path with the pid in it: as a pattern for the library, and as it will be. Why: a case is a child of fork,
   and its files get a `-<pid>` where the pattern has no %p. */
typedef struct life_path { const char *pattern, *path; } life_path;
CHECK_UNUSED_ static life_path life_own_path(const char *extension)
{
    life_path p;
    char name[64];
    snprintf(name, sizeof name, "%d.%s", (int)getpid(), extension);
    p.path = check_path(name);
    snprintf(name, sizeof name, "%%p.%s", extension);
    p.pattern = check_path(name);
    return p;
}

CHECK_UNUSED_ static size_t life_resident_bytes(void)
{
    unsigned long pages = 0;
    FILE *file = fopen("/proc/self/statm", "r");
    if (!file || fscanf(file, "%*u %lu", &pages) != 1) pages = 0;
    if (file) fclose(file);
    return (size_t)pages * (size_t)sysconf(_SC_PAGESIZE);
}

CHECK_UNUSED_ static double life_seconds(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

#endif /* LIFE_H */
