/* npuprof_read(): spans and clock anchors keep their bounds on the clock of npuprof_now_ns(), also where the
   system's clock is slow to read
   SPDX-License-Identifier: MIT */
#define NPUPROF_IMPLEMENTATION
#include "npuprof.h"
#include "npuprof_npu.h"
#include "recorded.h"
#include "at_once.h"

enum { LATE_TICKS = 1000000, ROUNDS = 20 };

static int64_t to_now_ns;                  /* of npuprof_now_ns(), after the monotonic clock */
static uint64_t worst_ns;
static unsigned hosts, devices, anchors;
static struct { int64_t before, behind; } truth[ROUNDS];    /* of npuprof_now_ns(), around each host span */

static uint64_t monotonic_ticks(void *user)
{
    (void)user;
    return (uint64_t)npuprof_os_monotonic_ns_();
}

static bool holds(uint64_t ticks, int64_t ns, uint64_t error_ns)
{
    const int64_t off = ns - ((int64_t)ticks + to_now_ns);
    const uint64_t size = (uint64_t)(off < 0 ? -off : off);
    if (size > worst_ns) worst_ns = size;
    return size <= error_ns;
}

static bool take(void *user, const npuprof_read_span *span)
{
    (void)user;
    if (span->device) {
        devices++;
        CHECK(holds(span->start_ticks, span->start_ns, span->error_ns));
        CHECK(holds(span->end_ticks, span->end_ns, span->error_ns));
    } else if (span->arg_count) {
        hosts++;
        const int64_t error_ns = (int64_t)span->error_ns, round = span->args[0].value.i;
        CHECK(span->start_ns + error_ns >= truth[round].before);
        CHECK(span->end_ns - error_ns <= truth[round].behind);
    }
    return true;
}

static bool take_anchor(void *user, const npuprof_read_anchor *anchor)
{
    (void)user;
    const int64_t now_ns = (int64_t)anchor->ticks + to_now_ns;
    CHECK(anchor->before_ns <= now_ns && now_ns <= anchor->after_ns);
    anchors++;
    return true;
}

/* by: the first anchor's ticks are so much too early or late, as far as its error says. */
static void read_beside_truth(int64_t by)
{
    npuprof_cursor cursor;
    npuprof_npu npu;
    uint64_t place = 0;
    const npuprof_npu_desc desc = { .name = "monotonic", .read_ticks = monotonic_ticks, .pe_count = 1,
                                    .counter = { .bits = 64, .hz = 1000000000 } };
    memset(&cursor, 0, sizeof cursor);
    npuprof_start(1);
    npuprof_host_anchor_ *const first = &npuprof_arena_.header->first;
    to_now_ns = first->unix_ns - first->monotonic_ns;
    first->ticks += (uint64_t)by;
    first->error_ticks += LATE_TICKS;
    CHECK_INT(npuprof_npu_open(&npu, &desc), NPUPROF_OK);
    for (int round = 0; round < ROUNDS; round++) {
        const uint64_t from = monotonic_ticks(NULL);
        truth[round].before = npuprof_now_ns();
        PROF_BEGIN("c", "host");
        usleep(200);
        PROF_RESULT(PROF_INT("round", round));
        PROF_END();
        truth[round].behind = npuprof_now_ns();
        npuprof_npu_span(&npu, 0, "job", "NPU", from, monotonic_ticks(NULL), PROF_NO_ARGS);
        CHECK_INT(npuprof_read(&cursor, NPUPROF_READ_SPANS, take, NULL, NULL), NPUPROF_OK);
    }
    CHECK_INT(npuprof_read_anchors(1, &place, take_anchor, NULL), NPUPROF_OK);
    CHECK_UINT(hosts, ROUNDS);
    CHECK_UINT(devices, ROUNDS);
    CHECK(anchors >= 2);
    CHECK(worst_ns > 10000);               /* else it would hold without a bound */
    npuprof_npu_close(&npu);
    npuprof_read_end(&cursor);
}

static void first_anchor_early(void) { read_beside_truth(-LATE_TICKS); }
static void first_anchor_late(void) { read_beside_truth(LATE_TICKS); }

CHECK_MAIN(CASE(first_anchor_early), CASE(first_anchor_late))
