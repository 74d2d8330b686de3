#pragma once   /* SPDX-License-Identifier: MIT */
#include "../public/types.h"
#include "../numbers/text.h"
#include "../os/common.h"
#include "../control/lock.h"
#include "../read/image.h"
#include "../read/threads.h"
#include "../read/time.h"
#include "../read/survey.h"
#include "../read/walk.h"
#include "../write/text.h"
#include "../write/work.h"

/* What all printed tables need: a report has the readers' lock from npuprof_report_begin_() to
   npuprof_report_end_(), reads the image from its work area, and prints to a FILE. Tables are for people:
   names in them cannot control a terminal. Numbers are made of integers, so the locale changes no decimal
   point.
   Data: the work area, of the thread that has the readers' lock. */

/* A sink for work areas that write nothing. */
static int npuprof_report_discard_(void *user, const void *bytes, size_t count)
{
    (void)user;
    (void)bytes;
    (void)count;
    return 0;
}

/* Opens what the reader is to read. *work: NULL if that is refused. */
static npuprof_result npuprof_report_open_(npuprof_work_ **work)
{
    static const npuprof_sink nowhere = { npuprof_report_discard_, NULL };
    *work = NULL;
    if (!npuprof_reader_lock_()) return npuprof_reader_result_();
    *work = npuprof_work_begin_(nowhere);
    if (*work) npuprof_image_open_(&(*work)->image);
    else npuprof_reader_unlock_();
    return *work ? NPUPROF_OK : NPUPROF_ERR_MEMORY;
}

/* The same, for a table that is printed. */
static npuprof_result npuprof_report_begin_(FILE *out, npuprof_work_ **work)
{
    return out ? npuprof_report_open_(work) : NPUPROF_REFUSE_("npuprof_print_...: out is NULL");
}

static npuprof_result npuprof_report_end_(FILE *out, npuprof_work_ *w)
{
    const int error = npuprof_work_end_(w);
    npuprof_reader_unlock_();
    return ferror(out) ? NPUPROF_ERR_IO : npuprof_os_result_(error);
}

/* A string of the table as a cell, in `cell`: '?' for what a terminal would obey, cut to bytes - 1. */
static const char *npuprof_report_cell_(const npuprof_image_ *im, uint32_t id, char *cell, size_t bytes)
{
    size_t length, used = 0;
    const char *const text = npuprof_image_text_(im, id, &length);
    length = npuprof_utf8_cut_(text, length, bytes - 1);
    for (size_t i = 0; i < length; used++) {
        const size_t control = npuprof_utf8_control_length_((const uint8_t *)text + i, length - i);
        cell[used] = control ? '?' : text[i];
        i += control ? control : 1;
    }
    cell[used] = 0;
    return cell;
}

/* Hundredths of a percent that `part` is of `whole`, rounded half up. */
static uint64_t npuprof_report_share_(uint64_t part, uint64_t whole)
{
    return whole ? (npuprof_scale_(part, 20000, whole) + 1) / 2 : 0;
}
