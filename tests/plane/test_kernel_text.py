"""The kernel keeps to the language that interpreter and compiler read alike."""

import ast
import importlib
import inspect
import re

import pytest

from sim.plane import text

FILES = [name.replace("/", ".") for name in re.findall(r"^    ([\w/]+) ", text.__doc__, re.MULTILINE)]
TEXTS = {name: inspect.getsource(importlib.import_module(f"{text.__name__}.{name}")) for name in FILES}

STATEMENTS = (ast.Return, ast.Assign, ast.AugAssign, ast.If, ast.While, ast.For, ast.Break, ast.Continue, ast.Expr)
EXPRESSIONS = (
    ast.BoolOp,
    ast.BinOp,
    ast.UnaryOp,
    ast.Compare,
    ast.Call,
    ast.Constant,
    ast.Attribute,
    ast.Subscript,
    ast.Name,
)
OPERATORS = (
    ast.And,
    ast.Or,
    ast.Not,
    ast.USub,
    ast.Invert,
    ast.Add,
    ast.Sub,
    ast.Mult,
    ast.FloorDiv,
    ast.Mod,
    ast.LShift,
    ast.RShift,
    ast.BitAnd,
    ast.BitOr,
    ast.BitXor,
    ast.Eq,
    ast.NotEq,
    ast.Lt,
    ast.LtE,
    ast.Gt,
    ast.GtE,
    ast.Load,
    ast.Store,
)
TYPES = {"PlaneState", "int", "bool", "None"}


def complaints(source, known):
    """What in a kernel file is not in the language; `known` functions stand before it."""
    tree = ast.parse(source)
    known = known | {node.name for node in tree.body if isinstance(node, ast.FunctionDef)}
    wrong = []
    for node in tree.body:
        if isinstance(node, ast.FunctionDef):
            wrong += [f"{node.name}: line {line}: {what}" for line, what in in_function(node, known)]
        elif not isinstance(node, ast.ImportFrom) and not is_text(node):
            wrong.append(f"line {node.lineno}: {ast.unparse(node)} is kept in a module")
    return wrong


def in_function(function, known):
    a = function.args
    if function.decorator_list or a.defaults or a.kwonlyargs or a.posonlyargs or a.vararg or a.kwarg:
        yield function.lineno, "plain positional arguments only"
    for annotation in [*(arg.annotation for arg in a.args), function.returns]:
        if annotation is None or ast.unparse(annotation) not in TYPES:
            yield function.lineno, "an argument or the result is no PlaneState, int, bool or None"
    body = function.body[1:] if is_text(function.body[0]) else function.body
    for statement in body:
        for node in ast.walk(statement):
            if not isinstance(node, STATEMENTS + EXPRESSIONS + OPERATORS):
                yield getattr(node, "lineno", statement.lineno), f"{type(node).__name__}: {ast.unparse(node)}"
            else:
                yield from ((node.lineno, f"{what}: {ast.unparse(node)}") for what in misused(node, known))


def misused(node, known):
    match node:
        case ast.Constant(value) if type(value) not in (int, bool):
            yield "no integer"
        case ast.Constant(value) if not -(2**63) <= value < 2**63:
            yield "too large"
        case ast.Assign(targets) if len(targets) > 1 or not isinstance(
            targets[0], ast.Name | ast.Attribute | ast.Subscript
        ):
            yield "one target at a time"
        case ast.For(_, ast.Call(ast.Name("range"), [_] | [_, _], []), _, []):
            pass
        case ast.For() | ast.While(orelse=[_, *_]):
            yield "loops count with range(n) or range(a, b) and have no else"
        case ast.Call(ast.Name("range")):
            pass  # not in a loop: the compiler refuses it
        case ast.Call(ast.Name(name), _, []) if name in known:
            pass
        case ast.Call():
            yield "only functions of the kernel are called, by position"
        case ast.Expr(value) if not isinstance(value, ast.Call):
            yield "has no effect"


def is_text(node):
    return isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant) and isinstance(node.value.value, str)


def functions(source):
    return {node.name for node in ast.parse(source).body if isinstance(node, ast.FunctionDef)}


@pytest.mark.parametrize("name", FILES[1:])  # the first holds the constants
def test_kernel_files_keep_to_the_language(name):
    """Integers, rows by attribute, while, if, for over a range, calls of the kernel's functions; nothing else."""
    known = set().union(*(functions(TEXTS[other]) for other in FILES[: FILES.index(name)]))

    assert complaints(TEXTS[name], known) == []


@pytest.mark.parametrize("name", FILES)
def test_kernel_files_know_only_those_before_them(name):
    """Imports point backwards in the order of reading."""
    allowed = {f"sim.plane.text.{other}" for other in FILES[: FILES.index(name)]} | {"sim.plane.rows"}
    if name == FILES[0]:
        allowed |= {"sim.plane.interface", "sim.plane.spec"}
    modules = {node.module for node in ast.walk(ast.parse(TEXTS[name])) if isinstance(node, ast.ImportFrom)}

    assert set() == modules - allowed


def test_names_are_integers():
    """Constants are plain integers: an enumeration would be another type for the compiler."""
    names = importlib.import_module("sim.plane.text.basics")

    assert {name: value for name, value in vars(names).items() if name.isupper() and type(value) is not int} == {}


def test_function_names_are_unique():
    """The compiler binds functions by name."""
    every = [name for source in TEXTS.values() for name in sorted(functions(source))]

    assert sorted(set(every)) == sorted(every)


@pytest.mark.parametrize(
    "line",
    [
        "x = [1]",
        "x = (1, 2)",
        "x, y = 1, 2",
        "x = 1.5",
        "x = 'a'",
        "x = 1 / 2",
        "x = 2 ** 3",
        "x = w.words[1:2]",
        "x = {}",
        "x = f'{t}'",
        "x = lambda: 1",
        "x = [i for i in range(3)]",
        "raise ValueError",
        "assert t",
        "print(t)",
        "x = t if t else 1",
        "global x",
        "del t",
        "x = y = 1",
        "x = t is None",
        "x = t in w.words",
        "work(w, t=1)",
        "x = 9223372036854775808",
        "try:\n  pass\nfinally:\n  pass",
        "for i in w.words:\n  work(w, i)",
        "while t:\n  break\nelse:\n  t = 1",
        "def inner() -> None:\n  return",
        "w.words.append(1)",
        "pass",
        "t",
    ],
)
def test_everything_else_is_refused(line):
    """The lint sees what it is there for."""
    source = "def work(w: PlaneState, t: int) -> None:\n" + "\n".join("    " + part for part in line.split("\n"))

    assert complaints(source, set()) != []


@pytest.mark.parametrize(
    "arguments", ["w: PlaneState, t: int = 0", "w: PlaneState, t: float", "w", "*w: PlaneState", "*, w: PlaneState"]
)
def test_signatures_are_plain(arguments):
    """PlaneState, int and bool are the only types; nothing is optional."""
    assert complaints(f"def work({arguments}) -> None:\n    return\n", set()) != []


def test_modules_keep_nothing():
    """State belongs to the state of the plane."""
    assert complaints("COUNT = 0\n", set()) != []
