/* driver.h: what the driver of the stack example offers to the runtime above it.
 * SPDX-License-Identifier: MIT
 *
 * The functions that can fail return NULL, or a sentence that says what is wrong. All of them belong to the
 * thread that opened the device, except driver_submit.
 */
#ifndef STACK_DRIVER_H
#define STACK_DRIVER_H

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* A run of the network. The caller owns it, and keeps it until the driver hands it back. */
typedef struct driver_job {
    const int8_t *input;
    int8_t *output;
    uint64_t arrow;             /* PROF_FLOW_OUT(arrow) was in the span that submitted this */
    void *user;
    int failed;                 /* set before it is handed back: the device refused it or did not answer */
    struct driver_job *next;    /* the driver's */
} driver_job;

/* Starts the simulated NPU, a program, and opens it. Each job is handed to `done` when it has ended, on the
   driver's thread. */
const char *driver_open(const char *simulator, void (*done)(driver_job *));

/* Puts the network into the device: one fully connected layer. channels: bias, multiplier and shift of each
   output. inputs and outputs are multiples of 4. */
const char *driver_load(const int8_t *weights, const int32_t *channels, unsigned inputs, unsigned outputs);

/* Takes a job, and returns before it has ended. Any thread may call it. */
void driver_submit(driver_job *job);

/* Ends the driver's thread after the last job, and the device. */
void driver_close(void);

#ifdef __cplusplus
}
#endif

#endif /* STACK_DRIVER_H */
