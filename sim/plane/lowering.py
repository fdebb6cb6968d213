"""Lower the kernel's source to LLVM's intermediate representation (the front end of its compiler).

The source consists of integers, rows and calls, and all types are annotated, so each kind of node takes only a few
lines here.  The state of the plane is passed as a pointer to an array of base addresses.  Rows and words are plain memory;
a row is the address of its first field.  References are not counted.  Different fields never overlap, and loads and
stores are marked accordingly (TBAA), as C++ compilers do for members of structures.
"""

from __future__ import annotations

import ast
import inspect
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import is_dataclass
from types import ModuleType
from typing import Any, get_args, get_type_hints

from llvmlite import ir

from sim.plane.rows import Channel, PlaneState, record_dtype
from sim.plane.text.loop import Kernel

# Rules by the number of statements instead of this list were tried: inlining all functions below 14 statements costs 5% of the
# plane's time in jobs of small records, below 50 statements no time but five times the code and a minute of compilation.
COLD = frozenset(
    {  # functions not worth inlining: seldom run, or long and called from several places
        "add_to_count",
        "announce",
        "arrive",
        "bare_position",
        "be_late_again",
        "become_late",
        "begin_firing",
        "begin_serving_ahead",
        "buffers_in_use",
        "capture",
        "captured_input",
        "catch_up",
        "catch_up_all",
        "close",
        "close_channel",
        "continue_waiting",
        "continue_writing",
        "convert_channel",
        "convert_output",
        "count_closed",
        "count_marker",
        "count_shared",
        "copy_record_counts",
        "debloat",
        "debloat_event",
        "deliver_marker",
        "dispatch_operation",
        "drop_count",
        "drop_event",
        "end_firing",
        "enlarge_shared",
        "expect_late",
        "find_count",
        "first_ready",
        "flush_event",
        "is_resetting",
        "forward",
        "free_chain",
        "halt",
        "hold",
        "insert",
        "interrupt",
        "measure",
        "miss",
        "open_count",
        "open_gates",
        "open_shared",
        "start_pinning",
        "pin_output",
        "poll_local",
        "poll_recovered",
        "polled",
        "prioritise",
        "prioritise_channel",
        "process_marker",
        "read_joined",
        "recover_output",
        "recycle_current",
        "release",
        "release_capture",
        "release_input",
        "release_late_outputs",
        "release_output",
        "report",
        "report_safe",
        "report_task",
        "report_written",
        "restore_task",
        "resume",
        "rounded",
        "scale",
        "seek_record",
        "send_local",
        "send_marker",
        "set_ready",
        "settle",
        "settle_gate",
        "start",
        "sweep",
        "undo_service",
        "wait_for_late",
        "report_when_left",
        "write_late",
        "write_shared",
        "yields_now",
    }
)
HOT_LINES = 3
"""Cache lines at the beginning of a channel that most steps use."""

Kind = Any
"""The annotated type of a value: int, bool, None, PlaneState, the class of a row, ``list[Task]`` for rows, ``list[int]`` for words."""
Value = tuple[Any, Kind]
Place = tuple[Any, Any, str]
"""(pointer, type of the integer there, name).  Memory of different names does not overlap; the name of a variable is empty."""

_WORD, _TRUTH, _POINTER = ir.IntType(64), ir.IntType(1), ir.PointerType()
_TABLE: dict[str, tuple[int, Kind]] = {
    name: (i, hint) for i, (name, hint) in enumerate(get_type_hints(PlaneState).items())
}

_ARITHMETIC = {
    ast.Add: "add",
    ast.Sub: "sub",
    ast.Mult: "mul",
    ast.BitAnd: "and_",
    ast.BitOr: "or_",
    ast.BitXor: "xor",
    ast.LShift: "shl",
    ast.RShift: "ashr",
}
_COMPARISONS = {ast.Eq: "==", ast.NotEq: "!=", ast.Lt: "<", ast.LtE: "<=", ast.Gt: ">", ast.GtE: ">="}


class UnsupportedSyntaxError(TypeError):
    """Raised for a node that the kernel's language does not support.  The message has its file and line."""


def lowered(files: Iterable[ModuleType], entry: str) -> ir.Module:
    """Return an LLVM module with all functions of the source modules.

    Only `dispatch_operation` is exported, with the name `entry`.  All its arguments are integers.
    """
    module = ir.Module("kernel")
    known = {node.name: _Function(module, node, owner, file) for file in files for node, owner in _definitions(file)}
    for function in known.values():
        _Body(function, known).write()
    inner = known[Kernel.dispatch_operation.__name__].made
    outer = ir.Function(module, ir.FunctionType(_WORD, [_WORD] * len(inner.args)), entry)
    code = ir.IRBuilder(outer.append_basic_block())
    state, *words = outer.args
    code.ret(code.call(inner, [code.inttoptr(state, _POINTER), *words]))
    return module


def _definitions(file: ModuleType) -> Iterator[tuple[ast.FunctionDef, Any]]:
    """Yield (function, its module or class) of a source module, without `fetch`, which is lowered to an instruction."""
    body = ast.parse(inspect.getsource(file)).body
    classes = [(getattr(file, node.name), node.body) for node in body if isinstance(node, ast.ClassDef)]
    for owner, nodes in [(file, body), *classes]:
        for node in nodes:
            if isinstance(node, ast.FunctionDef) and node.name != Kernel.fetch.__name__:
                yield node, owner


class _Function:
    """A function of the kernel: its syntax tree, its types, and its LLVM function, which is empty at first."""

    def __init__(self, module: ir.Module, node: ast.FunctionDef, owner: Any, file: ModuleType) -> None:
        self.node, self.file = node, file
        *self.arguments, self.result = get_type_hints(getattr(owner, node.name)).values()
        if owner is not file:
            self.arguments.insert(0, PlaneState)  # `self`
        self.made = ir.Function(
            module, ir.FunctionType(_type(self.result), [_type(kind) for kind in self.arguments]), node.name
        )
        self.made.linkage = "internal"
        if node.name not in COLD:
            self.made.attributes.add("alwaysinline")  # most of these functions take less time than a call


def _type(kind: Kind) -> Any:
    """Return the LLVM type of a kind of values."""
    return {int: _WORD, bool: _TRUTH, type(None): ir.VoidType()}.get(kind, _POINTER)


def _fields(kind: Kind) -> Mapping[str, Any]:
    """Return the fields of a row with their types and offsets; empty for other kinds."""
    return record_dtype(kind).fields or {} if isinstance(kind, type) and is_dataclass(kind) else {}


class _Body(ir.IRBuilder):  # type: ignore[misc]  # llvmlite has no types
    """The builder of a function's body, which `write` lowers node by node.  Variables are on the stack; LLVM moves them to registers."""

    def __init__(self, function: _Function, known: Mapping[str, _Function]) -> None:
        self._function, self._known = function, known
        self._stack = ir.IRBuilder(function.made.append_basic_block())
        super().__init__(function.made.append_basic_block())
        self._begin = self.block
        self._variables: dict[str, tuple[Any, Kind]] = {}
        self._loops: list[tuple[Any, Any]] = []  # (where `continue` goes, where `break` goes)

    def write(self) -> None:
        """Lower the whole body."""
        function = self._function
        for argument, value, kind in zip(function.node.args.args, function.made.args, function.arguments, strict=True):
            self._set_variable(argument.arg, value, kind, argument)
        self._suite(function.node.body)
        if not self.block.is_terminated:
            if function.result is type(None):
                self.ret_void()
            else:
                self.unreachable()
        self._stack.branch(self._begin)

    # statements

    def _suite(self, statements: Sequence[ast.stmt]) -> None:
        for statement in statements:
            if self.block.is_terminated:
                return  # unreachable: after a return or a break
            self._statement(statement)

    def _statement(self, node: ast.stmt) -> None:
        match node:
            case ast.Expr(ast.Constant()):
                pass  # the docstring
            case ast.Expr(ast.Call() as call):
                self._call(call)
            case ast.Return(None):
                self.ret_void()
            case ast.Return(ast.expr() as value):
                self.ret(self._as(self._function.result, value))
            case ast.Assign([ast.Name(name)], value):
                self._set_variable(name, *self._value(value), node)
            case ast.Assign([target], value):
                place = self._place(target)
                self._store(place, self._as(int, value))
            case ast.AugAssign(target, operator, value):
                place = self._place(target)
                self._store(place, self._arithmetic(node, operator, self._load(place), self._as(int, value)))
            case ast.If(test, body, orelse):
                self._if(test, body, orelse)
            case ast.While(test, body, []):
                self._while(test, body)
            case ast.For(ast.Name(name), ast.Call(ast.Name("range"), bounds), body, []):
                self._for(name, bounds, body)
            case ast.Break():
                self.branch(self._loops[-1][1])
            case ast.Continue():
                self.branch(self._loops[-1][0])
            case _:
                raise self._refused(node)

    def _if(self, test: ast.expr, body: Sequence[ast.stmt], orelse: Sequence[ast.stmt]) -> None:
        then, other, after = self.append_basic_block(), self.append_basic_block(), self.append_basic_block()
        self.cbranch(self._truth(test), then, other)
        is_reached = False
        for block, suite in ((then, body), (other, orelse)):
            self.position_at_end(block)
            self._suite(suite)
            is_reached |= self._go(after)
        self.position_at_end(after)
        if not is_reached:
            self.unreachable()

    def _while(self, test: ast.expr, body: Sequence[ast.stmt]) -> None:
        head, inside, after = self.append_basic_block(), self.append_basic_block(), self.append_basic_block()
        self.branch(head)
        self.position_at_end(head)
        self.cbranch(self._truth(test), inside, after)
        self._loop(inside, body, head, after)
        self._go(head)
        self.position_at_end(after)

    def _for(self, name: str, bounds: Sequence[ast.expr], body: Sequence[ast.stmt]) -> None:
        """Lower a loop over a range.  As in Python, assignments to the variable do not change the number of iterations."""
        *begin, end = (self._as(int, bound) for bound in bounds)
        count = self._stack.alloca(_WORD)
        self.store(begin[0] if begin else _WORD(0), count)
        head, inside, following, after = (
            self.append_basic_block(),
            self.append_basic_block(),
            self.append_basic_block(),
            self.append_basic_block(),
        )
        self.branch(head)
        self.position_at_end(head)
        now = self.load(count, typ=_WORD)
        self.cbranch(self.icmp_signed("<", now, end), inside, after)
        self.position_at_end(inside)
        self._set_variable(name, now, int, bounds[0])
        self._loop(inside, body, following, after)
        self._go(following)
        self.position_at_end(following)
        self.store(self.add(now, _WORD(1)), count)
        self.branch(head)
        self.position_at_end(after)

    def _loop(self, inside: Any, body: Sequence[ast.stmt], following: Any, after: Any) -> None:
        self.position_at_end(inside)
        self._loops.append((following, after))
        self._suite(body)
        self._loops.pop()

    def _go(self, block: Any) -> bool:
        """Branch to a block, unless the current one ends with a return or a jump.  Return whether the branch was added."""
        if is_reached := not self.block.is_terminated:
            self.branch(block)
        return is_reached

    # expressions

    def _value(self, node: ast.expr) -> Value:
        match node:
            case ast.Constant(bool(value)):
                return _TRUTH(value), bool
            case ast.Constant(int(value)):
                return _WORD(value), int
            case ast.Name(name) if name in self._variables:
                place, kind = self._variables[name]
                return self.load(place, typ=_type(kind)), kind
            case ast.Name(name) if type(constant := getattr(self._function.file, name, None)) is int:
                return _WORD(constant), int
            case ast.Attribute() | ast.Subscript():
                return self._element(node)
            case ast.BinOp(left, operator, right):
                return self._arithmetic(node, operator, self._as(int, left), self._as(int, right)), int
            case ast.UnaryOp(ast.USub(), operand):
                return self.neg(self._as(int, operand)), int
            case ast.UnaryOp(ast.Invert(), operand):
                return self.not_(self._as(int, operand)), int
            case ast.UnaryOp(ast.Not(), operand):
                return self.not_(self._truth(operand)), bool
            case ast.Compare(left, [operator], [right]):
                return self.icmp_signed(_COMPARISONS[type(operator)], self._as(int, left), self._as(int, right)), bool
            case ast.BoolOp(operator, operands):
                return self._short_circuit(operands, ends_with=isinstance(operator, ast.Or)), bool
            case ast.Call():
                return self._call(node)
        raise self._refused(node)

    def _as(self, kind: Kind, node: ast.expr) -> Any:
        """Return the value of an expression as this kind.  A bool is converted to 0 or 1 where an integer is expected."""
        return self._converted(*self._value(node), kind, node)

    def _converted(self, value: Any, found: Kind, kind: Kind, node: ast.AST) -> Any:
        if kind is int and found is bool:
            return self.zext(value, _WORD)
        if kind != found:
            raise self._refused(node, f"is {found}, where {kind} is meant")
        return value

    def _truth(self, node: ast.expr) -> Any:
        value, kind = self._value(node)
        if kind is bool:
            return value
        if kind is not int:
            raise self._refused(node, "is neither true nor false")
        return self.icmp_signed("!=", value, _WORD(0))

    def _short_circuit(self, operands: Sequence[ast.expr], *, ends_with: bool) -> Any:
        *first, last = operands
        after, ends = self.append_basic_block(), []
        for operand in first:
            value, following = self._truth(operand), self.append_basic_block()
            ends.append(self.block)
            self.cbranch(value, *((after, following) if ends_with else (following, after)))
            self.position_at_end(following)
        value = self._truth(last)
        behind = self.block
        self.branch(after)
        self.position_at_end(after)
        result = self.phi(_TRUTH)
        for block in ends:
            result.add_incoming(_TRUTH(ends_with), block)
        result.add_incoming(value, behind)
        return result

    def _arithmetic(self, node: ast.AST, operator: ast.operator, left: Any, right: Any) -> Any:
        if name := _ARITHMETIC.get(type(operator)):
            return getattr(self, name)(left, right)
        if not isinstance(operator, ast.FloorDiv | ast.Mod):
            raise self._refused(node)
        # a division by zero would terminate the process; return 0 instead
        is_zero = self.icmp_signed("==", right, _WORD(0))
        divisor = self.select(is_zero, _WORD(1), right)
        rest = self.srem(left, divisor)
        signs_differ = self.icmp_signed("<", self.xor(rest, divisor), _WORD(0))
        goes_down = self.and_(self.icmp_signed("!=", rest, _WORD(0)), signs_differ)
        if isinstance(operator, ast.Mod):
            found = self.add(rest, self.select(goes_down, divisor, _WORD(0)))
        else:
            found = self.sub(self.sdiv(left, divisor), self.zext(goes_down, _WORD))
        return self.select(is_zero, _WORD(0), found)

    def _call(self, node: ast.Call) -> Value:
        match node.func:
            case ast.Attribute(state, Kernel.fetch.__name__):
                return self._fetch(state, *node.args)
            case ast.Attribute(state, name) if name in self._known:
                given = [state, *node.args]
            case ast.Name(name) if name in self._known:
                given = node.args
            case _:
                raise self._refused(node)
        called = self._known[name]
        arguments = [self._as(kind, argument) for kind, argument in zip(called.arguments, given, strict=True)]
        return self.call(called.made, arguments), called.result

    def _fetch(self, of_state: ast.expr, of_channel: ast.expr) -> Value:
        """Lower `fetch`: prefetch the cache lines of a channel that most steps use."""
        state, number = self._as(PlaneState, of_state), self._as(int, of_channel)
        half = ir.IntType(32)
        prefetch = self.module.declare_intrinsic(
            "llvm.prefetch", [_POINTER], ir.FunctionType(ir.VoidType(), [_POINTER, half, half, half])
        )
        channel = self._row(self._table(state, "channels")[0], Channel, number)
        for line in range(HOT_LINES):
            place = self.gep(channel, [_WORD(8 * line)], source_etype=_WORD)
            # arguments: for writing, high locality, data cache
            self.call(prefetch, [place, half(1), half(3), half(1)])
        return None, type(None)

    # memory

    def _table(self, state: Any, name: str) -> Value:
        """Return the base address of a field of the state, which does not change during an operation."""
        at, kind = _TABLE[name]
        address = self.load(self.gep(state, [_WORD(at)], inbounds=True, source_etype=_POINTER), typ=_POINTER)
        address.set_metadata("invariant.load", self.module.add_metadata([]))
        return address, kind

    def _row(self, table: Any, row: type, index: Any) -> Any:
        return self.gep(
            table, [self.mul(index, _WORD(record_dtype(row).itemsize // 8))], inbounds=True, source_etype=_WORD
        )

    def _element(self, node: ast.Attribute | ast.Subscript) -> Value:
        """Return the address of a table or a row, or the value of an integer."""
        base, kind = self._value(node.value)
        match node:
            case ast.Attribute(_, name) if kind is PlaneState and name in _TABLE:
                return self._table(base, name)
            case ast.Subscript(_, index) if kind != list[int] and (row := get_args(kind)):
                return self._row(base, row[0], self._as(int, index)), row[0]
        return self._load(self._place_in(node, base, kind)), int

    def _place(self, node: ast.expr) -> Place:
        match node:
            case ast.Name(name) if name in self._variables and self._variables[name][1] is int:
                return self._variables[name][0], _WORD, ""
            case ast.Attribute() | ast.Subscript():
                return self._place_in(node, *self._value(node.value))
        raise self._refused(node)

    def _place_in(self, node: ast.Attribute | ast.Subscript, base: Any, kind: Kind) -> Place:
        match node:
            case ast.Attribute(_, name) if name in (columns := _fields(kind)):
                dtype, offset = columns[name][:2]
                place = self.gep(base, [_WORD(offset)], inbounds=True, source_etype=ir.IntType(8))
                return place, ir.IntType(8 * dtype.itemsize), f"{kind.__name__}.{name}"
            case ast.Subscript(_, index) if kind == list[int]:
                return self.gep(base, [self._as(int, index)], inbounds=True, source_etype=_WORD), _WORD, "word"
        raise self._refused(node)

    def _load(self, place: Place) -> Any:
        pointer, width, name = place
        found = self._tagged(self.load(pointer, typ=width), name)
        return found if width is _WORD or width.width == _WORD.width else self.sext(found, _WORD)

    def _store(self, place: Place, value: Any) -> None:
        pointer, width, name = place
        if width.width < _WORD.width:
            value = self.trunc(value, width)
        self._tagged(self.store(value, pointer), name)

    def _tagged(self, instruction: Any, name: str) -> Any:
        """Mark a load or store with a name.  Accesses with different names do not overlap (TBAA)."""
        if name:
            root = self.module.add_metadata(["plane"])
            kind = self.module.add_metadata([name, root, _WORD(0)])
            instruction.set_metadata("tbaa", self.module.add_metadata([kind, kind, _WORD(0)]))
        return instruction

    def _set_variable(self, name: str, value: Any, kind: Kind, node: ast.AST) -> None:
        if kind is type(None):
            raise self._refused(node, "has no value")
        if name not in self._variables:
            self._variables[name] = self._stack.alloca(_type(kind)), kind
        place, before = self._variables[name]
        self.store(self._converted(value, kind, before, node), place)

    def _refused(self, node: ast.AST, why: str = "is not in the language") -> UnsupportedSyntaxError:
        line = getattr(node, "lineno", self._function.node.lineno)
        return UnsupportedSyntaxError(f"{self._function.file.__file__}, line {line}: {ast.unparse(node)} {why}")
