/* test: - real NPUs with the traps that their drivers know: laps, torn indices, lost and stale records, bits
   that others clear
   SPDX-License-Identifier: MIT */
#include "npu/models/play.h"
#include "trace.h"
#define NPUPROF_IMPLEMENTATION
#define NPUPROF_ARENA_BYTES (32 * 1024 * 1024)
#include "npuprof.h"
#include "npuprof_npu.h"
#include "npu/models/play_run.h"
#include "npu/models/all.h"
#include "npu/models/traps.h"

static npuprof_result drain(void) { return npuprof_npu_drain(&play_npus[0]); }

/* ---- Intel */

/* The writer laps the reader by a known number of entries: all that is not drawn is counted. */
static void overrun(const play_model *model, uint32_t jobs, const char *options)
{
    open_model(model);
    play_jobs(jobs / 4);
    play.frozen_until = play.host + 2 * jobs * 6000;
    play_jobs(jobs);
    play_jobs(jobs / 4);
    CHECK(play_lost() > 0);
    play_compare(options);
}

static void fence_overrun(void)
{
    fence_count = 64;
    overrun(&fence_model, 1000, "lost=any arrows=right");
}

static void hws_overrun(void)
{
    hws_count = 100;
    hws_tells_context_states = false;
    overrun(&hws_model, 1000, "lost=any arrows=none unmatched=any unfinished=any");
}

/* Exactly one lap, then silence: the slot is 0 again. And nothing at all. */
static void fence_full_lap(void)
{
    fence_count = 8;
    open_model(&fence_model);
    CHECK_INT(drain(), NPUPROF_OK);
    jobs_on(1, 8);
    CHECK_INT(drain(), NPUPROF_OK);
    CHECK_INT(drain(), NPUPROF_OK);
    jobs_on(1, 16);                              /* two more laps, of which one is gone */
    CHECK_INT(drain(), NPUPROF_OK);
    json_node *t = written();
    CHECK_INT((int64_t)device_spans(t) + said(t, "ring_lost"), 24);
    if (device_spans(t) < 14) CHECK_UINT(device_spans(t), 16);
}

/* Ends without a begin, begins without an end. */
static void hws_pairs(void)
{
    hws_tells_context_states = false;
    open_model(&hws_model);
    hws_log(play.host, 3, 2, 0);                 /* its begin was overwritten */
    CHECK_INT(drain(), NPUPROF_OK);
    jobs_on(0, 3);
    play_until(play.host + 5000);
    hws_log(play.host, 1, 3, 77);                /* its end never comes */
    play_until(play.host + 5000);
    hws_log(play.host, 9, 3, 77);                /* no such operation */
    CHECK_INT(drain(), NPUPROF_OK);
    json_node *t = written();
    CHECK_INT(said(t, "records.unmatched_ends"), 1);
    CHECK_INT(said(t, "records.unfinished"), 1);
    CHECK_INT(said(t, "records.unknown_records"), 1);
    CHECK_INT(said(t, "ring_lost"), 0);
    CHECK_UINT(device_spans(t), 4);
}

/* ---- Gaudi */

/* The driver is always first, or never late: only what was seen is drawn, and the trace says that the rest
   cannot be counted. */
static void gaudi_driver_wins(void)
{
    gaudi_clears_after = 0;
    open_model(&gaudi_polled_model);
    jobs_on(0, 20);
    CHECK_INT(drain(), NPUPROF_OK);
    gaudi_clears_after = 1000000;
    jobs_on(0, 5);
    CHECK_INT(drain(), NPUPROF_OK);
    json_node *t = written();
    CHECK_UINT(device_spans(t), 5);
    CHECK(said(t, "records.loss_unknown") > 0);
}

/* Nobody clears: a whole lap is ready, and none is taken twice. */
static void gaudi_nobody_clears(void)
{
    gaudi_clears_after = 1000000000000;
    open_model(&gaudi_polled_model);
    jobs_on(0, 4090);
    CHECK_INT(drain(), NPUPROF_OK);
    jobs_on(0, 10);
    npuprof_result result = drain();
    for (int i = 0; i < 5 && result == NPUPROF_OK; i++) result = drain();
    CHECK_INT(result, NPUPROF_ERR_NPU_RING);
    CHECK_INT(drain(), NPUPROF_OK);
    json_node *t = written();
    if (device_spans(t) > 4100) CHECK_UINT(device_spans(t), 4100);
}

static npuprof_npu events;
static unsigned char *event_queue;

static void open_events(bool sequence)
{
    npuprof_npu_desc d;
    memset(&d, 0, sizeof d);
    event_queue = play_memory(64 * GAUDI_EQ);
    d.name = "eq";
    d.read_ticks = gaudi_read_ticks;
    gaudi_describe_eq_entry(&d.ring);
    d.ring.memory = event_queue;
    d.ring.memory_bytes = 64 * GAUDI_EQ;
    d.ring.count = GAUDI_EQ;
    d.ring.ready = NPUPROF_NPU_READY_VALID;
    d.ring.valid = play_field(4, 4, 31, 31);
    d.ring.valid_value = 1;
    if (sequence) d.ring.sequence = play_field(4, 4, 15, 0);
    npuprof_start(1);
    play_until(play.host + 1000);
    CHECK_INT(npuprof_npu_open(&events, &d), NPUPROF_OK);
}

static void put_event(unsigned slot, unsigned index)
{
    play_until(play.host + 1000);
    gaudi_put_event(event_queue + 64 * slot, 0x123, index, index);
}

/* Events are numbered: one that is missing is lost, one with an old number is not there. */
static void gaudi_event_numbers(void)
{
    open_events(true);
    for (unsigned i = 0; i < 3; i++) put_event(i, i);
    CHECK_INT(npuprof_npu_drain(&events), NPUPROF_OK);
    put_event(3, 4);                             /* 3 did not come */
    put_event(4, 5);
    CHECK_INT(npuprof_npu_drain(&events), NPUPROF_OK);
    put_event(5, 1);                             /* old, though ready */
    CHECK_INT(npuprof_npu_drain(&events), NPUPROF_OK);
    npuprof_npu_close(&events);
    const char *path = check_path("eq.json");
    CHECK_INT(npuprof_dump(path), NPUPROF_OK);
    json_node *t = trace_load(path);
    CHECK_UINT(trace_count(t, "i", "HBM ECC"), 5);
    CHECK_INT(said(t, "ring_lost"), 1);
}

static void gaudi_events_without_numbers(void)
{
    open_events(false);
    for (unsigned i = 0; i < 5; i++) put_event(i, 0);
    CHECK_INT(npuprof_npu_drain(&events), NPUPROF_OK);
    npuprof_npu_close(&events);
    const char *path = check_path("eq.json");
    CHECK_INT(npuprof_dump(path), NPUPROF_OK);
    CHECK_UINT(trace_count(trace_load(path), "i", "HBM ECC"), 5);
}

/* ---- QAIC */

/* The driver has taken responses before the device is opened: the library begins where the device is. */
static void qaic_begins_late(void)
{
    for (unsigned i = 0; i < QAIC_CHANNELS; i++) qaic[i].written = 100 + i;
    play_model_run(&qaic_model, 100);
}

static void qaic_dead(void)
{
    open_model(&qaic_model);
    CHECK_INT(drain(), NPUPROF_OK);
    play_one(0, 5, 3000);                        /* one slice */
    play.show = NULL;
    play_put(qaic_bar0, 0xA28, 8, UINT64_MAX);
    play_put(qaic_bar2, QAIC_DBC + 0xC, 4, 0xFFFFFFFFu);
    CHECK_INT(drain(), NPUPROF_ERR_NPU_DEAD);
    play.show = qaic_show;
    play_put(qaic_bar2, QAIC_DBC + 0xC, 4, 1);
    play_until(play.host + 1000);
    CHECK_INT(drain(), NPUPROF_OK);
    json_node *t = written();
    CHECK_UINT(device_spans(t), 1);
    CHECK_INT(said(t, "ring_lost"), 0);
}

/* ---- Neuron */

/* The reader stops for one lap: all is there. For one and a half: what is gone is counted. For two: the
   phases are as before, so nobody can tell. Nothing old is ever taken for new. */
static void neuron_laps_of(const void *user)
{
    const unsigned halves = *(const unsigned *)user;
    neuron_count = 32;
    open_model(&neuron_model);
    jobs_on(0, 4);
    CHECK_INT(drain(), NPUPROF_OK);
    jobs_on(0, 8 * halves);
    CHECK_INT(drain(), NPUPROF_OK);
    jobs_on(0, 4);
    CHECK_INT(drain(), NPUPROF_OK);
    json_node *t = written();
    const int64_t lost = said(t, "ring_lost") + said(t, "records.unmatched_ends");
    if (halves == 2) CHECK_UINT(device_spans(t), 24);
    if (halves == 3) CHECK(lost > 0 && 2 * (int64_t)device_spans(t) + lost <= 64);
    if (halves == 4) CHECK(device_spans(t) == 8 || lost > 0);
}

static void neuron_laps(void)
{
    for (unsigned halves = 2; halves <= 4; halves++) check_in_child(neuron_laps_of, &halves);
}

/* ---- XDNA's log, by hand */

/* The reader is more than a ring behind, inside a record: it finds the next one, and knows how many are
   gone. */
static void xdna_overrun(void)
{
    open_model(&xdna_model);
    jobs_on(0, 10);
    xdna_serve();
    const uint64_t before = play.entries;
    while (xdna.tail - xdna.reader < XDNA_RING + 20) xdna_log(play_ticks(play.host), "D");
    const uint64_t noise = (xdna.tail - xdna.reader) / XDNA_RECORD;
    jobs_on(0, 10);
    xdna_serve();
    CHECK(xdna.resyncs > 0);
    CHECK(play_lost() >= 1 && play_lost() < noise && play.entries == before + 20);
    json_node *t = written();
    CHECK_UINT(device_spans(t), 20);
}

CHECK_MAIN(CASE(fence_overrun), CASE(hws_overrun), CASE(fence_full_lap),
           CASE(hws_pairs),
           CASE(gaudi_driver_wins), CASE(gaudi_nobody_clears), CASE(gaudi_event_numbers),
           CASE(gaudi_events_without_numbers), CASE(qaic_begins_late), CASE(qaic_dead), CASE(neuron_laps),
           CASE(xdna_overrun))
