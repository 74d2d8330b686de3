/* npuprof_iree.h - npuprof's device spans in IREE's HAL profile, for a HAL driver whose device has npuprof.
   Include it in one C file of the driver, after npuprof.h and npuprof_npu.h. ../README.md says how, and what
   is exact.
   SPDX-License-Identifier: MIT

   IREE's records have ticks of the device, and samples of both clocks by which a reader places them. So each
   span is a dispatch event with its ticks, and each clock anchor a sample with its bracket. Where npuprof
   places a span, and how exactly, goes beside them in a chunk of npuprof's own: other readers pass it over.
   A queue is a PE. A function is the name of a span, in an executable of its own. When the counter of a
   device was reset, a new physical device begins: no reader may draw one line through both. */
#ifndef NPUPROF_IREE_H
#define NPUPROF_IREE_H

#include <iree/hal/profile_schema.h>
#include <iree/hal/profile_sink.h>

#include <stdlib.h>
#include <string.h>

enum { NPUPROF_IREE_BATCH = 64, NPUPROF_IREE_NAMES = 1024, NPUPROF_IREE_DEVICES = 64 };

/* Content type of npuprof_iree_time records. They are of the dispatch events of their chunk's device and
   queue. */
#define NPUPROF_IREE_TIMES "application/vnd.npuprof.device-times"

typedef struct npuprof_iree_time {
    uint32_t record_length, epoch;
    uint64_t event_id;                   /* of the dispatch event */
    int64_t start_ns, end_ns;            /* on the clock of iree_time_now() */
    uint64_t error_ns;                   /* both are right to so many ns; UINT64_MAX: no bound is known */
} npuprof_iree_time;

typedef struct npuprof_iree_queue {
    struct npuprof_iree_queue *next;
    uint32_t ordinal, engine, event_count, time_count;
    iree_hal_profile_dispatch_event_t events[NPUPROF_IREE_BATCH];
    npuprof_iree_time times[NPUPROF_IREE_BATCH];
} npuprof_iree_queue;

typedef struct npuprof_iree_device {    /* between two resets of its counter */
    uint32_t device, epoch, queue_count;
    uint64_t place;                      /* in the anchors; of the first one of a device */
} npuprof_iree_device;

/* A profiling session: the caller's, all zero before npuprof_iree_begin(), some 10 KiB. */
typedef struct npuprof_iree_session {
    uint64_t dropped;                    /* told to the sink until now: those lost to npuprof, of all kinds,
                                            and device spans without ticks, whose stamps are the host's */
    uint64_t unnamed;                    /* spans that came behind the 1024th name */
    iree_hal_profile_sink_t *sink_;
    iree_status_t status_;               /* the first failure: nothing is written after it */
    bool started_npuprof_;
    uint64_t id_, events_, samples_, missing_;
    npuprof_cursor cursor_;
    int64_t begun_ns_, ahead_ns_, first_ahead_ns_;       /* IREE's clock is ahead of npuprof's */
    uint64_t error_ns_, first_error_ns_;
    npuprof_read_anchor held_;           /* from before the session */
    uint32_t device_count_;
    npuprof_iree_device devices_[NPUPROF_IREE_DEVICES];
    npuprof_iree_queue *queues_;
    char *names_[NPUPROF_IREE_NAMES];
} npuprof_iree_session;

/* ---- Clock */

/* IREE's clock between two reads of npuprof's: the narrowest of five. */
static void npuprof_iree_compare(int64_t *ahead_ns, uint64_t *error_ns)
{
    uint64_t best = UINT64_MAX;
    for (int i = 0; i < 5; i++) {
        const int64_t before = npuprof_now_ns(), now = iree_time_now();
        const uint64_t bracket = (uint64_t)(npuprof_now_ns() - before);
        if (bracket >= best) continue;
        best = bracket;
        *ahead_ns = now - before - (int64_t)(bracket / 2);
        *error_ns = bracket / 2 + 2;
    }
}

/* The middle of what was found at the beginning and now; that they differ is part of the error. */
static void npuprof_iree_set_clock(npuprof_iree_session *s)
{
    int64_t ahead = 0;
    uint64_t error = 0;
    npuprof_iree_compare(&ahead, &error);
    const int64_t apart = ahead - s->first_ahead_ns_;
    s->ahead_ns_ = s->first_ahead_ns_ + apart / 2;
    s->error_ns_ = (error > s->first_error_ns_ ? error : s->first_error_ns_) +
        (uint64_t)(apart < 0 ? -apart : apart) / 2 + 1;
}

/* ---- Chunks */

static iree_hal_profile_chunk_metadata_t npuprof_iree_metadata(const npuprof_iree_session *s,
                                                               const char *type)
{
    iree_hal_profile_chunk_metadata_t metadata = iree_hal_profile_chunk_metadata_default();
    metadata.content_type = iree_make_cstring_view(type);
    metadata.name = iree_make_cstring_view("npuprof");
    metadata.session_id = s->id_;
    return metadata;
}

static void npuprof_iree_put(npuprof_iree_session *s, iree_string_view_t type, const void *record,
                             size_t bytes)
{
    iree_hal_profile_chunk_metadata_t metadata = npuprof_iree_metadata(s, "");
    const iree_const_byte_span_t span = iree_make_const_byte_span(record, bytes);
    metadata.content_type = type;
    if (iree_status_is_ok(s->status_))
        s->status_ = iree_hal_profile_sink_write(s->sink_, &metadata, 1, &span);
}

static uint64_t npuprof_iree_stream(uint32_t ordinal, uint32_t engine)
{
    return (uint64_t)ordinal << 32 | engine;
}

static void npuprof_iree_put_queue(npuprof_iree_session *s, const npuprof_iree_queue *q, const char *type,
                                   const void *records, size_t bytes)
{
    iree_hal_profile_chunk_metadata_t metadata = npuprof_iree_metadata(s, type);
    const iree_const_byte_span_t span = iree_make_const_byte_span(records, bytes);
    metadata.stream_id = npuprof_iree_stream(q->ordinal, q->engine);
    metadata.physical_device_ordinal = q->ordinal;
    metadata.queue_ordinal = q->engine;
    if (bytes && iree_status_is_ok(s->status_))
        s->status_ = iree_hal_profile_sink_write(s->sink_, &metadata, 1, &span);
}

/* ---- What records refer to */

/* If its queues have become more, too: the last one counts. */
static void npuprof_iree_tell_device(npuprof_iree_session *s, uint32_t ordinal)
{
    iree_hal_profile_device_record_t record = iree_hal_profile_device_record_default();
    record.physical_device_ordinal = ordinal;
    record.queue_count = s->devices_[ordinal].queue_count;
    npuprof_iree_put(s, IREE_HAL_PROFILE_CONTENT_TYPE_DEVICES, &record, sizeof record);
}

/* IREE's number of a device; NPUPROF_IREE_DEVICES: they are too many. */
static uint32_t npuprof_iree_ordinal(npuprof_iree_session *s, uint32_t device, uint32_t epoch)
{
    uint32_t i = 0;
    while (i < s->device_count_ && (s->devices_[i].device != device || s->devices_[i].epoch != epoch)) i++;
    if (i < s->device_count_ || i == NPUPROF_IREE_DEVICES) return i;
    s->devices_[i].device = device;
    s->devices_[i].epoch = epoch;
    s->device_count_++;
    npuprof_iree_tell_device(s, i);
    return i;
}

/* NULL: there is no memory for it. */
static npuprof_iree_queue *npuprof_iree_queue_of(npuprof_iree_session *s, uint32_t ordinal, uint32_t engine)
{
    iree_hal_profile_queue_record_t record = iree_hal_profile_queue_record_default();
    npuprof_iree_queue *q = s->queues_;
    while (q && (q->ordinal != ordinal || q->engine != engine)) q = q->next;
    if (q || ordinal == NPUPROF_IREE_DEVICES || !(q = (npuprof_iree_queue *)calloc(1, sizeof *q))) return q;
    q->ordinal = record.physical_device_ordinal = ordinal;
    q->engine = record.queue_ordinal = engine;
    q->next = s->queues_;
    s->queues_ = q;
    s->devices_[ordinal].queue_count++;
    npuprof_iree_tell_device(s, ordinal);
    record.stream_id = npuprof_iree_stream(ordinal, engine);
    npuprof_iree_put(s, IREE_HAL_PROFILE_CONTENT_TYPE_QUEUES, &record, sizeof record);
    return q;
}

static void npuprof_iree_tell_name(npuprof_iree_session *s, uint64_t id, const char *name)
{
    iree_hal_profile_executable_record_t executable = iree_hal_profile_executable_record_default();
    iree_hal_profile_executable_function_record_t f = iree_hal_profile_executable_function_record_default();
    const size_t length = strlen(name);
    iree_hal_profile_chunk_metadata_t metadata = npuprof_iree_metadata(s, "");
    const iree_const_byte_span_t spans[2] = { iree_make_const_byte_span(&f, sizeof f),
                                              iree_make_const_byte_span(name, length) };
    executable.executable_id = f.executable_id = id;
    executable.function_count = 1;
    f.function_ordinal = 0;
    f.name_length = (uint32_t)length;
    f.record_length = (uint32_t)(sizeof f + length);
    npuprof_iree_put(s, IREE_HAL_PROFILE_CONTENT_TYPE_EXECUTABLES, &executable, sizeof executable);
    metadata.content_type = IREE_HAL_PROFILE_CONTENT_TYPE_EXECUTABLE_FUNCTIONS;
    if (iree_status_is_ok(s->status_))
        s->status_ = iree_hal_profile_sink_write(s->sink_, &metadata, 2, spans);
}

/* The executable of a name; 0: there is no place for it. */
static uint64_t npuprof_iree_executable(npuprof_iree_session *s, const char *name)
{
    uint32_t at = 2166136261u;
    for (const char *c = name; *c; c++) at = (at ^ (unsigned char)*c) * 16777619u;
    for (int i = 0; i < NPUPROF_IREE_NAMES; i++) {
        char **const kept = &s->names_[at++ % NPUPROF_IREE_NAMES];
        const uint64_t id = (uint64_t)(kept - s->names_) + 1;
        if (*kept && !strcmp(*kept, name)) return id;
        if (*kept) continue;
        const size_t size = strlen(name) + 1;
        if (!(*kept = (char *)malloc(size))) return 0;
        memcpy(*kept, name, size);
        npuprof_iree_tell_name(s, id, name);
        return id;
    }
    return 0;
}

/* ---- Anchors */

/* Why the middle is a timestamp, too: iree-profile knows the length of a tick by timestamps only. */
static void npuprof_iree_put_anchor(npuprof_iree_session *s, const npuprof_read_anchor *anchor)
{
    iree_hal_profile_clock_correlation_record_t record = iree_hal_profile_clock_correlation_record_default();
    const uint32_t ordinal = npuprof_iree_ordinal(s, anchor->device, anchor->epoch);
    if (ordinal == NPUPROF_IREE_DEVICES) return;
    record.flags = IREE_HAL_PROFILE_CLOCK_CORRELATION_FLAG_DEVICE_TICK |
        IREE_HAL_PROFILE_CLOCK_CORRELATION_FLAG_HOST_CPU_TIMESTAMP |
        IREE_HAL_PROFILE_CLOCK_CORRELATION_FLAG_HOST_TIME_BRACKET;
    record.physical_device_ordinal = ordinal;
    record.sample_id = ++s->samples_;
    record.device_tick = anchor->ticks;
    record.host_time_begin_ns = anchor->before_ns + s->ahead_ns_ - (int64_t)s->error_ns_;
    record.host_time_end_ns = anchor->after_ns + s->ahead_ns_ + (int64_t)s->error_ns_;
    record.host_cpu_timestamp_ns = (uint64_t)(record.host_time_begin_ns +
                                              (record.host_time_end_ns - record.host_time_begin_ns) / 2);
    npuprof_iree_put(s, IREE_HAL_PROFILE_CONTENT_TYPE_CLOCK_CORRELATIONS, &record, sizeof record);
}

/* Of those from before the session, only the newest. */
static bool npuprof_iree_anchor(void *user, const npuprof_read_anchor *anchor)
{
    npuprof_iree_session *const s = (npuprof_iree_session *)user;
    const bool is_old = anchor->after_ns < s->begun_ns_;
    if (!is_old && s->held_.device) npuprof_iree_put_anchor(s, &s->held_);
    if (!is_old) npuprof_iree_put_anchor(s, anchor);
    memset(&s->held_, 0, sizeof s->held_);
    if (is_old) s->held_ = *anchor;
    return true;
}

static void npuprof_iree_put_anchors(npuprof_iree_session *s, uint32_t device)
{
    npuprof_iree_device *d = s->devices_;
    while (d->device != device) d++;
    npuprof_read_anchors(device, &d->place, npuprof_iree_anchor, s);
    if (s->held_.device) npuprof_iree_put_anchor(s, &s->held_);
    memset(&s->held_, 0, sizeof s->held_);
}

/* ---- Spans */

static void npuprof_iree_put_spans(npuprof_iree_session *s, npuprof_iree_queue *q)
{
    npuprof_iree_put_anchors(s, s->devices_[q->ordinal].device);
    npuprof_iree_put_queue(s, q, NPUPROF_IREE_TIMES, q->times, q->time_count * sizeof *q->times);
    npuprof_iree_put_queue(s, q, "application/vnd.iree.hal.profile.dispatch-events", q->events,
                            q->event_count * sizeof *q->events);
    q->event_count = q->time_count = 0;
}

/* What the runtime calls the submission, by npuprof_npu_set_correlation(); else the job. */
static uint64_t npuprof_iree_submission(const npuprof_read_span *span)
{
    for (size_t i = 0; i < span->arg_count; i++) {
        const npuprof_arg *const arg = &span->args[i];
        if (arg->type == NPUPROF_ARG_UINT && !strcmp(arg->key, "correlation")) return arg->value.u;
    }
    return span->job;
}

static void npuprof_iree_add(npuprof_iree_session *s, npuprof_iree_queue *q, const npuprof_read_span *span)
{
    iree_hal_profile_dispatch_event_t *const event = &q->events[q->event_count++];
    *event = iree_hal_profile_dispatch_event_default();
    event->event_id = ++s->events_;
    event->submission_id = npuprof_iree_submission(span);
    event->executable_id = npuprof_iree_executable(s, span->name);
    if (event->executable_id) event->function_ordinal = 0;
    else s->unnamed++;
    event->start_tick = span->start_ticks;
    event->end_tick = span->end_ticks;
    if (span->flags & NPUPROF_READ_NO_TIME) return;
    npuprof_iree_time *const t = &q->times[q->time_count++];
    t->record_length = sizeof *t;
    t->epoch = span->epoch;
    t->event_id = event->event_id;
    t->start_ns = span->start_ns + s->ahead_ns_;
    t->end_ns = span->end_ns + s->ahead_ns_;
    t->error_ns = span->error_ns == UINT64_MAX ? UINT64_MAX : span->error_ns + s->error_ns_;
}

static bool npuprof_iree_take(void *user, const npuprof_read_span *span)
{
    npuprof_iree_session *const s = (npuprof_iree_session *)user;
    if (span->flags & NPUPROF_READ_POINT) return true;
    npuprof_iree_queue *q = NULL;
    if (span->flags & NPUPROF_READ_HAS_TICKS)
        q = npuprof_iree_queue_of(s, npuprof_iree_ordinal(s, span->device, span->epoch), span->engine);
    if (q) npuprof_iree_add(s, q, span);
    else s->missing_++;
    if (q && q->event_count == NPUPROF_IREE_BATCH) npuprof_iree_put_spans(s, q);
    return iree_status_is_ok(s->status_);
}

static void npuprof_iree_put_missing(npuprof_iree_session *s)
{
    iree_hal_profile_chunk_metadata_t metadata = npuprof_iree_metadata(s, "");
    metadata.content_type = IREE_HAL_PROFILE_CONTENT_TYPE_DISPATCH_EVENTS;
    metadata.flags = IREE_HAL_PROFILE_CHUNK_FLAG_TRUNCATED;
    metadata.dropped_record_count = s->missing_;
    if (!s->missing_ || !iree_status_is_ok(s->status_)) return;
    s->status_ = iree_hal_profile_sink_write(s->sink_, &metadata, 0, NULL);
    s->dropped += s->missing_;
    s->missing_ = 0;
}

static void npuprof_iree_check(npuprof_iree_session *s, npuprof_result result)
{
    if (result == NPUPROF_OK || !iree_status_is_ok(s->status_)) return;
    s->status_ = iree_make_status(result == NPUPROF_ERR_MEMORY ? IREE_STATUS_RESOURCE_EXHAUSTED
                                                               : IREE_STATUS_FAILED_PRECONDITION,
                                  "npuprof: %s", npuprof_result_string(result));
}

/* The caller owns what it carries; its code stays. */
static iree_status_t npuprof_iree_give(npuprof_iree_session *s)
{
    const iree_status_t status = s->status_;
    s->status_ = iree_status_from_code(iree_status_code(status));
    return status;
}

/* ---- The three calls of a HAL device; one at a time, without the driver's locks */

/* From here on spans are for this session. Starts npuprof, unless the program has. The sink is retained until
   npuprof_iree_end(). id: of the session, unique in the process. If it fails, there is no session. */
static inline iree_status_t npuprof_iree_begin(npuprof_iree_session *s, iree_hal_profile_sink_t *sink,
                                               uint64_t id)
{
    memset(s, 0, sizeof *s);
    s->sink_ = sink;
    s->id_ = id;
    npuprof_iree_compare(&s->first_ahead_ns_, &s->first_error_ns_);
    npuprof_iree_check(s, npuprof_read(&s->cursor_, 1u << NPUPROF_KIND_DEVICE, NULL, NULL, NULL));
    s->begun_ns_ = npuprof_now_ns();
    const iree_hal_profile_chunk_metadata_t metadata =
        npuprof_iree_metadata(s, "application/vnd.iree.hal.profile.session");
    if (iree_status_is_ok(s->status_)) s->status_ = iree_hal_profile_sink_begin_session(sink, &metadata);
    if (iree_status_is_ok(s->status_)) {
        iree_hal_profile_sink_retain(sink);
        s->started_npuprof_ = !npuprof_is_recording() && npuprof_start(1) == NPUPROF_OK;
    } else {
        npuprof_read_end(&s->cursor_);
    }
    return npuprof_iree_give(s);
}

/* Drains the devices, and writes what was completed since the last call. After a failure the session can only
   be ended. */
static inline iree_status_t npuprof_iree_flush(npuprof_iree_session *s)
{
    npuprof_read_result read;
    memset(&read, 0, sizeof read);
    read.struct_size = sizeof read;
    npuprof_iree_set_clock(s);
    npuprof_iree_check(s, npuprof_read(&s->cursor_, 1u << NPUPROF_KIND_DEVICE, npuprof_iree_take, s, &read));
    s->missing_ += read.lost;
    for (npuprof_iree_queue *q = s->queues_; q; q = q->next) npuprof_iree_put_spans(s, q);
    npuprof_iree_put_missing(s);
    return npuprof_iree_give(s);
}

/* Flushes, ends the session of the sink, also after a failure, and releases all. */
static inline iree_status_t npuprof_iree_end(npuprof_iree_session *s)
{
    if (s->started_npuprof_) npuprof_stop();
    iree_status_t status = npuprof_iree_flush(s);
    const iree_hal_profile_chunk_metadata_t metadata =
        npuprof_iree_metadata(s, "application/vnd.iree.hal.profile.session");
    const iree_status_t ended =
        iree_hal_profile_sink_end_session(s->sink_, &metadata, iree_status_code(status));
    if (iree_status_is_ok(status)) status = ended;
    else iree_status_ignore(ended);
    while (s->queues_) {
        npuprof_iree_queue *const q = s->queues_;
        s->queues_ = q->next;
        free(q);
    }
    for (int i = 0; i < NPUPROF_IREE_NAMES; i++) free(s->names_[i]);
    memset(s->names_, 0, sizeof s->names_);
    npuprof_read_end(&s->cursor_);
    iree_hal_profile_sink_release(s->sink_);
    return status;
}
#endif /* NPUPROF_IREE_H */
