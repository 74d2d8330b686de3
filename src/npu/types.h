#pragma once   /* SPDX-License-Identifier: MIT */
#include "../public/macros.h"
#include "ring_types.h"
#include "queue_types.h"

/* The types of the device side: how a user describes a device, and what an open device holds.
   What ends with an underscore is private; a user only gives storage for it. */

/* How a counter of two words is read. Not used where one load holds all bits. */
enum {
    NPUPROF_NPU_HI_LO_HI = 0,            /* high, low, high again, until both highs agree */
    NPUPROF_NPU_LO_LATCHES_HI = 1,       /* reading the low word freezes the high word */
    NPUPROF_NPU_SINGLE = 2,              /* one load holds all bits */
    NPUPROF_NPU_ORDER_COUNT_
};

/* A tick counter. Zero in a field means its default. */
typedef struct npuprof_npu_counter {
    size_t lo_offset, hi_offset;         /* bytes into the BAR; hi_offset is unused when one load holds all
                                            bits */
    unsigned bits;                       /* 1 to 64 valid bits; 0 = 64 */
    unsigned access;                     /* width of one load: 32 or 64; 0 = 32 */
    int order;                           /* one of NPUPROF_NPU_HI_LO_HI, _LO_LATCHES_HI, _SINGLE */
    bool counts_down, big_endian;        /* registers are little-endian unless big_endian is set */
    uint64_t hz;                         /* nominal rate, at most 10^15; 0 = unknown. It is measured in either
                                            case */
    uint32_t lag_ns;                     /* a read may show the counter as it was up to this long before: a
                                            counter that software moves, a mirrored register. Every anchor
                                            reaches that much further into the past, and sampled stamps have
                                            an error that much larger */
    uint8_t lo_lsb, lo_bits, hi_lsb;     /* where the counter is a field of its registers: first bit and bits
                                            of the low part, first bit of the high part. lo_bits 0 = all above
                                            lo_lsb. Not with a function that reads it, and not
                                            in firmware */
} npuprof_npu_counter;

/* One of the device's event counters. It runs freely, unless `restarts` says otherwise: wraps are counted as
   long as it is sampled once in each. */
typedef struct npuprof_npu_pmu {
    const char *name;                    /* the argument of the device span; "DEVICE NAME" is the counter
                                            track */
    npuprof_npu_counter counter;         /* where and how wide; hz and lag_ns are unused */
    bool is_busy;                        /* counts the ticks of desc.counter in which the device works: the
                                            argument is busy_ticks, and NPU Run of the reports is taken from
                                            it */
    bool (*read)(void *user, unsigned i, uint64_t *value);  /* instead of the BAR: sets *value of event
                                            counter i; false = not now. Called under the device's lock, user
                                            is desc.user; counter.bits still says when it wraps */
    uint64_t scale;                      /* what one count stands for; 0 = 1 */
    const char *unit;                    /* of scaled counts, "bytes"; NULL = counts */
    bool is_idle;                        /* counts the ticks in which the device does not work: busy_ticks are
                                            the others. Not with is_busy */
    bool restarts;                       /* starts at 0 with each job: its value at the end is the step */
} npuprof_npu_pmu;

/* When a job ran, in ns of npuprof_now_ns(), and how exactly that is known. Zero in a field means its
   default. The stated error is error_ns; else it reaches from not_before_ns to not_after_ns, wherever in
   there the job may have been. */
typedef struct npuprof_npu_host_times {
    int64_t start_ns, end_ns;            /* 0: not_before_ns; not_after_ns */
    uint64_t duration_ns;                /* how long it ran, if the device tells: then start_ns is not used */
    int64_t not_before_ns;               /* it had not begun; 0: its submission, or npuprof_npu_open() */
    int64_t not_after_ns;                /* it was over; 0: the moment of the call */
    uint64_t error_ns;                   /* start_ns and end_ns are true within this; 0: not known */
} npuprof_npu_host_times;

/* A field of a register that must have a value, or the counter stands: an enable bit. Read at open, and when
   the counter stands. */
typedef struct npuprof_npu_requirement {
    size_t offset;                       /* bytes into the BAR */
    unsigned access;                     /* width of the load: 32 or 64; 0 = 32 */
    uint64_t mask, value;                /* it holds if (word & mask) == value */
    const char *text;                    /* names the field in the result's sentence: "PMCR.CNT_EN" */
} npuprof_npu_requirement;

/* A device: where its registers are and how they behave. Zero in a field means the default. Strings are not
   copied: they, names and tables live as long as the npuprof_npu. */
typedef struct npuprof_npu_desc {
    const char *name;                    /* "npu0"; NULL = "npu" */
    /* Where: exactly one of the four. */
    volatile const void *bar;            /* a mapping that the caller owns */
    size_t bar_bytes;                    /* its size */
    const char *resource;                /* a path, mapped read-only: sysfs resourceN, /dev/uioN, /dev/hpet, a
                                            file */
    int vfio_device_fd;                  /* a VFIO device's region; group, container and descriptor are the
                                            caller's */
    unsigned vfio_region;                /* 0 to 5: a PCI BAR */
    bool vfio;
    uint64_t (*read_ticks)(void *user);  /* the counter by a function, beside a BAR or without one; its
                                            offsets, access and order are then unused */
    void *user;                          /* passed to read_ticks, wait, is_on, pmu.read and ring.op_name */
    bool (*is_on)(void *user);           /* whether the device has power: asked before each group of loads
                                            from the BAR; false = none is made, and the result is
                                            NPUPROF_ERR_NPU_OFF. NULL = always on */
    bool anchors_only;                   /* the counter cannot be read: device time comes from
                                            npuprof_npu_anchor() and from the order of events */
    const npuprof_npu_requirement *requirements;     /* what must hold for the counter to run */
    unsigned requirement_count;
    npuprof_npu_counter counter;
    const npuprof_npu_pmu *pmu;          /* counters sampled with every sampled kernel, every drain or feed
                                            that finds records, every npuprof_npu_complete() with `last` */
    unsigned pmu_count;                  /* at most 8 */
    unsigned pe_count;                   /* 0 = 1 */
    int (*wait)(void *user);             /* as in npuprof_device; sampled blocks only */
    bool wait_around;
    size_t resource_offset;              /* where the registers begin in the resource or region */
    unsigned resource_map;               /* /dev/uioN: which of its maps; of a PCI device, the BAR */
    bool catch_sigbus;                   /* a mapping that dies reads as a dead device (SIGBUS above); not for
                                            `bar` */
    unsigned brackets;                   /* for each anchor; 0 = 8 */
    unsigned max_rate_ppm;               /* how far the device's rate may be from a centre in any second, and
                                            how far that centre may move in each second; 0 = 2. A larger value
                                            gives wider error bounds, a value that is too small gives wrong
                                            ones, unless the reads show it: clock_sync.contradictions */
    npuprof_npu_ring ring;               /* the completion ring, if there is one only */
    const npuprof_npu_ring *rings;       /* several, copied by open; `ring` is then unused. Entry i of the
                                            array is ring i of npuprof_npu_feed() */
    unsigned ring_count;                 /* at most NPUPROF_NPU_RINGS */
    npuprof_npu_progress progress;       /* instead of rings: an index of finished jobs */
    unsigned job_count;                  /* submissions that may be open at once, where records end them; 0 =
                                            256, at most 65536. The next one takes the place of the oldest,
                                            which loses its arrow: records.dropped_jobs in clock_sync */
    void *memory;                        /* for the tables of the device until it is closed, aligned to 16
                                            bytes; NULL: npuprof_npu_open() takes pages of the system, as
                                            for the arena */
    size_t memory_bytes;                 /* if it is too small, the sentence of the result says how many
                                            bytes are needed */
    bool cpu_ns;                         /* what the thread did while its job ran, as arguments of the
                                            execution (WAITED OR WORKED above). Not in firmware */
} npuprof_npu_desc;

/* ---- Private from here on */

enum {
#ifndef NPUPROF_FREESTANDING
    NPUPROF_NPU_ANCHORS_ = 32,           /* the latest ones, which the error bound and the rate are taken from
                                            */
    NPUPROF_NPU_DIVIDES_ = 1,
    NPUPROF_NPU_DOUBTS_ = 8,             /* contradictions after which counter.hz is not used any more */
    NPUPROF_NPU_CALLS_ = 128,            /* npuprof_npu_begin() that may be open: a power of 2 */
#else
    NPUPROF_NPU_ANCHORS_ = 2,
    NPUPROF_NPU_DIVIDES_ = 0,            /* a division of 64 bits is a slow function there */
    NPUPROF_NPU_CALLS_ = 4,
    NPUPROF_NPU_KEPT_ = 4,               /* anchors that a ring keeps */
#endif
    NPUPROF_NPU_DROPPED_ = 256,          /* counts of submissions that gave up their entries */
    NPUPROF_NPU_PMU_ = 8,
    NPUPROF_NPU_CALL_ARGS_ = 8,          /* of npuprof_npu_end_args() that are recorded */
    NPUPROF_NPU_NAME_ = 64
};
#ifndef NPUPROF_FREESTANDING
typedef struct npuprof_npu_job_ {        /* a submission whose completion has not been seen; see
                                            npu/host/jobs.h */
    uint32_t state;                      /* NPUPROF_NPU_JOB_FREE_, _OPEN_ or _HELD_; who turned it to _HELD_
                                            owns the rest */
    uint32_t ticket;                     /* number of the submission */
    uint32_t flags;                      /* NPUPROF_NPU_HAS_ID_ ...; others look at this and id without
                                            holding it */
    uint32_t epoch;                      /* of device time, when it was submitted */
    uint32_t records;                    /* that are still to come, if it is known to be more than one */
    uint64_t id;
    uint64_t stream;
    npuprof_link_ link;                  /* the host span of the block, where the arrow begins */
    char name[NPUPROF_NPU_NAME_];
} npuprof_npu_job_;

typedef struct npuprof_npu_pmu_state_ {  /* an event counter */
    npuprof_npu_pmu is;
    npuprof_site_ site;                  /* of its track */
    uint32_t epoch;                      /* + 1, of the last read; 0 = never */
    uint64_t raw, total;                 /* the last value; the sum of all steps since open */
    char track[NPUPROF_NPU_NAME_];
} npuprof_npu_pmu_state_;
#endif /* !NPUPROF_FREESTANDING */

/* What the two ends of a submission keep: on the stack of a WITH_NPU_PROFILER block, or in calls_ below. */
typedef struct npuprof_npu_block_ {
    npuprof_token_ token;                /* of the host span; 0 = not recorded, or ended already */
    struct npuprof_npu *npu;
    npuprof_result result;               /* of the read at the beginning */
    uint32_t epoch;
    bool by_host;                        /* see npu/sample.h */
    uint64_t stream;
    npuprof_anchor_ begin;               /* the read at the beginning */
#ifndef NPUPROF_FREESTANDING
    bool sampled;                        /* `begin` is good; with a ring: ticket is */
    uint32_t ticket, job_at, pmu_good;   /* job_at: the submission's entry */
    uint64_t pmu[NPUPROF_NPU_PMU_];
    npuprof_link_ link;
    const char *name, *category;         /* point to the copies below unless they are literals */
    char name_copy[2 * NPUPROF_NPU_NAME_], category_copy[NPUPROF_NPU_NAME_];
#endif
} npuprof_npu_block_;

typedef struct npuprof_npu_call_ {       /* a npuprof_npu_begin() that has not ended; see npu/calls.h */
    uint32_t handle;                     /* 0 = free, 1 = held, else the user's; who turned it to 1 owns the
                                            rest */
    uint32_t turn;                       /* how many calls had this entry */
    npuprof_npu_block_ block;
} npuprof_npu_call_;

/* An open device. `device` goes to WITH_BASE_PROFILER; a field with a trailing underscore is private. */
typedef struct npuprof_npu {
    npuprof_device device;
    uint32_t mmio_reads;                 /* loads from the BAR since open */

    /* Set by open, then only read. */
    const volatile unsigned char *bar_;
    uint32_t number_;                    /* of the device in the arena; 0 = not open */
    uint64_t lag_;                       /* counter.lag_ns in host ticks */
#ifndef NPUPROF_FREESTANDING
    uint64_t second_;                    /* host ticks in a second */
#else   /* Why not 64 bits: divisions of those are function calls. */
    uint32_t second_;
#endif

    /* npu/map/: the mapping. A fault handler sets gone_, any thread reads it. */
    void *map_;
    size_t map_bytes_;
    uint64_t config_at_;                 /* PCI configuration space: where in a file */
    int config_fd_;                      /* and which, + 1; 0 = none */
#ifndef NPUPROF_FREESTANDING
    uint64_t config_file_;               /* what npuprof_os_file_() says of it */
#endif
    uint32_t guard_, gone_;              /* its entry among the guards, + 1; a fault took the mapping away */
    bool is_virtual_function_;

    /* npu/clock.h: device time. Written and read by who holds lock_; epoch_ is also read without it. */
    uintptr_t lock_;                     /* who holds it; 0 = nobody */
    uint32_t epoch_;
    npuprof_result epoch_why_;           /* why this epoch began */
    uint64_t old_epoch_ticks_;           /* last value of the epoch before */
    uint64_t old_epoch_host_;            /* host ticks when that was read */
    uint64_t old_epoch_most_;            /* the most that it may have shown before this epoch began */
    npuprof_anchor_ last_;               /* the last good read; device_ticks extended */
    bool has_last_, has_rate_, coarse_rate_;     /* coarse: measured before a reset */
    bool idle_;                          /* no read since open has seen it move */
    bool is_causal_, is_unsteady_;       /* NPUPROF_DEVICE_* */
    npuprof_anchor_ rate_from_, rate_to_;        /* the anchors that the rate is taken from */
    uint64_t fast_host_ticks_;           /* NPUPROF_NPU_DIVIDES_ 0: a read this soon needs no division; 0 =
                                            none */
    int fast_shift_;                     /* and device ticks are at most host ticks << this, or >> -this */

    /* npu/anchors.h: under lock_, too, except renew_from_, which any thread may write. */
    npuprof_anchor_ anchors_[NPUPROF_NPU_ANCHORS_];      /* of this epoch, oldest first */
    uint32_t anchor_count_;
    uint64_t best_width_;                /* of the narrowest anchor */
#ifndef NPUPROF_FREESTANDING
    /* of all reads since the last anchor: which bounds device time best from above, and from below */
    npuprof_anchor_ best_upper_, best_lower_;
    bool has_best_;
    uint32_t doubts_;                    /* second anchors in a row that contradicted the first ones; where
                                            nobody reads the counter, all that contradicted hz */
    uint64_t changed_;                   /* host ticks when the rate was last seen to change */
#endif
    uint64_t first_anchor_;              /* host ticks from which the age of the trace counts */
    uint64_t anchor_interval_;           /* NPUPROF_NPU_DIVIDES_ 0: host ticks from the last anchor to the
                                            next one */
    uint64_t renew_from_;                /* host ticks before which the library takes no anchor by itself */

    /* npu/calls.h: any thread. */
    uint32_t next_call_;                 /* where the search for a free entry begins; a hint */
#ifdef NPUPROF_FREESTANDING
#ifndef NPUPROF_NPU_RECORDS
    npuprof_npu_call_ calls_[NPUPROF_NPU_CALLS_];
#endif
#else
    npuprof_npu_call_ *calls_;           /* NPUPROF_NPU_CALLS_; a table of npu/host/tables.h, as all below
                                            that are pointers */
#endif

#ifndef NPUPROF_FREESTANDING
    /* npu/host/: for who holds queue_lock_, one drain, feed or completion by hand. */
    npuprof_device_drain_ drain_;        /* for npuprof_read(), from open to close */
    uintptr_t queue_lock_;               /* who holds it; 0 = nobody */
    npuprof_device_texts_ texts_;        /* of records that rings brought */
    uint64_t counts_[NPUPROF_RECORDS_COUNT];     /* not yet handed to the arena */
    bool has_submissions_;               /* its records end what blocks submit: set by open */
    bool has_numbers_;                   /* every record names its job: set by open */
    uint64_t id_mask_;                   /* bits of a command's number that every ring brings back: set by
                                            open */
    npuprof_npu_queue_ *queues_;         /* queue_count_ */
    unsigned queue_count_, lane_count_;  /* lane_count_: places of lanes_ that are taken */
    npuprof_npu_lane_state_ *lanes_;     /* NPUPROF_NPU_LANES_ + 1, the last: of all that found no place */
    struct npuprof_npu_pair_ *pairs_;    /* NPUPROF_NPU_PAIRS_: npu/host/pairs.h */
    uint16_t pair_buckets_[NPUPROF_NPU_PAIR_BUCKETS_], free_pair_, oldest_pair_, newest_pair_;
    uint32_t *seen_;                     /* NPUPROF_NPU_SEEN_ hashes of entries: READY_VALID */
    struct npuprof_npu_late_ *late_;     /* records that wait for their submissions: npu/host/late.h */
    uint32_t late_first_, late_count_;
    struct npuprof_npu_ended_ *ended_;   /* jobs whose whole came, for their parts: npu/host/ended.h */
    uint32_t ended_count_;
    void *tables_;                       /* from the system; NULL: they lie in desc.memory */
    size_t tables_bytes_;
    npuprof_npu_index_state_ progress_;
    uint64_t progress_next_;             /* jobs that are over */
    int64_t stamp_offset_;               /* for stamps by hand */
    uint64_t open_ticks_, open_host_;    /* device time and host ticks at open */
    /* npu/host/jobs.h: any thread. */
    uint32_t ids_, uses_ids_, tickets_;  /* numbers and tickets given out; whether the driver numbers */
    uint32_t ended_unnumbered_;          /* the block of a submission ended before the first number */
    uint32_t gap_ticket_;                /* of submissions before it, records may be lost */
    uint32_t jobs_dropped_;              /* submissions that gave up their entries: not yet in counts_ */
    uint32_t forgotten_;                 /* of those without numbers, whose records have not come */
    uint32_t *dropped_;                  /* the same by number, or by stream: NPUPROF_NPU_DROPPED_ counts */
    uint32_t open_from_;                 /* under the queue lock: no submission before that ticket is open */
    uint32_t *used_, *numbered_;         /* a bit for each of jobs_; NPUPROF_NPU_ROWS_ times the same */
    npuprof_npu_job_ *jobs_;             /* desc.job_count */
    /* npu/host/pmu.h: under lock_. */
    npuprof_npu_pmu_state_ pmu_[NPUPROF_NPU_PMU_];
#else /* NPUPROF_FREESTANDING */
    npuprof_token_ kept_[NPUPROF_NPU_KEPT_];     /* its newest anchors in a ring, the oldest one first. Why in
                                            every build: all files of a program have the same structure */
#ifdef NPUPROF_NPU_RECORDS
    /* npu/firmware/jobs.h: set by open, then only read. */
    bool has_submissions_;               /* the host ends what blocks submit */
    uint8_t ring_count_;
    uint16_t by_counter_;                /* a bit for each ring: its stamps count the counter */
    uint8_t entry_bytes_[NPUPROF_NPU_RINGS];
#endif
#endif /* !NPUPROF_FREESTANDING */
    /* Why last: firmware reaches what lies near the beginning with shorter instructions. */
    npuprof_npu_desc desc_;              /* the user's, with the defaults filled in */
} npuprof_npu;
