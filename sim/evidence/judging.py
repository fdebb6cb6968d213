"""One recording, judged: its truth table and what else is needed to sum up many of them, or why there is none."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from sim.evidence.settings import Settings, settings_of_measured
from sim.evidence.truth import truth
from sim.recordings import ConfiguredJob, Measured, RecordedJob, RecordingError, read_any, to_document
from sim.scenario import ScenarioError

if TYPE_CHECKING:
    import pandas as pd

    from sim.model.scenario import Overheads
    from sim.recordings.source.graph import RecordedVertex


class Judgement(NamedTuple):
    """The outcome of one file."""

    table: pd.DataFrame | None
    name: str = ""
    graph: Sequence[RecordedVertex] = ()
    settings: Settings | None = None
    lost: Sequence[str] = ()  # features that are not modelled
    trouble: str = ""  # why there is no table
    is_measured: bool = False  # its configuration is unknown


def judge(path: Path, progress: Callable[[int], None], *, seeds: int, time_limit_s: float, overheads: Overheads | None = None) -> Judgement:
    """The truth table of one file.  Nothing in one file keeps the others from being judged."""
    progress(0)
    try:
        recording = read_any(path)
        document = to_document(recording)
        seeded, watch = range(1, seeds + 1), _impatient(time_limit_s)
        table = truth(recording, document=document, seeds=seeded, overheads=overheads, progress=watch)
        is_measured = isinstance(recording, Measured)
        return Judgement(table, recording.name, recording.vertices, _settings(recording), document.not_modelled, is_measured=is_measured)
    except RecordingError as error:
        return Judgement(None, trouble=str(error) if str(path) in str(error) else f"{path}: {error}")
    except ScenarioError as error:
        return Judgement(None, trouble=f"{path}: is a recording of a job that cannot be simulated: {error}")
    except _OutOfTimeError as error:
        return Judgement(None, trouble=f"{path}: {error}")
    except MemoryError:
        return Judgement(None, trouble=f"{path}: is a recording of a job too large for the memory of this machine")
    except Exception as error:  # noqa: BLE001 - any error of ours: the other recordings are still judged
        return Judgement(None, trouble=f"{path}: the simulation broke: {type(error).__name__}: {error}")


def _settings(recording: RecordedJob) -> Settings | None:
    if isinstance(recording, ConfiguredJob):
        return recording.settings()
    return settings_of_measured(recording) if isinstance(recording, Measured) else None


class _OutOfTimeError(Exception):
    """A recording takes longer than the user will wait."""


def _impatient(limit_s: float) -> Callable[[int], None]:
    """Called while a simulation goes on."""
    end_s = time.monotonic() + limit_s

    def progress(simulated_ns: int) -> None:
        if time.monotonic() > end_s:
            raise _OutOfTimeError(f"took longer than {limit_s:g} s ({simulated_ns / 1e9:.0f} s simulated); --time-limit allows more")

    return progress
