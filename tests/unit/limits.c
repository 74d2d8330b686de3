/* the numbers of "Limits" in examples/README.md: each is reached; one more is lost by its cause, or refused
   SPDX-License-Identifier: MIT */
#include "trace.h"
#define NPUPROF_IMPLEMENTATION
#include "npuprof.h"
#include "npuprof_npu.h"

static uint64_t memory[(1 << 20) / 8];

static npuprof_stats stats(void)
{
    npuprof_stats s;
    CHECK_INT(npuprof_get_stats(&s), NPUPROF_OK);
    return s;
}

static void deep(unsigned more)
{
    PROF_SCOPE("deep");
    if (more > 1) deep(more - 1);
}

static void by_hand(unsigned more)
{
    PROF_BEGIN("c", "by hand");
    if (more > 1) by_hand(more - 1);
    PROF_END();
}

typedef struct depth { size_t arena_bytes; unsigned open; } depth;

/* Wherever the thread is in its chunk, so many can be open. Far deeper, some are lost by their cause. */
static void one_depth(const void *user)
{
    const depth *const d = (const depth *)user;
    npuprof_desc desc = { 0 };
    desc.arena = memory, desc.arena_bytes = d->arena_bytes;
    CHECK_INT(npuprof_init(&desc), NPUPROF_OK);
    npuprof_start(1);
    for (unsigned before = 0; before < 2 * d->open + 4; before++) {
        npuprof_clear();
        for (unsigned i = 0; i < before; i++) { PROF_SCOPE("before"); }
        deep(d->open);
        CHECK_UINT(stats().recorded, before + d->open);
        CHECK_UINT(stats().lost, 0);
    }
    deep(3 * d->open + 6);
    CHECK(stats().lost_by_cause[NPUPROF_LOST_DEPTH] > 0);
}

static void open_spans(void)
{
    static const depth depths[] = {
        { 1 << 20, 253 }, { (1 << 20) - 8, 125 }, { 128 << 10, 125 }, { (128 << 10) - 8, 29 },
        { 16 << 10, 29 }, { (16 << 10) - 8, 13 }, { 4096, 13 }, { 4088, 5 }, { 2048, 5 }
    };
    for (size_t i = 0; i < sizeof depths / sizeof depths[0]; i++) check_in_child(one_depth, &depths[i]);
    npuprof_start(1);
    by_hand(64);
    CHECK_UINT(stats().recorded, 64);
    by_hand(66);
    CHECK_UINT(stats().lost_by_cause[NPUPROF_LOST_DEPTH], 2);
}

static void default_arena(void)
{
    npuprof_start(1);
    for (int i = 0; i < 900000; i++) { PROF_SCOPE("plain"); }
    CHECK_UINT(stats().recorded, 900000);
    CHECK_UINT(stats().lost, 0);
}

static void strings(void)
{
    static char text[8200];
    npuprof_desc desc = { 0 };
    memset(text, 'x', sizeof text - 1);
    text[0] = '/';
    desc.output_path = text + sizeof text - 1 - 1024;
    CHECK_INT(npuprof_init(&desc), NPUPROF_ERR_ARGUMENT);
    desc.output_path++;
    CHECK_INT(npuprof_init(&desc), NPUPROF_OK);
    CHECK_INT(npuprof_set_categories(text + sizeof text - 1 - 256), NPUPROF_ERR_CATEGORIES);
    CHECK_INT(npuprof_set_categories(text + sizeof text - 1 - 255), NPUPROF_OK);
    npuprof_set_categories(NULL);
    npuprof_start(1);
    PROF_INSTANT("c", "long", PROF_ARGS(PROF_STR("fits", text + sizeof text - 1 - 1024),
                                        PROF_STR("cut", text + sizeof text - 1 - 1025)));
    CHECK_INT(npuprof_dump(check_path("t.json")), NPUPROF_OK);
    json_node *const i = trace_event(trace_load(check_path("t.json")), "i", "long", 0);
    CHECK_STR(json_text(json_get(i, "args.fits")), text + sizeof text - 1 - 1024);
    CHECK_UINT(strlen(json_text(json_get(i, "args.cut"))), 1024 + 3);
    CHECK_STR(json_text(json_get(i, "args.cut")) + 1024, "\xE2\x80\xA6");
}

static uint64_t ticks(void *user)
{
    (void)user;
    return (uint64_t)npuprof_now_ns();
}

static void devices(void)
{
    static npuprof_npu npu;
    char name[20];
    npuprof_start(1);
    for (int i = 0; i < 257; i++) {
        npuprof_npu_desc desc = { 0 };
        snprintf(name, sizeof name, "npu%d", i);
        desc.name = name, desc.read_ticks = ticks, desc.counter.hz = 1000000000;
        CHECK_INT(npuprof_npu_open(&npu, &desc), i < 255 ? NPUPROF_OK : NPUPROF_ERR_TABLE_FULL);
        npuprof_npu_close(&npu);
    }
}

static void *named(void *user)
{
    char name[40];
    snprintf(name, sizeof name, "thread %u", (unsigned)(uintptr_t)user);
    PROF_THREAD_NAME(name);
    PROF_INSTANT("c", "of");
    return NULL;
}

/* Threads one after the other, each with a name that never comes again. */
static void rows(void)
{
    unsigned own = 0;
    npuprof_start(1);
    for (uintptr_t n = 0; n < 1300; n++) {
        pthread_t thread;
        CHECK_STOP(!pthread_create(&thread, NULL, named, (void *)n));
        pthread_join(thread, NULL);
    }
    CHECK_INT(npuprof_dump(check_path("t.json")), NPUPROF_OK);
    json_node *const t = trace_load(check_path("t.json"));
    for (json_node *e = json_get(t, "traceEvents")->first; e; e = e->next) {
        const char *const name = json_text(json_get(e, "args.name"));
        own += name && strncmp(name, "thread ", 7) == 0;
    }
    printf("note %u rows\n", own);
    CHECK_INT(own / 10, 114);
}

CHECK_MAIN(CASE(open_spans), CASE(default_arena), CASE(strings), CASE(devices), CASE_THOROUGH(rows))
