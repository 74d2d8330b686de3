#pragma once   /* SPDX-License-Identifier: MIT */
#include "../public/hot.h"
#include "../public/types.h"
#include "../format/layouts.h"
#include "../numbers/text.h"
#include "../arena/state.h"
#include "../os/common.h"
#include "../arena/table.h"
#include "../arena/thread.h"
#include "../arena/slots.h"
#include "attach.h"

#include <string.h>

/* How a record begins, whatever it is: the library is ready, the thread has a slot, the call site is known.
   Between npuprof_record_enter_() and npuprof_record_leave_() the slot is `busy`: a signal handler that
   comes in between records into a slot of its own. Words: slot.busy (state.h), and of a call site:
     id           its number in the table
     generation   of the arena and categories for which id is right; with bit 31 set, the site is not to be
                  recorded. Stored with release after id, read with acquire before it
   This part does not know what a record looks like. */

/* What control/ hands down when capture control gets its first condition; NULL until then. `begins` is stored
   last, with release, and who uses one of them has loaded it with acquire.
   begins   as which kind a PROF_RECORD or PROF_INFERENCE is to be recorded; NPUPROF_KIND_NONE: not at all
   ends     its end. ticks: how long it took, if it was recorded, else UINT64_MAX
   moved    a thread has got a new chunk. Its slot is busy, and it may be in a signal handler
            Beside a kind: NPUPROF_RECORD_WATCHED_ of what is watched
   answer   to a tool that attaches (attach.h): from the set-up on, with release */
static struct {
    uint32_t (*begins)(uint32_t kind);
    void (*ends)(uint32_t kind, uint64_t ticks);
    void (*moved)(void);
    NPUPROF_ATTACH_(void (*answer)(void);)
} npuprof_record_hooks_;

enum { NPUPROF_RECORD_WATCHED_ = 0x100, NPUPROF_RECORD_KIND_ = 0xFF };

/* What capture control is told of: spans and instants of one name, or of a category. A call site of it never
   gets the fast path, so all others pay nothing. Handed down by control/, `text` last, with release; then the
   generation of call sites advances. */
static struct {
    uint32_t text;                 /* the string's id in the table; 0: nothing is watched */
    bool is_category, spans, instants;
} npuprof_record_watch_;

#ifdef NPUPROF_RECORD_ONLY         /* it refuses capture control */
#define NPUPROF_RECORD_WATCHES_() false
#define NPUPROF_RECORD_BEGINS_() NULL
#else
#define NPUPROF_RECORD_WATCHES_() NPUPROF_UNLIKELY_(NPUPROF_LOAD_ACQUIRE_(&npuprof_record_watch_.text) != 0)
#define NPUPROF_RECORD_BEGINS_() NPUPROF_LOAD_ACQUIRE_(&npuprof_record_hooks_.begins)
#endif

/* A list of categories. */
typedef struct npuprof_record_list_ {
    int mode;                      /* 0 all, 1 only these, -1 all but these. Atomic */
    char words[256];               /* with commas between */
    uint32_t seen;                 /* bit n: number n of them occurred, n < 32. Atomic */
} npuprof_record_list_;

/* The one that holds: control/ hands it down with release when it is written. NULL: all are recorded. */
static npuprof_record_list_ *npuprof_record_categories_;

/* 0 not yet, 1 being set up, 2 ready, 3 a child of fork whose arena is still the parent's mapped file. Handed
   down by process/setup.h and fork.h; stored with release, read by all with acquire. */
static uint32_t npuprof_record_setup_;

/* Sets everything up if that has not been done. False: it is not possible, or another thread is at it. */
static bool npuprof_record_is_ready_(void)
{
    if (NPUPROF_LOAD_ACQUIRE_(&npuprof_record_setup_) == 2) return true;
    (void)npuprof_opens_(1);
    return NPUPROF_LOAD_ACQUIRE_(&npuprof_record_setup_) == 2;
}

NPUPROF_API_ NPUPROF_COLD_ void npuprof_count_lost_(unsigned cause, uint64_t count)
{
    uint64_t *lost = NULL;
    if (npuprof_record_is_ready_() || npuprof_arena_has_leader_()) lost = NPUPROF_LOAD_(&npuprof_lost_);
    if (lost) NPUPROF_ADD_(&lost[cause], count);
}

/* Gives the calling thread a slot. False: there is none. Why the signals are held: a handler that records
   would take another. */
NPUPROF_COLD_ static bool npuprof_record_start_thread_(void)
{
    npuprof_os_signals_ held;
    const int error_before = errno;
    if (!npuprof_record_is_ready_()) return false;
    /* Why asked first: a thread that gets no slot pays for this with each record. */
    if (!NPUPROF_LOAD_(&npuprof_arena_.slots_free) && npuprof_arena_is_full_()) return false;
    npuprof_os_hold_signals_(&held);
    npuprof_slot_ *const slot = npuprof_slot_take_(NULL, false, &held);
    /* Why a look: while it waited for a chunk, with its signals let through, a handler recorded and gave the
       thread a slot. */
    bool taken = slot && npuprof_slot_mine_() == &npuprof_slot_none_;
    if (taken) {
        slot->by_hand_count = npuprof_slot_skipped_();
        taken = npuprof_slot_become_(slot);
    }
    if (taken) npuprof_slot_clear_skipped_();
    else if (slot) npuprof_slot_give_back_(slot);
    npuprof_os_release_signals_(&held);
    errno = error_before;
    return npuprof_slot_mine_() != &npuprof_slot_none_;
}

#if NPUPROF_ATTACHES_
#define NPUPROF_RECORD_IS_ASKED_() (NPUPROF_LOAD_(&npuprof_record_attach_.asked) != 0)

/* The thread came to a mark, or to a new chunk, while a tool is attached or asks. */
NPUPROF_COLD_ static NPUPROF_NOINLINE_ void npuprof_record_answer_(void)
{
    void (*const answer)(void) = NPUPROF_LOAD_ACQUIRE_(&npuprof_record_hooks_.answer);
    if (answer) answer();
}

/* A thread wanted a new chunk: is the tool still there? Why seldom in a full arena: there each record comes
   here. */
static inline void npuprof_record_look_at_lease_(const npuprof_slot_ *slot, bool has_chunk)
{
    const bool looks = has_chunk || NPUPROF_LOAD_(&slot->head.lost) % 1024 == 0;
    if (NPUPROF_LOAD_(&npuprof_record_attach_.state) && looks) npuprof_record_answer_();
}

#else
#define NPUPROF_RECORD_IS_ASKED_() false
#endif

/* A thread wanted a new chunk, and has got it or not: time for capture control to look whether its phase is
   over, and whether an attached tool is still there. */
NPUPROF_COLD_ static NPUPROF_NOINLINE_ void npuprof_record_look_around_(const npuprof_slot_ *slot,
                                                                        bool has_chunk)
{
    (void)slot, (void)has_chunk;
    if (NPUPROF_RECORD_BEGINS_()) npuprof_record_hooks_.moved();
    NPUPROF_ATTACH_(npuprof_record_look_at_lease_(slot, has_chunk);)
}

/* So many spans may be open in a slot: a fresh chunk holds them, two units each, and one more record. */
static inline uint32_t npuprof_record_depth_(void) { return (npuprof_arena_.units + 1) / 2 - 2; }

static inline bool npuprof_record_is_deep_(const npuprof_slot_ *slot)
{
    return (uint32_t)(slot->top - slot->open) >= npuprof_record_depth_();
}

/* Counts a span or event that did not fit into the slot's chunk, for which no other was had. Why in the slot:
   threads in a full arena need not share a counter. */
NPUPROF_COLD_ static void npuprof_record_count_full_(npuprof_slot_ *slot)
{
    const npuprof_arena_state_ *const s = &npuprof_arena_;
    npuprof_record_look_around_(slot, false);
    if (npuprof_record_is_deep_(slot)) npuprof_count_lost_(NPUPROF_LOST_DEPTH, 1);
    else if (s->when_full == NPUPROF_KEEP_NEWEST && NPUPROF_LOAD_(&s->frozen))
        npuprof_count_lost_(NPUPROF_LOST_READING, 1);
    else NPUPROF_ADD_(&slot->head.lost, 1);      /* Why atomic: npuprof_clear() may set it to 0 */
}

/* The slot to record into: the thread's, or in a signal handler that interrupted a record the first nested
   one that is not busy. NULL: there is none, and nothing was counted. */
static NPUPROF_SLOW_ npuprof_slot_ *npuprof_record_enter_slow_(void)
{
    NPUPROF_ATTACH_(if (NPUPROF_RECORD_IS_ASKED_()) npuprof_record_answer_();)
    if (npuprof_slot_mine_() == &npuprof_slot_none_ && !npuprof_record_start_thread_()) return NULL;
    npuprof_slot_ *slot = npuprof_slot_mine_();
    for (int contexts = 1; NPUPROF_LOAD_(&slot->busy); contexts++) {
        if (contexts == NPUPROF_SLOT_CONTEXTS_) return NULL;
        if (!slot->nested) {
            npuprof_os_signals_ held;
            npuprof_os_hold_signals_(&held);
            if (!slot->nested) slot->nested = npuprof_slot_take_(slot, true, &held);
            npuprof_os_release_signals_(&held);
        }
        if (!slot->nested) return NULL;
        slot = slot->nested;
    }
    return slot;
}

/* The slot to record into, busy from now on. NULL: there is none, and nothing was counted. */
static inline npuprof_slot_ *npuprof_record_enter_(void)
{
    npuprof_slot_ *slot = npuprof_slot_mine_();
    if (NPUPROF_UNLIKELY_(NPUPROF_RECORD_IS_ASKED_() || npuprof_test_and_set_(&slot->busy))) {
        slot = npuprof_record_enter_slow_();
        if (!slot) return NULL;
        NPUPROF_STORE_(&slot->busy, 1);
        NPUPROF_SIGNAL_FENCE_();
    }
    return slot;
}

/* Why always inline: it is smaller than a call. */
NPUPROF_ALWAYS_INLINE_ void npuprof_record_leave_(npuprof_slot_ *slot)
{
    NPUPROF_SIGNAL_FENCE_();
    NPUPROF_STORE_(&slot->busy, 0);
}

/* ---- Call sites */

/* Does this list let the category pass? Marks which of its words occurred. */
static NPUPROF_SLOW_ bool npuprof_record_list_passes_(npuprof_record_list_ *list, const char *category)
{
    const size_t length = category ? strlen(category) : 0;
    const char *at = list->words, *word;
    size_t bytes;
    for (unsigned n = 0; npuprof_text_next_item_(&at, &word, &bytes); n++) {
        if (bytes != length || memcmp(word, category, bytes) != 0) continue;
        const uint32_t seen = NPUPROF_LOAD_(&list->seen);
        if (n < 32) NPUPROF_STORE_(&list->seen, seen | (uint32_t)1 << n);
        return NPUPROF_LOAD_(&list->mode) > 0;
    }
    return NPUPROF_LOAD_(&list->mode) < 0;
}

/* Is this category to be recorded? */
static inline bool npuprof_record_category_passes_(const char *category)
{
    npuprof_record_list_ *const list = NPUPROF_LOAD_ACQUIRE_(&npuprof_record_categories_);
    return !list || NPUPROF_LOAD_(&list->mode) == 0 || npuprof_record_list_passes_(list, category);
}

/* Is the call site of that number watched? Asked only while something is. */
NPUPROF_COLD_ static NPUPROF_NOINLINE_ bool npuprof_record_is_watched_(uint32_t number)
{
    const uint32_t text = NPUPROF_LOAD_ACQUIRE_(&npuprof_record_watch_.text);
    const npuprof_site_entry_ *const e = npuprof_table_site_at_(number);
    if ((npuprof_record_watch_.is_category ? e->category : e->name) != text) return false;
    const uint32_t kind = e->head.a & NPUPROF_RECORD_KIND_;
    return npuprof_kind_nests_(kind) ? npuprof_record_watch_.spans
                                     : kind == NPUPROF_KIND_INSTANT && npuprof_record_watch_.instants;
}

/* Makes a call site known for this arena and these categories. False: it is not to be recorded, or the
   table is full, which is counted. */
static NPUPROF_SLOW_ bool npuprof_record_resolve_site_(npuprof_site_ *site)
{
    /* Why acquire: the categories that are looked at below must not be older than the generation. */
    const uint32_t generation = NPUPROF_LOAD_ACQUIRE_(&npuprof_arena_generation_);
    const uint32_t muted = generation | 0x80000000u;
    if (NPUPROF_LOAD_ACQUIRE_(&site->generation) == muted) return false;
    const char *const category = NPUPROF_LOAD_ACQUIRE_(&site->category);
    /* Why not asked of an end: its beginning, which has the category, was. */
    const bool passes = site->kind == NPUPROF_KIND_ASYNC_END || npuprof_record_category_passes_(category);
    if (passes) {
        const char *const name = NPUPROF_LOAD_(&site->name);
        const uint32_t id = npuprof_table_intern_site_number_(site->kind, category, name, site->file,
                                                                site->line);
        if (!id) {
            npuprof_count_lost_(NPUPROF_LOST_NAMES, 1);
            return false;
        }
        NPUPROF_STORE_(&site->id, (npuprof_site_id_)id);
        if (NPUPROF_RECORD_WATCHES_() && npuprof_record_is_watched_(id)) return true;
    }
    NPUPROF_STORE_RELEASE_(&site->generation, passes ? generation : muted);
    return passes;
}

static inline bool npuprof_record_is_resolved_(npuprof_site_ *site)
{
    const uint32_t known = NPUPROF_LOAD_ACQUIRE_(&site->generation);
    const bool current = known == NPUPROF_LOAD_(&npuprof_arena_generation_);
    return NPUPROF_LIKELY_(current) || npuprof_record_resolve_site_(site);
}

/* The number of a call site whose name came at run time. 0: it is not to be recorded, or the table is full,
   which is counted. */
static uint32_t npuprof_record_resolve_name_(uint32_t kind, const char *category, const char *name)
{
    /* A memory record has its pool's name where others have a category. */
    if (!npuprof_record_category_passes_(kind == NPUPROF_KIND_MEMORY ? "memory" : category)) return 0;
    const uint32_t id = npuprof_table_intern_site_number_(kind, category, name, NULL, 0);
    if (!id) npuprof_count_lost_(NPUPROF_LOST_NAMES, 1);
    return id;
}
