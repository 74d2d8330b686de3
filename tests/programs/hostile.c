/* Names nobody would choose. argv[1]: a file of names, each ended by a NUL; argv[2]: the trace to write.
   SPDX-License-Identifier: MIT */
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#define NPUPROF_IMPLEMENTATION
#define NPUPROF_ARENA_BYTES (8 * 1024 * 1024)
#include "npuprof.h"

static void *in_a_thread(void *name)
{
    PROF_THREAD_NAME((const char *)name);
    PROF_SCOPE("in a thread");
    return NULL;
}

int main(int argc, char **argv)
{
    FILE *file = argc > 2 ? fopen(argv[1], "rb") : NULL;
    static char names[1 << 20];
    size_t size = file ? fread(names, 1, sizeof names - 1, file) : 0;
    if (!size) return 2;
    fclose(file);
    npuprof_start(1);
    { PROF_SCOPE("quote \" backslash \\ slash / tab \t newline \n bell \a escape \x1b del \x7f"); }
    { PROF_SCOPE(""); }
    { PROF_SCOPE("\xff\xfe invalid \xc3 end \xe2\x82"); }
    { PROF_SCOPE_CAT("cat \" \\ \x01", "e\u0301 \u20ac \U0001F600"); }
    {
        PROF_SCOPE_ARGS("", "keys", PROF_ARGS(PROF_INT("\"", 1), PROF_INT("\\", 2), PROF_INT("\x02", 3),
                                              PROF_INT("", 4)));
    }
    PROF_COUNTER("counter \" \\ \x03 \xff", 1);
    PROF_INSTANT("\"", "\\", PROF_NO_ARGS);
    uint64_t id = 1;
    for (char *name = names; name < names + size; name += strlen(name) + 1, id++) {
        { PROF_RECORD(name); }
        { PROF_INFERENCE(name); }
        { PROF_OPERATOR(1, name); }
        { PROF_SCOPE_ARGS("c", "argument", PROF_ARGS(PROF_STR("s", name))); }
        WITH_BASE_PROFILER(NULL, name, name, PROF_ARGS(PROF_STR("s", name)), (void)0);
        PROF_BEGIN(name, name);
        PROF_END();
        npuprof_async_begin(name, name, id);
        npuprof_async_end(id);
        npuprof_span(name, name, name, npuprof_now_ns(), npuprof_now_ns() + 5,
                     PROF_ARGS(PROF_STR("s", name)));
        npuprof_metadata(name, name);
        PROF_MEMORY(NULL, 1, 2, name);
        pthread_t thread;
        if (pthread_create(&thread, NULL, in_a_thread, name)) return 3;
        pthread_join(thread, NULL);
    }
    npuprof_stats stats;
    npuprof_get_stats(&stats);
    printf("%llu\n", (unsigned long long)stats.lost);
    return (int)npuprof_dump(argv[2]);
}
