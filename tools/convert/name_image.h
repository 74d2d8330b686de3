#pragma once   /* SPDX-License-Identifier: MIT */
#include "loaded.h"
#include "resolve.h"

/* The names of functions into the loaded image: a copy of its table with the new texts behind the others, and
   call sites that lead to them. So all outputs and reports have the names, and know nothing of this.
   Call it after npuprof_load...(). The image's file stays as it is. */

/* The address that an automatic call site has for a name. False: it is another call site. */
static bool npuprof_symbols_site_address_(const npuprof_image_ *im, const npuprof_entry_ *e,
                                          uint64_t *address)
{
    const npuprof_site_entry_ *const site = (const npuprof_site_entry_ *)(const void *)e;
    size_t length;
    if (!npuprof_image_text_is_(im, site->category, "auto")) return false;
    const char *const text = npuprof_image_text_(im, site->name, &length);
    return npuprof_symbols_address_(text, length, address);
}

/* Collects modules and addresses. False: there are no modules, no addresses, or no memory. */
static bool npuprof_symbols_collect_image_(npuprof_symbols_ *s, const npuprof_image_ *im)
{
    const size_t module_bytes = sizeof(npuprof_module_entry_), site_bytes = sizeof(npuprof_site_entry_);
    const npuprof_entry_ *e;
    uint64_t address;
    size_t length, digits;
    uint32_t id = 0;
    while ((e = npuprof_image_next_entry_(im, NPUPROF_ENTRY_MODULE, module_bytes, &id)) != NULL) {
        const npuprof_module_entry_ *const m = (const npuprof_module_entry_ *)(const void *)e;
        const uint64_t places[3] = { m->bias, m->start, m->end };
        const char *const path = npuprof_image_text_(im, m->path, &length);
        const char *const build = npuprof_image_text_(im, m->build_id, &digits);
        npuprof_symbols_add_module_(s, path, length, build, digits, places);
    }
    id = 0;
    if (!s->module_count) return false;
    while ((e = npuprof_image_next_entry_(im, NPUPROF_ENTRY_SITE, site_bytes, &id)) != NULL)
        if (npuprof_symbols_site_address_(im, e, &address) && !npuprof_symbols_add_address_(s, address))
            return false;
    return s->name_count > 0;
}

/* Bytes of a text as an entry of the table. */
static uint64_t npuprof_symbols_entry_bytes_(const npuprof_symbols_name_ *name)
{
    return (sizeof(npuprof_entry_) + name->length + 1 + 15) / 16 * 16;
}

/* The table again, with `more` bytes for texts behind its entries. NULL: there is no memory, or no number for
   so much. */
static uint8_t *npuprof_symbols_copy_table_(const npuprof_image_ *im, uint64_t more)
{
    npuprof_header_ *const h = &npuprof_loaded_.header;
    const uint64_t used = (im->table_used + (uint64_t)15) / 16 * 16, bytes = used + more;
    if (bytes > UINT32_MAX / 2) return NULL;
    uint8_t *const table = (uint8_t *)npuprof_os_memory_((size_t)bytes);
    if (!table) return NULL;
    memcpy(table, im->table, im->table_used);
    npuprof_loaded_.table = table;
    npuprof_loaded_.table_bytes = (size_t)bytes;
    h->table_bytes = (uint32_t)bytes;
    npuprof_loaded_.image.table = table;
    npuprof_loaded_.image.table_used = (uint32_t)used;
    return table;
}

/* Writes a text behind the table's entries. Returns its id. */
static uint32_t npuprof_symbols_add_text_(uint8_t *table, const npuprof_symbols_name_ *name)
{
    const uint32_t bytes = (uint32_t)npuprof_symbols_entry_bytes_(name);
    const uint32_t at = npuprof_loaded_.image.table_used;
    npuprof_entry_ *const e = (npuprof_entry_ *)(void *)(table + at);
    e->type_units = (uint32_t)NPUPROF_ENTRY_STRING << 24 | bytes / 16;
    e->a = (uint32_t)name->length;
    memcpy(e + 1, name->text, name->length);
    npuprof_loaded_.image.table_used = npuprof_loaded_.header.table_used = at + bytes;
    return at / 16;
}

/* Names the call sites of the loaded image. offsets: those without a function become MODULE+0xOFFSET. */
static void npuprof_symbols_apply_(npuprof_symbols_ *s, bool offsets)
{
    const npuprof_image_ *const im = &npuprof_loaded_.image;
    const size_t bytes = sizeof(npuprof_site_entry_);
    const npuprof_entry_ *e;
    uint64_t more = 0, address;
    uint32_t at = 0;
    for (size_t i = 0; i < s->name_places; i++) {
        if (s->names[i].offset && !offsets) s->names[i].text = NULL;
        if (s->names[i].text) more += npuprof_symbols_entry_bytes_(s->names + i);
    }
    uint8_t *const table = more ? npuprof_symbols_copy_table_(im, more) : NULL;
    if (!table) return;
    while ((e = npuprof_image_next_entry_(im, NPUPROF_ENTRY_SITE, bytes, &at)) != NULL) {
        if (!npuprof_symbols_site_address_(im, e, &address)) continue;
        npuprof_symbols_name_ *const name = npuprof_symbols_name_of_(s, address);
        if (!name) continue;
        if (!name->id) name->id = npuprof_symbols_add_text_(table, name);
        uint8_t *const site = table + ((const uint8_t *)e - table);
        ((npuprof_site_entry_ *)(void *)site)->name = name->id;
    }
}

/* Gives the automatic spans of the loaded image the names of their functions. */
static void npuprof_symbols_name_loaded_(const npuprof_symbols_options_ *options, bool offsets)
{
    npuprof_symbols_ s;
    if (!npuprof_reader_lock_()) return;
    memset(&s, 0, sizeof s);
    s.options = options;
    const npuprof_image_ *const im = npuprof_image_given_;
    if (im && !npuprof_loaded_.table && npuprof_symbols_collect_image_(&s, im)) {
        npuprof_symbols_resolve_(&s);
        npuprof_symbols_apply_(&s, offsets);
    }
    npuprof_symbols_end_(&s);
    npuprof_reader_unlock_();
}
