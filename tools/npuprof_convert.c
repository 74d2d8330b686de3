/* npuprof-convert: turns an image (.npuprof) into JSON, CSV, Perfetto's .pftrace or a report. `make tools`
   builds it.
   SPDX-License-Identifier: MIT

   usage: npuprof-convert IMAGE [--elf FIRMWARE.elf] [-o FILE] [--report]
   FILE ends in .json, .csv, .npuprof or .pftrace (Perfetto's own format).
   With --elf the image may be a dump of a target's memory or a core file, and names are taken from that
   program. The ELF file of another build is refused.
   Without -o the JSON goes to the standard output.
   Exit code 0: all was read and written; 1: the image is damaged, and what could be read was written;
   2: nothing could be read or written. */
#define NPUPROF_ARENA_BYTES 4096               /* it records nothing itself */
#define NPUPROF_SCRATCH_BYTES (16 * 1024 * 1024)
#include "convert/load.h"
#include "convert/pftrace_file.h"

#include <string.h>
#include <sys/stat.h>

static int fail(const char *what, const char *why)
{
    fprintf(stderr, "npuprof-convert: %s: %s\n", what, why);
    return 2;
}

static npuprof_result print_reports(FILE *out)
{
    npuprof_result (*const print[])(FILE *) = {
        npuprof_print_summary, npuprof_print_inferences, npuprof_print_npu_executions,
        npuprof_print_npu_operators, npuprof_print_external_operators, npuprof_print_memory };
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

static bool ends_with(const char *text, const char *end)
{
    const size_t n = strlen(text), m = strlen(end);
    return n >= m && strcmp(text + n - m, end) == 0;
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
        fprintf(stderr, "npuprof-convert: %s: warning: %.*s\n", path, (int)length, what);
    }
}

/* Says on stderr what could not be read, and what was left out. */
static void warn_of_damage(const char *path, const npuprof_damage *damage)
{
    const unsigned long long offset = damage->offset, more = damage->places - 1, changed = damage->changed;
    if (damage->places)
        fprintf(stderr, "npuprof-convert: %s: damaged, the rest was read: %s at byte %llu", path,
                damage->what, offset);
    if (damage->places > 1) fprintf(stderr, ", and %llu more places", more);
    if (damage->places) fputc('\n', stderr);
    warn_of_firmware(path);
    if (damage->changed)
        fprintf(stderr, "npuprof-convert: %s: a process is writing into it: "
                        "%llu of its chunks were taken for newer records meanwhile\n", path, changed);
}

int main(int argc, char **argv)
{
    static const char usage[] = "usage: npuprof-convert IMAGE [--elf FIRMWARE.elf] "
                                "[-o FILE.json|FILE.csv|FILE.npuprof|FILE.pftrace] [--report]";
    const char *image = NULL, *output = NULL, *elf = NULL;
    bool report = false;
    for (int i = 1; i < argc; i++) {
        if (strcmp(argv[i], "-o") == 0 && i + 1 < argc) output = argv[++i];
        else if (strcmp(argv[i], "--elf") == 0 && i + 1 < argc) elf = argv[++i];
        else if (strcmp(argv[i], "--report") == 0) report = true;
        else if (argv[i][0] != '-' && !image) image = argv[i];
        else return fail(argv[i], usage);
    }
    if (!image) return fail("no image given", usage);
    if (output && (same_file(output, image) || (elf && same_file(output, elf))))
        return fail(output, "is an input, write to another file");
    npuprof_damage damage;
    npuprof_result r = elf ? npuprof_load_firmware(image, elf, &damage) : npuprof_load(image, &damage);
    if (r == NPUPROF_ERR_FORMAT) {
        fprintf(stderr, "npuprof-convert: %s: %s at byte %llu\n", image, damage.what,
                (unsigned long long)damage.offset);
        return 2;
    }
    if (r != NPUPROF_OK) return fail(image, npuprof_result_string(r));
    warn_of_damage(image, &damage);
    if (report) r = print_reports(stdout);
    else if (output && ends_with(output, ".pftrace")) r = npuprof_write_pftrace(output);
    else r = npuprof_dump(output ? output : "/dev/stdout");
    if (r != NPUPROF_OK) return fail(output ? output : "standard output", npuprof_result_string(r));
    if (fflush(stdout) != 0) return fail("standard output", npuprof_result_string(NPUPROF_ERR_IO));
    return damage.places ? 1 : 0;
}
