#pragma once   /* SPDX-License-Identifier: MIT */
#include "../public/types.h"
#include "../read/image.h"
#include "../write/work.h"
#include "common.h"

/* The summary of inferences: count, extremes, mean and percentiles of their durations, exact however many
   there are. No duration is stored. A percentile is an order statistic, or lies between two; an order
   statistic is found byte by byte from the top: a walk over all spans counts the next byte of those that have
   the bytes found so far. */

enum { NPUPROF_REPORT_HISTOGRAM_ = 256 };      /* numbers in one: by the value of a byte */

/* Finds the durations of `ranks` ranks (0 is the shortest), which lie in `histograms` meanwhile, one each.
   rank[] is used up. */
static void npuprof_report_find_ranks_(npuprof_work_ *w, uint32_t kind, uint64_t *histograms, uint64_t rank[],
                                       size_t ranks, uint64_t value[])
{
    npuprof_event_ ev;
    uint64_t ns;
    for (size_t i = 0; i < ranks; i++) value[i] = 0;
    for (unsigned shift = 64; shift;) {
        const unsigned above = shift;
        shift -= 8;
        memset(histograms, 0, ranks * NPUPROF_REPORT_HISTOGRAM_ * sizeof *histograms);
        npuprof_walk_spans_ it = npuprof_walk_begin_spans_(&w->walk, &w->image, 1u << kind);
        while (npuprof_walk_next_span_(&it, &ev, &ns))
            for (size_t i = 0; i < ranks; i++)
                if (above == 64 || ns >> above == value[i] >> above)
                    histograms[i * NPUPROF_REPORT_HISTOGRAM_ + (ns >> shift & 255)]++;
        for (size_t i = 0; i < ranks; i++) {
            const uint64_t *const count = histograms + i * NPUPROF_REPORT_HISTOGRAM_;
            unsigned byte = 0;
            while (byte < 255 && rank[i] >= count[byte]) rank[i] -= count[byte++];
            value[i] |= (uint64_t)byte << shift;
        }
    }
}

/* The same for any number of ranks: as many at a time as the work area has space for, at least one. */
static void npuprof_report_order_statistics_(npuprof_work_ *w, uint32_t kind, uint64_t rank[], size_t ranks,
                                             uint64_t value[])
{
    uint64_t single[NPUPROF_REPORT_HISTOGRAM_];
    const size_t fit = w->room_bytes / sizeof single, most = fit ? fit : 1;
    uint64_t *const histograms = fit ? (uint64_t *)w->room : single;
    for (size_t i = 0; i < ranks; i += most) {
        const size_t now = ranks - i < most ? ranks - i : most;
        npuprof_report_find_ranks_(w, kind, histograms, rank + i, now, value + i);
    }
}

enum { NPUPROF_REPORT_QUANTILES_ = 6 };
static const unsigned npuprof_report_per_mille_[NPUPROF_REPORT_QUANTILES_] = { 500, 900, 950, 970, 990, 999 };

/* The quantiles of `count` durations: linear interpolation between order statistics (type 7), rounded half
   up. */
static void npuprof_report_quantiles_(npuprof_work_ *w, uint32_t kind, uint64_t count, uint64_t quantile[])
{
    enum { RANKS = 2 * NPUPROF_REPORT_QUANTILES_ };
    uint64_t rank[RANKS], value[RANKS];
    for (unsigned i = 0; i < NPUPROF_REPORT_QUANTILES_; i++) {
        const uint64_t below = (count - 1) * npuprof_report_per_mille_[i] / 1000;
        rank[2 * i] = below;
        rank[2 * i + 1] = below + 1 < count ? below + 1 : below;
    }
    npuprof_report_order_statistics_(w, kind, rank, RANKS, value);
    for (unsigned i = 0; i < NPUPROF_REPORT_QUANTILES_; i++) {
        const uint64_t part = (count - 1) * npuprof_report_per_mille_[i] % 1000;
        quantile[i] = value[2 * i] + ((value[2 * i + 1] - value[2 * i]) * part + 500) / 1000;
    }
}

static void npuprof_report_print_line_(FILE *out, const char *what, uint64_t value)
{
    fprintf(out, "%-32s: %llu\n", what, (unsigned long long)value);
}

NPUPROF_API_ npuprof_result npuprof_print_summary(FILE *out)
{
    npuprof_work_ *w;
    const npuprof_result refused = npuprof_report_begin_(out, &w);
    if (refused) return refused;
    npuprof_event_ ev;
    uint64_t count = 0, total = 0, min = UINT64_MAX, max = 0, ns;
    npuprof_walk_spans_ it = npuprof_walk_begin_spans_(&w->walk, &w->image, 1u << NPUPROF_KIND_INFERENCE);
    while (npuprof_walk_next_span_(&it, &ev, &ns)) {
        count++;
        total += ns;
        if (ns < min) min = ns;
        if (ns > max) max = ns;
    }
    fprintf(out, "================================================\n  Inference Results Summary\n"
                 "================================================\n");
    npuprof_report_print_line_(out, "Inference counts", count);
    if (count) {
        uint64_t quantile[NPUPROF_REPORT_QUANTILES_];
        npuprof_report_quantiles_(w, NPUPROF_KIND_INFERENCE, count, quantile);
        npuprof_report_print_line_(out, "Min latency (ns)", min);
        npuprof_report_print_line_(out, "Max latency (ns)", max);
        npuprof_report_print_line_(out, "Mean latency (ns)", (2 * total + count) / (2 * count));
        npuprof_report_print_line_(out, "Median latency (ns)", quantile[0]);
        for (unsigned i = 1; i < NPUPROF_REPORT_QUANTILES_; i++) {
            const unsigned per_mille = npuprof_report_per_mille_[i];
            fprintf(out, "%u.%u percentile Latency (ns)    : %llu\n", per_mille / 10, per_mille % 10,
                    (unsigned long long)quantile[i]);
        }
        npuprof_report_print_line_(out, "Total latency (ns)", total);
    }
    return npuprof_report_end_(out, w);
}
