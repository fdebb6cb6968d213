"""Parts of a vertex and of `checkpoint:` as they are written: state, sink, checkpoint."""

from __future__ import annotations

from typing import Annotated, Any, ClassVar

from pydantic import Field, Tag, create_model

from sim.model import sinks, state
from sim.model.checkpoint import BARRIERS, CheckpointOptions
from sim.model.job import SOURCES
from sim.model.schema.fields import Axis, Duration, EdgeName, Size, Version, choice, choice_of
from sim.model.schema.options import Options
from sim.model.schema.sections import MAP_OR_TEXT, OneOf, Section
from sim.model.sinks import SINKS
from sim.model.state import StateOptions

# ---- `state:` of a vertex as it is written: the options of the model, and what is no single value there.


class State(Options, of=(state.State, state.Ttl)):
    """Keyed state of the whole vertex, spread over its subtasks."""

    ttl: Axis[Duration] | None = None


# ---- `flush:` and `commit:` of a vertex as they are written: what it writes outside of its state, and when that becomes visible.


class Commit(Options, of=(sinks.Commit,)):
    """Two-phase commit: output becomes visible when its checkpoint is complete."""


class Staging(Section):
    """Local room of a task manager for files that are not uploaded yet (operator-io: async)."""

    space: Axis[Size]
    """Room per task manager."""
    when_full: Axis[Annotated[str, choice("block", "fail")]] | None = None
    """block (the default): a flush without room waits for an upload to end; fail: it fails its task."""


ConnectorName = Annotated[str, choice_of(lambda: (*SINKS, *SOURCES))]


class Connector(Section):
    """What a vertex writes to or reads from, with its version."""

    name: Axis[ConnectorName]
    """A name of the catalogue of connectors."""
    version: Axis[Version] | None = None
    """Release of the connector, such as 1.1.0: known defects are judged by it; default: it is not known."""


ConnectorField = Annotated[Annotated[ConnectorName, Tag("text")] | Annotated[Connector, Tag("map")], MAP_OR_TEXT]
CommitField = Annotated[
    Annotated[str, choice("none", "two-phase", "as-connector"), Tag("text")] | Annotated[Commit, Tag("map")],
    MAP_OR_TEXT,
]


# ---- `checkpoint:` as it is written: the options of the model, and what is no single value there.

_WITH_DEADLINE = [kind.name for kind in BARRIERS.values() if kind.has_deadline]


class Deadline(Section):
    """Start aligned, go unaligned so long after the trigger."""

    ONE_OF: ClassVar = (OneOf(dict.fromkeys(_WITH_DEADLINE, "")),)


_AFTER: dict[str, Any] = {
    name.replace("-", "_"): (
        Axis[Duration] | None,
        Field(None, description="After the trigger; then barriers overtake."),
    )
    for name in _WITH_DEADLINE
}
DeadlineBarriers = create_model(
    "DeadlineBarriers", __base__=Deadline, __module__=__name__, __doc__=Deadline.__doc__, **_AFTER
)
"""It has a key for each way of barriers with a deadline."""


def _without_deadline() -> list[str]:
    """Ways of barriers that are one word."""
    return [kind.name for kind in BARRIERS.values() if not kind.has_deadline]


BarriersField = Annotated[
    Annotated[str, choice_of(_without_deadline), Tag("text")] | Annotated[DeadlineBarriers, Tag("map")],  # type: ignore[valid-type]
    MAP_OR_TEXT,
]


class Checkpoint(Options, of=(StateOptions, CheckpointOptions)):
    """execution.checkpointing.*"""

    barriers: Axis[BarriersField] | None = None
    staging: Staging | None = None
    forced_aligned: list[EdgeName] | None = None
