"""Requests to a running job: savepoints, and its end.  Frozen."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal


@dataclass(frozen=True, slots=True)
class Action:
    """A savepoint; with `stop` the job stops with it.

    drain: sources end, operators finish, and the savepoint holds that (`flink stop --drain`).
    no-drain: the savepoint holds the job as it stands.
    savepoint-then-finish: as before FLIP-147, operators finish after the savepoint and nothing holds what they emit.
    """

    at_ns: int
    format: Literal["canonical", "native"] = "canonical"
    stop: Literal["drain", "no-drain", "savepoint-then-finish"] | None = None
