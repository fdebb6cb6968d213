"""Recorded jobs: types for their graph, checkpoints and metrics, and functions that read untrusted files safely."""

from __future__ import annotations

import codecs
import gzip
import json
import re
import stat
import threading
import zlib
from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from gzip import GzipFile
from json import JSONDecodeError
from operator import attrgetter
from pathlib import Path
from typing import Annotated, Any, BinaryIO, Literal, Protocol

import numpy as np
import pandas as pd
from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Field, ValidationError, model_validator

from sim.model.schema.text import write
from sim.model.series.columns import is_known
from sim.model.text import PrintableError, masked_text, one_line
from sim.model.units import format_size

# ---- Parse untrusted JSON in bounded memory.  Its size as Python values is estimated from the text before it is parsed.
#
# Values may take thirty times the size of their text: ``{}`` and ``[]`` are two characters and 64 bytes.

MEMORY_BYTES = 1 << 30  # a million metric values, the maximum of a sampled job, take 0.5 GiB by this estimate
MAX_JSON_DEPTH = 100  # levels; Flink's answers and our recordings have ten
VALUE_BYTES = 96  # estimated for each bracket, colon and comma of the text: the size of a dict with one entry
_STRING = re.compile(rb'"(?:[^"\\]++|\\.)*+(?:"|\Z)', re.DOTALL)
_OPENING, _CLOSING = np.zeros(256, np.int8), np.zeros(256, np.int8)
_OPENING[list(b"[{")] = 1
_CLOSING[list(b"]}")] = 1


class BudgetError(ValueError):
    """The JSON would exceed the memory limit, or is nested too deeply."""

    def __init__(self, message: str, *, exceeds_memory: bool = False) -> None:
        super().__init__(message)
        self.exceeds_memory = exceeds_memory  # whether memory is used up, so that further reads fail as well


class Budget:
    """A memory limit for untrusted JSON, which all reads of a command share.  It is thread-safe."""

    def __init__(self, memory_bytes: int = MEMORY_BYTES) -> None:
        self.memory_bytes = memory_bytes
        self.bytes_by_place: dict[str, int] = {}
        self.spent_bytes = 0  # sum over all places
        self._counting = threading.Lock()

    def parse(self, content: bytes, place: str) -> Any:
        """Parse JSON.  In the budget, it replaces earlier content with the same `place`, for example a path.

        Raises `BudgetError`, or `ValueError` or `RecursionError` if the content is not JSON.
        """
        self.check(content, place)
        return json.loads(content)

    def check(self, content: bytes, place: str) -> None:
        """Raise `BudgetError` if the JSON would take too much memory, or is nested too deeply."""
        structure = _STRING.sub(b"", content)
        # A single wide character makes its whole string wide.
        character_bytes = 1 if content.isascii() and b"\\u" not in content else 4
        values = sum(map(structure.count, (b"[", b"{", b":", b",")))
        size_bytes = len(content) * character_bytes + values * VALUE_BYTES
        with self._counting:
            before_bytes = self.spent_bytes - self.bytes_by_place.pop(place, 0)
            self.spent_bytes = before_bytes + size_bytes
            if self.spent_bytes > self.memory_bytes:
                self.spent_bytes = before_bytes
                before = ", with what was read before" if before_bytes else ""
                raise BudgetError(
                    f"would take more than {format_size(self.memory_bytes)} of memory{before}", exceeds_memory=True
                )
            self.bytes_by_place[place] = size_bytes
        if _depth(structure) > MAX_JSON_DEPTH:
            raise BudgetError(f"is nested more than {MAX_JSON_DEPTH} levels deep")


def _depth(structure: bytes) -> int:
    """Return the maximum nesting of brackets."""
    characters = np.frombuffer(structure, np.uint8)
    return int(np.cumsum(_OPENING[characters] - _CLOSING[characters], dtype=np.int32).max(initial=0))


# ---- Read untrusted files, plain or compressed.  Every error becomes a `RecordingError` that names the file.

MAX_RECORDING_BYTES = 200_000_000  # a long recording has 0.5 MB
_GZIP = b"\x1f\x8b"
ZIP = b"PK\3\4"
_MAX_NAMED = 5  # number of mistakes in one message


class RecordingError(PrintableError, ValueError):
    """The file is not a readable recording."""

    exit_code = 3


def refuse_special(path: Path) -> None:
    """Raise `RecordingError` if the file is a pipe or a device, which may block the reader indefinitely."""
    try:
        mode = path.stat().st_mode
    except (OSError, ValueError):
        return  # a later reader reports the error
    if not stat.S_ISREG(mode) and not stat.S_ISDIR(mode):
        raise RecordingError(
            f"{path}: is a pipe or a device: write its content to a file, or pipe it to `ckptsim explain -`"
        )


@contextmanager
def open_uncompressed(path: Path) -> Iterator[BinaryIO | GzipFile | codecs.StreamRecoder]:
    """Open a file for reading its uncompressed bytes, as UTF-8 if it is UTF-16 (what `>` of Windows PowerShell writes).

    Raises `RecordingError` if it cannot be read, or is damaged.
    """
    refuse_special(path)
    try:
        with path.open("rb") as file:
            start = file.read(len(_GZIP))
        with gzip.open(path, "rb") if start == _GZIP else path.open("rb") as file:
            is_utf_16 = start.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE))
            yield codecs.EncodedFile(file, "utf-8", "utf-16", "replace") if is_utf_16 else file
    except RecordingError:  # raised in the body of the with statement
        raise
    except EOFError:
        raise RecordingError(f"{path}: the compressed file is truncated") from None
    except (gzip.BadGzipFile, zlib.error) as error:
        raise RecordingError(f"{path}: the compressed file is damaged ({error})") from None
    except (OSError, ValueError) as error:  # ValueError: invalid file name
        raise RecordingError(f"{path}: cannot be read ({getattr(error, 'strerror', None) or error})") from None


def parse(path: Path, *, largest_bytes: int = MAX_RECORDING_BYTES) -> Any:
    """Return the parsed JSON of a file, which may be compressed.  Raises `RecordingError`.

    Reading stops at the limit, so a zip bomb does no harm.
    """
    if path.is_dir():
        raise RecordingError(f"{path}: is a directory; pass one recording in it")
    with open_uncompressed(path) as file:
        content = file.read(largest_bytes + 1)
    if len(content) > largest_bytes:
        raise RecordingError(f"{path}: is larger than {largest_bytes} bytes, the limit for a recording")
    if not content.strip():
        raise RecordingError(f"{path}: is empty")
    try:
        return Budget().parse(content, path.name)
    except BudgetError as error:
        raise RecordingError(f"{path}: {error}") from None
    except UnicodeDecodeError:
        is_zip = content[: len(ZIP)] == ZIP or path.suffix == ".zip"
        raise RecordingError(
            f"{path}: {'is not a valid ZIP file' if is_zip else 'is not JSON: it is not UTF-8 text'}"
        ) from None
    except JSONDecodeError as error:
        raise RecordingError(f"{path}: is not JSON: {error.msg} at line {error.lineno}, column {error.colno}") from None
    except (ValueError, RecursionError) as error:  # numbers with thousands of digits, deeply nested lists
        raise RecordingError(f"{path}: is not JSON we accept: {error}") from None


def summary(error: ValidationError) -> str:
    """Return the first validation errors as text, and the number of further ones.

    For example ``checkpoints.list.3.id: Input should be a valid integer; ...``.
    """
    mistakes = error.errors(include_url=False)
    named = [
        f"{'.'.join(map(one_line, mistake['loc'])) or 'the recording'}: {mistake['msg']}"
        for mistake in mistakes[:_MAX_NAMED]
    ]
    others = f"; and {len(mistakes) - _MAX_NAMED} more" if len(mistakes) > _MAX_NAMED else ""
    return "; ".join(named) + others


# ---- The graph of a recorded job: its vertices and their inputs.


class RecordedEdge(Protocol):
    """An input of a vertex."""

    @property
    def upstream(self) -> str: ...


class RecordedVertex(Protocol):
    """A vertex of a recorded job."""

    @property
    def id(self) -> str: ...

    @property
    def parallelism(self) -> int: ...

    @property
    def inputs(self) -> Sequence[RecordedEdge]: ...


def has_readers(vertices: Iterable[RecordedVertex], name: str) -> bool:
    """Return whether a vertex has a downstream vertex.  A vertex without one is a sink."""
    return any(edge.upstream == name for vertex in vertices for edge in vertex.inputs)


# ---- A recorded Flink job: its checkpoints and metrics, from any kind of source.
#
# Fields have the names, units and meaning of Flink's REST API (`/jobs/:id/checkpoints/details/:id` and its subtasks).
# Times are epoch milliseconds, durations milliseconds, sizes bytes, -1 is unknown.  Other fields of the API are
# ignored.

Number = Annotated[int, Field(ge=-(2**63), le=2**63)] | Annotated[float, Field(allow_inf_nan=False)]


def normalize_unknown(value: object) -> object:
    """Return -1 for Flink's placeholders of unknown numbers (null, "", NaN).

    An integer outside the range of a long is not a value of Flink; it is returned unchanged, for pydantic to reject.
    """
    if isinstance(value, int) and abs(value) > 2**63:
        return value
    return -1 if value in (None, "", "NaN") or (isinstance(value, int | float) and not is_known(value)) else value


Known = Annotated[int, BeforeValidator(normalize_unknown), Field(ge=-1, le=10**16)]
"""A time, duration, size or count; -1 if unknown."""
Text = Annotated[str, AfterValidator(masked_text)]
"""A text that is printed and shared, so secrets in it are masked."""
MAX_CHECKPOINT_ID = 10**12


class RestObject(BaseModel):
    """An object in the answers of Flink's REST API."""

    model_config = ConfigDict(frozen=True, extra="ignore", populate_by_name=True)


class RecordedAlignment(RestObject):
    """The alignment of a subtask: its duration [ms], and the bytes processed and persisted meanwhile."""

    duration: Known = -1
    processed: Known = 0
    persisted: Known = 0


class Phases(RestObject):
    """The synchronous and asynchronous phase of a snapshot [ms]."""

    sync: Known = -1
    async_: Known = Field(default=-1, alias="async")


class RecordedSubtask(RestObject):
    """The statistics of a subtask in a checkpoint.  `pending_or_failed` means that it did not acknowledge."""

    index: Known
    status: Literal["completed", "pending_or_failed"]
    ack_timestamp: Known = -1
    end_to_end_duration: Known = -1
    start_delay: Known = -1
    alignment: RecordedAlignment = RecordedAlignment()
    checkpoint: Phases = Phases()
    checkpointed_size: Known = -1
    state_size: Known = -1
    unaligned_checkpoint: bool = False
    aborted: bool = False


class RecordedTask(RestObject):
    """The subtasks of a vertex in one checkpoint."""

    subtasks: tuple[RecordedSubtask, ...] = ()


def _with_subtasks(tasks: Any) -> Any:
    """Return only the tasks with statistics of subtasks.  Flink's list of checkpoints has only sums over subtasks."""
    if not isinstance(tasks, dict):
        return {}
    return {
        name: task
        for name, task in tasks.items()
        if isinstance(task, RecordedTask) or (isinstance(task, dict) and task.get("subtasks"))
    }


class RecordedCheckpoint(RestObject):
    """A checkpoint, with the statistics of its subtasks if they are known."""

    id: Annotated[int, Field(ge=0, le=MAX_CHECKPOINT_ID)]
    status: Literal["IN_PROGRESS", "COMPLETED", "FAILED"]
    is_savepoint: bool = False
    checkpoint_type: str = "CHECKPOINT"
    trigger_timestamp: Known
    latest_ack_timestamp: Known = -1
    end_to_end_duration: Known = -1  # from the trigger to the last acknowledgement, or to the failure
    checkpointed_size: Known = -1
    state_size: Known = -1
    processed_data: Known = 0
    persisted_data: Known = 0
    alignment_buffered: Known = 0
    num_subtasks: Known = 0
    num_acknowledged_subtasks: Known = 0
    failure_message: Annotated[Text, BeforeValidator(lambda text: text or "")] = ""  # null: the checkpoint did not fail
    # vertex -> task, with statistics of its subtasks
    tasks: Annotated[dict[str, RecordedTask], BeforeValidator(_with_subtasks)] = Field(default_factory=dict)

    @model_validator(mode="before")
    @classmethod
    def _until_failure(cls, row: Any) -> Any:
        """Return the row with the duration until the failure, if it tells when that was."""
        if isinstance(row, dict) and all(is_known(row.get(end)) for end in ("failure_timestamp", "trigger_timestamp")):
            return row | {"end_to_end_duration": max(0, row["failure_timestamp"] - row["trigger_timestamp"])}
        return row

    @property
    def state_bytes(self) -> int:
        """The size of all state without in-flight data, if their size is known (a log has it in dumps only); -1 if unknown."""
        return self.state_size - max(self.persisted_data, 0) if self.state_size >= 0 else -1


class Checkpoints(RestObject):
    """The checkpoints of a job.  `counts` includes triggers that were declined before they got an id; `list` does not."""

    counts: dict[str, int] = Field(default_factory=dict)
    list: tuple[RecordedCheckpoint, ...]


class RecordedJob(RestObject, ABC):
    """A recorded job.  Subclasses add its configuration."""

    name: str
    family: str = ""
    flink_version: str
    checkpoints: Checkpoints
    failures: Known = 0  # number of job failures that the source reports
    ran_ms: Known = 0  # period in which `failures` was counted

    @property
    @abstractmethod
    def vertices(self) -> Sequence[RecordedVertex]:
        """The vertices in topological order."""

    @property
    def triggered(self) -> list[RecordedCheckpoint]:
        """The checkpoints in the order of their triggers, without savepoints."""
        points = (point for point in self.checkpoints.list if not point.is_savepoint)
        return sorted(points, key=attrgetter("trigger_timestamp"))

    @abstractmethod
    def metric(self, vertex: str, name: str) -> pd.DataFrame:
        """Return the samples of a metric: a row per time [ms], a column per subtask.  NaN where a subtask was not sampled.

        The table is empty if the metric is unknown.
        """


@dataclass(frozen=True, slots=True)
class ImportedScenario:
    """The scenario of a real job, from its configuration or from measurements.

    If it is from measurements, it also has origins of values, open questions, and remarks on counters and cores.
    """

    document: dict[str, Any]
    question: str  # first line of the file
    comments: dict[str, str]  # dotted path -> comment; the empty path is the head of the file
    not_modelled: tuple[str, ...] = ()  # features of the job that a scenario cannot express
    inferred: int = 0  # number of values with an origin
    assumed: int = 0  # number of values that are usual in other jobs
    unknown: tuple[str, ...] = ()  # open questions
    warnings: tuple[str, ...] = ()  # counters that contradict each other, and contention for cores, as phrases

    @property
    def counts_text(self) -> str:
        """The number of values by origin, or "" if it is not from measurements."""
        assumed = f", {self.assumed} assumed as in other jobs" if self.assumed else ""
        total = self.inferred + self.assumed + len(self.unknown)
        return f"{self.inferred} values with a source{assumed}, {len(self.unknown)} UNKNOWN" if total else ""

    @property
    def text(self) -> str:
        """The scenario file."""
        return write(self.document, self.question, self.comments)


class ConfiguredJob(RecordedJob):
    """A recording that contains the configuration of its job, of a format in `sim.jobs.reading.FORMATS`."""

    @abstractmethod
    def to_document(self) -> ImportedScenario:
        """Return the scenario of its configuration."""

    @abstractmethod
    def observed_values(self) -> Iterable[tuple[str, str, float]]:
        """Return (quantity, vertex, value) of the whole run.  Values of single checkpoints are in `checkpoints`."""

    @abstractmethod
    def predicted_values(self, result: Any) -> Iterable[tuple[str, str, float]]:
        """Return the same values of a simulated run, as far as `sim.jobs.evidence.prediction` does not compute them."""

    @abstractmethod
    def history(self) -> Any:
        """Return the history, of the type that `sim.jobs.history.reading.history_of` returns."""


def checkpoints_table(checkpoints: Iterable[RecordedCheckpoint]) -> pd.DataFrame:
    """Return a row per checkpoint, including savepoints, with the columns of Flink's REST API."""
    columns = [name for name in RecordedCheckpoint.model_fields if name != "tasks"]
    return pd.DataFrame([[getattr(row, name) for name in columns] for row in checkpoints], columns=columns)


def subtasks_table(checkpoints: Iterable[RecordedCheckpoint]) -> pd.DataFrame:
    """Return a row per checkpoint and subtask, with the nested fields of Flink's REST API flattened."""
    rows = [
        [checkpoint.id, vertex, *_subtask_values(subtask)]
        for checkpoint in checkpoints
        for vertex, task in checkpoint.tasks.items()
        for subtask in task.subtasks
    ]
    return pd.DataFrame(rows, columns=["id", "vertex", *_SUBTASK_FIELDS])


_SUBTASK_FIELDS = {
    "index": "index",
    "status": "status",
    "ack_timestamp": "ack_timestamp",
    "end_to_end_duration": "end_to_end_duration",
    "start_delay": "start_delay",
    "alignment_duration": "alignment.duration",
    "alignment_processed": "alignment.processed",
    "alignment_persisted": "alignment.persisted",
    "sync_duration": "checkpoint.sync",
    "async_duration": "checkpoint.async_",
    "checkpointed_size": "checkpointed_size",
    "state_size": "state_size",
    "unaligned_checkpoint": "unaligned_checkpoint",
    "aborted": "aborted",
}
"""Column -> field of `RecordedSubtask`."""
_subtask_values = attrgetter(*_SUBTASK_FIELDS.values())
