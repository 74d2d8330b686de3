#pragma once   /* SPDX-License-Identifier: MIT */
#include "../public/macros.h"
#include "../numbers/time.h"
#include "../numbers/wide.h"

/* Device ticks to host ticks: the one place with the interpolation and its error bound. Integers only, right over days.

   What an anchor says: the counter was read somewhere between two host stamps. Its position is the middle, its error half
   the width. Between two anchors A and B the position is the straight line. The error bound is true if
     - the device's rate wanders by at most max_rate_ppb around a centre, which
     - changes at most once inside an interval of anchors, and not in the stretch beside it on either side: up to the
       first anchor that is as far away as the interval is long (or to the last one, where there is none).
   Proof: let c be the slope of the chord from A to B (host over device ticks), p the greatest slope before the change, which the
   stretch before A tells, and q the centre behind it. How late can the true line be at x, of T between A and B, against the chord?
   Up to the change at t by (p - c) x. Behind it the line runs with q, give or take the wander, to meet the chord at B: from
   where it was at t it only comes nearer, but for the bow that the wander allows, wander * q * x (T - x) / T. As t < x, that is
   (p - c) x + bow in either case. Seen from B it is (c - least slope behind B) (T - x) + bow. Both hold, so the smaller one
   does, and early alike. In the first and the last interval one of the stretches is missing, and the other one is used
   alone. With two anchors there is nothing to compare with, and no change is assumed. Beyond the last anchor (and before the
   first) the rate of the anchors there is taken to go on.
   A counter says floor(time * rate), so every stamp has an error of one tick more; it is in the bound (in the first and
   last interval as the average tick there). */

/* The host ticks that go by in a distance of device ticks: least and most. */
typedef struct npuprof_map_range_ { uint64_t least, most; } npuprof_map_range_;

/* At the rate between two anchors. wander_ppb: how far the rate may be from the one between them. */
static npuprof_map_range_ npuprof_map_range_between_(const npuprof_anchor_ *a, const npuprof_anchor_ *b, uint64_t wander_ppb, uint64_t distance)
{
    npuprof_map_range_ r;
    uint64_t ticks = npuprof_saturating_sub_(b->device_ticks, a->device_ticks), error = npuprof_anchor_error_(a) + npuprof_anchor_error_(b);
    uint64_t host = npuprof_saturating_sub_(npuprof_anchor_middle_(b), npuprof_anchor_middle_(a));
    r.least = npuprof_mul_div_(npuprof_saturating_sub_(host, error), npuprof_saturating_sub_(distance, 1), npuprof_saturating_add_(ticks, 1), false);
    r.least = npuprof_saturating_sub_(r.least, npuprof_mul_div_(r.least, wander_ppb, 1000000000, true));
    r.most = npuprof_mul_div_(npuprof_saturating_add_(host, error), npuprof_saturating_add_(distance, 1), npuprof_saturating_sub_(ticks, 1), true);
    r.most = npuprof_saturating_add_(r.most, npuprof_mul_div_(r.most, wander_ppb, 1000000000, true));
    return r;
}

/* The rate beside one anchor, on its right (step 1, `steps` anchors) or left (step -1): the fractions of host over device ticks which
   bound it best. Uses the next anchors until they are `stretch` host ticks away or contradict the nearer ones.
   Why not the next anchor alone: two anchors close together say little about the rate. */
typedef struct npuprof_map_slope_ { uint64_t least_host, least_ticks, most_host, most_ticks; } npuprof_map_slope_;
static bool npuprof_map_is_less_(uint64_t host, uint64_t ticks, uint64_t than_host, uint64_t than_ticks)
{
    const npuprof_u128_ a = npuprof_multiply_(host, than_ticks), b = npuprof_multiply_(than_host, ticks);
    return a.high != b.high ? a.high < b.high : a.low < b.low;
}
static npuprof_map_slope_ npuprof_map_slope_beside_(const npuprof_anchor_ *anchor, ptrdiff_t step, size_t steps, uint64_t stretch, uint64_t wander_ppb)
{
    enum { steps_most = 16 };
    npuprof_map_slope_ r = { 0, 1, UINT64_MAX, 0 };
    npuprof_map_range_ check = { 0, UINT64_MAX };
    const npuprof_anchor_ *other = anchor;
    uint64_t first_ticks = 0;
    for (size_t i = 0; i < steps && i < steps_most; i++) {
        other += step;
        const npuprof_anchor_ *a = step > 0 ? anchor : other, *b = step > 0 ? other : anchor;
        const uint64_t ticks = npuprof_saturating_sub_(b->device_ticks, a->device_ticks), error = npuprof_anchor_error_(a) + npuprof_anchor_error_(b);
        const uint64_t host = npuprof_saturating_sub_(npuprof_anchor_middle_(b), npuprof_anchor_middle_(a));
        if (i == 0) first_ticks = ticks;
        const npuprof_map_range_ next = npuprof_map_range_between_(a, b, wander_ppb, first_ticks);
        check.least = npuprof_max_(check.least, next.least);
        check.most = npuprof_min_(check.most, next.most);
        if (check.least > check.most) break;
        if (npuprof_map_is_less_(r.least_host, r.least_ticks, npuprof_saturating_sub_(host, error), npuprof_saturating_add_(ticks, 1))) {
            r.least_host = npuprof_saturating_sub_(host, error);
            r.least_ticks = npuprof_saturating_add_(ticks, 1);
        }
        if (npuprof_map_is_less_(npuprof_saturating_add_(host, error), npuprof_saturating_sub_(ticks, 1), r.most_host, r.most_ticks)) {
            r.most_host = npuprof_saturating_add_(host, error);
            r.most_ticks = npuprof_saturating_sub_(ticks, 1);
        }
        if (host >= stretch) break;
    }
    return r;
}
static npuprof_map_range_ npuprof_map_range_by_slope_(const npuprof_map_slope_ *rate, uint64_t wander_ppb, uint64_t distance)
{
    npuprof_map_range_ r;
    r.least = npuprof_mul_div_(rate->least_host, npuprof_saturating_sub_(distance, 1), rate->least_ticks, false);
    r.least = npuprof_saturating_sub_(r.least, npuprof_mul_div_(r.least, wander_ppb, 1000000000, true));
    r.most = npuprof_mul_div_(rate->most_host, npuprof_saturating_add_(distance, 1), rate->most_ticks, true);
    r.most = npuprof_saturating_add_(r.most, npuprof_mul_div_(r.most, wander_ppb, 1000000000, true));
    return r;
}
static bool npuprof_map_ranges_apart_(npuprof_map_range_ a, npuprof_map_range_ b) { return a.least > b.most || b.least > a.most; }
static npuprof_map_range_ npuprof_map_range_union_(npuprof_map_range_ a, npuprof_map_range_ b)
{
    npuprof_map_range_ r;
    r.least = npuprof_min_(a.least, b.least);
    r.most = npuprof_max_(a.most, b.most);
    return r;
}

/* What is the same for all stamps between two anchors. */
typedef struct npuprof_map_interval_ {
    bool known;
    size_t behind;                               /* number of anchors at or before the stamps */
    uint64_t wander, tick;                       /* tick: host ticks that one device tick may take */
    npuprof_map_slope_ before, after;               /* the rates on both sides; outside of the anchors only one */
    bool widened, changed;                       /* the rate is another one than on one side; than on both */
    size_t ratio_behind;                         /* the interval of `ratio`, which is all that a stamp without its error needs; if ratio.c is not 0 */
    npuprof_ratio_ ratio;
} npuprof_map_interval_;

static void npuprof_map_interval_prepare_(npuprof_map_interval_ *in, const npuprof_anchor_ *anchors, size_t count, uint32_t max_rate_ppb, size_t behind)
{
    /* Two rates of a band of +-max_rate around a centre differ by this much of either. */
    const uint64_t rate_ppb = npuprof_min_(max_rate_ppb, 500000000);
    memset(in, 0, sizeof *in);
    in->known = true;
    in->behind = behind;
    in->wander = npuprof_mul_div_(2000000000, rate_ppb, 1000000000 - rate_ppb, true);
    if (count < 2) return;
    const npuprof_anchor_ *a = &anchors[behind ? behind - 1 : 0], *b = a + 1;
    if (behind == 0) {
        in->after = npuprof_map_slope_beside_(a, 1, count - 1, UINT64_MAX, in->wander);
    } else if (behind == count) {
        in->before = npuprof_map_slope_beside_(a, -1, count - 1, UINT64_MAX, in->wander);
    } else {
        const uint64_t host = npuprof_saturating_sub_(npuprof_anchor_middle_(b), npuprof_anchor_middle_(a)), ticks = b->device_ticks - a->device_ticks;
        const npuprof_map_range_ own = npuprof_map_range_between_(a, b, 0, ticks);
        npuprof_map_range_ before = own, after = own;
        in->tick = npuprof_map_range_between_(a, b, 0, 0).most;
        if (behind > 1) {
            in->before = npuprof_map_slope_beside_(a, -1, behind - 1, host, in->wander);
            before = npuprof_map_range_by_slope_(&in->before, in->wander, ticks);
        }
        if (count - behind > 1) {
            in->after = npuprof_map_slope_beside_(b, 1, count - behind - 1, host, in->wander);
            after = npuprof_map_range_by_slope_(&in->after, in->wander, ticks);
        }
        in->widened = npuprof_map_ranges_apart_(own, before) || npuprof_map_ranges_apart_(own, after);
        in->changed = behind > 1 && count - behind > 1 && npuprof_map_ranges_apart_(own, npuprof_map_range_union_(before, after));
    }
}

/* As npuprof_map_ticks_. kept: zero when the anchors are others than at the last call. */
static bool npuprof_map_ticks_cached_(const npuprof_anchor_ *anchors, size_t count, uint32_t max_rate_ppb, npuprof_map_interval_ *kept, uint64_t device_ticks,
                              uint64_t *host_ticks, uint64_t *error_ticks, bool *widened)
{
    size_t behind = 0;                           /* number of anchors at or before device_ticks */
    for (size_t step = count; step > 0;) {
        size_t half = step / 2;
        if (anchors[behind + half].device_ticks <= device_ticks) behind += half + 1, step -= half + 1;
        else step = half;
    }
    uint64_t unused;
    const bool error_wanted = error_ticks != NULL;
    if (!error_wanted) error_ticks = &unused;
    *widened = false;
    *host_ticks = *error_ticks = 0;
    if (count == 0) return false;

    const npuprof_anchor_ *a = &anchors[behind ? behind - 1 : 0], *b = a + 1;
    uint64_t a_middle = npuprof_anchor_middle_(a), a_error = npuprof_anchor_error_(a);
    if (a->device_ticks != device_ticks && count == 1) return false;
    const bool outside = behind == 0 || behind == count;
    if ((error_wanted || outside) && (!kept->known || kept->behind != behind)) npuprof_map_interval_prepare_(kept, anchors, count, max_rate_ppb, behind);
    const uint64_t wander = kept->wander;

    if (a->device_ticks == device_ticks) {
        *host_ticks = a_middle;
        *error_ticks = a_error;
        if (error_wanted) {
            uint64_t tick = 0;
            if (behind > 1) tick = npuprof_map_range_between_(a - 1, a, wander, 0).most;
            if (behind < count) tick = npuprof_max_(tick, npuprof_map_range_between_(a, b, wander, 0).most);
            *error_ticks = npuprof_saturating_add_(*error_ticks, tick);
        }
        return true;
    }
    if (outside) {                               /* the nearest rate goes on */
        uint64_t distance = behind ? device_ticks - a->device_ticks : a->device_ticks - device_ticks;
        npuprof_map_range_ r = npuprof_map_range_by_slope_(behind ? &kept->before : &kept->after, wander, distance);
        uint64_t ahead = r.least / 2 + r.most / 2;
        *host_ticks = behind ? npuprof_saturating_add_(a_middle, ahead) : npuprof_saturating_sub_(a_middle, ahead);
        *error_ticks = npuprof_saturating_add_(a_error, npuprof_max_(r.most, r.least) - ahead);
        if (!behind && ahead > a_middle) *error_ticks = npuprof_saturating_add_(*error_ticks, ahead - a_middle);
        return true;
    }

    uint64_t b_error = npuprof_anchor_error_(b), host = npuprof_saturating_sub_(npuprof_anchor_middle_(b), a_middle);
    uint64_t ticks = b->device_ticks - a->device_ticks, x = device_ticks - a->device_ticks, y = ticks - x;
    if (!kept->ratio.c || kept->ratio_behind != behind) {
        npuprof_ratio_prepare_(&kept->ratio, host, ticks);
        kept->ratio_behind = behind;
    }
    uint64_t from_a = npuprof_ratio_times_(&kept->ratio, x), from_b = host - from_a;
    *host_ticks = a_middle + from_a;
    if (!error_wanted) return true;
    /* The error if the rate is constant: the two halves of brackets, a tick, and the rounding. */
    uint64_t error = npuprof_mul_div_(a_error, y, ticks, true) + npuprof_mul_div_(b_error, x, ticks, true) + 1;
    error = npuprof_saturating_add_(error, kept->tick);
    uint64_t bow = npuprof_mul_div_(npuprof_mul_div_(host + a_error + b_error, x, ticks, true), y, ticks, true);
    size_t left = behind - 1, right = count - behind - 1;   /* intervals on both sides */
    if (left || right) {
        uint64_t late_a = UINT64_MAX, late_b = UINT64_MAX, early_a = UINT64_MAX, early_b = UINT64_MAX;
        if (left) {
            npuprof_map_range_ to_x = npuprof_map_range_by_slope_(&kept->before, wander, x);
            late_a = npuprof_saturating_sub_(npuprof_saturating_add_(to_x.most, a_error), from_a);
            early_a = npuprof_saturating_sub_(from_a + a_error, to_x.least);
        }
        if (right) {
            npuprof_map_range_ to_y = npuprof_map_range_by_slope_(&kept->after, wander, y);
            late_b = npuprof_saturating_sub_(from_b + b_error, to_y.least);
            early_b = npuprof_saturating_sub_(npuprof_saturating_add_(to_y.most, b_error), from_b);
        }
        *widened = kept->widened;
        if (kept->changed)
            error = npuprof_max_(error, npuprof_max_(npuprof_max_(late_a, late_b), npuprof_max_(early_a, early_b)));
        else                             /* but for more than one change: no bound; that was what can be said */
            error = npuprof_max_(error, npuprof_max_(npuprof_min_(late_a, late_b), npuprof_min_(early_a, early_b)));
        error = npuprof_saturating_add_(error, 1);
    }
    *error_ticks = npuprof_saturating_add_(error, npuprof_mul_div_(bow, wander, 1000000000, true));
    return true;
}
NPUPROF_API_ bool npuprof_map_ticks_(const npuprof_anchor_ *anchors, size_t count, uint32_t max_rate_ppb, uint64_t device_ticks,
                                     uint64_t *host_ticks, uint64_t *error_ticks, bool *widened)
{
    npuprof_map_interval_ kept;
    memset(&kept, 0, sizeof kept);
    return npuprof_map_ticks_cached_(anchors, count, max_rate_ppb, &kept, device_ticks, host_ticks, error_ticks, widened);
}
