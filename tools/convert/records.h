#pragma once   /* SPDX-License-Identifier: MIT */
#include "expander.h"
#include "fields.h"
#include "host_time.h"
#include "device.h"
#include "numbers.h"
#include "ring.h"
#include "gaps.h"

/* The records of a firmware's image, read into the expander's list in the order of their cells. What cannot
   be a record is damage and is left out. Facts about devices go to device.h as they come. */

/* Is the ELF file of another build than the program that recorded? The GNU build id tells, or the CRC of the
   names. A run whose records are not all there tells nothing. */
static bool npuprof_expand_is_other_build_(const npuprof_expander_ *x)
{
    const npuprof_expand_cells_ *const g = x->g;
    uint32_t cell = 0, build;
    if (!x->elf->count) return false;
    if ((g->c.build_kind & 15) == NPUPROF_BUILD_GNU_ &&
        (!npuprof_elf_build_id_(x->elf, &build) || build != g->c.build))
        return true;
    for (uint32_t run = 0; run < g->run_count; run++) {
        const uint32_t end = run + 1 < g->run_count ? g->runs[run + 1].start : g->count;
        uint32_t crc = UINT32_MAX;
        bool broken = false;
        while (cell < end) {
            crc = npuprof_expand_crc_names_(x, cell, crc);
            cell = npuprof_expand_cell_after_(x, cell, &broken);
        }
        if (g->runs[run].names && !broken && ~crc != g->runs[run].names) return true;
    }
    return false;
}

/* What is wrong with the record at a cell, or NULL. */
static const char *npuprof_expand_record_fault_(npuprof_expander_ *x, uint32_t cell)
{
    const uint32_t ref = npuprof_expand_cell_word_(x, cell, 0), kind = ref >> 8 & 0xFF;
    npuprof_expand_site_ site = { 0, 0, 0, 0, 0 };
    if (ref & 2) {
        const bool is_event = kind < NPUPROF_KIND_COUNT;
        const bool is_note = kind >= NPUPROF_CELL_KIND_THREAD_ && kind <= NPUPROF_CELL_KIND_HAND_ &&
                             (!(ref >> 16) || kind == NPUPROF_CELL_KIND_NAME_);
        return !(ref & 0xFC) && (is_event || is_note) ? NULL : "a record of no known kind";
    }
    x->refs++;
    if (!x->elf->count || npuprof_expand_site_of_(x, ref, &site)) return NULL;
    x->foreign++;
    return "a reference that is no call site of this program";
}

/* Counts a record that is not whole. next: the cell behind it. broken: fields are missing. */
static void npuprof_expand_check_fields_(const npuprof_expander_ *x, uint32_t cell, uint32_t next,
                                         bool broken, const npuprof_expand_item_ *r)
{
    const bool is_span = npuprof_kind_nests_(r->kind) || r->kind == NPUPROF_CELL_KIND_PAUSE_ ||
                         r->kind == NPUPROF_CELL_KIND_SLEPT_ || r->kind == NPUPROF_CELL_KIND_CLOSE_;
    /* A gap was counted when the cells were gathered. */
    const bool is_end = next >= x->g->count;
    const bool is_gap = is_end ? npuprof_expand_goes_on_ : !npuprof_expand_are_adjacent_(x->g, next - 1, 2);
    const uint64_t offset = npuprof_expand_cell_offset_(x->g, cell);
    size_t length = 0;
    if (broken && !is_gap) npuprof_load_note_damage_(offset, "a record that is cut off");
    /* A record of a ring says in its first field how long it is; else all but a span do in their head. */
    const bool is_ring = npuprof_expand_is_ring_(&x->g->c), has_fields = next - cell > 1;
    const uint32_t in_field = has_fields ? npuprof_expand_cell_word_(x, cell + 1, 1) : 0;
    const uint32_t cells = is_ring ? NPUPROF_FIELD_CELLS_(in_field) : npuprof_expand_cell_word_(x, cell, 2);
    if (!broken && (is_ring ? has_fields : !is_span) && cells != next - cell)
        npuprof_load_note_damage_(offset, "a damaged record");
    if (!x->elf->count) return;
    NPUPROF_EXPAND_EACH_FIELD_(x, f, cell) {
        const uint32_t key = npuprof_expand_cell_word_(x, f, 0);
        if (!key || npuprof_elf_text_at_(x->elf, npuprof_expand_target_address_(x, key), &length)) continue;
        npuprof_load_note_damage_(npuprof_expand_cell_offset_(x->g, f), "an argument whose key is no text");
    }
}

/* May a record with missing fields lack its name or its value? Those come before the arguments, so not behind
   one. */
static bool npuprof_expand_lacks_own_field_(const npuprof_expander_ *x, uint32_t cell,
                                            const npuprof_expand_item_ *r)
{
    uint32_t last = NPUPROF_FIELD_NAME_;
    NPUPROF_EXPAND_EACH_FIELD_(x, f, cell) last = npuprof_expand_field_type_(x, f);
    const bool has_own = !npuprof_kind_nests_(r->kind) || (npuprof_expand_cell_word_(x, cell, 0) & 2);
    return last >= NPUPROF_FIELD_NAME_ && has_own;
}

/* Whether the record at a cell is a note that a ring keeps: its place tells nothing of its time. */
static bool npuprof_expand_is_kept_note_(const npuprof_expander_ *x, uint32_t cell)
{
    const uint32_t ref = npuprof_expand_cell_word_(x, cell, 0), kind = ref >> 8 & 0xFF;
    const bool is_open = (npuprof_expand_cell_half_(x, cell, 1) & NPUPROF_CELL_OPEN_) != 0;
    return npuprof_expand_is_ring_(&x->g->c) && is_open && (ref & 2) && kind >= NPUPROF_CELL_KIND_THREAD_ &&
           kind != NPUPROF_CELL_KIND_PAUSE_;
}

/* The stamps, kind and context of a record. before: the start of the record before it, which the upper bits
   of this start follow from; those of the end follow from the start. */
static void npuprof_expand_read_cell_(const npuprof_expander_ *x, uint32_t cell, uint64_t before,
                                      npuprof_expand_item_ *r)
{
    const uint32_t low_half = npuprof_expand_cell_half_(x, cell, 0);
    const uint32_t high_half = npuprof_expand_cell_half_(x, cell, 1);
    const unsigned context_bits = x->g->c.context_bits, above = 64 - (48 - context_bits);
    const uint64_t start = (uint64_t)(low_half >> context_bits) << 32 | npuprof_expand_cell_word_(x, cell, 1);
    const uint64_t end = (uint64_t)high_half << 32 | npuprof_expand_cell_word_(x, cell, 2);
    const uint64_t distance = (start - before) << above;
    memset(r, 0, sizeof *r);
    r->cell = cell;
    r->context = low_half & ((1u << context_bits) - 1);
    r->kind = npuprof_expand_cell_word_(x, cell, 0) >> 8 & 0xFF;
    r->start = before + (uint64_t)((int64_t)distance >> above);
    r->open = (high_half & NPUPROF_CELL_OPEN_) != 0;
    if (npuprof_expand_is_ring_(&x->g->c))
        r->start = npuprof_expand_ring_start_(start, 64 - above, before, r->open || !x->g->line.is_stream);
    r->end = r->start + ((end - r->start) & (UINT64_MAX >> (64 - NPUPROF_CELL_STAMP_BITS_)));
    if (!npuprof_expand_is_kept_note_(x, cell)) return;
    if (!x->g->line.is_stream) npuprof_expand_ring_age_(x, cell, high_half, r);
    else if ((uint32_t)end & NPUPROF_CELL_AGAIN_)
        r->start = npuprof_expand_ring_again_(start, 64 - above, before);
}

/* The kind and names of a record that refers to a call site. */
static void npuprof_expand_read_site_(npuprof_expander_ *x, uint32_t ref, npuprof_expand_item_ *r)
{
    npuprof_expand_site_ site = { 0, 0, 0, 0, 0 };
    size_t length = 0;
    if (!npuprof_expand_site_of_(x, ref, &site)) {
        r->kind = NPUPROF_KIND_SPAN;
        r->name = npuprof_expand_target_text_(x, npuprof_expand_target_address_(x, ref & ~(uint32_t)3));
        return;
    }
    r->kind = site.kind;
    r->name = npuprof_expand_target_text_(x, site.name);
    r->file = site.file ? npuprof_expand_target_text_(x, site.file) : 0;
    r->line = site.line;
    if (site.category && npuprof_elf_text_at_(x->elf, site.category, &length) && length)
        r->category = npuprof_expand_target_text_(x, site.category);
}

/* What a field says that is no argument. */
static void npuprof_expand_read_field_(npuprof_expander_ *x, uint32_t f, npuprof_expand_item_ *r)
{
    const uint32_t type = npuprof_expand_field_type_(x, f), length = npuprof_expand_field_length_(x, f);
    const char *const text = npuprof_expand_field_text_(x, f);
    const bool is_string = type == NPUPROF_ARG_STR || type == NPUPROF_ARG_STR_CUT_;
    if (type == NPUPROF_FIELD_NAME_) r->name = npuprof_expand_text_(x, text, length);
    if (type == NPUPROF_FIELD_CATEGORY_) r->category = length ? npuprof_expand_text_(x, text, length) : 0;
    if (type == NPUPROF_FIELD_TRACK_) r->track = npuprof_expand_text_(x, text, length);
    /* Only "no device span" has one: on a host the recorder counts it. */
    const uint64_t why = type == NPUPROF_FIELD_RESULT_ ? npuprof_expand_field_value_(x, f) : 0;
    if (why == NPUPROF_ERR_NPU_CALLS) x->h->lost[NPUPROF_LOST_CALLS]++;
    if (why == NPUPROF_ERR_NPU_BUSY) x->h->lost[NPUPROF_LOST_BUSY]++;
    if (type >= NPUPROF_FIELD_VALUE_ && type <= NPUPROF_FIELD_THIRD_)
        r->values[type - NPUPROF_FIELD_VALUE_] = npuprof_expand_field_value_(x, f);
    /* The argument of a thread's name is that name; that of a metadata record is the value of the key,
       that of a NAME the name of the number. */
    if (is_string && r->kind == NPUPROF_CELL_KIND_THREAD_) r->name = npuprof_expand_text_(x, text, length);
    else if (is_string && (r->kind == NPUPROF_CELL_KIND_METADATA_ || r->kind == NPUPROF_CELL_KIND_NAME_))
        r->category = npuprof_expand_text_(x, text, length);
}

/* A device span whose ticks are the recorder's own, which lie before its record: as stamps of the trace, and
   their error as a host has it. */
static void npuprof_expand_place_by_host_(npuprof_expand_item_ *r)
{
    const uint64_t mask = UINT64_MAX >> (64 - NPUPROF_CELL_STAMP_BITS_), error = r->values[2] >> 8 & 0xFFFF;
    if (r->kind != NPUPROF_KIND_DEVICE || !(r->values[2] & NPUPROF_CELL_BY_HOST_)) return;
    for (int i = 0; i < 2; i++) r->values[i] = r->start - ((r->start - r->values[i]) & mask);
    r->values[2] &= ~(uint64_t)0xFFFF00;
    if (error) r->values[2] |= (uint64_t)npuprof_host_error_code_(error) << 8;
}

/* A name of a number: as VALUE the number, as SECOND whether it had another name before, as category the
   name, as older programs record it. */
static void npuprof_expand_read_name_(const npuprof_expander_ *x, uint32_t cell, npuprof_expand_item_ *r)
{
    if (r->kind != NPUPROF_CELL_KIND_NAME_ || !r->number) return;
    r->values[0] = r->number - 1;
    r->values[1] = (npuprof_expand_cell_word_(x, cell, 2) & NPUPROF_CELL_RENAMES_) != 0;
    r->category = r->name;
    r->number = 0;
}

static void npuprof_expand_record_(npuprof_expander_ *x, uint32_t cell, uint64_t before,
                                   npuprof_expand_item_ *r)
{
    const uint32_t ref = npuprof_expand_cell_word_(x, cell, 0);
    npuprof_expand_read_cell_(x, cell, before, r);
    if (ref & 2) r->number = ref >> 16;
    else npuprof_expand_read_site_(x, ref, r);
    NPUPROF_EXPAND_EACH_FIELD_(x, f, cell) npuprof_expand_read_field_(x, f, r);
    if (!r->name) r->name = npuprof_expand_text_(x, "", 0);
    npuprof_expand_read_name_(x, cell, r);
    npuprof_expand_place_by_host_(r);
    npuprof_expand_host_note_(x, r, 48 - x->g->c.context_bits);
    npuprof_expand_note_sleep_(x, r);
}

/* Bits of the start of the record at a cell. */
static uint64_t npuprof_expand_raw_start_(const npuprof_expander_ *x, uint32_t cell)
{
    const uint64_t high = npuprof_expand_cell_half_(x, cell, 0) >> x->g->c.context_bits;
    return high << 32 | npuprof_expand_cell_word_(x, cell, 1);
}

/* Whether the record at `span` can be the one that the RESULT at `result` names. In an image of a ring a span
   that was open for long may lie behind its results. Any other record there is newer than they are: it has
   replaced the span. */
static bool npuprof_expand_may_be_of_(const npuprof_expander_ *x, uint32_t span, uint32_t result)
{
    const uint32_t ref = npuprof_expand_cell_word_(x, span, 0), bits = 48 - x->g->c.context_bits;
    if (ref & 2 && (ref >> 8 & 0xFF) == NPUPROF_CELL_KIND_RESULT_) return false;
    if (span < result || !npuprof_expand_is_ring_(&x->g->c) || x->g->line.is_stream) return span < result;
    const uint64_t age = npuprof_expand_raw_start_(x, result) - npuprof_expand_raw_start_(x, span);
    const uint64_t all = ((uint64_t)1 << bits) - 1;
    return (age & all) && (age & all) <= all / 2;
}

/* Puts a RESULT in front of the list of its span. Why from the last to the first: so the lists are in the
   order in which the results came. */
static void npuprof_expand_chain_result_(npuprof_expander_ *x, const npuprof_expand_item_ *r)
{
    uint32_t span;
    if (r->kind != NPUPROF_CELL_KIND_RESULT_) return;
    const uint32_t number = npuprof_expand_named_number_(x, (uint32_t)r->values[0], r->cell);
    if (!npuprof_expand_find_cell_(x->g, number, &span)) return;
    if (!npuprof_expand_may_be_of_(x, span, r->cell)) return;
    x->results[r->cell] = x->results[span];
    x->results[span] = r->cell + 1;
}

/* Reads the record at a cell into *r, which will be in the list at `index`. False: it is none, or nothing of
   it can be shown. *next: the cell behind it. */
static bool npuprof_expand_read_record_(npuprof_expander_ *x, uint32_t at, uint64_t *before,
                                        npuprof_expand_item_ *r, uint32_t *next, uint32_t index)
{
    const bool is_ring = npuprof_expand_is_ring_(&x->g->c), is_stream = x->g->line.is_stream;
    bool broken = false;
    *next = npuprof_expand_cell_after_(x, at, &broken);
    if (npuprof_expand_is_empty_(x, at)) return false;
    const char *const fault = npuprof_expand_record_fault_(x, at);
    if (fault) {
        npuprof_load_note_damage_(npuprof_expand_cell_offset_(x->g, at), fault);
        return false;
    }
    npuprof_expand_record_(x, at, *before, r);
    npuprof_expand_check_fields_(x, at, *next, broken, r);
    /* Why not in an image of a ring: its header's clock is that of all records. */
    if (!is_ring || (is_stream && !r->open)) *before = r->start;
    if (r->kind == NPUPROF_CELL_KIND_CLOSE_) {
        x->no_begin += !npuprof_expand_ring_close_(x, r);
        return false;
    }
    if (broken && npuprof_expand_lacks_own_field_(x, at, r)) return false;
    return !is_stream || !r->open || npuprof_expand_ring_keep_(x, r, index);
}

/* Reads all records into the list. A gap stands in front of the first record behind it. */
static void npuprof_expand_read_records_(npuprof_expander_ *x)
{
    uint64_t before = x->h->first.ticks += npuprof_expand_all_slept_(x), last = before;
    uint32_t run = 0, missing = 0, context = 0;
    for (uint32_t at = 0, next; at < x->g->count; at = next) {
        npuprof_expand_item_ *r = &x->list[x->record_count];
        missing += npuprof_expand_begin_run_(x, at, &run, &before);
        const bool is_timed = !x->g->line.is_stream || !npuprof_expand_is_kept_note_(x, at);
        const uint32_t index = x->record_count + (missing && is_timed);
        if (!npuprof_expand_read_record_(x, at, &before, r, &next, index)) continue;
        if (missing && is_timed) {
            r[1] = r[0];
            npuprof_expand_gap_(x, r++, missing, last);
            missing = 0;
        }
        npuprof_expand_read_anchor_(r);
        x->record_count++;
        if (!is_timed) continue;
        last = r->start;
        context = r->context;
    }
    for (uint32_t i = x->record_count; i; i--) npuprof_expand_chain_result_(x, &x->list[i - 1]);
    missing += npuprof_expand_begin_run_(x, x->g->count, &run, &before) + x->g->missing_behind;
    if (!missing) return;
    npuprof_expand_item_ *const r = &x->list[x->record_count];
    memset(r, 0, sizeof *r);
    r->start = last;
    r->context = context;
    npuprof_expand_gap_(x, r, missing, last);
}
