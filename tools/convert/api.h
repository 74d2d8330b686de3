#pragma once   /* SPDX-License-Identifier: MIT */
/* Reading images back: what a program that includes load.h can call. It has the whole of npuprof.h with it, implementation
   included, because the readers of the library are the ones that read the image: once it is loaded, npuprof_dump(),
   npuprof_write_json(), npuprof_print_*() and npuprof_get_stats() take it in place of the live arena.
   The parts of this folder may use the private functions of npuprof.h. npuprof.h knows one thing of them: the pointer
   npuprof_image_given_ (src/read/image.h). */
#ifndef NPUPROF_IMPLEMENTATION
#define NPUPROF_IMPLEMENTATION
#endif
#include "../../npuprof.h"

NPUPROF_BEGIN_C_

/* What npuprof_load() could not read. */
typedef struct npuprof_damage {
    uint64_t places;               /* how many; 0: the image is whole */
    uint64_t offset;               /* of the first, bytes into the image */
    const char *what;              /* what it is; "" if there is none */
    uint64_t changed;              /* no damage: chunks of a running process's arena file that it took for newer records meanwhile */
} npuprof_damage;

/* Not a result of the library: the data is damaged or no npuprof image. npuprof_damage says what is wrong, and where. */
#define NPUPROF_ERR_FORMAT ((npuprof_result)NPUPROF_RESULT_COUNT)

/* Reads an image: a file of npuprof_dump() or of NPUPROF_STREAM, a mapped arena (of a process that was killed, or that still runs),
   a RAM dump of a board, of either byte order. From then on dump, write_json, print_* and get_stats read it in place of the live
   arena, where recording goes on; npuprof_unload() goes back. NPUPROF_ERR_FORMAT: not an image; damage says what is wrong where.
   NPUPROF_OK with damage->places: the rest is there. damage may be NULL. A file must not shrink meanwhile. The memory of
   load_memory is the caller's, aligned to 8, kept until the unload, and changed: a foreign byte order is turned in place. */
NPUPROF_API_ npuprof_result npuprof_load(const char *path, npuprof_damage *damage);
NPUPROF_API_ npuprof_result npuprof_load_memory(void *image, size_t bytes, npuprof_damage *damage);
/* The same for a target without files: dump is what its sink wrote, a dump of its memory or a core file, in which the arena is looked
   for; elf is the program that ran there, of which the names are taken. Any word size and byte order. */
NPUPROF_API_ npuprof_result npuprof_load_firmware(const char *dump, const char *elf, npuprof_damage *damage);
NPUPROF_API_ void npuprof_unload(void);

NPUPROF_END_C_
