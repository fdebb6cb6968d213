"""The data plane, which moves buffers and markers between tasks.  `build` creates one.

The hosts of `sim.runtime` call its methods and handle its notices.  The kernel that implements it is compiled or
interpreted.  ``RULES.md`` specifies its behaviour.  It has no notion of checkpoints, barriers or storage.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Literal, get_args

from sim.plane.interface import PlaneSpec, SourceSpec, VertexSpec

if TYPE_CHECKING:
    from sim.plane.kernel import KernelPlane

__all__ = ["Engine", "PlaneFactory", "build", "compiled_kernel", "warm"]

Engine = Literal["compiled", "interpreted"]
PlaneFactory = Callable[[PlaneSpec], Any]
"""Creates another implementation of the rules, such as the reference implementation `tests.oracle`."""


def build(spec: PlaneSpec, engine: Engine | PlaneFactory = "compiled") -> KernelPlane:
    """Create a data plane.  All engines have the same results; the compiled one is fast.  Raises ValueError for an unknown engine."""
    if callable(engine):
        return engine(spec)  # type: ignore[no-any-return]  # the same methods
    if engine not in get_args(Engine):
        raise ValueError(f"unknown engine {engine!r}: one of {', '.join(get_args(Engine))}")
    from sim.plane.kernel import KernelPlane

    return KernelPlane(spec, engine)


def warm(kernel: tuple[str, bytes] | None = None) -> bool:
    """Compile the kernel or load it from the cache, ahead of a measurement or a sweep.

    `kernel`: machine code from `compiled_kernel` of another process, used if it fits.  Returns whether this process compiled.
    """
    from sim.plane import machine_code

    if kernel:
        machine_code.import_code(*kernel)
    build(PlaneSpec(vertices=(VertexSpec("warm", 1, ((1,),), SourceSpec(total=0)),), edges=(), hosts=(0,))).advance(1)
    return machine_code.has_compiled()


def compiled_kernel() -> tuple[str, bytes] | None:
    """Return (key of source and processor, machine code) of the kernel, for other processes, or None without a compiler."""
    from sim.plane import machine_code

    return machine_code.export_code()
