#pragma once   /* SPDX-License-Identifier: MIT */
#include "../read/image.h"
#include "../read/place.h"
#include "csv.h"
#include "../read/executions.h"

static void npuprof_csv_device_(npuprof_device_walk_ *d, const npuprof_event_ *ev, const npuprof_placed_ *p, const npuprof_execution_ *within)
{
    npuprof_csv_columns_ row;
    memset(&row, 0, sizeof row);
    row.tid = row.root_tid = ev->tid;
    row.position = row.root = ev->position;
    row.start_ns = p->start_ns;
    row.end_ns = p->end_ns;
    if (within) {
        row.has_parent = true;
        row.parent_tid = within->tid;
        row.parent = within->position;
        row.root_tid = within->root_tid;
        row.root = within->root;
    } else if (ev->has_link) {
        row.has_parent = true;
        row.parent_tid = row.root_tid = ev->link.slot;
        row.parent = ev->link.position;
        row.root = ev->link.root_position;
    }
    npuprof_csv_row_(npuprof_work_of_(d), ev, &row);
}
