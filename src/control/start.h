#pragma once   /* SPDX-License-Identifier: MIT */
#include "../public/macros.h"
#include "../numbers/wide.h"
#include "../format/arena.h"
#include "../arena/state.h"
#include "../os/common.h"
#include "../clock/host.h"
#include "../arena/table.h"
#include "../arena/anchors.h"
#include "../arena/slots.h"
#include "../record/enter.h"

/* Call sites take the fast path while the gate is open and the clock is one instruction: their generation
   then equals the fast one. Why again: the gate and the generation may be set by two threads at a time. */
static void npuprof_control_set_fast_path_(void)
{
    for (;;) {
        const int gate = NPUPROF_LOAD_SEQ_(&npuprof_gate_);
        const uint32_t generation = NPUPROF_LOAD_SEQ_(&npuprof_generation_);
        const bool fast = gate >= 1 && NPUPROF_CLOCK_IS_FAST_();
        NPUPROF_STORE_SEQ_(&npuprof_fast_generation_, fast ? generation : UINT32_MAX);
        if (gate == NPUPROF_LOAD_SEQ_(&npuprof_gate_)
            && generation == NPUPROF_LOAD_SEQ_(&npuprof_generation_))
            return;
    }
}

/* Call sites look their category and their id up again. */
static void npuprof_control_advance_generation_(void)
{
    NPUPROF_STORE_SEQ_(&npuprof_generation_, (npuprof_generation_ + 1) & 0x7FFFFFFFu);
    npuprof_control_set_fast_path_();
}

static int npuprof_control_level_(void)
{
    return NPUPROF_LOAD_SEQ_(&npuprof_s_.paused) ? 0 : NPUPROF_LOAD_SEQ_(&npuprof_s_.level);
}

static void npuprof_control_set_gate_(void)
{
    for (;;) {
        const int level = npuprof_control_level_();
        NPUPROF_STORE_SEQ_(&npuprof_gate_, level ? level : INT_MIN);
        /* Why again: two threads may set it at a time. */
        if (level == npuprof_control_level_()) break;
    }
    npuprof_control_set_fast_path_();
}

NPUPROF_API_ uint64_t npuprof_ticks_(void) { return npuprof_clock_(); }

/* ns per 2^32 ticks, by the first anchor and now. */
NPUPROF_API_ uint64_t npuprof_ns_per_4g_ticks_(void)
{
    if (!npuprof_record_is_ready_()) return 0;
    const npuprof_header_ *h = npuprof_s_.header;
    if (h->clock_hz) return npuprof_scale_(1000000000u, (uint64_t)1 << 32, h->clock_hz);
    npuprof_host_anchor_ now;
    npuprof_arena_read_anchor_(&now);
    const uint64_t ticks = now.ticks - h->first.ticks;
    return ticks ? npuprof_scale_((uint64_t)(now.monotonic_ns - h->first.monotonic_ns), (uint64_t)1 << 32,
                                  ticks) : (uint64_t)1 << 32;
}

NPUPROF_API_ int64_t npuprof_ticks_to_ns_(uint64_t ticks)
{
    if (!npuprof_record_is_ready_()) return 0;
    const npuprof_header_ *h = npuprof_s_.header;
    npuprof_host_anchor_ now = h->first;
    if (!h->clock_hz) npuprof_arena_read_anchor_(&now);
    const int64_t distance = (int64_t)(ticks - now.ticks);
    const uint64_t size = distance < 0 ? 0 - (uint64_t)distance : (uint64_t)distance;
    uint64_t ns;
    if (h->clock_hz) {
        ns = npuprof_scale_(size, 1000000000u, h->clock_hz);
    } else {
        const uint64_t ticks_so_far = now.ticks - h->first.ticks;
        ns = npuprof_scale_(size, (uint64_t)(now.monotonic_ns - h->first.monotonic_ns),
                            ticks_so_far ? ticks_so_far : 1);
    }
    return h->first.unix_ns + (now.monotonic_ns - h->first.monotonic_ns)
        + (distance < 0 ? -(int64_t)ns : (int64_t)ns);
}

NPUPROF_API_ int64_t npuprof_now_ns(void)
{
    if (!npuprof_record_is_ready_()) return 0;
    const npuprof_header_ *h = npuprof_s_.header;
    if (h->clock_hz) return npuprof_ticks_to_ns_(npuprof_clock_());
    return h->first.unix_ns + (npuprof_os_monotonic_ns_() - h->first.monotonic_ns);
}

NPUPROF_API_ npuprof_result npuprof_start(int level)
{
    if (level < 1 || level > 9)
        return NPUPROF_REFUSE_("npuprof_start: level is not 1 to 9; npuprof_stop() turns recording off");
    if (!npuprof_record_is_ready_()) return NPUPROF_ERR_ARENA_SIZE;
    NPUPROF_STORE_(&npuprof_s_.level, level);
    npuprof_s_.started = true;
    (void)npuprof_resume();
    npuprof_control_set_gate_();
    return NPUPROF_OK;
}

NPUPROF_API_ npuprof_result npuprof_stop(void)
{
    if (!npuprof_record_is_ready_()) return NPUPROF_ERR_ARENA_SIZE;
    NPUPROF_STORE_(&npuprof_s_.level, 0);
    npuprof_control_set_gate_();
    return NPUPROF_OK;
}

/* Why the entry first: whoever resumes, even at once, finds in `paused` which one is to end. */
NPUPROF_API_ npuprof_result npuprof_pause(void)
{
    uint32_t id = NPUPROF_PAUSE_NO_ENTRY_, no = 0;
    if (!npuprof_record_is_ready_()) return NPUPROF_ERR_ARENA_SIZE;
    if (NPUPROF_LOAD_(&npuprof_s_.paused)) return NPUPROF_OK;
    npuprof_pause_entry_ *e = (npuprof_pause_entry_ *)(void *)npuprof_table_add_entry_(sizeof *e, &id);
    if (e) e->from = npuprof_clock_();
    if (!NPUPROF_CAS_(&npuprof_s_.paused, &no, id)) return NPUPROF_OK;
    npuprof_control_set_gate_();
    if (e) npuprof_table_finish_entry_(&e->head, NPUPROF_ENTRY_PAUSE);
    else npuprof_count_lost_(NPUPROF_LOST_NOTES, 1);
    return e ? NPUPROF_OK : NPUPROF_ERR_TABLE_FULL;
}

NPUPROF_API_ npuprof_result npuprof_resume(void)
{
    if (!npuprof_record_is_ready_()) return NPUPROF_ERR_ARENA_SIZE;
    uint32_t id = NPUPROF_LOAD_ACQUIRE_(&npuprof_s_.paused);
    if (!id || !NPUPROF_CAS_(&npuprof_s_.paused, &id, 0)) return NPUPROF_OK;
    if (id != NPUPROF_PAUSE_NO_ENTRY_) {
        npuprof_pause_entry_ *e = (npuprof_pause_entry_ *)npuprof_table_entry_at_(id);
        NPUPROF_STORE_(&e->to, npuprof_clock_());
    }
    npuprof_control_set_gate_();
    return NPUPROF_OK;
}
