/* test: - the recorder for microcontrollers that keeps the newest: random records over many laps against a
   model that knows the truth
   SPDX-License-Identifier: MIT

   Every read of the clock is another tick, so the start of a record names it. With RING_MASKS cells are
   taken with interrupts masked: what cores without exclusive access do. */
#include "trace.h"
static uint64_t ticks;
static unsigned context;
static uint64_t read_clock(void) { return ++ticks; }
#ifdef RING_MASKS
static unsigned masked;
static unsigned mask(void) { return masked++; }
static void unmask(unsigned before) { masked = before; }
#define NPUPROF_MASK() mask()
#define NPUPROF_UNMASK(before) unmask(before)
#endif
#define NPUPROF_NOW() read_clock()
#define NPUPROF_NOW_HZ 1000000000u
#ifndef NPUPROF_NOW_BITS
#define NPUPROF_NOW_BITS 32
#endif
#define NPUPROF_FREESTANDING
#ifndef NPUPROF_WHEN_FULL
#define NPUPROF_WHEN_FULL NPUPROF_KEEP_NEWEST
#endif
#define NPUPROF_CONTEXTS 4
#define NPUPROF_CONTEXT() context
#define NPUPROF_ARENA_BYTES 0
#define NPUPROF_IMPLEMENTATION
#include "npuprof.h"
#include "own_json.h"

static int put_some(void *user, const void *bytes, size_t n);

/* What was executed since the last clear, in the order of the starts. */
typedef struct truth {
    char phase;
    const char *name;
    uint64_t start, end;               /* end 0: still open */
    unsigned context, cells;
    bool found;
} truth;
#if NPUPROF_WHEN_FULL == NPUPROF_STREAM
enum { RENAMES = 20000 };              /* what a stream sends must fit in memory */
#else
enum { RENAMES = 1000000 };
#endif
enum { MOST = 400000, CONTEXTS = 4, DEPTH = 6 };
static truth *list;
static size_t count, open_count;
static uint64_t first;
#if NPUPROF_WHEN_FULL == NPUPROF_STREAM
static bool late;                      /* nobody polls */
#endif
static const char *const names[] = { "a", "b", "a name that takes two cells", "d" };

static truth *note(char phase, const char *name, uint64_t start, unsigned cells)
{
    truth *const t = &list[count++];
    t->phase = phase;
    t->name = name;
    t->start = start;
    t->end = 0;
    t->context = context;
    t->cells = cells;
    if (count >= MOST) abort();
    return t;
}

static uint32_t seed;
static uint32_t chance(uint32_t below)
{
    seed = seed * 1664525u + 1013904223u;
    return (seed >> 8) % below;
}

static size_t by_hand[CONTEXTS][DEPTH], scopes[CONTEXTS];
static unsigned depth[CONTEXTS];
static uint64_t arena[8192 / 8];

#if NPUPROF_WHEN_FULL == NPUPROF_STREAM
static size_t streamed, parsed, cell_count, cell_parsed;
static uint32_t headers, parts;
#endif

static void begin(size_t bytes)
{
    npuprof_desc desc;
    memset(&desc, 0, sizeof desc);
    memset(depth, 0, sizeof depth);
    memset(npuprof_fw_by_hand_of_, 0, sizeof npuprof_fw_by_hand_of_);
    memset(npuprof_fw_notes_, 0, sizeof npuprof_fw_notes_);
    memset(npuprof_fw_past_, 0, sizeof npuprof_fw_past_);
    desc.arena = arena;
    desc.arena_bytes = bytes;
    desc.when_full = NPUPROF_WHEN_FULL;
    desc.sink.write = put_some;
    if (!list) list = (truth *)calloc(MOST, sizeof *list);
    npuprof_stop();
    npuprof_fw_arena_ = &npuprof_fw_no_arena_;
    ticks = UINT64_C(0xFFFF0000);
    count = open_count = 0;
#if NPUPROF_WHEN_FULL == NPUPROF_STREAM
    streamed = parsed = cell_count = cell_parsed = 0;
    headers = parts = 0;
#endif
    context = 0;
    CHECK_INT(npuprof_init(&desc), NPUPROF_OK);
    first = ticks;
    npuprof_start(1);
}

static void by_hand_begins(void)
{
    const char *const name = names[chance(4)];
    PROF_BEGIN(NULL, name);
    by_hand[context][depth[context]++] = count;
    note('X', name, ticks, 2 + (strlen(name) > 8));
    open_count++;
}

static void by_hand_ends(void)
{
    PROF_END();
    list[by_hand[context][--depth[context]]].end = ticks;
    open_count--;
}

static void step(int left);

/* A scope whose context is free for it: what it opens inside, it closes. */
static void scope(int left, bool with_args)
{
    const unsigned own = context, before = depth[own];
    const size_t at = count;
    if (with_args) {
        PROF_SCOPE_ARGS("c", "with", PROF_ARGS(PROF_INT("n", 7), PROF_STR("s", "some text that is long")));
        note('X', "with", ticks, 4)->end = 0;
        open_count++;
        for (uint32_t n = chance(4); n--;) step(left - 1);
        for (context = own; depth[own] > before;) by_hand_ends();
    } else {
        PROF_SCOPE("scope");
        note('X', "scope", ticks, 1);
        open_count++;
        for (uint32_t n = chance(4); n--;) step(left - 1);
        for (context = own; depth[own] > before;) by_hand_ends();
    }
    list[at].end = ticks;
    open_count--;
}

static void step(int left)
{
    context = chance(CONTEXTS);
#if NPUPROF_WHEN_FULL == NPUPROF_STREAM
    if (!late) (void)npuprof_poll();
#endif
    const uint32_t what = chance(10);
    if (what < 2 && depth[context] < DEPTH) by_hand_begins();
    else if (what < 4 && depth[context] > scopes[context]) by_hand_ends();
    else if (what < 7 && left) {
        const unsigned own = context;
        const size_t before = scopes[own];
        scopes[own] = depth[own];
        scope(left, what == 6);
        scopes[own] = before;
    } else if (what == 7) {
        PROF_INSTANT("c", "instant", PROF_NO_ARGS);
        note('i', "instant", ticks, 1);
    } else if (what == 8) {
        PROF_COUNTER("counter", ticks);
        note('C', "counter", ticks, 2);
    } else {
        { PROF_SCOPE("short"); note('X', "short", ticks, 1); }
        list[count - 1].end = ticks;
    }
}

static truth *find(uint64_t start)
{
    size_t low = 0, high = count;
    while (low < high) {
        const size_t middle = low + (high - low) / 2;
        if (list[middle].start < start) low = middle + 1;
        else high = middle;
    }
    return low < count && list[low].start == start ? &list[low] : NULL;
}

#if NPUPROF_WHEN_FULL == NPUPROF_STREAM

/* ---- The stream, read without the library */
static uint8_t bytes_of[64 << 20];
static npuprof_cell_ cells_of[4 << 20];

/* Takes all, some or nothing, or fails. */
static int put_some(void *user, const void *bytes, size_t n)
{
    const uint32_t what = chance(8);
    const size_t taken = what < 4 ? n : what < 6 ? chance((uint32_t)n + 1) : 0;
    (void)user;
    CHECK_INT(npuprof_poll(), NPUPROF_ERR_BUSY);
    CHECK_STOP(streamed + n < sizeof bytes_of);
    if (what == 7) return 5;
    memcpy(bytes_of + streamed, bytes, taken);
    streamed += taken;
    return taken == n ? 0 : NPUPROF_SINK_TOOK(taken);
}

static npuprof_compact_header_ newest;
static bool header_is_last;

/* A part with cells. */
static void parse_cells(const npuprof_stream_head_ *p, const uint8_t *cells)
{
    header_is_last = false;
    CHECK_STOP(headers && ++parts <= 64);
    CHECK_UINT(p->next - p->count, cell_count);
    memcpy(&cells_of[cell_count], cells, p->count * (size_t)16);
    if (cell_parsed < cell_count) cell_parsed += npuprof_fw_length_(&cells_of[cell_parsed]);
    CHECK_UINT(p->lead, cell_parsed - cell_count);
    cell_count += p->count;
    /* How long a record is says its first field, which may come with the next part. */
    while (cell_parsed < cell_count && (!(cells_of[cell_parsed].ref & 1) || cell_parsed + 1 < cell_count))
        cell_parsed += npuprof_fw_length_(&cells_of[cell_parsed]);
}

/* Every byte belongs to a part that is whole, and no cell is missing or twice. */
static void parse(void)
{
    npuprof_stream_head_ p;
    for (; parsed < streamed; parsed += 16 + p.count * (size_t)16) {
        const uint8_t *const at = bytes_of + parsed;
        memcpy(&p, at, sizeof p);
        CHECK_STOP(p.mark == NPUPROF_STREAM_MARK_ && p.count && p.count <= 16);
        CHECK_UINT(p.crc, ~npuprof_crc_add_(UINT32_MAX, at + 8, 8 + p.count * (size_t)16));
        if (memcmp(at + 16, "NPUPROF\n", 8) != 0) {
            parse_cells(&p, at + 16);
            continue;
        }
        memcpy(&newest, at + 16, sizeof newest);
        CHECK_UINT(p.count, 5);
        CHECK_UINT(p.next, cell_count);
        CHECK_UINT(newest.format, 1);
        CHECK_UINT(newest.layout, NPUPROF_LAYOUT_PARTS);
        headers++;
        parts = 0;
        header_is_last = true;
    }
    CHECK_UINT(parsed, streamed);
}

static void check(bool all)
{
    npuprof_stats stats;
    npuprof_result r;
    size_t kept = 0, ends = 0, no_ends = 0;
    while ((r = npuprof_flush()) == NPUPROF_ERR_BUSY || r == NPUPROF_ERR_IO) { }
    CHECK_INT(r, NPUPROF_OK);
    parse();
    for (size_t i = 0; i < count; i++) list[i].found = false;
    static uint64_t *seen;                                   /* of each of the truth: its end in the stream */
    if (!seen) seen = (uint64_t *)malloc(MOST * sizeof *seen);
    memset(seen, 0, count * sizeof *seen);
    for (size_t at = 0; at < cell_count; at += npuprof_fw_length_(&cells_of[at])) {
        const npuprof_cell_ *const head = &cells_of[at];
        const bool open = head->high.half[1] & NPUPROF_CELL_OPEN_;
        const bool close = head->ref >> 8 == NPUPROF_CELL_KIND_CLOSE_;
        if (!close && !npuprof_fw_is_event_(head)) continue;
        CHECK_STOP(at + npuprof_fw_length_(head) <= cell_count);
        truth *const t = find(close ? head->end : head->start);
        CHECK_STOP(t && (t->found ? open || close : !close));
        t->found = true;
        if (t->phase == 'X' && !open) {
            CHECK_UINT(seen[t - list], 0);
            seen[t - list] = close ? head->start : head->end;
            CHECK_UINT(t->end, seen[t - list]);
        }
        CHECK_UINT(head->high.half[0] & 3, t->context);
        if (!(head->ref & 2)) CHECK_STR(npuprof_fw_site_of_(head)->name, t->name);
        else if (!close) CHECK_INT(memcmp(&head[1].end, t->name, strlen(t->name)), 0);
    }
    for (size_t i = 0; i < count; i++) {
        kept += list[i].found;
        ends += list[i].found && list[i].phase == 'X' && list[i].end;
        no_ends += list[i].found && list[i].phase == 'X' && list[i].end && !seen[i];
    }
    CHECK_INT(npuprof_get_stats(&stats), NPUPROF_OK);
    CHECK_UINT(stats.recorded, kept);
    CHECK_UINT(stats.recorded + stats.lost, count);
    CHECK(header_is_last);
    CHECK_UINT(newest.lost, stats.lost);
    CHECK_UINT(no_ends, stats.lost_by_cause[NPUPROF_LOST_NOTES]);
    CHECK(!all || ends > no_ends);
    CHECK(!all || kept > count / 2);
}

#else /* NPUPROF_WHEN_FULL is NPUPROF_KEEP_NEWEST */

static int put_some(void *user, const void *bytes, size_t n) { return put(user, bytes, n); }

/* Each event of the trace is one of the truth, and no two are the same one. Returns how many. */
static uint64_t compare(json_node *t)
{
    uint64_t kept = 0;
    for (size_t i = 0; i < count; i++) list[i].found = false;
    for (json_node *e = json_get(t, "traceEvents")->first; e; e = e->next) {
        const char phase = json_text(json_get(e, "ph"))[0];
        if (phase == 'M') continue;
        truth *const r = find(first + (uint64_t)trace_start(e));
        CHECK_STOP(r && !r->found && r->phase == phase);
        r->found = true;
        kept++;
        CHECK_STR(json_text(json_get(e, "name")), r->name);
        CHECK_UINT(trace_tid(e), r->context + 1);
        if (phase != 'X') continue;
        CHECK((json_get(e, "args.unfinished") != NULL) == !r->end);
        if (r->end) CHECK_UINT(first + (uint64_t)trace_end(e), r->end);
    }
    return kept;
}

/* all: the arena is large enough for all that is kept. */
static void check(bool all)
{
    npuprof_stats stats;
    json_node *const t = written();
    const uint64_t kept = compare(t);
    CHECK_INT(npuprof_get_stats(&stats), NPUPROF_OK);
    CHECK_UINT(stats.recorded, kept);
    CHECK_UINT(stats.recorded + stats.lost, count);
    CHECK_UINT(stats.lost_by_cause[NPUPROF_LOST_OVERWRITTEN], stats.lost);
    CHECK_UINT(json_int(json_get(t, "metadata.npuprof.recorded")), kept);
    CHECK_UINT(json_int(json_get(t, "metadata.npuprof.lost.overwritten")), stats.lost);
    CHECK_UINT(json_int(json_get(t, "metadata.npuprof.left_out")), 0);
    if (!all) return;
    CHECK(strstr(text, "a value that stays") && strstr(text, "task three"));
    uint64_t cells = 0, pinned = 0, room = stats.bytes_total / 16 - 5 - 16;      /* 16: names */
    for (size_t i = 0; i < count; i++)
        if (list[i].phase == 'X' && !list[i].end) {
            CHECK(list[i].found);
            pinned += list[i].cells;
        }
    for (size_t i = count; i-- && (cells += list[i].cells) < (room - pinned) / 2;) CHECK(list[i].found);
}

#endif /* NPUPROF_WHEN_FULL */

static void run(uint32_t number, size_t bytes, int steps, int checks, bool all)
{
    seed = number;
    begin(bytes);
    npuprof_metadata("key", "a value that stays");
    context = 2;
    PROF_THREAD_NAME("task three");
    for (int i = 0; i < checks; i++) {
        for (int n = 0; n < steps; n++) step(3);
        check(all);
    }
}

static void laps(void)
{
    for (uint32_t n = 1; n < 6; n++) run(n, 8192, 3000, 4, true);
    for (uint32_t n = 1; n < 40; n++) run(n, 4096, 100, 4, true);
}

/* More is open than fits: what finds no room is lost and counted, and nothing is overtaken. */
static void crowded(void)
{
    for (uint32_t n = 1; n < 60; n++) run(n, 256 + 32 * (size_t)chance(30), 200, 3, false);
}

/* Tasks that rename themselves for ever: the newest name of each is there, and a few of the older ones. */
static void renamed(void)
{
    npuprof_stats stats;
    char name[64], last[64];
    begin(4096);
    for (int i = 0; i < RENAMES; i++) {
        context = (unsigned)i % 2;
        (void)snprintf(name, sizeof name, "%s %d", i % 5 ? "name" : "a name of several cells", i);
        (void)snprintf(last, sizeof last, i % 7 ? "metadata %d" : "metadata of several cells %d", i);
        if (i % 3) PROF_THREAD_NAME(name);
        else CHECK_INT(npuprof_name(900 + (unsigned)i % 2, name), NPUPROF_OK);
        if (i % 4 == 3) CHECK_INT(npuprof_metadata("some key that is not short", last), NPUPROF_OK);
        if (i % 10 == 0) {
            PROF_INSTANT("c", "instant", PROF_NO_ARGS);
            note('i', "instant", ticks, 1);
        }
#if NPUPROF_WHEN_FULL == NPUPROF_STREAM
        while (npuprof_flush() != NPUPROF_OK) { }
#endif
    }
    check(false);
    npuprof_get_stats(&stats);
    CHECK_UINT(stats.lost_by_cause[NPUPROF_LOST_NOTES], 0);
#if NPUPROF_WHEN_FULL == NPUPROF_STREAM
    CHECK_UINT(stats.lost, 0);
#else
    CHECK(stats.recorded > 1);
    CHECK(strstr(text, last));
    for (int i = RENAMES; i-- > RENAMES - 2;) {
        (void)snprintf(name, sizeof name, "%s %d\"", i % 5 ? "name" : "a name of several cells", i);
        CHECK(!(i % 3) || strstr(text, name));
    }
#endif
    uint32_t open = 0;
    const npuprof_cell_ *const end = npuprof_fw_cells_end_(npuprof_fw_arena_);
    for (const npuprof_cell_ *at = npuprof_fw_cells_(npuprof_fw_arena_); at < end;
         at = npuprof_fw_after_record_(at)) open += (at->high.half[1] & NPUPROF_CELL_OPEN_) != 0;
    CHECK_UINT(open, 5 + NPUPROF_FW_PAST_);
}

#if NPUPROF_WHEN_FULL == NPUPROF_STREAM
/* Nobody polls for a while: what finds no room is lost and counted, nothing waits. */
static void late_reader(void)
{
    late = true;
    for (uint32_t n = 1; n < 20; n++) run(n, 2048, 300, 4, false);
    late = false;
}

static void refused(void)
{
    npuprof_desc desc;
    memset(&desc, 0, sizeof desc);
    npuprof_stop();
    npuprof_fw_arena_ = &npuprof_fw_no_arena_;
    desc.arena = arena;
    desc.arena_bytes = sizeof arena;
    desc.when_full = NPUPROF_STREAM;
    CHECK_INT(npuprof_init(&desc), NPUPROF_ERR_ARGUMENT);
    desc.sink.write = put_some;
    CHECK_INT(npuprof_init(&desc), NPUPROF_OK);
    CHECK_INT(npuprof_write_json(desc.sink), NPUPROF_ERR_UNSUPPORTED);
    CHECK_INT(npuprof_write_image(desc.sink), NPUPROF_ERR_UNSUPPORTED);
    CHECK_INT(npuprof_clear(), NPUPROF_ERR_UNSUPPORTED);
}

/* As a line does that has a short memory. */
static int put_little(void *user, const void *bytes, size_t n)
{
    const size_t taken = n < 7 ? n : 7;
    (void)user;
    memcpy(bytes_of + streamed, bytes, taken);
    streamed += taken;
    return taken == n ? 0 : NPUPROF_SINK_TOOK(taken);
}

/* npuprof_flush() ends with one header, also if the sink never takes a whole one, and others poll, too. */
static void slow_line(void)
{
    npuprof_desc desc;
    memset(&desc, 0, sizeof desc);
    npuprof_stop();
    npuprof_fw_arena_ = &npuprof_fw_no_arena_;
    streamed = parsed = cell_count = cell_parsed = headers = 0;
    desc.arena = arena;
    desc.arena_bytes = sizeof arena;
    desc.when_full = NPUPROF_STREAM;
    desc.sink.write = put_little;
    CHECK_INT(npuprof_init(&desc), NPUPROF_OK);
    npuprof_start(1);
    for (uint32_t i = 0; i < 6; i++) {
        int calls = 0;
        for (int n = 0; n < 5; n++) PROF_INSTANT("c", "instant", PROF_NO_ARGS);
        for (; npuprof_flush() == NPUPROF_ERR_BUSY && calls < 100; calls++)
            if (i & 1) (void)npuprof_poll();
        CHECK(calls < 100);
        parse();
        CHECK(header_is_last);
        CHECK_UINT(headers, i + 2);
        CHECK_UINT(cell_count, 5 * (i + 1));
    }
}

/* A program that goes on although npuprof_init() failed, or was never called. */
static void before_init(void)
{
    npuprof_stats stats;
    npuprof_fw_arena_ = &npuprof_fw_no_arena_;
    CHECK_INT(npuprof_get_stats(&stats), NPUPROF_OK);
    CHECK_UINT(stats.recorded, 0);
    CHECK_INT(npuprof_poll(), NPUPROF_ERR_ARGUMENT);
}

CHECK_MAIN(CASE(before_init), CASE(laps), CASE(crowded), CASE(renamed), CASE(late_reader), CASE(refused),
           CASE(slow_line))
#else /* NPUPROF_WHEN_FULL is NPUPROF_KEEP_NEWEST */
/* A span that is open for many laps ends where it began; garbage and old tokens end nothing. */
static void tokens(void)
{
    static const npuprof_site_ site = { .name = "long", .kind = NPUPROF_KIND_SPAN };
    npuprof_token_ old[200];
    begin(1024);
    for (int i = 0; i < 200; i++) npuprof_close_(old[i] = npuprof_begin_(&site));
    const npuprof_token_ open = npuprof_begin_(&site);
    const uint64_t start = ticks;
    uint8_t before[sizeof arena], now[sizeof arena];
    for (int i = 0; i < 3000; i++) {
        memcpy(before, arena, sizeof arena);
        npuprof_close_(old[chance(200)]);
        npuprof_close_(seed);
        npuprof_close_(open ^ 1u << chance(32));
        memcpy(now, arena, sizeof arena);
        memcpy(now + 44, before + 44, 4);                    /* the clock */
        CHECK_INT(memcmp(now, before, sizeof now), 0);
        { PROF_SCOPE("other"); }
    }
    CHECK(npuprof_is_open_(open));
    npuprof_close_(open);
    const uint64_t end = ticks;
    npuprof_close_(open);
    json_node *const t = written(), *const e = trace_event(t, "X", "long", 0);
    CHECK(e && !trace_event(t, "X", "long", 1));
    CHECK_UINT(first + (uint64_t)trace_start(e), start);
    CHECK_UINT(first + (uint64_t)trace_end(e), end);
}

static void clear_and_pause(void)
{
    npuprof_stats stats;
    begin(1024);
    npuprof_metadata("key", "a value that stays");
    PROF_BEGIN(NULL, "open");
    for (int i = 0; i < 500; i++) { PROF_SCOPE("before"); }
    CHECK_INT(npuprof_pause(), NPUPROF_OK);
    for (int i = 0; i < 500; i++) { PROF_SCOPE("not recorded"); }
    npuprof_resume();
    npuprof_clear();
    npuprof_get_stats(&stats);
    CHECK_UINT(stats.recorded + stats.lost, 0);
    for (int i = 0; i < 5; i++) { PROF_SCOPE("after"); }
    PROF_END();
    npuprof_get_stats(&stats);
    CHECK_UINT(stats.recorded, 5);
    CHECK_UINT(stats.lost, 0);
    json_node *const t = written();
    CHECK(trace_event(t, "X", "after", 4) && !strstr(text, "before") && !strstr(text, "not recorded"));
    CHECK(strstr(text, "a value that stays"));
}

/* What a reader's own sink records is lost, and counted. */
static int put_and_record(void *user, const void *bytes, size_t n)
{
    npuprof_stats stats;
    { PROF_SCOPE("in the sink"); }
    CHECK_INT(npuprof_get_stats(&stats), NPUPROF_ERR_BUSY);
    return put(user, bytes, n);
}

static void reading(void)
{
    npuprof_stats stats;
    const npuprof_sink nosy = { put_and_record, NULL };
    begin(1024);
    for (int i = 0; i < 100; i++) { PROF_SCOPE("s"); }
    length = 0;
    CHECK_INT(npuprof_write_image(nosy), NPUPROF_OK);
    npuprof_get_stats(&stats);
    CHECK(stats.recorded + stats.lost > 103 && stats.recorded == (1024 - 80) / 16);
}

static void refused(void)
{
    npuprof_desc desc;
    memset(&desc, 0, sizeof desc);
    npuprof_fw_arena_ = &npuprof_fw_no_arena_;
    desc.arena = arena;
    desc.arena_bytes = sizeof arena;
    CHECK_INT(npuprof_init(&desc), NPUPROF_ERR_UNSUPPORTED);
    desc.when_full = NPUPROF_STREAM;
    CHECK_INT(npuprof_init(&desc), NPUPROF_ERR_UNSUPPORTED);
    CHECK_INT(npuprof_poll(), NPUPROF_ERR_UNSUPPORTED);
    CHECK_INT(npuprof_flush(), NPUPROF_ERR_UNSUPPORTED);
}

CHECK_MAIN(CASE(laps), CASE(crowded), CASE(renamed), CASE(tokens), CASE(clear_and_pause), CASE(reading),
           CASE(refused))
#endif /* NPUPROF_WHEN_FULL */
