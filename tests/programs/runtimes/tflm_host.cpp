/* tflm_host.cpp - plays TensorFlow Lite Micro's interpreter for npuprof_tflm.h: some inferences of a graph
   with a subgraph, whose tags are made anew each time. With arguments RUNS PATH it writes PATH.
   SPDX-License-Identifier: MIT */
#include "npuprof.h"
#include "npuprof_tflm.h"
#include <stdlib.h>
#include <string.h>

static NpuprofMicroProfiler profiler;

/* An event as TFLM's own class has it: from here to the end of the block. */
struct Event {
    explicit Event(const char *tag) : handle(profiler.BeginEvent(tag)) { }
    ~Event() { profiler.EndEvent(handle); }
    uint32_t handle;
};

static void invoke(int depth)
{
    static const char *const operators[] = { "CONV_2D", "DEPTHWISE_CONV_2D", "WHILE", "SOFTMAX" };
    for (const char *name : operators) {
        char tag[32];
        strcpy(tag, name);
        Event event(tag);
        memset(tag, '#', sizeof tag - 1);            /* whoever kept the pointer shows this */
        tag[sizeof tag - 1] = 0;
        PROF_SCOPE("kernel");
        if (depth && !strcmp(name, "WHILE")) invoke(depth - 1);
    }
}

int main(int argc, char **argv)
{
    if (argc < 3) return 2;
    npuprof_start(1);
    for (int i = atoi(argv[1]); i > 0; i--) {
        PROF_INFERENCE("invoke");
        invoke(1);
    }
    const uint32_t outer = profiler.BeginEvent("left by an error");
    profiler.BeginEvent("never ended");
    profiler.EndEvent(outer);
    profiler.EndEvent(outer);                        /* twice */
    PROF_SCOPE("at the top again");
    return (int)npuprof_dump(argv[2]);
}
