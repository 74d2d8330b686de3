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
     Sampled (no ring): the counter is read at both ends of the block, which must wait for the kernel. The
     device span is marked "stamp": "sampled". Each stream has a track of its own: "npu0 stream 7".
     Device-stamped (desc.ring): the device writes completion records with its own stamps. The block only
     notes who submitted; npuprof_npu_drain() turns records into device spans and draws the arrow. Nothing
     waits, and the submitting thread reads no register. Whole executions have a track of their own, "npu0 PE
     1", where the arrows end, above that of their instructions, "npu0 PE 1 instructions".
     The argument `stream` of a device span is that of the block it belongs to, as a signed number.

   WHICH RECORD BELONGS TO WHICH SUBMISSION
     npuprof_npu_job(npu) inside the block gives a number to put into the command; the record's `job` field
     brings it back. Where the device chooses the number, npuprof_npu_set_job(npu, number) inside the block
     says which. With neither, records are matched in order: a record goes to the oldest submission whose
     stream is the record's PE, else to the oldest of all. A job is over with its record of `execution_op`;
     where that is 0, every record is a job of its own. Up to 256 submissions may be open; past that the
     oldest loses its arrow.

   CLOCK
     An anchor is a pair of host and device time: the narrowest of desc.brackets host-device-host brackets,
     half its width being its error. Two are taken at open, and again where device time begins anew. More
     follow at npuprof_npu_sync(), at close, and by the way in npuprof_npu_drain() and at the end of sampled
     blocks when the last one is older than the trace (1 ms, then 2 ms, 4 ms ... 250 ms, and past 250 s a
     thousandth of the age, so that days fit the arena), or when the read lies outside the bound of what the
     anchors foretell: the rate changed. Then they come as quickly as after open. But for that, a sampled
     block reads no register more. The error bound of a device stamp is true if the device's rate stays within
     max_rate_ppm of a centre, and that centre changes at most once in an interval of anchors and not in the
     stretch beside it, up to the first anchor that is as far away as the interval is long. Call
     npuprof_npu_sync() before and after a change that you make. Where the rate before or behind an interval
     contradicts the one inside, the bound is wider and the span is flagged; more changes than that which
     leave no such trace in the anchors (they cancel out) cannot be seen. The nominal rate is only used until
     there are two anchors, with a factor of 4 either way.

   COUNTER
     Wraps are followed over any gap as long as the host clock tells their number: up to the gap in which the
     rate's uncertainty (what the anchors leave open, plus 100 ppm and twice max_rate_ppm) is half a period:
     5,000 periods at best. Past that: NPUPROF_ERR_NPU_AMBIGUOUS and a new epoch of device time. A value that
     no number of wraps explains is a reset: a new epoch with anchors of its own, and NPUPROF_ERR_NPU_RESET
     once. A value that does not move for 100 ms: NPUPROF_ERR_NPU_STOPPED. All ones or all zeros where they
     cannot be the time: NPUPROF_ERR_NPU_DEAD. No span is made of such a read; its block has an event "no
     device span" that says why, and clock_sync of the trace counts them. A wide counter may be late by up to
     a second (one that software moves, and that was interrupted): it goes on where it stands.

   EVENT COUNTERS (desc.pmu)
     A sampled block reads them just inside its two stamps: the steps are arguments of the device span, the
     sums since open counter tracks ("npu0 macs"). With a ring they are read by each drain that finds records,
     and make tracks only. The library starts, selects and clears no counter: that is the driver's. One that
     is marked is_busy gives NPU Run of a sampled kernel in the reports, and NPU IoWait the rest of it.

   REGISTER LOADS (npuprof_npu.mmio_reads counts them)
     Sampled span: 2 where the low word alone is unambiguous (nearly always: up to the gap in which the rate's
     uncertainty is an eighth of the low word's period); else up to 4 with latched halves, 6 with split
     halves. For each event counter 2 more, 4 latched, 6 split. Block with a ring: none. Drain: 1 if it finds
     nothing; with n records, in the BAR their fields, one for each 32 of them, one to three for the counter,
     and half of what was said of event counters.
     Anchor that is due in a drain, after a change of rate or by npuprof_npu_sync(): desc.brackets times one
     to three. Split halves that were torn are read again: two loads more.

   WHERE THE REGISTERS ARE
     bar         a mapping that the driver or the firmware has already, or an array
     resource    /sys/bus/pci/devices/.../resourceN: a BAR, also one that begins inside a page. /dev/uioN: its
                 map resource_map; where the kernel does not list that map, BAR resource_map of its PCI
                 device. /dev/hpet, other device files, ordinary files, shared memory
     vfio        a region of a VFIO device
     read_ticks  a function: a vendor's ioctl, a PTP clock
     Mapped read-only, close-on-exec, no further than the registers reach. npuprof_npu_open() says what is
     wrong:
       _NOT_FOUND, _ACCESS  the path or region (kernel lockdown is _ACCESS, too)
       _NPU_DECODE_OFF      the BAR answers nothing; `echo 1 > enable` beside it switches it on
       _NPU_REMOVED         the device was pulled out or is off
       _NPU_OWNED           a driver has the BAR, and the kernel does not map it twice
                            (CONFIG_IO_STRICT_DEVMEM)
       _NPU_IO_PORT         not memory
       _NPU_RANGE           the BAR, map, region or file is too small, or a register is not aligned
       _NPU_MAP             anything else that cannot be mapped
       _NPU_DEAD            it can, and reads all ones or all zeros

   SIGBUS
     Three kinds of mapping do not read as ones but raise SIGBUS: a VFIO region whose memory decode, power or
     device was switched off (a reset does that); a BAR of sysfs that a driver claims while it is mapped; a
     file that was cut. Unasked, the library installs no signal handler: such a read then ends the program, as
     it would in the driver itself. desc.catch_sigbus: while such a device is open there is a SIGBUS handler,
     which puts an empty page in place of its mapping and returns; faults elsewhere go to the handler that was
     there before. The device is _NPU_DEAD from then on; close and open it to go on. A program that installs a
     handler later calls npuprof_npu_fault(info->si_addr) in it. A thread that blocks SIGBUS is killed. A
     mapping that is yours (desc.bar) is yours to guard.

   MISTAKES PEOPLE MAKE
     - npuprof_dump() before npuprof_npu_close() or npuprof_npu_sync(): the last device spans are then
       extrapolated.
     - A simulated BAR whose counter stands at 0: that is what a dead device looks like. Start it anywhere
       else.

   FIRMWARE (NPUPROF_FREESTANDING)
     Sampled kernels: open, close, read, extend, sync, npuprof_npu_span() and WITH_NPU_PROFILER, by desc.bar
     or desc.read_ticks. A block's device span is its ticks and its stream, 96 bytes of arena (80 with
     NPUPROF_NO_JSON); an anchor is 80 (64). The host maps them when it converts the image, by the anchors and
     with the bound of CLOCK above, checks that each span lies inside its host call, and draws the arrow and
     the tracks. The target's own JSON leaves device spans out, and counts them as left_out.
     sizeof(npuprof_npu) is 512 bytes on a Cortex-M; it takes 10 KB of flash.
     On the way of a kernel there are the two counter reads, no division and no 64-bit product, as long as the
     counter is at most an eighth of a period from its last read (of the low word's, where it is split) and
     within a factor of 4 of the rate of the last two anchors. Else, and with an anchor that is due, up to
     some ten thousand instructions to find the wraps or the new rate. A change of rate by less is not noticed
     on the target and brings no anchors by itself: the host flags it, npuprof_npu_sync() announces it. Not
     there: desc.resource and desc.vfio, a ring, and 64-bit loads on a 32-bit machine are
     NPUPROF_ERR_UNSUPPORTED at open; desc.pmu is not sampled, and the metadata say so; npuprof_npu_drain,
     _job, _set_job and _host_ns do not compile. Tasks, cores or interrupts that read one device at once do
     not wait: the later one has NPUPROF_ERR_NPU_BUSY. npuprof_clear() forgets the device and its anchors:
     close before it, open behind it. Where the recorder's stamps wrap (2^47 of NPUPROF_NOW()'s ticks), the
     device may begin a new epoch.

   TAGS  >>npu/compiler       what the device side asks of a compiler: the fence between clock and counter
         >>npu/types          a device's description, and what an open device holds
         >>npu/api            the functions
         >>npu/macros         WITH_NPU_PROFILER
         >>npu/map/           where the registers are: target sysfs vfio guard map
         >>npu/host_side      what the parts for both sides ask of a host
         >>npu/firmware_side  the same, of firmware
         >>npu/mmio           register loads, and brackets of the host clock around them
         >>npu/clock          a raw counter value becomes 64-bit time: wraps, resets, dead counters
         >>npu/anchors        clock anchors: how they are taken, and when
         >>npu/describe       checks of a description, and its defaults
         >>npu/host/          hosts: pmu jobs ring drain kernel open
         >>npu/firmware/      firmware: kernel
   ======================================================================================================== */
#ifndef NPUPROF_NPU_H
#define NPUPROF_NPU_H

#ifndef NPUPROF_H
#error "npuprof_npu.h: include npuprof.h first"
#endif
#define NPUPROF_NPU_VERSION 100
#if NPUPROF_NPU_VERSION != NPUPROF_VERSION
#error "npuprof_npu.h: npuprof.h is of another version; take both from the same release"
#endif
#if defined(WITH_NPU_PROFILER)
#error "npuprof_npu.h: WITH_NPU_PROFILER is already defined; include npuprof_npu.h first or rename that one"
#endif

#include "npu/compiler.h"
#include "npu/types.h"
#include "npu/api.h"
#include "npu/macros.h"

#endif /* NPUPROF_NPU_H: end of header */

#if defined(NPUPROF_IMPLEMENTATION) && !defined(NPUPROF_OFF) && !defined(NPUPROF_NPU_IMPLEMENTATION_DONE_)
#define NPUPROF_NPU_IMPLEMENTATION_DONE_

#if defined(NPUPROF_FREESTANDING) && !defined(NPUPROF_IMPLEMENTATION_DONE_)
#error "npuprof_npu.h: the implementing file includes npuprof.h with NPUPROF_IMPLEMENTATION, too"
#endif

/* Why: the file around may have globals of any name. */
NPUPROF_SHADOW_PUSH_

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
#include "npu/anchors.h"
#include "npu/describe.h"

#ifndef NPUPROF_FREESTANDING

#include "npu/host/pmu.h"
#include "npu/host/jobs.h"
#include "npu/host/ring.h"
#include "npu/host/drain.h"
#include "npu/host/kernel.h"
#include "npu/host/open.h"

#else /* NPUPROF_FREESTANDING */

#include "npu/firmware/kernel.h"

#endif /* NPUPROF_FREESTANDING */
NPUPROF_END_C_

NPUPROF_SHADOW_POP_

#endif /* NPUPROF_IMPLEMENTATION */

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
