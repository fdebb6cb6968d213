"""What a bad world is kept as: the whole file, and a small one that shows the same, its first comment saying what happens."""

from __future__ import annotations

import shutil
from collections import Counter
from collections.abc import Callable
from pathlib import Path

from sim.model.schema.writer import write
from tests.worlds.draw import Document
from tests.worlds.generator import FOLDER
from tests.worlds.shrinker import shrink
from tests.worlds.trial import Outcome, run_document

__all__ = ["keep", "small", "small_once"]

SHRUNK_PER_KIND = 3  # by each process

Run = Callable[[Document], Outcome]
_shrunk = Counter[str]()


def small_once(document: Document, outcome: Outcome, seed: int) -> str | None:
    """None if this process has shrunk enough of this kind."""
    _shrunk[outcome.finding] += 1
    if _shrunk[outcome.finding] > SHRUNK_PER_KIND or outcome.kind == "slow":
        return None
    return small(document, outcome, seed)


def small(document: Document, outcome: Outcome, seed: int, run: Run | None = None) -> str:
    """`run`: how a world is judged; default: as every world, with both engines if they differed."""
    judge = run or (lambda world: run_document(world, compare=outcome.kind in ("differ", "unaccounted")))
    last = outcome

    def holds(candidate: Document) -> bool:
        nonlocal last
        found = judge(candidate)
        same = found.kind == outcome.kind and (outcome.kind == "differ" or found.finding == outcome.finding)
        if same:
            last = found
        return same

    shrunk = shrink(document, holds)
    return write(shrunk, f"{last.kind}: {last.fact} (seed {seed})")


def keep(folder: Path, name: str, text: str) -> Path:
    """The file, with the traces it names beside it."""
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"{name}.yaml"
    path.write_text(text)
    for trace in FOLDER.glob("*.csv"):
        if f"trace: {trace.name}" in text:
            shutil.copy(trace, folder / trace.name)
    return path
