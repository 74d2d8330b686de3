/* test: san=no - the handover of chunks under weak memory: every interleaving and every
   store that a load may see
   SPDX-License-Identifier: MIT

   A model, word by word, of arena/chunks.h: retire, unqueue, free, take, recycling beside a reader; and of a
   record that is read while others are written. schedule.c runs the code itself, but as one processor would.

   The memory is that of C11's release and acquire. A word has all its stores, in order. A thread has a view:
   how far it has seen each word. A load reads any store that its view does not exclude. A release store
   carries the view of its thread, and an acquire load takes it over. Plain memory is checked for races: who
   reads or writes it must have seen the last store, and who writes it all reads. Not modelled: loads that
   read what is stored later (no such cycle can be built of these words without a race), and stores that take
   their place before one already made by another thread.

   Then each order is weakened alone, to relaxed, and SC to release and acquire: the model must see what
   breaks. What does not is listed in `orders` with the reason. */
#include "../check.h"

#include <stddef.h>

enum { THREADS = 3, CHUNKS = 3, QUEUE = 4, STORES = 12, TOP = 15 };
enum { TAIL, HEAD, FREE, FROZEN, RECYCLING, W0, W1, BEHIND, ENTRY, NEXT = ENTRY + QUEUE,
       STATE = NEXT + CHUNKS, DATA = STATE + CHUNKS, READS = DATA + CHUNKS,
       WORDS = READS + THREADS * CHUNKS };
/* NEVER: it never had an owner. STALE: what a unit held before its chunk was taken. */
enum { NEVER, IS_FREE, IS_OPEN, IS_RETIRED, STALE, NOBODY = 255 };

/* ---- Orders, of each access of the code */

enum { RELAXED, ACQUIRE = 1, RELEASE = 2, SC = 4 };
enum { RETIRE_STATE, RETIRE_TAIL, RETIRE_ENTRY, UNQUEUE_HEAD, UNQUEUE_ENTRY, UNQUEUE_CAS, FREE_HEAD,
       FREE_STATE, FREE_NEXT, FREE_CAS, TAKE_HEAD, TAKE_NEXT, TAKE_CAS, FRESH_NEXT,
       FRESH_STATE, OPEN_STATE, LOOK_FROZEN, BEGIN_RECYCLING, LOOK_AGAIN, END_RECYCLING, FREEZE,
       WAIT_RECYCLING, READER_STATE, THAW, RECORD_BEHIND, RECORD_W1, RECORD_W0, READ_W0, READ_W1,
       READ_BEHIND, SITES };
/* needed: the parts of the order without which a scenario fails. why: the other parts are not. */
static const struct { const char *name; unsigned order, needed; const char *why; } orders[SITES] = {
    [RETIRE_STATE] = { "retire: state", RELEASE, RELEASE, "" },
    [RETIRE_TAIL] = { "retire: queue_tail", RELAXED, 0, "" },
    [RETIRE_ENTRY] = { "retire: queue entry", RELEASE, RELEASE, "" },
    [UNQUEUE_HEAD] = { "unqueue: queue_head", ACQUIRE, 0,
        "the entry's acquire is enough, and its lap" },
    [UNQUEUE_ENTRY] = { "unqueue: queue entry", ACQUIRE, ACQUIRE, "" },
    [UNQUEUE_CAS] = { "unqueue: CAS of queue_head", ACQUIRE | RELEASE, 0,
        "the entry's acquire is enough, and its lap" },
    [FREE_HEAD] = { "free: chunk_free", ACQUIRE, 0,
        "only a number is taken from it" },
    [FREE_STATE] = { "free: state", RELEASE, 0,
        "readers leave a free chunk alone" },
    [FREE_NEXT] = { "free: next", RELAXED, 0, "" },
    [FREE_CAS] = { "free: CAS of chunk_free", ACQUIRE | RELEASE, RELEASE,
        "an addition or swap passes on the view of the store before" },
    [TAKE_HEAD] = { "take: chunk_free", ACQUIRE, ACQUIRE, "" },
    [TAKE_NEXT] = { "take: next", RELAXED, 0, "" },
    [TAKE_CAS] = { "take: CAS of chunk_free", ACQUIRE | RELEASE, ACQUIRE,
        "a swap passes on the view of the store before" },
    [FRESH_NEXT] = { "fresh: next", RELAXED, 0, "" },
    [FRESH_STATE] = { "fresh: state FREE", RELEASE, 0,
        "readers go by the owner, released later; for a killed process" },
    [OPEN_STATE] = { "fresh: state OPEN", RELEASE, 0,
        "the same" },
    [LOOK_FROZEN] = { "recycling: first look at frozen", SC | ACQUIRE, 0,
        "the second look makes up for it" },
    [BEGIN_RECYCLING] = { "recycling: +1", SC | ACQUIRE | RELEASE, SC,
        "only its order with frozen counts: SC" },
    [LOOK_AGAIN] = { "recycling: second look at frozen", SC | ACQUIRE, SC | ACQUIRE, "" },
    [END_RECYCLING] = { "recycling: -1", SC | ACQUIRE | RELEASE, RELEASE,
        "a reader that sees it late only waits" },
    [FREEZE] = { "reader: frozen = 1", SC | RELEASE, SC,
        "it hands nothing over" },
    [WAIT_RECYCLING] = { "reader: recycling", SC | ACQUIRE, SC | ACQUIRE, "" },
    [READER_STATE] = { "reader: state", ACQUIRE, ACQUIRE, "" },
    [THAW] = { "reader: frozen = 0", SC | RELEASE, RELEASE,
        "who sees it late is refused, and counted" },
    [RECORD_BEHIND] = { "record: w0 behind", RELAXED, 0, "" },
    [RECORD_W1] = { "record: w1", RELAXED, 0, "" },
    [RECORD_W0] = { "record: w0", RELEASE, RELEASE, "" },
    [READ_W0] = { "reader: w0", ACQUIRE, ACQUIRE, "" },
    [READ_W1] = { "reader: w1", RELAXED, 0, "" },
    [READ_BEHIND] = { "reader: w0 behind", ACQUIRE, 0,
        "only a record that is there later needs it" },
};
static unsigned weakened_site, weakened_by;       /* the parts of one order that are missing */
static bool no_count, no_lap;                     /* chunk_free without count, entries without lap */

/* ---- The memory */

typedef struct store { uint8_t value, view[WORDS]; } store;
typedef struct memory {
    store at[WORDS][STORES];
    uint8_t count[WORDS];                         /* stores of a word */
    uint8_t view[THREADS][WORDS], sc[WORDS];      /* sc: the last store of a word that was SC */
    uint8_t op[THREADS], pc[THREADS], chunk[THREADS], a[THREADS], b[THREADS];
    uint8_t stash[THREADS], holder[CHUNKS];
} memory;

static memory *m;                                 /* where the step is done */
static int me, choice;                            /* by whom; which of the stores a load reads */
static bool possible, more;                       /* is there such a choice? Are there further ones? */
static const char *wrong;

static unsigned order_of(unsigned site)
{
    return orders[site].order & ~(site == weakened_site ? weakened_by : 0u);
}

static void join(uint8_t *view, const uint8_t *other)
{
    for (int i = 0; i < WORDS; i++)
        if (other[i] > view[i]) view[i] = other[i];
}

static unsigned last(int word) { return m->count[word] - 1u; }

static void put(int word, unsigned value, unsigned order, const store *before)
{
    if (m->count[word] == STORES) abort();
    store *const s = &m->at[word][m->count[word]];
    memset(s, 0, sizeof *s);
    m->view[me][word] = m->count[word]++;
    s->value = (uint8_t)value;
    if (order & SC) m->sc[word] = m->view[me][word];
    if (before) join(s->view, before->view);
    if (order & RELEASE) join(s->view, m->view[me]);
    s->view[word] = m->view[me][word];
}

static unsigned see(int word, unsigned index, unsigned order)
{
    if (order & ACQUIRE) join(m->view[me], m->at[word][index].view);
    if (index > m->view[me][word]) m->view[me][word] = (uint8_t)index;
    return m->at[word][index].value;
}

static unsigned load(unsigned site, int word)
{
    const unsigned order = order_of(site), own = m->view[me][word];
    const unsigned index = (order & SC && m->sc[word] > own ? m->sc[word] : own) + (unsigned)choice;
    possible = index <= last(word);
    more = index < last(word);
    return possible ? see(word, index, order) : 0;
}

static void set(unsigned site, int word, unsigned value)
{
    possible = choice == 0;
    put(word, value, order_of(site), NULL);
}

static unsigned add(unsigned site, int word, unsigned value)
{
    possible = choice == 0;
    const store before = m->at[word][last(word)];
    (void)see(word, last(word), order_of(site));
    put(word, before.value + value, order_of(site), &before);
    return before.value;
}

/* False: it failed, and *expected is what it read. Only the last store can be replaced. */
static bool swap(unsigned site, int word, uint8_t *expected, unsigned value)
{
    const unsigned index = m->view[me][word] + (unsigned)choice;
    possible = index <= last(word) && (index == last(word) || m->at[word][index].value != *expected);
    more = index < last(word);
    if (!possible) return false;
    const store before = m->at[word][index];
    const bool good = before.value == *expected;
    (void)see(word, index, order_of(site));
    if (good) put(word, value, order_of(site), &before);
    else *expected = before.value;
    return good;
}

/* ---- Plain memory, and who has a chunk */

static void fail(const char *why) { if (!wrong) wrong = why; }

static void plain_read(int chunk)
{
    if (m->view[me][DATA + chunk] != last(DATA + chunk)) fail("a record is read half");
    put(READS + me * CHUNKS + chunk, 1, RELAXED, NULL);
}

static void plain_write(int chunk)
{
    if (m->view[me][DATA + chunk] != last(DATA + chunk)) fail("two threads write to a chunk");
    for (int i = 0; i < THREADS; i++)
        if (m->view[me][READS + i * CHUNKS + chunk] != last(READS + i * CHUNKS + chunk))
            fail("a chunk is written that is being read");
    put(DATA + chunk, 1, RELAXED, NULL);
}

static void get(unsigned chunk)
{
    if (chunk >= CHUNKS) { fail("there is no such chunk"); return; }
    if (m->holder[chunk] != NOBODY) fail("a chunk has two owners");
    m->holder[chunk] = (uint8_t)me;
    m->chunk[me] = (uint8_t)chunk;
}

static void give(void)
{
    m->holder[m->chunk[me]] = NOBODY;
    m->chunk[me] = NOBODY;
}

/* ---- What threads do: each step is one access. True: that was the last step of it */

static unsigned queue_slots;

static unsigned entry_of(unsigned at, unsigned chunk)
{
    return (no_lap ? 0 : at / queue_slots << 4) | (chunk + 1);
}

static bool retire(int pc)
{
    const unsigned chunk = m->chunk[me];
    if (pc == 0) {
        set(RETIRE_STATE, STATE + (int)chunk, IS_RETIRED);
    } else if (pc == 1) {
        m->a[me] = (uint8_t)add(RETIRE_TAIL, TAIL, 1);
    } else {
        set(RETIRE_ENTRY, ENTRY + m->a[me] % (int)queue_slots, entry_of(m->a[me], chunk));
        give();
    }
    return pc == 2;
}

/* a: the head, b: the entry */
static bool unqueue(int pc)
{
    if (pc == 0) {
        m->a[me] = (uint8_t)load(UNQUEUE_HEAD, HEAD);
    } else if (pc == 1) {
        m->b[me] = (uint8_t)load(UNQUEUE_ENTRY, ENTRY + m->a[me] % (int)queue_slots);
        const bool filled = (m->b[me] & TOP) && m->b[me] == entry_of(m->a[me], (m->b[me] & TOP) - 1u);
        m->pc[me] = filled ? 2 : 3;
        return false;
    } else if (pc == 2) {
        if (swap(UNQUEUE_CAS, HEAD, &m->a[me], m->a[me] + 1u)) {
            get((m->b[me] & TOP) - 1u);
            return true;
        }
    } else {
        const unsigned head = load(UNQUEUE_HEAD, HEAD);
        if (head == m->a[me]) return true;
        m->a[me] = (uint8_t)head;
    }
    m->pc[me] = 1;
    return false;
}

static bool free_chunk(int pc)
{
    const unsigned chunk = m->chunk[me];
    if (pc == 0) {
        m->a[me] = (uint8_t)load(FREE_HEAD, FREE);
    } else if (pc == 1) {
        set(FREE_STATE, STATE + (int)chunk, IS_FREE);
    } else if (pc == 2) {
        set(FREE_NEXT, NEXT + (int)chunk, m->a[me] & TOP);
    } else {
        const unsigned count = no_count ? 0 : (m->a[me] & ~(unsigned)TOP) + TOP + 1;
        m->holder[chunk] = NOBODY;
        if (swap(FREE_CAS, FREE, &m->a[me], (count | (chunk + 1)) & 255)) {
            m->chunk[me] = NOBODY;
            return true;
        }
        m->holder[chunk] = (uint8_t)me;
        m->pc[me] = 2;
        return false;
    }
    m->pc[me]++;
    return false;
}

static bool take(int pc)
{
    if (pc == 0) {
        m->a[me] = (uint8_t)load(TAKE_HEAD, FREE);
    } else if (pc == 1) {
        m->b[me] = (uint8_t)load(TAKE_NEXT, NEXT + (m->a[me] & TOP) - 1);
        m->pc[me] = 2;
        return false;
    } else {
        const unsigned chunk = (m->a[me] & TOP) - 1u;
        if (swap(TAKE_CAS, FREE, &m->a[me], (m->a[me] & ~(unsigned)TOP) | m->b[me])) {
            get(chunk);
            return true;
        }
    }
    m->pc[me] = 1;
    return !(m->a[me] & TOP);
}

static bool make_fresh(int pc)
{
    const int chunk = m->chunk[me];
    m->pc[me]++;
    if (pc == 0) {
        set(FRESH_NEXT, NEXT + chunk, 0);
    } else if (pc == 1) {
        set(FRESH_STATE, STATE + chunk, IS_FREE);
        plain_write(chunk);
    } else {
        set(OPEN_STATE, STATE + chunk, IS_OPEN);
    }
    return pc == 2;
}

/* refused: b is 1, and the way goes on behind npuprof_chunk_end_recycling_() */
static bool begin_recycling(int pc)
{
    m->pc[me]++;
    if (pc == 0) return (m->b[me] = (uint8_t)load(LOOK_FROZEN, FROZEN)) != 0;
    if (pc == 1) return (void)add(BEGIN_RECYCLING, RECYCLING, 1), false;
    if (pc == 2) return (m->b[me] = (uint8_t)load(LOOK_AGAIN, FROZEN)) == 0;
    return (void)add(END_RECYCLING, RECYCLING, 255), true;
}

/* Every chunk that is retired. */
static bool read_all(int pc)
{
    if (load(READER_STATE, STATE + pc) == IS_RETIRED && possible) plain_read(pc);
    m->pc[me]++;
    return pc == CHUNKS - 1;
}

static bool record(int pc)
{
    m->pc[me]++;
    if (pc == 0) {
        plain_write(0);
        return set(RECORD_BEHIND, BEHIND, 0), false;
    }
    if (pc == 1) return set(RECORD_W1, W1, 1), false;
    return set(RECORD_W0, W0, 1), true;
}

static bool read_record(int pc)
{
    m->pc[me]++;
    if (pc == 0) return load(READ_W0, W0) == 0;
    if (pc == 2) {
        if (load(READ_BEHIND, BEHIND) == STALE && possible) fail("what was there before is read");
        return true;
    }
    if (load(READ_W1, W1) == 0 && possible) fail("a record is read half");
    if (possible) plain_read(0);
    return false;
}

typedef enum op { STOP, WRITE, RETIRE, TAKE, STASH, FRESH, UNQUEUE, READ, GIVE, BEGIN, END, STOP_THEM, WAIT,
                  READ_ALL, GO_ON, PUT_RECORD, READ_RECORD } op;

/* Does this op have nothing to do? */
static bool is_idle(op o)
{
    const bool none = m->chunk[me] == NOBODY;
    if (o == WRITE || o == RETIRE || o == FRESH || o == READ || o == GIVE) return none;
    return o == TAKE && !none;
}

static bool run_op(op o, int pc)
{
    switch (o) {
    case WRITE: possible = choice == 0; plain_write(m->chunk[me]); return true;
    case READ: possible = choice == 0; plain_read(m->chunk[me]); return true;
    case RETIRE: m->pc[me]++; return retire(pc);
    case TAKE: return take(pc);
    case FRESH: return make_fresh(pc);
    case UNQUEUE: m->pc[me]++; return unqueue(pc);
    case GIVE: return free_chunk(pc);
    case BEGIN: return begin_recycling(pc);
    case END: return (void)add(END_RECYCLING, RECYCLING, 255), true;
    case STOP_THEM: return set(FREEZE, FROZEN, 1), true;
    case WAIT: return load(WAIT_RECYCLING, RECYCLING) == 0;
    case READ_ALL: return read_all(pc);
    case GO_ON: return set(THAW, FROZEN, 0), true;
    case PUT_RECORD: return record(pc);
    case READ_RECORD: return read_record(pc);
    case STASH: {
        const uint8_t chunk = m->chunk[me];
        possible = choice == 0;
        m->chunk[me] = m->stash[me];
        m->stash[me] = chunk;
        return true;
    }
    default: return true;
    }
}

/* ---- Every way */

typedef struct scenario {
    const char *name;
    uint8_t slots, chunks, owned;      /* of the queue; of the arena; threads that begin with one */
    uint8_t run[THREADS][16];
} scenario;
#define FILL WRITE, RETIRE
#define RENEW TAKE, FRESH, WRITE, RETIRE
#define DRAIN UNQUEUE, READ, GIVE
#define RECYCLE BEGIN, UNQUEUE, FRESH, END, WRITE, RETIRE
#define LOOK STOP_THEM, WAIT, READ_ALL, GO_ON
static const scenario scenarios[] = {
    { "stream", 2, 2, 1, { { FILL, RENEW, RENEW }, { DRAIN, DRAIN, DRAIN } } },
    { "stream of two", 4, 3, 2, { { FILL, TAKE, FRESH, WRITE }, { FILL }, { DRAIN, DRAIN } } },
    { "stream, two who drain", 2, 2, 1, { { FILL, RENEW, RENEW }, { DRAIN, DRAIN }, { DRAIN, DRAIN } } },
    { "two who drain", 2, 2, 2, { { FILL, UNQUEUE, READ }, { FILL, UNQUEUE, READ } } },
    { "free stack", 2, 2, 0, { { TAKE, WRITE }, { TAKE, STASH, TAKE, WRITE, STASH, GIVE } } },
    { "free stack of three", 4, 3, 1,
      { { WRITE, GIVE, TAKE, FRESH }, { TAKE, FRESH, GIVE }, { TAKE } } },
    { "keep newest", 2, 2, 1, { { FILL, RECYCLE }, { LOOK } } },
    { "keep newest of two", 2, 2, 2, { { FILL, RECYCLE }, { FILL }, { LOOK } } },
    { "two readings", 2, 2, 1, { { FILL, RECYCLE, RECYCLE }, { LOOK, LOOK } } },
    { "two who recycle, and a reader", 4, 3, 2, { { FILL, RECYCLE }, { FILL, RECYCLE }, { LOOK } } },
    { "two who recycle", 2, 2, 2, { { FILL, RECYCLE }, { FILL, RECYCLE } } },
    { "a record", 2, 1, 1, { { PUT_RECORD }, { READ_RECORD } } },
};
enum { SCENARIOS = sizeof scenarios / sizeof *scenarios, DEPTH = 400, SEEN = 1 << 19 };

static const scenario *now;
static memory way[DEPTH];
static uint64_t *seen, states, total, most;

static void begin_scenario(memory *at)
{
    memset(at, 0, sizeof *at);
    memset(at->count, 1, sizeof at->count);
    memset(at->holder, NOBODY, sizeof at->holder);
    memset(at->chunk, NOBODY, sizeof at->chunk);
    memset(at->stash, NOBODY, sizeof at->stash);
    at->at[BEHIND][0].value = STALE;
    for (unsigned i = 0; i < now->chunks; i++) {
        if (i < now->owned) {
            at->chunk[i] = at->holder[i] = (uint8_t)i;
            at->at[STATE + i][0].value = NEVER;          /* a taker may not see this old state */
        } else {
            at->at[NEXT + i][0].value = at->at[FREE][0].value;
            at->at[FREE][0].value = (uint8_t)(i + 1);
            at->at[STATE + i][0].value = IS_FREE;
        }
    }
    queue_slots = now->slots;
}

static uint64_t mix(uint64_t hash, const void *bytes, size_t count)
{
    for (size_t b = 0; b < count; b += 8) {
        uint64_t word = 0;
        memcpy(&word, (const uint8_t *)bytes + b, count - b < 8 ? count - b : 8);
        hash = (hash ^ word) * UINT64_C(0x9E3779B97F4A7C15);
        hash ^= hash >> 29;
    }
    return hash;
}

/* Has this state been there? A hash of 64 bits stands for it. */
static bool is_seen(const memory *at)
{
    const size_t rest = offsetof(memory, count);
    uint64_t hash = mix(0, at->count, sizeof *at - rest);
    for (int w = 0; w < WORDS; w++) hash = mix(hash, at->at[w], at->count[w] * sizeof(store));
    hash |= 1;
    for (uint64_t i = hash >> 20;; i++) {
        uint64_t *const place = &seen[i % SEEN];
        if (*place == hash) return true;
        if (*place) continue;
        if (++states > SEEN - SEEN / 8) abort();
        *place = hash;
        return false;
    }
}

/* All threads have ended: each chunk is in one place. */
static void check_end(void)
{
    unsigned places[CHUNKS] = { 0 }, n = 0;
    for (unsigned i = 0; i < now->chunks; i++) places[i] += m->holder[i] != NOBODY;
    for (unsigned next = m->at[FREE][last(FREE)].value & TOP; next && n++ < CHUNKS;
         next = m->at[NEXT + next - 1][last(NEXT + (int)next - 1)].value)
        places[next - 1]++;
    const unsigned tail = m->at[TAIL][last(TAIL)].value;
    for (unsigned at = m->at[HEAD][last(HEAD)].value; at < tail; at++) {
        const int word = ENTRY + (int)(at % queue_slots);
        places[((m->at[word][last(word)].value & TOP) - 1u) % CHUNKS]++;
    }
    for (unsigned i = 0; i < now->chunks; i++)
        if (places[i] != 1) fail(places[i] ? "a chunk is in two places" : "a chunk is lost");
}

/* One step of a thread, by that choice. */
static void step(void)
{
    const op o = (op)now->run[me][m->op[me]];
    possible = true;
    if (!run_op(o, m->pc[me]) || !possible) return;
    m->op[me]++;
    m->pc[me] = 0;
    if (o == BEGIN && m->b[me])
        while (now->run[me][m->op[me] - 1] != END) m->op[me]++;
    if (o != UNQUEUE || m->chunk[me] != NOBODY) m->a[me] = m->b[me] = 0;
}

static void copy(memory *to, const memory *from)
{
    memcpy(to->count, from->count, sizeof *to - offsetof(memory, count));
    for (int w = 0; w < WORDS; w++) memcpy(to->at[w], from->at[w], from->count[w] * sizeof(store));
}

static void explore(int depth)
{
    const memory *const from = &way[depth];
    bool ended = true;
    if (depth + 1 == DEPTH) abort();
    for (int t = 0; t < THREADS; t++) {
        memory *const to = &way[depth + 1];
        more = true;
        for (int c = 0; more && !wrong; c++) {
            copy(to, from);
            more = false;
            m = to;
            me = t;
            choice = c;
            while (is_idle((op)now->run[t][m->op[t]])) m->op[t]++;
            if (now->run[t][m->op[t]] == STOP) break;
            ended = false;
            step();
            const bool further = more;
            if (possible && !wrong && !is_seen(to)) explore(depth + 1);
            more = further;
        }
    }
    m = &way[depth];
    if (ended && !wrong) check_end();
}

/* What is wrong with a scenario, or NULL. */
static const char *try_scenario(const scenario *s)
{
    now = s;
    wrong = NULL;
    states = 0;
    memset(seen, 0, sizeof *seen * SEEN);
    begin_scenario(&way[0]);
    explore(0);
    total += states;
    if (states > most) most = states;
    return wrong;
}

static const scenario *try_all(void)
{
    for (int i = 0; i < SCENARIOS; i++)
        if (try_scenario(&scenarios[i])) return now;
    return NULL;
}

/* ---- The checks */

static void handover(void)
{
    for (int i = 0; i < SCENARIOS; i++) {
        const char *const why = try_scenario(&scenarios[i]);
        if (why) check_failed_(__FILE__, __LINE__, "%s: %s", scenarios[i].name, why);
        printf("note %s: %llu states\n", scenarios[i].name, (unsigned long long)states);
    }
}

static void each_order_weakened(void)
{
    static const unsigned parts[] = { ACQUIRE, RELEASE, SC };
    for (unsigned site = 0; site < SITES; site++)
        for (int i = 0; i < 3; i++) {
            if (!(orders[site].order & parts[i])) continue;
            weakened_site = site;
            weakened_by = parts[i];
            const scenario *const s = try_all();
            const bool needed = (orders[site].needed & parts[i]) != 0;
            const char *const part = i == 0 ? "acquire" : i == 1 ? "release" : "SC";
            printf("note %s without %s: %s: %s\n", orders[site].name, part, s ? s->name : "holds",
                   s ? wrong : orders[site].why);
            if ((s != NULL) != needed)
                check_failed_(__FILE__, __LINE__, "%s without %s: %s", orders[site].name, part,
                              s ? "breaks" : "holds");
        }
    weakened_by = 0;
}

static void numbers_that_are_missing(void)
{
    no_count = true;
    CHECK(try_all() != NULL);
    no_count = false;
    no_lap = true;
    CHECK(try_all() != NULL);
    no_lap = false;
}

static void set_up(void (*run)(void))
{
    seen = (uint64_t *)malloc(sizeof *seen * SEEN);
    if (!seen) abort();
    run();
    printf("note %llu states, %llu at most of one scenario\n", (unsigned long long)total,
           (unsigned long long)most);
    free(seen);
}

static void all_holds(void) { set_up(handover); }
static void orders_are_needed(void) { set_up(each_order_weakened); }
static void numbers_are_needed(void) { set_up(numbers_that_are_missing); }

CHECK_MAIN(CASE(all_holds), CASE_THOROUGH(orders_are_needed), CASE(numbers_are_needed))
