/* test: large - real NPUs whose reader comes late: records drawn and records lost are those that the device
   wrote, exactly, or as exactly as its ready rule can know
   SPDX-License-Identifier: MIT

   What a ready rule cannot know: a slot without laps, and a phase bit, look the same two laps later; a valid
   bit says nothing of entries that somebody cleared. There the test wants the newest records, each once, and
   none of an earlier lap. */
#include "npu/models/played.h"
#include "npu/models/traps.h"

enum { SERVED = 5 };

/* Some jobs that are seen, `late` ones that nobody looks at, and then one look. */
static void be_late(const play_model *model, unsigned late)
{
    open_model(model);
    play_serve();
    jobs_on(1, SERVED);
    play_serve();
    jobs_on(1, late);
    play_serve();
    CHECK_UINT(play_bad, 0);
}

/* Records that spans stand for, or that are counted: all that the device wrote. */
static void check_sum(json_node *t, unsigned per_span, uint64_t written)
{
    const int64_t whole = (int64_t)device_spans(t) - records(t, "unfinished");
    CHECK_INT(whole * per_span + said(t, "ring_lost") + records(t, "unmatched_ends") +
              records(t, "unfinished"), (int64_t)written);
}

/* The spans are those of the newest jobs, each once: their blocks' arrows say so. */
static void check_newest(json_node *t, unsigned from)
{
    unsigned char seen[4096] = { 0 };
    for (json_node *e = json_get(t, "traceEvents")->first; e; e = e->next) {
        json_node *job = json_get(e, "args.job");
        if (!job || !json_get(e, "args.pe_index") || json_int(job) < 1000) continue;
        const int64_t serial = json_int(job) - 1000;
        CHECK_STOP(serial < 4096);
        if (serial >= SERVED) CHECK(serial >= from);
        CHECK_UINT(seen[serial]++, 0);
    }
}

/* ---- Slot and laps: exact at any distance. The slot that the device writes next is not trusted. */

static void fence(void)
{
    fence_count = 60;                            /* no power of two */
    be_late(&fence_model, 3 * 60 + 7);
    json_node *t = written();
    check_sum(t, 1, SERVED + 187);
    check_newest(t, SERVED + 187 - 60);
    CHECK(device_spans(t) == SERVED + 59 || device_spans(t) == SERVED + 60);
}

static void hws(void)
{
    hws_count = 61;                              /* the first that is left is an end */
    hws_tells_context_states = false;
    be_late(&hws_model, 100);
    json_node *t = written();
    check_sum(t, 2, 2 * (SERVED + 100));
    CHECK(said(t, "ring_lost") >= 2 * 100 - 61);
    CHECK(device_spans(t) >= SERVED + 29);
}

/* ---- Ethos-N, read in place: a slot in a header, 3001 entries, no laps */

static uint64_t read_ethosn(void *user)
{
    (void)user;
    play_until(play.host + 100);
    return ethosn_cycles(0, play.host);
}

static void describe_polled_ethosn(npuprof_npu_desc *d)
{
    ethosn_describe(d);
    d->anchors_only = false;
    d->read_ticks = read_ethosn;
    d->ring.feed = false;
    d->ring.memory = ethosn[play_opening].buffer;
    d->ring.memory_bytes = ETHOSN_HEADER + 8 * ETHOSN_COUNT;
    d->ring.first = ETHOSN_HEADER;
    d->ring.count = ETHOSN_COUNT;
    d->ring.producer.in_memory = true;
    d->ring.producer.unit = NPUPROF_NPU_INDEX_SLOT;
}

static void serve_polled(void) { play_note(npuprof_npu_drain(&play_npus[0])); }

static play_model polled_ethosn(void)
{
    play_model model = ethosn_model;
    model.describe = describe_polled_ethosn;
    model.separate = false;
    model.lanes = 1;
    model.opened = NULL;
    model.serve = serve_polled;
    return model;
}

/* An inference writes 8 entries and 3 spans. The first look of three laps finds 1000 jobs less one entry. */
static void ethosn_slot(void)
{
    static play_model model;
    model = polled_ethosn();
    open_model(&model);
    for (unsigned look = 0; look < 9; look++) {
        play_serve();
        jobs_on(0, look % 3 ? 375 - 12 * look : 2);      /* 8 * 375: all but one of the ring */
    }
    play_serve();
    const uint32_t jobs = play.submitted;
    json_node *t = written();
    CHECK_UINT(device_spans(t), 3 * jobs);
    CHECK_INT(said(t, "ring_lost"), 0);
    CHECK_INT(records(t, "unmatched_ends"), 0);
}

/* A lap and 10 inferences: the slot shows 79 entries more. The entry before tells that a lap lies between. */
static void ethosn_lap(void)
{
    static play_model model;
    model = polled_ethosn();
    open_model(&model);
    play_serve();
    jobs_on(0, 375 + 10);
    play_serve();
    json_node *t = written();
    CHECK(device_spans(t) >= 3 * 374 && device_spans(t) <= 3 * 375);
    CHECK(said(t, "ring_lost") >= 80 && said(t, "ring_lost") <= 88);
    CHECK(records(t, "loss_unknown") > 0);
}

/* ---- Gaudi's event queue: valid bit and running number. All that the numbers jump over is lost. */

static npuprof_npu events;
static unsigned char *event_queue;

static void describe_events(npuprof_npu_desc *d)
{
    memset(d, 0, sizeof *d);
    event_queue = play_memory(64 * GAUDI_EQ);
    d->name = "eq";
    d->read_ticks = gaudi_read_ticks;
    gaudi_describe_eq_entry(&d->ring);
    d->ring.memory = event_queue;
    d->ring.memory_bytes = 64 * GAUDI_EQ;
    d->ring.count = GAUDI_EQ;
    d->ring.ready = NPUPROF_NPU_READY_VALID;
    d->ring.valid = play_field(4, 4, 31, 31);
    d->ring.valid_value = 1;
    d->ring.sequence = play_field(4, 4, 15, 0);
}

static void put_events(unsigned from, unsigned end)
{
    for (unsigned i = from; i < end; i++) {
        play_until(play.host + 1000);
        gaudi_put_event(event_queue + 64 * (i % GAUDI_EQ), 0x123, i, i);
    }
}

static void gaudi_events(void)
{
    npuprof_npu_desc d;
    describe_events(&d);
    npuprof_start(1);
    CHECK_INT(npuprof_npu_open(&events, &d), NPUPROF_OK);
    put_events(0, 3);
    CHECK_INT(npuprof_npu_drain(&events), NPUPROF_OK);
    put_events(3, 3 + GAUDI_EQ + 10);
    (void)npuprof_npu_drain(&events);
    put_events(3 + GAUDI_EQ + 10, 3 + GAUDI_EQ + 40);
    (void)npuprof_npu_drain(&events);
    npuprof_npu_close(&events);
    const char *path = check_path("eq.json");
    CHECK_INT(npuprof_dump(path), NPUPROF_OK);
    json_node *t = trace_load(path);
    const int64_t drawn = (int64_t)trace_count(t, "i", "HBM ECC");
    CHECK_INT(drawn + said(t, "ring_lost"), 3 + GAUDI_EQ + 40);
    CHECK(drawn >= 43);
}

/* Its completion queue has no numbers. The driver cleared what it took: less than a lap of that is counted by
   the slots, and the trace says that whole laps cannot be. */
static void gaudi_completions(void)
{
    gaudi_clears_after = 200000;                 /* about 30 jobs */
    be_late(&gaudi_polled_model, 300);
    const uint64_t left = gaudi[1].written - gaudi[1].reader;
    json_node *t = written();
    CHECK_UINT(device_spans(t) + (uint64_t)said(t, "ring_lost"), SERVED + 300);
    CHECK(left > 10 && left < 100);              /* not yet cleared when the reader was done */
    CHECK(device_spans(t) >= SERVED + left && device_spans(t) < SERVED + left + 10);
    CHECK(records(t, "loss_unknown") > 0);
}

/* ---- QAIC: a slot in a register, 250 responses, no laps. Responses say whose they are. */

static void qaic_slot(void)
{
    qaic_count = 250;
    open_model(&qaic_model);
    play_serve();
    for (unsigned look = 0; look < 4; look++) {  /* 1 to 5 responses a job */
        for (const uint64_t seen = qaic[1].written; qaic[1].written - seen < 245;) jobs_on(1, 1);
        play_serve();
    }
    json_node *t = written();
    CHECK_UINT(device_spans(t) + (uint64_t)said(t, "ring_lost"), qaic[1].written);
    CHECK_INT(said(t, "ring_lost"), 0);
}

static void qaic_lap(void)
{
    qaic_count = 50;
    open_model(&qaic_model);
    play_serve();
    while (qaic[1].written < 60) jobs_on(1, 1);
    play_serve();
    json_node *t = written();
    CHECK_UINT(device_spans(t) + (uint64_t)said(t, "ring_lost"), qaic[1].written);
    CHECK(device_spans(t) >= 49);
    CHECK(records(t, "loss_unknown") > 0);  /* nobody can know that it was one lap */
}

/* ---- Neuron: a phase bit. Between one lap and two, all that lies between is lost, and is counted. */

typedef struct phase_run { unsigned entries, late; } phase_run;      /* late: jobs, 2 entries each */

static void neuron_phase_of(const void *user)
{
    const phase_run *const run = (const phase_run *)user;
    const unsigned late = run->late;
    neuron_count = run->entries;
    be_late(&neuron_model, late);
    CHECK_UINT(play_bad, 0);
    jobs_on(1, SERVED);                          /* it goes on as if nothing had been */
    play_serve();
    json_node *t = written();
    const uint64_t all = 2 * (SERVED + late + SERVED);
    if (late >= run->entries) {                  /* two laps and more: only the last ones are told apart */
        CHECK(2 * device_spans(t) + (uint64_t)said(t, "ring_lost") <= all);
    } else {
        check_sum(t, 2, all);
    }
    if (late <= 16) CHECK_INT(said(t, "ring_lost"), 0);
    CHECK(device_spans(t) >= 2 * SERVED);
    for (json_node *e = json_get(t, "traceEvents")->first; e; e = e->next)
        if (json_get(e, "args.pe_index") && json_text(json_get(e, "ph"))[0] == 'X')
            CHECK(trace_dur(e) < 9000);
}

static void neuron_phase(void)
{
    static const phase_run runs[] = { { 33, 16 }, { 33, 17 }, { 33, 20 }, { 33, 25 }, { 33, 32 }, { 33, 40 },
                                      { 32, 16 }, { 32, 24 }, { 32, 32 } };
    for (unsigned i = 0; i < sizeof runs / sizeof *runs; i++) check_in_child(neuron_phase_of, &runs[i]);
}

/* ---- Tenstorrent: the buffer of a launch is full, and the device counts what it dropped */

static void tt_dropped(void)
{
    enum { ZONES = 300, FIT = (TT_WORDS - 4) / 4 };
    static unsigned char bytes[4 * TT_WORDS];
    open_model(&tt_model);
    jobs_on(2, 3);
    tt_serve();
    play_until(play.host + 1000000);
    uint32_t dropped = 0;
    tt[2].words = 4;
    for (unsigned zone = 0; zone < ZONES; zone++) {
        for (unsigned end = 0; end < 2; end++) {
            const uint64_t at = play.host - 900000 + 2000 * zone + 900 * end;
            if (tt[2].words + 2 <= TT_WORDS) tt_mark(2, end, TT_KERNEL, at);
            else dropped++;
        }
    }
    play_copy(bytes, tt[2].l1, 16, 4 * (tt[2].words - 4));
    CHECK_INT(npuprof_npu_feed(&play_npus[0], 2, bytes, 4 * (tt[2].words - 4)), NPUPROF_OK);
    npuprof_npu_lost(&play_npus[0], dropped);    /* the driver reads it from the control vector */
    json_node *t = written();
    CHECK_UINT(trace_count(t, "X", "kernel"), 3 + FIT);
    CHECK_UINT(2 * device_spans(t) + (uint64_t)said(t, "ring_lost"), 2 * (6 + ZONES));
}

/* ---- XDNA: records with a sequence number, in a ring of bytes that holds no whole number of them */

static void xdna_log_overrun(void)
{
    open_model(&xdna_model);
    jobs_on(0, 10);
    xdna_serve();
    const uint64_t from = xdna.tail;
    uint64_t noise = 0;
    for (; xdna.tail - from < XDNA_RING + 5000; noise++) xdna_log(play_ticks(play.host), "D");
    jobs_on(0, 10);
    const uint64_t gone = (xdna.tail - XDNA_RING - from + XDNA_RECORD - 1) / XDNA_RECORD;
    xdna_serve();
    CHECK_UINT(play_lost(), gone);
    CHECK_UINT(xdna.taken + play_lost(), 20 + noise + 20);
    CHECK_UINT(device_spans(written()), 20);
}

/* ---- An index of finished jobs. Each queue is a device; the trace's first is that of lane 0. */

/* `late` jobs that nobody looks at, of which `forgotten` are too many: the library keeps 256. */
static void index_late(const play_model *model, unsigned late, unsigned forgotten)
{
    open_model(model);
    jobs_on(0, SERVED);
    play_serve();
    jobs_on(0, late);
    play_serve();
    jobs_on(0, SERVED);
    play_serve();
    json_node *t = written();
    CHECK_UINT(device_spans(t), SERVED + late - forgotten + SERVED);
    CHECK_INT(said(t, "ring_lost"), forgotten);
}

static void aie4_count(void) { index_late(&aie4_model, 200, 0); }
static void aie4_overrun(void) { index_late(&aie4_model, 300, 300 - 256); }
static void hailo_overrun(void) { index_late(&hailo_model, 1000, 1000 - 256); }
static void coral_slot(void) { index_late(&coral_model, 255, 0); }

/* Forgotten and not over: what is over first is what was forgotten, not what is known. */
static void aie4_forgotten_first(void)
{
    static play_model model;
    model = aie4_model;
    open_model(&model);
    play.is_device_off = true;
    for (unsigned i = 0; i < 300; i++) play_one(0, i, 3000);
    play.is_device_off = false;
    play_until(play.lanes[0].jobs[149].end + 1000);
    CHECK_UINT(play.ended, 150);
    play_serve();
    while (play.ended != 300) play_until(play.host + 1000);
    play_serve();
    CHECK_UINT(play_lost(), 300 - 256);
    play_compare("lost=any");                    /* each span lasts longer than its job did */
}

CHECK_MAIN(CASE(fence), CASE(hws), CASE(ethosn_slot), CASE(ethosn_lap), CASE(gaudi_events),
           CASE(gaudi_completions), CASE(qaic_slot), CASE(qaic_lap), CASE(neuron_phase), CASE(tt_dropped),
           CASE(xdna_log_overrun), CASE(aie4_count), CASE(aie4_overrun), CASE(hailo_overrun),
           CASE(coral_slot), CASE(aie4_forgotten_first))
