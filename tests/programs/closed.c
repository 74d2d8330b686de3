/* A program that has descriptor 0, 1 or 2 closed (the arguments say which) and writes there all the same, all
   the time. Prints nothing; exit code 7: something of ours came to lie there.
   SPDX-License-Identifier: MIT */
#include <fcntl.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "npuprof.h"
#include "npuprof_npu.h"

static int closed[3], stop;
static int went_through(void)
{
    int bad = 0;
    for (int n = 0; n < 3; n++)
        if (closed[n] && (fcntl(n, F_GETFD) >= 0 || write(n, "XXXXXXXXXXXXXXXX", 16) >= 0)) bad = 1;
    return bad;
}

static void *write_there(void *bad)
{
    /* Places are held for a moment, which nobody can write to. */
    while (!__atomic_load_n(&stop, __ATOMIC_RELAXED))
        for (int n = 0; n < 3; n++)
            if (closed[n] && write(n, "XXXXXXXXXXXXXXXX", 16) >= 0) *(int *)bad = 1;
    return NULL;
}

int main(int argc, char **argv)
{
    pthread_t thread;
    int bad_thread = 0, bad = 0;
    for (int i = 2; i < argc; i++) closed[atoi(argv[i]) % 3] = 1;
    bad |= went_through();
    if (pthread_create(&thread, NULL, write_there, &bad_thread)) return 8;
    for (int i = 0; i < 8000; i++) { PROF_SCOPE("span"); }
    for (int i = 0; i < 3 && argc > 1; i++) {
        if (npuprof_dump(argv[1]) != NPUPROF_OK) return 9;
        bad |= went_through();
    }
    npuprof_npu npu;
    npuprof_npu_desc desc;
    memset(&desc, 0, sizeof desc);
    desc.resource = argv[0];             /* any file: a BAR of so many bytes */
    desc.counter.bits = 32;
    (void)npuprof_npu_open(&npu, &desc);
    bad |= went_through();
    npuprof_npu_close(&npu);
    __atomic_store_n(&stop, 1, __ATOMIC_RELAXED);
    pthread_join(thread, NULL);
    return bad || bad_thread ? 7 : 0;
}
