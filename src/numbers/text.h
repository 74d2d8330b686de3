#pragma once   /* SPDX-License-Identifier: MIT */
#include "../public/compiler.h"

/* Text: copying into a buffer of fixed size, lists with commas, and UTF-8.
   Both recorders use this part, so nothing of a C library is called here. A text may hold any bytes: what is
   not well-formed UTF-8 is copied and cut, too; writers show a bad byte as U+FFFD. */

/* Copies `from`, cut to capacity - 1 bytes, and a NUL. NULL is the empty text. */
static inline void npuprof_text_copy_(char *to, size_t capacity, const char *from)
{
    size_t n = 0;
    for (; from && from[n] && n + 1 < capacity; n++) to[n] = from[n];
    to[n] = 0;
}

/* The next item of a list with commas, and behind it *at. False: there are no more. */
static inline bool npuprof_text_next_item_(const char **at, const char **item, size_t *length)
{
    if (!**at) return false;
    *item = *at;
    for (*length = 0; (*at)[*length] && (*at)[*length] != ',';) ++*length;
    *at += *length + ((*at)[*length] == ',');
    return true;
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

/* Length of a UTF-8 character that a terminal would obey or that turns the text around it: controls, C1
   controls, bidirectional marks, line separators. 0: it is none of these. */
NPUPROF_ATTRIBUTE_((unused)) static size_t npuprof_utf8_control_length_(const uint8_t *c, size_t left)
{
    if (c[0] < 0x20 || c[0] == 0x7F) return 1;
    if (left < 2) return 0;
    if ((c[0] == 0xC2 && c[1] >= 0x80 && c[1] < 0xA0) || (c[0] == 0xD8 && c[1] == 0x9C)) return 2;
    if (left < 3 || c[0] != 0xE2) return 0;
    if (c[1] == 0x80) return c[2] == 0x8E || c[2] == 0x8F || (c[2] >= 0xA8 && c[2] <= 0xAE) ? 3 : 0;
    return c[1] == 0x81 && c[2] >= 0xA6 && c[2] <= 0xA9 ? 3 : 0;
}

/* Replaces, in the first `length` bytes, what a terminal would obey by '?', and what is no UTF-8. Returns the
   length that is left. */
static inline size_t npuprof_text_make_harmless_(char *text, size_t length)
{
    size_t used = 0;
    for (size_t i = 0; i < length;) {
        const uint8_t *const c = (const uint8_t *)text + i;
        const size_t whole = npuprof_utf8_length_(c, length - i);
        const bool harmless = whole && !npuprof_utf8_control_length_(c, length - i);
        for (size_t n = 0; harmless && n < whole; n++) text[used + n] = text[i + n];
        if (!harmless) text[used] = '?';
        used += harmless ? whole : 1;
        i += whole ? whole : 1;
    }
    return used;
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
