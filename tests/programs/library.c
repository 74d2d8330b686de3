/* library.c - the library, compiled once for all C tests and programs that are linked with it: see
   helpers.py. TEST_LOADS: they load images, too.
   SPDX-License-Identifier: MIT */
#define NPUPROF_IMPLEMENTATION
#include "npuprof.h"
#include "npuprof_npu.h"
#ifdef TEST_LOADS
#include "../../tools/convert/load.h"
#endif
