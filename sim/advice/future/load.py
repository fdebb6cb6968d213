"""The load of a job that advice is about, read from a trace: its busiest piece and its usual piece, as two worlds.

Trials last minutes, traces last days.  Limits have to hold in the busiest piece; costs are the mean of both.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING, Any

from sim.scenario import ScenarioError
from sim.scenario.job.document import Trace
from sim.scenario.job.trace import TraceError, columns_and_rows, length_ns, read_trace
from sim.scenario.text.problems import did_you_mean
from sim.series.headers import rate_of
from sim.sweeps.file.design import Point
from sim.units import format_duration

if TYPE_CHECKING:
    from sim.model.scenario import Scenario

WINDOW_NS = 600 * 10**9
"""About as long as a trial runs before its failure."""
WINDOWS = 1000
"""The number of pieces of a trace that are compared."""
BUSIEST, USUAL = "busiest", "usual"


def arriving(file: Path, plain: Mapping[str, Any], scenario: Scenario, load_files: Sequence[str]) -> tuple[Point, dict[str, Point]]:
    """(changes of the sources' rates, worlds).  `plain` is the document of the scenario; `load_files` are ``source=file.csv:column``.

    ScenarioError: no such source, file or column.
    """
    try:
        driven = dict(_driven(plain, scenario, text) for text in load_files)
        traces = _written(plain) | driven
        return driven, _worlds(file.parent, traces)
    except TraceError as error:
        raise ScenarioError.of(error, "") from None


def _driven(plain: Mapping[str, Any], scenario: Scenario, text: str) -> tuple[str, dict[str, Any]]:
    """(key of the source's rate, its new value)."""
    sources = [vertex.name for vertex in scenario.job.vertices if vertex.source is not None]
    name, equals, rest = text.partition("=")
    if not equals:
        name, rest = sources[0], text
        if len(sources) > 1:
            raise TraceError(f"--load {text}: which of the sources {', '.join(sources)}? Write {sources[0]}={text}")
    if name not in sources:
        raise TraceError(f"--load {text}: there is no source '{name}'{did_you_mean(name, sources)}")
    path, colon, column = rest.rpartition(":")
    if not colon:
        path, column = rest, ""
    file = Path(path).resolve()
    columns, _ = columns_and_rows(file)
    column = column or rate_of(columns) or ""
    if not column:
        raise TraceError(f"--load {text}: which column? {file.name} has {', '.join(columns) or 'none'}: write {path}:COLUMN")
    trace: dict[str, Any] = {"trace": str(file), "column": column}
    if _key(plain, name) == "rate-per-subtask":
        trace["scale"] = float(Fraction(1, scenario.job.vertex(name).emitting))
    return f"job.{name}.source.{_key(plain, name)}", trace


def _key(plain: Mapping[str, Any], name: str) -> str:
    return "rate-per-subtask" if "rate-per-subtask" in plain["job"][name]["source"] else "rate"


def _written(plain: Mapping[str, Any]) -> dict[str, dict[str, Any]]:
    """The traces that the scenario itself names."""
    sources = {name: body["source"] for name, body in plain["job"].items() if "source" in body}
    found = {f"job.{name}.source.{_key(plain, name)}": source.get(_key(plain, name)) for name, source in sources.items()}
    return {key: rate for key, rate in found.items() if isinstance(rate, dict)}


def _worlds(folder: Path, traces: Mapping[str, Mapping[str, Any]]) -> dict[str, Point]:
    """The busiest piece and the one in the middle.  A short trace is one world as a whole."""
    given = {key: Trace.model_validate(dict(trace)) for key, trace in traces.items()}
    lengths = [length_ns(rate, folder) for rate in given.values()]
    if not lengths or min(lengths) < 2 * WINDOW_NS or any(rate.from_ is not None for rate in given.values()):
        return {"": {}}
    step_ns = max(WINDOW_NS // 2, min(lengths) // WINDOWS)
    starts = range(0, min(lengths) - WINDOW_NS + 1, step_ns)
    means = sorted((sum(_mean(rate, folder, start) for rate in given.values()), start) for start in starts)
    chosen = {BUSIEST: means[-1][1], USUAL: means[len(means) // 2][1]}
    return {name: {f"{key}.from": format_duration(start) for key in given} for name, start in chosen.items()}


def _mean(trace: Trace, folder: Path, start_ns: int) -> Fraction:
    """Records per second over one piece."""
    steps = read_trace(trace.model_copy(update={"from_": start_ns}), folder, until_ns=WINDOW_NS)
    ends = [at for at, _ in steps[1:]] + [WINDOW_NS]
    return sum((rate * (end - at) for (at, rate), end in zip(steps, ends, strict=True)), Fraction()) / WINDOW_NS
