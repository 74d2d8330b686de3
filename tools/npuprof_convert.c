/* npuprof-convert: turns an image (.npuprof) into JSON, CSV, Perfetto's .pftrace or a report. `make tools`
   builds it.
   SPDX-License-Identifier: MIT

   usage: npuprof-convert IMAGE [--elf FIRMWARE.elf] [-o FILE] [--report]
          npuprof-convert --live MEMORY [--elf FIRMWARE.elf] [-o FILE] [--report]
          npuprof-convert --follow SOURCE [--elf FIRMWARE.elf] [-o FILE], see --help
   FILE ends in .json, .csv, .npuprof or .pftrace (Perfetto's own format).
   IMAGE may be a JSON trace of npuprof: then FILE is a copy in which automatic spans have the names of their
   functions.
   With --elf the image may be a dump of a target's memory or a core file, and names are taken from that
   program. The ELF file of another build is refused.
   Without -o the JSON goes to the standard output.
   Exit code 0: all was read and written; 1: the image is damaged, and what could be read was written;
   2: nothing could be read or written. */
#define NPUPROF_ARENA_BYTES 4096               /* it records nothing itself */
#include "convert/load.h"
#include "convert/pftrace_file.h"
#include "convert/loose_flows.h"
#include "convert/name_image.h"
#include "convert/name_json.h"
#include "convert/follow_run.h"

#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

static const char usage[] =
    "usage: npuprof-convert IMAGE [--elf FIRMWARE.elf] [-o FILE] [--report]\n"
    "                       [--symbols FILE] [--debug-dir DIR]\n"
    "       npuprof-convert --live MEMORY --elf FIRMWARE.elf [-o FILE] [--report]\n"
    "       npuprof-convert --follow SOURCE [--elf FIRMWARE.elf] [-o FILE] [--baud N] [--seconds N]\n"
    "                       [--every N] [--split MIB] [--files N]\n"
    "FILE ends in .json, .csv, .npuprof or .pftrace\n"
    "MEMORY of a target that goes on recording: a file that can be mapped, such as a BAR's resource2 in\n"
    "             /sys, or three dumps of the same memory, made one after the other\n"
    "SOURCE: a serial device, a pipe, a pty, a file that grows, or - for the standard input.\n"
    "--baud N     rate of a serial device, which is set to raw bytes, 8N1 (115200)\n"
    "--seconds N  ends after so long; 0: when no more bytes come. Without it, Ctrl-C ends it\n"
    "--every N    writes FILE, as a whole and by renaming, after 1 second, each N seconds and at the\n"
    "             end (10); 0: at the end only\n"
    "--split MIB  begins FILE-2, FILE-3, ... when a file stands for so many MiB of the stream, 1 to\n"
    "             1024 (16). Memory: 32 MiB and about 30 times that\n"
    "--files N    keeps the newest N of these files (all)\n"
    "--symbols FILE   of automatic spans (NPUPROF_AUTO): an ELF file with the names of functions, if its\n"
    "                 build id is that of a module that ran. Up to 16 of each\n"
    "--debug-dir DIR  where modules and their debug files are: by path, by name, or as\n"
    "                 .build-id/ab/cdef.debug. /usr/lib/debug is searched, too";

static int fail(const char *what, const char *why)
{
    npuprof_os_say_("npuprof-convert: %s: %s\n", what, why);
    return 2;
}

/* Wrong usage: what is wrong, and the whole usage, which has lines. */
static int misuse(const char *what)
{
    npuprof_os_say_("npuprof-convert: %s: usage is this:\n", what);
    fprintf(stderr, "%s\n", usage);
    return 2;
}

static npuprof_result print_reports(FILE *out)
{
#define PRINTS(name) name,
    npuprof_result (*const print[])(FILE *) = { NPUPROF_TABLES(PRINTS) };
    npuprof_result r = NPUPROF_OK;
    for (size_t i = 0; i < sizeof print / sizeof *print && r == NPUPROF_OK; i++) {
        if (i) fputc('\n', out);
        r = print[i](out);
    }
    return r;
}

static bool same_file(const char *a, const char *b)
{
    struct stat one, other;
    return stat(a, &one) == 0 && stat(b, &other) == 0 && one.st_ino && one.st_ino == other.st_ino &&
        one.st_dev == other.st_dev;
}

/* Says on stderr what the image itself says of a firmware that cannot be right: its clock, its names. */
static void warn_of_firmware(const char *path)
{
    const npuprof_image_ *im = npuprof_image_given_;
    const size_t bytes = sizeof(npuprof_pair_entry_);
    const npuprof_entry_ *e;
    size_t length;
    for (uint32_t id =
        0; (e = npuprof_image_next_entry_(im, NPUPROF_ENTRY_ENVIRONMENT, bytes, &id)) != NULL;) {
        const npuprof_pair_entry_ *pair = (const npuprof_pair_entry_ *)(const void *)e;
        const char *name = npuprof_image_text_(im, pair->b[0], &length);
        if (strcmp(name, "NPUPROF_NOW") != 0 && strcmp(name, "NPUPROF_NAMES_SECTION") != 0) continue;
        const char *what = npuprof_image_text_(im, pair->b[1], &length);
        npuprof_os_say_("npuprof-convert: %s: warning: %.*s\n", path, (int)length, what);
    }
}

/* Says on stderr what could not be read, and what was left out. */
static void warn_of_damage(const char *path, const npuprof_damage *damage)
{
    const unsigned long long offset = damage->offset, more = damage->places - 1, changed = damage->changed;
    char others[48] = "";
    if (damage->places > 1) snprintf(others, sizeof others, ", and %llu more places", more);
    if (damage->places)
        npuprof_os_say_("npuprof-convert: %s: damaged, the rest was read: %s at byte %llu%s\n", path,
                        damage->what, offset, others);
    warn_of_firmware(path);
    if (damage->changed && npuprof_loaded_.is_target)
        npuprof_os_say_("npuprof-convert: %s: the target went on recording: %llu cells of 16 bytes changed "
                        "while they were read, and are left out\n", path, changed);
    else if (damage->changed)
        npuprof_os_say_("npuprof-convert: %s: a process is writing into it: "
                        "%llu of its chunks were taken for newer records meanwhile\n", path, changed);
}

/* The options of --follow; the others are image, elf and output. */
typedef struct options {
    const char *image, *output, *elf, *follow, *again[2];
    unsigned long baud, seconds, every, split_mib, files;
    bool live, report, follow_only;        /* follow_only: an option that means something to --follow alone */
    bool only_names;                       /* behind "--": no more options come */
    npuprof_symbols_options_ symbols;
} options;

/* Says on stderr which functions have no name. */
static void say_of_symbols(const char *path, const char *sentence)
{
    npuprof_os_say_("npuprof-convert: names of functions: %s: %s\n", path, sentence);
}

/* The number of an option. False: it is none, or not from `least` to `most`. */
static bool number_of(const char *text, unsigned long least, unsigned long most, unsigned long *number)
{
    char *end = NULL;
    if (!text || *text < '0' || *text > '9') return false;
    errno = 0;
    *number = strtoul(text, &end, 10);
    return !errno && !*end && *number >= least && *number <= most;
}

static bool read_image(options *o, const char *name)
{
    const char **const names[] = { &o->image, &o->again[0], &o->again[1] };
    for (int i = 0; i < 3; i++) {
        if (*names[i]) continue;
        *names[i] = name;
        return true;
    }
    return false;
}

/* Reads the option at argv[*i]. False: it is none, or its value cannot be. */
static bool read_option(options *o, char **argv, int argc, int *i)
{
    const char *const name = argv[*i], *const value = *i + 1 < argc ? argv[*i + 1] : NULL;
    const struct { const char *name; const char **text; } texts[] = {
        { "-o", &o->output }, { "--elf", &o->elf }, { "--follow", &o->follow } };
    const struct { const char *name; unsigned long least, most, *number; } numbers[] = {
        { "--baud", 1, 100000000, &o->baud }, { "--seconds", 0, 1000000000, &o->seconds },
        { "--every", 0, 1000000000, &o->every }, { "--split", 1, 1024, &o->split_mib },
        { "--files", 1, 1000000, &o->files } };
    if (o->only_names) return read_image(o, name);
    if (strcmp(name, "--report") == 0) return o->report = true;
    if (strcmp(name, "--live") == 0) return o->live = true;
    if (npuprof_symbols_read_option_(&o->symbols, argv, argc, i)) return true;
    for (size_t k = 0; k < sizeof texts / sizeof *texts; k++) {
        if (strcmp(name, texts[k].name) != 0 || !value || strncmp(value, "--", 2) == 0) continue;
        *texts[k].text = argv[++*i];
        return true;
    }
    for (size_t k = 0; k < sizeof numbers / sizeof *numbers; k++) {
        if (strcmp(name, numbers[k].name) != 0) continue;
        o->follow_only = true;
        ++*i;
        return number_of(value, numbers[k].least, numbers[k].most, numbers[k].number);
    }
    return name[0] != '-' && read_image(o, name);
}

/* Writes the loaded image where the options say. */
static npuprof_result write_loaded(const options *o, const char *output)
{
    if (o->report) return print_reports(stdout);
    if (output && npuprof_load_ends_with_(output, ".pftrace")) return npuprof_write_pftrace(output);
    /* for merge */
    if (output && npuprof_load_ends_with_(output, ".flows")) return npuprof_write_loose_flows(output);
    return npuprof_dump(output ? output : "/dev/stdout");
}

/* Says on stderr that names are only addresses. */
static void warn_of_names(const options *o)
{
    if (npuprof_expand_unnamed_)
        npuprof_os_say_("npuprof-convert: %s: warning: %u names are addresses: give the program that "
                        "recorded, --elf FIRMWARE.elf\n", o->image, (unsigned)npuprof_expand_unnamed_);
    npuprof_expand_unnamed_ = 0;
}

/* Converts the trace that begins at *at of the image; *at is then where the next one does, or 0. Returns the
   exit code. */
static int convert_trace(const options *o, unsigned number, uint64_t *at)
{
    char path[1100];
    npuprof_damage damage;
    const char *const output = o->output;
    const char *const live[3] = { o->image, o->again[0], o->again[1] };
    npuprof_result r = o->live ? npuprof_load_live(live, o->elf, &damage)
                               : npuprof_load_firmware_from(o->image, o->elf, *at, &damage);
    *at = damage.next;
    if (r == NPUPROF_ERR_FORMAT) {
        npuprof_os_say_("npuprof-convert: %s: %s at byte %llu\n", o->image, damage.what,
                (unsigned long long)damage.offset);
        return 2;
    }
    if (r != NPUPROF_OK) return fail(o->image, npuprof_result_string(r));
    warn_of_damage(o->image, &damage);
    warn_of_names(o);
    /* Why no offsets in an image: whoever has the files can still name the addresses. */
    npuprof_symbols_name_loaded_(&o->symbols, !output || !npuprof_load_ends_with_(output, ".npuprof"));
    npuprof_load_numbered_path_(path, sizeof path, output ? output : "", number);
    r = write_loaded(o, output ? path : NULL);
    if (r != NPUPROF_OK) return fail(output ? path : "standard output", npuprof_result_string(r));
    if (fflush(stdout) != 0) return fail("standard output", npuprof_result_string(NPUPROF_ERR_IO));
    return damage.places ? 1 : 0;
}

/* Converts an image. A target that began anew gives a further trace in a file with a number. */
static int convert(const options *o)
{
    uint64_t at = 0;
    if (o->output && strlen(o->output) > 1000) return fail(o->output, "a path of more than 1000 bytes");
    int code = convert_trace(o, 1, &at);
    for (unsigned number = 2; at && code < 2; number++) {
        npuprof_os_say_("npuprof-convert: %s: the target began anew at byte %llu: %s\n", o->image,
                (unsigned long long)at, o->output ? "see the next file" : "left out, give -o FILE");
        const int next = o->output ? convert_trace(o, number, &at) : 1;
        if (next > code) code = next;
        if (!o->output) break;
    }
    return code;
}

/* Names the functions in a JSON trace. */
static int convert_json(const options *o)
{
    if (o->report || o->elf || (o->output && !npuprof_load_ends_with_(o->output, ".json")))
        return fail(o->image, "a JSON trace becomes .json here; npuprof.py convert writes the other formats");
    const npuprof_result r =
        npuprof_symbols_name_json_(&o->symbols, o->image, o->output ? o->output : "/dev/stdout");
    if (r == NPUPROF_ERR_FORMAT) return fail(o->image, "the file ends too early, was it cut off?");
    return r == NPUPROF_OK ? 0 : fail(o->image, npuprof_result_string(r));
}

static int follow(const options *o)
{
#ifdef _WIN32
    return fail("--follow", "not on Windows: write the stream to a file and convert that");
#else
    const npuprof_follow_options_ f = { o->follow, o->elf, o->output, o->baud, o->seconds, o->every,
                                        o->split_mib, o->files };
    return npuprof_follow_run_(&f);
#endif
}

int main(int argc, char **argv)
{
    options o;
    memset(&o, 0, sizeof o);
    o.baud = 115200;
    o.seconds = ULONG_MAX;
    o.every = 10;
    o.split_mib = 16;
    o.symbols.say = say_of_symbols;
    for (int i = 1; i < argc; i++) {
        const int at = i;
        if (strcmp(argv[i], "--") == 0 && !o.only_names && (o.only_names = true)) continue;
        if (strcmp(argv[i], "--help") == 0) return puts(usage) < 0 ? 2 : 0;
        if (!read_option(&o, argv, argc, &i)) return misuse(argv[at]);
    }
    const char *const input = o.follow ? o.follow : o.image;
    if (!input) return misuse("no image given");
    if (!o.live && o.again[0]) return misuse(o.again[0]);
    if (o.live && o.again[0] && !o.again[1])
        return fail("--live", "a file that can be mapped, or three dumps");
    if (o.live && o.follow) return fail("--live", "not with --follow");
    if (o.follow && (o.image || o.report)) return fail(o.image ? o.image : "--report", "not with --follow");
    if (!o.follow && o.follow_only) return fail("--baud, --seconds, --every, --split", "only with --follow");
    if (o.output && (same_file(o.output, input) || (o.elf && same_file(o.output, o.elf))))
        return fail(o.output, "is an input, write to another file");
    if (!o.follow && !o.live && npuprof_symbols_is_json_(input)) return convert_json(&o);
    return o.follow ? follow(&o) : convert(&o);
}
