/* test: cc=-O2 san=no - every interleaving of two threads, where chunks change hands
   SPDX-License-Identifier: MIT

   Also 2,000 random schedules of each case, which must end like one of those; 200 in the quick part, which
   leaves out the cases that are longer forms of another.
   usage: every [CASE [MOST]]          only that case, and so many schedules at most */
#include "check.h"
#include "every.h"
#include "fibers.h"
#include "pages.h"
#include "every.h"
#define NPUPROF_IMPLEMENTATION
#define NPUPROF_ARENA_BYTES 4096
#include "npuprof.h"
#include "../../tools/convert/load.h"
#include "scenarios.h"
#include "before_run.h"

/* A case: each fiber fills its chunk, one after the other. What they do then is interleaved. */
typedef struct handover {
    const char *name;
    int policy;
    uint32_t chunks, unused;           /* of the arena; of them still unused when the interleaving begins */
    void (*run[EVERY_FIBERS + 1])(int me);
    bool open;                         /* each has an open span, which moves to the next chunk */
    int lost;                          /* because the arena is full, or a reader reads */
    bool thorough;                     /* not in the quick part */
} handover;
static const handover *now;

/* ---- What they do */

static void records(int me)
{
    (void)me;
    span();
    if (now->open) PROF_END();
}

static void records_and_ends(int me)
{
    records(me);
    thread_ends();
}

/* What every reader does first and last: meanwhile no retired chunk may be taken. */
static void reads(int me)
{
    (void)me;
    if (!npuprof_reader_lock_()) {
        fiber_fail("a reader is refused");
        return;
    }
    const uint32_t head = NPUPROF_LOAD_SEQ_(&npuprof_arena_.header->queue_head);
    if (policy == NPUPROF_KEEP_NEWEST && head != NPUPROF_LOAD_SEQ_(&npuprof_arena_.header->queue_head))
        fiber_fail("a chunk was recycled under a reader");
    npuprof_reader_unlock_();
}

static void flushes_once(int me)
{
    (void)me;
    (void)npuprof_flush();
}

static bool is_recorder(int me)
{
    void (*const run)(int) = now->run[me];
    return run == records || run == records_and_ends;
}

/* Fills the thread's chunk, and the arena but for the unused chunks and one for each fiber to come. */
/* Why not slot->end: that is where the slow path comes next. */
static bool is_full(const npuprof_slot_ *slot)
{
    return slot->cursor == npuprof_chunk_units_(npuprof_slot_current_chunk_(slot)) + npuprof_arena_.units;
}

static void fill(int me)
{
    const npuprof_header_ *const h = npuprof_arena_.header;
    uint32_t unused = now->unused;
    for (int q = me + 1; now->run[q]; q++) unused += is_recorder(q);
    if (now->open) {
        done.begun++;
        done.ended++;
        PROF_BEGIN("c", "outer");
    }
    do span();
    while (h->chunk_next + unused < h->chunk_count || !is_full(npuprof_slot_mine_()));
}

static void begin(int me)
{
    if (is_recorder(me)) fill(me);
    every_begin(me);
    now->run[me](me);
    every_over(me);
}

enum { MAY_LOSE = -1, OLDEST = NPUPROF_KEEP_OLDEST, NEWEST = NPUPROF_KEEP_NEWEST, STREAM = NPUPROF_STREAM };
static const handover handovers[] = {
    { "the-last-chunk", OLDEST, 6, 2, { records, records }, false, 1, false },
    { "two-chunks", OLDEST, 7, 3, { records, records }, true, 0, false },
    { "two-recycle", NEWEST, 6, 0, { records, records }, false, 0, true },
    { "two-recycle-one-ends", NEWEST, 6, 0, { records, records_and_ends }, true, 0, false },
    { "recycled-beside-a-reader", NEWEST, 6, 0, { records, reads }, true, MAY_LOSE, false },
    { "two-drain", STREAM, 6, 0, { records, records }, false, 0, true },
    { "two-drain-one-ends", STREAM, 6, 0, { records, records_and_ends }, true, 0, false },
    { "drained-beside-a-reader", STREAM, 6, 0, { records, reads }, true, 0, false },
    { "drained-beside-a-flush", STREAM, 6, 0, { records, flushes_once }, true, 0, true },
};

/* ---- Running */

static uint64_t complete, redundant, steps;
static uint64_t ends[1 << 16];         /* how runs ended: hashes of all that the library has */
static uint32_t end_count;

static uint64_t hash_more(uint64_t hash, const void *from, size_t count)
{
    for (size_t i = 0; i < count; i++) hash = (hash ^ ((const uint8_t *)from)[i]) * UINT64_C(0x100000001b3);
    return hash;
}

/* Had a run this end before? It has now. */
static bool is_known_end(void)
{
    uint64_t hash = hash_more(UINT64_C(0xcbf29ce484222325), arena, arena_bytes);
    hash = hash_more(hash, &npuprof_arena_, sizeof npuprof_arena_);
    hash = hash_more(hash, &npuprof_control_, sizeof npuprof_control_) | 1;
    size_t i = hash % (sizeof ends / sizeof *ends);
    while (ends[i] && ends[i] != hash) i = (i + 1) % (sizeof ends / sizeof *ends);
    const bool known = ends[i] != 0;
    ends[i] = hash;
    end_count += !known;
    if (end_count > sizeof ends / sizeof *ends / 2) abort();
    return known;
}

static void check_lost(void)
{
    npuprof_stats s;
    npuprof_get_stats(&s);
    const uint64_t lost = s.lost - s.lost_by_cause[NPUPROF_LOST_OVERWRITTEN];
    if (now->lost != MAY_LOSE && lost != (uint64_t)now->lost)
        fiber_fail("lost: %llu, not %d", (unsigned long long)lost, now->lost);
}

static bool run_once(void)
{
    static const scenario nothing = { .name = "every" };
    int count = 0;
    before_run(&nothing);
    for (; now->run[count]; count++) fiber_set_up(count, begin);
    every_before_run(count);
    bool good = fiber_run(count, 0);
    fiber_load_locals(&the.fiber[FIBERS]);
    if (good && !is_known_end() && every.random) fiber_fail("no schedule of all ended so");
    if (good) check_end(&nothing);
    if (good) check_lost();
    good = every.is_redundant || !the.wrong;
    steps += every.depth;
    redundant += every.is_redundant;
    complete += !every.is_redundant;
    return good;
}

static bool explore(const handover *one, uint64_t most)
{
    now = one;
    complete = redundant = steps = 0;
    memset(ends, 0, sizeof ends);
    end_count = 0;
    set_up(one->policy, one->chunks, false);
    memset(&every, 0, sizeof every);
    bool more = true;
    while (more && complete + redundant < most) {
        if (!run_once()) {
            printf("FAIL %s: %s, in schedule %llu\n", one->name, the.wrong,
                   (unsigned long long)(complete + redundant));
            return false;
        }
        more = every_advance();
    }
    printf("note %s: %s %llu schedules, %llu begun that would end like another, %llu accesses\n", one->name,
           more ? "the first" : "all", (unsigned long long)complete, (unsigned long long)redundant,
           (unsigned long long)steps);
    const uint32_t all = end_count;
    the.rng = 88172645463325252;
    every.random = !more;
    for (int i = 0; every.random && i < (check_is_quick() ? 200 : 2000); i++)
        if (!run_once()) {
            printf("FAIL %s: %s, at random\n", one->name, the.wrong);
            return false;
        }
    if (!more) printf("ok %s: %u ends\n", one->name, all);
    return !more;
}

int main(int argc, char **argv)
{
    bool good = true;
    if (npuprof_init(NULL) != NPUPROF_OK) return 2;
    fiber_save_locals(&the.fiber[FIBERS]);
    keep(&first);
    for (size_t i = 0; i < sizeof handovers / sizeof *handovers; i++) {
        if (argc < 2 ? check_is_quick() && handovers[i].thorough : strcmp(argv[1], handovers[i].name) != 0)
            continue;
        good &= explore(&handovers[i], argc > 2 ? strtoull(argv[2], NULL, 10) : UINT64_MAX);
    }
    return good ? 0 : 1;
}
