#pragma once   /* SPDX-License-Identifier: MIT */
#include "../public/types.h"
#include "../public/api.h"
#include "../format/compact.h"
#include "../format/layouts.h"
#include "../os/none.h"
#include "arena.h"
#include "cells.h"
#include "ring.h"

/* NPUPROF_STREAM: the ring replaces only what was sent, and what finds no place is lost. What each function
   does is said in >>firmware/policy, who sends in >>firmware/poll. At the end: what there is without one.
   Data: npuprof_fw_recorded_, which any task counts; npuprof_fw_stream_, of the one task that polls;
   header.crc, which it alone moves on. */

#if NPUPROF_WHEN_FULL == NPUPROF_STREAM

/* Spans and events that were recorded. */
static uint32_t npuprof_fw_recorded_;

#define NPUPROF_FW_CAUSE_ ""
enum { NPUPROF_FW_CAN_WRITE_ = 0, NPUPROF_FW_LOST_ = NPUPROF_LOST_FULL };

/* What was sent may: what is ahead of header.crc by one lap at most. Why shifted: laps have 13 bits. Why
   signed: if header.used has moved on, more may have been sent. */
static inline bool npuprof_fw_may_pass_(const npuprof_compact_header_ *c, uint32_t next)
{
    const int32_t ahead = (int32_t)((next - npuprof_os_load_(&c->crc)) << 3);
    return ahead <= (int32_t)1 << (NPUPROF_RING_LAP_SHIFT_ + 3);
}

static inline bool npuprof_fw_is_held_(uint32_t used)
{
    (void)used;
    return false;
}

/* Why no limit: it ends where nothing was sent yet. */
static inline uint32_t npuprof_fw_tries_after_(uint32_t tries) { return tries; }

static inline uint32_t npuprof_fw_half_of_(const npuprof_cell_ *cell)
{
    return NPUPROF_LOAD_(&cell->high.half[1]) & ~(uint32_t)NPUPROF_CELL_SENT_;
}

enum { NPUPROF_FW_PARTS_ = 64 };                   /* from a header to the next one */
typedef struct npuprof_fw_stream_state_ {
    uint16_t left;                                 /* bytes of the part that the sink has not taken yet */
    uint16_t lead;                                 /* cells from the next one on that continue a record */
    uint8_t parts;                                 /* until the next header */
    bool is_busy;
    uint8_t may_lack;                              /* so many cells a part may have less than 16 */
    npuprof_stream_head_ head;
    npuprof_cell_ cell[NPUPROF_PART_CELLS_];
} npuprof_fw_stream_state_;
static npuprof_fw_stream_state_ npuprof_fw_stream_;

/* How many bytes the sink took; another number: it failed. */
#ifdef NPUPROF_SINK
static inline uint32_t npuprof_fw_write_(const void *bytes, size_t count)
{
    return (uint32_t)(NPUPROF_SINK(bytes, count));
}
enum { NPUPROF_FW_SINK_CAN_FAIL_ = 0 };

static inline npuprof_result npuprof_fw_check_sink_(const npuprof_desc *desc)
{
    return desc && desc->sink.write ? NPUPROF_ERR_UNSUPPORTED : NPUPROF_OK;
}

static inline void npuprof_fw_keep_sink_(const npuprof_desc *desc) { (void)desc; }

#else /* !NPUPROF_SINK */
static npuprof_sink npuprof_fw_sink_;

static inline uint32_t npuprof_fw_write_(const void *bytes, size_t count)
{
    const int result = npuprof_fw_sink_.write(npuprof_fw_sink_.user, bytes, count);
    if (result > 0) return UINT32_MAX;
    return result ? (uint32_t)~result : (uint32_t)count;   /* see NPUPROF_SINK_TOOK */
}
enum { NPUPROF_FW_SINK_CAN_FAIL_ = 1 };

static inline npuprof_result npuprof_fw_check_sink_(const npuprof_desc *desc)
{
    return desc && desc->sink.write ? NPUPROF_OK : NPUPROF_ERR_ARGUMENT;
}

static inline void npuprof_fw_keep_sink_(const npuprof_desc *desc) { npuprof_fw_sink_ = desc->sink; }
#endif /* NPUPROF_SINK */

/* Why a static arena needs no more: there is one trace only. */
static inline uint32_t npuprof_fw_begin_trace_(npuprof_compact_header_ *c, uint32_t cells)
{
    uint8_t *const p = (uint8_t *)&npuprof_fw_stream_;
    c->crc = NPUPROF_RING_IS_;
    for (size_t i = 0; !NPUPROF_ARENA_BYTES && i < sizeof npuprof_fw_stream_; i++) NPUPROF_STORE_(p + i, 0);
    if (!NPUPROF_ARENA_BYTES) npuprof_fw_recorded_ = 0;
    return npuprof_fw_begin_ring_(c, cells);
}

static inline uint32_t *npuprof_fw_events_(npuprof_compact_header_ *c)
{
    (void)c;
    return &npuprof_fw_recorded_;
}

/* header.lost counts what did not fit. */
static inline npuprof_token_ npuprof_fw_tally_(npuprof_compact_header_ *c, npuprof_token_ token,
                                               uint32_t *lost)
{
    const bool is_event = lost == &c->lost;
    if (token && is_event) lost = &npuprof_fw_recorded_;
    if (!token || is_event) npuprof_fw_count_(lost);
    return token;
}

/* Ends a span that was sent while it was open: a record CLOSE, and its own cells are free. Why they are
   emptied first: else they could be sent again behind the end. */
static inline void npuprof_fw_close_sent_(npuprof_compact_header_ *c, npuprof_cell_ *cell, uint64_t now)
{
    npuprof_os_store_(&cell->ref, (cell->ref & 1) + NPUPROF_CELL_CLEARED_);
    const npuprof_token_ token = npuprof_fw_take_(c, 1, &c->lost_notes);
    if (token) {
        npuprof_cell_ *const own = npuprof_fw_cell_(c, token);
        own->start = (uint32_t)now;
        own->end = cell->start;
        own->high.half[0] = npuprof_fw_high_half_(now, npuprof_fw_context_of_(cell));
        npuprof_fw_publish_half_(own, (uint32_t)NPUPROF_CELL_KIND_CLOSE_ << 8 | 2,
                                 (uint32_t)cell->high.half[0] >> NPUPROF_CONTEXT_BITS_ & 0x7FFF);
    }
    (void)npuprof_fw_tally_(c, token, &c->lost_notes);
    npuprof_fw_store_half_(cell, 0);
}

/* Ends a span if half[1] of its cell is `was`. Returns what it was. */
static inline uint32_t npuprof_fw_end_if_(npuprof_cell_ *cell, uint32_t was, uint64_t now)
{
    const uint16_t end = npuprof_fw_end_half_(now);
#if NPUPROF_MASKS_
    NPUPROF_MASKED_BEGIN_
    const uint32_t half = NPUPROF_LOAD_(&cell->high.half[1]);
    if (half == was) {
        NPUPROF_STORE_(&cell->end, (uint32_t)now);
        NPUPROF_STORE_(&cell->high.half[1], end);
    }
    NPUPROF_MASKED_END_
    return half;
#else
    npuprof_cell_ is, to;
    do {
        is.high.word = to.high.word = NPUPROF_LOAD_(&cell->high.word);
        if (is.high.half[1] != was) return is.high.half[1];
        NPUPROF_STORE_(&cell->end, (uint32_t)now);
        to.high.half[1] = end;
    } while (!npuprof_fw_replace_(&cell->high.word, is.high.word, to.high.word));
    return was;
#endif
}

static NPUPROF_NOINLINE_ void npuprof_fw_end_cell_(npuprof_compact_header_ *c, npuprof_token_ token,
                                                   uint64_t now)
{
    npuprof_cell_ *const cell = npuprof_fw_cell_(c, token);
    const uint32_t was = token >> NPUPROF_RING_LAP_SHIFT_;
    if (!(token & NPUPROF_RING_IS_)) return;
    if (NPUPROF_UNLIKELY_((token & NPUPROF_RING_INDEX_) >= NPUPROF_FW_CELL_COUNT_())) return;
    if (npuprof_fw_end_if_(cell, was, now) == (was | NPUPROF_CELL_SENT_))
        npuprof_fw_close_sent_(c, cell, now);
}

static inline void npuprof_fw_end_found_(npuprof_cell_ *cell, uint64_t now)
{
    npuprof_fw_end_cell_(npuprof_fw_arena_, npuprof_fw_token_of_(npuprof_fw_arena_, cell), now);
}

/* ---- Reading: on the target only the figures */
#define npuprof_fw_hold_(c) true
#define npuprof_fw_let_go_(c) ((void)(c))
#define npuprof_fw_recorded_of_(found) ((void)(found), npuprof_fw_recorded_)
#define npuprof_fw_lost_of_(c, found) ((c)->lost)

/* Records are on their way to the sink. */
NPUPROF_API_ npuprof_result npuprof_clear(void) { return NPUPROF_ERR_UNSUPPORTED; }

#else /* NPUPROF_WHEN_FULL is another policy */

#define npuprof_fw_check_sink_(desc) NPUPROF_OK
#define npuprof_fw_keep_sink_(desc) ((void)(desc))
#define npuprof_fw_recorded_of_(found) (found)
enum { NPUPROF_FW_CAN_WRITE_ = 1 };
NPUPROF_API_ npuprof_result npuprof_poll(void) { return NPUPROF_ERR_UNSUPPORTED; }
NPUPROF_API_ npuprof_result npuprof_flush(void) { return NPUPROF_ERR_UNSUPPORTED; }

#endif /* NPUPROF_WHEN_FULL is NPUPROF_STREAM */
