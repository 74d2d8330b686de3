#pragma once   /* SPDX-License-Identifier: MIT */
#include "../../public/macros.h"
#include "../../record/args.h"
#include "../types.h"
#include "../mmio.h"
#include "match.h"
#include "draw.h"
#include "pushed.h"
#include "format.h"
#include "stamp.h"
#include "lanes.h"
#include "pairs.h"
#include "ended.h"
#include "times.h"

/* What a record means: a span, one end of a span, an event. The same for a polled record and for one that was
   fed. Under the queue lock. May not know where a record came from. */

/* ---- Names and arguments */

/* The name of an op code in the queue's table; NULL: it has none. */
static const char *npuprof_npu_find_op_(const npuprof_npu_ring *ring, uint64_t op)
{
    unsigned first = 0, end = ring->op_count;
    while (first < end) {
        const unsigned middle = first + (end - first) / 2;
        if (ring->ops[middle].code == op) return ring->ops[middle].name;
        if (ring->ops[middle].code < op) first = middle + 1;
        else end = middle;
    }
    return NULL;
}

/* The name of an op code: of the table, of the function, or "op 17", "op 0x51ab". text: where that is
   made. *stays: it is the table's. */
static const char *npuprof_npu_name_op_(const npuprof_npu *npu, const npuprof_npu_ring *ring, uint64_t op,
                                        char *text, bool *stays)
{
    const uint64_t base = op < 1024 ? 10 : 16;
    const char *const known = npuprof_npu_find_op_(ring, op);
    *stays = known != NULL;
    if (known) return known;
    const char *const told = ring->op_name ? ring->op_name(npu->desc_.user, op) : NULL;
    if (told) return told;
    npuprof_npu_copy_text_(text, NPUPROF_NPU_NAME_, base == 10 ? "op " : "op 0x");
    size_t at = strlen(text);
    for (uint64_t rest = op; rest >= base; rest /= base) at++;
    text[at + 1] = 0;
    do text[at--] = "0123456789abcdef"[op % base]; while ((op /= base) != 0);
    return text;
}

/* What an end adds to its begin: a value that is not 0 is newer. The status is the end's. */
static void npuprof_npu_add_end_(npuprof_npu_record_ *r, const npuprof_npu_record_ *end)
{
    r->v[NPUPROF_NPU_AT_STATUS_] = end->v[NPUPROF_NPU_AT_STATUS_];
    for (unsigned at = 0; at < NPUPROF_NPU_VALUES_; at++) {
        const bool adds = at == NPUPROF_NPU_AT_EXECUTION_ || at == NPUPROF_NPU_AT_INSTRUCTION_ ||
                          at >= NPUPROF_NPU_AT_ARGS_;
        if (adds && end->v[at]) r->v[at] = end->v[at];
    }
}

/* Whether it stands for its whole job. */
static bool npuprof_npu_is_whole_(const npuprof_npu_ring *ring, uint64_t op)
{
    return !ring->execution_op || op + 1 == ring->execution_op;
}

/* Whose record it is. */
static npuprof_npu_sought_ npuprof_npu_sought_by_(const npuprof_npu *npu, const npuprof_npu_entry_ *e)
{
    const npuprof_npu_queue_ *const q = e->q;
    const npuprof_npu_record_ *const r = e->r;
    npuprof_npu_sought_ s;
    s.has_id = npuprof_npu_has_(q, NPUPROF_NPU_AT_JOB_);
    s.id = r->v[NPUPROF_NPU_AT_JOB_];
    s.id_mask = npuprof_npu_mask_(npuprof_npu_bits_at_(q, NPUPROF_NPU_AT_JOB_));
    s.any_stream = !npuprof_npu_has_(q, NPUPROF_NPU_AT_PE_) && npu->queue_count_ == 1;
    const uint64_t pe = r->v[NPUPROF_NPU_AT_PE_];
    s.stream = q->is.lane_count || pe > 0xFFFFu ? pe : e->pe;
    s.is_scoped = q->is.job_scope != NPUPROF_NPU_SCOPE_DEVICE;
    s.scope = q->is.job_scope == NPUPROF_NPU_SCOPE_RING ? q->number : s.stream;
    s.is_late = npu->takes_late_;
    s.before = npu->late_before_;
    return s;
}

/* Finds the submission of a record. A part of a job whose whole has begun, and not ended, is of the same: the
   begin took it. Results as npuprof_npu_take_submission_(). */
static npuprof_result npuprof_npu_find_owner_(npuprof_npu *npu, const npuprof_npu_entry_ *e, bool can_wait,
                                              npuprof_npu_submission_ *of)
{
    const npuprof_npu_queue_ *const q = e->q;
    const npuprof_npu_sought_ sought = npuprof_npu_sought_by_(npu, e);
    const bool whole = npuprof_npu_is_whole_(&q->is, e->r->v[NPUPROF_NPU_AT_OP_]);
    for (uint16_t at = whole ? 0 : npu->newest_pair_; at; at = npu->pairs_[at - 1].older) {
        const npuprof_npu_pair_ *const pair = &npu->pairs_[at - 1];
        if (pair->ring != q->number || pair->lane != e->pe) continue;
        if (pair->record.v[NPUPROF_NPU_AT_JOB_] != sought.id) continue;
        if (!npuprof_npu_is_whole_(&q->is, pair->record.v[NPUPROF_NPU_AT_OP_])) continue;
        *of = pair->of;
        npuprof_npu_note_run_(of, pair->flags, pair->epoch, pair->start, 0);
        return NPUPROF_OK;
    }
    if (!whole && npuprof_npu_find_ended_(npu, &sought, of)) return NPUPROF_OK;
    return npuprof_npu_take_submission_(npu, &sought, whole, can_wait, of);
}

/* A record that stands for its job: its parts may come after it. */
static void npuprof_npu_note_whole_(npuprof_npu *npu, const npuprof_npu_entry_ *e, uint64_t op,
                                    const npuprof_npu_submission_ *of, const npuprof_npu_times_ *t)
{
    if (!e->q->is.execution_op || !npuprof_npu_is_whole_(&e->q->is, op)) return;
    const npuprof_npu_sought_ sought = npuprof_npu_sought_by_(npu, e);
    npuprof_npu_note_ended_(npu, &sought, of, t);
}

/* What a record says of a clock that nobody reads: its job began after it was submitted, and is over. */
static void npuprof_npu_learn_record_(npuprof_npu *npu, const npuprof_npu_submission_ *of,
                                      const npuprof_npu_times_ *t, const npuprof_npu_pass_ *pass)
{
    if (of->known && of->link.ticks && !(t->flags & NPUPROF_STAMP_HOST))
        npuprof_npu_learn_job_(npu, t->start, t->end, of->link.ticks, pass->now.host);
}

/* Draws what a record, or two, said. times: as they are drawn. */
static void npuprof_npu_draw_record_(npuprof_npu *npu, const npuprof_npu_queue_ *q, unsigned lane,
                                     const npuprof_npu_record_ *r, const npuprof_npu_submission_ *of,
                                     const npuprof_npu_times_ *times)
{
    const npuprof_npu_ring *const ring = &q->is;
    char text[NPUPROF_NPU_NAME_];
    npuprof_npu_drawing_ d;
    size_t n = NPUPROF_NPU_OWN_ARGS_;
    const uint64_t op = r->v[NPUPROF_NPU_AT_OP_], status = r->v[NPUPROF_NPU_AT_STATUS_];
    d.start = times->start;
    d.end = times->end;
    d.epoch = times->epoch;
    d.flags = times->flags;
    d.lane = lane;
    d.category = ring->category;
    d.takes_arrow = npuprof_npu_is_whole_(ring, op);
    d.texts_stay = true;
    d.name_stays = false;
    d.name = NULL;
    if (npuprof_npu_has_(q, NPUPROF_NPU_AT_OP_))
        d.name = npuprof_npu_name_op_(npu, ring, op, text, &d.name_stays);
    if (npuprof_npu_has_(q, NPUPROF_NPU_AT_JOB_))
        d.args[n++] = npuprof_uint_("job", r->v[NPUPROF_NPU_AT_JOB_]);
    if (npuprof_npu_has_(q, NPUPROF_NPU_AT_EXECUTION_))
        d.args[n++] = npuprof_uint_("execution_index", r->v[NPUPROF_NPU_AT_EXECUTION_]);
    if (npuprof_npu_has_(q, NPUPROF_NPU_AT_INSTRUCTION_) && !(ring->execution_op && d.takes_arrow))
        d.args[n++] = npuprof_uint_("instruction_index", r->v[NPUPROF_NPU_AT_INSTRUCTION_]);
    for (unsigned i = 0; i < NPUPROF_NPU_ALL_ARGS_; i++)
        if (npuprof_npu_has_(q, NPUPROF_NPU_AT_ARGS_ + i))
            d.args[n++] = npuprof_uint_(npuprof_npu_arg_at_(ring, i).name, r->v[NPUPROF_NPU_AT_ARGS_ + i]);
    if (times->doubt_ns) d.args[n++] = npuprof_uint_("duration_error_ns", times->doubt_ns);
    if (status) d.args[n++] = npuprof_uint_("status", status);
    if (times->unfinished) d.args[n++] = npuprof_bool_("unfinished", true);
    d.arg_count = n - NPUPROF_NPU_OWN_ARGS_;
    npuprof_npu_draw_(npu, &d, of);
}

/* ---- Kinds */

/* Draws a begin whose end does not come, up to those ticks. */
static void npuprof_npu_draw_unfinished_(npuprof_npu *npu, npuprof_npu_pair_ *pair, uint64_t end)
{
    const npuprof_npu_times_ t = { pair->start, npuprof_max_(pair->start, end), pair->epoch, pair->flags, 0,
                                   true };
    if (!pair->draws) return;
    pair->record.v[NPUPROF_NPU_AT_STATUS_] = 0;
    npuprof_npu_count_records_(npu, NPUPROF_RECORDS_UNFINISHED, 1);
    npuprof_npu_draw_record_(npu, &npu->queues_[pair->ring], pair->lane, &pair->record, &pair->of, &t);
}

/* Ends a begin whose end will not come: with the last stamp of its lane. */
static void npuprof_npu_abandon_pair_(npuprof_npu *npu, npuprof_npu_pair_ *pair)
{
    const npuprof_npu_lane_state_ *const lane = &npu->lanes_[pair->lane_at];
    const bool same = pair->flags & NPUPROF_STAMP_HOST || lane->epoch == pair->epoch;
    npuprof_npu_close_pair_(npu, pair);
    npuprof_npu_draw_unfinished_(npu, pair, same ? lane->last_ticks : 0);
}

/* Entries of a queue are lost: an end may be among them, so the next one is not that of a begin before. */
static void npuprof_npu_abandon_queue_(npuprof_npu *npu, npuprof_npu_queue_ *q)
{
    for (uint16_t at = q->gap ? npu->oldest_pair_ : 0, next; at; at = next) {
        npuprof_npu_pair_ *const pair = &npu->pairs_[at - 1];
        next = pair->newer;
        if (pair->ring == q->number) npuprof_npu_abandon_pair_(npu, pair);
    }
    q->gap = false;
}

static npuprof_result npuprof_npu_take_begin_(npuprof_npu *npu, const npuprof_npu_entry_ *e, bool can_wait)
{
    const npuprof_npu_queue_ *const q = e->q;
    const uint64_t *const key = e->r->v + NPUPROF_NPU_AT_KEY_;
    npuprof_npu_submission_ of;
    npuprof_npu_times_ t;
    if (npuprof_npu_find_owner_(npu, e, can_wait, &of) != NPUPROF_OK) return NPUPROF_ERR_NPU_BUSY;
    const bool draws = npuprof_npu_draws_(&of);
    const int why = npuprof_npu_moment_(npu, e, &of, &t);
    if (why != NPUPROF_NPU_TIMES_GOOD_) {
        if (draws) npuprof_npu_count_records_(npu, (unsigned)why, 1);
        return NPUPROF_OK;
    }
    npuprof_npu_pair_ *pair = npuprof_npu_open_pair_(npu, q->number, e->pe, key);
    if (!pair) {
        npuprof_npu_abandon_pair_(npu, npuprof_npu_oldest_pair_(npu));
        pair = npuprof_npu_open_pair_(npu, q->number, e->pe, key);
    }
    pair->start = t.start;
    pair->epoch = t.epoch;
    pair->flags = (uint8_t)t.flags;
    pair->record = *e->r;
    pair->of = of;
    pair->draws = draws;
    pair->lane_at = (uint16_t)(e->lane - npu->lanes_);
    if (t.flags & NPUPROF_STAMP_HOST && q->is.stamp_clock == NPUPROF_NPU_STAMP_NONE && of.known &&
        of.link.ticks && of.link.ticks < t.start) pair->start = of.link.ticks;
    return NPUPROF_OK;
}

static void npuprof_npu_take_end_(npuprof_npu *npu, const npuprof_npu_entry_ *e)
{
    npuprof_npu_times_ t;
    npuprof_npu_pair_ *const pair =
        npuprof_npu_match_pair_(npu, e->q->number, e->pe, e->r->v + NPUPROF_NPU_AT_KEY_);
    int why = npuprof_npu_moment_(npu, e, pair ? &pair->of : NULL, &t);
    /* Why not with host stamps: their epoch is an error, which a better known rate changes. */
    const bool same = pair && (why != NPUPROF_NPU_TIMES_GOOD_ || t.epoch == pair->epoch ||
                               (t.flags & NPUPROF_STAMP_HOST) != 0);
    if (!same) {                         /* no begin, or one of before a reset */
        if (NPUPROF_OPEN_(1)) npuprof_npu_count_records_(npu, NPUPROF_RECORDS_UNMATCHED_END, 1);
        if (pair) npuprof_npu_draw_unfinished_(npu, pair, 0);
        return;
    }
    if (!pair->draws) return;
    if (why == NPUPROF_NPU_TIMES_GOOD_ && pair->start > t.end) {
        if (pair->start - t.end > e->pass->now.allowance) why = NPUPROF_RECORDS_STAMPS;
        else t.end = pair->start;
    }
    if (why != NPUPROF_NPU_TIMES_GOOD_) {
        npuprof_npu_count_records_(npu, (unsigned)why, 1);
        return;
    }
    const uint64_t op = pair->record.v[NPUPROF_NPU_AT_OP_];
    if (!pair->of.known && npuprof_npu_has_(e->q, NPUPROF_NPU_AT_JOB_)) {   /* it may be known by now */
        npuprof_npu_sought_ of_begin = npuprof_npu_sought_by_(npu, e);
        npuprof_npu_submission_ late;
        of_begin.id = pair->record.v[NPUPROF_NPU_AT_JOB_];
        const bool whole = npuprof_npu_is_whole_(&e->q->is, op);
        (void)npuprof_npu_take_submission_(npu, &of_begin, whole, false, &late);
        if (late.muted) return;
        if (late.known) pair->of = late;
    }
    t.start = pair->start;
    npuprof_npu_add_end_(&pair->record, e->r);
    npuprof_npu_learn_record_(npu, &pair->of, &t, e->pass);
    npuprof_npu_note_whole_(npu, e, op, &pair->of, &t);
    npuprof_npu_draw_record_(npu, e->q, e->pe, &pair->record, &pair->of, &t);
}

static npuprof_result npuprof_npu_take_span_(npuprof_npu *npu, const npuprof_npu_entry_ *e, bool can_wait)
{
    npuprof_npu_submission_ of;
    npuprof_npu_times_ t;
    if (npuprof_npu_find_owner_(npu, e, can_wait, &of) != NPUPROF_OK) return NPUPROF_ERR_NPU_BUSY;
    if (!npuprof_npu_draws_(&of)) return NPUPROF_OK;
    const int why = npuprof_npu_span_times_(npu, e, &of, &t);
    if (why != NPUPROF_NPU_TIMES_GOOD_) {
        npuprof_npu_count_records_(npu, (unsigned)why, 1);
        return NPUPROF_OK;
    }
    npuprof_npu_learn_record_(npu, &of, &t, e->pass);
    npuprof_npu_note_whole_(npu, e, e->r->v[NPUPROF_NPU_AT_OP_], &of, &t);
    npuprof_npu_draw_record_(npu, e->q, e->pe, e->r, &of, &t);
    return NPUPROF_OK;
}

/* An instant, or the value of a counter. */
static void npuprof_npu_take_event_(npuprof_npu *npu, const npuprof_npu_entry_ *e, bool is_value)
{
    const npuprof_npu_queue_ *const q = e->q;
    npuprof_npu_submission_ of;
    npuprof_npu_times_ t;
    char text[NPUPROF_NPU_NAME_], track[2 * NPUPROF_NPU_NAME_];
    if (!NPUPROF_OPEN_(1)) return;
    const int why = npuprof_npu_moment_(npu, e, NULL, &t);
    if (why != NPUPROF_NPU_TIMES_GOOD_) {
        npuprof_npu_count_records_(npu, (unsigned)why, 1);
        return;
    }
    memset(&of, 0, sizeof of);
    npuprof_npu_copy_text_(of.name, sizeof of.name, "event");
    t.flags |= is_value ? NPUPROF_STAMP_VALUE : NPUPROF_STAMP_INSTANT;
    if (!is_value) {
        npuprof_npu_draw_record_(npu, q, e->pe, e->r, &of, &t);
        return;
    }
    const uint64_t op = e->r->v[NPUPROF_NPU_AT_OP_];
    npuprof_npu_drawing_ d;
    bool stays;
    npuprof_npu_copy_text_(track, NPUPROF_NPU_NAME_, npu->device.name);
    const size_t used = strlen(track);
    track[used] = ' ';
    npuprof_npu_copy_text_(track + used + 1, NPUPROF_NPU_NAME_,
                           npuprof_npu_has_(q, NPUPROF_NPU_AT_OP_)
                               ? npuprof_npu_name_op_(npu, &q->is, op, text, &stays) : "value");
    memset(&d, 0, sizeof d);
    d.start = t.start;
    d.end = e->r->v[NPUPROF_NPU_AT_VALUE_];
    d.epoch = t.epoch;
    d.flags = t.flags;
    d.lane = e->pe;
    d.name = track;
    d.category = q->is.category;
    npuprof_npu_draw_(npu, &d, &of);
}

/* ---- Any record */

/* Do all conditions hold? False if there are none. */
static bool npuprof_npu_holds_(const npuprof_npu_queue_ *q, const npuprof_npu_record_ *r, unsigned at,
                               const npuprof_npu_condition *conditions)
{
    bool any = false;
    for (unsigned i = 0; i < NPUPROF_NPU_CONDITIONS; i++) {
        if (!npuprof_npu_has_(q, at + i)) continue;
        if (r->v[at + i] != conditions[i].value) return false;
        any = true;
    }
    return any;
}

/* A record that tells the high part of its lane's stamps. */
static void npuprof_npu_take_clock_(const npuprof_npu *npu, const npuprof_npu_entry_ *e)
{
    const npuprof_npu_queue_ *const q = e->q;
    const npuprof_npu_record_ *const r = e->r;
    const npuprof_npu_pass_ *const pass = e->pass;
    const unsigned low = npuprof_npu_bits_at_(q, NPUPROF_NPU_AT_STAMP_);
    const unsigned bits = low + npuprof_npu_bits_at_(q, NPUPROF_NPU_AT_CLOCK_HIGH_);
    if (low >= 64) return;
    const bool down = npu->desc_.counter.counts_down && q->is.stamp_clock == NPUPROF_NPU_STAMP_COUNTER;
    const uint64_t word = r->v[NPUPROF_NPU_AT_STAMP_] | r->v[NPUPROF_NPU_AT_CLOCK_HIGH_] << low;
    const uint64_t raw = (down ? ~word : word) & npuprof_npu_mask_(bits);
    const npuprof_npu_bounds_ b = npuprof_npu_bounds_of_(npu, &pass->units, &pass->now, q, NULL, 0);
    uint64_t stamp = raw;
    e->lane->has_last = !pass->units.known ||
                        (npuprof_npu_extend_(raw, bits, &b, &stamp) == NPUPROF_NPU_TIMES_GOOD_ &&
                         stamp <= b.high);
    e->lane->last = stamp;
}

/* What the queue's table says of a kind; -1: nothing. */
static int npuprof_npu_kind_of_(const npuprof_npu_queue_ *q, const npuprof_npu_record_ *r)
{
    if (!npuprof_npu_has_(q, NPUPROF_NPU_AT_KIND_)) return q->is.all_are;
    for (unsigned i = 0; i < q->is.kind_count; i++)
        if (q->is.kinds[i].value == r->v[NPUPROF_NPU_AT_KIND_]) return q->is.kinds[i].is;
    return -1;
}

/* Takes a record: draws it, keeps it, or counts it. NPUPROF_ERR_NPU_BUSY, only with can_wait: nobody can tell
   now whose it is, and nothing was done. */
static npuprof_result npuprof_npu_take_record_(npuprof_npu *npu, npuprof_npu_queue_ *q,
                                               const npuprof_npu_record_ *r, const npuprof_npu_pass_ *pass,
                                               bool can_wait)
{
    npuprof_npu_entry_ e = { q, r, pass, NULL, 0 };
    npuprof_npu_lane_state_ *lane = NULL;
    const uint64_t pe = r->v[NPUPROF_NPU_AT_PE_];
    if (npuprof_npu_holds_(q, r, NPUPROF_NPU_AT_EMPTY_, q->is.empty)) return NPUPROF_OK;
    if (q->gap) npuprof_npu_abandon_queue_(npu, q);
    const int kind = npuprof_npu_kind_of_(q, r);
    const bool is_clock = npuprof_npu_holds_(q, r, NPUPROF_NPU_AT_CLOCK_WHEN_, q->is.clock_when);
    if (kind == NPUPROF_NPU_KIND_SKIP && !is_clock) return NPUPROF_OK;   /* Why here: it takes no lane. */
    if (npuprof_npu_lanes_count_(q) || pe + q->is.pe_base > 0xFFFFu || pe > 0xFFFFu) {
        lane = npuprof_npu_lane_of_(npu, q, pe);
        npuprof_npu_lane_epoch_(lane, pass->now.epoch);
    }
    e.pe = lane ? lane->lane : (unsigned)(q->is.pe_base + pe);
    if (npuprof_npu_lanes_count_(q)) e.lane = lane;
    if (e.lane && is_clock) {
        npuprof_npu_take_clock_(npu, &e);
        return NPUPROF_OK;
    }
    switch (kind) {
    case NPUPROF_NPU_KIND_SPAN: return npuprof_npu_take_span_(npu, &e, can_wait);
    case NPUPROF_NPU_KIND_BEGIN: return npuprof_npu_take_begin_(npu, &e, can_wait);
    case NPUPROF_NPU_KIND_END: npuprof_npu_take_end_(npu, &e); break;
    case NPUPROF_NPU_KIND_INSTANT: npuprof_npu_take_event_(npu, &e, false); break;
    case NPUPROF_NPU_KIND_COUNTER: npuprof_npu_take_event_(npu, &e, true); break;
    case NPUPROF_NPU_KIND_SKIP: break;
    default: npuprof_npu_count_records_(npu, NPUPROF_RECORDS_UNKNOWN, 1); break;
    }
    return NPUPROF_OK;
}
