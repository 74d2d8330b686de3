/* harts.h - two harts of QEMU's machine virt, 32 bits, under a kernel: traps, a lock, waking the other hart,
   the tick. A trap saves the task's registers on its stack, and the handler runs on a stack of the hart:
   another hart may go on with that task before this one has left. The kernel defines kernel_tick() and
   kernel_switch(), the program smp_interrupt() and smp_noted().
   SPDX-License-Identifier: MIT */
#ifndef HARTS_H
#define HARTS_H
#include <stdbool.h>
#include <stdint.h>

enum { HARTS = 2, HARTS_FRAME = 32, HARTS_STACK = 8192, HARTS_TICK = 10000, HARTS_SLICE = 3000 };
#define HARTS_REG(address) (*(volatile uint32_t *)(address))

static inline uint32_t harts_id(void)
{
    uint32_t hart;
    __asm__ volatile("csrr %0, mhartid" : "=r"(hart));
    return hart;
}

static inline uint32_t harts_mask(void)
{
    uint32_t before;
    __asm__ volatile("csrrci %0, mstatus, 8" : "=r"(before) : : "memory");
    return before & 8;
}

static inline void harts_unmask(uint32_t before)
{
    __asm__ volatile("csrs mstatus, %0" : : "r"(before) : "memory");
}

static inline uint32_t harts_now(void) { return HARTS_REG(0x0200BFF8u); }
static inline void harts_yield(void) { __asm__ volatile("ecall" : : : "memory"); }
static inline void harts_wake(uint32_t hart) { HARTS_REG(0x02000000u + 4 * hart) = 1; }

/* A word that is 0, or 1 while a hart has the lock; with interrupts off. Why the one that waits sleeps: the
   emulator runs one hart at a time, and for as long as it does something. What woke it comes again as an
   interrupt. */
extern volatile uint32_t harts_waits[HARTS];
static inline void harts_lock(volatile uint32_t *lock)
{
    const uint32_t hart = harts_id();
    if (!__atomic_exchange_n(lock, 1, __ATOMIC_ACQUIRE)) return;
    uint32_t enabled;
    __asm__ volatile("csrrw %0, mie, %1" : "=r"(enabled) : "r"(8) : "memory");
    harts_waits[hart] = 1;
    for (;;) {
        HARTS_REG(0x02000000u + 4 * hart) = 0;
        __atomic_thread_fence(__ATOMIC_SEQ_CST);
        if (!__atomic_exchange_n(lock, 1, __ATOMIC_ACQUIRE)) break;
        __asm__ volatile("wfi");
    }
    harts_waits[hart] = 0;
    harts_wake(hart);
    __asm__ volatile("csrw mie, %0" : : "r"(enabled) : "memory");
}

static inline void harts_unlock(volatile uint32_t *lock)
{
    __atomic_store_n(lock, 0, __ATOMIC_SEQ_CST);
    for (uint32_t hart = 0; hart < HARTS; hart++)
        if (harts_waits[hart]) harts_wake(hart);
}

#ifdef HARTS_IMPLEMENTATION
void harts_entry(void);
void harts_resume(uint32_t *frame);
uint32_t *harts_trap(uint32_t *frame);
uint32_t harts_stacks[HARTS][HARTS_STACK / 4] __attribute__((aligned(16)));
static void kernel_tick(void);
static uint32_t *kernel_switch(uint32_t hart, uint32_t *frame);
static void smp_interrupt(uint32_t hart);
static void smp_noted(uint32_t hart);
volatile uint32_t harts_waits[HARTS];
static volatile uint32_t harts_asked[HARTS];
static volatile bool harts_park, harts_parked;

#define HARTS_ALL(x) \
    x(5) x(6) x(7) x(8) x(9) x(10) x(11) x(12) x(13) x(14) x(15) x(16) x(17) x(18) x(19) x(20) x(21) x(22) \
    x(23) x(24) x(25) x(26) x(27) x(28) x(29) x(30) x(31)
#define HARTS_SAVE(n) "sw x" #n ", 4*" #n "(sp)\n"
#define HARTS_LOAD(n) "lw x" #n ", 4*" #n "(sp)\n"
/* Word 0 of a frame is mepc, word 2 mstatus, and word n register n. */
__asm__(".text\n.balign 4\n.globl harts_entry\nharts_entry:\naddi sp, sp, -128\nsw ra, 4(sp)\n"
        HARTS_ALL(HARTS_SAVE) "csrr t0, mepc\nsw t0, 0(sp)\ncsrr t0, mstatus\nsw t0, 8(sp)\nmv a0, sp\n"
        "csrr t0, mhartid\naddi t0, t0, 1\nslli t0, t0, 13\nla sp, harts_stacks\nadd sp, sp, t0\n"
        "call harts_trap\n.globl harts_resume\nharts_resume:\nmv sp, a0\nlw t0, 0(sp)\ncsrw mepc, t0\n"
        "lw t0, 8(sp)\ncsrw mstatus, t0\nlw ra, 4(sp)\n" HARTS_ALL(HARTS_LOAD)
        "addi sp, sp, 128\nmret\n");

/* The first frame of a task on a stack that ends at `top`. */
static uint32_t *harts_frame(uint32_t *top, void (*entry)(void *), void *parameter)
{
    uint32_t *const frame = (uint32_t *)((uintptr_t)top & ~(uintptr_t)15) - HARTS_FRAME;
    for (int i = 0; i < HARTS_FRAME; i++) frame[i] = 0;
    frame[0] = (uint32_t)(uintptr_t)entry;
    frame[2] = 3u << 11 | 1u << 7;                 /* back to machine mode with interrupts on */
    frame[10] = (uint32_t)(uintptr_t)parameter;
    return frame;
}

/* When the timer of a hart next interrupts. The tick is that of hart 0; the other one has it for its slices.
   Why slices: a hart that woke another is only emulated again when that one's time is over.
   Why 32 bits: no run lasts 2^32 times 100 ns. */
static void harts_timer(uint32_t hart, uint32_t when)
{
    HARTS_REG(0x02004004u + 8 * hart) = 0;
    HARTS_REG(0x02004000u + 8 * hart) = when;
}

/* Begins with the task of this frame. */
static void harts_begin(uint32_t *frame)
{
    harts_timer(harts_id(), harts_now() + HARTS_TICK);
    __asm__ volatile("csrw mtvec, %0\n\tcsrw mie, %1" : : "r"(harts_entry), "r"(0x88));
    harts_resume(frame);
}

uint32_t *harts_trap(uint32_t *frame)
{
    const uint32_t hart = harts_id();
    uint32_t cause;
    __asm__ volatile("csrr %0, mcause" : "=r"(cause));
    if (cause == 11) {
        frame[0] += 4;
    } else if (cause == 0x80000007u) {
        harts_timer(hart, hart ? harts_now() + HARTS_SLICE : HARTS_REG(0x02004000u) + HARTS_TICK);
        if (!hart) kernel_tick();
    } else if (cause == 0x80000003u) {
        HARTS_REG(0x02000000u + 4 * hart) = 0;
        if (harts_park) {
            harts_parked = true;
            harts_wake(!hart);
            __asm__ volatile("csrw mie, zero");
            for (;;) __asm__ volatile("wfi");
        }
        if (__atomic_exchange_n(&harts_asked[hart], 0, __ATOMIC_ACQ_REL)) smp_interrupt(hart);
    } else {
        port_exit(90 + (int)(cause & 7));
    }
    frame = kernel_switch(hart, frame);
    smp_noted(hart);
    return frame;
}

/* The other hart stops where it is next interrupted. With interrupts off, and no lock held. */
static void harts_stop_other(void)
{
    const uint32_t hart = harts_id();
    __asm__ volatile("csrw mie, %0" : : "r"(8) : "memory");
    harts_park = true;
    harts_wake(!hart);
    for (; !harts_parked; HARTS_REG(0x02000000u + 4 * hart) = 0) __asm__ volatile("wfi");
}
#endif /* HARTS_IMPLEMENTATION */
#endif /* HARTS_H */
