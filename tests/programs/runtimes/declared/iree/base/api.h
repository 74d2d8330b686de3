/* What npuprof_iree.h needs of IREE's base (b48a5955, August 2026): the same names, types and order, written
   for the tests. A status carries no message here.
   SPDX-License-Identifier: MIT */
#pragma once
#include <stddef.h>
#include <stdint.h>
#include <string.h>

typedef size_t iree_host_size_t;
typedef int64_t iree_time_t;
typedef struct iree_string_view_t { const char *data; iree_host_size_t size; } iree_string_view_t;
typedef struct iree_const_byte_span_t {
    const uint8_t *data;
    iree_host_size_t data_length;
} iree_const_byte_span_t;

static inline iree_string_view_t iree_make_cstring_view(const char *text)
{
    const iree_string_view_t view = { text, strlen(text) };
    return view;
}
#define IREE_SV(text) iree_make_cstring_view(text)

static inline iree_const_byte_span_t iree_make_const_byte_span(const void *data, iree_host_size_t length)
{
    const iree_const_byte_span_t span = { (const uint8_t *)data, length };
    return span;
}

typedef enum iree_status_code_e {
    IREE_STATUS_OK = 0,
    IREE_STATUS_RESOURCE_EXHAUSTED = 8,
    IREE_STATUS_FAILED_PRECONDITION = 9,
    IREE_STATUS_UNAVAILABLE = 14,
    IREE_STATUS_CODE_MASK = 0x1F
} iree_status_code_t;
typedef struct iree_status_handle_t *iree_status_t;
#define iree_status_from_code(code) ((iree_status_t)((uintptr_t)(code) & IREE_STATUS_CODE_MASK))
#define iree_status_code(value) ((iree_status_code_t)((uintptr_t)(value) & IREE_STATUS_CODE_MASK))
#define iree_make_status(code, ...) iree_status_from_code(code)
#define iree_status_is_ok(value) ((uintptr_t)(value) == IREE_STATUS_OK)
iree_status_t iree_status_ignore(iree_status_t status);
iree_time_t iree_time_now(void);
