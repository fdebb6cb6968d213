"""A job and its limits in; protocol, interval and Flink configuration out."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any

from sim.api.changes import Changes, lines_of
from sim.api.display import paragraph, preformatted, section_html, section_text
from sim.api.progress import watching
from sim.api.study import Study, load

if TYPE_CHECKING:
    from sim.advice.report import Report
    from sim.analysis.section import Section
    from sim.plane import Engine

__all__ = ["Advice", "advise"]


class Advice:
    """What to set, why, and how sure that is; it shows itself as text and tables."""

    def __init__(self, report: Report, folder: Path, job: Path, changes: Sequence[str]) -> None:
        self._report = report
        self._job = job
        self._changes = tuple(changes)
        self.folder = folder
        """The job, the sweep of what was tried (sweep.yaml), and every run (results.parquet)."""

    @property
    def verdict(self) -> str:
        """The first sentence: what to do, and which limits it keeps."""
        first = self._report.parts[0]
        return first if isinstance(first, str) else first.title

    @property
    def parts(self) -> Sequence[str | Section]:
        """Texts and tables (title, header, rows of text), in their order."""
        return self._report.parts

    @property
    def setting(self) -> tuple[str, str] | None:
        """(interval, protocol), such as ("10 s", "unaligned"); None: nothing that was tried keeps the limits."""
        return None if self._report.chosen is None else self._report.chosen.name

    @property
    def configuration(self) -> str:
        """Lines for the configuration of Flink; empty without a setting."""
        return str(self._report.data["configuration"])

    @property
    def data(self) -> dict[str, Any]:
        """Everything as `ckptsim advise --json` gives it; times in ms, shares between 0 and 1."""
        return self._report.plain()

    @property
    def study(self) -> Study:
        """The job with the advised setting; without one, the job as it is."""
        advised = {} if self._report.advised is None else dict(self._report.advised.point)
        return load(self._job, self._changes).with_(advised)

    def __repr__(self) -> str:
        return "\n\n".join(part if isinstance(part, str) else section_text(part) for part in self.parts)

    def _repr_html_(self) -> str:
        return "".join(map(_html, self.parts))


def advise(
    source: Study | str | PathLike[str], *, p99: str | None = None, recovery: str | None = None, loss: str | None = None,
    visible: str | None = None, mtbf: str | None = None, load: Sequence[str] = (), changes: Changes = (), replications: int = 12,
    budget: str = "90 s", horizon: str = "2 h", unknowns: bool = True, folder: str | PathLike[str] | None = None, jobs: int | None = None,
    engine: Engine = "compiled", master: str | None = None, conf: Mapping[str, str] | None = None, progress: bool = True,
) -> Advice:  # fmt: skip
    """Try protocols and intervals on a job, undisturbed and with a failure, and choose a setting that keeps the limits.

    `source`: a study of one combination, a scenario file, or what `import_job` reads.  Limits, each may be left out: `p99` of checkpoints
    ("2 s"), `recovery` ("2 min"), `loss` of throughput ("3 %"), `visible` output of transactional sinks ("30 s").  `mtbf`: mean time
    between failures ("12 h").  `load`: ``"[source=]file.csv[:column]"``, what arrives.  `budget`: processor time of all runs; what
    is left out is listed.  `horizon`: for how long limits have to be kept where state grows.  `unknowns`: try other values of what is
    marked UNKNOWN.  Runs are kept in `folder` (``runs/advise-<name>``).
    Raises ScenarioError, UnitError (a limit that is none), RecordingError.
    """
    from sim.advice.job import job_file, prepared
    from sim.advice.judgement import Limits
    from sim.advice.report import report
    from sim.advice.trial_runner import TrialRunner
    from sim.units import parse_duration, parse_share

    limits = Limits(_ms(recovery), _ms(p99), None if loss is None else float(parse_share(loss)), _ms(visible))
    name, file, text, own = _job(source)
    place = Path("runs") / f"advise-{name}" if folder is None else Path(folder)
    place.mkdir(parents=True, exist_ok=True)
    overrides = [*own, *lines_of(changes)]
    file = job_file(file, text, place)
    bench = prepared(file, overrides, list(load), recovery_ms=limits.recovery_ms, ahead_ns=parse_duration(horizon))

    budget_s = (_ms(budget) or 0.0) / 1e3
    runner = TrialRunner(place, engine=engine, jobs=jobs, master=master, conf=conf, budget_s=budget_s)
    with runner.workers, watching("trying settings", round(budget_s * 1e9), None, show=progress) as runner.watch:
        found = report(
            bench, limits, _ms(mtbf), runner.run, place, max_replications=replications, affords=runner.affords, vary=unknowns
        )  # fmt: skip
    runner.collected()
    return Advice(found, place, file, overrides)


def _job(source: Study | str | PathLike[str]) -> tuple[str, Path, str | None, Sequence[str]]:
    """(name, scenario file, text if there is no such file, changes)."""
    from sim.api.imported import import_job

    if isinstance(source, Study):
        source.single("advise")
        there = source.origin.file.is_file()
        return source.origin.name, source.origin.file, None if there else source.text, source.pinned
    path = Path(source)
    if path.suffix in (".yaml", ".yml"):
        return path.stem, path, None, ()
    return path.name.partition(".")[0], path, import_job(path).text, ()


def _ms(text: str | None) -> float | None:
    from sim.units import parse_duration

    return None if text is None else parse_duration(text) / 1e6


def _html(part: str | Section) -> str:
    if not isinstance(part, str):
        return section_html(part)
    return preformatted(part) if "\n" in part else paragraph(part)
