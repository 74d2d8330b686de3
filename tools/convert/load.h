#pragma once   /* SPDX-License-Identifier: MIT */
#include "file.h"
#include "check.h"
#include "arena.h"
#include "elf.h"
#include "firmware.h"
#include "live.h"

static npuprof_result npuprof_load_any_(const char *path, void *image, size_t bytes, const char *elf_path, npuprof_damage *damage)
{
    static const npuprof_damage none = { 0, 0, "", 0 };
    npuprof_elf_ elf = { NULL, 0, false, false, false, NULL, 0, 0 };
    npuprof_compact_header_ compact;
    bool swap = false, was_in_use = false;
    uint32_t layout = 0;
    void *elf_file = NULL, *expanded = NULL;
    size_t elf_bytes = 0, expanded_bytes = 0, at = 0;
    if (damage) *damage = none;
    if ((!path && !image) || ((uintptr_t)image & 7) || !npuprof_scratch_lock_()) return NPUPROF_ERR_ARGUMENT;
    npuprof_load_release_locked_();
    npuprof_loaded_.damage = none;
    npuprof_result r = NPUPROF_OK;
    if (path) {
        size_t in_use_bytes = 0;
        void *const in_use = npuprof_load_map_in_use_(path, &in_use_bytes);
        npuprof_loaded_.file = in_use ? npuprof_load_copy_arena_((const uint8_t *)in_use, in_use_bytes) : NULL;
        was_in_use = npuprof_loaded_.file != NULL;
        npuprof_loaded_.file_bytes = in_use_bytes;
        if (!npuprof_loaded_.file) r = npuprof_os_result_(npuprof_load_read_file_(path, &npuprof_loaded_.file, &npuprof_loaded_.file_bytes));
        if (in_use) npuprof_os_unmap_(in_use, in_use_bytes);
        image = npuprof_loaded_.file;
        bytes = npuprof_loaded_.file_bytes;
    }
    if (r == NPUPROF_OK && elf_path) {
        r = npuprof_os_result_(npuprof_load_read_file_(elf_path, &elf_file, &elf_bytes));
        if (r == NPUPROF_OK && !npuprof_elf_open_(&elf, (const uint8_t *)elf_file, elf_bytes)) r = npuprof_load_refuse_(0, "the file of the names is not an ELF file");
        if (r == NPUPROF_OK && !npuprof_elf_collect_sites_(&elf)) r = NPUPROF_ERR_NO_SPACE;
    }
    if (r == NPUPROF_OK) at = npuprof_load_find_image_((const uint8_t *)image, bytes, elf_path != NULL, &compact, &swap, &layout);
    uint8_t *const start = (uint8_t *)image + at;
    const bool firmware = bytes >= 24 && memcmp(start, "NPUPROF\n", 8) == 0 && (start[16] | start[19]) >= NPUPROF_LAYOUT_COMPACT;
    if (r == NPUPROF_OK && !layout && firmware) r = npuprof_load_refuse_(0, bytes < sizeof compact ? "shorter than a header" : "a damaged header");
    if (r == NPUPROF_OK && layout >= NPUPROF_LAYOUT_COMPACT) {
        const char *fault;
        expanded = npuprof_expand_image_((const uint8_t *)image, bytes, at, &compact, swap, &elf, &expanded_bytes, &fault);
        if (!expanded) r = fault ? npuprof_load_refuse_(at, fault) : NPUPROF_ERR_NO_SPACE;
        if (npuprof_loaded_.file) npuprof_os_unmap_(npuprof_loaded_.file, npuprof_loaded_.file_bytes);
        npuprof_loaded_.file = expanded;
        npuprof_loaded_.file_bytes = expanded_bytes;
    }
    if (elf.sites) npuprof_os_unmap_(elf.sites, elf.sites_bytes);
    if (elf_file) npuprof_os_unmap_(elf_file, elf_bytes);
    if (r == NPUPROF_OK && at % 8 && !expanded) r = npuprof_load_refuse_(at, "an arena that is not aligned in the dump");
    if (r == NPUPROF_OK) r = expanded ? npuprof_load_arena_locked_((uint8_t *)expanded, expanded_bytes) : npuprof_load_arena_locked_(start, bytes - at);
    if (damage) *damage = npuprof_loaded_.damage;
    npuprof_loaded_.image.in_use = was_in_use;
    npuprof_loaded_.image.changed = npuprof_loaded_.damage.changed;
    if (r == NPUPROF_OK) npuprof_image_given_ = &npuprof_loaded_.image;
    else npuprof_load_release_locked_();
    npuprof_scratch_unlock_();
    return r;
}
NPUPROF_API_ npuprof_result npuprof_load(const char *path, npuprof_damage *damage) { return npuprof_load_any_(path ? path : "", NULL, 0, NULL, damage); }
NPUPROF_API_ npuprof_result npuprof_load_memory(void *image, size_t bytes, npuprof_damage *damage) { return npuprof_load_any_(NULL, image, bytes, NULL, damage); }
NPUPROF_API_ npuprof_result npuprof_load_firmware(const char *dump, const char *elf, npuprof_damage *damage)
{
    return npuprof_load_any_(dump ? dump : "", NULL, 0, elf ? elf : "", damage);
}
NPUPROF_API_ void npuprof_unload(void)
{
    if (!npuprof_scratch_lock_()) return;
    npuprof_load_release_locked_();
    npuprof_scratch_unlock_();
}
