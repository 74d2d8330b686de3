/* npuprof_npu.h - the device's own clock and completion records on npuprof's timeline, read through its BAR.
   SPDX-License-Identifier: MIT

   ==== NPUPROF_NPU ============================================================================== >>doc ====

   QUICK START
     #define NPUPROF_IMPLEMENTATION              // in one file
     #include "npuprof.h"
     #include "npuprof_npu.h"

     static npuprof_npu npu;                     // storage is yours
     npuprof_npu_desc desc = {0};                // or mynpu_npu_desc() from `tools/npuprof.py gen`
     desc.name = "npu0";
     desc.resource = "/sys/bus/pci/devices/0000:01:00.0/resource0";
     desc.counter.lo_offset = 0x10;
     desc.counter.hi_offset = 0x14;
     npuprof_result result = npuprof_npu_open(&npu, &desc);
     if (result != NPUPROF_OK) puts(npuprof_result_string(result));

     WITH_NPU_PROFILER(&npu, queue, "conv1", "NPU", PROF_NO_ARGS, {
         submit(queue, "conv1");
         wait_for(queue);                        // without a completion ring the block must wait for the kernel
     });
     npuprof_npu_close(&npu);                    // before npuprof_dump(): it takes the last clock anchor

   TWO WAYS TO STAMP A KERNEL
     Sampled (no ring): the counter is read at both ends of the block, which must wait for the kernel. The device span is
     marked "stamp": "sampled". Each stream has a track of its own: "npu0 stream 7".
     Device-stamped (desc.ring): the device writes completion records with its own stamps. The block only notes who
     submitted; npuprof_npu_drain() turns records into device spans and draws the arrow. Nothing waits, and the
     submitting thread reads no register. Whole executions have a track of their own, "npu0 PE 1", where the arrows end, above that of
     their instructions, "npu0 PE 1 instructions".
     The argument `stream` of a device span is that of the block it belongs to, as a signed number.

   WHICH RECORD BELONGS TO WHICH SUBMISSION
     npuprof_npu_job(npu) inside the block gives a number to put into the command; the record's `job` field brings it back.
     Where the device chooses the number, npuprof_npu_set_job(npu, number) inside the block says which. With neither, records are
     matched in order: a record goes to the oldest submission whose stream is the record's PE, else to the oldest of all.
     A job is over with its record of `execution_op`; where that is 0, every record is a job of its own.
     Up to 256 submissions may be open; past that the oldest loses its arrow.

   CLOCK
     An anchor is a pair of host and device time: the narrowest of desc.brackets host-device-host brackets, half its width
     being its error. Two are taken at open, and again where device time begins anew. More follow at npuprof_npu_sync(), at close,
     and by the way in npuprof_npu_drain() and at the end of sampled blocks when the last one is older than the trace (1 ms, then 2 ms,
     4 ms ... 250 ms, and past 250 s a thousandth of the age, so that days fit the arena), or when the read lies outside the bound of what
     the anchors foretell: the rate changed. Then they come as quickly as after open. But for that, a sampled block reads no register more.
     The error bound of a device stamp is true if the device's rate stays within max_rate_ppm of a centre, and that centre
     changes at most once in an interval of anchors and not in the stretch beside it, up to the first anchor that is as far away as
     the interval is long. Call npuprof_npu_sync() before and after a change that you make. Where the rate before or
     behind an interval contradicts the one inside, the bound is wider and the span is flagged; more changes than that which leave no such
     trace in the anchors (they cancel out) cannot be seen. The nominal rate is only used until
     there are two anchors, with a factor of 4 either way.

   COUNTER
     Wraps are followed over any gap as long as the host clock tells their number: up to the gap in which the rate's uncertainty
     (what the anchors leave open, plus 100 ppm and twice max_rate_ppm) is half a period: 5,000 periods at best. Past that:
     NPUPROF_ERR_NPU_AMBIGUOUS and a new epoch of device time. A value that no number of wraps explains is a reset: a new epoch with
     anchors of its own, and NPUPROF_ERR_NPU_RESET once. A value that does not move for 100 ms: NPUPROF_ERR_NPU_STOPPED. All ones or
     all zeros where they cannot be the time: NPUPROF_ERR_NPU_DEAD. No span is made of such a read; its block has an event "no
     device span" that says why, and clock_sync of the trace counts them. A wide counter may be late by up to a second (one
     that software moves, and that was interrupted): it goes on where it stands.

   EVENT COUNTERS (desc.pmu)
     A sampled block reads them just inside its two stamps: the steps are arguments of the device span, the sums since open
     counter tracks ("npu0 macs"). With a ring they are read by each drain that finds records, and make tracks only. The library
     starts, selects and clears no counter: that is the driver's. One that is marked is_busy gives NPU Run of a sampled kernel
     in the reports, and NPU IoWait the rest of it.

   REGISTER LOADS (npuprof_npu.mmio_reads counts them)
     Sampled span: 2 where the low word alone is unambiguous (nearly always: up to the gap in which the rate's uncertainty is an
     eighth of the low word's period); else up to 4 with latched halves, 6 with split halves. For each event counter 2 more, 4 latched, 6 split.
     Block with a ring: none. Drain: 1 if it finds nothing; with n records, in the BAR their fields, one for each 32 of them,
     one to three for the counter, and half of what was said of event counters.
     Anchor that is due in a drain, after a change of rate or by npuprof_npu_sync(): desc.brackets times one to three. Split halves that
     were torn are read again: two loads more.

   WHERE THE REGISTERS ARE
     bar         a mapping that the driver or the firmware has already, or an array
     resource    /sys/bus/pci/devices/.../resourceN: a BAR, also one that begins inside a page. /dev/uioN: its map resource_map; where
                 the kernel does not list that map, BAR resource_map of its PCI device. /dev/hpet, other device files, ordinary
                 files, shared memory
     vfio        a region of a VFIO device
     read_ticks  a function: a vendor's ioctl, a PTP clock
     Mapped read-only, close-on-exec, no further than the registers reach. npuprof_npu_open() says what is wrong:
       _NOT_FOUND, _ACCESS  the path or region (kernel lockdown is _ACCESS, too)
       _NPU_DECODE_OFF      the BAR answers nothing; `echo 1 > enable` beside it switches it on
       _NPU_REMOVED         the device was pulled out or is off
       _NPU_OWNED           a driver has the BAR, and the kernel does not map it twice (CONFIG_IO_STRICT_DEVMEM)
       _NPU_IO_PORT         not memory
       _NPU_RANGE           the BAR, map, region or file is too small, or a register is not aligned
       _NPU_MAP             anything else that cannot be mapped
       _NPU_DEAD            it can, and reads all ones or all zeros

   SIGBUS
     Three kinds of mapping do not read as ones but raise SIGBUS: a VFIO region whose memory decode, power or device was switched
     off (a reset does that); a BAR of sysfs that a driver claims while it is mapped; a file that was cut. Unasked,
     the library installs no signal handler: such a read then ends the program, as it would in the driver itself.
     desc.catch_sigbus: while such a device is open there is a SIGBUS handler, which puts an empty page in place of its mapping and returns;
     faults elsewhere go to the handler that was there before. The device is _NPU_DEAD from then on; close and open it to go on.
     A program that installs a handler later calls npuprof_npu_fault(info->si_addr) in it. A thread that blocks SIGBUS is killed.
     A mapping that is yours (desc.bar) is yours to guard.

   MISTAKES PEOPLE MAKE
     - npuprof_dump() before npuprof_npu_close() or npuprof_npu_sync(): the last device spans are then extrapolated.
     - A simulated BAR whose counter stands at 0: that is what a dead device looks like. Start it anywhere else.

   FIRMWARE (NPUPROF_FREESTANDING)
     Sampled kernels: open, close, read, extend, sync, npuprof_npu_span() and WITH_NPU_PROFILER, by desc.bar or desc.read_ticks. A
     block's device span is its ticks and its stream, 96 bytes of arena (80 with NPUPROF_NO_JSON); an anchor is 80 (64). The host maps them
     when it converts the image, by the anchors and with the bound of CLOCK above, checks that each span lies inside its host call, and draws
     the arrow and the tracks. The target's own JSON leaves device spans out, and counts them as left_out. sizeof(npuprof_npu) is 512
     bytes on a Cortex-M; it takes 10 KB of flash.
     On the way of a kernel there are the two counter reads, no division and no 64-bit product, as long as the counter is at most an
     eighth of a period from its last read (of the low word's, where it is split) and within a factor of 4 of the rate of the last two
     anchors. Else, and with an anchor that is due, up to some ten thousand instructions to find the wraps or the new rate. A change of
     rate by less is not noticed on the target and brings no anchors by itself: the host flags it, npuprof_npu_sync() announces it.
     Not there: desc.resource and desc.vfio, a ring, and 64-bit loads on a 32-bit machine are NPUPROF_ERR_UNSUPPORTED at open; desc.pmu is
     not sampled, and the metadata say so; npuprof_npu_drain, _job, _set_job and _host_ns do not compile. Tasks, cores or interrupts that read one device at once do not
     wait: the later one has NPUPROF_ERR_NPU_BUSY. npuprof_clear() forgets the device and its anchors: close before it, open
     behind it. Where the recorder's stamps wrap (2^47 of NPUPROF_NOW()'s ticks), the device may begin a new epoch.

   TAGS  >>npu/types >>npu/api >>npu/macros | >>npu/mmio >>npu/map >>npu/clock >>npu/anchors >>npu/ring >>npu/kernel >>npu/open
   ========================================================================================================== */
#ifndef NPUPROF_NPU_H
#define NPUPROF_NPU_H

/* ==== src/npu/types.h =================================================================== >>npu/types ==== */

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
/* ==== src/npu/api.h ======================================================================= >>npu/api ==== */

NPUPROF_BEGIN_C_

/* What NPUPROF_FREESTANDING does not have: a call of it does not compile, and the message says why. */
#if !defined(NPUPROF_FREESTANDING) || defined(NPUPROF_OFF)
#define NPUPROF_NPU_HOSTED_FN_(why, type, name, params, ...) NPUPROF_FN_(type, name, params, __VA_ARGS__)
#else
#define NPUPROF_NPU_HOSTED_FN_(why, type, name, params, ...) NPUPROF_C_ type name params NPUPROF_NPU_ABSENT_(why);
#endif
#define NPUPROF_NPU_NO_RING_ "a completion ring is read on a host; sample the kernels with WITH_NPU_PROFILER, or npuprof_npu_span() your own stamps"

/* Opens a device: checks the description, maps the resource, reads the counter, takes two clock anchors. desc is copied (strings
   are not). Blocks for 0.1 ms, some more where the counter is slow, stands still or reads all ones or zeros. *npu is
   always initialised, so npuprof_npu_close() is right after a failure, too. One thread.
   NPUPROF_ERR_ARGUMENT (a NULL, too many event counters), _NPU_SOURCE, _NPU_COUNTER, _NPU_RATE, _NPU_RANGE, those of WHERE THE REGISTERS ARE above, _NPU_DEAD,
   _NPU_TORN, _TABLE_FULL, _UNSUPPORTED (vfio on another system than Linux; a resource where there is no mmap). */
NPUPROF_FN_(npuprof_result, npuprof_npu_open, (npuprof_npu *npu, const npuprof_npu_desc *desc),
            NPUPROF_UNUSED_(desc); npu->device.name = NULL; npu->device.wait = NULL; npu->device.user = NULL;
            npu->device.wait_around = false; npu->mmio_reads = 0; return NPUPROF_OK;)
/* Drains the ring, takes the last anchor, unmaps. Records left in the ring that cannot be read are counted as lost. A
   second close does nothing. One thread; no other call on this npu may be running. */
NPUPROF_FN_(void, npuprof_npu_close, (npuprof_npu *npu), NPUPROF_UNUSED_(npu);)
/* The counter now, extended to 64 bits. One register load where the low word is enough, else 2 or 3; at the begin of a new epoch those of
   two anchors.
   Any thread. *ticks is set with every result: NPUPROF_OK; _NPU_RESET, _NPU_AMBIGUOUS: a value of a new epoch (once, then OK again);
   _NPU_STOPPED (_OK, the same value, for the first 100 ms), _NPU_DEAD (or _NPU_REMOVED, _NPU_DECODE_OFF, where the PCI
   configuration tells why), _NPU_TORN, _NPU_BUSY (a signal handler that interrupted another call of its thread, or another thread's call
   that has not run for 5 s): the last good value. A call of another thread that runs is waited for. */
NPUPROF_FN_(npuprof_result, npuprof_npu_read, (npuprof_npu *npu, uint64_t *ticks),
            NPUPROF_UNUSED_(npu); *ticks = 0; return NPUPROF_OK;)
/* A raw stamp of the counter's width as extended ticks: the value nearest to now. Good for stamps up to half a period old.
   Any thread; one register load only where the host clock alone does not tell. Not extended where npuprof_npu_read() would be
   NPUPROF_ERR_NPU_BUSY. */
NPUPROF_FN_(uint64_t, npuprof_npu_extend, (npuprof_npu *npu, uint64_t raw), NPUPROF_UNUSED_(npu); NPUPROF_UNUSED_(raw); return 0;)
/* Takes a clock anchor now, before and after a change of the device's rate for instance. Any thread. Waits up to 2 ms for a
   counter that stands still. Results as npuprof_npu_read(), and NPUPROF_ERR_TABLE_FULL: the anchor is not in the arena.
   A second anchor without any time in between is no anchor, and OK. */
NPUPROF_FN_(npuprof_result, npuprof_npu_sync, (npuprof_npu *npu), NPUPROF_UNUSED_(npu); return NPUPROF_OK;)
/* Extended ticks of the current epoch on npuprof_now_ns()'s clock, by the anchors known so far; true within *error_ns under
   the assumptions of CLOCK above. error_ns may be NULL. Any thread. Takes a second anchor if there is only one.
   NPUPROF_ERR_NPU_NO_ANCHOR if that cannot be had, _NPU_BUSY as above; *ns and *error_ns are 0 then. */
NPUPROF_NPU_HOSTED_FN_("the host maps the ticks when it converts the image", npuprof_result, npuprof_npu_host_ns, (npuprof_npu *npu, uint64_t ticks, int64_t *ns, uint64_t *error_ns),
            NPUPROF_UNUSED_(npu); NPUPROF_UNUSED_(ticks); *ns = 0; if (error_ns) *error_ns = 0; return NPUPROF_OK;)
/* Turns the completion records written since the last drain into device spans, and takes an anchor if one is due. Any thread; of
   two at once one works and the other returns OK. Writes nothing to the device. Records of jobs submitted while the gate
   was open are recorded even if it is closed now; others only while it is open.
   Arguments of the spans: stream where the submission is known, job, execution_index, instruction_index, and status where it is not 0.
   Records overwritten before they were read, or with impossible stamps, are counted as lost (device_ring). A record whose
   submission is just being changed by a thread that does not run stays in the ring for the next drain, for a second at most
   and not where the ring is half full; it then has no arrow.
   NPUPROF_ERR_NPU_NO_RING; _NPU_DEAD, _NPU_TORN, _NPU_BUSY: nothing was taken; _NPU_RING: the index went back or is out of range, and is followed from
   where it is now; _NPU_RESET and the other results of npuprof_npu_read(): the records were taken. */
NPUPROF_NPU_HOSTED_FN_(NPUPROF_NPU_NO_RING_, npuprof_result, npuprof_npu_drain, (npuprof_npu *npu), NPUPROF_UNUSED_(npu); return NPUPROF_OK;)
/* A device span by hand, in extended ticks of the current epoch, on the track of that PE. end before start is recorded with
   length 0. Strings are copied. Only while the gate is open. Any thread. */
NPUPROF_FN_(void, npuprof_npu_span, (npuprof_npu *npu, unsigned pe, const char *name, const char *cat, uint64_t start_ticks,
                                     uint64_t end_ticks, npuprof_args args),
            NPUPROF_UNUSED_(npu); NPUPROF_UNUSED_(pe); NPUPROF_UNUSED_(name); NPUPROF_UNUSED_(cat); NPUPROF_UNUSED_(start_ticks);
            NPUPROF_UNUSED_(end_ticks); NPUPROF_UNUSED_(args);)
/* A number for the command being submitted; to be called inside a WITH_NPU_PROFILER block, once for each command. Never 0, and
   never one that the ring's job field would cut to 0. Outside a recorded block: a number whose records are left out. OFF: always 1.
   Any thread. */
NPUPROF_NPU_HOSTED_FN_(NPUPROF_NPU_NO_RING_, uint32_t, npuprof_npu_job, (npuprof_npu *npu),
            NPUPROF_UNUSED_(npu); return 1u;)
/* The number the device chose for the command submitted in this WITH_NPU_PROFILER block. A drain that runs between the submission and
   this call may see the record first; it then has no arrow. Outside a recorded block: its records are left out. */
NPUPROF_NPU_HOSTED_FN_(NPUPROF_NPU_NO_RING_, void, npuprof_npu_set_job, (npuprof_npu *npu, uint32_t id), NPUPROF_UNUSED_(npu); NPUPROF_UNUSED_(id);)

#ifndef NPUPROF_FREESTANDING
/* This device's clock for npuprof_bench(): stamps are reads of its counter, the time between two is what its anchors measure, which the
   nominal rate has no part in. Its results are those of npuprof_npu_read() and npuprof_npu_host_ns(). */
NPUPROF_FN_(npuprof_bench_clock, npuprof_npu_clock, (npuprof_npu *npu),
            { npuprof_bench_clock host_ = { NULL, NULL, NULL }; NPUPROF_UNUSED_(npu); return host_; })
#endif

/* For a SIGBUS handler of your own (SIGBUS above): whether the address lies in a mapping of an open device with catch_sigbus. That
   mapping is then replaced, the device reads as dead, and the handler may return. Any thread, in a signal handler. */
NPUPROF_FN_(bool, npuprof_npu_fault, (const void *address), NPUPROF_UNUSED_(address); return false;)

/* What a block keeps on the stack. */
#ifdef NPUPROF_FREESTANDING
typedef struct npuprof_npu_block_ {
    npuprof_token_ token;                /* of the host span; 0 = not recorded */
    npuprof_npu *npu;
    npuprof_result result;               /* of the read at the beginning */
    uint32_t epoch;
    uint64_t start_ticks, stream;
} npuprof_npu_block_;

NPUPROF_API_ void npuprof_npu_enter_(npuprof_npu_block_ *block, npuprof_npu *npu, uint64_t stream);
NPUPROF_API_ npuprof_token_ npuprof_npu_begin_(npuprof_npu_block_ *block, npuprof_token_ token);
#else
typedef struct npuprof_npu_block_ {
    npuprof_token_ token;                /* of the host span; 0 = not recorded */
    npuprof_npu *npu;
    bool sampled;                        /* start_ticks is good */
    npuprof_result result;               /* of the read at the beginning */
    uint32_t epoch, ticket, pmu_good;
    uint64_t start_ticks, stream, pmu[NPUPROF_NPU_PMU_];
    npuprof_link_ link;
    const char *name, *category;         /* point to the copies below unless they are literals */
    char name_copy[2 * NPUPROF_NPU_NAME_], category_copy[NPUPROF_NPU_NAME_];
} npuprof_npu_block_;

NPUPROF_API_ npuprof_token_ npuprof_npu_begin_(npuprof_npu_block_ *block, npuprof_npu *npu, uint64_t stream, npuprof_site_ *site,
                                               npuprof_keys_ *keys, bool literals, const char *category, const char *name,
                                               npuprof_args args);
#endif
NPUPROF_API_ void npuprof_npu_end_(npuprof_npu_block_ *block);

NPUPROF_END_C_
/* ==== src/npu/macros.h ================================================================= >>npu/macros ==== */

#ifndef NPUPROF_OFF
/* Why no warning: as for npuprof_leave_scope_(). */
NPUPROF_MAYBE_PUSH_
NPUPROF_INLINE_ void npuprof_npu_leave_(npuprof_npu_block_ *block)
{
    if (block->token && npuprof_is_open_(block->token)) npuprof_npu_end_(block);
}
NPUPROF_MAYBE_POP_
#ifdef __cplusplus
struct npuprof_npu_auto_block_ : npuprof_npu_block_ {
    npuprof_npu_auto_block_() { token = 0; }
    ~npuprof_npu_auto_block_() { npuprof_npu_leave_(this); }
    npuprof_npu_auto_block_(const npuprof_npu_auto_block_ &) = delete;
    npuprof_npu_auto_block_ &operator=(const npuprof_npu_auto_block_ &) = delete;
};
#endif
#endif

/* A queue's name, an integer or a pointer, as a number. */
#ifdef __cplusplus
#define NPUPROF_STREAM_(stream) NPUPROF_CAST_(uint64_t, stream)
#else
#define NPUPROF_STREAM_(stream) ((uint64_t)(uintptr_t)(stream))
#endif

#ifndef NPUPROF_OFF
#define NPUPROF_NPU_SELF_(id) (&id)
#ifdef __cplusplus
#define NPUPROF_NPU_BLOCK_(id, level, sites, begin) \
    sites npuprof_npu_auto_block_ id; if (NPUPROF_OPEN_(level)) id.token = (begin)
#else
#define NPUPROF_NPU_BLOCK_(id, level, sites, begin) \
    sites NPUPROF_ATTRIBUTE_((unused, cleanup(npuprof_npu_leave_))) npuprof_npu_block_ id; \
    id.token = 0; if (NPUPROF_OPEN_(level)) id.token = (begin)
#endif
#else
#define NPUPROF_NPU_SELF_(id) NPUPROF_STATIC_CAST_(npuprof_npu_block_ *, NPUPROF_NULL_)
#define NPUPROF_NPU_BLOCK_(id, level, sites, begin) NPUPROF_SCOPE_(id, level, sites, begin)
#endif

/* A host span around code that gives work to the device, and the device span for it (TWO WAYS TO STAMP A KERNEL above). code is
   expanded once; an exit by return, break, continue or goto ends both. npu: npuprof_npu *; stream: any integer or
   pointer that names a queue; name and cat: any strings, copied; args: of the host span. The device span of a sampled block
   has the first 127 bytes of a name and 63 of a category that are no literals; that of a ring without `op` the first 63 of the
   name; cut between characters. */
#define WITH_NPU_PROFILER(npu, stream, name, cat, args, ...) \
    WITH_NPU_PROFILER_LEVEL(1, npu, stream, name, cat, args, __VA_ARGS__)
#define WITH_NPU_PROFILER_LEVEL(level, npu, stream, name, cat, args, ...) \
    if (1) { NPUPROF_WITH_NPU_(__COUNTER__, level, npu, stream, name, cat, NPUPROF_CHECKED_LIST_(args)); { __VA_ARGS__; } } else ((void)0)

#ifdef NPUPROF_FREESTANDING
#define NPUPROF_WITH_NPU_(id, level, npu, stream, name, cat, args)                                              \
    NPUPROF_NPU_BLOCK_(NPUPROF_GLUE_(npuprof_npu_block_, id), level, NPUPROF_NAMED_SITE_(id, NPUPROF_KIND_SPAN, cat, name), \
                       (npuprof_npu_enter_(NPUPROF_NPU_SELF_(NPUPROF_GLUE_(npuprof_npu_block_, id)), (npu), NPUPROF_STREAM_(stream)), \
                        npuprof_npu_begin_(NPUPROF_NPU_SELF_(NPUPROF_GLUE_(npuprof_npu_block_, id)),            \
                                           NPUPROF_BEGIN_NAMED_(id, NPUPROF_NULL_, NPUPROF_KIND_SPAN, (cat), (name), (args)))))
#else
#define NPUPROF_WITH_NPU_(id, level, npu, stream, name, cat, args)                                              \
    NPUPROF_NPU_BLOCK_(NPUPROF_GLUE_(npuprof_npu_block_, id), level,                                            \
                       NPUPROF_SITE_(id, NPUPROF_KIND_SPAN, NPUPROF_NULL_, NPUPROF_NULL_) NPUPROF_KEYS_OF_(id),                   \
                       npuprof_npu_begin_(NPUPROF_NPU_SELF_(NPUPROF_GLUE_(npuprof_npu_block_, id)), (npu),      \
                                          NPUPROF_STREAM_(stream),                                        \
                                          NPUPROF_CONSTANT_(name) && NPUPROF_CONSTANT_(cat) ? NPUPROF_REF_(id, NPUPROF_NULL_, NPUPROF_NULL_) : NPUPROF_NULL_, \
                                          NPUPROF_KEYS_REF_(id),                                                \
                                          NPUPROF_CONSTANT_(name) && NPUPROF_CONSTANT_(cat), (cat), (name), (args)))
#endif

#endif /* NPUPROF_NPU_H: end of header */

#if defined(NPUPROF_IMPLEMENTATION) && !defined(NPUPROF_OFF) && !defined(NPUPROF_NPU_IMPLEMENTATION_DONE_)
#define NPUPROF_NPU_IMPLEMENTATION_DONE_

#ifndef NPUPROF_FREESTANDING
#include <string.h>
#elif !defined(NPUPROF_IMPLEMENTATION_DONE_)
#error "npuprof_npu.h: the implementing file includes npuprof.h with NPUPROF_IMPLEMENTATION, too"
#endif

NPUPROF_BEGIN_C_
/* Why: the file around may have globals of any name. */
NPUPROF_SHADOW_PUSH_

/* ==== src/npu/mmio.h ===================================================================== >>npu/mmio ==== */

#ifdef NPUPROF_FREESTANDING
/* What the code below wants of the recorder, here in cells of its list. */
static uint64_t npuprof_mul_div_(uint64_t a, uint64_t b, uint64_t c, bool up) { return npuprof_mul_div_by_bits_(a, b, c, up); }
static uint64_t npuprof_ticks_(void) { return npuprof_fw_stamp_masked_(npuprof_fw_arena_); }
/* Why the device's name: so the target's own JSON shows whose record it is. */
static void npuprof_npu_put_record_(const char *name, uint32_t kind, const uint64_t *values, npuprof_args args)
{
    const char *const texts[3] = { name, NULL, NULL };
    (void)npuprof_fw_put_named_(NPUPROF_FW_REF_OF_KIND_(kind), false, texts, values, args);
}
#ifdef NPUPROF_NO_JSON
#define NPUPROF_NPU_NAME_OF_(npu) NULL
#else
#define NPUPROF_NPU_NAME_OF_(npu) (npu)->device.name
#endif
#endif

enum {
    NPUPROF_NPU_TRIES_ = 8,              /* to get two equal high words */
    NPUPROF_NPU_BATCH_ = 32,             /* ring entries copied before the producer is read again */
    NPUPROF_NPU_FREE_ = 0, NPUPROF_NPU_READY_ = 1, NPUPROF_NPU_HELD_ = 2,
    NPUPROF_NPU_HAS_ID_ = 1, NPUPROF_NPU_IN_BLOCK_ = 2,          /* its block has not ended */
    NPUPROF_NPU_MUTED_ = 4,                                      /* not to be recorded */
    NPUPROF_NPU_OWNER_ = 8                                       /* times the slot of the thread that submitted it */
};

static uint64_t npuprof_npu_mask_(unsigned bits) { return bits >= 64 ? UINT64_MAX : ((uint64_t)1 << bits) - 1; }

/* The only loads from a device, of exactly that width, from an address aligned to it. Later loads are not made earlier. */
static uint64_t npuprof_npu_load_word_(const volatile void *address, unsigned bytes, bool big_endian)
{
    uint64_t v;
    switch (bytes) {
#ifdef __AVR__                           /* Why: there an atomic load is a call. */
    case 1: return *(const volatile uint8_t *)address;
    case 2: v = *(const volatile uint16_t *)address; break;
    case 4: v = *(const volatile uint32_t *)address; break;
#else
    case 1: return NPUPROF_LOAD_ACQUIRE_((const volatile uint8_t *)address);
    case 2: v = NPUPROF_LOAD_ACQUIRE_((const volatile uint16_t *)address); break;
    case 4: v = NPUPROF_LOAD_ACQUIRE_((const volatile uint32_t *)address); break;
#endif
    default:
#if UINTPTR_MAX > 0xFFFFFFFFu
        v = NPUPROF_LOAD_ACQUIRE_((const volatile uint64_t *)address);
#else   /* Why: an atomic 64-bit load is a call there, and may write. */
        v = *(const volatile uint64_t *)address;
#endif
        break;
    }
#if defined(__BYTE_ORDER__) && __BYTE_ORDER__ == __ORDER_BIG_ENDIAN__
    big_endian = !big_endian;
#endif
    if (!big_endian) return v;
    uint64_t turned = 0;
    for (unsigned i = 0; i < bytes; i++) turned |= (v >> 8 * i & 0xFF) << 8 * (bytes - 1 - i);
    return turned;
}

static uint64_t npuprof_npu_load_register_(npuprof_npu *npu, size_t offset, unsigned bytes, bool big_endian)
{
#ifndef NPUPROF_FREESTANDING
    NPUPROF_ADD_(&npu->mmio_reads, 1u);
#else   /* Why: whoever reads holds the lock. */
    npu->mmio_reads++;
#endif
    const uint64_t value = npuprof_npu_load_word_(npu->bar_ + offset, bytes, big_endian);
    return NPUPROF_LOAD_(&npu->gone_) ? npuprof_npu_mask_(8 * bytes) : value;
}

/* The host clock before and after a counter load, ordered against it. */
static uint64_t npuprof_npu_ticks_before_(void)
{
    const uint64_t now = npuprof_ticks_();
    NPUPROF_NPU_FENCE_();
    return now;
}
static uint64_t npuprof_npu_ticks_after_(void)
{
    NPUPROF_NPU_FENCE_();
    return npuprof_ticks_();
}

/* The counter as the device shows it. */
typedef struct npuprof_npu_raw_ {
    uint64_t value;                      /* counting up, desc.counter.bits valid bits; of low_bits only if that was asked for */
    uint64_t before, after;              /* host ticks around the load that tells the time */
    bool ones, zeros;                    /* every bit loaded was 1, or 0 */
} npuprof_npu_raw_;

static bool npuprof_npu_is_split_(const npuprof_npu_counter *c) { return c->order != NPUPROF_NPU_SINGLE && c->bits > c->access; }

/* low_only: the low word alone. NPUPROF_OK, NPUPROF_ERR_NPU_TORN, or _NPU_DEAD where a fault took the mapping away. */
static npuprof_result npuprof_npu_load_counter_(npuprof_npu *npu, const npuprof_npu_counter *c, bool low_only, npuprof_npu_raw_ *raw)
{
    const unsigned bytes = c->access / 8;
    const uint64_t word = npuprof_npu_mask_(c->access);
    uint64_t low = 0, high = 0, again;
    npuprof_result result = NPUPROF_OK;
    raw->ones = raw->zeros = false;
    if (npu->desc_.read_ticks) {
        raw->before = npuprof_npu_ticks_before_();
        low = npu->desc_.read_ticks(npu->desc_.user) & npuprof_npu_mask_(c->bits);
        raw->after = npuprof_npu_ticks_after_();
        raw->ones = low == npuprof_npu_mask_(c->bits);
        raw->zeros = low == 0;
    } else if (!npuprof_npu_is_split_(c) || low_only) {
        raw->before = npuprof_npu_ticks_before_();
        low = npuprof_npu_load_register_(npu, c->lo_offset, bytes, c->big_endian);
        raw->after = npuprof_npu_ticks_after_();
        raw->ones = low == word;
        raw->zeros = low == 0;
    } else if (c->order == NPUPROF_NPU_LO_LATCHES_HI) {
        raw->before = npuprof_npu_ticks_before_();
        low = npuprof_npu_load_register_(npu, c->lo_offset, bytes, c->big_endian);
        raw->after = npuprof_npu_ticks_after_();
        high = npuprof_npu_load_register_(npu, c->hi_offset, bytes, c->big_endian);
        raw->ones = low == word && high == word;
        raw->zeros = low == 0 && high == 0;
    } else {
        again = npuprof_npu_load_register_(npu, c->hi_offset, bytes, c->big_endian);
        result = NPUPROF_ERR_NPU_TORN;
        for (int i = 0; i < NPUPROF_NPU_TRIES_ && result != NPUPROF_OK; i++) {
            high = again;
            raw->before = npuprof_npu_ticks_before_();
            low = npuprof_npu_load_register_(npu, c->lo_offset, bytes, c->big_endian);
            raw->after = npuprof_npu_ticks_after_();
            again = npuprof_npu_load_register_(npu, c->hi_offset, bytes, c->big_endian);
            if (again == high) result = NPUPROF_OK;
        }
        raw->ones = low == word && high == word;
        raw->zeros = low == 0 && high == 0;
    }
    raw->value = c->bits > c->access ? low | high << (c->access & 63) : low;
    if (c->counts_down) raw->value = ~raw->value;
    raw->value &= npuprof_npu_mask_(low_only && c->bits > c->access ? c->access : c->bits);
    raw->before = npuprof_saturating_sub_(raw->before, npu->lag_);
    return NPUPROF_LOAD_(&npu->gone_) ? NPUPROF_ERR_NPU_DEAD : result;
}

#ifndef NPUPROF_FREESTANDING
/* One field of a ring entry, whose first byte is at `entry`. */
static uint64_t npuprof_npu_load_field_(npuprof_npu *npu, const volatile unsigned char *entry, npuprof_npu_field field)
{
    if (!field.width_bytes) return 0;
    if (!npu->desc_.ring.memory) NPUPROF_ADD_(&npu->mmio_reads, 1u);
    const uint64_t word = npuprof_npu_load_word_(entry + field.offset, field.width_bytes, npu->desc_.ring.big_endian);
    return word >> field.lsb & npuprof_npu_mask_(field.bits ? field.bits : 8u * field.width_bytes - field.lsb);
}

#endif
/* ==== src/npu/map.h ======================================================================= >>npu/map ==== */

#if !defined(_WIN32) && !defined(NPUPROF_FREESTANDING)
NPUPROF_END_C_
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>
#ifdef __linux__
#include <sys/ioctl.h>
#include <sys/sysmacros.h>
#endif
NPUPROF_BEGIN_C_

#ifndef NPUPROF_NPU_SYSFS_              /* a test has its own */
#define NPUPROF_NPU_SYSFS_ "/sys"
#endif

/* What is to be mapped, as the files around it tell. */
typedef struct npuprof_npu_target_ {
    int fd;
    bool at_begin;                       /* can be mapped from its first page only */
    bool owned;                          /* a driver is bound */
    uint64_t origin;                     /* where it begins in the file */
    uint64_t before;                     /* bytes in the first page that are not the device's */
    uint64_t bytes;                      /* how long it is; UINT64_MAX: nobody says */
} npuprof_npu_target_;

static npuprof_result npuprof_npu_map_error_(int error)
{
    if (error == EBUSY) return NPUPROF_ERR_NPU_OWNED;
    return error == EACCES || error == EPERM ? NPUPROF_ERR_ACCESS : NPUPROF_ERR_NPU_MAP;
}
static npuprof_result npuprof_npu_open_error_(int error)
{
    return error == ENOENT || error == ENODEV || error == ENXIO || error == ENOTDIR ? NPUPROF_ERR_NOT_FOUND : npuprof_npu_map_error_(error);
}

/* What the configuration space says of a PCI device: NPUPROF_OK (or nothing), _NPU_REMOVED, _NPU_DECODE_OFF. */
static npuprof_result npuprof_npu_pci_state_(const npuprof_npu *npu)
{
    unsigned char b[6];
    if (npu->config_fd_ <= 0) return NPUPROF_OK;
    const int error = errno;
    const ssize_t n = pread(npu->config_fd_ - 1, b, sizeof b, (off_t)npu->config_at_);
    const bool gone = n < 0 && errno == ENODEV;
    errno = error;
    if (n != (ssize_t)sizeof b) return gone ? NPUPROF_ERR_NPU_REMOVED : NPUPROF_OK;
    if ((b[0] & b[1] & b[2] & b[3]) == 0xFF) return NPUPROF_ERR_NPU_REMOVED;
    return b[4] & 2 || npu->is_virtual_function_ ? NPUPROF_OK : NPUPROF_ERR_NPU_DECODE_OFF;
}

/* Hand in hand with sysfs and VFIO, which only Linux has. */
#ifdef __linux__
/* Numbers of one line of a small file of sysfs, such as "0x10 0xfff"; how many there are. */
static int npuprof_npu_read_numbers_(const char *path, unsigned line, uint64_t *number, int room)
{
    char text[2048], *p = text;
    int count = 0;
    const int fd = npuprof_os_open_above_2_(path, O_RDONLY);
    if (fd < 0) return 0;
    const ssize_t n = read(fd, text, sizeof text - 1);
    close(fd);
    text[n > 0 ? n : 0] = 0;
    for (; line && p; line--) p = (p = strchr(p, '\n')) ? p + 1 : NULL;
    while (p && count < room) {
        char *end;
        number[count] = strtoull(p, &end, 0);
        if (end == p) break;
        count++;
        p = *end == '\n' ? NULL : end;
    }
    return count;
}

/* A PCI device by its folder in sysfs, which the path begins with: `length` bytes. bar < 0: none of its BARs. */
static npuprof_result npuprof_npu_pci_target_(npuprof_npu *npu, npuprof_npu_target_ *target, const char *path, size_t length, long bar)
{
    enum { io_ports = 0x100 };
    char other[PATH_MAX];
    uint64_t line[3];                    /* start, end, flags */
    snprintf(other, sizeof other, "%.*sresource", (int)length, path);
    if (bar >= 0 && npuprof_npu_read_numbers_(other, (unsigned)bar, line, 3) == 3 && line[1] > line[0]) {
        if (line[2] & io_ports) return NPUPROF_ERR_NPU_IO_PORT;
        target->before = line[0] % (uint64_t)sysconf(_SC_PAGESIZE);
        target->bytes = line[1] - line[0] + 1;
        snprintf(other, sizeof other, "%.*sdriver", (int)length, path);
        target->owned = access(other, F_OK) == 0;
    }
    snprintf(other, sizeof other, "%.*sphysfn", (int)length, path);
    npu->is_virtual_function_ = access(other, F_OK) == 0;        /* its decode is its physical function's */
    snprintf(other, sizeof other, "%.*sconfig", (int)length, path);
    npu->config_fd_ = npuprof_os_open_above_2_(other, O_RDONLY) + 1;
    return NPUPROF_OK;
}

/* The number of a sysfs file resourceN or resourceN_wc; -1: another file. */
static long npuprof_npu_bar_number_(const char *name)
{
    char *end;
    if (strncmp(name, "resource", 8) != 0 || name[8] < '0' || name[8] > '9') return -1;
    const long bar = strtol(name + 8, &end, 10);
    return bar < 32 && (!*end || strcmp(end, "_wc") == 0) ? bar : -1;
}

/* A map of /dev/uioN. *path is changed to a resource file of its PCI device where the kernel lists no such map. */
static npuprof_result npuprof_npu_uio_target_(npuprof_npu *npu, npuprof_npu_target_ *target, dev_t device, char path[PATH_MAX])
{
    char folder[256], name[320];
    const unsigned map = npu->desc_.resource_map;
    target->origin = map * (uint64_t)sysconf(_SC_PAGESIZE);
    target->at_begin = map > 0;
    snprintf(folder, sizeof folder, "%s/dev/char/%u:%u/", NPUPROF_NPU_SYSFS_, major(device), minor(device));
    snprintf(name, sizeof name, "%ssubsystem", folder);
    const ssize_t n = readlink(name, path, PATH_MAX - 1);
    path[n > 0 ? n : 0] = 0;
    if (n < 4 || strcmp(path + n - 4, "/uio") != 0) return NPUPROF_OK;           /* some other device */
    snprintf(name, sizeof name, "%smaps/map%u/size", folder, map);
    if (npuprof_npu_read_numbers_(name, 0, &target->bytes, 1) == 1) {
        snprintf(name, sizeof name, "%smaps/map%u/offset", folder, map);
        (void)npuprof_npu_read_numbers_(name, 0, &target->before, 1);
        target->bytes = npuprof_saturating_sub_(target->bytes, target->before);           /* which counts from the page's begin */
        target->at_begin = true;
        snprintf(path, PATH_MAX, "%sdevice/", folder);
        return npuprof_npu_pci_target_(npu, target, path, strlen(path), -1);
    }
    snprintf(path, PATH_MAX, "%sdevice/resource%u", folder, map);
    target->origin = 0;
    target->at_begin = false;
    close(target->fd);
    target->fd = npuprof_os_open_above_2_(path, O_RDONLY);
    return target->fd < 0 ? npuprof_npu_open_error_(errno) : NPUPROF_OK;
}

static npuprof_result npuprof_npu_linux_target_(npuprof_npu *npu, npuprof_npu_target_ *target, const struct stat *info)
{
    char path[PATH_MAX];
    if (!realpath(npu->desc_.resource, path)) return NPUPROF_OK;
    if (S_ISCHR(info->st_mode)) {
        const npuprof_result result = npuprof_npu_uio_target_(npu, target, info->st_rdev, path);
        if (result != NPUPROF_OK) return result;
    }
    const char *slash = strrchr(path, '/');
    const long bar = slash ? npuprof_npu_bar_number_(slash + 1) : -1;
    return bar < 0 ? NPUPROF_OK : npuprof_npu_pci_target_(npu, target, path, (size_t)(slash + 1 - path), bar);
}

/* Why by hand: <linux/vfio.h> is not everywhere, and these structures cannot change. */
typedef struct npuprof_npu_vfio_device_ { uint32_t argsz, flags, regions, interrupts, capabilities, padding; } npuprof_npu_vfio_device_;
typedef struct npuprof_npu_vfio_region_ { uint32_t argsz, flags, index, capabilities; uint64_t size, offset; } npuprof_npu_vfio_region_;

static npuprof_result npuprof_npu_ask_vfio_(int fd, unsigned index, npuprof_npu_vfio_region_ *region)
{
    memset(region, 0, sizeof *region);
    region->argsz = sizeof *region;
    region->index = index;
    if (ioctl(fd, _IO(';', 108), region) == 0) return region->size ? NPUPROF_OK : NPUPROF_ERR_NOT_FOUND;
    return errno == ENODEV ? NPUPROF_ERR_NPU_REMOVED : errno == EINVAL ? NPUPROF_ERR_NOT_FOUND : NPUPROF_ERR_NPU_MAP;
}

static npuprof_result npuprof_npu_vfio_target_(npuprof_npu *npu, npuprof_npu_target_ *target)
{
    enum { is_pci = 2, can_mmap = 4, config = 7, bars = 6 };
    npuprof_npu_vfio_device_ device;
    npuprof_npu_vfio_region_ region, space;
    const unsigned index = npu->desc_.vfio_region;
    target->fd = npu->desc_.vfio_device_fd;
    const npuprof_result result = npuprof_npu_ask_vfio_(target->fd, index, &region);
    if (result != NPUPROF_OK) return result;
    memset(&device, 0, sizeof device);
    device.argsz = sizeof device;
    if (ioctl(target->fd, _IO(';', 107), &device) == 0 && device.flags & is_pci &&
        npuprof_npu_ask_vfio_(target->fd, config, &space) == NPUPROF_OK) {
        unsigned char bar = 0;
        npu->config_fd_ = target->fd + 1;
        npu->config_at_ = space.offset;
        if (index < bars && pread(target->fd, &bar, 1, (off_t)(space.offset + 0x10 + 4 * index)) == 1 && bar & 1) return NPUPROF_ERR_NPU_IO_PORT;
    }
    target->origin = region.offset;
    target->bytes = region.size;
    return region.flags & can_mmap ? NPUPROF_OK : NPUPROF_ERR_NPU_MAP;
}
#else
static npuprof_result npuprof_npu_linux_target_(npuprof_npu *npu, npuprof_npu_target_ *target, const struct stat *info)
{
    (void)npu, (void)target, (void)info;
    return NPUPROF_OK;
}
static npuprof_result npuprof_npu_vfio_target_(npuprof_npu *npu, npuprof_npu_target_ *target)
{
    (void)npu, (void)target;
    return NPUPROF_ERR_UNSUPPORTED;
}
#endif

/* What desc.resource is. Leaves its file open, but where that fails. */
static npuprof_result npuprof_npu_file_target_(npuprof_npu *npu, npuprof_npu_target_ *target)
{
    struct stat info;
    target->fd = npuprof_os_open_above_2_(npu->desc_.resource, O_RDONLY);
    if (target->fd < 0) return npuprof_npu_open_error_(errno);
    if (fstat(target->fd, &info) != 0 || (!S_ISREG(info.st_mode) && !S_ISCHR(info.st_mode))) return NPUPROF_ERR_NPU_MAP;
    if (S_ISREG(info.st_mode)) target->bytes = info.st_size > 0 ? (uint64_t)info.st_size : 0;
    return npuprof_npu_linux_target_(npu, target, &info);
}

/* The mappings that a SIGBUS may come from. Why a table: a handler walks it while others open and close. */
enum { NPUPROF_NPU_GUARDS_ = 255 };
typedef struct npuprof_npu_guard_ {
    uintptr_t base;                      /* 0 = free */
    size_t bytes;
    uint32_t *gone;
} npuprof_npu_guard_;
static npuprof_npu_guard_ npuprof_npu_guards_[NPUPROF_NPU_GUARDS_];
static uint32_t npuprof_npu_guards_used_, npuprof_npu_guards_lock_;
static bool npuprof_npu_has_handler_;
static struct sigaction npuprof_npu_old_action_;

/* Why not all ones in place of the device: others may read before they are written. The flag is set before the mapping changes. */
NPUPROF_API_ bool npuprof_npu_fault(const void *address)
{
    for (int i = 0; i < NPUPROF_NPU_GUARDS_; i++) {
        npuprof_npu_guard_ *guard = &npuprof_npu_guards_[i];
        const uintptr_t base = NPUPROF_LOAD_ACQUIRE_(&guard->base);
        if (!base || (uintptr_t)address - base >= guard->bytes) continue;
        const int error = errno;
        NPUPROF_STORE_RELEASE_(guard->gone, 1u);
        const bool done = mmap((void *)base, guard->bytes, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0) != MAP_FAILED;
        errno = error;
        return done;
    }
    return false;
}

static void npuprof_npu_on_sigbus_(int number, siginfo_t *info, void *context)
{
    const struct sigaction *old = &npuprof_npu_old_action_;
    if (info->si_code > 0 && npuprof_npu_fault(info->si_addr)) return;
    if (old->sa_flags & SA_SIGINFO) {
        old->sa_sigaction(number, info, context);
    } else if (old->sa_handler != SIG_DFL && old->sa_handler != SIG_IGN) {
        old->sa_handler(number);
    } else {                             /* as if nobody had been here: the fault comes again */
        (void)sigaction(number, old, NULL);
        if (info->si_code <= 0) (void)raise(number);
    }
}

static void npuprof_npu_lock_guards_(void)
{
    uint32_t nobody;
    do nobody = 0; while (!NPUPROF_CAS_(&npuprof_npu_guards_lock_, &nobody, 1u));
}

static void npuprof_npu_guard_map_(npuprof_npu *npu)
{
    npuprof_npu_lock_guards_();
    for (uint32_t i = 0; i < NPUPROF_NPU_GUARDS_ && !npu->guard_; i++) {
        npuprof_npu_guard_ *guard = &npuprof_npu_guards_[i];
        if (guard->base) continue;
        guard->bytes = npu->map_bytes_;
        guard->gone = &npu->gone_;
        NPUPROF_STORE_RELEASE_(&guard->base, (uintptr_t)npu->map_);
        npu->guard_ = i + 1;
        npuprof_npu_guards_used_++;
    }
    if (!npuprof_npu_has_handler_) {
        struct sigaction action;
        memset(&action, 0, sizeof action);
        action.sa_sigaction = npuprof_npu_on_sigbus_;
        action.sa_flags = SA_SIGINFO | SA_ONSTACK;
        npuprof_npu_has_handler_ = sigaction(SIGBUS, &action, &npuprof_npu_old_action_) == 0;
    }
    NPUPROF_STORE_RELEASE_(&npuprof_npu_guards_lock_, 0u);
}

static void npuprof_npu_unguard_map_(npuprof_npu *npu)
{
    struct sigaction now;
    if (!npu->guard_) return;
    npuprof_npu_lock_guards_();
    NPUPROF_STORE_RELEASE_(&npuprof_npu_guards_[npu->guard_ - 1].base, (uintptr_t)0);
    npu->guard_ = 0;
    /* Why the look: a handler that came later knows ours, which then stays. */
    if (--npuprof_npu_guards_used_ == 0 && sigaction(SIGBUS, NULL, &now) == 0 && now.sa_flags & SA_SIGINFO &&
        now.sa_sigaction == npuprof_npu_on_sigbus_)
        npuprof_npu_has_handler_ = sigaction(SIGBUS, &npuprof_npu_old_action_, NULL) != 0;
    NPUPROF_STORE_RELEASE_(&npuprof_npu_guards_lock_, 0u);
}

/* Maps desc.resource or the VFIO region read-only. needed: bytes that the registers and the ring reach to. */
static npuprof_result npuprof_npu_map_(npuprof_npu *npu, size_t needed)
{
    const npuprof_npu_desc *desc = &npu->desc_;
    npuprof_npu_target_ target = { -1, false, false, 0, 0, UINT64_MAX };
    const uint64_t page = (uint64_t)sysconf(_SC_PAGESIZE), offset = desc->resource_offset;
    npuprof_result result = desc->vfio ? npuprof_npu_vfio_target_(npu, &target) : npuprof_npu_file_target_(npu, &target);
    if (result == NPUPROF_OK && (offset > SIZE_MAX / 4 || offset > target.bytes || target.bytes - offset < needed)) result = NPUPROF_ERR_NPU_RANGE;
    if (result == NPUPROF_OK) result = npuprof_npu_pci_state_(npu);
    if (result == NPUPROF_OK) {
        const uint64_t first = target.before + offset, skip = target.at_begin ? first : first % page;
        const uint64_t at = target.origin + (first - skip);
        const size_t bytes = (size_t)skip + needed;
        errno = EOVERFLOW;
        void *map = (uint64_t)(off_t)at == at ? mmap(NULL, bytes, PROT_READ, MAP_SHARED, target.fd, (off_t)at) : MAP_FAILED;
        if (map == MAP_FAILED) {
            result = errno == EINVAL && target.owned ? NPUPROF_ERR_NPU_OWNED : npuprof_npu_map_error_(errno);
        } else {
            npu->map_ = map;
            npu->map_bytes_ = bytes;
            npu->bar_ = (const volatile unsigned char *)map + skip;
            if (desc->catch_sigbus) npuprof_npu_guard_map_(npu);
        }
    }
    if (target.fd >= 0 && !desc->vfio) close(target.fd);
    return result;
}
static void npuprof_npu_unmap_(npuprof_npu *npu)
{
    npuprof_npu_unguard_map_(npu);
    if (npu->map_) munmap(npu->map_, npu->map_bytes_);
    if (npu->config_fd_ > 0 && !npu->desc_.vfio) close(npu->config_fd_ - 1);
    npu->map_ = NULL;
    npu->config_fd_ = 0;
}
#else
static npuprof_result npuprof_npu_map_(npuprof_npu *npu, size_t needed)
{
    NPUPROF_UNUSED_(npu);
    NPUPROF_UNUSED_(needed);
    return NPUPROF_ERR_UNSUPPORTED;
}
static npuprof_result npuprof_npu_pci_state_(const npuprof_npu *npu)
{
    NPUPROF_UNUSED_(npu);
    return NPUPROF_OK;
}
static void npuprof_npu_unmap_(npuprof_npu *npu) { NPUPROF_UNUSED_(npu); }
NPUPROF_API_ bool npuprof_npu_fault(const void *address)
{
    NPUPROF_UNUSED_(address);
    return false;
}
#endif
/* ==== src/npu/clock.h =================================================================== >>npu/clock ==== */

/* What follows keeps last_, the epoch and the anchors of a device; whoever calls it holds the lock. false: a signal handler asks
   that interrupted the owner, or the owner has not run for seconds. */
#ifdef NPUPROF_FREESTANDING
static bool npuprof_npu_lock_(npuprof_npu *npu)
{
#if NPUPROF_MASKS_
    const npuprof_os_mask_ before = npuprof_os_mask_interrupts_();
    const bool is_free = npu->lock_ == 0;
    npu->lock_ = 1;
    npuprof_os_unmask_interrupts_(before);
    return is_free;
#else
    uintptr_t owner = 0;
    return NPUPROF_CAS_(&npu->lock_, &owner, (uintptr_t)1);
#endif
}
static void npuprof_npu_unlock_(npuprof_npu *npu)
{
    NPUPROF_SIGNAL_FENCE_();
#if NPUPROF_MASKS_
    NPUPROF_STORE_(&npu->lock_, (uintptr_t)0);
#else
    NPUPROF_STORE_RELEASE_(&npu->lock_, (uintptr_t)0);
#endif
}
#else
/* Why naps: an owner that was preempted may need this very CPU. Why an end: the owner may be a thread that a fork() left behind, or
   wait itself, in a signal handler, for what this thread holds. */
static bool npuprof_npu_lock_(npuprof_npu *npu)
{
    enum { spins = 1000, naps = 1000, seconds = 5 };
    const uintptr_t me = npuprof_slot_me_();
    uint64_t begin = 0;
    for (uint32_t i = 0;; i++) {
        uintptr_t owner = NPUPROF_LOAD_(&npu->lock_);
        if (owner == me) return false;
        if (owner == 0 && NPUPROF_CAS_(&npu->lock_, &owner, me)) return true;
        if (i < spins) continue;
        if (i == spins) begin = npuprof_ticks_();
        if (i >= spins + naps && npuprof_saturating_sub_(npuprof_ticks_(), begin) >= seconds * npu->second_) return false;
        npuprof_os_yield_();
    }
}
static void npuprof_npu_unlock_(npuprof_npu *npu) { NPUPROF_STORE_RELEASE_(&npu->lock_, (uintptr_t)0); }
#endif

/* Least and most device ticks in a span of host ticks. False: nothing is known of the rate. */
static bool npuprof_npu_predict_(const npuprof_npu *npu, uint64_t host_least, uint64_t host_most, uint64_t *least, uint64_t *most)
{
    if (npu->has_rate_) {
        const npuprof_anchor_ *a = &npu->rate_from_, *b = &npu->rate_to_;
        const uint64_t ticks = b->device_ticks - a->device_ticks;
        const uint64_t host = npuprof_anchor_middle_(b) - npuprof_anchor_middle_(a), error = npuprof_anchor_error_(a) + npuprof_anchor_error_(b);
        const uint64_t ppm = 100 + 2 * (uint64_t)npu->desc_.max_rate_ppm;
        *least = npuprof_mul_div_(host_least, ticks - 1, npuprof_saturating_add_(host, error), false);
        *most = npuprof_mul_div_(host_most, ticks + 1, npuprof_saturating_sub_(host, error), true);
        *least -= npuprof_mul_div_(*least, npuprof_min_(ppm, 1000000), 1000000, true);
        *most = npuprof_saturating_add_(*most, npuprof_mul_div_(*most, ppm, 1000000, true));
    } else if (npu->desc_.counter.hz) {
        *least = npuprof_mul_div_(host_least, npu->desc_.counter.hz, npu->second_, false);
        *most = npuprof_mul_div_(host_most, npu->desc_.counter.hz, npu->second_, true);
    } else {
        return false;
    }
    if (!npu->has_rate_ || npu->coarse_rate_) {
        *least /= 4;
        *most = npuprof_mul_div_(*most, 4, 1, false);
    }
    *least = npuprof_saturating_sub_(*least, 2);
    *most = npuprof_saturating_add_(*most, 2);
    return true;
}

/* Where a raw value of that many bits lies: *ticks, extended. NPUPROF_OK: as expected, or forward by something a late or
   changed clock explains. NPUPROF_ERR_NPU_AMBIGUOUS, _RESET: *ticks begins a new epoch. strict: nothing but as expected. */
static npuprof_result npuprof_npu_place_value_(const npuprof_npu *npu, const npuprof_npu_raw_ *raw, unsigned bits, bool strict, uint64_t *ticks)
{
    const npuprof_anchor_ *last = &npu->last_;
    const uint64_t mask = npuprof_npu_mask_(bits), delta = (raw->value - last->device_ticks) & mask;
    const uint64_t host_least = npuprof_saturating_sub_(raw->before, last->host_after), host_most = npuprof_saturating_sub_(raw->after, last->host_before);
    uint64_t least, most, stall_least, stall_most;
    *ticks = last->device_ticks + delta;
    if (!npuprof_npu_predict_(npu, host_least, host_most, &least, &most)) {
        if (strict) return NPUPROF_ERR_NPU_AMBIGUOUS;
        if (bits < 48 || delta <= mask / 2) return NPUPROF_OK;
        *ticks = raw->value;
        return NPUPROF_ERR_NPU_RESET;
    }
    if (bits == 64) {
        if (delta >= least && delta <= most) {
            if (*ticks >= last->device_ticks) return NPUPROF_OK;
            return strict ? NPUPROF_ERR_NPU_AMBIGUOUS : NPUPROF_ERR_NPU_RESET;   /* all 64 bits wrapped: nothing left to extend to */
        }
    } else {
        const uint64_t wraps = least > delta ? (least - delta + mask) >> bits : 0;
        const uint64_t placed = delta + (wraps << bits);
        if (most - least > mask / 2) {
            *ticks = last->device_ticks + placed;
            return NPUPROF_ERR_NPU_AMBIGUOUS;
        }
        if (placed <= most) {
            *ticks = last->device_ticks + placed;
            return NPUPROF_OK;
        }
    }
    if (strict) return NPUPROF_ERR_NPU_AMBIGUOUS;
    /* Not as expected. A clock that was slowed, stopped for a while or sped up still goes forward; a reset goes back to
       something near 0. Only told apart where no wrap comes into question. */
    (void)npuprof_npu_predict_(npu, 0, npu->second_, &stall_least, &stall_most);
    if (delta <= mask / 2 && most <= mask / 16) {
        const bool restarted = delta && delta < least / 2 && raw->value <= most && host_least > npu->second_ / 10;
        const uint64_t rush = npuprof_saturating_add_(npuprof_mul_div_(most, 8, 1, false), stall_most);
        /* Why: a rate of less than a second may be that of a counter which was late all the time. A wide counter that was reset
           goes back. */
        const bool doubtful = npu->has_rate_ && bits >= 48 &&
                              (npu->coarse_rate_ || npu->rate_to_.host_after - npu->rate_from_.host_before < npu->second_);
        if (!restarted && (delta <= rush || doubtful)) return NPUPROF_OK;
    }
    *ticks = raw->value;
    return NPUPROF_ERR_NPU_RESET;
}

static void npuprof_npu_note_(const npuprof_npu *npu, unsigned note, uint64_t add)
{
#ifndef NPUPROF_FREESTANDING
    if (npu->number_) npuprof_device_note_(npu->number_, note, add);
#else   /* Why not the wraps: the host sees them in the ticks. */
    const uint64_t values[3] = { add, note, npu->number_ };
    const npuprof_args none = { NULL, 0 };
    if (npu->number_ && note != NPUPROF_NOTE_WRAPS) npuprof_npu_put_record_(NPUPROF_NPU_NAME_OF_(npu), NPUPROF_CELL_KIND_COUNT_, values, none);
#endif
}

static void npuprof_npu_new_epoch_(npuprof_npu *npu, npuprof_result why)
{
    const bool reset = why == NPUPROF_ERR_NPU_RESET;
    npu->old_epoch_ticks_ = npu->last_.device_ticks;
    npu->epoch_++;
    npu->anchor_count_ = 0;
    npu->epoch_why_ = why;
    if (reset) npu->coarse_rate_ = npu->has_rate_;
    npuprof_npu_note_(npu, reset ? NPUPROF_NOTE_RESETS : NPUPROF_NOTE_AMBIGUOUS, 1);
}

/* All zeros or ones that may or may not be the time: loads until that is certain. absurd: they cannot be the time, unless
   the counter moves on. True: nobody is there. */
static bool npuprof_npu_is_dead_(npuprof_npu *npu, npuprof_npu_raw_ *raw, bool absurd)
{
    const npuprof_npu_counter *c = &npu->desc_.counter;
    if (raw->ones && c->bits < c->access && !npu->desc_.read_ticks) return true;   /* bits that the counter does not have */
    const uint64_t begin = raw->before;
    const uint64_t allowed = c->hz ? npuprof_min_(npuprof_mul_div_(npu->second_, 4, c->hz, true), npu->second_ / 100) : npu->second_ / 1000;
    for (uint32_t i = 0; i < (uint32_t)1 << 16; i++) {
        const bool ones = raw->ones;
        const npuprof_result result = npuprof_npu_load_counter_(npu, c, false, raw);
        if (result != NPUPROF_ERR_NPU_DEAD && (result != NPUPROF_OK || !(ones ? raw->ones : raw->zeros))) return false;
        if (absurd || npuprof_saturating_sub_(raw->before, begin) > allowed) return true;
    }
    return false;
}

/* A result for the user: why a device is dead, where its configuration space tells. */
static npuprof_result npuprof_npu_explain_result_(const npuprof_npu *npu, npuprof_result result)
{
    const npuprof_result state = result == NPUPROF_ERR_NPU_DEAD ? npuprof_npu_pci_state_(npu) : NPUPROF_OK;
    return state == NPUPROF_OK ? result : state;
}

#ifdef NPUPROF_FREESTANDING
/* How long, and by which power of two, a read can do without divisions: from the rate between the last two anchors. */
static void npuprof_npu_set_fast_(npuprof_npu *npu)
{
    const npuprof_npu_counter *c = &npu->desc_.counter;
    const uint64_t most = npuprof_npu_mask_(npuprof_npu_is_split_(c) ? c->access : c->bits) / 8;
    const uint64_t ticks = npu->rate_to_.device_ticks - npu->rate_from_.device_ticks;
    uint64_t host = npuprof_anchor_middle_(&npu->rate_to_) - npuprof_anchor_middle_(&npu->rate_from_);
    int shift = 0;
    for (; host < ticks && shift < 30; shift++) host <<= 1;
    for (; host / 2 >= ticks && shift > -30; shift--) host /= 2;
    npu->quick_shift_ = shift;
    npu->quick_ = host < ticks ? 0 : shift >= 0 ? most >> shift : most > UINT64_MAX >> -shift ? UINT64_MAX : most << -shift;
}
/* Reads the counter where that is enough: the last read is near, and the counter went on at a quarter of the rate to four times it. */
static bool npuprof_npu_read_fast_(npuprof_npu *npu)
{
    const npuprof_npu_counter *c = &npu->desc_.counter;
    const npuprof_anchor_ *last = &npu->last_;
    const bool split = npuprof_npu_is_split_(c);
    const int shift = npu->quick_shift_;
    npuprof_npu_raw_ raw;
    if (!npu->has_last_ || !npu->has_rate_ || npu->coarse_rate_ || npuprof_ticks_() - last->host_before >= npu->quick_) return false;
    if (npuprof_npu_load_counter_(npu, c, split, &raw) != NPUPROF_OK || raw.ones || raw.zeros) return false;
    const uint64_t delta = (raw.value - last->device_ticks) & npuprof_npu_mask_(split ? c->access : c->bits);
    const uint64_t host_least = npuprof_saturating_sub_(raw.before, last->host_after), host_most = raw.after - last->host_before;
    const uint64_t least = shift >= 0 ? host_least << shift : host_least >> -shift, most = shift >= 0 ? host_most << shift : host_most >> -shift;
    if (host_most >= npu->quick_ || !delta || delta > 2 * most + 2 || delta + 2 < least / 4) return false;
    npu->last_.device_ticks += delta;
    npu->last_.host_before = raw.before;
    npu->last_.host_after = raw.after;
    return true;
}
#endif

/* Reads the counter and moves last_. *sample: ticks and bracket. See npuprof_npu_read() for the results. */
static npuprof_result npuprof_npu_read_locked_(npuprof_npu *npu, npuprof_anchor_ *sample)
{
    const npuprof_npu_counter *c = &npu->desc_.counter;
    npuprof_npu_raw_ raw;
    npuprof_result result = NPUPROF_OK;
    uint64_t ticks = 0;
    bool placed = false;
#ifdef NPUPROF_FREESTANDING
    if (npuprof_npu_read_fast_(npu)) {
        *sample = npu->last_;
        return NPUPROF_OK;
    }
#endif
    *sample = npu->last_;
    if (npu->has_last_ && npuprof_npu_is_split_(c)) {            /* one load where it is enough */
        const uint64_t now = npuprof_ticks_();
        uint64_t least, most;
        if (npuprof_npu_predict_(npu, npuprof_saturating_sub_(now, npu->last_.host_after), npuprof_saturating_sub_(now, npu->last_.host_before), &least, &most) &&
            most - least < npuprof_npu_mask_(c->access) / 8) {
            result = npuprof_npu_load_counter_(npu, c, true, &raw);
            placed = result == NPUPROF_OK && npuprof_npu_place_value_(npu, &raw, c->access, true, &ticks) == NPUPROF_OK;
        }
    }
    for (int i = 0; i < 2 && !placed; i++) {     /* Why twice: a foreign read may have moved a latch */
        result = npuprof_npu_load_counter_(npu, c, false, &raw);
        if (result != NPUPROF_OK) {
            npuprof_npu_note_(npu, result == NPUPROF_ERR_NPU_DEAD ? NPUPROF_NOTE_DEAD_READS : NPUPROF_NOTE_TORN_READS, 1);
            return result;
        }
        const bool expected = npu->has_last_ && npuprof_npu_place_value_(npu, &raw, c->bits, true, &ticks) == NPUPROF_OK && ticks != npu->last_.device_ticks;
        const bool absurd = (npu->has_last_ && npuprof_npu_place_value_(npu, &raw, c->bits, false, &ticks) != NPUPROF_OK) ||
                            (raw.ones && c->bits >= 48 && !c->counts_down);
        if ((raw.ones || raw.zeros) && !expected && npuprof_npu_is_dead_(npu, &raw, absurd)) {
            npuprof_npu_note_(npu, NPUPROF_NOTE_DEAD_READS, 1);
            return NPUPROF_ERR_NPU_DEAD;
        }
        ticks = raw.value;
        result = npu->has_last_ ? npuprof_npu_place_value_(npu, &raw, c->bits, false, &ticks) : NPUPROF_OK;
        placed = result == NPUPROF_OK;
    }
    if (result == NPUPROF_OK && npu->has_last_ && ticks == npu->last_.device_ticks) {
        uint64_t least = 0, most;
        const uint64_t still = npuprof_saturating_sub_(raw.before, npu->last_.host_after);
        sample->host_before = raw.before;
        sample->host_after = raw.after;
        const bool known = npuprof_npu_predict_(npu, still, still, &least, &most);
        return still >= npu->second_ / 10 && (!known || least >= 16) ? NPUPROF_ERR_NPU_STOPPED : NPUPROF_OK;
    }
    if (result != NPUPROF_OK) {
        npuprof_npu_new_epoch_(npu, result);
    } else if (npu->has_last_ && c->bits < 64) {
        const uint64_t wraps = (ticks >> c->bits) - (npu->last_.device_ticks >> c->bits);
        if (wraps) npuprof_npu_note_(npu, NPUPROF_NOTE_WRAPS, wraps);
    }
    npu->has_last_ = true;
    npu->last_.device_ticks = ticks;
    npu->last_.host_before = raw.before;
    npu->last_.host_after = raw.after;
    *sample = npu->last_;
    return result;
}

#ifndef NPUPROF_FREESTANDING
/* Loads the event counters. Bit n of the result: value[n] is good. */
static uint32_t npuprof_npu_load_pmu_(npuprof_npu *npu, uint64_t *value)
{
    npuprof_npu_raw_ raw;
    uint32_t good = 0;
    for (unsigned i = 0; i < npu->desc_.pmu_count; i++) {
        if (npuprof_npu_load_counter_(npu, &npu->pmu_[i].is.counter, false, &raw) != NPUPROF_OK) continue;
        value[i] = raw.value;
        good |= 1u << i;
    }
    return good;
}

/* Turns what was loaded in this epoch into totals. Under the lock. */
static void npuprof_npu_add_pmu_(npuprof_npu *npu, uint32_t good, uint64_t *value)
{
    for (unsigned i = 0; i < npu->desc_.pmu_count; i++) {
        npuprof_npu_pmu_state_ *p = &npu->pmu_[i];
        if (!(good >> i & 1)) continue;
        if (p->epoch == npu->epoch_ + 1) p->total += (value[i] - p->raw) & npuprof_npu_mask_(p->is.counter.bits);
        p->epoch = npu->epoch_ + 1;
        p->raw = value[i];
        value[i] = p->total;
    }
}

/* Their tracks. */
static void npuprof_npu_draw_pmu_(npuprof_npu *npu, uint32_t good, const uint64_t *total)
{
    for (unsigned i = 0; i < npu->desc_.pmu_count; i++) if (good >> i & 1) npuprof_event_now_(&npu->pmu_[i].site, total[i]);
}

#endif

/* The rate of the anchors: over the longest stretch up to the last one that does not contradict the last interval. */
static void npuprof_npu_measure_rate_(npuprof_npu *npu)
{
    if (npu->anchor_count_ < 2) return;
    const npuprof_anchor_ *to = &npu->anchors_[npu->anchor_count_ - 1], *from = to - 1;
#ifndef NPUPROF_FREESTANDING
    const uint64_t ticks = to->device_ticks - from->device_ticks, wander = 2000 * (uint64_t)npu->desc_.max_rate_ppm;
    const npuprof_map_range_ newest = npuprof_map_range_between_(from, to, wander, ticks);
    for (const npuprof_anchor_ *a = from; a > npu->anchors_; a--) {
        if (npuprof_map_ranges_apart_(newest, npuprof_map_range_between_(a - 1, to, wander, ticks))) break;
        from = a - 1;
    }
#endif
    if (npuprof_anchor_middle_(to) - npuprof_anchor_middle_(from) <= 4 * (npuprof_anchor_error_(from) + npuprof_anchor_error_(to))) return;
    if (to->device_ticks - from->device_ticks < 4) return;
    npu->rate_from_ = *from;
    npu->rate_to_ = *to;
    npu->has_rate_ = true;
    npu->coarse_rate_ = false;
#ifdef NPUPROF_FREESTANDING
    npuprof_npu_set_fast_(npu);
#endif
}
/* ==== src/npu/anchors.h =============================================================== >>npu/anchors ==== */

/* How long the last anchor lasts; see CLOCK in the head. */
static uint64_t npuprof_npu_anchor_interval_(const npuprof_npu *npu)
{
    const uint32_t n = npu->anchor_count_;
    const uint64_t age = npuprof_saturating_sub_(npu->anchors_[n - 1].host_after, npu->first_anchor_);
#ifndef NPUPROF_FREESTANDING
    const uint64_t part = age / 1000;
#else   /* Why: a 64-bit division is a call. */
    const uint64_t part = age >> 10;
#endif
    if (n == 1) return npu->second_ / 10000;
    return npuprof_max_(npuprof_min_(npuprof_max_(age, npu->second_ / 1000), npu->second_ / 4), part);
}

/* Keeps an anchor and stores it in the arena. One that is not later than the last is left out. */
static npuprof_result npuprof_npu_add_anchor_(npuprof_npu *npu, const npuprof_anchor_ *anchor)
{
    uint32_t n = npu->anchor_count_;
    if (n && (anchor->device_ticks <= npu->anchors_[n - 1].device_ticks || anchor->host_before <= npu->anchors_[n - 1].host_after))
        return NPUPROF_OK;
    if (n == 0) npu->first_anchor_ = anchor->host_after;
    if (n == NPUPROF_NPU_ANCHORS_)
        for (n = 0; n < NPUPROF_NPU_ANCHORS_ - 1; n++) npu->anchors_[n] = npu->anchors_[n + 1];
    npu->anchors_[n] = *anchor;
    npu->anchor_count_ = n + 1;
    const uint64_t width = npuprof_anchor_width_(anchor);
    if (!npu->best_width_ || width < npu->best_width_) npu->best_width_ = width;
    npuprof_npu_measure_rate_(npu);
#ifndef NPUPROF_FREESTANDING
    return npuprof_device_anchor_(npu->number_, npu->epoch_, anchor);
#else
    npu->interval_ = npuprof_npu_anchor_interval_(npu);
    if (width > UINT32_MAX) return NPUPROF_OK;   /* Why: the stamps themselves say more */
    const uint64_t values[3] = { anchor->device_ticks, anchor->host_after, npu->number_ | (npu->epoch_ & 0xFFFF) << 8 | width << 32 };
    const npuprof_args none = { NULL, 0 };
    npuprof_npu_put_record_(NPUPROF_NPU_NAME_OF_(npu), NPUPROF_CELL_KIND_ANCHOR_, values, none);
    return NPUPROF_OK;
#endif
}

/* Whether it is time for the next anchor. */
static bool npuprof_npu_anchor_is_due_(const npuprof_npu *npu, uint64_t now)
{
    const uint32_t n = npu->anchor_count_;
    if (n == 0) return true;
#ifndef NPUPROF_FREESTANDING
    return npuprof_saturating_sub_(now, npu->anchors_[n - 1].host_after) >= npuprof_npu_anchor_interval_(npu);
#else
    return npuprof_saturating_sub_(now, npu->anchors_[n - 1].host_after) >= npu->interval_;
#endif
}

#ifndef NPUPROF_FREESTANDING
/* Whether a read lies outside of what the anchors foretell: the rate has changed. The next anchors then come as quickly as after
   open. Not within a millisecond, for a clock that is worse than max_rate_ppm says. */
static bool npuprof_npu_rate_changed_(npuprof_npu *npu, const npuprof_anchor_ *sample)
{
    if (npu->anchor_count_ < 2 || !npu->has_rate_ || npu->coarse_rate_) return false;
    const npuprof_anchor_ *last = &npu->anchors_[npu->anchor_count_ - 1];
    const uint64_t least = npuprof_saturating_sub_(sample->host_before, last->host_after), most = npuprof_saturating_sub_(sample->host_after, last->host_before);
    if (least < npu->second_ / 1000) return false;
    const npuprof_map_range_ r = npuprof_map_range_between_(&npu->rate_from_, &npu->rate_to_, 2000 * (uint64_t)npu->desc_.max_rate_ppm,
                                                    npuprof_saturating_sub_(sample->device_ticks, last->device_ticks));
    if (r.max >= least && r.min <= most) return false;
    npu->first_anchor_ = sample->host_after;
    return true;
}

#endif

/* One round of brackets. *stale: the counter stood still where it should have moved, and nothing was stored. */
static npuprof_result npuprof_npu_take_brackets_(npuprof_npu *npu, bool *stale)
{
    npuprof_anchor_ best, sample, previous = npu->last_;
    bool has_best = false, fresh = false;
    npuprof_result result = NPUPROF_OK;
    const uint64_t begin = npuprof_ticks_();
    const bool had_last = npu->has_last_;
    best = previous;
    for (unsigned i = 0; i < npu->desc_.brackets; i++) {
        const npuprof_result r = npuprof_npu_read_locked_(npu, &sample);
        if (r == NPUPROF_ERR_NPU_RESET || r == NPUPROF_ERR_NPU_AMBIGUOUS) {
            has_best = fresh = false;
            result = r;
        } else if (r != NPUPROF_OK) {
            return r;
        }
        /* Why: where the counter is moved by software that was interrupted, a value that just changed is the true one. */
        const bool moved = (had_last || i) && sample.device_ticks != previous.device_ticks;
        if (!has_best || (moved && !fresh) || (moved == fresh && npuprof_anchor_width_(&sample) < npuprof_anchor_width_(&best))) {
            best = sample;
            has_best = true;
            fresh = moved;
        }
        previous = sample;
    }
    const uint64_t host = npuprof_ticks_() - begin;
    uint64_t least, most;
    const npuprof_anchor_ *last = npu->anchor_count_ ? &npu->anchors_[npu->anchor_count_ - 1] : NULL;
    *stale = !fresh && npuprof_npu_predict_(npu, host, host, &least, &most) && least >= 4;
    if (last && best.device_ticks <= last->device_ticks && best.host_before > last->host_after) *stale = true;
    if (*stale) return result;
    const npuprof_result stored = npuprof_npu_add_anchor_(npu, &best);
    return result == NPUPROF_OK ? stored : result;
}

/* Whether a result leaves a device time that goes on. */
static bool npuprof_npu_time_goes_on_(npuprof_result result)
{
    return result == NPUPROF_OK || result == NPUPROF_ERR_NPU_RESET || result == NPUPROF_ERR_NPU_AMBIGUOUS;
}

/* Takes one anchor. *alone: it is the epoch's only one. */
static npuprof_result npuprof_npu_take_anchor_(npuprof_npu *npu, bool *alone)
{
    const uint64_t begin = npuprof_ticks_(), hz = npu->desc_.counter.hz;
    const uint64_t patience = npuprof_max_(npu->second_ / 500, hz ? npuprof_mul_div_(npu->second_, 4, hz, true) : 0);
    npuprof_result first = NPUPROF_OK;
    *alone = false;
    for (uint32_t i = 0; i < 4096 && npuprof_saturating_sub_(npuprof_ticks_(), begin) <= patience; i++) {
        bool stale = false;
        if (!npuprof_npu_lock_(npu)) return NPUPROF_ERR_NPU_BUSY;
        const npuprof_result result = npuprof_npu_take_brackets_(npu, &stale);
        *alone = npu->anchor_count_ == 1;
        npuprof_npu_unlock_(npu);
        if (first == NPUPROF_OK) first = result;
        if (!stale || !npuprof_npu_time_goes_on_(result)) return first;
    }
    return first == NPUPROF_OK ? NPUPROF_ERR_NPU_STOPPED : first;
}

/* The second anchor of an epoch comes soon after the first.
   Why: without a rate nobody can count the wraps of a long gap, and the read behind it would begin an epoch of one anchor again. */
static void npuprof_npu_take_second_anchor_(npuprof_npu *npu)
{
    const uint64_t begin = npuprof_ticks_(), hz = npu->desc_.counter.hz;
    const uint64_t ticks = hz ? npuprof_mul_div_(npu->second_, 16, hz, true) : 0;
    const uint64_t pause = npuprof_max_(npu->second_ / 10000, npuprof_min_(ticks, npu->second_ / 500));
    bool alone;
    for (uint32_t i = 0; i < (uint32_t)1 << 16 && npuprof_saturating_sub_(npuprof_ticks_(), begin) < pause; i++) {}
    (void)npuprof_npu_take_anchor_(npu, &alone);
}

NPUPROF_API_ npuprof_result npuprof_npu_sync(npuprof_npu *npu)
{
    bool alone;
    if (!npu->number_) return NPUPROF_ERR_ARGUMENT;
    const npuprof_result result = npuprof_npu_take_anchor_(npu, &alone);
    if (alone && npuprof_npu_time_goes_on_(result)) npuprof_npu_take_second_anchor_(npu);
    return npuprof_npu_explain_result_(npu, result);
}

/* The library's own wish for an anchor. Why the pause: on a counter that stands still each takes its 2 ms, and there may be one a kernel. */
static npuprof_result npuprof_npu_renew_anchor_(npuprof_npu *npu)
{
    const uint64_t begin = npuprof_ticks_();
    if (begin < NPUPROF_LOAD_(&npu->renew_from_)) return NPUPROF_OK;
    const npuprof_result result = npuprof_npu_sync(npu);
    if (result != NPUPROF_ERR_NPU_STOPPED) return result;
    const uint64_t end = npuprof_ticks_();
    NPUPROF_STORE_(&npu->renew_from_, end + 64 * npuprof_saturating_sub_(end, begin));
    return NPUPROF_OK;
}

NPUPROF_API_ npuprof_result npuprof_npu_read(npuprof_npu *npu, uint64_t *ticks)
{
    npuprof_anchor_ sample;
    *ticks = 0;
    if (!npu->number_) return NPUPROF_ERR_ARGUMENT;
    if (!npuprof_npu_lock_(npu)) return NPUPROF_ERR_NPU_BUSY;
    const npuprof_result result = npuprof_npu_read_locked_(npu, &sample);
    npuprof_npu_unlock_(npu);
    *ticks = sample.device_ticks;
    if (result != NPUPROF_OK && npuprof_npu_time_goes_on_(result)) (void)npuprof_npu_sync(npu);
    return npuprof_npu_explain_result_(npu, result);
}

/* raw, counting up, of that many bits, as the value nearest to now. */
static uint64_t npuprof_npu_extend_nearest_(uint64_t raw, unsigned bits, uint64_t now)
{
    const uint64_t mask = npuprof_npu_mask_(bits), ahead = (raw - now) & mask, back = (now - raw) & mask;
    if (bits >= 64) return raw;
    return ahead < back || back > now ? now + ahead : now - back;
}

NPUPROF_API_ uint64_t npuprof_npu_extend(npuprof_npu *npu, uint64_t raw)
{
    const npuprof_npu_counter *c = &npu->desc_.counter;
    uint64_t least, most, now;
    npuprof_anchor_ sample;
    if (!npu->number_) return raw;
    if (c->counts_down) raw = ~raw;
    raw &= npuprof_npu_mask_(c->bits);
    if (c->bits >= 64) return raw;
    if (!npuprof_npu_lock_(npu)) return raw;
    const uint64_t host = npuprof_saturating_sub_(npuprof_ticks_(), npu->last_.host_after);
    if (npuprof_npu_predict_(npu, host, host, &least, &most) && most - least <= npuprof_npu_mask_(c->bits) / 16) {
        now = npu->last_.device_ticks + least / 2 + most / 2;
    } else {
        (void)npuprof_npu_read_locked_(npu, &sample);
        now = npu->last_.device_ticks;
    }
    npuprof_npu_unlock_(npu);
    return npuprof_npu_extend_nearest_(raw, c->bits, now);
}
#ifndef NPUPROF_FREESTANDING
/* ==== src/npu/ring.h ===================================================================== >>npu/ring ==== */

NPUPROF_API_ npuprof_result npuprof_npu_host_ns(npuprof_npu *npu, uint64_t ticks, int64_t *ns, uint64_t *error_ns)
{
    uint64_t host = 0, error = 0;
    bool widened, good = false;
    *ns = 0;
    if (error_ns) *error_ns = 0;
    if (!npu->number_) return NPUPROF_ERR_ARGUMENT;
    for (int i = 0; i < 2 && !good; i++) {
        if (!npuprof_npu_lock_(npu)) return NPUPROF_ERR_NPU_BUSY;
        good = npuprof_map_ticks_(npu->anchors_, npu->anchor_count_, npu->desc_.max_rate_ppm * 1000u, ticks, &host, &error, &widened);
        npuprof_npu_unlock_(npu);
        if (!good && i == 0) (void)npuprof_npu_sync(npu);
    }
    if (!good) return NPUPROF_ERR_NPU_NO_ANCHOR;
    *ns = npuprof_ticks_to_ns_(host);
    if (error_ns) *error_ns = npuprof_saturating_add_(npuprof_mul_div_(error, npuprof_ns_per_4g_ticks_(), (uint64_t)1 << 32, true), 1);
    return NPUPROF_OK;
}

/* Submissions. A job is owned by whoever turned its state to HELD; nobody keeps it for more than a few instructions.
   Returns `state` if the caller owns it now, else the state it is in; HELD: its owner was interrupted. */
static uint32_t npuprof_npu_claim_job_(npuprof_npu_job_ *job, uint32_t state)
{
    for (int i = 0; i < 1000; i++) {
        uint32_t seen = NPUPROF_LOAD_(&job->state);
        if (seen == NPUPROF_NPU_HELD_) continue;
        if (seen != state || NPUPROF_CAS_(&job->state, &seen, (uint32_t)NPUPROF_NPU_HELD_)) return seen;
    }
    return NPUPROF_NPU_HELD_;
}
static bool npuprof_npu_hold_job_(npuprof_npu_job_ *job, uint32_t state) { return npuprof_npu_claim_job_(job, state) == state; }
static void npuprof_npu_release_job_(npuprof_npu_job_ *job, uint32_t state) { NPUPROF_STORE_RELEASE_(&job->state, state); }

/* The entry of a new submission, held; the oldest one is given up if all are taken. NULL: the next ones are being used right now. */
static npuprof_npu_job_ *npuprof_npu_new_job_(npuprof_npu *npu, uint32_t flags, uint64_t stream, const npuprof_link_ *link)
{
    npuprof_npu_job_ *job = NULL;
    uint32_t ticket = 0;
    for (int i = 0; i < 4 && !job; i++) {
        ticket = NPUPROF_ADD_(&npu->tickets_, 1u);
        job = &npu->jobs_[ticket % NPUPROF_NPU_JOBS_];
        if (npuprof_npu_hold_job_(job, NPUPROF_NPU_FREE_) || npuprof_npu_hold_job_(job, NPUPROF_NPU_READY_)) continue;
        NPUPROF_STORE_(&job->skipped, ticket);
        job = NULL;
    }
    if (!job) return NULL;
    NPUPROF_STORE_RELEASE_(&job->ticket, ticket);
    NPUPROF_STORE_(&job->id, 0u);
    NPUPROF_STORE_(&job->flags, flags | link->slot * NPUPROF_NPU_OWNER_);
    job->stream = stream;
    job->link = *link;
    job->name[0] = 0;
    return job;
}

/* Copies a string into a buffer, cut at a UTF-8 boundary. */
static void npuprof_npu_copy_text_(char *to, size_t room, const char *from)
{
    size_t n = 0;
    while (from && n < room - 1 && from[n]) n++;
    if (from && from[n]) while (n && ((unsigned char)from[n] & 0xC0) == 0x80) n--;
    for (size_t i = 0; i < n; i++) to[i] = from[i];
    to[n] = 0;
}

/* The submission of the block that this thread is in, held; NULL: it is in none that is recorded, or cannot be had. */
static npuprof_npu_job_ *npuprof_npu_find_my_job_(npuprof_npu *npu, const npuprof_link_ *here)
{
    const uint32_t end = NPUPROF_LOAD_(&npu->tickets_), mine = here->slot * NPUPROF_NPU_OWNER_ | NPUPROF_NPU_IN_BLOCK_;
    if (!here->ticks) return NULL;
    for (uint32_t i = 1; i <= NPUPROF_NPU_JOBS_; i++) {
        npuprof_npu_job_ *job = &npu->jobs_[(end - i) % NPUPROF_NPU_JOBS_];
        if ((NPUPROF_LOAD_(&job->flags) | NPUPROF_NPU_HAS_ID_) != (mine | NPUPROF_NPU_HAS_ID_)) continue;
        if (NPUPROF_LOAD_(&job->state) != NPUPROF_NPU_FREE_) return npuprof_npu_hold_job_(job, NPUPROF_NPU_READY_) ? job : NULL;
    }
    return NULL;
}

static uint32_t npuprof_npu_id_mask_(const npuprof_npu *npu)
{
    const npuprof_npu_field f = npu->desc_.ring.job;
    const unsigned bits = f.bits ? f.bits : 8u * f.width_bytes - f.lsb;
    return !f.width_bytes || bits >= 32 ? UINT32_MAX : ((uint32_t)1 << bits) - 1;
}

/* Gives a number to the command being submitted. again: the number may have been given before. */
static void npuprof_npu_number_job_(npuprof_npu *npu, uint32_t id, bool again)
{
    if (!npu->number_ || !npu->desc_.ring.count) return;
    const uint32_t mask = npuprof_npu_id_mask_(npu);
    const npuprof_link_ here = npuprof_link_here_();
    NPUPROF_STORE_(&npu->uses_ids_, 1u);
    for (unsigned i = 0; again && i < NPUPROF_NPU_JOBS_; i++) {  /* the record of the earlier one was missed */
        npuprof_npu_job_ *old = &npu->jobs_[i];
        if (!(NPUPROF_LOAD_(&old->flags) & NPUPROF_NPU_HAS_ID_) || ((NPUPROF_LOAD_(&old->id) ^ id) & mask)) continue;
        if (!npuprof_npu_hold_job_(old, NPUPROF_NPU_READY_)) continue;
        const bool in_block = (old->flags & NPUPROF_NPU_IN_BLOCK_) != 0;
        NPUPROF_STORE_(&old->flags, old->flags & ~(uint32_t)NPUPROF_NPU_HAS_ID_);
        npuprof_npu_release_job_(old, in_block ? NPUPROF_NPU_READY_ : NPUPROF_NPU_FREE_);
    }
    npuprof_npu_job_ *job = npuprof_npu_find_my_job_(npu, &here);
    if (!job || job->flags & NPUPROF_NPU_HAS_ID_) {              /* outside a recorded block, or one more command of the same block */
        npuprof_link_ link = here;
        uint64_t stream = 0;
        char name[NPUPROF_NPU_NAME_] = "";
        if (job) {
            link = job->link;
            stream = job->stream;
            memcpy(name, job->name, sizeof name);
            npuprof_npu_release_job_(job, NPUPROF_NPU_READY_);
        }
        job = npuprof_npu_new_job_(npu, here.ticks ? 0 : NPUPROF_NPU_MUTED_, stream, &link);
        if (!job) return;
        memcpy(job->name, name, sizeof name);
    }
    NPUPROF_STORE_(&job->id, id);
    NPUPROF_STORE_(&job->flags, job->flags | NPUPROF_NPU_HAS_ID_);
    npuprof_npu_release_job_(job, NPUPROF_NPU_READY_);
}

NPUPROF_API_ uint32_t npuprof_npu_job(npuprof_npu *npu)
{
    uint32_t id;
    const uint32_t mask = npuprof_npu_id_mask_(npu);
    do id = NPUPROF_ADD_(&npu->ids_, 1u) + 1u; while (!(id & mask));
    npuprof_npu_number_job_(npu, id, mask < 0xFFFF);
    return id;
}

NPUPROF_API_ void npuprof_npu_set_job(npuprof_npu *npu, uint32_t id) { npuprof_npu_number_job_(npu, id, true); }

/* Whether the submission of that ticket is over.
   Why the ticket, and before the state: who has taken a ticket may not have got to its entry yet, which is free as long. */
static bool npuprof_npu_is_job_over_(const npuprof_npu_job_ *job, uint32_t ticket)
{
    return NPUPROF_LOAD_(&job->skipped) == ticket ||
           (NPUPROF_LOAD_ACQUIRE_(&job->ticket) == ticket && NPUPROF_LOAD_(&job->state) == NPUPROF_NPU_FREE_);
}

/* The submission that a record belongs to, held; NULL: nobody knows. *busy: one that it may be is held by somebody else, who
   does not run. */
static npuprof_npu_job_ *npuprof_npu_find_job_(npuprof_npu *npu, uint32_t id, uint64_t pe, bool *busy)
{
    const uint32_t end = NPUPROF_LOAD_(&npu->tickets_), mask = npuprof_npu_id_mask_(npu);
    const bool by_id = npu->desc_.ring.job.width_bytes && NPUPROF_LOAD_(&npu->uses_ids_);
    npuprof_npu_job_ *oldest = NULL;
    *busy = false;
    if (end - npu->first_ticket_ > NPUPROF_NPU_JOBS_) npu->first_ticket_ = end - NPUPROF_NPU_JOBS_;
    while (npu->first_ticket_ != end && npuprof_npu_is_job_over_(&npu->jobs_[npu->first_ticket_ % NPUPROF_NPU_JOBS_], npu->first_ticket_))
        npu->first_ticket_++;
    for (uint32_t ticket = npu->first_ticket_; ticket != end; ticket++) {
        npuprof_npu_job_ *job = &npu->jobs_[ticket % NPUPROF_NPU_JOBS_];
        const uint32_t flags = NPUPROF_LOAD_(&job->flags);
        if (by_id ? !(flags & NPUPROF_NPU_HAS_ID_) || ((NPUPROF_LOAD_(&job->id) ^ id) & mask) : (flags & NPUPROF_NPU_MUTED_) != 0) continue;
        const uint32_t state = npuprof_npu_claim_job_(job, NPUPROF_NPU_READY_);
        *busy = *busy || state == NPUPROF_NPU_HELD_;
        if (state != NPUPROF_NPU_READY_) continue;
        const bool found = by_id ? (job->flags & NPUPROF_NPU_HAS_ID_) && ((job->id ^ id) & mask) == 0
                                 : !npu->desc_.ring.pe.width_bytes || job->stream == pe;
        if (found) {
            if (oldest) npuprof_npu_release_job_(oldest, NPUPROF_NPU_READY_);
            return job;
        }
        if (!by_id && !oldest) oldest = job;
        else npuprof_npu_release_job_(job, NPUPROF_NPU_READY_);
    }
    return oldest;
}

/* A completion record, as copied from the ring. */
typedef struct npuprof_npu_record_ {
    uint64_t sequence, sequence_after, job, start, end, pe, op, status, execution, instruction;
} npuprof_npu_record_;

static void npuprof_npu_copy_record_(npuprof_npu *npu, uint64_t number, npuprof_npu_record_ *r)
{
    const npuprof_npu_ring *ring = &npu->desc_.ring;
    const volatile unsigned char *base = ring->memory ? (const volatile unsigned char *)ring->memory : npu->bar_ + ring->offset;
    const volatile unsigned char *entry = base + (size_t)(number % ring->count) * ring->entry_bytes;
    r->sequence = npuprof_npu_load_field_(npu, entry, ring->sequence);
    r->job = npuprof_npu_load_field_(npu, entry, ring->job);
    r->start = npuprof_npu_load_field_(npu, entry, ring->start);
    r->end = npuprof_npu_load_field_(npu, entry, ring->end);
    r->pe = npuprof_npu_load_field_(npu, entry, ring->pe);
    r->op = npuprof_npu_load_field_(npu, entry, ring->op);
    r->status = npuprof_npu_load_field_(npu, entry, ring->status);
    r->execution = npuprof_npu_load_field_(npu, entry, ring->execution);
    r->instruction = npuprof_npu_load_field_(npu, entry, ring->instruction);
    r->sequence_after = npuprof_npu_load_field_(npu, entry, ring->sequence);
}

/* A stamp of a record as extended ticks: the last value at or before now, or a little after. */
static uint64_t npuprof_npu_extend_stamp_(const npuprof_npu *npu, npuprof_npu_field field, uint64_t raw, uint64_t now)
{
    unsigned bits = field.bits ? field.bits : 8u * field.width_bytes - field.lsb;
    if (bits > npu->desc_.counter.bits) bits = npu->desc_.counter.bits;
    const uint64_t mask = npuprof_npu_mask_(bits);
    if (npu->desc_.counter.counts_down) raw = ~raw;
    if (bits >= 64) return raw;
    const uint64_t ahead = (raw - now) & mask, back = (now - raw) & mask;
    return ahead <= mask / 64 || back > now ? now + ahead : now - back;
}

/* The device's time as a drain found it. */
typedef struct npuprof_npu_now_ { uint64_t ticks, old_epoch_ticks, slack; uint32_t epoch; } npuprof_npu_now_;

/* Draws the device span of a record. NPUPROF_ERR_NPU_RING: its stamps are impossible; _NPU_BUSY, only with can_wait: nobody can
   tell now whose it is, and nothing was done. */
static npuprof_result npuprof_npu_draw_record_(npuprof_npu *npu, const npuprof_npu_record_ *r, const npuprof_npu_now_ *now, bool can_wait)
{
    const npuprof_npu_ring *ring = &npu->desc_.ring;
    const bool whole = !ring->execution_op || r->op + 1 == ring->execution_op;
    uint64_t end = npuprof_npu_extend_stamp_(npu, ring->end, r->end, now->ticks), start = end;
    uint32_t epoch = now->epoch;
    if (ring->start.width_bytes) start = npuprof_npu_extend_stamp_(npu, ring->start, r->start, now->ticks);
    if (!ring->end.width_bytes) end = start;
    bool good = start <= end;
    if (now->slack && end > npuprof_saturating_add_(now->ticks, now->slack)) {      /* after now: of the time before a reset, or nonsense */
        good = good && epoch && end <= npuprof_saturating_add_(now->old_epoch_ticks, now->slack);
        epoch--;
    }

    npuprof_link_ link;
    char name[NPUPROF_NPU_NAME_] = "job";
    uint64_t stream = 0;
    bool known = false, muted = false, busy;
    npuprof_npu_job_ *job = npuprof_npu_find_job_(npu, (uint32_t)r->job, r->pe, &busy);
    if (busy && can_wait) {
        if (job) npuprof_npu_release_job_(job, NPUPROF_NPU_READY_);
        return NPUPROF_ERR_NPU_BUSY;
    }
    memset(&link, 0, sizeof link);
    if (job) {
        const uint32_t flags = job->flags;
        muted = (flags & NPUPROF_NPU_MUTED_) != 0;
        known = !muted;
        link = job->link;
        stream = job->stream;
        if (job->name[0]) memcpy(name, job->name, sizeof name);
        /* Over; if its block is still open, that frees the entry. */
        if (whole) NPUPROF_STORE_(&job->flags, flags & ~(uint32_t)(NPUPROF_NPU_HAS_ID_ | NPUPROF_NPU_IN_BLOCK_));
        npuprof_npu_release_job_(job, whole && !(flags & NPUPROF_NPU_IN_BLOCK_) ? NPUPROF_NPU_FREE_ : NPUPROF_NPU_READY_);
    }
    if (muted || (!known && !NPUPROF_OPEN_(1))) return NPUPROF_OK;
    if (!good) return NPUPROF_ERR_NPU_RING;
    if (ring->op.width_bytes) {
        if (r->op < ring->op_count && ring->op_names && ring->op_names[r->op]) {
            npuprof_npu_copy_text_(name, sizeof name, ring->op_names[r->op]);
        } else {
            char digits[24];
            size_t n = sizeof digits - 1;
            uint64_t v = r->op;
            digits[n] = 0;
            do digits[--n] = (char)('0' + v % 10); while ((v /= 10) != 0);
            npuprof_npu_copy_text_(name, sizeof name, "op ");
            npuprof_npu_copy_text_(name + 3, sizeof name - 3, digits + n);
        }
    }
    npuprof_arg list[5];
    size_t count = 0;
    if (known) list[count++] = npuprof_int_("stream", (int64_t)stream);
    if (ring->job.width_bytes) list[count++] = npuprof_uint_("job", r->job);
    if (ring->execution.width_bytes) list[count++] = npuprof_uint_("execution_index", r->execution);
    if (ring->instruction.width_bytes && !(ring->execution_op && whole)) list[count++] = npuprof_uint_("instruction_index", r->instruction);
    if (r->status) list[count++] = npuprof_uint_("status", r->status);
    npuprof_device_span_(npu->number_, epoch, (unsigned)r->pe, ring->category ? ring->category : "NPU", name, start, end,
                         NPUPROF_STAMP_DEVICE, whole && known ? &link : NULL, npuprof_args_(list, count));
    return NPUPROF_OK;
}

static void npuprof_npu_count_lost_(npuprof_npu *npu, uint64_t count)
{
    if (!count) return;
    npuprof_npu_note_(npu, NPUPROF_NOTE_RING_LOST, count);
    npuprof_count_lost_(NPUPROF_LOST_RING, count);
}

/* Bits in which the sequence field and the number of an entry must agree. */
static uint64_t npuprof_npu_sequence_mask_(const npuprof_npu *npu)
{
    const npuprof_npu_ring *ring = &npu->desc_.ring;
    unsigned bits = ring->sequence.bits ? ring->sequence.bits : 8u * ring->sequence.width_bytes - ring->sequence.lsb;
    if (!ring->producer_is_slot && bits > ring->producer_bits) bits = ring->producer_bits;
    return npuprof_npu_mask_(bits);
}

/* Reads the producer index: the number of the next entry that the device will write. Moves ring_next_ if that cannot be. */
static npuprof_result npuprof_npu_read_producer_(npuprof_npu *npu, uint64_t *producer)
{
    const npuprof_npu_ring *ring = &npu->desc_.ring;
    const uint64_t mask = npuprof_npu_mask_(ring->producer_bits);
    const uint64_t word = npuprof_npu_load_register_(npu, ring->producer_offset, 4, ring->big_endian), index = word & mask;
    *producer = npu->ring_next_;
    if (word == 0xFFFFFFFFu) {
        npuprof_anchor_ sample;
        if (!npuprof_npu_lock_(npu)) return NPUPROF_ERR_NPU_BUSY;
        const npuprof_result result = npuprof_npu_read_locked_(npu, &sample);
        npuprof_npu_unlock_(npu);
        if (result == NPUPROF_ERR_NPU_DEAD) return result;
    }
    if (ring->producer_is_slot) {
        if (index >= ring->count) return NPUPROF_ERR_NPU_RING;
        if (!npu->ring_numbered_) {              /* the newest entry tells the count, if there is one */
            npuprof_npu_record_ newest;
            npu->ring_numbered_ = true;
            npu->ring_next_ = index;
            if (ring->sequence.width_bytes) {
                npuprof_npu_copy_record_(npu, index + ring->count - 1, &newest);
                if ((newest.sequence + 1) % ring->count == index) npu->ring_next_ = newest.sequence + 1;
            }
        }
        *producer = npu->ring_next_ + (index + ring->count - npu->ring_next_ % ring->count) % ring->count;
    } else {
        if (!npu->ring_numbered_) {
            npu->ring_numbered_ = true;
            npu->ring_next_ = index;
        }
        const uint64_t ahead = (index - npu->ring_next_) & mask;
        if (ahead > mask / 2) {                  /* went back: the device counts from 0 again */
            npu->ring_next_ = index > ring->count ? index - ring->count : 0;
            *producer = index;
            return NPUPROF_ERR_NPU_RING;
        }
        *producer = npu->ring_next_ + ahead;
    }
    return NPUPROF_OK;
}

/* Whether a drain may leave a record to the next one. */
static bool npuprof_npu_can_wait_(npuprof_npu *npu, uint64_t records)
{
    const uint64_t now = npuprof_ticks_();
    if (!npu->busy_since_) npu->busy_since_ = npuprof_max_(now, 1);
    return records <= npu->desc_.ring.count / 2 && npuprof_saturating_sub_(now, npu->busy_since_) <= npu->second_;
}

/* last: there is no next drain to leave anything to. */
static npuprof_result npuprof_npu_drain_(npuprof_npu *npu, bool last)
{
    const npuprof_npu_ring *ring = &npu->desc_.ring;
    npuprof_npu_record_ batch[NPUPROF_NPU_BATCH_];
    uint64_t producer = 0;
    uint32_t expected = 0;
    npuprof_result result = NPUPROF_OK;
    if (!npu->number_) return NPUPROF_ERR_ARGUMENT;
    if (!ring->count) return NPUPROF_ERR_NPU_NO_RING;
    if (!NPUPROF_CAS_(&npu->draining_, &expected, 1u)) return NPUPROF_OK;
    npuprof_result ring_result = npuprof_npu_read_producer_(npu, &producer);
    const uint64_t begun = npu->ring_next_;
    bool go_on = ring_result == NPUPROF_OK || (ring_result == NPUPROF_ERR_NPU_RING && producer > npu->ring_next_), due = false;
    npuprof_npu_now_ now = { 0, 0, 0, 0 };
    if (npuprof_npu_lock_(npu)) {
        npuprof_anchor_ sample;
        uint64_t least;
        if (go_on && producer != npu->ring_next_) result = npuprof_npu_read_locked_(npu, &sample);
        now.ticks = npu->last_.device_ticks;
        now.old_epoch_ticks = npu->old_epoch_ticks_;
        now.epoch = npu->epoch_;
        (void)npuprof_npu_predict_(npu, 0, npu->second_, &least, &now.slack);
        due = ring_result != NPUPROF_ERR_NPU_DEAD && (npuprof_npu_anchor_is_due_(npu, npuprof_ticks_()) || npuprof_npu_rate_changed_(npu, &npu->last_));
        npuprof_npu_unlock_(npu);
    } else {
        result = NPUPROF_ERR_NPU_BUSY;
    }
    if (result == NPUPROF_ERR_NPU_DEAD || result == NPUPROF_ERR_NPU_TORN || result == NPUPROF_ERR_NPU_BUSY) go_on = false;
    while (go_on && npu->ring_next_ != producer) {
        uint64_t first = npu->ring_next_, newest = 0;
        if (producer - first > ring->count) {
            npuprof_npu_count_lost_(npu, producer - ring->count - first);
            first = npu->ring_next_ = producer - ring->count;
        }
        const uint64_t count = npuprof_min_(producer - first, NPUPROF_NPU_BATCH_), mask = npuprof_npu_sequence_mask_(npu);
        for (uint64_t i = 0; i < count; i++) npuprof_npu_copy_record_(npu, first + i, &batch[i]);
        const npuprof_result again = npuprof_npu_read_producer_(npu, &newest);
        if (again != NPUPROF_OK) {
            if (ring_result == NPUPROF_OK) ring_result = again;
            break;
        }
        for (uint64_t i = 0; i < count && go_on; i++) {
            const uint64_t number = first + i, behind = newest - number;
            bool good = ring->sequence.width_bytes ? behind <= ring->count : behind < ring->count;
            if (good && ring->sequence.width_bytes) {
                const uint64_t ahead = (batch[i].sequence - number) & mask;
                good = ahead == 0 && batch[i].sequence_after == batch[i].sequence;
                /* Why: an index may be seen before the entry it announces. The entry is then the one of a lap before. */
                const bool later = ahead <= mask / 2 && ahead % ring->count == 0 && ahead;
                if (!good && !later && behind < ring->count) {
                    go_on = false;
                    break;
                }
                if (later && ring->producer_is_slot) {           /* whole laps that the index does not show */
                    npuprof_npu_count_lost_(npu, ahead);
                    npu->ring_next_ = number + ahead;
                    producer += ahead;
                    break;
                }
            }
            npuprof_result drawn = NPUPROF_ERR_NPU_RING;
            if (good) drawn = npuprof_npu_draw_record_(npu, &batch[i], &now, !last);
            if (drawn == NPUPROF_ERR_NPU_BUSY && npuprof_npu_can_wait_(npu, behind)) {
                go_on = false;
                break;
            }
            if (drawn == NPUPROF_ERR_NPU_BUSY) drawn = npuprof_npu_draw_record_(npu, &batch[i], &now, false);
            else npu->busy_since_ = 0;
            npu->ring_next_ = number + 1;
            if (drawn != NPUPROF_OK) npuprof_npu_count_lost_(npu, 1);
        }
    }
    if (npu->ring_next_ != begun && npu->desc_.pmu_count && NPUPROF_OPEN_(1) && npuprof_npu_lock_(npu)) {
        uint64_t pmu[NPUPROF_NPU_PMU_];
        const uint32_t good = npuprof_npu_load_pmu_(npu, pmu);
        npuprof_npu_add_pmu_(npu, good, pmu);
        npuprof_npu_unlock_(npu);
        npuprof_npu_draw_pmu_(npu, good, pmu);
    }
    NPUPROF_STORE_RELEASE_(&npu->draining_, 0u);
    if (due && result != NPUPROF_ERR_NPU_DEAD) {
        const npuprof_result synced = npuprof_npu_renew_anchor_(npu);
        if (result == NPUPROF_OK) result = synced;
    }
    return ring_result != NPUPROF_OK ? ring_result : result;
}

NPUPROF_API_ npuprof_result npuprof_npu_drain(npuprof_npu *npu) { return npuprof_npu_explain_result_(npu, npuprof_npu_drain_(npu, false)); }

static npuprof_result npuprof_npu_bench_read_(void *user, uint64_t *ticks) { return npuprof_npu_read((npuprof_npu *)user, ticks); }
/* Why both by the same anchors, after the second stamp: one that came in between would show as time. */
static npuprof_result npuprof_npu_bench_ns_(void *user, uint64_t from, uint64_t to, double *ns)
{
    int64_t start_ns, end_ns;
    npuprof_result r = npuprof_npu_host_ns((npuprof_npu *)user, from, &start_ns, NULL);
    if (r == NPUPROF_OK) r = npuprof_npu_host_ns((npuprof_npu *)user, to, &end_ns, NULL);
    if (r == NPUPROF_OK) *ns = (double)(end_ns - start_ns);
    return r;
}
NPUPROF_API_ npuprof_bench_clock npuprof_npu_clock(npuprof_npu *npu)
{
    npuprof_bench_clock clock;
    clock.read = npuprof_npu_bench_read_;
    clock.ns = npuprof_npu_bench_ns_;
    clock.user = npu;
    return clock;
}
#endif
/* ==== src/npu/kernel.h ================================================================= >>npu/kernel ==== */

/* The block macro. */
#ifdef NPUPROF_FREESTANDING
NPUPROF_API_ void npuprof_npu_enter_(npuprof_npu_block_ *block, npuprof_npu *npu, uint64_t stream)
{
    block->npu = npu;
    block->stream = stream;
    npuprof_wait_around_(&npu->device);
}
NPUPROF_API_ npuprof_token_ npuprof_npu_begin_(npuprof_npu_block_ *block, npuprof_token_ token)
{
    npuprof_npu *npu = block->npu;
    npuprof_anchor_ sample;
    block->result = NPUPROF_ERR_NPU_BUSY;
    if (!token || !npu->number_ || !npuprof_npu_lock_(npu)) return token;
    block->result = npuprof_npu_read_locked_(npu, &sample);
    block->epoch = npu->epoch_;
    block->start_ticks = sample.device_ticks;
    npuprof_npu_unlock_(npu);
    return token;
}
NPUPROF_API_ void npuprof_npu_end_(npuprof_npu_block_ *block)
{
    npuprof_npu *npu = block->npu;
    npuprof_anchor_ sample;
    npuprof_result result = NPUPROF_ERR_NPU_BUSY;
    uint32_t epoch = 0;
    bool renew = false, due = false;
    npuprof_wait_around_(&npu->device);
    if (!npu->number_) {
        npuprof_close_(block->token);
        return;
    }
    if (npuprof_npu_lock_(npu)) {
        result = npuprof_npu_read_locked_(npu, &sample);
        epoch = npu->epoch_;
        renew = npuprof_npu_time_goes_on_(result) && npu->anchor_count_ < 2;
        due = result == NPUPROF_OK && !renew && npuprof_npu_anchor_is_due_(npu, sample.host_after) &&
              npuprof_anchor_width_(&sample) <= 4 * npu->best_width_;
        npuprof_npu_unlock_(npu);
    }
    npuprof_close_(block->token);
    if (block->result != NPUPROF_OK) result = block->result;
    else if (result == NPUPROF_OK && epoch != block->epoch) result = npu->epoch_why_;
    if (result == NPUPROF_OK) {
        const npuprof_arg arg = npuprof_int_("stream", (int64_t)block->stream);
        const uint64_t values[3] = { block->start_ticks, sample.device_ticks,
                                     (uint64_t)block->token << 32 | (uint32_t)1 << 24 | (epoch & 0xFFFF) << 8 | npu->number_ };
        npuprof_npu_put_record_(NPUPROF_NPU_NAME_OF_(npu), NPUPROF_KIND_DEVICE, values, npuprof_args_(&arg, 1));
    } else {                             /* the event lies behind the host span, and says why there is no device span */
        const char *const texts[3] = { "no device span", "NPU", NULL };
        npuprof_arg why[2] = { npuprof_str_("device", npu->device.name), npuprof_uint_("why", (uint64_t)result) };
        why[1].type = NPUPROF_FIELD_RESULT_;
        (void)npuprof_fw_put_named_(NPUPROF_FW_REF_OF_KIND_(NPUPROF_KIND_INSTANT), false, texts, NULL, npuprof_args_(why, 2));
    }
    /* Why behind the host span: what it takes is none of the kernel's time. */
    if (due && npuprof_npu_lock_(npu)) {
        if (epoch == npu->epoch_) (void)npuprof_npu_add_anchor_(npu, &sample);
        npuprof_npu_unlock_(npu);
    }
    if (renew) (void)npuprof_npu_renew_anchor_(npu);
}

NPUPROF_API_ void npuprof_npu_span(npuprof_npu *npu, unsigned pe, const char *name, const char *cat, uint64_t start_ticks,
                                   uint64_t end_ticks, npuprof_args args)
{
    if (!npu->number_ || !NPUPROF_OPEN_(1)) return;
    const char *const texts[3] = { name ? name : "", cat, NULL };
    const uint64_t values[3] = { start_ticks, end_ticks < start_ticks ? start_ticks : end_ticks,
                                 (uint64_t)(pe & 0xFFFF) << 32 | (npu->epoch_ & 0xFFFF) << 8 | npu->number_ };
    (void)npuprof_fw_put_named_(NPUPROF_FW_REF_OF_KIND_(NPUPROF_KIND_DEVICE), false, texts, values, args);
}
#else
NPUPROF_API_ npuprof_token_ npuprof_npu_begin_(npuprof_npu_block_ *block, npuprof_npu *npu, uint64_t stream, npuprof_site_ *site,
                                               npuprof_keys_ *keys, bool literals, const char *category, const char *name,
                                               npuprof_args args)
{
    const bool by_ring = npu->number_ && npu->desc_.ring.count;
    const npuprof_token_ token =
        npuprof_begin_named_(by_ring ? NULL : &npu->device, site, keys, NPUPROF_KIND_SPAN, category, name, args);
    block->npu = npu;
    block->stream = stream;
    block->sampled = false;
    block->ticket = block->pmu_good = 0;
    block->result = NPUPROF_ERR_NPU_BUSY;
    if (!token || !npu->number_) return token;
    block->link = npuprof_link_here_();
    if (by_ring) {
        npuprof_npu_job_ *job = npuprof_npu_new_job_(npu, NPUPROF_NPU_IN_BLOCK_, stream, &block->link);
        if (job) {
            block->ticket = job->ticket;
            block->sampled = true;
            npuprof_npu_copy_text_(job->name, sizeof job->name, name);
            npuprof_npu_release_job_(job, NPUPROF_NPU_READY_);
        }
        return token;
    }
    block->name = name;
    block->category = category;
    if (!literals) {
        npuprof_npu_copy_text_(block->name_copy, sizeof block->name_copy, name);
        npuprof_npu_copy_text_(block->category_copy, sizeof block->category_copy, category);
        block->name = block->name_copy;
        block->category = category ? block->category_copy : NULL;
    }
    npuprof_anchor_ sample;
    if (!npuprof_npu_lock_(npu)) return token;
    block->result = npuprof_npu_read_locked_(npu, &sample);
    block->sampled = block->result == NPUPROF_OK;
    block->epoch = npu->epoch_;
    block->start_ticks = sample.device_ticks;
    if (block->sampled) block->pmu_good = npuprof_npu_load_pmu_(npu, block->pmu);
    npuprof_npu_add_pmu_(npu, block->pmu_good, block->pmu);
    npuprof_npu_unlock_(npu);
    npuprof_npu_draw_pmu_(npu, block->pmu_good, block->pmu);
    return token;
}

NPUPROF_API_ void npuprof_npu_end_(npuprof_npu_block_ *block)
{
    npuprof_npu *npu = block->npu;
    if (npu->number_ && npu->desc_.ring.count) {
        npuprof_npu_job_ *job = &npu->jobs_[block->ticket % NPUPROF_NPU_JOBS_];
        if (block->sampled && NPUPROF_LOAD_(&job->ticket) == block->ticket && npuprof_npu_hold_job_(job, NPUPROF_NPU_READY_)) {
            const bool mine = job->ticket == block->ticket;
            const uint32_t flags = job->flags;
            /* Over already, or the driver numbers its commands and submitted none here. */
            const bool over = mine && !(flags & NPUPROF_NPU_HAS_ID_) && (!(flags & NPUPROF_NPU_IN_BLOCK_) || NPUPROF_LOAD_(&npu->uses_ids_));
            if (mine) NPUPROF_STORE_(&job->flags, flags & ~(uint32_t)NPUPROF_NPU_IN_BLOCK_);
            npuprof_npu_release_job_(job, over ? NPUPROF_NPU_FREE_ : NPUPROF_NPU_READY_);
        }
        npuprof_close_(block->token);
        return;
    }
    if (npu->device.wait_around) npuprof_wait_(&npu->device);
    if (!npu->number_) {
        npuprof_close_(block->token);
        return;
    }
    npuprof_anchor_ sample;
    npuprof_result result = NPUPROF_ERR_NPU_BUSY;
    uint64_t pmu[NPUPROF_NPU_PMU_];
    uint32_t epoch = 0, pmu_good = 0;
    bool renew = false;
    if (npuprof_npu_lock_(npu)) {
        if (block->sampled) pmu_good = npuprof_npu_load_pmu_(npu, pmu);      /* Why first: so their steps lie between the two stamps */
        result = npuprof_npu_read_locked_(npu, &sample);
        epoch = npu->epoch_;
        if (result == NPUPROF_OK && epoch == block->epoch) npuprof_npu_add_pmu_(npu, pmu_good, pmu);
        renew = npuprof_npu_time_goes_on_(result) && (npu->anchor_count_ < 2 || npuprof_npu_rate_changed_(npu, &sample));
        /* A free anchor: this read has a bracket, too. Why not a wide one: it would be no better than waiting. */
        if (result == NPUPROF_OK && !renew && npuprof_npu_anchor_is_due_(npu, sample.host_after) &&
            npuprof_anchor_width_(&sample) <= 4 * npu->best_width_)
            (void)npuprof_npu_add_anchor_(npu, &sample);
        npuprof_npu_unlock_(npu);
    }
    if (block->result != NPUPROF_OK) result = block->result;
    else if (result == NPUPROF_OK && epoch != block->epoch) result = npu->epoch_why_;
    if (result == NPUPROF_ERR_NPU_BUSY) npuprof_count_lost_(NPUPROF_LOST_BUSY, 1);
    if (result != NPUPROF_OK) {          /* the host span says why there is no device span */
        const npuprof_arg why[] = { npuprof_str_("device", npu->device.name),
                                    npuprof_str_("why", npuprof_result_string(npuprof_npu_explain_result_(npu, result))) };
        npuprof_record_named_event_(NPUPROF_KIND_INSTANT, "NPU", "no device span", 0, NULL, 0, npuprof_args_(why, 2));
    }
    npuprof_close_(block->token);
    if (result == NPUPROF_OK) {
        npuprof_arg list[1 + NPUPROF_NPU_PMU_];
        size_t count = 0;
        list[count++] = npuprof_int_("stream", (int64_t)block->stream);
        npuprof_npu_draw_pmu_(npu, pmu_good, pmu);
        for (unsigned i = 0; i < npu->desc_.pmu_count; i++)
            if (pmu_good & block->pmu_good & 1u << i)
                list[count++] = npuprof_uint_(npu->pmu_[i].is.is_busy ? "busy_ticks" : npu->pmu_[i].is.name, pmu[i] - block->pmu[i]);
        npuprof_device_span_(npu->number_, epoch, 0, block->category, block->name, block->start_ticks, sample.device_ticks,
                             NPUPROF_STAMP_SAMPLED, &block->link, npuprof_args_(list, count));
    }
    if (renew) (void)npuprof_npu_renew_anchor_(npu);
}

NPUPROF_API_ void npuprof_npu_span(npuprof_npu *npu, unsigned pe, const char *name, const char *cat, uint64_t start_ticks,
                                   uint64_t end_ticks, npuprof_args args)
{
    if (!npu->number_ || !NPUPROF_OPEN_(1)) return;
    npuprof_device_span_(npu->number_, NPUPROF_LOAD_(&npu->epoch_), pe, cat, name, start_ticks, end_ticks < start_ticks ? start_ticks : end_ticks,
                         NPUPROF_STAMP_DEVICE, NULL, args);
}
#endif
/* ==== src/npu/open.h ===================================================================== >>npu/open ==== */

/* Whether [offset, offset + bytes) is aligned to `align`; *end grows to what it reaches. */
static bool npuprof_npu_cover_range_(size_t offset, size_t bytes, size_t align, size_t *end)
{
    if (offset % align || bytes > SIZE_MAX / 2 || offset > SIZE_MAX / 2) return false;
    if (offset + bytes > *end) *end = offset + bytes;
    return true;
}

/* Fills in a counter's defaults and checks it. *needed grows to the bytes of BAR it reaches. */
static npuprof_result npuprof_npu_check_counter_(npuprof_npu_counter *c, size_t *needed)
{
    if (!c->bits) c->bits = 64;
    if (!c->access) c->access = 32;
    if (c->bits > 64 || (c->access != 32 && c->access != 64)) return NPUPROF_ERR_NPU_COUNTER;
    if (c->order < NPUPROF_NPU_HI_LO_HI || c->order > NPUPROF_NPU_SINGLE) return NPUPROF_ERR_NPU_COUNTER;
    if (c->order == NPUPROF_NPU_SINGLE && c->bits > c->access) return NPUPROF_ERR_NPU_COUNTER;
    if (npuprof_npu_is_split_(c) && c->hi_offset == c->lo_offset) return NPUPROF_ERR_NPU_COUNTER;
    const size_t bytes = c->access / 8;
    if (!npuprof_npu_cover_range_(c->lo_offset, bytes, bytes, needed)) return NPUPROF_ERR_NPU_RANGE;
    return !npuprof_npu_is_split_(c) || npuprof_npu_cover_range_(c->hi_offset, bytes, bytes, needed) ? NPUPROF_OK : NPUPROF_ERR_NPU_RANGE;
}

#ifndef NPUPROF_FREESTANDING
/* The same for the event counters. */
static npuprof_result npuprof_npu_check_pmu_(npuprof_npu *npu, size_t *needed)
{
    const npuprof_npu_desc *d = &npu->desc_;
    if (d->pmu_count > NPUPROF_NPU_PMU_ || (d->pmu_count && !d->pmu)) return NPUPROF_ERR_ARGUMENT;
    if (d->pmu_count && d->read_ticks) return NPUPROF_ERR_NPU_RANGE;
    for (unsigned i = 0; i < d->pmu_count; i++) {
        npuprof_npu_pmu_state_ *p = &npu->pmu_[i];
        p->is = d->pmu[i];
        if (!p->is.name) return NPUPROF_ERR_ARGUMENT;
        const npuprof_result result = npuprof_npu_check_counter_(&p->is.counter, needed);
        if (result != NPUPROF_OK) return result;
        npuprof_npu_copy_text_(p->track, sizeof p->track, npu->device.name);
        const size_t length = strlen(p->track);
        if (length + 1 < sizeof p->track) p->track[length] = ' ';
        if (length + 1 < sizeof p->track) npuprof_npu_copy_text_(p->track + length + 1, sizeof p->track - length - 1, p->is.name);
        p->site.kind = NPUPROF_KIND_COUNTER_UINT;
        p->site.name = p->track;
    }
    return NPUPROF_OK;
}

/* Fills in the defaults and checks the ring. *needed grows to the bytes of BAR it reaches. */
static npuprof_result npuprof_npu_check_ring_(npuprof_npu *npu, size_t *needed)
{
    npuprof_npu_ring *r = &npu->desc_.ring;
    const npuprof_npu_field fields[] = { r->sequence, r->job, r->start, r->end, r->pe, r->op, r->status, r->execution, r->instruction };
    size_t align = 1;
    if (!r->count) return NPUPROF_OK;
    if (npu->desc_.read_ticks) return NPUPROF_ERR_NPU_RANGE;     /* no BAR, no producer index */
    if (!r->producer_bits) r->producer_bits = 32;
    if (r->producer_bits > 32 || !r->entry_bytes || (!r->start.width_bytes && !r->end.width_bytes)) return NPUPROF_ERR_NPU_RANGE;
    if (!r->producer_is_slot && (r->count - 1 > npuprof_npu_mask_(r->producer_bits) || (npuprof_npu_mask_(r->producer_bits) + 1) % r->count))
        return NPUPROF_ERR_NPU_RANGE;
    for (size_t i = 0; i < sizeof fields / sizeof fields[0]; i++) {
        const npuprof_npu_field f = fields[i];
        if (!f.width_bytes) continue;
        if (f.width_bytes != 1 && f.width_bytes != 2 && f.width_bytes != 4 && f.width_bytes != 8) return NPUPROF_ERR_NPU_RANGE;
        if (f.offset % f.width_bytes || (unsigned)f.offset + f.width_bytes > r->entry_bytes) return NPUPROF_ERR_NPU_RANGE;
        if (f.lsb + (f.bits ? f.bits : 1u) > 8u * f.width_bytes) return NPUPROF_ERR_NPU_RANGE;
        if (f.width_bytes > align) align = f.width_bytes;
    }
    if (r->count > 1 && r->entry_bytes % align) return NPUPROF_ERR_NPU_RANGE;
    if (r->count > SIZE_MAX / 2 / r->entry_bytes || !npuprof_npu_cover_range_(r->producer_offset, 4, 4, needed)) return NPUPROF_ERR_NPU_RANGE;
    const size_t bytes = (size_t)r->count * r->entry_bytes;
    if (r->memory) return r->memory_bytes < bytes || (uintptr_t)r->memory % align ? NPUPROF_ERR_NPU_RANGE : NPUPROF_OK;
    return npuprof_npu_cover_range_(r->offset, bytes, align, needed) ? NPUPROF_OK : NPUPROF_ERR_NPU_RANGE;
}

#endif

NPUPROF_API_ npuprof_result npuprof_npu_open(npuprof_npu *npu, const npuprof_npu_desc *desc)
{
    npuprof_result result;
    size_t needed = 0;
    if (!npu) return NPUPROF_ERR_ARGUMENT;
#ifndef NPUPROF_FREESTANDING
    memset(npu, 0, sizeof *npu);
    if (!desc) return NPUPROF_ERR_ARGUMENT;
    npu->desc_ = *desc;
#else   /* Why not that: calls, which may not be there. */
    for (size_t i = 0; i < sizeof *npu; i++) NPUPROF_STORE_((uint8_t *)npu + i, 0);
    if (!desc) return NPUPROF_ERR_ARGUMENT;
    npuprof_fw_copy_bytes_((uint8_t *)&npu->desc_, desc, sizeof *desc);
#endif
    npuprof_npu_desc *d = &npu->desc_;
    const npuprof_npu_counter *c = &d->counter;
    npu->device.name = d->name ? d->name : "npu";
    npu->device.wait = d->wait;
    npu->device.user = d->user;
    npu->device.wait_around = d->wait_around;
    if ((d->bar != NULL) + (d->resource != NULL) + (d->vfio ? 1 : 0) + (d->read_ticks != NULL) != 1) return NPUPROF_ERR_NPU_SOURCE;
    if (!d->pe_count) d->pe_count = 1;
    if (!d->brackets) d->brackets = 8;
    if (!d->max_rate_ppm) d->max_rate_ppm = 2;
    const uint32_t rate_ppm = d->max_rate_ppm;   /* an unsigned may have 16 bits */
    if (rate_ppm > 500000) return NPUPROF_ERR_ARGUMENT;
    if (c->hz > NPUPROF_MAX_HZ_) return NPUPROF_ERR_NPU_RATE;
    if (d->read_ticks) {                 /* the function tells all bits at once, and offsets are nothing to it */
        d->counter.order = NPUPROF_NPU_SINGLE;
        d->counter.access = 64;
        d->counter.lo_offset = 0;
    }
    result = npuprof_npu_check_counter_(&d->counter, &needed);
#ifndef NPUPROF_FREESTANDING
    if (result == NPUPROF_OK) result = npuprof_npu_check_ring_(npu, &needed);
    if (result == NPUPROF_OK) result = npuprof_npu_check_pmu_(npu, &needed);
#else
    if (d->ring.count || (d->bar && c->access > 8 * sizeof(void *) && c->access > 32)) return NPUPROF_ERR_UNSUPPORTED;
    if (npuprof_user_hz_() >> 32) return NPUPROF_ERR_UNSUPPORTED;      /* second_ has 32 bits */
#endif
    if (result != NPUPROF_OK) return result;
    if (d->bar) {
        if (d->bar_bytes < needed || (uintptr_t)d->bar % (c->access / 8)) return NPUPROF_ERR_NPU_RANGE;
        npu->bar_ = (const volatile unsigned char *)d->bar;
    } else if (!d->read_ticks) {
        result = npuprof_npu_map_(npu, needed);
        if (result == NPUPROF_OK && (uintptr_t)npu->bar_ % (c->access / 8)) result = NPUPROF_ERR_NPU_RANGE;
        if (result != NPUPROF_OK) {
            npuprof_npu_unmap_(npu);
            return result;
        }
    }

#ifndef NPUPROF_FREESTANDING
    npu->tickets_ = npu->first_ticket_ = NPUPROF_NPU_JOBS_;      /* none of the entries, whose tickets are 0, is one of them */
    const uint64_t ns_per_4g = npuprof_ns_per_4g_ticks_();
    npu->second_ = npuprof_max_(npuprof_mul_div_((uint64_t)1000000000 << 30, 4, npuprof_max_(ns_per_4g, 1), false), 1000);
#else
    static uint8_t devices;
    if (!npuprof_is_ready_()) return NPUPROF_ERR_ARENA_SIZE;
    npu->second_ = (uint32_t)npuprof_max_((uint32_t)npuprof_user_hz_(), 1000);
#endif
    npu->lag_ = npuprof_mul_div_(npu->second_, c->lag_ns, 1000000000, true);
    npuprof_anchor_ sample;
    result = npuprof_npu_read_locked_(npu, &sample);
#ifdef NPUPROF_FREESTANDING
    if (result == NPUPROF_OK && devices == 255) result = NPUPROF_ERR_TABLE_FULL;
    if (result == NPUPROF_OK) {
        const uint64_t bits = c->bits;
        npu->number_ = ++devices;
        const uint64_t values[3] = { c->hz, d->max_rate_ppm * (uint64_t)1000 | bits << 32, npu->number_ | (uint64_t)(d->pe_count & 0xFFFFFF) << 8 };
        const npuprof_args none = { NULL, 0 };
        npuprof_npu_put_record_(npu->device.name, NPUPROF_CELL_KIND_DEVICE_, values, none);
        if (d->pmu_count) npuprof_fw_put_note_(NPUPROF_CELL_KIND_METADATA_, npu->device.name, "value", "desc.pmu is not sampled on firmware");
        if (npu->lag_) npuprof_npu_note_(npu, NPUPROF_NOTE_LAG, npu->lag_);
    }
#else
    if (result == NPUPROF_OK) {
        npu->number_ = npuprof_device_add_(npu->device.name, d->pe_count, c->hz, d->max_rate_ppm * 1000u);
        npuprof_npu_note_(npu, NPUPROF_NOTE_LAG, npu->lag_);
        if (!npu->number_) result = NPUPROF_ERR_TABLE_FULL;
    }
    if (result == NPUPROF_OK && d->ring.count) {
        uint64_t producer;
        result = npuprof_npu_read_producer_(npu, &producer);
        npu->ring_next_ = producer;
    }
#endif
    if (result == NPUPROF_OK) {
        bool stale;
        result = npuprof_npu_take_brackets_(npu, &stale);
        if (stale && npu->anchor_count_ == 0) result = npuprof_npu_add_anchor_(npu, &npu->last_);
        if (result == NPUPROF_OK) npuprof_npu_take_second_anchor_(npu);
    }
    if (result != NPUPROF_OK) {
        result = npuprof_npu_explain_result_(npu, result);
        npu->number_ = 0;
        npuprof_npu_unmap_(npu);
    }
    return result;
}

NPUPROF_API_ void npuprof_npu_close(npuprof_npu *npu)
{
    if (!npu->number_) return;
#ifndef NPUPROF_FREESTANDING
    if (npu->desc_.ring.count) {
        const npuprof_result result = npuprof_npu_drain_(npu, true);
        uint64_t producer;
        if (result != NPUPROF_ERR_NPU_DEAD && npuprof_npu_read_producer_(npu, &producer) == NPUPROF_OK)
            npuprof_npu_count_lost_(npu, producer - npu->ring_next_);
    }
#endif
    (void)npuprof_npu_sync(npu);
    npu->number_ = 0;
    npuprof_npu_unmap_(npu);
}

NPUPROF_SHADOW_POP_
NPUPROF_END_C_

#endif /* NPUPROF_IMPLEMENTATION */

/* MIT License

   Copyright (c) the npuprof authors

   Permission is hereby granted, free of charge, to any person obtaining a copy of this software and associated
   documentation files (the "Software"), to deal in the Software without restriction, including without limitation the
   rights to use, copy, modify, merge, publish, distribute, sublicense, and/or sell copies of the Software, and to permit
   persons to whom the Software is furnished to do so, subject to the following conditions:

   The above copyright notice and this permission notice shall be included in all copies or substantial portions of the
   Software.

   THE SOFTWARE IS PROVIDED "AS IS", WITHOUT WARRANTY OF ANY KIND, EXPRESS OR IMPLIED, INCLUDING BUT NOT LIMITED TO THE
   WARRANTIES OF MERCHANTABILITY, FITNESS FOR A PARTICULAR PURPOSE AND NONINFRINGEMENT. IN NO EVENT SHALL THE AUTHORS OR
   COPYRIGHT HOLDERS BE LIABLE FOR ANY CLAIM, DAMAGES OR OTHER LIABILITY, WHETHER IN AN ACTION OF CONTRACT, TORT OR
   OTHERWISE, ARISING FROM, OUT OF OR IN CONNECTION WITH THE SOFTWARE OR THE USE OR OTHER DEALINGS IN THE SOFTWARE. */
