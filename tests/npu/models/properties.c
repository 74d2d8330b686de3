/* test: time=400 large - properties of all formats: polled is fed, any byte may be wrong, any field may be
   misplaced
   SPDX-License-Identifier: MIT */
#include "npu/models/played.h"
#include "npu/models/formats.h"

/* ---- Formats by themselves: a counter by a function, entries by feed or by a ring with an index */

enum { JOBS = 12, ROOM = JOBS * 256 };
static npuprof_npu fed, polled;
static unsigned char *entries, *counts;

static uint64_t read_ticks(void *user)
{
    (void)user;
    play_until(play.host + 20);
    return play_ticks(play.host);
}

static void describe(npuprof_npu_desc *d, const play_format *format, bool feed)
{
    memset(d, 0, sizeof *d);
    d->name = feed ? "fed" : "polled";
    d->read_ticks = read_ticks;
    d->counter.hz = play.hz;
    d->pe_count = 4;
    format->describe(&d->ring);
    d->ring.feed = feed;
    if (feed) return;
    d->ring.memory = entries;
    d->ring.memory_bytes = ROOM;
    d->ring.count = ROOM / d->ring.entry_bytes;
    d->ring.producer.memory = counts;
    d->ring.producer.memory_bytes = 8;
    d->ring.producer.unit = NPUPROF_NPU_INDEX_SLOT;
}

static void begin_world(void)
{
    entries = play_memory(ROOM);
    counts = play_memory(8);
    play.origin = play.host;
    play.start = 5000000;
    npuprof_start(1);
    play_until(play.host + 1000000);
}

/* Submits the jobs of both, and writes their entries. Returns the bytes. */
static size_t write_jobs(const play_format *format, bool both)
{
    size_t bytes = 0;
    for (uint32_t i = 0; i < JOBS; i++) {
        const play_job job = { i, i % 4, 1, 100 + i, play.host, play.host + 2000 + i,
            play.host + 9000 + 2 * i };
        WITH_NPU_PROFILER(&fed, job.lane, "submit", "NPU", PROF_NO_ARGS, {
            npuprof_npu_set_job(&fed, job.id);
            play_until(play.host + 100);
        });
        if (both) {
            WITH_NPU_PROFILER(&polled, job.lane, "submit", "NPU", PROF_NO_ARGS, {
                npuprof_npu_set_job(&polled, job.id);
                play_until(play.host + 100);
            });
        }
        play_until(play.host + 10000);
        bytes += format->write(entries + bytes, &job);
    }
    return bytes;
}

static bool same_value(json_node *a, json_node *b, const char *key)
{
    json_node *x = json_get(json_get(a, "args"), key), *y = json_get(json_get(b, "args"), key);
    return (!x && !y) || (x && y && json_int(x) == json_int(y));
}

/* The n-th device event of a device in the trace: its spans, instants, counters. */
static json_node *device_event(json_node *t, const char *device, size_t n)
{
    for (json_node *e = json_get(t, "traceEvents")->first; e; e = e->next) {
        const char *track = trace_track(t, e);
        if (json_text(json_get(e, "ph"))[0] == 'M' || !track || strncmp(track, device,
                                                                        strlen(device)) != 0) continue;
        if (json_text(json_get(e, "ph"))[0] == 's' || json_text(json_get(e, "ph"))[0] == 'f') continue;
        if (!n--) return e;
    }
    return NULL;
}

/* The second device's events are those of the first. */
static void check_same(const char *what)
{
    static const char *const same[] = { "start_ticks", "end_ticks", "pe_index", "job", "stream", "status",
                                        "handle", "a", "d", "execution_index", "instruction_index" };
    npuprof_npu_close(&fed);
    npuprof_npu_close(&polled);
    const char *path = check_path("same.json");
    CHECK_INT(npuprof_dump(path), NPUPROF_OK);
    CHECK_UINT(play_lost(), 0);
    json_node *t = trace_load(path), *a, *b;
    size_t n = 0;
    for (;; n++) {
        a = device_event(t, "fed", n);
        b = device_event(t, "polled", n);
        if (!a || !b) break;
        if (strcmp(json_text(json_get(a, "name")), json_text(json_get(b, "name"))) != 0)
            check_failed_(__FILE__, __LINE__, "%s: names differ at %zu", what, n);
        /* Events without stamps were seen at two times; blocks of a device that ends no jobs are sampled. */
        json_node *stamp = json_get(a, "args.stamp");
        const bool seen = !stamp || strcmp(json_text(stamp), "device") != 0;
        for (size_t k = seen ? 2 : 0; k < sizeof same / sizeof same[0]; k++)
            if (!same_value(a, b, same[k]))
                check_failed_(__FILE__, __LINE__, "%s: %s of %zu (%s) differs", what, same[k], n,
                              json_text(json_get(a, "ph")));
    }
    CHECK(!a && !b);
    if (n < JOBS) check_failed_(__FILE__, __LINE__, "%s: %zu of %d jobs drawn", what, n, JOBS);
    if (!getenv("PLAY_KEEP")) remove(path);
}

static void polled_is_fed_of(const void *user)
{
    const play_format *format = (const play_format *)user;
    npuprof_npu_desc d;
    begin_world();
    describe(&d, format, true);
    const npuprof_result opened = npuprof_npu_open(&fed, &d);
    if (opened != NPUPROF_OK) check_failed_(__FILE__, __LINE__, "%s", npuprof_result_string(opened));
    describe(&d, format, false);
    CHECK_INT(npuprof_npu_open(&polled, &d), NPUPROF_OK);
    CHECK_INT(npuprof_npu_drain(&polled), NPUPROF_OK);
    const size_t bytes = write_jobs(format, true);
    CHECK_INT(npuprof_npu_feed(&fed, 0, entries, bytes), NPUPROF_OK);
    play_put(counts, 0, 4, bytes / d.ring.entry_bytes);
    CHECK_INT(npuprof_npu_drain(&polled), NPUPROF_OK);
    check_same(format->name);
}

static void polled_is_fed(void)
{
    for (unsigned i = 0; i < PLAY_FORMATS; i++) check_in_child(polled_is_fed_of, &play_formats[i]);
}

/* ---- Each field lies four bytes further than the description says */

static npuprof_npu_field *const *fields_of(npuprof_npu_ring *r)
{
    static npuprof_npu_field *list[32];
    npuprof_npu_field *all[] = { &r->start, &r->end, &r->duration, &r->stamp, &r->kind, &r->key[0],
        &r->clock_high,
                                 &r->job, &r->pe, &r->op, &r->status, &r->execution, &r->instruction,
                                     &r->value,
                                 &r->args[0].field, &r->empty[0].field, &r->clock_when[0].field };
    unsigned n = 0;
    for (size_t i = 0; i < sizeof all / sizeof all[0]; i++) if (all[i]->width_bytes) list[n++] = all[i];
    list[n] = NULL;
    return list;
}

/* No device span lies outside the time from open to close. */
static void check_spans_in(json_node *t, int64_t from, int64_t to, const char *what, size_t which)
{
    for (json_node *e = json_get(t, "traceEvents")->first; e; e = e->next) {
        if (!json_get(e, "args") || !json_get(e, "args.pe_index")) continue;
        if (json_text(json_get(e, "ph"))[0] != 'X') continue;
        json_node *stated = json_get(e, "args.error_ns");
        const int64_t error = stated ? 1000 + json_int(stated) : 1000;
        if (trace_start(e) + error < from || trace_end(e) > to + error || trace_dur(e) < 0)
            check_failed_(__FILE__, __LINE__, "%s, %zu: a span from %" PRId64 " to %" PRId64
                          ", open from %" PRId64
                          " to %" PRId64, what, which, trace_start(e), trace_end(e), from, to);
    }
}

typedef struct shift { const play_format *format; unsigned field; int by; bool *over; } shift;

static void shifted(const void *user)
{
    const shift *s = (const shift *)user;
    npuprof_npu_desc d;
    begin_world();
    describe(&d, s->format, true);
    npuprof_npu_field *const *fields = fields_of(&d.ring), *field = fields[s->field];
    if (!field) exit(2);
    if (s->by < 0 && (int)field->offset < -s->by) return;
    field->offset = (uint16_t)(field->offset + s->by);
    const int64_t from = npuprof_now_ns();
    PROF_INSTANT("test", "origin", PROF_NO_ARGS);
    if (npuprof_npu_open(&fed, &d) != NPUPROF_OK) return;        /* refused */
    const size_t bytes = write_jobs(s->format, false);
    (void)npuprof_npu_feed(&fed, 0, entries, bytes);
    npuprof_npu_close(&fed);
    const int64_t to = npuprof_now_ns() - from;
    const char *path = check_path("shifted.json");
    CHECK_INT(npuprof_dump(path), NPUPROF_OK);
    json_node *t = trace_load(path);
    const int64_t origin = trace_start(trace_event(t, "i", "origin", 0));
    check_spans_in(t, origin, origin + to, s->format->name, s->field);
    remove(path);
}

static void shifted_fields(void)
{
    for (unsigned i = 0; i < PLAY_FORMATS; i++) {
        for (unsigned field = 0; field < 20; field++) {
            for (int by = -4; by <= 4; by += 8) {
                const shift s = { &play_formats[i], field, by, NULL };
                fflush(stdout);
                const pid_t child = fork();
                int status = 0;
                if (child == 0) {
                    check_failures_ = 0;
                    shifted(&s);
                    fflush(stdout);
                    _exit(check_failures_ ? 1 : 0);
                }
                CHECK_STOP(child > 0 && waitpid(child, &status, 0) == child);
                if (WIFEXITED(status) && WEXITSTATUS(status) == 2) field = 20;   /* there is no such field */
                else if (status)
                    check_failed_(__FILE__, __LINE__, "%s: field %u by %d", play_formats[i].name, field, by);
            }
        }
    }
}

/* ---- Every byte of what the device writes is wrong once */

typedef struct flip { const play_model *model; unsigned region; size_t at; unsigned char with; } flip;

static void flipped(const void *user)
{
    const flip *f = (const flip *)user;
    play.seed = 1234567;
    if (play_open(f->model) != NPUPROF_OK) CHECK_STOP(false);
    play_serve();
    const uint64_t from = play.host;
    play_jobs(20);
    for (int i = 0; i < 4; i++) play_submit_one();
    play_until(play.host + 400000);
    play.regions[f->region].memory[f->at] ^= f->with;
    play_serve();
    play_until(play.host + 100000);
    play_serve();
    const uint64_t to = play.host;
    const char *path = play_close();
    json_node *t = trace_load(path);
    const int64_t origin = trace_start(trace_event(t, "i", "origin", 0)),
        open = (int64_t)(from - play.origin);
    check_spans_in(t, origin + open, origin + open + (int64_t)(to - from), f->model->name, f->at);
    if (getenv("PLAY_KEEP") && check_failures_) return;
    remove(path);
    remove(play_truth_path);
}

/* The regions and bytes to flip are those that a first run has written. */
static void flip_model(const play_model *model, unsigned every)
{
    static struct { unsigned region; size_t at; } list[200000];
    size_t count = 0;
    int ends[2];
    CHECK_STOP(pipe(ends) == 0);
    fflush(stdout);
    const pid_t child = fork();
    if (child == 0) {
        FILE *out = fdopen(ends[1], "w");
        play.seed = 1234567;
        (void)play_open(model);
        play_jobs(20);
        for (unsigned r = 0; r < play.region_count; r++)
            for (size_t at = 0; at < play.regions[r].bytes; at++)
                if (play.regions[r].memory[at] || play.regions[r].bytes <= 64) fprintf(out, "%u %zu\n", r,
                                                                                       at);
        fclose(out);
        _exit(0);
    }
    close(ends[1]);
    FILE *in = fdopen(ends[0], "r");
    while (count < 200000 && fscanf(in, "%u %zu", &list[count].region, &list[count].at) == 2) count++;
    fclose(in);
    waitpid(child, NULL, 0);
    for (size_t i = play_random(every); i < count; i += every) {
        const flip f = { model, list[i].region, list[i].at, (unsigned char)(i % 2 ? 0xFF : 1u << i / 2 % 8) };
        if (!check_in_child(flipped, &f))
            check_failed_(__FILE__, __LINE__, "%s: byte %zu of region %u, by %x", model->name, f.at,
                          f.region, f.with);
    }
    printf("note %s: %zu bytes flipped\n", model->name, count / every);
}

static void small_rings(void) { fence_count = hws_count = neuron_count = qaic_count = 8; }
#define FLIPPED(X) \
    X(fence_model) X(hws_model) X(ethosn_model) X(neuron_model) X(qaic_model) X(gaudi_fed_model) \
    X(gaudi_polled_model) X(coral_model) X(hailo_model) X(aie4_model) X(xdna_model) X(tt_model) X(spsc_model)
#define FLIP(model) flip_model(&model, 9);
#define FLIP_ALL(model) flip_model(&model, 1);

static void flipped_bytes(void)
{
    small_rings();
    FLIPPED(FLIP)
}

/* Why only those with a sanitizer: a child for each byte takes ten times as long. Where the ninth begins
   differs from run to run. */
#if CHECK_SANITIZED
CHECK_MAIN(CASE(polled_is_fed), CASE(shifted_fields), CASE(flipped_bytes))
#else
static void every_flipped_byte(void)
{
    small_rings();
    FLIPPED(FLIP_ALL)
}

CHECK_MAIN(CASE(polled_is_fed), CASE(shifted_fields), CASE(flipped_bytes), CASE_THOROUGH(every_flipped_byte))
#endif
