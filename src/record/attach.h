#pragma once   /* SPDX-License-Identifier: MIT */
#include "../public/hot.h"
#include "../format/arena.h"
#include "../arena/state.h"

/* What a tool in another process (`npuprof.py attach PID`) finds in this one by its first 16 bytes, reads and
   writes, if the kernel lets it. The last of these bytes is the number of this layout, and changes with it.
   All of it lies in a section of its own, which no strip removes.

   The way of a recording:
     1. The tool stores level, beat and tool; ASKED_START in `asked`; then 0x7F in the gate's highest byte.
     2. The gate is open: the next mark takes the slow path (npuprof_arena_fast_ is no generation while it was
        closed), sees `asked`, and its thread calls npuprof_record_hooks_.answer (control/attach.h).
     3. At the end the tool stores ASKED_STOP, and 0xFF in the highest byte of npuprof_arena_fast_, which no
        call site has: the next mark takes the slow path again. If none comes, the tool closes the gate with
        0x80 in its highest byte. ASKED_STOP then waits for the next record, and no recording begins before.
     4. The tool waits until no slot is busy, and copies the arena. What began behind `until` is none of the
        recording, nor is what began before header.clear_ticks.
   Nothing else is stored from outside. Each of these stores changes one byte, or a word that counts only once
   `asked` is stored: so every mixture of old and new bytes is harmless.

   Words, all atomic: of the tool asked (the program stores 0 when it is done), level, tool and beat; of the
   program the others. */

#if defined(__linux__) && defined(NPUPROF_CONSTRUCTOR_) && !defined(NPUPROF_NO_ATTACH) && \
    !defined(NPUPROF_RECORD_ONLY)
#define NPUPROF_ATTACHES_ 1
#define NPUPROF_ATTACH_(...) __VA_ARGS__
#else
#define NPUPROF_ATTACHES_ 0
#define NPUPROF_ATTACH_(...)
#endif

#if NPUPROF_ATTACHES_

enum { NPUPROF_ASKED_START_ = 1, NPUPROF_ASKED_STOP_ = 2 };

typedef struct npuprof_record_attach_words_ {
    char magic[16];
    uint64_t until;                /* 16 ticks: the end of the last recording */
    uint32_t version, bytes;       /* 24 NPUPROF_VERSION; of this struct, which tells the size of a pointer */
    uint32_t owned_at;             /* 32 offset in a slot of `owned`, behind which `busy` is */
    uint32_t own;                  /* 36 1: the program records, or has recorded, by itself */
    uint32_t asked, level;         /* 40 NPUPROF_ASKED_*; up to which level marks are recorded */
    uint32_t tool, beat;           /* 48 a number of the tool, 0: none; changes each second while it lives */
    uint32_t answers, state;       /* 56 how often the program has answered; 1: it records for a tool */
    const void *self;              /* 64 this struct's address */
    int *gate;                     /* of the copy that leads */
    uint32_t *fast;
    uint8_t **base;                /* where the arena's address is; NULL there: this copy does not lead */
} npuprof_record_attach_words_;

NPUPROF_ATTRIBUTE_((section(".npuprof"), used))
static npuprof_record_attach_words_ npuprof_record_attach_ = {
    { 'n', 'p', 'u', 'p', 'r', 'o', 'f', '-', 'a', 't', 't', 'a', 'c', 'h', '-', '1' }, 0,
    NPUPROF_VERSION, sizeof(npuprof_record_attach_words_), offsetof(npuprof_slot_, owned),
    0, 0, 0, 0, 0, 0, 0, &npuprof_record_attach_, &npuprof_gate_, &npuprof_arena_fast_,
    &npuprof_arena_.base
};

NPUPROF_ASSERT_(attach, offsetof(npuprof_record_attach_words_, until) == 16 &&
                        offsetof(npuprof_record_attach_words_, self) == 64 &&
                        offsetof(npuprof_slot_, busy) == offsetof(npuprof_slot_, owned) + 4);

#endif /* NPUPROF_ATTACHES_ */
