"""``python -m benchmarks.flink.planted``: causes of slow checkpoints planted on a real Flink, and whether `ckptsim explain` names them.

What names each cause is in `causes.py`.  `--kept FOLDER` asks what an earlier call kept, without a Flink.
"""

from __future__ import annotations

import argparse
import json
import re
import sys
import time
from collections.abc import Iterable
from dataclasses import asdict
from pathlib import Path
from tempfile import mkdtemp
from typing import Any

from benchmarks.flink.causes import RUNS, Cause, Facts, Question, Run
from benchmarks.flink.standalone import Standalone
from sim.jobs.history.explanation import answer, answer_text
from sim.jobs.history.history import History, MissingCheckpointError
from sim.jobs.history.reading import history_of
from sim.jobs.reading import read_source
from sim.jobs.source.fetching import fetch
from sim.jobs.source.recorded_job import RecordedCheckpoint
from sim.jobs.source.saved import save

SAMPLE_S = 12.0
FACTS = "facts.json"


def carry_out(run: Run, folder: Path, *, nice: int = 0) -> None:
    """Plant the causes of a run, and keep what an import would after each: FOLDER/NAME."""
    with Standalone(
        task_managers=run.task_managers, slots=run.slots, options=run.options, heap=run.heap, nice=nice
    ) as flink:
        job = flink.submit(run.job, run.options)
        flink.await_ended(job, run.settled, within_s=300)
        for cause in run.causes:
            facts = cause.plant(flink, job)
            print(f"{time.strftime('%H:%M:%S')}  {cause.name}: {cause.planted}", flush=True)
            snapshot = fetch(flink.url, job, sample_s=SAMPLE_S)
            save(snapshot, folder / cause.name)
            (folder / f"{cause.name}.{FACTS}").write_text(json.dumps(asdict(facts)) + "\n")


def verdicts(
    folder: Path, causes: Iterable[Cause]
) -> list[tuple[Cause, str, list[tuple[Question, int | None, str, bool]]]]:
    """The verdict on each cause that was kept (named, half or not), and its questions with their answers."""
    found = []
    for cause in causes:
        kept = folder / f"{cause.name}.{FACTS}"
        if not kept.exists():
            continue
        facts = Facts(**json.loads(kept.read_text()))
        zipped = folder / f"{cause.name}.zip"
        history = history_of(read_source([zipped if zipped.exists() else folder / cause.name]))
        answers = [(question, *_answer_of(history, question, facts)) for question in cause.questions]
        met = sum(fits for *_, fits in answers)
        found.append((cause, "named" if met == len(answers) else "half" if met else "not", answers))
    return found


def _answer_of(history: History, question: Question, facts: Facts) -> tuple[int | None, str, bool]:
    point = _about(history, question.about, facts)
    try:
        text = answer_text(answer(history, None if point is None else point.id))
    except MissingCheckpointError as error:
        return None, str(error), False
    names = {name: re.escape(value) for name, value in facts.names.items()}
    return None if point is None else point.id, text, is_met(question, text, names)


def is_met(question: Question, text: str, names: dict[str, str]) -> bool:
    """Whether an answer has the words.  `names`: patterns in place of {names}."""
    pattern = question.pattern
    for name, value in names.items():
        pattern = pattern.replace(f"{{{name}}}", value)
    return re.search(pattern, " ".join(re.sub(r"-\n\s*", "-", text).split())) is not None


def _about(history: History, about: str, facts: Facts) -> RecordedCheckpoint | None:
    """The checkpoint that is asked for; None: the history."""
    points = history.checkpoints
    match about:
        case "history":
            return None
        case "first":
            return next(point for point in points if point.id == 1)
        case "after":
            return next(
                point
                for point in points
                if point.trigger_timestamp > facts.begun_ms and not point.is_savepoint and point.status == "COMPLETED"
            )
    ended_ms = facts.ended_ms or float("inf")
    meanwhile = [
        point
        for point in points
        if point.trigger_timestamp < ended_ms
        and point.trigger_timestamp + point.end_to_end_duration > facts.begun_ms
        and point.tasks
    ]
    savepoints = [point for point in meanwhile if point.is_savepoint]
    failed = [point for point in meanwhile if point.status == "FAILED"]
    return max(savepoints or failed or meanwhile, key=lambda point: point.end_to_end_duration)


def table(found: list[tuple[Cause, str, list[Any]]]) -> str:
    rows = [f"{cause.name:10} {verdict:6} {cause.planted}" for cause, verdict, _ in found]
    named = sum(verdict == "named" for _, verdict, _ in found)
    return "\n".join([*rows, f"{named} of {len(found)} are named"])


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.flink.planted", description=__doc__)
    parser.add_argument("--only", help="names of causes, with commas: the runs that plant one of them")
    parser.add_argument("--out", type=Path, help="where the answers are kept")
    parser.add_argument("--kept", type=Path, metavar="FOLDER", help="of an earlier call")
    parser.add_argument("--show", action="store_true", help="the answers in full")
    parser.add_argument("--nice", type=int, default=0)
    chosen = parser.parse_args()
    only = set(chosen.only.split(",")) if chosen.only else None
    folder = chosen.kept or chosen.out or Path(mkdtemp(prefix="ckptsim-planted-"))
    runs = [run for run in RUNS if only is None or only & {cause.name for cause in run.causes}]
    if chosen.kept is None:
        folder.mkdir(parents=True, exist_ok=True)
        for run in runs:
            try:
                carry_out(run, folder, nice=chosen.nice)
            except Exception as error:  # noqa: BLE001 - the other runs go on
                print(f"{', '.join(cause.name for cause in run.causes)}: {error}", file=sys.stderr, flush=True)
    found = verdicts(folder, [cause for run in runs for cause in run.causes])
    for cause, verdict, answers in found:
        for question, number, text, fits in answers:
            if chosen.show or not fits:
                print(
                    f"--- {cause.name}: {verdict}; asked for {number or 'the history'}, expected: {question.pattern}\n{text}\n"
                )
    print(table(found))
    print(folder)
    return 0


if __name__ == "__main__":
    sys.exit(main())
