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
#include "conditions.h"

/* The environment. Each variable is read once, when the library is set up, by one function; the table
   npuprof_env_variables_ names them. A value that cannot be used is refused: it is named on stderr and in the
   metadata of the trace, and the program goes on as if the variable were unset; a level out of range becomes
   the nearest one.

   Data: npuprof_env_, the settings of start.h, path.h and conditions.h, and header.traceparent. They are
   written by the thread that sets up; a variable comes before the same setting of npuprof_init().
   NPUPROF_ARENA_PATH and NPUPROF_ARENA_BYTES are used earlier, by npuprof_setup_arena_(): here it is only
   told what became of them.

   This part may not know how a trace is written. For a new variable, write its function and add a line to the
   table; for a new condition of capture control, to that of conditions.h. */

/* What it said that other settings look at later. */
static struct {
    int when_full;                 /* NPUPROF_WHEN_FULL, -1: unset */
    bool populate;                 /* NPUPROF_POPULATE */
    unsigned conditions;           /* groups of conditions of capture control that it gave */
    const char *looked_at;         /* the variable of the last of them that waits for a look */
    size_t arena_bytes;            /* NPUPROF_ARENA_BYTES, 0: unset */
    int arena_error;               /* NPUPROF_ARENA_PATH: 0, or errno if that file cannot be had */
} npuprof_env_;

/* ---- Values */

/* Tells about a value that cannot be used: in the metadata of the trace, and on stderr. */
static void npuprof_env_refuse_(const char *name, const char *value, const char *why)
{
    char text[400];
    snprintf(text, sizeof text, "%.200s: %s", value, why);
    npuprof_table_add_pair_(NPUPROF_ENTRY_ENVIRONMENT, name, text);
    npuprof_os_say_("npuprof: %s=%s\n", name, text);
}

/* A variable that is empty, 0, off or false counts as unset. */
static bool npuprof_env_is_unset_(const char *v)
{
    return !v || !*v || strcmp(v, "0") == 0 || strcmp(v, "off") == 0 || strcmp(v, "false") == 0;
}

/* A variable's value. NULL: it is unset. */
static const char *npuprof_env_get_(const char *name)
{
    const char *v = npuprof_os_env_(name);
    return npuprof_env_is_unset_(v) ? NULL : v;
}

/* Is it a value of the W3C Trace Context: 00-<32 hex>-<16 hex>-<2 hex>, neither of the two ids all zero? */
static bool npuprof_env_is_traceparent_(const char *v)
{
    bool good = strlen(v) == 55 && memcmp(v, "00-", 3) == 0 && v[35] == '-' && v[52] == '-';
    bool trace = false, parent = false;        /* the id has a digit that is not 0 */
    for (int i = 3; good && i < 55; i++) {
        if (i == 35 || i == 52) continue;
        good = (v[i] >= '0' && v[i] <= '9') || (v[i] >= 'a' && v[i] <= 'f');
        if (i < 35) trace |= v[i] != '0';
        else if (i < 52) parent |= v[i] != '0';
    }
    return good && trace && parent;
}

/* By NPUPROF_KEEP_OLDEST, NPUPROF_KEEP_NEWEST, NPUPROF_STREAM. */
static const char npuprof_env_policies_[][12] = { "keep-oldest", "keep-newest", "stream" };

/* Reads a size: a number of bytes, or of KiB, MiB or GiB with K, M or G behind it. 0: no arena can have this
   size. */
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

/* ---- One function for each variable. It gets a value that is set */

/* With a mapped arena, recording starts at once. */
static void npuprof_env_read_arena_path_(const char *name, const char *value)
{
    const int error = npuprof_env_.arena_error;
    if (npuprof_path_arena_.bytes) npuprof_control_.level = 1;
    else if (error)
        npuprof_env_refuse_(name, value, error == EINVAL
                            ? "not a path that can be used; the arena is in no file" : strerror(error));
}

static void npuprof_env_read_arena_bytes_(const char *name, const char *value)
{
    if (npuprof_env_.arena_bytes) return;
    npuprof_env_refuse_(name, value, npuprof_env_read_size_(value) ? "so much memory cannot be had"
                        : "give a number of bytes, at least 2048; K, M or G may follow");
}

/* Recording starts at once, and the trace is written at exit. */
static void npuprof_env_read_output_path_(const char *name, const char *value)
{
    if (strlen(value) >= sizeof npuprof_path_output_.pattern) {
        npuprof_env_refuse_(name, value, "longer than 1023 bytes; nothing is recorded");
    } else if (npuprof_path_form_(value) < 0) {
        npuprof_env_refuse_(name, value,
                            "unknown extension, give .json, .csv or .npuprof; nothing is recorded");
    } else {
        npuprof_path_set_output_(value);
        npuprof_control_.level = 1;
    }
}

/* Changes the level at which another variable has started the recording. */
static void npuprof_env_read_level_(const char *name, const char *value)
{
    char *end;
    errno = 0;
    const long level = strtol(value, &end, 10);
    if (*end || end == value) {
        npuprof_env_refuse_(name, value, "not a number; give 1 to 9");
        return;
    }
    const int clamped = level < 1 ? 1 : level > 9 ? 9 : (int)level;
    if (clamped != level)
        npuprof_env_refuse_(name, value, clamped == 9 ? "above 9; 9 is used" : "below 1; 1 is used");
    if (npuprof_control_.level) npuprof_control_.level = clamped;
    else npuprof_env_refuse_(name, value,
                             "has no effect without NPUPROF_OUTPUT_PATH or NPUPROF_ARENA_PATH");
}

static void npuprof_env_read_categories_(const char *name, const char *value)
{
    if (npuprof_set_categories(value) == NPUPROF_OK)
        npuprof_text_copy_(npuprof_control_lists_.from, sizeof npuprof_control_lists_.from, name);
    else npuprof_env_refuse_(name, value, "give \"a,b\" or \"-a,-b\", not both, up to 255 bytes");
}

/* "stream" without a file that can be one waits for the sink of npuprof_init(). */
static void npuprof_env_read_when_full_(const char *name, const char *value)
{
    int *const policy = &npuprof_env_.when_full;
    for (int i = 0; i <= NPUPROF_STREAM; i++)
        if (strcmp(value, npuprof_env_policies_[i]) == 0) *policy = i;
    if (*policy < 0) npuprof_env_refuse_(name, value, "give keep-oldest, keep-newest or stream");
    else if (*policy != NPUPROF_STREAM || npuprof_path_is_stream_()) npuprof_control_set_policy_(*policy);
}

static void npuprof_env_read_populate_(const char *name, const char *value)
{
    npuprof_env_.populate = strcmp(value, "1") == 0 || strcmp(value, "on") == 0 || strcmp(value, "true") == 0;
    if (!npuprof_env_.populate) npuprof_env_refuse_(name, value, "give 1, on or true");
}

/* The context in which another program called this one. Why not in the table: the name is not ours, and "0"
   is no way to unset it. */
static void npuprof_env_read_traceparent_(void)
{
    npuprof_header_ *const h = npuprof_arena_.header;
    const char *const value = npuprof_os_env_("TRACEPARENT");
    if (!value || !*value) return;
    if (npuprof_env_is_traceparent_(value))
        npuprof_text_copy_(h->traceparent, sizeof h->traceparent, value);
    else npuprof_env_refuse_("TRACEPARENT", value, "not of the form 00-<32 hex>-<16 hex>-<2 hex>");
}

/* ---- All of them */

/* In the order in which they are read: those that start the recording come before NPUPROF_LEVEL, and the
   output path before NPUPROF_WHEN_FULL. */
static const struct npuprof_env_variable_ {
    char name[20];
    void (*read)(const char *name, const char *value);
} npuprof_env_variables_[] = {
    { "NPUPROF_ARENA_PATH", npuprof_env_read_arena_path_ },
    { "NPUPROF_OUTPUT_PATH", npuprof_env_read_output_path_ },
    { "NPUPROF_ARENA_BYTES", npuprof_env_read_arena_bytes_ },
    { "NPUPROF_LEVEL", npuprof_env_read_level_ },
    { "NPUPROF_CATEGORIES", npuprof_env_read_categories_ },
    { "NPUPROF_WHEN_FULL", npuprof_env_read_when_full_ },
    { "NPUPROF_POPULATE", npuprof_env_read_populate_ },
};
enum { NPUPROF_ENV_COUNT_ = sizeof npuprof_env_variables_ / sizeof *npuprof_env_variables_ };

/* ---- Capture control: the texts that conditions.h reads */

static const char npuprof_env_capture_[] = "NPUPROF_CAPTURE";

static void npuprof_env_use_condition_(const npuprof_capture_text_ *t, const char *name, const char *value)
{
    const char *const why = t->set(value);
    if (why) npuprof_env_refuse_(name, value, why);
    npuprof_env_.conditions |= t->group;
    if (t->is_looked_at) npuprof_env_.looked_at = name;
}

/* Those with a variable of their own, and then the parts of NPUPROF_CAPTURE. */
static void npuprof_env_read_conditions_(void)
{
    char part[1100];
    const npuprof_capture_text_ *const texts = npuprof_capture_texts_, *t;
    for (t = texts; t < texts + NPUPROF_CAPTURE_TEXTS_; t++) {
        const char *const value = npuprof_env_get_(t->variable);
        if (value) npuprof_env_use_condition_(t, t->variable, value);
    }
    const char *at = npuprof_env_get_(npuprof_env_capture_);
    for (size_t length; at && *at; at += length) {
        at += strspn(at, "; ");
        length = strcspn(at, ";");
        const size_t word = strcspn(at, ":;");
        npuprof_text_copy_(part, length < sizeof part ? length + 1 : sizeof part, at);
        for (t = texts; t < texts + NPUPROF_CAPTURE_TEXTS_; t++)
            if (word < length && npuprof_capture_is_(at, word, t->field)) break;
        if (t < texts + NPUPROF_CAPTURE_TEXTS_)
            npuprof_env_use_condition_(t, npuprof_env_capture_, part + word + 1);
        else if (length)
            npuprof_env_refuse_(npuprof_env_capture_, part, "give trigger:, schedule:, delay:, duration:, "
                                "signal: or control_path: and its text, with ; between");
    }
}

/* Is this a variable that npuprof reads, or none that looks like one? Names that begin with NPUPROF_TEST_ are
   left to the project's own tests. */
static bool npuprof_env_is_known_(const char *name, size_t length)
{
    if (strncmp(name, "NPUPROF_", 8) != 0 || strncmp(name, "NPUPROF_TEST_", 13) == 0) return true;
    for (int i = 0; i < NPUPROF_ENV_COUNT_; i++)
        if (npuprof_capture_is_(name, length, npuprof_env_variables_[i].name)) return true;
    for (int i = 0; i < NPUPROF_CAPTURE_TEXTS_; i++)
        if (npuprof_capture_is_(name, length, npuprof_capture_texts_[i].variable)) return true;
    return npuprof_capture_is_(name, length, npuprof_env_capture_);
}

/* Does any variable begin like those of npuprof? Why that is asked: looking for each by its name is most of
   what a process with none pays for its environment. */
static bool npuprof_env_has_any_(void)
{
    for (char **at = npuprof_os_environment_(); at && *at; at++)
        if (strncmp(*at, "NPUPROF_", 8) == 0) return true;
    return false;
}

/* Refuses what looks like a variable of npuprof and is none, such as a misspelt name. */
static void npuprof_env_refuse_unknown_(void)
{
    for (char **at = npuprof_os_environment_(); at && *at; at++) {
        const char *const equals = strchr(*at, '=');
        char name[80];
        if (!equals || npuprof_env_is_unset_(equals + 1)) continue;
        const size_t length = (size_t)(equals - *at);
        if (npuprof_env_is_known_(*at, length)) continue;
        npuprof_text_copy_(name, length < sizeof name ? length + 1 : sizeof name, *at);
        npuprof_env_refuse_(name, equals + 1, "there is no such variable");
    }
}

/* Reads all variables. Called once, behind npuprof_setup_arena_(). */
static void npuprof_env_read_(void)
{
    npuprof_env_.when_full = -1;
    const int count = npuprof_env_has_any_() ? NPUPROF_ENV_COUNT_ : 0;
    for (int i = 0; i < count; i++) {
        const char *const name = npuprof_env_variables_[i].name, *const value = npuprof_env_get_(name);
        if (value) npuprof_env_variables_[i].read(name, value);
    }
    if (count) {
        npuprof_env_read_conditions_();
        npuprof_env_refuse_unknown_();
    }
    npuprof_env_read_traceparent_();
}
