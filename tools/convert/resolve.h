#pragma once   /* SPDX-License-Identifier: MIT */
#include "symbols.h"
#include "demangle.h"

/* Names all addresses of a trace: the function, or MODULE+0xOFFSET. Says once of each module why functions
   of it have no name. */

/* MODULE+0xOFFSET */
static void npuprof_symbols_name_offset_(npuprof_symbols_ *s, npuprof_symbols_name_ *name,
                                         npuprof_symbols_module_ *m)
{
    const char *const base = npuprof_symbols_base_name_(m->path);
    const size_t most = strlen(base) + 24;
    char *const text = npuprof_symbols_room_(s, most);
    m->unnamed++;
    if (!text) return;
    const unsigned long long offset = name->address - m->bias;
    name->length = (size_t)snprintf(text, most, "%s+0x%llx", base, offset);
    name->text = text;
    name->offset = true;
}

/* Names one address. Of several modules that were there one after the other, the one in which a function
   begins there; else the last. */
static void npuprof_symbols_resolve_one_(npuprof_symbols_ *s, npuprof_symbols_name_ *name)
{
    npuprof_symbols_module_ *last = NULL;
    for (size_t i = s->module_count; i-- > 0;) {
        npuprof_symbols_module_ *const m = s->modules + i;
        if (name->address < m->start || name->address >= m->end) continue;
        if (!m->opened) m->opened = npuprof_symbols_opened_of_(s->options, m);
        if (!last) last = m;
        const npuprof_symbols_function_ *const f =
            m->opened ? npuprof_symbols_find_(&m->opened->table, name->address - m->bias) : NULL;
        const bool begins = f && f->start == npuprof_symbols_code_address_(&m->opened->table.elf,
                                                                           name->address - m->bias);
        if (!f || (name->text && !begins)) continue;
        name->text = f->name;
        name->length = f->length;
        if (begins) break;
    }
    if (!name->text && last) npuprof_symbols_name_offset_(s, name, last);
}

/* Says of each module why functions of it have no name. */
static void npuprof_symbols_tell_(npuprof_symbols_ *s)
{
    char text[256];
    for (size_t i = 0; i < s->module_count && s->options->say; i++) {
        const npuprof_symbols_module_ *const m = s->modules + i;
        if (!m->opened || m->opened->told) continue;
        if (m->unnamed) {
            snprintf(text, sizeof text, "%s %u of its functions: they are shown as %.60s+0xOFFSET; "
                     "--debug-dir DIR and --symbols FILE say where names are", m->opened->why, m->unnamed,
                     npuprof_symbols_base_name_(m->path));
            s->options->say(m->path, text);
        }
        if (!m->build_bytes && m->opened->table.count)
            s->options->say(m->path, "it has no build id: if it was built anew since it ran, the names of "
                                     "its functions are wrong; link with -Wl,--build-id");
        m->opened->told = m->unnamed || !m->build_bytes;
    }
}

static void npuprof_symbols_resolve_(npuprof_symbols_ *s)
{
    for (size_t i = 0; i < s->name_places; i++)
        if (s->names[i].used) npuprof_symbols_resolve_one_(s, s->names + i);
    npuprof_symbols_demangle_(s);
    npuprof_symbols_tell_(s);
}
