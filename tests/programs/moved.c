/* moved.c - a span moves to its thread's next chunk just when a reader is between its two words;
   test_hooked.py puts the call there.
   SPDX-License-Identifier: MIT

   usage: moved FILE   HOOKED_HEADER: npuprof.h with calls of between_words(). */
#include <pthread.h>
#include <stdint.h>
static void between_words(const uint64_t *end);
#define NPUPROF_IMPLEMENTATION
#include HOOKED_HEADER

static int armed, move, moved, stop, calls;
/* At the second open span the reader waits until it has moved. */
static void between_words(const uint64_t *end)
{
    if (!__atomic_load_n(&armed, __ATOMIC_ACQUIRE) || move || !end || *end != UINT64_MAX || ++calls < 2)
        return;
    __atomic_store_n(&move, 1, __ATOMIC_RELEASE);
    while (!__atomic_load_n(&moved, __ATOMIC_ACQUIRE)) {}
}

static void *work(void *user)
{
    (void)user;
    { PROF_SCOPE("outer"); }
    PROF_SCOPE("outer");
    { PROF_SCOPE("inner"); }
    __atomic_store_n(&armed, 1, __ATOMIC_RELEASE);
    while (!__atomic_load_n(&move, __ATOMIC_ACQUIRE)) {}
    for (int i = 0; i < 1000; i++) { PROF_SCOPE("inner"); }
    __atomic_store_n(&moved, 1, __ATOMIC_RELEASE);
    while (!__atomic_load_n(&stop, __ATOMIC_ACQUIRE)) {}
    return NULL;
}

int main(int argc, char **argv)
{
    pthread_t thread;
    if (argc != 2) return 2;
    npuprof_start(1);
    if (pthread_create(&thread, NULL, work, NULL)) return 2;
    while (!__atomic_load_n(&armed, __ATOMIC_ACQUIRE)) {}
    const npuprof_result result = npuprof_dump(argv[1]);
    __atomic_store_n(&stop, 1, __ATOMIC_RELEASE);
    pthread_join(thread, NULL);
    return result != NPUPROF_OK || !move;
}
