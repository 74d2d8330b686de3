/* npuprof_ort.h - the profiler of an execution provider of ONNX Runtime, on npuprof. Include it in one C or
   C++ file of the plug-in, after npuprof.h, npuprof_npu.h and onnxruntime_c_api.h (or ort_api.h), and let
   OrtEp::CreateProfiler call npuprof_ort_create(). ../README.md says what is exact.
   SPDX-License-Identifier: MIT

   Each event of ORT becomes a span of npuprof. When ORT's profiling ends, the device spans of npuprof go
   into ORT's profile, on ORT's clock. Where its 0 is on npuprof's clock follows from the events. ORT reads
   its clock before it calls StartEvent or StopEvent, and after the call that the thread had before. So each
   event bounds the 0 from both sides, and all together within some us. No span is moved into its node. */
#ifndef NPUPROF_ORT_H
#define NPUPROF_ORT_H

#include <inttypes.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#ifdef __cplusplus
#define NPUPROF_ORT_NOEXCEPT noexcept    /* ORT's pointers have it in C++ */
#else
#define NPUPROF_ORT_NOEXCEPT
#endif

enum { NPUPROF_ORT_BATCH = 256, NPUPROF_ORT_DEPTH = 8, NPUPROF_ORT_LAST = 4, NPUPROF_ORT_ARGS = 16,
       NPUPROF_ORT_TEXT = 128, NPUPROF_ORT_ROW = 1000000000 };

typedef struct npuprof_ort {
    OrtEpProfilerImpl impl;              /* first: ORT's pointer to it is one to this */
    const OrtApi *api;
    const OrtEpApi *ep;
    uint32_t number;                     /* of this profiler: there is one for each session or run */
    int64_t created_ns, start_ns;
    int64_t not_before_ns, not_after_ns; /* the 0 of ORT's profile is between them */
    npuprof_cursor devices;
    uint64_t unplaced, too_deep, arguments;          /* what is not in the profile */
    OrtProfilingEventsContainer *to;     /* while it ends */
    OrtProfilingEvent *batch[NPUPROF_ORT_BATCH];
    size_t batched;
    OrtStatus *failed;
} npuprof_ort;

/* How many profilers are at work, and whether the first of them started npuprof. The mutex guards both. */
static struct { pthread_mutex_t mutex; uint32_t running, created; bool started; }
    npuprof_ort_all = { PTHREAD_MUTEX_INITIALIZER, 0, 0, false };

/* What a thread has open, and when each profiler was called last on it.
   Why so little: libraries that are opened late share few bytes of such storage. */
typedef struct npuprof_ort_event { uint32_t profiler; int64_t after_ns, begun_ns; } npuprof_ort_event;
static __thread struct {
    uint32_t depth;
    npuprof_ort_event open[NPUPROF_ORT_DEPTH];
    struct { uint32_t profiler; int64_t ns; } last[NPUPROF_ORT_LAST];
} npuprof_ort_thread;

static npuprof_ort *npuprof_ort_of(OrtEpProfilerImpl *impl) { return (npuprof_ort *)(void *)impl; }

/* ---- Where the 0 of ORT's profile is. Any thread adds to it. */

static void npuprof_ort_not_before(npuprof_ort *p, int64_t ns)
{
    int64_t was = __atomic_load_n(&p->not_before_ns, __ATOMIC_RELAXED);
    while (was < ns && !__atomic_compare_exchange_n(&p->not_before_ns, &was, ns, true, __ATOMIC_RELAXED,
                                                    __ATOMIC_RELAXED)) { }
}

static void npuprof_ort_not_after(npuprof_ort *p, int64_t ns)
{
    int64_t was = __atomic_load_n(&p->not_after_ns, __ATOMIC_RELAXED);
    while (was > ns && !__atomic_compare_exchange_n(&p->not_after_ns, &was, ns, true, __ATOMIC_RELAXED,
                                                    __ATOMIC_RELAXED)) { }
}

/* When the profiler was called last on this thread; 0: not known. */
static int64_t npuprof_ort_last(const npuprof_ort *p)
{
    const unsigned i = p->number % NPUPROF_ORT_LAST;
    return npuprof_ort_thread.last[i].profiler == p->number ? npuprof_ort_thread.last[i].ns : 0;
}

static void npuprof_ort_called(const npuprof_ort *p, int64_t ns)
{
    const unsigned i = p->number % NPUPROF_ORT_LAST;
    npuprof_ort_thread.last[i].profiler = p->number;
    npuprof_ort_thread.last[i].ns = ns;
}

/* ORT read its clock between two moments: it showed us to us + more. after_ns 0: the first is not known. */
static void npuprof_ort_read_clock(npuprof_ort *p, int64_t us, int64_t more, int64_t after_ns,
                                   int64_t before_ns)
{
    if (after_ns) npuprof_ort_not_before(p, after_ns - (us + more) * 1000);
    npuprof_ort_not_after(p, before_ns - us * 1000);
}

/* ---- ORT's events */

static OrtStatus *npuprof_ort_start(OrtEpProfilerImpl *impl, int64_t offset_ns) NPUPROF_ORT_NOEXCEPT
{
    npuprof_ort *const p = npuprof_ort_of(impl);
    pthread_mutex_lock(&npuprof_ort_all.mutex);
    if (!npuprof_ort_all.running++ && !npuprof_is_recording())
        npuprof_ort_all.started = npuprof_start(1) == NPUPROF_OK;
    pthread_mutex_unlock(&npuprof_ort_all.mutex);
    p->start_ns = npuprof_now_ns();
    p->not_before_ns = p->created_ns - offset_ns;
    p->not_after_ns = p->start_ns - offset_ns;
    const npuprof_result result =        /* passes over what was before */
        npuprof_read(&p->devices, 1u << NPUPROF_KIND_DEVICE, NULL, NULL, NULL);
    return result ? p->api->CreateStatus(ORT_FAIL, npuprof_result_string(result)) : NULL;
}

static OrtStatus *npuprof_ort_start_event(OrtEpProfilerImpl *impl, uint64_t correlation) NPUPROF_ORT_NOEXCEPT
{
    npuprof_ort *const p = npuprof_ort_of(impl);
    const int64_t now = npuprof_now_ns();
    const npuprof_ort_event event = { p->number, npuprof_ort_last(p), now };
    const uint32_t depth = npuprof_ort_thread.depth++;
    (void)correlation;                   /* in us, so two events may have the same */
    if (depth < NPUPROF_ORT_DEPTH) npuprof_ort_thread.open[depth] = event;
    else __atomic_add_fetch(&p->too_deep, 1, __ATOMIC_RELAXED);
    npuprof_ort_called(p, now);
    return NULL;
}

/* Takes the newest open event of this profiler from the thread's list: several profilers may see each event,
   and end it in any order. False: it is not in the list. */
static bool npuprof_ort_take(const npuprof_ort *p, npuprof_ort_event *event)
{
    uint32_t at = npuprof_ort_thread.depth;
    if (at) npuprof_ort_thread.depth--;
    if (at > NPUPROF_ORT_DEPTH) return false;
    while (at && npuprof_ort_thread.open[at - 1].profiler != p->number) at--;
    if (!at) return false;
    *event = npuprof_ort_thread.open[at - 1];
    for (; at <= npuprof_ort_thread.depth; at++)
        npuprof_ort_thread.open[at - 1] = npuprof_ort_thread.open[at];
    return true;
}

/* A value of ORT's event, or NULL. The status of a failed call says nothing more. */
static const char *npuprof_ort_value(const npuprof_ort *p, const OrtProfilingEvent *event, const char *key)
{
    const char *value = NULL;
    OrtStatus *const failed = p->ep->ProfilingEvent_GetArgValue(event, key, &value);
    if (failed) p->api->ReleaseStatus(failed);
    return failed ? NULL : value;
}

static OrtStatus *npuprof_ort_stop_event(OrtEpProfilerImpl *impl, uint64_t correlation,
                                         const OrtProfilingEvent *event) NPUPROF_ORT_NOEXCEPT
{
    npuprof_ort *const p = npuprof_ort_of(impl);
    const int64_t now = npuprof_now_ns();
    npuprof_ort_event open;
    const char *name = NULL;
    int64_t us = 0, lasted_us = 0;
    char track[32];
    (void)correlation;
    OrtStatus *failed = p->ep->ProfilingEvent_GetName(event, &name);
    if (!failed) failed = p->ep->ProfilingEvent_GetTimestampUs(event, &us);
    if (!failed) failed = p->ep->ProfilingEvent_GetDurationUs(event, &lasted_us);
    if (!npuprof_ort_take(p, &open) || failed) return failed;
    /* ORT cuts the start and the length to whole us: its end may be 2 us later than it says. */
    npuprof_ort_read_clock(p, us, 1, open.after_ns, open.begun_ns);
    npuprof_ort_read_clock(p, us + lasted_us, 2, npuprof_ort_last(p), now);
    const char *const op = npuprof_ort_value(p, event, "op_name");
    const char *const index = npuprof_ort_value(p, event, "node_index");
    snprintf(track, sizeof track, "onnxruntime %ld", syscall(SYS_gettid));
    if (op)
        npuprof_span(track, "onnxruntime", name, open.begun_ns, now,
                     PROF_ARGS(PROF_STR("op_name", op), PROF_INT("node_index", index ? atol(index) : -1)));
    else npuprof_span(track, "onnxruntime", name, open.begun_ns, now, PROF_NO_ARGS);
    npuprof_ort_called(p, npuprof_now_ns());
    return NULL;
}

/* ---- Into ORT's profile */

/* ORT writes names and values into JSON as they are, and takes a value in brackets for JSON. Copies one that
   cannot break it. */
static const char *npuprof_ort_plain(char to[NPUPROF_ORT_TEXT], const char *text)
{
    size_t n = 0;
    while (n < NPUPROF_ORT_TEXT - 1 && text[n]) {
        const unsigned char c = (unsigned char)text[n];
        to[n++] = c < ' ' || c == '\\' || c == 127 ? ' ' : c == '"' ? '\'' : (char)c;
    }
    while (text[n] && n && ((unsigned char)text[n] & 0xC0) == 0x80) n--;     /* not inside a character */
    to[n] = 0;
    if (*to == '{' || *to == '[') *to = '(';
    return to;
}

static int64_t npuprof_ort_us(int64_t ns) { return ns / 1000 - (ns % 1000 < 0); }

static void npuprof_ort_hand_over(npuprof_ort *p)
{
    if (!p->failed && p->batched)                /* ORT refuses an empty list */
        p->failed = p->ep->ProfilingEventsContainer_AddEvents(
            p->to, (const OrtProfilingEvent *const *)p->batch, p->batched);
    while (p->batched) p->ep->ReleaseProfilingEvent(p->batch[--p->batched]);
}

typedef struct npuprof_ort_texts {       /* arguments of an event */
    const char *key[NPUPROF_ORT_ARGS], *value[NPUPROF_ORT_ARGS];
    char text[NPUPROF_ORT_ARGS][NPUPROF_ORT_TEXT];
    size_t count, left_out;
} npuprof_ort_texts;

static void npuprof_ort_put(npuprof_ort_texts *t, const char *key, const char *text)
{
    if (t->count == NPUPROF_ORT_ARGS) {
        t->left_out++;
        return;
    }
    t->key[t->count] = key;
    t->value[t->count] = npuprof_ort_plain(t->text[t->count], text);
    t->count++;
}

static void npuprof_ort_put_uint(npuprof_ort_texts *t, const char *key, uint64_t value)
{
    char text[24];
    snprintf(text, sizeof text, "%" PRIu64, value);
    npuprof_ort_put(t, key, text);
}

static void npuprof_ort_put_arg(npuprof_ort_texts *t, const npuprof_arg *arg)
{
    char text[32];
    switch (arg->type) {
    case NPUPROF_ARG_INT: snprintf(text, sizeof text, "%" PRId64, arg->value.i); break;
    case NPUPROF_ARG_REAL: snprintf(text, sizeof text, "%.17g", arg->value.d); break;
    case NPUPROF_ARG_BOOL: snprintf(text, sizeof text, "%s", arg->value.u ? "true" : "false"); break;
    case NPUPROF_ARG_STR: npuprof_ort_put(t, arg->key, arg->value.s); return;
    default: snprintf(text, sizeof text, "%" PRIu64, arg->value.u);
    }
    npuprof_ort_put(t, arg->key, text);
}

static void npuprof_ort_add(npuprof_ort *p, int row, const char *name, int64_t start_us, int64_t end_us,
                            const npuprof_ort_texts *t)
{
    char plain[NPUPROF_ORT_TEXT];
    if (p->failed) return;
    p->failed = p->ep->CreateProfilingEvent(OrtProfilingEventCategory_KERNEL, (int32_t)getpid(),
                                            NPUPROF_ORT_ROW + row, npuprof_ort_plain(plain, name), start_us,
                                            end_us - start_us, t->key, t->value, t->count,
                                            &p->batch[p->batched]);
    if (!p->failed && ++p->batched == NPUPROF_ORT_BATCH) npuprof_ort_hand_over(p);
}

/* A device span. Its error is that of the device's clock, half of what is open about ORT's 0, and the us that
   ORT's stamps are cut to. */
static bool npuprof_ort_give(void *user, const npuprof_read_span *span)
{
    npuprof_ort *const p = (npuprof_ort *)user;
    npuprof_ort_texts t;
    const int64_t a = p->not_before_ns, b = p->not_after_ns, zero = a + (b - a) / 2;
    if (span->flags & NPUPROF_READ_POINT) return true;
    if (span->flags & NPUPROF_READ_NO_TIME) p->unplaced++;
    if (span->flags & NPUPROF_READ_NO_TIME || span->end_ns < p->start_ns) return true;
    t.count = t.left_out = 0;
    npuprof_ort_put(&t, "device", span->track);
    npuprof_ort_put_uint(&t, "engine", span->engine);
    if (span->error_ns == UINT64_MAX) npuprof_ort_put(&t, "error_ns", "unknown");
    else npuprof_ort_put_uint(&t, "error_ns", span->error_ns + (uint64_t)llabs(b - a) / 2 + 1000);
    if (a > b) npuprof_ort_put(&t, "clock", "ORT's clock was set while it profiled");
    if (span->flags & NPUPROF_READ_HAS_TICKS) {
        npuprof_ort_put_uint(&t, "start_ticks", span->start_ticks);
        npuprof_ort_put_uint(&t, "end_ticks", span->end_ticks);
        npuprof_ort_put_uint(&t, "epoch", span->epoch);
    }
    for (size_t i = 0; i < span->arg_count; i++) npuprof_ort_put_arg(&t, &span->args[i]);
    p->arguments += t.left_out;
    npuprof_ort_add(p, (int)(span->device << 16 | span->engine), span->name,
                    npuprof_ort_us(span->start_ns - zero), npuprof_ort_us(span->end_ns - zero), &t);
    return !p->failed;
}

static OrtStatus *npuprof_ort_end(OrtEpProfilerImpl *impl,
                                  OrtProfilingEventsContainer *events) NPUPROF_ORT_NOEXCEPT
{
    npuprof_ort *const p = npuprof_ort_of(impl);
    npuprof_read_result read = { sizeof read, 0, 0, 0, 0 };
    p->to = events;
    const npuprof_result result =        /* drains the devices first */
        npuprof_read(&p->devices, 1u << NPUPROF_KIND_DEVICE, npuprof_ort_give, p, &read);
    pthread_mutex_lock(&npuprof_ort_all.mutex);
    if (!--npuprof_ort_all.running && npuprof_ort_all.started) {
        npuprof_stop();
        npuprof_ort_all.started = false;
    }
    pthread_mutex_unlock(&npuprof_ort_all.mutex);
    if (read.lost || p->unplaced || p->too_deep || p->arguments) {
        npuprof_ort_texts t;
        const int64_t now_us = npuprof_ort_us(npuprof_now_ns() - p->not_after_ns);
        t.count = t.left_out = 0;
        npuprof_ort_put_uint(&t, "lost", read.lost);
        npuprof_ort_put_uint(&t, "without_time", p->unplaced);
        npuprof_ort_put_uint(&t, "nested_too_deep", p->too_deep);
        npuprof_ort_put_uint(&t, "arguments", p->arguments);
        npuprof_ort_add(p, 0, "npuprof: not in this profile", now_us, now_us, &t);
    }
    npuprof_ort_hand_over(p);
    if (!p->failed && result) return p->api->CreateStatus(ORT_FAIL, npuprof_result_string(result));
    return p->failed;
}

static void npuprof_ort_release(OrtEpProfilerImpl *impl) NPUPROF_ORT_NOEXCEPT
{
    npuprof_read_end(&npuprof_ort_of(impl)->devices);
    free(npuprof_ort_of(impl));
}

/* Call it in OrtEp::CreateProfiler. Each call makes a profiler of its own. */
static inline OrtStatus *npuprof_ort_create(const OrtApi *api, OrtEpProfilerImpl **profiler)
{
    npuprof_ort *const p = (npuprof_ort *)calloc(1, sizeof *p);
    *profiler = NULL;
    if (!p) return api->CreateStatus(ORT_FAIL, "npuprof: no memory for a profiler");
    p->api = api;
    p->ep = api->GetEpApi();
    p->number = __atomic_add_fetch(&npuprof_ort_all.created, 1, __ATOMIC_RELAXED);
    p->created_ns = npuprof_now_ns();
    p->impl.ort_version_supported = ORT_API_VERSION;
    p->impl.Release = npuprof_ort_release;
    p->impl.StartProfiling = npuprof_ort_start;
    p->impl.StartEvent = npuprof_ort_start_event;
    p->impl.StopEvent = npuprof_ort_stop_event;
    p->impl.EndProfiling = npuprof_ort_end;
    *profiler = &p->impl;
    return NULL;
}
#endif /* NPUPROF_ORT_H */
