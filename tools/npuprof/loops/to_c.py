# SPDX-License-Identifier: MIT
"""Writes the functions of kernels.py and kernels_inside.py as C, for npuprof_columns.c:
`python3 -m npuprof.loops.to_c`.

What they may use is what is translated here; anything else is an error with its line. A sum of more
than 64 bits, as of a file that holds nonsense, wraps around in C, which is built with -fwrapv; Python
computes it, and cannot put it into an array.
"""

import ast
import inspect
import sys

from ..base import contract
from . import kernels, native

TYPES = {"U8": "uint8_t", "I32": "int32_t", "U32": "uint32_t", "I64": "int64_t"}
SIGNS = {ast.Add: "+", ast.Sub: "-", ast.Mult: "*", ast.FloorDiv: "/", ast.And: "&&", ast.Or: "||",
         ast.Not: "!", ast.USub: "-", ast.Lt: "<", ast.LtE: "<=", ast.Gt: ">", ast.GtE: ">=", ast.Eq: "==",
         ast.NotEq: "!="}
INDENT = "    "
# What the readers in npuprof_columns.c know by name.
NUMBERS = """SPAN RECORD WARM_UP INFERENCE OPERATOR DEVICE
             UNFINISHED UNWOUND VIOLATED IN_WARM_UP SAMPLED COUNTED""".split()


class Function:
    """One function: `text` is its C."""

    def __init__(self, tree):
        self.arrays = {a.arg: TYPES[a.annotation.id] for a in tree.args.args if a.annotation}
        names = [a.arg for a in tree.args.args]
        stored = [node.id for node in ast.walk(tree)
                  if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)]
        lines = [f"{INDENT}int64_t {name} = 0;" for name in dict.fromkeys(stored) if name not in names]
        body = tree.body[isinstance(tree.body[0], ast.Expr) and isinstance(tree.body[0].value, ast.Constant):]
        lines += self.block(body)
        if not isinstance(tree.body[-1], ast.Return):
            lines.append(f"{INDENT}return 0;")
        given = ", ".join(f"{self.arrays[n]} *{n}" if n in self.arrays else f"int64_t {n}" for n in names)
        self.text = "\n".join([f"int64_t columns_{tree.name}({given})", "{", *lines, "}", ""])

    def block(self, statements, depth=1):
        return [INDENT * depth + line for statement in statements for line in self.statement(statement)]

    def braced(self, head, statements):
        return [head + " {", *self.block(statements), "}"]

    def statement(self, s):
        """Its lines."""
        if isinstance(s, ast.For) and not s.orelse:
            bounds = [self.value(a) for a in s.iter.args]
            first, end = bounds[:2] if len(bounds) > 1 else ("0", bounds[0])
            i, (sign, step) = s.target.id, (">", "--") if len(bounds) == 3 else ("<", "++")
            return self.braced(f"for ({i} = {first}; {i} {sign} {end}; {i}{step})", s.body)
        if isinstance(s, ast.While) and not s.orelse:
            return self.braced(f"while ({self.value(s.test)})", s.body)
        if isinstance(s, ast.If):
            lines = self.braced(f"if ({self.value(s.test)})", s.body)
            return lines[:-1] + self.braced("} else", s.orelse) if s.orelse else lines
        if isinstance(s, ast.Assign) and len(s.targets) == 1:
            return [f"{self.value(s.targets[0])} = {self.cast(s.targets[0])}{self.value(s.value)};"]
        if isinstance(s, ast.AugAssign):
            return [f"{self.value(s.target)} {SIGNS[type(s.op)]}= {self.value(s.value)};"]
        if isinstance(s, ast.Return):
            return [f"return {self.value(s.value)};"]
        if isinstance(s, ast.Expr) and isinstance(s.value, ast.Call):
            return [f"{self.value(s.value)};"]
        if isinstance(s, (ast.Continue, ast.Break)):
            return [f"{type(s).__name__.lower()};"]
        raise SyntaxError(f"line {s.lineno} of the kernels: a statement that has no C")

    def cast(self, target):
        """In front of what is put into an array of smaller numbers."""
        return f"({self.arrays[target.value.id]})" if isinstance(target, ast.Subscript) else ""

    def value(self, e):
        """An expression, in brackets unless it is a single thing."""
        value = self.value
        if isinstance(e, ast.Constant) and isinstance(e.value, int):
            return str(e.value)
        if isinstance(e, ast.Name):
            return constant(e.id) if e.id.isupper() else e.id
        if isinstance(e, ast.Subscript):
            return f"{value(e.value)}[{value(e.slice)}]"
        if isinstance(e, ast.UnaryOp):
            return f"{SIGNS[type(e.op)]}{value(e.operand)}"
        if isinstance(e, ast.BinOp):
            return f"({value(e.left)} {SIGNS[type(e.op)]} {value(e.right)})"
        if isinstance(e, ast.BoolOp):
            return "(" + f" {SIGNS[type(e.op)]} ".join(map(value, e.values)) + ")"
        if isinstance(e, ast.Compare) and len(e.ops) == 1:
            return f"({value(e.left)} {SIGNS[type(e.ops[0])]} {value(e.comparators[0])})"
        if isinstance(e, ast.IfExp):
            return f"({value(e.test)} ? {value(e.body)} : {value(e.orelse)})"
        if isinstance(e, ast.Call):
            return f"columns_{e.func.id}({', '.join(map(value, e.args))})"
        raise SyntaxError(f"line {e.lineno} of the kernels: an expression that has no C")


def constant(name):
    """A number of the contract; the least of 64 bits has no literal in C."""
    number = getattr(contract, name)
    return "INT64_MIN" if number == -2**63 else str(number)


def main():
    print("/* Made by to_c.py of kernels.py and kernels_inside.py. */")
    print(f"#define FORM {native.form()}u")
    print(f"enum {{ {', '.join(f'{name} = {getattr(contract, name)}' for name in NUMBERS)} }};")
    in_c = {function.__name__ for function in kernels.IN_C}
    for module in native.KERNELS:
        for function in ast.parse(inspect.getsource(module)).body:
            if isinstance(function, ast.FunctionDef) and function.name not in in_c:
                print("\n" + Function(function).text, end="")


if __name__ == "__main__":
    sys.exit(main())
