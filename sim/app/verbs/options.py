"""The options of each command, described once.

A command has a TypedDict: a key is the keyword of Python, its `Option` says what the command line needs beside that.
Derived are the options of the command line (`sim/app/cli/options.py`), the keywords of Python (``**options:
Unpack[AdviseOptions]``), the stored command line, and the reference. `--help` imports this module, so it imports
nothing heavy.
"""

from __future__ import annotations

import inspect
import os
import shlex
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import (
    TYPE_CHECKING,
    Annotated,
    Any,
    Literal,
    TypeAlias,
    TypedDict,
    TypeVar,
    cast,
    get_args,
    get_type_hints,
)

from sim.app.verbs.common import OptionError
from sim.model.text import without_credentials

Engine: TypeAlias = Literal["compiled", "interpreted"]
if TYPE_CHECKING:
    from os import PathLike

    FilePath: TypeAlias = str | PathLike[str]
    Changes: TypeAlias = Mapping[str, Any] | Sequence[str]
    Settings: TypeAlias = Mapping[str, str]
    Lines: TypeAlias = Sequence[str]
else:  # the types that typer parses
    FilePath = Path
    Changes = Settings = Lines = list[str]

T = TypeVar("T", bound=Mapping[str, object])
F = TypeVar("F", bound=Callable[..., object])


@dataclass(frozen=True, slots=True)
class Option:
    """An option of a command, under its name in Python."""

    help: str
    default: Any = None
    flag: str = ""  # names on the command line; empty: that of Python
    metavar: str | None = None
    min: int | None = None
    is_stored: bool = True  # changes results: part of the stored command line
    of: Literal["", "simulated runs", "real jobs"] = ""  # it makes no sense for the others

    def flags(self, name: str) -> list[str]:
        """``--out -o``, or ``--checks/--no-checks`` where True is the default."""
        first, *others = (self.flag or f"--{name.replace('_', '-')}").split()
        return [f"{first}/--no-{first[2:]}" if self.default is True else first, *others]


@cache
def options_of(kind: type) -> dict[str, tuple[Any, Option]]:
    """Name in Python -> type and description, of a TypedDict of options."""
    hints = get_type_hints(kind, include_extras=True).items()
    return {name: (get_args(hint)[0], hint.__metadata__[0]) for name, hint in hints}


def with_defaults(kind: type[T], given: T) -> T:
    """All options: those given, and the defaults of the others."""
    return cast("T", {name: option.default for name, (_, option) in options_of(kind).items()} | dict(given))


def part_of(kind: type[T], given: Mapping[str, object]) -> T:
    """The options that are of this kind."""
    return cast("T", {name: given[name] for name in options_of(kind)})


def refuse_others(kind: type[T], given: T, of: Literal["simulated runs", "real jobs"]) -> None:
    """OptionError: an option is given that is for the others."""
    for name, (_, option) in options_of(kind).items():
        if option.of not in ("", of) and given[name] != option.default:
            raise OptionError(name, f"is for {option.of}")


def flag_of(name: str) -> str:
    """``--out`` of `folder`: the name on the command line of what Python calls so."""
    kinds = [kind for kind in globals().values() if isinstance(kind, type) and hasattr(kind, "__total__")]
    found = (
        option.flags(name)[0].partition("/")[0]
        for kind in kinds
        for own, (_, option) in options_of(kind).items()
        if own == name
    )
    return next(found, "SOURCE" if name == "sources" else f"--{name.replace('_', '-')}")


def documented(kind: type) -> Callable[[F], F]:
    """Add the options of a function to its signature and docstring, where editors and `help` look for them."""

    def document(function: F) -> F:
        own = inspect.signature(function)
        parameters = [known for known in own.parameters.values() if known.kind is not known.VAR_KEYWORD]
        lines = [inspect.cleandoc(function.__doc__ or ""), "\nOptions:"]
        for name, (type_, option) in options_of(kind).items():
            keyword = inspect.Parameter.KEYWORD_ONLY
            parameters.append(inspect.Parameter(name, keyword, default=option.default, annotation=type_))
            lines.append(f"    {name}: {option.help}")
        function.__signature__ = own.replace(parameters=parameters)  # type: ignore[attr-defined]
        function.__doc__ = "\n".join(lines)
        return function

    return document


# ---- Values as Python has them -> values as the command has them.


def path_of(given: FilePath | None) -> Path | None:
    return None if given is None else Path(given)


_EXPECTED = """expected {"checkpoint.interval": "10 s"} or ["checkpoint.interval=10 s"]"""


def lines_of(changes: Changes | Any) -> list[str]:
    """TypeError: neither a mapping from keys to values nor a list of ``key=value``."""
    if isinstance(changes, Mapping):
        if wrong := [key for key in changes if not isinstance(key, str)]:
            raise TypeError(f"changes: {_EXPECTED}, and {wrong[0]!r} is not a key")
        from sim.studies.sweeps.design import override

        return [override(key, value) for key, value in changes.items()]
    if (
        isinstance(changes, str)
        or not isinstance(changes, Sequence)
        or not all(isinstance(line, str) for line in changes)
    ):
        raise TypeError(f"changes: {_EXPECTED}, not {type(changes).__name__}")
    return list(changes)


# ---- The command that repeats a call: it is the same for shell and Python, without paths of this machine and credentials.


def command_line(
    verb: str, arguments: Sequence[str | Path], kind: type | None = None, given: Mapping[str, Any] | None = None
) -> str:
    """``ckptsim sweep day.yaml --set run.seed=3``: the options that are not at their defaults."""
    tokens = [verb, *map(_token, arguments)]
    for name, (_, option) in ({} if kind is None else options_of(kind)).items():
        value = (given or {}).get(name, option.default)
        if option.is_stored and value != option.default:
            tokens += _tokens(option.flags(name)[0], value)
    return f"ckptsim {shlex.join(tokens)}"


def portable(file: str | Path) -> str:
    """The name of a file in a message that is kept: as given, or relative if it is absolute."""
    return relative_path(Path(file)) if Path(file).is_absolute() else str(file)


def relative_path(path: Path) -> str:
    """The path from the current folder: an absolute one is of one machine only."""
    try:
        return Path(os.path.relpath(path)).as_posix()
    except ValueError:  # another drive
        return path.name


def _tokens(flag: str, value: bool | str | int | Path | Sequence[str]) -> Iterator[str]:
    if isinstance(value, bool):
        yield flag.split("/")[not value]
    elif isinstance(value, (str, int, Path)):
        yield from (flag, _token(value))
    else:
        for item in value:
            yield from (flag, item)


def _token(value: str | int | Path) -> str:
    return relative_path(value) if isinstance(value, Path) else without_credentials(str(value))


# ---- Options of several commands.

ChecksOption = Annotated[
    bool, Option("Check every run for lost, duplicated or inconsistent data.", True, is_stored=False)
]
ConfOption = Annotated[
    Settings | None, Option("A Spark setting, as for spark-submit.", metavar="KEY=VALUE", is_stored=False)
]
EngineOption = Annotated[
    Engine,
    Option("How the data plane runs; both give the same results, interpreted is slow.", "compiled", is_stored=False),
]
FlinkOption = Annotated[
    FilePath | None,
    Option(
        "Deployed configuration: flink-conf.yaml, config.yaml or a FlinkDeployment.",
        flag="--flink",
        metavar="FILE",
        is_stored=False,  # it becomes a change
    ),
]
FolderOption = Annotated[FilePath | None, Option("Output folder. (Default: runs/<name>-<id>.)", flag="--out")]
EnvironmentOption = Annotated[
    str | None, Option("Environment to take constants from, as `environment:` of a scenario.", metavar="NAME|FILE")
]
HeadersOption = Annotated[
    Settings | None,
    Option("HTTP header sent with every request.", None, "--header", "'NAME: VALUE'", is_stored=False, of="real jobs"),
]
JobsOption = Annotated[int | None, Option("Parallel processes. (Default: one per core.)", min=1, is_stored=False)]
JsonOption = Annotated[bool, Option("Print results as JSON.", flag="--json")]
PricesOption = Annotated[
    FilePath | None, Option("Price list of an object store (YAML). (Default: S3 Standard.)", metavar="FILE")
]
SeedOption = Annotated[int | None, Option("Override run.seed.", min=0, is_stored=False)]
SetOption = Annotated[
    Changes,
    Option("Override a key of the scenario, e.g. run.duration='1 h'.", (), "--set", "KEY=VALUE", of="simulated runs"),
]
StrategyOption = Annotated[
    str | None,
    Option("Only this strategy, by its name in the table of run.", metavar="LABEL", of="simulated runs"),
]
TracesMasterOption = Annotated[
    str | None,
    Option(
        "local[*], spark://HOST:PORT, yarn, k8s://... (Default: here, without Spark; local[*] for buckets and above 64 MB.)",
        metavar="here|URL",
    ),
]


JobOption = Annotated[str | None, Option("Which job, if there are several.", metavar="ID", of="real jobs")]
DeadlineOption = Annotated[
    str | None,
    Option(
        "Live jobs: time limit of all REST requests. (Default: 10 min after sampling.)",
        metavar="DURATION",
        is_stored=False,
        of="real jobs",
    ),
]


class JobPlaceOptions(TypedDict, total=False):
    """Which real job, and what is sent to it."""

    job: JobOption
    headers: HeadersOption


class JobOptions(JobPlaceOptions, total=False):
    """Which real job, and how it is asked."""

    deadline: DeadlineOption


# ---- Commands.


class RunOptions(TypedDict, total=False):
    """Runs of the combinations of a scenario."""

    folder: FolderOption
    engine: EngineOption
    jobs: JobsOption
    checks: ChecksOption
    picture: Annotated[
        bool, Option("Also draw comparison.png: checkpoints, queues, back-pressure.", False, is_stored=False)
    ]
    try_assumptions: Annotated[
        bool,
        Option(
            "Test which values the file leaves out (network, bandwidth) decide the answer.",
            True,
            "--assumptions",
            is_stored=False,
        ),
    ]
    prices: PricesOption


class ScenarioOptions(TypedDict, total=False):
    """What a scenario file is read with."""

    changes: SetOption
    flink: FlinkOption
    seed: SeedOption
    environment: EnvironmentOption


class RunFileOptions(ScenarioOptions, RunOptions, total=False):
    """Runs of a scenario file."""


class ImportOptions(TypedDict, total=False):
    """What is read of a real job, and what is made of it."""

    job: JobOption
    out: Annotated[
        FilePath | None,
        Option(
            "Output file (default: stdout); the checkpoint history is written next to it.",
            flag="--out -o",
            metavar="FILE",
        ),
    ]
    sample: Annotated[str, Option("Live jobs: how long to sample metrics.", "60 s", metavar="DURATION")]
    save: Annotated[
        FilePath | None, Option("Live jobs: save all REST responses, to be imported later.", metavar="FOLDER")
    ]
    keep_secrets: Annotated[bool, Option("Do not mask passwords, keys and tokens in --save.", False)]
    deadline: DeadlineOption
    headers: HeadersOption
    compare: Annotated[bool, Option("Compare three barrier modes instead of the job's own.", False)]
    backtest: Annotated[bool, Option("Simulate the job as it is and compare with its checkpoint history.", True)]
    flink: FlinkOption


class AdviseOptions(TypedDict, total=False):
    """The limits and bounds of an advice, as texts with units."""

    p99: Annotated[str | None, Option("Maximum checkpoint duration, p99, e.g. '60 s'.", metavar="VALUE")]
    recovery: Annotated[str | None, Option("Maximum recovery time, e.g. '2 min'.", metavar="VALUE")]
    loss: Annotated[str | None, Option("Maximum throughput loss by checkpoints, e.g. '3 %'.", metavar="VALUE")]
    visible: Annotated[
        str | None, Option("Maximum delay until output of transactional sinks is visible, p99.", metavar="VALUE")
    ]
    failure: Annotated[
        str,
        Option(
            "Failure after which recovery is measured: task-manager (lost) or task.", "task-manager", metavar="WHAT"
        ),
    ]
    mtbf: Annotated[
        str | None,
        Option("Mean time between failures, e.g. '12 h'. (Default: 1 day, marked UNKNOWN.)", metavar="VALUE"),
    ]
    load: Annotated[Lines, Option("Input rates (CSV).", (), metavar="[SOURCE=]FILE.csv[:COLUMN]")]
    replications: Annotated[int, Option("Maximum runs of each setting.", 12, min=1)]
    budget: Annotated[
        str,
        Option(
            "Maximum CPU time of all runs, on an idle machine; skipped candidates are listed.",
            "90 s",
            metavar="DURATION",
        ),
    ]
    within: Annotated[
        str, Option("Maximum wall-clock time; skipped candidates are listed.", "5 min", metavar="DURATION")
    ]
    horizon: Annotated[str, Option("How long limits must hold if state grows.", "2 h", metavar="DURATION")]
    prices: PricesOption
    flink: Annotated[
        FilePath | None,
        Option(
            "Deployed configuration: flink-conf.yaml, config.yaml or a FlinkDeployment. Also writes a patch and its rollback.",
            metavar="FILE",
        ),
    ]
    changes: SetOption
    folder: FolderOption
    engine: EngineOption
    jobs: JobsOption
    master: Annotated[str | None, Option("Run trials on Spark.", metavar="URL", is_stored=False)]
    conf: ConfOption


class WatchJobOptions(TypedDict, total=False):
    """How a running job is watched.  Quantities are texts with a unit."""

    job: JobOption
    every: Annotated[str, Option("Polling interval.", "60 s", metavar="DURATION")]
    duration: Annotated[
        str | None,
        Option("Stop after this time. (Default: at Ctrl-C.)", flag="--for", metavar="DURATION", is_stored=False),
    ]
    sample: Annotated[str, Option("How long to sample metrics for a forecast.", "60 s", metavar="DURATION")]
    limit: Annotated[
        str | None, Option("Maximum checkpoint duration, p90. (Default: the checkpoint interval.)", metavar="DURATION")
    ]
    listen: Annotated[
        str | None, Option("Serve Prometheus metrics (/metrics) and an HTML status page.", metavar="[HOST:]PORT")
    ]
    metrics: Annotated[
        FilePath | None,
        Option(
            "Metrics file for the Prometheus textfile collector. (Default: ckptsim.prom in the folder.)", metavar="FILE"
        ),
    ]
    renew: Annotated[bool, Option("Make a new forecast from the job's current state.", False, is_stored=False)]
    headers: HeadersOption


class WatchOptions(WatchJobOptions, total=False):
    """How a running job is watched, and where that is kept."""

    folder: Annotated[FilePath | None, Option("State folder. (Default: watched/HOST-PORT.)", flag="--out")]


class ExplainOptions(TypedDict, total=False):
    """Which checkpoints are explained."""

    checkpoint: Annotated[
        int | None,
        Option(
            "Checkpoint id. (Default: a first upload, the median and the slowest; of a real job, the slow ones.)", min=1
        ),
    ]
    strategy: StrategyOption
    verify: Annotated[bool, Option("Simulate what each part would save.", False)]
    changes: SetOption
    engine: EngineOption
    job: JobOption
    deadline: DeadlineOption
    headers: HeadersOption


class WindowOptions(TypedDict, total=False):
    """The window of a timeline."""

    strategy: StrategyOption
    begin: Annotated[str, Option("Start of the window, e.g. '30 s'.", "0 s", "--from", "TIME")]
    end: Annotated[str | None, Option("End of the window. (Default: end of the run.)", None, "--to", "TIME")]
    step: Annotated[
        str | None, Option("Sampling step of threads and queues. (Default: 1/1000 of the window.)", metavar="TIME")
    ]
    limit: Annotated[int, Option("Maximum events; viewers open about a million.", 300_000, min=1)]
    engine: EngineOption


class TimelineOptions(WindowOptions, total=False):
    """The window of a timeline, and changes to the scenario."""

    changes: SetOption


class ReportOptions(TypedDict, total=False):
    """What a page of a real job shows."""

    checkpoint: Annotated[
        int | None, Option("Real jobs: checkpoint id. (Default: the slow ones.)", min=1, of="real jobs")
    ]
    job: JobOption
    verify: Annotated[bool, Option("Real jobs: simulate what would have helped.", False, of="real jobs")]
    out: Annotated[FilePath, Option("Output file (.html).", ..., "--out -o")]
    deadline: DeadlineOption
    headers: HeadersOption


class DiffOptions(TypedDict, total=False):
    """What is changed on either side, and how often both run."""

    changes: SetOption
    changes_a: Annotated[Changes, Option("Override a key of A only.", (), "--set-a", "KEY=VALUE")]
    changes_b: Annotated[
        Changes,
        Option("Override a key of B only: diff job.yaml job.yaml --set-b ...", (), "--set-b", "KEY=VALUE"),
    ]
    strategy: StrategyOption
    replications: Annotated[int, Option("Runs per side, with the same seeds.", 5, min=1)]
    prices: PricesOption
    folder: Annotated[FilePath | None, Option("Output folder. (Default: nothing is written.)", flag="--out")]
    engine: EngineOption
    jobs: JobsOption


class SweepOptions(TypedDict, total=False):
    """How the cells of a sweep run."""

    changes: SetOption
    racing: Annotated[
        int | None,
        Option("Run all settings in N windows x seeds first, then only possible winners.", metavar="N"),
    ]
    folder: FolderOption
    replications: Annotated[int | None, Option("Override run.replications.", min=1, is_stored=False)]
    flink: FlinkOption
    engine: EngineOption
    jobs: JobsOption
    master: Annotated[
        str | None,
        Option(
            "Run on Spark: local[*], spark://HOST:PORT, yarn or k8s://...; needs Java.", metavar="URL", is_stored=False
        ),
    ]
    conf: ConfOption
    checks: ChecksOption
    max_failures: Annotated[int | None, Option("Stop when more cells than this have failed.", min=0, is_stored=False)]


class ReadTracesOptions(TypedDict, total=False):
    """What tables of others hold."""

    format: Annotated[
        str | None, Option("Format of all text tables. (Default: detected from their columns.)", metavar="NAME")
    ]
    time: Annotated[str | None, Option("Your own tables: time column; 0, 1, ... if unnamed.", metavar="COLUMN")]
    time_unit: Annotated[
        str | None, Option("Unit of numeric times: s, ms, us, ns. (Default: detected from their size.)", metavar="UNIT")
    ]
    zone: Annotated[
        str | None, Option("Time zone of dates without one, e.g. Europe/Berlin. (Default: UTC.)", metavar="ZONE")
    ]
    value: Annotated[str | None, Option("Your own tables: value column.", metavar="COLUMN")]
    meaning: Annotated[
        str | None,
        Option("Meaning of the value: rates, arrivals, speeds, failures. (Default: rates.)", None, "--as", "WHAT"),
    ]
    per: Annotated[
        str | None, Option("Period that a value of --as rates counts over. (Default: 1 second.)", metavar="DURATION")
    ]
    master: TracesMasterOption
    conf: ConfOption


class TraceWindowsOptions(TypedDict, total=False):
    """Which windows are cut."""

    length: Annotated[str, Option("Length of a window.", "10 min", metavar="DURATION")]
    cut: Annotated[str, Option("How to choose windows: time, bursts, load or failures.", "time")]
    count: Annotated[int | None, Option("Maximum windows per trace. (Default: all.)", min=1)]
    trace: Annotated[str | None, Option("Only this trace.")]
    master: TracesMasterOption
    conf: ConfOption


class ValidateOptions(TypedDict, total=False):
    """How recordings are simulated and counted."""

    seeds: Annotated[int, Option("Simulations per recording.", 3, min=1)]
    environment: EnvironmentOption
    everything: Annotated[
        bool,
        Option("Include recordings with features that are not modelled in the totals.", False, "--all"),
    ]
    time_limit_s: Annotated[
        float,
        Option(
            "Maximum time per recording; a slower one is skipped.",
            600,
            "--time-limit",
            "SECONDS",
            min=1,
            is_stored=False,
        ),
    ]
    report: Annotated[FilePath | None, Option("Also write the table as one HTML file.", metavar="FILE")]
    jobs: JobsOption
