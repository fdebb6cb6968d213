"""The backtest of an import on stderr: a bar while it runs, then its lines."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sim.cli.console.errors import print_message
from sim.cli.console.progress import bar

if TYPE_CHECKING:
    from sim.recordings import Import, Inference
    from sim.recordings.reading import RecordingSource

__all__ = ["with_backtest"]


def with_backtest(source: RecordingSource, imported: Import | Inference) -> Import | Inference:
    """The same with its backtest; as it is where nothing can be compared."""
    from sim.backtest import imports
    from sim.backtest.runs import RUNS

    with bar("backtest", 100, RUNS, what_each="runs") as watch:
        complete, lines = imports.with_backtest(source, imported, watch=lambda share: watch(int(share * RUNS), round(100 * share)))
    for line in lines:
        print_message(line)
    return complete
