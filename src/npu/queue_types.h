#pragma once   /* SPDX-License-Identifier: MIT */
#include "../public/macros.h"
#include "ring_types.h"

/* What an open device holds for each queue of records, and for the records that wait for others. Private: a
   user only gives storage for it, inside npuprof_npu. All of it belongs to who holds the queue lock. */

#ifndef NPUPROF_FREESTANDING
/* NPUPROF_NPU_AT_*: their places in npuprof_npu_record_. Behind them those of more_args. */
#define NPUPROF_NPU_VALUE_AT_(word, member) NPUPROF_NPU_AT_##word##_,
enum {
    NPUPROF_NPU_RING_VALUES_(NPUPROF_NPU_VALUE_AT_)
    NPUPROF_NPU_AT_MORE_ARGS_,
    NPUPROF_NPU_ALL_ARGS_ = NPUPROF_NPU_ARGS + NPUPROF_NPU_MORE_ARGS,
    NPUPROF_NPU_VALUES_ = NPUPROF_NPU_AT_MORE_ARGS_ + NPUPROF_NPU_MORE_ARGS
};

enum {
    NPUPROF_NPU_PAIRS_ = 128,            /* begins that may be open in all rings of a device */
    NPUPROF_NPU_PAIR_BUCKETS_ = 64,
    NPUPROF_NPU_LANES_ = 256,            /* values of `pe` that are told apart: three quarters of it */
    NPUPROF_NPU_SEEN_ = 4096             /* entries whose content is remembered: READY_VALID */
};

typedef struct npuprof_npu_word_ { uint16_t offset; uint8_t bytes; } npuprof_npu_word_;

/* A value as bits of one or two words of an entry. bits 0: there is no such value. */
typedef struct npuprof_npu_value_ {
    uint8_t word, hi_word, lsb, bits, hi_lsb, hi_bits;
    uint64_t mask, hi_mask;
} npuprof_npu_value_;

/* How a value comes out of an entry that was copied. */
typedef struct npuprof_npu_step_ {
    uint8_t at, word, lsb, hi_word, hi_lsb, bits;        /* bits: of the first part, if there is a second */
    uint64_t mask, hi_mask;              /* hi_mask 0: there is none */
} npuprof_npu_step_;

/* A value that becomes an argument of the span. */
typedef struct npuprof_npu_drawn_ { unsigned at; const char *key; } npuprof_npu_drawn_;

/* An index as it was read last, and the ring it is of. */
typedef struct npuprof_npu_index_state_ {
    uint64_t count, entry_bytes;         /* entries of a lap; bytes of one */
    bool big_endian;
    const volatile unsigned char *at, *laps_at;
    uint64_t last;                       /* extended: in the index's unit, or entries if it is a slot */
    uint64_t mask;
    uint64_t silent;                     /* hash of the last slot while it is not known whether a lap was
                                            written */
    bool known, in_bar, is_bad, was_empty;
    bool may_be_full;                    /* with was_empty: its last slot was not blank at open */
    bool shows_count;                    /* a slot that is `count` is slot 0 */
    bool wrap;                           /* the wrap bit that belongs to `last` */
} npuprof_npu_index_state_;

typedef struct npuprof_npu_queue_ {
    npuprof_npu_ring is;                 /* the user's, with the defaults filled in */
    const struct npuprof_npu_rule_ *rule;        /* who says that an entry is there; NULL: the ring is fed */
    const volatile unsigned char *base;  /* entry 0; NULL: the ring is fed */
    npuprof_npu_word_ words[2 * NPUPROF_NPU_VALUES_];
    npuprof_npu_value_ values[NPUPROF_NPU_VALUES_];
    uint8_t present[NPUPROF_NPU_VALUES_];        /* the values that there are */
    unsigned word_count, present_count, number;  /* number: in npuprof_npu.queues_ */
    npuprof_npu_word_ copied[2 * NPUPROF_NPU_VALUES_];   /* the words of a whole entry, for `steps` */
    npuprof_npu_step_ steps[NPUPROF_NPU_VALUES_];        /* one for each of `present` */
    unsigned copied_count;
    npuprof_npu_drawn_ drawn[3 + NPUPROF_NPU_ALL_ARGS_];
    unsigned drawn_count;
    uint8_t stamp_bits;                  /* more bits of a stamp mean nothing */
    bool remembers;                      /* its lanes keep their last stamps */
    bool copies_wide;                    /* all of `copied` are of 8 bytes, in this machine's order */
    npuprof_npu_index_state_ index;
    uint64_t next;                       /* number of the next entry to read */
    bool found;                          /* npuprof_npu_find_ring_() has looked for `next` */
    bool numbered;                       /* next is known */
    bool gap;                            /* entries in front of `next` are lost: their begins and ends, too */
    bool stuck;                          /* READY_VALID: nobody clears */
    uint64_t read_end;                   /* `next` + 1 when read_hash was taken; 0: never */
    uint32_t read_hash;                  /* of the entry before `next`, as it was read */
    uint64_t searched_at;                /* READY_VALID: host ticks when the whole ring was looked at */
    uint64_t run;                        /* READY_VALID: entries read since one was not ready */
    uint64_t blank_at;                   /* READY_VALID: number + 1 of the entry last seen not ready */
    uint32_t seen_at;                    /* READY_VALID: its first place in seen_; SEEN_: it has none */
    uint64_t last_sequence;              /* of the entry before: READY_VALID and fed */
    bool has_sequence;
    uint64_t looked;                     /* host ticks when it was last drained or fed; 0: never */
    unsigned next_lane, spare_lane;      /* for a value of `pe` that has no name: before it from pe_base on,
                                            after it from the last PE back, all are taken */
    unsigned last_lane;                  /* place in lanes_ of the value met last, + 1 */
} npuprof_npu_queue_;

/* A lane: a value of `pe` of a ring. ring 0: the place is free. */
typedef struct npuprof_npu_lane_state_ {
    uint64_t value, last;                /* last: the last stamp, extended, in units of the stamp */
    uint64_t last_ticks;                 /* the latest device time seen */
    uint32_t epoch;                      /* of both */
    uint16_t lane;                       /* the PE */
    uint8_t ring;                        /* + 1 */
    bool has_last;
} npuprof_npu_lane_state_;

/* An entry's values, by NPUPROF_NPU_AT_*; 0 where there is none. */
typedef struct npuprof_npu_record_ { uint64_t v[NPUPROF_NPU_VALUES_]; } npuprof_npu_record_;

/* Whose a record is. */
typedef struct npuprof_npu_submission_ {
    bool known, muted;                   /* muted: its record is not to be drawn */
    bool has_arrow;                      /* this record is the first that may take the arrow */
    uint32_t epoch;                      /* of device time, when it was submitted */
    uint32_t run;                        /* the epoch of `begun` and `over` */
    uint64_t begun, over;                /* device ticks that a part of it lies between; 0 = not known */
    uint64_t submitted;                  /* host ticks that its work is not older than; 0 = not known */
    uint64_t stream;
    npuprof_link_ link;
    char name[64];
} npuprof_npu_submission_;
#endif /* !NPUPROF_FREESTANDING */
