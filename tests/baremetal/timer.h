/* timer.h - an interrupt after a chosen number of ticks, for the programs of tests/baremetal. A tick is
   shorter than an instruction, so that one tick more is the same instruction or the next one. The program
   defines timer_fired(); `where` is the instruction that was interrupted (AVR: not known, 0).
   SPDX-License-Identifier: MIT */
#ifndef TIMER_H
#define TIMER_H
#include <stdint.h>

static void timer_fired(uint32_t where);

#if defined(__arm__)                           /* SysTick */
#define TIMER_REG(address) (*(volatile uint32_t *)(address))
static __attribute__((used)) void timer_stop(void) { TIMER_REG(0xE000E010) = 0; }

static void timer_start(uint32_t ticks)
{
    TIMER_REG(0xE000E014) = ticks;
    TIMER_REG(0xE000E018) = 0;
    TIMER_REG(0xE000E010) = 7;
}

static __attribute__((used)) void timer_handler(uint32_t where)
{
    timer_stop();
    TIMER_REG(0xE000ED04) = 1u << 25;          /* forget that it came again meanwhile */
    timer_fired(where);
}

#define PORT_TICK timer_entry
void timer_entry(void);
__attribute__((naked)) void timer_entry(void)
{
    __asm__ volatile("mrs r0, msp\n\tldr r0, [r0, #24]\n\tldr r1, =timer_handler\n\tbx r1\n\t.ltorg");
}

static void timer_set_up(void) {}

#elif defined(__riscv)                         /* the machine timer of one hart, 10 MHz */
#define TIMER_COMPARE ((volatile uint32_t *)(0x02004000u + 8 * timer_hart()))
static uint32_t timer_hart(void)
{
    unsigned long hart;
    __asm__ volatile("csrr %0, mhartid" : "=r"(hart));
    return (uint32_t)hart;
}

static void timer_stop(void) { TIMER_COMPARE[1] = UINT32_MAX; }

static void timer_start(uint32_t ticks)
{
    const uint32_t low = *(volatile uint32_t *)0x0200BFF8u, high = *(volatile uint32_t *)0x0200BFFCu;
    TIMER_COMPARE[1] = UINT32_MAX;
    TIMER_COMPARE[0] = low + ticks;
    TIMER_COMPARE[1] = high + (low + ticks < low);
}

static __attribute__((interrupt("machine"), aligned(4))) void timer_entry(void)
{
    unsigned long where;
    __asm__ volatile("csrr %0, mepc" : "=r"(where));
    timer_stop();
    timer_fired((uint32_t)where);
}

static void timer_set_up(void)
{
    timer_stop();
    __asm__ volatile("csrw mtvec, %0" : : "r"(timer_entry));
    __asm__ volatile("csrs mie, %0" : : "r"(0x80ul));
    __asm__ volatile("csrs mstatus, %0" : : "r"(8ul));
}

/* Two harts. A hart that waits for a word of the other is woken by timer_wake(). */
#define TIMER_SOFTWARE ((volatile uint32_t *)0x02000000u)
static __attribute__((unused)) void timer_wake(uint32_t hart) { TIMER_SOFTWARE[hart] = 1; }

/* With interrupts off. */
static __attribute__((unused)) void timer_wait(const volatile uint32_t *a, const volatile uint32_t *b)
{
    __asm__ volatile("csrs mie, %0" : : "r"(8ul));
    for (;;) {
        TIMER_SOFTWARE[timer_hart()] = 0;
        if (*a || *b) break;
        __asm__ volatile("wfi");
    }
    __asm__ volatile("csrc mie, %0" : : "r"(8ul));
}

#elif defined(__AVR__)                         /* timer 1 of an ATmega1284P */
#define TIMER_REG8(address) (*(volatile uint8_t *)(address))
#define TIMER_REG16(address) (*(volatile uint16_t *)(address))
static void timer_stop(void)
{
    TIMER_REG8(0x81) = 0;                      /* TCCR1B */
    TIMER_REG8(0x6F) = 0;                      /* TIMSK1 */
}

static void timer_start(uint32_t ticks)
{
    TIMER_REG16(0x84) = 0;                     /* TCNT1 */
    TIMER_REG16(0x88) = (uint16_t)(ticks + 1);   /* OCR1A */
    TIMER_REG8(0x36) = 2;                      /* TIFR1: forget an old one */
    TIMER_REG8(0x6F) = 2;                      /* TIMSK1, OCIE1A */
    TIMER_REG8(0x81) = 1;                      /* TCCR1B: a tick is a cycle */
}

void __vector_13(void) __attribute__((signal, used, externally_visible));
void __vector_13(void)
{
    timer_stop();
    timer_fired(0);
}

static void timer_set_up(void) { __asm__ volatile("sei"); }
#endif /* __arm__ */
#endif /* TIMER_H */
