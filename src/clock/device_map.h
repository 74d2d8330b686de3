#pragma once   /* SPDX-License-Identifier: MIT */
#include "../public/macros.h"
#include "../numbers/time.h"
#include <string.h>

/* Maps device ticks to host ticks, with an error bound that is true and that no method can improve much.

   Data: an npuprof_map_ with neighbouring reads of one device and epoch, ascending, which the caller fills;
   what was computed of them stays there. This part knows no image and no thread.

   ---- The bound, step by step

   Notation: x device ticks; L(x) the true host ticks at which the counter began to show x. It never
   decreases. A slope is one of L.

   Assumptions:
     C1  A read that showed x is an upper point (x, after): L(x) <= after; and a lower point (x + 1, before):
         L(x + 1) >= before. The two are kept apart. `after` is one tick more than the host's clock showed: a
         clock shows a tick until the next.
     C2  In any stretch of D host ticks the slope stays in [c (1 - r), c (1 + r)] for some c, where
         r = max_rate_ppb / 10^9 * max(1, D / window).

   M1  In a window of points, v = L(x) and c are unknown. For each upper point (xi, hi), lower point (xi, li):
          xi <= x:  v <= hi + c (1 + r) (x - xi)      v >= li + c (1 - r) (x - xi)        by C2
          xi >  x:  v <= hi - c (1 - r) (xi - x)      v >= li - c (1 + r) (xi - x)
       and between each lower and each upper point:
          lj - hi <= c (1 + r) (xj - xi)              hj - li >= c (1 - r) (xj - xi)
   M2  The second part of M1 gives the range of c. If it is empty, C2 does not hold there.
   M3  U(x): the largest v over all c, a concave maximum of the minimum of lines. Lo(x): the smallest. The
       true (c, v) fits M1, so Lo(x) <= L(x) <= U(x). One more point can only bring them closer. They are the
       best:
       for a c that M2 allows, the minimum of the lines is itself a possible L (McShane).
   M4  The minimum of any two of the lines is above the minimum of all. So a search for the maximum may end
       where it likes: what it has is true.
   M5  M3 is solved at each point, in a window of up to 8 neighbours on each side: a node. Between two nodes A
       and B of one side, T apart, x behind A: let f, g be the mean slopes from A to x and from x to B.
          L(x) = chord of L + (f - g) x (T - x) / T,  |f - g| <= 2 r c                    by C2 from A to B
          c T <= H / (1 - r),  H >= L(B) - L(A)
       So L(x) <= chord of U + bow, and L(x) >= chord of Lo - bow, where
          bow = 2 r / (1 - r) H (x / T) (1 - x / T)
   M6  Before the first node and behind the last one M3 itself holds, with the D that reaches to x.
   M7  A stamp that shows s is in [Lo(s), U(s + 1)]. Where no point bounds it, its submission and
       its record do: `since` and `until`. The middle is the answer.
   M8  Where C2 does not hold, only L's order counts: the bound is from the read before to the read behind,
       and the middle would be the same for all stamps between them. There a stamp lies on a line through the
       middle, as steep as the nominal rate says, at most as the time between the two reads allows. So a span
       of the device has a length. The error is the distance to the farther end.

   What contradicts C1 and C2 is in clock/evidence.h.

   Why floating point: distances from the nearest point have less than 53 bits over days, and each result is
   moved outwards by more than what is rounded. */

enum { NPUPROF_MAP_SIDE_ = 8, NPUPROF_MAP_WINDOW_ = 2 * NPUPROF_MAP_SIDE_ + 2, NPUPROF_MAP_POINTS_ = 64,
       NPUPROF_MAP_RECENT_ = 16, NPUPROF_MAP_STEPS_ = 8, NPUPROF_MAP_READS_ = 6, NPUPROF_MAP_MOMENTS_ = 3,
       NPUPROF_MAP_LATE_ = 32, NPUPROF_MAP_IN_A_ROW_ = 3, NPUPROF_MAP_FIRST_ = 3 };

/* The two best reads of some time: the one that is the best upper point, and the best lower one. */
typedef struct npuprof_map_point_ { uint64_t upper, upper_host, lower, lower_host; } npuprof_map_point_;

typedef struct npuprof_map_ {
    npuprof_map_rate_ rate;
    bool by_order;                         /* E3: all gaps are open */
    uint32_t count;
    npuprof_map_point_ point[NPUPROF_MAP_POINTS_];
    bool open[NPUPROF_MAP_POINTS_];        /* the gap before the point: E1, E2, E4, E6 */
    bool known[2][NPUPROF_MAP_POINTS_];    /* of the lower side, of the upper one: `node` is */
    double node[2][NPUPROF_MAP_POINTS_];   /* U or Lo there, from the point's own host ticks on */
    uint32_t at[2];                        /* where the last stamp was found */
} npuprof_map_;

/* Points of a window as distances from one place, in host ticks by the slope of their chord; `rest`: by how
   much the host ticks differ from that. c of C2 is (1 + k) times the chord's slope. */
typedef struct npuprof_map_window_ {
    uint32_t count;
    double slope, r, min_k, max_k, span;
    double at[2][NPUPROF_MAP_WINDOW_], rest[2][NPUPROF_MAP_WINDOW_];
} npuprof_map_window_;

static npuprof_map_point_ npuprof_map_point_of_(const npuprof_anchor_ *a)
{
    npuprof_map_point_ p;
    p.upper = p.lower = a->device_ticks;
    p.upper_host = npuprof_saturating_add_(a->host_after, 1);
    p.lower_host = a->host_before;
    return p;
}

static double npuprof_map_distance_(uint64_t from, uint64_t to)
{
    return to >= from ? (double)(to - from) : -(double)(from - to);
}

/* The device ticks of a point: of its upper side, or of its lower one (C1). */
static uint64_t npuprof_map_ticks_at_(const npuprof_map_point_ *p, int side)
{
    return side ? p->upper : npuprof_saturating_add_(p->lower, 1);
}

static uint64_t npuprof_map_host_at_(const npuprof_map_point_ *p, int side)
{
    return side ? p->upper_host : p->lower_host;
}

/* Neighbouring points, seen from one side of one of them, `ahead` device ticks outside of it. */
typedef struct npuprof_map_view_ {
    const npuprof_map_rate_ *rate;
    const npuprof_map_point_ *points, *from;
    uint32_t count;
    int side;
    double ahead;
} npuprof_map_view_;

/* Fills a window with what is seen. False: the points give no rate, or contradict C2 (M2). */
static bool npuprof_map_fill_(npuprof_map_window_ *w, const npuprof_map_view_ *view)
{
    const npuprof_map_point_ *const points = view->points, *const from = view->from;
    const uint32_t count = view->count;
    const npuprof_map_point_ *const last = points + count - 1;
    const double ahead = view->ahead < 0 ? -view->ahead : view->ahead;
    const double ticks = npuprof_map_distance_(points->upper, last->upper);
    const double host = npuprof_map_distance_(points->upper_host, last->upper_host);
    if (count < 2 || ticks < 1 || host < 1) return false;
    w->count = count;
    w->slope = host / ticks;
    w->span = npuprof_map_distance_(points->lower_host, last->upper_host) + ahead * w->slope;
    const double windows = w->span / (double)npuprof_max_(view->rate->window, 1);
    w->r = (double)view->rate->max_rate_ppb * 1e-9 * (windows > 1 ? windows : 1);
    if (w->r > 0.5) w->r = 0.5;
    for (uint32_t i = 0; i < count; i++)
        for (int s = 0; s < 2; s++) {
            w->at[s][i] = w->slope * npuprof_map_distance_(npuprof_map_ticks_at_(from, view->side),
                                                           npuprof_map_ticks_at_(&points[i], s));
            w->rest[s][i] = npuprof_map_distance_(npuprof_map_host_at_(from, view->side),
                                                  npuprof_map_host_at_(&points[i], s)) - w->at[s][i];
        }
    const double slack = w->span * 8e-15;
    w->min_k = -1;
    w->max_k = 1e9;
    for (uint32_t i = 0; i < count; i++)
        for (uint32_t j = 0; j < count; j++) {
            const double behind = w->at[0][j] - w->at[1][i], before = w->at[1][j] - w->at[0][i];
            const double least = behind > 0
                ? ((w->rest[0][j] - w->rest[1][i] - slack) / behind + 1) / (1 + w->r) - 1 : -1;
            const double most = before > 0
                ? ((w->rest[1][j] - w->rest[0][i] + slack) / before + 1) / (1 - w->r) - 1 : 1e9;
            if (least > w->min_k) w->min_k = least;
            if (most < w->max_k) w->max_k = most;
        }
    return w->min_k <= w->max_k;
}

/* A line of M1 over k: its value is base + k slope. Of the lower side all signs are turned. */
typedef struct npuprof_map_line_ { double base, slope; } npuprof_map_line_;

/* The lowest line at k, for the place that many host ticks from where the window is seen from. */
static npuprof_map_line_ npuprof_map_lowest_(const npuprof_map_window_ *w, int side, double place, double k)
{
    const double sign = side ? 1 : -1;
    npuprof_map_line_ best = { 0, 0 };
    for (uint32_t i = 0; i < w->count; i++) {
        const double d = place - w->at[side][i];
        npuprof_map_line_ line;
        line.base = sign * w->rest[side][i] + (d < 0 ? -d : d) * w->r;
        line.slope = sign * d * (1 + (d < 0 ? -sign : sign) * w->r);
        if (!i || line.base + line.slope * k < best.base + best.slope * k) best = line;
    }
    return best;
}

/* M3: U at that place, or Lo, as a distance from the chord. */
static double npuprof_map_solve_(const npuprof_map_window_ *w, int side, double place)
{
    npuprof_map_line_ left = npuprof_map_lowest_(w, side, place, w->min_k);
    npuprof_map_line_ right = npuprof_map_lowest_(w, side, place, w->max_k);
    double v = left.base + left.slope * w->min_k;
    if (left.slope > 0) {
        v = right.base + right.slope * w->max_k;
        for (int i = 0; right.slope < 0 && i < 2 * NPUPROF_MAP_WINDOW_; i++) {
            const double k = (right.base - left.base) / (left.slope - right.slope);
            v = left.base + left.slope * k;
            const npuprof_map_line_ lowest = npuprof_map_lowest_(w, side, place, k);
            if (lowest.base + lowest.slope * k >= v - 1e-3) break;
            if (lowest.slope > 0) left = lowest;
            else right = lowest;
            if (right.slope >= 0) v = right.base;          /* a point's own line at the point */
        }
    }
    return side ? v : -v;
}

/* The neighbours of points a to b: up to 8 on each side that are within half a window, at least one; none
   behind an open gap. */
static void npuprof_map_neighbours_(const npuprof_map_ *m, uint32_t a, uint32_t b, uint32_t *from,
                                    uint32_t *to)
{
    const npuprof_map_point_ *const p = m->point;
    const uint64_t half = m->rate.window / 2;
    for (*from = a; *from > 0 && a - *from < NPUPROF_MAP_SIDE_ && !m->open[*from]; --*from)
        if (*from < a && npuprof_saturating_sub_(p[a].lower_host, p[*from - 1].upper_host) > half) break;
    for (*to = b; *to + 1 < m->count && *to - b < NPUPROF_MAP_SIDE_ && !m->open[*to + 1]; ++*to)
        if (*to > b && npuprof_saturating_sub_(p[*to + 1].lower_host, p[b].upper_host) > half) break;
}

/* Solves M3 for what is seen, as host ticks from the point's own on. False: there is no bound but L's
   order. */
static bool npuprof_map_among_(const npuprof_map_view_ *view, double *v)
{
    npuprof_map_window_ w;
    if (!npuprof_map_fill_(&w, view)) return false;
    *v = view->ahead * w.slope + npuprof_map_solve_(&w, view->side, view->ahead * w.slope);
    return true;
}

/* The same among the neighbours of point i. Outside of all points the better one of two: with one more point
   on each side, too. Why: a pair of reads close together says nothing of the rate. */
static bool npuprof_map_beside_(const npuprof_map_ *m, int side, uint32_t i, double ahead, double *v)
{
    uint32_t from, to;
    double wide = 0;
    npuprof_map_neighbours_(m, i, i, &from, &to);
    npuprof_map_view_ view = { &m->rate, m->point + from, m->point + i, to - from + 1, side, ahead };
    const bool found = npuprof_map_among_(&view, v);
    const bool before = from > 0 && !m->open[from], behind = to + 1 < m->count && !m->open[to + 1];
    if (!(ahead < 0 || ahead > 0) || !(before || behind)) return found;
    view.points -= before;
    view.count += (uint32_t)before + behind;
    if (!npuprof_map_among_(&view, &wide)) return found;
    if (!found || (side ? wide < *v : wide > *v)) *v = wide;
    return true;
}

static bool npuprof_map_node_(npuprof_map_ *m, int side, uint32_t i)
{
    if (!m->known[side][i]) m->known[side][i] = npuprof_map_beside_(m, side, i, 0, &m->node[side][i]);
    return m->known[side][i];
}

/* M5, M6: the bound of one side at x, as host ticks from point i's on, the last one at or before x or else
   the first. False: C2 says nothing there. */
static bool npuprof_map_steady_(npuprof_map_ *m, int side, uint32_t i, uint64_t x, double *v)
{
    const npuprof_map_point_ *const p = &m->point[i];
    const uint64_t a = npuprof_map_ticks_at_(p, side);
    if ((x < a && m->open[0]) || (x > a && i + 1 == m->count && m->rate.is_unsteady)) return false;
    if (x <= a || i + 1 == m->count)
        return npuprof_map_beside_(m, side, i, npuprof_map_distance_(a, x), v);
    if (m->open[i + 1] || !npuprof_map_node_(m, side, i) || !npuprof_map_node_(m, side, i + 1)) return false;
    const npuprof_map_point_ *const q = p + 1;
    const double ticks = npuprof_map_distance_(a, npuprof_map_ticks_at_(q, side));
    const double host = npuprof_map_distance_(npuprof_map_host_at_(p, side), npuprof_map_host_at_(q, side));
    const double begin = m->node[side][i], end = host + m->node[side][i + 1];
    /* H of M5, for whichever of a point's two reads was the later one. */
    const uint64_t apart = npuprof_max_(p->lower, p->upper) - npuprof_min_(p->lower, p->upper) + 1;
    const double longest =
        npuprof_map_distance_(p->lower_host, q->upper_host) * (1 + 2 * (double)apart / ticks);
    const double windows = longest / (double)npuprof_max_(m->rate.window, 1);
    const double part = npuprof_map_distance_(a, x) / ticks;
    double r = (double)m->rate.max_rate_ppb * 1e-9 * (windows > 1 ? windows : 1);
    if (r > 0.5) r = 0.5;
    const double bow = 2 * r / (1 - r) * longest * part * (1 - part);
    *v = begin + (end - begin) * part + (side ? bow : -bow);
    return true;
}

/* The bound by the order of L alone: of the last point at or before x, or of the first one at or behind it.
   False: there is none. */
static bool npuprof_map_by_order_(const npuprof_map_ *m, int side, uint32_t i, uint64_t x, uint64_t *host)
{
    const uint64_t at = npuprof_map_ticks_at_(&m->point[i], side);
    if (side ? at < x && ++i == m->count : at > x) return false;
    *host = npuprof_map_host_at_(&m->point[i], side);
    return true;
}

/* Host ticks and a distance, moved outwards by what is rounded. */
static uint64_t npuprof_map_outwards_(uint64_t host, double v, int side)
{
    const double slack = 0.01 + (v < 0 ? -v : v) * 8e-15;
    double size = side ? v + slack : v - slack;
    const bool is_back = size < 0;
    if (is_back) size = -size;
    if (size > 9e18) return is_back ? 0 : UINT64_MAX;
    const uint64_t whole = (uint64_t)size;
    if (is_back) return npuprof_saturating_sub_(host, whole + !side);
    return npuprof_saturating_add_(host, whole + (side ? 1 : 0));
}

/* Lo(x), or U(x). False: nothing bounds it. */
static bool npuprof_map_side_(npuprof_map_ *m, int side, uint64_t x, bool by_order, uint64_t *host)
{
    uint32_t i = m->at[side] < m->count ? m->at[side] : 0;
    double v;
    if (npuprof_map_ticks_at_(&m->point[i], side) > x) i = 0;
    while (i + 1 < m->count && npuprof_map_ticks_at_(&m->point[i + 1], side) <= x) i++;
    m->at[side] = i;
    if (!by_order && npuprof_map_steady_(m, side, i, x, &v)) {
        const uint64_t at = npuprof_map_outwards_(npuprof_map_host_at_(&m->point[i], side), v, side);
        if (at && at != UINT64_MAX) {
            *host = at;
            return true;
        }                                  /* the reads leave any rate */
    }
    return npuprof_map_by_order_(m, side, i, x, host);
}

/* What a device's stamp says, in units of so many device ticks. It was taken between two host ticks; 0 and
   UINT64_MAX: not known. */
typedef struct npuprof_map_stamped_ { uint64_t ticks, unit, since, until; } npuprof_map_stamped_;

/* The point behind which a stamp lies whose bounds were just found, if the gap there is open; else NULL. One
   that shows what a read did may lie before it or behind it: behind it if it was submitted then. */
static const npuprof_map_point_ *npuprof_map_gap_(const npuprof_map_ *m, const npuprof_map_stamped_ *stamp,
                                                  uint64_t next, bool by_order)
{
    const uint32_t i = m->at[0], j = m->at[1];
    const bool is_low = i + 1 < m->count && m->point[i].lower < stamp->ticks && (by_order || m->open[i + 1]);
    const bool is_high = j + 1 < m->count && m->point[j].upper < next && (by_order || m->open[j + 1]);
    const bool is_behind = is_high && m->point[j].lower_host <= stamp->since;
    return is_low && !is_behind ? &m->point[i] : is_high ? &m->point[j] : NULL;
}

/* M8: the host ticks of a stamp that lies behind this point. Why between the inner sides of both: what lies
   before the gap, or behind it, keeps its order. */
static uint64_t npuprof_map_inside_(const npuprof_map_rate_ *rate, const npuprof_map_point_ *a,
                                    uint64_t ticks)
{
    const npuprof_map_point_ *const b = a + 1;
    const double all = npuprof_map_distance_(a->upper, b->lower);
    const double host = npuprof_map_distance_(a->upper_host, b->lower_host);
    if (all < 1 || host < 1 || !rate->hz) return a->lower_host + (b->upper_host - a->lower_host) / 2;
    const double nominal = (double)rate->second / (double)rate->hz, most = host / all;
    const double x = npuprof_map_distance_(a->upper, npuprof_max_(ticks, a->upper));
    return a->upper_host + (uint64_t)(host / 2 + (nominal < most ? nominal : most) * (x - all / 2));
}

/* M7. since and until count only where no point bounds the stamp from that side. False: the points do not
   suffice. */
static bool npuprof_map_stamp_(npuprof_map_ *m, const npuprof_map_stamped_ *stamp, uint64_t *host,
                               uint64_t *error)
{
    const uint64_t ticks = stamp->ticks, next = npuprof_saturating_add_(ticks, npuprof_max_(stamp->unit, 1));
    uint64_t low = stamp->since, high = stamp->until;
    *host = *error = 0;
    if (!m->count) return false;
    if (m->count == 1 && m->point->upper == ticks && m->point->lower == ticks && !m->rate.is_unsteady) {
        low = m->point->lower_host;
        high = m->point->upper_host;
    } else if ((!npuprof_map_side_(m, 0, ticks, m->by_order, &low) && !stamp->since) ||
               (!npuprof_map_side_(m, 1, next, m->by_order, &high) && stamp->until == UINT64_MAX)) {
        return false;
    }
    /* Two windows that contradict each other, unseen by E1. */
    const bool by_order = m->by_order || low > high;
    if (low > high && (!npuprof_map_side_(m, 0, ticks, true, &low) ||
                       !npuprof_map_side_(m, 1, next, true, &high))) return false;
    const npuprof_map_point_ *const gap = npuprof_map_gap_(m, stamp, next, by_order);
    *host = gap ? npuprof_map_inside_(&m->rate, gap, ticks) : low + npuprof_saturating_sub_(high, low) / 2;
    *host = npuprof_max_(low, npuprof_min_(*host, high));
    *error = npuprof_max_(*host - low, npuprof_saturating_sub_(high, *host));
    return true;
}
