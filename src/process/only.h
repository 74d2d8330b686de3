#pragma once   /* SPDX-License-Identifier: MIT */
#include "../public/hot.h"
#include "../public/read.h"
#include "../arena/state.h"
#include "../os/common.h"
#include "../clock/host.h"
#include "../arena/layout.h"
#include "../arena/thread.h"
#include "../arena/exchange.h"
#include "../record/enter.h"
#include "../control/start.h"
#include "../read/live.h"
#include "../write/file.h"
#include "../write/image.h"
#include "restart.h"

/* NPUPROF_RECORD_ONLY: this part stands in place of setup.h, fork.h and the outputs. It sets the recorder up
   in the program's memory, and writes the image. There is no environment, so nothing runs before main() or at
   exit. What is left out is refused with one sentence.

   Data: npuprof_record_setup_, as in setup.h, without 3. */

/* ---- Set-up */

static void npuprof_process_restart_(void)
{
    if (npuprof_record_setup_ != 2) return;
    npuprof_process_forget_threads_();
    npuprof_fork_start_over_();
    npuprof_control_set_gate_();
}

static void npuprof_process_exits_(void) {}

/* Sets up unless that is done. */
static npuprof_result npuprof_process_set_up_(void)
{
    uint32_t state = 0;
    if (npuprof_arena_has_leader_()) return NPUPROF_ERR_STARTED;
    if (!NPUPROF_CAS_(&npuprof_record_setup_, &state, 1)) return npuprof_setup_wait_(state);
    NPUPROF_STORE_(&npuprof_setup_thread_, npuprof_slot_me_());
    npuprof_clock_choose_();
    (void)npuprof_process_lay_out_(npuprof_arena_static_, sizeof npuprof_arena_static_, NPUPROF_KEEP_OLDEST,
                                   true);
    npuprof_control_advance_generation_();
    npuprof_arena_hooks_.ends = npuprof_process_end_slot_;
    npuprof_os_hook_(npuprof_process_thread_ends_, npuprof_fork_note_, npuprof_process_restart_,
                     npuprof_process_exits_);
    NPUPROF_STORE_RELEASE_(&npuprof_record_setup_, 2);
    npuprof_control_set_gate_();
    return NPUPROF_OK;
}

NPUPROF_API_ bool npuprof_opens_(int level)
{
    int waiting = INT_MAX;
    (void)npuprof_process_set_up_();
    (void)NPUPROF_CAS_(&npuprof_gate_, &waiting, INT_MIN);
    return NPUPROF_LOAD_(&npuprof_gate_) >= level;
}

NPUPROF_API_ npuprof_result npuprof_init_(const npuprof_desc *desc, size_t desc_bytes, int version)
{
    npuprof_arena_state_ *const s = &npuprof_arena_;
    if (version != NPUPROF_VERSION || desc_bytes != sizeof(npuprof_desc)) return NPUPROF_ERR_VERSION;
    if (!npuprof_record_is_ready_()) return NPUPROF_ERR_ARENA_SIZE;
    if (NPUPROF_LOAD_(&npuprof_control_.started)) return NPUPROF_ERR_STARTED;
    if (!desc) return NPUPROF_OK;
    if (desc->output_path || desc->arena_path || desc->capture || desc->sink.write)
        return NPUPROF_LEFT_OUT_("NPUPROF_RECORD_ONLY leaves out output_path, arena_path, capture and sink "
                                 "of npuprof_desc");
    if (desc->when_full != NPUPROF_KEEP_OLDEST && desc->when_full != NPUPROF_KEEP_NEWEST)
        return NPUPROF_LEFT_OUT_("NPUPROF_RECORD_ONLY leaves out every when_full but NPUPROF_KEEP_OLDEST and "
                                 "NPUPROF_KEEP_NEWEST");
    if (desc->arena) {
        const npuprof_header_ *const old = s->header;
        if (NPUPROF_LOAD_(&old->threads) || old->devices) return NPUPROF_ERR_STARTED;
        if (desc->arena_bytes < 2048 || ((uintptr_t)desc->arena & 7)) return NPUPROF_ERR_ARENA_SIZE;
        NPUPROF_STORE_(&npuprof_gate_, INT_MIN);
        (void)npuprof_process_lay_out_(desc->arena, desc->arena_bytes, s->when_full, false);
        npuprof_image_copy_metadata_(old);
        npuprof_control_advance_generation_();
    } else if (desc->arena_bytes) {
        return NPUPROF_REFUSE_("npuprof_init: arena_bytes without arena");
    }
    if (desc->populate) npuprof_os_populate_(s->base, (size_t)s->header->arena_bytes);
    npuprof_control_set_policy_(desc->when_full);
    const npuprof_result r = desc->categories ? npuprof_set_categories(desc->categories) : NPUPROF_OK;
    npuprof_control_set_gate_();
    return r;
}

#ifdef NPUPROF_DESTRUCTOR_
/* Why: as in setup.h. */
NPUPROF_DESTRUCTOR_ static void npuprof_process_unhook_(void) { npuprof_os_unhook_(); }
#endif

/* ---- The outputs */

NPUPROF_API_ npuprof_result npuprof_dump(const char *path)
{
    if (!path) return NPUPROF_REFUSE_("npuprof_dump: path is NULL");
    if (!npuprof_record_is_ready_()) return NPUPROF_ERR_ARENA_SIZE;
    const char *const dot = strrchr(path, '.');
    if (!dot || strcmp(dot, ".npuprof") != 0)
        return NPUPROF_LEFT_OUT_("NPUPROF_RECORD_ONLY leaves out all outputs but .npuprof; npuprof-convert "
                                 "makes them of it");
    return npuprof_file_write_by_(path, npuprof_write_image_locked_, NULL);
}

NPUPROF_API_ npuprof_result npuprof_write_json(npuprof_sink sink)
{
    (void)sink;
    return NPUPROF_LEFT_OUT_("NPUPROF_RECORD_ONLY leaves out JSON; npuprof-convert makes it of an image");
}

NPUPROF_API_ npuprof_result npuprof_flush(void)
{
    return NPUPROF_LEFT_OUT_("NPUPROF_RECORD_ONLY leaves out streams");
}

NPUPROF_API_ npuprof_result npuprof_poll(void)
{
    return NPUPROF_LEFT_OUT_("NPUPROF_RECORD_ONLY leaves out capture control");
}

NPUPROF_API_ npuprof_result npuprof_read(npuprof_cursor *cursor, uint32_t kinds,
                                         bool (*fn)(void *user, const npuprof_read_span *span), void *user,
                                         npuprof_read_result *result)
{
    (void)cursor;
    (void)kinds;
    (void)fn;
    (void)user;
    if (result) result->spans = result->lost = result->open = 0;
    return NPUPROF_LEFT_OUT_("NPUPROF_RECORD_ONLY leaves out npuprof_read; dump a .npuprof");
}

NPUPROF_API_ void npuprof_read_end(npuprof_cursor *cursor) { (void)cursor; }

NPUPROF_API_ npuprof_result npuprof_read_anchors(uint32_t device, uint64_t *place,
                                                 bool (*fn)(void *user, const npuprof_read_anchor *anchor),
                                                 void *user)
{
    (void)device;
    (void)place;
    (void)fn;
    (void)user;
    return NPUPROF_LEFT_OUT_("NPUPROF_RECORD_ONLY leaves out npuprof_read_anchors; dump a .npuprof");
}

NPUPROF_API_ npuprof_result npuprof_clock_pair(int clock, int64_t *other_ns, int64_t *ours_ns,
                                               uint64_t *bracket_ns)
{
    (void)clock;
    if (other_ns && ours_ns && bracket_ns) *other_ns = *ours_ns = (int64_t)(*bracket_ns = 0);
    return NPUPROF_LEFT_OUT_("NPUPROF_RECORD_ONLY leaves out npuprof_clock_pair");
}
