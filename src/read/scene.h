#pragma once   /* SPDX-License-Identifier: MIT */
#include "../public/types.h"
#include "../numbers/text.h"
#include "../format/arena.h"
#include "image.h"
#include "args.h"
#include "time.h"
#include "walk.h"
#include "place.h"
#include "lanes.h"

/* The scene: what an image shows, decided once for every output that draws it. It has tracks, and lanes of
   them; spans, instants, counters, pools; and what the library itself says of an event, its facts. An output
   is a set of functions that spell these (npuprof_scene_output_).

   The parts: scene_facts.h (facts), scene_thread.h (threads), scene_placed.h (tracks that are no threads),
   scene_flows.h (arrows of flows). Times are ns after the beginning of the trace. Data: npuprof_scene_, the
   caller's, who holds the lock of the readers. */

/* Keys of facts. A user's key that is one of those on the event is written as "user.<key>"; so is one that
   only the library says (NPUPROF_FACTS_OURS_). */
#define NPUPROF_FACTS_(X) \
    X(KIND, "kind") X(TRACE_ID, "trace_id") X(SPAN_ID, "span_id") X(UNFINISHED, "unfinished") \
    X(STAMP, "stamp") X(PE_INDEX, "pe_index") X(START_TICKS, "start_ticks") X(END_TICKS, "end_ticks") \
    X(ERROR_NS, "error_ns") X(CAUSALITY, "causality") X(WARM_UP, "warm_up") X(POOL, "pool") X(TAG, "tag") \
    X(CHANGE, "change") X(OUT_OF_RANGE, "stamps_out_of_range") X(REVERSED, "end_before_start")
#define NPUPROF_FACT_ENUM_(name, text) NPUPROF_FACT_##name##_,
enum { NPUPROF_FACTS_(NPUPROF_FACT_ENUM_) NPUPROF_FACT_COUNT_ };
#define NPUPROF_FACT_TEXT_(name, text) "user." text,
static const char *const npuprof_fact_user_keys_[] = { NPUPROF_FACTS_(NPUPROF_FACT_TEXT_) };
enum { NPUPROF_FACT_USER_ = 5,             /* what is before the key */
       NPUPROF_FACTS_OURS_ = 1 << NPUPROF_FACT_UNFINISHED_ | 1 << NPUPROF_FACT_STAMP_ |
                             1 << NPUPROF_FACT_CAUSALITY_ | 1 << NPUPROF_FACT_WARM_UP_ |
                             1 << NPUPROF_FACT_OUT_OF_RANGE_ | 1 << NPUPROF_FACT_REVERSED_ };

enum { NPUPROF_FACTS_MAX_ = 9 };           /* on one event */

/* An event as it is shown. */
typedef struct npuprof_scene_event_ {
    const npuprof_event_ *ev;              /* with the user's arguments and the call site */
    uint32_t name, category;               /* ids in the image's table, 0: none; or words of the scene: */
    const char *own_name, *own_category;   /* NULL: the table's */
    int64_t start, end;
    uint64_t track;                        /* the output's number of it */
    bool derived;                          /* it follows from another event, which is shown, too */
    bool submitted;                        /* an arrow comes from the span that submitted it */
    bool of_process;                       /* an instant of the whole process */
    uint32_t keys;                         /* a bit for each fact's key */
    uint32_t fact_count;
    npuprof_value_ facts[NPUPROF_FACTS_MAX_];        /* key: NPUPROF_FACT_* */
    char trace_id[33], span_id[17];        /* of facts */
} npuprof_scene_event_;

/* The track of a thread, and that of lanes beside it. */
typedef struct npuprof_scene_thread_track_ {
    uint32_t tid, native_id, owners;       /* native_id: the system's number; 0: unknown */
    uint32_t name;                         /* id of its name; 0: it is `own` */
    char own[24];
} npuprof_scene_thread_track_;

typedef struct npuprof_scene_ npuprof_scene_;

/* An output. `user` of the scene is its own. A track's number is what the output gives it, and never 0. */
typedef struct npuprof_scene_output_ {
    /* Begins the track of a thread, before its events are walked; or a further lane of it. */
    uint64_t (*thread)(npuprof_scene_ *s, const npuprof_scene_thread_track_ *t);
    uint64_t (*overlap)(npuprof_scene_ *s, const npuprof_scene_thread_track_ *t);
    /* Begins a lane of a track that is no thread, by the first event in it. */
    uint64_t (*lane)(npuprof_scene_ *s, const npuprof_event_ *ev, uint32_t lane);
    /* Takes from s->walk as many plain spans as it can write at once, in lane 0. May take none. */
    void (*plain)(npuprof_scene_ *s);
    /* Writes a placed span of the track at hand at once, and puts it into its lane, if it can. False: nothing
       happened. May be NULL. */
    bool (*placed)(npuprof_scene_ *s, const npuprof_placed_ *p);
    /* A span. Returns a mark of it, for its end. */
    uint32_t (*span)(npuprof_scene_ *s, const npuprof_scene_event_ *e);
    /* The end of a span, when all that is inside of it was shown. NULL: the output needs none. */
    void (*end)(npuprof_scene_ *s, uint64_t track, int64_t ns, uint32_t mark);
    void (*instant)(npuprof_scene_ *s, const npuprof_scene_event_ *e);
    /* A value of a counter, of a kind of counter. */
    void (*counter)(npuprof_scene_ *s, const npuprof_scene_event_ *e, uint32_t kind, uint64_t bits);
    /* The state of a memory pool. Its name is the event's category. */
    void (*pool)(npuprof_scene_ *s, const npuprof_scene_event_ *e);
    /* An arrow between spans of two threads. */
    void (*arrow)(npuprof_scene_ *s, uint32_t from_tid, int64_t from_ns, uint32_t to_tid, int64_t to_ns);
    bool counters_in_lanes;                /* a device's counter is on the device's track, not on its own */
} npuprof_scene_output_;

struct npuprof_scene_ {
    const npuprof_image_ *image;
    npuprof_walk_ *walk;                   /* through the thread at hand */
    npuprof_lane_set_ *lanes;                 /* of the track at hand */
    const npuprof_scene_output_ *output;
    void *user;
    npuprof_scene_thread_track_ thread;          /* the one at hand */
    uint64_t placed;                       /* npuprof_placed_.track of the track at hand */
    uint64_t skipped_values;               /* of counters: not finite */
    int error;                             /* 0 or an errno value: memory was refused */
};
