#pragma once   /* SPDX-License-Identifier: MIT */
#include "../../public/macros.h"
#include "../types.h"
#include "format.h"

/* What a ready rule is: the functions by which the reader of a ring asks who says that entry number n is
   there. One file for each of them, ready_*.h, and one line of the table in rules.h. The reader keeps its own
   n, which starts at 0 and never wraps. Owns no data.

   A rule loads by npuprof_npu_load_value_() or npuprof_npu_load_word_() alone. Why: the device writes
   meanwhile; and tests/npu/interleaved.c lets it write at these loads. */

enum { NPUPROF_NPU_BATCH_ = 32 };        /* entries copied before they are judged */

/* What a copied entry is. */
enum {
    NPUPROF_NPU_ENTRY_GOOD_, NPUPROF_NPU_ENTRY_LOST_, NPUPROF_NPU_ENTRY_LATER_, NPUPROF_NPU_ENTRY_LAPPED_
};

/* A ring that is being read. */
typedef struct npuprof_npu_reading_ {
    uint64_t producer;                   /* number of the entry where it ends */
    npuprof_result result;               /* of the ring */
    unsigned count;                      /* of the batch */
    bool is_clear;                       /* the batch has been set to 0 */
    npuprof_npu_record_ batch[NPUPROF_NPU_BATCH_];
    uint8_t fate[NPUPROF_NPU_BATCH_];    /* NPUPROF_NPU_ENTRY_* */
    uint64_t gap[NPUPROF_NPU_BATCH_];    /* LAPPED: entries that are missing; GOOD: missing before it */
} npuprof_npu_reading_;

typedef struct npuprof_npu_rule_ {
    /* Its description. field: the value of an entry that it needs, NPUPROF_NPU_AT_*; VALUES_: none. is_own:
       no other rule has that field. lacks: what to say if it is missing, or there without the rule. */
    unsigned field;
    bool is_own;
    const char *lacks;
    bool is_announced;                   /* `producer` says it for a whole batch, which is older than that */
    bool is_cleared;                     /* somebody clears entries: their content is remembered in seen_ */

    /* What is wrong with the bits of `field`; NULL: nothing. */
    const char *(*check)(const npuprof_npu_queue_ *q);
    /* After how many entries the ring shows the same again, if none tells its number; NULL, or 0: never. */
    uint64_t (*period)(const npuprof_npu_queue_ *q);
    /* Finds out where a ring that was just opened is, `next`: what lies in it is older. */
    npuprof_result (*find)(npuprof_npu *npu, npuprof_npu_queue_ *q);
    /* Begins to read: catches up with the device, and sets where it ends. False: nothing can be read. */
    bool (*begin)(npuprof_npu *npu, npuprof_npu_queue_ *q, npuprof_npu_reading_ *reading);
    /* Copies and judges the next batch, from `next` on. False: there is none, or it cannot be trusted. */
    bool (*copy)(npuprof_npu *npu, npuprof_npu_queue_ *q, npuprof_npu_reading_ *reading);

    /* Of a rule that asks each entry, which npuprof_npu_copy_asked_() copies. Is that entry there: GOOD,
       LATER or LAPPED, by *gap. *word: what said so, the same before and after a copy that is whole. */
    int (*is_there)(npuprof_npu *npu, const npuprof_npu_queue_ *q, uint64_t number, uint64_t *word,
                    uint64_t *gap);
    /* What place i of the batch is, if more than its word tells; NULL: its word tells all. */
    int (*judge)(npuprof_npu *npu, npuprof_npu_queue_ *q, npuprof_npu_reading_ *reading, unsigned i,
                 int fate);
} npuprof_npu_rule_;
