"""`checkpoint:` as it is written: the options of the model, and what is no single value there."""

from __future__ import annotations

from typing import Annotated

from pydantic import Tag

from sim.model.catalogs.barriers import BARRIERS
from sim.model.checkpoint import CheckpointOptions
from sim.model.state import StateOptions
from sim.scenario.grammar.fields import Axis, Duration, EdgeName, choice_of
from sim.scenario.grammar.options import Options
from sim.scenario.grammar.section import MAP_OR_TEXT, Section
from sim.scenario.sink.document import Staging


class AlignedTimeout(Section):
    """Start aligned, go unaligned so long after the trigger."""

    aligned_timeout: Axis[Duration]
    """After the trigger; then barriers overtake."""


def _without_deadline() -> list[str]:
    """Ways of barriers that are one word."""
    return [kind.name for kind in BARRIERS.values() if not kind.has_deadline]


BarriersField = Annotated[
    Annotated[str, choice_of(_without_deadline), Tag("text")] | Annotated[AlignedTimeout, Tag("map")],
    MAP_OR_TEXT,
]


class Checkpoint(Options, of=(StateOptions, CheckpointOptions)):
    """execution.checkpointing.*"""

    barriers: Axis[BarriersField] | None = None
    staging: Staging | None = None
    forced_aligned: list[EdgeName] | None = None
