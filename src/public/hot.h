#pragma once   /* SPDX-License-Identifier: MIT */
#include "args.h"
#include "usdt.h"

/* What the macros call: the hot path as the user's file compiles it.

   Data: npuprof_gate_, the one variable that a macro reads while recording is off. Start, stop, pause and
   resume write it; every thread reads it.
   Parts: the gate; the functions behind an open gate, which are out of line; inline functions that pick the
   fastest of them for a call; the objects on the stack that end a span, with their clean-up.
   It may not know how anything is stored. Nothing here is for users to call. */

NPUPROF_BEGIN_C_

/* The gate before any setup. Why INT_MAX where no constructor runs before main(): the first macro then finds
   the gate open, and npuprof_opens_() reads the environment. */
#if defined(NPUPROF_CONSTRUCTOR_) || defined(NPUPROF_FREESTANDING) || defined(NPUPROF_OFF)
#define NPUPROF_GATE_AT_START_ INT_MIN
#else
#define NPUPROF_GATE_WAITS_ 1
#define NPUPROF_GATE_AT_START_ INT_MAX
#endif

/* The gate: spans up to this level are recorded; INT_MIN = none. NPUPROF_GATE_BOUNDARIES_: none either, but
   PROF_RECORD and PROF_INFERENCE call the library, which may then open the gate.
   Why three names: files that were built with different clocks, or with and without an OS, do not link. Why
   such names: the linker's message is all that its reader has. */
#if defined(NPUPROF_FREESTANDING)
#define npuprof_gate_ npuprof_gate_define_NPUPROF_IMPLEMENTATION_in_one_file_with_NPUPROF_FREESTANDING_
#elif defined(NPUPROF_NOW)
#define npuprof_gate_ npuprof_gate_define_NPUPROF_IMPLEMENTATION_in_one_file_with_this_NPUPROF_NOW_
#define NPUPROF_GATE_OF_1_0_ npuprof_gate_of_a_build_with_NPUPROF_NOW_
#else
#define npuprof_gate_ \
    npuprof_gate_define_NPUPROF_IMPLEMENTATION_in_one_file_without_NPUPROF_NOW_and_export_npuprof_names_
#define NPUPROF_GATE_OF_1_0_ npuprof_gate_of_a_build_without_NPUPROF_NOW_or_FREESTANDING_
#endif
enum { NPUPROF_GATE_BOUNDARIES_ = -1 };
#ifndef NPUPROF_STATIC
extern int npuprof_gate_;
#elif !defined(NPUPROF_OFF)
static int npuprof_gate_ = NPUPROF_GATE_AT_START_;
#endif
#ifndef NPUPROF_FREESTANDING
NPUPROF_API_ bool npuprof_opens_(int level);   /* sets up; is the gate open now? */
#endif

#if defined(NPUPROF_FREESTANDING) && defined(NPUPROF_NAMES_SECTION)
/* Why other names: if only one of the files that record and the implementing file has NPUPROF_NAMES_SECTION,
   they do not link. Else names would take flash, or be read where no memory is. */
#define npuprof_begin_ npuprof_begin_with_names_section_
#define npuprof_begin_args_ npuprof_begin_args_with_names_section_
#define npuprof_begin_list_ npuprof_begin_list_with_names_section_
#define npuprof_event_args_now_ npuprof_event_args_with_names_section_
#define npuprof_event_list_ npuprof_event_list_with_names_section_
#define npuprof_event_now_ npuprof_event_with_names_section_
#define npuprof_put_instant_ npuprof_put_instant_with_names_section_
#define npuprof_put_value_ npuprof_put_value_with_names_section_
#define npuprof_put_values_ npuprof_put_values_with_names_section_
#define npuprof_begin_here_ npuprof_begin_here_with_names_section_
#endif

/* Out of line; the macros call these while the gate is open. All are async-signal safe. The functions that
   begin a span return its token, or 0 if it was not recorded. npuprof_next_() ends one span and begins
   another with the same stamp. */
#ifdef NPUPROF_FREESTANDING
NPUPROF_API_ npuprof_token_ npuprof_begin_(const npuprof_site_ *site);
NPUPROF_API_ npuprof_token_ npuprof_begin_args_(const npuprof_site_ *site, npuprof_args args);
NPUPROF_API_ npuprof_token_ npuprof_begin_named_(uint32_t kind, const char *category, const char *name,
                                                 npuprof_args args);
NPUPROF_API_ npuprof_token_ npuprof_next_(npuprof_token_ token, const npuprof_site_ *site);
NPUPROF_API_ void npuprof_event_args_now_(const npuprof_site_ *site, npuprof_args args);
/* An event without a value; an event or a span with a value that is not a string; the same with 2 to
   SHORT_ARGS values. shape: the value's type NPUPROF_ARG_*, or SHAPE_EVENT if it is the event's own, without
   a key; in the last one how many there are. That * 2, and SHAPE_SPAN if a span begins. Why one number: on
   the smallest processors it takes one instruction. */
enum { NPUPROF_SHAPE_SPAN_ = 1, NPUPROF_SHAPE_SHIFT_ = 1, NPUPROF_SHAPE_EVENT_ = 11 };
enum { NPUPROF_SHORT_ARGS_ = 4 };
NPUPROF_API_ void npuprof_put_instant_(const npuprof_site_ *site);
NPUPROF_API_ npuprof_token_ npuprof_put_value_(const npuprof_site_ *site, const char *key, uint64_t value,
                                               uint32_t shape);
NPUPROF_API_ npuprof_token_ npuprof_put_values_(const npuprof_site_ *site, const npuprof_arg *values,
                                                uint32_t shape);
NPUPROF_API_ void npuprof_result_(npuprof_args args);
NPUPROF_API_ void npuprof_begin_by_hand_(const char *category, const char *name);
NPUPROF_API_ void npuprof_begin_here_(const npuprof_site_ *site);   /* the same of literals */
#else /* !NPUPROF_FREESTANDING */
NPUPROF_API_ npuprof_token_ npuprof_begin_(npuprof_site_ *site);
NPUPROF_API_ npuprof_token_ npuprof_begin_args_(npuprof_site_ *site, npuprof_keys_ *keys, npuprof_args args);
NPUPROF_API_ npuprof_token_ npuprof_begin_named_(const npuprof_device *device, npuprof_site_ *site,
                                                 npuprof_keys_ *keys, const char *category, const char *name,
                                                 npuprof_args args);
NPUPROF_API_ npuprof_token_ npuprof_next_(npuprof_token_given_ token, npuprof_site_ *site);
NPUPROF_API_ void npuprof_event_now_(npuprof_site_ *site, uint64_t value);
NPUPROF_API_ void npuprof_event_args_now_(npuprof_site_ *site, npuprof_keys_ *keys, uint64_t value,
                                          npuprof_args args);
NPUPROF_API_ void npuprof_result_(npuprof_keys_ *keys, npuprof_args args);
NPUPROF_API_ void npuprof_begin_by_hand_(npuprof_keys_ *keys, const char *category, const char *name);
/* Faster forms. npuprof_begin_arg_: one argument that is not a string. npuprof_begin_constant_: no arguments,
   the name is a constant. npuprof_begin_text_: no arguments, the name was made at run time. */
NPUPROF_API_ npuprof_token_ npuprof_begin_arg_(npuprof_keys_ *keys, const char *key, uint64_t type,
                                               uint64_t value, npuprof_site_ *site);
NPUPROF_API_ npuprof_token_ npuprof_begin_constant_(npuprof_site_ *site, const char *category,
                                                    const char *name);
NPUPROF_API_ npuprof_token_ npuprof_begin_text_(const char *name, const char *category, npuprof_keys_ *keys);
/* Begins a PROF_RECORD or PROF_INFERENCE, at whose ends capture control looks at its conditions. Called also
   while the gate is NPUPROF_GATE_BOUNDARIES_. */
NPUPROF_API_ npuprof_token_ npuprof_begin_boundary_(npuprof_site_ *site, npuprof_keys_ *keys,
                                                    const char *category, const char *name);
#endif /* !NPUPROF_FREESTANDING */
NPUPROF_API_ void npuprof_close_(npuprof_token_given_ token);
NPUPROF_API_ bool npuprof_is_open_(npuprof_token_ token);   /* an open span of this thread? */
NPUPROF_API_ void npuprof_end_by_hand_(void);
NPUPROF_API_ void npuprof_memory_(const npuprof_device *device, uint64_t used_bytes, uint64_t allocated_bytes,
                                  const char *tag);
NPUPROF_API_ void npuprof_memory_change_(const npuprof_device *device, bool is_free, uint64_t bytes,
                                         const char *tag);
NPUPROF_API_ void npuprof_thread_name_(const char *name);
NPUPROF_API_ void npuprof_wait_(const npuprof_device *device);

#ifndef NPUPROF_OFF
/* These pick the fastest function above that fits. The compiler decides while compiling, from what is
   constant in the call. */
NPUPROF_ALWAYS_INLINE_ bool npuprof_is_one_value_(npuprof_args args)
{
    return NPUPROF_CONSTANT_(args.count) && args.count == 1 && NPUPROF_CONSTANT_(args.items[0].type)
        && args.items[0].type < NPUPROF_ARG_STR;
}

#endif
#if !defined(NPUPROF_OFF) && !defined(NPUPROF_FREESTANDING)
NPUPROF_ALWAYS_INLINE_ npuprof_token_ npuprof_begin_list_(npuprof_site_ *site, npuprof_keys_ *keys,
                                                          npuprof_args args)
{
    if (NPUPROF_CONSTANT_(args.count) && args.count == 0) return npuprof_begin_(site);
    if (npuprof_is_one_value_(args))
        return npuprof_begin_arg_(keys, args.items[0].key,
                                  NPUPROF_STATIC_CAST_(uint64_t, args.items[0].type) << NPUPROF_ARG_SHIFT_,
                                  args.items[0].value.u, site);
    return npuprof_begin_args_(site, keys, args);
}

NPUPROF_ALWAYS_INLINE_ npuprof_token_ npuprof_begin_name_(const npuprof_device *device, npuprof_site_ *site,
                                                          npuprof_keys_ *keys, const char *category,
                                                          const char *name, npuprof_args args)
{
    const bool waits = device && device->wait_around;
    if (!NPUPROF_CONSTANT_(args.count) || args.count || waits)
        return npuprof_begin_named_(device, site, keys, category, name, args);
    return site ? npuprof_begin_constant_(site, category, name) : npuprof_begin_text_(name, category, keys);
}

NPUPROF_ALWAYS_INLINE_ void npuprof_event_list_(npuprof_site_ *site, npuprof_keys_ *keys, npuprof_args args)
{
    if (NPUPROF_CONSTANT_(args.count) && args.count == 0) npuprof_event_now_(site, 0);
    else npuprof_event_args_now_(site, keys, 0, args);
}

#elif !defined(NPUPROF_OFF)
NPUPROF_ALWAYS_INLINE_ bool npuprof_is_value_(const npuprof_arg *a)
{
    return NPUPROF_CONSTANT_(a->type) && a->type < NPUPROF_ARG_STR;
}

/* Whether these are values that npuprof_put_values_() takes. Why no loop: a compiler that makes code small
   keeps one. */
NPUPROF_ALWAYS_INLINE_ bool npuprof_are_values_(npuprof_args args)
{
    const npuprof_arg *const a = args.items;
    return NPUPROF_CONSTANT_(args.count) && args.count && args.count <= NPUPROF_SHORT_ARGS_ &&
           npuprof_is_value_(a) && (args.count < 2 || npuprof_is_value_(a + 1)) &&
           (args.count < 3 || npuprof_is_value_(a + 2)) && (args.count < 4 || npuprof_is_value_(a + 3));
}

/* With 1 to NPUPROF_SHORT_ARGS_ values. */
NPUPROF_ALWAYS_INLINE_ npuprof_token_ npuprof_put_short_(const npuprof_site_ *site, npuprof_args args,
                                                         uint32_t span)
{
    const npuprof_arg *const a = args.items;
    if (args.count == 1)
        return npuprof_put_value_(site, a->key, a->value.u, a->type << NPUPROF_SHAPE_SHIFT_ | span);
    return npuprof_put_values_(site, a,
                               NPUPROF_STATIC_CAST_(uint32_t, args.count) << NPUPROF_SHAPE_SHIFT_ | span);
}

NPUPROF_ALWAYS_INLINE_ npuprof_token_ npuprof_begin_list_(const npuprof_site_ *site, npuprof_args args)
{
    if (NPUPROF_CONSTANT_(args.count) && args.count == 0) return npuprof_begin_(site);
    if (npuprof_are_values_(args)) return npuprof_put_short_(site, args, NPUPROF_SHAPE_SPAN_);
    return npuprof_begin_args_(site, args);
}

NPUPROF_ALWAYS_INLINE_ void npuprof_event_list_(const npuprof_site_ *site, npuprof_args args)
{
    if (NPUPROF_CONSTANT_(args.count) && args.count == 0) npuprof_put_instant_(site);
    else if (npuprof_are_values_(args)) (void)npuprof_put_short_(site, args, 0);
    else npuprof_event_args_now_(site, args);
}

NPUPROF_ALWAYS_INLINE_ void npuprof_event_now_(const npuprof_site_ *site, uint64_t value)
{
    (void)npuprof_put_value_(site, NPUPROF_NULL_, value, NPUPROF_SHAPE_EVENT_ << NPUPROF_SHAPE_SHIFT_);
}

#elif defined(NPUPROF_FREESTANDING)
NPUPROF_API_ npuprof_token_ npuprof_begin_list_(const npuprof_site_ *site, npuprof_args args);
NPUPROF_API_ void npuprof_event_list_(const npuprof_site_ *site, npuprof_args args);
NPUPROF_API_ void npuprof_event_now_(const npuprof_site_ *site, uint64_t value);
#else /* NPUPROF_OFF, hosted */
NPUPROF_API_ npuprof_token_ npuprof_begin_list_(npuprof_site_ *site, npuprof_keys_ *keys, npuprof_args args);
NPUPROF_API_ npuprof_token_ npuprof_begin_name_(const npuprof_device *device, npuprof_site_ *site,
                                                npuprof_keys_ *keys, const char *category, const char *name,
                                                npuprof_args args);
NPUPROF_API_ void npuprof_event_list_(npuprof_site_ *site, npuprof_keys_ *keys, npuprof_args args);
#endif /* !NPUPROF_OFF */

NPUPROF_END_C_

/* What a scope, a block and PROF_BLOCK keep on the stack. The clean-up gets its address. If a goto jumped
   past the declaration, its content is garbage. */
typedef struct npuprof_scope_ { npuprof_token_ token; } npuprof_scope_;
typedef struct npuprof_block_ { npuprof_token_ token; const npuprof_device *device; } npuprof_block_;
typedef struct npuprof_once_ {
    npuprof_token_ token;
    int left;                      /* passes left of a loop that runs once */
} npuprof_once_;

#ifdef NPUPROF_OFF
NPUPROF_API_ void npuprof_wait_around_(const npuprof_device *device);
#else
/* Why -Wmaybe-uninitialized is off: after a goto past the scope the token is garbage. That is harmless:
   npuprof_close_() checks a token before it uses it. */
NPUPROF_MAYBE_PUSH_
NPUPROF_INLINE_ void npuprof_leave_scope_(npuprof_scope_ *scope)
{
    NPUPROF_USDT_END_
    if (scope->token) npuprof_close_(scope->token);
}

NPUPROF_INLINE_ void npuprof_wait_around_(const npuprof_device *device)
{
    if (device && device->wait_around) npuprof_wait_(device);
}

NPUPROF_INLINE_ void npuprof_leave_block_(npuprof_block_ *block)
{
    NPUPROF_USDT_END_
    if (!block->token) return;
    /* Why it checks the token first: after a goto into the block, device is garbage. */
    if (block->device && npuprof_is_open_(block->token) && block->device->wait_around)
        npuprof_wait_(block->device);
    npuprof_close_(block->token);
}

NPUPROF_INLINE_ void npuprof_leave_once_(npuprof_once_ *once)
{
    NPUPROF_USDT_END_
    if (once->token) npuprof_close_(once->token);
    once->left = 0;
}

NPUPROF_MAYBE_POP_
#ifdef __cplusplus
struct npuprof_auto_once_ : npuprof_once_ {
    NPUPROF_OWN_ explicit npuprof_auto_once_(npuprof_token_ t) { token = t; left = 1; }
    NPUPROF_OWN_ ~npuprof_auto_once_() { npuprof_leave_once_(this); }
    npuprof_auto_once_(const npuprof_auto_once_ &) = delete;
    npuprof_auto_once_ &operator=(const npuprof_auto_once_ &) = delete;
};
struct npuprof_auto_scope_ : npuprof_scope_ {
    NPUPROF_OWN_ explicit npuprof_auto_scope_(npuprof_token_ t) { token = t; }
    NPUPROF_OWN_ ~npuprof_auto_scope_() { npuprof_leave_scope_(this); }
    npuprof_auto_scope_(const npuprof_auto_scope_ &) = delete;
    npuprof_auto_scope_ &operator=(const npuprof_auto_scope_ &) = delete;
};
struct npuprof_auto_block_ : npuprof_block_ {
    NPUPROF_OWN_ npuprof_auto_block_(npuprof_token_ t, const npuprof_device *d) { token = t; device = d; }
    NPUPROF_OWN_ ~npuprof_auto_block_() { npuprof_leave_block_(this); }
    npuprof_auto_block_(const npuprof_auto_block_ &) = delete;
    npuprof_auto_block_ &operator=(const npuprof_auto_block_ &) = delete;
};
#endif
#endif /* !NPUPROF_OFF */
