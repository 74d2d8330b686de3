/* npuprof.c - the recorder, in a file of its own.
   SPDX-License-Identifier: GPL-2.0 OR MIT */
#define NPUPROF_IMPLEMENTATION
#include "npuprof_kernel.h"
