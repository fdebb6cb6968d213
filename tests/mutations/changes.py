"""The small changes a tool makes of a module: each operator, integer and condition, one at a time.

No targets are annotations, docstrings, asserts, texts of messages, decorators, `__repr__` and `__str__`: nothing
behaves differently there.
"""

from __future__ import annotations

import ast
from collections import Counter
from collections.abc import Callable
from functools import cache
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
    file: str  # below the root of the repository
    number: int  # among the changes of its file
    where: str  # the outermost function, or the class, or ""
    inside: bool  # a function; otherwise it takes effect at import
    line: int
    last_line: int
    before: str  # the statement, or the head of a compound one
    after: str
    occurrence: int  # 1, or more where the same change can be made to the same text of the file again

    @property
    def key(self):
        """What names the change, wherever its text moves within the file."""
        return self.file, self.before, self.after


class Change(NamedTuple):
    where: str
    inside: bool
    statement: ast.AST
    make: Callable[[], None]  # changes the tree in place
    undo: Callable[[], None]


@cache
def text_of(path):
    """As it was when the tool began: somebody may go on writing while it runs."""
    return path.read_text()


def mutants_of(path):
    """All of a file, in the order of its text."""
    found = []
    seen = Counter()
    for number, change in enumerate(changes(ast.parse(text_of(path)))):
        before = head(change.statement)
        change.make()
        after = head(change.statement)
        change.undo()
        seen[before, after] += 1
        first, last = lines_of(change.statement)
        file = path.relative_to(ROOT).as_posix()
        found.append(Mutant(file, number, change.where, change.inside, first, last, before, after, seen[before, after]))
    return found


def changed_tree(path, number):
    """The module with one of its changes made."""
    tree = ast.parse(text_of(path))
    list(changes(tree))[number].make()
    return ast.fix_missing_locations(tree)


def changes(tree):
    return of_body(tree, "", inside=False)


def of_body(node, where, *, inside):
    """Those of the statements below a node; `inside`: of a function."""
    for field in BELOW:
        for index, statement in enumerate(getattr(node, field, ())):
            yield from of_statement(node, field, index, statement, where, inside=inside)


def of_statement(parent, field, index, statement, where, *, inside):
    if no_target(statement):
        return
    for make, undo in of_whole(parent, field, index, statement):
        yield Change(where, inside, statement, make, undo)
    for make, undo in of_expressions(statement, statement):
        yield Change(where, inside, statement, make, undo)
    if isinstance(statement, DECLARATION):
        below = where if inside else f"{where}.{statement.name}".removeprefix(".")
        yield from of_body(statement, below, inside=inside or isinstance(statement, ast.FunctionDef))
    else:
        yield from of_body(statement, where, inside=inside)


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
        case ast.Expr(ast.Yield() | ast.YieldFrom() | ast.Await()):
            yield blanked(statement)
        case ast.Expr() | ast.AugAssign() | ast.Delete() | ast.Raise() | ast.Break() | ast.Continue():
            yield blanked(statement)
        case ast.Assign(targets=[ast.Attribute() | ast.Subscript()]):
            yield blanked(statement)
        case ast.Return(value=value) if value is not None and not (
            isinstance(value, ast.Constant) and value.value is None
        ):
            yield setting(statement, "value", None, ast.Constant(None))


def blanked(statement):
    """The statement becomes `pass`, without a change of what is around it: a function that yields goes on being a generator."""
    fields, kind = dict(vars(statement)), type(statement)
    kept = ast.copy_location(ast.If(ast.Constant(False), [kind(**fields)], []), statement)  # the compiler drops it
    ast.copy_location(kept.body[0], statement)

    def make():
        statement.__class__ = ast.If  # type: ignore[assignment]
        statement.__dict__.update(test=ast.copy_location(ast.Constant(False), statement), body=kept.body, orelse=[])

    def undo():
        statement.__class__ = kind  # type: ignore[assignment]
        statement.__dict__.clear()
        statement.__dict__.update(fields)

    return make, undo


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
        case ast.If(test=ast.Constant(value=False)) if hasattr(statement, "_fields"):
            return "pass"
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
