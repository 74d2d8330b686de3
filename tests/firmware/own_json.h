/* own_json.h - the JSON that the recorder for microcontrollers writes itself: put() is a sink into `text`,
   written() what npuprof_write_json() put there.
   SPDX-License-Identifier: MIT

   Include it behind npuprof.h, which holds the implementation. */
#ifndef OWN_JSON_H
#define OWN_JSON_H

#include "trace.h"

static char text[1 << 20];
static size_t length;

/* With a user it fails, as with more than it has room for. */
CHECK_UNUSED_ static int put(void *user, const void *bytes, size_t count)
{
    if (user || length + count >= sizeof text) return 5;
    memcpy(text + length, bytes, count);
    text[length += count] = 0;
    return 0;
}

CHECK_UNUSED_ static json_node *written(void)
{
    const npuprof_sink sink = { put, NULL };
    length = 0;
    CHECK_INT(npuprof_write_json(sink), NPUPROF_OK);
    json_node *const t = json_parse(text, length);
    CHECK_STOP(t != NULL);
    return t;
}

#endif /* OWN_JSON_H */
