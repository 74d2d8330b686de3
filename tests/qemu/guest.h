/* guest.h - what the guest programs share: finding a PCI device, sleeping, sending a file to the host.
   SPDX-License-Identifier: MIT

   A guest program is a list of cases as in ../check.h, linked with library.c. Time is the machine's virtual
   time: a sleep of an hour costs nothing, and every count below is exact. */
#ifndef GUEST_H
#define GUEST_H

#include "../check.h"
#include "../../npuprof.h"
#include "../../npuprof_npu.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <sys/klog.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <time.h>

/* A short text that is kept until the program ends. */
CHECK_UNUSED_ static const char *guest_path(const char *format, ...) CHECK_PRINTF_(1, 2);
CHECK_UNUSED_ static const char *guest_path(const char *format, ...)
{
    char *path = (char *)malloc(256);
    va_list list;
    if (!path) abort();
    va_start(list, format);
    vsnprintf(path, 256, format, list);
    va_end(list);
    return path;
}

/* Writes a text into a file of sysfs: 0 or errno. */
CHECK_UNUSED_ static int guest_write(const char *path, const char *text)
{
    const int fd = open(path, O_WRONLY | O_CLOEXEC);
    if (fd < 0) return errno;
    const int error = write(fd, text, strlen(text)) < 0 ? errno : 0;
    close(fd);
    return error;
}

CHECK_UNUSED_ static unsigned long guest_number(const char *path)
{
    char text[64] = "";
    FILE *file = fopen(path, "r");
    if (!file) return 0;
    if (!fgets(text, sizeof text, file)) text[0] = 0;
    fclose(file);
    return strtoul(text, NULL, 0);
}

/* The directory in sysfs of a PCI device, the nth of its kind in the order of their addresses; NULL: there
   are not so many. */
CHECK_UNUSED_ static const char *guest_pci_nth(unsigned vendor, unsigned device, unsigned nth)
{
    const char *found = NULL;
    struct dirent **all;
    const int count = scandir("/sys/bus/pci/devices", &all, NULL, alphasort);
    for (int i = 0; i < count && !found; i++) {
        const char *path = guest_path("/sys/bus/pci/devices/%s", all[i]->d_name);
        if (guest_number(guest_path("%s/vendor", path)) != vendor) continue;
        if (guest_number(guest_path("%s/device", path)) == device && nth-- == 0) found = path;
    }
    return found;
}

/* The first one. Ends the case if there is none. */
CHECK_UNUSED_ static const char *guest_pci(unsigned vendor, unsigned device)
{
    const char *found = guest_pci_nth(vendor, device, 0);
    if (!found) check_failed_(__FILE__, __LINE__, "no PCI device %04x:%04x", vendor, device);
    if (!found) check_end_(NULL);
    return found;
}

/* A BAR for the part of the driver that writes; npuprof never does. Switches memory decode on. */
CHECK_UNUSED_ static volatile uint32_t *guest_map(const char *pci, unsigned bar)
{
    struct stat info;
    unsigned long long start = 0;
    char line[100] = "";
    (void)guest_write(guest_path("%s/enable", pci), "1");
    FILE *list = fopen(guest_path("%s/resource", pci), "r");     /* a line a BAR: start, end, flags */
    CHECK_STOP(list != NULL);
    for (unsigned i = 0; i <= bar; i++) CHECK_STOP(fgets(line, sizeof line, list) != NULL);
    fclose(list);
    start = strtoull(line, NULL, 16) % 4096;
    const int fd = open(guest_path("%s/resource%u", pci, bar), O_RDWR | O_SYNC | O_CLOEXEC);
    CHECK_STOP(fd >= 0 && fstat(fd, &info) == 0);
    char *map = (char *)mmap(NULL, (size_t)info.st_size, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    CHECK_STOP(map != MAP_FAILED);
    close(fd);
    /* Why: a small BAR may begin inside a page */
    return (volatile uint32_t *)(void *)(map + start);
}

CHECK_UNUSED_ static void guest_sleep_ns(int64_t ns)
{
    struct timespec t = { (time_t)(ns / 1000000000), (long)(ns % 1000000000) };
    while (nanosleep(&t, &t) != 0 && errno == EINTR) {}
}

CHECK_UNUSED_ static void guest_sleep(int64_t seconds) { guest_sleep_ns(seconds * 1000000000); }

/* Opens a device that must open, and learns its rate. */
CHECK_UNUSED_ static void guest_open(npuprof_npu *npu, const npuprof_npu_desc *desc)
{
    npuprof_start(1);
    const npuprof_result result = npuprof_npu_open(npu, desc);
    CHECK_STR(npuprof_result_string(result), npuprof_result_string(NPUPROF_OK));
    CHECK_STOP(result == NPUPROF_OK);
    /* Why: with a second anchor the rate is known, and gaps may be long */
    guest_sleep_ns(100000000);
    CHECK_INT(npuprof_npu_sync(npu), NPUPROF_OK);
}

/* The machine's time, by which the tests judge. */
CHECK_UNUSED_ static int64_t guest_clock_ns(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}

/* A counter value and the machine's time before and after it. */
typedef struct guest_moment { uint64_t ticks; int64_t before_ns, after_ns; } guest_moment;
CHECK_UNUSED_ static guest_moment guest_look(npuprof_npu *npu)
{
    guest_moment m;
    m.before_ns = guest_clock_ns();
    CHECK_INT(npuprof_npu_read(npu, &m.ticks), NPUPROF_OK);
    m.after_ns = guest_clock_ns();
    return m;
}

/* Whether as many ticks passed as the machine's time says, at `ticks` of them in `ns` nanoseconds. */
CHECK_UNUSED_ static bool guest_agrees(guest_moment first, guest_moment last, int64_t ticks, int64_t ns)
{
    const int64_t passed = (int64_t)(last.ticks - first.ticks);
    const int64_t least_ns = last.before_ns - first.after_ns, most_ns = last.after_ns - first.before_ns;
    return passed >= least_ns * ticks / ns - 1 && passed <= most_ns * ticks / ns + 1;
}

/* Sends a file over the console, in base64. */
CHECK_UNUSED_ static void guest_send(const char *path)
{
    static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    unsigned char in[57];
    char out[80];
    FILE *file = fopen(path, "rb");
    CHECK_STOP(file != NULL);
    printf("FILE %s\n", strrchr(path, '/') ? strrchr(path, '/') + 1 : path);
    for (size_t n; (n = fread(in, 1, sizeof in, file)) > 0;) {
        char *to = out;
        memset(in + n, 0, sizeof in - n);
        for (size_t i = 0; i < n; i += 3) {
            const unsigned word = (unsigned)in[i] << 16 | (unsigned)in[i + 1] << 8 | in[i + 2];
            *to++ = digits[word >> 18 & 63];
            *to++ = digits[word >> 12 & 63];
            *to++ = i + 1 < n ? digits[word >> 6 & 63] : '=';
            *to++ = i + 2 < n ? digits[word & 63] : '=';
        }
        *to = 0;
        puts(out);
    }
    puts("FILE end");
    fclose(file);
}

/* Sends a file of many megabytes: appends it to the memory that the machine shares with the host, a PCI
   device without a driver. Each file has 512 bytes of name and size before it, and starts on a multiple of
   512. How many bytes. */
CHECK_UNUSED_ static uint64_t guest_store(const char *path, const char *name)
{
    enum { HEAD = 512, SHARED = 128 << 20 };
    char *map = (char *)(uintptr_t)guest_map(guest_pci(0x1af4, 0x1110), 2), *at = map;
    const int from = open(path, O_RDONLY | O_CLOEXEC);
    CHECK_STOP(from >= 0);
    for (unsigned long long own; sscanf(at, "FILE %*s %llu", &own) == 1;)
        at += HEAD + (own + HEAD - 1) / HEAD * HEAD;
    uint64_t bytes = 0;
    for (ssize_t n = 1; n > 0; bytes += (uint64_t)n) {
        CHECK_STOP(map + SHARED - at > (ssize_t)(2 * HEAD + bytes + (1 << 16)));
        n = read(from, at + HEAD + bytes, 1 << 16);
        CHECK_STOP(n >= 0);
    }
    snprintf(at, HEAD, "FILE %s %llu\n", name, (unsigned long long)bytes);
    munmap(map, SHARED);
    close(from);
    return bytes;
}

/* What the kernel said, all of it; the host looks for complaints. */
CHECK_UNUSED_ static void guest_log(void)
{
    static char text[1 << 18];
    const int n = klogctl(3, text, sizeof text);
    CHECK_STOP(n > 0);
    FILE *file = fopen("dmesg.txt", "w");
    CHECK_STOP(file != NULL);
    CHECK_INT(fwrite(text, 1, (size_t)n, file), n);
    fclose(file);
    guest_send("dmesg.txt");
}

/* Writes the trace and sends it. */
CHECK_UNUSED_ static void guest_send_trace(const char *path)
{
    CHECK_INT(npuprof_dump(path), NPUPROF_OK);
    guest_send(path);
}

#endif /* GUEST_H */
