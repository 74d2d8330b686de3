#pragma once   /* SPDX-License-Identifier: MIT */
#include "../public/compiler.h"
#include "../numbers/text.h"
#include "../format/arena.h"

#ifndef _WIN32
#if defined(__STRICT_ANSI__) && !defined(_DEFAULT_SOURCE) && !defined(_GNU_SOURCE) && !defined(__APPLE__)
#error "npuprof.h: strict -std hides clock_gettime and mmap; include it first here or add -D_DEFAULT_SOURCE"
#endif
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/types.h>
#include <time.h>
#include <unistd.h>
#ifdef __linux__
#include <sys/auxv.h>
#include <sys/syscall.h>
#endif
#define NPUPROF_THREAD_LOCAL_ NPUPROF_INITIAL_EXEC_ NPUPROF_TLS_KEYWORD_
/* The clocks beside the ticks. Without an OS they are all zero. */
static int64_t npuprof_os_ns_(clockid_t clock)
{
    struct timespec t;
    clock_gettime(clock, &t);
    return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}

static int64_t npuprof_os_monotonic_ns_(void) { return npuprof_os_ns_(CLOCK_MONOTONIC); }

/* The other two as of a->monotonic_ns. Why the monotonic clock around each: a read may be a system call of
   microseconds. */
static void npuprof_os_clocks_(npuprof_host_anchor_ *a)
{
    int64_t before = npuprof_os_monotonic_ns_(), after;
    a->boot_ns = a->monotonic_ns;
#ifdef CLOCK_BOOTTIME
    a->boot_ns += npuprof_os_ns_(CLOCK_BOOTTIME);
    after = npuprof_os_monotonic_ns_();
    a->boot_ns -= before + (after - before) / 2;
    before = after;
#endif
    a->unix_ns = a->monotonic_ns + npuprof_os_ns_(CLOCK_REALTIME);
    after = npuprof_os_monotonic_ns_();
    a->unix_ns -= before + (after - before) / 2;
}

static uint32_t npuprof_os_pid_(void) { return (uint32_t)getpid(); }

/* Between the two pthread_cancel() ends no thread that is called from here. Why: it would end in the middle
   of a sink or a wait, and others would wait for it for ever. */
static int npuprof_os_hold_cancel_(void)
{
    int before = 0;
#ifdef PTHREAD_CANCEL_DISABLE
    pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &before);
#endif
    return before;
}

static void npuprof_os_release_cancel_(int before)
{
#ifdef PTHREAD_CANCEL_DISABLE
    pthread_setcancelstate(before, &before);
#endif
    (void)before;
}

/* Between the two no handler of a signal runs on this thread. Why: one that leaves by a jump while the
   thread changes to another chunk would leave its part in that undone, and one that records would wait
   for the thread that it interrupts. Why not those of faults: where they are held back, the system ends
   the process. */
typedef sigset_t npuprof_signals_;
static void npuprof_os_hold_signals_(npuprof_signals_ *before)
{
    static const int faults[] = { SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGTRAP, SIGABRT, SIGSYS };
    npuprof_signals_ held;
    sigfillset(&held);
    for (size_t i = 0; i < sizeof faults / sizeof *faults; i++) sigdelset(&held, faults[i]);
    (void)pthread_sigmask(SIG_BLOCK, &held, before);
}

static void npuprof_os_release_signals_(const npuprof_signals_ *before)
{
    (void)pthread_sigmask(SIG_SETMASK, before, NULL);
}

static void npuprof_os_yield_(void)
{
    const struct timespec moment = { 0, 20000 };
    const int error_before = errno, whole = npuprof_os_hold_cancel_();
    nanosleep(&moment, NULL);
    npuprof_os_release_cancel_(whole);
    errno = error_before;
}

static uint64_t npuprof_os_tid_(void)
{
#ifdef __linux__
    return (uint64_t)syscall(SYS_gettid);
#else
    return 0;
#endif
}

#if NPUPROF_SHARED_ && defined(__linux__)
/* Why under another name: the C library declares it only for _GNU_SOURCE, and an old one has it in a library
   that need not be there. */
typedef struct npuprof_module_ {
    const char *file;
    void *base;
    const char *symbol;
    void *address;
} npuprof_module_;
extern int npuprof_dladdr_(const void *address,
                           npuprof_module_ *module) __asm__("dladdr") NPUPROF_ATTRIBUTE_((weak));
/* The file name of the shared library that this is a part of; NULL in the program itself. */
static const char *npuprof_os_library_(void)
{
    npuprof_module_ ours, main;
    int (*const volatile find)(const void *, npuprof_module_ *) = npuprof_dladdr_;
    const void *const program = (const void *)(uintptr_t)getauxval(AT_PHDR);
    if (!find || !program || !find((const void *)(uintptr_t)&npuprof_os_pid_, &ours) || !ours.file)
        return NULL;
    if (find(program, &main) && main.base == ours.base) return NULL;
    const char *slash = strrchr(ours.file, '/');
    return slash ? slash + 1 : ours.file;
}

#else /* !(NPUPROF_SHARED_ && __linux__) */
static const char *npuprof_os_library_(void) { return NULL; }

#endif /* !(NPUPROF_SHARED_ && __linux__) */
static void npuprof_os_names_(char *host, size_t host_bytes, char *program, size_t program_bytes)
{
    char path[512];
    const char *name = NULL, *library = npuprof_os_library_();
    if (gethostname(host, host_bytes) != 0) host[0] = 0;
    host[host_bytes - 1] = 0;
#ifdef __linux__
    /* Why not /proc/self/exe: it takes up to 28 us at the start. A program that was started through a
       descriptor has no other name. */
    name = (const char *)(uintptr_t)getauxval(AT_EXECFN);
    if (name && strncmp(name, "/dev/fd/", 8) == 0) name = NULL;
#endif
    if (!name) {
        const ssize_t n = readlink("/proc/self/exe", path, sizeof path - 1);
        path[n > 0 ? n : 0] = 0;
        name = path;
    }
    const char *slash = strrchr(name, '/');
    npuprof_text_copy_(program, program_bytes, slash ? slash + 1 : name);
    const size_t used = strlen(program);
    if (library) snprintf(program + used, program_bytes - used, " (%s)", library);
}

/* Does this program run as who started it? Else, as a set-user-id one, it has no environment. */
static bool npuprof_os_is_own_(void)
{
#ifdef __linux__
    /* Why only this: the kernel says it for every way in which a program may run with other rights than who
       started it. */
    return !getauxval(AT_SECURE);
#else
    static int own;                /* 1: yes; -1: no. Asked once: each is a system call */
    if (own == 0) own = getuid() == geteuid() && getgid() == getegid() ? 1 : -1;
    return own > 0;
#endif
}

static const char *npuprof_os_env_(const char *name) { return npuprof_os_is_own_() ? getenv(name) : NULL; }
#if defined(__APPLE__)
#include <crt_externs.h>
#define NPUPROF_ENVIRON_ (*_NSGetEnviron())
#elif defined(__GLIBC__)
#define NPUPROF_ENVIRON_ __environ
#else
extern char **environ;
#define NPUPROF_ENVIRON_ environ
#endif
static char **npuprof_os_environment_(void) { return npuprof_os_is_own_() ? NPUPROF_ENVIRON_ : NULL; }

/* What the system calls, handed down once: at the end of a thread, in the child of a fork, at exit. */
static pthread_key_t npuprof_os_thread_key_;
static bool npuprof_os_has_thread_key_;

static void npuprof_os_hook_(void (*thread_ends)(void *), void (*forked)(void), void (*exits)(void))
{
    const bool has_key = pthread_key_create(&npuprof_os_thread_key_, thread_ends) == 0;
    NPUPROF_STORE_RELEASE_(&npuprof_os_has_thread_key_, has_key);
    pthread_atfork(NULL, NULL, forked);
    atexit(exits);
}

/* At exit or dlclose. Why the flag first: at exit other threads may still begin to record; their ends are
   nobody's business then. */
static void npuprof_os_unhook_(void)
{
    if (!NPUPROF_LOAD_ACQUIRE_(&npuprof_os_has_thread_key_)) return;
    NPUPROF_STORE_(&npuprof_os_has_thread_key_, false);
    pthread_key_delete(npuprof_os_thread_key_);
}

/* thread_ends gets what is given here last on the calling thread. */
static void npuprof_os_watch_thread_(void *user)
{
    if (NPUPROF_LOAD_ACQUIRE_(&npuprof_os_has_thread_key_)) pthread_setspecific(npuprof_os_thread_key_, user);
}
#endif /* !_WIN32 */
