/* Threads, a queue between them, and an arrow from the producer's span to the worker's.
   SPDX-License-Identifier: MIT
   Build: cc -I.. 02_threads.c -pthread */
#define NPUPROF_IMPLEMENTATION
#include "npuprof.h"

#include <pthread.h>

enum { JOBS = 8 };
static struct {
    pthread_mutex_t lock;
    pthread_cond_t changed;
    int put, taken;
} queue = { PTHREAD_MUTEX_INITIALIZER, PTHREAD_COND_INITIALIZER, 0, 0 };

static void *worker(void *unused)
{
    (void)unused;
    PROF_THREAD_NAME("worker");
    for (int job = 0; job < JOBS; job++) {
        pthread_mutex_lock(&queue.lock);
        while (queue.taken == queue.put) pthread_cond_wait(&queue.changed, &queue.lock);
        queue.taken++;
        PROF_COUNTER("queued", queue.put - queue.taken);
        pthread_mutex_unlock(&queue.lock);

        PROF_SCOPE_ARGS("job", "run", PROF_ARGS(PROF_ARG("job", job)));
        PROF_FLOW_IN(job);                          /* the arrow ends here */
        PROF_PHASES("load");                        /* three spans that share two time stamps */
        for (volatile int i = 0; i < 1000; i++) { }
        PROF_NEXT("compute");
        for (volatile int i = 0; i < 5000; i++) { }
        PROF_NEXT("store");
        for (volatile int i = 0; i < 1000; i++) { }
    }
    return NULL;
}

int main(void)
{
    pthread_t thread;
    npuprof_start(1);
    PROF_THREAD_NAME("producer");
    pthread_create(&thread, NULL, worker, NULL);
    for (int job = 0; job < JOBS; job++) {
        PROF_SCOPE("submit");
        PROF_FLOW_OUT(job);                         /* the arrow begins here */
        pthread_mutex_lock(&queue.lock);
        queue.put++;
        PROF_COUNTER("queued", queue.put - queue.taken);
        pthread_cond_signal(&queue.changed);
        pthread_mutex_unlock(&queue.lock);
    }
    pthread_join(thread, NULL);
    return npuprof_dump("threads.json");
}
