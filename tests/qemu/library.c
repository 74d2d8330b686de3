/* library.c - the implementation, which the guest programs are linked with.
   SPDX-License-Identifier: MIT */
#define NPUPROF_IMPLEMENTATION
#include "../../npuprof.h"
#include "../../npuprof_npu.h"
