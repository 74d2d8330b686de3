#pragma once   /* SPDX-License-Identifier: MIT */
#include "loaded.h"
#include "swap.h"
#include "header.h"

/* The blocks of layout CODED (src/format/arena.h, BLOCK and CODE): made into those of layout STREAM, of
   chunk_bytes each, which blocks.h reads.
   Two walks. The first finds the good blocks, so that memory for them can be had; the second writes them
   there. What is no good block counts as damage, one place for each run of such bytes.
   Behind the blocks lies for each of them where it was in the file, so that what is found in it later can be
   said to be there, and the largest number of its call sites, if that is all there is to check. */

typedef struct npuprof_load_coded_ {
    const uint8_t *bytes;          /* the image */
    size_t count;                  /* its bytes */
    size_t at;                     /* where the next block is expected */
    bool is_whole;                 /* all blocks are good: no need to look again */
    npuprof_stored_ head;          /* of the block at hand, in our byte order */
} npuprof_load_coded_;

static uint64_t npuprof_load_number_(const uint8_t *bytes, unsigned count)
{
    static const uint64_t masks[9] = {
        0, 0xFF, 0xFFFF, 0xFFFFFF, 0xFFFFFFFF, UINT64_C(0xFFFFFFFFFF), UINT64_C(0xFFFFFFFFFFFF),
        UINT64_C(0xFFFFFFFFFFFFFF), UINT64_MAX
    };
    uint64_t v;
    memcpy(&v, bytes, 8);
#if defined(__BYTE_ORDER__) && __BYTE_ORDER__ == __ORDER_BIG_ENDIAN__
    npuprof_load_swap64_(&v, 1);
#endif
    return v & masks[count];
}

/* One step of a block's sum: the integer at this offset. */
NPUPROF_HOT_ static inline uint64_t npuprof_load_sum_step_(uint64_t sum, const uint8_t *bytes, size_t at)
{
    uint64_t v;
    memcpy(&v, bytes + at, 8);
    if (npuprof_loaded_.swap) npuprof_load_swap64_(&v, 1);
    if (at == offsetof(npuprof_stored_, sum)) v = 0;
    sum = (sum ^ v) * NPUPROF_BLOCK_FACTOR_;
    return sum << 32 | sum >> 32;
}

/* The sum of the block at these bytes. */
static uint64_t npuprof_load_sum_(const uint8_t *bytes, size_t count)
{
    uint64_t sum = 0;
    for (size_t at = 0; at < count; at += 8) sum = npuprof_load_sum_step_(sum, bytes, at);
    return sum;
}

/* The sums of four blocks, one behind the other: block i is from at[i] to at[i + 1]. Why four: the steps of
   one sum wait for each other, those of several do not. */
NPUPROF_HOT_ NPUPROF_NOINLINE_ static void npuprof_load_four_sums_(const uint8_t *bytes, const size_t at[5],
                                                                   uint64_t sums[4])
{
    size_t least = at[1] - at[0];
    uint64_t a = 0, b = 0, c = 0, d = 0;
    for (int i = 1; i < 4; i++) least = npuprof_min_(least, at[i + 1] - at[i]);
    for (size_t n = 0; n < least; n += 8) {
        a = npuprof_load_sum_step_(a, bytes + at[0], n);
        b = npuprof_load_sum_step_(b, bytes + at[1], n);
        c = npuprof_load_sum_step_(c, bytes + at[2], n);
        d = npuprof_load_sum_step_(d, bytes + at[3], n);
    }
    sums[0] = a, sums[1] = b, sums[2] = c, sums[3] = d;
    for (int i = 0; i < 4; i++)
        for (size_t n = least; n < at[i + 1] - at[i]; n += 8)
            sums[i] = npuprof_load_sum_step_(sums[i], bytes + at[i], n);
}

/* Is there a good block at this offset? Its bytes; 0: no. Its head goes into c->head. */
static size_t npuprof_load_coded_at_(npuprof_load_coded_ *c, size_t at)
{
    npuprof_stored_ *const head = &c->head;
    if (c->count - at < sizeof *head) return 0;
    memcpy(head, c->bytes + at, sizeof *head);
    if (npuprof_loaded_.swap) {
        npuprof_load_swap32_(&head->mark, 1);
        head->bytes = npuprof_load_swap16_(head->bytes);
        head->first_unit = npuprof_load_swap16_(head->first_unit);
        npuprof_load_swap64_(&head->sum, 3);
        npuprof_load_swap32_(&head->owner, 1);
        head->state = npuprof_load_swap16_(head->state);
        head->moved_units = npuprof_load_swap16_(head->moved_units);
    }
    const size_t bytes = sizeof *head + (head->bytes + (size_t)7) / 8 * 8;
    if (head->mark != NPUPROF_BLOCK_MARK_ || head->bytes > NPUPROF_BLOCK_MAX_) return 0;
    if (bytes > c->count - at) return 0;
    return c->is_whole || npuprof_load_sum_(c->bytes + at, bytes) == head->sum ? bytes : 0;
}

/* Are the bytes from here on the beginning of a block, of which the end is missing? */
static bool npuprof_load_is_begun_(const npuprof_load_coded_ *c, size_t at)
{
    const size_t left = c->count - at;
    npuprof_stored_ head;
    uint32_t mark = NPUPROF_BLOCK_MARK_;
    if (npuprof_loaded_.swap) npuprof_load_swap32_(&mark, 1);
    if (memcmp(c->bytes + at, &mark, left < 4 ? left : 4) != 0) return false;
    if (left < sizeof head) return true;
    memcpy(&head, c->bytes + at, sizeof head);
    return left - sizeof head < (npuprof_loaded_.swap ? npuprof_load_swap16_(head.bytes) : head.bytes);
}

/* Goes to the next good block. Returns its offset, or c->count: there are no more. */
static size_t npuprof_load_next_coded_(npuprof_load_coded_ *c)
{
    uint32_t mark = NPUPROF_BLOCK_MARK_;
    uint8_t first;
    size_t at = c->at, bytes = npuprof_load_coded_at_(c, at);
    if (npuprof_loaded_.swap) npuprof_load_swap32_(&mark, 1);
    memcpy(&first, &mark, 1);
    while (!bytes && at < c->count) {
        const uint8_t *const next = (const uint8_t *)memchr(c->bytes + at + 1, first, c->count - at - 1);
        at = next ? (size_t)(next - c->bytes) : c->count;
        if (next) bytes = npuprof_load_coded_at_(c, at);
    }
    c->at = at + bytes;
    return at;
}

/* ---- Units */

/* What follows a byte that begins a plain unit, by that byte; not of the rare ones with gap 7 or length 7. */
typedef struct npuprof_load_form_ {
    uint64_t after, length;        /* all ones if the gap is one from `end`; mask of the length */
    uint32_t site, same_site, gap; /* mask of the call site; all ones if it is that before; mask of the gap */
    uint8_t gap_shift, length_at;  /* bits before the gap; offset of the length */
} npuprof_load_form_;

/* The forms, and the bytes of a unit of each; 0: the unit has none. Written and read by the thread that holds
   the scratch. Why the bytes by themselves: each unit waits for those of the one before. */
static npuprof_load_form_ npuprof_load_forms_[256];
static uint8_t npuprof_load_form_bytes_[256];

static void npuprof_load_make_forms_(void)
{
    for (unsigned i = 0; i < 256; i++) {
        npuprof_load_form_ *const f = &npuprof_load_forms_[i];
        const unsigned gap = i & 7, length = i >> 3 & 7, sites = i >> 6, gaps = gap > 3 ? gap - 3 : gap;
        if (!gap || gap == 7 || length == 7) continue;
        f->after = gap > 3 ? UINT64_MAX : 0;
        f->length = ((uint64_t)1 << length * 8) - 1;
        f->site = (((uint32_t)1 << sites * 8) - 1) & NPUPROF_ID_MASK_;
        f->same_site = sites ? 0 : UINT32_MAX;
        f->gap = ((uint32_t)1 << gaps * 8) - 1;
        f->gap_shift = (uint8_t)(8 + sites * 8);
        f->length_at = (uint8_t)(1 + sites + gaps);
        npuprof_load_form_bytes_[i] = (uint8_t)(f->length_at + length);
    }
}

/* What the code goes on from, and what was found. */
typedef struct npuprof_load_decoder_ {
    uint64_t base, start;          /* start: the ticks from base to `start` of the code, modulo 2^44 */
    uint64_t payload[NPUPROF_CODE_CONTROLS_], w1[NPUPROF_CODE_CONTROLS_ + 1];
    uint64_t after;                /* from `start` to `end`. Why not beside start: gcc would keep both in one
                                      vector, which costs a third of the time */
    const npuprof_unit_ *moved_end;   /* up to here lie the second units of spans that were moved */
    uint32_t site;
    uint32_t most;                 /* see npuprof_load_block_ */
} npuprof_load_decoder_;

/* Notes the call site of a record of one unit, or that there may be none. */
static void npuprof_load_decoder_note_site_(npuprof_load_decoder_ *d, uint64_t site)
{
    const uint32_t number = site - 1 < NPUPROF_CONTROL_ ? (uint32_t)site - 1 : UINT32_MAX;
    if (number > d->most) d->most = number;
}

/* Reads a plain unit with gap 7 or length 7. Returns where the next one begins. */
static const uint8_t *npuprof_load_decoder_take_rare_(npuprof_load_decoder_ *d, const uint8_t *p,
                                                      npuprof_unit_ *u)
{
    const unsigned gap = *p & 7u, length = *p >> 3 & 7u, sites = *p >> 6;
    const unsigned gaps = gap == 7 ? 6 : gap > 3 ? gap - 3 : gap;
    const uint64_t from = gap > 3 && gap < 7 ? d->start + d->after : d->start, end = d->start + d->after;
    if (sites) d->site = (uint32_t)npuprof_load_number_(p + 1, sites) & NPUPROF_ID_MASK_;
    p += 1 + sites;
    d->start = (from + npuprof_load_number_(p, gaps)) & NPUPROF_CODE_START_MASK_;
    p += gaps;
    d->after = length == 7 ? end - d->start : npuprof_load_number_(p, length);
    u->w0 = (d->base + d->start) << NPUPROF_ID_BITS_ | d->site;
    u->w1 = length == 7 ? NPUPROF_END_OPEN_ : d->base + d->start + d->after;
    npuprof_load_decoder_note_site_(d, d->site);
    return p + (length == 7 ? 0 : length);
}

/* The second word of a unit, which is coded against one before. */
NPUPROF_HOT_ static inline uint64_t npuprof_load_decoder_word_(uint64_t *before, unsigned kind,
                                                               uint64_t second)
{
    const uint64_t value = second >> 1 ^ (0 - (second & 1));
    *before = kind % 2 ? *before + value : value;
    return *before;
}

/* Does a unit with this control id make its record one that needs a look? Not an argument of one unit behind
   a record, and not the second unit of a span that was moved. */
NPUPROF_HOT_ static inline bool npuprof_load_decoder_is_checked_(const npuprof_load_decoder_ *d,
                                                                 unsigned control, const npuprof_unit_ *u)
{
    const bool is_argument = control == NPUPROF_CONTROL_ARG_ - NPUPROF_CONTROL_;
    if (u > d->moved_end) return !is_argument || d->payload[control] >> 32;
    return u == d->moved_end || (d->moved_end - u) % 2 == 0;
}

/* Reads a unit with a control id, such as an argument. Returns where the next one begins; NULL: that is no
   code. */
NPUPROF_HOT_ static inline const uint8_t *npuprof_load_decoder_take_control_(npuprof_load_decoder_ *d,
                                                                             const uint8_t *p,
                                                                             npuprof_unit_ *u)
{
    const unsigned kind = *p >> 3, control = kind / 2, a = p[1] & 7u, b = p[1] >> 3;
    if (NPUPROF_UNLIKELY_(a > 6 || b > 8)) return NULL;
    const uint64_t first = npuprof_load_number_(p + 2, a), second = npuprof_load_number_(p + 2 + a, b);
    d->payload[control] = (d->payload[control] ^ first) & NPUPROF_CODE_START_MASK_;
    u->w0 = d->payload[control] << NPUPROF_ID_BITS_ | (NPUPROF_CONTROL_ + control);
    u->w1 = npuprof_load_decoder_word_(&d->w1[control], kind, second);
    if (kind < 2) npuprof_load_decoder_note_site_(d, d->payload[0]);
    else if (npuprof_load_decoder_is_checked_(d, control, u)) d->most = UINT32_MAX;
    return p + 2 + a + b;
}

/* Reads one unit that is none of the forms and has no control id. Returns the same. */
NPUPROF_NOINLINE_ static const uint8_t *npuprof_load_decoder_take_other_(npuprof_load_decoder_ *d,
                                                                         const uint8_t *p, npuprof_unit_ *u)
{
    const unsigned kind = *p >> 3;
    if (*p & 7) return npuprof_load_decoder_take_rare_(d, p, u);
    if (kind == NPUPROF_CODE_RAW_) {
        d->most = UINT32_MAX;
        u->w0 = npuprof_load_number_(p + 1, 8);
        u->w1 = npuprof_load_number_(p + 9, 8);
        return p + 17;
    }
    const unsigned a = p[1] & 7u, b = p[1] >> 3 & 15u;
    const bool has_site = p[1] >> 7, is_moved = kind == NPUPROF_CODE_MOVED_;
    if (a > 6 || b > 8) return NULL;
    p += 2;
    if (has_site) {
        d->site = (uint32_t)npuprof_load_number_(p, 3) & NPUPROF_ID_MASK_;
        p += 3;
    }
    const uint64_t end = d->start + d->after;
    if (!is_moved) d->start = (d->start + npuprof_load_number_(p, a)) & NPUPROF_CODE_START_MASK_;
    d->after = end - d->start;
    u->w0 = (is_moved ? 0 : d->base + d->start) << NPUPROF_ID_BITS_ | d->site;
    u->w1 = npuprof_load_decoder_word_(&d->w1[NPUPROF_CODE_CONTROLS_], kind, npuprof_load_number_(p + a, b));
    npuprof_load_decoder_note_site_(d, d->site);
    return p + a + b;
}

/* Decodes from p to end, behind which 32 bytes may be read, into at most `room` units. How many; UINT32_MAX:
   that is no code. */
NPUPROF_HOT_ NPUPROF_NOINLINE_ static uint32_t
npuprof_load_decoder_take_units_(npuprof_load_decoder_ *d, const uint8_t *p, const uint8_t *end,
                                 npuprof_unit_ *units, uint32_t room)
{
    const uint64_t base = d->base;
    uint64_t start = d->start, after = d->after;
    uint32_t site = d->site, most = 0;
    unsigned first = *p;
    npuprof_unit_ *u = units;
    for (npuprof_unit_ *const last = units + room; p < end && u < last; u++) {
        const npuprof_load_form_ *const f = &npuprof_load_forms_[first];
        const unsigned bytes = npuprof_load_form_bytes_[first];
        if (!bytes && !(first & 7) && first >> 3 < NPUPROF_CODE_EVENT_) {
            p = npuprof_load_decoder_take_control_(d, p, u);
            if (!p) break;
            first = *p;
            continue;
        }
        if (NPUPROF_UNLIKELY_(!bytes)) {
            d->start = start, d->after = after, d->site = site;
            p = npuprof_load_decoder_take_other_(d, p, u);
            if (!p) break;
            start = d->start, after = d->after, site = d->site;
            first = *p;
            continue;
        }
        const uint64_t word = npuprof_load_number_(p, 8);
        const uint64_t length = npuprof_load_number_(p + f->length_at, 8) & f->length;
        site = (site & f->same_site) | ((uint32_t)(word >> 8) & f->site);
        start = (start + (after & f->after) + (word >> f->gap_shift & f->gap)) & NPUPROF_CODE_START_MASK_;
        after = length;
        u->w0 = (base + start) << NPUPROF_ID_BITS_ | site;
        u->w1 = base + start + length;
        most = site - 1 > most ? site - 1 : most;
        p += bytes;
        /* Why not always loaded: the word is there already. */
        first = NPUPROF_LIKELY_(bytes < 8) ? (unsigned)(word >> bytes * 8) & 0xFFu : *p;
    }
    if (most > d->most) d->most = most;
    return p == end ? (uint32_t)(u - units) : UINT32_MAX;
}

/* Decodes the block at hand, which lies at `at`, behind the first `units` of a chunk. Returns how many units
   the chunk has then; UINT32_MAX: that is no code. *most: as in the decoder. */
static uint32_t npuprof_load_decode_(const npuprof_load_coded_ *c, size_t at, npuprof_chunk_ *chunk,
                                     uint32_t units, uint32_t *most)
{
    uint8_t copy[UINT16_MAX + 33];
    const uint8_t *code = c->bytes + at + sizeof c->head;
    const uint32_t room = (npuprof_loaded_.header.chunk_bytes - (uint32_t)sizeof *chunk) / 16 - units;
    npuprof_unit_ *const to = (npuprof_unit_ *)(void *)(chunk + 1) + units;
    npuprof_load_decoder_ d;
    memset(&d, 0, sizeof d);
    d.base = c->head.base;
    d.most = *most;
    d.moved_end = to - units + npuprof_min_(c->head.moved_units, units + room);
    if (c->count - at < sizeof c->head + c->head.bytes + 32) {
        memcpy(copy, code, c->head.bytes);
        memset(copy + c->head.bytes, 0, 32);
        code = copy;
    }
    const uint32_t more = npuprof_load_decoder_take_units_(&d, code, code + c->head.bytes, to, room);
    *most = d.most;
    if (more == UINT32_MAX) memset(to, 0, (size_t)room * sizeof *to);
    else if (npuprof_loaded_.swap) npuprof_load_swap64_(to, (size_t)more * 2);
    return more == UINT32_MAX ? more : units + more;
}

/* ---- Blocks */

/* Where the blocks that are made go. */
typedef struct npuprof_load_made_ {
    uint8_t *bytes;
    npuprof_load_block_ *blocks;   /* what else is known of each */
    uint64_t count;
    uint32_t units;                /* of the last one; UINT32_MAX: no block may go on with it */
} npuprof_load_made_;

static npuprof_chunk_ *npuprof_load_made_at_(const npuprof_load_made_ *m, uint64_t i)
{
    return (npuprof_chunk_ *)(void *)(m->bytes + i * npuprof_loaded_.header.chunk_bytes);
}

/* Does the block begin a chunk or hold a piece? Else it goes on with a chunk. */
static bool npuprof_load_begins_chunk_(const npuprof_stored_ *head)
{
    return !npuprof_load_has_records_(head->state) || !head->first_unit;
}

/* The block at hand is one that goes on with a chunk. */
static void npuprof_load_make_more_(npuprof_load_made_ *m, const npuprof_load_coded_ *c, size_t at)
{
    npuprof_chunk_ *const chunk = m->count ? npuprof_load_made_at_(m, m->count - 1) : NULL;
    npuprof_chunk_ head;
    memset(&head, 0, sizeof head);
    if (chunk) head = *chunk;
    if (npuprof_loaded_.swap) npuprof_load_swap_chunk_head_(&head);
    const bool follows = m->units == c->head.first_unit && head.owner == c->head.owner &&
                         head.first_position == c->head.first_position && head.base == c->head.base;
    if (follows) m->units = npuprof_load_decode_(c, at, chunk, m->units, &m->blocks[m->count - 1].most);
    if (!follows || m->units == UINT32_MAX) npuprof_load_note_damage_(at, "a damaged block");
}

/* Makes of the block at hand, which lies at `at`, one of layout STREAM. */
static void npuprof_load_make_block_(npuprof_load_made_ *m, const npuprof_load_coded_ *c, size_t at)
{
    const npuprof_stored_ *const head = &c->head;
    const uint32_t room = npuprof_loaded_.header.chunk_bytes - (uint32_t)sizeof(npuprof_chunk_);
    if (!npuprof_load_begins_chunk_(head)) {
        npuprof_load_make_more_(m, c, at);
        return;
    }
    npuprof_chunk_ *const chunk = npuprof_load_made_at_(m, m->count);
    npuprof_load_block_ *const block = &m->blocks[m->count++];
    block->offset = at;
    block->most = head->moved_units % 2 || head->moved_units > room / 16 ? UINT32_MAX : 0;
    m->units = UINT32_MAX;
    bool good = true;
    if (npuprof_load_has_records_(head->state)) {
        m->units = npuprof_load_decode_(c, at, chunk, 0, &block->most);
        good = m->units != UINT32_MAX;
    } else if (head->bytes <= room) {
        memcpy(chunk + 1, c->bytes + at + sizeof *head, head->bytes);
    }
    if (head->state > NPUPROF_CHUNK_SLOTS && head->state <= NPUPROF_BLOCK_SLOTS_PIECE)
        good = head->bytes <= room && head->bytes == head->first_position;
    if (!good) npuprof_load_note_damage_(at, "a damaged block");
    chunk->base = head->base;
    chunk->first_position = head->first_position;
    chunk->owner = head->owner;
    chunk->next = NPUPROF_BLOCK_MARK_;
    chunk->state = good || m->units != UINT32_MAX ? head->state : (uint16_t)NPUPROF_CHUNK_FREE;
    chunk->moved_units = head->moved_units;
    if (npuprof_loaded_.swap) npuprof_load_swap_chunk_head_(chunk);
}

/* Passes over good blocks, four at a time, as long as there are four. Returns how many of them are to be
   made. */
static uint64_t npuprof_load_pass_four_(npuprof_load_coded_ *c)
{
    uint64_t said[4], sums[4], blocks = 0;
    size_t at[5], bytes = 1;
    for (;; c->at = at[4]) {
        uint64_t begins = 0;
        at[0] = c->at;
        c->is_whole = true;                /* their sums are looked at together */
        for (int i = 0; i < 4 && bytes; i++) {
            bytes = npuprof_load_coded_at_(c, at[i]);
            at[i + 1] = at[i] + bytes;
            said[i] = c->head.sum;
            begins += npuprof_load_begins_chunk_(&c->head);
        }
        c->is_whole = false;
        if (!bytes) return blocks;
        npuprof_load_four_sums_(c->bytes, at, sums);
        if (memcmp(said, sums, sizeof sums) != 0) return blocks;
        blocks += begins;
    }
}

/* The first walk: counts the blocks to make, and notes what is no good block. */
static uint64_t npuprof_load_count_coded_(npuprof_load_coded_ *c)
{
    uint64_t blocks = 0;
    bool is_whole = true;
    while (c->at < c->count) {
        blocks += npuprof_load_pass_four_(c);
        const size_t expected = c->at, at = npuprof_load_next_coded_(c);
        const bool is_begun = at == c->count && npuprof_load_is_begun_(c, expected);
        if (at != expected && !is_begun) npuprof_load_note_damage_(expected, "a damaged block");
        if (at < c->count) blocks += npuprof_load_begins_chunk_(&c->head);
        is_whole = is_whole && at == expected;
    }
    c->is_whole = is_whole;
    return blocks;
}

/* Makes an image of layout STREAM, in memory of our own, of one of layout CODED whose header was read.
   In: the image and its bytes; out: those of what was made. */
static npuprof_result npuprof_load_decode_stream_(uint8_t **bytes, size_t *count)
{
    npuprof_header_ *const h = &npuprof_loaded_.header;
    npuprof_load_coded_ c;
    npuprof_load_made_ m;
    memset(&c, 0, sizeof c);
    memset(&m, 0, sizeof m);
    c.bytes = *bytes;
    c.count = *count;
    c.at = h->header_bytes;
    const uint64_t blocks = npuprof_load_count_coded_(&c);
    const uint64_t end = h->header_bytes + blocks * h->chunk_bytes, total = end + blocks * sizeof *m.blocks;
    uint8_t *const image = total > SIZE_MAX / 2 ? NULL : (uint8_t *)npuprof_load_memory_((size_t)total);
    if (!image) return NPUPROF_ERR_NO_SPACE;
    npuprof_load_make_forms_();
    memcpy(image, *bytes, h->header_bytes);
    m.bytes = image + h->header_bytes;
    m.blocks = (npuprof_load_block_ *)(void *)(image + end);
    for (c.at = h->header_bytes; c.at < c.count;) {
        const size_t at = npuprof_load_next_coded_(&c);
        if (at < c.count) npuprof_load_make_block_(&m, &c, at);
    }
    npuprof_loaded_.coded.blocks = m.blocks;
    npuprof_loaded_.coded.count = blocks;
    npuprof_loaded_.coded.end = c.count;
    npuprof_load_free_(npuprof_loaded_.file, npuprof_loaded_.file_bytes);
    npuprof_loaded_.file = image;
    npuprof_loaded_.file_bytes = (size_t)total;
    h->layout = NPUPROF_LAYOUT_STREAM;
    *bytes = image;
    *count = (size_t)end;
    return NPUPROF_OK;
}
