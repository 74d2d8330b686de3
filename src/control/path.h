#pragma once   /* SPDX-License-Identifier: MIT */
#include "../public/types.h"
#include "../numbers/text.h"
#include "../format/arena.h"
#include "../arena/state.h"
#include "../os/common.h"

/* Paths as users write them, and files that grow while the program runs: a stream, a mapped arena. A path is
   a pattern: %p stands for the pid, %h for the host, %t for the local time at the start of the trace, %i for
   the first number whose file does not exist yet, %% for a percent sign. Its extension says in which form the
   trace is written.
   Data: npuprof_path_output_ and npuprof_path_arena_, written by the thread that sets up (by npuprof_init(),
   too) and in the child of a fork.
   This part knows the forms by name, not how one is written. */

/* Where the trace goes. */
static struct {
    bool at_exit;                  /* it is written when the program ends */
    bool forked;                   /* a child, of a parent that recorded: it needs files of its own */
    char pattern[1024];            /* empty: nowhere */
} npuprof_path_output_;

/* The file that is mapped as the arena. */
static struct {
    size_t bytes;                  /* 0: none is */
    int fd;                        /* holds the lock of that file */
    uint64_t file;                 /* which that is (npuprof_os_file_()) */
    char pattern[1024];
} npuprof_path_arena_;

/* In which form a trace goes to a path, with its extension. The operators' sheet has none of its own. */
#define NPUPROF_FORMS_(X) \
    X(JSON, json, ".json") X(CSV, csv, ".csv") X(IMAGE, image, ".npuprof") X(SHEET, sheet, "")
#define NPUPROF_FORM_ENUM_(name, word, extension) NPUPROF_FORM_##name##_,
enum { NPUPROF_FORM_UNKNOWN_ = -1, NPUPROF_FORMS_(NPUPROF_FORM_ENUM_) NPUPROF_FORM_COUNT_ };
#define NPUPROF_FORM_EXTENSION_(name, word, extension) extension,

/* The form that the extension asks for. JSON is for paths without one, and for devices and pipes.
   An extension begins with a letter: in "trace.1" there is none. */
static int npuprof_path_form_(const char *path)
{
    static const char known[][9] = { NPUPROF_FORMS_(NPUPROF_FORM_EXTENSION_) };
    const char *slash = strrchr(path, '/'), *name = slash ? slash + 1 : path, *dot = strrchr(name, '.');
    for (int i = 0; dot && i < NPUPROF_FORM_COUNT_; i++)
        if (strcmp(dot, known[i]) == 0) return i;
    const bool has_extension = dot && dot != name && (dot[1] | 32) >= 'a' && (dot[1] | 32) <= 'z';
    return has_extension && !npuprof_os_in_place_(path) ? NPUPROF_FORM_UNKNOWN_ : NPUPROF_FORM_JSON_;
}

/* From now on the trace goes there, at exit, too. It is short enough, and has a known form. */
static void npuprof_path_set_output_(const char *pattern)
{
    npuprof_text_copy_(npuprof_path_output_.pattern, sizeof npuprof_path_output_.pattern, pattern);
    npuprof_path_output_.at_exit = true;
}

/* Can the output path be the file of a stream? */
static bool npuprof_path_is_stream_(void)
{
    return npuprof_path_form_(npuprof_path_output_.pattern) == NPUPROF_FORM_IMAGE_;
}

/* A pattern with its % sequences replaced. */
typedef struct npuprof_path_ {
    char text[1100];
    bool is_own;                   /* it holds %p or %i: no other process has the same path */
    bool is_numbered;              /* it holds %i */
} npuprof_path_;

/* Replaces the % sequences; %i becomes `number`. False: the path is too long, or there is no such
   sequence. */
static bool npuprof_path_expand_(const npuprof_header_ *h, const char *pattern, unsigned number,
                                 npuprof_path_ *out)
{
    size_t used = 0;
    out->text[0] = 0;
    out->is_own = out->is_numbered = false;
    for (const char *p = pattern; *p; p++) {
        char text[80] = { *p, 0 };
        if (*p == '%') {
            p++;
            if (*p == 'p') snprintf(text, sizeof text, "%u", (unsigned)h->pid);
            else if (*p == 'i') snprintf(text, sizeof text, "%u", number);
            else if (*p == 'h') snprintf(text, sizeof text, "%.63s", h->host);
            else if (*p == 't') npuprof_os_local_time_(h->first.unix_ns, text, sizeof text);
            else if (*p != '%') return false;
            out->is_own |= *p == 'p' || *p == 'i';
            out->is_numbered |= *p == 'i';
        }
        const size_t length = strlen(text);
        if (used + length + 1 > sizeof out->text) return false;
        memcpy(out->text + used, text, length + 1);
        used += length;
    }
    return true;
}

/* Inserts text before the extension of the file's name. False: the path becomes too long. */
static bool npuprof_path_insert_(npuprof_path_ *path, const char *text)
{
    char *const slash = strrchr(path->text, '/'), *const name = slash ? slash + 1 : path->text;
    char *dot = strrchr(name, '.');
    const size_t length = strlen(path->text), added = strlen(text);
    if (!dot || dot == name) dot = path->text + length;
    if (length + added + 1 > sizeof path->text) return false;
    memmove(dot + added, dot, strlen(dot) + 1);
    memcpy(dot, text, added);
    return true;
}

/* Inserts what tells the n-th file of this process from others that would have one path; n 0: nothing. */
static bool npuprof_path_insert_own_(const npuprof_header_ *h, npuprof_path_ *path, unsigned n)
{
    char suffix[40] = "";
    if (n == 1) snprintf(suffix, sizeof suffix, "-%u", (unsigned)h->pid);
    else if (n > 1) snprintf(suffix, sizeof suffix, "-%u-%u", (unsigned)h->pid, n);
    return npuprof_path_insert_(path, suffix);
}

/* Gives the file at this path the first free one of the names NAME.1.EXTENSION, NAME.2.EXTENSION and so on;
   *aside is that name. Returns 0 or an errno value. EBUSY: a running process uses the file. */
static int npuprof_path_move_aside_(const npuprof_path_ *path, npuprof_path_ *aside)
{
    char number[16];
    int error = EEXIST;
    for (unsigned n = 1; error == EEXIST && n < 100000; n++) {
        *aside = *path;
        snprintf(number, sizeof number, ".%u", n);
        if (!npuprof_path_insert_(aside, number)) return EINVAL;
        error = npuprof_os_move_aside_(path->text, aside->text);
    }
    if (error) aside->text[0] = 0;
    return error;
}

/* Creates the file of a stream or a mapped arena. A file that is there already is moved aside: *aside is its
   new name, "" if there was none, and its mode is taken. Where a running process uses it, or this one for
   another arena, the new file has the pid in its name, then a number, too; with `apart`, in the child of a
   fork, always. Returns 0 or an errno value. */
static int npuprof_path_create_growing_(const npuprof_header_ *h, const char *pattern, bool apart, int *fd,
                                        npuprof_path_ *path, npuprof_path_ *aside)
{
    unsigned own = apart;
    aside->text[0] = 0;
    for (unsigned n = 0; n < 100000; n++) {
        if (!npuprof_path_expand_(h, pattern, n, path)) return EINVAL;
        if (!npuprof_path_insert_own_(h, path, path->is_own && own == 1 ? 0 : own)) return EINVAL;
        int error = npuprof_os_create_(path->text, fd);
        if (!error && aside->text[0]) npuprof_os_take_mode_(*fd, aside->text);
        if (error != EEXIST) return error;
        if (path->is_numbered) continue;
        error = npuprof_path_move_aside_(path, aside);
        if (error == EBUSY) own++;
        else if (error) return error;
    }
    return EEXIST;
}

/* Removes a file that was just created, and gives the one that was moved aside for it its name back. */
static void npuprof_path_discard_(int fd, const npuprof_path_ *path, const npuprof_path_ *aside)
{
    npuprof_os_discard_(fd, path->text);
    if (aside->text[0]) (void)npuprof_os_move_aside_(aside->text, path->text);
}

/* Creates a file and maps it as the arena's memory. pattern NULL: that of the last call. Returns 0 or an
   errno value. */
static int npuprof_path_map_arena_(const char *pattern, size_t bytes, bool apart, void **memory)
{
    npuprof_header_ h;
    npuprof_path_ path, aside;
    int fd = -1;
    void *mapped = NULL;
    if (pattern && strlen(pattern) >= sizeof npuprof_path_arena_.pattern) return EINVAL;
    if (pattern) npuprof_text_copy_(npuprof_path_arena_.pattern, sizeof npuprof_path_arena_.pattern, pattern);
    /* Why a header of its own: the arena that will have one does not exist yet. */
    memset(&h, 0, sizeof h);
    h.pid = npuprof_os_pid_();
    npuprof_os_names_(h.host, sizeof h.host, h.program, sizeof h.program);
    h.first.monotonic_ns = npuprof_os_monotonic_ns_();
    npuprof_os_clocks_(&h.first);
    int error = npuprof_path_create_growing_(&h, npuprof_path_arena_.pattern, apart, &fd, &path, &aside);
    if (error) return error;
    error = npuprof_os_map_arena_(fd, bytes, &mapped);
    if (error) {
        npuprof_path_discard_(fd, &path, &aside);
        return error;
    }
    npuprof_path_arena_.fd = fd;
    npuprof_path_arena_.file = npuprof_os_file_(fd);
    npuprof_path_arena_.bytes = bytes;
    *memory = mapped;
    return 0;
}
