"""Commands of reference: init, schema, explain-key, runs, known-issues, traces."""

from __future__ import annotations

import json
import sys
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Final, Unpack

import typer

from sim.app.cli.console import Console
from sim.app.cli.errors import Code, UserError, print_message
from sim.app.cli.options import Purpose, Verb, VerbCommand, argument, command
from sim.app.cli.terminal import put, show
from sim.app.verbs.options import (
    FlinkOption,
    JobPlaceOptions,
    JsonOption,
    Option,
    ReadTracesOptions,
    SetOption,
    TraceWindowsOptions,
    path_of,
)

if TYPE_CHECKING:
    from sim.app.verbs.traces import ReadTraces
    from sim.model.schema.reference import KeyReference


# ---- ``ckptsim init``


def write_example(
    name: Annotated[str | None, argument("NAME", "Example to write. (Default: list all examples.)")] = None,
    *,
    folder: Annotated[Path, Option("Output folder.", flag="--out -o", metavar="FOLDER")] = Path(),
    force: Annotated[bool, Option("Overwrite existing files.")] = False,
    ask: Annotated[bool, Option("Ask for the values that are marked UNKNOWN.")] = False,
) -> None:
    """Write an example scenario or sweep, with comments, and print the command that runs it."""
    from sim.app.examples import EXAMPLES, contents, main_file, question, with_answers
    from sim.model.files import replace_text

    if name is None:
        show(("example", "question"), [(example, question(example)) for example in EXAMPLES], text_cells=True)
        print_message("\nckptsim init NAME writes one of them")
        return
    if name not in EXAMPLES:
        raise UserError(f"init: no example '{name}'; examples: {', '.join(EXAMPLES)}", Code.USAGE)
    texts = {folder / file: text for file, text in contents(name).items()}
    if not force and (existing := [str(path) for path in texts if path.exists()]):
        raise UserError(
            f"{', '.join(existing)}: exists already: --force replaces it, --out FOLDER writes elsewhere", Code.USAGE
        )
    if ask:
        print_message("An empty answer keeps the value of the example, and its mark.")
        texts = {path: with_answers(text, _answer) for path, text in texts.items()}
    folder.mkdir(parents=True, exist_ok=True)
    for path, text in texts.items():
        replace_text(path, text)
    verb, file = main_file(name)
    print_message(f"{', '.join(str(path) for path in texts)}: written; next: ckptsim {verb} {folder / file}")


def _answer(question: str, value: str) -> str:
    sys.stderr.write(f"{question} [{value}] ")
    sys.stderr.flush()
    return sys.stdin.readline()


INIT_VERB = Verb("init", Purpose.BEGIN, 1, "Write an example scenario or sweep.", write_example)


# ---- ``ckptsim schema``

COLUMN = ("name", "unit", "meaning")


def print_schema(
    *,
    sweep: Annotated[bool, Option("Print the JSON Schema of sweep files.")] = False,
    results: Annotated[bool, Option("Print the columns of result tables: name, unit, meaning.")] = False,
    as_json: Annotated[bool, Option("With --results: print the columns as JSON.", flag="--json")] = False,
) -> None:
    """Print the JSON Schema of scenario files (the default) or sweep files, or the columns of result tables."""
    if sweep and results:
        raise UserError("--sweep and --results exclude each other", Code.USAGE)
    if not results:
        from sim.model.schema.reference import schema_text
        from sim.studies.sweeps.design import SweepDocument

        print(schema_text(SweepDocument, "ckptsim sweep") if sweep else schema_text(), end="")
        return
    from sim.studies.cells import SWEPT, described

    columns_by_table = described()
    if as_json:
        columns = {
            name: [dict(zip(COLUMN, row, strict=True)) for row in rows] for name, rows in columns_by_table.items()
        }
        print(json.dumps(columns, indent=2))
        return
    for name, rows in columns_by_table.items():
        print(f"{name}.parquet{' of a sweep' if name in SWEPT else ''}\n")
        show(COLUMN, rows, text_cells=True)
        print()


SCHEMA_VERB = Verb("schema", Purpose.LOOK, 2, "Print the schema of files and result tables.", print_schema)


# ---- ``ckptsim explain-key``


def print_key(
    key: Annotated[
        str | None,
        argument(
            "KEY", "Scenario key, Flink key, word to search for, or a file. (Default: list the top-level sections.)"
        ),
    ] = None,
    *,
    as_json: JsonOption = False,
) -> None:
    """Explain a scenario key: values, default, Flink's key, and the keys below it. Any other word is searched for in all keys.

    For a Flink configuration file, or a scenario with flink:, explain which scenario value each Flink key sets.
    """
    from sim.model.schema.reference import UnknownKeyError, all_keys, explain_key, find_keys, keys_below

    data: Any
    if key is None:
        data = [asdict(reference) for reference in all_keys()]
        lines = [*map(_key_line, keys_below("")), _HOW_TO_GO_ON]
    elif (file := Path(key)).is_file() or Path(key.rpartition("#")[0]).is_file():
        from sim.model.schema.flink_file import about_file, read_flink_file

        data = about_file(read_flink_file(file))
        lines = [f"{name}: {about}" for name, about in data.items()]
    else:
        try:
            reference = explain_key(key)
        except UnknownKeyError:
            if not (found := find_keys(key)):
                raise
            data = [asdict(reference) for reference in found]
            lines = [f"No key is called '{key}'. These mention it:", *map(_key_line, found)]
        else:
            data, lines = asdict(reference), [str(reference), *map(_key_line, keys_below(reference.key))]
    if as_json:
        print(json.dumps(data))
    else:
        put("\n".join(lines))


_HOW_TO_GO_ON = "\nckptsim explain-key SECTION lists its keys, and explain-key WORD (rocksdb, kafka, s3) finds those that mention a word."


def _key_line(reference: KeyReference) -> str:
    return f"{reference.key}: {reference.meaning}"


EXPLAIN_KEY_VERB = Verb("explain-key", Purpose.LOOK, 1, "Explain a key of a scenario, or search keys.", print_key)


# ---- ``ckptsim docs``

_PACKAGE: Final = Path(__file__).parents[2]
_PAGES: Final = _PACKAGE / "docs" if (_PACKAGE / "docs").is_dir() else _PACKAGE.parent / "docs"
"""Pages of the documentation: in the package as installed, or next to it in a checkout."""


def print_page(
    topic: Annotated[str | None, argument("TOPIC", "Page, e.g. truth or docs/truth.md. (Default: list all.)")] = None,
) -> None:
    """Print a page of the documentation."""
    pages = {path.stem: path.read_text(encoding="utf-8") for path in sorted(_PAGES.glob("*.md"))}
    if topic is None:
        show(
            ("topic", "page"),
            [(name, text.partition("# ")[2].partition("\n")[0]) for name, text in pages.items()],
            text_cells=True,
        )
        return
    text = pages.get(Path(topic.partition("#")[0]).stem)
    if text is None:
        raise UserError(f"docs: no page '{topic}'; pages: {', '.join(pages)}", Code.USAGE)
    if sys.stdout.isatty():
        from rich.console import Console as Terminal
        from rich.markdown import Markdown

        Terminal().print(Markdown(text))
    else:
        print(text, end="")


DOCS_VERB = Verb("docs", Purpose.LOOK, 4, "Print a page of the documentation.", print_page)


# ---- ``ckptsim runs``


def list_runs(
    folder: Annotated[
        Path, argument("FOLDER", "Folder to search, with two levels of subfolders. (Default: this one.)")
    ] = Path(),
    *,
    as_json: JsonOption = False,
) -> None:
    """List the results that run, sweep, advise and diff stored, the newest first."""
    from sim.studies.run_folder import kept_answers

    if not folder.is_dir():
        raise UserError(f"{folder}: no such folder", Code.INVALID_INPUT)
    kept = kept_answers(folder)
    if as_json:
        print(json.dumps(kept))
    elif kept:
        rows = [(row["folder"], row["date"], row["command"].partition(" -")[0], row["question"]) for row in kept]
        show(("folder", "date", "command", "question"), rows, text_cells=True)
    else:
        print_message(f"{folder}: no results; `ckptsim run FILE` stores results in the folder runs")


RUNS_VERB = Verb("runs", Purpose.LOOK, 3, "List stored results.", list_runs)


# ---- ``ckptsim known-issues``


def list_known_issues(
    source: Annotated[
        str | None, argument("FILE", "A scenario, or a source accepted by import. (Default: list all defects.)")
    ] = None,
    *,
    changes: SetOption = (),
    flink: FlinkOption = None,
    as_json: JsonOption = False,
    **options: Unpack[JobPlaceOptions],
) -> None:
    """List known defects of Flink and of connectors. For a job, only those that apply or may apply, and why."""
    from sim.app.verbs.findings import HEADER, FoundIssues
    from sim.app.verbs.importing import place_of, scenarios_of

    scenarios = None if source is None else scenarios_of(place_of([source], options), path_of(flink), changes)
    issues = FoundIssues(scenarios)
    if as_json:
        print(json.dumps(issues.facts))
        return
    if issues.matches:
        show(HEADER, issues.rows, text_cells=True)
    for match in issues.matches:
        if match.applies:
            put(f"\n{match.issue.id}: {match.issue.happens} Way out: {match.issue.way_out}. {match.issue.source}")
    put(f"\n{issues.summary}")


KNOWN_ISSUES_VERB = Verb("known-issues", Purpose.TRUST, 3, "List known defects that apply to a job.", list_known_issues)


# ---- ``ckptsim traces``

traces_app = typer.Typer(
    help="Convert traces of load and failures to tables, and cut windows for sweeps.", no_args_is_help=True
)


@traces_app.command("read", cls=VerbCommand)
@command
def read(
    folder: Annotated[
        str,
        argument(
            "FOLDER",
            "Folder of traces or one file, also s3://, gs://, hdfs://.",
        ),
    ],
    *,
    out: Annotated[str, Option("Output folder.", flag="--out -o", metavar="FOLDER")] = "tables",
    as_json: JsonOption = False,
    **options: Unpack[ReadTracesOptions],
) -> Code:
    """Convert CSV series, Prometheus JSON, arrivals, cluster events, failures, recordings and logs to tables.

    Formats are detected from the content. The table `quarantine` lists every invalid row with file, line and reason.
    """
    from sim.app.verbs.traces import read_traces

    with Console(_show_tables, as_json=as_json) as console:
        converted = read_traces(folder, out, listener=console, **options)
    return _traces_exit_code(converted)


@traces_app.command("windows", cls=VerbCommand)
@command
def cut_windows(
    tables: Annotated[str, argument("TABLES", "Folder of tables written by `traces read`.")],
    *,
    out: Annotated[
        Path, Option("Output file, for `windows: {file: ...}` in a sweep file.", flag="--out -o", metavar="FILE")
    ] = Path("windows.csv"),
    **options: Unpack[TraceWindowsOptions],
) -> None:
    """Cut traces into windows for sweeps: consecutive ones, the most bursty, one per load class, or around failures."""
    from sim.app.verbs.traces import trace_windows

    with Console(lambda windows: put(repr(windows))) as console:
        trace_windows(tables, file=out, listener=console, **options)


def _show_tables(converted: ReadTraces) -> None:
    """Print row counts per table on stdout, and notes on skipped or invalid rows on stderr."""
    if converted.rows:
        show(["trace", "table", "rows"], converted.rows)
    for line in converted.notes:
        print_message(line)


def _traces_exit_code(converted: ReadTraces) -> Code:
    if converted.tables.empty:
        return Code.INVALID_INPUT
    return Code.FINE if converted.quarantine.empty else Code.CELLS_FAILED


TRACES_VERB = Verb("traces", Purpose.SWEEP, 2, "Convert traces to tables, cut windows.", traces_app)
