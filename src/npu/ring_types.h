#pragma once   /* SPDX-License-Identifier: MIT */
#include "../public/macros.h"

/* How a user describes a queue of records: where entries lie and who says that one is there (transport), what
   is where in an entry (format), what a stamp counts (clock). The three do not know each other: the same
   entry may be polled from a ring or handed over by npuprof_npu_feed(). Zero in a field means its default.
   npuprof_npu_open() refuses what cannot be, NPUPROF_ERR_NPU_RANGE, and names the key. */

/* A value in one or two words of an entry. width_bytes 0: the device has no such field. At most 64 bits. */
typedef struct npuprof_npu_field {
    uint16_t offset;                     /* bytes into the entry, naturally aligned */
    uint8_t width_bytes;                 /* width of the load: 1, 2, 4, 8; 0 = absent */
    uint8_t lsb, bits;                   /* bit field inside that word; bits 0 = all above lsb */
    uint8_t hi_width_bytes;              /* a second part, whose bits go above those of the first; 0 = none */
    uint8_t hi_lsb, hi_bits;
    uint16_t hi_offset;
} npuprof_npu_field;

/* A field that must have a value. field.width_bytes 0: no condition. */
typedef struct npuprof_npu_condition {
    npuprof_npu_field field;
    uint64_t value;
} npuprof_npu_condition;

/* What an index counts. */
enum {
    NPUPROF_NPU_INDEX_COUNT = 0,         /* entries since reset, wrapping at its width. Of less than 32 bits:
                                            of a reader that is a lap late, the trace says that it may have
                                            lost more than it counts (loss_unknown) */
    NPUPROF_NPU_INDEX_SLOT,              /* the next slot, 0 to count - 1. Without laps and a `sequence` of at
                                            least 32 bits: the same, also with has_wrap */
    NPUPROF_NPU_INDEX_BYTES,             /* bytes since reset, wrapping at its width. Of less than 32 bits: as
                                            with _COUNT */
    NPUPROF_NPU_INDEX_BYTE_OFFSET,       /* the next slot, in bytes from the first */
    NPUPROF_NPU_INDEX_UNIT_COUNT_
};

/* Where the device says how far it has come. One load; an index of 64 bits that is written in two halves is
   loaded until two loads agree. */
typedef struct npuprof_npu_index {
    const volatile void *memory;         /* a mapping of its own, which outlives the device; NULL: in_memory
                                            decides */
    size_t memory_bytes;
    bool in_memory;                      /* offset counts from ring.memory, in front of the entries or behind
                                            them; else from the BAR */
    size_t offset;                       /* bytes, naturally aligned */
    uint8_t width_bytes;                 /* 2, 4 or 8; 0 = 4 */
    uint8_t lsb, bits;                   /* bit field inside that word; bits 0 = all above lsb */
    int unit;                            /* one of NPUPROF_NPU_INDEX_COUNT, _SLOT, _BYTES, _BYTE_OFFSET */
    bool has_laps;                       /* with _SLOT and _BYTE_OFFSET: a word of the same width, in the same
                                            memory, that goes up by 1 when slot 0 is written, in each lap: not
                                            yet when the index is 0 again behind the last slot */
    size_t laps_offset;
    uint32_t laps_first;                 /* its value during the first lap: 1 if it counts how often slot 0
                                            was written, 0 if it counts how often it was written again */
    bool has_wrap;                       /* with _SLOT and _BYTE_OFFSET: bit wrap_bit of the word that holds
                                            the index is the other one in each lap. Not with has_laps */
    uint8_t wrap_bit;
} npuprof_npu_index;

/* Who says that an entry is there. */
enum {
    NPUPROF_NPU_READY_PRODUCER = 0,      /* `producer`, an index */
    NPUPROF_NPU_READY_VALID,             /* its field `valid` has the value for that; somebody else clears it.
                                            Both in order: of a table whose slots end in any order, entries
                                            may be missed, or drawn twice; hand those over by
                                            npuprof_npu_feed(). What he clears before it is read is counted,
                                            but for whole laps; with `sequence`, for all its numbers. The
                                            trace says so (loss_unknown), unless that has 32 bits */
    NPUPROF_NPU_READY_PHASE,             /* its bit `phase` equals phase_first in even laps, and not in odd
                                            ones. A reader that is a whole lap late loses what is there; of
                                            one, without a `sequence` of at least 32 bits, the trace says
                                            that it may have lost more than it counts */
    NPUPROF_NPU_READY_SEQUENCE,          /* its field `sequence` shows its number, and has numbers for more
                                            than two laps */
    NPUPROF_NPU_READY_COUNT_
};

/* What an entry is. */
enum {
    NPUPROF_NPU_KIND_SPAN = 0,           /* a whole span */
    NPUPROF_NPU_KIND_BEGIN,              /* the begin of a span; its `stamp` */
    NPUPROF_NPU_KIND_END,                /* ends the newest open begin of the same lane and key. Name, op and
                                            job are the begin's, status is the end's. execution, instruction,
                                            each of args: the end's, or the begin's if the end's is 0 */
    NPUPROF_NPU_KIND_INSTANT,            /* one event */
    NPUPROF_NPU_KIND_COUNTER,            /* `value` on a track that the op names */
    NPUPROF_NPU_KIND_SKIP,               /* nothing, and not lost */
    NPUPROF_NPU_KIND_COUNT_
};
typedef struct npuprof_npu_kind { uint64_t value; int is; } npuprof_npu_kind;

/* What a stamp counts. */
enum {
    NPUPROF_NPU_STAMP_COUNTER = 0,       /* ticks of desc.counter, after scale and offset */
    NPUPROF_NPU_STAMP_HOST,              /* stamp_unit_ns each, on the clock of npuprof_now_ns() */
    NPUPROF_NPU_STAMP_NONE,              /* there is none: a span lasts from its submission to the moment its
                                            record is drained or fed, on the host's clock, and is marked
                                            "stamp":"host". With `duration`, it ends then, and lasted that
                                            long */
    NPUPROF_NPU_STAMP_COUNT_
};

/* Where the numbers of `job` are unique: the submission that a record belongs to has its number, and
   if it is not _DEVICE, this stream. Numbers of npuprof_npu_job() are unique anyway. */
enum {
    NPUPROF_NPU_SCOPE_DEFAULT = 0,       /* _DEVICE if there is one ring, _RING if there are several */
    NPUPROF_NPU_SCOPE_RING,              /* in a ring: its stream is the ring's place in desc.rings */
    NPUPROF_NPU_SCOPE_LANE,              /* in a lane: its stream is the PE; with `lanes`, and above 65535,
                                            the value of pe */
    NPUPROF_NPU_SCOPE_DEVICE,            /* in the device: the stream says nothing */
    NPUPROF_NPU_SCOPE_COUNT_
};

typedef struct npuprof_npu_op { uint64_t code; const char *name; } npuprof_npu_op;
typedef struct npuprof_npu_lane { uint64_t value; const char *name; } npuprof_npu_lane;
typedef struct npuprof_npu_arg { npuprof_npu_field field; const char *name; } npuprof_npu_arg;

enum { NPUPROF_NPU_RINGS = 128, NPUPROF_NPU_KEYS = 2, NPUPROF_NPU_CONDITIONS = 2, NPUPROF_NPU_ARGS = 4,
       NPUPROF_NPU_MORE_ARGS = 8 };

/* A queue of records. count 0 and not `feed`: the device has none. */
typedef struct npuprof_npu_ring {
    /* Transport: how entries come. */
    bool feed;                           /* the driver hands them to npuprof_npu_feed(), or with entry_bytes 0
                                            what it decoded itself to npuprof_npu_complete(). Not with count,
                                            producer, valid or phase */
    const volatile void *memory;         /* ring in host memory; NULL: it lies in the BAR at `offset` */
    size_t memory_bytes;
    size_t offset;                       /* bytes into the BAR */
    size_t first;                        /* bytes in front of entry 0, from `memory` or `offset` */
    unsigned entry_bytes, count;         /* count: entries in the ring */
    int ready;                           /* one of NPUPROF_NPU_READY_PRODUCER, _VALID, _PHASE, _SEQUENCE */
    npuprof_npu_index producer;
    npuprof_npu_field valid, phase;      /* at most 32 bits; 1 bit */
    uint32_t valid_value, phase_first;
    npuprof_npu_field sequence;          /* low bits of the entry's number (free-running count), which prove
                                            that the entry is the expected one. Of less than 32 bits, they
                                            do not tell how often they came round: of a reader that is a lap
                                            late, the trace says that it may have lost more than it counts */
    uint64_t sequence_first;             /* sequence of the first entry after reset */
    bool big_endian;                     /* of the entries and the producer index */

    /* Format: where things are in an entry. */
    npuprof_npu_field start, end, duration;  /* of a span: start and end, or one of them, or one and duration
                                            */
    npuprof_npu_field stamp;             /* of a begin, an end, an instant, a counter */
    npuprof_npu_field kind;              /* absent: all entries are `all_are` */
    const npuprof_npu_kind *kinds;       /* kind -> NPUPROF_NPU_KIND_*; a kind outside is counted as unknown
                                            */
    unsigned kind_count;
    int all_are;                         /* one of NPUPROF_NPU_KIND_* */
    npuprof_npu_field key[NPUPROF_NPU_KEYS];     /* match an end with its begin, beside the lane */
    npuprof_npu_condition empty[NPUPROF_NPU_CONDITIONS];         /* if all hold: no entry, and not lost */
    npuprof_npu_condition clock_when[NPUPROF_NPU_CONDITIONS];  /* if all hold: no entry; clock_high is the
                                            part above the bits of `stamp` from here on, for its lane */
    npuprof_npu_field clock_high;
    npuprof_npu_field job, pe, op, status, execution, instruction, value;
    int job_scope;                       /* one of NPUPROF_NPU_SCOPE_DEFAULT, _RING, _LANE, _DEVICE */
    npuprof_npu_arg args[NPUPROF_NPU_ARGS];      /* further fields, as unsigned arguments of the span */
    const npuprof_npu_op *ops;           /* op code -> span name, sorted by code */
    unsigned op_count;
    const char *(*op_name)(void *user, uint64_t code);  /* for codes that are not in ops; NULL from it: named
                                            "op 17". Called by the drain or feed; user is desc.user */
    uint64_t execution_op;               /* op code + 1 of the record that stands for the whole job; 0 = none
                                            */
    const npuprof_npu_lane *lanes;       /* value of `pe` -> name of its lane; lane i of the table is PE
                                            pe_base + i. A value outside that is the number of a PE keeps it;
                                            where it is taken, the last free one. Another value takes the
                                            first free one. None is free: the last. NULL: the value is the PE
                                            */
    unsigned lane_count;
    unsigned pe_base;                    /* added to the PE: several rings of a device */
    const char *category;                /* of the device spans; NULL = "NPU" */

    /* Clock: what stamps count. */
    int stamp_clock;                     /* one of NPUPROF_NPU_STAMP_COUNTER, _HOST, _NONE */
    uint32_t stamp_unit_ns;              /* with _HOST; 0 = 1 */
    uint64_t scale_num, scale_den;       /* ticks = stamp * scale_num / scale_den + stamp_offset; 0 = 1; each
                                            at most 2^32. Not with _HOST */
    int64_t stamp_offset;                /* in ticks of the counter; npuprof_npu_set_stamp_offset() */
    bool ascending;                      /* stamps of a lane do not go back: a narrow one is not older than
                                            the one before it */
    uint32_t max_age_ms;                 /* a record is seen at most so many ms after its work began, if drain
                                            or feed looks for it: one that the last look did not see is not
                                            older. 0 = not known */
    uint64_t duration_num, duration_den; /* duration * duration_num / duration_den is in units of a stamp, or
                                            in ns; 0 = 1; each at most 2^32 */
    bool duration_in_ns;                 /* it is in ns, as with STAMP_NONE; in ticks by the measured rate.
                                            Its unit and that rate make the other end less certain than
                                            the stamp: the argument duration_error_ns says by how much */
    const npuprof_npu_arg *more_args;    /* behind those of args, at most NPUPROF_NPU_MORE_ARGS */
    unsigned more_arg_count;
} npuprof_npu_ring;

/* The values of an entry: X(WORD, member of npuprof_npu_ring), where its field comes first. In the order in
   which they are loaded and checked. */
#define NPUPROF_NPU_PLAIN_VALUES_(X)                                                                       \
    X(SEQUENCE, sequence) X(VALID, valid) X(PHASE, phase) X(KIND, kind) X(JOB, job) X(START, start)        \
    X(END, end) X(DURATION, duration) X(STAMP, stamp) X(CLOCK_HIGH, clock_high) X(VALUE, value) X(PE, pe)  \
    X(OP, op) X(STATUS, status) X(EXECUTION, execution) X(INSTRUCTION, instruction)
#define NPUPROF_NPU_RING_VALUES_(X)                                                                        \
    NPUPROF_NPU_PLAIN_VALUES_(X)                                                                           \
    X(EMPTY, empty[0]) X(EMPTY_1, empty[1]) X(CLOCK_WHEN, clock_when[0]) X(CLOCK_WHEN_1, clock_when[1])    \
    X(KEY, key[0]) X(KEY_1, key[1]) X(ARGS, args[0]) X(ARGS_1, args[1]) X(ARGS_2, args[2])                 \
    X(ARGS_3, args[3])

/* An index of finished jobs, for a device without records: every job below it is done. Not with a ring. */
typedef struct npuprof_npu_progress {
    bool is_there;
    npuprof_npu_index index;             /* in the BAR or in index.memory */
    unsigned count;                      /* with _SLOT and _BYTE_OFFSET: slots in a lap */
    unsigned entry_bytes;                /* with _BYTES and _BYTE_OFFSET */
    bool big_endian;
} npuprof_npu_progress;
