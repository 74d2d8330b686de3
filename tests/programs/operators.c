/* Records operators with odd texts, shapes, ratios and places, for the sheet that NPUPROF_OUTPUT_PATH=d/
   writes. Usage: operators [none|warm]
   SPDX-License-Identifier: MIT */
#include <pthread.h>
#include <setjmp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "npuprof.h"

static const char *const texts[] = { "", "plain", "a,b", "a\"b", "line\nend", "=1+1", "-1", "@x", "\ttab",
                                     "\r", "bad \xFF\xC3 utf-8", "\x01\x1F",
                                     "\xC3\xA4\xE2\x82\xAC", "=a,\"b\"", "back\\slash" };
static const char *const shapes[] = { "", "256x256", "8x3", "6x4", "x", "1024x", "12x34x", "0x1", "16x16,",
                                      "4x4\n", "104x7", "44x1", "102x7", "=8x3" };
static char long_text[3000];

static void one(const char *name, const char *type, const char *post, const char *shape)
{
    WITH_BASE_PROFILER(NULL, name, "c", PROF_ARGS(PROF_STR("ne.type", type), PROF_STR("ne.post_op", post),
                                                  PROF_STR("ne.weight_shape", shape)), (void)0);
}

static void *thread(void *user)
{
    for (unsigned i = 0; i < 3; i++) one("of a thread", "MatMul", "", "256x256");
    one("of a thread alone", "MATMUL", "", "4x4");
    return user;
}

int main(int argc, char **argv)
{
    static jmp_buf jump;
    pthread_t t;
    if (argc > 1 && !strcmp(argv[1], "none")) return 0;
    if (argc > 1) {
        PROF_RECORD_WARM_UP("warm up");
        one("of the warm-up", "MatMul", "", "256x256");
        return 0;
    }
    memset(long_text, 'l', sizeof long_text - 1);
    for (unsigned round = 0; round < 3; round++) {
        for (unsigned i = 0; i < sizeof texts / sizeof *texts; i++)
            one(texts[i], texts[i], texts[sizeof texts / sizeof *texts - 1 - i], "");
        for (unsigned i = 0; i < sizeof shapes / sizeof *shapes; i++) {
            one(shapes[i], "InnerProduct", "", shapes[i]);
            WITH_BASE_PROFILER(NULL, "supported", "c",
                               PROF_ARGS(PROF_STR("ne.type", "x"), PROF_STR("ne.weight_shape", shapes[i]),
                                                                 PROF_BOOL("ne.sparse_support", i % 3 != 0)),
                                                                 (void)0);
        }
        one(long_text, long_text, "long", "");
        const double ratios[] = { 0, 1, 0.5, 0.4999, 0.12345, 0.99995, -0.1, 1.5, (double)NPUPROF_OK / 1e-300,
                                  1e-9 };
        for (unsigned i = 0; i < sizeof ratios / sizeof *ratios; i++) {
            char name[20];
            snprintf(name, sizeof name, "ratio %u", i);
            WITH_BASE_PROFILER(NULL, name, "c",
                               PROF_ARGS(PROF_STR("ne.type", "matmul"), PROF_STR("ne.weight_shape", "8x8"),
                                                          PROF_REAL("ne.sparse_ratio", ratios[i])), (void)0);
        }
        for (int i = -1; i < 3; i++) {
            WITH_BASE_PROFILER(NULL, "int", i < 0 ? "below" : "c",
                               PROF_ARGS(PROF_STR("ne.type", "matmul"),
                                         PROF_STR("ne.weight_shape", i ? "8x8" : "4x8"),
                               PROF_INT("ne.sparse_ratio", i), PROF_INT("ne.sparse_support", i)), (void)0);
        }
        WITH_BASE_PROFILER(NULL, "no text", "c", PROF_ARGS(PROF_INT("ne.type", 1)), (void)0);
        WITH_BASE_PROFILER(NULL, "null", "c",
                           PROF_ARGS(PROF_STR("ne.type", "t"), PROF_STR("ne.post_op", NULL)), (void)0);
        const int64_t now = npuprof_now_ns();
        npuprof_span("later", "c", "finished", now - 5000, now - 1000,
                     PROF_ARGS(PROF_STR("ne.type", "Finished"), PROF_INT("ne.forward_ns", 17)));
        npuprof_span("another", "c", "finished, too", now - 5000, now - 2000,
                     PROF_ARGS(PROF_STR("ne.type", "Finished")));
        if (pthread_create(&t, NULL, thread, NULL)) return 1;
        pthread_join(t, NULL);
        if (setjmp(jump) == 0) {
            WITH_BASE_PROFILER(NULL, "left", "c", PROF_ARGS(PROF_STR("ne.type", "Left")), longjmp(jump, 1));
        }
    }
    {
        PROF_RECORD_WARM_UP("warm up");
        one("of the warm-up", "MatMul", "", "256x256");
    }
    PROF_SCOPE_ARGS("c", "open", PROF_ARGS(PROF_STR("ne.type", "Open")));
    exit(0);
}
