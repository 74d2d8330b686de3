#pragma once   /* SPDX-License-Identifier: MIT */
#include "hot.h"

/* Private: what npuprof_npu.h calls. Host ticks are the ticks of host records. */
NPUPROF_BEGIN_C_

/* The span that submitted a job. */
typedef struct npuprof_link_ {
    uint64_t position;              /* of the span, in the slot's sequence of records */
    uint64_t root_position;         /* of the span that is the root of its trace */
    uint64_t ticks;                 /* a host stamp inside the span; 0 = there is no span to link to */
    uint32_t slot;
    bool warm_up;
    uint32_t thread;                /* the system's number of the submitter; 0 = `used` is not known */
    uint64_t used[3];               /* npuprof_os_usage_() of it when it submitted */
    uint64_t correlation;           /* 0 = none */
} npuprof_link_;

/* A clock anchor: device_ticks was read between the two host stamps. */
typedef struct npuprof_anchor_ {
    uint64_t device_ticks, host_before, host_after;
} npuprof_anchor_;

/* Flags of what a device recorded. HOST: the stamps are host ticks, and the span's epoch is
   npuprof_host_error_code_() of their error. INSTANT: one event, at its start; VALUE: besides, its end is the
   value of a counter. */
enum { NPUPROF_STAMP_SAMPLED = 1, NPUPROF_STAMP_DEVICE = 0, NPUPROF_STAMP_HOST = 4, NPUPROF_STAMP_INSTANT = 8,
       NPUPROF_STAMP_VALUE = 10 };
/* Counts of a device's records, by why one is lost or what is odd about it. Written into images: append
   only. */
enum { NPUPROF_RECORDS_OVERWRITTEN, NPUPROF_RECORDS_STAMPS, NPUPROF_RECORDS_EPOCH, NPUPROF_RECORDS_NO_ANCHOR,
       NPUPROF_RECORDS_DRIVER, NPUPROF_RECORDS_UNKNOWN, NPUPROF_RECORDS_UNMATCHED_END,
       NPUPROF_RECORDS_UNFINISHED, NPUPROF_RECORDS_NO_LANE, NPUPROF_RECORDS_LOSS_UNKNOWN,
       NPUPROF_RECORDS_DROPPED_JOBS, NPUPROF_RECORDS_OPEN_JOBS, NPUPROF_RECORDS_AMBIGUOUS,
       NPUPROF_RECORDS_PERIOD, NPUPROF_RECORDS_CONTRADICTION,
       NPUPROF_RECORDS_COUNT,
       /* A bit for each of them that is a lost record. */
       NPUPROF_RECORDS_LOST_MASK_ = 31 | 1 << NPUPROF_RECORDS_PERIOD | 1 << NPUPROF_RECORDS_CONTRADICTION,
       NPUPROF_RECORDS_ROOM_ = 16 };
enum { NPUPROF_NOTE_WRAPS, NPUPROF_NOTE_RESETS, NPUPROF_NOTE_DEAD_READS, NPUPROF_NOTE_TORN_READS,
       NPUPROF_NOTE_RING_LOST,
       NPUPROF_NOTE_AMBIGUOUS, NPUPROF_NOTE_LAG, NPUPROF_NOTE_UNIT, NPUPROF_NOTE_COUNT,
       NPUPROF_NOTE_ROOM_ = 8 };
#define NPUPROF_MAX_HZ_ \
    UINT64_C(1000000000000000)   /* of a device's clock: a simulator that counts femtoseconds */
/* What the table calls the texts of a device's records: so that each is looked up once. The caller's; one
   thread uses it at a time. Only for texts that stay what they are. */
enum { NPUPROF_DEVICE_KEYS_ = 25, NPUPROF_DEVICE_NAMES_ = 64 };
typedef struct npuprof_device_texts_ {
    uint32_t generation;                 /* that the rest is of; 0 = none */
    const char *key[NPUPROF_DEVICE_KEYS_];
    uint64_t word[NPUPROF_DEVICE_KEYS_];
    /* The last place: of `last`, the run-time name that was looked up last. */
    const char *name[NPUPROF_DEVICE_NAMES_ + 1], *category[NPUPROF_DEVICE_NAMES_ + 1];
    uint32_t id[NPUPROF_DEVICE_NAMES_ + 1];
    char last[64];
    uint64_t stamp;                      /* of the record before */
    const void *behind;                  /* where that ended */
    unsigned stamp_left;                 /* records that may have the same; 0 = read the clock */
} npuprof_device_texts_;
/* A device that npuprof_read() drains: the caller's, who keeps it as long. */
typedef struct npuprof_device_drain_ {
    void (*drain)(void *user);
    void *user;
    struct npuprof_device_drain_ *next;    /* the list's */
} npuprof_device_drain_;
#if !defined(NPUPROF_OFF) && !defined(NPUPROF_FREESTANDING)
/* Host ticks now. */
NPUPROF_API_ uint64_t npuprof_ticks_(void);
/* Host ticks as ns on the clock of npuprof_now_ns(), by the rate that is known now. */
NPUPROF_API_ int64_t npuprof_ticks_to_ns_(uint64_t ticks);
/* The other way round, and how far off that may be. */
NPUPROF_API_ uint64_t npuprof_ticks_at_ns_(int64_t ns, uint64_t *error_ticks);
/* The rate that is known now, in ns per 2^32 host ticks. */
NPUPROF_API_ uint64_t npuprof_ns_per_4g_ticks_(void);
/* Adds a device to the arena. Returns its number, from 1, or 0 if the table is full. max_rate_ppb: how far
   the rate of its clock may drift, in parts per 10^9. */
NPUPROF_API_ uint32_t npuprof_device_add_(const char *name, unsigned pe_count, uint64_t nominal_hz,
                                          uint32_t max_rate_ppb);
/* Stores an anchor of a device. epoch counts the device's resets. For one device, one thread at a time. */
NPUPROF_API_ npuprof_result npuprof_device_anchor_(uint32_t device, uint32_t epoch,
                                                   const npuprof_anchor_ *anchor);
/* Adds to one of a device's counts; note: NPUPROF_NOTE_*. */
NPUPROF_API_ void npuprof_device_note_(uint32_t device, unsigned note, uint64_t add);
/* Adds to the counts of a device's records: add[NPUPROF_RECORDS_COUNT]. */
NPUPROF_API_ void npuprof_device_records_(uint32_t device, const uint64_t *add);
/* Names the track of a PE of a device. False: the table is full. */
NPUPROF_API_ bool npuprof_device_lane_(uint32_t device, unsigned pe, const char *name);
enum { NPUPROF_DEVICE_IDLE_ = 1, NPUPROF_DEVICE_CAUSAL_ = 2, NPUPROF_DEVICE_UNSTEADY_ = 4 };
/* Says of a device: IDLE: its counter was 0 or stood at open; CAUSAL: device time follows from causality;
   UNSTEADY: an epoch ended because its clock stood, or changed its rate. */
NPUPROF_API_ void npuprof_device_flag_(uint32_t device, uint32_t flag);
/* This thread's slot, and its innermost span that is open and recorded; slot 0: it never recorded. */
NPUPROF_API_ npuprof_link_ npuprof_link_here_(void);
/* What this thread submits from now on has this number. Returns the one before. */
NPUPROF_API_ uint64_t npuprof_correlate_(uint64_t id);
/* What a device did: a span, or by its flags an instant or a value. */
typedef struct npuprof_device_event_ {
    uint32_t device, epoch;
    unsigned pe, flags;            /* flags: NPUPROF_STAMP_* */
    const char *category, *name;
    uint64_t start, end;           /* extended device ticks */
    const npuprof_link_ *link;     /* NULL: none */
} npuprof_device_event_;
/* Records it. */
NPUPROF_API_ void npuprof_device_span_(const npuprof_device_event_ *event, npuprof_args args);
/* An error in host ticks as 16 bits, rounded up, for a span with NPUPROF_STAMP_HOST; 0 = not known. */
NPUPROF_API_ uint32_t npuprof_host_error_code_(uint64_t error_ticks);
/* npuprof_device_span_() with integer arguments, whose keys are in `texts`; and the name, if keeps_name. */
NPUPROF_API_ void npuprof_device_record_(npuprof_device_texts_ *texts, bool keeps_name,
                                         const npuprof_device_event_ *event, npuprof_args args);
/* From the first call to the second npuprof_read() drains this device. The second waits until no thread
   drains. */
NPUPROF_API_ void npuprof_device_watch_(npuprof_device_drain_ *device);
NPUPROF_API_ void npuprof_device_unwatch_(npuprof_device_drain_ *device);
/* Counts spans or events as lost; cause: NPUPROF_LOST_*. */
NPUPROF_API_ void npuprof_count_lost_(unsigned cause, uint64_t count);
/* What is declared of a device clock's rate: it keeps within max_rate_ppb of a centre in a window of host
   ticks, and is nominally hz; 0: nobody knows. second: in host ticks. */
typedef struct npuprof_map_rate_ {
    uint64_t second, window, hz;
    uint32_t max_rate_ppb;
    bool may_be_late;              /* reads may show the counter late */
    bool is_unsteady;              /* an epoch ended because it stood, or changed its rate */
} npuprof_map_rate_;
/* The reads of a device's clock. */
typedef struct npuprof_map_reads_ {
    const npuprof_anchor_ *anchors;        /* sorted by device ticks */
    size_t count;
    const npuprof_anchor_ *newest;         /* a read behind them; NULL: none is */
    uint64_t now;                          /* host ticks */
    npuprof_map_rate_ rate;
} npuprof_map_reads_;
/* Maps device ticks to host ticks. *error_ticks gets the error bound in host ticks. Returns false if the
   reads do not suffice: there are none, or only one, with other ticks; or they contradict each other, and the
   ticks are behind all of them. */
NPUPROF_API_ bool npuprof_map_ticks_(const npuprof_map_reads_ *reads, uint64_t device_ticks,
                                     uint64_t *host_ticks, uint64_t *error_ticks);
#endif /* !NPUPROF_OFF && !NPUPROF_FREESTANDING */
NPUPROF_END_C_
