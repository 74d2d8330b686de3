/* 200 inferences on a stub of the Ethos-U driver, with power-up, soft reset and power-down around each, as
   examples/ethosu/npuprof_ethosu.h records them. On a host the interrupt is a signal. Every tenth inference
   has no interrupt hook. argv: trace, truth; the truth is a line for each inference.
   With NPUPROF_FREESTANDING: the image is ethosu.img.
   SPDX-License-Identifier: MIT */
#include "ethosu/ethosu_stub.h"
#ifdef NPUPROF_FREESTANDING
static uint32_t context;
#define NPUPROF_CONTEXTS 2
#define NPUPROF_CONTEXT() context
#define NPUPROF_ARENA_BYTES (400 * 1024)
#endif
#define NPUPROF_IMPLEMENTATION
#include "npuprof.h"
#include "npuprof_npu.h"
#ifndef OBJECTS                         /* with it, what is passed is no string */
#define NPUPROF_ETHOSU_NAME(user_arg) (const char *)(user_arg)
#endif
#include "npuprof_ethosu.h"
#ifdef TEST_COMPILE_ONLY
static void told(uint64_t number, uint64_t begin, uint64_t irq, uint64_t end)
{
    stub.told += number + begin + irq + end;
}

#else
#include <stdio.h>
#include <stdlib.h>
static FILE *truth;
static void told(uint64_t number, uint64_t begin, uint64_t irq, uint64_t end)
{
    fprintf(truth, "%llu %llu %llu %llu\n", (unsigned long long)number, (unsigned long long)begin,
            (unsigned long long)irq, (unsigned long long)end);
}

#endif /* TEST_COMPILE_ONLY */
static struct ethosu_driver driver;
static uint64_t irq_at;
static bool no_hook;

static void on_interrupt(int number)
{
    (void)number;
    irq_at = stub.host;
    if (!no_hook) npuprof_ethosu_irq(&driver);
    ethosu_irq_handler(&driver);
}

#ifdef NPUPROF_FREESTANDING
static void stub_interrupt(struct ethosu_driver *drv)
{
    (void)drv;
    context = 1;
    on_interrupt(0);
    context = 0;
}

#else
#include <signal.h>
static void stub_interrupt(struct ethosu_driver *drv)
{
    (void)drv;
    (void)raise(SIGUSR1);
}

#endif /* NPUPROF_FREESTANDING */

static int walk(void)
{
    static char name[] = "net a";
    const volatile void *base = (const volatile void *)stub_registers;
    if (ethosu_init(&driver, (void *)(uintptr_t)stub_registers, NULL, 0, 1, 1)) return 1;
    npuprof_start(1);
    if (npuprof_ethosu_open(&driver, base, 400000000) != NPUPROF_OK) return 2;
    for (uint64_t i = 0; i < 200; i++) {
        const uint64_t wake = 1000 + i * 37 % 5000;
        no_hook = i % 10 == 9;
        name[4] = (char)('a' + i % 3);
        stub_pass(i == 100 ? 900000000 : 20000 + i * 7919 % 100000);
        PROF_INFERENCE("Inference");
        const uint64_t begin = stub.host;
        if (ethosu_invoke_v3(&driver, &wake, (int)(3000 + i * 104729 % 1000000), NULL, NULL, 0,
#ifdef OBJECTS
                             (void *)(uintptr_t)name[4])) return 3;
#else
                             i % 3 ? name : NULL)) return 3;
#endif
        told(i, begin, irq_at, stub.host);
    }
    if (driver.power_request_counter || npuprof_ethosu_run || npuprof_ethosu_wake) return 4;
    npuprof_npu_close(&npuprof_ethosu);
    npuprof_stop();
    return 0;
}

#ifdef TEST_COMPILE_ONLY
int main(void) { return walk(); }

#elif defined(NPUPROF_FREESTANDING)
static int put(void *file, const void *bytes, size_t count)
{
    return fwrite(bytes, 1, count, (FILE *)file) == count ? 0 : 5;
}

int main(int argc, char **argv)
{
    truth = argc > 2 ? fopen(argv[2], "w") : NULL;
    const int failed = truth ? walk() : 9;
    npuprof_stats stats;
    FILE *file = truth ? fopen(argv[1], "wb") : NULL;
    const npuprof_sink sink = { put, file };
    npuprof_get_stats(&stats);
    if (!file || failed || stats.lost || npuprof_write_image(sink) != NPUPROF_OK) return failed ? failed : 8;
    return fclose(file) || fclose(truth);
}

#else /* !NPUPROF_FREESTANDING */
int main(int argc, char **argv)
{
    signal(SIGUSR1, on_interrupt);
    truth = argc > 2 ? fopen(argv[2], "w") : NULL;
    const int failed = truth ? walk() : 9;
    npuprof_stats stats;
    npuprof_get_stats(&stats);
    if (failed || stats.lost || npuprof_dump(argv[1]) != NPUPROF_OK) return failed ? failed : 8;
    return fclose(truth);
}

#endif /* TEST_COMPILE_ONLY */
