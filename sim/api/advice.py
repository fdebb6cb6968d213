"""A job and its limits in; protocol, interval and Flink configuration out."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any

from sim.api.changes import Changes, lines_of
from sim.api.progress import Notebook
from sim.api.study import Study, load
from sim.verbs import advise as verb
from sim.verbs.advise import AdviceOptions, Advised, AdvisedJob
from sim.verbs.display import paragraph, preformatted, section_html, section_text

if TYPE_CHECKING:
    from sim.analysis.section import TextTable
    from sim.plane import Engine


class Advice:
    """What to set, why, and how sure that is; it shows itself as text and tables."""

    def __init__(self, advised: Advised) -> None:
        self._advised = advised
        self._report = advised.report

    @property
    def folder(self) -> Path:
        """The job, the sweep of what was tried (sweep.yaml), and every run (results.parquet)."""
        return self._advised.folder

    @property
    def verdict(self) -> str:
        """The first sentence: what to do, and which limits it keeps."""
        first = self._report.parts[0]
        return first if isinstance(first, str) else first.title

    @property
    def parts(self) -> Sequence[str | TextTable]:
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
        return load(self._advised.file, self._advised.changes).with_(advised)

    def __repr__(self) -> str:
        return "\n\n".join(part if isinstance(part, str) else section_text(part) for part in self.parts)

    def _repr_html_(self) -> str:
        return "".join(map(_html, self.parts))


def advise(
    source: Study | str | PathLike[str], *, p99: str | None = None, recovery: str | None = None, loss: str | None = None,
    visible: str | None = None, mtbf: str | None = None, load: Sequence[str] = (), changes: Changes = (), replications: int = 12,
    budget: str = "90 s", within: str = "5 min", horizon: str = "2 h", unknowns: bool = True, folder: str | PathLike[str] | None = None,
    jobs: int | None = None, engine: Engine = "compiled", master: str | None = None, conf: Mapping[str, str] | None = None,
    progress: bool = True,
) -> Advice:  # fmt: skip
    """Try protocols and intervals on a job, undisturbed and with a failure, and choose a setting that keeps the limits.

    `source`: a study of one combination, a scenario file, or what `import_job` reads.  Limits, each may be left out: `p99` of checkpoints
    ("2 s"), `recovery` ("2 min"), `loss` of throughput ("3 %"), `visible` output of transactional sinks ("30 s").  `mtbf`: mean time
    between failures ("12 h").  `load`: ``"[source=]file.csv[:column]"``, what arrives.  `budget`: processor time of all runs;
    `within`: time until the answer.  At either bound it is given from what has run, and what is left out is listed.  `horizon`: for how
    long limits have to be kept where state grows.  `unknowns`: try other values of what is marked UNKNOWN.  Runs are kept in `folder`
    (``runs/advise-<name>``).
    Raises ScenarioError, OptionError (a UnitError: a limit that is none), RecordingError.
    """
    options = AdviceOptions(
        p99=p99, recovery=recovery, loss=loss, visible=visible, mtbf=mtbf, load=tuple(load), replications=replications, budget=budget,
        within=within, horizon=horizon, unknowns=unknowns,
    )  # fmt: skip
    listener = Notebook(show=progress)
    advised = verb.advise(
        _job(source, lines_of(changes), listener), options, None if folder is None else Path(folder), engine=engine, jobs=jobs,
        master=master, conf=conf, listener=listener,
    )  # fmt: skip
    return Advice(advised)


def _job(source: Study | str | PathLike[str], changes: Sequence[str], listener: Notebook) -> AdvisedJob:
    if not isinstance(source, Study):
        return verb.job_of(Path(source), changes, listener)
    source.single("advise")
    origin = source.origin
    return AdvisedJob(origin.name, origin.file, None if origin.file.is_file() else source.text, (*source.pinned, *changes))


def _html(part: str | TextTable) -> str:
    if not isinstance(part, str):
        return section_html(part)
    return preformatted(part) if "\n" in part else paragraph(part)
