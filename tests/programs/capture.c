/* A program for capture control. Its first argument says what it does; it prints figures as NAME=VALUE.
     run N US [SLOW]     N inferences of US microseconds, each with the span "step"; SLOW takes 30 ms
     records N           N records with two inferences each
     threads T MS K      T threads with spans for MS milliseconds; this one runs an inference each of them.
                         K > 0: it sends USR1 and USR2 to the process instead, K in all, and polls
     busy T MS           T threads with inferences
     plain N             N spans, no inference
     fork                inferences, and a child with inferences
     own before|after    a handler of its own for USR2; sends USR2 to itself between inferences
     idle                sends itself USR1 and USR2 without any inference
     desc FIELD TEXT     the same texts by npuprof_init(), and the function that is told of the gate
     file PATH TEXT ...  writes each TEXT into PATH, moves it there, and runs inferences for a while
   SPDX-License-Identifier: MIT */
#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>
#include "npuprof.h"

static int stop;
static uint64_t made_in[64];
static volatile sig_atomic_t own_signals;

static void own_handler(int number) { own_signals += number == SIGUSR2; }

/* Why not a constructor: the library's is one of the first. */
static void before(int argc, char **argv, char **envp)
{
    (void)argc;
    (void)argv;
    for (; *envp; envp++)
        if (strcmp(*envp, "TEST_OWN_HANDLER=before") == 0) signal(SIGUSR2, own_handler);
}
__attribute__((used, section(".preinit_array")))
static void (*const run_before)(int, char **, char **) = before;

enum { SLOW_US = 1000000 };                /* longer than a machine under load makes any other one */

static void inference(int i, int us)
{
    PROF_INFERENCE("inference");
    PROF_SCOPE_ARGS("test", "step", PROF_ARGS(PROF_INT("i", i)));
    if (us) usleep((unsigned)us);
}

static void *make_spans(void *user)
{
    uint64_t *const made = (uint64_t *)user;
    while (!__atomic_load_n(&stop, __ATOMIC_RELAXED)) {
        PROF_SCOPE_ARGS("test", "step", PROF_ARGS(PROF_UINT("n", ++*made)));
        for (volatile int i = 0; i < 100; i++) { }
    }
    return NULL;
}

static void *make_inferences(void *user)
{
    uint64_t *const made = (uint64_t *)user;
    while (!__atomic_load_n(&stop, __ATOMIC_RELAXED)) {
        PROF_INFERENCE("inference");
        for (int k = 0; k < 100; k++) {
            PROF_SCOPE_ARGS("test", "step", PROF_ARGS(PROF_UINT("n", ++*made)));
            for (volatile int j = 0; j < 100; j++) { }
        }
    }
    return NULL;
}

static void print_figures(int threads)
{
    npuprof_stats s;
    uint64_t made = 0;
    for (int i = 0; i < threads; i++) made += made_in[i];
    npuprof_get_stats(&s);
    printf("made=%llu recorded=%llu lost=%llu captures=%llu failed=%llu slow=%llu own=%d recording=%d\n",
           (unsigned long long)made, (unsigned long long)s.recorded, (unsigned long long)s.lost,
           (unsigned long long)s.captures, (unsigned long long)s.captures_failed, (unsigned long long)s.slow,
           (int)own_signals, (int)npuprof_is_recording());
}

static void with_threads(void *(*work)(void *), int threads, int ms, int signals)
{
    pthread_t thread[64];
    for (int i = 0; i < threads; i++) pthread_create(&thread[i], NULL, work, &made_in[i]);
    for (int i = 0; i < ms; i++) {
        for (int k = 0; k * ms < signals; k++) kill(getpid(), (i + k) % 2 ? SIGUSR1 : SIGUSR2);
        if (work == make_spans && signals <= 0) {
            inference(i, 1000);
        } else {
            usleep(1000);
            npuprof_poll();
        }
    }
    __atomic_store_n(&stop, 1, __ATOMIC_RELAXED);
    for (int i = 0; i < threads; i++) pthread_join(thread[i], NULL);
    print_figures(threads);
}

static void told(void *user, bool open)
{
    printf("told=%d,%d ", *(int *)user, (int)open);
    PROF_SCOPE("told");
}

static int with_desc(const char *field, const char *text)
{
    static int token = 7;
    npuprof_desc desc;
    npuprof_capture capture;
    memset(&desc, 0, sizeof desc);
    memset(&capture, 0, sizeof capture);
    const char **const fields[] = { &capture.schedule, &capture.delay, &capture.duration, &capture.trigger,
                                    &capture.signal, &capture.control_path };
    static const char *const names[] = { "schedule", "delay", "duration", "trigger", "signal",
                                         "control_path" };
    for (int i = 0; i < 6; i++)
        if (strcmp(names[i], field) == 0) *fields[i] = text;
    capture.gate = told;
    capture.user = &token;
    desc.capture = &capture;
    desc.output_path = "t.json";
    if (strcmp(field, "signal") == 0 && getenv("TEST_OWN_HANDLER")) signal(SIGUSR2, own_handler);
    const npuprof_result r = npuprof_init(&desc);
    printf("init=%s\n", npuprof_result_string(r));
    npuprof_start(1);
    for (int i = 0; i < 20; i++) {
        if (i == 10 && strcmp(field, "signal") == 0 && (r == NPUPROF_OK || getenv("TEST_OWN_HANDLER")))
            raise(SIGUSR2);
        inference(i, i == 15 ? SLOW_US : 500);
    }
    npuprof_pause();
    npuprof_resume();
    print_figures(0);
    return 0;
}

static void with_file(char **texts, int count)
{
    char temporary[300];
    snprintf(temporary, sizeof temporary, "%s.new", texts[0]);
    for (int i = 1; i < count; i++) {
        FILE *const f = fopen(temporary, "w");
        if (!f) exit(9);
        fputs(texts[i], f);
        fclose(f);
        if (rename(temporary, texts[0])) exit(8);
        for (int k = 0; k < 30; k++) inference(1000 * i + k, 5000);
    }
    print_figures(0);
}

static void with_handler(const char *when)
{
    if (strcmp(when, "after") == 0) signal(SIGUSR2, own_handler);
    for (int i = 0; i < 6; i++) {
        raise(SIGUSR2);
        inference(i, 100);
    }
    print_figures(0);
}

static int with_fork(void)
{
    for (int i = 0; i < 10; i++) inference(i, 0);
    const pid_t child = fork();
    for (int i = 0; i < 10; i++) inference((child ? 10 : 100) + i, 0);
    return child && waitpid(child, NULL, 0) != child;
}

int main(int argc, char **argv)
{
    const char *const mode = argc > 1 ? argv[1] : "";
    const int a = argc > 2 ? atoi(argv[2]) : 0, b = argc > 3 ? atoi(argv[3]) : 0;
    const int c = argc > 4 ? atoi(argv[4]) : -1;
    if (!strcmp(mode, "run")) {
        for (int i = 0; i < a; i++) inference(i, i == c ? SLOW_US : b);
        print_figures(0);
    } else if (!strcmp(mode, "records")) {
        for (int i = 0; i < a; i++) {
            PROF_RECORD("record");
            inference(2 * i, 0);
            inference(2 * i + 1, 0);
        }
    } else if (!strcmp(mode, "threads")) {
        with_threads(make_spans, a, b, c);
    } else if (!strcmp(mode, "busy")) {
        with_threads(make_inferences, a, b, 0);
    } else if (!strcmp(mode, "plain")) {
        for (int i = 0; i < a; i++) { PROF_SCOPE("plain"); }
        if (b) usleep((unsigned)b);
        for (int i = 0; i < a; i++) { PROF_SCOPE("plain"); }
        if (argc > 4) npuprof_poll();
    } else if (!strcmp(mode, "fork")) {
        return with_fork();
    } else if (!strcmp(mode, "own")) {
        with_handler(argv[2]);
    } else if (!strcmp(mode, "idle")) {
        raise(SIGUSR1);
        printf("recording=%d\n", (int)npuprof_is_recording());
        { PROF_SCOPE("plain"); }
        raise(SIGUSR1);
        { PROF_SCOPE("not recorded"); }
        raise(SIGUSR2);
        npuprof_poll();
    } else if (!strcmp(mode, "desc")) {
        return with_desc(argv[2], argv[3]);
    } else if (!strcmp(mode, "file")) {
        with_file(argv + 2, argc - 2);
    }
    return 0;
}
