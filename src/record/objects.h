#pragma once   /* SPDX-License-Identifier: MIT */
#include "../public/types.h"
#include "../format/arena.h"
#include "../arena/state.h"
#include "../os/objects.h"
#include "../os/common.h"
#include "../arena/table.h"

#include <string.h>

/* Writes into the table which objects are loaded, for names that are addresses. Only for NPUPROF_AUTO.

   When: before the name of a function is stored for the first time, if objects were loaded or unloaded since.
   So an arena that is left behind by a process that was killed has all that its names need. Nothing is done
   at dlclose(): the entry stays. If another object then lies at the same addresses, it has a later entry; a
   function of it whose address was recorded before keeps that name.
   Data: npuprof_record_objects_. This part does not know what a function is. */

#ifdef NPUPROF_AUTO

/* Atomic. All but `listing` is written by the thread that has it; `newest` with release. */
static struct {
    uint32_t listing;              /* 1: a thread lists them. CAS from 0 */
    uint32_t newest;               /* id of the newest module entry, 0: none */
    uint64_t changes;              /* how many loads and unloads there were when they were listed */
} npuprof_record_objects_;

/* Is it in the table, and has nothing else been at its addresses since? */
static bool npuprof_record_knows_object_(const npuprof_os_object_ *o, uint32_t path, uint32_t build_id)
{
    uint32_t id = NPUPROF_LOAD_(&npuprof_record_objects_.newest);
    while (id) {
        const npuprof_module_entry_ *const m = (const npuprof_module_entry_ *)npuprof_table_entry_at_(id);
        if (m->start < o->end && o->start < m->end)
            return m->bias == o->bias && m->start == o->start && m->end == o->end && m->path == path &&
                   m->build_id == build_id;
        id = m->head.a;
    }
    return false;
}

static void npuprof_record_take_object_(const npuprof_os_object_ *o)
{
    uint32_t id;
    const uint32_t path = npuprof_table_intern_string_(o->path);
    const uint32_t build_id = npuprof_table_intern_string_(o->build_id);
    npuprof_module_entry_ *m = NULL;
    if (path && build_id && npuprof_record_knows_object_(o, path, build_id)) return;
    if (path && build_id) m = (npuprof_module_entry_ *)(void *)npuprof_table_add_entry_(sizeof *m, &id);
    if (!m) {
        NPUPROF_ADD_(&npuprof_arena_.header->lost[NPUPROF_LOST_NOTES], 1);
        return;
    }
    m->head.a = NPUPROF_LOAD_(&npuprof_record_objects_.newest);
    m->bias = o->bias;
    m->start = o->start;
    m->end = o->end;
    m->path = path;
    m->build_id = build_id;
    npuprof_table_finish_entry_(&m->head, NPUPROF_ENTRY_MODULE);
    NPUPROF_STORE_RELEASE_(&npuprof_record_objects_.newest, id);
}

/* Brings the list up to date. Keeps errno. */
static void npuprof_record_list_objects_(void)
{
    const int error_before = errno;
    uint32_t nobody = 0;
    if (!NPUPROF_CAS_(&npuprof_record_objects_.listing, &nobody, 1)) return;
    if (!NPUPROF_LOAD_(&npuprof_record_objects_.newest)) npuprof_record_objects_.changes = 0;
    npuprof_os_list_objects_(&npuprof_record_objects_.changes, npuprof_record_take_object_);
    NPUPROF_STORE_RELEASE_(&npuprof_record_objects_.listing, 0);
    errno = error_before;
}

#endif /* NPUPROF_AUTO */
