/* npuprof.c - the implementation for Zephyr: the hooks sys_trace_*_user, and recording from the start.
   SPDX-License-Identifier: MIT */
#include <zephyr/init.h>
#define NPUPROF_IMPLEMENTATION
#include "npuprof_zephyr.h"

#if CONFIG_NPUPROF_LEVEL > 0
static int npuprof_zephyr_boot(void) { return npuprof_zephyr_start(CONFIG_NPUPROF_LEVEL) ? -1 : 0; }

/* Why here: the timer runs since PRE_KERNEL_2, and no thread of the application has begun. */
SYS_INIT(npuprof_zephyr_boot, POST_KERNEL, 0);
#endif
