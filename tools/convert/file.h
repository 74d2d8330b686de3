#pragma once   /* SPDX-License-Identifier: MIT */
#include "api.h"

/* Files that are read: the only calls of the system in this folder, once for POSIX and once for Windows. What
   is read lies in memory that npuprof_load_free_() gives back. */

/* Bytes of memory that are taken for so many. Why no part of a large page: Linux then gives large ones alone,
   and the faults for small ones take longer than reading what comes there. */
static size_t npuprof_load_room_(size_t bytes)
{
    const size_t unit = bytes < ((size_t)1 << 20) ? (size_t)1 << 16 : (size_t)1 << 21;
    return bytes > SIZE_MAX - unit ? bytes : (bytes + unit - 1) / unit * unit;
}

/* Memory of npuprof_load_room_(bytes), or NULL. */
static void *npuprof_load_memory_(size_t bytes)
{
    void *const memory = npuprof_os_memory_(npuprof_load_room_(bytes));
#ifdef MADV_HUGEPAGE
    if (memory) (void)madvise(memory, npuprof_load_room_(bytes), MADV_HUGEPAGE);
#endif
    return memory;
}

/* Gives back memory that was taken for so many bytes. */
static void npuprof_load_free_(void *memory, size_t bytes)
{
    if (memory) npuprof_os_unmap_(memory, npuprof_load_room_(bytes));
}

#ifndef _WIN32
/* Reads a whole regular file into memory of our own. *memory NULL: it is empty. Returns 0 or an errno value.
   Why not mapped: when a mapped file is cut off, the next access is a SIGBUS. */
static int npuprof_load_read_file_(const char *path, void **memory, size_t *bytes)
{
    struct stat st;
    size_t size = 0, got = 0;
    int error = 0;
    const int fd = npuprof_os_open_above_2_(path, O_RDONLY | O_NOCTTY | O_NONBLOCK);
    *memory = NULL;
    *bytes = 0;
    if (fd < 0) return errno;
    if (fstat(fd, &st) != 0) error = errno;
    else if (!S_ISREG(st.st_mode)) error = EINVAL;
    else if ((uint64_t)st.st_size > SIZE_MAX / 2) error = EFBIG;
    else size = (size_t)st.st_size;
    if (size && (*memory = npuprof_load_memory_(size)) == NULL) error = ENOMEM;
    while (!error && got < size) {
        const ssize_t n = read(fd, (uint8_t *)*memory + got, size - got);
        if (n < 0 && errno != EINTR) error = errno;
        if (n == 0) break;
        got += n > 0 ? (size_t)n : 0;
    }
    close(fd);
    if (*memory && (error || got < size)) {
        /* It was cut off meanwhile: what is too much goes back at once. */
        const size_t keep = error || !got ? 0 : npuprof_load_room_(got), all = npuprof_load_room_(size);
        if (keep < all) npuprof_os_unmap_((uint8_t *)*memory + keep, all - keep);
        if (!keep) *memory = NULL;
    }
    *bytes = *memory ? got : 0;
    return error;
}

/* Maps a file for reading. in_use: only one that a running process has locked, as its arena or its stream.
   *memory NULL: it is not such a file. Returns 0 or an errno value. */
static int npuprof_load_map_file_(const char *path, bool in_use, void **memory, size_t *bytes)
{
    struct stat st;
    void *at = MAP_FAILED;
    int error = 0;
    const int fd = npuprof_os_open_above_2_(path, O_RDONLY | O_NOCTTY | O_NONBLOCK);
    *memory = NULL;
    if (fd < 0) return errno;
    const bool is_file = fstat(fd, &st) == 0 && S_ISREG(st.st_mode) && st.st_size > 0;
    if (is_file && (uint64_t)st.st_size <= SIZE_MAX / 2 && (!in_use || npuprof_os_is_locked_(fd))) {
        *bytes = (size_t)st.st_size;
        at = mmap(NULL, *bytes, PROT_READ, MAP_SHARED, fd, 0);
        error = at == MAP_FAILED ? errno : 0;
    }
    close(fd);
    if (at != MAP_FAILED) *memory = at;
    return error;
}

#else /* _WIN32 */
static int npuprof_load_map_file_(const char *path, bool in_use, void **memory, size_t *bytes)
{
    /* Such a file is read as any other. */
    (void)path;
    (void)in_use;
    (void)bytes;
    *memory = NULL;
    return 0;
}

static int npuprof_load_read_file_(const char *path, void **memory, size_t *bytes)
{
    LARGE_INTEGER size;
    int error = 0;
    *memory = NULL;
    *bytes = 0;
    HANDLE file = CreateFileA(path, GENERIC_READ, FILE_SHARE_READ | FILE_SHARE_WRITE | FILE_SHARE_DELETE,
                              NULL,
                              OPEN_EXISTING, 0, NULL);
    if (file == INVALID_HANDLE_VALUE) return npuprof_os_error_();
    if (!GetFileSizeEx(file, &size)) error = npuprof_os_error_();
    else if ((uint64_t)size.QuadPart > SIZE_MAX / 2) error = EFBIG;
    else *bytes = (size_t)size.QuadPart;
    if (*bytes) {
        HANDLE mapping = CreateFileMappingA(file, NULL, PAGE_WRITECOPY, 0, 0, NULL);
        if (mapping) *memory = MapViewOfFile(mapping, FILE_MAP_COPY, 0, 0, 0);
        if (!*memory) {
            error = npuprof_os_error_();
            *bytes = 0;
        }
        if (mapping) CloseHandle(mapping);
    }
    CloseHandle(file);
    return error;
}
#endif /* _WIN32 */
