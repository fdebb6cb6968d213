"""A recorded job: its graph, typed values, files, and a bound on memory."""

from __future__ import annotations

import gzip
import json
import math
import re
import stat
import threading
import zlib
from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from gzip import GzipFile
from json import JSONDecodeError
from pathlib import Path
from typing import Annotated, Any, BinaryIO, Literal, NamedTuple, Protocol

import numpy as np
import pandas as pd
from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, ValidationError

from sim.model.series.tables import is_known
from sim.model.text import PrintableError, one_line
from sim.model.units import format_size

# ---- Foreign JSON, read in bounded memory: its size as Python values is estimated from the text before it is parsed.
#
# Values may take thirty times the size of their text: ``{}`` and ``[]`` are two characters and 64 bytes.

MEMORY_BYTES = 1 << 30  # a million metric values, the most that are sampled, take 0.5 GiB by this estimate
DEEPEST = 100  # levels; Flink's answers and our recordings have ten
BYTES_OF_A_VALUE = 96  # an object with one entry, per bracket, colon and comma of its text
_TEXT = re.compile(rb'"(?:[^"\\]++|\\.)*+(?:"|\Z)', re.DOTALL)
_OPENING, _CLOSING = np.zeros(256, np.int8), np.zeros(256, np.int8)
_OPENING[list(b"[{")] = 1
_CLOSING[list(b"]}")] = 1


class BudgetError(ValueError):
    """The JSON would exceed the memory limit, or is nested too deeply."""

    def __init__(self, message: str, *, is_spent: bool = False) -> None:
        super().__init__(message)
        self.is_spent = is_spent  # True: no further reading is possible


class Budget:
    """The memory that a command may use for all foreign JSON.  Several threads may read."""

    def __init__(self, memory_bytes: int = MEMORY_BYTES) -> None:
        self.memory_bytes = memory_bytes
        self.bytes_by_place: dict[str, int] = {}
        self.spent_bytes = 0  # the sum of these
        self._counting = threading.Lock()

    def parse(self, content: bytes, place: str) -> Any:
        """Parse the JSON.  It replaces what was read at the same place before.  BudgetError; ValueError, RecursionError: no JSON."""
        self.check(content, place)
        return json.loads(content)

    def check(self, content: bytes, place: str) -> None:
        """BudgetError: the JSON would take too much memory, or is nested too deeply."""
        with self._counting:
            if not self._count(place, _bytes(content)) and not self._count(
                place, _bytes(content, _TEXT.sub(b"", content))
            ):
                self._count(place, 0)
                before = ", with what was read before" if self.spent_bytes else ""
                raise BudgetError(
                    f"would take more than {format_size(self.memory_bytes)} of memory{before}", is_spent=True
                )
        if _depth(content) > DEEPEST and _depth(_TEXT.sub(b"", content)) > DEEPEST:
            raise BudgetError(f"is nested more than {DEEPEST} levels deep")

    def _count(self, place: str, size_bytes: int) -> bool:
        """Set what a place takes, instead of what it took before.  True: all places together fit."""
        self.spent_bytes += size_bytes - self.bytes_by_place.get(place, 0)
        self.bytes_by_place[place] = size_bytes
        return self.spent_bytes <= self.memory_bytes


def _bytes(content: bytes, bare: bytes | None = None) -> int:
    """An upper bound of the bytes; `bare` is the content without its texts, whose commas don't count."""
    # one wide character makes all of its text wide
    character_bytes = 1 if content.isascii() and b"\\u" not in content else 4
    values = sum(map((content if bare is None else bare).count, (b"[", b"{", b":", b",")))
    return len(content) * character_bytes + values * BYTES_OF_A_VALUE


def _depth(content: bytes) -> int:
    if content.count(b"[") + content.count(b"{") <= DEEPEST:
        return 0
    characters = np.frombuffer(content, np.uint8)
    return int(np.cumsum(_OPENING[characters] - _CLOSING[characters], dtype=np.int32).max(initial=0))


# ---- Foreign files, plain or compressed.  Any fault of a file becomes a `RecordingError` that names it.

LARGEST_BYTES = 200_000_000  # a long recording has 0.5 MB
_GZIP = b"\x1f\x8b"
ZIP = b"PK\3\4"
_MAX_NAMED = 5  # number of mistakes in one message


class RecordingError(PrintableError, ValueError):
    """The file is no readable recording; the message names the file and the mistake."""


def parse(path: Path, *, largest_bytes: int = LARGEST_BYTES) -> Any:
    """The JSON in a file, compressed or not."""
    return _parse(path, _content(path, largest_bytes))


def refuse_special(path: Path) -> None:
    """RecordingError: the file is a pipe or a device, which may keep its reader waiting for ever."""
    try:
        mode = path.stat().st_mode
    except (OSError, ValueError):
        return  # a later reader reports the error
    if not stat.S_ISREG(mode) and not stat.S_ISDIR(mode):
        raise RecordingError(
            f"{path}: is a pipe or a device: write its content into a file, or give it to `ckptsim explain -`"
        )


@contextmanager
def opened(path: Path) -> Iterator[BinaryIO | GzipFile]:
    """The uncompressed bytes of a file.  RecordingError: it cannot be read, or is damaged."""
    refuse_special(path)
    try:
        with path.open("rb") as file:
            compressed = file.read(len(_GZIP)) == _GZIP
        with gzip.open(path, "rb") if compressed else path.open("rb") as file:
            yield file
    except RecordingError:  # raised by the user of the file
        raise
    except EOFError:
        raise RecordingError(f"{path}: the compressed file is cut off") from None
    except (gzip.BadGzipFile, zlib.error) as error:
        raise RecordingError(f"{path}: the compressed file is damaged ({error})") from None
    except (OSError, ValueError) as error:  # ValueError: no file can have this name
        raise RecordingError(f"{path}: cannot be read ({getattr(error, 'strerror', None) or error})") from None


def _content(path: Path, largest_bytes: int) -> bytes:
    """The uncompressed bytes; reading stops at the limit, so a zip bomb is not inflated."""
    if path.is_dir():
        raise RecordingError(f"{path}: is a directory; name one recording in it")
    with opened(path) as file:
        content = file.read(largest_bytes + 1)
    if len(content) > largest_bytes:
        raise RecordingError(f"{path}: holds more than {largest_bytes} bytes; no recording does")
    return content


def _parse(path: Path, content: bytes) -> Any:
    if not content.strip():
        raise RecordingError(f"{path}: is empty")
    try:
        return Budget().parse(content, path.name)
    except BudgetError as error:
        raise RecordingError(f"{path}: {error}") from None
    except UnicodeDecodeError:
        is_zip = content[: len(ZIP)] == ZIP or path.suffix == ".zip"
        raise RecordingError(
            f"{path}: {'is not a zip, or a damaged one' if is_zip else 'is not JSON: it is no text'}"
        ) from None
    except JSONDecodeError as error:
        raise RecordingError(f"{path}: is not JSON: {error.msg} at line {error.lineno}, column {error.colno}") from None
    except (ValueError, RecursionError) as error:  # numbers with thousands of digits, lists nested without end
        raise RecordingError(f"{path}: is not JSON we accept: {error}") from None


def summary(error: ValidationError) -> str:
    """The first mistakes, and the number of the others: ``checkpoints.list.3.id: Input should be a valid integer; ...``."""
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

    @property
    def exchange(self) -> str: ...


class RecordedVertex(Protocol):
    """A vertex of a recorded job."""

    @property
    def id(self) -> str: ...

    @property
    def parallelism(self) -> int: ...

    @property
    def inputs(self) -> Sequence[RecordedEdge]: ...

    @property
    def commits(self) -> bool:
        """Whether it commits output when a checkpoint completes."""
        ...

    @property
    def is_even(self) -> bool:
        """Whether it sends equal shares to the subtasks of its readers, or the shares are unknown."""
        ...


def is_read(vertices: Iterable[RecordedVertex], name: str) -> bool:
    """Whether any vertex reads this one; others are sinks."""
    return any(edge.upstream == name for vertex in vertices for edge in vertex.inputs)


def check_graph(vertices: Iterable[RecordedVertex]) -> None:
    """ValueError: two vertices share a name, or a vertex reads one that does not stand before it."""
    known: set[str] = set()
    for vertex in vertices:
        if vertex.id in known:
            raise ValueError(f"two nodes are called '{vertex.id}'")
        for edge in vertex.inputs:
            if edge.upstream not in known:
                raise ValueError(f"node '{vertex.id}' reads '{edge.upstream}', which does not stand before it")
        known.add(vertex.id)


# ---- A real Flink job that was watched: its graph, checkpoints and metrics, from any kind of source.
#
# Fields have the names, units and meaning of Flink's REST API (`/jobs/:id/checkpoints/details/:id` and its subtasks).
# Times are epoch milliseconds, durations milliseconds, sizes bytes, -1 is unknown.  Other fields of the API are
# ignored.

Number = Annotated[int, Field(ge=-(2**63), le=2**63)] | Annotated[float, Field(allow_inf_nan=False)]
_Sample = int | float  # NaN where nothing was sampled


def without_stand_in(value: object) -> object:
    """-1 in place of whatever stands for an unknown number.  An integer beyond a long is no value of Flink, and is left to be refused."""
    if isinstance(value, int) and abs(value) > 2**63:
        return value
    return -1 if value in (None, "", "NaN") or (isinstance(value, int | float) and not is_known(value)) else value


Known = Annotated[int, BeforeValidator(without_stand_in), Field(ge=-1, le=10**16)]
"""A time, duration, size or count; -1: unknown."""
LARGEST_ID = 10**12  # of a checkpoint


class _RestObject(BaseModel):
    """An object of Flink's REST API."""

    model_config = ConfigDict(frozen=True, extra="ignore")


class RecordedAlignment(_RestObject):
    """The alignment of a subtask."""

    duration: Known = -1
    processed: Known = 0
    persisted: Known = 0


class Phases(_RestObject):
    """The phases of one subtask's snapshot."""

    sync: Known = -1
    async_: Known = Field(default=-1, alias="async")


class RecordedSubtask(_RestObject):
    """The acknowledgement of a subtask, or its absence (`pending_or_failed`)."""

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


class RecordedTask(_RestObject):
    """The subtasks of a vertex in one checkpoint."""

    subtasks: tuple[RecordedSubtask, ...] = ()


class RecordedCheckpoint(_RestObject):
    """A checkpoint with its subtasks."""

    id: Annotated[int, Field(ge=0, le=LARGEST_ID)]
    status: Literal["IN_PROGRESS", "COMPLETED", "FAILED"]
    is_savepoint: bool = False
    checkpoint_type: str = "CHECKPOINT"
    trigger_timestamp: Known
    latest_ack_timestamp: Known = -1
    end_to_end_duration: Known = -1  # last acknowledgement - trigger; failed: failure - trigger
    checkpointed_size: Known = -1
    state_size: Known = -1
    processed_data: Known = 0
    persisted_data: Known = 0
    alignment_buffered: Known = 0
    num_subtasks: Known = 0
    num_acknowledged_subtasks: Known = 0
    failure_message: Annotated[str, BeforeValidator(lambda text: text or "")] = ""  # null: the checkpoint did not fail
    tasks: dict[str, RecordedTask] = Field(default_factory=dict)  # vertex -> task


class Checkpoints(_RestObject):
    """The checkpoints of a job.  `counts` includes triggers that were refused before they got an id; `list` does not."""

    counts: dict[str, int]
    list: tuple[RecordedCheckpoint, ...]


class RecordedJob(_RestObject, ABC):
    """A job that was watched.  Subclasses add its configuration."""

    name: str
    family: str = ""
    flink_version: str
    started_ms: Number
    ended_ms: Number
    final_state: str = ""
    checkpoints: Checkpoints
    failures: Known = 0  # of the job, as far as the source tells
    ran_ms: Known = 0  # the time in which it failed so often
    metrics: dict[str, dict[str, tuple[_Sample | tuple[_Sample | str | None, ...] | None, ...]]] = Field(
        default_factory=dict
    )

    @property
    @abstractmethod
    def vertices(self) -> Sequence[RecordedVertex]:
        """Upstream first."""

    def checkpoints_table(self) -> pd.DataFrame:
        """A row per checkpoint, savepoints included; Flink's columns."""
        return checkpoints_table(self.checkpoints.list)

    def subtasks_table(self) -> pd.DataFrame:
        """A row per checkpoint and subtask; the nested REST fields flattened as in our own `subtasks` table."""
        return subtasks_table(self.checkpoints.list)

    def metric(self, vertex: str, name: str) -> pd.DataFrame:
        """Samples of a metric: a row per time [ms], a column per subtask; NaN: not sampled.  Empty: the metric is unknown."""
        table = self.metrics.get(vertex, {})
        times, samples = table.get("t", ()), table.get(name, ())
        rows = [sample if isinstance(sample, tuple) else () for sample in samples]
        width = max((len(row) for row in rows), default=0)
        rows += [()] * (len(times) - len(rows))  # a metric that ended with its tasks
        padded = [[*row, *[None] * (width - len(row))] for row in rows[: len(times)]]
        numbers = [[_number(value) for value in row] for row in padded]
        samples_of = pd.DataFrame(
            numbers, index=pd.Index([_number(time) for time in times], name="t"), columns=range(width), dtype=float
        )
        return samples_of[samples_of.index.notna()]


class Import(NamedTuple):
    """An imported document, with its question, its comments, and the features that it lacks."""

    document: dict[str, Any]
    question: str
    comments: list[str]
    not_modelled: list[str]


class ConfiguredJob(RecordedJob):
    """A recording that holds the configuration of its job, of a format in `sim.jobs.reading.FORMATS`."""

    @abstractmethod
    def to_document(self, *, compare: bool = False) -> Import:
        """The scenario of its configuration; `compare`: with three kinds of barriers."""

    @abstractmethod
    def settings(self) -> Mapping[str, Any]:
        """A value for each independent choice of the configuration."""

    @abstractmethod
    def observed_values(self) -> Iterable[tuple[str, str, float]]:
        """(quantity, vertex, value) of the whole run, all but those of single checkpoints."""

    @abstractmethod
    def predicted_values(self, result: Any) -> Iterable[tuple[str, str, float]]:
        """The same of a simulated run, where `sim.jobs.evidence.prediction` does not compute it."""

    @abstractmethod
    def history(self) -> Any:
        """As `sim.jobs.history.reading.history_of` has it."""


def checkpoints_table(checkpoints: Iterable[RecordedCheckpoint]) -> pd.DataFrame:
    """A row per checkpoint, savepoints included; Flink's columns."""
    columns = [name for name in RecordedCheckpoint.model_fields if name != "tasks"]
    return pd.DataFrame([[getattr(row, name) for name in columns] for row in checkpoints], columns=columns)


def subtasks_table(checkpoints: Iterable[RecordedCheckpoint]) -> pd.DataFrame:
    """A row per checkpoint and subtask; the nested REST fields flattened as in our own `subtasks` table."""
    rows = [
        {
            "id": checkpoint.id,
            "vertex": vertex,
            "index": subtask.index,
            "status": subtask.status,
            "ack_timestamp": subtask.ack_timestamp,
            "end_to_end_duration": subtask.end_to_end_duration,
            "start_delay": subtask.start_delay,
            "alignment_duration": subtask.alignment.duration,
            "alignment_processed": subtask.alignment.processed,
            "alignment_persisted": subtask.alignment.persisted,
            "sync_duration": subtask.checkpoint.sync,
            "async_duration": subtask.checkpoint.async_,
            "checkpointed_size": subtask.checkpointed_size,
            "state_size": subtask.state_size,
            "unaligned_checkpoint": subtask.unaligned_checkpoint,
            "aborted": subtask.aborted,
        }
        for checkpoint in checkpoints
        for vertex, task in checkpoint.tasks.items()
        for subtask in task.subtasks
    ]
    return pd.DataFrame(rows, columns=SUBTASK_COLUMNS)


def _number(value: object) -> float:
    """The number in a foreign value; NaN: it is none."""
    return float(value) if isinstance(value, int | float) and abs(value) < _LARGEST else math.nan


_LARGEST = 1e30
SUBTASK_COLUMNS = [
    "id",
    "vertex",
    "index",
    "status",
    "ack_timestamp",
    "end_to_end_duration",
    "start_delay",
    "alignment_duration",
    "alignment_processed",
    "alignment_persisted",
    "sync_duration",
    "async_duration",
    "checkpointed_size",
    "state_size",
    "unaligned_checkpoint",
    "aborted",
]
