#pragma once   /* SPDX-License-Identifier: MIT */
#include "../../public/macros.h"
#include "../types.h"
#include "format.h"
#include "rule.h"
#include "ready.h"
#include "ready_producer.h"
#include "ready_valid.h"
#include "ready_phase.h"
#include "ready_sequence.h"

/* The table of ready rules, and what is the same for each: a ring is found, read and copied by the functions
   of its own. May not know what a value means. */

/* By NPUPROF_NPU_READY_*. */
static const npuprof_npu_rule_ npuprof_npu_rules_[] = {
    { NPUPROF_NPU_VALUES_, false, NULL, true, false, NULL, npuprof_npu_producer_period_,
      npuprof_npu_find_producer_, npuprof_npu_begin_producer_, npuprof_npu_copy_announced_, NULL, NULL },
    { NPUPROF_NPU_AT_VALID_, true, "and READY_VALID belong together: give both, or none", false, true,
      npuprof_npu_check_valid_, NULL, npuprof_npu_find_valid_, npuprof_npu_begin_valid_,
      npuprof_npu_copy_asked_, npuprof_npu_valid_is_there_, npuprof_npu_judge_valid_ },
    { NPUPROF_NPU_AT_PHASE_, true, "and READY_PHASE belong together: give both, or none", false, false,
      npuprof_npu_check_phase_, npuprof_npu_phase_period_, npuprof_npu_find_phase_, npuprof_npu_begin_phase_,
      npuprof_npu_copy_asked_, npuprof_npu_phase_is_there_, npuprof_npu_judge_phase_ },
    { NPUPROF_NPU_AT_SEQUENCE_, false, "is missing, which READY_SEQUENCE needs", false, false,
      npuprof_npu_check_sequence_, npuprof_npu_sequence_period_, npuprof_npu_find_sequence_,
      npuprof_npu_begin_sequence_, npuprof_npu_copy_asked_, npuprof_npu_sequence_is_there_, NULL },
};
NPUPROF_ASSERT_(rules, sizeof npuprof_npu_rules_ / sizeof npuprof_npu_rules_[0] == NPUPROF_NPU_READY_COUNT_);

/* Does its rule remember the entries that were read? May be asked before the rule was checked. */
static bool npuprof_npu_remembers_entries_(const npuprof_npu_ring *r)
{
    const bool has_rule = !r->feed && (unsigned)r->ready < NPUPROF_NPU_READY_COUNT_;
    return has_rule && npuprof_npu_rules_[r->ready].is_cleared;
}

/* What to name in a sentence about a rule: the field that it needs, or itself. */
static const char *npuprof_npu_rule_key_(const npuprof_npu_rule_ *rule)
{
    return rule->field < NPUPROF_NPU_VALUES_ ? npuprof_npu_value_keys_[rule->field] : "ready";
}

/* Whether it cannot be read without touching the BAR. */
static bool npuprof_npu_is_in_bar_(const npuprof_npu_queue_ *q) { return !q->is.memory || q->index.in_bar; }

/* Finds out where a ring that was just opened is. */
static npuprof_result npuprof_npu_find_ring_(npuprof_npu *npu, npuprof_npu_queue_ *q)
{
    if (!q->base) return NPUPROF_OK;
    q->found = true;
    return q->rule->find(npu, q);
}

/* Begins to read a ring. False: nothing can be read. */
static bool npuprof_npu_begin_reading_(npuprof_npu *npu, npuprof_npu_queue_ *q, npuprof_npu_reading_ *reading)
{
    reading->result = NPUPROF_OK;
    reading->count = 0;
    reading->is_clear = false;
    if (!q->found) reading->result = npuprof_npu_find_ring_(npu, q);     /* it was off at open */
    reading->producer = q->next;
    if (reading->result != NPUPROF_OK && reading->result != NPUPROF_ERR_NPU_RING) return false;
    return q->rule->begin(npu, q, reading);
}

/* Copies the next batch. False: there is none. */
static bool npuprof_npu_copy_batch_(npuprof_npu *npu, npuprof_npu_queue_ *q, npuprof_npu_reading_ *reading)
{
    reading->count = 0;
    if (q->next == reading->producer) return false;
    if (!reading->is_clear) memset(reading->batch, 0, sizeof reading->batch);
    reading->is_clear = true;
    return q->rule->copy(npu, q, reading);
}
