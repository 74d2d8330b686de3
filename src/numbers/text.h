#pragma once   /* SPDX-License-Identifier: MIT */
#include "../public/compiler.h"

/* Text: copying into a buffer of fixed size, and UTF-8.
   Both recorders use this part, so nothing of a C library is called here. A text may hold any bytes: what is
   not well-formed UTF-8 is copied and cut, too; writers show a bad byte as U+FFFD. */

/* Copies `from`, cut to capacity - 1 bytes, and a NUL. NULL is the empty text. */
static inline void npuprof_text_copy_(char *to, size_t capacity, const char *from)
{
    size_t n = 0;
    for (; from && from[n] && n + 1 < capacity; n++) to[n] = from[n];
    to[n] = 0;
}

/* Does a byte of that value continue a sequence? */
static inline bool npuprof_utf8_continues_(unsigned char c) { return (c & 0xC0) == 0x80; }

/* Bytes of the well-formed sequence at p, 1 to 4, of which `left` are there. 0: there is none. */
NPUPROF_ATTRIBUTE_((unused)) static size_t npuprof_utf8_length_(const uint8_t *p, size_t left)
{
    const uint32_t c = p[0];
    const size_t n = c < 0x80 ? 1 : c < 0xC2 ? 0 : c < 0xE0 ? 2 : c < 0xF0 ? 3 : c < 0xF5 ? 4 : 0;
    if (n > left) return 0;
    for (size_t i = 1; i < n; i++)
        if (!npuprof_utf8_continues_(p[i])) return 0;
    /* The second byte excludes longer forms than needed, surrogates, and what is above U+10FFFF. */
    if (c == 0xE0 && p[1] < 0xA0) return 0;
    if (c == 0xED && p[1] > 0x9F) return 0;
    if (c == 0xF0 && p[1] < 0x90) return 0;
    if (c == 0xF4 && p[1] > 0x8F) return 0;
    return n;
}

/* Length of a text of `length` bytes when cut to at most `limit`, not inside a sequence. Where there is no
   UTF-8 it is cut at the limit. */
static inline size_t npuprof_utf8_cut_(const char *text, size_t length, size_t limit)
{
    if (length <= limit) return length;
    size_t n = limit;
    while (n > 0 && limit - n < 4 && npuprof_utf8_continues_((unsigned char)text[n])) n--;
    return npuprof_utf8_continues_((unsigned char)text[n]) ? limit : n;
}

enum { NPUPROF_ADDRESS_TEXT_ = 19 };

/* An address as text: 0x and its digits, in lower case. Returns where it begins in `text`, which it ends. */
static inline const char *npuprof_address_text_(char text[NPUPROF_ADDRESS_TEXT_], uint64_t address)
{
    char *p = text + NPUPROF_ADDRESS_TEXT_ - 1;
    *p = 0;
    do *--p = "0123456789abcdef"[address & 15];
    while ((address >>= 4) != 0);
    *--p = 'x';
    *--p = '0';
    return p;
}
