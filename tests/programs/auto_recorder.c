/* The file that records the functions of the others.
   SPDX-License-Identifier: MIT */
#define NPUPROF_AUTO
#define NPUPROF_IMPLEMENTATION
#include "npuprof.h"
