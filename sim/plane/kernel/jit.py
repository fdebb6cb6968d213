"""The compiler's only door: the kernel's text, compiled.

The text is compiled as it stands, every call bound to the other compiled functions.  What the text calls `PlaneState` is for the
compiler a pointer to a table of base addresses (`addresses`).  Rows and words are plain memory behind it; a row is the address
of its first field.  Thus a call inside the kernel passes one register and nothing counts references; arrays of numba's own,
in a tuple, cost a factor of 5 here.  What a field or a word stands for cannot overlap with any other: the loads and stores say
so (TBAA), which is how C++ would treat members of structures.

Only the outermost function can be called from Python, with integers.  `machine_code` keeps it on disk.
"""

from __future__ import annotations

import dis
import gc
import hashlib
import importlib
import operator
import pkgutil
from collections.abc import Callable
from pathlib import Path
from types import FunctionType, ModuleType, NoneType
from typing import Any, cast, get_args, get_type_hints

import numpy as np

from sim.plane.kernel import rows, text
from sim.plane.kernel.rows import PlaneState
from sim.plane.kernel.text.door import door
from sim.plane.kernel.text.elements import fetch
from sim.plane.seam import interface, spec

COLD = frozenset({  # files and functions not worth inlining: seldom run, or long and called from several places
    "capture", "counting", "door", "late", "markers", "recovery", "restarts", "timers",
    "arrive", "catch_up", "catch_up_all", "close", "count_shared", "deliver_marker", "enlarge_shared", "go_on_writing", "miss",
    "open_shared", "poll_local", "read_joined", "recycle_current", "report", "run_ahead", "send_local", "send_marker", "take_back",
    "write_shared",
})  # fmt: skip
HOT_LINES = 3
"""Lines of cache at the beginning of a channel that most steps touch."""
INNER: dict[str, Any] = {"no_cpython_wrapper": True, "no_cfunc_wrapper": True}  # only the kernel calls them: a fifth of the compile time


def addresses(state: PlaneState) -> np.ndarray[Any, np.dtype[np.int64]]:
    """The compiled text's `PlaneState`: the address at which each array begins.  The arrays must outlive its use."""
    return np.array([cast(Any, array).ctypes.data for array in state], np.int64)


def texts() -> list[ModuleType]:
    """The files of the text, in the order of their paths."""
    return [importlib.import_module(info.name) for info in pkgutil.walk_packages(text.__path__, f"{text.__name__}.") if not info.ispkg]


def compiled() -> Any:
    """The kernel's door as numba compiles it, for the address of a table of addresses.  ImportError: there is no numba."""
    import numba

    collecting = gc.isenabled()
    gc.disable()  # the compiler makes garbage by the million and little of it is cyclic: a tenth of the time
    try:
        twin = FunctionType(door.__code__, callees(numba, texts()), door.__name__)
        signature = numba.int64(*[numba.int64] * door.__code__.co_argcount)  # a PlaneState is an address
        return numba.njit(signature, error_model="numpy", nogil=True)(twin)
    finally:
        if collecting:
            gc.enable()


def callees(numba: Any, files: list[ModuleType]) -> dict[str, Any]:
    """The names the door needs, with everything it calls compiled for the types it says.

    Callees come first and may not be compiled again: left to itself, numba makes one more for every constant argument.
    What is hot is inlined: calls between numba's functions cost more than what most of these do.
    """
    types = {int: numba.int64, bool: numba.boolean, PlaneState: teach_memory(numba), NoneType: numba.void}
    options = {"error_model": "numpy"} | accepted(numba.njit, INNER)
    spaces = {module.__name__: dict(vars(module)) for module in files}
    compiled: dict[str, Any] = {}

    def space_of(function: Callable[..., Any]) -> dict[str, Any]:
        """The function's names, those it calls compiled."""
        space = spaces[function.__module__]
        for instruction in dis.get_instructions(function):
            if instruction.opname == "LOAD_GLOBAL" and isinstance(space.get(instruction.argval), FunctionType):
                compile_one(space[instruction.argval])
        return space | compiled

    def compile_one(function: FunctionType) -> None:
        name = function.__name__
        if name not in compiled and function is not fetch:
            twin = FunctionType(function.__code__, space_of(function), name)
            hints = get_type_hints(function)
            result = types[hints.pop("return")]
            hot = not COLD & {name, function.__module__.rpartition(".")[2]}
            compiled[name] = numba.njit(result(*(types[hint] for hint in hints.values())), forceinline=hot, **options)(twin)

    return space_of(door)


def accepted(njit: Any, options: dict[str, Any]) -> dict[str, Any]:
    """The options, or none of them where this numba does not know them; it says so at the first call, not before."""
    try:
        njit(**options)(lambda x: x).compile("int64(int64)")
    except Exception:  # noqa: BLE001 - whatever a future numba raises, the answer is to do without
        return {}
    return options


def fingerprint() -> str:
    """A digest of everything that is compiled, and of how."""
    digest = hashlib.blake2b(digest_size=6)
    for path in (*(str(module.__file__) for module in texts()), str(interface.__file__), str(spec.__file__), str(rows.__file__), __file__):
        digest.update(Path(path).read_bytes())
    return digest.hexdigest()


def teach_memory(numba: Any) -> Any:
    """Teach the compiler the types PlaneState, sequence of rows, row and words; returns the type of PlaneState."""
    from llvmlite import ir
    from numba.core.typeconv import Conversion
    from numba.core.typing.templates import AbstractTemplate, AttributeTemplate, infer_global
    from numba.extending import infer_getattr, lower_builtin, lower_cast, models, register_model
    from numba.extending import lower_getattr_generic as lower_getattr
    from numba.extending import lower_setattr_generic as lower_setattr
    from numba.types import Integer, Type, int64, void

    word, byte = ir.IntType(64), ir.IntType(8)
    pointer = word.as_pointer()

    class Memory(Type):  # type: ignore[misc]
        """A place in memory: `row` is the class of the rows there, int for words, PlaneState for the table itself."""

        def __init__(self, row: type, is_list: bool) -> None:
            super().__init__(f"{'many' if is_list else 'one'}.{row.__name__}")
            self.row, self.is_list = row, is_list

        def can_convert_from(self, _: Any, other: Any) -> Any:
            """An integer is taken for the address of a PlaneState: Python passes one like that."""
            return Conversion.safe if self.row is PlaneState and other is int64 else None

    @register_model(Memory)
    class MemoryModel(models.PrimitiveModel):  # type: ignore[misc]
        def __init__(self, manager: Any, kind: Any) -> None:
            super().__init__(manager, kind, pointer)

    def annotated(hint: Any) -> Memory:
        """General -> one row, list[Task] -> many rows, list[int] -> words."""
        inner = get_args(hint)
        if not inner:
            return Memory(hint, is_list=False)
        return Memory(inner[0], is_list=True)

    state = {name: (i, annotated(hint)) for i, (name, hint) in enumerate(get_type_hints(PlaneState).items())}
    columns: Any = {hint.row: rows.record_dtype(hint.row) for _, hint in state.values() if hint.row is not int}

    @infer_getattr
    class MemoryAttribute(AttributeTemplate):  # type: ignore[misc]
        key = Memory

        def generic_resolve(self, kind: Memory, name: str) -> Any:
            if kind.row is PlaneState:
                return state[name][1]
            return int64 if not kind.is_list and name in columns[kind.row].names else None

    @infer_global(operator.getitem)
    class MemoryItem(AbstractTemplate):  # type: ignore[misc]
        def generic(self, args: Any, _: Any) -> Any:
            if isinstance(args[0], Memory) and args[0].is_list and isinstance(args[1], Integer):
                return numba.core.typing.signature(int64 if args[0].row is int else Memory(args[0].row, is_list=False), args[0], int64)
            return None

    @infer_global(operator.setitem)
    class MemoryStore(AbstractTemplate):  # type: ignore[misc]
        def generic(self, args: Any, _: Any) -> Any:
            if isinstance(args[0], Memory) and args[0].row is int:
                return numba.core.typing.signature(void, args[0], int64, int64)
            return None

    def tagged(builder: Any, instruction: Any, name: str) -> Any:
        """No access under this name overlaps with one under another."""
        module = builder.module
        root = module.add_metadata(["plane"])
        kind = module.add_metadata([name, root, word(0)])
        instruction.set_metadata("tbaa", module.add_metadata([kind, kind, word(0)]))
        return instruction

    def place_of(builder: Any, kind: Memory, base: Any, name: str) -> Any:
        """A pointer to integers of the field's width."""
        dtype, offset = columns[kind.row].fields[name][:2]
        place = builder.gep(builder.bitcast(base, byte.as_pointer()), [word(offset)], inbounds=True)
        return builder.bitcast(place, ir.IntType(8 * dtype.itemsize).as_pointer())

    @lower_getattr(Memory)
    def get_attribute(context: Any, builder: Any, kind: Memory, base: Any, name: str) -> Any:
        if kind.row is not PlaneState:
            field = tagged(builder, builder.load(place_of(builder, kind, base, name)), f"{kind.row.__name__}.{name}")
            return builder.sext(field, word) if field.type.width < word.width else field
        address = builder.load(builder.gep(base, [word(state[name][0])], inbounds=True))
        address.set_metadata("invariant.load", builder.module.add_metadata([]))
        return builder.inttoptr(address, pointer)

    @lower_setattr(Memory)
    def set_attribute(context: Any, builder: Any, signature: Any, args: Any, name: str) -> Any:
        kind, value = signature.args
        number = context.cast(builder, args[1], value, int64)
        place = place_of(builder, kind, args[0], name)
        if place.type.pointee.width < word.width:
            number = builder.trunc(number, place.type.pointee)
        return tagged(builder, builder.store(number, place), f"{kind.row.__name__}.{name}")

    @lower_builtin(operator.getitem, Memory, Integer)
    def get_item(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        row = signature.args[0].row
        if row is int:
            return tagged(builder, builder.load(builder.gep(args[0], [args[1]], inbounds=True)), "word")
        return builder.gep(args[0], [builder.mul(args[1], word(columns[row].itemsize // 8))], inbounds=True)

    @lower_builtin(operator.setitem, Memory, Integer, Integer)
    def set_item(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        return tagged(builder, builder.store(args[2], builder.gep(args[0], [args[1]], inbounds=True)), "word")

    @infer_global(fetch)
    class Fetch(AbstractTemplate):  # type: ignore[misc]
        def generic(self, args: Any, _: Any) -> Any:
            return numba.core.typing.signature(void, args[0], int64)

    @lower_builtin(fetch, Memory, Integer)
    def ask_memory(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        """The processor is asked for the lines of a channel that most steps touch."""
        number = ir.IntType(32)
        prefetch = builder.module.declare_intrinsic("llvm.prefetch", [pointer], ir.FunctionType(ir.VoidType(), [pointer, *[number] * 3]))
        channels = get_attribute(context, builder, signature.args[0], args[0], "channels")
        channel = builder.gep(channels, [builder.mul(args[1], word(columns[rows.Channel].itemsize // 8))], inbounds=True)
        for line in range(HOT_LINES):
            builder.call(prefetch, [builder.gep(channel, [word(8 * line)]), number(1), number(3), number(1)])  # to write, to keep, data
        return context.get_dummy_value()

    @lower_cast(Integer, Memory)
    def cast_address(context: Any, builder: Any, number: Any, kind: Any, value: Any) -> Any:
        return builder.inttoptr(value, pointer)

    return Memory(PlaneState, is_list=False)
