#pragma once   /* SPDX-License-Identifier: MIT */
#include "../../public/macros.h"
#include "../../numbers/hash.h"
#include "../types.h"
#include "times.h"

/* Begins that wait for their ends: one pool for all rings of a device. An end takes the newest begin of its
   ring, lane and key. Owns pairs_ and what belongs to it (npuprof_npu in types.h). May not know how a span is
   drawn. */

/* A begin whose end has not come. Lists by index + 1: of its bucket, newest first; of all, by age. */
typedef struct npuprof_npu_pair_ {
    npuprof_npu_entry_ e;                /* the begin: of its queue and lane; its start is e.t.start */
    npuprof_npu_record_ record;          /* of e, with what the end adds */
    npuprof_npu_submission_ of;          /* of e */
    bool draws;                          /* it was to be drawn when it began */
    uint16_t below, newer, older, bucket;
} npuprof_npu_pair_;

static unsigned npuprof_npu_pair_bucket_(const npuprof_npu_entry_ *e)
{
    const uint64_t *const key = e->r->v + NPUPROF_NPU_AT_KEY_;
    const uint64_t place = (uint64_t)e->q->number << 56 ^ (uint64_t)e->pe << 40;
    const uint64_t hash = npuprof_hash_mix_fast_(key[0] ^ place);
    return (unsigned)(npuprof_hash_mix_fast_(hash ^ key[1]) >> 32) % NPUPROF_NPU_PAIR_BUCKETS_;
}

/* All are free. */
static void npuprof_npu_clear_pairs_(npuprof_npu *npu)
{
    for (unsigned i = 0; i < NPUPROF_NPU_PAIRS_; i++) npu->pairs_[i].below = (uint16_t)(i + 2);
    npu->pairs_[NPUPROF_NPU_PAIRS_ - 1].below = 0;
    npu->free_pair_ = 1;
    npu->oldest_pair_ = npu->newest_pair_ = 0;
    memset(npu->pair_buckets_, 0, sizeof npu->pair_buckets_);
}

/* Takes a begin out of both lists; it stays as it is until the next npuprof_npu_open_pair_(). */
static void npuprof_npu_close_pair_(npuprof_npu *npu, npuprof_npu_pair_ *pair)
{
    const uint16_t me = (uint16_t)(pair - npu->pairs_ + 1);
    uint16_t *link = &npu->pair_buckets_[pair->bucket];
    while (*link != me) link = &npu->pairs_[*link - 1].below;
    *link = pair->below;
    if (pair->older) npu->pairs_[pair->older - 1].newer = pair->newer;
    else npu->oldest_pair_ = pair->newer;
    if (pair->newer) npu->pairs_[pair->newer - 1].older = pair->older;
    else npu->newest_pair_ = pair->older;
    pair->below = npu->free_pair_;
    npu->free_pair_ = me;
}

/* The begin that is open longest; NULL: none is open. */
static npuprof_npu_pair_ *npuprof_npu_oldest_pair_(npuprof_npu *npu)
{
    return npu->oldest_pair_ ? &npu->pairs_[npu->oldest_pair_ - 1] : NULL;
}

/* Keeps a begin. False: all are taken. */
static bool npuprof_npu_open_pair_(npuprof_npu *npu, const npuprof_npu_entry_ *e, bool draws)
{
    const uint16_t me = npu->free_pair_;
    if (!me) return false;
    npuprof_npu_pair_ *const pair = &npu->pairs_[me - 1];
    npu->free_pair_ = pair->below;
    pair->record = *e->r;
    pair->of = *e->of;
    pair->e = *e;
    pair->e.r = &pair->record;
    pair->e.of = &pair->of;
    pair->e.pass = NULL;                 /* over by then */
    pair->draws = draws;
    pair->bucket = (uint16_t)npuprof_npu_pair_bucket_(e);
    pair->below = npu->pair_buckets_[pair->bucket];
    npu->pair_buckets_[pair->bucket] = me;
    pair->newer = 0;
    pair->older = npu->newest_pair_;
    if (npu->newest_pair_) npu->pairs_[npu->newest_pair_ - 1].newer = me;
    else npu->oldest_pair_ = me;
    npu->newest_pair_ = me;
    return true;
}

/* The newest open begin of the ring, lane and key of an end, taken out of the lists; NULL: there is none. */
static npuprof_npu_pair_ *npuprof_npu_match_pair_(npuprof_npu *npu, const npuprof_npu_entry_ *e)
{
    const uint64_t *const key = e->r->v + NPUPROF_NPU_AT_KEY_;
    uint16_t at = npu->pair_buckets_[npuprof_npu_pair_bucket_(e)];
    for (; at; at = npu->pairs_[at - 1].below) {
        npuprof_npu_pair_ *const pair = &npu->pairs_[at - 1];
        const uint64_t *const its = pair->record.v + NPUPROF_NPU_AT_KEY_;
        if (pair->e.q != e->q || pair->e.pe != e->pe || its[0] != key[0] || its[1] != key[1]) continue;
        npuprof_npu_close_pair_(npu, pair);
        return pair;
    }
    return NULL;
}
