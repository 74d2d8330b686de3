# SPDX-License-Identifier: MIT
"""The file `metadata` of a CTF 1.8 trace, in TSDL: what the bytes of its events mean. ctf.py writes those."""

import re

from .rows import integer

# Words that TSDL has for itself.
KEYWORDS = frozenset("align callsite clock const char double enum env event floating_point float integer int "
                     "long short signed stream string struct trace typealias typedef unsigned variant void "
                     "_Bool _Complex _Imaginary".split())
ESCAPES = {ord(mark): "\\" + mark for mark in '"\\'} | {ord("\n"): "\\n", ord("\t"): "\\t"}
NO_PLACE = dict.fromkeys({*range(32), 127} - {9, 10}, "\ufffd")

HEAD = """/* CTF 1.8 */
typealias integer { size = 8; align = 8; signed = false; } := uint8_t;
typealias integer { size = 32; align = 8; signed = false; } := uint32_t;
typealias integer { size = 64; align = 8; signed = false; } := uint64_t;
typealias integer { size = 64; align = 8; signed = true; } := int64_t;
typealias floating_point { exp_dig = 11; mant_dig = 53; align = 8; } := real_t;
typealias enum : uint8_t { "false" = 0, "true" = 1 } := bool_t;
typealias enum : uint8_t { "" = 0 } := empty_t;

trace {
    major = 1; minor = 8; byte_order = le;
    uuid = "%(uuid)s";
    packet.header := struct { uint32_t magic; uint8_t uuid[16]; uint32_t stream_id; };
};
"""
STREAM = """typealias integer { size = 64; align = 8; signed = false; map = clock.trace.value; } := ns_t;

stream {
    id = 0;
    packet.context := struct {
        ns_t timestamp_begin; ns_t timestamp_end; uint64_t content_size; uint64_t packet_size;
        uint64_t packet_seq_num; uint64_t events_discarded;
    };
    event.header := struct { uint32_t id; ns_t timestamp; };
    event.context := struct { track_t track; };
};
"""


def quoted(text):
    """A text as TSDL writes it. Control characters have no place there."""
    return '"%s"' % text.translate(NO_PLACE).translate(ESCAPES).encode("utf-8", "replace").decode()


def word(text, others):
    """A name like the text that TSDL takes, and that is not among the others. Why no underscore first:
    readers take one away, but not before a keyword."""
    text = re.sub(r"\W", "_", text, flags=re.ASCII).lstrip("_")
    text = "x" + text if not text or text[0].isdigit() else text
    found, n = text, 1
    while found in others:
        n += 1
        found = f"{text}_{n}"
    return found


def flat(about, path=()):
    """Yields (path, value) of what a JSON object holds, at any depth. Of lists only those of objects."""
    members = about.items() if isinstance(about, dict) else enumerate(about)
    for key, value in members:
        if isinstance(value, dict) or isinstance(value, list) and value and isinstance(value[0], dict):
            yield from flat(value, (*path, str(key)))
        elif isinstance(value, (str, int, float)):
            yield (*path, str(key)), value


def environment(about, words):
    """The block env: metadata.npuprof without the call sites, and the keys whose fields have other names."""
    lines = {"tracer_name": quoted("npuprof")}
    for path, value in flat({key: value for key, value in about.items() if key != "sites"}):
        name = word("_".join(path), {*lines, *KEYWORDS})
        lines[name] = quoted(str(value)) if integer(value) is None else str(value)
    lines |= {"key_of_" + field: quoted(key) for key, field in words.items() if key != field}
    return "env {\n%s};\n" % "".join(f"    {name} = {value};\n" for name, value in lines.items())


def clock(about, first_ns, is_unix):
    """The clock of all stamps. precision is how far it may be off, in its cycles: ns. A merged trace says
    that for all its parts."""
    own = about.get("clock") or {}
    precision = max(0, own.get("error_ns") or integer(about.get("max_error_ns")) or 0)
    return "clock {\n%s};\n" % "".join(f"    {line};\n" for line in (
        "name = trace", "description = " + quoted(str(own.get("source", "unknown"))), "freq = 1000000000",
        f"precision = {precision}", f"offset_s = {first_ns // 10**9}", f"offset = {first_ns % 10**9}",
        f"absolute = {'TRUE' if is_unix else 'FALSE'}"))


def event_class(number, name, fields):
    """An event class. fields: [(type, name as declared)]"""
    inside = " ".join(f"{kind} {field};" for kind, field in fields)
    return f"event {{ name = {quoted(name)}; id = {number}; stream_id = 0;\n" \
           f"    fields := struct {{ {inside} }}; }};\n"


def metadata(about, uuid, begin, tracks, events):
    """The whole text. begin: the ns of stamp 0, and whether they are Unix time. tracks: names by number."""
    names = ",\n    ".join(f"{quoted(name)} = {number}" for number, name in enumerate(tracks)) or '"" = 0'
    return (HEAD % {"uuid": uuid} + environment(about, events.words) + clock(about, *begin)
            + f"typealias enum : uint32_t {{\n    {names} }} := track_t;\n" + STREAM
            + "".join(event_class(number, *of) for number, of in enumerate(events.classes)))
