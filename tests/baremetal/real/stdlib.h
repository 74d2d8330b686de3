/* stdlib.h - see string.h.
   SPDX-License-Identifier: MIT */
#ifndef REAL_STDLIB_H
#define REAL_STDLIB_H
#include <stddef.h>
#endif
