#pragma once   /* SPDX-License-Identifier: MIT */
#include "../format/arena.h"
#include "../clock/host.h"
#include "image.h"
#include "time.h"

/* The rate of the trace's ticks, from the first and the last host anchor. Each anchor holds three clocks of
   the system. Two of them are compared before a rate is stated: programs that set the time of others replace
   some of them, and a system that slept makes them differ.

   What a difference says. MONOTONIC stands while the system sleeps, BOOTTIME goes on, and both are never set:
     BOOTTIME went further, REALTIME with it    the system slept, or MONOTONIC was slowed down. Which one,
                                                and if the counter slept, too, is not known:
                                                MONOTONIC counts, the difference is the error
     else, or a rate that no counter has        MONOTONIC was replaced: BOOTTIME counts
     neither moved                              ticks count as ns, and nothing is known of their rate
   This part may not know events. */

/* Less than this is no difference, and its share of the time: how well two clocks are read together. */
enum { NPUPROF_RATE_SAME_NS_ = 100000, NPUPROF_RATE_SAME_SHIFT_ = 14 };
/* No counter of a host is faster. Why so low: a clock that was made to stand goes on a little, as two clocks
   are read one after the other, and the rate that follows from it is high, not endless. */
#define NPUPROF_RATE_MAX_HZ_ UINT64_C(100000000000)

static bool npuprof_rate_same_(int64_t a, int64_t b)
{
    const int64_t off = a < b ? b - a : a - b;
    return off <= NPUPROF_RATE_SAME_NS_ + (b < 0 ? 0 : b >> NPUPROF_RATE_SAME_SHIFT_);
}

/* Compares the clocks: sets im->doubt, and im->doubt_ns, how far they are apart. Returns the ns that passed
   between the anchors. */
static int64_t npuprof_rate_compare_clocks_(npuprof_image_ *im)
{
    const npuprof_host_anchor_ *const first = &im->h->first, *const closing = &im->closing;
    const int64_t ns = closing->monotonic_ns - first->monotonic_ns, boot = closing->boot_ns - first->boot_ns;
    const int64_t unix_ns = closing->unix_ns - first->unix_ns;
    im->doubt = NPUPROF_DOUBT_NONE_;
    im->doubt_ns = 0;
    if (im->h->clock_source == NPUPROF_CLOCK_USER || closing->ticks <= first->ticks) return ns;
    if (ns > 0 && npuprof_rate_same_(ns, boot)) return ns;
    im->doubt_ns = (uint64_t)(ns < boot ? boot - ns : ns - boot);
    im->doubt = boot <= 0 ? NPUPROF_DOUBT_STANDS_
        : ns > 0 && boot > ns && npuprof_rate_same_(unix_ns, boot) &&
          npuprof_scale_(closing->ticks - first->ticks, 1000000000u, (uint64_t)ns) < NPUPROF_RATE_MAX_HZ_
        ? NPUPROF_DOUBT_SLEPT_
        : NPUPROF_DOUBT_REPLACED_;
    return im->doubt == NPUPROF_DOUBT_REPLACED_ ? boot : ns;
}

/* Sets the image's rate: ns a tick. */
static void npuprof_rate_find_(npuprof_image_ *im)
{
    const npuprof_header_ *const h = im->h;
    const int64_t ns = npuprof_rate_compare_clocks_(im);
    if (h->clock_hz) npuprof_image_set_rate_(im, 1000000000u, h->clock_hz);
    else if (im->closing.ticks > h->first.ticks && ns > 0)
        npuprof_image_set_rate_(im, (uint64_t)ns, im->closing.ticks - h->first.ticks);
    else npuprof_image_set_rate_(im, 1, 1);
}
