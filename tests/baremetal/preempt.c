/* Each record function is interrupted after every number of instructions, once in each round, by an interrupt
   that records, too. Rounds come in batches: for batch N, N.img is the image and N.log what truly happened
   (five words a round; preempt.py reads them).
   The clock stands still but for the interrupt, which moves it by JUMP before and after its record.
   CLOCK_BITS: of the clock. FULL: each round begins with 0 to 3 free cells. NEWEST: a ring of 59 cells.
   STREAM: the same, handed over in each round; stream.img is all that the sink got, and batches have no
   image. With FULL it has 11 cells, most of them taken. HARTS: not the interrupt records, but another hart
   meanwhile, which is itself stopped after every number of instructions; then the first goes on to its end,
   then the other.
   SPDX-License-Identifier: MIT */
#include <stdint.h>

#ifndef CLOCK_BITS
#define CLOCK_BITS 32
#endif
#if CLOCK_BITS == 16
typedef uint16_t clock_value;
enum { JUMP = 0x6000 };
#else
typedef uint32_t clock_value;
enum { JUMP = 7 };
#endif
static volatile uint32_t clock_word = 100;
#ifdef HARTS
static uint32_t timer_hart(void);
static uint8_t context_now(void) { return (uint8_t)timer_hart(); }
#else
static volatile uint8_t context;
static uint8_t context_now(void) { return context; }
#endif
#define NPUPROF_NOW() ((clock_value)clock_word)
#define NPUPROF_NOW_HZ 1000000000u
#define NPUPROF_FREESTANDING
#define NPUPROF_CONTEXTS 2
#define NPUPROF_CONTEXT() context_now()
#ifdef STREAM
#define NPUPROF_WHEN_FULL NPUPROF_STREAM
#elif defined(NEWEST)
#define NPUPROF_WHEN_FULL NPUPROF_KEEP_NEWEST
#endif
#if defined(STREAM) || defined(NEWEST) || defined(FULL)
#define IS_LIST 0
#else
#define IS_LIST 1
#endif
#ifndef NPUPROF_ARENA_BYTES
#ifdef FULL
#define NPUPROF_ARENA_BYTES 256
#elif IS_LIST
#define NPUPROF_ARENA_BYTES 8192
#else
#define NPUPROF_ARENA_BYTES 1040     /* a burst of all interrupts at once just fits */
#endif
#endif
#ifdef FULL
enum { IS_FULL = 1 };
#else
enum { IS_FULL = 0 };
#endif
#define NPUPROF_NO_JSON
#define NPUPROF_IMPLEMENTATION
#include "npuprof.h"
#ifdef HARTS
#define PORT_SECOND other_hart
#endif
#include "timer.h"
#include "port.h"

static uint32_t number;                        /* of the round, over all batches */
static void span(void) { PROF_SCOPE("span"); }

static void phases(void)
{
    PROF_PHASES("first");
    PROF_NEXT("second");
}

static void list(void)
{
    PROF_SCOPE_ARGS("c", "list", PROF_ARGS(PROF_UINT("n", number), PROF_STR("s", "a text of two cells")));
}

static void one(void) { PROF_SCOPE_ARGS("c", "one", PROF_ARGS(PROF_UINT("n", number))); }
static void counter(void) { PROF_COUNTER("counter", number); }
static void instant(void) { PROF_INSTANT("c", "instant"); }
static void instant_one(void) { PROF_INSTANT("c", "instant of one", PROF_ARGS(PROF_UINT("n", number))); }

static void instant_list(void)
{
    PROF_INSTANT("c", "instant of two", PROF_ARGS(PROF_UINT("n", number), PROF_BOOL("b", true)));
}

static void by_hand(void)
{
    PROF_BEGIN("c", "outer by hand");
    PROF_BEGIN("c", "by hand");
    PROF_END();
    PROF_END();
}

static void record(void) { PROF_RECORD("record"); }

/* Names, of which a ring keeps each for ever. */
static void thread_name(void)
{
    if (!NPUPROF_RING_) PROF_THREAD_NAME(context_now() ? "interrupt" : "task");
}

static void task_name(void)
{
    if (!NPUPROF_RING_) (void)npuprof_task(context_now() ? "interrupt" : "task", 9);
}

static void number_name(void)
{
    if (!NPUPROF_RING_) (void)npuprof_name(9, "nine");
}

static void metadata(void)
{
    if (!NPUPROF_RING_) (void)npuprof_metadata("key", "a value of two cells");
}

static void async(void)
{
    npuprof_async_begin("c", "async", number);
    npuprof_async_end(number);
}

static void finished(void) { npuprof_span("track", "c", "finished", number, number + 1, PROF_NO_ARGS); }
static void memory(void) { PROF_MEMORY(NULL, number, 100000, "tag"); }
static void allocated(void) { PROF_ALLOC(NULL, 1, "tag"); }
static void ticked(void) { npuprof_tick(); }
static void counted(void) { npuprof_count(7, number); }

static void entered(void)
{
    npuprof_enter(context_now(), 5);
    npuprof_leave(context_now());
}

static void left(void) { npuprof_leave(1); }

static void switched(void)
{
    npuprof_switch(context_now(), 6);
    npuprof_switch(context_now(), 8);
    npuprof_switch(context_now(), NPUPROF_NOBODY);
}

/* So long that times of the clock can be told from it. */
static void slept(void)
{
    if (!IS_FULL) npuprof_slept((uint64_t)1 << 33);
}

static void result(void)
{
    PROF_SCOPE("result");
    PROF_RESULT(PROF_UINT("n", number));
}

static void poll(void) { (void)npuprof_poll(); }

/* The sink takes a part at least in each third call, so this many are never needed. */
static void flush(void)
{
    for (int tries = 0; npuprof_flush() == NPUPROF_ERR_BUSY; tries++)
        if (tries == 1000) port_exit(6);
}

/* Spans that are open when their cells are sent. */
static void sent(void)
{
    PROF_SCOPE("sent");
    PROF_SCOPE_ARGS("c", "sent inner", PROF_ARGS(PROF_UINT("n", number)));
    flush();
    PROF_RESULT(PROF_UINT("m", number));
}

typedef struct operation { void (*run)(void); uint8_t events, notes; } operation;
static const operation operations[] = {
    { span, 1, 0 }, { phases, 2, 0 }, { list, 1, 0 }, { one, 1, 0 }, { counter, 1, 0 }, { instant, 1, 0 },
    { instant_one, 1, 0 }, { instant_list, 1, 0 }, { by_hand, 2, 0 }, { record, 1, 0 }, { thread_name, 0, 1 },
    { async, 2, 0 }, { finished, 1, 0 }, { memory, 1, 0 }, { allocated, 1, 0 },
    { ticked, 0, 0 }, { counted, 1, 0 }, { entered, 1, 0 }, { task_name, 0, 1 }, { number_name, 0, 1 },
    { metadata, 0, 1 }, { switched, 2, 0 }, { slept, 0, 1 }, { result, 1, 1 }, { left, 0, 1 },
    { poll, 0, 0 }, { flush, 0, 0 }, { sent, 2, 3 },
};
enum { RESULT = 23, LEFT, POLL, FLUSH, SENT, ALL_OPERATIONS = sizeof operations / sizeof *operations };
enum { OPERATIONS = NPUPROF_WHEN_FULL == NPUPROF_STREAM ? ALL_OPERATIONS : POLL };
/* What the interrupt does: `span`, `list`, `one`, `by_hand`, `left`: ends a span that was begun before. */
static const uint8_t of_interrupt[] = { 0, 2, 3, 8, LEFT };
enum { INTERRUPTS = sizeof of_interrupt };

static volatile uint32_t fired, where;
static volatile uint8_t interrupt_does, interrupt_context;
#ifdef HARTS
enum { OPERATION_STEP = 3 };                   /* of those that a quick run tries */
enum { LONG_STEP = 37 };                       /* instructions of those from POLL on that all runs try */
#define INTERRUPT_CONTEXT(n) ((uint8_t)(1 + 0 * (n)))
static volatile uint32_t order, stopped, resume, done, other_ticks;
static bool other_was_stopped;
static const volatile uint32_t never = 0;
static void stop_other(void)
{
    stopped = 1;
    timer_wake(0);
    timer_wait(&resume, &never);
}

void other_hart(void)
{
    for (;;) {
        timer_wait(&order, &never);
        order = 0;
        timer_set_up();
        timer_start(other_ticks);
        operations[interrupt_does].run();
        timer_stop();
        __asm__ volatile("csrc mstatus, %0" : : "r"(8ul));
        done = 1;
        timer_wake(0);
    }
}

static void interrupt_works(void)
{
    stopped = resume = done = 0;
    order = 1;
    timer_wake(1);
    timer_wait(&done, &stopped);
}

/* Lets the other hart come to its end. */
static void finish_other(void)
{
    if (!fired || !stopped) return;
    clock_word += JUMP;
    resume = 1;
    timer_wake(1);
    __asm__ volatile("csrc mstatus, %0" : : "r"(8ul));
    timer_wait(&done, &never);
    __asm__ volatile("csrs mstatus, %0" : : "r"(8ul));
    fired = 2;
    other_was_stopped = true;
}

#else /* !HARTS */
enum { OPERATION_STEP = 1, LONG_STEP = 1 };
#define INTERRUPT_CONTEXT(n) ((uint8_t)((n) & 1))
static void interrupt_works(void)
{
    const uint8_t before = context;
    context = interrupt_context;
    operations[interrupt_does].run();
    context = before;
}

static void finish_other(void) {}
#endif /* !HARTS */

static void timer_fired(uint32_t pc)
{
#ifdef HARTS
    if (timer_hart()) {
        stop_other();
        return;
    }
#endif
    where = pc;
    fired = 1;
    clock_word += JUMP;
    interrupt_works();
    clock_word += JUMP;
}

enum { BATCH = 128, WORDS = 5, UNREAD = 4 };   /* UNREAD: not in the image */
static uint32_t truth[BATCH * WORDS], rounds, batches, events, notes;
static void name(char *file, const char *end)
{
    for (uint32_t i = 0, n = batches; i < 6; i++, n /= 10) file[5 - i] = (char)('0' + n % 10);
    for (int i = 0; i < 5; i++) file[6 + i] = end[i];
}

static int check_counts(void)
{
    npuprof_stats stats;
    npuprof_get_stats(&stats);
    return stats.recorded + stats.lost == events && stats.lost_by_cause[NPUPROF_LOST_NOTES] <= notes ? 0 : 3;
}

static const char long_text[] = "A text of two hundred bytes and some more, so that there is enough for a "
    "full part when it is asked for one: this takes fourteen cells, and a part has sixteen, of which the "
    "others are there already, too.";
static void fill(uint32_t count)
{
    for (; count; count--, events++) PROF_INSTANT("c", "fills");
}

static __attribute__((unused)) void fill_with_text(void)
{
    PROF_INSTANT("c", "fills", PROF_ARGS(PROF_STR("s", long_text)));
    events++;
}

/* Writes the batch. 0, or what is wrong. */
static int put_batch(void)
{
    char file[11];
    name(file, ".log");
    port_open(file);
    port_write(NULL, truth, rounds * WORDS * 4);
    port_close();
    rounds = 0;
#ifdef STREAM
    batches++;
    return check_counts();
#else
    const npuprof_sink sink = { port_write, NULL };
    name(file, ".img");
    port_open(file);
    fill(1);                                   /* so that context 0 is there, and the other one is number 2 */
    const npuprof_result result = npuprof_write_image(sink);
    port_close();
    batches++;
    return result == NPUPROF_OK ? check_counts() : 2;
#endif
}

static void new_batch(void)
{
#ifndef STREAM
    npuprof_clear();
    events = notes = 0;
#endif
}

#ifdef STREAM
static long stream_file;

/* Takes a part of what it gets, now and then. */
static int put_stream(void *user, const void *bytes, size_t count)
{
    static uint32_t calls;
    const long other = port_file;
    const size_t takes = ++calls % 3 && count > 24 ? 24 + (count & 31) % (count - 24) : count;
    port_file = stream_file;
    port_write(user, bytes, takes);
    port_file = other;
    return takes == count ? 0 : -1 - (int)takes;
}

static int begin_stream(void)
{
    npuprof_desc desc;
    for (size_t i = 0; i < sizeof desc; i++) ((volatile uint8_t *)&desc)[i] = 0;
    desc.when_full = NPUPROF_STREAM;
    desc.sink.write = put_stream;
    port_open("stream.img");
    stream_file = port_file;
    return npuprof_init(&desc) != NPUPROF_OK;
}

/* So that the operation has something to hand over; FULL: 0 to 3 cells are free. */
static void before_round(uint32_t operation_number, uint32_t ticks)
{
    flush();
    if (IS_FULL) fill(11 - ticks % 4);
    else if (operation_number >= POLL) fill(3);
    if (!IS_FULL && operation_number == POLL) fill_with_text();
}

#else /* !STREAM */
static int begin_stream(void) { return 0; }
#endif /* STREAM */

static __attribute__((unused)) uint32_t free_cells(void)
{
    npuprof_stats stats;
    npuprof_get_stats(&stats);
    return (uint32_t)(stats.bytes_total - sizeof(npuprof_compact_header_) - stats.bytes_used) / 16;
}

/* One round. False: the operation ended before the interrupt came. */
static bool interrupted(uint32_t operation_number, uint32_t interrupt, uint32_t ticks)
{
    uint32_t *const t = &truth[rounds++ * WORDS];
    interrupt_does = of_interrupt[interrupt];
    interrupt_context = INTERRUPT_CONTEXT(ticks + interrupt);
    number++;
    fired = 0;
    where = 0;
    t[0] = operation_number << 24 | (uint32_t)interrupt_does << 16 | (uint32_t)interrupt_context << 8;
    t[1] = ticks;
    t[2] = clock_word;
    t[3] = number;
    if (interrupt_does == LEFT) {
        npuprof_enter(1, 4);
        events++;
        notes++;
    }
    timer_start(ticks);
    operations[operation_number].run();
    timer_stop();
    finish_other();
    if (interrupt_does == LEFT && !fired) left();
    events += operations[operation_number].events;
    notes += operations[operation_number].notes;
    if (fired) {
        t[0] |= fired;
        events += operations[interrupt_does].events;
    }
    t[4] = where;
    clock_word += 5;
    return fired;
}

static bool all;
static int after_round(uint32_t operation_number, uint32_t ticks)
{
    (void)operation_number;
    (void)ticks;
#ifdef STREAM
    flush();
    return rounds == BATCH ? put_batch() : IS_FULL ? check_counts() : 0;
#elif defined(FULL)
    const int wrong = ticks % 32 < 4 ? put_batch() : check_counts();
    rounds = 0;
    return wrong;
#else
    const uint32_t most = operation_number != RESULT || !IS_LIST ? BATCH : all ? 1 : 16;
    if (rounds < most && (!IS_LIST || free_cells() >= 32)) return 0;
    const int wrong = put_batch();
    new_batch();
    return wrong;
#endif
}

#ifndef STREAM
static void before_round(uint32_t operation_number, uint32_t ticks)
{
    (void)ticks;
    if (IS_FULL) {
        new_batch();
        fill(free_cells() - ticks % 4);
    } else if (IS_LIST && operation_number == RESULT) {
        /* Why: it searches all cells, so with each record more the interrupt would come earlier in it. */
        new_batch();
        fill_with_text();
        for (uint32_t i = 0; i < rounds; i++) truth[i * WORDS] |= UNREAD;
    }
}
#endif

/* All rounds of an operation and what interrupts it. 0, or what is wrong. */
static int sweep(uint32_t operation_number, uint32_t interrupt)
{
    const uint32_t quick = operation_number == POLL ? 97 : 5;
    const uint32_t step = operation_number < POLL ? 1 : all ? LONG_STEP : quick;
    int wrong = rounds ? put_batch() : 0;
    new_batch();
    for (uint32_t ticks = 1, goes_on = 1; goes_on && !wrong; ticks += step) {
        before_round(operation_number, ticks);
        goes_on = interrupted(operation_number, interrupt, ticks);
        wrong = after_round(operation_number, ticks);
    }
    return wrong;
}

/* The same with the other hart stopped at each step-th place. */
static int sweeps(uint32_t operation_number, uint32_t interrupt, uint32_t step)
{
    int result = 0;
#ifdef HARTS
    for (other_ticks = 1, other_was_stopped = true; other_was_stopped && !result; other_ticks += step) {
        other_was_stopped = false;
        result = sweep(operation_number, interrupt);
    }
#else
    (void)step;
    result = sweep(operation_number, interrupt);
#endif
    return result;
}

/* What was counted of a whole stream. */
static void end_stream(void)
{
#ifdef STREAM
    npuprof_stats stats;
    flush();
    npuprof_get_stats(&stats);
    const uint32_t words[2] = { (uint32_t)stats.recorded, (uint32_t)stats.lost };
    port_file = stream_file;
    port_close();
    port_open("stats");
    port_write(NULL, words, sizeof words);
    port_close();
#endif
}

int main(void)
{
    if (begin_stream()) return 4;
    npuprof_start(1);
    timer_set_up();
    if (port_exists("quiet")) {                /* each operation once, for a list of its instructions */
        for (uint32_t i = 0; i < OPERATIONS; i++)
            if (i != LEFT) operations[i].run();
        return 0;
    }
    all = port_exists("all");
    for (uint32_t i = 0; i < OPERATIONS; i++)
        for (uint32_t j = 0; j < INTERRUPTS; j++) {
            const bool is_left = of_interrupt[j] == LEFT;
            if (i == LEFT || (!all && i < POLL && (j != i % INTERRUPTS || i % OPERATION_STEP))) continue;
            if (!all && i >= POLL && !is_left && j != i % INTERRUPTS) continue;
            const int result = sweeps(i, j, all && i < POLL ? 29 : 601);
            if (result) return result;
        }
    const int result = put_batch();
    end_stream();
    return result;
}
