/* test: thorough san=no - populate, NPUPROF_POPULATE: recording into a fresh arena causes no page faults;
   without them it does, and fewer where there are huge pages
   SPDX-License-Identifier: MIT */
#include "check.h"
#define NPUPROF_IMPLEMENTATION
#include "npuprof.h"
#include <sys/resource.h>
#include <sys/wait.h>

enum { MIB = 1024 * 1024, SPANS = 500000 };

static long faults(void)
{
    struct rusage usage;
    getrusage(RUSAGE_SELF, &usage);
    return usage.ru_minflt + usage.ru_majflt;
}

/* Runs as the child: faults while 8 MB of spans are recorded, in pages. Exit code: 0 under 100, 1 above 1500,
   else 2. what: a, f or s for the arena; p: populate; h: huge pages, for which the library asked, stay. */
static int record(const char *what)
{
    npuprof_desc desc = { 0 };
    desc.populate = strchr(what, 'p') != NULL;
    if (strchr(what, 'a')) {
        desc.arena_bytes = 16 * MIB;
        desc.arena = mmap(NULL, desc.arena_bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        if (desc.arena == MAP_FAILED) return 3;
    } else if (strchr(what, 'f')) {
        desc.arena_path = getenv("TEST_ARENA");
        desc.arena_bytes = 16 * MIB;
    }
    if (npuprof_init(&desc) != NPUPROF_OK) return 3;
    if (!strchr(what, 'h'))
        madvise((void *)(((uintptr_t)npuprof_arena_.base + 4095) / 4096 * 4096), 16 * MIB - 4096,
                MADV_NOHUGEPAGE);
    npuprof_start(1);
    { PROF_SCOPE("first"); }
    const long before = faults();
    for (int i = 0; i < SPANS; i++) { PROF_SCOPE("span"); }
    const long caused = faults() - before;
    npuprof_stats stats;
    npuprof_get_stats(&stats);
    if (stats.recorded != SPANS + 1) return 4;
    return caused < 100 ? 0 : caused > 1500 ? 1 : 2;
}

static const char *program;
static int run(const char *what, const char *variable)
{
    int status = 0;
    const pid_t child = fork();
    if (child == 0) {
        if (variable) setenv("NPUPROF_POPULATE", variable, 1);
        execl(program, program, what, (char *)NULL);
        _exit(99);
    }
    if (child < 0 || waitpid(child, &status, 0) != child || !WIFEXITED(status)) return -1;
    return WEXITSTATUS(status);
}

static void caller_arena(void)
{
    CHECK_INT(run("a", NULL), 1);
    CHECK_INT(run("ap", NULL), 0);
}

static void huge_pages(void)
{
    char text[100] = "";
    FILE *const f = fopen("/sys/kernel/mm/transparent_hugepage/enabled", "r");
    if (f && !fgets(text, sizeof text, f)) text[0] = 0;
    if (f) fclose(f);
    if (!*text || strstr(text, "[never]")) {
        CHECK_SKIP("this system has no huge pages by madvise()");
        return;
    }
    /* 0 or 2: it depends on the address how much of the arena lies in whole huge pages. */
    CHECK_INT(run("ah", NULL) % 2, 0);
    CHECK_INT(run("sh", NULL) % 2, 0);
}

static void mapped_arena(void)
{
    setenv("TEST_ARENA", check_path("arena.npuprof"), 1);
    CHECK_INT(run("f", NULL), 1);
    CHECK_INT(run("fp", NULL), 0);
}

static void static_arena_and_environment(void)
{
    CHECK_INT(run("s", NULL), 1);
    CHECK_INT(run("sp", NULL), 0);
    CHECK_INT(run("s", "1"), 0);
    CHECK_INT(run("a", "on"), 0);
    CHECK_INT(run("s", "perhaps"), 1);        /* named on stderr, not used */
}

int main(int argc, char **argv)
{
    static const check_case cases[] = { CASE(caller_arena), CASE(huge_pages), CASE(mapped_arena),
                                        CASE(static_arena_and_environment) };
    if (argc > 1) return record(argv[1]);
    program = argv[0];
    return check_main_(cases, sizeof cases / sizeof *cases, argc, argv);
}
