"""`residuals:` -> the model."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING

from sim.model.residuals import PARTS, Residual, Residuals
from sim.scenario.residuals import document as doc
from sim.scenario.text.problems import did_you_mean

if TYPE_CHECKING:
    from sim.model.job import Vertex
    from sim.scenario.text.problems import Reading

__all__ = ["build_residuals"]


def build_residuals(given: doc.Residuals | None, vertices: Iterable[Vertex], reading: Reading) -> Residuals:
    """Mistakes go to `reading`."""
    if given is None:
        return Residuals()
    sources = {vertex.name: vertex.source is not None for vertex in vertices}
    return Residuals(given.checkpoints, tuple(_residuals(given, sources, reading)))


def _residuals(given: doc.Residuals, sources: dict[str, bool], reading: Reading) -> Iterator[Residual]:
    for name, own in given.of.items():
        if name not in sources:
            reading.wrong(("residuals", "of", name), f"there is no vertex '{name}'{did_you_mean(name, list(sources))}")
            continue
        for part in PARTS:
            lists = own.async_ if part == "async" else getattr(own, part)
            if lists is None:
                continue
            here = ("residuals", "of", name, part)
            if not lists:
                reading.wrong(here, "is empty: write a list per subtask, or remove the key")
            if part == "scheduling" and not sources[name]:
                reading.wrong(here, "only sources are called; the others get a barrier")
            for index, numbers in enumerate(lists):
                if len(numbers) != given.checkpoints:
                    message = f"has {len(numbers)} numbers for subtask {index}: expected one for each of {given.checkpoints} checkpoints"
                    reading.wrong((*here, index), message)
            yield Residual(name, part, tuple(tuple(number * given.unit for number in numbers) for numbers in lists))
