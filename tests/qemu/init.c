/* init.c - the guest's first process: mounts, loads the modules, runs what /tests lists, switches the machine
   off.
   SPDX-License-Identifier: MIT */
#define _GNU_SOURCE
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/reboot.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <termios.h>
#include <unistd.h>

static void mount_at(const char *path, const char *type)
{
    mkdir(path, 0755);
    if (mount(type, path, type, 0, NULL) != 0 && errno != EBUSY)
        printf("INIT mount %s: %s\n", path, strerror(errno));
}

/* The modules' names begin with a number: the order in which they need each other. */
static void load_modules(void)
{
    struct dirent **list;
    const int count = scandir("/modules", &list, NULL, alphasort);
    for (int i = 0; i < count; i++) {
        char path[300];
        if (list[i]->d_name[0] == '.') continue;
        snprintf(path, sizeof path, "/modules/%s", list[i]->d_name);
        const int fd = open(path, O_RDONLY | O_CLOEXEC);
        if (syscall(SYS_finit_module, fd, "", 0) != 0)
            printf("INIT module %s: %s\n", list[i]->d_name, strerror(errno));
        close(fd);
    }
}

/* One line of /tests: a program and its arguments, with single blanks between them. */
static void run(char *line)
{
    char *argv[16];
    int argc = 0, status = 0;
    printf("INIT run %s\n", line);
    for (char *word = strtok(line, " "); word && argc < 15; word = strtok(NULL, " ")) argv[argc++] = word;
    argv[argc] = NULL;
    const pid_t child = fork();
    if (child == 0) {
        execv(argv[0], argv);
        _exit(127);
    }
    waitpid(child, &status, 0);
    printf("INIT exit %d\n", WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status));
}

int main(void)
{
    char line[400];
    mount_at("/dev", "devtmpfs");
    mount_at("/proc", "proc");
    mount_at("/sys", "sysfs");
    mount_at("/tmp", "tmpfs");
    /* Why again: what the kernel opened lies under the mount */
    const int console = open("/dev/console", O_RDWR);
    for (int fd = 0; console >= 0 && fd < 3; fd++) dup2(console, fd);
    setvbuf(stdout, NULL, _IOLBF, 0);
    if (chdir("/tmp") != 0) printf("INIT no /tmp\n");
    load_modules();
    FILE *tests = fopen("/tests", "r");
    while (tests && fgets(line, sizeof line, tests)) {
        line[strcspn(line, "\n")] = 0;
        if (line[0]) run(line);
    }
    printf("INIT done\n");
    fflush(stdout);
    tcdrain(1);
    reboot(RB_POWER_OFF);
    for (;;) pause();
}
