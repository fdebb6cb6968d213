"""The rules of ``sim/plane/RULES.md`` in plain Python: objects, deques and one event list, written to be read, not to be fast.

Tests compare the kernel with it, from single notices to whole runs:  `simulate(scenario, engine=oracle)`.  It knows the
seam and not the kernel.

One file per group of rules, each a small class that knows the plane and the parts, nothing else:

* ``output`` (O), ``sending`` (S), ``receiving`` (R), ``thread`` (T, W), ``markers`` (M), ``captures`` (C),
* ``debloat`` (D), ``restarts`` (P), ``late`` (L).

``agenda`` (E) is the clock; ``plane`` builds it all and takes the verbs.
"""

from tests.oracle.plane import ReferencePlane

__all__ = ["ENGINES", "ReferencePlane", "oracle"]


def oracle(spec):
    """The plane of a specification, as `sim.plane.build` makes it of the kernel."""
    return ReferencePlane(spec)


ENGINES = ("compiled", "interpreted", oracle)
"""All that must agree, as `sim.plane.build` takes them."""
