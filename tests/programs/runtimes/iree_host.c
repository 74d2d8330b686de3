/* iree_host.c - plays IREE for npuprof_iree.h: a sink that writes a .ireeprof file, and a HAL device whose
   jobs run on a device with a driver that has npuprof. In the middle the device's counter is reset.
   usage: iree_host RUNS FILE TRUTH: a line of TRUTH for each job in the session
          iree_host RUNS FILE TRUTH N: write N fails
   SPDX-License-Identifier: MIT */
#define _GNU_SOURCE 1
#include "npuprof.h"
#include "npuprof_npu.h"
#include "npuprof_iree.h"
#include "drifting_npu.h"

struct iree_hal_profile_sink_t {
    int references, writes, fails_at;
    FILE *out;
    iree_status_code_t ended;
};

/* ---- IREE */

typedef struct file_head {
    char magic[4];
    uint16_t major, minor;
    uint32_t length, flags;
    uint64_t bytes;
} file_head;
typedef struct file_record {
    uint64_t length, payload, session, stream, event, executable, command_buffer;
    uint32_t header, type_length, name_length, device, queue;
    uint64_t flags, dropped;
    uint32_t status;
    uint16_t type, more;
} file_record;

iree_time_t iree_time_now(void) { return drifting_real_ns(); }

iree_status_t iree_status_ignore(iree_status_t status) { return (void)status, iree_status_from_code(0); }

void iree_hal_profile_sink_retain(iree_hal_profile_sink_t *sink) { sink->references++; }

void iree_hal_profile_sink_release(iree_hal_profile_sink_t *sink) { sink->references--; }

static void record(iree_hal_profile_sink_t *sink, uint16_t type, const iree_hal_profile_chunk_metadata_t *m,
                   iree_host_size_t count, const iree_const_byte_span_t *spans)
{
    file_record r;
    memset(&r, 0, sizeof r);
    for (iree_host_size_t i = 0; i < count; i++) r.payload += spans[i].data_length;
    r.length = sizeof r + m->content_type.size + m->name.size + r.payload;
    r.session = m->session_id, r.stream = m->stream_id, r.event = m->event_id;
    r.executable = m->executable_id, r.command_buffer = m->command_buffer_id;
    r.header = sizeof r;
    r.type_length = (uint32_t)m->content_type.size, r.name_length = (uint32_t)m->name.size;
    r.device = m->physical_device_ordinal, r.queue = m->queue_ordinal;
    r.flags = m->flags, r.dropped = m->dropped_record_count;
    r.status = (uint32_t)sink->ended, r.type = type;
    fwrite(&r, sizeof r, 1, sink->out);
    fwrite(m->content_type.data, 1, m->content_type.size, sink->out);
    fwrite(m->name.data, 1, m->name.size, sink->out);
    for (iree_host_size_t i = 0; i < count; i++) fwrite(spans[i].data, 1, spans[i].data_length, sink->out);
}

static void head(iree_hal_profile_sink_t *sink, uint64_t bytes)
{
    const file_head h = { { 'I', 'R', 'P', 'F' }, 1, 6, sizeof h, 0, bytes };
    rewind(sink->out);
    fwrite(&h, sizeof h, 1, sink->out);
}

iree_status_t iree_hal_profile_sink_begin_session(iree_hal_profile_sink_t *sink,
                                                  const iree_hal_profile_chunk_metadata_t *m)
{
    head(sink, 0);
    record(sink, 1, m, 0, NULL);
    return iree_status_from_code(IREE_STATUS_OK);
}

iree_status_t iree_hal_profile_sink_write(iree_hal_profile_sink_t *sink,
                                          const iree_hal_profile_chunk_metadata_t *m, iree_host_size_t count,
                                          const iree_const_byte_span_t *spans)
{
    if (++sink->writes == sink->fails_at) return iree_status_from_code(IREE_STATUS_UNAVAILABLE);
    record(sink, 2, m, count, spans);
    return iree_status_from_code(IREE_STATUS_OK);
}

iree_status_t iree_hal_profile_sink_end_session(iree_hal_profile_sink_t *sink,
                                                const iree_hal_profile_chunk_metadata_t *m,
                                                iree_status_code_t code)
{
    sink->ended = code;
    record(sink, 3, m, 0, NULL);
    head(sink, (uint64_t)(fseek(sink->out, 0, SEEK_END), ftell(sink->out)));
    return iree_status_from_code(IREE_STATUS_OK);
}

/* ---- The driver */

static FILE *truth;
static int resets;

/* The job's line: its number, resets before it, PE, ns and ticks of begin and end, name. */
static void job(const char *name)
{
    const struct timespec pause = { 0, 1000000 };
    drifting_run(name, 5000);
    const drifting_truth *const kept = &drifting_kept[drifting_count - 1];
    const drifting_entry *const entry = &drifting_ring[(drifting_producer - 1) % DRIFTING_ENTRIES];
    if (truth)
        fprintf(truth, "%llu %d %u %lld %lld %u %u %s\n", (unsigned long long)kept->job, resets, entry->pe,
                (long long)kept->start_ns, (long long)kept->end_ns, entry->start, entry->end, name);
    nanosleep(&pause, NULL);
}

static int reset(void)
{
    uint64_t ticks;
    drifting_origin = drifting_real_ns() + 100000000;
    resets++;
    return npuprof_npu_read(&drifting_npu, &ticks) != NPUPROF_ERR_NPU_RESET;
}

static int run(npuprof_iree_session *s, int runs)
{
    char name[48];
    for (int i = 0; i < runs; i++) {
        snprintf(name, sizeof name, "main_dispatch_%d", i % 7);
        const uint64_t before = npuprof_npu_set_correlation(i % 10 ? 0 : 1000000 + (uint64_t)i);
        job(name);
        npuprof_npu_set_correlation(before);
        if (i % 100 == 99 && !iree_status_is_ok(npuprof_iree_flush(s))) return 0;
        if (i == runs / 2 && (npuprof_npu_drain(&drifting_npu), reset())) return 5;
    }
    const int64_t now = npuprof_now_ns();
    npuprof_npu_complete_host(&drifting_npu, 0, 0, "by the host", "NPU", now - 1000, now, PROF_NO_ARGS, true);
    npuprof_npu_lost(&drifting_npu, 4);
    return 0;
}

int main(int argc, char **argv)
{
    (void)drifting_tell;                 /* its lines have no ticks */
    static npuprof_iree_session session;
    iree_hal_profile_sink_t sink = { 1, 0, argc > 4 ? atoi(argv[4]) : 0, NULL, IREE_STATUS_OK };
    if (argc < 4 || !(sink.out = fopen(argv[2], "w")) || drifting_open()) return 2;
    npuprof_start(1);
    job("before the session");
    npuprof_stop();
    if (!iree_status_is_ok(npuprof_iree_begin(&session, &sink, 9)) || sink.references != 2) return 3;
    if (!(truth = fopen(argv[3], "w"))) return 4;
    const int failed = run(&session, atoi(argv[1]));
    const iree_status_t status = npuprof_iree_end(&session);
    if (failed || npuprof_is_recording() || sink.references != 1 || sink.ended != iree_status_code(status))
        return failed + 6;
    printf("%d %llu %llu\n", (int)iree_status_code(status), (unsigned long long)session.dropped,
           (unsigned long long)session.unnamed);
    npuprof_npu_close(&drifting_npu);
    return fclose(sink.out) | fclose(truth);
}
