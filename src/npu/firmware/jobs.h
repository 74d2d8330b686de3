#pragma once   /* SPDX-License-Identifier: MIT */
#include "../../public/macros.h"
#include "../../format/compact.h"
#include "../../firmware/arena.h"
#include "../../firmware/record.h"
#include "../../firmware/event.h"
#include "../../firmware/read.h"
#include "../types.h"
#include "../api.h"
#include "../mmio.h"
#include "../clock.h"
#include "../anchors.h"
#include "../sample.h"
#include "../ring_words.h"

/* Submissions and completion records on firmware (NPUPROF_NPU_RECORDS): all of them go into the arena as they
   are, and the host matches them when it reads the image (tools/convert/replay.h). So any number may be open,
   and nothing is held here. May not know what is in a record. */

#ifdef NPUPROF_NPU_RECORDS
#ifndef NPUPROF_FW_KEEPS_ALL_
#error "npuprof_npu.h: NPUPROF_NPU_RECORDS needs NPUPROF_KEEP_OLDEST; leave NPUPROF_WHEN_FULL out"
#endif

enum { NPUPROF_NPU_ENTRY_MAX_ = 128, NPUPROF_NPU_ITEMS_ = NPUPROF_NPU_ENTRY_MAX_ / 8 + 8 };

/* The fields of a record that is being made. */
typedef struct npuprof_npu_items_ {
    size_t count;
    npuprof_arg arg[NPUPROF_NPU_ITEMS_];
} npuprof_npu_items_;

static npuprof_arg *npuprof_npu_add_item_(npuprof_npu_items_ *list, uint32_t type, uint64_t value)
{
    npuprof_arg *const a = &list->arg[list->count++];
    a->key = NULL;
    a->type = type;
    a->value.u = value;
    return a;
}

static npuprof_token_ npuprof_npu_put_items_(uint32_t kind, const npuprof_npu_items_ *list,
                                             npuprof_args args)
{
    npuprof_fw_fields_ fields;
    fields.list[0].items = list->arg;
    fields.list[0].count = list->count;
    fields.list[1].items = args.items;
    fields.list[1].count = args.count;
    return npuprof_fw_put_record_(NPUPROF_FW_REF_OF_KIND_(kind), false, &fields);
}

/* Says something of a submission, NPUPROF_CELL_JOB_*; token: of its span, or 0. */
static void npuprof_npu_put_job_(const npuprof_npu *npu, uint32_t what, npuprof_token_ token, uint64_t value)
{
    const uint64_t values[3] = { value, token,
                                 npu->number_ | what << 8 | (uint64_t)(npu->epoch_ & 0xFFFF) << 16 };
    if (!npu->number_ || !npu->has_submissions_) return;
    (void)npuprof_fw_put_named_(NPUPROF_FW_REF_OF_KIND_(NPUPROF_CELL_KIND_JOB_), false, NULL, values,
                                PROF_NO_ARGS);
}

/* ---- Calls of a device that is sampled: what begin read waits in the arena. A handle is the token of that
   record, whose second cell says whether it is open. */

enum { NPUPROF_NPU_CALL_WORDS_ = 6 };

static npuprof_token_ npuprof_npu_put_call_(const npuprof_npu_block_ *b)
{
    const uint64_t state = (uint64_t)b->result | (uint64_t)b->by_host << 31 | (uint64_t)b->epoch << 32;
    const uint64_t words[NPUPROF_NPU_CALL_WORDS_] = { b->begin.device_ticks, b->begin.host_before,
                                                      b->begin.host_after, b->stream, state, b->token };
    npuprof_npu_items_ list;
    list.count = 0;
    (void)npuprof_npu_add_item_(&list, NPUPROF_FIELD_VALUE_, 1);
    for (int i = 0; i < NPUPROF_NPU_CALL_WORDS_; i++)
        (void)npuprof_npu_add_item_(&list, NPUPROF_FIELD_WORD_, words[i]);
    (void)npuprof_npu_add_item_(&list, NPUPROF_FIELD_THIRD_,
                                b->npu->number_ | NPUPROF_CELL_JOB_CALL_ << 8);
    return npuprof_npu_put_items_(NPUPROF_CELL_KIND_JOB_, &list, PROF_NO_ARGS);
}

/* The block of an open call of this device, which is over now. False: there is none. */
static bool npuprof_npu_take_call_back_(npuprof_npu *npu, uint32_t handle, npuprof_npu_block_ *b)
{
    enum { CELLS = 3 + NPUPROF_NPU_CALL_WORDS_ };
    npuprof_compact_header_ *const c = npuprof_fw_arena_;
    const uint32_t used = npuprof_fw_used_cells_(c);
    const uint32_t ref = NPUPROF_FW_REF_OF_KIND_(NPUPROF_CELL_KIND_JOB_) | 1;
    uint64_t words[NPUPROF_NPU_CALL_WORDS_];
    if (!npu->number_ || !handle || handle > used || used - handle < CELLS - 1) return false;
    npuprof_cell_ *const cell = npuprof_fw_cell_(c, handle);
    if (NPUPROF_LOAD_(&cell->ref) != ref || cell->end != CELLS) return false;
    if (cell[CELLS - 1].end != (npu->number_ | NPUPROF_CELL_JOB_CALL_ << 8)) return false;
    if (!npuprof_npu_replace_word_(&cell[1].end, 1, 2)) return false;
    for (int i = 0; i < NPUPROF_NPU_CALL_WORDS_; i++)
        words[i] = cell[2 + i].end | (uint64_t)cell[2 + i].high.word << 32;
    b->npu = npu;
    b->begin.device_ticks = words[0];
    b->begin.host_before = words[1];
    b->begin.host_after = words[2];
    b->stream = words[3];
    b->result = (npuprof_result)(words[4] & 0x7FFFFFFF);
    b->by_host = words[4] >> 31 & 1;
    b->epoch = (uint32_t)(words[4] >> 32);
    b->token = (npuprof_token_)words[5];
    return true;
}

/* ---- The description of a ring. What is 0 is left out. */

static void npuprof_npu_put_ring_word_(const npuprof_npu *npu, unsigned ring, uint32_t what, uint32_t which,
                                       uint64_t value, const char *name)
{
    const char *const texts[3] = { name, NULL, NULL };
    const uint64_t values[3] = { value, what, npu->number_ | (uint64_t)ring << 8 | (uint64_t)which << 16 };
    if (!value && !name && what == NPUPROF_CELL_RING_WORD_) return;
    (void)npuprof_fw_put_named_(NPUPROF_FW_REF_OF_KIND_(NPUPROF_CELL_KIND_RING_), false, texts, values,
                                PROF_NO_ARGS);
}

static void npuprof_npu_put_ring_(const npuprof_npu *npu, unsigned ring, const npuprof_npu_ring *r)
{
    uint32_t n = 0;
#define NPUPROF_NPU_PUT_FIELD_(member) \
    npuprof_npu_put_ring_word_(npu, ring, NPUPROF_CELL_RING_WORD_, n++, \
                               npuprof_npu_pack_field_(&r->member), NULL);
    NPUPROF_NPU_RING_FIELDS_(NPUPROF_NPU_PUT_FIELD_)
    n = NPUPROF_NPU_RING_NUMBERS_AT_;
#define NPUPROF_NPU_PUT_NUMBER_(member) \
    npuprof_npu_put_ring_word_(npu, ring, NPUPROF_CELL_RING_WORD_, n++, (uint64_t)r->member, NULL);
    NPUPROF_NPU_RING_NUMBERS_(NPUPROF_NPU_PUT_NUMBER_)
    for (n = 0; n < r->kind_count; n++) {
        npuprof_npu_put_ring_word_(npu, ring, NPUPROF_CELL_RING_KIND_, n, r->kinds[n].value, NULL);
        npuprof_npu_put_ring_word_(npu, ring, NPUPROF_CELL_RING_KIND_IS_, n, (uint64_t)r->kinds[n].is, NULL);
    }
    for (n = 0; n < r->op_count; n++)
        npuprof_npu_put_ring_word_(npu, ring, NPUPROF_CELL_RING_OP_, n, r->ops[n].code, r->ops[n].name);
    for (n = 0; n < r->lane_count; n++)
        npuprof_npu_put_ring_word_(npu, ring, NPUPROF_CELL_RING_LANE_, n, r->lanes[n].value,
                                   r->lanes[n].name);
    for (n = 0; n < NPUPROF_NPU_ARGS; n++)
        if (r->args[n].name)
            npuprof_npu_put_ring_word_(npu, ring, NPUPROF_CELL_RING_ARG_, n, 0, r->args[n].name);
    if (r->category) npuprof_npu_put_ring_word_(npu, ring, NPUPROF_CELL_RING_CATEGORY_, 0, 0, r->category);
}

/* Checks the rings and notes what feed needs of them. put: the device has its number, and they are stored.
   Every ring is fed here: where entries lie, and who says that one is there, is not used. */
static npuprof_result npuprof_npu_take_rings_(npuprof_npu *npu, bool put)
{
    const npuprof_npu_desc *const d = &npu->desc_;
    const bool one = (d->ring.feed || d->ring.count) && d->ring.entry_bytes;
    const npuprof_npu_ring *const rings = d->ring_count ? d->rings : &d->ring;
    npu->has_submissions_ = d->ring.feed || one || d->ring_count || d->anchors_only;
    if (d->ring_count > NPUPROF_NPU_RINGS || (d->ring_count && (!rings || one))) return NPUPROF_ERR_ARGUMENT;
    npu->ring_count_ = (uint8_t)(d->ring_count ? d->ring_count : one);
    for (unsigned i = 0; i < npu->ring_count_; i++) {
        const npuprof_npu_ring *const r = &rings[i];
        if (!r->entry_bytes || r->entry_bytes > NPUPROF_NPU_ENTRY_MAX_) return NPUPROF_ERR_NPU_RANGE;
        npu->entry_bytes_[i] = (uint8_t)r->entry_bytes;
        if (r->stamp_clock == NPUPROF_NPU_STAMP_COUNTER && !d->anchors_only)
            npu->by_counter_ |= (uint16_t)(1u << i);
        if (put) npuprof_npu_put_ring_(npu, i, r);
    }
    return NPUPROF_OK;
}

/* ---- What the driver says */

NPUPROF_API_ void npuprof_npu_set_job(npuprof_npu *npu, uint64_t id)
{
    if (NPUPROF_OPEN_(1)) npuprof_npu_put_job_(npu, NPUPROF_CELL_JOB_NUMBER_, 0, id);
}

NPUPROF_API_ void npuprof_npu_set_job_records(npuprof_npu *npu, unsigned n)
{
    if (NPUPROF_OPEN_(1)) npuprof_npu_put_job_(npu, NPUPROF_CELL_JOB_RECORDS_, 0, n);
}

NPUPROF_API_ npuprof_result npuprof_npu_set_job_of(npuprof_npu *npu, uint32_t handle, uint64_t id)
{
    if (!handle) return NPUPROF_OK;
    if (!npu->number_ || !npu->has_submissions_) return NPUPROF_ERR_NPU_NO_RING;
    npuprof_npu_put_job_(npu, NPUPROF_CELL_JOB_NUMBER_, handle, id);
    return NPUPROF_OK;
}

/* An entry, or with bytes 0 that there is none. `read`: the counter's time at the feed, or NULL. */
static void npuprof_npu_put_entry_(const npuprof_npu *npu, unsigned ring, const unsigned char *data,
                                   size_t bytes, const npuprof_anchor_ *read, uint32_t epoch)
{
    npuprof_npu_items_ list;
    list.count = 0;
    (void)npuprof_npu_add_item_(&list, NPUPROF_FIELD_VALUE_, ring);
    (void)npuprof_npu_add_item_(&list, NPUPROF_FIELD_THIRD_,
                                npu->number_ | (epoch & 0xFFFF) << 8 | (read ? NPUPROF_CELL_TIMED_ : 0));
    if (read) {
        (void)npuprof_npu_add_item_(&list, NPUPROF_FIELD_WORD_, read->device_ticks);
        (void)npuprof_npu_add_item_(&list, NPUPROF_FIELD_WORD_, read->host_before);
        (void)npuprof_npu_add_item_(&list, NPUPROF_FIELD_WORD_, read->host_after);
    }
    for (size_t at = 0; at < bytes; at += 8) {
        uint64_t word = 0;
        for (size_t i = 0; i < 8 && at + i < bytes; i++) word |= (uint64_t)data[at + i] << (8 * i);
        (void)npuprof_npu_add_item_(&list, NPUPROF_FIELD_WORD_, word);
    }
    (void)npuprof_npu_put_items_(NPUPROF_CELL_KIND_ENTRY_, &list, PROF_NO_ARGS);
}

NPUPROF_API_ npuprof_result npuprof_npu_feed(npuprof_npu *npu, unsigned ring, const void *data, size_t bytes)
{
    const unsigned char *entry = (const unsigned char *)data;
    npuprof_anchor_ sample;
    npuprof_result result = NPUPROF_ERR_NPU_BUSY;
    bool timed = false, renew = false;
    if (!npu->number_) return NPUPROF_ERR_NPU_NOT_OPEN;
    if (ring >= npu->ring_count_) return NPUPROF_ERR_NPU_NO_RING;
    const size_t size = npu->entry_bytes_[ring];
    if (bytes && !data) return NPUPROF_ERR_ARGUMENT;
    size_t left = bytes;                 /* Why no division: it may be a function. */
    while (left >= size) left -= size;
    if (left) return NPUPROF_ERR_ARGUMENT;
    if (!NPUPROF_OPEN_(1)) return NPUPROF_OK;
    if (!(npu->by_counter_ >> ring & 1)) {
        result = NPUPROF_OK;
    } else if (npuprof_npu_lock_(npu)) {
        result = npuprof_npu_read_locked_(npu, &sample);
        timed = npuprof_npu_time_goes_on_(result) || result == NPUPROF_ERR_NPU_STOPPED;
        renew = timed && (npu->anchor_count_ < 2 || npuprof_npu_anchor_is_due_(npu, sample.host_after));
        npuprof_npu_unlock_(npu);
    }
    /* Why also where the counter could not be read: the host knows from other reads when it was. */
    if (!bytes) npuprof_npu_put_entry_(npu, ring, entry, 0, timed ? &sample : NULL, npu->epoch_);
    for (; bytes; bytes -= size, entry += size)
        npuprof_npu_put_entry_(npu, ring, entry, size, timed ? &sample : NULL, npu->epoch_);
    if (renew) (void)npuprof_npu_renew_anchor_(npu);
    return result == NPUPROF_ERR_NPU_BUSY ? NPUPROF_OK : result;
}

/* Why false: whose it is only the host finds out. */
NPUPROF_API_ bool npuprof_npu_complete_host(npuprof_npu *npu, uint64_t job, unsigned pe, const char *name,
                                            const char *cat, int64_t start_ns, int64_t end_ns,
                                            npuprof_args args, bool last)
{
    npuprof_npu_items_ list;
    list.count = 0;
    if (!npu->number_ || !npu->has_submissions_ || !NPUPROF_OPEN_(1)) return false;
    if (name) npuprof_npu_add_item_(&list, NPUPROF_FIELD_NAME_, 0)->value.s = name;
    if (cat) npuprof_npu_add_item_(&list, NPUPROF_FIELD_CATEGORY_, 0)->value.s = cat;
    (void)npuprof_npu_add_item_(&list, NPUPROF_FIELD_VALUE_, job);
    (void)npuprof_npu_add_item_(&list, NPUPROF_FIELD_SECOND_, (pe & 0xFFFF) | (uint64_t)(last ? 1 : 0) << 16);
    (void)npuprof_npu_add_item_(&list, NPUPROF_FIELD_THIRD_, npu->number_);
    (void)npuprof_npu_add_item_(&list, NPUPROF_FIELD_WORD_, (uint64_t)start_ns);
    (void)npuprof_npu_add_item_(&list, NPUPROF_FIELD_WORD_, (uint64_t)end_ns);
    (void)npuprof_npu_put_items_(NPUPROF_CELL_KIND_HAND_, &list, args);
    return false;
}

#endif /* NPUPROF_NPU_RECORDS */
