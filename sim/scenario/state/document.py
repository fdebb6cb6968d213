"""`state:` of a vertex as it is written: the options of the model, and what is no single value there."""

from __future__ import annotations

from typing import Annotated, ClassVar

from pydantic import Tag

from sim.model import state
from sim.scenario.grammar.fields import Axis, Duration, OnOff
from sim.scenario.grammar.options import Options
from sim.scenario.grammar.section import MAP_OR_TEXT, Texts


class Lsm(Options, of=(state.Lsm,)):
    """The log-structured merge tree of one subtask; defaults are those of RocksDB."""

    HINTS: ClassVar[Texts] = {"write-buffer": "did you mean memtable?", "level0": "did you mean level0-files?"}


class Changelog(Options, of=(state.Changelog,)):
    """state.changelog.*: changes are logged and uploaded as they happen."""


class State(Options, of=(state.State, state.Ttl)):
    """Keyed state of the whole vertex, spread over its subtasks."""

    HINTS: ClassVar[Texts] = {"incremental": "incremental stands in checkpoint:", "memtable": "write lsm: {memtable: ...}"}

    lsm: Lsm | None = None
    changelog: Axis[Annotated[Annotated[OnOff, Tag("text")] | Annotated[Changelog, Tag("map")], MAP_OR_TEXT]] | None = None
    ttl: Axis[Duration] | None = None
