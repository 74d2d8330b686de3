/* Reads the ring of firmware_live.c while it records, as slowly as a probe does: 512 bytes each 0.15 ms.
   usage: live_reader FILE ELF SNAPSHOTS WAY    WAY: mapped, or dumps, which are made slowly, too
   Prints before each trace a line of events: begun and recorded before, begun after; cells left out.
   SPDX-License-Identifier: MIT */
#include <time.h>

static void pause_once(void);
#define NPUPROF_LOAD_PAUSE_() pause_once()
#define NPUPROF_ARENA_BYTES 4096
#include "../../tools/convert/load.h"
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>

static uint64_t passed;
static void pause_once(void)
{
    const struct timespec t = { 0, 150000 };
    passed++;
    (void)nanosleep(&t, NULL);
}

static int put(void *user, const void *bytes, size_t count)
{
    (void)user;
    return fwrite(bytes, 1, count, stdout) == count ? 0 : 5;
}

/* A dump of all the memory but its first page, by a probe that knows nothing of it. */
static bool dump(const volatile uint64_t *memory, size_t bytes, const char *path)
{
    FILE *const out = fopen(path, "wb");
    for (size_t at = 4096; out && at < bytes; at += 8) {
        const uint64_t word = memory[at / 8];
        if (at % 512 == 0) pause_once();
        if (fwrite(&word, 8, 1, out) != 1) return false;
    }
    return out && !fclose(out);
}

int main(int argc, char **argv)
{
    const char *paths[3] = { argv[1], NULL, NULL };
    const npuprof_sink sink = { put, NULL };
    npuprof_damage damage;
    if (argc < 5) return 2;
    const bool by_dumps = strcmp(argv[4], "dumps") == 0;
    const int file = open(argv[1], O_RDONLY);
    const size_t bytes = file < 0 ? 0 : (size_t)lseek(file, 0, SEEK_END);
    void *const mapped = bytes ? mmap(NULL, bytes, PROT_READ, MAP_SHARED, file, 0) : MAP_FAILED;
    if (mapped == MAP_FAILED) return 1;
    const volatile uint64_t *const counts = (const volatile uint64_t *)mapped;
    for (int i = 0; i < atoi(argv[3]); i++) {
        const unsigned long long begun = counts[0], recorded = counts[1];
        for (int n = 0; n < 3 && by_dumps; n++) {
            static const char *const names[] = { "1.bin", "2.bin", "3.bin" };
            paths[n] = names[n];
            if (!dump(counts, bytes, names[n])) return 1;
        }
        unsigned long long begun_after = counts[0];
        if (npuprof_load_live(paths, argv[2], &damage) != NPUPROF_OK) {
            printf("%s at %llu\n", damage.what, (unsigned long long)damage.offset);
            return 1;
        }
        if (!by_dumps) begun_after = counts[0];
        printf("snapshot %llu %llu %llu %llu\n", begun, recorded, begun_after,
               (unsigned long long)damage.changed);
        if (damage.places) printf("damaged: %s\n", damage.what);
        if (damage.places || npuprof_write_json(sink) != NPUPROF_OK) return 1;
    }
    return 0;
}
