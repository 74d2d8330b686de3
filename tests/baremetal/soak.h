/* soak.h - for soak.c, what it needs of a machine: a clock of few bits, an interrupt in each half of its
   period, another timer to compare with, sleep until an interrupt, and a way to stop the clock.
   SPDX-License-Identifier: MIT */
#ifndef SOAK_H
#define SOAK_H
#include <stdint.h>

void soak_ticked(void);
#define SOAK_REG(address) (*(volatile uint32_t *)(address))
#if defined(__arm__)
static void soak_sleep(void) { __asm__ volatile("wfi"); }
static void soak_end(void) { SOAK_REG(0xE000E010) = 0; }

static void soak_start_tick(uint32_t ticks)
{
    SOAK_REG(0xE000E014) = ticks;
    SOAK_REG(0xE000E018) = 0;
    SOAK_REG(0xE000E010) = 7;
}
#endif

#if defined(__ARM_ARCH_6M__)                   /* nRF51: TIMER0 with 16 MHz, TIMER1 with 31,250 Hz */
#define NPUPROF_NOW_HZ 16000000u
#define NPUPROF_NOW_BITS 24
#define SOAK_TRUTH_HZ 31250u
static uint32_t soak_capture(uint32_t timer)
{
    SOAK_REG(timer + 0x40) = 1;
    return SOAK_REG(timer + 0x540);
}

static uint32_t soak_counter(void) { return soak_capture(0x40008000); }
static uint64_t soak_truth(void) { return soak_capture(0x40009000); }

static void soak_set_up(void)
{
    for (uint32_t timer = 0x40008000; timer <= 0x40009000; timer += 0x1000) {
        SOAK_REG(timer + 0x508) = 3;           /* 32 bits */
        SOAK_REG(timer + 0x510) = timer == 0x40009000 ? 9 : 0;
        SOAK_REG(timer) = 1;
    }
    soak_start_tick(6000000);
}

#elif defined(__arm__)                         /* mps2-an385: a timer of 25 MHz, one of 100 Hz */
#define NPUPROF_NOW_HZ 25000000u
#define NPUPROF_NOW_BITS 24
#define SOAK_TRUTH_HZ 100u
static uint32_t soak_counter(void) { return ~SOAK_REG(0x40000004); }
static uint64_t soak_truth(void) { return SOAK_REG(0x40028014); }

static void soak_set_up(void)
{
    SOAK_REG(0x40000008) = UINT32_MAX;
    SOAK_REG(0x40000004) = UINT32_MAX;
    SOAK_REG(0x40000000) = 1;
    soak_start_tick(8000000);
}

#elif defined(__riscv)                         /* the low 24 bits of the machine's 64, 10 MHz */
#define NPUPROF_NOW_HZ 10000000u
#define NPUPROF_NOW_BITS 24
#define SOAK_TRUTH_HZ 10000000u
static uint64_t soak_truth(void)
{
    uint32_t high, low;
    do {
        high = SOAK_REG(0x0200BFFC);
        low = SOAK_REG(0x0200BFF8);
    } while (high != SOAK_REG(0x0200BFFC));
    return (uint64_t)high << 32 | low;
}

static uint32_t soak_counter(void) { return SOAK_REG(0x0200BFF8); }
static void soak_sleep(void) { __asm__ volatile("wfi"); }

static void soak_next_tick(void)
{
    const uint64_t next = soak_truth() + 6000000;
    SOAK_REG(0x02004004) = UINT32_MAX;
    SOAK_REG(0x02004000) = (uint32_t)next;
    SOAK_REG(0x02004004) = (uint32_t)(next >> 32);
}

static __attribute__((interrupt("machine"), aligned(4))) void soak_entry(void)
{
    soak_next_tick();
    soak_ticked();
}

static void soak_end(void) { __asm__ volatile("csrc mstatus, %0" : : "r"(8ul)); }

static void soak_set_up(void)
{
    soak_next_tick();
    __asm__ volatile("csrw mtvec, %0" : : "r"(soak_entry));
    __asm__ volatile("csrs mie, %0" : : "r"(0x80ul));
    __asm__ volatile("csrs mstatus, %0" : : "r"(8ul));
}

#elif defined(__AVR__)                         /* timer 1: 2 MHz, 16 bits; timer 3: the same, longer */
#define NPUPROF_NOW_HZ 2000000u
#define NPUPROF_NOW_BITS 16
#define SOAK_TRUTH_HZ 2000000u
#define SOAK_8(address) (*(volatile uint8_t *)(address))
#define SOAK_16(address) (*(volatile uint16_t *)(address))
static volatile uint32_t soak_overflows;
static uint32_t soak_counter(void) { return SOAK_16(0x84); }

static uint64_t soak_truth(void)
{
    uint32_t before, after;
    uint16_t low;
    do {
        __asm__ volatile("cli");
        before = soak_overflows;
        __asm__ volatile("sei");
        low = SOAK_16(0x94);
        __asm__ volatile("nop\n\tcli");
        after = soak_overflows;
        __asm__ volatile("sei");
    } while (before != after);
    return (uint64_t)before << 16 | low;
}

static void soak_sleep(void) {}

/* Both halves of timer 1: compare and overflow; overflow of timer 3. */
void __vector_13(void) __attribute__((signal, used, externally_visible));
void __vector_13(void) { soak_ticked(); }
void __vector_15(void) __attribute__((signal, used, externally_visible));
void __vector_15(void) { soak_ticked(); }
void __vector_34(void) __attribute__((signal, used, externally_visible));
void __vector_34(void) { soak_overflows++; }

static void soak_end(void) { __asm__ volatile("cli"); }

static void soak_set_up(void)
{
    SOAK_16(0x88) = 0x8000;                    /* OCR1A */
    SOAK_8(0x6F) = 3;                          /* TIMSK1: OCIE1A, TOIE1 */
    SOAK_8(0x71) = 1;                          /* TIMSK3: TOIE3 */
    SOAK_8(0x91) = 2;                          /* TCCR3B: an eighth of 16 MHz */
    SOAK_8(0x81) = 2;                          /* TCCR1B */
    __asm__ volatile("sei");
}
#endif /* __ARM_ARCH_6M__ */

/* The counter of the machine, without the time in which the clock stood. */
static volatile uint32_t soak_stood, soak_stopped_at;
static uint32_t soak_clock(void)
{
    return (soak_counter() - soak_stood) & (UINT32_MAX >> (32 - NPUPROF_NOW_BITS));
}

static void soak_stop_clock(void) { soak_stopped_at = soak_counter(); }
static void soak_go_on(void) { soak_stood += soak_counter() - soak_stopped_at; }
#endif /* SOAK_H */
