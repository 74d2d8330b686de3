#pragma once   /* SPDX-License-Identifier: MIT */
#include "../public/api.h"
#include "../format/arena.h"
#include "../arena/state.h"
#include "../os/common.h"
#include "../control/start.h"
#include "../control/lock.h"
#include "../control/path.h"
#include "files.h"
#include "dump.h"

/* The files of capture control: the trace as it is now, or a part of it, under a name that is new.

   A window of a schedule is written and then forgotten, so that each file holds its own window. Nothing may
   be lost uncounted between the two: a thread may have passed the gate before it closed, and record behind
   the file's last look. So the records that the arena has gained by then are counted as lost, by cause
   "reading".

   Owns no data. This part may not know the conditions. */

/* Waits until no thread is in the middle of a record, for some milliseconds at most. The gate is closed. */
static void npuprof_file_wait_for_records_(void)
{
    bool busy = true;
    for (int n = 0; n < 100 && busy; n++) {
        npuprof_os_yield_();
        busy = false;
        for (uint32_t at = NPUPROF_LOAD_ACQUIRE_(&npuprof_s_.header->slot_first); at;) {
            const npuprof_slot_ *const slot = npuprof_slot_at_(at);
            busy |= NPUPROF_LOAD_(&slot->owned) && NPUPROF_LOAD_(&slot->busy);
            at = slot->head.next_slot;
        }
    }
}

/* Empties the arena behind a file that holds `recorded` spans and events. */
static npuprof_result npuprof_file_forget_(uint64_t recorded)
{
    npuprof_stats now;
    npuprof_result r = npuprof_get_stats(&now);
    if (r == NPUPROF_OK) r = npuprof_clear();
    if (r == NPUPROF_OK && now.recorded > recorded)
        npuprof_count_lost_(NPUPROF_LOST_READING, now.recorded - recorded);
    return r;
}

/* clear: forgets what was written. last_ns: leaves out what began longer ago; 0: nothing. With NPUPROF_STREAM
   the sink gets what was recorded so far. */
static npuprof_result npuprof_file_capture_(bool clear, uint64_t last_ns)
{
    npuprof_stats before;
    npuprof_path_ path;
    uint64_t error_ticks;
    if (npuprof_s_.when_full == NPUPROF_STREAM) return npuprof_flush();
    if (!npuprof_s_.output_path[0])
        return NPUPROF_REFUSE_("capture control: there is no path to write to; give NPUPROF_OUTPUT_PATH, or "
                               "output_path in npuprof_desc");
    if (clear) npuprof_file_wait_for_records_();
    npuprof_result r = clear ? npuprof_get_stats(&before) : NPUPROF_OK;
    if (r != NPUPROF_OK) return r;
    if (last_ns)
        npuprof_image_since_ = npuprof_ticks_at_ns_(npuprof_now_ns() - (int64_t)last_ns, &error_ticks);
    r = npuprof_file_write_next_(&path);
    npuprof_image_since_ = 0;
    return r == NPUPROF_OK && clear ? npuprof_file_forget_(before.recorded) : r;
}
