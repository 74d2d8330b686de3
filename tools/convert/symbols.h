#pragma once   /* SPDX-License-Identifier: MIT */
#include "symbol_files.h"

/* From the addresses of automatic spans (NPUPROF_AUTO) to the names of their functions:
     1. npuprof_symbols_add_module_() and _add_address_(), for all that a trace has
     2. npuprof_symbols_resolve_() in resolve.h: looks for the files and names each address
     3. npuprof_symbols_name_of_(), for each place where an address is to be replaced
     4. npuprof_symbols_end_()
   An address without a function becomes MODULE+0xOFFSET, where the offset is the address in the ELF file, as
   nm and addr2line take it. Without a module it stays.
   Data: all is in memory of our own. Texts lie in blocks that end with the run. */

typedef struct npuprof_symbols_name_ {
    uint64_t address;
    const char *text;              /* NULL: it has no other name */
    size_t length;
    uint32_t id;                   /* for who replaces it: 0 at first */
    bool used, offset;             /* used: this place is taken; offset: the text is no function's */
} npuprof_symbols_name_;

typedef struct npuprof_symbols_block_ {
    struct npuprof_symbols_block_ *next;
    size_t bytes, used;            /* of the whole block; the head counts as used */
} npuprof_symbols_block_;

typedef struct npuprof_symbols_ {
    const npuprof_symbols_options_ *options;
    npuprof_symbols_module_ *modules;      /* later ones came later to where they are */
    size_t module_count, module_places;
    npuprof_symbols_name_ *names;          /* a hash table of a power of two places */
    size_t name_count, name_places;
    npuprof_symbols_block_ *blocks;
} npuprof_symbols_;

/* Memory for a text until the end. NULL: there is none. */
static char *npuprof_symbols_room_(npuprof_symbols_ *s, size_t bytes)
{
    npuprof_symbols_block_ *b = s->blocks;
    if (!b || bytes > b->bytes - b->used) {
        const size_t size = sizeof *b + (bytes > 1 << 16 ? bytes : 1 << 16);
        b = (npuprof_symbols_block_ *)npuprof_os_memory_(size);
        if (!b) return NULL;
        b->next = s->blocks;
        b->bytes = size;
        b->used = sizeof *b;
        s->blocks = b;
    }
    b->used += bytes;
    return (char *)b + b->used - bytes;
}

/* Makes an array larger. False: no memory. */
static bool npuprof_symbols_grow_(void **array, size_t *places, size_t bytes)
{
    const size_t more = *places ? *places * 2 : 256;
    void *const grown = npuprof_os_memory_(more * bytes);
    if (!grown) return false;
    if (*array) memcpy(grown, *array, *places * bytes);
    if (*array) npuprof_os_unmap_(*array, *places * bytes);
    *array = grown;
    *places = more;
    return true;
}

/* The value of a hex digit, or -1. */
static int npuprof_symbols_digit_(char c)
{
    if (c >= '0' && c <= '9') return c - '0';
    return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

/* Reads 0x and 1 to 16 hex digits in lower case. False: the text is something else. */
static bool npuprof_symbols_address_(const char *text, size_t length, uint64_t *address)
{
    if (length < 3 || length > 18 || text[0] != '0' || text[1] != 'x') return false;
    *address = 0;
    for (size_t i = 2; i < length; i++) {
        const int digit = npuprof_symbols_digit_(text[i]);
        if (digit < 0) return false;
        *address = *address << 4 | (uint64_t)digit;
    }
    return true;
}

/* Adds a module: where it was, and its build id in hex. False: it cannot be used, or there is no memory. */
static bool npuprof_symbols_add_module_(npuprof_symbols_ *s, const char *path, size_t length,
                                        const char *build, size_t digits, const uint64_t places[3])
{
    void *list = s->modules;
    if (length >= NPUPROF_SYMBOLS_PATH_ || memchr(path, 0, length)) return false;
    if (digits % 2 || digits > 2 * NPUPROF_SYMBOLS_BUILD_MOST_) return false;
    const bool is_full = s->module_count == s->module_places;
    if (is_full && !npuprof_symbols_grow_(&list, &s->module_places, sizeof *s->modules)) return false;
    s->modules = (npuprof_symbols_module_ *)list;
    npuprof_symbols_module_ *const m = s->modules + s->module_count;
    char *const kept = npuprof_symbols_room_(s, length + 1);
    if (!kept) return false;
    memcpy(kept, path, length);
    kept[length] = 0;
    m->path = kept;
    m->build_bytes = digits / 2;
    for (size_t i = 0; i < digits; i += 2) {
        const int high = npuprof_symbols_digit_(build[i]), low = npuprof_symbols_digit_(build[i + 1]);
        if (high < 0 || low < 0) return false;
        m->build[i / 2] = (uint8_t)(high << 4 | low);
    }
    m->bias = places[0];
    m->start = places[1];
    m->end = places[2];
    s->module_count++;
    return true;
}

/* The place of an address in the hash table: its own, or the free one where it belongs. */
static npuprof_symbols_name_ *npuprof_symbols_place_(const npuprof_symbols_ *s, uint64_t address)
{
    const size_t mask = s->name_places - 1;
    size_t i = (size_t)npuprof_hash_mix_(address) & mask;
    while (s->names[i].used && s->names[i].address != address) i = (i + 1) & mask;
    return s->names + i;
}

/* The table of addresses with twice the places. False: no memory. */
static bool npuprof_symbols_rehash_(npuprof_symbols_ *s)
{
    const npuprof_symbols_ old = *s;
    s->name_places = old.name_places ? old.name_places * 2 : 1024;
    s->names = (npuprof_symbols_name_ *)npuprof_os_memory_(s->name_places * sizeof *s->names);
    if (!s->names) {
        *s = old;
        return false;
    }
    for (size_t i = 0; i < old.name_places; i++)
        if (old.names[i].used) *npuprof_symbols_place_(s, old.names[i].address) = old.names[i];
    if (old.names) npuprof_os_unmap_(old.names, old.name_places * sizeof *s->names);
    return true;
}

/* Adds an address, once. False: no memory. */
static bool npuprof_symbols_add_address_(npuprof_symbols_ *s, uint64_t address)
{
    if (s->name_count * 2 >= s->name_places && !npuprof_symbols_rehash_(s)) return false;
    npuprof_symbols_name_ *const name = npuprof_symbols_place_(s, address);
    s->name_count += !name->used;
    name->used = true;
    name->address = address;
    return true;
}

/* The name of an address that was added. NULL: it has none. */
static npuprof_symbols_name_ *npuprof_symbols_name_of_(const npuprof_symbols_ *s, uint64_t address)
{
    npuprof_symbols_name_ *const name = s->name_places ? npuprof_symbols_place_(s, address) : NULL;
    return name && name->used && name->text ? name : NULL;
}

static void npuprof_symbols_end_(npuprof_symbols_ *s)
{
    for (npuprof_symbols_block_ *b = s->blocks, *next; b; b = next) {
        next = b->next;
        npuprof_os_unmap_(b, b->bytes);
    }
    if (s->modules) npuprof_os_unmap_(s->modules, s->module_places * sizeof *s->modules);
    if (s->names) npuprof_os_unmap_(s->names, s->name_places * sizeof *s->names);
    memset(s, 0, sizeof *s);
}
