"""Read a recording of our own recorder from a file, plain or compressed."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from pydantic import ValidationError

from sim.foreign import one_line
from sim.recordings.source.files import LARGEST_BYTES, RecordingError, parse, summary
from sim.recordings.source.lab.recording import FORMAT, Recording


def read(path: str | Path, *, largest_bytes: int = LARGEST_BYTES) -> Recording:
    """The recording in a `.json` or `.json.gz` file; the content tells which."""
    path = Path(path)
    return recording_of(parse(path, largest_bytes=largest_bytes), path)


def recording_of(document: Any, path: Path) -> Recording:
    """The recording in a document, checked; `path` is for messages."""
    if not isinstance(document, dict) or "format" not in document:
        raise RecordingError(f"{path}: is JSON, but no recording of a Flink job: it has no field 'format'")
    if document["format"] != FORMAT:
        raise RecordingError(f"{path}: has the format {one_line(repr(document['format']), 60)}; this version reads '{FORMAT}'")
    try:
        return Recording.model_validate(document)
    except ValidationError as error:
        raise RecordingError(f"{path}: {summary(error)}") from None
