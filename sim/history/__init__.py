"""Checkpoints of a real job, explained from Flink's own statistics: where each spent its time, and what the slow ones have in common.

The verb `explain` calls it.  It knows what `import` reads and the words of `sim.explain`; it simulates nothing but in
`side_by_side`, for `validate --explain`.
"""
