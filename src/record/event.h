#pragma once   /* SPDX-License-Identifier: MIT */
#include "../public/macros.h"
#include "../format/layouts.h"
#include "../format/arena.h"
#include "../arena/state.h"
#include "../clock/host.h"
#include "../arena/table.h"
#include "../arena/slots.h"
#include "enter.h"
#include "span.h"
#include "begin.h"

/* Events: one stamp and one value. Instants, counters and flows; the two ends of an async span;
   npuprof_span(), whose times the caller knows. Fast and slow paths as in begin.h. Words: those of span.h
   and begin.h. */

/* ---- Events of a macro */

static NPUPROF_SLOW_ void npuprof_record_event_slow_(npuprof_site_ *site, npuprof_keys_ *keys,
                                                     uint64_t value, npuprof_args args)
{
    npuprof_slot_ *slot = npuprof_record_enter_();
    if (!slot) {
        (void)npuprof_record_count_no_context_();
        return;
    }
    bool watched = false;
    if (npuprof_record_is_resolved_(site)) {
        const npuprof_record_new_ r = npuprof_record_of_(value, keys, args);
        const uint32_t id = (uint32_t)NPUPROF_LOAD_(&site->id);
        npuprof_record_emit_(slot, id, npuprof_clock_(), &r);
        npuprof_record_make_keys_fast_(site, keys);
        watched = NPUPROF_RECORD_WATCHES_() && npuprof_record_is_watched_(id);
    }
    npuprof_record_leave_(slot);
    if (watched) npuprof_record_hooks_.ends(NPUPROF_RECORD_WATCHED_, 0);
}

NPUPROF_API_ void npuprof_event_args_now_(npuprof_site_ *site, npuprof_keys_ *keys, uint64_t value,
                                          npuprof_args args)
{
    npuprof_slot_ *slot = npuprof_slot_mine_();
    const uint32_t known = NPUPROF_LOAD_ACQUIRE_(&keys->fast);
    npuprof_unit_ *end = NULL;
    if (NPUPROF_LIKELY_(!npuprof_differ_(known, &npuprof_arena_fast_) &&
                        !npuprof_test_and_set_(&slot->busy))) {
        const uint64_t now = npuprof_clock_fast_();
        end = npuprof_record_write_args_fast_(slot, keys, args, now);
        if (end) {
            const uint64_t w0 = now << NPUPROF_ID_BITS_ | NPUPROF_LOAD_PLAIN_(&site->id);
            npuprof_record_publish_(slot->cursor, end, w0, value);
            slot->cursor = end;
        }
        npuprof_record_leave_(slot);
    }
    if (NPUPROF_UNLIKELY_(!end)) npuprof_record_event_slow_(site, keys, value, args);
}

static NPUPROF_SLOW_ void npuprof_record_event_now_slow_(npuprof_site_ *site, uint64_t value)
{
    npuprof_record_event_slow_(site, NULL, value, PROF_NO_ARGS);
}

NPUPROF_API_ void npuprof_event_now_(npuprof_site_ *site, uint64_t value)
{
    npuprof_slot_ *slot = npuprof_slot_mine_();
    const uint32_t known = NPUPROF_LOAD_ACQUIRE_(&site->generation);
    if (NPUPROF_UNLIKELY_(npuprof_differ_(known, &npuprof_arena_fast_) ||
                          npuprof_test_and_set_(&slot->busy))) {
        npuprof_record_event_now_slow_(site, value);
        return;
    }
    npuprof_unit_ *const u = slot->cursor;
    const uint64_t now = npuprof_clock_fast_();
    if (NPUPROF_UNLIKELY_(u == slot->end || now > slot->deadline)) {
        npuprof_record_leave_(slot);
        npuprof_record_event_now_slow_(site, value);
        return;
    }
    npuprof_record_publish_(u, u + 1, now << NPUPROF_ID_BITS_ | NPUPROF_LOAD_PLAIN_(&site->id), value);
    slot->cursor = u + 1;
    npuprof_record_leave_(slot);
}

/* ---- Events of a function: the name comes at run time */

static void npuprof_record_named_event_(uint32_t kind, const char *category, const char *name,
                                        const npuprof_record_new_ *r)
{
    npuprof_slot_ *slot = npuprof_record_enter_();
    if (!slot) {
        (void)npuprof_record_count_no_context_();
        return;
    }
    const uint32_t id = npuprof_record_function_id_(kind, category, name);
    if (id) npuprof_record_emit_(slot, id, npuprof_clock_(), r);
    npuprof_record_leave_(slot);
}

#define NPUPROF_GATE_IS_CLOSED_() (!NPUPROF_OPEN_(1))

static void npuprof_record_emit_named_(uint32_t kind, const char *category, const char *name,
                                       uint64_t value, npuprof_args args)
{
    if (NPUPROF_GATE_IS_CLOSED_()) return;
    const npuprof_record_new_ r = npuprof_record_of_(value, NULL, args);
    npuprof_record_named_event_(kind, category, name, &r);
}

NPUPROF_API_ void npuprof_async_begin(const char *category, const char *name, uint64_t id)
{
    npuprof_record_emit_named_(NPUPROF_KIND_ASYNC_BEGIN, category, name, id, PROF_NO_ARGS);
}

NPUPROF_API_ void npuprof_instant(const char *category, const char *name, npuprof_args args)
{
    npuprof_record_emit_named_(NPUPROF_KIND_INSTANT, category, name, 0, args);
}

NPUPROF_API_ void npuprof_counter_int(const char *name, int64_t value)
{
    npuprof_record_emit_named_(NPUPROF_KIND_COUNTER_INT, NULL, name, (uint64_t)value, PROF_NO_ARGS);
}

NPUPROF_API_ void npuprof_counter_real(const char *name, double value)
{
    const uint64_t bits = npuprof_real_bits_(value);
    npuprof_record_emit_named_(NPUPROF_KIND_COUNTER_REAL, NULL, name, bits, PROF_NO_ARGS);
}

/* Recorded while the gate is closed, too, if the thread ever recorded. Why: its beginning may be in the
   trace. */
NPUPROF_API_ void npuprof_async_end(uint64_t id)
{
    static npuprof_site_ site = { 0, 0, NPUPROF_KIND_ASYNC_END, "", NULL, NULL, 0 };
    if (NPUPROF_GATE_IS_CLOSED_() && npuprof_slot_mine_() == &npuprof_slot_none_) return;
    npuprof_event_now_(&site, id);
}

NPUPROF_API_ void npuprof_span(const char *track, const char *category, const char *name, int64_t start_ns,
                               int64_t end_ns, npuprof_args args)
{
    if (NPUPROF_GATE_IS_CLOSED_()) return;
    if (!npuprof_record_is_ready_()) {
        (void)npuprof_record_count_no_context_();
        return;
    }
    const uint32_t track_id = npuprof_record_string_id_(track ? track : "");
    if (!track_id) {
        npuprof_count_lost_(NPUPROF_LOST_NAMES, 1);
        return;
    }
    npuprof_record_new_ r = npuprof_record_of_((uint64_t)start_ns, NULL, args);
    npuprof_unit_ extra;
    extra.w0 = (uint64_t)track_id << NPUPROF_ID_BITS_ | NPUPROF_CONTROL_FINISHED_;
    extra.w1 = (uint64_t)end_ns;
    r.extra = &extra;
    r.extra_count = 1;
    npuprof_record_named_event_(NPUPROF_KIND_FINISHED, category, name, &r);
}
