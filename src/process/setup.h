#pragma once   /* SPDX-License-Identifier: MIT */
#include "../public/hot.h"
#include "../numbers/text.h"
#include "../format/arena.h"
#include "../arena/state.h"
#include "../os/common.h"
#include "../clock/host.h"
#include "../arena/layout.h"
#include "../arena/thread.h"
#include "../arena/exchange.h"
#include "../record/enter.h"
#include "../control/start.h"
#include "../control/path.h"
#include "../control/conditions.h"
#include "../control/environment.h"
#include "../control/attach.h"
#include "../control/capture.h"
#include "../read/live.h"
#include "../write/stream.h"
#include "../write/files.h"
#include "../write/capture.h"
#include "fork.h"

/* Set-up: lays out the arena, reads the environment, and hands down the functions that lower rooms call.

   It runs once: in a constructor before main() where the compiler has one, else in the first macro or
   function that needs it. npuprof_init() comes afterwards, and may replace the arena while nothing is
   recorded in it.

   Data: npuprof_record_setup_. 0 not begun; 1 a thread is setting up; 2 ready; 3 a child of fork whose arena
   is the parent's file (fork.h). A thread turns 0 or 3 into 1 by CAS and then owns the library, until it
   stores 2, or 0 if that failed, with release. Others load it with acquire.

   This is the top: it may know every room, and none may know it. */

/* Asks for huge pages for the chunks of an arena that is no file: a thread that fills fresh memory then waits
   for one page in 2 MiB instead of 512. Why not for the first chunks, nor for an arena below 4 MiB: a process
   that records little would wait for 2 MiB to be zeroed, and keep them. */
static void npuprof_setup_pages_(void)
{
    const npuprof_arena_state_ *const s = &npuprof_arena_;
    const size_t first = 256 * 1024, all = (size_t)s->header->arena_bytes;
    const size_t before = (size_t)s->header->chunks_offset + first;
    if (!npuprof_path_arena_.bytes && all >= 4 * 1024 * 1024)
        npuprof_os_huge_pages_(s->base + before, all - before);
}

/* Lays out the first arena, as the environment says: a mapped file, memory of another size, or the static
   one. False: the static arena is too small. */
static bool npuprof_setup_arena_(void)
{
    void *memory = npuprof_arena_static_;
    const char *const path = npuprof_env_get_("NPUPROF_ARENA_PATH"),
        *const size = npuprof_env_get_("NPUPROF_ARENA_BYTES");
    size_t bytes = size ? npuprof_env_read_size_(size) : 0;
    npuprof_env_.arena_bytes = bytes;
    if (!bytes) bytes = sizeof npuprof_arena_static_;
    npuprof_env_.arena_error = path ? npuprof_path_map_arena_(path, bytes, false, &memory) : 0;
    if (!npuprof_path_arena_.bytes && bytes > sizeof npuprof_arena_static_
        && (memory = npuprof_os_memory_(bytes)) == NULL) {
        memory = npuprof_arena_static_;
        bytes = sizeof npuprof_arena_static_;
        npuprof_env_.arena_bytes = 0;
    }
    return npuprof_process_lay_out_(memory, bytes, NPUPROF_KEEP_OLDEST, true);
}

/* Sets up, unless it is done. State 3: only leaves the parent's file. */
static npuprof_result npuprof_setup_once_(void)
{
    npuprof_arena_state_ *const s = &npuprof_arena_;
    if (npuprof_arena_has_leader_()) return NPUPROF_ERR_STARTED;
    uint32_t before = 0;
    /* Why no look before: a first access that writes takes one page fault and not two. */
    if (!NPUPROF_CAS_(&npuprof_record_setup_, &before, 1) &&
        (before != 3 || !NPUPROF_CAS_(&npuprof_record_setup_, &before, 1)))
        return npuprof_setup_wait_(before);
    NPUPROF_STORE_(&npuprof_setup_thread_, npuprof_slot_me_());
    if (before == 3) {
        npuprof_fork_leave_parent_();
        NPUPROF_STORE_RELEASE_(&npuprof_record_setup_, 2);
        return NPUPROF_OK;
    }
    npuprof_clock_choose_();
    if (!npuprof_setup_arena_()) {
        NPUPROF_STORE_RELEASE_(&npuprof_record_setup_, 0);
        return NPUPROF_ERR_ARENA_SIZE;
    }
    npuprof_setup_pages_();
    npuprof_control_advance_generation_();
    npuprof_os_hook_(npuprof_process_thread_ends_, npuprof_fork_note_, npuprof_fork_in_child_,
                     npuprof_file_write_at_exit_);
    npuprof_arena_hooks_.drain = npuprof_stream_drain_;
    npuprof_arena_hooks_.ends = npuprof_process_end_slot_;
    npuprof_capture_hooks_.write = npuprof_file_capture_;
    NPUPROF_ATTACH_(NPUPROF_STORE_RELEASE_(&npuprof_record_hooks_.answer, &npuprof_control_answer_);)
    NPUPROF_STORE_RELEASE_(&npuprof_record_setup_, 2);
    npuprof_env_read_();
    const char *const why = npuprof_capture_arm_();
    if (why) npuprof_env_refuse_("NPUPROF_SIGNAL", npuprof_os_env_("NPUPROF_SIGNAL"), why);
    if (npuprof_capture_set_.slow_kind && npuprof_env_.when_full < 0)
        npuprof_control_set_policy_(NPUPROF_KEEP_NEWEST);
    if (npuprof_env_.populate) npuprof_os_populate_(s->base, (size_t)s->header->arena_bytes);
    npuprof_control_set_gate_();
    return NPUPROF_OK;
}

/* Sets up if nothing has yet. Does a macro of this level record now? INT_MAX in the gate means that nobody
   has set it. */
NPUPROF_API_ bool npuprof_opens_(int level)
{
    (void)npuprof_setup_once_();
    /* Why not a plain store: another thread may have opened the gate meanwhile. */
    int waiting = INT_MAX;
    (void)NPUPROF_CAS_(&npuprof_gate_, &waiting, INT_MIN);
    return NPUPROF_LOAD_(&npuprof_gate_) >= level;
}

/* Looks for what is wrong with the settings alone, whatever the state of the library. */
static npuprof_result npuprof_setup_check_(const npuprof_desc *desc)
{
    if (desc->when_full < NPUPROF_KEEP_OLDEST || desc->when_full > NPUPROF_STREAM)
        return NPUPROF_REFUSE_("npuprof_init: when_full is none of NPUPROF_KEEP_OLDEST, _KEEP_NEWEST and "
                               "_STREAM");
    if (desc->output_path && strlen(desc->output_path) >= sizeof npuprof_path_output_.pattern)
        return NPUPROF_REFUSE_("npuprof_init: output_path is longer than 1023 bytes");
    if (desc->arena && desc->arena_path)
        return NPUPROF_REFUSE_("npuprof_init: give arena or arena_path, not both");
    if (desc->arena_bytes && !desc->arena && !desc->arena_path)
        return NPUPROF_REFUSE_("npuprof_init: arena_bytes without arena or arena_path");
    if (desc->arena && (desc->arena_bytes < 2048 || ((uintptr_t)desc->arena & 7)))
        return NPUPROF_ERR_ARENA_SIZE;
    if (desc->arena_path && desc->arena_bytes && desc->arena_bytes < 2048) return NPUPROF_ERR_ARENA_SIZE;
    if (desc->output_path && npuprof_path_form_(desc->output_path) < 0) return NPUPROF_ERR_UNSUPPORTED;
    return NPUPROF_OK;
}

/* Moves to the arena that the settings ask for, unless the environment chose one. */
static npuprof_result npuprof_setup_move_(const npuprof_desc *desc)
{
    npuprof_arena_state_ *s = &npuprof_arena_;
    void *memory = npuprof_path_arena_.bytes || npuprof_env_.arena_bytes ? NULL : desc->arena;
    size_t bytes = npuprof_env_.arena_bytes ? npuprof_env_.arena_bytes : desc->arena_bytes ? desc->arena_bytes
        : sizeof npuprof_arena_static_;
    const bool map = desc->arena_path && !npuprof_path_arena_.bytes;
    if ((memory || map) && (NPUPROF_LOAD_(&s->header->threads) || s->header->devices))
        return NPUPROF_ERR_STARTED;
    if (map) {
        const npuprof_result mapped =
            npuprof_os_result_(npuprof_path_map_arena_(desc->arena_path, bytes, false, &memory));
        if (mapped != NPUPROF_OK) return mapped;
    }
    if (memory) {
        const npuprof_header_ *old = s->header;
        NPUPROF_STORE_(&npuprof_gate_, INT_MIN);
        (void)npuprof_process_lay_out_(memory, bytes, s->when_full, map);
        npuprof_setup_pages_();
        npuprof_image_copy_metadata_(old);
        /* The entries of gaps lie in the old table. */
        if (npuprof_control_.paused) npuprof_control_.paused = NPUPROF_PAUSE_NO_ENTRY_;
        NPUPROF_STORE_(&npuprof_control_.held, NPUPROF_LOAD_(&npuprof_control_.held) & NPUPROF_HOLD_BITS_);
        npuprof_control_advance_generation_();
    }
    if (desc->populate || (memory && npuprof_env_.populate))
        npuprof_os_populate_(s->base, (size_t)s->header->arena_bytes);
    return NPUPROF_OK;
}

/* Sets what happens when the arena is full, unless the environment said it. */
static npuprof_result npuprof_setup_policy_(const npuprof_desc *desc)
{
    int when_full = npuprof_env_.when_full >= 0 ? npuprof_env_.when_full : desc->when_full;
    /* A trigger is for what was recorded last. */
    if (npuprof_capture_set_.slow_kind && npuprof_env_.when_full < 0 && when_full == NPUPROF_KEEP_OLDEST)
        when_full = NPUPROF_KEEP_NEWEST;
    npuprof_stream_.sink = desc->sink;
    if (when_full != NPUPROF_STREAM || npuprof_stream_.sink.write || npuprof_path_is_stream_())
        npuprof_control_set_policy_(when_full);
    else if (npuprof_env_.when_full < 0)
        return NPUPROF_REFUSE_("npuprof_init: NPUPROF_STREAM without a sink, and output_path does not end "
                               "in .npuprof");
    return NPUPROF_OK;
}

/* Capture control, as the settings ask for it. The signals last: they are taken only if all else is right. */
static npuprof_result npuprof_setup_capture_(const npuprof_capture *c)
{
    const char *const texts[NPUPROF_CAPTURE_TEXTS_] = { c->schedule, c->delay, c->duration, c->trigger,
                                                        c->control_path, c->signal };
    const npuprof_capture_settings_ before = npuprof_capture_set_;
    for (int i = 0; i < NPUPROF_CAPTURE_TEXTS_; i++) {
        const npuprof_capture_text_ *const t = &npuprof_capture_texts_[i];
        const char *const why = texts[i] && !(npuprof_env_.conditions & t->group) ? t->set(texts[i]) : NULL;
        if (!why) continue;
        npuprof_capture_set_ = before;
        (void)npuprof_os_explain_(NPUPROF_ERR_ARGUMENT, "NPUPROF_ERR_ARGUMENT: npuprof_init: capture.%s: %s",
                                  t->field, why);
        return npuprof_os_refuse_(npuprof_os_say_to_me_()->explained);
    }
    npuprof_control_.tell_user = c->user;
    npuprof_control_.tell = c->gate;
    if (!npuprof_capture_arm_()) return NPUPROF_OK;
    return NPUPROF_REFUSE_("npuprof_init: capture.signal: the program has a handler for this signal, or "
                           "ignores it");
}

NPUPROF_API_ npuprof_result npuprof_init_(const npuprof_desc *desc, size_t desc_bytes, int version)
{
    static const npuprof_desc none = { NULL, 0, NULL, 0, { NULL, NULL }, NULL, NULL, false, NULL };
    if (version != NPUPROF_VERSION || desc_bytes != sizeof(npuprof_desc)) return NPUPROF_ERR_VERSION;
    if (!desc) desc = &none;
    npuprof_result r = npuprof_setup_check_(desc);
    if (r != NPUPROF_OK) return r;
    if (!npuprof_record_is_ready_()) return NPUPROF_ERR_ARENA_SIZE;
    if (NPUPROF_LOAD_(&npuprof_control_.started)) return NPUPROF_ERR_STARTED;
    r = npuprof_setup_move_(desc);
    if (r != NPUPROF_OK) return r;
    if (desc->output_path && !npuprof_path_output_.at_exit) npuprof_path_set_output_(desc->output_path);
    if (desc->capture) r = npuprof_setup_capture_(desc->capture);
    if (r == NPUPROF_OK) r = npuprof_setup_policy_(desc);
    if (r == NPUPROF_OK && desc->categories && !npuprof_control_lists_.from[0])
        r = npuprof_set_categories(desc->categories);
    npuprof_control_set_gate_();
    npuprof_control_tell_();
    return r;
}

#ifdef NPUPROF_DESTRUCTOR_
/* Why: threads may live longer than a plugin that is unloaded. They must not call into it when they end. */
NPUPROF_DESTRUCTOR_ static void npuprof_process_unhook_(void)
{
    npuprof_capture_leave_signals_();
    npuprof_os_unhook_();
}

#endif
#ifdef NPUPROF_CONSTRUCTOR_
#if NPUPROF_SHARED_
/* Says that the spans of this library are not recorded, because a copy of another version leads: in its
   trace, and on stderr if one is asked for. Why not recorded: nothing says that the two versions agree. */
NPUPROF_COLD_ static void npuprof_process_name_other_version_(void)
{
    const char *const library = npuprof_os_library_();
    char text[400];
    snprintf(text, sizeof text, "the spans of %.200s are not recorded: the program has an npuprof.h of "
             "another version, or another NPUPROF_NOW; compile both with the same",
             library ? library : "a library");
    (void)npuprof_metadata("npuprof of another version", text);
    if (npuprof_env_get_("NPUPROF_OUTPUT_PATH")) npuprof_os_say_("npuprof: %s\n", text);
}

#endif
/* Why a constructor: NPUPROF_OUTPUT_PATH must work for a program that never calls npuprof. */
NPUPROF_CONSTRUCTOR_ static void npuprof_process_begin_(void)
{
#if NPUPROF_SHARED_
    if (npuprof_arena_has_other_version_()) npuprof_process_name_other_version_();
#endif
    (void)npuprof_setup_once_();
}
#endif /* NPUPROF_CONSTRUCTOR_ */
