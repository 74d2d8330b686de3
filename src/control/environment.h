#pragma once   /* SPDX-License-Identifier: MIT */
#include "../public/types.h"
#include "../numbers/text.h"
#include "../format/arena.h"
#include "../arena/state.h"
#include "../os/common.h"
#include "../clock/host.h"
#include "../arena/table.h"
#include "../record/enter.h"
#include "start.h"
#include "path.h"

NPUPROF_API_ npuprof_result npuprof_set_categories(const char *spec)
{
    npuprof_arena_state_ *s = &npuprof_s_;
    if (!npuprof_record_is_ready_()) return NPUPROF_ERR_ARENA_SIZE;
    char list[sizeof s->lists[0].words];
    size_t n = 0;
    int mode = 0;
    for (const char *p = spec ? spec : ""; *p;) {
        while (*p == ' ' || *p == ',') p++;
        if (!*p) break;
        const int sign = *p == '-' ? -1 : 1;
        if (sign < 0) p++;
        if (mode && mode != sign) return NPUPROF_ERR_CATEGORIES;
        mode = sign;
        const char *word = p;
        while (*p && *p != ',') p++;
        size_t length = (size_t)(p - word);
        while (length && word[length - 1] == ' ') length--;
        if (!length || n + length + 2 > sizeof list) return NPUPROF_ERR_CATEGORIES;
        if (n) list[n++] = ',';
        memcpy(list + n, word, length);
        n += length;
    }
    list[n] = 0;
    /* Why another one for each caller: two threads may come at a time. */
    npuprof_arena_categories_ *next =
        &s->lists[(NPUPROF_ADD_(&s->list_number, 1) + 1) % (sizeof s->lists / sizeof *s->lists)];
    memcpy(next->words, list, n + 1);
    next->mode = mode;
    NPUPROF_STORE_(&next->seen, 0);
    NPUPROF_STORE_RELEASE_(&s->categories, next);
    s->categories_from[0] = 0;
    npuprof_control_advance_generation_();
    return NPUPROF_OK;
}

NPUPROF_API_ const char *npuprof_result_string(npuprof_result result)
{
#define NPUPROF_CASE_(name, text) \
    case name: return #name ": " text;
    if (result == NPUPROF_ERR_ARGUMENT && npuprof_os_refused_) return npuprof_os_refused_;
    switch (result) {
        NPUPROF_RESULTS(NPUPROF_CASE_)
    case NPUPROF_RESULT_COUNT: break;
    }
#undef NPUPROF_CASE_
    return "no such result code";
}

/* An environment value that cannot be used: into the metadata, and once on stderr. */
static void npuprof_env_refuse_(const char *name, const char *value, const char *why)
{
    char text[400];
    snprintf(text, sizeof text, "%.200s: %s", value, why);
    npuprof_table_add_pair_(NPUPROF_ENTRY_ENVIRONMENT, name, text);
    npuprof_os_say_("npuprof: %s=%s\n", name, text);
}

/* Empty, 0, off and false mean unset, too. */
static bool npuprof_env_is_unset_(const char *v)
{
    return !v || !*v || strcmp(v, "0") == 0 || strcmp(v, "off") == 0 || strcmp(v, "false") == 0;
}

/* A variable's value; NULL when unset. */
static const char *npuprof_env_get_(const char *name)
{
    const char *v = npuprof_os_env_(name);
    return npuprof_env_is_unset_(v) ? NULL : v;
}

/* W3C Trace Context: 00-<32 hex>-<16 hex>-<2 hex>, ids not all zero. */
static bool npuprof_env_is_traceparent_(const char *v)
{
    bool good = strlen(v) == 55 && memcmp(v, "00-", 3) == 0 && v[35] == '-' && v[52] == '-', trace = false,
        parent = false;
    for (int i = 3; good && i < 55; i++) {
        if (i == 35 || i == 52) continue;
        good = (v[i] >= '0' && v[i] <= '9') || (v[i] >= 'a' && v[i] <= 'f');
        if (i < 35) trace |= v[i] != '0';
        else if (i < 52) parent |= v[i] != '0';
    }
    return good && trace && parent;
}

static const char *const npuprof_env_policies_[] = { "keep-oldest", "keep-newest", "stream" };

/* A size in bytes: a number, with K, M or G behind it if they are KiB, MiB or GiB. 0: no size that an arena
   can have. */
static size_t npuprof_env_read_size_(const char *v)
{
    static const char suffixes[] = "KMG";
    char *end = NULL;
    errno = 0;
    unsigned long long n = *v >= '0' && *v <= '9' ? strtoull(v, &end, 10) : 0;
    if (!end || errno) return 0;
    const char *const suffix = *end ? strchr(suffixes, *end & ~32) : NULL;
    const unsigned shift = suffix ? 10 * (unsigned)(suffix - suffixes + 1) : 0;
    if (end[suffix != NULL] || n > (SIZE_MAX / 2) >> shift) return 0;
    n <<= shift;
    return n < 2048 ? 0 : (size_t)n;
}

/* Names what looks like a variable of ours and is none. Those of the project's own tests begin with
   NPUPROF_TEST_. */
static void npuprof_env_refuse_unknown_(void)
{
    static const char *const known[] = { "OUTPUT_PATH", "LEVEL", "CATEGORIES", "WHEN_FULL", "ARENA_PATH",
                                         "ARENA_BYTES", "POPULATE" };
    for (char **at = npuprof_os_environment_(); at && *at; at++) {
        const char *const name = *at, *const value = strchr(name, '=');
        bool is_known = !value || npuprof_env_is_unset_(value + 1) || strncmp(name, "NPUPROF_", 8) != 0
            || strncmp(name, "NPUPROF_TEST_", 13) == 0;
        for (size_t i = 0; !is_known && i < sizeof known / sizeof *known; i++)
            is_known = strlen(known[i]) == (size_t)(value - name) - 8
                && strncmp(name + 8, known[i], strlen(known[i])) == 0;
        char text[80];
        if (is_known) continue;
        npuprof_text_copy_(text, (size_t)(value - name) < sizeof text ? (size_t)(value - name) + 1
                           : sizeof text, name);
        npuprof_env_refuse_(text, value + 1, "there is no such variable");
    }
}

static void npuprof_control_set_policy_(int when_full)
{
    if (when_full < 0) return;
    npuprof_s_.when_full = when_full;
    npuprof_s_.header->when_full = (uint32_t)when_full;
}

/* Files. arena_error: why NPUPROF_ARENA_PATH could not be mapped, 0 if it could. */
static void npuprof_env_read_paths_(int arena_error)
{
    npuprof_arena_state_ *s = &npuprof_s_;
    if (s->mapped_bytes) s->level = 1;
    else if (arena_error)
        npuprof_env_refuse_("NPUPROF_ARENA_PATH", npuprof_env_get_("NPUPROF_ARENA_PATH"),
                            arena_error == EINVAL ? "not a path that can be used; the arena is in no file"
                            : strerror(arena_error));
    const char *const v = npuprof_env_get_("NPUPROF_OUTPUT_PATH");
    if (!v) return;
    if (strlen(v) >= sizeof s->output_path) {
        npuprof_env_refuse_("NPUPROF_OUTPUT_PATH", v, "longer than 1023 bytes; nothing is recorded");
    } else if (npuprof_path_form_(v) < 0) {
        npuprof_env_refuse_("NPUPROF_OUTPUT_PATH", v,
                            "unknown extension, give .json, .csv or .npuprof; nothing is recorded");
    } else {
        npuprof_text_copy_(s->output_path, sizeof s->output_path, v);
        s->write_at_exit = true;
        s->level = 1;
    }
}

static void npuprof_env_read_level_(void)
{
    const char *const v = npuprof_env_get_("NPUPROF_LEVEL");
    if (!v) return;
    char *end;
    errno = 0;
    const long level = strtol(v, &end, 10);
    if (*end || end == v) {
        npuprof_env_refuse_("NPUPROF_LEVEL", v, "not a number; give 1 to 9");
        return;
    }
    const int clamped = level < 1 ? 1 : level > 9 ? 9 : (int)level;
    if (clamped != level)
        npuprof_env_refuse_("NPUPROF_LEVEL", v, clamped == 9 ? "above 9; 9 is used" : "below 1; 1 is used");
    if (npuprof_s_.level) npuprof_s_.level = clamped;
    else npuprof_env_refuse_("NPUPROF_LEVEL", v,
                             "has no effect without NPUPROF_OUTPUT_PATH or NPUPROF_ARENA_PATH");
}

static void npuprof_env_read_policy_(void)
{
    npuprof_arena_state_ *s = &npuprof_s_;
    const char *const v = npuprof_env_get_("NPUPROF_WHEN_FULL");
    s->env_when_full = -1;
    for (int i = 0; v && i <= NPUPROF_STREAM; i++)
        if (strcmp(v, npuprof_env_policies_[i]) == 0) s->env_when_full = i;
    if (v && s->env_when_full < 0)
        npuprof_env_refuse_("NPUPROF_WHEN_FULL", v, "give keep-oldest, keep-newest or stream");
    if (s->env_when_full != NPUPROF_STREAM || npuprof_path_is_stream_())
        npuprof_control_set_policy_(s->env_when_full);
}

/* All variables, once, when the arena is laid out. What cannot be used is named once on stderr. */
static void npuprof_env_read_(int arena_error)
{
    npuprof_arena_state_ *s = &npuprof_s_;
    npuprof_env_read_paths_(arena_error);
    const char *v = npuprof_env_get_("NPUPROF_ARENA_BYTES");
    if (v && !s->env_arena_bytes)
        npuprof_env_refuse_("NPUPROF_ARENA_BYTES", v,
                            npuprof_env_read_size_(v) ? "so much memory cannot be had"
                            : "give a number of bytes, at least 2048; K, M or G may follow");
    npuprof_env_read_level_();
    v = npuprof_env_get_("NPUPROF_CATEGORIES");
    if (v) {
        if (npuprof_set_categories(v) == NPUPROF_OK)
            npuprof_text_copy_(s->categories_from, sizeof s->categories_from, "NPUPROF_CATEGORIES");
        else npuprof_env_refuse_("NPUPROF_CATEGORIES", v, "give \"a,b\" or \"-a,-b\", not both");
    }
    npuprof_env_read_policy_();
    v = npuprof_env_get_("NPUPROF_POPULATE");
    s->env_populate = v && (strcmp(v, "1") == 0 || strcmp(v, "on") == 0 || strcmp(v, "true") == 0);
    if (v && !s->env_populate) npuprof_env_refuse_("NPUPROF_POPULATE", v, "give 1, on or true");
    npuprof_env_refuse_unknown_();
    v = npuprof_os_env_("TRACEPARENT");
    if (v && *v) {
        if (npuprof_env_is_traceparent_(v))
            npuprof_text_copy_(s->header->traceparent, sizeof s->header->traceparent, v);
        else npuprof_env_refuse_("TRACEPARENT", v, "not of the form 00-<32 hex>-<16 hex>-<2 hex>");
    }
}
