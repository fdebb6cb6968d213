"""The data plane moves buffers and markers between tasks; `build` makes one.

The hosts of `sim.runtime` call the verbs of `sim.plane.seam` and take its notices; two engines stand behind them.
``RULES.md`` says what both do.  It knows no checkpoint, no barrier, no storage and no clock but its own.
"""

from __future__ import annotations

from typing import Literal

from sim.plane.seam.interface import DataPlane, PlaneSpec, SourceSpec, VertexSpec

__all__ = ["Engine", "build", "compiled_kernel", "warm"]

Engine = Literal["compiled", "interpreted", "reference"]


def build(spec: PlaneSpec, engine: Engine = "compiled") -> DataPlane:
    """The plane of a specification; every engine behaves the same, the compiled one is fast."""
    if engine == "reference":
        from sim.plane.reference import ReferencePlane

        return ReferencePlane(spec)
    if engine not in ("compiled", "interpreted"):
        raise ValueError(f"{engine!r} is no engine of the data plane: compiled, interpreted, reference")
    from sim.plane.kernel.plane import KernelPlane

    return KernelPlane(spec, engine)


def warm(kernel: tuple[str, bytes] | None = None) -> bool:
    """Compile everything, or load it from the cache, before the clock of a measurement or a sweep runs.

    `kernel`: the machine code of another process, which spares the compiler if it fits.  Returns whether this process compiled.
    """
    from sim.plane.kernel import machine_code

    if kernel:
        machine_code.receive(*kernel)
    build(PlaneSpec(vertices=(VertexSpec("warm", 1, ((1,),), SourceSpec(total=0)),), edges=(), hosts=(0,))).advance(1)
    return machine_code.compiled_here()


def compiled_kernel() -> tuple[str, bytes] | None:
    """The kernel's machine code, under a name of text and processor, for other processes.  None: there is no compiler here."""
    from sim.plane.kernel import machine_code

    return machine_code.portable()
