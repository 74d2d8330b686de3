#pragma once   /* SPDX-License-Identifier: MIT */
#include "symbols.h"
#ifndef _WIN32
#include <spawn.h>
#include <sys/wait.h>
#endif

/* C++ and Rust names as a programmer writes them, by c++filt of binutils. Without it they stay as the
   compiler has them. One process for all names of a trace.
   Why a process, and limits for it: the names come from a stranger's file, and a short one may stand for
   gigabytes. */

enum { NPUPROF_SYMBOLS_MANGLED_ = 4096, NPUPROF_SYMBOLS_LINE_ = 1 << 16 };

#ifndef _WIN32
/* Is it a name that c++filt takes, and nothing else? */
static bool npuprof_symbols_is_mangled_(const npuprof_symbols_name_ *name)
{
    if (!name->used || !name->text || name->offset || name->length < 3) return false;
    if (name->length > NPUPROF_SYMBOLS_MANGLED_ || name->text[0] != '_') return false;
    for (size_t i = 0; i < name->length; i++) {
        const char c = name->text[i];
        const bool is_letter = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
        if (!is_letter && !(c >= '0' && c <= '9') && c != '_' && c != '.' && c != '$') return false;
    }
    return name->text[1] == 'Z' || name->text[1] == 'R';
}

/* Writes the names, a line each. Returns how many. */
static size_t npuprof_symbols_put_mangled_(const npuprof_symbols_ *s, FILE *file)
{
    size_t count = 0;
    for (size_t i = 0; i < s->name_places; i++) {
        if (!npuprof_symbols_is_mangled_(s->names + i)) continue;
        fprintf(file, "%.*s\n", (int)s->names[i].length, s->names[i].text);
        count++;
    }
    return fflush(file) == 0 && fseek(file, 0, SEEK_SET) == 0 ? count : 0;
}

/* Starts c++filt between two files. False: it could not be started. */
static bool npuprof_symbols_start_filter_(int in, int out, pid_t *pid)
{
    char shell[] = "sh", option[] = "-c";
    char command[] = "ulimit -t 10; ulimit -v 1048576; exec c++filt";
    char *const words[] = { shell, option, command, NULL };
    posix_spawn_file_actions_t files;
    if (posix_spawn_file_actions_init(&files) != 0) return false;
    const bool started = posix_spawn_file_actions_adddup2(&files, in, 0) == 0 &&
        posix_spawn_file_actions_adddup2(&files, out, 1) == 0 &&
        posix_spawn_file_actions_addopen(&files, 2, "/dev/null", O_WRONLY, 0) == 0 &&
        posix_spawn(pid, "/bin/sh", &files, NULL, words, NPUPROF_ENVIRON_) == 0;
    posix_spawn_file_actions_destroy(&files);
    return started;
}

/* Takes the lines that come back, in the order of the names. A line that is too long is passed. */
static void npuprof_symbols_take_lines_(npuprof_symbols_ *s, FILE *lines, char *line)
{
    for (size_t i = 0; i < s->name_places; i++) {
        npuprof_symbols_name_ *const name = s->names + i;
        size_t length = 0;
        int c;
        if (!npuprof_symbols_is_mangled_(name)) continue;
        while ((c = fgetc(lines)) != EOF && c != '\n') {
            if (length < NPUPROF_SYMBOLS_LINE_) line[length] = (char)c;
            length++;
        }
        if (c == EOF) return;
        if (!length || length > NPUPROF_SYMBOLS_LINE_) continue;
        char *const text = npuprof_symbols_room_(s, length);
        if (!text) continue;
        memcpy(text, line, length);
        name->text = text;
        name->length = length;
    }
}

static void npuprof_symbols_demangle_(npuprof_symbols_ *s)
{
    int ends[2] = { -1, -1 }, status;
    pid_t pid = 0;
    FILE *const names = tmpfile();
    char *const line = npuprof_symbols_room_(s, NPUPROF_SYMBOLS_LINE_);
    if (names && line && npuprof_symbols_put_mangled_(s, names) && pipe(ends) == 0) {
        (void)fcntl(ends[0], F_SETFD, FD_CLOEXEC);
        const bool started = npuprof_symbols_start_filter_(fileno(names), ends[1], &pid);
        FILE *const lines = fdopen(ends[0], "r");
        close(ends[1]);
        if (started && lines) npuprof_symbols_take_lines_(s, lines, line);
        if (lines) fclose(lines);
        else close(ends[0]);
        while (started && waitpid(pid, &status, 0) < 0 && errno == EINTR) continue;
    }
    if (names) fclose(names);
}

#else /* _WIN32 */
static void npuprof_symbols_demangle_(npuprof_symbols_ *s) { (void)s; }
#endif /* _WIN32 */
