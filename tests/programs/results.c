/* Arguments that are known at the end of a span, over many chunks, with a truth of its own beside them.
   With -DTEST_ONE_SPAN only one span has arguments.
   usage: results POLICY OUTPUT [ARENA]. With ARENA: a mapped arena, and the process kills itself at the end.
   SPDX-License-Identifier: MIT */
#include <signal.h>
#ifdef TEST_ONE_SPAN
#define NPUPROF_ARENA_BYTES 32768
#else
#define NPUPROF_ARENA_BYTES 131072
#endif
#define NPUPROF_IMPLEMENTATION
#include "npuprof.h"
#include <stdlib.h>
#include <string.h>

enum { ROUNDS = 4000 };
static FILE *file;

static int write_stream(void *user, const void *bytes, size_t count)
{
    (void)user;
    return fwrite(bytes, 1, count, file) == count ? 0 : 28;
}

/* In another function than the span, and with a string of every length. */
void finish(int n);
void finish(int n)
{
    char text[64];
    memset(text, 'a' + n % 26, sizeof text);
    text[n % 40] = 0;
    PROF_RESULT(PROF_INT("twice", 2 * n), PROF_STR("text", text));
}

int main(int argc, char **argv)
{
    npuprof_desc desc;
    if (argc < 3) return 2;
    memset(&desc, 0, sizeof desc);
    desc.when_full = atoi(argv[1]);
    if (desc.when_full == NPUPROF_STREAM && argc < 4) {
        file = fopen(argv[2], "wb");
        desc.sink.write = write_stream;
    }
    if (argc > 3) desc.arena_path = argv[3];
    if (argc > 3) desc.arena_bytes = 65536;
    if (npuprof_init(&desc) != NPUPROF_OK) return 3;
    npuprof_start(1);
    {
        PROF_SCOPE("outer");
        PROF_BEGIN("c", "by hand");
        for (int n = 0; n < ROUNDS; n++) {
            {
#ifdef TEST_ONE_SPAN
                PROF_SCOPE("inner");
#else
                PROF_SCOPE_ARGS("c", "inner", PROF_ARGS(PROF_INT("n", n), PROF_INT("twice", -1)));
                { PROF_SCOPE("plain"); }
                if (n % 3 == 0) finish(n);
#endif
            }
            if (n % 100 == 0) PROF_RESULT(PROF_INT("hundreds", n / 100));
            if (n % 100 == 50) PROF_RESULT(PROF_INT("fifties", n / 100));
        }
        PROF_RESULT(PROF_BOOL("end", true));
        if (argc > 3) raise(SIGKILL);
        PROF_END();
        PROF_RESULT(PROF_INT("rounds", ROUNDS));
    }
    PROF_RESULT(PROF_INT("nobody's", 1));
    npuprof_stop();
    return (int)(file ? npuprof_flush() : npuprof_dump(argv[2]));      /* the rest goes to the file at exit */
}
