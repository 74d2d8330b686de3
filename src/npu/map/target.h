#pragma once   /* SPDX-License-Identifier: MIT */
#include "../../public/api.h"
#include "../../numbers/time.h"
#include "../../os/common.h"
#include "../types.h"
#ifndef _WIN32
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>
#endif

/* What is to be mapped for a device, and what errors of the system mean for it. POSIX; sysfs.h and vfio.h
   fill in a target, map.h maps it. May not know what the registers mean. */

#ifndef _WIN32
#ifndef NPUPROF_NPU_SYSFS_               /* a test has its own */
#define NPUPROF_NPU_SYSFS_ "/sys"
#endif

typedef struct npuprof_npu_target_ {
    int fd;
    bool at_begin;                       /* can be mapped from its first page only */
    bool owned;                          /* a driver is bound */
    uint64_t origin;                     /* where it begins in the file */
    uint64_t before;                     /* bytes in the first page that are not the device's */
    uint64_t bytes;                      /* its length; UINT64_MAX: unknown */
} npuprof_npu_target_;

static npuprof_result npuprof_npu_map_error_(int error)
{
    if (error == EBUSY) return NPUPROF_ERR_NPU_OWNED;
    return error == EACCES || error == EPERM ? NPUPROF_ERR_ACCESS : NPUPROF_ERR_NPU_MAP;
}

static npuprof_result npuprof_npu_open_error_(int error)
{
    const bool not_found = error == ENOENT || error == ENODEV || error == ENXIO || error == ENOTDIR;
    return not_found ? NPUPROF_ERR_NOT_FOUND : npuprof_npu_map_error_(error);
}

/* What the configuration space says of a PCI device: NPUPROF_OK (also if there is none), _NPU_REMOVED,
   _NPU_DECODE_OFF. A virtual function's decode is its physical function's. Leaves errno as it was. */
static npuprof_result npuprof_npu_pci_state_(const npuprof_npu *npu)
{
    unsigned char b[6];                  /* vendor, device, command */
    if (npu->config_fd_ <= 0) return NPUPROF_OK;
    const int error = errno;
    const bool ours = npuprof_os_is_still_(npu->config_fd_ - 1, npu->config_file_);
    const ssize_t n = ours ? pread(npu->config_fd_ - 1, b, sizeof b, (off_t)npu->config_at_) : 0;
    const bool gone = n < 0 && errno == ENODEV;
    errno = error;
    if (n != (ssize_t)sizeof b) return gone ? NPUPROF_ERR_NPU_REMOVED : NPUPROF_OK;
    if ((b[0] & b[1] & b[2] & b[3]) == 0xFF) return NPUPROF_ERR_NPU_REMOVED;
    return b[4] & 2 || npu->is_virtual_function_ ? NPUPROF_OK : NPUPROF_ERR_NPU_DECODE_OFF;
}

#else /* _WIN32 */

static npuprof_result npuprof_npu_pci_state_(const npuprof_npu *npu)
{
    (void)npu;
    return NPUPROF_OK;
}

#endif /* !_WIN32 */
