#pragma once   /* SPDX-License-Identifier: MIT */
#include "../public/macros.h"
#include "../format/compact.h"
#include "arena.h"
#include "record.h"
#include "event.h"
#include "read.h"
#include "policy.h"

/* Start, stop and pause on firmware; what needs a file or a sink is unsupported there.
   Owns the gate, the level and the token of the open pause: one task controls. May not know how cells are
   read. */

static npuprof_token_ npuprof_fw_pause_token_;
static int npuprof_fw_level_;            /* 0 = stopped */

NPUPROF_API_ npuprof_result npuprof_init_(const npuprof_desc *desc, size_t desc_bytes, int version)
{
    if (desc_bytes != sizeof *desc || version != NPUPROF_VERSION) return NPUPROF_ERR_VERSION;
    if (npuprof_fw_arena_->cells) return NPUPROF_ERR_STARTED;
    if (desc && (desc->when_full != NPUPROF_WHEN_FULL || desc->arena_path || desc->output_path ||
                 desc->categories || desc->capture)) return NPUPROF_ERR_UNSUPPORTED;
    const npuprof_result result = npuprof_fw_check_sink_(desc);
    if (result != NPUPROF_OK) return result;
    if (desc && desc->arena) {
        if (NPUPROF_ARENA_BYTES) return NPUPROF_ERR_UNSUPPORTED;
        if ((uintptr_t)desc->arena & 7) return NPUPROF_ERR_ARENA_SIZE;
        if (desc->arena_bytes < NPUPROF_ARENA_LEAST_) return NPUPROF_ERR_ARENA_SIZE;
        npuprof_fw_set_up_(desc->arena, desc->arena_bytes);
    }
    if (!npuprof_fw_is_ready_()) return NPUPROF_ERR_ARENA_SIZE;
    npuprof_fw_keep_sink_(desc);
    return NPUPROF_OK;
}

NPUPROF_API_ bool npuprof_is_recording(void) { return NPUPROF_OPEN_(1); }

NPUPROF_API_ bool npuprof_is_recording_level(int level) { return NPUPROF_OPEN_(level); }

NPUPROF_API_ npuprof_result npuprof_start(int level)
{
    if (level < 1 || level > 9) return NPUPROF_ERR_ARGUMENT;
    if (!npuprof_fw_is_ready_()) return NPUPROF_ERR_ARENA_SIZE;
    npuprof_fw_level_ = level;
    return npuprof_resume();
}

NPUPROF_API_ npuprof_result npuprof_stop(void)
{
    NPUPROF_STORE_(&npuprof_gate_, INT_MIN);
    npuprof_fw_level_ = 0;
    return NPUPROF_OK;
}

NPUPROF_API_ npuprof_result npuprof_pause(void)
{
    if (!NPUPROF_OPEN_(1)) return NPUPROF_OK;
    NPUPROF_STORE_(&npuprof_gate_, INT_MIN);
    npuprof_fw_pause_token_ = npuprof_begin_named_(NPUPROF_CELL_KIND_PAUSE_, NULL, "pause", PROF_NO_ARGS);
    return npuprof_fw_pause_token_ ? NPUPROF_OK : NPUPROF_ERR_TABLE_FULL;
}

NPUPROF_API_ npuprof_result npuprof_resume(void)
{
    npuprof_close_(npuprof_fw_pause_token_);
    npuprof_fw_pause_token_ = 0;
    if (npuprof_fw_level_) NPUPROF_STORE_(&npuprof_gate_, npuprof_fw_level_);
    return NPUPROF_OK;
}

NPUPROF_API_ npuprof_result npuprof_set_categories(const char *spec)
{
    return spec && *spec ? NPUPROF_ERR_UNSUPPORTED : NPUPROF_OK;
}

NPUPROF_API_ npuprof_result npuprof_dump(const char *path)
{
    (void)path;
    return NPUPROF_ERR_UNSUPPORTED;
}

NPUPROF_API_ const char *npuprof_result_string(npuprof_result result)
{
    /* Why one object: the linker then leaves it out when nobody asks. */
#define NPUPROF_TEXT_(name, text) #name ": " text "\0"
    static const char texts[] = NPUPROF_RESULTS(NPUPROF_TEXT_) "not a result of npuprof";
#undef NPUPROF_TEXT_
    const char *text = texts;
    for (int i = 0; i < (int)result && i < NPUPROF_RESULT_COUNT; i++)
        text += npuprof_fw_text_length_(text) + 1;
    return text;
}
