#pragma once   /* SPDX-License-Identifier: MIT */
#include "../public/api.h"
#include "../numbers/text.h"
#include "../numbers/hash.h"
#include "../format/arena.h"
#include "../arena/state.h"
#include "../os/common.h"
#include "../arena/table.h"
#include "../arena/time.h"
#include "../control/lock.h"
#include "../control/environment.h"
#include "text.h"
#include "image.h"
#include "stream.h"
#include "csv_memory.h"
#include "sheet.h"

#ifdef NPUPROF_NO_JSON
static int npuprof_write_json_locked_(npuprof_sink sink)
{
    (void)sink;
    return -1;
}
#endif

/* A file that appears whole or not at all: a temporary name beside it, renamed when done. What exists and is no regular
   file (a device, a fifo) is written in place. */
static npuprof_result npuprof_file_write_(const char *path, int form)
{
    static int (*const writers[])(npuprof_sink) = { npuprof_write_json_locked_, npuprof_csv_write_locked_, npuprof_image_write_locked_,
                                                       npuprof_sheet_write_locked_ };
    char temporary[1100];
    int fd = -1, error = EEXIST;
    const char *slash = strrchr(path, '/'), *const name = slash ? slash + 1 : path;
    if (!*path || strlen(path) > 1023) return NPUPROF_ERR_ARGUMENT;
    if (form < 0) return NPUPROF_ERR_UNSUPPORTED;
#ifdef NPUPROF_NO_JSON
    if (form == NPUPROF_FORM_JSON_) return NPUPROF_ERR_UNSUPPORTED;
#endif
    const bool in_place = npuprof_os_in_place_(path);
    if (in_place) error = npuprof_os_open_(path, &fd);
    /* Why by the path: the next one to write there removes what a killed one left. */
    const unsigned mark = (unsigned)npuprof_hash_text_(name, strlen(name));
    for (unsigned n = 0; !in_place && n < 100 && error == EEXIST; n++) {
        snprintf(temporary, sizeof temporary, "%.*s.npuprof-%08x-%u.tmp", (int)(name - path), path, mark, n);
        error = npuprof_os_create_temporary_(temporary, path, &fd);
    }
    if (error) return npuprof_os_result_(error);
    npuprof_sink sink;
    sink.write = npuprof_os_write_;
    sink.user = &fd;
    if (npuprof_scratch_lock_()) {
        error = writers[form](sink);
        npuprof_scratch_unlock_();
    } else {
        error = EBUSY;
    }
    if (in_place || error) {
        const int close_error = npuprof_os_close_(fd);
        if (!error) error = close_error;
    } else {
        error = npuprof_os_publish_(fd, temporary, path);
    }
    if (error && !in_place) npuprof_os_remove_(temporary);
    if (!error) npuprof_s_.own_path = npuprof_hash_text_(path, strlen(path));
    return npuprof_os_result_(error);
}

/* Appends text; false when it does not fit. */
static bool npuprof_file_append_text_(char *to, size_t room, size_t *used, const char *text)
{
    const size_t n = strlen(text);
    if (*used + n + 1 > room) return false;
    memcpy(to + *used, text, n + 1);
    *used += n;
    return true;
}

/* The path with its % sequences filled in. %i becomes the instance. *has_own: it holds %p or %i; *numbered: %i. False: too
   long, or an unknown %. */
static bool npuprof_file_expand_pattern_(const npuprof_header_ *h, const char *pattern, unsigned instance, char *to, size_t room, bool *has_own,
                                 bool *numbered)
{
    size_t used = 0;
    to[0] = 0;
    *has_own = *numbered = false;
    for (const char *p = pattern; *p; p++) {
        char text[80] = { *p, 0 };
        if (*p == '%') {
            p++;
            if (*p == 'p') snprintf(text, sizeof text, "%u", (unsigned)h->pid);
            else if (*p == 'i') snprintf(text, sizeof text, "%u", instance);
            else if (*p == 'h') snprintf(text, sizeof text, "%.63s", h->host);
            else if (*p == 't') npuprof_os_local_time_(h->first.unix_ns, text, sizeof text);
            else if (*p != '%') return false;
            *has_own |= *p == 'p' || *p == 'i';
            *numbered |= *p == 'i';
        }
        if (!npuprof_file_append_text_(to, room, &used, text)) return false;
    }
    return true;
}

/* Puts text before the extension of the last path component. */
static bool npuprof_file_insert_suffix_(char *path, size_t room, const char *text)
{
    char *slash = strrchr(path, '/'), *dot = strrchr(path, '.');
    if (!dot || (slash && dot < slash) || dot == path || (slash && dot == slash + 1)) dot = path + strlen(path);
    const size_t n = strlen(text);
    if (strlen(path) + n + 1 > room) return false;
    memmove(dot + n, dot, strlen(dot) + 1);
    memcpy(dot, text, n);
    return true;
}

/* Did another arena of this process write that trace? It is not older than the process, and has our pid: in the first event of a JSON, the
   header of an image, the first trace id of a CSV.
   Why by the file: arenas of NPUPROF_STATIC files and of plugins share no symbol. */
static bool npuprof_file_is_of_this_process_(const char *path)
{
    union { char text[sizeof(npuprof_header_) + 1]; npuprof_header_ header; } head;
    char ours[33];
    const npuprof_header_ *const h = npuprof_s_.header;
    if (npuprof_s_.own_path == npuprof_hash_text_(path, strlen(path))) return false;
    const int64_t began = npuprof_os_process_start_ns_();
    const size_t n = npuprof_os_read_head_(path, began < h->first.unix_ns ? began : h->first.unix_ns, head.text, sizeof head.text - 1);
    head.text[n] = 0;
    if (n >= sizeof(npuprof_header_) && memcmp(head.header.magic, "NPUPROF\n", 8) == 0) return head.header.pid == h->pid;
    snprintf(ours, sizeof ours, "\"pid\":%u,", (unsigned)h->pid);
    if (strstr(head.text, ours)) return true;
    const char *const row = strncmp(head.text, "trace_id,", 9) == 0 ? strchr(head.text, '\n') : NULL;
    if (!row) return false;
    npuprof_digits_hex_text_(ours, npuprof_arena_mark_of_pid_(h->pid));
    return h->traceparent[0] ? strncmp(row + 1, h->traceparent + 3, 32) == 0 : strncmp(row + 9, ours + 8, 8) == 0;
}

/* Writes to a pattern, in the form that the pattern's extension says (not the path's: a host name may have dots): with %i the first instance whose file can be created, else the path itself; `apart` (after a fork) and
   where another arena of this process was there first, with the pid before the extension. */
static npuprof_result npuprof_file_write_pattern_(const char *pattern, int form, bool apart, char *path, size_t room)
{
    char suffix[40];
    bool has_own, numbered;
    for (unsigned n = 0; n < 100000; n++) {
        if (!npuprof_file_expand_pattern_(npuprof_s_.header, pattern, n, path, room, &has_own, &numbered)) return NPUPROF_ERR_ARGUMENT;
        if (!numbered) {
            const unsigned extra = n + (apart && !has_own);
            if (extra == 1) snprintf(suffix, sizeof suffix, "-%u", (unsigned)npuprof_s_.header->pid);
            else snprintf(suffix, sizeof suffix, "-%u-%u", (unsigned)npuprof_s_.header->pid, extra);
            if (extra && !npuprof_file_insert_suffix_(path, room, suffix)) return NPUPROF_ERR_ARGUMENT;
            if (npuprof_file_is_of_this_process_(path)) continue;
            return npuprof_file_write_(path, form);
        }
        int fd;
        const int error = npuprof_os_create_(path, &fd);
        if (error == EEXIST) continue;
        if (error) return npuprof_os_result_(error);
        (void)npuprof_os_close_(fd);
        const npuprof_result r = npuprof_file_write_(path, form);
        if (r != NPUPROF_OK) npuprof_os_remove_(path);
        return r;
    }
    return NPUPROF_ERR_IO;
}

/* Creates a file that is written as the program goes: a stream, a mapped arena. What is there already is given another name
   (name.1.npuprof, and so on: `aside`, or empty); if a running process uses it, ours gets our pid. Returns 0 or an errno value. */
static int npuprof_file_create_growing_(const npuprof_header_ *h, const char *pattern, bool apart, int *fd, char path[1100], char aside[1100])
{
    char suffix[40];
    bool has_own, numbered;
    aside[0] = 0;
    for (unsigned n = 0; n < 100000; n++) {
        if (!npuprof_file_expand_pattern_(h, pattern, n, path, 1100, &has_own, &numbered)) return EINVAL;
        snprintf(suffix, sizeof suffix, "-%u", (unsigned)h->pid);
        if (apart && !has_own && !npuprof_file_insert_suffix_(path, 1100, suffix)) return EINVAL;
        int error = npuprof_os_create_(path, fd);
        if (error != EEXIST) return error;
        if (numbered) continue;
        for (unsigned k = 1; error == EEXIST && k < 100000; k++) {
            npuprof_text_copy_(aside, 1100, path);
            snprintf(suffix, sizeof suffix, ".%u", k);
            if (!npuprof_file_insert_suffix_(aside, 1100, suffix)) return EINVAL;
            error = npuprof_os_move_aside_(path, aside);
        }
        if (error == EBUSY && !apart && !has_own) apart = true;
        else if (error) return error;
    }
    return EEXIST;
}
static int npuprof_stream_open_file_(void)
{
    npuprof_arena_state_ *const s = &npuprof_s_;
    char path[1100], aside[1100];
    bool has_own, numbered;
    int error;
    if (npuprof_file_expand_pattern_(s->header, s->output_path, 0, path, sizeof path, &has_own, &numbered) && npuprof_os_in_place_(path)) {
        error = npuprof_os_open_(path, &npuprof_stream_.fd);
    } else {
        error = npuprof_file_create_growing_(s->header, s->output_path, s->forked, &npuprof_stream_.fd, path, aside);
        if (!error && (error = npuprof_os_lock_(npuprof_stream_.fd)) != 0) {
            npuprof_os_discard_(npuprof_stream_.fd, path);
            npuprof_stream_.fd = -1;
            if (aside[0]) (void)npuprof_os_move_aside_(aside, path);
        }
    }
    s->sink.write = error ? NULL : npuprof_os_write_;
    s->sink.user = &npuprof_stream_.fd;
    return error;
}
/* Maps a new file as the arena's memory. pattern NULL: the one before. Returns 0 or an errno value. */
static int npuprof_file_map_arena_(const char *pattern, size_t bytes, bool apart, void **memory)
{
    npuprof_arena_state_ *const s = &npuprof_s_;
    npuprof_header_ h;
    int fd = -1;
    void *mapped = NULL;
    if (pattern && strlen(pattern) >= sizeof s->arena_path) return EINVAL;
    if (pattern) npuprof_text_copy_(s->arena_path, sizeof s->arena_path, pattern);
    memset(&h, 0, sizeof h);
    h.pid = npuprof_os_pid_();
    npuprof_os_names_(h.host, sizeof h.host, h.program, sizeof h.program);
    h.first.monotonic_ns = npuprof_os_monotonic_ns_();
    npuprof_os_clocks_(&h.first);
    char path[1100], aside[1100];
    int error = npuprof_file_create_growing_(&h, s->arena_path, apart, &fd, path, aside);
    if (error) return error;
    error = npuprof_os_map_arena_(fd, bytes, &mapped);
    if (error) {
        npuprof_os_discard_(fd, path);
        if (aside[0]) (void)npuprof_os_move_aside_(aside, path);
        return error;
    }
    s->mapped_fd = fd;
    s->mapped_bytes = bytes;
    *memory = mapped;
    return 0;
}

static npuprof_result npuprof_file_write_output_(char *path, size_t room)
{
    const npuprof_arena_state_ *s = &npuprof_s_;
    const size_t n = strlen(s->output_path);
    if (n == 0 || s->output_path[n - 1] != '/') return npuprof_file_write_pattern_(s->output_path, npuprof_path_form_(s->output_path), s->forked, path, room);
    if (n > 900) return NPUPROF_ERR_ARGUMENT;
    static const char *const kind[3] = { "trace", "csv", "sheet" };
    static const int form[3] = { NPUPROF_FORM_JSON_, NPUPROF_FORM_CSV_, NPUPROF_FORM_SHEET_ };
    npuprof_result r = NPUPROF_OK;
    char directory[1024], pattern[1100];
    bool has_own, numbered;
    if (!npuprof_file_expand_pattern_(s->header, s->output_path, 0, directory, sizeof directory, &has_own, &numbered)) return NPUPROF_ERR_ARGUMENT;
    int error = npuprof_os_make_directory_(directory);
    for (int i = 0; i < (npuprof_table_has_string_("ne.type") ? 3 : 2) && r == NPUPROF_OK; i++) {
        snprintf(path, room, "%.900sprofiling_%s", directory, kind[i]);
        if (!error) error = npuprof_os_make_directory_(path);
        if (error) return npuprof_os_result_(error);
        snprintf(pattern, sizeof pattern, "%.900sprofiling_%s/profiling_%%t_%%i.%s", s->output_path, kind[i], i ? "csv" : "json");
        r = npuprof_file_write_pattern_(pattern, form[i], false, path, room);
        /* Operators in warm-up only. */
        if (form[i] == NPUPROF_FORM_SHEET_ && r == NPUPROF_ERR_NOT_FOUND) r = NPUPROF_OK;
    }
    return r;
}

/* Words of the category list that never occurred. */
static void npuprof_file_report_unseen_categories_(void)
{
    const npuprof_arena_state_ *s = &npuprof_s_;
    const npuprof_arena_categories_ *list = s->categories;
    unsigned n = 0;
    for (const char *p = list ? list->words : ""; *p; n++) {
        char word[sizeof list->words];
        size_t length = 0;
        while (p[length] && p[length] != ',') length++;
        memcpy(word, p, length);
        word[length] = 0;
        if (n < 32 && !(NPUPROF_LOAD_(&list->seen) >> n & 1))
            npuprof_env_refuse_(s->categories_from[0] ? s->categories_from : "categories", word, "this category never occurred");
        p += length + (p[length] == ',');
    }
}

/* At normal exit. */
static void npuprof_file_write_at_exit_(void)
{
    char path[1100] = "";
    npuprof_arena_state_ *const s = &npuprof_s_;
    if (NPUPROF_LOAD_ACQUIRE_(&npuprof_setup_state_) != 2) return;
    const bool stream = s->when_full == NPUPROF_STREAM, file = stream && npuprof_path_is_stream_() && (npuprof_stream_.fd >= 0 || !s->sink.write);
    if (s->mapped_bytes) npuprof_arena_renew_last_anchor_();
    if (!s->write_at_exit && !stream) return;
    npuprof_image_given_ = NULL;
    npuprof_stop();
    npuprof_file_report_unseen_categories_();
    if (s->env_when_full == NPUPROF_STREAM && !stream)
        npuprof_env_refuse_("NPUPROF_WHEN_FULL", "stream", "needs NPUPROF_OUTPUT_PATH to end in .npuprof, or a sink of the program; keep-oldest was used");
    uint64_t left = 0;
    npuprof_result r = stream ? npuprof_stream_flush_(&left) : NPUPROF_OK;
    if (r != NPUPROF_OK) npuprof_os_say_("npuprof: the stream: %s, %llu spans and events are lost by cause \"sink\"\n", r == NPUPROF_ERR_NO_SPACE ? "no space left on the device" : r == NPUPROF_ERR_ACCESS ? "permission denied" : "its sink failed",
                                 (unsigned long long)(NPUPROF_LOAD_(&s->header->lost[NPUPROF_LOST_SINK]) + left));
    if (!s->write_at_exit || file) return;
    r = npuprof_file_write_output_(path, sizeof path);
    if (r == NPUPROF_ERR_ARGUMENT) npuprof_os_say_("npuprof: %s: the path is too long or holds an unknown %% sequence; nothing written\n", s->output_path);
    else if (r != NPUPROF_OK) npuprof_os_say_("npuprof: %s: %s\n", path, npuprof_result_string(r));
}
