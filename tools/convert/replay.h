#pragma once   /* SPDX-License-Identifier: MIT */
#include "expander.h"
#include "fields.h"
#include "device.h"
#include "ring.h"

/* Devices whose records a kernel module or firmware put into its image as they are (NPUPROF_NPU_RECORDS):
   what its driver said then is said once more, at the same times, to npuprof_npu.h itself, which here draws
   into the expander's list. So such a record is decoded, placed, matched and counted as in a user-mode
   driver.
   Data: npuprof_replay_x_ and what is beside it, of the thread that loads. */

static struct {
    npuprof_expander_ *x;
    uint64_t now, epoch;                   /* ticks; of the target's device time */
    uint32_t device, context;              /* whose record is being said */
    uint64_t first, hz;                    /* of the target's clock */
    npuprof_replay_drawn_ *drawn;          /* `room` of them */
    uint32_t room, used;
    uint64_t misplaced;                    /* spans of another run of the counter than the target's */
} npuprof_replay_s_;

/* ---- The host that npuprof_npu.h is given */

static uint64_t npuprof_replay_ticks_(void) { return npuprof_replay_s_.now; }

static int64_t npuprof_replay_to_ns_(uint64_t ticks)
{
    const uint64_t since = npuprof_saturating_sub_(ticks, npuprof_replay_s_.first);
    return (int64_t)npuprof_mul_div_(since, 1000000000, npuprof_replay_s_.hz, false);
}

static uint64_t npuprof_replay_at_ns_(int64_t ns, uint64_t *error)
{
    const uint64_t hz = npuprof_replay_s_.hz, since = ns > 0 ? (uint64_t)ns : 0;
    *error = hz / 1000000000 + 1;
    return npuprof_replay_s_.first + npuprof_mul_div_(since, hz, 1000000000, false);
}

static uint64_t npuprof_replay_ns_per_4g_(void)
{
    return npuprof_mul_div_((uint64_t)1 << 32, 1000000000, npuprof_replay_s_.hz, false);
}

/* A submission is known by its context. Outside of one, its records are left out. */
static npuprof_link_ npuprof_replay_here_(void)
{
    npuprof_link_ link;
    memset(&link, 0, sizeof link);
    link.slot = npuprof_replay_s_.context + 1;
    return link;
}

static uint32_t npuprof_replay_add_(const char *name, unsigned pe_count, uint64_t hz, uint32_t ppb)
{
    (void)name, (void)pe_count, (void)hz, (void)ppb;
    return npuprof_replay_s_.device;
}

static uint32_t npuprof_replay_text_id_(const char *text)
{
    return npuprof_expand_text_(npuprof_replay_s_.x, text, strlen(text));
}

static bool npuprof_replay_lane_(uint32_t device, unsigned pe, const char *name)
{
    const uint32_t ids[2] = { pe, npuprof_replay_text_id_(name) };
    return npuprof_expand_entry_(npuprof_replay_s_.x, NPUPROF_ENTRY_LANE, device, ids, sizeof ids) != 0;
}

static void npuprof_replay_note_(uint32_t device, unsigned note, uint64_t add)
{
    npuprof_device_entry_ *const d = npuprof_expand_device_(npuprof_replay_s_.x, device);
    /* Why not the others: the target noted what it saw of its counter. */
    if (d && note == NPUPROF_NOTE_RING_LOST) d->notes[note] += add;
}

static void npuprof_replay_flag_(uint32_t device, uint32_t flag) { (void)device, (void)flag; }

static npuprof_result npuprof_replay_anchor_(uint32_t device, uint32_t epoch, const npuprof_anchor_ *anchor)
{
    (void)device, (void)epoch, (void)anchor;     /* the target has its own */
    return NPUPROF_OK;
}

static void npuprof_replay_lost_(unsigned why, uint64_t count)
{
    npuprof_replay_s_.x->h->lost[why] += count;
}

static void npuprof_replay_records_(uint32_t device, const uint64_t *add)
{
    uint32_t id;
    npuprof_entry_ *const e = npuprof_expand_new_(npuprof_replay_s_.x, NPUPROF_ENTRY_RECORDS,
                                                  sizeof(npuprof_records_entry_), &id);
    npuprof_records_entry_ *const r = (npuprof_records_entry_ *)(void *)e;
    if (!r) return;
    r->head.a = device;
    for (unsigned i = 0; i < NPUPROF_RECORDS_COUNT; i++) r->counts[i] = add[i];
}

/* The units of an argument. Returns how many; 0: there is no room. */
static uint32_t npuprof_replay_arg_(const npuprof_arg *a, npuprof_unit_ *u, uint32_t room)
{
    const bool is_string = a->type >= NPUPROF_ARG_STR;
    const char *const text = is_string && a->value.s ? a->value.s : "";
    const size_t all = strlen(text), bytes = is_string ? npuprof_min_(all, 64) : 0;
    const uint32_t units = 1 + (bytes > 8 ? (uint32_t)NPUPROF_UNITS_(bytes - 8) : 0);
    if (units > room) return 0;
    const uint64_t key = npuprof_replay_text_id_(a->key);
    u[0].w0 = (bytes << 32 | key << 4 | a->type) << NPUPROF_ID_BITS_ | NPUPROF_CONTROL_ARG_;
    u[0].w1 = is_string ? 0 : a->value.u;
    if (is_string) memcpy(&u[0].w1, text, npuprof_min_(bytes, 8));
    if (units > 1) memcpy(&u[1], text + 8, bytes - 8);
    return units;
}

static void npuprof_replay_span_(const npuprof_device_event_ *e, npuprof_args args)
{
    npuprof_expander_ *const x = npuprof_replay_s_.x;
    if (!(e->flags & NPUPROF_STAMP_HOST) && e->epoch != npuprof_replay_s_.epoch) {
        npuprof_replay_s_.misplaced++;
        return;
    }
    if (x->record_count == x->room || npuprof_replay_s_.used == npuprof_replay_s_.room) {
        x->h->lost[NPUPROF_LOST_FULL]++;
        return;
    }
    npuprof_replay_drawn_ *const d = &npuprof_replay_s_.drawn[npuprof_replay_s_.used++];
    npuprof_expand_item_ *const r = &x->list[x->record_count++];
    memset(r, 0, sizeof *r);
    r->kind = NPUPROF_KIND_DEVICE;
    r->context = npuprof_replay_s_.context;
    r->name = npuprof_replay_text_id_(e->name);
    r->category = e->category ? npuprof_replay_text_id_(e->category) : 0;
    r->start = r->end = npuprof_replay_s_.now;
    r->values[0] = e->start;
    r->values[1] = e->end;
    r->drawn = d;
    d->what = (uint64_t)(e->flags & 15u) << 40 | (uint64_t)(e->epoch & 0xFFFF) << 24 |
              (uint64_t)(e->pe & 0xFFFF) << 8 | e->device;
    d->host = e->link && e->link->ticks ? (uint32_t)e->link->position + 1 : 0;
    for (size_t i = 0; i < args.count; i++)
        d->units += npuprof_replay_arg_(&args.items[i], d->unit + d->units, 30 - d->units);
}

static void npuprof_replay_record_(npuprof_device_texts_ *texts, bool keeps_name,
                                   const npuprof_device_event_ *e, npuprof_args args)
{
    (void)texts, (void)keeps_name;
    npuprof_replay_span_(e, args);
}

static bool npuprof_replay_never_(void) { return false; }

#pragma push_macro("NPUPROF_OPEN_")
#undef NPUPROF_OPEN_
#define NPUPROF_OPEN_(level) true          /* what the target recorded is drawn */
#define npuprof_ticks_ npuprof_replay_ticks_
#define npuprof_ticks_to_ns_ npuprof_replay_to_ns_
#define npuprof_ticks_at_ns_ npuprof_replay_at_ns_
#define npuprof_ns_per_4g_ticks_ npuprof_replay_ns_per_4g_
#define npuprof_link_here_ npuprof_replay_here_
#define npuprof_device_add_ npuprof_replay_add_
#define npuprof_device_lane_ npuprof_replay_lane_
#define npuprof_device_note_ npuprof_replay_note_
#define npuprof_device_flag_ npuprof_replay_flag_
#define npuprof_device_anchor_ npuprof_replay_anchor_
#define npuprof_device_records_ npuprof_replay_records_
#define npuprof_count_lost_ npuprof_replay_lost_
#define npuprof_device_span_ npuprof_replay_span_
#define npuprof_device_record_ npuprof_replay_record_
#define npuprof_record_is_ready_ npuprof_replay_never_
#include "../../npuprof_npu.h"
#undef npuprof_ticks_
#undef npuprof_ticks_to_ns_
#undef npuprof_ticks_at_ns_
#undef npuprof_ns_per_4g_ticks_
#undef npuprof_link_here_
#undef npuprof_device_add_
#undef npuprof_device_lane_
#undef npuprof_device_note_
#undef npuprof_device_flag_
#undef npuprof_device_anchor_
#undef npuprof_device_records_
#undef npuprof_count_lost_
#undef npuprof_device_span_
#undef npuprof_device_record_
#undef npuprof_record_is_ready_
#pragma pop_macro("NPUPROF_OPEN_")
