/* A library that records in whatever program loads it: it stands before some functions of the C library, and
   makes a span of each call. For LD_PRELOAD; test_no_harm.py compares the programs with and without it.
   SPDX-License-Identifier: MIT */
#define NPUPROF_IMPLEMENTATION
#define NPUPROF_STATIC
#include "npuprof.h"

#include <dlfcn.h>
#include <stdlib.h>
#include <unistd.h>

#define NEXT(result, name, ...)                                           \
    static result (*next)(__VA_ARGS__);                                   \
    if (!next) *(void **)(void *)&next = dlsym(RTLD_NEXT, name)

ssize_t write(int fd, const void *bytes, size_t count)
{
    NEXT(ssize_t, "write", int, const void *, size_t);
    PROF_SCOPE_ARGS("libc", "write", PROF_ARGS(PROF_INT("fd", fd), PROF_UINT("bytes", count)));
    return next(fd, bytes, count);
}

ssize_t read(int fd, void *bytes, size_t count)
{
    NEXT(ssize_t, "read", int, void *, size_t);
    PROF_SCOPE("read");
    return next(fd, bytes, count);
}

int close(int fd)
{
    NEXT(int, "close", int);
    PROF_SCOPE("close");
    return next(fd);
}

char *getenv(const char *name)
{
    NEXT(char *, "getenv", const char *);
    PROF_INSTANT("libc", "getenv", PROF_NO_ARGS);
    return next(name);
}

void *memalign(size_t align, size_t bytes)
{
    NEXT(void *, "memalign", size_t, size_t);
    PROF_SCOPE("memalign");
    return next(align, bytes);
}
