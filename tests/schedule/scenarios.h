/* scenarios.h - what the fibers do, and what must hold. Include after npuprof.h.
   SPDX-License-Identifier: MIT */
#ifndef SCENARIOS_H
#define SCENARIOS_H

/* ---- What is executed, and what may be found of it */

static struct {
    uint64_t begun, ended;             /* spans and events; an unfinished one has begun */
    uint64_t clears_begun, clears_ended;
    uint64_t surely_gone, maybe_gone;  /* of them: before the beginning, the end, of the last clear */
    int64_t serial;
} done;
static int policy;

static uint64_t least_now(void)
{
    if (done.clears_begun != done.clears_ended || done.ended < done.maybe_gone) return 0;
    return done.ended - done.maybe_gone;
}

/* gone: done.surely_gone before the reading. Why not of now: a clear may have ended since. */
static uint64_t most_since(uint64_t gone) { return done.begun - gone; }
static uint64_t most_now(void) { return most_since(done.surely_gone); }

static void check_total(const char *what, uint64_t recorded, uint64_t lost, uint64_t least, uint64_t most)
{
    if (recorded + lost >= least && recorded + lost <= most) return;
    fiber_fail("%s: recorded %llu + lost %llu, executed %llu to %llu", what, (unsigned long long)recorded,
               (unsigned long long)lost, (unsigned long long)least, (unsigned long long)most);
}

/* ---- Recording */

static void span(void)
{
    done.begun++;
    {
        PROF_SCOPE("span");
    }
    done.ended++;
}

static void instant(void)
{
    const int64_t v = ++done.serial * 8 + the.me;
    done.begun++;
    PROF_INSTANT("c", "inst", PROF_ARGS(PROF_INT("v", v), PROF_INT("w", v ^ 0x5555)));
    done.ended++;
}

static void nest(int depth, int n)
{
    done.begun++;
    {
        PROF_SCOPE("nest");
        if (depth) nest(depth - 1, n);
        for (int i = 0; i < n && !depth; i++) {
            span();
            instant();
        }
    }
    done.ended++;
}

/* A span whose name is new. */
static void named(void)
{
    char name[24];
    snprintf(name, sizeof name, "n%d.%lld", the.me, (long long)++done.serial);
    done.begun++;
    PROF_BEGIN("c", name);
    PROF_END();
    done.ended++;
}

static void on_handler(void)
{
    span();
    instant();
}

static void thread_ends(void)
{
    if (npuprof_slot_mine_() != &npuprof_slot_none_) npuprof_process_thread_ends_(npuprof_slot_mine_());
}

static void spans(int me)
{
    for (int i = 0; i < 20; i++) span();
    if (me & 1) thread_ends();
}

static void mixed(int me)
{
    (void)me;
    for (int i = 0; i < 20; i++) {
        instant();
        span();
    }
    thread_ends();
}

static void nested(int me)
{
    (void)me;
    for (int i = 0; i < 3; i++) nest(2, 4);
    thread_ends();
}

static void restarts(int me)
{
    (void)me;
    for (int i = 0; i < 3; i++) {
        for (int k = 0; k < 10; k++) span();
        thread_ends();
    }
}

static void renames(int me)
{
    for (int i = 0; i < 10; i++) span();
    PROF_THREAD_NAME(me ? "b" : "a");
    for (int i = 0; i < 10; i++) span();
    thread_ends();
    span();
    PROF_THREAD_NAME("a");
    span();
    thread_ends();
}

static void names(int me)
{
    (void)me;
    for (int i = 0; i < 8; i++) {
        named();
        span();
    }
    thread_ends();
}

/* Names so long that the table grows by a chunk every third one. */
static void grows(int me)
{
    char name[320];
    for (int i = 0; i < 4; i++) {
        memset(name, 'n', sizeof name);
        name[sizeof name - 1] = 0;
        memcpy(name, me & 1 ? "b" : "a", 1);
        memcpy(name + 1, &"0123456789"[(i + me) % 10], 1);
        done.begun++;
        PROF_BEGIN("c", name);
        PROF_END();
        done.ended++;
        instant();
    }
    thread_ends();
}

/* ---- Sinks */

typedef struct bytes {
    size_t count;
    bool cut;
    union { uint64_t words[1 << 16]; char text[1 << 19]; } of;
} bytes;
static bytes stream, image, json;
static int in_sink;
static bool slow;                      /* the sink of the stream: a pipe that nobody reads for a while */

static int put(void *user, const void *from, size_t count)
{
    bytes *const to = (bytes *)user;
    if (in_sink++) fiber_fail("two threads are in the sink");
    FIBER_ACCESS(&in_sink, true);
    const size_t room = sizeof to->of - 1 - to->count, n = count < room ? count : room;
    if (n < count) to->cut = true;
    memcpy(to->of.text + to->count, from, n);
    to->count += n;
    to->of.text[to->count] = 0;
    for (int i = 0; slow && to == &stream && i < 110000; i++) fiber_nap();
    if (to == &stream) slow = false;
    FIBER_ACCESS(&in_sink, true);
    in_sink--;
    return 0;
}

/* ---- Reading */

static void read_stats(void)
{
    npuprof_stats s;
    const uint64_t least = least_now(), gone = done.surely_gone, clears = done.clears_begun;
    const uint64_t naps = the.fiber[0].naps;
    npuprof_get_stats(&s);
    if (!s.bytes_total) return;                    /* refused: the caller writes just now */
    check_total("stats", s.recorded, s.lost, clears == done.clears_begun ? least : 0, most_since(gone));
    const uint64_t napped = the.fiber[0].naps - naps;
    if (unfair && policy == NPUPROF_KEEP_NEWEST && napped > 60)
        fiber_fail("a reader starves: it napped %d times", (int)napped);
}

static void stats(int me)
{
    (void)me;
    read_stats();
    read_stats();
}

/* The text's events: how many, are arguments whole, does no span end before it begins? */
static uint64_t check_events(const char *text)
{
    uint64_t events = 0;
    for (const char *line = text, *end; (end = strchr(line, '\n')) != NULL; line = end + 1) {
        long long v, w;
        const char *const args = strstr(line, "\"args\":{\"v\":");
        if (strncmp(line, "{\"ph\":\"X\"", 9) == 0) {
            events++;
            const char *const duration = strstr(line, "\"dur\":");
            if (!duration || duration[6] == '-') fiber_fail("a span ends before it begins");
        } else if (strncmp(line, "{\"ph\":\"i\",\"name\":\"inst\"", 23) == 0) {
            events++;
            if (!args || args > end) continue;            /* lost: counted below */
            if (sscanf(args, "\"args\":{\"v\":%lld,\"w\":%lld}", &v, &w) != 2 || w != (v ^ 0x5555))
                fiber_fail("torn arguments: %.*s", (int)(end - args), args);
        }
    }
    return events;
}

static uint64_t number_after(const char *text, const char *key)
{
    const char *const at = text ? strstr(text, key) : NULL;
    if (!at) fiber_fail("the JSON has no %s", key);
    return at ? strtoull(at + strlen(key), NULL, 10) : 0;
}

static void read_json(int me)
{
    (void)me;
    static const char *const causes[] = { "\"arena_full\":", "\"names_full\":", "\"too_deep\":",
                                          "\"no_context\":", "\"overwritten\":", "\"sink\":",
                                          "\"reading\":" };
    const uint64_t least = least_now(), gone = done.surely_gone, clears = done.clears_begun;
    json.count = 0;
    json.cut = false;
    const npuprof_result r = npuprof_write_json((npuprof_sink){ put, &json });
    if (r != NPUPROF_OK || json.cut) fiber_fail("JSON: %s", npuprof_result_string(r));
    const char *const losses = strstr(json.of.text, "\"lost\":{");
    uint64_t lost = 0;
    for (size_t i = 0; i < sizeof causes / sizeof *causes; i++) lost += number_after(losses, causes[i]);
    const uint64_t shown = check_events(json.of.text) + number_after(losses, "\"streamed\":");
    check_total("JSON", shown, lost, clears == done.clears_begun ? least : 0, most_since(gone));
    read_stats();
}

/* A live image is loaded when the run is over: until then everybody reads the arena. */
static uint64_t image_least, image_most;
static bool has_image;
static void write_image(int me)
{
    (void)me;
    const uint64_t gone = done.surely_gone;
    image_least = least_now();
    image.count = 0;
    image.cut = false;
    const npuprof_result r = npuprof_write_image((npuprof_sink){ put, &image });
    image_most = most_since(gone);
    if (r != NPUPROF_OK || image.cut) fiber_fail("the image: %s", npuprof_result_string(r));
    has_image = true;
}

/* A cursor: each span and event comes once, whole, or is lost. What a clear beside other threads makes lost
   is an estimate: an event that is being written may be left out, and an open span that moves counted twice.
   ahead: by so many records `lost` may run ahead while spans move between chunks. */
static struct { npuprof_cursor cursor; uint64_t ids[512], count, lost, open; unsigned left; } taken;
static bool take(void *user, const npuprof_read_span *span)
{
    (void)user;
    for (uint64_t i = 0; i < taken.count; i++)
        if (taken.ids[i] == span->id) fiber_fail("a span came twice");
    if (taken.count < 512) taken.ids[taken.count++] = span->id;
    if (span->end_ns < span->start_ns) fiber_fail("a span ends before it begins");
    const npuprof_arg *const v = span->args;
    if (span->arg_count && (span->arg_count != 2 || (v[0].value.i ^ 0x5555) != v[1].value.i))
        fiber_fail("torn arguments");
    return !taken.left || --taken.left;
}

static void read_once(unsigned stop_after, unsigned ahead)
{
    npuprof_read_result r = { .struct_size = sizeof r };
    const uint64_t ended = done.ended;
    taken.left = stop_after;
    const npuprof_result result = npuprof_read(&taken.cursor, NPUPROF_READ_ALL, take, NULL, &r);
    if (result != NPUPROF_OK) fiber_fail("npuprof_read: %s", npuprof_result_string(result));
    taken.lost += r.lost;
    taken.open = r.open;
    if (taken.count > done.begun) fiber_fail("a cursor got more than there was");
    if (!stop_after && !done.clears_begun)
        check_total("a cursor", taken.count + r.open, taken.lost, ended, done.begun + ahead);
}

static void reads_on(int me)
{
    (void)me;
    read_once(0, 4);
    read_once(3, 4);
    read_once(0, 4);
}

static void check_cursor(void)
{
    read_once(0, 0);
    if (taken.open) fiber_fail("a cursor has %d open spans", (int)taken.open);
    npuprof_read_end(&taken.cursor);
}

static void flushes(int me)
{
    (void)me;
    (void)npuprof_flush();
    (void)npuprof_flush();
}

static void clear(void)
{
    const uint64_t before = done.ended;
    done.clears_begun++;
    npuprof_clear();
    if (done.surely_gone < before) done.surely_gone = before;
    done.maybe_gone = done.begun;
    done.clears_ended++;
}

static void clears(int me)
{
    (void)me;
    clear();
    clear();
}

static void spans_and_clear(int me)
{
    spans(me);
    clear();
    span();
}

/* ---- Control */

static void pauses(int me)
{
    if (me & 1) npuprof_pause();
    else npuprof_resume();
}

static void stops(int me)
{
    if (me & 1) npuprof_stop();
    else npuprof_start(1);
}

static void sets_categories(int me) { (void)npuprof_set_categories(me & 1 ? "-a" : "b"); }
static void in_a(void) { PROF_SCOPE_CAT("a", "in a"); }
static void in_b(void) { PROF_SCOPE_CAT("b", "in b"); }
static void in_c(void) { PROF_SCOPE_CAT("c", "in c"); }

static void in_all(int me)
{
    (void)me;
    for (int i = 0; i < 3; i++) {
        in_a();
        in_b();
        in_c();
    }
}

static bool is_recorded(void (*record)(void))
{
    npuprof_stats before, after;
    npuprof_get_stats(&before);
    record();
    npuprof_get_stats(&after);
    return before.recorded + before.lost != after.recorded + after.lost;
}

static void check_categories(void)
{
    const bool a = is_recorded(in_a), b = is_recorded(in_b);
    (void)is_recorded(in_c);
    if (a || !b) fiber_fail("the categories that were set do not hold: a is %d, b is %d", a, b);
}

static void check_gate(void)
{
    const bool open = npuprof_control_.level > 0 && !npuprof_control_.paused;
    if (is_recorded(span) != open)
        fiber_fail("recording is %s, but the gate says otherwise", open ? "on" : "off");
    npuprof_resume();
    npuprof_image_ im;
    npuprof_image_init_live_(&im);
    uint32_t id = 0;
    const size_t size = sizeof(npuprof_pause_entry_);
    for (const npuprof_entry_ *e; (e = npuprof_image_next_entry_(&im, NPUPROF_ENTRY_PAUSE, size, &id))
         != NULL;)
        if (!((const npuprof_pause_entry_ *)(const void *)e)->to) fiber_fail("a pause has no end");
}

/* An unfair schedule: fiber 0, a reader, is woken where another stands between counting itself and going
   away. */
static uint64_t woken_at;
static bool wake_now(void)
{
    const uint64_t since = the.steps - woken_at;
    if (!npuprof_arena_.frozen || since < 30 || (since < 400 && !npuprof_arena_.recycling)) return false;
    woken_at = the.steps;
    return true;
}

static void records_long(int me)
{
    (void)me;
    for (int i = 0; i < 400; i++) span();
    thread_ends();
}

static void late_stats(int me)
{
    for (int i = 0; i < 2000; i++) fiber_point();
    stats(me);
}

/* ---- The scenarios */

enum {
    HANDLERS = 1,                      /* signals come */
    UNFAIR = 2,                        /* random schedules only, which work against fiber 0 */
    UNCOUNTED = 4,                     /* what is executed is not known */
    SLOW = 8,                          /* hundreds of thousands of accesses: a few random schedules */
    GROWS = 16                         /* an arena whose table grows in chunks */
};
typedef struct scenario {
    const char *name;
    void (*run[FIBERS])(int me);
    unsigned flags;
    void (*check)(void);
} scenario;

static const scenario scenarios[] = {
    { "spans2", { spans, spans }, 0, NULL },
    { "spans3", { spans, spans, spans }, 0, NULL },
    { "mixed2", { mixed, mixed }, 0, NULL },
    { "mixed3", { mixed, mixed, mixed }, 0, NULL },
    { "nested", { nested, nested }, 0, NULL },
    { "restarts", { restarts, restarts, restarts }, 0, NULL },
    { "renames", { renames, renames }, 0, NULL },
    { "names", { names, names, spans }, 0, NULL },
    { "stats1", { mixed, stats }, 0, NULL },
    { "stats", { mixed, mixed, stats }, 0, NULL },
    { "json", { mixed, nested, read_json }, 0, NULL },
    { "json+restarts", { nested, restarts, read_json }, 0, NULL },
    { "image", { mixed, nested, write_image }, 0, NULL },
    { "image+restarts", { mixed, restarts, nested, write_image }, 0, NULL },
    { "image+names", { names, names, write_image }, 0, NULL },
    { "readers", { mixed, restarts, read_json, write_image }, 0, NULL },
    { "flush", { mixed, spans, flushes }, 0, NULL },
    { "flush2", { mixed, restarts, flushes, flushes }, 0, NULL },
    { "flush+names", { names, mixed, flushes }, 0, NULL },
    { "flush+stats", { mixed, spans, flushes, stats }, 0, NULL },
    { "cursor1", { mixed, reads_on }, 0, check_cursor },
    { "cursor", { mixed, nested, reads_on }, 0, check_cursor },
    { "cursor+restarts", { nested, restarts, reads_on, stats }, 0, check_cursor },
    { "cursor+names", { names, mixed, reads_on }, 0, check_cursor },
    { "cursor+flush", { mixed, restarts, flushes, reads_on }, 0, check_cursor },
    { "cursor+clear", { mixed, nested, clears, reads_on }, 0, check_cursor },
    { "cursor+handlers", { mixed, nested, reads_on }, HANDLERS, check_cursor },
    { "clear", { mixed, spans, clears }, 0, NULL },
    { "clear2", { spans_and_clear, spans_and_clear, read_json }, 0, NULL },
    { "pause", { pauses, pauses }, UNCOUNTED, check_gate },
    { "pause+spans", { pauses, pauses, spans, pauses }, UNCOUNTED, check_gate },
    { "stop", { stops, stops }, UNCOUNTED, check_gate },
    { "categories", { sets_categories, sets_categories }, UNCOUNTED, check_categories },
    { "categories+spans", { in_all, sets_categories, sets_categories, in_all }, UNCOUNTED, check_categories },
    { "handlers", { mixed, mixed }, HANDLERS, NULL },
    { "handlers+nested", { nested, restarts }, HANDLERS, NULL },
    { "handlers+flush", { mixed, restarts, flushes }, HANDLERS, NULL },
    { "handlers+json", { mixed, nested, read_json }, HANDLERS, NULL },
    { "handlers+image", { mixed, names, write_image }, HANDLERS, NULL },
    { "handlers+clear", { mixed, spans, clears }, HANDLERS, NULL },
    { "starved", { late_stats, records_long, records_long, records_long }, UNFAIR, NULL },
    { "grows", { grows, grows, grows }, GROWS, NULL },
    { "grows+image", { grows, grows, write_image }, GROWS, NULL },
    { "grows+flush", { grows, restarts, flushes }, GROWS, NULL },
    { "grows+handlers", { grows, grows }, GROWS | HANDLERS, NULL },
    { "slow", { mixed, mixed, stats }, SLOW, NULL },
};
enum { SCENARIOS = sizeof scenarios / sizeof *scenarios };

/* ---- After a run */

static uint8_t places[1 << 12];        /* of each chunk */

static void check_free_chunks(const npuprof_header_ *h)
{
    uint32_t at = (uint32_t)npuprof_arena_.chunk_free & NPUPROF_CHUNK_NUMBER_MASK_;
    for (uint32_t n = 0; at; n++) {
        if (n > h->chunk_count || at > h->chunk_count) {
            fiber_fail("the free chunks are a ring");
            return;
        }
        places[at - 1]++;
        if (npuprof_chunk_at_(at - 1)->state != NPUPROF_CHUNK_FREE)
            fiber_fail("a free chunk has another state");
        at = npuprof_chunk_at_(at - 1)->next & NPUPROF_CHUNK_NUMBER_MASK_;
    }
}

static void check_queue(const npuprof_header_ *h)
{
    for (uint32_t at = h->queue_head; at != h->queue_tail; at++) {
        const uint32_t entry = npuprof_arena_.queue[at & (h->queue_slots - 1)],
            number = entry & NPUPROF_CHUNK_NUMBER_MASK_;
        if (!number || number > h->chunk_count
            || (entry & ~NPUPROF_CHUNK_NUMBER_MASK_) != npuprof_chunk_queue_lap_(h, at)) {
            fiber_fail("an entry of the queue was not filled in");
            return;
        }
        places[number - 1]++;
        if (npuprof_chunk_at_(number - 1)->state != NPUPROF_CHUNK_RETIRED)
            fiber_fail("a queued chunk is not retired");
    }
}

static void check_slots(const npuprof_header_ *h)
{
    for (uint32_t at = h->slot_first; at; at = npuprof_slot_at_(at)->head.next_slot) {
        const npuprof_slot_ *const slot = npuprof_slot_at_(at);
        if (slot->busy) fiber_fail("a slot is left busy");
        if (!slot->cursor) continue;
        places[slot->head.last_chunk - 1]++;
        if (npuprof_chunk_at_(slot->head.last_chunk - 1)->state != NPUPROF_CHUNK_OPEN)
            fiber_fail("a slot's chunk is not open");
    }
}

/* Those where the table goes on. */
static void check_pages(void)
{
    for (uint32_t n = 0; n < npuprof_arena_.page_count; n++) {
        const uint32_t i = npuprof_arena_.pages[n] - 1;
        if (i == UINT32_MAX) continue;
        if (npuprof_chunk_at_(i)->state != NPUPROF_BLOCK_TABLE_PIECE) fiber_fail("chunk %u is no page", i);
        places[i]++;
    }
}

/* Each chunk that was ever taken is in exactly one place, and nobody is left in the middle of anything. */
static void check_rest(void)
{
    const npuprof_arena_state_ *const s = &npuprof_arena_;
    const npuprof_header_ *const h = s->header;
    memset(places, 0, sizeof places);
    check_free_chunks(h);
    check_queue(h);
    check_slots(h);
    check_pages();
    for (uint32_t i = 0; i < h->chunk_next && i < h->chunk_count; i++) {
        places[i] = (uint8_t)(places[i] + (npuprof_chunk_at_(i)->state == NPUPROF_CHUNK_SLOTS));
        if (places[i] != 1) fiber_fail("chunk %u is in %u places", i, places[i]);
    }
    if (s->exchanging || s->recycling || s->frozen || s->writer || s->drainer)
        fiber_fail("left: exchanging %u, recycling %u, frozen %u, a writer %d, a drainer %d", s->exchanging,
                   s->recycling,
                   s->frozen, s->writer != 0, s->drainer != 0);
}

static void check_loaded(const char *what, bytes *from, uint64_t least, uint64_t most)
{
    npuprof_damage damage;
    npuprof_stats s;
    if (from->cut) fiber_fail("%s: no room", what);
    const npuprof_result r = npuprof_load_memory(from->of.words, from->count, &damage);
    if (r != NPUPROF_OK) {
        fiber_fail("%s does not load: %s, %s", what, npuprof_result_string(r), damage.what);
        return;
    }
    if (damage.places)
        fiber_fail("%s is damaged in %llu places: %s", what, (unsigned long long)damage.places, damage.what);
    npuprof_get_stats(&s);
    check_total(what, s.recorded, s.lost, least, most);
    npuprof_unload();
}

/* Counts are exact at the end: live, in an image, and in what was streamed. */
static void check_end(const scenario *sc)
{
    check_rest();
    if (has_image && policy != NPUPROF_STREAM)
        check_loaded("the live image", &image, image_least, image_most);
    if (sc->check) sc->check();
    if (sc->flags & UNCOUNTED || the.wrong) return;
    if (policy == NPUPROF_STREAM) {
        (void)npuprof_flush();
        if (!done.clears_begun) check_loaded("the stream", &stream, least_now(), most_now());
    } else {
        write_image(0);
        check_loaded("the image at the end", &image, least_now(), most_now());
    }
    read_stats();
}

#endif /* SCENARIOS_H */
