/* port.h - what the programs of tests/baremetal need of a bare machine: a start, files on the host, an exit
   code. One file for all: the semihosting call differs, an AVR has a serial line instead, on which files come
   as lines of hexadecimal digits.
   SPDX-License-Identifier: MIT */
#ifndef PORT_H
#define PORT_H

#include <stddef.h>
#include <stdint.h>

#define PORT_MAYBE __attribute__((unused))
int main(void);
void reset(void);

#if defined(__linux__)    /* a recorder for bare machines in a program of Linux: for the other byte order */
#include <stdio.h>
static FILE *port_file;
PORT_MAYBE static void port_open(const char *name) { port_file = fopen(name, "wb"); }

PORT_MAYBE static int port_write(void *user, const void *bytes, size_t count)
{
    (void)user;
    return fwrite(bytes, 1, count, port_file) == count ? 0 : 5;
}

PORT_MAYBE static void port_close(void) { fclose(port_file); }

#elif defined(__AVR__)
#define PORT_REG(address) (*(volatile uint8_t *)(address))
static void port_put(char c)
{
    while (!(PORT_REG(0xC0) & 0x20)) { }          /* UCSR0A, UDRE0 */
    PORT_REG(0xC6) = (uint8_t)c;
}

PORT_MAYBE static void port_open(const char *name)
{
    PORT_REG(0xC1) = 0x08;                        /* UCSR0B, TXEN0 */
    port_put('\n');
    port_put('>');
    while (*name) port_put(*name++);
    port_put('\n');
}

PORT_MAYBE static int port_write(void *user, const void *bytes, size_t count)
{
    (void)user;
    for (const uint8_t *p = (const uint8_t *)bytes; count; p++, count--) {
        port_put("0123456789abcdef"[*p >> 4]);
        port_put("0123456789abcdef"[*p & 15]);
        if ((count & 31) == 1) port_put('\n');
    }
    return 0;
}

PORT_MAYBE static void port_close(void) {}
PORT_MAYBE static int port_exists(const char *name) { return !name; }

static void port_exit(int code)
{
    port_put('\n');
    port_put('=');
    port_put((char)('0' + code));
    port_put('\n');
    for (volatile uint16_t wait = 0; wait < 2000; wait++) { }
    __asm__ volatile("cli\n\tsleep");
    for (;;) { }
}

int port_main(void);
int main(void)
{
    port_exit(port_main());
    return 0;
}

#define main port_main
#else /* !__AVR__ */
static long port_call(long op, const void *arguments)
{
#if defined(__arm__)
    register long r0 __asm__("r0") = op;
    register const void *r1 __asm__("r1") = arguments;
    __asm__ volatile("bkpt 0xab" : "+r"(r0) : "r"(r1) : "memory");
    return r0;
#elif defined(__aarch64__)
    register long x0 __asm__("x0") = op;
    register const void *x1 __asm__("x1") = arguments;
    __asm__ volatile("hlt #0xf000" : "+r"(x0) : "r"(x1) : "memory");
    return x0;
#else
    register long a0 __asm__("a0") = op;
    register const void *a1 __asm__("a1") = arguments;
    __asm__ volatile(".option push\n\t.option norvc\n\t.balign 16\n\tslli zero, zero, 0x1f\n\tebreak\n"
                     "\tsrai zero, zero, 7\n\t.option pop"
                     : "+r"(a0) : "r"(a1) : "memory");
    return a0;
#endif
}

static long port_file;
PORT_MAYBE static void port_open(const char *name)
{
    uintptr_t a[3] = { (uintptr_t)name, 5, 0 };
    while (name[a[2]]) a[2]++;
    port_file = port_call(1, a);
}

PORT_MAYBE static int port_write(void *user, const void *bytes, size_t count)
{
    uintptr_t a[3] = { (uintptr_t)port_file, (uintptr_t)bytes, count };
    (void)user;
    return port_call(5, a) ? 5 : 0;
}

PORT_MAYBE static void port_close(void)
{
    uintptr_t a[1] = { (uintptr_t)port_file };
    port_call(2, a);
}

PORT_MAYBE static int port_exists(const char *name)
{
    uintptr_t a[3] = { (uintptr_t)name, 0, 0 };
    while (name[a[2]]) a[2]++;
    return port_call(1, a) != -1;
}

static void port_exit(int code)
{
    uintptr_t a[2] = { 0x20026, (uintptr_t)code };
    port_call(0x20, a);
    for (;;) { }
}

/* The start. Data need no copy: the whole program is loaded to where it runs, or, on a Cortex-M, by the
   loader of the emulator's ROM. */
extern char bss_start[], bss_end[], stack_end[], data_from[], data_start[], data_end[];
__attribute__((used)) static void port_start(void)
{
    for (volatile char *p = bss_start; p < bss_end; p++) *p = 0;
    for (volatile char *p = data_start, *q = data_from; p < data_end; p++, q++) *p = *q;
    port_exit(main());
}

#if defined(__arm__)
#ifndef PORT_TICK
#define PORT_TICK NULL
#else
void PORT_TICK(void);
#endif
#ifndef PORT_PENDSV
#define PORT_PENDSV port_fault
#define PORT_IRQ0 port_fault
#define PORT_IRQ1 port_fault
#else
void PORT_PENDSV(void);
void PORT_IRQ0(void);
void PORT_IRQ1(void);
#endif
static void port_fault(void) { port_exit(99); }
#ifndef PORT_SVC
#define PORT_SVC port_fault
#else
void PORT_SVC(void);
#endif
__attribute__((section(".vectors"), used)) static void (*const port_vectors[18])(void) = {
    (void (*)(void))(uintptr_t)stack_end, port_start, port_fault, port_fault, port_fault, port_fault,
        port_fault, NULL, NULL, NULL, NULL,
    PORT_SVC, NULL, NULL, PORT_PENDSV, PORT_TICK, PORT_IRQ0, PORT_IRQ1 };
void reset(void) { port_start(); }

#elif defined(__aarch64__)
__asm__(".section .vectors, \"ax\"\n.globl reset\nreset:\n\tldr x0, =stack_end\n\tmov sp, x0\n"
        "\tb port_start\n\t.ltorg\n\t.text");
#else /* !__arm__, !__aarch64__ */
#ifdef PORT_SECOND                             /* the other hart begins there */
void PORT_SECOND(void);
#define PORT_TEXT_(x) #x
#define PORT_TEXT(x) PORT_TEXT_(x)
__asm__(".section .vectors, \"ax\"\n.globl reset\nreset:\n\tla sp, stack_end\n\tcsrr a0, mhartid\n"
        "\tbeqz a0, port_start\n\tli a1, 0x8000\n\tsub sp, sp, a1\n\tj " PORT_TEXT(PORT_SECOND) "\n\t.text");
#else /* !PORT_SECOND */
__asm__(".section .vectors, \"ax\"\n.globl reset\nreset:\n\tla sp, stack_end\n\tj port_start\n\t.text");
#endif /* PORT_SECOND */
#endif /* !__arm__, !__aarch64__ */
/* What a compiler may call for a structure, also in a freestanding program. */
__attribute__((weak)) void *memcpy(void *to, const void *from, size_t count);
__attribute__((weak, used)) void *memcpy(void *to, const void *from, size_t count)
{
    for (size_t i = 0; i < count; i++) ((volatile char *)to)[i] = ((const char *)from)[i];
    return to;
}

__attribute__((weak)) void *memset(void *to, int value, size_t count);
__attribute__((weak, used)) void *memset(void *to, int value, size_t count)
{
    for (size_t i = 0; i < count; i++) ((volatile char *)to)[i] = (char)value;
    return to;
}
#endif /* !__AVR__ */
#endif /* PORT_H */
