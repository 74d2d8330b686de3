# SPDX-License-Identifier: MIT
"""Law 3: how long a part, a function and a line may be, how deep blocks may nest, how many parameters a
private function may take."""

import ast
import re

from . import code
from .tree import ROOTS

PART_LINES = (50, 500)
FUNCTION_LINES = 60
COLUMNS = 110
NESTING = 4
PARAMETERS = 6
CONDITION_LINES = 20        # an #else or #endif farther than this from its #if bears the condition
PYTHON_LINES = 500
SCRIPT_LINES = 400          # of the page's script
SMALLER = {                 # parts that may be smaller, each with the reason
    "src/npu/compiler.h": "the compilers' names have a part of their own",
    "src/numbers/text.h": "both recorders use it; hash.h and heap.h are for hosted code",
}
TAKES_MORE = {              # private functions with more parameters, each with the reason
    "npuprof_npu_begin_": "a macro of a user's file calls it, with all that the user gave",
    "npuprof_fw_put_event_": "a struct takes flash at each of its callers",
}
C_FILES = (".c", ".h", ".cpp")


def parts(tree):
    for part in tree.parts + [root for root in ROOTS if root in tree.texts]:
        lines = tree.texts[part].count("\n")
        if lines > PART_LINES[1]:
            yield part, lines, f"a part of {lines} lines, at most {PART_LINES[1]}"
        if lines < PART_LINES[0] and part not in SMALLER and part not in ROOTS:
            yield part, lines, f"a part of {lines} lines, at least {PART_LINES[0]}"
    for name, text in tree.hand_written(".py", ".js"):
        lines = text.count("\n")
        most = PYTHON_LINES if name.endswith(".py") else SCRIPT_LINES
        if lines > most:
            yield name, lines, f"a file of {lines} lines, at most {most}"


def functions(tree):
    """Not asked of tests: a main() may be one long list of cases."""
    for name, text in tree.hand_written(*C_FILES):
        for f in code.read(text).functions if not name.startswith("tests/") else ():
            lines = f.end - f.line + 1
            if lines > FUNCTION_LINES:
                yield name, f.line, f"{f.name}() has {lines} lines, at most {FUNCTION_LINES}"
            if f.depth > NESTING:
                yield name, f.line, f"{f.name}() nests {f.depth} deep, at most {NESTING}"


def parameters(tree):
    """Those of the headers' private functions. What a user calls has one for each thing he says."""
    for part in (part for part in tree.parts if part.startswith("src/")):
        lines = code.code_only(tree.texts[part]).split("\n")
        for f in code.read(tree.texts[part]).functions:
            head = "\n".join(lines[f.line - 1:f.brace]).partition(f"{f.name}(")[2]
            while re.search(r"\([^()]*\)", head):                  # parameters that are functions
                head = re.sub(r"\([^()]*\)", "", head)
            count = head.partition(")")[0].count(",") + 1
            if f.name.endswith("_") and count > PARAMETERS and f.name not in TAKES_MORE:
                yield part, f.line, f"{f.name}() has {count} parameters, at most {PARAMETERS}"


def columns(tree):
    for name, text in tree.hand_written(*C_FILES, ".py", ".js", ".mjs", ".css", ".sh"):
        for number, line in enumerate(text.split("\n"), 1):
            if len(line) > COLUMNS:
                yield name, number, f"{len(line)} columns, at most {COLUMNS}"


def blank_lines(tree):
    """One-line functions may stand together, as the stubs of OFF do."""
    for name, text in tree.hand_written(*C_FILES):
        lines = text.split("\n")
        found = sorted(code.read(text).functions, key=lambda f: f.line)
        for f, after in zip(found, found[1:]):
            one_line = f.line == f.end and after.line == after.end
            between = lines[f.end:after.line - 1]
            if f.end < after.line and not one_line and all(line.strip() for line in between):
                yield name, after.line, f"no blank line between {f.name}() and {after.name}()"


def conditions(tree):
    """The comment behind a far #else or #endif repeats a word of the condition it belongs to."""
    for name, text in tree.hand_written(*C_FILES):
        lines, stack, number = text.split("\n"), [], 0
        while number < len(lines):
            first = number
            directive = lines[number]
            while directive.endswith("\\") and number + 1 < len(lines):
                number += 1
                directive = directive[:-1] + lines[number]
            number += 1
            m = re.match(r"\s*#\s*(if|ifdef|ifndef|elif|else|endif)\b(.*)", directive)
            if not m:
                continue
            word, rest = m.groups()
            if word.startswith("if"):
                stack.append([first, words_of(rest)])
            elif stack and word == "elif":
                stack[-1] = [stack[-1][0], stack[-1][1] | words_of(rest)]
            elif stack:
                far = first - stack[-1][0] > CONDITION_LINES
                if far and not stack[-1][1] & words_of(rest):
                    away = f"{first - stack[-1][0]} lines from its #if"
                    yield name, first + 1, f"#{word} is {away} and does not bear its condition"
                if word == "endif":
                    stack.pop()


def words_of(text):
    return set(re.findall(r"\w+", text)) - {"defined"}


def sides(tree):
    """Hosted and firmware code stand beside each other, not in one part."""
    for part in tree.parts:
        room = tree.room(part)
        if room and room.kind != "both":
            only = code.code_only(tree.texts[part])
            for m in re.finditer(r"\bNPUPROF_FREESTANDING\b", only):
                yield part, code.line_of(only, m.start()), f"asks for {m.group(0)} in {room.kind} code"


def python_circles(tree):
    """No module of tools/npuprof/ imports itself, by whatever way."""
    files = [name for name in tree.texts if re.match(r"tools/npuprof/.+\.py$", name)]
    modules = {re.sub(r"^tools/|(/__init__)?\.py$", "", name).replace("/", "."): name for name in files}
    imports = {module: set(imported(module, name, tree.texts[name], modules))
               for module, name in modules.items()}
    for module, name in modules.items():
        seen, left = set(), list(imports[module])
        while left:
            other = left.pop()
            if other == module:
                by = sorted(m for m in seen if module in imports[m])
                yield name, 1, f"{module} imports itself" + (f", by {by[0]}" if by else "")
                break
            if other not in seen:
                seen.add(other)
                left += imports[other]


def imported(module, name, text, modules):
    """The modules of the package that one of them imports, also inside functions."""
    package = module.split(".") if name.endswith("__init__.py") else module.split(".")[:-1]
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Import):
            found = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            base = package[:len(package) - node.level + 1] if node.level else []
            base = ".".join(base + (node.module.split(".") if node.module else []))
            inside = [f"{base}.{alias.name}" for alias in node.names]
            found = [name if name in modules else base for name in inside]
        else:
            continue
        yield from (other for other in found if other in modules)
