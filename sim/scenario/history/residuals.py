"""`residuals:`: what checkpoints of a history took beyond the model, as it is written and as the model has it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from sim.model import residuals
from sim.model.job import Vertex
from sim.scenario.grammar.fields import Duration, Natural, Positive
from sim.scenario.grammar.section import Section
from sim.scenario.text.problems import Reading, did_you_mean


class OfVertex(Section):
    """For each subtask a list with a number per checkpoint of the history, in units of `unit`.  Further subtasks take theirs in turn."""

    scheduling: list[list[Natural]] | None = None
    """Sources only: from the call that triggers a checkpoint until their thread looks at it."""
    sync: list[list[Natural]] | None = None
    """Synchronous phase."""
    async_: list[list[Natural]] | None = None
    """Asynchronous phase."""
    acknowledgement: list[list[Natural]] | None = None
    """From the end of the asynchronous phase until the coordinator knows."""
    backend: str | None = None
    """The backend that sync and async were observed with, such as rocksdb or hashmap+changelog; with another one none are drawn."""


class Residuals(Section):
    """What checkpoints of a real job took beyond the model.  Each simulated checkpoint draws one of the history, for all its subtasks."""

    checkpoints: Positive
    """How many there are to draw from."""
    unit: Duration
    """The unit of all numbers below."""
    of: dict[str, OfVertex]
    """Vertex -> its residuals."""


def build_residuals(given: Residuals | None, vertices: Iterable[Vertex], reading: Reading) -> residuals.Residuals:
    """Mistakes go to `reading`."""
    if given is None:
        return residuals.Residuals()
    found = list(vertices)
    sources = {vertex.name: vertex.source is not None for vertex in found}
    backends = {vertex.name: vertex.state.backend_name for vertex in found if vertex.state is not None}
    return residuals.Residuals(given.checkpoints, tuple(_residuals(given, sources, backends, reading)))


def _residuals(given: Residuals, sources: dict[str, bool], backends: dict[str, str], reading: Reading) -> Iterator[residuals.Residual]:
    for name, own in given.of.items():
        if name not in sources:
            reading.wrong(("residuals", "of", name), f"there is no vertex '{name}'{did_you_mean(name, list(sources))}")
            continue
        for part in residuals.PARTS:
            lists = own.async_ if part == "async" else getattr(own, part)
            if lists is None or (part in ("sync", "async") and own.backend is not None and own.backend != backends.get(name)):
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
            yield residuals.Residual(name, part, tuple(tuple(number * given.unit for number in numbers) for numbers in lists))


def tail_sentence(found: residuals.Residuals) -> str:
    """A sentence about the residuals that are drawn.  Empty: none are."""
    if not found.checkpoints:
        return ""
    return f"tails are drawn from the residuals of {found.checkpoints} checkpoints of the job's own history"
