/* traps.h - what the tests of traps share. After all.h and trace.h.
   SPDX-License-Identifier: MIT */
#ifndef TRAPS_H
#define TRAPS_H

CHECK_UNUSED_ static void open_model(const play_model *model)
{
    const npuprof_result result = play_open(model);
    if (result != NPUPROF_OK) check_failed_(__FILE__, __LINE__, "%s", npuprof_result_string(result));
    CHECK_STOP(result == NPUPROF_OK);
}

CHECK_UNUSED_ static void jobs_on(unsigned lane, unsigned count)
{
    for (unsigned i = 0; i < count; i++) {
        const uint32_t serial = play.submitted;
        const bool counts = play_is->number == progress_number;
        play_one(lane, counts ? progress_number(serial, lane) : 1000 + serial, 3000);
    }
}

CHECK_UNUSED_ static json_node *written(void)
{
    json_node *t = trace_load(play_close());
    CHECK_STOP(t != NULL);
    return t;
}

#endif /* TRAPS_H */
