"""What a bad world is kept as: the whole file, and a small one that shows the same, its first comment saying what happens."""

import shutil
from collections import Counter

from sim.model.schema.text import write
from tests.worlds.generator import FOLDER
from tests.worlds.shrinker import shrink
from tests.worlds.trial import run_document

SHRUNK_PER_KIND = 3  # by each process

_shrunk = Counter[str]()


def small_once(document, outcome, seed):
    """None if this process has shrunk enough of this kind."""
    _shrunk[outcome.finding] += 1
    if _shrunk[outcome.finding] > SHRUNK_PER_KIND or outcome.kind == "slow":
        return None
    return small(document, outcome, seed)


def small(document, outcome, seed):
    """A small world that shows the same; with both engines if they differed."""
    last = outcome

    def holds(candidate):
        nonlocal last
        found = run_document(candidate, compare=outcome.kind in ("differ", "unaccounted"))
        same = found.kind == outcome.kind and (outcome.kind == "differ" or found.finding == outcome.finding)
        if same:
            last = found
        return same

    shrunk = shrink(document, holds)
    return write(shrunk, f"{last.kind}: {last.fact} (seed {seed})")


def keep(folder, name, text):
    """The file, with the traces it names beside it."""
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"{name}.yaml"
    path.write_text(text)
    for trace in FOLDER.glob("*.csv"):
        if f"trace: {trace.name}" in text:
            shutil.copy(trace, folder / trace.name)
    return path
