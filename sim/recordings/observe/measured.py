"""A recording nobody configured for us: what was seen of a real job, and the scenario that was inferred from it.

Such a scenario knows what was measured, the observed checkpoints included.  Held to the same measurements, it shows whether the model
reproduces the job it was made from, no more.
"""

from __future__ import annotations

from dataclasses import replace

from pydantic import InstanceOf

from sim.recordings.infer.draft import Inference
from sim.recordings.source.recording import Recording

__all__ = ["Measured", "compared"]

COMPARED_TIMEOUT = "1 s"


class Measured(Recording):
    inference: InstanceOf[Inference]


def compared(inference: Inference) -> Inference:
    """The same job under three kinds of barriers instead of its own."""
    checkpoint = dict(inference.document["checkpoint"])
    own = checkpoint.get("barriers")
    timeout = own["aligned-timeout"] if isinstance(own, dict) else COMPARED_TIMEOUT
    checkpoint["barriers"] = ["aligned", "unaligned", {"aligned-timeout": timeout}]
    lost = list(inference.not_modelled)
    if checkpoint.pop("max-concurrent", None):
        lost.append("several checkpoints at once: Flink runs unaligned ones one by one, so all are compared that way")
    comments = {key: text for key, text in inference.comments.items() if key not in ("checkpoint.barriers", "checkpoint.max-concurrent")}
    return replace(inference, document=inference.document | {"checkpoint": checkpoint}, comments=comments, not_modelled=tuple(lost))
