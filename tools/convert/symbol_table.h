#pragma once   /* SPDX-License-Identifier: MIT */
#include "api.h"
#include "file.h"
#include "elf.h"
#include <stdio.h>
#include <sys/stat.h>

/* The functions of an ELF file by address: those of its .symtab, or of its .dynsym if there is none.
   The list is in memory of our own. The names stay in the file, which is in memory, too. Every number of the
   file is checked: a symbol whose name lies outside of its section, or does not end there, is left out. */

typedef struct npuprof_symbols_function_ {
    uint64_t start, bytes;
    const char *name;
    uint32_t length;               /* of the name */
    uint32_t rank;                 /* of several names of one function, that of the lowest rank is taken */
} npuprof_symbols_function_;

typedef struct npuprof_symbols_table_ {
    npuprof_elf_ elf;
    void *file;                    /* NULL: there is none */
    size_t file_bytes;
    npuprof_symbols_function_ *list;   /* ascending by start, then rank */
    size_t count, list_bytes;
} npuprof_symbols_table_;

enum { NPUPROF_SYMBOLS_NAME_MOST_ = 1 << 16, NPUPROF_SYMBOLS_BUILD_MOST_ = 64 };

static void npuprof_symbols_close_table_(npuprof_symbols_table_ *t)
{
    if (t->list) npuprof_os_unmap_(t->list, t->list_bytes);
    npuprof_load_free_(t->file, t->file_bytes);
    memset(t, 0, sizeof *t);
}

/* Does an ELF file begin there? 0, an errno value, or -1: no. Only a regular file is opened. Why: to open a
   device or a pipe may do something. */
static int npuprof_symbols_look_into_(const char *path)
{
    struct stat st;
    char head[4];
    if (stat(path, &st) != 0) return errno;
    if ((st.st_mode & S_IFMT) != S_IFREG) return EINVAL;
    if (st.st_size < 64) return -1;
    FILE *const file = fopen(path, "rb");
    if (!file) return errno;
    const bool is_elf = fread(head, 1, sizeof head, file) == sizeof head &&
        memcmp(head, "\177ELF", sizeof head) == 0;
    fclose(file);
    return is_elf ? 0 : -1;
}

/* Reads an ELF file. 0, an errno value, or -1: it is no ELF file.
   Why its first bytes before the rest: a stranger's trace may name any file of this machine. */
static int npuprof_symbols_open_table_(npuprof_symbols_table_ *t, const char *path)
{
    memset(t, 0, sizeof *t);
    int error = npuprof_symbols_look_into_(path);
    if (!error) error = npuprof_load_read_file_(path, &t->file, &t->file_bytes);
    if (error) return error;
    if (t->file && npuprof_elf_open_(&t->elf, (const uint8_t *)t->file, t->file_bytes)) return 0;
    npuprof_symbols_close_table_(t);
    return -1;
}

static bool npuprof_symbols_function_before_(const void *a, const void *b)
{
    const npuprof_symbols_function_ *const f = (const npuprof_symbols_function_ *)a;
    const npuprof_symbols_function_ *const g = (const npuprof_symbols_function_ *)b;
    if (f->start != g->start) return f->start < g->start;
    if (f->rank != g->rank) return f->rank < g->rank;
    const uint32_t least = f->length < g->length ? f->length : g->length;
    const int order = memcmp(f->name, g->name, least);
    return order ? order < 0 : f->length < g->length;
}

/* Where the linker puts a function. Why: in an address of Thumb code, bit 0 is the mode. */
static uint64_t npuprof_symbols_code_address_(const npuprof_elf_ *elf, uint64_t address)
{
    const bool is_arm = npuprof_elf_number_(elf, elf->bytes + 18, 2) == NPUPROF_ELF_ARM_;
    return is_arm ? address & ~(uint64_t)1 : address;
}

/* Names for the outside before those of the file alone, few underscores before many. */
static uint32_t npuprof_symbols_rank_(unsigned binding, const char *name)
{
    static const uint32_t by_binding[] = { 2, 0, 1 };
    uint32_t rank = (binding < 3 ? by_binding[binding] : 3) * 256;
    for (int i = 0; i < 255 && name[i] == '_'; i++) rank++;
    return rank;
}

/* Decodes a symbol. False: it is no function of this file, or damaged. */
static bool npuprof_symbols_decode_(const npuprof_elf_ *elf, const uint8_t *symbol,
                                    const npuprof_elf_section_info_ *names, npuprof_symbols_function_ *out)
{
    const bool wide = elf->wide;
    const unsigned word = wide ? 8 : 4, info = symbol[wide ? 4 : 12], type = info & 15;
    const uint64_t name = npuprof_elf_number_(elf, symbol, 4);
    const uint64_t section = npuprof_elf_number_(elf, symbol + (wide ? 6 : 14), 2);
    if ((type != 2 && type != 10) || !section || name >= names->bytes) return false;
    out->name = (const char *)names->at + name;
    const char *const end = (const char *)memchr(out->name, 0, (size_t)(names->bytes - name));
    if (!end || end == out->name || end - out->name > NPUPROF_SYMBOLS_NAME_MOST_) return false;
    /* A version, as in name@@VERSION, is left out. */
    const char *const at = (const char *)memchr(out->name + 1, '@', (size_t)(end - out->name) - 1);
    out->length = (uint32_t)((at ? at : end) - out->name);
    out->start = npuprof_symbols_code_address_(elf, npuprof_elf_number_(elf, symbol + (wide ? 8 : 4), word));
    out->bytes = npuprof_elf_number_(elf, symbol + (wide ? 16 : 8), word);
    out->rank = npuprof_symbols_rank_(info >> 4, out->name);
    return true;
}

/* Collects the functions of the first table of this type. False: no memory. */
static bool npuprof_symbols_collect_type_(npuprof_symbols_table_ *t, uint64_t type)
{
    const size_t size = t->elf.wide ? 24 : 16;
    npuprof_elf_section_info_ s, names;
    uint64_t i = 0;
    while (npuprof_elf_section_(&t->elf, i, &s) && (s.type != type || s.bytes < size)) i++;
    if (!npuprof_elf_section_(&t->elf, i, &s) || !npuprof_elf_section_(&t->elf, s.link, &names)) return true;
    if (!names.type || names.type == NPUPROF_ELF_NOBITS_) return true;
    t->list_bytes = (size_t)(s.bytes / size) * sizeof *t->list;
    t->list = (npuprof_symbols_function_ *)npuprof_os_memory_(t->list_bytes);
    if (!t->list) return false;
    for (uint64_t at = 0; at + size <= s.bytes; at += size)
        t->count += npuprof_symbols_decode_(&t->elf, s.at + at, &names, t->list + t->count);
    if (!t->count) {
        npuprof_os_unmap_(t->list, t->list_bytes);
        t->list = NULL;
    }
    npuprof_heap_sort_(t->list, sizeof *t->list, t->count, npuprof_symbols_function_before_);
    return true;
}

/* Collects the functions. all: those of .dynsym, too, if there is no .symtab. */
static bool npuprof_symbols_collect_(npuprof_symbols_table_ *t, bool all)
{
    if (t->count) return true;
    return npuprof_symbols_collect_type_(t, NPUPROF_ELF_SYMTAB_) &&
        (t->count || !all || npuprof_symbols_collect_type_(t, NPUPROF_ELF_DYNSYM_));
}

/* The function at an address of the file. NULL: none is there. */
static const npuprof_symbols_function_ *npuprof_symbols_find_(const npuprof_symbols_table_ *t,
                                                              uint64_t address)
{
    size_t from = 0, to = t->count;
    if (!to) return NULL;
    const uint64_t wanted = npuprof_symbols_code_address_(&t->elf, address);
    while (from < to) {
        const size_t middle = from + (to - from) / 2;
        if (t->list[middle].start <= wanted) from = middle + 1;
        else to = middle;
    }
    if (!from) return NULL;
    const npuprof_symbols_function_ *found = t->list + from - 1;
    while (found > t->list && found[-1].start == found->start) found--;
    for (; found < t->list + from; found++)
        if (wanted == found->start || wanted - found->start < found->bytes) return found;
    return NULL;
}
