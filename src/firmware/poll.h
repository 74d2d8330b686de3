#pragma once   /* SPDX-License-Identifier: MIT */
#include "../public/types.h"
#include "../public/api.h"
#include "../format/compact.h"
#include "../format/layouts.h"
#include "../os/none.h"
#include "arena.h"
#include "ring.h"
#include "stream.h"
#include "policy.h"

/* npuprof_poll() and npuprof_flush() of NPUPROF_STREAM: the cells of the ring as parts, and the header as a
   part before every 64 of them (format/compact.h).
   A part is filled cell by cell. What is in it was copied, so its cells are free at once, and a part that the
   sink took half of goes on where it was. A record that is not finished holds up those behind it. No CRC of
   the names: that would take flash, and NPUPROF_BUILD_ID tells builds apart. */

#if NPUPROF_WHEN_FULL == NPUPROF_STREAM

/* Sends what is kept once more: notes.h. NULL: nothing is. Why a pointer: who has no names pays nothing. */
static void (*npuprof_fw_again_)(npuprof_compact_header_ *c, uint32_t part);

/* Copies a cell, and marks a record that is kept as sent. lead: see there. Returns the cells of its record
   from it on; 0: the record is not finished.
   Why the upper half is loaded first: it says whether the rest is there. An open span may end meanwhile; then
   it is copied once more.
   Why a record that was sent is cleared where nothing is masked: a task that claims it may find that another
   task was faster and passed it. Then it stays where it is, and would be sent again. */
static NPUPROF_NOINLINE_ uint32_t npuprof_fw_send_cell_(npuprof_cell_ *to, npuprof_cell_ *from,
                                                        uint32_t lead)
{
    uint32_t word;
    do {
        word = npuprof_os_acquire_(&from->high.word);
        to->high.word = word;
        to->ref = from->ref;
        to->start = from->start;
        to->end = from->end;
        NPUPROF_SIGNAL_FENCE_();
        if (lead) return lead;
        if (!(word & NPUPROF_FW_OPEN_WORD_)) {
            if (!NPUPROF_MASKS_) npuprof_os_store_(&from->ref, NPUPROF_CELL_CLEARED_ | (from->ref & 1));
            break;
        }
        if (NPUPROF_FW_IS_CLAIMED_(word)) return 0;
    } while (!npuprof_fw_replace_(&from->high.word, word, word | NPUPROF_FW_SENT_WORD_));
    return npuprof_fw_length_(from);
}

/* Copies the cells before `used` into the part, until it has 16. */
static NPUPROF_NOINLINE_ void npuprof_fw_gather_(npuprof_fw_stream_state_ *s, npuprof_compact_header_ *c,
                                                 uint32_t used)
{
    for (;;) {
        const uint32_t n = s->head.count;
        uint32_t sent = c->crc;
        if (n == NPUPROF_PART_CELLS_ || sent == used) return;
        const uint32_t lead = npuprof_fw_send_cell_(&s->cell[n], npuprof_fw_cell_(c, sent), s->lead);
        if (!lead) return;
        s->lead = (uint16_t)(lead - 1);
        s->head.count = (uint16_t)(n + 1);
        s->head.next++;
        sent++;
        /* Why the lap of `used`: that is ahead by less than one. */
        if ((sent & NPUPROF_RING_INDEX_) == NPUPROF_FW_CELL_COUNT_()) sent = used & ~NPUPROF_RING_INDEX_;
        npuprof_os_release_(&c->crc, sent);
    }
}

/* Fills the next part. False: there is none. */
static inline bool npuprof_fw_fill_(npuprof_fw_stream_state_ *s, npuprof_compact_header_ *c, uint32_t used)
{
    uint32_t parts = s->parts;
    if (!parts) {
        npuprof_compact_header_ *const h = (npuprof_compact_header_ *)(uintptr_t)s->cell;
        /* Why by words: an interrupt that counts meanwhile must not leave half of a count. */
        for (uint32_t i = 0; i < sizeof *h / 4; i++)
            NPUPROF_STORE_((uint32_t *)h + i, npuprof_os_load_((const uint32_t *)c + i));
        h->layout = NPUPROF_LAYOUT_PARTS;
        if (NPUPROF_CLOCK_BITS_ >= 48) h->clock = (uint32_t)(npuprof_fw_stamp_(c) >> 16);
        s->head.count = NPUPROF_FW_HEADER_CELLS_;
        parts = NPUPROF_FW_PARTS_ + 1;
    } else {
        npuprof_fw_gather_(s, c, used);
        if (s->head.count + s->may_lack < NPUPROF_PART_CELLS_) return false;
    }
    const uint32_t bytes = (s->head.count + 1u) * (uint32_t)sizeof(npuprof_cell_);
    s->parts = (uint8_t)(parts - 1);
    s->left = (uint16_t)bytes;
    s->head.mark = NPUPROF_STREAM_MARK_;
    s->head.crc = ~npuprof_crc_add_(UINT32_MAX, &s->head.next,
                                    (size_t)bytes - offsetof(npuprof_stream_head_, next));
    return true;
}

/* Why no further than where the records end now: what is recorded meanwhile would keep the task here. */
static inline npuprof_result npuprof_fw_hand_over_(npuprof_fw_stream_state_ *s, npuprof_compact_header_ *c)
{
    const uint32_t used = npuprof_os_acquire_(&c->used);
    while (s->left || npuprof_fw_fill_(s, c, used)) {
        const uint32_t left = s->left;
        const uint8_t *const from = (const uint8_t *)&s->cell[s->head.count] - left;
        const uint32_t took = npuprof_fw_write_(from, (size_t)left);
        if (took != left) {
            if (took < left) s->left = (uint16_t)(left - took);
            return NPUPROF_FW_SINK_CAN_FAIL_ && took == UINT32_MAX ? NPUPROF_ERR_IO : NPUPROF_ERR_BUSY;
        }
        s->left = s->head.count = 0;
        s->head.lead = s->lead;
        if (npuprof_fw_again_ && !s->may_lack) npuprof_fw_again_(c, s->parts & (NPUPROF_FW_PARTS_ - 1));
    }
    return NPUPROF_OK;
}

/* One task at a time: a second one, or the sink itself, would find the part half done. */
NPUPROF_API_ npuprof_result npuprof_poll(void)
{
    npuprof_fw_stream_state_ *s = &npuprof_fw_stream_;
    npuprof_compact_header_ *c = npuprof_fw_arena_;
    /* Why: else gcc loads the address of each field. */
    NPUPROF_KNOWN_(s);
    NPUPROF_KNOWN_(c);
#ifdef NPUPROF_SINK
    if (!npuprof_fw_is_ready_()) return NPUPROF_ERR_ARENA_SIZE;
#else
    if (!npuprof_fw_sink_.write) return NPUPROF_ERR_ARGUMENT;
#endif
    if (s->is_busy) return NPUPROF_ERR_BUSY;
    s->is_busy = true;
    const npuprof_result result = npuprof_fw_hand_over_(s, c);
    s->is_busy = false;
    return result;
}

/* The part that is not full, and then a header, unless one was the last and says what was lost. That one is
   still there: nothing came after it. */
NPUPROF_API_ npuprof_result npuprof_flush(void)
{
    npuprof_fw_stream_state_ *const s = &npuprof_fw_stream_;
    const npuprof_compact_header_ *const c = npuprof_fw_arena_;
    const npuprof_compact_header_ *const h = (const npuprof_compact_header_ *)(uintptr_t)s->cell;
    if (s->is_busy) return NPUPROF_ERR_BUSY;
    s->may_lack = NPUPROF_PART_CELLS_ - 1;
    npuprof_result result = npuprof_poll();
    if (result == NPUPROF_OK &&
        (s->parts != NPUPROF_FW_PARTS_ || h->lost != c->lost || h->lost_notes != c->lost_notes)) {
        s->parts = 0;
        result = npuprof_poll();
    }
    s->may_lack = 0;
    return result;
}

#endif /* NPUPROF_WHEN_FULL is NPUPROF_STREAM */
