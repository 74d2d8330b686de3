#pragma once   /* SPDX-License-Identifier: MIT */
#include "../../public/macros.h"
#include "../../record/args.h"
#include "../../record/device.h"
#include "../../record/device_span.h"
#include "../types.h"
#include "../mmio.h"
#include "../clock.h"
#include "pmu.h"
#include "jobs.h"

/* Draws what a device did, whoever decoded it: a ring's records, those that were fed, those by hand. Its
   times are extended already. Owns counts_ (npuprof_npu in types.h), under the queue lock. May not know where
   a record came from. */

/* Arguments that a drawing may have beside those of its record. */
enum { NPUPROF_NPU_OWN_ARGS_ = 2, NPUPROF_NPU_LIST_ = NPUPROF_DEVICE_KEYS_,
       NPUPROF_NPU_ROOM_ = (int)NPUPROF_DEVICE_KEYS_ - (int)NPUPROF_NPU_USAGE_ARGS_ };

/* A decoded record with extended times. */
typedef struct npuprof_npu_drawing_ {
    uint64_t start, end;                 /* ticks of `epoch`, or host ticks (NPUPROF_STAMP_HOST) */
    uint32_t epoch;                      /* with host ticks: npuprof_host_error_code_() of their error */
    unsigned flags;                      /* NPUPROF_STAMP_DEVICE, _HOST; with _INSTANT or _VALUE no span */
    unsigned lane;                       /* the PE */
    const char *name;                    /* NULL: that of its submission */
    const char *category;                /* NULL: "NPU" */
    bool texts_stay;                     /* category and keys are the description's: they stay, and the
                                            arguments are integers */
    bool name_stays;                     /* so does the name. Only with texts_stay */
    bool takes_arrow;                    /* it stands for the job, not for a part of it */
    npuprof_arg args[NPUPROF_NPU_LIST_]; /* the first NPUPROF_NPU_OWN_ARGS_ are left free for the drawing, and
                                            those from NPUPROF_NPU_ROOM_ on */
    size_t arg_count;                    /* of those after them */
} npuprof_npu_drawing_;

/* Whether a record of that submission is to be drawn now. Records of jobs submitted while recording was on
   are drawn even if it is off now; others only while it is on. */
static bool npuprof_npu_draws_(const npuprof_npu_submission_ *of)
{
    return !of->muted && (of->known || NPUPROF_OPEN_(1));
}

/* Counts records of the device by NPUPROF_RECORDS_*: until npuprof_npu_end_pass_(), in npuprof_npu. */
static void npuprof_npu_count_records_(npuprof_npu *npu, unsigned why, uint64_t count)
{
    npu->counts_[why] += count;
}

enum { NPUPROF_NPU_PLACED_ = -1 };       /* else NPUPROF_RECORDS_*, why a record is lost */

/* Whether its times are known; else it is counted. */
static bool npuprof_npu_is_placed_(npuprof_npu *npu, int why)
{
    if (why != NPUPROF_NPU_PLACED_) npuprof_npu_count_records_(npu, (unsigned)why, 1);
    return why == NPUPROF_NPU_PLACED_;
}

/* Draws it. of: whose it is, as npuprof_npu_take_submission_() found it; it is to be drawn. */
static void npuprof_npu_draw_(npuprof_npu *npu, npuprof_npu_drawing_ *d,
                              const npuprof_npu_submission_ *of)
{
    size_t first = NPUPROF_NPU_OWN_ARGS_;
    if (!(d->flags & NPUPROF_STAMP_HOST) && d->epoch > 0xFFFF) {   /* 16 bits in the image */
        npuprof_npu_count_records_(npu, NPUPROF_RECORDS_EPOCH, 1);
        return;
    }
    const bool arrow = d->takes_arrow && of->has_arrow;
    if (of->known && d->takes_arrow && npu->desc_.cpu_ns)
        d->arg_count += npuprof_npu_usage_args_(&of->link, d->args + first + d->arg_count);
    if (of->known) d->args[--first] = npuprof_int_("stream", (int64_t)of->stream);
    if (of->known && of->link.correlation)
        d->args[--first] = npuprof_uint_("correlation", of->link.correlation);
    const npuprof_device_event_ event = {
        npu->number_, d->epoch, d->lane, d->flags, d->category ? d->category : "NPU",
        d->name ? d->name : of->name, d->start, d->end, arrow ? &of->link : NULL
    };
    const npuprof_args args = npuprof_args_(d->args + first, NPUPROF_NPU_OWN_ARGS_ - first + d->arg_count);
    if (d->texts_stay) npuprof_device_record_(&npu->texts_, d->name_stays, &event, args);
    else npuprof_device_span_(&event, args);
}

/* Adds counts[NPUPROF_RECORDS_COUNT] to those in the arena. Any thread, in a signal handler, too. */
static void npuprof_npu_store_counts_(const npuprof_npu *npu, const uint64_t *counts)
{
    uint64_t lost = 0, any = 0;
    for (unsigned i = 0; i < NPUPROF_RECORDS_COUNT; i++) {
        any |= counts[i];
        if (NPUPROF_RECORDS_LOST_MASK_ >> i & 1) lost += counts[i];
    }
    if (!any || !npu->number_) return;
    if (lost) {
        npuprof_npu_note_(npu, NPUPROF_NOTE_RING_LOST, lost);
        npuprof_count_lost_(NPUPROF_LOST_RING, lost);
    }
    npuprof_device_records_(npu->number_, counts);
}

/* Ends a pass over records, and gives the queue lock back: hands the counts to the arena. Why not each at
   once: there, the device's entry has to be found. ended: jobs have ended, so event counters are read. */
static void npuprof_npu_end_pass_(npuprof_npu *npu, bool ended)
{
    const uint32_t dropped = NPUPROF_LOAD_(&npu->jobs_dropped_);
    if (ended) npuprof_npu_sample_pmu_(npu);
    npu->texts_.stamp_left = 0;          /* the next pass is at another time */
    if (dropped) NPUPROF_ADD_(&npu->jobs_dropped_, 0u - dropped);
    npu->counts_[NPUPROF_RECORDS_DROPPED_JOBS] += dropped;
    npuprof_npu_store_counts_(npu, npu->counts_);
    memset(npu->counts_, 0, sizeof npu->counts_);
    npuprof_npu_unlock_queue_(npu);
}
