/* shared.h - the mailbox of an NPU's memory, for its firmware (shared_npu.c) and the host (shared_host.c).
   SHARED.md says how it is used. All of it is 32-bit words: a BAR may take no other access.
   SPDX-License-Identifier: MIT */
#ifndef SHARED_H
#define SHARED_H
#include <stdint.h>

/* Where in the memory: a page that both write; behind it the arena, which the firmware alone writes. */
enum { SHARED_MAILBOX = 0x100000, SHARED_ARENA = SHARED_MAILBOX + 4096, SHARED_ARENA_BYTES = 65536 };

/* What the host asks for. */
enum {
    SHARED_TICKS,                            /* the firmware's clock: `ticks` */
    SHARED_SAY,                              /* npuprof_metadata(key, value) */
    SHARED_RUN                               /* a job of so many ticks of the engine */
};
enum { SHARED_READY = 0x4B4F4B4F };

/* Who writes what: the host all above `done`, the firmware the rest. A request is there when `number`
   changed; its answer, when `done` is the same number. */
typedef struct shared_mailbox {
    uint32_t number, what, job, size;
    uint32_t key[8], value[24];              /* texts */
    uint32_t done, ready, ticks[2];          /* ready: SHARED_READY; ticks: low half first */
} shared_mailbox;

/* Stores what says that all before it is there, and loads it. */
static inline void shared_publish(uint32_t *word, uint32_t value)
{
    __atomic_store_n(word, value, __ATOMIC_RELEASE);
}

static inline uint32_t shared_look(const uint32_t *word) { return __atomic_load_n(word, __ATOMIC_ACQUIRE); }

#endif /* SHARED_H */
