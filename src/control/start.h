#pragma once   /* SPDX-License-Identifier: MIT */
#include "../public/macros.h"
#include "../numbers/text.h"
#include "../numbers/wide.h"
#include "../format/arena.h"
#include "../arena/state.h"
#include "../os/common.h"
#include "../clock/host.h"
#include "../arena/table.h"
#include "../arena/anchors.h"
#include "../arena/slots.h"
#include "../record/attach.h"
#include "../record/enter.h"

/* What decides whether something is recorded: the level, a pause, capture control (capture.h), the
   categories. And the time as users ask for it. Call sites look at three words only, which this part
   computes:
     npuprof_gate_               macros up to this level record; INT_MIN: none do; NPUPROF_GATE_BOUNDARIES_:
                                 none do, but records and inferences call capture control
     npuprof_arena_generation_   counts up when call sites must look their category and id up again
     npuprof_arena_fast_         equals it while the gate is open and the clock is one instruction

   Data, beside these three: npuprof_control_, all atomic, and npuprof_control_lists_. Any thread may call the
   public functions. Each writes its own word first, and computes the three words from all. Two threads may do
   so at a time. So whoever computes looks at the inputs once more behind the store, and repeats if they have
   changed.

   This part may not know files or formats. */

enum { NPUPROF_PAUSE_NO_ENTRY_ = 1 };  /* a pause that the table had no space for; no entry has this id */

static struct {
    int level;                     /* 0: stopped */
    int attached;                  /* the level of a tool that has attached (attach.h); 0: none has */
    uint32_t paused;               /* 0, the entry of the pause, or NPUPROF_PAUSE_NO_ENTRY_ */
    uint32_t held;                 /* by capture control: 0, or the entry of that gap << 2 | NPUPROF_HOLD_* */
    uint32_t armed;                /* 1: capture control has a condition */
    void (*tell)(void *user, bool open);   /* npuprof_capture.gate, or NULL; with its user. Set up */
    void *tell_user;
    uintptr_t telling;             /* the thread that is in it, 0: none */
    uint32_t told;                 /* what it was told last */
    uint32_t window, window_over;  /* number of the active phase that began last; of the one that is over */
    uint32_t started;              /* 1: npuprof_start() was called. Atomic */
} npuprof_control_;

enum { NPUPROF_CONTROL_LISTS_ = 4 };

/* The lists of categories. Why several: a thread may still be reading the one before. */
static struct {
    uint32_t count;                /* of those that were written */
    char from[24];                 /* the variable that the last one came from, or empty */
    npuprof_record_list_ last[NPUPROF_CONTROL_LISTS_];
} npuprof_control_lists_;

/* ---- Gate and generation */

/* Opens the fast path for call sites, or closes it. */
static void npuprof_control_set_fast_path_(void)
{
    for (;;) {
        const int gate = NPUPROF_LOAD_SEQ_(&npuprof_gate_);
        const uint32_t generation = NPUPROF_LOAD_SEQ_(&npuprof_arena_generation_);
        const bool fast = gate >= 1 && NPUPROF_CLOCK_IS_FAST_();
        NPUPROF_STORE_SEQ_(&npuprof_arena_fast_, fast ? generation : UINT32_MAX);
        /* Why again: another thread may have changed them before the store. */
        if (gate == NPUPROF_LOAD_SEQ_(&npuprof_gate_)
            && generation == NPUPROF_LOAD_SEQ_(&npuprof_arena_generation_))
            return;
    }
}

/* Makes call sites look their category and their id up again. Why a CAS: two threads that load the same
   number would store the same one behind it. A call site that looked its category up between the two stores,
   by the list of the first, would keep that verdict. */
static void npuprof_control_advance_generation_(void)
{
    uint32_t was = NPUPROF_LOAD_(&npuprof_arena_generation_);
    while (!NPUPROF_CAS_(&npuprof_arena_generation_, &was, (was + 1) & 0x7FFFFFFFu)) {}
    npuprof_control_set_fast_path_();
}

/* What the gate is to be. The program's own stop and pause count for more than capture control. */
static int npuprof_control_gate_(void)
{
    const bool paused = NPUPROF_LOAD_SEQ_(&npuprof_control_.paused) != 0;
    const int own = NPUPROF_LOAD_SEQ_(&npuprof_control_.level);
    const int attached = NPUPROF_LOAD_SEQ_(&npuprof_control_.attached);
    const int level = paused ? 0 : own > attached ? own : attached;
    const uint32_t window = NPUPROF_LOAD_SEQ_(&npuprof_control_.window);
    const bool over = window && NPUPROF_LOAD_SEQ_(&npuprof_control_.window_over) == window;
    if (level && !over && !NPUPROF_LOAD_SEQ_(&npuprof_control_.held)) return level;
    return level && NPUPROF_LOAD_SEQ_(&npuprof_control_.armed) ? NPUPROF_GATE_BOUNDARIES_ : INT_MIN;
}

/* Call after a change of `level`, `attached`, `paused`, `held`, `window`, `window_over`, `armed` or `tell`.
   Async-signal safe. */
static void npuprof_control_set_gate_(void)
{
#if NPUPROF_ATTACHES_
    if (NPUPROF_LOAD_(&npuprof_control_.level) || NPUPROF_LOAD_(&npuprof_control_.armed) ||
        NPUPROF_LOAD_(&npuprof_control_.tell)) NPUPROF_STORE_(&npuprof_record_attach_.own, 1);
#endif
    for (;;) {
        const int gate = npuprof_control_gate_();
        NPUPROF_STORE_SEQ_(&npuprof_gate_, gate);
        /* Why again: another thread may have changed it before the store. */
        if (gate == npuprof_control_gate_()) break;
    }
    npuprof_control_set_fast_path_();
}

NPUPROF_API_ bool npuprof_is_recording(void) { return NPUPROF_OPEN_(1); }

NPUPROF_API_ bool npuprof_is_recording_level(int level) { return NPUPROF_OPEN_(level); }

/* Calls npuprof_capture.gate if the gate has opened or closed since the last time. Not from a signal handler.
   Why a flag and no lock: what another thread changes meanwhile is told behind the call by who is at it. */
static void npuprof_control_tell_(void)
{
#ifndef NPUPROF_RECORD_ONLY                /* it refuses capture control */
    for (;;) {
        /* At exit it is taken away. */
        void (*const tell)(void *, bool) = NPUPROF_LOAD_ACQUIRE_(&npuprof_control_.tell);
        const uint32_t open = NPUPROF_LOAD_SEQ_(&npuprof_gate_) >= 1;
        uintptr_t nobody = 0;
        if (!tell || NPUPROF_LOAD_(&npuprof_control_.told) == open) return;
        if (!NPUPROF_CAS_(&npuprof_control_.telling, &nobody, npuprof_slot_me_())) return;
        NPUPROF_STORE_(&npuprof_control_.told, open);
        tell(npuprof_control_.tell_user, open != 0);
        NPUPROF_STORE_SEQ_(&npuprof_control_.telling, (uintptr_t)0);
    }
#endif
}

/* What happens when the arena is full, for new chunks and in the image. */
static void npuprof_control_set_policy_(int when_full)
{
    npuprof_arena_.when_full = when_full;
    npuprof_arena_.header->when_full = (uint32_t)when_full;
}

/* ---- Time: where the clock's rate is not known, it follows from the first host anchor and one read now */

NPUPROF_API_ uint64_t npuprof_ticks_(void) { return npuprof_clock_in_order_(); }

/* So many ticks are so many ns, and an anchor to count from. */
typedef struct npuprof_control_rate_ {
    uint64_t ticks, ns;
    npuprof_host_anchor_ from;
    int64_t from_ns;               /* the anchor's place in the trace's time */
} npuprof_control_rate_;

/* False: there is no arena. */
static bool npuprof_control_find_rate_(npuprof_control_rate_ *r)
{
    if (!npuprof_record_is_ready_()) return false;
    const npuprof_header_ *h = npuprof_arena_.header;
    r->from = h->first;
    if (!h->clock_hz) npuprof_arena_read_anchor_(&r->from);
    const uint64_t passed = (uint64_t)(r->from.monotonic_ns - h->first.monotonic_ns);
    r->from_ns = h->first.unix_ns + (int64_t)passed;
    r->ticks = h->clock_hz ? h->clock_hz : r->from.ticks - h->first.ticks;
    r->ns = h->clock_hz ? 1000000000u : passed;
    return true;
}

static uint64_t npuprof_control_size_(int64_t distance)
{
    return distance < 0 ? 0 - (uint64_t)distance : (uint64_t)distance;
}

/* The ns that pass in 2^32 ticks. */
NPUPROF_API_ uint64_t npuprof_ns_per_4g_ticks_(void)
{
    npuprof_control_rate_ r;
    if (!npuprof_control_find_rate_(&r)) return 0;
    return r.ticks ? npuprof_scale_(r.ns, (uint64_t)1 << 32, r.ticks) : (uint64_t)1 << 32;
}

/* Ticks as ns since the Unix epoch. They may lie before the start of the trace or in the future. */
NPUPROF_API_ int64_t npuprof_ticks_to_ns_(uint64_t ticks)
{
    npuprof_control_rate_ r;
    if (!npuprof_control_find_rate_(&r)) return 0;
    const int64_t distance = (int64_t)(ticks - r.from.ticks);
    const int64_t ns =
        (int64_t)npuprof_scale_(npuprof_control_size_(distance), r.ns, npuprof_max_(r.ticks, 1));
    return r.from_ns + (distance < 0 ? -ns : ns);
}

NPUPROF_API_ uint64_t npuprof_ticks_at_ns_(int64_t ns, uint64_t *error_ticks)
{
    npuprof_control_rate_ r;
    *error_ticks = 0;
    if (!npuprof_control_find_rate_(&r)) return 0;
    const npuprof_header_ *h = npuprof_arena_.header;
    const int64_t distance = ns - r.from_ns;
    const uint64_t size = npuprof_control_size_(distance), in_ns = npuprof_max_(r.ns, 1);
    const uint64_t ticks = npuprof_scale_(size, r.ticks, in_ns);
    /* A ns may be several ticks; the rate is as good as the two anchors it comes from. */
    *error_ticks = npuprof_scale_(1, r.ticks, in_ns) + 1;
    if (!h->clock_hz)
        *error_ticks += r.from.error_ticks +
            npuprof_scale_(size, h->first.error_ticks + r.from.error_ticks + 1, in_ns);
    return distance < 0 ? npuprof_saturating_sub_(r.from.ticks, ticks) : r.from.ticks + ticks;
}

NPUPROF_API_ int64_t npuprof_now_ns(void)
{
    if (!npuprof_record_is_ready_()) return 0;
    const npuprof_header_ *h = npuprof_arena_.header;
    if (h->clock_hz) return npuprof_ticks_to_ns_(npuprof_clock_in_order_());
    NPUPROF_CLOCK_FENCE_();
    const int64_t since = npuprof_os_monotonic_ns_() - h->first.monotonic_ns;
    NPUPROF_CLOCK_FENCE_();
    return h->first.unix_ns + since;
}

/* ---- Start and stop, pause and resume */

NPUPROF_API_ npuprof_result npuprof_start(int level)
{
    if (level < 1 || level > 9)
        return NPUPROF_REFUSE_("npuprof_start: level is not 1 to 9; npuprof_stop() turns recording off");
    if (!npuprof_record_is_ready_()) return NPUPROF_ERR_ARENA_SIZE;
    NPUPROF_STORE_(&npuprof_control_.level, level);
    NPUPROF_STORE_(&npuprof_control_.started, (uint32_t)1);
    (void)npuprof_resume();
    npuprof_control_set_gate_();
    npuprof_control_tell_();
    return NPUPROF_OK;
}

NPUPROF_API_ npuprof_result npuprof_stop(void)
{
    if (!npuprof_record_is_ready_()) return NPUPROF_ERR_ARENA_SIZE;
    NPUPROF_STORE_(&npuprof_control_.level, 0);
    npuprof_control_set_gate_();
    npuprof_control_tell_();
    return NPUPROF_OK;
}

/* Why the entry is made before `paused` is set: npuprof_resume() on another thread reads in `paused` which
   entry to end. */
NPUPROF_API_ npuprof_result npuprof_pause(void)
{
    uint32_t id = NPUPROF_PAUSE_NO_ENTRY_, no = 0;
    if (!npuprof_record_is_ready_()) return NPUPROF_ERR_ARENA_SIZE;
    if (NPUPROF_LOAD_(&npuprof_control_.paused)) return NPUPROF_OK;
    npuprof_pause_entry_ *e = NULL;
    if (npuprof_table_takes_notes_())
        e = (npuprof_pause_entry_ *)(void *)npuprof_table_add_entry_(sizeof *e, &id);
    if (e) e->from = npuprof_clock_in_order_();
    if (!NPUPROF_CAS_(&npuprof_control_.paused, &no, id)) return NPUPROF_OK;
    npuprof_control_set_gate_();
    npuprof_control_tell_();
    if (e) npuprof_table_finish_entry_(&e->head, NPUPROF_ENTRY_PAUSE);
    else npuprof_count_lost_(NPUPROF_LOST_NOTES, 1);
    return e ? NPUPROF_OK : NPUPROF_ERR_TABLE_FULL;
}

NPUPROF_API_ npuprof_result npuprof_resume(void)
{
    if (!npuprof_record_is_ready_()) return NPUPROF_ERR_ARENA_SIZE;
    uint32_t id = NPUPROF_LOAD_ACQUIRE_(&npuprof_control_.paused);
    if (!id || !NPUPROF_CAS_(&npuprof_control_.paused, &id, 0)) return NPUPROF_OK;
    if (id != NPUPROF_PAUSE_NO_ENTRY_) {
        npuprof_pause_entry_ *e = (npuprof_pause_entry_ *)npuprof_table_entry_at_(id);
        NPUPROF_STORE_(&e->to, npuprof_clock_in_order_());
    }
    npuprof_control_set_gate_();
    npuprof_control_tell_();
    return NPUPROF_OK;
}

/* ---- Categories */

/* Copies the words of "a, b" or "-a, -b" into `list` with commas between. *mode: 0 without words, 1 only
   these, -1 all but these. False: a word is empty, the list is too long, or the words are mixed. */
static bool npuprof_control_parse_categories_(const char *spec, char *list, size_t bytes, int *mode)
{
    const char *item;
    size_t length, n = 0;
    *mode = 0;
    while (npuprof_text_next_item_(&spec, &item, &length)) {
        const char *word = item, *end = item + length;
        while (word < end && *word == ' ') word++;
        while (word < end && end[-1] == ' ') end--;
        if (word == end) continue;
        const int sign = *word == '-' ? -1 : 1;
        word += sign < 0;
        if (*mode && *mode != sign) return false;
        *mode = sign;
        length = (size_t)(end - word);
        if (!length || n + (n > 0) + length >= bytes) return false;
        if (n) list[n++] = ',';
        memcpy(list + n, word, length);
        n += length;
    }
    list[n] = 0;
    return true;
}

NPUPROF_API_ npuprof_result npuprof_set_categories(const char *spec)
{
    char words[sizeof npuprof_control_lists_.last[0].words];
    int mode;
    if (!npuprof_record_is_ready_()) return NPUPROF_ERR_ARENA_SIZE;
    if (!npuprof_control_parse_categories_(spec ? spec : "", words, sizeof words, &mode))
        return NPUPROF_ERR_CATEGORIES;
    /* Why each call takes another list: two threads may call at a time. */
    const uint32_t number = (NPUPROF_ADD_(&npuprof_control_lists_.count, 1) + 1) % NPUPROF_CONTROL_LISTS_;
    npuprof_record_list_ *const next = &npuprof_control_lists_.last[number];
    memcpy(next->words, words, strlen(words) + 1);
    NPUPROF_STORE_(&next->mode, mode);
    NPUPROF_STORE_(&next->seen, 0);
    NPUPROF_STORE_RELEASE_(&npuprof_record_categories_, next);
    NPUPROF_STORE_(&npuprof_control_lists_.from[0], 0);
    npuprof_control_advance_generation_();
    return NPUPROF_OK;
}

/* ---- Results */

/* The text of each result, one behind the other. Why no table of pointers: each would be relocated. */
#define NPUPROF_MEMBER_(name, text) char of_##name[sizeof #name ": " text];
#define NPUPROF_MEMBER_TEXT_(name, text) #name ": " text,
static const struct { NPUPROF_RESULTS(NPUPROF_MEMBER_) char none[20]; } npuprof_control_results_ = {
    NPUPROF_RESULTS(NPUPROF_MEMBER_TEXT_) "no such result code" };
#undef NPUPROF_MEMBER_
#undef NPUPROF_MEMBER_TEXT_

/* Why not the same sentence each time for NPUPROF_ERR_ARGUMENT: the one about the argument that this thread
   gave says more. */
NPUPROF_API_ const char *npuprof_result_string(npuprof_result result)
{
    const char *const said = npuprof_os_sentence_(result);
    if (said) return said;
    const char *text = (const char *)&npuprof_control_results_;
    const int n = (unsigned)result < NPUPROF_RESULT_COUNT ? (int)result : NPUPROF_RESULT_COUNT;
    for (int i = 0; i < n; i++) text += strlen(text) + 1;
    return text;
}
