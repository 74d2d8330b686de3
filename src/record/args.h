#pragma once   /* SPDX-License-Identifier: MIT */
#include "../public/types.h"
#include "../numbers/text.h"
#include "../format/layouts.h"
#include "../format/arena.h"
#include "../arena/state.h"
#include "../arena/table.h"

#include <string.h>

/* Arguments, as the units behind a record. Their keys lie in the table; a macro remembers the keys of its
   arguments. Words of npuprof_keys_, one for each macro, written by whatever thread comes first:
     generation   of the arena for which the rest is right. Stored with release when `key` has been emptied
     key[k]       address of the text of argument k's key. NULL -> `taken` by CAS, then the address, with
                  release, by the same thread
     word[k]      low bits of the argument's first unit, stored before key[k]
     fast, text   see begin.h
   A place keeps its first key for ever. Why: another thread may be between reading key[k] and word[k]. An
   inlined copy of the macro that has another key there looks its key up each time. */

/* Units that a list of arguments takes. */
static size_t npuprof_record_count_arg_units_(npuprof_args args)
{
    size_t units = 0;
    for (size_t i = 0; i < args.count; i++) {
        units++;
        if (args.items[i].type == NPUPROF_ARG_STR && args.items[i].value.s) {
            const size_t length = strlen(args.items[i].value.s);
            const size_t limit = NPUPROF_ARG_STRING_LIMIT_, kept = length < limit ? length : limit;
            if (kept > 8) units += NPUPROF_UNITS_(kept - 8);
        }
    }
    return units;
}

/* Forgets the keys of another arena. */
static void npuprof_record_forget_keys_(npuprof_keys_ *keys, uint32_t generation)
{
    if (NPUPROF_LOAD_ACQUIRE_(&keys->generation) == generation) return;
    for (unsigned k = 0; k < NPUPROF_KEYS_; k++) NPUPROF_STORE_(&keys->key[k], NULL);
    NPUPROF_STORE_RELEASE_(&keys->generation, generation);
}

/* Remembers the word of key number k, unless another thread has taken the place. */
static void npuprof_record_remember_key_(npuprof_keys_ *keys, size_t k, const char *key, uint64_t word)
{
    static const char taken = 0;
    const char *nobody = NULL;
    if (NPUPROF_LOAD_(&keys->key[k]) || !NPUPROF_CAS_(&keys->key[k], &nobody, &taken)) return;
    NPUPROF_STORE_(&keys->word[k], word);
    NPUPROF_STORE_RELEASE_(&keys->key[k], key);
}

/* The part of an argument's first unit that its key and place in the list give. keys may be NULL. 0: the
   table is full. */
static uint64_t npuprof_record_key_word_(npuprof_keys_ *keys, size_t k, const char *key, uint32_t generation)
{
    const bool kept = keys && k < NPUPROF_KEYS_;
    const bool current = kept && NPUPROF_LOAD_ACQUIRE_(&keys->generation) == generation;
    if (current && NPUPROF_LOAD_ACQUIRE_(&keys->key[k]) == key) return NPUPROF_LOAD_(&keys->word[k]);
    const uint32_t id = npuprof_table_intern_string_(key);
    if (!id) return 0;
    const uint64_t word = (uint64_t)id << (NPUPROF_ID_BITS_ + 4) | NPUPROF_CONTROL_ARG_;
    if (kept) {
        npuprof_record_forget_keys_(keys, generation);
        npuprof_record_remember_key_(keys, k, key, word);
    }
    return word;
}

/* How much of a string argument is recorded. Why apart: the function below is inlined, and most are short. */
static NPUPROF_NOINLINE_ size_t npuprof_record_cut_string_(const char *text, size_t length)
{
    return npuprof_utf8_cut_(text, length, NPUPROF_ARG_STRING_LIMIT_);
}

/* Writes the arguments from u on. False: a key did not fit into the table. */
static bool npuprof_record_write_args_(npuprof_unit_ *u, npuprof_keys_ *keys, npuprof_args args)
{
    const uint32_t generation = NPUPROF_LOAD_(&npuprof_arena_generation_);
    for (size_t i = 0; i < args.count; i++) {
        const npuprof_arg *a = &args.items[i];
        uint32_t type = a->type;
        size_t length = 0;
        const uint64_t word = npuprof_record_key_word_(keys, i, a->key, generation);
        if (!word) return false;
        npuprof_unit_ *const head = u++;
        uint64_t value = a->value.u;
        if (type == NPUPROF_ARG_STR) {
            const char *text = a->value.s;
            const size_t whole = text ? strlen(text) : 0;
            value = 0;
            length = text ? npuprof_record_cut_string_(text, whole) : 0;
            if (!text) type = NPUPROF_ARG_STR_NULL_;
            else if (length < whole) type = NPUPROF_ARG_STR_CUT_;
            if (length) memcpy(&value, text, length < 8 ? length : 8);
            if (length > 8) {
                npuprof_unit_ *const from = u;
                u += NPUPROF_UNITS_(length - 8);
                u[-1].w0 = u[-1].w1 = 0;       /* what the text leaves of it would be from before (R13) */
                memcpy(from, text + 8, length - 8);
            }
        }
        head->w1 = value;
        head->w0 = (uint64_t)length << (32 + NPUPROF_ID_BITS_) | (uint64_t)type << NPUPROF_ID_BITS_ | word;
    }
    return true;
}
