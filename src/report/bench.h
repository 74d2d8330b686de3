#pragma once   /* SPDX-License-Identifier: MIT */
#include "../public/macros.h"
#include "../numbers/text.h"
#include "../numbers/hash.h"
#include "../os/common.h"
#include "../control/start.h"
#include "../control/lock.h"
#include "common.h"

/* Measuring operators: npuprof_bench() and its cache.
   Data: the cache, a ring of the last results, and the number of results that ever went into it. Both belong
   to the thread that has the readers' lock; npuprof_bench_size() loads the number without it. While an
   operator runs, nothing is held. */

enum { NPUPROF_BENCH_CACHE_ = 32 };

typedef struct npuprof_bench_entry_ {
    uint64_t settings;                     /* hash of all settings but key and repeat */
    char key[64];
    npuprof_bench_result result;
} npuprof_bench_entry_;

static npuprof_bench_entry_ npuprof_bench_cache_[NPUPROF_BENCH_CACHE_];
static size_t npuprof_bench_stored_;       /* results since the last reset; a new one replaces the oldest */

/* Result number i of the cache, the oldest first. */
static const npuprof_bench_entry_ *npuprof_bench_entry_at_(size_t i)
{
    const size_t stored = npuprof_bench_stored_, oldest = stored > NPUPROF_BENCH_CACHE_ ? stored : 0;
    return &npuprof_bench_cache_[(oldest + i) % NPUPROF_BENCH_CACHE_];
}

/* Runs all operators, `count` times. */
static npuprof_result npuprof_bench_runs_(const npuprof_bench_desc *d, size_t ops, int count)
{
    while (count-- > 0)
        for (size_t i = 0; i < ops; i++)
            if (d->ops[i].run(d->ops[i].user, d->ops[i].stream)) return NPUPROF_ERR_BENCH;
    return NPUPROF_OK;
}

/* Waits for the device, and reads the clock to measure with. */
static npuprof_result npuprof_bench_stamp_(const npuprof_bench_desc *d, uint64_t *ticks)
{
    if (d->device && d->device->wait) (void)d->device->wait(d->device->user);
    if (d->clock.read) return d->clock.read(d->clock.user, ticks);
    *ticks = (uint64_t)npuprof_now_ns();
    return NPUPROF_OK;
}

/* One repeat: `number` runs between two stamps. *us: the mean of one run. */
static npuprof_result npuprof_bench_repeat_(const npuprof_bench_desc *d, size_t ops, int number, double *us)
{
    uint64_t from = 0, to = 0;
    npuprof_result result = npuprof_bench_stamp_(d, &from);
    if (result == NPUPROF_OK) result = npuprof_bench_runs_(d, ops, number);
    if (result == NPUPROF_OK) result = npuprof_bench_stamp_(d, &to);
    double ns = (double)(int64_t)(to - from);
    if (result == NPUPROF_OK && d->clock.read) result = d->clock.ns(d->clock.user, from, to, &ns);
    *us = ns / 1000 / number;
    return result;
}

static npuprof_result npuprof_bench_measure_(const npuprof_bench_desc *d, size_t ops, int warmup, int number,
                                             npuprof_bench_result *r)
{
    npuprof_result result = NPUPROF_OK;
    double sorted[NPUPROF_BENCH_REPEATS] = { 0 }, us;
    NPUPROF_ONCE_(warm, 1, NPUPROF_SITE_(bench_, NPUPROF_KIND_WARM_UP, "Runtime", "warm up"),
                  npuprof_begin_(NPUPROF_REF_(bench_, "", "")))
        result = npuprof_bench_runs_(d, ops, warmup);
    for (int i = 0; i < r->repeat; i++) {
        if (result == NPUPROF_OK) result = npuprof_bench_repeat_(d, ops, number, &us);
        if (result != NPUPROF_OK) return result;
        r->latency_us[i] = us;
        r->mean_us += us / r->repeat;
        int at = i;
        for (; at && sorted[at - 1] > us; at--) sorted[at] = sorted[at - 1];
        sorted[at] = us;
    }
    r->min_us = sorted[0];
    r->max_us = sorted[r->repeat - 1];
    r->median_us = (sorted[(r->repeat - 1) / 2] + sorted[r->repeat / 2]) / 2;
    r->spread = r->median_us > 0 ? (r->max_us - r->min_us) / r->median_us : 0;
    r->unstable = r->spread > 0.1;
    for (size_t i = 0; i < ops; i++) r->workspace_bytes += d->ops[i].workspace_bytes;
    return NPUPROF_OK;
}

static npuprof_result npuprof_bench_check_(const npuprof_bench_desc *d, size_t ops)
{
    if (!d || !d->ops) return NPUPROF_REFUSE_("npuprof_bench: desc or desc.ops is NULL");
    if (d->warmup < -1 || d->number < 0)
        return NPUPROF_REFUSE_("npuprof_bench: desc.warmup or desc.number is negative");
    if (d->repeat < 0 || d->repeat > NPUPROF_BENCH_REPEATS)
        return NPUPROF_REFUSE_("npuprof_bench: desc.repeat is not 0 to 32");
    if (!d->clock.read != !d->clock.ns)
        return NPUPROF_REFUSE_("npuprof_bench: desc.clock needs both read and ns");
    for (size_t i = 0; i < ops; i++)
        if (!d->ops[i].run) return NPUPROF_REFUSE_("npuprof_bench: run of an operator is NULL");
    return NPUPROF_OK;
}

/* Hash of the settings that make two results comparable. */
static uint64_t npuprof_bench_hash_(const npuprof_bench_desc *d, size_t ops, int warmup, int number)
{
    uint64_t h = npuprof_hash_mix_((uint64_t)(unsigned)warmup << 32 | (unsigned)number);
    h ^= npuprof_hash_mix_((uintptr_t)d->device);
    h ^= npuprof_hash_mix_((uintptr_t)d->clock.user + (d->clock.read != NULL));
    for (size_t i = 0; i < ops; i++) h = npuprof_hash_mix_(h + (uint64_t)d->ops[i].stream + 1);
    return h;
}

/* Takes a result from the cache. False: it is not there. */
static bool npuprof_bench_find_(const char *key, uint64_t settings, npuprof_bench_result *out)
{
    if (!npuprof_reader_lock_()) return false;
    for (size_t i = 0; i < npuprof_bench_size() && !out->cached; i++) {
        const npuprof_bench_entry_ *const e = &npuprof_bench_cache_[i];
        if (e->settings != settings || e->result.repeat != out->repeat || strcmp(e->key, key) != 0) continue;
        *out = e->result;
        out->cached = true;
    }
    npuprof_reader_unlock_();
    return out->cached;
}

static void npuprof_bench_store_(const char *key, uint64_t settings, const npuprof_bench_result *result)
{
    if (!npuprof_reader_lock_()) return;
    npuprof_bench_entry_ *const e = &npuprof_bench_cache_[npuprof_bench_stored_ % NPUPROF_BENCH_CACHE_];
    e->settings = settings;
    npuprof_text_copy_(e->key, sizeof e->key, key);
    e->result = *result;
    NPUPROF_STORE_(&npuprof_bench_stored_, npuprof_bench_stored_ + 1);
    npuprof_reader_unlock_();
}

NPUPROF_API_ npuprof_result npuprof_bench(const npuprof_bench_desc *d, npuprof_bench_result *out)
{
    if (!out) return NPUPROF_REFUSE_("npuprof_bench: out is NULL");
    memset(out, 0, sizeof *out);
    const size_t ops = d && d->op_count ? d->op_count : 1;
    npuprof_result result = npuprof_bench_check_(d, ops);
    if (result != NPUPROF_OK) return result;
    const int warmup = d->warmup == 0 ? 10 : d->warmup, number = d->number ? d->number : 10;
    const uint64_t settings = npuprof_bench_hash_(d, ops, warmup, number);
    const bool is_cached = d->key && strlen(d->key) < sizeof npuprof_bench_cache_[0].key;
    out->repeat = d->repeat ? d->repeat : 1;
    if (is_cached && npuprof_bench_find_(d->key, settings, out)) return NPUPROF_OK;
    result = npuprof_bench_measure_(d, ops, warmup, number, out);
    if (result != NPUPROF_OK) memset(out, 0, sizeof *out);
    else if (is_cached) npuprof_bench_store_(d->key, settings, out);
    return result;
}

NPUPROF_API_ void npuprof_bench_reset(void)
{
    if (!npuprof_reader_lock_()) return;
    NPUPROF_STORE_(&npuprof_bench_stored_, 0);
    npuprof_reader_unlock_();
}

NPUPROF_API_ size_t npuprof_bench_size(void)
{
    const size_t stored = NPUPROF_LOAD_(&npuprof_bench_stored_), capacity = NPUPROF_BENCH_CACHE_;
    return stored < capacity ? stored : capacity;
}

/* A number with three decimals, in `text`. */
static const char *npuprof_bench_three_digits_(double v, char text[32])
{
    const uint64_t thousandths = (uint64_t)(v * 1000 + 0.5);
    snprintf(text, 32, "%llu.%03u", (unsigned long long)(thousandths / 1000), (unsigned)(thousandths % 1000));
    return text;
}

NPUPROF_API_ npuprof_result npuprof_print_bench(FILE *out)
{
    char mean[32], min[32], max[32], spread[32];
    npuprof_work_ *w;
    const npuprof_result refused = npuprof_report_begin_(out, &w);
    if (refused) return refused;
    fprintf(out, "%-40s  %12s  %12s  %12s  %10s  %6s  %15s\n", "operator", "mean (us)", "min", "max",
            "spread (%)",
            "repeat", "workspace (B)");
    for (size_t i = 0; i < npuprof_bench_size(); i++) {
        const npuprof_bench_entry_ *const e = npuprof_bench_entry_at_(i);
        const npuprof_bench_result *const r = &e->result;
        npuprof_bench_three_digits_(r->mean_us, mean);
        npuprof_bench_three_digits_(r->min_us, min);
        npuprof_bench_three_digits_(r->max_us, max);
        npuprof_bench_three_digits_(100 * r->spread, spread);
        fprintf(out, "%-40s  %12s  %12s  %12s  %10s  %6d  %15llu%s\n", e->key, mean, min, max,
                r->repeat > 1 ? spread : "-", r->repeat, (unsigned long long)r->workspace_bytes,
                r->unstable ? "  unstable" : "");
    }
    return npuprof_report_end_(out, w);
}
