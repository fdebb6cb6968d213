"""`object-store:` of `storage:` as it is written and as the model has it."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from sim.model import storage as model
from sim.scenario.grammar.distribution import DurationField, law
from sim.scenario.grammar.fields import Axis, ByteRate, Positive, RecordRate, Size, choice
from sim.scenario.grammar.given import given_values, per_second
from sim.scenario.grammar.section import Section
from sim.scenario.storage.page import StoragePage
from sim.scenario.text.problems import DocumentPath, Reading

__all__ = ["OBJECT_STORE", "ObjectStore"]


class ObjectStore(Section):
    """S3 and its kin: an object is there when it is closed, large ones go in parts, requests are limited."""

    bandwidth: Axis[ByteRate] | None = None
    """Rate of one request."""
    latency: Axis[DurationField] | None = None
    """Latency of one request, beside its bytes."""
    part: Axis[Size] | None = None
    """Files larger than this go in parts (s3.upload.min.part.size)."""
    parallel_parts: Axis[Positive] | None = None
    """Parts of one file at once (s3.upload.max.concurrent.uploads)."""
    requests: Axis[RecordRate] | None = None
    """Per prefix; more are turned away and retried."""
    client: Axis[Annotated[str, choice("hadoop", "presto")]] | None = None
    """presto asks whether a file is there before it writes a new one (two requests) or deletes one (one request)."""
    prefixes: Axis[Positive] | None = None
    """Files are spread over so many (s3.entropy.key)."""


def build_object_store(given: ObjectStore, reading: Reading, _: Path) -> model.ObjectStore:
    """Mistakes go to `reading`."""
    here: DocumentPath = ("storage", "object-store")
    if given.part == 0:
        reading.wrong((*here, "part"), "must be more than 0")
    default = model.ObjectStore() if given.bandwidth != 0 else model.ObjectStore(None)
    return given_values(
        default, bytes_per_second=given.bandwidth or None, part_bytes=given.part, parallel_parts=given.parallel_parts,
        latency=law(given.latency, default.latency, (*here, "latency"), reading), prefixes=given.prefixes, client=given.client,
        requests_per_second=per_second(given.requests, (*here, "requests"), reading),
    )  # fmt: skip


OBJECT_STORE = StoragePage("object-store", ObjectStore, build_object_store, {"bandwidth": "bandwidth", "file-latency": "latency"})
