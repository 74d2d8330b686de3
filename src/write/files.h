#pragma once   /* SPDX-License-Identifier: MIT */
#include "../public/api.h"
#include "../numbers/text.h"
#include "../numbers/hash.h"
#include "../format/arena.h"
#include "../os/common.h"
#include "../arena/state.h"
#include "../arena/table.h"
#include "../arena/anchors.h"
#include "../arena/exchange.h"
#include "../control/lock.h"
#include "../control/path.h"
#include "../control/conditions.h"
#include "../control/environment.h"
#include "../control/capture.h"
#include "text.h"
#include "file.h"
#include "image.h"
#include "stream.h"
#ifndef NPUPROF_NO_JSON
#include "json_head.h"
#endif
#include "csv_memory.h"
#include "sheet.h"

/* Which file gets which output: npuprof_dump(), and what is written at normal exit. file.h writes one.
   Data: npuprof_file_own_path_, which is only read here.
   A new output is in NPUPROF_FORMS_ of control/path.h, and its part is included here. */

/* By form (NPUPROF_FORM_*): npuprof_write_FORM_locked_(). Each writes the open image into a sink, and returns
   0 or an errno value. NULL: left out. */
#ifdef NPUPROF_NO_JSON
#define npuprof_write_json_locked_ NULL
#endif
#define NPUPROF_FORM_WRITER_(name, word, extension) npuprof_write_##word##_locked_,
static const npuprof_file_writer_ npuprof_file_writers_[] = { NPUPROF_FORMS_(NPUPROF_FORM_WRITER_) };

/* form: one of NPUPROF_FORM_*; negative: a path of no known form. */
static npuprof_result npuprof_file_write_(const char *path, int form, npuprof_file_room_ room)
{
    return npuprof_file_write_by_(path, form < 0 ? NULL : npuprof_file_writers_[form], room);
}

/* Did another arena of this process write the trace at `path`? Such a file is younger than the process and
   has our pid: in the first event of a JSON, in the header of an image, in the first trace id of a CSV.
   An output that shows it nowhere would be overwritten by another arena of this process.
   Why ask the file: the arenas of NPUPROF_STATIC files and of plugins have no variable in common. */
static bool npuprof_file_is_of_this_process_(const char *path)
{
    union { char text[sizeof(npuprof_header_) + 1]; npuprof_header_ header; } head;
    char ours[33];
    const npuprof_header_ *const h = npuprof_arena_.header;
    const int64_t began = npuprof_os_process_start_ns_(), first = h->first.unix_ns;
    const size_t n = npuprof_os_read_head_(path, began < first ? began : first, head.text,
                                           sizeof head.text - 1);
    head.text[n] = 0;
    if (n >= sizeof(npuprof_header_) && memcmp(head.header.magic, "NPUPROF\n", 8) == 0)
        return head.header.pid == h->pid;
    snprintf(ours, sizeof ours, "\"pid\":%u,", (unsigned)h->pid);
    if (strstr(head.text, ours)) return true;
    const char *const row = strncmp(head.text, "trace_id,", 9) == 0 ? strchr(head.text, '\n') : NULL;
    if (!row) return false;
    npuprof_digits_hex_text_(ours, npuprof_arena_mark_of_pid_(h->pid));
    if (h->traceparent[0]) return strncmp(row + 1, h->traceparent + 3, 32) == 0;
    return strncmp(row + 9, ours + 8, 8) == 0;
}

/* Writes to the first number of a pattern with %i whose file can be created. */
static npuprof_result npuprof_file_write_numbered_(const char *pattern, int form, npuprof_path_ *path)
{
    for (unsigned n = 0; n < 100000; n++) {
        int fd;
        if (!npuprof_path_expand_(npuprof_arena_.header, pattern, n, path)) return NPUPROF_ERR_ARGUMENT;
        const int error = npuprof_os_create_(path->text, &fd);
        if (error == EEXIST) continue;
        if (error) return npuprof_os_result_(error);
        (void)npuprof_os_close_(fd);
        const npuprof_result r = npuprof_file_write_(path->text, form, NULL);
        if (r != NPUPROF_OK) npuprof_os_remove_(path->text);
        return r;
    }
    return NPUPROF_ERR_IO;
}

/* Gives another name to what another arena of this process wrote to this path, if this is the program's and
   so has the name that was asked for. False: it stays. */
static bool npuprof_file_take_place_(const npuprof_path_ *path)
{
    int error = npuprof_os_library_() ? EBUSY : EEXIST;
    for (unsigned n = 1; error == EEXIST && n < 100; n++) {
        npuprof_path_ aside = *path;
        if (!npuprof_path_insert_own_(npuprof_arena_.header, &aside, n)) return false;
        error = npuprof_os_move_aside_(path->text, aside.text);
    }
    return error == 0;
}

/* Did this arena write what lies at a path? */
static bool npuprof_file_is_own_(const char *path)
{
    return NPUPROF_LOAD_(&npuprof_file_own_path_) == npuprof_hash_text_(path, strlen(path));
}

/* Is the path free for the trace of this arena, whose n-th choice it is, from what this process wrote? */
static bool npuprof_file_is_free_(const npuprof_path_ *path, unsigned n)
{
    if (npuprof_file_is_own_(path->text) || !npuprof_file_is_of_this_process_(path->text)) return true;
    return n == 0 && npuprof_file_take_place_(path);
}

/* What another process wrote to a path since this one records, such as a program that it executed, becomes
   NAME.1.EXTENSION. Why a step behind the start: an earlier run's file is replaced. */
static void npuprof_file_keep_other_(const char *path)
{
    char first;
    npuprof_path_ here, aside;
    const int64_t since = npuprof_arena_.header->first.unix_ns + NPUPROF_OS_FILE_STEP_NS_;
    if (npuprof_file_is_own_(path) || !npuprof_os_read_head_(path, since, &first, 1)) return;
    npuprof_text_copy_(here.text, sizeof here.text, path);
    (void)npuprof_path_move_aside_(&here, &aside);
}

/* Writes to a pattern; *path is where. The pid goes before the extension where another arena of this process
   was there first, unless this is the program's; with `apart`, in the child of a fork, always. */
static npuprof_result npuprof_file_write_pattern_(const char *pattern, int form, bool apart,
                                                  npuprof_path_ *path)
{
    for (unsigned n = 0; n < 100000; n++) {
        if (!npuprof_path_expand_(npuprof_arena_.header, pattern, 0, path)) return NPUPROF_ERR_ARGUMENT;
        if (path->is_numbered) return npuprof_file_write_numbered_(pattern, form, path);
        const unsigned own = n + (apart && !path->is_own);
        if (!npuprof_path_insert_own_(npuprof_arena_.header, path, own)) return NPUPROF_ERR_ARGUMENT;
        if (!npuprof_file_is_free_(path, n)) continue;
        return npuprof_file_write_(path->text, form, npuprof_file_keep_other_);
    }
    return NPUPROF_ERR_IO;
}

/* Writes into the folders of NPUPROF_OUTPUT_PATH=d/: JSON, CSV and, if there are operators, their sheet. All
   are of one moment: spans that are open end there in each of them, and their clocks have one rate. */
static npuprof_result npuprof_file_write_folders_(npuprof_path_ *path)
{
    static const struct { char folder[6], extension[5]; uint8_t form; } outputs[] = {
        { "trace", "json", NPUPROF_FORM_JSON_ }, { "csv", "csv", NPUPROF_FORM_CSV_ },
        { "sheet", "csv", NPUPROF_FORM_SHEET_ } };
    const char *const to = npuprof_path_output_.pattern;
    const size_t count = sizeof outputs / sizeof *outputs - !npuprof_table_has_string_("ne.type");
    npuprof_result r = NPUPROF_OK;
    const npuprof_image_window_ part = npuprof_image_limits_();
    npuprof_path_ directory;
    char pattern[1100];
    if (!npuprof_path_expand_(npuprof_arena_.header, to, 0, &directory)) return NPUPROF_ERR_ARGUMENT;
    if (strlen(to) > 900 || strlen(directory.text) > 900) return NPUPROF_ERR_ARGUMENT;
    int error = npuprof_os_make_directory_(directory.text);
    npuprof_image_limit_(part.since, part.until ? part.until : npuprof_clock_in_order_());
    for (size_t i = 0; i < count && r == NPUPROF_OK; i++) {
        snprintf(path->text, sizeof path->text, "%.900sprofiling_%s", directory.text, outputs[i].folder);
        if (!error) error = npuprof_os_make_directory_(path->text);
        r = npuprof_os_result_(error);
        if (r != NPUPROF_OK) break;
        snprintf(pattern, sizeof pattern, "%.900sprofiling_%s/profiling_%%t_%%i.%s", to,
                 outputs[i].folder, outputs[i].extension);
        r = npuprof_file_write_pattern_(pattern, outputs[i].form, false, path);
        /* No row: all operators were warm-up. */
        if (outputs[i].form == NPUPROF_FORM_SHEET_ && r == NPUPROF_ERR_NOT_FOUND) r = NPUPROF_OK;
    }
    npuprof_image_limit_(part.since, part.until);
    return r;
}

/* Writes what output_path asks for. *path: the file, or where it failed.
   Why the form of the pattern, not of the path: a host's name, %h, may have dots. */
static npuprof_result npuprof_file_write_output_(npuprof_path_ *path)
{
    const char *const to = npuprof_path_output_.pattern;
    const size_t n = strlen(to);
    if (n && to[n - 1] == '/') return npuprof_file_write_folders_(path);
    return npuprof_file_write_pattern_(to, npuprof_path_form_(to), npuprof_path_output_.forked, path);
}

/* Writes the trace as it is now to a file that does not exist yet: the output path with a number before its
   extension, and in the child of a fork with the pid. *path: the file, or where it failed. A device or a pipe
   is written again. */
static npuprof_result npuprof_file_write_next_(npuprof_path_ *path)
{
    const char *const to = npuprof_path_output_.pattern;
    const int form = npuprof_path_form_(to);
    const size_t n = strlen(to);
    npuprof_path_ pattern;
    if (!npuprof_path_expand_(npuprof_arena_.header, to, 0, path)) return NPUPROF_ERR_ARGUMENT;
    if (to[n - 1] == '/' || npuprof_os_in_place_(path->text)) return npuprof_file_write_output_(path);
    if (path->is_numbered) return npuprof_file_write_numbered_(to, form, path);
    npuprof_text_copy_(pattern.text, sizeof pattern.text, to);
    if (!npuprof_path_insert_(&pattern, npuprof_path_output_.forked && !path->is_own ? "-%p.%i" : ".%i"))
        return NPUPROF_ERR_ARGUMENT;
    return npuprof_file_write_numbered_(pattern.text, form, path);
}

/* At exit, what the windows of a schedule are to have: the last one, if anything was recorded in it. */
static npuprof_result npuprof_file_write_last_window_(npuprof_path_ *path)
{
    npuprof_stats stats;
    const npuprof_result r = npuprof_get_stats(&stats);
    if (r == NPUPROF_OK && !stats.recorded && !stats.lost) return NPUPROF_OK;
    return npuprof_file_write_next_(path);
}

/* Names the words of the category list that never occurred: they may be misspelt. */
static void npuprof_file_report_unseen_categories_(void)
{
    const npuprof_record_list_ *const list = npuprof_record_categories_;
    const char *const from = npuprof_control_lists_.from[0] ? npuprof_control_lists_.from : "categories";
    const char *at = list ? list->words : "", *item;
    size_t length;
    for (unsigned n = 0; n < 32 && npuprof_text_next_item_(&at, &item, &length); n++) {
        char word[sizeof list->words];
        npuprof_text_copy_(word, length + 1, item);
        if (!(NPUPROF_LOAD_(&list->seen) >> n & 1))
            npuprof_env_refuse_(from, word, "this category never occurred");
    }
}

/* Ends the stream, and says on stderr what was lost if that failed. */
static void npuprof_file_end_stream_(void)
{
    npuprof_stream_.ends = true;
    const npuprof_result r = npuprof_flush();
    const char *const why = r == NPUPROF_ERR_NO_SPACE ? "no space left on the device" :
                            r == NPUPROF_ERR_ACCESS ? "permission denied" : "its sink failed";
    if (r == NPUPROF_OK) return;
    const unsigned long long lost =
        NPUPROF_LOAD_(&npuprof_arena_.header->lost[NPUPROF_LOST_SINK]) + npuprof_stream_.left;
    npuprof_os_say_("npuprof: the stream: %s, %llu spans and events are lost by cause \"sink\"\n", why, lost);
}

/* At normal exit: ends the stream, and writes what output_path asks for. */
static void npuprof_file_write_at_exit_(void)
{
    npuprof_arena_state_ *const s = &npuprof_arena_;
    void (*const nothing)(void *, bool) = NULL;
    npuprof_path_ path;
    if (NPUPROF_LOAD_ACQUIRE_(&npuprof_record_setup_) != 2) return;
    const bool is_stream = s->when_full == NPUPROF_STREAM;
    const bool is_ours = is_stream && npuprof_path_is_stream_() &&
        (npuprof_stream_.fd >= 0 || !npuprof_stream_.sink.write);
    if (npuprof_path_arena_.bytes) npuprof_arena_renew_last_anchor_();
    if (!npuprof_path_output_.at_exit && !is_stream) return;
    /* Why: a program that reads an image back still writes its own trace. */
    npuprof_image_given_ = NULL;
    /* Why: what the program's function needs may be gone. */
    NPUPROF_STORE_RELEASE_(&npuprof_control_.tell, nothing);
    npuprof_stop();
    npuprof_capture_end_();
    npuprof_file_report_unseen_categories_();
    npuprof_capture_report_unseen_();
    if (npuprof_env_.when_full == NPUPROF_STREAM && !is_stream)
        npuprof_env_refuse_("NPUPROF_WHEN_FULL", "stream",
                            "needs NPUPROF_OUTPUT_PATH to end in .npuprof, or a sink of the program; "
                            "keep-oldest was used");
    if (is_stream) npuprof_file_end_stream_();
    if (!npuprof_path_output_.at_exit || is_ours) return;
    path.text[0] = 0;
    const npuprof_result r = npuprof_capture_set_.by_windows ? npuprof_file_write_last_window_(&path)
        : npuprof_file_write_output_(&path);
    if (r == NPUPROF_ERR_ARGUMENT)
        npuprof_os_say_("npuprof: %s: the path is too long or holds an unknown %% sequence; "
                        "nothing written\n", npuprof_path_output_.pattern);
    else if (r != NPUPROF_OK)
        npuprof_os_say_("npuprof: %s: %s\n", path.text, npuprof_result_string(r));
}

NPUPROF_API_ npuprof_result npuprof_dump(const char *path)
{
    if (!path) return NPUPROF_REFUSE_("npuprof_dump: path is NULL");
    if (!npuprof_record_is_ready_()) return NPUPROF_ERR_ARENA_SIZE;
    const char *const dot = strrchr(path, '.');
    if (dot && (strcmp(dot, ".pftrace") == 0 || strcmp(dot, ".gz") == 0) && !npuprof_os_in_place_(path))
        return NPUPROF_REFUSE_("npuprof_dump: path ends in .pftrace or .gz: dump a .npuprof, and "
                               "`npuprof.py convert t.npuprof -o t.pftrace.gz` makes that of it");
    return npuprof_file_write_(path, npuprof_path_form_(path), NULL);
}

NPUPROF_API_ npuprof_result npuprof_write_json(npuprof_sink sink)
{
    if (!sink.write) return NPUPROF_REFUSE_("npuprof_write_json: sink.write is NULL");
#ifdef NPUPROF_NO_JSON
    return NPUPROF_LEFT_OUT_("NPUPROF_NO_JSON leaves JSON out; npuprof-convert makes it of an image");
#else
    if (!npuprof_reader_lock_()) return npuprof_reader_result_();
    const int error = npuprof_write_json_locked_(sink);
    npuprof_reader_unlock_();
    return npuprof_os_result_(error);
#endif
}
