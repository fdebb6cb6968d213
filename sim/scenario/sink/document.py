"""`flush:` and `commit:` of a vertex as they are written: what it writes outside of its state, and when that becomes visible.

Defaults live in the model: a key that is not given is None here.
"""

from __future__ import annotations

from typing import Annotated, ClassVar

from pydantic import Tag

from sim.scenario.grammar.fields import Axis, Count, Duration, Positive, Share, Size, choice
from sim.scenario.grammar.section import MAP_OR_TEXT, Section, Texts

__all__ = ["Commit", "CommitField", "Flush", "Staging"]


class Flush(Section):
    """Files each subtask writes per snapshot.  One of bytes, share, or both."""

    HINTS: ClassVar[Texts] = {"size": "did you mean bytes?", "threads": "upload-threads stands in checkpoint:"}

    bytes: Axis[Size] | None = None
    """Bytes of one subtask and snapshot, all files together."""
    share: Axis[Share] | None = None
    """Share of the bytes read since the last flush."""
    files: Axis[Positive] | None = None
    """Files that hold it."""


class Commit(Section):
    """Two-phase commit: output becomes visible when its checkpoint is complete."""

    committer: Axis[Annotated[str, choice("chained", "global")]] | None = None
    """chained: each writer has its own, in its task; global: one subtask behind all writers."""
    time: Axis[Duration] | None = None
    """On the committer's task thread, per commit."""
    transaction_timeout: Axis[Duration] | None = None
    """The external system forgets a transaction that is open longer: its records are lost."""
    holds_back: Axis[Count] | None = None
    """Records per input channel it keeps in its state until finish(), e.g. an open window."""
    emits: Axis[Annotated[str, choice("at-once", "on-commit")]] | None = None
    """When records go on downstream: as they are served (the default), or all of an epoch when they are committed."""


class Staging(Section):
    """Local room of a task manager for files that are not uploaded yet (operator-io: async)."""

    space: Axis[Size]
    """Room per task manager."""
    when_full: Axis[Annotated[str, choice("block", "fail")]] | None = None
    """block: a flush without room waits for an upload to end; fail: it fails its task."""


CommitField = Annotated[
    Annotated[str, choice("none", "two-phase"), Tag("text")] | Annotated[Commit, Tag("map")],
    MAP_OR_TEXT,
]
