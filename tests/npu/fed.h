/* fed.h - what the tests of queues of records share: bytes in memory order, and what a trace says of records.
   SPDX-License-Identifier: MIT

   Include after sim.h and trace.h. */
#ifndef FED_H
#define FED_H

/* A field: bytes into the entry, width of the load, first bit, bits. */
#define AT(o, w, l, n) { .offset = (o), .width_bytes = (w), .lsb = (l), .bits = (n) }

CHECK_UNUSED_ static json_node *clock_sync(json_node *t)
{
    json_node *devices = json_get(t, "metadata.npuprof.devices");
    CHECK_STOP(devices && devices->first);
    return json_get(devices->first, "clock_sync");
}

/* A count of the device's records; 0 where the trace does not speak of it. */
CHECK_UNUSED_ static int64_t records(json_node *t, const char *key)
{
    json_node *all = json_get(clock_sync(t), "records"), *n = all ? json_get(all, key) : NULL;
    return n ? json_int(n) : 0;
}

CHECK_UNUSED_ static void put(unsigned char *at, unsigned bytes, uint64_t value)
{
    for (unsigned i = 0; i < bytes; i++) at[i] = (unsigned char)(value >> 8 * i);
}

#endif /* FED_H */
