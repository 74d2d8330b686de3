/* test: soak=300 valgrind san=address,undefined cc=-O2 - damaged images: cut off,
   flipped, swapped, zeroed; what can be read is read, the rest counted
   SPDX-License-Identifier: MIT */
#define NPUPROF_IMPLEMENTATION
#include "process/life.h"

static npuprof_sink nothing(void);
static int take(void *user, const void *bytes, size_t count)
{
    (void)user;
    (void)bytes;
    (void)count;
    return 0;
}

static npuprof_sink nothing(void)
{
    npuprof_sink sink = { take, NULL };
    return sink;
}

typedef struct image { uint8_t *bytes; size_t count; uint64_t recorded; } image;

/* Spans of several threads, names, arguments, long spans, thread names. */
static void *fill(void *unused)
{
    char name[32];
    (void)unused;
    PROF_THREAD_NAME("filler");
    PROF_SCOPE("long");
    for (int i = 0; i < 150; i++) {
        snprintf(name, sizeof name, "name %d", i % 9);
        PROF_BEGIN("c", name);
        {
            PROF_SCOPE_ARGS("c", "args",
                            PROF_ARGS(PROF_INT("n", i), PROF_STR("s", "a string of some length")));
        }
        PROF_COUNTER("n", i);
        PROF_INSTANT("c", "i", PROF_NO_ARGS);
        PROF_END();
    }
    return NULL;
}

static const int policies[] = { NPUPROF_KEEP_OLDEST, NPUPROF_KEEP_NEWEST, NPUPROF_STREAM };
enum { LAYOUTS = 4 };
static const char *const layout_names[LAYOUTS] = { "snapshot", "mapped arena", "wrapped arena", "stream" };
/* An image of each layout; the case's process records it and goes on with another arena in mind: the
   image. */
static image make(int layout)
{
    static life_memory memory;
    image im = { NULL, 0, 0 };
    npuprof_desc desc;
    const life_path name = life_own_path("npuprof");
    memset(&desc, 0, sizeof desc);
    desc.arena_bytes = layout == 2 ? 16384 : 65536;
    desc.when_full = layout == 2 ? policies[1] : layout == 3 ? policies[2] : policies[0];
    if (layout == 1 || layout == 2) desc.arena_path = name.pattern;
    else desc.arena = malloc(desc.arena_bytes);
    if (layout == 3) desc.sink = life_sink(&memory);
    CHECK_INT(npuprof_init(&desc), NPUPROF_OK);
    if (check_failures_) check_end_(NULL);
    npuprof_start(1);
    pthread_t thread[2];
    for (int i = 0; i < 2; i++) CHECK_STOP(!pthread_create(&thread[i], NULL, fill, NULL));
    fill(NULL);
    for (int i = 0; i < 2; i++) pthread_join(thread[i], NULL);
    npuprof_stop();
    im.recorded = stats_now().recorded;
    if (layout == 0) CHECK_INT(npuprof_dump(name.path), NPUPROF_OK);
    if (layout == 3) {
        CHECK_INT(npuprof_flush(), NPUPROF_OK);
        im.count = memory.count;
        im.bytes = (uint8_t *)malloc(im.count);
        CHECK_STOP(im.bytes != NULL);
        memcpy(im.bytes, memory.bytes, im.count);
    } else {
        im.bytes = (uint8_t *)check_read_file(name.path, &im.count);
        CHECK_STOP(im.bytes != NULL);
        unlink(name.path);
    }
    return im;
}

static uint64_t refused, damaged, unnoticed, looks;
/* Loads a copy and reads all of it. How many events there are; UINT64_MAX when it was refused. */
static uint64_t look(const image *im, const uint8_t *bytes, size_t count, npuprof_damage *damage)
{
    uint8_t *copy = (uint8_t *)malloc(count + 1);
    static FILE *nowhere;
    uint64_t recorded = UINT64_MAX;
    if (!nowhere) nowhere = fopen("/dev/null", "w");
    CHECK_STOP(copy != NULL && nowhere != NULL);
    memcpy(copy, bytes, count);
    const npuprof_result r = npuprof_load_memory(copy, count, damage);
    looks++;
    if (r == NPUPROF_OK) {
        npuprof_stats s;
        npuprof_get_stats(&s);
        recorded = s.recorded;
        const life_counts c = life_count(NULL, NULL);
        CHECK(c.slices + c.instants + c.counters <= recorded + 2000);
        CHECK(s.recorded <= im->count / 2);     /* a coded span takes two bytes at least */
        CHECK_INT(npuprof_print_summary(nowhere), NPUPROF_OK);
        CHECK_INT(npuprof_print_npu_executions(nowhere), NPUPROF_OK);
        damaged += damage->places > 0;
        unnoticed += damage->places == 0;
        if (damage->places) CHECK(damage->what && *damage->what);
        npuprof_unload();
    } else {
        refused++;
        CHECK_INT(r, NPUPROF_ERR_FORMAT);
        CHECK(damage->places > 0 && damage->what && *damage->what && damage->offset <= count);
    }
    free(copy);
    return recorded;
}

static void report(const char *what, int layout)
{
    if (check_failures_) printf("  (%s of a %s)\n", what, layout_names[layout]);
    printf("note %s, %s: %" PRIu64 " images, %" PRIu64 " refused, %" PRIu64 " damaged, %" PRIu64
           " without a trace of it\n",
           layout_names[layout], what, looks, refused, damaged, unnoticed);
}

static void each_layout(void (*run)(const void *layout))
{
    for (int layout = 0; layout < LAYOUTS; layout++) check_in_child(run, &layout);
}

static void whole_one(const void *user)
{
    const int layout = *(const int *)user;
    const image im = make(layout);
    npuprof_damage damage;
    CHECK_UINT(look(&im, im.bytes, im.count, &damage), im.recorded);
    CHECK_UINT(damage.places, 0);
    uint64_t nothing_at_all[1] = { 0 };          /* memory is aligned to 8 */
    CHECK_UINT(look(&im, im.bytes, 0, &damage), UINT64_MAX);
    CHECK_INT(npuprof_load_memory(NULL, 100, &damage), NPUPROF_ERR_ARGUMENT);
    CHECK_INT(npuprof_load(NULL, &damage), NPUPROF_ERR_NOT_FOUND);
    /* Without a place for the damage. */
    CHECK_INT(npuprof_load_memory(im.bytes, im.count, NULL), NPUPROF_OK);
    npuprof_unload();
    npuprof_unload();
    CHECK_INT(npuprof_load_memory(nothing_at_all, 1, NULL), NPUPROF_ERR_FORMAT);
}

static void whole(void) { each_layout(whole_one); }

/* Cut off at every 64th byte: refused or damaged, and never more events than before. */
static void truncated_one(const void *user)
{
    const int layout = *(const int *)user;
    const image im = make(layout);
    npuprof_damage damage;
    uint64_t most = 0;
    const size_t step = check_is_quick() || CHECK_SANITIZED || getenv("NPUPROF_TEST_SLOW") ? 832 : 64;
    for (size_t count = 0; count < im.count && !check_failures_; count += step) {
        const uint64_t got = look(&im, im.bytes, count, &damage);
        if (got == UINT64_MAX) continue;
        /* A stream that is cut off between two blocks is one that ended there. */
        if (!damage.places && (layout == 1 || layout == 2) && got != im.recorded)
            check_failed_(__FILE__, __LINE__, "cut off at %zu of %zu: %" PRIu64 " of %" PRIu64
                                              " events and no damage", count,
                          im.count, got, im.recorded);
        if (got > im.recorded)
            check_failed_(__FILE__, __LINE__, "cut off at %zu: %" PRIu64 " events of %" PRIu64, count, got,
                          im.recorded);
        if (got > most) most = got;
    }
    CHECK(most > im.recorded / 2);         /* what is there is read */
    report("cut off", layout);
}

static void truncated(void) { each_layout(truncated_one); }

static uint32_t random_state;
static uint32_t random_below(size_t limit)
{
    return random_state = random_state * 1664525u + 1013904223u, (uint32_t)((random_state >> 4) % limit);
}

/* Bits, bytes and words changed anywhere. */
static void flipped_one(const void *user)
{
    const int layout = *(const int *)user;
    const image im = make(layout);
    npuprof_damage damage;
    static const uint64_t words[] = {0,
                                     1,
                                     0x7F,
                                     0xFF,
                                     0x100,
                                     0x7FFF,
                                     0xFFFF,
                                     0x10000,
                                     INT32_MAX,
                                     UINT32_MAX,
                                     INT64_MAX,
                                     UINT64_MAX,
                                     UINT64_C(1) << 63,
                                     0xFFFF0,
                                     0xFFFF5};
    const uint64_t n = life_scaled(1500, 20000);
    uint64_t least = UINT64_MAX, sum = 0;
    uint8_t *bytes = (uint8_t *)malloc(im.count);
    CHECK_STOP(bytes != NULL);
    for (uint64_t i = 0; i < n && !check_failures_; i++) {
        random_state = (uint32_t)i * 2654435761u + (uint32_t)layout;
        memcpy(bytes, im.bytes, im.count);
        /* Half of the changes in the header, the table and the first chunk. */
        const size_t limit = i % 2 ? im.count : i % 4 ? 1024 : 8192;
        for (uint32_t k = 1 + random_below(4); k; k--) {
            const size_t at = random_below(limit - 8), width = (size_t)1 << random_below(4);
            if (random_below(2)) bytes[at] ^= (uint8_t)(1 << random_below(8));
            else memcpy(bytes + at / width * width, &words[random_below(sizeof words / sizeof *words)],
                        width);
        }
        const uint64_t got = look(&im, bytes, im.count, &damage);
        if (got == UINT64_MAX) continue;
        if (got < least) least = got;
        sum += got;
        if (check_failures_) printf("  (change %" PRIu64 ")\n", i);
    }
    CHECK(sum / (looks - refused) > im.recorded * 7 / 10);       /* most of it is saved */
    report("changed", layout);
}

static void flipped(void) { each_layout(flipped_one); }

/* Whole blocks swapped, zeroed, doubled, filled with another's bytes. */
static void blocks_one(const void *user)
{
    const int layout = *(const int *)user;
    const image im = make(layout);
    npuprof_damage damage;
    const uint64_t n = life_scaled(800, 8000);
    uint8_t *bytes = (uint8_t *)malloc(im.count);
    CHECK_STOP(bytes != NULL);
    for (uint64_t i = 0; i < n && !check_failures_; i++) {
        random_state = (uint32_t)i * 2654435761u + 77u;
        memcpy(bytes, im.bytes, im.count);
        static const size_t sizes[] = { 16, 64, 256, 512, 1024, 4096 };
        const size_t size = sizes[random_below(6)], places = im.count / size, a = random_below(places) * size,
                     b = random_below(places) * size;
        size_t count = im.count;
        switch (i % 5) {
        case 0: memset(bytes + a, 0, size); break;
        case 1: memset(bytes + a, 0xFF, size); break;
        case 2: memcpy(bytes + a, im.bytes + b, size); break;
        case 3: memcpy(bytes + a, im.bytes + b, size), memcpy(bytes + b, im.bytes + a, size); break;
        /* a piece is missing */
        default: memmove(bytes + a, bytes + a + size, im.count - a - size), count -= size; break;
        }
        (void)look(&im, bytes, count, &damage);
        if (check_failures_) printf("  (change %" PRIu64 ")\n", i);
    }
    report("blocks changed", layout);
}

static void blocks(void) { each_layout(blocks_one); }

/* Parts of the table wherever a wrong head puts them: nothing is read or written outside of it. */
static void wild_parts(void)
{
    static const uint64_t wild[] = { 0, 8, 16, 1024, 65536, 1u << 28, 1u << 29, UINT32_MAX - 7,
                                     (uint64_t)1 << 32, INT64_MAX - 7, UINT64_MAX - 7, UINT64_MAX };
    enum { WILD = sizeof wild / sizeof *wild };
    char name[80];
    npuprof_damage damage;
    const life_path path = life_own_path("npuprof");
    npuprof_desc desc;
    memset(&desc, 0, sizeof desc);
    desc.arena_bytes = 65536;
    desc.arena_path = path.pattern;
    CHECK_INT(npuprof_init(&desc), NPUPROF_OK);
    npuprof_start(1);
    for (int i = 0; i < 60; i++) {
        snprintf(name, sizeof name, "a name of a table that is longer than its first part, %d", i);
        PROF_BEGIN("c", name);
        PROF_END();
    }
    npuprof_stop();
    image im = { NULL, 0, stats_now().recorded };
    im.bytes = (uint8_t *)check_read_file(path.path, &im.count);
    CHECK_STOP(im.bytes != NULL);
    unlink(path.path);
    int parts = 0;
    npuprof_header_ h;
    memcpy(&h, im.bytes, sizeof h);
    for (size_t at = h.chunks_offset; at + h.chunk_bytes <= im.count; at += h.chunk_bytes) {
        npuprof_chunk_ chunk;
        memcpy(&chunk, im.bytes + at, sizeof chunk);
        if (chunk.state != NPUPROF_BLOCK_TABLE_PIECE) continue;
        parts++;
        for (int i = 0; i < WILD * WILD; i++) {
            npuprof_chunk_ bad = chunk;
            bad.base = i % 3 == 0 ? chunk.base + wild[i % WILD] : wild[i % WILD];
            bad.first_position = wild[i / WILD];
            memcpy(im.bytes + at, &bad, sizeof bad);
            (void)look(&im, im.bytes, im.count, &damage);
        }
        memcpy(im.bytes + at, &chunk, sizeof chunk);
    }
    CHECK(parts >= 2);
    CHECK_UINT(look(&im, im.bytes, im.count, &damage), im.recorded);
    CHECK_UINT(damage.places, 0);
}

/* A large image that is damaged everywhere is still read in linear time. */
static void damaged_everywhere_one(const void *user)
{
    const int layout = *(const int *)user;
    static life_memory memory;
    npuprof_damage damage;
    if (layout != 3) return;
    life_begin(NPUPROF_STREAM, 1 << 20, &memory);
    for (int i = 0; i < (CHECK_SANITIZED || getenv("NPUPROF_TEST_SLOW") ? 200000 : 1500000); i++) {
        PROF_SCOPE("s");
    }
    CHECK_INT(npuprof_flush(), NPUPROF_OK);
    const uint64_t recorded = stats_now().recorded;
    image im = { memory.bytes, memory.count, recorded };
    double started = life_seconds();
    CHECK_UINT(look(&im, im.bytes, im.count, &damage), recorded);
    const double whole_took = life_seconds() - started;
    /* A few bytes are missing in every block. */
    size_t to = 0;
    uint8_t *bytes = (uint8_t *)malloc(im.count);
    CHECK_STOP(bytes != NULL);
    for (size_t at = 0; at < im.count; at += 4096) {
        const size_t n = im.count - at < 4096 ? im.count - at : 4096, keep = at && n == 4096 ? n - 24 : n;
        memcpy(bytes + to, im.bytes + at, keep);
        to += keep;
    }
    started = life_seconds();
    (void)look(&im, bytes, to, &damage);
    const double took = life_seconds() - started;
    printf("note %zu MiB, damaged in each block: %" PRIu64 " places, %.2f s; whole: %.2f s\n", im.count >> 20,
           damage.places,
           took, whole_took);
    CHECK(took < whole_took * 5 + 1);
}

static void damaged_everywhere(void) { each_layout(damaged_everywhere_one); }

/* Loading beside a live arena: recording goes on there, and is seen again after unload. */
static void loaded_beside_live(void)
{
    npuprof_damage damage;
    life_begin(NPUPROF_KEEP_OLDEST, 1 << 20, NULL);
    for (int i = 0; i < 100; i++) { PROF_SCOPE("first"); }
    const life_path name = life_own_path("npuprof");
    CHECK_INT(npuprof_dump(name.path), NPUPROF_OK);
    CHECK_INT(npuprof_load(name.path, &damage), NPUPROF_OK);
    for (int i = 0; i < 50; i++) { PROF_SCOPE("second"); }
    CHECK_UINT(stats_now().recorded, 100);
    CHECK_UINT(life_count(NULL, NULL).slices, 100);
    CHECK_INT(npuprof_load(name.path, &damage), NPUPROF_OK);      /* again, over the first */
    CHECK_UINT(stats_now().recorded, 100);
    CHECK_INT(npuprof_load("/no/such/file", &damage), NPUPROF_ERR_NOT_FOUND);
    npuprof_unload();
    CHECK_UINT(stats_now().recorded, 150);
    CHECK_UINT(life_count(NULL, NULL).slices, 150);
    npuprof_write_json(nothing());
    unlink(name.path);
}

/* A process that is killed between the creation of its stream and the first block leaves an empty file. */
static void empty(void)
{
    npuprof_damage damage;
    const char *const path = check_path("empty.npuprof");
    FILE *const file = fopen(path, "wb");
    CHECK_STOP(file != NULL);
    fclose(file);
    CHECK_INT(npuprof_load(path, &damage), NPUPROF_ERR_FORMAT);
    CHECK_STR(damage.what, "shorter than a header");
    unlink(path);
}

CHECK_MAIN(CASE(whole), CASE(empty), CASE(truncated), CASE(wild_parts), CASE_THOROUGH(flipped),
           CASE_THOROUGH(blocks), CASE_THOROUGH(damaged_everywhere),
           CASE(loaded_beside_live))
