#pragma once   /* SPDX-License-Identifier: MIT */
#include "../public/types.h"
#include "../numbers/text.h"
#include "../format/layouts.h"
#include "../format/arena.h"
#include "../arena/state.h"
#include "../arena/table.h"

/* Units that a list of arguments takes. */
static size_t npuprof_record_count_arg_units_(npuprof_args args)
{
    size_t units = 0;
    for (size_t i = 0; i < args.count; i++) {
        units++;
        if (args.items[i].type == NPUPROF_ARG_STR && args.items[i].value.s) {
            const size_t length = strlen(args.items[i].value.s);
            const size_t kept = length < NPUPROF_ARG_STRING_LIMIT_ ? length : (size_t)NPUPROF_ARG_STRING_LIMIT_;
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
/* Writes the arguments from u on. False: a key found no room in the table. */
static bool npuprof_record_write_args_(npuprof_unit_ *u, npuprof_keys_ *keys, npuprof_args args)
{
    const uint32_t generation = NPUPROF_LOAD_(&npuprof_generation_);
    for (size_t i = 0; i < args.count; i++) {
        const npuprof_arg *a = &args.items[i];
        uint32_t type = a->type;
        uint64_t word;
        size_t length = 0;
        if (keys && i < NPUPROF_KEYS_ && NPUPROF_LOAD_ACQUIRE_(&keys->generation) == generation && NPUPROF_LOAD_ACQUIRE_(&keys->key[i]) == a->key) {
            word = NPUPROF_LOAD_(&keys->word[i]);
        } else {
            const uint32_t key = npuprof_table_intern_string_(a->key);
            if (!key) return false;
            word = (uint64_t)key << (NPUPROF_ID_BITS_ + 4) | NPUPROF_CONTROL_ARG_;
            if (keys && i < NPUPROF_KEYS_) {
                npuprof_record_forget_keys_(keys, generation);
                /* Why not the second key of a place: another thread may be between reading the first and its word. */
                const char *nobody = NULL;
                static const char taken = 0;               /* no key's address: only who put it there writes the word */
                if (!NPUPROF_LOAD_(&keys->key[i]) && NPUPROF_CAS_(&keys->key[i], &nobody, &taken)) {
                    NPUPROF_STORE_(&keys->word[i], word);
                    NPUPROF_STORE_RELEASE_(&keys->key[i], a->key);
                }
            }
        }
        npuprof_unit_ *const head = u++;
        uint64_t value = a->value.u;
        if (type == NPUPROF_ARG_STR) {
            const char *text = a->value.s;
            value = 0;
            if (!text) {
                type = NPUPROF_ARG_STR_NULL_;
            } else {
                const size_t whole = strlen(text);
                length = npuprof_utf8_cut_(text, whole, NPUPROF_ARG_STRING_LIMIT_);
                if (length < whole) type = NPUPROF_ARG_STR_CUT_;
                memcpy(&value, text, length < 8 ? length : 8);
                if (length > 8) {
                    memcpy(u, text + 8, length - 8);
                    u += NPUPROF_UNITS_(length - 8);
                }
            }
        }
        head->w1 = value;
        head->w0 = (uint64_t)length << (32 + NPUPROF_ID_BITS_) | (uint64_t)type << NPUPROF_ID_BITS_ | word;
    }
    return true;
}
