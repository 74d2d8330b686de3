#pragma once   /* SPDX-License-Identifier: MIT */
#include "api.h"

/* The ELF file of a firmware: the texts and call sites that its records refer to by address, and its build
   id. 32 and 64 bits, both byte orders. Every offset of the file is checked before it is followed. Nothing is
   copied but the addresses of the call sites, which go into memory of our own: the caller unmaps `sites`. */

typedef struct npuprof_elf_ {
    const uint8_t *bytes;
    size_t count;                  /* of the bytes; 0: there is no ELF file */
    bool big, wide;                /* big-endian; 64 bits */
    bool avr;                      /* see npuprof_elf_data_address_ */
    uint64_t *sites;               /* addresses of the call sites, ascending; NULL if it has no symbols */
    size_t site_count, sites_bytes;
} npuprof_elf_;

typedef struct npuprof_elf_section_info_ {
    uint64_t name, type, flags, start, bytes, link;   /* type 0: its bytes are not in the file; name: where
                                                         it is in the section of names */
    const uint8_t *at;
} npuprof_elf_section_info_;

enum { NPUPROF_ELF_PROGBITS_ = 1, NPUPROF_ELF_SYMTAB_ = 2, NPUPROF_ELF_NOTE_ = 7, NPUPROF_ELF_NOBITS_ = 8,
       NPUPROF_ELF_DYNSYM_ = 11, NPUPROF_ELF_ALLOC_ = 2, NPUPROF_ELF_ARM_ = 40, NPUPROF_ELF_AVR_ = 83 };

static uint64_t npuprof_elf_number_(const npuprof_elf_ *elf, const uint8_t *p, unsigned bytes)
{
    uint64_t v = 0;
    for (unsigned i = 0; i < bytes; i++) v = v << 8 | p[elf->big ? i : bytes - 1 - i];
    return v;
}

/* False: it is no ELF file. */
static bool npuprof_elf_open_(npuprof_elf_ *elf, const uint8_t *bytes, size_t count)
{
    memset(elf, 0, sizeof *elf);
    if (count < 64 || memcmp(bytes, "\177ELF", 4) != 0) return false;
    elf->bytes = bytes;
    elf->count = count;
    elf->wide = bytes[4] == 2;
    elf->big = bytes[5] == 2;
    elf->avr = npuprof_elf_number_(elf, bytes + 18, 2) == NPUPROF_ELF_AVR_;
    return true;
}

/* Reads the head of section i. False: there are no more sections. */
static bool npuprof_elf_section_(const npuprof_elf_ *elf, uint64_t i, npuprof_elf_section_info_ *out)
{
    if (!elf->count) return false;
    const unsigned word = elf->wide ? 8 : 4;
    const uint64_t table = npuprof_elf_number_(elf, elf->bytes + (elf->wide ? 40 : 32), word);
    const uint64_t size = npuprof_elf_number_(elf, elf->bytes + (elf->wide ? 58 : 46), 2);
    const uint64_t sections = npuprof_elf_number_(elf, elf->bytes + (elf->wide ? 60 : 48), 2);
    if (i >= sections || size < (elf->wide ? 64 : 40) || table > elf->count) return false;
    if ((i + 1) * size > elf->count - table) return false;
    const uint8_t *const s = elf->bytes + table + i * size;
    const uint64_t offset = npuprof_elf_number_(elf, s + 8 + 2 * word, word);
    out->name = npuprof_elf_number_(elf, s, 4);
    out->type = npuprof_elf_number_(elf, s + 4, 4);
    out->flags = npuprof_elf_number_(elf, s + 8, word);
    out->start = npuprof_elf_number_(elf, s + 8 + word, word);
    out->bytes = npuprof_elf_number_(elf, s + 8 + 3 * word, word);
    out->link = npuprof_elf_number_(elf, s + 8 + 4 * word, 4);
    if (offset > elf->count || out->bytes > elf->count - offset) out->type = 0;
    else out->at = elf->bytes + offset;
    return true;
}

/* A pointer's value as an address of the file. Why: data and code of an AVR both begin at 0, and the file
   adds this to the addresses of data. */
static uint64_t npuprof_elf_data_address_(const npuprof_elf_ *elf, uint64_t pointer)
{
    return elf->avr ? pointer | 0x800000 : pointer;
}

/* The bytes at an address of the target; *left: how many the section has from there on. NULL: they are not in
   the file.
   Why sections, not segments: the names may lie in a section that is not loaded. Such a section counts only
   if it has an address; those of debuggers have none. */
static const uint8_t *npuprof_elf_bytes_at_(const npuprof_elf_ *elf, uint64_t pointer, uint64_t *left)
{
    const uint64_t address = npuprof_elf_data_address_(elf, pointer);
    npuprof_elf_section_info_ s;
    for (uint64_t i = 0; npuprof_elf_section_(elf, i, &s); i++) {
        if (s.type != NPUPROF_ELF_PROGBITS_ || (!(s.flags & NPUPROF_ELF_ALLOC_) && !s.start)) continue;
        if (address < s.start || address - s.start >= s.bytes) continue;
        *left = s.bytes - (address - s.start);
        return s.at + (address - s.start);
    }
    return NULL;
}

/* The text at an address, and its length. NULL: there is none. */
static const char *npuprof_elf_text_at_(const npuprof_elf_ *elf, uint64_t pointer, size_t *length)
{
    uint64_t left;
    const char *const text = (const char *)npuprof_elf_bytes_at_(elf, pointer, &left);
    const char *const end = text ? (const char *)memchr(text, 0, (size_t)left) : NULL;
    if (!end) return NULL;
    *length = (size_t)(end - text);
    return text;
}

/* The GNU build id, and how many *bytes it has. NULL: the file has none. */
static const uint8_t *npuprof_elf_build_id_bytes_(const npuprof_elf_ *elf, size_t *bytes)
{
    npuprof_elf_section_info_ s;
    for (uint64_t i = 0; npuprof_elf_section_(elf, i, &s); i++) {
        if (s.type != NPUPROF_ELF_NOTE_) continue;
        for (uint64_t at = 0; at + NPUPROF_BUILD_NOTE_HEAD_ <= s.bytes;) {
            const uint8_t *const note = s.at + at;
            const uint64_t name = npuprof_elf_number_(elf, note, 4), start = 12 + (name + 3) / 4 * 4;
            const uint64_t size = npuprof_elf_number_(elf, note + 4, 4);
            const uint64_t type = npuprof_elf_number_(elf, note + 8, 4);
            if (start > s.bytes - at || size > s.bytes - at - start) break;
            *bytes = (size_t)size;
            if (name == 4 && type == 3 && size && memcmp(note + 12, "GNU", 4) == 0) return note + start;
            at += start + (size + 3) / 4 * 4;
        }
    }
    return NULL;
}

/* The first four bytes of the GNU build id, as a word of the target. False: the file has none. */
static bool npuprof_elf_build_id_(const npuprof_elf_ *elf, uint32_t *build)
{
    size_t bytes = 0;
    const uint8_t *const id = npuprof_elf_build_id_bytes_(elf, &bytes);
    if (!id || bytes < 4) return false;
    *build = (uint32_t)npuprof_elf_number_(elf, id, 4);
    return true;
}

static bool npuprof_elf_address_before_(const void *a, const void *b)
{
    return *(const uint64_t *)a < *(const uint64_t *)b;
}

static void npuprof_elf_sort_(uint64_t *list, size_t count)
{
    npuprof_heap_sort_(list, sizeof *list, count, npuprof_elf_address_before_);
}

/* Is it the symbol of a call site? C++ puts more around the name. */
static bool npuprof_elf_is_site_symbol_(const char *name, const char *end)
{
    static const char word[] = "npuprof_site_";
    for (; name + sizeof word - 1 <= end && *name; name++)
        if (memcmp(name, word, sizeof word - 1) == 0) return true;
    return false;
}

/* Collects the addresses of the call sites from a symbol table. False: no memory. */
static bool npuprof_elf_collect_symbols_(npuprof_elf_ *elf, const npuprof_elf_section_info_ *s,
                                         const npuprof_elf_section_info_ *names)
{
    const unsigned size = elf->wide ? 24 : 16, word = elf->wide ? 8 : 4;
    const char *const text = (const char *)names->at, *const end = text + names->bytes;
    elf->sites_bytes = (size_t)(s->bytes / size + 1) * 8;
    elf->sites = (uint64_t *)npuprof_os_memory_(elf->sites_bytes);
    if (!elf->sites) return false;
    for (const uint8_t *symbol = s->at; symbol + size <= s->at + s->bytes; symbol += size) {
        const uint64_t name = npuprof_elf_number_(elf, symbol, 4);
        if (name >= names->bytes || !npuprof_elf_is_site_symbol_(text + name, end)) continue;
        elf->sites[elf->site_count++] = npuprof_elf_number_(elf, symbol + word, word);
    }
    npuprof_elf_sort_(elf->sites, elf->site_count);
    return true;
}

/* Collects the addresses of the call sites, if the file has symbols. False: no memory. */
static bool npuprof_elf_collect_sites_(npuprof_elf_ *elf)
{
    npuprof_elf_section_info_ s, names;
    for (uint64_t i = 0; npuprof_elf_section_(elf, i, &s); i++) {
        if (s.type != NPUPROF_ELF_SYMTAB_ || !s.bytes) continue;
        if (npuprof_elf_section_(elf, s.link, &names) && names.type)
            return npuprof_elf_collect_symbols_(elf, &s, &names);
    }
    return true;
}

/* Is there a call site at this address, as far as the file's symbols say? */
static bool npuprof_elf_may_be_site_(const npuprof_elf_ *elf, uint64_t pointer)
{
    const uint64_t address = npuprof_elf_data_address_(elf, pointer);
    size_t from = 0, to = elf->site_count;
    while (to - from > 1) {
        const size_t middle = from + (to - from) / 2;
        if (elf->sites[middle] <= address) from = middle;
        else to = middle;
    }
    return !elf->site_count || elf->sites[from] == address;
}

/* The name of a section. NULL: the file does not say it. */
static const char *npuprof_elf_section_name_(const npuprof_elf_ *elf, const npuprof_elf_section_info_ *s)
{
    const uint64_t number = npuprof_elf_number_(elf, elf->bytes + (elf->wide ? 62 : 50), 2);
    npuprof_elf_section_info_ names;
    if (!npuprof_elf_section_(elf, number, &names) || !names.type || s->name >= names.bytes) return NULL;
    const char *const name = (const char *)names.at + s->name;
    return memchr(name, 0, (size_t)(names.bytes - s->name)) ? name : NULL;
}

/* A section of call sites that the user named (NPUPROF_NAMES_SECTION) and the linker put into the target's
   memory, because no line of its script keeps it out: its bytes, and *name. 0: there is none.
   Why by the dot: the compiler's own sections begin with one. */
static uint64_t npuprof_elf_loaded_names_(const npuprof_elf_ *elf, const char **name)
{
    npuprof_elf_section_info_ s;
    for (uint64_t i = 0; elf->site_count && npuprof_elf_section_(elf, i, &s); i++) {
        const uint64_t site = elf->sites[0];
        if (!(s.flags & NPUPROF_ELF_ALLOC_) || site < s.start || site - s.start >= s.bytes) continue;
        *name = npuprof_elf_section_name_(elf, &s);
        return *name && **name != '.' ? s.bytes : 0;
    }
    return 0;
}
