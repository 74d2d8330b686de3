/* npusim.h: what npusim has beside its registers: memory map, commands, instructions.
 * SPDX-License-Identifier: MIT
 *
 * Shared by the device (npusim.c) and its driver (digits.c). The registers and the completion records
 * are in npusim_regs.h, generated from npusim.toml.
 *
 * How a command runs: the driver writes a npusim_command into the next free slot of a queue. It stores the
 * new count of commands in the queue's doorbell (release), and wakes the device. It does so by FUTEX_WAKE on
 * the doorbell; a real BAR would not need that. PE n takes the commands of queue n in order. It writes
 * completion records while it works, and `state` (release) after the last of them.
 */
#ifndef NPUSIM_H
#define NPUSIM_H

#include <stddef.h>
#include <stdint.h>

#include "npusim_regs.h"

#define NPUSIM_ID_VALUE 0x4E505553u
#define NPUSIM_VERSION_VALUE 0x00010000u

/* Memory map of the BAR after registers and ring. Addresses in commands are BAR offsets. */
#define NPUSIM_QUEUES_MAX 8u
#define NPUSIM_QUEUE_SLOTS 64u
#define NPUSIM_QUEUES_OFFSET 0x40000u
#define NPUSIM_MEMORY_OFFSET 0x80000u

/* Memory inside one PE. The tensors that instructions work on are in its scratchpad. */
#define NPUSIM_SCRATCH_BYTES 16384u
#define NPUSIM_PARAMETER_BYTES 16384u  /* one of two banks */
#define NPUSIM_INSTRUCTIONS_MAX 64u
#define NPUSIM_LANES 4u                /* channel counts must be a multiple of it */

/* npusim_command.state and the STATUS of completion records. */
enum { NPUSIM_PENDING = 0, NPUSIM_DONE = 1, NPUSIM_REFUSED = 2 };

typedef struct npusim_command {
    uint32_t job;                          /* copied into the completion records */
    uint32_t program, instruction_count;   /* array of npusim_instruction */
    uint32_t input, input_bytes;           /* loaded to scratchpad offset 0 */
    uint32_t output, output_bytes;         /* stored from `to` of the last instruction */
    uint32_t state;                        /* NPUSIM_PENDING by the driver, then written by the device */
    uint32_t reserved[8];
} npusim_command;

/* One operator. `parameters` is the int8_channel table of the output channels, then the weights. */
typedef struct npusim_instruction {
    uint32_t op;                           /* PAD, CONV2D, ... of the generated operators */
    uint32_t from, to;                     /* scratchpad offsets of input and output; they must not overlap */
    uint32_t parameters, parameter_bytes;  /* 0 bytes: none */
    uint16_t height, width, channels;      /* of the input */
    uint16_t out_channels;
    uint8_t kernel, stride, pad, relu;
} npusim_instruction;

/* The generated record as a struct, for the side that writes it. */
typedef struct npusim_completion {
    uint32_t sequence, job;
    uint16_t op;
    uint8_t pe, status;
    uint32_t execution, instruction, reserved;
    uint64_t start, end;
} npusim_completion;

_Static_assert(sizeof(npusim_command) == 64, "a command has 64 bytes");
_Static_assert(sizeof(npusim_instruction) == 32, "an instruction has 32 bytes");
_Static_assert(NPUSIM_QUEUES_OFFSET + NPUSIM_QUEUES_MAX * NPUSIM_QUEUE_SLOTS * sizeof(npusim_command)
               <= NPUSIM_MEMORY_OFFSET, "the queues end before the memory window");
_Static_assert(sizeof(npusim_completion) == NPUSIM_COMPLETION_BYTES
               && offsetof(npusim_completion, sequence) == NPUSIM_COMPLETION_SEQUENCE_OFFSET
               && offsetof(npusim_completion, job) == NPUSIM_COMPLETION_JOB_OFFSET
               && offsetof(npusim_completion, op) == NPUSIM_COMPLETION_OP_OFFSET
               && offsetof(npusim_completion, pe) == NPUSIM_COMPLETION_PE_OFFSET
               && offsetof(npusim_completion, status) == NPUSIM_COMPLETION_STATUS_OFFSET
               && offsetof(npusim_completion, execution) == NPUSIM_COMPLETION_EXECUTION_OFFSET
               && offsetof(npusim_completion, instruction) == NPUSIM_COMPLETION_INSTRUCTION_OFFSET
               && offsetof(npusim_completion, start) == NPUSIM_COMPLETION_START_OFFSET
               && offsetof(npusim_completion, end) == NPUSIM_COMPLETION_END_OFFSET,
               "npusim_completion is the record of npusim.toml");

#endif
