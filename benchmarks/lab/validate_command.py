"""``python -m benchmarks.lab validate``: adds orderings, bars and leading parts to what `ckptsim validate` prints."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Annotated, Any, NamedTuple, Unpack

import pandas as pd

from benchmarks.lab.orderings import MEASURED_BARS, bars, orderings
from benchmarks.lab.settings import settings_of_job
from benchmarks.lab.side_by_side import MIN_COMPARED_MS, SideBySide, side_by_side
from sim.app.cli.console import Console
from sim.app.cli.errors import Code
from sim.app.cli.jobs import share, show_validation
from sim.app.cli.options import Purpose, Verb, argument
from sim.app.cli.terminal import put, show
from sim.app.verbs.common import Listener, Stopped, Work
from sim.app.verbs.options import Option, ValidateOptions
from sim.app.verbs.validate import Validation, recordings_of, validate
from sim.jobs.reading import Measured, read_any
from sim.jobs.source.recorded_job import RecordingError
from sim.model.schema.text import ScenarioError
from sim.model.text import one_line
from sim.results.formats import bare_text
from sim.studies.cells import warm

# ---- Orderings and bars of recordings that were judged.


def _counted_table(found: Validation) -> pd.DataFrame:
    return found.table[found.table["recording"].isin(list(found.counted))].reset_index(drop=True)


def orderings_of(found: Validation) -> pd.DataFrame:
    """Return a row per pair of recordings that differ in one setting: which is slower, as observed and as predicted."""
    settings = {name: settings_of_job(read_any(outcome.path)) for name, outcome in found.counted.items()}
    return orderings(_counted_table(found), {name: given for name, given in settings.items() if given is not None})


def bars_of(found: Validation) -> pd.DataFrame:
    """Return a row per applicable accuracy bar: its requirement, the accuracy reached, and whether the bar is met.

    Measured jobs have other bars than recordings of test jobs.
    """
    table, counted = _counted_table(found), found.counted
    jobs = {name: read_any(outcome.path) for name, outcome in counted.items()}
    graphs = {name: job.vertices for name, job in jobs.items()}
    is_measured = table["recording"].map({name: isinstance(job, Measured) for name, job in jobs.items()})
    parts = [bars(table[~is_measured], graphs), bars(table[is_measured], graphs, MEASURED_BARS)]
    return pd.concat([rows for rows in parts if len(rows)] or parts[:1], ignore_index=True)


def show_orderings(orderings: pd.DataFrame) -> None:
    """Print which predicted orderings are right; nothing if no two recordings differ in exactly one setting."""
    if orderings.empty:
        return
    print()
    columns = ["observed_one", "observed_other", "predicted_one", "predicted_other"]
    rendered = orderings.assign(order=orderings["right"].map({True: "right", False: "WRONG"}))
    rows = [
        [
            *(row[key] for key in ("setting", "one", "other", "quantity")),
            *(bare_text(row[key]) for key in columns),
            row["order"],
        ]
        for row in rendered.to_dict("records")
    ]
    show(["one setting differs", "one", "other", "quantity", "observed", "and", "predicted", "and", "order"], rows)
    print(f"\n{int(orderings['right'].sum())} of {len(orderings)} orderings are predicted right.")


def show_bars(bars: pd.DataFrame) -> None:
    if bars.empty:
        return
    print()
    rendered = bars.assign(met=bars["met"].map({True: "met", False: "MISSED"}))
    rows = [
        [row["what"], row["where"], row["bar"], str(row["rows"]), share(row["reached"]), share(row["p90"]), row["met"]]
        for row in rendered.to_dict("records")
    ]
    show(["bar", "where", "asked for", "rows", "reached", "p90", ""], rows)


# ---- Leading parts of checkpoints, recorded and simulated.


@dataclass(frozen=True, slots=True)
class Leading:
    """The result of `validate --explain`: the dominant part of each checkpoint, recorded and simulated."""

    recordings: tuple[SideBySide, ...]
    skipped: tuple[str, ...]  # files that cannot be read or simulated, each with the reason

    @property
    def facts(self) -> list[dict[str, Any]]:
        """Return what `--json` prints."""
        return [asdict(recording) for recording in self.recordings]


def validate_explanations(places: Sequence[Path], *, listener: Listener | None = None) -> Leading:
    """Compare the dominant part of recorded checkpoints with that of two simulations per recording.

    RecordingError: there are no recordings.
    """

    listener = listener or Listener()
    paths = recordings_of(places, listener)
    warm()
    found, skipped = list[Any](), list[str]()
    with listener.progress(Work("explain", len(paths), len(paths), "recordings")) as watch:
        try:
            for number, path in enumerate(paths, 1):
                try:
                    found.append(side_by_side(path))
                except (RecordingError, ScenarioError) as error:
                    skipped.append(f"skipped: {path}: {error}")
                    listener.message(skipped[-1])
                watch(number, number)
        except KeyboardInterrupt:
            raise Stopped("nothing is kept") from None
    leading = Leading(tuple(found), tuple(skipped))
    listener.result(leading)
    return leading


_NAME_CHARS = 36


def table(found: Sequence[SideBySide]) -> list[str]:
    """Return the lines of ``validate --explain``: a row per recording with a long enough checkpoint, and the total."""

    counted = [recording for recording in found if recording.comparison.pairs]
    shares = {one_line(recording.recording, _NAME_CHARS - 1): _Shares.of(recording) for recording in counted}
    rows = [_row(name, row) for name, row in shares.items()]
    total = _Shares(*(sum(column) for column in zip(*shares.values(), strict=True))) if shares else _Shares()
    return [
        f"{f'checkpoints of {MIN_COMPARED_MS} ms and more':{_NAME_CHARS}}{'':>5}{'part':>7}{'often':>7}{'kind':>7}{'itself':>8}{'readable':>10}",
        *rows,
        _row(f"all {len(counted)}", total),
        "",
        "part: recording and simulation name the same leading part, at the same vertex;",
        "  checkpoints of equal rank are compared.  often: whatever the ranks, as often.",
        "kind: the same part, at any vertex.",
        "itself: the simulation with another seed in the recording's place, by ranks.",
        "readable: statistics of simulated checkpoints name what their journal names.",
    ]


class _Shares(NamedTuple):
    """Numerators and denominators of the shares in a row."""

    pairs: int = 0  # compared checkpoints; denominator of the next three
    agreeing: int = 0
    matched: int = 0
    same_kind: int = 0
    repetition: int = 0  # agreeing checkpoints of two simulations, out of of_itself
    of_itself: int = 0
    read: int = 0  # simulated checkpoints whose statistics name what their journal names, out of simulated
    simulated: int = 0

    @classmethod
    def of(cls, recording: SideBySide) -> _Shares:
        comparison, repetition = recording.comparison, recording.repetition
        return cls(
            len(comparison.pairs),
            comparison.agreeing,
            comparison.matched,
            comparison.same_kind,
            repetition.agreeing,
            len(repetition.pairs),
            recording.read,
            recording.simulated,
        )


def _row(name: str, row: _Shares) -> str:
    part, often, kind = (_share(count, row.pairs) for count in (row.agreeing, row.matched, row.same_kind))
    repetition, readable = _share(row.repetition, row.of_itself), _share(row.read, row.simulated)
    return f"{name:{_NAME_CHARS}}{row.pairs:>5}{part:>7}{often:>7}{kind:>7}{repetition:>8}{readable:>10}"


def _share(count: int, of: int) -> str:
    return f"{count / of:.0%}" if of else "-"


# ---- ``python -m benchmarks.lab validate``


def validate_recordings(
    recordings: Annotated[list[Path], argument("RECORDING", "Recordings, or folders of recordings.")],
    *,
    explain: Annotated[bool, Option("Compare which phase dominates each checkpoint instead.")] = False,
    as_json: Annotated[bool, Option("Print all rows as a JSON list.", flag="--json")] = False,
    **options: Unpack[ValidateOptions],
) -> Code:
    """Compare predictions with recordings: observed and predicted values, their overall error, orderings and bars."""
    with Console(_show_leading if explain else _show, as_json=as_json) as console:
        found = (
            validate_explanations(recordings, listener=console)
            if explain
            else validate(*recordings, listener=console, **options)
        )
    return Code.CELLS_FAILED if found.skipped else Code.FINE


def _show(found: Validation) -> None:
    show_validation(found)
    if found.counted:
        show_orderings(orderings_of(found))
        show_bars(bars_of(found))


def _show_leading(found: Leading) -> None:
    put("\n".join(table(found.recordings)))


VERB = Verb("validate", Purpose.TRUST, 1, "Compare predictions with recordings.", validate_recordings)
