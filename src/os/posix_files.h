#pragma once   /* SPDX-License-Identifier: MIT */
#include "../public/types.h"
#include "posix.h"

#ifndef _WIN32
/* open(), but never as descriptor 0, 1 or 2. Why: a program that closed one of those and writes there all the
   same would write into our file. Why places are held: in between, too, that fails as it did before. */
static int npuprof_os_open_above_2_(const char *path, int flags)
{
    int held[3], count = 0;
    for (int n = 0; n < 3; n++) {
        if (fcntl(n, F_GETFD) >= 0) continue;
        held[count] = open("/", O_RDONLY | O_CLOEXEC);
        count += held[count] >= 0;
    }
    int fd = open(path, flags | O_CLOEXEC, 0666), error = errno;
    if (fd >= 0 && fd <= 2) {              /* no place could be held */
        close(fd);
        fd = -1;
        error = EMFILE;
    }
    while (count) close(held[--count]);
    errno = error;
    return fd;
}

/* Files. Each returns 0 or an errno value. */
static int npuprof_os_create_(const char *path, int *fd)       /* a new file; follows no link */
{
    *fd = npuprof_os_open_above_2_(path, O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW);
    return *fd < 0 ? errno : 0;
}

/* What fails with EPIPE or EFBIG raises a signal, too, which would end the program. Between the two it does
   not. */
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

static void npuprof_os_release_write_signals_(const npuprof_os_write_signals_ *q, int error)
{
    const int signal = error == EPIPE ? SIGPIPE : error == EFBIG ? SIGXFSZ : 0;
    if (signal && !sigismember(&q->pending, signal)) {
        const struct timespec now = { 0, 0 };
        sigset_t ours;
        sigemptyset(&ours);
        sigaddset(&ours, signal);
        while (sigtimedwait(&ours, NULL, &now) < 0 && errno == EINTR) { }
    }
    pthread_sigmask(SIG_SETMASK, &q->before, NULL);
}

static int npuprof_os_open_(const char *path, int *fd)         /* what is there, to write in place */
{
    /* Why not open() for our own descriptors: it would begin at the start of the file behind them. */
    const char *number = strncmp(path, "/dev/fd/", 8) == 0 ? path + 8 : strcmp(path, "/dev/stdout") == 0 ? "1"
        : strcmp(path, "/dev/stderr") == 0 ? "2" : NULL;
    if (number) {
        npuprof_os_write_signals_ quiet;
        npuprof_os_hold_write_signals_(&quiet);
        npuprof_os_release_write_signals_(&quiet, fflush(stdout) ? errno : 0);
        *fd = fcntl(atoi(number), F_DUPFD_CLOEXEC, 3);
    } else {
        *fd = npuprof_os_open_above_2_(path, O_WRONLY | O_NOCTTY);
    }
    return *fd < 0 ? errno : 0;
}

/* Zeroed memory beside the arena, for a child process whose file cannot be had. NULL: none. */
static void *npuprof_os_memory_(size_t bytes)
{
    void *p = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    return p == MAP_FAILED ? NULL : p;
}

static void npuprof_os_unmap_(void *memory, size_t bytes) { munmap(memory, bytes); }

static bool npuprof_os_is_locked_(int fd)
{
    return flock(fd, LOCK_SH | LOCK_NB) != 0 && errno == EWOULDBLOCK;
}

static int npuprof_os_lock_(int fd);
/* Maps a file that was just created, shared, allocated in full and locked. Why in full: a full disk would be
   a SIGBUS later. */
static int npuprof_os_map_arena_(int fd, size_t bytes, void **memory)
{
    npuprof_os_write_signals_ quiet;
    npuprof_os_hold_write_signals_(&quiet);
    int error = posix_fallocate(fd, 0, (off_t)bytes);
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

/* Gives an older regular file another name, if that is free. EBUSY: a running process uses it; EEXIST: the
   name is taken. */
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
    /* Why a link: it never replaces what is there. */
    if (link(path, aside) == 0) return unlink(path) ? errno : 0;
    if (errno != EPERM && errno != EOPNOTSUPP && errno != EMLINK) return errno;
    if (lstat(aside, &st) == 0) return EEXIST;
    return rename(path, aside) ? errno : 0;
}

static int npuprof_os_lock_(int fd) { return flock(fd, LOCK_EX | LOCK_NB) ? errno : 0; }

/* Closes a file that was just created and takes its name away, if that is still its own. */
static bool npuprof_os_is_at_(int fd, const char *path);
static void npuprof_os_discard_(int fd, const char *path)
{
    if (npuprof_os_is_at_(fd, path)) unlink(path);
    close(fd);
}

/* Takes back what was written after the last whole block. False: it cannot be. */
static bool npuprof_os_take_back_(int fd, size_t header_bytes, size_t block_bytes)
{
    const off_t at = lseek(fd, 0, SEEK_CUR);
    if (at < 0) return false;
    const off_t good = at < (off_t)header_bytes || !header_bytes ? 0
        : at - (at - (off_t)header_bytes) % (off_t)block_bytes;
    return ftruncate(fd, good) == 0 && lseek(fd, good, SEEK_SET) == good;
}

/* Is it something to be written in place: a device, a fifo, an open descriptor? */
static bool npuprof_os_in_place_(const char *path)
{
    struct stat st;
    return strncmp(path, "/dev/std", 8) == 0 || strncmp(path, "/dev/fd/", 8) == 0
        || (stat(path, &st) == 0 && !S_ISREG(st.st_mode));
}

/* A sink over a file descriptor, all bytes or an error. A closed pipe or a size limit is an error, not a
   signal to the program. */
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

/* When this process began, in ns since the Unix epoch, up to 10 ms too early; INT64_MAX: not known. */
static int64_t npuprof_os_process_start_ns_(void)
{
#if defined(__linux__) && defined(CLOCK_BOOTTIME)
    char text[1024];
    const int fd = npuprof_os_open_above_2_("/proc/self/stat", O_RDONLY);
    const ssize_t n = fd < 0 ? 0 : read(fd, text, sizeof text - 1);
    if (fd >= 0) close(fd);
    text[n > 0 ? n : 0] = 0;
    /* the program's name may hold anything; the 20th field behind it */
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

/* The first bytes of a regular file that was written since then; 0: there is none. */
static size_t npuprof_os_read_head_(const char *path, int64_t since_unix_ns, char *bytes, size_t room)
{
    struct stat st;
    const int fd = npuprof_os_open_above_2_(path, O_RDONLY | O_NOFOLLOW | O_NONBLOCK);
    if (fd < 0) return 0;
    ssize_t n = 0;
    /* File times step by some milliseconds. */
    if (fstat(fd, &st) == 0 && S_ISREG(st.st_mode) &&
        ((int64_t)st.st_mtim.tv_sec * 1000000000 + st.st_mtim.tv_nsec) >= since_unix_ns - 20000000)
        n = read(fd, bytes, room);
    close(fd);
    return n > 0 ? (size_t)n : 0;
}

static int npuprof_os_close_(int fd) { return close(fd) ? errno : 0; }
static void npuprof_os_remove_(const char *path) { unlink(path); }

/* Is it the file behind fd? */
static bool npuprof_os_is_at_(int fd, const char *path)
{
    struct stat ours, there;
    return fstat(fd, &ours) == 0 && lstat(path, &there) == 0 && ours.st_dev == there.st_dev
        && ours.st_ino == there.st_ino;
}

/* Removes a file that nobody has locked. */
static bool npuprof_os_remove_stale_(const char *path)
{
    const int fd = npuprof_os_open_above_2_(path, O_RDONLY | O_NOFOLLOW | O_NONBLOCK);
    if (fd < 0) return false;
    const bool removed = npuprof_os_lock_(fd) == 0 && npuprof_os_is_at_(fd, path) && unlink(path) == 0;
    close(fd);
    return removed;
}

/* A new file, locked until npuprof_os_publish_() or the end of the process: so the next one sees that it is
   in use, or left over. It gets the mode of what it will replace. EEXIST: another one is in use there. */
static int npuprof_os_create_temporary_(const char *path, const char *replaces, int *fd)
{
    struct stat st;
    int error = npuprof_os_create_(path, fd);
    if (error == EEXIST && npuprof_os_remove_stale_(path)) error = npuprof_os_create_(path, fd);
    if (error) return error;
    /* Another process may have taken it for left over before it was locked. */
    if (npuprof_os_lock_(*fd) == EWOULDBLOCK || !npuprof_os_is_at_(*fd, path)) {
        close(*fd);
        return EEXIST;
    }
    if (stat(replaces, &st) == 0 && S_ISREG(st.st_mode)) (void)fchmod(*fd, st.st_mode & 0777);
    return 0;
}

/* Closes a temporary file and gives it its name. Why a copy is closed first: that says what could not be
   written, and the lock stays. */
static int npuprof_os_publish_(int fd, const char *from, const char *to)
{
    const int copy = fcntl(fd, F_DUPFD_CLOEXEC, 3);
    int error = copy < 0 || close(copy) != 0 ? errno : 0;
    if (!error && rename(from, to) != 0) error = errno;
    close(fd);
    return error;
}

static int npuprof_os_make_directory_(const char *path)
{
    return mkdir(path, 0777) && errno != EEXIST ? errno : 0;
}

static void npuprof_os_local_time_(int64_t unix_ns, char *text, size_t room)
{
    const time_t seconds = (time_t)(unix_ns / 1000000000);
    struct tm tm;
    text[0] = 0;
    if (localtime_r(&seconds, &tm) && !strftime(text, room, "%Y-%m-%d_%H-%M-%S", &tm)) text[0] = 0;
}

static npuprof_result npuprof_os_result_(int error)
{
    switch (error) {
    case 0: return NPUPROF_OK;
    case ENOENT: case ENOTDIR: case ENXIO: case ENODEV: return NPUPROF_ERR_NOT_FOUND;
    case EACCES: case EPERM: case EROFS: case ELOOP: return NPUPROF_ERR_ACCESS;
    case ENOSPC: case EDQUOT: case EFBIG: return NPUPROF_ERR_NO_SPACE;
    default: return NPUPROF_ERR_IO;
    }
}
#endif /* !_WIN32 */
