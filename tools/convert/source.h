#pragma once   /* SPDX-License-Identifier: MIT */
#include "api.h"

/* Where bytes come from while a target sends: a serial device, a pipe, a pty, a file that grows, or the
   standard input. A thread of its own reads them into memory of fixed size.
   Why a thread: a terminal's buffer is full after a third of a second at 115,200 baud, and to write a trace
   takes longer. When the memory is full the thread waits, and a pipe or a file loses nothing by that.
   Data: npuprof_follow_source_, one for the process. `put` and `taken` change under its lock; bytes between
   them are the reader's, all others the thread's. */

#ifndef _WIN32
#include <poll.h>
#include <signal.h>
#include <termios.h>

enum { NPUPROF_FOLLOW_ROOM_ = 16 * 1024 * 1024, NPUPROF_FOLLOW_TICK_MS_ = 100 };

static struct {
    int fd;
    bool is_terminal, is_file;
    struct termios before;         /* of a terminal: its mode as it was */
    pthread_t thread;
    pthread_mutex_t lock;
    pthread_cond_t changed;
    uint8_t *room;
    uint64_t put, taken;           /* bytes so far */
    bool stop, ended;              /* the thread is to end; it has */
    bool dry, was_dry;             /* it last found no bytes; so it was when some were last asked for */
    int error;                     /* why it ended; 0: the other end closed */
} npuprof_follow_source_;

/* The system's name of a baud rate. False: it has none. */
static bool npuprof_follow_baud_(unsigned long baud, speed_t *speed)
{
    static const struct { unsigned long baud; speed_t speed; } rates[] = {
        { 9600, B9600 }, { 19200, B19200 }, { 38400, B38400 }, { 57600, B57600 }, { 115200, B115200 },
        { 230400, B230400 },
#ifdef B460800
        { 460800, B460800 }, { 921600, B921600 },
#endif
#ifdef B1000000
        { 1000000, B1000000 }, { 1500000, B1500000 }, { 2000000, B2000000 }, { 3000000, B3000000 },
        { 4000000, B4000000 },
#endif
    };
    for (size_t i = 0; i < sizeof rates / sizeof *rates; i++)
        if (rates[i].baud == baud) *speed = rates[i].speed;
    for (size_t i = 0; i < sizeof rates / sizeof *rates; i++)
        if (rates[i].baud == baud) return true;
    return false;
}

/* Sets a terminal to raw bytes at that rate. Returns 0 or an errno value. */
static int npuprof_follow_set_raw_(int fd, speed_t speed)
{
    struct termios t;
    if (tcgetattr(fd, &t) != 0) return errno;
    npuprof_follow_source_.before = t;
    t.c_iflag &= ~(tcflag_t)(IGNBRK | BRKINT | PARMRK | ISTRIP | INLCR | IGNCR | ICRNL | IXON | IXOFF);
    t.c_oflag &= ~(tcflag_t)OPOST;
    t.c_lflag &= ~(tcflag_t)(ECHO | ECHONL | ICANON | ISIG | IEXTEN);
    t.c_cflag &= ~(tcflag_t)(CSIZE | PARENB | CSTOPB);
    t.c_cflag |= CS8 | CREAD | CLOCAL;
    t.c_cc[VMIN] = 1;
    t.c_cc[VTIME] = 0;
    if (cfsetispeed(&t, speed) != 0 || cfsetospeed(&t, speed) != 0) return errno;
    return tcsetattr(fd, TCSANOW, &t) == 0 ? 0 : errno;
}

/* Waits for bytes and reads some. Returns how many; 0: none yet; -1: no more will come, *error says why. */
static ssize_t npuprof_follow_read_some_(uint8_t *to, size_t room, int *error)
{
    const bool is_file = npuprof_follow_source_.is_file;
    struct pollfd p = { npuprof_follow_source_.fd, POLLIN, 0 };
    if (!is_file && poll(&p, 1, NPUPROF_FOLLOW_TICK_MS_) <= 0) return 0;
    const ssize_t n = read(npuprof_follow_source_.fd, to, room);
    if (n > 0) return n;
    if (n == 0 && is_file) {
        (void)poll(NULL, 0, NPUPROF_FOLLOW_TICK_MS_);
        return 0;
    }
    if (n < 0 && (errno == EINTR || errno == EAGAIN)) return 0;
    *error = n < 0 ? errno : 0;
    return -1;
}

static void *npuprof_follow_thread_(void *unused)
{
    (void)unused;
    for (bool ended = false; !ended;) {
        pthread_mutex_lock(&npuprof_follow_source_.lock);
        while (npuprof_follow_source_.put - npuprof_follow_source_.taken == NPUPROF_FOLLOW_ROOM_ &&
               !npuprof_follow_source_.stop)
            pthread_cond_wait(&npuprof_follow_source_.changed, &npuprof_follow_source_.lock);
        const size_t used = (size_t)(npuprof_follow_source_.put - npuprof_follow_source_.taken);
        const size_t at = (size_t)(npuprof_follow_source_.put % NPUPROF_FOLLOW_ROOM_);
        ended = npuprof_follow_source_.stop;
        pthread_mutex_unlock(&npuprof_follow_source_.lock);
        const uint64_t room = npuprof_min_(NPUPROF_FOLLOW_ROOM_ - at, NPUPROF_FOLLOW_ROOM_ - used);
        int error = 0;
        ssize_t n = -1;
        if (!ended) n = npuprof_follow_read_some_(npuprof_follow_source_.room + at, (size_t)room, &error);
        pthread_mutex_lock(&npuprof_follow_source_.lock);
        npuprof_follow_source_.put += n > 0 ? (uint64_t)n : 0;
        npuprof_follow_source_.dry = n <= 0;
        npuprof_follow_source_.ended = ended = n < 0;
        npuprof_follow_source_.error = error;
        pthread_cond_signal(&npuprof_follow_source_.changed);
        pthread_mutex_unlock(&npuprof_follow_source_.lock);
    }
    return NULL;
}

/* Takes up to `room` bytes that were read, after waiting up to 100 ms for some. Returns how many; 0: none;
   -1: no more will come. */
static ssize_t npuprof_follow_take_(uint8_t *to, size_t room)
{
    struct timespec until;
    clock_gettime(CLOCK_REALTIME, &until);
    until.tv_nsec += NPUPROF_FOLLOW_TICK_MS_ * 1000000L;
    until.tv_sec += until.tv_nsec / 1000000000;
    until.tv_nsec %= 1000000000;
    pthread_mutex_lock(&npuprof_follow_source_.lock);
    if (npuprof_follow_source_.put == npuprof_follow_source_.taken && !npuprof_follow_source_.ended)
        (void)pthread_cond_timedwait(&npuprof_follow_source_.changed, &npuprof_follow_source_.lock, &until);
    const size_t at = (size_t)(npuprof_follow_source_.taken % NPUPROF_FOLLOW_ROOM_);
    uint64_t n = npuprof_min_(npuprof_follow_source_.put - npuprof_follow_source_.taken, room);
    n = npuprof_min_(n, NPUPROF_FOLLOW_ROOM_ - at);
    memcpy(to, npuprof_follow_source_.room + at, (size_t)n);
    npuprof_follow_source_.taken += n;
    const bool ended = npuprof_follow_source_.ended && !n;
    npuprof_follow_source_.was_dry = npuprof_follow_source_.dry && !n;
    pthread_cond_signal(&npuprof_follow_source_.changed);
    pthread_mutex_unlock(&npuprof_follow_source_.lock);
    return ended ? -1 : (ssize_t)n;
}

/* Opens the source and begins to read. "-" is the standard input. NULL, or what is wrong in words. */
static const char *npuprof_follow_open_(const char *path, unsigned long baud)
{
    struct stat st;
    sigset_t all, before;
    speed_t speed = B115200;
    const bool is_stdin = strcmp(path, "-") == 0;
    if (!npuprof_follow_baud_(baud, &speed)) return "is no baud rate of this system, such as 115200";
    const bool is_pipe = !is_stdin && stat(path, &st) == 0 && S_ISFIFO(st.st_mode);
    const int fd = is_stdin ? 0 : open(path, O_RDONLY | O_NOCTTY | O_CLOEXEC | (is_pipe ? 0 : O_NONBLOCK));
    if (fd < 0 || fstat(fd, &st) != 0) return strerror(errno);
    if (S_ISDIR(st.st_mode)) return "is a folder, no device, pipe or file";
    npuprof_follow_source_.fd = fd;
    npuprof_follow_source_.is_file = S_ISREG(st.st_mode);
    npuprof_follow_source_.is_terminal = !is_stdin && isatty(fd);
    const int error = npuprof_follow_source_.is_terminal ? npuprof_follow_set_raw_(fd, speed) : 0;
    if (error) return strerror(error);
    npuprof_follow_source_.room = (uint8_t *)npuprof_os_memory_(NPUPROF_FOLLOW_ROOM_);
    if (!npuprof_follow_source_.room) return "no memory";
    pthread_mutex_init(&npuprof_follow_source_.lock, NULL);
    pthread_cond_init(&npuprof_follow_source_.changed, NULL);
    /* Why masked: a signal interrupts the thread that writes, not the one that reads. */
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    const int failed = pthread_create(&npuprof_follow_source_.thread, NULL, npuprof_follow_thread_, NULL);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    return failed ? strerror(failed) : NULL;
}

/* Ends the reading, and gives a terminal its mode back. What was read can still be taken. */
static void npuprof_follow_close_(void)
{
    pthread_mutex_lock(&npuprof_follow_source_.lock);
    npuprof_follow_source_.stop = true;
    pthread_cond_signal(&npuprof_follow_source_.changed);
    pthread_mutex_unlock(&npuprof_follow_source_.lock);
    pthread_join(npuprof_follow_source_.thread, NULL);
    if (npuprof_follow_source_.is_terminal)
        (void)tcsetattr(npuprof_follow_source_.fd, TCSANOW, &npuprof_follow_source_.before);
}

#endif /* !_WIN32 */
