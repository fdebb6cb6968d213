"""A real job as a study: read off Flink's REST API, what was saved of it, logs, or a recording."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING

from sim.api.display import paragraph, preformatted
from sim.api.progress import watching
from sim.api.study import Study, loads

if TYPE_CHECKING:
    from sim.recordings.reading import RecordingSource

__all__ = ["ImportedJob", "import_job"]


@dataclass(frozen=True, repr=False)
class ImportedJob:
    """A job that was read, and how sure that is."""

    name: str
    text: str  # the scenario; every value says where it comes from
    unknown: tuple[str, ...]  # questions that nobody could answer: marked UNKNOWN in the text
    not_modelled: tuple[str, ...]
    backtest: tuple[str, ...]  # the simulation of the job as it is against its own history, in lines

    @property
    def study(self) -> Study:
        """The job as a study."""
        return loads(self.text, self.name)

    def save(self, file: str | PathLike[str]) -> Path:
        """Write the scenario file; returns its path."""
        from sim.scenario.text.writer import placed
        from sim.whole_file import replace_text

        replace_text(Path(file), placed(self.text, Path(file).parent))
        return Path(file)

    def __repr__(self) -> str:
        return "\n".join([f"ImportedJob({self.name}), {len(self.text.splitlines())} lines", *self._lines()])

    def _repr_html_(self) -> str:
        return paragraph(f"{self.name}, {len(self.text.splitlines())} lines") + preformatted("\n".join(self._lines()))

    def _lines(self) -> list[str]:
        lost = [f"not modelled: {line}" for line in self.not_modelled]
        return [*lost, *(f"UNKNOWN: {question}" for question in self.unknown), *self.backtest]


def import_job(
    *sources: str | PathLike[str], job: str | None = None, sample: str = "60 s", headers: Mapping[str, str] | None = None,
    compare: bool = False, backtest: bool = True, progress: bool = True,
) -> ImportedJob:  # fmt: skip
    """Turn a real Flink job into a scenario.

    `sources`: an address (``"http://jobmanager:8081"``), a folder or zip of saved answers, an archive of a history server, logs of a
    JobManager, or a recording.  `job`: its id, if there are several.  `sample`: how long metrics of a live job are watched.
    `compare`: under three kinds of barriers instead of its own.  `backtest`: simulate the job as it is, and hold that to its history.
    Raises RecordingError (not readable), ScenarioError (no scenario comes of it), UnitError.
    """
    from sim.recordings import Import as Read
    from sim.recordings import Inference, Recording, compared, infer, to_document
    from sim.scenario import write

    if not sources:
        raise TypeError("import_job needs an address, a folder, or files")
    source = _source(sources, job, sample, headers or {}, progress=progress)
    found: Read | Inference
    if isinstance(source, Recording):
        found = to_document(source, compare=compare)
    else:
        found = compared(infer(source)) if compare else infer(source)
    lines: list[str] = []
    if backtest:
        from sim.backtest.imports import with_backtest

        with watching("backtest", 100, 100, show=progress, what_each="per cent") as watch:
            found, lines = with_backtest(source, found, watch=lambda share: watch(round(100 * share), round(100 * share)))
    text = write(found.document, found.question, found.comments)
    name = _name(sources[0], source)
    loads(text, name)
    unknown = tuple(map(str, found.unknown)) if isinstance(found, Inference) else ()
    return ImportedJob(name, text, unknown, tuple(map(str, found.not_modelled)), tuple(lines))


def _source(
    sources: Sequence[str | PathLike[str]], job: str | None, sample: str, headers: Mapping[str, str], *, progress: bool
) -> RecordingSource:
    from sim.recordings import fetch, read_source
    from sim.units import parse_duration

    first = str(sources[0])
    if "://" not in first:
        return read_source([Path(name) for name in sources], job)
    if len(sources) > 1:
        raise ValueError("one address at a time; only the parts of a log go together")
    sample_s = parse_duration(sample) / 1e9
    with watching("watching metrics", round(sample_s), round(sample_s), show=progress, what_each="s") as watch:
        return fetch(
            first, job, sample_s=sample_s, total_s=None, headers=dict(headers), watch=lambda passed: watch(round(passed), round(passed))
        )


def _name(first: str | PathLike[str], source: RecordingSource) -> str:
    from sim.recordings import Recording

    if isinstance(source, Recording):
        return source.name
    return "job" if "://" in str(first) else Path(first).name.partition(".")[0]
