/* A program with two parts of ITT, as two libraries would bring them, by declarations of its own: what the
   functions are called, what they take, and where the list of them lies. It opens the library that
   INTEL_LIBITTNOTIFY64 names, as ITT does; without one, nothing is called. usage: collect_itt CASE [COUNT]
   SPDX-License-Identifier: MIT */
#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

typedef struct domain {
    volatile int flags;
    const char *name;
    void *wide;
    int extra1;
    void *extra2;
    struct domain *next;
} domain;
typedef struct handle {
    const char *text;
    void *wide;
    int extra1;
    void *extra2;
    struct handle *next;
} handle;
typedef struct id { unsigned long long d1, d2, d3; } id;
typedef struct entry { const char *name; void **function, *init, *none; int group; } entry;

/* name, result, parameters */
#define CALLS(X)                                                                                    \
    X(domain_create, domain *, (const char *)) X(string_handle_create, handle *, (const char *))    \
    X(task_begin, void, (domain *, id, id, handle *)) X(task_end, void, (domain *))                 \
    X(task_begin_fn, void, (domain *, id, id, void *))                                              \
    X(task_begin_overlapped, void, (domain *, id, id, handle *))                                    \
    X(task_end_overlapped, void, (domain *, id)) X(region_begin, void, (domain *, id, id, handle *)) \
    X(region_end, void, (domain *, id)) X(frame_begin_v3, void, (domain *, id *))                   \
    X(frame_end_v3, void, (domain *, id *)) X(get_timestamp, unsigned long long, (void))            \
    X(frame_submit_v3, void, (domain *, id *, unsigned long long, unsigned long long))              \
    X(metadata_add, void, (domain *, id, handle *, int, size_t, void *))                            \
    X(metadata_str_add, void, (domain *, id, handle *, const char *, size_t))                       \
    X(formatted_metadata_add, void, (domain *, handle *, ...))                                      \
    X(marker, void, (domain *, id, handle *, int))                                                  \
    X(counter_create, void *, (const char *, const char *))                                         \
    X(counter_create_typed, void *, (const char *, const char *, int))                              \
    X(counter_create_v3, void *, (domain *, const char *, int))                                     \
    X(counter_set_value, void, (void *, void *)) X(counter_set_value_v3, void, (void *, void *))    \
    X(counter_inc_delta, void, (void *, unsigned long long))                                        \
    X(counter_dec, void, (void *)) X(counter_inc_v3, void, (domain *, handle *))                    \
    X(counter_dec_delta_v3, void, (domain *, handle *, unsigned long long))                         \
    X(thread_set_name, void, (const char *)) X(relation_add, void, (domain *, id, int, id))         \
    X(sync_prepare, void, (void *)) X(stack_caller_create, void *, (void))                          \
    X(stack_callee_enter, void, (void *))                                                           \
    X(task_begin_ex, void, (domain *, void *, unsigned long long, id, id, handle *))                \
    X(from_the_future, int, (int)) X(id_create, void, (domain *, id)) X(pause, void, (void))        \
    X(resume, void, (void))

#define POINTER(name, result, parameters) result (*name) parameters;
#define NUMBER(name, result, parameters) N_##name,
enum { CALLS(NUMBER) COUNT };
typedef struct part {              /* one library's part of ITT */
    unsigned char magic[8];
    unsigned long version[3];
    volatile long initialized, mutex_initialized, counter;
    pthread_mutex_t mutex;
    void *library, *error_handler;
    const char **path;
    entry *list;
    struct { CALLS(POINTER) } call;
    entry entries[COUNT + 1];
} part;
static part parts[2];
static const id null;

static void open_part(part *p)
{
    static const unsigned char magic[8] = { 0xED, 0xAB, 0xAB, 0xEC, 0x0D, 0xEE, 0xDA, 0x30 };
    memcpy(p->magic, magic, sizeof magic);
#define ENTRY(n, result, parameters) \
    p->entries[N_##n] = (entry){ "__itt_" #n, (void **)&p->call.n, NULL, NULL, 4 };
    CALLS(ENTRY)
    p->list = p->entries;
    const char *const path = getenv("INTEL_LIBITTNOTIFY64");
    p->library = path ? dlopen(path, RTLD_LAZY) : NULL;
    if (path && !p->library) printf("%s\n", dlerror());
    void (*init)(part *, int) = NULL;
    if (p->library) *(void **)&init = dlsym(p->library, "__itt_api_init");
    if (init) init(p, -1);
}

/* Where what a program says leaves ITT. */
#define CALL(part, name, ...) do { if ((part)->call.name) (part)->call.name(__VA_ARGS__); } while (0)

static void *elsewhere(void *text)
{
    CALL(&parts[0], thread_set_name, (char *)text);
    CALL(&parts[0], task_end_overlapped, NULL, ((id){ 7, 8, 0 }));
    return NULL;
}

/* A text right before memory that nobody may read. NULL: there is none. */
static const char *at_the_end(const char *text)
{
    const size_t bytes = strlen(text) + 1;
    char *const pages = mmap(NULL, 2 << 16, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (pages == MAP_FAILED || mprotect(pages + (1 << 16), 1 << 16, PROT_NONE) != 0) return NULL;
    return memcpy(pages + (1 << 16) - bytes, text, bytes);
}

static void metadata(part *p, domain *d)
{
    static const char *const names[] = { "", "u64", "s64", "u32", "s32", "u16", "s16", "float", "double" };
    unsigned long long u64 = 1ull << 63;
    long long s64 = -1;
    unsigned u32[3] = { 4000000000u, 1, 2 };
    int s32 = -5;
    unsigned short u16 = 60000;
    short s16[2] = { -6, 7 };
    float f = 0.5f;
    double doubles[2] = { 0.25, -1e300 };
    void *const values[] = { NULL, &u64, &s64, u32, &s32, &u16, s16, &f, doubles };
    handle *const task = p->call.string_handle_create("with metadata");
    p->call.task_begin(d, (id){ 41, 0, 0 }, null, task);
    for (int type = 1; type <= 8; type++)
        p->call.metadata_add(d, null, p->call.string_handle_create(names[type]), type, 1, values[type]);
    p->call.metadata_add(d, (id){ 41, 0, 0 }, p->call.string_handle_create("three"), 3, 3, u32);
    p->call.metadata_add(d, null, p->call.string_handle_create("two"), 6, 2, s16);
    p->call.metadata_add(d, null, p->call.string_handle_create("reals"), 8, 2, doubles);
    p->call.metadata_str_add(d, null, p->call.string_handle_create("text"), "texts", 4);
    p->call.metadata_str_add(d, null, p->call.string_handle_create("whole"), at_the_end("to its 0"),
                             (size_t)-1);
    p->call.formatted_metadata_add(d, p->call.string_handle_create("%s of %d"), "3", 4);
    p->call.metadata_add(d, (id){ 42, 0, 0 }, task, 1, 1, &u64);           /* of another task */
    p->call.metadata_add(d, null, task, 9, 1, &u64);                       /* no such type */
    p->call.task_end(d);
    p->call.metadata_add(d, (id){ 41, 0, 0 }, task, 1, 1, &u64);           /* it has ended */
}

static void counters(part *p, domain *d)
{
    unsigned long long u64 = 3;
    double real = 2.5;
    short s16 = -9;
    void *const plain = p->call.counter_create("plain", "of domain");
    void *const reals = p->call.counter_create_typed("reals", "of domain", 8);
    void *const shorts = p->call.counter_create_typed("shorts", "of domain", 6);
    p->call.counter_set_value(plain, &u64);
    p->call.counter_inc_delta(plain, 10);
    p->call.counter_dec(plain);
    p->call.counter_set_value(reals, &real);
    p->call.counter_set_value(shorts, &s16);
    p->call.counter_set_value_v3(p->call.counter_create_v3(d, "newer", 8), &real);
    handle *const named = p->call.string_handle_create("named");
    p->call.counter_inc_v3(d, named);
    p->call.counter_dec_delta_v3(d, named, 4);
    const char *made_before[8] = { "made before", NULL, NULL };
    p->call.counter_set_value((void *)made_before, &u64);
}

/* Everything once. The domain and the name that were made before loading lie in memory that is freed. */
static int everything(void)
{
    domain *const early = calloc(1, sizeof *early);
    handle *const old = calloc(1, sizeof *old);

    char *const texts = malloc(64);
    memcpy(texts, "early domain\0old name", 22);

    early->flags = 1, early->name = texts, old->text = texts + 13;
    part *const a = &parts[0], *const b = &parts[1];
    a->call.task_begin(early, null, null, old);
    domain *const d = a->call.domain_create("d"), *const same = b->call.domain_create("d");
    handle *const inner = a->call.string_handle_create("inner");
    printf("%d %d %d\n", d == same && d->flags == 1 && !strcmp(d->name, "d"),
           inner == b->call.string_handle_create("inner") && !strcmp(inner->text, "inner"),
           a->call.stack_caller_create() != NULL);
    CALL(b, id_create, d, ((id){ 5, 0, 0 }));
    b->call.task_begin(d, (id){ 5, 6, 0 }, (id){ 1ull << 63, 0, 0 }, inner);
    b->call.task_end(same);
    a->call.task_begin_fn(d, null, null, (void *)(size_t)&qsort);
    a->call.task_end(d);
    a->call.task_begin(d, null, null, NULL);
    a->call.task_end(d);
    metadata(a, d);
    a->call.task_end(early);
    memset(texts, 'x', 21);
    free(texts), free(early), free(old);
    a->call.task_begin_overlapped(d, (id){ 7, 8, 0 }, null, a->call.string_handle_create("overlapped"));
    b->call.region_begin(d, (id){ 9, 0, 0 }, (id){ 7, 8, 0 }, inner);
    pthread_t thread;
    if (pthread_create(&thread, NULL, elsewhere, "worker of ITT")) return 3;
    pthread_join(thread, NULL);
    b->call.region_end(d, (id){ 9, 0, 0 });
    id frame = { 77, 0, 0 };
    a->call.frame_begin_v3(d, NULL);
    a->call.frame_begin_v3(d, &frame);
    a->call.frame_end_v3(d, &frame);
    a->call.frame_end_v3(d, NULL);
    const unsigned long long now = a->call.get_timestamp();
    a->call.frame_submit_v3(d, NULL, now - 5000, now - 2000);
    a->call.marker(d, (id){ 3, 0, 0 }, inner, 2);
    counters(a, d);
    for (int i = 0; i < 3; i++) a->call.relation_add(d, frame, 1, frame);
    for (int i = 0; i < 5; i++) b->call.sync_prepare(&frame);
    a->call.stack_callee_enter(NULL);
    a->call.task_begin_ex(d, NULL, 0, null, null, inner);
    printf("%d\n", a->call.from_the_future(3));
    a->call.pause();
    a->call.task_begin(d, null, null, inner);
    a->call.task_end(d);
    a->call.resume();
    return 0;
}

static long count;

static void *many(void *name)
{
    domain *const d = parts[0].call.domain_create("threads");
    handle *const h = parts[0].call.string_handle_create(name);
    for (long i = 0; i < count; i++) {
        CALL(&parts[0], task_begin, d, null, null, h);
        CALL(&parts[1], task_end, d);
    }
    return NULL;
}

static int threads(void)
{
    static char names[8][2] = { "0", "1", "2", "3", "4", "5", "6", "7" };
    pthread_t thread[8];
    for (int i = 0; i < 8; i++)
        if (pthread_create(&thread[i], NULL, many, names[i])) return 3;
    for (int i = 0; i < 8; i++) pthread_join(thread[i], NULL);
    return 0;
}

/* A relation before and 2 behind a fork, in the child; then names without end. */
static int forks(void)
{
    char text[32];
    parts[0].call.relation_add(NULL, null, 1, null);
    if (fork() == 0) {
        parts[0].call.relation_add(NULL, null, 1, null);
        parts[0].call.relation_add(NULL, null, 1, null);
        parts[0].call.relation_add(NULL, null, 1, null);
        return 0;
    }
    for (long i = 0; i < count; i++) {
        snprintf(text, sizeof text, "name %ld", i);
        handle *const h = parts[0].call.string_handle_create(text);
        parts[0].call.task_begin(NULL, null, null, h);
        parts[0].call.task_end(NULL);
    }
    return 0;
}

/* ns for a task, at best of 20. Without a collector: what the test for it takes. */
static int cost(void)
{
    domain *const d = parts[0].library ? parts[0].call.domain_create("cost") : NULL;
    handle *const h = parts[0].library ? parts[0].call.string_handle_create("task") : NULL;
    double best = 1e9;
    for (int round = 0; round < 20; round++) {
        struct timespec from, to;
        clock_gettime(CLOCK_MONOTONIC, &from);
        for (long i = 0; i < count; i++) {
            CALL(&parts[0], task_begin, d, null, null, h);
            CALL(&parts[0], task_end, d);
        }
        clock_gettime(CLOCK_MONOTONIC, &to);
        const double ns = (double)(to.tv_sec - from.tv_sec) * 1e9 + (double)(to.tv_nsec - from.tv_nsec);
        if (ns / (double)count < best) best = ns / (double)count;
    }
    printf("%.1f\n", best);
    return 0;
}

/* Before ITT looks for the collector, another library takes thread-local storage: as much as count says. */
static int crowded(const char *library)
{
    if (!dlopen(library, RTLD_NOW)) printf("%s\n", dlerror());
    return 0;
}

int main(int argc, char **argv)
{
    if (argc < 2) return 2;
    count = argc > 2 ? atol(argv[2]) : 0;
    if (!strcmp(argv[1], "crowded") && crowded(argv[2])) return 3;
    for (int i = 0; i < 2; i++) open_part(&parts[i]);
    if (!strcmp(argv[1], "cost")) return cost();
    if (!parts[0].library) return 0;
    if (!strcmp(argv[1], "everything")) return everything();
    if (!strcmp(argv[1], "threads")) return threads();
    if (!strcmp(argv[1], "forks")) return forks();
    return 0;
}
