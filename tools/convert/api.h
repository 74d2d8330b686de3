#pragma once   /* SPDX-License-Identifier: MIT */

/* Reading images back, in C. Include load.h, in one file of the program: it brings npuprof.h with it,
   implementation included. Another file that calls these functions defines NPUPROF_LOADS_ELSEWHERE, and
   includes this one.

   Once an image is loaded, the library reads it in place of the live arena: npuprof_dump(),
   npuprof_write_json(), npuprof_write_image(), npuprof_print_*(), npuprof_get_memory() and
   npuprof_get_stats(). Recording goes on meanwhile.
   Why not in npuprof.h: a driver has no use for 1,500 lines that parse files of others.

   The parts of this folder may use the private functions of npuprof.h. Of them npuprof.h knows nothing but
   the pointer npuprof_image_given_ in src/read/image.h, which they set. */
#if !defined(NPUPROF_IMPLEMENTATION) && !defined(NPUPROF_LOADS_ELSEWHERE)
#define NPUPROF_IMPLEMENTATION
#endif
#include "../../npuprof.h"

NPUPROF_BEGIN_C_

/* What could not be read. */
typedef struct npuprof_damage {
    uint64_t places;               /* how many places are damaged; 0: the image is whole */
    uint64_t offset;               /* of the first, in bytes from the start of the image */
    const char *what;              /* what is wrong there; "" if nothing is */
    uint64_t changed;              /* no damage: chunks that a running process reused while they were read;
                                      of npuprof_load_live() cells that were left out */
    uint64_t next;                 /* no damage: the target began anew here, for npuprof_load_firmware_from();
                                      0: it did not */
} npuprof_damage;

/* The file is no image, or its header is damaged. This code is no npuprof_result of the library, so
   npuprof_result_string() does not know it; npuprof_damage says what is wrong. */
#define NPUPROF_ERR_FORMAT ((npuprof_result)NPUPROF_RESULT_COUNT)

/* Loads an image: a file of npuprof_dump() or NPUPROF_STREAM, a mapped arena (of a process that was killed,
   or that still runs), a RAM dump. The byte order may be the other one. The image loaded before is released.
   NPUPROF_OK with damage->places > 0: the rest can be read. NPUPROF_ERR_FORMAT: nothing can. damage may be
   NULL. NPUPROF_ERR_ARGUMENT: called from a sink. */
NPUPROF_API_ npuprof_result npuprof_load(const char *path, npuprof_damage *damage);

/* The same for an image in memory, aligned to 8 bytes. The memory stays the caller's, and must stay until the
   image is released. It is changed: what is damaged is emptied, and the other byte order is swapped in
   place. */
NPUPROF_API_ npuprof_result npuprof_load_memory(void *image, size_t bytes, npuprof_damage *damage);

/* The same for firmware: dump is what npuprof_write_image() sent, a dump of the target's memory or a core
   file, which is searched for the arena. elf is the program that ran there; names come from it. Any word size
   and byte order. */
NPUPROF_API_ npuprof_result npuprof_load_firmware(const char *dump, const char *elf, npuprof_damage *damage);

/* The same for what the target sent from an offset of the file on: `next` of the trace before. elf may be
   NULL. */
NPUPROF_API_ npuprof_result npuprof_load_firmware_from(const char *dump, const char *elf, uint64_t offset,
                                                       npuprof_damage *damage);

/* Loads the arena of firmware that goes on recording, as it was when the reading began. paths[0] is a file
   that can be mapped, such as a BAR's, and paths[1] is NULL; or they are three dumps of the same memory, made
   one after the other in this order. Of the last one only the arena's header counts. What the target replaced
   while it was read is left out, and counts as overwritten: damage->changed says how many cells. Not on
   Windows: paths[1] NULL. */
NPUPROF_API_ npuprof_result npuprof_load_live(const char *const paths[3], const char *elf,
                                              npuprof_damage *damage);

/* Releases the loaded image. The library reads the live arena again. */
NPUPROF_API_ void npuprof_unload(void);

NPUPROF_END_C_
