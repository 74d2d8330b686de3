/* ways.c - one job on Intel HDA's clock, its registers reached through sysfs, UIO and VFIO. The traces must
   be the same.
   SPDX-License-Identifier: MIT */
#include "guest.h"
#include "../../examples/devices/hda_regs.h"
#include <linux/vfio.h>
#include <sys/ioctl.h>

static npuprof_npu npu;
static const char *pci;

static npuprof_npu_desc describe(void)
{
    npuprof_npu_desc desc = hda_npu_desc();
    pci = guest_pci(0x8086, 0x2668);
    return desc;
}

/* Gives the device to a driver that lets programs have it. */
static void bind_to(const char *driver)
{
    const char *address = strrchr(pci, '/') + 1;
    (void)guest_write(guest_path("%s/driver/unbind", pci), address);
    CHECK_INT(guest_write(guest_path("%s/driver_override", pci), driver), 0);
    CHECK_INT(guest_write("/sys/bus/pci/drivers_probe", address), 0);
    CHECK(access(guest_path("%s/driver", pci), F_OK) == 0);
}

static void job(const npuprof_npu_desc *desc, const char *file)
{
    guest_open(&npu, desc);
    for (int layer = 0; layer < 8; layer++) {
        PROF_SCOPE_ARGS("Runtime", "layer", PROF_ARGS(PROF_INT("layer", layer)));
        WITH_NPU_PROFILER(&npu, 0, "kernel", "NPU", PROF_ARGS(PROF_INT("layer", layer)), {
            guest_sleep_ns(1000000 * (layer + 1));
        });
    }
    npuprof_npu_close(&npu);
    guest_send_trace(file);
}

static void through_sysfs(void)
{
    npuprof_npu_desc desc = describe();
    CHECK_INT(guest_write(guest_path("%s/enable", pci), "1"), 0);
    desc.resource = guest_path("%s/resource0", pci);
    job(&desc, "way_sysfs.json");
}

static void through_uio(void)
{
    npuprof_npu_desc desc = describe();
    bind_to("uio_pci_generic");
    desc.resource = "/dev/uio0";
    job(&desc, "way_uio.json");
}

static int vfio_device;
static npuprof_npu_desc open_vfio(void)
{
    npuprof_npu_desc desc = describe();
    char link[256] = "";
    bind_to("vfio-pci");
    CHECK_STOP(readlink(guest_path("%s/iommu_group", pci), link, sizeof link - 1) > 0);
    const int container = open("/dev/vfio/vfio", O_RDWR | O_CLOEXEC);
    const int group = open(guest_path("/dev/vfio/%s", strrchr(link, '/') + 1), O_RDWR | O_CLOEXEC);
    CHECK_STOP(container >= 0 && group >= 0);
    CHECK_STOP(ioctl(group, VFIO_GROUP_SET_CONTAINER, &container) == 0);
    CHECK_STOP(ioctl(container, VFIO_SET_IOMMU, VFIO_TYPE1_IOMMU) == 0);
    vfio_device = ioctl(group, VFIO_GROUP_GET_DEVICE_FD, strrchr(pci, '/') + 1);
    CHECK_STOP(vfio_device >= 0);
    desc.vfio = true;
    desc.vfio_device_fd = vfio_device;
    desc.vfio_region = VFIO_PCI_BAR0_REGION_INDEX;
    return desc;
}

static void through_vfio(void)
{
    const npuprof_npu_desc desc = open_vfio();
    job(&desc, "way_vfio.json");
}

/* Regions that cannot be: each is told apart. */
static void regions_of_vfio(void)
{
    npuprof_npu_desc desc = open_vfio();
    desc.vfio_region = 100;
    CHECK_INT(npuprof_npu_open(&npu, &desc), NPUPROF_ERR_NOT_FOUND);
    desc.vfio_region = VFIO_PCI_CONFIG_REGION_INDEX;
    CHECK_INT(npuprof_npu_open(&npu, &desc), NPUPROF_ERR_NPU_MAP);
    desc.vfio_region = VFIO_PCI_BAR0_REGION_INDEX;
    desc.counter.lo_offset = 0x100000;
    CHECK_INT(npuprof_npu_open(&npu, &desc), NPUPROF_ERR_NPU_RANGE);
}

static void set_decode(bool on)
{
    struct vfio_region_info info;
    memset(&info, 0, sizeof info);
    info.argsz = sizeof info;
    info.index = VFIO_PCI_CONFIG_REGION_INDEX;
    CHECK_STOP(ioctl(vfio_device, VFIO_DEVICE_GET_REGION_INFO, &info) == 0);
    const uint16_t command = on ? 2 : 0;
    CHECK(pwrite(vfio_device, &command, 2, (off_t)info.offset + 4) == 2);
}

/* Memory decode is switched off under the mapping, which is a SIGBUS. The program goes on, the trace
   says it. */
static void dies_under_the_mapping(void)
{
    uint64_t ticks = 0, last = 0;
    npuprof_npu_desc desc = open_vfio();
    desc.catch_sigbus = true;
    guest_open(&npu, &desc);
    WITH_NPU_PROFILER(&npu, 0, "before", "NPU", PROF_NO_ARGS, { guest_sleep_ns(1000000); });
    CHECK_INT(npuprof_npu_read(&npu, &last), NPUPROF_OK);
    WITH_NPU_PROFILER(&npu, 0, "dies", "NPU", PROF_NO_ARGS, { set_decode(false); });
    CHECK_INT(npuprof_npu_read(&npu, &ticks), NPUPROF_ERR_NPU_DECODE_OFF);
    CHECK(ticks > last && ticks - last < 240000);        /* the last good value, of the beginning of "dies" */
    npuprof_npu_close(&npu);
    CHECK_INT(npuprof_npu_open(&npu, &desc), NPUPROF_ERR_NPU_DECODE_OFF);
    set_decode(true);
    guest_open(&npu, &desc);
    CHECK_INT(npuprof_npu_read(&npu, &ticks), NPUPROF_OK);
    npuprof_npu_close(&npu);
    guest_send_trace("way_died.json");
}

CHECK_MAIN(CASE(through_sysfs), CASE(through_uio), CASE(through_vfio), CASE(regions_of_vfio),
           CASE(dies_under_the_mapping))
