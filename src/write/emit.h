#pragma once   /* SPDX-License-Identifier: MIT */
#include "../read/image.h"
#include "text.h"

/* JSON, nested: begin, members, end. The commas come by themselves. key: of a member of an object, plain
   ASCII; NULL: the value is an element of a list. */

static void npuprof_emit_key_(npuprof_out_ *o, const char *key)
{
    if (!o->fresh) npuprof_out_put_(o, ",", 1);
    o->fresh = false;
    if (!key) return;
    npuprof_out_put_(o, "\"", 1);
    npuprof_out_puts_(o, key);
    npuprof_out_put_(o, "\":", 2);
}

/* bracket: "{" or "[". */
static void npuprof_emit_begin_(npuprof_out_ *o, const char *key, const char *bracket)
{
    npuprof_emit_key_(o, key);
    npuprof_out_put_(o, bracket, 1);
    o->fresh = true;
}

static void npuprof_emit_end_(npuprof_out_ *o, const char *bracket)
{
    npuprof_out_put_(o, bracket, 1);
    o->fresh = false;
}

static void npuprof_emit_uint_(npuprof_out_ *o, const char *key, uint64_t v)
{
    npuprof_emit_key_(o, key);
    npuprof_out_uint_(o, v);
}

static void npuprof_emit_int_(npuprof_out_ *o, const char *key, int64_t v)
{
    npuprof_emit_key_(o, key);
    npuprof_out_int_(o, v);
}

/* Thousandths, with three places. */
static void npuprof_emit_milli_(npuprof_out_ *o, const char *key, int64_t v)
{
    npuprof_emit_key_(o, key);
    npuprof_out_milli_(o, v);
}

/* true, null, or a number that is text already. */
static void npuprof_emit_word_(npuprof_out_ *o, const char *key, const char *word)
{
    npuprof_emit_key_(o, key);
    npuprof_out_puts_(o, word);
}

static void npuprof_emit_text_(npuprof_out_ *o, const char *key, const char *text)
{
    npuprof_emit_key_(o, key);
    npuprof_out_quoted_(o, text);
}

/* A string of the image's table. */
static void npuprof_emit_name_(npuprof_out_ *o, const char *key, const npuprof_image_ *im, uint32_t id)
{
    npuprof_emit_key_(o, key);
    npuprof_out_text_(o, im, id, true);
}
