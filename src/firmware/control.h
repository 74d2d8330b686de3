#pragma once   /* SPDX-License-Identifier: MIT */
#include "../public/macros.h"
#include "../numbers/time.h"
#include "../format/layouts.h"
#include "../format/compact.h"
#include "../os/none.h"
#include "record.h"
#include "event.h"

/* ---- Control */

/* Why a function: the user's expression sees no names of ours. */
#ifdef NPUPROF_BUILD_ID
static const uint8_t *npuprof_user_build_id_(void) { return (const uint8_t *)(NPUPROF_BUILD_ID); }
enum { NPUPROF_BUILD_KIND_ = NPUPROF_BUILD_GNU_ };
#else
enum { NPUPROF_BUILD_KIND_ = NPUPROF_BUILD_UNKNOWN_ };
#endif
static void npuprof_set_up_(void *memory, size_t bytes)
{
    static const struct { uint8_t magic[8]; uint32_t words[4]; uint8_t bytes[4]; } blank =
        { { 'N', 'P', 'U', 'P', 'R', 'O', 'F', '\n' }, { 0x01020304u, 1, NPUPROF_LAYOUT_COMPACT, sizeof(npuprof_compact_header_) },
          { NPUPROF_CLOCK_BITS_, NPUPROF_CONTEXT_BITS_, sizeof(void *), NPUPROF_BUILD_KIND_ } };
    npuprof_compact_header_ *c = (npuprof_compact_header_ *)memory;
#if !NPUPROF_ARENA_BYTES
    for (size_t i = 0; i < bytes / 4; i++) NPUPROF_STORE_((uint32_t *)memory + i, 0);
    npuprof_fw_arena_ = c;
#endif
    npuprof_fw_copy_bytes_((uint8_t *)c, &blank, sizeof blank);
    c->hz_low = (uint32_t)npuprof_user_hz_();
    if (npuprof_user_hz_() >> 32) c->hz_high = (uint32_t)(npuprof_user_hz_() >> 32);
    if (sizeof(void *) > 4) {
        c->address_low = (uint32_t)(uintptr_t)&blank;
        c->address_high = (uint32_t)((uint64_t)(uintptr_t)&blank >> 32);
    }
#ifdef NPUPROF_BUILD_ID
    npuprof_fw_copy_bytes_((uint8_t *)&c->build, npuprof_user_build_id_() + NPUPROF_BUILD_NOTE_HEAD_, sizeof c->build);
#endif
    const uint64_t now = npuprof_fw_stamp_(c);
    c->first_low = (uint32_t)now;
    c->first_high = (uint32_t)(now >> 32);
    NPUPROF_STORE_(&c->cells, (uint32_t)NPUPROF_FW_CELLS_IN_(bytes));
}
NPUPROF_API_ npuprof_result npuprof_init_(const npuprof_desc *desc, size_t desc_bytes, int version)
{
    if (desc_bytes != sizeof *desc || version != NPUPROF_VERSION) return NPUPROF_ERR_VERSION;
    if (npuprof_fw_arena_->cells) return NPUPROF_ERR_STARTED;
    if (desc && (desc->when_full != NPUPROF_KEEP_OLDEST || desc->arena_path || desc->output_path || desc->categories)) return NPUPROF_ERR_UNSUPPORTED;
    if (desc && desc->arena) {
        if (NPUPROF_ARENA_BYTES) return NPUPROF_ERR_UNSUPPORTED;
        if (((uintptr_t)desc->arena & 7) || desc->arena_bytes < NPUPROF_ARENA_LEAST_) return NPUPROF_ERR_ARENA_SIZE;
        npuprof_set_up_(desc->arena, desc->arena_bytes);
    }
    return npuprof_is_ready_() ? NPUPROF_OK : NPUPROF_ERR_ARENA_SIZE;
}

NPUPROF_API_ npuprof_result npuprof_start(int level)
{
    if (level < 1 || level > 9) return NPUPROF_ERR_ARGUMENT;
    if (!npuprof_is_ready_()) return NPUPROF_ERR_ARENA_SIZE;
    npuprof_fw_level_ = level;
    return npuprof_resume();
}

NPUPROF_API_ npuprof_result npuprof_stop(void)
{
    NPUPROF_STORE_(&npuprof_gate_, INT_MIN);
    npuprof_fw_level_ = 0;
    return NPUPROF_OK;
}

NPUPROF_API_ npuprof_result npuprof_pause(void)
{
    const npuprof_args none = { NULL, 0 };
    if (!NPUPROF_OPEN_(1)) return NPUPROF_OK;
    NPUPROF_STORE_(&npuprof_gate_, INT_MIN);
    npuprof_fw_pause_token_ = npuprof_begin_named_(NPUPROF_CELL_KIND_PAUSE_, NULL, "pause", none);
    return npuprof_fw_pause_token_ ? NPUPROF_OK : NPUPROF_ERR_TABLE_FULL;
}

NPUPROF_API_ npuprof_result npuprof_resume(void)
{
    npuprof_close_(npuprof_fw_pause_token_);
    npuprof_fw_pause_token_ = 0;
    if (npuprof_fw_level_) NPUPROF_STORE_(&npuprof_gate_, npuprof_fw_level_);
    return NPUPROF_OK;
}

NPUPROF_API_ npuprof_result npuprof_set_categories(const char *spec) { return spec && *spec ? NPUPROF_ERR_UNSUPPORTED : NPUPROF_OK; }
NPUPROF_API_ npuprof_result npuprof_flush(void) { return NPUPROF_OK; }
NPUPROF_API_ npuprof_result npuprof_dump(const char *path)
{
    (void)path;
    return NPUPROF_ERR_UNSUPPORTED;
}
NPUPROF_API_ const char *npuprof_result_string(npuprof_result result)
{
    /* Why one object: the linker then leaves it out when nobody asks. */
#define NPUPROF_TEXT_(name, text) #name ": " text "\0"
    static const char texts[] = NPUPROF_RESULTS(NPUPROF_TEXT_) "not a result of npuprof";
#undef NPUPROF_TEXT_
    const char *text = texts;
    for (int i = 0; i < (int)result && i < NPUPROF_RESULT_COUNT; i++) text += npuprof_fw_text_length_(text) + 1;
    return text;
}

/* ---- Reading */

/* A clock's rate. Why not always 64 bits: nobody has such a clock on a machine of less. */
#if UINTPTR_MAX > UINT32_MAX
typedef uint64_t npuprof_fw_rate_;
#else
typedef uint32_t npuprof_fw_rate_;
#endif
static npuprof_fw_rate_ npuprof_fw_rate_of_(const npuprof_compact_header_ *c) { return (npuprof_fw_rate_)((uint64_t)c->hz_high << 32 | c->hz_low); }
/* n / by with so many decimals, cut off, as a number without its point.
   Why by addition: 64-bit products and divisions are calls into the compiler's library. */
static NPUPROF_NOINLINE_ uint64_t npuprof_fw_divide_(uint64_t n, npuprof_fw_rate_ by, int decimals)
{
    uint64_t result = 0;
    npuprof_fw_rate_ rest = 0;
    /* Bit by bit the quotient, twice what it was and the next bit of n; then digit by digit, ten times what it was. */
    for (int step = -64; step < decimals; step++) {
        const uint64_t before = result;
        const npuprof_fw_rate_ add = rest;
        rest = (npuprof_fw_rate_)(n >> 63);
        n <<= 1;
        result = 0;
        for (int times = step < 0 ? 2 : 10; times; times--) {
            rest += add;
            result += before;
            if (rest < add || rest >= by) {
                rest -= by;
                result++;
            }
        }
    }
    return result;
}
/* Ticks as ns, rounded down. */
static uint64_t npuprof_fw_ticks_to_ns_(uint64_t ticks) { return npuprof_fw_divide_(ticks, npuprof_fw_rate_of_(npuprof_fw_arena_), 9); }
static uint64_t npuprof_fw_first_stamp_(const npuprof_compact_header_ *c) { return (uint64_t)c->first_high << 32 | c->first_low; }
#define NPUPROF_BITS_MASK_(bits) (UINT64_MAX >> (64 - (bits)))

NPUPROF_API_ int64_t npuprof_now_ns(void)
{
    if (!npuprof_is_ready_()) return 0;
    npuprof_compact_header_ *const c = npuprof_fw_arena_;
    return (int64_t)npuprof_fw_ticks_to_ns_((npuprof_fw_stamp_masked_(c) - npuprof_fw_first_stamp_(c)) & NPUPROF_BITS_MASK_(NPUPROF_CELL_STAMP_BITS_));
}

static uint32_t npuprof_fw_used_cells_(const npuprof_compact_header_ *c)
{
    const uint32_t used = NPUPROF_LOAD_(&c->used);
    return used < c->cells ? used : c->cells;
}
static const npuprof_cell_ *npuprof_fw_cells_end_(const npuprof_compact_header_ *c) { return npuprof_fw_cells_(c) + npuprof_fw_used_cells_(c); }
/* Where the text of a field ends. */
static const npuprof_cell_ *npuprof_fw_after_field_(const npuprof_cell_ *field) { return field + 1 + ((field->start >> 8 & 0x7FFFFF) + 7) / 16; }
/* The next field of a record, or, after the last, NULL and *end, where the next record may begin. */
static const npuprof_cell_ *npuprof_fw_next_field_(const npuprof_cell_ *at, bool head, const npuprof_cell_ **end)
{
    const bool more = head ? at->ref & 1 : at->start & NPUPROF_FIELD_MORE_;
    *end = head ? at + 1 : npuprof_fw_after_field_(at);
    return more ? *end : NULL;
}
/* A record's field of that type, or NULL; *end as above. */
static const npuprof_cell_ *npuprof_fw_find_field_(const npuprof_cell_ *head, uint32_t type, const npuprof_cell_ **end)
{
    const npuprof_cell_ *found = NULL;
    for (const npuprof_cell_ *f = npuprof_fw_next_field_(head, true, end); f; f = npuprof_fw_next_field_(f, false, end))
        if ((f->start & 0xFF) == type) found = f;
    return found;
}
/* Where the record behind this one begins. One in the making says how many cells it has. */
static const npuprof_cell_ *npuprof_fw_after_record_(const npuprof_cell_ *head)
{
    const npuprof_cell_ *end = head + (head->end ? head->end : 1);
    if (head->ref) (void)npuprof_fw_find_field_(head, 0, &end);
    return end;
}
static bool npuprof_fw_is_event_(const npuprof_cell_ *head)
{
    return head->ref && (!(head->ref & 2) || (head->ref >> 8) - 1 < NPUPROF_CELL_KIND_THREAD_ - 1);
}
/* Records that are open, or in the making, stay in their place, open ones without a name: their end will come. */
NPUPROF_API_ npuprof_result npuprof_clear(void)
{
    npuprof_compact_header_ *const c = npuprof_fw_arena_;
    npuprof_cell_ *const cells = npuprof_fw_cells_(c);
    const int gate = NPUPROF_LOAD_(&npuprof_gate_);
    NPUPROF_STORE_(&npuprof_gate_, INT_MIN);
    for (npuprof_cell_ *head = cells, *const end = cells + npuprof_fw_used_cells_(c); head < end;) {
        npuprof_cell_ *const next = cells + (npuprof_fw_after_record_(head) - cells);
        /* Why from the last to the first: who interrupts this finds his way over them. */
        for (npuprof_cell_ *cell = NPUPROF_LOAD_(&head->ref) ? next : head; cell > head;) {
            if (--cell > head) NPUPROF_STORE_(&cell->high.word, 0);
            NPUPROF_STORE_(&cell->ref, NPUPROF_CELL_CLEARED_);
        }
        head = next;
    }
    /* Given back one by one, from the last on, as long as nobody takes one meanwhile. */
    for (uint32_t was = NPUPROF_LOAD_(&c->used); was > c->cells && !NPUPROF_REPLACE_(&c->used, &was, c->cells);) { }
    for (uint32_t at = NPUPROF_LOAD_(&c->used), was = at; at && was == at; at--) {
        npuprof_cell_ *const cell = &cells[at - 1];
        if (NPUPROF_LOAD_(&cell->ref) != NPUPROF_CELL_CLEARED_ || NPUPROF_LOAD_(&cell->high.half[1]) & NPUPROF_CELL_OPEN_) break;
        NPUPROF_STORE_(&cell->ref, 0);
        NPUPROF_STORE_(&cell->start, 0);
        NPUPROF_STORE_(&cell->end, 0);
        NPUPROF_STORE_(&cell->high.word, 0);
        NPUPROF_MASKED_BEGIN_
        was = NPUPROF_LOAD_(&c->used);
        while (was == at && !NPUPROF_REPLACE_(&c->used, &was, at - 1)) { }
        NPUPROF_MASKED_END_
        if (was != at) NPUPROF_STORE_(&cell->ref, NPUPROF_CELL_CLEARED_);
        else was = at - 1;
    }
    c->lost = c->lost_notes = 0;
    NPUPROF_STORE_(&npuprof_gate_, gate);
    return NPUPROF_OK;
}

NPUPROF_API_ npuprof_result npuprof_get_stats(npuprof_stats *out)
{
    if (!out) return NPUPROF_ERR_ARGUMENT;
    const npuprof_compact_header_ *const c = npuprof_fw_arena_;
    const npuprof_cell_ *const end = npuprof_fw_cells_end_(c);
    for (size_t i = 0; i < sizeof *out; i++) NPUPROF_STORE_((uint8_t *)out + i, 0);
    for (const npuprof_cell_ *at = npuprof_fw_cells_(c); at < end; at = npuprof_fw_after_record_(at)) {
        if (!npuprof_fw_is_event_(at)) continue;
        const uint32_t context = at->high.half[0] & (((uint32_t)1 << NPUPROF_CONTEXT_BITS_) - 1);
        out->recorded++;
        if (context >= out->threads) out->threads = context + 1;
    }
    out->lost = out->lost_by_cause[NPUPROF_LOST_FULL] = c->lost;
    out->lost_by_cause[NPUPROF_LOST_NOTES] = c->lost_notes;
    out->bytes_used = (uint64_t)(end - npuprof_fw_cells_(c)) * sizeof(npuprof_cell_);
    out->bytes_total = sizeof *c + (uint64_t)c->cells * sizeof(npuprof_cell_);
    return NPUPROF_OK;
}
