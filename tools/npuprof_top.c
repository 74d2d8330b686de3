/* npuprof-top: what a running program records into its mapped arena. `make tools` builds it, and
   `npuprof.py top` shows what it says.
   SPDX-License-Identifier: MIT

   usage: npuprof-top ARENA SECONDS [COUNT] [--symbols FILE] [--debug-dir DIR]
   Looks at the arena every so many seconds and prints what is new as a JSON object on a line of its own;
   COUNT: so many times, then it ends. "busy_ns", "in_flight_ns" and the counts are of the interval_ns before;
   "lost" is of the whole run. The file is only read: the program does not notice.
   Exit code 0: COUNT lines are printed; 1: the program has ended; 2: the file cannot be looked at. */
#define NPUPROF_ARENA_BYTES 4096               /* it records nothing itself */
#include "convert/top.h"
#include "convert/name_image.h"

#include <stdlib.h>
#include <time.h>

static const char *path;
static npuprof_symbols_options_ symbols;       /* where names of functions are */
static uint64_t seed;                          /* of the arena that was looked at first */

static int fail(int code, const char *why)
{
    fflush(stdout);
    npuprof_os_say_("npuprof-top: %s: %s\n", path, why);
    return code;
}

/* The sink of the objects. What a terminal would obey is in strings only, and becomes \u and four digits. */
static int put(void *user, const void *bytes, size_t count)
{
    static uint8_t held[4];                    /* the begin of a character that may be one of these */
    static size_t used;
    FILE *const file = (FILE *)user;
    for (size_t i = 0; i < count; i++) {
        held[used++] = ((const uint8_t *)bytes)[i];
        const bool begins = (used == 1 && (held[0] == 0xC2 || held[0] == 0xD8 || held[0] == 0xE2))
            || (used == 2 && held[0] == 0xE2 && (held[1] == 0x80 || held[1] == 0x81));
        if (begins) continue;
        const unsigned last = held[used - 1] & 0x3F, code = used == 1 ? held[0] : used == 2
            ? (held[0] & 0x1Fu) << 6 | last : 0x2000u | (held[1] & 0x3Fu) << 6 | last;
        const bool harmful = npuprof_utf8_control_length_(held, used) == used;
        if (harmful && held[0] != '\n') fprintf(file, "\\u%04x", code);
        else fwrite(held, 1, used, file);
        used = 0;
    }
    return ferror(file) ? EIO : 0;
}

/* Why the file cannot be looked at; looks: how often it could. */
static int refuse(uint64_t looks)
{
    char magic[8] = "";
    FILE *const file = fopen(path, "rb");
    const int error = errno;
    if (looks) return fail(1, "the program has ended; npuprof report reads what it left");
    if (!file) return fail(2, error == ENOENT ? "no such file; start the program with NPUPROF_ARENA_PATH=FILE"
                                              : "cannot be read; check owner and mode");
    const bool is_ours = fread(magic, 1, 8, file) == 8 && memcmp(magic, "NPUPROF\n", 8) == 0;
    fclose(file);
    return fail(2, is_ours ? "no program records into it; npuprof report reads it as it is"
                           : "is no arena of npuprof; give the file of NPUPROF_ARENA_PATH");
}

/* Looks at the arena, and prints what is new since the look before at `since`. Returns 0 or an exit code. */
static int look(uint64_t looks, int64_t since, int64_t now)
{
    size_t bytes;
    npuprof_damage damage;
    void *in_use;
    if (npuprof_load_map_file_(path, true, &in_use, &bytes) || !in_use) return refuse(looks);
    npuprof_os_unmap_(in_use, bytes);
    if (npuprof_load(path, &damage) != NPUPROF_OK || !npuprof_loaded_.is_live)
        return looks ? refuse(looks) : fail(2, "a program writes into it, but it is no mapped arena; start "
                                               "the program with NPUPROF_ARENA_PATH=FILE");
    if (looks) npuprof_symbols_name_loaded_(&symbols, true);
    npuprof_work_ *w;
    if (npuprof_report_begin_(stdout, &w)) return fail(2, "there is no memory");
    const npuprof_header_ *const h = w->image.h;
    const bool is_same = !looks || seed == h->seed_low;
    seed = h->seed_low;
    npuprof_top_read_(&w->image, looks == 0);
    w->out.sink.write = put;
    w->out.sink.user = stdout;
    if (looks && is_same) npuprof_top_print_(&w->out, &w->image, now - since);
    npuprof_out_flush_(&w->out);
    const npuprof_result r = npuprof_report_end_(stdout, w);
    npuprof_unload();
    if (!is_same) return refuse(looks);
    return r == NPUPROF_OK && fflush(stdout) == 0 ? 0 : 2;
}

/* Says on stderr which functions have no name. */
static void say_of_symbols(const char *module, const char *sentence)
{
    fflush(stdout);
    npuprof_os_say_("npuprof-top: names of functions: %s: %s\n", module, sentence);
}

int main(int argc, char **argv)
{
    char *words[4] = { NULL, NULL, NULL, NULL };
    int count = 0;
    bool only_words = false;                   /* behind "--": no more options come */
    for (int i = 0; i < argc && count <= 4; i++)
        if (!only_words && strcmp(argv[i], "--") == 0) only_words = true;
        else if ((only_words || !npuprof_symbols_read_option_(&symbols, argv, argc, &i)) && ++count <= 4)
            words[count - 1] = argv[i];
    symbols.say = say_of_symbols;
    path = count > 1 ? words[1] : "npuprof-top";
    const double seconds = count > 2 ? atof(words[2]) : 0;
    const uint64_t most = count > 3 ? strtoull(words[3], NULL, 10) : UINT64_MAX;
    if (count < 3 || count > 4 || !(seconds >= 0.01 && seconds <= 3600))
        return fail(2, "usage: npuprof-top ARENA SECONDS [COUNT] [--symbols FILE] [--debug-dir DIR]; "
                       "0.01 to 3600 seconds");
    npuprof_top_start_();
    int64_t since = 0, next = npuprof_os_monotonic_ns_();
    for (uint64_t looks = 0;; looks++) {
        const int64_t now = npuprof_os_monotonic_ns_();
        const int code = look(looks, since, now);
        if (code || looks == most) return code;
        since = now;
        next += (int64_t)(seconds * 1e9);
        if (next < now) next = now;
        const int64_t left = next - now;
        const struct timespec pause = { (time_t)(left / 1000000000), (long)(left % 1000000000) };
        nanosleep(&pause, NULL);
    }
}
