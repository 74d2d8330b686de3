/* string.h - the two functions of the C library that the int8 operators call, for a build without one.
   SPDX-License-Identifier: MIT */
#ifndef FIRMWARE_STRING_H
#define FIRMWARE_STRING_H
#include <stddef.h>
void *memcpy(void *to, const void *from, size_t count);
void *memset(void *to, int value, size_t count);
#endif
