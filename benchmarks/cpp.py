"""The kernel's own text as C++: the yardstick for what the compiler of the product leaves on the table.

The restricted Python of ``sim.plane.text`` is printed statement by statement, compiled by ``g++ -O3 -march=native`` and
run on the same memory.  A state is a structure of base addresses, rows are structures of integers, in the order and
of the width in which the product lays them out.  Not part of the product: nobody who uses it needs a C++ compiler.
"""

from __future__ import annotations

import ast
import ctypes
import inspect
import shutil
import subprocess
import tempfile
from functools import cache
from pathlib import Path
from typing import Any, get_args, get_type_hints
from unittest.mock import patch

from sim.plane import lowering, machine_code
from sim.plane.interface import PlaneSpec
from sim.plane.kernel import KernelPlane
from sim.plane.rows import PlaneState, record_dtype
from sim.plane.text.loop import Kernel

__all__ = ["available", "cpp_plane", "print_kernel"]

OPERATORS: dict[type, str] = {
    ast.Add: "+",
    ast.Sub: "-",
    ast.Mult: "*",
    ast.BitAnd: "&",
    ast.BitOr: "|",
    ast.BitXor: "^",
    ast.LShift: "<<",
    ast.RShift: ">>",
    ast.Eq: "==",
    ast.NotEq: "!=",
    ast.Lt: "<",
    ast.LtE: "<=",
    ast.Gt: ">",
    ast.GtE: ">=",
    ast.And: " && ",
    ast.Or: " || ",
    ast.USub: "-",
    ast.Not: "!",
    ast.Invert: "~",
}
INTEGER = "i64"
KEYWORDS = {
    "new",
    "delete",
    "this",
    "int",
    "long",
    "short",
    "signed",
    "unsigned",
    "register",
    "union",
    "switch",
    "default",
    "operator",
}
PRELUDE = """#include <cstdint>
typedef int64_t i64;
static inline i64 floor_div(i64 a, i64 b) { i64 q = a / b; return q - (a % b != 0 && (a < 0) != (b < 0)); }
static inline i64 floor_mod(i64 a, i64 b) { return a - b * floor_div(a, b); }
"""


def safe(name: str) -> str:
    """A name of the text that C++ keeps for itself gets a tail."""
    return f"{name}_" if name in KEYWORDS else name


def state_types() -> dict[str, str]:
    """What the fields of a state are in C++: "Task*" for one row or many, "i64*" for words."""
    types = {}
    for name, hint in get_type_hints(PlaneState).items():
        row = get_args(hint)[0] if get_args(hint) else hint
        types[name] = "i64*" if row is int else f"{row.__name__}*"
    return types


class Printer:
    """One function; `kinds` are the C++ types of its names, "i64" if not said otherwise."""

    def __init__(self, state: dict[str, str], function: ast.FunctionDef) -> None:
        self.state = state
        self.function = function
        self.kinds = {function.args.args[0].arg: "PlaneState*"} if function.args.args and self.takes_state() else {}
        self.lines: list[str] = []
        for node in ast.walk(function):
            if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name):
                self.kinds[node.targets[0].id] = self.kind(node.value)

    def takes_state(self) -> bool:
        first = self.function.args.args[0]
        annotation = ast.Name("PlaneState") if first.arg == "self" else first.annotation
        return isinstance(annotation, ast.Name) and annotation.id == "PlaneState"

    def kind(self, node: ast.expr) -> str:
        match node:
            case ast.Name(name):
                return self.kinds.get(name, INTEGER)
            case ast.Attribute(ast.Name(name), field) if self.kinds.get(name) == "PlaneState*":
                return self.state[field]
            case ast.Subscript(value, _):
                return self.kind(value) if self.kind(value) != "i64*" else INTEGER
        return INTEGER

    def signature(self) -> str:
        result = {"None": "void", "bool": "bool", "int": INTEGER}[
            ast.unparse(self.function.returns or ast.Constant(None))
        ]
        arguments = ", ".join(f"{self.kinds.get(arg.arg, INTEGER)} {safe(arg.arg)}" for arg in self.function.args.args)
        return f"{result} {self.function.name}({arguments})"

    def text(self) -> str:
        if self.function.name == Kernel.fetch.__name__:
            lines = " ".join(
                f"__builtin_prefetch((char*)&self->channels[c] + {64 * line}, 1);" for line in range(lowering.HOT_LINES)
            )
            # else g++ takes it for a function without effect
            return f'static {self.signature()} {{ {lines} __asm__ volatile(""); }}'
        self.block(self.function.body)
        arguments = {arg.arg for arg in self.function.args.args}
        declared = [f"{kind} {safe(name)};" for name, kind in self.kinds.items() if name not in arguments]
        end = [] if self.signature().startswith("void") else ["__builtin_unreachable();"]
        return "\n".join([f"static {self.signature()} {{", *declared, *self.lines, *end, "}"])

    def expression(self, node: ast.expr) -> str:
        e = self.expression
        match node:
            case ast.Constant(bool(value)):
                return "true" if value else "false"
            case ast.Constant(int(value)):
                return f"{value}LL"
            case ast.Name(name):
                return safe(name)
            case ast.Attribute(value, field):
                return f"{e(value)}->{field}"
            case ast.Subscript(value, index):
                element = f"{e(value)}[{e(index)}]"
                return element if self.kind(value) == "i64*" else f"(&{element})"
            case ast.BinOp(left, ast.FloorDiv(), right):
                return f"floor_div({e(left)}, {e(right)})"
            case ast.BinOp(left, ast.Mod(), right):
                return f"floor_mod({e(left)}, {e(right)})"
            case ast.BinOp(left, operator, right) if type(operator) in OPERATORS:
                return f"({e(left)} {OPERATORS[type(operator)]} {e(right)})"
            case ast.UnaryOp(operator, operand):
                return f"({OPERATORS[type(operator)]}{e(operand)})"
            case ast.BoolOp(operator, parts):
                return "(" + OPERATORS[type(operator)].join(map(e, parts)) + ")"
            case ast.Compare(left, operators, comparators):
                chained = zip([left, *comparators], operators, comparators, strict=False)
                return "(" + " && ".join(f"{e(a)} {OPERATORS[type(o)]} {e(b)}" for a, o, b in chained) + ")"
            case ast.IfExp(test, body, orelse):
                return f"({e(test)} ? {e(body)} : {e(orelse)})"
            case ast.Call(ast.Attribute(state, name), arguments, []):
                return f"{name}({', '.join(map(e, [state, *arguments]))})"
            case ast.Call(ast.Name(name), arguments, []):
                return f"{name}({', '.join(map(e, arguments))})"
        raise SyntaxError(f"{self.function.name}: no part of restricted Python: {ast.unparse(node)}")

    def block(self, statements: list[ast.stmt]) -> None:
        for statement in statements:
            self.statement(statement)

    def statement(self, node: ast.stmt) -> None:
        e, write = self.expression, self.lines.append
        match node:
            case ast.Expr(ast.Constant(str())) | ast.Pass():
                pass
            case ast.Expr(value):
                write(f"{e(value)};")
            case ast.Assign([target], value):
                write(f"{e(target)} = {e(value)};")
            case ast.AugAssign(target, operator, value):
                write(f"{e(target)} = {e(ast.BinOp(target, operator, value))};")
            case ast.If(test, body, orelse):
                write(f"if ({e(test)}) {{")
                self.block(body)
                write("} else {")
                self.block(orelse)
                write("}")
            case ast.While(test, body, []):
                write(f"while ({e(test)}) {{")
                self.block(body)
                write("}")
            case ast.For(ast.Name(name), ast.Call(ast.Name("range"), arguments, []), body, []):
                first, last = (["0LL"] * (2 - len(arguments)) + [e(argument) for argument in arguments])[:2]
                write(f"for (i64 {name} = {first}, {name}_end = {last}; {name} < {name}_end; ++{name}) {{")
                self.block(body)
                write("}")
            case ast.Return(value):
                write(f"return {e(value)};" if value is not None else "return;")
            case ast.Break():
                write("break;")
            case ast.Continue():
                write("continue;")
            case _:
                raise SyntaxError(f"{self.function.name}: no part of restricted Python: {ast.unparse(node)}")


def print_row(row: type) -> str:
    """A structure of the same layout."""
    dtype = record_dtype(row)
    return (
        f"struct {row.__name__} {{ " + " ".join(f"{dtype[name].name}_t {name};" for name in dtype.names or ()) + " };"
    )


def print_kernel() -> str:
    """The whole kernel as one C++ file with one door."""
    types = state_types()
    rows = [get_args(hint)[0] if get_args(hint) else hint for hint in get_type_hints(PlaneState).values()]
    source = [PRELUDE]
    source += [print_row(row) for row in rows if row is not int]
    source.append("struct PlaneState { " + " ".join(f"{kind} {name};" for name, kind in types.items()) + " };")
    constants: dict[str, int] = {}
    printers = []
    for module in machine_code.kernel_modules():
        constants |= {name: value for name, value in vars(module).items() if name.isupper() and isinstance(value, int)}
        body = ast.parse(inspect.getsource(module)).body
        methods = [node for owner in body if isinstance(owner, ast.ClassDef) for node in owner.body]
        printers += [Printer(types, node) for node in [*body, *methods] if isinstance(node, ast.FunctionDef)]
    source.append("namespace plane {")
    source += [f"static const i64 {name} = {value}LL;" for name, value in constants.items()]
    source += [f"static {printer.signature()};" for printer in printers]
    source += [printer.text() for printer in printers]
    arguments = "PlaneState* w, i64 op, i64 t, i64 a, i64 b, i64 c, i64 d"
    source += ["}", f'extern "C" i64 enter({arguments}) {{ return plane::dispatch_operation(w, op, t, a, b, c, d); }}']
    return "\n".join(source)


def available() -> bool:
    """Whether there is a C++ compiler."""
    return shutil.which("g++") is not None


@cache
def cpp_door() -> Any:
    """The kernel's door, built once per process."""
    with tempfile.TemporaryDirectory() as folder:
        source, library = Path(folder) / "plane.cpp", Path(folder) / "plane.so"
        source.write_text(print_kernel())
        subprocess.run(["g++", "-O3", "-march=native", "-shared", "-fPIC", "-o", library, source], check=True)
        enter = ctypes.CDLL(str(library)).enter
    enter.argtypes, enter.restype = [ctypes.c_void_p, *[ctypes.c_int64] * 6], ctypes.c_int64
    return enter


def cpp_plane(spec: PlaneSpec) -> KernelPlane:
    """A compiled plane whose kernel is the C++ one; its memory, verbs and tables are the product's."""
    with patch.object(machine_code, "load_compiled_entry_point", cpp_door):
        return KernelPlane(spec, "compiled")
