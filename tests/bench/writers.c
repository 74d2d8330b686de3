/* What writing and loading cost, as ratios taken in one run: each round times the library and the yardstick
   of a row one after the other, in
   CPU time of the thread; medians over the rounds, with the spread of their middle half.
   SPDX-License-Identifier: MIT

   usage: writers [--rounds N] [--spans N] [--directory DIR] [--json FILE]
   Build: cc -O2 -I. tests/bench/writers.c -o build/bench_writers -pthread. DIR, default /dev/shm, should be
   on a tmpfs. A line a row: name, ratio, limit, spread, ns for each span; `over` where the ratio is above its
   limit. Exit code 1: unstable, run again on a quiet machine; 2: it could not run.

   The trace is the same at every run: two threads, sixteen call sites without category, spans nested three
   deep, on a clock of its own; the last rows are of one with an integer in each span. Yardsticks: `write` is
   write(2) of the same bytes to the same place, in pieces of 256 KiB (of an image: at once); `snprintf` is
   the same fields, taken as integers from an array, through snprintf into a buffer of 256 KiB that goes into
   the same place. An image is compared with write(2) and read(2) of the raw units, 16 bytes a span and 16
   more for its integer: so much it took before its units were coded. */
#include "bench.h"
static __thread uint64_t clock_ns = 1000000000;
static inline uint64_t my_clock(void) { return clock_ns; }
#define NPUPROF_NOW() my_clock()
#define NPUPROF_NOW_HZ 1000000000
#define NPUPROF_ARENA_BYTES 8192
#define NPUPROF_IMPLEMENTATION
#include "npuprof.h"
#include "../../tools/convert/load.h"

#include <inttypes.h>
#include <stdarg.h>

enum { PIECE = 256 * 1024, ROUNDS = 64, ROWS = 16 };
static int rounds = 15;
static size_t spans = 1000000;
static const char *directory = "/dev/shm";

static double cpu_ns(void) { return bench_ns(CLOCK_THREAD_CPUTIME_ID); }

static void stop(const char *what)
{
    fprintf(stderr, "writers: %s\n", what);
    exit(2);
}

/* ---- The trace */

static uint64_t random_bits = 1;
static uint64_t some(uint64_t least, uint64_t more)
{
    random_bits = random_bits * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return least + (random_bits >> 33) % more;
}

/* One of sixteen layers: a span around two of the sites' that are its operators. */
#define LAYER(SPAN, outer, first, second)                                   \
    {                                                                       \
        SPAN(outer);                                                        \
        clock_ns += some(50, 400);                                          \
        { SPAN(first); clock_ns += some(300, 3000); }                       \
        { SPAN(second); clock_ns += some(1000, 40000); }                    \
        clock_ns += some(50, 400);                                          \
    }
#define RUN(SPAN)                                                           \
    {                                                                       \
        SPAN("Inference");                                                  \
        LAYER(SPAN, "stem", "pad", "conv1")                                 \
        LAYER(SPAN, "block1", "reorder", "conv2")                           \
        LAYER(SPAN, "block2", "quantize", "conv3")                          \
        LAYER(SPAN, "attention", "softmax", "matmul")                       \
        LAYER(SPAN, "head", "pool", "dense")                                \
        clock_ns += some(100, 5000);                                        \
    }
#define WITH_INTEGER(name) PROF_SCOPE_ARGS("", name, PROF_ARGS(PROF_INT("bytes", (int64_t)some(0, 1000000))))
enum { SPANS_OF_RUN = 16 };
static bool with_integers;
static void plain_run(void) { RUN(PROF_SCOPE) }
static void integer_run(void) { RUN(WITH_INTEGER) }

static void *record(void *count)
{
    clock_ns = 1000000000;
    for (size_t i = 0; i < *(size_t *)count; i++) {
        if (with_integers) integer_run();
        else plain_run();
    }
    return NULL;
}

/* Why one thread after the other: the trace is then the same each time. They have slots of their own all the
   same. */
static void record_all(void)
{
    size_t runs = (spans + 2 * SPANS_OF_RUN - 1) / (2 * SPANS_OF_RUN);
    spans = runs * 2 * SPANS_OF_RUN;
    npuprof_start(1);
    for (int i = 0; i < 2; i++) {
        pthread_t thread;
        if (pthread_create(&thread, NULL, record, &runs)) stop("no thread");
        pthread_join(thread, NULL);
    }
    npuprof_stop();
}

/* ---- Where bytes go */

static char path[600], other[600], raw[4096];
static bench_memory file;              /* the one at hand */
static int null_fd;
static npuprof_sink null_sink = { bench_to_fd, &null_fd };

static void write_bytes(size_t piece)
{
    const int fd = open(other, O_WRONLY | O_CREAT | O_TRUNC, 0600);
    if (fd < 0) stop("cannot write to the directory");
    for (size_t at = 0; at < file.count; at += piece) {
        const size_t count = file.count - at < piece ? file.count - at : piece;
        if (write(fd, file.bytes + at, count) != (ssize_t)count) stop("cannot write to the directory");
    }
    close(fd);
}

static void write_pieces(void) { write_bytes(PIECE); }
static void write_at_once(void) { write_bytes(file.count); }

/* ---- The fields for snprintf: those of the trace's own spans, read back from the JSON */

typedef struct field { char name[16]; unsigned tid; uint64_t ts, dur; } field;
static field *fields;
static size_t field_count;
static uint64_t number(const char **p)
{
    uint64_t v = 0;
    for (; (**p >= '0' && **p <= '9') || **p == '.'; ++*p)
        if (**p != '.') v = v * 10 + (uint64_t)(**p - '0');
    return v;
}

static void read_fields(void)
{
    for (const char *line = file.bytes; (line = strstr(line, "\n{\"ph\":\"X\",\"name\":\"")) != NULL
         && field_count < spans + 1024;) {
        field *f = &fields[field_count++];
        line += strlen("\n{\"ph\":\"X\",\"name\":\"");
        const char *end = strchr(line, '"');
        memcpy(f->name, line, (size_t)(end - line));
        line = strstr(end, "\"tid\":") + 6;
        f->tid = (unsigned)number(&line);
        line = strstr(line, "\"ts\":") + 5;
        f->ts = number(&line);
        line = strstr(line, "\"dur\":") + 6;
        f->dur = number(&line);
    }
}

static char buffer[PIECE];
static size_t buffered;
static void formatted(const char *format, ...)
{
    va_list list;
    if (buffered + 256 > sizeof buffer) {
        if (bench_to_fd(&null_fd, buffer, buffered)) stop("cannot write to /dev/null");
        buffered = 0;
    }
    va_start(list, format);
    buffered += (size_t)vsnprintf(buffer + buffered, 256, format, list);
    va_end(list);
}

static void snprintf_json(void)
{
    const unsigned pid = (unsigned)getpid();
    for (const field *f = fields; f < fields + field_count; f++)
        formatted(",\n{\"ph\":\"X\",\"name\":\"%s\",\"pid\":%u,\"tid\":%u,\"ts\":%" PRIu64
                  ".%03u,\"dur\":%" PRIu64 ".%03u}", f->name, pid, f->tid, f->ts / 1000,
                  (unsigned)(f->ts % 1000), f->dur / 1000, (unsigned)(f->dur % 1000));
}

static void snprintf_csv(void)
{
    for (const field *f = fields; f < fields + field_count; f++)
        formatted("%016" PRIx64 "%016" PRIx64 ",%016" PRIx64 ",%016" PRIx64 ",%" PRIu64 ",%" PRIu64
                  ",,%s,%u,,,,,,%" PRIu64 "\n", f->ts, f->dur, f->ts + 1, f->ts + 2,
                  f->ts + 1700000000000000000u, f->ts + f->dur + 1700000000000000000u, f->name, f->tid,
                  f->dur);
}

/* ---- The library's side */

static void check(npuprof_result r)
{
    if (r != NPUPROF_OK) stop(npuprof_result_string(r));
}

static void dump(void) { check(npuprof_dump(path)); }
static void json_to_null(void) { check(npuprof_write_json(null_sink)); }

static void csv_to_null(void)
{
    if (!npuprof_reader_lock_() || npuprof_write_csv_locked_(null_sink)) stop("cannot write the CSV");
    npuprof_reader_unlock_();
}

static void load(void)
{
    check(npuprof_load(path, NULL));
    npuprof_unload();
}

static void read_raw(void)
{
    const int fd = open(raw, O_RDONLY);
    while (read(fd, buffer, sizeof buffer) > 0) { }
    close(fd);
}

/* ---- Rows */

typedef struct row { const char *name, *unit; double ratio, limit, spread, ns; bool unstable; } row;
static row rows[ROWS];
static int row_count;

static void value(const char *name, const char *unit, double v, double limit)
{
    const row r = { name, unit, v, limit, 0, 0, false };
    rows[row_count++] = r;
}

static void measure(const char *name, double limit, void (*library)(void), void (*yardstick)(void))
{
    double ratio[ROUNDS], ns[ROUNDS];
    for (int i = -1; i < rounds; i++) {
        unlink(other);
        if (library == dump) unlink(path);
        double start = cpu_ns();
        yardstick();
        const double base = cpu_ns() - start;
        unlink(other);                 /* Why: the other side finds as much free memory */
        start = cpu_ns();
        library();
        const double own = cpu_ns() - start;
        if (i < 0) continue;           /* the first one warms up */
        ratio[i] = own / base;
        ns[i] = own / (double)spans;
    }
    qsort(ratio, (size_t)rounds, sizeof *ratio, bench_by_value);
    qsort(ns, (size_t)rounds, sizeof *ns, bench_by_value);
    row r = { name, "x", ratio[rounds / 2], limit, 0, ns[rounds / 2], false };
    r.spread = (ratio[rounds * 3 / 4] - ratio[rounds / 4]) / r.ratio;
    r.unstable = r.spread > 0.25;
    rows[row_count++] = r;
}

/* Resident bytes now, exactly. 0: the system does not say. */
static double resident_kib(void)
{
    char line[200];
    unsigned long kib = 0;
    FILE *f = fopen("/proc/self/smaps_rollup", "r");
    while (f && fgets(line, sizeof line, f))
        if (sscanf(line, "Rss: %lu", &kib) == 1) break;
    if (f) fclose(f);
    return (double)kib;
}

static void machine_text(char text[200])
{
    char line[200];
    FILE *f = fopen("/proc/cpuinfo", "r");
    strcpy(text, "unknown");
    while (f && fgets(line, sizeof line, f))
        if (strncmp(line, "model name", 10) == 0 && strchr(line, ':')) {
            snprintf(text, 200, "%.150s", strchr(line, ':') + 2);
            text[strcspn(text, "\n\"\\")] = 0;
            break;
        }
    if (f) fclose(f);
}

int main(int argc, char **argv)
{
    const char *json = NULL;
    char machine[200];
    for (int i = 1; i + 1 < argc; i += 2) {
        if (strcmp(argv[i], "--rounds") == 0) rounds = atoi(argv[i + 1]);
        else if (strcmp(argv[i], "--spans") == 0) spans = (size_t)atol(argv[i + 1]);
        else if (strcmp(argv[i], "--directory") == 0) directory = argv[i + 1];
        else if (strcmp(argv[i], "--json") == 0) json = argv[i + 1];
        else stop("usage: writers [--rounds N] [--spans N] [--directory DIR] [--json FILE]");
    }
    if (argc % 2 == 0 || rounds < 4 || rounds > ROUNDS || spans < 1000)
        stop("usage: writers [--rounds 4..64] [--spans 1000..] [--directory DIR] [--json FILE]");

    npuprof_desc desc;
    memset(&desc, 0, sizeof desc);
    desc.arena_bytes = spans * 36 + 4 * 1024 * 1024;
    desc.arena = malloc(desc.arena_bytes);
    file.room = spans * 160 + 1024 * 1024;
    file.bytes = (char *)malloc(file.room);
    fields = (field *)malloc((spans + 1024) * sizeof *fields);
    if (!desc.arena || !file.bytes || !fields) stop("no memory");
    memset(desc.arena, 1, desc.arena_bytes);
    check(npuprof_init(&desc));
    record_all();
    null_fd = open("/dev/null", O_WRONLY);
    snprintf(other, sizeof other, "%s/npuprof-bench-%d.other", directory, (int)getpid());

    const double before = resident_kib();
    json_to_null();
    const double after = resident_kib();
    csv_to_null();

    const npuprof_sink memory = { bench_to_memory, &file };
    memset(file.bytes, 0, file.room);
    check(npuprof_write_json(memory));
    read_fields();
    if (field_count != spans) stop("the trace is not whole");
    value("json: bytes a span", "", (double)file.count / (double)spans, 80);
    if (before > 0) value("json: memory beyond the arena, KiB", "", after - before, 1024);
    else puts("note: no /proc/self/smaps_rollup, so no figure of memory");
    snprintf(path, sizeof path, "%s/npuprof-bench-%d.json", directory, (int)getpid());
    measure("json: file / write", 1.4, dump, write_pieces);
    unlink(path);
    measure("json: null / snprintf", 0.15, json_to_null, snprintf_json);
    measure("csv: null / snprintf", 0, csv_to_null, snprintf_csv);
    file.count = 0;
    check(npuprof_write_image(memory));
    value("image: bytes a span", "", (double)file.count / (double)spans, 6);
    file.count = spans * sizeof(npuprof_unit_);
    snprintf(path, sizeof path, "%s/npuprof-bench-%d.npuprof", directory, (int)getpid());
    measure("image: file / write of raw units", 1.4, dump, write_at_once);
    write_at_once();
    snprintf(raw, sizeof raw, "%s.raw", other);
    if (rename(other, raw)) stop("cannot write to the directory");
    measure("image: load / read of raw units", 2.2, load, read_raw);
    npuprof_clear();
    with_integers = true;
    record_all();
    file.count = 2 * spans * sizeof(npuprof_unit_);
    measure("image of integers: file / write of raw units", 1.4, dump, write_at_once);
    write_at_once();
    if (rename(other, raw)) stop("cannot write to the directory");
    measure("image of integers: load / read of raw units", 4.0, load, read_raw);
    unlink(raw);
    unlink(path);
    unlink(other);

    bool unstable = false;
    machine_text(machine);
    printf("%s, %zu spans, %d rounds\n%-36s %10s %8s %8s %8s\n", machine, spans, rounds, "", "ratio", "limit",
           "spread", "ns/span");
    FILE *f = json ? fopen(json, "w") : NULL;
    if (json && !f) stop("cannot write the JSON file");
    if (f) fprintf(f, "{\"machine\":\"%s\",\"spans\":%zu,\"rounds\":%d,\"rows\":[", machine, spans, rounds);
    for (const row *r = rows; r < rows + row_count; r++) {
        char limit[24] = "-", spread[24] = "", ns[24] = "";
        if (r->limit > 0) snprintf(limit, sizeof limit, "%g", r->limit);
        if (r->ns > 0) snprintf(ns, sizeof ns, "%.1f", r->ns);
        if (r->ns > 0) snprintf(spread, sizeof spread, "%.0f%%", r->spread * 100);
        const bool over = r->limit > 0 && r->ratio > r->limit;
        unstable |= r->unstable;
        printf("%-36s %10.3f %8s %8s %8s%s%s\n", r->name, r->ratio, limit, spread, ns, over ? "  over" : "",
               r->unstable ? "  UNSTABLE" : "");
        if (f)
            fprintf(f,
                    "%s\n{\"name\":\"%s\",\"ratio\":%.4f,\"limit\":%s,\"spread\":%.4f,\"ns\":%.3f,"
                    "\"over\":%s,\"unstable\":%s}", r == rows ? "" : ",", r->name, r->ratio,
                    r->limit > 0 ? limit : "null", r->spread, r->ns, over ? "true" : "false",
                    r->unstable ? "true" : "false");
    }
    if (f) fprintf(f, "\n]}\n");
    if (f && fclose(f)) stop("cannot write the JSON file");
    if (unstable)
        puts("UNSTABLE: the ratios of the rounds differ by more than a quarter; "
             "run again on a quiet machine");
    return unstable;
}
