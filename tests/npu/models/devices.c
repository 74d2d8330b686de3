/* test: time=400 large - real NPUs, played byte by byte: every span where the truth is, every arrow from its
   submission, every record that is not drawn counted; and an adversary in their memory
   SPDX-License-Identifier: MIT

   One file here is one device; play.h is the world they are played in, compare.py the judge. A new device:
   write NAME.h with a play_model, add it to all.h. */
#include "npu/models/played.h"
#include <pthread.h>

enum { FEW = 400, MANY = CHECK_SANITIZED ? 3000 : 100000 };

/* ---- An adversary: rewrites whatever the device's memory holds */

static int adversary_ends;

static void *adversary(void *unused)
{
    uint64_t seed = 0x9E3779B97F4A7C15u, sum = 0;
    (void)unused;
    while (!__atomic_load_n(&adversary_ends, __ATOMIC_RELAXED)) {
        seed ^= seed << 13;
        seed ^= seed >> 7;
        seed ^= seed << 17;
        const unsigned region = (unsigned)(seed >> 40) % play.region_count;
        unsigned char *memory = play.regions[region].memory;
        const size_t bytes = play.regions[region].bytes;
        const size_t any = (size_t)(seed >> 8) % bytes;
        /* mostly near the ends, where headers, footers and indices are */
        const size_t at = seed & 1 ? any % 128 : seed & 2 ? bytes - 1 - any % 5000 % bytes : any;
        if (seed & 4) play_put(memory, at, 1, seed >> 32);
        else if (seed & 8) play_put(memory, at / 8 * 8 + 8 <= bytes ? at / 8 * 8 : 0, 8, seed * seed);
        else play_put(memory, at / 4 * 4 + 4 <= bytes ? at / 4 * 4 : 0, 4,
                      seed & 16 ? UINT32_MAX : seed >> 30);
        sum++;
    }
    return NULL;
}

/* No access out of bounds, no hang, strict JSON. */
static void under_attack(const play_model *model, uint32_t jobs)
{
    pthread_t thread;
    char command[1200];
    alarm(CHECK_SANITIZED ? 900 : 300);
    if (play_open(model) != NPUPROF_OK) CHECK_STOP(false);
    pthread_create(&thread, NULL, adversary, NULL);
    if (model->run) model->run(jobs);
    else play_jobs(jobs);
    __atomic_store_n(&adversary_ends, 1, __ATOMIC_RELAXED);
    pthread_join(thread, NULL);
    const char *path = play_close();
    snprintf(command, sizeof command, "python3 '%.*s/compare.py' '%s' strict",
             (int)(strrchr(__FILE__, '/') - __FILE__), __FILE__, path);
    fflush(stdout);
    CHECK_INT(system(command), 0);
    remove(path);
    remove(play_truth_path);
}

#define CASES_OF(device, model)                                                     \
    static void device(void) { play_model_run(&model, FEW); }                       \
    static void device##_100000(void) { play_model_run(&model, MANY); }             \
    static void attacked_##device(void) { under_attack(&model, FEW / 2); }          \
    static void long_attacked_##device(void) { under_attack(&model, MANY / 10); }
PLAY_DEVICES(CASES_OF)

/* A long attack under a sanitizer is a short one with another seed; and the thread sanitizer sees nothing
   where the adversary, the second thread, is not. */
#ifdef __SANITIZE_THREAD__
#define LIST(device, model) CASE(attacked_##device),
#elif CHECK_SANITIZED
#define LIST(device, model) CASE(device), CASE(attacked_##device), CASE_THOROUGH(device##_100000),
#else
#define LIST(device, model) \
    CASE(device), CASE(attacked_##device), CASE_THOROUGH(device##_100000), \
        CASE_THOROUGH(long_attacked_##device),
#endif
static const check_case cases[] = { PLAY_DEVICES(LIST) };
int main(int argc, char **argv) { return check_main_(cases, sizeof cases / sizeof cases[0], argc, argv); }
