#pragma once   /* SPDX-License-Identifier: MIT */
#include "../../public/macros.h"
#include "../../os/common.h"
#include "../types.h"
#include "ended.h"
#include "late.h"

/* The tables of an open device: those that its description asks for, in one piece of memory. Owns tables_
   (npuprof_npu in types.h). One thread. May not know what is in a table. */

enum { NPUPROF_NPU_TABLE_ALIGN_ = 16 };

/* A place of that many bytes behind *end, which grows by them. */
static size_t npuprof_npu_next_table_(size_t *end, size_t bytes)
{
    const size_t at = *end;
    *end = at + (bytes + NPUPROF_NPU_TABLE_ALIGN_ - 1) / NPUPROF_NPU_TABLE_ALIGN_ * NPUPROF_NPU_TABLE_ALIGN_;
    return at;
}

/* Whether a ring of the description has begins and ends; and a ready bit whose entries are remembered. */
static bool npuprof_npu_has_pairs_(const npuprof_npu_ring *r)
{
    return r->kind_count || r->all_are == NPUPROF_NPU_KIND_BEGIN || r->all_are == NPUPROF_NPU_KIND_END;
}

/* Lays out the tables from `memory` on; NULL: only says how many bytes they take. */
static size_t npuprof_npu_lay_tables_(npuprof_npu *npu, unsigned char *memory)
{
    const npuprof_npu_desc *const d = &npu->desc_;
    const npuprof_npu_ring *const rings = d->ring_count ? d->rings : &d->ring;
    const size_t jobs = d->job_count, queues = npu->queue_count_;
    bool pairs = false, seen = false, parts = false;
    size_t end = 0;
    for (size_t i = 0; i < queues; i++) {
        pairs = pairs || npuprof_npu_has_pairs_(&rings[i]);
        parts = parts || rings[i].execution_op;
        seen = seen || rings[i].valid.width_bytes;
    }
    const size_t calls_at = npuprof_npu_next_table_(&end, NPUPROF_NPU_CALLS_ * sizeof *npu->calls_);
    const size_t jobs_at = npuprof_npu_next_table_(&end, jobs * sizeof *npu->jobs_);
    const size_t used_at = npuprof_npu_next_table_(&end, jobs / 8);
    const size_t dropped_at = npuprof_npu_next_table_(&end, NPUPROF_NPU_DROPPED_ * sizeof *npu->dropped_);
    const size_t queues_at = npuprof_npu_next_table_(&end, queues * sizeof *npu->queues_);
    const size_t lanes = queues ? NPUPROF_NPU_LANES_ + 1 : 0, late = queues ? NPUPROF_NPU_LATE_ : 0;
    const size_t lanes_at = npuprof_npu_next_table_(&end, lanes * sizeof *npu->lanes_);
    const size_t late_at = npuprof_npu_next_table_(&end, late * sizeof *npu->late_);
    const size_t pair_count = pairs ? NPUPROF_NPU_PAIRS_ : 0, seen_count = seen ? NPUPROF_NPU_SEEN_ : 0;
    const size_t pairs_at = npuprof_npu_next_table_(&end, pair_count * sizeof *npu->pairs_);
    const size_t seen_at = npuprof_npu_next_table_(&end, seen_count * sizeof *npu->seen_);
    const size_t ended_count = parts ? NPUPROF_NPU_ENDED_ : 0;
    const size_t ended_at = npuprof_npu_next_table_(&end, ended_count * sizeof *npu->ended_);
    if (!memory) return end;
    npu->calls_ = (npuprof_npu_call_ *)(void *)(memory + calls_at);
    npu->jobs_ = (npuprof_npu_job_ *)(void *)(memory + jobs_at);
    npu->used_ = (uint32_t *)(void *)(memory + used_at);
    npu->dropped_ = (uint32_t *)(void *)(memory + dropped_at);
    npu->queues_ = (npuprof_npu_queue_ *)(void *)(memory + queues_at);
    npu->lanes_ = (npuprof_npu_lane_state_ *)(void *)(memory + lanes_at);
    npu->late_ = (npuprof_npu_late_ *)(void *)(memory + late_at);
    npu->ended_ = parts ? (npuprof_npu_ended_ *)(void *)(memory + ended_at) : NULL;
    npu->pairs_ = pairs ? (npuprof_npu_pair_ *)(void *)(memory + pairs_at) : NULL;
    npu->seen_ = seen ? (uint32_t *)(void *)(memory + seen_at) : NULL;
    return end;
}

/* Finds memory for the tables, zeroed: the user's, or pages of the system. */
static npuprof_result npuprof_npu_take_tables_(npuprof_npu *npu)
{
    npuprof_npu_desc *const d = &npu->desc_;
    if (d->job_count > 65536) return NPUPROF_REFUSE_("npuprof_npu_open: desc.job_count is above 65536");
    d->job_count = d->job_count ? (d->job_count + 31) / 32 * 32 : 256;
    const size_t bytes = npuprof_npu_lay_tables_(npu, NULL);
    if (d->memory && (d->memory_bytes < bytes || (uintptr_t)d->memory % NPUPROF_NPU_TABLE_ALIGN_))
        return npuprof_os_explain_(NPUPROF_ERR_NPU_MEMORY,
                                   "NPUPROF_ERR_NPU_MEMORY: npuprof_npu_open: desc.memory is not aligned to "
                                   "16 bytes, or too small: this device needs %llu bytes, and memory_bytes "
                                   "is %llu",
                                   (unsigned long long)bytes, (unsigned long long)d->memory_bytes);
    npu->tables_bytes_ = bytes;
    if (!d->memory) npu->tables_ = npuprof_os_memory_(bytes);
    else memset(d->memory, 0, bytes);
    unsigned char *const memory = (unsigned char *)(d->memory ? d->memory : npu->tables_);
    if (!memory)
        return npuprof_os_explain_(NPUPROF_ERR_NPU_MEMORY,
                                   "NPUPROF_ERR_NPU_MEMORY: npuprof_npu_open: the system gives no %llu bytes "
                                   "for this device; name memory in desc.memory", (unsigned long long)bytes);
    (void)npuprof_npu_lay_tables_(npu, memory);
    return NPUPROF_OK;
}

/* Gives the memory back. */
static void npuprof_npu_give_tables_back_(npuprof_npu *npu)
{
    if (npu->tables_) npuprof_os_unmap_(npu->tables_, npu->tables_bytes_);
    npu->tables_ = NULL;
    npu->queues_ = NULL;
    npu->queue_count_ = 0;
}
