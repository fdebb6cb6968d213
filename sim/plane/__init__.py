"""The data plane moves buffers and markers between tasks; `build` makes one.

The hosts of `sim.runtime` call the verbs of `sim.plane` and take its notices; the kernel stands behind them, compiled
or interpreted.
``RULES.md`` says what it does.  It knows no checkpoint, no barrier, no storage and no clock but its own.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal, get_args

from sim.plane.interface import DataPlane
from sim.plane.spec import PlaneSpec, SourceSpec, VertexSpec

__all__ = ["Engine", "PlaneFactory", "build", "compiled_kernel", "warm"]

Engine = Literal["compiled", "interpreted"]
PlaneFactory = Callable[[PlaneSpec], DataPlane]
"""Builds another implementation of the rules: tests run `tests.oracle` beside the kernel."""


def build(spec: PlaneSpec, engine: Engine | PlaneFactory = "compiled") -> DataPlane:
    """The plane of a specification; every engine behaves the same, the compiled one is fast."""
    if callable(engine):
        return engine(spec)
    if engine not in get_args(Engine):
        raise ValueError(f"unknown engine {engine!r}: one of {', '.join(get_args(Engine))}")
    from sim.plane.kernel import KernelPlane

    return KernelPlane(spec, engine)


def warm(kernel: tuple[str, bytes] | None = None) -> bool:
    """Compile everything, or load it from the cache, before the clock of a measurement or a sweep runs.

    `kernel`: the machine code of another process, which spares the compiler if it fits.  Returns whether this process compiled.
    """
    from sim.plane import machine_code

    if kernel:
        machine_code.import_code(*kernel)
    build(PlaneSpec(vertices=(VertexSpec("warm", 1, ((1,),), SourceSpec(total=0)),), edges=(), hosts=(0,))).advance(1)
    return machine_code.compiled_here()


def compiled_kernel() -> tuple[str, bytes] | None:
    """The kernel's machine code, under a name of text and processor, for other processes.  None: there is no compiler here."""
    from sim.plane import machine_code

    return machine_code.export_code()
