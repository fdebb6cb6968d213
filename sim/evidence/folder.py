"""Recordings, each judged in a process of its own, under names that tell them apart."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from sim.cells.local import Watch, cores, no_watch, run_each
from sim.evidence.judging import Judgement, judge

if TYPE_CHECKING:
    from sim.model.scenario import Overheads


def in_folder(folder: Path, warn: Callable[[str], object] = str) -> list[Path]:
    """By their endings; a pipe or a device, which might never end, is skipped and named."""
    named = sorted([*folder.glob("*.json"), *folder.glob("*.json.gz"), *folder.glob("*.zip")])
    for path in named:
        if not path.is_file():
            warn(f"skipped: {path}: is no ordinary file")
    return [path for path in named if path.is_file()]


def recordings_in(path: Path, warn: Callable[[str], object] = str) -> list[Path]:
    """The files of a folder; a folder of saved REST answers is one recording."""
    if not path.is_dir() or (path / "jobs").is_dir():
        return [path]
    return in_folder(path, warn)


def judge_all(
    paths: Sequence[Path], *, seeds: int, jobs: int | None, time_limit_s: float, overheads: Overheads | None = None,
    watch: Watch = no_watch,
) -> list[Judgement]:  # fmt: skip
    """Judge recordings side by side; judgements in the order of the paths.  `watch` gets the number of those done, twice."""
    work = partial(judge, seeds=seeds, time_limit_s=time_limit_s, overheads=overheads)
    done = dict(run_each(work, paths, jobs=jobs or cores(), watch=lambda finished, _: watch(finished, finished)))
    return [done[i] for i in range(len(paths))]


def by_name(found: Sequence[tuple[Path, Judgement]]) -> dict[str, Judgement]:
    """Recordings of the same name are told apart by their folders, then by their paths."""
    names = [outcome.name for _, outcome in found]
    paths = [path for path, _ in found]
    foldered = [f"{path.absolute().parent.name}/{name}" if names.count(name) > 1 else name for path, name in zip(paths, names, strict=True)]
    unique = [str(path) if foldered.count(name) > 1 else name for path, name in zip(paths, foldered, strict=True)]
    return {
        name: outcome._replace(table=None if outcome.table is None else outcome.table.assign(recording=name))
        for name, (_, outcome) in zip(unique, found, strict=True)
    }
