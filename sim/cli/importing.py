"""``ckptsim import``: a real job becomes a scenario, read off Flink's REST API, what was saved of it, logs, or a recording."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from sim.cli.console.errors import Code, UserError, print_message, speaking
from sim.cli.console.progress import bar
from sim.cli.options import parsed
from sim.cli.reports.backtesting import with_backtest
from sim.verbs.listener import Stopped

if TYPE_CHECKING:
    from sim.recordings import Import, Inference, RestSnapshot
    from sim.recordings.reading import RecordingSource

__all__ = ["import_recording"]

WHAT = "http(s)://HOST:8081, a folder or zip of --save, an archive of a history server, logs of a JobManager, or a recording."


def import_recording(
    sources: Annotated[list[str], typer.Argument(metavar="SOURCE...", help=WHAT, show_default=False)],
    job: Annotated[str | None, typer.Option("--job", metavar="ID", help="Which job, if there are several.", show_default=False)] = None,
    out: Annotated[Path | None, typer.Option("--out", "-o", metavar="FILE", help="Instead of stdout.", show_default=False)] = None,
    sample: Annotated[str, typer.Option("--sample", metavar="DURATION", help="Live jobs: how long metrics are watched.")] = "60 s",
    save: Annotated[
        Path | None,
        typer.Option("--save", metavar="FOLDER", help="Live jobs: keep all answers, to be imported again elsewhere.", show_default=False),
    ] = None,
    keep_secrets: Annotated[bool, typer.Option("--keep-secrets", help="Passwords, keys and tokens, too: else --save masks them.")] = False,
    deadline: Annotated[
        str | None,
        typer.Option("--deadline", metavar="DURATION", help="Live jobs: for all questions. (--sample + 10 min)", show_default=False),
    ] = None,
    header: Annotated[
        list[str] | None, typer.Option("--header", metavar="'NAME: VALUE'", help="Sent with every request.", show_default=False)
    ] = None,
    compare: Annotated[bool, typer.Option("--compare", help="Under three kinds of barriers instead of its own.")] = False,
    backtest: Annotated[
        bool, typer.Option("--backtest/--no-backtest", help="Simulate the job as it is, and hold that to its history of checkpoints.")
    ] = True,
    as_json: Annotated[bool, typer.Option("--json", help="Scenario, UNKNOWN values and what is not modelled as one JSON object.")] = False,
) -> None:
    """Turn a real Flink job into a scenario: of a recording the configuration alone, of any other source what was measured.

    Every value says where it comes from; what nobody could tell is marked UNKNOWN, with the question to answer.
    """
    with speaking():
        if out is not None and out.is_dir():
            raise UserError(f"--out: {out}: is a folder", Code.USAGE)
        live = "://" in sources[0]
        if not live and (save is not None or header or deadline is not None):
            raise UserError("--save, --header and --deadline are for live jobs (http://HOST:8081)", Code.USAGE)
        if keep_secrets and save is None:
            raise UserError("--keep-secrets is for --save: scenarios are written from masked answers", Code.USAGE)
        if live and len(sources) > 1:
            raise UserError("one address at a time; only the parts of a log go together", Code.USAGE)
        if live:
            from sim.recordings.source.rest.fetching import NoJobError

            try:
                snapshot = _fetched(sources[0], job, _times(sample, deadline), header or [], save)
            except NoJobError as error:  # nothing to import, but answers of the cluster
                if save is not None:
                    _keep(error.snapshot, save, keep_secrets=keep_secrets)
                raise
            if save is not None:
                _keep(snapshot, save, keep_secrets=keep_secrets)
            source: RecordingSource = snapshot
        else:
            from sim.recordings import read_source

            source = read_source([Path(name) for name in sources], job)
        imported = _imported(source, compare=compare)
        text = _text(imported)
        _keep_text(text, out)
        _tell(imported)
        if backtest:
            text = _backtested(source, imported, text, out, as_json=as_json)
        _show(imported, text, out, as_json=as_json)


def _backtested(source: RecordingSource, imported: Import | Inference, text: str, out: Path | None, *, as_json: bool) -> str:
    """The text with its backtest.  Ctrl-C keeps the text without it."""
    try:
        complete = _text(with_backtest(source, imported))
    except KeyboardInterrupt:
        _show(imported, text, out, as_json=as_json)
        raise Stopped(f"{'the scenario' if out is None else out} is complete but for its backtest") from None
    _keep_text(complete, out)
    return complete


def _keep_text(text: str, out: Path | None) -> None:
    if out is not None:
        from sim.scenario.text.writer import placed
        from sim.whole_file import replace_text

        replace_text(out, placed(text, out.parent))


def _show(imported: Import | Inference, text: str, out: Path | None, *, as_json: bool) -> None:
    """The scenario on stdout if it is in no file; as JSON in any case."""
    from sim.scenario.text.writer import placed

    scenario = placed(text, None)
    if as_json:
        unknown = [str(question) for question in getattr(imported, "unknown", ())]
        print(json.dumps({"scenario": scenario, "unknown": unknown, "not_modelled": [str(lost) for lost in imported.not_modelled]}))
    elif out is None:
        print(scenario, end="")


def _text(imported: Import | Inference) -> str:
    """The file must run as it is, whatever somebody's cluster says."""
    from sim.scenario import write

    text = write(imported.document, imported.question, imported.comments)
    _check(text)
    return text


def _check(text: str) -> None:
    """ScenarioError becomes a message about what was read."""
    from sim.scenario import ScenarioError, loads

    try:
        loads(text, "imported")
    except ScenarioError as error:
        problems = "; ".join(str(problem).removeprefix("imported:") for problem in error.problems[:3])
        raise UserError(f"what was read makes no scenario that holds: {problems}", Code.INVALID_INPUT) from None


def _imported(source: RecordingSource, *, compare: bool) -> Import | Inference:
    from sim.recordings import Recording, compared, infer, to_document

    if isinstance(source, Recording):
        return to_document(source, compare=compare)
    return compared(infer(source)) if compare else infer(source)


def _keep(snapshot: RestSnapshot, folder: Path, *, keep_secrets: bool) -> None:
    from sim.recordings import save
    from sim.recordings.source.rest.snapshot import first_names

    count = save(snapshot, folder, keep_secrets=keep_secrets)
    secrets = "secrets included" if keep_secrets else f"{count} secret{'' if count == 1 else 's'} masked"
    but = f" but {len(snapshot.missing)}, {first_names(list(snapshot.missing))}" if snapshot.missing else ""
    advice = "look through them before you send them: they hold the configuration of the cluster"
    print_message(f"{folder}: all answers{but}, {secrets}; {advice}")


def _is_new(folder: Path) -> None:
    from sim.recordings.source.rest.saved import is_free

    try:
        folder.mkdir(parents=True, exist_ok=True)
        empty = is_free(folder)
    except OSError as error:
        raise UserError(f"--save: {folder}: {error.strerror}", Code.USAGE) from None
    if not empty:
        raise UserError(f"--save: {folder}: is not empty", Code.USAGE)


def _fetched(url: str, job: str | None, times_s: tuple[float, float | None], headers: list[str], save: Path | None) -> RestSnapshot:
    from sim.recordings import fetch

    if save is not None:
        _is_new(save)  # before anybody waits
    pairs = dict(_pair(header) for header in headers)
    sample_s, total_s = times_s
    with bar("watching metrics", round(sample_s), round(sample_s), what_each="s") as watch:
        return fetch(
            url, job, sample_s=sample_s, total_s=total_s, headers=pairs, watch=lambda passed: watch(round(passed), round(passed))
        )  # fmt: skip


def _times(sample: str, deadline: str | None) -> tuple[float, float | None]:
    """Seconds to watch metrics, and for all questions; None: the default."""
    from sim.units import parse_duration

    sample_s = parsed("--sample", sample, parse_duration) / 1e9
    total_s = None if deadline is None else parsed("--deadline", deadline, parse_duration) / 1e9
    if total_s is not None and total_s <= 0:
        raise UserError("--deadline: expected more than nothing", Code.USAGE)
    return sample_s, total_s


def _pair(header: str) -> tuple[str, str]:
    name, colon, value = header.partition(":")
    if not colon or not name.strip() or not header.isprintable() or not header.isascii():
        raise UserError("--header: write 'NAME: VALUE'", Code.USAGE)
    return name.strip(), value.strip()


def _tell(imported: Import | Inference) -> None:
    """What is not in the file, and what should be looked at in it."""
    from sim.recordings import Inference

    for lost in imported.not_modelled:
        print_message(f"not modelled: {lost}")
    for flow in getattr(imported, "unbalanced", ()):
        print_message(f"a flow does not balance: {flow}")
    if isinstance(imported, Inference):
        print_message(f"{imported.inferred} values with a source, {len(imported.unknown)} UNKNOWN{':' if imported.unknown else ''}")
        for question in imported.unknown:
            print_message(f"  {question}")
