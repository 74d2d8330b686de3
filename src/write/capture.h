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
   be lost uncounted between the two, or be in two files: a thread that passed the gate before it closed may
   record while the file is written. So a moment divides the windows: what began up to then is written and
   forgotten, and what begins later belongs to the next file. A thread that is in the middle of a record at
   that moment is waited for.

   Owns no data. This part may not know the conditions. */

/* Waits until no thread is in the middle of a record, but for a second at most. The gate is closed. */
static void npuprof_file_wait_for_records_(void)
{
    bool busy = true;
    const int64_t begin = npuprof_os_monotonic_ns_();
    while (busy && npuprof_os_monotonic_ns_() - begin < 1000000000) {
        npuprof_os_yield_();
        busy = false;
        for (uint32_t at = NPUPROF_LOAD_ACQUIRE_(&npuprof_arena_.header->slot_first); at;) {
            const npuprof_slot_ *const slot = npuprof_slot_at_(at);
            busy |= NPUPROF_LOAD_(&slot->owned) && NPUPROF_LOAD_(&slot->busy);
            at = slot->head.next_slot;
        }
    }
}

/* Writes a window and forgets it. */
static npuprof_result npuprof_file_write_window_(npuprof_path_ *path)
{
    npuprof_stats before, now;
    const uint64_t until = npuprof_clock_in_order_();
    npuprof_file_wait_for_records_();
    npuprof_result r = npuprof_get_stats(&before);
    if (r != NPUPROF_OK) return r;
    npuprof_image_limit_(0, until);
    r = npuprof_file_write_next_(path);
    npuprof_image_limit_(0, 0);
    if (r == NPUPROF_OK) r = npuprof_get_stats(&now);
    if (r == NPUPROF_OK) r = npuprof_control_clear_before_(until + 1, true);
    /* What was lost meanwhile counts for the next file. */
    if (r == NPUPROF_OK && now.lost > before.lost)
        npuprof_count_lost_(NPUPROF_LOST_READING, now.lost - before.lost);
    return r;
}

/* clear: forgets what was written. last_ns: leaves out what began longer ago; 0: nothing. With NPUPROF_STREAM
   the sink gets what was recorded so far. */
static npuprof_result npuprof_file_capture_(bool clear, uint64_t last_ns)
{
    npuprof_path_ path;
    uint64_t error_ticks;
    if (npuprof_arena_.when_full == NPUPROF_STREAM) return npuprof_flush();
    if (!npuprof_path_output_.pattern[0])
        return NPUPROF_REFUSE_("capture control: there is no path to write to; give NPUPROF_OUTPUT_PATH, or "
                               "output_path in npuprof_desc");
    if (clear) return npuprof_file_write_window_(&path);
    if (last_ns)
        npuprof_image_limit_(npuprof_ticks_at_ns_(npuprof_now_ns() - (int64_t)last_ns, &error_ticks), 0);
    const npuprof_result r = npuprof_file_write_next_(&path);
    npuprof_image_limit_(0, 0);
    return r;
}
