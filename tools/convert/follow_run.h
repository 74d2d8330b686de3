#pragma once   /* SPDX-License-Identifier: MIT */
#include "follow.h"

/* npuprof-convert --follow: from the options to the exit code. */

#ifndef _WIN32
#include <limits.h>

static void npuprof_follow_on_signal_(int number)
{
    (void)number;
    npuprof_follow_stop_ = 1;
}

static double npuprof_follow_now_(void) { return (double)npuprof_os_monotonic_ns_() / 1e9; }

/* Ctrl-C, a closed terminal and kill end the following; a closed pipe is an error of a write. */
static void npuprof_follow_set_signals_(void)
{
    struct sigaction a;
    memset(&a, 0, sizeof a);
    a.sa_handler = npuprof_follow_on_signal_;
    (void)sigaction(SIGINT, &a, NULL);
    (void)sigaction(SIGTERM, &a, NULL);
    (void)sigaction(SIGHUP, &a, NULL);
    a.sa_handler = SIG_IGN;
    (void)sigaction(SIGPIPE, &a, NULL);
}

/* Can a file be written at the output's place? NULL, or what is wrong. */
static const char *npuprof_follow_output_fault_(const char *output)
{
    char folder[1100];
    const char *const slash = strrchr(output, '/');
    if (strlen(output) > 1000) return "a path of more than 1000 bytes";
    snprintf(folder, sizeof folder, "%.*s", slash ? (int)(slash - output) + 1 : 1, slash ? output : ".");
    return access(folder, W_OK | X_OK) == 0 ? NULL : strerror(errno);
}

/* Opens the ELF file, from which the kinds of call sites come. NULL, or what is wrong. The file stays in
   memory until the process ends. */
static const char *npuprof_follow_open_elf_(const char *path)
{
    void *file = NULL;
    size_t bytes = 0;
    npuprof_follow_.sites.elf = &npuprof_follow_.elf;
    if (!path) return NULL;
    const int error = npuprof_load_read_file_(path, &file, &bytes);
    if (error) return strerror(error);
    if (!file || !npuprof_elf_open_(&npuprof_follow_.elf, (const uint8_t *)file, bytes))
        return "is not an ELF file";
    return npuprof_elf_collect_sites_(&npuprof_follow_.elf) ? NULL : "no memory";
}

/* Why the following ended: in words, or NULL if it is to go on. took: what npuprof_follow_take_ said. */
static const char *npuprof_follow_end_(ssize_t took, double seconds, bool is_good)
{
    const npuprof_follow_options_ *const o = &npuprof_follow_.o;
    if (!is_good) return "";
    if (npuprof_follow_stop_) return "interrupted";
    if (took < 0 && !npuprof_follow_source_.error) return "the other end closed";
    if (took < 0 && npuprof_follow_source_.error == EIO) return "the device is gone";
    if (took < 0) return strerror(npuprof_follow_source_.error);
    if (o->seconds == 0 && npuprof_follow_source_.was_dry) return "no more bytes";
    return o->seconds && seconds >= (double)o->seconds ? "the time is over" : NULL;
}

/* Reads, shows and writes until an end. Returns why it ended; "": it was said. */
static const char *npuprof_follow_loop_(void)
{
    const npuprof_follow_options_ *const o = &npuprof_follow_.o;
    const double begin = npuprof_follow_now_();
    double shown = 0, written = o->every ? 1 - (double)o->every : 0;
    const char *end = NULL;
    while (!end) {
        const size_t room = sizeof npuprof_follow_.pending - npuprof_follow_.pending_bytes;
        const ssize_t n = npuprof_follow_take_(npuprof_follow_.pending + npuprof_follow_.pending_bytes, room);
        const double now = npuprof_follow_now_() - begin;
        npuprof_follow_.pending_bytes += n > 0 ? (size_t)n : 0;
        npuprof_follow_.bytes += n > 0 ? (uint64_t)n : 0;
        bool is_good = npuprof_follow_feed_(false);
        if (isatty(2) && now >= shown + 1) {
            npuprof_follow_show_(now, "\r\033[K", "");
            shown = now;
        }
        if (is_good && o->output && o->every && now >= written + (double)o->every) {
            is_good = npuprof_follow_write_();
            written = now;
        }
        end = npuprof_follow_end_(n, now, is_good);
        npuprof_follow_.is_over = n < 0;
    }
    npuprof_follow_close_();
    for (ssize_t n = 1; n > 0 && *end;) {
        const size_t room = sizeof npuprof_follow_.pending - npuprof_follow_.pending_bytes;
        n = npuprof_follow_take_(npuprof_follow_.pending + npuprof_follow_.pending_bytes, room);
        npuprof_follow_.pending_bytes += n > 0 ? (size_t)n : 0;
        npuprof_follow_.bytes += n > 0 ? (uint64_t)n : 0;
        if (!npuprof_follow_feed_(n <= 0)) end = "";
    }
    npuprof_follow_show_(npuprof_follow_now_() - begin, isatty(2) ? "\r\033[K" : "", "\n");
    return end;
}

/* Follows; the exit code. 0: nothing is missing; 1: something is, and the rest was written; 2: nothing was
   written. */
static int npuprof_follow_run_(const npuprof_follow_options_ *options)
{
    npuprof_follow_options_ *const o = &npuprof_follow_.o;
    const char *fault = NULL;
    *o = *options;
    npuprof_follow_.file = 1;
    npuprof_follow_.capacity = (size_t)o->split_mib << 20;
    npuprof_follow_.kept = (uint8_t *)npuprof_os_memory_(npuprof_follow_.capacity);
    npuprof_follow_set_signals_();
    if (!npuprof_follow_.kept) npuprof_follow_say_("--split", fault = "no memory for so much");
    if (!fault && o->output && (fault = npuprof_follow_output_fault_(o->output)) != NULL)
        npuprof_follow_say_(o->output, fault);
    if (!fault && (fault = npuprof_follow_open_elf_(o->elf)) != NULL) npuprof_follow_say_(o->elf, fault);
    if (!fault && (fault = npuprof_follow_open_(o->source, o->baud)) != NULL)
        npuprof_follow_say_(o->source, npuprof_follow_stop_ ? "interrupted" : fault);
    if (fault) return 2;
    const char *const end = npuprof_follow_loop_();
    if (*end) npuprof_follow_say_(o->source, end);
    const bool has_any = npuprof_follow_.now.line.has_header && npuprof_follow_.now.line.cells;
    npuprof_follow_.is_end = true;
    npuprof_follow_keep_cut_();
    const bool is_written = *end && npuprof_follow_end_trace_(npuprof_follow_.now.kept_bytes);
    if (*end && !has_any && !npuprof_follow_.written)
        npuprof_follow_say_(o->source, "nothing of npuprof came: is it the right device and baud rate, and "
                                       "does the target call npuprof_poll()?");
    if (!is_written || (!has_any && !npuprof_follow_.written)) return 2;
    return npuprof_follow_.gaps || npuprof_follow_.unplaced || npuprof_follow_.damaged ? 1 : 0;
}
#endif /* !_WIN32 */
