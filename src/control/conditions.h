#pragma once   /* SPDX-License-Identifier: MIT */
#include "../public/types.h"
#include "../numbers/text.h"
#include "../numbers/wide.h"
#include "../arena/state.h"
#include "../os/common.h"

#include <string.h>

/* The conditions of capture control, as texts and as settings: a schedule of inferences or seconds, a
   trigger, signals, a control file. The texts are those of the environment and of npuprof_capture. Each
   function reads one of them. It returns NULL, or a sentence that says what to give instead; then nothing has
   changed.

   Data: npuprof_capture_set_, written when the library is set up and by npuprof_init(), and plain: who looks
   at it has loaded npuprof_record_hooks_.begins or installed the signal handler, behind all writes.

   This part may not know what follows from a condition: that is capture.h. */

/* A number of spans, or ns. */
typedef struct npuprof_capture_amount_ {
    uint64_t n;
    bool is_time;
} npuprof_capture_amount_;

/* The phases of a schedule. They follow each other; one of length 0 is skipped. */
enum { NPUPROF_PHASE_WAIT_, NPUPROF_PHASE_WARM_UP_, NPUPROF_PHASE_ACTIVE_, NPUPROF_PHASE_DONE_ };

enum { NPUPROF_DO_START_, NPUPROF_DO_STOP_, NPUPROF_DO_TOGGLE_, NPUPROF_DO_DUMP_, NPUPROF_DO_COUNT_ };
static const char npuprof_capture_actions_[NPUPROF_DO_COUNT_][8] = { "start", "stop", "toggle", "dump" };

enum { NPUPROF_SIGNALS_MAX_ = 4 };

/* Triggers by a name, in slow_kind: no kinds of events. */
enum { NPUPROF_WATCH_SPAN_ = 0x101, NPUPROF_WATCH_INSTANT_, NPUPROF_WATCH_CATEGORY_, NPUPROF_WATCH_END_ };

typedef struct npuprof_capture_settings_ {
    /* Schedule */
    npuprof_capture_amount_ phases[NPUPROF_PHASE_DONE_];   /* ACTIVE of UINT64_MAX: for ever */
    uint64_t repeat;               /* 0: for ever */
    uint32_t counted;              /* NPUPROF_KIND_INFERENCE or _RECORD; 0: there is no schedule */
    bool by_windows;               /* each active phase is written into a file of its own */
    /* Trigger */
    uint32_t slow_kind;            /* NPUPROF_KIND_INFERENCE, _RECORD, or a NPUPROF_WATCH_*; 0: no trigger */
    char slow_name[64];            /* what is watched */
    uint64_t slow_ns, last_ns, after_ns, every_ns, max;
    /* Commands */
    struct { int number, action; } signals[NPUPROF_SIGNALS_MAX_];
    uint32_t signal_count;
    char control_path[1024];       /* a pattern; empty: there is none */
} npuprof_capture_settings_;

static npuprof_capture_settings_ npuprof_capture_set_;

/* ---- Words and numbers */

/* Is the text, of that length, this word? */
static bool npuprof_capture_is_(const char *text, size_t length, const char *word)
{
    return strlen(word) == length && memcmp(text, word, length) == 0;
}

static bool npuprof_capture_is_digit_(char c) { return c >= '0' && c <= '9'; }

/* Reads 20, or a time as 1.5s, with ns, us, ms, s, min or h. seconds: a number without a unit is one of
   seconds. Why not strtod(): the decimal point would be that of the program's locale. */
static bool npuprof_capture_read_amount_(const char *text, size_t length, bool seconds,
                                         npuprof_capture_amount_ *out)
{
    static const struct { char name[8]; uint64_t ns; } units[] = {
        { "s", 1000000000u }, { "ms", 1000000u }, { "us", 1000u }, { "ns", 1u },
        { "min", UINT64_C(60000000000) }, { "h", UINT64_C(3600000000000) } };
    uint64_t whole = 0, part = 0, scale = 1;
    size_t n = 0;
    for (; n < length && npuprof_capture_is_digit_(text[n]); n++) {
        if (whole > UINT64_C(100000000000)) return false;
        whole = whole * 10 + (uint64_t)(text[n] - '0');
    }
    if (n == 0) return false;
    if (n < length && text[n] == '.') {
        for (n++; n < length && npuprof_capture_is_digit_(text[n]); n++, scale *= 10) {
            if (scale > 100000000) return false;
            part = part * 10 + (uint64_t)(text[n] - '0');
        }
        if (scale == 1) return false;
    }
    out->is_time = n < length || seconds;
    out->n = whole;
    if (!out->is_time) return scale == 1;
    for (size_t i = 0; i < sizeof units / sizeof *units; i++) {
        if (n < length ? !npuprof_capture_is_(text + n, length - n, units[i].name) : i > 0) continue;
        if (whole > (UINT64_MAX >> 2) / units[i].ns) return false;
        out->n = whole * units[i].ns + npuprof_scale_(part, units[i].ns, scale);
        return true;
    }
    return false;
}

/* The kind of span that a word names; 0: none. */
static uint32_t npuprof_capture_kind_(const char *text, size_t length)
{
    if (npuprof_capture_is_(text, length, "inference")) return NPUPROF_KIND_INFERENCE;
    return npuprof_capture_is_(text, length, "record") ? NPUPROF_KIND_RECORD : 0;
}

/* ---- The texts */

/* Reads key=value with one of these keys, each once. Returns its number, and where the value begins; or
   -1. */
static int npuprof_capture_read_key_(const char *item, size_t length, const char (*keys)[8], int count,
                                     unsigned *seen, size_t *value)
{
    const char *const equals = (const char *)memchr(item, '=', length);
    const size_t name = equals ? (size_t)(equals - item) : 0;
    for (int i = 0; equals && i < count; i++) {
        if (!npuprof_capture_is_(item, name, keys[i]) || (*seen >> i & 1)) continue;
        *seen |= 1u << i;
        *value = name + 1;
        return i;
    }
    return -1;
}

static const char *npuprof_capture_set_schedule_(const char *text)
{
    static const char form[] = "give wait=10,warmup=5,active=20,repeat=3: numbers of inferences, or times "
        "as 10s; active must be there; by=record counts records";
    static const char keys[][8] = { "wait", "warmup", "active", "repeat", "by" };
    npuprof_capture_amount_ amounts[4];
    uint32_t kind = NPUPROF_KIND_INFERENCE;
    unsigned seen = 0;
    const char *item;
    size_t length, value;
    memset(amounts, 0, sizeof amounts);
    while (npuprof_text_next_item_(&text, &item, &length)) {
        const int key = npuprof_capture_read_key_(item, length, keys, 5, &seen, &value);
        if (key < 0) return form;
        item += value;
        length -= value;
        if (key == 4) kind = npuprof_capture_kind_(item, length);
        else if (!npuprof_capture_read_amount_(item, length, false, &amounts[key])) return form;
    }
    if (!amounts[NPUPROF_PHASE_ACTIVE_].n || amounts[3].is_time || !kind) return form;
    memcpy(npuprof_capture_set_.phases, amounts, sizeof npuprof_capture_set_.phases);
    npuprof_capture_set_.repeat = amounts[3].n;
    npuprof_capture_set_.counted = kind;
    npuprof_capture_set_.by_windows = true;
    return NULL;
}

/* A delay is a schedule that waits once; a duration limits its one active phase. */
static const char *npuprof_capture_set_time_(const char *text, int phase)
{
    npuprof_capture_amount_ amount;
    if (npuprof_capture_set_.by_windows) return "there is a schedule; give wait= and active= in it";
    if (!npuprof_capture_read_amount_(text, strlen(text), true, &amount)
        || (!amount.n && phase == NPUPROF_PHASE_ACTIVE_))
        return "give a time, as 1.5 (seconds), 500ms or 10min";
    if (!npuprof_capture_set_.counted) npuprof_capture_set_.phases[NPUPROF_PHASE_ACTIVE_].n = UINT64_MAX;
    npuprof_capture_set_.phases[phase] = amount;
    npuprof_capture_set_.repeat = 1;
    npuprof_capture_set_.counted = NPUPROF_KIND_INFERENCE;
    return NULL;
}

static const char *npuprof_capture_set_delay_(const char *text)
{
    return npuprof_capture_set_time_(text, NPUPROF_PHASE_WAIT_);
}

static const char *npuprof_capture_set_duration_(const char *text)
{
    return npuprof_capture_set_time_(text, NPUPROF_PHASE_ACTIVE_);
}

/* The trigger that a word and a name say, as span:decode; 0: none. *name: where that begins. */
static uint32_t npuprof_capture_watch_(const char *text, size_t length, size_t *name)
{
    static const char words[][10] = { "span:", "instant:", "category:" };
    for (uint32_t i = 0; i < 3; i++) {
        *name = strlen(words[i]);
        if (length > *name && length - *name < sizeof npuprof_capture_set_.slow_name
            && memcmp(text, words[i], *name) == 0) return NPUPROF_WATCH_SPAN_ + i;
    }
    *name = 0;
    return npuprof_capture_kind_(text, length);
}

static const char *npuprof_capture_set_trigger_(const char *text)
{
    static const char form[] = "give inference>20ms, record>20ms, span:NAME>20ms, instant:NAME or "
        "category:NAME, then ,before=2s,after=3s,every=10s,max=100";
    static const char keys[][8] = { "last", "every", "max", "after", "before" };
    npuprof_capture_amount_ over = { 0, true }, amounts[5] = { { 0, true }, { UINT64_C(10000000000), true },
        { 100, false }, { 0, true }, { 0, true } };
    unsigned seen = 0;
    const char *item;
    size_t length, value;
    if (!npuprof_text_next_item_(&text, &item, &length)) return form;
    /* Why the last one, and not at the end: names of C++ have such signs, too. */
    size_t end = length, name;
    for (size_t n = 0; n + 1 < length; n++)
        if (item[n] == '>' && npuprof_capture_is_digit_(item[n + 1])) end = n;
    const uint32_t kind = npuprof_capture_watch_(item, end, &name);
    const bool has_limit = end < length;
    const char *const what = item + name;
    if (!kind || (has_limit ? kind == NPUPROF_WATCH_INSTANT_ : kind < NPUPROF_WATCH_SPAN_)) return form;
    if (has_limit && !npuprof_capture_read_amount_(item + end + 1, length - end - 1, false, &over))
        return form;
    while (npuprof_text_next_item_(&text, &item, &length)) {
        const int key = npuprof_capture_read_key_(item, length, keys, 5, &seen, &value);
        if (key < 0 || !npuprof_capture_read_amount_(item + value, length - value, false, &amounts[key])
            || amounts[key].is_time == (key == 2)) return form;
    }
    if (!over.is_time) return form;
    npuprof_capture_set_.slow_kind = kind;
    if (name) npuprof_text_copy_(npuprof_capture_set_.slow_name, end - name + 1, what);
    npuprof_capture_set_.slow_ns = over.n;
    npuprof_capture_set_.last_ns = amounts[0].n + amounts[4].n;
    npuprof_capture_set_.after_ns = amounts[3].n;
    npuprof_capture_set_.every_ns = amounts[1].n;
    npuprof_capture_set_.max = amounts[2].n;
    return NULL;
}

/* The action of that name; -1: there is none. */
static int npuprof_capture_action_(const char *text, size_t length)
{
    for (int i = 0; i < NPUPROF_DO_COUNT_; i++)
        if (npuprof_capture_is_(text, length, npuprof_capture_actions_[i])) return i;
    return -1;
}

static const char *npuprof_capture_set_signal_(const char *text)
{
    static const char form[] = "give HUP, USR1, USR2 or RTMIN+3, then :start, :stop, :toggle or :dump "
        "(default); commas between, four at most, each signal once";
    int numbers[NPUPROF_SIGNALS_MAX_], actions[NPUPROF_SIGNALS_MAX_];
    uint32_t count = 0;
    const char *item;
    size_t length;
    while (npuprof_text_next_item_(&text, &item, &length)) {
        const char *const colon = (const char *)memchr(item, ':', length);
        const size_t name = colon ? (size_t)(colon - item) : length;
        const int number = npuprof_os_signal_number_(item, name);
        if (number == 0) return "this system has no such signals";
        const int action = colon ? npuprof_capture_action_(colon + 1, length - name - 1) : NPUPROF_DO_DUMP_;
        if (number < 0 || action < 0 || count == NPUPROF_SIGNALS_MAX_) return form;
        for (uint32_t i = 0; i < count; i++)
            if (numbers[i] == number) return form;
        numbers[count] = number;
        actions[count++] = action;
    }
    if (!count) return form;
    for (uint32_t i = 0; i < count; i++) {
        npuprof_capture_set_.signals[i].number = numbers[i];
        npuprof_capture_set_.signals[i].action = actions[i];
    }
    npuprof_capture_set_.signal_count = count;
    return NULL;
}

static const char *npuprof_capture_set_control_(const char *text)
{
    if (!npuprof_os_has_commands_()) return "this system has no control files";
    if (strlen(text) >= sizeof npuprof_capture_set_.control_path) return "longer than 1023 bytes";
    npuprof_text_copy_(npuprof_capture_set_.control_path, sizeof npuprof_capture_set_.control_path, text);
    return NULL;
}

/* All of them, in the order in which they are read: the schedule before what it excludes. Of the same group,
   npuprof_init() leaves alone what the environment gave. */
typedef struct npuprof_capture_text_ {
    char variable[17], field[13];
    uint8_t group;
    bool is_looked_at;             /* nothing happens unless the program comes to a look */
    const char *(*set)(const char *text);
} npuprof_capture_text_;
enum { NPUPROF_CAPTURE_TEXTS_ = 6 };
static const npuprof_capture_text_ npuprof_capture_texts_[NPUPROF_CAPTURE_TEXTS_] = {
    { "NPUPROF_SCHEDULE", "schedule", 1, true, npuprof_capture_set_schedule_ },
    { "NPUPROF_DELAY", "delay", 1, true, npuprof_capture_set_delay_ },
    { "NPUPROF_DURATION", "duration", 1, false, npuprof_capture_set_duration_ },
    { "NPUPROF_TRIGGER", "trigger", 2, true, npuprof_capture_set_trigger_ },
    { "NPUPROF_CONTROL", "control_path", 4, true, npuprof_capture_set_control_ },
    { "NPUPROF_SIGNAL", "signal", 8, false, npuprof_capture_set_signal_ } };

/* Is there any condition? */
static bool npuprof_capture_is_set_(void)
{
    return npuprof_capture_set_.counted || npuprof_capture_set_.slow_kind || npuprof_capture_set_.signal_count
        || npuprof_capture_set_.control_path[0];
}
