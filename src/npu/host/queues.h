#pragma once   /* SPDX-License-Identifier: MIT */
#include "../../public/macros.h"
#include "../types.h"
#include "../describe.h"
#include "format.h"
#include "index.h"
#include "rules.h"
#include "stamp.h"
#include "lanes.h"
#include "pairs.h"
#include "tables.h"

/* Rings and progress index of a device that is being opened: what cannot be is refused, with a sentence that
   names the key. One thread. May not know how a record is drawn. */

enum { NPUPROF_NPU_SCALE_LIMIT_BITS_ = 32 };

/* One thing after the other: `key` is at fault if `wrong`. */
#define NPUPROF_NPU_REFUSE_IF_(wrong, key, why) \
    do { if (wrong) return npuprof_npu_refuse_(npu, q->number, key, why); } while (0)

/* The ready rule, what it needs, and what it may not have. */
static npuprof_result npuprof_npu_check_rule_(const npuprof_npu *npu, npuprof_npu_queue_ *q)
{
    const npuprof_npu_ring *r = &q->is;
    const npuprof_npu_index *x = &r->producer;
    const bool indexed = x->memory || x->in_memory || x->has_laps || x->has_wrap || x->unit ||
                         x->offset;
    static const char fed[] = "takes no ready rule: no producer, valid, phase";
    NPUPROF_NPU_REFUSE_IF_(r->feed && (r->count || r->memory), "feed", "takes no count and no memory");
    NPUPROF_NPU_REFUSE_IF_(r->ready < 0 || r->ready >= NPUPROF_NPU_READY_COUNT_, "ready", "is no rule");
    NPUPROF_NPU_REFUSE_IF_(r->feed && (r->ready || indexed), "feed", fed);
    for (int i = 0; i < NPUPROF_NPU_READY_COUNT_; i++) {
        const npuprof_npu_rule_ *const rule = &npuprof_npu_rules_[i];
        const bool is_there = rule->lacks && npuprof_npu_field_at_(r, rule->field).width_bytes;
        const bool wrong = r->ready == i ? rule->lacks && !is_there : is_there && rule->is_own;
        NPUPROF_NPU_REFUSE_IF_(wrong && r->feed, "feed", fed);
        NPUPROF_NPU_REFUSE_IF_(wrong, npuprof_npu_rule_key_(rule), rule->lacks);
    }
    NPUPROF_NPU_REFUSE_IF_(r->ready && indexed, "producer",
                           "is there, and another ready rule, too: give one");
    NPUPROF_NPU_REFUSE_IF_(!r->entry_bytes, "entry_bytes", "is 0");
    NPUPROF_NPU_REFUSE_IF_(!r->feed && !r->count, "count", "is 0");
    q->rule = r->feed ? NULL : &npuprof_npu_rules_[r->ready];
    return NPUPROF_OK;
}

/* The rule's field, when it was found in the entry. */
static npuprof_result npuprof_npu_check_rule_bits_(const npuprof_npu *npu, const npuprof_npu_queue_ *q)
{
    const char *const wrong = q->rule && q->rule->check ? q->rule->check(q) : NULL;
    NPUPROF_NPU_REFUSE_IF_(wrong, npuprof_npu_rule_key_(q->rule), wrong);
    NPUPROF_NPU_REFUSE_IF_(q->is.phase_first > 1, "phase_first", "is neither 0 nor 1");
    return NPUPROF_OK;
}

/* The stamps that its kinds need. */
static npuprof_result npuprof_npu_check_stamps_(const npuprof_npu *npu, const npuprof_npu_queue_ *q)
{
    const npuprof_npu_ring *r = &q->is;
    static const uint8_t stamps[] = { NPUPROF_NPU_AT_START_, NPUPROF_NPU_AT_END_, NPUPROF_NPU_AT_STAMP_ };
    const bool start = npuprof_npu_has_(q, NPUPROF_NPU_AT_START_);
    const bool end = npuprof_npu_has_(q, NPUPROF_NPU_AT_END_), stamp =
        npuprof_npu_has_(q, NPUPROF_NPU_AT_STAMP_);
    const bool duration = npuprof_npu_has_(q, NPUPROF_NPU_AT_DURATION_);
    const bool none = r->stamp_clock == NPUPROF_NPU_STAMP_NONE;
    bool spans = false, moments = false;
    for (unsigned i = 0; i <= r->kind_count; i++) {
        const int is = i < r->kind_count ? r->kinds[i].is : r->all_are;
        if (i == r->kind_count && r->kind_count) break;
        spans = spans || is == NPUPROF_NPU_KIND_SPAN;
        moments = moments || (is != NPUPROF_NPU_KIND_SPAN && is != NPUPROF_NPU_KIND_SKIP);
    }
    NPUPROF_NPU_REFUSE_IF_(r->stamp_clock < 0 || r->stamp_clock >= NPUPROF_NPU_STAMP_COUNT_, "stamp_clock",
                           "is no clock");
    NPUPROF_NPU_REFUSE_IF_(none && (start || end || stamp), "stamp_clock",
                           "is STAMP_NONE, but there are stamps");
    NPUPROF_NPU_REFUSE_IF_(none && duration && !r->duration_in_ns, "duration_in_ns",
                           "must be set where STAMP_NONE goes with duration: no stamp has the unit");
    NPUPROF_NPU_REFUSE_IF_(!duration && (r->duration_in_ns || r->duration_num > 1 || r->duration_den > 1),
                           "duration", "is missing, and there is a unit of it");
    NPUPROF_NPU_REFUSE_IF_(duration && !spans, "duration", "goes with no kind that is a span");
    NPUPROF_NPU_REFUSE_IF_(!none && spans && !start && !end, "start",
                           "and end are missing; a queue without stamps says STAMP_NONE");
    NPUPROF_NPU_REFUSE_IF_(!none && moments && !stamp, "stamp", "is missing; its kinds need it");
    NPUPROF_NPU_REFUSE_IF_(duration && start && end, "duration",
                           "is there, with start and end: give two of them");
    NPUPROF_NPU_REFUSE_IF_(duration && !start && !end && !none, "duration", "needs start or end");
    for (unsigned i = 0; i < sizeof stamps; i++)
        NPUPROF_NPU_REFUSE_IF_(npuprof_npu_has_(q, stamps[i]) && npuprof_npu_bits_at_(q, stamps[i]) < 8,
                               npuprof_npu_value_keys_[stamps[i]], "has fewer than 8 bits");
    const bool host = r->stamp_clock == NPUPROF_NPU_STAMP_HOST;
    const uint64_t limit = (uint64_t)1 << NPUPROF_NPU_SCALE_LIMIT_BITS_;
    NPUPROF_NPU_REFUSE_IF_(host && (r->stamp_offset || r->scale_num > 1 || r->scale_den > 1), "stamp_clock",
                           "is STAMP_HOST, which takes no scale and no offset");
    NPUPROF_NPU_REFUSE_IF_(r->duration_num > limit || r->duration_den > limit, "duration_num",
                           "or duration_den is above 2^32");
    NPUPROF_NPU_REFUSE_IF_(r->scale_num > limit || r->scale_den > limit, "scale_num",
                           "or scale_den is above 2^32");
    return NPUPROF_OK;
}

/* The kinds: which there are, and what they need. */
static npuprof_result npuprof_npu_check_kinds_(const npuprof_npu *npu, const npuprof_npu_queue_ *q)
{
    const npuprof_npu_ring *r = &q->is;
    unsigned count[NPUPROF_NPU_KIND_COUNT_] = { 0 };
    const bool kind = npuprof_npu_has_(q, NPUPROF_NPU_AT_KIND_);
    NPUPROF_NPU_REFUSE_IF_(kind != (r->kind_count != 0) || (kind && !r->kinds), "kinds",
                           "and kind belong together: give both, or none");
    NPUPROF_NPU_REFUSE_IF_(r->all_are < 0 || r->all_are >= NPUPROF_NPU_KIND_COUNT_, "all_are", "is no kind");
    NPUPROF_NPU_REFUSE_IF_(kind && r->all_are, "all_are", "is there, and kind, too: give one");
    for (unsigned i = 0; i < r->kind_count; i++) {
        const int is = r->kinds[i].is;
        NPUPROF_NPU_REFUSE_IF_(is < 0 || is >= NPUPROF_NPU_KIND_COUNT_, "kinds", "has an unknown kind");
        count[is]++;
        for (unsigned j = 0; j < i; j++)
            NPUPROF_NPU_REFUSE_IF_(r->kinds[j].value == r->kinds[i].value, "kinds", "has a value twice");
    }
    if (!kind) count[r->all_are]++;
    NPUPROF_NPU_REFUSE_IF_(count[NPUPROF_NPU_KIND_BEGIN] && !count[NPUPROF_NPU_KIND_END], "kinds",
                           "has a begin, but no end");
    NPUPROF_NPU_REFUSE_IF_(!count[NPUPROF_NPU_KIND_BEGIN] && count[NPUPROF_NPU_KIND_END], "kinds",
                           "has an end, but no begin");
    NPUPROF_NPU_REFUSE_IF_(count[NPUPROF_NPU_KIND_COUNTER] && !npuprof_npu_has_(q, NPUPROF_NPU_AT_VALUE_),
                           "value",
                           "is missing, which a counter needs");
    const unsigned high = npuprof_npu_bits_at_(q, NPUPROF_NPU_AT_CLOCK_HIGH_);
    const bool when = npuprof_npu_has_(q, NPUPROF_NPU_AT_CLOCK_WHEN_) ||
                      npuprof_npu_has_(q, NPUPROF_NPU_AT_CLOCK_WHEN_ + 1);
    NPUPROF_NPU_REFUSE_IF_(when != (high != 0), "clock_high",
                           "and clock_when belong together: give both, or none");
    NPUPROF_NPU_REFUSE_IF_(when && !npuprof_npu_has_(q, NPUPROF_NPU_AT_STAMP_), "clock_when",
                           "needs stamp, whose high part it tells");
    NPUPROF_NPU_REFUSE_IF_(when && high + npuprof_npu_bits_at_(q, NPUPROF_NPU_AT_STAMP_) > 64, "clock_high",
                           "and stamp have more than 64 bits");
    return NPUPROF_OK;
}

/* The tables of names, and the arguments. */
static npuprof_result npuprof_npu_check_names_(const npuprof_npu *npu, const npuprof_npu_queue_ *q)
{
    const npuprof_npu_ring *r = &q->is;
    const unsigned pes = npu->desc_.pe_count;
    NPUPROF_NPU_REFUSE_IF_(r->op_count && !r->ops, "ops", "is NULL");
    for (unsigned i = 1; i < r->op_count; i++) {
        NPUPROF_NPU_REFUSE_IF_(r->ops[i - 1].code == r->ops[i].code, "ops", "has a code twice");
        NPUPROF_NPU_REFUSE_IF_(r->ops[i - 1].code > r->ops[i].code, "ops", "is not sorted by code");
    }
    NPUPROF_NPU_REFUSE_IF_(r->lane_count && !r->lanes, "lanes", "is NULL");
    NPUPROF_NPU_REFUSE_IF_(r->pe_base >= pes, "pe_base", "reaches beyond desc.pe_count");
    NPUPROF_NPU_REFUSE_IF_(r->lane_count > pes - r->pe_base, "lanes",
                           "has more names than desc.pe_count allows");
    for (unsigned i = 0; i < r->lane_count; i++)
        for (unsigned j = 0; j < i; j++)
            NPUPROF_NPU_REFUSE_IF_(r->lanes[j].value == r->lanes[i].value, "lanes", "has a value twice");
    for (unsigned i = 0; i < NPUPROF_NPU_ALL_ARGS_; i++) {
        const npuprof_npu_arg arg = npuprof_npu_arg_at_(r, i);
        NPUPROF_NPU_REFUSE_IF_(arg.field.width_bytes && !arg.name, npuprof_npu_value_keys_[
                                   NPUPROF_NPU_AT_ARGS_ + i], "has no name");
    }
    return NPUPROF_OK;
}

/* Whether an index lies among a ring's entries. */
static bool npuprof_npu_is_inside_(const npuprof_npu_ring *r, size_t offset, size_t begin, size_t bytes)
{
    return offset + r->producer.width_bytes > begin && offset < begin + bytes;
}

/* Where the entries lie, and the index. *needed grows to the bytes of BAR that they reach. */
static npuprof_result npuprof_npu_check_place_(npuprof_npu *npu, npuprof_npu_queue_ *q, size_t *needed)
{
    npuprof_npu_ring *r = &q->is;
    const size_t align = npuprof_npu_entry_align_(q), first = r->memory ? r->first : r->offset + r->first;
    size_t end = 0;
    if (r->feed) return NPUPROF_OK;
    NPUPROF_NPU_REFUSE_IF_(r->count > 1 && r->entry_bytes % align, "entry_bytes",
                           "is no multiple of the widest field");
    NPUPROF_NPU_REFUSE_IF_(r->count > SIZE_MAX / 4 / r->entry_bytes || r->first > SIZE_MAX / 4 ||
                               r->offset > SIZE_MAX / 4, "count", "is too large");
    const size_t bytes = (size_t)r->count * r->entry_bytes;
    const bool aligned = npuprof_npu_cover_range_(first, bytes, align, r->memory ? &end : needed);
    NPUPROF_NPU_REFUSE_IF_(!aligned || (r->memory && (uintptr_t)r->memory % align),
                           r->memory ? "memory" : "offset",
                           "is not aligned to the widest field");
    NPUPROF_NPU_REFUSE_IF_(r->memory && end > r->memory_bytes, "memory_bytes",
                           "is less than the entries take");
    if (!q->rule->is_announced) return NPUPROF_OK;
    npuprof_npu_index *x = &r->producer;
    q->index.count = r->count;
    q->index.entry_bytes = r->entry_bytes;
    q->index.big_endian = r->big_endian;
    const char *const wrong = npuprof_npu_check_index_(x, &q->index, r->memory, r->memory_bytes, needed);
    NPUPROF_NPU_REFUSE_IF_(wrong, "producer", wrong);
    const bool same = !x->memory && x->in_memory == (r->memory != NULL);
    NPUPROF_NPU_REFUSE_IF_(same && npuprof_npu_is_inside_(r, x->offset, first, bytes), "producer",
                           "lies among the entries");
    NPUPROF_NPU_REFUSE_IF_(same && x->has_laps && npuprof_npu_is_inside_(r, x->laps_offset, first, bytes),
                           "producer.laps_offset", "lies among the entries");
    const uint64_t mask = q->index.mask;
    NPUPROF_NPU_REFUSE_IF_(x->unit == NPUPROF_NPU_INDEX_COUNT &&
                           (r->count - 1 > mask || (mask + 1) % r->count),
                           "count", "does not divide 2^bits of the producer index: its slots would jump");
    /* Why not a wide one: nobody is late by all that it can count. */
    NPUPROF_NPU_REFUSE_IF_(x->unit == NPUPROF_NPU_INDEX_BYTES && mask < UINT32_MAX && (mask + 1) % bytes,
                           "count", "times entry_bytes does not divide 2^bits of the producer index");
    const uint64_t last = x->unit == NPUPROF_NPU_INDEX_SLOT ? r->count - 1 : bytes - r->entry_bytes;
    NPUPROF_NPU_REFUSE_IF_(x->unit != NPUPROF_NPU_INDEX_COUNT && last > mask, "producer.bits",
                           "are too few for count");
    return NPUPROF_OK;
}

static npuprof_result npuprof_npu_check_queue_(npuprof_npu *npu, npuprof_npu_queue_ *q, size_t *needed)
{
    npuprof_npu_ring *r = &q->is;
    if (!r->scale_num) r->scale_num = 1;
    if (!r->scale_den) r->scale_den = 1;
    if (!r->stamp_unit_ns) r->stamp_unit_ns = 1;
    if (!r->duration_num) r->duration_num = 1;
    if (!r->duration_den) r->duration_den = 1;
    NPUPROF_NPU_REFUSE_IF_(r->job_scope < 0 || r->job_scope >= NPUPROF_NPU_SCOPE_COUNT_, "job_scope",
                           "is no scope");
    /* Why several: a wrong match is worse than none. */
    if (!r->job_scope || r->job_scope == NPUPROF_NPU_SCOPE_RING)
        r->job_scope = npu->queue_count_ > 1 ? NPUPROF_NPU_SCOPE_RING : NPUPROF_NPU_SCOPE_DEVICE;
    NPUPROF_NPU_REFUSE_IF_(r->more_arg_count > NPUPROF_NPU_MORE_ARGS, "more_arg_count", "is above 8");
    NPUPROF_NPU_REFUSE_IF_(r->more_arg_count && !r->more_args, "more_args", "is NULL");
    npuprof_result result = npuprof_npu_check_rule_(npu, q);
    if (result == NPUPROF_OK) result = npuprof_npu_add_values_(npu, q);
    if (result == NPUPROF_OK) result = npuprof_npu_check_rule_bits_(npu, q);
    if (result == NPUPROF_OK) result = npuprof_npu_check_kinds_(npu, q);
    if (result == NPUPROF_OK) result = npuprof_npu_check_stamps_(npu, q);
    if (result == NPUPROF_OK) result = npuprof_npu_check_names_(npu, q);
    if (result == NPUPROF_OK) result = npuprof_npu_check_place_(npu, q, needed);
    if (result == NPUPROF_OK) npuprof_npu_plan_entry_(q);
    return result;
}

/* Do two rings share bytes? */
static bool npuprof_npu_rings_overlap_(const npuprof_npu_ring *a, const npuprof_npu_ring *b)
{
    const uintptr_t from[2] = { a->memory ? (uintptr_t)a->memory : a->offset,
                                b->memory ? (uintptr_t)b->memory : b->offset };
    if (a->feed || b->feed || !a->memory != !b->memory) return false;
    const uintptr_t at[2] = { from[0] + a->first, from[1] + b->first };
    return at[0] < at[1] + (uintptr_t)b->count * b->entry_bytes &&
           at[1] < at[0] + (uintptr_t)a->count * a->entry_bytes;
}

/* Fills in the defaults of rings and progress index, and checks them. *needed grows to the bytes of BAR that
   they reach. */
static npuprof_result npuprof_npu_check_queues_(npuprof_npu *npu, size_t *needed)
{
    npuprof_npu_desc *d = &npu->desc_;
    const bool by_hand = d->ring.feed && !d->ring.entry_bytes;
    const bool one = d->ring.count || (d->ring.feed && !by_hand);
    if (d->ring_count > NPUPROF_NPU_RINGS)
        return NPUPROF_REFUSE_("npuprof_npu_open: desc.ring_count is above 128");
    if (d->ring_count && !d->rings) return NPUPROF_REFUSE_("npuprof_npu_open: desc.rings is NULL");
    if (d->ring_count && one)
        return NPUPROF_REFUSE_("npuprof_npu_open: desc.ring and desc.rings are both there: give one");
    if ((d->ring_count || one) && d->progress.is_there)
        return NPUPROF_REFUSE_("npuprof_npu_open: desc.progress and a ring are both there: give one");
    npu->id_mask_ = UINT64_MAX;
    npu->has_numbers_ = !d->progress.is_there;
    npu->has_submissions_ = by_hand || d->anchors_only;
    uint32_t seen = 0;
    npu->queue_count_ = d->ring_count ? d->ring_count : one;
    const npuprof_result room = npuprof_npu_take_tables_(npu);
    if (room != NPUPROF_OK) return room;
    npuprof_npu_queue_ *q = npu->queues_;
    for (unsigned i = 0; i < npu->queue_count_; i++, q++) {
        q->is = d->ring_count ? d->rings[i] : d->ring;
        q->number = i;
        const npuprof_result result = npuprof_npu_check_queue_(npu, q, needed);
        if (result != NPUPROF_OK) return result;
        for (unsigned j = 0; j < i; j++)
            NPUPROF_NPU_REFUSE_IF_(npuprof_npu_rings_overlap_(&npu->queues_[j].is, &q->is), "offset",
                                   "or memory overlaps another ring's");
        const unsigned job = npuprof_npu_bits_at_(q, NPUPROF_NPU_AT_JOB_);
        npu->has_numbers_ = npu->has_numbers_ && job != 0;
        if (job && job < 64) npu->id_mask_ &= npuprof_npu_mask_(job);
        const bool ends_jobs = q->is.kind_count ? true : q->is.all_are == NPUPROF_NPU_KIND_SPAN;
        npu->has_submissions_ = npu->has_submissions_ || ends_jobs;
        q->seen_at = NPUPROF_NPU_SEEN_;
        if (!q->rule || !q->rule->is_cleared || q->is.count > NPUPROF_NPU_SEEN_ - seen) continue;
        q->seen_at = seen;
        seen += q->is.count;
    }
    if (npu->pairs_) npuprof_npu_clear_pairs_(npu);
    return NPUPROF_OK;
}

/* The same of the progress index. */
static npuprof_result npuprof_npu_check_progress_(npuprof_npu *npu, size_t *needed)
{
    npuprof_npu_progress *p = &npu->desc_.progress;
    if (!p->is_there) return NPUPROF_OK;
    const char *wrong = p->index.in_memory && !p->index.memory ? "has no memory to be in" : NULL;
    if (!wrong) wrong = npuprof_npu_check_index_(&p->index, &npu->progress_, NULL, 0, needed);
    const bool is_slot =
        p->index.unit == NPUPROF_NPU_INDEX_SLOT || p->index.unit == NPUPROF_NPU_INDEX_BYTE_OFFSET;
    const bool in_bytes = p->index.unit >= NPUPROF_NPU_INDEX_BYTES;
    if (!wrong && is_slot && !p->count) wrong = "has slots, but progress.count is 0";
    if (!wrong && in_bytes && !p->entry_bytes) wrong = "counts bytes, but progress.entry_bytes is 0";
    if (wrong)
        return npuprof_os_explain_(NPUPROF_ERR_NPU_RANGE, "NPUPROF_ERR_NPU_RANGE: npuprof_npu_open: "
                                   "desc.progress.index %s", wrong);
    npu->progress_.shows_count = true;
    /* Slots of a lap; of a running index, more than it can wait for. */
    npu->progress_.count = is_slot ? p->count : (uint64_t)1 << 33;
    npu->progress_.entry_bytes = p->entry_bytes ? p->entry_bytes : 1;
    npu->progress_.big_endian = p->big_endian;
    npu->has_submissions_ = true;
    return NPUPROF_OK;
}

/* Where the entries of a device that is open lie, and where it is in them. The first bad result. */
static npuprof_result npuprof_npu_start_queues_(npuprof_npu *npu)
{
    npuprof_result first = NPUPROF_OK;
    uint64_t unit = 0;
    for (unsigned i = 0; i < npu->queue_count_; i++) {
        npuprof_npu_queue_ *q = &npu->queues_[i];
        npuprof_npu_begin_lanes_(npu, q);
        npuprof_npu_limit_stamps_(npu, q);
        q->looked = npu->open_host_;
        if (npuprof_npu_is_scaled_(&q->is)) unit = npuprof_max_(unit, npuprof_npu_unit_(&q->is));
        if (q->is.feed) continue;
        /* Why those in the BAR: a look at the entry before costs loads there. Why those that somebody clears,
           too: that changes what is looked at. */
        const bool tells = npuprof_npu_has_(q, NPUPROF_NPU_AT_SEQUENCE_) && !npuprof_npu_sequence_period_(q);
        if ((q->rule->is_cleared && !tells) || (!q->is.memory && q->rule->period && q->rule->period(q)))
            npuprof_npu_count_records_(npu, NPUPROF_RECORDS_LOSS_UNKNOWN, 1);
        q->base = q->is.memory ? (const volatile unsigned char *)q->is.memory : npu->bar_ + q->is.offset;
        q->base += q->is.first;
        if (npuprof_npu_is_in_bar_(q) && !npuprof_npu_is_on_(npu)) continue;
        const npuprof_result result = npuprof_npu_find_ring_(npu, q);
        if (first == NPUPROF_OK) first = result;
    }
    npuprof_npu_note_(npu, NPUPROF_NOTE_UNIT, unit);
    const npuprof_npu_progress *p = &npu->desc_.progress;
    if (p->is_there && (!npu->progress_.in_bar || npuprof_npu_is_on_(npu)))
        first = npuprof_npu_read_index_(npu, &p->index, &npu->progress_, &npu->progress_next_);
    return first;
}
