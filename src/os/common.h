#pragma once   /* SPDX-License-Identifier: MIT */
#include "../public/types.h"
#include "posix_files.h"
#include "windows.h"
#include <stdarg.h>

/* Has every page of that memory in place; what is in it stays. */
static void npuprof_os_populate_(void *memory, size_t bytes)
{
    enum { PAGE = 4096 };
#ifdef MADV_HUGEPAGE
    const uintptr_t from = (uintptr_t)memory & ~(uintptr_t)(PAGE - 1),
        to = ((uintptr_t)memory + bytes + PAGE - 1) & ~(uintptr_t)(PAGE - 1);
    (void)madvise((void *)from, to - from, MADV_HUGEPAGE);
    enum { POPULATE_WRITE = 23 };      /* MADV_POPULATE_WRITE, which older C libraries do not name */
    if (madvise((void *)from, to - from, POPULATE_WRITE) == 0) return;
#endif
    /* Why an addition: others may be using what lies there. */
    for (size_t at = 0; at < bytes; at += PAGE) NPUPROF_ADD_((uint32_t *)(void *)((uint8_t *)memory + at), 0);
}

/* The sentence on the argument that was refused last on this thread, for npuprof_result_string(); NULL: none
   was. */
static NPUPROF_THREAD_LOCAL_ const char *npuprof_os_refused_;

static npuprof_result npuprof_os_refuse_(const char *sentence)
{
    npuprof_os_refused_ = sentence;
    return NPUPROF_ERR_ARGUMENT;
}

/* NPUPROF_ERR_ARGUMENT for the caller. sentence: a literal that names the function, the argument and what it
   may be. */
#define NPUPROF_REFUSE_(sentence) npuprof_os_refuse_("NPUPROF_ERR_ARGUMENT: " sentence)

NPUPROF_ATTRIBUTE_((format(printf, 1, 2))) static void npuprof_os_say_(const char *format, ...)
{
    char text[2048];
    int fd = 2;
    va_list list;
    va_start(list, format);
    const int n = vsnprintf(text, sizeof text, format, list);
    va_end(list);
    if (n > 0) (void)npuprof_os_write_(&fd, text, (size_t)n < sizeof text ? (size_t)n : sizeof text - 1);
}
