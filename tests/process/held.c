/* test: - descriptors that npuprof holds, in programs that close all and get the number for a file of their
   own: no byte of it is written, cut off or closed
   SPDX-License-Identifier: MIT */
#include "life.h"
#include <fcntl.h>

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

CHECK_MAIN(CASE(mapped_arena))
