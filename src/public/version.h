#pragma once   /* SPDX-License-Identifier: MIT */

#define NPUPROF_VERSION_MAJOR 0
#define NPUPROF_VERSION_MINOR 1
#define NPUPROF_VERSION_PATCH 0
#define NPUPROF_VERSION (NPUPROF_VERSION_MAJOR * 10000 + NPUPROF_VERSION_MINOR * 100 + NPUPROF_VERSION_PATCH)
#define NPUPROF_VERSION_STRING "0.1.0"

#if defined(PROF_SCOPE) || defined(WITH_BASE_PROFILER)
#error "npuprof.h: another header has PROF_SCOPE or WITH_BASE_PROFILER; include npuprof.h first or rename it"
#endif

/* Why: a strict -std=c99 hides clock_gettime() and mmap(). The implementing file asks for them here when no
   system header came before; section >>platform refuses in words when it is too late. */
#if (defined(NPUPROF_IMPLEMENTATION) || defined(NPUPROF_STATIC)) && !defined(NPUPROF_FREESTANDING) && \
    !defined(NPUPROF_OFF) && \
    !defined(_WIN32) && !defined(_FEATURES_H) && !defined(_DEFAULT_SOURCE) && !defined(_GNU_SOURCE)
#define _DEFAULT_SOURCE 1
#endif

#include <limits.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#ifndef NPUPROF_FREESTANDING
#include <stdio.h>
#endif
#ifdef __cplusplus
extern "C++" {                     /* the include may stand inside extern "C" */
#include <initializer_list>
}
#endif
