/* at_once.h - threads that do the same at once, and a signal that interrupts what runs.
   SPDX-License-Identifier: MIT */
#ifndef AT_ONCE_H
#define AT_ONCE_H

#include "check.h"
#include <pthread.h>
#include <signal.h>
#include <sys/time.h>
#include <time.h>

CHECK_UNUSED_ static uint64_t real_ns(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

/* Runs it on `count` threads, which get their numbers, and waits for them. */
CHECK_UNUSED_ static void at_once(unsigned count, void *(*run)(void *number))
{
    pthread_t threads[16];
    for (uintptr_t i = 0; i < count; i++) pthread_create(&threads[i], NULL, run, (void *)i);
    for (unsigned i = 0; i < count; i++) pthread_join(threads[i], NULL);
}

/* From now on a handler of SIGALRM runs every `us`; 0: no more. */
CHECK_UNUSED_ static void interrupt_every(int us, void (*handler)(int))
{
    const struct itimerval timer = { { 0, us }, { 0, us } };
    struct sigaction action;
    memset(&action, 0, sizeof action);
    action.sa_handler = handler;
    action.sa_flags = SA_RESTART;
    if (us) sigaction(SIGALRM, &action, NULL);
    setitimer(ITIMER_REAL, &timer, NULL);
}

#endif /* AT_ONCE_H */
