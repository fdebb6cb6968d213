"""`flush:` and `commit:` of a vertex as they are written: what it writes outside of its state, and when that becomes visible."""

from __future__ import annotations

from typing import Annotated, ClassVar

from pydantic import Tag

from sim.model import sink
from sim.model.catalogs.sinks import SINKS
from sim.model.catalogs.sources import SOURCES
from sim.scenario.grammar.fields import Axis, Size, Version, choice, choice_of
from sim.scenario.grammar.options import Options
from sim.scenario.grammar.section import MAP_OR_TEXT, Section, Texts


class Flush(Options, of=(sink.Flush,)):
    """Files each subtask writes per snapshot.  One of bytes, share, or both."""

    HINTS: ClassVar[Texts] = {"size": "did you mean bytes?", "threads": "upload-threads stands in checkpoint:"}


class Commit(Options, of=(sink.Commit,)):
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
