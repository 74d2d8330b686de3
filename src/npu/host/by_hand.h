#pragma once   /* SPDX-License-Identifier: MIT */
#include "../../public/macros.h"
#include "../../numbers/time.h"
#include "../../record/args.h"
#include "../../record/device_span.h"
#include "../types.h"
#include "../api.h"
#include "../mmio.h"
#include "../clock.h"
#include "pushed.h"
#include "jobs.h"
#include "match.h"
#include "draw.h"
#include "times.h"

/* Records that the driver decodes itself: the same matching, arrows and counts as those of a ring. Owns
   nothing. May not know what a record of such a device looks like. */

/* The latest device time that a stamp may show now, and at the least; UINT64_MAX: nobody can tell. Under the
   lock. */
static uint64_t npuprof_npu_latest_(const npuprof_npu *npu, uint64_t *least)
{
    const uint64_t now = npuprof_ticks_();
    uint64_t min, max;
    *least = 0;
    if (!npu->has_last_ || npu->idle_ || !npuprof_npu_predict_since_(npu, now, now, &min, &max))
        return UINT64_MAX;
    *least = npu->last_.device_ticks + min;
    return npuprof_saturating_add_(npu->last_.device_ticks, max);
}

NPUPROF_API_ uint64_t npuprof_npu_extend_stamp(npuprof_npu *npu, uint64_t raw, unsigned bits, uint64_t after)
{
    const uint64_t mask = npuprof_npu_mask_(bits ? bits : 64);
    uint64_t now = after, least;
    if (!npu->number_) return raw;
    if (npu->desc_.counter.counts_down) raw = ~raw;
    raw = (raw + (uint64_t)npu->stamp_offset_) & mask;
    if (mask == UINT64_MAX) return raw;
    if (after) return after + ((raw - after) & mask);
    if (!npuprof_npu_lock_(npu)) return raw;
    now = npuprof_npu_latest_(npu, &least);
    /* Nothing is predicted, or not whether the stamp is of this period or the one before: a read tells. */
    if (now == UINT64_MAX || now - ((now - raw) & mask) > least) {
        npuprof_anchor_ sample;
        const npuprof_result result = npuprof_npu_read_locked_(npu, &sample);
        if (result != NPUPROF_ERR_NPU_NO_ANCHOR) now = sample.device_ticks;
        else if (now == UINT64_MAX) now = raw;
    }
    npuprof_npu_unlock_(npu);
    const uint64_t back = (now - raw) & mask;
    return back > now ? raw : now - back;
}

/* A record of a job. */
typedef struct npuprof_npu_by_hand_ {
    uint64_t job;
    unsigned pe;
    const char *name, *category;
    npuprof_args args;
    bool last;
    uint64_t start, end;                 /* device ticks, if there is no `host` */
    const npuprof_npu_host_times *host;
    uint64_t seen;                       /* host ticks when it was handed over */
} npuprof_npu_by_hand_;

/* Whether device ticks can be those of a record that is there now. */
static bool npuprof_npu_are_possible_(npuprof_npu *npu, uint64_t start, uint64_t end)
{
    if (start > end || !npuprof_npu_lock_(npu)) return false;
    uint64_t least;
    const uint64_t latest = npuprof_npu_latest_(npu, &least);
    npuprof_npu_unlock_(npu);
    return end <= latest;
}

/* Its device ticks as the times of a drawing. Returns NPUPROF_NPU_PLACED_, or why it is lost. */
static int npuprof_npu_device_times_(npuprof_npu *npu, const npuprof_npu_by_hand_ *r,
                                     const npuprof_npu_submission_ *of, npuprof_npu_drawing_ *d)
{
    d->flags = NPUPROF_STAMP_DEVICE;
    d->start = r->start;
    d->end = r->end;
    const uint32_t epoch = NPUPROF_LOAD_(&npu->epoch_);
    const npuprof_anchor_ job = { r->start, of->link.ticks, r->seen };
    /* Why in this order: what is not possible must not teach the clock. */
    bool good = npuprof_npu_are_possible_(npu, r->start, r->end);
    if (good && of->known) good = npuprof_npu_bracket_job_(npu, epoch, &job, r->end, 0);
    d->epoch = NPUPROF_LOAD_(&npu->epoch_);    /* what it told may have begun one */
    if (!good) return NPUPROF_RECORDS_STAMPS;
    /* Where the counter may stand or begin anew, only a submission tells which epoch a stamp is of. */
    const bool doubtful = d->epoch && npuprof_npu_may_stand_(npu) && (!of->known || of->epoch != d->epoch);
    return doubtful ? (int)NPUPROF_RECORDS_EPOCH : (int)NPUPROF_NPU_PLACED_;
}

/* A time of the host as its ticks. *clock: becomes at least their error. */
static uint64_t npuprof_npu_ticks_at_ns_(int64_t ns, uint64_t *clock)
{
    uint64_t error;
    const uint64_t ticks = npuprof_ticks_at_ns_(ns, &error);
    *clock = npuprof_max_(*clock, error);
    return ticks;
}

/* The same of its times on the host's clock. */
static int npuprof_npu_clock_times_(const npuprof_npu *npu, const npuprof_npu_by_hand_ *r,
                                    const npuprof_npu_submission_ *of, npuprof_npu_drawing_ *d)
{
    const npuprof_npu_host_times *const t = r->host;
    const uint64_t length = t->duration_ns;
    uint64_t clock = 0, after = r->seen, since = of->known ? of->link.ticks : npu->open_host_;
    if (t->not_after_ns) after = npuprof_min_(after, npuprof_npu_ticks_at_ns_(t->not_after_ns, &clock));
    if (t->not_before_ns) since = npuprof_max_(since, npuprof_npu_ticks_at_ns_(t->not_before_ns, &clock));
    d->flags = NPUPROF_STAMP_HOST;
    d->end = npuprof_npu_ticks_at_ns_(t->end_ns, &clock);
    d->start = since;
    if (length) d->start = npuprof_npu_ticks_at_ns_(t->end_ns - (int64_t)length, &clock);
    else if (t->start_ns) d->start = npuprof_npu_ticks_at_ns_(t->start_ns, &clock);
    if (d->end > after && d->end - after <= clock) d->end = after;
    if (d->start > d->end && d->start - d->end <= 2 * clock) d->start = d->end;
    if (d->start > d->end || d->end > r->seen) return NPUPROF_RECORDS_STAMPS;
    /* A known length moves as a whole; else each end may lie wherever the job was. */
    uint64_t error = npuprof_max_(npuprof_saturating_sub_(length ? d->start : d->end, since),
                                  npuprof_saturating_sub_(after, length ? d->end : d->start));
    const int64_t end_ns = t->end_ns + (int64_t)npuprof_min_(t->error_ns, (uint64_t)1 << 60);
    if (t->error_ns) error = npuprof_saturating_sub_(npuprof_npu_ticks_at_ns_(end_ns, &clock), d->end);
    d->epoch = npuprof_host_error_code_(error + clock + 1);
    return NPUPROF_NPU_PLACED_;
}

/* Finds the submission of a record, and draws or counts it. Under the queue lock. Returns whether the
   submission was found. */
static bool npuprof_npu_draw_by_hand_(npuprof_npu *npu, const npuprof_npu_by_hand_ *r)
{
    /* They name no ring: a number is matched in the scope of their PE, if the rings have scopes. */
    const bool is_scoped = npu->queue_count_ && npu->queues_[0].is.job_scope != NPUPROF_NPU_SCOPE_DEVICE;
    const npuprof_npu_lookup_ lookup = { r->job != 0, false, r->job, UINT64_MAX, r->pe, is_scoped, r->pe,
                                         false, 0, r->last, false };
    npuprof_npu_drawing_ d;
    npuprof_npu_submission_ of;
    size_t n = NPUPROF_NPU_OWN_ARGS_;
    (void)npuprof_npu_take_submission_(npu, &lookup, &of);
    if (!npuprof_npu_draws_(&of)) return of.known;
    if (r->job) d.args[n++] = npuprof_uint_("job", r->job);
    for (size_t i = 0; i < r->args.count && n < NPUPROF_NPU_ROOM_; i++) d.args[n++] = r->args.items[i];
    d.arg_count = n - NPUPROF_NPU_OWN_ARGS_;
    d.lane = r->pe;
    d.name = r->name;
    d.category = r->category;
    d.takes_arrow = r->last;
    d.texts_stay = d.name_stays = false;
    const int why = r->host ? npuprof_npu_clock_times_(npu, r, &of, &d)
                            : npuprof_npu_device_times_(npu, r, &of, &d);
    if (npuprof_npu_is_placed_(npu, why)) npuprof_npu_draw_(npu, &d, &of);
    return of.known;
}

static bool npuprof_npu_take_by_hand_(npuprof_npu *npu, npuprof_npu_by_hand_ *r)
{
    r->seen = npuprof_ticks_();
    if (!npu->number_) return false;
    if (!npuprof_npu_lock_queue_(npu)) {
        npuprof_count_lost_(NPUPROF_LOST_BUSY, 1);
        return false;
    }
    const bool found = npuprof_npu_draw_by_hand_(npu, r);
    npuprof_npu_end_pass_(npu, r->last);
    return found;
}

NPUPROF_API_ bool npuprof_npu_complete(npuprof_npu *npu, uint64_t job, unsigned pe, const char *name,
                                       const char *cat, uint64_t start, uint64_t end, npuprof_args args,
                                       bool last)
{
    npuprof_npu_by_hand_ r = { job, pe, name, cat, args, last, start, end, NULL, 0 };
    return npuprof_npu_take_by_hand_(npu, &r);
}

NPUPROF_API_ bool npuprof_npu_complete_times(npuprof_npu *npu, uint64_t job, unsigned pe, const char *name,
                                             const char *cat, npuprof_npu_host_times times, npuprof_args args,
                                             bool last)
{
    npuprof_npu_by_hand_ r = { job, pe, name, cat, args, last, 0, 0, &times, 0 };
    if (!times.end_ns) times.end_ns = times.not_after_ns ? times.not_after_ns : npuprof_now_ns();
    return npuprof_npu_take_by_hand_(npu, &r);
}

NPUPROF_API_ bool npuprof_npu_complete_host(npuprof_npu *npu, uint64_t job, unsigned pe, const char *name,
                                            const char *cat, int64_t start_ns, int64_t end_ns,
                                            npuprof_args args, bool last)
{
    npuprof_npu_host_times times = { 0, 0, 0, 0, 0, 0 };
    times.start_ns = start_ns;
    times.end_ns = end_ns;
    return npuprof_npu_complete_times(npu, job, pe, name, cat, times, args, last);
}

NPUPROF_API_ void npuprof_npu_lost(npuprof_npu *npu, uint64_t count)
{
    uint64_t counts[NPUPROF_RECORDS_COUNT] = { 0 };
    counts[NPUPROF_RECORDS_DRIVER] = count;
    npuprof_npu_store_counts_(npu, counts);      /* Why no lock: a drain may have it, and call the driver */
}

NPUPROF_API_ void npuprof_npu_instant(npuprof_npu *npu, unsigned pe, const char *name, const char *cat,
                                      uint64_t ticks, npuprof_args args)
{
    if (!npu->number_ || !NPUPROF_OPEN_(1)) return;
    const npuprof_device_event_ event = {
        npu->number_, NPUPROF_LOAD_(&npu->epoch_), pe, NPUPROF_STAMP_INSTANT, cat ? cat : "NPU", name,
        ticks, ticks, NULL
    };
    npuprof_device_span_(&event, args);
}

NPUPROF_API_ void npuprof_npu_value(npuprof_npu *npu, const char *name, uint64_t value, uint64_t ticks)
{
    if (!npu->number_ || !NPUPROF_OPEN_(1)) return;
    const npuprof_device_event_ event = {
        npu->number_, NPUPROF_LOAD_(&npu->epoch_), 0, NPUPROF_STAMP_VALUE, "NPU", name, ticks, value, NULL
    };
    npuprof_device_span_(&event, PROF_NO_ARGS);
}
