/* string.h - what the real kernels need of a C library.
   SPDX-License-Identifier: MIT */
#ifndef REAL_STRING_H
#define REAL_STRING_H
#include <stddef.h>
void *memcpy(void *to, const void *from, size_t count);
void *memset(void *to, int value, size_t count);
size_t strlen(const char *text);
#endif
