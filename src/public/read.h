#pragma once   /* SPDX-License-Identifier: MIT */
#include "api.h"

/* Recorded spans, handed back to the program while it runs: for an adapter to a runtime's own profiler.

   A cursor is one reader's place in the trace. Each npuprof_read() gives it what was completed since its last
   one: each span and event once, or it is counted as lost to this cursor. There may be any number of cursors.
   Record at any rate meanwhile: a read takes the lock of the readers for some microseconds at a time, and
   calls back without it.
   Each struct begins with struct_size. Later versions add fields at the end: the library sets it in what it
   hands out, the caller in what the library fills. */

#ifndef NPUPROF_FREESTANDING
NPUPROF_BEGIN_C_

/* What a read is to hand over: 1u << NPUPROF_KIND_... for each kind, or all spans, or all spans and events.
   Device instants and values are of the kind NPUPROF_KIND_DEVICE. */
#define NPUPROF_READ_SPANS                                                                             \
    (1u << NPUPROF_KIND_SPAN | 1u << NPUPROF_KIND_RECORD | 1u << NPUPROF_KIND_WARM_UP |                \
     1u << NPUPROF_KIND_INFERENCE | 1u << NPUPROF_KIND_OPERATOR | 1u << NPUPROF_KIND_FINISHED |        \
     1u << NPUPROF_KIND_DEVICE)
#define NPUPROF_READ_ALL 0x7FFFFFFEu
/* Or'ed to it: does not drain the devices first, such as in a driver's lock. */
#define NPUPROF_READ_NO_DRAIN 0x80000000u

/* A reader's place. All zero: at the beginning of the trace. */
typedef struct npuprof_cursor {
    uint32_t struct_size;          /* sizeof(npuprof_cursor), or 0 */
    uint32_t busy_;
    void *memory_;
    uint64_t reserved_[6];
} npuprof_cursor;

/* npuprof_read_span.flags */
enum {
    NPUPROF_READ_HAS_TICKS = 1,    /* start_ticks, end_ticks and epoch are the device's */
    NPUPROF_READ_NO_TIME = 2,      /* no clock anchor bounds them: start_ns and end_ns are 0 */
    NPUPROF_READ_HOST_STAMPS = 4,  /* of a device span: its times were taken by the host */
    NPUPROF_READ_SAMPLED = 8,      /* of a device span: the counter was read before and after the work */
    NPUPROF_READ_POINT = 16,       /* an event: it has no length */
    NPUPROF_READ_CUT = 32,         /* ended by an exception, longjmp or a thread's end, not by its own end */
    NPUPROF_READ_WARM_UP = 64,     /* inside a PROF_RECORD_WARM_UP */
    /* Arguments may be missing (overwritten), or are cut (too long). Not set for those that a full arena
       dropped while they were recorded: NPUPROF_LOST_ARGUMENTS counts them. */
    NPUPROF_READ_ARGS_LOST = 128
};

/* A span or event. Pointers are valid until the callback returns. */
typedef struct npuprof_read_span {
    uint32_t struct_size;          /* of the library's: fields behind it are not there */
    uint16_t kind;                 /* NPUPROF_KIND_... */
    uint16_t flags;                /* NPUPROF_READ_... */
    uint64_t id;                   /* unique in this process; the span_id of the JSON, as a number */
    uint64_t parent;               /* id of the span around it on its thread; of a device span, of the one
                                      that submitted its job. 0: none, or not known */
    uint64_t job;                  /* of a device span: its argument "job"; 0: none */
    int64_t start_ns, end_ns;      /* on the clock of npuprof_now_ns() */
    uint64_t error_ns;             /* both are right to so many ns, unless the system changed the rate of its
                                      clock in the trace, as NTP does; UINT64_MAX: no bound is known */
    uint64_t start_ticks, end_ticks;   /* device ticks, extended to 64 bits */
    uint32_t epoch;                /* counts the resets of the device's counter */
    uint32_t device, engine;       /* number of the device, from 1, 0: none; number of its PE */
    uint32_t thread, native_id;    /* number of the thread in the trace; the system's number of the thread,
                                      0: not known: other threads had this row, too, or a handler */
    const char *name, *category;   /* never NULL. Of a state of a memory pool: its tag, and the pool */
    const char *track;             /* name of device, thread or npuprof_span() track; "": the
                                      thread has no name */
    union { int64_t i; uint64_t u; double d; } value;    /* of a counter, by kind; of a device value, u; id
                                      of a flow or async event; used bytes of a memory pool. Else 0 */
    uint64_t allocated_bytes;      /* of a memory pool */
    const npuprof_arg *args;       /* if a key comes twice, the last one counts */
    size_t arg_count;
} npuprof_read_span;

/* Counts of one read. Set struct_size; the others are filled, also after an error. */
typedef struct npuprof_read_result {
    uint32_t struct_size;          /* sizeof(npuprof_read_result) */
    uint32_t reserved;
    uint64_t spans;                /* handed to the callback */
    uint64_t lost;                 /* spans and events, of all kinds, of which this read learned that the
                                      cursor will not get them: they could not be recorded, or were
                                      overwritten, streamed or cleared before it came */
    uint64_t open;                 /* spans that had begun and not ended: a later read has them */
} npuprof_read_result;

/* Hands over what was completed since the cursor's last read, kinds: NPUPROF_READ_... above. First drains all
   open devices. What is of other kinds is passed over: this cursor never gets it, and it does not count as
   lost. fn gets one span or event; NULL: all that is there is passed over. It returns false to stop there:
   the next read goes on behind that one. It may record, and call every function, but not npuprof_read() with
   this cursor.
   A span comes when it has ended; a device span when its record was drained, however old its stamps are; an
   async span as two events. Spans of a thread come in the order in which they began, those that were open in
   an earlier read before newer ones; there is no order across threads. Device times follow from the clock
   anchors that are known at this call.
   It ends at what was there when it began, or up to a chunk of each thread later: what threads, and fn,
   record meanwhile is for the next read.
   NPUPROF_KEEP_NEWEST: what a full arena overwrites between two reads is lost to the cursor. NPUPROF_STREAM:
   a full chunk goes to the sink at once, so the cursor gets only what it reads before.
   After npuprof_clear() it goes on, and counts what was cleared as lost; if other threads recorded during the
   clear, that is an estimate. While threads record with NPUPROF_STREAM, lost may run ahead by a few records,
   which it then does not count again: once they stand still, delivered + lost is what was recorded. In the
   child of a fork a cursor begins anew, with the child's trace. If fn forks, that ends the child's read.
   Threads: any; one at a time for one cursor. Not from a signal handler.
   The first call maps memory for the cursor, some 200 KiB, of which it touches what it needs; no heap. Stack:
   1 KiB, beside that of drains. Cost: some 100 ns for each span, and less for each thread and each chunk that
   was looked at before.
   NPUPROF_ERR_BUSY: this cursor is being read already, or this is a sink, or a signal handler that
   interrupted a reader. NPUPROF_ERR_MEMORY: the system gives no pages. NPUPROF_ERR_VERSION: the cursor is of
   a newer header than the library. NPUPROF_ERR_UNSUPPORTED: built with NPUPROF_RECORD_ONLY. */
NPUPROF_FN_(npuprof_result, npuprof_read,
            (npuprof_cursor *cursor, uint32_t kinds, bool (*fn)(void *user, const npuprof_read_span *span),
             void *user, npuprof_read_result *result),
            NPUPROF_UNUSED_(cursor); NPUPROF_UNUSED_(kinds); NPUPROF_UNUSED_(fn); NPUPROF_UNUSED_(user);
            if (result) { result->spans = 0; result->lost = 0; result->open = 0; }
            return NPUPROF_OK;)
/* Gives the cursor's memory back, and makes it all zero. Not from its callback: then it does nothing. */
NPUPROF_FN_(void, npuprof_read_end, (npuprof_cursor *cursor), NPUPROF_UNUSED_(cursor);)

/* A clock anchor of a device: its counter showed `ticks` between two moments. */
typedef struct npuprof_read_anchor {
    uint32_t struct_size;          /* of the library's */
    uint32_t device, epoch;        /* as in npuprof_read_span */
    uint32_t reserved;
    uint64_t ticks;
    int64_t before_ns, after_ns;   /* on the clock of npuprof_now_ns() */
} npuprof_read_anchor;
/* Hands over the clock anchors of a device that were taken since *place, oldest first, and sets *place behind
   them. *place: the caller's, for each device; 0: before the first one. fn returns false to stop there. Any
   thread. Cost: those anchors. Once the table of names is full, only the newest one is there.
   NPUPROF_ERR_NOT_FOUND: there is no such device. */
NPUPROF_FN_(npuprof_result, npuprof_read_anchors,
            (uint32_t device, uint64_t *place, bool (*fn)(void *user, const npuprof_read_anchor *anchor),
             void *user),
            NPUPROF_UNUSED_(device); NPUPROF_UNUSED_(place); NPUPROF_UNUSED_(fn); NPUPROF_UNUSED_(user);
            return NPUPROF_OK;)

/* Reads another clock between two calls of npuprof_now_ns(): it showed *other_ns at *ours_ns, the middle of
   the two, which lie *bracket_ns apart. Half of that, rounded up, is the error. The narrowest of five.
   clock: CLOCK_MONOTONIC, CLOCK_REALTIME, CLOCK_BOOTTIME or another that clock_gettime() takes (<time.h>); on
   Windows 0 (CLOCK_REALTIME) or 1 (CLOCK_MONOTONIC). Take one pair when reading begins, and one when it ends.
   NPUPROF_ERR_ARGUMENT: the system has no such clock, or a NULL. When OFF, all are 0. Any thread. */
NPUPROF_FN_(npuprof_result, npuprof_clock_pair, (int clock, int64_t *other_ns, int64_t *ours_ns,
                                                 uint64_t *bracket_ns),
            if (!other_ns || !ours_ns || !bracket_ns) return NPUPROF_ERR_ARGUMENT;
            *other_ns = 0; *ours_ns = 0; *bracket_ns = 0; NPUPROF_UNUSED_(clock); return NPUPROF_OK;)

NPUPROF_END_C_
#endif /* !NPUPROF_FREESTANDING */
