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
         wait_for(queue);                // without a completion ring the block must wait for the kernel
     });
     npuprof_npu_close(&npu);                    // before npuprof_dump(): it takes the last clock anchor

   TWO WAYS TO STAMP A KERNEL
     Sampled (no desc.ring): the library reads the device's counter at both ends of the block. The block must
     wait for the kernel; otherwise the second read comes too early. The device span has the argument "stamp":
     "sampled". Each stream has its own track, "npu0 stream 7".
     Device-stamped (desc.ring): the device writes completion records with its own stamps. The block only
     records who submitted. It waits for nothing and reads no register. npuprof_npu_drain() turns the records
     into device spans and draws the arrows.
     Whole jobs are on the track "npu0 PE 1", where the arrows end. Their instructions are on the track below
     it, "npu0 PE 1 instructions". A device with one PE has "npu0" and "npu0 instructions".
     The argument `stream` of a device span is the stream of its block, as a signed number.

   TWO CALLS INSTEAD OF A BLOCK
     A submission that returns before the device is done, and a completion that arrives in a callback or an
     interrupt handler:
       uint32_t handle = npuprof_npu_begin(&npu, stream, "conv1", "NPU", PROF_NO_ARGS);
       npuprof_npu_end(&npu, handle);              // elsewhere, later
     Any thread ends it, in any order. WITH_NPU_PROFILER and PROF_NPU_SCOPE are made of the same two ends. The
     host span has the length of npuprof_npu_begin(); the device span and the arrow are those of a block.
     npuprof_npu_end_args() adds arguments that are known only at the end, such as a status.

   WHICH RECORD BELONGS TO WHICH SUBMISSION
     Your number       Call npuprof_npu_job(npu) inside the block and put its result into the command. The
                       device copies it to the record's `job` field.
     Device's number   If the device chooses the number, call npuprof_npu_set_job(npu, number) inside the
                       block.
     With calls        The same after npuprof_npu_begin(), on the same thread; or on any,
                       npuprof_npu_set_job_of(npu, handle, number).
     Neither           A record belongs to the oldest open submission whose stream equals the record's PE. If
                       there is none, it belongs to the oldest of all.
     A submission is over when its record comes whose op is desc.ring.execution_op - 1. With execution_op 0,
     every record is a job of its own. Up to desc.job_count submissions may be open (256). The next one takes
     the place of the oldest, which loses its arrow.
     The device's numbers are matched in their scope, desc.ring.job_scope: in a ring or a lane, the stream of
     the submission says which: WITH_NPU_PROFILER(npu, ring, ...). Of several open submissions with one
     number, the record belongs to the oldest. A record that comes before its number is set waits for it, for
     a second at most. Where two submissions may be meant, the record has no arrow and is counted:
     dropped_jobs, open_jobs (at close) and ambiguous_jobs in clock_sync.records.
     Each submission is taken to get its record. One that was given up has none, and the record of the next
     one with its number would take its name: end it with npuprof_npu_complete_host(), `last`. A block of a
     driver that numbers its commands, but set no number there, submitted nothing. Without numbers a
     submission that gets no record gives its name to the next one, and so on: number them.
     One process reads a ring. Of two, as after a fork, each draws all records, also those of the other's
     jobs. A record with a number that both gave is taken by both: npuprof_npu_job() gives the same in each.
     So open a device in the process that submits to it, or use the device's numbers.

   CLOCK
     A clock anchor pairs a device time with a host time. To take one, the library reads the counter
     desc.brackets times, and the host clock before and after each read. It keeps the narrowest of these
     brackets; half its width is the anchor's error. A bracket whose value has just changed is preferred.
     Each other read counts, too: beside a submission or in npuprof_npu_feed() it lies near the stamps. On a
     host an anchor is the best two of all reads since the one before: from above, and from below.
     When anchors are taken:
       - two at npuprof_npu_open(), and two where a new epoch of device time begins (COUNTER below);
       - one at each npuprof_npu_sync(), and one at npuprof_npu_close();
       - one in npuprof_npu_drain(), or at the end of a sampled block, when one is due.
     After open, an anchor is due after 1 ms, then after 2 ms, 4 ms ... 250 ms: the interval is the age of
     the trace. From 512 s on, the interval is a 2048th of that age, so anchors of days fit the arena.
     An anchor is also due when a read lies outside the bound that the anchors predict: the rate changed. The
     intervals then start at 1 ms again, as after open. A sampled block uses its last read as the due anchor
     and loads no further register, except after a change of rate.
     The rate is measured between anchors. counter.hz is only used until there are two of them, and may be
     wrong by a factor of 4 either way.
     Each device span has an error bound, "error_ns": its stamps are mapped to the middle of all host times
     that the anchors and the rate allow. It holds if in any second the device's rate stays within
     max_rate_ppm of a centre, which moves by no more than that each second.
     Anchors that contradict it are counted ("contradictions" in the trace). Between them only their order
     counts, and the bound is as wide as they are apart; if that happens again and again, everywhere. How long
     a span is then follows from its ticks and desc.counter.hz. Changes that stay within the anchors' own
     errors, or cancel out between two of them, cannot be seen.
     A span that starts before its submission, or ends behind its record, by more than its bound shows that
     the clock was wrong ("causality" of the span). Its bound is then what these two moments leave.
     Call npuprof_npu_sync() before and after each change of rate that you make.

   COUNTER
     Device time is the counter, extended to 64 bits. The host clock and the rate tell how often the counter
     wrapped since the last read. They predict a min and a max of ticks, which must not be more than half a
     period apart. The uncertainty is that of the anchors, plus 100 ppm and twice max_rate_ppm, in both
     directions. So a gap between two reads may last up to 2,400 periods, with good anchors.
     An epoch is a stretch of device time with anchors of its own. What a read may find:
       _NPU_AMBIGUOUS   The gap was too long to count the wraps. A new epoch begins. Returned once.
       _NPU_RESET       No number of wraps explains the value: the counter was reset. A new epoch begins.
                        Returned once.
       _NPU_STOPPED     The value has not moved for 100 ms.
       _NPU_DEAD        All bits are ones, or all are zeros, and that cannot be the time.
       _NPU_TORN        The two halves of a split counter did not agree in 8 tries.
     (All of these begin with NPUPROF_ERR.) Such a read makes no device span. Instead its block has an event
     "no device span", whose argument `why` is the reason. The trace's clock_sync counts resets, ambiguous
     gaps, and dead and torn reads.
     A counter may show its value up to a second late, for example when software moves it and was interrupted.
     If it is too wide to wrap in that time, this is no reset: device time continues from the value shown.
     A counter that is 0 or stands at open is idle: the device is open, and device time begins with the first
     read that sees it move. clock_sync then has "idle_at_open".

   A DEVICE THAT MAY STAND: enable bits, power, a reset with each job
     desc.requirements  fields of registers that must have a value, or the counter stands. They are read at
                        open, and when the counter stands. The result is then NPUPROF_ERR_NPU_NOT_ENABLED, and
                        npuprof_result_string() names the field on the thread that got it. After
                        npuprof_npu_open() returns it, the device is open all the same.
     desc.is_on         whether the device has power. It is asked before each group of loads, under the
                        device's lock: it may not call npuprof_npu_*(). If it says no, nothing is touched:
                        no BAR, read_ticks or pmu.read. The result is NPUPROF_ERR_NPU_OFF. Rings in host
                        memory are read all the same. Who switches the power off waits for calls that run.
     A device with one of them may stand, and begin anew, between any two jobs. So:
       - A value is its time only as long as it is as the measured rate predicts; else an epoch begins.
       - A sampled block is placed by the host's clock, at the middles of the two reads' brackets. That is
         right whatever the counter did in between. Its ticks are the argument `ticks`. There is no device
         span if the counter did not move in the block, or went back: a reset in it. A reset after which the
         counter passed its first value again cannot be seen; the span is where it was, `ticks` is too small.
       - With a ring, a submission reads the counter, 1 to 3 loads. A record is drawn if its job was submitted
         in the epoch of its stamps; else it is lost (lost_epoch). So drain before the power goes. The counter
         must run from the submission to the drain.
     Other devices: a block at whose begin the counter stood or had been reset is placed the same way.

   A CLOCK THAT NOBODY CAN READ (desc.anchors_only)
     The driver hands over what it knows: npuprof_npu_anchor(). Beside that, and without it, causality tells:
     a job began after it was submitted, and ended before its record was seen. Each job whose submission is
     known gives such a bracket. The best of them become anchors, so the bound comes down to about half of the
     shortest way there and back. Metadata: clock_sync has "clock":"causal".
     counter.hz may be wrong by a factor of 4, as above, or unknown. What contradicts the rate between the
     anchors so far begins an epoch; from then on bounds are wide where few anchors are.
     If only one anchor is known at npuprof_npu_close(), counter.hz places the spans near it.

   QUEUES OF RECORDS (desc.ring, desc.rings, desc.progress)
     Three things that do not know each other, each described in ring_types.h:
       transport  how entries come: npuprof_npu_feed() takes what the driver has anyway; npuprof_npu_drain()
                  polls a ring by a producer index, a valid bit, a phase bit or sequence numbers
       format     what is where in an entry; whether it is a span, one end of a span, an instant, a counter
       clock      what its stamps count: the device's counter, another clock of the device, the host's clock,
                  or nothing: such a span lasts from its submission to the drain or feed ("stamp":"host")
     recorded + lost = executed. The trace's metadata counts by reason (clock_sync.records): lost_overwritten,
     lost_stamps (in the future, before npuprof_npu_open(), of a period that nobody can tell), lost_epoch,
     lost_no_anchor, lost_by_driver, lost_period, lost_contradiction; unknown_records, unmatched_ends,
     unfinished, past_last_lane.

   RECORDS BY HAND
     What no description can say (framed logs, packets with state, bit streams) the driver decodes itself:
     npuprof_npu_extend_stamp(), _complete(), _complete_host(), _instant(), _value(), _lost(). They have the
     matching, the arrows and the counts of a ring: recorded + lost = executed. For blocks to be submissions,
     set desc.ring.feed with entry_bytes 0, or desc.anchors_only. examples/08_framed_log.c is one.

   WAITED OR WORKED (desc.cpu_ns)
     A trace shows when a job ended, not whether its thread slept until then. With desc.cpu_ns the span of the
     job says more of the time from its submission to the call that brings its end: a drain, a feed, a record
     by hand, the end of a sampled block.
       wait_cpu_ns     CPU time of the thread
       wait_switches   how often it gave the CPU up: slept, or waited for a lock
       wait_preempted  how often it lost the CPU
       noticed_ns      when that call was, on the clock of npuprof_now_ns()
     One switch and nothing lost: the thread slept once, and worked no longer than wait_cpu_ns. It is the
     report that draws conclusions. The first three need Linux, and that the thread which submitted, in a
     block or by npuprof_npu_begin(), makes that call; else there is noticed_ns alone. Cost: two system calls
     at each end. Without cpu_ns: none.

   EVENT COUNTERS (desc.pmu)
     The library reads up to 8 event counters of the device. It starts, selects and clears none: the driver
     does that.
     Sampled block: they are read right after its first stamp and right before its second. The differences are
     arguments of the device span. The sums since open are counter tracks ("npu0 macs").
     With a ring: each drain or feed that finds records reads them. By hand: each npuprof_npu_complete() with
     `last`. They make tracks only.
     read           a function that sets the value, where a register must be selected first
     scale, unit    what a count stands for; the track is then "npu0 read (bytes)"
     restarts       it begins at 0 with each job: its value at the end is the step
     is_idle        it counts the ticks in which the device does not work; the argument is busy_ticks
     Reports take NPU Run of a sampled kernel from a counter marked is_busy or is_idle, one at most. NPU
     IoWait is the rest of the kernel.

   REGISTER LOADS (npuprof_npu.mmio_reads counts them)
     Sampled block       2 if the low word is enough; else up to 4 with latched halves, 6 with split halves.
                         For each event counter 2 more, 4 latched, 6 split
     Begin and end       as a sampled block, half of it each
     Block with a ring   none; begin and end the same. Of a device that may stand: 1 to 3
     Drain               1 if it finds nothing. With records, also: the fields of each, if the ring is in
                         the BAR (`sequence` twice); 1 for each batch of up to 32 records; 1 to 3 for the
                         counter; for each event counter 1, 2 latched, 3 split. By hand: those alone
     Anchor              desc.brackets times 1 to 3: in npuprof_npu_sync(), after a change of rate, or when
                         one is due in a drain
     The low word is nearly always enough. The min and max above must be less than an eighth of its period
     apart. If split halves were torn, they are read again: 2 more loads.

   WHERE THE REGISTERS ARE
     Set one of these in the description:
     bar         a mapping that the driver or the firmware already has, or an array
     resource    a path: /sys/bus/pci/devices/.../resourceN, a BAR, which may begin inside a page; /dev/uioN,
                 its map resource_map; /dev/hpet and other device files; ordinary files; shared memory.
                 If the kernel does not list that map of /dev/uioN: BAR resource_map of its PCI device
     vfio        a region of a VFIO device
     The counter may also come by a function, alone or beside one of these, which then holds rings and event
     counters:
     read_ticks  a vendor's ioctl, a PTP clock
     The library maps a resource or region read-only, and no further than the registers reach. It opens files
     close-on-exec. npuprof_npu_open() returns what is wrong (each begins with NPUPROF_ERR):
       _NOT_FOUND, _ACCESS  the path or region; kernel lockdown is _ACCESS, too
       _NPU_DECODE_OFF      the BAR does not answer; `echo 1 > enable` beside it switches it on
       _NPU_REMOVED         the device was pulled out, or is off
       _NPU_OWNED           a driver has the BAR, and the kernel does not map it twice
                            (CONFIG_IO_STRICT_DEVMEM)
       _NPU_IO_PORT         the BAR is not memory
       _NPU_RANGE           the BAR, map, region or file is too small, or a register is not aligned
       _NPU_MAP             it cannot be mapped, for any other reason
       _NPU_DEAD            it is mapped, and reads all ones

   SIGBUS
     A dead mapping usually reads as all ones. Three kinds raise SIGBUS instead:
       - a VFIO region whose memory decode, power or device was switched off; a reset does that;
       - a sysfs BAR that a driver claims while it is mapped;
       - a file that was truncated.
     By default the library installs no signal handler. Such a read then ends the program, as it would in the
     driver itself.
     With desc.catch_sigbus there is a SIGBUS handler while such a device is open. It replaces the mapping by
     zero pages and returns. It passes faults elsewhere to the handler that was installed before. From then on
     the device is _NPU_DEAD; close and open it to go on.
     A program that installs its own handler later calls npuprof_npu_fault(info->si_addr) in it. If the
     reading thread blocks SIGBUS, the kernel kills the program. The library does not guard desc.bar: that
     mapping is yours.

   MISTAKES PEOPLE MAKE
     - npuprof_dump() before npuprof_npu_close() or npuprof_npu_sync(): the last device spans are then
       extrapolated.
     - A simulated BAR whose counter goes back to 0: a dead device looks like that.

   FIRMWARE (NPUPROF_FREESTANDING)
     What there is   Sampled kernels, by desc.bar or desc.read_ticks: npuprof_npu_open, _close, _read,
                     _extend, _sync, _span, WITH_NPU_PROFILER and PROF_NPU_SCOPE; _begin, _end and _end_args,
                     also in interrupt handlers: 4 may be open for each device.
     At open         NPUPROF_ERR_UNSUPPORTED for desc.resource, desc.vfio, a ring, or 64-bit loads on a
                     32-bit machine, and where NPUPROF_NOW_HZ is 2^32 or more.
     Not sampled     desc.pmu; the trace's metadata say so.
     Not compiled    npuprof_npu_drain, _job, _host_ns, _clock, _anchor; without NPUPROF_NPU_RECORDS also
                     _feed, _set_job, _set_job_of, and records by hand but _span: a call is a compile error.
     Records         Define NPUPROF_NPU_RECORDS in every file: npuprof_npu_feed, _set_job, _set_job_of,
                     _set_job_records and _complete_host go into the arena as they are. npuprof-convert
                     decodes and matches them, by the code of a user-mode driver. Any number of jobs and
                     calls may be open. Every ring of the description is fed: there is no drain. An entry
                     has 128 bytes at most. It takes 48 bytes of the arena and twice its own, 48 more with
                     stamps of the counter; a submission 240. npuprof_npu_set_job() means the newest open
                     submission of its NPUPROF_CONTEXT(): where tasks share one, use _set_job_of.
                     npuprof_npu_complete_host() returns false. ring.op_name is not called. It needs
                     NPUPROF_KEEP_OLDEST.
     Memory          sizeof(npuprof_npu) is 1,288 bytes on a Cortex-M. Recorder and device together take
                     11.4 KB of flash on a Cortex-M0+ (`make size`).
     Arena           A block's device span takes 96 bytes (80 with NPUPROF_NO_JSON), an anchor 80 (64). A
                     device name of more than 8 bytes takes 16 or more on top (with NPUPROF_NO_JSON: none).
     A device span is recorded as ticks and a stream. The host converts the image: it maps the ticks by the
     anchors, with the bound of CLOCK above, and draws arrows and tracks. It also checks that each device span
     lies inside its host span. The JSON that the target itself writes leaves device spans out. It counts them
     as left_out.
     Cost: a kernel takes two counter reads, without a division or a 64-bit product. That holds as long as:
       - since its last read the counter moved by at most an eighth of its period (its low word's, if split);
       - it moved at the rate of the last two anchors, within a factor of 2 to 4.
     Otherwise the library finds the wraps or the new rate, in some ten thousand instructions. An anchor that
     is due takes about a thousand.
     A smaller change of rate is not noticed on the target, and no anchor is taken for it. Call
     npuprof_npu_sync() before and after it. The host widens the bound where the anchors contradict each
     other.
     Tasks, cores and interrupts that read one device at once do not wait: the later one gets
     NPUPROF_ERR_NPU_BUSY.
     npuprof_clear() forgets the device and its anchors: close the device before it, open it after it. A
     program can open devices 255 times; then npuprof_npu_open() returns NPUPROF_ERR_TABLE_FULL. When the
     recorder's stamps wrap (2^47 ticks of NPUPROF_NOW()), the device may begin a new epoch.

   TAGS  >>npu/compiler       what the device side asks of a compiler: the fence between clock and counter
         >>npu/types          a device's description, and what an open device holds
         >>npu/ring_types     how a queue of records is described
         >>npu/queue_types    what an open device holds for each of them
         >>npu/api            the functions
         >>npu/macros         WITH_NPU_PROFILER
         >>npu/map/           where the registers are: target sysfs vfio guard map
         >>npu/host_side      what the parts for both sides ask of a host
         >>npu/firmware_side  the same, of firmware
         >>npu/mmio           register loads, and brackets of the host clock around them
         >>npu/clock          a raw counter value becomes 64-bit time: wraps, resets, dead counters
         >>npu/requirements   why a counter stands: enable bits
         >>npu/anchors        clock anchors: how they are taken, and when
         >>npu/sample         the two reads of a sampled submission
         >>npu/describe       checks of a description, and its defaults
         >>npu/calls          the table of open npuprof_npu_begin()
         >>npu/host/          hosts: pmu pushed jobs draw format index ready stamp lanes times pairs record
                              queues progress drain feed by_hand kernel calls open
         >>npu/firmware/      firmware: kernel
   ======================================================================================================== */
#ifndef NPUPROF_H
#error "npuprof_npu.h: include npuprof.h first"
#else   /* Why all the rest: without npuprof.h each line of it would be an error of its own. */

#ifndef NPUPROF_NPU_H
#define NPUPROF_NPU_H

#define NPUPROF_NPU_VERSION 10000
#if NPUPROF_NPU_VERSION != NPUPROF_VERSION
#error "npuprof_npu.h: npuprof.h is of another version; take both from the same release"
#endif
#if defined(WITH_NPU_PROFILER)
#error "npuprof_npu.h: WITH_NPU_PROFILER is already defined; include npuprof_npu.h first or rename that one"
#endif

NPUPROF_QUIET_PUSH_
#include "npu/compiler.h"
#include "npu/ring_types.h"
#include "npu/queue_types.h"
#include "npu/types.h"
#include "npu/api.h"
#include "npu/macros.h"
NPUPROF_QUIET_POP_

#endif /* NPUPROF_NPU_H: end of header */

#if defined(NPUPROF_IMPLEMENTATION) && !defined(NPUPROF_OFF) && !defined(NPUPROF_NPU_IMPLEMENTATION_DONE_)
#ifndef NPUPROF_IMPLEMENTATION_DONE_
#error "npuprof_npu.h: the implementing file includes npuprof.h with NPUPROF_IMPLEMENTATION, too"
#else   /* Why all the rest: as above. */
#define NPUPROF_NPU_IMPLEMENTATION_DONE_

/* Why: the file around may have globals of any name. */
NPUPROF_QUIET_PUSH_

#ifndef NPUPROF_FREESTANDING

/* Why outside of extern "C": these include headers of the system. */
#include "npu/map/target.h"
#include "npu/map/sysfs.h"
#include "npu/map/vfio.h"
#include "npu/map/guard.h"
#include "npu/map/map.h"

NPUPROF_BEGIN_C_
#include "npu/host_side.h"

#else /* NPUPROF_FREESTANDING */

NPUPROF_BEGIN_C_
#include "npu/firmware_side.h"

#endif /* NPUPROF_FREESTANDING */

#include "npu/mmio.h"
#include "npu/clock.h"
#include "npu/requirements.h"
#include "npu/anchors.h"
#include "npu/describe.h"
#include "npu/sample.h"
#include "npu/calls.h"
#include "npu/ring_words.h"

#ifndef NPUPROF_FREESTANDING

#include "npu/host/pushed.h"
#include "npu/host/pmu.h"
#include "npu/host/jobs.h"
#include "npu/host/draw.h"
#include "npu/host/match.h"
#include "npu/host/format.h"
#include "npu/host/rule.h"
#include "npu/host/index.h"
#include "npu/host/laps.h"
#include "npu/host/ready.h"
#include "npu/host/rules.h"
#include "npu/host/stamp.h"
#include "npu/host/lanes.h"
#include "npu/host/times.h"
#include "npu/host/pairs.h"
#include "npu/host/ended.h"
#include "npu/host/record.h"
#include "npu/host/late.h"
#include "npu/host/tables.h"
#include "npu/host/queues.h"
#include "npu/host/progress.h"
#include "npu/host/drain.h"
#include "npu/host/feed.h"
#include "npu/host/by_hand.h"
#include "npu/host/kernel.h"
#include "npu/host/calls.h"
#include "npu/host/open.h"

#else /* NPUPROF_FREESTANDING */

#include "npu/firmware/jobs.h"
#include "npu/firmware/kernel.h"

#endif /* NPUPROF_FREESTANDING */
NPUPROF_END_C_

NPUPROF_QUIET_POP_

#endif /* NPUPROF_IMPLEMENTATION_DONE_ */
#endif /* NPUPROF_IMPLEMENTATION */
#endif /* NPUPROF_H */

/* MIT License

   Copyright (c) the npuprof authors

   Permission is hereby granted, free of charge, to any person obtaining a copy of this software and
   associated documentation files (the "Software"), to deal in the Software without restriction, including
   without limitation the rights to use, copy, modify, merge, publish, distribute, sublicense, and/or sell
   copies of the Software, and to permit persons to whom the Software is furnished to do so, subject to the
   following conditions:

   The above copyright notice and this permission notice shall be included in all copies or substantial
   portions of the Software.

   THE SOFTWARE IS PROVIDED "AS IS", WITHOUT WARRANTY OF ANY KIND, EXPRESS OR IMPLIED, INCLUDING BUT NOT
   LIMITED TO THE WARRANTIES OF MERCHANTABILITY, FITNESS FOR A PARTICULAR PURPOSE AND NONINFRINGEMENT. IN NO
   EVENT SHALL THE AUTHORS OR COPYRIGHT HOLDERS BE LIABLE FOR ANY CLAIM, DAMAGES OR OTHER LIABILITY, WHETHER
   IN AN ACTION OF CONTRACT, TORT OR OTHERWISE, ARISING FROM, OUT OF OR IN CONNECTION WITH THE SOFTWARE OR THE
   USE OR OTHER DEALINGS IN THE SOFTWARE. */
