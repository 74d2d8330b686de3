/* library.c - the library, compiled once for all C tests that are linked with it: see run.py
   SPDX-License-Identifier: MIT */
#define NPUPROF_IMPLEMENTATION
#include "npuprof.h"
#include "npuprof_npu.h"
