#pragma once   /* SPDX-License-Identifier: MIT */
#include "hot.h"
#include "device.h"

/* The macros that users write: PROF_* and WITH_*_PROFILER. Further down, after "The macros".

   Order of arguments: PROF_* take (category, name), as Perfetto, Chrome and minitrace do; WITH_*_PROFILER
   take (name, category), as the reference system does.
   Each macro exists once. The switch below, in an ON and an OFF version, decides what it becomes. Each use
   has a static call site with its name and category; the gate is checked before anything else is
   evaluated. */

/* The switch between ON and OFF. id is a fresh number; `sites` declares the call site.
     NPUPROF_SITE_      declares a call site; NPUPROF_LITERAL_SITE_ does it for literals
     NPUPROF_REF_       the address of a call site
     NPUPROF_VOID_      a statement: evaluates expr if the level is recorded
     NPUPROF_ALWAYS_    a statement: evaluates expr, also while nothing is recorded
     NPUPROF_SCOPE_     a declaration: a span to the end of the enclosing block
     NPUPROF_BLOCK_     a declaration: the same for WITH_*_PROFILER, with a device
     NPUPROF_ONCE_      a loop that runs once: a span around the statement that follows
     NPUPROF_NEXT_      a statement: the next phase
   OFF keeps the type checks of the arguments, in an unevaluated sizeof, and nothing else. */
#ifndef NPUPROF_OFF
#ifdef NPUPROF_GATE_WAITS_
#define NPUPROF_OPEN_(level) \
    (npuprof_at_least_(&npuprof_gate_, (level)) && (npuprof_gate_ != INT_MAX || npuprof_opens_(level)))
#else
#define NPUPROF_OPEN_(level) NPUPROF_UNLIKELY_(npuprof_at_least_(&npuprof_gate_, (level)))
#endif
#ifndef NPUPROF_FREESTANDING
#define NPUPROF_SITE_(id, kind, cat, name) \
    static npuprof_site_ NPUPROF_GLUE_(npuprof_site_, id) = \
        { 0, 0, (kind), name, cat, NPUPROF_FILE_, NPUPROF_LINE_ };
#define NPUPROF_KEYS_OF_(id, kind) \
    static npuprof_keys_ NPUPROF_GLUE_(npuprof_keys_, id) = \
        { 0, 0, { 0, 0, 0, 0 }, { NPUPROF_NULL_, NPUPROF_NULL_, NPUPROF_NULL_, NPUPROF_NULL_ }, 0, \
          NPUPROF_FILE_, NPUPROF_LINE_, (kind) };
#define NPUPROF_KEYS_REF_(id) (&NPUPROF_GLUE_(npuprof_keys_, id))
#define NPUPROF_NO_CATEGORY_ NPUPROF_NULL_
#elif defined(NPUPROF_NAMES_SECTION)
#define NPUPROF_KEYS_OF_(id, kind)
#define NPUPROF_IN_NAMES_ NPUPROF_ATTRIBUTE_((section(NPUPROF_NAMES_SECTION), unused))
#define NPUPROF_SITE_(id, kind, cat, name) \
    static const char NPUPROF_GLUE_(npuprof_file_, id)[] NPUPROF_IN_NAMES_ = NPUPROF_FILE_TEXT_; \
    static const npuprof_site_ NPUPROF_GLUE_(npuprof_site_, id) NPUPROF_IN_NAMES_ = \
        { name, cat, (kind), \
          { NPUPROF_LINE_ & 0xFF, NPUPROF_LINE_ >> 8 & 0xFF, NPUPROF_LINE_ >> 16 & 0xFF }, \
          NPUPROF_GLUE_(npuprof_file_, id) };
#define NPUPROF_LITERAL_SITE_(id, kind, cat, name)                                     \
    static const char NPUPROF_GLUE_(npuprof_name_, id)[] NPUPROF_IN_NAMES_ = "" name ""; \
    static const char NPUPROF_GLUE_(npuprof_category_, id)[] NPUPROF_IN_NAMES_ = cat;  \
    NPUPROF_SITE_(id, kind, NPUPROF_GLUE_(npuprof_category_, id), NPUPROF_GLUE_(npuprof_name_, id)) \
    NPUPROF_LITERAL_ONLY_(id, name)
#define NPUPROF_NO_CATEGORY_ ""
#else /* !NPUPROF_NAMES_SECTION */
#define NPUPROF_KEYS_OF_(id, kind)
#define NPUPROF_SITE_(id, kind, cat, name) \
    static const npuprof_site_ NPUPROF_GLUE_(npuprof_site_, \
                                             id) NPUPROF_ATTRIBUTE_((unused)) = \
        { name, cat, (kind), { 0, 0, 0 } };
#define NPUPROF_NO_CATEGORY_ NPUPROF_NULL_
#endif /* !NPUPROF_NAMES_SECTION */
#ifdef NPUPROF_LITERAL_SITE_
#elif defined(__cplusplus)
/* Why constexpr: else a local array would be a category, whose address outlives it. */
#define NPUPROF_LITERAL_SITE_(id, kind, cat, name)                            \
    static constexpr const char *NPUPROF_GLUE_(npuprof_category_, id) = cat;  \
    NPUPROF_LITERAL_ONLY_(id, name) \
    NPUPROF_SITE_(id, kind, NPUPROF_GLUE_(npuprof_category_, id), "" name "") \
    NPUPROF_USDT_MARK_(kind, cat, name)
#else
#define NPUPROF_LITERAL_SITE_(id, kind, cat, name) \
    NPUPROF_SITE_(id, kind, cat, "" name "") NPUPROF_LITERAL_ONLY_(id, name) \
    NPUPROF_USDT_MARK_(kind, cat, name)
#endif
#define NPUPROF_REF_(id, cat, name) (&NPUPROF_GLUE_(npuprof_site_, id))
#define NPUPROF_VOID_(level, sites, expr) do { sites if (NPUPROF_OPEN_(level)) { expr; } } while (0)
#define NPUPROF_ALWAYS_(expr) (expr)         /* of functions that return nothing */
/* Begins a span in an expression that also declares its call site. Why: PROF_BLOCK must be one statement. */
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
/* Why an error: this compiler has no way to end the span. */
#define NPUPROF_SCOPE_(id, level, sites, begin) \
    typedef char npuprof_this_compiler_has_no_cleanup_attribute_use_PROF_BLOCK_or_compile_as_cpp_[-1]
#if NPUPROF_HAS_FINALLY_
#define NPUPROF_BLOCK_(id, level, dev, sites, begin) \
    sites npuprof_block_ id = { 0, (dev) }, \
        *npuprof_this_block_ = &id; if (NPUPROF_OPEN_(level)) id.token = (begin)
#else
#define NPUPROF_BLOCK_(id, level, dev, sites, begin) NPUPROF_SCOPE_(id, level, sites, begin)
#endif
/* Why two loops: a break leaves only the inner one, and the outer one then ends the span. */
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
#define NPUPROF_KEYS_OF_(id, kind)
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
/* Why three forms: where ON refuses a goto or a case label past a scope (C++, clang), OFF must refuse it,
   too. C++ refuses to jump past an object. clang also refuses to jump past a type of variable length, which
   leaves no code, while an object would leave some. */
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
/* Why a switch in a loop: compilers remove it completely, and break and continue act as in the loop of ON. */
#define NPUPROF_ONCE_(id, level, sites, begin) \
    switch (NPUPROF_UNEVALUATED_(((void)(0 >= (level)), (begin))) & 0) while (0) default:
#define NPUPROF_DEVICE_OF_(id, dev) (dev)
#define NPUPROF_ARGS_(...) ((void)NPUPROF_UNEVALUATED_((__VA_ARGS__)), PROF_NO_ARGS)
#define NPUPROF_NEXT_(sites, next) ((void)NPUPROF_UNEVALUATED_((next)))
#define NPUPROF_PHASE_TOKEN_ NPUPROF_STATIC_CAST_(npuprof_token_, npuprof_phase_a_[0])
#endif /* NPUPROF_OFF */

/* ---- The macros ----

   Rules for all, unless a comment says otherwise. Any thread and any signal handler may use them. Names and
   categories are string literals; cat may be NULL for none. Arguments are evaluated only while recording is
   on. A macro cannot fail: what it cannot record is counted as lost. Cost while recording is off: a load, a
   compare and a branch. Cost of a span: two clock reads and one 16-byte record; each argument adds to it. */

/* A span from here to the end of the enclosing block, however control leaves it. */
#define PROF_SCOPE(name) NPUPROF_PLAIN_(__COUNTER__, 1, NPUPROF_NO_CATEGORY_, name)
#define PROF_SCOPE_CAT(cat, name) NPUPROF_PLAIN_(__COUNTER__, 1, NPUPROF_CATEGORY_(cat), name)
/* A span around the statement that follows: PROF_BLOCK("c", "name") { ... }. Works in every compiler, also in
   MSVC's C, where PROF_SCOPE does not compile. A break or continue inside leaves this block, not a loop
   around it, and ends the span. return and goto end the span where PROF_SCOPE compiles. Elsewhere they leave
   it open; it then ends, marked, with the span around it. With OFF it is a loop that runs once, which an
   optimiser removes. */
#define PROF_BLOCK(cat, name) NPUPROF_BLOCK_OF_(__COUNTER__, NPUPROF_CATEGORY_(cat), name)
/* PROF_SCOPE_ARGS(cat, name, PROF_ARGS(...)): PROF_SCOPE with arguments; the list may be left out.
   PROF_SCOPE_LEVEL(level, cat, name, PROF_ARGS(...)): the same, recorded only if npuprof_start() was given
   this level or a higher one. */
#define PROF_SCOPE_ARGS(cat, ...) PROF_SCOPE_LEVEL(1, cat, __VA_ARGS__)
#define PROF_SCOPE_LEVEL(level, cat, ...) \
    NPUPROF_WITH_ARGS_(__COUNTER__, level, NPUPROF_CATEGORY_(cat), NPUPROF_NAME_(__VA_ARGS__), \
                       NPUPROF_LIST_(__VA_ARGS__))
/* PROF_SCOPE_CAT for a span in which the thread waits and does no work: a report takes that for a fact. */
#define PROF_WAIT(cat, name) PROF_SCOPE_ARGS(cat, name, PROF_ARGS(PROF_STR("kind", "wait")))
/* PROF_SCOPE with the name of the function; in C++ with its class and parameters, as the compiler has
   them. */
#define PROF_FUNCTION() NPUPROF_FUNCTION_(__COUNTER__)
/* Before a function: NPUPROF_AUTO does not record it. For what is called too often, and for functions that
   the recorder itself calls: those behind NPUPROF_NOW() and a sink. */
#define PROF_NO_AUTO NPUPROF_OWN_
/* The next four are spans to the end of the enclosing block. name may be any string; it is copied. */

/* A labelled section, such as one run of a model. It starts a new trace id; the spans inside become its
   children. */
#define PROF_RECORD(name) NPUPROF_BOUNDARY_(__COUNTER__, NPUPROF_KIND_RECORD, name)
/* PROF_RECORD for a warm-up: the reports leave out what is inside. */
#define PROF_RECORD_WARM_UP(name) NPUPROF_NAMED_(__COUNTER__, NPUPROF_KIND_WARM_UP, name, PROF_NO_ARGS)
/* One inference query. npuprof_print_inferences() prints a row for it; npuprof_print_summary() counts it. */
#define PROF_INFERENCE(name) NPUPROF_BOUNDARY_(__COUNTER__, NPUPROF_KIND_INFERENCE, name)
/* An operator that runs on the host ("external"). npuprof_print_external_operators() prints a row for it. */
#define PROF_OPERATOR(operator_index, name) \
    NPUPROF_NAMED_(__COUNTER__, NPUPROF_KIND_OPERATOR, name, \
                   PROF_ARGS(PROF_INT("operator_index", operator_index)))

/* What is known only when the work is done: PROF_RESULT(PROF_INT("status", s), PROF_UINT("bytes", n)) adds
   these arguments to the innermost open span of this thread, whatever macro began it, in this function or in
   one that called it. It may be used several times; of a key that comes again, the last value counts. Without
   an open span it does nothing; nor while recording is off, also in a span that began before. If a level or
   the categories leave a span out, PROF_RESULT inside it adds to the span around it;
   PROF_RESULT_LEVEL(level, ...) is left out by the same level. */
#define PROF_RESULT(...) PROF_RESULT_LEVEL(1, __VA_ARGS__)
#define PROF_RESULT_LEVEL(level, ...) NPUPROF_ADD_RESULT_(__COUNTER__, level, PROF_ARGS(__VA_ARGS__))

/* Spans without a gap between them. PROF_PHASES begins the first; each PROF_NEXT ends one and begins the next
   with the same time stamp; the end of the block ends the last. One PROF_PHASES in a block. */
#define PROF_PHASES(name) NPUPROF_PHASES_(__COUNTER__, name)
#define PROF_NEXT(name) NPUPROF_NEXT_PHASE_(__COUNTER__, name)

/* PROF_BEGIN begins a span; PROF_END ends the last one that this thread began with PROF_BEGIN, whether it was
   recorded or not. They nest, at most 64 deep in a thread. cat and name may be any strings; they are copied.
   cat may be NULL. Both are evaluated also while recording is off. */
#define PROF_BEGIN(cat, name) NPUPROF_BY_HAND_(__COUNTER__, cat, name)
#define PROF_END() NPUPROF_ENDED_(npuprof_end_by_hand_())

/* An arrow between two host spans. Write PROF_FLOW_OUT inside the span where it starts, PROF_FLOW_IN inside
   the span where it ends, with the same 64-bit id. The threads may differ; so may the processes, if `merge`
   joins their images (.npuprof). */
#define PROF_FLOW_OUT(id) \
    NPUPROF_EVENT_(__COUNTER__, NPUPROF_KIND_FLOW_OUT, "flow", NPUPROF_CAST_(uint64_t, id))
#define PROF_FLOW_IN(id) \
    NPUPROF_EVENT_(__COUNTER__, NPUPROF_KIND_FLOW_IN, "flow", NPUPROF_CAST_(uint64_t, id))

/* A span around code: WITH_BASE_PROFILER(device, name, cat, PROF_NO_ARGS, { ... }). The code is expanded
   once. The span also ends when return, break, continue or goto leaves the code. name and cat may be any
   strings; they are copied. device: npuprof_device *, or NULL for the host; if its wait_around is set, its
   wait() is called before both stamps. WITH_BASE_PROFILER_LEVEL: recorded only from that level on. In MSVC's
   C it is a __try with a __finally. */
#define WITH_BASE_PROFILER(device, name, cat, args, ...) \
    WITH_BASE_PROFILER_LEVEL(1, device, name, cat, args, __VA_ARGS__)
#define WITH_BASE_PROFILER_LEVEL(level, device, name, cat, args, ...) \
    NPUPROF_STATEMENT_BEGIN_ \
        NPUPROF_WITH_BASE_(__COUNTER__, level, device, name, cat, NPUPROF_CHECKED_LIST_(args)); \
        NPUPROF_TRY_ { __VA_ARGS__; } \
        NPUPROF_FINALLY_(npuprof_leave_block_) \
    NPUPROF_STATEMENT_END_

/* An event without a duration: PROF_INSTANT(cat, name) or PROF_INSTANT(cat, name, PROF_ARGS(...)). */
#define PROF_INSTANT(cat, ...) \
    NPUPROF_INSTANT_(__COUNTER__, NPUPROF_CATEGORY_(cat), NPUPROF_NAME_(__VA_ARGS__), \
                     NPUPROF_LIST_(__VA_ARGS__))
/* A sample of a value that changes over time. Integers stay integers, others become double. */
#define PROF_COUNTER(name, value) \
    NPUPROF_EVENT_(__COUNTER__, \
                   (NPUPROF_IS_REAL_(value) \
                    ? NPUPROF_KIND_COUNTER_REAL \
                    : NPUPROF_IS_UNSIGNED_(value) ? NPUPROF_KIND_COUNTER_UINT : NPUPROF_KIND_COUNTER_INT), \
                    name, \
                   (NPUPROF_IS_REAL_(value) ? npuprof_real_bits_(NPUPROF_CAST_(double, value)) \
                    : npuprof_int_bits_(NPUPROF_CAST_(int64_t, value))))
/* The state of a memory pool, for instance after an operator: bytes in use, and bytes that the pool has
   allocated. device: npuprof_device *, or NULL for the host; devices with the same name share a pool. tag:
   any string, copied. */
#define PROF_MEMORY(device, used_bytes, allocated_bytes, tag) \
    NPUPROF_VOID_(1, , npuprof_memory_((device), NPUPROF_CAST_(uint64_t, used_bytes), \
                                       NPUPROF_CAST_(uint64_t, allocated_bytes), (tag)))
/* PROF_ALLOC: bytes of a pool come into use. PROF_FREE: they are free again. The library adds up the bytes in
   use, also while recording is off, and records the state of the pool. Its allocated bytes are those of the
   last PROF_MEMORY, or the most that was ever in use if that is more. At most 64 pools. */
#define PROF_ALLOC(device, bytes, tag) \
    NPUPROF_ALWAYS_(npuprof_memory_change_((device), false, NPUPROF_CAST_(uint64_t, bytes), (tag)))
#define PROF_FREE(device, bytes, tag) \
    NPUPROF_ALWAYS_(npuprof_memory_change_((device), true, NPUPROF_CAST_(uint64_t, bytes), (tag)))
/* Names the calling thread, also while recording is off. name: any string, copied. Not from a signal
   handler. */
#define PROF_THREAD_NAME(name) NPUPROF_ALWAYS_(npuprof_thread_name_(name))

/* ---- Private: what the macros above expand to ----

   id is a fresh number. Why __COUNTER__ and not __LINE__: a user's macro may hold two scopes, and both are
   then on one line. */
#define NPUPROF_PLAIN_(id, level, cat, name)                                                        \
    NPUPROF_SCOPE_(NPUPROF_GLUE_(npuprof_scope_, id), level, \
                   NPUPROF_LITERAL_SITE_(id, NPUPROF_KIND_SPAN, cat, name), \
                   npuprof_begin_(NPUPROF_REF_(id, cat, "" name "")))
#define NPUPROF_BLOCK_OF_(id, cat, name)                                                            \
    NPUPROF_ONCE_(NPUPROF_GLUE_(npuprof_once_, id), 1, \
                  NPUPROF_LITERAL_SITE_(id, NPUPROF_KIND_SPAN, cat, name), \
                  npuprof_begin_(NPUPROF_REF_(id, cat, "" name "")))
#define NPUPROF_FUNCTION_(id)                                                                       \
    NPUPROF_SCOPE_(NPUPROF_GLUE_(npuprof_scope_, id), 1, \
                   NPUPROF_SITE_(id, NPUPROF_KIND_SPAN, NPUPROF_NULL_, NPUPROF_FUNCTION_NAME_) \
                   NPUPROF_USDT_MARK_(NPUPROF_KIND_SPAN, NPUPROF_NULL_, NPUPROF_FUNCTION_NAME_), \
                   npuprof_begin_(NPUPROF_REF_(id, NPUPROF_NULL_, NPUPROF_FUNCTION_NAME_)))
#define NPUPROF_WITH_ARGS_(id, level, cat, name, args)                                              \
    NPUPROF_SCOPE_(NPUPROF_GLUE_(npuprof_scope_, id), level,                                        \
                   NPUPROF_LITERAL_SITE_(id, NPUPROF_KIND_SPAN, cat, name) \
                   NPUPROF_KEYS_OF_(id, NPUPROF_KIND_SPAN),                                         \
                   NPUPROF_BEGIN_ARGS_(id, cat, "" name "", args))
#define NPUPROF_NAMED_(id, kind, name, args)                                                        \
    NPUPROF_SCOPE_(NPUPROF_GLUE_(npuprof_scope_, id), 1, \
                   NPUPROF_NAMED_SITE_(id, kind, "Runtime", name) NPUPROF_KEYS_OF_(id, kind), \
                   NPUPROF_BEGIN_NAMED_(id, NPUPROF_NULL_, kind, "Runtime", (name), (args)))
#define NPUPROF_WITH_BASE_(id, level, dev, name, cat, args)                                         \
    NPUPROF_BLOCK_(NPUPROF_GLUE_(npuprof_block_, id), level, dev,                                   \
                   NPUPROF_NAMED_SITE_(id, NPUPROF_KIND_SPAN, cat, name) \
                   NPUPROF_KEYS_OF_(id, NPUPROF_KIND_SPAN),                                         \
                   NPUPROF_BEGIN_NAMED_(id, NPUPROF_DEVICE_OF_(NPUPROF_GLUE_(npuprof_block_, id), dev), \
                                        NPUPROF_KIND_SPAN, (cat), (name), (args)))
#ifndef NPUPROF_FREESTANDING
#define NPUPROF_BOUNDARY_(id, kind, name) \
    NPUPROF_SCOPE_(NPUPROF_GLUE_(npuprof_scope_, id), NPUPROF_GATE_BOUNDARIES_, \
                   NPUPROF_NAMED_SITE_(id, kind, "Runtime", name) NPUPROF_KEYS_OF_(id, kind), \
                   npuprof_begin_boundary_(NPUPROF_CONSTANT_(name) \
                                           ? NPUPROF_REF_(id, NPUPROF_NULL_, NPUPROF_NULL_) : NPUPROF_NULL_, \
                                           NPUPROF_KEYS_REF_(id), "Runtime", (name)))
#define NPUPROF_NAMED_SITE_(id, kind, cat, name) \
    NPUPROF_SITE_(id, kind, NPUPROF_NULL_, NPUPROF_NULL_) NPUPROF_USDT_MARK_(kind, cat, name)
#define NPUPROF_BEGIN_ARGS_(id, cat, name, args) \
    npuprof_begin_list_(NPUPROF_REF_(id, cat, name), NPUPROF_KEYS_REF_(id), (args))
#define NPUPROF_BEGIN_NAMED_(id, dev, kind, cat, name, args)                                        \
    npuprof_begin_name_(dev, NPUPROF_CONSTANT_(name) && NPUPROF_CONSTANT_(cat) \
                        ? NPUPROF_REF_(id, NPUPROF_NULL_, NPUPROF_NULL_) : NPUPROF_NULL_, \
                        NPUPROF_KEYS_REF_(id), cat, name, args)
#define NPUPROF_BY_HAND_(id, cat, name) \
    do { \
        NPUPROF_KEYS_OF_(id, NPUPROF_KIND_SPAN) \
        NPUPROF_USDT_MARK_(NPUPROF_KIND_SPAN, (cat), (name)) \
        NPUPROF_ALWAYS_(npuprof_begin_by_hand_(NPUPROF_KEYS_REF_(id), (cat), (name))); \
    } while (0)
#define NPUPROF_RESULT_ARGS_(id, args) npuprof_result_(NPUPROF_KEYS_REF_(id), (args))
#define NPUPROF_EVENT_ARGS_(id, cat, name, args) \
    npuprof_event_list_(NPUPROF_REF_(id, cat, name), NPUPROF_KEYS_REF_(id), (args))
#else /* NPUPROF_FREESTANDING */
#define NPUPROF_BOUNDARY_(id, kind, name) NPUPROF_NAMED_(id, kind, name, PROF_NO_ARGS)
#define NPUPROF_NAMED_SITE_(id, kind, cat, name) \
    NPUPROF_SITE_(id, kind, NPUPROF_LITERAL_(cat), NPUPROF_LITERAL_(name))
#define NPUPROF_BEGIN_ARGS_(id, cat, name, args) npuprof_begin_list_(NPUPROF_REF_(id, cat, name), (args))
#define NPUPROF_BEGIN_NAMED_(id, dev, kind, cat, name, args)                                        \
    (npuprof_wait_around_(dev), NPUPROF_IS_LITERAL_(name) && NPUPROF_IS_LITERAL_(cat)               \
        ? npuprof_begin_list_(NPUPROF_REF_(id, "", ""), args) : npuprof_begin_named_(kind, cat, name, args))
#define NPUPROF_BY_HAND_(id, cat, name) \
    do { \
        NPUPROF_NAMED_SITE_(id, NPUPROF_KIND_SPAN, cat, name) \
        NPUPROF_ALWAYS_(NPUPROF_IS_LITERAL_(name) && NPUPROF_IS_LITERAL_(cat) \
                        ? npuprof_begin_here_(NPUPROF_REF_(id, "", "")) \
                        : npuprof_begin_by_hand_((cat), (name))); \
    } while (0)
#define NPUPROF_RESULT_ARGS_(id, args) npuprof_result_((args))
#define NPUPROF_EVENT_ARGS_(id, cat, name, args) npuprof_event_list_(NPUPROF_REF_(id, cat, name), (args))
#endif /* NPUPROF_FREESTANDING */
#define NPUPROF_PHASES_(id, name)                                                                   \
    NPUPROF_SHADOW_PUSH_                                                                            \
    NPUPROF_SCOPE_(npuprof_phase_, 1, \
                   NPUPROF_LITERAL_SITE_(id, NPUPROF_KIND_SPAN, NPUPROF_NO_CATEGORY_, name), \
                   npuprof_begin_(NPUPROF_REF_(id, NPUPROF_NULL_, "" name ""))); \
    NPUPROF_SHADOW_POP_
#define NPUPROF_NEXT_PHASE_(id, name)                                                               \
    NPUPROF_NEXT_(NPUPROF_USDT_END_ \
                  NPUPROF_LITERAL_SITE_(id, NPUPROF_KIND_SPAN, NPUPROF_NO_CATEGORY_, name),         \
                  npuprof_next_(NPUPROF_PHASE_TOKEN_, \
                                NPUPROF_REF_(id, NPUPROF_NULL_, "" name "")))
#define NPUPROF_EVENT_(id, kind, name, value)                                                       \
    NPUPROF_VOID_(1, NPUPROF_LITERAL_SITE_(id, kind, NPUPROF_NO_CATEGORY_, name) \
                  NPUPROF_USDT_VALUE_(kind, name, value),                                          \
                  npuprof_event_now_(NPUPROF_REF_(id, NPUPROF_NULL_, "" name ""), (value)))
#define NPUPROF_INSTANT_(id, cat, name, args)                                                       \
    NPUPROF_VOID_(1, NPUPROF_LITERAL_SITE_(id, NPUPROF_KIND_INSTANT, cat, name) \
                  NPUPROF_KEYS_OF_(id, NPUPROF_KIND_INSTANT), \
                  NPUPROF_EVENT_ARGS_(id, cat, "" name "", args))
#define NPUPROF_ADD_RESULT_(id, level, args)                                                        \
    NPUPROF_VOID_(level, NPUPROF_KEYS_OF_(id, NPUPROF_KIND_SPAN), NPUPROF_RESULT_ARGS_(id, args))
