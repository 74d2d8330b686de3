/* before_run.h - the library as it is before each run. Include after scenarios.h.
   SPDX-License-Identifier: MIT */
#ifndef BEFORE_RUN_H
#define BEFORE_RUN_H

/* The library as it is before a run. */
typedef struct library {
    npuprof_arena_state_ state;
    npuprof_slot_ no_slot;
    void *categories;
    unsigned char control[sizeof npuprof_control_], lists[sizeof npuprof_control_lists_];
    unsigned char stream[sizeof npuprof_stream_];
} library;
static library first, fresh;           /* at the start of the program; before a run */
static uint64_t arena[1 << 14], fresh_arena[1 << 14];
static size_t arena_bytes;

static void keep(library *l)
{
    l->state = npuprof_arena_;
    l->no_slot = npuprof_slot_none_;
    memcpy(&l->categories, &npuprof_record_categories_, sizeof l->categories);
    memcpy(l->lists, &npuprof_control_lists_, sizeof l->lists);
    memcpy(l->control, &npuprof_control_, sizeof l->control);
    memcpy(l->stream, &npuprof_stream_, sizeof l->stream);
}

static void restore(const library *l)
{
    npuprof_arena_ = l->state;
    npuprof_slot_none_ = l->no_slot;
    memcpy(&npuprof_record_categories_, &l->categories, sizeof l->categories);
    memcpy(&npuprof_control_lists_, l->lists, sizeof l->lists);
    memcpy(&npuprof_control_, l->control, sizeof l->control);
    memcpy(&npuprof_stream_, l->stream, sizeof l->stream);
    fiber_load_locals(&the.fiber[FIBERS]);
}

/* An arena of so many chunks. grows: one whose table does not lie in its first part. */
static void set_up(int when_full, uint32_t chunks, bool grows)
{
    policy = when_full;
    for (arena_bytes = grows ? 16384 : 2048; arena_bytes <= sizeof arena; arena_bytes += 64) {
        const npuprof_desc desc = { .arena = arena, .arena_bytes = arena_bytes, .when_full = when_full,
                                    .sink = { put, &stream } };
        restore(&first);
        memset(arena, 0, sizeof arena);
        npuprof_gate_ = INT_MIN;
        if (npuprof_init(&desc) != NPUPROF_OK) abort();
        if (npuprof_arena_.header->chunk_count >= chunks) break;
    }
    if (grows) npuprof_arena_.header->chunk_count = chunks;      /* so that they run out */
    npuprof_start(1);
    keep(&fresh);
    memcpy(fresh_arena, arena, arena_bytes);
}

static void before_run(const scenario *sc)
{
    memset(&done, 0, sizeof done);
    npuprof_read_end(&taken.cursor);       /* of a run that failed */
    memset(&taken, 0, sizeof taken);
    pages_clear();
    stream.count = 0;
    stream.cut = has_image = false;
    in_sink = 0;
    woken_at = 0;
    slow = (sc->flags & SLOW) != 0;
    most_naps = slow ? 500000 : MOST_NAPS;
    unfair = (sc->flags & UNFAIR) != 0;
    the.handlers = (sc->flags & HANDLERS) != 0;
    restore(&fresh);
    memcpy(arena, fresh_arena, arena_bytes);
    npuprof_control_advance_generation_();
    npuprof_control_set_gate_();
}

#endif /* BEFORE_RUN_H */
