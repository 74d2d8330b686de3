/* npuprof_shim.h - what the headers beside it share. They include it; README.md says how to use them.
   SPDX-License-Identifier: MIT */
#ifndef NPUPROF_SHIM_H
#define NPUPROF_SHIM_H
#include "npuprof.h"
#include <stdlib.h>
#include <string.h>
#include <wchar.h>

#if !defined(__GNUC__)
#error "npuprof_shim.h: these headers need gcc or clang"
#endif
/* Why hidden: each program or library has functions of its own, which no other library's can replace. */
#define NPUPROF_SHIM extern __attribute__((visibility("hidden")))
#ifdef __cplusplus
extern "C" {
#endif
/* The object of this text and kind; the same one for the same text. It lives as long as the process. init is
   called before anybody else sees it; NULL: it is the text itself. NULL: no memory. */
NPUPROF_SHIM void *npuprof_shim_object(const char *text, size_t bytes, void (*init)(void *, const char *));
/* Counts what the API gave and npuprof cannot hold: npuprof.collect.not_held.WHAT in the metadata. NULL. */
NPUPROF_SHIM void *npuprof_shim_not_held(const char *what);
/* As UTF-8, until this thread's next call. */
NPUPROF_SHIM const char *npuprof_shim_wide(const wchar_t *text);
#ifdef __cplusplus
}
#endif
#endif /* NPUPROF_SHIM_H */
