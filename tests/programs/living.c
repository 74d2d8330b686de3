/* A program that lives in the way its first argument says. It calls npuprof only to record, so the
   environment decides.
     fork exec spawn vfork   children of each kind; the second argument is the program to start
     daemon                  forks twice before it records; quick: ends at once; kill abort segv _exit: dies
     inside a span
     scopes                  forks with scopes open, which the child leaves, too
     thread                  the process ends from another thread; forever: spans until somebody kills it,
     and a word on stdout when there are a hundred
   SPDX-License-Identifier: MIT */
#include <pthread.h>
#include <signal.h>
#include <spawn.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>
#include "npuprof.h"

extern char **environ;

static void spans(const char *name, int count)
{
    for (int i = 0; i < count; i++) {
        PROF_BEGIN("c", name);
        PROF_END();
    }
}

static int wait_for(pid_t child)
{
    int status;
    return child > 0 && waitpid(child, &status, 0) == child && status == 0 ? 0 : 5;
}

static void *leave(void *unused)
{
    (void)unused;
    spans("of the thread", 3);
    exit(0);
}

/* Whoever comes out of the scopes of its parent has a span open. */
static int fork_in_scopes(int generations)
{
    pid_t child;
    {
        PROF_SCOPE("scope");
        PROF_PHASES("phase");
        PROF_BLOCK("c", "block") {
            child = fork();
            if (child == 0) PROF_BEGIN("c", "by hand");
        }
        PROF_NEXT("next");
    }
    if (child) return wait_for(child);
    usleep(20000);
    const int bad = generations > 1 ? fork_in_scopes(generations - 1) : 0;
    PROF_END();
    exit(bad);
}

int main(int argc, char **argv)
{
    const char *how = argc > 1 ? argv[1] : "";
    char *const command[] = { argc > 2 ? argv[2] : argv[0], argc > 3 ? argv[3] : NULL, NULL };
    if (!strcmp(how, "daemon")) {
        pid_t child = fork();
        if (child) return wait_for(child);
        if (fork()) _exit(0);
        setsid();
        spans("daemon", 10);
        return 0;
    }
    if (!strcmp(how, "scopes")) return fork_in_scopes(2);
    spans("before", 10);
    PROF_SCOPE("open");
    int bad = 0;
    pid_t child = 0;
    if (!strcmp(how, "fork")) {
        child = fork();
        if (child == 0) {
            spans("of the child", 20);
            child = fork();
            if (child == 0) {
                spans("of the grandchild", 30);
                exit(0);
            }
            bad = wait_for(child);
            spans("of the child, later", 5);
            exit(bad);
        }
        spans("beside the child", 7);
        bad = wait_for(child);
    } else if (!strcmp(how, "forkexec")) {
        child = fork();
        if (child == 0) {
            execve(command[0], command, environ);
            _exit(9);
        }
        bad = wait_for(child);
    } else if (!strcmp(how, "vfork")) {
        child = vfork();
        if (child == 0) {
            execve(command[0], command, environ);
            _exit(9);
        }
        bad = wait_for(child);
    } else if (!strcmp(how, "spawn")) {
        bad = posix_spawn(&child, command[0], NULL, NULL, command, environ) ? 6 : wait_for(child);
    } else if (!strcmp(how, "exec")) {
        execve(command[0], command, environ);
        return 9;
    } else if (!strcmp(how, "thread")) {
        pthread_t thread;
        if (pthread_create(&thread, NULL, leave, NULL)) return 8;
        for (;;) pause();
    } else if (!strcmp(how, "forever")) {
        spans("again", 100);
        puts("going");
        fflush(stdout);
        for (;;) spans("again", 1), usleep(100);
    }
    spans("after", 10);
    if (!strcmp(how, "kill")) kill(getpid(), SIGKILL);
    if (!strcmp(how, "abort")) abort();
    if (!strcmp(how, "segv")) raise(SIGSEGV);
    if (!strcmp(how, "_exit")) _exit(0);
    return bad;
}
