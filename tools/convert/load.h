#pragma once   /* SPDX-License-Identifier: MIT */
#include "api.h"
#include "loaded.h"
#include "file.h"
#include "elf.h"
#include "find.h"
#include "arena.h"
#include "checks.h"
#include "expand.h"
#include "live.h"
#include "target_live.h"

/* The public functions: they read files, find the image in them, expand one of firmware, and load it. Include
   this one.
   Data: npuprof_loaded_ is locked with the scratch for the whole of a call, so no writer sees half of an
   image. */

static const npuprof_damage npuprof_load_no_damage_ = { 0, 0, "", 0, 0 };

/* Reads the image's file into npuprof_loaded_.file; of a running process's arena a copy. */
static npuprof_result npuprof_load_read_image_(const char *path)
{
    size_t bytes = 0;
    void *in_use;
    int error = 0;
    (void)npuprof_load_map_file_(path, true, &in_use, &bytes);
    if (in_use) {
        npuprof_loaded_.file = npuprof_load_copy_arena_((const uint8_t *)in_use, bytes);
        npuprof_loaded_.file_bytes = bytes;
        npuprof_loaded_.is_live = npuprof_loaded_.file != NULL;
        npuprof_os_unmap_(in_use, bytes);
    }
    if (!npuprof_loaded_.file)
        error = npuprof_load_read_file_(path, &npuprof_loaded_.file, &npuprof_loaded_.file_bytes);
    return npuprof_os_result_(error);
}

/* Replaces what was read by its expansion. */
static npuprof_result npuprof_load_expand_(const uint8_t *image, size_t bytes,
                                           const npuprof_load_found_ *found, const npuprof_elf_ *elf)
{
    const char *fault;
    size_t expanded_bytes = 0;
    uint8_t *const expanded = npuprof_expand_image_(image, bytes, found, elf, &expanded_bytes, &fault);
    if (!expanded) return fault ? npuprof_load_refuse_(found->at, fault) : NPUPROF_ERR_NO_SPACE;
    npuprof_load_free_(npuprof_loaded_.file, npuprof_loaded_.file_bytes);
    npuprof_loaded_.file = expanded;
    npuprof_loaded_.file_bytes = expanded_bytes;
    return npuprof_load_arena_locked_(expanded, expanded_bytes);
}

/* Loads the image that lies somewhere in these bytes. in_dump: they may be a dump of memory. */
static npuprof_result npuprof_load_bytes_(uint8_t *image, size_t bytes, const npuprof_elf_ *elf, bool in_dump)
{
    const size_t from = npuprof_loaded_.from;
    uint8_t nothing = 0;
    if (!image) image = &nothing;          /* of an empty file */
    const npuprof_load_found_ found = npuprof_load_find_image_(image + from, bytes - from, in_dump && !from);
    npuprof_expand_check_found_(image + from, bytes - from, &found);
    if (npuprof_load_is_firmware_(found.layout)) return npuprof_load_expand_(image, bytes, &found, elf);
    size_t at;
    const char *const fault = found.layout ? NULL : npuprof_load_find_fault_(image, bytes, in_dump, &at);
    if (fault) return npuprof_load_refuse_(at, fault);
    if (found.at % 8) return npuprof_load_refuse_(found.at, "an arena that is not aligned in the dump");
    return npuprof_load_arena_locked_(image + found.at, bytes - found.at);
}

/* Loads an image from memory with the names of an ELF file; elf_path NULL: there is none. */
static npuprof_result npuprof_load_with_names_(uint8_t *image, size_t bytes, const char *elf_path)
{
    npuprof_elf_ elf;
    void *file = NULL;
    size_t file_bytes = 0;
    npuprof_result r = NPUPROF_OK;
    memset(&elf, 0, sizeof elf);
    if (elf_path) {
        r = npuprof_os_result_(npuprof_load_read_file_(elf_path, &file, &file_bytes));
        if (r == NPUPROF_OK && !npuprof_elf_open_(&elf, (const uint8_t *)file, file_bytes))
            r = npuprof_load_refuse_(0, "the file of the names is not an ELF file");
        if (r == NPUPROF_OK && !npuprof_elf_collect_sites_(&elf)) r = NPUPROF_ERR_NO_SPACE;
    }
    if (r == NPUPROF_OK) r = npuprof_load_bytes_(image, bytes, &elf, elf_path != NULL);
    if (elf.sites) npuprof_os_unmap_(elf.sites, elf.sites_bytes);
    npuprof_load_free_(file, file_bytes);
    return r;
}

/* What is to be loaded. */
typedef struct npuprof_load_source_ {
    const char *path;                      /* a file; NULL: an image in memory, or what goes on recording */
    void *image;
    size_t bytes;
    const char *const *live;               /* of what goes on recording: its path, or those of three dumps */
    const char *elf;
    uint64_t from;                         /* offset in the file */
} npuprof_load_source_;

static npuprof_result npuprof_load_source_of_(const npuprof_load_source_ *s, npuprof_damage *damage)
{
    npuprof_result r = NPUPROF_OK;
    void *image = s->image;
    size_t bytes = s->bytes;
    const bool is_there = s->path || s->image || s->live;
    if (damage) *damage = npuprof_load_no_damage_;
    if (!is_there || ((uintptr_t)image & 7) || !npuprof_reader_lock_()) return NPUPROF_ERR_ARGUMENT;
    npuprof_load_release_locked_();
    npuprof_loaded_.damage = npuprof_load_no_damage_;
    if (!image) {
        r = s->live ? npuprof_load_read_live_(s->live) : npuprof_load_read_image_(s->path);
        image = npuprof_loaded_.file;
        bytes = npuprof_loaded_.file_bytes;
    }
    npuprof_loaded_.from = (size_t)npuprof_min_(s->from, bytes);
    if (r == NPUPROF_OK) r = npuprof_load_with_names_((uint8_t *)image, bytes, s->elf);
    if (damage) *damage = npuprof_loaded_.damage;
    if (r == NPUPROF_OK) {
        npuprof_loaded_.image.in_use = npuprof_loaded_.is_live;
        npuprof_loaded_.image.changed = npuprof_loaded_.damage.changed;
        npuprof_image_given_ = &npuprof_loaded_.image;
    } else {
        npuprof_load_release_locked_();
    }
    npuprof_reader_unlock_();
    return r;
}

/* Loads a file from an offset on, or, with path NULL, an image in memory. */
static npuprof_result npuprof_load_any_(const char *path, void *image, size_t bytes, const char *elf_path,
                                        uint64_t from, npuprof_damage *damage)
{
    const npuprof_load_source_ s = { path, image, bytes, NULL, elf_path, from };
    return npuprof_load_source_of_(&s, damage);
}

static inline bool npuprof_load_ends_with_(const char *text, const char *end)
{
    const size_t n = strlen(text), m = strlen(end);
    return n >= m && strcmp(text + n - m, end) == 0;
}

/* The path of a file by its number: t.json, t-2.json, t-3.json. */
static inline void npuprof_load_numbered_path_(char *path, size_t bytes, const char *output,
                                               unsigned number)
{
    const char *const slash = strrchr(output, '/'), *const dot = strrchr(slash ? slash : output, '.');
    const size_t stem = dot ? (size_t)(dot - output) : strlen(output);
    if (number == 1) snprintf(path, bytes, "%s", output);
    else snprintf(path, bytes, "%.*s-%u%s", (int)stem, output, number, output + stem);
}

NPUPROF_API_ npuprof_result npuprof_load(const char *path, npuprof_damage *damage)
{
    return npuprof_load_any_(path ? path : "", NULL, 0, NULL, 0, damage);
}

NPUPROF_API_ npuprof_result npuprof_load_memory(void *image, size_t bytes, npuprof_damage *damage)
{
    return npuprof_load_any_(NULL, image, bytes, NULL, 0, damage);
}

NPUPROF_API_ npuprof_result npuprof_load_firmware(const char *dump, const char *elf, npuprof_damage *damage)
{
    return npuprof_load_any_(dump ? dump : "", NULL, 0, elf ? elf : "", 0, damage);
}

NPUPROF_API_ npuprof_result npuprof_load_firmware_from(const char *dump, const char *elf, uint64_t offset,
                                                       npuprof_damage *damage)
{
    return npuprof_load_any_(dump ? dump : "", NULL, 0, elf, offset, damage);
}

NPUPROF_API_ npuprof_result npuprof_load_live(const char *const paths[3], const char *elf,
                                              npuprof_damage *damage)
{
    const npuprof_load_source_ s = { NULL, NULL, 0, paths, elf, 0 };
    return npuprof_load_source_of_(&s, damage);
}

NPUPROF_API_ void npuprof_unload(void)
{
    if (!npuprof_reader_lock_()) return;
    npuprof_load_release_locked_();
    npuprof_reader_unlock_();
}
