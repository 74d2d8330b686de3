#pragma once   /* SPDX-License-Identifier: MIT */
#include "../public/types.h"
#include "../numbers/text.h"
#include "../numbers/hash.h"
#include "../arena/state.h"
#include "../arena/exchange.h"
#include "../os/common.h"
#include "../control/lock.h"

/* One file of a finished trace, whatever its output: a writer, and where its bytes go.
   A file is written under a temporary name and renamed when it is complete, so a reader never sees half of
   one. The temporary name follows from the path: the next dump there finds and removes what a killed one
   left.
   Data: npuprof_file_own_path_. */

static uint32_t npuprof_file_own_path_;        /* hash of the path that was written last; atomic */

/* Writes the open image into a sink. Returns 0 or an errno value. */
typedef int (*npuprof_file_writer_)(npuprof_sink sink);

/* Makes room at a path; no other process puts a file there meanwhile. */
typedef void (*npuprof_file_room_)(const char *path);

/* Runs a writer while no other thread writes or reports. Returns 0 or an errno value. */
static int npuprof_file_run_writer_(npuprof_file_writer_ writer, int *fd)
{
    npuprof_sink sink;
    sink.write = npuprof_os_write_;
    sink.user = fd;
    if (!npuprof_reader_lock_()) return EBUSY;
    const int error = writer(sink);
    npuprof_reader_unlock_();
    return error;
}

/* Writes a device or a pipe, which cannot be replaced. Returns 0 or an errno value. */
static int npuprof_file_write_in_place_(const char *path, npuprof_file_writer_ writer)
{
    int fd = -1, error = npuprof_os_open_(path, &fd);
    if (error) return error;
    error = npuprof_file_run_writer_(writer, &fd);
    const int close_error = npuprof_os_close_(fd);
    return error ? error : close_error;
}

/* Gives a complete file its name. Why a lock of the folder: two programs that end at the same time would both
   find no other's file. Returns 0 or an errno value. */
static int npuprof_file_publish_(int fd, const char *temporary, const char *path, npuprof_file_room_ room)
{
    const int folder = room ? npuprof_os_lock_folder_(path) : -1;
    if (room) room(path);
    const int error = npuprof_os_publish_(fd, temporary, path);
    if (folder >= 0) (void)npuprof_os_close_(folder);
    return error;
}

/* Writes a new file and puts it in the place of the one at `path`. Returns 0 or an errno value. */
static int npuprof_file_replace_(const char *path, npuprof_file_writer_ writer, npuprof_file_room_ room)
{
    char temporary[1100];
    int fd = -1, error = EEXIST;
    const char *slash = strrchr(path, '/'), *const name = slash ? slash + 1 : path;
    const unsigned mark = (unsigned)npuprof_hash_text_(name, strlen(name));
    for (unsigned n = 0; n < 100 && error == EEXIST; n++) {
        snprintf(temporary, sizeof temporary, "%.*s.npuprof-%08x-%u.tmp", (int)(name - path), path, mark, n);
        error = npuprof_os_create_temporary_(temporary, path, &fd);
    }
    if (error) return error;
    error = npuprof_file_run_writer_(writer, &fd);
    if (error) (void)npuprof_os_close_(fd);
    else error = npuprof_file_publish_(fd, temporary, path, room);
    if (error) npuprof_os_remove_(temporary);
    return error;
}

/* room: NULL: what lies there is replaced. */
static npuprof_result npuprof_file_write_by_(const char *path, npuprof_file_writer_ writer,
                                             npuprof_file_room_ room)
{
    const size_t length = strlen(path);
    if (!length || length > 1023) return NPUPROF_REFUSE_("npuprof_dump: path is not 1 to 1023 bytes long");
    if (!writer) return NPUPROF_ERR_UNSUPPORTED;
    /* Why asked here, too: an errno value would not say that this thread itself is the writer. */
    if (npuprof_exchange_is_waited_for_()) return NPUPROF_ERR_BUSY;
    const bool in_place = npuprof_os_in_place_(path);
    const int error =
        in_place ? npuprof_file_write_in_place_(path, writer) : npuprof_file_replace_(path, writer, room);
    if (!error) NPUPROF_STORE_(&npuprof_file_own_path_, npuprof_hash_text_(path, strlen(path)));
    return npuprof_os_result_(error);
}
