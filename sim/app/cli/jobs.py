"""Commands about real jobs and results: import, explain, timeline, report, watch, validate."""

from __future__ import annotations

import math
import shutil
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Annotated, Unpack

from sim.app.cli.console import Console
from sim.app.cli.errors import Code, print_message
from sim.app.cli.options import Purpose, Verb, argument
from sim.app.cli.terminal import put, show
from sim.app.verbs.common import stoppable
from sim.app.verbs.options import (
    ExplainOptions,
    ImportOptions,
    JsonOption,
    Option,
    ReportOptions,
    TimelineOptions,
    ValidateOptions,
    WatchOptions,
)
from sim.results.formats import bare_text

if TYPE_CHECKING:
    import pandas as pd

    from sim.app.verbs.importing import ImportedJob
    from sim.app.verbs.validate import Validation


# ---- ``ckptsim import``

_IMPORT_HELP = (
    "http(s)://HOST:8081, a folder or zip written by --save, a history server archive, JobManager logs, or a recording."
)


def import_source(
    sources: Annotated[list[str], argument("SOURCE", _IMPORT_HELP)],
    *,
    as_json: JsonOption = False,
    **options: Unpack[ImportOptions],
) -> None:
    """Turn a real Flink job into a scenario.

    Values are measured from the job. A recording provides only the configuration.

    Each value has a comment that names its source. Missing values are marked UNKNOWN, with the question to answer.
    """
    from sim.app.verbs.importing import import_job

    def show(imported: ImportedJob) -> None:
        if options["out"] is None:
            print(imported.placed_text, end="")

    with Console(show, as_json=as_json) as console:
        import_job(*sources, listener=console, **options)


IMPORT_VERB = Verb("import", Purpose.JOB, 1, "Turn a real Flink job into a scenario.", import_source)


# ---- ``ckptsim explain``

_EXPLAIN_HELP = (
    "A results folder or a scenario file. Real jobs: http(s)://HOST:8081, another source accepted by import, one saved "
    "REST response, or - for standard input."
)


def explain_checkpoints(
    run: Annotated[str, argument("RUN", _EXPLAIN_HELP)],
    *,
    as_json: JsonOption = False,
    **options: Unpack[ExplainOptions],
) -> None:
    """Explain where checkpoints spent their time, and why. For a real job, also what its slow checkpoints have in common."""
    with stoppable("nothing is kept"), named_input(run) as name:
        from sim.app.verbs.explain import explain_job

        with Console(lambda found: put(found.text), as_json=as_json) as console:
            explain_job(name, listener=console, **options)


@contextmanager
def named_input(name: str) -> Iterator[str]:
    """Yield the name of the input file.  For ``-``, copy standard input to a temporary file first."""
    if name != "-":
        yield name
        return
    with TemporaryDirectory() as folder:
        file = Path(folder) / "standard-input"
        with file.open("wb") as copy:
            shutil.copyfileobj(sys.stdin.buffer, copy)
        yield str(file)


EXPLAIN_VERB = Verb("explain", Purpose.WHY, 1, "Show where one checkpoint spent its time.", explain_checkpoints)


# ---- ``ckptsim timeline``


def animate_checkpoint(
    run: Annotated[str, argument("RUN", "A results folder or a scenario file.")],
    *,
    out: Annotated[Path, Option("Output file (.html).", flag="--out -o")],
    **options: Unpack[TimelineOptions],
) -> None:
    """Write one checkpoint as an animation: barriers, bytes in channels and phases of tasks, with the strategies side by side."""
    with stoppable("nothing is kept"):
        from sim.app.verbs.pictures import animate

        with Console(lambda file: print_message(str(file))) as console:
            animate(run, out, listener=console, **options)


TIMELINE_VERB = Verb("timeline", Purpose.WHY, 2, "Play one checkpoint as an animation.", animate_checkpoint)


# ---- ``ckptsim report``

_REPORT_HELP = "A folder written by run, sweep, diff or advise. Real jobs: http(s)://HOST:8081 or another source accepted by import."


def report(
    source: Annotated[str, argument("FOLDER|URL", _REPORT_HELP)],
    *,
    out: Annotated[Path, Option("Output file (.html).", flag="--out -o", metavar="FILE")],
    **options: Unpack[ReportOptions],
) -> None:
    """Write results, or where the checkpoints of a real job spent their time, as one HTML file."""
    from sim.app.verbs.pictures import write_report

    with Console(lambda file: print_message(str(file))) as console:
        write_report(source, out, listener=console, **options)


REPORT_VERB = Verb("report", Purpose.WHY, 3, "Write results as one HTML file.", report)


# ---- ``ckptsim watch``


def watch_job(
    url: Annotated[str, argument("URL|FILE", "JobManager, http(s)://HOST:8081, or a saved job to replay.")],
    *,
    as_json: Annotated[bool, Option("Print events as JSON Lines.", flag="--json")] = False,
    **options: Unpack[WatchOptions],
) -> None:
    """Poll a running job, compare its checkpoints with a forecast, and report deviations and their likely causes."""
    from sim.app.verbs.watch import watch

    with Console(lambda event: put(event.line), as_json=as_json) as console:
        watch(url, listener=console, **options)


WATCH_VERB = Verb("watch", Purpose.JOB, 3, "Compare a running job with its forecast.", watch_job)


# ---- The command `validate`: print how well predictions agree with recordings.

# ---- Tables of ``ckptsim validate``


def show_table(table: pd.DataFrame) -> None:
    """Print observed and predicted values.  Rows that are 0 on both sides are omitted."""
    from sim.app.verbs.validate import PERCENTILES, unit_of

    nonzero = table[(table["observed_p50"] != 0) | (table["predicted_p50"] != 0)]
    sides = [f"{side}_{name}" for side in ("observed", "predicted") for name in PERCENTILES]
    rows = [
        [
            row["recording"],
            row["quantity"],
            row["vertex"] or "",
            *(bare_text(row[side]) for side in sides),
            unit_of(row["quantity"]),
            share(row["relative_error"], signed=True),
            "yes" if row["covered"] else "no",
        ]
        for row in nonzero.to_dict("records")
    ]
    show(
        ["recording", "quantity", "vertex", *(side.replace("_", " ") for side in sides), "unit", "error", "covered"],
        rows,
    )


def show_summary(found: Validation) -> None:
    """Print the errors per quantity."""
    print()
    rows = [
        [
            *(str(row[key]) for key in ("quantity", "recordings", "rows")),
            *(share(row[key]) for key in ("covered", "median", "p90")),
        ]
        for row in found.summary.to_dict("records")
    ]
    show(["quantity", "recordings", "rows", "covered", "median error", "p90 error"], rows)


def share(number: float, *, signed: bool = False) -> str:
    """Format a share as a percentage; "-" if it is not finite."""
    if not math.isfinite(number):
        return "-"
    return (f"{number:+.1%}" if signed else f"{number:.1%}") if number else "0 %"


# ---- ``ckptsim validate``


def validate_recordings(
    recordings: Annotated[list[Path], argument("RECORDING", "Recordings, or folders of recordings.")],
    *,
    as_json: JsonOption = False,
    **options: Unpack[ValidateOptions],
) -> Code:
    """Compare predictions with recordings: observed and predicted values, and their overall error."""
    from sim.app.verbs.validate import validate

    with Console(show_validation, as_json=as_json) as console:
        validation = validate(*recordings, listener=console, **options)
    if not validation.judged:
        return Code.INVALID_INPUT
    return Code.CELLS_FAILED if validation.skipped else Code.FINE


def show_validation(validation: Validation) -> None:
    """Print the table of all recordings, and the errors of those that count."""
    if validation.judged:
        show_table(validation.table)
    if validation.counted:
        show_summary(validation)


VALIDATE_VERB = Verb("validate", Purpose.TRUST, 1, "Compare predictions with recordings.", validate_recordings)
