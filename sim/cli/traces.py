"""``ckptsim traces``: files of others into typed tables, and tables into windows for sweeps, on Spark."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from sim.cli.errors import Code, UserError, output_folder, say, speaking
from sim.cli.options import parsed

__all__ = ["traces_app"]

traces_app = typer.Typer(help="Traces of load and failures: read them into tables, cut windows for sweeps.", no_args_is_help=True)

MasterOption = Annotated[str, typer.Option(metavar="URL", help="local[*], spark://HOST:PORT, yarn or k8s://...")]


@traces_app.command("read")
def read(
    folder: Annotated[str, typer.Argument(metavar="FOLDER", help="Of traces; also s3://, gs://, hdfs://.", show_default=False)],
    out: Annotated[str, typer.Option("--out", "-o", metavar="FOLDER", help="Where the tables go.")] = "tables",
    master: MasterOption = "local[*]",
) -> None:
    """Read CSV series, arrivals, cluster events, failures, recordings and logs into Parquet tables; dirty rows are counted, never lost."""
    with speaking():
        from sim.cli.shown import show
        from sim.sweep.spark.session import session
        from sim.traces.pipeline import read_traces

        _must_be_writable(out)
        with session(master, "ckptsim traces") as spark:
            counts = read_traces(spark, folder, out)
        good, bad = counts[counts["kind"] != "quarantine"], counts[counts["kind"] == "quarantine"]
        show(["trace", "table", "rows"], [[row["trace"], row["kind"], f"{row['count']}"] for _, row in good.iterrows()])
        for _, row in bad.iterrows():
            say(f"{row['trace']}: {row['count']} row{'s' if row['count'] > 1 else ''} in quarantine: {row['reason']}")
        raise typer.Exit(Code.CELLS_FAILED if len(bad) else Code.FINE)


@traces_app.command("windows")
def cut_windows(
    tables: Annotated[str, typer.Argument(metavar="TABLES", help="What `traces read` wrote.", show_default=False)],
    length: Annotated[str, typer.Option(metavar="DURATION", help="Of a window.")] = "10 min",
    cut: Annotated[str, typer.Option(help="time, bursts, load or failures: which ones.")] = "time",
    count: Annotated[int | None, typer.Option(min=1, help="So many of each trace. (Default: all.)", show_default=False)] = None,
    trace: Annotated[str | None, typer.Option(help="Only this one.", show_default=False)] = None,
    out: Annotated[Path, typer.Option("--out", "-o", metavar="FILE", help="For `windows: {file: ...}` of a sweep.")] = Path("windows.csv"),
    master: MasterOption = "local[*]",
) -> None:
    """Cut long traces into windows with features: one after the other, the most bursty, one of each class of load, around failures."""
    with speaking():
        from sim.runtime.whole_file import replace_file
        from sim.sweep.spark.session import session
        from sim.traces.windows import CUTS, windows
        from sim.units import parse_duration

        if cut not in CUTS:
            raise UserError(f"--cut: expected {', '.join(CUTS)}, not '{cut}'", Code.USAGE)
        length_s = parsed("--length", length, parse_duration) / 1e9
        if not Path(tables, "rates").is_dir() and "://" not in tables:
            raise UserError(f"{tables}: no tables of traces here: run `ckptsim traces read` first", Code.INVALID_INPUT)
        with session(master, "ckptsim traces") as spark:
            found = windows(spark, tables, length_s=length_s, cut=cut, count=count, trace=trace).toPandas()
        replace_file(out, lambda path: found.to_csv(path, index=False, float_format="%.6g"))
        print(f"{len(found)} windows of {found['trace'].nunique()} traces in {out}")


def _must_be_writable(out: str) -> None:
    if "://" not in out:
        output_folder(Path(out))
