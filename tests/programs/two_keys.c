/* two_keys.c - two threads come to one call site for the first time, each with another key; test_hooked.py
   makes them meet.
   SPDX-License-Identifier: MIT

   usage: two_keys FILE   HOOKED_HEADER: npuprof.h with a call of between_stores(). */
#include <pthread.h>
#include <stdint.h>
static void between_stores(void);
#define NPUPROF_IMPLEMENTATION
#include HOOKED_HEADER

static int inside, done;
static __thread int number;
/* The first thread waits here until the second one is through. */
static void between_stores(void)
{
    if (number != 1 || inside) return;
    __atomic_store_n(&inside, 1, __ATOMIC_RELEASE);
    while (!__atomic_load_n(&done, __ATOMIC_ACQUIRE)) {}
}

static void *work(void *user)
{
    number = *(const int *)user;
    const npuprof_arg arg = number == 1 ? npuprof_int_("one", 1) : npuprof_int_("two", 2);
    while (number == 2 && !__atomic_load_n(&inside, __ATOMIC_ACQUIRE)) {}
    for (int i = 0; i < 4; i++) { PROF_SCOPE_ARGS("c", "shared", npuprof_args_(&arg, 1)); }
    if (number == 2) __atomic_store_n(&done, 1, __ATOMIC_RELEASE);
    return NULL;
}

int main(int argc, char **argv)
{
    static int numbers[2] = { 1, 2 };
    pthread_t threads[2];
    if (argc != 2) return 2;
    npuprof_start(1);
    for (int i = 0; i < 2; i++)
        if (pthread_create(&threads[i], NULL, work, &numbers[i])) return 2;
    for (int i = 0; i < 2; i++) pthread_join(threads[i], NULL);
    return npuprof_dump(argv[1]) != NPUPROF_OK;
}
