#pragma once   /* SPDX-License-Identifier: MIT */
#include "../public/macros.h"
#include "../numbers/time.h"
#include "../numbers/wide.h"
#include <string.h>

/* Maps device ticks to host ticks, with an error bound. Integers only, exact over days.

   Data: an array of anchors, ascending in device ticks, and an npuprof_map_interval_, which caches what is
   the same for all stamps between the same two anchors. The caller owns both. This part knows no image and no
   thread.

   ---- The bound, step by step

   Notation:
     x, y, T   device ticks from anchor A to the stamp, from the stamp to the next anchor B, and T = x + y
     L(x)      the true host ticks that pass in the x device ticks
     H         the host ticks from A to B, from the middle of one to the middle of the other
     c         H / T, the slope of the chord from A to B. The answer is A's middle + c x
     D(x)      L(x) - c x, the error of that answer

   Assumptions:
     A1  An anchor's device ticks were read at some moment between its two host stamps.
     A2  The slope of L (host over device ticks) stays within r of a centre, r = max_rate_ppb / 10^9. So two
         slopes of one centre differ by at most the drift, w = 2 r / (1 - r) of either.
         P7 needs w <= 1, that is r <= 1/3.
     A3  The centre changes at most once between A and B, and not in the stretches beside them. A stretch goes
         from A back (from B on) to the first anchor that is at least H away, or to the last one there is.

   P1  The middle of an anchor is off by at most e, which is half the distance of its two host stamps:
          |true - middle| <= e                                                    by A1
   P2  A counter shows whole ticks. If it counted n ticks, between n - 1 and n + 1 ticks passed.
   P3  The average slope between two anchors that are H and T apart, with no change between them. E is the sum
       of their e:
          (H - E) / (T + 1) <= slope <= (H + E) / (T - 1)                         by P1 and P2
   P4  The host ticks in n device ticks that are of the same centre:
          min = (H - E) (n - 1) / (T + 1) (1 - w)                                 by P2, P3 and A2
          max = (H + E) (n + 1) / (T - 1) (1 + w)
       In a stretch of several anchors the largest min and the smallest max hold. Where they contradict each
       other the centre has changed, and the stretch ends before.
   P5  The bow: no change from A to B. If f and g are the average slopes from A to x and from x to B, then
          c T = f x + g y, so
          |D(x)| = |f - g| x y / T <= w c x y / T = bow                           by A2
   P6  The chord goes through the middles of A and B, which are off by e_A and e_B. At x that makes at most
          e_A y / T + e_B x / T
       and one tick more (P2), and 1 for rounding. Without a change the bound is P5 + P6.
   P7  One change, at t between A and B. p is the largest slope before it, from P4 in the stretch before A.
       Let u = (x - t) / (T - t), and c' = c - D(t) / (T - t) the slope of the chord from t to B.
       7.1  x <= t:                   D(x) <= (p - c) x
       7.2  x > t:                    D(x) <= (1 - u) D(t) + w c' u (T - x)       by P5 from t to B
       7.3  x > t, D(t) >= 0:         D(x) <= D(t) + bow                     as c' <= c, u (T - x) <= x y / T
       7.4  x > t, D(t) < 0:          D(x) <= (1 - u) (1 - w u) D(t) + bow <= bow           as w <= 1
       7.5  By 7.1 at t, as t < x:    D(x) <= max(0, (p - c) x) + bow
       The smallest slope bounds -D(x) in the same way. There 7.4 needs (1 - u) (1 + w u) <= 1: w <= 1 again.
   P8  The same from B, where q is the smallest slope behind the change, from P4 in the stretch behind B:
          D(x) <= max(0, (c - q) y) + bow
       P7 and P8 both hold, so the smaller one does; each adds the error of its own anchor (P1). The bound is
       the larger one of late and early, and at least P6.

   Where a part is missing:
     - The first and the last interval have one stretch only. It is used alone.
     - Two anchors only: there is nothing to compare with. No change is assumed (P5 + P6).
     - The interval's own slope fits neither stretch: A3 does not hold, and there is no bound. The larger one
       of P7 and P8 is what can be said.
     - Outside of the anchors the slope of the nearest stretch goes on (P4). */

/* The host ticks that pass in some device ticks. */
typedef struct npuprof_map_range_ { uint64_t min, max; } npuprof_map_range_;

/* A slope, as fractions of host over device ticks. */
typedef struct npuprof_map_slope_ { uint64_t min_host, min_ticks, max_host, max_ticks; } npuprof_map_slope_;

/* The slope between two anchors (P3). */
static npuprof_map_slope_ npuprof_map_slope_between_(const npuprof_anchor_ *a, const npuprof_anchor_ *b)
{
    const uint64_t ticks = npuprof_saturating_sub_(b->device_ticks, a->device_ticks);
    const uint64_t error = npuprof_anchor_error_(a) + npuprof_anchor_error_(b);
    const uint64_t host = npuprof_saturating_sub_(npuprof_anchor_middle_(b), npuprof_anchor_middle_(a));
    npuprof_map_slope_ s;
    s.min_host = npuprof_saturating_sub_(host, error);
    s.min_ticks = npuprof_saturating_add_(ticks, 1);
    s.max_host = npuprof_saturating_add_(host, error);
    s.max_ticks = npuprof_saturating_sub_(ticks, 1);
    return s;
}

/* The host ticks in a distance of n device ticks at a slope (P4). */
static npuprof_map_range_ npuprof_map_range_by_slope_(const npuprof_map_slope_ *s, uint64_t drift_ppb,
                                                      uint64_t distance)
{
    npuprof_map_range_ r;
    r.min = npuprof_mul_div_(s->min_host, npuprof_saturating_sub_(distance, 1), s->min_ticks, false);
    r.min = npuprof_saturating_sub_(r.min, npuprof_mul_div_(r.min, drift_ppb, 1000000000, true));
    r.max = npuprof_mul_div_(s->max_host, npuprof_saturating_add_(distance, 1), s->max_ticks, true);
    r.max = npuprof_saturating_add_(r.max, npuprof_mul_div_(r.max, drift_ppb, 1000000000, true));
    return r;
}

/* The same at the slope between two anchors (P3, P4). */
static npuprof_map_range_ npuprof_map_range_between_(const npuprof_anchor_ *a, const npuprof_anchor_ *b,
                                                     uint64_t drift_ppb, uint64_t distance)
{
    const npuprof_map_slope_ s = npuprof_map_slope_between_(a, b);
    return npuprof_map_range_by_slope_(&s, drift_ppb, distance);
}

/* Compares two fractions: host / ticks < than_host / than_ticks. */
static bool npuprof_map_is_less_(uint64_t host, uint64_t ticks, uint64_t than_host, uint64_t than_ticks)
{
    const npuprof_u128_ a = npuprof_multiply_(host, than_ticks), b = npuprof_multiply_(than_host, ticks);
    return a.high != b.high ? a.high < b.high : a.low < b.low;
}

/* The slope in the stretch beside one anchor: to its right (step 1) or to its left (step -1), where there are
   `steps` anchors. `length`: of the stretch, in host ticks.
   Why not from the next anchor alone: two anchors close together say little about the slope. */
static npuprof_map_slope_ npuprof_map_slope_beside_(const npuprof_anchor_ *anchor, ptrdiff_t step,
                                                    size_t steps, uint64_t length, uint64_t drift_ppb)
{
    enum { max_steps = 16 };
    npuprof_map_slope_ r = { 0, 1, UINT64_MAX, 0 };
    npuprof_map_range_ check = { 0, UINT64_MAX };
    const npuprof_anchor_ *other = anchor;
    uint64_t first_ticks = 0;
    for (size_t i = 0; i < steps && i < max_steps; i++) {
        other += step;
        const npuprof_anchor_ *a = step > 0 ? anchor : other, *b = step > 0 ? other : anchor;
        const npuprof_map_slope_ s = npuprof_map_slope_between_(a, b);
        if (i == 0) first_ticks = npuprof_saturating_sub_(b->device_ticks, a->device_ticks);
        /* P4: do they contradict each other? */
        const npuprof_map_range_ next = npuprof_map_range_by_slope_(&s, drift_ppb, first_ticks);
        check.min = npuprof_max_(check.min, next.min);
        check.max = npuprof_min_(check.max, next.max);
        if (check.min > check.max) break;
        if (npuprof_map_is_less_(r.min_host, r.min_ticks, s.min_host, s.min_ticks)) {
            r.min_host = s.min_host;
            r.min_ticks = s.min_ticks;
        }
        if (npuprof_map_is_less_(s.max_host, s.max_ticks, r.max_host, r.max_ticks)) {
            r.max_host = s.max_host;
            r.max_ticks = s.max_ticks;
        }
        if (npuprof_saturating_sub_(npuprof_anchor_middle_(b), npuprof_anchor_middle_(a)) >= length) break;
    }
    return r;
}

static bool npuprof_map_ranges_apart_(npuprof_map_range_ a, npuprof_map_range_ b)
{
    return a.min > b.max || b.min > a.max;
}

static npuprof_map_range_ npuprof_map_range_union_(npuprof_map_range_ a, npuprof_map_range_ b)
{
    npuprof_map_range_ r;
    r.min = npuprof_min_(a.min, b.min);
    r.max = npuprof_max_(a.max, b.max);
    return r;
}

/* What is the same for all stamps between two neighbouring anchors. All zero: nothing is cached. */
typedef struct npuprof_map_interval_ {
    bool known;                    /* all but `ratio` is cached */
    size_t behind;                 /* number of anchors at or before the stamps; A is the last of them */
    uint64_t drift, tick;          /* w in ppb; the host ticks that one device tick may take */
    npuprof_map_slope_ before;     /* in the stretch before A; not known before the first anchor */
    npuprof_map_slope_ after;      /* in the stretch behind B; not known behind the last anchor */
    /* the slope from A to B fits not both of `before` and `after`; none of them */
    bool widened, changed;
    /* H / T, all that a stamp needs without its error. Its c is 0: not cached */
    npuprof_ratio_ ratio;
    size_t ratio_behind;           /* `behind` of ratio */
} npuprof_map_interval_;

static void npuprof_map_interval_prepare_(npuprof_map_interval_ *in, const npuprof_anchor_ *anchors,
                                          size_t count, uint32_t max_rate_ppb, size_t behind)
{
    const uint64_t rate_ppb = npuprof_min_(max_rate_ppb, 500000000);
    memset(in, 0, sizeof *in);
    in->known = true;
    in->behind = behind;
    in->drift = npuprof_mul_div_(2000000000, rate_ppb, 1000000000 - rate_ppb, true);
    if (count < 2) return;
    const npuprof_anchor_ *a = &anchors[behind ? behind - 1 : 0], *b = a + 1;
    if (behind == 0) {
        in->after = npuprof_map_slope_beside_(a, 1, count - 1, UINT64_MAX, in->drift);
        return;
    }
    if (behind == count) {
        in->before = npuprof_map_slope_beside_(a, -1, count - 1, UINT64_MAX, in->drift);
        return;
    }
    const uint64_t host = npuprof_saturating_sub_(npuprof_anchor_middle_(b), npuprof_anchor_middle_(a));
    const uint64_t ticks = b->device_ticks - a->device_ticks;
    const npuprof_map_range_ own = npuprof_map_range_between_(a, b, 0, ticks);
    npuprof_map_range_ before = own, after = own;
    in->tick = npuprof_map_range_between_(a, b, 0, 0).max;
    if (behind > 1) {
        in->before = npuprof_map_slope_beside_(a, -1, behind - 1, host, in->drift);
        before = npuprof_map_range_by_slope_(&in->before, in->drift, ticks);
    }
    if (count - behind > 1) {
        in->after = npuprof_map_slope_beside_(b, 1, count - behind - 1, host, in->drift);
        after = npuprof_map_range_by_slope_(&in->after, in->drift, ticks);
    }
    in->widened = npuprof_map_ranges_apart_(own, before) || npuprof_map_ranges_apart_(own, after);
    in->changed = behind > 1 && count - behind > 1 &&
                  npuprof_map_ranges_apart_(own, npuprof_map_range_union_(before, after));
}

/* The number of anchors at or before some device ticks. */
static size_t npuprof_map_count_behind_(const npuprof_anchor_ *anchors, size_t count, uint64_t device_ticks)
{
    size_t behind = 0;
    for (size_t step = count; step > 0;) {
        const size_t half = step / 2;
        if (anchors[behind + half].device_ticks <= device_ticks) {
            behind += half + 1;
            step -= half + 1;
        } else {
            step = half;
        }
    }
    return behind;
}

/* A stamp in the very tick of an anchor: its error (P1) and one tick (P2). */
static uint64_t npuprof_map_error_at_anchor_(const npuprof_anchor_ *a, size_t behind, size_t count,
                                             uint64_t drift)
{
    uint64_t tick = 0;
    if (behind > 1) tick = npuprof_map_range_between_(a - 1, a, drift, 0).max;
    if (behind < count) tick = npuprof_max_(tick, npuprof_map_range_between_(a, a + 1, drift, 0).max);
    return npuprof_saturating_add_(npuprof_anchor_error_(a), tick);
}

/* A stamp before the first or behind the last anchor, a: the slope of the nearest stretch goes on (P4). */
static void npuprof_map_outside_(const npuprof_map_interval_ *in, const npuprof_anchor_ *a,
                                 uint64_t device_ticks, uint64_t *host_ticks, uint64_t *error_ticks)
{
    const bool behind = in->behind > 0;
    const uint64_t middle = npuprof_anchor_middle_(a);
    const uint64_t distance = behind ? device_ticks - a->device_ticks : a->device_ticks - device_ticks;
    const npuprof_map_slope_ *const slope = behind ? &in->before : &in->after;
    const npuprof_map_range_ r = npuprof_map_range_by_slope_(slope, in->drift, distance);
    const uint64_t ahead = r.min / 2 + r.max / 2;
    *host_ticks = behind ? npuprof_saturating_add_(middle, ahead) : npuprof_saturating_sub_(middle, ahead);
    *error_ticks = npuprof_saturating_add_(npuprof_anchor_error_(a), npuprof_max_(r.max, r.min) - ahead);
    /* Host ticks are not negative: what is cut off there is error, too. */
    if (!behind && ahead > middle) *error_ticks = npuprof_saturating_add_(*error_ticks, ahead - middle);
}

/* A stamp between A and B. host: H; from_a: c x; left, right: how many intervals lie before A, and behind B.
   */
typedef struct npuprof_map_point_ {
    uint64_t host, x, y, from_a, a_error, b_error;
    size_t left, right;
} npuprof_map_point_;

static uint64_t npuprof_map_error_between_(const npuprof_map_interval_ *in, const npuprof_map_point_ *p)
{
    const uint64_t ticks = p->x + p->y, from_b = p->host - p->from_a;
    /* P6 */
    uint64_t error = npuprof_mul_div_(p->a_error, p->y, ticks, true) + 1;
    error += npuprof_mul_div_(p->b_error, p->x, ticks, true);
    error = npuprof_saturating_add_(error, in->tick);
    if (p->left || p->right) {
        uint64_t late_a = UINT64_MAX, late_b = UINT64_MAX, early_a = UINT64_MAX, early_b = UINT64_MAX;
        if (p->left) {                           /* P7 */
            const npuprof_map_range_ to_x = npuprof_map_range_by_slope_(&in->before, in->drift, p->x);
            late_a = npuprof_saturating_sub_(npuprof_saturating_add_(to_x.max, p->a_error), p->from_a);
            early_a = npuprof_saturating_sub_(p->from_a + p->a_error, to_x.min);
        }
        if (p->right) {                          /* P8 */
            const npuprof_map_range_ to_y = npuprof_map_range_by_slope_(&in->after, in->drift, p->y);
            late_b = npuprof_saturating_sub_(from_b + p->b_error, to_y.min);
            early_b = npuprof_saturating_sub_(npuprof_saturating_add_(to_y.max, p->b_error), from_b);
        }
        if (in->changed) {                       /* A3 does not hold */
            error = npuprof_max_(error, npuprof_max_(late_a, late_b));
            error = npuprof_max_(error, npuprof_max_(early_a, early_b));
        } else {
            error = npuprof_max_(error, npuprof_min_(late_a, late_b));
            error = npuprof_max_(error, npuprof_min_(early_a, early_b));
        }
        error = npuprof_saturating_add_(error, 1);
    }
    /* P5: c x y / T is H (x / T) (y / T). */
    const uint64_t most_host = p->host + p->a_error + p->b_error;
    const uint64_t bow = npuprof_mul_div_(npuprof_mul_div_(most_host, p->x, ticks, true), p->y, ticks, true);
    return npuprof_saturating_add_(error, npuprof_mul_div_(bow, in->drift, 1000000000, true));
}

/* npuprof_map_ticks_() with a cache, which must be zero when the anchors are others than at the last call. */
static bool npuprof_map_ticks_cached_(const npuprof_anchor_ *anchors, size_t count, uint32_t max_rate_ppb,
                                      npuprof_map_interval_ *cached, uint64_t device_ticks,
                                      uint64_t *host_ticks, uint64_t *error_ticks, bool *widened)
{
    const size_t behind = npuprof_map_count_behind_(anchors, count, device_ticks);
    const bool error_wanted = error_ticks != NULL;
    uint64_t unused;
    if (!error_wanted) error_ticks = &unused;
    *widened = false;
    *host_ticks = *error_ticks = 0;
    if (count == 0) return false;

    const npuprof_anchor_ *const a = &anchors[behind ? behind - 1 : 0], *const b = a + 1;
    if (a->device_ticks != device_ticks && count == 1) return false;
    const bool outside = behind == 0 || behind == count;
    if ((error_wanted || outside) && (!cached->known || cached->behind != behind))
        npuprof_map_interval_prepare_(cached, anchors, count, max_rate_ppb, behind);

    if (a->device_ticks == device_ticks) {
        *host_ticks = npuprof_anchor_middle_(a);
        if (error_wanted) *error_ticks = npuprof_map_error_at_anchor_(a, behind, count, cached->drift);
        return true;
    }
    if (outside) {
        npuprof_map_outside_(cached, a, device_ticks, host_ticks, error_ticks);
        return true;
    }

    npuprof_map_point_ p;
    p.host = npuprof_saturating_sub_(npuprof_anchor_middle_(b), npuprof_anchor_middle_(a));
    p.x = device_ticks - a->device_ticks;
    p.y = b->device_ticks - device_ticks;
    if (!cached->ratio.c || cached->ratio_behind != behind) {
        npuprof_ratio_prepare_(&cached->ratio, p.host, p.x + p.y);
        cached->ratio_behind = behind;
    }
    p.from_a = npuprof_ratio_times_(&cached->ratio, p.x);
    *host_ticks = npuprof_anchor_middle_(a) + p.from_a;
    if (!error_wanted) return true;
    p.a_error = npuprof_anchor_error_(a);
    p.b_error = npuprof_anchor_error_(b);
    p.left = behind - 1;
    p.right = count - behind - 1;
    *error_ticks = npuprof_map_error_between_(cached, &p);
    *widened = cached->widened;
    return true;
}

NPUPROF_API_ bool npuprof_map_ticks_(const npuprof_anchor_ *anchors, size_t count, uint32_t max_rate_ppb,
                                     uint64_t device_ticks, uint64_t *host_ticks, uint64_t *error_ticks,
                                     bool *widened)
{
    npuprof_map_interval_ cached;
    memset(&cached, 0, sizeof cached);
    return npuprof_map_ticks_cached_(anchors, count, max_rate_ppb, &cached, device_ticks, host_ticks,
                                     error_ticks, widened);
}
