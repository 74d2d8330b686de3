# SPDX-License-Identifier: MIT
"""Prints a CTF trace as JSON, as babeltrace2 reads it. Debian's Python runs it: that has bt2."""

import json
import sys

import bt2


def plain(field):
    """The value of a field, for JSON. Enumerations are truth values, and the empty text."""
    if isinstance(field, bt2._EnumerationFieldConst):
        return {"true": True, "false": False, "": ""}[field.labels[0]]
    if isinstance(field, bt2._IntegerFieldConst):
        return int(field)
    return float(field) if isinstance(field, bt2._RealFieldConst) else str(field)


def read(path):
    found = {"events": [], "discarded": 0}
    for message in bt2.TraceCollectionMessageIterator(path):
        if type(message) is bt2._DiscardedEventsMessageConst:
            found["discarded"] += message.count
            found["between"] = [message.beginning_default_clock_snapshot.ns_from_origin,
                                message.end_default_clock_snapshot.ns_from_origin]
        if type(message) is bt2._StreamBeginningMessageConst:
            clock = message.stream.cls.default_clock_class
            found["clock"] = [clock.frequency, clock.precision, clock.origin_is_unix_epoch, clock.description]
            found["env"] = {key: str(value) if isinstance(value, bt2._StringValueConst) else int(value)
                            for key, value in message.stream.trace.environment.items()}
        if type(message) is bt2._EventMessageConst:
            track = message.event.common_context_field["track"]
            fields = {key: plain(field) for key, field in message.event.payload_field.items()}
            found["events"].append([message.default_clock_snapshot.ns_from_origin, message.event.name,
                                    int(track), *track.labels, fields])
    return found


json.dump(read(sys.argv[1]), sys.stdout)
