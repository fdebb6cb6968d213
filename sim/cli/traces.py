"""``ckptsim traces``: files of others into typed tables, and tables into windows for sweeps; what is small here, the rest on Spark."""

from __future__ import annotations

import json
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from sim.cli.console.errors import Code, print_message, speaking
from sim.cli.console.listener import Console
from sim.cli.console.overview import Purpose, Verb
from sim.cli.console.terminal import put, show
from sim.cli.options import ConfOption, spark_settings

if TYPE_CHECKING:
    from sim.verbs.traces import ReadTraces

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


@traces_app.command("read")
def read(
    folder: Annotated[
        str,
        typer.Argument(
            metavar="FOLDER",
            help="Of traces, or one file; s3://, gs://, hdfs://; the URL of a range query of Prometheus.",
            show_default=False,
        ),
    ],
    out: Annotated[str, typer.Option("--out", "-o", metavar="FOLDER", help="Where the tables go.")] = "tables",
    format_: Annotated[str | None, _option("--format", "NAME", "What all tables of text are. (Default: told by their columns.)")] = None,
    time: Annotated[str | None, _option("--time", "COLUMN", "Of your own tables: the time; 0, 1, ... without names.")] = None,
    time_unit: Annotated[str | None, _option("--time-unit", "UNIT", "Of numbers: s, ms, us, ns. (Default: their size tells.)")] = None,
    zone: Annotated[str | None, _option("--zone", "ZONE", "Of dates that name none: Europe/Berlin and so on. (Default: UTC.)")] = None,
    value: Annotated[str | None, _option("--value", "COLUMN", "Of your own tables: the value.")] = None,
    as_: Annotated[str | None, _option("--as", "WHAT", "It is: rates, arrivals, speeds, failures. (Default: rates.)")] = None,
    per: Annotated[str | None, _option("--per", "DURATION", "A value of --as rates counts so long. (Default: a second.)")] = None,
    master: MasterOption = None,
    conf: ConfOption = None,
    as_json: Annotated[bool, typer.Option("--json", help="The counts of rows and the remarks as one JSON object.")] = False,
) -> None:
    """Read CSV series, JSON of Prometheus and Grafana, offsets, arrivals, cluster events, failures, recordings and logs into tables.

    What a file is, its content tells. Dirty rows are counted, never lost: the table `quarantine` has them, with file, line and reason.
    """
    with speaking():
        on_spark = _settings(master, conf)
        from sim.verbs.traces import choices, read_traces

        console = Console(partial(_show, as_json=as_json))
        chosen = choices(format_, time, time_unit, value, as_, per, zone)
        found = read_traces(folder, out, chosen, master=master, conf=on_spark, listener=console)
        console.finish()
        raise typer.Exit(_code(found))


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
        from sim.verbs.traces import cut_windows as cut_traces

        console = Console(lambda found: put(repr(found)))
        cut_traces(tables, out, length=length, cut=cut, count=count, trace=trace, master=master, conf=on_spark, listener=console)
        console.finish()


def _settings(master: str | None, conf: list[str] | None) -> dict[str, str] | None:
    """The settings of --conf; None: not on Spark."""
    from sim.traces.anywhere import HERE, must_be_spark

    must_be_spark(master, conf)
    return spark_settings(None if master == HERE else master, conf)


def _show(found: ReadTraces, *, as_json: bool) -> None:
    """Print the tables on stdout, and what is in none of them on stderr.  As JSON all of it goes to stdout."""
    if as_json:
        print(json.dumps(found.plain()))
        return
    if found.rows:
        show(["trace", "table", "rows"], found.rows)
    for line in found.notes:
        print_message(line)


def _code(found: ReadTraces) -> Code:
    if found.tables.empty:
        return Code.INVALID_INPUT
    return Code.FINE if found.quarantine.empty else Code.CELLS_FAILED


VERB = Verb("traces", Purpose.SWEEP, 2, "Read traces of load and failures, cut windows.", traces_app)
