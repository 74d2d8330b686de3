#pragma once   /* SPDX-License-Identifier: MIT */
#include "../public/macros.h"
#include "compiler.h"
#include "types.h"

/* The functions of the device side. Each comment is a contract. */

NPUPROF_BEGIN_C_

/* Opens a device: checks the description, maps the resource, reads the counter, takes two clock anchors. desc
   is copied, its strings are not. Takes 0.1 ms; more where the counter is slow, stands still or reads all
   ones or zeros. *npu is always initialised, so npuprof_npu_close() may be called after a failure, too. One
   thread. NPUPROF_ERR_ARGUMENT (a NULL, too many event counters), _NPU_SOURCE, _NPU_COUNTER, _NPU_RATE,
   _NPU_RANGE, those of WHERE THE REGISTERS ARE above, _NPU_DEAD, _NPU_TORN, _TABLE_FULL, _UNSUPPORTED (vfio
   on a system that is not Linux; a resource where there is no mmap; firmware: FIRMWARE above), _ARENA_SIZE
   (firmware that has no arena). */
NPUPROF_FN_(npuprof_result, npuprof_npu_open, (npuprof_npu *npu, const npuprof_npu_desc *desc),
            NPUPROF_UNUSED_(desc); if (!npu) return NPUPROF_ERR_ARGUMENT;
            npu->device.name = NULL; npu->device.wait = NULL; npu->device.user = NULL;
            npu->device.wait_around = false; npu->mmio_reads = 0; return NPUPROF_OK;)
/* Drains the ring, takes the last anchor, unmaps. Records that cannot be read any more are counted as lost. A
   second close does nothing. One thread; no other call on this npu may be running. */
NPUPROF_FN_(void, npuprof_npu_close, (npuprof_npu *npu), NPUPROF_UNUSED_(npu);)
/* The counter now, extended to 64 bits. One register load where the low word is enough, else 2 or 3; where an
   epoch begins, those of two anchors. Any thread. *ticks is set with every result:
     NPUPROF_OK                   the value now
     _NPU_RESET, _NPU_AMBIGUOUS   the value now, in a new epoch; the next call gives NPUPROF_OK again
     _NPU_STOPPED                 the last good value, which has not moved for 100 ms (until then: NPUPROF_OK)
     _NPU_DEAD, _NPU_TORN         the last good value; instead of _NPU_DEAD, _NPU_REMOVED or _NPU_DECODE_OFF
                                  where PCI configuration space tells why
     _NPU_BUSY                    0: this is a signal handler that interrupted another call of its thread, or
                                  another thread's call has not run for 5 s
     _NPU_NOT_OPEN                0: npuprof_npu_open() failed, or *npu is closed or still all zero
   It waits while a call of another thread runs. Firmware does not wait: it returns _NPU_BUSY. */
NPUPROF_FN_(npuprof_result, npuprof_npu_read, (npuprof_npu *npu, uint64_t *ticks),
            NPUPROF_UNUSED_(npu); *ticks = 0; return NPUPROF_OK;)
/* A raw stamp of the counter's width as extended ticks: the value nearest to now. Right for stamps up to half
   a period old. Any thread. It reads the counter only where the host clock alone does not tell. Returns the
   stamp unextended where npuprof_npu_read() would give NPUPROF_ERR_NPU_BUSY or _NPU_NOT_OPEN. */
NPUPROF_FN_(uint64_t, npuprof_npu_extend, (npuprof_npu *npu, uint64_t raw),
            NPUPROF_UNUSED_(npu); NPUPROF_UNUSED_(raw); return 0;)
/* Takes a clock anchor now: before and after a change of the device's rate, for instance. Any thread. Waits
   up to 2 ms for a counter that stands still. Results as npuprof_npu_read(), and NPUPROF_ERR_TABLE_FULL: the
   anchor is not in the arena. A second anchor at the same time is no anchor, and OK. */
NPUPROF_FN_(npuprof_result, npuprof_npu_sync, (npuprof_npu *npu), NPUPROF_UNUSED_(npu); return NPUPROF_OK;)
/* Extended ticks of the current epoch on the clock of npuprof_now_ns(), by the anchors known so far. Off by
   at most *error_ns under the assumptions of CLOCK above; error_ns may be NULL. Any thread. Takes a second
   anchor if there is only one. NPUPROF_ERR_NPU_NO_ANCHOR if that cannot be had; _NPU_BUSY and _NPU_NOT_OPEN
   as for npuprof_npu_read(). *ns and *error_ns are 0 then. */
NPUPROF_NPU_HOSTED_FN_(NPUPROF_NPU_NO_HOST_NS_, npuprof_result, npuprof_npu_host_ns,
                       (npuprof_npu *npu, uint64_t ticks, int64_t *ns, uint64_t *error_ns),
                       NPUPROF_UNUSED_(npu); NPUPROF_UNUSED_(ticks); *ns = 0; if (error_ns) *error_ns = 0;
                       return NPUPROF_OK;)
/* Turns the completion records written since the last drain into device spans, and takes an anchor if one is
   due. Any thread; of two at once one works and the other returns OK. Writes nothing to the device.
   Records of jobs submitted while recording was on are drawn even if it is off now; others only while it is
   on. Arguments of the spans: stream where the submission is known, job, execution_index, instruction_index,
   and status where it is not 0.
   Records that were overwritten before they were read, or that have impossible stamps, are counted as lost
   (device_ring). A record whose submission is being changed by a thread that does not run stays in the ring
   for the next drain: for a second at most, and only while the ring is at most half full. Then it is drawn
   without an arrow.
   NPUPROF_ERR_NPU_NO_RING, _NPU_NOT_OPEN, _NPU_DEAD, _NPU_TORN, _NPU_BUSY: nothing was taken. _NPU_RING: the
   index went back or is out of range; it is followed from where it is now. _NPU_RESET and the other results
   of npuprof_npu_read(): the records were taken. */
NPUPROF_NPU_HOSTED_FN_(NPUPROF_NPU_NO_RING_, npuprof_result, npuprof_npu_drain, (npuprof_npu *npu),
                       NPUPROF_UNUSED_(npu); return NPUPROF_OK;)
/* A device span by hand, in extended ticks of the current epoch, on the track of that PE. An end before the
   start is taken for the start. Strings are copied. Does nothing while recording is off or the device is
   not open. Any thread. */
NPUPROF_FN_(void, npuprof_npu_span, (npuprof_npu *npu, unsigned pe, const char *name, const char *cat,
                                     uint64_t start_ticks, uint64_t end_ticks, npuprof_args args),
            NPUPROF_UNUSED_(npu); NPUPROF_UNUSED_(pe); NPUPROF_UNUSED_(name); NPUPROF_UNUSED_(cat);
            NPUPROF_UNUSED_(start_ticks); NPUPROF_UNUSED_(end_ticks); NPUPROF_UNUSED_(args);)
/* A number for the command being submitted. Call it inside a WITH_NPU_PROFILER block, once for each command.
   Never 0, and never one whose bits in the ring's job field are all 0. Outside a recorded block: a number
   whose records are left out. OFF: always 1. Any thread. */
NPUPROF_NPU_HOSTED_FN_(NPUPROF_NPU_NO_RING_, uint32_t, npuprof_npu_job, (npuprof_npu *npu),
                       NPUPROF_UNUSED_(npu); return 1u;)
/* Says which number the device chose for the command submitted in this WITH_NPU_PROFILER block. A drain that
   runs between the submission and this call may see the record first; it then has no arrow. Outside a
   recorded block: the records of that number are left out. Any thread. */
NPUPROF_NPU_HOSTED_FN_(NPUPROF_NPU_NO_RING_, void, npuprof_npu_set_job, (npuprof_npu *npu, uint64_t id),
                       NPUPROF_UNUSED_(npu); NPUPROF_UNUSED_(id);)
/* Says how many records the command last submitted in this WITH_NPU_PROFILER block will have: the last of
   them ends it, the first takes its arrow. Without a call: one. Any thread. */
NPUPROF_NPU_HOSTED_FN_(NPUPROF_NPU_NO_RING_, void, npuprof_npu_set_job_records,
                       (npuprof_npu *npu, unsigned n),
                       NPUPROF_UNUSED_(npu); NPUPROF_UNUSED_(n);)

#ifndef NPUPROF_FREESTANDING
/* This device's clock for npuprof_bench(): stamps are reads of its counter, and the time between two is what
   its anchors measure, not what its nominal rate says. Its results are those of npuprof_npu_read() and
   npuprof_npu_host_ns(). */
NPUPROF_FN_(npuprof_bench_clock, npuprof_npu_clock, (npuprof_npu *npu),
            { npuprof_bench_clock host_ = { NULL, NULL, NULL }; NPUPROF_UNUSED_(npu); return host_; })
#endif

/* For a SIGBUS handler of your own (SIGBUS above): whether the address lies in a mapping of an open device
   with catch_sigbus. If so, that mapping has been replaced, the device reads as dead, and the handler may
   return. Any thread, in a signal handler. */
NPUPROF_FN_(bool, npuprof_npu_fault, (const void *address), NPUPROF_UNUSED_(address); return false;)

/* What a WITH_NPU_PROFILER block keeps on the stack. */
#ifdef NPUPROF_FREESTANDING
typedef struct npuprof_npu_block_ {
    npuprof_token_ token;                /* of the host span; 0 = not recorded */
    npuprof_npu *npu;
    npuprof_result result;               /* of the read at the beginning */
    uint32_t epoch;
    bool by_host;                        /* see npu/sample.h */
    uint64_t start_ticks, stream, host_before, host_after;
} npuprof_npu_block_;

NPUPROF_API_ void npuprof_npu_enter_(npuprof_npu_block_ *block, npuprof_npu *npu, uint64_t stream);
NPUPROF_API_ npuprof_token_ npuprof_npu_begin_(npuprof_npu_block_ *block, npuprof_token_ token);
#else /* !NPUPROF_FREESTANDING */
typedef struct npuprof_npu_block_ {
    npuprof_token_ token;                /* of the host span; 0 = not recorded */
    npuprof_npu *npu;
    bool sampled;                        /* start_ticks is good; with a ring: ticket is */
    npuprof_result result;               /* of the read at the beginning */
    uint32_t epoch, ticket, pmu_good;
    bool by_host;                        /* see npu/sample.h */
    uint64_t start_ticks, stream, host_before, host_after, pmu[NPUPROF_NPU_PMU_];
    npuprof_link_ link;
    const char *name, *category;         /* point to the copies below unless they are literals */
    char name_copy[2 * NPUPROF_NPU_NAME_], category_copy[NPUPROF_NPU_NAME_];
} npuprof_npu_block_;

NPUPROF_API_ npuprof_token_ npuprof_npu_begin_(npuprof_npu_block_ *block, npuprof_npu *npu, uint64_t stream,
                                               npuprof_site_ *site, npuprof_keys_ *keys, bool literals,
                                               const char *category, const char *name, npuprof_args args);
#endif /* NPUPROF_FREESTANDING */
NPUPROF_API_ void npuprof_npu_end_(npuprof_npu_block_ *block);

NPUPROF_END_C_
