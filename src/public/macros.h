#pragma once   /* SPDX-License-Identifier: MIT */
#include "hot.h"

/* The one switch. NPUPROF_VOID_ is a statement, NPUPROF_SCOPE_ a declaration, NPUPROF_BLOCK_ opens a block
   around code. OFF keeps the type checks, in an unevaluated sizeof, and nothing else. NPUPROF_REF_ is the
   address of a call site. */
#ifndef NPUPROF_OFF
#ifdef NPUPROF_GATE_WAITS_
#define NPUPROF_OPEN_(level) \
    (npuprof_at_least_(&npuprof_gate_, (level)) && (npuprof_gate_ != INT_MAX || npuprof_opens_(level)))
#else
#define NPUPROF_OPEN_(level) NPUPROF_UNLIKELY_(npuprof_at_least_(&npuprof_gate_, (level)))
#endif
#ifndef NPUPROF_FREESTANDING
#define NPUPROF_SITE_(id, kind, cat, name) \
    static npuprof_site_ NPUPROF_GLUE_(npuprof_site_, id) = { 0, 0, (kind), name, cat };
#define NPUPROF_KEYS_OF_(id) \
    static npuprof_keys_ NPUPROF_GLUE_(npuprof_keys_, id) = \
        { 0, 0, { 0, 0, 0, 0 }, { NPUPROF_NULL_, NPUPROF_NULL_, NPUPROF_NULL_, NPUPROF_NULL_ }, 0 };
#define NPUPROF_KEYS_REF_(id) (&NPUPROF_GLUE_(npuprof_keys_, id))
#define NPUPROF_LITERAL_SITE_(id, kind, cat, name) NPUPROF_SITE_(id, kind, cat, name)
#define NPUPROF_NO_CATEGORY_ NPUPROF_NULL_
#elif defined(NPUPROF_NAMES_SECTION)
#define NPUPROF_KEYS_OF_(id)
#define NPUPROF_IN_NAMES_ NPUPROF_ATTRIBUTE_((section(NPUPROF_NAMES_SECTION), unused))
#define NPUPROF_SITE_(id, kind, cat, name) \
    static const npuprof_site_ NPUPROF_GLUE_(npuprof_site_, id) NPUPROF_IN_NAMES_ = { name, cat, (kind) };
#define NPUPROF_LITERAL_SITE_(id, kind, cat, name)                                     \
    static const char NPUPROF_GLUE_(npuprof_name_, id)[] NPUPROF_IN_NAMES_ = name;     \
    static const char NPUPROF_GLUE_(npuprof_category_, id)[] NPUPROF_IN_NAMES_ = cat;  \
    NPUPROF_SITE_(id, kind, NPUPROF_GLUE_(npuprof_category_, id), NPUPROF_GLUE_(npuprof_name_, id))
#define NPUPROF_NO_CATEGORY_ ""
#else
#define NPUPROF_KEYS_OF_(id)
#define NPUPROF_SITE_(id, kind, cat, name) \
    static const npuprof_site_ NPUPROF_GLUE_(npuprof_site_, \
                                             id) NPUPROF_ATTRIBUTE_((unused)) = { name, cat, (kind) };
#define NPUPROF_LITERAL_SITE_(id, kind, cat, name) NPUPROF_SITE_(id, kind, cat, name)
#define NPUPROF_NO_CATEGORY_ NPUPROF_NULL_
#endif /* !NPUPROF_NAMES_SECTION */
#define NPUPROF_REF_(id, cat, name) (&NPUPROF_GLUE_(npuprof_site_, id))
#define NPUPROF_VOID_(level, sites, expr) do { sites if (NPUPROF_OPEN_(level)) { expr; } } while (0)
#define NPUPROF_ALWAYS_(expr) ((void)(expr))
/* The token of a span whose call site is declared in an expression, so that PROF_BLOCK is one statement. */
#if defined(__cplusplus) && !NPUPROF_HAS_CLEANUP_
#define NPUPROF_BEGIN_HERE_(level, begin, ...) \
    [&]() -> npuprof_token_ { __VA_ARGS__ return NPUPROF_OPEN_(level) ? (begin) : 0; }()
#else
#define NPUPROF_BEGIN_HERE_(level, begin, ...) \
    __extension__({ __VA_ARGS__ NPUPROF_OPEN_(level) ? (begin) : 0; })
#endif
#ifdef __cplusplus
#define NPUPROF_SCOPE_(id, level, sites, begin) \
    sites npuprof_auto_scope_ id(NPUPROF_OPEN_(level) ? (begin) : 0)
#define NPUPROF_BLOCK_(id, level, dev, sites, begin) \
    sites npuprof_auto_block_ id(0, (dev)); if (NPUPROF_OPEN_(level)) id.token = (begin)
#define NPUPROF_ONCE_(id, level, sites, begin) \
    for (npuprof_auto_once_ id(NPUPROF_BEGIN_HERE_(level, begin, sites)); id.left; id.left = 0)
#elif !NPUPROF_HAS_CLEANUP_
/* Why an error: nothing would end the span. */
#define NPUPROF_SCOPE_(id, level, sites, begin) \
    typedef char npuprof_this_compiler_has_no_cleanup_attribute_use_PROF_BLOCK_or_compile_as_cpp_[-1]
#if NPUPROF_HAS_FINALLY_
#define NPUPROF_BLOCK_(id, level, dev, sites, begin) \
    sites npuprof_block_ id = { 0, (dev) }, \
        *npuprof_this_block_ = &id; if (NPUPROF_OPEN_(level)) id.token = (begin)
#else
#define NPUPROF_BLOCK_(id, level, dev, sites, begin) NPUPROF_SCOPE_(id, level, sites, begin)
#endif
/* Why two loops: a break leaves the inner one. */
#define NPUPROF_ONCE_(id, level, sites, begin) \
    sites for (npuprof_once_ id = { NPUPROF_OPEN_(level) ? (begin) : 0, \
                                    2 }; id.left == 2; npuprof_leave_once_(&id)) \
        for (; id.left == 2; id.left = 1)
#else /* NPUPROF_HAS_CLEANUP_ */
#define NPUPROF_ONCE_(id, level, sites, begin) \
    for (NPUPROF_ATTRIBUTE_((cleanup(npuprof_leave_once_))) npuprof_once_ id = \
             { NPUPROF_BEGIN_HERE_(level, begin, sites), 1 }; id.left; \
         id.left = 0)
#define NPUPROF_SCOPE_(id, level, sites, begin) \
    sites NPUPROF_ATTRIBUTE_((unused, cleanup(npuprof_leave_scope_))) npuprof_scope_ id = \
        { NPUPROF_OPEN_(level) ? (begin) : 0 }
#define NPUPROF_BLOCK_(id, level, dev, sites, begin) \
    sites NPUPROF_ATTRIBUTE_((unused, cleanup(npuprof_leave_block_))) npuprof_block_ id = { 0, (dev) }; \
    if (NPUPROF_OPEN_(level)) id.token = (begin)
#endif /* NPUPROF_HAS_CLEANUP_ */
#define NPUPROF_DEVICE_OF_(id, dev) id.device
#define NPUPROF_ARGS_(...) __VA_ARGS__
#define NPUPROF_NEXT_(sites, next) \
    do { sites if (npuprof_phase_.token || NPUPROF_OPEN_(1)) npuprof_phase_.token = (next); } while (0)
#define NPUPROF_PHASE_TOKEN_ npuprof_phase_.token
#else /* NPUPROF_OFF */
#define NPUPROF_SITE_(id, kind, cat, name)
#define NPUPROF_LITERAL_SITE_(id, kind, cat, name)
#define NPUPROF_NO_CATEGORY_ NPUPROF_NULL_
#define NPUPROF_KEYS_OF_(id)
#define NPUPROF_REF_(id, cat, name) \
    (sizeof(name) + sizeof(cat) ? NPUPROF_STATIC_CAST_(npuprof_site_ *, NPUPROF_NULL_) : NPUPROF_NULL_)
#define NPUPROF_KEYS_REF_(id) NPUPROF_STATIC_CAST_(npuprof_keys_ *, NPUPROF_NULL_)
#ifndef NPUPROF_SIZEOF_LEAVES_STRINGS_
#define NPUPROF_UNEVALUATED_(x) sizeof(x)
#else
#define NPUPROF_UNEVALUATED_(x) 1
#endif
#define NPUPROF_VOID_(level, sites, expr) ((void)NPUPROF_UNEVALUATED_(((void)(0 >= (level)), (expr), 0)))
#define NPUPROF_ALWAYS_(expr) ((void)NPUPROF_UNEVALUATED_(((expr), 0)))
/* Why not the same for all: C++ and clang refuse a goto or a case label past a scope, and so must OFF. C++
   refuses it past an object; clang past a type of variable length, too, of which it leaves nothing, while an
   object's end would be seen in its code. */
#define NPUPROF_SCOPE_(id, level, sites, begin)                                           \
    extern char NPUPROF_GLUE_(id, a_)[NPUPROF_UNEVALUATED_(((void)(0 >= (level)), (begin)))];    \
    NPUPROF_NOTHING_(NPUPROF_GLUE_(id, b_), NPUPROF_GLUE_(id, a_))
#ifdef NPUPROF_REFUSE_BY_TYPE_
NPUPROF_INLINE_ size_t npuprof_nothing_(void) { return 1; }
#define NPUPROF_NOTHING_(id, after)                                                       \
    NPUPROF_PRAGMA_(clang diagnostic push) NPUPROF_PRAGMA_(clang diagnostic ignored "-Wvla") \
    __extension__ typedef char id[sizeof after * npuprof_nothing_()] NPUPROF_ATTRIBUTE_((unused)) \
    NPUPROF_PRAGMA_(clang diagnostic pop)
#elif defined(NPUPROF_REFUSE_BY_OBJECT_)
#define NPUPROF_NOTHING_(id, after) const size_t id = sizeof after; (void)id
#else
#define NPUPROF_NOTHING_(id, after) extern char id[sizeof after] NPUPROF_ATTRIBUTE_((unused))
#endif
#define NPUPROF_BLOCK_(id, level, dev, sites, begin) NPUPROF_SCOPE_(id, level, sites, begin)
/* Why this and not a loop that runs once: compilers leave nothing of it, and break and continue leave it as
   they leave the loop of ON. */
#define NPUPROF_ONCE_(id, level, sites, begin) \
    switch (NPUPROF_UNEVALUATED_(((void)(0 >= (level)), (begin))) & 0) while (0) default:
#define NPUPROF_DEVICE_OF_(id, dev) (dev)
#define NPUPROF_ARGS_(...) ((void)NPUPROF_UNEVALUATED_((__VA_ARGS__)), PROF_NO_ARGS)
#define NPUPROF_NEXT_(sites, next) ((void)NPUPROF_UNEVALUATED_((next)))
#define NPUPROF_PHASE_TOKEN_ NPUPROF_STATIC_CAST_(npuprof_token_, npuprof_phase_a_[0])
#endif /* NPUPROF_OFF */

/* To the end of the enclosing block, whichever way control leaves it. name and cat are literals. */
#define PROF_SCOPE(name) NPUPROF_PLAIN_(__COUNTER__, 1, NPUPROF_NO_CATEGORY_, "" name "")
#define PROF_SCOPE_CAT(cat, name) NPUPROF_PLAIN_(__COUNTER__, 1, NPUPROF_CATEGORY_(cat), "" name "")
/* Around the statement that follows: PROF_BLOCK("c", "name") { ... }. Literals. In every compiler, also where
   the C compiler has no cleanup attribute and PROF_SCOPE does not compile (MSVC). A break or continue inside
   leaves this block, not a loop around it, and ends the span. So do return and goto where PROF_SCOPE
   compiles; elsewhere they leave it open, and it ends, marked, with the span around it.
   OFF: a loop that runs once, of which an optimiser leaves nothing. */
#define PROF_BLOCK(cat, name) NPUPROF_BLOCK_OF_(__COUNTER__, NPUPROF_CATEGORY_(cat), "" name "")
/* The same with arguments: PROF_SCOPE_ARGS(cat, name, PROF_ARGS(...)). The list may be left out; it is
   evaluated only while the gate is open. PROF_SCOPE_LEVEL(level, cat, name, PROF_ARGS(...)) is recorded from
   that level on. */
#define PROF_SCOPE_ARGS(cat, ...) PROF_SCOPE_LEVEL(1, cat, __VA_ARGS__)
#define PROF_SCOPE_LEVEL(level, cat, ...) \
    NPUPROF_WITH_ARGS_(__COUNTER__, level, NPUPROF_CATEGORY_(cat), "" NPUPROF_NAME_(__VA_ARGS__) "", \
                       NPUPROF_LIST_(__VA_ARGS__))
#define PROF_FUNCTION() NPUPROF_FUNCTION_(__COUNTER__)
/* A labelled section ("trace") that starts a trace id; the work inside becomes its child. name: any string,
   copied. */
#define PROF_RECORD(name) NPUPROF_NAMED_(__COUNTER__, NPUPROF_KIND_RECORD, name, PROF_NO_ARGS)
/* The same, and all inside it is left out of the reports. */
#define PROF_RECORD_WARM_UP(name) NPUPROF_NAMED_(__COUNTER__, NPUPROF_KIND_WARM_UP, name, PROF_NO_ARGS)
/* One inference query: a row of npuprof_print_summary() and npuprof_print_inferences(). name: any string,
   copied. */
#define PROF_INFERENCE(name) NPUPROF_NAMED_(__COUNTER__, NPUPROF_KIND_INFERENCE, name, PROF_NO_ARGS)
/* A host ("external") operator: a row of npuprof_print_external_operators(). name: any string, copied. */
#define PROF_OPERATOR(operator_index, name) \
    NPUPROF_NAMED_(__COUNTER__, NPUPROF_KIND_OPERATOR, name, \
                   PROF_ARGS(PROF_INT("operator_index", operator_index)))

/* Back-to-back spans that share one time stamp: PROF_PHASES begins the first, each PROF_NEXT ends one and
   begins the next, the end of the block ends the last. */
#define PROF_PHASES(name) NPUPROF_PHASES_(__COUNTER__, "" name "")
#define PROF_NEXT(name) NPUPROF_NEXT_PHASE_(__COUNTER__, "" name "")

/* By hand, nested per thread, 64 deep at most; PROF_END closes the last PROF_BEGIN, recorded or not. Any
   strings, copied; cat may be NULL. */
#define PROF_BEGIN(cat, name) NPUPROF_ALWAYS_(npuprof_begin_by_hand_((cat), (name)))
#define PROF_END() NPUPROF_ALWAYS_(npuprof_end_by_hand_())

/* An arrow between two host spans: OUT inside the one, IN inside the other, with the same 64-bit id. */
#define PROF_FLOW_OUT(id) \
    NPUPROF_EVENT_(__COUNTER__, NPUPROF_KIND_FLOW_OUT, "flow", NPUPROF_CAST_(uint64_t, id))
#define PROF_FLOW_IN(id) \
    NPUPROF_EVENT_(__COUNTER__, NPUPROF_KIND_FLOW_IN, "flow", NPUPROF_CAST_(uint64_t, id))

/* A span around code, which is expanded once; an exit by return, break, continue or goto ends it too.
   name and cat: any strings, copied; device: npuprof_device * or NULL. In MSVC's C it is a __try with a
   __finally. */
#define WITH_BASE_PROFILER(device, name, cat, args, ...) \
    WITH_BASE_PROFILER_LEVEL(1, device, name, cat, args, __VA_ARGS__)
#define WITH_BASE_PROFILER_LEVEL(level, device, name, cat, args, ...) \
    if (1) { \
        NPUPROF_WITH_BASE_(__COUNTER__, level, device, name, cat, NPUPROF_CHECKED_LIST_(args)); \
        NPUPROF_TRY_ { __VA_ARGS__; } \
        NPUPROF_FINALLY_(npuprof_leave_block_) \
    } \
    else ((void)0)

/* A moment: PROF_INSTANT(cat, name) or PROF_INSTANT(cat, name, PROF_ARGS(...)). */
#define PROF_INSTANT(cat, ...) \
    NPUPROF_INSTANT_(__COUNTER__, NPUPROF_CATEGORY_(cat), "" NPUPROF_NAME_(__VA_ARGS__) "", \
                     NPUPROF_LIST_(__VA_ARGS__))
/* A value over time. An integer stays an integer. name: a literal. */
#define PROF_COUNTER(name, value) \
    NPUPROF_EVENT_(__COUNTER__, \
                   (NPUPROF_IS_REAL_(value) \
                    ? NPUPROF_KIND_COUNTER_REAL \
                    : NPUPROF_IS_UNSIGNED_(value) ? NPUPROF_KIND_COUNTER_UINT : NPUPROF_KIND_COUNTER_INT), \
                    "" name "", \
                   (NPUPROF_IS_REAL_(value) ? npuprof_real_bits_(NPUPROF_CAST_(double, value)) \
                    : npuprof_int_bits_(NPUPROF_CAST_(int64_t, value))))
/* The state of a device's memory pool, after an operator for instance: the bytes in use and those that the
   pool holds. device: npuprof_device * (pools go by its name) or NPUPROF_NULL_, the host; tag: any string,
   copied. */
#define PROF_MEMORY(device, used_bytes, allocated_bytes, tag) \
    NPUPROF_VOID_(1, , npuprof_memory_((device), NPUPROF_CAST_(uint64_t, used_bytes), \
                                       NPUPROF_CAST_(uint64_t, allocated_bytes), (tag)))
/* Bytes of a pool come into use; go out of use. The library counts what is in use, also while nothing is
   recorded, and records the pool's state; its allocated figure is what PROF_MEMORY said last, or the most
   that was ever in use if that is more. 64 pools. */
#define PROF_ALLOC(device, bytes, tag) \
    NPUPROF_ALWAYS_(npuprof_memory_change_((device), false, NPUPROF_CAST_(uint64_t, bytes), (tag)))
#define PROF_FREE(device, bytes, tag) \
    NPUPROF_ALWAYS_(npuprof_memory_change_((device), true, NPUPROF_CAST_(uint64_t, bytes), (tag)))
/* Names the calling thread; any string, copied, kept while stopped, too. Not from a signal handler. */
#define PROF_THREAD_NAME(name) NPUPROF_ALWAYS_(npuprof_thread_name_(name))

/* What the macros above share. id is a fresh number.
   Why __COUNTER__ and not __LINE__: two scopes may stand in one macro, and so on one line. */
#define NPUPROF_PLAIN_(id, level, cat, name)                                                        \
    NPUPROF_SCOPE_(NPUPROF_GLUE_(npuprof_scope_, id), level, \
                   NPUPROF_LITERAL_SITE_(id, NPUPROF_KIND_SPAN, cat, name), \
                   npuprof_begin_(NPUPROF_REF_(id, cat, name)))
#define NPUPROF_BLOCK_OF_(id, cat, name)                                                            \
    NPUPROF_ONCE_(NPUPROF_GLUE_(npuprof_once_, id), 1, \
                  NPUPROF_LITERAL_SITE_(id, NPUPROF_KIND_SPAN, cat, name), \
                  npuprof_begin_(NPUPROF_REF_(id, cat, name)))
#define NPUPROF_FUNCTION_(id)                                                                       \
    NPUPROF_SCOPE_(NPUPROF_GLUE_(npuprof_scope_, id), 1, \
                   NPUPROF_SITE_(id, NPUPROF_KIND_SPAN, NPUPROF_NULL_, __func__), \
                   npuprof_begin_(NPUPROF_REF_(id, NPUPROF_NULL_, __func__)))
#define NPUPROF_WITH_ARGS_(id, level, cat, name, args)                                              \
    NPUPROF_SCOPE_(NPUPROF_GLUE_(npuprof_scope_, id), level,                                        \
                   NPUPROF_LITERAL_SITE_(id, NPUPROF_KIND_SPAN, cat, name) NPUPROF_KEYS_OF_(id),    \
                   NPUPROF_BEGIN_ARGS_(id, cat, name, args))
#define NPUPROF_NAMED_(id, kind, name, args)                                                        \
    NPUPROF_SCOPE_(NPUPROF_GLUE_(npuprof_scope_, id), 1, \
                   NPUPROF_NAMED_SITE_(id, kind, "Runtime", name) NPUPROF_KEYS_OF_(id), \
                   NPUPROF_BEGIN_NAMED_(id, NPUPROF_NULL_, kind, "Runtime", (name), (args)))
#define NPUPROF_WITH_BASE_(id, level, dev, name, cat, args)                                         \
    NPUPROF_BLOCK_(NPUPROF_GLUE_(npuprof_block_, id), level, dev,                                   \
                   NPUPROF_NAMED_SITE_(id, NPUPROF_KIND_SPAN, cat, name) NPUPROF_KEYS_OF_(id),      \
                   NPUPROF_BEGIN_NAMED_(id, NPUPROF_DEVICE_OF_(NPUPROF_GLUE_(npuprof_block_, id), dev), \
                                        NPUPROF_KIND_SPAN, (cat), (name), (args)))
#ifndef NPUPROF_FREESTANDING
#define NPUPROF_NAMED_SITE_(id, kind, cat, name) NPUPROF_SITE_(id, kind, NPUPROF_NULL_, NPUPROF_NULL_)
#define NPUPROF_BEGIN_ARGS_(id, cat, name, args) \
    npuprof_begin_list_(NPUPROF_REF_(id, cat, name), NPUPROF_KEYS_REF_(id), (args))
#define NPUPROF_BEGIN_NAMED_(id, dev, kind, cat, name, args)                                        \
    npuprof_begin_name_(dev, NPUPROF_CONSTANT_(name) && NPUPROF_CONSTANT_(cat) \
                        ? NPUPROF_REF_(id, NPUPROF_NULL_, NPUPROF_NULL_) : NPUPROF_NULL_, \
                        NPUPROF_KEYS_REF_(id), kind, cat, name, args)
#define NPUPROF_EVENT_ARGS_(id, cat, name, args) \
    npuprof_event_list_(NPUPROF_REF_(id, cat, name), NPUPROF_KEYS_REF_(id), (args))
#else
#define NPUPROF_NAMED_SITE_(id, kind, cat, name) \
    NPUPROF_SITE_(id, kind, NPUPROF_LITERAL_(cat), NPUPROF_LITERAL_(name))
#define NPUPROF_BEGIN_ARGS_(id, cat, name, args) npuprof_begin_args_(NPUPROF_REF_(id, cat, name), (args))
#define NPUPROF_BEGIN_NAMED_(id, dev, kind, cat, name, args)                                        \
    (npuprof_wait_around_(dev), NPUPROF_IS_LITERAL_(name) && NPUPROF_IS_LITERAL_(cat)               \
        ? npuprof_begin_args_(NPUPROF_REF_(id, "", ""), args) : npuprof_begin_named_(kind, cat, name, args))
#define NPUPROF_EVENT_ARGS_(id, cat, name, args) npuprof_event_args_now_(NPUPROF_REF_(id, cat, name), (args))
#endif
#define NPUPROF_PHASES_(id, name)                                                                   \
    NPUPROF_SHADOW_PUSH_                                                                            \
    NPUPROF_SCOPE_(npuprof_phase_, 1, \
                   NPUPROF_LITERAL_SITE_(id, NPUPROF_KIND_SPAN, NPUPROF_NO_CATEGORY_, name), \
                   npuprof_begin_(NPUPROF_REF_(id, NPUPROF_NULL_, name)));                                   \
    NPUPROF_SHADOW_POP_
#define NPUPROF_NEXT_PHASE_(id, name)                                                               \
    NPUPROF_NEXT_(NPUPROF_LITERAL_SITE_(id, NPUPROF_KIND_SPAN, NPUPROF_NO_CATEGORY_, name),         \
                  npuprof_next_(NPUPROF_PHASE_TOKEN_, NPUPROF_REF_(id, NPUPROF_NULL_, name)))
#define NPUPROF_EVENT_(id, kind, name, value)                                                       \
    NPUPROF_VOID_(1, NPUPROF_LITERAL_SITE_(id, kind, NPUPROF_NO_CATEGORY_, name),                   \
                  npuprof_event_now_(NPUPROF_REF_(id, NPUPROF_NULL_, name), (value)))
#define NPUPROF_INSTANT_(id, cat, name, args)                                                       \
    NPUPROF_VOID_(1, NPUPROF_LITERAL_SITE_(id, NPUPROF_KIND_INSTANT, cat, name) NPUPROF_KEYS_OF_(id), \
                  NPUPROF_EVENT_ARGS_(id, cat, name, args))

/* What npuprof_npu.h builds on; not for users. Host ticks are those of the records. */
NPUPROF_BEGIN_C_
typedef struct npuprof_link_ {      /* the span that submitted a job */
    uint64_t position, root_position;   /* of that span and of its trace's root, in the slot's stream */
    uint64_t ticks;                 /* a host stamp inside the span; 0 = there is no span to link to */
    uint32_t slot;
    bool warm_up;
} npuprof_link_;
typedef struct npuprof_anchor_ {    /* device_ticks were read between the two host stamps */
    uint64_t device_ticks, host_before, host_after;
} npuprof_anchor_;
enum { NPUPROF_STAMP_SAMPLED = 1, NPUPROF_STAMP_DEVICE = 0, NPUPROF_STAMP_ANCHOR_WIDE = 2 };
enum { NPUPROF_NOTE_WRAPS, NPUPROF_NOTE_RESETS, NPUPROF_NOTE_DEAD_READS, NPUPROF_NOTE_TORN_READS,
       NPUPROF_NOTE_RING_LOST,
       NPUPROF_NOTE_AMBIGUOUS, NPUPROF_NOTE_LAG, NPUPROF_NOTE_COUNT, NPUPROF_NOTE_ROOM_ = 8 };
#define NPUPROF_MAX_HZ_ \
    UINT64_C(1000000000000000)   /* of a device's clock: a simulator that counts femtoseconds */
#if !defined(NPUPROF_OFF) && !defined(NPUPROF_FREESTANDING)
/* Host ticks now; any ticks as ns on npuprof_now_ns()'s clock, by the rate known at this moment; ns per 2^32
   ticks. */
NPUPROF_API_ uint64_t npuprof_ticks_(void);
NPUPROF_API_ int64_t npuprof_ticks_to_ns_(uint64_t ticks);
NPUPROF_API_ uint64_t npuprof_ns_per_4g_ticks_(void);
/* Adds a device to the arena: its number from 1, or 0 when the table is full. max_rate_ppb: how far its rate
   may drift. */
NPUPROF_API_ uint32_t npuprof_device_add_(const char *name, unsigned pe_count, uint64_t nominal_hz,
                                          uint32_t max_rate_ppb);
/* Stores an anchor. epoch counts the device's resets. Anchors of one device come from one thread at a
   time. */
NPUPROF_API_ npuprof_result npuprof_device_anchor_(uint32_t device, uint32_t epoch,
                                                   const npuprof_anchor_ *anchor);
/* Adds to one of a device's counts (NPUPROF_NOTE_*). */
NPUPROF_API_ void npuprof_device_note_(uint32_t device, unsigned note, uint64_t add);
/* The innermost open recorded span of this thread. */
NPUPROF_API_ npuprof_link_ npuprof_link_here_(void);
/* A finished device span in extended device ticks. link may be NULL. flags: NPUPROF_END_STAMP_*. */
NPUPROF_API_ void npuprof_device_span_(uint32_t device, uint32_t epoch, unsigned pe, const char *category,
                                       const char *name,
                                       uint64_t start_ticks, uint64_t end_ticks, unsigned flags,
                                       const npuprof_link_ *link,
                                       npuprof_args args);
/* Counts spans or events that never came to be. */
NPUPROF_API_ void npuprof_count_lost_(unsigned cause, uint64_t count);
/* Maps device ticks to host ticks with the anchors given, ascending in device ticks; max_rate_ppb as above.
   The error is in host ticks; NULL where it is not wanted: most of the work. False: no anchors. The one place
   with the interpolation and its bound; readers use it too. */
NPUPROF_API_ bool npuprof_map_ticks_(const npuprof_anchor_ *anchors, size_t count, uint32_t max_rate_ppb,
                                     uint64_t device_ticks,
                                     uint64_t *host_ticks, uint64_t *error_ticks, bool *widened);
#endif /* !NPUPROF_OFF && !NPUPROF_FREESTANDING */
NPUPROF_END_C_
