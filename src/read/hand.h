#pragma once   /* SPDX-License-Identifier: MIT */
#include "../public/read.h"
#include "../numbers/time.h"
#include "../os/common.h"
#include "../arena/anchors.h"
#include "../arena/exchange.h"
#include "../record/device.h"
#include "../control/lock.h"
#include "image.h"
#include "args.h"
#include "rate.h"
#include "time.h"
#include "since.h"

/* npuprof_read() and its siblings: what since.h has found goes to the program's function, as structs of the
   public interface. Times are made here, behind the lock: names and clock anchors are only ever added.

   Data: those of since.h. npuprof_cursor.busy_ is not 0 while a thread reads with the cursor. */

typedef bool (*npuprof_read_fn_)(void *user, const npuprof_read_span *span);

/* ---- One span */

/* How far from npuprof_now_ns() a time may be that was made of host ticks in [from, to]. error: how far the
   ticks themselves may be off. The rate is as exact as its two anchors were read, and less so outside. */
static uint64_t npuprof_read_error_ns_(const npuprof_image_ *im, uint64_t from, uint64_t to, uint64_t error)
{
    const npuprof_host_anchor_ *const first = &im->h->first, *const last = &im->closing;
    const uint64_t early = (first->ticks - from) >> 63 ? 0 : first->ticks - from;
    const uint64_t late = (to - last->ticks) >> 63 ? 0 : to - last->ticks;
    const uint64_t both = first->error_ticks + last->error_ticks;
    if (im->doubt == NPUPROF_DOUBT_STANDS_) return UINT64_MAX;
    if (im->h->clock_hz) return error ? npuprof_image_error_ns_(im, error) : 0;
    error = npuprof_saturating_add_(error, npuprof_max_(first->error_ticks, last->error_ticks));
    error = npuprof_saturating_add_(
        error, npuprof_scale_(npuprof_max_(early, late), both, npuprof_max_(last->ticks - first->ticks, 1)));
    return npuprof_image_error_ns_(im, error) + im->doubt_ns;
}

/* Device ticks as ns, and the error of both. */
static void npuprof_read_place_(npuprof_read_ *r, const npuprof_event_ *ev, npuprof_read_span *span)
{
    const npuprof_image_ *const im = &r->image;
    const bool is_point = (ev->flags & NPUPROF_STAMP_INSTANT) != 0;
    const uint64_t last = is_point ? ev->start : ev->end;
    npuprof_image_times_ times;
    const bool by_host = (ev->flags & NPUPROF_STAMP_HOST) != 0;
    span->flags |= by_host ? NPUPROF_READ_HOST_STAMPS : NPUPROF_READ_HAS_TICKS;
    if (ev->flags & NPUPROF_STAMP_SAMPLED) span->flags |= NPUPROF_READ_SAMPLED;
    if (is_point) span->flags |= NPUPROF_READ_POINT;
    if ((ev->flags & NPUPROF_STAMP_VALUE) == NPUPROF_STAMP_VALUE) span->value.u = ev->end;
    if (!by_host) {
        span->start_ticks = ev->start;
        span->end_ticks = last;
        span->epoch = ev->epoch;
    }
    span->error_ns = UINT64_MAX;
    if (!npuprof_image_times_of_(im, &r->caches, ev, &times)) {
        span->flags |= NPUPROF_READ_NO_TIME;
        span->start_ns = span->end_ns = 0;
        return;
    }
    span->start_ns = im->h->first.unix_ns + npuprof_image_ns_(im, times.start);
    span->end_ns = im->h->first.unix_ns + npuprof_image_ns_(im, times.end);
    if (!by_host || ev->epoch)
        span->error_ns = npuprof_read_error_ns_(im, times.start, times.end, times.error);
}

/* What depends on the kind: times, value, track. */
static void npuprof_read_fill_kind_(npuprof_read_ *r, const npuprof_read_item_ *item, npuprof_read_span *span)
{
    const npuprof_image_ *const im = &r->image;
    const npuprof_event_ *const ev = &item->ev;
    const npuprof_slot_head_ *const slot = &npuprof_slot_at_(item->slot)->head;
    const npuprof_device_entry_ *device = NULL;
    size_t length;
    uint32_t track = NPUPROF_LOAD_(&slot->name);
    span->start_ns = im->h->first.unix_ns + npuprof_image_ns_(im, ev->start);
    span->end_ns = im->h->first.unix_ns + npuprof_image_ns_(im, ev->end);
    span->error_ns = npuprof_read_error_ns_(im, ev->start, ev->end, 0);
    if (ev->kind == NPUPROF_KIND_DEVICE) {
        device = npuprof_image_device_(im, ev->device);
        track = device ? device->name : 0;
        span->device = ev->device;
        span->engine = ev->pe;
        if (ev->has_link) span->parent = npuprof_image_span_id_(im, ev->link.slot, ev->link.position);
        if (ev->has_link && ev->link.warm_up) span->flags |= NPUPROF_READ_WARM_UP;
        npuprof_read_place_(r, ev, span);
    } else if (ev->kind == NPUPROF_KIND_FINISHED) {
        track = ev->track;
        span->start_ns = (int64_t)ev->value;
        span->end_ns = (int64_t)ev->second;
        span->error_ns = 0;
    } else if (!npuprof_kind_nests_(ev->kind)) {
        span->flags |= NPUPROF_READ_POINT;
        span->value.u = ev->value;
        span->allocated_bytes = ev->kind == NPUPROF_KIND_MEMORY ? ev->second : 0;
    }
    if (span->end_ns < span->start_ns) span->end_ns = span->start_ns;
    span->track = npuprof_image_text_(im, track, &length);
}

/* Is what it knows of this trace? Not in the child of a fork. */
static bool npuprof_read_is_of_trace_(const npuprof_read_ *r)
{
    const npuprof_header_ *const h = npuprof_arena_.header;
    return r->header == h && r->seed == h->seed_low && r->pid == h->pid;
}

/* Hands one span over. False: the program has had enough, or is the child of a fork in there. */
static bool npuprof_read_hand_(npuprof_read_ *r, const npuprof_read_item_ *item, npuprof_read_fn_ fn,
                               void *user)
{
    const npuprof_image_ *const im = &r->image;
    const npuprof_event_ *const ev = &item->ev;
    const npuprof_arg *const args = (const npuprof_arg *)(const void *)(item + 1);
    const npuprof_slot_head_ *const slot = &npuprof_slot_at_(item->slot)->head;
    npuprof_read_span span;
    size_t length;
    memset(&span, 0, sizeof span);
    span.struct_size = sizeof span;
    span.kind = (uint16_t)ev->kind;
    span.flags = (uint16_t)((ev->cut ? NPUPROF_READ_CUT : 0) | (item->warm_up ? NPUPROF_READ_WARM_UP : 0) |
                            (item->args_lost ? NPUPROF_READ_ARGS_LOST : 0));
    span.id = npuprof_image_span_id_(im, ev->tid, ev->position);
    span.thread = ev->tid;
    const uint32_t native_id = NPUPROF_LOAD_ACQUIRE_(&slot->os_tid);
    const bool is_its = NPUPROF_LOAD_(&slot->owners) == 1 && !slot->context;      /* see slots.h */
    span.native_id = is_its ? native_id : 0;
    span.name = npuprof_image_text_(im, ev->name, &length);
    span.category = npuprof_image_text_(im, ev->category, &length);
    span.args = args;
    span.arg_count = item->arg_count;
    if (item->parent != UINT64_MAX && ev->kind != NPUPROF_KIND_FINISHED)
        span.parent = npuprof_image_span_id_(im, ev->tid, item->parent);
    if (ev->kind == NPUPROF_KIND_DEVICE) {
        span.parent = 0;
        for (size_t i = 0; i < span.arg_count; i++)
            if (args[i].type <= NPUPROF_ARG_UINT && strcmp(args[i].key, "job") == 0)
                span.job = args[i].value.u;
    }
    npuprof_read_fill_kind_(r, item, &span);
    return fn(user, &span) && npuprof_record_is_ready_() && npuprof_read_is_of_trace_(r);
}

/* Hands the batch over. *spans: how many. False: the program has had enough. */
static bool npuprof_read_hand_batch_(npuprof_read_ *r, npuprof_read_fn_ fn, void *user, uint64_t *spans)
{
    while (r->at < r->used) {
        const npuprof_read_item_ *const item = (const npuprof_read_item_ *)(const void *)(r->batch + r->at);
        r->at += item->bytes;
        if (!fn) continue;
        ++*spans;
        if (!npuprof_read_hand_(r, item, fn, user)) return false;
    }
    return true;
}

/* ---- The cursor */

/* Its memory; NULL: the system has none. */
static npuprof_read_ *npuprof_read_memory_(npuprof_cursor *cursor)
{
    const npuprof_header_ *const h = npuprof_arena_.header;
    npuprof_read_ *r = (npuprof_read_ *)cursor->memory_;
    if (r) return r;
    const size_t chunks = (size_t)h->chunk_count * sizeof *r->chunks;
    const size_t batch = NPUPROF_READ_RECORDS_ * sizeof(npuprof_read_item_) + NPUPROF_READ_ARGS_BYTES_;
    const size_t bytes = sizeof *r + chunks + batch;
    r = (npuprof_read_ *)npuprof_os_memory_(bytes);
    if (!r) return NULL;
    r->bytes = bytes;
    r->batch_bytes = batch;
    r->chunks = (npuprof_read_chunk_ *)(void *)(r + 1);
    r->batch = (uint8_t *)r->chunks + chunks;
    NPUPROF_ADD_(&npuprof_arena_.cursors, 1);
    r->slots = npuprof_list_of_(sizeof(npuprof_read_slot_));
    r->open = npuprof_list_of_(sizeof(npuprof_read_open_));
    cursor->memory_ = r;
    return r;
}

static void npuprof_read_give_back_(npuprof_cursor *cursor)
{
    npuprof_read_ *const r = (npuprof_read_ *)cursor->memory_;
    if (!r) return;
    NPUPROF_ADD_(&npuprof_arena_.cursors, UINT32_MAX);
    npuprof_list_free_(&r->slots);
    npuprof_list_free_(&r->open);
    npuprof_os_unmap_(r, r->bytes);
    cursor->memory_ = NULL;
}

/* Opens the arena, finds the slots that are new, and how far each is to be read. Under the lock.
   False: the system has no memory. */
static bool npuprof_read_begin_(npuprof_read_ *r)
{
    npuprof_image_ *const im = &r->image;
    const npuprof_header_ *const h = npuprof_arena_.header;
    npuprof_image_init_live_(im);
    im->clear_ticks = NPUPROF_LOAD_(&h->clear_ticks);
    im->last_ticks = im->open_until = UINT64_MAX;
    if (!r->header) r->gone = npuprof_arena_.forgotten;        /* before it began */
    r->header = h;
    r->seed = h->seed_low;
    r->pid = h->pid;
    for (uint32_t at = im->slot_first; at && at != r->newest; at = npuprof_slot_at_(at)->head.next_slot) {
        npuprof_read_slot_ slot;
        memset(&slot, 0, sizeof slot);
        slot.at = at;
        if (!npuprof_list_add_(&r->slots, &slot)) return false;
    }
    if (r->cleared != im->clear_ticks) npuprof_read_clear_(r);
    r->cleared = im->clear_ticks;
    npuprof_read_set_ends_(r);
    r->newest = im->slot_first;
    r->todo = (uint32_t)r->slots.count;
    if (r->turn >= r->todo) r->turn = 0;
    r->error = 0;
    return true;
}

/* Fills the batch. Under the lock. */
static void npuprof_read_fill_(npuprof_read_ *r)
{
    r->image.chunk_total = NPUPROF_LOAD_ACQUIRE_(&r->image.h->chunk_next);
    r->left = NPUPROF_READ_RECORDS_;
    r->at = r->used = 0;
    for (; r->todo && !r->error; r->todo--) {
        if (!npuprof_read_slot_news_(r, npuprof_read_slot_at_(r, r->turn))) return;
        r->turn = r->turn + 1 < r->slots.count ? r->turn + 1 : 0;
    }
}

/* Reads, with the cursor's memory. */
static npuprof_result npuprof_read_all_(npuprof_read_ *r, npuprof_read_fn_ fn, void *user,
                                        npuprof_read_result *result)
{
    if (!npuprof_reader_lock_or_(true, NPUPROF_FROZEN_BRIEFLY_)) return npuprof_reader_result_();
    const bool opened = npuprof_read_begin_(r);
    npuprof_reader_unlock_();
    if (!opened) return NPUPROF_ERR_MEMORY;
    memset(&r->caches, 0, sizeof r->caches);
    npuprof_arena_read_anchor_(&r->image.closing);
    npuprof_rate_find_(&r->image);
    while (npuprof_read_hand_batch_(r, fn, user, &result->spans) && r->todo && !r->error) {
        if (!npuprof_reader_lock_or_(true, NPUPROF_FROZEN_BRIEFLY_)) return npuprof_reader_result_();
        npuprof_read_fill_(r);
        npuprof_reader_unlock_();
    }
    if (!npuprof_read_is_of_trace_(r)) return NPUPROF_OK;
    if (!npuprof_reader_lock_or_(true, NPUPROF_FROZEN_BRIEFLY_)) return npuprof_reader_result_();
    const uint64_t lost = npuprof_read_count_lost_(r);
    npuprof_reader_unlock_();
    result->lost = npuprof_saturating_sub_(lost, r->lost);
    r->lost = npuprof_max_(lost, r->lost);
    result->open = r->open_count;
    return npuprof_os_result_(r->error);
}

/* Makes the cursor busy. False: it is. In the child of a fork, what the parent was doing with it is void.
   Why its memory is not given back then: a thread of the parent may have been changing it. */
static bool npuprof_read_take_(npuprof_cursor *cursor)
{
    const uint32_t ours = (uint32_t)npuprof_arena_.header->seed_low | 1;
    uint32_t before = 0;
    if (NPUPROF_CAS_(&cursor->busy_, &before, ours)) return true;
    if (before == ours || !NPUPROF_CAS_(&cursor->busy_, &before, ours)) return false;
    cursor->memory_ = NULL;
    return true;
}

static npuprof_result npuprof_read_busy_(void)
{
    return npuprof_os_explain_(NPUPROF_ERR_BUSY, "%s", "NPUPROF_ERR_BUSY: npuprof_read: this cursor is being "
                               "read, further up this stack or by another thread; give each a cursor");
}

/* Copies the counts out, as many fields as the caller's struct has. */
static void npuprof_read_tell_(npuprof_read_result *to, npuprof_read_result *from)
{
    const size_t known = sizeof *from, size = to->struct_size;
    from->struct_size = to->struct_size;
    memcpy(to, from, size < known ? size : known);
    if (size > known) memset((uint8_t *)to + known, 0, size - known);
}

NPUPROF_API_ npuprof_result npuprof_read(npuprof_cursor *cursor, uint32_t kinds, npuprof_read_fn_ fn,
                                         void *user, npuprof_read_result *result)
{
    npuprof_read_result counts;
    npuprof_result r = NPUPROF_ERR_MEMORY;
    memset(&counts, 0, sizeof counts);
    if (result && result->struct_size < 8)
        return NPUPROF_REFUSE_("npuprof_read: result->struct_size is not sizeof(npuprof_read_result)");
    if (result) npuprof_read_tell_(result, &counts);
    if (!cursor) return NPUPROF_REFUSE_("npuprof_read: cursor is NULL");
    if (cursor->struct_size > sizeof *cursor) return NPUPROF_ERR_VERSION;
    if (!npuprof_record_is_ready_()) return NPUPROF_ERR_ARENA_SIZE;
    if (npuprof_exchange_is_waited_for_()) return NPUPROF_ERR_BUSY;
    if (!npuprof_read_take_(cursor)) return npuprof_read_busy_();
    if (!(kinds & NPUPROF_READ_NO_DRAIN)) npuprof_record_drain_devices_();
    npuprof_read_ *const known = (npuprof_read_ *)cursor->memory_;
    if (known && !npuprof_read_is_of_trace_(known)) npuprof_read_give_back_(cursor);
    npuprof_read_ *const memory = npuprof_read_memory_(cursor);
    if (memory) memory->kinds = kinds;
    if (memory) r = npuprof_read_all_(memory, fn, user, &counts);
    NPUPROF_STORE_RELEASE_(&cursor->busy_, 0);
    if (result) npuprof_read_tell_(result, &counts);
    return r;
}

NPUPROF_API_ void npuprof_read_end(npuprof_cursor *cursor)
{
    if (!cursor || !npuprof_record_is_ready_() || !npuprof_read_take_(cursor)) return;
    npuprof_read_give_back_(cursor);
    memset(cursor, 0, sizeof *cursor);
}

/* ---- Clocks */

/* *place: id of the table's entry << 32 | how many of its anchors were handed over; of the anchor that found
   the table full: all ones << 32 | overflow_used. */
NPUPROF_API_ npuprof_result npuprof_read_anchors(uint32_t device, uint64_t *place,
                                                 bool (*fn)(void *user, const npuprof_read_anchor *anchor),
                                                 void *user)
{
    npuprof_image_ im;
    npuprof_read_anchor out;
    npuprof_anchor_ a;
    memset(&out, 0, sizeof out);
    out.struct_size = sizeof out;
    out.device = device;
    if (!place || !fn) return NPUPROF_REFUSE_("npuprof_read_anchors: place or fn is NULL");
    if (!npuprof_record_is_ready_()) return NPUPROF_ERR_ARENA_SIZE;
    npuprof_image_init_live_(&im);
    npuprof_arena_read_anchor_(&im.closing);
    npuprof_rate_find_(&im);
    const npuprof_device_entry_ *const d = npuprof_image_device_(&im, device);
    if (!d) return NPUPROF_ERR_NOT_FOUND;
    for (bool more = true; more;) {
        const uint32_t used = NPUPROF_LOAD_ACQUIRE_(&d->overflow_used);
        uint32_t block = (uint32_t)(*place >> 32), index = (uint32_t)*place;
        const bool is_full = block == UINT32_MAX;
        if (is_full && index == used) break;
        if (is_full ? !npuprof_image_overflow_anchor_(d, &out.epoch, &a)
                    : !npuprof_image_next_anchor_(&im, d, &block, &index, &out.epoch, &a)) break;
        if (block == UINT32_MAX && NPUPROF_LOAD_ACQUIRE_(&d->overflow_used) != used) continue;
        *place = (uint64_t)block << 32 | (block == UINT32_MAX ? used : index);
        out.ticks = a.device_ticks;
        const uint64_t error = npuprof_read_error_ns_(&im, a.host_before, a.host_after, 0);
        const int64_t wider = (int64_t)npuprof_min_(error, NPUPROF_NS_LIMIT_);
        out.before_ns = im.h->first.unix_ns + npuprof_image_ns_(&im, a.host_before) - wider;
        out.after_ns = im.h->first.unix_ns + npuprof_image_ns_(&im, a.host_after) + wider;
        more = fn(user, &out);
    }
    return NPUPROF_OK;
}

NPUPROF_API_ npuprof_result npuprof_clock_pair(int clock, int64_t *other_ns, int64_t *ours_ns,
                                               uint64_t *bracket_ns)
{
    if (!other_ns || !ours_ns || !bracket_ns) return NPUPROF_REFUSE_("npuprof_clock_pair: a pointer is NULL");
    *other_ns = *ours_ns = 0;
    *bracket_ns = UINT64_MAX;
    for (int i = 0; i < 5; i++) {
        int64_t other;
        const int64_t before = npuprof_now_ns();
        const bool known = npuprof_os_read_clock_(clock, &other);
        const uint64_t bracket = (uint64_t)(npuprof_now_ns() - before);
        if (!known) return NPUPROF_REFUSE_("npuprof_clock_pair: clock is none of this system");
        if (bracket >= *bracket_ns) continue;
        *other_ns = other;
        *ours_ns = before + (int64_t)(bracket / 2);
        *bracket_ns = bracket;
    }
    return NPUPROF_OK;
}
