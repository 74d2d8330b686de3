/* test: cc=-O2 san=address,undefined - images of the fuzz corpus: no crash, strict JSON, the same at every
   look
   SPDX-License-Identifier: MIT

   With -DFUZZ it is a libFuzzer target (`make fuzz`); else a program that runs the corpus, or the files in
   its arguments. */
#include "trace.h"
#include <dirent.h>
#define NPUPROF_ARENA_BYTES 4096
#define NPUPROF_IMPLEMENTATION
#include "npuprof.h"
#include "../../tools/convert/load.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t count);

static const char *of_what = "a made-up image";
static const char *of_elf;             /* whose names the image has; NULL: nobody's */
static void broken(const char *why)
{
    fprintf(stderr, "%s: %s\n", of_what, why);
    abort();
}

/* ---- strict JSON, without memory ---- */

typedef struct text { const char *at, *end; } text;
static void space(text *t)
{
    while (t->at < t->end && (*t->at == ' ' || *t->at == '\n')) t->at++;
}

static bool word(text *t, const char *w)
{
    const size_t n = strlen(w);
    if ((size_t)(t->end - t->at) < n || memcmp(t->at, w, n) != 0) return false;
    t->at += n;
    return true;
}

static bool string(text *t)
{
    if (!word(t, "\"")) return false;
    while (t->at < t->end && *t->at != '"') {
        if (*t->at == '\\') {
            if (t->end - t->at < 6 || !strchr("\"\\/bfnrtu", t->at[1])) return false;
            if (t->at[1] == 'u') {
                if (strspn(t->at + 2, "0123456789abcdefABCDEF") < 4) return false;
                t->at += 4;
            }
            t->at += 2;
            continue;
        }
        const size_t n = (unsigned char)*t->at < 0x20 ? 0
            : json_utf8_((const unsigned char *)t->at, (size_t)(t->end - t->at));
        if (!n) return false;
        t->at += n;
    }
    return word(t, "\"");
}

static bool digits(text *t)
{
    const char *from = t->at;
    while (t->at < t->end && *t->at >= '0' && *t->at <= '9') t->at++;
    return t->at > from;
}

static bool number(text *t)
{
    (void)word(t, "-");
    const char *from = t->at;
    if (!digits(t) || (*from == '0' && t->at - from > 1)) return false;
    if (word(t, ".") && !digits(t)) return false;
    if (word(t, "e") || word(t, "E")) {
        if (!word(t, "+")) (void)word(t, "-");
        return digits(t);
    }
    return true;
}

static bool value(text *t, int depth)
{
    space(t);
    if (depth > 20 || t->at >= t->end) return false;
    const char close = *t->at == '{' ? '}' : *t->at == '[' ? ']' : 0, last[2] = { close, 0 };
    if (!close)
        return *t->at == '"' ? string(t) : word(t, "true") || word(t, "false") || word(t, "null")
            || number(t);
    t->at++;
    space(t);
    if (word(t, last)) return true;
    do {
        space(t);
        if (close == '}' && (!string(t) || (space(t), !word(t, ":")))) return false;
        if (!value(t, depth + 1)) return false;
        space(t);
    } while (word(t, ","));
    return word(t, last);
}

/* ---- one image ---- */

typedef struct output { char *bytes; size_t count, room; } output;
static int keep(void *user, const void *bytes, size_t count)
{
    output *o = (output *)user;
    if (o->count + count + 1 > o->room) {
        o->room = (o->count + count) * 2 + 65536;
        o->bytes = (char *)realloc(o->bytes, o->room);
        if (!o->bytes) abort();
    }
    memcpy(o->bytes + o->count, bytes, count);
    o->count += count;
    o->bytes[o->count] = 0;
    return 0;
}

/* Everything that reads an image. Its JSON goes into *json. */
static npuprof_result look_at(const uint8_t *bytes, size_t count, output *json, npuprof_damage *damage)
{
    static FILE *nowhere;
    static char csv[64], image[64];
    /* its exact size, so that a sanitizer sees the end */
    uint8_t *copy = (uint8_t *)malloc(count ? count : 1);
    const npuprof_sink sink = { keep, json };
    npuprof_stats stats;
    if (!copy) abort();
    memcpy(copy, bytes, count);
    if (!nowhere) {
        /* What is not a regular file is written in place; the extension says the format. */
        nowhere = fopen("/dev/null", "w");
        snprintf(csv, sizeof csv, "/tmp/npuprof-fuzz-%d.csv", (int)getpid());
        snprintf(image, sizeof image, "/tmp/npuprof-fuzz-%d.npuprof", (int)getpid());
        (void)unlink(csv);                 /* of a process that had this number */
        (void)unlink(image);
        if (!nowhere || symlink("/dev/null", csv) || symlink("/dev/null", image))
            broken("cannot make the links to /dev/null");
    }
    const npuprof_result r = npuprof_load_any_(NULL, copy, count, of_elf, 0, damage);
    if (r == NPUPROF_OK) {
        npuprof_get_stats(&stats);
        if (npuprof_write_json(sink) != NPUPROF_OK) broken("the JSON was not written");
        if (npuprof_dump(csv) != NPUPROF_OK) broken("the CSV was not written");
        if (npuprof_dump(image) != NPUPROF_OK) broken("the image was not written");
#define PRINTS(name) if (name(nowhere)) broken("a report was not written");
        NPUPROF_TABLES(PRINTS)
        npuprof_unload();
    } else if (r != NPUPROF_ERR_FORMAT && r != NPUPROF_ERR_NO_SPACE) {
        broken("an unexpected result");
    } else if (r == NPUPROF_ERR_FORMAT && (!damage->what || !*damage->what || damage->offset > count)) {
        broken("refused without a reason");
    }
    free(copy);
    return r;
}

/* The image as npuprof_write_image() stores it: loaded again it is the same trace. */
static void store_and_look(const uint8_t *bytes, size_t count, const output *before)
{
    static output stored, json;
    npuprof_damage damage;
    const npuprof_sink sink = { keep, &stored };
    uint8_t *copy = (uint8_t *)malloc(count);
    if (!copy) abort();
    memcpy(copy, bytes, count);
    stored.count = json.count = 0;
    if (npuprof_load_any_(NULL, copy, count, of_elf, 0, NULL)) broken("cannot be loaded again");
    if (npuprof_write_image(sink)) broken("the image was not stored");
    npuprof_unload();
    free(copy);
    if (look_at((const uint8_t *)stored.bytes, stored.count, &json, &damage))
        broken("what was stored cannot be loaded");
    if (damage.places) broken("what was stored is damaged");
    if (json.count != before->count || memcmp(json.bytes, before->bytes, json.count) != 0)
        broken("what was stored is another trace");
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t count)
{
    static output first, second;
    npuprof_damage damage, again;
    first.count = second.count = 0;
    if (look_at(bytes, count, &first, &damage) != NPUPROF_OK) return 0;
    text t = { first.bytes, first.bytes + first.count };
    if (!value(&t, 0) || (space(&t), t.at != t.end)) {
        fprintf(stderr, "at %ld: %.80s\n", (long)(t.at - first.bytes), t.at);
        broken("not strict JSON");
    }
    if (!damage.places) store_and_look(bytes, count, &first);
    if (bytes[count - 1] % 16 == 0) {      /* now and then: the same image, the same words */
        look_at(bytes, count, &second, &again);
        if (damage.places != again.places || first.count != second.count
            || memcmp(first.bytes, second.bytes, first.count) != 0)
            broken("another look, another trace");
    }
    return 0;
}

#ifndef FUZZ
static void of_file(const char *path)
{
    size_t count = 0;
    char *bytes = check_read_file(path, &count);
    of_what = path;
    if (!bytes) broken("cannot be read");
    LLVMFuzzerTestOneInput((const uint8_t *)bytes, count);
    free(bytes);
}

int main(int argc, char **argv)
{
    const char *folder = "tests/fuzz/corpus";
    char path[600];
    int files = 0;
    DIR *list = argc > 1 ? NULL : opendir(folder);
    for (int i = 1; i < argc; i++) of_file(argv[i]);
    for (struct dirent *e = list ? readdir(list) : NULL; e; e = readdir(list)) {
        if (e->d_name[0] == '.') continue;
        snprintf(path, sizeof path, "%s/%s", folder, e->d_name);
        of_file(path);
        files++;
    }
    if (list) closedir(list);
    if (argc > 1 || files > 20) printf("ok corpus\nnote %d images\n", files);
    else printf("FAIL corpus: only %d files in %s\n", files, folder);
    return argc > 1 || files > 20 ? 0 : 1;
}
#endif /* !FUZZ */
