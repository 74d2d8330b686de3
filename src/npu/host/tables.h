#pragma once   /* SPDX-License-Identifier: MIT */
#include "../../public/macros.h"
#include "../../os/common.h"
#include "../types.h"
#include "ended.h"
#include "late.h"
#include "rules.h"

/* The tables of an open device: those that its description asks for, in one piece of memory. Owns tables_
   (npuprof_npu in types.h). One thread. May not know what is in a table. */

enum { NPUPROF_NPU_TABLE_ALIGN_ = 16 };

/* Memory that is being laid out; NULL: only counted. */
typedef struct npuprof_npu_layout_ { unsigned char *memory; size_t end; } npuprof_npu_layout_;

/* The place of the next table. NULL: it has no entries, or is only counted. */
static void *npuprof_npu_next_table_(npuprof_npu_layout_ *to, size_t count, size_t bytes)
{
    const size_t at = to->end, align = NPUPROF_NPU_TABLE_ALIGN_;
    to->end += (count * bytes + align - 1) / align * align;
    return count && to->memory ? to->memory + at : NULL;
}

/* Lays out the tables from `memory` on; NULL: only says how many bytes they take. */
static size_t npuprof_npu_lay_tables_(npuprof_npu *npu, unsigned char *memory)
{
    const npuprof_npu_desc *const d = &npu->desc_;
    const npuprof_npu_ring *r = d->ring_count ? d->rings : &d->ring;
    const size_t jobs = d->job_count, queues = npu->queue_count_;
    npuprof_npu_layout_ to = { memory, 0 };
    bool pairs = false, seen = false, parts = false;
    for (size_t i = 0; i < queues; i++, r++) {
        pairs = pairs || r->kind_count || r->all_are == NPUPROF_NPU_KIND_BEGIN ||
                r->all_are == NPUPROF_NPU_KIND_END;
        parts = parts || r->execution_op;
        seen = seen || npuprof_npu_remembers_entries_(r);
    }
#define NPUPROF_NPU_TABLE_(type, member, count) \
    npu->member = (type *)npuprof_npu_next_table_(&to, (count), sizeof(type));
    NPUPROF_NPU_TABLE_(npuprof_npu_call_, calls_, NPUPROF_NPU_CALLS_)
    NPUPROF_NPU_TABLE_(npuprof_npu_job_, jobs_, jobs)
    NPUPROF_NPU_TABLE_(uint32_t, used_, jobs / 32)
    NPUPROF_NPU_TABLE_(uint32_t, numbered_, jobs / 32 * NPUPROF_NPU_ROWS_)
    NPUPROF_NPU_TABLE_(uint32_t, dropped_, NPUPROF_NPU_DROPPED_)
    NPUPROF_NPU_TABLE_(npuprof_npu_queue_, queues_, queues)
    NPUPROF_NPU_TABLE_(npuprof_npu_lane_state_, lanes_, queues ? NPUPROF_NPU_LANES_ + 1 : 0)
    NPUPROF_NPU_TABLE_(npuprof_npu_late_, late_, queues ? NPUPROF_NPU_LATE_ : 0)
    NPUPROF_NPU_TABLE_(npuprof_npu_pair_, pairs_, pairs ? NPUPROF_NPU_PAIRS_ : 0)
    NPUPROF_NPU_TABLE_(uint32_t, seen_, seen ? NPUPROF_NPU_SEEN_ : 0)
    NPUPROF_NPU_TABLE_(npuprof_npu_ended_, ended_, parts ? NPUPROF_NPU_ENDED_ : 0)
    return to.end;
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
