/* A program with two parts of NVTX 3, as two libraries would bring them, by declarations of its own: tables
   of pointers to functions, by module and number. It opens the library that NVTX_INJECTION64_PATH names, as
   NVTX does; without one, nothing is called. usage: collect_nvtx CASE [COUNT]
   SPDX-License-Identifier: MIT */
#include <dlfcn.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>
#include <wchar.h>

typedef struct attributes {
    uint16_t version, size;
    uint32_t category;
    int32_t color_type;
    uint32_t color;
    int32_t payload_type, reserved;
    union { uint64_t u; int64_t i; double d; uint32_t u32; int32_t i32; float f; } payload;
    int32_t message_type;
    union { const char *text; const wchar_t *wide; void *string; } message;
} attributes;

/* number in its module, name, result, parameters */
#define CORE(X)                                                                                     \
    X(1, mark_ex, void, (const attributes *)) X(2, mark_a, void, (const char *))                    \
    X(3, mark_w, void, (const wchar_t *)) X(4, start_ex, uint64_t, (const attributes *))            \
    X(5, start_a, uint64_t, (const char *)) X(6, start_w, uint64_t, (const wchar_t *))              \
    X(7, end, void, (uint64_t)) X(8, push_ex, int, (const attributes *)) X(9, push_a, int, (const char *)) \
    X(10, push_w, int, (const wchar_t *)) X(11, pop, int, (void))                                   \
    X(12, category_a, void, (uint32_t, const char *)) X(13, category_w, void, (uint32_t, const wchar_t *)) \
    X(14, thread_a, void, (uint32_t, const char *)) X(15, thread_w, void, (uint32_t, const wchar_t *))
#define CORE2(X)                                                                                    \
    X(1, domain_mark, void, (void *, const attributes *))                                           \
    X(2, domain_start, uint64_t, (void *, const attributes *)) X(3, domain_end, void, (void *, uint64_t)) \
    X(4, domain_push, int, (void *, const attributes *)) X(5, domain_pop, int, (void *))            \
    X(6, resource_create, void *, (void *, void *)) X(7, resource_destroy, void, (void *))          \
    X(8, domain_category_a, void, (void *, uint32_t, const char *))                                 \
    X(9, domain_category_w, void, (void *, uint32_t, const wchar_t *))                              \
    X(10, string_a, void *, (void *, const char *)) X(11, string_w, void *, (void *, const wchar_t *)) \
    X(12, domain_create_a, void *, (const char *)) X(13, domain_create_w, void *, (const wchar_t *)) \
    X(14, domain_destroy, void, (void *)) X(15, initialize, void, (const void *))

#define POINTER(number, name, result, parameters) result (*name) parameters;
typedef void (**slot)(void);
typedef struct part {
    struct { CORE(POINTER) CORE2(POINTER) void (*cuda)(void *, const char *); } call;
    slot core[16], core2[16], cuda[9];
} part;
static part parts[2], *opened;     /* opened: whose tables are asked for */

static int table(int module, slot **functions, unsigned *count)
{
    *functions = module == 1 ? opened->core : module == 5 ? opened->core2 : module == 2 ? opened->cuda : NULL;
    *count = module == 2 ? 9 : *functions ? 16 : 0;
    return *functions != NULL;
}

static const void *get(uint32_t what)
{
    static const struct { size_t bytes; int (*table)(int, slot **, unsigned *); } callbacks = { 16, table };
    return what == 1 ? &callbacks : NULL;
}

static void open_part(part *p)
{
#define SLOT(number, name, result, parameters) p->core[number] = (slot)&p->call.name;
    CORE(SLOT)
#undef SLOT
#define SLOT(number, name, result, parameters) p->core2[number] = (slot)&p->call.name;
    CORE2(SLOT)
    p->cuda[1] = (slot)&p->call.cuda;
    opened = p;
    const char *const path = getenv("NVTX_INJECTION64_PATH");
    void *const library = path ? dlopen(path, RTLD_LAZY) : NULL;
    int (*init)(const void *(*)(uint32_t)) = NULL;
    if (library) *(void **)&init = dlsym(library, "InitializeInjectionNvtx2");
    if (!init || !init(get)) opened = NULL;
}

static attributes with(const char *text)
{
    attributes a;
    memset(&a, 0, sizeof a);
    a.version = 3, a.size = sizeof a, a.message_type = 1, a.message.text = text;
    return a;
}

static void payloads(part *p, void *domain)
{
    attributes a = with("payload");
    a.payload_type = 1, a.payload.u = UINT64_MAX;
    p->call.domain_push(domain, &a), p->call.domain_pop(domain);
    a.payload_type = 2, a.payload.i = -7;
    p->call.domain_push(domain, &a), p->call.domain_pop(domain);
    a.payload_type = 3, a.payload.d = 0.125;
    p->call.domain_push(domain, &a), p->call.domain_pop(domain);
    a.payload_type = 4, a.payload.u = 0, a.payload.u32 = 4000000000u;
    p->call.domain_push(domain, &a), p->call.domain_pop(domain);
    a.payload_type = 5, a.payload.u = 0, a.payload.i32 = -9;
    p->call.domain_push(domain, &a), p->call.domain_pop(domain);
    a.payload_type = 6, a.payload.f = 0.5f;
    p->call.domain_push(domain, &a), p->call.domain_pop(domain);
    a.payload_type = 99;
    p->call.domain_push(domain, &a), p->call.domain_pop(domain);
    a.size = 8;                                  /* an older struct: it ends behind the category */
    p->call.domain_push(domain, &a), p->call.domain_pop(domain);
}

static void *ends(void *range)
{
    parts[1].call.domain_end(NULL, *(uint64_t *)range);
    return NULL;
}

static int everything(void)
{
    part *const a = &parts[0], *const b = &parts[1];
    char text[32] = "lives in the caller";
    a->call.initialize(NULL);
    printf("%d", a->call.push_a(text));
    void *const d = a->call.domain_create_a("lib");
    void *const wide = b->call.domain_create_w(L"w\u00eft \u20ac \U0001F600");
    printf(" %d", d != NULL && d == b->call.domain_create_a("lib") && d != wide);
    void *const string = a->call.string_a(d, text), *const again = b->call.string_a(d, text);
    memset(text, 'x', 19);
    attributes registered = with(NULL);
    registered.message_type = 3, registered.message.string = string, registered.category = 3;
    a->call.domain_category_a(d, 3, "copies");
    a->call.domain_category_a(d, 3, "kernels");
    b->call.domain_push(d, &registered);
    registered.category = 4;
    a->call.domain_mark(d, &registered);
    const int popped = b->call.domain_pop(d);
    printf(" %d %d %d\n", string == again, popped, a->call.pop());
    a->call.push_w(L"\u00fcber"), a->call.pop();
    payloads(a, d);
    uint64_t range = a->call.start_a("started here"), other = b->call.start_w(L"also");
    attributes s = with("with payload");
    s.payload_type = 1;
    const uint64_t third = a->call.domain_start(wide, &s);
    pthread_t thread;
    if (pthread_create(&thread, NULL, ends, &range)) return 3;
    pthread_join(thread, NULL);
    a->call.end(other), a->call.end(third);
    a->call.mark_a("mark"), a->call.mark_w(L"wide mark");
    s.message.text = "valued";
    s.payload.u = 5;
    b->call.mark_ex(&s);
    a->call.thread_a((uint32_t)syscall(SYS_gettid), "named by NVTX");
    a->call.thread_a(1, "another");
    a->call.resource_create(d, NULL), a->call.cuda(NULL, "stream");
    /* Ranges of two domains that do not nest, then pops without a push. */
    attributes first = with("first"), second = with("second");
    a->call.domain_push(d, &first), a->call.domain_push(wide, &second);
    a->call.domain_pop(d), a->call.domain_pop(wide);
    a->call.pop(), a->call.pop();
    a->call.domain_destroy(d);
    return 0;
}

static long count;

/* Each thread, count times: three nested ranges, of two domains; one from start to end; a mark. */
static void *many(void *name)
{
    part *const p = &parts[*(char *)name & 1];
    void *const d = p->call.domain_create_a("threads"), *const string = p->call.string_a(d, "registered");
    for (long i = 0; i < count; i++) {
        attributes a = with(name);
        a.payload_type = 2, a.payload.i = i;
        p->call.push_a("outer");
        p->call.domain_push(d, &a);
        a.message_type = 3, a.message.string = string;
        p->call.domain_push(d, &a);
        p->call.domain_pop(d);
        p->call.domain_pop(d);
        const uint64_t range = p->call.start_a("range");
        p->call.mark_ex(&a);
        p->call.end(range);
        p->call.pop();
    }
    return NULL;
}

int main(int argc, char **argv)
{
    static char names[8][2] = { "0", "1", "2", "3", "4", "5", "6", "7" };
    pthread_t thread[8];
    if (argc < 2) return 2;
    count = argc > 2 ? atol(argv[2]) : 0;
    for (int i = 0; i < 2; i++) open_part(&parts[i]);
    if (!opened) return 0;
    if (!strcmp(argv[1], "everything")) return everything();
    for (int i = 0; i < 8; i++)
        if (pthread_create(&thread[i], NULL, many, names[i])) return 3;
    for (int i = 0; i < 8; i++) pthread_join(thread[i], NULL);
    return 0;
}
