/* npuprof_itt.h - ITT on npuprof: a program written against ittnotify.h is recorded, without a collector that
   is opened. README.md beside it says how to use it. Declarations made from the documentation of ITT.
   SPDX-License-Identifier: MIT

   Tasks become spans of the thread; overlapped tasks, regions, frames and events async spans; markers
   instants. The domain is the category; ids and metadata are arguments. Domains can be switched off (flags).
   An event that is started and not ended stays open to the end of the trace.
   Not held, and counted in the metadata (npuprof.collect.not_held.itt.*): metadata (of a task that is not the
   innermost; all but the first of several values), parent (of overlapped tasks), relation, sync, memory,
   stitch, group, mark (more than 1,000 events). */
#ifndef NPUPROF_ITT_H
#define NPUPROF_ITT_H
#include "npuprof_shim.h"
#ifdef __cplusplus
extern "C" {
#endif
#define ITTAPI
typedef struct ___itt_domain {
    volatile int flags;                  /* 0: its calls do nothing */
    const char *nameA;
    void *nameW;
    int extra1;
    void *extra2;
    struct ___itt_domain *next;
} __itt_domain;
typedef struct ___itt_string_handle {
    const char *strA;
    void *strW;
    int extra1;
    void *extra2;
    struct ___itt_string_handle *next;
} __itt_string_handle;
typedef struct ___itt_id { unsigned long long d1, d2, d3; } __itt_id;
typedef struct ___itt_counter { const char *name; int type; unsigned long long value; } *__itt_counter;
typedef int __itt_event;                 /* 0: there is no memory, or no more than 1,000 fit */
typedef unsigned long long __itt_timestamp;
typedef void *__itt_heap_function, *__itt_caller;
typedef enum { __itt_scope_unknown, __itt_scope_global, __itt_scope_track_group, __itt_scope_track,
               __itt_scope_task, __itt_scope_marker } __itt_scope;
typedef enum { __itt_metadata_unknown, __itt_metadata_u64, __itt_metadata_s64, __itt_metadata_u32,
               __itt_metadata_s32, __itt_metadata_u16, __itt_metadata_s16, __itt_metadata_float,
               __itt_metadata_double } __itt_metadata_type;
typedef enum { __itt_relation_is_unknown, __itt_relation_is_dependent_on, __itt_relation_is_sibling_of,
               __itt_relation_is_parent_of, __itt_relation_is_continuation_of, __itt_relation_is_child_of,
               __itt_relation_is_continued_by, __itt_relation_is_predecessor_to } __itt_relation;
#define __itt_marker_scope_global __itt_scope_global
#define __itt_marker_scope_process __itt_scope_track_group
#define __itt_marker_scope_thread __itt_scope_track
#define __itt_marker_scope_task __itt_scope_task
#define __itt_timestamp_none ((__itt_timestamp)-1)
enum { __itt_attr_barrier = 1, __itt_attr_mutex = 2 };
static const __itt_id __itt_null __attribute__((unused)) = { 0, 0, 0 };
static inline __itt_id __itt_id_make(void *address, unsigned long long extra)
{
    const __itt_id id = { (unsigned long long)(uintptr_t)address, extra, 0 };
    return id;
}

NPUPROF_SHIM __itt_domain *__itt_domain_create(const char *name);
NPUPROF_SHIM __itt_string_handle *__itt_string_handle_create(const char *text);
NPUPROF_SHIM void __itt_task_begin(const __itt_domain *d, __itt_id id, __itt_id parent,
                                   __itt_string_handle *s);
NPUPROF_SHIM void __itt_task_end(const __itt_domain *d);
NPUPROF_SHIM void __itt_task_begin_overlapped(const __itt_domain *d, __itt_id id, __itt_id parent,
                                               __itt_string_handle *s);
NPUPROF_SHIM void __itt_task_end_overlapped(const __itt_domain *d, __itt_id id);
NPUPROF_SHIM void __itt_frame_begin_v3(const __itt_domain *d, __itt_id *id);
NPUPROF_SHIM void __itt_frame_end_v3(const __itt_domain *d, __itt_id *id);
NPUPROF_SHIM void __itt_frame_submit_v3(const __itt_domain *d, __itt_id *id, __itt_timestamp begin,
                                         __itt_timestamp end);
NPUPROF_SHIM void __itt_marker(const __itt_domain *d, __itt_id id, __itt_string_handle *s, __itt_scope scope);
NPUPROF_SHIM void __itt_metadata_add(const __itt_domain *d, __itt_id id, __itt_string_handle *key,
                                      __itt_metadata_type type, size_t count, void *data);
NPUPROF_SHIM void __itt_metadata_str_add(const __itt_domain *d, __itt_id id, __itt_string_handle *key,
                                          const char *data, size_t length);
NPUPROF_SHIM __itt_counter __itt_counter_create_typed(const char *name, const char *domain,
                                                       __itt_metadata_type type);
NPUPROF_SHIM void __itt_counter_set_value(__itt_counter c, void *value);
NPUPROF_SHIM void __itt_counter_inc_delta(__itt_counter c, unsigned long long delta);
NPUPROF_SHIM void __itt_formatted_metadata_add(const __itt_domain *d, __itt_string_handle *format, ...);
NPUPROF_SHIM void __itt_counter_inc_delta_v3(const __itt_domain *d, __itt_string_handle *s,
                                              unsigned long long delta);
NPUPROF_SHIM __itt_event __itt_event_create(const char *name, int length);
NPUPROF_SHIM int __itt_event_start(__itt_event event);
NPUPROF_SHIM int __itt_event_end(__itt_event event);
#ifdef __cplusplus
}
#endif

#define __itt_region_begin(d, id, parent, s) __itt_task_begin_overlapped(d, id, parent, s)
#define __itt_region_end(d, id) __itt_task_end_overlapped(d, id)
#define __itt_counter_create(name, domain) __itt_counter_create_typed(name, domain, __itt_metadata_u64)
#define __itt_counter_inc(c) __itt_counter_inc_delta(c, 1)
#define __itt_counter_dec(c) __itt_counter_inc_delta(c, ~0ull)
#define __itt_counter_dec_delta(c, delta) __itt_counter_inc_delta(c, 0 - (unsigned long long)(delta))
#define __itt_counter_inc_v3(d, s) __itt_counter_inc_delta_v3(d, s, 1)
#define __itt_counter_dec_v3(d, s) __itt_counter_inc_delta_v3(d, s, ~0ull)
#define __itt_counter_dec_delta_v3(d, s, delta) \
    __itt_counter_inc_delta_v3(d, s, 0 - (unsigned long long)(delta))
#define __itt_counter_destroy(c) ((void)(c))
#define __itt_id_create(d, id) ((void)(d), (void)(id))
#define __itt_id_destroy(d, id) ((void)(d), (void)(id))
#define __itt_thread_set_name(name) PROF_THREAD_NAME(name)
#define __itt_thread_ignore() ((void)0)
#define __itt_get_timestamp() ((__itt_timestamp)npuprof_now_ns())
#define __itt_pause() ((void)npuprof_pause())
#define __itt_resume() ((void)npuprof_resume())
#define __itt_detach() ((void)npuprof_stop())
/* Counted alone. Their arguments are not evaluated. */
#define __itt_relation_add(...) ((void)npuprof_shim_not_held("itt.relation"))
#define __itt_relation_add_to_current(...) ((void)npuprof_shim_not_held("itt.relation"))
#define __itt_task_group(...) ((void)npuprof_shim_not_held("itt.group"))
#define __itt_sync_create(...) ((void)npuprof_shim_not_held("itt.sync"))
#define __itt_sync_rename(...) ((void)npuprof_shim_not_held("itt.sync"))
#define __itt_sync_destroy(...) ((void)npuprof_shim_not_held("itt.sync"))
#define __itt_sync_prepare(...) ((void)npuprof_shim_not_held("itt.sync"))
#define __itt_sync_cancel(...) ((void)npuprof_shim_not_held("itt.sync"))
#define __itt_sync_acquired(...) ((void)npuprof_shim_not_held("itt.sync"))
#define __itt_sync_releasing(...) ((void)npuprof_shim_not_held("itt.sync"))
#define __itt_heap_function_create(...) npuprof_shim_not_held("itt.memory")
#define __itt_heap_allocate_begin(...) ((void)npuprof_shim_not_held("itt.memory"))
#define __itt_heap_allocate_end(...) ((void)npuprof_shim_not_held("itt.memory"))
#define __itt_heap_free_begin(...) ((void)npuprof_shim_not_held("itt.memory"))
#define __itt_heap_free_end(...) ((void)npuprof_shim_not_held("itt.memory"))
#define __itt_stack_caller_create() npuprof_shim_not_held("itt.stitch")
#define __itt_stack_caller_destroy(id) ((void)npuprof_shim_not_held("itt.stitch"))
#define __itt_stack_callee_enter(id) ((void)npuprof_shim_not_held("itt.stitch"))
#define __itt_stack_callee_leave(id) ((void)npuprof_shim_not_held("itt.stitch"))
#endif /* NPUPROF_ITT_H */
