#pragma once   /* SPDX-License-Identifier: MIT */
#include "../../public/macros.h"
#include "../../numbers/hash.h"
#include "../../numbers/time.h"
#include "../../numbers/wide.h"
#include "../../record/device.h"
#include "../../control/start.h"
#include "../types.h"
#include "../api.h"
#include "../mmio.h"
#include "../clock.h"
#include "../anchors.h"
#include "../describe.h"
#include "pmu.h"
#include "jobs.h"
#include "match.h"
#include "tables.h"
#include "queues.h"
#include "drain.h"
#include "calls.h"
#include "feed.h"

/* Opening and closing a device, and its clock for other parts of a program: ticks as nanoseconds,
   npuprof_bench(). One thread opens and closes; nothing else uses the npuprof_npu meanwhile. */

/* Numbers the device in the arena, and reads the ring's producer index for the first time. */
static npuprof_result npuprof_npu_add_device_(npuprof_npu *npu)
{
    const npuprof_npu_desc *d = &npu->desc_;
    npu->number_ = npuprof_device_add_(npu->device.name, d->pe_count, d->counter.hz, d->max_rate_ppm * 1000u);
    npuprof_npu_note_(npu, NPUPROF_NOTE_LAG, npu->lag_);
    if (!npu->number_) return NPUPROF_ERR_TABLE_FULL;
    npu->open_ticks_ = npu->last_.device_ticks;
    npu->open_host_ = npuprof_ticks_();
    return npuprof_npu_start_queues_(npu);
}

/* Hashes of the names of open devices, by their numbers. Each is written by who opens and closes it. */
static uint64_t npuprof_npu_open_names_[256];

/* Notes in the trace that two devices of one name are open. Why: a driver and a runtime of one process may
   both open one device, and neither sees that from what it is returned. */
static void npuprof_npu_say_open_twice_(const npuprof_npu *npu)
{
    char key[96];
    const char *const name = npu->device.name ? npu->device.name : "";
    const uint64_t hash = npuprof_hash_key_(name);
    bool twice = false;
    for (unsigned i = 1; i < 256; i++) twice |= NPUPROF_LOAD_(&npuprof_npu_open_names_[i]) == hash;
    NPUPROF_STORE_(&npuprof_npu_open_names_[npu->number_ & 255], hash);
    if (!twice) return;
    snprintf(key, sizeof key, "npuprof_npu_open_twice %.70s", name);
    npuprof_table_add_pair_(NPUPROF_ENTRY_ENVIRONMENT, key,
                            "a device of this name is open already in this process: if a driver and a "
                            "runtime both open one device, its work is drawn and counted twice; open it in "
                            "one of them, and give two devices two names");
}

/* What of a description needs a BAR, for a sentence. */
static const char *npuprof_npu_what_is_in_bar_(const npuprof_npu_desc *d)
{
    if (d->requirement_count) return d->requirements[0].text;
    for (unsigned i = 0; i < d->pmu_count; i++)
        if (!d->pmu[i].read) return d->pmu[i].name;
    return "the ring, or its producer index,";
}

/* What the widest load from the BAR needs. */
static size_t npuprof_npu_bar_align_(const npuprof_npu *npu)
{
    uint64_t align = npuprof_npu_register_align_(&npu->desc_);
    for (unsigned i = 0; i < npu->desc_.pmu_count; i++) {
        const npuprof_npu_pmu *p = &npu->pmu_[i].is;
        if (!p->read) align = npuprof_max_(align, p->counter.access / 8);
    }
    for (unsigned i = 0; i < npu->queue_count_; i++) {
        const npuprof_npu_queue_ *q = &npu->queues_[i];
        if (q->is.feed) continue;
        if (!q->is.memory) align = npuprof_max_(align, npuprof_npu_entry_align_(q));
        if (!q->is.ready && q->index.in_bar) align = npuprof_max_(align, q->is.producer.width_bytes);
    }
    const npuprof_npu_index *x = &npu->desc_.progress.index;
    if (npu->desc_.progress.is_there && npu->progress_.in_bar) align = npuprof_max_(align, x->width_bytes);
    return (size_t)align;
}

/* Opens the device of desc_. What it took when it fails, npuprof_npu_open() gives back. */
static npuprof_result npuprof_npu_open_desc_(npuprof_npu *npu)
{
    size_t needed = 0;
    const npuprof_npu_desc *d = &npu->desc_;
    npuprof_result result = npuprof_npu_check_desc_(npu, &needed);
    if (result == NPUPROF_OK) result = npuprof_npu_check_queues_(npu, &needed);
    if (result == NPUPROF_OK) result = npuprof_npu_check_progress_(npu, &needed);
    if (result == NPUPROF_OK) result = npuprof_npu_check_pmu_(npu, &needed);
    if (result == NPUPROF_OK && needed && !npuprof_npu_has_bar_(d))
        result = npuprof_os_explain_(NPUPROF_ERR_NPU_RANGE, "NPUPROF_ERR_NPU_RANGE: desc has no BAR: "
                                     "bar, resource or vfio; %s lies in it", npuprof_npu_what_is_in_bar_(d));
    if (result != NPUPROF_OK) return result;
    if (d->bar) {
        result = npuprof_npu_use_bar_(npu, needed, npuprof_npu_bar_align_(npu));
        if (result != NPUPROF_OK) return result;
    } else if (npuprof_npu_has_bar_(d)) {
        result = npuprof_npu_map_(npu, needed ? needed : 8);
        const bool misaligned = (uintptr_t)npu->bar_ % npuprof_npu_bar_align_(npu) != 0;
        if (result == NPUPROF_OK && misaligned) result = NPUPROF_ERR_NPU_RANGE;
        if (result != NPUPROF_OK) return result;
    }
    npu->tickets_ = 1;                   /* 0 is that of entries that were never used */
    const uint64_t ns_per_4g = npuprof_max_(npuprof_ns_per_4g_ticks_(), 1);
    npu->second_ = npuprof_max_(npuprof_mul_div_((uint64_t)1000000000 << 30, 4, ns_per_4g, false), 1000);
    /* Why a 64th more: soon after the start the rate of the host's ticks is not known well. */
    npu->lag_ = npuprof_mul_div_(npu->second_, d->counter.lag_ns, 1000000000 / 65 * 64, true);
    result = npuprof_npu_begin_clock_(npu, npuprof_npu_add_device_);
    if (npu->idle_ && (result == NPUPROF_OK || result == NPUPROF_ERR_NPU_NOT_ENABLED))
        npuprof_device_flag_(npu->number_, NPUPROF_DEVICE_IDLE_);
    return result == NPUPROF_OK ? result : npuprof_npu_explain_(npu, result);
}

static void npuprof_npu_drain_for_read_(void *user)
{
    (void)npuprof_npu_drain_((npuprof_npu *)user, false);
}

/* Why a note in the trace: who reads it may not be who saw the result, and there is no device in it. */
NPUPROF_API_ npuprof_result npuprof_npu_open(npuprof_npu *npu, const npuprof_npu_desc *desc)
{
    char key[96];
    if (!npu) return NPUPROF_REFUSE_("npuprof_npu_open: npu is NULL");
    memset(npu, 0, sizeof *npu);
    if (desc) npu->desc_ = *desc;
    const npuprof_result result =
        desc ? npuprof_npu_open_desc_(npu) : NPUPROF_REFUSE_("npuprof_npu_open: desc is NULL");
    if (result != NPUPROF_OK && result != NPUPROF_ERR_NPU_NOT_ENABLED) {
        npu->number_ = 0;
        npuprof_npu_unmap_(npu);
        npuprof_npu_give_tables_back_(npu);
    }
    npu->drain_.drain = npuprof_npu_drain_for_read_;
    npu->drain_.user = npu;
    if (npu->number_) npuprof_device_watch_(&npu->drain_);
    if (npu->number_) npuprof_npu_say_open_twice_(npu);
    if (npu->number_ || !npuprof_record_is_ready_()) return result;
    snprintf(key, sizeof key, "npuprof_npu_open %.70s", desc && desc->name ? desc->name : "");
    npuprof_table_add_pair_(NPUPROF_ENTRY_ENVIRONMENT, key, npuprof_result_string(result));
    return result;
}

NPUPROF_NPU_OPEN_OF_1_0_

NPUPROF_API_ void npuprof_npu_close(npuprof_npu *npu)
{
    if (!npu->number_) return;
    npuprof_device_unwatch_(&npu->drain_);
    npuprof_npu_drop_calls_(npu);
    npuprof_npu_finish_records_(npu);
    if (npuprof_npu_is_pushed_(npu)) (void)npuprof_npu_keep_pushed_(npu, true);
    else (void)npuprof_npu_sync(npu);
    NPUPROF_STORE_(&npuprof_npu_open_names_[npu->number_ & 255], (uint64_t)0);
    npu->number_ = 0;
    npuprof_npu_unmap_(npu);
    npuprof_npu_give_tables_back_(npu);
}

/* The newest read, if it is behind all anchors; else NULL. */
static const npuprof_anchor_ *npuprof_npu_newest_read_(const npuprof_npu *npu)
{
    const npuprof_anchor_ *const last = npu->anchor_count_ ? &npu->anchors_[npu->anchor_count_ - 1] : NULL;
    return npu->has_last_ && last && npu->last_.device_ticks >= last->device_ticks ? &npu->last_ : NULL;
}

NPUPROF_API_ npuprof_result npuprof_npu_host_ns(npuprof_npu *npu, uint64_t ticks, int64_t *ns,
                                                uint64_t *error_ns)
{
    uint64_t host = 0, error = 0;
    bool good = false;
    npuprof_map_reads_ reads;
    memset(&reads, 0, sizeof reads);
    reads.rate.max_rate_ppb = npu->desc_.max_rate_ppm * 1000u;
    reads.rate.second = reads.rate.window = npu->second_;
    reads.rate.may_be_late = npu->lag_ != 0;
    reads.rate.is_unsteady = NPUPROF_LOAD_(&npu->is_unsteady_);
    *ns = 0;
    if (error_ns) *error_ns = 0;
    if (!npu->number_) return NPUPROF_ERR_NPU_NOT_OPEN;
    for (int i = 0; i < 2 && !good; i++) {
        if (!npuprof_npu_lock_(npu)) return NPUPROF_ERR_NPU_BUSY;
        reads.rate.hz = npu->desc_.counter.hz;
        reads.anchors = npu->anchors_;
        reads.count = npu->anchor_count_;
        reads.newest = npuprof_npu_newest_read_(npu);
        reads.now = npuprof_ticks_();
        good = npuprof_map_ticks_(&reads, ticks, &host, &error);
        npuprof_npu_unlock_(npu);
        if (!good && i == 0) (void)npuprof_npu_sync(npu);
    }
    if (!good) return NPUPROF_ERR_NPU_NO_ANCHOR;
    *ns = npuprof_ticks_to_ns_(host);
    if (!error_ns) return NPUPROF_OK;
    error = npuprof_mul_div_(error, npuprof_ns_per_4g_ticks_(), (uint64_t)1 << 32, true);
    *error_ns = npuprof_saturating_add_(error, 1);
    return NPUPROF_OK;
}

static npuprof_result npuprof_npu_bench_read_(void *user, uint64_t *ticks)
{
    return npuprof_npu_read((npuprof_npu *)user, ticks);
}

/* Why both after the second stamp: an anchor taken between two calls would show as time. */
static npuprof_result npuprof_npu_bench_ns_(void *user, uint64_t from, uint64_t to, double *ns)
{
    int64_t start_ns, end_ns;
    npuprof_result r = npuprof_npu_host_ns((npuprof_npu *)user, from, &start_ns, NULL);
    if (r == NPUPROF_OK) r = npuprof_npu_host_ns((npuprof_npu *)user, to, &end_ns, NULL);
    if (r == NPUPROF_OK) *ns = (double)(end_ns - start_ns);
    return r;
}

NPUPROF_API_ npuprof_bench_clock npuprof_npu_clock(npuprof_npu *npu)
{
    npuprof_bench_clock clock;
    clock.read = npuprof_npu_bench_read_;
    clock.ns = npuprof_npu_bench_ns_;
    clock.user = npu;
    return clock;
}
