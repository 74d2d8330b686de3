/* test: san=no - the same as compact_switch where nothing is masked: tasks are switched where the clock was
   read
   SPDX-License-Identifier: MIT */
#define SWITCH_ATOMIC
#include "compact_switch.c"
