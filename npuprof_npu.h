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
/* ==== src/npu/compiler.h ============================================================= >>npu/compiler ==== */

/* What the device side asks of a compiler: functions that refuse to compile. Owns no data. */

/* A function that firmware does not have. A call of it does not compile, and the compiler prints the reason.
   */
#if defined(__clang__) || (defined(__GNUC__) && __GNUC__ >= 12)
#define NPUPROF_NPU_ABSENT_(why) \
    NPUPROF_ATTRIBUTE_((unavailable("npuprof_npu.h: not with NPUPROF_FREESTANDING: " why)))
#else
#define NPUPROF_NPU_ABSENT_(why) \
    NPUPROF_ATTRIBUTE_((error("npuprof_npu.h: not with NPUPROF_FREESTANDING: " why)))
#endif

/* NPUPROF_NPU_OPEN_SYMBOL_: the name that the linker has for npuprof_npu_open(), and prints where the
   implementing file does not include this header. NPUPROF_NPU_OPEN_OF_1_0_ is its plain name, too. */
#if NPUPROF_TWO_NAMES_
#define NPUPROF_NPU_OPEN_SYMBOL_ \
    "npuprof_npu_open_include_npuprof_npu_h_in_the_file_with_NPUPROF_IMPLEMENTATION_and_export_npuprof_names_"
#define NPUPROF_NPU_OPEN_NAMED_ __asm__(NPUPROF_NPU_OPEN_SYMBOL_)
#define NPUPROF_NPU_OPEN_OF_1_0_ \
    NPUPROF_C_ npuprof_result npuprof_npu_open_of_1_0_(npuprof_npu *npu, const npuprof_npu_desc *desc) \
        __asm__("npuprof_npu_open") NPUPROF_ATTRIBUTE_((alias(NPUPROF_NPU_OPEN_SYMBOL_)));
#else
#define NPUPROF_NPU_OPEN_NAMED_
#define NPUPROF_NPU_OPEN_OF_1_0_
#endif

/* NPUPROF_NPU_HOSTED_FN_: a public function of hosted code only, as NPUPROF_FN_ declares the others. */
#if !defined(NPUPROF_FREESTANDING) || defined(NPUPROF_OFF)
#define NPUPROF_NPU_HOSTED_FN_(why, type, name, params, ...) NPUPROF_FN_(type, name, params, __VA_ARGS__)
#else
#define NPUPROF_NPU_HOSTED_FN_(why, type, name, params, ...) \
    NPUPROF_C_ type name params NPUPROF_NPU_ABSENT_(why);
#endif

/* NPUPROF_NPU_RECORD_FN_: one that firmware has with NPUPROF_NPU_RECORDS. */
#if defined(NPUPROF_FREESTANDING) && defined(NPUPROF_NPU_RECORDS)
#define NPUPROF_NPU_RECORD_FN_(type, name, params, ...) NPUPROF_FN_(type, name, params, __VA_ARGS__)
#else
#define NPUPROF_NPU_RECORD_FN_(type, name, params, ...) \
    NPUPROF_NPU_HOSTED_FN_("define NPUPROF_NPU_RECORDS", type, name, params, __VA_ARGS__)
#endif
#define NPUPROF_NPU_NO_RING_ \
    "a completion ring is read on a host; sample the kernels with WITH_NPU_PROFILER, " \
    "or npuprof_npu_span() your own stamps"
#define NPUPROF_NPU_NO_CORRELATION_ "the runtime's numbers are known on a host; give an argument of your own"
#define NPUPROF_NPU_NO_PUSH_ "the counter is read there; give npuprof_npu_desc a bar or read_ticks"
#define NPUPROF_NPU_NO_HOST_NS_ "the host maps the ticks when it converts the image"
/* ==== src/npu/ring_types.h ========================================================= >>npu/ring_types ==== */

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
/* ==== src/npu/queue_types.h ======================================================= >>npu/queue_types ==== */

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
/* ==== src/npu/types.h =================================================================== >>npu/types ==== */

/* The types of the device side: how a user describes a device, and what an open device holds.
   What ends with an underscore is private; a user only gives storage for it. */

/* How a counter of two words is read. Not used where one load holds all bits. */
enum {
    NPUPROF_NPU_HI_LO_HI = 0,            /* high, low, high again, until both highs agree */
    NPUPROF_NPU_LO_LATCHES_HI = 1,       /* reading the low word freezes the high word */
    NPUPROF_NPU_SINGLE = 2,              /* one load holds all bits */
    NPUPROF_NPU_ORDER_COUNT_
};

/* A tick counter. Zero in a field means its default. */
typedef struct npuprof_npu_counter {
    size_t lo_offset, hi_offset;         /* bytes into the BAR; hi_offset is unused when one load holds all
                                            bits */
    unsigned bits;                       /* 1 to 64 valid bits; 0 = 64 */
    unsigned access;                     /* width of one load: 32 or 64; 0 = 32 */
    int order;                           /* one of NPUPROF_NPU_HI_LO_HI, _LO_LATCHES_HI, _SINGLE */
    bool counts_down, big_endian;        /* registers are little-endian unless big_endian is set */
    uint64_t hz;                         /* nominal rate, at most 10^15; 0 = unknown. It is measured in either
                                            case */
    uint32_t lag_ns;                     /* a read may show the counter as it was up to this long before: a
                                            counter that software moves, a mirrored register. Every anchor
                                            reaches that much further into the past, and sampled stamps have
                                            an error that much larger */
    uint8_t lo_lsb, lo_bits, hi_lsb;     /* where the counter is a field of its registers: first bit and bits
                                            of the low part, first bit of the high part. lo_bits 0 = all above
                                            lo_lsb. Not with a function that reads it, and not
                                            in firmware */
} npuprof_npu_counter;

/* One of the device's event counters. It runs freely, unless `restarts` says otherwise: wraps are counted as
   long as it is sampled once in each. */
typedef struct npuprof_npu_pmu {
    const char *name;                    /* the argument of the device span; "DEVICE NAME" is the counter
                                            track */
    npuprof_npu_counter counter;         /* where and how wide; hz and lag_ns are unused */
    bool is_busy;                        /* counts the ticks of desc.counter in which the device works: the
                                            argument is busy_ticks, and NPU Run of the reports is taken from
                                            it */
    bool (*read)(void *user, unsigned i, uint64_t *value);  /* instead of the BAR: sets *value of event
                                            counter i; false = not now. Called under the device's lock, user
                                            is desc.user; counter.bits still says when it wraps */
    uint64_t scale;                      /* what one count stands for; 0 = 1 */
    const char *unit;                    /* of scaled counts, "bytes"; NULL = counts */
    bool is_idle;                        /* counts the ticks in which the device does not work: busy_ticks are
                                            the others. Not with is_busy */
    bool restarts;                       /* starts at 0 with each job: its value at the end is the step */
} npuprof_npu_pmu;

/* When a job ran, in ns of npuprof_now_ns(), and how exactly that is known. Zero in a field means its
   default. The stated error is error_ns; else it reaches from not_before_ns to not_after_ns, wherever in
   there the job may have been. */
typedef struct npuprof_npu_host_times {
    int64_t start_ns, end_ns;            /* 0: not_before_ns; not_after_ns */
    uint64_t duration_ns;                /* how long it ran, if the device tells: then start_ns is not used */
    int64_t not_before_ns;               /* it had not begun; 0: its submission, or npuprof_npu_open() */
    int64_t not_after_ns;                /* it was over; 0: the moment of the call */
    uint64_t error_ns;                   /* start_ns and end_ns are true within this; 0: not known */
} npuprof_npu_host_times;

/* A field of a register that must have a value, or the counter stands: an enable bit. Read at open, and when
   the counter stands. */
typedef struct npuprof_npu_requirement {
    size_t offset;                       /* bytes into the BAR */
    unsigned access;                     /* width of the load: 32 or 64; 0 = 32 */
    uint64_t mask, value;                /* it holds if (word & mask) == value */
    const char *text;                    /* names the field in the result's sentence: "PMCR.CNT_EN" */
} npuprof_npu_requirement;

/* A device: where its registers are and how they behave. Zero in a field means the default. Strings are not
   copied: they, names and tables live as long as the npuprof_npu. */
typedef struct npuprof_npu_desc {
    const char *name;                    /* "npu0"; NULL = "npu" */
    /* Where: exactly one of the four. */
    volatile const void *bar;            /* a mapping that the caller owns */
    size_t bar_bytes;                    /* its size */
    const char *resource;                /* a path, mapped read-only: sysfs resourceN, /dev/uioN, /dev/hpet, a
                                            file */
    int vfio_device_fd;                  /* a VFIO device's region; group, container and descriptor are the
                                            caller's */
    unsigned vfio_region;                /* 0 to 5: a PCI BAR */
    bool vfio;
    uint64_t (*read_ticks)(void *user);  /* the counter by a function, beside a BAR or without one; its
                                            offsets, access and order are then unused */
    void *user;                          /* passed to read_ticks, wait, is_on, pmu.read and ring.op_name */
    bool (*is_on)(void *user);           /* whether the device has power: asked before each group of loads
                                            from the BAR; false = none is made, and the result is
                                            NPUPROF_ERR_NPU_OFF. NULL = always on */
    bool anchors_only;                   /* the counter cannot be read: device time comes from
                                            npuprof_npu_anchor() and from the order of events */
    const npuprof_npu_requirement *requirements;     /* what must hold for the counter to run */
    unsigned requirement_count;
    npuprof_npu_counter counter;
    const npuprof_npu_pmu *pmu;          /* counters sampled with every sampled kernel, every drain or feed
                                            that finds records, every npuprof_npu_complete() with `last` */
    unsigned pmu_count;                  /* at most 8 */
    unsigned pe_count;                   /* 0 = 1 */
    int (*wait)(void *user);             /* as in npuprof_device; sampled blocks only */
    bool wait_around;
    size_t resource_offset;              /* where the registers begin in the resource or region */
    unsigned resource_map;               /* /dev/uioN: which of its maps; of a PCI device, the BAR */
    bool catch_sigbus;                   /* a mapping that dies reads as a dead device (SIGBUS above); not for
                                            `bar` */
    unsigned brackets;                   /* for each anchor; 0 = 8 */
    unsigned max_rate_ppm;               /* how far the device's rate may be from a centre in any second, and
                                            how far that centre may move in each second; 0 = 2. A larger value
                                            gives wider error bounds, a value that is too small gives wrong
                                            ones, unless the reads show it: clock_sync.contradictions */
    npuprof_npu_ring ring;               /* the completion ring, if there is one only */
    const npuprof_npu_ring *rings;       /* several, copied by open; `ring` is then unused. Entry i of the
                                            array is ring i of npuprof_npu_feed() */
    unsigned ring_count;                 /* at most NPUPROF_NPU_RINGS */
    npuprof_npu_progress progress;       /* instead of rings: an index of finished jobs */
    unsigned job_count;                  /* submissions that may be open at once, where records end them; 0 =
                                            256, at most 65536. The next one takes the place of the oldest,
                                            which loses its arrow: records.dropped_jobs in clock_sync */
    void *memory;                        /* for the tables of the device until it is closed, aligned to 16
                                            bytes; NULL: npuprof_npu_open() takes pages of the system, as
                                            for the arena */
    size_t memory_bytes;                 /* if it is too small, the sentence of the result says how many
                                            bytes are needed */
    bool cpu_ns;                         /* what the thread did while its job ran, as arguments of the
                                            execution (WAITED OR WORKED above). Not in firmware */
} npuprof_npu_desc;

/* ---- Private from here on */

enum {
#ifndef NPUPROF_FREESTANDING
    NPUPROF_NPU_ANCHORS_ = 32,           /* the latest ones, which the error bound and the rate are taken from
                                            */
    NPUPROF_NPU_DIVIDES_ = 1,
    NPUPROF_NPU_DOUBTS_ = 8,             /* contradictions after which counter.hz is not used any more */
    NPUPROF_NPU_CALLS_ = 128,            /* npuprof_npu_begin() that may be open: a power of 2 */
#else
    NPUPROF_NPU_ANCHORS_ = 2,
    NPUPROF_NPU_DIVIDES_ = 0,            /* a division of 64 bits is a slow function there */
    NPUPROF_NPU_CALLS_ = 4,
    NPUPROF_NPU_KEPT_ = 4,               /* anchors that a ring keeps */
#endif
    NPUPROF_NPU_DROPPED_ = 256,          /* counts of submissions that gave up their entries */
    NPUPROF_NPU_PMU_ = 8,
    NPUPROF_NPU_CALL_ARGS_ = 8,          /* of npuprof_npu_end_args() that are recorded */
    NPUPROF_NPU_NAME_ = 64
};
#ifndef NPUPROF_FREESTANDING
typedef struct npuprof_npu_job_ {        /* a submission whose completion has not been seen; see
                                            npu/host/jobs.h */
    uint32_t state;                      /* NPUPROF_NPU_JOB_FREE_, _OPEN_ or _HELD_; who turned it to _HELD_
                                            owns the rest */
    uint32_t ticket;                     /* number of the submission */
    uint32_t flags;                      /* NPUPROF_NPU_HAS_ID_ ...; others look at this and id without
                                            holding it */
    uint32_t epoch;                      /* of device time, when it was submitted */
    uint32_t records;                    /* that are still to come, if it is known to be more than one */
    uint64_t id;
    uint64_t stream;
    npuprof_link_ link;                  /* the host span of the block, where the arrow begins */
    char name[NPUPROF_NPU_NAME_];
} npuprof_npu_job_;

typedef struct npuprof_npu_pmu_state_ {  /* an event counter */
    npuprof_npu_pmu is;
    npuprof_site_ site;                  /* of its track */
    uint32_t epoch;                      /* + 1, of the last read; 0 = never */
    uint64_t raw, total;                 /* the last value; the sum of all steps since open */
    char track[NPUPROF_NPU_NAME_];
} npuprof_npu_pmu_state_;
#endif /* !NPUPROF_FREESTANDING */

/* What the two ends of a submission keep: on the stack of a WITH_NPU_PROFILER block, or in calls_ below. */
typedef struct npuprof_npu_block_ {
    npuprof_token_ token;                /* of the host span; 0 = not recorded, or ended already */
    struct npuprof_npu *npu;
    npuprof_result result;               /* of the read at the beginning */
    uint32_t epoch;
    bool by_host;                        /* see npu/sample.h */
    uint64_t stream;
    npuprof_anchor_ begin;               /* the read at the beginning */
#ifndef NPUPROF_FREESTANDING
    bool sampled;                        /* `begin` is good; with a ring: ticket is */
    uint32_t ticket, job_at, pmu_good;   /* job_at: the submission's entry */
    uint64_t pmu[NPUPROF_NPU_PMU_];
    npuprof_link_ link;
    const char *name, *category;         /* point to the copies below unless they are literals */
    char name_copy[2 * NPUPROF_NPU_NAME_], category_copy[NPUPROF_NPU_NAME_];
#endif
} npuprof_npu_block_;

typedef struct npuprof_npu_call_ {       /* a npuprof_npu_begin() that has not ended; see npu/calls.h */
    uint32_t handle;                     /* 0 = free, 1 = held, else the user's; who turned it to 1 owns the
                                            rest */
    uint32_t turn;                       /* how many calls had this entry */
    npuprof_npu_block_ block;
} npuprof_npu_call_;

/* An open device. `device` goes to WITH_BASE_PROFILER; a field with a trailing underscore is private. */
typedef struct npuprof_npu {
    npuprof_device device;
    uint32_t mmio_reads;                 /* loads from the BAR since open */

    /* Set by open, then only read. */
    const volatile unsigned char *bar_;
    uint32_t number_;                    /* of the device in the arena; 0 = not open */
    uint64_t lag_;                       /* counter.lag_ns in host ticks */
#ifndef NPUPROF_FREESTANDING
    uint64_t second_;                    /* host ticks in a second */
#else   /* Why not 64 bits: divisions of those are function calls. */
    uint32_t second_;
#endif

    /* npu/map/: the mapping. A fault handler sets gone_, any thread reads it. */
    void *map_;
    size_t map_bytes_;
    uint64_t config_at_;                 /* PCI configuration space: where in a file */
    int config_fd_;                      /* and which, + 1; 0 = none */
#ifndef NPUPROF_FREESTANDING
    uint64_t config_file_;               /* what npuprof_os_file_() says of it */
#endif
    uint32_t guard_, gone_;              /* its entry among the guards, + 1; a fault took the mapping away */
    bool is_virtual_function_;

    /* npu/clock.h: device time. Written and read by who holds lock_; epoch_ is also read without it. */
    uintptr_t lock_;                     /* who holds it; 0 = nobody */
    uint32_t epoch_;
    npuprof_result epoch_why_;           /* why this epoch began */
    uint64_t old_epoch_ticks_;           /* last value of the epoch before */
    uint64_t old_epoch_host_;            /* host ticks when that was read */
    uint64_t old_epoch_most_;            /* the most that it may have shown before this epoch began */
    npuprof_anchor_ last_;               /* the last good read; device_ticks extended */
    bool has_last_, has_rate_, coarse_rate_;     /* coarse: measured before a reset */
    bool idle_;                          /* no read since open has seen it move */
    bool is_causal_, is_unsteady_;       /* NPUPROF_DEVICE_* */
    npuprof_anchor_ rate_from_, rate_to_;        /* the anchors that the rate is taken from */
    uint64_t fast_host_ticks_;           /* NPUPROF_NPU_DIVIDES_ 0: a read this soon needs no division; 0 =
                                            none */
    int fast_shift_;                     /* and device ticks are at most host ticks << this, or >> -this */

    /* npu/anchors.h: under lock_, too, except renew_from_, which any thread may write. */
    npuprof_anchor_ anchors_[NPUPROF_NPU_ANCHORS_];      /* of this epoch, oldest first */
    uint32_t anchor_count_;
    uint64_t best_width_;                /* of the narrowest anchor */
#ifndef NPUPROF_FREESTANDING
    /* of all reads since the last anchor: which bounds device time best from above, and from below */
    npuprof_anchor_ best_upper_, best_lower_;
    bool has_best_;
    uint32_t doubts_;                    /* second anchors in a row that contradicted the first ones; where
                                            nobody reads the counter, all that contradicted hz */
    uint64_t changed_;                   /* host ticks when the rate was last seen to change */
#endif
    uint64_t first_anchor_;              /* host ticks from which the age of the trace counts */
    uint64_t anchor_interval_;           /* NPUPROF_NPU_DIVIDES_ 0: host ticks from the last anchor to the
                                            next one */
    uint64_t renew_from_;                /* host ticks before which the library takes no anchor by itself */

    /* npu/calls.h: any thread. */
    uint32_t next_call_;                 /* where the search for a free entry begins; a hint */
#ifdef NPUPROF_FREESTANDING
#ifndef NPUPROF_NPU_RECORDS
    npuprof_npu_call_ calls_[NPUPROF_NPU_CALLS_];
#endif
#else
    npuprof_npu_call_ *calls_;           /* NPUPROF_NPU_CALLS_; a table of npu/host/tables.h, as all below
                                            that are pointers */
#endif

#ifndef NPUPROF_FREESTANDING
    /* npu/host/: for who holds queue_lock_, one drain, feed or completion by hand. */
    npuprof_device_drain_ drain_;        /* for npuprof_read(), from open to close */
    uintptr_t queue_lock_;               /* who holds it; 0 = nobody */
    npuprof_device_texts_ texts_;        /* of records that rings brought */
    uint64_t counts_[NPUPROF_RECORDS_COUNT];     /* not yet handed to the arena */
    bool has_submissions_;               /* its records end what blocks submit: set by open */
    bool has_numbers_;                   /* every record names its job: set by open */
    uint64_t id_mask_;                   /* bits of a command's number that every ring brings back: set by
                                            open */
    npuprof_npu_queue_ *queues_;         /* queue_count_ */
    unsigned queue_count_, lane_count_;  /* lane_count_: places of lanes_ that are taken */
    npuprof_npu_lane_state_ *lanes_;     /* NPUPROF_NPU_LANES_ + 1, the last: of all that found no place */
    struct npuprof_npu_pair_ *pairs_;    /* NPUPROF_NPU_PAIRS_: npu/host/pairs.h */
    uint16_t pair_buckets_[NPUPROF_NPU_PAIR_BUCKETS_], free_pair_, oldest_pair_, newest_pair_;
    uint32_t *seen_;                     /* NPUPROF_NPU_SEEN_ hashes of entries: READY_VALID */
    struct npuprof_npu_late_ *late_;     /* records that wait for their submissions: npu/host/late.h */
    uint32_t late_first_, late_count_;
    struct npuprof_npu_ended_ *ended_;   /* jobs whose whole came, for their parts: npu/host/ended.h */
    uint32_t ended_count_;
    void *tables_;                       /* from the system; NULL: they lie in desc.memory */
    size_t tables_bytes_;
    npuprof_npu_index_state_ progress_;
    uint64_t progress_next_;             /* jobs that are over */
    int64_t stamp_offset_;               /* for stamps by hand */
    uint64_t open_ticks_, open_host_;    /* device time and host ticks at open */
    /* npu/host/jobs.h: any thread. */
    uint32_t ids_, uses_ids_, tickets_;  /* numbers and tickets given out; whether the driver numbers */
    uint32_t ended_unnumbered_;          /* the block of a submission ended before the first number */
    uint32_t gap_ticket_;                /* of submissions before it, records may be lost */
    uint32_t jobs_dropped_;              /* submissions that gave up their entries: not yet in counts_ */
    uint32_t forgotten_;                 /* of those without numbers, whose records have not come */
    uint32_t *dropped_;                  /* the same by number, or by stream: NPUPROF_NPU_DROPPED_ counts */
    uint32_t open_from_;                 /* under the queue lock: no submission before that ticket is open */
    uint32_t *used_, *numbered_;         /* a bit for each of jobs_; NPUPROF_NPU_ROWS_ times the same */
    npuprof_npu_job_ *jobs_;             /* desc.job_count */
    /* npu/host/pmu.h: under lock_. */
    npuprof_npu_pmu_state_ pmu_[NPUPROF_NPU_PMU_];
#else /* NPUPROF_FREESTANDING */
    npuprof_token_ kept_[NPUPROF_NPU_KEPT_];     /* its newest anchors in a ring, the oldest one first. Why in
                                            every build: all files of a program have the same structure */
#ifdef NPUPROF_NPU_RECORDS
    /* npu/firmware/jobs.h: set by open, then only read. */
    bool has_submissions_;               /* the host ends what blocks submit */
    uint8_t ring_count_;
    uint16_t by_counter_;                /* a bit for each ring: its stamps count the counter */
    uint8_t entry_bytes_[NPUPROF_NPU_RINGS];
#endif
#endif /* !NPUPROF_FREESTANDING */
    /* Why last: firmware reaches what lies near the beginning with shorter instructions. */
    npuprof_npu_desc desc_;              /* the user's, with the defaults filled in */
} npuprof_npu;
/* ==== src/npu/api.h ======================================================================= >>npu/api ==== */

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
/* ==== src/npu/macros.h ================================================================= >>npu/macros ==== */

/* WITH_NPU_PROFILER: a block, its host span and its device span. Owns no data. */

#ifndef NPUPROF_OFF
/* Why the warnings are off: as for npuprof_leave_scope_(). */
NPUPROF_MAYBE_PUSH_
NPUPROF_INLINE_ void npuprof_npu_leave_(npuprof_npu_block_ *block)
{
    NPUPROF_USDT_END_
    if (block->token && npuprof_is_open_(block->token)) npuprof_npu_end_(block);
}
NPUPROF_MAYBE_POP_

#ifdef __cplusplus
struct npuprof_npu_auto_block_ : npuprof_npu_block_ {
    NPUPROF_OWN_ npuprof_npu_auto_block_() { token = 0; }
    NPUPROF_OWN_ ~npuprof_npu_auto_block_() { npuprof_npu_leave_(this); }
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

/* A host span around code that gives work to the device, and the device span for it (TWO WAYS TO STAMP A
   KERNEL above). code is expanded once; leaving it by return, break, continue or goto ends both. npu:
   npuprof_npu *; stream: any integer or pointer that names a queue; name and cat: any strings, copied; args:
   of the host span. A name that is no literal is cut to 127 bytes, such a category to 63; with a ring without
   `op` a name is cut to 63. Cut between characters. */
#define WITH_NPU_PROFILER(npu, stream, name, cat, args, ...) \
    WITH_NPU_PROFILER_LEVEL(1, npu, stream, name, cat, args, __VA_ARGS__)
#define WITH_NPU_PROFILER_LEVEL(level, npu, stream, name, cat, args, ...) \
    NPUPROF_STATEMENT_BEGIN_ \
        NPUPROF_WITH_NPU_(__COUNTER__, level, npu, stream, name, cat, NPUPROF_CHECKED_LIST_(args)); \
        { __VA_ARGS__; } \
    NPUPROF_STATEMENT_END_

/* WITH_NPU_PROFILER from here to the end of the enclosing block, where that suits the code better. */
#define PROF_NPU_SCOPE(npu, stream, name, cat, args) \
    NPUPROF_WITH_NPU_(__COUNTER__, 1, npu, stream, name, cat, NPUPROF_CHECKED_LIST_(args))

#ifdef NPUPROF_FREESTANDING
#define NPUPROF_WITH_NPU_(id, level, npu, stream, name, cat, args) \
    NPUPROF_NPU_BLOCK_(NPUPROF_GLUE_(npuprof_npu_block_, id), level, \
                       NPUPROF_NAMED_SITE_(id, NPUPROF_KIND_SPAN, cat, name), \
                       (npuprof_npu_enter_(NPUPROF_NPU_SELF_(NPUPROF_GLUE_(npuprof_npu_block_, id)), (npu), \
                                           NPUPROF_STREAM_(stream)), \
                        npuprof_npu_begin_(NPUPROF_NPU_SELF_(NPUPROF_GLUE_(npuprof_npu_block_, id)), \
                                           NPUPROF_BEGIN_NAMED_(id, NPUPROF_NULL_, NPUPROF_KIND_SPAN, (cat), \
                                                                (name), (args)))))
#else
#define NPUPROF_NPU_LITERALS_(name, cat) (NPUPROF_CONSTANT_(name) && NPUPROF_CONSTANT_(cat))
#define NPUPROF_WITH_NPU_(id, level, npu, stream, name, cat, args) \
    NPUPROF_NPU_BLOCK_(NPUPROF_GLUE_(npuprof_npu_block_, id), level, \
                       NPUPROF_SITE_(id, NPUPROF_KIND_SPAN, NPUPROF_NULL_, NPUPROF_NULL_) \
                       NPUPROF_KEYS_OF_(id, NPUPROF_KIND_SPAN) \
                       NPUPROF_USDT_MARK_(NPUPROF_KIND_SPAN, (cat), (name)), \
                       npuprof_npu_begin_(NPUPROF_NPU_SELF_(NPUPROF_GLUE_(npuprof_npu_block_, id)), (npu), \
                                          NPUPROF_STREAM_(stream), \
                                          NPUPROF_NPU_LITERALS_(name, cat) \
                                              ? NPUPROF_REF_(id, NPUPROF_NULL_, NPUPROF_NULL_) \
                                              : NPUPROF_NULL_, \
                                          NPUPROF_KEYS_REF_(id), NPUPROF_NPU_LITERALS_(name, cat), \
                                          (cat), (name), (args)))
#endif /* NPUPROF_FREESTANDING */
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
/* ==== src/npu/map/target.h ========================================================= >>npu/map/target ==== */
#ifndef _WIN32
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>
#endif

/* What is to be mapped for a device, and what errors of the system mean for it. POSIX; sysfs.h and vfio.h
   fill in a target, map.h maps it. May not know what the registers mean. */

#ifndef _WIN32
#ifndef NPUPROF_NPU_SYSFS_               /* a test has its own */
#define NPUPROF_NPU_SYSFS_ "/sys"
#endif

typedef struct npuprof_npu_target_ {
    int fd;
    bool at_begin;                       /* can be mapped from its first page only */
    bool owned;                          /* a driver is bound */
    uint64_t origin;                     /* where it begins in the file */
    uint64_t before;                     /* bytes in the first page that are not the device's */
    uint64_t bytes;                      /* its length; UINT64_MAX: unknown */
} npuprof_npu_target_;

NPUPROF_OWN_ static npuprof_result npuprof_npu_map_error_(int error)
{
    if (error == EBUSY) return NPUPROF_ERR_NPU_OWNED;
    return error == EACCES || error == EPERM ? NPUPROF_ERR_ACCESS : NPUPROF_ERR_NPU_MAP;
}

NPUPROF_OWN_ static npuprof_result npuprof_npu_open_error_(int error)
{
    const bool not_found = error == ENOENT || error == ENODEV || error == ENXIO || error == ENOTDIR;
    return not_found ? NPUPROF_ERR_NOT_FOUND : npuprof_npu_map_error_(error);
}

/* What the configuration space says of a PCI device: NPUPROF_OK (also if there is none), _NPU_REMOVED,
   _NPU_DECODE_OFF. A virtual function's decode is its physical function's. Leaves errno as it was. */
NPUPROF_OWN_ static npuprof_result npuprof_npu_pci_state_(const npuprof_npu *npu)
{
    unsigned char b[6];                  /* vendor, device, command */
    if (npu->config_fd_ <= 0) return NPUPROF_OK;
    const int error = errno;
    const bool ours = npuprof_os_is_still_(npu->config_fd_ - 1, npu->config_file_);
    const ssize_t n = ours ? pread(npu->config_fd_ - 1, b, sizeof b, (off_t)npu->config_at_) : 0;
    const bool gone = n < 0 && errno == ENODEV;
    errno = error;
    if (n != (ssize_t)sizeof b) return gone ? NPUPROF_ERR_NPU_REMOVED : NPUPROF_OK;
    if ((b[0] & b[1] & b[2] & b[3]) == 0xFF) return NPUPROF_ERR_NPU_REMOVED;
    return b[4] & 2 || npu->is_virtual_function_ ? NPUPROF_OK : NPUPROF_ERR_NPU_DECODE_OFF;
}

#else /* _WIN32 */

NPUPROF_OWN_ static npuprof_result npuprof_npu_pci_state_(const npuprof_npu *npu)
{
    (void)npu;
    return NPUPROF_OK;
}

#endif /* !_WIN32 */
/* ==== src/npu/map/sysfs.h =========================================================== >>npu/map/sysfs ==== */

/* Linux: what desc.resource is, as sysfs tells: a BAR of a PCI device, a map of /dev/uioN, or neither. Opens
   PCI configuration space, which later says why a device is dead. May not map anything. Other systems: every
   resource is taken for a plain file. */

#ifdef __linux__
#include <sys/sysmacros.h>

/* The numbers in one line of a small file of sysfs, such as "0x10 0xfff". Returns how many there are. */
NPUPROF_OWN_ static int npuprof_npu_read_numbers_(const char *path, unsigned line, uint64_t *number, int capacity)
{
    char text[2048], *p = text;
    int count = 0;
    const int fd = npuprof_os_open_above_2_(path, O_RDONLY);
    if (fd < 0) return 0;
    const ssize_t n = read(fd, text, sizeof text - 1);
    close(fd);
    text[n > 0 ? n : 0] = 0;
    for (; line && p; line--) p = (p = strchr(p, '\n')) ? p + 1 : NULL;
    while (p && count < capacity) {
        char *end;
        number[count] = strtoull(p, &end, 0);
        if (end == p) break;
        count++;
        p = *end == '\n' ? NULL : end;
    }
    return count;
}

/* A PCI device by its folder in sysfs: the first `length` bytes of the path. bar < 0: none of its BARs. */
NPUPROF_OWN_ static npuprof_result npuprof_npu_pci_target_(npuprof_npu *npu, npuprof_npu_target_ *target, const char *path,
                                              size_t length, long bar)
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
    npu->is_virtual_function_ = access(other, F_OK) == 0;
    snprintf(other, sizeof other, "%.*sconfig", (int)length, path);
    npu->config_fd_ = npuprof_os_open_above_2_(other, O_RDONLY) + 1;
    return NPUPROF_OK;
}

/* The number of a sysfs file resourceN or resourceN_wc; -1: another file. */
NPUPROF_OWN_ static long npuprof_npu_bar_number_(const char *name)
{
    char *end;
    if (strncmp(name, "resource", 8) != 0 || name[8] < '0' || name[8] > '9') return -1;
    const long bar = strtol(name + 8, &end, 10);
    return bar < 32 && (!*end || strcmp(end, "_wc") == 0) ? bar : -1;
}

/* A map of /dev/uioN. Where the kernel does not list that map, *path becomes a resource file of its PCI
   device. */
NPUPROF_OWN_ static npuprof_result npuprof_npu_uio_target_(npuprof_npu *npu, npuprof_npu_target_ *target, dev_t device,
                                              char path[PATH_MAX])
{
    char folder[256], name[320];
    const unsigned map = npu->desc_.resource_map;
    target->origin = map * (uint64_t)sysconf(_SC_PAGESIZE);
    target->at_begin = map > 0;
    snprintf(folder, sizeof folder, "%s/dev/char/%u:%u/", NPUPROF_NPU_SYSFS_, major(device), minor(device));
    snprintf(name, sizeof name, "%ssubsystem", folder);
    const ssize_t n = readlink(name, path, PATH_MAX - 1);
    path[n > 0 ? n : 0] = 0;
    if (n < 4 || strcmp(path + n - 4, "/uio") != 0) return NPUPROF_OK;           /* another device */
    snprintf(name, sizeof name, "%smaps/map%u/size", folder, map);
    if (npuprof_npu_read_numbers_(name, 0, &target->bytes, 1) == 1) {
        snprintf(name, sizeof name, "%smaps/map%u/offset", folder, map);
        (void)npuprof_npu_read_numbers_(name, 0, &target->before, 1);
        /* The kernel counts from the begin of the page. */
        target->bytes = npuprof_saturating_sub_(target->bytes, target->before);
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

NPUPROF_OWN_ static npuprof_result npuprof_npu_sysfs_target_(npuprof_npu *npu, npuprof_npu_target_ *target,
                                                const struct stat *info)
{
    char path[PATH_MAX];
    if (!realpath(npu->desc_.resource, path)) return NPUPROF_OK;
    if (S_ISCHR(info->st_mode)) {
        const npuprof_result result = npuprof_npu_uio_target_(npu, target, info->st_rdev, path);
        if (result != NPUPROF_OK) return result;
    }
    const char *slash = strrchr(path, '/');
    const long bar = slash ? npuprof_npu_bar_number_(slash + 1) : -1;
    if (bar < 0) return NPUPROF_OK;
    return npuprof_npu_pci_target_(npu, target, path, (size_t)(slash + 1 - path), bar);
}

#elif !defined(_WIN32)

NPUPROF_OWN_ static npuprof_result npuprof_npu_sysfs_target_(npuprof_npu *npu, npuprof_npu_target_ *target,
                                                const struct stat *info)
{
    (void)npu, (void)target, (void)info;
    return NPUPROF_OK;
}

#endif /* __linux__ */

#ifndef _WIN32
/* What desc.resource is. The target's file stays open unless that fails with fd < 0. */
NPUPROF_OWN_ static npuprof_result npuprof_npu_file_target_(npuprof_npu *npu, npuprof_npu_target_ *target)
{
    struct stat info;
    target->fd = npuprof_os_open_above_2_(npu->desc_.resource, O_RDONLY);
    if (target->fd < 0) return npuprof_npu_open_error_(errno);
    if (fstat(target->fd, &info) != 0 || (!S_ISREG(info.st_mode) && !S_ISCHR(info.st_mode)))
        return NPUPROF_ERR_NPU_MAP;
    if (S_ISREG(info.st_mode)) target->bytes = info.st_size > 0 ? (uint64_t)info.st_size : 0;
    return npuprof_npu_sysfs_target_(npu, target, &info);
}

#endif /* !_WIN32 */
/* ==== src/npu/map/vfio.h ============================================================= >>npu/map/vfio ==== */

/* Linux: a region of a VFIO device. The descriptor is the caller's and stays open. May not map anything.
   Other systems have no VFIO. */

#ifdef __linux__
#include <sys/ioctl.h>

/* Why by hand: <linux/vfio.h> is not everywhere, and these structures cannot change. */
typedef struct npuprof_npu_vfio_device_ {
    uint32_t argsz, flags, regions, interrupts, capabilities, padding;
} npuprof_npu_vfio_device_;
typedef struct npuprof_npu_vfio_region_ {
    uint32_t argsz, flags, index, capabilities;
    uint64_t size, offset;
} npuprof_npu_vfio_region_;

NPUPROF_OWN_ static npuprof_result npuprof_npu_ask_vfio_(int fd, unsigned index, npuprof_npu_vfio_region_ *region)
{
    memset(region, 0, sizeof *region);
    region->argsz = sizeof *region;
    region->index = index;
    if (ioctl(fd, _IO(';', 108), region) == 0) return region->size ? NPUPROF_OK : NPUPROF_ERR_NOT_FOUND;
    if (errno == ENODEV) return NPUPROF_ERR_NPU_REMOVED;
    return errno == EINVAL ? NPUPROF_ERR_NOT_FOUND : NPUPROF_ERR_NPU_MAP;
}

NPUPROF_OWN_ static npuprof_result npuprof_npu_vfio_target_(npuprof_npu *npu, npuprof_npu_target_ *target)
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
        const off_t at = (off_t)(space.offset + 0x10 + 4 * index);
        if (index < bars && pread(target->fd, &bar, 1, at) == 1 && bar & 1) return NPUPROF_ERR_NPU_IO_PORT;
    }
    target->origin = region.offset;
    target->bytes = region.size;
    return region.flags & can_mmap ? NPUPROF_OK : NPUPROF_ERR_NPU_MAP;
}

#elif !defined(_WIN32)

NPUPROF_OWN_ static npuprof_result npuprof_npu_vfio_target_(npuprof_npu *npu, npuprof_npu_target_ *target)
{
    (void)npu, (void)target;
    return NPUPROF_ERR_UNSUPPORTED;
}

#endif /* __linux__ */
/* ==== src/npu/map/guard.h =========================================================== >>npu/map/guard ==== */
#ifndef _WIN32
#include <signal.h>
#endif

/* desc.catch_sigbus: a table of the mappings that a SIGBUS may come from, and the handler that puts an empty
   page in place of one. May not know what the registers mean.

   npuprof_npu_guards_: written under npuprof_npu_guards_lock_, `bytes` and `gone` first, then `base` with
   release order. Handlers read it without the lock, `base` first, with acquire order.
   npuprof_npu_guards_used_, npuprof_npu_has_handler_, npuprof_npu_old_action_: under the lock. The handler
   reads npuprof_npu_old_action_, too; it is written before the handler is installed.
   Why a table and not a list: a handler walks it while other threads open and close devices. */

#ifndef _WIN32
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

/* Sets `gone`, then changes the mapping. Why no page of all ones: others may read it before it is filled. */
NPUPROF_API_ bool npuprof_npu_fault(const void *address)
{
    for (int i = 0; i < NPUPROF_NPU_GUARDS_; i++) {
        npuprof_npu_guard_ *guard = &npuprof_npu_guards_[i];
        const uintptr_t base = NPUPROF_LOAD_ACQUIRE_(&guard->base);
        if (!base || (uintptr_t)address - base >= guard->bytes) continue;
        const int error = errno;
        NPUPROF_STORE_RELEASE_(guard->gone, 1u);
        const int flags = MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED;
        const bool done = mmap((void *)base, guard->bytes, PROT_READ, flags, -1, 0) != MAP_FAILED;
        errno = error;
        return done;
    }
    return false;
}

NPUPROF_OWN_ static void npuprof_npu_on_sigbus_(int number, siginfo_t *info, void *context)
{
    const struct sigaction *old = &npuprof_npu_old_action_;
    if (info->si_code > 0 && npuprof_npu_fault(info->si_addr)) return;
    if (old->sa_flags & SA_SIGINFO) {
        old->sa_sigaction(number, info, context);
    } else if (old->sa_handler != SIG_DFL && old->sa_handler != SIG_IGN) {
        old->sa_handler(number);
    } else {                             /* back to the default action: the fault comes again */
        (void)sigaction(number, old, NULL);
        if (info->si_code <= 0) (void)raise(number);
    }
}

NPUPROF_OWN_ static void npuprof_npu_lock_guards_(void)
{
    uint32_t expected;
    do expected = 0; while (!NPUPROF_CAS_(&npuprof_npu_guards_lock_, &expected, 1u));
}

NPUPROF_OWN_ static void npuprof_npu_guard_map_(npuprof_npu *npu)
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

NPUPROF_OWN_ static void npuprof_npu_unguard_map_(npuprof_npu *npu)
{
    struct sigaction now;
    if (!npu->guard_) return;
    npuprof_npu_lock_guards_();
    NPUPROF_STORE_RELEASE_(&npuprof_npu_guards_[npu->guard_ - 1].base, (uintptr_t)0);
    npu->guard_ = 0;
    /* Why it looks first: a handler that was installed later calls ours, which then has to stay. */
    if (--npuprof_npu_guards_used_ == 0 && sigaction(SIGBUS, NULL, &now) == 0 && now.sa_flags & SA_SIGINFO &&
        now.sa_sigaction == npuprof_npu_on_sigbus_)
        npuprof_npu_has_handler_ = sigaction(SIGBUS, &npuprof_npu_old_action_, NULL) != 0;
    NPUPROF_STORE_RELEASE_(&npuprof_npu_guards_lock_, 0u);
}

#else /* _WIN32 */

NPUPROF_API_ bool npuprof_npu_fault(const void *address)
{
    (void)address;
    return false;
}

#endif /* !_WIN32 */
/* ==== src/npu/map/map.h =============================================================== >>npu/map/map ==== */

/* Maps the registers of a device read-only, for npuprof_npu_open(), and unmaps them. Owns bar_, map_,
   config_fd_ and what belongs to them (npuprof_npu in types.h): set by open and close, one thread. Windows
   maps nothing. May not know what the registers mean. */

#ifndef _WIN32
/* Maps `needed` bytes of a target, desc.resource_offset into it. */
NPUPROF_OWN_ static npuprof_result npuprof_npu_map_target_(npuprof_npu *npu, const npuprof_npu_target_ *target,
                                              size_t needed)
{
    const uint64_t page = (uint64_t)sysconf(_SC_PAGESIZE);
    const uint64_t first = target->before + npu->desc_.resource_offset;
    const uint64_t skip = target->at_begin ? first : first % page;
    const uint64_t at = target->origin + (first - skip);
    const size_t bytes = (size_t)skip + needed;
    void *map = MAP_FAILED;
    errno = EOVERFLOW;
    if ((uint64_t)(off_t)at == at) map = mmap(NULL, bytes, PROT_READ, MAP_SHARED, target->fd, (off_t)at);
    if (map == MAP_FAILED)
        return errno == EINVAL && target->owned ? NPUPROF_ERR_NPU_OWNED : npuprof_npu_map_error_(errno);
    npu->map_ = map;
    npu->map_bytes_ = bytes;
    npu->bar_ = (const volatile unsigned char *)map + skip;
    if (npu->desc_.catch_sigbus) npuprof_npu_guard_map_(npu);
    return NPUPROF_OK;
}

/* Maps desc.resource or the VFIO region. needed: the bytes that the registers and the ring reach to. */
NPUPROF_OWN_ static npuprof_result npuprof_npu_map_(npuprof_npu *npu, size_t needed)
{
    const npuprof_npu_desc *desc = &npu->desc_;
    npuprof_npu_target_ target = { -1, false, false, 0, 0, UINT64_MAX };
    const uint64_t offset = desc->resource_offset;
    npuprof_result result =
        desc->vfio ? npuprof_npu_vfio_target_(npu, &target) : npuprof_npu_file_target_(npu, &target);
    npu->config_file_ = npuprof_os_file_(npu->config_fd_ - 1);
    if (result == NPUPROF_OK &&
        (offset > SIZE_MAX / 4 || offset > target.bytes || target.bytes - offset < needed))
        result = NPUPROF_ERR_NPU_RANGE;
    if (result == NPUPROF_OK) result = npuprof_npu_pci_state_(npu);
    if (result == NPUPROF_OK) result = npuprof_npu_map_target_(npu, &target, needed);
    if (target.fd >= 0 && !desc->vfio) close(target.fd);
    return result;
}

NPUPROF_OWN_ static void npuprof_npu_unmap_(npuprof_npu *npu)
{
    npuprof_npu_unguard_map_(npu);
    if (npu->map_) munmap(npu->map_, npu->map_bytes_);
    if (npu->config_fd_ > 0 && !npu->desc_.vfio)
        npuprof_os_close_held_(npu->config_fd_ - 1, npu->config_file_);
    npu->map_ = NULL;
    npu->config_fd_ = 0;
}

#else /* _WIN32 */

NPUPROF_OWN_ static npuprof_result npuprof_npu_map_(npuprof_npu *npu, size_t needed)
{
    (void)npu, (void)needed;
    return NPUPROF_ERR_UNSUPPORTED;
}

NPUPROF_OWN_ static void npuprof_npu_unmap_(npuprof_npu *npu) { (void)npu; }

#endif /* !_WIN32 */

NPUPROF_BEGIN_C_
/* ==== src/npu/host_side.h =========================================================== >>npu/host_side ==== */

/* What the parts for both sides ask of a host; firmware_side.h defines the same functions for firmware. Here:
   the lock of a device, its records in the arena, its results. May not know how a counter is read.

   lock_: 0 = free, else the thread that holds it. It is taken by compare-and-swap and given back with release
   order, so what it guards (npuprof_npu in types.h) needs no atomics. queue_lock_ is the same for records. */

NPUPROF_OWN_ static inline uint64_t npuprof_npu_ticks_(void) { return npuprof_ticks_(); }

/* Whether device time comes from npuprof_npu_anchor() and causality: the counter is never read. */
NPUPROF_OWN_ static inline bool npuprof_npu_is_pushed_(const npuprof_npu *npu) { return npu->desc_.anchors_only; }

NPUPROF_OWN_ static inline uint64_t npuprof_npu_mul_div_(uint64_t a, uint64_t b, uint64_t c, bool up)
{
    return npuprof_mul_div_(a, b, c, up);
}

/* False: the caller is a signal handler that interrupted the holder, or the holder has not run for 5 seconds.
   Why it yields: a holder that was preempted may need this very CPU.
   Why it gives up: the holder may be a thread that a fork() left behind, or may itself wait, in a signal
   handler, for something that this thread holds. */
NPUPROF_OWN_ static bool npuprof_npu_lock_word_(const npuprof_npu *npu, uintptr_t *word)
{
    enum { spins = 1000, yields = 1000, seconds = 5 };
    const uintptr_t me = npuprof_slot_me_();
    uint64_t begin = 0;
    for (uint32_t i = 0;; i++) {
        uintptr_t owner = NPUPROF_LOAD_(word);
        if (owner == me) return false;
        if (owner == 0 && NPUPROF_CAS_(word, &owner, me)) return true;
        if (i < spins) continue;
        if (i == spins) begin = npuprof_ticks_();
        if (i >= spins + yields &&
            npuprof_saturating_sub_(npuprof_ticks_(), begin) >= seconds * npu->second_) return false;
        npuprof_os_yield_();
    }
}

NPUPROF_OWN_ static bool npuprof_npu_lock_(npuprof_npu *npu) { return npuprof_npu_lock_word_(npu, &npu->lock_); }

NPUPROF_OWN_ static void npuprof_npu_unlock_(npuprof_npu *npu) { NPUPROF_STORE_RELEASE_(&npu->lock_, (uintptr_t)0); }

/* The same for records. Who needs both locks takes this one first. */
NPUPROF_OWN_ static bool npuprof_npu_lock_queue_(npuprof_npu *npu)
{
    return npuprof_npu_lock_word_(npu, &npu->queue_lock_);
}

/* False: somebody holds it. */
NPUPROF_OWN_ static bool npuprof_npu_try_queue_(npuprof_npu *npu)
{
    uintptr_t nobody = 0;
    return NPUPROF_CAS_(&npu->queue_lock_, &nobody, npuprof_slot_me_());
}

NPUPROF_OWN_ static void npuprof_npu_unlock_queue_(npuprof_npu *npu)
{
    NPUPROF_STORE_RELEASE_(&npu->queue_lock_, (uintptr_t)0);
}

/* Stores `to` in a word that is `was`. False: it is not. */
NPUPROF_OWN_ static inline bool npuprof_npu_replace_word_(uint32_t *word, uint32_t was, uint32_t to)
{
    return NPUPROF_CAS_(word, &was, to);
}

NPUPROF_OWN_ static inline void npuprof_npu_count_load_(npuprof_npu *npu) { NPUPROF_ADD_(&npu->mmio_reads, 1u); }

/* Whether a fault took the mapping away. */
NPUPROF_OWN_ static inline bool npuprof_npu_is_gone_(const npuprof_npu *npu) { return NPUPROF_LOAD_(&npu->gone_) != 0; }

/* Adds to one of the device's tallies, NPUPROF_NOTE_*. */
NPUPROF_OWN_ static void npuprof_npu_note_(const npuprof_npu *npu, unsigned note, uint64_t add)
{
    if (npu->number_) npuprof_device_note_(npu->number_, note, add);
}

/* An epoch ends because the clock stood, or its rate changed, and nobody knows when. */
NPUPROF_OWN_ static void npuprof_npu_set_unsteady_(npuprof_npu *npu)
{
    NPUPROF_STORE_(&npu->is_unsteady_, true);
    npuprof_device_flag_(npu->number_, NPUPROF_DEVICE_UNSTEADY_);
}

/* Stores an anchor of this epoch in the arena. */
NPUPROF_OWN_ static npuprof_result npuprof_npu_store_anchor_(const npuprof_npu *npu, const npuprof_anchor_ *anchor)
{
    return npuprof_device_anchor_(npu->number_, npu->epoch_, anchor);
}

/* A result for the user: why a device is dead, where its PCI configuration space tells. */
NPUPROF_OWN_ static npuprof_result npuprof_npu_explain_result_(const npuprof_npu *npu, npuprof_result result)
{
    const npuprof_result state = result == NPUPROF_ERR_NPU_DEAD ? npuprof_npu_pci_state_(npu) : NPUPROF_OK;
    return state == NPUPROF_OK ? result : state;
}

/* A counter that cannot be: which of its members does not fit. */
NPUPROF_OWN_ static npuprof_result npuprof_npu_wrong_counter_(const char *why)
{
    return npuprof_os_explain_(NPUPROF_ERR_NPU_COUNTER, "NPUPROF_ERR_NPU_COUNTER: a counter's %s", why);
}

/* A counter that stands because of a requirement that does not hold: the result, and its sentence. */
NPUPROF_OWN_ static npuprof_result npuprof_npu_not_enabled_(const npuprof_npu_requirement *unmet, uint64_t word)
{
    unsigned lsb = 0;
    while (lsb < 63 && !(unmet->mask >> lsb & 1)) lsb++;
    return npuprof_os_explain_(NPUPROF_ERR_NPU_NOT_ENABLED,
                               "NPUPROF_ERR_NPU_NOT_ENABLED: the device's counter stands until %s is %llu, "
                               "and it is %llu", unmet->text, (unsigned long long)(unmet->value >> lsb),
                               (unsigned long long)((word & unmet->mask) >> lsb));
}

/* ---- The rate between two clock anchors, and what follows from it for a distance

   Notation: an anchor's device ticks were read between its two host stamps. Its middle is off by at most e,
   half of their distance. H, T: host and device ticks from one anchor to another. E: the sum of their e.
     R1  A counter shows whole ticks: if it counted n, between n - 1 and n + 1 passed.
     R2  (H - E) / (T + 1) <= average slope between the two <= (H + E) / (T - 1)                  by R1
     R3  If the slope stays within r of a centre, two slopes differ by at most w = 2 r / (1 - r) of either. So
         n device ticks near the two take
            min = (H - E) (n - 1) / (T + 1) (1 - w)   and   max = (H + E) (n + 1) / (T - 1) (1 + w) */

/* The host ticks that pass in some device ticks. */
typedef struct npuprof_npu_range_ { uint64_t min, max; } npuprof_npu_range_;

/* The host ticks in a distance of n device ticks, by the slope between two anchors (R2, R3). */
NPUPROF_OWN_ static npuprof_npu_range_ npuprof_npu_range_between_(const npuprof_npu *npu, const npuprof_anchor_ *a,
                                                     const npuprof_anchor_ *b, uint64_t n)
{
    const uint64_t ticks = npuprof_saturating_sub_(b->device_ticks, a->device_ticks);
    const uint64_t error = npuprof_anchor_error_(a) + npuprof_anchor_error_(b);
    const uint64_t host = npuprof_saturating_sub_(npuprof_anchor_middle_(b), npuprof_anchor_middle_(a));
    const uint64_t drift_ppb = 2000 * (uint64_t)npu->desc_.max_rate_ppm;
    npuprof_npu_range_ r;
    r.min = npuprof_mul_div_(npuprof_saturating_sub_(host, error), npuprof_saturating_sub_(n, 1),
                             npuprof_saturating_add_(ticks, 1), false);
    r.min = npuprof_saturating_sub_(r.min, npuprof_mul_div_(r.min, drift_ppb, 1000000000, true));
    r.max = npuprof_mul_div_(npuprof_saturating_add_(host, error), npuprof_saturating_add_(n, 1),
                             npuprof_saturating_sub_(ticks, 1), true);
    r.max = npuprof_saturating_add_(r.max, npuprof_mul_div_(r.max, drift_ppb, 1000000000, true));
    return r;
}

NPUPROF_OWN_ static bool npuprof_npu_ranges_apart_(npuprof_npu_range_ a, npuprof_npu_range_ b)
{
    return a.min > b.max || b.min > a.max;
}

/* The anchor from which the rate is measured, up to the last one: the oldest of those that do not contradict
   the last interval, nor does any anchor between them. There are two anchors at least. */
NPUPROF_OWN_ static const npuprof_anchor_ *npuprof_npu_rate_begin_(const npuprof_npu *npu)
{
    const npuprof_anchor_ *to = &npu->anchors_[npu->anchor_count_ - 1], *from = to - 1;
    const uint64_t ticks = to->device_ticks - from->device_ticks;
    const npuprof_npu_range_ newest = npuprof_npu_range_between_(npu, from, to, ticks);
    for (const npuprof_anchor_ *a = from; a > npu->anchors_; a--) {
        if (npuprof_npu_ranges_apart_(newest, npuprof_npu_range_between_(npu, a - 1, to, ticks))) break;
        from = a - 1;
    }
    return from;
}

/* ---- The best reads since the last anchor. Why two: one read bounds device time best from above, another
   one from below; the other reads in between say less than the two together. */

/* The host ticks from one device tick to another by the rate, rounded as its distance. */
NPUPROF_OWN_ static int64_t npuprof_npu_host_from_(const npuprof_npu *npu, uint64_t from, uint64_t to, bool up)
{
    const npuprof_anchor_ *const a = &npu->rate_from_, *const b = &npu->rate_to_;
    const uint64_t host = npuprof_anchor_middle_(b) - npuprof_anchor_middle_(a);
    const uint64_t ticks = b->device_ticks - a->device_ticks;
    const bool is_back = to < from;
    const uint64_t by = is_back ? from - to : to - from;
    const int64_t size = (int64_t)npuprof_mul_div_(by, host, ticks, up != is_back);
    return is_back ? -size : size;
}

/* Weighs a read against the two: is it before or behind where their rate leads to? Without a rate, the
   narrowest one is both. A wrong rate makes the choice worse, not the bound wrong. */
NPUPROF_OWN_ static void npuprof_npu_weigh_read_(npuprof_npu *npu, const npuprof_anchor_ *a)
{
    const npuprof_anchor_ *const up = &npu->best_upper_, *const low = &npu->best_lower_;
    if (!npu->has_best_) {
        npu->best_upper_ = npu->best_lower_ = *a;
        npu->has_best_ = true;
    } else if (npu->has_rate_) {
        const int64_t fast = npuprof_npu_host_from_(npu, up->device_ticks, a->device_ticks, false);
        const int64_t slow = npuprof_npu_host_from_(npu, low->device_ticks, a->device_ticks, true);
        if ((int64_t)(a->host_after - up->host_after) < fast) npu->best_upper_ = *a;
        if ((int64_t)(a->host_before - low->host_before) > slow) npu->best_lower_ = *a;
    } else if (npuprof_anchor_width_(a) <= npuprof_anchor_width_(up)) {
        npu->best_upper_ = npu->best_lower_ = *a;
    }
}

/* Takes the two, the earlier one first. False: there was no read. */
NPUPROF_OWN_ static bool npuprof_npu_best_reads_(npuprof_npu *npu, npuprof_anchor_ *first, npuprof_anchor_ *second)
{
    const bool is_upper = npu->best_upper_.device_ticks < npu->best_lower_.device_ticks;
    if (!npu->has_best_) return false;
    *first = is_upper ? npu->best_upper_ : npu->best_lower_;
    *second = is_upper ? npu->best_lower_ : npu->best_upper_;
    npu->has_best_ = false;
    return true;
}

/* Copies a string into a buffer, cut at a UTF-8 boundary. */
NPUPROF_OWN_ static void npuprof_npu_copy_text_(char *to, size_t capacity, const char *from)
{
    size_t n = 0;
    while (from && n < capacity - 1 && from[n]) n++;
    if (from && from[n]) while (n && ((unsigned char)from[n] & 0xC0) == 0x80) n--;
    for (size_t i = 0; i < n; i++) to[i] = from[i];
    to[n] = 0;
}

/* Whether a read lies outside of what the anchors predict: the rate has changed. The next anchors then come
   as quickly as after open. Why not within a millisecond of the last change: the device's clock may be worse
   than max_rate_ppm says, and so few reads behind a change prove no rate (E2 in clock/evidence.h). */
NPUPROF_OWN_ static bool npuprof_npu_rate_changed_(npuprof_npu *npu, const npuprof_anchor_ *sample)
{
    if (npu->anchor_count_ < 2 || !npu->has_rate_ || npu->coarse_rate_) return false;
    const npuprof_anchor_ *last = &npu->anchors_[npu->anchor_count_ - 1];
    const uint64_t min = npuprof_saturating_sub_(sample->host_before, last->host_after);
    const uint64_t max = npuprof_saturating_sub_(sample->host_after, last->host_before);
    if (npuprof_saturating_sub_(sample->host_before, npu->changed_) < npu->second_ / 1000) return false;
    const npuprof_npu_range_ r =
        npuprof_npu_range_between_(npu, &npu->rate_from_, &npu->rate_to_,
                                   npuprof_saturating_sub_(sample->device_ticks, last->device_ticks));
    if (r.max >= min && r.min <= max) return false;
    npu->first_anchor_ = npu->changed_ = sample->host_after;
    return true;
}

#else /* NPUPROF_FREESTANDING */

NPUPROF_BEGIN_C_
/* ==== src/npu/firmware_side.h =================================================== >>npu/firmware_side ==== */

/* What the parts for both sides ask of firmware; host_side.h defines the same functions for a host. Here the
   lock of a device, and its records as cells of the recorder's list. May not know how a counter is read.

   lock_: 0 = free, 1 = held. Nobody waits for it: what cannot have it does without. Interrupts are masked
   while it is taken, where the core has no compare-and-swap. */

NPUPROF_OWN_ static uint64_t npuprof_npu_ticks_(void) { return npuprof_fw_stamp_in_order_(npuprof_fw_arena_); }

/* Without NPUPROF_NPU_RECORDS npuprof_npu_open() refuses such a device. */
NPUPROF_OWN_ static inline bool npuprof_npu_is_pushed_(const npuprof_npu *npu)
{
#ifdef NPUPROF_NPU_RECORDS
    return npu->desc_.anchors_only;
#else
    NPUPROF_UNUSED_(npu);
    return false;
#endif
}

NPUPROF_OWN_ static uint64_t npuprof_npu_mul_div_(uint64_t a, uint64_t b, uint64_t c, bool up)
{
    return npuprof_mul_div_by_bits_(a, b, c, up);
}

/* False: a task, core or interrupt that this one met holds it. */
NPUPROF_OWN_ static bool npuprof_npu_lock_(npuprof_npu *npu)
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

NPUPROF_OWN_ static void npuprof_npu_unlock_(npuprof_npu *npu)
{
    NPUPROF_SIGNAL_FENCE_();
#if NPUPROF_MASKS_
    NPUPROF_STORE_(&npu->lock_, (uintptr_t)0);
#else
    NPUPROF_STORE_RELEASE_(&npu->lock_, (uintptr_t)0);
#endif
}

/* Stores `to` in a word that is `was`. False: it is not. */
NPUPROF_OWN_ static bool npuprof_npu_replace_word_(uint32_t *word, uint32_t was, uint32_t to)
{
#if NPUPROF_MASKS_
    const npuprof_os_mask_ before = npuprof_os_mask_interrupts_();
    const bool is = NPUPROF_LOAD_(word) == was;
    if (is) NPUPROF_STORE_(word, to);
    npuprof_os_unmask_interrupts_(before);
    return is;
#else
    return NPUPROF_CAS_(word, &was, to);
#endif
}

/* Why not atomic: who reads the device holds the lock. */
NPUPROF_OWN_ static inline void npuprof_npu_count_load_(npuprof_npu *npu) { npu->mmio_reads++; }

/* Firmware maps nothing, so nothing can be taken away. */
NPUPROF_OWN_ static inline bool npuprof_npu_is_gone_(const npuprof_npu *npu)
{
    NPUPROF_UNUSED_(npu);
    return false;
}

/* A record of the device. With the target's own JSON it bears the device's name, so a reader of that sees
   whose it is. */
NPUPROF_OWN_ static npuprof_token_ npuprof_npu_put_record_(const char *name, uint32_t kind, const uint64_t *values,
                                              npuprof_args args)
{
    const char *const texts[3] = { name, NULL, NULL };
    return npuprof_fw_put_named_(NPUPROF_FW_REF_OF_KIND_(kind), false, texts, values, args);
}
#ifdef NPUPROF_NO_JSON
#define NPUPROF_NPU_NAME_OF_(npu) NULL
#else
#define NPUPROF_NPU_NAME_OF_(npu) (npu)->device.name
#endif

/* Firmware keeps the narrowest bracket of an anchor, and no other read. */
NPUPROF_OWN_ static inline void npuprof_npu_weigh_read_(npuprof_npu *npu, const npuprof_anchor_ *a) { (void)npu, (void)a; }

NPUPROF_OWN_ static inline bool npuprof_npu_best_reads_(npuprof_npu *npu, npuprof_anchor_ *first, npuprof_anchor_ *second)
{
    (void)npu, (void)first, (void)second;
    return false;
}

/* A change of rate is left to the user, and to the host. */
NPUPROF_OWN_ static inline bool npuprof_npu_rate_changed_(npuprof_npu *npu, const npuprof_anchor_ *sample)
{
    (void)npu, (void)sample;
    return false;
}

NPUPROF_OWN_ static inline void npuprof_npu_set_unsteady_(npuprof_npu *npu) { (void)npu; }

/* Adds to one of the device's tallies, NPUPROF_NOTE_*. Wraps are not noted: the host sees them in the ticks.
   */
NPUPROF_OWN_ static void npuprof_npu_note_(const npuprof_npu *npu, unsigned note, uint64_t add)
{
    const uint64_t values[3] = { add, note, npu->number_ };
    if (!npu->number_ || note == NPUPROF_NOTE_WRAPS) return;
    (void)npuprof_npu_put_record_(NPUPROF_NPU_NAME_OF_(npu), NPUPROF_CELL_KIND_COUNT_, values, PROF_NO_ARGS);
}

/* Stores an anchor of this epoch in the arena. One whose width has more than 32 bits is left out: the stamps
   themselves tell the host more. A ring keeps the newest ones of a device, and lets the others age. Why four:
   two each of an epoch and of the one before it. */
NPUPROF_OWN_ static npuprof_result npuprof_npu_store_anchor_(npuprof_npu *npu, const npuprof_anchor_ *anchor)
{
    const uint64_t width = npuprof_anchor_width_(anchor);
    if (width > UINT32_MAX) return NPUPROF_OK;
    const uint64_t values[3] = { anchor->device_ticks, anchor->host_after,
                                 npu->number_ | (npu->epoch_ & 0xFFFF) << 8 | width << 32 };
    const npuprof_token_ token =
        npuprof_npu_put_record_(NPUPROF_NPU_NAME_OF_(npu), NPUPROF_CELL_KIND_ANCHOR_, values, PROF_NO_ARGS);
    npuprof_fw_keep_last_(npuprof_fw_arena_, npu->kept_, NPUPROF_NPU_KEPT_, token);
    return NPUPROF_OK;
}

NPUPROF_OWN_ static npuprof_result npuprof_npu_wrong_counter_(const char *why)
{
    NPUPROF_UNUSED_(why);
    return NPUPROF_ERR_NPU_COUNTER;
}

/* A result for the user. Firmware knows nothing more of it. */
NPUPROF_OWN_ static npuprof_result npuprof_npu_explain_result_(const npuprof_npu *npu, npuprof_result result)
{
    NPUPROF_UNUSED_(npu);
    return result;
}

/* A counter that stands because of a requirement that does not hold. */
NPUPROF_OWN_ static npuprof_result npuprof_npu_not_enabled_(const npuprof_npu_requirement *unmet, uint64_t word)
{
    NPUPROF_UNUSED_(unmet);
    NPUPROF_UNUSED_(word);
    return NPUPROF_ERR_NPU_NOT_ENABLED;
}

/* The anchor from which the rate is measured, up to the last one. Firmware has two. */
NPUPROF_OWN_ static const npuprof_anchor_ *npuprof_npu_rate_begin_(const npuprof_npu *npu)
{
    return &npu->anchors_[npu->anchor_count_ - 2];
}

#endif /* NPUPROF_FREESTANDING */

/* ==== src/npu/mmio.h ===================================================================== >>npu/mmio ==== */
#ifdef NPUPROF_FREESTANDING
#else
#endif

/* The only loads from a device: one register, and a counter with the host clock around it. Writes nothing to
   a device and owns no data. May not know what a counter's value means: clock.h decides that. */

NPUPROF_OWN_ static uint64_t npuprof_npu_mask_(unsigned bits)
{
    return bits >= 64 ? UINT64_MAX : ((uint64_t)1 << bits) - 1;
}

NPUPROF_OWN_ static uint64_t npuprof_npu_swap_bytes_(uint64_t value, unsigned bytes)
{
    uint64_t swapped = 0;
    for (unsigned i = 0; i < bytes; i++) swapped |= (value >> 8 * i & 0xFF) << 8 * (bytes - 1 - i);
    return swapped;
}

/* One load of exactly that width, from an address aligned to it. Later loads are not made earlier. */
NPUPROF_OWN_ static uint64_t npuprof_npu_load_word_(const volatile void *address, unsigned bytes, bool big_endian)
{
    uint64_t value;
    switch (bytes) {
#ifdef __AVR__                           /* Why: an atomic load is a function call there. */
    case 1: return *(const volatile uint8_t *)address;
    case 2: value = *(const volatile uint16_t *)address; break;
    case 4: value = *(const volatile uint32_t *)address; break;
#else
    case 1: return NPUPROF_LOAD_ACQUIRE_((const volatile uint8_t *)address);
    case 2: value = NPUPROF_LOAD_ACQUIRE_((const volatile uint16_t *)address); break;
    case 4: value = NPUPROF_LOAD_ACQUIRE_((const volatile uint32_t *)address); break;
#endif
    default:
#if UINTPTR_MAX > 0xFFFFFFFFu
        value = NPUPROF_LOAD_ACQUIRE_((const volatile uint64_t *)address);
#else   /* Why: an atomic load of 64 bits is a function call there, and may write. */
        value = *(const volatile uint64_t *)address;
#endif
        break;
    }
#if defined(__BYTE_ORDER__) && __BYTE_ORDER__ == __ORDER_BIG_ENDIAN__
    big_endian = !big_endian;
#endif
    return big_endian ? npuprof_npu_swap_bytes_(value, bytes) : value;
}

/* A register of the BAR. All ones where a fault took the mapping away. */
NPUPROF_OWN_ static uint64_t npuprof_npu_load_register_(npuprof_npu *npu, size_t offset, unsigned bytes, bool big_endian)
{
    npuprof_npu_count_load_(npu);
    const uint64_t value = npuprof_npu_load_word_(npu->bar_ + offset, bytes, big_endian);
    return npuprof_npu_is_gone_(npu) ? npuprof_npu_mask_(8 * bytes) : value;
}

/* Whether the device has power: asked before each group of loads. The caller touches nothing else of it if
   not. */
NPUPROF_OWN_ static bool npuprof_npu_is_on_(const npuprof_npu *npu)
{
    return !npu->desc_.is_on || npu->desc_.is_on(npu->desc_.user);
}

/* A bracket: the counter as the device shows it, and the host clock on both sides of the load.
   Why it bounds the time of the value:
     1. `before` is read first, then comes the fence, then the load. So the device answers after `before`.
     2. After the load comes the fence, then `after` is read. So the device has answered before `after`.
     3. By 1 and 2, the device showed `value` at some host time t:   before <= t <= after.
     4. A counter may show its value late, by up to lag_ns:          before - lag <= t <= after.
        `before` is moved back by the lag, so 3 stays true.
     5. The middle of the bracket differs from t by at most half the width, rounded up:
                                                                     |middle - t| <= error
        (npuprof_anchor_middle_, npuprof_anchor_error_).
   A slow load makes the bracket wider, never wrong. Split counters: the bracket is around the load of the low
   word. The high word belongs to it, because it was the same before and after (HI_LO_HI), or was frozen by
   that load (LO_LATCHES_HI). */
typedef struct npuprof_npu_raw_ {
    uint64_t value;                      /* counts up; desc.counter.bits valid bits, or those of the low word
                                            if only that was asked for */
    uint64_t before, after;              /* host ticks */
    bool ones, zeros;                    /* every bit loaded was 1, or 0 */
} npuprof_npu_raw_;

/* Bits of the low word. Why all of a register in firmware: each shift of 64 bits is a function there. */
NPUPROF_OWN_ static unsigned npuprof_npu_low_bits_(const npuprof_npu_counter *c)
{
    return NPUPROF_NPU_DIVIDES_ ? c->lo_bits : c->access;
}

NPUPROF_OWN_ static bool npuprof_npu_is_split_(const npuprof_npu_counter *c)
{
    return c->order != NPUPROF_NPU_SINGLE && c->bits > npuprof_npu_low_bits_(c);
}

/* Loads the low word, and the host clock around it. */
NPUPROF_OWN_ static uint64_t npuprof_npu_load_low_(npuprof_npu *npu, const npuprof_npu_counter *c, npuprof_npu_raw_ *raw)
{
    raw->before = npuprof_npu_ticks_();
    const uint64_t low = npuprof_npu_load_register_(npu, c->lo_offset, c->access / 8, c->big_endian);
    raw->after = npuprof_npu_ticks_();
    return low;
}

NPUPROF_OWN_ static uint64_t npuprof_npu_load_high_(npuprof_npu *npu, const npuprof_npu_counter *c, bool *ones)
{
    const uint64_t word = npuprof_npu_load_register_(npu, c->hi_offset, c->access / 8, c->big_endian);
    if (!NPUPROF_NPU_DIVIDES_) return word;
    *ones = word == npuprof_npu_mask_(c->access);
    return word >> c->hi_lsb & npuprof_npu_mask_(c->bits - c->lo_bits);
}

/* low_only: the low word alone. NPUPROF_OK; _NPU_TORN: the high word changed at each of 8 tries; _NPU_DEAD: a
   fault took the mapping away. */
NPUPROF_OWN_ static npuprof_result npuprof_npu_load_counter_(npuprof_npu *npu, const npuprof_npu_counter *c, bool low_only,
                                                npuprof_npu_raw_ *raw)
{
    enum { tries = 8 };
    uint64_t word = npuprof_npu_mask_(c->access), low, high = 0;
    npuprof_result result = NPUPROF_OK;
    bool ones = true;
    const unsigned low_bits = npuprof_npu_low_bits_(c);
    const bool split = npuprof_npu_is_split_(c) && !low_only;
    if (npu->desc_.read_ticks && c == &npu->desc_.counter) {
        word = npuprof_npu_mask_(c->bits);
        raw->before = npuprof_npu_ticks_();
        low = npu->desc_.read_ticks(npu->desc_.user) & word;
        raw->after = npuprof_npu_ticks_();
    } else if (!split || c->order == NPUPROF_NPU_LO_LATCHES_HI) {
        low = npuprof_npu_load_low_(npu, c, raw);
        if (split) high = npuprof_npu_load_high_(npu, c, &ones);
    } else {
        uint64_t again = npuprof_npu_load_high_(npu, c, &ones);
        int left = tries;
        do {
            high = again;
            low = npuprof_npu_load_low_(npu, c, raw);
            again = npuprof_npu_load_high_(npu, c, &ones);
        } while (again != high && --left);
        if (again != high) result = NPUPROF_ERR_NPU_TORN;
    }
    raw->ones = low == word && (NPUPROF_NPU_DIVIDES_ ? ones : !split || high == word);
    raw->zeros = low == 0 && high == 0;
    if (NPUPROF_NPU_DIVIDES_) low = low >> c->lo_lsb & npuprof_npu_mask_(c->lo_bits);
    raw->value = c->bits > low_bits ? low | high << (low_bits & 63) : low;
    if (c->counts_down) raw->value = ~raw->value;
    raw->value &= npuprof_npu_mask_(low_only && c->bits > low_bits ? low_bits : c->bits);
    raw->before = npuprof_saturating_sub_(raw->before, npu->lag_);
    return npuprof_npu_is_gone_(npu) ? NPUPROF_ERR_NPU_DEAD : result;
}
/* ==== src/npu/clock.h =================================================================== >>npu/clock ==== */

/* Device time: a raw value of the counter becomes ticks of 64 bits that never go back. Wraps are counted by
   the host clock. A reset begins a new epoch. Counters that are dead, torn or stand still are told apart.
   Owns last_, epoch_ and what belongs to them (npuprof_npu in types.h): the caller holds the device's lock.
   May not know what anchors are used for, or a kernel.

   A device with desc.is_on or requirements may stand, and be reset, between any two jobs. An epoch begins
   with a value that went back, or lies behind what the measured rate predicts. One that lies ahead begins
   none: a late counter caught up. Where there is no rate yet, see npuprof_npu_went_on_().
   Until a read has seen the counter move (idle_), nothing is predicted and no anchor is kept.

   How many wraps?
     1. Between the last read and this one lie at least host_min and at most host_max host ticks.
     2. By the rate and its error that is at least min and at most max device ticks (npuprof_npu_predict_).
     3. The values that fit the raw one are a period apart. So if max - min is less than a period, at most one
        of them lies in [min, max]. That one is taken.
     4. If max - min is more than half a period, the number of wraps is called ambiguous: a new epoch
        begins. */

/* Min and max device ticks in host_min to host_max host ticks. False: nothing is known of the rate. */
NPUPROF_OWN_ static bool npuprof_npu_predict_(const npuprof_npu *npu, uint64_t host_min, uint64_t host_max, uint64_t *min,
                                 uint64_t *max)
{
    if (npu->has_rate_) {
        const npuprof_anchor_ *a = &npu->rate_from_, *b = &npu->rate_to_;
        const uint64_t ticks = b->device_ticks - a->device_ticks;
        const uint64_t host = npuprof_anchor_middle_(b) - npuprof_anchor_middle_(a);
        const uint64_t error = npuprof_anchor_error_(a) + npuprof_anchor_error_(b);
        const uint64_t ppm = 100 + 2 * (uint64_t)npu->desc_.max_rate_ppm;
        *min = npuprof_npu_mul_div_(host_min, ticks - 1, npuprof_saturating_add_(host, error), false);
        *max = npuprof_npu_mul_div_(host_max, ticks + 1, npuprof_saturating_sub_(host, error), true);
        *min -= npuprof_npu_mul_div_(*min, npuprof_min_(ppm, 1000000), 1000000, true);
        *max = npuprof_saturating_add_(*max, npuprof_npu_mul_div_(*max, ppm, 1000000, true));
    } else if (npu->desc_.counter.hz) {
        *min = npuprof_npu_mul_div_(host_min, npu->desc_.counter.hz, npu->second_, false);
        *max = npuprof_npu_mul_div_(host_max, npu->desc_.counter.hz, npu->second_, true);
    } else {
        return false;
    }
    if (!npu->has_rate_ || npu->coarse_rate_) {
        *min /= 4;
        *max = npuprof_npu_mul_div_(*max, 4, 1, false);
    }
    *min = npuprof_saturating_sub_(*min, 2);
    *max = npuprof_saturating_add_(*max, 2);
    return true;
}

/* The same from the last read to a moment between two host times. */
NPUPROF_OWN_ static bool npuprof_npu_predict_since_(const npuprof_npu *npu, uint64_t before, uint64_t after, uint64_t *min,
                                       uint64_t *max)
{
    return npuprof_npu_predict_(npu, npuprof_saturating_sub_(before, npu->last_.host_after),
                                npuprof_saturating_sub_(after, npu->last_.host_before), min, max);
}

/* Whether the counter may stand, or begin again, while the host's clock goes on. */
NPUPROF_OWN_ static bool npuprof_npu_may_stand_(const npuprof_npu *npu)
{
    return npu->desc_.is_on || npu->desc_.requirement_count;
}

/* Without a measured rate: whether the counter went on for at most 2 ms, or by what counter.hz says, to an
   eighth of it. Why the lag: a rate is known only after some times that. */
NPUPROF_OWN_ static bool npuprof_npu_went_on_(const npuprof_npu *npu, uint64_t delta, uint64_t host_min, uint64_t host_max)
{
    const uint64_t hz = npu->desc_.counter.hz;
    if (host_max <= npuprof_saturating_add_(npu->second_ / 500, 8 * npu->lag_)) return true;
    if (!hz) return false;
    const uint64_t min = npuprof_npu_mul_div_(host_min, hz, npu->second_, false);
    const uint64_t max = npuprof_npu_mul_div_(host_max, hz, npu->second_, true);
    return delta >= npuprof_saturating_sub_(min - min / 8, 2) &&
           delta <= npuprof_saturating_add_(max, max / 8 + 2);
}

/* The most that a counter may show by now which was reset after the last read. Why the nominal rate, too: the
   measured one, with which it is `most`, is less if the counter stood. */
NPUPROF_OWN_ static inline uint64_t npuprof_npu_most_from_0_(const npuprof_npu *npu, const npuprof_npu_raw_ *raw,
                                                uint64_t most)
{
#ifndef NPUPROF_FREESTANDING
    const uint64_t host = npuprof_saturating_sub_(raw->after, npu->last_.host_before);
    return npuprof_max_(most, npuprof_npu_mul_div_(host, 4 * npu->desc_.counter.hz, npu->second_, true));
#else
    return (void)npu, (void)raw, most;
#endif
}

/* A value that is not as predicted, `delta` ticks ahead of the last one. A clock that was slowed, stopped for
   a while or sped up still goes forward; a reset goes back to something near 0. The two can be told apart
   only where no wrap is possible. True: it went forward. */
NPUPROF_OWN_ static bool npuprof_npu_went_forward_(const npuprof_npu *npu, const npuprof_npu_raw_ *raw, unsigned bits,
                                      uint64_t delta, uint64_t min, uint64_t max)
{
    const uint64_t mask = npuprof_npu_mask_(bits);
    uint64_t second_min, second_max;
    (void)npuprof_npu_predict_(npu, 0, npu->second_, &second_min, &second_max);
    if (!delta) return true;             /* it stands */
    if (delta > mask / 2 || max > mask / 16) return false;
    const uint64_t caught_up = npuprof_saturating_add_(npuprof_npu_mul_div_(max, 8, 1, false), second_max);
    if (npuprof_npu_may_stand_(npu))
        return delta > max && delta <= npuprof_npu_most_from_0_(npu, raw, caught_up) &&
               raw->value > (npu->last_.device_ticks & mask);
    const uint64_t host_min = npuprof_saturating_sub_(raw->before, npu->last_.host_after);
    const bool restarted = delta && delta < min / 2 && raw->value <= max && host_min > npu->second_ / 10;
    if (bits >= 48 && raw->value > npuprof_npu_most_from_0_(npu, raw, caught_up)) return true;
    /* Why: a rate measured over less than a second may be that of a counter that was late all the time. A
       wide counter that was reset goes back. */
    const bool doubtful = npu->has_rate_ && bits >= 48 &&
        (npu->coarse_rate_ || npu->rate_to_.host_after - npu->rate_from_.host_before < npu->second_);
    return !restarted && (delta <= caught_up || doubtful);
}

/* The extended value of a raw one of that many bits. NPUPROF_OK: as predicted, or forward by something that a
   late or changed clock explains. NPUPROF_ERR_NPU_AMBIGUOUS, _RESET: *ticks begins a new epoch. strict:
   NPUPROF_OK for nothing but what is predicted, else NPUPROF_ERR_NPU_AMBIGUOUS. */
NPUPROF_OWN_ static npuprof_result npuprof_npu_place_value_(const npuprof_npu *npu, const npuprof_npu_raw_ *raw,
                                               unsigned bits, bool strict, uint64_t *ticks)
{
    const npuprof_anchor_ *last = &npu->last_;
    const uint64_t mask = npuprof_npu_mask_(bits), delta = (raw->value - last->device_ticks) & mask;
    const uint64_t host_min = npuprof_saturating_sub_(raw->before, last->host_after);
    const uint64_t host_max = npuprof_saturating_sub_(raw->after, last->host_before);
    uint64_t min, max;
    *ticks = last->device_ticks + delta;
    if (npu->idle_ || !npuprof_npu_predict_(npu, host_min, host_max, &min, &max)) {
        if (strict) return NPUPROF_ERR_NPU_AMBIGUOUS;
        if (bits < 48 || delta <= mask / 2) return NPUPROF_OK;
        *ticks = raw->value;
        return NPUPROF_ERR_NPU_RESET;
    }
    if (delta && !npu->has_rate_ && npuprof_npu_may_stand_(npu) &&
        !npuprof_npu_went_on_(npu, delta, host_min, host_max)) {
        if (strict) return NPUPROF_ERR_NPU_AMBIGUOUS;
        *ticks = raw->value;
        return NPUPROF_ERR_NPU_RESET;
    }
    if (bits == 64) {
        if (delta >= min && delta <= max) {
            if (*ticks >= last->device_ticks) return NPUPROF_OK;
            /* All 64 bits have wrapped: there is nothing left to extend to. */
            return strict ? NPUPROF_ERR_NPU_AMBIGUOUS : NPUPROF_ERR_NPU_RESET;
        }
    } else {
        const uint64_t wraps = min > delta ? (min - delta + mask) >> bits : 0;
        const uint64_t placed = delta + (wraps << bits);
        const bool ambiguous = max - min > mask / 2;
        if (ambiguous || placed <= max) {
            *ticks = last->device_ticks + placed;
            return ambiguous ? NPUPROF_ERR_NPU_AMBIGUOUS : NPUPROF_OK;
        }
    }
    if (strict) return NPUPROF_ERR_NPU_AMBIGUOUS;
    if (npuprof_npu_went_forward_(npu, raw, bits, delta, min, max)) return NPUPROF_OK;
    *ticks = raw->value;
    return bits >= 48 && raw->value > last->device_ticks ? NPUPROF_ERR_NPU_AMBIGUOUS : NPUPROF_ERR_NPU_RESET;
}

/* Whether an anchor is later than the last one on both clocks: else the two would give no rate. Brackets that
   are told are wide; the two may overlap. */
NPUPROF_OWN_ static bool npuprof_npu_is_later_(const npuprof_npu *npu, const npuprof_anchor_ *anchor,
                                  const npuprof_anchor_ *last)
{
    if (anchor->device_ticks <= last->device_ticks) return false;
    if (!npuprof_npu_is_pushed_(npu)) return anchor->host_before > last->host_after;
    return anchor->host_before >= last->host_before && anchor->host_after >= last->host_after;
}

/* The best reads of an epoch that is over, and its last one, become its last anchors. Why: what was stamped
   since the anchor before would else lie behind the last one, where nothing bounds it. */
NPUPROF_OWN_ static void npuprof_npu_end_epoch_(npuprof_npu *npu)
{
    npuprof_anchor_ ends[3];
    unsigned count = npuprof_npu_best_reads_(npu, &ends[0], &ends[1]) ? 2 : 0;
    if (!npuprof_npu_is_pushed_(npu)) ends[count++] = npu->last_;
    if (!npu->anchor_count_ || npu->idle_) return;
    const npuprof_anchor_ *last = &npu->anchors_[npu->anchor_count_ - 1];
    for (unsigned i = 0; i < count; i++) {
        if (!npuprof_npu_is_later_(npu, &ends[i], last)) continue;
        (void)npuprof_npu_store_anchor_(npu, &ends[i]);
        last = &ends[i];
    }
}

#if !defined(NPUPROF_FREESTANDING) || defined(NPUPROF_NPU_RECORDS)
/* The most that the counter may have shown since the last read; UINT64_MAX: nobody can tell. Why the nominal
   rate, too: the measured one is less if the counter stood. */
NPUPROF_OWN_ static uint64_t npuprof_npu_most_since_(const npuprof_npu *npu)
{
    const uint64_t now = npuprof_npu_ticks_(), hz = npu->desc_.counter.hz;
    uint64_t min, max;
    if (!npuprof_npu_predict_since_(npu, now, now, &min, &max) || (npuprof_npu_may_stand_(npu) && !hz))
        return UINT64_MAX;
    const uint64_t host = npuprof_saturating_sub_(now, npu->last_.host_before);
    max = npuprof_max_(max, npuprof_npu_mul_div_(host, 2 * hz, npu->second_, true));
    return npuprof_saturating_add_(npu->last_.device_ticks, max);
}
#endif

NPUPROF_OWN_ static void npuprof_npu_new_epoch_(npuprof_npu *npu, npuprof_result why)
{
    npuprof_npu_end_epoch_(npu);
    const bool reset = why == NPUPROF_ERR_NPU_RESET;
    npu->old_epoch_ticks_ = npu->last_.device_ticks;
    npu->old_epoch_host_ = npu->last_.host_after;
#if !defined(NPUPROF_FREESTANDING) || defined(NPUPROF_NPU_RECORDS)
    npu->old_epoch_most_ = npuprof_npu_most_since_(npu);
#endif
    npu->epoch_++;
    npu->anchor_count_ = 0;
    npu->epoch_why_ = why;
    /* Why not of one that may stand: a wide guess would take a stand for a slow clock. */
    if (reset) npu->coarse_rate_ = npu->has_rate_ && !npuprof_npu_may_stand_(npu);
    npuprof_npu_note_(npu, reset ? NPUPROF_NOTE_RESETS : NPUPROF_NOTE_AMBIGUOUS, 1);
}

/* Whether a result leaves a device time that goes on, maybe in a new epoch. */
NPUPROF_OWN_ static bool npuprof_npu_time_goes_on_(npuprof_result result)
{
    return result == NPUPROF_OK || result == NPUPROF_ERR_NPU_RESET || result == NPUPROF_ERR_NPU_AMBIGUOUS;
}

/* All bits were 1, or all were 0: the time, or a device that does not answer. Loads again until that is
   certain. absurd: it cannot be the time unless the counter moves on. True: the device does not answer. */
NPUPROF_OWN_ static bool npuprof_npu_is_dead_(npuprof_npu *npu, npuprof_npu_raw_ *raw, bool absurd)
{
    const npuprof_npu_counter *c = &npu->desc_.counter;
    /* Bits above the counter's own were 1, too. */
    if (raw->ones && c->bits < c->access && !npu->desc_.read_ticks) return true;
    const uint64_t begin = raw->before;
    const uint64_t allowed = c->hz ? npuprof_min_(npuprof_npu_mul_div_(npu->second_, 4, c->hz, true),
                                                  npu->second_ / 100) : npu->second_ / 1000;
    for (uint32_t i = 0; i < (uint32_t)1 << 16; i++) {
        const bool ones = raw->ones;
        const npuprof_result result = npuprof_npu_load_counter_(npu, c, false, raw);
        if (result != NPUPROF_ERR_NPU_DEAD &&
            (result != NPUPROF_OK || !(ones ? raw->ones : raw->zeros))) return false;
        if (absurd || npuprof_saturating_sub_(raw->before, begin) > allowed) return true;
    }
    return false;
}

/* Where divisions are slow: finds out, from the rate between the last two anchors, by which power of two host
   ticks are to be multiplied to give about the device ticks, and up to how many host ticks that is enough to
   count no wrap. */
NPUPROF_OWN_ static void npuprof_npu_set_fast_(npuprof_npu *npu)
{
    const npuprof_npu_counter *c = &npu->desc_.counter;
    const uint64_t max = npuprof_npu_mask_(npuprof_npu_is_split_(c) ? npuprof_npu_low_bits_(c) : c->bits) / 8;
    const uint64_t ticks = npu->rate_to_.device_ticks - npu->rate_from_.device_ticks;
    uint64_t host = npuprof_anchor_middle_(&npu->rate_to_) - npuprof_anchor_middle_(&npu->rate_from_);
    int shift = 0;
    for (; host < ticks && shift < 30; shift++) host <<= 1;
    for (; host / 2 >= ticks && shift > -30; shift--) host /= 2;
    npu->fast_shift_ = shift;
    if (host < ticks) npu->fast_host_ticks_ = 0;
    else if (shift >= 0) npu->fast_host_ticks_ = max >> shift;
    else npu->fast_host_ticks_ = max > UINT64_MAX >> -shift ? UINT64_MAX : max << -shift;
}

NPUPROF_OWN_ static uint64_t npuprof_npu_shift_(uint64_t host, int shift)
{
    return shift >= 0 ? host << shift : host >> -shift;
}

/* The fast path of a read, without a division. False: it does not do; the last read is too long ago, or the
   counter went on at less than a quarter of the rate, or more than four times it. */
NPUPROF_OWN_ static bool npuprof_npu_read_fast_(npuprof_npu *npu)
{
    const npuprof_npu_counter *c = &npu->desc_.counter;
    const npuprof_anchor_ *last = &npu->last_;
    const bool split = npuprof_npu_is_split_(c);
    npuprof_npu_raw_ raw;
    if (!npu->has_last_ || !npu->has_rate_ || npu->coarse_rate_ ||
        npuprof_npu_ticks_() - last->host_before >= npu->fast_host_ticks_) return false;
    if (npuprof_npu_load_counter_(npu, c, split, &raw) != NPUPROF_OK || raw.ones || raw.zeros) return false;
    const unsigned bits = split ? npuprof_npu_low_bits_(c) : c->bits;
    const uint64_t delta = (raw.value - last->device_ticks) & npuprof_npu_mask_(bits);
    const uint64_t host_max = raw.after - last->host_before;
    const uint64_t host_min = npuprof_saturating_sub_(raw.before, last->host_after);
    const uint64_t min = npuprof_npu_shift_(host_min, npu->fast_shift_);
    const uint64_t max = npuprof_npu_shift_(host_max, npu->fast_shift_);
    if (host_max >= npu->fast_host_ticks_) return false;
    if (!delta || delta > 2 * max + 2 || delta + 2 < min / 4) return false;
    npu->last_.device_ticks += delta;
    npu->last_.host_before = raw.before;
    npu->last_.host_after = raw.after;
    return true;
}

/* Whether a value is ahead of the last one, but by less than predicted: the counter stood or was slowed, as
   far as anybody can tell. */
NPUPROF_OWN_ static inline bool npuprof_npu_fell_behind_(const npuprof_npu *npu, const npuprof_npu_raw_ *raw)
{
#ifndef NPUPROF_FREESTANDING
    const uint64_t mask = npuprof_npu_mask_(npu->desc_.counter.bits);
    const uint64_t delta = (raw->value - npu->last_.device_ticks) & mask;
    uint64_t min, max;
    return npu->has_last_ && !npuprof_npu_may_stand_(npu) &&
           npuprof_npu_predict_since_(npu, raw->before, raw->after, &min, &max) && delta < min;
#else
    return (void)npu, (void)raw, false;
#endif
}

/* Loads the low word of a split counter where that alone tells the time. False: it does not.
   Why only where it cannot have come round: the first rate may be that of a counter that stood and then
   caught up, many times the true one. */
NPUPROF_OWN_ static bool npuprof_npu_read_low_(npuprof_npu *npu, npuprof_npu_raw_ *raw, uint64_t *ticks)
{
    const npuprof_npu_counter *c = &npu->desc_.counter;
    uint64_t min, max;
    if (!npu->has_last_ || npu->idle_ || !npuprof_npu_is_split_(c)) return false;
    const uint64_t now = npuprof_npu_ticks_();
    if (!npuprof_npu_predict_since_(npu, now, now, &min, &max)) return false;
    return max < npuprof_npu_mask_(npuprof_npu_low_bits_(c)) / 2 &&
           npuprof_npu_load_counter_(npu, c, true, raw) == NPUPROF_OK &&
           npuprof_npu_place_value_(npu, raw, npuprof_npu_low_bits_(c), true, ticks) == NPUPROF_OK;
}

/* Loads the whole counter and extends it. Results as npuprof_npu_place_value_(), and _NPU_DEAD, _NPU_TORN. */
NPUPROF_OWN_ static npuprof_result npuprof_npu_read_whole_(npuprof_npu *npu, npuprof_npu_raw_ *raw, uint64_t *ticks)
{
    const npuprof_npu_counter *c = &npu->desc_.counter;
    const bool has_last = npu->has_last_, may_be_zero = npu->idle_ || npuprof_npu_may_stand_(npu);
    npuprof_result result = NPUPROF_OK;
    for (int i = 0; i < 2; i++) {        /* Why twice: another program's read may have moved a latch. */
        result = npuprof_npu_load_counter_(npu, c, false, raw);
        if (result != NPUPROF_OK) {
            const bool dead = result == NPUPROF_ERR_NPU_DEAD;
            npuprof_npu_note_(npu, dead ? NPUPROF_NOTE_DEAD_READS : NPUPROF_NOTE_TORN_READS, 1);
            return result;
        }
        const bool predicted =
            has_last && npuprof_npu_place_value_(npu, raw, c->bits, true, ticks) == NPUPROF_OK &&
            *ticks != npu->last_.device_ticks;
        const bool absurd =
            (has_last && npuprof_npu_place_value_(npu, raw, c->bits, false, ticks) != NPUPROF_OK) ||
            (raw->ones && c->bits >= 48 && !c->counts_down);
        const bool doubtful = raw->ones || (raw->zeros && !may_be_zero);
        if (doubtful && !predicted && npuprof_npu_is_dead_(npu, raw, absurd)) {
            npuprof_npu_note_(npu, NPUPROF_NOTE_DEAD_READS, 1);
            return NPUPROF_ERR_NPU_DEAD;
        }
        *ticks = raw->value;
        if (has_last) result = npuprof_npu_place_value_(npu, raw, c->bits, false, ticks);
        if (result == NPUPROF_OK) break;
    }
    return result;
}

/* The counter shows the value of the last read. NPUPROF_ERR_NPU_STOPPED if it should have moved for 100 ms.
   */
NPUPROF_OWN_ static npuprof_result npuprof_npu_stands_still_(const npuprof_npu *npu, const npuprof_npu_raw_ *raw)
{
    const uint64_t still = npuprof_saturating_sub_(raw->before, npu->last_.host_after);
    uint64_t min = 0, max;
    const bool known = npuprof_npu_predict_(npu, still, still, &min, &max);
    return still >= npu->second_ / 10 && (!known || min >= 16) ? NPUPROF_ERR_NPU_STOPPED : NPUPROF_OK;
}

/* Device time now where it cannot be read. NPUPROF_ERR_NPU_NO_ANCHOR: nobody can tell. */
NPUPROF_OWN_ static npuprof_result npuprof_npu_predict_now_(const npuprof_npu *npu, npuprof_anchor_ *sample)
{
    const uint64_t now = npuprof_npu_ticks_();
    uint64_t min, max;
    if (!npu->has_last_ || !npuprof_npu_predict_since_(npu, now, now, &min, &max))
        return NPUPROF_ERR_NPU_NO_ANCHOR;
    sample->device_ticks = npuprof_saturating_add_(npu->last_.device_ticks, min / 2 + max / 2);
    sample->host_before = sample->host_after = now;
    return NPUPROF_OK;
}

/* Reads the counter and moves last_. *sample: ticks and bracket. Results as npuprof_npu_read(), but for
   _BUSY. Where anchors are pushed there is nothing to read: the value is what they predict. */
NPUPROF_OWN_ static npuprof_result npuprof_npu_read_locked_(npuprof_npu *npu, npuprof_anchor_ *sample)
{
    const unsigned bits = npu->desc_.counter.bits;
    npuprof_npu_raw_ raw;
    npuprof_result result = NPUPROF_OK;
    uint64_t ticks = 0;
    *sample = npu->last_;
    if (npuprof_npu_is_pushed_(npu)) return npuprof_npu_predict_now_(npu, sample);
    if (!npuprof_npu_is_on_(npu)) return NPUPROF_ERR_NPU_OFF;
    if (!NPUPROF_NPU_DIVIDES_ && npuprof_npu_read_fast_(npu)) {
        *sample = npu->last_;
        return NPUPROF_OK;
    }
    if (!npuprof_npu_read_low_(npu, &raw, &ticks)) result = npuprof_npu_read_whole_(npu, &raw, &ticks);
    if (!npuprof_npu_time_goes_on_(result)) return result;
    if (result == NPUPROF_OK && npu->has_last_ && ticks == npu->last_.device_ticks) {
        sample->host_before = raw.before;
        sample->host_after = raw.after;
        return npuprof_npu_stands_still_(npu, &raw);
    }
    if (result != NPUPROF_OK) {
        if (npuprof_npu_fell_behind_(npu, &raw)) npuprof_npu_set_unsteady_(npu);
        npuprof_npu_new_epoch_(npu, result);
    } else if (npu->has_last_ && bits < 64) {
        const uint64_t wraps = (ticks >> bits) - (npu->last_.device_ticks >> bits);
        if (wraps) npuprof_npu_note_(npu, NPUPROF_NOTE_WRAPS, wraps);
    }
    if (npu->has_last_) npu->idle_ = false;
    npu->has_last_ = true;
    npu->last_.device_ticks = ticks;
    npu->last_.host_before = raw.before;
    npu->last_.host_after = raw.after;
    *sample = npu->last_;
    npuprof_npu_weigh_read_(npu, &npu->last_);
    return result;
}
/* ==== src/npu/requirements.h ===================================================== >>npu/requirements ==== */

/* Why a counter stands: the fields of registers that must have a value for it to run (desc.requirements).
   They are only read, and only when the counter stands: at open and where a result is explained. Also what
   open checks of them, and of any range of registers. Owns no data. */

/* Whether [offset, offset + bytes) is aligned to `align`; *end grows to the end of it. */
NPUPROF_OWN_ static bool npuprof_npu_cover_range_(size_t offset, size_t bytes, size_t align, size_t *end)
{
    if (offset % align || bytes > SIZE_MAX / 2 || offset > SIZE_MAX / 2) return false;
    if (offset + bytes > *end) *end = offset + bytes;
    return true;
}

/* Checks desc.requirements. *needed grows to the bytes of BAR that they reach. */
NPUPROF_OWN_ static npuprof_result npuprof_npu_check_requirements_(const npuprof_npu_desc *d, size_t *needed)
{
    for (unsigned i = 0; i < d->requirement_count; i++) {
        const npuprof_npu_requirement *r = d->requirements ? &d->requirements[i] : NULL;
        if (!r || !r->text)
            return NPUPROF_REFUSE_("npuprof_npu_open: desc.requirements, or the text of one, is NULL");
        const unsigned access = r->access ? r->access : 32;
        if (access != 32 && access != 64)
            return NPUPROF_REFUSE_("npuprof_npu_open: access of a requirement is not 32 or 64");
        if (!r->mask || r->value & ~r->mask || r->mask & ~npuprof_npu_mask_(access))
            return NPUPROF_REFUSE_("npuprof_npu_open: mask and value of a requirement can never agree");
        if (!npuprof_npu_cover_range_(r->offset, access / 8, access / 8, needed))
            return NPUPROF_ERR_NPU_RANGE;
    }
    return NPUPROF_OK;
}

/* The first requirement that does not hold; NULL: all hold, or nobody can tell. *word: what was read. */
NPUPROF_OWN_ static const npuprof_npu_requirement *npuprof_npu_find_unmet_(npuprof_npu *npu, uint64_t *word)
{
    const npuprof_npu_desc *d = &npu->desc_;
    if (!d->requirement_count || !npuprof_npu_is_on_(npu)) return NULL;
    for (unsigned i = 0; i < d->requirement_count; i++) {
        const npuprof_npu_requirement *r = &d->requirements[i];
        const unsigned bytes = r->access == 64 ? 8 : 4;
        *word = npuprof_npu_load_register_(npu, r->offset, bytes, d->counter.big_endian);
        if (*word == npuprof_npu_mask_(8 * bytes)) return NULL;  /* Why: it may be a device that is dead. */
        if ((*word & r->mask) != r->value) return r;
    }
    return NULL;
}

/* A result for the user: instead of a counter that stands the enable bit that is missing, instead of a dead
   device why it is dead, where that can be found out. */
NPUPROF_OWN_ static npuprof_result npuprof_npu_explain_(npuprof_npu *npu, npuprof_result result)
{
    uint64_t word = 0;
    if (result != NPUPROF_ERR_NPU_STOPPED) return npuprof_npu_explain_result_(npu, result);
    const npuprof_npu_requirement *unmet = npuprof_npu_find_unmet_(npu, &word);
    return unmet ? npuprof_npu_not_enabled_(unmet, word) : result;
}
/* ==== src/npu/anchors.h =============================================================== >>npu/anchors ==== */

/* Clock anchors: pairs of device time and host time, from which a reader maps device stamps to host stamps.
   Here they are taken, kept and renewed; clock/device_map.h interpolates between them and proves the error
   bound.
   Owns anchors_ and what belongs to them (npuprof_npu in types.h): under the device's lock, except
   renew_from_. May not know kernels and rings.

   How an anchor is taken:
     1. Read the counter desc.brackets times. Each read is a bracket (npuprof_npu_raw_ in mmio.h): the device
        showed device_ticks at some host time between host_before and host_after.
     2. Keep the narrowest bracket. All of them are true, so any choice is right; the narrowest says most.
        Hosted: all reads since the last anchor are weighed (host_side.h), and the best two of them are kept.
     3. But a value that has just changed is better than one that stood. Why: a counter that software moves
        may be late, but not at the moment it moves.
     4. Drop an anchor that is not later than the last one on both clocks: the two would give no rate.
   When: two at open, two where an epoch begins, then by age (npuprof_npu_anchor_interval_). */

/* Host ticks from the last anchor to the next: as old as the trace is, at least 1 ms, at most 250 ms or a
   2048th of the age. The second one follows after 0.1 ms. */
NPUPROF_OWN_ static uint64_t npuprof_npu_anchor_interval_(const npuprof_npu *npu)
{
    const uint64_t last = npu->anchors_[npu->anchor_count_ - 1].host_after;
    const uint64_t age = npuprof_saturating_sub_(last, npu->first_anchor_);
    const uint64_t part = NPUPROF_NPU_DIVIDES_ ? age / 2048 : age >> 11;
    if (npu->anchor_count_ == 1) return npu->second_ / 10000;
    return npuprof_max_(npuprof_min_(npuprof_max_(age, npu->second_ / 1000), npu->second_ / 4), part);
}

/* Takes the rate from the anchors, unless they are too close together to tell it. */
NPUPROF_OWN_ static void npuprof_npu_measure_rate_(npuprof_npu *npu)
{
    if (npu->anchor_count_ < 2) return;
    const npuprof_anchor_ *to = &npu->anchors_[npu->anchor_count_ - 1], *from = npuprof_npu_rate_begin_(npu);
    const uint64_t host = npuprof_anchor_middle_(to) - npuprof_anchor_middle_(from);
    if (host <= 4 * (npuprof_anchor_error_(from) + npuprof_anchor_error_(to))) return;
    if (to->device_ticks - from->device_ticks < 4) return;
    npu->rate_from_ = *from;
    npu->rate_to_ = *to;
    npu->has_rate_ = true;
    npu->coarse_rate_ = false;
    if (!NPUPROF_NPU_DIVIDES_) npuprof_npu_set_fast_(npu);
}

/* Keeps an anchor and stores it in the arena. One that is not later than the last is left out. runs: the
   counter runs now. Why no rate if not: it would be that of a clock that mostly stood. */
NPUPROF_OWN_ static npuprof_result npuprof_npu_put_anchor_(npuprof_npu *npu, const npuprof_anchor_ *anchor, bool runs)
{
    uint32_t n = npu->anchor_count_;
    const npuprof_anchor_ *last = n ? &npu->anchors_[n - 1] : NULL;
    if (npu->idle_) return NPUPROF_OK;
    if (last && !npuprof_npu_is_later_(npu, anchor, last)) return NPUPROF_OK;
    if (n == 0) npu->first_anchor_ = anchor->host_after;
    if (n == NPUPROF_NPU_ANCHORS_)
        for (n = 0; n < NPUPROF_NPU_ANCHORS_ - 1; n++) npu->anchors_[n] = npu->anchors_[n + 1];
    npu->anchors_[n] = *anchor;
    npu->anchor_count_ = n + 1;
    const uint64_t width = npuprof_anchor_width_(anchor);
    if (!npu->best_width_ || width < npu->best_width_) npu->best_width_ = width;
    if (runs) npuprof_npu_measure_rate_(npu);
    if (!NPUPROF_NPU_DIVIDES_) npu->anchor_interval_ = npuprof_npu_anchor_interval_(npu);
    return npuprof_npu_store_anchor_(npu, anchor);
}

NPUPROF_OWN_ static npuprof_result npuprof_npu_add_anchor_(npuprof_npu *npu, const npuprof_anchor_ *anchor)
{
    return npuprof_npu_put_anchor_(npu, anchor, true);
}

/* Keeps the best two reads since the last anchor, or the one that is given if there are none. The first
   anchor of an epoch is that alone. */
NPUPROF_OWN_ static npuprof_result npuprof_npu_keep_reads_(npuprof_npu *npu, const npuprof_anchor_ *else_this, bool runs)
{
    npuprof_anchor_ first, second;
    const bool alone = !npuprof_npu_best_reads_(npu, &first, &second) || !npu->anchor_count_;
    if (alone && !else_this) return NPUPROF_OK;
    if (alone) return npuprof_npu_put_anchor_(npu, else_this, runs);
    const npuprof_result result = npuprof_npu_put_anchor_(npu, &first, runs);
    const npuprof_result then = npuprof_npu_put_anchor_(npu, &second, runs);
    return result == NPUPROF_OK ? then : result;
}

/* Whether it is time for the next anchor. */
NPUPROF_OWN_ static bool npuprof_npu_anchor_is_due_(const npuprof_npu *npu, uint64_t now)
{
    const uint32_t n = npu->anchor_count_;
    if (n == 0 || (n == 1 && npuprof_npu_may_stand_(npu))) return true;
    const uint64_t age = npuprof_saturating_sub_(now, npu->anchors_[n - 1].host_after);
    return age >= (NPUPROF_NPU_DIVIDES_ ? npuprof_npu_anchor_interval_(npu) : npu->anchor_interval_);
}

/* The best of desc.brackets brackets. *fresh: its value had just changed. Results as
   npuprof_npu_read_locked_(). */
NPUPROF_OWN_ static npuprof_result npuprof_npu_best_bracket_(npuprof_npu *npu, npuprof_anchor_ *best, bool *fresh)
{
    npuprof_anchor_ sample, previous = npu->last_;
    npuprof_result result = NPUPROF_OK;
    bool has_best = false;
    const bool had_last = npu->has_last_;
    *best = previous;
    *fresh = false;
    for (unsigned i = 0; i < npu->desc_.brackets; i++) {
        const npuprof_result r = npuprof_npu_read_locked_(npu, &sample);
        if (r == NPUPROF_ERR_NPU_RESET || r == NPUPROF_ERR_NPU_AMBIGUOUS) {
            has_best = *fresh = false;
            result = r;
        } else if (r != NPUPROF_OK) {
            return r;
        }
        const bool moved = (had_last || i) && sample.device_ticks != previous.device_ticks;
        const bool narrower = npuprof_anchor_width_(&sample) < npuprof_anchor_width_(best);
        if (!has_best || (moved && !*fresh) || (moved == *fresh && narrower)) {
            *best = sample;
            has_best = true;
            *fresh = moved;
        }
        previous = sample;
    }
    return result;
}

/* Takes the brackets of one anchor and adds it. *stale: the counter stood still where it should have moved,
   and nothing was added. Under the lock. */
NPUPROF_OWN_ static npuprof_result npuprof_npu_take_brackets_(npuprof_npu *npu, bool *stale)
{
    npuprof_anchor_ best;
    bool fresh;
    const uint64_t begin = npuprof_npu_ticks_();
    const npuprof_result result = npuprof_npu_best_bracket_(npu, &best, &fresh);
    if (!npuprof_npu_time_goes_on_(result)) return result;
    const uint64_t host = npuprof_npu_ticks_() - begin;
    uint64_t min, max;
    const npuprof_anchor_ *last = npu->anchor_count_ ? &npu->anchors_[npu->anchor_count_ - 1] : NULL;
    *stale = !fresh && npuprof_npu_predict_(npu, host, host, &min, &max) && min >= 4;
    if (last && best.device_ticks <= last->device_ticks && best.host_before > last->host_after) *stale = true;
    if (*stale) return result;
    const npuprof_result stored = npuprof_npu_keep_reads_(npu, &best, true);
    return result == NPUPROF_OK ? stored : result;
}

/* Takes one anchor; waits for a counter that stands still, for a few of its ticks. *alone: it is the epoch's
   only one. */
NPUPROF_OWN_ static npuprof_result npuprof_npu_take_anchor_(npuprof_npu *npu, bool *alone)
{
    const uint64_t begin = npuprof_npu_ticks_(), hz = npu->desc_.counter.hz;
    const uint64_t patience =
        npuprof_max_(npu->second_ / 500, hz ? npuprof_npu_mul_div_(npu->second_, 4, hz, true) : 0);
    npuprof_result first = NPUPROF_OK;
    *alone = false;
    /* Why the first time without a look at the clock: this thread may have been off its CPU meanwhile. */
    for (uint32_t i = 0; i < 4096; i++) {
        bool stale = false;
        if (i && npuprof_saturating_sub_(npuprof_npu_ticks_(), begin) > patience) break;
        if (!npuprof_npu_lock_(npu)) return NPUPROF_ERR_NPU_BUSY;
        const npuprof_result result = npuprof_npu_take_brackets_(npu, &stale);
        *alone = npu->anchor_count_ == 1;
        npuprof_npu_unlock_(npu);
        if (first == NPUPROF_OK) first = result;
        if (!stale || !npuprof_npu_time_goes_on_(result)) return first;
    }
    /* Why: it may have run since the last anchor. What was read then is true, and shows that it stands. */
    if (!npuprof_npu_lock_(npu)) return NPUPROF_ERR_NPU_BUSY;
    (void)npuprof_npu_keep_reads_(npu, &npu->last_, false);
    npuprof_npu_unlock_(npu);
    return first == NPUPROF_OK ? NPUPROF_ERR_NPU_STOPPED : first;
}

/* The second anchor of an epoch contradicted the first one, or not, by what is known of the rate.
   Why not the rate any more after three in a row: a counter that moves does not stand, or begin anew, each
   time in the tenth of a millisecond in which it is looked at. */
NPUPROF_OWN_ static inline void npuprof_npu_doubt_rate_(npuprof_npu *npu, npuprof_result result)
{
#ifndef NPUPROF_FREESTANDING
    const bool contradicts = result == NPUPROF_ERR_NPU_RESET || result == NPUPROF_ERR_NPU_AMBIGUOUS;
    if (!npuprof_npu_lock_(npu)) return;
    npu->doubts_ = contradicts ? npu->doubts_ + 1 : 0;
    if (npu->doubts_ == 3) {
        if (!npu->has_rate_) npu->desc_.counter.hz = 0;
        npu->has_rate_ = false;
        npu->doubts_ = 0;
    }
    npuprof_npu_unlock_(npu);
#else
    (void)npu, (void)result;
#endif
}

/* The second anchor of an epoch comes soon after the first.
   Why: without a rate nobody can count the wraps of a long gap, and the read after it would begin an epoch of
   one anchor again. */
NPUPROF_OWN_ static void npuprof_npu_take_second_anchor_(npuprof_npu *npu)
{
    const uint64_t begin = npuprof_npu_ticks_(), hz = npu->desc_.counter.hz;
    const uint64_t ticks = hz ? npuprof_npu_mul_div_(npu->second_, 16, hz, true) : 0;
    const uint64_t pause = npuprof_max_(npu->second_ / 10000, npuprof_min_(ticks, npu->second_ / 500));
    bool alone;
    for (uint32_t i = 0; i < (uint32_t)1 << 16; i++)
        if (npuprof_saturating_sub_(npuprof_npu_ticks_(), begin) >= pause) break;
    npuprof_npu_doubt_rate_(npu, npuprof_npu_take_anchor_(npu, &alone));
}

/* The two anchors of a device that is being opened: no other thread has it yet. */
NPUPROF_OWN_ static npuprof_result npuprof_npu_take_first_anchors_(npuprof_npu *npu)
{
    bool stale = false;
    npuprof_result result = npuprof_npu_take_brackets_(npu, &stale);
    if (!npuprof_npu_time_goes_on_(result)) return result;
    if (stale && npu->anchor_count_ == 0) result = npuprof_npu_add_anchor_(npu, &npu->last_);
    if (result != NPUPROF_ERR_TABLE_FULL) npuprof_npu_take_second_anchor_(npu);
    return result == NPUPROF_ERR_TABLE_FULL ? result : NPUPROF_OK;
}

/* Reads the counter for the first time; `add` numbers the device. One that is off or whose counter stands is
   open all the same. NPUPROF_ERR_NPU_NOT_ENABLED: it stands because of a requirement. */
NPUPROF_OWN_ static npuprof_result npuprof_npu_begin_clock_(npuprof_npu *npu, npuprof_result (*add)(npuprof_npu *npu))
{
    npuprof_anchor_ sample;
    npuprof_result result = NPUPROF_OK;
    npu->idle_ = !npuprof_npu_is_pushed_(npu);
    if (npu->idle_) result = npuprof_npu_read_locked_(npu, &sample);
    const bool off = result == NPUPROF_ERR_NPU_OFF;
    if (result == NPUPROF_OK || off) result = add(npu);
    if (result == NPUPROF_OK && npu->idle_ && !off) result = npuprof_npu_take_first_anchors_(npu);
    if (result == NPUPROF_ERR_NPU_OFF) result = NPUPROF_OK;
    if (result != NPUPROF_OK || !npu->idle_ || off) return result;
    result = npuprof_npu_explain_(npu, NPUPROF_ERR_NPU_STOPPED);
    return result == NPUPROF_ERR_NPU_NOT_ENABLED ? result : NPUPROF_OK;
}

/* Where the counter is never read: what is known of it now becomes an anchor. closing: if that is the only
   one, a second one follows from the nominal rate, which may be wrong by a factor of 4: without it nothing
   could be mapped. Why so far ahead: two anchors may not overlap. */
NPUPROF_OWN_ static npuprof_result npuprof_npu_keep_pushed_(npuprof_npu *npu, bool closing)
{
    npuprof_result result = NPUPROF_ERR_NPU_NO_ANCHOR;
    if (!npuprof_npu_lock_(npu)) return NPUPROF_ERR_NPU_BUSY;
    const uint64_t hz = npu->desc_.counter.hz;
    if (npu->has_last_) result = npuprof_npu_keep_reads_(npu, NULL, true);
    if (closing && npu->anchor_count_ == 1 && hz) {
        npuprof_anchor_ later = npu->anchors_[0];
        const uint64_t host = npuprof_anchor_width_(&later) + npu->second_ / 1000;
        const uint64_t ticks = npuprof_npu_mul_div_(host, 4 * hz, npu->second_, true) + 4;
        later.device_ticks = npuprof_saturating_add_(later.device_ticks, ticks);
        later.host_before += npuprof_npu_mul_div_(ticks, npu->second_, 4 * hz, false);
        later.host_after += npuprof_npu_mul_div_(ticks, 4 * npu->second_, hz, true);
        result = npuprof_npu_add_anchor_(npu, &later);
    }
    npuprof_npu_unlock_(npu);
    return result;
}

NPUPROF_API_ npuprof_result npuprof_npu_sync(npuprof_npu *npu)
{
    bool alone;
    if (!npu->number_) return NPUPROF_ERR_NPU_NOT_OPEN;
    if (npuprof_npu_is_pushed_(npu)) return npuprof_npu_keep_pushed_(npu, false);
    const npuprof_result result = npuprof_npu_take_anchor_(npu, &alone);
    if (alone && npuprof_npu_time_goes_on_(result)) npuprof_npu_take_second_anchor_(npu);
    return npuprof_npu_explain_(npu, result);
}

/* Takes an anchor because one is due. On a counter that stands still that takes 2 ms, so the next one then
   waits for 64 times as long. Why: there may be a kernel every few microseconds, and each would ask for an
   anchor. */
NPUPROF_OWN_ static npuprof_result npuprof_npu_renew_anchor_(npuprof_npu *npu)
{
    const uint64_t begin = npuprof_npu_ticks_();
    if (begin < NPUPROF_LOAD_(&npu->renew_from_)) return NPUPROF_OK;
    const npuprof_result result = npuprof_npu_sync(npu);
    if (result != NPUPROF_ERR_NPU_STOPPED && result != NPUPROF_ERR_NPU_NOT_ENABLED &&
        result != NPUPROF_ERR_NPU_OFF) return result;
    const uint64_t end = npuprof_npu_ticks_();
    NPUPROF_STORE_(&npu->renew_from_, end + 64 * npuprof_saturating_sub_(end, begin));
    return NPUPROF_OK;
}

NPUPROF_API_ npuprof_result npuprof_npu_read(npuprof_npu *npu, uint64_t *ticks)
{
    npuprof_anchor_ sample;
    *ticks = 0;
    if (!npu->number_) return NPUPROF_ERR_NPU_NOT_OPEN;
    if (!npuprof_npu_lock_(npu)) return NPUPROF_ERR_NPU_BUSY;
    const npuprof_result result = npuprof_npu_read_locked_(npu, &sample);
    npuprof_npu_unlock_(npu);
    *ticks = sample.device_ticks;
    if (result != NPUPROF_OK && npuprof_npu_time_goes_on_(result)) (void)npuprof_npu_sync(npu);
    return npuprof_npu_explain_(npu, result);
}

/* raw, counting up, of that many bits, as the value nearest to now. */
NPUPROF_OWN_ static uint64_t npuprof_npu_extend_nearest_(uint64_t raw, unsigned bits, uint64_t now)
{
    const uint64_t mask = npuprof_npu_mask_(bits), ahead = (raw - now) & mask, back = (now - raw) & mask;
    if (bits >= 64) return raw;
    return ahead < back || back > now ? now + ahead : now - back;
}

NPUPROF_API_ uint64_t npuprof_npu_extend(npuprof_npu *npu, uint64_t raw)
{
    const npuprof_npu_counter *c = &npu->desc_.counter;
    uint64_t min, max, now;
    npuprof_anchor_ sample;
    if (!npu->number_) return raw;
    if (c->counts_down) raw = ~raw;
    raw &= npuprof_npu_mask_(c->bits);
    if (c->bits >= 64 || !npuprof_npu_lock_(npu)) return raw;
    const uint64_t host = npuprof_saturating_sub_(npuprof_npu_ticks_(), npu->last_.host_after);
    if (npuprof_npu_predict_(npu, host, host, &min, &max) && max - min <= npuprof_npu_mask_(c->bits) / 16) {
        now = npu->last_.device_ticks + min / 2 + max / 2;
    } else {
        (void)npuprof_npu_read_locked_(npu, &sample);
        now = npu->last_.device_ticks;
    }
    npuprof_npu_unlock_(npu);
    return npuprof_npu_extend_nearest_(raw, c->bits, now);
}
/* ==== src/npu/describe.h ============================================================= >>npu/describe ==== */

/* What a user's description of a device is checked for, on both sides, and its defaults. Works on
   npuprof_npu.desc_ while the device is being opened: one thread. May not know how a resource is mapped, or
   what is in a ring. */

/* Fills in a counter's defaults and checks it. *needed grows to the bytes of BAR that it reaches. */
NPUPROF_OWN_ static npuprof_result npuprof_npu_check_counter_(npuprof_npu_counter *c, size_t *needed)
{
    if (!c->bits) c->bits = 64;
    if (!c->access) c->access = 32;
    if (NPUPROF_NPU_DIVIDES_ && !c->lo_bits && c->lo_lsb < c->access)
        c->lo_bits = (uint8_t)(c->access - c->lo_lsb);
    const bool split = npuprof_npu_is_split_(c);
    const char *wrong = NULL;
    if (c->bits > 64) wrong = "bits is above 64";
    else if (c->access != 32 && c->access != 64) wrong = "access is not 32 or 64";
    else if (c->order < 0 || c->order >= NPUPROF_NPU_ORDER_COUNT_) wrong = "order is none of NPUPROF_NPU_*";
    else if (c->order == NPUPROF_NPU_SINGLE && c->bits > npuprof_npu_low_bits_(c))
        wrong = "order NPUPROF_NPU_SINGLE reads `access` bits, and bits is more; give access = 64";
    else if (split && c->hi_offset == c->lo_offset)
        wrong = "hi_offset equals lo_offset; give the register of the upper half, or for a counter of one "
                "register bits <= access and order NPUPROF_NPU_SINGLE";
    else if (NPUPROF_NPU_DIVIDES_ && (c->lo_lsb + c->lo_bits > c->access ||
                                      (split && c->hi_lsb + c->bits - c->lo_bits > c->access)))
        wrong = "lo_lsb, lo_bits or hi_lsb names bits outside of its register";
    else if (!NPUPROF_NPU_DIVIDES_ && (c->lo_lsb || c->lo_bits || c->hi_lsb))
        wrong = "lo_lsb, lo_bits and hi_lsb are for hosts; give read_ticks";
    if (wrong) return npuprof_npu_wrong_counter_(wrong);
    const size_t bytes = c->access / 8;
    if (!npuprof_npu_cover_range_(c->lo_offset, bytes, bytes, needed)) return NPUPROF_ERR_NPU_RANGE;
    if (split && !npuprof_npu_cover_range_(c->hi_offset, bytes, bytes, needed)) return NPUPROF_ERR_NPU_RANGE;
    return NPUPROF_OK;
}

/* Fills in the defaults of desc_ and of `device`, and checks all but ring and event counters. *needed grows
   to the bytes of BAR that the counter reaches. */
NPUPROF_OWN_ static npuprof_result npuprof_npu_check_desc_(npuprof_npu *npu, size_t *needed)
{
    npuprof_npu_desc *d = &npu->desc_;
    npu->device.name = d->name ? d->name : "npu";
    npu->device.wait = d->wait;
    npu->device.user = d->user;
    npu->device.wait_around = d->wait_around;
    const int bars = (d->bar != NULL) + (d->resource != NULL) + (d->vfio ? 1 : 0);
    const int clocks = (d->read_ticks != NULL) + (d->anchors_only ? 1 : 0);
    if (bars > 1 || clocks > 1 || bars + clocks == 0) return NPUPROF_ERR_NPU_SOURCE;
    if (!d->pe_count) d->pe_count = 1;
    if (!d->brackets) d->brackets = 8;
    if (!d->max_rate_ppm) d->max_rate_ppm = 2;
    const uint32_t rate_ppm = d->max_rate_ppm;   /* Why: an unsigned may have 16 bits. */
    if (rate_ppm > 500000) return NPUPROF_REFUSE_("npuprof_npu_open: desc.max_rate_ppm is above 500000");
    if (d->counter.hz > NPUPROF_MAX_HZ_) return NPUPROF_ERR_NPU_RATE;
    size_t none = 0;
    if (clocks) {                        /* all bits come at once, and no register holds them */
        d->counter.order = NPUPROF_NPU_SINGLE;
        d->counter.access = 64;
        d->counter.lo_offset = 0;
        d->counter.lo_lsb = d->counter.lo_bits = 0;
    }
    const npuprof_result result = npuprof_npu_check_counter_(&d->counter, clocks ? &none : needed);
    return result == NPUPROF_OK ? npuprof_npu_check_requirements_(d, needed) : result;
}

/* Whether there is a BAR, which holds registers. */
NPUPROF_OWN_ static bool npuprof_npu_has_bar_(const npuprof_npu_desc *d) { return d->bar || d->resource || d->vfio; }

/* What the widest register of counter and requirements needs. */
NPUPROF_OWN_ static size_t npuprof_npu_register_align_(const npuprof_npu_desc *d)
{
    size_t align = d->read_ticks || d->anchors_only ? 1 : d->counter.access / 8;
    for (unsigned i = 0; i < d->requirement_count; i++) {
        const size_t bytes = d->requirements[i].access == 64 ? 8 : 4;
        if (bytes > align) align = bytes;
    }
    return align;
}

/* Takes the caller's mapping for the BAR, of which something needs that alignment. */
NPUPROF_OWN_ static npuprof_result npuprof_npu_use_bar_(npuprof_npu *npu, size_t needed, size_t align)
{
    const npuprof_npu_desc *d = &npu->desc_;
    if (d->bar_bytes < needed || (uintptr_t)d->bar % align) return NPUPROF_ERR_NPU_RANGE;
    npu->bar_ = (const volatile unsigned char *)d->bar;
    return NPUPROF_OK;
}
/* ==== src/npu/sample.h ================================================================= >>npu/sample ==== */

/* The two reads of a sampled submission, and what they say together. The caller holds the device's lock. Owns
   nothing.

   Two ways to place such a span:
     by the device's clock   its stamps are device ticks, which the anchors map
     by_host                 its stamps are the middles of the two brackets. They are true whatever the
                             counter did in between; the ticks are an argument. For a device that may stand
                             (npuprof_npu_may_stand_), and for a block whose begin found a counter that stood
                             or had begun again: no anchor of its epoch is known there. */

/* Whether the newest read found the value of the one before, though the counter should have moved since.
   Such a read leaves last_ as it was. Every other one is last_ itself, or failed and is a copy of it: no
   time passed. */
NPUPROF_OWN_ static bool npuprof_npu_stood_(const npuprof_npu *npu, const npuprof_anchor_ *sample)
{
    uint64_t min, max;
    return sample->device_ticks == npu->last_.device_ticks &&
           npuprof_npu_predict_since_(npu, sample->host_before, 0, &min, &max) && min > 0;
}

NPUPROF_OWN_ static void npuprof_npu_sample_begin_(npuprof_npu_block_ *block)
{
    npuprof_npu *npu = block->npu;
    const bool may_stand = npuprof_npu_may_stand_(npu) || npu->idle_;
    const npuprof_result result = npuprof_npu_is_pushed_(npu) ? NPUPROF_ERR_NPU_NO_RING
                                                              : npuprof_npu_read_locked_(npu, &block->begin);
    const bool begins = result == NPUPROF_ERR_NPU_STOPPED || result == NPUPROF_ERR_NPU_RESET ||
                        result == NPUPROF_ERR_NPU_AMBIGUOUS;
    block->by_host = may_stand || begins || npuprof_npu_stood_(npu, &block->begin);
    block->result = begins ? NPUPROF_OK : result;
    block->epoch = npu->epoch_;
}

/* The end of a sampled submission. */
typedef struct npuprof_npu_end_state_ {
    npuprof_anchor_ read;
    npuprof_result result;               /* NPUPROF_OK: there is a device span */
    uint32_t epoch;
    uint64_t ticks;                      /* its length */
    bool renew;                          /* an anchor is to be taken after the host span */
    bool is_anchor;                      /* this read has a bracket that will do for the anchor that is due */
} npuprof_npu_end_state_;

/* Whether there is a device span to end->read, whose result was `read`. */
NPUPROF_OWN_ static npuprof_result npuprof_npu_judge_end_(const npuprof_npu_block_ *block, npuprof_result read,
                                             npuprof_npu_end_state_ *end)
{
    const npuprof_npu *npu = block->npu;
    const uint64_t mask = npuprof_npu_mask_(npu->desc_.counter.bits);
    uint64_t min, most = mask / 2;
    const uint64_t hz = npu->desc_.counter.hz;
    if (block->result != NPUPROF_OK) return block->result;
    end->ticks = end->read.device_ticks - block->begin.device_ticks;
    if (!block->by_host) return read == NPUPROF_OK && npu->epoch_ != block->epoch ? npu->epoch_why_ : read;
    if (!npuprof_npu_time_goes_on_(read) && read != NPUPROF_ERR_NPU_STOPPED) return read;
    end->ticks &= mask;
    if (!end->ticks) return NPUPROF_ERR_NPU_STOPPED;
    if (NPUPROF_NPU_DIVIDES_) {
        const uint64_t host = npuprof_saturating_sub_(end->read.host_after, block->begin.host_before);
        (void)npuprof_npu_predict_(npu, 0, host, &min, &most);
        /* Why the nominal rate, too: the measured one is less if the counter stood in between. */
        if (hz) most = npuprof_max_(most, npuprof_npu_mul_div_(host, 4 * hz, npu->second_, true));
    }
    /* Why RESET: a counter that seems to have run too fast has gone back. */
    return end->ticks <= npuprof_min_(most, mask / 2) ? NPUPROF_OK : NPUPROF_ERR_NPU_RESET;
}

/* Reads the counter at the end. */
NPUPROF_OWN_ static void npuprof_npu_sample_end_(const npuprof_npu_block_ *block, npuprof_npu_end_state_ *end)
{
    npuprof_npu *npu = block->npu;
    const npuprof_result read = npuprof_npu_read_locked_(npu, &end->read);
    end->result = npuprof_npu_judge_end_(block, read, end);
    end->epoch = npu->epoch_;
    /* Why none of a device that may stand: its spans are placed without them. */
    const bool anchors = npuprof_npu_time_goes_on_(read) && !npuprof_npu_may_stand_(npu);
    end->renew = anchors && (npu->anchor_count_ < 2 || npuprof_npu_rate_changed_(npu, &end->read));
    /* Why not a wide one: waiting for a better one is no worse. */
    end->is_anchor = anchors && read == NPUPROF_OK && !end->renew &&
                     npuprof_npu_anchor_is_due_(npu, end->read.host_after) &&
                     npuprof_anchor_width_(&end->read) <= 4 * npu->best_width_;
}

/* Nothing was read at the end: somebody holds the device. */
NPUPROF_OWN_ static void npuprof_npu_no_end_(npuprof_npu_end_state_ *end)
{
    end->result = NPUPROF_ERR_NPU_BUSY;
    end->epoch = 0;
    end->ticks = 0;
    end->renew = end->is_anchor = false;
}

/* The middles of the two brackets. Returns how far they may be off. */
NPUPROF_OWN_ static uint64_t npuprof_npu_sample_place_(const npuprof_npu_block_ *block, const npuprof_anchor_ *end,
                                          uint64_t *start_host, uint64_t *end_host)
{
    *start_host = npuprof_anchor_middle_(&block->begin);
    *end_host = npuprof_max_(npuprof_anchor_middle_(end), *start_host);
    return npuprof_max_(npuprof_anchor_error_(&block->begin), npuprof_anchor_error_(end)) + 1;
}

#if !defined(NPUPROF_FREESTANDING) || defined(NPUPROF_NPU_RECORDS)
/* Before a job goes to a device whose own records will show it: if the counter may stand, it is read, and an
   epoch begins where it stood or began anew. Why: a stamp from before the first read of an epoch may be of
   any epoch. */
NPUPROF_OWN_ static void npuprof_npu_look_(npuprof_npu *npu)
{
    npuprof_anchor_ sample;
    if (!npuprof_npu_may_stand_(npu) || npuprof_npu_is_pushed_(npu) || !npuprof_npu_lock_(npu)) return;
    const npuprof_result result = npuprof_npu_read_locked_(npu, &sample);
    const bool stood = result == NPUPROF_ERR_NPU_STOPPED || npuprof_npu_stood_(npu, &sample);
    if (stood && npu->anchor_count_) {
        npuprof_npu_new_epoch_(npu, NPUPROF_ERR_NPU_RESET);
        npu->last_ = sample;
    }
    if ((stood || npuprof_npu_time_goes_on_(result)) && npu->anchor_count_ == 0)
        (void)npuprof_npu_add_anchor_(npu, &sample);
    npuprof_npu_unlock_(npu);
}
#endif /* !NPUPROF_FREESTANDING || NPUPROF_NPU_RECORDS */
/* ==== src/npu/calls.h =================================================================== >>npu/calls ==== */

/* The table of open calls: those of npuprof_npu_begin() that no npuprof_npu_end() has ended. Owns calls_ and
   next_call_ (npuprof_npu in types.h). May not know what begins and ends.

   An entry's handle is its only shared word:
     0                      free
     NPUPROF_NPU_CALL_HELD_ somebody begins or ends it, and owns the rest of the entry
     a handle               open: number of the device << 24 | turn of the entry, 17 or 22 bits | entry
   Who turns 0 into HELD begins; who turns the handle into HELD ends. So of two that end one handle, one finds
   it gone, at whatever place the other was interrupted. Nobody waits.
   Why the device's number: a handle of another device, or of the same one before it was closed, is refused.
   Why a turn: a handle that was ended stays wrong for the next 131,071 calls in its entry (on firmware for
   four million). */

#if !defined(NPUPROF_FREESTANDING) || !defined(NPUPROF_NPU_RECORDS)
enum { NPUPROF_NPU_CALL_HELD_ = 1 };

/* A free entry, held, and the handle that it is to have. NULL: there is none. */
NPUPROF_OWN_ static npuprof_npu_call_ *npuprof_npu_take_call_(npuprof_npu *npu, uint32_t *handle)
{
    const uint32_t first = NPUPROF_LOAD_(&npu->next_call_);
    for (uint32_t i = 0; i < NPUPROF_NPU_CALLS_; i++) {
        const uint32_t at = (first + i) % NPUPROF_NPU_CALLS_;
        npuprof_npu_call_ *call = &npu->calls_[at];
        if (!npuprof_npu_replace_word_(&call->handle, 0, NPUPROF_NPU_CALL_HELD_)) continue;
        NPUPROF_STORE_(&npu->next_call_, at + 1);
        *handle = npu->number_ << 24 | (++call->turn * NPUPROF_NPU_CALLS_ & 0xFFFFFF) | at;
        return call;
    }
    return NULL;
}

/* The entry of an open handle, held. NULL: it is not open, or not of this device. */
NPUPROF_OWN_ static npuprof_npu_call_ *npuprof_npu_hold_call_(npuprof_npu *npu, uint32_t handle)
{
    if (handle >> 24 == 0 || handle >> 24 != npu->number_) return NULL;
    npuprof_npu_call_ *const call = &npu->calls_[handle % NPUPROF_NPU_CALLS_];
    return npuprof_npu_replace_word_(&call->handle, handle, NPUPROF_NPU_CALL_HELD_) ? call : NULL;
}

/* Opens a held entry under that handle, or frees it with handle 0. */
NPUPROF_OWN_ static void npuprof_npu_release_call_(npuprof_npu_call_ *call, uint32_t handle)
{
    (void)npuprof_npu_replace_word_(&call->handle, NPUPROF_NPU_CALL_HELD_, handle);
}
#endif /* !NPUPROF_FREESTANDING || !NPUPROF_NPU_RECORDS */

NPUPROF_API_ npuprof_result npuprof_npu_end(npuprof_npu *npu, uint32_t handle)
{
    return npuprof_npu_end_args(npu, handle, PROF_NO_ARGS);
}
/* ==== src/npu/ring_words.h ========================================================= >>npu/ring_words ==== */

/* A ring's description as words, for an image: firmware writes them, and the host reads its records by them.
   A member's number is its place in the list of its kind: append only. Owns no data. */

#define NPUPROF_NPU_RING_FIELDS_(X)                                                                        \
    X(start) X(end) X(duration) X(stamp) X(kind) X(sequence) X(clock_high) X(job) X(pe) X(op) X(status)    \
    X(execution) X(instruction) X(value) X(key[0]) X(key[1]) X(empty[0].field) X(empty[1].field)           \
    X(clock_when[0].field) X(clock_when[1].field) X(args[0].field) X(args[1].field) X(args[2].field)       \
    X(args[3].field)
#define NPUPROF_NPU_RING_NUMBERS_(X)                                                                       \
    X(entry_bytes) X(big_endian) X(sequence_first) X(all_are) X(job_scope) X(execution_op) X(pe_base)      \
    X(stamp_clock) X(stamp_unit_ns) X(scale_num) X(scale_den) X(stamp_offset) X(ascending) X(max_age_ms)   \
    X(empty[0].value) X(empty[1].value) X(clock_when[0].value) X(clock_when[1].value)
enum { NPUPROF_NPU_RING_NUMBERS_AT_ = 64 };      /* fields have the numbers below */

/* A field in 64 bits. Its second part must lie in the first 16 KiB of an entry. */
NPUPROF_OWN_ static inline uint64_t npuprof_npu_pack_field_(const npuprof_npu_field *f)
{
    return (uint64_t)f->offset | (uint64_t)(f->width_bytes & 15) << 16 | (uint64_t)(f->lsb & 63) << 20 |
           (uint64_t)(f->bits & 127) << 26 | (uint64_t)(f->hi_width_bytes & 15) << 33 |
           (uint64_t)(f->hi_lsb & 63) << 37 | (uint64_t)(f->hi_bits & 127) << 43 |
           (uint64_t)f->hi_offset << 50;
}

NPUPROF_OWN_ static inline void npuprof_npu_unpack_field_(npuprof_npu_field *f, uint64_t word)
{
    f->offset = (uint16_t)word;
    f->width_bytes = word >> 16 & 15;
    f->lsb = word >> 20 & 63;
    f->bits = word >> 26 & 127;
    f->hi_width_bytes = word >> 33 & 15;
    f->hi_lsb = word >> 37 & 63;
    f->hi_bits = word >> 43 & 127;
    f->hi_offset = (uint16_t)(word >> 50);
}

#ifndef NPUPROF_FREESTANDING
/* Sets the member of that number. One that this version does not know: nothing. */
NPUPROF_OWN_ static inline void npuprof_npu_set_ring_word_(npuprof_npu_ring *r, uint32_t which, uint64_t value)
{
    uint32_t n = 0;
#define NPUPROF_NPU_SET_FIELD_(member) if (which == n++) npuprof_npu_unpack_field_(&r->member, value);
    NPUPROF_NPU_RING_FIELDS_(NPUPROF_NPU_SET_FIELD_)
    n = NPUPROF_NPU_RING_NUMBERS_AT_;
#define NPUPROF_NPU_SET_NUMBER_(member) if (which == n++) r->member = (__typeof__(r->member))value;
    NPUPROF_NPU_RING_NUMBERS_(NPUPROF_NPU_SET_NUMBER_)
}
#endif

#ifndef NPUPROF_FREESTANDING

/* ==== src/npu/host/pushed.h ======================================================= >>npu/host/pushed ==== */

/* Clock anchors that nobody reads from a register: those the driver hands over, and those that follow from
   causality. Owns last_ of a device with desc.anchors_only (npuprof_npu in types.h): under the device's lock.
   May not know rings, or who decoded a record.

   Anchors are the best two of what was told since the one before, as they were told. Why: each is true by
   itself, and a reader that has all of them sees where the clock stood (clock/evidence.h).
   What device time is now follows from one bracket, last_: at the newest device tick that anybody has told
   of, the host clock was between host_before and host_after.
     1. A new bracket is true by itself: the driver's statement; or of a job, that it began after it was
        submitted, and ended before its record was seen.
     2. The older of the two is brought to the tick of the newer one: at least min and at most max host ticks
        pass in between (npuprof_npu_host_range_), by the rate between the anchors so far.
     3. Both are true of the same tick then, so their intersection is. It is at most as wide as either.
     4. If it is empty, the counter was reset or stood, or its rate changed: an epoch begins, with the new
        bracket, which the old one ends with, too, unless it goes back.
   Assumption beside those of clock/device_map.h: within an epoch the rate has one centre.
   Anchors are stored when one is due; of wide brackets only after a second. Why: a stamp is mapped by few
   anchors beside it, and narrower ones may follow. */

/* The host ticks that pass in n device ticks. Unknown: anything. */
NPUPROF_OWN_ static npuprof_npu_range_ npuprof_npu_host_range_(const npuprof_npu *npu, uint64_t n)
{
    const uint64_t hz = npu->desc_.counter.hz;
    npuprof_npu_range_ r = { 0, UINT64_MAX };
    if (n == 0) {
        r.max = 0;
    } else if (npu->has_rate_ && !npu->coarse_rate_) {
        r = npuprof_npu_range_between_(npu, &npu->rate_from_, &npu->rate_to_, n);
    } else if (hz) {
        r.min = npuprof_mul_div_(n - 1, npu->second_, 4 * hz, false);
        r.max = npuprof_mul_div_(n + 1, 4 * npu->second_, hz, true);
    }
    return r;
}

/* The bracket, so many device ticks later. */
NPUPROF_OWN_ static npuprof_anchor_ npuprof_npu_carry_(const npuprof_npu *npu, const npuprof_anchor_ *from, uint64_t ticks)
{
    const npuprof_npu_range_ r = npuprof_npu_host_range_(npu, ticks);
    npuprof_anchor_ a;
    a.device_ticks = from->device_ticks + ticks;
    a.host_before = npuprof_saturating_add_(from->host_before, r.min);
    a.host_after = npuprof_saturating_add_(from->host_after, r.max);
    return a;
}

/* An epoch ends with a bracket that contradicts it: the clock stood, or its rate changed, and nobody knows
   when. If that is a later tick, the bracket is the epoch's, too, and a reader finds the gap open. */
NPUPROF_OWN_ static void npuprof_npu_end_by_contradiction_(npuprof_npu *npu, const npuprof_anchor_ *given)
{
    npuprof_npu_set_unsteady_(npu);
    if (given->device_ticks <= npu->last_.device_ticks) return;
    (void)npuprof_npu_keep_reads_(npu, NULL, false);
    (void)npuprof_npu_put_anchor_(npu, given, false);
}

/* Something has contradicted hz: an epoch has begun, or a record fits no time. So often, and no two anchors
   of one epoch: not the clock contradicts hz, but hz the clock. Its rate is measured from then on. */
NPUPROF_OWN_ static void npuprof_npu_doubt_hz_(npuprof_npu *npu)
{
    if (!npu->has_rate_ && npu->desc_.counter.hz && ++npu->doubts_ == NPUPROF_NPU_DOUBTS_)
        npu->desc_.counter.hz = 0;
}

/* Takes a bracket whose ticks are extended. NPUPROF_ERR_NPU_RESET: it contradicts what is known. Under the
   lock. */
NPUPROF_OWN_ static npuprof_result npuprof_npu_narrow_(npuprof_npu *npu, const npuprof_anchor_ *given)
{
    npuprof_anchor_ *const last = &npu->last_, a = *given, b = *last;
    npuprof_result result = NPUPROF_OK;
    if (!npu->has_last_) {
        const uint64_t since = npuprof_saturating_sub_(a.host_after, npu->open_host_);
        uint64_t min, max;
        *last = a;
        npu->has_last_ = true;
        if (npu->epoch_ == 0 && npuprof_npu_predict_(npu, 0, since, &min, &max))
            npu->open_ticks_ = npuprof_saturating_sub_(a.device_ticks, max);
    } else {
        if (a.device_ticks < b.device_ticks) a = npuprof_npu_carry_(npu, &a, b.device_ticks - a.device_ticks);
        else b = npuprof_npu_carry_(npu, &b, a.device_ticks - b.device_ticks);
        a.host_before = npuprof_max_(a.host_before, b.host_before);
        a.host_after = npuprof_min_(a.host_after, b.host_after);
        if (a.host_before > a.host_after) {
            npuprof_npu_end_by_contradiction_(npu, given);
            npuprof_npu_new_epoch_(npu, NPUPROF_ERR_NPU_RESET);
            npuprof_npu_doubt_hz_(npu);
            result = NPUPROF_ERR_NPU_RESET;
            a = *given;
        }
        *last = a;
    }
    return result;
}

/* Weighs a bracket as it was told, and makes anchors of the best two, if one is due. */
NPUPROF_OWN_ static npuprof_result npuprof_npu_keep_told_(npuprof_npu *npu, const npuprof_anchor_ *told)
{
    npuprof_npu_weigh_read_(npu, told);
    if (!npuprof_npu_anchor_is_due_(npu, told->host_after)) return NPUPROF_OK;
    const uint64_t width = npuprof_min_(npuprof_anchor_width_(&npu->best_upper_),
                                        npuprof_anchor_width_(&npu->best_lower_));
    if (npu->has_rate_ && npu->anchor_count_ && width > 4 * npu->best_width_ &&
        told->host_after < npu->anchors_[npu->anchor_count_ - 1].host_after + npu->second_) return NPUPROF_OK;
    return npuprof_npu_keep_reads_(npu, told, true);
}

/* A job of a device whose counter nobody reads: it ran from job->device_ticks to `end` of that epoch, was
   submitted at or after host_before, and was over at host_after. unit: the counter may have shown so many
   ticks more than that when it began. False: it cannot have lasted that long, and says nothing. Nor does one
   of another epoch. */
NPUPROF_OWN_ static bool npuprof_npu_bracket_job_(npuprof_npu *npu, uint32_t epoch, const npuprof_anchor_ *job,
                                     uint64_t end, uint64_t unit)
{
    npuprof_anchor_ a = *job;
    if (!npuprof_npu_is_pushed_(npu) || !npuprof_npu_lock_(npu)) return true;
    const uint64_t least = npuprof_npu_host_range_(npu, npuprof_saturating_sub_(end, a.device_ticks)).min;
    a.host_before = npuprof_saturating_sub_(a.host_before, npuprof_npu_host_range_(npu, unit).max);
    a.host_after = npuprof_saturating_sub_(a.host_after, least);
    const bool good = a.device_ticks <= end && a.host_before <= a.host_after;
    if (!good) npuprof_npu_doubt_hz_(npu);
    if (good && epoch == npu->epoch_) {
        (void)npuprof_npu_narrow_(npu, &a);
        a.host_after = job->host_after;
        npuprof_npu_weigh_read_(npu, &a);
        a.device_ticks = end;
        (void)npuprof_npu_keep_told_(npu, &a);
    }
    npuprof_npu_unlock_(npu);
    if (!good || NPUPROF_LOAD_(&npu->is_causal_)) return good;
    NPUPROF_STORE_(&npu->is_causal_, true);
    npuprof_device_flag_(npu->number_, NPUPROF_DEVICE_CAUSAL_);
    return true;
}

/* A record of a device whose counter nobody reads fits no time between its submission and now. */
NPUPROF_OWN_ static void npuprof_npu_doubt_pushed_(npuprof_npu *npu)
{
    if (!npuprof_npu_is_pushed_(npu) || !npuprof_npu_lock_(npu)) return;
    npuprof_npu_doubt_hz_(npu);
    npuprof_npu_unlock_(npu);
}

/* The ticks of a raw value that the counter showed in a bracket after the last one. *result: _RESET,
   _AMBIGUOUS: it begins an epoch. */
NPUPROF_OWN_ static uint64_t npuprof_npu_place_pushed_(npuprof_npu *npu, const npuprof_npu_raw_ *raw,
                                          npuprof_result *result)
{
    const unsigned bits = npu->desc_.counter.bits;
    const uint64_t mask = npuprof_npu_mask_(bits), last = npu->last_.device_ticks;
    const uint64_t delta = (raw->value - last) & mask;
    uint64_t ticks = raw->value, min, max;
    *result = NPUPROF_OK;
    if (!npu->has_last_) return ticks;
    if (npuprof_npu_place_value_(npu, raw, bits, true, &ticks) == NPUPROF_OK) return ticks;
    const bool known = npuprof_npu_predict_since_(npu, raw->before, raw->after, &min, &max);
    if (!known && (bits < 48 || delta <= mask / 2)) return last + delta;
    const bool gap = known && bits < 64 && max - min > mask / 2;
    *result = gap ? NPUPROF_ERR_NPU_AMBIGUOUS : NPUPROF_ERR_NPU_RESET;
    return raw->value;
}

/* Whether such a value may have been shown before the last one, by so many ticks: the brackets overlap. */
NPUPROF_OWN_ static bool npuprof_npu_may_be_older_(const npuprof_npu *npu, const npuprof_npu_raw_ *raw, uint64_t behind)
{
    uint64_t min, max = npuprof_npu_mask_(npu->desc_.counter.bits) / 2;
    if (!npu->has_last_ || raw->before >= npu->last_.host_after) return false;
    (void)npuprof_npu_predict_(npu, 0, npu->last_.host_after - raw->before, &min, &max);
    return behind <= max && behind <= npu->last_.device_ticks;
}

/* The driver's anchor, under the lock. */
NPUPROF_OWN_ static npuprof_result npuprof_npu_take_pushed_(npuprof_npu *npu, const npuprof_npu_raw_ *raw)
{
    npuprof_anchor_ a;
    npuprof_result result;
    if (npu->has_last_ && raw->after < npu->last_.host_before) return NPUPROF_OK;
    a.device_ticks = npuprof_npu_place_pushed_(npu, raw, &result);
    a.host_before = raw->before;
    a.host_after = raw->after;
    npu->idle_ = false;
    const bool says_less = npu->has_last_ && raw->before < npu->last_.host_after &&
                           npuprof_anchor_width_(&a) > npuprof_anchor_width_(&npu->last_);
    const unsigned bits = npu->desc_.counter.bits;
    const uint64_t behind = (npu->last_.device_ticks - raw->value) & npuprof_npu_mask_(bits);
    if (result != NPUPROF_OK && npuprof_npu_may_be_older_(npu, raw, behind)) {
        if (!npuprof_npu_is_pushed_(npu)) return NPUPROF_OK;
        a.device_ticks = npu->last_.device_ticks - behind;
        result = NPUPROF_OK;
    }
    if (result != NPUPROF_OK) {
        npuprof_anchor_ later = a;
        const uint64_t ahead = (raw->value - npu->last_.device_ticks) & npuprof_npu_mask_(bits);
        later.device_ticks = npu->last_.device_ticks + ahead;
        /* Why not an ambiguous one: it may be whole periods later than that. */
        const bool goes_on = result == NPUPROF_ERR_NPU_RESET && ahead <= npuprof_npu_mask_(bits) / 2;
        if (goes_on && npuprof_npu_is_pushed_(npu)) npuprof_npu_end_by_contradiction_(npu, &later);
        npuprof_npu_new_epoch_(npu, result);
        npu->has_last_ = false;
        if (npuprof_npu_is_pushed_(npu)) npuprof_npu_doubt_hz_(npu);
    }
    if (npuprof_npu_is_pushed_(npu)) {
        const npuprof_result narrowed = npuprof_npu_narrow_(npu, &a);
        const npuprof_result kept = npuprof_npu_keep_told_(npu, &a);
        if (result == NPUPROF_OK) result = narrowed == NPUPROF_OK ? kept : narrowed;
        if (npu->doubts_ != NPUPROF_NPU_DOUBTS_) return result;
        npu->doubts_++;                  /* said once */
        return npuprof_npu_wrong_counter_("hz contradicts its anchors: its rate is measured now");
    } else if (result != NPUPROF_OK || !says_less) {
        npu->has_last_ = true;
        npu->last_ = a;
        (void)npuprof_npu_add_anchor_(npu, &a);
    }
    return result;
}

NPUPROF_API_ npuprof_result npuprof_npu_anchor(npuprof_npu *npu, uint64_t raw, int64_t host_before_ns,
                                               int64_t host_after_ns)
{
    npuprof_npu_raw_ read;
    uint64_t before_error, after_error;
    if (!npu->number_) return NPUPROF_ERR_NPU_NOT_OPEN;
    if (host_before_ns > host_after_ns)
        return NPUPROF_REFUSE_("npuprof_npu_anchor: host_before_ns is after host_after_ns");
    const npuprof_npu_counter *c = &npu->desc_.counter;
    const uint64_t now = npuprof_ticks_();
    read.value = (c->counts_down ? ~raw : raw) & npuprof_npu_mask_(c->bits);
    read.before = npuprof_ticks_at_ns_(host_before_ns, &before_error);
    read.after = npuprof_ticks_at_ns_(host_after_ns, &after_error);
    read.before = npuprof_saturating_sub_(read.before, npuprof_saturating_add_(before_error, npu->lag_));
    read.after = npuprof_saturating_add_(read.after, after_error);
    read.ones = read.zeros = false;
    if (read.before > now)
        return NPUPROF_REFUSE_("npuprof_npu_anchor: host_before_ns is in the future; it is a time of "
                               "npuprof_now_ns()");
    if (read.after > now) read.after = now;
    if (!npuprof_npu_lock_(npu)) return NPUPROF_ERR_NPU_BUSY;
    const npuprof_result result = npuprof_npu_take_pushed_(npu, &read);
    npuprof_npu_unlock_(npu);
    return result;
}
/* ==== src/npu/host/pmu.h ============================================================= >>npu/host/pmu ==== */

/* Event counters of a device (desc.pmu): loading them, their sums since open, their tracks. Owns pmu_
   (npuprof_npu in types.h): set by open, then written and read under the device's lock. May not know kernels
   and rings. */

/* Fills in the defaults of one and checks it. *needed grows to the bytes of BAR that it reaches. */
NPUPROF_OWN_ static npuprof_result npuprof_npu_check_event_(npuprof_npu_pmu *p, size_t *needed)
{
    size_t none = 0;
    if (!p->name) return NPUPROF_REFUSE_("npuprof_npu_open: name of an event counter is NULL");
    if (p->is_busy && p->is_idle)
        return NPUPROF_REFUSE_("npuprof_npu_open: an event counter is both is_busy and is_idle");
    if (!p->scale) p->scale = 1;
    if (p->scale > (uint64_t)1 << 32)
        return NPUPROF_REFUSE_("npuprof_npu_open: scale of an event counter is above 2^32");
    if (p->read) {                       /* the function gives all bits at once */
        p->counter.order = NPUPROF_NPU_SINGLE;
        p->counter.access = 64;
        p->counter.lo_offset = 0;
        p->counter.lo_lsb = p->counter.lo_bits = 0;
    }
    return npuprof_npu_check_counter_(&p->counter, p->read ? &none : needed);
}

/* Names the track of one: "npu0 macs", "npu0 read (bytes)". */
NPUPROF_OWN_ static void npuprof_npu_name_track_(const npuprof_npu *npu, npuprof_npu_pmu_state_ *p)
{
    const char *const parts[] = { npu->device.name, " ", p->is.name, p->is.unit ? " (" : "",
                                  p->is.unit ? p->is.unit : "", p->is.unit ? ")" : "" };
    size_t n = 0;
    for (size_t i = 0; i < sizeof parts / sizeof *parts; i++) {
        npuprof_npu_copy_text_(p->track + n, sizeof p->track - n, parts[i]);
        n += strlen(p->track + n);
    }
    p->site.kind = NPUPROF_KIND_COUNTER_UINT;
    p->site.name = p->track;
}

/* Fills in the counters' defaults, checks them and names their tracks. *needed grows to the bytes of BAR they
   reach. */
NPUPROF_OWN_ static npuprof_result npuprof_npu_check_pmu_(npuprof_npu *npu, size_t *needed)
{
    const npuprof_npu_desc *d = &npu->desc_;
    unsigned busy = 0;
    if (d->pmu_count > NPUPROF_NPU_PMU_)
        return NPUPROF_REFUSE_("npuprof_npu_open: desc.pmu_count is above 8");
    if (d->pmu_count && !d->pmu) return NPUPROF_REFUSE_("npuprof_npu_open: desc.pmu is NULL");
    for (unsigned i = 0; i < d->pmu_count; i++) {
        npuprof_npu_pmu_state_ *p = &npu->pmu_[i];
        p->is = d->pmu[i];
        const npuprof_result result = npuprof_npu_check_event_(&p->is, needed);
        if (result != NPUPROF_OK) return result;
        busy += p->is.is_busy || p->is.is_idle;
        npuprof_npu_name_track_(npu, p);
    }
    if (busy > 1)
        return NPUPROF_REFUSE_("npuprof_npu_open: more than one event counter is is_busy or is_idle");
    return NPUPROF_OK;
}

/* Loads all. Bit n of the result: value[n] is good. Under the lock. */
NPUPROF_OWN_ static uint32_t npuprof_npu_load_pmu_(npuprof_npu *npu, uint64_t *value)
{
    npuprof_npu_raw_ raw;
    uint32_t good = 0;
    if (!npu->desc_.pmu_count || !npuprof_npu_is_on_(npu)) return 0;
    for (unsigned i = 0; i < npu->desc_.pmu_count; i++) {
        const npuprof_npu_pmu *p = &npu->pmu_[i].is;
        if (p->read) {
            value[i] = 0;
            if (!p->read(npu->desc_.user, i, &value[i])) continue;
            if (p->counter.counts_down) value[i] = ~value[i];
            value[i] &= npuprof_npu_mask_(p->counter.bits);
        } else {
            if (npuprof_npu_load_counter_(npu, &p->counter, false, &raw) != NPUPROF_OK) continue;
            value[i] = raw.value;
        }
        good |= 1u << i;
    }
    return good;
}

/* What is known of the time since the load before. */
enum {
    NPUPROF_NPU_JOBS_RAN_ = 1,           /* a job has ended */
    NPUPROF_NPU_SAME_RUN_ = 2            /* nothing was reset meanwhile, although an epoch may have begun */
};

/* Adds what was loaded to the sums, and puts those in its place. Without SAME_RUN_ a step must lie in one
   epoch, and a device that may stand makes none: it was maybe off. Under the lock. */
NPUPROF_OWN_ static void npuprof_npu_add_pmu_(npuprof_npu *npu, uint32_t good, uint64_t *value, unsigned since)
{
    for (unsigned i = 0; i < npu->desc_.pmu_count; i++) {
        npuprof_npu_pmu_state_ *p = &npu->pmu_[i];
        if (!(good >> i & 1)) continue;
        const bool same = since & NPUPROF_NPU_SAME_RUN_ ||
                          (p->epoch == npu->epoch_ + 1 && !npuprof_npu_may_stand_(npu));
        uint64_t step = same ? (value[i] - p->raw) & npuprof_npu_mask_(p->is.counter.bits) : 0;
        if (p->is.restarts) step = since & NPUPROF_NPU_JOBS_RAN_ ? value[i] : 0;
        p->total += step * p->is.scale;
        p->epoch = npu->epoch_ + 1;
        p->raw = value[i];
        value[i] = p->total;
    }
}

/* The argument of a sampled span that lasted so many ticks, in which the sum of event counter i went from one
   value to another. */
NPUPROF_OWN_ static npuprof_arg npuprof_npu_pmu_arg_(const npuprof_npu *npu, unsigned i, uint64_t from, uint64_t to,
                                        uint64_t ticks)
{
    const npuprof_npu_pmu *p = &npu->pmu_[i].is;
    if (p->is_idle) return npuprof_uint_("busy_ticks", npuprof_saturating_sub_(ticks, to - from));
    return npuprof_uint_(p->is_busy ? "busy_ticks" : p->name, to - from);
}

/* Records the sums on their tracks. */
NPUPROF_OWN_ static void npuprof_npu_draw_pmu_(npuprof_npu *npu, uint32_t good, const uint64_t *total)
{
    for (unsigned i = 0; i < npu->desc_.pmu_count; i++)
        if (good >> i & 1) npuprof_event_now_(&npu->pmu_[i].site, total[i]);
}

/* Loads them because jobs have ended, and records the sums. */
NPUPROF_OWN_ static void npuprof_npu_sample_pmu_(npuprof_npu *npu)
{
    uint64_t pmu[NPUPROF_NPU_PMU_];
    if (!npu->desc_.pmu_count || !NPUPROF_OPEN_(1) || !npuprof_npu_lock_(npu)) return;
    const uint32_t good = npuprof_npu_load_pmu_(npu, pmu);
    npuprof_npu_add_pmu_(npu, good, pmu, NPUPROF_NPU_JOBS_RAN_);
    npuprof_npu_unlock_(npu);
    npuprof_npu_draw_pmu_(npu, good, pmu);
}
/* ==== src/npu/host/jobs.h =========================================================== >>npu/host/jobs ==== */

/* Submissions of a device whose records end them: who submitted what, until its completion record comes.
   May not know what is in a record, or when it is read.

   Owns jobs_ (npuprof_npu in types.h), one entry for each open submission, and used_, a bit for each entry:
     used_     Who sets a bit has that entry, which nobody else has; who clears it gives it back.
     state     A new submission turns FREE to HELD, and then to READY. Who changes or ends it turns READY to
               HELD, and then to OPEN or FREE. Only the thread that turned it to HELD writes the other words.
               It stores the next state with release order, after a few instructions.
     ticket    Number of the submission: the smaller one is older. Anybody may read it, to find out whether
               the entry is still the one he knows.
     numbered_ One row of bits for each hash of a number. Who holds an entry sets its bit in the row of its
               number, and clears it when that is over. A bit says that a look is worth it, no more.
     id, flags, stream
               Anybody may read them to pass over an entry, and looks again once he holds it.
   When all entries are taken, the oldest open submission gives its entry up and loses its arrow. What its
   record could be taken for is remembered in dropped_ and forgotten_: a record that may be a dropped one's is
   nobody's. */

enum {
    NPUPROF_NPU_JOB_FREE_ = 0, NPUPROF_NPU_JOB_OPEN_ = 1, NPUPROF_NPU_JOB_HELD_ = 2,
    NPUPROF_NPU_HAS_ID_ = 1,             /* flags: the command has a number */
    NPUPROF_NPU_IN_BLOCK_ = 2,           /* its block has not ended */
    NPUPROF_NPU_MUTED_ = 4,              /* not to be recorded */
    NPUPROF_NPU_HAS_ARROW_ = 8,          /* a record of it took the arrow */
    NPUPROF_NPU_LOOSE_ = 16,             /* numbered outside of a submission: when it was submitted, and on
                                            which stream, is not known */
    NPUPROF_NPU_OURS_ = 32,              /* its number is npuprof_npu_job()'s: no other one has it */
    NPUPROF_NPU_OVER_ = 64,              /* its record came, and its block has not ended */
    NPUPROF_NPU_OWNER_ = 128,            /* times the slot of the thread that submitted it */
    NPUPROF_NPU_SURE_BITS_ = 32,         /* numbers of that many bits are not used again */
    NPUPROF_NPU_ROWS_ = 64               /* of numbered_ */
};

/* ---- desc.cpu_ns */

enum { NPUPROF_NPU_USAGE_ARGS_ = 4 };

/* The calling thread submits: notes what it has used. Why the slot: it knows the system's number. */
NPUPROF_OWN_ static void npuprof_npu_note_usage_(npuprof_link_ *link)
{
    if (npuprof_os_usage_(link->used)) link->thread = NPUPROF_LOAD_(&npuprof_slot_mine_()->head.os_tid);
}

/* The end is noticed now: what the calling thread used since it submitted, as NPUPROF_NPU_USAGE_ARGS_
   arguments; only the first, when, if another one submitted. Returns how many. */
NPUPROF_OWN_ static size_t npuprof_npu_usage_args_(const npuprof_link_ *link, npuprof_arg *args)
{
    uint64_t used[3];
    const uint32_t me = NPUPROF_LOAD_(&npuprof_slot_mine_()->head.os_tid);
    args[0] = npuprof_int_("noticed_ns", npuprof_now_ns());
    if (!link->thread || link->thread != me || !npuprof_os_usage_(used)) return 1;
    args[1] = npuprof_uint_("wait_cpu_ns", used[0] - link->used[0]);
    args[2] = npuprof_uint_("wait_switches", used[1] - link->used[1]);
    args[3] = npuprof_uint_("wait_preempted", used[2] - link->used[2]);
    return NPUPROF_NPU_USAGE_ARGS_;
}

/* ---- Entries */

/* Holds an entry if it is in that state. Returns `state` if the caller holds it now, else the state it is in;
   HELD: its holder was interrupted. */
NPUPROF_OWN_ static uint32_t npuprof_npu_claim_job_(npuprof_npu_job_ *job, uint32_t state)
{
    for (int i = 0; i < 1000; i++) {
        uint32_t seen = NPUPROF_LOAD_(&job->state);
        if (seen == NPUPROF_NPU_JOB_HELD_) continue;
        if (seen != state || NPUPROF_CAS_(&job->state, &seen, (uint32_t)NPUPROF_NPU_JOB_HELD_)) return seen;
    }
    return NPUPROF_NPU_JOB_HELD_;
}

NPUPROF_OWN_ static bool npuprof_npu_hold_job_(npuprof_npu_job_ *job, uint32_t state)
{
    return npuprof_npu_claim_job_(job, state) == state;
}

/* Lets go of a held entry. FREE: it is given back. */
NPUPROF_OWN_ static void npuprof_npu_release_job_(npuprof_npu *npu, npuprof_npu_job_ *job, uint32_t state)
{
    const size_t at = (size_t)(job - npu->jobs_);
    NPUPROF_STORE_RELEASE_(&job->state, state);
    if (state != NPUPROF_NPU_JOB_FREE_) return;
    uint32_t used = NPUPROF_LOAD_(&npu->used_[at / 32]);
    while (!NPUPROF_CAS_(&npu->used_[at / 32], &used, used & ~((uint32_t)1 << at % 32))) {}
}

/* A walk over the entries whose bits are set: of used_, or of a row of numbered_. */
typedef struct npuprof_npu_walk_ {
    const uint32_t *next, *end;
    uint32_t left;                       /* bits of the 32 entries in front of `jobs` */
    npuprof_npu_job_ *jobs;
} npuprof_npu_walk_;

NPUPROF_OWN_ static npuprof_npu_walk_ npuprof_npu_walk_of_(const npuprof_npu *npu, const uint32_t *bits)
{
    const npuprof_npu_walk_ walk = { bits, bits + npu->desc_.job_count / 32, 0, npu->jobs_ };
    return walk;
}

/* The next entry; NULL: there is none. */
NPUPROF_OWN_ static inline npuprof_npu_job_ *npuprof_npu_next_job_(npuprof_npu_walk_ *walk)
{
    for (; !walk->left; walk->jobs += 32) {
        if (walk->next == walk->end) return NULL;
        walk->left = NPUPROF_LOAD_(walk->next++);
    }
    npuprof_npu_job_ *const job = walk->jobs - 32 + NPUPROF_LOW_ZEROS_(walk->left);
    walk->left &= walk->left - 1;
    return job;
}

/* Takes the first free entry, held. NULL: there is none. */
NPUPROF_OWN_ static npuprof_npu_job_ *npuprof_npu_take_free_job_(npuprof_npu *npu)
{
    for (uint32_t word = 0; word < npu->desc_.job_count / 32; word++) {
        uint32_t used = NPUPROF_LOAD_(&npu->used_[word]);
        while (~used) {
            const uint32_t bit = NPUPROF_LOW_ZEROS_(~used);
            if (!NPUPROF_CAS_(&npu->used_[word], &used, used | (uint32_t)1 << bit)) continue;
            NPUPROF_STORE_(&npu->jobs_[word * 32 + bit].state, (uint32_t)NPUPROF_NPU_JOB_HELD_);
            return &npu->jobs_[word * 32 + bit];
        }
    }
    return NULL;
}

/* The bits of the entries that may have a number, as in used_. */
NPUPROF_OWN_ static uint32_t *npuprof_npu_row_of_(const npuprof_npu *npu, uint64_t id)
{
    const uint64_t row = npuprof_hash_mix_fast_(id & npu->id_mask_) % NPUPROF_NPU_ROWS_;
    return npu->numbered_ + row * (npu->desc_.job_count / 32);
}

/* Puts a held entry into the row of its number, or takes it out. */
NPUPROF_OWN_ static void npuprof_npu_set_numbered_(npuprof_npu *npu, const npuprof_npu_job_ *job, bool in)
{
    const size_t at = (size_t)(job - npu->jobs_);
    const uint32_t bit = (uint32_t)1 << at % 32;
    NPUPROF_ADD_(&npuprof_npu_row_of_(npu, job->id)[at / 32], in ? bit : 0u - bit);
}

/* Whether submission a is older than b, by their tickets. */
NPUPROF_OWN_ static bool npuprof_npu_is_older_(uint32_t a, uint32_t b) { return (int32_t)(a - b) < 0; }

/* Numbers of so few bits that one is used again while its last record may not have come. */
NPUPROF_OWN_ static bool npuprof_npu_numbers_return_(const npuprof_npu *npu)
{
    return npu->id_mask_ >> (NPUPROF_NPU_SURE_BITS_ - 1) == 0;
}

/* Counts what a submission that gives up its place may be taken for. It is held. */
NPUPROF_OWN_ static void npuprof_npu_drop_job_(npuprof_npu *npu, const npuprof_npu_job_ *job)
{
    const uint32_t flags = job->flags;
    if (flags & NPUPROF_NPU_HAS_ID_) npuprof_npu_set_numbered_(npu, job, false);
    if (flags & NPUPROF_NPU_HAS_ID_ && npu->has_numbers_) {
        if (npuprof_npu_numbers_return_(npu))
            NPUPROF_ADD_(&npu->dropped_[(job->id & npu->id_mask_) % NPUPROF_NPU_DROPPED_], 1u);
    } else if (!(flags & (NPUPROF_NPU_MUTED_ | NPUPROF_NPU_OVER_)) &&
               !(npu->has_numbers_ && NPUPROF_LOAD_(&npu->uses_ids_))) {
        NPUPROF_ADD_(&npu->dropped_[job->stream % NPUPROF_NPU_DROPPED_], 1u);
        NPUPROF_ADD_(&npu->forgotten_, 1u);
    }
    if (!(flags & (NPUPROF_NPU_MUTED_ | NPUPROF_NPU_OVER_))) NPUPROF_ADD_(&npu->jobs_dropped_, 1u);
}

/* The oldest open submission that `fits`, if that is not NULL. NULL: there is none. */
NPUPROF_OWN_ static npuprof_npu_job_ *npuprof_npu_oldest_job_(const npuprof_npu *npu,
                                                 bool (*fits)(const npuprof_npu *npu,
                                                              const npuprof_npu_job_ *job, uint64_t value),
                                                 uint64_t value)
{
    npuprof_npu_job_ *oldest = NULL;
    uint32_t ticket = 0;
    npuprof_npu_walk_ walk = npuprof_npu_walk_of_(npu, npu->used_);
    for (npuprof_npu_job_ *job; (job = npuprof_npu_next_job_(&walk)) != NULL;) {
        const uint32_t its = NPUPROF_LOAD_ACQUIRE_(&job->ticket);
        if (NPUPROF_LOAD_ACQUIRE_(&job->state) != NPUPROF_NPU_JOB_OPEN_) continue;
        if ((fits && !fits(npu, job, value)) || (oldest && !npuprof_npu_is_older_(its, ticket))) continue;
        oldest = job;
        ticket = its;
    }
    return oldest;
}

/* The oldest open submission, held and dropped. NULL: the oldest four are held by others right now. */
NPUPROF_OWN_ static npuprof_npu_job_ *npuprof_npu_drop_oldest_job_(npuprof_npu *npu)
{
    for (int i = 0; i < 4; i++) {
        npuprof_npu_job_ *const oldest = npuprof_npu_oldest_job_(npu, NULL, 0);
        if (!oldest || !npuprof_npu_hold_job_(oldest, NPUPROF_NPU_JOB_OPEN_)) continue;
        npuprof_npu_drop_job_(npu, oldest);
        return oldest;
    }
    return NULL;
}

/* The entry of a new submission, held. NULL: all are held by others right now. */
NPUPROF_OWN_ static npuprof_npu_job_ *npuprof_npu_new_job_(npuprof_npu *npu, uint32_t flags, uint64_t stream,
                                              const npuprof_link_ *link)
{
    npuprof_npu_job_ *job = npuprof_npu_take_free_job_(npu);
    if (!job) job = npuprof_npu_drop_oldest_job_(npu);
    if (!job) {
        NPUPROF_ADD_(&npu->jobs_dropped_, 1u);
        return NULL;
    }
    NPUPROF_STORE_(&job->flags, flags | link->slot * NPUPROF_NPU_OWNER_);
    NPUPROF_STORE_RELEASE_(&job->ticket, NPUPROF_ADD_SEQ_(&npu->tickets_, 1u));
    NPUPROF_STORE_(&job->id, (uint64_t)0);
    NPUPROF_STORE_(&job->stream, stream);
    job->records = 0;
    NPUPROF_STORE_(&job->epoch, NPUPROF_LOAD_(&npu->epoch_));
    job->link = *link;
    job->name[0] = 0;
    return job;
}

/* Whether an entry with these flags is a submission of this thread whose block has not ended. */
NPUPROF_OWN_ static bool npuprof_npu_is_my_block_(uint32_t flags, const npuprof_link_ *here)
{
    return flags / NPUPROF_NPU_OWNER_ == here->slot &&
           flags & (NPUPROF_NPU_IN_BLOCK_ | NPUPROF_NPU_OVER_) &&
           !(flags & (NPUPROF_NPU_MUTED_ | NPUPROF_NPU_LOOSE_));
}

/* The newest submission that this thread began and nobody ended, held: of the block that it is in, or of a
   npuprof_npu_begin(). Its record may have come. NULL: there is none that is recorded, or it is held. */
NPUPROF_OWN_ static npuprof_npu_job_ *npuprof_npu_find_my_job_(npuprof_npu *npu, const npuprof_link_ *here)
{
    npuprof_npu_job_ *newest = NULL;
    uint32_t ticket = 0;
    if (!here->slot) return NULL;
    npuprof_npu_walk_ walk = npuprof_npu_walk_of_(npu, npu->used_);
    for (npuprof_npu_job_ *job; (job = npuprof_npu_next_job_(&walk)) != NULL;) {
        const uint32_t its = NPUPROF_LOAD_(&job->ticket);
        if (!npuprof_npu_is_my_block_(NPUPROF_LOAD_(&job->flags), here)) continue;
        if (NPUPROF_LOAD_(&job->state) == NPUPROF_NPU_JOB_FREE_) continue;
        if (newest && npuprof_npu_is_older_(its, ticket)) continue;
        newest = job;
        ticket = its;
    }
    if (!newest || !npuprof_npu_hold_job_(newest, NPUPROF_NPU_JOB_OPEN_)) return NULL;
    if (npuprof_npu_is_my_block_(newest->flags, here) && newest->ticket == ticket) return newest;
    npuprof_npu_release_job_(npu, newest, NPUPROF_NPU_JOB_OPEN_);
    return NULL;
}

/* Gives a number, with the flag `ours` or 0, to a command of this submission, which is held, or NULL: it is
   outside a recorded one, and `here` is where. Releases it. */
NPUPROF_OWN_ static void npuprof_npu_give_id_(npuprof_npu *npu, npuprof_npu_job_ *job, const npuprof_link_ *here,
                                 uint64_t id, uint32_t ours)
{
    uint32_t none = 0;
    const bool first = NPUPROF_CAS_(&npu->uses_ids_, &none, 1u);
    /* Its record, which came before any number, was matched by order. */
    if (first && job && job->flags & NPUPROF_NPU_OVER_) {
        npuprof_npu_release_job_(npu, job, NPUPROF_NPU_JOB_OPEN_);
        return;
    }
    /* the second is one more command of it */
    if (!job || job->flags & (NPUPROF_NPU_HAS_ID_ | NPUPROF_NPU_OVER_)) {
        npuprof_link_ link = *here;
        uint64_t stream = 0;
        char name[NPUPROF_NPU_NAME_] = "";
        uint32_t flags = 0;
        if (job) {
            link = job->link;
            stream = job->stream;
            memcpy(name, job->name, sizeof name);
            npuprof_npu_release_job_(npu, job, NPUPROF_NPU_JOB_OPEN_);
        } else {
            flags = here->ticks ? NPUPROF_NPU_LOOSE_ : NPUPROF_NPU_LOOSE_ | NPUPROF_NPU_MUTED_;
        }
        job = npuprof_npu_new_job_(npu, flags, stream, &link);
        if (!job) return;
        memcpy(job->name, name, sizeof name);
    }
    NPUPROF_STORE_(&job->id, id);
    npuprof_npu_set_numbered_(npu, job, true);
    NPUPROF_STORE_(&job->flags, job->flags | NPUPROF_NPU_HAS_ID_ | ours);
    npuprof_npu_release_job_(npu, job, NPUPROF_NPU_JOB_OPEN_);
}

/* Gives a number to the command being submitted. */
NPUPROF_OWN_ static void npuprof_npu_number_job_(npuprof_npu *npu, uint64_t id, uint32_t ours)
{
    if (!npu->number_ || !npu->has_submissions_) return;
    const npuprof_link_ here = npuprof_link_here_();
    npuprof_npu_give_id_(npu, npuprof_npu_find_my_job_(npu, &here), &here, id, ours);
}

/* The same for the submission of that ticket, whose entry is jobs_[at]. False: it is over, or it is held. */
NPUPROF_OWN_ static bool npuprof_npu_number_ticket_(npuprof_npu *npu, uint32_t at, uint32_t ticket, uint64_t id)
{
    npuprof_npu_job_ *job = &npu->jobs_[at];
    if (!npuprof_npu_hold_job_(job, NPUPROF_NPU_JOB_OPEN_)) return false;
    const bool mine = job->ticket == ticket;
    if (mine) npuprof_npu_give_id_(npu, job, &job->link, id, 0);
    else npuprof_npu_release_job_(npu, job, NPUPROF_NPU_JOB_OPEN_);
    return mine;
}

/* Whether an open submission has that number. */
NPUPROF_OWN_ static bool npuprof_npu_is_number_taken_(const npuprof_npu *npu, uint64_t id)
{
    npuprof_npu_walk_ walk = npuprof_npu_walk_of_(npu, npuprof_npu_row_of_(npu, id));
    for (npuprof_npu_job_ *job; (job = npuprof_npu_next_job_(&walk)) != NULL;)
        if (NPUPROF_LOAD_(&job->flags) & NPUPROF_NPU_HAS_ID_ &&
            ((NPUPROF_LOAD_(&job->id) ^ id) & npu->id_mask_) == 0) return true;
    return false;
}

NPUPROF_API_ uint32_t npuprof_npu_job(npuprof_npu *npu)
{
    uint32_t id;
    const uint64_t mask = npu->number_ ? npu->id_mask_ : UINT64_MAX;
    /* Why at most that often: if all of them are taken, the oldest submission's record comes first. */
    unsigned left = npu->number_ && mask <= 0xFFFF ? npu->desc_.job_count : 0;
    do id = NPUPROF_ADD_(&npu->ids_, 1u) + 1u;
    while (!(id & mask) || (left && left-- && npuprof_npu_is_number_taken_(npu, id)));
    npuprof_npu_number_job_(npu, id, NPUPROF_NPU_OURS_);
    return id;
}

NPUPROF_API_ void npuprof_npu_set_job(npuprof_npu *npu, uint64_t id)
{
    npuprof_npu_number_job_(npu, id, 0);
}

NPUPROF_API_ void npuprof_npu_set_job_records(npuprof_npu *npu, unsigned n)
{
    if (!npu->number_ || !npu->has_submissions_) return;
    const npuprof_link_ here = npuprof_link_here_();
    npuprof_npu_job_ *const job = npuprof_npu_find_my_job_(npu, &here);
    if (!job) return;
    job->records = n;
    npuprof_npu_release_job_(npu, job, NPUPROF_NPU_JOB_OPEN_);
}

/* The block that a submission was made in ends. The submission is over, too, if its record came already, or
   if the driver numbers its commands and submitted none here. True: it is the first that ends without a
   number. Records that came inside need not wait for one. */
NPUPROF_OWN_ static bool npuprof_npu_end_block_of_job_(npuprof_npu *npu, uint32_t at, uint32_t ticket)
{
    npuprof_npu_job_ *job = &npu->jobs_[at];
    uint32_t none = 0;
    if (NPUPROF_LOAD_(&job->ticket) != ticket || !npuprof_npu_hold_job_(job, NPUPROF_NPU_JOB_OPEN_))
        return false;
    const bool mine = job->ticket == ticket;
    const uint32_t flags = job->flags;
    const bool over = mine && !(flags & NPUPROF_NPU_HAS_ID_) &&
                      (!(flags & NPUPROF_NPU_IN_BLOCK_) || NPUPROF_LOAD_(&npu->uses_ids_));
    if (mine) NPUPROF_STORE_(&job->flags, flags & ~(uint32_t)NPUPROF_NPU_IN_BLOCK_);
    npuprof_npu_release_job_(npu, job, over ? NPUPROF_NPU_JOB_FREE_ : NPUPROF_NPU_JOB_OPEN_);
    return !NPUPROF_LOAD_(&npu->uses_ids_) && NPUPROF_CAS_(&npu->ended_unnumbered_, &none, 1u);
}
/* ==== src/npu/host/draw.h =========================================================== >>npu/host/draw ==== */

/* Draws what a device did, whoever decoded it: a ring's records, those that were fed, those by hand. Its
   times are extended already. Owns counts_ (npuprof_npu in types.h), under the queue lock. May not know where
   a record came from. */

/* Arguments that a drawing may have beside those of its record. */
enum { NPUPROF_NPU_OWN_ARGS_ = 2, NPUPROF_NPU_LIST_ = NPUPROF_DEVICE_KEYS_,
       NPUPROF_NPU_ROOM_ = (int)NPUPROF_DEVICE_KEYS_ - (int)NPUPROF_NPU_USAGE_ARGS_ };

/* A decoded record with extended times. */
typedef struct npuprof_npu_drawing_ {
    uint64_t start, end;                 /* ticks of `epoch`, or host ticks (NPUPROF_STAMP_HOST) */
    uint32_t epoch;                      /* with host ticks: npuprof_host_error_code_() of their error */
    unsigned flags;                      /* NPUPROF_STAMP_DEVICE, _HOST; with _INSTANT or _VALUE no span */
    unsigned lane;                       /* the PE */
    const char *name;                    /* NULL: that of its submission */
    const char *category;                /* NULL: "NPU" */
    bool texts_stay;                     /* category and keys are the description's: they stay, and the
                                            arguments are integers */
    bool name_stays;                     /* so does the name. Only with texts_stay */
    bool takes_arrow;                    /* it stands for the job, not for a part of it */
    npuprof_arg args[NPUPROF_NPU_LIST_]; /* the first NPUPROF_NPU_OWN_ARGS_ are left free for the drawing, and
                                            those from NPUPROF_NPU_ROOM_ on */
    size_t arg_count;                    /* of those after them */
} npuprof_npu_drawing_;

/* Whether a record of that submission is to be drawn now. Records of jobs submitted while recording was on
   are drawn even if it is off now; others only while it is on. */
NPUPROF_OWN_ static bool npuprof_npu_draws_(const npuprof_npu_submission_ *of)
{
    return !of->muted && (of->known || NPUPROF_OPEN_(1));
}

/* Counts records of the device by NPUPROF_RECORDS_*: until npuprof_npu_end_pass_(), in npuprof_npu. */
NPUPROF_OWN_ static void npuprof_npu_count_records_(npuprof_npu *npu, unsigned why, uint64_t count)
{
    npu->counts_[why] += count;
}

enum { NPUPROF_NPU_PLACED_ = -1 };       /* else NPUPROF_RECORDS_*, why a record is lost */

/* Whether its times are known; else it is counted. */
NPUPROF_OWN_ static bool npuprof_npu_is_placed_(npuprof_npu *npu, int why)
{
    if (why != NPUPROF_NPU_PLACED_) npuprof_npu_count_records_(npu, (unsigned)why, 1);
    return why == NPUPROF_NPU_PLACED_;
}

/* Draws it. of: whose it is, as npuprof_npu_take_submission_() found it; it is to be drawn. */
NPUPROF_OWN_ static void npuprof_npu_draw_(npuprof_npu *npu, npuprof_npu_drawing_ *d,
                              const npuprof_npu_submission_ *of)
{
    size_t first = NPUPROF_NPU_OWN_ARGS_;
    if (!(d->flags & NPUPROF_STAMP_HOST) && d->epoch > 0xFFFF) {   /* 16 bits in the image */
        npuprof_npu_count_records_(npu, NPUPROF_RECORDS_EPOCH, 1);
        return;
    }
    const bool arrow = d->takes_arrow && of->has_arrow;
    if (of->known && d->takes_arrow && npu->desc_.cpu_ns)
        d->arg_count += npuprof_npu_usage_args_(&of->link, d->args + first + d->arg_count);
    if (of->known) d->args[--first] = npuprof_int_("stream", (int64_t)of->stream);
    if (of->known && of->link.correlation)
        d->args[--first] = npuprof_uint_("correlation", of->link.correlation);
    const npuprof_device_event_ event = {
        npu->number_, d->epoch, d->lane, d->flags, d->category ? d->category : "NPU",
        d->name ? d->name : of->name, d->start, d->end, arrow ? &of->link : NULL
    };
    const npuprof_args args = npuprof_args_(d->args + first, NPUPROF_NPU_OWN_ARGS_ - first + d->arg_count);
    if (d->texts_stay) npuprof_device_record_(&npu->texts_, d->name_stays, &event, args);
    else npuprof_device_span_(&event, args);
}

/* Adds counts[NPUPROF_RECORDS_COUNT] to those in the arena. Any thread, in a signal handler, too. */
NPUPROF_OWN_ static void npuprof_npu_store_counts_(const npuprof_npu *npu, const uint64_t *counts)
{
    uint64_t lost = 0, any = 0;
    for (unsigned i = 0; i < NPUPROF_RECORDS_COUNT; i++) {
        any |= counts[i];
        if (NPUPROF_RECORDS_LOST_MASK_ >> i & 1) lost += counts[i];
    }
    if (!any || !npu->number_) return;
    if (lost) {
        npuprof_npu_note_(npu, NPUPROF_NOTE_RING_LOST, lost);
        npuprof_count_lost_(NPUPROF_LOST_RING, lost);
    }
    npuprof_device_records_(npu->number_, counts);
}

/* Ends a pass over records, and gives the queue lock back: hands the counts to the arena. Why not each at
   once: there, the device's entry has to be found. ended: jobs have ended, so event counters are read. */
NPUPROF_OWN_ static void npuprof_npu_end_pass_(npuprof_npu *npu, bool ended)
{
    const uint32_t dropped = NPUPROF_LOAD_(&npu->jobs_dropped_);
    if (ended) npuprof_npu_sample_pmu_(npu);
    npu->texts_.stamp_left = 0;          /* the next pass is at another time */
    if (dropped) NPUPROF_ADD_(&npu->jobs_dropped_, 0u - dropped);
    npu->counts_[NPUPROF_RECORDS_DROPPED_JOBS] += dropped;
    npuprof_npu_store_counts_(npu, npu->counts_);
    memset(npu->counts_, 0, sizeof npu->counts_);
    npuprof_npu_unlock_queue_(npu);
}
/* ==== src/npu/host/match.h ========================================================= >>npu/host/match ==== */

/* Which submission a record belongs to. A number is matched in its scope (ring.job_scope); of several open
   submissions that have it, the oldest. Where two could be meant and nothing decides, the record is nobody's:
   it is drawn without an arrow, and counted. Under the queue lock. May not know what is in a record. */

/* What is known of the submission that a record belongs to. */
typedef struct npuprof_npu_lookup_ {
    bool has_id, any_stream;
    uint64_t id, id_mask;                /* the bits of the command's number that are known */
    uint64_t stream;                     /* without a number: preferred, unless any_stream */
    bool is_scoped;                      /* the number is that of a submission whose stream is `scope` */
    uint64_t scope;
    bool is_late;                        /* it waited: it belongs to a submission before that ticket */
    uint32_t before;
    bool whole;                          /* the record stands for it, and the last such record ends it */
    bool can_wait;                       /* until it can be told */
} npuprof_npu_lookup_;

/* What a look at all open submissions found. */
typedef struct npuprof_npu_found_ {
    npuprof_npu_job_ *oldest, *second;   /* of those that it may be */
    uint32_t ticket, second_ticket;
    bool busy;                           /* one that it may be is held by a thread that does not run */
    bool awaited;                        /* one of this scope may get this number yet; by order: the first
                                            number of all may come */
    bool elsewhere;                      /* a submission of another scope has the number */
    bool other_stream;                   /* without a number: no submission has the stream */
} npuprof_npu_found_;

NPUPROF_OWN_ static void npuprof_npu_add_found_(npuprof_npu_found_ *f, npuprof_npu_job_ *job, uint32_t ticket)
{
    if (!f->oldest || npuprof_npu_is_older_(ticket, f->ticket)) {
        f->second = f->oldest;
        f->second_ticket = f->ticket;
        f->oldest = job;
        f->ticket = ticket;
    } else if (!f->second || npuprof_npu_is_older_(ticket, f->second_ticket)) {
        f->second = job;
        f->second_ticket = ticket;
    }
}

/* Whether it has the number. */
NPUPROF_OWN_ static bool npuprof_npu_has_id_(const npuprof_npu_job_ *job, const npuprof_npu_lookup_ *s)
{
    return NPUPROF_LOAD_(&job->flags) & NPUPROF_NPU_HAS_ID_ &&
           ((NPUPROF_LOAD_(&job->id) ^ s->id) & s->id_mask) == 0;
}

/* Whether a submission with these flags is of the record's scope, or may be. */
NPUPROF_OWN_ static bool npuprof_npu_is_in_scope_(const npuprof_npu_job_ *job, uint32_t flags,
                                     const npuprof_npu_lookup_ *s)
{
    if (!s->is_scoped || flags & NPUPROF_NPU_OURS_) return true;
    if (flags & NPUPROF_NPU_LOOSE_) return (flags & NPUPROF_NPU_MUTED_) != 0;
    return NPUPROF_LOAD_(&job->stream) == s->scope;
}

/* The state of an entry; HELD: its holder was interrupted. */
NPUPROF_OWN_ static uint32_t npuprof_npu_state_of_job_(const npuprof_npu_job_ *job)
{
    uint32_t state = NPUPROF_NPU_JOB_HELD_;
    for (int i = 0; i < 1000 && state == NPUPROF_NPU_JOB_HELD_; i++)
        state = NPUPROF_LOAD_ACQUIRE_(&job->state);
    return state;
}

/* Whether its record may be lost: entries were, or a reset came, since it was submitted. */
NPUPROF_OWN_ static bool npuprof_npu_is_doubtful_(const npuprof_npu *npu, const npuprof_npu_job_ *job)
{
    return npuprof_npu_is_older_(NPUPROF_LOAD_(&job->ticket), npu->gap_ticket_) ||
           NPUPROF_LOAD_(&job->epoch) != NPUPROF_LOAD_(&npu->epoch_);
}

/* Looks at the entries of those bits: used_, or a row of numbered_, which leaves out what is awaited. */
NPUPROF_OWN_ static npuprof_npu_found_ npuprof_npu_look_in_(const npuprof_npu *npu, const uint32_t *bits,
                                               const npuprof_npu_lookup_ *s)
{
    npuprof_npu_found_ f = { NULL, NULL, 0, 0, false, false, false, false };
    npuprof_npu_walk_ walk = npuprof_npu_walk_of_(npu, bits);
    for (npuprof_npu_job_ *job; (job = npuprof_npu_next_job_(&walk)) != NULL;) {
        const uint32_t ticket = NPUPROF_LOAD_ACQUIRE_(&job->ticket), flags = NPUPROF_LOAD_(&job->flags);
        if (!npuprof_npu_has_id_(job, s)) {
            f.awaited = f.awaited || ((flags & NPUPROF_NPU_IN_BLOCK_) != 0 &&
                                      npuprof_npu_is_in_scope_(job, flags, s) &&
                                      (!s->is_late || npuprof_npu_is_older_(ticket, s->before)));
            continue;
        }
        const bool in_scope = npuprof_npu_is_in_scope_(job, flags, s);
        f.elsewhere = f.elsewhere || !in_scope;
        const uint32_t state = in_scope ? npuprof_npu_state_of_job_(job) : (uint32_t)NPUPROF_NPU_JOB_FREE_;
        f.busy = f.busy || state == NPUPROF_NPU_JOB_HELD_;
        if (state == NPUPROF_NPU_JOB_OPEN_) npuprof_npu_add_found_(&f, job, ticket);
    }
    return f;
}

/* Why all entries, if the row shows none, or one whose record may be lost: another may get the number. */
NPUPROF_OWN_ static npuprof_npu_found_ npuprof_npu_look_by_id_(const npuprof_npu *npu, const npuprof_npu_lookup_ *s)
{
    const npuprof_npu_found_ f = npuprof_npu_look_in_(npu, npuprof_npu_row_of_(npu, s->id), s);
    if (f.oldest && !npuprof_npu_is_doubtful_(npu, f.oldest)) return f;
    return npuprof_npu_look_in_(npu, npu->used_, s);
}

/* Stops at a submission with the ticket open_from_, if that fits: no open one is older. Why tickets_ is
   loaded before the walk: who has a ticket before that one shows by then that his entry is held, or open. */
NPUPROF_OWN_ static npuprof_npu_found_ npuprof_npu_look_by_order_(npuprof_npu *npu, const npuprof_npu_lookup_ *s)
{
    npuprof_npu_found_ f = { NULL, NULL, 0, 0, false, false, false, false }, other = f;
    const bool awaits = s->has_id && !NPUPROF_LOAD_(&npu->ended_unnumbered_);
    uint32_t from = NPUPROF_LOAD_ACQUIRE_(&npu->tickets_);
    npuprof_npu_walk_ walk = npuprof_npu_walk_of_(npu, npu->used_);
    for (npuprof_npu_job_ *job; (job = npuprof_npu_next_job_(&walk)) != NULL;) {
        const uint32_t ticket = NPUPROF_LOAD_ACQUIRE_(&job->ticket);
        if (NPUPROF_LOAD_(&job->flags) & (NPUPROF_NPU_MUTED_ | NPUPROF_NPU_OVER_)) continue;
        const uint32_t state = npuprof_npu_state_of_job_(job);
        f.busy = f.busy || state == NPUPROF_NPU_JOB_HELD_;
        if (state != NPUPROF_NPU_JOB_OPEN_) continue;
        f.awaited = f.awaited || (awaits && NPUPROF_LOAD_(&job->flags) & NPUPROF_NPU_IN_BLOCK_);
        const bool fits = s->any_stream || NPUPROF_LOAD_(&job->stream) == s->stream;
        npuprof_npu_add_found_(fits ? &f : &other, job, ticket);
        if (fits && !awaits && ticket == npu->open_from_) return f;
        if (npuprof_npu_is_older_(ticket, from)) from = ticket;
    }
    if (!f.busy) npu->open_from_ = from;
    if (f.oldest || NPUPROF_LOAD_(&npu->forgotten_)) return f;
    other.busy = f.busy;
    other.awaited = f.awaited;
    other.other_stream = true;
    return other;
}

/* Takes one from a count, if it is not 0. */
NPUPROF_OWN_ static bool npuprof_npu_take_one_(uint32_t *count)
{
    if (!NPUPROF_LOAD_(count)) return false;
    NPUPROF_ADD_(count, 0u - 1u);
    return true;
}

/* Whether the record may be one of a submission that was dropped. A whole one: that is over then. */
NPUPROF_OWN_ static bool npuprof_npu_may_be_dropped_(npuprof_npu *npu, const npuprof_npu_lookup_ *s, bool by_id)
{
    uint64_t key = s->stream;
    if (by_id && !npuprof_npu_numbers_return_(npu)) return false;
    if (by_id) key = s->id & npu->id_mask_;
    uint32_t *const count = &npu->dropped_[key % NPUPROF_NPU_DROPPED_];
    if (by_id) return s->whole ? npuprof_npu_take_one_(count) : NPUPROF_LOAD_(count) != 0;
    if (!s->any_stream && !NPUPROF_LOAD_(count)) return false;
    if (!s->whole) return NPUPROF_LOAD_(&npu->forgotten_) != 0;
    if (!npuprof_npu_take_one_(&npu->forgotten_)) return false;
    if (!s->any_stream) (void)npuprof_npu_take_one_(count);
    return true;
}

/* Ends a submission that is held. If its block is still open, the end of that frees the entry. */
NPUPROF_OWN_ static void npuprof_npu_end_job_(npuprof_npu *npu, npuprof_npu_job_ *job)
{
    const uint32_t flags = job->flags;
    const uint32_t open = NPUPROF_NPU_HAS_ID_ | NPUPROF_NPU_IN_BLOCK_;
    if (flags & NPUPROF_NPU_HAS_ID_) npuprof_npu_set_numbered_(npu, job, false);
    if (job->ticket == npu->open_from_) npu->open_from_++;
    NPUPROF_STORE_(&job->flags, (flags & ~open) | NPUPROF_NPU_OVER_);
    npuprof_npu_release_job_(npu, job,
                             flags & NPUPROF_NPU_IN_BLOCK_ ? NPUPROF_NPU_JOB_OPEN_ : NPUPROF_NPU_JOB_FREE_);
}

/* Whether the other submission with this number may be meant as well. The oldest is held. */
NPUPROF_OWN_ static bool npuprof_npu_is_ambiguous_(const npuprof_npu *npu, const npuprof_npu_found_ *f,
                                      const npuprof_npu_lookup_ *s)
{
    const uint32_t any = NPUPROF_NPU_LOOSE_ | NPUPROF_NPU_OURS_;
    if (npuprof_npu_is_doubtful_(npu, f->oldest) && (f->second || f->awaited)) return true;
    return s->is_scoped && f->second &&
           !(f->oldest->flags & any) != !(NPUPROF_LOAD_(&f->second->flags) & any);
}

/* Two submissions may be meant: whole: both are over. The oldest is held. */
NPUPROF_OWN_ static void npuprof_npu_give_both_up_(npuprof_npu *npu, const npuprof_npu_found_ *f, bool whole)
{
    if (!whole) {
        npuprof_npu_release_job_(npu, f->oldest, NPUPROF_NPU_JOB_OPEN_);
        return;
    }
    npuprof_npu_end_job_(npu, f->oldest);
    if (!f->second || !npuprof_npu_hold_job_(f->second, NPUPROF_NPU_JOB_OPEN_)) return;
    if (f->second->ticket == f->second_ticket) npuprof_npu_end_job_(npu, f->second);
    else npuprof_npu_release_job_(npu, f->second, NPUPROF_NPU_JOB_OPEN_);
}

/* The submission that a record belongs to, f->oldest, held; NULL: there is none, or nobody can tell which.
   *wait: nobody can tell now, and nothing was done. */
NPUPROF_OWN_ static npuprof_npu_job_ *npuprof_npu_find_job_(npuprof_npu *npu, const npuprof_npu_lookup_ *s,
                                               npuprof_npu_found_ *f, bool *wait)
{
    const bool by_id = s->has_id && NPUPROF_LOAD_(&npu->uses_ids_);
    for (int i = 0; i < 8; i++) {
        *f = by_id ? npuprof_npu_look_by_id_(npu, s) : npuprof_npu_look_by_order_(npu, s);
        *wait = s->can_wait && (f->busy || (f->awaited && !(by_id && f->oldest)));
        if (*wait) return NULL;
        const bool held = f->oldest && npuprof_npu_hold_job_(f->oldest, NPUPROF_NPU_JOB_OPEN_);
        if (f->oldest && !held) continue;
        if (held && (f->oldest->ticket != f->ticket || (by_id && !npuprof_npu_has_id_(f->oldest, s)))) {
            npuprof_npu_release_job_(npu, f->oldest, NPUPROF_NPU_JOB_OPEN_);
            continue;                    /* it changed meanwhile */
        }
        *wait = held && by_id && s->can_wait && f->awaited && npuprof_npu_is_doubtful_(npu, f->oldest);
        const bool dropped = !*wait && npuprof_npu_may_be_dropped_(npu, s, by_id);
        if (*wait || (held && !by_id && dropped)) {      /* the dropped one is older */
            npuprof_npu_release_job_(npu, f->oldest, NPUPROF_NPU_JOB_OPEN_);
            return NULL;
        }
        if (held && !dropped && !(by_id && npuprof_npu_is_ambiguous_(npu, f, s))) return f->oldest;
        if (held) npuprof_npu_give_both_up_(npu, f, s->whole);
        if (held || f->elsewhere) npuprof_npu_count_records_(npu, NPUPROF_RECORDS_AMBIGUOUS, 1);
        return NULL;
    }
    return NULL;
}

/* Nobody's. */
NPUPROF_OWN_ static void npuprof_npu_clear_submission_(npuprof_npu_submission_ *of)
{
    of->known = of->muted = of->has_arrow = false;
    of->submitted = of->begun = of->over = 0;
}

/* Finds the submission of a record. NPUPROF_ERR_NPU_BUSY, only with can_wait: nobody can tell now, and
   nothing was done. */
NPUPROF_OWN_ static npuprof_result npuprof_npu_take_submission_(npuprof_npu *npu, const npuprof_npu_lookup_ *s,
                                                   npuprof_npu_submission_ *of)
{
    npuprof_npu_found_ found;
    bool wait;
    npuprof_npu_job_ *const job = npuprof_npu_find_job_(npu, s, &found, &wait);
    if (wait) return NPUPROF_ERR_NPU_BUSY;
    npuprof_npu_clear_submission_(of);
    memcpy(of->name, "job", sizeof "job");
    if (!job) return NPUPROF_OK;
    const uint32_t flags = job->flags;
    of->muted = (flags & NPUPROF_NPU_MUTED_) != 0;
    of->known = !of->muted;
    of->has_arrow = of->known && s->whole && !(flags & NPUPROF_NPU_HAS_ARROW_);
    of->link = job->link;
    of->epoch = job->epoch;
    of->stream = job->stream;
    if (of->known && !(flags & NPUPROF_NPU_LOOSE_) && !found.other_stream) of->submitted = job->link.ticks;
    if (job->name[0]) memcpy(of->name, job->name, sizeof of->name);
    if (s->whole && job->records <= 1) {
        npuprof_npu_end_job_(npu, job);
        return NPUPROF_OK;
    }
    if (s->whole) {
        job->records--;
        NPUPROF_STORE_(&job->flags, flags | NPUPROF_NPU_HAS_ARROW_);
    }
    npuprof_npu_release_job_(npu, job, NPUPROF_NPU_JOB_OPEN_);
    return NPUPROF_OK;
}

/* The device is being closed: counts the submissions whose records never came. */
NPUPROF_OWN_ static void npuprof_npu_count_open_jobs_(npuprof_npu *npu)
{
    npuprof_npu_walk_ walk = npuprof_npu_walk_of_(npu, npu->used_);
    for (npuprof_npu_job_ *job; (job = npuprof_npu_next_job_(&walk)) != NULL;)
        if (!(NPUPROF_LOAD_(&job->flags) & (NPUPROF_NPU_MUTED_ | NPUPROF_NPU_OVER_)))
            npuprof_npu_count_records_(npu, NPUPROF_RECORDS_OPEN_JOBS, 1);
}
/* ==== src/npu/host/format.h ======================================================= >>npu/host/format ==== */

/* The format of an entry: which words of it are loaded, and which bits of them are which value. The same for
   an entry in a ring and for one that was fed. May not know what a value means, or who says that an entry is
   there. */

/* NPUPROF_ERR_NPU_RANGE, and its sentence: "desc.rings[2].start: ...". */
NPUPROF_OWN_ static npuprof_result npuprof_npu_refuse_(const npuprof_npu *npu, unsigned ring, const char *key,
                                          const char *why)
{
    char which[24] = "ring";
    if (npu->desc_.ring_count) snprintf(which, sizeof which, "rings[%u]", ring);
    return npuprof_os_explain_(NPUPROF_ERR_NPU_RANGE,
                               "NPUPROF_ERR_NPU_RANGE: npuprof_npu_open: desc.%s.%s %s",
                               which, key, why);
}

#define NPUPROF_NPU_VALUE_KEY_(word, member) #member,
static const char *const npuprof_npu_value_keys_[NPUPROF_NPU_VALUES_] = {
    NPUPROF_NPU_RING_VALUES_(NPUPROF_NPU_VALUE_KEY_)
    "more_args[0]", "more_args[1]", "more_args[2]", "more_args[3]", "more_args[4]", "more_args[5]",
    "more_args[6]", "more_args[7]"
};

/* An argument of the span; without a field if there is none. */
NPUPROF_OWN_ static npuprof_npu_arg npuprof_npu_arg_at_(const npuprof_npu_ring *r, unsigned i)
{
    const npuprof_npu_arg none = { { 0, 0, 0, 0, 0, 0, 0, 0 }, NULL };
    if (i < NPUPROF_NPU_ARGS) return r->args[i];
    return i - NPUPROF_NPU_ARGS < r->more_arg_count ? r->more_args[i - NPUPROF_NPU_ARGS] : none;
}

/* The field of a value. */
#define NPUPROF_NPU_VALUE_OFFSET_(word, member) offsetof(npuprof_npu_ring, member),
NPUPROF_OWN_ static npuprof_npu_field npuprof_npu_field_at_(const npuprof_npu_ring *r, unsigned at)
{
    static const uint16_t offsets[] = { NPUPROF_NPU_RING_VALUES_(NPUPROF_NPU_VALUE_OFFSET_) };
    npuprof_npu_field field;
    if (at >= NPUPROF_NPU_AT_ARGS_) return npuprof_npu_arg_at_(r, at - NPUPROF_NPU_AT_ARGS_).field;
    memcpy(&field, (const char *)r + offsets[at], sizeof field);
    return field;
}

/* The key of the argument that a value becomes; NULL: it becomes none. */
NPUPROF_OWN_ static const char *npuprof_npu_key_of_(const npuprof_npu_ring *r, unsigned at)
{
    if (at >= NPUPROF_NPU_AT_ARGS_) return npuprof_npu_arg_at_(r, at - NPUPROF_NPU_AT_ARGS_).name;
    if (at == NPUPROF_NPU_AT_JOB_) return "job";
    if (at == NPUPROF_NPU_AT_EXECUTION_) return "execution_index";
    return at == NPUPROF_NPU_AT_INSTRUCTION_ ? "instruction_index" : NULL;
}

/* A word of the entry, added to those that are loaded. NULL, or what is wrong with the part of a field. */
NPUPROF_OWN_ static const char *npuprof_npu_add_word_(npuprof_npu_queue_ *q, unsigned offset, unsigned bytes, unsigned lsb,
                                         uint8_t *bits, uint8_t *word)
{
    if (bytes != 1 && bytes != 2 && bytes != 4 && bytes != 8) return "is not 1, 2, 4 or 8 bytes wide";
    if (offset % bytes) return "is not aligned to its width";
    if (offset + bytes > q->is.entry_bytes) return "lies outside the entry";
    if (lsb + (*bits ? *bits : 1u) > 8u * bytes) return "has bits outside its word";
    if (!*bits) *bits = (uint8_t)(8u * bytes - lsb);
    unsigned i = 0;
    while (i < q->word_count && (q->words[i].offset != offset || q->words[i].bytes != bytes)) i++;
    *word = (uint8_t)i;
    if (i < q->word_count) return NULL;
    q->words[i].offset = (uint16_t)offset;
    q->words[i].bytes = (uint8_t)bytes;
    q->word_count++;
    return NULL;
}

/* Finds the words and bits of one value. NULL, or what is wrong with it. */
NPUPROF_OWN_ static const char *npuprof_npu_add_value_(npuprof_npu_queue_ *q, unsigned at)
{
    const npuprof_npu_field f = npuprof_npu_field_at_(&q->is, at);
    npuprof_npu_value_ *v = &q->values[at];
    if (!f.width_bytes) return f.hi_width_bytes ? "has a second part and no first" : NULL;
    v->lsb = f.lsb;
    v->bits = f.bits;
    const char *wrong = npuprof_npu_add_word_(q, f.offset, f.width_bytes, f.lsb, &v->bits, &v->word);
    if (wrong) return wrong;
    v->mask = npuprof_npu_mask_(v->bits);
    q->present[q->present_count++] = (uint8_t)at;
    if (!f.hi_width_bytes) return NULL;
    v->hi_lsb = f.hi_lsb;
    v->hi_bits = f.hi_bits;
    wrong = npuprof_npu_add_word_(q, f.hi_offset, f.hi_width_bytes, f.hi_lsb, &v->hi_bits, &v->hi_word);
    if (wrong) return wrong;
    v->hi_mask = npuprof_npu_mask_(v->hi_bits);
    if (v->bits + v->hi_bits > 64) return "has more than 64 bits";
    const bool apart = v->hi_lsb >= v->lsb + v->bits || v->lsb >= v->hi_lsb + v->hi_bits;
    return v->word == v->hi_word && !apart ? "has two parts that overlap" : NULL;
}

/* Finds the words and bits of all values. */
NPUPROF_OWN_ static npuprof_result npuprof_npu_add_values_(const npuprof_npu *npu, npuprof_npu_queue_ *q)
{
    for (unsigned at = 0; at < NPUPROF_NPU_VALUES_; at++) {
        const char *const wrong = npuprof_npu_add_value_(q, at);
        if (wrong) return npuprof_npu_refuse_(npu, q->number, npuprof_npu_value_keys_[at], wrong);
    }
    return NPUPROF_OK;
}

/* What the widest word needs. */
NPUPROF_OWN_ static size_t npuprof_npu_entry_align_(const npuprof_npu_queue_ *q)
{
    size_t align = 1;
    for (unsigned i = 0; i < q->word_count; i++)
        if (q->words[i].bytes > align) align = q->words[i].bytes;
    return align;
}

NPUPROF_OWN_ static bool npuprof_npu_has_(const npuprof_npu_queue_ *q, unsigned at) { return q->values[at].bits != 0; }

NPUPROF_OWN_ static unsigned npuprof_npu_bits_at_(const npuprof_npu_queue_ *q, unsigned at)
{
    return (unsigned)q->values[at].bits + q->values[at].hi_bits;
}

/* ---- Entries */

/* Whether this machine's most significant byte comes first. */
NPUPROF_OWN_ static inline bool npuprof_npu_is_big_endian_(void)
{
#if defined(__BYTE_ORDER__) && __BYTE_ORDER__ == __ORDER_BIG_ENDIAN__
    return true;
#else
    return false;
#endif
}

/* ---- The copy of a whole entry

   Why other words than those of `values`: one load of 8 bytes brings what two or more fields hold. So it is
   in the host's memory only; a register of a device is loaded with the width that it has. */

/* Whether entries may be copied in words of 8 bytes. */
NPUPROF_OWN_ static bool npuprof_npu_can_copy_wide_(const npuprof_npu_ring *r)
{
    if (UINTPTR_MAX <= UINT32_MAX || r->big_endian || npuprof_npu_is_big_endian_()) return false;
    if (r->entry_bytes % 8) return false;
    return r->feed || (r->memory && ((uintptr_t)r->memory + r->first) % 8 == 0);
}

/* The word of 8 bytes, among those that are copied, that word number `word` lies in. *lsb: a bit of that
   word, and becomes the same one there. */
NPUPROF_OWN_ static uint8_t npuprof_npu_widen_word_(npuprof_npu_queue_ *q, unsigned word, uint8_t *lsb)
{
    const unsigned offset = q->words[word].offset, wide = offset / 8 * 8;
    unsigned i = 0;
    while (i < q->copied_count && q->copied[i].offset != wide) i++;
    q->copied[i].offset = (uint16_t)wide;
    q->copied[i].bytes = 8;
    if (i == q->copied_count) q->copied_count++;
    *lsb = (uint8_t)(*lsb + 8 * (offset - wide));
    return (uint8_t)i;
}

/* Plans how an entry is copied, and what is drawn of it, when its values are known. */
NPUPROF_OWN_ static void npuprof_npu_plan_entry_(npuprof_npu_queue_ *q)
{
    q->copies_wide = npuprof_npu_can_copy_wide_(&q->is);
    q->copied_count = q->copies_wide ? 0 : q->word_count;
    if (!q->copies_wide) memcpy(q->copied, q->words, sizeof q->copied);
    for (unsigned i = 0; i < q->present_count; i++) {
        const npuprof_npu_value_ v = q->values[q->present[i]];
        const npuprof_npu_drawn_ drawn = { q->present[i], npuprof_npu_key_of_(&q->is, q->present[i]) };
        if (drawn.key) q->drawn[q->drawn_count++] = drawn;
        npuprof_npu_step_ s = { q->present[i], v.word, v.lsb, v.hi_word, v.hi_lsb, v.bits, v.mask,
                                v.hi_mask };
        if (q->copies_wide) s.word = npuprof_npu_widen_word_(q, v.word, &s.lsb);
        if (q->copies_wide && s.hi_mask) s.hi_word = npuprof_npu_widen_word_(q, v.hi_word, &s.hi_lsb);
        if (s.hi_mask && s.hi_word == s.word && s.hi_lsb == s.lsb + s.bits) {    /* one behind the other */
            s.mask = npuprof_npu_mask_((unsigned)v.bits + v.hi_bits);
            s.hi_mask = 0;
        }
        q->steps[i] = s;
    }
}

NPUPROF_OWN_ static const volatile unsigned char *npuprof_npu_entry_at_(const npuprof_npu_queue_ *q, uint64_t number)
{
    return q->base + (size_t)(number % q->is.count) * q->is.entry_bytes;
}

NPUPROF_OWN_ static uint64_t npuprof_npu_load_entry_word_(npuprof_npu *npu, const npuprof_npu_queue_ *q,
                                             const volatile unsigned char *entry, unsigned word)
{
    if (!q->is.memory) npuprof_npu_count_load_(npu);
    return npuprof_npu_load_word_(entry + q->words[word].offset, q->words[word].bytes, q->is.big_endian);
}

/* One value of an entry that a device may be writing. */
NPUPROF_OWN_ static uint64_t npuprof_npu_load_value_(npuprof_npu *npu, const npuprof_npu_queue_ *q,
                                        const volatile unsigned char *entry, unsigned at)
{
    const npuprof_npu_value_ *v = &q->values[at];
    uint64_t value = npuprof_npu_load_entry_word_(npu, q, entry, v->word) >> v->lsb & v->mask;
    if (v->hi_bits)
        value |= (npuprof_npu_load_entry_word_(npu, q, entry, v->hi_word) >> v->hi_lsb & v->hi_mask)
                 << v->bits;
    return value;
}

/* Takes the values out of the words of npuprof_npu_queue_.copied. r: 0 where the queue has no value; it stays
   so. */
NPUPROF_OWN_ static inline void npuprof_npu_decode_(const npuprof_npu_queue_ *q, const uint64_t *words,
                                       npuprof_npu_record_ *r)
{
    const npuprof_npu_step_ *const end = q->steps + q->present_count;
    for (const npuprof_npu_step_ *s = q->steps; s < end; s++) {
        uint64_t value = words[s->word] >> s->lsb & s->mask;
        if (s->hi_mask) value |= (words[s->hi_word] >> s->hi_lsb & s->hi_mask) << s->bits;
        r->v[s->at] = value;
    }
}

/* Copies an entry of a ring. */
NPUPROF_OWN_ static void npuprof_npu_copy_entry_(npuprof_npu *npu, const npuprof_npu_queue_ *q,
                                    const volatile unsigned char *entry, npuprof_npu_record_ *r)
{
    uint64_t words[2 * NPUPROF_NPU_VALUES_];
    if (!q->is.memory) NPUPROF_ADD_(&npu->mmio_reads, q->copied_count);
    if (q->copies_wide)
        for (unsigned i = 0; i < q->copied_count; i++)
            words[i] = npuprof_npu_load_word_(entry + q->copied[i].offset, 8, false);
    else
        for (unsigned i = 0; i < q->copied_count; i++)
            words[i] = npuprof_npu_load_word_(entry + q->copied[i].offset, q->copied[i].bytes,
                                              q->is.big_endian);
    npuprof_npu_decode_(q, words, r);
}

/* One word of a buffer of the driver's, at any address. */
NPUPROF_OWN_ static inline uint64_t npuprof_npu_take_word_(const unsigned char *at, unsigned bytes)
{
    uint64_t u64;
    uint32_t u32;
    uint16_t u16;
    switch (bytes) {
    case 1: return *at;
    case 2: memcpy(&u16, at, 2); return u16;
    case 4: memcpy(&u32, at, 4); return u32;
    default: memcpy(&u64, at, 8); return u64;
    }
}

/* Takes an entry out of a buffer of the driver's. */
NPUPROF_OWN_ static void npuprof_npu_take_entry_(const npuprof_npu_queue_ *q, const unsigned char *entry,
                                    npuprof_npu_record_ *r)
{
    uint64_t words[2 * NPUPROF_NPU_VALUES_];
    if (q->copies_wide) {
        for (unsigned i = 0; i < q->copied_count; i++)
            words[i] = npuprof_npu_take_word_(entry + q->copied[i].offset, 8);
        npuprof_npu_decode_(q, words, r);
        return;
    }
    for (unsigned i = 0; i < q->copied_count; i++)
        words[i] = npuprof_npu_take_word_(entry + q->copied[i].offset, q->copied[i].bytes);
    if (q->is.big_endian != npuprof_npu_is_big_endian_())
        for (unsigned i = 0; i < q->copied_count; i++)
            words[i] = npuprof_npu_swap_bytes_(words[i], q->copied[i].bytes);
    npuprof_npu_decode_(q, words, r);
}
/* ==== src/npu/host/rule.h =========================================================== >>npu/host/rule ==== */

/* What a ready rule is: the functions by which the reader of a ring asks who says that entry number n is
   there. One file for each of them, ready_*.h, and one line of the table in rules.h. The reader keeps its own
   n, which starts at 0 and never wraps. Owns no data.

   A rule loads by npuprof_npu_load_value_() or npuprof_npu_load_word_() alone. Why: the device writes
   meanwhile; and tests/npu/interleaved.c lets it write at these loads. */

enum { NPUPROF_NPU_BATCH_ = 32 };        /* entries copied before they are judged */

/* What a copied entry is. */
enum {
    NPUPROF_NPU_ENTRY_GOOD_, NPUPROF_NPU_ENTRY_LOST_, NPUPROF_NPU_ENTRY_LATER_, NPUPROF_NPU_ENTRY_LAPPED_
};

/* A ring that is being read. */
typedef struct npuprof_npu_reading_ {
    uint64_t producer;                   /* number of the entry where it ends */
    npuprof_result result;               /* of the ring */
    unsigned count;                      /* of the batch */
    bool is_clear;                       /* the batch has been set to 0 */
    npuprof_npu_record_ batch[NPUPROF_NPU_BATCH_];
    uint8_t fate[NPUPROF_NPU_BATCH_];    /* NPUPROF_NPU_ENTRY_* */
    uint64_t gap[NPUPROF_NPU_BATCH_];    /* LAPPED: entries that are missing; GOOD: missing before it */
} npuprof_npu_reading_;

typedef struct npuprof_npu_rule_ {
    /* Its description. field: the value of an entry that it needs, NPUPROF_NPU_AT_*; VALUES_: none. is_own:
       no other rule has that field. lacks: what to say if it is missing, or there without the rule. */
    unsigned field;
    bool is_own;
    const char *lacks;
    bool is_announced;                   /* `producer` says it for a whole batch, which is older than that */
    bool is_cleared;                     /* somebody clears entries: their content is remembered in seen_ */

    /* What is wrong with the bits of `field`; NULL: nothing. */
    const char *(*check)(const npuprof_npu_queue_ *q);
    /* After how many entries the ring shows the same again, if none tells its number; NULL, or 0: never. */
    uint64_t (*period)(const npuprof_npu_queue_ *q);
    /* Finds out where a ring that was just opened is, `next`: what lies in it is older. */
    npuprof_result (*find)(npuprof_npu *npu, npuprof_npu_queue_ *q);
    /* Begins to read: catches up with the device, and sets where it ends. False: nothing can be read. */
    bool (*begin)(npuprof_npu *npu, npuprof_npu_queue_ *q, npuprof_npu_reading_ *reading);
    /* Copies and judges the next batch, from `next` on. False: there is none, or it cannot be trusted. */
    bool (*copy)(npuprof_npu *npu, npuprof_npu_queue_ *q, npuprof_npu_reading_ *reading);

    /* Of a rule that asks each entry, which npuprof_npu_copy_asked_() copies. Is that entry there: GOOD,
       LATER or LAPPED, by *gap. *word: what said so, the same before and after a copy that is whole. */
    int (*is_there)(npuprof_npu *npu, const npuprof_npu_queue_ *q, uint64_t number, uint64_t *word,
                    uint64_t *gap);
    /* What place i of the batch is, if more than its word tells; NULL: its word tells all. */
    int (*judge)(npuprof_npu *npu, npuprof_npu_queue_ *q, npuprof_npu_reading_ *reading, unsigned i,
                 int fate);
} npuprof_npu_rule_;
/* ==== src/npu/host/index.h ========================================================= >>npu/host/index ==== */

/* An index that a device writes: how far it has come, in whatever unit, wherever it lies. Becomes the number
   of entries since reset, 64 bits, which never wraps. Owns an npuprof_npu_index_state_. May not know what
   lies in an entry.

   A device may write an index in two steps: two halves of 64 bits, or a slot and a count of laps. What is
   read between the two looks as if it went back, or on by a whole lap. So such a value is read again, for a
   while, until it fits. */

/* Finds where an index lies, and checks it. entries: where those begin; entries_end: bytes from `memory` to
   their end. *needed grows to the bytes of BAR that it reaches. NULL, or what is wrong with it. */
NPUPROF_OWN_ static const char *npuprof_npu_check_index_(npuprof_npu_index *x, npuprof_npu_index_state_ *state,
                                            const volatile void *memory, size_t memory_bytes,
                                            size_t *needed)
{
    const volatile void *const at = x->memory ? x->memory : x->in_memory ? memory : NULL;
    const size_t bytes = x->memory ? x->memory_bytes : memory_bytes;
    if (!x->width_bytes) x->width_bytes = 4;
    if (x->width_bytes != 2 && x->width_bytes != 4 &&
        x->width_bytes != 8) return "is not 2, 4 or 8 bytes wide";
    if (x->lsb + (x->bits ? x->bits : 1u) > 8u * x->width_bytes) return "has bits outside its word";
    if (!x->bits) x->bits = (uint8_t)(8u * x->width_bytes - x->lsb);
    if (x->unit < 0 || x->unit >= NPUPROF_NPU_INDEX_UNIT_COUNT_) return "has an unknown unit";
    const bool is_slot = x->unit == NPUPROF_NPU_INDEX_SLOT || x->unit == NPUPROF_NPU_INDEX_BYTE_OFFSET;
    if (x->has_laps && !is_slot) return "has laps, but its unit is neither a slot nor a byte offset";
    if (x->has_wrap && !is_slot) return "has a wrap bit, but its unit is neither a slot nor a byte offset";
    if (x->has_wrap && x->has_laps) return "has a wrap bit and laps: give one";
    if (x->has_wrap && (x->wrap_bit >= 8u * x->width_bytes ||
                        (x->wrap_bit >= x->lsb && x->wrap_bit < x->lsb + x->bits)))
        return "has its wrap bit outside its word, or among its own bits";
    if (x->in_memory && !x->memory && !memory) return "is in_memory, but there is no memory";
    state->mask = npuprof_npu_mask_(x->bits);
    state->in_bar = !at;
    const size_t offsets[] = { x->offset, x->has_laps ? x->laps_offset : x->offset };
    for (int i = 0; i < 2; i++) {
        size_t end = 0;
        if (!npuprof_npu_cover_range_(offsets[i], x->width_bytes, x->width_bytes, at ? &end : needed))
            return i ? "has laps that are not aligned to its width" : "is not aligned to its width";
        if (at && end > bytes) return "lies outside its memory";
        if (at && ((uintptr_t)at + offsets[i]) % x->width_bytes) return "is not aligned to its width";
    }
    if (!at) return NULL;
    state->at = (const volatile unsigned char *)at + x->offset;
    state->laps_at = (const volatile unsigned char *)at + x->laps_offset;
    return NULL;
}

/* One load of the word at an offset; at: the same word in memory. */
NPUPROF_OWN_ static uint64_t npuprof_npu_load_index_word_(npuprof_npu *npu, const npuprof_npu_index *x,
                                             const volatile unsigned char *at, size_t offset, bool big)
{
    if (at) return npuprof_npu_load_word_(at, x->width_bytes, big);
    return npuprof_npu_load_register_(npu, offset, x->width_bytes, big);
}

/* What was loaded at once. */
typedef struct npuprof_npu_index_raw_ { uint64_t word, value, laps; } npuprof_npu_index_raw_;

/* Loads the index, and its laps before and after it until both agree. */
NPUPROF_OWN_ static npuprof_npu_index_raw_ npuprof_npu_load_index_(npuprof_npu *npu, const npuprof_npu_index *x,
                                                      const npuprof_npu_index_state_ *s)
{
    const bool big = s->big_endian;
    npuprof_npu_index_raw_ raw = { 0, 0, 0 };
    uint64_t again = 0;
    if (x->has_laps) again = npuprof_npu_load_index_word_(npu, x, s->laps_at, x->laps_offset, big);
    for (int i = 0; i < 8; i++) {
        raw.laps = again;
        raw.word = npuprof_npu_load_index_word_(npu, x, s->at, x->offset, big);
        if (!x->has_laps) break;
        again = npuprof_npu_load_index_word_(npu, x, s->laps_at, x->laps_offset, big);
        if (again == raw.laps) break;
    }
    raw.value = raw.word >> x->lsb & s->mask;
    return raw;
}

/* Entries since reset, by a slot and the count of laps. The laps advance when slot 0 is written, so a lap
   that they name is complete when the slot is 0 again: unless nothing was ever written. */
NPUPROF_OWN_ static uint64_t npuprof_npu_entries_by_laps_(const npuprof_npu_index *x, const npuprof_npu_index_state_ *s,
                                             uint64_t slot, uint64_t laps)
{
    const uint64_t bits = 8u * x->width_bytes;
    const uint64_t lap = (laps - x->laps_first) & npuprof_npu_mask_((unsigned)bits);
    if (lap == npuprof_npu_mask_((unsigned)bits)) return 0;     /* before the first lap */
    if (slot) return lap * s->count + slot;
    return lap == 0 && s->was_empty ? 0 : (lap + 1) * s->count;
}

NPUPROF_OWN_ static bool npuprof_npu_wrap_of_(const npuprof_npu_index *x, npuprof_npu_index_raw_ raw)
{
    return x->has_wrap && raw.word >> x->wrap_bit & 1;
}

/* What the index shows, as entries since reset. Does not change what is known of it. *fits: it is not before
   what was read last, nor more than a lap behind it. False: it cannot be. */
NPUPROF_OWN_ static bool npuprof_npu_entries_of_(const npuprof_npu_index *x, const npuprof_npu_index_state_ *s,
                                    npuprof_npu_index_raw_ raw, uint64_t *entries, bool *fits)
{
    const uint64_t count = s->count;
    const bool in_bytes = x->unit == NPUPROF_NPU_INDEX_BYTES || x->unit == NPUPROF_NPU_INDEX_BYTE_OFFSET;
    const uint64_t unit = in_bytes ? s->entry_bytes : 1;
    const bool runs = x->unit == NPUPROF_NPU_INDEX_COUNT || x->unit == NPUPROF_NPU_INDEX_BYTES;
    *fits = true;
    if (runs) {
        const uint64_t ahead = (raw.value - s->last) & s->mask;
        *entries = s->known ? s->last + ahead : raw.value;
        if (!s->known) return true;
        /* The ring is as long as the index's period: what seems to go back has gone on. */
        const bool whole = count > s->mask / 2 / unit && count - 1 <= s->mask / unit;
        *fits = (whole || ahead <= s->mask / 2) && ahead / unit <= count;
        return whole || ahead <= s->mask / 2;
    }
    uint64_t slot = raw.value / unit;
    if (s->shows_count && slot == count) slot = 0;
    *entries = s->last;
    if (slot >= count) return false;
    if (x->has_laps) {
        *entries = npuprof_npu_entries_by_laps_(x, s, slot, raw.laps);
        /* Why not a whole lap to slot 0: the laps may have been written, and the slot not yet. */
        *fits = !s->known || (*entries >= s->last && *entries - s->last <= count - (slot == 0));
        return !s->known || *entries >= s->last;
    }
    *entries = s->known ? s->last + (slot + count - s->last % count) % count : slot;
    /* The bit is the other one after an odd number of laps. */
    const uint64_t laps = *entries / count - s->last / count;
    if (s->known && x->has_wrap && (laps & 1) != (uint64_t)(npuprof_npu_wrap_of_(x, raw) != s->wrap))
        *entries += count;
    return true;
}

/* Whether a device may write that index in two steps. */
NPUPROF_OWN_ static bool npuprof_npu_is_torn_(const npuprof_npu_index *x) { return x->has_laps || x->width_bytes == 8; }

/* All bits of an index are 1: of a device that does not answer, unless the counter says that it does. */
NPUPROF_OWN_ static npuprof_result npuprof_npu_index_dead_(npuprof_npu *npu, const npuprof_npu_index_state_ *s,
                                              bool may_be)
{
    npuprof_anchor_ sample;
    if (!may_be) return NPUPROF_ERR_NPU_DEAD;
    if (!s->in_bar || npu->desc_.read_ticks) return NPUPROF_OK;
    if (!npuprof_npu_lock_(npu)) return NPUPROF_ERR_NPU_BUSY;
    const npuprof_result result = npuprof_npu_read_locked_(npu, &sample);
    npuprof_npu_unlock_(npu);
    return result == NPUPROF_ERR_NPU_DEAD ? result : NPUPROF_OK;
}

/* Loads the index until it fits what was read before: for 20 us where a device may write it in two steps. The
   rest as npuprof_npu_entries_of_(). */
NPUPROF_OWN_ static bool npuprof_npu_settle_index_(npuprof_npu *npu, const npuprof_npu_index *x,
                                      const npuprof_npu_index_state_ *s, npuprof_npu_index_raw_ *raw,
                                      uint64_t *entries)
{
    const uint64_t begin = npuprof_npu_ticks_();
    bool fits;
    for (;;) {
        *raw = npuprof_npu_load_index_(npu, x, s);
        const bool good = npuprof_npu_entries_of_(x, s, *raw, entries, &fits);
        if ((good && fits) || !npuprof_npu_is_torn_(x)) return good;
        if (npuprof_saturating_sub_(npuprof_npu_ticks_(), begin) > npu->second_ / 50000) return good;
    }
}

/* Reads the index. *entries: how many the device has written since reset. NPUPROF_ERR_NPU_RING, once: it
   cannot be (*entries is as before), or it went back, and *entries is what it shows now; _NPU_DEAD;
   _NPU_BUSY. An index in two steps that went back is believed the second time. */
NPUPROF_OWN_ static npuprof_result npuprof_npu_read_index_(npuprof_npu *npu, const npuprof_npu_index *x,
                                              npuprof_npu_index_state_ *s, uint64_t *entries)
{
    const uint64_t unit = x->unit == NPUPROF_NPU_INDEX_BYTES ? s->entry_bytes : 1;
    const bool runs = x->unit == NPUPROF_NPU_INDEX_COUNT || x->unit == NPUPROF_NPU_INDEX_BYTES;
    const bool was_bad = s->is_bad;
    npuprof_npu_index_raw_ raw;
    uint64_t now;
    const bool good = npuprof_npu_settle_index_(npu, x, s, &raw, &now);
    *entries = s->last / unit;
    if (raw.word == npuprof_npu_mask_(8u * x->width_bytes)) {
        const npuprof_result dead = npuprof_npu_index_dead_(npu, s, runs && x->width_bytes < 8);
        if (dead != NPUPROF_OK) return dead;
    }
    s->is_bad = !good;
    if (!good && npuprof_npu_is_torn_(x) && s->known && !was_bad) return NPUPROF_OK;
    if (!good && !runs && (!x->has_laps || now == s->last)) {    /* no slot of this ring */
        return was_bad && !npuprof_npu_is_torn_(x) ? NPUPROF_OK : NPUPROF_ERR_NPU_RING;
    }
    s->is_bad = false;
    s->known = true;
    s->wrap = npuprof_npu_wrap_of_(x, raw);
    s->last = good || !runs ? now : raw.value;
    *entries = s->last / unit;
    return good ? NPUPROF_OK : NPUPROF_ERR_NPU_RING;
}
/* ==== src/npu/host/laps.h =========================================================== >>npu/host/laps ==== */

/* A ring that shows the same again after some laps: of slots, of phases, of a narrow count. What it cannot
   tell, the entry before the next one can: if it is not as it was read, the device has written it again. Owns
   read_end and read_hash of an npuprof_npu_queue_. May not know who says that an entry is there. */

NPUPROF_OWN_ static uint32_t npuprof_npu_hash_record_(const npuprof_npu_queue_ *q, const npuprof_npu_record_ *r)
{
    uint64_t hash = 1;
    for (unsigned i = 0; i < q->present_count; i++) hash = npuprof_hash_mix_fast_(hash ^ r->v[q->present[i]]);
    return (uint32_t)(hash >> 32);
}

/* Of the entry of that number, as it is now. */
NPUPROF_OWN_ static uint32_t npuprof_npu_hash_entry_(npuprof_npu *npu, const npuprof_npu_queue_ *q, uint64_t number)
{
    npuprof_npu_record_ r;
    memset(&r, 0, sizeof r);
    npuprof_npu_copy_entry_(npu, q, npuprof_npu_entry_at_(q, number), &r);
    return npuprof_npu_hash_record_(q, &r);
}

/* Counts entries that are lost in front of the next one. */
NPUPROF_OWN_ static void npuprof_npu_count_gap_(npuprof_npu *npu, npuprof_npu_queue_ *q, uint64_t count)
{
    if (count) {
        q->gap = true;
        npu->gap_ticket_ = NPUPROF_LOAD_(&npu->tickets_);
    }
    npuprof_npu_count_records_(npu, NPUPROF_RECORDS_OVERWRITTEN, count);
}

/* Whether it may come round unseen, and a look at the entry before the next one costs no load of the BAR. */
NPUPROF_OWN_ static bool npuprof_npu_may_come_round_(const npuprof_npu_queue_ *q)
{
    return q->is.memory && q->rule->period && q->rule->period(q);
}

/* Remembers the entry before the next one, as it is now. */
NPUPROF_OWN_ static void npuprof_npu_remember_(npuprof_npu *npu, npuprof_npu_queue_ *q)
{
    if (!npuprof_npu_may_come_round_(q)) return;
    q->read_end = q->next + 1;
    q->read_hash = npuprof_npu_hash_entry_(npu, q, q->next + q->is.count - 1);
}

/* Whether that entry is another one now: the device came round. */
NPUPROF_OWN_ static bool npuprof_npu_came_round_(npuprof_npu *npu, npuprof_npu_queue_ *q)
{
    const uint32_t hash = q->read_hash;
    if (!npuprof_npu_may_come_round_(q)) return false;
    const bool known = q->read_end == q->next + 1;
    npuprof_npu_remember_(npu, q);
    return known && q->read_hash != hash;
}
/* ==== src/npu/host/ready.h ========================================================= >>npu/host/ready ==== */

/* How an entry that tells itself that it is there is copied, for every such rule; and the number that it
   carries. May not know what a value means.

   An entry may change while it is copied: the word that says "ready" is read before and after. If it changed,
   the entry is copied once more, and lost if it changed again. */

/* Is there nothing but zeros in an entry? */
NPUPROF_OWN_ static bool npuprof_npu_is_blank_(npuprof_npu *npu, const npuprof_npu_queue_ *q,
                                  const volatile unsigned char *entry)
{
    for (unsigned i = 0; i < q->word_count; i++)
        if (npuprof_npu_load_entry_word_(npu, q, entry, i)) return false;
    return true;
}

/* The bits in which the sequence field and the number of an entry must agree. */
NPUPROF_OWN_ static uint64_t npuprof_npu_sequence_mask_(const npuprof_npu_queue_ *q)
{
    const uint64_t mask = npuprof_npu_mask_(npuprof_npu_bits_at_(q, NPUPROF_NPU_AT_SEQUENCE_));
    const npuprof_npu_index *x = &q->is.producer;
    if (!q->rule || !q->rule->is_announced) return mask;
    if (x->unit == NPUPROF_NPU_INDEX_COUNT) return npuprof_min_(mask, npuprof_npu_mask_(x->bits));
    if (x->unit != NPUPROF_NPU_INDEX_BYTES || x->bits >= 32) return mask;
    return npuprof_min_(mask, npuprof_npu_mask_(x->bits) / q->is.entry_bytes);
}

/* After how many entries a sequence shows the same again; 0: not while anybody lives. */
NPUPROF_OWN_ static uint64_t npuprof_npu_sequence_period_(const npuprof_npu_queue_ *q)
{
    const uint64_t mask = npuprof_npu_sequence_mask_(q);
    return mask < UINT32_MAX ? mask + 1 : 0;
}

/* The least entry number that a sequence shows as `low`, and that has the same remainder by `step` as
   `place`. UINT64_MAX: there is none. */
NPUPROF_OWN_ static uint64_t npuprof_npu_number_of_(const npuprof_npu_queue_ *q, uint64_t low, uint64_t place,
                                       uint64_t step)
{
    const uint64_t period = npuprof_npu_sequence_period_(q), tries = period ? step : 1;
    uint64_t number = low & npuprof_npu_sequence_mask_(q);
    for (uint64_t i = 0; i < tries; i++, number += period)
        if (number % step == place % step) return number;
    return UINT64_MAX;
}

/* How many entries, whole laps, the device is ahead of the entry before `next`, by the sequence there: at
   least so many. Why a half: numbers further on are those of a device that began anew. */
NPUPROF_OWN_ static uint64_t npuprof_npu_laps_ahead_(npuprof_npu *npu, const npuprof_npu_queue_ *q, uint64_t next)
{
    const uint64_t mask = npuprof_npu_sequence_mask_(q);
    const volatile unsigned char *const entry = npuprof_npu_entry_at_(q, next + q->is.count - 1);
    const uint64_t shown = npuprof_npu_load_value_(npu, q, entry, NPUPROF_NPU_AT_SEQUENCE_);
    const uint64_t ahead = npuprof_npu_number_of_(q, shown - q->is.sequence_first - next + 1, 0, q->is.count);
    if (!ahead || ahead == UINT64_MAX || npuprof_npu_is_blank_(npu, q, entry)) return 0;
    return npuprof_npu_sequence_period_(q) || ahead <= mask / 2 ? ahead : 0;
}

/* What lies so many laps back is overwritten. */
NPUPROF_OWN_ static void npuprof_npu_pass_laps_(npuprof_npu *npu, npuprof_npu_queue_ *q)
{
    const uint64_t ahead = npuprof_npu_laps_ahead_(npu, q, q->next), count = q->is.count;
    if (ahead <= count) return;
    npuprof_npu_count_gap_(npu, q, ahead - count);
    q->next += ahead - count;
    q->read_end = q->next + 1;
}

NPUPROF_OWN_ static bool npuprof_npu_is_there_(npuprof_npu *npu, const npuprof_npu_queue_ *q, uint64_t number)
{
    uint64_t word, gap;
    return q->rule->is_there(npu, q, number, &word, &gap) == NPUPROF_NPU_ENTRY_GOOD_;
}

/* Copies an entry if it is there. */
NPUPROF_OWN_ static int npuprof_npu_copy_one_(npuprof_npu *npu, const npuprof_npu_queue_ *q, uint64_t number,
                                 npuprof_npu_record_ *record, uint64_t *gap)
{
    for (int i = 0; i < 2; i++) {
        uint64_t before, after;
        *gap = 0;
        const int is = q->rule->is_there(npu, q, number, &before, gap);
        if (is == NPUPROF_NPU_ENTRY_LATER_) return i ? NPUPROF_NPU_ENTRY_LOST_ : is;
        if (is != NPUPROF_NPU_ENTRY_GOOD_) return is;
        npuprof_npu_copy_entry_(npu, q, npuprof_npu_entry_at_(q, number), record);
        const int now = q->rule->is_there(npu, q, number, &after, gap);
        if (now == NPUPROF_NPU_ENTRY_GOOD_ && after == before) return now;
    }
    return NPUPROF_NPU_ENTRY_LOST_;
}

/* Where reading ends for now. Why a lap: a device that is faster than this must not hold it up. */
NPUPROF_OWN_ static bool npuprof_npu_begin_asked_(npuprof_npu *npu, npuprof_npu_queue_ *q, npuprof_npu_reading_ *reading)
{
    (void)npu;
    reading->producer = q->next + q->is.count;
    return true;
}

/* Copies a batch of entries that are asked one by one. */
NPUPROF_OWN_ static bool npuprof_npu_copy_asked_(npuprof_npu *npu, npuprof_npu_queue_ *q, npuprof_npu_reading_ *reading)
{
    const uint64_t end = npuprof_min_(reading->producer - q->next, NPUPROF_NPU_BATCH_);
    while (reading->count < end) {
        const unsigned i = reading->count;
        int fate = npuprof_npu_copy_one_(npu, q, q->next + i, &reading->batch[i], &reading->gap[i]);
        if (q->rule->judge) fate = q->rule->judge(npu, q, reading, i, fate);
        if (fate == NPUPROF_NPU_ENTRY_LATER_) break;
        reading->fate[i] = (uint8_t)fate;
        reading->count++;
        if (fate == NPUPROF_NPU_ENTRY_LAPPED_) break;
    }
    return reading->count != 0;
}
/* ==== src/npu/host/ready_producer.h ======================================= >>npu/host/ready_producer ==== */

/* READY_PRODUCER: an index says how far the device is. It is read again behind each batch of copies: what the
   device may have come round to is lost. Owns `index` of an npuprof_npu_queue_, as index.h reads it. */

/* Whether the producer index tells a slot, and no laps. */
NPUPROF_OWN_ static bool npuprof_npu_tells_slot_(const npuprof_npu_index *x)
{
    return (x->unit == NPUPROF_NPU_INDEX_SLOT || x->unit == NPUPROF_NPU_INDEX_BYTE_OFFSET) && !x->has_laps;
}

/* Whether entries tell which lap that slot is of. */
NPUPROF_OWN_ static bool npuprof_npu_is_numbered_slot_(const npuprof_npu_queue_ *q)
{
    return npuprof_npu_tells_slot_(&q->is.producer) && npuprof_npu_has_(q, NPUPROF_NPU_AT_SEQUENCE_);
}

NPUPROF_OWN_ static uint64_t npuprof_npu_producer_period_(const npuprof_npu_queue_ *q)
{
    const npuprof_npu_index *const x = &q->is.producer;
    if (npuprof_npu_is_numbered_slot_(q)) return npuprof_npu_sequence_period_(q);
    if (npuprof_npu_tells_slot_(x)) return (x->has_wrap ? 2 : 1) * (uint64_t)q->is.count;
    if (x->has_laps || q->index.mask >= UINT32_MAX) return 0;
    return (q->index.mask + 1) / (x->unit == NPUPROF_NPU_INDEX_BYTES ? q->is.entry_bytes : 1);
}

/* The first reading of an index that may have come round before: the newest entry tells the number of the
   next, if it has one and that agrees with the index. */
NPUPROF_OWN_ static void npuprof_npu_number_index_(npuprof_npu *npu, npuprof_npu_queue_ *q, uint64_t *producer)
{
    const npuprof_npu_index *x = &q->is.producer;
    const uint64_t count = q->is.count, unit = q->is.entry_bytes;
    const bool is_slot = npuprof_npu_tells_slot_(x), in_bytes = x->unit == NPUPROF_NPU_INDEX_BYTES;
    npuprof_npu_record_ last;
    if ((!is_slot && !in_bytes) || !npuprof_npu_has_(q, NPUPROF_NPU_AT_SEQUENCE_)) return;
    memset(&last, 0, sizeof last);
    if (npuprof_npu_is_blank_(npu, q, npuprof_npu_entry_at_(q, *producer + count - 1))) return;
    npuprof_npu_copy_entry_(npu, q, npuprof_npu_entry_at_(q, *producer + count - 1), &last);
    const uint64_t number = npuprof_npu_number_of_(q, last.v[NPUPROF_NPU_AT_SEQUENCE_] -
                                                      q->is.sequence_first + 1, *producer, count);
    if (number > UINT64_MAX / 2 / unit) return;
    const uint64_t rest = (q->index.last - number * unit) & q->index.mask;      /* of a cut record */
    if (in_bytes && rest >= unit) return;
    q->index.last = in_bytes ? number * unit + rest : number;
    *producer = number;
}

/* Whether the last slot is another one than at open. */
NPUPROF_OWN_ static bool npuprof_npu_has_last_changed_(npuprof_npu *npu, const npuprof_npu_queue_ *q)
{
    return npuprof_npu_hash_entry_(npu, q, q->is.count - 1) != q->index.silent;
}

/* The first laps of an index that showed none at open, and may have hidden one: if its last entry is as it
   was, it did, and what lay there is older. Two laps on, nothing tells. */
NPUPROF_OWN_ static void npuprof_npu_take_hidden_lap_(npuprof_npu *npu, npuprof_npu_queue_ *q, uint64_t producer)
{
    const bool unknown = producer >= 2 * (uint64_t)q->is.count;
    if (!unknown && npuprof_npu_has_last_changed_(npu, q)) return;
    npuprof_npu_count_records_(npu, NPUPROF_RECORDS_LOSS_UNKNOWN, unknown);
    q->next = q->is.count;
}

/* Reads the producer index. The first time, the newest entry tells the number of a slot, if it has one.
   Results as npuprof_npu_read_index_(). */
NPUPROF_OWN_ static npuprof_result npuprof_npu_read_producer_(npuprof_npu *npu, npuprof_npu_queue_ *q, uint64_t *producer)
{
    const uint64_t count = q->is.count;
    const bool first = !q->numbered, hides = q->index.was_empty && q->index.may_be_full;
    if (q->index.was_empty && npuprof_npu_has_last_changed_(npu, q)) q->index.was_empty = false;
    const npuprof_result result = npuprof_npu_read_index_(npu, &q->is.producer, &q->index, producer);
    if (*producer) q->index.was_empty = false;
    if (!q->index.known) return result;
    if (first) {
        q->numbered = true;
        npuprof_npu_number_index_(npu, q, producer);
        q->next = *producer;
        npuprof_npu_remember_(npu, q);
    } else if (result == NPUPROF_ERR_NPU_RING && *producer < q->next) {
        q->next = *producer > count ? *producer - count : 0;     /* the device counts from 0 again */
    } else if (hides && *producer > count) {
        npuprof_npu_take_hidden_lap_(npu, q, *producer);
    }
    return result;
}

NPUPROF_OWN_ static npuprof_result npuprof_npu_find_producer_(npuprof_npu *npu, npuprof_npu_queue_ *q)
{
    uint64_t producer;
    if (q->is.producer.has_laps && !q->is.producer.laps_first) {
        q->index.silent = npuprof_npu_hash_entry_(npu, q, q->is.count - 1);
        q->index.was_empty = true;
        q->index.may_be_full = !npuprof_npu_is_blank_(npu, q, npuprof_npu_entry_at_(q, q->is.count - 1));
    }
    return npuprof_npu_read_producer_(npu, q, &producer);
}

/* The device came round, and what the index shows does not tell how often: once at least, if what is new is
   less than half of the ring. Why half: a device may write entries before it announces them. With numbers in
   the entries, what they tell is counted already. */
NPUPROF_OWN_ static void npuprof_npu_pass_period_(npuprof_npu *npu, npuprof_npu_queue_ *q, uint64_t *producer)
{
    const uint64_t period = npuprof_npu_producer_period_(q), fresh = *producer - q->next;
    npuprof_npu_count_records_(npu, NPUPROF_RECORDS_LOSS_UNKNOWN, 1);
    if (fresh > q->is.count / 2 || npuprof_npu_is_numbered_slot_(q)) return;
    q->index.last += period * (q->is.producer.unit == NPUPROF_NPU_INDEX_BYTES ? q->is.entry_bytes : 1);
    *producer += period;
}

/* The whole laps that a slot does not show, by the number of the newest entry. Why the index again: if it
   went on meanwhile, that may be the number of a lap that it does not show yet. */
NPUPROF_OWN_ static void npuprof_npu_add_laps_(npuprof_npu *npu, npuprof_npu_queue_ *q, uint64_t *producer)
{
    const uint64_t ahead = npuprof_npu_laps_ahead_(npu, q, *producer), was = *producer;
    if (!ahead || npuprof_npu_read_producer_(npu, q, producer) != NPUPROF_OK || *producer != was) return;
    q->index.last += ahead;
    *producer += ahead;
}

NPUPROF_OWN_ static bool npuprof_npu_begin_producer_(npuprof_npu *npu, npuprof_npu_queue_ *q,
                                        npuprof_npu_reading_ *reading)
{
    const bool came_round = npuprof_npu_came_round_(npu, q);
    reading->result = npuprof_npu_read_producer_(npu, q, &reading->producer);
    if (reading->result == NPUPROF_ERR_NPU_RING)
        npuprof_npu_count_records_(npu, NPUPROF_RECORDS_LOSS_UNKNOWN, 1);
    else if (reading->result == NPUPROF_OK && npuprof_npu_is_numbered_slot_(q) &&
             (came_round || !npuprof_npu_producer_period_(q)))
        npuprof_npu_add_laps_(npu, q, &reading->producer);
    if (came_round && reading->result == NPUPROF_OK)
        npuprof_npu_pass_period_(npu, q, &reading->producer);
    return reading->result == NPUPROF_OK || reading->result == NPUPROF_ERR_NPU_RING;
}

/* The entry of that number, copied before the index was `newest`. LATER: it is not written yet, although the
   index announces it. LAPPED: the device went round by *gap entries more than the index shows. */
NPUPROF_OWN_ static int npuprof_npu_judge_announced_(const npuprof_npu_queue_ *q, const npuprof_npu_record_ *r,
                                        uint64_t sequence_before, uint64_t number, uint64_t newest,
                                        uint64_t *gap)
{
    const uint64_t behind = newest - number, count = q->is.count;
    if (!npuprof_npu_has_(q, NPUPROF_NPU_AT_SEQUENCE_))
        return behind < count ? NPUPROF_NPU_ENTRY_GOOD_ : NPUPROF_NPU_ENTRY_LOST_;
    if (behind > count) return NPUPROF_NPU_ENTRY_LOST_;
    const uint64_t mask = npuprof_npu_sequence_mask_(q);
    const uint64_t ahead = (sequence_before - (number + q->is.sequence_first)) & mask;
    if (ahead == 0 && r->v[NPUPROF_NPU_AT_SEQUENCE_] == sequence_before) return NPUPROF_NPU_ENTRY_GOOD_;
    const bool overwritten = ahead && ahead <= mask / 2 && ahead % count == 0;
    if (!overwritten && behind < count) return NPUPROF_NPU_ENTRY_LATER_;
    /* Why not LAPPED a whole lap behind: the device may just be writing the next lap's entry there. */
    if (!overwritten || behind == count || !npuprof_npu_tells_slot_(&q->is.producer))
        return NPUPROF_NPU_ENTRY_LOST_;
    *gap = ahead;
    return NPUPROF_NPU_ENTRY_LAPPED_;
}

/* Copies a batch of announced entries. False: the index is bad. */
NPUPROF_OWN_ static bool npuprof_npu_copy_announced_(npuprof_npu *npu, npuprof_npu_queue_ *q,
                                        npuprof_npu_reading_ *reading)
{
    uint64_t before[NPUPROF_NPU_BATCH_], newest = 0;
    const bool numbered = npuprof_npu_has_(q, NPUPROF_NPU_AT_SEQUENCE_);
    if (reading->producer - q->next > q->is.count) {
        const uint64_t oldest = reading->producer - q->is.count;
        npuprof_npu_count_gap_(npu, q, oldest - q->next);
        q->next = oldest;
    }
    reading->count = (unsigned)npuprof_min_(reading->producer - q->next, NPUPROF_NPU_BATCH_);
    for (unsigned i = 0; i < reading->count; i++) {
        const volatile unsigned char *const entry = npuprof_npu_entry_at_(q, q->next + i);
        before[i] = numbered ? npuprof_npu_load_value_(npu, q, entry, NPUPROF_NPU_AT_SEQUENCE_) : 0;
        npuprof_npu_copy_entry_(npu, q, entry, &reading->batch[i]);
        if (numbered)
            reading->batch[i].v[NPUPROF_NPU_AT_SEQUENCE_] =
                npuprof_npu_load_value_(npu, q, entry, NPUPROF_NPU_AT_SEQUENCE_);
    }
    const npuprof_result again = npuprof_npu_read_producer_(npu, q, &newest);
    if (again != NPUPROF_OK) {
        if (reading->result == NPUPROF_OK) reading->result = again;
        return false;
    }
    for (unsigned i = 0; i < reading->count; i++) {
        reading->gap[i] = 0;
        reading->fate[i] =
            (uint8_t)npuprof_npu_judge_announced_(q, &reading->batch[i], before[i], q->next + i, newest,
                                                  &reading->gap[i]);
    }
    return true;
}
/* ==== src/npu/host/ready_valid.h ============================================= >>npu/host/ready_valid ==== */

/* READY_VALID: an entry's field `valid` equals valid_value, and somebody else clears it. Where nobody does,
   all stay valid, and only what they hold tells. Owns stuck, run, blank_at, searched_at and seen_at of an
   npuprof_npu_queue_, and seen_ of an npuprof_npu. */

NPUPROF_OWN_ static const char *npuprof_npu_check_valid_(const npuprof_npu_queue_ *q)
{
    return npuprof_npu_bits_at_(q, NPUPROF_NPU_AT_VALID_) > 32 ? "has more than 32 bits" : NULL;
}

NPUPROF_OWN_ static int npuprof_npu_valid_is_there_(npuprof_npu *npu, const npuprof_npu_queue_ *q, uint64_t number,
                                       uint64_t *word, uint64_t *gap)
{
    (void)gap;
    *word = npuprof_npu_load_value_(npu, q, npuprof_npu_entry_at_(q, number), NPUPROF_NPU_AT_VALID_);
    return *word == q->is.valid_value ? NPUPROF_NPU_ENTRY_GOOD_ : NPUPROF_NPU_ENTRY_LATER_;
}

/* Entries that the numbers of a device's entries say are missing before this one. False: it has an old
   number, so it was read before. A device that numbers nothing shows 0 always. */
NPUPROF_OWN_ static bool npuprof_npu_follows_(npuprof_npu_queue_ *q, const npuprof_npu_record_ *r, uint64_t *missing)
{
    *missing = 0;
    if (!npuprof_npu_has_(q, NPUPROF_NPU_AT_SEQUENCE_)) return true;
    const uint64_t now = r->v[NPUPROF_NPU_AT_SEQUENCE_], mask = npuprof_npu_sequence_mask_(q);
    const uint64_t ahead = (now - q->last_sequence - 1) & mask;
    const bool numbered = q->has_sequence && (now || q->last_sequence);
    if (numbered && ahead > mask / 2) return false;
    if (numbered) *missing = ahead;
    q->last_sequence = now;
    q->has_sequence = true;
    return true;
}

/* Whether no entry of the ring is cleared. */
NPUPROF_OWN_ static bool npuprof_npu_are_all_valid_(npuprof_npu *npu, const npuprof_npu_queue_ *q)
{
    for (uint64_t i = 0; i < q->is.count; i++)
        if (!npuprof_npu_is_there_(npu, q, q->next + i)) return false;
    return true;
}

/* May the entry be one of the lap before, which was read? Not if it was seen cleared since. */
NPUPROF_OWN_ static bool npuprof_npu_may_be_old_(const npuprof_npu_queue_ *q, uint64_t number)
{
    return number >= q->is.count && q->blank_at != number + 1;
}

/* Is the entry that was copied one entry, not the old one and the new one mixed? Why again: it was valid
   before and after the copy, but it may have been cleared and written in between. What changed meanwhile is
   another one in a second copy. */
NPUPROF_OWN_ static bool npuprof_npu_is_one_(npuprof_npu *npu, const npuprof_npu_queue_ *q, uint64_t number, uint32_t hash)
{
    npuprof_npu_record_ again;
    uint64_t gap;
    if (!npuprof_npu_may_be_old_(q, number)) return true;
    memset(&again, 0, sizeof again);
    return npuprof_npu_copy_one_(npu, q, number, &again, &gap) == NPUPROF_NPU_ENTRY_GOOD_ &&
           npuprof_npu_hash_record_(q, &again) == hash;
}

/* An entry that is valid: is it a new one? If nobody clears them, all stay valid, and only what they hold
   tells. */
NPUPROF_OWN_ static int npuprof_npu_judge_valid_(npuprof_npu *npu, npuprof_npu_queue_ *q, npuprof_npu_reading_ *reading,
                                    unsigned i, int fate)
{
    const npuprof_npu_record_ *const r = &reading->batch[i];
    const uint64_t number = q->next + i;
    /* Cleared while it was copied: of the lap before, it is not lost. */
    if (fate == NPUPROF_NPU_ENTRY_LOST_ && npuprof_npu_may_be_old_(q, number))
        fate = NPUPROF_NPU_ENTRY_LATER_;
    if (fate == NPUPROF_NPU_ENTRY_LATER_) {
        q->run = q->stuck = false;
        q->blank_at = number + 1;
    }
    if (fate != NPUPROF_NPU_ENTRY_GOOD_) return fate;
    uint32_t *const seen = q->seen_at < NPUPROF_NPU_SEEN_ ? &npu->seen_[q->seen_at + number % q->is.count]
                                                          : NULL;
    const uint32_t hash = npuprof_npu_hash_record_(q, r);
    const bool again = seen && *seen == hash && number >= q->is.count;
    if (!q->stuck && (q->run >= q->is.count || (again && npuprof_npu_are_all_valid_(npu, q)))) {
        q->stuck = true;
        reading->result = NPUPROF_ERR_NPU_RING;
    }
    if (q->stuck && (!seen || *seen == hash)) return NPUPROF_NPU_ENTRY_LATER_;
    if (!npuprof_npu_is_one_(npu, q, number, hash)) return NPUPROF_NPU_ENTRY_LATER_;
    if (!npuprof_npu_follows_(q, r, &reading->gap[i])) return NPUPROF_NPU_ENTRY_LATER_;
    if (seen) *seen = hash;
    q->run++;
    return NPUPROF_NPU_ENTRY_GOOD_;
}

/* Finds out where the device writes: the first valid entry behind one that is not. False: none is valid. */
NPUPROF_OWN_ static bool npuprof_npu_search_valid_(npuprof_npu *npu, npuprof_npu_queue_ *q, bool behind)
{
    const uint64_t count = q->is.count;
    bool last = npuprof_npu_is_there_(npu, q, count - 1);
    for (uint64_t i = 0; i < count; i++) {
        const bool now = npuprof_npu_is_there_(npu, q, i);
        if (behind ? last && !now : !last && now) {
            q->next = i;
            return true;
        }
        last = now;
    }
    return false;
}

NPUPROF_OWN_ static npuprof_result npuprof_npu_find_valid_(npuprof_npu *npu, npuprof_npu_queue_ *q)
{
    q->numbered = npuprof_npu_search_valid_(npu, q, true);
    return NPUPROF_OK;
}

/* If the next entry was cleared before it was read, valid ones lie further on, and none right before it: goes
   on there, and what it passes is lost. Entries are cleared in order. At most 100 times a second, since it
   looks at the whole ring. */
NPUPROF_OWN_ static void npuprof_npu_pass_cleared_(npuprof_npu *npu, npuprof_npu_queue_ *q)
{
    const uint64_t count = q->is.count, now = npuprof_npu_ticks_();
    uint64_t ahead = 1;
    if (npuprof_npu_is_there_(npu, q, q->next) || npuprof_npu_is_there_(npu, q, q->next + count - 1)) return;
    if (q->searched_at && npuprof_saturating_sub_(now, q->searched_at) < npu->second_ / 100) return;
    q->searched_at = now;
    while (ahead < count && !npuprof_npu_is_there_(npu, q, q->next + ahead)) ahead++;
    /* Why again: the device may have written it meanwhile. */
    if (ahead == count || npuprof_npu_is_there_(npu, q, q->next)) return;
    if (!npuprof_npu_has_(q, NPUPROF_NPU_AT_SEQUENCE_)) npuprof_npu_count_gap_(npu, q, ahead);
    q->next += ahead;
}

NPUPROF_OWN_ static bool npuprof_npu_begin_valid_(npuprof_npu *npu, npuprof_npu_queue_ *q, npuprof_npu_reading_ *reading)
{
    if (q->numbered) npuprof_npu_pass_cleared_(npu, q);
    else q->numbered = npuprof_npu_search_valid_(npu, q, false);
    return npuprof_npu_begin_asked_(npu, q, reading);
}
/* ==== src/npu/host/ready_sequence.h ======================================= >>npu/host/ready_sequence ==== */

/* READY_SEQUENCE: an entry's field `sequence` shows its number, so it tells laps apart, too: with less than
   32 bits, not how often the numbers came round. */

NPUPROF_OWN_ static const char *npuprof_npu_check_sequence_(const npuprof_npu_queue_ *q)
{
    const uint64_t numbers = npuprof_npu_mask_(npuprof_npu_bits_at_(q, NPUPROF_NPU_AT_SEQUENCE_));
    return numbers / 2 < q->is.count ? "has no numbers for more than two laps: it needs more bits" : NULL;
}

/* What the number says that is in an entry where that one is expected. */
NPUPROF_OWN_ static int npuprof_npu_sequence_is_there_(npuprof_npu *npu, const npuprof_npu_queue_ *q, uint64_t number,
                                          uint64_t *word, uint64_t *gap)
{
    const volatile unsigned char *const entry = npuprof_npu_entry_at_(q, number);
    const uint64_t mask = npuprof_npu_sequence_mask_(q);
    *word = npuprof_npu_load_value_(npu, q, entry, NPUPROF_NPU_AT_SEQUENCE_);
    const uint64_t ahead = (*word - (number + q->is.sequence_first)) & mask;
    if (ahead == 0) {                    /* Why: memory that was never written may show the number 0. */
        if (*word == 0 && npuprof_npu_is_blank_(npu, q, entry)) return NPUPROF_NPU_ENTRY_LATER_;
        return NPUPROF_NPU_ENTRY_GOOD_;
    }
    if (ahead > mask / 2 || ahead % q->is.count) return NPUPROF_NPU_ENTRY_LATER_;
    *gap = ahead - (q->is.count - 1);    /* the newest ones are still there */
    return NPUPROF_NPU_ENTRY_LAPPED_;
}

/* The number behind the newest entry, by the sequence numbers in the ring. */
NPUPROF_OWN_ static uint64_t npuprof_npu_search_sequence_(npuprof_npu *npu, const npuprof_npu_queue_ *q)
{
    const uint64_t count = q->is.count, mask = npuprof_npu_sequence_mask_(q);
    for (uint64_t i = 0; i < count; i++) {
        const volatile unsigned char *const entry = npuprof_npu_entry_at_(q, i);
        const volatile unsigned char *const after = npuprof_npu_entry_at_(q, i + 1);
        const uint64_t word = npuprof_npu_load_value_(npu, q, entry, NPUPROF_NPU_AT_SEQUENCE_);
        const uint64_t next = npuprof_npu_load_value_(npu, q, after, NPUPROF_NPU_AT_SEQUENCE_);
        if (((next - word) & mask) == 1 || npuprof_npu_is_blank_(npu, q, entry)) continue;
        const uint64_t number = npuprof_npu_number_of_(q, word - q->is.sequence_first, i, count);
        if (number != UINT64_MAX) return number + 1;
    }
    return 0;
}

NPUPROF_OWN_ static npuprof_result npuprof_npu_find_sequence_(npuprof_npu *npu, npuprof_npu_queue_ *q)
{
    q->next = npuprof_npu_search_sequence_(npu, q);
    npuprof_npu_remember_(npu, q);
    return NPUPROF_OK;
}

/* If the device came round, a narrow number does not tell how often. */
NPUPROF_OWN_ static bool npuprof_npu_begin_sequence_(npuprof_npu *npu, npuprof_npu_queue_ *q,
                                        npuprof_npu_reading_ *reading)
{
    if (npuprof_npu_came_round_(npu, q)) {
        npuprof_npu_count_records_(npu, NPUPROF_RECORDS_LOSS_UNKNOWN, 1);
        npuprof_npu_pass_laps_(npu, q);
    }
    return npuprof_npu_begin_asked_(npu, q, reading);
}
/* ==== src/npu/host/ready_phase.h ============================================= >>npu/host/ready_phase ==== */

/* READY_PHASE: an entry's bit `phase` equals phase_first in even laps, and not in odd ones. With `sequence`,
   the number of an entry tells the laps apart. */

NPUPROF_OWN_ static const char *npuprof_npu_check_phase_(const npuprof_npu_queue_ *q)
{
    return npuprof_npu_bits_at_(q, NPUPROF_NPU_AT_PHASE_) > 1 ? "has more than 1 bit" : NULL;
}

NPUPROF_OWN_ static uint64_t npuprof_npu_phase_period_(const npuprof_npu_queue_ *q)
{
    if (npuprof_npu_has_(q, NPUPROF_NPU_AT_SEQUENCE_)) return npuprof_npu_sequence_period_(q);
    return 2 * (uint64_t)q->is.count;
}

/* The phase of the entry of that number. */
NPUPROF_OWN_ static uint64_t npuprof_npu_phase_of_(const npuprof_npu_queue_ *q, uint64_t number)
{
    return (q->is.phase_first ^ number / q->is.count) & 1;
}

NPUPROF_OWN_ static int npuprof_npu_phase_is_there_(npuprof_npu *npu, const npuprof_npu_queue_ *q, uint64_t number,
                                       uint64_t *word, uint64_t *gap)
{
    uint64_t shown;
    *word = npuprof_npu_load_value_(npu, q, npuprof_npu_entry_at_(q, number), NPUPROF_NPU_AT_PHASE_);
    if (*word != npuprof_npu_phase_of_(q, number)) return NPUPROF_NPU_ENTRY_LATER_;
    if (!npuprof_npu_has_(q, NPUPROF_NPU_AT_SEQUENCE_)) return NPUPROF_NPU_ENTRY_GOOD_;
    /* Why only laps: the bit says that it is there; the number, that it is two laps further. */
    const int is = npuprof_npu_sequence_is_there_(npu, q, number, &shown, gap);
    return is == NPUPROF_NPU_ENTRY_LAPPED_ ? is : NPUPROF_NPU_ENTRY_GOOD_;
}

/* The number behind the newest entry: the least one, not before `from`, that the phases agree with. */
NPUPROF_OWN_ static uint64_t npuprof_npu_search_phase_(npuprof_npu *npu, const npuprof_npu_queue_ *q, uint64_t from)
{
    const uint64_t count = q->is.count;
    uint64_t edge = 1;
    const uint64_t first =
        npuprof_npu_load_value_(npu, q, npuprof_npu_entry_at_(q, 0), NPUPROF_NPU_AT_PHASE_);
    while (edge < count && npuprof_npu_load_value_(npu, q, npuprof_npu_entry_at_(q, edge),
                                                   NPUPROF_NPU_AT_PHASE_) == first) edge++;
    if (from == 0 && edge == count && first != npuprof_npu_phase_of_(q, 0)) return 0;
    for (uint64_t lap = from / count;; lap++) {
        const uint64_t end = lap * count + edge;
        if (first == npuprof_npu_phase_of_(q, lap * count) && end >= from) return end;
    }
}

/* What the newest entry's number says of the next one, if it has one and that agrees with the phases. Why
   also of 0: after an even number of laps, all phases are those of a ring that was never written. */
NPUPROF_OWN_ static uint64_t npuprof_npu_number_phase_(npuprof_npu *npu, const npuprof_npu_queue_ *q, uint64_t next)
{
    const uint64_t two_laps = 2 * (uint64_t)q->is.count, place = next + two_laps - 1;
    const volatile unsigned char *const entry = npuprof_npu_entry_at_(q, place);
    if (!npuprof_npu_has_(q, NPUPROF_NPU_AT_SEQUENCE_) || npuprof_npu_is_blank_(npu, q, entry)) return next;
    const uint64_t shown = npuprof_npu_load_value_(npu, q, entry, NPUPROF_NPU_AT_SEQUENCE_);
    const uint64_t newest = npuprof_npu_number_of_(q, shown - q->is.sequence_first, place, two_laps);
    return newest != UINT64_MAX ? newest + 1 : next;
}

NPUPROF_OWN_ static npuprof_result npuprof_npu_find_phase_(npuprof_npu *npu, npuprof_npu_queue_ *q)
{
    q->next = npuprof_npu_number_phase_(npu, q, npuprof_npu_search_phase_(npu, q, 0));
    npuprof_npu_remember_(npu, q);
    return NPUPROF_OK;
}

/* Whether the two entries before the next one have phases as after an even number of laps. Why two: one may
   be half written. */
NPUPROF_OWN_ static bool npuprof_npu_do_phases_fit_(npuprof_npu *npu, const npuprof_npu_queue_ *q)
{
    for (unsigned back = 1; back <= 2; back++) {
        const uint64_t number = q->next + 2 * (uint64_t)q->is.count - back;
        if (npuprof_npu_load_value_(npu, q, npuprof_npu_entry_at_(q, number), NPUPROF_NPU_AT_PHASE_) !=
            npuprof_npu_phase_of_(q, number)) return false;
    }
    return true;
}

/* If the device came round, nothing tells how often; by an even number of laps, all of the first two are
   lost. Why the phases again: the device may have written one more entry between the look at them and the
   copy. */
NPUPROF_OWN_ static bool npuprof_npu_begin_phase_(npuprof_npu *npu, npuprof_npu_queue_ *q, npuprof_npu_reading_ *reading)
{
    const uint64_t period = npuprof_npu_phase_period_(q);
    const bool fitted = npuprof_npu_may_come_round_(q) && npuprof_npu_do_phases_fit_(npu, q);
    if (npuprof_npu_came_round_(npu, q)) {
        npuprof_npu_count_records_(npu, NPUPROF_RECORDS_LOSS_UNKNOWN, 1);
        if (npuprof_npu_has_(q, NPUPROF_NPU_AT_SEQUENCE_)) {
            npuprof_npu_pass_laps_(npu, q);
        } else if (fitted && npuprof_npu_do_phases_fit_(npu, q)) {
            npuprof_npu_count_gap_(npu, q, period);
            q->next += period;
            q->read_end = q->next + 1;
        }
    }
    return npuprof_npu_begin_asked_(npu, q, reading);
}

/* The entry is not there. If the one before it has changed since it was read, the device has come round, and
   nothing of what lies between can be told apart: all of it is lost. */
NPUPROF_OWN_ static void npuprof_npu_check_lap_(npuprof_npu *npu, npuprof_npu_queue_ *q)
{
    if (npuprof_npu_has_(q, NPUPROF_NPU_AT_SEQUENCE_) && !npuprof_npu_phase_period_(q))
        npuprof_npu_pass_laps_(npu, q);
    const uint64_t before = q->next + 2 * (uint64_t)q->is.count - 1;
    const uint64_t last = npuprof_npu_load_value_(npu, q, npuprof_npu_entry_at_(q, before),
                                                  NPUPROF_NPU_AT_PHASE_);
    if (last == npuprof_npu_phase_of_(q, before)) return;
    const uint64_t end = npuprof_npu_search_phase_(npu, q, q->next);
    npuprof_npu_count_gap_(npu, q, end - q->next);
    q->next = end;
    npuprof_npu_remember_(npu, q);
}

NPUPROF_OWN_ static int npuprof_npu_judge_phase_(npuprof_npu *npu, npuprof_npu_queue_ *q, npuprof_npu_reading_ *reading,
                                    unsigned i, int fate)
{
    (void)reading;
    if (fate == NPUPROF_NPU_ENTRY_LATER_ && !i) npuprof_npu_check_lap_(npu, q);
    return fate;
}
/* ==== src/npu/host/rules.h ========================================================= >>npu/host/rules ==== */

/* The table of ready rules, and what is the same for each: a ring is found, read and copied by the functions
   of its own. May not know what a value means. */

/* By NPUPROF_NPU_READY_*. */
static const npuprof_npu_rule_ npuprof_npu_rules_[] = {
    { NPUPROF_NPU_VALUES_, false, NULL, true, false, NULL, npuprof_npu_producer_period_,
      npuprof_npu_find_producer_, npuprof_npu_begin_producer_, npuprof_npu_copy_announced_, NULL, NULL },
    { NPUPROF_NPU_AT_VALID_, true, "and READY_VALID belong together: give both, or none", false, true,
      npuprof_npu_check_valid_, NULL, npuprof_npu_find_valid_, npuprof_npu_begin_valid_,
      npuprof_npu_copy_asked_, npuprof_npu_valid_is_there_, npuprof_npu_judge_valid_ },
    { NPUPROF_NPU_AT_PHASE_, true, "and READY_PHASE belong together: give both, or none", false, false,
      npuprof_npu_check_phase_, npuprof_npu_phase_period_, npuprof_npu_find_phase_, npuprof_npu_begin_phase_,
      npuprof_npu_copy_asked_, npuprof_npu_phase_is_there_, npuprof_npu_judge_phase_ },
    { NPUPROF_NPU_AT_SEQUENCE_, false, "is missing, which READY_SEQUENCE needs", false, false,
      npuprof_npu_check_sequence_, npuprof_npu_sequence_period_, npuprof_npu_find_sequence_,
      npuprof_npu_begin_sequence_, npuprof_npu_copy_asked_, npuprof_npu_sequence_is_there_, NULL },
};
NPUPROF_ASSERT_(rules, sizeof npuprof_npu_rules_ / sizeof npuprof_npu_rules_[0] == NPUPROF_NPU_READY_COUNT_);

/* Does its rule remember the entries that were read? May be asked before the rule was checked. */
NPUPROF_OWN_ static bool npuprof_npu_remembers_entries_(const npuprof_npu_ring *r)
{
    const bool has_rule = !r->feed && (unsigned)r->ready < NPUPROF_NPU_READY_COUNT_;
    return has_rule && npuprof_npu_rules_[r->ready].is_cleared;
}

/* What to name in a sentence about a rule: the field that it needs, or itself. */
NPUPROF_OWN_ static const char *npuprof_npu_rule_key_(const npuprof_npu_rule_ *rule)
{
    return rule->field < NPUPROF_NPU_VALUES_ ? npuprof_npu_value_keys_[rule->field] : "ready";
}

/* Whether it cannot be read without touching the BAR. */
NPUPROF_OWN_ static bool npuprof_npu_is_in_bar_(const npuprof_npu_queue_ *q) { return !q->is.memory || q->index.in_bar; }

/* Finds out where a ring that was just opened is. */
NPUPROF_OWN_ static npuprof_result npuprof_npu_find_ring_(npuprof_npu *npu, npuprof_npu_queue_ *q)
{
    if (!q->base) return NPUPROF_OK;
    q->found = true;
    return q->rule->find(npu, q);
}

/* Begins to read a ring. False: nothing can be read. */
NPUPROF_OWN_ static bool npuprof_npu_begin_reading_(npuprof_npu *npu, npuprof_npu_queue_ *q, npuprof_npu_reading_ *reading)
{
    reading->result = NPUPROF_OK;
    reading->count = 0;
    reading->is_clear = false;
    if (!q->found) reading->result = npuprof_npu_find_ring_(npu, q);     /* it was off at open */
    reading->producer = q->next;
    if (reading->result != NPUPROF_OK && reading->result != NPUPROF_ERR_NPU_RING) return false;
    return q->rule->begin(npu, q, reading);
}

/* Copies the next batch. False: there is none. */
NPUPROF_OWN_ static bool npuprof_npu_copy_batch_(npuprof_npu *npu, npuprof_npu_queue_ *q, npuprof_npu_reading_ *reading)
{
    reading->count = 0;
    if (q->next == reading->producer) return false;
    if (!reading->is_clear) memset(reading->batch, 0, sizeof reading->batch);
    reading->is_clear = true;
    return q->rule->copy(npu, q, reading);
}
/* ==== src/npu/host/stamp.h ========================================================= >>npu/host/stamp ==== */

/* The clocks when a pass over records began: the host's, the device's, and both in the unit of a queue's
   stamps. May not know what an entry is. */

/* The clocks when a pass over records began. */
typedef struct npuprof_npu_now_ {
    bool known;                          /* the device's time is */
    uint64_t ticks, old_epoch_ticks;     /* of the device; its last ticks before this epoch */
    uint64_t open_ticks;                 /* at open, or before it */
    uint64_t old_epoch_host;             /* host ticks when those were read */
    uint64_t old_epoch_most;             /* the most that it may have shown in that epoch */
    uint64_t allowance;                  /* stamps may lie this many ticks after it */
    uint32_t epoch;
    uint64_t per_second;                 /* the most ticks that the counter makes in a second; 0: not known */
    uint64_t rate, rate_ppm;             /* ticks in a second, and by how much it may be off; 0: not known */
    uint64_t read_after;                 /* host ticks when `ticks` was over */
    uint64_t host, ns_per_4g;
    int64_t ns;                          /* `host` on the clock of npuprof_now_ns() */
} npuprof_npu_now_;

/* The same in the unit of a queue's stamps. */
typedef struct npuprof_npu_units_ {
    uint64_t now, allowance;
    uint64_t oldest;                     /* the first one of the epoch, or 0 */
    uint64_t per_second;
    uint64_t aged;                       /* host ticks that no record is older than; 0: not known */
    bool known;
} npuprof_npu_units_;

/* A pass over the records of one queue. */
typedef struct npuprof_npu_pass_ {
    npuprof_npu_now_ now;
    npuprof_npu_units_ units;
} npuprof_npu_pass_;

NPUPROF_OWN_ static bool npuprof_npu_is_scaled_(const npuprof_npu_ring *r)
{
    return r->scale_num != 1 || r->scale_den != 1;
}

/* A stamp that shows the counter's own ticks has no more bits than the counter: the rest means nothing. */
NPUPROF_OWN_ static void npuprof_npu_limit_stamps_(const npuprof_npu *npu, npuprof_npu_queue_ *q)
{
    const bool same = q->is.stamp_clock == NPUPROF_NPU_STAMP_COUNTER && !npuprof_npu_is_scaled_(&q->is) &&
                      !q->is.stamp_offset;
    q->stamp_bits = (uint8_t)(same ? npu->desc_.counter.bits : 64);
}

/* How many ticks of the counter one unit of a scaled stamp is, rounded up. */
NPUPROF_OWN_ static uint64_t npuprof_npu_unit_(const npuprof_npu_ring *r) { return r->scale_num / r->scale_den + 1; }

/* Sets the ticks of the counter in a second, as they are known best. Under the lock. */
NPUPROF_OWN_ static void npuprof_npu_set_rate_(const npuprof_npu *npu, npuprof_npu_now_ *now)
{
    const npuprof_anchor_ *const a = &npu->rate_from_, *const b = &npu->rate_to_;
    now->rate = npu->desc_.counter.hz;
    now->rate_ppm = 200;                 /* of a crystal that is as it is described */
    if (!npu->has_rate_ || (npu->coarse_rate_ && now->rate)) return;
    const uint64_t host = npuprof_anchor_middle_(b) - npuprof_anchor_middle_(a);
    const uint64_t rate = npuprof_mul_div_(npu->second_, b->device_ticks - a->device_ticks, host, false);
    const uint64_t ppm = 2 * (uint64_t)npu->desc_.max_rate_ppm + 2 +
        npuprof_mul_div_(npuprof_anchor_error_(a) + npuprof_anchor_error_(b), 1000000, host, true);
    const uint64_t apart = rate > now->rate ? rate - now->rate : now->rate - rate;
    if (ppm > now->rate_ppm && now->rate && apart <= npuprof_mul_div_(rate, ppm, 1000000, true)) return;
    now->rate = rate;
    now->rate_ppm = ppm;
}

/* Reads the host's clock, and the device's if the queue's stamps need it. Not OK: nothing can be placed. */
NPUPROF_OWN_ static npuprof_result npuprof_npu_read_now_(npuprof_npu *npu, bool by_counter, npuprof_npu_now_ *now)
{
    npuprof_anchor_ sample;
    npuprof_result result = NPUPROF_OK;
    uint64_t min, max = 0;
    now->host = npuprof_ticks_();
    now->ns_per_4g = npuprof_ns_per_4g_ticks_();
    now->ns = npuprof_ticks_to_ns_(now->host);
    now->known = false;
    now->per_second = 0;
    if (!npuprof_npu_lock_(npu)) return NPUPROF_ERR_NPU_BUSY;
    if (by_counter) {
        const uint64_t last = npu->last_.device_ticks & npuprof_npu_mask_(npu->desc_.counter.bits);
        result = npuprof_npu_read_locked_(npu, &sample);
        /* Why: such a counter may stand between two jobs, but this one did since the last was submitted. */
        if (npuprof_npu_may_stand_(npu) && result != NPUPROF_OK &&
            npuprof_npu_time_goes_on_(result) && sample.device_ticks > last) npuprof_npu_set_unsteady_(npu);
        const uint64_t width = npuprof_anchor_width_(&sample);
        now->known = npuprof_npu_time_goes_on_(result) || result == NPUPROF_ERR_NPU_STOPPED;
        if (!npuprof_npu_predict_(npu, 0, width + npu->second_ / 1000000 + 1, &min, &max)) max = 0;
        /* Why before the records are drawn: a reader of the trace has nothing but anchors. */
        if (result == NPUPROF_OK && !npuprof_npu_is_pushed_(npu) && npuprof_npu_rate_changed_(npu, &sample)) {
            (void)npuprof_npu_keep_reads_(npu, &sample, true);
            (void)npuprof_npu_put_anchor_(npu, &sample, true);
        }
    }
    if (npuprof_npu_predict_(npu, 0, npu->second_, &min, &now->per_second)) now->per_second++;
    else now->per_second = 0;
    npuprof_npu_set_rate_(npu, now);
    now->ticks = now->known ? sample.device_ticks : npu->last_.device_ticks;
    now->read_after = now->known ? sample.host_after : now->host;
    now->old_epoch_ticks = npu->old_epoch_ticks_;
    now->open_ticks = npu->open_ticks_;
    now->old_epoch_host = npu->old_epoch_host_;
    now->old_epoch_most = npu->old_epoch_most_;
    now->epoch = npu->epoch_;
    now->allowance = max;
    /* Why more: nobody read this time, it is the middle of what is possible. */
    if (now->known && npuprof_npu_is_pushed_(npu) &&
        npuprof_npu_predict_since_(npu, now->host, now->host, &min, &max))
        now->allowance = npuprof_saturating_add_(now->allowance, max - min);
    npuprof_npu_unlock_(npu);
    return result;
}

/* Ticks of the counter in the unit of a queue's stamps; 0 before the first of those. */
NPUPROF_OWN_ static uint64_t npuprof_npu_in_stamps_(const npuprof_npu_ring *r, uint64_t ticks)
{
    const int64_t offset = r->stamp_offset;
    const uint64_t size = offset < 0 ? 0 - (uint64_t)offset : (uint64_t)offset;
    ticks = offset < 0 ? npuprof_saturating_add_(ticks, size) : npuprof_saturating_sub_(ticks, size);
    return npuprof_npu_is_scaled_(r) ? npuprof_mul_div_(ticks, r->scale_den, r->scale_num, false) : ticks;
}

/* Now in the unit of a queue's stamps, and what is known of their age. */
NPUPROF_OWN_ static npuprof_npu_units_ npuprof_npu_units_of_(const npuprof_npu *npu, npuprof_npu_queue_ *q,
                                                const npuprof_npu_now_ *now)
{
    npuprof_npu_units_ u = { 0, 0, 0, 0, 0, now->known };
    const npuprof_npu_ring *r = &q->is;
    if (r->stamp_clock == NPUPROF_NPU_STAMP_NONE) return u;
    if (r->max_age_ms) {
        const uint64_t age = npuprof_mul_div_(r->max_age_ms, npu->second_, 1000, true);
        u.aged = npuprof_max_(npuprof_saturating_sub_(q->looked, age), 1);
    }
    q->looked = now->host;
    if (r->stamp_clock == NPUPROF_NPU_STAMP_HOST) {
        u.now = (uint64_t)now->ns / r->stamp_unit_ns;
        u.allowance = 1000 / r->stamp_unit_ns + 1;
        u.per_second = 1000100000u / r->stamp_unit_ns + 1;
        u.known = true;
        return u;
    }
    u.now = npuprof_npu_in_stamps_(r, now->ticks);
    u.allowance = now->allowance;
    u.per_second = now->per_second;
    if (npuprof_npu_is_scaled_(r)) {
        u.allowance = npuprof_mul_div_(u.allowance, r->scale_den, r->scale_num, true) + 1;
        u.per_second = npuprof_mul_div_(u.per_second, r->scale_den, r->scale_num, true);
    }
    if (!now->epoch)
        u.oldest = npuprof_npu_in_stamps_(r, npuprof_saturating_sub_(now->open_ticks, now->allowance));
    return u;
}

/* Reads the clocks for records of a queue; NULL: for what has no stamps. *result: becomes the first that is
   not OK. False: no record can be placed. */
NPUPROF_OWN_ static bool npuprof_npu_begin_pass_(npuprof_npu *npu, npuprof_npu_queue_ *q, npuprof_npu_pass_ *pass,
                                    npuprof_result *result)
{
    npu->texts_.stamp_left = 0;          /* what is drawn now was there later than what was drawn before */
    const bool by_counter = q && q->is.stamp_clock == NPUPROF_NPU_STAMP_COUNTER;
    const npuprof_result read = npuprof_npu_read_now_(npu, by_counter, &pass->now);
    if (*result == NPUPROF_OK) *result = read;
    if (read == NPUPROF_ERR_NPU_DEAD || read == NPUPROF_ERR_NPU_TORN || read == NPUPROF_ERR_NPU_BUSY)
        return false;
    if (q) pass->units = npuprof_npu_units_of_(npu, q, &pass->now);
    return true;
}
/* ==== src/npu/host/lanes.h ========================================================= >>npu/host/lanes ==== */

/* Lanes: the PE that a value of `pe` stands for, and the last stamp there. Owns lanes_ (npuprof_npu in
   types.h), a table by hash of ring and value. May not know what happens in a lane. */

enum { NPUPROF_NPU_LANE_LIMIT_ = NPUPROF_NPU_LANES_ / 4 * 3 };

/* The place of a value in lanes_: where it is, or the free one where it belongs. */
NPUPROF_OWN_ static unsigned npuprof_npu_lane_place_(const npuprof_npu *npu, const npuprof_npu_queue_ *q, uint64_t value)
{
    const uint64_t hash = npuprof_hash_mix_fast_(value ^ (uint64_t)q->number << 56);
    unsigned at = (unsigned)(hash >> 32) % NPUPROF_NPU_LANES_;
    while (npu->lanes_[at].ring && (npu->lanes_[at].ring != q->number + 1 || npu->lanes_[at].value != value))
        at = (at + 1) % NPUPROF_NPU_LANES_;
    return at;
}

/* Whether a name of the queue, or a value that it met, has that PE. */
NPUPROF_OWN_ static bool npuprof_npu_pe_is_taken_(const npuprof_npu *npu, const npuprof_npu_queue_ *q, uint64_t pe)
{
    if (pe < (uint64_t)q->is.pe_base + q->is.lane_count) return true;
    for (unsigned i = 0; i < NPUPROF_NPU_LANES_; i++)
        if (npu->lanes_[i].ring == q->number + 1 && npu->lanes_[i].lane == pe) return true;
    return false;
}

/* The PE of a value without a name, of a queue that has names. A PE's number keeps its PE, unless that is
   taken: then the last free one, so that it moves no other number. Another value takes the first free one.
   UINT64_MAX: there is none. */
NPUPROF_OWN_ static uint64_t npuprof_npu_unnamed_pe_(const npuprof_npu *npu, npuprof_npu_queue_ *q, uint64_t value)
{
    const uint64_t base = q->is.pe_base, last = npu->desc_.pe_count - 1;
    const bool is_number = value <= last && base + value <= last;
    if (is_number && !npuprof_npu_pe_is_taken_(npu, q, base + value)) return base + value;
    while (base + q->next_lane + q->spare_lane <= last) {
        const uint64_t pe = is_number ? last - q->spare_lane : base + q->next_lane;
        if (!npuprof_npu_pe_is_taken_(npu, q, pe)) return pe;
        if (is_number) q->spare_lane++;
        else q->next_lane++;
    }
    return UINT64_MAX;
}

/* The PE of a value that has no place in lanes_. room: it will have one. */
NPUPROF_OWN_ static uint16_t npuprof_npu_new_lane_(npuprof_npu *npu, npuprof_npu_queue_ *q, uint64_t value, bool room,
                                      bool *fits)
{
    uint64_t pe = UINT64_MAX;
    *fits = true;
    for (unsigned i = 0; i < q->is.lane_count; i++)
        if (q->is.lanes[i].value == value) return (uint16_t)(q->is.pe_base + i);
    if (!q->is.lane_count && value <= 0xFFFFu) pe = q->is.pe_base + value;
    else if (q->is.lane_count && room) pe = npuprof_npu_unnamed_pe_(npu, q, value);
    *fits = pe <= 0xFFFFu;
    return (uint16_t)(*fits ? pe : npu->desc_.pe_count - 1);
}

/* The lane of a value. Past the last one that there is room for, all share the state of place LANES_. */
NPUPROF_OWN_ static npuprof_npu_lane_state_ *npuprof_npu_lane_of_(npuprof_npu *npu, npuprof_npu_queue_ *q, uint64_t value)
{
    npuprof_npu_lane_state_ *lane = q->last_lane ? &npu->lanes_[q->last_lane - 1] : NULL;
    bool fits;
    if (lane && lane->value == value) return lane;
    const unsigned at = npuprof_npu_lane_place_(npu, q, value);
    lane = &npu->lanes_[at];
    q->last_lane = at + 1;
    if (lane->ring) return lane;
    const bool room = npu->lane_count_ < NPUPROF_NPU_LANE_LIMIT_;
    const uint16_t pe = npuprof_npu_new_lane_(npu, q, value, room, &fits);
    if (!fits) npuprof_npu_count_records_(npu, NPUPROF_RECORDS_NO_LANE, 1);
    if (!fits || !room) {
        lane = &npu->lanes_[NPUPROF_NPU_LANES_];
        lane->lane = pe;
        lane->has_last = false;          /* it was another's */
        q->last_lane = 0;
        return lane;
    }
    npu->lane_count_++;
    lane->ring = (uint8_t)(q->number + 1);
    lane->value = value;
    lane->lane = pe;
    return lane;
}

/* Names the lanes of a queue in the trace, and says whether they remember their stamps. */
NPUPROF_OWN_ static void npuprof_npu_begin_lanes_(npuprof_npu *npu, npuprof_npu_queue_ *q)
{
    q->remembers = q->is.ascending || q->is.lane_count || npuprof_npu_has_(q, NPUPROF_NPU_AT_CLOCK_HIGH_) ||
                   npuprof_npu_has_(q, NPUPROF_NPU_AT_KIND_);
    for (unsigned i = 0; i < q->is.lane_count; i++)
        if (q->is.lanes[i].name)
            (void)npuprof_device_lane_(npu->number_, q->is.pe_base + i, q->is.lanes[i].name);
    q->next_lane = q->is.lane_count;
}

/* Forgets a queue's last stamps: its clock was set anew. */
NPUPROF_OWN_ static void npuprof_npu_forget_stamps_(npuprof_npu *npu, const npuprof_npu_queue_ *q)
{
    for (unsigned i = 0; i < NPUPROF_NPU_LANES_; i++)
        if (npu->lanes_[i].ring == q->number + 1) npu->lanes_[i].has_last = false;
}

/* Forgets the stamps of another epoch. */
NPUPROF_OWN_ static void npuprof_npu_lane_epoch_(npuprof_npu_lane_state_ *lane, uint32_t epoch)
{
    if (lane->epoch == epoch) return;
    lane->epoch = epoch;
    lane->has_last = false;
    lane->last_ticks = 0;
}
/* ==== src/npu/host/times.h ========================================================= >>npu/host/times ==== */

/* When a record was: its raw stamps become times. First a stamp is extended, in its own unit, to 64 bits;
   then it becomes ticks of the device's counter, or of the host. Under the queue lock. May not know how a
   span is drawn.

   The law of a narrow stamp. What is known of the host time of a stamp is an interval [S, F]:
     F   The record was there when the clock was read: the stamp is not younger.
     S   Its work is not older than its submission, than the record before it in a lane whose stamps ascend,
         than max_age_ms before the look that did not see it, and than the epoch.
   The counter made at most its maximum rate in F - S ticks, so its value is in [low, high]. The values that
   end in the raw bits are a period apart. One of them in [low, high]: that is the stamp. Several: nobody can
   tell which period, and the record is lost by that cause. None: the facts contradict each other, and it is
   lost by that one. */

/* The times of a record. */
typedef struct npuprof_npu_times_ {
    uint64_t start, end;                 /* ticks of `epoch`, or of the host */
    uint32_t epoch;
    unsigned flags;                      /* NPUPROF_STAMP_DEVICE or _HOST */
    uint64_t doubt_ns;                   /* by how much a duration that told it may be off */
    bool unfinished;                     /* the end did not come */
} npuprof_npu_times_;

/* A record in hand, on its way from its queue to the trace. */
typedef struct npuprof_npu_entry_ {
    npuprof_npu_queue_ *q;
    const npuprof_npu_record_ *r;
    const npuprof_npu_pass_ *pass;       /* in which it came */
    bool can_wait;                       /* it may be given back until it can be told whose it is */
    bool is_late;                        /* it waited: it belongs to a submission before ticket `before` */
    uint32_t before;
    /* By npuprof_npu_take_record_(): */
    int kind;                            /* NPUPROF_NPU_KIND_* */
    npuprof_npu_lane_state_ *lane;       /* NULL: the lanes of the queue remember nothing */
    unsigned pe;
    npuprof_npu_submission_ *of;         /* whose it is */
    npuprof_npu_times_ t;
} npuprof_npu_entry_;

/* What a stamp may show. */
typedef struct npuprof_npu_bounds_ { uint64_t low, high; } npuprof_npu_bounds_;

/* ---- Extending a stamp */

/* Valid bits of the stamps at that place. */
NPUPROF_OWN_ static unsigned npuprof_npu_stamp_bits_(const npuprof_npu_queue_ *q, unsigned at)
{
    const unsigned bits = npuprof_npu_bits_at_(q, at);
    return bits > q->stamp_bits ? q->stamp_bits : bits;
}

/* Where the queue's widest stamps are. */
NPUPROF_OWN_ static unsigned npuprof_npu_main_stamp_(const npuprof_npu_queue_ *q)
{
    if (npuprof_npu_has_(q, NPUPROF_NPU_AT_END_)) return NPUPROF_NPU_AT_END_;
    return npuprof_npu_has_(q, NPUPROF_NPU_AT_START_) ? NPUPROF_NPU_AT_START_ : NPUPROF_NPU_AT_STAMP_;
}

/* What the stamps of a record may show; lane: whose last stamp counts, or NULL. */
NPUPROF_OWN_ static npuprof_npu_bounds_ npuprof_npu_bounds_of_(const npuprof_npu *npu, const npuprof_npu_entry_ *e,
                                                  const npuprof_npu_lane_state_ *lane)
{
    const npuprof_npu_units_ *const u = &e->pass->units;
    npuprof_npu_bounds_ b = { 0, UINT64_MAX };
    const uint64_t since = npuprof_max_(e->of->submitted, u->aged);
    if (!u->known) return b;
    b.low = u->oldest;
    b.high = npuprof_saturating_add_(u->now, u->allowance);
    if (since && u->per_second) {
        const uint64_t host = npuprof_saturating_sub_(e->pass->now.read_after, since);
        const uint64_t ticks = npuprof_mul_div_(host, u->per_second, npu->second_, true);
        const uint64_t ago = npuprof_saturating_add_(ticks, u->allowance + 2);
        b.low = npuprof_max_(b.low, npuprof_saturating_sub_(u->now, ago));
    }
    if (!lane || !lane->has_last) return b;
    const uint64_t mask = npuprof_npu_mask_(npuprof_npu_stamp_bits_(e->q, npuprof_npu_main_stamp_(e->q)));
    /* Work of two units may be written in another order than it was stamped. */
    const uint64_t last = npuprof_saturating_sub_(lane->last, npuprof_min_(mask / 8, 1 << 20));
    b.low = npuprof_max_(b.low, last);
    /* Where records tell the high part, one comes in each period. */
    if (npuprof_npu_has_(e->q, NPUPROF_NPU_AT_CLOCK_HIGH_))
        b.high = npuprof_min_(b.high, npuprof_saturating_add_(last, mask));
    return b;
}

/* Narrows the bounds of a part's stamps by its job's times. False: they are not known. */
NPUPROF_OWN_ static bool npuprof_npu_narrow_by_job_(const npuprof_npu_entry_ *e, npuprof_npu_bounds_ *b)
{
    const npuprof_npu_submission_ *const of = e->of;
    if (!of->begun || of->run != e->pass->now.epoch) return false;
    b->low = npuprof_max_(b->low, npuprof_saturating_sub_(npuprof_npu_in_stamps_(&e->q->is, of->begun), 1));
    if (!of->over) return true;
    const uint64_t over = npuprof_npu_in_stamps_(&e->q->is, of->over);
    b->high = npuprof_min_(b->high, npuprof_saturating_add_(over, 1));
    return true;
}

/* The value of that many bits between two bounds. Returns NPUPROF_NPU_PLACED_, or why the record is lost;
   with several, *stamp is the first of them. */
NPUPROF_OWN_ static int npuprof_npu_extend_(uint64_t raw, unsigned bits, const npuprof_npu_bounds_ *b, uint64_t *stamp)
{
    const uint64_t mask = npuprof_npu_mask_(bits), up = (raw - b->low) & mask;
    *stamp = raw;
    if (bits >= 64) return NPUPROF_NPU_PLACED_;
    if (b->low > b->high || up > b->high - b->low) return NPUPROF_RECORDS_CONTRADICTION;
    *stamp = b->low + up;
    return b->high - b->low - up > mask ? (int)NPUPROF_RECORDS_PERIOD : (int)NPUPROF_NPU_PLACED_;
}

/* A raw stamp of that many bits, counting up. */
NPUPROF_OWN_ static uint64_t npuprof_npu_raw_stamp_(const npuprof_npu *npu, const npuprof_npu_queue_ *q, uint64_t raw,
                                       unsigned bits)
{
    const bool down = npu->desc_.counter.counts_down && q->is.stamp_clock == NPUPROF_NPU_STAMP_COUNTER;
    return (down ? ~raw : raw) & npuprof_npu_mask_(bits);
}

/* Extends the stamp at that place of a record, in its own unit. Returns as npuprof_npu_extend_(). */
NPUPROF_OWN_ static int npuprof_npu_extend_at_(const npuprof_npu *npu, const npuprof_npu_entry_ *e,
                                  const npuprof_npu_bounds_ *b, unsigned at, uint64_t *stamp)
{
    const unsigned bits = npuprof_npu_stamp_bits_(e->q, at);
    const uint64_t raw = npuprof_npu_raw_stamp_(npu, e->q, e->r->v[at], bits);
    /* Why 48 bits: they outlast what a clock that was never told can be asked for. */
    if (!e->pass->units.known) {
        *stamp = b->low + ((raw - b->low) & npuprof_npu_mask_(bits));
        return bits < 48 && !npuprof_npu_is_pushed_(npu) ? (int)NPUPROF_RECORDS_NO_ANCHOR
                                                         : (int)NPUPROF_NPU_PLACED_;
    }
    const int why = npuprof_npu_extend_(raw, bits, b, stamp);
    const bool late = *stamp > b->high && e->q->is.stamp_clock == NPUPROF_NPU_STAMP_HOST;
    return late ? (int)NPUPROF_RECORDS_STAMPS : why;
}

/* Extends the stamps that a record has. Start and end of a span narrow each other: it began before it
   ended. Returns as npuprof_npu_extend_(). */
NPUPROF_OWN_ static int npuprof_npu_extend_times_(const npuprof_npu *npu, npuprof_npu_entry_ *e, npuprof_npu_bounds_ b)
{
    const npuprof_npu_queue_ *const q = e->q;
    npuprof_npu_times_ *const t = &e->t;
    const bool has_end = npuprof_npu_has_(q, NPUPROF_NPU_AT_END_), known = e->pass->units.known;
    int why = NPUPROF_NPU_PLACED_;
    if (e->kind != NPUPROF_NPU_KIND_SPAN) {
        why = npuprof_npu_extend_at_(npu, e, &b, NPUPROF_NPU_AT_STAMP_, &t->end);
        t->start = t->end;
        return why;
    }
    if (has_end) why = npuprof_npu_extend_at_(npu, e, &b, NPUPROF_NPU_AT_END_, &t->end);
    const bool open = why == NPUPROF_RECORDS_PERIOD;
    if (!npuprof_npu_has_(q, NPUPROF_NPU_AT_START_) || (why != NPUPROF_NPU_PLACED_ && !open)) return why;
    if (has_end && !open && known) b.high = npuprof_saturating_add_(t->end, 1);
    why = npuprof_npu_extend_at_(npu, e, &b, NPUPROF_NPU_AT_START_, &t->start);
    if (open && why == NPUPROF_NPU_PLACED_) {
        b.low = npuprof_saturating_sub_(t->start, 1);
        why = npuprof_npu_extend_at_(npu, e, &b, NPUPROF_NPU_AT_END_, &t->end);
    } else if (!known && has_end && t->end < t->start) {
        const unsigned bits = npuprof_npu_stamp_bits_(q, NPUPROF_NPU_AT_END_);
        t->end = t->start + ((t->end - t->start) & npuprof_npu_mask_(bits));
    }
    return why;
}

/* ---- Durations */

/* ns as host ticks, or in the unit of the stamps of a counter. */
NPUPROF_OWN_ static uint64_t npuprof_npu_ns_in_units_(const npuprof_npu *npu, const npuprof_npu_entry_ *e, uint64_t ns)
{
    const npuprof_npu_ring *const r = &e->q->is;
    if (r->stamp_clock == NPUPROF_NPU_STAMP_HOST) return ns / r->stamp_unit_ns;
    if (r->stamp_clock == NPUPROF_NPU_STAMP_NONE)
        return npuprof_mul_div_(ns, npu->second_, 1000000000, false);
    const uint64_t ticks = npuprof_mul_div_(ns, e->pass->now.rate, 1000000000, false);
    return npuprof_npu_is_scaled_(r) ? npuprof_mul_div_(ticks, r->scale_den, r->scale_num, false) : ticks;
}

/* The duration of a record in units of its stamps. *doubt_ns: by how much it may be off; 0: as little as a
   stamp. False: nobody knows the rate. */
NPUPROF_OWN_ static bool npuprof_npu_duration_(const npuprof_npu *npu, const npuprof_npu_entry_ *e, uint64_t *units,
                                  uint64_t *doubt_ns)
{
    const npuprof_npu_ring *const r = &e->q->is;
    const npuprof_npu_now_ *const now = &e->pass->now;
    const bool by_rate = r->stamp_clock == NPUPROF_NPU_STAMP_COUNTER;
    const uint64_t unit = r->duration_num / r->duration_den + 1;
    *units = npuprof_mul_div_(e->r->v[NPUPROF_NPU_AT_DURATION_], r->duration_num, r->duration_den, false);
    *doubt_ns = unit;
    if (!r->duration_in_ns) {
        const uint64_t num = by_rate ? r->scale_num : r->stamp_unit_ns, den = by_rate ? r->scale_den : 1;
        *doubt_ns = unit > 2 ? npuprof_mul_div_(unit, num, den, true) : 0;
        if (by_rate) *doubt_ns = npuprof_mul_div_(*doubt_ns, 1000000000, npuprof_max_(now->rate, 1), true);
        return true;
    }
    if (by_rate) *doubt_ns += npuprof_mul_div_(*units, now->rate_ppm, 1000000, true);
    *units = npuprof_npu_ns_in_units_(npu, e, *units);
    return !by_rate || now->rate;
}

/* Finds the end, or the start, that a duration tells. Returns NPUPROF_NPU_PLACED_, or why the record is lost:
   it would be older than its submission, or younger than now. */
NPUPROF_OWN_ static int npuprof_npu_add_duration_(const npuprof_npu *npu, npuprof_npu_entry_ *e)
{
    npuprof_npu_times_ *const t = &e->t;
    const npuprof_npu_bounds_ b = npuprof_npu_bounds_of_(npu, e, NULL);
    uint64_t length;
    if (!npuprof_npu_duration_(npu, e, &length, &t->doubt_ns)) return NPUPROF_RECORDS_NO_ANCHOR;
    const uint64_t slack = npuprof_npu_ns_in_units_(npu, e, t->doubt_ns) + 1;
    if (!npuprof_npu_has_(e->q, NPUPROF_NPU_AT_END_)) {
        t->end = npuprof_saturating_add_(t->start, length);
        if (t->end > npuprof_saturating_add_(b.high, slack)) return NPUPROF_RECORDS_CONTRADICTION;
        t->end = npuprof_max_(npuprof_min_(t->end, b.high), t->start);
        return NPUPROF_NPU_PLACED_;
    }
    if (length > npuprof_saturating_add_(t->end, slack)) return NPUPROF_RECORDS_STAMPS;
    t->start = npuprof_saturating_sub_(t->end, length);
    if (npuprof_saturating_add_(t->start, slack) < b.low) return NPUPROF_RECORDS_CONTRADICTION;
    t->start = npuprof_min_(npuprof_max_(t->start, b.low), t->end);
    return NPUPROF_NPU_PLACED_;
}

/* A record without a stamp: it ends now. A span began when its duration says, or when it was submitted. */
NPUPROF_OWN_ static int npuprof_npu_host_times_(const npuprof_npu *npu, npuprof_npu_entry_ *e)
{
    const uint64_t now = e->pass->now.host;
    const uint64_t since = e->of->known && e->of->link.ticks < now ? e->of->link.ticks : 0;
    npuprof_npu_times_ *const t = &e->t;
    uint64_t length, doubt_ns;
    t->end = now;
    t->start = since ? since : now;
    t->flags = NPUPROF_STAMP_HOST;
    if (e->kind != NPUPROF_NPU_KIND_SPAN || !npuprof_npu_has_(e->q, NPUPROF_NPU_AT_DURATION_))
        return NPUPROF_NPU_PLACED_;
    (void)npuprof_npu_duration_(npu, e, &length, &doubt_ns);
    const uint64_t slack = npuprof_npu_ns_in_units_(npu, e, doubt_ns) + 2;
    const uint64_t start = npuprof_saturating_sub_(now, length);
    if (start + slack < since) return NPUPROF_RECORDS_CONTRADICTION;
    t->start = npuprof_max_(start, since);
    /* It ended when it was seen, or as much before that as it may have begun earlier. */
    if (since) t->epoch = npuprof_host_error_code_(t->start - since + slack);
    return NPUPROF_NPU_PLACED_;
}

/* ---- Placing extended stamps */

/* A stamp as ticks of the host, or of the device's counter. False: it lies before the device was opened, or
   would be negative. */
NPUPROF_OWN_ static bool npuprof_npu_ticks_of_(const npuprof_npu *npu, const npuprof_npu_entry_ *e, uint64_t *stamp)
{
    const npuprof_npu_ring *const r = &e->q->is;
    const npuprof_npu_now_ *const now = &e->pass->now;
    const bool by_host = r->stamp_clock == NPUPROF_NPU_STAMP_HOST;
    const int64_t by = by_host ? (int64_t)(*stamp * r->stamp_unit_ns) - now->ns : r->stamp_offset;
    uint64_t size = by < 0 ? 0 - (uint64_t)by : (uint64_t)by, ticks = now->host;
    if (by_host) {
        size = npuprof_mul_div_(size, (uint64_t)1 << 32, npuprof_max_(now->ns_per_4g, 1), false);
        *stamp = by > 0 ? ticks + size : npuprof_saturating_sub_(ticks, size);
        return *stamp + npu->second_ / 1000000 >= npu->open_host_;
    }
    ticks = *stamp;
    if (npuprof_npu_is_scaled_(r)) ticks = npuprof_mul_div_(ticks, r->scale_num, r->scale_den, false);
    *stamp = by < 0 ? ticks - size : npuprof_saturating_add_(ticks, size);
    return by >= 0 || ticks >= size;
}

/* Whether a record is certainly of this epoch: it began after a submission or a record that is. */
NPUPROF_OWN_ static bool npuprof_npu_is_of_epoch_(const npuprof_npu_entry_ *e)
{
    const uint32_t epoch = e->pass->now.epoch;
    if (!epoch || (e->of->submitted && e->of->epoch == epoch)) return true;
    return e->lane && e->lane->has_last && e->lane->epoch == epoch;
}

/* Whether the counter may have shown those ticks, of which a stamp has the low bits, in the epoch before:
   between its last read, or its first one where the record may be older, and the most that it may have come
   to. */
NPUPROF_OWN_ static bool npuprof_npu_fits_old_epoch_(const npuprof_npu_entry_ *e, uint64_t ticks, bool is_since)
{
    const npuprof_npu_now_ *const now = &e->pass->now;
    const npuprof_npu_ring *const r = &e->q->is;
    const uint64_t first = now->epoch == 1 ? npuprof_saturating_sub_(now->open_ticks, now->allowance) : 0;
    const uint64_t from = npuprof_npu_in_stamps_(r, is_since ? now->old_epoch_ticks : first);
    const uint64_t low = npuprof_saturating_sub_(from, 1);
    const uint64_t most =
        npuprof_npu_in_stamps_(r, npuprof_saturating_add_(now->old_epoch_most, now->allowance));
    const uint64_t mask = npuprof_npu_mask_(npuprof_npu_stamp_bits_(e->q, npuprof_npu_main_stamp_(e->q)));
    return ((npuprof_npu_in_stamps_(r, ticks) - low) & mask) <= npuprof_saturating_add_(most - low, 2);
}

/* Finds the epoch of a record whose times are ticks of the counter: the one whose ticks they may be. Returns
   NPUPROF_NPU_PLACED_, or why it is lost. */
NPUPROF_OWN_ static int npuprof_npu_find_epoch_(const npuprof_npu *npu, npuprof_npu_entry_ *e)
{
    const npuprof_npu_now_ *const now = &e->pass->now;
    const uint64_t almost = npuprof_saturating_add_(e->t.start, now->allowance);
    const bool later = now->known && e->t.end > npuprof_saturating_add_(now->ticks, now->allowance);
    const bool is_since = npuprof_max_(e->of->submitted, e->pass->units.aged) >= now->old_epoch_host;
    const bool old = npuprof_npu_fits_old_epoch_(e, e->t.end, is_since);
    if (npuprof_npu_is_of_epoch_(e) || (is_since && !old)) {
        if (later) return NPUPROF_RECORDS_STAMPS;
    } else {
        /* Why: of a counter that may stand, of two resets, or without the time now, nobody knows where the
           epoch before ended, or where this one is. */
        if (npuprof_npu_may_stand_(npu) || now->epoch > 1 || !now->known || (!later && old))
            return NPUPROF_RECORDS_EPOCH;
        if (later && !old) return NPUPROF_RECORDS_STAMPS;
        if (later) e->t.epoch--;
    }
    return e->t.epoch == 0 && almost < now->open_ticks ? (int)NPUPROF_RECORDS_STAMPS
                                                       : (int)NPUPROF_NPU_PLACED_;
}

/* Makes times of the extended stamps. Returns NPUPROF_NPU_PLACED_, or why the record is lost. */
NPUPROF_OWN_ static int npuprof_npu_place_(const npuprof_npu *npu, npuprof_npu_entry_ *e)
{
    const npuprof_npu_ring *const r = &e->q->is;
    npuprof_npu_times_ *const t = &e->t;
    t->epoch = e->pass->now.epoch;
    t->flags = NPUPROF_STAMP_DEVICE;
    if (r->stamp_clock == NPUPROF_NPU_STAMP_HOST) {
        const uint64_t ns_per_4g = npuprof_max_(e->pass->now.ns_per_4g, 1);
        t->flags = NPUPROF_STAMP_HOST;
        t->epoch =
            npuprof_host_error_code_(npuprof_mul_div_(r->stamp_unit_ns, (uint64_t)1 << 32, ns_per_4g, true));
    }
    if (!npuprof_npu_ticks_of_(npu, e, &t->start) || !npuprof_npu_ticks_of_(npu, e, &t->end))
        return NPUPROF_RECORDS_STAMPS;
    if (t->start > t->end) {             /* by what one unit of a stamp is: no time at all */
        if (t->start - t->end > (npuprof_npu_is_scaled_(r) ? npuprof_npu_unit_(r) : 0))
            return NPUPROF_RECORDS_STAMPS;
        t->start = t->end;
    }
    if (t->flags & NPUPROF_STAMP_HOST || (!e->pass->now.known && !t->epoch)) return NPUPROF_NPU_PLACED_;
    return npuprof_npu_find_epoch_(npu, e);
}

/* The lane's latest device time, and its last stamp, from which the next is extended. */
NPUPROF_OWN_ static void npuprof_npu_note_stamp_(const npuprof_npu_entry_ *e, uint64_t stamp)
{
    npuprof_npu_lane_state_ *const lane = e->lane;
    if (!lane || (!(e->t.flags & NPUPROF_STAMP_HOST) && e->t.epoch != lane->epoch)) return;
    if (e->t.end > lane->last_ticks) lane->last_ticks = e->t.end;
    if (!lane->has_last && !e->q->is.ascending) return;
    if (!lane->has_last || stamp > lane->last) lane->last = stamp;
    lane->has_last = true;
}

/* Finds the times of a record, e->t: by its stamps, with what its lane and its job say. Returns
   NPUPROF_NPU_PLACED_, or why it is lost. */
NPUPROF_OWN_ static int npuprof_npu_find_times_(const npuprof_npu *npu, npuprof_npu_entry_ *e)
{
    const npuprof_npu_queue_ *const q = e->q;
    const bool is_span = e->kind == NPUPROF_NPU_KIND_SPAN;
    memset(&e->t, 0, sizeof e->t);
    if (q->is.stamp_clock == NPUPROF_NPU_STAMP_NONE) return npuprof_npu_host_times_(npu, e);
    npuprof_npu_bounds_ b = npuprof_npu_bounds_of_(npu, e, e->lane);
    int why = npuprof_npu_extend_times_(npu, e, b);
    if (why == NPUPROF_RECORDS_PERIOD && npuprof_npu_narrow_by_job_(e, &b) &&
        npuprof_npu_extend_times_(npu, e, b) == NPUPROF_NPU_PLACED_) why = NPUPROF_NPU_PLACED_;
    if (is_span && why == NPUPROF_NPU_PLACED_) {
        if (npuprof_npu_has_(q, NPUPROF_NPU_AT_DURATION_)) why = npuprof_npu_add_duration_(npu, e);
        else if (!npuprof_npu_has_(q, NPUPROF_NPU_AT_END_)) e->t.end = e->t.start;
        else if (!npuprof_npu_has_(q, NPUPROF_NPU_AT_START_)) e->t.start = e->t.end;
    }
    /* What contradicts the facts of this run of the counter may be of the one before. */
    if (is_span && why == NPUPROF_RECORDS_CONTRADICTION && !npuprof_npu_is_of_epoch_(e))
        why = NPUPROF_RECORDS_EPOCH;
    const uint64_t last = e->t.end;
    if (why == NPUPROF_NPU_PLACED_) why = npuprof_npu_place_(npu, e);
    if (why == NPUPROF_NPU_PLACED_) npuprof_npu_note_stamp_(e, last);
    return why;
}
/* ==== src/npu/host/pairs.h ========================================================= >>npu/host/pairs ==== */

/* Begins that wait for their ends: one pool for all rings of a device. An end takes the newest begin of its
   ring, lane and key. Owns pairs_ and what belongs to it (npuprof_npu in types.h). May not know how a span is
   drawn. */

/* A begin whose end has not come. Lists by index + 1: of its bucket, newest first; of all, by age. */
typedef struct npuprof_npu_pair_ {
    npuprof_npu_entry_ e;                /* the begin: of its queue and lane; its start is e.t.start */
    npuprof_npu_record_ record;          /* of e, with what the end adds */
    npuprof_npu_submission_ of;          /* of e */
    bool draws;                          /* it was to be drawn when it began */
    uint16_t below, newer, older, bucket;
} npuprof_npu_pair_;

NPUPROF_OWN_ static unsigned npuprof_npu_pair_bucket_(const npuprof_npu_entry_ *e)
{
    const uint64_t *const key = e->r->v + NPUPROF_NPU_AT_KEY_;
    const uint64_t place = (uint64_t)e->q->number << 56 ^ (uint64_t)e->pe << 40;
    const uint64_t hash = npuprof_hash_mix_fast_(key[0] ^ place);
    return (unsigned)(npuprof_hash_mix_fast_(hash ^ key[1]) >> 32) % NPUPROF_NPU_PAIR_BUCKETS_;
}

/* All are free. */
NPUPROF_OWN_ static void npuprof_npu_clear_pairs_(npuprof_npu *npu)
{
    for (unsigned i = 0; i < NPUPROF_NPU_PAIRS_; i++) npu->pairs_[i].below = (uint16_t)(i + 2);
    npu->pairs_[NPUPROF_NPU_PAIRS_ - 1].below = 0;
    npu->free_pair_ = 1;
    npu->oldest_pair_ = npu->newest_pair_ = 0;
    memset(npu->pair_buckets_, 0, sizeof npu->pair_buckets_);
}

/* Takes a begin out of both lists; it stays as it is until the next npuprof_npu_open_pair_(). */
NPUPROF_OWN_ static void npuprof_npu_close_pair_(npuprof_npu *npu, npuprof_npu_pair_ *pair)
{
    const uint16_t me = (uint16_t)(pair - npu->pairs_ + 1);
    uint16_t *link = &npu->pair_buckets_[pair->bucket];
    while (*link != me) link = &npu->pairs_[*link - 1].below;
    *link = pair->below;
    if (pair->older) npu->pairs_[pair->older - 1].newer = pair->newer;
    else npu->oldest_pair_ = pair->newer;
    if (pair->newer) npu->pairs_[pair->newer - 1].older = pair->older;
    else npu->newest_pair_ = pair->older;
    pair->below = npu->free_pair_;
    npu->free_pair_ = me;
}

/* The begin that is open longest; NULL: none is open. */
NPUPROF_OWN_ static npuprof_npu_pair_ *npuprof_npu_oldest_pair_(npuprof_npu *npu)
{
    return npu->oldest_pair_ ? &npu->pairs_[npu->oldest_pair_ - 1] : NULL;
}

/* Keeps a begin. False: all are taken. */
NPUPROF_OWN_ static bool npuprof_npu_open_pair_(npuprof_npu *npu, const npuprof_npu_entry_ *e, bool draws)
{
    const uint16_t me = npu->free_pair_;
    if (!me) return false;
    npuprof_npu_pair_ *const pair = &npu->pairs_[me - 1];
    npu->free_pair_ = pair->below;
    pair->record = *e->r;
    pair->of = *e->of;
    pair->e = *e;
    pair->e.r = &pair->record;
    pair->e.of = &pair->of;
    pair->e.pass = NULL;                 /* over by then */
    pair->draws = draws;
    pair->bucket = (uint16_t)npuprof_npu_pair_bucket_(e);
    pair->below = npu->pair_buckets_[pair->bucket];
    npu->pair_buckets_[pair->bucket] = me;
    pair->newer = 0;
    pair->older = npu->newest_pair_;
    if (npu->newest_pair_) npu->pairs_[npu->newest_pair_ - 1].newer = me;
    else npu->oldest_pair_ = me;
    npu->newest_pair_ = me;
    return true;
}

/* The newest open begin of the ring, lane and key of an end, taken out of the lists; NULL: there is none. */
NPUPROF_OWN_ static npuprof_npu_pair_ *npuprof_npu_match_pair_(npuprof_npu *npu, const npuprof_npu_entry_ *e)
{
    const uint64_t *const key = e->r->v + NPUPROF_NPU_AT_KEY_;
    uint16_t at = npu->pair_buckets_[npuprof_npu_pair_bucket_(e)];
    for (; at; at = npu->pairs_[at - 1].below) {
        npuprof_npu_pair_ *const pair = &npu->pairs_[at - 1];
        const uint64_t *const its = pair->record.v + NPUPROF_NPU_AT_KEY_;
        if (pair->e.q != e->q || pair->e.pe != e->pe || its[0] != key[0] || its[1] != key[1]) continue;
        npuprof_npu_close_pair_(npu, pair);
        return pair;
    }
    return NULL;
}
/* ==== src/npu/host/ended.h ========================================================= >>npu/host/ended ==== */

/* Parts of jobs: a part is of its job's submission, also when it comes after the record of the whole, and
   lies in the time of that. Owns ended_, the jobs whose whole came last (npuprof_npu in types.h). Under the
   queue lock. May not know what is in a record. */

enum { NPUPROF_NPU_ENDED_ = 32 };

typedef struct npuprof_npu_ended_ {
    npuprof_npu_lookup_ whole;
    npuprof_npu_submission_ of;          /* with its times; unknown and not muted: others submitted it */
} npuprof_npu_ended_;

/* Its job ran in these times; `over`: its end is known. */
NPUPROF_OWN_ static void npuprof_npu_set_run_(npuprof_npu_submission_ *of, const npuprof_npu_times_ *t, bool over)
{
    if (t->flags & NPUPROF_STAMP_HOST) return;
    of->begun = t->start;
    of->over = over ? t->end : 0;
    of->run = t->epoch;
}

/* Keeps a job whose whole was placed. */
NPUPROF_OWN_ static void npuprof_npu_note_ended_(npuprof_npu *npu, const npuprof_npu_lookup_ *whole,
                                    const npuprof_npu_entry_ *e)
{
    /* Why: a number of fewer bits may be used again while it is here. */
    if (!whole->has_id || whole->id_mask <= 2 * NPUPROF_NPU_ENDED_) return;
    npuprof_npu_ended_ *const ended = &npu->ended_[npu->ended_count_++ % NPUPROF_NPU_ENDED_];
    ended->whole = *whole;
    ended->of = *e->of;
    ended->of.has_arrow = false;
    npuprof_npu_set_run_(&ended->of, &e->t, true);
}

/* Finds the job of a part whose whole came. False: there is none, or one with this number is open. */
NPUPROF_OWN_ static bool npuprof_npu_find_ended_(const npuprof_npu *npu, const npuprof_npu_lookup_ *s,
                                    npuprof_npu_submission_ *of)
{
    const uint32_t room = NPUPROF_NPU_ENDED_, count = npu->ended_count_;
    for (uint32_t i = 1; i <= count && i <= room && s->has_id; i++) {
        const npuprof_npu_ended_ *const ended = &npu->ended_[(count - i) % room];
        if ((ended->whole.id ^ s->id) & s->id_mask || ended->whole.is_scoped != s->is_scoped ||
            (s->is_scoped && ended->whole.scope != s->scope)) continue;
        if (npuprof_npu_look_in_(npu, npuprof_npu_row_of_(npu, s->id), s).oldest) return false;
        *of = ended->of;
        return true;
    }
    return false;
}
/* ==== src/npu/host/record.h ======================================================= >>npu/host/record ==== */

/* What a record means: a span, one end of a span, an event. The same for a polled record and for one that was
   fed. Under the queue lock. May not know where a record came from. */

/* ---- Names and arguments */

/* The name of an op code in the queue's table; NULL: it has none. */
NPUPROF_OWN_ static const char *npuprof_npu_find_op_(const npuprof_npu_ring *ring, uint64_t op)
{
    unsigned first = 0, end = ring->op_count;
    while (first < end) {
        const unsigned middle = first + (end - first) / 2;
        if (ring->ops[middle].code == op) return ring->ops[middle].name;
        if (ring->ops[middle].code < op) first = middle + 1;
        else end = middle;
    }
    return NULL;
}

/* The name of an op code: of the table, of the function, or "op 17", "op 0x51ab". text: where that is
   made. *stays: it is the table's. */
NPUPROF_OWN_ static const char *npuprof_npu_name_op_(const npuprof_npu *npu, const npuprof_npu_ring *ring, uint64_t op,
                                        char *text, bool *stays)
{
    const uint64_t base = op < 1024 ? 10 : 16;
    const char *const known = npuprof_npu_find_op_(ring, op);
    *stays = known != NULL;
    if (known) return known;
    const char *const given = ring->op_name ? ring->op_name(npu->desc_.user, op) : NULL;
    if (given) return given;
    npuprof_npu_copy_text_(text, NPUPROF_NPU_NAME_, base == 10 ? "op " : "op 0x");
    size_t at = strlen(text);
    for (uint64_t rest = op; rest >= base; rest /= base) at++;
    text[at + 1] = 0;
    do text[at--] = "0123456789abcdef"[op % base]; while ((op /= base) != 0);
    return text;
}

/* What an end adds to its begin: a value that is not 0 is newer. The status is the end's. */
NPUPROF_OWN_ static void npuprof_npu_add_end_(npuprof_npu_record_ *r, const npuprof_npu_record_ *end)
{
    r->v[NPUPROF_NPU_AT_STATUS_] = end->v[NPUPROF_NPU_AT_STATUS_];
    for (unsigned at = 0; at < NPUPROF_NPU_VALUES_; at++) {
        const bool adds = at == NPUPROF_NPU_AT_EXECUTION_ || at == NPUPROF_NPU_AT_INSTRUCTION_ ||
                          at >= NPUPROF_NPU_AT_ARGS_;
        if (adds && end->v[at]) r->v[at] = end->v[at];
    }
}

/* Whether it stands for its whole job. */
NPUPROF_OWN_ static bool npuprof_npu_is_whole_(const npuprof_npu_ring *ring, uint64_t op)
{
    return !ring->execution_op || op + 1 == ring->execution_op;
}

/* What is known of the submission of a record. */
NPUPROF_OWN_ static npuprof_npu_lookup_ npuprof_npu_lookup_of_(const npuprof_npu *npu, const npuprof_npu_entry_ *e)
{
    const npuprof_npu_queue_ *const q = e->q;
    const npuprof_npu_record_ *const r = e->r;
    const uint64_t pe = r->v[NPUPROF_NPU_AT_PE_];
    npuprof_npu_lookup_ s;
    s.has_id = npuprof_npu_has_(q, NPUPROF_NPU_AT_JOB_);
    s.id = r->v[NPUPROF_NPU_AT_JOB_];
    s.id_mask = npuprof_npu_mask_(npuprof_npu_bits_at_(q, NPUPROF_NPU_AT_JOB_));
    s.any_stream = !npuprof_npu_has_(q, NPUPROF_NPU_AT_PE_) && npu->queue_count_ == 1;
    s.stream = q->is.lane_count || pe > 0xFFFFu ? pe : e->pe;
    s.is_scoped = q->is.job_scope != NPUPROF_NPU_SCOPE_DEVICE;
    s.scope = q->is.job_scope == NPUPROF_NPU_SCOPE_RING ? q->number : s.stream;
    s.is_late = e->is_late;
    s.before = e->before;
    s.whole = npuprof_npu_is_whole_(&q->is, r->v[NPUPROF_NPU_AT_OP_]);
    s.can_wait = e->can_wait;
    return s;
}

/* Finds the submission of a record. A part of a job whose whole has begun, and not ended, is of the same: the
   begin took it. False, only with can_wait: nobody can tell now, and nothing was done. */
NPUPROF_OWN_ static bool npuprof_npu_find_owner_(npuprof_npu *npu, const npuprof_npu_entry_ *e)
{
    const npuprof_npu_lookup_ s = npuprof_npu_lookup_of_(npu, e);
    for (uint16_t at = s.whole ? 0 : npu->newest_pair_; at; at = npu->pairs_[at - 1].older) {
        const npuprof_npu_pair_ *const pair = &npu->pairs_[at - 1];
        if (pair->e.q != e->q || pair->e.pe != e->pe || pair->record.v[NPUPROF_NPU_AT_JOB_] != s.id) continue;
        if (!npuprof_npu_is_whole_(&e->q->is, pair->record.v[NPUPROF_NPU_AT_OP_])) continue;
        *e->of = pair->of;
        npuprof_npu_set_run_(e->of, &pair->e.t, false);
        return true;
    }
    if (!s.whole && npuprof_npu_find_ended_(npu, &s, e->of)) return true;
    return npuprof_npu_take_submission_(npu, &s, e->of) == NPUPROF_OK;
}

/* Draws what a record, or two, said. */
NPUPROF_OWN_ static void npuprof_npu_draw_record_(npuprof_npu *npu, const npuprof_npu_entry_ *e)
{
    const npuprof_npu_queue_ *const q = e->q;
    const npuprof_npu_ring *const ring = &q->is;
    const uint64_t *const v = e->r->v;
    const uint64_t op = v[NPUPROF_NPU_AT_OP_];
    char text[NPUPROF_NPU_NAME_];
    npuprof_npu_drawing_ d;
    size_t n = NPUPROF_NPU_OWN_ARGS_;
    d.start = e->t.start;
    d.end = e->t.end;
    d.epoch = e->t.epoch;
    d.flags = e->t.flags;
    d.lane = e->pe;
    d.category = ring->category;
    d.takes_arrow = npuprof_npu_is_whole_(ring, op);
    d.texts_stay = true;
    d.name_stays = false;
    d.name = NULL;
    if (npuprof_npu_has_(q, NPUPROF_NPU_AT_OP_))
        d.name = npuprof_npu_name_op_(npu, ring, op, text, &d.name_stays);
    for (const npuprof_npu_drawn_ *a = q->drawn; a < q->drawn + q->drawn_count; a++)
        if (a->at != NPUPROF_NPU_AT_INSTRUCTION_ || !ring->execution_op || !d.takes_arrow)
            d.args[n++] = npuprof_uint_(a->key, v[a->at]);
    if (e->t.doubt_ns) d.args[n++] = npuprof_uint_("duration_error_ns", e->t.doubt_ns);
    if (v[NPUPROF_NPU_AT_STATUS_]) d.args[n++] = npuprof_uint_("status", v[NPUPROF_NPU_AT_STATUS_]);
    if (e->t.unfinished) d.args[n++] = npuprof_bool_("unfinished", true);
    d.arg_count = n - NPUPROF_NPU_OWN_ARGS_;
    npuprof_npu_draw_(npu, &d, e->of);
}

/* Ends the way of a span, which is placed. A device whose clock nobody reads learns from it: its job began
   after it was submitted, and is over. A whole is noted: its parts may come after it. */
NPUPROF_OWN_ static void npuprof_npu_finish_span_(npuprof_npu *npu, const npuprof_npu_entry_ *e)
{
    const npuprof_npu_submission_ *const of = e->of;
    const npuprof_npu_ring *const ring = &e->q->is;
    if (of->known && of->link.ticks && !(e->t.flags & NPUPROF_STAMP_HOST)) {
        const uint64_t doubt = npuprof_mul_div_(e->t.doubt_ns, npu->second_, 1000000000, true);
        const uint64_t unit = npuprof_npu_is_scaled_(ring) ? npuprof_npu_unit_(ring) : 0;
        const npuprof_anchor_ job = { e->t.start, npuprof_saturating_sub_(of->link.ticks, doubt),
                                      e->pass->now.host + doubt };
        npuprof_npu_bracket_job_(npu, e->t.epoch, &job, e->t.end, unit);
    }
    if (ring->execution_op && npuprof_npu_is_whole_(ring, e->r->v[NPUPROF_NPU_AT_OP_])) {
        const npuprof_npu_lookup_ whole = npuprof_npu_lookup_of_(npu, e);
        npuprof_npu_note_ended_(npu, &whole, e);
    }
    npuprof_npu_draw_record_(npu, e);
}

/* ---- Kinds */

/* Draws a begin whose end does not come, up to those ticks. */
NPUPROF_OWN_ static void npuprof_npu_draw_unfinished_(npuprof_npu *npu, npuprof_npu_pair_ *pair, uint64_t end)
{
    if (!pair->draws) return;
    pair->e.t.end = npuprof_max_(pair->e.t.start, end);
    pair->e.t.unfinished = true;
    pair->record.v[NPUPROF_NPU_AT_STATUS_] = 0;
    npuprof_npu_count_records_(npu, NPUPROF_RECORDS_UNFINISHED, 1);
    npuprof_npu_draw_record_(npu, &pair->e);
}

/* Ends a begin whose end will not come: with the last stamp of its lane. */
NPUPROF_OWN_ static void npuprof_npu_abandon_pair_(npuprof_npu *npu, npuprof_npu_pair_ *pair)
{
    const npuprof_npu_lane_state_ *const lane = pair->e.lane;
    const bool same = pair->e.t.flags & NPUPROF_STAMP_HOST || lane->epoch == pair->e.t.epoch;
    npuprof_npu_close_pair_(npu, pair);
    npuprof_npu_draw_unfinished_(npu, pair, same ? lane->last_ticks : 0);
}

/* Entries of a queue are lost: an end may be among them, so the next one is not that of a begin before. */
NPUPROF_OWN_ static void npuprof_npu_abandon_queue_(npuprof_npu *npu, npuprof_npu_queue_ *q)
{
    for (uint16_t at = q->gap ? npu->oldest_pair_ : 0, next; at; at = next) {
        npuprof_npu_pair_ *const pair = &npu->pairs_[at - 1];
        next = pair->newer;
        if (pair->e.q == q) npuprof_npu_abandon_pair_(npu, pair);
    }
    q->gap = false;
}

/* A whole span, or its begin. False, only with can_wait: nobody can tell now whose it is, and nothing was
   done. */
NPUPROF_OWN_ static bool npuprof_npu_take_span_(npuprof_npu *npu, npuprof_npu_entry_ *e)
{
    const bool is_begin = e->kind == NPUPROF_NPU_KIND_BEGIN;
    if (!npuprof_npu_find_owner_(npu, e)) return false;
    const bool draws = npuprof_npu_draws_(e->of);
    if (!draws && !is_begin) return true;
    const int why = npuprof_npu_find_times_(npu, e);
    if (why == NPUPROF_RECORDS_CONTRADICTION) npuprof_npu_doubt_pushed_(npu);
    if (draws ? !npuprof_npu_is_placed_(npu, why) : why != NPUPROF_NPU_PLACED_) return true;
    if (!is_begin) {
        npuprof_npu_finish_span_(npu, e);
    } else if (!npuprof_npu_open_pair_(npu, e, draws)) {
        npuprof_npu_abandon_pair_(npu, npuprof_npu_oldest_pair_(npu));
        (void)npuprof_npu_open_pair_(npu, e, draws);
    }
    return true;
}

/* The submission of a begin that had none may be known by now. */
NPUPROF_OWN_ static void npuprof_npu_find_owner_again_(npuprof_npu *npu, const npuprof_npu_entry_ *e)
{
    npuprof_npu_submission_ now;
    npuprof_npu_lookup_ s = npuprof_npu_lookup_of_(npu, e);
    s.can_wait = false;
    (void)npuprof_npu_take_submission_(npu, &s, &now);
    if (now.known || now.muted) *e->of = now;
}

NPUPROF_OWN_ static void npuprof_npu_take_end_(npuprof_npu *npu, npuprof_npu_entry_ *e)
{
    npuprof_npu_pair_ *const pair = npuprof_npu_match_pair_(npu, e);
    if (pair) e->of = &pair->of;
    int why = npuprof_npu_find_times_(npu, e);
    const bool is_good = why == NPUPROF_NPU_PLACED_;
    /* Why not with host stamps: their epoch is an error, which a better known rate changes. */
    const bool is_other_run = is_good && !(e->t.flags & NPUPROF_STAMP_HOST) && pair &&
                              e->t.epoch != pair->e.t.epoch;
    if (!pair || is_other_run) {         /* no begin, or one of before a reset */
        if (NPUPROF_OPEN_(1)) npuprof_npu_count_records_(npu, NPUPROF_RECORDS_UNMATCHED_END, 1);
        if (pair) npuprof_npu_draw_unfinished_(npu, pair, 0);
        return;
    }
    if (!pair->draws) return;
    e->t.start = pair->e.t.start;
    if (is_good && e->t.start > e->t.end) {
        if (e->t.start - e->t.end > e->pass->now.allowance) why = NPUPROF_RECORDS_STAMPS;
        e->t.end = e->t.start;
    }
    if (!npuprof_npu_is_placed_(npu, why)) return;
    npuprof_npu_add_end_(&pair->record, e->r);
    e->r = &pair->record;
    if (!pair->of.known && npuprof_npu_has_(e->q, NPUPROF_NPU_AT_JOB_)) npuprof_npu_find_owner_again_(npu, e);
    if (!pair->of.muted) npuprof_npu_finish_span_(npu, e);
}

/* An instant, or the value of a counter. */
NPUPROF_OWN_ static void npuprof_npu_take_event_(npuprof_npu *npu, npuprof_npu_entry_ *e)
{
    char text[NPUPROF_NPU_NAME_], track[2 * NPUPROF_NPU_NAME_];
    npuprof_npu_drawing_ d;
    bool stays;
    if (!NPUPROF_OPEN_(1) || !npuprof_npu_is_placed_(npu, npuprof_npu_find_times_(npu, e))) return;
    if (e->kind == NPUPROF_NPU_KIND_INSTANT) {
        npuprof_npu_copy_text_(e->of->name, sizeof e->of->name, "event");
        e->t.flags |= NPUPROF_STAMP_INSTANT;
        npuprof_npu_draw_record_(npu, e);
        return;
    }
    const char *const name = npuprof_npu_has_(e->q, NPUPROF_NPU_AT_OP_)
        ? npuprof_npu_name_op_(npu, &e->q->is, e->r->v[NPUPROF_NPU_AT_OP_], text, &stays) : "value";
    npuprof_npu_copy_text_(track, NPUPROF_NPU_NAME_, npu->device.name);
    const size_t used = strlen(track);
    track[used] = ' ';
    npuprof_npu_copy_text_(track + used + 1, NPUPROF_NPU_NAME_, name);
    memset(&d, 0, sizeof d);
    d.start = e->t.start;
    d.end = e->r->v[NPUPROF_NPU_AT_VALUE_];
    d.epoch = e->t.epoch;
    d.flags = e->t.flags | NPUPROF_STAMP_VALUE;
    d.lane = e->pe;
    d.name = track;
    d.category = e->q->is.category;
    npuprof_npu_draw_(npu, &d, e->of);
}

/* ---- Any record */

/* Do all conditions hold? False if there are none. */
NPUPROF_OWN_ static bool npuprof_npu_holds_(const npuprof_npu_queue_ *q, const npuprof_npu_record_ *r, unsigned at,
                               const npuprof_npu_condition *conditions)
{
    bool any = false;
    for (unsigned i = 0; i < NPUPROF_NPU_CONDITIONS; i++) {
        if (!npuprof_npu_has_(q, at + i)) continue;
        if (r->v[at + i] != conditions[i].value) return false;
        any = true;
    }
    return any;
}

/* A record that tells the high part of its lane's stamps. */
NPUPROF_OWN_ static void npuprof_npu_take_clock_(const npuprof_npu *npu, const npuprof_npu_entry_ *e)
{
    const unsigned low = npuprof_npu_bits_at_(e->q, NPUPROF_NPU_AT_STAMP_);
    const unsigned bits = low + npuprof_npu_bits_at_(e->q, NPUPROF_NPU_AT_CLOCK_HIGH_);
    const uint64_t *const v = e->r->v;
    if (low >= 64) return;
    const uint64_t word = v[NPUPROF_NPU_AT_STAMP_] | v[NPUPROF_NPU_AT_CLOCK_HIGH_] << low;
    const uint64_t raw = npuprof_npu_raw_stamp_(npu, e->q, word, bits);
    const npuprof_npu_bounds_ b = npuprof_npu_bounds_of_(npu, e, NULL);
    uint64_t stamp = raw;
    e->lane->has_last = !e->pass->units.known ||
                        (npuprof_npu_extend_(raw, bits, &b, &stamp) == NPUPROF_NPU_PLACED_ &&
                         stamp <= b.high);
    e->lane->last = stamp;
}

/* What the queue's table says of a kind; -1: nothing. */
NPUPROF_OWN_ static int npuprof_npu_kind_of_(const npuprof_npu_queue_ *q, const npuprof_npu_record_ *r)
{
    if (!npuprof_npu_has_(q, NPUPROF_NPU_AT_KIND_)) return q->is.all_are;
    for (unsigned i = 0; i < q->is.kind_count; i++)
        if (q->is.kinds[i].value == r->v[NPUPROF_NPU_AT_KIND_]) return q->is.kinds[i].is;
    return -1;
}

/* Takes a record, whose way is known: draws it, keeps it, or counts it. False, only with can_wait: nobody can
   tell now whose it is, and nothing was done. */
NPUPROF_OWN_ static bool npuprof_npu_take_record_(npuprof_npu *npu, npuprof_npu_entry_ *e)
{
    npuprof_npu_queue_ *const q = e->q;
    npuprof_npu_submission_ of;
    const uint64_t pe = e->r->v[NPUPROF_NPU_AT_PE_];
    if (npuprof_npu_holds_(q, e->r, NPUPROF_NPU_AT_EMPTY_, q->is.empty)) return true;
    if (q->gap) npuprof_npu_abandon_queue_(npu, q);
    const bool is_clock = npuprof_npu_holds_(q, e->r, NPUPROF_NPU_AT_CLOCK_WHEN_, q->is.clock_when);
    e->kind = npuprof_npu_kind_of_(q, e->r);
    if (e->kind == NPUPROF_NPU_KIND_SKIP && !is_clock) return true;      /* Why here: it takes no lane. */
    npuprof_npu_lane_state_ *lane = NULL;
    if (q->remembers || pe + q->is.pe_base > 0xFFFFu || pe > 0xFFFFu) {
        lane = npuprof_npu_lane_of_(npu, q, pe);
        npuprof_npu_lane_epoch_(lane, e->pass->now.epoch);
    }
    e->pe = lane ? lane->lane : (unsigned)(q->is.pe_base + pe);
    e->lane = q->remembers ? lane : NULL;
    e->of = &of;
    npuprof_npu_clear_submission_(&of);
    if (e->lane && is_clock) {
        npuprof_npu_take_clock_(npu, e);
        return true;
    }
    switch (e->kind) {
    case NPUPROF_NPU_KIND_SPAN:
    case NPUPROF_NPU_KIND_BEGIN: return npuprof_npu_take_span_(npu, e);
    case NPUPROF_NPU_KIND_END: npuprof_npu_take_end_(npu, e); break;
    case NPUPROF_NPU_KIND_INSTANT:
    case NPUPROF_NPU_KIND_COUNTER: npuprof_npu_take_event_(npu, e); break;
    case NPUPROF_NPU_KIND_SKIP: break;
    default: npuprof_npu_count_records_(npu, NPUPROF_RECORDS_UNKNOWN, 1); break;
    }
    return true;
}
/* ==== src/npu/host/late.h =========================================================== >>npu/host/late ==== */

/* Records that came before it can be told whose they are: their submission has no number yet, because its
   thread does not run, or its entry is held. They wait here, in the order in which they came, for a second at
   most. Owns late_ (npuprof_npu in types.h). Under the queue lock. May not know where a record came from. */

enum { NPUPROF_NPU_LATE_ = 64 };

typedef struct npuprof_npu_late_ {
    npuprof_npu_record_ record;
    npuprof_npu_pass_ pass;              /* in which it came */
    npuprof_npu_queue_ *queue;
    uint64_t since;                      /* host ticks */
    uint32_t before;                     /* ticket of the first submission after it */
} npuprof_npu_late_;

/* Takes the first that waits. False: it still does, which only happens with can_wait. */
NPUPROF_OWN_ static bool npuprof_npu_take_first_late_(npuprof_npu *npu, bool can_wait)
{
    const npuprof_npu_late_ *const late = &npu->late_[npu->late_first_ % NPUPROF_NPU_LATE_];
    npuprof_npu_entry_ e;
    e.q = late->queue;
    e.r = &late->record;
    e.pass = &late->pass;
    e.can_wait = can_wait;
    e.is_late = true;
    e.before = late->before;
    if (!npuprof_npu_take_record_(npu, &e)) return false;
    npu->late_first_++;
    npu->late_count_--;
    return true;
}

/* Takes those that need not wait any more. all: none does. */
NPUPROF_OWN_ static void npuprof_npu_take_late_(npuprof_npu *npu, bool all)
{
    const uint64_t now = npu->late_count_ ? npuprof_ticks_() : 0;
    while (npu->late_count_) {
        const uint64_t since = npu->late_[npu->late_first_ % NPUPROF_NPU_LATE_].since;
        const bool can_wait = !all && npuprof_saturating_sub_(now, since) <= npu->second_;
        if (!npuprof_npu_take_first_late_(npu, can_wait)) return;
    }
}

/* Takes those that need not wait any more. Takes the queue lock; who holds it looks as well. */
NPUPROF_OWN_ static void npuprof_npu_look_at_late_(npuprof_npu *npu)
{
    if (!npuprof_npu_try_queue_(npu)) return;
    npuprof_npu_take_late_(npu, false);
    npuprof_npu_end_pass_(npu, false);
}

/* Whether a record of the queue waits: the next ones stay behind it. */
NPUPROF_OWN_ static bool npuprof_npu_has_late_(const npuprof_npu *npu, const npuprof_npu_queue_ *q)
{
    for (uint32_t i = 0; i < npu->late_count_; i++)
        if (npu->late_[(npu->late_first_ + i) % NPUPROF_NPU_LATE_].queue == q) return true;
    return false;
}

/* Takes a record, or keeps it until it can be told whose it is. */
NPUPROF_OWN_ static void npuprof_npu_take_or_keep_(npuprof_npu *npu, npuprof_npu_queue_ *q, const npuprof_npu_record_ *r,
                                      const npuprof_npu_pass_ *pass)
{
    npuprof_npu_entry_ e;
    e.q = q;
    e.r = r;
    e.pass = pass;
    e.can_wait = true;
    e.is_late = false;
    e.before = 0;
    if (npu->late_count_) npuprof_npu_take_late_(npu, false);    /* who held it may be done */
    if (!npuprof_npu_has_late_(npu, q) && npuprof_npu_take_record_(npu, &e)) return;
    if (npu->late_count_ == NPUPROF_NPU_LATE_) {
        (void)npuprof_npu_take_first_late_(npu, false);
        npuprof_npu_take_late_(npu, false);
    }
    npuprof_npu_late_ *const late = &npu->late_[(npu->late_first_ + npu->late_count_++) % NPUPROF_NPU_LATE_];
    late->record = *r;
    late->pass = *pass;
    late->queue = q;
    late->since = npuprof_ticks_();
    late->before = NPUPROF_LOAD_(&npu->tickets_);
}
/* ==== src/npu/host/tables.h ======================================================= >>npu/host/tables ==== */

/* The tables of an open device: those that its description asks for, in one piece of memory. Owns tables_
   (npuprof_npu in types.h). One thread. May not know what is in a table. */

enum { NPUPROF_NPU_TABLE_ALIGN_ = 16 };

/* Memory that is being laid out; NULL: only counted. */
typedef struct npuprof_npu_layout_ { unsigned char *memory; size_t end; } npuprof_npu_layout_;

/* The place of the next table. NULL: it has no entries, or is only counted. */
NPUPROF_OWN_ static void *npuprof_npu_next_table_(npuprof_npu_layout_ *to, size_t count, size_t bytes)
{
    const size_t at = to->end, align = NPUPROF_NPU_TABLE_ALIGN_;
    to->end += (count * bytes + align - 1) / align * align;
    return count && to->memory ? to->memory + at : NULL;
}

/* Lays out the tables from `memory` on; NULL: only says how many bytes they take. */
NPUPROF_OWN_ static size_t npuprof_npu_lay_tables_(npuprof_npu *npu, unsigned char *memory)
{
    const npuprof_npu_desc *const d = &npu->desc_;
    const npuprof_npu_ring *r = d->ring_count ? d->rings : &d->ring;
    const size_t jobs = d->job_count, queues = npu->queue_count_;
    npuprof_npu_layout_ to = { memory, 0 };
    bool pairs = false, seen = false, parts = false;
    for (size_t i = 0; i < queues; i++, r++) {
        pairs = pairs || r->kind_count || r->all_are == NPUPROF_NPU_KIND_BEGIN ||
                r->all_are == NPUPROF_NPU_KIND_END;
        parts = parts || r->execution_op;
        seen = seen || npuprof_npu_remembers_entries_(r);
    }
#define NPUPROF_NPU_TABLE_(type, member, count) \
    npu->member = (type *)npuprof_npu_next_table_(&to, (count), sizeof(type));
    NPUPROF_NPU_TABLE_(npuprof_npu_call_, calls_, NPUPROF_NPU_CALLS_)
    NPUPROF_NPU_TABLE_(npuprof_npu_job_, jobs_, jobs)
    NPUPROF_NPU_TABLE_(uint32_t, used_, jobs / 32)
    NPUPROF_NPU_TABLE_(uint32_t, numbered_, jobs / 32 * NPUPROF_NPU_ROWS_)
    NPUPROF_NPU_TABLE_(uint32_t, dropped_, NPUPROF_NPU_DROPPED_)
    NPUPROF_NPU_TABLE_(npuprof_npu_queue_, queues_, queues)
    NPUPROF_NPU_TABLE_(npuprof_npu_lane_state_, lanes_, queues ? NPUPROF_NPU_LANES_ + 1 : 0)
    NPUPROF_NPU_TABLE_(npuprof_npu_late_, late_, queues ? NPUPROF_NPU_LATE_ : 0)
    NPUPROF_NPU_TABLE_(npuprof_npu_pair_, pairs_, pairs ? NPUPROF_NPU_PAIRS_ : 0)
    NPUPROF_NPU_TABLE_(uint32_t, seen_, seen ? NPUPROF_NPU_SEEN_ : 0)
    NPUPROF_NPU_TABLE_(npuprof_npu_ended_, ended_, parts ? NPUPROF_NPU_ENDED_ : 0)
    return to.end;
}

/* Finds memory for the tables, zeroed: the user's, or pages of the system. */
NPUPROF_OWN_ static npuprof_result npuprof_npu_take_tables_(npuprof_npu *npu)
{
    npuprof_npu_desc *const d = &npu->desc_;
    if (d->job_count > 65536) return NPUPROF_REFUSE_("npuprof_npu_open: desc.job_count is above 65536");
    d->job_count = d->job_count ? (d->job_count + 31) / 32 * 32 : 256;
    const size_t bytes = npuprof_npu_lay_tables_(npu, NULL);
    if (d->memory && (d->memory_bytes < bytes || (uintptr_t)d->memory % NPUPROF_NPU_TABLE_ALIGN_))
        return npuprof_os_explain_(NPUPROF_ERR_NPU_MEMORY,
                                   "NPUPROF_ERR_NPU_MEMORY: npuprof_npu_open: desc.memory is not aligned to "
                                   "16 bytes, or too small: this device needs %llu bytes, and memory_bytes "
                                   "is %llu",
                                   (unsigned long long)bytes, (unsigned long long)d->memory_bytes);
    npu->tables_bytes_ = bytes;
    if (!d->memory) npu->tables_ = npuprof_os_memory_(bytes);
    else memset(d->memory, 0, bytes);
    unsigned char *const memory = (unsigned char *)(d->memory ? d->memory : npu->tables_);
    if (!memory)
        return npuprof_os_explain_(NPUPROF_ERR_NPU_MEMORY,
                                   "NPUPROF_ERR_NPU_MEMORY: npuprof_npu_open: the system gives no %llu bytes "
                                   "for this device; name memory in desc.memory", (unsigned long long)bytes);
    (void)npuprof_npu_lay_tables_(npu, memory);
    return NPUPROF_OK;
}

/* Gives the memory back. */
NPUPROF_OWN_ static void npuprof_npu_give_tables_back_(npuprof_npu *npu)
{
    if (npu->tables_) npuprof_os_unmap_(npu->tables_, npu->tables_bytes_);
    npu->tables_ = NULL;
    npu->queues_ = NULL;
    npu->queue_count_ = 0;
}
/* ==== src/npu/host/queues.h ======================================================= >>npu/host/queues ==== */

/* Rings and progress index of a device that is being opened: what cannot be is refused, with a sentence that
   names the key. One thread. May not know how a record is drawn. */

enum { NPUPROF_NPU_SCALE_LIMIT_BITS_ = 32 };

/* One thing after the other: `key` is at fault if `wrong`. */
#define NPUPROF_NPU_REFUSE_IF_(wrong, key, why) \
    do { if (wrong) return npuprof_npu_refuse_(npu, q->number, key, why); } while (0)

/* The ready rule, what it needs, and what it may not have. */
NPUPROF_OWN_ static npuprof_result npuprof_npu_check_rule_(const npuprof_npu *npu, npuprof_npu_queue_ *q)
{
    const npuprof_npu_ring *r = &q->is;
    const npuprof_npu_index *x = &r->producer;
    const bool indexed = x->memory || x->in_memory || x->has_laps || x->has_wrap || x->unit ||
                         x->offset;
    static const char fed[] = "takes no ready rule: no producer, valid, phase";
    NPUPROF_NPU_REFUSE_IF_(r->feed && (r->count || r->memory), "feed", "takes no count and no memory");
    NPUPROF_NPU_REFUSE_IF_(r->ready < 0 || r->ready >= NPUPROF_NPU_READY_COUNT_, "ready", "is no rule");
    NPUPROF_NPU_REFUSE_IF_(r->feed && (r->ready || indexed), "feed", fed);
    for (int i = 0; i < NPUPROF_NPU_READY_COUNT_; i++) {
        const npuprof_npu_rule_ *const rule = &npuprof_npu_rules_[i];
        const bool is_there = rule->lacks && npuprof_npu_field_at_(r, rule->field).width_bytes;
        const bool wrong = r->ready == i ? rule->lacks && !is_there : is_there && rule->is_own;
        NPUPROF_NPU_REFUSE_IF_(wrong && r->feed, "feed", fed);
        NPUPROF_NPU_REFUSE_IF_(wrong, npuprof_npu_rule_key_(rule), rule->lacks);
    }
    NPUPROF_NPU_REFUSE_IF_(r->ready && indexed, "producer",
                           "is there, and another ready rule, too: give one");
    NPUPROF_NPU_REFUSE_IF_(!r->entry_bytes, "entry_bytes", "is 0");
    NPUPROF_NPU_REFUSE_IF_(!r->feed && !r->count, "count", "is 0");
    q->rule = r->feed ? NULL : &npuprof_npu_rules_[r->ready];
    return NPUPROF_OK;
}

/* The rule's field, when it was found in the entry. */
NPUPROF_OWN_ static npuprof_result npuprof_npu_check_rule_bits_(const npuprof_npu *npu, const npuprof_npu_queue_ *q)
{
    const char *const wrong = q->rule && q->rule->check ? q->rule->check(q) : NULL;
    NPUPROF_NPU_REFUSE_IF_(wrong, npuprof_npu_rule_key_(q->rule), wrong);
    NPUPROF_NPU_REFUSE_IF_(q->is.phase_first > 1, "phase_first", "is neither 0 nor 1");
    return NPUPROF_OK;
}

/* The stamps that its kinds need. */
NPUPROF_OWN_ static npuprof_result npuprof_npu_check_stamps_(const npuprof_npu *npu, const npuprof_npu_queue_ *q)
{
    const npuprof_npu_ring *r = &q->is;
    static const uint8_t stamps[] = { NPUPROF_NPU_AT_START_, NPUPROF_NPU_AT_END_, NPUPROF_NPU_AT_STAMP_ };
    const bool start = npuprof_npu_has_(q, NPUPROF_NPU_AT_START_);
    const bool end = npuprof_npu_has_(q, NPUPROF_NPU_AT_END_), stamp =
        npuprof_npu_has_(q, NPUPROF_NPU_AT_STAMP_);
    const bool duration = npuprof_npu_has_(q, NPUPROF_NPU_AT_DURATION_);
    const bool none = r->stamp_clock == NPUPROF_NPU_STAMP_NONE;
    bool spans = false, moments = false;
    for (unsigned i = 0; i <= r->kind_count; i++) {
        const int is = i < r->kind_count ? r->kinds[i].is : r->all_are;
        if (i == r->kind_count && r->kind_count) break;
        spans = spans || is == NPUPROF_NPU_KIND_SPAN;
        moments = moments || (is != NPUPROF_NPU_KIND_SPAN && is != NPUPROF_NPU_KIND_SKIP);
    }
    NPUPROF_NPU_REFUSE_IF_(r->stamp_clock < 0 || r->stamp_clock >= NPUPROF_NPU_STAMP_COUNT_, "stamp_clock",
                           "is no clock");
    NPUPROF_NPU_REFUSE_IF_(none && (start || end || stamp), "stamp_clock",
                           "is STAMP_NONE, but there are stamps");
    NPUPROF_NPU_REFUSE_IF_(none && duration && !r->duration_in_ns, "duration_in_ns",
                           "must be set where STAMP_NONE goes with duration: no stamp has the unit");
    NPUPROF_NPU_REFUSE_IF_(!duration && (r->duration_in_ns || r->duration_num > 1 || r->duration_den > 1),
                           "duration", "is missing, and there is a unit of it");
    NPUPROF_NPU_REFUSE_IF_(duration && !spans, "duration", "goes with no kind that is a span");
    NPUPROF_NPU_REFUSE_IF_(!none && spans && !start && !end, "start",
                           "and end are missing; a queue without stamps says STAMP_NONE");
    NPUPROF_NPU_REFUSE_IF_(!none && moments && !stamp, "stamp", "is missing; its kinds need it");
    NPUPROF_NPU_REFUSE_IF_(duration && start && end, "duration",
                           "is there, with start and end: give two of them");
    NPUPROF_NPU_REFUSE_IF_(duration && !start && !end && !none, "duration", "needs start or end");
    for (unsigned i = 0; i < sizeof stamps; i++)
        NPUPROF_NPU_REFUSE_IF_(npuprof_npu_has_(q, stamps[i]) && npuprof_npu_bits_at_(q, stamps[i]) < 8,
                               npuprof_npu_value_keys_[stamps[i]], "has fewer than 8 bits");
    const bool host = r->stamp_clock == NPUPROF_NPU_STAMP_HOST;
    const uint64_t limit = (uint64_t)1 << NPUPROF_NPU_SCALE_LIMIT_BITS_;
    NPUPROF_NPU_REFUSE_IF_(host && (r->stamp_offset || r->scale_num > 1 || r->scale_den > 1), "stamp_clock",
                           "is STAMP_HOST, which takes no scale and no offset");
    NPUPROF_NPU_REFUSE_IF_(r->duration_num > limit || r->duration_den > limit, "duration_num",
                           "or duration_den is above 2^32");
    NPUPROF_NPU_REFUSE_IF_(r->scale_num > limit || r->scale_den > limit, "scale_num",
                           "or scale_den is above 2^32");
    return NPUPROF_OK;
}

/* The kinds: which there are, and what they need. */
NPUPROF_OWN_ static npuprof_result npuprof_npu_check_kinds_(const npuprof_npu *npu, const npuprof_npu_queue_ *q)
{
    const npuprof_npu_ring *r = &q->is;
    unsigned count[NPUPROF_NPU_KIND_COUNT_] = { 0 };
    const bool kind = npuprof_npu_has_(q, NPUPROF_NPU_AT_KIND_);
    NPUPROF_NPU_REFUSE_IF_(kind != (r->kind_count != 0) || (kind && !r->kinds), "kinds",
                           "and kind belong together: give both, or none");
    NPUPROF_NPU_REFUSE_IF_(r->all_are < 0 || r->all_are >= NPUPROF_NPU_KIND_COUNT_, "all_are", "is no kind");
    NPUPROF_NPU_REFUSE_IF_(kind && r->all_are, "all_are", "is there, and kind, too: give one");
    for (unsigned i = 0; i < r->kind_count; i++) {
        const int is = r->kinds[i].is;
        NPUPROF_NPU_REFUSE_IF_(is < 0 || is >= NPUPROF_NPU_KIND_COUNT_, "kinds", "has an unknown kind");
        count[is]++;
        for (unsigned j = 0; j < i; j++)
            NPUPROF_NPU_REFUSE_IF_(r->kinds[j].value == r->kinds[i].value, "kinds", "has a value twice");
    }
    if (!kind) count[r->all_are]++;
    NPUPROF_NPU_REFUSE_IF_(count[NPUPROF_NPU_KIND_BEGIN] && !count[NPUPROF_NPU_KIND_END], "kinds",
                           "has a begin, but no end");
    NPUPROF_NPU_REFUSE_IF_(!count[NPUPROF_NPU_KIND_BEGIN] && count[NPUPROF_NPU_KIND_END], "kinds",
                           "has an end, but no begin");
    NPUPROF_NPU_REFUSE_IF_(count[NPUPROF_NPU_KIND_COUNTER] && !npuprof_npu_has_(q, NPUPROF_NPU_AT_VALUE_),
                           "value",
                           "is missing, which a counter needs");
    const unsigned high = npuprof_npu_bits_at_(q, NPUPROF_NPU_AT_CLOCK_HIGH_);
    const bool when = npuprof_npu_has_(q, NPUPROF_NPU_AT_CLOCK_WHEN_) ||
                      npuprof_npu_has_(q, NPUPROF_NPU_AT_CLOCK_WHEN_ + 1);
    NPUPROF_NPU_REFUSE_IF_(when != (high != 0), "clock_high",
                           "and clock_when belong together: give both, or none");
    NPUPROF_NPU_REFUSE_IF_(when && !npuprof_npu_has_(q, NPUPROF_NPU_AT_STAMP_), "clock_when",
                           "needs stamp, whose high part it tells");
    NPUPROF_NPU_REFUSE_IF_(when && high + npuprof_npu_bits_at_(q, NPUPROF_NPU_AT_STAMP_) > 64, "clock_high",
                           "and stamp have more than 64 bits");
    return NPUPROF_OK;
}

/* The tables of names, and the arguments. */
NPUPROF_OWN_ static npuprof_result npuprof_npu_check_names_(const npuprof_npu *npu, const npuprof_npu_queue_ *q)
{
    const npuprof_npu_ring *r = &q->is;
    const unsigned pes = npu->desc_.pe_count;
    NPUPROF_NPU_REFUSE_IF_(r->op_count && !r->ops, "ops", "is NULL");
    for (unsigned i = 1; i < r->op_count; i++) {
        NPUPROF_NPU_REFUSE_IF_(r->ops[i - 1].code == r->ops[i].code, "ops", "has a code twice");
        NPUPROF_NPU_REFUSE_IF_(r->ops[i - 1].code > r->ops[i].code, "ops", "is not sorted by code");
    }
    NPUPROF_NPU_REFUSE_IF_(r->lane_count && !r->lanes, "lanes", "is NULL");
    NPUPROF_NPU_REFUSE_IF_(r->pe_base >= pes, "pe_base", "reaches beyond desc.pe_count");
    NPUPROF_NPU_REFUSE_IF_(r->lane_count > pes - r->pe_base, "lanes",
                           "has more names than desc.pe_count allows");
    for (unsigned i = 0; i < r->lane_count; i++)
        for (unsigned j = 0; j < i; j++)
            NPUPROF_NPU_REFUSE_IF_(r->lanes[j].value == r->lanes[i].value, "lanes", "has a value twice");
    for (unsigned i = 0; i < NPUPROF_NPU_ALL_ARGS_; i++) {
        const npuprof_npu_arg arg = npuprof_npu_arg_at_(r, i);
        NPUPROF_NPU_REFUSE_IF_(arg.field.width_bytes && !arg.name, npuprof_npu_value_keys_[
                                   NPUPROF_NPU_AT_ARGS_ + i], "has no name");
    }
    return NPUPROF_OK;
}

/* Whether an index lies among a ring's entries. */
NPUPROF_OWN_ static bool npuprof_npu_is_inside_(const npuprof_npu_ring *r, size_t offset, size_t begin, size_t bytes)
{
    return offset + r->producer.width_bytes > begin && offset < begin + bytes;
}

/* Where the entries lie, and the index. *needed grows to the bytes of BAR that they reach. */
NPUPROF_OWN_ static npuprof_result npuprof_npu_check_place_(npuprof_npu *npu, npuprof_npu_queue_ *q, size_t *needed)
{
    npuprof_npu_ring *r = &q->is;
    const size_t align = npuprof_npu_entry_align_(q), first = r->memory ? r->first : r->offset + r->first;
    size_t end = 0;
    if (r->feed) return NPUPROF_OK;
    NPUPROF_NPU_REFUSE_IF_(r->count > 1 && r->entry_bytes % align, "entry_bytes",
                           "is no multiple of the widest field");
    NPUPROF_NPU_REFUSE_IF_(r->count > SIZE_MAX / 4 / r->entry_bytes || r->first > SIZE_MAX / 4 ||
                               r->offset > SIZE_MAX / 4, "count", "is too large");
    const size_t bytes = (size_t)r->count * r->entry_bytes;
    const bool aligned = npuprof_npu_cover_range_(first, bytes, align, r->memory ? &end : needed);
    NPUPROF_NPU_REFUSE_IF_(!aligned || (r->memory && (uintptr_t)r->memory % align),
                           r->memory ? "memory" : "offset",
                           "is not aligned to the widest field");
    NPUPROF_NPU_REFUSE_IF_(r->memory && end > r->memory_bytes, "memory_bytes",
                           "is less than the entries take");
    if (!q->rule->is_announced) return NPUPROF_OK;
    npuprof_npu_index *x = &r->producer;
    q->index.count = r->count;
    q->index.entry_bytes = r->entry_bytes;
    q->index.big_endian = r->big_endian;
    const char *const wrong = npuprof_npu_check_index_(x, &q->index, r->memory, r->memory_bytes, needed);
    NPUPROF_NPU_REFUSE_IF_(wrong, "producer", wrong);
    const bool same = !x->memory && x->in_memory == (r->memory != NULL);
    NPUPROF_NPU_REFUSE_IF_(same && npuprof_npu_is_inside_(r, x->offset, first, bytes), "producer",
                           "lies among the entries");
    NPUPROF_NPU_REFUSE_IF_(same && x->has_laps && npuprof_npu_is_inside_(r, x->laps_offset, first, bytes),
                           "producer.laps_offset", "lies among the entries");
    const uint64_t mask = q->index.mask;
    NPUPROF_NPU_REFUSE_IF_(x->unit == NPUPROF_NPU_INDEX_COUNT &&
                           (r->count - 1 > mask || (mask + 1) % r->count),
                           "count", "does not divide 2^bits of the producer index: its slots would jump");
    /* Why not a wide one: nobody is late by all that it can count. */
    NPUPROF_NPU_REFUSE_IF_(x->unit == NPUPROF_NPU_INDEX_BYTES && mask < UINT32_MAX && (mask + 1) % bytes,
                           "count", "times entry_bytes does not divide 2^bits of the producer index");
    const uint64_t last = x->unit == NPUPROF_NPU_INDEX_SLOT ? r->count - 1 : bytes - r->entry_bytes;
    NPUPROF_NPU_REFUSE_IF_(x->unit != NPUPROF_NPU_INDEX_COUNT && last > mask, "producer.bits",
                           "are too few for count");
    return NPUPROF_OK;
}

NPUPROF_OWN_ static npuprof_result npuprof_npu_check_queue_(npuprof_npu *npu, npuprof_npu_queue_ *q, size_t *needed)
{
    npuprof_npu_ring *r = &q->is;
    if (!r->scale_num) r->scale_num = 1;
    if (!r->scale_den) r->scale_den = 1;
    if (!r->stamp_unit_ns) r->stamp_unit_ns = 1;
    if (!r->duration_num) r->duration_num = 1;
    if (!r->duration_den) r->duration_den = 1;
    NPUPROF_NPU_REFUSE_IF_(r->job_scope < 0 || r->job_scope >= NPUPROF_NPU_SCOPE_COUNT_, "job_scope",
                           "is no scope");
    /* Why several: a wrong match is worse than none. */
    if (!r->job_scope || r->job_scope == NPUPROF_NPU_SCOPE_RING)
        r->job_scope = npu->queue_count_ > 1 ? NPUPROF_NPU_SCOPE_RING : NPUPROF_NPU_SCOPE_DEVICE;
    NPUPROF_NPU_REFUSE_IF_(r->more_arg_count > NPUPROF_NPU_MORE_ARGS, "more_arg_count", "is above 8");
    NPUPROF_NPU_REFUSE_IF_(r->more_arg_count && !r->more_args, "more_args", "is NULL");
    npuprof_result result = npuprof_npu_check_rule_(npu, q);
    if (result == NPUPROF_OK) result = npuprof_npu_add_values_(npu, q);
    if (result == NPUPROF_OK) result = npuprof_npu_check_rule_bits_(npu, q);
    if (result == NPUPROF_OK) result = npuprof_npu_check_kinds_(npu, q);
    if (result == NPUPROF_OK) result = npuprof_npu_check_stamps_(npu, q);
    if (result == NPUPROF_OK) result = npuprof_npu_check_names_(npu, q);
    if (result == NPUPROF_OK) result = npuprof_npu_check_place_(npu, q, needed);
    if (result == NPUPROF_OK) npuprof_npu_plan_entry_(q);
    return result;
}

/* Do two rings share bytes? */
NPUPROF_OWN_ static bool npuprof_npu_rings_overlap_(const npuprof_npu_ring *a, const npuprof_npu_ring *b)
{
    const uintptr_t from[2] = { a->memory ? (uintptr_t)a->memory : a->offset,
                                b->memory ? (uintptr_t)b->memory : b->offset };
    if (a->feed || b->feed || !a->memory != !b->memory) return false;
    const uintptr_t at[2] = { from[0] + a->first, from[1] + b->first };
    return at[0] < at[1] + (uintptr_t)b->count * b->entry_bytes &&
           at[1] < at[0] + (uintptr_t)a->count * a->entry_bytes;
}

/* Fills in the defaults of rings and progress index, and checks them. *needed grows to the bytes of BAR that
   they reach. */
NPUPROF_OWN_ static npuprof_result npuprof_npu_check_queues_(npuprof_npu *npu, size_t *needed)
{
    npuprof_npu_desc *d = &npu->desc_;
    const bool by_hand = d->ring.feed && !d->ring.entry_bytes;
    const bool one = d->ring.count || (d->ring.feed && !by_hand);
    if (d->ring_count > NPUPROF_NPU_RINGS)
        return NPUPROF_REFUSE_("npuprof_npu_open: desc.ring_count is above 128");
    if (d->ring_count && !d->rings) return NPUPROF_REFUSE_("npuprof_npu_open: desc.rings is NULL");
    if (d->ring_count && one)
        return NPUPROF_REFUSE_("npuprof_npu_open: desc.ring and desc.rings are both there: give one");
    if ((d->ring_count || one) && d->progress.is_there)
        return NPUPROF_REFUSE_("npuprof_npu_open: desc.progress and a ring are both there: give one");
    npu->id_mask_ = UINT64_MAX;
    npu->has_numbers_ = !d->progress.is_there;
    npu->has_submissions_ = by_hand || d->anchors_only;
    uint32_t seen = 0;
    npu->queue_count_ = d->ring_count ? d->ring_count : one;
    const npuprof_result room = npuprof_npu_take_tables_(npu);
    if (room != NPUPROF_OK) return room;
    npuprof_npu_queue_ *q = npu->queues_;
    for (unsigned i = 0; i < npu->queue_count_; i++, q++) {
        q->is = d->ring_count ? d->rings[i] : d->ring;
        q->number = i;
        const npuprof_result result = npuprof_npu_check_queue_(npu, q, needed);
        if (result != NPUPROF_OK) return result;
        for (unsigned j = 0; j < i; j++)
            NPUPROF_NPU_REFUSE_IF_(npuprof_npu_rings_overlap_(&npu->queues_[j].is, &q->is), "offset",
                                   "or memory overlaps another ring's");
        const unsigned job = npuprof_npu_bits_at_(q, NPUPROF_NPU_AT_JOB_);
        npu->has_numbers_ = npu->has_numbers_ && job != 0;
        if (job && job < 64) npu->id_mask_ &= npuprof_npu_mask_(job);
        const bool ends_jobs = q->is.kind_count ? true : q->is.all_are == NPUPROF_NPU_KIND_SPAN;
        npu->has_submissions_ = npu->has_submissions_ || ends_jobs;
        q->seen_at = NPUPROF_NPU_SEEN_;
        if (!q->rule || !q->rule->is_cleared || q->is.count > NPUPROF_NPU_SEEN_ - seen) continue;
        q->seen_at = seen;
        seen += q->is.count;
    }
    if (npu->pairs_) npuprof_npu_clear_pairs_(npu);
    return NPUPROF_OK;
}

/* The same of the progress index. */
NPUPROF_OWN_ static npuprof_result npuprof_npu_check_progress_(npuprof_npu *npu, size_t *needed)
{
    npuprof_npu_progress *p = &npu->desc_.progress;
    if (!p->is_there) return NPUPROF_OK;
    const char *wrong = p->index.in_memory && !p->index.memory ? "has no memory to be in" : NULL;
    if (!wrong) wrong = npuprof_npu_check_index_(&p->index, &npu->progress_, NULL, 0, needed);
    const bool is_slot =
        p->index.unit == NPUPROF_NPU_INDEX_SLOT || p->index.unit == NPUPROF_NPU_INDEX_BYTE_OFFSET;
    const bool in_bytes = p->index.unit >= NPUPROF_NPU_INDEX_BYTES;
    if (!wrong && is_slot && !p->count) wrong = "has slots, but progress.count is 0";
    if (!wrong && in_bytes && !p->entry_bytes) wrong = "counts bytes, but progress.entry_bytes is 0";
    if (wrong)
        return npuprof_os_explain_(NPUPROF_ERR_NPU_RANGE, "NPUPROF_ERR_NPU_RANGE: npuprof_npu_open: "
                                   "desc.progress.index %s", wrong);
    npu->progress_.shows_count = true;
    /* Slots of a lap; of a running index, more than it can wait for. */
    npu->progress_.count = is_slot ? p->count : (uint64_t)1 << 33;
    npu->progress_.entry_bytes = p->entry_bytes ? p->entry_bytes : 1;
    npu->progress_.big_endian = p->big_endian;
    npu->has_submissions_ = true;
    return NPUPROF_OK;
}

/* Where the entries of a device that is open lie, and where it is in them. The first bad result. */
NPUPROF_OWN_ static npuprof_result npuprof_npu_start_queues_(npuprof_npu *npu)
{
    npuprof_result first = NPUPROF_OK;
    uint64_t unit = 0;
    for (unsigned i = 0; i < npu->queue_count_; i++) {
        npuprof_npu_queue_ *q = &npu->queues_[i];
        npuprof_npu_begin_lanes_(npu, q);
        npuprof_npu_limit_stamps_(npu, q);
        q->looked = npu->open_host_;
        if (npuprof_npu_is_scaled_(&q->is)) unit = npuprof_max_(unit, npuprof_npu_unit_(&q->is));
        if (q->is.feed) continue;
        /* Why those in the BAR: a look at the entry before costs loads there. Why those that somebody clears,
           too: that changes what is looked at. */
        const bool tells = npuprof_npu_has_(q, NPUPROF_NPU_AT_SEQUENCE_) && !npuprof_npu_sequence_period_(q);
        if ((q->rule->is_cleared && !tells) || (!q->is.memory && q->rule->period && q->rule->period(q)))
            npuprof_npu_count_records_(npu, NPUPROF_RECORDS_LOSS_UNKNOWN, 1);
        q->base = q->is.memory ? (const volatile unsigned char *)q->is.memory : npu->bar_ + q->is.offset;
        q->base += q->is.first;
        if (npuprof_npu_is_in_bar_(q) && !npuprof_npu_is_on_(npu)) continue;
        const npuprof_result result = npuprof_npu_find_ring_(npu, q);
        if (first == NPUPROF_OK) first = result;
    }
    npuprof_npu_note_(npu, NPUPROF_NOTE_UNIT, unit);
    const npuprof_npu_progress *p = &npu->desc_.progress;
    if (p->is_there && (!npu->progress_.in_bar || npuprof_npu_is_on_(npu)))
        first = npuprof_npu_read_index_(npu, &p->index, &npu->progress_, &npu->progress_next_);
    return first;
}
/* ==== src/npu/host/progress.h =================================================== >>npu/host/progress ==== */

/* A device without records: an index of finished jobs ends submissions. Those whose numbers it has passed are
   over; without numbers, one for each step, the oldest first. Owns progress_ and progress_next_ (npuprof_npu
   in types.h). Under the queue lock. */

/* What a drain has found. */
typedef struct npuprof_npu_visit_ {
    npuprof_result ring_result, result;  /* the first bad one of a ring; of the clock */
    bool took;                           /* there were records */
} npuprof_npu_visit_;

/* Draws a submission that is over. */
NPUPROF_OWN_ static void npuprof_npu_draw_progress_(npuprof_npu *npu, const npuprof_npu_now_ *now,
                                       const npuprof_npu_submission_ *of)
{
    npuprof_npu_drawing_ s;
    memset(&s, 0, sizeof s);
    s.end = now->host;
    s.start = of->link.ticks && of->link.ticks < s.end ? of->link.ticks : s.end;
    s.flags = NPUPROF_STAMP_HOST;
    s.takes_arrow = true;
    npuprof_npu_draw_(npu, &s, of);
}

/* Counts submissions that gave up their places as lost, at most so many. Returns how many. */
NPUPROF_OWN_ static uint64_t npuprof_npu_count_forgotten_(npuprof_npu *npu, uint64_t most)
{
    const uint32_t forgotten = (uint32_t)npuprof_min_(NPUPROF_LOAD_(&npu->forgotten_), most);
    NPUPROF_ADD_(&npu->forgotten_, 0u - forgotten);
    npuprof_npu_count_records_(npu, NPUPROF_RECORDS_OVERWRITTEN, forgotten);
    return forgotten;
}

/* Whether a job has a number, and that lies below `done`, as far as the index tells: modulo its period. */
NPUPROF_OWN_ static bool npuprof_npu_is_progress_over_(const npuprof_npu *npu, const npuprof_npu_job_ *job, uint64_t done)
{
    const npuprof_npu_progress *const p = &npu->desc_.progress;
    if (!(NPUPROF_LOAD_(&job->flags) & NPUPROF_NPU_HAS_ID_)) return false;
    const uint64_t id = NPUPROF_LOAD_(&job->id);
    const bool is_slot =
        p->index.unit == NPUPROF_NPU_INDEX_SLOT || p->index.unit == NPUPROF_NPU_INDEX_BYTE_OFFSET;
    if (is_slot) {
        const uint64_t from = npu->progress_next_ % p->count;
        return (id % p->count + p->count - from) % p->count < done - npu->progress_next_;
    }
    /* Why so far back: a number may be set when its work is over. */
    const uint64_t unit = p->index.unit == NPUPROF_NPU_INDEX_BYTES ? p->entry_bytes : 1;
    const uint64_t last = npu->progress_.mask / unit, behind = done - 1 - id;
    return (last == UINT64_MAX ? behind : behind % (last + 1)) <= last / 2;
}

/* Ends the numbered submissions that are over. */
NPUPROF_OWN_ static void npuprof_npu_end_numbered_(npuprof_npu *npu, npuprof_npu_visit_ *d, uint64_t done)
{
    npuprof_npu_pass_ pass;
    npuprof_npu_submission_ of;
    npuprof_npu_lookup_ s;
    memset(&s, 0, sizeof s);
    s.has_id = s.whole = true;
    s.id_mask = UINT64_MAX;
    for (bool first = true;; first = false) {
        npuprof_npu_job_ *const job = npuprof_npu_oldest_job_(npu, npuprof_npu_is_progress_over_, done);
        if (!job || (first && !npuprof_npu_begin_pass_(npu, NULL, &pass, &d->result))) break;
        s.id = NPUPROF_LOAD_(&job->id);
        (void)npuprof_npu_take_submission_(npu, &s, &of);
        d->took = true;
        if (of.known) npuprof_npu_draw_progress_(npu, &pass.now, &of);
        else if (!of.muted) break;       /* somebody else ended it, or holds it */
    }
    npu->progress_next_ = done;
}

/* Ends one submission, the oldest, for each step of the index. */
NPUPROF_OWN_ static void npuprof_npu_end_steps_(npuprof_npu *npu, npuprof_npu_visit_ *d, uint64_t done)
{
    npuprof_npu_pass_ pass;
    npuprof_npu_lookup_ any;
    if (done == npu->progress_next_ || !npuprof_npu_begin_pass_(npu, NULL, &pass, &d->result)) return;
    memset(&any, 0, sizeof any);
    any.any_stream = any.whole = true;
    /* Why first: what was forgotten is older than all that is known. */
    npu->progress_next_ += npuprof_npu_count_forgotten_(npu, done - npu->progress_next_);
    for (; npu->progress_next_ < done; npu->progress_next_++) {
        npuprof_npu_submission_ of;
        (void)npuprof_npu_take_submission_(npu, &any, &of);
        d->took = true;
        if (!of.known) {                 /* it, and all after, were submitted while recording was off */
            npu->progress_next_ = done;
            return;
        }
        npuprof_npu_draw_progress_(npu, &pass.now, &of);
    }
}

/* Ends the submissions that the progress index says are over. */
NPUPROF_OWN_ static void npuprof_npu_drain_progress_(npuprof_npu *npu, npuprof_npu_visit_ *d)
{
    uint64_t done;
    if (npu->progress_.in_bar && !npuprof_npu_is_on_(npu)) {
        d->ring_result = NPUPROF_ERR_NPU_OFF;
        return;
    }
    const bool known = npu->progress_.known;
    d->ring_result = npuprof_npu_read_index_(npu, &npu->desc_.progress.index, &npu->progress_, &done);
    if (d->ring_result == NPUPROF_ERR_NPU_DEAD || d->ring_result == NPUPROF_ERR_NPU_BUSY) return;
    if (!known || done < npu->progress_next_) npu->progress_next_ = done;
    /* Why: numbers of npuprof_npu_job() are not the index's. */
    if (!NPUPROF_LOAD_(&npu->uses_ids_) || NPUPROF_LOAD_(&npu->ids_)) {
        npuprof_npu_end_steps_(npu, d, done);
        return;
    }
    (void)npuprof_npu_count_forgotten_(npu, UINT64_MAX);     /* one that gave up its place is nobody's */
    npuprof_npu_end_numbered_(npu, d, done);
}
/* ==== src/npu/host/drain.h ========================================================= >>npu/host/drain ==== */

/* The library comes for the records of rings that it polls. One drain works at a time, the one that holds the
   queue lock.

   A ring is read up to where the device was when its drain began; then the clock is read, so every stamp lies
   before it. */

/* Takes one batch that was copied. True: go on with the next. */
NPUPROF_OWN_ static bool npuprof_npu_take_batch_(npuprof_npu *npu, npuprof_npu_queue_ *q, npuprof_npu_reading_ *reading,
                                    const npuprof_npu_pass_ *pass)
{
    const uint64_t first = q->next;
    for (unsigned i = 0; i < reading->count; i++) {
        const uint64_t number = first + i;
        const int fate = reading->fate[i];
        if (fate == NPUPROF_NPU_ENTRY_LATER_) return false;
        if (fate == NPUPROF_NPU_ENTRY_LAPPED_) {
            npuprof_npu_count_gap_(npu, q, reading->gap[i]);
            q->next = number + reading->gap[i];
            q->index.last += reading->gap[i];
            reading->producer += reading->gap[i];
            return true;
        }
        const bool good = fate == NPUPROF_NPU_ENTRY_GOOD_;
        npuprof_npu_count_gap_(npu, q, good ? reading->gap[i] : 1);
        if (good) npuprof_npu_take_or_keep_(npu, q, &reading->batch[i], pass);
        q->next = number + 1;
        if (i + 1 < reading->count && reading->fate[i + 1] == NPUPROF_NPU_ENTRY_GOOD_) continue;
        q->read_end = good ? q->next + 1 : 0;
        q->read_hash = npuprof_npu_hash_record_(q, &reading->batch[i]);
    }
    return true;
}

/* Takes what a ring has. */
NPUPROF_OWN_ static void npuprof_npu_drain_queue_(npuprof_npu *npu, npuprof_npu_queue_ *q, npuprof_npu_visit_ *d)
{
    npuprof_npu_reading_ reading;
    npuprof_npu_pass_ pass;
    if (npuprof_npu_is_in_bar_(q) && !npuprof_npu_is_on_(npu)) {
        reading.result = NPUPROF_ERR_NPU_OFF;
    } else if (npuprof_npu_begin_reading_(npu, q, &reading)) {
        const uint64_t begun = q->next;
        /* Why the clock after the copy, and for each batch that no index announced: what came meanwhile has
           stamps of meanwhile. */
        bool go_on = true;
        for (bool again = false; go_on && npuprof_npu_copy_batch_(npu, q, &reading); again = true) {
            if (!q->rule->is_announced || !again) go_on = npuprof_npu_begin_pass_(npu, q, &pass, &d->result);
            if (go_on) go_on = npuprof_npu_take_batch_(npu, q, &reading, &pass);
        }
        d->took = d->took || q->next != begun;
    }
    if (d->ring_result == NPUPROF_OK) d->ring_result = reading.result;
}

/* Takes an anchor if one is due. */
NPUPROF_OWN_ static npuprof_result npuprof_npu_renew_if_due_(npuprof_npu *npu)
{
    if (!npuprof_npu_lock_(npu)) return NPUPROF_OK;
    const bool due = npuprof_npu_anchor_is_due_(npu, npuprof_ticks_()) ||
                     npuprof_npu_rate_changed_(npu, &npu->last_);
    npuprof_npu_unlock_(npu);
    return due ? npuprof_npu_renew_anchor_(npu) : NPUPROF_OK;
}

/* wait: for another drain, which is not to take the last records. */
NPUPROF_OWN_ static npuprof_result npuprof_npu_drain_(npuprof_npu *npu, bool wait)
{
    npuprof_npu_visit_ d = { NPUPROF_OK, NPUPROF_OK, false };
    if (!npu->number_) return NPUPROF_ERR_NPU_NOT_OPEN;
    if (!npu->queue_count_ && !npu->desc_.progress.is_there) return NPUPROF_ERR_NPU_NO_RING;
    if (wait && !npuprof_npu_lock_queue_(npu)) return NPUPROF_ERR_NPU_BUSY;
    if (!wait && !npuprof_npu_try_queue_(npu)) return NPUPROF_OK;
    npuprof_npu_take_late_(npu, false);
    for (unsigned i = 0; i < npu->queue_count_; i++)
        if (npu->queues_[i].base) npuprof_npu_drain_queue_(npu, &npu->queues_[i], &d);
    if (npu->desc_.progress.is_there) npuprof_npu_drain_progress_(npu, &d);
    npuprof_npu_end_pass_(npu, d.took);
    if (d.ring_result != NPUPROF_ERR_NPU_DEAD && d.result != NPUPROF_ERR_NPU_DEAD) {
        const npuprof_result renewed = npuprof_npu_renew_if_due_(npu);
        /* Why not no anchor: the records may need none, or said so themselves. */
        if (d.result == NPUPROF_OK && renewed != NPUPROF_ERR_NPU_NO_ANCHOR) d.result = renewed;
    }
    return d.ring_result != NPUPROF_OK ? d.ring_result : d.result;
}

NPUPROF_API_ npuprof_result npuprof_npu_drain(npuprof_npu *npu)
{
    return npuprof_npu_explain_(npu, npuprof_npu_drain_(npu, false));
}

/* The last records of a device that is being closed: what lies in its rings, and begins without ends. */
NPUPROF_OWN_ static void npuprof_npu_finish_records_(npuprof_npu *npu)
{
    npuprof_npu_pair_ *pair;
    (void)npuprof_npu_drain_(npu, true);
    if (!npuprof_npu_lock_queue_(npu)) return;
    for (unsigned i = 0; i < npu->queue_count_; i++) {
        npuprof_npu_queue_ *q = &npu->queues_[i];
        uint64_t producer;
        if (!q->base || !q->rule->is_announced || !q->found) continue;
        if (npuprof_npu_is_in_bar_(q) && !npuprof_npu_is_on_(npu)) continue;
        if (npuprof_npu_read_producer_(npu, q, &producer) == NPUPROF_OK)
            npuprof_npu_count_records_(npu, NPUPROF_RECORDS_OVERWRITTEN, producer - q->next);
    }
    npuprof_npu_take_late_(npu, true);
    npuprof_npu_count_open_jobs_(npu);
    while ((pair = npuprof_npu_oldest_pair_(npu)) != NULL) npuprof_npu_abandon_pair_(npu, pair);
    npuprof_npu_end_pass_(npu, false);
}
/* ==== src/npu/host/feed.h =========================================================== >>npu/host/feed ==== */

/* The driver brings the records: entries that it has anyway go through the decoder of drain.h at once. Under
   the queue lock, for which a second thread waits. */

/* Entries that the numbers in a fed queue say are missing. One that goes back begins to count anew. */
NPUPROF_OWN_ static void npuprof_npu_count_missing_(npuprof_npu *npu, npuprof_npu_queue_ *q, const npuprof_npu_record_ *r)
{
    uint64_t missing;
    if (!npuprof_npu_follows_(q, r, &missing)) q->last_sequence = r->v[NPUPROF_NPU_AT_SEQUENCE_];
    npuprof_npu_count_gap_(npu, q, missing);
}

NPUPROF_OWN_ static npuprof_result npuprof_npu_feed_(npuprof_npu *npu, npuprof_npu_queue_ *q, const unsigned char *data,
                                        size_t bytes)
{
    npuprof_npu_record_ record;
    npuprof_npu_pass_ pass;
    npuprof_result result = NPUPROF_OK;
    memset(&record, 0, sizeof record);
    if (!npuprof_npu_lock_queue_(npu)) return NPUPROF_ERR_NPU_BUSY;
    if (!npuprof_npu_begin_pass_(npu, q, &pass, &result)) {
        npuprof_npu_unlock_queue_(npu);
        return result;
    }
    npuprof_npu_take_late_(npu, false);
    for (size_t at = 0; at < bytes; at += q->is.entry_bytes) {
        npuprof_npu_take_entry_(q, data + at, &record);
        npuprof_npu_count_missing_(npu, q, &record);
        npuprof_npu_take_or_keep_(npu, q, &record, &pass);
    }
    npuprof_npu_end_pass_(npu, bytes != 0);
    if (q->is.stamp_clock == NPUPROF_NPU_STAMP_COUNTER) {
        const npuprof_result renewed = npuprof_npu_renew_if_due_(npu);
        if (result == NPUPROF_OK) result = renewed;
    }
    if (result == NPUPROF_ERR_NPU_NO_ANCHOR && npuprof_npu_lock_(npu)) {
        if (npu->has_last_) result = NPUPROF_OK;                 /* the records themselves told the time */
        npuprof_npu_unlock_(npu);
    }
    return result;
}

NPUPROF_API_ npuprof_result npuprof_npu_feed(npuprof_npu *npu, unsigned ring, const void *data, size_t bytes)
{
    if (!npu->number_) return NPUPROF_ERR_NPU_NOT_OPEN;
    if (ring >= npu->queue_count_) return NPUPROF_ERR_NPU_NO_RING;
    npuprof_npu_queue_ *const q = &npu->queues_[ring];
    if (!q->is.feed) return NPUPROF_REFUSE_("npuprof_npu_feed: this ring is polled, not fed");
    if (!data && bytes) return NPUPROF_REFUSE_("npuprof_npu_feed: data is NULL");
    if (bytes % q->is.entry_bytes)
        return NPUPROF_REFUSE_("npuprof_npu_feed: bytes is no multiple of ring.entry_bytes");
    return npuprof_npu_explain_(npu, npuprof_npu_feed_(npu, q, (const unsigned char *)data, bytes));
}

NPUPROF_API_ void npuprof_npu_set_stamp_offset(npuprof_npu *npu, int64_t ticks)
{
    if (!npu->number_ || !npuprof_npu_lock_queue_(npu)) return;
    for (unsigned i = 0; i < npu->queue_count_; i++) {
        npuprof_npu_queue_ *const q = &npu->queues_[i];
        if (q->is.stamp_clock != NPUPROF_NPU_STAMP_COUNTER || q->is.stamp_offset == ticks) continue;
        q->is.stamp_offset = ticks;
        npuprof_npu_limit_stamps_(npu, q);
        npuprof_npu_forget_stamps_(npu, q);
    }
    npu->stamp_offset_ = ticks;
    npuprof_npu_unlock_queue_(npu);
}
/* ==== src/npu/host/by_hand.h ===================================================== >>npu/host/by_hand ==== */

/* Records that the driver decodes itself: the same matching, arrows and counts as those of a ring. Owns
   nothing. May not know what a record of such a device looks like. */

/* The latest device time that a stamp may show now, and at the least; UINT64_MAX: nobody can tell. Under the
   lock. */
NPUPROF_OWN_ static uint64_t npuprof_npu_latest_(const npuprof_npu *npu, uint64_t *least)
{
    const uint64_t now = npuprof_ticks_();
    uint64_t min, max;
    *least = 0;
    if (!npu->has_last_ || npu->idle_ || !npuprof_npu_predict_since_(npu, now, now, &min, &max))
        return UINT64_MAX;
    *least = npu->last_.device_ticks + min;
    return npuprof_saturating_add_(npu->last_.device_ticks, max);
}

NPUPROF_API_ uint64_t npuprof_npu_extend_stamp(npuprof_npu *npu, uint64_t raw, unsigned bits, uint64_t after)
{
    const uint64_t mask = npuprof_npu_mask_(bits ? bits : 64);
    uint64_t now = after, least;
    if (!npu->number_) return raw;
    if (npu->desc_.counter.counts_down) raw = ~raw;
    raw = (raw + (uint64_t)npu->stamp_offset_) & mask;
    if (mask == UINT64_MAX) return raw;
    if (after) return after + ((raw - after) & mask);
    if (!npuprof_npu_lock_(npu)) return raw;
    now = npuprof_npu_latest_(npu, &least);
    /* Nothing is predicted, or not whether the stamp is of this period or the one before: a read tells. */
    if (now == UINT64_MAX || now - ((now - raw) & mask) > least) {
        npuprof_anchor_ sample;
        const npuprof_result result = npuprof_npu_read_locked_(npu, &sample);
        if (result != NPUPROF_ERR_NPU_NO_ANCHOR) now = sample.device_ticks;
        else if (now == UINT64_MAX) now = raw;
    }
    npuprof_npu_unlock_(npu);
    const uint64_t back = (now - raw) & mask;
    return back > now ? raw : now - back;
}

/* A record of a job. */
typedef struct npuprof_npu_by_hand_ {
    uint64_t job;
    unsigned pe;
    const char *name, *category;
    npuprof_args args;
    bool last;
    uint64_t start, end;                 /* device ticks, if there is no `host` */
    const npuprof_npu_host_times *host;
    uint64_t seen;                       /* host ticks when it was handed over */
} npuprof_npu_by_hand_;

/* Whether device ticks can be those of a record that is there now. */
NPUPROF_OWN_ static bool npuprof_npu_are_possible_(npuprof_npu *npu, uint64_t start, uint64_t end)
{
    if (start > end || !npuprof_npu_lock_(npu)) return false;
    uint64_t least;
    const uint64_t latest = npuprof_npu_latest_(npu, &least);
    npuprof_npu_unlock_(npu);
    return end <= latest;
}

/* Its device ticks as the times of a drawing. Returns NPUPROF_NPU_PLACED_, or why it is lost. */
NPUPROF_OWN_ static int npuprof_npu_device_times_(npuprof_npu *npu, const npuprof_npu_by_hand_ *r,
                                     const npuprof_npu_submission_ *of, npuprof_npu_drawing_ *d)
{
    d->flags = NPUPROF_STAMP_DEVICE;
    d->start = r->start;
    d->end = r->end;
    const uint32_t epoch = NPUPROF_LOAD_(&npu->epoch_);
    const npuprof_anchor_ job = { r->start, of->link.ticks, r->seen };
    /* Why in this order: what is not possible must not teach the clock. */
    bool good = npuprof_npu_are_possible_(npu, r->start, r->end);
    if (good && of->known) good = npuprof_npu_bracket_job_(npu, epoch, &job, r->end, 0);
    d->epoch = NPUPROF_LOAD_(&npu->epoch_);    /* what it told may have begun one */
    if (!good) return NPUPROF_RECORDS_STAMPS;
    /* Where the counter may stand or begin anew, only a submission tells which epoch a stamp is of. */
    const bool doubtful = d->epoch && npuprof_npu_may_stand_(npu) && (!of->known || of->epoch != d->epoch);
    return doubtful ? (int)NPUPROF_RECORDS_EPOCH : (int)NPUPROF_NPU_PLACED_;
}

/* A time of the host as its ticks. *clock: becomes at least their error. */
NPUPROF_OWN_ static uint64_t npuprof_npu_ticks_at_ns_(int64_t ns, uint64_t *clock)
{
    uint64_t error;
    const uint64_t ticks = npuprof_ticks_at_ns_(ns, &error);
    *clock = npuprof_max_(*clock, error);
    return ticks;
}

/* The same of its times on the host's clock. */
NPUPROF_OWN_ static int npuprof_npu_clock_times_(const npuprof_npu *npu, const npuprof_npu_by_hand_ *r,
                                    const npuprof_npu_submission_ *of, npuprof_npu_drawing_ *d)
{
    const npuprof_npu_host_times *const t = r->host;
    const uint64_t length = t->duration_ns;
    uint64_t clock = 0, after = r->seen, since = of->known ? of->link.ticks : npu->open_host_;
    if (t->not_after_ns) after = npuprof_min_(after, npuprof_npu_ticks_at_ns_(t->not_after_ns, &clock));
    if (t->not_before_ns) since = npuprof_max_(since, npuprof_npu_ticks_at_ns_(t->not_before_ns, &clock));
    d->flags = NPUPROF_STAMP_HOST;
    d->end = npuprof_npu_ticks_at_ns_(t->end_ns, &clock);
    d->start = since;
    if (length) d->start = npuprof_npu_ticks_at_ns_(t->end_ns - (int64_t)length, &clock);
    else if (t->start_ns) d->start = npuprof_npu_ticks_at_ns_(t->start_ns, &clock);
    if (d->end > after && d->end - after <= clock) d->end = after;
    if (d->start > d->end && d->start - d->end <= 2 * clock) d->start = d->end;
    if (d->start > d->end || d->end > r->seen) return NPUPROF_RECORDS_STAMPS;
    /* A known length moves as a whole; else each end may lie wherever the job was. */
    uint64_t error = npuprof_max_(npuprof_saturating_sub_(length ? d->start : d->end, since),
                                  npuprof_saturating_sub_(after, length ? d->end : d->start));
    const int64_t end_ns = t->end_ns + (int64_t)npuprof_min_(t->error_ns, (uint64_t)1 << 60);
    if (t->error_ns) error = npuprof_saturating_sub_(npuprof_npu_ticks_at_ns_(end_ns, &clock), d->end);
    d->epoch = npuprof_host_error_code_(error + clock + 1);
    return NPUPROF_NPU_PLACED_;
}

/* Finds the submission of a record, and draws or counts it. Under the queue lock. Returns whether the
   submission was found. */
NPUPROF_OWN_ static bool npuprof_npu_draw_by_hand_(npuprof_npu *npu, const npuprof_npu_by_hand_ *r)
{
    /* They name no ring: a number is matched in the scope of their PE, if the rings have scopes. */
    const bool is_scoped = npu->queue_count_ && npu->queues_[0].is.job_scope != NPUPROF_NPU_SCOPE_DEVICE;
    const npuprof_npu_lookup_ lookup = { r->job != 0, false, r->job, UINT64_MAX, r->pe, is_scoped, r->pe,
                                         false, 0, r->last, false };
    npuprof_npu_drawing_ d;
    npuprof_npu_submission_ of;
    size_t n = NPUPROF_NPU_OWN_ARGS_;
    (void)npuprof_npu_take_submission_(npu, &lookup, &of);
    if (!npuprof_npu_draws_(&of)) return of.known;
    if (r->job) d.args[n++] = npuprof_uint_("job", r->job);
    for (size_t i = 0; i < r->args.count && n < NPUPROF_NPU_ROOM_; i++) d.args[n++] = r->args.items[i];
    d.arg_count = n - NPUPROF_NPU_OWN_ARGS_;
    d.lane = r->pe;
    d.name = r->name;
    d.category = r->category;
    d.takes_arrow = r->last;
    d.texts_stay = d.name_stays = false;
    const int why = r->host ? npuprof_npu_clock_times_(npu, r, &of, &d)
                            : npuprof_npu_device_times_(npu, r, &of, &d);
    if (npuprof_npu_is_placed_(npu, why)) npuprof_npu_draw_(npu, &d, &of);
    return of.known;
}

NPUPROF_OWN_ static bool npuprof_npu_take_by_hand_(npuprof_npu *npu, npuprof_npu_by_hand_ *r)
{
    r->seen = npuprof_ticks_();
    if (!npu->number_) return false;
    if (!npuprof_npu_lock_queue_(npu)) {
        npuprof_count_lost_(NPUPROF_LOST_BUSY, 1);
        return false;
    }
    const bool found = npuprof_npu_draw_by_hand_(npu, r);
    npuprof_npu_end_pass_(npu, r->last);
    return found;
}

NPUPROF_API_ bool npuprof_npu_complete(npuprof_npu *npu, uint64_t job, unsigned pe, const char *name,
                                       const char *cat, uint64_t start, uint64_t end, npuprof_args args,
                                       bool last)
{
    npuprof_npu_by_hand_ r = { job, pe, name, cat, args, last, start, end, NULL, 0 };
    return npuprof_npu_take_by_hand_(npu, &r);
}

NPUPROF_API_ bool npuprof_npu_complete_times(npuprof_npu *npu, uint64_t job, unsigned pe, const char *name,
                                             const char *cat, npuprof_npu_host_times times, npuprof_args args,
                                             bool last)
{
    npuprof_npu_by_hand_ r = { job, pe, name, cat, args, last, 0, 0, &times, 0 };
    if (!times.end_ns) times.end_ns = times.not_after_ns ? times.not_after_ns : npuprof_now_ns();
    return npuprof_npu_take_by_hand_(npu, &r);
}

NPUPROF_API_ bool npuprof_npu_complete_host(npuprof_npu *npu, uint64_t job, unsigned pe, const char *name,
                                            const char *cat, int64_t start_ns, int64_t end_ns,
                                            npuprof_args args, bool last)
{
    npuprof_npu_host_times times = { 0, 0, 0, 0, 0, 0 };
    times.start_ns = start_ns;
    times.end_ns = end_ns;
    return npuprof_npu_complete_times(npu, job, pe, name, cat, times, args, last);
}

NPUPROF_API_ void npuprof_npu_lost(npuprof_npu *npu, uint64_t count)
{
    uint64_t counts[NPUPROF_RECORDS_COUNT] = { 0 };
    counts[NPUPROF_RECORDS_DRIVER] = count;
    npuprof_npu_store_counts_(npu, counts);      /* Why no lock: a drain may have it, and call the driver */
}

NPUPROF_API_ void npuprof_npu_instant(npuprof_npu *npu, unsigned pe, const char *name, const char *cat,
                                      uint64_t ticks, npuprof_args args)
{
    if (!npu->number_ || !NPUPROF_OPEN_(1)) return;
    const npuprof_device_event_ event = {
        npu->number_, NPUPROF_LOAD_(&npu->epoch_), pe, NPUPROF_STAMP_INSTANT, cat ? cat : "NPU", name,
        ticks, ticks, NULL
    };
    npuprof_device_span_(&event, args);
}

NPUPROF_API_ void npuprof_npu_value(npuprof_npu *npu, const char *name, uint64_t value, uint64_t ticks)
{
    if (!npu->number_ || !NPUPROF_OPEN_(1)) return;
    const npuprof_device_event_ event = {
        npu->number_, NPUPROF_LOAD_(&npu->epoch_), 0, NPUPROF_STAMP_VALUE, "NPU", name, ticks, value, NULL
    };
    npuprof_device_span_(&event, PROF_NO_ARGS);
}
/* ==== src/npu/host/kernel.h ======================================================= >>npu/host/kernel ==== */

/* The two ends of a submission, and device spans by hand. With a ring the ends only say who submitted;
   without one the counter is read at both. Owns the npuprof_npu_block_, which lies on the stack of the thread
   that is in a block, or in an entry of npu/calls.h that this thread holds. */

/* The device's end of a submission begins; its host span is open. literals: name and category stay. */
NPUPROF_OWN_ static void npuprof_npu_begin_device_(npuprof_npu_block_ *block, bool literals, const char *category,
                                      const char *name)
{
    npuprof_npu *npu = block->npu;
    block->link = npuprof_link_here_();
    if (npu->desc_.cpu_ns) npuprof_npu_note_usage_(&block->link);
    if (npu->has_submissions_) {
        npuprof_npu_look_(npu);
        npuprof_npu_job_ *job = npuprof_npu_new_job_(npu, NPUPROF_NPU_IN_BLOCK_, block->stream, &block->link);
        if (!job) return;
        NPUPROF_STORE_(&block->job_at, (uint32_t)(job - npu->jobs_));
        NPUPROF_STORE_(&block->ticket, job->ticket);
        block->sampled = true;
        npuprof_npu_copy_text_(job->name, sizeof job->name, name);
        npuprof_npu_release_job_(npu, job, NPUPROF_NPU_JOB_OPEN_);
        return;
    }
    block->name = name;
    block->category = category;
    if (!literals) {
        npuprof_npu_copy_text_(block->name_copy, sizeof block->name_copy, name);
        npuprof_npu_copy_text_(block->category_copy, sizeof block->category_copy, category);
        block->name = block->name_copy;
        block->category = category ? block->category_copy : NULL;
    }
    if (!npuprof_npu_lock_(npu)) return;
    npuprof_npu_sample_begin_(block);
    block->sampled = block->result == NPUPROF_OK;
    if (block->sampled) block->pmu_good = npuprof_npu_load_pmu_(npu, block->pmu);
    npuprof_npu_add_pmu_(npu, block->pmu_good, block->pmu, 0);
    npuprof_npu_unlock_(npu);
    npuprof_npu_draw_pmu_(npu, block->pmu_good, block->pmu);
}

/* Nothing is known of the device yet. */
NPUPROF_OWN_ static void npuprof_npu_clear_block_(npuprof_npu_block_ *block, npuprof_npu *npu, uint64_t stream)
{
    block->npu = npu;
    block->stream = stream;
    block->sampled = false;
    block->pmu_good = 0;
    NPUPROF_STORE_(&block->job_at, 0u);
    NPUPROF_STORE_(&block->ticket, 0u);
    block->result = NPUPROF_ERR_NPU_BUSY;
}

/* The host span was not recorded: if it was lost, so is the device span, for the same cause. With a ring the
   device span comes by its record. site and keys may both be NULL. */
NPUPROF_OWN_ static NPUPROF_SLOW_ void npuprof_npu_count_lost_span_(const npuprof_npu *npu, npuprof_site_ *site,
                                                       npuprof_keys_ *keys, const char *category,
                                                       const char *name)
{
    if (!npu->number_ || npu->has_submissions_) return;
    npuprof_slot_ *const slot = npuprof_record_enter_();
    if (!slot) {
        (void)npuprof_record_count_no_context_();
        return;
    }
    /* Without a number it is not to be recorded, or the table is full, which that counts. */
    const uint32_t id = site || keys ? npuprof_record_named_id_(site, keys, category, name)
                                     : npuprof_record_resolve_name_(NPUPROF_KIND_SPAN, category, name);
    if (id) npuprof_record_count_full_(slot);
    npuprof_record_leave_(slot);
}

NPUPROF_API_ npuprof_token_ npuprof_npu_begin_(npuprof_npu_block_ *block, npuprof_npu *npu, uint64_t stream,
                                               npuprof_site_ *site, npuprof_keys_ *keys, bool literals,
                                               const char *category, const char *name, npuprof_args args)
{
    const bool by_ring = npu->number_ && npu->has_submissions_;
    const npuprof_token_ token = npuprof_begin_named_(by_ring ? NULL : &npu->device, site, keys,
                                                      category, name, args);
    npuprof_npu_clear_block_(block, npu, stream);
    if (token && npu->number_) npuprof_npu_begin_device_(block, literals, category, name);
    else if (!token) npuprof_npu_count_lost_span_(npu, site, keys, category, name);
    return token;
}

/* The end of a sampled block, with its event counters. */
typedef struct npuprof_npu_block_end_ {
    npuprof_npu_end_state_ is;
    uint32_t pmu_good;
    uint64_t pmu[NPUPROF_NPU_PMU_];
} npuprof_npu_block_end_;

/* Reads counter and event counters. */
NPUPROF_OWN_ static void npuprof_npu_read_end_(const npuprof_npu_block_ *block, npuprof_npu_block_end_ *end)
{
    npuprof_npu *npu = block->npu;
    end->pmu_good = 0;
    npuprof_npu_no_end_(&end->is);
    if (!npuprof_npu_lock_(npu)) return;
    /* Why the event counters first: so their steps lie between the two stamps. */
    if (block->sampled) end->pmu_good = npuprof_npu_load_pmu_(npu, end->pmu);
    npuprof_npu_sample_end_(block, &end->is);
    if (end->is.result == NPUPROF_OK)
        npuprof_npu_add_pmu_(npu, end->pmu_good, end->pmu, NPUPROF_NPU_JOBS_RAN_ | NPUPROF_NPU_SAME_RUN_);
    if (end->is.is_anchor) (void)npuprof_npu_keep_reads_(npu, &end->is.read, true);
    npuprof_npu_unlock_(npu);
}

NPUPROF_OWN_ static void npuprof_npu_draw_sampled_(const npuprof_npu_block_ *block, const npuprof_npu_block_end_ *end,
                                      npuprof_args args)
{
    npuprof_npu *npu = block->npu;
    npuprof_arg list[3 + NPUPROF_NPU_PMU_ + NPUPROF_NPU_CALL_ARGS_ + NPUPROF_NPU_USAGE_ARGS_];
    size_t count = 0;
    list[count++] = npuprof_int_("stream", (int64_t)block->stream);
    if (block->link.correlation) list[count++] = npuprof_uint_("correlation", block->link.correlation);
    npuprof_npu_draw_pmu_(npu, end->pmu_good, end->pmu);
    for (unsigned i = 0; i < npu->desc_.pmu_count; i++)
        if (end->pmu_good & block->pmu_good & 1u << i)
            list[count++] = npuprof_npu_pmu_arg_(npu, i, block->pmu[i], end->pmu[i], end->is.ticks);
    uint64_t start = block->begin.device_ticks, stop = end->is.read.device_ticks;
    uint32_t epoch = end->is.epoch;
    if (block->by_host) {
        list[count++] = npuprof_uint_("ticks", end->is.ticks);
        epoch = npuprof_host_error_code_(npuprof_npu_sample_place_(block, &end->is.read, &start, &stop));
    }
    for (size_t i = 0; i < args.count && i < NPUPROF_NPU_CALL_ARGS_; i++) list[count++] = args.items[i];
    if (npu->desc_.cpu_ns) count += npuprof_npu_usage_args_(&block->link, list + count);
    const unsigned flags = NPUPROF_STAMP_SAMPLED | (block->by_host ? NPUPROF_STAMP_HOST : 0);
    const npuprof_device_event_ event = {
        npu->number_, epoch, 0, flags, block->category, block->name, start, stop, &block->link
    };
    npuprof_device_span_(&event, npuprof_args_(list, count));
}

/* There is no device span: an event says why, and it is counted if it is lost. Returns what the event
   says. */
NPUPROF_OWN_ static npuprof_result npuprof_npu_draw_no_span_(npuprof_npu *npu, npuprof_result result)
{
    const npuprof_result reason = npuprof_npu_explain_(npu, result);
    const char *text = npuprof_result_string(reason);
    npuprof_arg why[2];                    /* one by one: tcc takes no structs of functions in a list */
    why[0] = npuprof_str_("device", npu->device.name);
    why[1] = npuprof_str_("why", text);
    if (result == NPUPROF_ERR_NPU_BUSY) npuprof_count_lost_(NPUPROF_LOST_BUSY, 1);
    if (result == NPUPROF_ERR_NPU_CALLS) npuprof_count_lost_(NPUPROF_LOST_CALLS, 1);
    const npuprof_record_new_ r = npuprof_record_of_(0, NULL, npuprof_args_(why, 2));
    npuprof_record_named_event_(NPUPROF_KIND_INSTANT, "NPU", "no device span", &r);
    return reason;
}

/* Ends a submission: the device's end, then the host span if that is still open. args: of the device span.
   Results as npuprof_npu_end(). */
NPUPROF_OWN_ static npuprof_result npuprof_npu_finish_block_(npuprof_npu_block_ *block, npuprof_args args)
{
    npuprof_npu *npu = block->npu;
    npuprof_npu_block_end_ end;
    if (npu->number_ && npu->has_submissions_) {
        if (block->sampled && npuprof_npu_end_block_of_job_(npu, block->job_at, block->ticket))
            npuprof_npu_look_at_late_(npu);
        if (block->token) npuprof_close_(block->token);
        return NPUPROF_OK;
    }
    if (block->token && npu->device.wait_around) npuprof_wait_(&npu->device);
    if (!npu->number_) {
        if (block->token) (void)npuprof_npu_draw_no_span_(npu, NPUPROF_ERR_NPU_NOT_OPEN);
        npuprof_close_(block->token);
        return NPUPROF_ERR_NPU_NOT_OPEN;
    }
    npuprof_npu_read_end_(block, &end);
    npuprof_result result = end.is.result;
    if (result != NPUPROF_OK) result = npuprof_npu_draw_no_span_(npu, result);
    if (block->token) npuprof_close_(block->token);
    if (result == NPUPROF_OK) npuprof_npu_draw_sampled_(block, &end, args);
    if (end.is.renew) (void)npuprof_npu_renew_anchor_(npu);
    return result;
}

NPUPROF_API_ uint64_t npuprof_npu_set_correlation(uint64_t id)
{
    return npuprof_correlate_(id);
}

NPUPROF_API_ void npuprof_npu_end_(npuprof_npu_block_ *block)
{
    (void)npuprof_npu_finish_block_(block, PROF_NO_ARGS);
}

NPUPROF_API_ void npuprof_npu_span(npuprof_npu *npu, unsigned pe, const char *name, const char *cat,
                                   uint64_t start_ticks, uint64_t end_ticks, npuprof_args args)
{
    const uint64_t end = end_ticks < start_ticks ? start_ticks : end_ticks;
    const npuprof_device_event_ event = {
        npu->number_, NPUPROF_LOAD_(&npu->epoch_), pe, NPUPROF_STAMP_DEVICE, cat, name, start_ticks, end, NULL
    };
    npuprof_device_span_(&event, args);
}
/* ==== src/npu/host/calls.h ========================================================= >>npu/host/calls ==== */

/* Begin and end as calls: a submission whose two ends are in different functions or threads. Its block lies
   in an entry of npu/calls.h. May not know how a counter is read, or what is in a record. */

NPUPROF_API_ uint32_t npuprof_npu_begin(npuprof_npu *npu, uint64_t stream, const char *name, const char *cat,
                                        npuprof_args args)
{
    uint32_t handle = 0;
    if (!NPUPROF_OPEN_(1)) return 0;
    const npuprof_token_ token = npuprof_record_begin_kind_(NPUPROF_KIND_SPAN, cat, name, args);
    if (!token) {
        npuprof_npu_count_lost_span_(npu, NULL, NULL, cat, name);
        return 0;
    }
    npuprof_npu_call_ *const call = npu->number_ ? npuprof_npu_take_call_(npu, &handle) : NULL;
    if (call) {
        npuprof_npu_clear_block_(&call->block, npu, stream);
        call->block.token = 0;               /* its host span ends here */
        npuprof_npu_begin_device_(&call->block, false, cat, name);
    } else if (npu->number_) {
        (void)npuprof_npu_draw_no_span_(npu, NPUPROF_ERR_NPU_CALLS);
    }
    npuprof_close_(token);
    if (call) npuprof_npu_release_call_(call, handle);
    return handle;
}

NPUPROF_API_ npuprof_result npuprof_npu_end_args(npuprof_npu *npu, uint32_t handle, npuprof_args args)
{
    if (!handle) return NPUPROF_OK;
    npuprof_npu_call_ *const call = npuprof_npu_hold_call_(npu, handle);
    if (!call && handle >> 24 != npu->number_)
        return NPUPROF_REFUSE_("npuprof_npu_end: the handle is of another device, or of one that was closed");
    if (!call) return NPUPROF_REFUSE_("npuprof_npu_end: the handle was ended before, or was never given out");
    const npuprof_result result = npuprof_npu_finish_block_(&call->block, args);
    npuprof_npu_release_call_(call, 0);
    return result;
}

/* Why the handle is looked at twice: the entry is not held, as an end of this handle must find it open. */
NPUPROF_API_ npuprof_result npuprof_npu_set_job_of(npuprof_npu *npu, uint32_t handle, uint64_t id)
{
    if (!handle) return NPUPROF_OK;
    if (!npu->number_ || !npu->has_submissions_) return NPUPROF_ERR_NPU_NO_RING;
    const npuprof_npu_call_ *const call = &npu->calls_[handle % NPUPROF_NPU_CALLS_];
    const bool open = NPUPROF_LOAD_ACQUIRE_(&call->handle) == handle;
    const uint32_t ticket = NPUPROF_LOAD_ACQUIRE_(&call->block.ticket);
    const uint32_t at = NPUPROF_LOAD_ACQUIRE_(&call->block.job_at);
    if (!open || NPUPROF_LOAD_(&call->handle) != handle)
        return NPUPROF_REFUSE_("npuprof_npu_set_job_of: the handle is not open on this device");
    (void)npuprof_npu_number_ticket_(npu, at, ticket, id);
    return NPUPROF_OK;
}

/* The device is being closed: what is open has no end any more. */
NPUPROF_OWN_ static void npuprof_npu_drop_calls_(npuprof_npu *npu)
{
    for (uint32_t i = 0; i < NPUPROF_NPU_CALLS_; i++) {
        npuprof_npu_call_ *const call = &npu->calls_[i];
        if (!NPUPROF_LOAD_(&call->handle)) continue;
        if (!npu->has_submissions_) npuprof_count_lost_(NPUPROF_LOST_CALLS, 1);
        NPUPROF_STORE_(&call->handle, 0u);
    }
}
/* ==== src/npu/host/open.h =========================================================== >>npu/host/open ==== */

/* Opening and closing a device, and its clock for other parts of a program: ticks as nanoseconds,
   npuprof_bench(). One thread opens and closes; nothing else uses the npuprof_npu meanwhile. */

/* Numbers the device in the arena, and reads the ring's producer index for the first time. */
NPUPROF_OWN_ static npuprof_result npuprof_npu_add_device_(npuprof_npu *npu)
{
    const npuprof_npu_desc *d = &npu->desc_;
    npu->number_ = npuprof_device_add_(npu->device.name, d->pe_count, d->counter.hz, d->max_rate_ppm * 1000u);
    npuprof_npu_note_(npu, NPUPROF_NOTE_LAG, npu->lag_);
    if (!npu->number_) return NPUPROF_ERR_TABLE_FULL;
    npu->open_ticks_ = npu->last_.device_ticks;
    npu->open_host_ = npuprof_ticks_();
    return npuprof_npu_start_queues_(npu);
}

/* Hashes of the names of open devices, by their numbers. Each is written by who opens and closes it. */
static uint64_t npuprof_npu_open_names_[256];

/* Notes in the trace that two devices of one name are open. Why: a driver and a runtime of one process may
   both open one device, and neither sees that from what it is returned. */
NPUPROF_OWN_ static void npuprof_npu_say_open_twice_(const npuprof_npu *npu)
{
    char key[96];
    const char *const name = npu->device.name ? npu->device.name : "";
    const uint64_t hash = npuprof_hash_key_(name);
    bool twice = false;
    for (unsigned i = 1; i < 256; i++) twice |= NPUPROF_LOAD_(&npuprof_npu_open_names_[i]) == hash;
    NPUPROF_STORE_(&npuprof_npu_open_names_[npu->number_ & 255], hash);
    if (!twice) return;
    snprintf(key, sizeof key, "npuprof_npu_open_twice %.70s", name);
    npuprof_table_add_pair_(NPUPROF_ENTRY_ENVIRONMENT, key,
                            "a device of this name is open already in this process: if a driver and a "
                            "runtime both open one device, its work is drawn and counted twice; open it in "
                            "one of them, and give two devices two names");
}

/* What of a description needs a BAR, for a sentence. */
NPUPROF_OWN_ static const char *npuprof_npu_what_is_in_bar_(const npuprof_npu_desc *d)
{
    if (d->requirement_count) return d->requirements[0].text;
    for (unsigned i = 0; i < d->pmu_count; i++)
        if (!d->pmu[i].read) return d->pmu[i].name;
    return "the ring, or its producer index,";
}

/* What the widest load from the BAR needs. */
NPUPROF_OWN_ static size_t npuprof_npu_bar_align_(const npuprof_npu *npu)
{
    uint64_t align = npuprof_npu_register_align_(&npu->desc_);
    for (unsigned i = 0; i < npu->desc_.pmu_count; i++) {
        const npuprof_npu_pmu *p = &npu->pmu_[i].is;
        if (!p->read) align = npuprof_max_(align, p->counter.access / 8);
    }
    for (unsigned i = 0; i < npu->queue_count_; i++) {
        const npuprof_npu_queue_ *q = &npu->queues_[i];
        if (q->is.feed) continue;
        if (!q->is.memory) align = npuprof_max_(align, npuprof_npu_entry_align_(q));
        if (!q->is.ready && q->index.in_bar) align = npuprof_max_(align, q->is.producer.width_bytes);
    }
    const npuprof_npu_index *x = &npu->desc_.progress.index;
    if (npu->desc_.progress.is_there && npu->progress_.in_bar) align = npuprof_max_(align, x->width_bytes);
    return (size_t)align;
}

/* Opens the device of desc_. What it took when it fails, npuprof_npu_open() gives back. */
NPUPROF_OWN_ static npuprof_result npuprof_npu_open_desc_(npuprof_npu *npu)
{
    size_t needed = 0;
    const npuprof_npu_desc *d = &npu->desc_;
    npuprof_result result = npuprof_npu_check_desc_(npu, &needed);
    if (result == NPUPROF_OK) result = npuprof_npu_check_queues_(npu, &needed);
    if (result == NPUPROF_OK) result = npuprof_npu_check_progress_(npu, &needed);
    if (result == NPUPROF_OK) result = npuprof_npu_check_pmu_(npu, &needed);
    if (result == NPUPROF_OK && needed && !npuprof_npu_has_bar_(d))
        result = npuprof_os_explain_(NPUPROF_ERR_NPU_RANGE, "NPUPROF_ERR_NPU_RANGE: desc has no BAR: "
                                     "bar, resource or vfio; %s lies in it", npuprof_npu_what_is_in_bar_(d));
    if (result != NPUPROF_OK) return result;
    if (d->bar) {
        result = npuprof_npu_use_bar_(npu, needed, npuprof_npu_bar_align_(npu));
        if (result != NPUPROF_OK) return result;
    } else if (npuprof_npu_has_bar_(d)) {
        result = npuprof_npu_map_(npu, needed ? needed : 8);
        const bool misaligned = (uintptr_t)npu->bar_ % npuprof_npu_bar_align_(npu) != 0;
        if (result == NPUPROF_OK && misaligned) result = NPUPROF_ERR_NPU_RANGE;
        if (result != NPUPROF_OK) return result;
    }
    npu->tickets_ = 1;                   /* 0 is that of entries that were never used */
    const uint64_t ns_per_4g = npuprof_max_(npuprof_ns_per_4g_ticks_(), 1);
    npu->second_ = npuprof_max_(npuprof_mul_div_((uint64_t)1000000000 << 30, 4, ns_per_4g, false), 1000);
    /* Why a 64th more: soon after the start the rate of the host's ticks is not known well. */
    npu->lag_ = npuprof_mul_div_(npu->second_, d->counter.lag_ns, 1000000000 / 65 * 64, true);
    result = npuprof_npu_begin_clock_(npu, npuprof_npu_add_device_);
    if (npu->idle_ && (result == NPUPROF_OK || result == NPUPROF_ERR_NPU_NOT_ENABLED))
        npuprof_device_flag_(npu->number_, NPUPROF_DEVICE_IDLE_);
    return result == NPUPROF_OK ? result : npuprof_npu_explain_(npu, result);
}

NPUPROF_OWN_ static void npuprof_npu_drain_for_read_(void *user)
{
    (void)npuprof_npu_drain_((npuprof_npu *)user, false);
}

/* Why a note in the trace: who reads it may not be who saw the result, and there is no device in it. */
NPUPROF_API_ npuprof_result npuprof_npu_open(npuprof_npu *npu, const npuprof_npu_desc *desc)
{
    char key[96];
    if (!npu) return NPUPROF_REFUSE_("npuprof_npu_open: npu is NULL");
    memset(npu, 0, sizeof *npu);
    if (desc) npu->desc_ = *desc;
    const npuprof_result result =
        desc ? npuprof_npu_open_desc_(npu) : NPUPROF_REFUSE_("npuprof_npu_open: desc is NULL");
    if (result != NPUPROF_OK && result != NPUPROF_ERR_NPU_NOT_ENABLED) {
        npu->number_ = 0;
        npuprof_npu_unmap_(npu);
        npuprof_npu_give_tables_back_(npu);
    }
    npu->drain_.drain = npuprof_npu_drain_for_read_;
    npu->drain_.user = npu;
    if (npu->number_) npuprof_device_watch_(&npu->drain_);
    if (npu->number_) npuprof_npu_say_open_twice_(npu);
    if (npu->number_ || !npuprof_record_is_ready_()) return result;
    snprintf(key, sizeof key, "npuprof_npu_open %.70s", desc && desc->name ? desc->name : "");
    npuprof_table_add_pair_(NPUPROF_ENTRY_ENVIRONMENT, key, npuprof_result_string(result));
    return result;
}

NPUPROF_NPU_OPEN_OF_1_0_

NPUPROF_API_ void npuprof_npu_close(npuprof_npu *npu)
{
    if (!npu->number_) return;
    npuprof_device_unwatch_(&npu->drain_);
    npuprof_npu_drop_calls_(npu);
    npuprof_npu_finish_records_(npu);
    if (npuprof_npu_is_pushed_(npu)) (void)npuprof_npu_keep_pushed_(npu, true);
    else (void)npuprof_npu_sync(npu);
    NPUPROF_STORE_(&npuprof_npu_open_names_[npu->number_ & 255], (uint64_t)0);
    npu->number_ = 0;
    npuprof_npu_unmap_(npu);
    npuprof_npu_give_tables_back_(npu);
}

/* The newest read, if it is behind all anchors; else NULL. */
NPUPROF_OWN_ static const npuprof_anchor_ *npuprof_npu_newest_read_(const npuprof_npu *npu)
{
    const npuprof_anchor_ *const last = npu->anchor_count_ ? &npu->anchors_[npu->anchor_count_ - 1] : NULL;
    return npu->has_last_ && last && npu->last_.device_ticks >= last->device_ticks ? &npu->last_ : NULL;
}

NPUPROF_API_ npuprof_result npuprof_npu_host_ns(npuprof_npu *npu, uint64_t ticks, int64_t *ns,
                                                uint64_t *error_ns)
{
    uint64_t host = 0, error = 0;
    bool good = false;
    npuprof_map_reads_ reads;
    memset(&reads, 0, sizeof reads);
    reads.rate.max_rate_ppb = npu->desc_.max_rate_ppm * 1000u;
    reads.rate.second = reads.rate.window = npu->second_;
    reads.rate.may_be_late = npu->lag_ != 0;
    reads.rate.is_unsteady = NPUPROF_LOAD_(&npu->is_unsteady_);
    *ns = 0;
    if (error_ns) *error_ns = 0;
    if (!npu->number_) return NPUPROF_ERR_NPU_NOT_OPEN;
    for (int i = 0; i < 2 && !good; i++) {
        if (!npuprof_npu_lock_(npu)) return NPUPROF_ERR_NPU_BUSY;
        reads.rate.hz = npu->desc_.counter.hz;
        reads.anchors = npu->anchors_;
        reads.count = npu->anchor_count_;
        reads.newest = npuprof_npu_newest_read_(npu);
        reads.now = npuprof_ticks_();
        good = npuprof_map_ticks_(&reads, ticks, &host, &error);
        npuprof_npu_unlock_(npu);
        if (!good && i == 0) (void)npuprof_npu_sync(npu);
    }
    if (!good) return NPUPROF_ERR_NPU_NO_ANCHOR;
    *ns = npuprof_ticks_to_ns_(host);
    if (!error_ns) return NPUPROF_OK;
    error = npuprof_mul_div_(error, npuprof_ns_per_4g_ticks_(), (uint64_t)1 << 32, true);
    *error_ns = npuprof_saturating_add_(error, 1);
    return NPUPROF_OK;
}

NPUPROF_OWN_ static npuprof_result npuprof_npu_bench_read_(void *user, uint64_t *ticks)
{
    return npuprof_npu_read((npuprof_npu *)user, ticks);
}

/* Why both after the second stamp: an anchor taken between two calls would show as time. */
NPUPROF_OWN_ static npuprof_result npuprof_npu_bench_ns_(void *user, uint64_t from, uint64_t to, double *ns)
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

#else /* NPUPROF_FREESTANDING */

/* ==== src/npu/firmware/jobs.h =================================================== >>npu/firmware/jobs ==== */

/* Submissions and completion records on firmware (NPUPROF_NPU_RECORDS): all of them go into the arena as they
   are, and the host matches them when it reads the image (tools/convert/replay.h). So any number may be open,
   and nothing is held here. May not know what is in a record. */

#ifdef NPUPROF_NPU_RECORDS
#ifndef NPUPROF_FW_KEEPS_ALL_
#error "npuprof_npu.h: NPUPROF_NPU_RECORDS needs NPUPROF_KEEP_OLDEST; leave NPUPROF_WHEN_FULL out"
#endif

enum { NPUPROF_NPU_ENTRY_MAX_ = 128, NPUPROF_NPU_ITEMS_ = NPUPROF_NPU_ENTRY_MAX_ / 8 + 8 };

/* The fields of a record that is being made. */
typedef struct npuprof_npu_items_ {
    size_t count;
    npuprof_arg arg[NPUPROF_NPU_ITEMS_];
} npuprof_npu_items_;

NPUPROF_OWN_ static npuprof_arg *npuprof_npu_add_item_(npuprof_npu_items_ *list, uint32_t type, uint64_t value)
{
    npuprof_arg *const a = &list->arg[list->count++];
    a->key = NULL;
    a->type = type;
    a->value.u = value;
    return a;
}

NPUPROF_OWN_ static npuprof_token_ npuprof_npu_put_items_(uint32_t kind, const npuprof_npu_items_ *list,
                                             npuprof_args args)
{
    npuprof_fw_fields_ fields;
    fields.list[0].items = list->arg;
    fields.list[0].count = list->count;
    fields.list[1].items = args.items;
    fields.list[1].count = args.count;
    return npuprof_fw_put_record_(NPUPROF_FW_REF_OF_KIND_(kind), false, &fields);
}

/* Says something of a submission, NPUPROF_CELL_JOB_*; token: of its span, or 0. */
NPUPROF_OWN_ static void npuprof_npu_put_job_(const npuprof_npu *npu, uint32_t what, npuprof_token_ token, uint64_t value)
{
    const uint64_t values[3] = { value, token,
                                 npu->number_ | what << 8 | (uint64_t)(npu->epoch_ & 0xFFFF) << 16 };
    if (!npu->number_ || !npu->has_submissions_) return;
    (void)npuprof_fw_put_named_(NPUPROF_FW_REF_OF_KIND_(NPUPROF_CELL_KIND_JOB_), false, NULL, values,
                                PROF_NO_ARGS);
}

/* ---- Calls of a device that is sampled: what begin read waits in the arena. A handle is the token of that
   record, whose second cell says whether it is open. */

enum { NPUPROF_NPU_CALL_WORDS_ = 6 };

NPUPROF_OWN_ static npuprof_token_ npuprof_npu_put_call_(const npuprof_npu_block_ *b)
{
    const uint64_t state = (uint64_t)b->result | (uint64_t)b->by_host << 31 | (uint64_t)b->epoch << 32;
    const uint64_t words[NPUPROF_NPU_CALL_WORDS_] = { b->begin.device_ticks, b->begin.host_before,
                                                      b->begin.host_after, b->stream, state, b->token };
    npuprof_npu_items_ list;
    list.count = 0;
    (void)npuprof_npu_add_item_(&list, NPUPROF_FIELD_VALUE_, 1);
    for (int i = 0; i < NPUPROF_NPU_CALL_WORDS_; i++)
        (void)npuprof_npu_add_item_(&list, NPUPROF_FIELD_WORD_, words[i]);
    (void)npuprof_npu_add_item_(&list, NPUPROF_FIELD_THIRD_,
                                b->npu->number_ | NPUPROF_CELL_JOB_CALL_ << 8);
    return npuprof_npu_put_items_(NPUPROF_CELL_KIND_JOB_, &list, PROF_NO_ARGS);
}

/* The block of an open call of this device, which is over now. False: there is none. */
NPUPROF_OWN_ static bool npuprof_npu_take_call_back_(npuprof_npu *npu, uint32_t handle, npuprof_npu_block_ *b)
{
    enum { CELLS = 3 + NPUPROF_NPU_CALL_WORDS_ };
    npuprof_compact_header_ *const c = npuprof_fw_arena_;
    const uint32_t used = npuprof_fw_used_cells_(c);
    const uint32_t ref = NPUPROF_FW_REF_OF_KIND_(NPUPROF_CELL_KIND_JOB_) | 1;
    uint64_t words[NPUPROF_NPU_CALL_WORDS_];
    if (!npu->number_ || !handle || handle > used || used - handle < CELLS - 1) return false;
    npuprof_cell_ *const cell = npuprof_fw_cell_(c, handle);
    if (NPUPROF_LOAD_(&cell->ref) != ref || cell->end != CELLS) return false;
    if (cell[CELLS - 1].end != (npu->number_ | NPUPROF_CELL_JOB_CALL_ << 8)) return false;
    if (!npuprof_npu_replace_word_(&cell[1].end, 1, 2)) return false;
    for (int i = 0; i < NPUPROF_NPU_CALL_WORDS_; i++)
        words[i] = cell[2 + i].end | (uint64_t)cell[2 + i].high.word << 32;
    b->npu = npu;
    b->begin.device_ticks = words[0];
    b->begin.host_before = words[1];
    b->begin.host_after = words[2];
    b->stream = words[3];
    b->result = (npuprof_result)(words[4] & 0x7FFFFFFF);
    b->by_host = words[4] >> 31 & 1;
    b->epoch = (uint32_t)(words[4] >> 32);
    b->token = (npuprof_token_)words[5];
    return true;
}

/* ---- The description of a ring. What is 0 is left out. */

NPUPROF_OWN_ static void npuprof_npu_put_ring_word_(const npuprof_npu *npu, unsigned ring, uint32_t what, uint32_t which,
                                       uint64_t value, const char *name)
{
    const char *const texts[3] = { name, NULL, NULL };
    const uint64_t values[3] = { value, what, npu->number_ | (uint64_t)ring << 8 | (uint64_t)which << 16 };
    if (!value && !name && what == NPUPROF_CELL_RING_WORD_) return;
    (void)npuprof_fw_put_named_(NPUPROF_FW_REF_OF_KIND_(NPUPROF_CELL_KIND_RING_), false, texts, values,
                                PROF_NO_ARGS);
}

NPUPROF_OWN_ static void npuprof_npu_put_ring_(const npuprof_npu *npu, unsigned ring, const npuprof_npu_ring *r)
{
    uint32_t n = 0;
#define NPUPROF_NPU_PUT_FIELD_(member) \
    npuprof_npu_put_ring_word_(npu, ring, NPUPROF_CELL_RING_WORD_, n++, \
                               npuprof_npu_pack_field_(&r->member), NULL);
    NPUPROF_NPU_RING_FIELDS_(NPUPROF_NPU_PUT_FIELD_)
    n = NPUPROF_NPU_RING_NUMBERS_AT_;
#define NPUPROF_NPU_PUT_NUMBER_(member) \
    npuprof_npu_put_ring_word_(npu, ring, NPUPROF_CELL_RING_WORD_, n++, (uint64_t)r->member, NULL);
    NPUPROF_NPU_RING_NUMBERS_(NPUPROF_NPU_PUT_NUMBER_)
    for (n = 0; n < r->kind_count; n++) {
        npuprof_npu_put_ring_word_(npu, ring, NPUPROF_CELL_RING_KIND_, n, r->kinds[n].value, NULL);
        npuprof_npu_put_ring_word_(npu, ring, NPUPROF_CELL_RING_KIND_IS_, n, (uint64_t)r->kinds[n].is, NULL);
    }
    for (n = 0; n < r->op_count; n++)
        npuprof_npu_put_ring_word_(npu, ring, NPUPROF_CELL_RING_OP_, n, r->ops[n].code, r->ops[n].name);
    for (n = 0; n < r->lane_count; n++)
        npuprof_npu_put_ring_word_(npu, ring, NPUPROF_CELL_RING_LANE_, n, r->lanes[n].value,
                                   r->lanes[n].name);
    for (n = 0; n < NPUPROF_NPU_ARGS; n++)
        if (r->args[n].name)
            npuprof_npu_put_ring_word_(npu, ring, NPUPROF_CELL_RING_ARG_, n, 0, r->args[n].name);
    if (r->category) npuprof_npu_put_ring_word_(npu, ring, NPUPROF_CELL_RING_CATEGORY_, 0, 0, r->category);
}

/* Checks the rings and notes what feed needs of them. put: the device has its number, and they are stored.
   Every ring is fed here: where entries lie, and who says that one is there, is not used. */
NPUPROF_OWN_ static npuprof_result npuprof_npu_take_rings_(npuprof_npu *npu, bool put)
{
    const npuprof_npu_desc *const d = &npu->desc_;
    const bool one = (d->ring.feed || d->ring.count) && d->ring.entry_bytes;
    const npuprof_npu_ring *const rings = d->ring_count ? d->rings : &d->ring;
    npu->has_submissions_ = d->ring.feed || one || d->ring_count || d->anchors_only;
    if (d->ring_count > NPUPROF_NPU_RINGS || (d->ring_count && (!rings || one))) return NPUPROF_ERR_ARGUMENT;
    npu->ring_count_ = (uint8_t)(d->ring_count ? d->ring_count : one);
    for (unsigned i = 0; i < npu->ring_count_; i++) {
        const npuprof_npu_ring *const r = &rings[i];
        if (!r->entry_bytes || r->entry_bytes > NPUPROF_NPU_ENTRY_MAX_) return NPUPROF_ERR_NPU_RANGE;
        npu->entry_bytes_[i] = (uint8_t)r->entry_bytes;
        if (r->stamp_clock == NPUPROF_NPU_STAMP_COUNTER && !d->anchors_only)
            npu->by_counter_ |= (uint16_t)(1u << i);
        if (put) npuprof_npu_put_ring_(npu, i, r);
    }
    return NPUPROF_OK;
}

/* ---- What the driver says */

NPUPROF_API_ void npuprof_npu_set_job(npuprof_npu *npu, uint64_t id)
{
    if (NPUPROF_OPEN_(1)) npuprof_npu_put_job_(npu, NPUPROF_CELL_JOB_NUMBER_, 0, id);
}

NPUPROF_API_ void npuprof_npu_set_job_records(npuprof_npu *npu, unsigned n)
{
    if (NPUPROF_OPEN_(1)) npuprof_npu_put_job_(npu, NPUPROF_CELL_JOB_RECORDS_, 0, n);
}

NPUPROF_API_ npuprof_result npuprof_npu_set_job_of(npuprof_npu *npu, uint32_t handle, uint64_t id)
{
    if (!handle) return NPUPROF_OK;
    if (!npu->number_ || !npu->has_submissions_) return NPUPROF_ERR_NPU_NO_RING;
    npuprof_npu_put_job_(npu, NPUPROF_CELL_JOB_NUMBER_, handle, id);
    return NPUPROF_OK;
}

/* An entry, or with bytes 0 that there is none. `read`: the counter's time at the feed, or NULL. */
NPUPROF_OWN_ static void npuprof_npu_put_entry_(const npuprof_npu *npu, unsigned ring, const unsigned char *data,
                                   size_t bytes, const npuprof_anchor_ *read, uint32_t epoch)
{
    npuprof_npu_items_ list;
    list.count = 0;
    (void)npuprof_npu_add_item_(&list, NPUPROF_FIELD_VALUE_, ring);
    (void)npuprof_npu_add_item_(&list, NPUPROF_FIELD_THIRD_,
                                npu->number_ | (epoch & 0xFFFF) << 8 | (read ? NPUPROF_CELL_TIMED_ : 0));
    if (read) {
        (void)npuprof_npu_add_item_(&list, NPUPROF_FIELD_WORD_, read->device_ticks);
        (void)npuprof_npu_add_item_(&list, NPUPROF_FIELD_WORD_, read->host_before);
        (void)npuprof_npu_add_item_(&list, NPUPROF_FIELD_WORD_, read->host_after);
    }
    for (size_t at = 0; at < bytes; at += 8) {
        uint64_t word = 0;
        for (size_t i = 0; i < 8 && at + i < bytes; i++) word |= (uint64_t)data[at + i] << (8 * i);
        (void)npuprof_npu_add_item_(&list, NPUPROF_FIELD_WORD_, word);
    }
    (void)npuprof_npu_put_items_(NPUPROF_CELL_KIND_ENTRY_, &list, PROF_NO_ARGS);
}

NPUPROF_API_ npuprof_result npuprof_npu_feed(npuprof_npu *npu, unsigned ring, const void *data, size_t bytes)
{
    const unsigned char *entry = (const unsigned char *)data;
    npuprof_anchor_ sample;
    npuprof_result result = NPUPROF_ERR_NPU_BUSY;
    bool timed = false, renew = false;
    if (!npu->number_) return NPUPROF_ERR_NPU_NOT_OPEN;
    if (ring >= npu->ring_count_) return NPUPROF_ERR_NPU_NO_RING;
    const size_t size = npu->entry_bytes_[ring];
    if (bytes && !data) return NPUPROF_ERR_ARGUMENT;
    size_t left = bytes;                 /* Why no division: it may be a function. */
    while (left >= size) left -= size;
    if (left) return NPUPROF_ERR_ARGUMENT;
    if (!NPUPROF_OPEN_(1)) return NPUPROF_OK;
    if (!(npu->by_counter_ >> ring & 1)) {
        result = NPUPROF_OK;
    } else if (npuprof_npu_lock_(npu)) {
        result = npuprof_npu_read_locked_(npu, &sample);
        timed = npuprof_npu_time_goes_on_(result) || result == NPUPROF_ERR_NPU_STOPPED;
        renew = timed && (npu->anchor_count_ < 2 || npuprof_npu_anchor_is_due_(npu, sample.host_after));
        npuprof_npu_unlock_(npu);
    }
    /* Why also where the counter could not be read: the host knows from other reads when it was. */
    if (!bytes) npuprof_npu_put_entry_(npu, ring, entry, 0, timed ? &sample : NULL, npu->epoch_);
    for (; bytes; bytes -= size, entry += size)
        npuprof_npu_put_entry_(npu, ring, entry, size, timed ? &sample : NULL, npu->epoch_);
    if (renew) (void)npuprof_npu_renew_anchor_(npu);
    return result == NPUPROF_ERR_NPU_BUSY ? NPUPROF_OK : result;
}

/* Why false: whose it is only the host finds out. */
NPUPROF_API_ bool npuprof_npu_complete_host(npuprof_npu *npu, uint64_t job, unsigned pe, const char *name,
                                            const char *cat, int64_t start_ns, int64_t end_ns,
                                            npuprof_args args, bool last)
{
    npuprof_npu_items_ list;
    list.count = 0;
    if (!npu->number_ || !npu->has_submissions_ || !NPUPROF_OPEN_(1)) return false;
    if (name) npuprof_npu_add_item_(&list, NPUPROF_FIELD_NAME_, 0)->value.s = name;
    if (cat) npuprof_npu_add_item_(&list, NPUPROF_FIELD_CATEGORY_, 0)->value.s = cat;
    (void)npuprof_npu_add_item_(&list, NPUPROF_FIELD_VALUE_, job);
    (void)npuprof_npu_add_item_(&list, NPUPROF_FIELD_SECOND_, (pe & 0xFFFF) | (uint64_t)(last ? 1 : 0) << 16);
    (void)npuprof_npu_add_item_(&list, NPUPROF_FIELD_THIRD_, npu->number_);
    (void)npuprof_npu_add_item_(&list, NPUPROF_FIELD_WORD_, (uint64_t)start_ns);
    (void)npuprof_npu_add_item_(&list, NPUPROF_FIELD_WORD_, (uint64_t)end_ns);
    (void)npuprof_npu_put_items_(NPUPROF_CELL_KIND_HAND_, &list, args);
    return false;
}

#endif /* NPUPROF_NPU_RECORDS */
/* ==== src/npu/firmware/kernel.h =============================================== >>npu/firmware/kernel ==== */

/* Devices on firmware: opening and closing, the two ends of a submission, device spans by hand. A device span
   is a record of ticks; the host maps them when it converts the image. Owns the npuprof_npu_block_, on the
   stack of the task that is in the block or in an entry of calls.h, and the number of the last device opened:
   one task opens at a time. Nothing here copies or clears by assignment of a whole structure. Why: the
   compiler would call memcpy and memset, which firmware may not have. */

/* Says what device it is, in the arena. */
NPUPROF_OWN_ static npuprof_result npuprof_npu_put_device_(npuprof_npu *npu)
{
    static uint8_t devices;
    const npuprof_npu_desc *d = &npu->desc_;
    const uint64_t bits = d->counter.bits;
    if (devices == 255) return NPUPROF_ERR_TABLE_FULL;
    npu->number_ = ++devices;
    const uint64_t values[3] = { d->counter.hz, d->max_rate_ppm * (uint64_t)1000 | bits << 32,
                                 npu->number_ | (uint64_t)(d->pe_count & 0xFFFFFF) << 8 |
                                     (uint64_t)npuprof_npu_may_stand_(npu) << 32 };
    (void)npuprof_npu_put_record_(npu->device.name, NPUPROF_CELL_KIND_DEVICE_, values, PROF_NO_ARGS);
    if (d->pmu_count)
        (void)npuprof_metadata(npu->device.name, "desc.pmu is not sampled on firmware");
    if (npu->lag_) npuprof_npu_note_(npu, NPUPROF_NOTE_LAG, npu->lag_);
#ifdef NPUPROF_NPU_RECORDS
    return npuprof_npu_take_rings_(npu, true);
#else
    return NPUPROF_OK;
#endif
}

NPUPROF_API_ npuprof_result npuprof_npu_open(npuprof_npu *npu, const npuprof_npu_desc *desc)
{
    size_t needed = 0;
    if (!npu) return NPUPROF_ERR_ARGUMENT;
    for (size_t i = 0; i < sizeof *npu; i++) NPUPROF_STORE_((uint8_t *)npu + i, 0);
    if (!desc) return NPUPROF_ERR_ARGUMENT;
    npuprof_fw_copy_bytes_((uint8_t *)&npu->desc_, desc, sizeof *desc);
    const npuprof_npu_desc *d = &npu->desc_;
    npuprof_result result = npuprof_npu_check_desc_(npu, &needed);
    if (result != NPUPROF_OK) return result;
    if (d->progress.is_there || d->resource || d->vfio) return NPUPROF_ERR_UNSUPPORTED;
#ifdef NPUPROF_NPU_RECORDS
    result = npuprof_npu_take_rings_(npu, false);
    if (result != NPUPROF_OK) return result;
#else
    if (d->ring.count || d->ring_count || d->ring.feed || d->anchors_only) return NPUPROF_ERR_UNSUPPORTED;
#endif
    if (needed && !npuprof_npu_has_bar_(d)) return NPUPROF_ERR_NPU_RANGE;
    const unsigned access = d->counter.access;
    if (d->bar && access > 8 * sizeof(void *) && access > 32) return NPUPROF_ERR_UNSUPPORTED;
    if (npuprof_user_hz_() >> 32) return NPUPROF_ERR_UNSUPPORTED;      /* second_ has 32 bits */
    if (d->bar) result = npuprof_npu_use_bar_(npu, needed, npuprof_npu_register_align_(d));
    if (result != NPUPROF_OK) return result;
    if (!npuprof_fw_is_ready_()) return NPUPROF_ERR_ARENA_SIZE;
    npu->second_ = (uint32_t)npuprof_max_((uint32_t)npuprof_user_hz_(), 1000);
    npu->lag_ = npuprof_npu_mul_div_(npu->second_, d->counter.lag_ns, 1000000000, true);
    result = npuprof_npu_begin_clock_(npu, npuprof_npu_put_device_);
    if (result != NPUPROF_OK && result != NPUPROF_ERR_NPU_NOT_ENABLED) npu->number_ = 0;
    return result;
}

NPUPROF_NPU_OPEN_OF_1_0_

NPUPROF_API_ void npuprof_npu_close(npuprof_npu *npu)
{
    if (!npu->number_) return;
    (void)npuprof_npu_sync(npu);
    npu->number_ = 0;
}

/* Firmware maps nothing. */
NPUPROF_API_ bool npuprof_npu_fault(const void *address)
{
    NPUPROF_UNUSED_(address);
    return false;
}

NPUPROF_API_ void npuprof_npu_enter_(npuprof_npu_block_ *block, npuprof_npu *npu, uint64_t stream)
{
    block->npu = npu;
    block->stream = stream;
    npuprof_wait_around_(&npu->device);
}

NPUPROF_API_ npuprof_token_ npuprof_npu_begin_(npuprof_npu_block_ *block, npuprof_token_ token)
{
    npuprof_npu *npu = block->npu;
    block->result = NPUPROF_ERR_NPU_BUSY;
    block->by_host = false;
#ifdef NPUPROF_NPU_RECORDS
    if (token && npu->has_submissions_) {
        if (npu->number_) npuprof_npu_look_(npu);
        npuprof_npu_put_job_(npu, NPUPROF_CELL_JOB_BEGIN_, token, block->stream);
        return token;
    }
#endif
    if (!token || !npu->number_ || !npuprof_npu_lock_(npu)) return token;
    npuprof_npu_sample_begin_(block);
    npuprof_npu_unlock_(npu);
    return token;
}

/* An event after the host span, which says why there is no device span. */
NPUPROF_OWN_ static void npuprof_npu_put_no_span_(const npuprof_npu *npu, npuprof_result result)
{
    const char *const texts[3] = { "no device span", "NPU", NULL };
    npuprof_arg why[2] = { npuprof_str_("device", npu->device.name), npuprof_uint_("why", (uint64_t)result) };
    why[1].type = NPUPROF_FIELD_RESULT_;
    (void)npuprof_fw_put_named_(NPUPROF_FW_REF_OF_KIND_(NPUPROF_KIND_INSTANT), false, texts, NULL,
                                npuprof_args_(why, 2));
}

/* Records a device span, with the name of its host span, by that one's token. One that is placed by the host
   has host ticks for stamps, and their error for its epoch. */
NPUPROF_OWN_ static void npuprof_npu_put_sampled_(const npuprof_npu_block_ *block, const npuprof_npu_end_state_ *end,
                                     npuprof_args args)
{
    const npuprof_npu *npu = block->npu;
    npuprof_arg list[2 + NPUPROF_NPU_CALL_ARGS_];
    size_t count = 1;
    uint64_t values[3] = { block->begin.device_ticks, end->read.device_ticks, (uint64_t)block->token << 32 };
    uint32_t number = NPUPROF_CELL_SAMPLED_, epoch = end->epoch;
    list[0].key = "stream";
    list[0].type = NPUPROF_ARG_INT;
    list[0].value.u = block->stream;
    if (block->by_host) {
        const uint64_t error = npuprof_npu_sample_place_(block, &end->read, &values[0], &values[1]);
        list[count].key = "ticks";
        list[count].type = NPUPROF_ARG_UINT;
        list[count++].value.u = end->ticks;
        number |= NPUPROF_CELL_BY_HOST_;
        epoch = error >> 16 ? 0 : (uint32_t)error;
    }
    values[2] |= number | (epoch & 0xFFFF) << 8 | npu->number_;
    for (size_t i = 0; i < args.count && i < NPUPROF_NPU_CALL_ARGS_; i++, count++) {
        list[count].key = args.items[i].key;
        list[count].type = args.items[i].type;
        list[count].value = args.items[i].value;
    }
    (void)npuprof_npu_put_record_(NPUPROF_NPU_NAME_OF_(npu), NPUPROF_KIND_DEVICE, values,
                                  npuprof_args_(list, count));
}

/* Ends a submission: reads the counter, ends the host span if it is still open, records the device span.
   Results as npuprof_npu_end(). */
NPUPROF_OWN_ static npuprof_result npuprof_npu_end_block_(npuprof_npu_block_ *block, npuprof_args args)
{
    npuprof_npu *npu = block->npu;
    npuprof_npu_end_state_ end;
    npuprof_npu_no_end_(&end);
    if (npuprof_npu_lock_(npu)) {
        npuprof_npu_sample_end_(block, &end);
        npuprof_npu_unlock_(npu);
    }
    npuprof_close_(block->token);
    if (end.result == NPUPROF_OK) npuprof_npu_put_sampled_(block, &end, args);
    else npuprof_npu_put_no_span_(npu, end.result);
    /* Why anchors after the host span: their time is none of the kernel's. */
    if (end.is_anchor && npuprof_npu_lock_(npu)) {
        if (end.epoch == npu->epoch_) (void)npuprof_npu_add_anchor_(npu, &end.read);
        npuprof_npu_unlock_(npu);
    }
    if (end.renew) (void)npuprof_npu_renew_anchor_(npu);
    return end.result;
}

NPUPROF_API_ void npuprof_npu_end_(npuprof_npu_block_ *block)
{
    npuprof_wait_around_(&block->npu->device);
#ifdef NPUPROF_NPU_RECORDS
    if (block->npu->has_submissions_) {
        npuprof_npu_put_job_(block->npu, NPUPROF_CELL_JOB_END_, block->token, 0);
        npuprof_close_(block->token);
        return;
    }
#endif
    if (block->npu->number_) (void)npuprof_npu_end_block_(block, PROF_NO_ARGS);
    else npuprof_close_(block->token);
}

#ifdef NPUPROF_NPU_RECORDS
/* Any number may be open. With submissions the span's token is the handle, else that of the call's record. */
NPUPROF_API_ uint32_t npuprof_npu_begin(npuprof_npu *npu, uint64_t stream, const char *name, const char *cat,
                                        npuprof_args args)
{
    npuprof_npu_block_ block;
    const npuprof_token_ token =
        NPUPROF_OPEN_(1) ? npuprof_begin_named_(NPUPROF_KIND_SPAN, cat, name, args) : 0;
    uint32_t handle = token;
    block.npu = npu;
    block.stream = stream;
    block.token = token && npu->number_ ? npuprof_npu_begin_(&block, token) : 0;
    if (block.token && !npu->has_submissions_) handle = npuprof_npu_put_call_(&block);
    npuprof_close_(token);
    return block.token ? handle : 0;
}

NPUPROF_API_ npuprof_result npuprof_npu_end_args(npuprof_npu *npu, uint32_t handle, npuprof_args args)
{
    npuprof_npu_block_ block;
    if (!handle) return NPUPROF_OK;
    if (!npu->has_submissions_)
        return npuprof_npu_take_call_back_(npu, handle, &block) ? npuprof_npu_end_block_(&block, args)
                                                                : NPUPROF_ERR_ARGUMENT;
    if (!npu->number_) return NPUPROF_ERR_NPU_NOT_OPEN;
    npuprof_npu_put_job_(npu, NPUPROF_CELL_JOB_END_, handle, 0);
    return NPUPROF_OK;
}

#else /* !NPUPROF_NPU_RECORDS */
NPUPROF_API_ uint32_t npuprof_npu_begin(npuprof_npu *npu, uint64_t stream, const char *name, const char *cat,
                                        npuprof_args args)
{
    uint32_t handle = 0;
    const npuprof_token_ token =
        NPUPROF_OPEN_(1) ? npuprof_begin_named_(NPUPROF_KIND_SPAN, cat, name, args) : 0;
    npuprof_npu_call_ *const call = token && npu->number_ ? npuprof_npu_take_call_(npu, &handle) : NULL;
    if (call) {
        call->block.npu = npu;
        call->block.stream = stream;
        call->block.token = npuprof_npu_begin_(&call->block, token);
        npuprof_npu_release_call_(call, handle);
    } else if (token && npu->number_) {
        npuprof_npu_put_no_span_(npu, NPUPROF_ERR_NPU_CALLS);
    }
    npuprof_close_(token);
    return handle;
}

NPUPROF_API_ npuprof_result npuprof_npu_end_args(npuprof_npu *npu, uint32_t handle, npuprof_args args)
{
    if (!handle) return NPUPROF_OK;
    npuprof_npu_call_ *const call = npuprof_npu_hold_call_(npu, handle);
    if (!call) return NPUPROF_ERR_ARGUMENT;
    const npuprof_result result = npuprof_npu_end_block_(&call->block, args);
    npuprof_npu_release_call_(call, 0);
    return result;
}
#endif /* NPUPROF_NPU_RECORDS */

NPUPROF_API_ void npuprof_npu_span(npuprof_npu *npu, unsigned pe, const char *name, const char *cat,
                                   uint64_t start_ticks, uint64_t end_ticks, npuprof_args args)
{
    if (!npu->number_ || !NPUPROF_OPEN_(1)) return;
    const char *const texts[3] = { name ? name : "", cat, NULL };
    const uint64_t values[3] = { start_ticks, end_ticks < start_ticks ? start_ticks : end_ticks,
                                 (uint64_t)(pe & 0xFFFF) << 32 | (npu->epoch_ & 0xFFFF) << 8 | npu->number_ };
    (void)npuprof_fw_put_named_(NPUPROF_FW_REF_OF_KIND_(NPUPROF_KIND_DEVICE), false, texts, values, args);
}

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
