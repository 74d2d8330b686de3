#pragma once   /* SPDX-License-Identifier: MIT */
#include "../public/compiler.h"
#include "../numbers/heap.h"
#include "../os/common.h"

/* A reader's lists, in pages of the system's: mapped as the list grows, given back by npuprof_list_free_().
   Why not the heap: it may be the program's thread in it that dumps. A list that the system has no memory for
   stays as it was: who adds says so (ENOMEM). May not know what the elements are. */
typedef struct npuprof_list_ {
    uint8_t *at;
    size_t bytes, count, capacity;         /* bytes: of an element */
} npuprof_list_;

static npuprof_list_ npuprof_list_of_(size_t bytes)
{
    npuprof_list_ list;
    memset(&list, 0, sizeof list);
    list.bytes = bytes;
    return list;
}

/* What is mapped for so many bytes. Why whole huge pages: only such a mapping begins where one can, and the
   2 MiB before that would be 512 faults. */
static uint64_t npuprof_list_mapped_(uint64_t bytes)
{
    const uint64_t huge = UINT64_C(2) << 20;
    return bytes < huge ? bytes : (bytes + huge - 1) & ~(huge - 1);
}

static void npuprof_list_unmap_(void *at, uint64_t bytes)
{
    npuprof_os_unmap_(at, (size_t)npuprof_list_mapped_(bytes));
}

static void npuprof_list_free_(npuprof_list_ *l)
{
    if (l->at) npuprof_list_unmap_(l->at, l->capacity * l->bytes);
    *l = npuprof_list_of_(l->bytes);
}

/* Memory for a list; NULL: there is none. Why huge pages: a fault for each page of 4 KiB costs more than what
   is written there. */
static uint8_t *npuprof_list_memory_(uint64_t bytes)
{
    bytes = npuprof_list_mapped_(bytes);
    if ((size_t)bytes != bytes) return NULL;
    uint8_t *const at = (uint8_t *)npuprof_os_memory_((size_t)bytes);
    if (at) npuprof_os_huge_pages_(at, (size_t)bytes);
    return at;
}

/* Makes room: 64 KiB, then 16 MiB, then 16 times as much; an eighth of it if the system has not more. Why so
   much: what is not written takes no memory, what is copied is written again, and less than 2 MiB gets no
   huge pages. */
NPUPROF_COLD_ static NPUPROF_NOINLINE_ bool npuprof_list_grow_(npuprof_list_ *l)
{
    const uint64_t few = 65536 / l->bytes, many = (UINT64_C(16) << 20) / l->bytes;
    uint64_t capacity = !l->capacity ? few : l->capacity == few ? many : 16 * (uint64_t)l->capacity;
    uint8_t *at = npuprof_list_memory_(capacity * l->bytes);
    if (!at && l->at) at = npuprof_list_memory_((capacity /= 8) * l->bytes);
    if (!at) return false;
    if (l->at) {
        memcpy(at, l->at, l->count * l->bytes);
        npuprof_list_unmap_(l->at, l->capacity * l->bytes);
    }
    l->at = at;
    l->capacity = (size_t)capacity;
    return true;
}

/* Where the next element goes: it is there once l->count counts it. NULL: the system has no memory for it. */
NPUPROF_HOT_ static inline void *npuprof_list_room_(npuprof_list_ *l)
{
    if (l->count == l->capacity && !npuprof_list_grow_(l)) return NULL;
    return l->at + l->count * l->bytes;
}

/* False: the system has no memory for it. */
static bool npuprof_list_add_(npuprof_list_ *l, const void *element)
{
    void *const room = npuprof_list_room_(l);
    if (!room) return false;
    memcpy(room, element, l->bytes);
    l->count++;
    return true;
}

/* The work of npuprof_list_sort_(). Why apart: gcc takes what is around calls of the system for cold code.
   Why one function for all elements: most lists are nearly in order; then few of them are compared. */
NPUPROF_HOT_ static NPUPROF_NOINLINE_ void *npuprof_list_merge_(const npuprof_list_ *l, void *beside,
                                                               npuprof_heap_before_ before)
{
    return npuprof_sort_(l->at, beside, l->bytes, l->count, before);
}

/* Sorts a list. False: the system has no memory beside it. */
static bool npuprof_list_sort_(npuprof_list_ *l, npuprof_heap_before_ before)
{
    const uint8_t *const array = l->at;
    const size_t bytes = l->bytes;
    size_t sorted = 1;
    while (sorted < l->count && !before(array + sorted * bytes, array + (sorted - 1) * bytes)) sorted++;
    if (sorted >= l->count) return true;
    uint8_t *const beside = npuprof_list_memory_((uint64_t)l->count * bytes);
    if (!beside) return false;
    if (npuprof_list_merge_(l, beside, before) == beside) memcpy(l->at, beside, l->count * bytes);
    npuprof_list_unmap_(beside, l->count * bytes);
    return true;
}
