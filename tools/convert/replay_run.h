#pragma once   /* SPDX-License-Identifier: MIT */
#include "replay.h"

/* The records of a target's drivers, said once more to npuprof_npu.h (replay.h), in the order of their
   stamps. */

enum { NPUPROF_REPLAY_KINDS_ = 64, NPUPROF_REPLAY_OPS_ = 1024, NPUPROF_REPLAY_LANES_ = 256,
       NPUPROF_REPLAY_WORDS_ = 32, NPUPROF_REPLAY_ARGS_ = 9 };

/* A ring as the target described it. */
typedef struct npuprof_replay_ring_ {
    npuprof_npu_kind kinds[NPUPROF_REPLAY_KINDS_];
    npuprof_npu_op ops[NPUPROF_REPLAY_OPS_];
    npuprof_npu_lane lanes[NPUPROF_REPLAY_LANES_];
} npuprof_replay_ring_;

/* A device of the target. */
typedef struct npuprof_replay_device_ {
    npuprof_npu npu;
    npuprof_npu_ring rings[NPUPROF_NPU_RINGS];
    npuprof_replay_ring_ tables[NPUPROF_NPU_RINGS];
    unsigned ring_count;
    bool was_opened;
} npuprof_replay_device_;

/* A record's fields beside its values. */
typedef struct npuprof_replay_said_ {
    uint64_t word[NPUPROF_REPLAY_WORDS_];
    npuprof_arg arg[NPUPROF_REPLAY_ARGS_];
    uint32_t words, args;
    bool has_name, has_category;
} npuprof_replay_said_;

static const char *npuprof_replay_text_(const npuprof_expander_ *x, uint32_t id)
{
    return (const char *)(x->table + (size_t)id * 16 + sizeof(npuprof_entry_));
}

static void npuprof_replay_read_said_(npuprof_expander_ *x, const npuprof_expand_item_ *r,
                                      npuprof_replay_said_ *s)
{
    memset(s, 0, sizeof *s);
    NPUPROF_EXPAND_EACH_FIELD_(x, f, r->cell) {
        const uint32_t type = npuprof_expand_field_type_(x, f), length = npuprof_expand_field_length_(x, f);
        if (type == NPUPROF_FIELD_WORD_ && s->words < NPUPROF_REPLAY_WORDS_)
            s->word[s->words++] = npuprof_expand_field_value_(x, f);
        s->has_name = s->has_name || type == NPUPROF_FIELD_NAME_;
        s->has_category = s->has_category || type == NPUPROF_FIELD_CATEGORY_;
        if (type >= NPUPROF_FIELD_NAME_ || s->args == NPUPROF_REPLAY_ARGS_) continue;
        npuprof_arg *const a = &s->arg[s->args++];
        const uint64_t key = npuprof_expand_target_address_(x, npuprof_expand_cell_word_(x, f, 0));
        a->key = npuprof_replay_text_(x, npuprof_expand_target_text_(x, key));
        a->type = (uint8_t)type;
        a->value.u = npuprof_expand_field_value_(x, f);
        if (type >= NPUPROF_ARG_STR)
            a->value.s = npuprof_replay_text_(x, npuprof_expand_text_(x, npuprof_expand_field_text_(x, f),
                                                                      length));
    }
}

/* What a RING record says. */
static void npuprof_replay_take_ring_(npuprof_expander_ *x, npuprof_replay_device_ *d,
                                      const npuprof_expand_item_ *r)
{
    const uint32_t ring = r->values[2] >> 8 & 0xFF, which = (uint32_t)(r->values[2] >> 16);
    const uint64_t value = r->values[0];
    const char *const name = npuprof_replay_text_(x, r->name);
    if (ring >= NPUPROF_NPU_RINGS || d->was_opened) return;
    npuprof_npu_ring *const to = &d->rings[ring];
    npuprof_replay_ring_ *const t = &d->tables[ring];
    d->ring_count = ring + 1 > d->ring_count ? ring + 1 : d->ring_count;
    to->feed = true;
    switch (r->values[1]) {
    case NPUPROF_CELL_RING_WORD_: npuprof_npu_set_ring_word_(to, which, value); break;
    case NPUPROF_CELL_RING_ARG_: if (which < NPUPROF_NPU_ARGS) to->args[which].name = name; break;
    case NPUPROF_CELL_RING_OP_:
        if (which >= NPUPROF_REPLAY_OPS_ || which != to->op_count) break;
        t->ops[which].code = value;
        t->ops[which].name = name;
        to->ops = t->ops;
        to->op_count = which + 1;
        break;
    case NPUPROF_CELL_RING_LANE_:
        if (which >= NPUPROF_REPLAY_LANES_ || which != to->lane_count) break;
        t->lanes[which].value = value;
        t->lanes[which].name = name;
        to->lanes = t->lanes;
        to->lane_count = which + 1;
        break;
    case NPUPROF_CELL_RING_KIND_: if (which < NPUPROF_REPLAY_KINDS_) t->kinds[which].value = value; break;
    case NPUPROF_CELL_RING_KIND_IS_:
        if (which >= NPUPROF_REPLAY_KINDS_ || which != to->kind_count) break;
        t->kinds[which].is = (int)value;
        to->kinds = t->kinds;
        to->kind_count = which + 1;
        break;
    case NPUPROF_CELL_RING_CATEGORY_: to->category = name; break;
    default: break;
    }
}

static bool npuprof_replay_is_on_(void *user)
{
    (void)user;
    return true;
}

/* Opens a device as the target did. Its counter is not read: the target tells what it read. */
static void npuprof_replay_open_(npuprof_expander_ *x, npuprof_replay_device_ *d, uint32_t number)
{
    const npuprof_device_entry_ *const e = npuprof_expand_device_(x, number);
    npuprof_npu_desc desc;
    memset(&desc, 0, sizeof desc);
    d->was_opened = true;
    if (!e) return;
    desc.name = npuprof_replay_text_(x, e->name);
    desc.anchors_only = true;
    if (x->devices[number].may_stand) desc.is_on = npuprof_replay_is_on_;
    desc.counter.hz = e->nominal_hz;
    desc.max_rate_ppm = e->max_rate_ppb / 1000;
    desc.pe_count = e->pe_count;
    desc.job_count = 65536;
    desc.ring.feed = !d->ring_count;
    desc.rings = d->ring_count ? d->rings : NULL;
    desc.ring_count = d->ring_count;
    const npuprof_result result = npuprof_npu_open(&d->npu, &desc);
    if (result != NPUPROF_OK)
        npuprof_os_say_("npuprof-convert: the records of device %u cannot be drawn: %s\n", (unsigned)number,
                        npuprof_result_string(result));
}

/* The open submission whose span lies in that cell. NULL: there is none. */
static npuprof_npu_job_ *npuprof_replay_job_of_(const npuprof_npu *npu, uint32_t cell)
{
    npuprof_npu_walk_ walk = npuprof_npu_walk_of_(npu, npu->used_);
    for (npuprof_npu_job_ *job; (job = npuprof_npu_next_job_(&walk)) != NULL;)
        if (job->link.ticks && job->link.position == cell) return job;
    return NULL;
}

/* The cell that a JOB names. False: it names none, or it is not there. */
static bool npuprof_replay_cell_(const npuprof_expander_ *x, const npuprof_expand_item_ *r, uint32_t *cell)
{
    const uint32_t token = (uint32_t)r->values[1];
    return token && npuprof_expand_find_cell_(x->g, npuprof_expand_named_number_(x, token, r->cell), cell);
}

static void npuprof_replay_begin_(npuprof_expander_ *x, npuprof_npu *npu, const npuprof_expand_item_ *r,
                                  uint32_t cell)
{
    const npuprof_expand_item_ *const host = x->place[cell] ? &x->list[x->place[cell] - 1] : NULL;
    npuprof_link_ link = npuprof_replay_here_();
    if (!host || host->start > r->start) return;
    link.position = cell;
    link.ticks = host->start;
    npuprof_npu_job_ *const job = npuprof_npu_new_job_(npu, NPUPROF_NPU_IN_BLOCK_, r->values[0], &link);
    if (!job) return;
    job->epoch = (uint32_t)(r->values[2] >> 16) & 0xFFFF;
    npuprof_npu_copy_text_(job->name, sizeof job->name, npuprof_replay_text_(x, host->name));
    npuprof_npu_release_job_(npu, job, NPUPROF_NPU_JOB_OPEN_);
}

static void npuprof_replay_take_job_(npuprof_expander_ *x, npuprof_npu *npu, const npuprof_expand_item_ *r)
{
    uint32_t cell = 0;
    const bool named = npuprof_replay_cell_(x, r, &cell);
    const uint32_t what = r->values[2] >> 8 & 0xFF;
    npuprof_npu_job_ *const job = named ? npuprof_replay_job_of_(npu, cell) : NULL;
    if (what == NPUPROF_CELL_JOB_BEGIN_ && named) npuprof_replay_begin_(x, npu, r, cell);
    if (what == NPUPROF_CELL_JOB_END_ && job)
        npuprof_npu_end_block_of_job_(npu, (uint32_t)(job - npu->jobs_), job->ticket);
    if (what == NPUPROF_CELL_JOB_RECORDS_) npuprof_npu_set_job_records(npu, (unsigned)r->values[0]);
    if (what != NPUPROF_CELL_JOB_NUMBER_) return;
    if (job) (void)npuprof_npu_number_ticket_(npu, (uint32_t)(job - npu->jobs_), job->ticket, r->values[0]);
    else if (!r->values[1]) npuprof_npu_set_job(npu, r->values[0]);
}

/* The target read its counter: what it showed. A run of it that the target began is one here. */
static void npuprof_replay_told_(npuprof_npu *npu, const uint64_t *word, uint32_t epoch)
{
    npuprof_npu_raw_ raw;
    memset(&raw, 0, sizeof raw);
    raw.value = word[0];
    raw.before = word[1];
    raw.after = word[2];
    if (npu->epoch_ != epoch) {
        npuprof_npu_new_epoch_(npu, NPUPROF_ERR_NPU_RESET);
        npu->has_last_ = false;
        npu->epoch_ = epoch;
    }
    (void)npuprof_npu_take_pushed_(npu, &raw);
    npuprof_replay_s_.epoch = epoch;
}

static void npuprof_replay_take_entry_(npuprof_npu *npu, const npuprof_expand_item_ *r,
                                       const npuprof_replay_said_ *s)
{
    uint8_t entry[NPUPROF_REPLAY_WORDS_ * 8];
    const uint32_t skip = r->values[2] & NPUPROF_CELL_TIMED_ ? 3 : 0, ring = (uint32_t)r->values[0];
    if (ring >= npu->queue_count_ || s->words < skip) return;
    const size_t size = npu->queues_[ring].is.entry_bytes, words = s->words - skip;
    npuprof_replay_s_.misplaced = 0;
    if (skip) npuprof_replay_told_(npu, s->word, (uint32_t)(r->values[2] >> 8) & 0xFFFF);
    for (size_t i = 0; i < words * 8; i++) entry[i] = (uint8_t)(s->word[skip + i / 8] >> (8 * (i % 8)));
    if (!words || words * 8 >= size) (void)npuprof_npu_feed(npu, ring, entry, words ? size : 0);
    if (!npuprof_replay_s_.misplaced) return;
    npuprof_npu_count_records_(npu, NPUPROF_RECORDS_EPOCH, npuprof_replay_s_.misplaced);
}

static void npuprof_replay_take_(npuprof_expander_ *x, npuprof_replay_device_ *d,
                                 const npuprof_expand_item_ *r)
{
    npuprof_replay_said_ said;
    const uint32_t number = r->values[2] & 0xFF;
    if (r->kind == NPUPROF_CELL_KIND_RING_) {
        npuprof_replay_take_ring_(x, d, r);
        return;
    }
    if (r->kind == NPUPROF_CELL_KIND_JOB_ && (r->values[2] >> 8 & 0xFF) == NPUPROF_CELL_JOB_CALL_) {
        x->h->lost[NPUPROF_LOST_CALLS] += r->values[0] == 1;     /* it is still open */
        return;
    }
    npuprof_replay_s_.device = number;
    npuprof_replay_s_.context = r->context;
    npuprof_replay_s_.now = r->start;
    if (!d->was_opened) npuprof_replay_open_(x, d, number);
    if (!d->npu.number_) return;
    npuprof_replay_read_said_(x, r, &said);
    if (r->kind == NPUPROF_CELL_KIND_JOB_) npuprof_replay_take_job_(x, &d->npu, r);
    if (r->kind == NPUPROF_CELL_KIND_ENTRY_) npuprof_replay_take_entry_(&d->npu, r, &said);
    if (r->kind != NPUPROF_CELL_KIND_HAND_ || said.words < 2) return;
    (void)npuprof_npu_complete_host(&d->npu, r->values[0], r->values[1] & 0xFFFF,
                                    said.has_name ? npuprof_replay_text_(x, r->name) : NULL,
                                    said.has_category ? npuprof_replay_text_(x, r->category) : NULL,
                                    (int64_t)said.word[0], (int64_t)said.word[1],
                                    npuprof_args_(said.arg, said.args), r->values[1] >> 16 & 1);
}

/* Draws the raw records of all devices. Returns memory that the drawn spans lie in, *bytes of it, or NULL. */
static void *npuprof_replay_(npuprof_expander_ *x, size_t *bytes)
{
    static npuprof_replay_device_ *devices[256];
    const uint32_t count = x->record_count;
    uint32_t raw = 0;
    for (uint32_t i = 0; i < count; i++) {
        const uint32_t kind = x->list[i].kind;
        raw += kind >= NPUPROF_CELL_KIND_RING_ && kind <= NPUPROF_CELL_KIND_HAND_;
    }
    memset(&npuprof_replay_s_, 0, sizeof npuprof_replay_s_);
    *bytes = raw * sizeof(npuprof_replay_drawn_);
    void *const drawn = raw ? npuprof_load_memory_(*bytes) : NULL;
    if (!drawn) return NULL;
    npuprof_replay_s_.drawn = (npuprof_replay_drawn_ *)drawn;
    npuprof_replay_s_.x = x;
    npuprof_replay_s_.room = raw;
    npuprof_replay_s_.first = x->h->first.ticks;
    npuprof_replay_s_.hz = x->h->clock_hz ? x->h->clock_hz : 1;
    for (uint32_t i = 0; i < count; i++) x->place[x->list[i].cell] = i + 1;
    for (uint32_t i = 0; i < count; i++) {
        const npuprof_expand_item_ r = x->list[i];
        const bool is_raw = r.kind >= NPUPROF_CELL_KIND_RING_ && r.kind <= NPUPROF_CELL_KIND_HAND_;
        npuprof_replay_device_ **const d = &devices[r.values[2] & 0xFF];
        if (!is_raw || !(r.values[2] & 0xFF)) continue;
        if (!*d) *d = (npuprof_replay_device_ *)npuprof_load_memory_(sizeof **d);
        if (*d) npuprof_replay_take_(x, *d, &r);
    }
    for (uint32_t i = 0; i < count; i++) x->place[x->list[i].cell] = 0;
    for (uint32_t i = 1; i < 256; i++) {
        if (!devices[i]) continue;
        npuprof_replay_s_.device = i;
        if (devices[i]->npu.number_) npuprof_npu_close(&devices[i]->npu);
        npuprof_load_free_(devices[i], sizeof *devices[i]);
        devices[i] = NULL;
    }
    return drawn;
}
