#pragma once   /* SPDX-License-Identifier: MIT */
#include "../public/types.h"
#include "../format/arena.h"
#include "../os/common.h"
#include "../record/enter.h"
#include "../control/lock.h"
#include "../control/capture.h"
#include "../read/image.h"
#include "../read/cursor.h"
#include "../read/threads.h"
#include "../read/survey.h"
#include "block.h"
#include "image.h"

/* The image into a sink of the program, and the counts of what was recorded. They take the readers'
   lock, so one thread at a time writes or reads. */

NPUPROF_API_ npuprof_result npuprof_write_image(npuprof_sink sink)
{
    if (!sink.write) return NPUPROF_REFUSE_("npuprof_write_image: sink.write is NULL");
    if (!npuprof_reader_lock_()) return npuprof_reader_result_();
    const int error = npuprof_write_image_locked_(sink);
    npuprof_reader_unlock_();
    return npuprof_os_result_(error);
}

/* Bytes that the records of a slot take. */
static uint64_t npuprof_write_count_bytes_(const npuprof_image_ *im, const npuprof_slot_head_ *slot)
{
    uint64_t units = 0;
    for (uint32_t at = slot->first_chunk; at; at = npuprof_image_next_chunk_(im, at - 1))
        units += npuprof_block_whole_units_(im, npuprof_image_chunk_(im, at - 1));
    return units * sizeof(npuprof_unit_);
}

NPUPROF_API_ npuprof_result npuprof_get_stats(npuprof_stats *out)
{
    const npuprof_slot_head_ *slot = NULL;
    if (!out) return NPUPROF_REFUSE_("npuprof_get_stats: out is NULL");
    memset(out, 0, sizeof *out);
    if (!npuprof_reader_lock_()) return npuprof_reader_result_();
    npuprof_image_ im;
    npuprof_image_open_unread_(&im);
    out->lost = npuprof_image_sum_lost_(&im);
    (void)npuprof_survey_events_(&im);
    const npuprof_header_ *const h = im.h;
    const uint64_t chunk_bytes = (uint64_t)im.chunk_total * h->chunk_bytes;
    out->recorded = im.events + NPUPROF_LOAD_(&h->streamed);
    for (unsigned i = 0; i < NPUPROF_LOST_COUNT; i++) out->lost_by_cause[i] = im.lost[i];
    out->bytes_used = im.table_used;
    while ((slot = npuprof_image_next_slot_(&im, slot)) != NULL)
        out->bytes_used += npuprof_write_count_bytes_(&im, slot);
    out->bytes_total = im.next ? h->table_bytes + chunk_bytes : h->arena_bytes;
    out->threads = im.threads;
    npuprof_reader_unlock_();
#ifndef NPUPROF_RECORD_ONLY
    out->captures = NPUPROF_LOAD_(&npuprof_capture_now_.files);
    out->captures_failed = NPUPROF_LOAD_(&npuprof_capture_now_.failed);
    out->slow = NPUPROF_LOAD_(&npuprof_capture_now_.slow);
#endif
    return NPUPROF_OK;
}
