"""Options of all commands.

Each command has a TypedDict. Its keys are the Python keyword arguments; the `Option` in each annotation adds what the
command line needs. Four things are derived from it: the command-line options (`sim/app/cli/options.py`), the Python
keywords (``**options: Unpack[AdviseOptions]``), the stored command line, and the reference. `--help` imports this
module, so it must not import anything heavy.
"""

from __future__ import annotations

import inspect
import os
import shlex
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cache, wraps
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

from sim.app.verbs.common import Listener, Notebook, OptionError
from sim.model.frozen import frozen
from sim.model.text import masked_change, without_credentials

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


@frozen
class Option:
    """Description of a command's option; the key of the TypedDict is its name in Python."""

    help: str
    default: Any = None
    flag: str = ""  # names on the command line, e.g. "--out -o"; empty: derived from the Python name
    metavar: str | None = None
    min: int | None = None
    is_stored: bool = True  # part of the stored command line, because it changes results
    of: Literal["", "simulated runs", "real jobs"] = ""  # the only kind of input it applies to; empty: both

    def flags(self, name: str) -> list[str]:
        """Return the names on the command line: ["--out", "-o"], or ["--checks/--no-checks"] if True is the default."""
        first, *others = (self.flag or f"--{name.replace('_', '-')}").split()
        return [f"{first}/--no-{first[2:]}" if self.default is True else first, *others]


@cache
def options_of(kind: type) -> dict[str, tuple[Any, Option]]:
    """Return {Python name: (type, Option)} of a TypedDict of options."""
    hints = get_type_hints(kind, include_extras=True).items()
    return {name: (get_args(hint)[0], hint.__metadata__[0]) for name, hint in hints}


def with_defaults(kind: type[T], options: T) -> T:
    """Return all options: the given ones, and defaults for the others."""
    return cast("T", {name: option.default for name, (_, option) in options_of(kind).items()} | dict(options))


def part_of(kind: type[T], options: Mapping[str, object]) -> T:
    """Return the subset of `given` that the TypedDict `kind` declares."""
    return cast("T", {name: options[name] for name in options_of(kind) if name in options})


def refuse_others(kind: type[T], options: T, of: Literal["simulated runs", "real jobs"]) -> None:
    """Raise OptionError if a given option does not apply to inputs of kind `of`."""
    for name, (_, option) in options_of(kind).items():
        if option.of not in ("", of) and options[name] != option.default:
            raise OptionError(name, f"is for {option.of}")


def flag_of(name: str) -> str:
    """Return the command-line name of a Python option, e.g. ``--out`` for `folder`."""
    kinds = [kind for kind in globals().values() if isinstance(kind, type) and hasattr(kind, "__total__")]
    flags = (
        option.flags(name)[0].partition("/")[0]
        for kind in kinds
        for other, (_, option) in options_of(kind).items()
        if other == name
    )
    return next(flags, "SOURCE" if name == "sources" else f"--{name.replace('_', '-')}")


def documented(kind: type) -> Callable[[F], F]:
    """Return a decorator that adds the options of `kind` to a function's signature and docstring, for editors and `help`."""

    def document(function: F) -> F:
        signature = inspect.signature(function)
        parameters = [
            parameter
            for parameter in signature.parameters.values()
            if parameter.kind is not parameter.VAR_KEYWORD and parameter.name != "listener"
        ]
        lines = [inspect.cleandoc(function.__doc__ or ""), "\nOptions:"]
        for name, (type_, option) in options_of(kind).items():
            keyword = inspect.Parameter.KEYWORD_ONLY
            parameters.append(inspect.Parameter(name, keyword, default=option.default, annotation=type_))
            lines.append(f"    {name}: {option.help}")
        function.__signature__ = signature.replace(parameters=parameters)  # type: ignore[attr-defined]
        function.__doc__ = "\n".join(lines)
        return function

    return document


def with_all_options(kind: type) -> Callable[[F], F]:
    """Return a decorator for the function of a command: it is called with all options of `kind`, and with a listener.

    Callers omit options to get the defaults.  Without a listener, progress is shown below a notebook's cell.  The options are
    added to signature and docstring, as by `documented`.
    """

    def decorate(function: F) -> F:
        @wraps(function)
        def call(*arguments: Any, listener: Listener | None = None, **given: Any) -> Any:
            signature.bind(*arguments, **given)
            options = with_defaults(kind, given)
            return function(*arguments, listener=listener or Notebook(), **options)

        described = documented(kind)(call)
        signature = inspect.signature(described)
        return cast("F", described)

    return decorate


# ---- Conversion of Python arguments to the values that commands use.


def path_of(path: FilePath | None) -> Path | None:
    return None if path is None else Path(path)


_EXPECTED = """expected {"checkpoint.interval": "10 s"} or ["checkpoint.interval=10 s"]"""


def changes_as_lines(changes: Changes | Any) -> list[str]:
    """Return overrides as ``key=value`` lines.

    TypeError: `changes` is neither a mapping from keys to values nor a list of ``key=value`` lines.
    """
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


# ---- The stored command that repeats a call. It is the same for shell and Python, and has no absolute paths or credentials.


def command_line(
    verb: str, arguments: Sequence[str | Path], kind: type | None = None, options: Mapping[str, Any] | None = None
) -> str:
    """Return the command with all non-default options, e.g. ``ckptsim sweep day.yaml --set run.seed=3``."""
    tokens = [verb, *map(_token, arguments)]
    for name, (_, option) in ({} if kind is None else options_of(kind)).items():
        value = (options or {}).get(name, option.default)
        if option.is_stored and value != option.default:
            tokens += _tokens(option.flags(name)[0], value)
    return f"ckptsim {shlex.join(tokens)}"


def portable(file: str | Path) -> str:
    """Return a file name for stored messages: unchanged, or relative to the current folder if it is absolute."""
    return relative_path(Path(file)) if Path(file).is_absolute() else str(file)


def relative_path(path: Path) -> str:
    """Return the path relative to the current folder, so that it does not name a folder of this machine."""
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
            yield from (flag, masked_change(item))


def _token(value: str | int | Path) -> str:
    return relative_path(value) if isinstance(value, Path) else without_credentials(str(value))


# ---- Options of several commands.

ChecksOption = Annotated[
    bool, Option("Check every run for lost, duplicated or inconsistent records. (Default: on.)", True, is_stored=False)
]
ConfOption = Annotated[
    Settings | None, Option("A Spark setting, as for spark-submit.", metavar="KEY=VALUE", is_stored=False)
]
EngineOption = Annotated[
    Literal["compiled", "interpreted"],
    Option("Data plane implementation; results are the same, interpreted is slower.", "compiled", is_stored=False),
]
FlinkOption = Annotated[
    FilePath | None,
    Option(
        "Apply a deployed configuration: flink-conf.yaml, config.yaml or a FlinkDeployment.",
        flag="--flink",
        metavar="FILE",
        is_stored=False,  # it becomes a change
    ),
]
FolderOption = Annotated[
    FilePath | None, Option("Output folder. (Default: runs/<name>-<id>.)", flag="--out -o", metavar="FOLDER")
]
HeadersOption = Annotated[
    Settings | None,
    Option("HTTP header sent with every request.", None, "--header", "'NAME: VALUE'", is_stored=False, of="real jobs"),
]
JobsOption = Annotated[int | None, Option("Parallel processes. (Default: one per core.)", min=1, is_stored=False)]
JsonOption = Annotated[bool, Option("Print results as JSON.", flag="--json")]
WhyOption = Annotated[
    bool, Option("Print reasons, all settings that were tried, and what is assumed.", is_stored=False)
]
PricesOption = Annotated[
    FilePath | None, Option("Price list of an object store (YAML). (Default: S3 Standard.)", metavar="FILE")
]
SetOption = Annotated[
    Changes,
    Option(
        "Override a scenario key, e.g. run.seed=3; a list varies it: run.seed='[1, 2]'.",
        (),
        "--set",
        "KEY=VALUE",
        of="simulated runs",
    ),
]
StrategyOption = Annotated[
    str | None,
    Option("Only this strategy: its label in the table of run, e.g. aligned.", metavar="LABEL", of="simulated runs"),
]
TracesMasterOption = Annotated[
    str | None,
    Option(
        "here (no Spark), or a Spark master: local[*], spark://HOST:PORT, yarn, k8s://... "
        "(Default: here; local[*] for s3://, gs://, hdfs:// or more than 64 MB of input.)",
        metavar="here|URL",
    ),
]


JobOption = Annotated[str | None, Option("Job id, if the source has several jobs.", metavar="ID", of="real jobs")]
DeadlineOption = Annotated[
    str | None,
    Option(
        "Live jobs: time limit for all REST requests. (Default: 10 min.)",
        metavar="DURATION",
        is_stored=False,
        of="real jobs",
    ),
]


class JobPlaceOptions(TypedDict, total=False):
    """Selection of a real job, and HTTP headers for its JobManager."""

    job: JobOption
    headers: HeadersOption


# ---- Commands.


class RunOptions(TypedDict, total=False):
    """Options of `run` for a scenario that was read already."""

    folder: FolderOption
    engine: EngineOption
    jobs: JobsOption
    checks: ChecksOption
    try_assumptions: Annotated[
        bool,
        Option(
            "Also run with other values for what the file does not set (network, bandwidth), and report whether the answer "
            "changes. (Default: on.)",
            True,
            "--assumptions",
            is_stored=False,
        ),
    ]
    prices: PricesOption
    force: Annotated[
        bool, Option("Overwrite --out even if it has results of another scenario.", False, is_stored=False)
    ]


class CheckOptions(TypedDict, total=False):
    """Options of `check`."""

    changes: SetOption
    flink: FlinkOption


class RunFileOptions(CheckOptions, RunOptions, total=False):
    """Options of `run` for a scenario file."""


class ImportOptions(TypedDict, total=False):
    """Options of `import`."""

    job: JobOption
    out: Annotated[
        FilePath | None,
        Option(
            "Output file (default: stdout); the checkpoint history is written next to it.",
            flag="--out -o",
            metavar="FILE",
        ),
    ]
    sample: Annotated[
        str, Option("Live jobs: how long to sample metrics, in addition to --deadline.", "60 s", metavar="DURATION")
    ]
    save: Annotated[
        FilePath | None, Option("Live jobs: save all REST responses, for a later import.", metavar="FOLDER")
    ]
    deadline: DeadlineOption
    headers: HeadersOption
    backtest: Annotated[
        bool,
        Option("Simulate the current configuration and compare it with the checkpoint history. (Default: on.)", True),
    ]


class AdviseOptions(TypedDict, total=False):
    """Options of `advise`; quantities are texts with units."""

    p99: Annotated[str | None, Option("Maximum checkpoint duration, p99, e.g. '60 s'.", metavar="VALUE")]
    recovery: Annotated[str | None, Option("Maximum recovery time, e.g. '2 min'.", metavar="VALUE")]
    loss: Annotated[str | None, Option("Maximum throughput loss caused by checkpoints, e.g. '3 %'.", metavar="VALUE")]
    visible: Annotated[
        str | None,
        Option("Maximum delay until committed output of transactional sinks is visible, p99.", metavar="VALUE"),
    ]
    failure: Annotated[
        str,
        Option(
            "Failure to plan for: task-manager (a TaskManager is lost) or task (a task fails).",
            "task-manager",
            metavar="FAILURE",
        ),
    ]
    mtbf: Annotated[
        str | None,
        Option(
            "Mean time between failures, e.g. '12 h'. (Default: observed, or from faults:, else 1 day, marked UNKNOWN.)",
            metavar="VALUE",
        ),
    ]
    load: Annotated[Lines, Option("Recorded input rates (CSV).", (), metavar="[SOURCE=]FILE.csv[:COLUMN]")]
    replications: Annotated[int, Option("Maximum runs of each setting.", 12, min=1)]
    budget: Annotated[
        str,
        Option(
            "CPU budget of all runs, estimated, so that the answer does not depend on the load of the machine.",
            "90 s",
            metavar="DURATION",
        ),
    ]
    within: Annotated[
        str,
        Option(
            "Wall-clock time limit, after which the best setting so far is advised; skipped candidates are listed.",
            "5 min",
            metavar="DURATION",
        ),
    ]
    horizon: Annotated[str, Option("How long limits must hold if state grows.", "2 h", metavar="DURATION")]
    restart_times: Annotated[
        bool, Option("Print restart times for several parallelisms; do not recommend a setting.", False)
    ]
    prices: PricesOption
    flink: Annotated[
        FilePath | None,
        Option(
            "Deployed configuration: flink-conf.yaml, config.yaml or a FlinkDeployment. The printed patch uses its resource name and key spelling.",
            metavar="FILE",
        ),
    ]
    changes: SetOption
    folder: FolderOption
    jobs: JobsOption
    master: Annotated[str | None, Option("Run trials on Spark.", metavar="URL", is_stored=False)]
    conf: ConfOption


class WatchOptions(TypedDict, total=False):
    """Options of `watch`; quantities are texts with units."""

    job: JobOption
    every: Annotated[str, Option("Polling interval.", "60 s", metavar="DURATION")]
    duration: Annotated[
        str | None,
        Option("Stop after this time. (Default: run until Ctrl-C.)", flag="--for", metavar="DURATION", is_stored=False),
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
    renew: Annotated[bool, Option("Discard the stored forecast and make a new one.", False, is_stored=False)]
    headers: HeadersOption
    folder: Annotated[
        FilePath | None,
        Option("Folder of this watch. (Default: watched/HOST-PORT.)", flag="--out -o", metavar="FOLDER"),
    ]


class ExplainOptions(TypedDict, total=False):
    """Options of `explain`."""

    checkpoint: Annotated[
        int | None,
        Option(
            "Checkpoint id. (Default: the first upload, the median and the slowest checkpoint; of a real job, its slow ones.)",
            min=1,
        ),
    ]
    strategy: StrategyOption
    changes: SetOption
    job: JobOption
    deadline: DeadlineOption
    headers: HeadersOption


class TimelineOptions(TypedDict, total=False):
    """Options of `timeline`."""

    checkpoint: Annotated[int | None, Option("Checkpoint id. (Default: the slowest.)", min=1)]
    strategy: StrategyOption
    changes: SetOption


class ReportOptions(TypedDict, total=False):
    """Options of `report`."""

    checkpoint: Annotated[
        int | None,
        Option(
            "Checkpoint to show. Simulated runs: adds an animation, which simulates them again. (Default of real jobs: the slow checkpoints.)",
            min=1,
        ),
    ]
    job: JobOption
    deadline: DeadlineOption
    headers: HeadersOption


class DiffOptions(TypedDict, total=False):
    """Options of `diff`."""

    changes: SetOption
    changes_a: Annotated[Changes, Option("Override a key of A only.", (), "--set-a", "KEY=VALUE")]
    changes_b: Annotated[
        Changes,
        Option("Override a key of B only: diff job.yaml job.yaml --set-b ...", (), "--set-b", "KEY=VALUE"),
    ]
    strategy: StrategyOption
    replications: Annotated[int, Option("Runs per side, with the same seeds.", 5, min=1)]
    prices: PricesOption
    folder: Annotated[
        FilePath | None, Option("Output folder. (Default: nothing is written.)", flag="--out -o", metavar="FOLDER")
    ]
    jobs: JobsOption


class SweepOptions(TypedDict, total=False):
    """Options of `sweep`."""

    changes: SetOption
    folder: FolderOption
    flink: FlinkOption
    jobs: JobsOption
    master: Annotated[
        str | None,
        Option(
            "Run on Spark: local[*], spark://HOST:PORT, yarn or k8s://...; needs Java.", metavar="URL", is_stored=False
        ),
    ]
    conf: ConfOption
    checks: ChecksOption
    max_failures: Annotated[
        int | None, Option("Stop when more than this many cells have failed.", min=0, is_stored=False)
    ]


class ReadTracesOptions(TypedDict, total=False):
    """Options of `traces read`."""

    time: Annotated[
        str | None, Option("Custom tables: time column; a number (0, 1, ...) if there is no header.", metavar="COLUMN")
    ]
    time_unit: Annotated[
        str | None,
        Option("Unit of numeric times: s, ms, us, ns. (Default: detected from their magnitude.)", metavar="UNIT"),
    ]
    zone: Annotated[
        str | None, Option("Time zone of timestamps without one, e.g. Europe/Berlin. (Default: UTC.)", metavar="ZONE")
    ]
    value: Annotated[str | None, Option("Custom tables: value column.", metavar="COLUMN")]
    meaning: Annotated[
        str | None,
        Option("Meaning of the values. (Default: rates.)", None, "--as", "rates|arrivals|failures"),
    ]
    per: Annotated[
        str | None,
        Option("With --as rates: the time that one value covers. (Default: 1 second.)", metavar="DURATION"),
    ]
    master: TracesMasterOption
    conf: ConfOption


class TraceWindowsOptions(TypedDict, total=False):
    """Options of `traces windows`."""

    length: Annotated[str, Option("Length of a window.", "10 min", metavar="DURATION")]
    cut: Annotated[
        str,
        Option(
            "Which windows: consecutive, the most bursty, one per class of load, or around failures.",
            "time",
            metavar="time|bursts|load|failures",
        ),
    ]
    count: Annotated[int | None, Option("Maximum windows per trace. (Default: all.)", min=1)]
    trace: Annotated[str | None, Option("Only this trace.", metavar="NAME")]
    master: TracesMasterOption
    conf: ConfOption


class ValidateOptions(TypedDict, total=False):
    """Options of `validate`."""

    seeds: Annotated[int, Option("Simulations per recording.", 3, min=1)]
    jobs: JobsOption
