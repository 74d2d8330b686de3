#pragma once   /* SPDX-License-Identifier: MIT */
#include "../public/types.h"
#include "../numbers/text.h"
#include "posix_files.h"
#include "posix_control.h"
#include "windows.h"
#include <stdarg.h>

/* The system, as the rooms below include it: the functions of one of posix.h with its two siblings and
   windows.h, and what is the same on all systems: pages, refusing an argument, a message on
   stderr.

   Data: npuprof_os_said_to_ and npuprof_os_said_next_. A thread writes its own place, by NPUPROF_REFUSE_ and
   npuprof_os_explain_(), and reads it for npuprof_result_string().

   This part may not know what is recorded. */

/* Makes the system give every page of this memory now, so that no record has to wait for one. The contents
   stay. */
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
    /* Why an atomic addition of 0: other threads may be writing to these words. */
    for (size_t at = 0; at < bytes; at += PAGE) NPUPROF_ADD_((uint32_t *)(void *)((uint8_t *)memory + at), 0);
}

/* Asks for huge pages in the part of this memory that holds whole ones; the memory is touched no earlier.
   Nothing happens where the system has no such request. */
static void npuprof_os_huge_pages_(void *memory, size_t bytes)
{
#ifdef MADV_HUGEPAGE
    const uintptr_t huge = 2 * 1024 * 1024;
    const uintptr_t from = ((uintptr_t)memory + huge - 1) & ~(huge - 1);
    const uintptr_t to = ((uintptr_t)memory + bytes) & ~(huge - 1);
    if (from < to) (void)madvise((void *)from, to - from, MADV_HUGEPAGE);
#else
    (void)memory;
    (void)bytes;
#endif
}

/* Is this number, which the library holds for long, still that of its own file? file: what npuprof_os_file_()
   said when it was opened. Why the question: a program may close all numbers, as daemons do, and get this one
   for a file of its own. Ask before each use. What another thread of it does between that and the use is not
   seen. */
static bool npuprof_os_is_still_(int fd, uint64_t file) { return npuprof_os_file_(fd) == file; }

static void npuprof_os_close_held_(int fd, uint64_t file)
{
    if (npuprof_os_is_still_(fd, file)) (void)npuprof_os_close_(fd);
}

/* The result of a public function for 0 or an errno value. */
static npuprof_result npuprof_os_result_(int error)
{
    switch (error) {
    case 0: return NPUPROF_OK;
    case ENOENT: case ENOTDIR: case ENXIO: case ENODEV: case EISDIR: return NPUPROF_ERR_NOT_FOUND;
#ifdef _WIN32
    case EBUSY:                        /* another process has the file open */
#endif
    case EACCES: case EPERM: case EROFS: case ELOOP: return NPUPROF_ERR_ACCESS;
#ifdef EDQUOT
    case EDQUOT:
#endif
    case ENOSPC: case EFBIG: return NPUPROF_ERR_NO_SPACE;
    case ENOMEM: return NPUPROF_ERR_MEMORY;
    default: return NPUPROF_ERR_IO;
    }
}

/* Is the counter of rdtsc constant in all power states? 1 yes, 0 no, -1: the C library does not say.
   Why it is asked: the C library keeps what cpuid told it, and in a virtual machine each cpuid takes
   microseconds. */
#if defined(__linux__) && defined(__x86_64__)
/* Of glibc 2.33 and later: struct cpuid_feature, of which the first four words are eax, ebx, ecx and edx. */
extern const uint32_t *npuprof_os_cpuid_(unsigned leaf) __asm__("__x86_get_cpuid_feature_leaf")
    NPUPROF_ATTRIBUTE_((weak));

NPUPROF_ATTRIBUTE_((unused)) static int npuprof_os_tsc_is_constant_(void)
{
    enum { LEAF_80000007 = 4 };
    const uint32_t *(*const volatile ask)(unsigned) = npuprof_os_cpuid_;
    const uint32_t *const leaf = ask ? ask(LEAF_80000007) : NULL;
    return leaf ? (int)(leaf[3] >> 8 & 1) : -1;
}

#else
NPUPROF_ATTRIBUTE_((unused)) static int npuprof_os_tsc_is_constant_(void) { return -1; }

#endif

/* What was said last to a thread: the sentence about an argument of it that was refused, NULL: none was; and
   one that says more about a result than the result's own. Why not of each thread: thread-local memory is
   scarce in a shared library. A thread that says something takes the place that was taken longest ago. */
typedef struct npuprof_os_said_ {
    uintptr_t to;                  /* npuprof_os_me_() of the thread; 0: nobody */
    const char *refused;
    npuprof_result result;         /* that `explained` is about; NPUPROF_OK: none */
    char explained[320];
} npuprof_os_said_;

static npuprof_os_said_ npuprof_os_said_to_[8];
static uint32_t npuprof_os_said_next_;

/* NULL: nothing was said to the calling thread, or it was long ago. */
static npuprof_os_said_ *npuprof_os_find_said_(void)
{
    const uintptr_t me = npuprof_os_me_();
    for (size_t i = 0; i < sizeof npuprof_os_said_to_ / sizeof *npuprof_os_said_to_; i++)
        if (NPUPROF_LOAD_ACQUIRE_(&npuprof_os_said_to_[i].to) == me) return &npuprof_os_said_to_[i];
    return NULL;
}

/* The place for what is said to the calling thread. */
static npuprof_os_said_ *npuprof_os_say_to_me_(void)
{
    npuprof_os_said_ *said = npuprof_os_find_said_();
    if (said) return said;
    const uint32_t places = sizeof npuprof_os_said_to_ / sizeof *npuprof_os_said_to_;
    said = &npuprof_os_said_to_[NPUPROF_ADD_(&npuprof_os_said_next_, 1) % places];
    said->refused = NULL;
    said->result = NPUPROF_OK;
    NPUPROF_STORE_RELEASE_(&said->to, npuprof_os_me_());
    return said;
}

static npuprof_result npuprof_os_refuse_(const char *sentence)
{
    npuprof_os_say_to_me_()->refused = sentence;
    return NPUPROF_ERR_ARGUMENT;
}

/* Keeps the sentence. Returns `result`, for a public function to return. */
NPUPROF_ATTRIBUTE_((format(printf, 2, 3), unused))
static npuprof_result npuprof_os_explain_(npuprof_result result, const char *format, ...)
{
    npuprof_os_said_ *const said = npuprof_os_say_to_me_();
    va_list list;
    va_start(list, format);
    const int n = vsnprintf(said->explained, sizeof said->explained, format, list);
    said->result = n > 0 ? result : NPUPROF_OK;
    va_end(list);
    return result;
}

/* The sentence that was said to the calling thread about this result. NULL: there is none. */
static const char *npuprof_os_sentence_(npuprof_result result)
{
    const npuprof_os_said_ *const said = npuprof_os_find_said_();
    if (said && result == NPUPROF_ERR_ARGUMENT && said->refused) return said->refused;
    return said && result != NPUPROF_OK && result == said->result ? said->explained : NULL;
}

/* NPUPROF_ERR_ARGUMENT, for a public function to return. sentence: a literal that names the function, the
   argument and what is wrong with it. */
#define NPUPROF_REFUSE_(sentence) npuprof_os_refuse_("NPUPROF_ERR_ARGUMENT: " sentence)
/* The same for NPUPROF_ERR_UNSUPPORTED: a knob leaves it out. */
#define NPUPROF_LEFT_OUT_(sentence) \
    npuprof_os_explain_(NPUPROF_ERR_UNSUPPORTED, "NPUPROF_ERR_UNSUPPORTED: %s", sentence)

/* Prints on stderr. Why not stdio: the program may have closed or buffered it. */
NPUPROF_ATTRIBUTE_((format(printf, 1, 2))) static void npuprof_os_say_(const char *format, ...)
{
    char text[2048];
    int fd = 2;
    va_list list;
    va_start(list, format);
    const int n = vsnprintf(text, sizeof text, format, list);
    va_end(list);
    if (n <= 0) return;
    size_t length = (size_t)n < sizeof text ? (size_t)n : sizeof text - 1;
    length = npuprof_text_make_harmless_(text, length - (text[length - 1] == '\n'));
    text[length++] = '\n';
    (void)npuprof_os_write_(&fd, text, length);
}
