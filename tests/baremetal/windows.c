/* What is Windows' own: the clock, threads and their ends, a file replaced, an arena in a mapped file, the
   environment. Exit code: the number of the check that failed.
   SPDX-License-Identifier: MIT */
#define NPUPROF_IMPLEMENTATION
#include "npuprof.h"
#include "../../tools/convert/load.h"

static DWORD WINAPI thread(void *n)
{
    PROF_SCOPE("thread");
    PROF_COUNTER("n", (int64_t)(intptr_t)n);
    return 0;
}

static bool begins(const char *path, const char *text)
{
    char bytes[32] = { 0 };
    FILE *f = fopen(path, "rb");
    const size_t n = f ? fread(bytes, 1, sizeof bytes - 1, f) : 0;
    if (f) fclose(f);
    return n && strncmp(bytes, text, strlen(text)) == 0;
}

int main(void)
{
    enum { THREADS = 200 };
    static npuprof_desc desc;
    desc.arena_path = "windows.arena";
    desc.arena_bytes = 1 << 20;
    DeleteFileA("windows.arena");
    if (npuprof_init(&desc) != NPUPROF_OK) return 1;
    npuprof_start(1);
    const int64_t before = npuprof_now_ns();
    {
        PROF_SCOPE("sleep");
        Sleep(30);
    }
    const int64_t slept = npuprof_now_ns() - before;
    if (slept < 25000000 || slept > 5000000000) return 2;
    if (before < 1600000000000000000) return 3;                 /* since 1970 */
    for (intptr_t i = 0; i < THREADS; i++) {
        HANDLE h = CreateThread(NULL, 0, thread, (void *)i, 0, NULL);
        if (!h) return 4;
        WaitForSingleObject(h, INFINITE);
        CloseHandle(h);
    }
    npuprof_stats stats;
    npuprof_get_stats(&stats);
    if (stats.recorded != 1 + 2 * THREADS || stats.lost) return 5;
    if (stats.threads > 3) return 6;                            /* their slots were given back */
    if (npuprof_dump("windows.json") != NPUPROF_OK || npuprof_dump("windows.json") != NPUPROF_OK
        || !begins("windows.json", "{\"traceEvents\"")) return 7;
    if (npuprof_dump("no such folder/x.json") != NPUPROF_ERR_NOT_FOUND) return 8;
    if (npuprof_dump("windows.npuprof") != NPUPROF_OK) return 9;
    if (!begins("windows.arena", "NPUPROF\n")) return 10;       /* the mapped arena is the file */
    npuprof_damage damage;
    if (npuprof_load("windows.npuprof", &damage) != NPUPROF_OK || damage.places) return 11;
    npuprof_get_stats(&stats);
    npuprof_unload();
    return stats.recorded == 1 + 2 * THREADS ? 0 : 12;
}
