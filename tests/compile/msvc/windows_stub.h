/* windows_stub.h - as much of Microsoft's C library and of windows.h as npuprof.h calls: for the front end
   only. Every system header that the test makes includes it.
   SPDX-License-Identifier: MIT */
#ifndef WINDOWS_STUB_H
#define WINDOWS_STUB_H
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#ifdef __cplusplus
namespace std {
template <class T> class initializer_list {
    const T *first;
    size_t count;
public:
    const T *begin() const { return first; }

    size_t size() const { return count; }
};
}
extern "C" {
#endif
/* The values are of no interest. */
enum {
    EACCES = 1, EBUSY = 2, EEXIST = 3, EFBIG = 4, EINVAL = 5, EIO = 6, ELOOP = 7, ENODEV = 8, ENOENT = 9,
        ENOSPC = 10,
    ENOTDIR = 11, ENXIO = 12, EPERM = 13, EROFS = 14, EINTR = 15, EAGAIN = 16, ENOMEM = 17, EBADF = 18,
    EPIPE = 19, ENOSYS = 20,
    EISDIR = 21, ENAMETOOLONG = 22, EOVERFLOW = 23,
    _O_RDONLY, _O_WRONLY, _O_RDWR, _O_BINARY, _O_NOINHERIT, _O_CREAT, _O_EXCL, _O_TRUNC, _S_IREAD, _S_IWRITE,
    _S_IFREG, _S_IFMT,
    _S_IFDIR, SEEK_SET, SEEK_CUR, SEEK_END, FLS_OUT_OF_INDEXES, GENERIC_READ, GENERIC_WRITE, FILE_SHARE_READ,
    FILE_SHARE_WRITE,
    FILE_SHARE_DELETE, OPEN_EXISTING, OPEN_ALWAYS, CREATE_NEW, CREATE_ALWAYS, FILE_ATTRIBUTE_NORMAL,
    FILE_ATTRIBUTE_DIRECTORY,
    FILE_ATTRIBUTE_REPARSE_POINT, INVALID_FILE_ATTRIBUTES, PAGE_READONLY, PAGE_READWRITE, PAGE_WRITECOPY,
    FILE_MAP_READ,
    FILE_MAP_COPY, FILE_MAP_ALL_ACCESS, MEM_COMMIT, MEM_RESERVE, MEM_RELEASE, MEM_MAPPED,
    MOVEFILE_REPLACE_EXISTING,
    MOVEFILE_WRITE_THROUGH, LOCKFILE_EXCLUSIVE_LOCK, LOCKFILE_FAIL_IMMEDIATELY, ERROR_FILE_NOT_FOUND,
    ERROR_PATH_NOT_FOUND,
    ERROR_ACCESS_DENIED, ERROR_SHARING_VIOLATION, ERROR_LOCK_VIOLATION, ERROR_DISK_FULL,
    ERROR_HANDLE_DISK_FULL,
    ERROR_FILE_EXISTS, ERROR_ALREADY_EXISTS, ERROR_BUSY, ERROR_PRIVILEGE_NOT_HELD, ERROR_DIRECTORY,
    ERROR_INVALID_NAME,
    ERROR_WRITE_PROTECT
};
typedef struct FILE FILE;
extern FILE *stderr, *stdout;
extern int errno;
int fprintf(FILE *file, const char *format, ...);
int snprintf(char *to, size_t count, const char *format, ...);
int vsnprintf(char *to, size_t count, const char *format, __builtin_va_list list);
extern char **_environ;
int fputs(const char *text, FILE *file);
int fputc(int c, FILE *file);
size_t fwrite(const void *bytes, size_t size, size_t count, FILE *file);
int fflush(FILE *file);
int ferror(FILE *file);
void *memset(void *to, int c, size_t count);
void *memcpy(void *to, const void *from, size_t count);
void *memmove(void *to, const void *from, size_t count);
int memcmp(const void *a, const void *b, size_t count);
const void *memchr(const void *at, int c, size_t count);
size_t strlen(const char *text);
int strcmp(const char *a, const char *b);
int strncmp(const char *a, const char *b, size_t count);
char *strchr(const char *text, int c);
char *strrchr(const char *text, int c);
char *strstr(const char *text, const char *word);
size_t strspn(const char *text, const char *set);
size_t strcspn(const char *text, const char *set);
char *strerror(int error);
int _stricmp(const char *a, const char *b);
double strtod(const char *text, char **end);
long strtol(const char *text, char **end, int base);
unsigned long long strtoull(const char *text, char **end, int base);
char *getenv(const char *name);
int atexit(void (*f)(void));
#define time_t long long
struct tm { int tm_sec, tm_min, tm_hour, tm_mday, tm_mon, tm_year; };
time_t time(time_t *t);
size_t strftime(char *to, size_t count, const char *format, const struct tm *tm);
int localtime_s(struct tm *to, const time_t *t);
struct _stat64 { unsigned short st_mode; long long st_size; time_t st_mtime; };
int _stat64(const char *path, struct _stat64 *s);
int _fstat64(int fd, struct _stat64 *s);
int _open(const char *path, int flags, ...);
int _close(int fd);
int _read(int fd, void *to, unsigned count);
int _write(int fd, const void *from, unsigned count);
long long _lseeki64(int fd, long long to, int from);
int _chsize_s(int fd, long long size);
int _dup(int fd);
int _mkdir(const char *path);
int _setmode(int fd, int mode);
intptr_t _get_osfhandle(int fd);

long _InterlockedExchangeAdd(volatile long *p, long v);
long long _InterlockedExchangeAdd64(volatile long long *p, long long v);
char _InterlockedCompareExchange8(volatile char *p, char v, char was);
long _InterlockedCompareExchange(volatile long *p, long v, long was);
long long _InterlockedCompareExchange64(volatile long long *p, long long v, long long was);
long _InterlockedOr(volatile long *p, long v);
void _ReadWriteBarrier(void);

typedef void *HANDLE;
typedef unsigned long DWORD;
typedef int BOOL;
typedef union { struct { DWORD LowPart; long HighPart; } u; long long QuadPart; } LARGE_INTEGER;
typedef struct { DWORD dwLowDateTime, dwHighDateTime; } FILETIME;
typedef struct { uintptr_t Internal, InternalHigh; DWORD Offset, OffsetHigh; HANDLE hEvent; } OVERLAPPED;
typedef struct {
    void *BaseAddress, *AllocationBase;
    DWORD AllocationProtect;
    size_t RegionSize;
    DWORD State, Protect, Type;
} MEMORY_BASIC_INFORMATION;
typedef struct { DWORD dwPageSize; } SYSTEM_INFO;
#define WINAPI
#define CALLBACK
#define INVALID_HANDLE_VALUE ((HANDLE)(intptr_t)-1)
#define TRUE 1
#define FALSE 0
HANDLE CreateFileA(const char *path, DWORD access, DWORD share, void *security, DWORD how, DWORD flags,
                   HANDLE like);
HANDLE CreateFileMappingA(HANDLE file, void *security, DWORD protect, DWORD high, DWORD low,
                          const char *name);
void *MapViewOfFile(HANDLE mapping, DWORD access, DWORD high, DWORD low, size_t bytes);
BOOL UnmapViewOfFile(const void *at);
BOOL FlushViewOfFile(const void *at, size_t bytes);
BOOL CloseHandle(HANDLE h);
BOOL DeleteFileA(const char *path);
BOOL MoveFileExA(const char *from, const char *to, DWORD flags);
DWORD GetFileAttributesA(const char *path);
BOOL GetFileSizeEx(HANDLE h, LARGE_INTEGER *size);
BOOL LockFileEx(HANDLE h, DWORD flags, DWORD zero, DWORD low, DWORD high, OVERLAPPED *at);
BOOL UnlockFileEx(HANDLE h, DWORD zero, DWORD low, DWORD high, OVERLAPPED *at);
DWORD GetLastError(void);
DWORD GetCurrentThreadId(void);
DWORD GetCurrentProcessId(void);
DWORD GetModuleFileNameA(void *module, char *to, DWORD count);
BOOL GetComputerNameA(char *to, DWORD *count);
BOOL QueryPerformanceCounter(LARGE_INTEGER *to);
BOOL QueryPerformanceFrequency(LARGE_INTEGER *to);
void GetSystemTimeAsFileTime(FILETIME *to);
void GetSystemTimePreciseAsFileTime(FILETIME *to);
void *VirtualAlloc(void *at, size_t bytes, DWORD how, DWORD protect);
BOOL VirtualFree(void *at, size_t bytes, DWORD how);
size_t VirtualQuery(const void *at, MEMORY_BASIC_INFORMATION *to, size_t bytes);
DWORD FlsAlloc(void (*f)(void *));
BOOL FlsSetValue(DWORD index, void *value);
BOOL FlsFree(DWORD index);
BOOL SetEndOfFile(HANDLE h);
BOOL SwitchToThread(void);
void Sleep(DWORD ms);
unsigned long long GetTickCount64(void);
BOOL QueryInterruptTime(unsigned long long *to);
#ifdef __cplusplus
}
#endif
#endif /* WINDOWS_STUB_H */
