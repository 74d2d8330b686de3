#pragma once   /* SPDX-License-Identifier: MIT */
#include "names.h"

#include <dlfcn.h>
#include <stdarg.h>

/* ITT. Each library of a program that uses it has a part of ITT of its own, and asks for this library once:
   __itt_api_init() gets its list of functions, and puts in those below.

   Owns nothing. Domains and texts that were made before come from the program: what is needed of a text is
   kept in its extra2; that of a domain is read at each call.
   Of a task, the domain does not matter when it ends: tasks end in the order of the thread.
   ITT's own lock is held during __itt_api_init(): it may call nothing of ITT. */

static const char itt_api[] = "ITT";

typedef struct itt_id { uint64_t d1, d2, d3; } itt_id;
typedef struct itt_entry {
    const char *name;
    void **function;
    void *init, *none;
    int group;
} itt_entry;

/* Of a library's part of ITT, as far as it is the same in all versions. */
typedef struct itt_global {
    unsigned char magic[8];
    unsigned long version[3];
    volatile long initialized, mutex_initialized, counter;
    pthread_mutex_t mutex;
    void *library, *error_handler;
    const char **path;
    itt_entry *functions;
} itt_global;

/* ---- Names and ids */

static bool itt_is_null(itt_id id) { return !(id.d1 | id.d2 | id.d3); }
static uint64_t itt_key(itt_id id) { return collect_mix(collect_mix(id.d1, id.d2), id.d3 ^ 0x495454); }
static const char *itt_category(const itt_domain *domain) { return domain ? domain->name : NULL; }

/* 0: of the null id alone. The third word of an id is left to the future, and always 0. */
static uint64_t itt_fold(itt_id id) { return itt_is_null(id) ? 0 : (itt_key(id) | 1) << 32; }

static void itt_set_innermost(uint64_t folded) { collect_here = (collect_here & UINT32_MAX) | folded; }

/* The name of a text of this or of another library's part of ITT. */
static collect_name *itt_name(itt_handle *text)
{
    if (!text || !text->text) return NULL;
    collect_name *n = (collect_name *)__atomic_load_n(&text->extra2, __ATOMIC_ACQUIRE);
    if (n) return n;
    n = collect_intern(COLLECT_TEXT_USE, NULL, text->text, itt_api);
    if (n) __atomic_store_n(&text->extra2, (void *)n, __ATOMIC_RELEASE);
    return n;
}

static const char *itt_text(const itt_handle *text) { return text && text->text ? text->text : "(no name)"; }

static itt_domain *itt_domain_create(const char *name)
{
    collect_name *const n = collect_intern(COLLECT_DOMAIN, NULL, name ? name : "", itt_api);
    return n ? &n->face.domain : NULL;
}

static itt_handle *itt_string_handle_create(const char *text)
{
    collect_name *const n = collect_intern(COLLECT_TEXT_USE, NULL, text ? text : "", itt_api);
    return n ? &n->face.handle : NULL;
}

/* ---- Tasks, and what has a begin and an end elsewhere */

static void itt_begin(const itt_domain *domain, itt_id id, itt_id parent, collect_name *n, const char *text)
{
    static npuprof_keys_ any = { .file = itt_api, .kind = NPUPROF_KIND_SPAN };
    collect_begin(n, &any, itt_category(domain), text);
    itt_set_innermost(itt_fold(id));
    if (id.d2) PROF_RESULT(PROF_UINT("id", id.d1), PROF_UINT("id.extra", id.d2));
    else if (id.d1) PROF_RESULT(PROF_UINT("id", id.d1));
    if (parent.d2) PROF_RESULT(PROF_UINT("parent", parent.d1), PROF_UINT("parent.extra", parent.d2));
    else if (parent.d1) PROF_RESULT(PROF_UINT("parent", parent.d1));
}

static void itt_task_begin(const itt_domain *domain, itt_id id, itt_id parent, itt_handle *name)
{
    itt_begin(domain, id, parent, itt_name(name), itt_text(name));
}

/* The task's name is that of the function, or where it lies in its file. */
static void itt_task_begin_fn(const itt_domain *domain, itt_id id, itt_id parent, void *function)
{
    char text[320];
    Dl_info of;
    const bool known = dladdr(function, &of) != 0;
    if (known && of.dli_sname) snprintf(text, sizeof text, "%s", of.dli_sname);
    else if (known)
        snprintf(text, sizeof text, "%s+0x%zx", of.dli_fname,
                 (size_t)((char *)function - (char *)of.dli_fbase));
    else snprintf(text, sizeof text, "%p", function);
    itt_begin(domain, id, parent, NULL, text);
}

static void itt_task_end(const itt_domain *domain)
{
    (void)domain;
    itt_set_innermost(0);
    PROF_END();
}

static void itt_begin_overlapped(const itt_domain *domain, itt_id id, itt_id parent, itt_handle *name)
{
    collect_async(itt_category(domain), itt_text(name), itt_key(id), itt_api);
    if (!itt_is_null(parent)) (void)collect_lose(COLLECT_ITT_PARENT);
}

/* Those of oneTBB have no name. */
static void itt_region_begin(const itt_domain *domain, itt_id id, itt_id parent, itt_handle *name)
{
    static itt_handle region = { .text = "region" };
    itt_begin_overlapped(domain, id, parent, name ? name : &region);
}

static void itt_end_overlapped(const itt_domain *domain, itt_id id)
{
    (void)domain;
    npuprof_async_end(itt_key(id));
}

static const char *itt_frame_name(const itt_domain *domain)
{
    return domain && domain->name ? domain->name : "frame";
}

/* A frame without an id: one of its domain is open at a time. */
static uint64_t itt_frame_key(const itt_domain *domain, const itt_id *id)
{
    const itt_id own = { (uintptr_t)domain, 0, 1 };
    return itt_key(id ? *id : own);
}

/* Its name is that of the domain. */
static void itt_frame_begin(const itt_domain *domain, const itt_id *id)
{
    collect_async("ITT frame", itt_frame_name(domain), itt_frame_key(domain, id), itt_api);
}

static void itt_frame_end(const itt_domain *domain, const itt_id *id)
{
    npuprof_async_end(itt_frame_key(domain, id));
}

static uint64_t itt_get_timestamp(void) { return (uint64_t)npuprof_now_ns(); }

/* begin and end are of itt_get_timestamp(); all ones: now. */
static void itt_frame_submit(const itt_domain *domain, const itt_id *id, uint64_t begin, uint64_t end)
{
    const int64_t now = npuprof_now_ns(), from = begin == UINT64_MAX ? now : (int64_t)begin;
    (void)id;
    npuprof_span(itt_frame_name(domain), "ITT frame", itt_frame_name(domain), from,
                 end == UINT64_MAX ? now : (int64_t)end, PROF_NO_ARGS);
}

static void itt_marker(const itt_domain *domain, itt_id id, itt_handle *name, int scope)
{
    const npuprof_arg args[] = { PROF_INT("scope", scope), PROF_UINT("id", id.d1) };
    const npuprof_args list = npuprof_args_(args, itt_is_null(id) ? 1 : 2);
    collect_instant(itt_category(domain), itt_text(name), list, itt_api);
}

static void itt_thread_set_name(const char *name)
{
    if (name) PROF_THREAD_NAME(name);
}

static int itt_thr_name_set(const char *name, int length)
{
    (void)length;
    itt_thread_set_name(name);
    return 0;
}

static void itt_pause(void) { (void)npuprof_pause(); }
static void itt_resume(void) { (void)npuprof_resume(); }

/* ---- Metadata: arguments of the task */

/* One value of a type of ITT's: u64, i64, u32, i32, u16, i16, float, double. False: no such type. */
static bool itt_value(npuprof_arg *arg, int type, const void *data, size_t n)
{
    arg->type = type < 1 || type > 8 ? 0 : type > 6 ? NPUPROF_ARG_REAL : type & 1 ? NPUPROF_ARG_UINT
        : NPUPROF_ARG_INT;
    if (type == 1 || type == 2) arg->value.u = ((const uint64_t *)data)[n];
    else if (type == 3) arg->value.u = ((const uint32_t *)data)[n];
    else if (type == 4) arg->value.i = ((const int32_t *)data)[n];
    else if (type == 5) arg->value.u = ((const uint16_t *)data)[n];
    else if (type == 6) arg->value.i = ((const int16_t *)data)[n];
    else if (type == 7) arg->value.d = (double)((const float *)data)[n];
    else if (type == 8) arg->value.d = ((const double *)data)[n];
    return arg->type != 0;
}

/* Adds an argument to the innermost task, if the id is its, or null. Else it is counted. */
static void itt_add(itt_id id, itt_handle *key, const npuprof_arg *value)
{
    collect_name *const n = itt_name(key);
    const bool mine = itt_is_null(id) || itt_fold(id) == (collect_here & ~(uint64_t)UINT32_MAX);
    if (!n || !mine) {
        (void)collect_lose(COLLECT_ITT_METADATA);
        return;
    }
    npuprof_arg arg = *value;
    arg.key = n->text;
    collect_result(n, npuprof_args_(&arg, 1));
}

/* Several values become one text, "1;2;3". */
static void itt_metadata_add(const itt_domain *domain, itt_id id, itt_handle *key, int type, size_t count,
                             void *data)
{
    npuprof_arg one;
    char text[1100];
    size_t used = 0;
    (void)domain;
    if (!data || !count || !itt_value(&one, type, data, 0)) {
        (void)collect_lose(COLLECT_ITT_METADATA);
        return;
    }
    for (size_t i = 0; count > 1 && i < count && used < 1060; i++) {
        (void)itt_value(&one, type, data, i);
        char *const at = text + used, *const between = i ? ";" : "";
        const size_t room = sizeof text - used;
        if (one.type == NPUPROF_ARG_REAL)
            used += (size_t)snprintf(at, room, "%s%.17g", between, one.value.d);
        else if (one.type == NPUPROF_ARG_INT)
            used += (size_t)snprintf(at, room, "%s%lld", between, (long long)one.value.i);
        else used += (size_t)snprintf(at, room, "%s%llu", between, (unsigned long long)one.value.u);
    }
    if (count > 1) one = PROF_STR("", text);
    itt_add(id, key, &one);
}

/* A length of -1: to the text's 0. Why more than npuprof.h keeps of a text: it then marks that it cut it. */
static void itt_metadata_str_add(const itt_domain *domain, itt_id id, itt_handle *key, const char *data,
                                 size_t length)
{
    char text[1100];
    const size_t kept = !data ? 0 : strnlen(data, length < sizeof text - 1 ? length : sizeof text - 1);
    (void)domain;
    if (kept) memcpy(text, data, kept);
    text[kept] = 0;
    const npuprof_arg one = PROF_STR("", text);
    itt_add(id, key, &one);
}

static void itt_formatted_metadata_add(const itt_domain *domain, itt_handle *format, ...)
{
    static itt_handle key = { .text = "metadata" };
    const itt_id innermost = { 0, 0, 0 };
    char text[1100];
    va_list values;
    (void)domain;
    if (!format || !format->text) return;
    va_start(values, format);
    vsnprintf(text, sizeof text, format->text, values);
    va_end(values);
    const npuprof_arg one = PROF_STR("", text);
    itt_add(innermost, &key, &one);
}

/* ---- Counters */

/* The counter's kind of record is in `use`, its type of ITT's in `number`. Its name begins with the domain:
   the outputs have no category of a counter. */
static collect_name *itt_counter_of(const char *name, const char *domain, int type)
{
    char text[512];
    const uint32_t kind = type > 6 ? NPUPROF_KIND_COUNTER_REAL : type & 1 ? NPUPROF_KIND_COUNTER_UINT
        : NPUPROF_KIND_COUNTER_INT;
    snprintf(text, sizeof text, "%s%s%s", domain ? domain : "", domain ? ": " : "", name ? name : "");
    collect_name *const n = collect_intern(kind, domain, text, itt_api);
    if (n) __atomic_store_n(&n->number, (uint32_t)type, __ATOMIC_RELAXED);
    return n;
}

static collect_name *itt_counter_create(const char *name, const char *domain)
{
    return itt_counter_of(name, domain, 1);
}

static collect_name *itt_counter_create_typed(const char *name, const char *domain, int type)
{
    return itt_counter_of(name, domain, type < 1 || type > 8 ? 1 : type);
}

static collect_name *itt_counter_create_v3(const itt_domain *domain, const char *name, int type)
{
    return itt_counter_create_typed(name, itt_category(domain), type);
}

static void itt_count(collect_name *n, uint64_t delta)
{
    if (!n || n->self != n) (void)collect_lose(COLLECT_ITT_OTHER);
    else collect_event(n, __atomic_add_fetch(&n->value, delta, __ATOMIC_RELAXED));
}

static void itt_counter_set_value(collect_name *n, const void *value)
{
    npuprof_arg one;
    const bool ours = n && n->self == n;
    const int type = ours ? (int)__atomic_load_n(&n->number, __ATOMIC_RELAXED) : 0;
    if (!ours || !value || !itt_value(&one, type, value, 0)) {
        (void)collect_lose(COLLECT_ITT_OTHER);
        return;
    }
    __atomic_store_n(&n->value, one.value.u, __ATOMIC_RELAXED);
    collect_event(n, one.value.u);
}

static void itt_counter_inc(collect_name *n) { itt_count(n, 1); }
static void itt_counter_dec(collect_name *n) { itt_count(n, UINT64_MAX); }
static void itt_counter_inc_delta(collect_name *n, uint64_t delta) { itt_count(n, delta); }
static void itt_counter_dec_delta(collect_name *n, uint64_t delta) { itt_count(n, 0 - delta); }

/* Those that are named at each call count from 0, and may become negative. */
static void itt_counter_inc_delta_v3(const itt_domain *domain, itt_handle *name, uint64_t delta)
{
    itt_count(itt_counter_of(itt_text(name), itt_category(domain), 2), delta);
}

static void itt_counter_dec_delta_v3(const itt_domain *domain, itt_handle *name, uint64_t delta)
{
    itt_counter_inc_delta_v3(domain, name, 0 - delta);
}

static void itt_counter_inc_v3(const itt_domain *domain, itt_handle *name)
{
    itt_counter_inc_delta_v3(domain, name, 1);
}

static void itt_counter_dec_v3(const itt_domain *domain, itt_handle *name)
{
    itt_counter_inc_delta_v3(domain, name, UINT64_MAX);
}

/* ---- What is only counted. Of the arguments these functions look at none, so they fit all calls; NULL is
   also the 0 of those that return a number. */

static void *itt_no_clock(void) { return collect_lose(COLLECT_ITT_CLOCK); }
static void *itt_no_group(void) { return collect_lose(COLLECT_ITT_GROUP); }
static void *itt_no_metadata(void) { return collect_lose(COLLECT_ITT_METADATA); }
static void *itt_no_mark(void) { return collect_lose(COLLECT_ITT_MARK); }
static void *itt_no_memory(void) { return collect_lose(COLLECT_ITT_MEMORY); }
static void *itt_no_model(void) { return collect_lose(COLLECT_ITT_MODEL); }
static void *itt_no_relation(void) { return collect_lose(COLLECT_ITT_RELATION); }
static void *itt_no_stitch(void) { return collect_lose(COLLECT_ITT_STITCH); }
static void *itt_no_sync(void) { return collect_lose(COLLECT_ITT_SYNC); }
static void *itt_no_other(void) { return collect_lose(COLLECT_ITT_OTHER); }

/* What these functions would make. Why not NULL: libomp of LLVM takes that for a fault and aborts. Nothing is
   lost before it is used, and then that is counted. */
static void *itt_object(void)
{
    static uint64_t object[64];
    return object;
}

/* ---- The list of functions */

typedef struct itt_known { const char *name; void (*function)(void); } itt_known;
#define ITT_AS(f) ((void (*)(void))(f))
#define ITT_KNOWN(name) { #name, ITT_AS(itt_##name) }
static const itt_known itt_calls[] = {
    ITT_KNOWN(domain_create), ITT_KNOWN(string_handle_create), ITT_KNOWN(task_begin),
    ITT_KNOWN(task_begin_fn), ITT_KNOWN(task_end), { "task_begin_overlapped", ITT_AS(itt_begin_overlapped) },
    { "task_end_overlapped", ITT_AS(itt_end_overlapped) }, ITT_KNOWN(region_begin),
    { "region_end", ITT_AS(itt_end_overlapped) }, { "frame_begin_v3", ITT_AS(itt_frame_begin) },
    { "frame_end_v3", ITT_AS(itt_frame_end) }, { "frame_submit_v3", ITT_AS(itt_frame_submit) },
    ITT_KNOWN(get_timestamp), ITT_KNOWN(marker), ITT_KNOWN(thread_set_name), ITT_KNOWN(thr_name_set),
    ITT_KNOWN(pause), ITT_KNOWN(resume), ITT_KNOWN(metadata_add), ITT_KNOWN(metadata_str_add),
    ITT_KNOWN(formatted_metadata_add),
    ITT_KNOWN(counter_create), ITT_KNOWN(counter_create_typed), ITT_KNOWN(counter_set_value),
    ITT_KNOWN(counter_create_v3), { "counter_set_value_v3", ITT_AS(itt_counter_set_value) },
    ITT_KNOWN(counter_inc), ITT_KNOWN(counter_dec), ITT_KNOWN(counter_inc_delta),
    ITT_KNOWN(counter_dec_delta), ITT_KNOWN(counter_inc_v3), ITT_KNOWN(counter_dec_v3),
    ITT_KNOWN(counter_inc_delta_v3), ITT_KNOWN(counter_dec_delta_v3),
    /* Nothing is lost: there is nothing to record. */
    { "id_create", NULL }, { "id_destroy", NULL }, { "detach", NULL }, { "enable_attach", NULL },
    { "counter_destroy", NULL }, { "thread_ignore", NULL }, { "thr_ignore", NULL }, { "suppress_push", NULL },
    { "suppress_pop", NULL }, { "suppress_mark_range", NULL }, { "suppress_clear_range", NULL },
    { "api_version", NULL }, { "state_get", NULL }, { "state_set", NULL }, { "obj_mode_set", NULL },
    { "thr_mode_set", NULL }, { "module_load", NULL }, { "module_unload", NULL },
    { "module_load_with_sections", NULL }, { "module_unload_with_sections", NULL },
};
/* By how their names begin. */
static const itt_known itt_counted[] = {
    { "sync_", ITT_AS(itt_no_sync) }, { "fsync_", ITT_AS(itt_no_sync) },
    { "notify_sync", ITT_AS(itt_no_sync) }, { "heap_", ITT_AS(itt_no_memory) },
    { "memory_", ITT_AS(itt_no_memory) }, { "model_", ITT_AS(itt_no_model) },
    { "mark", ITT_AS(itt_no_mark) }, { "event_", ITT_AS(itt_no_mark) },
    { "stack_", ITT_AS(itt_no_stitch) }, { "task_group", ITT_AS(itt_no_group) },
    { "set_track", ITT_AS(itt_no_group) }, { "metadata_", ITT_AS(itt_no_metadata) },
    { "clock_", ITT_AS(itt_no_clock) }, { "relation_", ITT_AS(itt_no_relation) },
};

/* What a function of that name does; NULL: nothing. */
static void (*itt_function(const char *name))(void)
{
    const size_t length = strlen(name);
    for (size_t i = 0; i < sizeof itt_calls / sizeof *itt_calls; i++)
        if (strcmp(itt_calls[i].name, name) == 0) return itt_calls[i].function;
    if (strstr(name, "_create") && strncmp(name, "sync_", 5) != 0) return ITT_AS(itt_object);
    if (length > 3 && strcmp(name + length - 3, "_ex") == 0) return ITT_AS(itt_no_clock);
    for (size_t i = 0; i < sizeof itt_counted / sizeof *itt_counted; i++) {
        const itt_known *const k = &itt_counted[i];
        if (strncmp(k->name, name, strlen(k->name)) == 0) return k->function;
    }
    return ITT_AS(itt_no_other);
}

/* Why another name in C: two underscores are the compiler's. */
__attribute__((visibility("default"))) void npuprof_collect_itt(itt_global *global, int groups)
    __asm__("__itt_api_init");

void npuprof_collect_itt(itt_global *global, int groups)
{
    static const unsigned char magic[8] = { 0xED, 0xAB, 0xAB, 0xEC, 0x0D, 0xEE, 0xDA, 0x30 };
    static const char prefix[] = "__itt_";
    (void)groups;
    if (!global || memcmp(global->magic, magic, sizeof magic) != 0) {
        (void)collect_lose(COLLECT_ITT_STUB);
        return;
    }
    for (itt_entry *e = global->functions; e && e->name; e++) {
        const char *const name = e->name + (strncmp(e->name, prefix, 6) == 0 ? 6 : 0);
        void (*const function)(void) = itt_function(name);
        if (function) memcpy(e->function, &function, sizeof function);
        else *e->function = e->none;
    }
}
