/* test: time=200 soak=300 - a tool that attaches, played by a thread of the same process: it stores what
   tools/npuprof/attach/words.py stores, as often as wanted, while eight threads and a signal handler record
   SPDX-License-Identifier: MIT */
#define NPUPROF_IMPLEMENTATION
#include "life.h"
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

/* Why NEAR ticks around the edges count for nothing: a CPU may read its clock before an earlier load of the
   gate, and the clocks of two CPUs of a virtual machine differ. */
enum { THREADS = 8, LOG = 1 << 16, ROOM = 1 << 14, NEAR = 1 << 15 };

/* What a thread did: between these ticks it came to its mark number n, at log[n % LOG]. */
static struct worker {
    uint64_t next;
    struct { uint64_t before, after; } log[LOG];
} workers[THREADS];
static int over;

static uint64_t mark(unsigned thread, uint64_t n)
{
    PROF_INSTANT("c", "mark", PROF_ARGS(PROF_UINT("t", thread), PROF_UINT("n", n)));
    return npuprof_ticks_();
}

static void *work(void *user)
{
    const unsigned number = (unsigned)(uintptr_t)user;
    struct worker *const me = &workers[number];
    for (uint64_t n = 0; !NPUPROF_LOAD_(&over); n++) {
        NPUPROF_STORE_(&me->log[n % LOG].before, npuprof_ticks_());
        NPUPROF_STORE_(&me->log[n % LOG].after, mark(number, n));
        NPUPROF_STORE_RELEASE_(&me->next, n + 1);
        for (volatile int i = 0; i < 500; i++) {}
        PROF_SCOPE("plain");
    }
    return NULL;
}

static void on_timer(int signal)
{
    (void)signal;
    PROF_SCOPE("in a handler");
}

/* ---- The tool */

static npuprof_record_attach_words_ *const words = &npuprof_record_attach_;

static void store_high(void *word, uint8_t byte)
{
    const uint32_t one = 1;
    __atomic_store_n((uint8_t *)word + (*(const uint8_t *)&one ? 3 : 0), byte, __ATOMIC_SEQ_CST);
}

static uint32_t answers(void) { return NPUPROF_LOAD_ACQUIRE_(&words->answers); }

static void ask_start(uint32_t level)
{
    NPUPROF_STORE_SEQ_(&words->level, level);
    NPUPROF_STORE_SEQ_(&words->tool, 1);
    NPUPROF_ADD_SEQ_(&words->beat, 1);
    NPUPROF_STORE_SEQ_(&words->asked, (uint32_t)NPUPROF_ASKED_START_);
    store_high(&npuprof_gate_, 0x7F);
}

/* Waits for an answer; again: what to store meanwhile. */
static bool answered(uint32_t before, void *again, uint8_t byte)
{
    for (int i = 0; i < 20000; i++) {
        if (answers() != before) return true;
        if (again) store_high(again, byte);
        usleep(100);
    }
    return false;
}

static bool attach(uint32_t level)
{
    const uint32_t before = answers();
    ask_start(level);
    return answered(before, NULL, 0);
}

static bool detach(void)
{
    const uint32_t before = answers();
    NPUPROF_STORE_SEQ_(&words->asked, (uint32_t)NPUPROF_ASKED_STOP_);
    const bool done = answered(before, &npuprof_arena_fast_, 0xFF);
    for (bool busy = true; busy; busy = busy && (usleep(100), true)) {
        busy = false;
        for (uint32_t at = NPUPROF_LOAD_ACQUIRE_(&npuprof_arena_.header->slot_first); at;
             at = npuprof_slot_at_(at)->head.next_slot)
            busy |= NPUPROF_LOAD_(&npuprof_slot_at_(at)->owned) && NPUPROF_LOAD_(&npuprof_slot_at_(at)->busy);
    }
    NPUPROF_STORE_SEQ_(&words->tool, 0);
    return done;
}

/* ---- Counting: a mark whose thread was at it between `clear` and `until` is in the arena, once; one that
   was outside is not, or carries a stamp from outside. */

static uint64_t seen[THREADS][LOG];        /* at n % LOG: n + 1 */

/* Notes the marks of a chunk. Returns how many stand there twice, or are no marks. */
static unsigned look(const npuprof_chunk_ *chunk, uint64_t clear, uint64_t until)
{
    const npuprof_unit_ *const u = (const npuprof_unit_ *)(const void *)(chunk + 1);
    unsigned wrong = 0;
    uint64_t w0;
    for (uint32_t n = chunk->moved_units; n < npuprof_arena_.units; n++) {
        if ((w0 = NPUPROF_LOAD_ACQUIRE_(&u[n].w0)) == 0) break;
        const uint64_t start = npuprof_chunk_start_ticks_(chunk, w0);
        if ((w0 & NPUPROF_ID_MASK_) >= NPUPROF_CONTROL_ || start < clear || start > until) continue;
        if (n + 2 >= npuprof_arena_.units) continue;
        if ((NPUPROF_LOAD_(&u[n + 1].w0) & NPUPROF_ID_MASK_) != NPUPROF_CONTROL_ARG_) continue;
        const uint64_t thread = NPUPROF_LOAD_(&u[n + 1].w1), number = NPUPROF_LOAD_(&u[n + 2].w1);
        if (thread < THREADS) wrong += seen[thread][number % LOG] == number + 1;
        else wrong++;
        /* Why the larger: on a busy machine a recording has more marks than LOG, and chunks have no order. */
        if (thread < THREADS)
            seen[thread][number % LOG] = npuprof_max_(seen[thread][number % LOG], number + 1);
    }
    return wrong;
}

static uint64_t lost_in_arena(void)
{
    uint64_t lost = 0;
    const npuprof_header_ *const h = npuprof_arena_.header;
    for (uint32_t at = NPUPROF_LOAD_ACQUIRE_(&h->slot_first); at; at = npuprof_slot_at_(at)->head.next_slot)
        lost += NPUPROF_LOAD_(&npuprof_slot_at_(at)->head.lost);
    for (unsigned i = 0; i < NPUPROF_LOST_COUNT; i++) lost += NPUPROF_LOAD_(&h->lost[i]);
    return lost;
}

/* Compares the arena with what the threads did. Returns how many marks are wrong; *inside: of how many. */
static uint64_t compare(uint64_t *inside)
{
    const npuprof_header_ *const h = npuprof_arena_.header;
    const uint64_t clear = NPUPROF_LOAD_(&h->clear_ticks), until = NPUPROF_LOAD_(&words->until);
    uint64_t wrong = 0;
    memset(seen, 0, sizeof seen);
    for (uint32_t i = 0; i < NPUPROF_LOAD_ACQUIRE_(&h->chunk_next); i++) {
        const npuprof_chunk_ *const chunk = npuprof_chunk_at_(i);
        const uint16_t state = NPUPROF_LOAD_ACQUIRE_(&chunk->state);
        const bool has_records = state == NPUPROF_CHUNK_OPEN || state == NPUPROF_CHUNK_RETIRED;
        if (has_records && NPUPROF_LOAD_ACQUIRE_(&chunk->owner)) wrong += look(chunk, clear, until);
    }
    for (int t = 0; t < THREADS; t++) {
        const uint64_t next = NPUPROF_LOAD_ACQUIRE_(&workers[t].next);
        for (uint64_t n = next > LOG / 2 ? next - LOG / 2 : 0; n < next; n++) {
            const uint64_t before = NPUPROF_LOAD_(&workers[t].log[n % LOG].before);
            const uint64_t after = NPUPROF_LOAD_(&workers[t].log[n % LOG].after);
            if (NPUPROF_LOAD_ACQUIRE_(&workers[t].next) + 1 >= n + LOG) continue;      /* it is another's */
            if (before >= clear + NEAR && after + NEAR <= until) {
                ++*inside;
                wrong += seen[t][n % LOG] != n + 1;
            } else if (after + NEAR < clear || before > until + NEAR) {
                wrong += seen[t][n % LOG] == n + 1;
            }
        }
    }
    return wrong;
}

static void as_often_as_wanted(void)
{
    pthread_t threads[THREADS];
    const struct itimerval often = { { 0, 2000 }, { 0, 2000 } }, never = { { 0, 0 }, { 0, 0 } };
    uint64_t wrong = 0, inside = 0, lost = 0, full = 0;
    const uint64_t times = life_scaled(80, 1000);
    signal(SIGALRM, on_timer);
    for (uintptr_t i = 0; i < THREADS; i++)
        CHECK_STOP(!pthread_create(&threads[i], NULL, work, (void *)i));
    CHECK_STOP(!setitimer(ITIMER_REAL, &often, NULL));
    for (uint64_t i = 0; i < times; i++) {
        CHECK_STOP(attach(1));
        CHECK_INT(NPUPROF_LOAD_(&words->state), 1);
        usleep(3000);
        CHECK_STOP(detach());
        CHECK_INT(NPUPROF_LOAD_(&words->state), 0);
        CHECK(!npuprof_is_recording());
        const uint64_t clear = npuprof_arena_.header->clear_ticks, lost_here = lost_in_arena();
        const int64_t lasted = npuprof_ticks_to_ns_(words->until) - npuprof_ticks_to_ns_(clear);
        /* Why: on a busy machine this thread may be off the CPU until the arena is full. */
        const bool is_full = lost_here && lasted > 50000000;
        full += is_full;
        lost += is_full ? 0 : lost_here;
        if (!is_full) wrong += compare(&inside);
        usleep(1000);
    }
    CHECK_STOP(!setitimer(ITIMER_REAL, &never, NULL));
    NPUPROF_STORE_(&over, 1);
    for (int i = 0; i < THREADS; i++) pthread_join(threads[i], NULL);
    CHECK_INT(wrong, 0);
    CHECK_INT(lost, 0);
    CHECK(full <= times / 4);
    CHECK(inside > times * 10);
    printf("note %llu marks in %llu recordings\n", (unsigned long long)inside, (unsigned long long)times);
}

/* Nothing is recorded for a tool in a program that records by itself, nor is that changed. */
static void own_recording(void)
{
    CHECK_INT(words->own, 0);
    npuprof_start(1);
    mark(0, 0);
    npuprof_stop();
    CHECK_INT(words->own, 1);
    const uint32_t before = answers();
    ask_start(1);
    mark(0, 1);
    CHECK_INT(answers(), before + 1);
    CHECK_INT(words->state, 0);
    mark(0, 2);
    npuprof_stats s;
    npuprof_get_stats(&s);
    CHECK_INT(s.recorded, 2);
}

/* What the program says while a tool is attached: its pause counts for more, and its recording goes on
   behind the tool's. */
static void program_comes_in(void)
{
    const uint32_t before = answers();
    ask_start(3);
    mark(0, 0);
    CHECK_INT(answers(), before + 1);
    CHECK_INT(NPUPROF_LOAD_(&npuprof_gate_), 3);
    npuprof_pause();
    CHECK(!npuprof_is_recording());
    npuprof_resume();
    CHECK(npuprof_is_recording());
    npuprof_start(1);
    CHECK_INT(NPUPROF_LOAD_(&npuprof_gate_), 3);
    words->asked = NPUPROF_ASKED_STOP_;
    store_high(&npuprof_arena_fast_, 0xFF);
    mark(0, 1);
    CHECK_INT(words->state, 0);
    CHECK_INT(NPUPROF_LOAD_(&npuprof_gate_), 1);
}

/* Of a level: marks above it do not record. */
static void level(void)
{
    ask_start(2);
    mark(0, 0);
    { PROF_SCOPE_LEVEL(2, "c", "two", PROF_NO_ARGS); }
    { PROF_SCOPE_LEVEL(3, "c", "three", PROF_NO_ARGS); }
    json_node *t = written();
    CHECK(trace_event(t, "X", "two", 0) != NULL);
    CHECK(trace_event(t, "X", "three", 0) == NULL);
    CHECK(trace_event(t, "i", "mark", 0) != NULL);
}

/* A child of fork is not attached. */
static void forked(void)
{
    ask_start(1);
    mark(0, 0);
    CHECK_INT(words->state, 1);
    const pid_t child = fork();
    if (!child) _exit(npuprof_is_recording() || words->state || words->tool);
    int status = -1;
    CHECK_INT(waitpid(child, &status, 0), child);
    CHECK_INT(status, 0);
    CHECK(npuprof_is_recording());
}

/* A tool that is heard of no more: the recording ends with a chunk. */
static void lease(void)
{
    ask_start(1);
    mark(0, 0);
    for (int i = 0; i < ROOM; i++) mark(0, 1);
    CHECK_INT(words->state, 1);
    npuprof_control_attach_.beat_ns -= INT64_C(1000000000) * NPUPROF_ATTACH_LEASE_S_;
    NPUPROF_ADD_SEQ_(&words->beat, 1);                 /* just in time */
    for (int i = 0; i < ROOM; i++) mark(0, 2);
    CHECK_INT(words->state, 1);
    npuprof_control_attach_.beat_ns -= INT64_C(1000000000) * NPUPROF_ATTACH_LEASE_S_;
    for (int i = 0; i < ROOM; i++) mark(0, 3);
    CHECK_INT(words->state, 0);
    CHECK(!npuprof_is_recording());
    CHECK(words->until > 0);
    ask_start(1);                                      /* in a full arena, too */
    while (!lost_in_arena()) mark(0, 4);
    CHECK_INT(words->state, 1);
    npuprof_control_attach_.beat_ns -= INT64_C(1000000000) * NPUPROF_ATTACH_LEASE_S_;
    NPUPROF_ADD_SEQ_(&words->beat, 1);
    for (int i = 0; i < 2048; i++) mark(0, 5);
    CHECK_INT(words->state, 1);
    npuprof_control_attach_.beat_ns -= INT64_C(1000000000) * NPUPROF_ATTACH_LEASE_S_;
    for (int i = 0; i < 2048; i++) mark(0, 6);
    CHECK_INT(words->state, 0);
}

CHECK_MAIN(CASE(as_often_as_wanted), CASE(own_recording), CASE(program_comes_in), CASE(level), CASE(forked),
           CASE(lease))
