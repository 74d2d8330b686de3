#pragma once   /* SPDX-License-Identifier: MIT */
#include "../../public/macros.h"
#include "../../numbers/hash.h"
#include "../types.h"
#include "format.h"

/* Begins that wait for their ends: one pool for all rings of a device. An end takes the newest begin of its
   ring, lane and key. Owns pairs_ and what belongs to it (npuprof_npu in types.h). May not know how a span is
   drawn. */

static unsigned npuprof_npu_pair_bucket_(unsigned ring, unsigned lane, const uint64_t *key)
{
    const uint64_t hash = npuprof_hash_mix_(key[0] ^ (uint64_t)ring << 56 ^ (uint64_t)lane << 40);
    return (unsigned)(npuprof_hash_mix_(hash ^ key[1]) >> 32) % NPUPROF_NPU_PAIR_BUCKETS_;
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

/* A new begin. NULL: all are taken. */
static npuprof_npu_pair_ *npuprof_npu_open_pair_(npuprof_npu *npu, unsigned ring, unsigned lane,
                                                 const uint64_t *key)
{
    const uint16_t me = npu->free_pair_;
    if (!me) return NULL;
    npuprof_npu_pair_ *const pair = &npu->pairs_[me - 1];
    npu->free_pair_ = pair->below;
    pair->ring = (uint8_t)ring;
    pair->lane = (uint16_t)lane;
    pair->key[0] = key[0];
    pair->key[1] = key[1];
    pair->bucket = (uint16_t)npuprof_npu_pair_bucket_(ring, lane, key);
    pair->below = npu->pair_buckets_[pair->bucket];
    npu->pair_buckets_[pair->bucket] = me;
    pair->newer = 0;
    pair->older = npu->newest_pair_;
    if (npu->newest_pair_) npu->pairs_[npu->newest_pair_ - 1].newer = me;
    else npu->oldest_pair_ = me;
    npu->newest_pair_ = me;
    return pair;
}

/* The newest open begin of that ring, lane and key, taken out of the lists; NULL: there is none. */
static npuprof_npu_pair_ *npuprof_npu_match_pair_(npuprof_npu *npu, unsigned ring, unsigned lane,
                                                  const uint64_t *key)
{
    uint16_t at = npu->pair_buckets_[npuprof_npu_pair_bucket_(ring, lane, key)];
    for (; at; at = npu->pairs_[at - 1].below) {
        npuprof_npu_pair_ *const pair = &npu->pairs_[at - 1];
        if (pair->ring != ring || pair->lane != lane) continue;
        if (pair->key[0] != key[0] || pair->key[1] != key[1]) continue;
        npuprof_npu_close_pair_(npu, pair);
        return pair;
    }
    return NULL;
}
