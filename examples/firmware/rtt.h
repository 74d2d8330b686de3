/* rtt.h - a sink into memory that a debugger empties while the program runs: no pins, no interrupts.
   The layout is that of SEGGER's RTT, which J-Link, OpenOCD, pyOCD and probe-rs read (README.md says how).
   SPDX-License-Identifier: MIT

     #include "npuprof.h" before this file
     npuprof_sink sink = { rtt_write, NULL };      // the image: waits for the debugger
     npuprof_sink sink = { rtt_offer, NULL };      // a stream: what does not fit now is offered again

   The debugger finds `rtt` by its first 16 bytes. It copies the bytes from `read` on, up to `written`, around
   the end of the buffer, and then moves `read` on. One task at a time writes. */
#ifndef RTT_H
#define RTT_H
#include <stddef.h>
#include <stdint.h>
#ifndef RTT_BYTES
#define RTT_BYTES 1024
#endif

static char rtt_bytes[RTT_BYTES];
static struct {
    char id[16];
    int32_t up_count, down_count;                  /* buffers from the target, and to it */
    const char *name;
    char *bytes;
    uint32_t size;
    volatile uint32_t written, read;               /* offsets in `bytes`; alike: it is empty */
    uint32_t flags;
} rtt;

/* 0: all is in the buffer. NPUPROF_SINK_TOOK(0): there is no room for it now, and nothing was written. */
static inline int rtt_offer(void *user, const void *bytes, size_t count)
{
    const uint32_t read = rtt.read;
    uint32_t at = rtt.written;
    (void)user;
    if (!rtt.size) {
        /* Why letter by letter, and the first one last: the debugger must find it neither in the flash nor
           before all is in place. */
        static const char less_one[] = "RDFFDQ\x1fQSS";
        rtt.up_count = 1;
        rtt.name = "npuprof";
        rtt.bytes = rtt_bytes;
        rtt.size = RTT_BYTES;
        for (int i = 9; i >= 0; i--) ((volatile char *)rtt.id)[i] = (char)(less_one[i] + 1);
    }
    if (count > (read + RTT_BYTES - 1 - at) % RTT_BYTES) return NPUPROF_SINK_TOOK(0);
    for (size_t i = 0; i < count; i++) {
        rtt_bytes[at] = ((const char *)bytes)[i];
        at = at + 1 == RTT_BYTES ? 0 : at + 1;
    }
    __asm__ volatile("" : : : "memory");
    rtt.written = at;
    return 0;
}

/* The same, and waits. Only for less than RTT_BYTES at once. */
static inline int rtt_write(void *user, const void *bytes, size_t count)
{
    while (rtt_offer(user, bytes, count)) { }
    return 0;
}
#endif /* RTT_H */
