#pragma once   /* SPDX-License-Identifier: MIT */
#include "api.h"

/* ---- NPUPROF_LAYOUT_COMPACT and _PARTS: made into an NPUPROF_LAYOUT_ARENA, with the names from the target's ELF file */

typedef struct npuprof_elf_ {
    const uint8_t *bytes;
    size_t count;
    bool big, wide, avr;
    uint64_t *sites;               /* addresses of the call sites, ascending, if its symbols say them */
    size_t site_count, sites_bytes;
} npuprof_elf_;

static uint64_t npuprof_elf_number_(const npuprof_elf_ *elf, const uint8_t *p, unsigned bytes)
{
    uint64_t v = 0;
    for (unsigned i = 0; i < bytes; i++) v = v << 8 | p[elf->big ? i : bytes - 1 - i];
    return v;
}
typedef struct npuprof_elf_section_info_ { uint64_t type, flags, start, bytes, link; const uint8_t *at; } npuprof_elf_section_info_;
enum { NPUPROF_ELF_PROGBITS_ = 1, NPUPROF_ELF_SYMTAB_ = 2, NPUPROF_ELF_NOTE_ = 7 };
/* Section i, if its bytes are in the file. False: there are no more. type 0: not in the file. */
static bool npuprof_elf_section_(const npuprof_elf_ *elf, uint64_t i, npuprof_elf_section_info_ *out)
{
    if (!elf->count) return false;
    const unsigned word = elf->wide ? 8 : 4;
    const uint64_t table = npuprof_elf_number_(elf, elf->bytes + (elf->wide ? 40 : 32), word);
    const uint64_t size = npuprof_elf_number_(elf, elf->bytes + (elf->wide ? 58 : 46), 2), sections = npuprof_elf_number_(elf, elf->bytes + (elf->wide ? 60 : 48), 2);
    if (i >= sections || size < (elf->wide ? 64 : 40) || table > elf->count || (i + 1) * size > elf->count - table) return false;
    const uint8_t *s = elf->bytes + table + i * size;
    const uint64_t offset = npuprof_elf_number_(elf, s + 8 + 2 * word, word);
    out->type = npuprof_elf_number_(elf, s + 4, 4);
    out->flags = npuprof_elf_number_(elf, s + 8, word);
    out->start = npuprof_elf_number_(elf, s + 8 + word, word);
    out->bytes = npuprof_elf_number_(elf, s + 8 + 3 * word, word);
    out->link = npuprof_elf_number_(elf, s + 8 + 4 * word, 4);
    if (offset > elf->count || out->bytes > elf->count - offset) out->type = 0;
    else out->at = elf->bytes + offset;
    return true;
}
/* The bytes at an address of the target, and how many there are. NULL: not in the file. Sections, not segments: the names may lie in
   one that is not loaded. Such a one counts only at an address: those of debuggers have none. */
static const uint8_t *npuprof_elf_bytes_at_(const npuprof_elf_ *elf, uint64_t address, uint64_t *room)
{
    npuprof_elf_section_info_ s;
    /* Why: data and code of an AVR have addresses of their own; the file tells them apart so. */
    if (elf->avr) address |= 0x800000;
    for (uint64_t i = 0; npuprof_elf_section_(elf, i, &s); i++) {
        if (s.type != NPUPROF_ELF_PROGBITS_ || (!(s.flags & 2) && !s.start) || address < s.start || address - s.start >= s.bytes) continue;
        *room = s.bytes - (address - s.start);
        return s.at + (address - s.start);
    }
    return NULL;
}
/* The text at an address, and its length; NULL: there is none. */
static const char *npuprof_elf_text_at_(const npuprof_elf_ *elf, uint64_t address, size_t *length)
{
    uint64_t room;
    const char *text = (const char *)npuprof_elf_bytes_at_(elf, address, &room);
    const char *end = text ? (const char *)memchr(text, 0, (size_t)room) : NULL;
    if (!end) return NULL;
    *length = (size_t)(end - text);
    return text;
}
/* The first four bytes of its GNU build id, as a word of the target. False: it has none. */
static bool npuprof_elf_build_id_(const npuprof_elf_ *elf, uint32_t *build)
{
    npuprof_elf_section_info_ s;
    for (uint64_t i = 0; npuprof_elf_section_(elf, i, &s); i++) {
        if (s.type != NPUPROF_ELF_NOTE_ || s.bytes < NPUPROF_BUILD_NOTE_HEAD_ + 4 || memcmp(s.at + 12, "GNU", 4) != 0) continue;
        if (npuprof_elf_number_(elf, s.at, 4) != 4 || npuprof_elf_number_(elf, s.at + 8, 4) != 3) continue;
        *build = (uint32_t)npuprof_elf_number_(elf, s.at + NPUPROF_BUILD_NOTE_HEAD_, 4);
        return true;
    }
    return false;
}
static bool npuprof_elf_address_before_(const void *a, const void *b) { return *(const uint64_t *)a < *(const uint64_t *)b; }

static void npuprof_elf_sort_(uint64_t *list, size_t count)
{
    npuprof_heap_sort_(list, sizeof *list, count, npuprof_elf_address_before_);
}

/* Does the name of a symbol, up to its NUL, say that it is a call site? C++ has more around that. */
static bool npuprof_elf_is_site_symbol_(const char *name, const char *end)
{
    static const char word[] = "npuprof_site_";
    for (; name + sizeof word - 1 <= end && *name; name++)
        if (memcmp(name, word, sizeof word - 1) == 0) return true;
    return false;
}
/* Collects the addresses of the call sites. False: no memory. */
static bool npuprof_elf_collect_sites_(npuprof_elf_ *elf)
{
    npuprof_elf_section_info_ s, names;
    const unsigned size = elf->wide ? 24 : 16;
    for (uint64_t i = 0; npuprof_elf_section_(elf, i, &s); i++) {
        if (s.type != NPUPROF_ELF_SYMTAB_ || elf->sites || !s.bytes || !npuprof_elf_section_(elf, s.link, &names) || !names.type) continue;
        elf->sites_bytes = (size_t)(s.bytes / size + 1) * 8;
        elf->sites = (uint64_t *)npuprof_os_memory_(elf->sites_bytes);
        if (!elf->sites) return false;
        for (const uint8_t *symbol = s.at; symbol + size <= s.at + s.bytes; symbol += size) {
            const uint64_t name = npuprof_elf_number_(elf, symbol, 4);
            if (name < names.bytes && npuprof_elf_is_site_symbol_((const char *)names.at + name, (const char *)names.at + names.bytes))
                elf->sites[elf->site_count++] = npuprof_elf_number_(elf, symbol + (elf->wide ? 8 : 4), elf->wide ? 8 : 4);
        }
    }
    npuprof_elf_sort_(elf->sites, elf->site_count);
    return true;
}
/* False: not an ELF file. */
static bool npuprof_elf_open_(npuprof_elf_ *elf, const uint8_t *bytes, size_t count)
{
    memset(elf, 0, sizeof *elf);
    if (count < 64 || memcmp(bytes, "\177ELF", 4) != 0) return false;
    elf->bytes = bytes;
    elf->count = count;
    elf->wide = bytes[4] == 2;
    elf->big = bytes[5] == 2;
    elf->avr = npuprof_elf_number_(elf, bytes + 18, 2) == 83;
    return true;
}
