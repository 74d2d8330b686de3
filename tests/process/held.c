/* test: - descriptors that npuprof holds, in programs that close all and get the number for a file of their
   own: no byte of it is written, cut off or closed. One within a write: simulated here
   SPDX-License-Identifier: MIT */
#include "life.h"
#include <fcntl.h>
#include <sys/syscall.h>

static ssize_t (*within)(int fd);      /* instead of the next write */

/* In the place of the C library's. */
ssize_t write(int fd, const void *bytes, size_t count)
{
    ssize_t (*const now)(int fd) = within;
    within = NULL;
    return now ? now(fd) : syscall(SYS_write, fd, bytes, count);
}

/* Closes all descriptors, as daemons do. Returns the first one that was open: npuprof's. */
static int close_all(void)
{
    int first = -1;
    for (int fd = 3; fd < 256; fd++)
        if (close(fd) == 0 && first < 0) first = fd;
    return first;
}

/* Writes a line to a new file, which has the number that npuprof had. */
static int open_own(const char *path, int number)
{
    const int fd = open(path, O_RDWR | O_CREAT | O_TRUNC, 0600);
    CHECK_INT(fd, number);
    CHECK_INT(write(fd, "precious\n", 9), 9);
    return fd;
}

/* The number is still that of the file, in which nothing but the lines of this program is. */
static void check_own(int fd, const char *path)
{
    CHECK_INT(write(fd, "more\n", 5), 5);
    char *const text = check_read_file(path, NULL);
    CHECK_STR(text, "precious\nmore\n");
    free(text);
    close(fd);
}

/* ---- The arena */

/* A daemon: the child of a fork, which moves to a file of its own at its first record. */
static void in_child(const void *user)
{
    const char *const log = check_path("log");
    const int fd = open_own(log, close_all());
    (void)user;
    { PROF_SCOPE("of the child"); }
    CHECK_UINT(stats_now().recorded, 1);
    check_own(fd, log);
}

static void mapped_arena(void)
{
    const life_path name = life_own_path("npuprof");
    npuprof_desc desc = { 0 };
    desc.arena_path = name.pattern;
    desc.arena_bytes = 65536;
    CHECK_INT(npuprof_init(&desc), NPUPROF_OK);
    npuprof_start(1);
    check_in_child(in_child, NULL);
    { PROF_SCOPE("of the parent"); }
    life_check_file(name.path, 1, 0);
    unlink(name.path);
}

/* ---- The stream */

static void begin_to_file(const char *pattern)
{
    static uint64_t arena[8192];
    npuprof_desc desc = { 0 };
    desc.arena = arena;
    desc.arena_bytes = sizeof arena;
    desc.when_full = NPUPROF_STREAM;
    desc.output_path = pattern;
    CHECK_INT(npuprof_init(&desc), NPUPROF_OK);
    npuprof_start(1);
    for (int i = 0; i < 10000; i++) { PROF_SCOPE("before"); }
}

/* The stream has failed for good, what was in the file before can be read, and the rest is counted. */
static void closed_stream(void)
{
    const life_path name = life_own_path("npuprof");
    const char *const path = check_path("own");
    begin_to_file(name.pattern);
    const int fd = open_own(path, close_all());
    for (int i = 0; i < 10000; i++) { PROF_SCOPE("behind"); }
    CHECK_INT(npuprof_flush(), NPUPROF_ERR_IO);
    const npuprof_stats s = life_account(20000, true);
    CHECK(s.lost > 9000 && s.lost == s.lost_by_cause[NPUPROF_LOST_SINK]);
    npuprof_damage damage;
    CHECK_INT(npuprof_load(name.path, &damage), NPUPROF_OK);
    CHECK(stats_now().recorded > 5000);
    npuprof_unload();
    check_own(fd, path);
    unlink(name.path);
}

static int own;

static ssize_t close_and_fail(int fd)
{
    CHECK_INT(close_all(), fd);
    own = open_own(check_path("own"), fd);
    errno = ENOSPC;
    return -1;
}

/* What was written of a block that failed is not taken back from the file that has the number now. */
static void closed_within_a_block(void)
{
    const life_path name = life_own_path("npuprof");
    begin_to_file(name.pattern);
    within = close_and_fail;
    CHECK_INT(npuprof_flush(), NPUPROF_ERR_NO_SPACE);
    check_own(own, check_path("own"));
    unlink(name.path);
}

/* The child of a fork begins a stream of its own. */
static void streams_on(const void *user)
{
    const char *const path = (const char *)user;
    char file[64];
    snprintf(file, sizeof file, "%d.npuprof", (int)getpid());
    for (int i = 0; i < 100; i++) { PROF_SCOPE("of the child"); }
    CHECK_INT(npuprof_flush(), NPUPROF_OK);
    life_check_file(check_path(file), 100, 0);
    unlink(check_path(file));
    check_own(own, path);
}

static void forked_stream(void)
{
    const life_path name = life_own_path("npuprof");
    const char *const path = check_path("own");
    begin_to_file(name.pattern);
    own = open_own(path, close_all());
    check_in_child(streams_on, path);
    unlink(name.path);
}

CHECK_MAIN(CASE(mapped_arena), CASE(closed_stream), CASE(closed_within_a_block), CASE(forked_stream))
