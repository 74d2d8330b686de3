#pragma once   /* SPDX-License-Identifier: MIT */
#include "load.h"
#include "pftrace_file.h"
#include "source.h"

/* Following a target that sends: headers and parts are kept, and a trace is made of them again and again, by
   the reader of files. So a stream that is followed and one that was captured give the same trace.
   Memory: what is kept has a fixed size. When it is full the file is finished, and the next one, with a
   number in its name, begins one lap of the target's ring earlier: in a lap each span that is open was sent,
   so each file stands by itself.
   Data: npuprof_follow_, used by one thread. */

#ifndef _WIN32
typedef struct npuprof_follow_options_ {
    const char *source, *elf, *output;     /* elf and output may be NULL */
    unsigned long baud, seconds, every;    /* seconds: ULONG_MAX: no end. every: 0: at the end only */
    unsigned long split_mib, files;        /* files: keep so many; 0: all */
} npuprof_follow_options_;

/* How things stand in the current trace, and what was counted in all of them. */
typedef struct npuprof_follow_state_ {
    npuprof_line_ line;
    size_t kept_bytes;
    uint64_t spans, events;
    uint16_t sent[1 << 16];                /* of each index in the target's ring: 1 + the lap of the newest
                                              open record from there, which comes again in each lap */
} npuprof_follow_state_;

static struct {
    npuprof_follow_options_ o;
    uint8_t *kept;                         /* headers and parts of the current file, as they were sent */
    size_t capacity;
    uint8_t pending[1 << 16];              /* bytes in which no header or part was found yet */
    size_t pending_bytes;
    uint64_t bytes, other;                 /* all that came; what was no header and no part */
    uint64_t gaps, missing, before, twice; /* of the traces before this one; before: of `missing`, those that
                                              were sent before the first cell that came */
    uint64_t unplaced;                     /* parts of traces whose headers are all missing */
    unsigned file, written;                /* number of the current file; the last one that was written */
    bool is_new;                           /* there is something that was not written yet */
    bool damaged, is_end;
    bool is_over;                          /* the source has ended: what is cut off now stays so */
    bool is_cut;                           /* behind what is kept a part began that is not whole */
    bool is_continued;                     /* the current file is not the first one of its trace */
    npuprof_follow_state_ now, mark;       /* mark: behind the newest header; what comes after it may be of
                                              another trace */
    npuprof_elf_ elf;
    npuprof_expander_ sites;               /* of it only what finds a call site */
} npuprof_follow_;

static volatile sig_atomic_t npuprof_follow_stop_;

/* Says a sentence of what happened on the standard error. Behind a line that shows the state it begins a new
   one. */
static void npuprof_follow_say_(const char *what, const char *why)
{
    if (isatty(2)) fputs("\r\033[K", stderr);
    fflush(stderr);
    npuprof_os_say_("npuprof-convert: %s: %s\n", what, why);
}

/* Writes the trace of what is kept. False: it was refused, or cannot be written, and that was said. A target
   that sent nothing yet has no file. */
static bool npuprof_follow_write_(void)
{
    char path[1100];
    npuprof_damage damage;
    const npuprof_follow_options_ *const o = &npuprof_follow_.o;
    const bool has_any = npuprof_follow_.now.line.has_header && npuprof_follow_.now.line.cells;
    if (!has_any || !npuprof_follow_.is_new) return true;
    if (!o->output && (isatty(1) || !npuprof_follow_.is_end)) return true;
    npuprof_follow_.is_new = false;
    npuprof_expand_is_continued_ = npuprof_follow_.is_continued;
    npuprof_expand_goes_on_ = !(npuprof_follow_.is_end && npuprof_follow_.is_over);
    npuprof_result r = npuprof_load_any_(NULL, npuprof_follow_.kept, npuprof_follow_.now.kept_bytes, o->elf,
                                         0, &damage);
    if (r == NPUPROF_ERR_FORMAT) npuprof_follow_say_(o->source, damage.what);
    else if (r != NPUPROF_OK) npuprof_follow_say_(o->source, npuprof_result_string(r));
    if (r != NPUPROF_OK) return false;
    npuprof_follow_.damaged = npuprof_follow_.damaged || damage.places;
    if (npuprof_expand_unnamed_ && !npuprof_follow_.written)
        npuprof_follow_say_(o->source, "names are addresses: give the program that sends, --elf "
                                       "FIRMWARE.elf");
    if (o->output) npuprof_load_numbered_path_(path, sizeof path, o->output, npuprof_follow_.file);
    else snprintf(path, sizeof path, "/dev/stdout");
    r = npuprof_load_ends_with_(path, ".pftrace") ? npuprof_write_pftrace(path) : npuprof_dump(path);
    npuprof_unload();
    if (r != NPUPROF_OK) npuprof_follow_say_(path, npuprof_result_string(r));
    else npuprof_follow_.written = npuprof_follow_.file;
    npuprof_follow_.is_new = r != NPUPROF_OK;
    return r == NPUPROF_OK;
}

/* The next file begins. Of the files before, the newest ones stay. */
static void npuprof_follow_next_file_(void)
{
    char path[1100];
    const npuprof_follow_options_ *const o = &npuprof_follow_.o;
    npuprof_follow_.file++;
    if (!o->output || !o->files || npuprof_follow_.file <= o->files) return;
    npuprof_load_numbered_path_(path, sizeof path, o->output, npuprof_follow_.file - (unsigned)o->files);
    (void)unlink(path);
}

/* Counts the spans and events that begin in a part, to be shown. A header came before. */
static void npuprof_follow_count_(const npuprof_parts_item_ *item, const uint8_t *cells)
{
    static uint32_t number[NPUPROF_PART_CELLS_];
    static npuprof_expand_cells_ g;
    npuprof_expander_ *const x = &npuprof_follow_.sites;
    const bool is_ring = npuprof_expand_is_ring_(&npuprof_follow_.now.line.c);
    for (uint32_t i = 0; i < NPUPROF_PART_CELLS_; i++) number[i] = i;
    g.c = npuprof_follow_.now.line.c;
    g.swap = item->swap;
    g.cells = cells;
    g.count = item->part.count;
    g.number = number;
    x->g = &g;
    for (uint32_t i = item->part.lead, next; i < g.count; i = next) {
        bool broken = false;               /* it goes on in the next part */
        next = is_ring ? i + npuprof_expand_ring_length_(x, i) : npuprof_expand_cell_after_(x, i, &broken);
        if (broken) next = g.count;
        if (npuprof_expand_is_empty_(x, i)) continue;
        const uint32_t ref = npuprof_expand_cell_word_(x, i, 0), half = npuprof_expand_cell_half_(x, i, 1);
        if (is_ring && (half & NPUPROF_CELL_OPEN_)) {
            const uint16_t lap = (uint16_t)((half & NPUPROF_EXPAND_LAPS_) + 1);
            uint16_t *const sent = &npuprof_follow_.now.sent[(item->part.first + i) % g.c.cells & 0xFFFF];
            if (*sent == lap) continue;
            *sent = lap;
        }
        npuprof_expand_site_ site = { 0, 0, 0, 0, NPUPROF_KIND_SPAN };
        (void)npuprof_expand_site_of_(x, ref, &site);
        const uint32_t kind = ref & 2 ? ref >> 8 & 0xFF : site.kind;
        if (!kind || kind >= NPUPROF_KIND_COUNT) continue;
        if (npuprof_kind_nests_(kind)) npuprof_follow_.now.spans++;
        else npuprof_follow_.now.events++;
    }
}

/* Counts what came before the first header. Why not at once: only the header says how cells are read. */
static void npuprof_follow_count_first_(size_t to)
{
    npuprof_parts_item_ item;
    npuprof_line_ line;
    const uint8_t *const kept = npuprof_follow_.kept;
    memset(&line, 0, sizeof line);
    for (size_t at = 0; npuprof_parts_next_(kept, to, true, &at, &item); at += item.bytes) {
        if (!npuprof_line_take_part_(&line, &item, at)) continue;
        npuprof_follow_count_(&item, kept + at + item.head_bytes);
    }
}

/* Takes a header or part of the current trace into what is kept. False: the header is of another trace, which
   began at *begins. */
static bool npuprof_follow_keep_(const npuprof_parts_item_ *item, const uint8_t *bytes, uint64_t *begins)
{
    npuprof_line_ *const l = &npuprof_follow_.now.line;
    const size_t at = npuprof_follow_.now.kept_bytes;
    if (item->is_header && !npuprof_line_take_header_(l, item, at, begins)) return false;
    if (item->is_header) {
        npuprof_follow_.sites.pointer_bytes = item->c.pointer_bytes;
        npuprof_follow_.sites.near_address = (uint64_t)item->c.address_high << 32 | item->c.address_low;
        if (l->headers == 1) npuprof_follow_count_first_(at);
    } else if (npuprof_line_take_part_(l, item, at) && l->has_header) {
        npuprof_follow_count_(item, bytes + item->head_bytes);
    }
    memmove(npuprof_follow_.kept + at, bytes, item->bytes);
    npuprof_follow_.now.kept_bytes += item->bytes;
    npuprof_follow_.is_new = true;
    if (item->is_header) npuprof_follow_.mark = npuprof_follow_.now;
    return true;
}

/* The trace is at its end: `bytes` of what is kept belong to it. */
static bool npuprof_follow_end_trace_(size_t bytes)
{
    npuprof_line_ *const l = &npuprof_follow_.now.line;
    npuprof_follow_.now.kept_bytes = bytes;
    const bool written = npuprof_follow_write_();
    npuprof_follow_.unplaced += l->has_header ? l->strange : l->parts;
    npuprof_line_finish_(l);
    const uint32_t before = npuprof_line_before_(l);
    npuprof_follow_.gaps += l->gaps + (before != 0);
    npuprof_follow_.missing += (uint64_t)npuprof_line_missing_(l) + before;
    npuprof_follow_.before += before;
    npuprof_follow_.is_continued = false;
    npuprof_follow_.twice += l->twice;
    memset(l, 0, sizeof *l);
    npuprof_follow_.now.kept_bytes = 0;
    memset(npuprof_follow_.now.sent, 0, sizeof npuprof_follow_.now.sent);
    npuprof_follow_.mark = npuprof_follow_.now;
    return written;
}

/* Takes what is kept once more, from `from` to `to`. */
static void npuprof_follow_again_(size_t from, size_t to)
{
    npuprof_parts_item_ item;
    uint64_t unused;
    uint8_t *const kept = npuprof_follow_.kept;
    for (size_t at = from; npuprof_parts_next_(kept, to, true, &at, &item); at += item.bytes)
        (void)npuprof_follow_keep_(&item, kept + at, &unused);
}

/* The target began anew: what is kept from `begins` on is the beginning of the new trace. */
static bool npuprof_follow_restart_(size_t begins)
{
    const size_t end = npuprof_follow_.now.kept_bytes, from = npuprof_follow_.mark.kept_bytes;
    npuprof_follow_.now = npuprof_follow_.mark;
    npuprof_follow_again_(from, begins);
    const bool has_file = npuprof_follow_.now.line.has_header && npuprof_follow_.now.line.cells;
    const bool written = npuprof_follow_end_trace_(begins);
    npuprof_follow_say_(npuprof_follow_.o.source, "the target began anew: see the next file");
    if (has_file) npuprof_follow_next_file_();
    memmove(npuprof_follow_.kept, npuprof_follow_.kept + begins, end - begins);
    npuprof_follow_again_(0, end - begins);
    return written;
}

/* What is kept is full: finishes the file, and keeps the last lap of the target's ring for the next one. */
static bool npuprof_follow_split_(void)
{
    npuprof_parts_item_ item;
    npuprof_line_ *const l = &npuprof_follow_.now.line;
    size_t from = npuprof_follow_.now.kept_bytes;
    const bool written = npuprof_follow_write_();
    uint8_t *const kept = npuprof_follow_.kept;
    const size_t all = npuprof_follow_.now.kept_bytes;
    for (size_t at = 0; npuprof_parts_next_(kept, all, true, &at, &item); at += item.bytes) {
        if (!item.is_header) continue;
        const bool is_lap = npuprof_line_after_(item.c.used + l->c.cells, l->end) <= 0;
        if (is_lap || at < all / 2 || from == all) from = at;
    }
    if (from < all / 4) from = all;
    npuprof_follow_.now.kept_bytes -= from;
    memmove(kept, kept + from, npuprof_follow_.now.kept_bytes);
    l->back = l->strange = l->wide = 0;
    npuprof_follow_.mark = npuprof_follow_.now;
    npuprof_follow_.is_continued = true;
    npuprof_follow_next_file_();
    return written;
}

/* Drops bytes in which no header or part is whole. */
static void npuprof_follow_drop_(const uint8_t *bytes, size_t count)
{
    npuprof_follow_.other += count;
    if (npuprof_parts_mark_in_(bytes, count) < count) npuprof_follow_.is_cut = true;
}

/* The source has ended. A part that it cut off is kept by its mark, for the reader to say so. */
static void npuprof_follow_keep_cut_(void)
{
    uint8_t *const end = npuprof_follow_.kept + npuprof_follow_.now.kept_bytes;
    const bool has_room = npuprof_follow_.capacity - npuprof_follow_.now.kept_bytes >= 4;
    if (!npuprof_follow_.is_cut || !npuprof_follow_.is_over || !has_room) return;
    memcpy(end, "NPST", 4);
    npuprof_follow_.now.kept_bytes += 4;
    npuprof_follow_.is_new = true;
}

/* Takes bytes that came. is_end: there are no more. False: what was found cannot be written. */
static bool npuprof_follow_feed_(bool is_end)
{
    npuprof_parts_item_ item;
    uint64_t begins;
    size_t at = 0, from = 0;
    bool good = true;
    uint8_t *const p = npuprof_follow_.pending;
    while (good && npuprof_parts_next_(p, npuprof_follow_.pending_bytes, is_end, &at, &item)) {
        npuprof_follow_drop_(p + from, at - from);
        npuprof_follow_.is_cut = false;
        const size_t kept = npuprof_follow_.now.kept_bytes + item.bytes;
        if (kept > npuprof_follow_.capacity) good = npuprof_follow_split_();
        if (!npuprof_follow_keep_(&item, p + at, &begins)) {
            good = npuprof_follow_restart_((size_t)begins);
            if (!npuprof_follow_keep_(&item, p + at, &begins)) {
                good = npuprof_follow_end_trace_(npuprof_follow_.now.kept_bytes) && good;
                (void)npuprof_follow_keep_(&item, p + at, &begins);
            }
        }
        from = at += item.bytes;
    }
    npuprof_follow_drop_(p + from, at - from);
    npuprof_follow_.pending_bytes -= at;
    memmove(p, p + at, npuprof_follow_.pending_bytes);
    return good;
}

/* One line of the state. */
static void npuprof_follow_show_(double seconds, const char *begin, const char *end)
{
    const npuprof_line_ *const l = &npuprof_follow_.now.line;
    const uint32_t before = npuprof_line_before_(l);
    const unsigned long long all_before = npuprof_follow_.before + before;
    char began[64] = "";
    if (all_before) snprintf(began, sizeof began, " (%llu before the first that came)", all_before);
    fprintf(stderr, "%s%.0f s: %llu spans, %llu events, %llu gaps of %llu cells%s, %llu parts twice, "
            "%u lost by the target, %llu bytes, %llu of them no part%s", begin, seconds,
            (unsigned long long)npuprof_follow_.now.spans, (unsigned long long)npuprof_follow_.now.events,
            (unsigned long long)npuprof_follow_.gaps + l->gaps + (before != 0),
            (unsigned long long)npuprof_follow_.missing + npuprof_line_missing_(l) + before, began,
            (unsigned long long)npuprof_follow_.twice + l->twice + l->refused, (unsigned)l->c.lost,
            (unsigned long long)npuprof_follow_.bytes, (unsigned long long)npuprof_follow_.other, end);
    fflush(stderr);
}
#endif /* !_WIN32 */
