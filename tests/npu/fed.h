/* fed.h - what the tests of devices share: fields of records, bytes in memory order, and what a trace says.
   SPDX-License-Identifier: MIT

   Include after trace.h. */
#ifndef FED_H
#define FED_H

/* A field: bytes into the entry, width of the load, first bit, bits. */
#define AT(o, w, l, n) { .offset = (o), .width_bytes = (w), .lsb = (l), .bits = (n) }

CHECK_UNUSED_ static void put(unsigned char *at, unsigned bytes, uint64_t value)
{
    for (unsigned i = 0; i < bytes; i++) at[i] = (unsigned char)(value >> 8 * i);
}

/* Of the trace's first device. */
CHECK_UNUSED_ static json_node *clock_sync(json_node *t)
{
    json_node *devices = json_get(t, "metadata.npuprof.devices");
    CHECK_STOP(devices && devices->first);
    return json_get(devices->first, "clock_sync");
}

/* A number that clock_sync has in any case. */
CHECK_UNUSED_ static int64_t said(json_node *t, const char *key)
{
    json_node *const n = json_get(clock_sync(t), key);
    if (!n) check_failed_(__FILE__, __LINE__, "clock_sync has no %s", key);
    return n ? json_int(n) : 0;
}

/* A count of the device's records; 0 where the trace does not speak of it. */
CHECK_UNUSED_ static int64_t records(json_node *t, const char *key)
{
    json_node *all = json_get(clock_sync(t), "records"), *n = all ? json_get(all, key) : NULL;
    return n ? json_int(n) : 0;
}

/* A number among the event's arguments. */
CHECK_UNUSED_ static int64_t arg(json_node *e, const char *key)
{
    return json_int(json_get(json_get(e, "args"), key));
}

/* The n-th device span of that name; NULL: there are not so many. */
CHECK_UNUSED_ static json_node *device_span(json_node *t, const char *name, size_t n)
{
    for (size_t i = 0;; i++) {
        json_node *e = trace_event(t, "X", name, i);
        if (!e || (json_get(e, "args.stamp") && n-- == 0)) return e;
    }
}

/* The span of an operation without a name. */
CHECK_UNUSED_ static json_node *op_span(json_node *t, unsigned op)
{
    char name[16];
    snprintf(name, sizeof name, "op %u", op);
    return trace_event(t, "X", name, 0);
}

CHECK_UNUSED_ static size_t device_spans(json_node *t)
{
    size_t n = 0;
    for (json_node *e = json_get(t, "traceEvents")->first; e; e = e->next)
        n += json_get(e, "args.pe_index") && json_text(json_get(e, "ph"))[0] == 'X';
    return n;
}

#endif /* FED_H */
