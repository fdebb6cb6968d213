"""Scenario files as Python objects: `Study`, `load` and `loads`; their comparison, and the simulation of one of them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import cached_property
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any, Unpack

from pandas import DataFrame

from sim.app.verbs.common import MAX_ROWS, Displayed, preformatted
from sim.app.verbs.options import Changes, FilePath, RunOptions, changes_as_lines, documented
from sim.app.verbs.results import Results, RunAgain
from sim.app.verbs.run import StudySource, origin_of, read_request, run
from sim.model.scenario import Scenario
from sim.model.schema.flink_block import apply_flink
from sim.model.schema.flink_file import flink_change
from sim.model.schema.study import Axis, apply
from sim.model.schema.study import ScenarioFile as Read
from sim.model.schema.study import loads as read
from sim.model.schema.text import Reading, ScenarioError, compose, value_at
from sim.model.text import one_line
from sim.model.units import format_duration
from sim.plane import Engine
from sim.results.formats import TextTable
from sim.runtime.result import Result
from sim.studies.comparison import Comparison
from sim.studies.plan import label
from sim.studies.run_folder import Runs

if TYPE_CHECKING:
    from sim.app.verbs.explore import Explorer


@dataclass(frozen=True, repr=False, eq=False)
class Study(Displayed, RunAgain):
    """A scenario file with every combination of its lists.  Created by `load` and `loads`; `with_` returns a changed copy.

    A study of one combination is a scenario: ``study["aligned"]``, or ``study.scenarios[0]``.
    """

    origin: StudySource  # text, file and changes
    chosen: tuple[tuple[str, str], ...] = ()  # (axis, value): the study has only combinations with all of these

    @cached_property
    def read(self) -> Read:
        """Return the parsed and validated file, limited to the chosen combinations."""
        origin = self.origin
        file = str(origin.file) if origin.file.is_file() else None
        try:
            found = read(origin.text, origin.name, overrides=origin.changes, folder=origin.folder, file=file)
        except ScenarioError as error:  # the command's name of a change
            named = (
                replace(problem, file=problem.file.replace("--set ", "changes: ", 1)) for problem in error.problems
            )
            raise ScenarioError(named) from None
        axes = {axis.name for axis in found.axes}
        fixed = {(axis, value) for axis, value in self.chosen if axis in axes}
        return replace(found, scenarios=tuple(scenario for scenario in found.scenarios if fixed <= set(scenario.axes)))

    @property
    def models(self) -> tuple[Scenario, ...]:
        """Return the scenarios as frozen dataclasses, times in ns and sizes in bytes."""
        return self.read.scenarios

    @property
    def name(self) -> str:
        """Return the name of the file, followed by the label if one combination is chosen: ``p4-severe: aligned``."""
        return f"{self.origin.name}: {self.labels[0]}" if self.chosen and len(self.models) == 1 else self.origin.name

    @property
    def question(self) -> str:
        """Return the first comment of the file."""
        return self.read.question

    @property
    def axes(self) -> dict[str, list[str]]:
        """Return {key: values} for each list in the file."""
        return {
            axis.name: list(dict.fromkeys(dict(model.axes)[axis.name] for model in self.models))
            for axis in self.read.axes
        }

    @property
    def labels(self) -> list[str]:
        """Return the labels of the combinations, as in tables: ``["aligned", "unaligned"]``."""
        return [label(model) for model in self.models]

    @property
    def scenarios(self) -> tuple[Study, ...]:
        """Return each combination as a study."""
        return tuple(replace(self, chosen=model.axes) for model in self.models)

    @property
    def warnings(self) -> list[str]:
        """Return warnings about the file, and about values that no recording covers."""
        from sim.jobs.evidence.envelope import warning

        return [*map(str, self.read.warnings), *filter(None, [warning(self.models)])]

    @property
    def assumptions(self) -> tuple[str, ...]:
        """Return assumptions: values marked UNKNOWN, values that no recording covers, and the backtest of an import."""
        from sim.app.report.results_page import assumptions

        return assumptions(self.read, self.origin.text)

    @property
    def text(self) -> str:
        """Return the YAML of the file, without changes."""
        return self.origin.text

    def with_(self, changes: Changes) -> Study:
        """Return a copy with other values: ``study.with_({"checkpoint.interval": "10 s"})``.  A list of values is an axis.

        ScenarioError: an unknown key or invalid value.  TypeError: changes of another form.
        """
        lines = changes_as_lines(changes)
        keys = [line.partition("=")[0] for line in lines]
        kept = tuple(
            (axis, value) for axis, value in self.chosen if not any(f"{axis}.".startswith(f"{key}.") for key in keys)
        )
        changed = Study(replace(self.origin, changes=(*self.origin.changes, *lines)), kept)
        _ = changed.read  # raise errors here, not at the first use
        return changed

    @documented(RunOptions)
    def run(self, **options: Unpack[RunOptions]) -> Results:
        """Simulate every combination, and the same job without checkpoints as a baseline.

        `folder`: output folder, as for `ckptsim run --out`.  `jobs`: processes; by default one per core, or none for short
        runs.  A combination whose run fails is in `errors` of the results.
        """
        request = read_request(self.origin, self.read, self.pinned)
        return Results.of(run(request, **options))

    def explore(self, axes: Changes = (), *, rows: DataFrame | None = None) -> Explorer:
        """Return a slider for each list of values, and the answer of the combination that they choose, for a notebook.

        `axes`: ``{"checkpoint.interval": ["10 s", "30 s"]}``; by default, intervals, barrier modes, storage speeds and
        loads around those of the study.  `rows`: results that are known already, with a column per axis: ``results.table`` of a
        study or ``results`` of a sweep; by default, only axes that they have.  Other combinations are simulated when they are
        chosen.

        ImportError: anywidget is not installed.  ValueError: an axis has no column in `rows`.
        """
        try:
            from sim.app.verbs.explore import Explorer
        except ImportError as error:
            raise ImportError(f"explore() needs anywidget: pip install 'ckptsim[notebook]' ({error})") from None
        study = self.with_(axes) if axes else self._with_default_axes(rows)
        if rows is not None and (missing := study.axes.keys() - set(rows.columns)):
            raise ValueError(f"rows: no column for the axis {', '.join(sorted(missing))}")
        labels = {
            "\n".join(dict(model.axes)[axis] for axis in study.axes): name
            for model, name in zip(study.models, study.labels, strict=True)
        }
        return Explorer(study.axes, lambda values: study[labels[values]].run(jobs=1), rows)

    def _with_default_axes(self, rows: DataFrame | None) -> Study:
        """Return the study with lists of intervals, barrier modes, storage speeds and loads, where it has none.

        With `rows`, only of those that have a column there.
        """
        study, model = self, self.models[0]
        axes = {
            "checkpoint.barriers": ["aligned", "unaligned", {"aligned-timeout": "1 s"}],
            "storage.bandwidth": ["20 MB/s", "100 MB/s", "500 MB/s"],
        }
        if (interval_ns := model.checkpoint.interval_ns) is not None:
            axes["checkpoint.interval"] = [format_duration(interval_ns * quarters // 4) for quarters in (1, 2, 4, 8)]
        for vertex in model.job.vertices:
            if vertex.source is not None and len(vertex.source.rates) == 1:
                rate = vertex.source.rates[0].per_second
                for key, subtasks in (("rate", vertex.parallelism), ("rate-per-subtask", 1)):
                    loads = [f"{rate * subtasks * tenths // 10}/s" for tenths in (5, 10, 15)]
                    axes[f"job.{vertex.name}.source.{key}"] = loads
        for key in sorted(axes.keys() - study.axes.keys()):
            if rows is None or key in rows.columns:
                with suppress(ScenarioError):  # the file says it by another key
                    study = study.with_({key: axes[key]})
        return study

    def flink_configuration(self) -> str:
        """Return lines for Flink's config.yaml.  ValueError: the study has several combinations."""
        from sim.model.schema.option_values import configuration_text

        return configuration_text(self.single("flink_configuration"))

    @property
    def pinned(self) -> tuple[str, ...]:
        """Return ``key=value`` changes: those of this study, and the values of the chosen combination."""
        reading = Reading(self.origin.name)
        plain = apply(compose(self.origin.text, reading), self.origin.changes, reading)
        apply_flink(plain, reading, self.origin.folder)
        values = dict(self.chosen)
        picked = {axis.name: _value(plain, axis, values[axis.name]) for axis in self.read.axes if axis.name in values}
        return (*self.origin.changes, *changes_as_lines(picked))

    def single(self, what: str) -> Scenario:
        """Return the model of the only combination.  ValueError: there are several.  `what`: caller, for the message."""
        if len(self.models) != 1:
            raise ValueError(
                f"{what} takes one combination, and {self.name} has {len(self.models)}: choose one, e.g. {self._choice()}"
            )
        return self.models[0]

    def __getitem__(self, which: str | int) -> Study:
        """Return one combination, by label or index."""
        if isinstance(which, int):
            return self.scenarios[which]
        if which not in self.labels:
            raise KeyError(f"{which!r}: there are {', '.join(self.labels)}")
        return self.scenarios[self.labels.index(which)]

    def _ipython_key_completions_(self) -> list[str]:
        """Return what completes ``study["``."""
        return self.labels

    def __iter__(self) -> Iterator[Study]:
        return iter(self.scenarios)

    def __len__(self) -> int:
        """Return the number of combinations."""
        return len(self.models)

    def _parts(self) -> list[str | TextTable]:
        return [self.question, TextTable("", *self._rows())]

    def __repr__(self) -> str:
        count = len(self)
        return f"Study({one_line(self.name)}: {count} combination{'' if count == 1 else 's'})\n{super().__repr__()}"

    def _repr_html_(self) -> str:
        return super()._repr_html_() + preformatted(self._beginning())

    def _beginning(self) -> str:
        """Return the first lines of the file and all changes."""
        lines = self.origin.text.rstrip().splitlines()
        rest = [f"... and {len(lines) - MAX_ROWS} more lines"] if len(lines) > MAX_ROWS else []
        return "\n".join([*lines[:MAX_ROWS], *rest, *(f"# changed: {line}" for line in self.origin.changes)])

    def _rows(self) -> tuple[list[str], list[list[str]]]:
        header = ["scenario", "vertices", "barriers", "interval", "run"]
        rows = []
        for name, model in zip(self.labels, self.models, strict=True):
            interval = (
                "no checkpoints"
                if model.checkpoint.interval_ns is None
                else format_duration(model.checkpoint.interval_ns)
            )
            vertices = " -> ".join(f"{vertex.name} x{vertex.parallelism}" for vertex in model.job.vertices)
            rows.append(
                [name, vertices, str(model.checkpoint.barriers), interval, format_duration(model.run.duration_ns)]
            )
        return header, rows

    @property
    def _again(self) -> Runs:
        """Return the combinations, to be run with observers."""
        return Runs(self.name, self.question, dict(zip(self.labels, self.models, strict=True)))

    def _choice(self) -> str:
        return f'study["{self.labels[0]}"]' if self.models else "study[0]"


def load(file: str | PathLike[str], changes: Changes = (), *, flink: str | PathLike[str] | None = None) -> Study:
    """Read a scenario file.  `changes`: ``{"checkpoint.interval": "10 s"}``, or ``key=value`` lines as after `--set`.

    `flink`: Flink configuration whose values override the file: flink-conf.yaml, config.yaml or a FlinkDeployment.

    ScenarioError: all mistakes in the file, with lines.  TypeError: changes of another form.  OSError: not readable.
    """
    if Path(file).is_dir():
        raise ScenarioError.of(
            file,
            "is a folder; a scenario file (.yaml) was expected: a folder of results has one, and tables that pandas.read_parquet reads",
        )
    deployed = [] if flink is None else [flink_change(Path(flink), Path(file))]
    return _checked(Study(origin_of(Path(file), [*deployed, *changes_as_lines(changes)])))


def loads(text: str, name: str = "scenario", *, changes: Changes = (), folder: str | PathLike[str] = ".") -> Study:
    """Read a scenario from text.  Paths in it are relative to `folder`.  Raises the errors of `load`."""
    return _checked(Study(StudySource(text, name, Path(folder) / f"{name}.yaml", tuple(changes_as_lines(changes)))))


def study_of(what: object) -> Study:
    """Return a study, or read it from a path.  TypeError: neither."""
    if isinstance(what, Study):
        return what
    if isinstance(what, (str, PathLike)):
        return load(what)
    raise TypeError(f"expected a study (sim.load) or the path of a scenario file, not {type(what).__name__}")


def _value(plain: Any, axis: Axis, chosen: str) -> Any:
    """Return the document's value of an axis for its chosen label."""
    return value_at(plain, (*axis.path, axis.values.index(chosen)))  # noqa: PD011 - of an Axis


def _checked(study: Study) -> Study:
    _ = study.read
    return study


# ---- Comparison of studies.


def compare(
    *studies: Study | Results | FilePath | Mapping[str, Study | Results | FilePath],
    jobs: int | None = None,
    checks: bool = True,
) -> Results:
    """Run studies and compare them: ``sim.compare("job.yaml")`` or ``sim.compare({"today": a, "new": b})``.

    Studies, scenario files and existing results may be mixed; results are not computed again.  Unnamed arguments take the
    name of their study, numbered if it is not unique.

    Raises:
        ValueError: There is nothing to compare.
        TypeError: An argument is not a study, results or a path.
    """
    by_name = _by_name(studies)
    if not by_name:
        raise ValueError("nothing to compare: give studies, results or scenario files")
    results = {
        name: study if isinstance(study, Results) else study_of(study).run(jobs=jobs, checks=checks)
        for name, study in by_name.items()
    }
    if len(results) == 1 and not isinstance(studies[0], Mapping):  # one unnamed study: its labels are unchanged
        return next(iter(results.values()))
    return _combine(results)


def simulate(scenario: Study | Scenario, *, engine: Engine = "compiled", checks: bool = True) -> Result:
    """Simulate one scenario once, and return its tables, journal and manifest.

    Raises:
        ValueError: The study has several combinations, or the engine is unknown.
        TypeError: `scenario` is not a scenario or a study.
    """
    from sim.model import scenario as model
    from sim.runtime import simulate as runtime

    if isinstance(scenario, Study):
        scenario = scenario.single("simulate")
    if not isinstance(scenario, model.Scenario):
        raise TypeError(
            f'expected a study with a single combination (sim.load(...)["aligned"]), not {type(scenario).__name__}'
        )
    return runtime.simulate(scenario, engine=engine, check=checks)


def _by_name(studies: Sequence[object]) -> dict[str, object]:
    """Return the studies by their given names, or by those of their files: ``job``, ``job (2)``."""
    named: dict[str, object] = {}
    uses: Counter[str] = Counter()
    for study in studies:
        if isinstance(study, Mapping):
            named |= {str(name): value for name, value in study.items()}
            uses.update(map(str, study))
            continue
        name = study.comparison.name if isinstance(study, Results) else study_of(study).name
        uses[name] += 1
        named[f"{name} ({uses[name]})" if uses[name] > 1 else name] = study
    return named


def _combine(by_name: Mapping[str, Results]) -> Results:
    """Combine results in one comparison, and prefix the labels of strategies with the given names.

    The backtest is kept if there is exactly one.
    """
    runs: dict[str, tuple[Result, ...]] = {}
    baselines: dict[str, Result] = {}
    errors: dict[str, str] = {}
    for name, results in by_name.items():
        has_several_strategies = len(results.runs) + len(results.errors) > 1
        baselines |= results.comparison.baselines
        for strategy, replications in results.runs.items():
            axes_of_strategy = replications[0].scenario.axes or (("", strategy),)
            axes = (("", name), *(axes_of_strategy if has_several_strategies else ()))
            label = f"{name}, {strategy}" if has_several_strategies else name
            runs[label] = tuple(replace(run, scenario=replace(run.scenario, axes=axes)) for run in replications)
        for strategy, error in results.errors.items():
            errors[f"{name}, {strategy}" if has_several_strategies else name] = error
    questions = list(dict.fromkeys(results.question for results in by_name.values() if results.question))
    comparison = Comparison(questions[0] if len(questions) == 1 else "", " and ".join(by_name), runs, baselines, errors)
    assumptions = tuple(dict.fromkeys(line for results in by_name.values() for line in results.assumptions))
    # the same backtest may belong to several results
    backtests = {id(results.backtest): results.backtest for results in by_name.values() if results.backtest is not None}
    return Results(comparison, assumptions, backtest=next(iter(backtests.values())) if len(backtests) == 1 else None)
