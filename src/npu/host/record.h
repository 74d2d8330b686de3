#pragma once   /* SPDX-License-Identifier: MIT */
#include "../../public/macros.h"
#include "../../record/args.h"
#include "../types.h"
#include "../mmio.h"
#include "match.h"
#include "draw.h"
#include "pushed.h"
#include "format.h"
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
    const char *const given = ring->op_name ? ring->op_name(npu->desc_.user, op) : NULL;
    if (given) return given;
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

/* What is known of the submission of a record. */
static npuprof_npu_lookup_ npuprof_npu_lookup_of_(const npuprof_npu *npu, const npuprof_npu_entry_ *e)
{
    const npuprof_npu_queue_ *const q = e->q;
    const npuprof_npu_record_ *const r = e->r;
    const uint64_t pe = r->v[NPUPROF_NPU_AT_PE_];
    npuprof_npu_lookup_ s;
    s.has_id = npuprof_npu_has_(q, NPUPROF_NPU_AT_JOB_);
    s.id = r->v[NPUPROF_NPU_AT_JOB_];
    s.id_mask = npuprof_npu_mask_(npuprof_npu_bits_at_(q, NPUPROF_NPU_AT_JOB_));
    s.any_stream = !npuprof_npu_has_(q, NPUPROF_NPU_AT_PE_) && npu->queue_count_ == 1;
    s.stream = q->is.lane_count || pe > 0xFFFFu ? pe : e->pe;
    s.is_scoped = q->is.job_scope != NPUPROF_NPU_SCOPE_DEVICE;
    s.scope = q->is.job_scope == NPUPROF_NPU_SCOPE_RING ? q->number : s.stream;
    s.is_late = e->is_late;
    s.before = e->before;
    s.whole = npuprof_npu_is_whole_(&q->is, r->v[NPUPROF_NPU_AT_OP_]);
    s.can_wait = e->can_wait;
    return s;
}

/* Finds the submission of a record. A part of a job whose whole has begun, and not ended, is of the same: the
   begin took it. False, only with can_wait: nobody can tell now, and nothing was done. */
static bool npuprof_npu_find_owner_(npuprof_npu *npu, const npuprof_npu_entry_ *e)
{
    const npuprof_npu_lookup_ s = npuprof_npu_lookup_of_(npu, e);
    for (uint16_t at = s.whole ? 0 : npu->newest_pair_; at; at = npu->pairs_[at - 1].older) {
        const npuprof_npu_pair_ *const pair = &npu->pairs_[at - 1];
        if (pair->e.q != e->q || pair->e.pe != e->pe || pair->record.v[NPUPROF_NPU_AT_JOB_] != s.id) continue;
        if (!npuprof_npu_is_whole_(&e->q->is, pair->record.v[NPUPROF_NPU_AT_OP_])) continue;
        *e->of = pair->of;
        npuprof_npu_set_run_(e->of, &pair->e.t, false);
        return true;
    }
    if (!s.whole && npuprof_npu_find_ended_(npu, &s, e->of)) return true;
    return npuprof_npu_take_submission_(npu, &s, e->of) == NPUPROF_OK;
}

/* Draws what a record, or two, said. */
static void npuprof_npu_draw_record_(npuprof_npu *npu, const npuprof_npu_entry_ *e)
{
    const npuprof_npu_queue_ *const q = e->q;
    const npuprof_npu_ring *const ring = &q->is;
    const uint64_t *const v = e->r->v;
    const uint64_t op = v[NPUPROF_NPU_AT_OP_];
    char text[NPUPROF_NPU_NAME_];
    npuprof_npu_drawing_ d;
    size_t n = NPUPROF_NPU_OWN_ARGS_;
    d.start = e->t.start;
    d.end = e->t.end;
    d.epoch = e->t.epoch;
    d.flags = e->t.flags;
    d.lane = e->pe;
    d.category = ring->category;
    d.takes_arrow = npuprof_npu_is_whole_(ring, op);
    d.texts_stay = true;
    d.name_stays = false;
    d.name = NULL;
    if (npuprof_npu_has_(q, NPUPROF_NPU_AT_OP_))
        d.name = npuprof_npu_name_op_(npu, ring, op, text, &d.name_stays);
    for (const npuprof_npu_drawn_ *a = q->drawn; a < q->drawn + q->drawn_count; a++)
        if (a->at != NPUPROF_NPU_AT_INSTRUCTION_ || !ring->execution_op || !d.takes_arrow)
            d.args[n++] = npuprof_uint_(a->key, v[a->at]);
    if (e->t.doubt_ns) d.args[n++] = npuprof_uint_("duration_error_ns", e->t.doubt_ns);
    if (v[NPUPROF_NPU_AT_STATUS_]) d.args[n++] = npuprof_uint_("status", v[NPUPROF_NPU_AT_STATUS_]);
    if (e->t.unfinished) d.args[n++] = npuprof_bool_("unfinished", true);
    d.arg_count = n - NPUPROF_NPU_OWN_ARGS_;
    npuprof_npu_draw_(npu, &d, e->of);
}

/* Ends the way of a span, which is placed. A device whose clock nobody reads learns from it: its job began
   after it was submitted, and is over. A whole is noted: its parts may come after it. */
static void npuprof_npu_finish_span_(npuprof_npu *npu, const npuprof_npu_entry_ *e)
{
    const npuprof_npu_submission_ *const of = e->of;
    const npuprof_npu_ring *const ring = &e->q->is;
    if (of->known && of->link.ticks && !(e->t.flags & NPUPROF_STAMP_HOST)) {
        const uint64_t doubt = npuprof_mul_div_(e->t.doubt_ns, npu->second_, 1000000000, true);
        const uint64_t unit = npuprof_npu_is_scaled_(ring) ? npuprof_npu_unit_(ring) : 0;
        const npuprof_anchor_ job = { e->t.start, npuprof_saturating_sub_(of->link.ticks, doubt),
                                      e->pass->now.host + doubt };
        npuprof_npu_bracket_job_(npu, e->t.epoch, &job, e->t.end, unit);
    }
    if (ring->execution_op && npuprof_npu_is_whole_(ring, e->r->v[NPUPROF_NPU_AT_OP_])) {
        const npuprof_npu_lookup_ whole = npuprof_npu_lookup_of_(npu, e);
        npuprof_npu_note_ended_(npu, &whole, e);
    }
    npuprof_npu_draw_record_(npu, e);
}

/* ---- Kinds */

/* Draws a begin whose end does not come, up to those ticks. */
static void npuprof_npu_draw_unfinished_(npuprof_npu *npu, npuprof_npu_pair_ *pair, uint64_t end)
{
    if (!pair->draws) return;
    pair->e.t.end = npuprof_max_(pair->e.t.start, end);
    pair->e.t.unfinished = true;
    pair->record.v[NPUPROF_NPU_AT_STATUS_] = 0;
    npuprof_npu_count_records_(npu, NPUPROF_RECORDS_UNFINISHED, 1);
    npuprof_npu_draw_record_(npu, &pair->e);
}

/* Ends a begin whose end will not come: with the last stamp of its lane. */
static void npuprof_npu_abandon_pair_(npuprof_npu *npu, npuprof_npu_pair_ *pair)
{
    const npuprof_npu_lane_state_ *const lane = pair->e.lane;
    const bool same = pair->e.t.flags & NPUPROF_STAMP_HOST || lane->epoch == pair->e.t.epoch;
    npuprof_npu_close_pair_(npu, pair);
    npuprof_npu_draw_unfinished_(npu, pair, same ? lane->last_ticks : 0);
}

/* Entries of a queue are lost: an end may be among them, so the next one is not that of a begin before. */
static void npuprof_npu_abandon_queue_(npuprof_npu *npu, npuprof_npu_queue_ *q)
{
    for (uint16_t at = q->gap ? npu->oldest_pair_ : 0, next; at; at = next) {
        npuprof_npu_pair_ *const pair = &npu->pairs_[at - 1];
        next = pair->newer;
        if (pair->e.q == q) npuprof_npu_abandon_pair_(npu, pair);
    }
    q->gap = false;
}

/* A whole span, or its begin. False, only with can_wait: nobody can tell now whose it is, and nothing was
   done. */
static bool npuprof_npu_take_span_(npuprof_npu *npu, npuprof_npu_entry_ *e)
{
    const bool is_begin = e->kind == NPUPROF_NPU_KIND_BEGIN;
    if (!npuprof_npu_find_owner_(npu, e)) return false;
    const bool draws = npuprof_npu_draws_(e->of);
    if (!draws && !is_begin) return true;
    const int why = npuprof_npu_find_times_(npu, e);
    if (why == NPUPROF_RECORDS_CONTRADICTION) npuprof_npu_doubt_pushed_(npu);
    if (draws ? !npuprof_npu_is_placed_(npu, why) : why != NPUPROF_NPU_PLACED_) return true;
    if (!is_begin) {
        npuprof_npu_finish_span_(npu, e);
    } else if (!npuprof_npu_open_pair_(npu, e, draws)) {
        npuprof_npu_abandon_pair_(npu, npuprof_npu_oldest_pair_(npu));
        (void)npuprof_npu_open_pair_(npu, e, draws);
    }
    return true;
}

/* The submission of a begin that had none may be known by now. */
static void npuprof_npu_find_owner_again_(npuprof_npu *npu, const npuprof_npu_entry_ *e)
{
    npuprof_npu_submission_ now;
    npuprof_npu_lookup_ s = npuprof_npu_lookup_of_(npu, e);
    s.can_wait = false;
    (void)npuprof_npu_take_submission_(npu, &s, &now);
    if (now.known || now.muted) *e->of = now;
}

static void npuprof_npu_take_end_(npuprof_npu *npu, npuprof_npu_entry_ *e)
{
    npuprof_npu_pair_ *const pair = npuprof_npu_match_pair_(npu, e);
    if (pair) e->of = &pair->of;
    int why = npuprof_npu_find_times_(npu, e);
    const bool is_good = why == NPUPROF_NPU_PLACED_;
    /* Why not with host stamps: their epoch is an error, which a better known rate changes. */
    const bool is_other_run = is_good && !(e->t.flags & NPUPROF_STAMP_HOST) && pair &&
                              e->t.epoch != pair->e.t.epoch;
    if (!pair || is_other_run) {         /* no begin, or one of before a reset */
        if (NPUPROF_OPEN_(1)) npuprof_npu_count_records_(npu, NPUPROF_RECORDS_UNMATCHED_END, 1);
        if (pair) npuprof_npu_draw_unfinished_(npu, pair, 0);
        return;
    }
    if (!pair->draws) return;
    e->t.start = pair->e.t.start;
    if (is_good && e->t.start > e->t.end) {
        if (e->t.start - e->t.end > e->pass->now.allowance) why = NPUPROF_RECORDS_STAMPS;
        e->t.end = e->t.start;
    }
    if (!npuprof_npu_is_placed_(npu, why)) return;
    npuprof_npu_add_end_(&pair->record, e->r);
    e->r = &pair->record;
    if (!pair->of.known && npuprof_npu_has_(e->q, NPUPROF_NPU_AT_JOB_)) npuprof_npu_find_owner_again_(npu, e);
    if (!pair->of.muted) npuprof_npu_finish_span_(npu, e);
}

/* An instant, or the value of a counter. */
static void npuprof_npu_take_event_(npuprof_npu *npu, npuprof_npu_entry_ *e)
{
    char text[NPUPROF_NPU_NAME_], track[2 * NPUPROF_NPU_NAME_];
    npuprof_npu_drawing_ d;
    bool stays;
    if (!NPUPROF_OPEN_(1) || !npuprof_npu_is_placed_(npu, npuprof_npu_find_times_(npu, e))) return;
    if (e->kind == NPUPROF_NPU_KIND_INSTANT) {
        npuprof_npu_copy_text_(e->of->name, sizeof e->of->name, "event");
        e->t.flags |= NPUPROF_STAMP_INSTANT;
        npuprof_npu_draw_record_(npu, e);
        return;
    }
    const char *const name = npuprof_npu_has_(e->q, NPUPROF_NPU_AT_OP_)
        ? npuprof_npu_name_op_(npu, &e->q->is, e->r->v[NPUPROF_NPU_AT_OP_], text, &stays) : "value";
    npuprof_npu_copy_text_(track, NPUPROF_NPU_NAME_, npu->device.name);
    const size_t used = strlen(track);
    track[used] = ' ';
    npuprof_npu_copy_text_(track + used + 1, NPUPROF_NPU_NAME_, name);
    memset(&d, 0, sizeof d);
    d.start = e->t.start;
    d.end = e->r->v[NPUPROF_NPU_AT_VALUE_];
    d.epoch = e->t.epoch;
    d.flags = e->t.flags | NPUPROF_STAMP_VALUE;
    d.lane = e->pe;
    d.name = track;
    d.category = e->q->is.category;
    npuprof_npu_draw_(npu, &d, e->of);
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
    const unsigned low = npuprof_npu_bits_at_(e->q, NPUPROF_NPU_AT_STAMP_);
    const unsigned bits = low + npuprof_npu_bits_at_(e->q, NPUPROF_NPU_AT_CLOCK_HIGH_);
    const uint64_t *const v = e->r->v;
    if (low >= 64) return;
    const uint64_t word = v[NPUPROF_NPU_AT_STAMP_] | v[NPUPROF_NPU_AT_CLOCK_HIGH_] << low;
    const uint64_t raw = npuprof_npu_raw_stamp_(npu, e->q, word, bits);
    const npuprof_npu_bounds_ b = npuprof_npu_bounds_of_(npu, e, NULL);
    uint64_t stamp = raw;
    e->lane->has_last = !e->pass->units.known ||
                        (npuprof_npu_extend_(raw, bits, &b, &stamp) == NPUPROF_NPU_PLACED_ &&
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

/* Takes a record, whose way is known: draws it, keeps it, or counts it. False, only with can_wait: nobody can
   tell now whose it is, and nothing was done. */
static bool npuprof_npu_take_record_(npuprof_npu *npu, npuprof_npu_entry_ *e)
{
    npuprof_npu_queue_ *const q = e->q;
    npuprof_npu_submission_ of;
    const uint64_t pe = e->r->v[NPUPROF_NPU_AT_PE_];
    if (npuprof_npu_holds_(q, e->r, NPUPROF_NPU_AT_EMPTY_, q->is.empty)) return true;
    if (q->gap) npuprof_npu_abandon_queue_(npu, q);
    const bool is_clock = npuprof_npu_holds_(q, e->r, NPUPROF_NPU_AT_CLOCK_WHEN_, q->is.clock_when);
    e->kind = npuprof_npu_kind_of_(q, e->r);
    if (e->kind == NPUPROF_NPU_KIND_SKIP && !is_clock) return true;      /* Why here: it takes no lane. */
    npuprof_npu_lane_state_ *lane = NULL;
    if (q->remembers || pe + q->is.pe_base > 0xFFFFu || pe > 0xFFFFu) {
        lane = npuprof_npu_lane_of_(npu, q, pe);
        npuprof_npu_lane_epoch_(lane, e->pass->now.epoch);
    }
    e->pe = lane ? lane->lane : (unsigned)(q->is.pe_base + pe);
    e->lane = q->remembers ? lane : NULL;
    e->of = &of;
    npuprof_npu_clear_submission_(&of);
    if (e->lane && is_clock) {
        npuprof_npu_take_clock_(npu, e);
        return true;
    }
    switch (e->kind) {
    case NPUPROF_NPU_KIND_SPAN:
    case NPUPROF_NPU_KIND_BEGIN: return npuprof_npu_take_span_(npu, e);
    case NPUPROF_NPU_KIND_END: npuprof_npu_take_end_(npu, e); break;
    case NPUPROF_NPU_KIND_INSTANT:
    case NPUPROF_NPU_KIND_COUNTER: npuprof_npu_take_event_(npu, e); break;
    case NPUPROF_NPU_KIND_SKIP: break;
    default: npuprof_npu_count_records_(npu, NPUPROF_RECORDS_UNKNOWN, 1); break;
    }
    return true;
}
