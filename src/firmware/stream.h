#pragma once   /* SPDX-License-Identifier: MIT */
#include "../public/types.h"
#include "../public/api.h"
#include "../format/compact.h"
#include "../format/layouts.h"
#include "../os/none.h"
#include "arena.h"
#include "ring.h"
#include "cells.h"
#include "read.h"

/* npuprof_poll() and npuprof_flush() of NPUPROF_STREAM: the cells of the ring as parts, and a header before
   every 64 of them (format/compact.h).
   What goes to the sink is copied first, so its cells are free at once, and a part that the sink took half of
   goes on where it was. A record that is not finished holds up those behind it. A part has no CRC of the
   names: that would take flash, and NPUPROF_BUILD_ID tells builds apart.
   Data: npuprof_fw_stream_, of the one task that polls; npuprof_fw_sent_, which it alone moves on. */

#if NPUPROF_WHEN_FULL == NPUPROF_STREAM

enum { NPUPROF_FW_PARTS_ = 64 };                   /* from a header to the next one */
static struct {
    npuprof_sink sink;
    uint32_t number;                               /* of the next cell */
    uint32_t recorded;                             /* events handed over */
    uint32_t lead;                                 /* cells from there on of a record that has begun */
    uint16_t bytes, taken;                         /* in the buffer; of them the sink has */
    uint8_t parts;                                 /* until the next header */
    bool is_busy;
    bool is_said;                                  /* npuprof_flush() has put its header behind the last part.
                                                      Why it is kept: a sink that never takes a whole header
                                                      at once would else get one after the other */
    union {
        npuprof_compact_header_ header;
        struct { npuprof_part_head_ head; npuprof_cell_ cells[NPUPROF_PART_CELLS_]; } part;
    } buffer;
} npuprof_fw_stream_;

static void npuprof_fw_stream_to_(npuprof_sink sink)
{
    npuprof_fw_stream_.sink.write = sink.write;
    npuprof_fw_stream_.sink.user = sink.user;
    npuprof_fw_stream_.number = npuprof_fw_stream_.recorded = npuprof_fw_stream_.lead = 0;
    npuprof_fw_stream_.bytes = npuprof_fw_stream_.taken = npuprof_fw_stream_.parts = 0;
    npuprof_fw_stream_.is_said = false;
    npuprof_fw_sent_ = NPUPROF_RING_IS_;
}

/* header.used when one cell more is taken. */
static uint32_t npuprof_fw_next_index_(uint32_t used)
{
    if ((used & NPUPROF_RING_INDEX_) + 1 < NPUPROF_FW_CELL_COUNT_()) return used + 1;
    return ((used | NPUPROF_RING_INDEX_) + 1) & ~NPUPROF_FW_FLAGS_;
}

/* Copies a cell that begins a record, and marks the record as sent if it is open. False: it is not
   finished.
   Why a record that was sent is cleared where nothing is masked: a task that claims it may find that another
   task was faster and passed it. Then it stays where it is, and would be sent again. */
static bool npuprof_fw_send_head_(npuprof_cell_ *to, npuprof_cell_ *from)
{
    npuprof_cell_ was;
    for (;;) {
        was.high.word = to->high.word = npuprof_os_load_(&from->high.word);
        to->ref = from->ref;
        to->start = from->start;
        to->end = from->end;
        const uint32_t half = was.high.half[1];
        if (!(half & NPUPROF_CELL_OPEN_)) {
            if (!NPUPROF_MASKS_) npuprof_os_store_(&from->ref, NPUPROF_CELL_CLEARED_ | (from->ref & 1));
            break;
        }
        if (half & NPUPROF_CELL_CLAIMED_) return false;
        if (half & NPUPROF_CELL_SENT_) return true;
        was.high.half[1] |= NPUPROF_CELL_SENT_;
        if (npuprof_fw_replace_(&from->high.word, to->high.word, was.high.word)) break;
    }
    if (npuprof_fw_is_event_(to)) npuprof_fw_stream_.recorded++;
    return true;
}

/* Copies the next cells into the buffer, up to 16 of those before `used`: how many. */
static uint32_t npuprof_fw_send_cells_(npuprof_compact_header_ *c, uint32_t used)
{
    uint32_t sent = npuprof_fw_sent_, n = 0;
    for (; n < NPUPROF_PART_CELLS_ && sent != used; n++) {
        npuprof_cell_ *const from = npuprof_fw_cell_(c, sent);
        npuprof_cell_ *const to = &npuprof_fw_stream_.buffer.part.cells[n];
        if (npuprof_fw_stream_.lead) npuprof_fw_copy_bytes_((uint8_t *)to, from, sizeof *to);
        else if (!npuprof_fw_send_head_(to, from)) break;
        else npuprof_fw_stream_.lead = npuprof_fw_length_(from);
        npuprof_fw_stream_.lead--;
        sent = npuprof_fw_next_index_(sent);
    }
    npuprof_os_store_(&npuprof_fw_sent_, sent);
    return n;
}

/* Puts the next header or part into the buffer. all: also a part that is not full. False: there is none. */
static bool npuprof_fw_fill_(npuprof_compact_header_ *c, bool all)
{
    npuprof_part_head_ *const head = &npuprof_fw_stream_.buffer.part.head;
    npuprof_compact_header_ *const h = &npuprof_fw_stream_.buffer.header;
    const uint32_t used = npuprof_os_load_(&c->used), sent = npuprof_fw_sent_;
    const uint32_t cells = (used ^ sent) >> NPUPROF_RING_LAP_SHIFT_ ? NPUPROF_FW_CELL_COUNT_() : 0;
    const uint32_t lead = npuprof_fw_stream_.lead;
    uint32_t n = cells + (used & NPUPROF_RING_INDEX_) - (sent & NPUPROF_RING_INDEX_);
    if (n < (!all ? NPUPROF_PART_CELLS_ : npuprof_fw_stream_.parts != 0)) return false;
    npuprof_fw_stream_.taken = 0;
    if (!npuprof_fw_stream_.parts) {
        npuprof_fw_copy_bytes_((uint8_t *)h, c, sizeof *h);
        h->layout = NPUPROF_LAYOUT_PARTS;
        h->used = npuprof_fw_stream_.number;
        if (NPUPROF_CLOCK_BITS_ >= 48) h->clock = (uint32_t)(npuprof_fw_stamp_(c) >> 16);
        h->crc = ~npuprof_crc_add_(UINT32_MAX, h, sizeof *h - sizeof h->crc);
        npuprof_fw_stream_.bytes = sizeof *h;
        npuprof_fw_stream_.parts = NPUPROF_FW_PARTS_;
        return true;
    }
    n = npuprof_fw_send_cells_(c, used);
    if (!n) return false;
    head->mark = NPUPROF_PART_MARK_;
    head->first = npuprof_fw_stream_.number;
    head->count = (uint16_t)n;
    head->lead = (uint16_t)(lead < n ? lead : n);
    head->names = 0;
    const size_t bytes = n * sizeof(npuprof_cell_);
    head->crc = npuprof_crc_add_(UINT32_MAX, head, sizeof *head - sizeof head->crc);
    head->crc = ~npuprof_crc_add_(head->crc, npuprof_fw_stream_.buffer.part.cells, bytes);
    npuprof_fw_stream_.bytes = (uint16_t)(sizeof *head + bytes);
    npuprof_fw_stream_.number += n;
    npuprof_fw_stream_.parts--;
    npuprof_fw_stream_.is_said = false;
    return true;
}

static npuprof_result npuprof_fw_hand_over_(bool all)
{
    npuprof_compact_header_ *const c = npuprof_fw_arena_;
    if (!npuprof_fw_stream_.sink.write) return NPUPROF_ERR_ARGUMENT;
    /* Why so often and no longer: what is recorded meanwhile would keep the task here. */
    for (uint32_t tries = NPUPROF_FW_CELL_COUNT_() / NPUPROF_PART_CELLS_ + 4; tries; tries--) {
        if (npuprof_fw_stream_.taken == npuprof_fw_stream_.bytes && !npuprof_fw_fill_(c, all)) {
            if (!all) break;
            npuprof_fw_stream_.is_said = !npuprof_fw_stream_.is_said;
            if (!npuprof_fw_stream_.is_said) break;
            npuprof_fw_stream_.parts = 0;      /* one more header, which says what was lost until now */
            continue;
        }
        const size_t left = (size_t)npuprof_fw_stream_.bytes - npuprof_fw_stream_.taken;
        const uint8_t *const from = (const uint8_t *)&npuprof_fw_stream_.buffer + npuprof_fw_stream_.taken;
        const int result = npuprof_fw_stream_.sink.write(npuprof_fw_stream_.sink.user, from, left);
        if (result > 0) return NPUPROF_ERR_IO;
        const size_t took = result ? (size_t)(-1 - result) : left;
        npuprof_fw_stream_.taken = (uint16_t)(npuprof_fw_stream_.taken + (took < left ? took : left));
        if (took < left) return NPUPROF_ERR_BUSY;
    }
    return NPUPROF_OK;
}

/* Events handed over, and those that will be. */
static uint64_t npuprof_fw_streamed_(npuprof_compact_header_ *c)
{
    const uint32_t used = npuprof_os_load_(&c->used);
    uint64_t recorded = npuprof_fw_stream_.recorded;
    uint32_t skip = npuprof_fw_stream_.lead;
    if (!c->cells) return 0;
    for (uint32_t at = npuprof_fw_sent_; at != used; at = npuprof_fw_next_index_(at), skip -= skip != 0) {
        const npuprof_cell_ *const cell = npuprof_fw_cell_(c, at);
        const uint32_t half = cell->high.half[1];
        if (skip) continue;
        skip = npuprof_fw_length_(cell);
        if (half & NPUPROF_CELL_OPEN_ && half & NPUPROF_CELL_SENT_) continue;
        recorded += npuprof_fw_is_event_(cell);
    }
    return recorded;
}

/* One task at a time: a second one, or the sink itself, would find the buffer half done. */
static npuprof_result npuprof_fw_hand_over_alone_(bool all)
{
    if (npuprof_fw_stream_.is_busy) return NPUPROF_ERR_BUSY;
    npuprof_fw_stream_.is_busy = true;
    const npuprof_result result = npuprof_fw_hand_over_(all);
    npuprof_fw_stream_.is_busy = false;
    return result;
}

NPUPROF_API_ npuprof_result npuprof_poll(void) { return npuprof_fw_hand_over_alone_(false); }
NPUPROF_API_ npuprof_result npuprof_flush(void) { return npuprof_fw_hand_over_alone_(true); }

#else /* NPUPROF_WHEN_FULL is not NPUPROF_STREAM */

NPUPROF_API_ npuprof_result npuprof_poll(void) { return NPUPROF_ERR_UNSUPPORTED; }
NPUPROF_API_ npuprof_result npuprof_flush(void) { return NPUPROF_ERR_UNSUPPORTED; }

#endif /* NPUPROF_WHEN_FULL */
