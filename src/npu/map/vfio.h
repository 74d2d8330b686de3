#pragma once   /* SPDX-License-Identifier: MIT */
#include "../../public/api.h"
#include "../types.h"
#include "target.h"

/* Linux: a region of a VFIO device. The descriptor is the caller's and stays open. May not map anything.
   Other systems have no VFIO. */

#ifdef __linux__
#include <sys/ioctl.h>

/* Why by hand: <linux/vfio.h> is not everywhere, and these structures cannot change. */
typedef struct npuprof_npu_vfio_device_ {
    uint32_t argsz, flags, regions, interrupts, capabilities, padding;
} npuprof_npu_vfio_device_;
typedef struct npuprof_npu_vfio_region_ {
    uint32_t argsz, flags, index, capabilities;
    uint64_t size, offset;
} npuprof_npu_vfio_region_;

static npuprof_result npuprof_npu_ask_vfio_(int fd, unsigned index, npuprof_npu_vfio_region_ *region)
{
    memset(region, 0, sizeof *region);
    region->argsz = sizeof *region;
    region->index = index;
    if (ioctl(fd, _IO(';', 108), region) == 0) return region->size ? NPUPROF_OK : NPUPROF_ERR_NOT_FOUND;
    if (errno == ENODEV) return NPUPROF_ERR_NPU_REMOVED;
    return errno == EINVAL ? NPUPROF_ERR_NOT_FOUND : NPUPROF_ERR_NPU_MAP;
}

static npuprof_result npuprof_npu_vfio_target_(npuprof_npu *npu, npuprof_npu_target_ *target)
{
    enum { is_pci = 2, can_mmap = 4, config = 7, bars = 6 };
    npuprof_npu_vfio_device_ device;
    npuprof_npu_vfio_region_ region, space;
    const unsigned index = npu->desc_.vfio_region;
    target->fd = npu->desc_.vfio_device_fd;
    const npuprof_result result = npuprof_npu_ask_vfio_(target->fd, index, &region);
    if (result != NPUPROF_OK) return result;
    memset(&device, 0, sizeof device);
    device.argsz = sizeof device;
    if (ioctl(target->fd, _IO(';', 107), &device) == 0 && device.flags & is_pci &&
        npuprof_npu_ask_vfio_(target->fd, config, &space) == NPUPROF_OK) {
        unsigned char bar = 0;
        npu->config_fd_ = target->fd + 1;
        npu->config_at_ = space.offset;
        const off_t at = (off_t)(space.offset + 0x10 + 4 * index);
        if (index < bars && pread(target->fd, &bar, 1, at) == 1 && bar & 1) return NPUPROF_ERR_NPU_IO_PORT;
    }
    target->origin = region.offset;
    target->bytes = region.size;
    return region.flags & can_mmap ? NPUPROF_OK : NPUPROF_ERR_NPU_MAP;
}

#elif !defined(_WIN32)

static npuprof_result npuprof_npu_vfio_target_(npuprof_npu *npu, npuprof_npu_target_ *target)
{
    (void)npu, (void)target;
    return NPUPROF_ERR_UNSUPPORTED;
}

#endif /* __linux__ */
