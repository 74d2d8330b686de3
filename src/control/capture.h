#pragma once   /* SPDX-License-Identifier: MIT */
#include "../public/api.h"
#include "../numbers/hash.h"
#include "../numbers/wide.h"
#include "../format/arena.h"
#include "../arena/state.h"
#include "../os/common.h"
#include "../clock/host.h"
#include "../arena/table.h"
#include "../record/enter.h"
#include "start.h"
#include "path.h"
#include "conditions.h"
#include "environment.h"

/* Capture control: what follows from the conditions of conditions.h. There are three actions: open the gate,
   close it, write a file. All conditions are looked at in one place, npuprof_capture_look_(), where a record
   or inference begins or ends (record/boundary.h) or the program calls npuprof_poll(). Elsewhere only two
   things happen: a signal handler moves the gate, which is a few atomic operations; and a new chunk closes it
   when its time is over. So neither writes a file, and neither calls the program.

   Words, all atomic, of npuprof_capture_now_ if nothing else is said:
     requests, looking   who wants a look adds to `requests` and takes `looking` by CAS. If another thread has
                         it, that one looks again: it compares `requests` before and behind its look
     ended               spans of the counted kind that have ended; anybody adds, and reads `phase` behind
                         that. Who moves `phase` reads `ended` behind it. All four in one order for all: so
                         one of the two sees that a phase is over
     slow                those slower than the trigger; anybody adds
     slow_wanted_ns      how long the slowest of them since the last look took; 0: there was none
     dump_wanted         1: somebody wants a file. Stored by anybody, taken by who looks
     quiet               1: a look would find nothing but the end of a counted phase. Who looks makes it 1 by
                         CAS, then reads the two above; who stores one of these then stores 0 with release:
                         so the CAS comes before that 0, or sees what was stored
     phase, from_count, from_ns, cycles, files, ...   written by who looks
     npuprof_control_.held   why the gate is closed, and the entry of that gap in the table. By CAS

   This part may not know how a file is written: write/capture.h hands down `write`. */

/* Why the gate is closed: by the schedule, by a command (signal, control file). */
enum { NPUPROF_HOLD_SCHEDULE_ = 1, NPUPROF_HOLD_COMMAND_ = 2, NPUPROF_HOLD_BITS_ = 3 };

enum {
    NPUPROF_CAPTURE_GAPS_MAX_ = 1000,      /* gaps that are marked in the table, which never shrinks */
    NPUPROF_CAPTURE_FILES_MAX_ = 1000,     /* files of a process */
    NPUPROF_CAPTURE_POLL_NS_ = 100000000   /* how often the control file is looked at */
};

static struct {
    uint32_t requests, looking, quiet;
    uint64_t ended, slow;
    uint64_t slow_wanted_ns, half_ticks;       /* half_ticks: half of the limit, about; 0: not known */
    uint32_t dump_wanted;
    uint32_t phase, gaps, complaints;
    uint64_t over_ticks;                       /* when a new chunk closed the gate */
    uint64_t from_count, cycles;
    int64_t from_ns, polled_ns, slow_at_ns;    /* slow_at_ns: of the last file of the trigger; 0: none */
    int64_t due_ns;                            /* when a file of the trigger is to be written; 0: none is */
    uint64_t due_took_ns;
    uint64_t files, slow_files, failed;
    npuprof_result failure;                    /* the first since npuprof_poll() */
    npuprof_os_seen_ seen;
} npuprof_capture_now_;

/* What write/ hands down. clear: empties the arena behind the file. last_ns: leaves out what began longer
   ago; 0: nothing. */
static struct {
    npuprof_result (*write)(bool clear, uint64_t last_ns);
} npuprof_capture_hooks_;

/* ---- The gate */

/* Begins the mark of a gap in the trace. NULL: it is not marked. */
static npuprof_pause_entry_ *npuprof_capture_begin_gap_(uint32_t *id)
{
    if (NPUPROF_LOAD_ACQUIRE_(&npuprof_record_setup_) != 2) return NULL;
    if (NPUPROF_ADD_(&npuprof_capture_now_.gaps, 1) >= NPUPROF_CAPTURE_GAPS_MAX_) return NULL;
    npuprof_pause_entry_ *const e =
        (npuprof_pause_entry_ *)(void *)npuprof_table_append_(sizeof *e, true, id);
    const uint32_t window = NPUPROF_LOAD_(&npuprof_control_.window);
    const bool over = window && NPUPROF_LOAD_ACQUIRE_(&npuprof_control_.window_over) == window;
    if (e) e->from = over ? NPUPROF_LOAD_(&npuprof_capture_now_.over_ticks) : npuprof_clock_in_order_();
    else npuprof_count_lost_(NPUPROF_LOST_NOTES, 1);
    return e;
}

/* Sets or clears a reason why the gate is closed. The trace has a mark of the gap, but not of those between
   the windows of a schedule. Async-signal safe. */
static void npuprof_capture_hold_(uint32_t reason, bool hold)
{
    const uint32_t bits = NPUPROF_HOLD_BITS_;
    const bool mark = reason == NPUPROF_HOLD_COMMAND_ || !npuprof_capture_set_.by_windows;
    uint32_t old = NPUPROF_LOAD_ACQUIRE_(&npuprof_control_.held), next, id = 0;
    npuprof_pause_entry_ *e = NULL;
    do {
        next = hold ? old | reason : old & ~reason;
        if (next == old) return;
        if (!old && mark && !e) e = npuprof_capture_begin_gap_(&id);
        if (!old) next |= id << 2;
        if (!(next & bits)) next = 0;
    } while (!NPUPROF_CAS_(&npuprof_control_.held, &old, next));
    if (!old && e) npuprof_table_finish_entry_(&e->head, NPUPROF_ENTRY_PAUSE);
    if (!next && old >> 2 && NPUPROF_LOAD_ACQUIRE_(&npuprof_record_setup_) == 2) {
        e = (npuprof_pause_entry_ *)npuprof_table_entry_at_(old >> 2);
        NPUPROF_STORE_(&e->to, npuprof_clock_in_order_());
    }
    npuprof_control_set_gate_();
}

/* Async-signal safe. */
static void npuprof_capture_do_(int action)
{
    const bool held = NPUPROF_LOAD_(&npuprof_control_.held) & NPUPROF_HOLD_COMMAND_;
    if (action == NPUPROF_DO_DUMP_) {
        NPUPROF_STORE_(&npuprof_capture_now_.dump_wanted, 1);
        NPUPROF_STORE_RELEASE_(&npuprof_capture_now_.quiet, 0);
    } else {
        npuprof_capture_hold_(NPUPROF_HOLD_COMMAND_,
                              action == NPUPROF_DO_STOP_ || (action == NPUPROF_DO_TOGGLE_ && !held));
    }
}

/* The handler of all signals that were taken. Why it writes no file: hardly anything may be called here. */
static void npuprof_capture_on_signal_(int number)
{
    for (uint32_t i = 0; i < npuprof_capture_set_.signal_count; i++)
        if (npuprof_capture_set_.signals[i].number == number)
            npuprof_capture_do_(npuprof_capture_set_.signals[i].action);
}

/* ---- Files */

/* Names what went wrong, in the metadata and on stderr, each cause once. */
static void npuprof_capture_complain_(uint32_t cause, const char *name, const char *value, const char *why)
{
    if (npuprof_capture_now_.complaints >> cause & 1) return;
    npuprof_capture_now_.complaints |= (uint32_t)1 << cause;
    npuprof_env_refuse_(name, value, why);
}

/* Writes a file. False: it failed, which is counted. */
static bool npuprof_capture_write_(bool clear, uint64_t last_ns)
{
    npuprof_result r = NPUPROF_ERR_NO_SPACE;
    const bool may = npuprof_capture_now_.files < NPUPROF_CAPTURE_FILES_MAX_;
    if (may) r = npuprof_capture_hooks_.write(clear, last_ns);
    if (r == NPUPROF_OK) {
        NPUPROF_ADD_(&npuprof_capture_now_.files, 1);
        return true;
    }
    NPUPROF_ADD_(&npuprof_capture_now_.failed, 1);
    if (npuprof_capture_now_.failure == NPUPROF_OK) npuprof_capture_now_.failure = r;
    npuprof_capture_complain_(0, "capture", npuprof_path_output_.pattern, may ? npuprof_result_string(r)
                              : "1000 files were written; this process writes no more");
    return false;
}

/* ---- The control file */

/* Does what a complete line says. */
static void npuprof_capture_obey_(const char *line, size_t length)
{
    char word[40];
    while (length && (line[length - 1] == ' ' || line[length - 1] == '\r')) length--;
    if (!length) return;
    const int action = npuprof_capture_action_(line, length);
    if (action >= 0) {
        npuprof_capture_do_(action);
        return;
    }
    npuprof_text_copy_(word, length < sizeof word ? length + 1 : sizeof word, line);
    for (char *p = word; *p; p++)
        if (*p < ' ' || *p > '~') *p = '?';
    npuprof_capture_complain_(1, "NPUPROF_CONTROL", word, "not a command; give start, stop, toggle or dump");
}

/* Looks at the control file, if that is due. A line counts when its end is there. */
static void npuprof_capture_poll_(int64_t now)
{
    char text[1024];
    npuprof_path_ path;
    size_t bytes = 0, done = 0;
    if (!npuprof_capture_set_.control_path[0]
        || now - npuprof_capture_now_.polled_ns < NPUPROF_CAPTURE_POLL_NS_) return;
    npuprof_capture_now_.polled_ns = now;
    if (!npuprof_path_expand_(npuprof_arena_.header, npuprof_capture_set_.control_path, 0, &path)) {
        npuprof_capture_complain_(2, "NPUPROF_CONTROL", npuprof_capture_set_.control_path,
                                  "the path is too long or holds an unknown % sequence");
        return;
    }
    const int error = npuprof_os_read_commands_(path.text, &npuprof_capture_now_.seen, text, sizeof text,
                                                &bytes);
    if (error == EAGAIN) return;
    if (error || bytes == sizeof text) {
        npuprof_capture_complain_(3, "NPUPROF_CONTROL", path.text, error == EACCES
                                  ? "it must be readable, and other users must not be able to write it"
                                  : error == EPERM ? "another user owns it" : error
                                  ? "not a regular file" : "longer than 1023 bytes; it is ignored");
        return;
    }
    for (size_t at = 0; at < bytes; at++) {
        if (text[at] != '\n') continue;
        npuprof_capture_obey_(text + done, at - done);
        done = at + 1;
    }
}

/* ---- The schedule */

static bool npuprof_capture_is_due_(int64_t now)
{
    const uint32_t phase = NPUPROF_LOAD_SEQ_(&npuprof_capture_now_.phase);
    if (!npuprof_capture_set_.counted || phase == NPUPROF_PHASE_DONE_) return false;
    const npuprof_capture_amount_ a = npuprof_capture_set_.phases[phase];
    const uint64_t from = NPUPROF_LOAD_(&npuprof_capture_now_.from_count);
    const int64_t passed = a.is_time ? now - NPUPROF_LOAD_(&npuprof_capture_now_.from_ns)
                                     : (int64_t)(NPUPROF_LOAD_SEQ_(&npuprof_capture_now_.ended) - from);
    return passed >= 0 && (uint64_t)passed >= a.n;     /* Why below 0: `now` may be older than the phase */
}

/* Goes to the next phase, which begins now. Behind the last one nothing is recorded. */
static void npuprof_capture_advance_(void)
{
    uint32_t next = npuprof_capture_now_.phase + 1;
    if (next == NPUPROF_PHASE_DONE_) {
        npuprof_capture_hold_(NPUPROF_HOLD_SCHEDULE_, true);
        npuprof_control_tell_();
        if (npuprof_capture_set_.by_windows) (void)npuprof_capture_write_(true, 0);
        npuprof_capture_now_.cycles++;
        if (npuprof_capture_now_.cycles != npuprof_capture_set_.repeat) next = NPUPROF_PHASE_WAIT_;
    }
    NPUPROF_STORE_(&npuprof_capture_now_.from_count, NPUPROF_LOAD_(&npuprof_capture_now_.ended));
    /* Why the clock only now: the file of the last window may have taken a while. */
    NPUPROF_STORE_(&npuprof_capture_now_.from_ns, npuprof_os_monotonic_ns_());
    if (next == NPUPROF_PHASE_ACTIVE_) NPUPROF_ADD_SEQ_(&npuprof_control_.window, 1);
    NPUPROF_STORE_SEQ_(&npuprof_capture_now_.phase, next);
    if (next == NPUPROF_PHASE_ACTIVE_
        || (next == NPUPROF_PHASE_WARM_UP_ && npuprof_capture_set_.phases[next].n))
        npuprof_capture_hold_(NPUPROF_HOLD_SCHEDULE_, false);
}

/* ---- The look */

/* A file for the trigger, unless one is due, the last one is too young or there were enough. took_ns: of the
   slow span, which is to be in the file, with what came before it. */
static void npuprof_capture_plan_slow_(int64_t now, uint64_t took_ns)
{
    const int64_t before = npuprof_capture_now_.slow_at_ns;
    if (npuprof_capture_now_.slow_files >= npuprof_capture_set_.max || npuprof_capture_now_.due_ns) return;
    if (before && (uint64_t)(now - before) < npuprof_capture_set_.every_ns) return;
    npuprof_capture_now_.slow_at_ns = now;
    npuprof_capture_now_.slow_files++;
    npuprof_capture_now_.due_took_ns = took_ns;
    NPUPROF_STORE_(&npuprof_capture_now_.due_ns, now + (int64_t)npuprof_capture_set_.after_ns);
}

/* Writes it when what is to come behind it has come; at_exit: nothing more will. */
static void npuprof_capture_write_slow_(int64_t now, bool at_exit)
{
    const int64_t due = npuprof_capture_now_.due_ns;
    if (!due || (now < due && !at_exit)) return;
    const uint64_t last_ns = npuprof_capture_set_.last_ns;
    const uint64_t since_ns = (uint64_t)(now - due) + npuprof_capture_set_.after_ns;
    NPUPROF_STORE_(&npuprof_capture_now_.due_ns, 0);
    (void)npuprof_capture_write_(false, last_ns ? last_ns + npuprof_capture_now_.due_took_ns + since_ns : 0);
}

static void npuprof_capture_look_for_slow_(int64_t now, bool at_exit)
{
    uint64_t took_ns = NPUPROF_LOAD_(&npuprof_capture_now_.slow_wanted_ns);
    while (took_ns && !NPUPROF_CAS_(&npuprof_capture_now_.slow_wanted_ns, &took_ns, 0)) {}
    if (took_ns) npuprof_capture_plan_slow_(now, took_ns);
    npuprof_capture_write_slow_(now, at_exit);
}

/* Is there no more to do until somebody wants it, or a phase has counted its spans? What depends on time is
   looked at each time. */
static void npuprof_capture_settle_(void)
{
    const bool timed = npuprof_capture_set_.control_path[0] || npuprof_capture_now_.due_ns ||
                       NPUPROF_LOAD_ACQUIRE_(&npuprof_control_.tell) ||
                       npuprof_capture_set_.phases[npuprof_capture_now_.phase % NPUPROF_PHASE_DONE_].is_time;
    uint32_t loud = 0;
    if (!timed) (void)NPUPROF_CAS_(&npuprof_capture_now_.quiet, &loud, 1);
    if (timed || NPUPROF_LOAD_(&npuprof_capture_now_.dump_wanted) ||
        NPUPROF_LOAD_(&npuprof_capture_now_.slow_wanted_ns))
        NPUPROF_STORE_(&npuprof_capture_now_.quiet, 0);
}

static void npuprof_capture_look_(void)
{
    const int64_t now = npuprof_os_monotonic_ns_();
    npuprof_capture_poll_(now);
    npuprof_capture_look_for_slow_(now, false);
    if (NPUPROF_LOAD_(&npuprof_capture_now_.dump_wanted)) {
        NPUPROF_STORE_(&npuprof_capture_now_.dump_wanted, 0);
        (void)npuprof_capture_write_(false, 0);
    }
    while (npuprof_capture_is_due_(npuprof_os_monotonic_ns_())) npuprof_capture_advance_();
    npuprof_control_tell_();
    npuprof_capture_settle_();
}

/* Looks, or has the thread look that is at it. */
static void npuprof_capture_request_(void)
{
    uint32_t seen, nobody = 0;
    NPUPROF_ADD_SEQ_(&npuprof_capture_now_.requests, 1);
    do {
        nobody = 0;
        if (!NPUPROF_CAS_(&npuprof_capture_now_.looking, &nobody, 1)) return;
        const int cancel_before = npuprof_os_hold_cancel_(), error_before = errno;
        seen = NPUPROF_LOAD_SEQ_(&npuprof_capture_now_.requests);
        npuprof_capture_look_();
        errno = error_before;
        npuprof_os_release_cancel_(cancel_before);
        NPUPROF_STORE_SEQ_(&npuprof_capture_now_.looking, 0);
    } while (seen != NPUPROF_LOAD_SEQ_(&npuprof_capture_now_.requests));
}

/* At normal exit: a file of the trigger that is still to be written. Nobody looks any more. */
static void npuprof_capture_end_(void)
{
    uint32_t nobody = 0;
    if (NPUPROF_CAS_(&npuprof_capture_now_.looking, &nobody, 1))
        npuprof_capture_look_for_slow_(npuprof_os_monotonic_ns_(), true);
}

/* ---- Where a look is taken: npuprof_record_hooks_ */

/* Would a look find anything to do? Why asked: `requests` is one word for all threads, and a look reads the
   clock. */
NPUPROF_HOT_ static inline bool npuprof_capture_is_wanted_(void)
{
    if (!NPUPROF_LOAD_(&npuprof_capture_now_.quiet)) return true;
    return npuprof_capture_set_.counted && npuprof_capture_is_due_(0);
}

NPUPROF_HOT_ static uint32_t npuprof_capture_begins_(uint32_t kind)
{
    if (!npuprof_record_is_ready_()) return NPUPROF_KIND_NONE;
    if (npuprof_capture_is_wanted_()) npuprof_capture_request_();
    if (!npuprof_is_recording()) return NPUPROF_KIND_NONE;
    const bool warm_up = NPUPROF_LOAD_(&npuprof_capture_now_.phase) == NPUPROF_PHASE_WARM_UP_;
    return warm_up && kind == npuprof_capture_set_.counted ? (uint32_t)NPUPROF_KIND_WARM_UP : kind;
}

/* Is a span that took so long slower than the trigger? The next look then writes a file.
   Why the ticks first: to know the rate of a clock takes most of a microsecond. A millisecond after the start
   it is known well enough to tell what took less than half of the limit. */
static void npuprof_capture_compare_(uint64_t ticks)
{
    const uint64_t limit_ns = npuprof_capture_set_.slow_ns, once = (uint64_t)1 << 32;
    const uint64_t rate = npuprof_ns_per_4g_ticks_(), ns = npuprof_scale_(ticks, rate, once);
    if (rate && npuprof_os_monotonic_ns_() - npuprof_arena_.header->first.monotonic_ns > 1000000)
        NPUPROF_STORE_(&npuprof_capture_now_.half_ticks, npuprof_scale_(limit_ns / 2, once, rate));
    if (limit_ns && ns <= limit_ns) return;
    const uint64_t took_ns = npuprof_max_(ns, 1);          /* 0 is none */
    NPUPROF_ADD_(&npuprof_capture_now_.slow, 1);
    uint64_t slowest = NPUPROF_LOAD_(&npuprof_capture_now_.slow_wanted_ns);
    while (took_ns > slowest && !NPUPROF_CAS_(&npuprof_capture_now_.slow_wanted_ns, &slowest, took_ns)) {}
    NPUPROF_STORE_RELEASE_(&npuprof_capture_now_.quiet, 0);
}

NPUPROF_HOT_ static void npuprof_capture_ends_(uint32_t given, uint64_t ticks)
{
    const uint32_t kind = given & NPUPROF_RECORD_KIND_, slow_kind = npuprof_capture_set_.slow_kind;
    const bool watched = given > NPUPROF_RECORD_KIND_;
    if (!npuprof_record_is_ready_()) return;
    if (kind == npuprof_capture_set_.counted || kind == NPUPROF_KIND_WARM_UP)
        NPUPROF_ADD_SEQ_(&npuprof_capture_now_.ended, 1);
    if (ticks != UINT64_MAX && (watched || kind == slow_kind) &&
        ticks >= NPUPROF_LOAD_(&npuprof_capture_now_.half_ticks))
        npuprof_capture_compare_(ticks);
    if (npuprof_capture_is_wanted_()) npuprof_capture_request_();
}

/* Closes the gate when the active phase is over; the next look finds that, too, and goes on from there.
   Why by the number of the phase: another thread may look meanwhile, and the next one has begun. */
static void npuprof_capture_moved_(void)
{
    const uint32_t window = NPUPROF_LOAD_SEQ_(&npuprof_control_.window);
    uint32_t over = NPUPROF_LOAD_(&npuprof_control_.window_over);
    if (NPUPROF_LOAD_ACQUIRE_(&npuprof_capture_now_.phase) != NPUPROF_PHASE_ACTIVE_) return;
    if (!npuprof_capture_set_.phases[NPUPROF_PHASE_ACTIVE_].is_time) return;
    if (!npuprof_capture_is_due_(npuprof_os_monotonic_ns_())) return;
    NPUPROF_STORE_(&npuprof_capture_now_.over_ticks, npuprof_clock_in_order_());
    while ((int32_t)(window - over) > 0)
        if (NPUPROF_CAS_(&npuprof_control_.window_over, &over, window)) npuprof_control_set_gate_();
}

NPUPROF_API_ npuprof_result npuprof_poll(void)
{
    if (!npuprof_record_is_ready_()) return NPUPROF_ERR_ARENA_SIZE;
    if (!NPUPROF_LOAD_(&npuprof_control_.armed)) return NPUPROF_OK;
    npuprof_capture_request_();
    const npuprof_result r = npuprof_capture_now_.failure;
    npuprof_capture_now_.failure = NPUPROF_OK;
    return r;
}

/* ---- The beginning */

/* Tells the record which call sites the trigger is about. Those known before are looked up again. */
static void npuprof_capture_watch_names_(void)
{
    const uint32_t kind = npuprof_capture_set_.slow_kind;
    if (kind < NPUPROF_WATCH_SPAN_) return;
    npuprof_record_watch_.is_category = kind == NPUPROF_WATCH_CATEGORY_;
    npuprof_record_watch_.spans = kind != NPUPROF_WATCH_INSTANT_;
    npuprof_record_watch_.instants = kind != NPUPROF_WATCH_SPAN_;
    NPUPROF_STORE_RELEASE_(&npuprof_record_watch_.text,
                           npuprof_table_intern_string_(npuprof_capture_set_.slow_name));
    npuprof_control_advance_generation_();
}

/* Begins at the first phase, with nothing counted. held: by a command. Also in the child of a fork: what a
   command said of the parent holds for it, or one file for both would toggle them apart. */
static void npuprof_capture_start_over_(uint32_t held)
{
    const int64_t polled = npuprof_capture_now_.polled_ns;
    const npuprof_os_seen_ seen = npuprof_capture_now_.seen;
    const uint32_t complaints = npuprof_capture_now_.complaints;
    memset(&npuprof_capture_now_, 0, sizeof npuprof_capture_now_);
    npuprof_capture_now_.polled_ns = polled;
    npuprof_capture_now_.seen = seen;
    npuprof_capture_now_.complaints = complaints;
    npuprof_capture_now_.from_ns = npuprof_os_monotonic_ns_();
    if (npuprof_capture_set_.counted) held |= NPUPROF_HOLD_SCHEDULE_;
    npuprof_control_.held = held;
    npuprof_capture_watch_names_();
    while (npuprof_capture_set_.counted && !npuprof_capture_set_.phases[npuprof_capture_now_.phase].n)
        npuprof_capture_advance_();
}

/* Takes the signals that are free; the others are no conditions. NULL, or a sentence about those. */
static const char *npuprof_capture_take_signals_(void)
{
    const char *why = NULL;
    uint32_t count = 0;
    for (uint32_t i = 0; i < npuprof_capture_set_.signal_count; i++) {
        npuprof_capture_set_.signals[count] = npuprof_capture_set_.signals[i];
        if (npuprof_os_take_signal_(npuprof_capture_set_.signals[i].number, npuprof_capture_on_signal_) == 0)
            count++;
        else why = "the program has a handler for this signal, or ignores it; it was left alone";
    }
    npuprof_capture_set_.signal_count = count;
    return why;
}

/* Makes the conditions count. Called at the end of the set-up, and by npuprof_init() if it brought some.
   Returns NULL, or a sentence about the signals. */
static const char *npuprof_capture_arm_(void)
{
    uint32_t (*const begins)(uint32_t) = npuprof_capture_begins_;
    const char *const why = npuprof_capture_take_signals_();
    if (!npuprof_capture_is_set_()) return why;
    /* A stop before npuprof_init() holds behind it. */
    uint32_t held = npuprof_control_.armed ? NPUPROF_LOAD_(&npuprof_control_.held) : 0;
    held = held & NPUPROF_HOLD_COMMAND_ ? held & ~(uint32_t)NPUPROF_HOLD_SCHEDULE_ : 0;
    for (uint32_t i = 0; i < npuprof_capture_set_.signal_count; i++) {
        const int action = npuprof_capture_set_.signals[i].action;
        if (action == NPUPROF_DO_START_ || action == NPUPROF_DO_TOGGLE_) held |= NPUPROF_HOLD_COMMAND_;
    }
    npuprof_record_hooks_.ends = npuprof_capture_ends_;       /* a watched span may end at once */
    npuprof_capture_start_over_(held);
    npuprof_capture_poll_(npuprof_os_monotonic_ns_());
    npuprof_capture_now_.dump_wanted = 0;          /* an old command; nothing is recorded yet */
    npuprof_record_hooks_.moved = npuprof_capture_moved_;
    NPUPROF_STORE_SEQ_(&npuprof_control_.armed, 1);
    NPUPROF_STORE_RELEASE_(&npuprof_record_hooks_.begins, begins);
    npuprof_control_set_gate_();
    return why;
}

/* At exit: names a variable whose conditions nothing has looked at. */
static void npuprof_capture_report_unseen_(void)
{
    const char *const name = npuprof_env_.looked_at, *const value = name ? npuprof_env_get_(name) : NULL;
    if (!NPUPROF_LOAD_(&npuprof_control_.armed) || NPUPROF_LOAD_(&npuprof_capture_now_.requests)) return;
    if (value)
        npuprof_env_refuse_(name, value, "never looked at: no PROF_RECORD, PROF_INFERENCE, npuprof_poll() or "
                            "what a trigger names came");
}

/* Called when the library is unloaded. */
static void npuprof_capture_leave_signals_(void)
{
    for (uint32_t i = 0; i < npuprof_capture_set_.signal_count; i++)
        npuprof_os_leave_signal_(npuprof_capture_set_.signals[i].number, npuprof_capture_on_signal_);
}
