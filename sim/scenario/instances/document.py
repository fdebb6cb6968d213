"""`instances:` and `directories:` as they are written: jobs that start from each other's snapshots, and where those lie."""

from __future__ import annotations

from typing import Annotated

from sim.scenario.grammar.fields import Axis, Positive, choice
from sim.scenario.grammar.section import Section
from sim.scenario.storage.document import Switch

__all__ = ["Directories", "Instances"]


class Instances(Section):
    """The run's duration is divided among job instances; each begins from a snapshot of the one before it."""

    count: Axis[Positive]
    """Jobs, one after the other."""
    claim: Axis[Annotated[str, choice("claim", "no-claim", "legacy")]] | None = None
    """Who owns the snapshot a job starts from (FLIP-193)."""
    from_: Axis[Annotated[str, choice("checkpoint", "savepoint")]] | None = None
    """The latest retained checkpoint, or the latest savepoint (see actions)."""
    copied: Axis[Annotated[str, choice("nothing", "own", "job", "root")]] | None = None
    """Only a copy of this is left, elsewhere: the snapshot's own directory, its job's, or all of them.  nothing: all is where it was."""


class Directories(Section):
    """Where files of snapshots lie, and how metadata names them."""

    paths: Axis[Annotated[str, choice("absolute", "relative-to-metadata", "relative-to-job")]] | None = None
    """absolute: Flink's way, relative only inside a snapshot's own directory."""
    entropy: Axis[Switch] | None = None
    """A random component at the front of each path (s3.entropy.key)."""
    create_subdir: Axis[Switch] | None = None
    """false: all jobs share one directory."""
