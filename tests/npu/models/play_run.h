/* play_run.h - the host of play.h: submits jobs, serves the device, compares the trace with the truth.
   SPDX-License-Identifier: MIT */
#ifndef PLAY_RUN_H
#define PLAY_RUN_H

/* One device. What is NULL or 0 has the default that stands behind it. */
typedef struct play_model {
    const char *name;
    unsigned lanes;                      /* engines or queues that work at once */
    uint64_t hz, start;                  /* of the counter: nominal rate, value at the beginning */
    int ppm;                             /* how much faster it truly is */
    uint64_t duration;                   /* of a job, mean, ns; 20000 */
    uint64_t serve_every;                /* mean time between two looks of the host, ns; 1000000 */
    void (*describe)(npuprof_npu_desc *desc);
    void (*opened)(void);                /* after npuprof_npu_open(): anchors by hand, for instance */
    uint64_t (*number)(uint32_t serial, uint32_t lane);      /* serial + 1 */
    const char *(*name_of)(const play_job *job);             /* its span; "submit" */
    void (*began)(const play_job *job);  /* writes records */
    void (*ended)(const play_job *job);
    void (*show)(uint64_t ticks);        /* writes the counter's registers */
    void (*serve)(void);                 /* npuprof_npu_drain(); results go to play_note() */
    void (*finish)(void);                /* before npuprof_npu_close() */
    void (*run)(uint32_t jobs);          /* instead of play_jobs(): the driver's loop */
    bool own_truth;                      /* it calls play_truth() itself */
    uint32_t ops;                        /* kinds of work; 1 */
    uint32_t entries_per_job;            /* 1; ~0: the model counts play.entries itself */
    bool separate;                       /* a device for each lane: each has a clock of its own */
    void (*numbered)(const play_job *job);       /* in the block, after npuprof_npu_set_job() */
    const char *compare;                 /* options of compare.py */
} play_model;

static npuprof_npu play_npus[PLAY_LANES];        /* [0]; with `separate`: [lane] */
static const play_model *play_is;
static uint32_t play_seen;               /* jobs that had ended when the host last served */
static uint32_t play_bad;                /* results of serving other than OK */
static npuprof_result play_last_bad;
static const char *play_truth_path;
static int64_t play_ns_offset;           /* npuprof_now_ns() - play.host */
static unsigned play_opening;            /* the device that describe() is called for */

static unsigned play_devices(void) { return play_is->separate ? play_is->lanes : 1; }

/* The device of a lane. */
CHECK_UNUSED_ static npuprof_npu *play_npu(unsigned lane) { return &play_npus[play_is->separate ? lane : 0]; }

/* Notes what serving the device gave; harmless results are OK. */
CHECK_UNUSED_ static npuprof_result play_note(npuprof_result result)
{
    if (result == NPUPROF_OK) return result;
    play_bad++;
    play_last_bad = result;
    return result;
}

CHECK_UNUSED_ static npuprof_npu_field play_field(unsigned offset, unsigned bytes, unsigned high,
                                                  unsigned low)
{
    npuprof_npu_field f;
    memset(&f, 0, sizeof f);
    f.offset = (uint16_t)offset;
    f.width_bytes = (uint8_t)bytes;
    f.lsb = (uint8_t)low;
    f.bits = (uint8_t)(high - low + 1);
    return f;
}

/* A field with a second part above it. */
CHECK_UNUSED_ static npuprof_npu_field play_two(npuprof_npu_field low, npuprof_npu_field high)
{
    low.hi_width_bytes = high.width_bytes;
    low.hi_lsb = high.lsb;
    low.hi_bits = high.bits;
    low.hi_offset = high.offset;
    return low;
}

/* The driver asks for the time of a device that nobody can read, and pushes it: 0.5 us and up to `late` ns
   before and behind. zero: what its counter shows beside play_ticks(). */
CHECK_UNUSED_ static void play_anchor(npuprof_npu *npu, uint64_t zero, uint64_t late)
{
    const int64_t before = npuprof_now_ns();
    play_until(play.host + 500 + play_random(late));
    const uint64_t raw = play_ticks(play.host) + zero;
    play_until(play.host + 500 + play_random(late));
    play_note(npuprof_npu_anchor(npu, raw, before, npuprof_now_ns()));
}

static void play_began(const play_job *job)
{
    if (play_is->began) play_is->began(job);
}

static void play_ended(const play_job *job)
{
    if (!play_is->own_truth)
        play_truth(job->lane, play_is->name_of ? play_is->name_of(job) : "submit", job->serial, job->begin,
                   job->end);
    if (play_is->entries_per_job != UINT32_MAX)
        play.entries += play_is->entries_per_job ? play_is->entries_per_job : 1;
    if (play_is->ended) play_is->ended(job);
}

/* Opens the model's device in a world that has just begun. */
CHECK_UNUSED_ static npuprof_result play_open(const play_model *model)
{
    npuprof_npu_desc desc;
    npuprof_result result = NPUPROF_OK;
    static char names[PLAY_LANES][40];
    play_is = model;
    play.hz = model->hz ? model->hz : 1000000000;
    play.start = model->start;
    play.ppm = model->ppm;
    play.origin = play.host;
    play.began = play_began;
    play.ended_job = play_ended;
    play_truth_path = check_path("truth");
    play.truth = fopen(play_truth_path, "w");
    CHECK_STOP(play.truth != NULL);
    npuprof_start(1);
    play.step = 0;
    fprintf(play.truth, "%" PRIu64 "\n", play.host);
    PROF_INSTANT("test", "origin", PROF_NO_ARGS);
    play_ns_offset = npuprof_now_ns() - (int64_t)play.host;
    play.step = 30;
    play.show = model->show;
    for (unsigned i = 0; i < play_devices() && result == NPUPROF_OK; i++) {
        memset(&desc, 0, sizeof desc);
        snprintf(names[i], sizeof names[i], "%s-%u", model->name, i);
        desc.name = model->separate ? names[i] : model->name;
        desc.pe_count = model->separate ? 1 : model->lanes;
        desc.counter.hz = play.hz;
        play_opening = i;
        model->describe(&desc);
        play_until(play.host + 1000);
        result = npuprof_npu_open(&play_npus[i], &desc);
    }
    if (result == NPUPROF_OK && model->opened) model->opened();
    return result;
}

static void play_serve(void)
{
    play_seen = play.ended;
    if (play_is->serve) {
        play_is->serve();
        return;
    }
    for (unsigned i = 0; i < play_devices(); i++) play_note(npuprof_npu_drain(&play_npus[i]));
}

static void play_submit_one(void)
{
    const play_model *m = play_is;
    const uint32_t serial = play.submitted, lane = (uint32_t)play_random(m->lanes);
    const uint64_t id = m->number ? m->number(serial, lane) : serial + 1u;
    const uint64_t mean = m->duration ? m->duration : 20000;
    WITH_NPU_PROFILER(play_npu(lane), lane, "submit", "NPU", PROF_ARGS(PROF_UINT("serial", serial)), {
        npuprof_npu_set_job(play_npu(lane), id);
        play_submit(lane, (uint32_t)play_random(m->ops ? m->ops : 1), id, 500 + play_random(2000),
                    mean / 4 + play_random(mean * 3 / 2));
        if (m->numbered) m->numbered(&play.lanes[lane].jobs[(play.lanes[lane].in - 1) % PLAY_DEPTH]);
    });
}

/* Submits jobs at random, serves at random, until all of them are over. */
CHECK_UNUSED_ static void play_jobs(uint32_t jobs)
{
    const play_model *m = play_is;
    const uint64_t every = m->serve_every ? m->serve_every : 1000000;
    const uint64_t gap = (m->duration ? m->duration : 20000) / m->lanes * 3 / 2;
    const uint32_t all = play.submitted + jobs;
    uint64_t next_submit = play.host + gap, next_serve = play.host + every;
    while (play.submitted != all || play.ended != play.submitted) {
        const bool frozen = play.host < play.frozen_until;
        const bool may_submit = play.submitted != all && play.submitted - play.ended < 100 &&
                                (frozen || play.submitted - play_seen < 200);
        if (next_serve < play.frozen_until) next_serve = play.frozen_until;
        if (may_submit && next_submit <= next_serve) {
            play_until(next_submit);
            play_submit_one();
            next_submit = play.host + 1 + play_random(2 * gap);
        } else {
            play_until(next_serve);
            play_serve();
            next_serve = play.host + 1 + play_random(2 * every);
            if (next_submit < play.host) next_submit = play.host + 1;
        }
    }
    play_until(play.host + 1000);
    play_serve();
}

CHECK_UNUSED_ static uint64_t play_lost(void)
{
    npuprof_stats stats;
    npuprof_get_stats(&stats);
    return stats.lost_by_cause[NPUPROF_LOST_RING];
}

/* Closes the device and writes the trace. */
CHECK_UNUSED_ static const char *play_close(void)
{
    const char *path = check_path("trace.json");
    if (play_is->finish) play_is->finish();
    for (unsigned i = 0; i < play_devices(); i++) npuprof_npu_close(&play_npus[i]);
    npuprof_stats stats;
    npuprof_get_stats(&stats);
    if (stats.lost != stats.lost_by_cause[NPUPROF_LOST_RING])
        check_failed_(__FILE__, __LINE__, "the test's arena is too small: %" PRIu64 " events lost",
                      stats.lost);
    CHECK_INT(npuprof_dump(path), NPUPROF_OK);
    fclose(play.truth);
    return path;
}

/* The true length of a tick. */
CHECK_UNUSED_ static double play_ns_per_tick(void) { return 1e15 / ((double)play.hz * (1000000 + play.ppm)); }

/* Closes, writes, and compares with the truth. */
CHECK_UNUSED_ static void play_compare(const char *options)
{
    char command[1600];
    const char *path = play_close(), *folder = strrchr(__FILE__, '/');
    snprintf(command, sizeof command,
             "PYTHONDONTWRITEBYTECODE=1 python3 '%.*s/compare.py' '%s' '%s' tick_ns=%.3f"
             " ns_per_tick=%.12g entries=%" PRIu64 " %s %s",
             (int)(folder - __FILE__), __FILE__, path, play_truth_path, 1e9 / (double)play.hz + 0.001,
             play_ns_per_tick(), play.entries, play_is->compare ? play_is->compare : "", options);
    fflush(stdout);
    if (system(command) != 0) check_failed_(__FILE__, __LINE__, "%s differs from its truth", play_is->name);
    if (!getenv("PLAY_KEEP")) {
        remove(path);
        remove(play_truth_path);
    }
}

/* Submits a job and lets the device do it. */
CHECK_UNUSED_ static void play_one(unsigned lane, uint64_t id, uint64_t ns)
{
    play_until(play.host + 2000);
    WITH_NPU_PROFILER(play_npu(lane), lane, "submit", "NPU", PROF_ARGS(PROF_UINT("serial", play.submitted)), {
        npuprof_npu_set_job(play_npu(lane), id);
        play_submit(lane, 0, id, 500, ns);
    });
    while (play.ended != play.submitted && !play.is_device_off) play_until(play.host + 1000);
}

/* The whole walk of a model. */
CHECK_UNUSED_ static void play_model_run(const play_model *model, uint32_t jobs)
{
    const npuprof_result result = play_open(model);
    if (result != NPUPROF_OK) {
        check_failed_(__FILE__, __LINE__, "%s does not open: %s", model->name, npuprof_result_string(result));
        check_end_(NULL);
    }
    if (model->run) model->run(jobs);
    else play_jobs(jobs);
    if (play_bad)
        check_failed_(__FILE__, __LINE__, "serving failed %u times, with %s at last", (unsigned)play_bad,
                      npuprof_result_string(play_last_bad));
    play_compare("");
}

#endif /* PLAY_RUN_H */
