"""`checkpoint:` as it is written: the options of the model, and what is no single value there."""

from __future__ import annotations

from typing import Annotated, Any, ClassVar

from pydantic import Field, Tag, create_model

from sim.model.catalogs.barriers import BARRIERS
from sim.model.checkpoint import CheckpointOptions
from sim.model.state import StateOptions
from sim.scenario.grammar.fields import Axis, Duration, EdgeName, choice_of
from sim.scenario.grammar.options import Options
from sim.scenario.grammar.section import MAP_OR_TEXT, Section
from sim.scenario.grammar.together import OneOf
from sim.scenario.sink.document import Staging

_WITH_DEADLINE = [kind.name for kind in BARRIERS.values() if kind.has_deadline]


class Deadline(Section):
    """Start aligned, go unaligned so long after the trigger."""

    ONE_OF: ClassVar = (OneOf(dict.fromkeys(_WITH_DEADLINE, "")),)


_AFTER: dict[str, Any] = {
    name.replace("-", "_"): (Axis[Duration] | None, Field(None, description="After the trigger; then barriers overtake."))
    for name in _WITH_DEADLINE
}
DeadlineBarriers = create_model("DeadlineBarriers", __base__=Deadline, __module__=__name__, __doc__=Deadline.__doc__, **_AFTER)
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
