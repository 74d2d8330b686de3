#pragma once   /* SPDX-License-Identifier: MIT */
#include "../public/compiler.h"
#include "../numbers/hash.h"
#include "posix.h"
#include "posix_files.h"

#ifndef _WIN32
#include <sys/stat.h>

/* How somebody outside gives commands to the process, on POSIX systems: a signal, or a small file that is
   looked at now and then. windows.h has the same functions.

   Owns no data; what is known of the file belongs to the caller.

   This part may not know the commands. */

/* The number of the signal of that name, with or without SIG. -1: there is none that may be taken. Only those
   that are left to programs, and that no runtime takes. */
static int npuprof_os_signal_number_(const char *name, size_t length)
{
    static const struct { char name[8]; int number; } known[] = {
        { "HUP", SIGHUP }, { "USR1", SIGUSR1 }, { "USR2", SIGUSR2 } };
    if (length > 3 && memcmp(name, "SIG", 3) == 0) {
        name += 3;
        length -= 3;
    }
    for (size_t i = 0; i < sizeof known / sizeof *known; i++) {
        const bool same = strlen(known[i].name) == length && memcmp(name, known[i].name, length) == 0;
        if (same) return known[i].number;
    }
#ifdef SIGRTMIN
    if (length >= 7 && length <= 8 && memcmp(name, "RTMIN+", 6) == 0) {
        int more = 0;
        for (size_t i = 6; i < length; i++) {
            if (name[i] < '0' || name[i] > '9') return -1;
            more = more * 10 + (name[i] - '0');
        }
        return SIGRTMIN + more <= SIGRTMAX ? SIGRTMIN + more : -1;
    }
#endif
    return -1;
}

/* Installs a handler where the program has none. EBUSY: it has one, or ignores the signal.
   Why SA_RESTART and SA_ONSTACK: what the program does must not fail because of the signal, and runtimes with
   small stacks give signals one of their own. */
static int npuprof_os_take_signal_(int number, void (*handler)(int))
{
    struct sigaction before, ours;
    if (sigaction(number, NULL, &before) != 0) return errno;
    const bool has_one = (before.sa_flags & SA_SIGINFO) || before.sa_handler != SIG_DFL;
    if (has_one && !(before.sa_flags & SA_SIGINFO) && before.sa_handler == handler) return 0;
    if (has_one) return EBUSY;
    memset(&ours, 0, sizeof ours);
    ours.sa_handler = handler;
    ours.sa_flags = SA_RESTART | SA_ONSTACK;
    sigfillset(&ours.sa_mask);
    return sigaction(number, &ours, NULL) ? errno : 0;
}

/* Leaves a signal to the system again, as it was before, if this handler still has it. In a program, which
   ends now, it is ignored instead. Why: the default would end it in another way than it was about to. */
static void npuprof_os_leave_signal_(int number, void (*handler)(int))
{
    struct sigaction now;
    if (sigaction(number, NULL, &now) != 0 || (now.sa_flags & SA_SIGINFO)) return;
    if (now.sa_handler != handler) return;
    now.sa_handler = npuprof_os_library_() ? SIG_DFL : SIG_IGN;
    (void)sigaction(number, &now, NULL);
}

/* ---- A file that is looked at now and then */

static bool npuprof_os_has_commands_(void) { return true; }

/* What is known of it. Zero: nothing. */
typedef struct npuprof_os_seen_ {
    int64_t changed_ns;
    uint64_t inode, bytes;
    uint32_t hash;                 /* of its text */
    bool is_fresh;                 /* it was read less than 50 ms after its change */
} npuprof_os_seen_;

/* Is this file no other user's, and may no other user write it? 0 or an errno value. */
static int npuprof_os_check_commands_(const struct stat *st)
{
    if (S_ISLNK(st->st_mode)) return ELOOP;
    if (!S_ISREG(st->st_mode)) return EINVAL;
    if (st->st_uid != geteuid() && st->st_uid != 0) return EPERM;
    return st->st_mode & (S_IWGRP | S_IWOTH) ? EACCES : 0;
}

/* Reads the file if it has changed since the last time: up to `room` bytes, *bytes of them. EAGAIN: there is
   nothing new, or no file. Others: it must not be trusted, and is not looked at until it changes.
   Why a fresh one is read again: the clock of file times moves in steps, and a second change in the same step
   could not be seen. */
static int npuprof_os_read_commands_(const char *path, npuprof_os_seen_ *seen, char *text, size_t room,
                                     size_t *bytes)
{
    struct stat st;
    if (lstat(path, &st) != 0) return EAGAIN;
    npuprof_os_seen_ now;
    memset(&now, 0, sizeof now);
    now.changed_ns = (int64_t)NPUPROF_OS_ALTERED_(st).tv_sec * 1000000000 + NPUPROF_OS_ALTERED_(st).tv_nsec;
    now.inode = (uint64_t)st.st_ino;
    now.bytes = (uint64_t)st.st_size;
    const bool same =
        now.changed_ns == seen->changed_ns && now.inode == seen->inode && now.bytes == seen->bytes;
    if (same && !seen->is_fresh) return EAGAIN;
    int error = npuprof_os_check_commands_(&st);
    const int fd = error ? -1 : npuprof_os_open_above_2_(path, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY);
    if (!error && fd < 0) error = errno;
    /* Why again: what is open may be another file than what was looked at. */
    if (!error) error = fstat(fd, &st) ? errno : npuprof_os_check_commands_(&st);
    const ssize_t n = error ? 0 : read(fd, text, room);
    if (n < 0) error = errno;
    if (fd >= 0) close(fd);
    *bytes = n > 0 ? (size_t)n : 0;
    now.hash = npuprof_hash_text_(text, *bytes);
    const int64_t age = npuprof_os_ns_(CLOCK_REALTIME) - now.changed_ns;
    now.is_fresh = age > -50000000 && age < 50000000;
    const bool equal = same && now.hash == seen->hash;
    *seen = now;
    return equal ? EAGAIN : error;
}
#endif /* !_WIN32 */
