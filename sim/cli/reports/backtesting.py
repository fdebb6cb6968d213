"""What is imported is simulated as it is, and held to the history it came from: lines on stderr, and a part of the file."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from sim.cli.console.errors import print_message
from sim.cli.console.progress import bar

if TYPE_CHECKING:
    from sim.recordings import Import, Inference, RecordedJob
    from sim.recordings.reading import RecordingSource

__all__ = ["with_backtest"]


def with_backtest(source: RecordingSource, imported: Import | Inference) -> Import | Inference:
    """The same with the section `backtest` and its table at the head; as it is where nothing can be compared."""
    from sim.backtest.backtest import NoHistoryError, backtest
    from sim.backtest.runs import RUNS, TooLargeError
    from sim.backtest.texts import lines_of
    from sim.plane import warm
    from sim.scenario.backtest.writer import section_of

    try:
        warm()
        with bar("backtest", 100, RUNS, what_each="runs") as watch:
            result = backtest(
                _recorded(source),
                chains=_chains(imported),
                unbalanced=getattr(imported, "unbalanced", ()),
                watch=lambda share: watch(int(share * RUNS), round(100 * share)),
            )
    except (NoHistoryError, TooLargeError) as reason:
        print_message(f"no backtest: {reason}")
        return imported
    except Exception as error:  # noqa: BLE001 - a mistake of ours, and no reason to lose what was imported
        print_message(f"no backtest: the simulation broke: {type(error).__name__}: {error}")
        return imported
    lines = lines_of(result)
    for line in lines:
        print_message(line)
    return _with_section(imported, section_of(result), lines)


def _recorded(source: RecordingSource) -> RecordedJob:
    from sim.recordings import RecordedJob, RestSnapshot, to_recording
    from sim.recordings.observe.from_log import to_log_recording

    if isinstance(source, RecordedJob):
        return source
    return to_recording(source) if isinstance(source, RestSnapshot) else to_log_recording(source)


def _chains(imported: Import | Inference) -> dict[str, str]:
    """What comments say of each vertex: its operators."""
    comments = imported.comments
    names = imported.document["job"]
    return {name: comments.get(f"job.{name}", "") for name in names} if isinstance(comments, dict) else dict.fromkeys(names, "")


def _with_section(imported: Import | Inference, section: dict[str, object], lines: list[str]) -> Import | Inference:
    from sim.recordings import Inference

    document = imported.document | {"backtest": section}
    if isinstance(imported, Inference):
        head = "\n".join([*imported.comments.get("", "").splitlines(), "", *lines])
        return replace(imported, document=document, comments=imported.comments | {"": head})
    return imported._replace(document=document, comments=[*imported.comments, *([""] if imported.comments else []), *lines])
