#pragma once   /* SPDX-License-Identifier: MIT */
#include "../../public/api.h"
#include "../../numbers/time.h"
#include "../../os/common.h"
#include "../types.h"
#include "target.h"

/* Linux: what desc.resource is, as sysfs tells: a BAR of a PCI device, a map of /dev/uioN, or neither. Opens
   PCI configuration space, which later says why a device is dead. May not map anything. Other systems: every
   resource is taken for a plain file. */

#ifdef __linux__
#include <sys/sysmacros.h>

/* The numbers in one line of a small file of sysfs, such as "0x10 0xfff". Returns how many there are. */
static int npuprof_npu_read_numbers_(const char *path, unsigned line, uint64_t *number, int capacity)
{
    char text[2048], *p = text;
    int count = 0;
    const int fd = npuprof_os_open_above_2_(path, O_RDONLY);
    if (fd < 0) return 0;
    const ssize_t n = read(fd, text, sizeof text - 1);
    close(fd);
    text[n > 0 ? n : 0] = 0;
    for (; line && p; line--) p = (p = strchr(p, '\n')) ? p + 1 : NULL;
    while (p && count < capacity) {
        char *end;
        number[count] = strtoull(p, &end, 0);
        if (end == p) break;
        count++;
        p = *end == '\n' ? NULL : end;
    }
    return count;
}

/* A PCI device by its folder in sysfs: the first `length` bytes of the path. bar < 0: none of its BARs. */
static npuprof_result npuprof_npu_pci_target_(npuprof_npu *npu, npuprof_npu_target_ *target, const char *path,
                                              size_t length, long bar)
{
    enum { io_ports = 0x100 };
    char other[PATH_MAX];
    uint64_t line[3];                    /* start, end, flags */
    snprintf(other, sizeof other, "%.*sresource", (int)length, path);
    if (bar >= 0 && npuprof_npu_read_numbers_(other, (unsigned)bar, line, 3) == 3 && line[1] > line[0]) {
        if (line[2] & io_ports) return NPUPROF_ERR_NPU_IO_PORT;
        target->before = line[0] % (uint64_t)sysconf(_SC_PAGESIZE);
        target->bytes = line[1] - line[0] + 1;
        snprintf(other, sizeof other, "%.*sdriver", (int)length, path);
        target->owned = access(other, F_OK) == 0;
    }
    snprintf(other, sizeof other, "%.*sphysfn", (int)length, path);
    npu->is_virtual_function_ = access(other, F_OK) == 0;
    snprintf(other, sizeof other, "%.*sconfig", (int)length, path);
    npu->config_fd_ = npuprof_os_open_above_2_(other, O_RDONLY) + 1;
    return NPUPROF_OK;
}

/* The number of a sysfs file resourceN or resourceN_wc; -1: another file. */
static long npuprof_npu_bar_number_(const char *name)
{
    char *end;
    if (strncmp(name, "resource", 8) != 0 || name[8] < '0' || name[8] > '9') return -1;
    const long bar = strtol(name + 8, &end, 10);
    return bar < 32 && (!*end || strcmp(end, "_wc") == 0) ? bar : -1;
}

/* A map of /dev/uioN. Where the kernel does not list that map, *path becomes a resource file of its PCI
   device. */
static npuprof_result npuprof_npu_uio_target_(npuprof_npu *npu, npuprof_npu_target_ *target, dev_t device,
                                              char path[PATH_MAX])
{
    char folder[256], name[320];
    const unsigned map = npu->desc_.resource_map;
    target->origin = map * (uint64_t)sysconf(_SC_PAGESIZE);
    target->at_begin = map > 0;
    snprintf(folder, sizeof folder, "%s/dev/char/%u:%u/", NPUPROF_NPU_SYSFS_, major(device), minor(device));
    snprintf(name, sizeof name, "%ssubsystem", folder);
    const ssize_t n = readlink(name, path, PATH_MAX - 1);
    path[n > 0 ? n : 0] = 0;
    if (n < 4 || strcmp(path + n - 4, "/uio") != 0) return NPUPROF_OK;           /* another device */
    snprintf(name, sizeof name, "%smaps/map%u/size", folder, map);
    if (npuprof_npu_read_numbers_(name, 0, &target->bytes, 1) == 1) {
        snprintf(name, sizeof name, "%smaps/map%u/offset", folder, map);
        (void)npuprof_npu_read_numbers_(name, 0, &target->before, 1);
        /* The kernel counts from the begin of the page. */
        target->bytes = npuprof_saturating_sub_(target->bytes, target->before);
        target->at_begin = true;
        snprintf(path, PATH_MAX, "%sdevice/", folder);
        return npuprof_npu_pci_target_(npu, target, path, strlen(path), -1);
    }
    snprintf(path, PATH_MAX, "%sdevice/resource%u", folder, map);
    target->origin = 0;
    target->at_begin = false;
    close(target->fd);
    target->fd = npuprof_os_open_above_2_(path, O_RDONLY);
    return target->fd < 0 ? npuprof_npu_open_error_(errno) : NPUPROF_OK;
}

static npuprof_result npuprof_npu_sysfs_target_(npuprof_npu *npu, npuprof_npu_target_ *target,
                                                const struct stat *info)
{
    char path[PATH_MAX];
    if (!realpath(npu->desc_.resource, path)) return NPUPROF_OK;
    if (S_ISCHR(info->st_mode)) {
        const npuprof_result result = npuprof_npu_uio_target_(npu, target, info->st_rdev, path);
        if (result != NPUPROF_OK) return result;
    }
    const char *slash = strrchr(path, '/');
    const long bar = slash ? npuprof_npu_bar_number_(slash + 1) : -1;
    if (bar < 0) return NPUPROF_OK;
    return npuprof_npu_pci_target_(npu, target, path, (size_t)(slash + 1 - path), bar);
}

#elif !defined(_WIN32)

static npuprof_result npuprof_npu_sysfs_target_(npuprof_npu *npu, npuprof_npu_target_ *target,
                                                const struct stat *info)
{
    (void)npu, (void)target, (void)info;
    return NPUPROF_OK;
}

#endif /* __linux__ */

#ifndef _WIN32
/* What desc.resource is. The target's file stays open unless that fails with fd < 0. */
static npuprof_result npuprof_npu_file_target_(npuprof_npu *npu, npuprof_npu_target_ *target)
{
    struct stat info;
    target->fd = npuprof_os_open_above_2_(npu->desc_.resource, O_RDONLY);
    if (target->fd < 0) return npuprof_npu_open_error_(errno);
    if (fstat(target->fd, &info) != 0 || (!S_ISREG(info.st_mode) && !S_ISCHR(info.st_mode)))
        return NPUPROF_ERR_NPU_MAP;
    if (S_ISREG(info.st_mode)) target->bytes = info.st_size > 0 ? (uint64_t)info.st_size : 0;
    return npuprof_npu_sysfs_target_(npu, target, &info);
}

#endif /* !_WIN32 */
