/* A device that writes a framed log, as AMD XDNA's firmware does: no fixed entries, so no description can
   say where its stamps are. The driver decodes it and draws the spans by hand. Here a function plays the
   firmware.

   A frame, little-endian:
     header   0xCA, length of the payload in words of 8 bytes, sequence (16 bits, never 0), 4 unused bytes
     payload  stamp in ns (8 bytes), 8 bytes that are not used here, a text
     footer   4 unused bytes, sequence (16 bits), length, 0xBA
   A reader that finds damaged bytes goes on at the next 4 bytes that begin a whole frame.

   SPDX-License-Identifier: MIT
   Build: cc -I.. 08_framed_log.c */
#define NPUPROF_IMPLEMENTATION
#include "npuprof.h"
#include "npuprof_npu.h"

#include <stdio.h>
#include <string.h>
#include <time.h>

/* ---- The driver's decoder */

typedef struct frame { uint64_t stamp; uint16_t sequence; char text[64]; } frame;

static uint64_t little_endian(const unsigned char *bytes, unsigned count)
{
    uint64_t value = 0;
    while (count--) value = value << 8 | bytes[count];
    return value;
}

/* The frame that begins there. Returns its bytes; 0: none does. */
static size_t decode_frame(const unsigned char *log, size_t left, frame *out)
{
    if (left < 16 || log[0] != 0xCA) return 0;
    const size_t payload = (size_t)log[1] * 8, bytes = 8 + payload + 8;
    if (payload < 16 || left < bytes) return 0;
    const unsigned char *footer = log + 8 + payload;
    if (footer[7] != 0xBA || footer[6] != log[1] || memcmp(footer + 4, log + 2, 2) != 0) return 0;
    out->stamp = little_endian(log + 8, 8);
    out->sequence = (uint16_t)little_endian(log + 2, 2);
    const size_t text = payload - 16 < sizeof out->text ? payload - 16 : sizeof out->text - 1;
    memcpy(out->text, log + 24, text);
    out->text[text] = 0;
    return bytes;
}

/* Draws all frames of a log. *expected: sequence of the next one; 0: not known yet. */
static void read_log(npuprof_npu *npu, const unsigned char *log, size_t bytes, uint16_t *expected)
{
    frame f;
    for (size_t at = 0; at < bytes;) {
        const size_t size = decode_frame(log + at, bytes - at, &f);
        at += size ? size : 4;
        if (!size) continue;
        if (*expected) {        /* 0 is left out when the sequence wraps */
            const uint16_t missing = (uint16_t)(f.sequence - *expected);
            npuprof_npu_lost(npu, missing && f.sequence < *expected ? missing - 1u : missing);
        }
        *expected = (uint16_t)(f.sequence == 65535 ? 1 : f.sequence + 1);
        unsigned long job, ns;
        const uint64_t end = f.stamp;               /* 64 bits: nothing to extend */
        if (sscanf(f.text, "job %lu took %lu ns", &job, &ns) == 2)
            (void)npuprof_npu_complete(npu, job, 0, NULL, NULL, end - ns, end, PROF_NO_ARGS, true);
        else
            npuprof_npu_instant(npu, 0, f.text, "log", end, PROF_NO_ARGS);
    }
}

/* ---- The device, played */

static unsigned char memory[4096];
static size_t used;
static uint16_t next_sequence = 1;
static uint64_t device_zero;    /* the device counts ns from here */

static uint64_t device_now(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec - device_zero;
}

static void write_frame(uint64_t stamp, const char *text)
{
    const size_t words = 2 + (strlen(text) + 8) / 8, bytes = 8 + 8 * words + 8;
    unsigned char *to = memory + used;
    memset(to, 0, bytes);
    to[0] = 0xCA;
    to[1] = to[bytes - 2] = (unsigned char)words;
    to[2] = to[bytes - 4] = (unsigned char)next_sequence;
    to[3] = to[bytes - 3] = (unsigned char)(next_sequence >> 8);
    for (int i = 0; i < 8; i++) to[8 + i] = (unsigned char)(stamp >> 8 * i);
    memcpy(to + 24, text, strlen(text));
    to[bytes - 1] = 0xBA;
    used += bytes;
    next_sequence++;
}

static void run_job(unsigned long job)
{
    char text[64];
    const uint64_t start = device_now();
    uint64_t end = start;
    while (end - start < 100000) end = device_now();
    snprintf(text, sizeof text, "job %lu took %lu ns", job, (unsigned long)(end - start));
    write_frame(end, text);
}

/* A message to the device, which answers with its time: a clock anchor. */
static npuprof_result calibrate(npuprof_npu *npu)
{
    const int64_t before_ns = npuprof_now_ns();
    const uint64_t ticks = device_now();
    return npuprof_npu_anchor(npu, ticks, before_ns, npuprof_now_ns());
}

int main(void)
{
    static npuprof_npu npu;
    npuprof_npu_desc desc = { 0 };
    uint16_t expected = 0;
    desc.name = "npu0";
    desc.anchors_only = true;                       /* no register holds the counter */
    desc.counter.hz = 1000000000;

    npuprof_start(1);
    device_zero = device_now() - 1000000;           /* it was switched on a millisecond ago */
    npuprof_result result = npuprof_npu_open(&npu, &desc);
    if (result == NPUPROF_OK) result = calibrate(&npu);
    write_frame(device_now(), "booted");
    for (int i = 0; i < 10; i++) {
        WITH_NPU_PROFILER(&npu, 0, "conv1", "NPU", PROF_ARGS(PROF_ARG("i", i)), {
            run_job(npuprof_npu_job(&npu));
        });
        if (i == 4) memory[used - 1] = 0;           /* a frame is damaged: its job is counted as lost */
    }
    if (result == NPUPROF_OK) result = calibrate(&npu);
    read_log(&npu, memory, used, &expected);
    npuprof_npu_close(&npu);
    if (result != NPUPROF_OK) puts(npuprof_result_string(result));
    npuprof_print_npu_operators(stdout);
    return result != NPUPROF_OK ? (int)result : (int)npuprof_dump("framed_log.json");
}
