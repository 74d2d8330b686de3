#pragma once   /* SPDX-License-Identifier: MIT */
#include "expander.h"

/* What a target that runs on a host says of it: examples/kernel/npuprof_kernel.h is such a one. A thread's
   note may have the system's number of the task. The rest is metadata:
     npuprof.anchor    five numbers: ticks; ns of CLOCK_BOOTTIME, CLOCK_MONOTONIC and CLOCK_REALTIME at that
                       tick; its error in ticks. By all of them times are the host's: host_clock.h
     npuprof.rate_ppb  the clock's rate stays within so many parts per billion of one rate as long as the
                       trace lasts
     npuprof.host      the name of the machine
     npuprof.program   whose trace it is
     npuprof.kernel    the release of the kernel it is of: contexts without a task are no threads of a process
   Text that is no such thing says nothing. This part knows no cell. */

/* Above the largest number of a process or task of Linux, which is 2^22. */
enum { NPUPROF_EXPAND_NO_TASK_ = (1 << 22) + 1 };

/* The text of an entry, and its length. */
static const char *npuprof_expand_entry_text_(const npuprof_expander_ *x, uint32_t id, size_t *length)
{
    const npuprof_entry_ *const e = (const npuprof_entry_ *)(const void *)(x->table + (size_t)id * 16);
    *length = id ? e->a : 0;
    return (const char *)(e + 1);
}

static bool npuprof_expand_is_key_(const npuprof_expander_ *x, uint32_t id, const char *key)
{
    size_t length;
    const char *const text = npuprof_expand_entry_text_(x, id, &length);
    return length == strlen(key) && memcmp(text, key, length) == 0;
}

/* Five decimal numbers below 2^62, a blank between them. False: the text is something else. */
static bool npuprof_expand_parse_anchor_(const char *text, size_t length, uint64_t *number)
{
    size_t at = 0;
    for (int i = 0; i < 5; i++) {
        const size_t begin = at;
        for (number[i] = 0; at < length && text[at] >= '0' && text[at] <= '9'; at++) {
            if (number[i] >> 58) return false;
            number[i] = number[i] * 10 + (uint64_t)(text[at] - '0');
        }
        if (at == begin || (i < 4 && (at == length || text[at++] != ' '))) return false;
    }
    return at == length;
}

/* Takes an anchor. Its own stamp, of which the record has `bits` bits, then has all of them, and so have
   those after it. */
static void npuprof_expand_take_anchor_(npuprof_expander_ *x, npuprof_expand_item_ *r, unsigned bits)
{
    uint64_t n[5];
    size_t length;
    const char *const text = npuprof_expand_entry_text_(x, r->category, &length);
    if (!npuprof_expand_parse_anchor_(text, length, n)) return;
    npuprof_expand_said_anchor_ *const anchor = &x->anchor[x->anchors++];
    const uint64_t distance = (r->start - n[0]) << (64 - bits);
    anchor->cell = r->cell;
    anchor->is.ticks = n[0];
    anchor->is.error_ticks = n[4];
    anchor->is.boot_ns = (int64_t)n[1];
    anchor->is.monotonic_ns = (int64_t)n[2];
    anchor->is.unix_ns = (int64_t)n[3];
    r->start = n[0] + (uint64_t)((int64_t)distance >> (64 - bits));
}

/* Takes the parts per billion that the rate stays within: a number of up to 9 digits. */
static void npuprof_expand_take_rate_(npuprof_expander_ *x, uint32_t id)
{
    size_t length, at = 0;
    uint32_t ppb = 0;
    const char *const text = npuprof_expand_entry_text_(x, id, &length);
    for (; at < length && at < 9 && text[at] >= '0' && text[at] <= '9'; at++)
        ppb = ppb * 10 + (uint32_t)(text[at] - '0');
    if (!at || at < length) return;
    x->rate_ppb = ppb;
    x->rate_is_said = true;
}

/* Copies a text into a field of the header, whole characters of it. */
static void npuprof_expand_name_header_(const npuprof_expander_ *x, uint32_t id, char *to, size_t capacity)
{
    size_t length;
    const char *const text = npuprof_expand_entry_text_(x, id, &length);
    if (length >= capacity) length = npuprof_utf8_cut_(text, length, capacity - 1);
    memset(to, 0, capacity);
    memcpy(to, text, length);
}

/* Takes what a record says of the host. bits: how many bits of its stamp a record has. */
static void npuprof_expand_host_note_(npuprof_expander_ *x, npuprof_expand_item_ *r, unsigned bits)
{
    npuprof_header_ *const h = x->h;
    if (r->kind == NPUPROF_CELL_KIND_THREAD_) x->task[r->context] = (uint32_t)r->values[0];
    if (r->kind != NPUPROF_CELL_KIND_METADATA_) return;
    if (npuprof_expand_is_key_(x, r->name, "npuprof.anchor")) npuprof_expand_take_anchor_(x, r, bits);
    if (npuprof_expand_is_key_(x, r->name, "npuprof.rate_ppb")) npuprof_expand_take_rate_(x, r->category);
    if (npuprof_expand_is_key_(x, r->name, "npuprof.host"))
        npuprof_expand_name_header_(x, r->category, h->host, sizeof h->host);
    if (npuprof_expand_is_key_(x, r->name, "npuprof.program"))
        npuprof_expand_name_header_(x, r->category, h->program, sizeof h->program);
    if (npuprof_expand_is_key_(x, r->name, "npuprof.kernel")) h->pid = NPUPROF_EXPAND_NO_TASK_;
}

/* Gives the slots the numbers of their tasks, and a kernel's other tracks numbers that no task has. */
static void npuprof_expand_number_tasks_(const npuprof_expander_ *x, npuprof_slot_head_ *slots)
{
    const bool is_kernel = x->h->pid == NPUPROF_EXPAND_NO_TASK_;
    for (uint32_t c = 0; c < 256; c++) {
        const uint32_t tid = x->tid[c], task = x->task[c];
        if (tid) slots[tid - 1].os_tid = task || !is_kernel ? task : NPUPROF_EXPAND_NO_TASK_ + tid;
    }
}
