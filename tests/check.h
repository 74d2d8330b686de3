/* check.h - the checks of npuprof's C tests.
   SPDX-License-Identifier: MIT

   A test is a list of cases; each runs in a process of its own, so each may set the library up as it likes:

       static void sums(void) { CHECK(1 + 1 == 2); CHECK_INT(f(), 3); CHECK_STR(g(), "x"); }
       CHECK_MAIN(CASE(sums), CASE(other))

   A failed check is noted and the case goes on; CHECK_STOP ends it. CHECK_SKIP(reason) ends it as skipped.
   `program NAME` runs one case in the process itself, for a debugger. CASE_THOROUGH is a case for `make
   check` only (see tests/run.py). Include before npuprof.h is fine. */
#ifndef CHECK_H
#define CHECK_H

#ifndef _GNU_SOURCE
#define _GNU_SOURCE 1
#endif
#include <inttypes.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#if defined(__GNUC__) || defined(__clang__)
#define CHECK_PRINTF_(a, b) __attribute__((format(printf, a, b), unused))
#define CHECK_UNUSED_ __attribute__((unused))
#else
#define CHECK_PRINTF_(a, b)
#define CHECK_UNUSED_
#endif

/* 1 under -fsanitize=address or thread: a tenth of the work is enough. */
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define CHECK_SANITIZED 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
#define CHECK_SANITIZED 1
#endif
#endif
#ifndef CHECK_SANITIZED
#define CHECK_SANITIZED 0
#endif

typedef struct check_case { const char *name; void (*run)(void); bool thorough; } check_case;
#define CASE(function) { #function, function, false }
#define CASE_THOROUGH(function) { #function, function, true }

static const char *check_name_ = "?";
static int check_failures_;
static char check_first_[600];

CHECK_UNUSED_ static void check_failed_(const char *file, int line, const char *format,
                                        ...) CHECK_PRINTF_(3, 4);
static void check_failed_(const char *file, int line, const char *format, ...)
{
    char text[400];
    va_list list;
    va_start(list, format);
    vsnprintf(text, sizeof text, format, list);
    va_end(list);
    if (!check_failures_++) snprintf(check_first_, sizeof check_first_, "%s:%d: %s", file, line, text);
    if (check_failures_ <= 20) printf("  %s:%d: %s\n", file, line, text);
}

/* Is this `make test`, where a quarter of the work is enough? */
CHECK_UNUSED_ static bool check_is_quick(void)
{
    const char *part = getenv("NPUPROF_TEST_PART");
    return part && !strcmp(part, "quick");
}

/* Seconds of CPU of this process and those it has waited for. */
CHECK_UNUSED_ static double check_cpu_(void)
{
    struct rusage self, children;
    getrusage(RUSAGE_SELF, &self);
    getrusage(RUSAGE_CHILDREN, &children);
    return (double)(self.ru_utime.tv_sec + self.ru_stime.tv_sec + children.ru_utime.tv_sec
                    + children.ru_stime.tv_sec) +
           1e-6 * (double)(self.ru_utime.tv_usec + self.ru_stime.tv_usec + children.ru_utime.tv_usec
                           + children.ru_stime.tv_usec);
}

/* Prints the result line and ends the process of the case, with the clean-up of a normal exit. */
CHECK_UNUSED_ static void check_end_(const char *skipped_because)
{
    for (char *c = check_first_; *c; c++) if (*c == '\n') *c = ' ';
    if (check_failures_) printf("FAIL %s: %s\n", check_name_, check_first_);
    else if (skipped_because) printf("skip %s: %s\n", check_name_, skipped_because);
    else if (check_cpu_() >= 0.1) printf("ok %s: %.1f s\n", check_name_, check_cpu_());
    else printf("ok %s\n", check_name_);
    fflush(stdout);
    exit(check_failures_ ? 1 : 0);
}

#define CHECK(condition) \
    do { if (!(condition)) check_failed_(__FILE__, __LINE__, "%s", #condition); } while (0)
#define CHECK_STOP(condition) \
    do { \
        if (!(condition)) { check_failed_(__FILE__, __LINE__, "%s", #condition); check_end_(NULL); } \
    } while (0)
#define CHECK_INT(got, wanted) check_int_(__FILE__, __LINE__, #got, (int64_t)(got), (int64_t)(wanted))
#define CHECK_UINT(got, wanted) check_uint_(__FILE__, __LINE__, #got, (uint64_t)(got), (uint64_t)(wanted))
#define CHECK_STR(got, wanted) check_str_(__FILE__, __LINE__, #got, (got), (wanted))
#define CHECK_SKIP(reason) check_end_(reason)

CHECK_UNUSED_ static void check_int_(const char *file, int line, const char *what, int64_t got,
                                     int64_t wanted)
{
    if (got != wanted) check_failed_(file, line, "%s is %" PRId64 ", not %" PRId64, what, got, wanted);
}

CHECK_UNUSED_ static void check_uint_(const char *file, int line, const char *what, uint64_t got,
                                      uint64_t wanted)
{
    if (got != wanted) check_failed_(file, line, "%s is %" PRIu64 ", not %" PRIu64, what, got, wanted);
}

CHECK_UNUSED_ static void check_str_(const char *file, int line, const char *what, const char *got,
                                     const char *wanted)
{
    if (!got || !wanted ? got != wanted : strcmp(got, wanted) != 0)
        check_failed_(file, line, "%s is \"%s\", not \"%s\"", what, got ? got : "(null)",
                      wanted ? wanted : "(null)");
}

/* A path for a scratch file of this case; lives as long as the process. */
CHECK_UNUSED_ static const char *check_path(const char *file_name)
{
    const char *folder = getenv("NPUPROF_TEST_TMP");
    size_t size = 4096;
    char *path = (char *)malloc(size);
    if (!path) abort();
    snprintf(path, size, "%s/%s-%s", folder && *folder ? folder : "/tmp", check_name_, file_name);
    return path;
}

/* The whole of a file with a NUL behind it, NULL if it cannot be read; to be freed. */
CHECK_UNUSED_ static char *check_read_file(const char *path, size_t *size_out)
{
    FILE *file = fopen(path, "rb");
    char *bytes = NULL;
    size_t size = 0, room = 0;
    if (!file) return NULL;
    for (;;) {
        if (size + 1 >= room) {
            room = room ? room * 2 : 65536;
            bytes = (char *)realloc(bytes, room);
            if (!bytes) abort();
        }
        size_t got = fread(bytes + size, 1, room - size - 1, file);
        if (!got) break;
        size += got;
    }
    fclose(file);
    bytes[size] = 0;
    if (size_out) *size_out = size;
    return bytes;
}

/* What a report function prints; to be freed. */
CHECK_UNUSED_ static char *check_read_stream(FILE *file)
{
    long size = (fflush(file), fseek(file, 0, SEEK_END), ftell(file));
    char *bytes = (char *)malloc((size_t)size + 1);
    if (!bytes) abort();
    rewind(file);
    bytes[fread(bytes, 1, (size_t)size, file)] = 0;
    return bytes;
}

/* Runs a part of a case in a process of its own; its failures are the case's. False when it failed. */
CHECK_UNUSED_ static bool check_in_child(void (*run)(const void *user), const void *user)
{
    int status = 0;
    fflush(stdout);
    pid_t child = fork();
    if (child == 0) {
        check_failures_ = 0;
        run(user);
        fflush(stdout);
        exit(check_failures_ ? 1 : 0);
    }
    if (child < 0 || waitpid(child, &status, 0) != child || status != 0) {
        check_failed_(__FILE__, __LINE__, "a part of the case failed (status 0x%x)", (unsigned)status);
        return false;
    }
    return true;
}

CHECK_UNUSED_ static int check_main_(const check_case *cases, size_t count, int argc, char **argv)
{
    const char *part = getenv("NPUPROF_TEST_PART");
    int bad = 0, ran = 0;
    setvbuf(stdout, NULL, _IOLBF, 0);
    if (argc > 1) {
        for (size_t i = 0; i < count; i++) {
            if (strcmp(cases[i].name, argv[1]) != 0) continue;
            check_name_ = cases[i].name;
            cases[i].run();
            check_end_(NULL);
        }
        printf("FAIL %s: no such case\n", argv[1]);
        return 1;
    }
    for (size_t i = 0; i < count; i++) {
        int status = 0;
        if (part && cases[i].thorough != (strcmp(part, "rest") == 0)) continue;
        ran++;
        fflush(stdout);
        pid_t child = fork();
        if (child == 0) {
            check_name_ = cases[i].name;
            cases[i].run();
            check_end_(NULL);
        }
        if (child < 0 || waitpid(child, &status, 0) != child) {
            printf("FAIL %s: cannot start a process\n", cases[i].name);
            bad++;
        } else if (WIFSIGNALED(status)) {
            printf("FAIL %s: ended by signal %d\n", cases[i].name, WTERMSIG(status));
            bad++;
        } else if (WEXITSTATUS(status)) {
            if (WEXITSTATUS(status) != 1)
                printf("FAIL %s: exit code %d\n", cases[i].name, WEXITSTATUS(status));
            bad++;
        }
    }
    return bad || !ran ? 1 : 0;
}
#define CHECK_MAIN(...)                                                              \
    int main(int argc, char **argv)                                                  \
    {                                                                                \
        static const check_case cases[] = { __VA_ARGS__ };                           \
        return check_main_(cases, sizeof cases / sizeof cases[0], argc, argv);       \
    }

#endif /* CHECK_H */
