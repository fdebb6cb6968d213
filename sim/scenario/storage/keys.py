"""Flink's keys about storage that are read together: file merging, and the uploads of its S3 file systems."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

__all__ = ["MERGING", "S3", "STORAGE_KEYS", "merging_values"]

MERGING = "execution.checkpointing.file-merging.enabled"
_DETAILS = {
    "execution.checkpointing.file-merging.max-file-size": "max-file-size",
    "execution.checkpointing.file-merging.across-checkpoint-boundary": "across-checkpoints",
    "execution.checkpointing.file-merging.max-space-amplification": "max-space-amplification",
}
S3 = {"s3.upload.min.part.size": "part", "s3.upload.max.concurrent.uploads": "parallel-parts"}
"""Key -> key of `object-store:`."""
STORAGE_KEYS: dict[str, str] = {
    MERGING: "boolean",
    "execution.checkpointing.file-merging.max-file-size": "size",
    "execution.checkpointing.file-merging.across-checkpoint-boundary": "boolean",
    "execution.checkpointing.file-merging.max-space-amplification": "number",
    "s3.upload.min.part.size": "size",
    "s3.upload.max.concurrent.uploads": "integer",
}
"""Key -> how Flink writes it."""


def merging_values(given: Mapping[str, Any]) -> Iterator[tuple[tuple[str, ...], Any, str]]:
    """(place inside `storage:`, value, key); nothing without the switch."""
    details = [key for key in _DETAILS if key in given]
    if not given.get(MERGING):
        return
    yield from ((("file-merging", _DETAILS[key]), given[key], key) for key in details)
    if not details:
        yield ("file-merging",), "on", MERGING
