/* module.c - npuprof in kernel modules: examples/kernel's demo driver under a program that records, too, and
   storm, which records from tasks, interrupts and NMIs of both CPUs at once. The host judges the traces.
   SPDX-License-Identifier: MIT */
#include "guest.h"

#include <pthread.h>
#include <sys/mount.h>
#include <sys/syscall.h>

enum { JOBS = 200, CROWD = 300, SPANS = 500000 /* of each CPU */ };
#define DEBUG "/sys/kernel/debug"

/* Of a file, up to the buffer's size. */
static const char *text_of(const char *path)
{
    static char text[4096];
    const int fd = open(path, O_RDONLY | O_CLOEXEC);
    const ssize_t n = fd < 0 ? -1 : read(fd, text, sizeof text - 1);
    text[n < 0 ? 0 : n] = 0;
    if (fd >= 0) close(fd);
    return text;
}

static uint64_t value_of(const char *path, const char *key)
{
    const char *at = strstr(text_of(path), key);
    CHECK(at != NULL);
    return at ? strtoull(at + strlen(key), NULL, 10) : 0;
}

/* A file for the host: the addresses of a module's sections, and with them the names in its trace. */
static void send_sections(const char *module)
{
    const char *out = guest_path("%s.sections", module);
    const char *folder = guest_path("/sys/module/%s/sections", module);
    struct dirent **all;
    FILE *file = fopen(out, "w");
    CHECK_STOP(file != NULL);
    const int count = scandir(folder, &all, NULL, alphasort);
    for (int i = 0; i < count; i++)
        if (strlen(all[i]->d_name) > 2)
            fprintf(file, "%s %s", all[i]->d_name, text_of(guest_path("%s/%s", folder, all[i]->d_name)));
    fclose(file);
    guest_send(out);
}

static void mount_debugfs(void)
{
    CHECK(mount("debugfs", DEBUG, "debugfs", 0, NULL) == 0 || errno == EBUSY);
}

static void storm(void)
{
    mount_debugfs();
    CHECK_STR(text_of("/sys/devices/system/cpu/online"), "0-1\n");
    CHECK_INT(guest_write(DEBUG "/storm/control", "begin"), EINVAL);
    CHECK_INT(guest_write(DEBUG "/storm/go", "1000"), 0);               /* not recorded yet */
    CHECK_INT(value_of(DEBUG "/storm/control", "recorded "), 0);
    send_sections("storm");
    FILE *file = fopen("storm.counts", "w");
    CHECK_STOP(file != NULL);
    fprintf(file, "before\n%s", text_of(DEBUG "/storm/go"));
    CHECK_INT(guest_write(DEBUG "/storm/control", "start"), 0);
    CHECK_INT(guest_write(DEBUG "/storm/control", "clear"), EINVAL);    /* only when stopped */
    fprintf(file, "clock %s", text_of(DEBUG "/storm/clock"));
    CHECK_INT(guest_write(DEBUG "/storm/go", guest_path("%d", SPANS)), 0);
    fprintf(file, "clock %s", text_of(DEBUG "/storm/clock"));
    CHECK_INT(guest_write(DEBUG "/storm/control", "stop\n"), 0);
    fprintf(file, "after\n%s", text_of(DEBUG "/storm/go"));
    CHECK_INT(value_of(DEBUG "/storm/control", "recording "), 0);
    CHECK_INT(value_of(DEBUG "/storm/control", "lost "), 0);
    fprintf(file, "%s", text_of(DEBUG "/storm/control"));
    fclose(file);
    CHECK(guest_store(DEBUG "/storm/arena", "storm.arena") >= 2 * SPANS * 16);
    guest_send("storm.counts");
    CHECK_INT(guest_write(DEBUG "/storm/control", "clear"), 0);
    CHECK_INT(value_of(DEBUG "/storm/control", "recorded "), 0);
}

/* A job: submitted by this program, run by the driver, done by the device. */
static void jobs(void)
{
    const char *folder = DEBUG "/npuprof_demo";
    mount_debugfs();
    send_sections("npuprof_demo");
    CHECK_INT(guest_write(guest_path("%s/control", folder), "start 1"), 0);
    const int device = open("/dev/npuprof_demo", O_WRONLY | O_CLOEXEC);
    CHECK_STOP(device >= 0);
    npuprof_start(1);
    PROF_THREAD_NAME("submitter");
    for (int i = 1; i <= JOBS; i++) {
        PROF_SCOPE_ARGS(NULL, "submit", PROF_ARGS(PROF_INT("job", i)));
        CHECK_INT(write(device, "50", 2), 2);
    }
    CHECK_INT(npuprof_dump("user.json"), NPUPROF_OK);
    CHECK_INT(guest_write(guest_path("%s/control", folder), "stop"), 0);
    CHECK_INT(value_of(guest_path("%s/control", folder), "lost "), 0);
    CHECK(guest_store(guest_path("%s/arena", folder), "npuprof_demo.arena") > JOBS * 5 * 16);
    guest_send("user.json");
    close(device);
}

static void *one_job(void *device) { return write(*(int *)device, "1", 1) == 1 ? NULL : device; }

/* More tasks than there are tracks. */
static void crowd(void)
{
    const char *control = DEBUG "/npuprof_demo/control";
    mount_debugfs();
    CHECK_INT(guest_write(control, "clear"), 0);
    CHECK_INT(guest_write(control, "start"), 0);
    int device = open("/dev/npuprof_demo", O_WRONLY | O_CLOEXEC);
    CHECK_STOP(device >= 0);
    for (int i = 0; i < CROWD; i++) {
        pthread_t one;
        void *error = &device;
        CHECK_STOP(pthread_create(&one, NULL, one_job, &device) == 0);
        CHECK(pthread_join(one, &error) == 0 && !error);
    }
    close(device);
    CHECK_INT(guest_write(control, "stop"), 0);
    CHECK_INT(value_of(control, "lost "), 0);
    CHECK(guest_store(DEBUG "/npuprof_demo/arena", "crowd.arena") > CROWD * 16);
}

/* The arena is mapped while it grows, and only to be read. */
static void mapped(void)
{
    const char *arena = DEBUG "/npuprof_demo/arena", *control = DEBUG "/npuprof_demo/control";
    mount_debugfs();
    const int device = open("/dev/npuprof_demo", O_WRONLY | O_CLOEXEC);
    const int fd = open(arena, O_RDONLY | O_CLOEXEC);
    CHECK_STOP(device >= 0 && fd >= 0);
    const uint32_t *map = (const uint32_t *)mmap(NULL, 4 << 20, PROT_READ, MAP_SHARED, fd, 0);
    CHECK_STOP(map != MAP_FAILED);
    CHECK(mmap(NULL, 4 << 20, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0) == MAP_FAILED);
    const int writer = open(arena, O_RDWR | O_CLOEXEC);
    CHECK(writer < 0 || mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, writer, 0) == MAP_FAILED);
    if (writer >= 0) close(writer);
    const uint32_t used = ((const volatile uint32_t *)map)[8];           /* header.used */
    CHECK_INT(guest_write(control, "start"), 0);
    CHECK_INT(write(device, "10", 2), 2);
    CHECK(((const volatile uint32_t *)map)[8] > used);
    CHECK_INT(guest_write(control, "stop"), 0);
    close(device);
    close(fd);
    /* The mapping keeps the module. */
    CHECK(syscall(SYS_delete_module, "npuprof_demo", O_NONBLOCK) != 0 && errno == EWOULDBLOCK);
    munmap((void *)(uintptr_t)map, 4 << 20);
}

static void remove_modules(void)
{
    CHECK_INT(guest_write(DEBUG "/storm/control", "start"), 0);         /* it is removed while it records */
    CHECK_INT(syscall(SYS_delete_module, "storm", O_NONBLOCK), 0);
    CHECK_INT(syscall(SYS_delete_module, "npuprof_demo", O_NONBLOCK), 0);
    CHECK(access(DEBUG "/storm", F_OK) != 0 && access(DEBUG "/npuprof_demo", F_OK) != 0);
}

CHECK_MAIN(CASE(storm), CASE(jobs), CASE(crowd), CASE(mapped), CASE(remove_modules), CASE(guest_log))
