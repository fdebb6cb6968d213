"""The small changes a tool makes of a module: each operator, integer and condition, one at a time.

No targets are annotations, docstrings, asserts, texts of messages, decorators, `__repr__` and `__str__`: nothing
behaves differently there.
"""

from __future__ import annotations

import ast
from collections.abc import Callable
from typing import NamedTuple

from tests.places import ROOT

COMPARISONS = {
    ast.Lt: ast.LtE,
    ast.LtE: ast.Lt,
    ast.Gt: ast.GtE,
    ast.GtE: ast.Gt,
    ast.Eq: ast.NotEq,
    ast.NotEq: ast.Eq,
    ast.In: ast.NotIn,
    ast.NotIn: ast.In,
    ast.Is: ast.IsNot,
    ast.IsNot: ast.Is,
}
# the changed comparison is the negated condition
NEGATIONS = ast.Eq | ast.NotEq | ast.In | ast.NotIn | ast.Is | ast.IsNot
ARITHMETIC = {
    ast.Add: ast.Sub,
    ast.Sub: ast.Add,
    ast.Mult: ast.FloorDiv,
    ast.Div: ast.Mult,
    ast.FloorDiv: ast.Mult,
    ast.Mod: ast.FloorDiv,
    ast.LShift: ast.RShift,
    ast.RShift: ast.LShift,
    ast.BitAnd: ast.BitOr,
    ast.BitOr: ast.BitAnd,
    ast.BitXor: ast.BitAnd,
    ast.Pow: ast.Mult,
}
FUNCTIONS = {"min": "max", "max": "min", "any": "all", "all": "any"}
SILENT_KEYWORDS = {"strict", "repr", "slots", "frozen"}  # of calls: they tell or forbid something, but change no result
DECLARATION = ast.FunctionDef | ast.ClassDef
COMPOUND = (
    ast.If | ast.While | ast.For | ast.With | ast.Match | ast.match_case | ast.Try | ast.ExceptHandler | DECLARATION
)
BELOW = ("body", "orelse", "finalbody", "handlers", "cases")  # fields that hold statements
DECLARING = ast.arg | ast.AnnAssign | DECLARATION
DECLARED = ("annotation", "returns", "decorator_list", "bases", "keywords")  # their fields that compute nothing


class Mutant(NamedTuple):
    """One change of a module; `runner` makes it in a copy, as it breaks a rule."""

    path: str  # from the root of the repository
    number: int  # among the changes of its file
    line: int
    last_line: int
    before: str  # the statement, or the head of a compound one
    after: str

    @property
    def key(self):
        """What names the change, wherever its text moves within the file."""
        return self.path, self.before, self.after

    def broken_source(self, source):
        """The module with the change made."""
        tree = ast.parse(source)
        list(changes(tree))[self.number].make()
        return ast.unparse(ast.fix_missing_locations(tree))


class Change(NamedTuple):
    statement: ast.AST
    make: Callable[[], None]  # changes the tree in place
    undo: Callable[[], None]
    is_left_out: bool = False  # the whole statement


def mutants_of(path):
    """All of a file, in the order of its text."""
    found = []
    for number, change in enumerate(changes(ast.parse(path.read_text()))):
        before = head(change.statement)
        change.make()
        after = "pass" if change.is_left_out else head(change.statement)
        change.undo()
        found.append(Mutant(path.relative_to(ROOT).as_posix(), number, *lines_of(change.statement), before, after))
    return found


def changes(node):
    """Those of the statements below a node."""
    for field in BELOW:
        for index, statement in enumerate(getattr(node, field, ())):
            if no_target(statement):
                continue
            yield from of_whole(node, field, index, statement)
            for make, undo in of_expressions(statement, statement):
                yield Change(statement, make, undo)
            yield from changes(statement)


def no_target(statement):
    match statement:
        case ast.Assert() | ast.Import() | ast.ImportFrom() | ast.Global() | ast.Nonlocal() | ast.Pass():
            return True
        case ast.Expr(ast.Constant()):  # docstrings and ...
            return True
        case ast.FunctionDef(name=name):
            return name in {"__repr__", "__str__"}
        case ast.If(test=ast.Name(id="TYPE_CHECKING")):
            return True
        case ast.Assign(targets=[ast.Name(id="__all__")]):
            return True
        case ast.Assign(value=value):
            return is_union_of_types(value)
        case ast.Expr(ast.Call(func=ast.Attribute(value=ast.Name(id="warnings" | "log" | "logger")))):
            return True
    return False


def is_union_of_types(node):
    match node:
        case ast.BinOp(op=ast.BitOr(), left=left, right=right):
            return all(
                isinstance(side, ast.Name | ast.Attribute | ast.Constant) or is_union_of_types(side)
                for side in (left, right)
            )
    return False


def setting(parent, field, index, new):
    """Put another node in the place of one, and put the old one back."""
    holder = getattr(parent, field)

    def put(node):
        if index is None:
            setattr(parent, field, node)
        else:
            holder[index] = node

    old = holder if index is None else holder[index]
    if isinstance(old, ast.AST):
        ast.copy_location(new, old)
    return (lambda: put(new)), (lambda: put(old))


def of_whole(parent, field, index, statement):
    """A statement that does something is left out, a returned value is dropped."""
    match statement:
        case (
            ast.Expr()
            | ast.AugAssign()
            | ast.Delete()
            | ast.Raise()
            | ast.Break()
            | ast.Continue()
            | ast.Assign(targets=[ast.Attribute() | ast.Subscript()])
        ):
            # the compiler drops it, but a function that yields goes on being a generator
            never = ast.If(ast.Constant(False), [statement], [])
            yield Change(statement, *setting(parent, field, index, never), is_left_out=True)
        case ast.Return(value=value) if value is not None and not (
            isinstance(value, ast.Constant) and value.value is None
        ):
            yield Change(statement, *setting(statement, "value", None, ast.Constant(None)))


def of_expressions(node, statement):
    """Those of the expressions of a statement, without the statements below it."""
    if isinstance(node, ast.Raise | ast.JoinedStr | ast.MatchValue | ast.ExceptHandler):
        return
    if isinstance(node, ast.keyword) and node.arg in SILENT_KEYWORDS:
        return
    for field, value in ast.iter_fields(node):
        if (node is statement and isinstance(node, COMPOUND) and field in BELOW) or (
            isinstance(node, DECLARING) and field in DECLARED
        ):
            continue
        for index, child in enumerate(value) if isinstance(value, list) else ((None, value),):
            if isinstance(child, ast.expr):
                yield from of_expression(node, field, index, child)
            if isinstance(child, ast.AST):
                yield from of_expressions(child, statement)


def of_expression(parent, field, index, node):
    condition = (field == "test" and isinstance(parent, ast.If | ast.While | ast.IfExp)) or field in {"ifs", "guard"}
    if condition and not is_negated_otherwise(node):
        yield setting(parent, field, index, ast.UnaryOp(ast.Not(), node))
    match node:
        case ast.Compare(ops=ops):
            for place, operator in enumerate(ops):
                yield setting(node, "ops", place, COMPARISONS[type(operator)]())
        case ast.BoolOp(op=operator):
            yield setting(node, "op", None, ast.Or() if isinstance(operator, ast.And) else ast.And())
        case ast.UnaryOp(op=ast.Not(), operand=operand):
            yield setting(parent, field, index, operand)
        case ast.UnaryOp(op=ast.USub(), operand=operand) if not isinstance(operand, ast.Constant):
            yield setting(parent, field, index, operand)
        case ast.BinOp(op=operator, left=left, right=right) if type(operator) in ARITHMETIC and not (
            is_text(left) or is_text(right)
        ):
            yield setting(node, "op", None, ARITHMETIC[type(operator)]())
        case ast.Constant(value=bool(value)):
            yield setting(parent, field, index, ast.Constant(not value))
        case ast.Constant(value=int(value) | float(value)):
            yield setting(parent, field, index, ast.Constant(value + 1))
        case ast.Name(id=name) if name in FUNCTIONS and isinstance(parent, ast.Call) and field == "func":
            yield setting(parent, field, index, ast.Name(FUNCTIONS[name], ast.Load()))
    if isinstance(parent, ast.AugAssign) and field == "value" and type(parent.op) in ARITHMETIC and not is_text(node):
        yield setting(parent, "op", None, ARITHMETIC[type(parent.op)]())


def is_negated_otherwise(node):
    """Whether another change of this condition is its negation."""
    match node:
        case ast.Compare(ops=[operator]):
            return isinstance(operator, NEGATIONS)
        case ast.UnaryOp(op=ast.Not()) | ast.Constant():
            return True
    return False


def is_text(node):
    return isinstance(node, ast.JoinedStr) or (isinstance(node, ast.Constant) and isinstance(node.value, str))


def unparsed(node):
    """The text of a node, the same in every Python: since 3.12 a text inside of an f-string has the quotes of the f-string."""
    return ast.unparse(node).replace('"', "'")


def head(statement):
    """A statement in one line, a compound one without what is below it."""
    match statement:
        case ast.If(test=test):
            return f"if {unparsed(test)}"
        case ast.While(test=test):
            return f"while {unparsed(test)}"
        case ast.For(target=target, iter=iterated):
            return f"for {unparsed(target)} in {unparsed(iterated)}"
        case ast.With(items=items):
            return f"with {', '.join(unparsed(item) for item in items)}"
        case ast.Match(subject=subject):
            return f"match {unparsed(subject)}"
        case ast.match_case(pattern=pattern, guard=guard):
            return f"case {unparsed(pattern)}" + (f" if {unparsed(guard)}" if guard else "")
        case ast.FunctionDef(name=name, args=arguments):
            return f"def {name}({unparsed(arguments)})"
        case ast.ClassDef(name=name):
            return f"class {name}"
        case ast.Try() | ast.ExceptHandler():
            return "try"
    return " ".join(unparsed(statement).split())


def lines_of(statement):
    """From, to: a compound statement ends before what is below it."""
    if isinstance(statement, ast.match_case):
        return statement.pattern.lineno, statement.body[0].lineno
    first = statement.lineno  # type: ignore[attr-defined]
    body = getattr(statement, "body", None)
    if isinstance(statement, COMPOUND) and isinstance(body, list) and body:
        return first, max(first, body[0].lineno - 1)
    return first, statement.end_lineno or first  # type: ignore[attr-defined]
