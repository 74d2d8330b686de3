#pragma once   /* SPDX-License-Identifier: MIT */
#include "../public/compiler.h"
#include "../numbers/hash.h"
#include "../format/arena.h"
#include "state.h"
#include "../os/common.h"
#include "../clock/host.h"

/* Host anchors: the ticks of the trace and the system's clocks, read together. A reader computes from the
   first and the last one how long a tick is. The last one is stored in two places by turns, so one of them
   is whole whenever the process dies. Words:
     header.last[2]       written by the thread that has set keeping_time, each word with release
     header.last_used     number of renewals, stored with release after that; it says which is the newest
     keeping_time         1 while a thread renews; CAS from 0, back to 0 with release
   This part does not know what is computed from the anchors. */

/* The best of four readings: the one that took the fewest ticks. */
static void npuprof_arena_read_anchor_(npuprof_host_anchor_ *best)
{
    uint64_t width = UINT64_MAX;
    for (int i = 0; i < 4; i++) {
        npuprof_host_anchor_ a;
        const uint64_t begin = npuprof_clock_in_order_();
        a.monotonic_ns = npuprof_os_monotonic_ns_();
        const uint64_t end = npuprof_clock_in_order_();
        npuprof_os_clocks_(&a);
        const uint64_t all = npuprof_clock_in_order_() - begin;
        a.ticks = begin + (end - begin) / 2;
        a.error_ticks = (end - begin + 1) / 2;
        if (npuprof_clock_source_ == NPUPROF_CLOCK_MONOTONIC) {
            a.ticks = (uint64_t)a.monotonic_ns;
            a.error_ticks = 0;
        }
        if (all < width) {
            width = all;
            *best = a;
        }
    }
}

/* The newest of the last ones. It may be renewed while the caller reads it. */
static const npuprof_host_anchor_ *npuprof_arena_last_anchor_(const npuprof_header_ *h)
{
    return &h->last[NPUPROF_LOAD_ACQUIRE_(&h->last_used) & 1];
}

/* A whole copy of it: if last_used is the same before and after, the anchor was not being written
   meanwhile. Why last_used counts: after two renewals it would else be the same again. Why each word with
   acquire: so they are read between the two looks at last_used. */
static npuprof_host_anchor_ npuprof_arena_copy_last_anchor_(const npuprof_header_ *h)
{
    npuprof_host_anchor_ a;
    uint32_t used = NPUPROF_LOAD_ACQUIRE_(&h->last_used);
    for (int tries = 0; tries < 100; tries++) {
        const npuprof_host_anchor_ *const from = &h->last[used & 1];
        const uint32_t before = used;
        a.ticks = NPUPROF_LOAD_ACQUIRE_(&from->ticks);
        a.error_ticks = NPUPROF_LOAD_ACQUIRE_(&from->error_ticks);
        a.monotonic_ns = NPUPROF_LOAD_ACQUIRE_(&from->monotonic_ns);
        a.boot_ns = NPUPROF_LOAD_ACQUIRE_(&from->boot_ns);
        a.unix_ns = NPUPROF_LOAD_ACQUIRE_(&from->unix_ns);
        used = NPUPROF_LOAD_ACQUIRE_(&h->last_used);
        if (used == before) break;
    }
    return a;
}

/* Reads and stores a new last one. Does nothing while another thread does so. */
static void npuprof_arena_renew_last_anchor_(void)
{
    npuprof_header_ *h = npuprof_arena_.header;
    npuprof_host_anchor_ a;
    uint32_t nobody = 0;
    /* Why before it is this thread's turn: a signal handler may leave the reading by a jump. */
    npuprof_arena_read_anchor_(&a);
    if (!NPUPROF_CAS_(&npuprof_arena_.keeping_time, &nobody, 1)) return;
    const uint32_t next = NPUPROF_LOAD_(&h->last_used) + 1;
    npuprof_host_anchor_ *const to = &h->last[next & 1];
    NPUPROF_STORE_RELEASE_(&to->error_ticks, a.error_ticks);
    NPUPROF_STORE_RELEASE_(&to->monotonic_ns, a.monotonic_ns);
    NPUPROF_STORE_RELEASE_(&to->boot_ns, a.boot_ns);
    NPUPROF_STORE_RELEASE_(&to->unix_ns, a.unix_ns);
    NPUPROF_STORE_RELEASE_(&to->ticks, a.ticks);
    NPUPROF_STORE_RELEASE_(&h->last_used, next);
    NPUPROF_STORE_RELEASE_(&npuprof_arena_.keeping_time, 0);
}

/* The same once the trace has grown by an eighth since the last time: a process that is killed stores no
   last anchor. Why an eighth: the rate is then computed from nearly the whole trace, and few anchors are
   read. Why for a user's clock, too, whose rate is stated: the error of that rate is in the trace's
   metadata. */
static void npuprof_arena_renew_anchor_if_due_(uint64_t now)
{
    const npuprof_header_ *h = npuprof_arena_.header;
    const uint64_t last = NPUPROF_LOAD_(&npuprof_arena_last_anchor_(h)->ticks), since = now - last;
    const bool before_last = since >> 63;      /* the clocks of two CPUs may differ */
    if (!before_last && since > (last - h->first.ticks) / 8) npuprof_arena_renew_last_anchor_();
}
