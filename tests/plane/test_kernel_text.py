"""The kernel's text: the language that interpreter and compiler read alike, and its rows in memory."""

import ast
import importlib
import inspect
import re

import pytest

from sim.plane import text
from sim.plane.rows import Channel, record_dtype

# The kernel keeps to the language that interpreter and compiler read alike.


FILES = [name.replace("/", ".") for name in re.findall(r"^    ([\w/]+) ", text.__doc__, re.MULTILINE)]
TEXTS = {name: inspect.getsource(importlib.import_module(f"{text.__name__}.{name}")) for name in FILES}


def functions(source):
    """Functions and methods."""
    return {node.name for node in ast.walk(ast.parse(source)) if isinstance(node, ast.FunctionDef)}


@pytest.mark.parametrize("name", FILES)
def test_kernel_files_know_only_those_before_them(name):
    """Imports point backwards in the order of reading."""
    allowed = {f"sim.plane.text.{other}" for other in FILES[: FILES.index(name)]} | {"sim.plane.rows"}
    if name == FILES[0]:
        allowed |= {"sim.plane.interface"}
    modules = {node.module for node in ast.walk(ast.parse(TEXTS[name])) if isinstance(node, ast.ImportFrom)}

    assert set() == modules - allowed


def test_function_names_are_unique():
    """The compiler binds functions by name."""
    every = [name for source in TEXTS.values() for name in sorted(functions(source))]

    assert sorted(set(every)) == sorted(every)


def test_modules_keep_nothing():
    """State belongs to the state of the plane; constants have a file of their own, operations are numbered where they are dispatched.

    The compiler refuses the rest of what it cannot lower.
    """
    allowed = (ast.ImportFrom, ast.FunctionDef, ast.ClassDef)
    for name in FILES[1:]:
        _, *nodes = ast.parse(TEXTS[name]).body  # behind its docstring
        others = [ast.unparse(node) for node in nodes if not isinstance(node, allowed)]

        assert [line for line in others if not re.fullmatch(r"\(?[A-Z_, ]+\)? = range\(\d+\)", line)] == []


def test_classes_have_methods_only():
    """What a class keeps beside its rows would not exist in the compiled kernel."""
    for name in FILES:
        for node in ast.parse(TEXTS[name]).body:
            if isinstance(node, ast.ClassDef):
                _, slots, *methods = node.body

                assert ast.unparse(slots) == "__slots__ = ()"
                assert all(isinstance(method, ast.FunctionDef) for method in methods)


# The layout of the kernel's rows in memory: what a step touches together stands on one line of cache.


LINE = 64


def test_a_channel_has_five_whole_lines():
    assert record_dtype(Channel).itemsize == 5 * LINE
