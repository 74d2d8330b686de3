#pragma once   /* SPDX-License-Identifier: MIT */
#include "names.h"

#include <sys/syscall.h>
#include <unistd.h>
#include <wchar.h>

/* NVTX 3. Each library of a program that uses it has function pointers of its own, and asks for this library
   once: InitializeInjectionNvtx2() gets the tables that lead to them, and puts in the functions below.

   Owns the number of the last start/end range. A domain and a registered string are a collect_name, made
   here; the default domain is NULL.
   Ranges of push and pop nest in a thread for each domain. npuprof has one order for a thread: a pop whose
   domain is not that of the innermost range ends that range all the same, with the argument out_of_order,
   and is counted. Seen up to eight ranges deep, of 15 domains. */

static const char nvtx_api[] = "NVTX";

typedef union nvtx_value {
    uint64_t u;
    int64_t i;
    double d;
    uint32_t u32;
    int32_t i32;
    float f;
} nvtx_value;
typedef union nvtx_message {
    const char *text;
    const wchar_t *wide;
    const collect_name *string;
} nvtx_message;
typedef struct nvtx_attributes {
    uint16_t version, size;
    uint32_t category;
    int32_t color_type;
    uint32_t color;
    int32_t payload_type, reserved;
    nvtx_value payload;
    int32_t message_type;              /* 0: none, 1: text, 2: wide, 3: registered */
    nvtx_message message;
} nvtx_attributes;

typedef void (**nvtx_functions)(void);
typedef struct nvtx_tables {
    size_t bytes;
    int (*table)(int module, nvtx_functions **functions, unsigned *count);
} nvtx_tables;

static uint32_t nvtx_ranges;           /* the number of the last start/end range */
static uint32_t nvtx_domains = 1;      /* the default one, and those that were made */

static const char *nvtx_category(const collect_name *domain) { return domain ? domain->text : NULL; }

/* ---- Texts and arguments */

/* Texts of wide characters as UTF-8, cut where the buffer ends. */
static const char *nvtx_narrow(const wchar_t *wide, char *text, size_t size)
{
    char *at = text;
    for (; wide && *wide && (size_t)(at - text) + 5 < size; wide++) {
        const uint32_t c = (uint32_t)*wide > 0x10FFFF ? 0xFFFD : (uint32_t)*wide;
        const int more = c < 0x80 ? 0 : c < 0x800 ? 1 : c < 0x10000 ? 2 : 3;
        static const unsigned char first[] = { 0, 0xC0, 0xE0, 0xF0 };
        *at++ = (char)(first[more] | c >> 6 * more);
        for (int i = more - 1; i >= 0; i--) *at++ = (char)(0x80 | (c >> 6 * i & 0x3F));
    }
    *at = 0;
    return text;
}

enum { NVTX_TEXT = 1024 };

/* Does the program's struct reach behind this field? Why: older programs have shorter ones. */
#define NVTX_HAS(a, field) \
    ((a) && (a)->size >= offsetof(nvtx_attributes, field) + sizeof(((nvtx_attributes *)0)->field))

static const char *nvtx_text(const nvtx_attributes *a, char *buffer)
{
    const bool has = NVTX_HAS(a, message) && a->message.text;
    if (has && a->message_type == 1) return a->message.text;
    if (has && a->message_type == 2) return nvtx_narrow(a->message.wide, buffer, NVTX_TEXT);
    if (has && a->message_type == 3) return a->message.string->text;
    return "(no message)";
}

/* What the program called this category of a domain; NULL: nothing. */
static const char *nvtx_category_name(const collect_name *domain, uint32_t number)
{
    char key[16];
    snprintf(key, sizeof key, "%u", (unsigned)number);
    const char *const name = nvtx_category(domain);
    const collect_name *const n = collect_look(COLLECT_CATEGORY, name ? name : "", key);
    return n ? (const char *)(uintptr_t)__atomic_load_n(&n->value, __ATOMIC_ACQUIRE) : NULL;
}

/* The arguments of a range or mark: at most two. has_payload: whether it gave a payload. */
static size_t nvtx_arguments(const collect_name *domain, const nvtx_attributes *a, npuprof_arg *args)
{
    size_t count = 0;
    if (NVTX_HAS(a, category) && a->category) {
        const char *const name = nvtx_category_name(domain, a->category);
        args[count++] = name ? PROF_STR("category", name) : PROF_UINT("category", a->category);
    }
    if (!NVTX_HAS(a, payload) || a->payload_type == 0) return count;
    const nvtx_value v = a->payload;
    if (a->payload_type == 1) args[count++] = PROF_UINT("payload", v.u);
    else if (a->payload_type == 2) args[count++] = PROF_INT("payload", v.i);
    else if (a->payload_type == 3) args[count++] = PROF_REAL("payload", v.d);
    else if (a->payload_type == 4) args[count++] = PROF_UINT("payload", v.u32);
    else if (a->payload_type == 5) args[count++] = PROF_INT("payload", v.i32);
    else if (a->payload_type == 6) args[count++] = PROF_REAL("payload", v.f);
    else (void)collect_lose(COLLECT_NVTX_PAYLOAD);
    return count;
}

/* ---- Ranges that nest. Pushes and pops return -2: this tool does not count how deep they are */

enum { NVTX_NOT_COUNTED = -2 };

/* A number of four bits for a domain, not 0. */
static uint32_t nvtx_number(const collect_name *domain)
{
    return domain ? 2 + __atomic_load_n(&domain->number, __ATOMIC_RELAXED) % 14 : 1;
}

static int nvtx_push(const collect_name *domain, const nvtx_attributes *a, const char *text)
{
    static npuprof_keys_ any = { .file = nvtx_api, .kind = NPUPROF_KIND_SPAN };
    static npuprof_keys_ keys = { .file = nvtx_api, .kind = NPUPROF_KIND_SPAN };
    const bool registered = NVTX_HAS(a, message) && a->message_type == 3 && a->message.string;
    npuprof_arg args[2];
    collect_begin(NULL, registered ? (npuprof_keys_ *)(uintptr_t)&a->message.string->keys : &any,
                  nvtx_category(domain), text);
    const uint32_t domains = (uint32_t)collect_here;
    collect_here = (collect_here & ~(uint64_t)UINT32_MAX) | (domains << 4 | nvtx_number(domain));
    const size_t count = nvtx_arguments(domain, a, args);
    if (count && NPUPROF_OPEN_(1)) npuprof_result_(&keys, npuprof_args_(args, count));
    return NVTX_NOT_COUNTED;
}

static int nvtx_pop(const collect_name *domain)
{
    const uint32_t domains = (uint32_t)collect_here, top = domains & 15;
    if (top && top != nvtx_number(domain)) {
        (void)collect_lose(COLLECT_NVTX_ORDER);
        PROF_RESULT(PROF_BOOL("out_of_order", true));
    }
    collect_here = (collect_here & ~(uint64_t)UINT32_MAX) | domains >> 4;
    PROF_END();
    return NVTX_NOT_COUNTED;
}

static int nvtx_domain_push_ex(collect_name *domain, const nvtx_attributes *a)
{
    char buffer[NVTX_TEXT];
    return nvtx_push(domain, a, nvtx_text(a, buffer));
}

static int nvtx_push_ex(const nvtx_attributes *a) { return nvtx_domain_push_ex(NULL, a); }

static int nvtx_push_a(const char *text) { return nvtx_push(NULL, NULL, text ? text : "(no message)"); }

static int nvtx_push_w(const wchar_t *wide)
{
    char buffer[NVTX_TEXT];
    return nvtx_push(NULL, NULL, nvtx_narrow(wide, buffer, sizeof buffer));
}

static int nvtx_domain_pop(collect_name *domain) { return nvtx_pop(domain); }
static int nvtx_pop_default(void) { return nvtx_pop(NULL); }

/* ---- Ranges that begin and end anywhere, and marks */

static uint64_t nvtx_key(uint64_t range) { return collect_mix(range, 0x4E565458); }

static uint64_t nvtx_start(const collect_name *domain, const char *text)
{
    const uint64_t range = __atomic_add_fetch(&nvtx_ranges, 1, __ATOMIC_RELAXED);
    collect_async(nvtx_category(domain), text, nvtx_key(range), nvtx_api);
    return range;
}

static uint64_t nvtx_domain_start_ex(collect_name *domain, const nvtx_attributes *a)
{
    char buffer[NVTX_TEXT];
    const bool payload = NVTX_HAS(a, payload) && a->payload_type != 0;
    if (payload || (NVTX_HAS(a, category) && a->category)) (void)collect_lose(COLLECT_NVTX_PAYLOAD);
    return nvtx_start(domain, nvtx_text(a, buffer));
}

static uint64_t nvtx_start_ex(const nvtx_attributes *a) { return nvtx_domain_start_ex(NULL, a); }

static uint64_t nvtx_start_a(const char *text) { return nvtx_start(NULL, text ? text : "(no message)"); }

static uint64_t nvtx_start_w(const wchar_t *wide)
{
    char buffer[NVTX_TEXT];
    return nvtx_start(NULL, nvtx_narrow(wide, buffer, sizeof buffer));
}

static void nvtx_end(uint64_t range) { npuprof_async_end(nvtx_key(range)); }

static void nvtx_domain_end(collect_name *domain, uint64_t range)
{
    (void)domain;
    nvtx_end(range);
}

static void nvtx_domain_mark_ex(collect_name *domain, const nvtx_attributes *a)
{
    char buffer[NVTX_TEXT];
    npuprof_arg args[2];
    const size_t count = nvtx_arguments(domain, a, args);
    collect_instant(nvtx_category(domain), nvtx_text(a, buffer), npuprof_args_(args, count), nvtx_api);
}

static void nvtx_mark_ex(const nvtx_attributes *a) { nvtx_domain_mark_ex(NULL, a); }

static void nvtx_mark_a(const char *text)
{
    collect_instant(NULL, text ? text : "(no message)", PROF_NO_ARGS, nvtx_api);
}

static void nvtx_mark_w(const wchar_t *wide)
{
    char buffer[NVTX_TEXT];
    nvtx_mark_a(nvtx_narrow(wide, buffer, sizeof buffer));
}

/* ---- Names */

static collect_name *nvtx_domain_create_a(const char *text)
{
    collect_name *const n = collect_intern(COLLECT_DOMAIN, "nvtx", text ? text : "", nvtx_api);
    uint32_t none = 0;
    if (!n || __atomic_load_n(&n->number, __ATOMIC_RELAXED)) return n;
    const uint32_t number = __atomic_add_fetch(&nvtx_domains, 1, __ATOMIC_RELAXED);
    (void)__atomic_compare_exchange_n(&n->number, &none, number, false, __ATOMIC_RELAXED, __ATOMIC_RELAXED);
    return n;
}

static collect_name *nvtx_domain_create_w(const wchar_t *wide)
{
    char buffer[NVTX_TEXT];
    return nvtx_domain_create_a(nvtx_narrow(wide, buffer, sizeof buffer));
}

static collect_name *nvtx_string_a(collect_name *domain, const char *text)
{
    return collect_intern(COLLECT_TEXT_USE, domain ? domain->text : "", text ? text : "", nvtx_api);
}

static collect_name *nvtx_string_w(collect_name *domain, const wchar_t *wide)
{
    char buffer[NVTX_TEXT];
    return nvtx_string_a(domain, nvtx_narrow(wide, buffer, sizeof buffer));
}

/* The last name counts. */
static void nvtx_domain_name_category_a(collect_name *domain, uint32_t number, const char *text)
{
    char key[16];
    snprintf(key, sizeof key, "%u", (unsigned)number);
    const char *const of = domain ? domain->text : "";
    collect_name *const n = collect_intern(COLLECT_CATEGORY, of, key, nvtx_api);
    const collect_name *const name = text ? collect_intern(COLLECT_TEXT_USE, of, text, nvtx_api) : NULL;
    if (n) __atomic_store_n(&n->value, name ? (uintptr_t)name->text : 0, __ATOMIC_RELEASE);
}

static void nvtx_domain_name_category_w(collect_name *domain, uint32_t number, const wchar_t *wide)
{
    char buffer[NVTX_TEXT];
    nvtx_domain_name_category_a(domain, number, nvtx_narrow(wide, buffer, sizeof buffer));
}

static void nvtx_name_category_a(uint32_t number, const char *text)
{
    nvtx_domain_name_category_a(NULL, number, text);
}

static void nvtx_name_category_w(uint32_t number, const wchar_t *wide)
{
    nvtx_domain_name_category_w(NULL, number, wide);
}

static void nvtx_name_thread_a(uint32_t thread, const char *text)
{
    if (!text || thread != (uint32_t)syscall(SYS_gettid)) (void)collect_lose(COLLECT_NVTX_THREAD);
    else PROF_THREAD_NAME(text);
}

static void nvtx_name_thread_w(uint32_t thread, const wchar_t *wide)
{
    char buffer[NVTX_TEXT];
    nvtx_name_thread_a(thread, nvtx_narrow(wide, buffer, sizeof buffer));
}

static void *nvtx_no_object(void) { return collect_lose(COLLECT_NVTX_OBJECT); }
static void nvtx_nothing(void) { }

/* ---- The tables. A function stands at its number in the module */

enum { NVTX_CORE = 1, NVTX_CORE2 = 5, NVTX_MODULES = 7, NVTX_CALLBACKS = 1 };
#define NVTX_AS(f) ((void (*)(void))(f))
static void (*const nvtx_core[16])(void) = {
    NULL, NVTX_AS(nvtx_mark_ex), NVTX_AS(nvtx_mark_a), NVTX_AS(nvtx_mark_w), NVTX_AS(nvtx_start_ex),
    NVTX_AS(nvtx_start_a), NVTX_AS(nvtx_start_w), NVTX_AS(nvtx_end), NVTX_AS(nvtx_push_ex),
    NVTX_AS(nvtx_push_a), NVTX_AS(nvtx_push_w), NVTX_AS(nvtx_pop_default), NVTX_AS(nvtx_name_category_a),
    NVTX_AS(nvtx_name_category_w), NVTX_AS(nvtx_name_thread_a), NVTX_AS(nvtx_name_thread_w),
};
static void (*const nvtx_core2[16])(void) = {
    NULL, NVTX_AS(nvtx_domain_mark_ex), NVTX_AS(nvtx_domain_start_ex), NVTX_AS(nvtx_domain_end),
    NVTX_AS(nvtx_domain_push_ex), NVTX_AS(nvtx_domain_pop), NVTX_AS(nvtx_no_object), NVTX_AS(nvtx_nothing),
    NVTX_AS(nvtx_domain_name_category_a), NVTX_AS(nvtx_domain_name_category_w), NVTX_AS(nvtx_string_a),
    NVTX_AS(nvtx_string_w), NVTX_AS(nvtx_domain_create_a), NVTX_AS(nvtx_domain_create_w),
    NVTX_AS(nvtx_nothing), NVTX_AS(nvtx_nothing),
};

__attribute__((visibility("default"))) int npuprof_collect_nvtx(const void *(*get)(uint32_t what))
    __asm__("InitializeInjectionNvtx2");

/* Returns 1: the functions are in place; 0: they stay without effect. */
int npuprof_collect_nvtx(const void *(*get)(uint32_t what))
{
    const nvtx_tables *const tables = get ? (const nvtx_tables *)get(NVTX_CALLBACKS) : NULL;
    if (!tables || tables->bytes < sizeof *tables || !tables->table) return 0;
    for (int module = 1; module < NVTX_MODULES; module++) {
        nvtx_functions *functions = NULL;
        unsigned count = 0;
        if (!tables->table(module, &functions, &count) || !functions) continue;
        const bool core = module == NVTX_CORE, core2 = module == NVTX_CORE2;
        for (unsigned i = 1; i < count; i++) {
            if (!functions[i]) continue;
            if (!core && !core2) *functions[i] = NVTX_AS(nvtx_no_object);
            else if (i < 16) *functions[i] = core ? nvtx_core[i] : nvtx_core2[i];
        }
    }
    return 1;
}
