#pragma once   /* SPDX-License-Identifier: MIT */
#include "../public/macros.h"
#include "../numbers/time.h"
#include "device_map.h"
#include <string.h>

/* What all reads of one epoch say against the kind of clock that was declared: which gaps between points of a
   map are open, which reads were too late.

   Data: an npuprof_map_evidence_, which is given the points of an epoch, oldest first.

   Evidence. Each read is held against those before it (M2). Where no c is left, L did what C2 excludes, once:
     E1  The step lies behind the last point that does not fit those after it, and before the newest one. Only
         L's order is certain there: the gap is open.
     E2  A side with fewer than 6 reads, or with reads of fewer than 3 moments, proves no rate, and is open,
         too. Reads come in clusters: those closer together than a thousandth of a window are of one moment.
     E3  More than 8 steps, or more than 2 and one every 2 s: the clock is no steady one. All is open.
     E4  Of a counter that reads may show late (lag_ns), a read that shows too little for its time, while all
         others fit, at least 3, was later than declared: C1 does not hold for it, and it is left out. More
         than 3 in a row, or 32 in all, are a step; so are the newest ones, until one behind them fits.
         Others may be late by as much as nobody sees, at most what the reads beside them are wide: each lower
         point of that epoch lies earlier by the width of its read. The gap around it is open: two changes of
         rate look the same.
     E5  Where reads are wide, as they are with a lag, a clock that took a step may have taken others, which
         hide in that: each point of that epoch lies outwards by the width of its read. So do the newest
         reads of a counter that may be read late, all that the next one will be held against: a step among
         them or behind them may not have been seen yet.
     E6  Of a clock whose epochs end because it stood or changed its rate (is_unsteady), each epoch is one
         between steps (E2, E5), and all before its first point and behind its last one is open. */

typedef struct npuprof_map_evidence_ {
    npuprof_map_rate_ rate;
    uint32_t recent_count, reads, moments, steps, ranges;
    bool is_wild;                          /* E3 */
    uint32_t lates, in_a_row;              /* in_a_row: of them, the newest reads */
    uint64_t late[NPUPROF_MAP_LATE_];      /* their ticks */
    uint64_t first_host, last_host, opened_host;
    uint64_t doubted;                      /* E5: the points from these ticks on are */
    struct { uint64_t from, to; } range[NPUPROF_MAP_STEPS_];   /* open, in ticks of upper points */
    npuprof_map_point_ recent[NPUPROF_MAP_RECENT_ + 1];
} npuprof_map_evidence_;

/* How many moments the reads from that one on are of. */
static uint32_t npuprof_map_moments_(const npuprof_map_evidence_ *e, uint32_t from)
{
    uint32_t n = 1;
    for (uint32_t i = from + 1; i < e->recent_count; i++) {
        const npuprof_map_point_ *const p = &e->recent[i];
        n += npuprof_saturating_sub_(p->lower_host, p[-1].upper_host) > e->rate.window / 1000;
    }
    return n;
}

/* Whether the reads since the last step prove no rate (E2), without the newest ones: so many lie `behind` the
   next step. */
static bool npuprof_map_proves_none_(const npuprof_map_evidence_ *e, uint32_t behind)
{
    return e->reads < NPUPROF_MAP_READS_ + behind || e->moments < NPUPROF_MAP_MOMENTS_ + behind;
}

/* Whether some points fit C2. */
static bool npuprof_map_fit_(const npuprof_map_evidence_ *e, uint32_t from)
{
    npuprof_map_window_ w;
    const npuprof_map_point_ *const p = e->recent + from;
    const uint32_t count = e->recent_count - from;
    const bool rate_is_there = count > 1 && p[count - 1].upper > p->upper &&
                               p[count - 1].upper_host > p->upper_host;
    const npuprof_map_view_ view = { &e->rate, p, p, count, 1, 0 };
    return !rate_is_there || npuprof_map_fill_(&w, &view);
}

/* E4: finds the one late read that keeps the others from fitting, and leaves it out. False: there is none. */
static bool npuprof_map_leave_out_(npuprof_map_evidence_ *e)
{
    const uint32_t last = e->recent_count - 1;
    if (!e->rate.may_be_late || e->lates == NPUPROF_MAP_LATE_ || last < NPUPROF_MAP_FIRST_) return false;
    if (e->in_a_row == NPUPROF_MAP_IN_A_ROW_) return false;
    for (uint32_t j = last + 1; j-- > 0;) {
        npuprof_map_point_ *const p = e->recent, left = p[j];
        const npuprof_map_point_ *const from = j ? p : &p[1], *const to = j == last ? &p[last - 1] : &p[last];
        const double slope = npuprof_map_distance_(from->lower_host, to->lower_host) /
                             npuprof_map_distance_(from->lower, to->lower);
        const double host = npuprof_map_distance_(from->lower_host, left.lower_host);
        if (host <= slope * npuprof_map_distance_(from->lower, left.lower)) continue;
        memmove(p + j, p + j + 1, (last - j) * sizeof *p);
        e->recent_count--;
        if (npuprof_map_fit_(e, 0)) {
            e->late[e->lates++] = left.upper;
            e->in_a_row = j == last ? e->in_a_row + 1 : 0;
            return true;
        }
        memmove(p + j + 1, p + j, (last - j) * sizeof *p);
        p[j] = left;
        e->recent_count++;
    }
    return false;
}

/* A step before the newest point (E1, E2). The newest reads that were left out were no late ones. */
static void npuprof_map_step_(npuprof_map_evidence_ *e)
{
    const npuprof_map_point_ *const newest = &e->recent[e->recent_count - 1];
    uint32_t begin = 1;
    while (begin + 1 < e->recent_count && !npuprof_map_fit_(e, begin)) begin++;
    const npuprof_map_point_ *const before = &e->recent[begin - 1];
    uint64_t from = before->upper;
    e->lates -= e->in_a_row;
    e->in_a_row = 0;
    e->steps++;
    e->opened_host += npuprof_saturating_sub_(newest->upper_host, before->lower_host);
    if (npuprof_map_proves_none_(e, 1)) from = e->ranges ? e->range[e->ranges - 1].to : 0;
    if (e->ranges && from <= e->range[e->ranges - 1].to) e->ranges--;
    else if (e->ranges == NPUPROF_MAP_STEPS_) e->is_wild = true;
    else e->range[e->ranges].from = from;
    if (e->ranges < NPUPROF_MAP_STEPS_) e->range[e->ranges++].to = newest->upper;
    e->recent[0] = *newest;
    e->recent_count = e->reads = e->moments = 1;
}

/* Takes the next point of an epoch. */
static void npuprof_map_witness_(npuprof_map_evidence_ *e, const npuprof_map_point_ *p)
{
    uint32_t gone = 0;
    if (!e->first_host) e->first_host = p->lower_host;
    e->last_host = p->upper_host;
    e->recent[e->recent_count++] = *p;
    /* Why moments: of two there is one rate, and nothing to hold it against. */
    while (e->recent_count - gone > NPUPROF_MAP_RECENT_ ||
           (e->recent_count - gone > 4 && npuprof_map_moments_(e, gone + 1) >= NPUPROF_MAP_MOMENTS_ &&
            npuprof_saturating_sub_(p->upper_host, e->recent[gone].lower_host) > e->rate.window)) gone++;
    e->recent_count -= gone;
    memmove(e->recent, e->recent + gone, e->recent_count * sizeof *p);
    e->reads++;
    if (e->recent_count < 2 || npuprof_map_moments_(e, e->recent_count - 2) > 1) e->moments++;
    if (npuprof_map_fit_(e, 0)) {
        e->in_a_row = 0;
    } else if (e->rate.may_be_late && e->recent_count <= NPUPROF_MAP_FIRST_) {
        return;                            /* E4: which of them is late the next ones show */
    } else if (!npuprof_map_leave_out_(e)) {
        npuprof_map_step_(e);
    }
}

/* After the last point. */
static void npuprof_map_judge_(npuprof_map_evidence_ *e)
{
    const uint64_t lasted = npuprof_saturating_sub_(e->last_host, e->first_host);
    e->recent_count += e->in_a_row != 0;   /* the newest one that was left out is there still */
    if (!npuprof_map_fit_(e, 0)) npuprof_map_step_(e);
    e->doubted = UINT64_MAX;
    if (e->rate.may_be_late && e->recent_count) e->doubted = e->recent->upper;
    if (!e->steps && !e->rate.is_unsteady) return;
    if (e->rate.may_be_late || e->rate.is_unsteady) e->doubted = 0;
    if (!e->ranges) e->ranges++;
    if (npuprof_map_proves_none_(e, 0)) e->range[e->ranges - 1].to = UINT64_MAX;
    e->is_wild |= e->steps > 2 && e->steps > lasted / (2 * npuprof_max_(e->rate.second, 1));
    if (e->is_wild) e->opened_host = lasted;
}

/* Whether the gap between two neighbouring points is open. */
static bool npuprof_map_is_open_(const npuprof_map_evidence_ *e, const npuprof_map_point_ *a,
                                 const npuprof_map_point_ *b)
{
    for (uint32_t i = 0; i < e->ranges; i++)
        if (e->range[i].from <= a->upper && b->upper <= e->range[i].to) return true;
    return false;
}

static bool npuprof_map_was_late_(const npuprof_map_evidence_ *e, const npuprof_map_point_ *p)
{
    for (uint32_t i = 0; i < e->lates; i++)
        if (e->late[i] == p->upper) return true;
    return false;
}

/* Empties a map for the points of an epoch that was judged. */
static void npuprof_map_begin_(npuprof_map_ *m, const npuprof_map_evidence_ *e)
{
    memset(m, 0, sizeof *m);
    m->rate = e->rate;
    m->by_order = e->is_wild;
    m->open[0] = e->rate.is_unsteady;
}

/* Adds a point to a map that has room. One that is not later on both sides says nothing. */
static void npuprof_map_add_(npuprof_map_ *m, const npuprof_map_evidence_ *e, const npuprof_map_point_ *p)
{
    const npuprof_map_point_ *const last = m->count ? &m->point[m->count - 1] : NULL;
    if (last && (p->upper <= last->upper || p->lower <= last->lower)) return;
    const bool is_late = npuprof_map_was_late_(e, p);
    m->open[m->count] |= is_late || (last && npuprof_map_is_open_(e, last, p));
    if (is_late) return;
    m->point[m->count] = *p;
    npuprof_map_point_ *const to = &m->point[m->count++];
    const bool is_doubted = p->upper >= e->doubted;
    const uint64_t width = is_doubted || e->lates ? p->upper_host - p->lower_host : 0;
    to->lower_host = npuprof_saturating_sub_(p->lower_host, width);
    if (is_doubted) to->upper_host += width;
}

/* Why the newest read counts here: reads become anchors some time later, the best two of that time, and what
   it contradicts may not be taken for known until then. What a read has shown was before now. */
NPUPROF_API_ bool npuprof_map_ticks_(const npuprof_map_reads_ *reads, uint64_t device_ticks,
                                     uint64_t *host_ticks, uint64_t *error_ticks)
{
    const npuprof_anchor_ *const anchors = reads->anchors, *const newest = reads->newest;
    const size_t count = reads->count;
    npuprof_map_ m;
    npuprof_map_evidence_ e;
    const size_t all = count + (newest != NULL);
    const size_t first = all > NPUPROF_MAP_POINTS_ ? all - NPUPROF_MAP_POINTS_ : 0;
    memset(&e, 0, sizeof e);
    e.rate = reads->rate;
    for (size_t i = first; i < all; i++) {
        const npuprof_map_point_ p = npuprof_map_point_of_(i < count ? &anchors[i] : newest);
        npuprof_map_witness_(&e, &p);
    }
    npuprof_map_judge_(&e);
    npuprof_map_begin_(&m, &e);
    for (size_t i = first; i < all; i++) {
        const npuprof_map_point_ p = npuprof_map_point_of_(i < count ? &anchors[i] : newest);
        npuprof_map_add_(&m, &e, &p);
    }
    npuprof_map_stamped_ stamp = { device_ticks, 1, 0, UINT64_MAX };
    if (newest && device_ticks <= newest->device_ticks) stamp.until = reads->now;
    return npuprof_map_stamp_(&m, &stamp, host_ticks, error_ticks);
}
