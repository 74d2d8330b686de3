/* Two threads, one of which stops at each atomic access of npuprof.h while the other goes on.
   SPDX-License-Identifier: MIT
   BETWEEN_HEADER is npuprof.h with between.h in it. The argument is the case. */
#define _GNU_SOURCE
#include "check.h"
#include <pthread.h>
#include <semaphore.h>
#include <setjmp.h>
#include <signal.h>
#include <string.h>
#include <time.h>
#include <unistd.h>
#define NPUPROF_IMPLEMENTATION
#define NPUPROF_ARENA_BYTES 4096
#include BETWEEN_HEADER
#include "../../tools/convert/load.h"
#undef clock_gettime
#undef nanosleep

/* ---- the stage */

typedef void part(void);
enum { FIRST, SECOND, NOBODY };
static __thread int me = NOBODY;
static sem_t turn[2];
static volatile bool playing, ended[2];
/* stop_at: the first lets the second go on there, and the other way round */
static uint64_t steps[2], stop_at[2];
static part *handler;                      /* not NULL: it runs there, on the thread that stops */
static bool (*stops_when)(void);           /* or where this says so */
static uint64_t naps_to_sleep, idle;       /* waits that come before another thread goes on */
static int64_t time_ns = 1000000000;

static void go_on_with(int other)
{
    sem_post(&turn[other]);
    while (sem_wait(&turn[me]) != 0) {}
}

void between_point(const volatile void *place)
{
    (void)place;
    if (!playing || me == NOBODY) return;
    const bool now = ++steps[me] == stop_at[me];
    if (now && handler) {
        part *const run = handler;
        handler = NULL;
        run();
    } else if ((now || (stops_when && me == SECOND && stops_when())) && !ended[!me]) {
        go_on_with(!me);
    }
}

int between_nap(const struct timespec *time, struct timespec *left)
{
    (void)time;
    (void)left;
    time_ns += 70000;
    if (!playing || me == NOBODY) return 0;
    if (naps_to_sleep && naps_to_sleep--) return 0;
    if (!ended[!me]) {
        idle = 0;
        go_on_with(!me);
    } else if (++idle > 200000) {
        printf("  a thread waits for ever\n");
        _exit(1);
    }
    return 0;
}

int between_clock(clockid_t clock, struct timespec *time)
{
    const int64_t ns = time_ns + (clock == CLOCK_REALTIME ? INT64_C(1000000000000000000) : 0);
    time->tv_sec = (time_t)(ns / 1000000000);
    time->tv_nsec = (long)(ns % 1000000000);
    return 0;
}

static void take_part(int who, part *run)
{
    me = who;
    while (sem_wait(&turn[who]) != 0) {}
    run();
    me = NOBODY;
    ended[who] = true;
    sem_post(&turn[!who]);
}

static void *first_part(void *user)
{
    part *const *const run = (part *const *)user;
    take_part(FIRST, *run);
    return NULL;
}

/* Both, to their ends. Why the second on this thread: what was recorded before is that one's. */
static void play(part *first, part *second, uint64_t first_stop, uint64_t second_stop)
{
    pthread_t thread;
    sem_init(&turn[FIRST], 0, 1);
    sem_init(&turn[SECOND], 0, 0);
    stop_at[FIRST] = first_stop;
    stop_at[SECOND] = second_stop;
    playing = true;
    CHECK_STOP(pthread_create(&thread, NULL, first_part, &first) == 0);
    take_part(SECOND, second);
    pthread_join(thread, NULL);
    playing = false;
}

typedef struct piece { part *prepare, *first, *second, *check, *in_handler; bool both; } piece;
typedef struct stops { const piece *of; uint64_t first, second; } stops;
static void play_once(const void *user)
{
    const stops *const at = (const stops *)user;
    at->of->prepare();
    handler = at->of->in_handler;
    play(at->of->first, at->of->second, at->first, at->second);
    at->of->check();
    if (check_failures_)
        printf("  (stopped at %" PRIu64 ", the other at %" PRIu64 ")\n", at->first, at->second);
    fflush(stdout);
    _exit(check_failures_ ? 1 : steps[FIRST] < at->first ? 2 : steps[SECOND] < at->second ? 3 : 0);
}

/* At every place of the first; with `both` at every one of the second as well. */
static void play_everywhere(const piece *p)
{
    uint64_t plays = 0;
    for (stops at = { p, 1, 0 }; !check_failures_; at.first++) {
        int status = 0, code = 0;
        for (at.second = p->both; !code; at.second++) {
            plays++;
            fflush(stdout);
            const pid_t child = fork();
            if (child == 0) play_once(&at);
            CHECK_STOP(child > 0 && waitpid(child, &status, 0) == child);
            code = WIFEXITED(status) ? WEXITSTATUS(status) : 1;
            if (code == 1)
                check_failed_(__FILE__, __LINE__, "stopped at %" PRIu64 ", the other at %" PRIu64, at.first,
                              at.second);
            if (!p->both) break;
        }
        if (code == 1 || code == 2) break;
    }
    printf("note %" PRIu64 " plays\n", plays);
    CHECK(plays > 3);
}

#define AT_EACH(prepare, first, second, check) { prepare, first, second, check, NULL, false }
#define AT_BOTH(prepare, first, second, check) { prepare, first, second, check, NULL, true }
#define SIGNAL_AT_EACH(prepare, first, check) { prepare, first, nothing, check, send_signal, false }
#define PLAYED(name, ...) \
    static void name(void) \
    { \
        static const piece pieces[] = { __VA_ARGS__ }; \
        for (size_t i = 0; i < sizeof pieces / sizeof *pieces; i++) play_everywhere(&pieces[i]); \
    }

/* ---- what they record */

static uint64_t memory[1 << 15];
static volatile uint64_t executed, executed_before;
static npuprof_stats seen;

static void begin(int when_full, size_t arena_bytes, npuprof_sink sink)
{
    npuprof_desc desc;
    memset(&desc, 0, sizeof desc);
    desc.arena = memory;
    desc.arena_bytes = arena_bytes;
    desc.when_full = when_full;
    desc.sink = sink;
    CHECK_INT(npuprof_init(&desc), NPUPROF_OK);
    npuprof_start(1);
}

static void spans(uint64_t count)
{
    for (uint64_t i = 0; i < count; i++) {
        executed++;
        PROF_SCOPE("span");
    }
}
static const npuprof_sink no_sink;

/* A thread that takes chunks while another reads. */
static void oldest_with_some(void)
{
    begin(NPUPROF_KEEP_OLDEST, 16384, no_sink);
    spans(10);
}

static void hundred_spans(void) { spans(100); }

static void read_stats(void)
{
    executed_before = executed;
    npuprof_get_stats(&seen);
}

static void all_were_seen(void)
{
    CHECK(seen.recorded + seen.lost >= executed_before && seen.recorded + seen.lost <= executed);
    npuprof_get_stats(&seen);
    CHECK_UINT(seen.recorded + seen.lost, executed);
}

PLAYED(a_reading_misses_nothing, AT_EACH(oldest_with_some, read_stats, hundred_spans, all_were_seen))


/* A sink that takes its time: who flushes meanwhile waits for it, however long that is. */
static volatile unsigned inside, most_inside;
static int slow_sink(void *user, const void *bytes, size_t count)
{
    (void)user;
    (void)bytes;
    (void)count;
    if (++inside > most_inside) most_inside = inside;
    if (playing && me == FIRST && !ended[SECOND]) {
        naps_to_sleep = 150000;
        go_on_with(SECOND);
    }
    inside--;
    return 0;
}

static void stream_with_some(void)
{
    npuprof_sink sink = { slow_sink, NULL };
    begin(NPUPROF_STREAM, 16384, sink);
    spans(10);
}

static void flush(void) { CHECK_INT(npuprof_flush(), NPUPROF_OK); }

static void one_was_in_the_sink(void)
{
    CHECK_UINT(most_inside, 1);
    flush();
    npuprof_get_stats(&seen);
    CHECK_UINT(seen.recorded + seen.lost, executed);
}

static void one_at_a_time_in_the_sink(void)
{
    stream_with_some();
    play(hundred_spans, flush, 0, 0);
    one_was_in_the_sink();
}

/* A thread that is refused at each of its records while another reads: it stops whenever the reader would
   have to wait for it. */
static bool recycles(void) { return npuprof_arena_.recycling != 0; }

static void newest_full(void)
{
    begin(NPUPROF_KEEP_NEWEST, 4096, no_sink);
    spans(300);
    stops_when = recycles;
}

static void many_spans(void) { spans(400); }

static int64_t before_ns;
static void read_soon(void)
{
    before_ns = time_ns;
    read_stats();
    CHECK((time_ns - before_ns) / 70000 < 60);
}

PLAYED(a_reader_waits_for_few, AT_EACH(newest_full, read_soon, many_spans, all_were_seen))

/* Signals, at each place: a handler that leaves by a jump, and one that records. Nobody waits for what will
   not come. */
static sigjmp_buf back;
static volatile sig_atomic_t jumps, jumped;
static void on_signal(int number)
{
    (void)number;
    if (jumps) {
        jumps = 0;
        jumped = 1;
        siglongjmp(back, 1);
    }
    spans(3);
}

static void send_signal(void) { raise(SIGUSR1); }

static void begin_with_signals(int when_full, size_t bytes)
{
    npuprof_sink sink = { slow_sink, NULL };
    signal(SIGUSR1, on_signal);
    begin(when_full, bytes, sink);
    spans(500);
    before_ns = time_ns;
}

static void newest_to_jump(void)
{
    begin_with_signals(NPUPROF_KEEP_NEWEST, 8192);
    jumps = 1;
}

static void spans_to_leave(void)
{
    if (sigsetjmp(back, 1) == 0) spans(100);
    else spans(50);
}

static void nothing(void) { }

static void soon_and_all(void)
{
    npuprof_get_stats(&seen);
    CHECK(time_ns - before_ns < 1000000000);
    /* The one that a jump leaves may be neither. */
    CHECK(seen.recorded + seen.lost == executed || (jumped && seen.recorded + seen.lost + 1 == executed));
}

PLAYED(a_jump_leaves_nobody_waiting, SIGNAL_AT_EACH(newest_to_jump, spans_to_leave, soon_and_all))

/* Two threads have all the chunks, so that a third finds none for its slot. */
static sem_t stay;
static void *has_a_chunk(void *user)
{
    spans(5);
    sem_post((sem_t *)user);
    while (user) pause();
    return NULL;
}

static void no_chunk_left(int when_full)
{
    pthread_t thread;
    begin_with_signals(when_full, 2560);
    CHECK_UINT(npuprof_arena_.header->chunk_count, 4);
    CHECK_STOP(sem_init(&stay, 0, 0) == 0 && pthread_create(&thread, NULL, has_a_chunk, &stay) == 0);
    while (sem_wait(&stay) != 0) {}
    before_ns = time_ns;
}

static void newest_to_interrupt(void) { no_chunk_left(NPUPROF_KEEP_NEWEST); }
static void stream_to_interrupt(void) { no_chunk_left(NPUPROF_STREAM); }
static void some_spans(void) { spans(30); }

PLAYED(a_handler_waits_for_nobody,
       SIGNAL_AT_EACH(newest_to_interrupt, some_spans, soon_and_all),
       SIGNAL_AT_EACH(stream_to_interrupt, some_spans, soon_and_all))

/* Dumps, and what a stream has got, while names, sites and threads come. */
static uint8_t written[1 << 20];
static size_t written_bytes, written_then;
static int keep(void *user, const void *bytes, size_t count)
{
    (void)user;
    if (written_bytes + count > sizeof written) return ENOSPC;
    memcpy(written + written_bytes, bytes, count);
    written_bytes += count;
    return 0;
}

static void oldest_to_dump(void) { begin(NPUPROF_KEEP_OLDEST, 65536, no_sink); spans(100); }
static void newest_to_dump(void) { begin(NPUPROF_KEEP_NEWEST, 16384, no_sink); spans(1000); }

static void stream_to_flush(void)
{
    npuprof_sink sink = { keep, NULL };
    begin(NPUPROF_STREAM, 65536, sink);
    spans(100);
}

static void dump(void)
{
    npuprof_sink sink = { keep, NULL };
    executed_before = executed;
    CHECK_INT(npuprof_write_image(sink), NPUPROF_OK);
}

static void flush_some(void)
{
    executed_before = executed;
    flush();
    written_then = written_bytes;
}

static void spans_of_new_names(void)
{
    char name[64];
    for (int i = 0; i < 3; i++) {
        executed++;
        snprintf(name, sizeof name, "a name that comes %d", i);
        PROF_BEGIN("c", name);
        executed++;
        PROF_INSTANT("c", "with a text", PROF_ARGS(PROF_STR("key", name)));
        PROF_END();
    }
    executed++;
    PROF_SCOPE("a new site");
}

static void it_loads(void)
{
    npuprof_damage damage;
    CHECK_INT(npuprof_load_memory(written, written_then ? written_then : written_bytes, &damage), NPUPROF_OK);
    if (damage.places)
        check_failed_(__FILE__, __LINE__, "%" PRIu64 " damaged places: %s", damage.places, damage.what);
    npuprof_get_stats(&seen);
    CHECK(seen.recorded + seen.lost >= executed_before && seen.recorded + seen.lost <= executed);
    npuprof_unload();
}

PLAYED(what_is_written_meanwhile_is_whole,
       AT_EACH(oldest_to_dump, dump, spans_of_new_names, it_loads),
       AT_EACH(newest_to_dump, dump, spans_of_new_names, it_loads),
       AT_EACH(stream_to_flush, flush_some, spans_of_new_names, it_loads))

/* A dump while a thread gets a slot: the slots that were there keep their names. */
static sem_t named;
static void *is_named(void *user)
{
    char name[32];
    snprintf(name, sizeof name, "thread %d", (int)(intptr_t)user);
    spans(1);
    PROF_THREAD_NAME(name);
    sem_post(&named);
    while (user) pause();
    return NULL;
}

static void named_threads(void)
{
    pthread_t thread;
    oldest_to_dump();
    PROF_THREAD_NAME("thread 0");
    sem_init(&named, 0, 0);
    for (intptr_t i = 1; i <= 4; i++) {
        CHECK_STOP(pthread_create(&thread, NULL, is_named, (void *)i) == 0);
        while (sem_wait(&named) != 0) {}
    }
    /* The second part's thread is to begin with it. */
    npuprof_slot_ *const mine = npuprof_slot_mine_();
    npuprof_process_thread_ends_(mine);
    mine->owned = 1;
}

static bool json_holds(const char *text)
{
    return memmem(written, written_bytes, text, strlen(text)) != NULL;
}

static void they_are_named(void)
{
    npuprof_damage damage;
    npuprof_sink sink = { keep, NULL };
    static uint8_t image[sizeof written];
    memcpy(image, written, written_bytes);
    CHECK_INT(npuprof_load_memory(image, written_bytes, &damage), NPUPROF_OK);
    CHECK_UINT(damage.places, 0);
    written_bytes = 0;
    CHECK_INT(npuprof_write_json(sink), NPUPROF_OK);
    for (int i = 0; i <= 4; i++) {
        char name[32];
        snprintf(name, sizeof name, "\"thread %d\"", i);
        CHECK(json_holds(name));
    }
}

PLAYED(a_dump_has_all_slots, AT_EACH(named_threads, dump, spans_of_new_names, they_are_named))

/* The trace, while a thread gets its slot and records: it has as many events as it says. */
static void slots_to_take(void)
{
    oldest_to_dump();
    npuprof_slot_ *const mine = npuprof_slot_mine_();
    npuprof_process_thread_ends_(mine);
    mine->owned = 1;
}

static void write_json(void)
{
    npuprof_sink sink = { keep, NULL };
    executed_before = executed;
    CHECK_INT(npuprof_write_json(sink), NPUPROF_OK);
}

static uint64_t count_of(const char *text)
{
    uint64_t count = 0;
    const char *const all = (const char *)written;
    for (const char *at = all; at; count++) {
        at = (const char *)memmem(at, written_bytes - (size_t)(at - all), text, strlen(text));
        if (!at++) break;
    }
    return count;
}

static void it_has_what_it_says(void)
{
    const uint64_t events = count_of("{\"ph\":\"X\"") + count_of("{\"ph\":\"i\"");
    const char *const recorded = (const char *)memmem(written, written_bytes, "\"recorded\":", 11);
    CHECK_STOP(recorded != NULL);
    CHECK_UINT(events, strtoull(recorded + 11, NULL, 10));
    CHECK(events >= executed_before && events <= executed);
}

PLAYED(a_trace_has_what_it_says,
       AT_EACH(slots_to_take, write_json, spans_of_new_names, it_has_what_it_says),
       AT_EACH(oldest_to_dump, write_json, spans_of_new_names, it_has_what_it_says))

/* npuprof_clear() while a thread loses spans: what it lost before does not come back. */
static void oldest_small(void) { begin(NPUPROF_KEEP_OLDEST, 2048, no_sink); }

static void spans_that_find_no_room(void) { spans(60); }

static void clear(void)
{
    npuprof_clear();
    executed_before = executed;
}

static void only_what_came_after(void)
{
    npuprof_get_stats(&seen);
    /* One may be counted on either side. */
    CHECK(seen.recorded + seen.lost >= executed - executed_before
          && seen.recorded + seen.lost <= executed - executed_before + 1);
}

PLAYED(what_was_cleared_stays_so, AT_EACH(oldest_small, spans_that_find_no_room, clear, only_what_came_after))

/* The gate, from two threads: afterwards it is what the last of them wanted. */
static void recording(void) { begin(NPUPROF_KEEP_OLDEST, 16384, no_sink); }

static void paused_recording(void)
{
    recording();
    npuprof_pause();
}

static void stopped(void)
{
    recording();
    npuprof_stop();
}

static void start(void) { npuprof_start(1); }

static void stop_it(void) { npuprof_stop(); }

static void halt(void) { npuprof_pause(); }

static void go_on(void) { npuprof_resume(); }

static void it_can_go_on(void)
{
    npuprof_sink sink = { keep, NULL };
    npuprof_stats before, after;
    npuprof_resume();
    npuprof_get_stats(&before);
    spans(1);
    npuprof_get_stats(&after);
    CHECK_UINT(after.recorded + after.lost - before.recorded - before.lost, npuprof_control_.level > 0);
    CHECK_INT(npuprof_write_json(sink), NPUPROF_OK);
    CHECK(!json_holds("\"unfinished\""));
}

PLAYED(the_gate_is_what_was_said,
       AT_BOTH(recording, halt, go_on, it_can_go_on),
       AT_BOTH(paused_recording, go_on, halt, it_can_go_on),
       AT_BOTH(recording, stop_it, start, it_can_go_on),
       AT_BOTH(stopped, start, stop_it, it_can_go_on))

/* Categories, from two threads: one of the two settings, whole. */
static void only_a(void) { CHECK_INT(npuprof_set_categories("a"), NPUPROF_OK); }

static void all_but_b(void) { CHECK_INT(npuprof_set_categories("-b"), NPUPROF_OK); }

static uint64_t recorded_in(const char *category)
{
    npuprof_stats before, after;
    npuprof_get_stats(&before);
    PROF_BEGIN(category, "in it");
    PROF_END();
    npuprof_get_stats(&after);
    return after.recorded - before.recorded;
}

static void one_setting_holds(void)
{
    const uint64_t a = recorded_in("a"), b = recorded_in("b"), c = recorded_in("c");
    CHECK(a == 1 && b == 0 && c <= 1);
    CHECK_UINT(c, strcmp(npuprof_record_categories_->words, "b") == 0);
}

PLAYED(categories_are_one_setting, AT_BOTH(recording, only_a, all_but_b, one_setting_holds))

/* An anchor of the clock, read while it is stored anew twice. Between the two real clocks lies the same time
   in each. */
static npuprof_host_anchor_ anchor;
static void read_anchor(void) { anchor = npuprof_arena_copy_last_anchor_(npuprof_arena_.header); }

static void store_two_anchors(void)
{
    for (int i = 0; i < 2; i++) {
        time_ns += 1000;
        npuprof_arena_renew_last_anchor_();
    }
}

static void it_is_whole(void)
{
    CHECK_INT(anchor.unix_ns - anchor.monotonic_ns, INT64_C(1000000000000000000));
}

PLAYED(an_anchor_is_read_whole, AT_EACH(recording, read_anchor, store_two_anchors, it_is_whole))

/* A device's anchor for which the table has no place: each is written over the one before. */
static npuprof_device_entry_ device;
static npuprof_anchor_ device_anchor;
static uint32_t device_epoch;
static bool has_device_anchor;

static void read_device_anchor(void)
{
    has_device_anchor = npuprof_image_overflow_anchor_(&device, &device_epoch, &device_anchor);
}

static void store_two_device_anchors(void)
{
    for (int i = 0; i < 2; i++) {
        const uint32_t n = device.overflow_epoch + 1;
        const npuprof_anchor_ next = { n, n, n };
        npuprof_record_store_overflow_(&device, n, &next);
    }
}

static void the_device_anchor_is_whole(void)
{
    if (!has_device_anchor) return;
    CHECK_UINT(device_anchor.device_ticks, device_epoch);
    CHECK_UINT(device_anchor.host_before, device_epoch);
    CHECK_UINT(device_anchor.host_after, device_epoch);
}

PLAYED(a_device_anchor_is_read_whole,
       AT_BOTH(recording, read_device_anchor, store_two_device_anchors, the_device_anchor_is_whole))

/* Two callers of one inlined site, one with a category, one without: each event has its own. */
static npuprof_site_ inlined = { 0, 0, NPUPROF_KIND_SPAN, NULL, NULL, NULL, 0 };
static void with_category(void)
{
    npuprof_close_(npuprof_begin_constant_(&inlined, "its category", "its name"));
}

static void without_category(void)
{
    npuprof_close_(npuprof_begin_constant_(&inlined, NULL, "its name"));
}

static void both_are_there(void)
{
    npuprof_sink sink = { keep, NULL };
    CHECK_INT(npuprof_write_json(sink), NPUPROF_OK);
    CHECK(json_holds("\"name\":\"its name\",\"cat\":\"its category\""));
    CHECK(json_holds("\"name\":\"its name\",\"pid\"") || json_holds("\"name\":\"its name\",\"ts\""));
}

PLAYED(a_name_comes_with_its_category, AT_EACH(recording, with_category, without_category, both_are_there))

CHECK_MAIN(CASE(a_reading_misses_nothing), CASE(one_at_a_time_in_the_sink), CASE(a_reader_waits_for_few),
           CASE(a_jump_leaves_nobody_waiting),
           CASE(a_handler_waits_for_nobody), CASE(what_is_written_meanwhile_is_whole),
           CASE(a_dump_has_all_slots), CASE(a_trace_has_what_it_says), CASE(what_was_cleared_stays_so),
           CASE(the_gate_is_what_was_said), CASE(categories_are_one_setting), CASE(an_anchor_is_read_whole),
           CASE(a_device_anchor_is_read_whole), CASE(a_name_comes_with_its_category))
