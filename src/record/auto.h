#pragma once   /* SPDX-License-Identifier: MIT */
#include "../public/macros.h"
#include "../numbers/text.h"
#include "../format/arena.h"
#include "../arena/state.h"
#include "../arena/table.h"
#include "../arena/thread.h"
#include "../clock/host.h"
#include "enter.h"
#include "span.h"
#include "begin.h"
#include "end.h"
#include "objects.h"

/* NPUPROF_AUTO: the two hooks that -finstrument-functions calls, at the begin and the end of each function.
   A call becomes a plain span, by the same paths as a mark's. Only who it is differs:
     its name    the function's address as text, in the table once. A hash table of addresses finds its number
     its end     by a stack of open calls in the thread's slot, as no clean-up holds the span's token
   The stack also holds calls that are not recorded, once the thread has a slot, so that an end finds its own
   begin, whatever started or stopped in between. A call that was left by longjmp(), or by an exception with
   clang, which calls no hook then, ends as cut with the function around it that ends next. The end of a call
   whose begin is not on the stack does nothing. Deeper than the stack, calls are lost and counted.

   A function that the recorder calls may be instrumented, but that of NPUPROF_NOW() would call itself. Fibers
   that change the stack inside a function mix up their calls. Before the library is set up a hook touches
   nothing of the thread. Why: in a static program the loader's functions (ifunc) run before threads have
   memory.

   Words: address of a function by CAS from 0; number and generation as id and generation of a call site
   (enter.h). The stack is its thread's own. Its depth is stored before an entry is used and after it was: the
   hooks of a signal handler in between leave it as it was. */

#ifdef NPUPROF_AUTO

typedef struct npuprof_record_function_ {
    uintptr_t address;
    uint32_t number, generation;
} npuprof_record_function_;

static npuprof_record_function_ npuprof_record_functions_[NPUPROF_AUTO_FUNCTIONS];

/* Why the caller, too: after a longjmp() a recursive function would end the wrong one of its calls. */
static inline uint32_t npuprof_record_call_key_(const void *function, const void *caller)
{
    return (uint32_t)((uintptr_t)function + 8 * (uintptr_t)caller);
}

/* ---- Functions by address */

/* Where a function is in the hash table, if nothing else is there. */
static inline npuprof_record_function_ *npuprof_record_function_home_(uintptr_t address)
{
    const uint32_t hash = (uint32_t)address * 0x9E3779B1u;
    return &npuprof_record_functions_[hash / (UINT32_MAX / NPUPROF_AUTO_FUNCTIONS + 1)];
}

/* The place of a function in the hash table. NULL: there is no room near its home. */
static npuprof_record_function_ *npuprof_record_function_at_(uintptr_t address)
{
    enum { TRIES = 16 };
    npuprof_record_function_ *f = npuprof_record_function_home_(address);
    for (int n = 0; n < TRIES; n++) {
        uintptr_t there = NPUPROF_LOAD_(&f->address);
        if (!there && NPUPROF_CAS_(&f->address, &there, address)) return f;
        if (there == address) return f;
        if (++f == npuprof_record_functions_ + NPUPROF_AUTO_FUNCTIONS) f = npuprof_record_functions_;
    }
    return NULL;
}

/* The number of a function's call site. 0: it is not to be recorded, or the table of names is full, which is
   counted. */
static uint32_t npuprof_record_function_number_(uintptr_t address)
{
    npuprof_record_function_ *const f = npuprof_record_function_at_(address);
    const uint32_t generation = NPUPROF_LOAD_ACQUIRE_(&npuprof_arena_generation_);
    const uint32_t muted = generation | 0x80000000u;
    const uint32_t known = f ? NPUPROF_LOAD_ACQUIRE_(&f->generation) : 0;
    char text[NPUPROF_ADDRESS_TEXT_];
    uint32_t number = 0;
    if (f && known == generation) return NPUPROF_LOAD_(&f->number);
    if (f && known == muted) return 0;
    const bool passes = npuprof_record_category_passes_("auto");
    if (passes) {
        npuprof_record_list_objects_();
        number = npuprof_table_intern_site_number_(NPUPROF_KIND_SPAN, "auto",
                                                   npuprof_address_text_(text, address), NULL, 0);
        if (!number) {
            npuprof_count_lost_(NPUPROF_LOST_NAMES, 1);
            return 0;
        }
    }
    if (f) {
        NPUPROF_STORE_(&f->number, number);
        NPUPROF_STORE_RELEASE_(&f->generation, passes ? generation : muted);
    }
    return number;
}

/* ---- Begin and end of a call */

/* fits: the stack has room for it. Else it is counted as lost. */
static npuprof_token_ npuprof_record_begin_function_(uintptr_t address, bool fits)
{
    npuprof_slot_ *slot = npuprof_record_enter_();
    if (NPUPROF_UNLIKELY_(!slot)) return npuprof_record_count_no_context_();
    npuprof_token_ token = 0;
    const uint32_t number = npuprof_record_function_number_(address);
    if (number && fits)
        token = npuprof_record_begin_span_at_(slot, number, npuprof_clock_(),
                                              NPUPROF_RECORD_HERE_(slot, NPUPROF_WAY_NUMBER_));
    else if (number) npuprof_count_lost_(NPUPROF_LOST_DEPTH, 1);
    npuprof_record_leave_(slot);
    return token;
}

static inline npuprof_token_ npuprof_record_begins_not_(uint32_t number) { return (void)number, 0; }

/* Begins a call, recorded or not. The stack has its key already, if it has room. */
static NPUPROF_NOINLINE_ npuprof_token_ npuprof_record_begin_call_slow_(uintptr_t address, bool fits)
{
    return NPUPROF_OPEN_(1) ? npuprof_record_begin_function_(address, fits) : 0;
}

/* Begins a call for which the stack has no entry, or of a thread that has no slot. */
static NPUPROF_NOINLINE_ void npuprof_record_begin_call_deep_(uintptr_t address, uint32_t key)
{
    if (npuprof_slot_mine_() == &npuprof_slot_none_) {
        if (!NPUPROF_OPEN_(1)) return;
        npuprof_slot_ *const got = npuprof_record_enter_();
        if (got) npuprof_record_leave_(got);
        else (void)npuprof_record_count_no_context_();
    }
    npuprof_slot_calls_ *const calls = &npuprof_slot_mine_()->calls;
    npuprof_slot_call_ *const call = calls->next;
    if (call == npuprof_slot_call_none_ + 1) return;
    const bool fits = call < calls->end;
    calls->next = fits ? call + 1 : calls->end + 1;
    NPUPROF_SIGNAL_FENCE_();
    if (fits) call->key = key;
    else if (!calls->beyond++) calls->deep = (uintptr_t)__builtin_frame_address(0);
    const npuprof_token_ token = npuprof_record_begin_call_slow_(address, fits);
    if (fits) call->token = token;
}

/* The call that ends, if it is not the newest one. NULL: it has no entry. */
static NPUPROF_NOINLINE_ npuprof_slot_call_ *npuprof_record_find_call_(npuprof_slot_calls_ *calls,
                                                                       uint32_t key)
{
    /* What the frames of the hooks may differ in. */
    enum { NEAR_ENOUGH = 256 };
    if (calls->beyond) {
        const uintptr_t here = (uintptr_t)__builtin_frame_address(0);
        const bool ends = here <= calls->deep + NEAR_ENOUGH;
        /* Else all that had no entry was left by longjmp(). */
        calls->beyond = ends ? calls->beyond - 1 : 0;
        if (!calls->beyond) calls->next = calls->end;
        if (ends) return NULL;
    }
    for (npuprof_slot_call_ *call = calls->next - 1; call->token != NPUPROF_CALL_NONE_; call--)
        if (call->key == key) return call;
    return NULL;
}

static NPUPROF_NOINLINE_ void npuprof_record_end_call_slow_(uint32_t key)
{
    npuprof_slot_calls_ *const calls = &npuprof_slot_mine_()->calls;
    npuprof_slot_call_ *const call = npuprof_record_find_call_(calls, key);
    if (!call) return;
    const npuprof_token_ token = call->token;
    NPUPROF_SIGNAL_FENCE_();
    calls->next = call;
    if (token) npuprof_close_(token);
}

/* ---- The hooks. Why visible: the functions of shared libraries call them, too */

NPUPROF_OWN_ NPUPROF_ATTRIBUTE_((visibility("default"))) void __cyg_profile_func_enter(void *, void *);
NPUPROF_OWN_ NPUPROF_ATTRIBUTE_((visibility("default"))) void __cyg_profile_func_exit(void *, void *);

void __cyg_profile_func_enter(void *function, void *caller)
{
    const uintptr_t address = (uintptr_t)function;
    const uint32_t key = npuprof_record_call_key_(function, caller);
    const bool open = NPUPROF_OPEN_(1);
    if (!open && NPUPROF_LOAD_PLAIN_(&npuprof_record_setup_) != 2) return;
    npuprof_slot_calls_ *const calls = &npuprof_slot_mine_()->calls;
    npuprof_slot_call_ *const call = calls->next;
    if (NPUPROF_UNLIKELY_(call >= calls->end)) {
        npuprof_record_begin_call_deep_(address, key);
        return;
    }
    calls->next = call + 1;
    NPUPROF_SIGNAL_FENCE_();
    call->key = key;
    if (!open) {
        call->token = 0;
        return;
    }
    const npuprof_record_function_ *const f = npuprof_record_function_home_(address);
    const uint32_t generation = NPUPROF_LOAD_ACQUIRE_(&f->generation);
    npuprof_token_ token = 0;
    if (NPUPROF_LIKELY_(NPUPROF_LOAD_(&f->address) == address &&
                        !npuprof_differ_(generation, &npuprof_arena_fast_)))
        token = npuprof_record_begin_number_or_(NPUPROF_LOAD_PLAIN_(&f->number), npuprof_record_begins_not_);
    call->token = NPUPROF_LIKELY_(token != 0) ? token : npuprof_record_begin_call_slow_(address, true);
}

void __cyg_profile_func_exit(void *function, void *caller)
{
    const uint32_t key = npuprof_record_call_key_(function, caller);
    if (NPUPROF_UNLIKELY_(NPUPROF_LOAD_PLAIN_(&npuprof_record_setup_) != 2)) return;
    npuprof_slot_calls_ *const calls = &npuprof_slot_mine_()->calls;
    npuprof_slot_call_ *const call = calls->next - 1;
    const npuprof_token_ token = call->token;
    if (NPUPROF_UNLIKELY_(call->key != key || token == NPUPROF_CALL_NONE_)) {
        npuprof_record_end_call_slow_(key);
        return;
    }
    NPUPROF_SIGNAL_FENCE_();
    calls->next = call;
    if (token) npuprof_close_(token);
}

#endif /* NPUPROF_AUTO */
