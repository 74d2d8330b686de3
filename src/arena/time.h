#pragma once   /* SPDX-License-Identifier: MIT */
#include "../public/compiler.h"
#include "../numbers/hash.h"
#include "../format/arena.h"
#include "state.h"
#include "../os/common.h"
#include "../clock/host.h"

/* The quickest of a few readings of ticks around the monotonic clock, and of the clocks beside it. */
static void npuprof_arena_read_anchor_(npuprof_host_anchor_ *best)
{
    uint64_t width = UINT64_MAX;
    for (int i = 0; i < 4; i++) {
        npuprof_host_anchor_ a;
        const uint64_t begin = npuprof_clock_();
        a.monotonic_ns = npuprof_os_monotonic_ns_();
        const uint64_t end = npuprof_clock_();
        npuprof_os_clocks_(&a);
        const uint64_t all = npuprof_clock_() - begin;
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

/* The newest closing anchor of the host clock. Why two: one of them is whole whenever the process dies. */
static const npuprof_host_anchor_ *npuprof_arena_last_anchor_(const npuprof_header_ *h) { return &h->last[NPUPROF_LOAD_ACQUIRE_(&h->last_used) & 1]; }

/* Why last_used counts: two renewals while this stands in between would else go unseen. Why acquire and
   release for each word: its two looks at last_used stay around them. */
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

/* Stores another one. Does nothing while another thread does. */
static void npuprof_arena_renew_last_anchor_(void)
{
    npuprof_header_ *h = npuprof_s_.header;
    uint32_t nobody = 0;
    if (!NPUPROF_CAS_(&npuprof_s_.keeping_time, &nobody, 1)) return;
    const uint32_t next = NPUPROF_LOAD_(&h->last_used) + 1;
    npuprof_host_anchor_ *const to = &h->last[next & 1], a;
    npuprof_arena_read_anchor_(&a);
    NPUPROF_STORE_RELEASE_(&to->error_ticks, a.error_ticks);
    NPUPROF_STORE_RELEASE_(&to->monotonic_ns, a.monotonic_ns);
    NPUPROF_STORE_RELEASE_(&to->boot_ns, a.boot_ns);
    NPUPROF_STORE_RELEASE_(&to->unix_ns, a.unix_ns);
    NPUPROF_STORE_RELEASE_(&to->ticks, a.ticks);
    NPUPROF_STORE_RELEASE_(&h->last_used, next);
    NPUPROF_STORE_RELEASE_(&npuprof_s_.keeping_time, 0);
}
/* A process that is killed leaves no closing anchor: so one is stored whenever the trace has grown by an
   eighth. Why an eighth: the rate is then from nearly the whole trace, and the number of anchors stays
   small. Why for a user's clock, whose rate is stated, too: the error of that rate is in the trace's
   metadata. */
static void npuprof_arena_renew_anchor_if_due_(uint64_t now)
{
    const npuprof_header_ *h = npuprof_s_.header;
    const uint64_t last = NPUPROF_LOAD_(&npuprof_arena_last_anchor_(h)->ticks), since = now - last;
    if (since >> 63 == 0 && since > (last - h->first.ticks) / 8) npuprof_arena_renew_last_anchor_();
}

/* The low half of seed_high: says in a trace's id which process of a host it is of. */
static uint32_t npuprof_arena_mark_of_pid_(uint32_t pid) { return (uint32_t)npuprof_hash_mix_(pid); }
