/* test: - the child of a fork while its parent goes on: in a mapped arena, which both see, the child begins
   with what its thread had at the fork
   SPDX-License-Identifier: MIT */
#include "life.h"

static int parent_went_on[2] = { -1, -1 };

static void wait_for_parent(void)
{
    char byte;
    if (parent_went_on[0] >= 0) CHECK_INT(read(parent_went_on[0], &byte, 1), 1);
}

/* Why so early: what was registered first runs first in a child, and so before npuprof's. */
__attribute__((constructor(101))) static void come_first(void)
{
    pthread_atfork(NULL, NULL, wait_for_parent);
}

static void ends_of_the_parent(void)
{
    int status;
    const life_path name = life_own_path("npuprof");
    npuprof_desc desc = { 0 };
    desc.arena_path = name.pattern;
    desc.arena_bytes = 65536;
    CHECK_INT(npuprof_init(&desc), NPUPROF_OK);
    npuprof_start(1);
    PROF_BEGIN("c", "of both");
    PROF_BEGIN("c", "inner");
    CHECK_STOP(pipe(parent_went_on) == 0);
    fflush(stdout);
    const pid_t child = fork();
    if (child == 0) {
        { PROF_SCOPE("of the child"); }
        PROF_END();
        PROF_END();
        const npuprof_stats s = stats_now();
        CHECK_UINT(s.recorded, 1);
        CHECK_UINT(s.lost, 0);
        PROF_END();                            /* of nothing */
        CHECK_UINT(stats_now().lost_by_cause[NPUPROF_LOST_ENDS], 1);
        fflush(stdout);
        _exit(check_failures_ ? 1 : 0);
    }
    PROF_END();
    PROF_END();
    CHECK_INT(write(parent_went_on[1], "", 1), 1);
    CHECK(waitpid(child, &status, 0) == child && status == 0);
    char file[64];
    snprintf(file, sizeof file, "%d.npuprof", (int)child);
    unlink(check_path(file));
    life_check_file(name.path, 2, 0);
    unlink(name.path);
}

CHECK_MAIN(CASE(ends_of_the_parent))
