"""``ckptsim traces``: files of others into typed tables, and tables into windows for sweeps; what is small here, the rest on Spark."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from sim.cli.console.errors import Code, UserError, print_message, speaking, stoppable
from sim.cli.options import ConfOption, parsed, spark_settings
from sim.verbs.options import writable_folder

if TYPE_CHECKING:
    import pandas as pd

    from sim.traces.choices import Choices

traces_app = typer.Typer(help="Traces of load and failures: read them into tables, cut windows for sweeps.", no_args_is_help=True)

MasterOption = Annotated[
    str | None,
    typer.Option(
        metavar="here|URL",
        help="local[*], spark://HOST:PORT, yarn, k8s://... (Default: here, without Spark; local[*] for buckets and above 64 MB.)",
        show_default=False,
    ),
]


def _option(name: str, metavar: str, help_text: str) -> Any:
    return typer.Option(name, metavar=metavar, help=help_text, show_default=False)


MOST_SHOWN = 200
"""Rows of the summary; a bucket may have a million files."""


@traces_app.command("read")
def read(
    folder: Annotated[str, typer.Argument(metavar="FOLDER", help="Of traces, or one file; s3://, gs://, hdfs://.", show_default=False)],
    out: Annotated[str, typer.Option("--out", "-o", metavar="FOLDER", help="Where the tables go.")] = "tables",
    format_: Annotated[str | None, _option("--format", "NAME", "What all tables of text are. (Default: told by their columns.)")] = None,
    time: Annotated[str | None, _option("--time", "COLUMN", "Of your own tables: the time; 0, 1, ... without names.")] = None,
    time_unit: Annotated[str | None, _option("--time-unit", "UNIT", "Of numbers: s, ms, us, ns. (Default: their size tells.)")] = None,
    value: Annotated[str | None, _option("--value", "COLUMN", "Of your own tables: the value.")] = None,
    as_: Annotated[str | None, _option("--as", "WHAT", "It is: rates, arrivals, speeds, failures. (Default: rates.)")] = None,
    per: Annotated[str | None, _option("--per", "DURATION", "A value of --as rates counts so long. (Default: a second.)")] = None,
    master: MasterOption = None,
    conf: ConfOption = None,
    as_json: Annotated[bool, typer.Option("--json", help="The counts of rows and the remarks as one JSON object.")] = False,
) -> None:
    """Read CSV series, arrivals, cluster events, failures, recordings and logs into Parquet tables; dirty rows are counted, never lost.

    What a file is, its content tells. Rows that cannot be used stand in the table `quarantine`, with file, line and reason.
    """
    with speaking():
        on_spark = _settings(master, conf)
        choices = _choices(format_, time, time_unit, value, as_, per)
        from sim.traces.anywhere import read_anywhere
        from sim.traces.listing import list_files

        files, remarks = list_files(folder, without=out)
        if "://" not in out:
            writable_folder(Path(out))
        kept = f"tables in {out} may be of two runs: the same command writes all of them anew"
        with stoppable(kept):
            counts = read_anywhere(files, out, choices, master=master, conf=on_spark)
        raise typer.Exit(_summary(counts, remarks, as_json=as_json))


@traces_app.command("windows")
def cut_windows(
    tables: Annotated[str, typer.Argument(metavar="TABLES", help="What `traces read` wrote.", show_default=False)],
    length: Annotated[str, typer.Option(metavar="DURATION", help="Of a window.")] = "10 min",
    cut: Annotated[str, typer.Option(help="time, bursts, load or failures: which ones.")] = "time",
    count: Annotated[int | None, typer.Option(min=1, help="So many of each trace. (Default: all.)", show_default=False)] = None,
    trace: Annotated[str | None, typer.Option(help="Only this one.", show_default=False)] = None,
    out: Annotated[Path, typer.Option("--out", "-o", metavar="FILE", help="For `windows: {file: ...}` of a sweep.")] = Path("windows.csv"),
    master: MasterOption = None,
    conf: ConfOption = None,
) -> None:
    """Cut long traces into windows with features: one after the other, the most bursty, one of each class of load, around failures."""
    with speaking():
        on_spark = _settings(master, conf)
        from sim.cli.console.terminal import put
        from sim.sheet import write_csv
        from sim.traces.anywhere import cut_anywhere
        from sim.traces.windows import CUTS
        from sim.units import parse_duration

        if cut not in CUTS:
            raise UserError(f"--cut: expected {', '.join(CUTS)}, not '{cut}'", Code.USAGE)
        length_s = parsed("--length", length, parse_duration) / 1e9
        if length_s <= 0:
            raise UserError("--length: a window of 0 s has nothing in it", Code.USAGE)
        if not Path(tables, "rates").is_dir() and "://" not in tables:
            raise UserError(f"{tables}: no tables of traces here: run `ckptsim traces read` first", Code.INVALID_INPUT)
        writable_folder(out.parent)
        with stoppable(f"{out} is as it was before"):
            found, remarks = cut_anywhere(
                tables, length_s=length_s, cut=cut, count=count, trace=trace, base=str(out.parent), master=master, conf=on_spark
            )
        write_csv(found, out, float_format="%.6g")
        for line in remarks:
            print_message(line)
        put(f"{len(found)} windows of {found['trace'].nunique()} traces in {out}")


def _settings(master: str | None, conf: list[str] | None) -> dict[str, str] | None:
    """What --conf says; None: not on Spark."""
    from sim.traces.anywhere import HERE, must_be_spark

    must_be_spark(master, conf)
    return spark_settings(None if master == HERE else master, conf)


def _choices(format_: str | None, time: str | None, time_unit: str | None, value: str | None, as_: str | None, per: str | None) -> Choices:
    from sim.traces.choices import ChoiceError, Choices
    from sim.units import parse_duration

    unit_s = None if time_unit is None else parsed("--time-unit", f"1 {time_unit}", parse_duration) / 1e9
    per_ns = None if per is None else parsed("--per", per, parse_duration)
    if per_ns is not None and per_ns <= 0:
        raise UserError("--per: a value counts longer than that", Code.USAGE)
    try:
        return Choices(format_, time, unit_s, value, as_, None if per_ns is None else per_ns / 1e9)
    except ChoiceError as error:
        raise UserError(str(error), Code.USAGE) from None


def _summary(counts: object, remarks: list[str], *, as_json: bool) -> Code:
    """Tables on stdout; what is in none of them on stderr.  As JSON all of it, on stdout."""
    import pandas as pd

    from sim.cli.console.terminal import show
    from sim.traces.tables import NO_TABLE

    assert isinstance(counts, pd.DataFrame)  # noqa: S101 - importing pandas takes a second
    good, bad = counts[~counts["kind"].isin(["quarantine", *NO_TABLE])], counts[counts["kind"] == "quarantine"]
    if as_json:
        print(json.dumps({"counts": json.loads(counts.to_json(orient="records")), "remarks": remarks}))  # NaN becomes null
        return _code(good, bad)
    rows = [[row["trace"], row["kind"], f"{row['count']}"] for _, row in good.iterrows()]
    if rows:
        show(["trace", "table", "rows"], rows[:MOST_SHOWN])
    if len(rows) > MOST_SHOWN:
        print_message(f"and {len(rows) - MOST_SHOWN} more; in all {good['count'].sum()} rows of {good['trace'].nunique()} traces")
    for line in remarks:
        print_message(line)
    for how, files in counts[counts["kind"] == "note"].groupby("reason", sort=False)["file"]:
        print_message(f"{_named(list(files))}: {how}")
    passed = counts[counts["kind"] == "passed"].groupby("reason")["count"].sum()
    for why, count in passed.items():
        print_message(f"{count} row{'s say' if count > 1 else ' says'} nothing to any table: {why}")
    for _, row in bad.iloc[:MOST_SHOWN].iterrows():
        print_message(f"{row['file']}: {_where(row)}{row['reason']}")
    if len(bad) > MOST_SHOWN:
        print_message(f"and {len(bad) - MOST_SHOWN} more messages: all rows are in the table `quarantine`")
    return _code(good, bad)


def _named(files: list[str]) -> str:
    return ", ".join(files[:3]) + (f" and {len(files) - 3} more" if len(files) > 3 else "")


def _code(good: pd.DataFrame, bad: pd.DataFrame) -> Code:
    if good.empty:
        return Code.INVALID_INPUT
    return Code.CELLS_FAILED if len(bad) else Code.FINE


def _where(row: object) -> str:
    """Where the first of the rows stands that are in quarantine for one reason."""
    line, count = row["line"], row["count"]  # type: ignore[index]
    if line is None or not line >= 1:  # the file as a whole
        return ""
    return f"{count} row{'s' if count > 1 else ''} in quarantine, {'the first in ' if count > 1 else ''}line {line:.0f}: "
