/* npuprof_shims.c - what the headers beside it call. Compile it once into the program. It holds the code of
   npuprof.h, too, unless NPUPROF_SHIMS_ONLY is defined: then another file of the program has it.
   README.md says more.
   SPDX-License-Identifier: MIT */
#ifndef _DEFAULT_SOURCE
#define _DEFAULT_SOURCE 1        /* syscall */
#endif
#ifndef NPUPROF_SHIMS_ONLY
#define NPUPROF_IMPLEMENTATION
#endif
#include "npuprof_nvtx.h"
#include "npuprof_itt.h"
#include "npuprof_tracy.h"
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <sys/syscall.h>

/* ---- For all: texts */

/* A number that differs for other a and b, for npuprof_async_begin(). */
static inline uint64_t npuprof_shim_mix(uint64_t a, uint64_t b)
{
    a ^= b + UINT64_C(0x9E3779B97F4A7C15) + (a << 6) + (a >> 2);
    a = (a ^ a >> 30) * UINT64_C(0xBF58476D1CE4E5B9);
    return a ^ a >> 31;
}

/* A text that is given with its length, in a buffer of NPUPROF_SHIM_TEXT bytes. A length of -1, as in ITT: to
   the text's 0. Why so long: npuprof keeps less, and then marks that it cut. */
enum { NPUPROF_SHIM_TEXT = 1100 };
static inline const char *npuprof_shim_text(const char *data, size_t length, char *buffer)
{
    const size_t most = length < NPUPROF_SHIM_TEXT ? length : NPUPROF_SHIM_TEXT - 1;
    const size_t kept = data ? strnlen(data, most) : 0;
    if (kept) memcpy(buffer, data, kept);
    buffer[kept] = 0;
    return buffer;
}

const char *npuprof_shim_wide(const wchar_t *wide)
{
    static __thread char text[NPUPROF_SHIM_TEXT];
    static const unsigned char first[] = { 0, 0xC0, 0xE0, 0xF0 };
    char *at = text;
    for (; wide && *wide && (size_t)(at - text) + 5 < sizeof text; wide++) {
        const uint32_t c = (uint32_t)*wide > 0x10FFFF ? 0xFFFD : (uint32_t)*wide;
        const int more = c < 0x80 ? 0 : c < 0x800 ? 1 : c < 0x10000 ? 2 : 3;
        *at++ = (char)(first[more] | c >> 6 * more);
        for (int i = more - 1; i >= 0; i--) *at++ = (char)(0x80 | (c >> 6 * i & 0x3F));
    }
    *at = 0;
    return text;
}

typedef struct npuprof_shim_name {
    struct npuprof_shim_name *next;
    void (*kind)(void *, const char *);
    void *object;
    const char *text;                    /* behind this struct */
} npuprof_shim_name;

void *npuprof_shim_object(const char *text, size_t bytes, void (*init)(void *, const char *))
{
    static npuprof_shim_name *rows[1024];
    const size_t length = strlen(text ? text : (text = "")), begin = sizeof(npuprof_shim_name) + length + 1;
    uint32_t hash = 2166136261u;
    for (const char *c = text; *c; c++) hash = (hash ^ (unsigned char)*c) * 16777619u;
    npuprof_shim_name **const row = &rows[(hash ^ hash >> 16) % 1024], *made = NULL;
    npuprof_shim_name *first = __atomic_load_n(row, __ATOMIC_ACQUIRE);
    for (;;) {
        for (npuprof_shim_name *n = first; n; n = n->next)
            if (n->kind == init && strcmp(n->text, text) == 0) {
                free(made);
                return n->object;
            }
        if (!made) {
            const size_t at = (begin + 15) / 16 * 16;
            made = (npuprof_shim_name *)calloc(1, at + bytes);
            if (!made) return NULL;
            made->text = (const char *)memcpy(made + 1, text, length);
            made->kind = init;
            made->object = init ? (char *)made + at : (char *)(made + 1);
            if (init) init(made->object, made->text);
        }
        made->next = first;
        if (__atomic_compare_exchange_n(row, &first, made, false, __ATOMIC_RELEASE, __ATOMIC_ACQUIRE))
            return made->object;
    }
}

/* ---- Counts */

typedef struct npuprof_shim_count {
    const char *what;
    uint64_t count;
    struct npuprof_shim_count *next;    /* of those that are not 0 */
} npuprof_shim_count;
static npuprof_shim_count *npuprof_shim_counts;

static void npuprof_shim_say(const npuprof_shim_count *c)
{
    char key[80], text[24];
    snprintf(key, sizeof key, "npuprof.collect.not_held.%s", c->what);
    snprintf(text, sizeof text, "%llu", (unsigned long long)__atomic_load_n(&c->count, __ATOMIC_RELAXED));
    (void)npuprof_metadata(key, text);
}

static void npuprof_shim_say_all(void)
{
    const npuprof_shim_count *c = __atomic_load_n(&npuprof_shim_counts, __ATOMIC_ACQUIRE);
    for (; c; c = c->next) npuprof_shim_say(c);
}

static void npuprof_shim_name_count(void *count, const char *what)
{
    ((npuprof_shim_count *)count)->what = what;
}

/* Said at powers of two, and exactly before the trace that is written at exit. */
void *npuprof_shim_not_held(const char *what)
{
    npuprof_shim_count *const c =
        (npuprof_shim_count *)npuprof_shim_object(what, sizeof *c, npuprof_shim_name_count);
    const uint64_t count = c ? __atomic_add_fetch(&c->count, 1, __ATOMIC_RELAXED) : 0;
    if (count == 1) {
        c->next = __atomic_load_n(&npuprof_shim_counts, __ATOMIC_RELAXED);
        while (!__atomic_compare_exchange_n(&npuprof_shim_counts, &c->next, c, false, __ATOMIC_RELEASE,
                                            __ATOMIC_RELAXED)) { }
        if (!c->next) (void)atexit(npuprof_shim_say_all);
    }
    if (count && (count & (count - 1)) == 0) npuprof_shim_say(c);
    return NULL;
}

/* ---- NVTX */

/* The domains of the innermost 16 ranges, four bits each: to see those that do not nest. */
static __thread uint64_t npuprof_nvtx_open;
static uint64_t npuprof_nvtx_bits(nvtxDomainHandle_t domain)
{
    return domain ? 1 + ((uintptr_t)domain >> 4) % 15 : 0;
}

/* Does the struct reach behind this field? Why: older programs have shorter ones. */
#define NPUPROF_NVTX_HAS(a, field) ((a)->size >= offsetof(nvtxEventAttributes_t, field) + sizeof (a)->field)

const nvtxEventAttributes_t *npuprof_nvtx_with(const char *text)
{
    static __thread nvtxEventAttributes_t a;
    a.size = NVTX_EVENT_ATTRIB_STRUCT_SIZE;
    a.messageType = NVTX_MESSAGE_TYPE_ASCII, a.message.ascii = text;
    return &a;
}

static const char *npuprof_nvtx_text(const nvtxEventAttributes_t *a)
{
    if (!NPUPROF_NVTX_HAS(a, message) || !a->message.ascii) return "(no message)";
    if (a->messageType == NVTX_MESSAGE_TYPE_UNICODE) return npuprof_shim_wide(a->message.unicode);
    return a->messageType == NVTX_MESSAGE_UNKNOWN ? "(no message)" : a->message.ascii;   /* or registered */
}

/* Category and payload, at most two arguments. Returns how many. */
static size_t npuprof_nvtx_args(const nvtxEventAttributes_t *a, npuprof_arg *args)
{
    size_t n = 0;
    if (NPUPROF_NVTX_HAS(a, category) && a->category) args[n++] = PROF_UINT("category", a->category);
    switch (NPUPROF_NVTX_HAS(a, payload) ? a->payloadType : NVTX_PAYLOAD_UNKNOWN) {
    case NVTX_PAYLOAD_UNKNOWN: return n;
    case NVTX_PAYLOAD_TYPE_UNSIGNED_INT64: args[n++] = PROF_UINT("payload", a->payload.ullValue); return n;
    case NVTX_PAYLOAD_TYPE_INT64: args[n++] = PROF_INT("payload", a->payload.llValue); return n;
    case NVTX_PAYLOAD_TYPE_DOUBLE: args[n++] = PROF_REAL("payload", a->payload.dValue); return n;
    case NVTX_PAYLOAD_TYPE_UNSIGNED_INT32: args[n++] = PROF_UINT("payload", a->payload.uiValue); return n;
    case NVTX_PAYLOAD_TYPE_INT32: args[n++] = PROF_INT("payload", a->payload.iValue); return n;
    case NVTX_PAYLOAD_TYPE_FLOAT: args[n++] = PROF_REAL("payload", a->payload.fValue); return n;
    default: (void)npuprof_shim_not_held("nvtx.payload"); return n;
    }
}

void nvtxDomainMarkEx(nvtxDomainHandle_t domain, const nvtxEventAttributes_t *a)
{
    npuprof_arg args[2];
    const npuprof_args list = { args, npuprof_nvtx_args(a, args) };
    npuprof_instant((const char *)domain, npuprof_nvtx_text(a), list);
}

int nvtxDomainRangePushEx(nvtxDomainHandle_t domain, const nvtxEventAttributes_t *a)
{
    npuprof_arg args[2];
    PROF_BEGIN((const char *)domain, npuprof_nvtx_text(a));
    const size_t count = npuprof_nvtx_args(a, args);
    if (count == 1) PROF_RESULT(args[0]);
    else if (count) PROF_RESULT(args[0], args[1]);
    npuprof_nvtx_open = npuprof_nvtx_open << 4 | npuprof_nvtx_bits(domain);
    return NVTX_NO_PUSH_POP_TRACKING;
}

int nvtxDomainRangePop(nvtxDomainHandle_t domain)
{
    if ((npuprof_nvtx_open & 15) != npuprof_nvtx_bits(domain)) {
        (void)npuprof_shim_not_held("nvtx.order");
        PROF_RESULT(PROF_BOOL("out_of_order", true));
    }
    npuprof_nvtx_open >>= 4;
    PROF_END();
    return NVTX_NO_PUSH_POP_TRACKING;
}

nvtxRangeId_t nvtxDomainRangeStartEx(nvtxDomainHandle_t domain, const nvtxEventAttributes_t *a)
{
    static uint64_t ranges;
    npuprof_arg args[2];
    const uint64_t range = __atomic_add_fetch(&ranges, 1, __ATOMIC_RELAXED);
    if (npuprof_nvtx_args(a, args)) (void)npuprof_shim_not_held("nvtx.payload");
    npuprof_async_begin((const char *)domain, npuprof_nvtx_text(a), npuprof_shim_mix(range, 'N'));
    return range;
}

void nvtxDomainRangeEnd(nvtxDomainHandle_t domain, nvtxRangeId_t range)
{
    (void)domain;
    npuprof_async_end(npuprof_shim_mix(range, 'N'));
}

void nvtxDomainNameCategoryA(nvtxDomainHandle_t domain, uint32_t category, const char *name)
{
    char key[256];
    snprintf(key, sizeof key, "nvtx.category.%s%s%u", domain ? (const char *)domain : "",
             domain ? "." : "", (unsigned)category);
    if (name) (void)npuprof_metadata(key, name);
}

nvtxResourceHandle_t nvtxDomainResourceCreate(nvtxDomainHandle_t domain, nvtxResourceAttributes_t *a)
{
    (void)domain, (void)a;
    (void)npuprof_shim_not_held("nvtx.object");
    return NULL;
}

void nvtxNameOsThreadA(uint32_t thread, const char *name)
{
    if (!name || thread != (uint32_t)syscall(SYS_gettid)) (void)npuprof_shim_not_held("nvtx.thread");
    else PROF_THREAD_NAME(name);
}

/* ---- ITT */

#define NPUPROF_ITT_ON(d) ((d) && (d)->flags)
static __thread __itt_id npuprof_itt_task;   /* the innermost task's; 0 behind its end */
static void npuprof_itt_domain(void *domain, const char *text)
{
    ((__itt_domain *)domain)->flags = 1;
    ((__itt_domain *)domain)->nameA = text;
}

static void npuprof_itt_handle(void *handle, const char *text)
{
    ((__itt_string_handle *)handle)->strA = text;
}
__itt_domain *__itt_domain_create(const char *name)
{
    return (__itt_domain *)npuprof_shim_object(name, sizeof(__itt_domain), npuprof_itt_domain);
}
__itt_string_handle *__itt_string_handle_create(const char *text)
{
    return (__itt_string_handle *)npuprof_shim_object(text, sizeof(__itt_string_handle), npuprof_itt_handle);
}

static const char *npuprof_itt_text(const __itt_string_handle *s)
{
    return s && s->strA ? s->strA : "(no name)";
}

static uint64_t npuprof_itt_key(__itt_id id)
{
    return npuprof_shim_mix(npuprof_shim_mix(id.d1, id.d2), id.d3);
}

static bool npuprof_itt_is_null(__itt_id id) { return !(id.d1 | id.d2 | id.d3); }

void __itt_task_begin(const __itt_domain *d, __itt_id id, __itt_id parent, __itt_string_handle *s)
{
    if (!NPUPROF_ITT_ON(d)) return;
    PROF_BEGIN(d->nameA, npuprof_itt_text(s));
    npuprof_itt_task = id;
    if (id.d2) PROF_RESULT(PROF_UINT("id", id.d1), PROF_UINT("id.extra", id.d2));
    else if (id.d1) PROF_RESULT(PROF_UINT("id", id.d1));
    if (!npuprof_itt_is_null(parent)) PROF_RESULT(PROF_UINT("parent", parent.d1));
}

void __itt_task_end(const __itt_domain *d)
{
    if (!NPUPROF_ITT_ON(d)) return;
    npuprof_itt_task = __itt_null;
    PROF_END();
}

void __itt_task_begin_overlapped(const __itt_domain *d, __itt_id id, __itt_id parent, __itt_string_handle *s)
{
    if (!NPUPROF_ITT_ON(d)) return;
    npuprof_async_begin(d->nameA, npuprof_itt_text(s), npuprof_itt_key(id));
    if (!npuprof_itt_is_null(parent)) (void)npuprof_shim_not_held("itt.parent");
}

void __itt_task_end_overlapped(const __itt_domain *d, __itt_id id)
{
    if (NPUPROF_ITT_ON(d)) npuprof_async_end(npuprof_itt_key(id));
}

static uint64_t npuprof_itt_frame(const __itt_domain *d, const __itt_id *id)
{
    return id ? npuprof_itt_key(*id) : npuprof_shim_mix((uintptr_t)d, 'F');   /* one is open at a time */
}

void __itt_frame_begin_v3(const __itt_domain *d, __itt_id *id)
{
    if (NPUPROF_ITT_ON(d)) npuprof_async_begin("ITT frame", d->nameA, npuprof_itt_frame(d, id));
}

void __itt_frame_end_v3(const __itt_domain *d, __itt_id *id)
{
    if (NPUPROF_ITT_ON(d)) npuprof_async_end(npuprof_itt_frame(d, id));
}

void __itt_frame_submit_v3(const __itt_domain *d, __itt_id *id, __itt_timestamp begin, __itt_timestamp end)
{
    const int64_t now = npuprof_now_ns();
    (void)id;
    if (NPUPROF_ITT_ON(d))
        npuprof_span(d->nameA, "ITT frame", d->nameA, begin + 1 ? (int64_t)begin : now,
                     end + 1 ? (int64_t)end : now, PROF_NO_ARGS);
}

void __itt_marker(const __itt_domain *d, __itt_id id, __itt_string_handle *s, __itt_scope scope)
{
    const npuprof_arg args[] = { PROF_INT("scope", scope), PROF_UINT("id", id.d1) };
    const npuprof_args list = { args, npuprof_itt_is_null(id) ? 1u : 2u };
    if (NPUPROF_ITT_ON(d)) npuprof_instant(d->nameA, npuprof_itt_text(s), list);
}

/* Adds an argument to the innermost task of this thread, if the id is its, or null. */
static void npuprof_itt_add(__itt_id id, const __itt_string_handle *key, npuprof_arg arg)
{
    const bool mine = npuprof_itt_is_null(id) || npuprof_itt_key(id) == npuprof_itt_key(npuprof_itt_task);
    arg.key = npuprof_itt_text(key);
    if (mine) PROF_RESULT(arg);
    else (void)npuprof_shim_not_held("itt.metadata");
}

static npuprof_arg npuprof_itt_value(int type, const void *data)
{
    switch (type) {
    case __itt_metadata_s64: return PROF_INT("", *(const int64_t *)data);
    case __itt_metadata_u32: return PROF_UINT("", *(const uint32_t *)data);
    case __itt_metadata_s32: return PROF_INT("", *(const int32_t *)data);
    case __itt_metadata_u16: return PROF_UINT("", *(const uint16_t *)data);
    case __itt_metadata_s16: return PROF_INT("", *(const int16_t *)data);
    case __itt_metadata_float: return PROF_REAL("", *(const float *)data);
    case __itt_metadata_double: return PROF_REAL("", *(const double *)data);
    default: return PROF_UINT("", *(const uint64_t *)data);
    }
}

void __itt_metadata_add(const __itt_domain *d, __itt_id id, __itt_string_handle *key,
                        __itt_metadata_type type, size_t count, void *data)
{
    if (!NPUPROF_ITT_ON(d) || !count || !data) return;
    npuprof_itt_add(id, key, npuprof_itt_value(type, data));
    if (count > 1) (void)npuprof_shim_not_held("itt.metadata");     /* the first of several is held */
}

void __itt_metadata_str_add(const __itt_domain *d, __itt_id id, __itt_string_handle *key, const char *data,
                            size_t length)
{
    char text[NPUPROF_SHIM_TEXT];
    if (NPUPROF_ITT_ON(d)) npuprof_itt_add(id, key, PROF_STR("", npuprof_shim_text(data, length, text)));
}

static void npuprof_itt_name_counter(void *c, const char *name) { ((__itt_counter)c)->name = name; }

__itt_counter __itt_counter_create_typed(const char *name, const char *domain, __itt_metadata_type type)
{
    char text[512];
    snprintf(text, sizeof text, "%s%s%s", domain ? domain : "", domain ? ": " : "", name ? name : "");
    __itt_counter c = (__itt_counter)npuprof_shim_object(text, sizeof *c, npuprof_itt_name_counter);
    if (c) __atomic_store_n(&c->type, (int)type, __ATOMIC_RELAXED);
    return c;
}

void __itt_counter_set_value(__itt_counter c, void *value)
{
    if (!c || !value) return;
    const npuprof_arg v = npuprof_itt_value(__atomic_load_n(&c->type, __ATOMIC_RELAXED), value);
    __atomic_store_n(&c->value, v.value.u, __ATOMIC_RELAXED);
    if (v.type == NPUPROF_ARG_REAL) npuprof_counter_real(c->name, v.value.d);
    else npuprof_counter_int(c->name, v.value.i);
}

void __itt_counter_inc_delta(__itt_counter c, unsigned long long delta)
{
    if (c) npuprof_counter_int(c->name, (int64_t)__atomic_add_fetch(&c->value, delta, __ATOMIC_RELAXED));
}

/* Those that are named at each call count from 0, and may become negative. */
void __itt_counter_inc_delta_v3(const __itt_domain *d, __itt_string_handle *s, unsigned long long delta)
{
    if (NPUPROF_ITT_ON(d))
        __itt_counter_inc_delta(__itt_counter_create_typed(npuprof_itt_text(s), d->nameA, __itt_metadata_s64),
                                delta);
}

void __itt_formatted_metadata_add(const __itt_domain *d, __itt_string_handle *format, ...)
{
    char text[NPUPROF_SHIM_TEXT];
    va_list values;
    if (!NPUPROF_ITT_ON(d) || !format) return;
    va_start(values, format);
    vsnprintf(text, sizeof text, format->strA, values);
    va_end(values);
    PROF_RESULT(PROF_STR("metadata", text));
}

/* An event is the place of its name. Each thread has one open of each event. */
enum { NPUPROF_ITT_EVENTS = 1000 };
static const char *npuprof_itt_events[NPUPROF_ITT_EVENTS + 1];
static uint64_t npuprof_itt_event_key(__itt_event event)
{
    return npuprof_shim_mix((uintptr_t)&npuprof_itt_task, (uint64_t)event);
}
__itt_event __itt_event_create(const char *name, int length)
{
    static int count;
    char text[NPUPROF_SHIM_TEXT];
    (void)npuprof_shim_text(name, length > 0 ? (size_t)length : 0, text);
    const int event = __atomic_add_fetch(&count, 1, __ATOMIC_RELAXED);
    if (event > NPUPROF_ITT_EVENTS) return 0;
    npuprof_itt_events[event] = (const char *)npuprof_shim_object(text, 0, NULL);
    return npuprof_itt_events[event] ? event : 0;
}

int __itt_event_start(__itt_event event)
{
    if (event < 1 || event > NPUPROF_ITT_EVENTS) return (void)npuprof_shim_not_held("itt.mark"), -1;
    npuprof_async_begin("ITT event", npuprof_itt_events[event], npuprof_itt_event_key(event));
    return 0;
}

int __itt_event_end(__itt_event event)
{
    npuprof_async_end(npuprof_itt_event_key(event));
    return 0;
}

/* ---- Tracy */

static __thread uint32_t npuprof_tracy_depth;    /* zones of this thread that are open */

TracyCZoneCtx npuprof_tracy_enter(int active)
{
    const TracyCZoneCtx zone = { active ? ++npuprof_tracy_depth : 0, active != 0 };
    return zone;
}

void npuprof_tracy_leave(TracyCZoneCtx zone)
{
    if (!zone.active) return;
    if (zone.id != npuprof_tracy_depth) (void)npuprof_shim_not_held("tracy.order");
    if (npuprof_tracy_depth) npuprof_tracy_depth--;
    PROF_END();
}

TracyCZoneCtx ___tracy_emit_zone_begin(const struct ___tracy_source_location_data *at, int32_t active)
{
    const TracyCZoneCtx zone = npuprof_tracy_enter(active);
    if (zone.active) PROF_BEGIN(NULL, at->name ? at->name : at->function);
    return zone;
}

/* Adds an argument to a zone, if it is the innermost. */
static void npuprof_tracy_add(TracyCZoneCtx zone, npuprof_arg arg)
{
    if (!zone.active) return;
    if (zone.id == npuprof_tracy_depth) PROF_RESULT(arg);
    else (void)npuprof_shim_not_held("tracy.order");
}

void ___tracy_emit_zone_text(TracyCZoneCtx zone, const char *text, size_t size)
{
    char own[NPUPROF_SHIM_TEXT];
    npuprof_tracy_add(zone, PROF_STR("text", npuprof_shim_text(text, size, own)));
}

void ___tracy_emit_zone_name(TracyCZoneCtx zone, const char *text, size_t size)
{
    char own[NPUPROF_SHIM_TEXT];
    npuprof_tracy_add(zone, PROF_STR("name", npuprof_shim_text(text, size, own)));
}

void ___tracy_emit_zone_value(TracyCZoneCtx zone, uint64_t value)
{
    npuprof_tracy_add(zone, PROF_UINT("value", value));
}

void npuprof_tracy_message(const char *text, size_t size)
{
    char own[NPUPROF_SHIM_TEXT];
    PROF_INSTANT("Tracy", "message", PROF_ARGS(PROF_STR("text", npuprof_shim_text(text, size, own))));
}

void npuprof_tracy_frame(const char *name, int what)
{
    uint64_t key = 'T';
    for (const char *c = name; c && *c; c++) key = npuprof_shim_mix(key, (unsigned char)*c);
    if (what == 0) npuprof_instant("Tracy frame", name ? name : "frame", PROF_NO_ARGS);
    else if (what > 0) npuprof_async_begin("Tracy frame", name, key);
    else npuprof_async_end(key);
}

void npuprof_tracy_info(const char *text, size_t size)
{
    char own[NPUPROF_SHIM_TEXT];
    (void)npuprof_metadata("tracy.app_info", npuprof_shim_text(text, size, own));
}
