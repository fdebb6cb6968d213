"""The rules of ``sim/plane/RULES.md`` in plain Python: objects, deques and one event list, written to be read, not to be fast.

`sim.plane.build` calls it for a `ReferencePlane`.  It knows the seam and not the other engine.

One file per group of rules, each a small class that knows ``ports`` and the parts, nothing else:

* ``output`` (O), ``sending`` (S), ``receiving`` (R), ``thread`` (T, W), ``markers`` (M), ``captures`` (C),
* ``debloat`` (D), ``restarts`` (P), ``late`` (L).

``agenda`` (E) is the clock; ``plane`` builds it all and takes the verbs.
"""

from sim.plane.reference.plane import ReferencePlane

__all__ = ["ReferencePlane"]
