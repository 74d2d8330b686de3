/* shared_host.c - the host's side of an NPU whose firmware records into memory that both map: it submits
   jobs, tells the firmware what time it is, and reads its trace while it works. SHARED.md has the commands.
   usage: shared_host MEMORY ELF JOBS    MEMORY: a file that can be mapped, ELF: the firmware
   Writes npu-live.json in the middle, and npu.json and host.json at the end.
   SPDX-License-Identifier: MIT */
#include "../../tools/convert/load.h"                /* npuprof.h, too, implementation included */
#include "shared.h"
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

enum { TRIES = 32, EVERY = 25, SIZE = 40000 };       /* a job: 1 ms of the engine */
static shared_mailbox *mailbox;

static int64_t read_clock(clockid_t clock)
{
    struct timespec t;
    clock_gettime(clock, &t);
    return t.tv_sec * 1000000000LL + t.tv_nsec;
}

/* Asks, and waits for the answer. */
static void ask(uint32_t what)
{
    mailbox->what = what;
    shared_publish(&mailbox->number, mailbox->number + 1);
}

/* Why it sleeps: in the emulator the firmware may need this very processor. */
static void wait(void)
{
    for (int tries = 0; shared_look(&mailbox->done) != mailbox->number; tries++)
        if (tries > 2000) usleep(1);
}

/* Copies a text by words. */
static void put(uint32_t *to, size_t words, const char *text)
{
    char bytes[96] = { 0 };
    (void)snprintf(bytes, sizeof bytes, "%s", text);
    for (size_t i = 0; i < words; i++) {
        uint32_t word;
        memcpy(&word, bytes + 4 * i, sizeof word);
        to[i] = word;
    }
}

static void say(const char *key, const char *value)
{
    put(mailbox->key, sizeof mailbox->key / 4, key);
    put(mailbox->value, sizeof mailbox->value / 4, value);
    ask(SHARED_SAY);
    wait();
}

/* An exchange: the firmware's clock was `ticks` between the two times, by each of the host's clocks. */
typedef struct exchange { uint64_t ticks; int64_t before[3], after[3]; } exchange;
static const clockid_t clocks[3] = { CLOCK_BOOTTIME, CLOCK_MONOTONIC, CLOCK_REALTIME };

static int64_t width(const exchange *x)
{
    int64_t most = 0;
    for (int i = 0; i < 3; i++)
        if (x->after[i] - x->before[i] > most) most = x->after[i] - x->before[i];
    return most;
}

static void exchange_once(exchange *x)
{
    for (int i = 0; i < 3; i++) x->before[i] = read_clock(clocks[i]);
    ask(SHARED_TICKS);
    wait();
    for (int i = 2; i >= 0; i--) x->after[i] = read_clock(clocks[i]);
    x->ticks = (uint64_t)mailbox->ticks[1] << 32 | mailbox->ticks[0];
}

/* Tells the firmware the narrowest of some exchanges, in the middle of which it is. Returns its error, ns. */
static int64_t anchor(void)
{
    exchange best, x;
    char text[96];
    exchange_once(&best);
    for (int i = 1; i < TRIES; i++) {
        exchange_once(&x);
        if (width(&x) < width(&best)) best = x;
    }
    const int64_t error = width(&best) / 2 + 1;
    long long middle[3];
    for (int i = 0; i < 3; i++) middle[i] = best.before[i] + (best.after[i] - best.before[i]) / 2;
    (void)snprintf(text, sizeof text, "%llu %lld %lld %lld %lld", (unsigned long long)best.ticks, middle[0],
                   middle[1], middle[2], (long long)error / 100 + 1);      /* 100 ns: a tick of it */
    say("npuprof.anchor", text);
    return error;
}

/* Writes the firmware's trace as it is now. The firmware goes on. */
static bool read_live(const char *memory, const char *elf, const char *output)
{
    const char *const paths[3] = { memory, NULL, NULL };
    npuprof_damage damage;
    if (npuprof_load_live(paths, elf, &damage) != NPUPROF_OK) {
        fprintf(stderr, "%s: %s at %llu\n", memory, damage.what, (unsigned long long)damage.offset);
        return false;
    }
    const npuprof_result result = npuprof_dump(output);
    npuprof_unload();
    return result == NPUPROF_OK && !damage.places;
}

static bool open_mailbox(const char *memory)
{
    const int file = open(memory, O_RDWR);
    if (file < 0) return false;
    void *const page = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, file, SHARED_MAILBOX);
    close(file);
    if (page == MAP_FAILED) return false;
    mailbox = (shared_mailbox *)page;
    for (int i = 0; i < 5000 && shared_look(&mailbox->ready) != SHARED_READY; i++) usleep(1000);
    return mailbox->ready == SHARED_READY;
}

int main(int argc, char **argv)
{
    char name[96] = "";
    int64_t widest = 0, error;
    if (argc != 4) return 2;
    if (!open_mailbox(argv[1])) return fprintf(stderr, "%s: no firmware is ready in it\n", argv[1]), 1;
    (void)gethostname(name, sizeof name - 1);
    npuprof_start(1);
    say("npuprof.host", name);
    say("npuprof.program", "firmware");
    say("npuprof.rate_ppb", "0");                    /* true in the emulator; README.md says what else */
    for (int job = 0, jobs = atoi(argv[3]); job <= jobs; job++) {
        if (job % EVERY == 0 || job == jobs) {
            error = anchor();
            widest = error > widest ? error : widest;
            if (job == jobs) break;
        }
        PROF_SCOPE_ARGS("host", "submit", PROF_ARGS(PROF_INT("job", job)));
        mailbox->job = (uint32_t)job;
        mailbox->size = SIZE;
        ask(SHARED_RUN);
        if (job == jobs / 2 && !read_live(argv[1], argv[2], "npu-live.json")) return 1;
        wait();
    }
    printf("the widest exchange: +-%lld ns\n", (long long)widest);
    return !read_live(argv[1], argv[2], "npu.json") || npuprof_dump("host.json") != NPUPROF_OK;
}
