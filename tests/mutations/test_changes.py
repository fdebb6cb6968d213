"""Which changes the tool makes of a text, and that each of them is Python and differs from what was there."""

import ast

import pytest

from tests.mutations.changes import ROOT, changes, head, mutants_of


def changed(text):
    """What becomes of the statements of a text."""
    after = []
    for change in changes(ast.parse(text)):
        change.make()
        after.append("pass" if change.is_left_out else head(change.statement))
        change.undo()
    return after


@pytest.mark.parametrize(
    ("text", "after"),
    [
        ("x = a < b", ["x = a <= b"]),
        ("x = a >= b", ["x = a > b"]),
        ("x = a in b", ["x = a not in b"]),
        ("x = a is None", ["x = a is not None"]),
        ("x = a and b", ["x = a or b"]),
        ("x = not a", ["x = a"]),
        ("x = a + b", ["x = a - b"]),
        ("x = a * 3", ["x = a // 3", "x = a * 4"]),
        ("x = True", ["x = False"]),
        ("x = min(a, b)", ["x = max(a, b)"]),
        ("x += a", ["pass", "x -= a"]),
        ("x.y = a", ["pass"]),
        ("f(a)", ["pass"]),
        ("if a < b: pass", ["if not a < b", "if a <= b"]),
        ("if a == b: pass", ["if a != b"]),
        ("while f(a): pass", ["while not f(a)"]),
        ("x = [a for a in b if a]", ["x = [a for a in b if not a]"]),
        ("def f():\n    return a", ["return None"]),
        ("def f():\n    raise KeyError(1 + 2)", ["pass"]),
        ("def f(a=0): pass", ["def f(a=1)"]),
        ("match x:\n    case 1 if a:\n        pass", ["case 1 if not a"]),
        ("class C:\n    size: int = 0", ["size: int = 1"]),
    ],
)
def test_an_operator_a_number_a_condition_or_a_statement_changes(text, after):
    assert after == changed(text)


@pytest.mark.parametrize(
    "text",
    [
        "'a docstring'",
        "def f():\n    return None",
        "def f(a: 'int' = b) -> 'int': pass",
        "assert a < b, 1",
        "__all__ = ['a']",
        "Either = A | B | None",
        "x = f'{a + 1}'",
        "x = 'a' + b",
        "def __repr__(self): return 1",
        "x = zip(a, b, strict=True)",
    ],
)
def test_words_types_and_assertions_are_no_targets(text):
    assert changed(text) == []


def test_every_change_of_a_file_is_python_and_leaves_the_others_alone():
    path = ROOT / "sim" / "protocol" / "recovery.py"
    source = path.read_text()
    texts = [mutant.broken_source(source) for mutant in mutants_of(path)]

    assert len(texts) > 30
    assert len(texts) == len({*texts, ast.unparse(ast.parse(source))}) - 1
    for text in texts:
        compile(text, path.name, "exec")
