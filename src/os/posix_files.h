#pragma once   /* SPDX-License-Identifier: MIT */
#include "../public/types.h"
#include "posix.h"

#ifndef _WIN32
/* Files and memory of POSIX systems: opening, locking, mapping, renaming, writing. A function that returns an
   int returns 0 or an errno value, if nothing else is said.

   Owns no data: descriptors and mappings belong to the caller. A file that npuprof made is recognized by its
   inode, not by its path: somebody may have renamed or replaced it in the meantime.

   This part may not know what is in the files. control/path.h chooses their names; write/ fills them. */

/* ---- Opening */

#ifdef __APPLE__
#define NPUPROF_OS_CHANGED_(st) ((st).st_mtimespec)
#define NPUPROF_OS_ALTERED_(st) ((st).st_ctimespec)
#else
#define NPUPROF_OS_CHANGED_(st) ((st).st_mtim)     /* its contents */
#define NPUPROF_OS_ALTERED_(st) ((st).st_ctim)     /* anything of it */
#endif

/* Are these two the same file? */
static bool npuprof_os_are_one_(const struct stat *a, const struct stat *b)
{
    return a->st_dev == b->st_dev && a->st_ino == b->st_ino;
}

/* Names the file behind a descriptor; 0: it is closed. */
static uint64_t npuprof_os_file_(int fd)
{
    struct stat st;
    return fstat(fd, &st) ? 0 : (uint64_t)st.st_dev * UINT64_C(0x9E3779B97F4A7C15) + (uint64_t)st.st_ino;
}

/* Does this path still lead to the file behind fd? */
static bool npuprof_os_is_at_(int fd, const char *path)
{
    struct stat ours, there;
    return fstat(fd, &ours) == 0 && lstat(path, &there) == 0 && npuprof_os_are_one_(&ours, &there);
}

/* Takes those of the descriptors 0, 1 and 2 that are closed, with what nobody can write to. Returns which, as
   bits. */
static unsigned npuprof_os_hold_places_(void)
{
    unsigned held = 0;
    for (int n = 0; n < 3; n++) {
        if (fcntl(n, F_GETFD) >= 0) continue;
        const int fd = open("/", O_RDONLY | O_CLOEXEC);
        if (fd >= 0 && fd < 3) held |= 1u << fd;
        else if (fd >= 0) close(fd);       /* another thread was quicker */
    }
    return held;
}

/* Gives them back. Why the look: meanwhile another thread may have put a file of its own there with dup2(),
   which stays. It is closed only if it came between the look and close(). */
static void npuprof_os_release_places_(unsigned held)
{
    struct stat ours, now;
    for (int n = 0; n < 3; n++)
        if (held >> n & 1 && stat("/", &ours) == 0 && fstat(n, &now) == 0 && npuprof_os_are_one_(&ours, &now))
            close(n);
}

/* open(), but never as descriptor 0, 1 or 2. Why: a program may have closed one of those and still write to
   it; it would write into our file. Where open() gives such a number all the same, as another thread closed
   it meanwhile, this opens again. */
static int npuprof_os_open_above_2_(const char *path, int flags)
{
    for (int tries = 0; tries < 100; tries++) {
        const unsigned held = npuprof_os_hold_places_();
        const int fd = open(path, flags | O_CLOEXEC, 0666), error = errno;
        const bool is_low = fd >= 0 && fd < 3;
        npuprof_os_release_places_(held & ~(is_low ? 1u << fd : 0u));
        errno = error;
        if (!is_low) return fd;
        close(fd);
        if (flags & O_EXCL) unlink(path);
    }
    errno = EBUSY;
    return -1;
}

/* Creates a new file. Follows no link. EEXIST: there is something of that name. */
static int npuprof_os_create_(const char *path, int *fd)
{
    *fd = npuprof_os_open_above_2_(path, O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW);
    return *fd < 0 ? errno : 0;
}

/* A write that fails with EPIPE or EFBIG also raises a signal, which would end the program. The signal is
   blocked before the write, and taken away behind it unless it was pending before. */
typedef struct npuprof_os_write_signals_ { sigset_t before, pending; } npuprof_os_write_signals_;

static void npuprof_os_hold_write_signals_(npuprof_os_write_signals_ *q)
{
    sigset_t ours;
    sigemptyset(&ours);
    sigaddset(&ours, SIGPIPE);
    sigaddset(&ours, SIGXFSZ);
    sigpending(&q->pending);
    pthread_sigmask(SIG_BLOCK, &ours, &q->before);
}

/* error: what the write returned, 0 or an errno value. */
static void npuprof_os_release_write_signals_(const npuprof_os_write_signals_ *q, int error)
{
    const int signal = error == EPIPE ? SIGPIPE : error == EFBIG ? SIGXFSZ : 0;
    sigset_t ours;
    if (signal && !sigismember(&q->pending, signal) && sigpending(&ours) == 0 && sigismember(&ours, signal)) {
        int got;
        sigemptyset(&ours);
        sigaddset(&ours, signal);
        (void)sigwait(&ours, &got);
    }
    pthread_sigmask(SIG_SETMASK, &q->before, NULL);
}

/* Opens what exists, to write in place: a device, a pipe, a descriptor of this process. */
static int npuprof_os_open_(const char *path, int *fd)
{
    /* Why a descriptor is duplicated: open() would begin at the start of the file behind it. */
    const char *number = strncmp(path, "/dev/fd/", 8) == 0 ? path + 8 : strcmp(path, "/dev/stdout") == 0 ? "1"
        : strcmp(path, "/dev/stderr") == 0 ? "2" : NULL;
    if (number) {
        npuprof_os_write_signals_ quiet;
        npuprof_os_hold_write_signals_(&quiet);
        npuprof_os_release_write_signals_(&quiet, fflush(stdout) ? errno : 0);
        *fd = fcntl(atoi(number), F_DUPFD_CLOEXEC, 3);
    } else {
        /* Why O_NONBLOCK: the open of a fifo without a reader would wait for one for ever. One that is just
           being started gets 100 ms. */
        for (int tries = 0; tries < 100; tries++) {
            const struct timespec ms = { 0, 1000000 };
            *fd = npuprof_os_open_above_2_(path, O_WRONLY | O_NOCTTY | O_NONBLOCK);
            if (*fd >= 0 || errno != ENXIO) break;
            nanosleep(&ms, NULL);
            errno = ENXIO;
        }
        if (*fd >= 0) (void)fcntl(*fd, F_SETFL, fcntl(*fd, F_GETFL) & ~O_NONBLOCK);
    }
    return *fd < 0 ? errno : 0;
}

/* ---- Memory */

/* Zeroed memory from the system. NULL: there is none. */
static void *npuprof_os_memory_(size_t bytes)
{
    void *p = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    return p == MAP_FAILED ? NULL : p;
}

static void npuprof_os_unmap_(void *memory, size_t bytes) { munmap(memory, bytes); }

/* ---- Locks: a file that grows or is not complete yet is locked by the process that writes it

   Locks of flock(): the system releases them however the process ends. */

/* Locks the file for this process. EWOULDBLOCK: another one has locked it. */
static int npuprof_os_lock_(int fd) { return flock(fd, LOCK_EX | LOCK_NB) ? errno : 0; }

static bool npuprof_os_is_locked_(int fd)
{
    return flock(fd, LOCK_SH | LOCK_NB) != 0 && errno == EWOULDBLOCK;
}

/* ---- Files that grow: a stream, a mapped arena */

/* Maps a file that was just created: shared, with all its blocks allocated, and locked.
   Why allocated: on a full disk, a write to the mapping would be a SIGBUS.
   Where the file system cannot allocate (EOPNOTSUPP), a byte is written to each page. */
static int npuprof_os_map_arena_(int fd, size_t bytes, void **memory)
{
    npuprof_os_write_signals_ quiet;
    npuprof_os_hold_write_signals_(&quiet);
#ifdef __APPLE__
    int error = EOPNOTSUPP;                /* there is no posix_fallocate() */
#else
    int error = posix_fallocate(fd, 0, (off_t)bytes);
#endif
    for (size_t at = 0; error == EOPNOTSUPP && at < bytes; at += 4096)
        if (pwrite(fd, "", 1, (off_t)(at + 4096 < bytes ? at + 4095 : bytes - 1)) != 1) error = errno;
    if (error == EOPNOTSUPP) error = 0;
    npuprof_os_release_write_signals_(&quiet, error);
    if (!error) error = npuprof_os_lock_(fd);
    if (!error) {
        *memory = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
        if (*memory == MAP_FAILED) error = errno;
    }
    return error;
}

/* Renames a regular file, if the new name is free. 0 also if there is no such file. EBUSY: a running process
   uses the file. EEXIST: the new name is taken. ELOOP, EINVAL: it is a link, or no regular file. */
static int npuprof_os_move_aside_(const char *path, const char *aside)
{
    struct stat st;
    if (lstat(path, &st) != 0) return errno == ENOENT ? 0 : errno;
    if (S_ISLNK(st.st_mode)) return ELOOP;
    if (!S_ISREG(st.st_mode)) return EINVAL;
    const int fd = npuprof_os_open_above_2_(path, O_RDONLY | O_NOFOLLOW | O_NONBLOCK);
    const bool busy = fd >= 0 && npuprof_os_is_locked_(fd);
    if (fd >= 0) close(fd);
    if (busy) return EBUSY;
    /* Why link() and not rename(): it never replaces what is there. rename() is for file systems that
       have no links. */
    if (link(path, aside) == 0) return unlink(path) ? errno : 0;
    if (errno != EPERM && errno != EOPNOTSUPP && errno != EMLINK) return errno;
    if (lstat(aside, &st) == 0) return EEXIST;
    return rename(path, aside) ? errno : 0;
}

/* Closes a file that was just created, and removes it, unless something else is at its path by now. */
static void npuprof_os_discard_(int fd, const char *path)
{
    if (npuprof_os_is_at_(fd, path)) unlink(path);
    close(fd);
}

/* Cuts the file off behind its first `good` bytes, where the next ones will go. False: it cannot be cut, as a
   pipe. */
static bool npuprof_os_take_back_(int fd, uint64_t good)
{
    return ftruncate(fd, (off_t)good) == 0 && lseek(fd, (off_t)good, SEEK_SET) == (off_t)good;
}

/* Is this path written in place, and not by a new file: a device, a fifo, an open descriptor? */
static bool npuprof_os_in_place_(const char *path)
{
    struct stat st;
    return strncmp(path, "/dev/std", 8) == 0 || strncmp(path, "/dev/fd/", 8) == 0
        || (stat(path, &st) == 0 && !S_ISREG(st.st_mode));
}

/* ---- Writing and reading */

/* The write function of a sink; fd: an int with the descriptor. Writes all bytes or returns an error. A
   closed pipe or a size limit is an error here, no signal to the program. */
static int npuprof_os_write_(void *fd, const void *bytes, size_t count)
{
    const uint8_t *p = (const uint8_t *)bytes;
    npuprof_os_write_signals_ quiet;
    int error = 0;
    npuprof_os_hold_write_signals_(&quiet);
    while (count && !error) {
        const ssize_t n = write(*(const int *)fd, p, count);
        if (n < 0 && errno == EINTR) continue;
        if (n <= 0) {
            error = n < 0 ? errno : EIO;
        } else {
            p += n;
            count -= (size_t)n;
        }
    }
    npuprof_os_release_write_signals_(&quiet, error);
    return error;
}

/* The start of this process, in ns since the Unix epoch, up to 10 ms too early. INT64_MAX: not known. */
static int64_t npuprof_os_process_start_ns_(void)
{
#if defined(__linux__) && defined(CLOCK_BOOTTIME)
    char text[1024];
    const int fd = npuprof_os_open_above_2_("/proc/self/stat", O_RDONLY);
    const ssize_t n = fd < 0 ? 0 : read(fd, text, sizeof text - 1);
    if (fd >= 0) close(fd);
    text[n > 0 ? n : 0] = 0;
    /* The start is the 20th field behind the program's name. That is in parentheses and may hold anything, so
       the last ')' ends it. */
    const char *p = strrchr(text, ')');
    for (int field = 0; p && field < 20; field++) p = strchr(p + 1, ' ');
    const long hz = sysconf(_SC_CLK_TCK);
    if (!p || hz <= 0) return INT64_MAX;
    return npuprof_os_ns_(CLOCK_REALTIME) - npuprof_os_ns_(CLOCK_BOOTTIME)
        + (int64_t)(strtoll(p, NULL, 10) * (1000000000 / hz));
#else
    return INT64_MAX;
#endif
}

/* The clock of file times moves in steps of some milliseconds: by so much a time may be too early. */
#define NPUPROF_OS_FILE_STEP_NS_ 20000000

/* Reads the first bytes of a file into a buffer of `room` bytes. Returns how many. 0: it is no regular file,
   or was written last before since_unix_ns, less a step. */
static size_t npuprof_os_read_head_(const char *path, int64_t since_unix_ns, char *bytes, size_t room)
{
    struct stat st;
    const int fd = npuprof_os_open_above_2_(path, O_RDONLY | O_NOFOLLOW | O_NONBLOCK);
    if (fd < 0) return 0;
    ssize_t n = 0;
    if (fstat(fd, &st) == 0 && S_ISREG(st.st_mode)) {
        const struct timespec changed = NPUPROF_OS_CHANGED_(st);
        const int64_t ns = (int64_t)changed.tv_sec * 1000000000 + changed.tv_nsec;
        if (ns >= since_unix_ns - NPUPROF_OS_FILE_STEP_NS_) n = read(fd, bytes, room);
    }
    close(fd);
    return n > 0 ? (size_t)n : 0;
}

static int npuprof_os_close_(int fd) { return close(fd) ? errno : 0; }
static void npuprof_os_remove_(const char *path) { unlink(path); }

/* ---- Files that get their name when they are complete */

/* Removes a file that no process has locked. False: it was not removed. */
static bool npuprof_os_remove_stale_(const char *path)
{
    const int fd = npuprof_os_open_above_2_(path, O_RDONLY | O_NOFOLLOW | O_NONBLOCK);
    if (fd < 0) return false;
    const bool removed = npuprof_os_lock_(fd) == 0 && npuprof_os_is_at_(fd, path) && unlink(path) == 0;
    close(fd);
    return removed;
}

/* Gives a file the mode of the one that it replaces, if there is one. */
static void npuprof_os_take_mode_(int fd, const char *replaces)
{
    struct stat st;
    if (stat(replaces, &st) == 0 && S_ISREG(st.st_mode)) (void)fchmod(fd, st.st_mode & 0777);
}

/* Creates a temporary file at `path`, with the mode of `replaces`, the file that it will replace. It is
   locked until npuprof_os_publish_() or the end of the process. So another process can tell a file in use
   from one that a killed process left, which is removed here. EEXIST: a process uses the one that is
   there. */
static int npuprof_os_create_temporary_(const char *path, const char *replaces, int *fd)
{
    struct stat st, ours;
    int error = npuprof_os_create_(path, fd);
    if (error == EEXIST && npuprof_os_remove_stale_(path)) error = npuprof_os_create_(path, fd);
    if (error) return error;
    /* Before it was locked, another process may have removed it as one left by a killed process. What cannot
       be used is removed here: nobody else will, if no further trace goes there. */
    const bool busy = npuprof_os_lock_(*fd) == EWOULDBLOCK;
    error = fstat(*fd, &ours) || lstat(path, &st) ? errno : 0;
    const bool gone = error == ENOENT || (!error && (ours.st_dev != st.st_dev || ours.st_ino != st.st_ino));
    if (busy || gone || error) {
        if (!gone) unlink(path);
        close(*fd);
        return error && !gone ? error : EEXIST;
    }
    npuprof_os_take_mode_(*fd, replaces);
    return 0;
}

/* Locks the folder of a path against others that do so. -1: it cannot be had. Why 100 ms at most: somebody
   else may hold such a lock as long as the program runs, as `flock . PROGRAM` does. */
static int npuprof_os_lock_folder_(const char *path)
{
    char folder[1100];
    const char *const slash = strrchr(path, '/');
    snprintf(folder, sizeof folder, "%.*s", slash ? (int)(slash - path) + 1 : 1, slash ? path : ".");
    const int fd = npuprof_os_open_above_2_(folder, O_RDONLY);
    for (int n = 0; fd >= 0 && n < 100 && npuprof_os_lock_(fd) == EWOULDBLOCK; n++) npuprof_os_nap_(1000);
    return fd;
}

/* Closes a temporary file and renames it. Why a duplicate of the descriptor is closed first: close() tells of
   late write errors, and the lock must last until the file has its name. Why its time is set: the system's
   file times are some ms behind, and others ask whether it was written since they record. */
static int npuprof_os_publish_(int fd, const char *from, const char *to)
{
    struct timespec now[2] = { { 0, 0 }, { 0, 0 } };
    const bool is_known = clock_gettime(CLOCK_REALTIME, &now[0]) == 0;
    now[1] = now[0];
    if (is_known) (void)futimens(fd, now);
    const int copy = fcntl(fd, F_DUPFD_CLOEXEC, 3);
    int error = copy < 0 || close(copy) != 0 ? errno : 0;
    if (!error && rename(from, to) != 0) error = errno;
    close(fd);
    return error;
}

/* 0 also if the directory exists. */
static int npuprof_os_make_directory_(const char *path)
{
    return mkdir(path, 0777) && errno != EEXIST ? errno : 0;
}

/* ---- Text of times, and results */

/* Local time as 2000-12-31_23-59-59; "" if it cannot be had. */
static void npuprof_os_local_time_(int64_t unix_ns, char *text, size_t room)
{
    const time_t seconds = (time_t)(unix_ns / 1000000000);
    struct tm tm;
    text[0] = 0;
    if (localtime_r(&seconds, &tm) && !strftime(text, room, "%Y-%m-%d_%H-%M-%S", &tm)) text[0] = 0;
}
#endif /* !_WIN32 */
