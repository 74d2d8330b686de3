#pragma once   /* SPDX-License-Identifier: MIT */
#include "../public/types.h"
#include "../numbers/text.h"
#include "../format/arena.h"
#include "posix_files.h"

#ifdef _WIN32
#include <direct.h>
#include <errno.h>
#include <fcntl.h>
#include <io.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <windows.h>

/* Windows: the functions of posix.h and posix_files.h, whose comments hold here, too. What differs is said at
   the function. There are no signals, no fork and no cancelling of threads; errors of files are errno values,
   as there.

   Data: npuprof_os_thread_key_ and npuprof_os_thread_ends_. npuprof_os_hook_() writes them when the library
   is set up, npuprof_os_unhook_() clears the key at exit; any thread reads them.

   This part may not know what is recorded. */

#define NPUPROF_THREAD_LOCAL_ NPUPROF_TLS_KEYWORD_

/* ---- Clocks */

static int64_t npuprof_os_monotonic_ns_(void)
{
    LARGE_INTEGER hz, now;
    QueryPerformanceFrequency(&hz);
    QueryPerformanceCounter(&now);
    return now.QuadPart / hz.QuadPart * 1000000000 + now.QuadPart % hz.QuadPart * 1000000000 / hz.QuadPart;
}

/* The system's time is in units of 100 ns since 1601. Windows has no boot clock that also counts the time
   asleep, so boot_ns is the monotonic time. */
static void npuprof_os_clocks_(npuprof_host_anchor_ *a)
{
    FILETIME time;
    const int64_t before = npuprof_os_monotonic_ns_();
    GetSystemTimeAsFileTime(&time);
    a->boot_ns = a->monotonic_ns;
    a->unix_ns = a->monotonic_ns + ((int64_t)((uint64_t)time.dwHighDateTime << 32 | time.dwLowDateTime)
                                    - 116444736000000000) * 100 - before;
}

/* clock: 0 CLOCK_REALTIME, 1 CLOCK_MONOTONIC. */
static bool npuprof_os_read_clock_(int clock, int64_t *ns)
{
    npuprof_host_anchor_ a;
    a.monotonic_ns = npuprof_os_monotonic_ns_();
    npuprof_os_clocks_(&a);
    *ns = clock ? a.monotonic_ns : a.unix_ns;
    return clock == 0 || clock == 1;
}

/* ---- Threads; signals and cancelling do nothing */

typedef int npuprof_os_signals_;

static uint32_t npuprof_os_pid_(void) { return (uint32_t)GetCurrentProcessId(); }
static int npuprof_os_hold_cancel_(void) { return 0; }
static void npuprof_os_release_cancel_(int before) { (void)before; }
static void npuprof_os_hold_signals_(npuprof_os_signals_ *before) { *before = 0; }
static void npuprof_os_release_signals_(const npuprof_os_signals_ *before) { (void)before; }
/* Why not Sleep(0): a thread of lower priority would not run. */
static void npuprof_os_nap_(uint32_t us) { Sleep((us + 999) / 1000); }
static void npuprof_os_yield_(void) { npuprof_os_nap_(20); }
static uint64_t npuprof_os_tid_(void) { return GetCurrentThreadId(); }
static uintptr_t npuprof_os_me_(void) { return GetCurrentThreadId(); }
static size_t npuprof_os_own_stack_(const void *frame) { return (void)frame, 0; }
NPUPROF_ATTRIBUTE_((unused)) static bool npuprof_os_usage_(uint64_t used[3]) { return (void)used, false; }
static bool npuprof_os_is_gone_(uint32_t tid) { return (void)tid, false; }

/* ---- Names and environment */

static void npuprof_os_names_(char *host, size_t host_bytes, char *program, size_t program_bytes)
{
    char path[512];
    DWORD bytes = (DWORD)host_bytes;
    if (!GetComputerNameA(host, &bytes)) host[0] = 0;
    path[GetModuleFileNameA(NULL, path, sizeof path - 1)] = 0;
    path[sizeof path - 1] = 0;
    const char *slash = strrchr(path, '\\');
    npuprof_text_copy_(program, program_bytes, slash ? slash + 1 : path);
}

static const char *npuprof_os_library_(void) { return NULL; }      /* it is not known */
static const char *npuprof_os_env_(const char *name) { return getenv(name); }
static char **npuprof_os_environment_(void) { return _environ; }

/* ---- What the system calls: at the end of a thread and at exit

   Why fiber storage: no other callback at a thread's end is open to a static library. */

static DWORD npuprof_os_thread_key_ = FLS_OUT_OF_INDEXES;
#if NPUPROF_THREAD_KEY
static DWORD npuprof_os_own_key_ = TLS_OUT_OF_INDEXES;     /* of a thread's one pointer. Not of a fiber */
#endif
static void (*npuprof_os_thread_ends_)(void *);

static void WINAPI npuprof_os_fiber_ends_(void *user)
{
    if (user) npuprof_os_thread_ends_(user);
}

static void npuprof_os_hook_(void (*thread_ends)(void *), void (*forks)(void), void (*forked)(void),
                             void (*exits)(void))
{
    (void)forks, (void)forked;
    npuprof_os_thread_ends_ = thread_ends;
    npuprof_os_thread_key_ = FlsAlloc(npuprof_os_fiber_ends_);
#if NPUPROF_THREAD_KEY
    npuprof_os_own_key_ = TlsAlloc();
#endif
    atexit(exits);
}

static void npuprof_os_unhook_(void)
{
    if (npuprof_os_thread_key_ != FLS_OUT_OF_INDEXES) FlsFree(npuprof_os_thread_key_);
    npuprof_os_thread_key_ = FLS_OUT_OF_INDEXES;
}

static bool npuprof_os_watch_thread_(void *user)
{
#if NPUPROF_THREAD_KEY
    if (npuprof_os_own_key_ == TLS_OUT_OF_INDEXES || !TlsSetValue(npuprof_os_own_key_, user)) return false;
    if ((uintptr_t)user & 1) user = NULL;
#endif
    return npuprof_os_thread_key_ != FLS_OUT_OF_INDEXES && FlsSetValue(npuprof_os_thread_key_, user);
}

#if NPUPROF_THREAD_KEY
/* Why the error is kept: TlsGetValue() sets the program's to 0. */
static inline void *npuprof_os_own_(void)
{
    if (npuprof_os_own_key_ == TLS_OUT_OF_INDEXES) return NULL;
    const DWORD error = GetLastError();
    void *const own = TlsGetValue(npuprof_os_own_key_);
    SetLastError(error);
    return own;
}
#endif

/* ---- Files */

/* GetLastError() as an errno value. */
static int npuprof_os_error_(void)
{
    switch (GetLastError()) {
    case ERROR_FILE_NOT_FOUND: case ERROR_PATH_NOT_FOUND: return ENOENT;
    case ERROR_ACCESS_DENIED: return EACCES;
    case ERROR_SHARING_VIOLATION: case ERROR_LOCK_VIOLATION: return EBUSY;
    case ERROR_ALREADY_EXISTS: case ERROR_FILE_EXISTS: return EEXIST;
    case ERROR_DISK_FULL: case ERROR_HANDLE_DISK_FULL: return ENOSPC;
    default: return EIO;
    }
}

/* fd, or a duplicate of it that is not 0, 1 or 2. Why: a program that closed one of those may still write to
   it. */
static int npuprof_os_apart_(int fd)
{
    if (fd < 0 || fd > 2) return fd;
    const int other = npuprof_os_apart_(_dup(fd)), error = errno;
    _close(fd);
    errno = error;
    return other;
}

static int npuprof_os_create_(const char *path, int *fd)
{
    *fd = npuprof_os_apart_(_open(path, _O_RDWR | _O_CREAT | _O_EXCL | _O_BINARY | _O_NOINHERIT,
                                  _S_IREAD | _S_IWRITE));
    return *fd < 0 ? errno : 0;
}

/* Why always the same: the C library ends a program that closes a number which is not open. So none closes
   all numbers there are. */
static uint64_t npuprof_os_file_(int fd) { return (void)fd, 1; }

static int npuprof_os_open_(const char *path, int *fd)
{
    const int number = strcmp(path, "/dev/stdout") == 0 ? 1 : strcmp(path, "/dev/stderr") == 0 ? 2 : -1;
    if (number > 0) {
        fflush(stdout);
        *fd = npuprof_os_apart_(_dup(number));
        if (*fd >= 0) _setmode(*fd, _O_BINARY);
    } else {
        *fd = npuprof_os_apart_(_open(path, _O_WRONLY | _O_BINARY | _O_NOINHERIT));
    }
    return *fd < 0 ? errno : 0;
}

static void *npuprof_os_memory_(size_t bytes)
{
    return VirtualAlloc(NULL, bytes, MEM_RESERVE | MEM_COMMIT, PAGE_READWRITE);
}

static void npuprof_os_unmap_(void *memory, size_t bytes)
{
    MEMORY_BASIC_INFORMATION info;
    (void)bytes;
    if (VirtualQuery(memory, &info, sizeof info) && info.Type == MEM_MAPPED) UnmapViewOfFile(memory);
    else VirtualFree(memory, 0, MEM_RELEASE);
}

static HANDLE npuprof_os_handle_(int fd) { return (HANDLE)_get_osfhandle(fd); }

/* Why the lock is on a byte far behind the end of the file: other processes cannot read a locked part. */
static int npuprof_os_lock_handle_(HANDLE file)
{
    OVERLAPPED at;
    memset(&at, 0, sizeof at);
    at.OffsetHigh = 0x40000000;
    return LockFileEx(file, LOCKFILE_EXCLUSIVE_LOCK | LOCKFILE_FAIL_IMMEDIATELY, 0, 1, 0, &at) ? 0 : EBUSY;
}

static int npuprof_os_lock_(int fd) { return npuprof_os_lock_handle_(npuprof_os_handle_(fd)); }

static int npuprof_os_map_arena_(int fd, size_t bytes, void **memory)
{
    HANDLE mapping = CreateFileMappingA(npuprof_os_handle_(fd), NULL, PAGE_READWRITE,
                                        (DWORD)((uint64_t)bytes >> 32), (DWORD)bytes, NULL);
    if (!mapping) return npuprof_os_error_();
    *memory = MapViewOfFile(mapping, FILE_MAP_ALL_ACCESS, 0, 0, bytes);
    const int error = *memory ? npuprof_os_lock_(fd) : npuprof_os_error_();
    CloseHandle(mapping);
    return error;
}

static int npuprof_os_move_aside_(const char *path, const char *aside)
{
    const DWORD attributes = GetFileAttributesA(path);
    if (attributes == INVALID_FILE_ATTRIBUTES) return npuprof_os_error_() == ENOENT ? 0 : npuprof_os_error_();
    if (attributes & FILE_ATTRIBUTE_REPARSE_POINT) return ELOOP;
    if (attributes & FILE_ATTRIBUTE_DIRECTORY) return EINVAL;
    HANDLE file = CreateFileA(path, GENERIC_READ, FILE_SHARE_READ | FILE_SHARE_WRITE | FILE_SHARE_DELETE,
                              NULL, OPEN_EXISTING, 0, NULL);
    const bool busy = file != INVALID_HANDLE_VALUE && npuprof_os_lock_handle_(file) != 0;
    if (file != INVALID_HANDLE_VALUE) CloseHandle(file);
    if (busy) return EBUSY;
    return MoveFileExA(path, aside, 0) ? 0 : npuprof_os_error_();
}

static void npuprof_os_discard_(int fd, const char *path)
{
    _close(fd);
    DeleteFileA(path);
}

static bool npuprof_os_take_back_(int fd, uint64_t good)
{
    return _lseeki64(fd, (int64_t)good, SEEK_SET) == (int64_t)good && SetEndOfFile(npuprof_os_handle_(fd));
}

static bool npuprof_os_in_place_(const char *path)
{
    return strncmp(path, "/dev/std", 8) == 0 || _stricmp(path, "NUL") == 0 || _stricmp(path, "CON") == 0
        || strncmp(path, "\\\\.\\", 4) == 0;
}

static int npuprof_os_write_(void *fd, const void *bytes, size_t count)
{
    const char *p = (const char *)bytes;
    while (count) {
        const int n = _write(*(const int *)fd, p, count < 1 << 20 ? (unsigned)count : 1u << 20);
        if (n <= 0) return n < 0 ? errno : ENOSPC;
        p += n;
        count -= (size_t)n;
    }
    return 0;
}

#define NPUPROF_OS_FILE_STEP_NS_ 1000000000         /* of the clock of file times, in whole seconds */

static size_t npuprof_os_read_head_(const char *path, int64_t since_unix_ns, char *bytes, size_t room)
{
    struct _stat64 st;
    const int fd = npuprof_os_apart_(_open(path, _O_RDONLY | _O_BINARY | _O_NOINHERIT));
    if (fd < 0) return 0;
    int n = 0;
    if (_fstat64(fd, &st) == 0 && (st.st_mode & _S_IFREG) &&
        st.st_mtime * 1000000000 >= since_unix_ns - NPUPROF_OS_FILE_STEP_NS_)
        n = _read(fd, bytes, (unsigned)room);
    _close(fd);
    return n > 0 ? (size_t)n : 0;
}

static int64_t npuprof_os_process_start_ns_(void) { return INT64_MAX; }
static int npuprof_os_close_(int fd) { return _close(fd) ? errno : 0; }
static void npuprof_os_remove_(const char *path) { DeleteFileA(path); }

static void npuprof_os_take_mode_(int fd, const char *replaces) { (void)fd, (void)replaces; }

/* Why no lock: Windows removes no file that is open. */
static int npuprof_os_create_temporary_(const char *path, const char *replaces, int *fd)
{
    (void)replaces;
    const int error = npuprof_os_create_(path, fd);
    return error == EEXIST && DeleteFileA(path) ? npuprof_os_create_(path, fd) : error;
}

/* Why none: Windows has no lock of a folder. */
static int npuprof_os_lock_folder_(const char *path) { (void)path; return -1; }

static int npuprof_os_publish_(int fd, const char *from, const char *to)
{
    if (_close(fd)) return errno;
    return MoveFileExA(from, to, MOVEFILE_REPLACE_EXISTING | MOVEFILE_WRITE_THROUGH) ? 0
        : npuprof_os_error_();
}

static int npuprof_os_make_directory_(const char *path)
{
    return _mkdir(path) && errno != EEXIST ? errno : 0;
}

static void npuprof_os_local_time_(int64_t unix_ns, char *text, size_t room)
{
    const time_t seconds = (time_t)(unix_ns / 1000000000);
    struct tm tm;
    text[0] = 0;
    if (localtime_s(&tm, &seconds) == 0 && !strftime(text, room, "%Y-%m-%d_%H-%M-%S", &tm)) text[0] = 0;
}

/* ---- Commands from outside: there are none (posix_control.h) */

typedef struct npuprof_os_seen_ { bool unused; } npuprof_os_seen_;

static bool npuprof_os_has_commands_(void) { return false; }

/* 0: this system has no signals for it. */
static int npuprof_os_signal_number_(const char *name, size_t length)
{
    (void)name;
    (void)length;
    return 0;
}

static int npuprof_os_take_signal_(int number, void (*handler)(int))
{
    (void)number;
    (void)handler;
    return ENOSYS;
}

static void npuprof_os_leave_signal_(int number, void (*handler)(int))
{
    (void)number;
    (void)handler;
}

static int npuprof_os_read_commands_(const char *path, npuprof_os_seen_ *seen, char *text, size_t room,
                                     size_t *bytes)
{
    (void)path;
    (void)seen;
    (void)text;
    (void)room;
    *bytes = 0;
    return EAGAIN;
}
#endif /* _WIN32 */
