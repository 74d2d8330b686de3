#pragma once   /* SPDX-License-Identifier: MIT */
#include "../public/types.h"
#include "../numbers/text.h"
#include "posix_files.h"
#include "posix_control.h"
#include "windows.h"

/* The objects that the process has loaded: where they lie, and their build ids. Only for NPUPROF_AUTO.

   By dl_iterate_phdr() of ELF systems. Elsewhere (macOS, Windows) none is found: names stay addresses.
   Owns a buffer for paths, of who asks: one thread at a time, and no handler that interrupts it. Why not on
   the stack: that of a signal handler may be small. This part may not know who asks. */

#ifdef NPUPROF_AUTO

enum { NPUPROF_OS_BUILD_ID_LIMIT_ = 64 };      /* bytes; 20 are usual */

typedef struct npuprof_os_object_ {
    const char *path;              /* as the loader knows it */
    uint64_t bias, start, end;     /* as in npuprof_module_entry_ */
    char build_id[2 * NPUPROF_OS_BUILD_ID_LIMIT_ + 1];
} npuprof_os_object_;

#if defined(__ELF__) && !defined(_WIN32)
#include <link.h>

/* dl_iterate_phdr() and what it gives, under names of our own. Why: the C library declares them only for
   _GNU_SOURCE. */
typedef struct npuprof_os_phdrs_ {
    ElfW(Addr) bias;
    const char *path;
    const ElfW(Phdr) *headers;
    ElfW(Half) count;
    unsigned long long loads, unloads;
} npuprof_os_phdrs_;
extern int npuprof_os_phdrs_of_all_(int (*one)(npuprof_os_phdrs_ *, size_t, void *),
                                    void *user) __asm__("dl_iterate_phdr");

typedef struct npuprof_os_listing_ {
    uint64_t *changes;
    void (*found)(const npuprof_os_object_ *object);
    bool seen;                     /* one object was handed over */
} npuprof_os_listing_;

/* Reads the build id out of the notes of a segment that lies at `notes`. */
static void npuprof_os_read_notes_(npuprof_os_object_ *object, const uint8_t *notes, size_t bytes)
{
    static const char digits[] = "0123456789abcdef";
    enum { HEAD = 12, BUILD_ID = 3 };
    while (bytes >= HEAD) {
        uint32_t head[3];                      /* length of the name, length of the content, type */
        memcpy(head, notes, HEAD);
        const uint64_t content = HEAD + (((uint64_t)head[0] + 3) & ~(uint64_t)3);
        const uint64_t next = content + (((uint64_t)head[1] + 3) & ~(uint64_t)3);
        if (content + head[1] > bytes) return;
        if (head[2] == BUILD_ID && head[0] == 4 && memcmp(notes + HEAD, "GNU", 4) == 0) {
            for (size_t i = 0; i < head[1] && i < NPUPROF_OS_BUILD_ID_LIMIT_; i++) {
                object->build_id[2 * i] = digits[notes[content + i] >> 4];
                object->build_id[2 * i + 1] = digits[notes[content + i] & 15];
            }
            return;
        }
        if (next > bytes) return;
        notes += next;
        bytes -= (size_t)next;
    }
}

/* The whole path of an object that was loaded by a path from the current directory. */
static const char *npuprof_os_path_from_here_(char *text, size_t bytes, const char *path)
{
    const size_t length = strlen(path), here = getcwd(text, bytes) ? strlen(text) : bytes;
    if (here + length + 2 > bytes) return path;
    text[here] = '/';
    memcpy(text + here + 1, path, length + 1);
    return text;
}

/* Hands one object on. Not 0: this was enough. */
static int npuprof_os_take_object_(npuprof_os_phdrs_ *o, size_t bytes, void *user)
{
    npuprof_os_listing_ *const listing = (npuprof_os_listing_ *)user;
    npuprof_os_object_ object;
    static char whole[2048];
    const bool counts = bytes >= offsetof(npuprof_os_phdrs_, unloads) + sizeof o->unloads;
    const uint64_t changes = counts ? o->loads + o->unloads : 0;
    const bool is_first = !listing->seen;
    listing->seen = true;
    if (is_first && changes && changes == *listing->changes) return 1;
    if (is_first) *listing->changes = changes;
    memset(&object, 0, sizeof object);
    object.bias = o->bias;
    object.start = UINT64_MAX;
    object.path = o->path ? o->path : "";
    if (!*object.path && is_first) {           /* the program comes first, without a name */
        const ssize_t n = readlink("/proc/self/exe", whole, sizeof whole - 1);
        whole[n > 0 ? n : 0] = 0;
        object.path = whole;
    } else if (*object.path != '/' && strchr(object.path, '/')) {
        object.path = npuprof_os_path_from_here_(whole, sizeof whole, object.path);
    }
    for (unsigned i = 0; i < o->count; i++) {
        const ElfW(Phdr) *const h = &o->headers[i];
        if (h->p_type != PT_LOAD) continue;
        if (o->bias + h->p_vaddr < object.start) object.start = o->bias + h->p_vaddr;
        if (o->bias + h->p_vaddr + h->p_memsz > object.end) object.end = o->bias + h->p_vaddr + h->p_memsz;
    }
    for (unsigned i = 0; i < o->count; i++) {
        const ElfW(Phdr) *const h = &o->headers[i];
        const uint64_t at = o->bias + h->p_vaddr;
        /* Why: notes that are not loaded have no address. */
        const bool loaded = at >= object.start && at < object.end && h->p_memsz <= object.end - at;
        if (h->p_type == PT_NOTE && loaded && !object.build_id[0])
            npuprof_os_read_notes_(&object, (const uint8_t *)(uintptr_t)at, (size_t)h->p_memsz);
    }
    /* Why a slash: what the kernel puts into each process (linux-vdso.so.1) is no file. */
    if (strchr(object.path, '/') && object.start < object.end) listing->found(&object);
    return 0;
}

/* Calls `found` for each loaded object, unless as many were loaded and unloaded as *changes says, which is
   updated; 0: not listed yet. Takes the loader's lock for short: not async-signal safe by the book.
   One thread at a time. */
static void npuprof_os_list_objects_(uint64_t *changes, void (*found)(const npuprof_os_object_ *object))
{
    npuprof_os_listing_ listing = { changes, found, false };
    (void)npuprof_os_phdrs_of_all_(npuprof_os_take_object_, &listing);
}

#else /* !__ELF__ */
static void npuprof_os_list_objects_(uint64_t *changes, void (*found)(const npuprof_os_object_ *object))
{
    (void)changes;
    (void)found;
}
#endif /* !__ELF__ */
#endif /* NPUPROF_AUTO */
