#pragma once   /* SPDX-License-Identifier: MIT */
#include "args.h"

/* NPUPROF_USDT: a probe at each macro, as SystemTap describes probes of user space: an ELF note says where a
   nop is and in which registers its arguments are. perf, bpftrace, SystemTap and gdb read such notes.

   Data: a semaphore for each probe, which the kernel or the debugger increments for each of its users. While
   it is 0, a macro reads it and goes on. It is weak and hidden: one for each program or library.
   The probes stand in functions, a copy in each file, so that a macro costs a load, a compare and a branch.
   They do not ask whether anything is recorded. */

#if defined(NPUPROF_USDT) && !defined(NPUPROF_OFF)
#if !NPUPROF_HAS_CLEANUP_ || !defined(__ELF__) || defined(NPUPROF_FREESTANDING)
#error "npuprof.h: NPUPROF_USDT needs gcc or clang, a system with ELF files, and no NPUPROF_FREESTANDING"
#endif
#if UINTPTR_MAX > UINT32_MAX
#define NPUPROF_USDT_WORD_ "8"           /* bytes of an address, and the directive that stores one */
#else
#define NPUPROF_USDT_WORD_ "4"
#endif
#ifdef __s390__
#define NPUPROF_USDT_NOP_ "nop 0"
#else
#define NPUPROF_USDT_NOP_ "nop"
#endif

/* The note: sizes of owner and contents, type 3, owner; addresses of the probe, of the base by which a tool
   sees that the file was moved, and of the semaphore; provider, name, arguments. Padded to 4 bytes. */
#define NPUPROF_USDT_PROBE_(name, args)                                                            \
    "990: " NPUPROF_USDT_NOP_ "\n"                                                                 \
    ".pushsection .note.stapsdt, \"\", \"note\"\n"                                                 \
    ".balign 4\n.4byte 992f-991f, 994f-993f, 3\n991: .asciz \"stapsdt\"\n992: .balign 4\n"        \
    "993: ." NPUPROF_USDT_WORD_ "byte 990b, _.stapsdt.base, npuprof_usdt_" name "_\n"             \
    ".asciz \"npuprof\"\n.asciz \"" name "\"\n.asciz \"" args "\"\n994: .balign 4\n.popsection\n"  \
    ".ifndef _.stapsdt.base\n"                                                                     \
    ".pushsection .stapsdt.base, \"aG\", \"progbits\", .stapsdt.base, comdat\n"                    \
    ".weak _.stapsdt.base\n.hidden _.stapsdt.base\n_.stapsdt.base: .space 1\n"                    \
    ".size _.stapsdt.base, 1\n.popsection\n.endif\n"

/* Why never inlined: the compiler then knows the arguments to be in registers, and there is one note a
   file. */
#define NPUPROF_USDT_FUNCTION_(name, parameters, args, ...)                                        \
    NPUPROF_BEGIN_C_                                                                               \
    NPUPROF_ATTRIBUTE_((weak, visibility("hidden"), section(".probes")))                           \
    volatile unsigned short npuprof_usdt_##name##_ = 0;                                            \
    NPUPROF_END_C_                                                                                 \
    NPUPROF_OWN_ NPUPROF_ATTRIBUTE_((noinline, unused))                                            \
    static void npuprof_usdt_hit_##name##_ parameters                                              \
    {                                                                                              \
        __asm__ volatile(NPUPROF_USDT_PROBE_(#name, args) : : __VA_ARGS__);                        \
    }

/* A span begins. kind: NPUPROF_KIND_SPAN and others; category may be NULL. The end is that of the innermost
   span of its thread. */
NPUPROF_USDT_FUNCTION_(begin, (uint32_t kind, const char *category, const char *name),
                       "4@%0 " NPUPROF_USDT_WORD_ "@%1 " NPUPROF_USDT_WORD_ "@%2",
                       "r"(kind), "r"(category), "r"(name))
NPUPROF_USDT_FUNCTION_(end, (void), "", "r"(0))
NPUPROF_USDT_FUNCTION_(instant, (const char *category, const char *name),
                       NPUPROF_USDT_WORD_ "@%0 " NPUPROF_USDT_WORD_ "@%1", "r"(category), "r"(name))
/* A counter or an arrow. value: of a real counter the bits of a double; on 32 bits the lower half. */
NPUPROF_USDT_FUNCTION_(value, (uint32_t kind, const char *name, uintptr_t value),
                       "4@%0 " NPUPROF_USDT_WORD_ "@%1 " NPUPROF_USDT_WORD_ "@%2",
                       "r"(kind), "r"(name), "r"(value))

#define NPUPROF_USDT_IS_(name) NPUPROF_UNLIKELY_(npuprof_usdt_##name##_)
#define NPUPROF_USDT_MARK_(kind, cat, name)                                                        \
    if ((kind) <= NPUPROF_KIND_OPERATOR && NPUPROF_USDT_IS_(begin))                                \
        npuprof_usdt_hit_begin_((kind), (cat), (name));                                            \
    else if ((kind) == NPUPROF_KIND_INSTANT && NPUPROF_USDT_IS_(instant))                          \
        npuprof_usdt_hit_instant_((cat), (name));
#define NPUPROF_USDT_VALUE_(kind, name, v)                                                         \
    if (NPUPROF_USDT_IS_(value))                                                                   \
        npuprof_usdt_hit_value_((kind), (name), NPUPROF_STATIC_CAST_(uintptr_t, (v)));
#define NPUPROF_USDT_END_ if (NPUPROF_USDT_IS_(end)) npuprof_usdt_hit_end_();
/* Why other names: C++ merges what is called the same in files with and without the knob. */
#define npuprof_auto_once_ npuprof_auto_once_with_usdt_
#define npuprof_auto_scope_ npuprof_auto_scope_with_usdt_
#define npuprof_auto_block_ npuprof_auto_block_with_usdt_
#define npuprof_npu_auto_block_ npuprof_npu_auto_block_with_usdt_
#define NPUPROF_ENDED_(expr) \
    ((NPUPROF_USDT_IS_(end) ? npuprof_usdt_hit_end_() : NPUPROF_STATIC_CAST_(void, 0)), (expr))
#else /* !NPUPROF_USDT || NPUPROF_OFF */
#define NPUPROF_USDT_MARK_(kind, cat, name)
#define NPUPROF_USDT_VALUE_(kind, name, v)
#define NPUPROF_USDT_END_
#define NPUPROF_ENDED_(expr) NPUPROF_ALWAYS_(expr)     /* an end by hand */
#endif /* !NPUPROF_USDT || NPUPROF_OFF */
