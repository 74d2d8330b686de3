# SPDX-License-Identifier: MIT
"""What the two headers declare for a user's file: macros, functions, types, members, constants, knobs.

Source of all but the knobs: what the compiler's preprocessor makes of the headers, and for the values of
constants a program that prints them. Public is each name of ours without a trailing underscore."""
import re

import helpers
from helpers import ROOT, run, scratch
from laws import code

BOTH = '#include "npuprof.h"\n#include "npuprof_npu.h"\n'
# The knobs that each side of the list is made with.
SIDES = {"host": [], "firmware": ["-DNPUPROF_FREESTANDING", "-DNPUPROF_NOW()=0u", "-DNPUPROF_NOW_HZ=1000"]}
OURS = r"(?:PROF|WITH|NPUPROF|npuprof)_\w*(?<!_)"
# Constants that images hold, and that only their readers use: format/ says what they mean.
IN_IMAGES = r"NPUPROF_(KIND|STAMP|RECORDS|NOTE)_"
GUARDS = {"NPUPROF_H", "NPUPROF_NPU_H"}
# Values of knobs and of versions, which are no knobs.
NO_KNOBS = GUARDS | {"NPUPROF_VERSION", "NPUPROF_NPU_VERSION", "NPUPROF_KEEP_OLDEST", "NPUPROF_KEEP_NEWEST",
                     "NPUPROF_STREAM"}
TOKEN = re.compile(r'"(?:\\.|[^"\\])*"|\'(?:\\.|[^\'\\])*\'|\w+|\.\.\.|[^\s\w]')
OPEN, CLOSE = "([{", ")]}"


def preprocessed(text, flags, *more):
    """What the preprocessor makes of a file, or a sentence why it did not."""
    source = scratch() / "interface.c"
    source.write_text(text)
    done = run([*helpers.CC, "-std=gnu11", "-E", *more, f"-I{ROOT}", *flags, source])
    if done.returncode:
        raise AssertionError(f"the headers do not preprocess with {flags}:\n{done.stderr}")
    return done.stdout


def macros(flags):
    """Lines for the macros that are defined after both headers were included."""
    for name, params, text in re.findall(r"^#define (\w+)(\([^)]*\))?[ \t]*(.*)$",
                                         preprocessed(BOTH, flags, "-dM"), re.M):
        if not re.fullmatch(OURS, name) or name in GUARDS or f"-D{name}" in " ".join(flags):
            continue
        is_number = re.fullmatch(r"[\w() *+]*\d[\w() *+]*", text) and not re.search(r"\w_\b", text)
        value = f" = {text}" if is_number and "VERSION" not in name else ""
        yield f"macro {name}{params.replace(',', ', ')}" if params else f"macro {name}{value}"


def own_tokens(flags):
    """The tokens that come from the two headers, not from what they include."""
    tokens, ours = [], False
    for line in preprocessed(BOTH, flags).splitlines():
        marker = re.match(r'# *(?:line )?(\d+) "(.*)"', line)
        if marker:
            ours = marker[2].endswith(("npuprof.h", "npuprof_npu.h"))
        elif ours and not line.lstrip().startswith("#"):
            tokens += TOKEN.findall(line)
    return tokens


def end_of(tokens, at):
    """The place behind the bracket that closes the one at `at`."""
    depth = 0
    while True:
        depth += (tokens[at] in OPEN) - (tokens[at] in CLOSE)
        at += 1
        if not depth:
            return at


def declarations(tokens):
    """The tokens of each declaration of the outermost level, without attributes; a function's body is {}."""
    one, at = [], 0
    while at < len(tokens):
        token = tokens[at]
        if token in ("__attribute", "__attribute__", "__asm__"):
            at = end_of(tokens, at + 1)
        elif token in ("__extension__", "extern", "inline", "__inline"):
            at += 1
        elif token == "{" and one and one[-1] == ")":
            at = end_of(tokens, at)
            yield one + ["{}"]
            one = []
        elif token in OPEN:
            end = end_of(tokens, at)
            one, at = one + tokens[at:end], end
        else:
            at += 1
            if token != ";":
                one.append(token)
            else:
                yield one
                one = []


def spelled(tokens):
    """Tokens as C is written."""
    tokens = ["bool" if token == "_Bool" else token for token in tokens]
    text = re.sub(r" ([,)\]])", r"\1", " ".join(tokens))
    text = re.sub(r"([(\[*]) ", r"\1", text)
    return re.sub(r"(\w) (\[)", r"\1\2", text)


def split(tokens, by):
    """Parts between separators that are in no bracket."""
    parts, depth = [[]], 0
    for token in tokens:
        depth += (token in OPEN) - (token in CLOSE)
        if token == by and not depth:
            parts.append([])
        else:
            parts[-1].append(token)
    return [part for part in parts if part]


def members(owner, body):
    """Lines for the members of a struct or union; those with a trailing underscore are private."""
    for one in split(body, ";"):
        if one[0] in ("struct", "union") and "{" in one:
            opened = one.index("{")
            closed = end_of(one, opened)
            inside = f"{owner}.{one[closed]}" if closed < len(one) else owner
            yield from members(inside, one[opened + 1:closed - 1])
            continue
        first, *rest = split(one, ",")
        place = re.search(r"\( \* (\w+) \)", " ".join(first))
        name = place[1] if place else next(t for t in reversed([t for n, t in enumerate(first) if
                                           "[" not in first[:n] or t == "]"]) if re.fullmatch(r"[a-z]\w*", t))
        base = first[:first.index(name)]
        for n, declared in enumerate([first, *rest]):
            own = name if n == 0 else next(t for t in declared if re.fullmatch(r"[a-z]\w*", t))
            if own.endswith("_"):
                continue
            words = declared if n == 0 else [t for t in base if t != "*"] + declared
            kind = [t for n_, t in enumerate(words) if not (t == own and n_ == words.index(own))]
            yield f"member {owner}.{own}: {spelled(kind)}"


def parts(tokens):
    """(lines for functions, types and members, names of constants) of preprocessed headers."""
    lines, constants = [], []
    for one in declarations(tokens):
        if "enum" in one[:2] and "{" in one:
            opened = one.index("{")
            body = one[opened + 1:end_of(one, opened) - 1]
            constants += [part[0] for part in split(body, ",") if re.fullmatch(OURS, part[0])]
        if one[0] == "typedef":
            name = one[-1]
            if re.fullmatch(OURS, name):
                lines.append(f"type {name}: {one[1]}")
                if one[1] in ("struct", "union") and "{" in one:
                    opened = one.index("{")
                    lines += members(name, one[opened + 1:end_of(one, opened) - 1])
        elif "(" in one and "=" not in one[:one.index("(")]:
            name = one[one.index("(") - 1]
            if re.fullmatch(OURS, name):
                told = [t for t in one[:one.index("(") - 1] if t != "static"]
                params = one[one.index("("):end_of(one, one.index("("))]
                lines.append(f"function {name}{spelled(params)}: {spelled(told)}")
    return lines, constants


def values(names, flags):
    """The values of constants, by a program that prints them."""
    source, program = scratch() / "values.c", scratch() / "values"
    prints = "".join(f'    printf("{name} = %lld\\n", (long long){name});\n' for name in names)
    source.write_text(f"{BOTH}#include <stdio.h>\nint main(void)\n{{\n{prints}    return 0;\n}}\n")
    run([*helpers.CC, "-std=gnu11", f"-I{ROOT}", *flags, source, "-o", program], code=0)
    # Why not the value of a count: it grows with what is counted, which has a line of its own.
    return [re.sub(r"(_COUNT) = \d+", r"\1", line) for line in run([program]).stdout.splitlines()]


def side(name, *more):
    """All lines of one side, of macros and declarations."""
    flags = [*SIDES[name], *more]
    lines, constants = parts(own_tokens(flags))
    stored = re.compile(IN_IMAGES)
    return {*macros(flags), *lines, *(f"{'image ' if stored.match(line) else ''}constant {line}"
                                      for line in values(constants, flags))}


def knobs():
    """What the headers ask for with #if and do not set themselves, by name. A name that nobody defines is
    seen by no compiler, so these are read from the text."""
    text = "".join(code.code_only(path.read_text(encoding="utf-8")) for path in helpers.HEADERS)
    asked = set()
    for line in re.findall(r"^[ \t]*#[ \t]*(?:if|ifdef|ifndef|elif)\b(.*(?:\\\n.*)*)", text, re.M):
        asked |= set(re.findall(r"\bNPUPROF_\w*[A-Z]\b", line))
    asked |= {"NPUPROF_UNMASK"} & set(re.findall(r"\bNPUPROF_\w*[A-Z]\b", text))      # goes with NPUPROF_MASK
    return {f"knob {name}" for name in asked - NO_KNOBS}


def lines():
    """All of it. What only one side has says so."""
    found = {name: side(name) for name in SIDES}
    both = found["host"] & found["firmware"]
    result = both | knobs()
    for name, own in found.items():
        result |= {f"{line} [{name}]" for line in own - both}
    return {f"c {line}" for line in result}
