/* firmware.c - a Cortex-M4 without an operating system or a C library reads digits with int8 kernels, while
   interrupts come in between. The trace goes to the host through semihosting: as firmware.img, which
   npuprof-convert reads, and as firmware.json, which needs no tool.
   SPDX-License-Identifier: MIT

     arm-none-eabi-gcc -mcpu=cortex-m4 -mthumb -Os -ffreestanding -nostdlib -nostartfiles \
         -ffunction-sections -fdata-sections -Wl,--gc-sections -Iexamples/firmware -I. \
         -T examples/firmware/firmware.ld examples/firmware/firmware.c -lgcc -o firmware.elf
     qemu-system-arm -M mps2-an386 -display none -semihosting -icount shift=5 -kernel firmware.elf
     build/npuprof-convert firmware.img --elf firmware.elf -o trace.json */
#include <stdint.h>

/* The board's 32-bit timer counts down at 25 MHz. Interrupts have a track of their own, number 1. */
#define TIMER(offset) (*(volatile uint32_t *)(0x40002000u + (offset)))
static inline uint32_t is_interrupt(void)
{
    uint32_t number;
    __asm__ volatile("mrs %0, ipsr" : "=r"(number));
    return number != 0;
}
#define NPUPROF_FREESTANDING
#define NPUPROF_NOW() (0xFFFFFFFFu - TIMER(4))
#define NPUPROF_NOW_HZ 25000000u
#define NPUPROF_CONTEXT() is_interrupt()
#define NPUPROF_CONTEXTS 2
#define NPUPROF_ARENA_BYTES 16384
#define NPUPROF_IMPLEMENTATION
#include "npuprof.h"

#include "../digits/int8_ops.h"
#include "../digits/digits_images.h"
#include "../digits/digits_weights.h"

void *memcpy(void *to, const void *from, size_t count)
{
    for (size_t i = 0; i < count; i++) ((volatile char *)to)[i] = ((const char *)from)[i];
    return to;
}

void *memset(void *to, int value, size_t count)
{
    for (size_t i = 0; i < count; i++) ((volatile char *)to)[i] = (char)value;
    return to;
}

/* Semihosting: files on the host. */
static int call(int operation, const void *arguments)
{
    register int r0 __asm__("r0") = operation;
    register const void *r1 __asm__("r1") = arguments;
    __asm__ volatile("bkpt 0xab" : "+r"(r0) : "r"(r1) : "memory");
    return r0;
}

static int host_write(void *file, const void *bytes, size_t count)
{
    const uint32_t a[3] = { (uint32_t)*(int *)file, (uint32_t)(uintptr_t)bytes, count };
    return call(0x05, a) ? 5 : 0;
}

static int save(const char *name, uint32_t length, npuprof_result (*write)(npuprof_sink))
{
    const uint32_t a[3] = { (uint32_t)(uintptr_t)name, 5, length };
    int file = call(0x01, a);
    const npuprof_sink sink = { host_write, &file };
    const npuprof_result r = write(sink);
    call(0x02, &file);
    return r != NPUPROF_OK;
}

static volatile uint32_t ticks;
void tick(void);
void tick(void)
{
    PROF_SCOPE("tick");
    ticks++;
    PROF_COUNTER("ticks", ticks);
}

static int8_t small[10 * 10 * 24], large[10 * 10 * 24];

static unsigned digit(const char *pixels)
{
    const int8_shape image = { 8, 8, 1 }, padded = { 10, 10, 1 };
    const int8_shape deep = { 8, 8, 16 }, deep_padded = { 10, 10, 16 };
    const int8_shape wide = { 8, 8, 24 }, wide_padded = { 10, 10, 24 }, last = { 4, 4, 24 };
    int8_t logits[10];
    unsigned best = 0;
    PROF_INFERENCE("digit");
    PROF_PHASES("quantize");
    for (int i = 0; i < DIGITS_PIXELS; i++) small[i] = (int8_t)(((pixels[i] - 'A') * 127 + 8) / 16);
    PROF_NEXT("conv1");
    int8_pad(small, image, 1, large);
    int8_conv2d(large, padded, 3, 1, digits_conv1_weights, digits_conv1_channels, 16, true, small);
    PROF_NEXT("depthwise1");
    int8_pad(small, deep, 1, large);
    int8_depthwise_conv2d(large, deep_padded, 3, 1, digits_depthwise1_weights, digits_depthwise1_channels,
                          true, small);
    PROF_NEXT("conv2");
    int8_conv2d(small, deep, 1, 1, digits_conv2_weights, digits_conv2_channels, 24, true, large);
    PROF_NEXT("depthwise2");
    int8_pad(large, wide, 1, small);
    int8_depthwise_conv2d(small, wide_padded, 3, 2, digits_depthwise2_weights, digits_depthwise2_channels,
                          true, large);
    PROF_NEXT("conv3");
    int8_conv2d(large, last, 1, 1, digits_conv3_weights, digits_conv3_channels, 32, true, small);
    PROF_NEXT("dense");
    int8_fully_connected(small, 512, digits_dense_weights, digits_dense_channels, 10, logits);
    for (unsigned c = 1; c < 10; c++)
        if (logits[c] > logits[best]) best = c;
    return best;
}

int main(void);
int main(void)
{
    unsigned right = 0;
    TIMER(0) = 0xFFFFFFFF;
    TIMER(8) = 0x82;                                            /* on, 32 bits wide */
    *(volatile uint32_t *)0xE000E014 = 25000 - 1;               /* SysTick: an interrupt each millisecond */
    *(volatile uint32_t *)0xE000E018 = 0;
    npuprof_metadata("model", "digits");
    PROF_THREAD_NAME("main loop");
    npuprof_start(1);
    *(volatile uint32_t *)0xE000E010 = 7;
    for (int i = 0; i < 10; i++) {
        const unsigned answer = digit(digits_images[i]);
        right += (char)('0' + answer) == digits_labels[i];
        PROF_COUNTER("answer", answer);
    }
    *(volatile uint32_t *)0xE000E010 = 0;
    npuprof_stop();
    const int failed = save("firmware.img", 12, npuprof_write_image)
                     + save("firmware.json", 13, npuprof_write_json);
    return failed || right < 8 || ticks == 0;
}

/* What the processor runs first: fills the memory, calls main, and ends the emulator with its result. */
extern uint32_t data_from[], data_start[], data_end[], bss_start[], bss_end[], stack_end[];
void reset(void);
void reset(void)
{
    for (volatile uint32_t *p = data_start, *q = data_from; p < data_end; p++, q++) *p = *q;
    for (volatile uint32_t *p = bss_start; p < bss_end; p++) *p = 0;
    const uint32_t a[2] = { 0x20026, (uint32_t)main() };
    call(0x20, a);
    for (;;) { }
}
__attribute__((section(".vectors"), used)) static void (*const vectors[16])(void) = {
    (void (*)(void))(uintptr_t)stack_end, reset, reset, reset, [15] = tick };
