#pragma once   /* SPDX-License-Identifier: MIT */
#include "symbol_table.h"
#include <stdio.h>

/* Which file has the names of a module: a program or shared library that ran. In this order, the first one
   with a .symtab:
     1. a file that the user named (--symbols)
     2. the module itself, where it was when it ran, or below a folder of --debug-dir
     3. DIR/.build-id/ab/cdef.debug, for DIR of --debug-dir and /usr/lib/debug
     4. the file of its .gnu_debuglink, beside it, in .debug beside it, or below DIR; its checksum must fit
     5. the module itself with its .dynsym
   A file with another build id than the recorded one is passed over. */

enum { NPUPROF_SYMBOLS_OPTIONS_ = 16, NPUPROF_SYMBOLS_PATH_ = 4096 };

/* Where to look, and who is told what could not be found: `say` gets a sentence about a file. */
typedef struct npuprof_symbols_options_ {
    const char *folders[NPUPROF_SYMBOLS_OPTIONS_], *files[NPUPROF_SYMBOLS_OPTIONS_];
    size_t folder_count, file_count;
    void (*say)(const char *path, const char *sentence);
} npuprof_symbols_options_;

/* Reads --symbols FILE or --debug-dir DIR at argv[*i]. False: it is another option, or there are too many. */
static bool npuprof_symbols_read_option_(npuprof_symbols_options_ *o, char **argv, int argc, int *i)
{
    const bool is_file = strcmp(argv[*i], "--symbols") == 0;
    size_t *const count = is_file ? &o->file_count : &o->folder_count;
    if (!is_file && strcmp(argv[*i], "--debug-dir") != 0) return false;
    if (*i + 1 >= argc || *count == NPUPROF_SYMBOLS_OPTIONS_) return false;
    (is_file ? o->files : o->folders)[(*count)++] = argv[++*i];
    return true;
}

typedef struct npuprof_symbols_module_ {
    const char *path;              /* ends with NUL */
    uint8_t build[NPUPROF_SYMBOLS_BUILD_MOST_];
    size_t build_bytes;            /* 0: it has no build id, or it is not known */
    uint64_t bias, start, end;     /* an address of the file + bias is one of the process, below end */
    struct npuprof_symbols_opened_ *opened;    /* NULL: not looked for yet */
    uint32_t unnamed;              /* so many addresses stayed without a name */
} npuprof_symbols_module_;

/* What the search for a module has found. It stays for the whole process.
   Why: npuprof-top asks each second. */
typedef struct npuprof_symbols_opened_ {
    struct npuprof_symbols_opened_ *next;
    char path[NPUPROF_SYMBOLS_PATH_];
    uint8_t build[NPUPROF_SYMBOLS_BUILD_MOST_];
    size_t build_bytes;
    npuprof_symbols_table_ table;  /* empty: there are no names */
    const char *why;               /* some functions have no name */
    bool told;                     /* that was said already */
} npuprof_symbols_opened_;

static npuprof_symbols_opened_ *npuprof_symbols_first_opened_;

/* The search for one module. */
typedef struct npuprof_symbols_search_ {
    const npuprof_symbols_options_ *options;
    const npuprof_symbols_module_ *module;
    npuprof_symbols_table_ own;    /* the module itself, once it is found */
    int error;                     /* why it is not: an errno value, -1: no ELF file, -2: another build */
} npuprof_symbols_search_;

static const char *npuprof_symbols_base_name_(const char *path)
{
    const char *const slash = strrchr(path, '/');
    return slash ? slash + 1 : path;
}

/* Is it the build that ran? Without a recorded build id, any file is. */
static bool npuprof_symbols_same_build_(const npuprof_symbols_module_ *m, const npuprof_elf_ *elf)
{
    size_t bytes = 0;
    const uint8_t *const build = npuprof_elf_build_id_bytes_(elf, &bytes);
    if (!m->build_bytes) return true;
    return build && bytes == m->build_bytes && memcmp(build, m->build, bytes) == 0;
}

/* Opens a file and collects its functions, if it has a .symtab and is the build that ran. */
static bool npuprof_symbols_take_(npuprof_symbols_search_ *s, const char *path, npuprof_symbols_table_ *t)
{
    if (npuprof_symbols_open_table_(t, path) != 0) return false;
    if (npuprof_symbols_same_build_(s->module, &t->elf) && npuprof_symbols_collect_(t, false) && t->count)
        return true;
    npuprof_symbols_close_table_(t);
    return false;
}

/* Files that the user named. Without a build id, the name of the file decides. */
static bool npuprof_symbols_take_given_(npuprof_symbols_search_ *s, npuprof_symbols_table_ *t)
{
    const char *const name = npuprof_symbols_base_name_(s->module->path);
    for (size_t i = 0; i < s->options->file_count; i++) {
        const char *const path = s->options->files[i];
        if (!s->module->build_bytes && strcmp(npuprof_symbols_base_name_(path), name) != 0) continue;
        if (npuprof_symbols_take_(s, path, t)) return true;
    }
    return false;
}

/* Is it a path of another machine, as Windows has them? Why: a stranger's trace may name one, and the system
   would tell that machine who the user is. */
static bool npuprof_symbols_is_elsewhere_(const char *path)
{
    return (path[0] == '/' || path[0] == '\\') && (path[1] == '/' || path[1] == '\\');
}

/* Opens the module itself from this path, if it is not open yet. */
static void npuprof_symbols_open_own_(npuprof_symbols_search_ *s, const char *path)
{
    if (s->own.file) return;
    const int error = npuprof_symbols_open_table_(&s->own, path);
    if (error) {
        if (!s->error) s->error = error;
    } else if (!npuprof_symbols_same_build_(s->module, &s->own.elf)) {
        npuprof_symbols_close_table_(&s->own);
        s->error = -2;
    }
}

/* DIR, or the i-th of --debug-dir and the system's; NULL: there are no more. */
static const char *npuprof_symbols_folder_(const npuprof_symbols_search_ *s, size_t i)
{
    if (i < s->options->folder_count) return s->options->folders[i];
    return i == s->options->folder_count ? "/usr/lib/debug" : NULL;
}

static bool npuprof_symbols_take_own_(npuprof_symbols_search_ *s, npuprof_symbols_table_ *t)
{
    char path[2 * NPUPROF_SYMBOLS_PATH_];
    if (!npuprof_symbols_is_elsewhere_(s->module->path)) npuprof_symbols_open_own_(s, s->module->path);
    for (size_t i = 0; i < s->options->folder_count; i++) {
        const char *const folder = s->options->folders[i];
        snprintf(path, sizeof path, "%s/%s", folder, s->module->path);
        npuprof_symbols_open_own_(s, path);
        snprintf(path, sizeof path, "%s/%s", folder, npuprof_symbols_base_name_(s->module->path));
        npuprof_symbols_open_own_(s, path);
    }
    if (!s->own.file || !npuprof_symbols_collect_(&s->own, false) || !s->own.count) return false;
    *t = s->own;
    memset(&s->own, 0, sizeof s->own);
    return true;
}

static bool npuprof_symbols_take_by_build_(npuprof_symbols_search_ *s, npuprof_symbols_table_ *t)
{
    char digits[2 * NPUPROF_SYMBOLS_BUILD_MOST_ + 1] = "", path[2 * NPUPROF_SYMBOLS_PATH_];
    const char *folder;
    for (size_t i = 0; i < s->module->build_bytes; i++)
        snprintf(digits + 2 * i, 3, "%02x", (unsigned)s->module->build[i]);
    for (size_t i = 0; s->module->build_bytes > 1 && (folder = npuprof_symbols_folder_(s, i)) != NULL; i++) {
        snprintf(path, sizeof path, "%s/.build-id/%.2s/%s.debug", folder, digits, digits + 2);
        if (npuprof_symbols_take_(s, path, t)) return true;
    }
    return false;
}

/* Opens the file of a .gnu_debuglink, if its checksum fits. */
static bool npuprof_symbols_take_linked_(npuprof_symbols_search_ *s, const char *path, uint32_t crc,
                                         npuprof_symbols_table_ *t)
{
    if (!npuprof_symbols_take_(s, path, t)) return false;
    if (~npuprof_crc_add_(~(uint32_t)0, t->file, t->file_bytes) == crc) return true;
    npuprof_symbols_close_table_(t);
    return false;
}

/* The name in the module's .gnu_debuglink, and the checksum behind it. NULL: it has none. */
static const char *npuprof_symbols_link_(const npuprof_elf_ *elf, uint32_t *crc)
{
    npuprof_elf_section_info_ s;
    for (uint64_t i = 0; npuprof_elf_section_(elf, i, &s); i++) {
        if (s.type != NPUPROF_ELF_PROGBITS_) continue;
        const char *const section = npuprof_elf_section_name_(elf, &s), *const name = (const char *)s.at;
        if (!section || strcmp(section, ".gnu_debuglink") != 0) continue;
        const char *const end = (const char *)memchr(name, 0, (size_t)s.bytes);
        const size_t at = end ? (size_t)(end - name) / 4 * 4 + 4 : 0;
        if (!end || end == name || strchr(name, '/') || at + 4 > s.bytes) return NULL;
        *crc = (uint32_t)npuprof_elf_number_(elf, s.at + at, 4);
        return name;
    }
    return NULL;
}

static bool npuprof_symbols_take_by_link_(npuprof_symbols_search_ *s, npuprof_symbols_table_ *t)
{
    char path[3 * NPUPROF_SYMBOLS_PATH_];
    uint32_t crc = 0;
    const char *folder, *const name = s->own.file ? npuprof_symbols_link_(&s->own.elf, &crc) : NULL;
    const char *const own = s->module->path;
    const int folder_length = (int)(npuprof_symbols_base_name_(own) - own);
    if (!name) return false;
    for (int i = 0; i < 2; i++) {
        snprintf(path, sizeof path, "%.*s%s%s", folder_length, own, i ? ".debug/" : "", name);
        if (npuprof_symbols_take_linked_(s, path, crc, t)) return true;
    }
    for (size_t i = 0; (folder = npuprof_symbols_folder_(s, i)) != NULL; i++) {
        snprintf(path, sizeof path, "%s/%.*s%s", folder, folder_length, own, name);
        if (npuprof_symbols_take_linked_(s, path, crc, t)) return true;
        snprintf(path, sizeof path, "%s/%s", folder, name);
        if (npuprof_symbols_take_linked_(s, path, crc, t)) return true;
    }
    return false;
}

/* Looks for the names of a module. Fills *t, which stays empty if there are none, and returns why some
   functions have no name. */
static const char *npuprof_symbols_look_(const npuprof_symbols_options_ *options,
                                         const npuprof_symbols_module_ *module, npuprof_symbols_table_ *t)
{
    npuprof_symbols_search_ s;
    memset(&s, 0, sizeof s);
    s.options = options;
    s.module = module;
    if (npuprof_symbols_take_given_(&s, t) || npuprof_symbols_take_own_(&s, t) ||
        npuprof_symbols_take_by_build_(&s, t) || npuprof_symbols_take_by_link_(&s, t)) {
        npuprof_symbols_close_table_(&s.own);
        return "its symbols do not name";
    }
    if (s.own.file) {
        npuprof_symbols_collect_(&s.own, true);
        *t = s.own;
        return "it is stripped, no debug file of this build is there, and it exports no names for";
    }
    return s.error == -2 ? "the file there is another build than the one that ran, and no other has names for"
         : s.error == -1 ? "it is no ELF file, so there are no names for"
                         : "it cannot be read, and no debug file of this build is there, for";
}

/* The names of a module: as found before, or looked for now. NULL: no memory. */
static npuprof_symbols_opened_ *npuprof_symbols_opened_of_(const npuprof_symbols_options_ *options,
                                                           const npuprof_symbols_module_ *m)
{
    npuprof_symbols_opened_ *o = npuprof_symbols_first_opened_;
    while (o && (strcmp(o->path, m->path) != 0 || o->build_bytes != m->build_bytes ||
                 memcmp(o->build, m->build, m->build_bytes) != 0))
        o = o->next;
    if (o) return o;
    o = (npuprof_symbols_opened_ *)npuprof_os_memory_(sizeof *o);
    if (!o) return NULL;
    o->next = npuprof_symbols_first_opened_;
    npuprof_symbols_first_opened_ = o;
    snprintf(o->path, sizeof o->path, "%s", m->path);
    memcpy(o->build, m->build, m->build_bytes);
    o->build_bytes = m->build_bytes;
    o->why = npuprof_symbols_look_(options, m, &o->table);
    return o;
}
