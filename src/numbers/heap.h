#pragma once   /* SPDX-License-Identifier: MIT */
#include "../public/compiler.h"
#include <string.h>

/* Heaps, and sorting. Owns no data; may not know what the elements are. An array of `count`
   elements of `bytes` bytes each is a heap if no element comes before one of its children, which for index i
   are 2 i + 1 and 2 i + 2. So the last element in the order is at index 0, and a heap becomes a sorted array
   in place. Nothing is allocated.

   before(a, b): does element a come before element b? For a heap with the first element on top, hand in the
   reverse.

   How to use it: for each type of element, write one function that calls one of these with the size and the
   order. All are inlined, so both are constants there, and the code is as good as if it were written for that
   type. */

enum { NPUPROF_HEAP_BYTES_MAX_ = 128 };    /* of an element */

typedef bool (*npuprof_heap_before_)(const void *a, const void *b);

NPUPROF_ALWAYS_INLINE_ void npuprof_heap_swap_(uint8_t *a, uint8_t *b, size_t bytes)
{
    uint64_t swap[NPUPROF_HEAP_BYTES_MAX_ / 8];
    memcpy(swap, a, bytes);
    memcpy(a, b, bytes);
    memcpy(b, swap, bytes);
}

/* The element at index `at` may come before its children: moves it down to its place. */
NPUPROF_ALWAYS_INLINE_ void npuprof_heap_sift_down_(void *heap, size_t bytes, size_t count, size_t at,
                                                    npuprof_heap_before_ before)
{
    uint8_t *const list = (uint8_t *)heap;
    for (;;) {
        size_t last = at;
        for (size_t child = 2 * at + 1; child <= 2 * at + 2 && child < count; child++)
            if (before(list + last * bytes, list + child * bytes)) last = child;
        if (last == at) return;
        npuprof_heap_swap_(list + at * bytes, list + last * bytes, bytes);
        at = last;
    }
}

/* The element at index count - 1 was added: moves it up to its place. */
NPUPROF_ALWAYS_INLINE_ void npuprof_heap_sift_up_(void *heap, size_t bytes, size_t count,
                                                  npuprof_heap_before_ before)
{
    uint8_t *const list = (uint8_t *)heap;
    for (size_t at = count - 1, parent; at; at = parent) {
        parent = (at - 1) / 2;
        if (!before(list + parent * bytes, list + at * bytes)) return;
        npuprof_heap_swap_(list + at * bytes, list + parent * bytes, bytes);
    }
}

/* Sorts any array, heap or not. */
NPUPROF_ALWAYS_INLINE_ void npuprof_heap_sort_(void *array, size_t bytes, size_t count,
                                               npuprof_heap_before_ before)
{
    uint8_t *const list = (uint8_t *)array;
    size_t parents = count / 2, left = count;
    while (left > 1) {
        if (parents) { /* first: makes a heap, beginning at the last element that has children */
            parents--;
        } else { /* then: moves the top behind the rest of the heap */
            left--;
            npuprof_heap_swap_(list, list + left * bytes, bytes);
        }
        npuprof_heap_sift_down_(list, bytes, left, parents, before);
    }
}

/* ---- Sorting by merging, with as much memory beside the array: equal elements keep their order */

/* Merges the sorted runs [from, middle) and [middle, end) into `to`. */
NPUPROF_ALWAYS_INLINE_ void npuprof_sort_merge_(uint8_t *to, const uint8_t *from, const uint8_t *middle,
                                                const uint8_t *end, size_t bytes, npuprof_heap_before_ before)
{
    const uint8_t *a = from, *b = middle;
    if (b < end && before(b, b - bytes)) {
        size_t first = 0, behind = (size_t)(middle - from) / bytes;
        while (first < behind) {           /* what is before all of the second run goes at once */
            const size_t half = (first + behind) / 2;
            if (before(b, from + half * bytes)) behind = half;
            else first = half + 1;
        }
        memcpy(to, from, first * bytes);
        to += first * bytes;
        a += first * bytes;
        while (a < middle && b < end) {
            const bool second = before(b, a);
            memcpy(to, second ? b : a, bytes);
            to += bytes;
            if (second) b += bytes;
            else a += bytes;
        }
    }
    memcpy(to, a, (size_t)(middle - a));
    memcpy(to + (middle - a), b, (size_t)(end - b));
}

/* Sorts `count` elements of `bytes` bytes. beside: memory for as many. Returns where the sorted ones are:
   in one of the two. */
NPUPROF_ALWAYS_INLINE_ void *npuprof_sort_(void *array, void *beside, size_t bytes, size_t count,
                                           npuprof_heap_before_ before)
{
    uint8_t *from = (uint8_t *)array, *to = (uint8_t *)beside;
    for (size_t run = 1; run < count; run *= 2) {
        for (size_t at = 0; at < count; at += 2 * run) {
            const size_t middle = count - at > run ? at + run : count;
            const size_t end = count - middle > run ? middle + run : count;
            npuprof_sort_merge_(to + at * bytes, from + at * bytes, from + middle * bytes, from + end * bytes,
                                bytes, before);
        }
        uint8_t *const other = from;
        from = to;
        to = other;
    }
    return from;
}
