#pragma once   /* SPDX-License-Identifier: MIT */
#include "../public/macros.h"
#include "compiler.h"
#include "types.h"

/* The functions of the device side. Each comment is a contract. */

NPUPROF_BEGIN_C_

/* Opens a device: checks the description, maps the resource, reads the counter, takes two clock anchors. desc
   is copied, its strings are not. Takes 0.1 ms; more where the counter is slow, stands still or reads all
   ones. *npu is always initialised, so npuprof_npu_close() may be called after a failure, too. One thread.
   NPUPROF_ERR_NPU_NOT_ENABLED: the device is open, and its counter stands until the field that
   npuprof_result_string() names is set. All other results but NPUPROF_OK: it is not open.
   NPUPROF_ERR_ARGUMENT (a NULL, a ring, requirement or event counter that cannot be), _NPU_SOURCE,
   _NPU_MEMORY,
   _NPU_COUNTER, _NPU_RATE, _NPU_RANGE, those of WHERE THE REGISTERS ARE above, _NPU_DEAD, _NPU_TORN,
   _TABLE_FULL, _UNSUPPORTED (vfio on a system that is not Linux; a resource where there is no mmap; firmware:
   FIRMWARE above), _ARENA_SIZE (firmware that has no arena). */
NPUPROF_FN_(npuprof_result, npuprof_npu_open,
            (npuprof_npu *npu, const npuprof_npu_desc *desc) NPUPROF_NPU_OPEN_NAMED_,
            if (!npu) return NPUPROF_ERR_ARGUMENT;
            npu->device.name = NULL; npu->device.wait = NULL; npu->device.user = NULL;
            npu->device.wait_around = false; npu->mmio_reads = 0; return NPUPROF_OK;)
/* Drains the ring, takes the last anchor, unmaps. Records that cannot be read any more are counted as lost. A
   second close does nothing. One thread; no other call on this npu may be running. Waits for an
   npuprof_read() that drains devices. */
NPUPROF_FN_(void, npuprof_npu_close, (npuprof_npu *npu), )
/* The counter now, extended to 64 bits. One register load where the low word is enough, else 2 or 3; where an
   epoch begins, those of two anchors. Any thread. *ticks is set with every result:
     NPUPROF_OK                   the value now
     _NPU_RESET, _NPU_AMBIGUOUS   the value now, in a new epoch; the next call gives NPUPROF_OK again
     _NPU_STOPPED                 the last good value, which has not moved for 100 ms (until then:
                                  NPUPROF_OK); _NPU_NOT_ENABLED where desc.requirements tell why
     _NPU_OFF                     the last good value; desc.is_on says that the device has no power
     _NPU_NO_ANCHOR               0: desc.anchors_only, and nothing is known yet
     _NPU_DEAD, _NPU_TORN         the last good value; instead of _NPU_DEAD, _NPU_REMOVED or _NPU_DECODE_OFF
                                  where PCI configuration space tells why
     _NPU_BUSY                    0: this is a signal handler that interrupted another call of its thread, or
                                  another thread's call has not run for 5 s
     _NPU_NOT_OPEN                0: npuprof_npu_open() failed, or *npu is closed or still all zero
   It waits while a call of another thread runs. Firmware does not wait: it returns _NPU_BUSY. */
NPUPROF_FN_(npuprof_result, npuprof_npu_read, (npuprof_npu *npu, uint64_t *ticks),
            *ticks = 0; return NPUPROF_OK;)
/* A raw stamp of the counter's width as extended ticks: the value nearest to now. Right for stamps up to half
   a period old. Any thread. It reads the counter only where the host clock alone does not tell. Returns the
   stamp unextended where npuprof_npu_read() would give NPUPROF_ERR_NPU_BUSY or _NPU_NOT_OPEN. */
NPUPROF_FN_(uint64_t, npuprof_npu_extend, (npuprof_npu *npu, uint64_t raw), return 0;)
/* Takes a clock anchor now: before and after a change of the device's rate, for instance. Any thread. Waits
   up to 2 ms for a counter that stands still. Results as npuprof_npu_read(), and NPUPROF_ERR_TABLE_FULL: the
   anchor is not in the arena. A second anchor at the same time is no anchor, and OK. */
NPUPROF_FN_(npuprof_result, npuprof_npu_sync, (npuprof_npu *npu), return NPUPROF_OK;)
/* Takes a clock anchor that the driver has read: at some time between host_before_ns and host_after_ns, on
   the clock of npuprof_now_ns(), the counter showed `raw`, of which desc.counter.bits bits count. For
   desc.anchors_only, and for any other device beside the anchors that the library takes. Anchors come in the
   order of time: one that is older than what is known is left out, and NPUPROF_OK. Any thread.
   NPUPROF_ERR_ARGUMENT: host_before_ns is after host_after_ns, or in the future. _NPU_RESET: it contradicts
   what is known, by more than its bracket and max_rate_ppm; a new epoch has begun with it. _NPU_AMBIGUOUS:
   the same, because the wraps since the last one cannot be counted. _NPU_COUNTER, once: 8 anchors or records
   contradicted counter.hz by more than a factor of 4; it is not used any more, and the rate is measured.
   _TABLE_FULL: it is not in the arena. _NPU_BUSY, _NPU_NOT_OPEN. */
NPUPROF_NPU_HOSTED_FN_(NPUPROF_NPU_NO_PUSH_, npuprof_result, npuprof_npu_anchor,
                       (npuprof_npu *npu, uint64_t raw, int64_t host_before_ns, int64_t host_after_ns),
                       return NPUPROF_OK;)
/* Extended ticks of the current epoch on the clock of npuprof_now_ns(), by the anchors known so far. Off by
   at most *error_ns under the assumptions of CLOCK above; error_ns may be NULL. Any thread. Takes a second
   anchor if there is only one. NPUPROF_ERR_NPU_NO_ANCHOR if that cannot be had; _NPU_BUSY and _NPU_NOT_OPEN
   as for npuprof_npu_read(). *ns and *error_ns are 0 then. */
NPUPROF_NPU_HOSTED_FN_(NPUPROF_NPU_NO_HOST_NS_, npuprof_result, npuprof_npu_host_ns,
                       (npuprof_npu *npu, uint64_t ticks, int64_t *ns, uint64_t *error_ns),
                       *ns = 0; if (error_ns) *error_ns = 0; return NPUPROF_OK;)
/* Turns the completion records written since the last drain into device spans, and takes an anchor if one is
   due. Any thread; of two at once one works and the other returns OK. Writes nothing to the device.
   Records of jobs submitted while recording was on are drawn even if it is off now; others only while it is
   on. Arguments of the spans: stream where the submission is known, job, execution_index, instruction_index,
   and status where it is not 0.
   Records that were overwritten before they were read, or that have impossible stamps, are counted as lost
   (device_ring). A record whose submission has no number yet, or is being changed by a thread that does not
   run, waits for the next drain or feed, for a second at most, and behind it those of its ring. More than 64
   do not wait. Then it is drawn without an arrow.
   NPUPROF_ERR_NPU_NO_RING, _NPU_NOT_OPEN, _NPU_DEAD, _NPU_TORN, _NPU_BUSY: nothing was taken. _NPU_RING,
   once: the index went back or is out of range; it is followed from where it is now. Or, of a ring with
   READY_VALID, a whole lap was read and no entry seen cleared: until one is, an entry is new if what it holds
   changed. _NPU_RESET and the other results of npuprof_npu_read(): the records were taken. */
NPUPROF_NPU_HOSTED_FN_(NPUPROF_NPU_NO_RING_, npuprof_result, npuprof_npu_drain, (npuprof_npu *npu),
                       return NPUPROF_OK;)
/* Hands over records that the driver has anyway, of a ring with `feed`: desc.ring is ring 0. data: whole
   entries, in the order in which the device wrote them, at any address; not kept. They are turned into device
   spans at once, as by npuprof_npu_drain(). 0 bytes say that the queue is empty up to now: a ring with
   narrow stamps needs a call in each of their periods. Any thread; a second one waits, and the order is the
   callers'.
   NPUPROF_OK and the results of npuprof_npu_read() that leave a time (_RESET, _AMBIGUOUS, _STOPPED): all
   entries were taken, that is drawn or counted as lost. NPUPROF_ERR_ARGUMENT (bytes is no multiple of the
   entry; the ring is polled), _NPU_NO_RING, _NPU_NOT_OPEN, _NPU_DEAD, _NPU_TORN, _NPU_BUSY: none was. */
NPUPROF_NPU_RECORD_FN_(npuprof_result, npuprof_npu_feed,
                       (npuprof_npu *npu, unsigned ring, const void *data, size_t bytes), return NPUPROF_OK;)
/* Replaces stamp_offset of all rings whose stamps count the device's counter, in ticks of it: when a second
   clock of the device was set anew. Records taken from now on use it. Any thread. */
NPUPROF_NPU_HOSTED_FN_(NPUPROF_NPU_NO_RING_, void, npuprof_npu_set_stamp_offset,
                       (npuprof_npu *npu, int64_t ticks), )
/* A device span by hand, in extended ticks of the current epoch, on the track of that PE. An end before the
   start is taken for the start. Strings are copied. Does nothing while recording is off or the device is
   not open. Any thread. */
NPUPROF_FN_(void, npuprof_npu_span, (npuprof_npu *npu, unsigned pe, const char *name, const char *cat,
                                     uint64_t start_ticks, uint64_t end_ticks, npuprof_args args), )
/* Begin and end as calls: for a submission whose beginning and completion are in different functions, threads
   or interrupt handlers. WITH_NPU_PROFILER (TWO WAYS TO STAMP A KERNEL above) is made of the same two ends.
   npuprof_npu_begin() records a host span of its own length, where the arrow begins, and reads the counter
   (with a ring: notes the submission). npuprof_npu_end() reads the counter again and draws the device span
   between the two reads; with a ring the device's own record draws it. stream, name, cat and args as for
   WITH_NPU_PROFILER; all are copied. Neither waits for the device: desc.wait is for blocks.
   Both may be called by any thread, and in a signal or interrupt handler where PROF_SCOPE may be. Ends come
   in any order. What a handler cannot read because it interrupted another call on this device is counted as
   lost (device_busy).
   Returns a handle for npuprof_npu_end(), the number of one begun submission of this device until it is
   closed. 0: not recorded. 128 may be open for each device, 4 on firmware: the next ones have their host span
   and the event "no device span", and are counted as lost (device_calls). One that is open when the device is
   closed is lost, too. A sampled pair costs the register loads of a sampled block. */
NPUPROF_FN_(uint32_t, npuprof_npu_begin, (npuprof_npu *npu, uint64_t stream, const char *name,
                                          const char *cat, npuprof_args args), return 0;)
/* Ends what npuprof_npu_begin() began. Handle 0: does nothing.
   NPUPROF_OK                  drawn; with a ring: the submission is complete on the host's side
   NPUPROF_ERR_ARGUMENT        the handle was ended before, or is of another device or of one that was closed:
                               nothing is drawn
   those of npuprof_npu_read() there is no device span; the event "no device span" has this reason, too */
NPUPROF_FN_(npuprof_result, npuprof_npu_end, (npuprof_npu *npu, uint32_t handle), return NPUPROF_OK;)
/* The same, with arguments for the device span: status, event counters that the driver read. The first 8
   are recorded. With a ring they are not used: the record has its own. */
NPUPROF_FN_(npuprof_result, npuprof_npu_end_args, (npuprof_npu *npu, uint32_t handle, npuprof_args args),
            return NPUPROF_OK;)
/* ---- Records by hand, for what no description can say: framed logs, bit streams, packets with state. A job
   submitted in a WITH_NPU_PROFILER block is found as for a ring's record (WHICH RECORD BELONGS TO WHICH
   SUBMISSION above), and left out if it was submitted while recording was off. Jobs are matched where the
   device has desc.ring.feed or desc.anchors_only: else a block is sampled. Any thread. */

/* A stamp of `bits` bits (0 = 64) as extended ticks of desc.counter, after npuprof_npu_set_stamp_offset().
   after: the stamp is the first value that is not before these ticks, for records in order. 0: the last value
   that may have been reached now. Reads the counter only where the host clock alone does not tell. */
NPUPROF_NPU_HOSTED_FN_(NPUPROF_NPU_NO_RING_, uint64_t, npuprof_npu_extend_stamp,
                       (npuprof_npu *npu, uint64_t raw, unsigned bits, uint64_t after), return raw;)
/* A device span of a job, in extended ticks of the current epoch, on the track of that PE. job: its number,
   which a ring's job_scope but _DEVICE matches only in submissions whose stream is the PE;
   0: the oldest open submission whose stream is the PE, else the oldest of all. name NULL: that of the
   submission. cat NULL: "NPU". last: this span stands for the whole job: the arrow leads to it, the
   submission is over, and the event counters are sampled (desc.pmu). args: up to 9. Strings are copied.
   Counted as lost (device_ring) instead, if it ends before it starts or later than the device has got.
   Returns whether the submission was found: one whose number is not set yet is not. */
NPUPROF_NPU_HOSTED_FN_(NPUPROF_NPU_NO_RING_, bool, npuprof_npu_complete,
                       (npuprof_npu *npu, uint64_t job, unsigned pe, const char *name, const char *cat,
                        uint64_t start, uint64_t end, npuprof_args args, bool last), return false;)
/* The same on the clock of npuprof_now_ns(), for a device that has no stamps, or whose driver takes them.
   The span has the argument "stamp": "host". start_ns 0: its submission. error_ns of the span covers all from
   its submission, or npuprof_npu_open(), to this call: a driver's times are when it noticed.
   npuprof_npu_complete_times() says more. */
NPUPROF_NPU_RECORD_FN_(bool, npuprof_npu_complete_host,
                       (npuprof_npu *npu, uint64_t job, unsigned pe, const char *name, const char *cat,
                        int64_t start_ns, int64_t end_ns, npuprof_args args, bool last), return false;)
/* The same, and how exactly the times are known: npuprof_npu_host_times in types.h. */
NPUPROF_NPU_HOSTED_FN_(NPUPROF_NPU_NO_RING_, bool, npuprof_npu_complete_times,
                       (npuprof_npu *npu, uint64_t job, unsigned pe, const char *name, const char *cat,
                        npuprof_npu_host_times times, npuprof_args args, bool last), return false;)
/* Counts records as lost (device_ring) that the driver's decoder, or the device itself, knows to be lost. */
NPUPROF_NPU_HOSTED_FN_(NPUPROF_NPU_NO_RING_, void, npuprof_npu_lost, (npuprof_npu *npu, uint64_t count), )
/* One event on the track of a PE, in extended ticks of the current epoch. Only while recording is on. */
NPUPROF_NPU_HOSTED_FN_(NPUPROF_NPU_NO_RING_, void, npuprof_npu_instant,
                       (npuprof_npu *npu, unsigned pe, const char *name, const char *cat, uint64_t ticks,
                        npuprof_args args), )
/* A value of a counter track of that name, at a device time. Only while recording is on. */
NPUPROF_NPU_HOSTED_FN_(NPUPROF_NPU_NO_RING_, void, npuprof_npu_value,
                       (npuprof_npu *npu, const char *name, uint64_t value, uint64_t ticks), )
/* A number for the command being submitted. Call it inside a WITH_NPU_PROFILER block, or after
   npuprof_npu_begin() on the same thread, once for each command. Of the submissions that this thread has
   begun and nobody ended, it is for the newest; npuprof_npu_set_job_of() names one. Never 0, and never one
   whose bits in the ring's job field are all 0. Outside a recorded submission: a number whose records are
   left out. OFF: always 1. Any thread. */
NPUPROF_NPU_HOSTED_FN_(NPUPROF_NPU_NO_RING_, uint32_t, npuprof_npu_job, (npuprof_npu *npu), return 1u;)
/* Says which number the device chose for the command being submitted: in a WITH_NPU_PROFILER block or after
   npuprof_npu_begin(), as for npuprof_npu_job(). Where numbers are unique in a ring or lane only
   (ring.job_scope), the submission's stream says which. A record that is drained or fed before this call
   waits for it, for a second at most. Of several open submissions with that number, a record belongs to the
   oldest. Outside a recorded submission: the records of that number are left out. Any thread. */
NPUPROF_NPU_RECORD_FN_(void, npuprof_npu_set_job, (npuprof_npu *npu, uint64_t id), )
/* Says how many records the command last submitted in this WITH_NPU_PROFILER block will have: the last of
   them ends it, the first takes its arrow. Without a call: one. Any thread. */
NPUPROF_NPU_RECORD_FN_(void, npuprof_npu_set_job_records,
                       (npuprof_npu *npu, unsigned n), )

/* npuprof_npu_set_job() for the submission of a handle of npuprof_npu_begin() that is open: on another thread
   than began it, or when the thread has begun others since. Handle 0: does nothing. NPUPROF_ERR_ARGUMENT: the
   handle is not open on this device; _NPU_NO_RING. Any thread. */
NPUPROF_NPU_RECORD_FN_(npuprof_result, npuprof_npu_set_job_of,
                       (npuprof_npu *npu, uint32_t handle, uint64_t id), return NPUPROF_OK;)

/* The runtime's number for what the calling thread submits from now on, to any device, such as the
   correlation id of ONNX Runtime or Kineto: the device spans have it as the argument `correlation`. 0: none.
   Returns the one before, so that calls nest:
     uint64_t before = npuprof_npu_set_correlation(id);  ...  npuprof_npu_set_correlation(before);
   Any thread; one that never recorded has none while recording is off, and 0 is returned. OFF: 0. */
NPUPROF_NPU_HOSTED_FN_(NPUPROF_NPU_NO_CORRELATION_, uint64_t, npuprof_npu_set_correlation, (uint64_t id),
                       (void)id; return 0;)

#ifndef NPUPROF_FREESTANDING
/* This device's clock for npuprof_bench(): stamps are reads of its counter, and the time between two is what
   its anchors measure, not what its nominal rate says. Its results are those of npuprof_npu_read() and
   npuprof_npu_host_ns(). */
NPUPROF_FN_(npuprof_bench_clock, npuprof_npu_clock, (npuprof_npu *npu),
            { npuprof_bench_clock host_ = { NULL, NULL, NULL }; return host_; })
#endif

/* For a SIGBUS handler of your own (SIGBUS above): whether the address lies in a mapping of an open device
   with catch_sigbus. If so, that mapping has been replaced, the device reads as dead, and the handler may
   return. Any thread, in a signal handler. */
NPUPROF_FN_(bool, npuprof_npu_fault, (const void *address), return false;)

/* What WITH_NPU_PROFILER and PROF_NPU_SCOPE call. */
#ifdef NPUPROF_FREESTANDING
NPUPROF_API_ void npuprof_npu_enter_(npuprof_npu_block_ *block, npuprof_npu *npu, uint64_t stream);
NPUPROF_API_ npuprof_token_ npuprof_npu_begin_(npuprof_npu_block_ *block, npuprof_token_ token);
#else /* !NPUPROF_FREESTANDING */
NPUPROF_API_ npuprof_token_ npuprof_npu_begin_(npuprof_npu_block_ *block, npuprof_npu *npu, uint64_t stream,
                                               npuprof_site_ *site, npuprof_keys_ *keys, bool literals,
                                               const char *category, const char *name, npuprof_args args);
#endif /* NPUPROF_FREESTANDING */
NPUPROF_API_ void npuprof_npu_end_(npuprof_npu_block_ *block);

NPUPROF_END_C_
