/* test: large - real NPUs with the traps of their clocks and their power: gaps, wraps, resets, enable bits,
   no anchor
   SPDX-License-Identifier: MIT */
#include "npu/models/played.h"
#include "npu/models/traps.h"

/* ---- Ethos-N */

/* Five seconds without an entry: the counter's low half came round. Full stamps tell. */
static void ethosn_gap(void)
{
    open_model(&ethosn_model);
    for (int i = 0; i < 4; i++) {
        jobs_on(0, 2);
        ethosn_serve();
        play_until(play.host + 5000000000);
    }
    jobs_on(0, 2);
    ethosn_serve();
    play_compare("arrows=right");
}

/* Seen long after: the index moves at the end of an inference only. */
static void ethosn_published_late(void)
{
    static play_model model;
    model = ethosn_model;
    model.serve_every = 100000000;
    model.duration = 500000;
    play_model_run(&model, 1000);
}

/* No anchor at all: the order of submissions and completions bounds the clock. */
static void ethosn_causal(void)
{
    static play_model model;
    model = ethosn_model;
    model.opened = NULL;
    ethosn_is_anchored = false;
    play_model_run(&model, 400);
}

/* ---- Tenstorrent */

/* The high word was read before the low one came round: 2^32 early. */
static void tt_high_read_first(void)
{
    open_model(&tt_model);
    jobs_on(0, 2);
    tt_serve();
    unsigned char words[16];
    play_until(play.host + 100000);
    const uint64_t now = play_ticks(play.host);
    for (unsigned i = 0; i < 2; i++) {
        const uint64_t ticks = now - 1000 + 500 * i - (i ? 0 : UINT64_C(1) << 32);
        play_put(words, 8 * i, 4, 0x80000000u | i << 28 | TT_FIRMWARE << 12 | (ticks >> 32 & 0xFFF));
        play_put(words, 8 * i + 4, 4, ticks & UINT32_MAX);
    }
    (void)npuprof_npu_feed(&play_npus[0], 0, words, 16);
    json_node *t = written();
    CHECK(said(t, "ring_lost") + records(t, "unmatched_ends") > 0);
    for (json_node *e = json_get(t, "traceEvents")->first; e; e = e->next)
        if (json_get(e, "args.pe_index") && json_get(e, "dur")) CHECK(trace_dur(e) < 1000000000);
}

/* What an earlier, longer launch left behind the end is fed, too. */
static void tt_stale_words(void)
{
    open_model(&tt_model);
    tt[0].words = 4;
    for (unsigned i = 0; i < 40; i++) tt_mark(0, i & 1, 0x4444, play.host - 100000 + 1000 * i);
    play.entries = 0;
    tt_feeds_stale_words = true;
    jobs_on(0, 3);
    tt_serve();
    json_node *t = written();
    CHECK_UINT(trace_count(t, "X", "firmware"), 3);
    CHECK_UINT(trace_count(t, "X", "kernel"), 3);
}

/* ---- Indices */

static void hailo_comes_round(void)
{
    progress_from = HAILO_COUNT - 3;             /* shows 1021 ... 1024, then 1 */
    play_model_run(&hailo_model, 200);
}

static void index_goes_back(void)
{
    open_model(&aie4_model);
    jobs_on(0, 5);
    CHECK_INT(npuprof_npu_drain(&play_npus[0]), NPUPROF_OK);
    play_put(progress[0].memory, 0, 8, 1);
    unsigned said_so = 0;                        /* at once, or at the second look: it may be half written */
    for (int i = 0; i < 5; i++) said_so += npuprof_npu_drain(&play_npus[0]) == NPUPROF_ERR_NPU_RING;
    CHECK_UINT(said_so, 1);
    CHECK_UINT(device_spans(written()), 5);
}

/* The halves of an index of 64 bits, in two stores: near its carry, the high one late. */
static unsigned char *torn_at;
static uint64_t torn_until;

static void torn_show(uint64_t ticks)
{
    (void)ticks;
    if (torn_at && play.host > torn_until) {
        play_put(torn_at, 4, 4, progress[0].done >> 32);
        torn_at = NULL;
    }
}

static void torn_ended(const play_job *job)
{
    const uint64_t done = ++progress[job->lane].done;
    play_put(progress[job->lane].memory, 0, 4, done & UINT32_MAX);
    torn_at = job->lane ? NULL : progress[0].memory;
    torn_until = play.host + 100;
    if (job->lane) play_put(progress[job->lane].memory, 4, 4, done >> 32);
}

static void aie4_torn_index(void)
{
    static play_model model;
    model = aie4_model;
    model.ended = torn_ended;
    model.show = torn_show;
    model.serve_every = 4000;
    progress_from = UINT32_MAX - 30;
    play_model_run(&model, 300);
}

/* ---- Ethos-U, VIP, rknpu */

static void ethosu_not_enabled(void)
{
    open_model(&ethosu_model);
    ethosu_begin(0);
    ethosu[0].enabled = false;
    play_put(ethosu[0].page, 0x180, 4, 0);
    play_until(play.host + 300000000);
    uint64_t ticks;
    npuprof_result result = NPUPROF_OK;
    for (int i = 0; i < 5 && result != NPUPROF_ERR_NPU_NOT_ENABLED; i++) {
        result = npuprof_npu_read(&play_npus[0], &ticks);
        play_until(play.host + 200000000);
    }
    CHECK_INT(result, NPUPROF_ERR_NPU_NOT_ENABLED);
    ethosu_end(0);
    CHECK_INT(npuprof_npu_read(&play_npus[0], &ticks), NPUPROF_ERR_NPU_OFF);
    (void)written();
}

/* Power goes and comes inside a block: no span, or one that is right. */
static void ethosu_power_cycle_inside(void)
{
    open_model(&ethosu_model);
    for (int i = 0; i < 20; i++) {
        ethosu_begin(0);
        play_until(play.host + 20000);
        if (i == 10) {
            ethosu_power(0, false);
            play_until(play.host + 50000);
            ethosu_power(0, true);
        }
        play_until(play.host + 20000);
        ethosu_end(0);
        play_until(play.host + 100000);
    }
    play_close();
    json_node *t = trace_load(check_path("trace.json"));
    CHECK(device_spans(t) >= 19);
    for (json_node *e = json_get(t, "traceEvents")->first; e; e = e->next) {
        if (!json_get(e, "args.pe_index") || json_text(json_get(e, "ph"))[0] != 'X') continue;
        const int64_t took = trace_dur(e);
        CHECK((took > 39000 && took < 42000) || (took > 89000 && took < 92000));
    }
}

static void ethosu_wrap(void)
{
    ethosu_start = 0xFFFFFFFFFFFF - 3000;
    play_model_run(&ethosu_model, 100);
}

/* While the block has no power, its page is not there: a load would end the test. */
static void rknpu_off(void)
{
    open_model(&rknpu_model);
    jobs_on(0, 5);
    callback_serve();
    callback.on = false;
    mprotect((void *)((uintptr_t)callback.page / 4096 * 4096), 4096, PROT_NONE);
    const uint32_t reads = callback_reads;
    CHECK_UINT(reads, 2 * 5);                    /* both event counters, at the end of each job */
    uint64_t ticks;
    (void)npuprof_npu_read(&play_npus[0], &ticks);
    (void)npuprof_npu_sync(&play_npus[0]);
    (void)npuprof_npu_drain(&play_npus[0]);
    (void)npuprof_npu_complete_host(&play_npus[0], 0, 0, "late", NULL, 0, npuprof_now_ns(), PROF_NO_ARGS,
                                    true);
    CHECK_UINT(callback_reads, reads);
    json_node *t = written();
    CHECK_UINT(callback_reads, reads);
    CHECK_UINT(device_spans(t), 6);
}

CHECK_MAIN(CASE(ethosn_gap), CASE(ethosn_published_late), CASE(ethosn_causal), CASE(tt_high_read_first),
           CASE(tt_stale_words), CASE(hailo_comes_round), CASE(index_goes_back), CASE(aie4_torn_index),
           CASE(ethosu_not_enabled), CASE(ethosu_power_cycle_inside), CASE(ethosu_wrap), CASE(rknpu_off))
