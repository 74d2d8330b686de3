#pragma once   /* SPDX-License-Identifier: MIT */
#include "../public/hot.h"
#include "../arena/state.h"
#include "../os/common.h"
#include "../clock/host.h"
#include "../arena/anchors.h"
#include "../arena/thread.h"
#include "../record/attach.h"
#include "start.h"
#include "lock.h"

/* What the program does when a tool attaches: begins and ends a recording at a mark, in the thread that comes
   to it (record/attach.h says how). That may be a signal handler, or hold any lock: so nothing here waits,
   calls the program, or takes a lock that another thread has. What cannot be done now is done at a later
   mark.

   A tool that dies tells nobody. So it changes `beat` each second, and a thread that takes a new chunk looks:
   if it is the same for so long, the recording ends.

   Data: npuprof_control_attach_, of the thread in `answering`, which takes that by CAS from 0; and
   npuprof_control_.attached, the level that the tool asked for. A child of fork is not attached. */

#if NPUPROF_ATTACHES_
enum { NPUPROF_ATTACH_LEASE_S_ = 5 };

static struct {
    uintptr_t answering;           /* the thread that answers, 0: none */
    uint32_t beat;                 /* when it changed last, and to what */
    int64_t beat_ns;
} npuprof_control_attach_;

/* The recording is from clear_ticks to `until`: the gate is open all that time, and a little longer. */
static void npuprof_control_attach_set_(int level)
{
    if (!level) NPUPROF_STORE_(&npuprof_record_attach_.until, npuprof_clock_in_order_());
    NPUPROF_STORE_SEQ_(&npuprof_control_.attached, level);
    npuprof_control_set_gate_();
    if (level) NPUPROF_STORE_(&npuprof_arena_.header->clear_ticks, npuprof_clock_in_order_());
    npuprof_arena_renew_last_anchor_();
    NPUPROF_STORE_RELEASE_(&npuprof_record_attach_.state, (uint32_t)(level > 0));
}

/* Forgets what was recorded before, and begins. False: a writer has the lock. */
static bool npuprof_control_attach_begin_(void)
{
    const uint32_t level = NPUPROF_LOAD_(&npuprof_record_attach_.level);
    if (npuprof_control_clear_before_(0, false) != NPUPROF_OK) return false;
    npuprof_control_attach_.beat_ns = npuprof_os_monotonic_ns_();
    npuprof_control_attach_set_(level >= 1 && level <= 9 ? (int)level : 1);
    return true;
}

/* Has the tool not been heard of for too long? */
static bool npuprof_control_attach_is_over_(void)
{
    const uint32_t beat = NPUPROF_LOAD_(&npuprof_record_attach_.beat);
    const int64_t now = npuprof_os_monotonic_ns_();
    if (beat == npuprof_control_attach_.beat)
        return now - npuprof_control_attach_.beat_ns > NPUPROF_ATTACH_LEASE_S_ * INT64_C(1000000000);
    npuprof_control_attach_.beat = beat;
    npuprof_control_attach_.beat_ns = now;
    return false;
}

/* npuprof_record_hooks_.answer. */
static void npuprof_control_answer_(void)
{
    npuprof_record_attach_words_ *const w = &npuprof_record_attach_;
    uintptr_t nobody = 0;
    if (!NPUPROF_CAS_(&npuprof_control_attach_.answering, &nobody, npuprof_slot_me_())) return;
    const uint32_t asked = NPUPROF_LOAD_ACQUIRE_(&w->asked);
    bool done = asked != 0;
    if (NPUPROF_LOAD_(&w->state) && (asked || npuprof_control_attach_is_over_()))
        npuprof_control_attach_set_(0);
    if (asked == NPUPROF_ASKED_START_ && !NPUPROF_LOAD_(&w->own)) done = npuprof_control_attach_begin_();
    if (done) {
        npuprof_control_set_gate_();
        NPUPROF_STORE_(&w->asked, 0);
        NPUPROF_STORE_RELEASE_(&w->answers, w->answers + 1);
    }
    NPUPROF_STORE_RELEASE_(&npuprof_control_attach_.answering, (uintptr_t)0);
}

/* In the child of a fork. */
static void npuprof_control_attach_forget_(void)
{
    npuprof_record_attach_words_ *const w = &npuprof_record_attach_;
    npuprof_control_attach_.answering = 0;
    npuprof_control_.attached = 0;
    w->asked = w->tool = w->state = 0;
}

#endif /* NPUPROF_ATTACHES_ */
