/* every.h - every interleaving of a few fibers. Include it before fibers.h, and once more below that.
   SPDX-License-Identifier: MIT

   Depth first over the decisions who goes on, before each atomic access of the real header. Two schedules in
   which the same accesses come in the same order to each word, if one of them writes, end alike. So of those
   only one is run: dynamic partial-order reduction (Flanagan and Godefroid, 2005) with sleep sets.

     a decision   a node: who can go on, who must be tried (`backtrack`), who was tried, who sleeps
     a race       the access that a fiber is about to make, and the last one of another fiber to the same word
                  that did not surely come before: there the fiber must be tried, too
     asleep       a fiber that was tried here already, until an access of another one meets its own
     a nap        whoever naps goes on when another fiber has written a word that it read since its last nap.
                  Without that its next look would find what this one found

   What is not an atomic access belongs to the step of the access before it. That is right as long as other
   fibers reach such memory only through atomic accesses that hand it over, which ThreadSanitizer checks in
   other tests. Clocks are those of each fiber. */
#ifndef EVERY_H
#define EVERY_H

#define FIBERS_EVERY 1

#else /* the second time: below fibers.h */

enum { EVERY_FIBERS = 3, EVERY_DEPTH = 4096, EVERY_WORDS = 8192, EVERY_READS = 1024 };

/* Four bytes of memory, in a run. */
typedef struct every_word {
    uintptr_t at;
    uint64_t run;                      /* in which the rest was used */
    uint32_t last_write, last_read[EVERY_FIBERS];     /* depth + 1; 0: none */
    uint32_t writes[EVERY_FIBERS];
} every_word;

/* What a fiber is about to do. */
typedef struct every_op {
    uint16_t word[2];
    uint8_t words;                     /* 0: touches nothing */
    bool writes, waits;                /* waits: reads all that it read since its last nap */
} every_op;

typedef struct every_node {
    uint8_t chosen, can, backtrack, tried, sleep;      /* sets of fibers */
    every_op op[EVERY_FIBERS];
    uint32_t seen[EVERY_FIBERS];       /* of each fiber: the depth + 1 of its last step that came before */
} every_node;

static struct every {
    every_node node[EVERY_DEPTH];
    uint32_t depth, prefix;            /* of this run: so far; how much of it is given */
    every_word word[EVERY_WORDS];
    uint32_t words;
    uint64_t run;
    bool on, is_redundant, random;     /* random: any schedule, to see that it ends like one of all */
    int count;
    bool here[EVERY_FIBERS], over[EVERY_FIBERS];
    every_op next[EVERY_FIBERS];
    uint32_t seen[EVERY_FIBERS][EVERY_FIBERS];     /* as in a node */
    struct { uint16_t word[EVERY_READS]; uint32_t writes[EVERY_READS], count; } read[EVERY_FIBERS];
} every;

/* Its number, which is the same in all runs. */
static uint16_t every_word_at(uintptr_t at)
{
    uint32_t i = (uint32_t)((at >> 2) * 2654435761u) % EVERY_WORDS;
    while (every.word[i].at && every.word[i].at != at) i = (i + 1) % EVERY_WORDS;
    if (!every.word[i].at && ++every.words == EVERY_WORDS) abort();
    if (every.word[i].run != every.run) every.word[i] = (every_word){ .at = at, .run = every.run };
    return (uint16_t)i;
}

static uint32_t every_writes_of_others(const every_word *w, int me)
{
    uint32_t sum = 0;
    for (int q = 0; q < every.count; q++) sum += q == me ? 0 : w->writes[q];
    return sum;
}

/* ---- Which accesses meet */

/* Does what a fiber did meet what q is about to do? */
static bool every_meets(const every_op *did, int q, const every_op *will)
{
    if (did->waits) return true;       /* perhaps: what it had read is forgotten */
    for (uint32_t i = 0; will->waits && did->writes && i < every.read[q].count; i++)
        for (int k = 0; k < did->words; k++)
            if (every.read[q].word[i] == did->word[k]) return true;
    for (int i = 0; i < will->words; i++)
        for (int k = 0; k < did->words && (did->writes || will->writes); k++)
            if (will->word[i] == did->word[k]) return true;
    return false;
}

/* The last step of another fiber that meets an access of `me` to a word, and need not come before it:
   depth + 1, or 0. */
static uint32_t every_word_race(int me, const every_word *w, bool writes)
{
    uint32_t last = 0;
    if (w->last_write) {
        const int q = every.node[w->last_write - 1].chosen;
        if (q != me && every.seen[me][q] < w->last_write) last = w->last_write;
    }
    for (int q = 0; writes && q < every.count; q++)
        if (q != me && w->last_read[q] > last && every.seen[me][q] < w->last_read[q]) last = w->last_read[q];
    return last;
}

static void every_find_race(int me)
{
    const every_op *const op = &every.next[me];
    uint32_t last = 0;
    for (int i = 0; i < op->words; i++) {
        const uint32_t r = every_word_race(me, &every.word[op->word[i]], op->writes);
        if (r > last) last = r;
    }
    for (uint32_t i = 0; op->waits && i < every.read[me].count; i++) {
        const uint32_t r = every_word_race(me, &every.word[every.read[me].word[i]], false);
        if (r > last) last = r;
    }
    if (!last) return;
    every_node *const n = &every.node[last - 1];
    n->backtrack |= (uint8_t)(n->can >> me & 1 ? 1u << me : n->can);
}

/* ---- A step */

static bool every_can(int me)
{
    if (every.over[me]) return false;
    if (!every.next[me].waits) return true;
    for (uint32_t i = 0; i < every.read[me].count; i++)
        if (every_writes_of_others(&every.word[every.read[me].word[i]], me) != every.read[me].writes[i])
            return true;
    return false;
}

static void every_join(int me, uint32_t step)
{
    const uint32_t *const seen = every.node[step ? step - 1 : 0].seen;
    for (int q = 0; step && q < every.count; q++)
        if (seen[q] > every.seen[me][q]) every.seen[me][q] = seen[q];
}

static void every_touch(int me, every_word *w, bool writes)
{
    every_join(me, w->last_write);
    for (int q = 0; writes && q < every.count; q++) every_join(me, w->last_read[q]);
    if (writes) {
        w->last_write = every.depth + 1;
        w->writes[me]++;
    } else {
        w->last_read[me] = every.depth + 1;
    }
}

static void every_remember(int me, uint16_t word)
{
    for (uint32_t i = every.read[me].count; i-- > 0;)
        if (every.read[me].word[i] == word) return;
    if (every.read[me].count == EVERY_READS) abort();
    every.read[me].word[every.read[me].count] = word;
    every.read[me].writes[every.read[me].count++] = every_writes_of_others(&every.word[word], me);
}

/* That fiber makes the access it is about to make. */
static void every_step(int me)
{
    const every_op *const op = &every.next[me];
    for (int i = 0; i < op->words; i++) {
        every_remember(me, op->word[i]);
        every_touch(me, &every.word[op->word[i]], op->writes);
    }
    for (uint32_t i = 0; op->waits && i < every.read[me].count; i++)
        every_touch(me, &every.word[every.read[me].word[i]], false);
    if (op->waits) every.read[me].count = 0;
    every.seen[me][me] = every.depth + 1;
    memcpy(every.node[every.depth].seen, every.seen[me], sizeof every.seen[me]);
    every.depth++;
}

/* ---- Decisions */

static void every_end_run(bool is_redundant)
{
    every.is_redundant = is_redundant;
    every.on = false;
    the.wrong = the.wrong ? the.wrong : "";
    fiber_stop();
}

static uint8_t every_asleep(const every_node *parent)
{
    uint8_t sleep = 0;
    for (int q = 0; q < every.count; q++)
        if (((parent->sleep | parent->tried) >> q & 1) && q != parent->chosen &&
            !every_meets(&parent->op[parent->chosen], q, &parent->op[q]))
            sleep |= (uint8_t)(1u << q);
    return sleep;
}

static int every_pick(unsigned from, int me)
{
    if (from >> me & 1) return me;
    for (int q = 0; q < every.count; q++)
        if (from >> q & 1) return q;
    return -1;
}

static void every_new_node(int me)
{
    every_node *const n = &every.node[every.depth];
    *n = (every_node){ 0 };
    memcpy(n->op, every.next, sizeof n->op);
    for (int q = 0; q < every.count; q++) n->can |= (uint8_t)(every_can(q) << q);
    for (int q = 0; q < every.count; q++)
        if (!every.over[q]) every_find_race(q);
    if (every.depth && !every.random) n->sleep = every_asleep(n - 1);
    const int to = every_pick(n->can & ~n->sleep, every.random ? (int)(fiber_random() % 2) : me);
    if (to < 0 && !n->can) fiber_fail("somebody waits for ever");
    if (to < 0) every_end_run(n->can != 0);
    n->chosen = (uint8_t)to;
    n->backtrack = n->tried = (uint8_t)(1u << to);
}

/* Who goes on? `me` was the last one. */
static int every_decide(int me)
{
    if (every.depth == EVERY_DEPTH) {
        fiber_fail("nobody gets on: %d steps", EVERY_DEPTH);
        every_end_run(false);
    }
    if (every.depth >= every.prefix) every_new_node(me);
    const int to = every.node[every.depth].chosen;
    every_step(to);
    return to;
}

static void every_wait_for_turn(int me)
{
    if (the.wrong) every_end_run(false);
    const int to = every_decide(me);
    if (to != me) fiber_go(to);
}

static void every_access(const volatile void *at, size_t bytes, bool writes)
{
    if (!the.running || !every.on) return;
    const uintptr_t from = (uintptr_t)at & ~(uintptr_t)3;
    every_op *const op = &every.next[the.me];
    *op = (every_op){ .words = bytes > 4 ? 2 : 1, .writes = writes };
    for (int i = 0; i < op->words; i++) op->word[i] = every_word_at(from + 4 * (uintptr_t)i);
    every_wait_for_turn(the.me);
}

static void every_nap(void)
{
    if (!every.on) return;
    the.fiber[the.me].naps++;
    every.next[the.me] = (every_op){ .waits = true };
    every_wait_for_turn(the.me);
}

/* ---- A run of all, from a moment on at which all are ready */

/* A fiber is ready: when all are, every interleaving of what follows is run. */
static void every_begin(int me)
{
    every.here[me] = true;
    every.next[me] = (every_op){ 0 };
    for (int q = 0; q < every.count; q++)
        if (!every.here[q]) {
            fiber_go(q);
            return;
        }
    every.on = true;
    every_wait_for_turn(me);
}

static void every_over(int me)
{
    every.over[me] = true;
    for (int q = 0; q < every.count; q++)
        if (!every.over[q]) {
            if (the.wrong) every_end_run(false);
            fiber_go(every_decide(me));
            return;
        }
    every.on = false;
}

/* The next schedule: the deepest decision at which another fiber must be tried. False: there is none. */
static bool every_advance(void)
{
    while (every.depth > 0) {
        every_node *const n = &every.node[--every.depth];
        const int to = every_pick(n->backtrack & ~n->tried & ~n->sleep, 0);
        if (to < 0) continue;
        n->chosen = (uint8_t)to;
        n->tried |= (uint8_t)(1u << to);
        every.prefix = every.depth + 1;
        return true;
    }
    return false;
}

static void every_before_run(int count)
{
    every.run++;
    every.depth = 0;
    every.on = every.is_redundant = false;
    every.count = count;
    memset(every.here, 0, sizeof every.here);
    memset(every.over, 0, sizeof every.over);
    memset(every.seen, 0, sizeof every.seen);
    for (int q = 0; q < EVERY_FIBERS; q++) every.read[q].count = 0;
}

#endif /* EVERY_H */
