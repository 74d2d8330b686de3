#pragma once   /* SPDX-License-Identifier: MIT */
#include "../public/compiler.h"
#include "../numbers/text.h"
#include "../format/arena.h"
#include "vdso.h"

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
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/types.h>
#include <time.h>
#include <unistd.h>
#ifdef __linux__
#include <sys/auxv.h>
#include <sys/syscall.h>
#endif

/* Linux, macOS and other POSIX systems: clocks, threads, signals, names, environment, and the moments at
   which the system calls the library. Files and memory are in posix_files.h. These two parts and windows.h
   are the only ones that call the system, and both systems offer the same functions to the rooms below. For a
   new system, write a part with these functions and include it in common.h.

   Data: npuprof_os_thread_key_, written by npuprof_os_hook_() when the library is set up.
   npuprof_os_has_thread_key_ says that it is valid: stored with release behind the key, and cleared by
   npuprof_os_unhook_() before the key is deleted. Any thread loads it with acquire before it uses the key.

   This part may not know what is recorded: what the system is to call is handed to npuprof_os_hook_(). */

/* A thread-local variable that takes no memory at a thread's first access, so that handlers and allocators
   may record. Why two models: glibc keeps room for variables of initial-exec in what dlopen() loads, and
   would allocate those of another model later. musl keeps none, and allocates all in dlopen(). */
#if defined(__GLIBC__)
#define NPUPROF_THREAD_LOCAL_ NPUPROF_INITIAL_EXEC_ NPUPROF_TLS_KEYWORD_
#else
#define NPUPROF_THREAD_LOCAL_ NPUPROF_TLS_KEYWORD_
#endif

/* ---- Clocks */

/* A clock of the system, in ns. */
static int64_t npuprof_os_ns_(clockid_t clock)
{
    struct timespec t;
    clock_gettime(clock, &t);
    return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}

static int64_t npuprof_os_monotonic_ns_(void) { return npuprof_os_ns_(CLOCK_MONOTONIC); }

#ifdef CLOCK_BOOTTIME
/* CLOCK_BOOTTIME, past what a program may have put in the place of clock_gettime(); vdso.h.
   Data: the function, found by the first call, if there is one; each thread that looks finds the same. */
static int64_t npuprof_os_boot_ns_(void)
{
#if defined(__linux__) && defined(__LP64__)
    static npuprof_os_clock_read_ found;
    static uint8_t has_looked;
    struct timespec t = { 0, 0 };
    if (!NPUPROF_LOAD_ACQUIRE_(&has_looked)) {
        NPUPROF_STORE_(&found, npuprof_os_vdso_find_());
        NPUPROF_STORE_RELEASE_(&has_looked, 1);
    }
    const npuprof_os_clock_read_ read = NPUPROF_LOAD_(&found);
    if (read && read(CLOCK_BOOTTIME, &t) == 0) return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
#endif
    return npuprof_os_ns_(CLOCK_BOOTTIME);
}
#endif

/* A clock that clock_gettime() takes. False: the system has none of that number. */
static bool npuprof_os_read_clock_(int clock, int64_t *ns)
{
    struct timespec t;
#ifdef CLOCK_BOOTTIME
    if (clock == CLOCK_BOOTTIME) {
        *ns = npuprof_os_boot_ns_();
        return true;
    }
#endif
    if (clock_gettime((clockid_t)clock, &t) != 0) return false;
    *ns = (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
    return true;
}

/* Fills boot_ns and unix_ns: what these clocks showed at a->monotonic_ns, which the caller has read.
   Why the monotonic clock is read before and after each: a read may be a system call of microseconds. The
   middle of the two is taken for the moment of the read. */
static void npuprof_os_clocks_(npuprof_host_anchor_ *a)
{
    int64_t before = npuprof_os_monotonic_ns_(), after;
    a->boot_ns = a->monotonic_ns;
#ifdef CLOCK_BOOTTIME
    a->boot_ns += npuprof_os_boot_ns_();
    after = npuprof_os_monotonic_ns_();
    a->boot_ns -= before + (after - before) / 2;
    before = after;
#endif
    a->unix_ns = a->monotonic_ns + npuprof_os_ns_(CLOCK_REALTIME);
    after = npuprof_os_monotonic_ns_();
    a->unix_ns -= before + (after - before) / 2;
}

static uint32_t npuprof_os_pid_(void) { return (uint32_t)getpid(); }

/* ---- Threads and signals */

/* Disables pthread_cancel() for the calling thread, until npuprof_os_release_cancel_() gets what this
   returned. Why: a thread cancelled in a sink or a wait would keep what it holds, and others would wait for
   ever. */
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

typedef struct npuprof_os_signals_ { sigset_t mask; int cancel; } npuprof_os_signals_;

/* Blocks the signals of the calling thread, and pthread_cancel(), until npuprof_os_release_signals_() gets
   *before.
   Why: a handler that runs while the thread changes to another chunk could leave by a jump, and the change
   would stay half done; so it would if the thread is cancelled at any moment (PTHREAD_CANCEL_ASYNCHRONOUS).
   A handler that records would wait for the very thread that it interrupts.
   Why the signals of faults stay open: the system ends a process that has a fault while they are blocked. */
static void npuprof_os_hold_signals_(npuprof_os_signals_ *before)
{
    static const int faults[] = { SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGTRAP, SIGABRT, SIGSYS };
    sigset_t held;
    sigfillset(&held);
    for (size_t i = 0; i < sizeof faults / sizeof *faults; i++) sigdelset(&held, faults[i]);
    before->cancel = npuprof_os_hold_cancel_();
    (void)pthread_sigmask(SIG_BLOCK, &held, &before->mask);
}

static void npuprof_os_release_signals_(const npuprof_os_signals_ *before)
{
    (void)pthread_sigmask(SIG_SETMASK, &before->mask, NULL);
    npuprof_os_release_cancel_(before->cancel);
}

/* Sleeps for so many us, below a second. errno stays. */
static void npuprof_os_nap_(uint32_t us)
{
    const struct timespec moment = { 0, (long)us * 1000 };
    const int error_before = errno, cancel_before = npuprof_os_hold_cancel_();
    nanosleep(&moment, NULL);
    npuprof_os_release_cancel_(cancel_before);
    errno = error_before;
}

/* Names the calling thread; never 0. */
static uintptr_t npuprof_os_me_(void) { return (uintptr_t)pthread_self(); }

/* The system's number of the calling thread; 0: it has none. */
static uint64_t npuprof_os_tid_(void)
{
#ifdef __linux__
    return (uint64_t)syscall(SYS_gettid);
#else
    return 0;
#endif
}

/* How many bytes at and below that frame are of the stack that its thread was born with, for sure; 0: it is
   not known. A thread's name is an address above its stack, which has 16 KiB at least, with the name, a guard
   page and thread-local data. The first one's name is anywhere, but above its stack there is the program's
   name, and below it 8 MiB that are its own. */
static size_t npuprof_os_own_stack_(const void *frame)
{
#ifdef __linux__
    const uintptr_t at = (uintptr_t)frame, own = npuprof_os_me_() - at, most = 8 << 10;
    if ((uintptr_t)getauxval(AT_EXECFN) - at < 8 << 20) return 8 << 20;
    return own < most && npuprof_os_tid_() != (uint64_t)getpid() ? most - own : 0;
#else
    return (void)frame, 0;
#endif
}

/* Lets other threads run. */
static void npuprof_os_yield_(void) { npuprof_os_nap_(20); }

/* Of the calling thread: its CPU clock in ns, how often it gave the CPU up, and how often it lost it. False:
   the system does not tell. Why a number: RUSAGE_THREAD is named for _GNU_SOURCE only. */
NPUPROF_ATTRIBUTE_((unused)) static bool npuprof_os_usage_(uint64_t used[3])
{
#ifdef __linux__
    struct rusage usage;
    if (getrusage(1, &usage) != 0) return false;
    used[0] = (uint64_t)npuprof_os_ns_(CLOCK_THREAD_CPUTIME_ID);
    used[1] = (uint64_t)usage.ru_nvcsw;
    used[2] = (uint64_t)usage.ru_nivcsw;
    return true;
#else
    return (void)used, false;
#endif
}

/* Has the thread of this process with that number ended? False: no, or it cannot be known. */
static bool npuprof_os_is_gone_(uint32_t tid)
{
#ifdef __linux__
    return syscall(SYS_tgkill, getpid(), (pid_t)tid, 0) != 0 && errno == ESRCH;
#else
    return (void)tid, false;
#endif
}

/* ---- Names of the host and the program */

#if NPUPROF_SHARED_ && defined(__linux__)
/* dladdr() and its Dl_info, under names of our own. Why: the C library declares them only for _GNU_SOURCE.
   Why weak: an old C library has dladdr() in libdl, which the program may not be linked with. */
typedef struct npuprof_os_module_ {
    const char *file;
    void *base;
    const char *symbol;
    void *address;
} npuprof_os_module_;
extern int npuprof_os_dladdr_(const void *address,
                           npuprof_os_module_ *module) __asm__("dladdr") NPUPROF_ATTRIBUTE_((weak));

/* The file name of the shared library that holds this code. NULL: the program itself holds it, or it is not
   known. */
static const char *npuprof_os_library_(void)
{
    npuprof_os_module_ ours, main;
    int (*const volatile find)(const void *, npuprof_os_module_ *) = npuprof_os_dladdr_;
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

/* The host's name, and the program's without its directory. A shared library is appended: "app
   (plugin.so)". */
static void npuprof_os_names_(char *host, size_t host_bytes, char *program, size_t program_bytes)
{
    char path[512];
    const char *name = NULL, *library = npuprof_os_library_();
    if (gethostname(host, host_bytes) != 0) host[0] = 0;
    host[host_bytes - 1] = 0;
#ifdef __linux__
    /* Why not /proc/self/exe at once: reading it takes up to 28 us. It is read only for a program that was
       started through a descriptor: the name it was started by says nothing. */
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

/* ---- Environment */

/* Does this program run with the rights of the user who started it? A set-user-id program does not. It must
   not trust the environment, so for npuprof it has none. */
static bool npuprof_os_is_own_(void)
{
#ifdef __linux__
    /* Why one question is enough: the kernel sets it in all cases, for capabilities and security modules
       as well. */
    return !getauxval(AT_SECURE);
#else
    static int own;                /* 1 yes, -1 no, 0 not asked yet. Cached: four system calls */
    if (own == 0) own = getuid() == geteuid() && getgid() == getegid() ? 1 : -1;
    return own > 0;
#endif
}

/* A variable's value; NULL: it is unset. */
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

/* All variables, each as NAME=VALUE, with a NULL at the end. NULL: there are none. */
static char **npuprof_os_environment_(void) { return npuprof_os_is_own_() ? NPUPROF_ENVIRON_ : NULL; }

/* ---- What the system calls */

static pthread_key_t npuprof_os_thread_key_;
static bool npuprof_os_has_thread_key_;

/* Called once, with functions of process/. thread_ends runs at the end of a thread that called
   npuprof_os_watch_thread_(), and gets what was given there; forks runs before a fork, and forked in its
   child; exits runs at normal exit. */
static void npuprof_os_hook_(void (*thread_ends)(void *), void (*forks)(void), void (*forked)(void),
                             void (*exits)(void))
{
    const bool has_key = pthread_key_create(&npuprof_os_thread_key_, thread_ends) == 0;
    NPUPROF_STORE_RELEASE_(&npuprof_os_has_thread_key_, has_key);
    pthread_atfork(forks, NULL, forked);
    atexit(exits);
}

/* Called at exit and by dlclose(): thread_ends is not called any more.
   Why the flag first: at exit other threads may still begin to record and would use the deleted key. */
static void npuprof_os_unhook_(void)
{
    if (!NPUPROF_LOAD_ACQUIRE_(&npuprof_os_has_thread_key_)) return;
    NPUPROF_STORE_(&npuprof_os_has_thread_key_, false);
    pthread_key_delete(npuprof_os_thread_key_);
}

/* Has thread_ends called with `user` when the calling thread ends; NULL: not at all. The last call counts.
   False: it will not be called. */
static bool npuprof_os_watch_thread_(void *user)
{
    return NPUPROF_LOAD_ACQUIRE_(&npuprof_os_has_thread_key_) &&
           pthread_setspecific(npuprof_os_thread_key_, user) == 0;
}

#if NPUPROF_THREAD_KEY
/* What the calling thread gave npuprof_os_watch_thread_(), or NULL. */
static inline void *npuprof_os_own_(void)
{
    return NPUPROF_LOAD_ACQUIRE_(&npuprof_os_has_thread_key_) ? pthread_getspecific(npuprof_os_thread_key_)
        : NULL;
}
#endif
#endif /* !_WIN32 */
