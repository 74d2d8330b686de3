# SPDX-License-Identifier: MIT
"""Reads C as far as the laws need it: what is code, where a function begins and ends, what a file defines.

No preprocessor: both branches of an #if are read, each from the nesting depth at its #if.
"""

import bisect
import functools
import re
from typing import NamedTuple

COMMENT_OR_STRING = re.compile(r'/\*.*?\*/|//[^\n]*|"(?:\\.|[^"\\\n])*"|\'(?:\\.|[^\'\\\n])*\'', re.S)
DIRECTIVE = re.compile(r"^[ \t]*#(?:[^\n]*\\\n)*[^\n]*", re.M)
INCLUDE = re.compile(r'^[ \t]*#[ \t]*include[ \t]+"([^"]+)"', re.M)
TOKEN = re.compile(r"\w+|[{}();,=#]|[^\s\w]")
NO_FUNCTION = {"if", "for", "while", "switch", "return", "sizeof", "do", "else", "defined", "__attribute__"}


def blank(text, pattern):
    """The text with all that matches replaced by spaces; lines stay where they are."""
    return pattern.sub(lambda m: re.sub(r"[^\n]", " ", m.group(0)), text)


@functools.lru_cache(maxsize=None)
def code_only(text):
    """Comments and strings blanked."""
    return blank(text, COMMENT_OR_STRING)


def line_of(text, offset):
    return text.count("\n", 0, offset) + 1


class Function(NamedTuple):
    name: str
    line: int         # of the first word of its declaration
    brace: int        # line of the opening brace
    end: int          # line of the closing brace
    depth: int        # blocks inside each other, its own body not counted


class Source(NamedTuple):
    functions: list   # of Function
    declared: dict    # name to line: functions and variables that are only declared
    types: dict       # name to line: struct, enum and union bodies and typedefs
    variables: dict   # name to line: those outside of functions


@functools.lru_cache(maxsize=None)
def read(text):
    """The functions and types of one C file."""
    return Reader(text).source()


class Brace:
    """An open brace: what it opened, and what the statement before it was."""

    def __init__(self, kind, name, line, brace, statement):
        self.kind, self.name, self.line, self.brace, self.statement = kind, name, line, brace, statement
        self.depth = 0    # of a function: the deepest block seen in it


class Reader:
    """Goes through the tokens once. `statement`: what stands since the last ; { or }. `stack`: the braces."""

    def __init__(self, text):
        code = code_only(text)
        self.starts = [0] + [m.end() for m in re.finditer("\n", code)]
        self.directives = [(m.start(), m.group(0).split("#", 1)[1].split()) for m in DIRECTIVE.finditer(code)]
        self.code = blank(code, DIRECTIVE)
        self.functions, self.declared, self.types, self.variables = [], {}, {}, {}
        self.stack, self.statement = [], []

    def line(self, offset):
        return bisect.bisect_right(self.starts, offset)

    def source(self):
        events = [(m.start(), m.group(0), False) for m in TOKEN.finditer(self.code)]
        events += [(at, words[0] if words else "", True) for at, words in self.directives]
        branches = []     # stack and statement at each open #if
        for at, word, directive in sorted(events):
            if not directive:
                self.token(at, word)
            elif word in ("if", "ifdef", "ifndef"):
                branches.append((list(self.stack), list(self.statement)))
            elif word in ("else", "elif") and branches:
                self.stack, self.statement = list(branches[-1][0]), list(branches[-1][1])
            elif word == "endif" and branches:
                branches.pop()
        return Source(self.functions, self.declared, self.types, self.variables)

    def token(self, at, word):
        if word == "{":
            self.open(at)
        elif word == "}":
            self.close(at)
        elif word == ";" and not self.in_parentheses():
            self.end_of_statement()
            self.statement = []
        else:
            self.statement.append((at, word))

    def in_parentheses(self):
        words = [word for _, word in self.statement]
        return words.count("(") > words.count(")")

    def function(self):
        return next((brace for brace in self.stack if brace.kind == "function"), None)

    def kind_of_brace(self, words):
        is_type = bool({"struct", "union", "enum"} & set(words))
        if self.function() and words[-1:] == [")"] and not self.in_parentheses():
            return "block" if re.match(r"[A-Za-z]", before_parentheses(words)) else "value"
        if self.function():
            if not words or words[-1] in ("do", "else", ":"):
                return "block"
            return "type" if is_type and "=" not in words else "value"
        if self.in_parentheses() or "=" in words:
            return "value"
        if ")" in words and words[0] not in ("struct", "union", "enum", "typedef"):
            return "function"
        return "type" if is_type else "block"

    def open(self, at):
        words = [word for _, word in self.statement]
        start = self.line(self.statement[0][0] if self.statement else at)
        kind, name = self.kind_of_brace(words), ""
        if kind == "function":
            name = function_name(words)
        elif kind == "type" and words[-1] not in ("struct", "union", "enum"):
            name = words[words.index(":") - 1] if ":" in words else words[-1]     # a C++ struct and its base
            self.types.setdefault(name, start)
        # Why kept: the braces of a value and of a type are part of a statement that goes on behind them.
        keeps = kind in ("value", "type")
        self.stack.append(Brace(kind, name, start, self.line(at), self.statement if keeps else []))
        self.statement = []
        function = self.function()
        if kind == "block" and function:
            inside = self.stack[self.stack.index(function):]
            function.depth = max(function.depth, sum(brace.kind == "block" for brace in inside))

    def close(self, at):
        self.statement = []
        if not self.stack:
            return
        brace = self.stack.pop()
        self.statement = brace.statement
        if brace.kind == "function" and brace.name:
            self.functions.append(Function(brace.name, brace.line, brace.brace, self.line(at), brace.depth))

    def end_of_statement(self):
        """Outside of functions: a typedef, a variable, or a function's declaration."""
        words = [word for _, word in self.statement]
        if self.function() or not words:
            return
        line = self.line(self.statement[0][0])
        if words[0] == "typedef":
            pointer = re.search(r"\( \* (\w+) \) \(", " ".join(words))
            self.types.setdefault(pointer.group(1) if pointer else words[-1], line)
        elif all(brace.kind != "type" for brace in self.stack):
            name, variable = function_name(words), variable_name(words)
            if name and "=" not in words:
                self.declared.setdefault(name, line)
            if variable:
                (self.declared if words[0] == "extern" else self.variables).setdefault(variable, line)


def variable_name(words):
    """What is defined here: the word before its value, its size or the end."""
    found = re.search(r"(\w+)(?: [A-Z]\w*_)*(?: \[| =(?! =)|$)", " ".join(words))
    return found.group(1) if found and len(words) > 1 else ""


def before_parentheses(words):
    """The word before the parentheses that end here: `if` of an if (...), `=` of a compound literal."""
    depth = 0
    for i in range(len(words) - 1, 0, -1):
        depth += (words[i] == ")") - (words[i] == "(")
        if depth == 0:
            return words[i - 1] if words[i - 1] not in ("return", "sizeof") else ""
    return ""


def function_name(words):
    """The name before the first parenthesis that is no attribute's."""
    depth = 0
    for i, word in enumerate(words):
        if word == "(" and depth == 0 and i and re.fullmatch(r"[A-Za-z]\w*", words[i - 1]):
            if words[i - 1] not in NO_FUNCTION and not re.fullmatch(r"[A-Z][A-Z0-9_]*", words[i - 1]):
                return words[i - 1]
        depth += (word == "(") - (word == ")")
    return ""
