/* What a program of one instrumented call site takes. SIZE: 0 nothing of npuprof, 1 recording only, 2
   arguments and events, too, 3 recording and the JSON writer, 4 recording and a device, 5 recording and the
   image, 6 a device with begin and end as calls, 7 recording and a span with one integer, 8 a ring, 9 a
   stream and npuprof_poll(), 10 the same with NPUPROF_SINK.
   SPDX-License-Identifier: MIT */
#include <stdint.h>
#define NPUPROF_NOW() (*(volatile uint32_t *)0x40002004u)
#define NPUPROF_NOW_HZ 25000000u
#define NPUPROF_FREESTANDING
#if SIZE == 8
#define NPUPROF_WHEN_FULL NPUPROF_KEEP_NEWEST
#elif SIZE >= 9
#define NPUPROF_WHEN_FULL NPUPROF_STREAM
#endif
#if SIZE == 10
#include <stddef.h>
static int put(void *user, const void *bytes, size_t count);
#define NPUPROF_SINK(bytes, count) put(0, bytes, count)
#endif
#if SIZE
#define NPUPROF_IMPLEMENTATION
#include "npuprof.h"
#if SIZE == 4 || SIZE == 6
#include "npuprof_npu.h"
static npuprof_npu npu;
static npuprof_npu_desc desc;
#endif
#endif
#include <stddef.h>
#include "port.h"

volatile int work;
#if __GNUC__ >= 8
__attribute__((noipa))       /* a sink of which the compiler knows nothing */
#endif
static int put(void *user, const void *bytes, size_t count)
{
    (void)user;
    work += *(const char *)bytes;
    return (int)count;
}

int main(void)
{
#if SIZE == 9
    static npuprof_desc desc;
    desc.when_full = NPUPROF_STREAM;
    desc.sink.write = put;
    npuprof_init(&desc);
#endif
#if SIZE
    npuprof_start(1);
    {
        PROF_SCOPE("span");
        work++;
    }
#if SIZE == 4 || SIZE == 6
    desc.bar = (const volatile void *)0x40010000u;
    desc.bar_bytes = 16;
    desc.counter.hi_offset = 4;
    npuprof_npu_open(&npu, &desc);
#if SIZE == 4
    WITH_NPU_PROFILER(&npu, 0, "kernel", "NPU", PROF_NO_ARGS, work++);
#else
    npuprof_npu_end(&npu, npuprof_npu_begin(&npu, 0, "kernel", "NPU", PROF_NO_ARGS));
#endif
    npuprof_npu_close(&npu);
#endif
    npuprof_stop();
#else /* SIZE 0 */
    work++;
#endif /* SIZE */
#if SIZE >= 9
    npuprof_poll();
#endif
#if SIZE == 2
    {
        PROF_SCOPE_ARGS("c", "args", PROF_ARGS(PROF_INT("n", work)));
        PROF_COUNTER("counter", work);
        PROF_INSTANT("c", "now", PROF_NO_ARGS);
    }
#endif
#if SIZE == 7
    {
        PROF_SCOPE_ARGS("c", "args", PROF_ARGS(PROF_INT("n", work)));
        work++;
    }
#endif
#if SIZE == 3 || SIZE == 5
    const npuprof_sink sink = { put, NULL };
    if (SIZE == 3) npuprof_write_json(sink);
    else npuprof_write_image(sink);
#endif
    return put(NULL, "", 1);
}
