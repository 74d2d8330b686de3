#pragma once   /* SPDX-License-Identifier: MIT */
#include "../../public/macros.h"
#include "../types.h"
#include "../api.h"
#include "target.h"
#include "sysfs.h"
#include "vfio.h"
#include "guard.h"

/* Maps the registers of a device read-only, for npuprof_npu_open(), and unmaps them. Owns bar_, map_,
   config_fd_ and what belongs to them (npuprof_npu in types.h): set by open and close, one thread. Windows
   maps nothing. May not know what the registers mean. */

#ifndef _WIN32
/* Maps `needed` bytes of a target, desc.resource_offset into it. */
static npuprof_result npuprof_npu_map_target_(npuprof_npu *npu, const npuprof_npu_target_ *target,
                                              size_t needed)
{
    const uint64_t page = (uint64_t)sysconf(_SC_PAGESIZE);
    const uint64_t first = target->before + npu->desc_.resource_offset;
    const uint64_t skip = target->at_begin ? first : first % page;
    const uint64_t at = target->origin + (first - skip);
    const size_t bytes = (size_t)skip + needed;
    void *map = MAP_FAILED;
    errno = EOVERFLOW;
    if ((uint64_t)(off_t)at == at) map = mmap(NULL, bytes, PROT_READ, MAP_SHARED, target->fd, (off_t)at);
    if (map == MAP_FAILED)
        return errno == EINVAL && target->owned ? NPUPROF_ERR_NPU_OWNED : npuprof_npu_map_error_(errno);
    npu->map_ = map;
    npu->map_bytes_ = bytes;
    npu->bar_ = (const volatile unsigned char *)map + skip;
    if (npu->desc_.catch_sigbus) npuprof_npu_guard_map_(npu);
    return NPUPROF_OK;
}

/* Maps desc.resource or the VFIO region. needed: the bytes that the registers and the ring reach to. */
static npuprof_result npuprof_npu_map_(npuprof_npu *npu, size_t needed)
{
    const npuprof_npu_desc *desc = &npu->desc_;
    npuprof_npu_target_ target = { -1, false, false, 0, 0, UINT64_MAX };
    const uint64_t offset = desc->resource_offset;
    npuprof_result result =
        desc->vfio ? npuprof_npu_vfio_target_(npu, &target) : npuprof_npu_file_target_(npu, &target);
    npu->config_file_ = npuprof_os_file_(npu->config_fd_ - 1);
    if (result == NPUPROF_OK &&
        (offset > SIZE_MAX / 4 || offset > target.bytes || target.bytes - offset < needed))
        result = NPUPROF_ERR_NPU_RANGE;
    if (result == NPUPROF_OK) result = npuprof_npu_pci_state_(npu);
    if (result == NPUPROF_OK) result = npuprof_npu_map_target_(npu, &target, needed);
    if (target.fd >= 0 && !desc->vfio) close(target.fd);
    return result;
}

static void npuprof_npu_unmap_(npuprof_npu *npu)
{
    npuprof_npu_unguard_map_(npu);
    if (npu->map_) munmap(npu->map_, npu->map_bytes_);
    if (npu->config_fd_ > 0 && !npu->desc_.vfio)
        npuprof_os_close_held_(npu->config_fd_ - 1, npu->config_file_);
    npu->map_ = NULL;
    npu->config_fd_ = 0;
}

#else /* _WIN32 */

static npuprof_result npuprof_npu_map_(npuprof_npu *npu, size_t needed)
{
    (void)npu, (void)needed;
    return NPUPROF_ERR_UNSUPPORTED;
}

static void npuprof_npu_unmap_(npuprof_npu *npu) { (void)npu; }

#endif /* !_WIN32 */
