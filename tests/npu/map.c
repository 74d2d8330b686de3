/* test: san=address,undefined - where a device's registers are: BARs of sysfs, UIO, VFIO,
   files that are cut, and what each failure is called
   SPDX-License-Identifier: MIT

   The files that the kernel would show lie in a temporary folder; ioctl() and, where it must fail, mmap() are
   the test's. What only a kernel can show is in tests/qemu. */
#include "sim.h"
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdarg.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/stat.h>

static char sysfs[200];
static int mmap_error;               /* fails so, if not 0 */
static void *fake_mmap(void *at, size_t bytes, int protection, int flags, int fd, off_t offset)
{
    CHECK(fd < 0 || protection == PROT_READ);      /* no register can be written by way of the library */
    if (fd < 0 || !mmap_error) return (mmap)(at, bytes, protection, flags, fd, offset);
    errno = mmap_error;
    return MAP_FAILED;
}
static int fake_ioctl(int fd, unsigned long request, void *argument);
#define NPUPROF_NPU_SYSFS_ sysfs
#define mmap fake_mmap
#define ioctl fake_ioctl
#define NPUPROF_IMPLEMENTATION
#include "npuprof.h"
#include "npuprof_npu.h"
#undef mmap
#undef ioctl
#if defined(__has_include)
#if __has_include(<linux/vfio.h>)
#include <linux/vfio.h>
#endif
#endif

enum { PAGE = 4096, COUNT = 77777 };
static npuprof_npu npu;

static char *path_of(const char *name)
{
    static char path[8][400];
    static int next;
    char *p = path[next++ % 8];
    snprintf(p, sizeof path[0], "%s/%s", sysfs, name);
    return p;
}

static void folder(const char *name)
{
    char *path = path_of(name);
    for (char *c = path + 1; *c; c++) {
        if (*c != '/') continue;
        *c = 0;
        mkdir(path, 0700);
        *c = '/';
    }
    mkdir(path, 0700);
}

static void file(const char *name, const void *bytes, size_t count, size_t size)
{
    const int fd = open(path_of(name), O_RDWR | O_CREAT | O_TRUNC, 0600);
    CHECK_STOP(fd >= 0 && write(fd, bytes, count) == (ssize_t)count && ftruncate(fd, (off_t)size) == 0);
    close(fd);
}

static void text(const char *name, const char *line) { file(name, line, strlen(line), strlen(line)); }

/* A BAR with counters of COUNT at `offset`. */
static void bar(const char *name, size_t offset, size_t size)
{
    const uint32_t count = COUNT;
    const int fd = open(path_of(name), O_RDWR | O_CREAT | O_TRUNC, 0600);
    CHECK_STOP(fd >= 0 && ftruncate(fd, (off_t)size) == 0 && pwrite(fd, &count, 4, (off_t)offset) == 4);
    close(fd);
}

static void config(const char *name, unsigned vendor, unsigned command)
{
    const unsigned char bytes[64] = { vendor & 0xFF, vendor >> 8 & 0xFF, vendor & 0xFF, vendor >> 8 & 0xFF,
                                      command & 0xFF };
    file(name, bytes, sizeof bytes, sizeof bytes);
}

/* A PCI device as sysfs shows it: BAR 0 of 8 KiB at 0x30, BAR 1 of 256 bytes that begins inside a page, BAR 2
   of I/O ports. */
static void pci_device(const char *in)
{
    snprintf(sysfs, sizeof sysfs, "%s", check_path("sys"));
    const size_t length = strlen(sysfs);
    folder(in);
    strcpy(sysfs, path_of(in));
    text("resource", "0x00000000fe000000 0x00000000fe001fff 0x0000000000040200\n"
                     "0x00000000fe002100 0x00000000fe0021ff 0x0000000000040200\n"
                     "0x000000000000c000 0x000000000000c0ff 0x0000000000040101\n");
    bar("resource0", 0x30, 2 * PAGE);
    bar("resource0_wc", 0x30, 2 * PAGE);
    bar("resource1", 0x100 + 0x30, PAGE);
    bar("resource2", 0x30, PAGE);
    config("config", 0x1234, 2);
    unlink(path_of("driver"));
    unlink(path_of("physfn"));
    sysfs[length] = 0;
}

static npuprof_npu_desc desc_of(const char *resource)
{
    npuprof_npu_desc desc;
    memset(&desc, 0, sizeof desc);
    desc.resource = resource;
    desc.counter.lo_offset = 0x30;
    desc.counter.bits = 32;
    desc.counter.order = NPUPROF_NPU_SINGLE;
    return desc;
}

/* NPUPROF_OK only if the value is the right one, too. NPUPROF_ERR_NPU_STOPPED: it is 0, maybe a counter that
   is idle. */
static npuprof_result opened(const npuprof_npu_desc *desc)
{
    uint64_t ticks = 0;
    npuprof_result result = npuprof_npu_open(&npu, desc);
    if (result == NPUPROF_OK) result = npuprof_npu_read(&npu, &ticks);
    if (result == NPUPROF_OK && !ticks) result = NPUPROF_ERR_NPU_STOPPED;
    if (result == NPUPROF_OK && ticks != COUNT)
        check_failed_(__FILE__, __LINE__, "counter is %" PRIu64, ticks);
    npuprof_npu_close(&npu);
    return result;
}

static int open_files(void)
{
    int count = 0;
    for (int fd = 0; fd < 256; fd++) count += fcntl(fd, F_GETFD) >= 0;
    return count;
}

static void bars_of_sysfs(void)
{
    pci_device("dev0");
    const int files = open_files();
    npuprof_npu_desc desc = desc_of(path_of("dev0/resource0"));
    CHECK_INT(opened(&desc), NPUPROF_OK);
    desc.resource = path_of("dev0/resource0_wc");
    CHECK_INT(opened(&desc), NPUPROF_OK);
    desc.resource = path_of("dev0/resource1");                   /* begins at byte 0x100 of its page */
    CHECK_INT(opened(&desc), NPUPROF_OK);
    desc.resource_offset = 0x10;
    desc.counter.lo_offset = 0x20;
    CHECK_INT(opened(&desc), NPUPROF_OK);
    desc.counter.lo_offset = 0x100 - 0x10;                       /* the file has it, the BAR does not */
    CHECK_INT(opened(&desc), NPUPROF_ERR_NPU_RANGE);
    desc.resource_offset = SIZE_MAX;
    CHECK_INT(opened(&desc), NPUPROF_ERR_NPU_RANGE);
    desc = desc_of(path_of("dev0/resource0"));
    desc.counter.lo_offset = 2 * PAGE;
    CHECK_INT(opened(&desc), NPUPROF_ERR_NPU_RANGE);
    desc = desc_of(path_of("dev0/resource2"));
    CHECK_INT(opened(&desc), NPUPROF_ERR_NPU_IO_PORT);
    desc.resource = path_of("dev0/resource4");
    CHECK_INT(opened(&desc), NPUPROF_ERR_NOT_FOUND);
    CHECK_INT(symlink(path_of("dev0/resource1"), path_of("my-npu")) == 0 || errno == EEXIST, 1);
    desc.resource = path_of("my-npu");                           /* by another name */
    CHECK_INT(opened(&desc), NPUPROF_OK);
    CHECK_INT(open_files(), files);
}

static void devices_that_do_not_answer(void)
{
    pci_device("dev1");
    npuprof_npu_desc desc = desc_of(path_of("dev1/resource0"));
    const int files = open_files();
    config("dev1/config", 0x1234, 1);
    CHECK_INT(opened(&desc), NPUPROF_ERR_NPU_DECODE_OFF);
    CHECK_INT(symlink(".", path_of("dev1/physfn")), 0);    /* a virtual function has no such bit */
    CHECK_INT(opened(&desc), NPUPROF_OK);
    unlink(path_of("dev1/physfn"));
    config("dev1/config", 0xFFFF, 0xFF);
    CHECK_INT(opened(&desc), NPUPROF_ERR_NPU_REMOVED);
    unlink(path_of("dev1/config"));                              /* nothing said is nothing wrong */
    CHECK_INT(opened(&desc), NPUPROF_OK);
    config("dev1/config", 0x1234, 2);
    file("dev1/resource0", "", 0, 2 * PAGE);
    CHECK_INT(opened(&desc), NPUPROF_ERR_NPU_STOPPED);
    CHECK_INT(open_files(), files);
}

static void owned_by_a_driver(void)
{
    pci_device("dev2");
    npuprof_npu_desc desc = desc_of(path_of("dev2/resource0"));
    mmap_error = EINVAL;
    CHECK_INT(opened(&desc), NPUPROF_ERR_NPU_MAP);
    CHECK_INT(symlink("../drivers/nvme", path_of("dev2/driver")), 0);
    CHECK_INT(opened(&desc), NPUPROF_ERR_NPU_MAP);               /* leads nowhere */
    folder("drivers/nvme");
    CHECK_INT(opened(&desc), NPUPROF_ERR_NPU_OWNED);
    unlink(path_of("dev2/driver"));
    mmap_error = EBUSY;
    CHECK_INT(opened(&desc), NPUPROF_ERR_NPU_OWNED);
    mmap_error = EPERM;
    CHECK_INT(opened(&desc), NPUPROF_ERR_ACCESS);
    mmap_error = 0;
    CHECK_INT(opened(&desc), NPUPROF_OK);
}

/* While it is open, too: the reason where the configuration space tells it, and nothing in the trace. */
static void dies_while_open(void)
{
    pci_device("dev3");
    npuprof_npu_desc desc = desc_of(path_of("dev3/resource0"));
    uint64_t ticks;
    CHECK_STOP(npuprof_npu_open(&npu, &desc) == NPUPROF_OK);
    const uint32_t ones = UINT32_MAX;
    const int fd = open(path_of("dev3/resource0"), O_RDWR);
    CHECK(pwrite(fd, &ones, 4, 0x30) == 4);
    sim.host += 10000000;
    CHECK_INT(npuprof_npu_read(&npu, &ticks), NPUPROF_ERR_NPU_DEAD);
    CHECK_UINT(ticks, COUNT);
    config("dev3/config", 0x1234, 0);
    CHECK_INT(npuprof_npu_read(&npu, &ticks), NPUPROF_ERR_NPU_DECODE_OFF);
    CHECK_INT(npuprof_npu_sync(&npu), NPUPROF_ERR_NPU_DECODE_OFF);
    config("dev3/config", 0xFFFF, 0xFF);
    CHECK_INT(npuprof_npu_read(&npu, &ticks), NPUPROF_ERR_NPU_REMOVED);
    close(fd);
    npuprof_npu_close(&npu);
}

/* The program has closed all descriptors, and a file of its own has the number of the configuration space.
   That says nothing of the device, and stays open. */
static void closed_while_open(void)
{
    pci_device("dev4");
    npuprof_npu_desc desc = desc_of(path_of("dev4/resource0"));
    uint64_t ticks;
    CHECK_STOP(npuprof_npu_open(&npu, &desc) == NPUPROF_OK);
    config("own", 0x1234, 0);
    const int first = open(path_of("own"), O_RDONLY), own = dup2(first, npu.config_fd_ - 1);
    const int fd = open(path_of("dev4/resource0"), O_RDWR);
    const uint32_t ones = UINT32_MAX;
    CHECK(pwrite(fd, &ones, 4, 0x30) == 4);
    sim.host += 10000000;
    CHECK_INT(npuprof_npu_read(&npu, &ticks), NPUPROF_ERR_NPU_DEAD);
    npuprof_npu_close(&npu);
    CHECK_INT(close(own), 0);
    close(first);
    close(fd);
}

/* /dev/zero (1:5) in the part of a UIO device: it can be mapped anywhere, and reads as dead. */
static void uio(void)
{
    pci_device("dev/char/1:5/device");
    folder("dev/char/1:5/maps/map0");
    folder("dev/char/1:5/maps/map1");
    folder("class/uio");
    (void)symlink("../../../class/uio", path_of("dev/char/1:5/subsystem"));
    text("dev/char/1:5/maps/map0/size", "0x2000\n");
    text("dev/char/1:5/maps/map0/offset", "0x0\n");
    text("dev/char/1:5/maps/map1/size", "0x1000\n");
    text("dev/char/1:5/maps/map1/offset", "0x100\n");
    const int files = open_files();
    npuprof_npu_desc desc = desc_of("/dev/zero");
    CHECK_INT(opened(&desc), NPUPROF_ERR_NPU_STOPPED);
    desc.resource_offset = 2 * PAGE - 0x34;
    CHECK_INT(opened(&desc), NPUPROF_ERR_NPU_STOPPED);
    desc.resource_offset++;
    CHECK_INT(opened(&desc), NPUPROF_ERR_NPU_RANGE);
    desc.resource_map = 1;
    desc.resource_offset = PAGE - 0x134;
    CHECK_INT(opened(&desc), NPUPROF_ERR_NPU_STOPPED);
    desc.resource_offset++;
    CHECK_INT(opened(&desc), NPUPROF_ERR_NPU_RANGE);
    desc.resource_offset = 0;
    config("dev/char/1:5/device/config", 0x1234, 0);
    CHECK_INT(opened(&desc), NPUPROF_ERR_NPU_DECODE_OFF);
    config("dev/char/1:5/device/config", 0x1234, 2);
    desc.resource_map = 2;                                       /* not listed: its PCI device's BAR */
    CHECK_INT(opened(&desc), NPUPROF_ERR_NPU_IO_PORT);
    unlink(path_of("dev/char/1:5/maps/map1/size"));
    desc.resource_map = 1;
    CHECK_INT(opened(&desc), NPUPROF_OK);
    desc.resource_map = 3;
    CHECK_INT(opened(&desc), NPUPROF_ERR_NOT_FOUND);
    unlink(path_of("dev/char/1:5/subsystem"));                   /* no UIO: the device as it is */
    CHECK_INT(opened(&desc), NPUPROF_ERR_NPU_STOPPED);
    CHECK_INT(open_files(), files);
}

/* A VFIO device is one file: BAR 0 at page 1, BAR 1 of ports, BAR 2 that cannot be mapped, configuration
   space at page 4. */
static int vfio_error;
static bool vfio_is_pci;
static int fake_ioctl(int fd, unsigned long request, void *argument)
{
    (void)fd;
#ifdef VFIO_DEVICE_GET_REGION_INFO
    CHECK_UINT(_IO(';', 107), VFIO_DEVICE_GET_INFO);
    CHECK_UINT(_IO(';', 108), VFIO_DEVICE_GET_REGION_INFO);
    CHECK_UINT(sizeof(npuprof_npu_vfio_region_), sizeof(struct vfio_region_info));
    CHECK_UINT(offsetof(npuprof_npu_vfio_region_, offset), offsetof(struct vfio_region_info, offset));
    CHECK(VFIO_REGION_INFO_FLAG_MMAP == 4 && VFIO_DEVICE_FLAGS_PCI == 2 && VFIO_PCI_CONFIG_REGION_INDEX == 7
          && VFIO_PCI_BAR5_REGION_INDEX == 5);
#endif
    if (vfio_error) {
        errno = vfio_error;
        return -1;
    }
    if (request == _IO(';', 107)) {
        ((npuprof_npu_vfio_device_ *)argument)->flags = vfio_is_pci ? 2 : 4;
        return 0;
    }
    npuprof_npu_vfio_region_ *r = (npuprof_npu_vfio_region_ *)argument;
    CHECK(request == _IO(';', 108) && r->argsz == sizeof *r);
    if (r->index > 8) {
        errno = EINVAL;
        return -1;
    }
    r->flags = r->index == 0 ? 7 : 3;
    r->size = r->index == 0 ? 2 * PAGE : r->index < 3 || r->index == 7 ? 256 : 0;
    r->offset = r->index == 0 ? PAGE : r->index == 7 ? 4 * PAGE : 3 * PAGE;
    return 0;
}

static void vfio(void)
{
    snprintf(sysfs, sizeof sysfs, "%s", check_path("sys"));
    folder("vfio");
    bar("vfio/device", PAGE + 0x30, 5 * PAGE);
    const int fd = open(path_of("vfio/device"), O_RDWR);
    unsigned char space[64] = { 0x34, 0x12, 0x34, 0x12, 2 };
    space[0x14] = 1;                                             /* BAR 1: ports */
    CHECK_STOP(fd >= 0 && pwrite(fd, space, 64, 4 * PAGE) == 64);
    vfio_is_pci = true;
    npuprof_npu_desc desc = desc_of(NULL);
    desc.vfio = true;
    desc.vfio_device_fd = fd;
    CHECK_INT(opened(&desc), NPUPROF_OK);
    CHECK(fcntl(fd, F_GETFD) >= 0);                              /* the descriptor is the caller's */
    desc.resource_offset = 0x10;
    desc.counter.lo_offset = 0x20;
    CHECK_INT(opened(&desc), NPUPROF_OK);
    desc.resource_offset = 2 * PAGE - 0x20;
    CHECK_INT(opened(&desc), NPUPROF_ERR_NPU_RANGE);
    desc = desc_of(NULL);
    desc.vfio = true;
    desc.vfio_device_fd = fd;
    desc.vfio_region = 1;
    CHECK_INT(opened(&desc), NPUPROF_ERR_NPU_IO_PORT);
    desc.vfio_region = 2;
    CHECK_INT(opened(&desc), NPUPROF_ERR_NPU_MAP);
    desc.vfio_region = 3;
    CHECK_INT(opened(&desc), NPUPROF_ERR_NOT_FOUND);
    desc.vfio_region = 9;
    CHECK_INT(opened(&desc), NPUPROF_ERR_NOT_FOUND);
    desc.vfio_region = 0;
    vfio_error = ENODEV;
    CHECK_INT(opened(&desc), NPUPROF_ERR_NPU_REMOVED);
    vfio_error = ENOTTY;
    CHECK_INT(opened(&desc), NPUPROF_ERR_NPU_MAP);
    vfio_error = 0;
    space[4] = 0;
    CHECK_STOP(pwrite(fd, space, 64, 4 * PAGE) == 64);
    CHECK_INT(opened(&desc), NPUPROF_ERR_NPU_DECODE_OFF);
    vfio_is_pci = false;
    CHECK_INT(opened(&desc), NPUPROF_OK);
    close(fd);
}

static volatile sig_atomic_t strange_faults;
static const unsigned char *strange_page;
static void on_strange_fault(int number, siginfo_t *info, void *context)
{
    (void)number, (void)context;
    strange_faults += info->si_addr == (const void *)strange_page;
    if ((mmap)((void *)(uintptr_t)strange_page, PAGE, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1,
               0) == MAP_FAILED) _exit(3);
}

/* A mapping that raises SIGBUS is a dead device; a fault elsewhere goes to who was there before. */
static void sigbus(void)
{
    struct sigaction mine, now;
    npuprof_npu other;
    uint64_t ticks;
    memset(&mine, 0, sizeof mine);
    mine.sa_sigaction = on_strange_fault;
    mine.sa_flags = SA_SIGINFO;
    CHECK_STOP(sigaction(SIGBUS, &mine, NULL) == 0);
    snprintf(sysfs, sizeof sysfs, "%s", check_path("sys"));
    folder("files");
    bar("files/a", 0x30, PAGE);
    bar("files/b", 0x30, PAGE);
    bar("files/c", 0x30, PAGE);
    npuprof_start(1);
    npuprof_npu_desc desc = desc_of(path_of("files/a"));
    desc.counter.hz = 25000000;
    CHECK_STOP(npuprof_npu_open(&npu, &desc) == NPUPROF_OK);     /* unasked, nothing is installed */
    CHECK(sigaction(SIGBUS, NULL, &now) == 0 && now.sa_sigaction == on_strange_fault);
    npuprof_npu_close(&npu);

    desc.catch_sigbus = true;
    CHECK_STOP(npuprof_npu_open(&npu, &desc) == NPUPROF_OK);
    desc.resource = path_of("files/b");
    CHECK_STOP(npuprof_npu_open(&other, &desc) == NPUPROF_OK);
    CHECK(!npuprof_npu_fault(NULL) && !npuprof_npu_fault(&desc));
    CHECK_INT(truncate(path_of("files/a"), 0), 0);
    sim.host += 1000000;
    CHECK_INT(npuprof_npu_read(&npu, &ticks), NPUPROF_ERR_NPU_DEAD);
    CHECK_UINT(ticks, COUNT);
    CHECK_INT(npuprof_npu_sync(&npu), NPUPROF_ERR_NPU_DEAD);
    WITH_NPU_PROFILER(&npu, 0, "block", "NPU", PROF_NO_ARGS, sim.host += 1000);
    CHECK_INT(npuprof_npu_read(&other, &ticks), NPUPROF_OK);

    const int fd = open(path_of("files/c"), O_RDWR);
    strange_page = (const unsigned char *)(mmap)(NULL, PAGE, PROT_READ, MAP_SHARED, fd, 0);
    CHECK_INT(ftruncate(fd, 0), 0);
    CHECK_INT(*(const volatile unsigned char *)strange_page, 0);
    CHECK_INT(strange_faults, 1);
    close(fd);
    npuprof_npu_close(&npu);
    /* the other one is still open */
    CHECK(sigaction(SIGBUS, NULL, &now) == 0 && now.sa_sigaction != on_strange_fault);
    npuprof_npu_close(&other);
    CHECK(sigaction(SIGBUS, NULL, &now) == 0 && now.sa_sigaction == on_strange_fault);

    desc.ring.offset = 0x100;                                    /* a ring that goes with its BAR */
    desc.ring.entry_bytes = 16;
    desc.ring.count = 4;
    desc.ring.producer.offset = 0x40;
    desc.ring.start.width_bytes = desc.ring.end.width_bytes = 8;
    desc.ring.end.offset = 8;
    CHECK_STOP(npuprof_npu_open(&other, &desc) == NPUPROF_OK);
    WITH_NPU_PROFILER(&other, 0, "block", "NPU", PROF_NO_ARGS, CHECK_INT(truncate(path_of("files/b"), 0), 0));
    CHECK_INT(npuprof_npu_drain(&other), NPUPROF_ERR_NPU_DEAD);
    npuprof_npu_close(&other);
    npuprof_stats stats;
    npuprof_get_stats(&stats);
    CHECK(stats.recorded == 3 && stats.lost == 0);               /* two host spans and a mark */
    memset(&desc.ring, 0, sizeof desc.ring);
    bar("files/a", 0x30, PAGE);                                  /* and again */
    desc.resource = path_of("files/a");
    CHECK_INT(opened(&desc), NPUPROF_OK);
}

CHECK_MAIN(CASE(bars_of_sysfs), CASE(devices_that_do_not_answer), CASE(owned_by_a_driver),
           CASE(dies_while_open), CASE(closed_while_open), CASE(uio), CASE(vfio),
           CASE(sigbus))
