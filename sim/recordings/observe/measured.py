"""A job that was measured but not configured by us: its observations, and the scenario inferred from them.

That scenario knows the measurements, the observed checkpoints included.  Comparing it with the same measurements only shows whether
the model reproduces the job that it was made from.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Annotated, Any, Self

from pydantic import BaseModel, ConfigDict, Field, InstanceOf, model_validator

from sim.recordings.infer.draft import Inference
from sim.recordings.source.graph import check_graph
from sim.recordings.source.recorded_job import RecordedJob

COMPARED_TIMEOUT = "1 s"


Name = Annotated[str, Field(min_length=1, max_length=200)]


class MeasuredInput(BaseModel):
    """An input of a measured vertex."""

    model_config = ConfigDict(frozen=True)

    upstream: Name
    exchange: str = "hash"


class MeasuredVertex(BaseModel):
    """A vertex of a measured job."""

    model_config = ConfigDict(frozen=True)

    id: Name
    parallelism: Annotated[int, Field(ge=1, le=32768)]
    inputs: tuple[MeasuredInput, ...] = ()
    commits: bool = False

    @property
    def is_even(self) -> bool:
        """True: no source tells of weights."""
        return True


class Measured(RecordedJob):
    """A job that was measured and not configured by the recorder."""

    name: Name
    duration_s: Annotated[float, Field(gt=0, le=1e7)]  # as long as the job was watched
    graph: Annotated[tuple[MeasuredVertex, ...], Field(min_length=1)]
    inference: InstanceOf[Inference]

    @model_validator(mode="after")
    def _is_a_graph(self) -> Self:
        check_graph(self.graph)
        return self

    @property
    def vertices(self) -> Sequence[MeasuredVertex]:
        return self.graph


def compared(inference: Inference) -> Inference:
    """The same job under three kinds of barriers, its own first."""
    checkpoint = dict(inference.document["checkpoint"])
    own = checkpoint.get("barriers")
    timeout = own["aligned-timeout"] if isinstance(own, dict) else COMPARED_TIMEOUT
    kinds: list[Any] = ["aligned", "unaligned", {"aligned-timeout": timeout}]
    checkpoint["barriers"] = sorted(kinds, key=lambda kind: kind != own)
    lost = list(inference.not_modelled)
    if checkpoint.pop("max-concurrent", None):
        lost.append("several checkpoints at once: Flink runs unaligned ones one by one, so all are compared that way")
    comments = {key: text for key, text in inference.comments.items() if key not in ("checkpoint.barriers", "checkpoint.max-concurrent")}
    return replace(inference, document=inference.document | {"checkpoint": checkpoint}, comments=comments, not_modelled=tuple(lost))
