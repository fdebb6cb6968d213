"""``python -m benchmarks.lab calibrate``: the constants of an environment from recordings made there."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from sim.app.cli.console import Console
from sim.app.cli.errors import Code, UserError, print_message
from sim.app.cli.options import Purpose, Verb, argument
from sim.app.cli.terminal import show
from sim.app.verbs.options import JobsOption, Option

if TYPE_CHECKING:
    from benchmarks.lab.calibrate import Calibration, CrossValidation
    from benchmarks.lab.calibration.cross_validation import Fit


def calibrate_environment(
    recordings: Annotated[list[Path], argument("FOLDER...", "Recordings, or folders of them.")],
    *,
    out: Annotated[Path | None, Option("Instead of stdout.", flag="--out -o", metavar="FILE")] = None,
    cross_validate: Annotated[
        bool, Option("Predict each recording with constants from the others; the file is not written.")
    ] = False,
    seeds: Annotated[int, Option("Simulations per prediction.", min=1)] = 3,
    jobs: JobsOption = None,
    as_json: Annotated[bool, Option("What is shown, as JSON.", flag="--json")] = False,
) -> Code:
    """Estimate what no configuration says from recordings of one environment: one section `overheads:`, nothing is simulated."""
    if cross_validate and out is not None:
        raise UserError(
            "--cross-validate estimates many times; write the file with another call, without it", Code.USAGE
        )
    from benchmarks.lab import calibrate as verb

    found: Calibration | CrossValidation
    show = _show_errors if cross_validate else _print_file if out is None else _show_constants
    with Console(show, as_json=as_json) as console:
        found = (
            verb.cross_validate(recordings, seeds=seeds, jobs=jobs, listener=console)
            if cross_validate
            else verb.calibrate(recordings, out, listener=console)
        )
    return Code.CELLS_FAILED if found.skipped else Code.FINE


def _print_file(found: Calibration) -> None:
    print(found.text, end="")


def _show_constants(found: Calibration) -> None:
    rows = [
        [row["constant"], f"{row['value_ms']:g} ms", _interval(row), str(row["recordings"]), row["meaning"]]
        for row in found.table.to_dict("records")
    ]
    show(["constant", "value", "interval", "recordings", "what it is"], rows)


def _interval(row: Mapping[Hashable, Any]) -> str:
    return "default kept" if row["kept"] else f"{row['low_ms']:g} to {row['high_ms']:g} ms"


def _show_errors(found: CrossValidation) -> None:
    from benchmarks.lab.calibration.cross_validation import WAYS
    from sim.app.cli.jobs import share

    keys = [f"{way}: {name}" for way in WAYS for name in ("median", "p90")]
    counted = ("quantity", "recordings", "rows")
    rows = [
        [*(str(row[key]) for key in counted), *(share(row[key]) for key in keys)]
        for row in found.errors.to_dict("records")
    ]
    show([*counted, *(key if key.endswith("median") else "p90" for key in keys)], rows)
    print()
    constants = [
        [name.replace("_", "-"), *_values(found.fitted, name), str(count), source]
        for name, source, count in found.sources
    ]
    show(
        [
            "constant",
            "from all",
            "without the recording",
            "without the family",
            "recordings",
            "without the family it comes from",
        ],
        constants,
    )
    print_message(f"{found.predictions} different predictions")


def _values(fitted: Sequence[Fit], name: str) -> list[str]:
    """The value, or the smallest and the largest, of each way."""
    ranges = []
    for k in range(3):
        values = sorted({getattr(fit.overheads[k], f"{name}_ns") / 10**6 for fit in fitted})
        ranges.append(f"{values[0]:g} ms" if len(values) == 1 else f"{values[0]:g} to {values[-1]:g} ms")
    return ranges


VERB = Verb("calibrate", Purpose.TRUST, 2, "Estimate constants of your environment.", calibrate_environment)
