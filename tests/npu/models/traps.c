/* test: large - real NPUs with the traps that their drivers know: laps, torn indices, lost and stale
   records, bits that others clear
   SPDX-License-Identifier: MIT */
#include "npu/models/played.h"
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
    CHECK(records(t, "loss_unknown") > 0);
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
    CHECK(strstr(npuprof_result_string(result), "no entry was seen cleared") != NULL);
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
    gaudi_describe_polling(&d.ring, event_queue, GAUDI_EQ, 4);
    if (sequence) d.ring.sequence = play_field(4, 4, 15, 0);
    npuprof_start(1);
    play_until(play.host + 1000);
    CHECK_INT(npuprof_npu_open(&events, &d), NPUPROF_OK);
}

static json_node *close_events(void)
{
    const char *path = check_path("eq.json");
    npuprof_npu_close(&events);
    CHECK_INT(npuprof_dump(path), NPUPROF_OK);
    return trace_load(path);
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
    json_node *t = close_events();
    CHECK_UINT(trace_count(t, "i", "HBM ECC"), 5);
    CHECK_INT(said(t, "ring_lost"), 1);
}

static void gaudi_events_without_numbers(void)
{
    open_events(false);
    for (unsigned i = 0; i < 5; i++) put_event(i, 0);
    CHECK_INT(npuprof_npu_drain(&events), NPUPROF_OK);
    CHECK_UINT(trace_count(close_events(), "i", "HBM ECC"), 5);
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

CHECK_MAIN(CASE(fence_overrun), CASE(hws_overrun), CASE(gaudi_driver_wins), CASE(gaudi_nobody_clears),
           CASE(gaudi_event_numbers), CASE(gaudi_events_without_numbers), CASE(qaic_begins_late),
           CASE(qaic_dead))
