/* first.c - the first trace of a Cortex-M, read out in one of four ways. README.md has the commands.
   READ_OUT: file_write, uart_write, rtt_write; without it nothing is written, and the memory is dumped.
   SPDX-License-Identifier: MIT */
#define NPUPROF_IMPLEMENTATION                    /* in one file of your program */
#include "systick.h"
#define NPUPROF_FREESTANDING                      /* from here on as in every file that records */
#define NPUPROF_NOW() systick_now()
#define NPUPROF_NOW_HZ 25000000u                  /* the rate of your processor's SysTick */
#define NPUPROF_ARENA_BYTES 4096
#include "npuprof.h"
#include "rtt.h"

/* What is of this board: SysTick's interrupt, a UART, semihosting. */
void tick(void);
void tick(void) { npuprof_tick(); }

static inline int uart_write(void *user, const void *bytes, size_t count)
{
    volatile uint32_t *const uart = (volatile uint32_t *)0x40004000u;   /* data, state, control, -, divider */
    (void)user;
    uart[4] = 25000000u / 115200u;
    uart[2] = 1;
    for (size_t i = 0; i < count; i++) {
        while (uart[1] & 1) { }
        uart[0] = ((const uint8_t *)bytes)[i];
    }
    return 0;
}

static inline int call(int operation, const void *arguments)
{
    register int r0 __asm__("r0") = operation;
    register const void *r1 __asm__("r1") = arguments;
    __asm__ volatile("bkpt 0xab" : "+r"(r0) : "r"(r1) : "memory");
    return r0;
}

static int file;
static inline int file_write(void *user, const void *bytes, size_t count)
{
    const uint32_t name[3] = { (uint32_t)(uintptr_t)"first.img", 5, 9 };           /* 5: "wb" */
    (void)user;
    if (!file) file = call(0x01, name);
    const uint32_t a[3] = { (uint32_t)file, (uint32_t)(uintptr_t)bytes, count };
    return call(0x05, a) ? 5 : 0;
}

/* What you want to see. */
static volatile unsigned sum;
static void work(unsigned n)
{
    PROF_FUNCTION();
    for (unsigned i = 0; i < 100 * n; i++) sum += i;
    PROF_COUNTER("sum", sum);
}

int main(void);
int main(void)
{
    *(volatile uint32_t *)0xE000E014 = 25000 - 1;                                  /* SysTick, each ms */
    *(volatile uint32_t *)0xE000E018 = 0;
    *(volatile uint32_t *)0xE000E010 = 7;
    npuprof_start(1);
    for (unsigned n = 1; n <= 10; n++) work(n);
    npuprof_stop();
#ifdef READ_OUT
    const npuprof_sink sink = { READ_OUT, NULL };
    return npuprof_write_image(sink) != NPUPROF_OK;
#else
    return 0;
#endif
}

/* What the processor runs first. Your program has that. */
extern uint32_t data_from[], data_start[], data_end[], bss_start[], bss_end[], stack_end[];
void reset(void);
void reset(void)
{
    for (volatile uint32_t *p = data_start, *q = data_from; p < data_end; p++, q++) *p = *q;
    for (volatile uint32_t *p = bss_start; p < bss_end; p++) *p = 0;
    const uint32_t a[2] = { 0x20026, (uint32_t)main() };
    if (file) call(0x20, a);                      /* ends the emulator */
    for (;;) { }
}
__attribute__((section(".vectors"), used)) static void (*const vectors[16])(void) = {
    (void (*)(void))(uintptr_t)stack_end, reset, [15] = tick };
