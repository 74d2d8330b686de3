#pragma once   /* SPDX-License-Identifier: MIT */
#include "../public/api.h"
#include "../numbers/time.h"
#include "../os/common.h"
#include "types.h"

#if !defined(_WIN32) && !defined(NPUPROF_FREESTANDING)
NPUPROF_END_C_
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>
#ifdef __linux__
#include <sys/ioctl.h>
#include <sys/sysmacros.h>
#endif
NPUPROF_BEGIN_C_

#ifndef NPUPROF_NPU_SYSFS_              /* a test has its own */
#define NPUPROF_NPU_SYSFS_ "/sys"
#endif

/* What is to be mapped, as the files around it tell. */
typedef struct npuprof_npu_target_ {
    int fd;
    bool at_begin;                       /* can be mapped from its first page only */
    bool owned;                          /* a driver is bound */
    uint64_t origin;                     /* where it begins in the file */
    uint64_t before;                     /* bytes in the first page that are not the device's */
    uint64_t bytes;                      /* how long it is; UINT64_MAX: nobody says */
} npuprof_npu_target_;

static npuprof_result npuprof_npu_map_error_(int error)
{
    if (error == EBUSY) return NPUPROF_ERR_NPU_OWNED;
    return error == EACCES || error == EPERM ? NPUPROF_ERR_ACCESS : NPUPROF_ERR_NPU_MAP;
}
static npuprof_result npuprof_npu_open_error_(int error)
{
    return error == ENOENT || error == ENODEV || error == ENXIO || error == ENOTDIR ? NPUPROF_ERR_NOT_FOUND : npuprof_npu_map_error_(error);
}

/* What the configuration space says of a PCI device: NPUPROF_OK (or nothing), _NPU_REMOVED, _NPU_DECODE_OFF. */
static npuprof_result npuprof_npu_pci_state_(const npuprof_npu *npu)
{
    unsigned char b[6];
    if (npu->config_fd_ <= 0) return NPUPROF_OK;
    const int error = errno;
    const ssize_t n = pread(npu->config_fd_ - 1, b, sizeof b, (off_t)npu->config_at_);
    const bool gone = n < 0 && errno == ENODEV;
    errno = error;
    if (n != (ssize_t)sizeof b) return gone ? NPUPROF_ERR_NPU_REMOVED : NPUPROF_OK;
    if ((b[0] & b[1] & b[2] & b[3]) == 0xFF) return NPUPROF_ERR_NPU_REMOVED;
    return b[4] & 2 || npu->is_virtual_function_ ? NPUPROF_OK : NPUPROF_ERR_NPU_DECODE_OFF;
}

/* Hand in hand with sysfs and VFIO, which only Linux has. */
#ifdef __linux__
/* Numbers of one line of a small file of sysfs, such as "0x10 0xfff"; how many there are. */
static int npuprof_npu_read_numbers_(const char *path, unsigned line, uint64_t *number, int room)
{
    char text[2048], *p = text;
    int count = 0;
    const int fd = npuprof_os_open_above_2_(path, O_RDONLY);
    if (fd < 0) return 0;
    const ssize_t n = read(fd, text, sizeof text - 1);
    close(fd);
    text[n > 0 ? n : 0] = 0;
    for (; line && p; line--) p = (p = strchr(p, '\n')) ? p + 1 : NULL;
    while (p && count < room) {
        char *end;
        number[count] = strtoull(p, &end, 0);
        if (end == p) break;
        count++;
        p = *end == '\n' ? NULL : end;
    }
    return count;
}

/* A PCI device by its folder in sysfs, which the path begins with: `length` bytes. bar < 0: none of its BARs. */
static npuprof_result npuprof_npu_pci_target_(npuprof_npu *npu, npuprof_npu_target_ *target, const char *path, size_t length, long bar)
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
    npu->is_virtual_function_ = access(other, F_OK) == 0;        /* its decode is its physical function's */
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

/* A map of /dev/uioN. *path is changed to a resource file of its PCI device where the kernel lists no such map. */
static npuprof_result npuprof_npu_uio_target_(npuprof_npu *npu, npuprof_npu_target_ *target, dev_t device, char path[PATH_MAX])
{
    char folder[256], name[320];
    const unsigned map = npu->desc_.resource_map;
    target->origin = map * (uint64_t)sysconf(_SC_PAGESIZE);
    target->at_begin = map > 0;
    snprintf(folder, sizeof folder, "%s/dev/char/%u:%u/", NPUPROF_NPU_SYSFS_, major(device), minor(device));
    snprintf(name, sizeof name, "%ssubsystem", folder);
    const ssize_t n = readlink(name, path, PATH_MAX - 1);
    path[n > 0 ? n : 0] = 0;
    if (n < 4 || strcmp(path + n - 4, "/uio") != 0) return NPUPROF_OK;           /* some other device */
    snprintf(name, sizeof name, "%smaps/map%u/size", folder, map);
    if (npuprof_npu_read_numbers_(name, 0, &target->bytes, 1) == 1) {
        snprintf(name, sizeof name, "%smaps/map%u/offset", folder, map);
        (void)npuprof_npu_read_numbers_(name, 0, &target->before, 1);
        target->bytes = npuprof_saturating_sub_(target->bytes, target->before);           /* which counts from the page's begin */
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

static npuprof_result npuprof_npu_linux_target_(npuprof_npu *npu, npuprof_npu_target_ *target, const struct stat *info)
{
    char path[PATH_MAX];
    if (!realpath(npu->desc_.resource, path)) return NPUPROF_OK;
    if (S_ISCHR(info->st_mode)) {
        const npuprof_result result = npuprof_npu_uio_target_(npu, target, info->st_rdev, path);
        if (result != NPUPROF_OK) return result;
    }
    const char *slash = strrchr(path, '/');
    const long bar = slash ? npuprof_npu_bar_number_(slash + 1) : -1;
    return bar < 0 ? NPUPROF_OK : npuprof_npu_pci_target_(npu, target, path, (size_t)(slash + 1 - path), bar);
}

/* Why by hand: <linux/vfio.h> is not everywhere, and these structures cannot change. */
typedef struct npuprof_npu_vfio_device_ { uint32_t argsz, flags, regions, interrupts, capabilities, padding; } npuprof_npu_vfio_device_;
typedef struct npuprof_npu_vfio_region_ { uint32_t argsz, flags, index, capabilities; uint64_t size, offset; } npuprof_npu_vfio_region_;

static npuprof_result npuprof_npu_ask_vfio_(int fd, unsigned index, npuprof_npu_vfio_region_ *region)
{
    memset(region, 0, sizeof *region);
    region->argsz = sizeof *region;
    region->index = index;
    if (ioctl(fd, _IO(';', 108), region) == 0) return region->size ? NPUPROF_OK : NPUPROF_ERR_NOT_FOUND;
    return errno == ENODEV ? NPUPROF_ERR_NPU_REMOVED : errno == EINVAL ? NPUPROF_ERR_NOT_FOUND : NPUPROF_ERR_NPU_MAP;
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
        if (index < bars && pread(target->fd, &bar, 1, (off_t)(space.offset + 0x10 + 4 * index)) == 1 && bar & 1) return NPUPROF_ERR_NPU_IO_PORT;
    }
    target->origin = region.offset;
    target->bytes = region.size;
    return region.flags & can_mmap ? NPUPROF_OK : NPUPROF_ERR_NPU_MAP;
}
#else
static npuprof_result npuprof_npu_linux_target_(npuprof_npu *npu, npuprof_npu_target_ *target, const struct stat *info)
{
    (void)npu, (void)target, (void)info;
    return NPUPROF_OK;
}
static npuprof_result npuprof_npu_vfio_target_(npuprof_npu *npu, npuprof_npu_target_ *target)
{
    (void)npu, (void)target;
    return NPUPROF_ERR_UNSUPPORTED;
}
#endif

/* What desc.resource is. Leaves its file open, but where that fails. */
static npuprof_result npuprof_npu_file_target_(npuprof_npu *npu, npuprof_npu_target_ *target)
{
    struct stat info;
    target->fd = npuprof_os_open_above_2_(npu->desc_.resource, O_RDONLY);
    if (target->fd < 0) return npuprof_npu_open_error_(errno);
    if (fstat(target->fd, &info) != 0 || (!S_ISREG(info.st_mode) && !S_ISCHR(info.st_mode))) return NPUPROF_ERR_NPU_MAP;
    if (S_ISREG(info.st_mode)) target->bytes = info.st_size > 0 ? (uint64_t)info.st_size : 0;
    return npuprof_npu_linux_target_(npu, target, &info);
}

/* The mappings that a SIGBUS may come from. Why a table: a handler walks it while others open and close. */
enum { NPUPROF_NPU_GUARDS_ = 255 };
typedef struct npuprof_npu_guard_ {
    uintptr_t base;                      /* 0 = free */
    size_t bytes;
    uint32_t *gone;
} npuprof_npu_guard_;
static npuprof_npu_guard_ npuprof_npu_guards_[NPUPROF_NPU_GUARDS_];
static uint32_t npuprof_npu_guards_used_, npuprof_npu_guards_lock_;
static bool npuprof_npu_has_handler_;
static struct sigaction npuprof_npu_old_action_;

/* Why not all ones in place of the device: others may read before they are written. The flag is set before the mapping changes. */
NPUPROF_API_ bool npuprof_npu_fault(const void *address)
{
    for (int i = 0; i < NPUPROF_NPU_GUARDS_; i++) {
        npuprof_npu_guard_ *guard = &npuprof_npu_guards_[i];
        const uintptr_t base = NPUPROF_LOAD_ACQUIRE_(&guard->base);
        if (!base || (uintptr_t)address - base >= guard->bytes) continue;
        const int error = errno;
        NPUPROF_STORE_RELEASE_(guard->gone, 1u);
        const bool done = mmap((void *)base, guard->bytes, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0) != MAP_FAILED;
        errno = error;
        return done;
    }
    return false;
}

static void npuprof_npu_on_sigbus_(int number, siginfo_t *info, void *context)
{
    const struct sigaction *old = &npuprof_npu_old_action_;
    if (info->si_code > 0 && npuprof_npu_fault(info->si_addr)) return;
    if (old->sa_flags & SA_SIGINFO) {
        old->sa_sigaction(number, info, context);
    } else if (old->sa_handler != SIG_DFL && old->sa_handler != SIG_IGN) {
        old->sa_handler(number);
    } else {                             /* as if nobody had been here: the fault comes again */
        (void)sigaction(number, old, NULL);
        if (info->si_code <= 0) (void)raise(number);
    }
}

static void npuprof_npu_lock_guards_(void)
{
    uint32_t nobody;
    do nobody = 0; while (!NPUPROF_CAS_(&npuprof_npu_guards_lock_, &nobody, 1u));
}

static void npuprof_npu_guard_map_(npuprof_npu *npu)
{
    npuprof_npu_lock_guards_();
    for (uint32_t i = 0; i < NPUPROF_NPU_GUARDS_ && !npu->guard_; i++) {
        npuprof_npu_guard_ *guard = &npuprof_npu_guards_[i];
        if (guard->base) continue;
        guard->bytes = npu->map_bytes_;
        guard->gone = &npu->gone_;
        NPUPROF_STORE_RELEASE_(&guard->base, (uintptr_t)npu->map_);
        npu->guard_ = i + 1;
        npuprof_npu_guards_used_++;
    }
    if (!npuprof_npu_has_handler_) {
        struct sigaction action;
        memset(&action, 0, sizeof action);
        action.sa_sigaction = npuprof_npu_on_sigbus_;
        action.sa_flags = SA_SIGINFO | SA_ONSTACK;
        npuprof_npu_has_handler_ = sigaction(SIGBUS, &action, &npuprof_npu_old_action_) == 0;
    }
    NPUPROF_STORE_RELEASE_(&npuprof_npu_guards_lock_, 0u);
}

static void npuprof_npu_unguard_map_(npuprof_npu *npu)
{
    struct sigaction now;
    if (!npu->guard_) return;
    npuprof_npu_lock_guards_();
    NPUPROF_STORE_RELEASE_(&npuprof_npu_guards_[npu->guard_ - 1].base, (uintptr_t)0);
    npu->guard_ = 0;
    /* Why the look: a handler that came later knows ours, which then stays. */
    if (--npuprof_npu_guards_used_ == 0 && sigaction(SIGBUS, NULL, &now) == 0 && now.sa_flags & SA_SIGINFO &&
        now.sa_sigaction == npuprof_npu_on_sigbus_)
        npuprof_npu_has_handler_ = sigaction(SIGBUS, &npuprof_npu_old_action_, NULL) != 0;
    NPUPROF_STORE_RELEASE_(&npuprof_npu_guards_lock_, 0u);
}

/* Maps desc.resource or the VFIO region read-only. needed: bytes that the registers and the ring reach to. */
static npuprof_result npuprof_npu_map_(npuprof_npu *npu, size_t needed)
{
    const npuprof_npu_desc *desc = &npu->desc_;
    npuprof_npu_target_ target = { -1, false, false, 0, 0, UINT64_MAX };
    const uint64_t page = (uint64_t)sysconf(_SC_PAGESIZE), offset = desc->resource_offset;
    npuprof_result result = desc->vfio ? npuprof_npu_vfio_target_(npu, &target) : npuprof_npu_file_target_(npu, &target);
    if (result == NPUPROF_OK && (offset > SIZE_MAX / 4 || offset > target.bytes || target.bytes - offset < needed)) result = NPUPROF_ERR_NPU_RANGE;
    if (result == NPUPROF_OK) result = npuprof_npu_pci_state_(npu);
    if (result == NPUPROF_OK) {
        const uint64_t first = target.before + offset, skip = target.at_begin ? first : first % page;
        const uint64_t at = target.origin + (first - skip);
        const size_t bytes = (size_t)skip + needed;
        errno = EOVERFLOW;
        void *map = (uint64_t)(off_t)at == at ? mmap(NULL, bytes, PROT_READ, MAP_SHARED, target.fd, (off_t)at) : MAP_FAILED;
        if (map == MAP_FAILED) {
            result = errno == EINVAL && target.owned ? NPUPROF_ERR_NPU_OWNED : npuprof_npu_map_error_(errno);
        } else {
            npu->map_ = map;
            npu->map_bytes_ = bytes;
            npu->bar_ = (const volatile unsigned char *)map + skip;
            if (desc->catch_sigbus) npuprof_npu_guard_map_(npu);
        }
    }
    if (target.fd >= 0 && !desc->vfio) close(target.fd);
    return result;
}
static void npuprof_npu_unmap_(npuprof_npu *npu)
{
    npuprof_npu_unguard_map_(npu);
    if (npu->map_) munmap(npu->map_, npu->map_bytes_);
    if (npu->config_fd_ > 0 && !npu->desc_.vfio) close(npu->config_fd_ - 1);
    npu->map_ = NULL;
    npu->config_fd_ = 0;
}
#else
static npuprof_result npuprof_npu_map_(npuprof_npu *npu, size_t needed)
{
    NPUPROF_UNUSED_(npu);
    NPUPROF_UNUSED_(needed);
    return NPUPROF_ERR_UNSUPPORTED;
}
static npuprof_result npuprof_npu_pci_state_(const npuprof_npu *npu)
{
    NPUPROF_UNUSED_(npu);
    return NPUPROF_OK;
}
static void npuprof_npu_unmap_(npuprof_npu *npu) { NPUPROF_UNUSED_(npu); }
NPUPROF_API_ bool npuprof_npu_fault(const void *address)
{
    NPUPROF_UNUSED_(address);
    return false;
}
#endif
