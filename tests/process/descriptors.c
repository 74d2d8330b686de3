/* test: - files of npuprof while the program has closed 0, 1 or 2, and another thread puts a file there:
   simulated by what this file does in open() and fcntl()
   SPDX-License-Identifier: MIT */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static int theirs = -1, number = -1;   /* a file that comes to that number */
static int times;                      /* so often */
static enum { AT_OPEN = 1, AT_COPY = 2, CLOSED = 4 } moment;

static void another_thread(int now)
{
    const int error = errno;
    if ((int)moment & now && times-- > 0) {
        (void)dup2(theirs, number);
        if (moment & CLOSED) close(number);
    }
    errno = error;
}

static int hooked_open(const char *path, int flags, int mode)
{
    const int fd = open(path, flags, mode);
    if (fd >= 0 && fd <= 2) another_thread(AT_OPEN);
    return fd;
}

static int hooked_fcntl(int fd, int what, int least)
{
    const int copy = fcntl(fd, what, least);
    if (what == F_DUPFD_CLOEXEC) another_thread(AT_COPY);
    return copy;
}

#define open(path, ...) hooked_open(path, HOOKED_MODE(__VA_ARGS__, 0, 0))
#define HOOKED_MODE(flags, mode, ...) flags, mode
#define fcntl(fd, ...) hooked_fcntl(fd, HOOKED_MODE(__VA_ARGS__, 0, 0))
#include "check.h"
#define NPUPROF_IMPLEMENTATION
#define NPUPROF_ARENA_BYTES 65536
#include "npuprof.h"
#undef open
#undef fcntl

typedef struct turn { int number, moment; } turn;
static void one_turn(const void *user)
{
    const turn *const t = (const turn *)user;
    struct stat a, b;
    char path[80], text[8] = "";
    snprintf(path, sizeof path, "/tmp/npuprof-%d.npuprof", (int)getpid());
    npuprof_start(1);
    { PROF_SCOPE("one"); }
    theirs = open("/dev/null", O_WRONLY);
    number = t->number;
    times = 3;
    moment = (__typeof__(moment))t->moment;
    const int before = dup(number);
    close(number);
    const npuprof_result r = npuprof_dump(path);
    const bool kept = fstat(number, &a) == 0;
    const bool is_theirs = kept && fstat(theirs, &b) == 0 && a.st_rdev == b.st_rdev;
    (void)dup2(before, number);        /* what follows prints */
    CHECK_INT(r, NPUPROF_OK);
    if (check_failures_) printf("  (descriptor %d, moment %d, %s)\n", t->number, t->moment, strerror(errno));
    if (t->moment && !(t->moment & CLOSED)) CHECK(is_theirs);
    else CHECK(!kept);
    const int fd = open(path, O_RDONLY);
    CHECK(read(fd, text, 7) == 7 && !strcmp(text, "NPUPROF"));
    unlink(path);
}

static void low_numbers(void)
{
    for (int n = 0; n < 3; n++)
        for (int when = 0; when < 8; when++) {
            const turn t = { n, when };
            if (when != CLOSED) check_in_child(one_turn, &t);
        }
}

CHECK_MAIN(CASE(low_numbers))
