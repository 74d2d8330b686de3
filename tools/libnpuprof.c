/* libnpuprof: npuprof as a shared library, for languages that have no macros. `make tools` builds it.
   SPDX-License-Identifier: MIT

   It holds the code of both headers, and one arena for the whole process: shared libraries that are linked
   with it record into that arena, too (examples/stack). Beside the functions of the headers it has those
   below, one for each macro that records. All strings are copied. tools/npuprof/recording/ is its user from
   Python. */
#define NPUPROF_IMPLEMENTATION
#include "../npuprof.h"
#include "../npuprof_npu.h"

#include <stdlib.h>
#include <string.h>

uint32_t npuprof_begin(int level, uint32_t kind, const char *category, const char *name,
                       const npuprof_arg *args, size_t count);
void npuprof_end(uint32_t token);
void npuprof_add_args(const npuprof_arg *args, size_t count);
void npuprof_flow(bool out, uint64_t id);
void npuprof_memory(const char *device, uint64_t used_bytes, uint64_t allocated_bytes, const char *tag);
void npuprof_memory_change(const char *device, bool is_free, uint64_t bytes, const char *tag);
void npuprof_thread_name(const char *name);
npuprof_result npuprof_setup(size_t arena_bytes, const char *arena_path, const char *when_full,
                             const char *stream_path);
int npuprof_level(void);
const char *npuprof_stat(uint32_t n, uint64_t *value);

/* PROF_SCOPE and its siblings. kind: NPUPROF_KIND_SPAN, _RECORD, _WARM_UP, _INFERENCE or _OPERATOR. The token
   ends the span, on this thread; 0: not recorded. */
uint32_t npuprof_begin(int level, uint32_t kind, const char *category, const char *name,
                       const npuprof_arg *args, size_t count)
{
    uint32_t (*const begins)(uint32_t) = NPUPROF_LOAD_ACQUIRE_(&npuprof_record_hooks_.begins);
    const bool is_boundary = kind == NPUPROF_KIND_RECORD || kind == NPUPROF_KIND_INFERENCE;
    if (begins && is_boundary && NPUPROF_OPEN_(NPUPROF_GATE_BOUNDARIES_)) {
        const uint32_t as = begins(kind);
        const npuprof_token_ token =
            as ? npuprof_record_begin_kind_(as, category, name, npuprof_args_(args, count)) : 0;
        return token ? npuprof_record_mark_boundary_(token)
                     : NPUPROF_TOKEN_BOUNDARY_ | (npuprof_token_)(kind == NPUPROF_KIND_RECORD);
    }
    if (!NPUPROF_OPEN_(level) || kind < NPUPROF_KIND_SPAN || kind > NPUPROF_KIND_OPERATOR) return 0;
    return npuprof_record_begin_kind_(kind, category, name, npuprof_args_(args, count));
}

void npuprof_end(uint32_t token)
{
    if (token) npuprof_close_(token);
}

/* PROF_RESULT: more arguments of the innermost span that is open on this thread. Why keys of its own: those
   of a macro remember the addresses of their texts, and here an address has another text the next time. */
void npuprof_add_args(const npuprof_arg *args, size_t count)
{
    npuprof_keys_ keys;
    memset(&keys, 0, sizeof keys);
    npuprof_result_(&keys, npuprof_args_(args, count));
}

/* PROF_FLOW_OUT and PROF_FLOW_IN, PROF_MEMORY, PROF_ALLOC and PROF_FREE, PROF_THREAD_NAME. */
void npuprof_flow(bool out, uint64_t id)
{
    npuprof_record_emit_named_(out ? NPUPROF_KIND_FLOW_OUT : NPUPROF_KIND_FLOW_IN, NULL, "flow", id,
                               PROF_NO_ARGS);
}

void npuprof_memory(const char *device, uint64_t used_bytes, uint64_t allocated_bytes, const char *tag)
{
    npuprof_device pool = { device, NULL, NULL, false };
    PROF_MEMORY(device ? &pool : NULL, used_bytes, allocated_bytes, tag);
}

void npuprof_memory_change(const char *device, bool is_free, uint64_t bytes, const char *tag)
{
    npuprof_device pool = { device, NULL, NULL, false };
    if (is_free) PROF_FREE(device ? &pool : NULL, bytes, tag);
    else PROF_ALLOC(device ? &pool : NULL, bytes, tag);
}

void npuprof_thread_name(const char *name)
{
    PROF_THREAD_NAME(name);
}

/* npuprof_init() by fields. arena_bytes: 0, or of memory that the library takes from the heap and keeps.
   when_full: NULL, "keep-oldest", "keep-newest" or "stream" (into stream_path). */
npuprof_result npuprof_setup(size_t arena_bytes, const char *arena_path, const char *when_full,
                             const char *stream_path)
{
    static const char *const policies[] = { "keep-oldest", "keep-newest", "stream" };
    npuprof_desc desc = { 0 };
    desc.arena_bytes = arena_bytes;
    desc.arena_path = arena_path;
    desc.output_path = stream_path;
    if (when_full) {
        while (desc.when_full < 3 && strcmp(policies[desc.when_full], when_full) != 0) desc.when_full++;
        if (desc.when_full == 3) return NPUPROF_ERR_ARGUMENT;
    }
    if (arena_bytes && !arena_path) {
        desc.arena = calloc(1, arena_bytes);       /* touched only as it fills */
        if (!desc.arena) return NPUPROF_ERR_ARENA_SIZE;
    }
    const npuprof_result result = npuprof_init(&desc);
    if (result != NPUPROF_OK) free(desc.arena);
    return result;
}

/* The level up to which the gate is open; below 1: nothing is recorded now. */
int npuprof_level(void)
{
    return NPUPROF_LOAD_(&npuprof_gate_);
}

/* The n-th count of npuprof_get_stats() and its name; NULL after the last. n = 0 takes the counts. */
const char *npuprof_stat(uint32_t n, uint64_t *value)
{
#define NPUPROF_TEXT_(name, text, whole) text,
    static const char *const names[] = { "recorded", "lost", "bytes_used", "bytes_total", "threads",
                                         NPUPROF_LOSSES(NPUPROF_TEXT_) NULL };
#undef NPUPROF_TEXT_
    static npuprof_stats stats;
    if (n == 0) npuprof_get_stats(&stats);
    const uint64_t whole[] = { stats.recorded, stats.lost, stats.bytes_used, stats.bytes_total,
                               stats.threads };
    if (n < 5) *value = whole[n];
    else if (n < 5 + NPUPROF_LOST_COUNT) *value = stats.lost_by_cause[n - 5];
    else return NULL;
    return names[n];
}
