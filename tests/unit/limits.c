/* the numbers of "Limits" in examples/REFERENCE.md: each is reached; one more is lost by its cause or refused
   SPDX-License-Identifier: MIT */
#include "trace.h"
#include "npuprof.h"
#include "npuprof_npu.h"
#include "recorded.h"

static uint64_t memory[(1 << 20) / 8];

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
        CHECK_UINT(stats_now().recorded, before + d->open);
        CHECK_UINT(stats_now().lost, 0);
    }
    deep(3 * d->open + 6);
    CHECK(stats_now().lost_by_cause[NPUPROF_LOST_DEPTH] > 0);
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
    CHECK_UINT(stats_now().recorded, 64);
    by_hand(66);
    CHECK_UINT(stats_now().lost_by_cause[NPUPROF_LOST_DEPTH], 2);
}

static void default_arena(void)
{
    npuprof_start(1);
    for (int i = 0; i < 900000; i++) { PROF_SCOPE("plain"); }
    CHECK_UINT(stats_now().recorded, 900000);
    CHECK_UINT(stats_now().lost, 0);
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
    CHECK(strstr(npuprof_result_string(NPUPROF_ERR_CATEGORIES), "up to 255 bytes") != NULL);
    CHECK_INT(npuprof_set_categories(text + sizeof text - 1 - 255), NPUPROF_OK);
    npuprof_set_categories(NULL);
    npuprof_start(1);
    PROF_INSTANT("c", "long", PROF_ARGS(PROF_STR("fits", text + sizeof text - 1 - 1024),
                                        PROF_STR("cut", text + sizeof text - 1 - 1025)));
    json_node *const i = trace_event(written(), "i", "long", 0);
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
    for (uintptr_t n = 0; n < 1300; n++) on_a_thread(named, (void *)n);
    json_node *const t = written();
    for (json_node *e = json_get(t, "traceEvents")->first; e; e = e->next) {
        const char *const name = json_text(json_get(e, "args.name"));
        own += name && strncmp(name, "thread ", 7) == 0;
    }
    printf("note %u rows\n", own);
    CHECK_INT(own / 10, 114);
}

/* ---- Stack: of a thread whose stack was painted, what was written to */

enum { STACK = 256 * 1024, PAINT = 0xA5 };

static size_t stack_of(void *(*work)(void *), void *user)
{
    static union { long double align; unsigned char bytes[STACK]; } stack;
    pthread_attr_t attr;
    pthread_t thread;
    size_t untouched = 0;
    memset(stack.bytes, PAINT, STACK);
    pthread_attr_init(&attr);
    CHECK_STOP(!pthread_attr_setstack(&attr, stack.bytes, STACK));
    CHECK_STOP(!pthread_create(&thread, &attr, work, user));
    pthread_join(thread, NULL);
    while (untouched < STACK && stack.bytes[untouched] == PAINT) untouched++;
    return STACK - untouched;
}

static void *does_nothing(void *user) { return user; }

static void *records(void *user)
{
    for (int i = *(const int *)user; i > 0; i--) {
        PROF_SCOPE_ARGS("c", "s", PROF_ARGS(PROF_STR("text", "a string that is longer than eight bytes")));
        PROF_COUNTER("n", i);
    }
    return NULL;
}

static void *writes(void *user)
{
    CHECK_INT(npuprof_dump((const char *)user), NPUPROF_OK);
    return NULL;
}

static void *prints(void *user)
{
    FILE *const f = (FILE *)user;
    CHECK_INT(npuprof_print_summary(f), NPUPROF_OK);
    CHECK_INT(npuprof_print_inferences(f), NPUPROF_OK);
    CHECK_INT(npuprof_print_npu_executions(f), NPUPROF_OK);
    CHECK_INT(npuprof_print_memory(f), NPUPROF_OK);
    return NULL;
}

static void takes(const char *what, size_t most, void *(*work)(void *), void *user)
{
    const size_t thread = stack_of(does_nothing, NULL), all = stack_of(work, user), bytes = all - thread;
    printf("note %s: %u bytes of stack\n", what, (unsigned)bytes);
    CHECK(bytes <= most);
}

static uint64_t read_ticks(void *user)
{
    (void)user;
    return (uint64_t)npuprof_now_ns();
}

/* One of each kind of span that outputs sort, and an arrow. */
static void sorted_kinds(void)
{
    static npuprof_npu npu;
    npuprof_npu_desc desc = { 0 };
    desc.name = "npu0";
    desc.read_ticks = read_ticks;
    desc.counter.hz = 1000000000;
    CHECK_STOP(npuprof_npu_open(&npu, &desc) == NPUPROF_OK);
    const int64_t now = npuprof_now_ns();
    npuprof_npu_span(&npu, 0, "device", "NPU", (uint64_t)now - 10, (uint64_t)now, PROF_NO_ARGS);
    npuprof_span("track", "c", "finished", now - 10, now, PROF_NO_ARGS);
    npuprof_async_begin("c", "async", 7);
    npuprof_async_end(7);
    { PROF_SCOPE("out"); PROF_FLOW_OUT(1); }
    { PROF_SCOPE("in"); PROF_FLOW_IN(1); }
    npuprof_npu_close(&npu);
}

static void stack(void)
{
    static const char *const names[] = { "t.json", "t.csv", "t.npuprof" };
    npuprof_desc desc = { 0 };
    char path[1024];
    int once = 1, often = 20000;
    if (CHECK_SANITIZED) CHECK_SKIP("a sanitizer takes stack of its own");
    snprintf(path, sizeof path, "%s", check_path("s.npuprof"));
    desc.arena = memory, desc.arena_bytes = 64 << 10;
    desc.when_full = NPUPROF_STREAM, desc.output_path = path;
    CHECK_INT(npuprof_init(&desc), NPUPROF_OK);
    npuprof_start(1);
    takes("the first record", 6 << 10, records, &once);
    takes("a stream", 10 << 10, records, &often);
    sorted_kinds();
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        snprintf(path, sizeof path, "%s", check_path(names[i]));
        takes(names[i], 32 << 10, writes, path);
    }
    FILE *const f = fopen("/dev/null", "w");
    CHECK_STOP(f != NULL);
    takes("the reports", 32 << 10, prints, f);
    fclose(f);
}

CHECK_MAIN(CASE(stack), CASE(open_spans), CASE(default_arena), CASE(strings), CASE(devices),
           CASE_THOROUGH(rows))
