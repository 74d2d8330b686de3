# SPDX-License-Identifier: MIT
"""Reads strict JSON, one event of a trace at a time."""

import json
import re
from collections import Counter
from decimal import Decimal


class NotJson(Exception):
    """The text is not strict JSON. `position` counts characters."""

    def __init__(self, position, sentence):
        super().__init__(sentence)
        self.position = position


BLANK = re.compile(r"[ \t\r\n]*")
SURROGATE = re.compile(r"\\u[dD][89a-fA-F]")
# The first group is a surrogate pair, the second one half of a pair.
ESCAPES = re.compile(r"\\(u[dD][89abAB]..\\u[dD][c-fC-F]..)|\\(u[dD][89a-fA-F]..)|\\.", re.S)


def shown(value):
    """A value as a message shows it: on one line, ASCII, at most 60 characters."""
    text = str(value) if type(value) is Decimal else json.dumps(value, default=str)
    return text if len(text) <= 60 else text[:57] + "..."


ENCODER = json.JSONEncoder(separators=(",", ":"), ensure_ascii=False, allow_nan=False)


def json_text(value):
    """A value as compact JSON in UTF-8. Why DEL is escaped: Perfetto refuses a file that has it raw in the
    metadata."""
    text = ENCODER.encode(value)
    return text.replace("\x7f", "\\u007f")


def refuse_halves(text, pairs=False):
    """Refuses half of a surrogate pair: UTF-8 has no bytes for it. pairs: whole ones, too."""
    for match in ESCAPES.finditer(text) if SURROGATE.search(text) else ():
        if match[2] or pairs and match[1]:
            what = f"surrogate escape \\{match[2] or match[1][:5]}"
            raise NotJson(match.start(), f"{what}, write the character as UTF-8")


def unique_members(pairs):
    members = dict(pairs)
    if len(members) != len(pairs):
        repeated = next(key for key, count in Counter(key for key, value in pairs).items() if count > 1)
        raise ValueError(f"duplicate key {shown(repeated)}")
    return members


def refuse_constant(text):
    raise ValueError(f"{text} is no JSON number")


def strict_decoder(decimal=Decimal, whole=int):
    """A decoder that refuses repeated keys, NaN and Infinity. Why Decimal: it keeps the decimals as
    written."""
    return json.JSONDecoder(object_pairs_hook=unique_members, parse_float=decimal, parse_int=whole,
                            parse_constant=refuse_constant)


DECODER = strict_decoder()


def decode(text, position, decoder=DECODER):
    """Returns the value at `position` and the position behind it."""
    try:
        return decoder.raw_decode(text, position)
    except json.JSONDecodeError as error:
        raise NotJson(error.pos, error.msg) from None
    except RecursionError:
        raise NotJson(position, "nested too deeply") from None
    except (ValueError, ArithmeticError) as error:
        sentence = str(error) if type(error) is ValueError else "a number out of all bounds"
        raise NotJson(position, f"{sentence}, in the value that starts here") from None


def expect(text, position, characters):
    """Skips blanks, expects one of `characters`, and returns it with the position behind it."""
    position = BLANK.match(text, position).end()
    character = text[position:position + 1]
    if not character or character not in characters:
        raise NotJson(position, f"expected {' or '.join(characters)}")
    return character, BLANK.match(text, position + 1).end()


def read_trace(text, on_event, decoder=DECODER):
    """Calls on_event(position, value) for each event and returns the other members of the top-level object.
    Among them traceEvents is [] if it is an array. Returns None if the top level is no object."""
    refuse_halves(text)
    position = BLANK.match(text).end()
    if not text.startswith("{", position):
        value, position = decode(text, position, decoder)
        top, separator = None, "}"
    else:
        top, position = {}, BLANK.match(text, position + 1).end()
        separator = "}" if text.startswith("}", position) else ","
        position += separator == "}"
    while separator == ",":
        if not text.startswith('"', position):
            raise NotJson(position, "expected a key")
        key_position = position
        key, position = decode(text, position)
        if key in top:
            raise NotJson(key_position, f"duplicate key {shown(key)}")
        position = expect(text, position, ":")[1]
        if key == "traceEvents" and text.startswith("[", position):
            top[key] = []
            position = read_events(text, position, on_event, decoder)
        else:
            top[key], position = decode(text, position, decoder)
        separator, position = expect(text, position, ",}")
    position = BLANK.match(text, position).end()
    if position != len(text):
        raise NotJson(position, "data behind the end")
    return top


def read_events(text, position, on_event, decoder=DECODER):
    """Reads the array at `position` and returns the position behind it."""
    position = BLANK.match(text, position + 1).end()
    if text.startswith("]", position):
        return position + 1
    separator = ","
    while separator == ",":
        value, end = decode(text, position, decoder)
        on_event(position, value)
        separator, position = expect(text, end, ",]")
    return position
