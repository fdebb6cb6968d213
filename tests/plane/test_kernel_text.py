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
    return {node.name for node in ast.parse(source).body if isinstance(node, ast.FunctionDef)}


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
    """State belongs to the state of the plane; constants have a file of their own.  The compiler refuses the rest of what it cannot lower."""
    for name in FILES[1:]:
        _, *nodes = ast.parse(TEXTS[name]).body  # behind its docstring

        assert [ast.unparse(node) for node in nodes if not isinstance(node, ast.ImportFrom | ast.FunctionDef)] == []


# The layout of the kernel's rows in memory: what a step touches together stands on one line of cache.


LINE = 64


def test_a_channel_has_five_whole_lines():
    assert record_dtype(Channel).itemsize == 5 * LINE
