#pragma once   /* SPDX-License-Identifier: MIT */
#include "../public/compiler.h"

#include <string.h>

/* Hashes of hosted code: for look-ups (names in the table, maps of the writers) and for numbers that must not
   look alike (ids of traces and spans, marks of files).

   They do not resist an attacker who chooses the input: he can make look-ups slow and ids collide. An image
   holds hashes of its names, but no reader relies on them. Owns no data; may not know what is hashed. */

/* Two odd factors. Their set bits are spread evenly, so a product mixes all bits below. */
#define NPUPROF_HASH_FIRST_ 0x9E3779B97F4A7C15u
#define NPUPROF_HASH_SECOND_ 0xD6E8FEB86659FD93u

/* Mixes the bits of a number. Different numbers have different results.
   Why the shifts: a multiplication carries bits upwards only. */
static inline uint64_t npuprof_hash_mix_fast_(uint64_t x)
{
    x ^= x >> 31;
    x *= NPUPROF_HASH_FIRST_;
    x ^= x >> 29;
    x *= NPUPROF_HASH_SECOND_;
    return x ^ x >> 32;
}

/* The same where it is not done for each record of a device: shorter. */
static NPUPROF_NOINLINE_ uint64_t npuprof_hash_mix_(uint64_t x) { return npuprof_hash_mix_fast_(x); }

/* Hash of a text. Why 8 bytes at a time: a name that comes at run time may be hashed at each record. */
static uint32_t npuprof_hash_text_(const char *text, size_t length)
{
    uint64_t h = (uint64_t)length * NPUPROF_HASH_FIRST_, word;
    /* Why memcpy: a text need not be aligned. */
    for (; length >= 8; text += 8, length -= 8) {
        memcpy(&word, text, 8);
        h = (h ^ word) * NPUPROF_HASH_SECOND_;
        h ^= h >> 32;
    }
    word = 0;
    memcpy(&word, text, length);
    h = (h ^ word) * NPUPROF_HASH_SECOND_;
    return (uint32_t)(h >> 32);
}

/* FNV-1a of a text, never 0. For uses in which the hash replaces the text: with 64 bits, two of a few names
   practically never have the same one. */
static uint64_t npuprof_hash_key_(const char *text)
{
    uint64_t key = 0xCBF29CE484222325u;
    while (*text) key = (key ^ (unsigned char)*text++) * 0x100000001B3u;
    return key | (key == 0);
}
