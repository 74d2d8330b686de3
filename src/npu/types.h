#pragma once   /* SPDX-License-Identifier: MIT */
#include "../public/macros.h"

#ifndef NPUPROF_H
#error "npuprof_npu.h: include npuprof.h first"
#endif
#define NPUPROF_NPU_VERSION 100
#if NPUPROF_NPU_VERSION != NPUPROF_VERSION
#error "npuprof_npu.h: npuprof.h is of another version; take both from the same release"
#endif
#if defined(WITH_NPU_PROFILER)
#error "npuprof_npu.h: WITH_NPU_PROFILER is already defined by another header; include npuprof_npu.h first or rename that one"
#endif

/* Stands between a host clock read and a counter load: neither passes it.
   Why: a CPU reads its clock while earlier loads are still on their way, and starts later loads before it has read the clock.
   A bracket without this is a few ns wide around a load of a microsecond, and the error it states is not true. */
#if (!defined(__GNUC__) && !defined(__clang__)) || defined(__AVR__)
#define NPUPROF_NPU_FENCE_() NPUPROF_SIGNAL_FENCE_()
#elif defined(__SSE2__)
#define NPUPROF_NPU_FENCE_() __builtin_ia32_lfence()
#elif defined(__aarch64__)   /* Why dsb: isb alone does not wait for a load's value. */
#define NPUPROF_NPU_FENCE_() __asm__ volatile("dsb ld\n\tisb" ::: "memory")
#elif defined(__riscv)       /* Why all four: a clock read counts as device input. */
#define NPUPROF_NPU_FENCE_() __asm__ volatile("fence iorw, iorw" ::: "memory")
#else
#define NPUPROF_NPU_FENCE_() __atomic_thread_fence(__ATOMIC_SEQ_CST)
#endif

/* A function that this build does not have. */
#if defined(__clang__) || (defined(__GNUC__) && __GNUC__ >= 12)
#define NPUPROF_NPU_ABSENT_(why) NPUPROF_ATTRIBUTE_((unavailable("npuprof_npu.h: not with NPUPROF_FREESTANDING: " why)))
#else
#define NPUPROF_NPU_ABSENT_(why) NPUPROF_ATTRIBUTE_((error("npuprof_npu.h: not with NPUPROF_FREESTANDING: " why)))
#endif

/* How a counter of two words is read. Not used where one load holds all bits. */
enum {
    NPUPROF_NPU_HI_LO_HI = 0,            /* high, low, high again until both highs agree */
    NPUPROF_NPU_LO_LATCHES_HI = 1,       /* reading the low word freezes the high word */
    NPUPROF_NPU_SINGLE = 2               /* one load holds all bits */
};

/* The tick counter. Zero in a field means its default. */
typedef struct npuprof_npu_counter {
    size_t lo_offset, hi_offset;         /* bytes into the BAR; hi_offset unused when one load holds all bits */
    unsigned bits;                       /* 1 to 64 valid bits; 0 = 64 */
    unsigned access;                     /* width of one load: 32 or 64; 0 = 32 */
    int order;                           /* NPUPROF_NPU_HI_LO_HI and its siblings */
    bool counts_down, big_endian;        /* registers are little-endian unless big_endian is set */
    uint64_t hz;                         /* nominal rate, at most 10^15; 0 = unknown. Measured in either case */
    uint32_t lag_ns;                     /* a read may show the counter as it was up to this long before (a counter that software
                                            moves, a mirrored register); widens every anchor to the past, and by its whole length
                                            the error of sampled stamps */
} npuprof_npu_counter;

/* One field of a completion record. width_bytes 0: the device has no such field. */
typedef struct npuprof_npu_field {
    uint16_t offset;                     /* bytes into the entry, naturally aligned */
    uint8_t width_bytes;                 /* width of the load: 1, 2, 4, 8; 0 = absent */
    uint8_t lsb, bits;                   /* bit field inside that word; bits 0 = all of it */
} npuprof_npu_field;

/* One of the device's event counters. Free-running: its wraps are counted on as long as it is sampled once in each. */
typedef struct npuprof_npu_pmu {
    const char *name;                    /* argument of the device span; with the device's name, its counter track */
    npuprof_npu_counter counter;         /* where and how wide; hz and lag_ns are unused */
    bool is_busy;                        /* counts the ticks of desc.counter in which the device works: the argument is named
                                            busy_ticks, and NPU Run of the reports is taken from it */
} npuprof_npu_pmu;

/* Ring of completion records. count 0: the device has none. */
typedef struct npuprof_npu_ring {
    const volatile void *memory;         /* ring in host memory; NULL: it lies in the BAR at `offset` */
    size_t memory_bytes;
    size_t offset;                       /* bytes into the BAR */
    unsigned entry_bytes, count;         /* count: entries in the ring */
    size_t producer_offset;              /* BAR offset of the producer index (32-bit load) */
    unsigned producer_bits;              /* valid bits of it; 0 = 32 */
    bool producer_is_slot;               /* index of the next slot (0..count-1) instead of a free-running count of entries */
    bool big_endian;                     /* of the entries and the producer index */
    npuprof_npu_field sequence;          /* low bits of the entry's number (free-running count): proves the entry is the expected one */
    npuprof_npu_field job, start, end, pe, op, status, execution, instruction;
    const char *const *op_names;         /* op code -> span name; a code outside is named "op 17" */
    unsigned op_count;
    const char *category;                /* of the device spans; NULL = "NPU" */
    unsigned execution_op;               /* op code + 1 of the record that stands for the whole job; 0 = none */
} npuprof_npu_ring;

/* A device: where its registers are and how they behave. All-zero fields mean the default. Strings are not copied: they and
   op_names live as long as the npuprof_npu. */
typedef struct npuprof_npu_desc {
    const char *name;                    /* "npu0"; NULL = "npu" */
    /* Where: exactly one of the four. */
    volatile const void *bar;            /* a mapping the caller owns */
    size_t bar_bytes;                    /* its size */
    const char *resource;                /* a path, mapped read-only: sysfs resourceN, /dev/uioN, /dev/hpet, an ordinary file */
    int vfio_device_fd;                  /* a VFIO device's region; group and container are the caller's, as is the descriptor */
    unsigned vfio_region;                /* 0 to 5: a PCI BAR */
    bool vfio;
    uint64_t (*read_ticks)(void *user);  /* a function instead of a BAR; offsets, access and order are then unused */
    void *user;                          /* passed to read_ticks and wait */
    npuprof_npu_counter counter;
    npuprof_npu_ring ring;
    const npuprof_npu_pmu *pmu;          /* counters sampled with every sampled kernel, or with every drain that finds records */
    unsigned pmu_count;                  /* at most 8 */
    unsigned pe_count;                   /* 0 = 1 */
    int (*wait)(void *user);             /* as in npuprof_device; sampled blocks only */
    bool wait_around;
    size_t resource_offset;              /* where the registers begin in the resource or region */
    unsigned resource_map;               /* /dev/uioN: which of its maps; of a PCI device, the BAR */
    bool catch_sigbus;                   /* a mapping that dies reads as a dead device (SIGBUS above); not for `bar` */
    unsigned brackets;                   /* for each anchor; 0 = 8 */
    unsigned max_rate_ppm;               /* how far the device's rate may wander from its centre within three anchor
                                            intervals; 0 = 2. Larger is wider error bounds, smaller may make them untrue */
} npuprof_npu_desc;

/* Private parts of npuprof_npu. */
enum {
#ifndef NPUPROF_FREESTANDING
    NPUPROF_NPU_ANCHORS_ = 32,
#else
    NPUPROF_NPU_ANCHORS_ = 2,
#endif
    NPUPROF_NPU_JOBS_ = 256, NPUPROF_NPU_PMU_ = 8,
    NPUPROF_NPU_NAME_ = 64
};
#ifndef NPUPROF_FREESTANDING
typedef struct npuprof_npu_job_ {        /* a submission whose completion has not been seen */
    uint32_t state;                      /* 0 free, 1 ready, 2 held: whoever turned it to 2 owns the rest */
    uint32_t ticket;                     /* number of the submission */
    uint32_t skipped;                    /* a later one that found this entry held, and took another */
    uint32_t id, flags;                  /* NPUPROF_NPU_HAS_ID_ ...; others look at these two before they ask for the rest */
    uint64_t stream;
    npuprof_link_ link;
    char name[NPUPROF_NPU_NAME_];
} npuprof_npu_job_;

typedef struct npuprof_npu_pmu_state_ {  /* an event counter */
    npuprof_npu_pmu is;
    npuprof_site_ site;                  /* of its track */
    uint32_t epoch;                      /* + 1, of the last read; 0 = never */
    uint64_t raw, total;                 /* what it was; the sum of all steps since open */
    char track[NPUPROF_NPU_NAME_];
} npuprof_npu_pmu_state_;
#endif

/* An open device. `device` goes to WITH_BASE_PROFILER; all with a trailing underscore is private. */
typedef struct npuprof_npu {
    npuprof_device device;
    uint32_t mmio_reads;                 /* loads from the BAR since open */
    npuprof_npu_desc desc_;
    const volatile unsigned char *bar_;
    uint64_t lag_;                       /* counter.lag_ns in host ticks */
#ifdef NPUPROF_FREESTANDING
    uint64_t quick_;                     /* host ticks within which a read needs no division; 0 = none */
    int quick_shift_;                    /* device ticks are at most host ticks << that, or >> -that */
#endif
    void *map_;
    size_t map_bytes_;
    uint64_t config_at_;                 /* PCI configuration space: where in a file */
    int config_fd_;                      /* and which, + 1; 0 = none */
    uint32_t guard_, gone_;              /* its entry among the guards, + 1; a fault took the mapping away */
    bool is_virtual_function_;
    uint32_t number_;                    /* of the device in the arena; 0 = not open */
    uint32_t epoch_, draining_;
    uintptr_t lock_;                     /* who holds it; 0 = nobody */
    npuprof_anchor_ last_;               /* the last good read; device_ticks extended */
    bool has_last_, has_rate_, coarse_rate_;
    npuprof_anchor_ rate_from_, rate_to_;
#ifndef NPUPROF_FREESTANDING
    uint64_t second_;                    /* host ticks in a second */
#else   /* Why: 64-bit divisions are calls. */
    uint32_t second_;
    uint64_t interval_;                  /* host ticks from the last anchor to the next one */
#endif
    uint64_t best_width_, first_anchor_, renew_from_;
    npuprof_anchor_ anchors_[NPUPROF_NPU_ANCHORS_];
    uint32_t anchor_count_;
    uint64_t old_epoch_ticks_;           /* last value before the last reset */
    npuprof_result epoch_why_;           /* why this epoch began */
    uint32_t ids_;
#ifndef NPUPROF_FREESTANDING
    uint64_t ring_next_;                 /* number of the next entry to read */
    uint32_t tickets_, first_ticket_;
    uint64_t busy_since_;                /* host ticks since when a drain waits for a submission; 0 = it does not */
    bool ring_numbered_;
    uint32_t uses_ids_;
    npuprof_npu_pmu_state_ pmu_[NPUPROF_NPU_PMU_];
    npuprof_npu_job_ jobs_[NPUPROF_NPU_JOBS_];
#endif
} npuprof_npu;
