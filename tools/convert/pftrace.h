#pragma once   /* SPDX-License-Identifier: MIT */
#include "api.h"
#include "proto.h"

/* Packets of Perfetto's trace format (.pftrace), and what the parts of its writer have in common. The other
   parts: pftrace_event.h (events and their arguments), pftrace_arrows.h (arrows), pftrace_scene.h (what is
   shown), pftrace_attributes.h (metadata), pftrace_file.h (the order of it all).

   The whole file is one sequence of packets. Its first packet says where its clock begins; the stamps that
   follow are differences, of two or three bytes. Why one: an importer needs a millisecond for each snapshot
   of a clock. A packet in between says on which track the events are that follow; an event on another track
   names it. Names are sent once. Stamps are CLOCK_BOOTTIME, so that a trace of the system can be appended to
   the file. Files that are put together are one name space: so the numbers of sequence, clock and tracks
   follow from what is different in each trace.

   An end has no name: it ends the innermost span that is open on its track. So spans that do not nest go into
   lanes (read/lanes.h), as in the JSON; lanes of one track have one name and one key, by which the viewer
   draws them as one track. Engines of a device have a rank. Why not threads, processes and devices: an
   importer keeps no legacy_sort_index of them, and orders by rank only what is below another custom track.

   Field numbers: protos/perfetto/trace in the repository of Perfetto, from the file named at each. */

/* trace_packet.proto */
enum {
    NPUPROF_PFTRACE_PACKET_ = 1, NPUPROF_PFTRACE_CLOCKS_ = 6, NPUPROF_PFTRACE_STAMP_ = 8,
    NPUPROF_PFTRACE_SEQUENCE_ = 10, NPUPROF_PFTRACE_EVENT_ = 11, NPUPROF_PFTRACE_INTERNED_ = 12,
    NPUPROF_PFTRACE_FLAGS_ = 13, NPUPROF_PFTRACE_DEFAULTS_ = 59, NPUPROF_PFTRACE_TRACK_ = 60
};
/* Of the first packet: what was interned before is forgotten. Why no other packet has the flag that it needs
   what is interned: that is for readers that begin in the middle, and 2 bytes of each. */
enum { NPUPROF_PFTRACE_CLEARED_ = 1 };
enum { NPUPROF_PFTRACE_TRACK_UUID_ = 11 };      /* track_event.proto */
/* interned_data.proto: what is sent once for each sequence, each in a name space of its own */
enum {
    NPUPROF_PFTRACE_CATEGORIES_ = 1, NPUPROF_PFTRACE_NAMES_ = 2, NPUPROF_PFTRACE_KEYS_ = 3,
    NPUPROF_PFTRACE_SOURCES_ = 4, NPUPROF_PFTRACE_SPACES_ = 5
};
/* builtin_clock.proto; 64 to 127 are those that a sequence has for itself */
enum { NPUPROF_PFTRACE_REALTIME_ = 1, NPUPROF_PFTRACE_MONOTONIC_ = 3, NPUPROF_PFTRACE_BOOTTIME_ = 6 };

/* A name: first the keys of facts (read/scene.h), which no table has, then the strings of the image's table
   by their id. */
typedef struct npuprof_pftrace_name_ {
    uint32_t iid;                        /* its number in the file; 0: not used yet */
    uint32_t sent;                       /* a bit for each name space; those of counters behind them */
} npuprof_pftrace_name_;

/* One end of an arrow. */
typedef struct npuprof_pftrace_tie_ {
    uint64_t position;                   /* of the span; UINT64_MAX: to be found by ns */
    uint64_t id;                         /* of the arrow */
    int64_t ns;
    uint32_t tid;
    bool in;                             /* the arrow ends here */
    bool submits;                        /* it leads to a device span */
} npuprof_pftrace_tie_;

/* The beginning of an event that has nothing but name and category, for the spans that come next. */
enum { NPUPROF_PFTRACE_SHORT_ = 32 };    /* most bytes of an event that is short */
typedef struct npuprof_pftrace_plain_ {
    uint64_t key;
    uint32_t length;
    uint8_t bytes[NPUPROF_PFTRACE_SHORT_];
} npuprof_pftrace_plain_;

typedef struct npuprof_pftrace_ {
    npuprof_work_ *work;
    npuprof_proto_ event, interned;      /* the parts of the packet at hand */
    uint64_t seed;                       /* that the numbers of tracks and arrows follow from */
    int64_t boot_ns, monotonic_ns, unix_ns;      /* at the beginning of the trace */
    uint64_t process;                    /* uuid */
    uint32_t sequence, clock;            /* of all events */
    uint64_t track;                      /* of events that name none */
    uint64_t tid;                        /* of the thread at hand, as the viewer shows it */
    uint8_t head[4];                     /* of a packet with an event, up to the stamp's number */
    int64_t last_ns;                     /* the stamp of the last event, after the beginning of the trace */
    uint32_t lanes, iids;                /* given out */
    uint32_t device;                     /* whose track was described last */
    npuprof_pftrace_name_ *names;
    size_t name_count, names_bytes;
    npuprof_pftrace_plain_ plain[256];
    /* ends of arrows, sorted by thread and position; those of the thread at hand */
    npuprof_list_ ties;
    size_t tie_first, tie_end;
    uint64_t arrows;
    void *buffers;
    size_t buffer_bytes;
    int error;
} npuprof_pftrace_;

static npuprof_pftrace_ npuprof_pftrace_state_;

/* A number of a track or an arrow that no other process is likely to have: traces may be put together. */
static uint64_t npuprof_pftrace_number_(const npuprof_pftrace_ *p, uint32_t what, uint64_t n)
{
    return npuprof_hash_mix_(p->seed ^ npuprof_hash_mix_((uint64_t)what << 56 ^ n)) >> 1 | 1;
}

enum { NPUPROF_PFTRACE_OF_SEQUENCE_, NPUPROF_PFTRACE_OF_PROCESS_, NPUPROF_PFTRACE_OF_THREAD_,
       NPUPROF_PFTRACE_OF_DEVICE_, NPUPROF_PFTRACE_OF_LANE_, NPUPROF_PFTRACE_OF_COUNTER_,
       NPUPROF_PFTRACE_OF_ARROW_, NPUPROF_PFTRACE_OF_SUBMIT_, NPUPROF_PFTRACE_OF_GROUP_,
       NPUPROF_PFTRACE_OF_JOBS_ };

/* ---- Packets */

static void npuprof_pftrace_begin_(npuprof_pftrace_ *p)
{
    p->event.used = p->interned.used = 0;
    p->event.full = p->interned.full = false;
}

/* Sends p->event as a packet: what is in it is the whole packet. */
static void npuprof_pftrace_send_whole_(npuprof_pftrace_ *p)
{
    uint8_t head[12] = { NPUPROF_PFTRACE_PACKET_ << 3 | NPUPROF_PROTO_BYTES_ };
    const uint8_t *const end = npuprof_proto_put_varint_(head + 1, p->event.used);
    npuprof_out_ *const o = &p->work->out;
    if (p->event.full) {
        p->error = EFBIG;
        return;
    }
    npuprof_out_put_(o, (const char *)head, (size_t)(end - head));
    npuprof_out_put_(o, (const char *)p->event.bytes, p->event.used);
}

static void npuprof_pftrace_put_clock_(npuprof_pftrace_ *p, unsigned id, int64_t ns)
{
    const size_t clock = npuprof_proto_begin_(&p->event, 1);
    npuprof_proto_uint_(&p->event, 1, id);
    npuprof_proto_uint_(&p->event, 2, (uint64_t)ns);
    if (id == p->clock) npuprof_proto_uint_(&p->event, 3, 1);      /* of differences */
    npuprof_proto_end_(&p->event, clock);
}

/* Events that name no track are on this one from now on. trace_packet_defaults.proto */
static void npuprof_pftrace_use_track_(npuprof_pftrace_ *p, uint64_t uuid)
{
    npuprof_proto_ *const m = &p->event;
    p->track = uuid;
    p->head[0] = NPUPROF_PFTRACE_SEQUENCE_ << 3;
    (void)npuprof_proto_put_varint_(p->head + 1, p->sequence);
    p->head[3] = NPUPROF_PFTRACE_STAMP_ << 3;
    npuprof_pftrace_begin_(p);
    npuprof_proto_uint_(m, NPUPROF_PFTRACE_SEQUENCE_, p->sequence);
    const size_t defaults = npuprof_proto_begin_(m, NPUPROF_PFTRACE_DEFAULTS_);
    npuprof_proto_uint_(m, 58, p->clock);
    const size_t event = npuprof_proto_begin_(m, 11);
    npuprof_proto_uint_(m, 11, uuid);
    npuprof_proto_end_(m, event);
    npuprof_proto_end_(m, defaults);
    npuprof_pftrace_send_whole_(p);
}

/* Sends the first packet of the sequence. clock_snapshot.proto. Its number is in each packet, so it has two
   bytes; files harm each other only if their clocks have one number, too. Why not 64: others take that. */
static void npuprof_pftrace_begin_sequence_(npuprof_pftrace_ *p)
{
    npuprof_proto_ *const m = &p->event;
    const uint64_t own = npuprof_pftrace_number_(p, NPUPROF_PFTRACE_OF_SEQUENCE_, 0);
    p->sequence = 8192 + (uint32_t)(own >> 8) % 8192;
    p->clock = 65 + (uint32_t)(own >> 40) % 63;
    npuprof_pftrace_begin_(p);
    npuprof_proto_uint_(m, NPUPROF_PFTRACE_SEQUENCE_, p->sequence);
    npuprof_proto_uint_(m, NPUPROF_PFTRACE_FLAGS_, NPUPROF_PFTRACE_CLEARED_);
    const size_t clocks = npuprof_proto_begin_(m, NPUPROF_PFTRACE_CLOCKS_);
    npuprof_pftrace_put_clock_(p, NPUPROF_PFTRACE_BOOTTIME_, p->boot_ns);
    npuprof_pftrace_put_clock_(p, NPUPROF_PFTRACE_MONOTONIC_, p->monotonic_ns);
    npuprof_pftrace_put_clock_(p, NPUPROF_PFTRACE_REALTIME_, p->unix_ns);
    npuprof_pftrace_put_clock_(p, p->clock, p->boot_ns);
    npuprof_proto_uint_(m, 2, NPUPROF_PFTRACE_BOOTTIME_);
    npuprof_proto_end_(m, clocks);
    npuprof_pftrace_send_whole_(p);
}

/* What a packet with an event has before the event: sequence and stamp. Returns the end of what it wrote. */
static inline uint8_t *npuprof_pftrace_put_head_(npuprof_pftrace_ *p, int64_t ns, uint8_t *out)
{
    const uint64_t difference = (uint64_t)(ns - p->last_ns);
    p->last_ns = ns;
    memcpy(out, p->head, sizeof p->head);
    return npuprof_proto_put_varint_(out + sizeof p->head, difference);
}

/* Sends a TrackEvent of at most NPUPROF_PFTRACE_SHORT_ bytes that needs no new names: most are so. As many
   bytes can be read from `event`, because a copy of a fixed length is fast. ns: after the beginning of the
   trace. */
static inline void npuprof_pftrace_send_short_(npuprof_pftrace_ *p, uint64_t track, int64_t ns,
                                               const uint8_t *event, size_t count)
{
    npuprof_out_ *const o = &p->work->out;
    uint8_t *const packet = (uint8_t *)npuprof_out_reserve_(o, 128);
    uint8_t *end = npuprof_pftrace_put_head_(p, ns, packet + 2);
    *end++ = NPUPROF_PFTRACE_EVENT_ << 3 | NPUPROF_PROTO_BYTES_;
    uint8_t *const length = end++;
    memcpy(end, event, NPUPROF_PFTRACE_SHORT_);
    end += count;
    if (track != p->track) {
        *end++ = NPUPROF_PFTRACE_TRACK_UUID_ << 3;
        end = npuprof_proto_put_varint_(end, track);
    }
    *length = (uint8_t)(end - length - 1);
    packet[0] = NPUPROF_PFTRACE_PACKET_ << 3 | NPUPROF_PROTO_BYTES_;
    packet[1] = (uint8_t)(end - packet - 2);
    o->used += (size_t)(end - packet);
}

/* Sends p->event, and p->interned before it. */
static void npuprof_pftrace_send_(npuprof_pftrace_ *p, uint64_t track, int64_t ns)
{
    npuprof_out_ *const o = &p->work->out;
    const size_t interned = p->interned.used;
    uint8_t head[64], *end = head, packet[12], *packet_end = packet, event[12], *event_end = event;
    if (p->event.full || p->interned.full) {
        p->error = EFBIG;
        return;
    }
    if (!interned && p->event.used <= NPUPROF_PFTRACE_SHORT_) {
        npuprof_pftrace_send_short_(p, track, ns, p->event.bytes, p->event.used);
        return;
    }
    if (track != p->track) npuprof_proto_uint_(&p->event, NPUPROF_PFTRACE_TRACK_UUID_, track);
    const size_t count = p->event.used;
    end = npuprof_pftrace_put_head_(p, ns, head);
    if (interned) {
        *end++ = NPUPROF_PFTRACE_INTERNED_ << 3 | NPUPROF_PROTO_BYTES_;
        end = npuprof_proto_put_varint_(end, interned);
    }
    *event_end++ = NPUPROF_PFTRACE_EVENT_ << 3 | NPUPROF_PROTO_BYTES_;
    event_end = npuprof_proto_put_varint_(event_end, count);
    const size_t total = (size_t)(end - head) + interned + (size_t)(event_end - event) + count;
    *packet_end++ = NPUPROF_PFTRACE_PACKET_ << 3 | NPUPROF_PROTO_BYTES_;
    packet_end = npuprof_proto_put_varint_(packet_end, total);
    npuprof_out_put_(o, (const char *)packet, (size_t)(packet_end - packet));
    npuprof_out_put_(o, (const char *)head, (size_t)(end - head));
    npuprof_out_put_(o, (const char *)p->interned.bytes, interned);
    npuprof_out_put_(o, (const char *)event, (size_t)(event_end - event));
    npuprof_out_put_(o, (const char *)p->event.bytes, count);
}

/* ---- Names */

/* The number of a name; sends the name with this packet if it was not sent yet. 0: the image has no such
   name. */
static uint32_t npuprof_pftrace_intern_(npuprof_pftrace_ *p, unsigned space, size_t at, const char *text,
                                        size_t length)
{
    npuprof_pftrace_name_ *const name = at < p->name_count ? &p->names[at] : NULL;
    if (!name) return 0;
    if (!name->iid) name->iid = ++p->iids;
    if (name->sent >> space & 1) return name->iid;
    name->sent |= 1u << space;
    const size_t entry = npuprof_proto_begin_(&p->interned, space);
    npuprof_proto_uint_(&p->interned, 1, name->iid);
    npuprof_proto_text_(&p->interned, 2, text, length);
    npuprof_proto_end_(&p->interned, entry);
    return name->iid;
}

static uint32_t npuprof_pftrace_intern_id_(npuprof_pftrace_ *p, unsigned space, uint32_t id)
{
    const size_t at = NPUPROF_FACT_COUNT_ + (size_t)id;
    size_t length;
    if (at < p->name_count && p->names[at].sent >> space & 1) return p->names[at].iid;
    const char *const text = npuprof_image_text_(&p->work->image, id, &length);
    return npuprof_pftrace_intern_(p, space, at, text, length);
}

/* ---- Tracks: track_descriptor.proto */

enum { NPUPROF_PFTRACE_UUID_ = 1, NPUPROF_PFTRACE_NAME_ = 2, NPUPROF_PFTRACE_PARENT_ = 5,
       NPUPROF_PFTRACE_ORDERING_ = 11, NPUPROF_PFTRACE_RANK_ = 12, NPUPROF_PFTRACE_DESCRIPTION_ = 14,
       NPUPROF_PFTRACE_MERGE_ = 15, NPUPROF_PFTRACE_MERGE_KEY_ = 17 };
enum { NPUPROF_PFTRACE_NEVER_ = 2, NPUPROF_PFTRACE_BY_KEY_ = 3 };      /* what is drawn as one track */

/* Begins a descriptor. parent 0: none. */
static size_t npuprof_pftrace_begin_track_(npuprof_pftrace_ *p, uint64_t uuid, uint64_t parent)
{
    npuprof_pftrace_begin_(p);
    const size_t track = npuprof_proto_begin_(&p->event, NPUPROF_PFTRACE_TRACK_);
    npuprof_proto_uint_(&p->event, NPUPROF_PFTRACE_UUID_, uuid);
    if (parent) npuprof_proto_uint_(&p->event, NPUPROF_PFTRACE_PARENT_, parent);
    return track;
}

static void npuprof_pftrace_end_track_(npuprof_pftrace_ *p, size_t track)
{
    npuprof_proto_end_(&p->event, track);
    npuprof_pftrace_send_whole_(p);
}

/* Only lanes with this key are drawn as one track with it: another track may have the same name. */
static void npuprof_pftrace_merge_track_(npuprof_pftrace_ *p, uint64_t key)
{
    npuprof_proto_uint_(&p->event, NPUPROF_PFTRACE_MERGE_, NPUPROF_PFTRACE_BY_KEY_);
    npuprof_proto_uint_(&p->event, NPUPROF_PFTRACE_MERGE_KEY_, key);
}

/* A name of the table and a text behind it as the name of a track. */
static void npuprof_pftrace_name_track_(npuprof_pftrace_ *p, uint32_t id, const char *suffix)
{
    char text[192];
    const size_t length = npuprof_scene_name_(&p->work->image, id, 100, suffix, text);
    npuprof_proto_text_(&p->event, NPUPROF_PFTRACE_NAME_, text, length);
}
